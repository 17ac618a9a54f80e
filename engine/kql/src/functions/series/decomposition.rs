//! `series_decompose` and its relatives: a series as the sum of a seasonal pattern, a trend and a residual.
//!
//! The seasonal value of a position within the period is the median of the values there. The trend is the average of
//! the deseasonalized values, or the line through them. The last values can be excluded from learning, to be forecast
//! or tested.

use arrow::array::ArrayRef;
use datafusion::error::Result;
use serde_json::{Value, json};

use super::line_fit::FittedLine;
use super::outliers::Fences;
use super::period_detection::best_period;
use super::{DYNAMIC, array_of, number, numbers_at};
use crate::functions::arguments::{DynamicColumn, FunctionArguments};
use crate::functions::multi_column::{MultiColumnFunction, OutputColumns, OutputValue, multi_column};
use crate::functions::signature::{FunctionEntry, entry};
use crate::types::KqlType::Dynamic;

/// The period is detected.
const DETECT: i64 = -1;
/// The least score of a detected period.
const DECOMPOSED_THRESHOLD: f64 = 0.6;
const SEASONAL_THRESHOLD: f64 = 0.7;
/// The least score of an anomaly.
const ANOMALY_THRESHOLD: f64 = 1.5;

pub(super) const FUNCTIONS: &[FunctionEntry] = &[entry("series_seasonal", "j?ii", DYNAMIC, seasonal_only)];

pub(super) const MULTI_COLUMN_FUNCTIONS: &[MultiColumnFunction] = &[
    multi_column(
        "series_decompose",
        "j?isin",
        &[("baseline", Dynamic), ("seasonal", Dynamic), ("trend", Dynamic), ("residual", Dynamic)],
        decompose,
    ),
    multi_column(
        "series_decompose_forecast",
        "ji?isn",
        &[("forecast", Dynamic), ("seasonal", Dynamic), ("trend", Dynamic), ("residual", Dynamic)],
        forecast,
    ),
    multi_column(
        "series_decompose_anomalies",
        "j?nisisn",
        &[("ad_flag", Dynamic), ("ad_score", Dynamic), ("baseline", Dynamic)],
        anomalies,
    ),
];

/// How the trend is computed.
#[derive(Clone, Copy)]
enum Trend {
    None,
    Average,
    Line,
}

/// How a series is decomposed.
struct DecompositionSettings {
    /// The length of the seasonal pattern, or [`DETECT`].
    period: i64,
    trend: Trend,
    /// How many values at the end are not learned from.
    tests: i64,
    threshold: f64,
}

/// The positions of the settings among the arguments of a call.
struct SettingPositions {
    period: usize,
    trend: usize,
    tests: usize,
    threshold: usize,
    default_trend: Trend,
}

impl SettingPositions {
    /// Returns a function that reads the settings of a row.
    fn reader<'a>(
        self,
        arguments: &'a FunctionArguments<'_>,
    ) -> Result<impl Fn(usize) -> Result<DecompositionSettings> + 'a> {
        let has = |index: usize| arguments.len() > index;
        let periods = if has(self.period) { Some(arguments.longs(self.period)?) } else { None };
        let trends = if has(self.trend) { Some(arguments.strings(self.trend)?) } else { None };
        let tests = if has(self.tests) { Some(arguments.longs(self.tests)?) } else { None };
        let thresholds = if has(self.threshold) { Some(arguments.reals(self.threshold)?) } else { None };
        Ok(move |row: usize| {
            let trend = match trends.as_ref().map(|trends| trends.get(row).to_ascii_lowercase()).as_deref() {
                None => self.default_trend,
                Some("avg") => Trend::Average,
                Some("linefit") => Trend::Line,
                Some("none") => Trend::None,
                Some(_) => return Err(arguments.error("the trend is \"avg\", \"linefit\" or \"none\"")),
            };
            let threshold = thresholds.as_ref().and_then(|thresholds| thresholds.get(row));
            Ok(DecompositionSettings {
                period: periods.as_ref().and_then(|periods| periods.get(row)).unwrap_or(DETECT),
                trend,
                tests: tests.as_ref().and_then(|tests| tests.get(row)).unwrap_or(0),
                threshold: threshold.unwrap_or(DECOMPOSED_THRESHOLD),
            })
        })
    }
}

/// A decomposed series.
struct Decomposition {
    /// How many values were learned from.
    learned: usize,
    seasonal: Vec<f64>,
    trend: Vec<f64>,
    baseline: Vec<f64>,
    /// `None` where the series has no value.
    residual: Vec<Option<f64>>,
}

impl Decomposition {
    /// Errors: that of a query that is to end.
    fn new(series: &[Option<f64>], settings: &DecompositionSettings) -> Result<Self> {
        let learned = series.len().saturating_sub(usize::try_from(settings.tests).unwrap_or(0));
        let known = series.get(..learned).unwrap_or_default();
        let seasonal = seasonal(known, series.len(), settings.period, settings.threshold)?;
        let rest: Vec<Option<f64>> =
            known.iter().zip(&seasonal).map(|(value, seasonal)| Some((*value)? - seasonal)).collect();
        let line = match settings.trend {
            Trend::None => None,
            Trend::Average => average(&rest).map(|average| FittedLine { slope: 0.0, interception: average }),
            Trend::Line => FittedLine::through(&rest),
        };
        let trend: Vec<f64> = (0..series.len()).map(|index| line.map_or(0.0, |line| line.value_at(index))).collect();
        let baseline: Vec<f64> = seasonal.iter().zip(&trend).map(|(seasonal, trend)| seasonal + trend).collect();
        let residual = series.iter().zip(&baseline).map(|(value, baseline)| Some((*value)? - baseline)).collect();
        Ok(Self { learned, seasonal, trend, baseline, residual })
    }

    fn residual(&self) -> Value {
        self.residual.iter().map(|left| left.map_or(Value::Null, number)).collect::<Vec<_>>().into()
    }
}

fn average(values: &[Option<f64>]) -> Option<f64> {
    let known = values.iter().copied().flatten();
    let count = known.clone().count();
    (count > 0).then(|| known.sum::<f64>() / count as f64)
}

/// Returns the seasonal component over `length` positions; zeros if there is no period.
///
/// Errors: that of a query that is to end.
fn seasonal(known: &[Option<f64>], length: usize, period: i64, threshold: f64) -> Result<Vec<f64>> {
    let period = match period {
        DETECT => best_period(known, threshold)?,
        period => usize::try_from(period).ok().filter(|period| *period > 0),
    };
    let Some(period) = period else { return Ok(vec![0.0; length]) };
    let pattern: Vec<f64> = (0..period.min(known.len()))
        .map(|phase| median(known.iter().skip(phase).step_by(period).copied().flatten().collect()))
        .collect();
    Ok((0..length).map(|position| pattern.get(position % period).copied().unwrap_or(0.0)).collect())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match (values.get(middle), middle.checked_sub(1).and_then(|before| values.get(before))) {
        (Some(high), Some(low)) if values.len().is_multiple_of(2) => (low + high) / 2.0,
        (Some(middle), _) => *middle,
        _ => 0.0,
    }
}

fn decompose(arguments: &FunctionArguments, output: &mut OutputColumns) -> Result<()> {
    let positions = SettingPositions { period: 1, trend: 2, tests: 3, threshold: 4, default_trend: Trend::Average };
    fill_decompositions(arguments, output, positions)
}

fn forecast(arguments: &FunctionArguments, output: &mut OutputColumns) -> Result<()> {
    fill_decompositions(
        arguments,
        output,
        SettingPositions { tests: 1, period: 2, trend: 3, threshold: 4, default_trend: Trend::Line },
    )
}

fn fill_decompositions(
    arguments: &FunctionArguments,
    output: &mut OutputColumns,
    positions: SettingPositions,
) -> Result<()> {
    let series = arguments.dynamics(0)?;
    let settings = positions.reader(arguments)?;
    output.fill_rows(arguments, |row| {
        let Some(parts) = decompose_row(&series, row, &settings)? else { return Ok(None) };
        Ok(Some(vec![
            OutputValue::Dynamic(array_of(&parts.baseline)),
            OutputValue::Dynamic(array_of(&parts.seasonal)),
            OutputValue::Dynamic(array_of(&parts.trend)),
            OutputValue::Dynamic(parts.residual()),
        ]))
    })
}

fn decompose_row(
    series: &DynamicColumn,
    row: usize,
    settings: impl Fn(usize) -> Result<DecompositionSettings>,
) -> Result<Option<Decomposition>> {
    let settings = settings(row)?;
    numbers_at(series, row).map(|values| Decomposition::new(&values, &settings)).transpose()
}

fn anomalies(arguments: &FunctionArguments, output: &mut OutputColumns) -> Result<()> {
    let series = arguments.dynamics(0)?;
    let thresholds = if arguments.len() > 1 { Some(arguments.reals(1)?) } else { None };
    let methods = if arguments.len() > 5 { Some(arguments.strings(5)?) } else { None };
    let positions = SettingPositions { period: 2, trend: 3, tests: 4, threshold: 6, default_trend: Trend::Average };
    let settings = positions.reader(arguments)?;
    output.fill_rows(arguments, |row| {
        let method = methods.as_ref().map_or("ctukey", |methods| methods.get(row));
        let Some(fences) = Fences::named(method) else {
            return Err(arguments.error("the method is \"tukey\" or \"ctukey\""));
        };
        let threshold = thresholds.as_ref().and_then(|thresholds| thresholds.get(row)).unwrap_or(ANOMALY_THRESHOLD);
        let Some(parts) = decompose_row(&series, row, &settings)? else { return Ok(None) };
        let scores = fences.scores(&parts.residual, parts.learned);
        let flag = |score: &f64| {
            if *score > threshold {
                1
            } else if *score < -threshold {
                -1
            } else {
                0
            }
        };
        let flags: Vec<Value> = scores.iter().map(|score| json!(flag(score))).collect();
        Ok(Some(vec![
            OutputValue::Dynamic(flags.into()),
            OutputValue::Dynamic(array_of(&scores)),
            OutputValue::Dynamic(array_of(&parts.baseline)),
        ]))
    })
}

fn seasonal_only(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let series = arguments.dynamics(0)?;
    let periods = if arguments.len() > 1 { Some(arguments.longs(1)?) } else { None };
    let tests = if arguments.len() > 2 { Some(arguments.longs(2)?) } else { None };
    arguments.make_dynamics(|row| {
        let Some(values) = numbers_at(&series, row) else { return Ok(Value::Null) };
        let period = periods.as_ref().and_then(|periods| periods.get(row)).unwrap_or(DETECT);
        let tests = tests.as_ref().and_then(|tests| tests.get(row)).unwrap_or(0);
        let learned = values.len().saturating_sub(usize::try_from(tests).unwrap_or(0));
        let known = values.get(..learned).unwrap_or_default();
        Ok(array_of(&seasonal(known, values.len(), period, SEASONAL_THRESHOLD)?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pattern_has_medians_and_the_trend_the_rest() {
        let series = [1.0, 5.0, 3.0, 7.0, 5.0, 90.0, 7.0, 11.0].map(Some);
        let settings = DecompositionSettings { period: 2, trend: Trend::Average, tests: 2, threshold: 0.6 };
        let parts = Decomposition::new(&series, &settings).unwrap();
        assert_eq!(parts.seasonal, [3.0, 7.0, 3.0, 7.0, 3.0, 7.0, 3.0, 7.0]);
        assert_eq!(parts.trend, [81.0 / 6.0; 8]);
        assert_eq!(parts.residual[0], Some(1.0 - 3.0 - 13.5));
        let line = DecompositionSettings { period: 0, trend: Trend::Line, tests: 5, threshold: 0.6 };
        let parts = Decomposition::new(&series, &line).unwrap();
        assert_eq!((parts.seasonal[0], parts.learned), (0.0, 3));
        assert!((parts.trend[7] - 9.0).abs() < 1e-9);
    }

    #[test]
    fn a_series_without_values_to_learn_from_is_zeros() {
        let settings = DecompositionSettings { period: DETECT, trend: Trend::Line, tests: 99, threshold: 0.6 };
        assert_eq!(Decomposition::new(&[Some(1.0), None], &settings).unwrap().baseline, [0.0, 0.0]);
        assert_eq!(seasonal(&[], 3, 7, 0.6).unwrap(), [0.0; 3]);
        assert_eq!(seasonal(&[None, Some(2.0)], 5, 2, 0.6).unwrap(), [0.0, 2.0, 0.0, 2.0, 0.0]);
    }
}
