//! Where lines and polygons meet.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::cells::{MAX_LEVEL, S2Cell};
use super::nodes::Nodes;
use super::point;
use super::shapes::{LineShapes, PolygonShapes, ShapeEdge, undirected};
use super::sphere::{Vector, angle_to_edge, cross, crossing};
use crate::interrupt::is_interrupted;

/// How near a point is to an edge that it lies on, in radians: less than a tenth of a millimeter.
pub(super) const TOUCHING: f64 = 1e-11;

/// Whether two edges cross or touch.
fn edges_meet(one: ShapeEdge, other: ShapeEdge) -> bool {
    let touches = |ends: ShapeEdge, edge: ShapeEdge| ends.iter().any(|end| angle_to_edge(*end, edge) < TOUCHING);
    cross(one, other) || touches(one, other) || touches(other, one)
}

fn any_meet(one: &[ShapeEdge], other: &[ShapeEdge]) -> bool {
    one.iter().any(|edge| is_interrupted() || other.iter().any(|another| edges_meet(*edge, *another)))
}

pub(super) fn lines_meet(one: &LineShapes, other: &LineShapes) -> bool {
    let (one, other): (Vec<_>, Vec<_>) = (one.edges().collect(), other.edges().collect());
    any_meet(&one, &other)
}

pub(super) fn meets_polygons(lines: &LineShapes, polygons: &PolygonShapes) -> bool {
    let (edges, sides): (Vec<_>, Vec<_>) = (lines.edges().collect(), polygons.edges().collect());
    lines.lines().iter().any(|line| line.first().is_some_and(|first| polygons.contains(*first)))
        || any_meet(&edges, &sides)
}

pub(super) fn polygons_meet(one: &PolygonShapes, other: &PolygonShapes) -> bool {
    let (ours, theirs): (Vec<_>, Vec<_>) = (one.edges().collect(), other.edges().collect());
    let has_corner_in = |polygons: &PolygonShapes, others: &PolygonShapes| {
        polygons
            .rings()
            .any(|rings| rings.first().and_then(|shell| shell.first()).is_some_and(|corner| others.contains(*corner)))
    };
    any_meet(&ours, &theirs) || has_corner_in(one, other) || has_corner_in(other, one)
}

/// Returns points and lines as one shape, or as a collection. Points are in the order of their cells, as the S2 library
/// gives them.
pub(super) fn collected(mut points: Vec<Vector>, lines: Vec<Vec<Vector>>) -> Value {
    points.sort_by_key(|point| S2Cell::around(*point, MAX_LEVEL));
    let mut shapes: Vec<Value> = Vec::new();
    let points: Vec<[f64; 2]> = points.into_iter().map(Vector::degrees).collect();
    match points.as_slice() {
        [] => {}
        [[longitude, latitude]] => shapes.push(point(*longitude, *latitude)),
        several => shapes.push(json!({"type": "MultiPoint", "coordinates": several})),
    }
    let lines: Vec<Vec<[f64; 2]>> =
        lines.into_iter().map(|line| line.into_iter().map(Vector::degrees).collect()).collect();
    match lines.as_slice() {
        [] => {}
        [line] => shapes.push(json!({"type": "LineString", "coordinates": line})),
        several => shapes.push(json!({"type": "MultiLineString", "coordinates": several})),
    }
    match shapes.pop().filter(|_| shapes.is_empty()) {
        Some(only) => only,
        None => json!({"type": "GeometryCollection", "geometries": shapes}),
    }
}

/// Adds an edge to the line that ends where it starts, or as a line of its own.
fn add_edge(lines: &mut Vec<Vec<Vector>>, [from, to]: ShapeEdge) {
    match lines.last_mut() {
        Some(line) if line.last() == Some(&from) => line.push(to),
        _ => lines.push(vec![from, to]),
    }
}

/// Returns what two lines share: edges, and points where they cross or touch.
pub(super) fn intersection_of_lines(one: &LineShapes, other: &LineShapes) -> Value {
    let theirs: Vec<ShapeEdge> = other.edges().collect();
    let known: HashSet<_> = theirs.iter().map(|edge| undirected(*edge)).collect();
    let mut lines: Vec<Vec<Vector>> = Vec::new();
    let mut points: Vec<Vector> = Vec::new();
    for edge in one.edges() {
        if is_interrupted() {
            break;
        }
        if known.contains(&undirected(edge)) {
            add_edge(&mut lines, edge);
            continue;
        }
        for another in &theirs {
            if cross(edge, *another) {
                points.push(crossing(edge, *another));
                continue;
            }
            points.extend(edge.iter().filter(|end| angle_to_edge(**end, *another) < TOUCHING));
            points.extend(another.iter().filter(|end| angle_to_edge(**end, edge) < TOUCHING));
        }
    }
    let on_lines = |point: &Vector| lines.iter().flatten().any(|other| other.angle(*point) < TOUCHING);
    let mut alone = Nodes::default();
    for point in points {
        if is_interrupted() {
            break;
        }
        if !on_lines(&point) {
            alone.number_of(point);
        }
    }
    collected(alone.into_points(), lines)
}

/// Returns the parts of lines that are in polygons.
pub(super) fn intersection_with_polygons(lines: &LineShapes, polygons: &PolygonShapes) -> Value {
    let sides: Vec<ShapeEdge> = polygons.edges().collect();
    let mut inside: Vec<Vec<Vector>> = Vec::new();
    for line in lines.lines() {
        let mut parts: Vec<Vec<Vector>> = Vec::new();
        for edge in line.iter().zip(line.iter().skip(1)).map(|(from, to)| [*from, *to]) {
            if is_interrupted() {
                break;
            }
            let [from, to] = edge;
            let mut places = vec![from];
            for side in &sides {
                if cross(edge, *side) {
                    places.push(crossing(edge, *side));
                } else {
                    // A corner that the line passes through is crossed by no side.
                    places.extend(side.iter().filter(|end| angle_to_edge(**end, edge) < TOUCHING));
                }
            }
            places.push(to);
            places.sort_by(|one, other| from.angle(*one).total_cmp(&from.angle(*other)));
            places.dedup_by(|one, other| one.angle(*other) < TOUCHING);
            if let Some(last) = places.last_mut() {
                *last = to;
            }
            for (start, end) in places.iter().zip(places.iter().skip(1)) {
                if polygons.contains(start.between(*end, 0.5)) {
                    add_edge(&mut parts, [*start, *end]);
                }
            }
        }
        inside.append(&mut parts);
    }
    collected(Vec::new(), inside)
}

/// Returns all lines as one shape, an edge that several share once, lines that continue others joined with them.
pub(super) fn union_of_lines(all: &[LineShapes]) -> Value {
    let mut known = HashSet::new();
    let mut lines: Vec<Vec<Vector>> = Vec::new();
    for edge in all.iter().flat_map(LineShapes::edges) {
        if !known.insert(undirected(edge)) {
            continue;
        }
        if is_interrupted() {
            break;
        }
        match lines.iter_mut().find(|line| line.last() == Some(&edge[0])) {
            Some(line) => line.push(edge[1]),
            None => lines.push(edge.to_vec()),
        }
    }
    collected(Vec::new(), lines)
}
