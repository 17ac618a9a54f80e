//! The union and the intersection of polygons. All sides are cut where those of the other polygons cross or touch them;
//! the pieces that bound the result are joined to rings again, which begin and follow each other as those of the S2
//! library do, which Kusto asks.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};

use serde_json::{Value, json};

use super::cells::{MAX_LEVEL, S2Cell};
use super::crossings::{TOUCHING, collected};
use super::nodes::Nodes;
use super::shapes::{PolygonShapes, ShapeEdge};
use super::sphere::{Vector, angle_to_edge, cross, crossing, orientation};
use crate::interrupt::is_interrupted;

/// The most pairs of sides that are compared.
const MAX_PAIRS: usize = 20_000_000;
/// The most corners, and points where sides cross.
const MAX_NODES: usize = 200_000;

/// How far along a side, as a part of it, is looked where it goes from its corner.
const ALONG: f64 = 1e-3;

/// What two polygons are combined to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Overlay {
    Union,
    Intersection,
}

/// A piece of a side: the nodes at its ends, and which side it is of. Those of the first shape come before those of the
/// second.
#[derive(Debug, Clone, Copy)]
struct SidePiece {
    ends: [usize; 2],
    side: usize,
}

/// Returns the sides with the inside on their left: shells counterclockwise, holes clockwise.
fn sides(polygons: &PolygonShapes) -> Vec<ShapeEdge> {
    let mut sides = Vec::new();
    for rings in polygons.rings() {
        for (index, ring) in rings.into_iter().enumerate() {
            let mut corners = ring.to_vec();
            if index > 0 {
                corners.reverse();
            }
            let next = corners.iter().cycle().skip(1);
            sides.extend(corners.iter().zip(next).map(|(from, to)| [*from, *to]));
        }
    }
    sides
}

/// Returns the pieces of sides, which are counted from `first` on, between the points where those of others cross or
/// touch them; `None` where there are too many, or the query is to end.
fn pieces(sides: &[ShapeEdge], first: usize, others: &[ShapeEdge], nodes: &mut Nodes) -> Option<Vec<SidePiece>> {
    let mut pieces = Vec::new();
    for (index, side) in sides.iter().enumerate() {
        if nodes.len() > MAX_NODES || is_interrupted() {
            return None;
        }
        let [from, to] = *side;
        let mut cuts = vec![from, to];
        for other in others {
            let before = cuts.len();
            cuts.extend(other.iter().filter(|end| angle_to_edge(**end, *side) < TOUCHING));
            // Where sides that touch seem to cross, they do so at the point where they touch.
            let is_touched = cuts.len() > before || side.iter().any(|end| angle_to_edge(*end, *other) < TOUCHING);
            if !is_touched && cross(*side, *other) {
                cuts.push(crossing(*side, *other));
            }
        }
        cuts.sort_by(|one, other| from.angle(*one).total_cmp(&from.angle(*other)));
        let mut at: Vec<usize> = cuts.into_iter().map(|cut| nodes.number_of(cut)).collect();
        at.dedup();
        let ends = at.iter().zip(at.iter().skip(1)).map(|(from, to)| [*from, *to]);
        pieces.extend(ends.map(|ends| SidePiece { ends, side: first + index }));
    }
    Some(pieces)
}

/// Combines two shapes; `None` where they are too large, their sides do not close, or the query is to end.
pub(super) fn overlay(one: &PolygonShapes, other: &PolygonShapes, how: Overlay) -> Option<PolygonShapes> {
    let (ours, theirs) = (sides(one), sides(other));
    if ours.len().checked_mul(theirs.len())? > MAX_PAIRS {
        return None;
    }
    let mut nodes = Nodes::default();
    let our_pieces = pieces(&ours, 0, &theirs, &mut nodes)?;
    let their_pieces = pieces(&theirs, ours.len(), &ours, &mut nodes)?;
    let nodes = nodes.into_points();
    let mut kept: Vec<SidePiece> = Vec::new();
    for (pieces, others, polygons, is_first) in
        [(&our_pieces, &their_pieces, other, true), (&their_pieces, &our_pieces, one, false)]
    {
        let others: HashSet<[usize; 2]> = others.iter().map(|piece| piece.ends).collect();
        for piece in pieces.iter().copied() {
            let [from, to] = piece.ends;
            if is_interrupted() {
                return None;
            }
            if others.contains(&[from, to]) {
                // A side of both, with the inside of both at its left.
                if is_first {
                    kept.push(piece);
                }
                continue;
            }
            if others.contains(&[to, from]) {
                continue;
            }
            let is_inside = polygons.contains(nodes[from].between(nodes[to], 0.5));
            if is_inside == (how == Overlay::Intersection) {
                kept.push(piece);
            }
        }
    }
    polygons_of(rings(kept, &nodes)?)
}

/// Joins pieces to rings. Where several go on, the leftmost does, so that rings that touch stay apart.
fn rings(pieces: Vec<SidePiece>, nodes: &[Vector]) -> Option<Vec<Vec<Vector>>> {
    // The pieces that begin at a node, as they come, and which of all are not yet in a ring.
    let mut by_start: HashMap<usize, Vec<usize>> = HashMap::new();
    for (index, piece) in pieces.iter().enumerate() {
        by_start.entry(piece.ends[0]).or_default().push(index);
    }
    let mut is_left = vec![true; pieces.len()];
    let mut rings: Vec<Vec<SidePiece>> = Vec::new();
    for (index, piece) in pieces.iter().copied().enumerate() {
        if !std::mem::replace(&mut is_left[index], false) {
            continue;
        }
        if is_interrupted() {
            return None;
        }
        let [start, first] = piece.ends;
        let mut ring = vec![piece];
        let (mut before, mut at) = (start, first);
        while at != start {
            let going_on = by_start.get(&at)?.iter().copied().filter(|index| is_left[*index]);
            let next = going_on.max_by(|one, other| {
                let turn = |index: usize| turn([before, at, pieces[index].ends[1]].map(|node| nodes[node]));
                turn(*one).total_cmp(&turn(*other))
            })?;
            is_left[next] = false;
            ring.push(pieces[next]);
            (before, at) = (at, pieces[next].ends[1]);
        }
        if ring.len() > 2 {
            rings.push(begun(ring, nodes));
        }
    }
    rings.sort_by_key(|ring| ring.first().map(|piece| piece.side));
    let corners = |ring: Vec<SidePiece>| ring.into_iter().map(|piece| nodes[piece.ends[0]]).collect::<Vec<Vector>>();
    Some(rings.into_iter().map(corners).collect())
}

/// Turns a ring so that the last of its sides ends it. Of a side that is there in several places the first one does,
/// seen from the corner whose cell comes first on.
fn begun(mut ring: Vec<SidePiece>, nodes: &[Vector]) -> Vec<SidePiece> {
    let cell = |piece: &SidePiece| S2Cell::around(nodes[piece.ends[0]], MAX_LEVEL);
    if let Some(first) = (0..ring.len()).min_by_key(|index| cell(&ring[*index])) {
        ring.rotate_left(first);
    }
    let (mut last, mut is_behind) = (0, false);
    for index in 1..ring.len() {
        match ring[index].side.cmp(&ring[last].side) {
            Ordering::Less => is_behind = true,
            Ordering::Equal if is_behind => {}
            Ordering::Equal | Ordering::Greater => (last, is_behind) = (index, false),
        }
    }
    let start = (last + 1) % ring.len().max(1);
    ring.rotate_left(start);
    ring
}

/// Returns how far a path turns left at its middle point, from -1 to 1 in the order of angles.
fn turn([before, at, after]: [Vector; 3]) -> f64 {
    let (into, out) = (at.minus(before), after.minus(at));
    let cosine = into.dot(out) / (into.dot(into) * out.dot(out)).sqrt();
    let size = (1.0 - cosine) / 2.0;
    if orientation(before, at, after) >= 0.0 { size } else { -size }
}

/// Sorts rings into shells and the holes within them.
fn polygons_of(rings: Vec<Vec<Vector>>) -> Option<PolygonShapes> {
    let (shells, holes): (Vec<_>, Vec<_>) = rings.into_iter().partition(|ring| PolygonShapes::turns_left(ring));
    let mut polygons: Vec<Vec<Vec<Vector>>> = shells.into_iter().map(|shell| vec![shell]).collect();
    for mut hole in holes {
        if is_interrupted() {
            return None;
        }
        hole.reverse();
        let inside = hole[0].between(hole[1], 0.5);
        let within = polygons
            .iter_mut()
            .find(|polygon| PolygonShapes::of_rings(vec![vec![polygon[0].clone()]]).contains(inside));
        within?.push(hole);
    }
    Some(PolygonShapes::of_rings(polygons))
}

/// Returns polygons as GeoJSON; an empty collection where there are none.
pub(super) fn shape_of(polygons: &PolygonShapes) -> Value {
    let ring = |index: usize, ring: &[Vector]| -> Vec<[f64; 2]> {
        let mut corners: Vec<[f64; 2]> = ring.iter().map(|corner| corner.degrees()).collect();
        if index > 0 {
            corners.reverse();
        }
        corners.extend(corners.first().copied());
        corners
    };
    let mut parts: Vec<Vec<Vec<[f64; 2]>>> = polygons
        .rings()
        .map(|rings| rings.into_iter().enumerate().map(|(index, corners)| ring(index, corners)).collect())
        .collect();
    match parts.len() {
        0 => collected(Vec::new(), Vec::new()),
        1 => json!({"type": "Polygon", "coordinates": parts.pop()}),
        _ => json!({"type": "MultiPolygon", "coordinates": parts}),
    }
}

/// Returns what two polygons share: polygons, and the points where they only touch.
pub(super) fn intersection_of_polygons(one: &PolygonShapes, other: &PolygonShapes) -> Option<Value> {
    let shared = overlay(one, other, Overlay::Intersection)?;
    let has_area = shared.rings().next().is_some();
    let points = collected(touching_points(one, other, &shared), Vec::new());
    Some(match (has_area, points["coordinates"].is_array()) {
        (false, _) => points,
        (true, false) => shape_of(&shared),
        (true, true) => json!({"type": "GeometryCollection", "geometries": [points, shape_of(&shared)]}),
    })
}

/// Returns the corners of one that lie on the other's bounds, each once, but for those of what both share. Where they
/// share an area, a corner from which a side runs along the other's is no point where they only touch.
fn touching_points(one: &PolygonShapes, other: &PolygonShapes, shared: &PolygonShapes) -> Vec<Vector> {
    let (ours, theirs): (Vec<ShapeEdge>, Vec<ShapeEdge>) = (one.edges().collect(), other.edges().collect());
    let shared: Vec<Vector> = shared.edges().map(|[from, _]| from).collect();
    let is_on = |point: Vector, edges: &[ShapeEdge]| edges.iter().any(|edge| angle_to_edge(point, *edge) < TOUCHING);
    let mut points: Vec<Vector> = Vec::new();
    for (sides, others) in [(&ours, &theirs), (&theirs, &ours)] {
        for corner in sides.iter().map(|[from, _]| *from) {
            if is_interrupted() {
                return points;
            }
            let is_one = |known: &Vector| known.angle(corner) < TOUCHING;
            if !is_on(corner, others) || points.iter().chain(&shared).any(is_one) {
                continue;
            }
            let runs_along = |[from, to]: &ShapeEdge| {
                (is_one(from) && is_on(from.between(*to, ALONG), others))
                    || (is_one(to) && is_on(to.between(*from, ALONG), others))
            };
            if shared.is_empty() || !sides.iter().any(runs_along) {
                points.push(corner);
            }
        }
    }
    points
}

/// Returns all polygons as one shape. As in the S2 library the two with the fewest corners are put together again and
/// again, which decides where the rings of the whole begin.
pub(super) fn union_of_polygons(all: Vec<PolygonShapes>) -> Option<PolygonShapes> {
    let mut queue: Vec<(usize, PolygonShapes)> =
        all.into_iter().map(|polygons| (polygons.edges().count(), polygons)).collect();
    queue.sort_by_key(|(corners, _)| *corners);
    while queue.len() > 1 {
        let (corners, one) = queue.remove(0);
        let (more_corners, other) = queue.remove(0);
        let union = overlay(&one, &other, Overlay::Union)?;
        let corners = corners + more_corners;
        let place = queue.partition_point(|(known, _)| *known <= corners);
        queue.insert(place, (corners, union));
    }
    queue.pop().map(|(_, union)| union)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A comb whose teeth stand up, or lie.
    fn comb(teeth: usize, is_lying: bool) -> PolygonShapes {
        let most = teeth as f64;
        let mut corners = vec![[0.0, -2.0], [most, -2.0], [most, -1.0]];
        for tooth in (0..teeth).rev() {
            let (left, right) = (tooth as f64 + 0.2, tooth as f64 + 0.7);
            corners.extend([[right, -1.0], [right, most + 1.0], [left, most + 1.0], [left, -1.0]]);
        }
        corners.extend([[0.0, -1.0], [0.0, -2.0]]);
        let ring = corners.into_iter().map(|[x, y]| if is_lying { [y, x] } else { [x, y] });
        let ring: Vec<[f64; 2]> = ring.map(|corner| corner.map(|part| part * 1e-3)).collect();
        PolygonShapes::read(&json!({"type": "Polygon", "coordinates": [ring]})).unwrap()
    }

    #[test]
    fn polygons_that_cross_in_many_places_are_combined() {
        let (standing, lying) = (comb(30, false), comb(30, true));
        assert_eq!(overlay(&standing, &lying, Overlay::Intersection).unwrap().rings().count(), 900);
        let whole = overlay(&standing, &lying, Overlay::Union).unwrap();
        assert_eq!(whole.rings().map(|rings| rings.len()).collect::<Vec<_>>(), [1 + 29 * 29 + 2 * 29]);
    }
}
