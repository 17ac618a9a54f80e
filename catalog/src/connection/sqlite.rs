//! SQLite behind the connection: a thin cover that copies nothing which rusqlite does not copy.

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{CachedStatement, Row, Rows, Statement, ToSql};

use super::error::DatabaseResult;
use super::values::{StoreParameter, StoreValue};

/// Prepared statements kept by each connection.
pub(crate) const CACHED_STATEMENTS: usize = 128;

/// A prepared statement.
pub(crate) enum SqliteStatement<'c> {
    /// It goes back to those that are kept.
    Cached(CachedStatement<'c>),
    /// It does not.
    Once(Statement<'c>),
}

impl<'c> SqliteStatement<'c> {
    pub(super) fn execute(&mut self, parameters: &[&dyn StoreParameter]) -> DatabaseResult<usize> {
        Ok(self.statement().execute(bound(parameters))?)
    }

    pub(super) fn query(&mut self, parameters: &[&dyn StoreParameter]) -> DatabaseResult<SqliteRows<'_>> {
        Ok(SqliteRows(self.statement().query(bound(parameters))?))
    }

    fn statement(&mut self) -> &mut Statement<'c> {
        match self {
            SqliteStatement::Cached(statement) => statement,
            SqliteStatement::Once(statement) => statement,
        }
    }
}

/// The rows of a query.
pub(crate) struct SqliteRows<'s>(Rows<'s>);

impl SqliteRows<'_> {
    pub(super) fn next(&mut self) -> DatabaseResult<Option<SqliteRow<'_>>> {
        Ok(self.0.next()?.map(SqliteRow))
    }
}

/// A row of a query.
pub(crate) struct SqliteRow<'r>(&'r Row<'r>);

impl SqliteRow<'_> {
    pub(super) fn column(&self, column: usize) -> DatabaseResult<StoreValue<'_>> {
        Ok(match self.0.get_ref(column)? {
            ValueRef::Null => StoreValue::Null,
            ValueRef::Integer(number) => StoreValue::Integer(number),
            ValueRef::Real(number) => StoreValue::Real(number),
            ValueRef::Text(text) => StoreValue::Text(text),
            ValueRef::Blob(bytes) => StoreValue::Blob(bytes),
        })
    }
}

struct BoundParameter<'p>(&'p dyn StoreParameter);

impl ToSql for BoundParameter<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self.0.value() {
            StoreValue::Null => ValueRef::Null,
            StoreValue::Integer(number) => ValueRef::Integer(number),
            StoreValue::Real(number) => ValueRef::Real(number),
            StoreValue::Text(text) => ValueRef::Text(text),
            StoreValue::Blob(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

fn bound(parameters: &[&dyn StoreParameter]) -> impl rusqlite::Params {
    rusqlite::params_from_iter(parameters.iter().map(|parameter| BoundParameter(*parameter)))
}
