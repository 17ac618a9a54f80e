//! Functions of places on lines and polygons: the nearest point, the point at a fraction, where shapes meet, and shapes
//! with more points, with fewer, or with what is around them.

use std::f64::consts::PI;

use arrow::array::ArrayRef;
use datafusion::error::{DataFusionError, Result};
use serde_json::Value;

use super::buffer::{BufferSize, around_lines, around_polygons};
use super::crossings::{
    intersection_of_lines, intersection_with_polygons, lines_meet, meets_polygons, polygons_meet, union_of_lines,
};
use super::dense::{dense_lines, dense_polygons};
use super::overlay::{intersection_of_polygons, shape_of, union_of_polygons};
use super::shapes::{LineShapes, PolygonShapes, ShapeEdge};
use super::simplify::{simplified_lines, simplified_polygons};
use super::sphere::{EARTH_RADIUS_METERS, Vector, azimuth, nearest_on_edge};
use super::{BOOL, DYNAMIC, PointArguments, REAL, ShapeColumn, point_of};
use crate::functions::arguments::FunctionArguments;
use crate::functions::signature::{FunctionEntry, entry};
use crate::interrupt::check_interrupt;

const NOT_COMBINED: &str = "these polygons are too large, or their sides too near to each other, to be combined here";
const DEFAULT_TOLERANCE_METERS: f64 = 10.0;
/// The greatest tolerance of a simplified shape.
const MAX_SIMPLIFIED_METERS: f64 = 7_800_000.0;

pub(in crate::functions) const FUNCTIONS: &[FunctionEntry] = &[
    entry("geo_angle", "nnnnnn", REAL, angle),
    entry("geo_closest_point_on_line", "nnj", DYNAMIC, |arguments| {
        let points = PointArguments::read(arguments, 0)?;
        let lines = ShapeColumn::read(arguments, 2, LineShapes::read)?;
        arguments.make_dynamics(|row| {
            let nearest =
                points.get(row).and_then(|point| lines.map_row(row, |lines| nearest(point, lines.edges()))?);
            Ok(nearest.map_or(Value::Null, point_of))
        })
    }),
    entry("geo_closest_point_on_polygon", "nnj", DYNAMIC, |arguments| {
        let points = PointArguments::read(arguments, 0)?;
        let polygons = ShapeColumn::read(arguments, 2, PolygonShapes::read)?;
        let of = |point: Vector, polygons: &PolygonShapes| {
            if polygons.contains(point) { Some(point) } else { nearest(point, polygons.edges()) }
        };
        arguments.make_dynamics(|row| {
            let nearest = points.get(row).and_then(|point| polygons.map_row(row, |polygons| of(point, polygons))?);
            Ok(nearest.map_or(Value::Null, point_of))
        })
    }),
    entry("geo_line_interpolate_point", "jn", DYNAMIC, interpolate),
    entry("geo_line_locate_point", "jnn?b", REAL, locate),
    entry("geo_intersects_2lines", "jj", BOOL, |arguments| {
        let one = ShapeColumn::read(arguments, 0, LineShapes::read)?;
        let other = ShapeColumn::read(arguments, 1, LineShapes::read)?;
        arguments.make_bools(|row| one.map_row(row, |one| other.map_row(row, |other| lines_meet(one, other)))?)
    }),
    entry("geo_intersects_2polygons", "jj", BOOL, |arguments| {
        let one = ShapeColumn::read(arguments, 0, PolygonShapes::read)?;
        let other = ShapeColumn::read(arguments, 1, PolygonShapes::read)?;
        arguments.make_bools(|row| one.map_row(row, |one| other.map_row(row, |other| polygons_meet(one, other)))?)
    }),
    entry("geo_intersects_line_with_polygon", "jj", BOOL, |arguments| {
        let lines = ShapeColumn::read(arguments, 0, LineShapes::read)?;
        let polygons = ShapeColumn::read(arguments, 1, PolygonShapes::read)?;
        arguments.make_bools(|row| {
            lines.map_row(row, |lines| polygons.map_row(row, |polygons| meets_polygons(lines, polygons)))?
        })
    }),
    entry("geo_intersection_2lines", "jj", DYNAMIC, |arguments| {
        let one = ShapeColumn::read(arguments, 0, LineShapes::read)?;
        let other = ShapeColumn::read(arguments, 1, LineShapes::read)?;
        arguments.make_dynamics(|row| {
            let shared = one.map_row(row, |one| other.map_row(row, |other| intersection_of_lines(one, other)));
            Ok(shared.flatten().unwrap_or(Value::Null))
        })
    }),
    entry("geo_intersection_line_with_polygon", "jj", DYNAMIC, |arguments| {
        let lines = ShapeColumn::read(arguments, 0, LineShapes::read)?;
        let polygons = ShapeColumn::read(arguments, 1, PolygonShapes::read)?;
        arguments.make_dynamics(|row| {
            let shared = lines
                .map_row(row, |lines| polygons.map_row(row, |polygons| intersection_with_polygons(lines, polygons)));
            Ok(shared.flatten().unwrap_or(Value::Null))
        })
    }),
    entry("geo_intersection_2polygons", "jj", DYNAMIC, |arguments| {
        let one = ShapeColumn::read(arguments, 0, PolygonShapes::read)?;
        let other = ShapeColumn::read(arguments, 1, PolygonShapes::read)?;
        arguments.make_dynamics(|row| {
            let shared = one.map_row(row, |one| other.map_row(row, |other| intersection_of_polygons(one, other)));
            match shared.flatten() {
                Some(Some(shape)) => Ok(shape),
                Some(None) => Err(not_combined(arguments)),
                None => Ok(Value::Null),
            }
        })
    }),
    entry("geo_union_polygons_array", "j", DYNAMIC, |arguments| {
        let arrays = arguments.dynamics(0)?;
        arguments.make_dynamics(|row| match polygons_of_array(&arrays.get(row)).map(union_of_polygons) {
            Some(Some(union)) => Ok(shape_of(&union)),
            Some(None) => Err(not_combined(arguments)),
            None => Ok(Value::Null),
        })
    }),
    entry("geo_union_lines_array", "j", DYNAMIC, |arguments| {
        let arrays = arguments.dynamics(0)?;
        arguments.make_dynamics(|row| {
            let array = arrays.get(row);
            let lines = array.as_array().filter(|lines| !lines.is_empty());
            let lines = lines.and_then(|lines| lines.iter().map(LineShapes::read).collect::<Option<Vec<_>>>());
            Ok(lines.map_or(Value::Null, |lines| union_of_lines(&lines)))
        })
    }),
    entry("geo_line_densify", "j?nb", DYNAMIC, |arguments| {
        let lines = ShapeColumn::read(arguments, 0, LineShapes::read)?;
        densify(arguments, |row, tolerance| lines.map_row(row, |lines| dense_lines(lines, tolerance))?)
    }),
    entry("geo_polygon_densify", "j?nb", DYNAMIC, |arguments| {
        let polygons = ShapeColumn::read(arguments, 0, PolygonShapes::read)?;
        densify(arguments, |row, tolerance| polygons.map_row(row, |polygons| dense_polygons(polygons, tolerance))?)
    }),
    entry("geo_point_buffer", "nnn?n", DYNAMIC, |arguments| {
        let points = PointArguments::read(arguments, 0)?;
        buffers(arguments, 2, |row, size| {
            Ok(points.get(row).map(|center| Some(PolygonShapes::of_rings(vec![vec![size.circle(center)]]))))
        })
    }),
    entry("geo_line_buffer", "jn?n", DYNAMIC, |arguments| {
        let lines = ShapeColumn::read(arguments, 0, LineShapes::read)?;
        buffers(arguments, 1, |row, size| lines.map_row(row, |lines| around_lines(lines, size)).transpose())
    }),
    entry("geo_polygon_buffer", "jn?n", DYNAMIC, |arguments| {
        let polygons = ShapeColumn::read(arguments, 0, PolygonShapes::read)?;
        buffers(arguments, 1, |row, size| polygons.map_row(row, |polygons| around_polygons(polygons, size)).transpose())
    }),
    entry("geo_line_simplify", "j?n", DYNAMIC, |arguments| {
        let lines = ShapeColumn::read(arguments, 0, LineShapes::read)?;
        simplify(arguments, |row, tolerance| lines.map_row(row, |lines| simplified_lines(lines, tolerance))?)
    }),
    entry("geo_polygon_simplify", "j?n", DYNAMIC, |arguments| {
        let polygons = ShapeColumn::read(arguments, 0, PolygonShapes::read)?;
        simplify(arguments, |row, tolerance| {
            polygons
                .map_row(row, |polygons| simplified_polygons(std::slice::from_ref(polygons), tolerance))?
                .as_ref()
                .map(shape_of)
        })
    }),
    entry("geo_simplify_polygons_array", "j?n", DYNAMIC, |arguments| {
        let arrays = arguments.dynamics(0)?;
        simplify(arguments, |row, tolerance| {
            simplified_polygons(&polygons_of_array(&arrays.get(row))?, tolerance).as_ref().map(shape_of)
        })
    }),
];

/// Why shapes are not combined: the query is to end, or what [`NOT_COMBINED`] says.
fn not_combined(arguments: &FunctionArguments) -> DataFusionError {
    check_interrupt().err().unwrap_or_else(|| arguments.error(NOT_COMBINED))
}

/// Returns the polygons of an array that holds nothing else.
fn polygons_of_array(array: &Value) -> Option<Vec<PolygonShapes>> {
    let polygons = array.as_array().filter(|polygons| !polygons.is_empty())?;
    polygons.iter().map(PolygonShapes::read).collect()
}

/// Returns the angle from the first edge to the second at the point between them, clockwise.
fn angle(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let points = [0, 2, 4].map(|first| PointArguments::read(arguments, first));
    let [first, second, third] = points;
    let (first, second, third) = (first?, second?, third?);
    arguments.make_reals(|row| {
        let at = second.get(row)?;
        let turned = azimuth(at, third.get(row)?)? - azimuth(at, first.get(row)?)?;
        Some(if turned < 0.0 { turned + 2.0 * PI } else { turned })
    })
}

fn nearest(point: Vector, edges: impl Iterator<Item = ShapeEdge>) -> Option<Vector> {
    let near = edges.map(|edge| nearest_on_edge(point, edge));
    near.min_by(|one, other| point.angle(*one).total_cmp(&point.angle(*other)))
}

/// Returns the only line of a shape.
fn only_line(lines: &LineShapes) -> Option<&[Vector]> {
    match lines.lines() {
        [line] => Some(line),
        _ => None,
    }
}

fn edges_of(line: &[Vector]) -> impl Iterator<Item = ShapeEdge> + '_ {
    line.iter().zip(line.iter().skip(1)).map(|(from, to)| [*from, *to])
}

fn interpolate(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let lines = ShapeColumn::read(arguments, 0, LineShapes::read)?;
    let fractions = arguments.reals(1)?;
    let at = |line: &[Vector], fraction: f64| {
        let whole: f64 = edges_of(line).map(|[from, to]| from.angle(to)).sum();
        let mut left = whole * fraction;
        for [from, to] in edges_of(line) {
            let length = from.angle(to);
            if left < length {
                return Some(from.between(to, left / length));
            }
            left -= length;
        }
        line.last().copied()
    };
    arguments.make_dynamics(|row| {
        let fraction = fractions.get(row).filter(|fraction| (0.0..=1.0).contains(fraction));
        let point = fraction.and_then(|fraction| lines.map_row(row, |lines| at(only_line(lines)?, fraction))?);
        Ok(point.map_or(Value::Null, point_of))
    })
}

fn locate(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let lines = ShapeColumn::read(arguments, 0, LineShapes::read)?;
    let points = PointArguments::read(arguments, 1)?;
    if arguments.len() > 3 {
        let of_spheroid = arguments.bools(3)?;
        if (0..arguments.rows).any(|row| of_spheroid.get(row) == Some(true)) {
            return Err(arguments.error("distances on a spheroid are not supported here"));
        }
    }
    let fraction = |line: &[Vector], point: Vector| {
        let (mut before, mut best, mut at) = (0.0, f64::INFINITY, 0.0);
        for [from, to] in edges_of(line) {
            let near = nearest_on_edge(point, [from, to]);
            if point.angle(near) < best {
                best = point.angle(near);
                at = before + from.angle(near);
            }
            before += from.angle(to);
        }
        (at / before).clamp(0.0, 1.0)
    };
    arguments.make_reals(|row| {
        let point = points.get(row)?;
        lines.map_row(row, |lines| Some(fraction(only_line(lines)?, point)))?
    })
}

fn densify(arguments: &FunctionArguments, dense: impl Fn(usize, f64) -> Option<Value>) -> Result<ArrayRef> {
    let tolerances = if arguments.len() > 1 { Some(arguments.reals(1)?) } else { None };
    arguments.make_dynamics(|row| {
        let meters = tolerances.as_ref().map_or(Some(DEFAULT_TOLERANCE_METERS), |tolerances| tolerances.get(row));
        let meters = meters.filter(|meters| (0.1..=10_000.0).contains(meters));
        Ok(meters.and_then(|meters| dense(row, meters / EARTH_RADIUS_METERS)).unwrap_or(Value::Null))
    })
}

/// Returns buffers of the radius in the argument `first`, and the tolerance behind it.
fn buffers(
    arguments: &FunctionArguments,
    first: usize,
    around: impl Fn(usize, &BufferSize) -> Result<Option<Option<PolygonShapes>>>,
) -> Result<ArrayRef> {
    let radii = arguments.reals(first)?;
    let tolerances = if arguments.len() > first + 1 { Some(arguments.reals(first + 1)?) } else { None };
    arguments.make_dynamics(|row| {
        let tolerance = tolerances.as_ref().map_or(Some(DEFAULT_TOLERANCE_METERS), |tolerances| tolerances.get(row));
        let size = radii.get(row).zip(tolerance).and_then(|(radius, tolerance)| BufferSize::of(radius, tolerance));
        let Some(size) = size else { return Ok(Value::Null) };
        match around(row, &size)? {
            Some(Some(buffer)) => Ok(shape_of(&buffer)),
            Some(None) => Err(not_combined(arguments)),
            None => Ok(Value::Null),
        }
    })
}

/// Returns shapes with fewer corners, by the tolerance in the second argument.
fn simplify(arguments: &FunctionArguments, simplified: impl Fn(usize, f64) -> Option<Value>) -> Result<ArrayRef> {
    let tolerances = if arguments.len() > 1 { Some(arguments.reals(1)?) } else { None };
    arguments.make_dynamics(|row| {
        check_interrupt()?;
        let meters = tolerances.as_ref().map_or(Some(DEFAULT_TOLERANCE_METERS), |tolerances| tolerances.get(row));
        let meters = meters.filter(|meters| (0.0..=MAX_SIMPLIFIED_METERS).contains(meters));
        Ok(meters.and_then(|meters| simplified(row, meters / EARTH_RADIUS_METERS)).unwrap_or(Value::Null))
    })
}
