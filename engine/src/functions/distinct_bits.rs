//! `bit_xor(DISTINCT x)` of groups: DataFusion 54's accumulator of groups takes a value as often as it comes, and its state is none
//! of lists, which it is said to be. Each group has an accumulator of distinct values.

use std::sync::Arc;

use datafusion::logical_expr::AggregateUDF;
use datafusion::logical_expr::function::AccumulatorArgs;

use super::wrapped_aggregates::{AggregateOverride, WrappedAggregate};

/// Returns the aggregate as it is called here.
pub(super) fn with_distinct_bits(function: Arc<AggregateUDF>) -> Arc<AggregateUDF> {
    match function.name() {
        "bit_xor" => WrappedAggregate::new_udf(function, DistinctBits),
        _ => function,
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct DistinctBits;

impl AggregateOverride for DistinctBits {
    fn has_groups_accumulator(&self, inner: &AggregateUDF, args: AccumulatorArgs) -> bool {
        !args.is_distinct && inner.groups_accumulator_supported(args)
    }
}
