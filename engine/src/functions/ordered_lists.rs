//! `array_agg` and `string_agg` of rows in an order. Over rows that are sorted the other way DataFusion 54 collects them backwards, in
//! each stage of an aggregation: where there are two, the list comes out as the rows were. Here they are sorted as any others.

use std::sync::Arc;

use datafusion::logical_expr::{AggregateUDF, ReversedUDAF};

use super::wrapped_aggregates::{AggregateOverride, WrappedAggregate};

/// The aggregates that collect rows in an order.
const COLLECTING: [&str; 2] = ["array_agg", "string_agg"];

/// Returns the aggregate as it is called here.
pub(super) fn never_backwards(function: Arc<AggregateUDF>) -> Arc<AggregateUDF> {
    match COLLECTING.contains(&function.name()) {
        true => WrappedAggregate::new_udf(function, NeverBackwards),
        false => function,
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct NeverBackwards;

impl AggregateOverride for NeverBackwards {
    fn reversed(&self, _inner: &AggregateUDF) -> ReversedUDAF {
        ReversedUDAF::NotSupported
    }
}
