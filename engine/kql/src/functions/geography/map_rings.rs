//! The H3 cells whose centers lie in a polygon, found as H3 itself finds them (`polygonToCells`): its sides are
//! straight on a map of longitudes and latitudes, and the cells are in the order of its table of open addressing.

use std::collections::{BTreeMap, HashSet};
use std::f64::consts::PI;

use datafusion::error::Result;
use h3o::{CellIndex, LatLng, Resolution};

use super::sphere::Vector;
use crate::interrupt::{LoopTurns, check_interrupt};

/// The most places along the sides of a polygon at which cells are looked for.
pub(super) const MAX_PLACES: f64 = 1e6;
/// The places of H3's table beyond those that it expects to need.
const SPARE_PLACES: u64 = 12;

/// A place: latitude and longitude in radians.
type MapPlace = [f64; 2];

/// A ring and what is around it.
pub(super) struct MapRing {
    corners: Vec<MapPlace>,
    south: f64,
    north: f64,
    west: f64,
    east: f64,
}

impl MapRing {
    /// Makes a ring of its corners, without the repeated first one.
    pub(super) fn of(ring: &[Vector]) -> Self {
        let place = |corner: &Vector| {
            let [longitude, latitude] = corner.degrees();
            [latitude.to_radians(), longitude.to_radians()]
        };
        let corners: Vec<MapPlace> = ring.iter().map(place).collect();
        let least = |index: usize| corners.iter().map(|corner| corner[index]).fold(f64::INFINITY, f64::min);
        let most = |index: usize| corners.iter().map(|corner| corner[index]).fold(f64::NEG_INFINITY, f64::max);
        let mut made = Self { south: least(0), north: most(0), west: least(1), east: most(1), corners: Vec::new() };
        let crosses = |(from, to): (&MapPlace, &MapPlace)| (from[1] - to[1]).abs() > PI;
        if corners.iter().zip(corners.iter().cycle().skip(1)).any(crosses) {
            let longitudes = || corners.iter().map(|corner| corner[1]);
            made.east = longitudes().filter(|longitude| *longitude < 0.0).fold(f64::NEG_INFINITY, f64::max);
            made.west = longitudes().filter(|longitude| *longitude > 0.0).fold(f64::INFINITY, f64::min);
        }
        made.corners = corners;
        made
    }

    /// Whether it crosses the antimeridian.
    fn is_around(&self) -> bool {
        self.east < self.west
    }

    fn sides(&self) -> impl Iterator<Item = [MapPlace; 2]> + '_ {
        self.corners.iter().zip(self.corners.iter().cycle().skip(1)).map(|(from, to)| [*from, *to])
    }

    fn contains(&self, [mut latitude, longitude]: MapPlace) -> bool {
        let is_around = self.is_around();
        let is_between = match is_around {
            true => longitude >= self.west || longitude <= self.east,
            false => longitude >= self.west && longitude <= self.east,
        };
        if !is_between || latitude < self.south || latitude > self.north {
            return false;
        }
        let eastern = |longitude: f64| if is_around && longitude < 0.0 { longitude + 2.0 * PI } else { longitude };
        let mut longitude = eastern(longitude);
        let mut is_inside = false;
        for [from, to] in self.sides() {
            let [low, high] = if from[0] > to[0] { [to, from] } else { [from, to] };
            // A corner counts as south of the point, and a point on a meridian of a corner as west of it.
            if latitude == low[0] || latitude == high[0] {
                latitude += f64::EPSILON;
            }
            if latitude < low[0] || latitude > high[0] {
                continue;
            }
            let (start, end) = (eastern(low[1]), eastern(high[1]));
            if longitude == start || longitude == end {
                longitude -= f64::EPSILON;
            }
            let part = (latitude - low[0]) / (high[0] - low[0]);
            is_inside ^= eastern(start + (end - start) * part) > longitude;
        }
        is_inside
    }
}

fn kilometers([from, to]: [MapPlace; 2]) -> Option<f64> {
    let [from, to] = [from, to].map(|[latitude, longitude]| LatLng::from_radians(latitude, longitude).ok());
    Some(from?.distance_km(to?))
}

/// Returns how far the corners of a cell of five sides, which is the smallest, are from its center.
fn cell_radius(resolution: Resolution) -> Option<f64> {
    let pentagon = resolution.pentagons().next()?;
    Some(LatLng::from(pentagon).distance_km(*pentagon.boundary().first()?))
}

/// Returns how many places H3's table has for a polygon; `None` where it is flat.
fn table_size(rings: &[MapRing], cell_radius: f64) -> Option<u64> {
    let shell = rings.first()?;
    let across = kilometers([[shell.north, shell.east], [shell.south, shell.west]])?;
    let (width, height) = ((shell.east - shell.west).abs(), (shell.north - shell.south).abs());
    if width == 0.0 || height == 0.0 {
        return None;
    }
    let ratio = width.max(height) / width.min(height);
    // A regular hexagon, of which cells that are distorted most have four fifths.
    let cell_area = 0.8 * (2.598_076_211_35 * cell_radius * cell_radius);
    let expected = (across * across / ratio.min(3.0) / cell_area).ceil().max(1.0) as u64;
    let corners: usize = rings.iter().map(|ring| ring.corners.len()).sum();
    Some(expected.max(corners as u64) + SPARE_PLACES)
}

/// Returns the cells along the sides, whether their centers are within or not, each once; `None` where there are too
/// many.
fn cells_along(rings: &[MapRing], cell_radius: f64, resolution: Resolution) -> Result<Option<Vec<CellIndex>>> {
    let mut turns = LoopTurns::default();
    let (mut cells, mut known, mut places) = (Vec::new(), HashSet::new(), 0.0);
    for side in rings.iter().flat_map(MapRing::sides) {
        let Some(length) = kilometers(side) else { return Ok(None) };
        let count = (length / (2.0 * cell_radius)).ceil().max(1.0);
        places += count;
        if places > MAX_PLACES {
            return Ok(None);
        }
        let [from, to] = side;
        for step in 0..count as usize {
            turns.count()?;
            let part = |index: usize| from[index] * (count - step as f64) / count + to[index] * step as f64 / count;
            let Ok(place) = LatLng::from_radians(part(0), part(1)) else { return Ok(None) };
            let cell = place.to_cell(resolution);
            if known.insert(cell) {
                cells.push(cell);
            }
        }
    }
    Ok(Some(cells))
}

/// Returns the cells of a polygon, its shell first, in the order of H3's table; `None` where there are more than
/// `most`. Errors: the query is to end.
pub(super) fn cells_within(rings: &[MapRing], resolution: Resolution, most: usize) -> Result<Option<Vec<CellIndex>>> {
    let Some(cell_radius) = cell_radius(resolution) else { return Ok(None) };
    let Some(size) = table_size(rings, cell_radius) else { return Ok(None) };
    let Some(mut search) = cells_along(rings, cell_radius, resolution)? else { return Ok(None) };
    let is_within = |cell: CellIndex| {
        let center = LatLng::from(cell);
        let center = [center.lat_radians(), center.lng_radians()];
        let mut rings = rings.iter();
        rings.next().is_some_and(|shell| shell.contains(center)) && !rings.any(|hole| hole.contains(center))
    };
    let mut table: BTreeMap<u64, CellIndex> = BTreeMap::new();
    let mut outside = HashSet::new();
    while !search.is_empty() {
        let mut found = Vec::new();
        for near in search.into_iter().flat_map(|cell| cell.grid_disk::<Vec<CellIndex>>(1)) {
            check_interrupt()?;
            let mut place = u64::from(near) % size;
            while table.get(&place).is_some_and(|other| *other != near) {
                place = (place + 1) % size;
            }
            if table.contains_key(&place) || outside.contains(&near) {
                continue;
            }
            if !is_within(near) {
                outside.insert(near);
                continue;
            }
            table.insert(place, near);
            found.push(near);
            if table.len() > most || table.len() as u64 >= size {
                return Ok(None);
            }
        }
        search = found;
    }
    Ok(Some(table.into_values().collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What H3 4.5 gives for rings of longitudes and latitudes, in the order of its table.
    #[test]
    fn cells_are_those_of_h3_in_its_order() {
        let around: &[&[[f64; 2]]] = &[&[[178.0, -2.0], [-178.0, -2.0], [-178.0, 2.0], [178.0, 2.0]]];
        let with_hole: &[&[[f64; 2]]] = &[
            &[[0.0, 50.0], [40.0, 50.0], [40.0, 60.0], [0.0, 60.0]],
            &[[10.0, 52.0], [30.0, 52.0], [30.0, 58.0], [10.0, 58.0]],
        ];
        for (rings, resolution, expected) in [
            (
                around,
                Resolution::Three,
                "7ea3 7ea4 7ea6 7e84 7e86 7f99 7f9a 7f9b 7eb2 7eb0 7eb4 7eb5 7eb6 7eb3 7eb1 70b6 7092 7096 7ea0 7ea2",
            ),
            (
                with_hole,
                Resolution::Two,
                "1137 1187 089f 0987 1947 1f37 194f 1197 0997 08b7 1e67 099f 11a7 1e27 11af 1117 1967 1fa7 196f 1e2f \
                 11b7 111f 1faf 1f17 09b7",
            ),
        ] {
            let ring = |corners: &&[[f64; 2]]| {
                let corner = |[longitude, latitude]: &[f64; 2]| Vector::from_degrees(*longitude, *latitude).unwrap();
                MapRing::of(&corners.iter().map(corner).collect::<Vec<_>>())
            };
            let rings: Vec<MapRing> = rings.iter().map(ring).collect();
            let cells = cells_within(&rings, resolution, 1_000).unwrap().unwrap();
            let names: Vec<String> =
                cells.iter().map(|cell| format!("{:x}", u64::from(*cell))[2..6].to_owned()).collect();
            assert_eq!(names.join(" "), expected);
            assert!(cells_within(&rings, resolution, cells.len() - 1).unwrap().is_none());
        }
    }
}
