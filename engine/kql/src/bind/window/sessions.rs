//! The window function of `row_window_session`: the start of the session that each row is in.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array};
use arrow::datatypes::{DataType, Field, FieldRef, Int64Type};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::function::{PartitionEvaluatorArgs, WindowUDFFieldArgs};
use datafusion::logical_expr::{PartitionEvaluator, Signature, Volatility, WindowUDF, WindowUDFImpl};

/// Returns the function. It takes the value, the greatest distances from the first value of a session and from the value
/// before, and whether a session starts here in any case.
pub(crate) fn sessions_udwf() -> Arc<WindowUDF> {
    let types = vec![DataType::Int64, DataType::Int64, DataType::Int64, DataType::Boolean];
    Arc::new(WindowUDF::new_from_impl(Sessions { signature: Signature::exact(types, Volatility::Immutable) }))
}

/// Whether a window function is this one.
pub(crate) fn is_sessions_function(function: &WindowUDF) -> bool {
    (function.inner().as_ref() as &dyn std::any::Any).is::<Sessions>()
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Sessions {
    signature: Signature,
}

impl WindowUDFImpl for Sessions {
    fn name(&self) -> &str {
        "kql_row_window_session"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn field(&self, arguments: WindowUDFFieldArgs) -> Result<FieldRef> {
        Ok(Arc::new(Field::new(arguments.name(), DataType::Int64, true)))
    }

    fn partition_evaluator(&self, _arguments: PartitionEvaluatorArgs) -> Result<Box<dyn PartitionEvaluator>> {
        Ok(Box::new(SessionsOfPartition))
    }
}

#[derive(Debug)]
struct SessionsOfPartition;

impl PartitionEvaluator for SessionsOfPartition {
    fn evaluate_all(&mut self, arguments: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
        let [values, from_first, from_previous, restarts] = arguments else {
            return Err(DataFusionError::Internal("kql_row_window_session takes four arguments".into()));
        };
        let restarts = restarts.as_boolean();
        let long = |array: &ArrayRef, row: usize| {
            let longs = array.as_primitive::<Int64Type>();
            (!longs.is_null(row)).then(|| longs.value(row))
        };
        let (mut start, mut previous): (Option<i64>, Option<i64>) = (None, None);
        let mut starts = Vec::with_capacity(rows);
        for row in 0..rows {
            let value = long(values, row);
            let is_past = |since: Option<i64>, distance: Option<i64>| match (value, since, distance) {
                (Some(value), Some(since), Some(distance)) => value >= since.saturating_add(distance),
                (Some(_), None, _) => true,
                _ => false,
            };
            let is_new = is_past(start, long(from_first, row))
                || is_past(previous, long(from_previous, row))
                || (restarts.is_valid(row) && restarts.value(row));
            if is_new || value.is_none() {
                start = value;
            }
            previous = value;
            starts.push(start);
        }
        Ok(Arc::new(Int64Array::from(starts)))
    }
}
