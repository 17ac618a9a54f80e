//! Intervals as keys: rows are grouped, made distinct and joined by how long intervals are, with months of 30 days and days of 24
//! hours, as they are compared and sorted. DataFusion 54 takes `1 month` and `30 days` for two groups. Of a group, the interval that
//! is shown is one that is there.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result, TableReference};
use datafusion::functions_aggregate::expr_fn::min;
use datafusion::logical_expr::expr::Sort as SortExpr;
use datafusion::logical_expr::utils::grouping_set_to_exprlist;
use datafusion::logical_expr::{
    Aggregate, Distinct, DistinctOn, Expr, ExprSchemable, Join, LogicalPlan, LogicalPlanBuilder, when,
};

use super::field_access::own_call;
use super::plan_nodes::any_node;
use crate::functions::INTERVAL_LENGTH;

/// Returns the plan with the lengths of intervals in the places of its keys.
pub(super) fn with_interval_keys(plan: LogicalPlan) -> Result<LogicalPlan> {
    if !any_node(&plan, |node| Ok(has_interval_keys(node)))? {
        return Ok(plan);
    }
    plan.transform_up_with_subqueries(|node| {
        if !has_interval_keys(&node) {
            return Ok(Transformed::no(node));
        }
        Ok(Transformed::yes(match node {
            LogicalPlan::Aggregate(aggregate) => grouped_by_length(aggregate)?,
            LogicalPlan::Distinct(Distinct::All(input)) => {
                let columns = input.schema().columns().into_iter().map(Expr::Column).collect();
                grouped_by_length(Aggregate::try_new(input, columns, Vec::new())?)?
            }
            LogicalPlan::Distinct(Distinct::On(rows)) => first_of_length(rows)?,
            LogicalPlan::Join(join) => joined_by_length(join)?,
            other => other,
        }))
    })
    .data()
}

fn has_interval_keys(node: &LogicalPlan) -> bool {
    match node {
        LogicalPlan::Aggregate(aggregate) => {
            let groups = grouping_set_to_exprlist(&aggregate.group_expr).unwrap_or_default();
            groups.iter().any(|group| is_interval(group, aggregate.input.schema()))
        }
        LogicalPlan::Distinct(Distinct::All(input)) => {
            input.schema().fields().iter().any(|field| matches!(field.data_type(), DataType::Interval(_)))
        }
        LogicalPlan::Distinct(Distinct::On(rows)) => {
            rows.on_expr.iter().any(|expr| is_interval(expr, rows.input.schema()))
        }
        LogicalPlan::Join(join) => join.on.iter().any(|pair| is_pair(join, pair)),
        _ => false,
    }
}

fn is_interval(expr: &Expr, schema: &DFSchema) -> bool {
    matches!(expr.get_type(schema), Ok(DataType::Interval(_)))
}

fn is_pair(join: &Join, (left, right): &(Expr, Expr)) -> bool {
    is_interval(left, join.left.schema()) && is_interval(right, join.right.schema())
}

fn length(interval: Expr) -> Result<Expr> {
    own_call(INTERVAL_LENGTH, vec![interval])
}

/// Groups by the lengths of intervals, and has an interval of each group in its place.
fn grouped_by_length(aggregate: Aggregate) -> Result<LogicalPlan> {
    let groups: Vec<Expr> = grouping_set_to_exprlist(&aggregate.group_expr)?.into_iter().cloned().collect();
    let is_of_sets = matches!(aggregate.group_expr.as_slice(), [Expr::GroupingSet(_)]);
    let schema = aggregate.input.schema();
    let intervals: Vec<Expr> = groups.iter().filter(|group| is_interval(group, schema)).cloned().collect();
    let with_lengths = |expr: Expr| {
        let replaced = expr.transform_down(|part| match intervals.contains(&part) {
            true => Ok(Transformed::new(length(part)?, true, TreeNodeRecursion::Jump)),
            false => Ok(Transformed::no(part)),
        });
        replaced.data()
    };
    let keys = aggregate.group_expr.into_iter().map(with_lengths).collect::<Result<Vec<_>>>()?;
    // A grouping() names the groups as they are.
    let is_grouping = |expr: &Expr| matches!(expr, Expr::AggregateFunction(call) if call.func.name() == "grouping");
    let own = aggregate.aggr_expr.into_iter();
    let own = own.map(|expr| if is_grouping(&expr) { with_lengths(expr) } else { Ok(expr) });
    let mut values = own.collect::<Result<Vec<_>>>()?;
    // By names of their own, as the query may ask for the least interval too.
    let shown =
        intervals.iter().enumerate().map(|(at, interval)| min(interval.clone()).alias(format!("__interval{at}")));
    values.extend(shown);
    let plan = LogicalPlan::Aggregate(Aggregate::try_new(aggregate.input, keys, values)?);
    let columns = plan.schema().columns();
    let first_shown = columns.len() - intervals.len();
    let mut shown = columns[first_shown..].iter().cloned();
    let mut exprs = Vec::with_capacity(first_shown);
    for (at, (relation, field)) in aggregate.schema.iter().enumerate() {
        if field.name() == Aggregate::INTERNAL_GROUPING_ID {
            continue;
        }
        let own = Expr::Column(columns[at].clone());
        let expr = match groups.get(at).filter(|group| intervals.contains(group)).and_then(|_| shown.next()) {
            // Of a set without the interval it is null.
            Some(interval) if is_of_sets => when(own.is_not_null(), Expr::Column(interval)).end()?,
            Some(interval) => Expr::Column(interval),
            None => own,
        };
        exprs.push(named(expr, relation.cloned(), field.name()));
    }
    LogicalPlanBuilder::from(plan).project(exprs)?.build()
}

/// Gives an expression a name that it has not.
pub(super) fn named(expr: Expr, relation: Option<TableReference>, name: &str) -> Expr {
    match &expr {
        Expr::Column(column) if column.relation == relation && column.name == name => expr,
        _ => expr.alias_qualified(relation, name),
    }
}

/// Takes the first row of each length.
fn first_of_length(rows: DistinctOn) -> Result<LogicalPlan> {
    let DistinctOn { on_expr, select_expr, sort_expr, input, schema: _ } = rows;
    let as_key = |expr: Expr| match is_interval(&expr, input.schema()) {
        true => length(expr),
        false => Ok(expr),
    };
    let on = on_expr.into_iter().map(as_key).collect::<Result<Vec<_>>>()?;
    let order = sort_expr.map(|order| {
        let keys = order.into_iter().map(|sort| Ok(SortExpr { expr: as_key(sort.expr)?, ..sort }));
        keys.collect::<Result<Vec<_>>>()
    });
    let rows = DistinctOn::try_new(on, select_expr, order.transpose()?, Arc::clone(&input))?;
    Ok(LogicalPlan::Distinct(Distinct::On(rows)))
}

fn joined_by_length(mut join: Join) -> Result<LogicalPlan> {
    let pairs = std::mem::take(&mut join.on).into_iter().map(|pair| match is_pair(&join, &pair) {
        true => Ok((length(pair.0)?, length(pair.1)?)),
        false => Ok(pair),
    });
    let on = pairs.collect::<Result<Vec<_>>>()?;
    Ok(LogicalPlan::Join(Join { on, ..join }))
}
