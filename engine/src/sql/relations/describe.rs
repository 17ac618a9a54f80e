//! `FROM (DESCRIBE query)`: a row for each column of a relation, with DuckDB's columns.

use datafusion::error::Result;
use datafusion::logical_expr::{Expr as PlanExpr, LogicalPlan, LogicalPlanBuilder, lit};
use datafusion::sql::sqlparser::ast::Expr;

use super::{Context, derived, malformed, subquery};
use crate::type_names::sql_name;

const COLUMNS: [&str; 4] = ["column_name", "column_type", "null", "key"];

/// Plans the description of a query.
pub(super) fn plan(args: &[Expr], context: &mut Context<'_>) -> Result<LogicalPlan> {
    let query = match args {
        [query] => subquery(query),
        _ => None,
    };
    let query = query.ok_or_else(|| malformed("write FROM (DESCRIBE table), or FROM (DESCRIBE query)"))?;
    let source = context.plan(derived(query.clone(), None))?;
    let rows = source.schema().fields().iter().map(|field| {
        let is_nullable = if field.is_nullable() { "YES" } else { "NO" };
        let key = lit(datafusion::common::ScalarValue::Utf8(None));
        vec![lit(field.name().as_str()), lit(sql_name(field.data_type())), lit(is_nullable), key]
    });
    let plan = LogicalPlanBuilder::values(rows.collect())?;
    let named = plan.schema().columns().into_iter().zip(COLUMNS);
    let named: Vec<PlanExpr> = named.map(|(column, name)| PlanExpr::Column(column).alias(name)).collect();
    plan.project(named)?.build()
}
