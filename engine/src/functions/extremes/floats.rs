//! `min` and `max` of floating-point numbers in groups. DataFusion 54 begins with the largest finite number and takes whatever does
//! not compare with a NaN, so that the least of infinities is none of them, and the greatest beside a NaN goes by the order of rows.
//! Here they are by the order that numbers are sorted in, as those of all rows are.

use std::sync::Arc;

use arrow::array::{ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray, PrimitiveArray};
use arrow::datatypes::ArrowNativeTypeOp;
use datafusion::error::Result;
use datafusion::logical_expr::{EmitTo, GroupsAccumulator};
use datafusion::physical_expr::NullState;

use super::ExtremeSide;
use crate::functions::group_states::states_of_rows;

/// The least or the greatest number of each group.
pub(super) struct GroupExtremes<T: ArrowPrimitiveType> {
    side: ExtremeSide,
    extremes: Vec<T::Native>,
    seen: NullState,
}

impl<T: ArrowPrimitiveType + Send> GroupExtremes<T> {
    pub(super) fn new(side: ExtremeSide) -> Self {
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
