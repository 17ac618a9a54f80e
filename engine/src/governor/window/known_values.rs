//! `first_value` and `last_value` that ignore nulls. DataFusion's look through the whole frame for each row, which for a frame that
//! begins with the partition is all rows until there: a table of a million rows, or a join ASOF of one, was never done.
//!
//! Here a frame that grows is looked through once, and any other from its end that matters, by words of bits.

use std::ops::Range;

use arrow::array::{Array, ArrayRef};
use arrow::buffer::NullBuffer;
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::PartitionEvaluator;
use datafusion::logical_expr::function::PartitionEvaluatorArgs;
use datafusion::logical_expr::window_state::WindowAggState;

/// The rows that are looked through at a time from a frame's end.
const BLOCK_ROWS: usize = 4_096;

/// Which value of a frame is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FrameEnd {
    First,
    Last,
}

impl FrameEnd {
    /// Returns the end that a call wants; `None` where it is another function, or counts nulls.
    pub(super) fn of_call(function: &str, args: &PartitionEvaluatorArgs<'_>) -> Option<Self> {
        match function {
            _ if !args.ignore_nulls() => None,
            "first_value" => Some(Self::First),
            "last_value" => Some(Self::Last),
            _ => None,
        }
    }
}

/// The evaluator of such a call.
#[derive(Debug)]
pub(super) struct KnownValue {
    end: FrameEnd,
    /// DataFusion's own, which says how it is run. It knows a first value that stays, and then drops the rows before.
    inner: Box<dyn PartitionEvaluator>,
    is_settled: bool,
    /// What is known of frames that all begin with the partition: the rows that were looked through, and the row that was found.
    grown: Option<GrownFrame>,
}

#[derive(Debug, Default)]
struct GrownFrame {
    rows: usize,
    found: Option<usize>,
}

impl KnownValue {
    pub(super) fn new(end: FrameEnd, inner: Box<dyn PartitionEvaluator>) -> Self {
        Self { end, inner, is_settled: false, grown: Some(GrownFrame::default()) }
    }

    /// Returns the row whose value is wanted.
    fn place(&mut self, nulls: Option<&NullBuffer>, frame: &Range<usize>) -> Option<usize> {
        // Rows are dropped, and numbered anew, only once a frame has begun after the first of them.
        let Some(grown) = self.grown.as_mut().filter(|grown| frame.start == 0 && frame.end >= grown.rows) else {
            self.grown = None;
            return known_row(nulls, frame, self.end);
        };
        let added = grown.rows..frame.end;
        grown.rows = frame.end;
        if self.end == FrameEnd::Last || grown.found.is_none() {
            grown.found = known_row(nulls, &added, self.end).or(grown.found);
        }
        grown.found
    }
}

/// Returns the first or the last of some rows that is not null.
fn known_row(nulls: Option<&NullBuffer>, rows: &Range<usize>, end: FrameEnd) -> Option<usize> {
    let Some(nulls) = nulls else {
        let row = match end {
            FrameEnd::First => Some(rows.start),
            FrameEnd::Last => rows.end.checked_sub(1),
        };
        return row.filter(|row| rows.contains(row));
    };
    let known = |rows: &Range<usize>| nulls.inner().slice(rows.start, rows.end - rows.start);
    match end {
        FrameEnd::First if rows.is_empty() => None,
        FrameEnd::First => known(rows).set_indices().next().map(|row| rows.start + row),
        FrameEnd::Last => {
            let mut until = rows.end;
            while until > rows.start {
                let block = until.saturating_sub(BLOCK_ROWS).max(rows.start)..until;
                let bits = known(&block);
                if bits.count_set_bits() > 0 {
                    return bits.set_indices().last().map(|row| block.start + row);
                }
                until = block.start;
            }
            None
        }
    }
}

impl PartitionEvaluator for KnownValue {
    fn memoize(&mut self, state: &mut WindowAggState) -> Result<()> {
        self.is_settled = self.end == FrameEnd::First;
        self.inner.memoize(state)
    }

    fn evaluate(&mut self, values: &[ArrayRef], range: &Range<usize>) -> Result<ScalarValue> {
        if self.is_settled {
            return self.inner.evaluate(values, range);
        }
        let Some(values) = values.first() else {
            return Err(DataFusionError::Internal("first_value and last_value have an argument".into()));
        };
        match self.place(values.nulls(), range) {
            Some(row) => ScalarValue::try_from_array(values, row),
            None => ScalarValue::try_from(values.data_type()),
        }
    }

    fn is_causal(&self) -> bool {
        self.inner.is_causal()
    }

    fn supports_bounded_execution(&self) -> bool {
        self.inner.supports_bounded_execution()
    }

    fn uses_window_frame(&self) -> bool {
        self.inner.uses_window_frame()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::Int64Array;
    use datafusion::functions_window::nth_value::last_value_udwf;

    use super::*;

    /// As it is by definition.
    fn naive(values: &Int64Array, frame: &Range<usize>, end: FrameEnd) -> Option<usize> {
        let mut known = frame.clone().filter(|row| values.is_valid(*row));
        match end {
            FrameEnd::First => known.next(),
            FrameEnd::Last => known.next_back(),
        }
    }

    #[test]
    fn frames_that_grow_and_frames_that_move_find_their_ends() {
        let rows = 3 * BLOCK_ROWS;
        let dense = |row: usize| row % 3 == 1;
        let sparse = |row: usize| row == 7 || row == BLOCK_ROWS * 2 + 1;
        for is_known in [&dense as &dyn Fn(usize) -> bool, &sparse, &|_: usize| false, &|_: usize| true] {
            let values: Int64Array = (0..rows).map(|row| is_known(row).then_some(row as i64)).collect();
            let array: ArrayRef = Arc::new(values.clone());
            for end in [FrameEnd::First, FrameEnd::Last] {
                let inner =
                    || last_value_udwf().partition_evaluator_factory(PartitionEvaluatorArgs::default()).unwrap();
                let mut growing = KnownValue::new(end, inner());
                let mut moving = KnownValue::new(end, inner());
                for row in (0..rows).step_by(17) {
                    let grown = 0..row;
                    assert_eq!(growing.place(array.nulls(), &grown), naive(&values, &grown, end), "{end:?} {grown:?}");
                    let moved = row.saturating_sub(50)..(row + 20).min(rows);
                    assert_eq!(moving.place(array.nulls(), &moved), naive(&values, &moved, end), "{end:?} {moved:?}");
                }
            }
        }
    }
}
