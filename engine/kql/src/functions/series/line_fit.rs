//! Lines fitted to series by least squares. A missing value takes no part in the fit; the fitted series has a value at
//! its position.

use arrow::array::ArrayRef;
use datafusion::error::Result;
use serde_json::{Value, json};

use super::{DYNAMIC, array_of, number, numbers_at};
use crate::functions::arguments::FunctionArguments;
use crate::functions::multi_column::{MultiColumnFunction, OutputColumns, OutputValue, multi_column};
use crate::functions::signature::{FunctionEntry, entry};
use crate::types::KqlType::{Dynamic, Long, Real};

/// The fewest values on either side of a split into two lines.
const LEAST_OF_SIDE: usize = 2;

pub(super) const FUNCTIONS: &[FunctionEntry] = &[
    entry("series_fit_line_dynamic", "j", DYNAMIC, line_bag),
    entry("series_fit_2lines_dynamic", "j", DYNAMIC, two_lines_bag),
];

pub(super) const MULTI_COLUMN_FUNCTIONS: &[MultiColumnFunction] = &[
    multi_column(
        "series_fit_line",
        "j",
        &[
            ("rsquare", Real),
            ("slope", Real),
            ("variance", Real),
            ("rvariance", Real),
            ("interception", Real),
            ("line_fit", Dynamic),
        ],
        line,
    ),
    multi_column(
        "series_fit_2lines",
        "j",
        &[
            ("rsquare", Real),
            ("split_idx", Long),
            ("variance", Real),
            ("rvariance", Real),
            ("line_fit", Dynamic),
            ("right_rsquare", Real),
            ("right_slope", Real),
            ("right_interception", Real),
            ("right_variance", Real),
            ("right_rvariance", Real),
            ("left_rsquare", Real),
            ("left_slope", Real),
            ("left_interception", Real),
            ("left_variance", Real),
            ("left_rvariance", Real),
        ],
        two_lines,
    ),
];

/// How well a fit describes values: their variance, the variance of the residuals, and the explained part of the
/// variance.
#[derive(Clone, Copy)]
pub(super) struct Quality {
    pub(super) rsquare: f64,
    pub(super) variance: f64,
    pub(super) rvariance: f64,
}

impl Quality {
    /// Computes the quality from pairs of a value and its fit.
    pub(super) fn from_pairs(pairs: impl Iterator<Item = (f64, f64)> + Clone) -> Self {
        let count = pairs.clone().count() as f64;
        let average = pairs.clone().map(|(value, _)| value).sum::<f64>() / count;
        let degrees = (count - 1.0).max(1.0);
        let variance = pairs.clone().map(|(value, _)| (value - average).powi(2)).sum::<f64>() / degrees;
        let rvariance = pairs.map(|(value, fit)| (value - fit).powi(2)).sum::<f64>() / degrees;
        let rsquare = if variance > 0.0 { 1.0 - rvariance / variance } else { 0.0 };
        Self { rsquare, variance, rvariance }
    }
}

/// A line over the positions of a series, counted from 1 as Kusto does.
#[derive(Clone, Copy)]
pub(super) struct FittedLine {
    pub(super) slope: f64,
    pub(super) interception: f64,
}

impl FittedLine {
    /// Fits a line to the values; `None` if there are none.
    pub(super) fn through(values: &[Option<f64>]) -> Option<Self> {
        let points = points(values);
        let count = points.clone().count() as f64;
        if count == 0.0 {
            return None;
        }
        let x_average = points.clone().map(|(x, _)| x).sum::<f64>() / count;
        let y_average = points.clone().map(|(_, y)| y).sum::<f64>() / count;
        let squares: f64 = points.clone().map(|(x, _)| (x - x_average).powi(2)).sum();
        let products: f64 = points.map(|(x, y)| (x - x_average) * (y - y_average)).sum();
        let slope = if squares > 0.0 { products / squares } else { 0.0 };
        Some(Self { slope, interception: y_average - slope * x_average })
    }

    /// Returns the value of the line at an index of the series, counted from 0.
    pub(super) fn value_at(&self, index: usize) -> f64 {
        self.slope * (index as f64 + 1.0) + self.interception
    }
}

/// Returns the positions, counted from 1, and the values of those that are known.
fn points(values: &[Option<f64>]) -> impl Iterator<Item = (f64, f64)> + Clone {
    values.iter().enumerate().filter_map(|(index, value)| Some((index as f64 + 1.0, (*value)?)))
}

/// Pairs the known values of a series with their fit.
pub(super) fn pairs<'a>(values: &'a [Option<f64>], fit: &'a [f64]) -> impl Iterator<Item = (f64, f64)> + Clone + 'a {
    values.iter().zip(fit).filter_map(|(value, fit)| Some(((*value)?, *fit)))
}

/// A line fitted to a whole series.
struct OneLine {
    line: FittedLine,
    quality: Quality,
    fit: Vec<f64>,
}

impl OneLine {
    fn through(values: &[Option<f64>]) -> Option<Self> {
        let line = FittedLine::through(values)?;
        let fit: Vec<f64> = (0..values.len()).map(|index| line.value_at(index)).collect();
        let quality = Quality::from_pairs(pairs(values, &fit));
        Some(Self { line, quality, fit })
    }

    fn bag(&self) -> Value {
        json!({
            "rsquare": number(self.quality.rsquare),
            "slope": number(self.line.slope),
            "variance": number(self.quality.variance),
            "rvariance": number(self.quality.rvariance),
            "interception": number(self.line.interception),
            "line_fit": array_of(&self.fit),
        })
    }

    /// Returns the bag of one side of a fit of two lines.
    fn side_bag(&self) -> Value {
        json!({
            "rsquare": number(self.quality.rsquare),
            "slope": number(self.line.slope),
            "interception": number(self.line.interception),
            "variance": number(self.quality.variance),
            "rvariance": number(self.quality.rvariance),
        })
    }
}

fn line(arguments: &FunctionArguments, output: &mut OutputColumns) -> Result<()> {
    let series = arguments.dynamics(0)?;
    output.fill_rows(arguments, |row| {
        let found = numbers_at(&series, row).and_then(|values| OneLine::through(&values));
        Ok(found.map(|found| {
            vec![
                OutputValue::Real(found.quality.rsquare),
                OutputValue::Real(found.line.slope),
                OutputValue::Real(found.quality.variance),
                OutputValue::Real(found.quality.rvariance),
                OutputValue::Real(found.line.interception),
                OutputValue::Dynamic(array_of(&found.fit)),
            ]
        }))
    })
}

fn line_bag(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let series = arguments.dynamics(0)?;
    arguments.make_dynamics(|row| {
        let found = numbers_at(&series, row).and_then(|values| OneLine::through(&values));
        Ok(found.map_or(Value::Null, |found| found.bag()))
    })
}

/// Two lines, one before a position and one from it on.
struct TwoLines {
    split: usize,
    left: OneLine,
    right: OneLine,
    quality: Quality,
    fit: Vec<f64>,
}

impl TwoLines {
    fn through(values: &[Option<f64>]) -> Option<Self> {
        let split = best_split(values)?;
        let (before, after) = values.split_at_checked(split)?;
        let (left, right) = (OneLine::through(before)?, OneLine::through(after)?);
        let fit: Vec<f64> = left.fit.iter().chain(&right.fit).copied().collect();
        let quality = Quality::from_pairs(pairs(values, &fit));
        Some(Self { split, left, right, quality, fit })
    }
}

/// Sums over the first points of a series. The residual of a line through any stretch follows from the sums at its
/// ends.
#[derive(Clone, Copy, Default)]
struct Sums {
    count: f64,
    x: f64,
    y: f64,
    xx: f64,
    xy: f64,
    yy: f64,
}

impl Sums {
    fn with_point(self, x: f64, y: f64) -> Self {
        let Self { count, x: sum_x, y: sum_y, xx, xy, yy } = self;
        Self { count: count + 1.0, x: sum_x + x, y: sum_y + y, xx: xx + x * x, xy: xy + x * y, yy: yy + y * y }
    }

    fn without(self, other: Self) -> Self {
        Self {
            count: self.count - other.count,
            x: self.x - other.x,
            y: self.y - other.y,
            xx: self.xx - other.xx,
            xy: self.xy - other.xy,
            yy: self.yy - other.yy,
        }
    }

    /// Returns the sum of squared residuals of the best line.
    fn left_over(self) -> f64 {
        let squares = self.xx - self.x * self.x / self.count;
        let products = self.xy - self.x * self.y / self.count;
        let total = self.yy - self.y * self.y / self.count;
        let explained = if squares > 0.0 { products * products / squares } else { 0.0 };
        (total - explained).max(0.0)
    }
}

/// Returns the index at which the second line starts so that both leave the least residual, in one pass.
fn best_split(values: &[Option<f64>]) -> Option<usize> {
    let all = points(values);
    let count = all.clone().count();
    if count == 0 {
        return None;
    }
    let y_average = all.clone().map(|(_, y)| y).sum::<f64>() / count as f64;
    // Sums of small numbers lose less precision.
    let middle = values.len() as f64 / 2.0;
    let centered = |(x, y): (f64, f64)| (x - middle, y - y_average);
    let whole = all.clone().map(centered).fold(Sums::default(), |sums, (x, y)| sums.with_point(x, y));
    let mut before = Sums::default();
    let mut best: Option<(f64, usize)> = None;
    for ((x, y), taken) in all.zip(0_usize..) {
        if taken >= LEAST_OF_SIDE && count - taken >= LEAST_OF_SIDE {
            let left_over = before.left_over() + whole.without(before).left_over();
            if best.is_none_or(|(least, _)| left_over < least) {
                best = Some((left_over, x as usize - 1));
            }
        }
        let (x, y) = centered((x, y));
        before = before.with_point(x, y);
    }
    best.map(|(_, split)| split)
}

fn two_lines(arguments: &FunctionArguments, output: &mut OutputColumns) -> Result<()> {
    let series = arguments.dynamics(0)?;
    output.fill_rows(arguments, |row| {
        let Some(found) = numbers_at(&series, row).and_then(|values| TwoLines::through(&values)) else {
            return Ok(None);
        };
        let mut parts = vec![
            OutputValue::Real(found.quality.rsquare),
            OutputValue::Long(i64::try_from(found.split).unwrap_or(i64::MAX)),
            OutputValue::Real(found.quality.variance),
            OutputValue::Real(found.quality.rvariance),
            OutputValue::Dynamic(array_of(&found.fit)),
        ];
        for side in [&found.right, &found.left] {
            parts.extend([
                OutputValue::Real(side.quality.rsquare),
                OutputValue::Real(side.line.slope),
                OutputValue::Real(side.line.interception),
                OutputValue::Real(side.quality.variance),
                OutputValue::Real(side.quality.rvariance),
            ]);
        }
        Ok(Some(parts))
    })
}

fn two_lines_bag(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let series = arguments.dynamics(0)?;
    arguments.make_dynamics(|row| {
        let found = numbers_at(&series, row).and_then(|values| TwoLines::through(&values));
        Ok(found.map_or(Value::Null, |found| {
            json!({
                "rsquare": number(found.quality.rsquare),
                "split_idx": found.split,
                "variance": number(found.quality.variance),
                "rvariance": number(found.quality.rvariance),
                "line_fit": array_of(&found.fit),
                "right": found.right.side_bag(),
                "left": found.left.side_bag(),
            })
        }))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_fits_as_kustos_does() {
        // Kusto's own example and its answer.
        let values = [2.0, 5.0, 6.0, 8.0, 11.0, 15.0, 17.0, 18.0, 25.0, 26.0, 30.0, 30.0].map(Some);
        let found = OneLine::through(&values).unwrap();
        for (found, expected) in [
            (found.quality.rsquare, 0.982_900_730_884_447),
            (found.line.slope, 2.730_769_230_769_231),
            (found.quality.variance, 98.628_787_878_787_89),
            (found.quality.rvariance, 1.686_480_186_480_187),
            (found.line.interception, -1.666_666_666_666_671_6),
            (found.fit[11], 31.102_564_102_564_102),
        ] {
            assert!((found - expected).abs() < 1e-9, "{found} is not {expected}");
        }
    }

    #[test]
    fn two_lines_split_where_kustos_do() {
        let values = [1.0, 2.2, 2.5, 4.7, 5.0, 12.0, 10.3, 10.3, 9.0, 8.3, 6.2].map(Some);
        let found = TwoLines::through(&values).unwrap();
        assert_eq!(found.split, 5);
        assert!((found.fit[0] - 0.98).abs() < 1e-9 && (found.fit[5] - 11.942_857_142_857_143).abs() < 1e-9);
        assert!((found.left.line.slope - 1.05).abs() < 1e-9 && found.right.line.slope < -1.0);
        // Missing values take no part, and too few values have no two lines.
        assert!(TwoLines::through(&[Some(1.0), None, Some(2.0), None, Some(1.0)]).is_none());
        let with_gaps = [Some(1.0), None, Some(2.0), Some(9.0), None, Some(8.0)];
        assert_eq!(TwoLines::through(&with_gaps).unwrap().split, 3);
    }

    #[test]
    fn a_constant_series_has_a_flat_line() {
        let found = OneLine::through(&[Some(3.0); 5]).unwrap();
        assert_eq!((found.line.slope, found.quality.rsquare, found.quality.variance), (0.0, 0.0, 0.0));
        assert!(OneLine::through(&[None; 3]).is_none() && OneLine::through(&[]).is_none());
    }
}
