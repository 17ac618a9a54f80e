//! Functions of H3 cells, which are hexadecimal strings. The result for what is not a cell is null or the empty string.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int32Array};
use datafusion::error::Result;
use h3o::{CellIndex, LatLng, Resolution};
use serde_json::Value;

use super::arguments::FunctionArguments;
use super::geography::set_order::{BUCKETS_FOR_SIX, in_set_order};
use super::geography::{PointArguments, point, polygon};
use super::signature::{FunctionEntry, Returns, entry};
use crate::types::KqlType;

const STRING: Returns = Returns::Is(KqlType::String);
const DYNAMIC: Returns = Returns::Is(KqlType::Dynamic);
const INT: Returns = Returns::Is(KqlType::Int);

const DEFAULT_RESOLUTION: i64 = 6;
/// The most levels between a cell and its children; Kusto returns none further down because there would be too many.
const MAX_LEVELS_DOWN: u8 = 5;
const MAX_DISTANCE: u32 = 142;

pub(super) const FUNCTIONS: &[FunctionEntry] = &[
    entry("geo_point_to_h3cell", "nn?n", STRING, to_cell),
    entry("geo_h3cell_level", "w", INT, level),
    entry("geo_h3cell_parent", "w?n", STRING, parent),
    entry("geo_h3cell_children", "w?n", DYNAMIC, children),
    entry("geo_h3cell_neighbors", "w", DYNAMIC, |arguments| {
        map_cells(arguments, |cell| {
            let near = cell.grid_disk::<Vec<CellIndex>>(1).into_iter().filter(|near| *near != cell);
            let names = near.map(|near| format!("{:x}", u64::from(near)));
            in_set_order(names, BUCKETS_FOR_SIX).into_iter().map(Value::String).collect()
        })
    }),
    entry("geo_h3cell_rings", "wn", DYNAMIC, rings),
    entry("geo_h3cell_to_central_point", "w", DYNAMIC, |arguments| {
        map_cells(arguments, |cell| {
            let center = LatLng::from(cell);
            point(center.lng(), center.lat())
        })
    }),
    entry("geo_h3cell_to_polygon", "w", DYNAMIC, |arguments| {
        map_cells(arguments, |cell| polygon(cell.boundary().iter().map(|corner| [corner.lng(), corner.lat()])))
    }),
];

fn parse(text: &str) -> Option<CellIndex> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let bits = u64::from_str_radix(text, 16).ok().filter(|_| is_plain)?;
    CellIndex::try_from(bits).ok()
}

fn cell_name(cell: CellIndex) -> Value {
    Value::String(format!("{:x}", u64::from(cell)))
}

fn map_cells(arguments: &FunctionArguments, value: fn(CellIndex) -> Value) -> Result<ArrayRef> {
    let strings = arguments.strings(0)?;
    arguments.make_dynamics(|row| Ok(parse(strings.get(row)).map_or(Value::Null, value)))
}

fn resolution(number: i64) -> Option<Resolution> {
    Resolution::try_from(u8::try_from(number).ok()?).ok()
}

/// Returns the resolution of the second argument, or else the cell's own plus `levels`.
fn wanted(arguments: &FunctionArguments, levels: i64) -> Result<impl Fn(usize, CellIndex) -> Option<Resolution>> {
    let given = if arguments.len() > 1 { Some(arguments.longs(1)?) } else { None };
    Ok(move |row: usize, cell: CellIndex| match &given {
        Some(given) => given.get(row).and_then(resolution),
        None => resolution(i64::from(u8::from(cell.resolution())) + levels),
    })
}

fn to_cell(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let points = PointArguments::read(arguments, 0)?;
    let given = if arguments.len() > 2 { Some(arguments.longs(2)?) } else { None };
    arguments.make_strings(|row, text| {
        let number = given.as_ref().map_or(Some(DEFAULT_RESOLUTION), |given| given.get(row));
        let point = points.degrees(row).and_then(|(longitude, latitude)| LatLng::new(latitude, longitude).ok());
        if let Some((point, resolution)) = point.zip(number.and_then(resolution)) {
            text.push_str(&format!("{:x}", u64::from(point.to_cell(resolution))));
        }
        Ok(())
    })
}

fn level(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let strings = arguments.strings(0)?;
    let level = |row: usize| parse(strings.get(row)).map(|cell| i32::from(u8::from(cell.resolution())));
    Ok(Arc::new((0..arguments.rows).map(level).collect::<Int32Array>()))
}

fn parent(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let strings = arguments.strings(0)?;
    let wanted = wanted(arguments, -1)?;
    arguments.make_strings(|row, text| {
        let cell = parse(strings.get(row));
        let parent = cell.and_then(|cell| cell.parent(wanted(row, cell)?).filter(|parent| *parent != cell));
        if let Some(parent) = parent {
            text.push_str(&format!("{:x}", u64::from(parent)));
        }
        Ok(())
    })
}

fn children(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let strings = arguments.strings(0)?;
    let wanted = wanted(arguments, 1)?;
    arguments.make_dynamics(|row| {
        let children = parse(strings.get(row)).and_then(|cell| {
            let (own, wanted) = (cell.resolution(), wanted(row, cell)?);
            let levels = u8::from(wanted).checked_sub(u8::from(own))?;
            (1..=MAX_LEVELS_DOWN).contains(&levels).then(|| cell.children(wanted).map(cell_name).collect())
        });
        Ok(children.unwrap_or(Value::Null))
    })
}

fn rings(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let (strings, distances) = (arguments.strings(0)?, arguments.longs(1)?);
    arguments.make_dynamics(|row| {
        let most = distances.get(row).and_then(|most| u32::try_from(most).ok()).filter(|most| *most <= MAX_DISTANCE);
        let Some((cell, most)) = parse(strings.get(row)).zip(most) else { return Ok(Value::Null) };
        let mut rings: Vec<Vec<Value>> = Vec::new();
        for (cell, distance) in cell.grid_disk_distances::<Vec<(CellIndex, u32)>>(most) {
            let distance = usize::try_from(distance).unwrap_or(usize::MAX);
            if distance >= rings.len() {
                rings.resize(distance.saturating_add(1), Vec::new());
            }
            if let Some(ring) = rings.get_mut(distance) {
                ring.push(cell_name(cell));
            }
        }
        Ok(rings.into())
    })
}
