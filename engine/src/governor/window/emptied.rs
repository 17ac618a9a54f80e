//! Aggregates over a sliding window that all values have left. DataFusion 54 keeps the last minimum or maximum then, and has a zero
//! for `bit_xor`. They begin anew.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef};
use arrow::buffer::NullBuffer;
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::{Accumulator, AggregateUDF};

use super::accumulator::OwnedAccumulatorArgs;

/// The aggregates of which something stays behind.
const REMEMBERING: [&str; 3] = ["min", MAX, "bit_xor"];
/// The one of them that keeps nulls, too, until they leave the window.
const MAX: &str = "max";

/// An accumulator that begins anew where no value is left in its window.
#[derive(Debug)]
pub(super) struct EmptiedAccumulator {
    function: Arc<AggregateUDF>,
    args: OwnedAccumulatorArgs,
    inner: Box<dyn Accumulator>,
    /// The rows of the window that the aggregate keeps.
    rows: usize,
}

/// Returns a sliding accumulator of a function that begins anew, where it has to.
pub(super) fn emptied(
    function: &Arc<AggregateUDF>,
    args: &OwnedAccumulatorArgs,
    inner: Box<dyn Accumulator>,
) -> Box<dyn Accumulator> {
    match REMEMBERING.contains(&function.name()) {
        true => Box::new(EmptiedAccumulator { function: Arc::clone(function), args: args.clone(), inner, rows: 0 }),
        false => inner,
    }
}

/// Returns how many rows have a value in every column.
fn known_rows(values: &[ArrayRef]) -> usize {
    let Some(rows) = values.first().map(|values| values.len()) else { return 0 };
    let nulls = values.iter().fold(None, |nulls: Option<NullBuffer>, values| {
        NullBuffer::union(nulls.as_ref(), values.logical_nulls().as_ref())
    });
    rows - nulls.map_or(0, |nulls| nulls.null_count())
}

impl EmptiedAccumulator {
    /// Returns how many rows of some the aggregate keeps.
    fn kept_rows(&self, values: &[ArrayRef]) -> usize {
        match self.function.name() {
            MAX => values.first().map_or(0, |values| values.len()),
            _ => known_rows(values),
        }
    }
}

impl Accumulator for EmptiedAccumulator {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.rows += self.kept_rows(values);
        self.inner.update_batch(values)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.rows = self.rows.saturating_sub(self.kept_rows(values));
        if self.rows == 0 {
            self.inner = self.function.create_sliding_accumulator(self.args.borrowed())?;
            return Ok(());
        }
        self.inner.retract_batch(values)
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.inner.merge_batch(states)
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.inner.state()
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.inner.evaluate()
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.inner.size()
    }
}
