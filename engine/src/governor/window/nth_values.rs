//! `nth_value` whose number is computed for each row, or is none of a row. DataFusion 54 takes constants only, and counts from a frame's
//! end where they are negative; as in DuckDB there is no such row.

use std::ops::Range;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type};
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::PartitionEvaluator;
use datafusion::logical_expr::function::PartitionEvaluatorArgs;
use datafusion::physical_expr::expressions::Literal;

/// The evaluator of such a call. It is given the rows of a partition in their order.
#[derive(Debug)]
pub(super) struct NthValue {
    ignores_nulls: bool,
    is_reversed: bool,
    row: usize,
    /// Which value is wanted, of each row.
    numbers: Option<ArrayRef>,
}

impl NthValue {
    /// Returns the evaluator of a call; `None` where it is DataFusion's, or of another function.
    pub(super) fn of_call(function: &str, args: &PartitionEvaluatorArgs<'_>) -> Option<Self> {
        let number = args.input_exprs().get(1).filter(|_| function == "nth_value")?;
        let is_plain = number.downcast_ref::<Literal>().is_some_and(|literal| {
            matches!(literal.value().cast_to(&DataType::Int64), Ok(ScalarValue::Int64(Some(number))) if number > 0)
        });
        let (ignores_nulls, is_reversed) = (args.ignore_nulls(), args.is_reversed());
        (!is_plain).then_some(Self { ignores_nulls, is_reversed, row: 0, numbers: None })
    }

    /// Returns the row of a frame whose value is wanted.
    fn place(&self, number: Option<i64>, values: &ArrayRef, frame: &Range<usize>) -> Option<usize> {
        let skipped = usize::try_from(number?).ok()?.checked_sub(1)?;
        let nulls = values.logical_nulls().filter(|_| self.ignores_nulls);
        let is_counted = |row: &usize| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(*row));
        match self.is_reversed {
            true => frame.clone().rev().filter(is_counted).nth(skipped),
            false => frame.clone().filter(is_counted).nth(skipped),
        }
    }
}

impl PartitionEvaluator for NthValue {
    fn evaluate(&mut self, values: &[ArrayRef], range: &Range<usize>) -> Result<ScalarValue> {
        let [values, numbers, ..] = values else {
            return Err(DataFusionError::Internal("nth_value has two arguments".into()));
        };
        let numbers = match &mut self.numbers {
            Some(numbers) => numbers,
            none => none.insert(cast(numbers, &DataType::Int64)?),
        };
        let numbers = numbers.as_primitive::<Int64Type>();
        let number = numbers.is_valid(self.row).then(|| numbers.value(self.row));
        self.row += 1;
        match self.place(number, values, range) {
            Some(row) => ScalarValue::try_from_array(values, row),
            None => ScalarValue::try_from(values.data_type()),
        }
    }

    fn uses_window_frame(&self) -> bool {
        true
    }
}
