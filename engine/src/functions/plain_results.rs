//! Aggregates that are doubles have one NaN, as what is computed of a row has (`sql::float_order`): of an infinity and a negative
//! one a processor computes a sum, an average or a variance that is a NaN with a sign, which Arrow sorts below every number.

use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray};
use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::function::AccumulatorArgs;
use datafusion::logical_expr::{Accumulator, AggregateUDF, EmitTo, GroupsAccumulator};

use super::one_nan::with_one_nan;
use super::wrapped_aggregates::{AggregateOverride, WrappedAggregate};

/// The aggregates whose results are computed of several values. The sum is `checked_sum`, and percentiles are `exact_percentiles`.
const COMPUTING: [&str; 17] = [
    "avg",
    "median",
    "var",
    "var_pop",
    "stddev",
    "stddev_pop",
    "covar_samp",
    "covar_pop",
    "corr",
    "regr_slope",
    "regr_intercept",
    "regr_r2",
    "regr_avgx",
    "regr_avgy",
    "regr_sxx",
    "regr_syy",
    "regr_sxy",
];

/// Returns one of these aggregates as it is called here, of DataFusion's; `None` of another function, and of those that are.
pub(crate) fn plain_aggregate(function: &Arc<AggregateUDF>) -> Option<Arc<AggregateUDF>> {
    let is_other =
        COMPUTING.contains(&function.name()) && WrappedAggregate::<PlainResults>::unwrapped(function).is_none();
    is_other.then(|| WrappedAggregate::new_udf(Arc::clone(function), PlainResults))
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct PlainResults;

impl AggregateOverride for PlainResults {
    fn accumulator(&self, inner: &AggregateUDF, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let returned = args.return_field.data_type().clone();
        Ok(with_plain_value(&returned, inner.accumulator(args)?))
    }

    fn groups_accumulator(&self, inner: &AggregateUDF, args: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        let returned = args.return_field.data_type().clone();
        Ok(with_plain_values(&returned, inner.create_groups_accumulator(args)?))
    }

    fn sliding_accumulator(&self, inner: &Arc<AggregateUDF>, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let returned = args.return_field.data_type().clone();
        Ok(with_plain_value(&returned, inner.create_sliding_accumulator(args)?))
    }
}

/// Returns an accumulator whose result is in that form.
pub(super) fn with_plain_value(returned: &DataType, inner: Box<dyn Accumulator>) -> Box<dyn Accumulator> {
    if returned.is_floating() { Box::new(PlainAccumulator(inner)) } else { inner }
}

/// Returns an accumulator of groups whose results are in that form.
pub(super) fn with_plain_values(returned: &DataType, inner: Box<dyn GroupsAccumulator>) -> Box<dyn GroupsAccumulator> {
    if returned.is_floating() { Box::new(PlainGroups(inner)) } else { inner }
}

#[derive(Debug)]
struct PlainAccumulator(Box<dyn Accumulator>);

impl Accumulator for PlainAccumulator {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.0.update_batch(values)
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.0.merge_batch(states)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.0.retract_batch(values)
    }

    fn supports_retract_batch(&self) -> bool {
        self.0.supports_retract_batch()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.0.state()
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(match self.0.evaluate()? {
            ScalarValue::Float64(Some(number)) if number.is_nan() => ScalarValue::Float64(Some(f64::NAN)),
            ScalarValue::Float32(Some(number)) if number.is_nan() => ScalarValue::Float32(Some(f32::NAN)),
            other => other,
        })
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.0.size()
    }
}

struct PlainGroups(Box<dyn GroupsAccumulator>);

impl GroupsAccumulator for PlainGroups {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        self.0.update_batch(values, group_indices, filter, total_num_groups)
    }

    fn merge_batch(
        &mut self,
        states: &[ArrayRef],
        group_indices: &[usize],
        filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        self.0.merge_batch(states, group_indices, filter, total_num_groups)
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let results = self.0.evaluate(emit_to)?;
        Ok(with_one_nan(&results).unwrap_or(results))
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        self.0.state(emit_to)
    }

    fn convert_to_state(&self, values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        self.0.convert_to_state(values, filter)
    }

    fn supports_convert_to_state(&self) -> bool {
        self.0.supports_convert_to_state()
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.0.size()
    }
}

#[cfg(test)]
mod tests {
    use datafusion::functions_aggregate::average::avg_udaf;
    use datafusion::functions_aggregate::min_max::min_udaf;

    use super::*;

    #[test]
    fn aggregates_are_wrapped_once() {
        let average = plain_aggregate(&avg_udaf()).unwrap();
        assert_eq!(average.name(), "avg");
        assert!(plain_aggregate(&average).is_none());
        assert!(plain_aggregate(&min_udaf()).is_none());
    }
}
