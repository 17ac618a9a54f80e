//! `series_fit_poly`: a polynomial fitted to a series by least squares. The powers are of x scaled to [-1, 1], over
//! which the equations stay well conditioned; the coefficients are scaled back.

use datafusion::error::Result;
use serde_json::Value;

use super::line_fit::{Quality, pairs};
use super::{array_of, numbers_at};
use crate::functions::arguments::{DynamicColumn, FunctionArguments};
use crate::functions::multi_column::{MultiColumnFunction, OutputColumns, OutputValue, multi_column};
use crate::types::KqlType::{Dynamic, Real};
use crate::values;

const DEFAULT_DEGREE: i64 = 1;
const MAX_DEGREE: usize = 7;
const TICKS_OF_SECOND: f64 = 1e7;

pub(super) const MULTI_COLUMN_FUNCTIONS: &[MultiColumnFunction] = &[multi_column(
    "series_fit_poly",
    "j?ji",
    &[("rsquare", Real), ("coefficients", Dynamic), ("variance", Real), ("rvariance", Real), ("poly_fit", Dynamic)],
    polynomial,
)];

fn polynomial(arguments: &FunctionArguments, output: &mut OutputColumns) -> Result<()> {
    let series = arguments.dynamics(0)?;
    let axis = if arguments.len() > 1 { Some(arguments.dynamics(1)?) } else { None };
    let degrees = if arguments.len() > 2 { Some(arguments.longs(2)?) } else { None };
    output.fill_rows(arguments, |row| {
        let degree = degrees.as_ref().and_then(|degrees| degrees.get(row)).unwrap_or(DEFAULT_DEGREE);
        let Some(degree) = usize::try_from(degree).ok().filter(|degree| (1..=MAX_DEGREE).contains(degree)) else {
            return Err(arguments.error(&format!("the degree is a number from 1 to {MAX_DEGREE}")));
        };
        let Some(y) = numbers_at(&series, row) else { return Ok(None) };
        let x = match &axis {
            Some(axis) if !axis.get(row).is_null() => positions(axis, row),
            _ => Some((1..=y.len()).map(|index| Some(index as f64)).collect()),
        };
        let Some(x) = x.filter(|x| x.len() == y.len()) else {
            return Err(arguments.error("the series and its axis are arrays of one length"));
        };
        let Some(coefficients) = coefficients(&x, &y, degree) else { return Ok(None) };
        let fit: Vec<f64> = x.iter().map(|x| x.map_or(f64::NAN, |x| value_at(&coefficients, x))).collect();
        let known: Vec<Option<f64>> = y.iter().zip(&x).map(|(y, x)| x.and(*y)).collect();
        let quality = Quality::from_pairs(pairs(&known, &fit));
        let highest_first: Vec<f64> = coefficients.iter().rev().copied().collect();
        Ok(Some(vec![
            OutputValue::Real(quality.rsquare),
            OutputValue::Dynamic(array_of(&highest_first)),
            OutputValue::Real(quality.variance),
            OutputValue::Real(quality.rvariance),
            OutputValue::Dynamic(array_of(&fit)),
        ]))
    })
}

/// Returns numbers as they are, and datetimes as seconds since the first of them.
fn positions(axis: &DynamicColumn, row: usize) -> Option<Vec<Option<f64>>> {
    let elements = axis.elements(row)?;
    let ticks = |element: &Value| element.as_str().and_then(values::parse_datetime);
    let Some(first) = elements.iter().find_map(ticks) else {
        return Some(elements.iter().map(Value::as_f64).collect());
    };
    let seconds = |ticks: i64| ticks.saturating_sub(first) as f64 / TICKS_OF_SECOND;
    Some(elements.iter().map(|element| ticks(element).map(seconds)).collect())
}

/// Returns the coefficients, lowest power first; `None` for fewer points than coefficients.
fn coefficients(x: &[Option<f64>], y: &[Option<f64>], degree: usize) -> Option<Vec<f64>> {
    let points: Vec<(f64, f64)> = x.iter().zip(y).filter_map(|(x, y)| (*x).zip(*y)).collect();
    let least = points.iter().map(|(x, _)| *x).fold(f64::INFINITY, f64::min);
    let most = points.iter().map(|(x, _)| *x).fold(f64::NEG_INFINITY, f64::max);
    let (middle, half) = ((least + most) / 2.0, (most - least) / 2.0);
    if points.len() <= degree || half <= 0.0 || !half.is_finite() {
        return None;
    }
    let scaled = solved(points.iter().map(|(x, y)| ((x - middle) / half, *y)), degree)?;
    // Horner's scheme over polynomials: the sum so far times (x - middle) / half, plus the next coefficient.
    let mut plain: Vec<f64> = Vec::with_capacity(degree + 1);
    for coefficient in scaled.iter().rev() {
        let mut next = vec![0.0; plain.len() + 1];
        for (power, value) in plain.iter().enumerate() {
            if let Some(higher) = next.get_mut(power + 1) {
                *higher += value / half;
            }
            if let Some(same) = next.get_mut(power) {
                *same -= value * middle / half;
            }
        }
        if let Some(constant) = next.first_mut() {
            *constant += coefficient;
        }
        plain = next;
    }
    Some(plain)
}

fn value_at(coefficients: &[f64], x: f64) -> f64 {
    coefficients.iter().rev().fold(0.0, |sum, coefficient| sum * x + coefficient)
}

/// Solves the least squares problem row by row: Givens rotations turn each point into the triangular matrix, so the
/// memory does not grow with the points.
fn solved(points: impl Iterator<Item = (f64, f64)>, degree: usize) -> Option<Vec<f64>> {
    const WIDTH: usize = MAX_DEGREE + 2;
    let terms = degree + 1;
    let mut triangle = [[0.0_f64; WIDTH]; MAX_DEGREE + 1];
    for (x, y) in points {
        let mut row = [0.0_f64; WIDTH];
        let mut power = 1.0;
        for cell in row.iter_mut().take(terms) {
            *cell = power;
            power *= x;
        }
        if let Some(cell) = row.get_mut(terms) {
            *cell = y;
        }
        for (column, above) in triangle.iter_mut().enumerate().take(terms) {
            let (pivot, entry) = (*above.get(column)?, *row.get(column)?);
            let length = pivot.hypot(entry);
            if length == 0.0 {
                continue;
            }
            let (cosine, sine) = (pivot / length, entry / length);
            for (above, below) in above.iter_mut().zip(row.iter_mut()).skip(column).take(terms + 1 - column) {
                (*above, *below) = (cosine * *above + sine * *below, cosine * *below - sine * *above);
            }
        }
    }
    let mut solution = vec![0.0; terms];
    for column in (0..terms).rev() {
        let row = triangle.get(column)?;
        let known: f64 = row.iter().zip(&solution).skip(column + 1).map(|(factor, value)| factor * value).sum();
        let pivot = *row.get(column)?;
        let value = (row.get(terms)? - known) / pivot;
        if !value.is_finite() {
            return None;
        }
        *solution.get_mut(column)? = value;
    }
    Some(solution)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_polynomial_is_found_again() {
        let x: Vec<Option<f64>> = (0..50).map(|index| Some(f64::from(index) / 10.0 - 2.3)).collect();
        let wanted = [6.0, 10.0, 0.0, -8.0, 0.0, 1.0];
        let y: Vec<Option<f64>> = x.iter().map(|x| x.map(|x| value_at(&wanted, x))).collect();
        let found = coefficients(&x, &y, 5).unwrap();
        for (found, wanted) in found.iter().zip(wanted) {
            assert!((found - wanted).abs() < 1e-9, "{found} is not {wanted}");
        }
        assert_eq!(coefficients(&x[..5], &y[..5], 5), None);
    }
}
