//! Subqueries that refer to a query two levels out. DataFusion takes a subquery apart by the columns of the query right around
//! it. Where that one says that a column of its own is equal to the one further out, as in
//!
//! ```sql
//! SELECT id FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.id = a.id AND EXISTS (SELECT 1 FROM c WHERE c.id = a.id))
//! ```
//!
//! the subquery may refer to its own: `c.id = b.id`. Where it says no such thing, and the subquery stands in its WHERE, it gets such
//! columns beside its tables ([`super::carried_columns`]). Others are refused, with what to write instead.

use std::sync::Arc;

use arrow::datatypes::FieldRef;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, ExprSchema};
use datafusion::error::Result;
use datafusion::logical_expr::expr::{Exists, InSubquery, SetComparison};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::{merge_schema, split_conjunction};
use datafusion::logical_expr::{BinaryExpr, Expr, Filter, LogicalPlan, Operator, Subquery};

use super::carried_columns::with_carried_columns;
use super::plan_nodes::any_node;
use crate::error::EngineError;

/// A column of a subquery that is equal to one of the query around it in every row that is left.
#[derive(Clone)]
pub(super) struct EqualColumn {
    pub(super) own: Column,
    pub(super) outer: Column,
    pub(super) field: FieldRef,
}

/// Returns the plan with such references as references to the query right around. Errors: `unsupported`.
pub(super) fn near_references(plan: LogicalPlan) -> Result<LogicalPlan> {
    let plan = plan.transform_down_with_subqueries(|node| match node {
        LogicalPlan::Subquery(subquery) if has_subqueries(&subquery.subquery)? => {
            let Subquery { subquery, outer_ref_columns, spans } = subquery;
            let near = near_plan(Arc::unwrap_or_clone(subquery), &mut Vec::new())?;
            Ok(near.update_data(|plan| {
                LogicalPlan::Subquery(Subquery { subquery: Arc::new(plan), outer_ref_columns, spans })
            }))
        }
        other => Ok(Transformed::no(other)),
    });
    let plan = plan.data()?;
    if refuse_far_references(&plan, false).is_ok() {
        return Ok(plan);
    }
    let plan = with_carried_columns(plan)?;
    refuse_far_references(&plan, false)?;
    Ok(plan)
}

fn has_subqueries(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.apply(|node| {
        node.apply_expressions(|expr| {
            found |= expr.exists(|part| Ok(subquery_of(part).is_some()))?;
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    Ok(found)
}

/// Returns the subquery that an expression is.
pub(super) fn subquery_of(expr: &Expr) -> Option<&Subquery> {
    match expr {
        Expr::ScalarSubquery(subquery)
        | Expr::Exists(Exists { subquery, .. })
        | Expr::InSubquery(InSubquery { subquery, .. })
        | Expr::SetComparison(SetComparison { subquery, .. }) => Some(subquery),
        _ => None,
    }
}

/// Rewrites the subqueries of a query, from its last step down to where it has several inputs. `equal` gets the columns that
/// the conditions on the way say to be equal: what is above a condition sees the rows for which it holds.
fn near_plan(plan: LogicalPlan, equal: &mut Vec<EqualColumn>) -> Result<Transformed<LogicalPlan>> {
    if !is_step(&plan) {
        return Ok(Transformed::no(plan));
    }
    let below = plan.map_children(|input| near_plan(input, equal))?;
    below.transform_data(|node| {
        if let LogicalPlan::Filter(filter) = &node {
            equal.extend(equal_columns(filter));
        }
        let schema = merge_schema(&node.inputs());
        let is_seen = |known: &&EqualColumn| schema.has_column(&known.own) && !schema.has_column(&known.outer);
        let known: Vec<EqualColumn> = equal.iter().filter(is_seen).cloned().collect();
        if known.is_empty() {
            return Ok(Transformed::no(node));
        }
        let names = NamePreserver::new(&node);
        let near = node.map_expressions(|expr| {
            let name = names.save(&expr);
            let near = expr.transform_down(|part| near_subquery(part, &known))?;
            Ok(near.update_data(|expr| name.restore(expr)))
        })?;
        near.map_data(LogicalPlan::recompute_schema)
    })
}

/// Whether a node is a step of a query over its tables.
pub(super) fn is_step(plan: &LogicalPlan) -> bool {
    matches!(
        plan,
        LogicalPlan::Projection(_)
            | LogicalPlan::Filter(_)
            | LogicalPlan::Aggregate(_)
            | LogicalPlan::Window(_)
            | LogicalPlan::Sort(_)
            | LogicalPlan::Limit(_)
            | LogicalPlan::Distinct(_)
    )
}

/// Returns the columns of a condition's input that are equal to outer ones of the same type.
fn equal_columns(filter: &Filter) -> Vec<EqualColumn> {
    let schema = filter.input.schema();
    let pair = |condition: &Expr| -> Option<EqualColumn> {
        let Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) = condition else { return None };
        let (own, field, outer) = match (left.as_ref(), right.as_ref()) {
            (Expr::Column(own), Expr::OuterReferenceColumn(field, outer))
            | (Expr::OuterReferenceColumn(field, outer), Expr::Column(own)) => (own, field, outer),
            _ => return None,
        };
        let own_field = schema.field_from_column(own).ok()?;
        let is_same = own.relation.is_some() && own_field.data_type() == field.data_type();
        is_same.then(|| EqualColumn { own: own.clone(), outer: outer.clone(), field: Arc::clone(field) })
    };
    split_conjunction(&filter.predicate).into_iter().filter_map(pair).collect()
}

/// Returns an expression that is a subquery with references to the known columns in the places of those further out.
pub(super) fn near_subquery(expr: Expr, known: &[EqualColumn]) -> Result<Transformed<Expr>> {
    with_subquery(expr, |subquery| near(subquery, known))
}

/// Returns an expression that is a subquery with another one in its place.
pub(super) fn with_subquery(
    expr: Expr,
    change: impl FnOnce(Subquery) -> Result<Transformed<Subquery>>,
) -> Result<Transformed<Expr>> {
    Ok(match expr {
        Expr::ScalarSubquery(subquery) => change(subquery)?.update_data(Expr::ScalarSubquery),
        Expr::Exists(Exists { subquery, negated }) => {
            change(subquery)?.update_data(|subquery| Expr::Exists(Exists { subquery, negated }))
        }
        Expr::InSubquery(InSubquery { expr, subquery, negated }) => {
            change(subquery)?.update_data(|subquery| Expr::InSubquery(InSubquery { expr, subquery, negated }))
        }
        Expr::SetComparison(SetComparison { expr, subquery, op, quantifier }) => change(subquery)?
            .update_data(|subquery| Expr::SetComparison(SetComparison { expr, subquery, op, quantifier })),
        other => Transformed::no(other),
    })
}

/// Puts references to the known columns in the places of those further out, in a subquery and in those inside of it.
fn near(subquery: Subquery, equal: &[EqualColumn]) -> Result<Transformed<Subquery>> {
    let Subquery { subquery, outer_ref_columns, spans } = subquery;
    let mut known = Vec::with_capacity(equal.len());
    for column in equal {
        if !has_own(&subquery, &column.outer)? {
            known.push(column.clone());
        }
    }
    let known = known.as_slice();
    let plan = Arc::unwrap_or_clone(subquery).transform_down_with_subqueries(|node| {
        let node = match node {
            LogicalPlan::Subquery(mut subquery) => {
                subquery.outer_ref_columns = near_columns(subquery.outer_ref_columns, known)?;
                LogicalPlan::Subquery(subquery)
            }
            other => other,
        };
        let names = NamePreserver::new(&node);
        let near = node.map_expressions(|expr| {
            let name = names.save(&expr);
            let near = expr.transform_down(|part| Ok(near_column(part, known)))?;
            Ok(near.update_data(|expr| name.restore(expr)))
        })?;
        match near.transformed {
            true => near.map_data(LogicalPlan::recompute_schema),
            false => Ok(near),
        }
    })?;
    let outer_ref_columns = near_columns(outer_ref_columns, known)?;
    Ok(plan.update_data(|plan| Subquery { subquery: Arc::new(plan), outer_ref_columns, spans }))
}

/// Whether a subquery, or one inside of it, has a column that is called as one further out: there the name means its own.
fn has_own(subquery: &LogicalPlan, outer: &Column) -> Result<bool> {
    any_node(subquery, |node| {
        // Only subqueries, and LATERAL ones, that stand in a node see the columns of its inputs.
        let mut is_around = match node {
            LogicalPlan::Join(join) => join.right.exists(|below| Ok(matches!(below, LogicalPlan::Subquery(_))))?,
            _ => false,
        };
        node.apply_expressions(|expr| {
            is_around |= expr.exists(|part| Ok(subquery_of(part).is_some()))?;
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(is_around && node.inputs().iter().any(|input| input.schema().has_column(outer)))
    })
}

fn near_columns(columns: Vec<Expr>, known: &[EqualColumn]) -> Result<Vec<Expr>> {
    let mut near: Vec<Expr> = Vec::with_capacity(columns.len());
    for column in columns {
        let column = column.transform_down(|part| Ok(near_column(part, known))).data()?;
        if !near.contains(&column) {
            near.push(column);
        }
    }
    Ok(near)
}

fn near_column(expr: Expr, known: &[EqualColumn]) -> Transformed<Expr> {
    match &expr {
        Expr::OuterReferenceColumn(_, column) => match known.iter().find(|known| known.outer == *column) {
            Some(known) => Transformed::yes(Expr::OuterReferenceColumn(Arc::clone(&known.field), known.own.clone())),
            None => Transformed::no(expr),
        },
        _ => Transformed::no(expr),
    }
}

/// Errors: a subquery inside of another one that refers to a column that the query right around it does not have. Those of
/// LATERAL are joined by others.
fn refuse_far_references(plan: &LogicalPlan, is_inside: bool) -> Result<()> {
    plan.apply(|node| {
        if matches!(node, LogicalPlan::Subquery(_)) {
            return Ok(TreeNodeRecursion::Jump);
        }
        let schema = merge_schema(&node.inputs());
        node.apply_expressions(|expr| {
            expr.apply(|part| {
                let Some(subquery) = subquery_of(part) else { return Ok(TreeNodeRecursion::Continue) };
                match far_reference(&subquery.subquery, &schema)? {
                    Some(column) if is_inside => {
                        let name = column.flat_name();
                        Err(EngineError::Unsupported {
                            what: format!("a subquery that refers to `{name}` of a query two levels out"),
                            hint: format!(
                                "select it in the query between, or compare it there with a column that the subquery \
                                 refers to instead: WHERE inner.key = {name}"
                            ),
                        }
                        .into())
                    }
                    _ => {
                        refuse_far_references(&subquery.subquery, true)?;
                        Ok(TreeNodeRecursion::Continue)
                    }
                }
            })
        })
    })?;
    Ok(())
}

/// Returns an outer column of a subquery that the query around it does not have.
fn far_reference(subquery: &LogicalPlan, around: &DFSchema) -> Result<Option<Column>> {
    let mut far = None;
    subquery.apply(|node| {
        if matches!(node, LogicalPlan::Subquery(_)) {
            return Ok(TreeNodeRecursion::Jump);
        }
        node.apply_expressions(|expr| {
            expr.apply(|part| {
                if let Expr::OuterReferenceColumn(_, column) = part
                    && !around.has_column(column)
                {
                    far = Some(column.clone());
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok(far)
}
