//! What a server that shares its catalog has to take into its own schema index.
//!
//! The pending rows of a shared catalog are a log: whoever changes an object writes a row, the newest of an object stays, and
//! each server copies what came since it last looked into a file of its own, `pending.sqlite` in its data folder. Its index
//! takes rows in, and removes them, there. A row is deleted from the log once every server has it; a server that was not
//! seen for a week is not waited for, and builds its index anew when it comes back ([`protocol`]).
//!
//! Each time the index is to be built anew a number grows, the epoch. Whoever writes the index's state says by which
//! epoch it was made ([`require_epoch`]), so that one which lacks rows is never taken for whole.
//!
//! Invariant: rows are copied in the order of their sequence numbers, which is the order of commits, since one server writes
//! at a time. Only the holder of the store's writer copies.

pub(super) mod protocol;

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use self::protocol::{ForgottenRows, LocalLog, LogMember, SharedLog};
use super::pending::{self, Committed, ObjectKind, PendingObject};
use super::reader_pool::begun;
use super::{SnapshotView, Store, closed, hand_over, objects, on_blocking_thread, policies};
use crate::connection::{Access, DatabaseResult, OptionalRow, StoreConnection, params};
use crate::error::{CatalogError, Result};

/// The file of the rows that this server has not indexed.
const PENDING_FILE: &str = "pending.sqlite";
/// Rows copied at once.
const PAGE: usize = 1_000;
/// How often a server says how far it is.
const REPORTED_EVERY: Duration = Duration::from_secs(60);
/// The row of `querent_log_position` that counts how often the index was to be built anew.
const EPOCH: &str = "epoch";

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
    /// Whether the index was told of all that was copied: not where an error came after a page.
    is_told: AtomicBool,
}

impl ChangeLog {
    /// Opens the copy of a data folder. `shared` is a connection to the shared catalog that may write.
    pub(super) fn open(data_dir: &Path, member: &str, shared: &StoreConnection) -> Result<Self> {
        let file = data_dir.join(PENDING_FILE);
        let local = StoreConnection::open_file(&file)?;
        // What is lost in a power cut is copied, or the index built, again.
        local.execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL")?;
        local.execute_batch(DDL)?;
        let log = Self {
            member: member.to_owned(),
            local: Mutex::new(local),
            reported_at: Mutex::new(None),
            is_told: AtomicBool::new(true),
        };
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

    /// Takes part in the log.
    fn join(&self, shared: &StoreConnection) -> Result<()> {
        let transaction = shared.begin(Access::Write)?;
        protocol::join(&*transaction, self, &self.member)?;
        transaction.commit()?;
        Ok(())
    }

    /// Copies what was committed since, and returns it. What is more than a page is due, which is to be read from the
    /// copy; so is all where this server begins anew, and after an error.
    pub(super) fn copy(&self, shared: &StoreConnection) -> Result<Committed> {
        let was_told = self.is_told.swap(false, Ordering::Relaxed);
        let committed = self.copy_pages(shared)?;
        let was_forgotten = self.report_now_and_then(shared)?;
        self.is_told.store(true, Ordering::Relaxed);
        match was_told && !was_forgotten {
            true => Ok(committed),
            false => Ok(Committed { has_due: true, has_due_columns: true, ..Committed::default() }),
        }
    }

    /// Notes that this server has all rows, where it has: also those whose numbers were never used. Nobody writes meanwhile.
    pub(super) fn note_all(&self, shared: &StoreConnection) -> Result<()> {
        let transaction = shared.begin(Access::Write)?;
        for kind in [ObjectKind::Table, ObjectKind::Column] {
            let after = LocalLog::position(self, kind)?.unwrap_or(0);
            let newest = transaction.newest(kind)?;
            if newest > after && transaction.rows_after(kind, after, 1)?.is_empty() {
                self.keep_rows(kind, &[], newest)?;
            }
        }
        transaction.commit()?;
        Ok(())
    }

    fn copy_pages(&self, shared: &StoreConnection) -> Result<Committed> {
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
        Ok(committed)
    }

    fn copy_page(&self, shared: &StoreConnection, kind: ObjectKind) -> Result<Vec<PendingObject>> {
        let after = self.position(kind)?.unwrap_or(0);
        let transaction = shared.begin(Access::Read)?;
        let copied = transaction.rows_after(kind, after, PAGE)?;
        transaction.end()?;
        if let Some(last) = copied.last() {
            self.keep_rows(kind, &copied, last.sequence)?;
        }
        Ok(copied)
    }

    /// Tells the other servers how far this one is, and deletes what all of them have. Returns whether this one begins
    /// anew.
    fn report_now_and_then(&self, shared: &StoreConnection) -> Result<bool> {
        let is_due = self.reported_at.lock().is_none_or(|at| at.elapsed() >= REPORTED_EVERY);
        if !is_due {
            return Ok(false);
        }
        let transaction = shared.begin(Access::Write)?;
        let was_forgotten = protocol::report(&*transaction, self, &self.member)?;
        transaction.commit()?;
        *self.reported_at.lock() = Some(Instant::now());
        if was_forgotten {
            tracing::warn!("the other servers did not wait for this one; its schema index is built anew");
        }
        Ok(was_forgotten)
    }
}

impl Store {
    /// Hands what other servers committed to the listener of commits. Does nothing where none shares the catalog.
    pub(crate) async fn follow(&self) -> Result<()> {
        let on_commit = Arc::clone(&self.on_commit);
        self.with_log(move |log, shared| log.copy(shared).map(|committed| hand_over(&on_commit, committed))).await
    }

    /// Notes that this server has all rows of the log, where it has. Does nothing where none shares the catalog.
    pub(crate) async fn note_all_rows(&self) -> Result<()> {
        self.with_log(|log, shared| log.note_all(shared)).await
    }

    async fn with_log<F>(&self, f: F) -> Result<()>
    where
        F: FnOnce(&ChangeLog, &StoreConnection) -> Result<()> + Send + 'static,
    {
        let Some(log) = self.log.clone() else { return Ok(()) };
        let mut writer = Arc::clone(&self.writer).lock_owned().await;
        let place = self.place.clone();
        on_blocking_thread(move || {
            let connection = writer.as_mut().ok_or_else(closed)?;
            begun(&place, connection, Access::Read)?.end()?;
            f(&log, connection).map_err(|error| place.named(error))
        })
        .await
    }
}

impl LocalLog for ChangeLog {
    fn position(&self, kind: ObjectKind) -> Result<Option<i64>> {
        self.with(|local| position(local, kind.as_str()))
    }

    fn epoch(&self) -> Result<i64> {
        self.with(epoch)
    }

    fn keep_rows(&self, kind: ObjectKind, rows: &[PendingObject], last: i64) -> Result<()> {
        self.with(|local| {
            if kind == ObjectKind::Column {
                local.execute("DELETE FROM querent_column_text WHERE is_due = 0", [])?;
            }
            for object in rows {
                keep(local, object)?;
            }
            set_position(local, kind.as_str(), last)
        })
    }

    fn begin_anew(&self, objects: i64, columns: i64) -> Result<()> {
        self.with(|local| {
            local.execute_batch(
                "DELETE FROM querent_index; DELETE FROM querent_pending_objects; DELETE FROM querent_column_text",
            )?;
            set_position(local, EPOCH, epoch(local)? + 1)?;
            for (kind, newest) in [(ObjectKind::Table, objects), (ObjectKind::Column, columns)] {
                set_position(local, kind.as_str(), newest)?;
                // What it is built from has all up to there.
                set_position(local, reach_of(kind), newest)?;
            }
            Ok(())
        })
    }
}

impl SharedLog for StoreConnection {
    fn log_time(&self) -> Result<i64> {
        Ok(self.now_micros()?)
    }

    fn newest(&self, kind: ObjectKind) -> Result<i64> {
        Ok(match kind {
            ObjectKind::Table => self.newest_number("querent_pending_objects", "sequence")?,
            ObjectKind::Column => self.newest_number("querent_column_text", "text_id")?,
        })
    }

    fn rows_after(&self, kind: ObjectKind, after: i64, limit: usize) -> Result<Vec<PendingObject>> {
        match kind {
            ObjectKind::Column => pending::column_page(self, after, limit, false),
            ObjectKind::Table => {
                let snapshot = objects::absorbed_snapshot(self)?;
                let policies = Arc::new(policies::newest(self)?);
                objects::pending_texts(&SnapshotView { connection: self, snapshot, policies }, kind, after, limit)
            }
        }
    }

    fn members(&self) -> Result<Vec<LogMember>> {
        let mut statement = self.prepare_cached("SELECT member, sequence, epoch, seen_at FROM querent_member")?;
        let members = statement.query_map([], |row| {
            Ok(LogMember { id: row.get(0)?, position: row.get(1)?, epoch: row.get(2)?, seen_at: row.get(3)? })
        })?;
        Ok(members.collect::<DatabaseResult<_>>()?)
    }

    fn keep_member(&self, member: &LogMember) -> Result<()> {
        self.prepare_cached(
            "INSERT INTO querent_member (member, sequence, epoch, seen_at) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (member) DO UPDATE SET sequence = ?2, epoch = ?3, seen_at = ?4",
        )?
        .execute(params![member.id, member.position, member.epoch, member.seen_at])?;
        Ok(())
    }

    fn forget(&self, forgotten: &ForgottenRows) -> Result<()> {
        for member in &forgotten.members {
            self.prepare_cached("DELETE FROM querent_member WHERE member = ?")?.execute([member])?;
        }
        if let Some(up_to) = forgotten.up_to {
            self.prepare_cached("DELETE FROM querent_pending_objects WHERE sequence <= ?")?.execute([up_to])?;
        }
        Ok(())
    }
}

/// How often the index was to be built anew.
pub(super) fn epoch(local: &StoreConnection) -> Result<i64> {
    Ok(position(local, EPOCH)?.unwrap_or(0))
}

/// Up to which row of the log this server has those of a kind; `None` where it never took part.
pub(crate) fn index_position(local: &StoreConnection, kind: ObjectKind) -> Result<Option<i64>> {
    position(local, kind.as_str())
}

/// The newest row of a kind that the index holds. One of an earlier build says nothing of it: it may hold all that was copied.
pub(crate) fn index_reach(local: &StoreConnection, kind: ObjectKind) -> Result<i64> {
    match position(local, reach_of(kind))? {
        Some(reach) => Ok(reach),
        None => Ok(index_position(local, kind)?.unwrap_or(0)),
    }
}

/// Notes that the index holds a row, in the transaction that removes it from what is pending.
pub(crate) fn set_index_reach(local: &StoreConnection, kind: ObjectKind, sequence: i64) -> Result<()> {
    let known = index_reach(local, kind)?;
    set_position(local, reach_of(kind), known.max(sequence))
}

/// The row of `querent_log_position` with how far the index of a kind reaches.
fn reach_of(kind: ObjectKind) -> &'static str {
    match kind {
        ObjectKind::Table => "index of tables",
        ObjectKind::Column => "index of columns",
    }
}

/// Makes sure that an index of an epoch still has all rows, in the transaction that writes its state. Errors:
/// `index_error` where it is to be built anew.
pub(super) fn require_epoch(local: &StoreConnection, made_in: i64) -> Result<()> {
    match epoch(local)? == made_in {
        true => Ok(()),
        false => Err(CatalogError::Index("the other servers did not wait for it; it is built anew".to_owned())),
    }
}

fn position(local: &StoreConnection, kind: &str) -> Result<Option<i64>> {
    Ok(local
        .prepare_cached("SELECT sequence FROM querent_log_position WHERE kind = ?")?
        .query_row([kind], |row| row.get(0))
        .optional()?)
}

fn set_position(local: &StoreConnection, kind: &str, sequence: i64) -> Result<()> {
    local
        .prepare_cached(
            "INSERT INTO querent_log_position VALUES (?1, ?2) ON CONFLICT (kind) DO UPDATE SET sequence = ?2",
        )?
        .execute(params![kind, sequence])?;
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
///
/// Behind it stands the number of its file, which a copy of the folder does not have: two servers of one id would end each
/// other's runs, and hold each other's leases.
#[expect(clippy::disallowed_methods, reason = "on a blocking thread")]
pub(super) fn member_of(data_dir: &Path) -> Result<String> {
    let file = data_dir.join("server.id");
    let io_error = |source| CatalogError::of_file(&file, source);
    let text = match std::fs::read_to_string(&file) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            std::fs::write(&file, "").map_err(io_error)?;
            String::new()
        }
        Err(error) => return Err(io_error(error)),
    };
    let number = std::fs::metadata(&file).map_err(io_error)?.ino().to_string();
    let mut lines = text.lines().map(str::trim);
    let (known, made_with) = (lines.next().unwrap_or_default(), lines.next());
    let id = match made_with {
        Some(made_with) if made_with == number && !known.is_empty() => return Ok(known.to_owned()),
        Some(_) if !known.is_empty() => {
            tracing::warn!(
                folder = %data_dir.display(),
                "the data folder is a copy of another server's; it is a server of its own among those that share the catalog"
            );
            uuid::Uuid::now_v7().to_string()
        }
        // An earlier version wrote the id alone.
        None if !known.is_empty() => known.to_owned(),
        _ => uuid::Uuid::now_v7().to_string(),
    };
    std::fs::write(&file, format!("{id}\n{number}\n")).map_err(io_error)?;
    Ok(id)
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "each test has a folder of its own")]
mod tests {
    use super::*;

    #[test]
    fn a_copied_folder_has_an_id_of_its_own() {
        let above = std::env::temp_dir().join(format!("querent-{}", uuid::Uuid::new_v4()));
        let (folder, copy) = (above.join("one"), above.join("two"));
        for made in [&folder, &copy] {
            std::fs::create_dir_all(made).unwrap();
        }
        let id = member_of(&folder).unwrap();
        assert_eq!(member_of(&folder).unwrap(), id);
        std::fs::copy(folder.join("server.id"), copy.join("server.id")).unwrap();
        let of_copy = member_of(&copy).unwrap();
        assert_ne!(of_copy, id);
        assert_eq!(member_of(&copy).unwrap(), of_copy);
        assert_eq!(member_of(&folder).unwrap(), id);
        // As an earlier version wrote it.
        std::fs::write(folder.join("server.id"), format!("{id}\n")).unwrap();
        for _ in 0..2 {
            assert_eq!(member_of(&folder).unwrap(), id);
        }
        std::fs::write(folder.join("server.id"), "").unwrap();
        assert_ne!(member_of(&folder).unwrap(), id);
        std::fs::remove_dir_all(&above).unwrap();
    }
}
