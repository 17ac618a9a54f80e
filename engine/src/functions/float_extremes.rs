//! `min` and `max` of floating-point numbers in groups. DataFusion 54 begins with the largest finite number and takes whatever does
//! not compare with a NaN, so that the least of infinities is none of them, and the greatest beside a NaN goes by the order of rows.
//! Here they are by the order that numbers are sorted in, as those of all rows are; for other types they are DataFusion's.

use std::sync::Arc;

use arrow::array::{ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray, PrimitiveArray};
use arrow::datatypes::{ArrowNativeTypeOp, DataType, Float16Type, Float32Type, Float64Type};
use datafusion::error::Result;
use datafusion::functions_aggregate::min_max::{Max, Min};
use datafusion::logical_expr::function::AccumulatorArgs;
use datafusion::logical_expr::{AggregateUDF, EmitTo, GroupsAccumulator};
use datafusion::physical_expr::NullState;

use super::group_states::states_of_rows;
use super::wrapped_aggregates::{AggregateOverride, WrappedAggregate};

/// Returns `min` or `max` as they are called here, of DataFusion's; `None` of another function, and of these.
pub(crate) fn float_extreme(function: &Arc<AggregateUDF>) -> Option<Arc<AggregateUDF>> {
    let side = match function.inner() {
        inner if inner.is::<Min>() => ExtremeSide::Least,
        inner if inner.is::<Max>() => ExtremeSide::Greatest,
        _ => return None,
    };
    Some(WrappedAggregate::new_udf(Arc::clone(function), side))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum ExtremeSide {
    Least,
    Greatest,
}

impl AggregateOverride for ExtremeSide {
    fn groups_accumulator(&self, inner: &AggregateUDF, args: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        Ok(match args.return_field.data_type() {
            DataType::Float16 => Box::new(GroupExtremes::<Float16Type>::new(*self)),
            DataType::Float32 => Box::new(GroupExtremes::<Float32Type>::new(*self)),
            DataType::Float64 => Box::new(GroupExtremes::<Float64Type>::new(*self)),
            _ => return inner.create_groups_accumulator(args),
        })
    }
}

/// The least or the greatest number of each group.
struct GroupExtremes<T: ArrowPrimitiveType> {
    side: ExtremeSide,
    extremes: Vec<T::Native>,
    seen: NullState,
}

impl<T: ArrowPrimitiveType + Send> GroupExtremes<T> {
    fn new(side: ExtremeSide) -> Self {
        Self { side, extremes: Vec::new(), seen: NullState::new() }
    }

    /// Puts each value in the place of its group's that is beyond it.
    fn replace_beyond(
        &mut self,
        values: &PrimitiveArray<T>,
        group_indices: &[usize],
        filter: Option<&BooleanArray>,
        is_beyond: impl Fn(T::Native, T::Native) -> bool + Sync,
    ) {
        let Self { extremes, seen, .. } = self;
        let groups = extremes.len();
        seen.accumulate(group_indices, values, filter, groups, |group, value| {
            if let Some(extreme) = extremes.get_mut(group).filter(|extreme| is_beyond(value, **extreme)) {
                *extreme = value;
            }
        });
    }
}

impl<T: ArrowPrimitiveType + Send> GroupsAccumulator for GroupExtremes<T> {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        let Some(values) = values.first() else { return Ok(()) };
        let values = values.as_primitive::<T>();
        match self.side {
            ExtremeSide::Least => {
                self.extremes.resize(total_num_groups, T::Native::MAX_TOTAL_ORDER);
                self.replace_beyond(values, group_indices, filter, T::Native::is_lt);
            }
            ExtremeSide::Greatest => {
                self.extremes.resize(total_num_groups, T::Native::MIN_TOTAL_ORDER);
                self.replace_beyond(values, group_indices, filter, T::Native::is_gt);
            }
        }
        Ok(())
    }

    fn merge_batch(
        &mut self,
        states: &[ArrayRef],
        group_indices: &[usize],
        filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        self.update_batch(states, group_indices, filter, total_num_groups)
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let extremes = emit_to.take_needed(&mut self.extremes);
        let nulls = self.seen.build(emit_to);
        Ok(Arc::new(PrimitiveArray::<T>::new(extremes.into(), nulls)))
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        Ok(vec![self.evaluate(emit_to)?])
    }

    /// The extreme of one row is its number.
    fn convert_to_state(&self, values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let Some(values) = values.first() else { return Ok(Vec::new()) };
        Ok(vec![Arc::new(states_of_rows::<T>(values, filter))])
    }

    fn supports_convert_to_state(&self) -> bool {
        true
    }

    fn size(&self) -> usize {
        self.extremes.capacity() * size_of::<T::Native>() + self.seen.size()
    }
}
