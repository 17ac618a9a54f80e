//! VALUES that an INSERT has within its query: of the types that its own values have in common.

use datafusion::common::DFSchema;
use datafusion::error::Result;
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder};
use datafusion::sql::sqlparser::ast::{Expr, SetExpr};

use super::{Context, malformed, subquery};

/// Plans `__values((VALUES ...))`.
pub(super) fn plan(args: &[Expr], context: &mut Context<'_>) -> Result<LogicalPlan> {
    let values = match args {
        [query] => subquery(query).map(|query| query.body.as_ref()),
        _ => None,
    };
    let Some(SetExpr::Values(values)) = values else { return Err(malformed("write VALUES (value, ...), ...")) };
    let none = DFSchema::empty();
    let mut rows = Vec::with_capacity(values.rows.len());
    for row in &values.rows {
        let mut exprs = Vec::with_capacity(row.content.len());
        for value in &row.content {
            exprs.push(context.sql_to_expr(value.clone(), &none)?);
        }
        rows.push(exprs);
    }
    LogicalPlanBuilder::values(rows)?.build()
}
