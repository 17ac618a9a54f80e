//! Functions of points, lines and polygons on Earth, which to Kusto is a sphere: lengths are in meters along great
//! circles. What is no place or no valid shape gives null.

mod shapes;
mod sphere;
mod wkt;

use std::borrow::Cow;

use arrow::array::{ArrayRef, Float64Array};
use datafusion::error::Result;
use serde_json::{Value, json};

use super::super::types::KqlType;
use super::arguments::{Arguments, Dynamics, Reader};
use super::signature::{Entry, Returns, entry};
use shapes::{Lines, Polygons, square_meters};
use sphere::{EARTH_RADIUS_METERS, Vector};

const REAL: Returns = Returns::Is(KqlType::Real);
const BOOL: Returns = Returns::Is(KqlType::Bool);
const DYNAMIC: Returns = Returns::Is(KqlType::Dynamic);

pub(super) const FUNCTIONS: &[Entry] = &[
    entry("geo_distance_2points", "nnnn", REAL, distance_of_points),
    entry("geo_azimuth", "nnnn", REAL, azimuth),
    entry("geo_point_in_circle", "nnnnn", BOOL, point_in_circle),
    entry("geo_point_in_polygon", "nnj", BOOL, point_in_polygon),
    entry("geo_distance_point_to_line", "nnj", REAL, |arguments| {
        let lines = Shapes::of(arguments, 2, Lines::read)?;
        distance(arguments, |row, point| lines.with(row, |lines| lines.angle_to(point)))
    }),
    entry("geo_distance_point_to_polygon", "nnj", REAL, |arguments| {
        let polygons = Shapes::of(arguments, 2, Polygons::read)?;
        distance(arguments, |row, point| polygons.with(row, |polygons| polygons.angle_to(point)))
    }),
    entry("geo_line_length", "j", REAL, |arguments| {
        let lines = Shapes::of(arguments, 0, Lines::read)?;
        arguments.make_reals(|row| Some(lines.with(row, Lines::length)? * EARTH_RADIUS_METERS))
    }),
    entry("geo_line_centroid", "j", DYNAMIC, |arguments| {
        let lines = Shapes::of(arguments, 0, Lines::read)?;
        arguments.make_dynamics(|row| Ok(lines.with(row, Lines::centroid).map_or(Value::Null, point_of)))
    }),
    entry("geo_polygon_area", "j", REAL, |arguments| {
        let area = |polygons: &Polygons| square_meters(polygons.area());
        of_separate(arguments, area)
    }),
    entry("geo_polygon_perimeter", "j", REAL, |arguments| {
        let perimeter = |polygons: &Polygons| polygons.perimeter() * EARTH_RADIUS_METERS;
        of_separate(arguments, perimeter)
    }),
    entry("geo_polygon_centroid", "j", DYNAMIC, polygon_centroid),
    entry("geo_from_wkt", "s", DYNAMIC, from_wkt),
];

/// Places in two arguments, longitude first.
pub(super) struct Places {
    longitudes: Reader<Float64Array>,
    latitudes: Reader<Float64Array>,
}

impl Places {
    pub(super) fn of(arguments: &Arguments, first: usize) -> Result<Self> {
        Ok(Self { longitudes: arguments.reals(first)?, latitudes: arguments.reals(first + 1)? })
    }

    /// In degrees, if there is such a place.
    pub(super) fn degrees(&self, row: usize) -> Option<(f64, f64)> {
        let (longitude, latitude) = (self.longitudes.get(row)?, self.latitudes.get(row)?);
        let is_there = (-180.0..=180.0).contains(&longitude) && (-90.0..=90.0).contains(&latitude);
        is_there.then_some((longitude, latitude))
    }

    fn get(&self, row: usize) -> Option<Vector> {
        let (longitude, latitude) = self.degrees(row)?;
        Vector::of_degrees(longitude, latitude)
    }
}

/// A column of shapes; one that is the same in all rows is read once.
struct Shapes<S> {
    values: Dynamics,
    read: fn(&Value) -> Option<S>,
    literal: Option<Option<S>>,
}

impl<S> Shapes<S> {
    fn of(arguments: &Arguments, index: usize, read: fn(&Value) -> Option<S>) -> Result<Self> {
        let values = arguments.dynamics(index)?;
        let literal = arguments.is_constant(index).then(|| read(&values.get(0)));
        Ok(Self { values, read, literal })
    }

    fn with<T>(&self, row: usize, compute: impl FnOnce(&S) -> T) -> Option<T> {
        match &self.literal {
            Some(shape) => shape.as_ref().map(compute),
            None => (self.read)(&self.values.get(row)).as_ref().map(compute),
        }
    }
}

/// GeoJSON's point.
pub(super) fn point(longitude: f64, latitude: f64) -> Value {
    json!({"type": "Point", "coordinates": [longitude, latitude]})
}

/// The point in that direction; of none, null.
fn point_of(direction: Vector) -> Value {
    if direction == Vector::ZERO {
        return Value::Null;
    }
    let [longitude, latitude] = direction.degrees();
    point(longitude, latitude)
}

/// GeoJSON's polygon with this one ring, which is closed here.
pub(super) fn polygon(ring: impl IntoIterator<Item = [f64; 2]>) -> Value {
    let mut ring: Vec<[f64; 2]> = ring.into_iter().collect();
    ring.extend(ring.first().copied());
    json!({"type": "Polygon", "coordinates": [ring]})
}

fn distance_of_points(arguments: &Arguments) -> Result<ArrayRef> {
    let to = Places::of(arguments, 2)?;
    distance(arguments, |row, point| Some(point.angle(to.get(row)?)))
}

/// The angles from the points in the first two arguments, in meters.
fn distance(arguments: &Arguments, angle: impl Fn(usize, Vector) -> Option<f64>) -> Result<ArrayRef> {
    let points = Places::of(arguments, 0)?;
    arguments.make_reals(|row| Some(angle(row, points.get(row)?)? * EARTH_RADIUS_METERS))
}

fn azimuth(arguments: &Arguments) -> Result<ArrayRef> {
    let (from, to) = (Places::of(arguments, 0)?, Places::of(arguments, 2)?);
    arguments.make_reals(|row| sphere::azimuth(from.get(row)?, to.get(row)?))
}

fn point_in_circle(arguments: &Arguments) -> Result<ArrayRef> {
    let (points, centers, radii) = (Places::of(arguments, 0)?, Places::of(arguments, 2)?, arguments.reals(4)?);
    arguments.make_bools(|row| {
        let radius = radii.get(row).filter(|radius| *radius >= 0.0 && radius.is_finite())?;
        Some(points.get(row)?.angle(centers.get(row)?) * EARTH_RADIUS_METERS <= radius)
    })
}

fn point_in_polygon(arguments: &Arguments) -> Result<ArrayRef> {
    let points = Places::of(arguments, 0)?;
    let polygons = Shapes::of(arguments, 2, Polygons::read)?;
    arguments.make_bools(|row| {
        let point = points.get(row)?;
        polygons.with(row, |polygons| polygons.contains(point))
    })
}

const OVERLAP: &str = "the parts of a MultiPolygon overlap; their union is not supported here";

/// What is added up over polygons that have no point in common.
fn of_separate(arguments: &Arguments, measure: fn(&Polygons) -> f64) -> Result<ArrayRef> {
    let polygons = Shapes::of(arguments, 0, Polygons::read)?;
    let checked = |polygons: &Polygons| (!polygons.overlap()).then(|| measure(polygons));
    let mut overlap = false;
    let measured = arguments.make_reals(|row| {
        let measured = polygons.with(row, checked);
        overlap |= measured == Some(None);
        measured.flatten()
    })?;
    if overlap { Err(arguments.error(OVERLAP)) } else { Ok(measured) }
}

fn polygon_centroid(arguments: &Arguments) -> Result<ArrayRef> {
    let polygons = Shapes::of(arguments, 0, Polygons::read)?;
    arguments.make_dynamics(|row| {
        let centroid = polygons.with(row, |polygons| (!polygons.overlap()).then(|| polygons.centroid()));
        match centroid {
            Some(Some(centroid)) => Ok(point_of(centroid)),
            Some(None) => Err(arguments.error(OVERLAP)),
            None => Ok(Value::Null),
        }
    })
}

fn from_wkt(arguments: &Arguments) -> Result<ArrayRef> {
    let texts = arguments.texts(0)?;
    let literal = texts.constant.then(|| wkt::read(texts.get(0)));
    arguments.make_dynamics(|row| {
        let shape = match &literal {
            Some(shape) => Cow::Borrowed(shape),
            None => Cow::Owned(wkt::read(texts.get(row))),
        };
        Ok(shape.into_owned().unwrap_or(Value::Null))
    })
}
