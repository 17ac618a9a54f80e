//! `json_to_record(json) AS t(a INTEGER, b VARCHAR)` and `json_to_recordset` in FROM, with the columns that the alias defines: a
//! subquery over the value, or over its elements, that casts what each column's key has. It is written before the statement is
//! judged and planned, so it is read as the rest.

use std::ops::ControlFlow;

use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    DataType, Expr, ObjectName, Query, TableAliasColumnDef, TableFactor, VisitorMut,
};
use datafusion::sql::sqlparser::parser::Parser;

use super::dialect::SqlDialect;
use super::function_forms::fill;
use super::syntax::try_visit_statement;
use super::table_calls::{names_column, table_call};
use crate::error::{EngineError, Result};
use crate::identifiers::quote_identifier;

/// The functions, each with whether its rows are the elements of an array.
const FUNCTIONS: [(&str, bool); 4] =
    [("json_to_record", false), ("jsonb_to_record", false), ("json_to_recordset", true), ("jsonb_to_recordset", true)];

/// Returns the names of the functions, each with what it is short for.
pub(super) fn all() -> impl Iterator<Item = (&'static str, &'static str)> {
    FUNCTIONS.into_iter().map(|(name, is_set)| (name, source_of(is_set)))
}

/// Whether a name is that of a function whose columns, with their types, its alias defines.
pub(super) fn takes_columns_of_alias(name: &ObjectName) -> bool {
    let name = name.0.last().and_then(|part| part.as_ident());
    name.is_some_and(|name| FUNCTIONS.iter().any(|(function, _)| name.value.eq_ignore_ascii_case(function)))
}

/// Rewrites every call in a statement. Errors: `sql_plan_error`.
pub(super) fn rewrite_json_records(statement: &mut Statement) -> Result<()> {
    try_visit_statement(statement, &mut JsonRecordRewriter)
}

struct JsonRecordRewriter;

impl VisitorMut for JsonRecordRewriter {
    type Break = EngineError;

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<EngineError> {
        let Some(mut called) = table_call(factor) else { return ControlFlow::Continue(()) };
        let named = FUNCTIONS.into_iter().find(|(name, _)| called.name.value.eq_ignore_ascii_case(name));
        let Some((function, is_set)) = named else { return ControlFlow::Continue(()) };
        let usage = || {
            let message = format!("write {function}(json) AS t(a INTEGER, b VARCHAR): the alias defines the columns");
            ControlFlow::Break(EngineError::Plan { message })
        };
        if called.is_numbered {
            return usage();
        }
        let Some(values) = called.values().filter(|values| values.len() == 1) else { return usage() };
        let mut alias = called.take_alias(function);
        let Some(subquery) = records_query(is_set, &alias.columns, &values) else { return usage() };
        alias.columns.clear();
        // Of columns of the tables before it: a table function's arguments may be, without the word.
        let lateral = values.iter().any(names_column);
        *factor = TableFactor::Derived { lateral, subquery: Box::new(subquery), alias: Some(alias), sample: None };
        ControlFlow::Continue(())
    }
}

/// Returns a query of the defined columns; `None` where none is defined, or one without its type.
fn records_query(is_set: bool, columns: &[TableAliasColumnDef], values: &[Expr]) -> Option<Query> {
    let record = if is_set { "made['value']" } else { "made" };
    let column = |column: &TableAliasColumnDef| {
        let key = column.name.value.replace('\'', "''");
        let value = match column.data_type.as_ref()? {
            DataType::JSON | DataType::JSONB => format!("json_extract({record}, '{key}')"),
            data_type => format!("CAST(json_extract_string({record}, '{key}') AS {data_type})"),
        };
        Some(format!("{value} AS {}", quote_identifier(&column.name.value)))
    };
    let columns = columns.iter().map(column).collect::<Option<Vec<_>>>().filter(|columns| !columns.is_empty())?;
    let text = format!("SELECT {} FROM (SELECT {} AS made) AS parts", columns.join(", "), source_of(is_set));
    let mut query = *Parser::new(&SqlDialect).try_with_sql(&text).ok()?.parse_query().ok()?;
    fill(&mut query, values);
    Some(query)
}

fn source_of(is_set: bool) -> &'static str {
    if is_set { "unnest(json_each_rows($1))" } else { "$1" }
}
