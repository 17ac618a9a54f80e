//! Window functions with bounds around them: the query's interrupt is looked at while they compute the rows of a batch, and
//! what they make is charged to the query's memory ([`WindowMemory`](crate::limits::WindowMemory)).
//!
//! An aggregate that cannot take rows out again is computed anew for each row of a sliding frame.

mod accumulator;
mod emptied;
mod evaluator;

use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::ScalarValue;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::expr::{
    AggregateFunction, AggregateFunctionParams, WindowFunction, WindowFunctionDefinition, WindowFunctionParams,
};
use datafusion::logical_expr::function::{
    AccumulatorArgs, AggregateFunctionSimplification, ExpressionArgs, PartitionEvaluatorArgs, StateFieldsArgs,
    WindowFunctionSimplification, WindowUDFFieldArgs,
};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Documentation, Expr, GroupsAccumulator, LimitEffect, Operator,
    PartitionEvaluator, ReversedUDAF, ReversedUDWF, SetMonotonicity, Signature, StatisticsArgs, WindowFrameBound,
    WindowFrameUnits, WindowUDF, WindowUDFImpl,
};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Literal;
use serde::{Deserialize, Serialize};

use crate::limits::scalar_bytes;
use accumulator::{GovernedAccumulator, OwnedAccumulatorArgs, RecomputedAccumulator};
use emptied::emptied;
use evaluator::GovernedEvaluator;

/// Returns the call with bounds around its function.
pub(super) fn governed_window(mut call: Box<WindowFunction>) -> Transformed<Box<WindowFunction>> {
    let governed = match &call.fun {
        WindowFunctionDefinition::AggregateUDF(function) => {
            let repetition = Repetition::of_window(&call.params);
            let before = function.inner().downcast_ref::<GovernedAggregate>();
            if before.is_some_and(|before| before.repetition == repetition) {
                return Transformed::no(call);
            }
            let inner = before.map_or(function, |before| &before.inner);
            WindowFunctionDefinition::AggregateUDF(GovernedAggregate::new_udf(Arc::clone(inner), repetition))
        }
        WindowFunctionDefinition::WindowUDF(function) => {
            if function.inner().is::<GovernedWindowFunction>() {
                return Transformed::no(call);
            }
            WindowFunctionDefinition::WindowUDF(GovernedWindowFunction::new_udf(Arc::clone(function)))
        }
    };
    call.fun = governed;
    Transformed::yes(call)
}

/// Returns the aggregate inside of one that has bounds around it, and how many rows each of its values stands in.
pub(crate) fn ungoverned_aggregate(function: &AggregateUDF) -> Option<(&Arc<AggregateUDF>, Repetition)> {
    let governed = function.inner().downcast_ref::<GovernedAggregate>()?;
    Some((&governed.inner, governed.repetition))
}

/// Returns an aggregate of windows with bounds around it.
pub(crate) fn governed_aggregate(inner: Arc<AggregateUDF>, repetition: Repetition) -> Arc<AggregateUDF> {
    GovernedAggregate::new_udf(inner, repetition)
}

/// Returns the function inside of one that has bounds around it.
pub(crate) fn ungoverned_window_function(function: &WindowUDF) -> Option<&Arc<WindowUDF>> {
    function.inner().downcast_ref::<GovernedWindowFunction>().map(|governed| &governed.inner)
}

/// Returns a window function with bounds around it.
pub(crate) fn governed_window_function(inner: Arc<WindowUDF>) -> Arc<WindowUDF> {
    GovernedWindowFunction::new_udf(inner)
}

/// How many rows one value of a window aggregate stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum Repetition {
    /// One: each row has a frame of its own.
    Once,
    /// All rows of the partition, which are the rows that were aggregated.
    AllRows,
    /// All rows of the partition, of which a filter kept some for the aggregate.
    FilteredRows,
}

impl Repetition {
    fn of_window(params: &WindowFunctionParams) -> Self {
        let frame = &params.window_frame;
        let has_peers_only = frame.units == WindowFrameUnits::Range && params.order_by.is_empty();
        let is_whole = |bound: &WindowFrameBound| match bound {
            WindowFrameBound::CurrentRow => has_peers_only,
            WindowFrameBound::Preceding(_) | WindowFrameBound::Following(_) => bound.is_unbounded(),
        };
        if !is_whole(&frame.start_bound) || !is_whole(&frame.end_bound) {
            return Self::Once;
        }
        if params.filter.is_some() { Self::FilteredRows } else { Self::AllRows }
    }
}

/// An aggregate that is computed over windows.
#[derive(Debug, PartialEq, Eq, Hash)]
struct GovernedAggregate {
    inner: Arc<AggregateUDF>,
    repetition: Repetition,
}

impl GovernedAggregate {
    fn new_udf(inner: Arc<AggregateUDF>, repetition: Repetition) -> Arc<AggregateUDF> {
        Arc::new(AggregateUDF::new_from_impl(Self { inner, repetition }))
    }

    fn governed(&self, returned: &FieldRef, inner: Box<dyn Accumulator>) -> Box<dyn Accumulator> {
        Box::new(GovernedAccumulator::new(self.inner.name(), returned.data_type(), self.repetition, inner))
    }
}

#[warn(clippy::missing_trait_methods)]
impl AggregateUDFImpl for GovernedAggregate {
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

    fn accumulator(&self, acc_args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let returned = Arc::clone(&acc_args.return_field);
        let inner = self.inner.accumulator(acc_args)?;
        Ok(self.governed(&returned, inner))
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        self.inner.state_fields(args)
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        self.inner.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        self.inner.create_groups_accumulator(args)
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let args = OwnedAccumulatorArgs::from_args(&args);
        let inner: Box<dyn Accumulator> = match self.inner.create_sliding_accumulator(args.borrowed()) {
            Ok(sliding) if sliding.supports_retract_batch() => emptied(&self.inner, &args, sliding),
            Ok(_) | Err(_) => Box::new(RecomputedAccumulator::new(Arc::clone(&self.inner), args.clone())?),
        };
        Ok(self.governed(args.returned(), inner))
    }

    fn with_beneficial_ordering(
        self: Arc<Self>,
        beneficial_ordering: bool,
    ) -> Result<Option<Arc<dyn AggregateUDFImpl>>> {
        let ordered = Arc::clone(self.inner.inner()).with_beneficial_ordering(beneficial_ordering)?;
        Ok(ordered.map(|inner| {
            let inner = Arc::new(AggregateUDF::new_from_shared_impl(inner));
            Arc::new(Self { inner, repetition: self.repetition }) as Arc<dyn AggregateUDFImpl>
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
        agg_function: &AggregateFunction,
        arg: &Expr,
        op: Operator,
        lit: &Expr,
        arg_is_left: bool,
    ) -> Result<Option<Expr>> {
        self.inner.simplify_expr_op_literal(agg_function, arg, op, lit, arg_is_left)
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        match self.inner.reverse_udf() {
            ReversedUDAF::Identical => ReversedUDAF::Identical,
            ReversedUDAF::NotSupported => ReversedUDAF::NotSupported,
            ReversedUDAF::Reversed(inner) => ReversedUDAF::Reversed(Self::new_udf(inner, self.repetition)),
        }
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        self.inner.coerce_types(arg_types)
    }

    fn is_descending(&self) -> Option<bool> {
        self.inner.is_descending()
    }

    fn value_from_stats(&self, statistics_args: &StatisticsArgs) -> Option<ScalarValue> {
        self.inner.value_from_stats(statistics_args)
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

/// A window function that is no aggregate.
#[derive(Debug, PartialEq, Eq, Hash)]
struct GovernedWindowFunction {
    inner: Arc<WindowUDF>,
}

impl GovernedWindowFunction {
    fn new_udf(inner: Arc<WindowUDF>) -> Arc<WindowUDF> {
        Arc::new(WindowUDF::new_from_impl(Self { inner }))
    }
}

#[warn(clippy::missing_trait_methods)]
impl WindowUDFImpl for GovernedWindowFunction {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn expressions(&self, expr_args: ExpressionArgs) -> Vec<Arc<dyn PhysicalExpr>> {
        self.inner.expressions(expr_args)
    }

    fn partition_evaluator(&self, args: PartitionEvaluatorArgs) -> Result<Box<dyn PartitionEvaluator>> {
        let literals = args.input_exprs().iter().filter_map(|expr| expr.downcast_ref::<Literal>());
        let default_bytes = literals.map(|literal| scalar_bytes(literal.value())).max().unwrap_or(0);
        let inner = self.inner.partition_evaluator_factory(args)?;
        Ok(Box::new(GovernedEvaluator::new(inner, default_bytes)))
    }

    fn simplify(&self) -> Option<WindowFunctionSimplification> {
        self.inner.simplify()
    }

    fn field(&self, field_args: WindowUDFFieldArgs) -> Result<FieldRef> {
        self.inner.field(field_args)
    }

    fn sort_options(&self) -> Option<arrow::compute::SortOptions> {
        self.inner.sort_options()
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        self.inner.coerce_types(arg_types)
    }

    fn reverse_expr(&self) -> ReversedUDWF {
        match self.inner.reverse_expr() {
            ReversedUDWF::Identical => ReversedUDWF::Identical,
            ReversedUDWF::NotSupported => ReversedUDWF::NotSupported,
            ReversedUDWF::Reversed(inner) => ReversedUDWF::Reversed(Self::new_udf(inner)),
        }
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.inner.documentation()
    }

    fn limit_effect(&self, args: &[Arc<dyn PhysicalExpr>]) -> LimitEffect {
        self.inner.inner().limit_effect(args)
    }
}
