//! `min` and `max` by the order that values are sorted in, where DataFusion's go by another one; for other types they are its own.

mod floats;
mod intervals;
mod nested;

use std::sync::Arc;

use arrow::datatypes::{DataType, Float16Type, Float32Type, Float64Type, IntervalUnit};
use datafusion::error::Result;
use datafusion::functions_aggregate::min_max::{Max, Min};
use datafusion::logical_expr::function::AccumulatorArgs;
use datafusion::logical_expr::{Accumulator, AggregateUDF, GroupsAccumulator};
use datafusion::physical_expr::GroupsAccumulatorAdapter;

use super::wrapped_aggregates::{AggregateOverride, WrappedAggregate};
use floats::GroupExtremes;
use intervals::IntervalExtreme;
use nested::NestedExtreme;

/// Returns `min` or `max` as they are called here, of DataFusion's; `None` of another function, and of these.
pub(crate) fn ordered_extreme(function: &Arc<AggregateUDF>) -> Option<Arc<AggregateUDF>> {
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
    fn accumulator(&self, inner: &AggregateUDF, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let data_type = args.return_field.data_type();
        if NestedExtreme::is_of(data_type) {
            return Ok(Box::new(NestedExtreme::new(*self, data_type)?));
        }
        if *data_type == DataType::Interval(IntervalUnit::MonthDayNano) {
            return Ok(Box::new(IntervalExtreme::new(*self)));
        }
        inner.accumulator(args)
    }

    fn groups_accumulator(&self, inner: &AggregateUDF, args: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        Ok(match args.return_field.data_type() {
            DataType::Float16 => Box::new(GroupExtremes::<Float16Type>::new(*self)),
            DataType::Float32 => Box::new(GroupExtremes::<Float32Type>::new(*self)),
            DataType::Float64 => Box::new(GroupExtremes::<Float64Type>::new(*self)),
            DataType::Interval(IntervalUnit::MonthDayNano) => {
                let side = *self;
                Box::new(GroupsAccumulatorAdapter::new(move || Ok(Box::new(IntervalExtreme::new(side)))))
            }
            nested if NestedExtreme::is_of(nested) => {
                let (side, nested) = (*self, nested.clone());
                Box::new(GroupsAccumulatorAdapter::new(move || Ok(Box::new(NestedExtreme::new(side, &nested)?))))
            }
            _ => return inner.create_groups_accumulator(args),
        })
    }
}
