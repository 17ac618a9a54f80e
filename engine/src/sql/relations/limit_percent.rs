//! `LIMIT 10%`: a share of the rows of a query, rounded down as DuckDB does. `LIMIT (SELECT ...)`: as many as another query says, and
//! all where it says null. The rows keep the query's order.

use arrow::datatypes::DataType;
use datafusion::common::{Column, DFSchema};
use datafusion::error::Result;
use datafusion::functions::core::expr_fn::coalesce;
use datafusion::functions::expr_fn::floor;
use datafusion::functions_aggregate::count::count_udaf;
use datafusion::logical_expr::expr::WindowFunction;
use datafusion::logical_expr::{Expr as Planned, LogicalPlan, LogicalPlanBuilder, WindowFunctionDefinition, cast, lit};
use datafusion::sql::sqlparser::ast::Expr;

use super::positional::{numbered, order_of, ordered, project_window};
use super::{Context, malformed, number_of, relations_of, subquery};

/// How many rows there are.
const TOTAL: &str = "__rows_in_all";

/// Plans `limit_percent((SELECT * FROM (query)), percent, offset)`.
pub(super) fn plan(args: &[Expr], context: &mut Context<'_>) -> Result<LogicalPlan> {
    const USAGE: &str = "a share of the rows is written LIMIT 10%, with 0 to 100 percent and OFFSET a number";
    let [query, percent, offset] = args else { return Err(malformed(USAGE)) };
    let relation = subquery(query).and_then(relations_of).ok_or_else(|| malformed(USAGE))?;
    let percent = number_of(percent).filter(|percent| (0.0..=100.0).contains(percent));
    let offset = number_of(offset).filter(|offset| offset.fract() == 0.0);
    let (Some(percent), Some(offset)) = (percent, offset) else { return Err(malformed(USAGE)) };
    let input = context.plan(relation)?;
    let columns: Vec<Planned> = input.schema().columns().into_iter().map(Planned::Column).collect();
    let rows = match ordered(&input)? {
        Some(rows) => rows,
        None => numbered(&input, Vec::new())?,
    };
    let place = order_of(&rows);
    let all = WindowFunction::new(WindowFunctionDefinition::AggregateUDF(count_udaf()), vec![lit(1_i64)]);
    let kept: Vec<Planned> = rows.schema().columns().into_iter().map(Planned::Column).collect();
    let rows = project_window(rows, kept, Planned::from(all), TOTAL)?;
    let total = cast(Planned::Column(Column::from_name(TOTAL)), DataType::Float64);
    let share = floor(lit(percent / 100.0) * total);
    let position = cast(place.clone(), DataType::Float64);
    let is_kept = position.clone().gt(lit(offset)).and(position.lt_eq(lit(offset) + share));
    LogicalPlanBuilder::from(rows).filter(is_kept)?.sort(vec![place.sort(true, false)])?.project(columns)?.build()
}

/// Plans `__limit_rows((SELECT * FROM (query)), limit, offset)`.
pub(super) fn plan_rows(args: &[Expr], context: &mut Context<'_>) -> Result<LogicalPlan> {
    const USAGE: &str = "as many rows as a query says are written LIMIT (SELECT ...)";
    let [query, limit, offset] = args else { return Err(malformed(USAGE)) };
    let relation = subquery(query).and_then(relations_of).ok_or_else(|| malformed(USAGE))?;
    let input = context.plan(relation)?;
    let nothing = DFSchema::empty();
    let mut count = |written: &Expr, otherwise: i64| -> Result<Planned> {
        let planned = context.sql_to_expr(written.clone(), &nothing)?;
        Ok(coalesce(vec![cast(planned, DataType::Int64), lit(otherwise)]))
    };
    // No query has so many rows, also behind those that are left out.
    let (limit, offset) = (count(limit, i64::MAX / 2)?, count(offset, 0)?);
    let columns: Vec<Planned> = input.schema().columns().into_iter().map(Planned::Column).collect();
    let rows = match ordered(&input)? {
        Some(rows) => rows,
        None => numbered(&input, Vec::new())?,
    };
    let place = order_of(&rows);
    let position = cast(place.clone(), DataType::Int64);
    let is_kept = position.clone().gt(offset.clone()).and((position - offset).lt_eq(limit));
    LogicalPlanBuilder::from(rows).filter(is_kept)?.sort(vec![place.sort(true, false)])?.project(columns)?.build()
}
