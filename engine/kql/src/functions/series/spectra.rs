//! The discrete Fourier transform of series, and what needs it. It takes n log n steps for a series of n values, whatever
//! number n is.

use datafusion::error::Result;

use super::super::arguments::Arguments;
use super::super::several::{Part, Rows, Several, several};
use super::fourier::{Complex, Direction, transform};
use super::{array_of, numbers_at};
use crate::types::KqlType::{self, Dynamic};

const REAL_AND_IMAGINARY: &[(&str, KqlType)] = &[("real", Dynamic), ("imag", Dynamic)];

pub(super) const SEVERAL: &[Several] = &[
    several("series_fft", "j?j", REAL_AND_IMAGINARY, |arguments, rows| {
        transformed(arguments, rows, Direction::Forward)
    }),
    several("series_ifft", "j?j", REAL_AND_IMAGINARY, |arguments, rows| {
        transformed(arguments, rows, Direction::Inverse)
    }),
];

fn transformed(arguments: &Arguments, rows: &mut Rows, direction: Direction) -> Result<()> {
    let real = arguments.dynamics(0)?;
    let imaginary = if arguments.len() > 1 { Some(arguments.dynamics(1)?) } else { None };
    rows.each(arguments, |row| {
        let Some(real) = numbers_at(&real, row) else { return Ok(None) };
        let imaginary = imaginary.as_ref().and_then(|imaginary| numbers_at(imaginary, row));
        if imaginary.as_ref().is_some_and(|imaginary| imaginary.len() != real.len()) {
            return Err(arguments.error("the real and the imaginary part are arrays of one length"));
        }
        let imaginary = imaginary.unwrap_or_else(|| vec![None; real.len()]);
        let pairs = real.iter().zip(&imaginary);
        let values: Vec<Complex> =
            pairs.map(|(real, imaginary)| Complex::new(real.unwrap_or(0.0), imaginary.unwrap_or(0.0))).collect();
        let scale = if direction == Direction::Inverse { 1.0 / values.len() as f64 } else { 1.0 };
        let values = transform(values, direction);
        let part = |of: fn(&Complex) -> f64| {
            Part::Dynamic(array_of(&values.iter().map(|value| of(value) * scale).collect::<Vec<_>>()))
        };
        Ok(Some(vec![part(|value| value.re), part(|value| value.im)]))
    })
}

/// How much a series is like itself moved round by 0, 1, 2, ... positions: 1 where it is the same, 0 where it is least
/// alike. A missing value is as the average. All are 0 for a series that does not vary.
pub(super) fn similarities(series: &[Option<f64>]) -> Vec<f64> {
    let known: Vec<f64> = series.iter().copied().flatten().collect();
    if known.is_empty() {
        return vec![0.0; series.len()];
    }
    let average = known.iter().sum::<f64>() / known.len() as f64;
    let centered = series.iter().map(|value| Complex::new(value.map_or(0.0, |value| value - average), 0.0)).collect();
    let spectrum = transform(centered, Direction::Forward);
    let power = spectrum.into_iter().map(|value| Complex::new(value.norm_squared(), 0.0)).collect();
    let values = transform(power, Direction::Inverse);
    let least = values.iter().map(|value| value.re).fold(f64::INFINITY, f64::min);
    let range = values.first().map_or(0.0, |whole| whole.re) - least;
    let similarity = |value: &Complex| if range > 0.0 { (value.re - least) / range } else { 0.0 };
    values.iter().map(similarity).collect()
}
