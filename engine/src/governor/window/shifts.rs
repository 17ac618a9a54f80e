//! `lag` and `lead` that ignore nulls. DataFusion's lose values where nulls follow the last one that they know, and have none for
//! `lead` where another window of the query takes its partition as a whole. Here they are computed over whole partitions.

use arrow::array::{Array, ArrayRef};
use arrow::compute::interleave;
use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::PartitionEvaluator;
use datafusion::logical_expr::function::PartitionEvaluatorArgs;
use datafusion::physical_expr::expressions::Literal;

/// The evaluator of such a call.
#[derive(Debug)]
pub(super) struct ShiftOverNulls {
    /// How many values that are not null lie between: positive for those that follow, negative for those before.
    distance: i64,
    default: ScalarValue,
}

impl ShiftOverNulls {
    /// Returns the evaluator of a call; `None` where it is another function, counts nulls, or has arguments that are no literals,
    /// which the function itself refuses.
    pub(super) fn of_call(function: &str, args: &PartitionEvaluatorArgs<'_>) -> Option<Self> {
        if !args.ignore_nulls() {
            return None;
        }
        let direction = match function {
            "lag" => -1,
            "lead" => 1,
            _ => return None,
        };
        let literal = |index: usize, otherwise: ScalarValue| match args.input_exprs().get(index) {
            Some(expr) => expr.downcast_ref::<Literal>().map(|literal| literal.value().clone()),
            None => Some(otherwise),
        };
        let ScalarValue::Int64(Some(offset)) =
            literal(1, ScalarValue::Int64(Some(1)))?.cast_to(&DataType::Int64).ok()?
        else {
            return None;
        };
        let direction = if args.is_reversed() { -direction } else { direction };
        Some(Self { distance: offset.saturating_mul(direction), default: literal(2, ScalarValue::Null)? })
    }
}

impl PartitionEvaluator for ShiftOverNulls {
    fn evaluate_all(&mut self, values: &[ArrayRef], _num_rows: usize) -> Result<ArrayRef> {
        let Some(values) = values.first() else {
            return Err(DataFusionError::Internal("lag and lead have an argument".into()));
        };
        let default = self.default.cast_to(values.data_type())?.to_array()?;
        let rows = places(values, self.distance).into_iter();
        let slots: Vec<(usize, usize)> = rows.map(|row| row.map_or((1, 0), |row| (0, row))).collect();
        Ok(interleave(&[values.as_ref(), default.as_ref()], &slots)?)
    }
}

/// Returns for each row which row's value is that far from it; `None` where there is none.
fn places(values: &ArrayRef, distance: i64) -> Vec<Option<usize>> {
    let nulls = values.logical_nulls();
    let is_known = |row: usize| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
    let known: Vec<usize> = (0..values.len()).filter(|row| is_known(*row)).collect();
    let steps = usize::try_from(distance.unsigned_abs()).unwrap_or(usize::MAX);
    let mut before = 0;
    let mut places = Vec::with_capacity(values.len());
    for row in 0..values.len() {
        let through = before + usize::from(is_known(row));
        let place = match distance {
            0 => Some(row),
            1.. => through.checked_add(steps - 1).and_then(|place| known.get(place).copied()),
            _ => before.checked_sub(steps).and_then(|place| known.get(place).copied()),
        };
        places.push(place);
        before = through;
    }
    places
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::Int64Array;

    use super::*;

    #[test]
    fn nulls_are_passed_over() {
        let some: ArrayRef = Arc::new(Int64Array::from(vec![Some(10), None, Some(30), None, None, Some(60), None]));
        assert_eq!(places(&some, 1), [Some(2), Some(2), Some(5), Some(5), Some(5), None, None]);
        assert_eq!(places(&some, 2), [Some(5), Some(5), None, None, None, None, None]);
        assert_eq!(places(&some, -1), [None, Some(0), Some(0), Some(2), Some(2), Some(2), Some(5)]);
        assert_eq!(places(&some, -2), [None, None, None, Some(0), Some(0), Some(0), Some(2)]);
        let all: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
        assert_eq!(places(&all, 1), [Some(1), None]);
        assert_eq!(places(&all, 0), [Some(0), Some(1)]);
        assert_eq!(places(&all, i64::MIN), [None, None]);
    }
}
