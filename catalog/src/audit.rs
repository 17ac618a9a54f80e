//! The audit log: who asked what, through which door, of which tables, with what outcome. It is only appended to, each record
//! with a hash over itself and the one before, so that a record that is changed or taken out later is noticed.
//!
//! It is a file of its own, `audit.sqlite`: statements do not wait for the catalog's writer, and the catalog does not grow with
//! them. Records are written in batches, a moment after they are made; a process that is killed loses those of the last moment.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use parking_lot::Mutex;
use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tokio::runtime::Handle;
use tokio_util::task::AbortOnDropHandle;

use crate::error::{CatalogError, Result};

/// The log's file in a data folder.
const AUDIT_FILE: &str = "audit.sqlite";
/// How long records are gathered.
const MOMENT: Duration = Duration::from_millis(200);
/// How often the log says that records are not written.
const TOLD_APART: Duration = Duration::from_secs(60);
/// Records that wait to be written.
const MAX_WAITING: usize = 10_000;
/// Records of one transaction.
const BATCH: usize = 1_000;
/// What the first record's hash stands on.
const BEGINNING: &str = "querent audit";

const DDL: &str = "
CREATE TABLE IF NOT EXISTS querent_audit (seq INTEGER PRIMARY KEY, at BIGINT NOT NULL, record_json VARCHAR NOT NULL, hash VARCHAR NOT NULL);
CREATE INDEX IF NOT EXISTS querent_ix_audit_time ON querent_audit (at);
CREATE TABLE IF NOT EXISTS querent_audit_start (id INTEGER PRIMARY KEY CHECK (id = 1), seq BIGINT NOT NULL, hash VARCHAR NOT NULL);
";

/// What came of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AuditOutcome {
    /// It ran to its end, or to the end of what was read of it.
    Done,
    /// It was not allowed.
    Refused,
    /// It failed.
    Failed,
}

/// One statement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditRecord {
    /// When it began.
    pub at: DateTime<Utc>,
    /// Who sent it.
    pub subject: String,
    /// The role.
    pub role: String,
    /// The door that it came through: `http`, `flight`, `mcp`, `agent`, `embedded`.
    pub door: String,
    /// The beginning of its text, without secrets.
    pub statement: String,
    /// The tables that it reads.
    pub tables: Vec<String>,
    /// The columns that it reads of them.
    pub columns: Vec<String>,
    /// The table or database that it writes.
    pub written: Option<String>,
    /// The row policies and masks that held.
    pub policies: Vec<String>,
    /// What came of it.
    pub outcome: AuditOutcome,
    /// The code of its error.
    pub error: Option<String>,
    /// Rows that were delivered.
    pub rows: u64,
    /// Their bytes.
    pub bytes: u64,
    /// How long it took.
    pub elapsed_ms: u64,
}

/// A record as it is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KeptRecord {
    /// Its number.
    pub seq: i64,
    /// The statement.
    #[serde(flatten)]
    pub record: AuditRecord,
    /// The hash over the record and the hash before it.
    pub hash: String,
}

/// What a check of the log found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AuditCheck {
    /// Records that were read.
    pub records: u64,
    /// The number and the hash of the last one. Kept elsewhere, it shows later whether the end was cut off.
    pub head: Option<(i64, String)>,
    /// What is wrong, if anything.
    pub fault: Option<String>,
}

/// The log of an open catalog. Nothing is kept until [`AuditLog::keep`] says so.
pub struct AuditLog {
    inner: Arc<AuditInner>,
    /// Writes what waits, again and again; it ends with the log.
    writing: Mutex<Option<AbortOnDropHandle<()>>>,
}

struct AuditInner {
    file: PathBuf,
    is_kept: AtomicBool,
    waiting: Mutex<Vec<AuditRecord>>,
    /// Locked on blocking threads only.
    connection: Mutex<Option<Connection>>,
}

impl AuditLog {
    /// The log of a data folder, which keeps nothing yet.
    pub(crate) fn new(data_dir: &Path) -> Self {
        let inner = AuditInner {
            file: data_dir.join(AUDIT_FILE),
            is_kept: AtomicBool::new(false),
            waiting: Mutex::new(Vec::new()),
            connection: Mutex::new(None),
        };
        Self { inner: Arc::new(inner), writing: Mutex::new(None) }
    }

    /// Opens the log and keeps records from now on. Errors: `storage_full`, `catalog_corrupt`, `catalog_error`.
    pub async fn keep(&self) -> Result<()> {
        let inner = Arc::clone(&self.inner);
        on_blocking_thread(move || {
            *inner.connection.lock() = Some(open(&inner.file).map_err(|error| inner.named(error))?);
            inner.is_kept.store(true, Ordering::Release);
            Ok(())
        })
        .await?;
        let inner = Arc::clone(&self.inner);
        let writing = Handle::current().spawn(async move {
            let mut told: Option<Instant> = None;
            loop {
                tokio::time::sleep(MOMENT).await;
                match flush(Arc::clone(&inner)).await {
                    Ok(()) if told.take().is_some() => tracing::info!("audit records are written again"),
                    Ok(()) => {}
                    Err(error) if told.is_none_or(|at| at.elapsed() >= TOLD_APART) => {
                        told = Some(Instant::now());
                        tracing::error!(%error, "audit records are not written; they are tried again");
                    }
                    Err(_) => {}
                }
            }
        });
        *self.writing.lock() = Some(AbortOnDropHandle::new(writing));
        Ok(())
    }

    /// Whether records are kept.
    pub fn is_kept(&self) -> bool {
        self.inner.is_kept.load(Ordering::Acquire)
    }

    /// Records a statement. Does nothing where no log is kept.
    pub fn record(&self, record: AuditRecord) {
        if !self.is_kept() {
            return;
        }
        let mut waiting = self.inner.waiting.lock();
        if waiting.len() >= MAX_WAITING {
            // Rather a gap that is said than memory without bound.
            tracing::error!("audit records are lost: {MAX_WAITING} wait to be written");
            return;
        }
        waiting.push(record);
    }

    /// Writes what waits.
    pub async fn flush(&self) -> Result<()> {
        flush(Arc::clone(&self.inner)).await
    }

    /// Writes what waits and closes the file.
    pub(crate) async fn close(&self) -> Result<()> {
        drop(self.writing.lock().take());
        let flushed = self.flush().await;
        self.inner.is_kept.store(false, Ordering::Release);
        let inner = Arc::clone(&self.inner);
        on_blocking_thread(move || {
            drop(inner.connection.lock().take());
            Ok(())
        })
        .await?;
        flushed
    }

    /// Records in the order in which they came, after the one of number `after`.
    pub async fn list(&self, after: i64, limit: usize) -> Result<Vec<KeptRecord>> {
        self.flush().await?;
        self.read(move |connection| list(connection, after, limit)).await
    }

    /// Reads the whole log and looks whether each record stands on the one before it.
    pub async fn verify(&self) -> Result<AuditCheck> {
        self.flush().await?;
        self.read(verify).await
    }

    /// Returns what is wrong with the log, where there is one.
    pub(crate) async fn verify_if_there(&self) -> Result<Option<String>> {
        if !self.inner.file.is_file() {
            return Ok(None);
        }
        match self.verify().await {
            Ok(check) => Ok(check.fault),
            Err(CatalogError::Corrupt { detail, .. }) => Ok(Some(format!("{AUDIT_FILE} is damaged: {detail}"))),
            Err(error) => Err(error),
        }
    }

    /// Forgets the first records, as long as they are older than `time`, and the oldest where there are more than `most`. The chain goes on from the
    /// hash of the last one that was forgotten. Returns how many there were.
    pub async fn forget(&self, time: DateTime<Utc>, most: u64) -> Result<u64> {
        let inner = Arc::clone(&self.inner);
        on_blocking_thread(move || match inner.connection.lock().as_mut() {
            Some(connection) => forget(connection, time, most).map_err(|error| inner.named(error)),
            None => Ok(0),
        })
        .await
    }

    /// Reads the file, whether or not records are kept now.
    async fn read<T: Send + 'static>(&self, f: impl FnOnce(&Connection) -> Result<T> + Send + 'static) -> Result<T> {
        let inner = Arc::clone(&self.inner);
        on_blocking_thread(move || open(&inner.file).and_then(|log| f(&log)).map_err(|error| inner.named(error))).await
    }
}

impl AuditInner {
    /// Says of an error of SQLite what it is of the log: that it is damaged, locked, or cannot grow.
    fn named(&self, error: CatalogError) -> CatalogError {
        error.of_database(&self.file, &AUDIT_FILE)
    }
}

async fn flush(inner: Arc<AuditInner>) -> Result<()> {
    on_blocking_thread(move || {
        let mut connection = inner.connection.lock();
        let Some(connection) = connection.as_mut() else { return Ok(()) };
        loop {
            let batch: Vec<AuditRecord> = {
                let mut waiting = inner.waiting.lock();
                let count = waiting.len().min(BATCH);
                waiting.drain(..count).collect()
            };
            if batch.is_empty() {
                return Ok(());
            }
            if let Err(error) = append(connection, &batch) {
                // They keep their order before those that came meanwhile.
                drop(inner.waiting.lock().splice(..0, batch));
                return Err(inner.named(error));
            }
        }
    })
    .await
}

fn open(file: &Path) -> Result<Connection> {
    let connection = Connection::open(file)?;
    connection.busy_timeout(Duration::from_secs(10))?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    connection.execute_batch(DDL)?;
    Ok(connection)
}

fn append(connection: &mut Connection, records: &[AuditRecord]) -> Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let (mut seq, mut hash) = head(&transaction)?;
    {
        let mut insert = transaction.prepare_cached("INSERT INTO querent_audit VALUES (?, ?, ?, ?)")?;
        for record in records {
            let json = serde_json::to_string(record)
                .map_err(|error| CatalogError::Internal(format!("an audit record as JSON: {error}")))?;
            seq += 1;
            hash = hash_of(&hash, seq, &json);
            insert.execute(params![seq, record.at.timestamp_micros(), json, hash])?;
        }
    }
    transaction.commit()?;
    Ok(())
}

/// The number and the hash that the next record stands on.
fn head(connection: &Connection) -> Result<(i64, String)> {
    let last = connection
        .prepare_cached("SELECT seq, hash FROM querent_audit ORDER BY seq DESC LIMIT 1")?
        .query_row([], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    match last {
        Some(last) => Ok(last),
        None => start(connection),
    }
}

/// The number and the hash before the first record that is kept.
fn start(connection: &Connection) -> Result<(i64, String)> {
    let start = connection
        .prepare_cached("SELECT seq, hash FROM querent_audit_start")?
        .query_row([], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    Ok(start.unwrap_or_else(|| (0, hash_of(BEGINNING, 0, ""))))
}

fn list(connection: &Connection, after: i64, limit: usize) -> Result<Vec<KeptRecord>> {
    let mut statement = connection
        .prepare_cached("SELECT seq, record_json, hash FROM querent_audit WHERE seq > ? ORDER BY seq LIMIT ?")?;
    let rows = statement.query_map(params![after, limit as i64], |row| {
        Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?, row.get::<_, String>(2)?))
    })?;
    let mut records = Vec::new();
    for row in rows {
        let (seq, json, hash) = row?;
        let record = serde_json::from_str(&json)
            .map_err(|error| CatalogError::Internal(format!("audit record {seq} cannot be read: {error}")))?;
        records.push(KeptRecord { seq, record, hash });
    }
    Ok(records)
}

fn verify(connection: &Connection) -> Result<AuditCheck> {
    let (mut seq, mut hash) = start(connection)?;
    let mut check = AuditCheck { records: 0, head: None, fault: None };
    let mut statement = connection.prepare("SELECT seq, at, record_json, hash FROM querent_audit ORDER BY seq")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (found, at, json, kept): (i64, i64, String, String) = (row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?);
        if found != seq + 1 {
            check.fault = Some(format!("record {} is missing", seq + 1));
            return Ok(check);
        }
        hash = hash_of(&hash, found, &json);
        let is_of_its_time =
            serde_json::from_str::<AuditRecord>(&json).is_ok_and(|one| one.at.timestamp_micros() == at);
        if hash != kept || !is_of_its_time {
            check.fault = Some(format!("record {found} is not what was written"));
            return Ok(check);
        }
        seq = found;
        check.records += 1;
        check.head = Some((seq, kept));
    }
    Ok(check)
}

fn forget(connection: &mut Connection, time: DateTime<Utc>, most: u64) -> Result<u64> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Those before the first that is young enough: a clock that was set back for a moment makes old ones among young ones.
    let last: Option<(i64, String)> = transaction
        .query_row(
            "SELECT seq, hash FROM querent_audit
             WHERE seq < coalesce((SELECT seq FROM querent_audit NOT INDEXED WHERE at >= ?1 ORDER BY seq LIMIT 1),
                                  (SELECT max(seq) + 1 FROM querent_audit))
                OR seq <= (SELECT max(seq) FROM querent_audit) - ?2
             ORDER BY seq DESC LIMIT 1",
            params![time.timestamp_micros(), i64::try_from(most).unwrap_or(i64::MAX)],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
        .optional()?;
    let Some((seq, hash)) = last else { return Ok(0) };
    transaction.execute("INSERT OR REPLACE INTO querent_audit_start VALUES (1, ?, ?)", params![seq, hash])?;
    let forgotten = transaction.execute("DELETE FROM querent_audit WHERE seq <= ?", [seq])?;
    transaction.commit()?;
    Ok(forgotten as u64)
}

fn hash_of(before: &str, seq: i64, json: &str) -> String {
    let mut hasher = Sha256::new();
    // The numbers of bytes keep one part from passing for the beginning of the next.
    hasher.update(format!("{}:{before}{seq}:{}:", before.len(), json.len()));
    hasher.update(json);
    hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

async fn on_blocking_thread<T: Send + 'static>(f: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    match tokio::task::spawn_blocking(f).await {
        Ok(result) => result,
        Err(error) => Err(CatalogError::Internal(format!("an audit thread ended early: {error}"))),
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "each test has a runtime of its own")]
mod tests {
    use super::*;

    fn record() -> AuditRecord {
        AuditRecord {
            at: Utc::now(),
            subject: "ann".into(),
            role: "read".into(),
            door: "http".into(),
            statement: "x".repeat(10_000),
            tables: Vec::new(),
            columns: Vec::new(),
            written: None,
            policies: Vec::new(),
            outcome: AuditOutcome::Done,
            error: None,
            rows: 0,
            bytes: 0,
            elapsed_ms: 0,
        }
    }

    #[tokio::test]
    async fn a_full_disk_is_said_and_loses_no_record() {
        let folder = std::env::temp_dir().join(format!("querent-{}", uuid::Uuid::new_v4()));
        std::fs::create_dir(&folder).unwrap();
        let log = AuditLog::new(&folder);
        log.keep().await.unwrap();
        log.record(record());
        assert_eq!(log.list(0, 10).await.unwrap().len(), 1);
        let limit = |pages: u32| {
            let connection = log.inner.connection.lock();
            connection.as_ref().unwrap().pragma_update(None, "max_page_count", pages).unwrap();
        };
        limit(1);
        (0..10).for_each(|_| log.record(record()));
        let refused = log.list(0, 100).await.unwrap_err();
        assert_eq!(refused.code(), "storage_full", "{refused}");
        limit(1 << 20);
        assert_eq!(log.list(0, 100).await.unwrap().len(), 11);
        assert_eq!(log.verify().await.unwrap().fault, None);
        log.close().await.unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
