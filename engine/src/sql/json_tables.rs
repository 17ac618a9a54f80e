//! `json_each(json [, path])`, `json_tree(json [, path])` and PostgreSQL's `jsonb_each`, `json_array_elements` and their kin in FROM. Each becomes a subquery over the rows that a function
//! makes of the value: a constant, a query, or an expression over the tables before it.

use std::ops::ControlFlow;

use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, Ident, ObjectName, ObjectNamePart, Query, TableAlias, TableFactor, Visit,
    Visitor, VisitorMut,
};
use datafusion::sql::sqlparser::parser::Parser;

use super::dialect::SqlDialect;
use super::function_forms::fill;
use super::syntax::try_visit_statement;
use crate::error::{EngineError, Result};
use crate::functions::JSON_ROW_COLUMNS;

/// The table functions.
static FUNCTIONS: [JsonTable; 10] = [
    JsonTable { name: "json_each", rows: "json_each_rows", columns: &[] },
    JsonTable { name: "json_tree", rows: "json_tree_rows", columns: &[] },
    JsonTable { name: "jsonb_each", rows: "json_each_rows", columns: PAIRS },
    JsonTable { name: "json_each_text", rows: "json_each_rows", columns: TEXT_PAIRS },
    JsonTable { name: "jsonb_each_text", rows: "json_each_rows", columns: TEXT_PAIRS },
    JsonTable { name: "json_array_elements", rows: "json_each_rows", columns: VALUES },
    JsonTable { name: "jsonb_array_elements", rows: "json_each_rows", columns: VALUES },
    JsonTable { name: "json_array_elements_text", rows: "json_each_rows", columns: TEXTS },
    JsonTable { name: "jsonb_array_elements_text", rows: "json_each_rows", columns: TEXTS },
    JsonTable { name: "jsonb_object_keys", rows: "json_each_rows", columns: KEYS },
];

const TEXT: &str = "json_extract_string(made['value'], '$')";
const PAIRS: &[(&str, &str)] = &[("key", "made['key']"), ("value", "made['value']")];
const TEXT_PAIRS: &[(&str, &str)] = &[("key", "made['key']"), ("value", TEXT)];
const VALUES: &[(&str, &str)] = &[("value", "made['value']")];
const TEXTS: &[(&str, &str)] = &[("value", TEXT)];
const KEYS: &[(&str, &str)] = &[("jsonb_object_keys", "made['key']")];

/// A table function of JSON.
struct JsonTable {
    name: &'static str,
    /// The function that makes its rows.
    rows: &'static str,
    /// Its columns and what they are; those of DuckDB where there are none.
    columns: &'static [(&'static str, &'static str)],
}

/// Returns the names of the table functions, each with what it is short for.
pub(super) fn all() -> impl Iterator<Item = (&'static str, String)> {
    FUNCTIONS.iter().map(|table| (table.name, format!("unnest({}($1))", table.rows)))
}

/// Rewrites every call in a statement. Errors: `sql_plan_error`.
pub(super) fn rewrite_json_tables(statement: &mut Statement) -> Result<()> {
    try_visit_statement(statement, &mut JsonTableRewriter)
}

struct JsonTableRewriter;

impl VisitorMut for JsonTableRewriter {
    type Break = EngineError;

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<EngineError> {
        let (name, args, alias) = match factor {
            TableFactor::Table { name, args: Some(args), alias, .. } => (&*name, &args.args, alias),
            TableFactor::Function { name, args, alias, .. } => (&*name, &*args, alias),
            _ => return ControlFlow::Continue(()),
        };
        let Some(table) = function_named(name) else { return ControlFlow::Continue(()) };
        let function = table.name;
        let args: Option<Vec<Expr>> = args
            .iter()
            .map(|arg| match arg {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr.clone()),
                _ => None,
            })
            .collect();
        let args = args.filter(|args| matches!(args.len(), 1 | 2));
        let Some(args) = args else {
            let message = format!("write {function}(json) or {function}(json, '$.path')");
            return ControlFlow::Break(EngineError::Plan { message });
        };
        // Of columns of the tables before it: a table function's arguments may be, without the word.
        let lateral = args.iter().any(names_column);
        let subquery = match rows_query(table, &args) {
            Ok(subquery) => subquery,
            Err(error) => return ControlFlow::Break(error),
        };
        let alias = alias.take().unwrap_or_else(|| TableAlias {
            explicit: true,
            name: Ident::new(function),
            columns: Vec::new(),
            at: None,
        });
        *factor = TableFactor::Derived { lateral, subquery, alias: Some(alias), sample: None };
        ControlFlow::Continue(())
    }
}

fn function_named(name: &ObjectName) -> Option<&'static JsonTable> {
    let [ObjectNamePart::Identifier(ident)] = name.0.as_slice() else { return None };
    FUNCTIONS.iter().find(|table| ident.value.eq_ignore_ascii_case(table.name))
}

fn rows_query(table: &JsonTable, args: &[Expr]) -> Result<Box<Query>> {
    let rows = table.rows;
    let columns = match table.columns {
        [] => JSON_ROW_COLUMNS.map(|column| format!("made['{column}'] AS \"{column}\"")).join(", "),
        own => own.iter().map(|(name, value)| format!("{value} AS \"{name}\"")).collect::<Vec<_>>().join(", "),
    };
    let places = (1..=args.len()).map(|position| format!("${position}")).collect::<Vec<_>>().join(", ");
    let text = format!("SELECT {columns} FROM (SELECT unnest({rows}({places})) AS made) AS parts");
    let parsed = Parser::new(&SqlDialect).try_with_sql(&text).and_then(|mut parser| parser.parse_query());
    let mut query = parsed.map_err(|error| EngineError::Internal(format!("`{text}` does not parse: {error}")))?;
    fill(query.as_mut(), args);
    Ok(query)
}

/// Returns whether an expression has a column outside of its subqueries.
pub(super) fn names_column(expr: &Expr) -> bool {
    struct ColumnFinder(usize);
    impl Visitor for ColumnFinder {
        type Break = ();
        fn pre_visit_query(&mut self, _query: &Query) -> ControlFlow<()> {
            self.0 += 1;
            ControlFlow::Continue(())
        }
        fn post_visit_query(&mut self, _query: &Query) -> ControlFlow<()> {
            self.0 -= 1;
            ControlFlow::Continue(())
        }
        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
            match expr {
                Expr::Identifier(_) | Expr::CompoundIdentifier(_) if self.0 == 0 => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            }
        }
    }
    Visit::visit(expr, &mut ColumnFinder(0)).is_break()
}
