//! Subqueries that belong to a row of the query around them, at places where DataFusion takes none: in the arguments and groups of
//! aggregates, in windows, in ORDER BY and in the conditions of joins. They become columns below the node, or conditions beside
//! the join. So do subqueries of no row that a condition compares with the outer row, since DataFusion makes that the condition of
//! a join. And subqueries that name the outer row within a derived table: DataFusion keeps the table's old columns when it
//! takes the condition out of it, so that such a table is written as a select list instead.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, JoinType, Result};
use datafusion::logical_expr::expr::{Exists, InSubquery, SetComparison};
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{Expr, Filter, Join, LogicalPlan, LogicalPlanBuilder, Subquery};

use super::in_subqueries::with_null_membership;
use super::lifted_subqueries::with_lifted_values;
use super::subquery_values::{may_be_subquery, with_subquery_values};
use crate::error::EngineError;

/// What the columns that hold subqueries' values are called on the way.
const VALUE: &str = "__subquery_value";

/// Returns an expression that is a subquery with its derived tables that name the outer row as select lists.
pub(super) fn with_plain_tables(expr: Expr) -> Result<Transformed<Expr>> {
    Ok(match expr {
        Expr::ScalarSubquery(subquery) => without_tables(subquery)?.update_data(Expr::ScalarSubquery),
        Expr::Exists(Exists { subquery, negated }) => {
            without_tables(subquery)?.update_data(|subquery| Expr::Exists(Exists { subquery, negated }))
        }
        Expr::InSubquery(InSubquery { expr, subquery, negated }) => {
            without_tables(subquery)?.update_data(|subquery| Expr::InSubquery(InSubquery { expr, subquery, negated }))
        }
        Expr::SetComparison(SetComparison { expr, subquery, op, quantifier }) => without_tables(subquery)?
            .update_data(|subquery| Expr::SetComparison(SetComparison { expr, subquery, op, quantifier })),
        other => Transformed::no(other),
    })
}

fn without_tables(subquery: Subquery) -> Result<Transformed<Subquery>> {
    if subquery.outer_ref_columns.is_empty() {
        return Ok(Transformed::no(subquery));
    }
    let plan = Arc::clone(&subquery.subquery);
    let plan = Arc::unwrap_or_clone(plan).transform_up(|node| match node {
        LogicalPlan::SubqueryAlias(table) if !table.input.all_out_ref_exprs().is_empty() => {
            let columns = table.input.schema().columns().into_iter().zip(table.schema.iter());
            let columns = columns
                .map(|(column, (relation, field))| {
                    Expr::Column(column).alias_qualified(relation.cloned(), field.name())
                })
                .collect::<Vec<_>>();
            let plan = LogicalPlanBuilder::from(table.input).project(columns)?.build()?;
            Ok(Transformed::yes(plan))
        }
        other => Ok(Transformed::no(other)),
    })?;
    Ok(plan.update_data(|plan| Subquery { subquery: Arc::new(plan), ..subquery }))
}

/// Returns a node of which no aggregate, window, order or join has such a subquery.
pub(super) fn with_subqueries_below(node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    if let LogicalPlan::Join(join) = node {
        return with_conditions_beside(join);
    }
    let input = match &node {
        LogicalPlan::Aggregate(aggregate) => Arc::clone(&aggregate.input),
        LogicalPlan::Window(window) => Arc::clone(&window.input),
        LogicalPlan::Sort(sort) => Arc::clone(&sort.input),
        _ => return Ok(Transformed::no(node)),
    };
    let mut found: Vec<Expr> = Vec::new();
    let original = Arc::clone(node.schema());
    let expressions = node.expressions().into_iter().map(|expr| {
        let written = expr.transform_down(|part| match part {
            Expr::ScalarSubquery(subquery) if !subquery.outer_ref_columns.is_empty() => {
                let subquery = Expr::ScalarSubquery(subquery);
                let place = found.iter().position(|known| *known == subquery).unwrap_or_else(|| {
                    found.push(subquery);
                    found.len() - 1
                });
                let column = Expr::Column(Column::new_unqualified(format!("{VALUE}{place}")));
                Ok(Transformed::new(column, true, TreeNodeRecursion::Jump))
            }
            other => Ok(Transformed::no(other)),
        });
        written.map(|written| written.data)
    });
    let expressions = expressions.collect::<Result<Vec<_>>>()?;
    if found.is_empty() {
        return Ok(Transformed::no(node));
    }
    let (own, rows) = rows_of_values(&node, &input, &found)?;
    let mut columns = own;
    for (place, value) in found.into_iter().enumerate() {
        let value = with_subquery_values(value, rows.schema())?.data;
        columns.push(value.alias(format!("{VALUE}{place}")));
    }
    let below = LogicalPlanBuilder::from(rows).project(columns)?.build()?;
    let below = with_lifted_values(below)?.data;
    let plan = node.with_new_exprs(expressions, vec![below])?.recompute_schema()?;
    // Above, columns are known by what they were called; those of the values are left out.
    let added = plan.schema().fields().len() - original.fields().len();
    let kept = input.schema().fields().len();
    let is_added = |at: usize| added > 0 && (kept..kept + added).contains(&at);
    let columns = plan.schema().columns().into_iter().enumerate().filter(|(at, _)| !is_added(*at));
    let named = columns
        .zip(original.iter())
        .map(|((_, column), (relation, field))| Expr::Column(column).alias_qualified(relation.cloned(), field.name()));
    let plan = LogicalPlanBuilder::from(plan).project(named.collect::<Vec<_>>())?.build()?;
    Ok(Transformed::yes(plan))
}

/// Returns a filter within a subquery of which no condition has both a column of the outer row and a subquery of no row:
/// `WHERE t.h = (SELECT min(h) FROM t)`.
pub(super) fn with_values_beside_outer(node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::Filter(filter) = node else { return Ok(Transformed::no(node)) };
    if !filter.predicate.contains_outer() || !filter.predicate.exists(|part| Ok(is_of_no_row(part)))? {
        return Ok(Transformed::no(LogicalPlan::Filter(filter)));
    }
    let mut found: Vec<Expr> = Vec::new();
    let conditions = split_conjunction_owned(filter.predicate.clone()).into_iter().map(|condition| {
        if !condition.contains_outer() {
            return Ok(condition);
        }
        let written = condition.transform_down(|part| match part {
            part if is_of_no_row(&part) => {
                let column = format!("{VALUE}{}", found.len());
                found.push(part.alias(column.clone()));
                let column = Expr::Column(Column::new_unqualified(column));
                Ok(Transformed::new(column, true, TreeNodeRecursion::Jump))
            }
            other => Ok(Transformed::no(other)),
        });
        written.map(|written| written.data)
    });
    let predicate = conjunction(conditions.collect::<Result<Vec<_>>>()?);
    let Some(predicate) = predicate.filter(|_| !found.is_empty()) else {
        return Ok(Transformed::no(LogicalPlan::Filter(filter)));
    };
    let columns: Vec<Expr> = filter.input.schema().columns().into_iter().map(Expr::Column).collect();
    let below = columns.iter().cloned().chain(found).collect::<Vec<_>>();
    let below = LogicalPlanBuilder::from(filter.input).project(below)?.build()?;
    let filter = LogicalPlan::Filter(Filter::try_new(predicate, Arc::new(below))?);
    let filter = with_null_membership(filter)?.transform_data(with_lifted_values)?.data;
    Ok(Transformed::yes(LogicalPlanBuilder::from(filter).project(columns)?.build()?))
}

fn is_of_no_row(expr: &Expr) -> bool {
    matches!(expr, Expr::ScalarSubquery(subquery) if subquery.outer_ref_columns.is_empty())
}

/// Returns the columns below a node, and the rows that they and its subqueries are computed of. Those of ORDER BY may name what
/// the query does not select. Errors: `sql_plan_error` where that is no column of a row either.
fn rows_of_values(
    node: &LogicalPlan,
    input: &Arc<LogicalPlan>,
    found: &[Expr],
) -> Result<(Vec<Expr>, Arc<LogicalPlan>)> {
    let columns = || input.schema().columns().into_iter().map(Expr::Column).collect();
    let mut missing = None;
    for subquery in found {
        missing = missing.or_else(|| unknown_column(subquery, input.schema()));
    }
    let (Some(missing), LogicalPlan::Sort(_)) = (missing, node) else { return Ok((columns(), Arc::clone(input))) };
    if let LogicalPlan::Projection(select) = input.as_ref() {
        let mut is_known = true;
        for subquery in found {
            is_known &= is_about(subquery, select.input.schema())?;
        }
        if is_known {
            return Ok((select.expr.clone(), Arc::clone(&select.input)));
        }
    }
    let message = format!(
        "a subquery in ORDER BY names `{missing}`, which is no column of the rows that are sorted; select it, and sort the rows of \
         that query"
    );
    Err(EngineError::Plan { message }.into())
}

/// Returns a column that a subquery has of the query around it, and that is not among its columns.
fn unknown_column(subquery: &Expr, schema: &DFSchema) -> Option<String> {
    let Expr::ScalarSubquery(subquery) = subquery else { return None };
    subquery.subquery.all_out_ref_exprs().into_iter().find_map(|outer| match outer {
        Expr::OuterReferenceColumn(_, column) if !schema.has_column(&column) => Some(column.flat_name()),
        _ => None,
    })
}

/// Takes conditions with subqueries out of a join: above an inner one, and below the side that they are about where no row of
/// that side is lost by it.
fn with_conditions_beside(join: Join) -> Result<Transformed<LogicalPlan>> {
    let has_subquery = |expr: &Expr| expr.exists(|part| Ok(may_be_subquery(part)));
    let Some(filter) = join.filter.clone() else { return Ok(Transformed::no(LogicalPlan::Join(join))) };
    if !has_subquery(&filter)? {
        return Ok(Transformed::no(LogicalPlan::Join(join)));
    }
    let (mut kept, mut left, mut right, mut above) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for part in split_conjunction_owned(filter) {
        let is_of = |schema: &DFSchema| is_about(&part, schema);
        let side = match join.join_type {
            _ if !has_subquery(&part)? => &mut kept,
            JoinType::Inner => &mut above,
            JoinType::Left | JoinType::LeftSemi | JoinType::LeftAnti if is_of(join.right.schema())? => &mut right,
            JoinType::Right | JoinType::RightSemi | JoinType::RightAnti if is_of(join.left.schema())? => &mut left,
            _ => &mut kept,
        };
        side.push(part);
    }
    if left.is_empty() && right.is_empty() && above.is_empty() {
        return Ok(Transformed::no(LogicalPlan::Join(join)));
    }
    let filtered = |conditions: Vec<Expr>, input: Arc<LogicalPlan>| -> Result<Arc<LogicalPlan>> {
        let Some(condition) = conjunction(conditions) else { return Ok(input) };
        let filter = with_null_membership(LogicalPlan::Filter(Filter::try_new(condition, input)?))?;
        Ok(Arc::new(filter.transform_data(with_lifted_values)?.data))
    };
    let (left, right) = (filtered(left, Arc::clone(&join.left))?, filtered(right, Arc::clone(&join.right))?);
    let joined = LogicalPlan::Join(Join { left, right, filter: conjunction(kept), ..join });
    Ok(Transformed::yes(Arc::unwrap_or_clone(filtered(above, Arc::new(joined))?)))
}

/// Whether all columns of a condition, also those that its subqueries have of this query, are of one side.
fn is_about(condition: &Expr, schema: &DFSchema) -> Result<bool> {
    let mut is_about = condition.column_refs().iter().all(|column| schema.has_column(column));
    condition.apply(|part| {
        let subquery = match part {
            Expr::ScalarSubquery(subquery) => subquery,
            Expr::Exists(exists) => &exists.subquery,
            Expr::InSubquery(within) => &within.subquery,
            Expr::SetComparison(comparison) => &comparison.subquery,
            _ => return Ok(TreeNodeRecursion::Continue),
        };
        is_about &= subquery.subquery.all_out_ref_exprs().iter().all(|outer| match outer {
            Expr::OuterReferenceColumn(_, column) => schema.has_column(column),
            _ => false,
        });
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(is_about)
}
