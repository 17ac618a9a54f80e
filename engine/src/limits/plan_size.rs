//! How large a plan may be. Plans share their parts: twenty WITH queries that each use the one before twice are a kilobyte of
//! text, few nodes in memory and a million for whoever walks them. So they are counted as they are walked, before anything
//! else walks them, and counting ends at the limit.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, GroupingSet, LogicalPlan, Subquery};

use crate::error::EngineError;

/// The most operators and expressions of a plan; names and constants do not count.
const MAX_NODES: usize = 100_000;
/// The most operators alone: each is rewritten by every rule of the optimizer.
const MAX_OPERATORS: usize = 10_000;
/// The most sets that one GROUP BY makes of every row.
const MAX_GROUPING_SETS: usize = 4_096;
/// The most operators that DataFusion's checks of a plan look at: those of a subquery within an expression twice as often as those of
/// the query around it. Subqueries of two operators may be fourteen levels deep.
const MAX_CHECKED_OPERATORS: usize = 100_000;

/// The most parts of the types of an operator's columns, and how deep they may be within each other. Types share their parts: a structure
/// of a column twice, of which the next one has two again, is a line of text each time, and twice as long for whoever compares types.
const MAX_TYPE_PARTS: usize = 100_000;
const MAX_TYPE_DEPTH: usize = 250;

/// The most items of a SELECT times the parts of the largest type below: DataFusion hashes that type for each item that is of it.
const MAX_ITEM_PARTS: usize = 16_000_000;
/// Fewer items take no time that counts.
const MANY_ITEMS: usize = 100;

/// The most calls within calls, along the first argument of each. DataFusion makes the name of each whenever it asks for the type of
/// one, so that planning takes the third power of their number.
const MAX_NESTED_CALLS: usize = 128;

enum PlanPart<'p> {
    Of(&'p LogicalPlan),
    /// Of a subquery, with how many levels it is deep.
    Shared(Arc<LogicalPlan>, u32),
}

/// Returns an error where planning would take too long. Errors: `sql_plan_error`.
pub(crate) fn check_plan_size(plan: &LogicalPlan) -> Result<(), EngineError> {
    let mut count = Count::default();
    let mut pending = vec![PlanPart::Of(plan)];
    while let Some(part) = pending.pop() {
        match &part {
            PlanPart::Of(plan) => {
                count.plan(plan, 0, &mut pending)?;
                pending.extend(plan.inputs().into_iter().map(PlanPart::Of));
            }
            PlanPart::Shared(plan, level) => {
                count.plan(plan, *level, &mut pending)?;
                let inputs = plan.inputs().into_iter();
                pending.extend(inputs.map(|input| PlanPart::Shared(Arc::new(input.clone()), *level)));
            }
        }
    }
    Ok(())
}

/// Returns an error where an expression is a chain of calls that is too long to plan, such as an operator of JSON in a row. Errors:
/// `sql_plan_error`.
pub(crate) fn check_nested_calls(expr: &Expr) -> Result<(), EngineError> {
    if !matches!(expr, Expr::ScalarFunction(_)) {
        return Ok(());
    }
    let (mut calls, mut inner) = (0, expr);
    loop {
        inner = match inner {
            Expr::ScalarFunction(call) => {
                calls += 1;
                let Some(first) = call.args.first() else { return Ok(()) };
                first
            }
            Expr::Alias(alias) => &alias.expr,
            Expr::Cast(cast) => &cast.expr,
            Expr::TryCast(cast) => &cast.expr,
            Expr::BinaryExpr(binary) => &binary.left,
            _ => return Ok(()),
        };
        if calls > MAX_NESTED_CALLS {
            return Err(EngineError::too_deep());
        }
    }
}

#[derive(Default)]
struct Count {
    nodes: usize,
    operators: usize,
    checked: usize,
}

impl Count {
    fn plan(&mut self, plan: &LogicalPlan, level: u32, pending: &mut Vec<PlanPart<'_>>) -> Result<(), EngineError> {
        self.operators += 1;
        if self.operators > MAX_OPERATORS {
            return Err(too_large());
        }
        self.checked = self.checked.saturating_add(1_usize.checked_shl(level).unwrap_or(usize::MAX));
        if level > 0 && self.checked > MAX_CHECKED_OPERATORS {
            return Err(EngineError::too_deep());
        }
        check_types(plan)?;
        if let LogicalPlan::Aggregate(aggregate) = plan {
            let sets = aggregate.group_expr.iter().map(grouping_sets).fold(1, usize::saturating_mul);
            if sets > MAX_GROUPING_SETS {
                let message = format!(
                    "GROUP BY makes {sets} grouping sets of every row, at most {MAX_GROUPING_SETS} are possible; \
                     name the sets that are needed with GROUPING SETS"
                );
                return Err(EngineError::Plan { message });
            }
        }
        plan.apply_expressions(|expr| self.expr(expr, level + 1, pending))?;
        if self.nodes > MAX_NODES { Err(too_large()) } else { Ok(()) }
    }

    fn expr(&mut self, expr: &Expr, level: u32, pending: &mut Vec<PlanPart<'_>>) -> Result<TreeNodeRecursion> {
        expr.apply(|expr| {
            let mut subquery = |query: &Subquery| pending.push(PlanPart::Shared(Arc::clone(&query.subquery), level));
            match expr {
                Expr::Literal(_, _) | Expr::Column(_) | Expr::Alias(_) => return Ok(TreeNodeRecursion::Continue),
                Expr::ScalarSubquery(query) => subquery(query),
                Expr::Exists(exists) => subquery(&exists.subquery),
                Expr::InSubquery(query) => subquery(&query.subquery),
                Expr::SetComparison(comparison) => subquery(&comparison.subquery),
                _ => {}
            }
            self.nodes += 1;
            Ok(if self.nodes > MAX_NODES { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })
    }
}

/// Refuses a plan whose columns have types that are too large. Errors: `sql_plan_error`.
pub(crate) fn check_types(plan: &LogicalPlan) -> Result<(), EngineError> {
    let mut left = MAX_TYPE_PARTS;
    let mut columns = plan.schema().fields().iter();
    match columns.find(|column| take_type(column.data_type(), MAX_TYPE_DEPTH, &mut left).is_none()) {
        None => Ok(()),
        Some(column) => Err(too_many_parts(column.name())),
    }
}

/// Refuses a relation over which SELECTs of up to so many items take too long to plan. Errors: `sql_plan_error`.
pub(crate) fn check_wide_select(relation: &LogicalPlan, items: usize) -> Result<(), EngineError> {
    if items < MANY_ITEMS {
        return Ok(());
    }
    let most = MAX_ITEM_PARTS / items;
    let is_larger = |data_type: &DataType| {
        let mut left = most;
        take_type(data_type, usize::MAX, &mut left).is_none()
    };
    let mut columns = relation.schema().fields().iter();
    if let Some(column) = columns.find(|column| is_larger(column.data_type())) {
        let message = format!(
            "the type of `{}` has too many parts for a SELECT of {items} items: more than {most}; select fewer at a time, or the \
             fields that are needed",
            column.name()
        );
        return Err(EngineError::Plan { message });
    }
    Ok(())
}

/// Refuses a type that is too large, of what has a name. Errors: `sql_plan_error`.
pub(crate) fn check_type(name: &str, data_type: &DataType) -> Result<(), EngineError> {
    let mut left = MAX_TYPE_PARTS;
    take_type(data_type, MAX_TYPE_DEPTH, &mut left).ok_or_else(|| too_many_parts(name))
}

fn too_many_parts(name: &str) -> EngineError {
    let message = format!(
        "the type of `{name}` has too many parts: those of all columns of a query are {MAX_TYPE_PARTS} at most, and \
         {MAX_TYPE_DEPTH} within each other"
    );
    EngineError::Plan { message }
}

/// Takes the parts of a type off those that are left; `None` where these are too few, or the type is deeper than `depth`.
fn take_type(data_type: &DataType, depth: usize, left: &mut usize) -> Option<()> {
    *left = left.checked_sub(1)?;
    let depth = depth.checked_sub(1)?;
    match data_type {
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::FixedSizeList(item, _)
        | DataType::Map(item, _)
        | DataType::RunEndEncoded(_, item) => take_type(item.data_type(), depth, left),
        DataType::Struct(fields) => fields.iter().try_for_each(|field| take_type(field.data_type(), depth, left)),
        DataType::Union(fields, _) => {
            fields.iter().try_for_each(|(_, field)| take_type(field.data_type(), depth, left))
        }
        DataType::Dictionary(_, value) => take_type(value, depth, left),
        _ => Some(()),
    }
}

fn too_large() -> EngineError {
    let message = format!(
        "the statement's plan has more than {MAX_OPERATORS} operators or {MAX_NODES} expressions once views and WITH \
         queries are written out; use each of them fewer times, or keep a result in a table"
    );
    EngineError::Plan { message }
}

fn grouping_sets(expr: &Expr) -> usize {
    match expr {
        Expr::GroupingSet(GroupingSet::Cube(exprs)) => {
            u32::try_from(exprs.len()).ok().and_then(|count| 2_usize.checked_pow(count)).unwrap_or(usize::MAX)
        }
        Expr::GroupingSet(GroupingSet::Rollup(exprs)) => exprs.len() + 1,
        Expr::GroupingSet(GroupingSet::GroupingSets(sets)) => sets.len(),
        _ => 1,
    }
}
