//! `series_outliers`: how far values lie outside the usual range, by Tukey's fences.

use arrow::array::ArrayRef;
use datafusion::error::Result;
use serde_json::Value;

use super::{DYNAMIC, array_of, numbers_at};
use crate::functions::arguments::FunctionArguments;
use crate::functions::signature::{FunctionEntry, entry};

pub(super) const FUNCTIONS: &[FunctionEntry] = &[entry("series_outliers", "j?snnni", DYNAMIC, outliers)];

/// The percentiles of Tukey's original test.
const QUARTILES: (f64, f64) = (25.0, 75.0);
/// Kusto's default percentiles.
const DEFAULT: (f64, f64) = (10.0, 90.0);
/// The factor of Kusto's scores with the default percentiles, measured from its answers.
const DEFAULT_SCALE: f64 = 2.772_605_605_508;
/// The third quartile of the normal distribution.
const NORMAL_QUARTILE: f64 = 0.674_489_750_196_081_7;

/// The percentiles between which values are not outliers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Fences {
    low: f64,
    high: f64,
}

impl Fences {
    /// Returns the fences of a method by Kusto's name for it.
    pub(super) fn named(name: &str) -> Option<Self> {
        let (low, high) = match name.to_ascii_lowercase().as_str() {
            "tukey" => QUARTILES,
            "ctukey" => DEFAULT,
            _ => return None,
        };
        Some(Self { low, high })
    }

    /// Scores the values against fences set by the first `learned` of them. Values within the fences and missing values
    /// score 0.
    pub(super) fn scores(self, values: &[Option<f64>], learned: usize) -> Vec<f64> {
        let mut known: Vec<f64> = values.iter().take(learned).copied().flatten().collect();
        known.sort_by(f64::total_cmp);
        let (low, high) = (percentile(&known, self.low), percentile(&known, self.high));
        let (below, above) = self.scales();
        let score = |value: &Option<f64>| match *value {
            Some(value) if value > high => (value - high) / (high - low) * above,
            Some(value) if value < low => (value - low) / (high - low) * below,
            _ => 0.0,
        };
        values.iter().map(score).collect()
    }

    /// Returns the factors of the scores below and above the fences. They give normally distributed values the score
    /// 1.5 where Tukey's test does.
    fn scales(self) -> (f64, f64) {
        if (self.low, self.high) == DEFAULT {
            return (DEFAULT_SCALE, DEFAULT_SCALE);
        }
        if (self.low, self.high) == QUARTILES {
            return (1.0, 1.0);
        }
        let (low, high) = (normal_quantile(self.low / 100.0), normal_quantile(self.high / 100.0));
        let fence = 4.0 * NORMAL_QUARTILE;
        (1.5 * (high - low) / (fence + low), 1.5 * (high - low) / (fence - high))
    }
}

/// Interpolates linearly between the two nearest values.
fn percentile(sorted: &[f64], percent: f64) -> f64 {
    let position = percent / 100.0 * (sorted.len().saturating_sub(1)) as f64;
    let at = |index: f64| sorted.get(index as usize).copied().unwrap_or(f64::NAN);
    let (below, above) = (at(position.floor()), at(position.ceil()));
    below + (above - below) * position.fract()
}

/// Inverts the normal distribution by bisection.
fn normal_quantile(probability: f64) -> f64 {
    let (mut low, mut high) = (-10.0, 10.0);
    for _ in 0..80 {
        let middle: f64 = (low + high) / 2.0;
        let below = 0.5 * (1.0 + libm::erf(middle / std::f64::consts::SQRT_2));
        if below < probability { low = middle } else { high = middle }
    }
    (low + high) / 2.0
}

fn outliers(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let series = arguments.dynamics(0)?;
    let kinds = if arguments.len() > 1 { Some(arguments.strings(1)?) } else { None };
    let real = |index| if arguments.len() > index { arguments.reals(index).map(Some) } else { Ok(None) };
    let (ignored, low, high) = (real(2)?, real(3)?, real(4)?);
    let tests = if arguments.len() > 5 { Some(arguments.longs(5)?) } else { None };
    arguments.make_dynamics(|row| {
        let kind = kinds.as_ref().map_or("ctukey", |kinds| kinds.get(row));
        let Some(mut fences) = Fences::named(kind) else {
            return Err(arguments.error("the kind is \"tukey\" or \"ctukey\""));
        };
        if kind.eq_ignore_ascii_case("ctukey") {
            fences.low = low.as_ref().and_then(|low| low.get(row)).unwrap_or(fences.low);
            fences.high = high.as_ref().and_then(|high| high.get(row)).unwrap_or(fences.high);
            let is_percentile = |percentile: f64| (2.0..=98.0).contains(&percentile);
            if !is_percentile(fences.low) || !is_percentile(fences.high) || fences.low >= fences.high {
                return Err(arguments.error("the percentiles are numbers from 2 to 98, the smaller one first"));
            }
        }
        let Some(mut values) = numbers_at(&series, row) else { return Ok(Value::Null) };
        let ignored = ignored.as_ref().and_then(|ignored| ignored.get(row));
        for value in values.iter_mut().filter(|value| value.is_some() && **value == ignored) {
            *value = None;
        }
        let tests = tests.as_ref().and_then(|tests| tests.get(row)).unwrap_or(0);
        let learned = values.len().saturating_sub(usize::try_from(tests).unwrap_or(0));
        Ok(array_of(&fences.scores(&values, learned)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_are_as_kusto_has_them() {
        // Published by a user with Kusto's answer.
        let values = [-3.0, 2.4, 15.0, 3.9, 5.0, 6.0, 4.5, 5.2, 3.0, 4.0, 5.0, 16.0, 7.0, 5.0, 5.0, 4.0].map(Some);
        let scores = Fences::named("ctukey").unwrap().scores(&values, values.len());
        let expected = [(0, -1.904_078_548_360_857), (1, -0.100_214_660_440_045), (2, 1.336_195_472_533_934_7)];
        for (index, expected) in expected {
            assert!((scores[index] - expected).abs() < 1e-9, "{} is not {expected}", scores[index]);
        }
        assert_eq!(scores[3], 0.0);
        assert!((scores[11] - 1.670_244_340_667_418_6).abs() < 1e-9);
    }

    #[test]
    fn the_normal_distribution_is_inverted() {
        assert!((normal_quantile(0.75) - NORMAL_QUARTILE).abs() < 1e-9);
        assert!((normal_quantile(0.1) + 1.281_551_565_544_6).abs() < 1e-9);
    }
}
