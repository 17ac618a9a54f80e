//! Columns that are carried to subqueries of subqueries: one that refers to a query two levels out finds the column in
//! the query right around it, which has no column of its own that is equal to it.
//!
//! ```sql
//! SELECT id FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.n > (SELECT count(*) FROM c WHERE c.id = a.id))
//! ```
//!
//! The values of the column, each once, stand beside the tables of the query between, whose conditions are asked of each of them; of its
//! rows those are left that have the value of the row around:
//!
//! ```sql
//! SELECT id FROM a WHERE EXISTS (
//!   SELECT 1 FROM (SELECT * FROM b, (SELECT DISTINCT id AS far FROM a) WHERE b.n > (SELECT count(*) FROM c WHERE c.id = far))
//!   WHERE far IS NOT DISTINCT FROM a.id)
//! ```

use std::sync::Arc;

use arrow::datatypes::FieldRef;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema};
use datafusion::error::Result;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::{conjunction, merge_schema};
use datafusion::logical_expr::{
    BinaryExpr, Distinct, Expr, Filter, LogicalPlan, LogicalPlanBuilder, Operator, Subquery,
};

use super::near_references::{EqualColumn, is_step, near_subquery, subquery_of, with_subquery};
use super::plan_nodes::any_node;
use crate::functions::holds_doubles;

/// What such columns are called, and the table that they are of.
const CARRIED: &str = "__carried";

/// Returns the plan with such columns beside the tables of queries between, where they can be.
pub(super) fn with_carried_columns(plan: LogicalPlan) -> Result<LogicalPlan> {
    plan.transform_down(|node| {
        let around = {
            let inputs = node.inputs();
            if let [input] = inputs.as_slice() { Some((*input).clone()) } else { None }
        };
        match around {
            Some(around) if has_subquery(&node)? && is_alike_twice(&around)? => in_subqueries_of(node, &around),
            _ => Ok(Transformed::no(node)),
        }
    })
    .data()
}

/// Carries columns of the rows around into the subqueries of a node.
fn in_subqueries_of(node: LogicalPlan, around: &LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let names = NamePreserver::new(&node);
    let node = node.map_expressions(|expr| {
        let name = names.save(&expr);
        let carried = expr.transform_down(|part| with_subquery(part, |subquery| carried(subquery, around)))?;
        Ok(carried.update_data(|expr| name.restore(expr)))
    })?;
    match node.transformed {
        true => node.map_data(LogicalPlan::recompute_schema),
        false => Ok(node),
    }
}

fn has_subquery(node: &LogicalPlan) -> Result<bool> {
    let mut is_found = false;
    node.apply_expressions(|expr| {
        is_found |= expr.exists(|part| Ok(subquery_of(part).is_some()))?;
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(is_found)
}

/// Whether an aggregate is the same in whichever order it sees its rows.
fn has_one_value(aggregate: &Expr) -> bool {
    const OF_ANY_ORDER: [&str; 5] = ["avg", "count", "max", "min", "sum"];
    let call = aggregate.clone().unalias();
    matches!(call, Expr::AggregateFunction(call) if OF_ANY_ORDER.contains(&call.func.name()))
}

/// Whether a query that is read twice has the same rows both times, and names no query around it.
fn is_alike_twice(plan: &LogicalPlan) -> Result<bool> {
    let is_other = any_node(plan, |node| {
        let is_known = match node {
            LogicalPlan::Sort(sort) => sort.fetch.is_none(),
            LogicalPlan::Aggregate(aggregate) => aggregate.aggr_expr.iter().all(has_one_value),
            LogicalPlan::Distinct(Distinct::All(_))
            | LogicalPlan::Projection(_)
            | LogicalPlan::Filter(_)
            | LogicalPlan::Join(_)
            | LogicalPlan::TableScan(_)
            | LogicalPlan::SubqueryAlias(_)
            | LogicalPlan::Subquery(_)
            | LogicalPlan::Union(_)
            | LogicalPlan::Values(_)
            | LogicalPlan::EmptyRelation(_) => true,
            _ => false,
        };
        let mut is_other = !is_known;
        node.apply_expressions(|expr| {
            is_other |= expr.is_volatile();
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(is_other)
    })?;
    Ok(!is_other && plan.all_out_ref_exprs().is_empty())
}

/// Returns a subquery with the columns of the rows around that its own subqueries name; as it is where it has no such place.
fn carried(subquery: Subquery, around: &LogicalPlan) -> Result<Transformed<Subquery>> {
    let named = CarriedNames::of(&subquery.subquery, around.schema())?;
    let is_exact = |(field, _): &(FieldRef, Column)| !holds_doubles(field.data_type());
    if !named.is_far || named.is_farther || !named.columns.iter().all(is_exact) {
        return Ok(Transformed::no(subquery));
    }
    let own = |at: usize| Column::new(Some(CARRIED), format!("{CARRIED}_{at}"));
    let known = named.columns.iter().enumerate();
    let known: Vec<EqualColumn> = known
        .map(|(at, (field, outer))| EqualColumn { own: own(at), outer: outer.clone(), field: Arc::clone(field) })
        .collect();
    let columns = known.iter().map(|known| Expr::Column(known.outer.clone()).alias(known.own.name.as_str()));
    let columns = columns.collect::<Vec<_>>();
    let values = LogicalPlanBuilder::from(around.clone()).project(columns)?.distinct()?.alias(CARRIED)?.build()?;
    let beside = with_values(subquery.subquery.as_ref().clone(), &values, &known)?;
    // Those that stand at another place than its WHERE do not find them.
    if CarriedNames::of(&beside, around.schema())?.is_far {
        return Ok(Transformed::no(subquery));
    }
    let outer_ref_columns = beside.all_out_ref_exprs();
    Ok(Transformed::yes(Subquery { subquery: Arc::new(beside), outer_ref_columns, spans: subquery.spans }))
}

/// The columns of the rows around that a subquery names in the conditions over its tables.
#[derive(Default)]
struct CarriedNames {
    columns: Vec<(FieldRef, Column)>,
    /// Whether a subquery of its own names one.
    is_far: bool,
    /// Whether one within such a subquery does.
    is_farther: bool,
}

impl CarriedNames {
    fn of(subquery: &LogicalPlan, around: &DFSchema) -> Result<Self> {
        let mut named = Self::default();
        named.gather(subquery, around, &[])?;
        Ok(named)
    }

    /// `between` are the columns of the queries between this one and the rows around.
    fn gather(&mut self, query: &LogicalPlan, around: &DFSchema, between: &[DFSchema]) -> Result<()> {
        query.apply(|node| {
            if matches!(node, LogicalPlan::Subquery(_)) {
                return Ok(TreeNodeRecursion::Jump);
            }
            let schema = merge_schema(&node.inputs());
            node.apply_expressions(|expr| {
                expr.apply(|part| {
                    if let Expr::OuterReferenceColumn(field, column) = part
                        && around.has_column(column)
                        && !between.iter().any(|query| query.has_column(column))
                    {
                        self.is_far |= !between.is_empty();
                        self.is_farther |= between.len() > 1;
                        if !self.columns.iter().any(|(_, known)| known == column) {
                            self.columns.push((Arc::clone(field), column.clone()));
                        }
                    }
                    if let Some(subquery) = subquery_of(part) {
                        let mut inside = between.to_vec();
                        inside.push(schema.clone());
                        self.gather(&subquery.subquery, around, &inside)?;
                    }
                    Ok(TreeNodeRecursion::Continue)
                })
            })
        })?;
        Ok(())
    }
}

/// Returns a subquery with values beside its tables, of which its conditions are asked.
fn with_values(plan: LogicalPlan, values: &LogicalPlan, known: &[EqualColumn]) -> Result<LogicalPlan> {
    let mut conditions = Vec::new();
    let mut tables = &plan;
    while let LogicalPlan::Filter(filter) = tables {
        conditions.push(filter.predicate.clone());
        tables = filter.input.as_ref();
    }
    if is_step(tables) {
        let above = plan.map_children(|input| with_values(input, values, known).map(Transformed::yes)).data()?;
        return above.recompute_schema();
    }
    let Some(condition) = conjunction(conditions) else { return Ok(plan) };
    let condition = condition.transform_down(|part| match part {
        Expr::OuterReferenceColumn(_, column) if known.iter().any(|known| known.outer == column) => {
            let own = known.iter().find(|known| known.outer == column).map(|known| known.own.clone());
            Ok(Transformed::yes(Expr::Column(own.unwrap_or(column))))
        }
        other => near_subquery(other, known),
    });
    let rows = LogicalPlanBuilder::from(tables.clone()).cross_join(values.clone())?.build()?;
    let rows = LogicalPlan::Filter(Filter::try_new(condition.data()?, Arc::new(rows))?);
    let of_row = known.iter().map(|known| {
        let outer = Expr::OuterReferenceColumn(Arc::clone(&known.field), known.outer.clone());
        Expr::BinaryExpr(BinaryExpr::new(
            Box::new(Expr::Column(known.own.clone())),
            Operator::IsNotDistinctFrom,
            Box::new(outer),
        ))
    });
    match conjunction(of_row) {
        Some(of_row) => Ok(LogicalPlan::Filter(Filter::try_new(of_row, Arc::new(rows))?)),
        None => Ok(rows),
    }
}
