//! Polygons around points, lines and polygons. Circles have corners at the same directions from north around every
//! point, so that the outlines of neighbouring edges meet in sides that both have.

use std::f64::consts::PI;

use datafusion::error::Result;

use super::overlay::{Overlay, overlay};
use super::shapes::{PolygonShapes, ShapeEdge};
use super::sphere::{EARTH_RADIUS_METERS, Vector, azimuth};
use crate::interrupt::check_interrupt;

/// The most corners of a circle.
const MAX_CORNERS: f64 = 10_000.0;
/// The most pieces of an edge.
const MAX_PIECES: f64 = 1_000.0;
/// How near two corners are that are one, in radians.
const SAME_CORNER: f64 = 1e-12;

/// How far a buffer reaches, and how near its sides are to that.
pub(super) struct BufferSize {
    /// The radius, as an angle.
    angle: f64,
    /// How many corners a circle has.
    corners: f64,
    /// The tolerance, as an angle.
    tolerance: f64,
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
        let tolerance = tolerance.min(0.5 * radius);
        let angle = radius / EARTH_RADIUS_METERS;
        let inner = (radius - tolerance) / EARTH_RADIUS_METERS;
        // A side's middle is at the inner angle where its half seen from the center has this cosine.
        let half = (inner.tan() / angle.tan()).acos();
        let corners = (PI / half).ceil().clamp(4.0, MAX_CORNERS);
        Some(Self { angle, corners, tolerance: tolerance / EARTH_RADIUS_METERS })
    }

    /// Returns the circle around a point, counterclockwise.
    pub(super) fn circle(&self, center: Vector) -> Vec<Vector> {
        let count = self.corners as i64;
        (0..count).map(|number| self.corner(center, -number)).collect()
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

/// Returns what is within the radius of edges, and `within` itself; `None` where it cannot be put together. Errors: the
/// query is to end.
pub(super) fn buffer(
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
    use crate::functions::geography::shapes::LineShapes;

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
}
