//! `lag` and `lead` that ignore nulls, or whose other arguments are computed for each row. DataFusion's lose values where nulls follow
//! the last one that they know, have none for `lead` where another window of the query takes its partition as a whole, and know
//! constants only. Here they are computed over whole partitions.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, new_null_array};
use arrow::buffer::NullBuffer;
use arrow::compute::{CastOptions, cast, cast_with_options, interleave};
use arrow::datatypes::{DataType, Int64Type};
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::PartitionEvaluator;
use datafusion::logical_expr::function::PartitionEvaluatorArgs;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Literal;

/// The evaluator of such a call.
#[derive(Debug)]
pub(super) struct Shift {
    ignores_nulls: bool,
    /// Forwards, or else backwards.
    direction: i64,
    offset: Argument,
    default: Argument,
}

/// An argument behind the value.
#[derive(Debug)]
enum Argument {
    Constant(ScalarValue),
    /// That of each row, by its place among the arguments.
    Computed(usize),
}

impl Argument {
    fn of_call(args: &[Arc<dyn PhysicalExpr>], place: usize, otherwise: ScalarValue) -> Self {
        match args.get(place) {
            None => Self::Constant(otherwise),
            Some(expr) => match expr.downcast_ref::<Literal>() {
                Some(literal) => Self::Constant(literal.value().clone()),
                None => Self::Computed(place),
            },
        }
    }

    /// Returns its values: one for all rows where it is a constant.
    fn values(&self, arguments: &[ArrayRef]) -> Result<ArrayRef> {
        match self {
            Self::Constant(value) => value.to_array(),
            Self::Computed(place) => argument(arguments, *place).map(Arc::clone),
        }
    }
}

fn argument(arguments: &[ArrayRef], place: usize) -> Result<&ArrayRef> {
    arguments.get(place).ok_or_else(|| DataFusionError::Internal("lag and lead have their arguments".into()))
}

/// Returns whether arguments of `lag` or `lead` behind the value are computed for each row.
pub(super) fn has_computed_arguments(args: &[Arc<dyn PhysicalExpr>]) -> bool {
    args.iter().skip(1).any(|expr| !expr.is::<Literal>())
}

impl Shift {
    /// Returns the evaluator of a call; `None` where it is one of DataFusion's, or of another function.
    pub(super) fn of_call(function: &str, args: &PartitionEvaluatorArgs<'_>) -> Option<Self> {
        let direction = match function {
            "lag" => -1,
            "lead" => 1,
            _ => return None,
        };
        let direction = if args.is_reversed() { -direction } else { direction };
        let offset = Argument::of_call(args.input_exprs(), 1, ScalarValue::Int64(Some(1)));
        let default = Argument::of_call(args.input_exprs(), 2, ScalarValue::Null);
        let is_plain = match (&offset, &default) {
            (Argument::Constant(offset), Argument::Constant(_)) => !offset.is_null() && !args.ignore_nulls(),
            _ => false,
        };
        (!is_plain).then_some(Self { ignores_nulls: args.ignore_nulls(), direction, offset, default })
    }
}

impl PartitionEvaluator for Shift {
    fn evaluate_all(&mut self, arguments: &[ArrayRef], num_rows: usize) -> Result<ArrayRef> {
        let values = argument(arguments, 0)?;
        let default = self.default.values(arguments)?;
        // A null has the type of what stands in its place.
        let values = match values.data_type() {
            DataType::Null => new_null_array(default.data_type(), num_rows),
            _ => Arc::clone(values),
        };
        let options = CastOptions { safe: false, ..CastOptions::default() };
        let offsets = cast_with_options(&self.offset.values(arguments)?, &DataType::Int64, &options)?;
        let offsets = offsets.as_primitive::<Int64Type>();
        let distance = |row: usize| {
            let row = if offsets.len() == 1 { 0 } else { row };
            offsets.is_valid(row).then(|| offsets.value(row).saturating_mul(self.direction))
        };
        let nulls = values.logical_nulls().filter(|_| self.ignores_nulls);
        let rows = places(num_rows, nulls.as_ref(), distance).into_iter().enumerate();
        let default = cast(&default, values.data_type())?;
        let nothing = new_null_array(values.data_type(), 1);
        let slots: Vec<(usize, usize)> = rows
            .map(|(row, place)| match place {
                ShiftSource::Row(found) => (0, found),
                ShiftSource::Default if default.len() == 1 => (1, 0),
                ShiftSource::Default => (1, row),
                ShiftSource::Nowhere => (2, 0),
            })
            .collect();
        Ok(interleave(&[values.as_ref(), default.as_ref(), nothing.as_ref()], &slots)?)
    }
}

/// Where the value of a row comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ShiftSource {
    Row(usize),
    /// There is no row so far away.
    Default,
    /// How far is not known.
    Nowhere,
}

/// Returns for each row which row's value is that far from it, counting those that are not null.
fn places(rows: usize, nulls: Option<&NullBuffer>, distance: impl Fn(usize) -> Option<i64>) -> Vec<ShiftSource> {
    let is_known = |row: usize| nulls.is_none_or(|nulls| nulls.is_valid(row));
    let known: Vec<usize> = (0..rows).filter(|row| is_known(*row)).collect();
    let mut before = 0;
    let mut places = Vec::with_capacity(rows);
    for row in 0..rows {
        let through = before + usize::from(is_known(row));
        let place = distance(row).map(|distance| {
            let steps = usize::try_from(distance.unsigned_abs()).unwrap_or(usize::MAX);
            match distance {
                0 => Some(row),
                1.. => through.checked_add(steps - 1).and_then(|place| known.get(place).copied()),
                _ => before.checked_sub(steps).and_then(|place| known.get(place).copied()),
            }
        });
        places.push(match place {
            Some(Some(found)) => ShiftSource::Row(found),
            Some(None) => ShiftSource::Default,
            None => ShiftSource::Nowhere,
        });
        before = through;
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rows that values come from, of rows of which these have one.
    fn found(known: &[bool], distance: impl Fn(usize) -> Option<i64>) -> Vec<Option<usize>> {
        let places = places(known.len(), Some(&NullBuffer::from(known.to_vec())), distance).into_iter();
        places.map(|place| if let ShiftSource::Row(row) = place { Some(row) } else { None }).collect()
    }

    #[test]
    fn nulls_are_passed_over() {
        let some = [true, false, true, false, false, true, false];
        assert_eq!(found(&some, |_| Some(1)), [Some(2), Some(2), Some(5), Some(5), Some(5), None, None]);
        assert_eq!(found(&some, |_| Some(2)), [Some(5), Some(5), None, None, None, None, None]);
        assert_eq!(found(&some, |_| Some(-1)), [None, Some(0), Some(0), Some(2), Some(2), Some(2), Some(5)]);
        assert_eq!(found(&some, |_| Some(-2)), [None, None, None, Some(0), Some(0), Some(0), Some(2)]);
        assert_eq!(found(&[true; 2], |_| Some(1)), [Some(1), None]);
        assert_eq!(found(&[true; 2], |_| Some(0)), [Some(0), Some(1)]);
        assert_eq!(found(&[true; 2], |_| Some(i64::MIN)), [None, None]);
    }

    #[test]
    fn each_row_may_have_a_distance_of_its_own() {
        assert_eq!(found(&[true; 4], |row| Some(-(row as i64))), [Some(0); 4]);
        let rows = places(2, None, |row| (row == 1).then_some(1));
        assert_eq!(rows, [ShiftSource::Nowhere, ShiftSource::Default]);
    }
}
