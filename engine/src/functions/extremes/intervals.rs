//! `min` and `max` of intervals, by their lengths with months of 30 days and days of 24 hours, as they are compared and sorted.
//! Arrow's order is by months, then days, then what is left.

use std::cmp::Ordering;

use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::{IntervalMonthDayNano, IntervalMonthDayNanoType};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::Accumulator;

use super::ExtremeSide;
use crate::functions::elapsed::length;

/// The shortest or the longest of intervals.
#[derive(Debug)]
pub(super) struct IntervalExtreme {
    side: ExtremeSide,
    /// Its length, and the interval itself.
    extreme: Option<(i64, IntervalMonthDayNano)>,
}

impl IntervalExtreme {
    pub(super) fn new(side: ExtremeSide) -> Self {
        Self { side, extreme: None }
    }
}

impl Accumulator for IntervalExtreme {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let Some(intervals) = values.first() else { return Ok(()) };
        let beyond = match self.side {
            ExtremeSide::Least => Ordering::Less,
            ExtremeSide::Greatest => Ordering::Greater,
        };
        for interval in intervals.as_primitive::<IntervalMonthDayNanoType>().iter().flatten() {
            let own = length(interval)?;
            if self.extreme.is_none_or(|(before, _)| own.cmp(&before) == beyond) {
                self.extreme = Some((own, interval));
            }
        }
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.update_batch(states)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(ScalarValue::IntervalMonthDayNano(self.extreme.map(|(_, interval)| interval)))
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.evaluate()?])
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }
}
