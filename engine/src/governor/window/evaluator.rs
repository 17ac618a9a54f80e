//! Evaluators of window functions that are no aggregates.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::ArrayRef;
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::PartitionEvaluator;
use datafusion::logical_expr::window_state::WindowAggState;

use crate::limits::{InterruptWatch, WindowMemory, array_bytes, scalar_bytes};

/// A value is copied once more when the values of all rows become a column.
const COPIES: usize = 2;
/// Values that are smaller in memory than any that is worth counting.
const SMALL_BYTES: usize = 64;
/// Defaults that are smaller may stand in every row.
const LONG_DEFAULT_BYTES: usize = 4 << 10;

/// An evaluator whose values are charged to the window that it works for.
#[derive(Debug)]
pub(super) struct GovernedEvaluator {
    inner: Box<dyn PartitionEvaluator>,
    watch: InterruptWatch,
    memory: Option<Arc<WindowMemory>>,
    /// The longest literal among its arguments, which may become the value of any row.
    default_bytes: usize,
}

impl GovernedEvaluator {
    pub(super) fn new(inner: Box<dyn PartitionEvaluator>, default_bytes: usize) -> Self {
        let (watch, memory) = (InterruptWatch::of_current_query(), WindowMemory::current());
        Self { inner, watch, memory, default_bytes }
    }

    fn made(&self, bytes: usize) -> Result<()> {
        self.memory.as_ref().map_or(Ok(()), |memory| memory.made(bytes))
    }
}

#[warn(clippy::missing_trait_methods)]
impl PartitionEvaluator for GovernedEvaluator {
    fn memoize(&mut self, state: &mut WindowAggState) -> Result<()> {
        self.inner.memoize(state)
    }

    fn get_range(&self, idx: usize, n_rows: usize) -> Result<Range<usize>> {
        self.inner.get_range(idx, n_rows)
    }

    fn is_causal(&self) -> bool {
        self.inner.is_causal()
    }

    fn evaluate_all(&mut self, values: &[ArrayRef], num_rows: usize) -> Result<ArrayRef> {
        self.watch.check()?;
        if self.default_bytes > LONG_DEFAULT_BYTES {
            self.made(self.default_bytes.saturating_mul(num_rows))?;
        }
        let made = self.inner.evaluate_all(values, num_rows)?;
        self.made(array_bytes(made.as_ref()))?;
        Ok(made)
    }

    fn evaluate(&mut self, values: &[ArrayRef], range: &Range<usize>) -> Result<ScalarValue> {
        self.watch.check()?;
        let value = self.inner.evaluate(values, range)?;
        let bytes = scalar_bytes(&value);
        if bytes > SMALL_BYTES {
            self.made(bytes.saturating_mul(COPIES))?;
        }
        Ok(value)
    }

    fn evaluate_all_with_rank(&self, num_rows: usize, ranks_in_partition: &[Range<usize>]) -> Result<ArrayRef> {
        self.inner.evaluate_all_with_rank(num_rows, ranks_in_partition)
    }

    fn supports_bounded_execution(&self) -> bool {
        self.inner.supports_bounded_execution()
    }

    fn uses_window_frame(&self) -> bool {
        self.inner.uses_window_frame()
    }

    fn include_rank(&self) -> bool {
        self.inner.include_rank()
    }
}
