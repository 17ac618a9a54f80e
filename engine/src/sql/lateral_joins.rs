//! Subqueries of a FROM clause that use columns of the tables before them (`LATERAL`), where the columns are used in select
//! lists, in WHERE and in `unnest`: the tables are joined first, and the expressions computed over both. What aggregates, orders or
//! limits by the outer row is for [`super::lifted_subqueries`].

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, JoinType, RecursionUnnestOption, TableReference, UnnestOptions};
use datafusion::error::Result;
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{Expr, Join, LogicalPlan, LogicalPlanBuilder, Projection, Subquery, Unnest};

use super::lifted_subqueries::{lifted_join, refuse_window_by_row};
use super::plan_nodes::any_node;
use super::subquery_values::refuse_sets_by_row;

/// What the columns of a subquery's own tables are qualified by while both sides are joined.
const INNER: &str = "__lateral";

/// Returns the plan with such subqueries joined.
pub(super) fn join_laterals(plan: LogicalPlan) -> Result<LogicalPlan> {
    let is_lateral =
        |node: &LogicalPlan| matches!(node, LogicalPlan::Join(_)) && node.inputs().into_iter().any(is_subquery);
    if !any_node(&plan, |node| Ok(is_lateral(node)))? {
        return Ok(plan);
    }
    plan.transform_up_with_subqueries(|node| match node {
        LogicalPlan::Join(join)
            if matches!(join.join_type, JoinType::Inner | JoinType::Left) && is_subquery(&join.right) =>
        {
            let plain = if join.join_type == JoinType::Inner { joined(&join)? } else { None };
            let plan = match plain {
                Some(plan) => Some(plan),
                None if depends_on_outer(&join.right) => lifted_join(&join)?,
                None => None,
            };
            if plan.is_none() {
                refuse_window_by_row(&join.right)?;
                refuse_sets_by_row(&join.right)?;
            }
            Ok(plan.map_or_else(|| Transformed::no(LogicalPlan::Join(join)), Transformed::yes))
        }
        other => Ok(Transformed::no(other)),
    })
    .data()
}

fn is_subquery(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Subquery(_) => true,
        LogicalPlan::SubqueryAlias(alias) => is_subquery(&alias.input),
        LogicalPlan::Projection(projection) => is_subquery(&projection.input),
        _ => false,
    }
}

/// A subquery as columns over a plan without outer columns, or over one that has the outer tables already.
pub(super) struct Pulled {
    pub(super) base: LogicalPlan,
    /// Whether the outer tables are in `base`.
    pub(super) has_left: bool,
    pub(super) filters: Vec<Expr>,
    pub(super) columns: Vec<(Option<TableReference>, String, Expr)>,
}

fn joined(join: &Join) -> Result<Option<LogicalPlan>> {
    if !join.on.is_empty() || !depends_on_outer(&join.right) {
        return Ok(None);
    }
    let Some(pulled) = pull(&join.right, &join.left)? else { return Ok(None) };
    let mut plan = with_left(&pulled, &join.left)?;
    if let Some(condition) = conjunction(pulled.filters) {
        plan = plan.filter(condition)?;
    }
    let left = join.left.schema().columns().into_iter().map(Expr::Column);
    let right = pulled.columns.into_iter().map(|(table, name, expr)| expr.alias_qualified(table, name));
    plan = plan.project(left.chain(right).collect::<Vec<_>>())?;
    if let Some(condition) = &join.filter {
        plan = plan.filter(condition.clone())?;
    }
    plan.build().map(Some)
}

/// Returns both sides, where the outer one is not there yet.
fn with_left(pulled: &Pulled, left: &Arc<LogicalPlan>) -> Result<LogicalPlanBuilder> {
    match pulled.has_left {
        true => Ok(LogicalPlanBuilder::from(pulled.base.clone())),
        false => LogicalPlanBuilder::from(left.as_ref().clone()).cross_join(pulled.base.clone()),
    }
}

/// Whether a subquery names columns of the tables before it. Those that subqueries in it name are its own.
fn depends_on_outer(plan: &LogicalPlan) -> bool {
    !plan.all_out_ref_exprs().is_empty()
}

/// Pulls the expressions that use outer columns out of a subquery; `None` where it has others than those of this file.
pub(super) fn pull(plan: &LogicalPlan, left: &Arc<LogicalPlan>) -> Result<Option<Pulled>> {
    if !depends_on_outer(plan) {
        // Its columns get names that those of the outer tables have not.
        let own = plan.schema().columns();
        let renamed =
            own.iter().enumerate().map(|(index, column)| Expr::Column(column.clone()).alias(inner_name(index)));
        let base =
            LogicalPlanBuilder::from(plan.clone()).project(renamed.collect::<Vec<_>>())?.alias(INNER)?.build()?;
        let columns = own.into_iter().enumerate().map(|(index, column)| (column.relation, column.name, inner(index)));
        return Ok(Some(Pulled { base, has_left: false, filters: Vec::new(), columns: columns.collect() }));
    }
    match plan {
        LogicalPlan::Subquery(subquery) => pull(&subquery.subquery, left),
        LogicalPlan::SubqueryAlias(alias) => {
            let pulled = pull(&alias.input, left)?;
            Ok(pulled.map(|mut pulled| {
                pulled.columns.iter_mut().for_each(|(table, _, _)| *table = Some(alias.alias.clone()));
                pulled
            }))
        }
        LogicalPlan::Filter(filter) => {
            // What names no outer column stays below, where it may have a subquery of its own.
            let is_below = !depends_on_outer(&filter.input);
            let conditions = split_conjunction_owned(filter.predicate.clone());
            let (own, by_row): (Vec<Expr>, Vec<Expr>) =
                conditions.into_iter().partition(|part| is_below && is_of_input(part, filter.input.schema()));
            let below = match conjunction(own) {
                Some(own) => LogicalPlanBuilder::from(filter.input.as_ref().clone()).filter(own)?.build()?,
                None => filter.input.as_ref().clone(),
            };
            let Some(mut pulled) = pull(&below, left)? else { return Ok(None) };
            for part in by_row {
                let Some(condition) = over_both(&part, &pulled, left.schema())? else { return Ok(None) };
                pulled.filters.push(condition);
            }
            Ok(Some(pulled))
        }
        LogicalPlan::Projection(Projection { expr, input, .. }) => {
            let Some(pulled) = pull(input, left)? else { return Ok(None) };
            let mut columns = Vec::with_capacity(expr.len());
            for one in expr {
                let (table, name) = one.qualified_name();
                let Some(written) = over_both(one, &pulled, left.schema())? else { return Ok(None) };
                columns.push((table, name, written.unalias()));
            }
            Ok(Some(Pulled { columns, ..pulled }))
        }
        LogicalPlan::Unnest(unnest) => {
            let pulled = if takes_lists_apart(unnest) { pull(&unnest.input, left)? } else { None };
            let Some(pulled) = pulled.filter(|pulled| !pulled.has_left && pulled.filters.is_empty()) else {
                return Ok(None);
            };
            let outer = left.schema().columns().into_iter().map(Expr::Column);
            let own = pulled.columns.iter().enumerate();
            let own = own.map(|(index, (_, _, expr))| expr.clone().alias(list_name(index)));
            let lists: Vec<Column> =
                unnest.list_type_columns.iter().map(|(index, _)| Column::new_unqualified(list_name(*index))).collect();
            let base = with_left(&pulled, left)?
                .project(outer.chain(own).collect::<Vec<_>>())?
                .unnest_columns_with_options(lists, item_names(unnest))?
                .build()?;
            let found = base.schema().columns().into_iter().skip(left.schema().fields().len());
            let columns = unnest.schema.columns().into_iter().zip(found);
            let columns = columns.map(|(column, found)| (column.relation, column.name, Expr::Column(found))).collect();
            Ok(Some(Pulled { columns, base, has_left: true, filters: Vec::new() }))
        }
        _ => Ok(None),
    }
}

/// Returns whether an expression, and the subqueries in it, name no columns but those of an input.
fn is_of_input(expr: &Expr, input: &DFSchema) -> bool {
    let is_foreign = |part: &Expr| {
        let is_of_others = |subquery: &Subquery| {
            let of_input =
                |column: &Expr| matches!(column, Expr::OuterReferenceColumn(_, column) if input.has_column(column));
            !subquery.outer_ref_columns.iter().all(of_input)
        };
        Ok(match part {
            Expr::OuterReferenceColumn(..) => true,
            Expr::ScalarSubquery(subquery) => is_of_others(subquery),
            Expr::InSubquery(found) => is_of_others(&found.subquery),
            Expr::Exists(found) => is_of_others(&found.subquery),
            Expr::SetComparison(found) => is_of_others(&found.subquery),
            _ => false,
        })
    };
    !expr.exists(is_foreign).unwrap_or(true)
}

/// Returns whether nothing but lists is taken apart, each once.
pub(super) fn takes_lists_apart(unnest: &Unnest) -> bool {
    unnest.struct_type_columns.is_empty()
        && unnest.list_type_columns.iter().all(|(_, list)| list.depth == 1)
        && unnest.schema.fields().len() == unnest.input.schema().fields().len()
}

/// Returns the options by which items are named unlike their lists, those of [`list_name`]: the rule that takes fields of structs
/// below would take them of the list.
pub(super) fn item_names(unnest: &Unnest) -> UnnestOptions {
    let options = UnnestOptions { recursions: Vec::new(), ..unnest.options.clone() };
    unnest.list_type_columns.iter().fold(options, |options, (index, _)| {
        options.with_recursions(RecursionUnnestOption {
            input_column: Column::new_unqualified(list_name(*index)),
            output_column: Column::new_unqualified(format!("{INNER}_item{index}")),
            depth: 1,
        })
    })
}

fn inner_name(index: usize) -> String {
    format!("c{index}")
}

pub(super) fn list_name(index: usize) -> String {
    format!("{INNER}_list{index}")
}

fn inner(index: usize) -> Expr {
    Expr::Column(Column::new(Some(INNER), inner_name(index)))
}

/// Returns an expression of a subquery over the columns of both sides, as [`written_outside`] does.
fn over_both(expr: &Expr, pulled: &Pulled, left: &DFSchema) -> Result<Option<Expr>> {
    let known = pulled.columns.iter().map(|(table, name, expr)| ((table.as_ref(), name.as_str()), expr)).collect();
    written_outside(expr, &known, left)
}

/// Returns an expression of a subquery over the columns outside of it: `known` has what its own columns are there, by their
/// qualifiers and names, and `outer` has the columns that it names further out. `None` where it has a subquery of its own, or
/// a column of a query further out than that.
pub(super) fn written_outside(
    expr: &Expr,
    known: &HashMap<(Option<&TableReference>, &str), &Expr>,
    outer: &DFSchema,
) -> Result<Option<Expr>> {
    let mut is_other = false;
    let written = expr.clone().transform_down(|part| {
        Ok(match &part {
            Expr::OuterReferenceColumn(_, column) => {
                is_other |= !outer.has_column(column);
                Transformed::new(Expr::Column(column.clone()), true, TreeNodeRecursion::Jump)
            }
            Expr::Column(column) => match known.get(&(column.relation.as_ref(), column.name.as_str())) {
                Some(found) => Transformed::new((*found).clone(), true, TreeNodeRecursion::Jump),
                None => {
                    is_other = true;
                    Transformed::no(part)
                }
            },
            Expr::ScalarSubquery(_) | Expr::InSubquery(_) | Expr::Exists(_) | Expr::SetComparison(_) => {
                is_other = true;
                Transformed::no(part)
            }
            _ => Transformed::no(part),
        })
    })?;
    Ok((!is_other).then_some(written.data))
}
