//! GeoJSON lines and polygons on the sphere. Reading a shape returns `None` unless it is valid by Kusto's rules: edges
//! are shorter than half a circle, rings are closed, have distinct corners and do not cross, and enclose the smaller of
//! the two parts that they divide the sphere into.

use std::collections::HashSet;
use std::f64::consts::PI;

use serde_json::Value;

use super::sphere::{self, Vector, angle_to_edge, cross, edge_centroid, orientation, signed_area, triangle_centroid};
use crate::interrupt::is_interrupted;

/// The lines of a `LineString` or `MultiLineString`.
pub(super) struct LineShapes(Vec<Vec<Vector>>);

/// The polygons of a `Polygon` or `MultiPolygon`.
pub(super) struct PolygonShapes(Vec<Polygon>);

/// The shell and its holes.
struct Polygon(Vec<Ring>);

/// A ring counterclockwise around its inside, without the repeated first corner.
struct Ring(Vec<Vector>);

pub(super) type ShapeEdge = [Vector; 2];

fn position(value: &Value) -> Option<Vector> {
    match value.as_array()?.as_slice() {
        [longitude, latitude, ..] => Vector::from_degrees(longitude.as_f64()?, latitude.as_f64()?),
        _ => None,
    }
}

/// Reads positions of which no two neighbours are equal or opposite.
fn path(value: &Value) -> Option<Vec<Vector>> {
    let path = value.as_array()?.iter().map(position).collect::<Option<Vec<Vector>>>()?;
    let is_edge = |(from, to): (&Vector, &Vector)| from != to && !from.is_antipodal(*to);
    path.iter().zip(path.iter().skip(1)).all(is_edge).then_some(path)
}

/// Returns the parts of a shape of one of these two types.
fn parts<'a>(value: &'a Value, one: &str, multi: &str) -> Option<Vec<&'a Value>> {
    let coordinates = value.get("coordinates")?;
    match value.get("type")?.as_str()? {
        name if name == one => Some(vec![coordinates]),
        name if name == multi => {
            let parts: Vec<&Value> = coordinates.as_array()?.iter().collect();
            (!parts.is_empty()).then_some(parts)
        }
        _ => None,
    }
}

/// Returns a key that is the same for both directions of an edge.
pub(super) fn undirected([from, to]: ShapeEdge) -> [[u64; 3]; 2] {
    let mut ends = [from.bits(), to.bits()];
    ends.sort_unstable();
    ends
}

impl LineShapes {
    pub(super) fn read(value: &Value) -> Option<Self> {
        let lines = parts(value, "LineString", "MultiLineString")?;
        let lines = lines.into_iter().map(path).collect::<Option<Vec<_>>>()?;
        lines.iter().all(|line| line.len() > 1).then_some(Self(lines))
    }

    pub(super) fn lines(&self) -> &[Vec<Vector>] {
        &self.0
    }

    pub(super) fn edges(&self) -> impl Iterator<Item = ShapeEdge> {
        self.0.iter().flat_map(|line| line.iter().zip(line.iter().skip(1)).map(|(from, to)| [*from, *to]))
    }

    /// Returns all edges. An edge that several lines share counts once.
    fn union(&self) -> impl Iterator<Item = ShapeEdge> {
        let mut known = (self.0.len() > 1).then(HashSet::new);
        self.edges().filter(move |edge| known.as_mut().is_none_or(|known| known.insert(undirected(*edge))))
    }

    /// Returns the length in radians.
    pub(super) fn length(&self) -> f64 {
        self.union().map(|[from, to]| from.angle(to)).sum()
    }

    pub(super) fn centroid(&self) -> Vector {
        self.union().map(edge_centroid).fold(Vector::ZERO, Vector::plus)
    }

    /// Returns the angle from a point to the nearest point of the lines.
    pub(super) fn angle_to(&self, point: Vector) -> f64 {
        nearest(point, self.edges())
    }
}

fn nearest(point: Vector, edges: impl Iterator<Item = ShapeEdge>) -> f64 {
    edges.map(|edge| angle_to_edge(point, edge)).fold(f64::INFINITY, f64::min)
}

impl Ring {
    fn read(value: &Value) -> Option<Self> {
        let mut corners = path(value)?;
        if corners.len() < 4 || corners.first() != corners.last() {
            return None;
        }
        corners.pop();
        let distinct: HashSet<[u64; 3]> = corners.iter().map(|corner| corner.bits()).collect();
        if distinct.len() < corners.len() {
            return None;
        }
        let mut ring = Self(corners);
        if ring.turned_area() < 0.0 {
            ring.0.reverse();
        }
        Some(ring)
    }

    fn edges(&self) -> impl Iterator<Item = ShapeEdge> {
        self.0.iter().zip(self.0.iter().cycle().skip(1)).map(|(from, to)| [*from, *to])
    }

    fn triangles(&self) -> impl Iterator<Item = [Vector; 3]> {
        let first = self.0.first().copied();
        let rest = self.0.get(1..).unwrap_or_default();
        first.into_iter().flat_map(|first| rest.iter().zip(rest.iter().skip(1)).map(move |(a, b)| [first, *a, *b]))
    }

    /// Returns the area of the smaller part; negative if that is on the right of the edges.
    fn turned_area(&self) -> f64 {
        let sum: f64 = self.triangles().map(|[a, b, c]| signed_area(a, b, c)).sum();
        let whole = 4.0 * PI;
        sum - whole * (sum / whole).round()
    }

    fn centroid(&self) -> Vector {
        self.triangles().map(|[a, b, c]| triangle_centroid(a, b, c)).fold(Vector::ZERO, Vector::plus)
    }

    /// Whether the point is inside: whether an arc from it to a corner arrives there from inside, toggled by each edge
    /// that the arc crosses.
    fn contains(&self, point: Vector) -> bool {
        let can_end = |corner: &Vector| *corner != point && point.dot(*corner) > -0.999;
        let Some(at) = self.0.iter().position(can_end) else { return false };
        let count = self.0.len();
        let corner = |index: usize| self.0.get(index % count).copied().unwrap_or(Vector::ZERO);
        let (before, end, after) = (corner(at + count - 1), corner(at), corner(at + 1));
        let comes_from_inside = is_between(after, point, before, end);
        let others = (1..count - 1).map(|step| [corner(at + step), corner(at + step + 1)]);
        let crossed = others.filter(|[from, to]| {
            // A point in the plane of the arc counts as left of it, so that a corner on the way is crossed once.
            let left = |it: Vector| orientation(point, end, it) >= 0.0;
            let leftwards = left(*to);
            left(*from) != leftwards
                && (orientation(*from, *to, point) > 0.0) == leftwards
                && (orientation(*from, *to, end) > 0.0) != leftwards
        });
        comes_from_inside ^ (crossed.count() % 2 == 1)
    }
}

/// Whether the direction of `b`, going counterclockwise around `center`, is at or after that of `a` and before that of
/// `c`.
fn is_between(a: Vector, b: Vector, c: Vector, center: Vector) -> bool {
    let order = |from: Vector, to: Vector| orientation(from, to, center) >= 0.0;
    if [b, c].iter().all(|other| orientation(a, *other, center) == 0.0) {
        // All are on one great circle, `a` and `c` on either side of the center.
        return a.dot(b) > a.dot(center) * b.dot(center);
    }
    let is_narrow = order(a, c);
    // What is in the plane of an arc counts as left of it, so that the arc comes from the right of a corner in line.
    let (after_a, before_c) = (order(a, b), orientation(b, c, center) > 0.0);
    if is_narrow { after_a && before_c } else { after_a || before_c }
}

impl Polygon {
    fn read(value: &Value) -> Option<Self> {
        let rings = value.as_array()?.iter().map(Ring::read).collect::<Option<Vec<Ring>>>()?;
        let polygon = Self(rings);
        (!polygon.0.is_empty() && polygon.is_simple()).then_some(polygon)
    }

    fn edges(&self) -> impl Iterator<Item = ShapeEdge> {
        self.0.iter().flat_map(Ring::edges)
    }

    /// Whether no two edges cross and none occurs twice.
    fn is_simple(&self) -> bool {
        let mut known = HashSet::new();
        let edges: Vec<ShapeEdge> = self.edges().collect();
        edges.iter().all(|edge| known.insert(undirected(*edge))) && !any_cross(&edges, &[])
    }

    fn contains(&self, point: Vector) -> bool {
        self.0.iter().filter(|ring| ring.contains(point)).count() % 2 == 1
    }

    /// Subtracts a measure of the holes from that of the shell.
    fn without_holes<T>(&self, of_ring: fn(&Ring) -> T, minus: fn(T, T) -> T) -> Option<T> {
        self.0.iter().map(of_ring).reduce(minus)
    }

    fn shares_points_with(&self, other: &Self) -> bool {
        let ours: Vec<ShapeEdge> = self.edges().collect();
        let theirs: Vec<ShapeEdge> = other.edges().collect();
        let edges: HashSet<_> = ours.iter().map(|edge| undirected(*edge)).collect();
        let may_touch = boxes_meet(&ours, &theirs);
        let has_point_in = |one: &[ShapeEdge], another: &[ShapeEdge], polygon: &Self| {
            let corners: HashSet<_> = another.iter().map(|[from, _]| from.bits()).collect();
            let inner = one.iter().map(|[from, _]| *from).find(|corner| !corners.contains(&corner.bits()));
            inner.is_some_and(|corner| polygon.contains(corner))
                // A corner on the other's bounds says nothing.
                || may_touch && one.iter().any(|[from, to]| polygon.contains(from.between(*to, 0.5)))
        };
        theirs.iter().any(|edge| edges.contains(&undirected(*edge)))
            || any_cross(&ours, &theirs)
            || has_point_in(&ours, &theirs, other)
            || has_point_in(&theirs, &ours, self)
    }
}

/// Whether the boxes around two lists of edges meet.
fn boxes_meet(one: &[ShapeEdge], other: &[ShapeEdge]) -> bool {
    let bounds = |edges: &[ShapeEdge], axis: usize| {
        edges.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), [from, to]| {
            let chord = from.minus(*to);
            let bulge = chord.dot(chord) / 4.0;
            let (a, b) = (from.coordinates()[axis], to.coordinates()[axis]);
            (low.min(a.min(b) - bulge), high.max(a.max(b) + bulge))
        })
    };
    (0..3).all(|axis| {
        let ((low, high), (other_low, other_high)) = (bounds(one, axis), bounds(other, axis));
        low <= other_high && other_low <= high
    })
}

/// Whether an edge of the first list crosses one of the second or, if that is empty, another of the first.
fn any_cross(first: &[ShapeEdge], second: &[ShapeEdge]) -> bool {
    struct Interval {
        low: f64,
        high: f64,
        edge: ShapeEdge,
        is_second: bool,
    }
    // The most that an arc bulges beyond its ends.
    let interval = |edge: &ShapeEdge, is_second: bool| {
        let [from, to] = *edge;
        let chord = from.minus(to);
        let bulge = chord.dot(chord) / 4.0;
        Interval { low: from.x().min(to.x()) - bulge, high: from.x().max(to.x()) + bulge, edge: *edge, is_second }
    };
    let firsts = first.iter().map(|edge| interval(edge, false));
    let mut all: Vec<Interval> = firsts.chain(second.iter().map(|edge| interval(edge, true))).collect();
    all.sort_by(|a, b| a.low.total_cmp(&b.low));
    all.iter().enumerate().any(|(index, one)| {
        let others = all.get(index + 1..).unwrap_or_default();
        let near = others.iter().take_while(|other| other.low <= one.high);
        let mut wanted = near.filter(|other| second.is_empty() || other.is_second != one.is_second);
        (index % 64 == 63 && is_interrupted()) || wanted.any(|other| cross(one.edge, other.edge))
    })
}

impl PolygonShapes {
    pub(super) fn read(value: &Value) -> Option<Self> {
        let polygons = parts(value, "Polygon", "MultiPolygon")?;
        polygons.into_iter().map(Polygon::read).collect::<Option<Vec<_>>>().map(Self)
    }

    pub(super) fn edges(&self) -> impl Iterator<Item = ShapeEdge> {
        self.0.iter().flat_map(Polygon::edges)
    }

    /// Makes polygons of shells and holes, all counterclockwise around their insides, without the repeated first corner.
    pub(super) fn of_rings(polygons: Vec<Vec<Vec<Vector>>>) -> Self {
        Self(polygons.into_iter().map(|rings| Polygon(rings.into_iter().map(Ring).collect())).collect())
    }

    /// Returns each polygon on its own.
    pub(super) fn split(&self) -> Vec<Self> {
        self.rings().map(|rings| Self::of_rings(vec![rings.into_iter().map(<[Vector]>::to_vec).collect()])).collect()
    }

    /// Whether the smaller part that a ring bounds is on its left.
    pub(super) fn turns_left(ring: &[Vector]) -> bool {
        Ring(ring.to_vec()).turned_area() > 0.0
    }

    /// Returns the rings of each polygon, without the repeated first corners.
    pub(super) fn rings(&self) -> impl Iterator<Item = Vec<&[Vector]>> {
        self.0.iter().map(|polygon| polygon.0.iter().map(|ring| ring.0.as_slice()).collect())
    }

    pub(super) fn contains(&self, point: Vector) -> bool {
        self.0.iter().any(|polygon| polygon.contains(point))
    }

    /// Whether no two sides of a polygon cross, and all rings are counterclockwise around their insides.
    pub(super) fn is_simple(&self) -> bool {
        self.0.iter().all(|polygon| polygon.is_simple() && polygon.0.iter().all(|ring| ring.turned_area() > 0.0))
    }

    /// Whether two of the polygons share points.
    pub(super) fn overlap(&self) -> bool {
        let pairs =
            self.0.iter().enumerate().flat_map(|(index, one)| {
                self.0.get(index + 1..).unwrap_or_default().iter().map(move |other| (one, other))
            });
        pairs.into_iter().any(|(one, other)| one.shares_points_with(other))
    }

    /// Returns the area on the unit sphere.
    pub(super) fn area(&self) -> f64 {
        self.0.iter().filter_map(|polygon| polygon.without_holes(Ring::turned_area, |area, hole| area - hole)).sum()
    }

    /// Returns the length of all rings, holes included, in radians.
    pub(super) fn perimeter(&self) -> f64 {
        self.0.iter().flat_map(Polygon::edges).map(|[from, to]| from.angle(to)).sum()
    }

    pub(super) fn centroid(&self) -> Vector {
        let centroids = self.0.iter().filter_map(|polygon| polygon.without_holes(Ring::centroid, Vector::minus));
        centroids.fold(Vector::ZERO, Vector::plus)
    }

    /// Returns the angle from a point to the nearest point of the polygons.
    pub(super) fn angle_to(&self, point: Vector) -> f64 {
        if self.contains(point) { 0.0 } else { nearest(point, self.0.iter().flat_map(Polygon::edges)) }
    }
}

/// Converts an area of the unit sphere to square meters.
pub(super) fn square_meters(area: f64) -> f64 {
    area * sphere::EARTH_RADIUS_METERS * sphere::EARTH_RADIUS_METERS
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn polygons(coordinates: &Value) -> Option<PolygonShapes> {
        PolygonShapes::read(&json!({"type": "Polygon", "coordinates": coordinates}))
    }

    fn contains(polygons: &PolygonShapes, longitude: f64, latitude: f64) -> bool {
        polygons.contains(Vector::from_degrees(longitude, latitude).unwrap())
    }

    #[test]
    fn a_polygon_contains_its_shell_without_its_holes() {
        let shell = json!([[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]);
        let turned = json!([[0, 0], [0, 10], [10, 10], [10, 0], [0, 0]]);
        let hole = json!([[4, 4], [4, 6], [6, 6], [6, 4], [4, 4]]);
        for shell in [shell, turned] {
            let polygons = polygons(&json!([shell, hole])).unwrap();
            for longitude in [-5.0, -0.5, 0.5, 3.0, 5.0, 7.0, 9.5, 10.5, 175.0] {
                for latitude in [-3.0, 0.5, 3.0, 5.0, 7.0, 9.5, 11.0, 80.0] {
                    let inside =
                        |low: f64, high: f64| (low..high).contains(&longitude) && (low..high).contains(&latitude);
                    let expected = inside(0.0, 10.0) && !inside(4.0, 6.0);
                    assert_eq!(contains(&polygons, longitude, latitude), expected, "{longitude} {latitude}");
                }
            }
        }
    }

    #[test]
    fn corners_on_the_arc_count_once() {
        // A star around the pole. Its corners lie on one meridian with the points.
        let ring =
            json!([[0, 60], [45, 80], [90, 60], [135, 80], [180, 60], [-135, 80], [-90, 60], [-45, 80], [0, 60]]);
        let polygons = polygons(&json!([ring])).unwrap();
        let square = self::polygons(&json!([[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]])).unwrap();
        for (longitude, latitude) in [(0.0, 15.0), (0.0, -5.0), (10.0, 12.0), (10.0, -1.0), (-5.0, 0.0), (12.0, 0.0)] {
            assert!(!contains(&square, longitude, latitude), "{longitude} {latitude}");
        }
        for longitude in [0.0, 45.0, 90.0, 135.0, 180.0, -90.0] {
            assert!(contains(&polygons, longitude, 85.0), "{longitude}");
            assert!(!contains(&polygons, longitude, 55.0), "{longitude}");
        }
        assert!(contains(&polygons, 0.0, 90.0));
        assert!(!contains(&polygons, 0.0, -90.0));
    }

    #[test]
    fn points_in_line_with_a_side_of_several_edges_are_outside() {
        // The sides are on meridians, the shell's eastern one has a corner in the middle.
        let square = json!([[[10, 0], [10, 4], [10, 8], [0, 8], [0, 0], [10, 0]]]);
        let turned = json!([[[10, 4], [10, 8], [0, 8], [0, 0], [10, 0], [10, 4]]]);
        for ring in [square, turned] {
            let polygons = polygons(&ring).unwrap();
            for latitude in [-20.0, -1.0, 9.0, 30.0] {
                assert!(!contains(&polygons, 10.0, latitude), "{latitude}");
            }
        }
    }

    #[test]
    fn a_polygon_is_the_smaller_part() {
        let octant = polygons(&json!([[[0, 0], [90, 0], [0, 90], [0, 0]]])).unwrap();
        assert!((octant.area() - PI / 2.0).abs() < 1e-12);
        let turned = polygons(&json!([[[0, 0], [0, 90], [90, 0], [0, 0]]])).unwrap();
        assert!((turned.area() - PI / 2.0).abs() < 1e-12);
        assert!(contains(&turned, 45.0, 45.0) && !contains(&turned, -135.0, -45.0));
    }

    #[test]
    fn an_invalid_polygon_is_none() {
        for rings in [
            json!([[[0, 0], [10, 10], [10, 10], [0, 0]]]),
            json!([[[0, 0], [10, 0], [10, 10]]]),
            json!([[[0, 0], [10, 0], [10, 10], [0, 100], [0, 0]]]),
            json!([[[0, 0], [10, 10], [10, 0], [0, 10], [0, 0]]]),
            json!([[[0, 0], [180, 0], [0, 90], [0, 0]]]),
            json!([]),
        ] {
            assert!(polygons(&rings).is_none(), "{rings}");
        }
        assert!(LineShapes::read(&json!({"type": "LineString", "coordinates": [[1, 1]]})).is_none());
        assert!(LineShapes::read(&json!({"type": "LineString"})).is_none());
    }

    #[test]
    fn polygons_that_share_points_overlap() {
        let square = |west: i32| json!([[[west, 0], [west + 10, 0], [west + 10, 10], [west, 10], [west, 0]]]);
        for (west, expected) in [(0, true), (5, true), (10, true), (11, false), (-40, false)] {
            let both = json!({"type": "MultiPolygon", "coordinates": [square(0), square(west)]});
            assert_eq!(PolygonShapes::read(&both).unwrap().overlap(), expected, "{west}");
        }
        let inner = json!([[[2, 2], [3, 2], [3, 3], [2, 2]]]);
        let both = json!({"type": "MultiPolygon", "coordinates": [square(0), inner]});
        assert!(PolygonShapes::read(&both).unwrap().overlap());
    }
}
