//! Files that callers uploaded. Content is in a table of its own: only [`CatalogFiles::content`] reads it.

use chrono::{DateTime, Utc};

use super::{Listed, RECORD_BYTES};
use crate::connection::{DatabaseResult, OptionalRow, StoreConnection, StoreRow, params};
use crate::error::{CatalogError, Result};
use crate::principal::Principal;
use crate::store::Store;
use crate::store::ownership::owner_filter;
use crate::store::rows::{MAX_PAGE, as_limit, read_count, read_time};

const COLUMNS: &str = "file_id, subject, filename, media_type, purpose, bytes, created_at";

/// A stored file, without its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileRecord {
    /// Its id, unique among all files.
    pub file_id: String,
    /// [`Principal::subject`] of its owner.
    pub subject: String,
    /// Its name.
    pub filename: String,
    /// `text/csv`, ...
    pub media_type: String,
    /// The purpose that its owner gave.
    pub purpose: String,
    /// Length of the content. Measured when the file is stored; ignored in the argument of an insert.
    pub bytes: u64,
    /// When it was uploaded.
    pub created_at: DateTime<Utc>,
}

/// Uploaded files. Made by [`Catalog::files`](crate::Catalog::files).
#[derive(Clone, Copy)]
pub struct CatalogFiles<'a> {
    pub(crate) store: &'a Store,
}

impl CatalogFiles<'_> {
    /// Stores a file, unless those of its owner would then take more than `most` bytes, each 1 KiB beside its content and its
    /// names. Returns whether it did. Durable when it returns. Errors: `item_exists`.
    pub async fn insert_within(self, file: &FileRecord, content: Vec<u8>, most: u64) -> Result<bool> {
        let file = file.clone();
        self.store
            .write_rows(move |connection| {
                let names = file.filename.len() + file.media_type.len();
                let added = RECORD_BYTES + (content.len() + names) as u64;
                if taken(connection, &file.subject)?.saturating_add(added) > most {
                    return Ok(false);
                }
                insert(connection, &file, &content)?;
                Ok(true)
            })
            .await
    }

    /// Returns a file without its content. Errors: `file_not_found`, also for callers other than its owner and
    /// administrators.
    pub async fn get(self, who: &Principal, file_id: &str) -> Result<FileRecord> {
        let (who, file_id) = (who.clone(), file_id.to_string());
        self.store.read(move |connection| get(connection, &who, &file_id)).await
    }

    /// Returns the content of a file. Errors: `file_not_found`.
    pub async fn content(self, who: &Principal, file_id: &str) -> Result<Vec<u8>> {
        let (who, file_id) = (who.clone(), file_id.to_string());
        self.store.read(move |connection| content(connection, &who, &file_id)).await
    }

    /// Up to `limit` files that come after the file `after`, newest first. Errors: `file_not_found` for `after`.
    pub async fn list(self, who: &Principal, after: Option<&str>, limit: usize) -> Result<Listed<FileRecord>> {
        let (who, after) = (who.clone(), after.map(str::to_string));
        self.store.read(move |connection| list(connection, &who, after.as_deref(), limit)).await
    }

    /// Deletes a file. Returns whether there was one.
    pub async fn delete(self, who: &Principal, file_id: &str) -> Result<bool> {
        let (who, file_id) = (who.clone(), file_id.to_string());
        self.store.write_rows(move |connection| delete(connection, owner_filter(&who), &file_id)).await
    }
}

/// Deletes up to `limit` files that were uploaded before a time.
pub(crate) fn purge(connection: &StoreConnection, before: i64, limit: usize) -> Result<u64> {
    let file_ids: Vec<String> = connection
        .prepare_cached("SELECT file_id FROM querent_file WHERE created_at < ?1 LIMIT ?2")?
        .query_map(params![before, as_limit(limit)], |row| row.get(0))?
        .collect::<DatabaseResult<_>>()?;
    for file_id in &file_ids {
        delete(connection, None, file_id)?;
    }
    Ok(file_ids.len() as u64)
}

fn insert(connection: &StoreConnection, file: &FileRecord, content: &[u8]) -> Result<()> {
    let inserted = connection
        .prepare_cached(&format!(
            "INSERT INTO querent_file ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (file_id) DO NOTHING"
        ))?
        .execute(params![
            file.file_id,
            file.subject,
            file.filename,
            file.media_type,
            file.purpose,
            as_limit(content.len()),
            file.created_at.timestamp_micros(),
        ])?;
    if inserted == 0 {
        return Err(CatalogError::ItemExists { what: "file", id: file.file_id.clone() });
    }
    connection
        .prepare_cached("INSERT INTO querent_file_content (file_id, content) VALUES (?, ?)")?
        .execute(params![file.file_id, content])?;
    Ok(())
}

/// Returns how many bytes the files of a subject take.
fn taken(connection: &StoreConnection, subject: &str) -> Result<u64> {
    let sum = format!(
        "SELECT CAST(COALESCE(SUM(bytes + OCTET_LENGTH(filename) + OCTET_LENGTH(media_type) + {RECORD_BYTES}), 0)
         AS BIGINT)
         FROM querent_file WHERE subject = ?"
    );
    Ok(connection.prepare_cached(&sum)?.query_row([subject], |row| read_count(row, 0))?)
}

fn get(connection: &StoreConnection, who: &Principal, file_id: &str) -> Result<FileRecord> {
    connection
        .prepare_cached(&format!(
            "SELECT {COLUMNS} FROM querent_file WHERE file_id = ?1 AND (?2 IS NULL OR subject = ?2)"
        ))?
        .query_row(params![file_id, owner_filter(who)], read)
        .optional()?
        .ok_or_else(|| CatalogError::FileNotFound { id: file_id.to_string() })
}

fn content(connection: &StoreConnection, who: &Principal, file_id: &str) -> Result<Vec<u8>> {
    get(connection, who, file_id)?;
    Ok(connection
        .prepare_cached("SELECT content FROM querent_file_content WHERE file_id = ?")?
        .query_row([file_id], |row| row.get(0))?)
}

fn list(
    connection: &StoreConnection,
    who: &Principal,
    after: Option<&str>,
    limit: usize,
) -> Result<Listed<FileRecord>> {
    let limit = limit.clamp(1, MAX_PAGE);
    let (before_time, before_id) = match after {
        Some(file_id) => (get(connection, who, file_id)?.created_at.timestamp_micros(), file_id),
        None => (i64::MAX, ""),
    };
    let mine = if owner_filter(who).is_some() { "subject = ?4 AND" } else { "?4 IS NULL AND" };
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM querent_file WHERE {mine} (created_at, file_id) < (?1, ?2)
         ORDER BY created_at DESC, file_id DESC LIMIT ?3"
    ))?;
    let rows = statement.query_map(params![before_time, before_id, as_limit(limit + 1), owner_filter(who)], read)?;
    Ok(Listed::cut(rows.collect::<DatabaseResult<_>>()?, limit))
}

fn delete(connection: &StoreConnection, owner: Option<&str>, file_id: &str) -> Result<bool> {
    let deleted = connection
        .prepare_cached("DELETE FROM querent_file WHERE file_id = ?1 AND (?2 IS NULL OR subject = ?2)")?
        .execute(params![file_id, owner])?;
    if deleted > 0 {
        connection.prepare_cached("DELETE FROM querent_file_content WHERE file_id = ?")?.execute([file_id])?;
    }
    Ok(deleted > 0)
}

fn read(row: &StoreRow<'_>) -> DatabaseResult<FileRecord> {
    Ok(FileRecord {
        file_id: row.get(0)?,
        subject: row.get(1)?,
        filename: row.get(2)?,
        media_type: row.get(3)?,
        purpose: row.get(4)?,
        bytes: read_count(row, 5)?,
        created_at: read_time(row, 6)?,
    })
}
