//! `regr_r2` where all `y` are the same: a line fits them wholly, which is 1 in PostgreSQL and DuckDB. DataFusion 54 has a null.

use std::sync::Arc;

use arrow::array::ArrayRef;
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::function::AccumulatorArgs;
use datafusion::logical_expr::{Accumulator, AggregateUDF};

use super::wrapped_aggregates::{AggregateOverride, WrappedAggregate};

/// Returns the aggregate as it is called here.
pub(super) fn with_constant_fits(function: Arc<AggregateUDF>) -> Arc<AggregateUDF> {
    match function.name() {
        "regr_r2" => WrappedAggregate::new_udf(function, ConstantFits),
        _ => function,
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct ConstantFits;

impl AggregateOverride for ConstantFits {
    fn accumulator(&self, inner: &AggregateUDF, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(ConstantFit(inner.accumulator(args)?)))
    }

    fn sliding_accumulator(&self, inner: &Arc<AggregateUDF>, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(ConstantFit(inner.create_sliding_accumulator(args)?)))
    }
}

#[derive(Debug)]
struct ConstantFit(Box<dyn Accumulator>);

impl Accumulator for ConstantFit {
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

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let fit = self.0.evaluate()?;
        // The number of pairs, both means, how far the values are from each, squared, and how far together.
        if let (true, [_, _, _, ScalarValue::Float64(Some(of_x)), ScalarValue::Float64(Some(of_y)), _]) =
            (fit.is_null(), self.0.state()?.as_slice())
            && *of_x > 0.0
            && *of_y == 0.0
        {
            return Ok(ScalarValue::Float64(Some(1.0)));
        }
        Ok(fit)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.0.state()
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.0.size()
    }
}
