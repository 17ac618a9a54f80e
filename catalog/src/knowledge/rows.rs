//! Stored verified queries and metrics: one table each, keyed by database and by the question or name.

use chrono::Utc;

use super::{KnowledgeObject, MAX_OBJECTS, Metric, NewMetric, NewVerifiedQuery, VerifiedQuery};
use crate::connection::{DatabaseResult, OptionalRow, StoreConnection, StoreRow, params};
use crate::error::{CatalogError, Result};
use crate::model::{Page, PageRequest, PageToken, TableName, quote_identifier};
use crate::policy::{Rights, is_system_database};
use crate::principal::Principal;
use crate::store::names::check_name;
use crate::store::rows::{MAX_PAGE, parse_id_token, read_json, read_time, to_json};
use crate::store::{SnapshotView, name_key, tables_named};

/// The longest question.
const MAX_QUESTION_BYTES: usize = 2 * 1024;
/// The most bytes of SQL, of an expression, of a description.
const MAX_TEXT_BYTES: usize = 32 * 1024;
/// Rows read at a time while a listing skips what may not be seen.
const BATCH: usize = 1_000;

/// How a kind of object is stored.
pub(crate) trait KnowledgeRow: KnowledgeObject {
    /// The kind in messages.
    const WHAT: &'static str;
    /// Its table.
    const TABLE: &'static str;
    /// Its columns, as [`KnowledgeRow::read`] takes them.
    const COLUMNS: &'static str;

    /// Reads [`KnowledgeRow::COLUMNS`].
    fn read(row: &StoreRow<'_>) -> DatabaseResult<Self>;
    /// Its id.
    fn id(&self) -> i64;
}

impl KnowledgeRow for VerifiedQuery {
    const WHAT: &'static str = "verified query";
    const TABLE: &'static str = "querent_verified_query";
    const COLUMNS: &'static str = "id, database, question, sql, tables, subject, created_at";

    fn read(row: &StoreRow<'_>) -> DatabaseResult<Self> {
        Ok(Self {
            id: row.get(0)?,
            database: row.get(1)?,
            question: row.get(2)?,
            sql: row.get(3)?,
            tables: read_json(row, 4)?,
            subject: row.get(5)?,
            created_at: read_time(row, 6)?,
        })
    }

    fn id(&self) -> i64 {
        self.id
    }
}

impl KnowledgeRow for Metric {
    const WHAT: &'static str = "metric";
    const TABLE: &'static str = "querent_metric";
    const COLUMNS: &'static str =
        "id, database, name, description, of_table, expression, row_filter, subject, created_at";

    fn read(row: &StoreRow<'_>) -> DatabaseResult<Self> {
        let (table, expression, filter): (TableName, String, Option<String>) =
            (read_json(row, 4)?, row.get(5)?, row.get(6)?);
        Ok(Self {
            id: row.get(0)?,
            database: row.get(1)?,
            name: row.get(2)?,
            description: row.get(3)?,
            tables: tables_of_metric(&table, &expression, filter.as_deref()),
            table,
            expression,
            filter,
            subject: row.get(7)?,
            created_at: read_time(row, 8)?,
        })
    }

    fn id(&self) -> i64 {
        self.id
    }
}

/// The tables that a metric names: its own, and those of queries in its expression and its filter.
fn tables_of_metric(table: &TableName, expression: &str, filter: Option<&str>) -> Vec<TableName> {
    // As the engine writes the query that it ran before the metric was stored.
    let condition = filter.map(|filter| format!(" WHERE {filter}")).unwrap_or_default();
    let (database, name) = (quote_identifier(&table.database), quote_identifier(&table.table));
    let named = tables_named(&format!("SELECT {expression} FROM {database}.{name}{condition}"), &table.database);
    let others = named.unwrap_or_default().into_iter();
    let others = others.filter(|other| other != table && !is_system_database(&other.database));
    std::iter::once(table.clone()).chain(others).collect()
}

/// Errors: `invalid_object` where what would be replaced may not be seen by the caller.
fn require_seen<T: KnowledgeRow>(
    view: &SnapshotView<'_>,
    who: &Principal,
    key_column: &str,
    database: &str,
    key: &str,
) -> Result<()> {
    let sql = format!("SELECT {} FROM {} WHERE database_key = ?1 AND {key_column} = ?2", T::COLUMNS, T::TABLE);
    let mut statement = view.connection.prepare_cached(&sql)?;
    let known = statement.query_row(params![name_key(database), key], T::read).optional()?;
    match known.filter(|known| !known.is_visible(view.rights(who))) {
        None => Ok(()),
        Some(_) => {
            let reason = "this one is taken by one that you may not see; choose another".to_owned();
            Err(CatalogError::InvalidObject { what: T::WHAT, reason })
        }
    }
}

pub(crate) fn insert_query(view: &SnapshotView<'_>, who: &Principal, new: &NewVerifiedQuery) -> Result<VerifiedQuery> {
    let question = checked::<VerifiedQuery>("question", &new.question, MAX_QUESTION_BYTES)?;
    let sql = checked::<VerifiedQuery>("sql", &new.sql, MAX_TEXT_BYTES)?;
    let key = name_key(question);
    let connection = view.connection;
    require_seen::<VerifiedQuery>(view, who, "question_key", &new.database, &key)?;
    require_room::<VerifiedQuery>(connection, "question_key", &new.database, &key)?;
    let id: i64 = connection
        .prepare_cached(
            "INSERT INTO querent_verified_query
             (database_key, question_key, database, question, sql, tables, subject, created_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
             ON CONFLICT (database_key, question_key) DO UPDATE
             SET question = ?4, sql = ?5, tables = ?6, subject = ?7, created_at = ?8 RETURNING id",
        )?
        .query_row(
            params![
                name_key(&new.database),
                key,
                new.database,
                question,
                sql,
                to_json(&new.tables)?,
                who.subject(),
                Utc::now().timestamp_micros(),
            ],
            |row| row.get(0),
        )?;
    get(connection, id)
}

pub(crate) fn insert_metric(view: &SnapshotView<'_>, who: &Principal, new: &NewMetric) -> Result<Metric> {
    check_name(&new.name)?;
    let expression = checked::<Metric>("expression", &new.expression, MAX_TEXT_BYTES)?;
    let filter = new.filter.as_deref().map(|filter| checked::<Metric>("filter", filter, MAX_TEXT_BYTES)).transpose()?;
    let description =
        new.description.as_deref().map(|text| checked::<Metric>("description", text, MAX_TEXT_BYTES)).transpose()?;
    let key = name_key(&new.name);
    let connection = view.connection;
    require_seen::<Metric>(view, who, "name_key", &new.table.database, &key)?;
    require_room::<Metric>(connection, "name_key", &new.table.database, &key)?;
    let id: i64 = connection
        .prepare_cached(
            "INSERT INTO querent_metric
             (database_key, name_key, database, name, description, of_table, expression, row_filter, subject, created_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
             ON CONFLICT (database_key, name_key) DO UPDATE SET name = ?4, description = ?5, of_table = ?6,
             expression = ?7, row_filter = ?8, subject = ?9, created_at = ?10 RETURNING id",
        )?
        .query_row(
            params![
                name_key(&new.table.database),
                key,
                new.table.database,
                new.name,
                description,
                to_json(&new.table)?,
                expression,
                filter,
                who.subject(),
                Utc::now().timestamp_micros(),
            ],
            |row| row.get(0),
        )?;
    get(connection, id)
}

/// All objects of a kind.
pub(crate) fn all<T: KnowledgeRow>(connection: &StoreConnection) -> Result<Vec<T>> {
    after(connection, 0, None, MAX_OBJECTS)
}

/// A page of the objects that may be seen, oldest first.
pub(crate) fn list<T: KnowledgeRow>(
    connection: &StoreConnection,
    rights: Rights<'_>,
    database: Option<&str>,
    page: &PageRequest,
) -> Result<Page<T>> {
    let limit = page.limit.clamp(1, MAX_PAGE);
    let mut position = parse_id_token(page, T::WHAT)?;
    let mut items: Vec<T> = Vec::new();
    loop {
        let batch: Vec<T> = after(connection, position, database, BATCH)?;
        let is_last = batch.len() < BATCH;
        for object in batch {
            position = object.id();
            if !object.is_visible(rights) {
                continue;
            }
            if items.len() == limit {
                let next = items.last().map(|last| PageToken(last.id().to_string()));
                return Ok(Page { items, next });
            }
            items.push(object);
        }
        if is_last {
            return Ok(Page { items, next: None });
        }
    }
}

/// Deletes an object that the caller may see.
pub(crate) fn remove<T: KnowledgeRow>(connection: &StoreConnection, rights: Rights<'_>, id: i64) -> Result<()> {
    let object: T = get(connection, id)?;
    if !object.is_visible(rights) {
        return Err(unknown::<T>(id));
    }
    connection.execute(&format!("DELETE FROM {} WHERE id = ?", T::TABLE), [id])?;
    Ok(())
}

fn get<T: KnowledgeRow>(connection: &StoreConnection, id: i64) -> Result<T> {
    let sql = format!("SELECT {} FROM {} WHERE id = ?", T::COLUMNS, T::TABLE);
    connection.prepare_cached(&sql)?.query_row([id], T::read).optional()?.ok_or_else(|| unknown::<T>(id))
}

fn after<T: KnowledgeRow>(
    connection: &StoreConnection,
    id: i64,
    database: Option<&str>,
    limit: usize,
) -> Result<Vec<T>> {
    let sql = format!(
        "SELECT {} FROM {} WHERE id > ?1 AND (?2 IS NULL OR database_key = ?2) ORDER BY id LIMIT ?3",
        T::COLUMNS,
        T::TABLE
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement.query_map(params![id, database.map(name_key), limit as i64], T::read)?;
    Ok(rows.collect::<DatabaseResult<_>>()?)
}

/// Refuses a new object beyond [`MAX_OBJECTS`]; one that replaces another is allowed.
fn require_room<T: KnowledgeRow>(
    connection: &StoreConnection,
    key_column: &str,
    database: &str,
    key: &str,
) -> Result<()> {
    let (count, is_known): (i64, bool) = connection.query_row(
        &format!("SELECT COUNT(*), COALESCE(SUM(CASE WHEN database_key = ?1 AND {key_column} = ?2 THEN 1 ELSE 0 END), 0) > 0 FROM {}", T::TABLE),
        params![name_key(database), key],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    if !is_known && usize::try_from(count).is_ok_and(|count| count >= MAX_OBJECTS) {
        let reason = format!("there are {MAX_OBJECTS} already, which is the limit; drop some");
        return Err(CatalogError::InvalidObject { what: T::WHAT, reason });
    }
    Ok(())
}

fn checked<'a, T: KnowledgeRow>(field: &str, text: &'a str, max_bytes: usize) -> Result<&'a str> {
    let text = text.trim();
    let reason = if text.is_empty() {
        format!("{field} is empty")
    } else if text.len() > max_bytes {
        format!("{field} is longer than {max_bytes} bytes")
    } else {
        return Ok(text);
    };
    Err(CatalogError::InvalidObject { what: T::WHAT, reason })
}

fn unknown<T: KnowledgeRow>(id: i64) -> CatalogError {
    CatalogError::ObjectNotFound { what: T::WHAT, id: id.to_string() }
}
