//! Aggregates around another one: [`WrappedAggregate`] is the one inside of it in all that it says of itself, and an
//! [`AggregateOverride`] says what it does otherwise.
//!
//! Each method of DataFusion's trait is forwarded, also those that have a default: a method that is not would answer
//! for the wrapper instead of for the aggregate, and nobody would be told. The lint at the implementation finds those
//! that are new.

use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::expr::{AggregateFunction, AggregateFunctionParams, WindowFunctionParams};
use datafusion::logical_expr::function::{AccumulatorArgs, AggregateFunctionSimplification, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Documentation, Expr, GroupsAccumulator, Operator, ReversedUDAF,
    SetMonotonicity, Signature, StatisticsArgs,
};

/// What an aggregate does otherwise than the one inside of it. Each method is that of the one inside, unless it is
/// overridden.
pub(crate) trait AggregateOverride: Debug + Clone + Eq + Hash + Send + Sync + 'static {
    /// Makes the accumulator of all rows, or of a window that only grows.
    fn accumulator(&self, inner: &AggregateUDF, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        inner.accumulator(args)
    }

    /// Returns whether there is an accumulator of groups.
    fn has_groups_accumulator(&self, inner: &AggregateUDF, args: AccumulatorArgs) -> bool {
        inner.groups_accumulator_supported(args)
    }

    /// Makes the accumulator of groups.
    fn groups_accumulator(&self, inner: &AggregateUDF, args: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        inner.create_groups_accumulator(args)
    }

    /// Makes the accumulator of a window whose rows are taken out again.
    fn sliding_accumulator(&self, inner: &Arc<AggregateUDF>, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        inner.create_sliding_accumulator(args)
    }

    /// Returns the aggregate of rows that come the other way around.
    fn reversed(&self, inner: &AggregateUDF) -> ReversedUDAF {
        match inner.reverse_udf() {
            ReversedUDAF::Identical => ReversedUDAF::Identical,
            ReversedUDAF::NotSupported => ReversedUDAF::NotSupported,
            ReversedUDAF::Reversed(inner) => ReversedUDAF::Reversed(WrappedAggregate::new_udf(inner, self.clone())),
        }
    }
}

/// An aggregate that is another one but for what its override says.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct WrappedAggregate<O> {
    inner: Arc<AggregateUDF>,
    otherwise: O,
}

impl<O: AggregateOverride> WrappedAggregate<O> {
    /// Wraps an aggregate.
    pub(crate) fn new_udf(inner: Arc<AggregateUDF>, otherwise: O) -> Arc<AggregateUDF> {
        Arc::new(AggregateUDF::new_from_impl(Self { inner, otherwise }))
    }

    /// Returns the aggregate inside of one that is wrapped so, and what it does otherwise.
    pub(crate) fn unwrapped(function: &AggregateUDF) -> Option<(&Arc<AggregateUDF>, &O)> {
        function.inner().downcast_ref::<Self>().map(|wrapped| (&wrapped.inner, &wrapped.otherwise))
    }
}

#[warn(clippy::missing_trait_methods)]
impl<O: AggregateOverride> AggregateUDFImpl for WrappedAggregate<O> {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn schema_name(&self, params: &AggregateFunctionParams) -> Result<String> {
        self.inner.schema_name(params)
    }

    fn human_display(&self, params: &AggregateFunctionParams) -> Result<String> {
        self.inner.human_display(params)
    }

    fn window_function_schema_name(&self, params: &WindowFunctionParams) -> Result<String> {
        self.inner.window_function_schema_name(params)
    }

    fn display_name(&self, params: &AggregateFunctionParams) -> Result<String> {
        self.inner.display_name(params)
    }

    fn window_function_display_name(&self, params: &WindowFunctionParams) -> Result<String> {
        self.inner.window_function_display_name(params)
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        self.inner.return_type(arg_types)
    }

    fn return_field(&self, arg_fields: &[FieldRef]) -> Result<FieldRef> {
        self.inner.return_field(arg_fields)
    }

    fn is_nullable(&self) -> bool {
        self.inner.is_nullable()
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        self.otherwise.accumulator(&self.inner, args)
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        self.inner.state_fields(args)
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        self.otherwise.has_groups_accumulator(&self.inner, args)
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        self.otherwise.groups_accumulator(&self.inner, args)
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        self.otherwise.sliding_accumulator(&self.inner, args)
    }

    fn with_beneficial_ordering(
        self: Arc<Self>,
        beneficial_ordering: bool,
    ) -> Result<Option<Arc<dyn AggregateUDFImpl>>> {
        let ordered = Arc::clone(self.inner.inner()).with_beneficial_ordering(beneficial_ordering)?;
        Ok(ordered.map(|inner| {
            let inner = Arc::new(AggregateUDF::new_from_shared_impl(inner));
            Arc::new(Self { inner, otherwise: self.otherwise.clone() }) as Arc<dyn AggregateUDFImpl>
        }))
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        self.inner.order_sensitivity()
    }

    fn simplify(&self) -> Option<AggregateFunctionSimplification> {
        self.inner.simplify()
    }

    fn simplify_expr_op_literal(
        &self,
        call: &AggregateFunction,
        arg: &Expr,
        op: Operator,
        literal: &Expr,
        arg_is_left: bool,
    ) -> Result<Option<Expr>> {
        self.inner.simplify_expr_op_literal(call, arg, op, literal, arg_is_left)
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        self.otherwise.reversed(&self.inner)
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        self.inner.coerce_types(arg_types)
    }

    fn is_descending(&self) -> Option<bool> {
        self.inner.is_descending()
    }

    fn value_from_stats(&self, statistics: &StatisticsArgs) -> Option<ScalarValue> {
        self.inner.value_from_stats(statistics)
    }

    fn default_value(&self, data_type: &DataType) -> Result<ScalarValue> {
        self.inner.default_value(data_type)
    }

    fn supports_null_handling_clause(&self) -> bool {
        self.inner.supports_null_handling_clause()
    }

    fn supports_within_group_clause(&self) -> bool {
        self.inner.supports_within_group_clause()
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.inner.documentation()
    }

    fn set_monotonicity(&self, data_type: &DataType) -> SetMonotonicity {
        self.inner.inner().set_monotonicity(data_type)
    }
}

#[cfg(test)]
mod tests {
    use datafusion::functions_aggregate::array_agg::array_agg_udaf;
    use datafusion::functions_aggregate::count::count_udaf;
    use datafusion::functions_aggregate::first_last::first_value_udaf;
    use datafusion::functions_aggregate::min_max::min_udaf;

    use super::*;

    #[derive(Debug, Clone, PartialEq, Eq, Hash)]
    struct Nothing;
    impl AggregateOverride for Nothing {}

    fn wrapped(inner: Arc<AggregateUDF>) -> Arc<AggregateUDF> {
        WrappedAggregate::new_udf(inner, Nothing)
    }

    #[test]
    fn what_a_trait_has_a_default_for_is_forwarded_too() {
        assert!(!wrapped(count_udaf()).is_nullable());
        assert_eq!(wrapped(count_udaf()).default_value(&DataType::Int64).unwrap(), ScalarValue::Int64(Some(0)));
        assert_eq!(wrapped(min_udaf()).is_descending(), Some(false));
        assert!(wrapped(array_agg_udaf()).supports_null_handling_clause());
        assert_eq!(wrapped(first_value_udaf()).aliases(), first_value_udaf().aliases());
    }

    #[test]
    fn what_is_made_of_it_is_wrapped_as_well() {
        let ReversedUDAF::Reversed(reversed) = wrapped(first_value_udaf()).reverse_udf() else {
            panic!("the first value is the last one from behind");
        };
        let (inner, _) = WrappedAggregate::<Nothing>::unwrapped(&reversed).unwrap();
        assert_eq!(inner.name(), "last_value");
        let ordered = wrapped(first_value_udaf()).as_ref().clone().with_beneficial_ordering(true).unwrap().unwrap();
        assert!(WrappedAggregate::<Nothing>::unwrapped(&ordered).is_some());
    }
}
