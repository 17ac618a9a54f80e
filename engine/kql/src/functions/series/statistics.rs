//! Statistics of a whole series: its extremes, its mean, and its correlation with another series.

use arrow::array::ArrayRef;
use datafusion::error::Result;
use serde_json::{Value, json};

use super::{DYNAMIC, REAL, magnitude, numbers_at, reals, row_of_bools};
use crate::functions::arguments::{DynamicColumn, FunctionArguments};
use crate::functions::multi_column::{MultiColumnFunction, OutputColumns, OutputValue, multi_column};
use crate::functions::signature::{FunctionEntry, entry};
use crate::types::KqlType::{Long, Real};

pub(super) const FUNCTIONS: &[FunctionEntry] = &[
    entry("series_stats_dynamic", "j?b", DYNAMIC, statistics_bag),
    entry("series_pearson_correlation", "jj", REAL, correlation),
    entry("series_cosine_similarity", "jj?nn", REAL, cosine),
];

pub(super) const MULTI_COLUMN_FUNCTIONS: &[MultiColumnFunction] = &[multi_column(
    "series_stats",
    "j?b",
    &[
        ("min", Real),
        ("min_idx", Long),
        ("max", Real),
        ("max_idx", Long),
        ("avg", Real),
        ("stdev", Real),
        ("variance", Real),
    ],
    statistics,
)];

/// What `series_stats` returns.
struct Statistics {
    least: (usize, f64),
    most: (usize, f64),
    sum: f64,
    average: f64,
    variance: f64,
}

impl Statistics {
    /// Computes the statistics of a series with at least one number. An element that is not a number makes them `None`
    /// unless `ignores_others`.
    fn from_elements(elements: &[Option<f64>], ignores_others: bool) -> Option<Self> {
        if !ignores_others && elements.iter().any(Option::is_none) {
            return None;
        }
        let numbers: Vec<(usize, f64)> =
            elements.iter().enumerate().filter_map(|(index, element)| Some((index, (*element)?))).collect();
        let least = *numbers.iter().min_by(|left, right| left.1.total_cmp(&right.1))?;
        // The first of several equal ones.
        let most = *numbers.iter().rev().max_by(|left, right| left.1.total_cmp(&right.1))?;
        let count = numbers.len() as f64;
        let sum: f64 = numbers.iter().map(|(_, number)| number).sum();
        let average = sum / count;
        let squares: f64 = numbers.iter().map(|(_, number)| (number - average).powi(2)).sum();
        let variance = if count > 1.0 { squares / (count - 1.0) } else { 0.0 };
        Some(Self { least, most, sum, average, variance })
    }
}

fn statistics(arguments: &FunctionArguments, output: &mut OutputColumns) -> Result<()> {
    let series = arguments.dynamics(0)?;
    let ignores = row_of_bools(arguments, 1, false)?;
    output.fill_rows(arguments, |row| {
        let found = numbers_at(&series, row).and_then(|elements| Statistics::from_elements(&elements, ignores(row)));
        let index = |index: usize| OutputValue::Long(i64::try_from(index).unwrap_or(i64::MAX));
        Ok(found.map(|found| {
            vec![
                OutputValue::Real(found.least.1),
                index(found.least.0),
                OutputValue::Real(found.most.1),
                index(found.most.0),
                OutputValue::Real(found.average),
                OutputValue::Real(found.variance.sqrt()),
                OutputValue::Real(found.variance),
            ]
        }))
    })
}

fn statistics_bag(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let series = arguments.dynamics(0)?;
    let ignores = row_of_bools(arguments, 1, false)?;
    arguments.make_dynamics(|row| {
        let Some(elements) = numbers_at(&series, row) else { return Ok(Value::Null) };
        let Some(found) = Statistics::from_elements(&elements, ignores(row)) else { return Ok(Value::Null) };
        Ok(json!({
            "min": found.least.1, "min_idx": found.least.0, "max": found.most.1, "max_idx": found.most.0,
            "avg": found.average, "stdev": found.variance.sqrt(), "variance": found.variance, "sum": found.sum,
            "len": elements.len(),
        }))
    })
}

/// Returns two series of equal length; `None` where an element is not a number.
fn two_series(left: &DynamicColumn, right: &DynamicColumn, row: usize) -> Option<(Vec<f64>, Vec<f64>)> {
    let whole = |values: &DynamicColumn| reals(&values.elements(row)?).into_iter().collect::<Option<Vec<f64>>>();
    whole(left).zip(whole(right)).filter(|(left, right)| left.len() == right.len())
}

fn dot(left: &[f64], right: &[f64]) -> f64 {
    left.iter().zip(right).map(|(left, right)| left * right).sum()
}

fn correlation(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let (left, right) = (arguments.dynamics(0)?, arguments.dynamics(1)?);
    arguments.make_reals(|row| {
        let (left, right) = two_series(&left, &right, row)?;
        let centered = |series: Vec<f64>| {
            let average = series.iter().sum::<f64>() / series.len() as f64;
            series.into_iter().map(|number| number - average).collect::<Vec<_>>()
        };
        let (left, right) = (centered(left), centered(right));
        let correlation = dot(&left, &right) / (magnitude(&left) * magnitude(&right));
        Some(correlation.clamp(-1.0, 1.0))
    })
}

/// The cosine of the angle between two series. Their magnitudes may be passed if they are known. The longer series is
/// cut to the length of the other one, and what is no number counts for nothing.
fn cosine(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let (left, right) = (arguments.dynamics(0)?, arguments.dynamics(1)?);
    let known = |index| if arguments.len() > index { arguments.reals(index).map(Some) } else { Ok(None) };
    let (left_magnitude, right_magnitude) = (known(2)?, known(3)?);
    arguments.make_reals(|row| {
        let (left, right) = (numbers_at(&left, row)?, numbers_at(&right, row)?);
        let length = left.len().min(right.len());
        if length == 0 {
            return None;
        }
        let cut = |series: Vec<Option<f64>>| -> Vec<f64> {
            series.into_iter().take(length).map(|number| number.unwrap_or(0.0)).collect()
        };
        let (left, right) = (cut(left), cut(right));
        let left_magnitude = left_magnitude.as_ref().and_then(|magnitudes| magnitudes.get(row));
        let right_magnitude = right_magnitude.as_ref().and_then(|magnitudes| magnitudes.get(row));
        let magnitudes =
            left_magnitude.unwrap_or_else(|| magnitude(&left)) * right_magnitude.unwrap_or_else(|| magnitude(&right));
        Some(dot(&left, &right) / magnitudes)
    })
}
