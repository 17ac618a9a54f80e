//! The H3 cells whose centers lie in a polygon, or within a radius of it.

use std::collections::BTreeSet;

use arrow::array::ArrayRef;
use datafusion::error::Result;
use h3o::{CellIndex, LatLng, Resolution};
use serde_json::Value;

use super::map_rings::{MAX_PLACES, MapRing, cells_within};
use super::set_order::{BUCKETS_OF_EMPTY, in_set_order};
use super::shapes::PolygonShapes;
use super::sphere::{EARTH_RADIUS_METERS, Vector};
use super::{DYNAMIC, ShapeColumn};
use crate::functions::arguments::FunctionArguments;
use crate::functions::signature::{FunctionEntry, entry};
use crate::interrupt::{LoopTurns, check_interrupt};

const DEFAULT_RESOLUTION: i64 = 6;
/// The most cells of a polygon, as Kusto documents it.
const MAX_CELLS: usize = 61_680;

pub(in crate::functions) const FUNCTIONS: &[FunctionEntry] =
    &[entry("geo_polygon_to_h3cells", "j?nn", DYNAMIC, cells_of)];

fn cells_of(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let polygons = ShapeColumn::read(arguments, 0, PolygonShapes::read)?;
    let resolutions = if arguments.len() > 1 { Some(arguments.longs(1)?) } else { None };
    let radii = if arguments.len() > 2 { Some(arguments.reals(2)?) } else { None };
    arguments.make_dynamics(|row| {
        let number = resolutions.as_ref().map_or(Some(DEFAULT_RESOLUTION), |resolutions| resolutions.get(row));
        let resolution = number.and_then(|number| Resolution::try_from(u8::try_from(number).ok()?).ok());
        let radius = radii.as_ref().map_or(Some(0.0), |radii| radii.get(row));
        let radius = radius.filter(|radius| *radius >= 0.0 && radius.is_finite());
        let Some((resolution, radius)) = resolution.zip(radius) else { return Ok(Value::Null) };
        let of = |polygons: &PolygonShapes| match radius > 0.0 {
            true => cells_near(polygons, resolution, radius / EARTH_RADIUS_METERS),
            false => cells_in(polygons, resolution),
        };
        let found = polygons.map_row(row, of).transpose()?.flatten();
        Ok(found.map_or(Value::Null, |names| names.into_iter().map(Value::String).collect()))
    })
}

fn name(cell: CellIndex) -> String {
    format!("{:x}", u64::from(cell))
}

/// Returns the cells in polygons whose sides are straight on the map; `None` where there are too many. Errors: the
/// query is to end.
fn cells_in(polygons: &PolygonShapes, resolution: Resolution) -> Result<Option<Vec<String>>> {
    let mut names = Vec::new();
    for rings in polygons.rings() {
        let rings: Vec<MapRing> = rings.into_iter().map(MapRing::of).collect();
        let Some(cells) = cells_within(&rings, resolution, MAX_CELLS)? else { return Ok(None) };
        names.extend(cells.into_iter().map(name));
        if names.len() > MAX_CELLS {
            return Ok(None);
        }
    }
    Ok(Some(in_set_order(names, BUCKETS_OF_EMPTY)))
}

/// Returns the cells within a radius of polygons, in the order of their names: from those along the sides inwards.
/// `None` where there would be too many. Errors: the query is to end.
fn cells_near(polygons: &PolygonShapes, resolution: Resolution, radius: f64) -> Result<Option<Vec<String>>> {
    let mut turns = LoopTurns::default();
    // Less than the width of a cell that is smaller than most.
    let step = 0.5 * resolution.edge_length_rads();
    let places: f64 = polygons.edges().map(|[from, to]| (from.angle(to) / step).ceil()).sum();
    if places > MAX_PLACES {
        return Ok(None);
    }
    let is_within = |cell: CellIndex| {
        let center = LatLng::from(cell);
        let center = Vector::from_degrees(center.lng(), center.lat());
        center.is_some_and(|center| polygons.angle_to(center) <= radius)
    };
    let (mut seen, mut found, mut next) = (BTreeSet::new(), BTreeSet::new(), Vec::new());
    for [from, to] in polygons.edges() {
        let count = (from.angle(to) / step).ceil().max(1.0) as usize;
        for place in 0..count {
            turns.count()?;
            let [longitude, latitude] = from.between(to, place as f64 / count as f64).degrees();
            let Ok(place) = LatLng::new(latitude, longitude) else { continue };
            next.push(place.to_cell(resolution));
        }
    }
    // The cells along the sides are passed through, whether their centers are within or not.
    let sides: BTreeSet<CellIndex> = next.iter().copied().collect();
    while let Some(cell) = next.pop() {
        // Each is compared with all sides.
        check_interrupt()?;
        if !seen.insert(cell) {
            continue;
        }
        let is_found = is_within(cell);
        if is_found {
            found.insert(cell);
            if found.len() > MAX_CELLS {
                return Ok(None);
            }
        }
        if is_found || sides.contains(&cell) {
            next.extend(cell.grid_disk::<Vec<CellIndex>>(1).into_iter().filter(|other| !seen.contains(other)));
        }
    }
    Ok(Some(found.into_iter().map(name).collect()))
}
