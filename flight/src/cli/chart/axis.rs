//! Axes: the position of a value along an axis, and the axis's ticks.

use chrono::{DateTime, Datelike, NaiveDate, TimeZone, Utc};
use querent_agent::chart::{Channel, FieldType, Sort};

use super::rows::ChartValue;

/// About how many ticks a line of numbers has, and at most how many one of time.
const TICKS: f64 = 5.0;
const MAX_TIME_TICKS: f64 = 8.0;
/// The largest number on an axis; differences of larger ones may not be finite.
const LARGEST: f64 = 1e300;

/// Maps values to positions from 0 to 1.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ChartAxis {
    /// Discrete values side by side.
    Band(Vec<String>),
    /// From the first number to the last, with ticks.
    Line { from: f64, to: f64, ticks: Vec<(f64, String)> },
}

impl ChartAxis {
    /// Makes the axis of a channel's values; `more` are numbers that it must span too.
    pub(super) fn new<'a>(channel: &Channel, values: impl Iterator<Item = &'a ChartValue>, more: &[f64]) -> Self {
        match channel.r#type {
            FieldType::Nominal | FieldType::Ordinal => ChartAxis::Band(labels(channel.sort, values)),
            FieldType::Temporal => {
                let (from, to) = range(values.filter_map(ChartValue::number)).unwrap_or((0.0, 1.0));
                let (from, to) = if from < to { (from, to) } else { (from - DAY / 2.0, to + DAY / 2.0) };
                ChartAxis::Line { from, to, ticks: time_ticks(from, to) }
            }
            FieldType::Quantitative => {
                let with_zero = channel.scale.and_then(|scale| scale.zero).unwrap_or(true).then_some(0.0);
                let numbers = values.filter_map(ChartValue::number).chain(more.iter().copied()).chain(with_zero);
                let (from, to) = range(numbers).unwrap_or((0.0, 1.0));
                number_line(from, to)
            }
        }
    }

    /// Returns the position of a value from 0 to 1; the middle of its band for a discrete value.
    pub(super) fn place(&self, cell: &ChartValue) -> Option<f64> {
        match self {
            ChartAxis::Band(labels) => {
                let label = cell.label();
                let index = labels.iter().position(|known| *known == label)?;
                Some((index as f64 + 0.5) / labels.len() as f64)
            }
            ChartAxis::Line { .. } => cell.number().map(|number| self.place_number(number)),
        }
    }

    /// Returns the position of a number, from 0 to 1 if it lies on the axis.
    pub(super) fn place_number(&self, number: f64) -> f64 {
        match self {
            ChartAxis::Band(_) => 0.0,
            ChartAxis::Line { from, to, .. } => (number.clamp(-LARGEST, LARGEST) - from) / (to - from),
        }
    }

    /// Returns the positions and labels of the ticks.
    pub(super) fn ticks(&self) -> Vec<(f64, &str)> {
        match self {
            ChartAxis::Band(labels) => {
                let count = labels.len() as f64;
                labels.iter().enumerate().map(|(index, label)| ((index as f64 + 0.5) / count, label.as_str())).collect()
            }
            ChartAxis::Line { ticks, .. } => {
                ticks.iter().map(|(number, label)| (self.place_number(*number), label.as_str())).collect()
            }
        }
    }

    pub(super) fn is_band(&self) -> bool {
        matches!(self, ChartAxis::Band(_))
    }
}

/// Returns the distinct values, in the order of the rows or sorted: numbers before strings.
pub(super) fn labels<'a>(sort: Sort, values: impl Iterator<Item = &'a ChartValue>) -> Vec<String> {
    let mut different: Vec<&ChartValue> = Vec::new();
    for value in values {
        if !different.contains(&value) {
            different.push(value);
        }
    }
    if sort == Sort::Natural {
        different.sort_by(|one, other| match (one, other) {
            (ChartValue::Number(one), ChartValue::Number(other)) => one.total_cmp(other),
            (ChartValue::Number(_), _) => std::cmp::Ordering::Less,
            (_, ChartValue::Number(_)) => std::cmp::Ordering::Greater,
            (one, other) => one.label().cmp(&other.label()),
        });
    }
    different.into_iter().map(ChartValue::label).collect()
}

fn range(numbers: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    numbers.map(|number| number.clamp(-LARGEST, LARGEST)).fold(None, |range, number| {
        Some(range.map_or((number, number), |(from, to): (f64, f64)| (from.min(number), to.max(number))))
    })
}

/// Makes an axis with ticks at round numbers around the range.
fn number_line(from: f64, to: f64) -> ChartAxis {
    let (from, to) =
        if from < to { (from, to) } else { (from - from.abs().max(1.0) / 2.0, to + to.abs().max(1.0) / 2.0) };
    let step = nice((to - from) / TICKS);
    let (first, last) = ((from / step).floor(), (to / step).ceil());
    let places = (last - first).clamp(1.0, 4.0 * TICKS) as u32;
    let ticks: Vec<(f64, String)> = (0..=places)
        .map(|index| {
            let number = (first + f64::from(index)) * step;
            (number, number_label(number, step))
        })
        .collect();
    ChartAxis::Line { from: first * step, to: (first + f64::from(places)) * step, ticks }
}

/// Returns 1, 2 or 5 times a power of ten, about `step`.
fn nice(step: f64) -> f64 {
    let power = 10.0_f64.powf(step.log10().floor());
    if !(power.is_normal() && step.is_normal()) {
        return 1.0;
    }
    let times = match step / power {
        times if times < 1.5 => 1.0,
        times if times < 3.5 => 2.0,
        times if times < 7.5 => 5.0,
        _ => 10.0,
    };
    power * times
}

/// Formats a number with as many decimals as the step needs; large ones in thousands, millions and so on.
pub(super) fn number_label(number: f64, step: f64) -> String {
    const SUFFIXES: [(f64, &str); 5] = [(1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    let size = number.abs();
    if size != 0.0 && !(1e-6..1e18).contains(&size) && !(1e-6..1e18).contains(&step) {
        return format!("{number:e}");
    }
    let (unit, suffix) =
        SUFFIXES.into_iter().find(|(unit, _)| step >= *unit / 10.0 && size >= *unit).unwrap_or((1.0, ""));
    let decimals = (-(step / unit).log10().floor()).clamp(0.0, 9.0) as usize;
    let text = format!("{:.decimals$}", number / unit);
    format!("{}{suffix}", if text.trim_matches(['-', '0', '.']).is_empty() { "0".to_owned() } else { text })
}

const SECOND: f64 = 1_000.0;
const MINUTE: f64 = 60.0 * SECOND;
const HOUR: f64 = 60.0 * MINUTE;
const DAY: f64 = 24.0 * HOUR;
const MONTH: f64 = 30.44 * DAY;

fn time_ticks(from: f64, to: f64) -> Vec<(f64, String)> {
    const STEPS: [(f64, &str); 15] = [
        (SECOND, "%H:%M:%S"),
        (5.0 * SECOND, "%H:%M:%S"),
        (15.0 * SECOND, "%H:%M:%S"),
        (MINUTE, "%H:%M"),
        (5.0 * MINUTE, "%H:%M"),
        (15.0 * MINUTE, "%H:%M"),
        (HOUR, "%b %d %H:%M"),
        (3.0 * HOUR, "%b %d %H:%M"),
        (6.0 * HOUR, "%b %d %H:%M"),
        (12.0 * HOUR, "%b %d %H:%M"),
        (DAY, "%b %d"),
        (2.0 * DAY, "%b %d"),
        (4.0 * DAY, "%b %d"),
        (7.0 * DAY, "%b %d"),
        (14.0 * DAY, "%b %d"),
    ];
    let span = to - from;
    let Some((step, format)) = STEPS.into_iter().find(|(step, _)| span / step <= MAX_TIME_TICKS) else {
        return month_ticks(from, to);
    };
    let first = (from / step).ceil();
    let ticks = (0..=(span / step) as u32).map(|index| (first + f64::from(index)) * step);
    ticks.filter(|at| *at <= to).filter_map(|at| Some((at, moment(at)?.format(format).to_string()))).collect()
}

/// Returns ticks on the first day of every n-th month.
fn month_ticks(from: f64, to: f64) -> Vec<(f64, String)> {
    const MONTHS: [i32; 10] = [1, 2, 3, 6, 12, 24, 60, 120, 240, 600];
    let months = (to - from) / MONTH;
    let step = MONTHS.into_iter().find(|step| months / f64::from(*step) <= MAX_TIME_TICKS).unwrap_or(12_000);
    let format = if step < 12 { "%b %Y" } else { "%Y" };
    let Some(start) = moment(from) else { return Vec::new() };
    let first = (start.year() * 12 + start.month0() as i32).div_euclid(step);
    let first_days = (0..64).filter_map(|index| {
        let month = (first + index) * step;
        let day = NaiveDate::from_ymd_opt(month.div_euclid(12), month.rem_euclid(12).unsigned_abs() + 1, 1)?;
        Some(Utc.from_utc_datetime(&day.and_hms_opt(0, 0, 0)?))
    });
    let ticks = first_days.map(|day| (day.timestamp_millis() as f64, day.format(format).to_string()));
    ticks.filter(|(at, _)| (from..=to).contains(at)).collect()
}

fn moment(milliseconds: f64) -> Option<DateTime<Utc>> {
    // The cast saturates; a number outside the calendar has no date.
    DateTime::from_timestamp_millis(milliseconds as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_numbers() {
        for (from, to, expected) in [
            (0.0, 58_665.0, vec!["0", "10k", "20k", "30k", "40k", "50k", "60k"]),
            (0.0, 1.0, vec!["0", "0.2", "0.4", "0.6", "0.8", "1.0"]),
            (-3.0, 7.0, vec!["-4", "-2", "0", "2", "4", "6", "8"]),
            (0.0, 0.0, vec!["-0.6", "-0.4", "-0.2", "0", "0.2", "0.4", "0.6"]),
            (0.0, 2_500_000.0, vec!["0", "500k", "1.0M", "1.5M", "2.0M", "2.5M"]),
        ] {
            let axis = number_line(from, to);
            let labels: Vec<&str> = axis.ticks().into_iter().map(|(_, label)| label).collect();
            assert_eq!(labels, expected, "{from} to {to}");
        }
        for (from, to) in [(-LARGEST, LARGEST), (0.0, 5e-324), (1e16, 1e16 + 2.0), (0.0, LARGEST)] {
            let axis = number_line(from, to);
            assert!(axis.ticks().iter().all(|(place, _)| (-0.1..=1.1).contains(place)), "{from} to {to}: {axis:?}");
        }
    }

    #[test]
    fn ticks_of_time_begin_days_months_and_years() {
        let at = |text: &str| text.parse::<DateTime<Utc>>().unwrap().timestamp_millis() as f64;
        for (from, to, expected) in [
            (
                "2013-01-01T00:00:00Z",
                "2013-12-01T00:00:00Z",
                vec!["Jan 2013", "Mar 2013", "May 2013", "Jul 2013", "Sep 2013", "Nov 2013"],
            ),
            (
                "2013-01-01T00:00:00Z",
                "2013-01-04T00:00:00Z",
                vec![
                    "Jan 01 00:00",
                    "Jan 01 12:00",
                    "Jan 02 00:00",
                    "Jan 02 12:00",
                    "Jan 03 00:00",
                    "Jan 03 12:00",
                    "Jan 04 00:00",
                ],
            ),
            (
                "1950-01-01T00:00:00Z",
                "1990-01-01T00:00:00Z",
                vec!["1950", "1955", "1960", "1965", "1970", "1975", "1980", "1985", "1990"],
            ),
        ] {
            let labels: Vec<String> = time_ticks(at(from), at(to)).into_iter().map(|(_, label)| label).collect();
            assert_eq!(labels, expected, "{from} to {to}");
        }
    }
}
