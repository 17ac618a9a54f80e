//! `VALUES` and `UNION ALL` of rows that are made of outer columns, as in `LATERAL (VALUES ('a', t.a), ('b', t.b))`: each column
//! becomes a list that is taken apart, which is what [`super::lateral_joins`] and [`super::lifted_subqueries`] work on.

use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::common::{Column, DFSchema, UnnestOptions};
use datafusion::error::Result;
use datafusion::functions_nested::expr_fn::make_array;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};

use super::plan_nodes::any_node;
use super::subquery_values::{has_subquery, only_row};

/// Returns the plan with such rows as lists that are taken apart.
pub(super) fn with_outer_rows(plan: LogicalPlan) -> Result<LogicalPlan> {
    if !any_node(&plan, |node| Ok(outer_rows(node)?.is_some()))? {
        return Ok(plan);
    }
    let written = plan.transform_up_with_subqueries(|node| {
        // Lists may have made the types of their columns others: a union's were not settled yet.
        let node = node.recompute_schema()?;
        match outer_rows(&node)? {
            Some(rows) => taken_apart(&rows, node.schema()).map(Transformed::yes),
            None => Ok(Transformed::no(node)),
        }
    });
    written.data()
}

/// Returns the rows that a plan is, where one has an outer column and none has a subquery.
fn outer_rows(plan: &LogicalPlan) -> Result<Option<Vec<Vec<Expr>>>> {
    let rows = match plan {
        LogicalPlan::Values(values) if plan.contains_outer_reference() => values.values.clone(),
        LogicalPlan::Union(union) if !plan.all_out_ref_exprs().is_empty() => {
            let rows = union.inputs.iter().map(|input| only_row(input)).collect::<Result<Option<Vec<_>>>>()?;
            let Some(rows) = rows else { return Ok(None) };
            rows
        }
        _ => return Ok(None),
    };
    Ok((!rows.iter().any(|row| has_subquery(row))).then_some(rows))
}

fn taken_apart(rows: &[Vec<Expr>], schema: &DFSchema) -> Result<LogicalPlan> {
    let list = |index: usize| make_array(rows.iter().filter_map(|row| row.get(index).cloned()).collect());
    let names: Vec<String> = (0..schema.fields().len()).map(|index| format!("__rows{index}")).collect();
    let lists = names.iter().enumerate().map(|(index, name)| list(index).alias(name));
    let columns: Vec<Column> = names.iter().map(Column::new_unqualified).collect();
    let named = schema
        .iter()
        .zip(&columns)
        .map(|((table, field), column)| Expr::Column(column.clone()).alias_qualified(table.cloned(), field.name()));
    LogicalPlanBuilder::empty(true)
        .project(lists.collect::<Vec<_>>())?
        .unnest_columns_with_options(columns.clone(), UnnestOptions::default())?
        .project(named.collect::<Vec<_>>())?
        .build()
}
