//! A function with bounds around its calls.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef};
use arrow::compute::concat;
use arrow::datatypes::FieldRef;
use datafusion::common::ScalarValue;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{Cast, ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, TryCast};

use super::expression_steps::compared_with_expression;
use super::folding::{check_folded, fitting_plans};
use super::pattern_match::compared_with_pattern;
use super::text::{BoundedText, holds_decimals, with_bounded_pattern};
use super::{governed_function, text};
use crate::error::EngineError;
use crate::functions::{FunctionOverride, WrappedFunction, counted_call};
use crate::limits::{Announced, CallGrowth, QueryUsage, array_bytes, compared_pairs, row_bytes, tree_bytes};

/// What a call may make at once; a batch that makes more is computed in slices.
pub(super) const SLICE_BYTES: usize = 32 << 20;
/// What a function may make of one batch, or of one row.
pub(super) const MAX_BYTES: usize = 256 << 20;
/// The most pairs of elements, or of characters, that one row compares: seconds of a core.
const MAX_PAIRS: u128 = 20_000_000_000;
/// As many as are compared before it is looked whether the query has been ended.
const SLICE_PAIRS: u128 = 200_000_000;

/// The largest expression that a call of fewer nodes may be simplified to.
const MAX_SIMPLIFIED_NODES: usize = 5_000;
const COUNTED_NODES: usize = 20_000;

/// A function within bounds.
pub(super) type GovernedFunction = WrappedFunction<CallBounds>;

/// The bounds around a function's calls.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct CallBounds {
    growth: CallGrowth,
}

impl CallBounds {
    /// Returns the function within its bounds.
    pub(super) fn around(function: Arc<ScalarUDF>) -> Arc<ScalarUDF> {
        let growth = CallGrowth::of_function(function.name());
        WrappedFunction::new_udf(function, Self { growth })
    }
}

/// Makes a call within bounds. `make` computes rows of the arguments; slices are made where all at once are too much.
pub(super) fn call_within(
    name: &str,
    growth: CallGrowth,
    args: ScalarFunctionArgs,
    make: &dyn Fn(ScalarFunctionArgs) -> Result<ColumnarValue>,
) -> Result<ColumnarValue> {
    let usage = QueryUsage::current();
    let are_constant = args.args.iter().all(|value| matches!(value, ColumnarValue::Scalar(_)));
    let rows = if are_constant { 1 } else { args.number_rows };
    let of_rows = rows.saturating_mul(row_bytes(args.return_field.data_type()));
    let most = growth.most_bytes(&args.args, rows).saturating_add(of_rows);
    let most = most.saturating_add(text::pattern_bytes(name, &args.args)?);
    // What is made on the way has no bound of its own: a large document is read where the process has room for it.
    let held = most.saturating_add(tree_bytes(name, &args.args));
    if let Some(usage) = &usage {
        usage.check()?;
    }
    let matched = compared_with_pattern(name, &args.args, rows).max(compared_with_expression(name, &args.args, rows));
    let pairs = compared_pairs(name, &args.args, rows).max(matched);
    if rows <= 1 && pairs > MAX_PAIRS {
        let message =
            format!("{name} compares at most {} million pairs at a time; ask for less", MAX_PAIRS / 1_000_000);
        return Err(EngineError::InvalidValue { message }.into());
    }
    if held <= SLICE_BYTES && (rows <= 1 || pairs <= SLICE_PAIRS) {
        let made = make(args)?;
        record(usage.as_deref(), &made);
        return Ok(made);
    }
    if rows <= 1 {
        if most > MAX_BYTES {
            return Err(too_much(name).into());
        }
        if let Some(usage) = &usage {
            usage.admit(held)?;
        }
        let _announced = Announced::new(held);
        let made = make(args)?;
        record(usage.as_deref(), &made);
        return Ok(made);
    }
    let for_pairs = usize::try_from(pairs.div_ceil(SLICE_PAIRS)).unwrap_or(usize::MAX);
    let parts = held.div_ceil(SLICE_BYTES).max(for_pairs).min(rows);
    let step = rows.div_ceil(parts);
    let mut made: Vec<ArrayRef> = Vec::with_capacity(parts);
    let mut bytes = 0;
    for from in (0..rows).step_by(step) {
        let count = step.min(rows - from);
        // A slice is measured again: its rows may be the large ones.
        let slice = call_within(name, growth, sliced(&args, from, count), make)?.into_array(count)?;
        bytes += array_bytes(slice.as_ref());
        if bytes > MAX_BYTES {
            return Err(too_much(name).into());
        }
        if let Some(usage) = &usage {
            usage.admit(bytes)?;
        }
        made.push(slice);
    }
    let parts: Vec<&dyn Array> = made.iter().map(AsRef::as_ref).collect();
    let made = ColumnarValue::Array(concat(&parts)?);
    record(usage.as_deref(), &made);
    Ok(made)
}

/// Returns the nodes of an expression, counted up to [`COUNTED_NODES`].
fn count_nodes(expr: &Expr) -> usize {
    let mut nodes = 0;
    let counted = expr.apply(|_| {
        nodes += 1;
        Ok(if nodes > COUNTED_NODES { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    counted.map_or(COUNTED_NODES, |_| nodes)
}

fn too_much(name: &str) -> EngineError {
    EngineError::InvalidValue {
        message: format!("{name} makes at most {} MiB at a time; ask for less", MAX_BYTES >> 20),
    }
}

fn record(usage: Option<&QueryUsage>, made: &ColumnarValue) {
    let Some(usage) = usage else { return };
    match made {
        ColumnarValue::Array(array) => usage.made(array_bytes(array.as_ref())),
        ColumnarValue::Scalar(value) => usage.made(value.size()),
    }
}

fn sliced(args: &ScalarFunctionArgs, from: usize, count: usize) -> ScalarFunctionArgs {
    let slice = |value: &ColumnarValue| match value {
        ColumnarValue::Array(array) => ColumnarValue::Array(array.slice(from, count)),
        ColumnarValue::Scalar(value) => ColumnarValue::Scalar(ScalarValue::clone(value)),
    };
    ScalarFunctionArgs {
        args: args.args.iter().map(slice).collect(),
        arg_fields: args.arg_fields.clone(),
        number_rows: count,
        return_field: Arc::clone(&args.return_field),
        config_options: Arc::clone(&args.config_options),
    }
}

/// Returns what a function was simplified to, within bounds: constants in it are folded before any rule sees it again.
fn governed_simplified(expr: Expr) -> Result<Expr> {
    expr.transform_up(|expr| {
        Ok(match expr {
            Expr::ScalarFunction(mut call) => match governed_function(&call.func) {
                Some(governed) => {
                    call.func = governed;
                    Transformed::yes(Expr::ScalarFunction(call))
                }
                None => Transformed::no(Expr::ScalarFunction(call)),
            },
            // The type of the argument is not known here; whatever is no text passes as it is.
            Expr::Cast(Cast { expr, field }) if holds_decimals(field.data_type()) && !text::is_bounded(&expr) => {
                let bounded = BoundedText::refusing().call(vec![*expr]);
                Transformed::yes(Expr::Cast(Cast { expr: Box::new(bounded), field }))
            }
            Expr::TryCast(TryCast { expr, field }) if holds_decimals(field.data_type()) && !text::is_bounded(&expr) => {
                let bounded = BoundedText::nulling().call(vec![*expr]);
                Transformed::yes(Expr::TryCast(TryCast { expr: Box::new(bounded), field }))
            }
            other => with_bounded_pattern(other),
        })
    })
    .data()
}

impl FunctionOverride for CallBounds {
    fn return_field(&self, inner: &ScalarUDF, args: ReturnFieldArgs) -> Result<FieldRef> {
        // The planner asks for the types of nested calls again and again.
        QueryUsage::check_current()?;
        inner.return_field_from_args(args)
    }

    fn simplify(&self, inner: &ScalarUDF, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        QueryUsage::check_current()?;
        let before: usize = args.iter().map(count_nodes).sum();
        Ok(match inner.simplify(args, info)? {
            ExprSimplifyResult::Simplified(expr) => {
                let after = count_nodes(&expr);
                // What writes an argument out twice doubles nested calls each time.
                if after > MAX_SIMPLIFIED_NODES && after > before + before / 2 {
                    return Err(EngineError::too_deep().into());
                }
                ExprSimplifyResult::Simplified(governed_simplified(expr)?)
            }
            ExprSimplifyResult::Original(args) => ExprSimplifyResult::Original(args),
        })
    }

    fn invoke(&self, inner: &ScalarUDF, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let call = |args: ScalarFunctionArgs| {
            let Some((bytes, function)) = counted_call(inner, &args)? else {
                return inner.invoke_with_args(args);
            };
            check_folded(inner.name(), bytes)?;
            if let Some(usage) = QueryUsage::current() {
                usage.admit(bytes)?;
            }
            let _announced = Announced::new(bytes);
            function.invoke_with_args(args)
        };
        fitting_plans(inner.name(), args, |args| call_within(inner.name(), self.growth, args, &call))
    }
}
