//! Points of Kusto's sphere as unit vectors, and the geometry between them. Edges are the shorter arcs of great
//! circles.

use std::f64::consts::PI;

/// The radius of Kusto's Earth, measured from its answers.
pub(super) const EARTH_RADIUS_METERS: f64 = 6_371_010.0;
/// The rounding error of a volume, relative to its edges.
const ROUNDING: f64 = 4.0 * f64::EPSILON;

/// A point or a direction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Vector {
    x: f64,
    y: f64,
    z: f64,
}

impl Vector {
    pub(super) const ZERO: Self = Self { x: 0.0, y: 0.0, z: 0.0 };
    const NORTH: Self = Self { x: 0.0, y: 0.0, z: 1.0 };

    /// Returns the point at a longitude and latitude in degrees; `None` if they are out of range.
    pub(super) fn from_degrees(longitude: f64, latitude: f64) -> Option<Self> {
        if !((-180.0..=180.0).contains(&longitude) && (-90.0..=90.0).contains(&latitude)) {
            return None;
        }
        let (longitude, latitude) = (longitude.to_radians(), latitude.to_radians());
        Some(Self { x: latitude.cos() * longitude.cos(), y: latitude.cos() * longitude.sin(), z: latitude.sin() })
    }

    /// Returns longitude and latitude of the direction, in degrees.
    pub(super) fn degrees(self) -> [f64; 2] {
        [self.y.atan2(self.x).to_degrees(), self.z.atan2((self.x * self.x + self.y * self.y).sqrt()).to_degrees()]
    }

    /// Returns the point in a direction, which is not zero.
    pub(super) fn towards([x, y, z]: [f64; 3]) -> Self {
        Self { x, y, z }.normalized()
    }

    pub(super) fn parts(self) -> [f64; 3] {
        [self.x, self.y, self.z]
    }

    pub(super) fn normalized(self) -> Self {
        self.times(1.0 / self.length())
    }

    /// Returns the point at an angle from this one, in a direction at a right angle to it.
    pub(super) fn along(self, direction: Self, angle: f64) -> Self {
        self.times(angle.cos()).plus(direction.times(angle.sin())).normalized()
    }

    /// Returns the direction at a right angle to this one that the S2 library takes where any will do.
    pub(super) fn perpendicular(self) -> Self {
        let [x, y, z] = [self.x.abs(), self.y.abs(), self.z.abs()];
        let other = Self { x: 0.012, y: 0.0053, z: 0.004_57 };
        // Nearly along the axis before the one along which this one is longest.
        let other = match () {
            () if x > y && x > z => Self { z: 1.0, ..other },
            () if y >= x && y > z => Self { x: 1.0, ..other },
            () => Self { y: 1.0, ..other },
        };
        self.cross(other).normalized()
    }

    /// Returns the point at a fraction of the edge to another point.
    pub(super) fn between(self, to: Self, fraction: f64) -> Self {
        let angle = self.angle(to);
        if angle == 0.0 {
            return self;
        }
        let (before, after) = (((1.0 - fraction) * angle).sin(), (fraction * angle).sin());
        self.times(before).plus(to.times(after)).normalized()
    }

    /// Returns the point at an angle from this one, both in radians, clockwise from north.
    pub(super) fn beside(self, azimuth: f64, angle: f64) -> Self {
        let east = Self::NORTH.cross(self);
        let east = if east.length() < 1e-15 { Self { x: 0.0, y: 1.0, z: 0.0 } } else { east.normalized() };
        let north = self.cross(east);
        let direction = north.times(azimuth.cos()).plus(east.times(azimuth.sin()));
        self.times(angle.cos()).plus(direction.times(angle.sin())).normalized()
    }

    pub(super) fn x(self) -> f64 {
        self.x
    }

    pub(super) fn coordinates(self) -> [f64; 3] {
        [self.x, self.y, self.z]
    }

    pub(super) fn bits(self) -> [u64; 3] {
        // Both zeros have the same bits.
        [self.x, self.y, self.z].map(|part| (part + 0.0).to_bits())
    }

    pub(super) fn plus(self, other: Self) -> Self {
        Self { x: self.x + other.x, y: self.y + other.y, z: self.z + other.z }
    }

    pub(super) fn minus(self, other: Self) -> Self {
        self.plus(other.times(-1.0))
    }

    pub(super) fn times(self, factor: f64) -> Self {
        Self { x: self.x * factor, y: self.y * factor, z: self.z * factor }
    }

    pub(super) fn dot(self, other: Self) -> f64 {
        self.x * other.x + self.y * other.y + self.z * other.z
    }

    pub(super) fn cross(self, other: Self) -> Self {
        Self {
            x: self.y * other.z - self.z * other.y,
            y: self.z * other.x - self.x * other.z,
            z: self.x * other.y - self.y * other.x,
        }
    }

    fn length(self) -> f64 {
        self.dot(self).sqrt()
    }

    /// Returns the angle between two vectors, in radians.
    pub(super) fn angle(self, other: Self) -> f64 {
        self.cross(other).length().atan2(self.dot(other))
    }

    /// Whether two points are opposite, so that no arc between them is the shortest.
    pub(super) fn is_antipodal(self, other: Self) -> bool {
        self.plus(other).length() < 1e-15
    }
}

/// Returns the bearing clockwise from north, in radians from 0 to 2π.
pub(super) fn azimuth(from: Vector, to: Vector) -> Option<f64> {
    if from == to || from.is_antipodal(to) {
        return None;
    }
    let east = Vector::NORTH.cross(from);
    let north = from.cross(east);
    let angle = east.dot(to).atan2(north.dot(to));
    Some(if angle < 0.0 { angle + 2.0 * PI } else { angle })
}

/// Returns the angle from a point to the nearest point of an edge.
pub(super) fn angle_to_edge(point: Vector, [from, to]: [Vector; 2]) -> f64 {
    let normal = from.cross(to);
    let is_beside = normal.cross(from).dot(point) > 0.0 && to.cross(normal).dot(point) > 0.0;
    if is_beside {
        return (normal.dot(point) / normal.length()).clamp(-1.0, 1.0).asin().abs();
    }
    point.angle(from).min(point.angle(to))
}

/// Returns the direction at a right angle to both ends of an edge. Sums and differences lose less precision for short
/// edges.
fn normal([from, to]: [Vector; 2]) -> Vector {
    from.plus(to).cross(to.minus(from))
}

/// Returns the direction at a right angle to an edge, on its right.
pub(super) fn right_of([from, to]: [Vector; 2]) -> Vector {
    normal([to, from]).normalized()
}

/// Returns the point of an edge that is nearest to a point.
pub(super) fn nearest_on_edge(point: Vector, edge: [Vector; 2]) -> Vector {
    let [from, to] = edge;
    let normal = normal(edge);
    let is_beside = normal.cross(from).dot(point) > 0.0 && to.cross(normal).dot(point) > 0.0;
    if is_beside {
        return point.minus(normal.times(normal.dot(point) / normal.dot(normal))).normalized();
    }
    if point.angle(from) <= point.angle(to) { from } else { to }
}

/// Returns where two edges that cross do so.
pub(super) fn crossing(one: [Vector; 2], other: [Vector; 2]) -> Vector {
    let at = normal(one).normalized().cross(normal(other).normalized()).normalized();
    let near = one[0].plus(one[1]).plus(other[0]).plus(other[1]);
    if at.dot(near) < 0.0 { at.times(-1.0) } else { at }
}

/// Returns the orientation of three points: positive if counterclockwise, negative if clockwise, 0 if they are on one
/// great circle.
pub(super) fn orientation(a: Vector, b: Vector, c: Vector) -> f64 {
    let volume = volume(a, b, c);
    let edges = b.minus(a).length() + c.minus(a).length();
    if volume.abs() <= ROUNDING * edges { 0.0 } else { volume }
}

/// Differences lose less precision for small volumes.
fn volume(a: Vector, b: Vector, c: Vector) -> f64 {
    a.dot(b.minus(a).cross(c.minus(a)))
}

/// Whether two edges cross inside both. Touching is not crossing.
pub(super) fn cross([a, b]: [Vector; 2], [c, d]: [Vector; 2]) -> bool {
    let signs = [orientation(a, c, b), orientation(c, b, d), orientation(b, d, a), orientation(d, a, c)];
    signs.iter().all(|sign| *sign > 0.0) || signs.iter().all(|sign| *sign < 0.0)
}

/// Returns the area of a triangle, negative if it is clockwise.
pub(super) fn signed_area(a: Vector, b: Vector, c: Vector) -> f64 {
    2.0 * volume(a, b, c).atan2(1.0 + a.dot(b) + b.dot(c) + c.dot(a))
}

/// Returns the centroid of an edge times its length.
pub(super) fn edge_centroid([from, to]: [Vector; 2]) -> Vector {
    let (sum, difference) = (from.plus(to), from.minus(to));
    let squared = sum.dot(sum);
    if squared == 0.0 { Vector::ZERO } else { sum.times((difference.dot(difference) / squared).sqrt()) }
}

/// Returns the centroid of a triangle times its signed area (J. E. Brock, "The Inertia Tensor for a Spherical
/// Triangle", 1975).
pub(super) fn triangle_centroid(a: Vector, b: Vector, c: Vector) -> Vector {
    let ratio = |angle: f64| if angle == 0.0 { 1.0 } else { angle / angle.sin() };
    let [opposite_a, opposite_b, opposite_c] = [ratio(b.angle(c)), ratio(c.angle(a)), ratio(a.angle(b))];
    let (to_b, to_c) = (b.minus(a), c.minus(a));
    let row = |part: fn(Vector) -> f64| Vector { x: part(a), y: part(to_b), z: part(to_c) };
    let (x, y, z) = (row(|it| it.x), row(|it| it.y), row(|it| it.z));
    let ratios = Vector { x: opposite_a, y: opposite_b - opposite_a, z: opposite_c - opposite_a };
    Vector { x: y.cross(z).dot(ratios), y: z.cross(x).dot(ratios), z: x.cross(y).dot(ratios) }.times(0.5)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(longitude: f64, latitude: f64) -> Vector {
        Vector::from_degrees(longitude, latitude).unwrap()
    }

    #[test]
    fn arcs_are_of_great_circles() {
        assert!((point(0.0, 0.0).angle(point(90.0, 0.0)) - PI / 2.0).abs() < 1e-15);
        assert!(
            (angle_to_edge(point(5.0, 1.0), [point(0.0, 0.0), point(10.0, 0.0)]) - 1_f64.to_radians()).abs() < 1e-15
        );
        assert!(
            (angle_to_edge(point(12.0, 0.0), [point(0.0, 0.0), point(10.0, 0.0)]) - 2_f64.to_radians()).abs() < 1e-15
        );
        assert!((azimuth(point(5.0, 10.0), point(10.0, -40.0)).unwrap() - 3.054_599_397_964_49).abs() < 1e-12);
        assert_eq!(azimuth(point(5.0, 10.0), point(5.0, 10.0)), None);
        assert_eq!(Vector::from_degrees(200.0, 0.0), None);
        assert_eq!(Vector::from_degrees(f64::NAN, 0.0), None);
    }

    #[test]
    fn edges_cross_inside_and_touch_at_ends() {
        let edge = [point(0.0, 0.0), point(10.0, 0.0)];
        assert!(cross(edge, [point(5.0, -5.0), point(5.0, 5.0)]));
        assert!(!cross(edge, [point(10.0, 0.0), point(10.0, 5.0)]));
        assert!(!cross(edge, [point(20.0, -5.0), point(20.0, 5.0)]));
        assert!(!cross(edge, [point(175.0, -5.0), point(-175.0, 5.0)]));
    }

    #[test]
    fn an_eighth_of_the_sphere() {
        let corners = [point(0.0, 0.0), point(90.0, 0.0), point(0.0, 90.0)];
        let [a, b, c] = corners;
        assert!((signed_area(a, b, c) - PI / 2.0).abs() < 1e-12);
        assert!((signed_area(a, c, b) + PI / 2.0).abs() < 1e-12);
        let [longitude, latitude] = triangle_centroid(a, b, c).degrees();
        assert!((longitude - 45.0).abs() < 1e-9 && (latitude - 35.264_389_682_754_654).abs() < 1e-9);
    }
}
