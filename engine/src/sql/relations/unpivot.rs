//! UNPIVOT: a row for each column, with its name and its value.

use std::ops::ControlFlow;

use datafusion::error::Result;
use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::sqlparser::ast::{
    Expr, ExprWithAlias, Ident, NullInclusion, SelectItem, TableFactor, Visit, VisitMut, Visitor, VisitorMut,
};

use super::{
    Context, column_names, derived, item_parts, malformed, plan_over_values, quoted_text, select_of, subquery,
};
use crate::error::EngineError;
use crate::identifiers::{quote_identifier, same_name};
use crate::sql::expansion::chosen_columns;
use crate::sql::row_values::row_values;
use crate::sql::syntax::text_of;

const USAGE: &str = "write UNPIVOT table ON columns INTO NAME column VALUE column";

/// Plans `unpivot((query), 'name', 'include' or 'exclude', (SELECT columns), 'value', ...)`.
pub(super) fn plan(args: &[Expr], context: &mut Context<'_>) -> Result<LogicalPlan> {
    let [source, name, nulls, columns, values @ ..] = args else { return Err(malformed(USAGE)) };
    let source = subquery(source).ok_or_else(|| malformed(USAGE))?;
    let columns = subquery(columns).and_then(select_of).ok_or_else(|| malformed(USAGE))?;
    let values: Option<Vec<&str>> = values.iter().map(text_of).collect();
    let (Some(name), Some(nulls), Some(values)) = (text_of(name), text_of(nulls), values) else {
        return Err(malformed(USAGE));
    };
    plan_over_columns(derived(source.clone(), None), name, &values, nulls == "include", &columns.projection, context)
}

/// Plans `table UNPIVOT [INCLUDE NULLS] (value FOR name IN (columns))`, and `((a, b) FOR name IN ((c, d), (e, f)))`.
pub(super) fn plan_factor(
    table: TableFactor,
    value: &Expr,
    name: &Ident,
    columns: Vec<ExprWithAlias>,
    nulls: Option<NullInclusion>,
    context: &mut Context<'_>,
) -> Result<LogicalPlan> {
    let value_name = |value: &Expr| match value {
        Expr::Identifier(name) => Some(name.value.clone()),
        _ => None,
    };
    let values: Option<Vec<String>> = match row_values(value) {
        Some(values) => values.iter().map(value_name).collect(),
        None => value_name(value).map(|name| vec![name]),
    };
    let values = values.ok_or_else(|| malformed(USAGE))?;
    let values: Vec<&str> = values.iter().map(String::as_str).collect();
    let items: Vec<SelectItem> = columns
        .into_iter()
        .map(|column| match column.alias {
            Some(alias) => SelectItem::ExprWithAlias { expr: column.expr, alias },
            None => SelectItem::UnnamedExpr(column.expr),
        })
        .collect();
    let include_nulls = matches!(nulls, Some(NullInclusion::IncludeNulls));
    plan_over_columns(table, &name.value, &values, include_nulls, &items, context)
}

fn plan_over_columns(
    table: TableFactor,
    name: &str,
    values: &[&str],
    include_nulls: bool,
    items: &[SelectItem],
    context: &mut Context<'_>,
) -> Result<LogicalPlan> {
    let source = context.plan(table.clone())?;
    let all = column_names(source.schema());
    let mut rows: Vec<UnpivotedRow> = Vec::new();
    for item in items {
        let parts = item_parts(item).and_then(|(expr, alias)| Some((row_values(expr)?, expr, alias)));
        let Some((parts, expr, alias)) = parts else {
            rows.extend(unpivoted(item, &all)?.into_iter().map(UnpivotedRow::of_one));
            continue;
        };
        let mut columns = Vec::with_capacity(parts.len());
        for part in parts {
            columns.extend(unpivoted(&SelectItem::UnnamedExpr(part), &all)?);
        }
        let shown: Vec<&str> = columns.iter().map(|column| column.shown.as_str()).collect();
        let shown = given_name(expr, alias).unwrap_or_else(|| shown.join("_"));
        rows.push(UnpivotedRow { shown, columns });
    }
    if rows.is_empty() {
        return Err(malformed("UNPIVOT needs a column"));
    }
    if let Some(other) = rows.iter().find(|row| row.columns.len() != values.len()) {
        let message = format!(
            "UNPIVOT has {} columns at `{}` and {} for their values; write ON (a, b), (c, d) INTO NAME n VALUE v, w",
            other.columns.len(),
            other.shown,
            values.len()
        );
        return Err(EngineError::Plan { message }.into());
    }
    let is_taken = |column: &str| rows.iter().flat_map(|row| &row.columns).any(|taken| taken.column == column);
    let mut select: Vec<String> =
        all.iter().filter(|column| !is_taken(column)).map(|column| quote_identifier(column)).collect();
    let names: Vec<String> = rows.iter().map(|row| quoted_text(&row.shown)).collect();
    select.push(format!("unnest(make_array({})) AS {}", names.join(", "), quote_identifier(name)));
    let mut exprs: Vec<Expr> = Vec::with_capacity(rows.len() * values.len());
    for (place, value) in values.iter().enumerate() {
        let mut parameters = Vec::with_capacity(rows.len());
        for column in rows.iter().filter_map(|row| row.columns.get(place)) {
            exprs.push(column.value.clone());
            parameters.push(format!("${}", exprs.len()));
        }
        select.push(format!("unnest(make_array({})) AS {}", parameters.join(", "), quote_identifier(value)));
    }
    let text = format!("SELECT {} FROM t", select.join(", "));
    let text = match include_nulls {
        true => text,
        false => {
            let complete: Vec<String> =
                values.iter().map(|value| format!("{} IS NOT NULL", quote_identifier(value))).collect();
            format!("SELECT * FROM ({text}) AS unpivoted WHERE {}", complete.join(" AND "))
        }
    };
    plan_over_values(&text, &exprs, table, context)
}

/// Columns that become the values of one row.
struct UnpivotedRow {
    /// What they are called in it.
    shown: String,
    columns: Vec<UnpivotedColumn>,
}

impl UnpivotedRow {
    fn of_one(column: UnpivotedColumn) -> Self {
        Self { shown: column.shown.clone(), columns: vec![column] }
    }
}

/// A column, and what becomes of it in a row.
struct UnpivotedColumn {
    column: String,
    value: Expr,
    /// What it is called, by itself.
    shown: String,
}

impl UnpivotedColumn {
    fn plain(column: String) -> Self {
        let value = Expr::Identifier(Ident::with_quote('"', column.clone()));
        Self { value, shown: column.clone(), column }
    }
}

/// Returns the columns that an item stands for.
fn unpivoted(item: &SelectItem, all: &[String]) -> Result<Vec<UnpivotedColumn>> {
    match (chosen_columns(item, all)?, item_parts(item)) {
        (Some(columns), _) => Ok(columns.into_iter().map(UnpivotedColumn::plain).collect()),
        (None, Some((Expr::Identifier(ident), alias))) => {
            let Some(column) = all.iter().find(|column| same_name(column, &ident.value)) else {
                let message = format!("there is no column `{}`; the columns are {}", ident.value, all.join(", "));
                return Err(EngineError::Plan { message }.into());
            };
            let plain = UnpivotedColumn::plain(column.clone());
            let shown = alias.map_or_else(|| column.clone(), |alias| alias.value.clone());
            Ok(vec![UnpivotedColumn { shown, ..plain }])
        }
        (None, Some((expr, alias))) => computed(expr, alias, all),
        (None, None) => Err(malformed(USAGE)),
    }
}

/// Returns the alias of an expression. One that is the expression's text is not one that somebody gave.
fn given_name(expr: &Expr, alias: Option<&Ident>) -> Option<String> {
    alias.map(|alias| alias.value.clone()).filter(|alias| *alias != expr.to_string())
}

/// Returns what an expression over one column, or over each that `COLUMNS(...)` chooses, stands for. Errors:
/// `sql_plan_error` for one over several columns.
fn computed(expr: &Expr, alias: Option<&Ident>, all: &[String]) -> Result<Vec<UnpivotedColumn>> {
    let mut parts = ExprParts { all, call: None, names: Vec::new() };
    let _: ControlFlow<()> = expr.visit(&mut parts);
    let ExprParts { call, names, .. } = parts;
    if let Some(call) = call {
        let columns = chosen_columns(&SelectItem::UnnamedExpr(call), all)?.unwrap_or_default();
        let filled = columns.into_iter().map(|column| {
            let plain = UnpivotedColumn::plain(column);
            let mut value = expr.clone();
            let _: ControlFlow<()> = VisitMut::visit(&mut value, &mut ColumnsFilling(&plain.value));
            UnpivotedColumn { value, ..plain }
        });
        return Ok(filled.collect());
    }
    let [column] = names.as_slice() else {
        let message = format!("`{expr}` of UNPIVOT is over {} columns; write an expression over one", names.len());
        return Err(EngineError::Plan { message }.into());
    };
    let shown = given_name(expr, alias).unwrap_or_else(|| column.clone());
    Ok(vec![UnpivotedColumn { column: column.clone(), value: expr.clone(), shown }])
}

/// What an expression has: a call of `COLUMNS`, and the columns among `all` that it names.
struct ExprParts<'a> {
    all: &'a [String],
    call: Option<Expr>,
    names: Vec<String>,
}

impl Visitor for ExprParts<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        let name = match expr {
            Expr::Identifier(name) => Some(name),
            Expr::CompoundIdentifier(parts) => parts.last(),
            Expr::Function(_) if is_columns_call(expr) => {
                self.call = Some(expr.clone());
                None
            }
            _ => None,
        };
        let column = name.and_then(|name| self.all.iter().find(|column| same_name(column, &name.value)));
        if let Some(column) = column
            && !self.names.contains(column)
        {
            self.names.push(column.clone());
        }
        ControlFlow::Continue(())
    }
}

/// Puts a column in the place of `COLUMNS(...)`.
struct ColumnsFilling<'a>(&'a Expr);

impl VisitorMut for ColumnsFilling<'_> {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if is_columns_call(expr) {
            *expr = self.0.clone();
        }
        ControlFlow::Continue(())
    }
}

fn is_columns_call(expr: &Expr) -> bool {
    matches!(expr, Expr::Function(function) if function.name.to_string().eq_ignore_ascii_case("columns"))
}
