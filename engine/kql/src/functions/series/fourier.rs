//! `series_fft`, `series_ifft` and the autocorrelation of series, by the discrete Fourier transform, which takes n log
//! n steps for a series of any length n.

use datafusion::error::Result;

use super::fft::{Complex, FftDirection, transform};
use super::{array_of, numbers_at};
use crate::functions::arguments::FunctionArguments;
use crate::functions::multi_column::{MultiColumnFunction, OutputColumns, OutputValue, multi_column};
use crate::types::KqlType::{self, Dynamic};

const REAL_AND_IMAGINARY: &[(&str, KqlType)] = &[("real", Dynamic), ("imag", Dynamic)];

pub(super) const MULTI_COLUMN_FUNCTIONS: &[MultiColumnFunction] = &[
    multi_column("series_fft", "j?j", REAL_AND_IMAGINARY, |arguments, output| {
        transformed(arguments, output, FftDirection::Forward)
    }),
    multi_column("series_ifft", "j?j", REAL_AND_IMAGINARY, |arguments, output| {
        transformed(arguments, output, FftDirection::Inverse)
    }),
];

fn transformed(arguments: &FunctionArguments, output: &mut OutputColumns, direction: FftDirection) -> Result<()> {
    let real = arguments.dynamics(0)?;
    let imaginary = if arguments.len() > 1 { Some(arguments.dynamics(1)?) } else { None };
    output.fill_rows(arguments, |row| {
        let Some(real) = numbers_at(&real, row) else { return Ok(None) };
        let imaginary = imaginary.as_ref().and_then(|imaginary| numbers_at(imaginary, row));
        if imaginary.as_ref().is_some_and(|imaginary| imaginary.len() != real.len()) {
            return Err(arguments.error("the real and the imaginary part are arrays of one length"));
        }
        let imaginary = imaginary.unwrap_or_else(|| vec![None; real.len()]);
        let pairs = real.iter().zip(&imaginary);
        let values: Vec<Complex> =
            pairs.map(|(real, imaginary)| Complex::new(real.unwrap_or(0.0), imaginary.unwrap_or(0.0))).collect();
        let scale = if direction == FftDirection::Inverse { 1.0 / values.len() as f64 } else { 1.0 };
        let values = transform(values, direction)?;
        let column = |part: fn(&Complex) -> f64| {
            OutputValue::Dynamic(array_of(&values.iter().map(|value| part(value) * scale).collect::<Vec<_>>()))
        };
        Ok(Some(vec![column(|value| value.re), column(|value| value.im)]))
    })
}

/// Returns how similar a series is to itself rotated by 0, 1, 2, ... positions (its circular autocorrelation): 1 where it
/// is the same, 0 where it is least similar. A missing value counts as the average. All are 0 for a constant series.
///
/// Errors: that of a query that is to end.
pub(super) fn autocorrelation(series: &[Option<f64>]) -> Result<Vec<f64>> {
    let known: Vec<f64> = series.iter().copied().flatten().collect();
    if known.is_empty() {
        return Ok(vec![0.0; series.len()]);
    }
    let average = known.iter().sum::<f64>() / known.len() as f64;
    let centered = series.iter().map(|value| Complex::new(value.map_or(0.0, |value| value - average), 0.0)).collect();
    let spectrum = transform(centered, FftDirection::Forward)?;
    let power = spectrum.into_iter().map(|value| Complex::new(value.norm_squared(), 0.0)).collect();
    let values = transform(power, FftDirection::Inverse)?;
    let least = values.iter().map(|value| value.re).fold(f64::INFINITY, f64::min);
    let range = values.first().map_or(0.0, |whole| whole.re) - least;
    let similarity = |value: &Complex| if range > 0.0 { (value.re - least) / range } else { 0.0 };
    Ok(values.iter().map(similarity).collect())
}
