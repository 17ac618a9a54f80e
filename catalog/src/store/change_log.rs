//! What a server that shares its catalog has to take into its own schema index.
//!
//! The pending rows of a shared catalog are a log: whoever changes an object writes a row, the newest of an object stays, and
//! each server copies what came since it last looked into a file of its own, `pending.sqlite` in its data folder. Its index
//! takes rows in, and removes them, there. A row is deleted from the log once every server has it; a server that was not
//! seen for [`FORGOTTEN_AFTER`] is not waited for, and builds its index anew when it comes back.
//!
//! Invariant: rows are copied in the order of their sequence numbers, which is the order of commits, since one server writes
//! at a time. Only the holder of the store's writer copies.

use std::path::Path;
use std::time::{Duration, Instant};

use chrono::Utc;
use parking_lot::Mutex;

use super::pending::{self, Committed, ObjectKind, PendingObject};
use super::{SnapshotView, objects, policies};
use crate::connection::{Access, OptionalRow, StoreConnection, params};
use crate::error::{CatalogError, Result};

/// The file of the rows that this server has not indexed.
const PENDING_FILE: &str = "pending.sqlite";
/// Rows copied at once.
const PAGE: usize = 1_000;
/// How often a server says how far it is.
const REPORTED_EVERY: Duration = Duration::from_secs(60);
/// After how long a server that says nothing is not waited for.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(7 * 24 * 3_600);

const DDL: &str = "
CREATE TABLE IF NOT EXISTS querent_pending_objects (sequence INTEGER PRIMARY KEY, object_id BIGINT NOT NULL UNIQUE, kind VARCHAR NOT NULL, database_id BIGINT NOT NULL, text VARCHAR, is_due BIGINT NOT NULL DEFAULT 0);
CREATE TABLE IF NOT EXISTS querent_column_text (text_id INTEGER PRIMARY KEY, text VARCHAR NOT NULL, is_due BIGINT NOT NULL);
CREATE INDEX IF NOT EXISTS querent_ix_column_text_due ON querent_column_text (text_id) WHERE is_due = 1;
CREATE TABLE IF NOT EXISTS querent_index (kind VARCHAR PRIMARY KEY, folder VARCHAR NOT NULL, version BIGINT NOT NULL, text_version BIGINT NOT NULL, model_id VARCHAR, dimension BIGINT, is_embedded BIGINT NOT NULL);
CREATE TABLE IF NOT EXISTS querent_log_position (kind VARCHAR PRIMARY KEY, sequence BIGINT NOT NULL);
";

/// This server's copy of what is pending.
pub(super) struct ChangeLog {
    member: String,
    /// Locked on blocking threads only.
    local: Mutex<StoreConnection>,
    reported_at: Mutex<Option<Instant>>,
}

impl ChangeLog {
    /// Opens the copy of a data folder. `shared` is a connection to the shared catalog that may write.
    pub(super) fn open(data_dir: &Path, member: &str, shared: &StoreConnection) -> Result<Self> {
        let file = data_dir.join(PENDING_FILE);
        let local = StoreConnection::open_file(&file)?;
        // What is lost in a power cut is copied, or the index built, again.
        local.execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL")?;
        local.execute_batch(DDL)?;
        let log = Self { member: member.to_owned(), local: Mutex::new(local), reported_at: Mutex::new(None) };
        log.join(shared)?;
        Ok(log)
    }

    /// Runs `f` over the copy, in a transaction.
    pub(super) fn with<T>(&self, f: impl FnOnce(&StoreConnection) -> Result<T>) -> Result<T> {
        let local = self.local.lock();
        let transaction = local.begin(Access::Write)?;
        let result = f(&transaction)?;
        transaction.commit()?;
        Ok(result)
    }

    /// Takes part in the log: from where this server was, or from now on where it was forgotten, or never there.
    fn join(&self, shared: &StoreConnection) -> Result<()> {
        let transaction = shared.begin(Access::Write)?;
        let known = self.with(|local| position(local, ObjectKind::Table))?;
        let is_member: bool = transaction
            .prepare_cached("SELECT EXISTS (SELECT 1 FROM querent_member WHERE member = ?)")?
            .query_row([&self.member], |row| row.get(0))?;
        let position = match known.filter(|_| is_member) {
            Some(position) => position,
            None => self.begin_anew(&transaction)?,
        };
        report(&transaction, &self.member, position)?;
        transaction.commit()?;
        Ok(())
    }

    /// Forgets the index, so that it is built from the catalog, with which the log continues from here on.
    fn begin_anew(&self, shared: &StoreConnection) -> Result<i64> {
        let objects = shared.newest_number("querent_pending_objects", "sequence")?;
        let columns = shared.newest_number("querent_column_text", "text_id")?;
        self.with(|local| {
            local.execute_batch(
                "DELETE FROM querent_index; DELETE FROM querent_pending_objects; DELETE FROM querent_column_text",
            )?;
            set_position(local, ObjectKind::Table, objects)?;
            set_position(local, ObjectKind::Column, columns)
        })?;
        Ok(objects)
    }

    /// Copies what was committed since, and returns it. What is more than a page is due, which is to be read from the copy.
    pub(super) fn copy(&self, shared: &StoreConnection) -> Result<Committed> {
        let mut committed = Committed::default();
        for kind in [ObjectKind::Table, ObjectKind::Column] {
            let mut pages = 0;
            loop {
                let objects = self.copy_page(shared, kind)?;
                let is_last = objects.len() < PAGE;
                pages += 1;
                let (kept, has_more) = match kind {
                    ObjectKind::Table => (&mut committed.objects, &mut committed.has_due),
                    ObjectKind::Column => (&mut committed.columns, &mut committed.has_due_columns),
                };
                match is_last && pages == 1 {
                    true => *kept = objects,
                    false => *has_more = true,
                }
                if is_last {
                    break;
                }
            }
        }
        self.report_now_and_then(shared)?;
        Ok(committed)
    }

    fn copy_page(&self, shared: &StoreConnection, kind: ObjectKind) -> Result<Vec<PendingObject>> {
        let after = self.with(|local| position(local, kind))?.unwrap_or(0);
        let transaction = shared.begin(Access::Read)?;
        let copied = match kind {
            ObjectKind::Column => pending::column_page(&transaction, after, PAGE, false)?,
            ObjectKind::Table => {
                let snapshot = objects::absorbed_snapshot(&transaction)?;
                let policies = std::sync::Arc::new(policies::newest(&transaction)?);
                let view = SnapshotView { connection: &transaction, snapshot, policies };
                objects::pending_texts(&view, kind, after, PAGE)?
            }
        };
        transaction.end()?;
        let Some(last) = copied.last().map(|object| object.sequence) else { return Ok(copied) };
        self.with(|local| {
            if kind == ObjectKind::Column {
                local.execute("DELETE FROM querent_column_text WHERE is_due = 0", [])?;
            }
            for object in &copied {
                keep(local, object)?;
            }
            set_position(local, kind, last)
        })?;
        Ok(copied)
    }

    /// Tells the other servers how far this one is, and deletes what all of them have.
    fn report_now_and_then(&self, shared: &StoreConnection) -> Result<()> {
        let is_due = self.reported_at.lock().is_none_or(|at| at.elapsed() >= REPORTED_EVERY);
        if !is_due {
            return Ok(());
        }
        let position = self.with(|local| position(local, ObjectKind::Table))?.unwrap_or(0);
        let transaction = shared.begin(Access::Write)?;
        let is_member = report(&transaction, &self.member, position)?;
        if !is_member {
            tracing::warn!(
                "the other servers did not wait for this one; its schema index is built anew when it is opened next"
            );
            self.begin_anew(&transaction)?;
        }
        let since = Utc::now().timestamp_micros() - i64::try_from(FORGOTTEN_AFTER.as_micros()).unwrap_or(i64::MAX);
        transaction.execute("DELETE FROM querent_member WHERE seen_at < ?", [since])?;
        transaction.execute(
            "DELETE FROM querent_pending_objects WHERE sequence <= (SELECT min(sequence) FROM querent_member)",
            [],
        )?;
        transaction.commit()?;
        *self.reported_at.lock() = Some(Instant::now());
        Ok(())
    }
}

/// Records how far a server is. Returns whether it was known.
fn report(shared: &StoreConnection, member: &str, position: i64) -> Result<bool> {
    let now = Utc::now().timestamp_micros();
    let updated = shared
        .prepare_cached("UPDATE querent_member SET sequence = ?2, seen_at = ?3 WHERE member = ?1")?
        .execute(params![member, position, now])?;
    if updated == 0 {
        shared
            .prepare_cached("INSERT INTO querent_member (member, sequence, seen_at) VALUES (?, ?, ?)")?
            .execute(params![member, position, now])?;
    }
    Ok(updated > 0)
}

fn position(local: &StoreConnection, kind: ObjectKind) -> Result<Option<i64>> {
    Ok(local
        .prepare_cached("SELECT sequence FROM querent_log_position WHERE kind = ?")?
        .query_row([kind.as_str()], |row| row.get(0))
        .optional()?)
}

fn set_position(local: &StoreConnection, kind: ObjectKind, sequence: i64) -> Result<()> {
    local
        .prepare_cached(
            "INSERT INTO querent_log_position VALUES (?1, ?2) ON CONFLICT (kind) DO UPDATE SET sequence = ?2",
        )?
        .execute(params![kind.as_str(), sequence])?;
    Ok(())
}

fn keep(local: &StoreConnection, object: &PendingObject) -> Result<()> {
    match object.kind {
        ObjectKind::Table => {
            local
                .prepare_cached("DELETE FROM querent_pending_objects WHERE object_id = ?")?
                .execute([object.object_id])?;
            local
                .prepare_cached(
                    "INSERT INTO querent_pending_objects (sequence, object_id, kind, database_id, text, is_due)
                     VALUES (?, ?, ?, ?, ?, 0)",
                )?
                .execute(params![
                    object.sequence,
                    object.object_id,
                    object.kind.as_str(),
                    object.database_id,
                    object.text
                ])?;
        }
        ObjectKind::Column => {
            local
                .prepare_cached("INSERT INTO querent_column_text VALUES (?, ?, 1) ON CONFLICT DO NOTHING")?
                .execute(params![object.object_id, object.text])?;
        }
    }
    Ok(())
}

/// The id by which the other servers know the one of a data folder; made when it is first asked for.
#[expect(clippy::disallowed_methods, reason = "on a blocking thread")]
pub(super) fn member_of(data_dir: &Path) -> Result<String> {
    let file = data_dir.join("server.id");
    let io_error = |source| CatalogError::Io { path: file.clone(), source };
    match std::fs::read_to_string(&file) {
        Ok(id) if !id.trim().is_empty() => Ok(id.trim().to_owned()),
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(io_error(error)),
        _ => {
            let id = uuid::Uuid::now_v7().to_string();
            std::fs::write(&file, format!("{id}\n")).map_err(io_error)?;
            Ok(id)
        }
    }
}
