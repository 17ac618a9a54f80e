//! Aggregates over a sliding window that lose digits when rows are taken out of them: a variance after a large number has left is
//! wrong in its first digits or NaN, and one after NaN has left stays NaN. Here rows are only added, and states put together: of the
//! older rows of the window there is a state from each of them on, which leaves with its row, and of the newer ones a state of all.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef};
use arrow::compute::concat;
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::{Accumulator, AggregateUDF};

use super::accumulator::OwnedAccumulatorArgs;

/// The aggregates whose accumulators take rows out by subtracting them from means and sums of squares.
const SUBTRACTING: [&str; 15] = [
    "var",
    "var_pop",
    "stddev",
    "stddev_pop",
    "covar_samp",
    "covar_pop",
    "corr",
    "regr_slope",
    "regr_intercept",
    "regr_r2",
    "regr_avgx",
    "regr_avgy",
    "regr_sxx",
    "regr_syy",
    "regr_sxy",
];

/// The states that are kept in one column: more would be single values for a while.
const CHUNK: usize = 1024;

/// Returns whether a function is one of those.
pub(super) fn subtracts(function: &AggregateUDF) -> bool {
    SUBTRACTING.contains(&function.name())
}

/// An accumulator that puts states together.
#[derive(Debug)]
pub(super) struct MergedAccumulator {
    function: Arc<AggregateUDF>,
    args: OwnedAccumulatorArgs,
    /// The states from each of the older rows on, in columns of at most [`CHUNK`]; that of the oldest is the last.
    older: Vec<Vec<ArrayRef>>,
    /// How many of the last columns are left.
    left: usize,
    /// The columns of the newer rows, in order.
    newer: Vec<Vec<ArrayRef>>,
    of_newer: Box<dyn Accumulator>,
}

impl MergedAccumulator {
    /// Errors: those of the function's own accumulator.
    pub(super) fn new(function: Arc<AggregateUDF>, args: OwnedAccumulatorArgs) -> Result<Self> {
        let of_newer = function.accumulator(args.borrowed())?;
        Ok(Self { function, args, older: Vec::new(), left: 0, newer: Vec::new(), of_newer })
    }

    fn fresh(&self) -> Result<Box<dyn Accumulator>> {
        self.function.accumulator(self.args.borrowed())
    }

    /// Makes older rows of the newer ones.
    fn age(&mut self) -> Result<()> {
        let columns = self.newer.first().map_or(0, Vec::len);
        let columns = (0..columns).map(|column| {
            let parts: Vec<&dyn Array> =
                self.newer.iter().filter_map(|batch| batch.get(column)).map(AsRef::as_ref).collect();
            concat(&parts)
        });
        let columns = columns.collect::<std::result::Result<Vec<ArrayRef>, _>>()?;
        let mut from_here = self.fresh()?;
        let mut states = Vec::with_capacity(CHUNK);
        for row in (0..columns.first().map_or(0, |column| column.len())).rev() {
            let one: Vec<ArrayRef> = columns.iter().map(|column| column.slice(row, 1)).collect();
            from_here.update_batch(&one)?;
            states.push(from_here.state()?);
            if states.len() == CHUNK {
                self.keep(&states)?;
                states.clear();
            }
        }
        self.keep(&states)?;
        self.newer.clear();
        self.of_newer = self.fresh()?;
        Ok(())
    }

    fn keep(&mut self, states: &[Vec<ScalarValue>]) -> Result<()> {
        let Some(first) = states.first() else { return Ok(()) };
        let columns = (0..first.len())
            .map(|column| ScalarValue::iter_to_array(states.iter().filter_map(|state| state.get(column).cloned())));
        self.older.push(columns.collect::<Result<_>>()?);
        self.left = states.len();
        Ok(())
    }

    fn merged(&mut self) -> Result<Box<dyn Accumulator>> {
        let mut all = self.fresh()?;
        if let Some(columns) = self.older.last() {
            let oldest: Vec<ArrayRef> = columns.iter().map(|column| column.slice(self.left - 1, 1)).collect();
            all.merge_batch(&oldest)?;
        }
        let newer = self.of_newer.state()?.iter().map(ScalarValue::to_array).collect::<Result<Vec<_>>>()?;
        all.merge_batch(&newer)?;
        Ok(all)
    }
}

impl Accumulator for MergedAccumulator {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.newer.push(values.to_vec());
        self.of_newer.update_batch(values)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        for _ in 0..values.first().map_or(0, |column| column.len()) {
            if self.older.is_empty() {
                self.age()?;
            }
            self.left = self.left.saturating_sub(1);
            if self.left == 0 {
                self.older.pop();
                self.left = self.older.last().and_then(|columns| columns.first()).map_or(0, |column| column.len());
            }
        }
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.merged()?.evaluate()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.merged()?.state()
    }

    fn merge_batch(&mut self, _states: &[ArrayRef]) -> Result<()> {
        Err(datafusion::error::DataFusionError::Internal("the rows of a frame are not merged".into()))
    }

    fn size(&self) -> usize {
        let columns = self.older.iter().chain(&self.newer).flatten();
        let bytes: usize = columns.map(|column| column.get_array_memory_size()).sum();
        size_of::<Self>() + bytes + self.of_newer.size()
    }
}
