//! Shapes whose edges are straight on the map, as shapes of enough edges along great circles.

use serde_json::{Value, json};

use super::shapes::{LineShapes, PolygonShapes};
use super::sphere::{Vector, angle_to_edge};
use crate::interrupt::is_interrupted;

/// The most points of a shape, all its parts together.
const MAX_POINTS: usize = 1_000_000;

/// Adds points up to and with the end of an edge, so that no edge is further than `tolerance` radians from the straight
/// one. `None`: there would be more than `most`.
fn add_edge(points: &mut Vec<[f64; 2]>, [from, to]: [[f64; 2]; 2], tolerance: f64, most: usize) -> Option<()> {
    let mut ends = vec![to];
    let mut from = from;
    while let Some(to) = ends.last().copied() {
        let middle = [0.5 * (from[0] + to[0]), 0.5 * (from[1] + to[1])];
        let is_far = match [from, middle, to].map(on_sphere) {
            [Some(from), Some(middle), Some(to)] => angle_to_edge(middle, [from, to]) > tolerance,
            _ => false,
        };
        if is_far {
            ends.push(middle);
        } else {
            points.push(wrapped(to));
            ends.pop();
            from = to;
        }
        if points.len() + ends.len() > most {
            return None;
        }
    }
    Some(())
}

/// Brings a longitude beyond the antimeridian back.
fn wrapped([longitude, latitude]: [f64; 2]) -> [f64; 2] {
    let longitude = if longitude > 180.0 {
        longitude - 360.0
    } else if longitude < -180.0 {
        longitude + 360.0
    } else {
        longitude
    };
    [longitude, latitude]
}

fn on_sphere(at: [f64; 2]) -> Option<Vector> {
    let [longitude, latitude] = wrapped(at);
    Vector::from_degrees(longitude, latitude)
}

/// Returns the points of a path, and takes them from those that the shape may still have.
fn dense(path: impl Iterator<Item = Vector>, tolerance: f64, left: &mut usize) -> Option<Vec<[f64; 2]>> {
    let mut points: Vec<[f64; 2]> = Vec::new();
    if is_interrupted() {
        return None;
    }
    for corner in path {
        let to = corner.degrees();
        let Some(from) = points.last().copied() else {
            points.push(to);
            continue;
        };
        // The shorter way around.
        let around = ((from[0] - to[0]) / 360.0).round() * 360.0;
        add_edge(&mut points, [from, [to[0] + around, to[1]]], tolerance, *left)?;
    }
    *left = left.checked_sub(points.len())?;
    Some(points)
}

/// Returns a shape of one part or several.
fn shape(one: &str, several: &str, mut parts: Vec<Value>) -> Value {
    if parts.len() > 1 {
        return json!({"type": several, "coordinates": parts});
    }
    parts.pop().map_or(Value::Null, |only| json!({"type": one, "coordinates": only}))
}

pub(super) fn dense_lines(lines: &LineShapes, tolerance: f64) -> Option<Value> {
    let mut left = MAX_POINTS;
    let parts = lines.lines().iter().map(|line| Some(json!(dense(line.iter().copied(), tolerance, &mut left)?)));
    let parts = parts.collect::<Option<Vec<Value>>>()?;
    Some(shape("LineString", "MultiLineString", parts))
}

pub(super) fn dense_polygons(polygons: &PolygonShapes, tolerance: f64) -> Option<Value> {
    let mut left = MAX_POINTS;
    let mut ring = |ring: &[Vector]| {
        let closed = ring.iter().chain(ring.first()).copied();
        dense(closed, tolerance, &mut left)
    };
    let parts = polygons.rings().map(|rings| {
        let rings = rings.into_iter().map(&mut ring).collect::<Option<Vec<_>>>()?;
        Some(json!(rings))
    });
    let parts = parts.collect::<Option<Vec<Value>>>()?;
    Some(shape("Polygon", "MultiPolygon", parts))
}
