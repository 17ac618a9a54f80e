//! Polygons around points, lines and polygons. Around points, single edges and convex polygons they have the corners
//! that the S2 library gives them (`S2BufferOperation`), which Kusto asks. Others are put together of what is around
//! each edge: there circles have corners at the same directions from north around every point, so that the outlines of
//! neighbouring edges meet in sides that both have.

use std::f64::consts::PI;

use datafusion::error::Result;

use super::overlay::{Overlay, overlay, union_of_polygons};
use super::shapes::{LineShapes, PolygonShapes, ShapeEdge};
use super::sphere::{EARTH_RADIUS_METERS, Vector, azimuth, orientation, right_of};
use crate::interrupt::check_interrupt;

/// The most corners of a circle.
const MAX_CORNERS: f64 = 10_000.0;
/// The most pieces of an edge.
const MAX_PIECES: f64 = 1_000.0;
/// How near two corners are that are one, in radians.
const SAME_CORNER: f64 = 1e-12;
/// The largest tolerance, as a part of the radius.
const MOST_OF_RADIUS: f64 = 1.0 - 1e-9;
/// How far what is around a polygon may be from its first corner: less than a quarter of a circle.
const MOST_AROUND: f64 = 1.5;

/// How far a buffer reaches, and how near its sides are to that.
pub(super) struct BufferSize {
    /// The radius, as an angle.
    angle: f64,
    /// How many corners a circle has.
    corners: f64,
    /// The tolerance, as an angle.
    tolerance: f64,
    /// How far apart corners around a point are, seen from it.
    corner_step: f64,
    /// How far apart corners beside an edge are, along it.
    edge_step: f64,
}

/// Returns how long the sides of a circle may be, seen from its center, that come nearer to it by an error at most.
fn side_span(radius: f64, error: f64) -> f64 {
    let most = 2.0 * PI / 3.0 + 1e-15;
    most.min(2.0 * ((radius - error).tan() / radius.tan()).acos())
}

impl BufferSize {
    /// Returns the size for a radius and a tolerance in meters; `None` where Kusto has no such buffer. A tolerance that
    /// is larger than the radius allows is made smaller.
    pub(super) fn of(radius: f64, tolerance: f64) -> Option<Self> {
        let most = 0.5 * PI * EARTH_RADIUS_METERS;
        let is_allowed = radius > 0.0 && radius < most && tolerance > 0.0 && tolerance >= 1e-6 * radius;
        if !is_allowed {
            return None;
        }
        let angle = radius / EARTH_RADIUS_METERS;
        let error = tolerance.min(MOST_OF_RADIUS * radius) / EARTH_RADIUS_METERS;
        let beyond = 0.5 * PI - angle;
        let edge_step = if beyond > error { side_span(beyond, error) } else { f64::INFINITY };
        let tolerance = tolerance.min(0.5 * radius);
        let inner = (radius - tolerance) / EARTH_RADIUS_METERS;
        // A side's middle is at the inner angle where its half seen from the center has this cosine.
        let half = (inner.tan() / angle.tan()).acos();
        let corners = (PI / half).ceil().clamp(4.0, MAX_CORNERS);
        let (corner_step, tolerance) = (side_span(angle, error), tolerance / EARTH_RADIUS_METERS);
        Some(Self { angle, corners, tolerance, corner_step, edge_step })
    }

    /// Returns the circle around a point, counterclockwise.
    pub(super) fn circle(&self, center: Vector) -> Vec<Vector> {
        let start = center.perpendicular();
        let left = center.cross(start).normalized();
        let count = (2.0 * PI / self.corner_step).ceil();
        let corner = |number: usize| {
            let direction = start.along(left, 2.0 * PI * number as f64 / count);
            center.along(direction, self.angle)
        };
        (0..count as usize).map(corner).collect()
    }

    /// Adds the corners around a point from one direction to another one on its left, without the last.
    fn add_around(&self, ring: &mut Vec<Vector>, at: Vector, from: Vector, to: Vector) {
        let (left, span) = (at.cross(from).normalized(), from.angle(to));
        let mut turned = 0.0;
        loop {
            ring.push(at.along(from.along(left, turned), self.angle));
            turned += self.corner_step;
            if turned >= span {
                return;
            }
        }
    }

    /// Adds the corners on the right of an edge, without the last.
    fn add_beside(&self, ring: &mut Vec<Vector>, edge: ShapeEdge) {
        let [from, to] = edge;
        let right = right_of(edge);
        let (ahead, span) = (from.cross(right).normalized(), from.angle(to));
        let mut walked = 0.0;
        loop {
            ring.push(from.along(ahead, walked).along(right, self.angle));
            walked += self.edge_step;
            if walked >= span {
                return;
            }
        }
    }

    /// Returns the ring around a single edge.
    fn around_only_edge(&self, edge: ShapeEdge) -> Vec<Vector> {
        let ([from, to], right) = (edge, right_of(edge));
        let left = right.times(-1.0);
        let mut ring = Vec::new();
        self.add_around(&mut ring, from, left, right);
        self.add_beside(&mut ring, edge);
        self.add_around(&mut ring, to, right, left);
        self.add_beside(&mut ring, [to, from]);
        ring
    }

    /// Returns the ring around a shell that turns left at every corner; `None` for others.
    fn around_convex(&self, shell: &[Vector]) -> Option<Vec<Vector>> {
        let corner = |index: usize| shell[index % shell.len()];
        let mut ring = Vec::new();
        for index in 0..shell.len() {
            let [before, at, after] = [corner(index), corner(index + 1), corner(index + 2)];
            if orientation(before, at, after) < 0.0 {
                return None;
            }
            self.add_beside(&mut ring, [before, at]);
            self.add_around(&mut ring, at, right_of([before, at]), right_of([at, after]));
        }
        ring.iter().all(|point| point.angle(corner(0)) < MOST_AROUND).then_some(ring)
    }

    /// Returns a corner of a circle, counted clockwise from north. The same corner has the same azimuth to the last
    /// bit, whichever turn of the circle it is counted in.
    fn corner(&self, center: Vector, number: i64) -> Vector {
        let number = number.rem_euclid(self.corners as i64);
        center.beside(2.0 * PI * number as f64 / self.corners, self.angle)
    }

    /// Returns the corners of a circle between one azimuth and a smaller one, counterclockwise.
    fn arc(&self, center: Vector, from: f64, to: f64) -> impl Iterator<Item = Vector> + '_ {
        let unit = 2.0 * PI / self.corners;
        // Of two corners that are nearly one the other, an end of a side, stands for both.
        let apart = SAME_CORNER / self.angle.max(SAME_CORNER);
        let (above, below) = (((from - apart) / unit).ceil() as i64, ((to + apart) / unit).floor() as i64);
        (below + 1..above).rev().map(move |number| self.corner(center, number))
    }

    /// Returns the ring of what is within the radius of an edge.
    fn around_edge(&self, [from, to]: ShapeEdge) -> Option<Vec<Vector>> {
        // At a pole there are no directions from north.
        let is_pole = |point: Vector| point.degrees()[1].abs() > 90.0 - 1e-9;
        if is_pole(from) || is_pole(to) {
            return None;
        }
        let ahead_at = |point: Vector| azimuth(point, to);
        let (start, end) = (ahead_at(from)?, azimuth(to, from)? + PI);
        let right_angle = 0.5 * PI;
        // A side between two corners at one distance from a great circle is further from it in the middle.
        let longest = (4.0 * self.tolerance / self.angle.tan()).sqrt();
        let pieces = (from.angle(to) / longest).ceil().clamp(1.0, MAX_PIECES) as usize;
        let between = (1..pieces).map(|piece| from.between(to, piece as f64 / pieces as f64));
        let between = between.map(|point| Some((point, ahead_at(point)?))).collect::<Option<Vec<_>>>()?;
        let mut ring = vec![to.beside(end + right_angle, self.angle)];
        ring.extend(self.arc(to, end + right_angle, end - right_angle));
        ring.push(to.beside(end - right_angle, self.angle));
        ring.extend(between.iter().rev().map(|(point, ahead)| point.beside(ahead - right_angle, self.angle)));
        ring.push(from.beside(start - right_angle, self.angle));
        ring.extend(self.arc(from, start - right_angle, start - 3.0 * right_angle));
        ring.push(from.beside(start + right_angle, self.angle));
        ring.extend(between.iter().map(|(point, ahead)| point.beside(ahead + right_angle, self.angle)));
        Some(ring)
    }
}

/// Returns what is within the radius of lines; `None` where it cannot be put together. Errors: the query is to end.
pub(super) fn around_lines(lines: &LineShapes, size: &BufferSize) -> Result<Option<PolygonShapes>> {
    match lines.lines() {
        [line] if line.len() == 2 => {
            let ring = size.around_only_edge([line[0], line[1]]);
            Ok(Some(PolygonShapes::of_rings(vec![vec![ring]])))
        }
        _ => buffer(lines.edges(), None, size),
    }
}

/// Returns polygons and what is within the radius of them; `None` where it cannot be put together. Errors: the query is
/// to end.
pub(super) fn around_polygons(polygons: &PolygonShapes, size: &BufferSize) -> Result<Option<PolygonShapes>> {
    let all: Vec<Vec<&[Vector]>> = polygons.rings().collect();
    let only_shell = match all.as_slice() {
        [rings] => match rings.as_slice() {
            [shell] => Some(*shell),
            _ => None,
        },
        _ => None,
    };
    if let Some(ring) = only_shell.and_then(|shell| size.around_convex(shell)) {
        return Ok(Some(PolygonShapes::of_rings(vec![vec![ring]])));
    }
    match union_of_polygons(polygons.split()) {
        Some(union) => buffer(polygons.edges(), Some(union), size),
        None => Ok(None),
    }
}

/// Returns what is within the radius of edges, and `within` itself; `None` where it cannot be put together. Errors: the
/// query is to end.
fn buffer(
    edges: impl Iterator<Item = ShapeEdge>,
    within: Option<PolygonShapes>,
    size: &BufferSize,
) -> Result<Option<PolygonShapes>> {
    let mut whole = within;
    for edge in edges {
        check_interrupt()?;
        let Some(ring) = size.around_edge(edge) else { return Ok(None) };
        let around = PolygonShapes::of_rings(vec![vec![ring]]);
        let united = match &whole {
            Some(whole) => overlay(whole, &around, Overlay::Union),
            None => Some(around),
        };
        let Some(united) = united else { return Ok(None) };
        whole = Some(united);
    }
    Ok(whole)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Whether the bounds of the buffer are as far from the edges as they may be, and contain them.
    fn is_at(buffer: &PolygonShapes, lines: &LineShapes, meters: f64, tolerance: f64) -> bool {
        let far = |point: Vector| lines.angle_to(point) * EARTH_RADIUS_METERS;
        buffer.edges().all(|[from, to]| {
            let (corner, middle) = (far(from), far(from.between(to, 0.5)));
            (corner - meters).abs() <= 1.01 * tolerance && (middle - meters).abs() <= 1.01 * tolerance
        }) && lines.edges().all(|[from, to]| [0.0, 0.3, 1.0].iter().all(|at| buffer.contains(from.between(to, *at))))
    }

    #[test]
    fn a_buffer_is_as_far_as_its_radius_from_the_line() {
        for (coordinates, meters, tolerance) in [
            (json!([[14.0, 50.0], [14.01, 50.0]]), 100.0, 1.0),
            (json!([[14.0, 50.0], [14.01, 50.0], [14.01, 50.01]]), 100.0, 1.0),
            (json!([[-10.0, 0.0], [0.0, 0.0], [10.0, 0.0]]), 10_000.0, 10.0),
            (json!([[0.0, 0.0], [0.01, 0.005], [0.02, -0.005], [0.03, 0.0]]), 300.0, 0.5),
        ] {
            let lines = LineShapes::read(&json!({"type": "LineString", "coordinates": coordinates})).unwrap();
            let size = BufferSize::of(meters, tolerance).unwrap();
            let around = buffer(lines.edges(), None, &size).unwrap().unwrap();
            assert_eq!(around.rings().count(), 1, "{coordinates}");
            assert!(is_at(&around, &lines, meters, tolerance), "{coordinates}");
        }
    }

    #[test]
    fn points_edges_and_convex_polygons_have_the_corners_of_s2() {
        let lines = |coordinates: serde_json::Value| {
            LineShapes::read(&json!({"type": "LineString", "coordinates": coordinates})).unwrap()
        };
        let size = BufferSize::of(100.0, 1.0).unwrap();
        assert_eq!(size.circle(Vector::from_degrees(10.0, 20.0).unwrap()).len(), 23);
        let edge = lines(json!([[14.0, 50.0], [14.01, 50.0]]));
        let around = around_lines(&edge, &size).unwrap().unwrap();
        assert_eq!(around.edges().count(), 26);
        assert!(around.is_simple() && is_at(&around, &edge, 100.0, 1.0));
        let ring = json!([[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]]);
        let square = PolygonShapes::read(&json!({"type": "Polygon", "coordinates": [ring]})).unwrap();
        let around = around_polygons(&square, &BufferSize::of(10_000.0, 100.0).unwrap()).unwrap().unwrap();
        assert_eq!(around.edges().count(), 28);
        assert!(around.is_simple() && is_at(&around, &lines(ring), 10_000.0, 100.0));
        // A tolerance as large as the radius leaves a triangle.
        assert_eq!(BufferSize::of(5.0, 10.0).unwrap().circle(Vector::from_degrees(0.0, 90.0).unwrap()).len(), 3);
    }
}
