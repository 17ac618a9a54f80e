//! `series_fir`: a series filtered by weights, for example a moving average.

use arrow::array::ArrayRef;
use datafusion::error::Result;
use serde_json::Value;

use super::{DYNAMIC, Steps, number, numbers_at, row_of_bools};
use crate::functions::arguments::FunctionArguments;
use crate::functions::signature::{FunctionEntry, entry};

pub(super) const FUNCTIONS: &[FunctionEntry] = &[entry("series_fir", "jj?bb", DYNAMIC, fir)];

/// Computes each value from itself and the values before it, or from those around it if the filter is centered.
/// Positions outside the series count as 0; a result that a missing value takes part in is missing.
fn fir(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let (series, weights) = (arguments.dynamics(0)?, arguments.dynamics(1)?);
    let normalized = if arguments.len() > 2 { Some(arguments.bools(2)?) } else { None };
    let centered = row_of_bools(arguments, 3, false)?;
    let mut steps = Steps::default();
    arguments.make_dynamics(|row| {
        let weights = numbers_at(&weights, row).and_then(|weights| weights.into_iter().collect::<Option<Vec<f64>>>());
        let Some((values, mut weights)) = numbers_at(&series, row).zip(weights) else { return Ok(Value::Null) };
        steps.spend(arguments, values.len(), weights.len())?;
        let is_normalized = normalized.as_ref().and_then(|normalized| normalized.get(row));
        let has_negative = weights.iter().any(|weight| *weight < 0.0);
        if has_negative && is_normalized == Some(true) {
            return Ok(Value::Null);
        }
        let sum: f64 = weights.iter().sum();
        if is_normalized.unwrap_or(!has_negative) && sum != 0.0 {
            weights.iter_mut().for_each(|weight| *weight /= sum);
        }
        let ahead = if centered(row) { weights.len() / 2 } else { 0 };
        let filtered = |index: usize| {
            let mut sum = 0.0;
            for (back, weight) in weights.iter().enumerate() {
                if let Some(value) = (index + ahead).checked_sub(back).and_then(|at| values.get(at)) {
                    sum += weight * (*value)?;
                }
            }
            Some(sum)
        };
        Ok((0..values.len()).map(|index| filtered(index).map_or(Value::Null, number)).collect::<Vec<_>>().into())
    })
}
