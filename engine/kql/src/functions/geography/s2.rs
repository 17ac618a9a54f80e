//! Functions of S2 cells, which are hexadecimal strings. The result for what is not a cell is null or the empty string.

use arrow::array::ArrayRef;
use datafusion::error::Result;
use serde_json::Value;

use super::cells::{MAX_LEVEL, S2Cell};
use super::cover::covering;
use super::set_order::{BUCKETS_FOR_EIGHT, in_set_order};
use super::shapes::{LineShapes, PolygonShapes};
use super::sphere::{EARTH_RADIUS_METERS, Vector};
use super::{DYNAMIC, PointArguments, ShapeColumn, point_of, polygon};
use crate::functions::arguments::FunctionArguments;
use crate::functions::signature::{FunctionEntry, Returns, entry};
use crate::types::KqlType;

const STRING: Returns = Returns::Is(KqlType::String);
const DEFAULT_LEVEL: i64 = 11;

pub(in crate::functions) const FUNCTIONS: &[FunctionEntry] = &[
    entry("geo_point_to_s2cell", "nn?n", STRING, to_cell),
    entry("geo_s2cell_to_central_point", "w", DYNAMIC, |arguments| {
        map_cells(arguments, |cell| point_of(cell.center()))
    }),
    entry("geo_s2cell_to_polygon", "w", DYNAMIC, |arguments| {
        map_cells(arguments, |cell| polygon(cell.corners().map(Vector::degrees)))
    }),
    entry("geo_s2cell_neighbors", "w", DYNAMIC, |arguments| {
        map_cells(arguments, |cell| {
            let names = cell.neighbors().into_iter().map(S2Cell::token);
            in_set_order(names, BUCKETS_FOR_EIGHT).into_iter().map(Value::String).collect()
        })
    }),
    entry("geo_line_to_s2cells", "j?nn", DYNAMIC, |arguments| {
        let lines = ShapeColumn::read(arguments, 0, LineShapes::read)?;
        cover(arguments, |row, level, radius| {
            lines.map_row(row, |lines| covering(&lines.edges().collect::<Vec<_>>(), &|_| false, level, radius))?
        })
    }),
    entry("geo_polygon_to_s2cells", "j?nn", DYNAMIC, |arguments| {
        let polygons = ShapeColumn::read(arguments, 0, PolygonShapes::read)?;
        cover(arguments, |row, level, radius| {
            let cells = |polygons: &PolygonShapes| {
                let edges: Vec<_> = polygons.edges().collect();
                covering(&edges, &|point| polygons.contains(point), level, radius)
            };
            polygons.map_row(row, cells)?
        })
    }),
];

fn tokens(cells: Vec<S2Cell>) -> Value {
    Value::Array(cells.into_iter().map(|cell| Value::String(cell.token())).collect())
}

fn level(number: Option<i64>) -> Option<u32> {
    number.and_then(|number| u32::try_from(number).ok()).filter(|level| *level <= MAX_LEVEL)
}

fn to_cell(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let points = PointArguments::read(arguments, 0)?;
    let levels = if arguments.len() > 2 { Some(arguments.longs(2)?) } else { None };
    arguments.make_strings(|row, text| {
        let wanted = level(levels.as_ref().map_or(Some(DEFAULT_LEVEL), |levels| levels.get(row)));
        if let Some((point, level)) = points.get(row).zip(wanted) {
            text.push_str(&S2Cell::around(point, level).token());
        }
        Ok(())
    })
}

fn map_cells(arguments: &FunctionArguments, value: fn(S2Cell) -> Value) -> Result<ArrayRef> {
    let strings = arguments.strings(0)?;
    arguments.make_dynamics(|row| Ok(S2Cell::parse(strings.get(row)).map_or(Value::Null, value)))
}

/// Returns coverings by cells of the level and radius in the second and third argument.
fn cover(arguments: &FunctionArguments, cells: impl Fn(usize, u32, f64) -> Option<Vec<S2Cell>>) -> Result<ArrayRef> {
    let levels = if arguments.len() > 1 { Some(arguments.longs(1)?) } else { None };
    let radii = if arguments.len() > 2 { Some(arguments.reals(2)?) } else { None };
    arguments.make_dynamics(|row| {
        let level = level(levels.as_ref().map_or(Some(DEFAULT_LEVEL), |levels| levels.get(row)));
        let radius = radii.as_ref().map_or(Some(0.0), |radii| radii.get(row));
        let radius = radius.filter(|radius| *radius >= 0.0 && radius.is_finite());
        let found = level.zip(radius).and_then(|(level, radius)| cells(row, level, radius / EARTH_RADIUS_METERS));
        Ok(found.map_or(Value::Null, tokens))
    })
}
