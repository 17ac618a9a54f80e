//! `json_each(json [, path])`, `json_tree(json [, path])` and PostgreSQL's `jsonb_each`, `json_array_elements` and their kin in FROM. Each becomes a subquery over the rows that a function
//! makes of the value: a constant, a query, or an expression over the tables before it. So do PostgreSQL's parts of a text.

use std::ops::ControlFlow;

use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    Expr, Ident, Query, SelectItem, SetExpr, TableAlias, TableAliasColumnDef, TableFactor, TableWithJoins, Value,
    VisitorMut,
};
use datafusion::sql::sqlparser::parser::Parser;

use super::dialect::SqlDialect;
use super::function_forms::fill;
use super::ordinality::{ORDINALITY, places_of};
use super::shorthand::call;
use super::syntax::try_visit_statement;
use super::table_calls::{names_column, table_call};
use crate::error::{EngineError, Result};
use crate::functions::JSON_ROW_COLUMNS;

/// The table functions.
static FUNCTIONS: [JsonTable; 13] = [
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
    JsonTable { name: "json_object_keys", rows: "json_each_rows", columns: JSON_KEYS },
    JsonTable { name: "regexp_split_to_table", rows: "regexp_split_to_array", columns: PATTERN_PARTS },
    JsonTable { name: "string_to_table", rows: "string_to_array", columns: TEXT_PARTS },
];

/// As the query of the rows that a function makes is called.
const MADE_ROWS: &str = "made_rows";

const TEXT: &str = "json_extract_string(made['value'], '$')";
const PAIRS: &[(&str, &str)] = &[("key", "made['key']"), ("value", "made['value']")];
const TEXT_PAIRS: &[(&str, &str)] = &[("key", "made['key']"), ("value", TEXT)];
const VALUES: &[(&str, &str)] = &[("value", "made['value']")];
const TEXTS: &[(&str, &str)] = &[("value", TEXT)];
const KEYS: &[(&str, &str)] = &[("jsonb_object_keys", "made['key']")];
const JSON_KEYS: &[(&str, &str)] = &[("json_object_keys", "made['key']")];
const PATTERN_PARTS: &[(&str, &str)] = &[("regexp_split_to_table", "made")];
const TEXT_PARTS: &[(&str, &str)] = &[("string_to_table", "made")];

/// A table function of JSON, or of a text.
struct JsonTable {
    name: &'static str,
    /// The function that makes its rows.
    rows: &'static str,
    /// Its columns and what they are; those of DuckDB where there are none.
    columns: &'static [(&'static str, &'static str)],
}

impl JsonTable {
    /// Whether it is of JSON, and takes a path.
    fn is_of_json(&self) -> bool {
        self.rows.starts_with("json_")
    }

    /// Whether its rows are plain values, whose column is called what the table is.
    fn has_plain_rows(&self) -> bool {
        matches!(self.columns, [(column, _)] if *column == self.name)
    }
}

/// Returns the names of the table functions, each with what it is short for.
pub(super) fn all() -> impl Iterator<Item = (&'static str, String)> {
    FUNCTIONS.iter().map(|table| {
        let arguments = if table.is_of_json() { "$1" } else { "$1, $2" };
        (table.name, format!("unnest({}({arguments}))", table.rows))
    })
}

/// Rewrites every call in a statement. Errors: `sql_plan_error`.
pub(super) fn rewrite_json_tables(statement: &mut Statement) -> Result<()> {
    try_visit_statement(statement, &mut JsonTableRewriter)
}

struct JsonTableRewriter;

impl VisitorMut for JsonTableRewriter {
    type Break = EngineError;

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<EngineError> {
        let Some(mut called) = table_call(factor) else { return ControlFlow::Continue(()) };
        let Some(table) = function_named(called.name) else { return ControlFlow::Continue(()) };
        let function = table.name;
        let known = if table.is_of_json() { 1..=2 } else { 2..=3 };
        let args = called.values().filter(|args| known.contains(&args.len()));
        let Some(args) = args else {
            let message = match table.is_of_json() {
                true => format!("write {function}(json) or {function}(json, '$.path')"),
                false => format!("write {function}(text, separator)"),
            };
            return ControlFlow::Break(EngineError::Plan { message });
        };
        // Of columns of the tables before it: a table function's arguments may be, without the word.
        let lateral = args.iter().any(names_column);
        let is_numbered = called.is_numbered;
        let subquery = match rows_query(table, &args, is_numbered) {
            Ok(subquery) => subquery,
            Err(error) => return ControlFlow::Break(error),
        };
        let mut alias = called.take_alias(function);
        if table.has_plain_rows() && alias.columns.is_empty() {
            let names = [alias.name.clone()].into_iter().chain(is_numbered.then(|| Ident::new(ORDINALITY)));
            alias.columns = names.map(|name| TableAliasColumnDef { name, data_type: None }).collect();
        }
        *factor = TableFactor::Derived { lateral, subquery, alias: Some(alias), sample: None };
        ControlFlow::Continue(())
    }
}

/// Returns the name of a relation that is one of these, of one column, and that column: the name stands for the column's value too, as
/// in PostgreSQL (`FROM jsonb_array_elements(json) item WHERE item ->> 'k' = 'v'`).
pub(super) fn named_value(factor: &TableFactor) -> Option<(&str, &str)> {
    let TableFactor::Derived { subquery, alias: Some(TableAlias { name, columns, .. }), .. } = factor else {
        return None;
    };
    let SetExpr::Select(select) = subquery.body.as_ref() else { return None };
    let [TableWithJoins { relation: TableFactor::Derived { alias: Some(rows), .. }, .. }] = select.from.as_slice()
    else {
        return None;
    };
    match select.projection.as_slice() {
        [SelectItem::ExprWithAlias { alias, .. }] if rows.name.value == MADE_ROWS && columns.is_empty() => {
            Some((name.value.as_str(), alias.value.as_str()))
        }
        _ => None,
    }
}

/// Returns whether a function is one of these.
pub(super) fn is_json_table(name: &Ident) -> bool {
    function_named(name).is_some()
}

fn function_named(name: &Ident) -> Option<&'static JsonTable> {
    FUNCTIONS.iter().find(|table| name.value.eq_ignore_ascii_case(table.name))
}

fn rows_query(table: &JsonTable, args: &[Expr], is_numbered: bool) -> Result<Box<Query>> {
    let rows = table.rows;
    let columns = match table.columns {
        [] => JSON_ROW_COLUMNS.map(|column| format!("made['{column}'] AS \"{column}\"")).join(", "),
        own => own.iter().map(|(name, value)| format!("{value} AS \"{name}\"")).collect::<Vec<_>>().join(", "),
    };
    let argument = |position: usize| Expr::Value(Value::Placeholder(format!("${position}")).into());
    let list = call(rows, (1..=args.len()).map(argument).collect());
    let (number, numbers) = match is_numbered {
        true => (format!(", {ORDINALITY}"), format!(", {}", places_of(list.clone()))),
        false => (String::new(), String::new()),
    };
    let text = format!("SELECT {columns}{number} FROM (SELECT unnest({list}) AS made{numbers}) AS {MADE_ROWS}");
    let parsed = Parser::new(&SqlDialect).try_with_sql(&text).and_then(|mut parser| parser.parse_query());
    let mut query = parsed.map_err(|error| EngineError::Internal(format!("`{text}` does not parse: {error}")))?;
    fill(query.as_mut(), args);
    Ok(query)
}
