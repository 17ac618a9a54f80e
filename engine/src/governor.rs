//! What keeps expressions within bounds: a rule that puts itself around every function call, concatenation, pattern and cast
//! from text to decimals, for SQL, KQL and everything else that becomes a plan.
//!
//! Kernels allocate before anybody is asked, and a failed allocation ends the process. So a call is measured by its arguments
//! before it is made: what is too much at once is computed in slices of the batch, and what is too much for one row is
//! refused. Between calls the query looks whether it has been ended, also while the optimizer folds constants.

mod compiled_patterns;
mod concat;
mod expression_steps;
mod folding;
mod function;
mod guarded_domains;
mod lambdas;
mod narrow_items;
mod pattern_match;
mod rules;
mod text;
mod window;

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::functions::core::getfield::GetFieldFunc;
use datafusion::functions::math::log::LogFunc;
use datafusion::functions::math::power::PowerFunc;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{BinaryExpr, Cast, Expr, ExprSchemable, LogicalPlan, Operator, ScalarUDF, TryCast};
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};
use querent_kql::is_stored_conversion;

use concat::GovernedConcat;
use function::{CallBounds, GovernedFunction};
use narrow_items::NarrowItems;
use pattern_match::PatternMatch;
use text::{BoundedText, holds_decimals, holds_text, with_bounded_pattern};
use window::governed_window;

use crate::error::EngineError;
use crate::functions::{ordered_extreme, plain_aggregate};

pub(crate) use folding::Folding;
pub(crate) use lambdas::governed_lambdas;
pub(crate) use rules::{governed_optimizer_rules, governed_physical_rules};
pub(crate) use text::MAX_PATTERN_BYTES;
pub(crate) use window::{
    Repetition, governed_aggregate, governed_window_function, ungoverned_aggregate, ungoverned_window_function,
};

/// The most centroids of an approximate percentile: they are allocated at once, for each group.
const MAX_CENTROIDS: i64 = 10_000;

/// The optimizer rule that puts bounds around expressions.
#[derive(Debug)]
pub(crate) struct GovernExpressions;

impl OptimizerRule for GovernExpressions {
    fn name(&self) -> &'static str {
        "govern_expressions"
    }

    fn rewrite(&self, plan: LogicalPlan, _config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        plan.transform_up_with_subqueries(governed_node)
    }
}

fn governed_node(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let names = NamePreserver::new(&plan);
    let schema = match &plan {
        LogicalPlan::TableScan(scan) => {
            DFSchema::try_from_qualified_schema(scan.table_name.clone(), &scan.source.schema())?
        }
        other => merge_schema(&other.inputs()),
    };
    plan.map_expressions(|expr| {
        let name = names.save(&expr);
        let governed = expr.transform_up(|expr| governed_expr(expr, &schema))?;
        Ok(governed.update_data(|expr| name.restore(expr)))
    })
}

fn governed_expr(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    check_centroids(&expr)?;
    Ok(match expr {
        Expr::ScalarFunction(ScalarFunction { func, args }) => match governed_function(&func) {
            Some(governed) => Transformed::yes(Expr::ScalarFunction(ScalarFunction { func: governed, args })),
            None => Transformed::no(Expr::ScalarFunction(ScalarFunction { func, args })),
        },
        Expr::AggregateFunction(mut call) => {
            match ordered_extreme(&call.func).or_else(|| plain_aggregate(&call.func)) {
                Some(function) => {
                    call.func = function;
                    Transformed::yes(Expr::AggregateFunction(call))
                }
                None => Transformed::no(Expr::AggregateFunction(call)),
            }
        }
        Expr::WindowFunction(call) => governed_window(call).update_data(Expr::WindowFunction),
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::StringConcat, right }) => {
            let concat = GovernedConcat::new_udf();
            Transformed::yes(concat.call(vec![*left, *right]))
        }
        Expr::Cast(Cast { expr, field }) if needs_bound(&expr, field.data_type(), schema) => {
            let bounded = BoundedText::refusing().call(vec![*expr]);
            Transformed::yes(Expr::Cast(Cast { expr: Box::new(bounded), field }))
        }
        Expr::TryCast(TryCast { expr, field }) if needs_bound(&expr, field.data_type(), schema) => {
            let bounded = BoundedText::nulling().call(vec![*expr]);
            Transformed::yes(Expr::TryCast(TryCast { expr: Box::new(bounded), field }))
        }
        Expr::Cast(Cast { expr, field }) => match NarrowItems::of_cast(&expr, field.data_type(), schema) {
            Some(function) => Transformed::yes(Expr::Cast(Cast { expr: Box::new(function.call(vec![*expr])), field })),
            None => Transformed::no(Expr::Cast(Cast { expr, field })),
        },
        Expr::TryCast(TryCast { expr, field }) => match NarrowItems::of_cast(&expr, field.data_type(), schema) {
            Some(function) => {
                Transformed::yes(Expr::TryCast(TryCast { expr: Box::new(function.call(vec![*expr])), field }))
            }
            None => Transformed::no(Expr::TryCast(TryCast { expr, field })),
        },
        other => with_bounded_pattern(other),
    })
}

/// Looks at how many centroids an approximate percentile is asked for, where that is a constant by now; nothing else is
/// computed.
fn check_centroids(expr: &Expr) -> Result<()> {
    let (name, args) = match expr {
        Expr::AggregateFunction(call) => (call.func.name(), &call.params.args),
        Expr::WindowFunction(call) => (call.fun.name(), &call.params.args),
        _ => return Ok(()),
    };
    let place = match name {
        "approx_percentile_cont" => 2,
        "approx_percentile_cont_with_weight" => 3,
        _ => return Ok(()),
    };
    let asked = match args.get(place) {
        Some(Expr::Literal(value, _)) => value.cast_to(&DataType::Int64).ok(),
        _ => None,
    };
    match asked {
        Some(ScalarValue::Int64(Some(count))) if count > MAX_CENTROIDS => {
            let message = format!("{name} keeps at most {MAX_CENTROIDS} centroids; ask for fewer");
            Err(EngineError::InvalidValue { message }.into())
        }
        _ => Ok(()),
    }
}

/// Returns the function with bounds around it; `None` where it has them, or where DataFusion has to recognise it.
fn governed_function(function: &Arc<ScalarUDF>) -> Option<Arc<ScalarUDF>> {
    let inner = function.inner();
    let stays = inner.is::<GovernedFunction>()
        || inner.is::<GovernedConcat>()
        || inner.is::<BoundedText>()
        || inner.is::<NarrowItems>()
        || inner.is::<GetFieldFunc>()
        || inner.is::<LogFunc>()
        || inner.is::<PowerFunc>()
        || function.as_async().is_some()
        || is_stored_conversion(function);
    (!stays).then(|| CallBounds::around(Arc::clone(function)))
}

/// Returns a function as sessions know it: within bounds also while a statement is planned.
pub(crate) fn governed(function: Arc<ScalarUDF>) -> Arc<ScalarUDF> {
    governed_function(&function).unwrap_or(function)
}

/// Returns the function inside of one that has bounds around it.
pub(crate) fn ungoverned(function: &ScalarUDF) -> Option<&Arc<ScalarUDF>> {
    GovernedFunction::unwrapped(function).map(|(inner, _)| inner)
}

/// Returns the functions that stand for operators and casts in plans, which no session knows by name.
pub(crate) fn unnamed_functions() -> Vec<Arc<ScalarUDF>> {
    let texts = [BoundedText::refusing(), BoundedText::pattern(), BoundedText::regular_expression()];
    let items = [NarrowItems::bounding(), NarrowItems::counting()];
    let functions = std::iter::once(GovernedConcat::new_udf()).chain(items).chain(texts);
    functions.map(|function| Arc::new(function.clone())).chain(PatternMatch::all()).collect()
}

/// Whether a cast parses text as decimals: its parser recurses once for every few digits.
fn needs_bound(expr: &Expr, target: &DataType, schema: &DFSchema) -> bool {
    if !holds_decimals(target) {
        return false;
    }
    match expr {
        Expr::Literal(value, _) => text::is_long(value),
        Expr::ScalarFunction(call) if call.func.inner().is::<BoundedText>() => false,
        Expr::ScalarFunction(call) if call.func.inner().is::<NarrowItems>() => {
            call.args.first().is_some_and(|counted| needs_bound(counted, target, schema))
        }
        other => other.get_type(schema).map_or(true, |from| holds_text(&from)),
    }
}
