//! By what a table's rows are sorted when they are written: `SORTED BY` of CREATE TABLE and ALTER TABLE.
//!
//! An order made here is of columns. DuckDB also makes orders by expressions; of these, the columns before the first expression count.

use arrow::datatypes::DataType;
use arrow::row::{RowConverter, SortField};
use datafusion::error::DataFusionError;
use datafusion::sql::sqlparser::ast::{CreateTable, CreateTableOptions, Expr, OrderByExpr, SqlOption, Value};
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::Token;
use querent_catalog::SortedByKey;

use super::dialect::SqlDialect;
use super::marks;
use super::syntax::spelled_columns;
use crate::error::{EngineError, Result};
use crate::identifiers::quote_identifier;

/// Returns the text of an order among properties of a table; `None` where they are others.
pub(super) fn order_text(properties: &[SqlOption]) -> Option<&str> {
    let [SqlOption::KeyValue { key, value: Expr::Value(value) }] = properties else { return None };
    match &value.value {
        Value::SingleQuotedString(text) if key.value == marks::SORTED_BY => Some(text),
        _ => None,
    }
}

/// Returns whether options of CREATE TABLE are an order.
pub(crate) fn is_sort_order(options: &CreateTableOptions) -> bool {
    matches!(options, CreateTableOptions::With(properties) if order_text(properties).is_some())
}

/// Takes the order out of CREATE TABLE: its text.
pub(super) fn take_sort_order(table: &mut CreateTable) -> Option<String> {
    let CreateTableOptions::With(properties) = &table.table_options else { return None };
    let text = order_text(properties)?.to_owned();
    table.table_options = CreateTableOptions::None;
    Some(text)
}

/// Returns the keys of an order of a table with these columns; none of an empty text. Errors: `sql_parse_error`, `column_not_found`,
/// `unsupported`.
pub(super) fn sort_keys(text: &str, columns: &[(&str, &DataType)], table: &str) -> Result<Vec<SortedByKey>> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
    let mut keys = Vec::new();
    for OrderByExpr { expr, options, with_fill } in parsed(text)? {
        let name = match expr {
            Expr::Identifier(name) => name,
            other => return Err(unsupported(&format!("SORTED BY `{other}`"), "name columns of the table alone")),
        };
        if with_fill.is_some() {
            return Err(unsupported("WITH FILL", "leave it out"));
        }
        for column in spelled_columns(&[name], &names, table)? {
            let data_type = columns.iter().find(|(known, _)| *known == column).map(|(_, data_type)| *data_type);
            if !data_type.is_some_and(is_sortable) {
                return Err(unsupported(&format!("SORTED BY the column `{column}`"), "its values have no order"));
            }
            // As DuckDB has it: nulls are last in either direction.
            let nulls_first = options.nulls_first.unwrap_or(false);
            keys.push(SortedByKey::of_column(&column, options.asc == Some(false), nulls_first));
        }
    }
    Ok(keys)
}

/// Returns whether values of a type can be sorted.
pub(crate) fn is_sortable(data_type: &DataType) -> bool {
    RowConverter::supports_fields(&[SortField::new(data_type.clone())])
}

fn unsupported(what: &str, hint: &str) -> EngineError {
    EngineError::Unsupported { what: what.to_owned(), hint: hint.to_owned() }
}

fn parsed(text: &str) -> Result<Vec<OrderByExpr>, DataFusionError> {
    let keys = || -> Result<Vec<OrderByExpr>, ParserError> {
        let mut parser = Parser::new(&SqlDialect).try_with_sql(text)?;
        let keys = parser.parse_comma_separated(Parser::parse_order_by_expr)?;
        parser.expect_token(&Token::EOF)?;
        Ok(keys)
    };
    Ok(keys()?)
}

/// Returns the clause that makes an order; empty where there is none.
pub(super) fn order_clause(keys: &[SortedByKey]) -> String {
    if keys.is_empty() {
        return String::new();
    }
    let keys = keys.iter().map(|key| {
        let column = key.column().map_or_else(|| key.expression.clone(), |name| quote_identifier(&name));
        let nulls = if key.nulls_first { "NULLS FIRST" } else { "NULLS LAST" };
        format!("{column} {} {nulls}", key.direction())
    });
    format!(" SORTED BY ({})", keys.collect::<Vec<_>>().join(", "))
}
