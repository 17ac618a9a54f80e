//! Joins by position: the first row of one side with the first of the other. The rows of a table have no order here, so a
//! side has to say one: it is a query with ORDER BY, VALUES, or a series.

use std::sync::Arc;

use datafusion::common::{Column, JoinType};
use datafusion::datasource::source_as_provider;
use datafusion::error::Result;
use datafusion::functions::core::expr_fn::coalesce;
use datafusion::functions_table::generate_series::GenerateSeriesTable;
use datafusion::functions_window::row_number::row_number_udwf;
use datafusion::logical_expr::expr::{Sort as SortExpr, WindowFunction};
use datafusion::logical_expr::{
    Expr as Planned, ExprFunctionExt, Limit, LogicalPlan, LogicalPlanBuilder, Projection, Sort, SubqueryAlias,
    WindowFunctionDefinition, lit,
};
use datafusion::sql::sqlparser::ast::Expr;

use super::{Context, malformed, relations_of, subquery};
use crate::error::EngineError;

/// Where a side was ordered.
const ORDER: &str = "__positional_order";
const LEFT: &str = "__positional_left";
const RIGHT: &str = "__positional_right";

/// Plans `positional((SELECT * FROM left), (SELECT * FROM right))`.
pub(super) fn plan(args: &[Expr], context: &mut Context<'_>) -> Result<LogicalPlan> {
    const USAGE: &str = "write a POSITIONAL JOIN b";
    let [left, right] = args else { return Err(malformed(USAGE)) };
    let relation = |side: &Expr| subquery(side).and_then(relations_of).ok_or_else(|| malformed(USAGE));
    let (left, right) = (context.plan(relation(left)?)?, context.plan(relation(right)?)?);
    let columns: Vec<Planned> =
        left.schema().columns().into_iter().chain(right.schema().columns()).map(Planned::Column).collect();
    let (left, right) = (counted(left, LEFT)?, counted(right, RIGHT)?);
    let on = (vec![Column::from_name(LEFT)], vec![Column::from_name(RIGHT)]);
    let place = coalesce(vec![own(LEFT), own(RIGHT)]);
    LogicalPlanBuilder::from(left)
        .join(right, JoinType::Full, on, None)?
        .sort(vec![place.sort(true, false)])?
        .project(columns)?
        .build()
}

/// Returns the rows with their positions, from 1 on.
fn counted(side: LogicalPlan, name: &str) -> Result<LogicalPlan> {
    let columns: Vec<Planned> = side.schema().columns().into_iter().map(Planned::Column).collect();
    let ordered = ordered(&side)?.ok_or_else(|| EngineError::Unsupported {
        what: "POSITIONAL JOIN of rows without an order".into(),
        hint: "the rows of a table have none here; write (SELECT * FROM t ORDER BY key) on each side".into(),
    })?;
    let position = position_over(vec![order_of(&ordered).sort(true, false)])?;
    project_window(ordered, columns, position, name)
}

/// Returns the plan with one more column by which its rows are ordered; `None` where they have no order.
pub(super) fn ordered(plan: &LogicalPlan) -> Result<Option<LogicalPlan>> {
    let above = |input: &Arc<LogicalPlan>, rebuild: &dyn Fn(LogicalPlan) -> Result<LogicalPlan>| {
        ordered(input)?.map(rebuild).transpose()
    };
    match plan {
        LogicalPlan::SubqueryAlias(SubqueryAlias { input, alias, .. }) => {
            above(input, &|inner| LogicalPlanBuilder::from(inner).alias(alias.clone())?.build())
        }
        LogicalPlan::Projection(Projection { expr, input, .. }) => above(input, &|inner| {
            let kept = expr.iter().cloned().chain([order_of(&inner)]);
            LogicalPlanBuilder::from(inner.clone()).project(kept)?.build()
        }),
        LogicalPlan::Filter(filter) => {
            above(&filter.input, &|inner| LogicalPlanBuilder::from(inner).filter(filter.predicate.clone())?.build())
        }
        LogicalPlan::Limit(Limit { skip, fetch, input }) => above(input, &|inner| {
            let order = order_of(&inner);
            let first = LogicalPlanBuilder::from(inner).sort(vec![order.sort(true, false)])?;
            first.limit_by_expr(skip.as_deref().cloned(), fetch.as_deref().cloned())?.build()
        }),
        LogicalPlan::Sort(Sort { expr, input, fetch: None }) => numbered(input, expr.clone()).map(Some),
        LogicalPlan::Values(_) | LogicalPlan::EmptyRelation(_) => numbered(plan, Vec::new()).map(Some),
        LogicalPlan::TableScan(scan) => {
            let is_series = source_as_provider(&scan.source).is_ok_and(|table| table.is::<GenerateSeriesTable>());
            if is_series { numbered(plan, Vec::new()).map(Some) } else { Ok(None) }
        }
        _ => Ok(None),
    }
}

pub(super) fn numbered(input: &LogicalPlan, order: Vec<SortExpr>) -> Result<LogicalPlan> {
    let columns: Vec<Planned> = input.schema().columns().into_iter().map(Planned::Column).collect();
    project_window(input.clone(), columns, position_over(order)?, ORDER)
}

fn position_over(order: Vec<SortExpr>) -> Result<Planned> {
    let count = WindowFunction::new(WindowFunctionDefinition::WindowUDF(row_number_udwf()), Vec::new());
    match order.is_empty() {
        true => Ok(Planned::from(count)),
        false => Planned::from(count).order_by(order).build(),
    }
}

/// The column of the order, which an alias may qualify.
pub(super) fn order_of(plan: &LogicalPlan) -> Planned {
    let found = plan.schema().columns().into_iter().rfind(|column| column.name == ORDER);
    found.map_or_else(|| lit(0), Planned::Column)
}

fn own(name: &str) -> Planned {
    Planned::Column(Column::from_name(name))
}

/// Projects columns and a window function under a name.
pub(super) fn project_window(
    input: LogicalPlan,
    columns: Vec<Planned>,
    window: Planned,
    name: &str,
) -> Result<LogicalPlan> {
    let builder = LogicalPlanBuilder::from(input).window([window])?;
    let position = builder.schema().columns().pop().map_or_else(|| lit(0), Planned::Column);
    builder.project(columns.into_iter().chain([position.alias(name)]))?.build()
}
