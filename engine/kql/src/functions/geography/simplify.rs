//! Lines and polygons with fewer corners: a chain of short edges that is nearly straight becomes one edge. No two
//! neighbours are nearer than the tolerance, and nothing that is left out is further from the new edges. Tolerances are
//! in radians.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::shapes::{LineShapes, PolygonShapes};
use super::sphere::{Vector, angle_to_edge};
use crate::interrupt::is_interrupted;

/// How often the tolerance is halved until no sides of the result cross.
const MAX_HALVINGS: usize = 40;
/// The points of a span that are worth a look whether the query is to end.
const LONG_SPAN: usize = 256;

type CornerKey = [u64; 3];

/// Returns a path without the points that are nearer than the tolerance to the one before, both ends kept.
fn thinned(path: &[Vector], tolerance: f64) -> Vec<Vector> {
    let Some((last, others)) = path.split_last() else { return Vec::new() };
    let mut kept: Vec<Vector> = Vec::new();
    for point in others {
        if kept.last().is_none_or(|before| before.angle(*point) >= tolerance) {
            kept.push(*point);
        }
    }
    while kept.len() > 1 && kept.last().is_some_and(|before| before.angle(*last) < tolerance) {
        kept.pop();
    }
    kept.push(*last);
    kept
}

/// Returns a path without the points that are near enough to the edges between the others, both ends kept (D. Douglas,
/// T. Peucker, "Algorithms for the Reduction of the Number of Points Required to Represent a Digitized Line", 1973).
fn straightened(path: &[Vector], tolerance: f64) -> Vec<Vector> {
    let mut is_kept = vec![false; path.len()];
    let mut spans = Vec::new();
    if let Some(last) = path.len().checked_sub(1) {
        is_kept[0] = true;
        is_kept[last] = true;
        spans.push((0, last));
    }
    while let Some((from, to)) = spans.pop() {
        if to - from > LONG_SPAN && is_interrupted() {
            break;
        }
        let edge = [path[from], path[to]];
        let distances = (from + 1..to).map(|between| (between, angle_to_edge(path[between], edge)));
        let farthest = distances.max_by(|(_, one), (_, other)| one.total_cmp(other));
        if let Some((middle, _)) = farthest.filter(|(_, distance)| *distance > tolerance) {
            is_kept[middle] = true;
            spans.push((from, middle));
            spans.push((middle, to));
        }
    }
    path.iter().zip(is_kept).filter(|(_, is_kept)| *is_kept).map(|(point, _)| *point).collect()
}

fn simplified(path: &[Vector], tolerance: f64) -> Vec<Vector> {
    straightened(&thinned(path, tolerance), tolerance)
}

/// Returns lines with fewer points; `None` where one is shorter than the tolerance from end to end.
pub(super) fn simplified_lines(lines: &LineShapes, tolerance: f64) -> Option<Value> {
    let line = |line: &Vec<Vector>| {
        let points = simplified(line, tolerance);
        let is_point = points.len() == 2 && points[0].angle(points[1]) < tolerance;
        (!is_point).then(|| points.into_iter().map(Vector::degrees).collect())
    };
    let mut parts = lines.lines().iter().map(line).collect::<Option<Vec<Vec<[f64; 2]>>>>()?;
    Some(match parts.len() {
        1 => json!({"type": "LineString", "coordinates": parts.pop()}),
        _ => json!({"type": "MultiLineString", "coordinates": parts}),
    })
}

/// Returns polygons with fewer corners, sides that several share alike in each. Of a ring that is smaller than the
/// tolerance nothing is left; `None` where that is so of all.
pub(super) fn simplified_polygons(all: &[PolygonShapes], tolerance: f64) -> Option<PolygonShapes> {
    let junctions = Junctions::of(all);
    let mut tolerance = tolerance;
    for _ in 0..MAX_HALVINGS {
        let polygons = polygons_within(all, tolerance, &junctions);
        let shapes = PolygonShapes::of_rings(polygons);
        shapes.rings().next()?;
        if shapes.is_simple() {
            return Some(shapes);
        }
        tolerance *= 0.5;
    }
    Some(PolygonShapes::of_rings(polygons_within(all, 0.0, &junctions)))
}

fn polygons_within(all: &[PolygonShapes], tolerance: f64, junctions: &Junctions) -> Vec<Vec<Vec<Vector>>> {
    let polygons = all.iter().flat_map(PolygonShapes::rings);
    let simplified = polygons.filter_map(|rings| {
        let mut rings = rings.into_iter().map(|ring| simplified_ring(ring, tolerance, junctions));
        let shell = rings.next()??;
        Some(std::iter::once(shell).chain(rings.flatten()).collect())
    });
    simplified.collect()
}

/// The corners at which sides of several polygons part.
struct Junctions(HashMap<CornerKey, Vec<CornerKey>>);

impl Junctions {
    fn of(all: &[PolygonShapes]) -> Self {
        let mut neighbors: HashMap<CornerKey, Vec<CornerKey>> = HashMap::new();
        // Within one shape no side is another's.
        if all.len() > 1 {
            for [from, to] in all.iter().flat_map(PolygonShapes::edges) {
                for (corner, neighbor) in [(from.bits(), to.bits()), (to.bits(), from.bits())] {
                    let known = neighbors.entry(corner).or_default();
                    if !known.contains(&neighbor) {
                        known.push(neighbor);
                    }
                }
            }
        }
        Self(neighbors)
    }

    fn contains(&self, corner: &Vector) -> bool {
        self.0.get(&corner.bits()).is_some_and(|neighbors| neighbors.len() != 2)
    }

    /// Whether rings of several shapes are simplified, which may be the same ring.
    fn are_of_several(&self) -> bool {
        !self.0.is_empty()
    }
}

/// Returns a ring with fewer corners, each junction kept; `None` where no area is left.
fn simplified_ring(ring: &[Vector], tolerance: f64, junctions: &Junctions) -> Option<Vec<Vector>> {
    let least = || ring.iter().enumerate().min_by_key(|(_, corner)| corner.bits()).map(|(index, _)| index);
    // The same ring starts at the same corner in each shape.
    let start = ring.iter().position(|corner| junctions.contains(corner));
    let start = start.or_else(|| junctions.are_of_several().then(least).flatten()).unwrap_or(0);
    let closed: Vec<Vector> = ring.iter().cycle().skip(start).take(ring.len() + 1).copied().collect();
    let mut corners: Vec<Vector> = Vec::new();
    let mut chain: Vec<Vector> = Vec::new();
    for (index, corner) in closed.iter().enumerate() {
        chain.push(*corner);
        let ends = index > 0 && (index + 1 == closed.len() || junctions.contains(corner));
        if ends {
            let mut kept = simplified_chain(std::mem::replace(&mut chain, vec![*corner]), tolerance, junctions);
            kept.pop();
            corners.append(&mut kept);
        }
    }
    (corners.len() > 2).then_some(corners)
}

/// Simplifies a chain; one that several rings may have in one direction, whichever it has in this one.
fn simplified_chain(mut chain: Vec<Vector>, tolerance: f64, junctions: &Junctions) -> Vec<Vector> {
    let inner = chain.get(1..chain.len().saturating_sub(1)).unwrap_or_default();
    let forwards = [chain.first(), inner.first()].map(|point| point.map(|point| point.bits()));
    let backwards = [chain.last(), inner.last()].map(|point| point.map(|point| point.bits()));
    let turns = junctions.are_of_several() && forwards > backwards;
    if turns {
        chain.reverse();
    }
    let mut kept = simplified(&chain, tolerance);
    if turns {
        kept.reverse();
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn polygons(coordinates: &Value) -> PolygonShapes {
        PolygonShapes::read(&json!({"type": "Polygon", "coordinates": coordinates})).unwrap()
    }

    fn corners(shapes: &PolygonShapes) -> Vec<usize> {
        shapes.rings().flatten().map(<[Vector]>::len).collect()
    }

    #[test]
    fn a_side_that_two_share_stays_one() {
        let left = polygons(&json!([[[0, 0], [10, 0], [10.1, 3], [9.9, 6], [10, 10], [0, 10], [0, 0]]]));
        let right = polygons(&json!([[[10, 0], [20, 0], [20, 10], [10, 10], [9.9, 6], [10.1, 3], [10, 0]]]));
        let both = simplified_polygons(&[left, right], 1_f64.to_radians()).unwrap();
        assert_eq!(corners(&both), [4, 4]);
        let left = polygons(&json!([[[0, 0], [10, 0], [11, 3], [9, 6], [10, 10], [0, 10], [0, 0]]]));
        let right = polygons(&json!([[[10, 0], [20, 0], [20, 10], [10, 10], [9, 6], [11, 3], [10, 0]]]));
        let both = simplified_polygons(&[left, right], 0.5_f64.to_radians()).unwrap();
        assert_eq!(corners(&both), [6, 6]);
    }

    #[test]
    fn what_is_smaller_than_the_tolerance_is_gone() {
        let ring = json!([[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]);
        let hole = json!([[4, 4], [4.1, 4], [4.1, 4.1], [4, 4.1], [4, 4]]);
        let shape = polygons(&json!([ring, hole]));
        assert_eq!(corners(&simplified_polygons(&[shape], 1_f64.to_radians()).unwrap()), [4]);
        let shape = polygons(&json!([ring, hole]));
        assert!(simplified_polygons(&[shape], 30_f64.to_radians()).is_none());
    }
}
