//! `series_periods_detect` and `series_periods_validate`: after how many values a series repeats itself.
//!
//! The score of a period is the autocorrelation at that shift, scaled so that 0 is the least of all shifts and 1 the
//! greatest. Only a peak counts: a shift of which no other from half as far to one and a half times as far scores more.

use datafusion::error::Result;

use super::fourier::autocorrelation;
use super::{array_of, numbers_at};
use crate::functions::arguments::FunctionArguments;
use crate::functions::multi_column::{MultiColumnFunction, OutputColumns, OutputValue, multi_column};
use crate::types::KqlType::{self, Dynamic};

/// The shortest period that counts.
const LEAST_PERIOD: usize = 4;
/// The most periods that a call detects.
const MAX_PERIODS: usize = 1_000;
/// The most periods that a call validates, as in Kusto.
const MAX_VALIDATED: usize = 16;
/// Scores that differ by less than one part in this count are equal.
const STEPS: f64 = 1e9;
/// A multiple of a period is reported beside it only if it misses a full score by less than this part of what the
/// period misses.
const BETTER: f64 = 0.85;
/// The greatest distance from a multiple, in parts of the shorter period.
const NEAR: f64 = 0.05;

const PERIODS_AND_SCORES: &[(&str, KqlType)] = &[("periods", Dynamic), ("scores", Dynamic)];

pub(super) const MULTI_COLUMN_FUNCTIONS: &[MultiColumnFunction] = &[
    multi_column("series_periods_detect", "jnni", PERIODS_AND_SCORES, detect),
    multi_column("series_periods_validate", "jn*", PERIODS_AND_SCORES, validate),
];

fn detect(arguments: &FunctionArguments, output: &mut OutputColumns) -> Result<()> {
    let (series, counts) = (arguments.dynamics(0)?, arguments.longs(3)?);
    let (least, most) = (arguments.reals(1)?, arguments.reals(2)?);
    output.fill_rows(arguments, |row| {
        let Some(values) = numbers_at(&series, row) else { return Ok(None) };
        let (Some(least), Some(most), Some(count)) = (least.get(row), most.get(row), counts.get(row)) else {
            return Ok(None);
        };
        let Some(count) = usize::try_from(count).ok().filter(|count| *count <= MAX_PERIODS) else {
            return Err(arguments.error(&format!("the number of periods is a number from 0 to {MAX_PERIODS}")));
        };
        let is_asked = |(period, _): &(usize, f64)| (least..=most).contains(&(*period as f64));
        let mut found: Vec<(usize, f64)> = periods(&values)?.into_iter().filter(is_asked).take(count).collect();
        found.resize(count, (0, 0.0));
        let (periods, scores): (Vec<f64>, Vec<f64>) =
            found.into_iter().map(|(period, score)| (period as f64, score)).unzip();
        Ok(Some(vec![OutputValue::Dynamic(array_of(&periods)), OutputValue::Dynamic(array_of(&scores))]))
    })
}

fn validate(arguments: &FunctionArguments, output: &mut OutputColumns) -> Result<()> {
    let series = arguments.dynamics(0)?;
    if arguments.len() > MAX_VALIDATED + 1 {
        return Err(arguments.error(&format!("validates at most {MAX_VALIDATED} periods")));
    }
    let asked = (1..arguments.len()).map(|index| arguments.reals(index)).collect::<Result<Vec<_>>>()?;
    output.fill_rows(arguments, |row| {
        let Some(values) = numbers_at(&series, row) else { return Ok(None) };
        let scores = autocorrelation(&values)?;
        let peaks = peaks(&scores);
        let asked: Vec<f64> = asked.iter().map(|asked| asked.get(row).unwrap_or(f64::NAN)).collect();
        let score = |period: &f64| {
            // A float to integer cast saturates.
            let nearest = period.round() as usize;
            let is_peak = peaks.binary_search(&nearest).is_ok();
            if is_peak { scores.get(nearest).copied().unwrap_or(0.0) } else { 0.0 }
        };
        let scores: Vec<f64> = asked.iter().map(score).collect();
        Ok(Some(vec![OutputValue::Dynamic(array_of(&asked)), OutputValue::Dynamic(array_of(&scores))]))
    })
}

/// Returns the period with the best score, if that is above the threshold.
pub(super) fn best_period(series: &[Option<f64>], threshold: f64) -> Result<Option<usize>> {
    let best = periods(series)?.into_iter().next();
    Ok(best.filter(|(_, score)| *score > threshold).map(|(period, _)| period))
}

/// Returns periods and their scores, best first, without those that only repeat a shorter one.
fn periods(series: &[Option<f64>]) -> Result<Vec<(usize, f64)>> {
    let scores = autocorrelation(series)?;
    let mut found: Vec<(usize, f64)> = Vec::new();
    for peak in peaks(&scores) {
        let score = scores.get(peak).copied().unwrap_or(0.0);
        let repeats =
            |(shorter, other): &(usize, f64)| is_multiple(peak, *shorter) && 1.0 - score >= BETTER * (1.0 - other);
        if score > 0.0 && !found.iter().any(repeats) {
            found.push((peak, score));
        }
    }
    found.sort_by(|left, right| right.1.total_cmp(&left.1).then(left.0.cmp(&right.0)));
    Ok(found)
}

fn is_multiple(period: usize, shorter: usize) -> bool {
    let times = period as f64 / shorter as f64;
    times > 1.5 && (times - times.round()).abs() <= NEAR
}

/// Returns the shifts, in order, of which no other from half as far to one and a half times as far scores more. Shifts
/// are shorter than half the series. Each peak is at least half as far again as the one before it, so there are few.
fn peaks(scores: &[f64]) -> Vec<usize> {
    // Rounded to integers, so that scores that differ by rounding are equal and the first of them is the peak.
    let steps: Vec<i64> = scores.iter().map(|score| (score * STEPS).round() as i64).collect();
    let at = |index: usize| steps.get(index).copied().unwrap_or(0);
    let mut before: Vec<Option<usize>> = Vec::with_capacity(steps.len());
    let mut higher: Vec<usize> = Vec::new();
    for (index, step) in steps.iter().enumerate() {
        while higher.last().is_some_and(|last| at(*last) < *step) {
            higher.pop();
        }
        before.push(higher.last().copied());
        higher.push(index);
    }
    let mut found = Vec::new();
    higher.clear();
    for (index, step) in steps.iter().enumerate().rev() {
        while higher.last().is_some_and(|last| at(*last) <= *step) {
            higher.pop();
        }
        let reach = index.div_ceil(2);
        let is_first = before.get(index).copied().flatten().is_none_or(|before| before + reach < index);
        let is_most = higher.last().is_none_or(|after| *after > index + reach);
        if index >= LEAST_PERIOD && index * 2 < steps.len() && is_first && is_most {
            found.push(index);
        }
        higher.push(index);
    }
    found.reverse();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(numbers: impl IntoIterator<Item = f64>) -> Vec<Option<f64>> {
        numbers.into_iter().map(Some).collect()
    }

    #[test]
    fn the_shortest_of_equal_periods_is_found() {
        let daily = series((0..240).map(|hour| (f64::from(hour) * std::f64::consts::TAU / 24.0).sin()));
        assert_eq!(periods(&daily).unwrap().first().map(|(period, _)| *period), Some(24));
        assert_eq!(periods(&daily).unwrap().len(), 1);
        let repeated = [8.0, 12.0, 14.0, 12.0, 10.0];
        let repeated = series(std::iter::repeat_n(repeated, 4).flatten());
        assert_eq!(best_period(&repeated, 0.7).unwrap(), Some(5));
    }

    #[test]
    fn a_series_that_does_not_repeat_has_no_period() {
        assert_eq!(periods(&series((0..100).map(f64::from))).unwrap(), []);
        assert_eq!(periods(&series([1.0; 100])).unwrap(), []);
        assert_eq!(periods(&series([])).unwrap(), []);
        assert_eq!(periods(&[None; 20]).unwrap(), []);
        // A pattern that stands twice is not a period.
        assert_eq!(best_period(&series([1.0, 3.0, 5.0, 2.0, 4.0, 6.0].repeat(2)), 0.7).unwrap(), None);
    }

    #[test]
    fn a_longer_period_counts_beside_a_shorter_one() {
        let weekly = (0..840).map(|hour| {
            let (day, hour) = (hour / 24, hour % 24);
            let base = if day % 7 >= 5 { 5.0 } else { 15.0 };
            base - f64::from((hour / 10) * (hour / 10))
        });
        assert_eq!(best_period(&series(weekly), 0.6).unwrap(), Some(168));
    }

    #[test]
    fn long_series_do_not_take_quadratic_time() {
        let noise = (0_u32..200_003).map(|index| f64::from(index.wrapping_mul(2_654_435_761) >> 8));
        assert!(periods(&series(noise)).unwrap().len() < 200_003);
    }
}
