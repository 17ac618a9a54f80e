//! Window functions with bounds around them: the query's interrupt is looked at while they compute the rows of a batch, and
//! what they make is charged to the query's memory ([`WindowMemory`](crate::limits::WindowMemory)).
//!
//! An aggregate that cannot take rows out again is computed anew for each row of a sliding frame, and one that loses digits by it is put
//! together of states.

mod accumulator;
mod emptied;
mod evaluator;
mod known_values;
mod merged;
mod moving_totals;
mod nth_values;
mod shifts;

use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::ScalarValue;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::expr::{WindowFunction, WindowFunctionDefinition, WindowFunctionParams};
use datafusion::logical_expr::function::{
    AccumulatorArgs, ExpressionArgs, PartitionEvaluatorArgs, WindowFunctionSimplification, WindowUDFFieldArgs,
};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, Documentation, LimitEffect, PartitionEvaluator, ReversedUDWF, Signature,
    WindowFrameBound, WindowFrameUnits, WindowUDF, WindowUDFImpl,
};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Literal;
use serde::{Deserialize, Serialize};

use crate::functions::{AggregateOverride, WrappedAggregate, ordered_extreme, plain_aggregate};
use crate::limits::scalar_bytes;
use accumulator::{GovernedAccumulator, OwnedAccumulatorArgs, RecomputedAccumulator};
use emptied::emptied;
use evaluator::GovernedEvaluator;
use known_values::{FrameEnd, KnownValue};
use merged::{MergedAccumulator, subtracts};
use moving_totals::MovingTotal;
use nth_values::NthValue;
use shifts::{Shift, has_computed_arguments};

/// The functions that give a value of another row, so many rows away.
const SHIFTS: [&str; 2] = ["lag", "lead"];

/// Returns the call with bounds around its function.
pub(super) fn governed_window(mut call: Box<WindowFunction>) -> Transformed<Box<WindowFunction>> {
    let governed = match &call.fun {
        WindowFunctionDefinition::AggregateUDF(function) => {
            let repetition = Repetition::of_window(&call.params);
            let inner = match ungoverned_aggregate(function) {
                Some((_, before)) if before == repetition => return Transformed::no(call),
                Some((inner, _)) => Arc::clone(inner),
                None => ordered_extreme(function)
                    .or_else(|| plain_aggregate(function))
                    .unwrap_or_else(|| Arc::clone(function)),
            };
            WindowFunctionDefinition::AggregateUDF(governed_aggregate(inner, repetition))
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
    let (inner, bounds) = WrappedAggregate::<WindowBounds>::unwrapped(function)?;
    Some((inner, bounds.repetition))
}

/// Returns an aggregate of windows with bounds around it.
pub(crate) fn governed_aggregate(inner: Arc<AggregateUDF>, repetition: Repetition) -> Arc<AggregateUDF> {
    WrappedAggregate::new_udf(inner, WindowBounds { repetition })
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

/// The bounds around an aggregate that is computed over windows.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct WindowBounds {
    repetition: Repetition,
}

impl WindowBounds {
    fn around(&self, name: &str, returned: &FieldRef, inner: Box<dyn Accumulator>) -> Box<dyn Accumulator> {
        Box::new(GovernedAccumulator::new(name, returned.data_type(), self.repetition, inner))
    }
}

impl AggregateOverride for WindowBounds {
    fn accumulator(&self, inner: &AggregateUDF, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let returned = Arc::clone(&args.return_field);
        let accumulator = inner.accumulator(args)?;
        Ok(self.around(inner.name(), &returned, accumulator))
    }

    fn sliding_accumulator(&self, inner: &Arc<AggregateUDF>, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let args = OwnedAccumulatorArgs::from_args(&args);
        if let Some(moving) = MovingTotal::of_call(inner, &args) {
            return Ok(self.around(inner.name(), args.returned(), Box::new(moving)));
        }
        if subtracts(inner) {
            let merged = MergedAccumulator::new(Arc::clone(inner), args.clone())?;
            return Ok(self.around(inner.name(), args.returned(), Box::new(merged)));
        }
        let accumulator: Box<dyn Accumulator> = match inner.create_sliding_accumulator(args.borrowed()) {
            Ok(sliding) if sliding.supports_retract_batch() => emptied(inner, &args, sliding),
            Ok(_) | Err(_) => Box::new(RecomputedAccumulator::new(Arc::clone(inner), args.clone())?),
        };
        Ok(self.around(inner.name(), args.returned(), accumulator))
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
        match SHIFTS.contains(&self.inner.name()) && has_computed_arguments(expr_args.input_exprs()) {
            true => expr_args.input_exprs().to_vec(),
            false => self.inner.expressions(expr_args),
        }
    }

    fn partition_evaluator(&self, args: PartitionEvaluatorArgs) -> Result<Box<dyn PartitionEvaluator>> {
        let literals = args.input_exprs().iter().filter_map(|expr| expr.downcast_ref::<Literal>());
        let default_bytes = literals.map(|literal| scalar_bytes(literal.value())).max().unwrap_or(0);
        let name = self.inner.name();
        let inner: Box<dyn PartitionEvaluator> = if let Some(shift) = Shift::of_call(name, &args) {
            Box::new(shift)
        } else if let Some(nth) = NthValue::of_call(name, &args) {
            Box::new(nth)
        } else if let Some(end) = FrameEnd::of_call(name, &args) {
            Box::new(KnownValue::new(end, self.inner.partition_evaluator_factory(args)?))
        } else {
            self.inner.partition_evaluator_factory(args)?
        };
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
        // What is so far behind may be ahead.
        let is_behind = |offset: &Arc<dyn PhysicalExpr>| {
            let literal = offset.downcast_ref::<Literal>().map(Literal::value);
            matches!(literal, Some(ScalarValue::Int64(Some(offset))) if *offset >= 0)
        };
        match args.get(1) {
            Some(offset) if self.inner.name() == "lag" && !is_behind(offset) => LimitEffect::Unknown,
            _ => self.inner.inner().limit_effect(args),
        }
    }
}
