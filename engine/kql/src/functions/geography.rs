//! Functions of points, lines and polygons on Earth, which Kusto takes for a sphere: lengths are in meters along great
//! circles. What is not a point or a valid shape gives null.

mod buffer;
mod cells;
mod cover;
mod crossings;
mod dense;
pub(super) mod h3_cover;
mod map_rings;
mod nodes;
mod overlay;
pub(super) mod places;
pub(super) mod s2;
pub(super) mod set_order;
mod shapes;
mod simplify;
mod sphere;
mod spheroid;
mod wkt;

use std::borrow::Cow;

use arrow::array::{ArrayRef, Float64Array};
use datafusion::error::Result;
use serde_json::{Value, json};

use super::arguments::{DynamicColumn, FunctionArguments, TypedColumn};
use super::signature::{FunctionEntry, Returns, entry};
use crate::types::KqlType;
use overlay::union_of_polygons;
use shapes::{LineShapes, PolygonShapes, square_meters};
use sphere::{EARTH_RADIUS_METERS, Vector};

const REAL: Returns = Returns::Is(KqlType::Real);
const BOOL: Returns = Returns::Is(KqlType::Bool);
const DYNAMIC: Returns = Returns::Is(KqlType::Dynamic);

pub(super) const FUNCTIONS: &[FunctionEntry] = &[
    entry("geo_distance_2points", "nnnn?b", REAL, distance_of_points),
    entry("geo_azimuth", "nnnn", REAL, azimuth),
    entry("geo_point_in_circle", "nnnnn", BOOL, point_in_circle),
    entry("geo_point_in_polygon", "nnj", BOOL, point_in_polygon),
    entry("geo_distance_point_to_line", "nnj", REAL, |arguments| {
        let lines = ShapeColumn::read(arguments, 2, LineShapes::read)?;
        distance(arguments, |row, point| lines.map_row(row, |lines| lines.angle_to(point)))
    }),
    entry("geo_distance_point_to_polygon", "nnj", REAL, |arguments| {
        let polygons = ShapeColumn::read(arguments, 2, PolygonShapes::read)?;
        distance(arguments, |row, point| polygons.map_row(row, |polygons| polygons.angle_to(point)))
    }),
    entry("geo_line_length", "j", REAL, |arguments| {
        let lines = ShapeColumn::read(arguments, 0, LineShapes::read)?;
        arguments.make_reals(|row| Some(lines.map_row(row, LineShapes::length)? * EARTH_RADIUS_METERS))
    }),
    entry("geo_line_centroid", "j", DYNAMIC, |arguments| {
        let lines = ShapeColumn::read(arguments, 0, LineShapes::read)?;
        arguments.make_dynamics(|row| Ok(lines.map_row(row, LineShapes::centroid).map_or(Value::Null, point_of)))
    }),
    entry("geo_polygon_area", "j", REAL, |arguments| {
        let area = |polygons: &PolygonShapes| square_meters(polygons.area());
        sum_over_polygons(arguments, area)
    }),
    entry("geo_polygon_perimeter", "j", REAL, |arguments| {
        let perimeter = |polygons: &PolygonShapes| polygons.perimeter() * EARTH_RADIUS_METERS;
        sum_over_polygons(arguments, perimeter)
    }),
    entry("geo_polygon_centroid", "j", DYNAMIC, polygon_centroid),
    entry("geo_from_wkt", "w", DYNAMIC, from_wkt),
];

/// Points in two arguments, longitude first.
pub(super) struct PointArguments {
    longitudes: TypedColumn<Float64Array>,
    latitudes: TypedColumn<Float64Array>,
}

impl PointArguments {
    pub(super) fn read(arguments: &FunctionArguments, first: usize) -> Result<Self> {
        Ok(Self { longitudes: arguments.reals(first)?, latitudes: arguments.reals(first + 1)? })
    }

    /// Returns longitude and latitude in degrees, if they are in range.
    pub(super) fn degrees(&self, row: usize) -> Option<(f64, f64)> {
        let (longitude, latitude) = (self.longitudes.get(row)?, self.latitudes.get(row)?);
        let is_there = (-180.0..=180.0).contains(&longitude) && (-90.0..=90.0).contains(&latitude);
        is_there.then_some((longitude, latitude))
    }

    fn get(&self, row: usize) -> Option<Vector> {
        let (longitude, latitude) = self.degrees(row)?;
        Vector::from_degrees(longitude, latitude)
    }
}

/// A column of shapes. A constant one is read once.
struct ShapeColumn<S> {
    values: DynamicColumn,
    read: fn(&Value) -> Option<S>,
    literal: Option<Option<S>>,
}

impl<S> ShapeColumn<S> {
    fn read(arguments: &FunctionArguments, index: usize, read: fn(&Value) -> Option<S>) -> Result<Self> {
        let values = arguments.dynamics(index)?;
        let literal = arguments.is_constant(index).then(|| read(&values.get(0)));
        Ok(Self { values, read, literal })
    }

    fn map_row<T>(&self, row: usize, compute: impl FnOnce(&S) -> T) -> Option<T> {
        match &self.literal {
            Some(shape) => shape.as_ref().map(compute),
            None => (self.read)(&self.values.get(row)).as_ref().map(compute),
        }
    }
}

/// Returns a GeoJSON point.
pub(super) fn point(longitude: f64, latitude: f64) -> Value {
    json!({"type": "Point", "coordinates": [longitude, latitude]})
}

/// Returns the point in a direction; null for the zero vector.
fn point_of(direction: Vector) -> Value {
    if direction == Vector::ZERO {
        return Value::Null;
    }
    let [longitude, latitude] = direction.degrees();
    point(longitude, latitude)
}

/// Returns a GeoJSON polygon of one ring, which this closes.
pub(super) fn polygon(ring: impl IntoIterator<Item = [f64; 2]>) -> Value {
    let mut ring: Vec<[f64; 2]> = ring.into_iter().collect();
    ring.extend(ring.first().copied());
    json!({"type": "Polygon", "coordinates": [ring]})
}

fn distance_of_points(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let to = PointArguments::read(arguments, 2)?;
    if arguments.len() > 4 {
        let (from, on_spheroid) = (PointArguments::read(arguments, 0)?, arguments.bools(4)?);
        return arguments.make_reals(|row| match on_spheroid.get(row) {
            Some(true) => spheroid::distance(from.degrees(row)?, to.degrees(row)?),
            _ => Some(from.get(row)?.angle(to.get(row)?) * EARTH_RADIUS_METERS),
        });
    }
    distance(arguments, |row, point| Some(point.angle(to.get(row)?)))
}

/// Converts angles from the points in the first two arguments to meters.
fn distance(arguments: &FunctionArguments, angle: impl Fn(usize, Vector) -> Option<f64>) -> Result<ArrayRef> {
    let points = PointArguments::read(arguments, 0)?;
    arguments.make_reals(|row| Some(angle(row, points.get(row)?)? * EARTH_RADIUS_METERS))
}

fn azimuth(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let (from, to) = (PointArguments::read(arguments, 0)?, PointArguments::read(arguments, 2)?);
    arguments.make_reals(|row| sphere::azimuth(from.get(row)?, to.get(row)?))
}

fn point_in_circle(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let (points, centers, radii) =
        (PointArguments::read(arguments, 0)?, PointArguments::read(arguments, 2)?, arguments.reals(4)?);
    arguments.make_bools(|row| {
        let radius = radii.get(row).filter(|radius| *radius >= 0.0 && radius.is_finite())?;
        Some(points.get(row)?.angle(centers.get(row)?) * EARTH_RADIUS_METERS <= radius)
    })
}

fn point_in_polygon(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let points = PointArguments::read(arguments, 0)?;
    let polygons = ShapeColumn::read(arguments, 2, PolygonShapes::read)?;
    arguments.make_bools(|row| {
        let point = points.get(row)?;
        polygons.map_row(row, |polygons| polygons.contains(point))
    })
}

const OVERLAP: &str =
    "the parts of a MultiPolygon overlap, and are too large or too near to each other for their union";

/// Measures polygons without what they share: `None` where their union is not known.
fn of_union<T>(polygons: &PolygonShapes, measure: impl Fn(&PolygonShapes) -> T) -> Option<T> {
    if !polygons.overlap() {
        return Some(measure(polygons));
    }
    union_of_polygons(polygons.split()).as_ref().map(measure)
}

fn sum_over_polygons(arguments: &FunctionArguments, measure: fn(&PolygonShapes) -> f64) -> Result<ArrayRef> {
    let polygons = ShapeColumn::read(arguments, 0, PolygonShapes::read)?;
    let mut overlap = false;
    let measured = arguments.make_reals(|row| {
        let measured = polygons.map_row(row, |polygons| of_union(polygons, measure));
        overlap |= measured == Some(None);
        measured.flatten()
    })?;
    if overlap { Err(arguments.error(OVERLAP)) } else { Ok(measured) }
}

fn polygon_centroid(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let polygons = ShapeColumn::read(arguments, 0, PolygonShapes::read)?;
    arguments.make_dynamics(|row| match polygons.map_row(row, |polygons| of_union(polygons, PolygonShapes::centroid)) {
        Some(Some(centroid)) => Ok(point_of(centroid)),
        Some(None) => Err(arguments.error(OVERLAP)),
        None => Ok(Value::Null),
    })
}

fn from_wkt(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let strings = arguments.strings(0)?;
    let literal = strings.constant.then(|| wkt::read(strings.get(0)));
    arguments.make_dynamics(|row| {
        let shape = match &literal {
            Some(shape) => Cow::Borrowed(shape),
            None => Cow::Owned(wkt::read(strings.get(row))),
        };
        Ok(shape.into_owned().unwrap_or(Value::Null))
    })
}
