//! Decoding rows and encoding parameters: times, counts, ids, JSON columns, page tokens. Shared by everything that
//! reads and writes tables of the store.

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use crate::connection::{DatabaseError, DatabaseResult, StoreRow};
use crate::error::{CatalogError, Result};
use crate::model::{ConversationKey, PageRequest, PageToken};

/// The most items of a page.
pub(crate) const MAX_PAGE: usize = 10_000;

/// A time, which the store keeps in microseconds.
pub(crate) fn time_from_micros(micros: i64) -> Option<DateTime<Utc>> {
    DateTime::from_timestamp_micros(micros)
}

/// Reads a time.
pub(crate) fn read_time(row: &StoreRow<'_>, column: usize) -> DatabaseResult<DateTime<Utc>> {
    time_from_micros(row.get(column)?).ok_or_else(|| unreadable(column, "a time out of range"))
}

/// Reads a count. SQLite's numbers have a sign, whatever they count.
pub(crate) fn read_count(row: &StoreRow<'_>, column: usize) -> DatabaseResult<u64> {
    Ok(row.get::<i64>(column)?.unsigned_abs())
}

/// Reads a UUID or NULL.
pub(crate) fn read_uuid(row: &StoreRow<'_>, column: usize) -> DatabaseResult<Option<Uuid>> {
    let text: Option<String> = row.get(column)?;
    text.map(|text| Uuid::parse_str(&text).map_err(|error| unreadable(column, error))).transpose()
}

/// Reads the conversation that a row names in `column` (the space) and the one after it (the id).
pub(crate) fn read_conversation_key(row: &StoreRow<'_>, column: usize) -> DatabaseResult<Option<ConversationKey>> {
    let (space, id): (Option<String>, Option<String>) = (row.get(column)?, row.get(column + 1)?);
    Ok(id.map(|id| ConversationKey { space: space.unwrap_or_default(), id }))
}

/// Reads a column of JSON.
pub(crate) fn read_json<T: DeserializeOwned>(row: &StoreRow<'_>, column: usize) -> DatabaseResult<T> {
    let text: String = row.get(column)?;
    serde_json::from_str(&text).map_err(|error| unreadable(column, error))
}

/// The error for a stored value that cannot be decoded.
pub(crate) fn unreadable(column: usize, reason: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> DatabaseError {
    DatabaseError::Unreadable { column, reason: reason.into() }
}

/// A limit or a length as SQLite's signed integer.
pub(crate) fn as_limit(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

/// Encodes a JSON column or a JSON parameter (a list of ids for `json_each`).
pub(crate) fn to_json(value: &(impl Serialize + ?Sized)) -> Result<String> {
    serde_json::to_string(value).map_err(|error| CatalogError::Internal(error.to_string()))
}

/// The time and the rest of a page token that begins with a time.
pub(crate) fn parse_token(token: &PageToken, listing: &str) -> Result<(i64, String)> {
    token
        .0
        .split_once('.')
        .and_then(|(time, id)| Some((time.parse().ok()?, id.to_string())))
        .ok_or_else(|| bad_token(token, listing))
}

/// The id after which a page of a listing by id continues; 0 for the first page.
pub(crate) fn parse_id_token(page: &PageRequest, what: &str) -> Result<i64> {
    let Some(token) = &page.after else { return Ok(0) };
    token.0.parse().map_err(|_| bad_token(token, &format!("{what} listing")))
}

/// The error for a page token of another listing.
pub(crate) fn bad_token(token: &PageToken, listing: &str) -> CatalogError {
    CatalogError::InvalidName { name: token.0.clone(), reason: format!("it is not a page token of a {listing}") }
}
