//! What accumulators of groups that keep a number for each have in common.

use arrow::array::{ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray, PrimitiveArray};
use arrow::buffer::NullBuffer;

/// Returns the states of groups of one row each, of aggregates of which the number of one row is the state: null where the row has
/// none, or the filter leaves it out.
pub(super) fn states_of_rows<T: ArrowPrimitiveType>(
    values: &ArrayRef,
    filter: Option<&BooleanArray>,
) -> PrimitiveArray<T> {
    let (_, numbers, nulls) = values.as_primitive::<T>().clone().into_parts();
    let kept = filter.map(|filter| match filter.clone().into_parts() {
        (kept, Some(known)) => NullBuffer::new(known.inner() & &kept),
        (kept, None) => NullBuffer::new(kept),
    });
    PrimitiveArray::<T>::new(numbers, NullBuffer::union(nulls.as_ref(), kept.as_ref()))
}
