//! UNPIVOT: a row for each column, with its name and its value.

use datafusion::error::Result;
use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::sqlparser::ast::{Expr, ExprWithAlias, Ident, NullInclusion, SelectItem, TableFactor};

use super::{
    Context, column_names, derived, item_parts, malformed, plan_over, quoted, quoted_text, select_of, subquery, text_of,
};
use crate::error::EngineError;
use crate::identifiers::same_name;
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
    let mut chosen: Vec<(String, String)> = Vec::new();
    for item in items {
        match item_parts(item) {
            Some((Expr::Identifier(ident), alias)) => {
                let Some(column) = all.iter().find(|column| same_name(column, &ident.value)) else {
                    let message = format!("there is no column `{}`; the columns are {}", ident.value, all.join(", "));
                    return Err(EngineError::Plan { message }.into());
                };
                chosen.push((column.clone(), alias.map_or_else(|| column.clone(), |alias| alias.value.clone())));
            }
            _ => {
                let columns = chosen_columns(item, &all)?.ok_or_else(|| malformed(USAGE))?;
                chosen.extend(columns.into_iter().map(|column| (column.clone(), column)));
            }
        }
    }
    if chosen.is_empty() {
        return Err(malformed("UNPIVOT needs a column"));
    }
    let is_kept = |column: &&String| !chosen.iter().any(|(taken, _)| taken == *column);
    let kept: String = all.iter().filter(is_kept).map(|column| format!("{}, ", quoted(column))).collect();
    let names: Vec<String> = chosen.iter().map(|(_, shown)| quoted_text(shown)).collect();
    let values: Vec<String> = chosen.iter().map(|(column, _)| quoted(column)).collect();
    let (name, value) = (quoted(name), quoted(value));
    let text = format!(
        "SELECT {kept}unnest(make_array({})) AS {name}, unnest(make_array({})) AS {value} FROM t",
        names.join(", "),
        values.join(", ")
    );
    let text = match include_nulls {
        true => text,
        false => format!("SELECT * FROM ({text}) AS unpivoted WHERE {value} IS NOT NULL"),
    };
    plan_over(&text, table, context)
}
