//! Rows of several values beside a query of several columns: `(k, a) IN (SELECT k, max(a) ...)`, `(k, a) = (SELECT x, y ...)`. The
//! planner knows queries of one column there, so that row and query become structures; and rows of what is no column and no literal.
//!
//! A row of which a value is null is unknown to IN as a whole, as in DuckDB: [`COMPLETE_ROW`] makes a null of it, and what the
//! engine does for `IN` of one column holds for rows.

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, Query, Select, SelectItem,
    SetExpr, TableAlias, TableAliasColumnDef, TableFactor, Value,
};

use super::collations::is_comparison;
use super::relations::derived;
use super::shorthand::{call, plain, query_of, select_star};
use crate::error::{EngineError, Result};
use crate::functions::COMPLETE_ROW;

/// The function that makes a structure of values.
pub(super) const STRUCT: &str = "struct";
const RELATION: &str = "__rows";
const PART: &str = "__part";

/// Writes out an expression that has a row beside a query; others stay as they are. Errors: `sql_plan_error`, `unsupported`.
pub(super) fn write_out_rows(expr: &mut Expr) -> Result<()> {
    match expr {
        Expr::Tuple(values) if !values.iter().all(is_plain) => {
            *expr = call(STRUCT, std::mem::take(values));
        }
        Expr::InSubquery { expr: row, subquery, .. } => {
            if let Some(values) = row_values(row)
                && let Some(query) = query_of_rows(subquery, values.len(), COMPLETE_ROW)?
            {
                **row = call(COMPLETE_ROW, values);
                **subquery = query;
            } else if matches!(subquery.body.as_ref(), SetExpr::Values(_)) {
                // `IN (VALUES (1), (2))`: the optimizer knows queries there.
                let nothing = SetExpr::Select(Box::new(select_star(Vec::new())));
                let listed = std::mem::replace(subquery.as_mut(), query_of(nothing));
                *subquery.body = SetExpr::Select(Box::new(select_star(vec![plain(derived(listed, None))])));
            }
        }
        Expr::AnyOp { left, compare_op, right, .. } => rows_of_set(left, compare_op, right, &BinaryOperator::Eq)?,
        Expr::AllOp { left, compare_op, right } => rows_of_set(left, compare_op, right, &BinaryOperator::NotEq)?,
        Expr::BinaryOp { left, op, right } if is_comparison(op) => {
            one_row(left, right)?;
            one_row(right, left)?;
        }
        _ => {}
    }
    Ok(())
}

/// Returns the values of a row: `(a, b)`, `ROW(a, b)`.
pub(super) fn row_values(expr: &Expr) -> Option<Vec<Expr>> {
    let values = match expr {
        Expr::Nested(inner) => return row_values(inner),
        Expr::Tuple(values) => values.clone(),
        // What `row(a, b)` was written out as.
        Expr::Struct { values, fields } if fields.is_empty() => {
            let has_names = values.iter().any(|value| matches!(value, Expr::Named { .. }));
            if has_names {
                return None;
            }
            values.clone()
        }
        Expr::Function(function) => called_with(function)?,
        _ => return None,
    };
    (values.len() > 1).then_some(values)
}

/// Returns a query that gives its `width` columns as one, made by a function; `None` where it has one column already.
/// Errors: it has another number of columns.
pub(super) fn query_of_rows(query: &Query, width: usize, function: &str) -> Result<Option<Query>> {
    match width_of(&query.body) {
        Some(1) if width > 1 => return Ok(None),
        Some(columns) if columns != width => {
            let message = format!("a row of {width} values stands beside a query of {columns} columns");
            return Err(EngineError::Plan { message });
        }
        _ => {}
    }
    let names: Vec<Ident> = (0..width).map(|place| Ident::new(format!("{PART}{place}"))).collect();
    let parts = names.iter().map(|name| Expr::CompoundIdentifier(vec![Ident::new(RELATION), name.clone()])).collect();
    let columns = names.into_iter().map(|name| TableAliasColumnDef { name, data_type: None }).collect();
    let rows = TableFactor::Derived {
        lateral: false,
        subquery: Box::new(query.clone()),
        alias: Some(TableAlias { explicit: true, name: Ident::new(RELATION), columns, at: None }),
        sample: None,
    };
    let projection = vec![SelectItem::UnnamedExpr(call(function, parts))];
    let select = Select { projection, ..select_star(vec![plain(rows)]) };
    Ok(Some(query_of(SetExpr::Select(Box::new(select)))))
}

/// `(a, b) = ANY (query)` and `(a, b) <> ALL (query)` are IN and NOT IN.
fn rows_of_set(left: &mut Expr, op: &BinaryOperator, right: &mut Expr, known: &BinaryOperator) -> Result<()> {
    let (Some(values), Expr::Subquery(query)) = (row_values(left), &mut *right) else { return Ok(()) };
    let Some(rows) = query_of_rows(query, values.len(), COMPLETE_ROW)? else { return Ok(()) };
    if op != known {
        return Err(EngineError::Unsupported {
            what: format!("a row beside `{op}` and ANY or ALL of a query"),
            hint: "write = ANY or <> ALL, or EXISTS (SELECT 1 FROM ... WHERE (a, b) > (x, y))".into(),
        });
    }
    *left = call(COMPLETE_ROW, values);
    **query = rows;
    Ok(())
}

/// `(a, b) = (SELECT x, y ...)` compares with the one row of a query.
fn one_row(row: &Expr, other: &mut Expr) -> Result<()> {
    let Some(values) = row_values(row) else { return Ok(()) };
    if let Expr::Subquery(query) = unnested(other)
        && let Some(rows) = query_of_rows(query, values.len(), STRUCT)?
    {
        **query = rows;
    }
    Ok(())
}

fn unnested(expr: &mut Expr) -> &mut Expr {
    match expr {
        Expr::Nested(inner) => unnested(inner),
        other => other,
    }
}

/// Whether the planner takes a value within a row.
fn is_plain(value: &Expr) -> bool {
    match value {
        Expr::Identifier(_) | Expr::CompoundIdentifier(_) => true,
        Expr::Value(value) => !matches!(value.value, Value::Placeholder(_)),
        _ => false,
    }
}

/// Returns the arguments of a call that makes a row.
fn called_with(function: &Function) -> Option<Vec<Expr>> {
    let name = function.name.to_string();
    if !name.eq_ignore_ascii_case(STRUCT) && !name.eq_ignore_ascii_case("row") {
        return None;
    }
    let FunctionArguments::List(list) = &function.args else { return None };
    let value = |arg: &FunctionArg| match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Named { .. })) => None,
        FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => Some(value.clone()),
        _ => None,
    };
    list.args.iter().map(value).collect()
}

/// Returns how many columns a query has, as far as its text says.
pub(super) fn width_of(body: &SetExpr) -> Option<usize> {
    match body {
        SetExpr::Select(select) => {
            let is_one = |item: &SelectItem| match item {
                SelectItem::UnnamedExpr(expr) => !expr.to_string().to_lowercase().contains("columns("),
                SelectItem::ExprWithAlias { .. } => true,
                _ => false,
            };
            select.projection.iter().all(is_one).then_some(select.projection.len())
        }
        SetExpr::Values(values) => values.rows.first().map(|row| row.content.len()),
        SetExpr::SetOperation { left, .. } => width_of(left),
        SetExpr::Query(query) => width_of(&query.body),
        _ => None,
    }
}
