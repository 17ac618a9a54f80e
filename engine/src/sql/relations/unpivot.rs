//! UNPIVOT: a row for each column, with its name and its value.

use std::ops::ControlFlow;

use datafusion::error::Result;
use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::sqlparser::ast::{
    Expr, ExprWithAlias, Ident, NullInclusion, SelectItem, TableFactor, Visit, VisitMut, Visitor, VisitorMut,
};

use super::{
    Context, column_names, derived, item_parts, malformed, plan_over_values, quoted_text, select_of, subquery, text_of,
};
use crate::error::EngineError;
use crate::identifiers::{quote_identifier, same_name};
use crate::sql::expansion::chosen_columns;

const USAGE: &str = "write UNPIVOT table ON columns INTO NAME column VALUE column";

/// Plans `unpivot((query), 'name', 'value', 'include' or 'exclude', (SELECT columns))`.
pub(super) fn plan(args: &[Expr], context: &mut Context<'_>) -> Result<LogicalPlan> {
    let [source, name, value, nulls, columns] = args else { return Err(malformed(USAGE)) };
    let source = subquery(source).ok_or_else(|| malformed(USAGE))?;
    let columns = subquery(columns).and_then(select_of).ok_or_else(|| malformed(USAGE))?;
    let (Some(name), Some(value), Some(nulls)) = (text_of(name), text_of(value), text_of(nulls)) else {
        return Err(malformed(USAGE));
    };
    plan_over_columns(derived(source.clone(), None), name, value, nulls == "include", &columns.projection, context)
}

/// Plans `table UNPIVOT [INCLUDE NULLS] (value FOR name IN (columns))`.
pub(super) fn plan_factor(
    table: TableFactor,
    value: &Expr,
    name: &Ident,
    columns: Vec<ExprWithAlias>,
    nulls: Option<NullInclusion>,
    context: &mut Context<'_>,
) -> Result<LogicalPlan> {
    let Expr::Identifier(value) = value else {
        return Err(EngineError::Unsupported {
            what: "UNPIVOT into several value columns".into(),
            hint: "write a UNION ALL of one SELECT for each pair of columns".into(),
        }
        .into());
    };
    let items: Vec<SelectItem> = columns
        .into_iter()
        .map(|column| match column.alias {
            Some(alias) => SelectItem::ExprWithAlias { expr: column.expr, alias },
            None => SelectItem::UnnamedExpr(column.expr),
        })
        .collect();
    let include_nulls = matches!(nulls, Some(NullInclusion::IncludeNulls));
    plan_over_columns(table, &name.value, &value.value, include_nulls, &items, context)
}

fn plan_over_columns(
    table: TableFactor,
    name: &str,
    value: &str,
    include_nulls: bool,
    items: &[SelectItem],
    context: &mut Context<'_>,
) -> Result<LogicalPlan> {
    let source = context.plan(table.clone())?;
    let all = column_names(source.schema());
    let mut chosen: Vec<UnpivotedColumn> = Vec::new();
    for item in items {
        match (chosen_columns(item, &all)?, item_parts(item)) {
            (Some(columns), _) => chosen.extend(columns.into_iter().map(UnpivotedColumn::plain)),
            (None, Some((Expr::Identifier(ident), alias))) => {
                let Some(column) = all.iter().find(|column| same_name(column, &ident.value)) else {
                    let message = format!("there is no column `{}`; the columns are {}", ident.value, all.join(", "));
                    return Err(EngineError::Plan { message }.into());
                };
                let plain = UnpivotedColumn::plain(column.clone());
                let shown = alias.map_or_else(|| column.clone(), |alias| alias.value.clone());
                chosen.push(UnpivotedColumn { shown, ..plain });
            }
            (None, Some((expr, alias))) => chosen.extend(computed(expr, alias, &all)?),
            (None, None) => return Err(malformed(USAGE)),
        }
    }
    if chosen.is_empty() {
        return Err(malformed("UNPIVOT needs a column"));
    }
    let is_kept = |column: &&String| !chosen.iter().any(|taken| taken.column == **column);
    let kept: String = all.iter().filter(is_kept).map(|column| format!("{}, ", quote_identifier(column))).collect();
    let names: Vec<String> = chosen.iter().map(|taken| quoted_text(&taken.shown)).collect();
    let (values, exprs): (Vec<String>, Vec<Expr>) =
        chosen.into_iter().enumerate().map(|(index, taken)| (format!("${}", index + 1), taken.value)).unzip();
    let (name, value) = (quote_identifier(name), quote_identifier(value));
    let text = format!(
        "SELECT {kept}unnest(make_array({})) AS {name}, unnest(make_array({})) AS {value} FROM t",
        names.join(", "),
        values.join(", ")
    );
    let text = match include_nulls {
        true => text,
        false => format!("SELECT * FROM ({text}) AS unpivoted WHERE {value} IS NOT NULL"),
    };
    plan_over_values(&text, &exprs, table, context)
}

/// A column of which there is a row, and the value in that row.
struct UnpivotedColumn {
    column: String,
    value: Expr,
    /// What it is called in its row.
    shown: String,
}

impl UnpivotedColumn {
    fn plain(column: String) -> Self {
        let value = Expr::Identifier(Ident::with_quote('"', column.clone()));
        Self { value, shown: column.clone(), column }
    }
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
    // An alias that is the expression's text is not one that somebody gave.
    let shown = alias.map(|alias| alias.value.clone()).filter(|alias| *alias != expr.to_string());
    let shown = shown.unwrap_or_else(|| column.clone());
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
