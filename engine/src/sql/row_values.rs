//! Rows of several values beside a query of several columns: `(k, a) IN (SELECT k, max(a) ...)`, `(k, a) = (SELECT x, y ...)`. The
//! planner knows queries of one column there, so that row and query become structures; and rows of what is no column and no literal.
//!
//! A row of which a value is null is unknown to IN as a whole, as in DuckDB: [`COMPLETE_ROW`] makes a null of it, and what the
//! engine does for `IN` of one column holds for rows. Rows that are ordered, as in `(k, a) > ANY (SELECT ...)`, are compared as
//! structures are, whose nulls are the greatest values.

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, Query, Select, SelectItem,
    SetExpr, TableAlias, TableAliasColumnDef, TableFactor, TableWithJoins, UnaryOperator, Value,
};

use super::collations::is_comparison;
use super::operator_forms::COMPARED;
use super::relations::derived;
use super::shorthand::{call, number, plain, query_of, select_star};
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
        Expr::AnyOp { left, compare_op, right, .. } => match ordered_rows(left, compare_op, right, true)? {
            Some(written) => *expr = written,
            None => rows_of_set(left, right)?,
        },
        Expr::AllOp { left, compare_op, right } => match ordered_rows(left, compare_op, right, false)? {
            Some(written) => *expr = written,
            None => rows_of_set(left, right)?,
        },
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
        Some(columns) if columns != width => return Err(unlike_width(width, columns)),
        _ => {}
    }
    let (rows, parts) = rows_in_parts(query, width);
    let projection = vec![SelectItem::UnnamedExpr(call(function, parts))];
    let select = Select { projection, ..select_star(vec![plain(rows)]) };
    Ok(Some(query_of(SetExpr::Select(Box::new(select)))))
}

/// Returns a query as a relation, and its columns.
fn rows_in_parts(query: &Query, width: usize) -> (TableFactor, Vec<Expr>) {
    let names: Vec<Ident> = (0..width).map(|place| Ident::new(format!("{PART}{place}"))).collect();
    let parts = names.iter().map(|name| Expr::CompoundIdentifier(vec![Ident::new(RELATION), name.clone()])).collect();
    let columns = names.into_iter().map(|name| TableAliasColumnDef { name, data_type: None }).collect();
    let rows = TableFactor::Derived {
        lateral: false,
        subquery: Box::new(query.clone()),
        alias: Some(TableAlias { explicit: true, name: Ident::new(RELATION), columns, at: None }),
        sample: None,
    };
    (rows, parts)
}

fn unlike_width(width: usize, columns: usize) -> EngineError {
    EngineError::Plan { message: format!("a row of {width} values stands beside a query of {columns} columns") }
}

/// `(a, b) = ANY (query)`, `(a, b) <> ALL (query)` and their likes are of structures, as IN and NOT IN.
fn rows_of_set(left: &mut Expr, right: &mut Expr) -> Result<()> {
    if let (Some(values), Some(query)) = (row_values(left), compared_query(right))
        && let Some(rows) = query_of_rows(query, values.len(), COMPLETE_ROW)?
    {
        *left = call(COMPLETE_ROW, values);
        *query = rows;
    }
    Ok(())
}

/// `(a, b) < ANY (query)` is whether there is a row of the query for which that holds, and with ALL that there is none for which it
/// does not. Errors: it has another number of columns.
fn ordered_rows(left: &Expr, op: &BinaryOperator, right: &mut Expr, is_any: bool) -> Result<Option<Expr>> {
    use BinaryOperator::{Eq, Gt, GtEq, Lt, LtEq};
    let (Some(values), Gt | GtEq | Lt | LtEq) = (row_values(left), op) else { return Ok(None) };
    let Some(query) = compared_query(right) else { return Ok(None) };
    let width = match width_of(&query.body) {
        Some(1) => 1,
        Some(columns) if columns != values.len() => return Err(unlike_width(values.len(), columns)),
        _ => values.len(),
    };
    let (rows, mut parts) = rows_in_parts(query, width);
    let row = match parts.pop() {
        Some(only) if parts.is_empty() => only,
        last => call(STRUCT, parts.into_iter().chain(last).collect()),
    };
    let binary = |left: Expr, op: BinaryOperator, right: Expr| {
        Expr::Nested(Box::new(Expr::BinaryOp { left: Box::new(left), op, right: Box::new(right) }))
    };
    let holds = binary(call(STRUCT, values), op.clone(), row);
    let selection = match is_any {
        true => holds,
        false => Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(holds) },
    };
    let counted = SelectItem::UnnamedExpr(call("count", vec![number("1")]));
    let select = Select { projection: vec![counted], selection: Some(selection), ..select_star(vec![plain(rows)]) };
    let count = Expr::Subquery(Box::new(query_of(SetExpr::Select(Box::new(select)))));
    Ok(Some(binary(count, if is_any { Gt } else { Eq }, number("0"))))
}

/// Returns the query that is compared with, within what [`super::operator_forms`] makes of it.
fn compared_query(right: &mut Expr) -> Option<&mut Query> {
    let Expr::Subquery(query) = right else { return None };
    let SetExpr::Select(select) = query.body.as_mut() else { return None };
    match select.from.as_mut_slice() {
        [TableWithJoins { relation: TableFactor::Derived { subquery, alias: Some(alias), .. }, .. }]
            if alias.name.value == COMPARED =>
        {
            Some(subquery.as_mut())
        }
        _ => None,
    }
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
