//! Which columns and subqueries are nothing but a parameter, or a list, a struct or a map of some: what they are compared with or
//! become beyond the query that names them tells the parameter's type.

use arrow::datatypes::DataType;
use datafusion::common::Column;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result as DataFusionResult;
use datafusion::logical_expr::expr::InSubquery;
use datafusion::logical_expr::{Distinct, Expr, LogicalPlan};

use super::told_types::is_open;
use crate::functions::MAP;

/// Functions whose result is made of their arguments.
const COMPOSING_FUNCTIONS: [&str; 3] = ["make_array", "named_struct", MAP];

/// Whether a node reads columns whose type nothing has told.
pub(super) fn has_untyped_columns(node: &LogicalPlan) -> bool {
    let has_untyped = |input: &&LogicalPlan| input.schema().fields().iter().any(|field| is_untyped(field.data_type()));
    node.inputs().iter().any(has_untyped)
}

/// Whether an expression is a subquery whose first column has a type that nothing has told.
pub(super) fn is_untyped_subquery(expr: &Expr) -> bool {
    let query = match expr {
        Expr::ScalarSubquery(subquery) => subquery,
        Expr::InSubquery(InSubquery { subquery, .. }) => subquery,
        _ => return false,
    };
    query.subquery.schema().fields().first().is_some_and(|field| is_untyped(field.data_type()))
}

/// Whether a type, or a part of it, is what nothing has told yet.
fn is_untyped(data_type: &DataType) -> bool {
    match data_type {
        DataType::Null => true,
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::FixedSizeList(item, _)
        | DataType::Map(item, _) => is_untyped(item.data_type()),
        DataType::Struct(fields) => fields.iter().any(|field| is_untyped(field.data_type())),
        _ => false,
    }
}

/// Whether a value is a parameter without a type, or made of values.
fn is_source(value: &Expr) -> bool {
    match value {
        Expr::ScalarFunction(call) => COMPOSING_FUNCTIONS.contains(&call.name()),
        other => is_open(other),
    }
}

/// Returns an expression of a node with the columns and subqueries that are nothing but parameters written out.
pub(super) fn with_sources(expr: &Expr, node: &LogicalPlan) -> DataFusionResult<Expr> {
    let traced = expr.clone().transform_up(|part| {
        let source = match &part {
            Expr::Column(column) => node.inputs().into_iter().find_map(|input| source_of_column(column, input)),
            Expr::ScalarSubquery(subquery) => source_of_place(0, &subquery.subquery),
            _ => None,
        };
        Ok(match source {
            Some(source) => Transformed::yes(source),
            None => Transformed::no(part),
        })
    })?;
    Ok(traced.data)
}

fn source_of_column(column: &Column, plan: &LogicalPlan) -> Option<Expr> {
    source_of_place(plan.schema().maybe_index_of_column(column)?, plan)
}

/// Returns the parameter that a query's column in a place is, or what it is made of; `None` where it is anything else.
pub(super) fn source_of_place(at: usize, plan: &LogicalPlan) -> Option<Expr> {
    if !is_untyped(plan.schema().fields().get(at)?.data_type()) {
        return None;
    }
    match plan {
        LogicalPlan::Projection(projection) => source_of_value(projection.expr.get(at)?, &projection.input),
        LogicalPlan::SubqueryAlias(alias) => source_of_place(at, &alias.input),
        LogicalPlan::Filter(filter) => source_of_place(at, &filter.input),
        LogicalPlan::Sort(sort) => source_of_place(at, &sort.input),
        LogicalPlan::Limit(limit) => source_of_place(at, &limit.input),
        LogicalPlan::Distinct(Distinct::All(input)) => source_of_place(at, input),
        LogicalPlan::Values(values) => {
            values.values.iter().filter_map(|row| row.get(at)).find(|value| is_source(value)).cloned()
        }
        LogicalPlan::Join(join) => match at.checked_sub(join.left.schema().fields().len()) {
            None => source_of_place(at, &join.left),
            Some(at) => source_of_place(at, &join.right),
        },
        _ => None,
    }
}

fn source_of_value(value: &Expr, input: &LogicalPlan) -> Option<Expr> {
    match value {
        Expr::Alias(alias) => source_of_value(&alias.expr, input),
        Expr::Column(column) => source_of_column(column, input),
        other => is_source(other).then(|| other.clone()),
    }
}
