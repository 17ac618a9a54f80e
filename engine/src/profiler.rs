//! Collects what columns hold, for value search and for judging joins: in the background, one table at a time, after
//! it was written or looked at. A read is bounded in rows, bytes and time, and nobody waits for it.
//!
//! What is collected may be seen by whoever may see the table's database; it is read without row or column rules.

mod collect;

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use querent_catalog::{Principal, TableName, Unprofiled};
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use crate::{Engine, Limits, Result, Session};
use collect::Collected;

/// Tables that wait; more are left until they are looked at again.
const MAX_WAITING: usize = 1_000;
/// Writes that follow one another are taken together, unless somebody waits for them.
const SETTLING_TIME: Duration = Duration::from_secs(1);
/// A table that was looked at is not checked again for this long.
const CHECKS_APART: Duration = Duration::from_secs(60);
/// Rows read from a table's beginning; a table with no more is read whole.
const FIRST_ROWS: u64 = 20_000;
/// Rows sampled from all over a larger table.
const SAMPLED_ROWS: usize = 1_000;
const READ_TIME: Duration = Duration::from_secs(5);
const READ_MEMORY_BYTES: usize = 128 << 20;
const READ_BYTES: u64 = 64 << 20;

/// The tables whose values are to be collected.
pub(crate) struct ValueQueue {
    waiting: Mutex<Waiting>,
    came: Notify,
    /// Somebody waits until all is collected.
    hurry: Notify,
    /// How many wait or are being read.
    left: watch::Sender<usize>,
}

#[derive(Default)]
struct Waiting {
    order: VecDeque<TableName>,
    known: HashSet<TableName>,
    checked: HashMap<TableName, Instant>,
}

impl ValueQueue {
    pub(crate) fn new() -> Self {
        Self { waiting: Mutex::default(), came: Notify::new(), hurry: Notify::new(), left: watch::Sender::new(0) }
    }

    /// A table's rows are not what they were.
    pub(crate) fn changed(&self, table: TableName) {
        self.push(vec![table], false);
    }

    /// Tables that somebody looks at, whose values may never have been collected.
    pub(crate) fn looked_at(&self, tables: Vec<TableName>) {
        self.push(tables, true);
    }

    /// Until nothing waits, at most `time`.
    pub(crate) async fn idle(&self, time: Duration) {
        let mut left = self.left.subscribe();
        if *left.borrow() == 0 {
            return;
        }
        self.hurry.notify_one();
        // Running out of time is an outcome like any other: what waits is collected when it is looked at.
        let _ = tokio::time::timeout(time, left.wait_for(|left| *left == 0)).await;
    }

    fn push(&self, tables: Vec<TableName>, only_unchecked: bool) {
        let mut waiting = self.waiting.lock();
        for table in tables {
            let was_checked = waiting.checked.get(&table).is_some_and(|at| at.elapsed() < CHECKS_APART);
            if (only_unchecked && was_checked) || waiting.order.len() >= MAX_WAITING {
                continue;
            }
            if waiting.known.insert(table.clone()) {
                waiting.order.push_back(table);
                self.left.send_modify(|left| *left += 1);
            }
        }
        drop(waiting);
        self.came.notify_one();
    }

    fn take(&self) -> Option<TableName> {
        let mut waiting = self.waiting.lock();
        let table = waiting.order.pop_front()?;
        waiting.known.remove(&table);
        if waiting.checked.len() >= MAX_WAITING {
            waiting.checked.clear();
        }
        waiting.checked.insert(table.clone(), Instant::now());
        Some(table)
    }

    fn done(&self) {
        self.left.send_modify(|left| *left = left.saturating_sub(1));
    }
}

/// Collects until `stop`. The engine it is given must not be one whose drop is waited for.
pub(crate) async fn follow(engine: Engine, queue: Arc<ValueQueue>, stop: CancellationToken) {
    let work = async {
        loop {
            let Some(table) = queue.take() else {
                queue.came.notified().await;
                tokio::select! {
                    () = tokio::time::sleep(SETTLING_TIME) => {}
                    () = queue.hurry.notified() => {}
                }
                continue;
            };
            if let Err(error) = collect(&engine, &table).await {
                tracing::debug!(%table, code = error.code(), %error, "values not collected");
            }
            queue.done();
        }
    };
    tokio::select! {
        () = stop.cancelled() => {}
        () = work => {}
    }
}

async fn collect(engine: &Engine, name: &TableName) -> Result<()> {
    let reader = Principal::local_admin();
    let catalog = engine.catalog();
    let Some(table) = catalog.tables().resolve(&reader, std::slice::from_ref(name)).await?.pop().flatten() else {
        return Ok(());
    };
    let Some(unprofiled) = catalog.values().unprofiled(&[table.info.id]).await?.pop() else { return Ok(()) };
    let mut collected = Collected::new(&table.info);
    if !collected.is_empty() {
        let limits = Limits {
            wall_clock: READ_TIME,
            memory_bytes: READ_MEMORY_BYTES,
            max_rows: None,
            max_bytes: Some(READ_BYTES),
        };
        let session = engine.session(reader, limits).read_only();
        // Hashing and counting keep a thread for longer than a server's task may.
        let (worker, name) = (session.clone(), table.info.name.clone());
        let work = async move {
            read(&worker, &name, &mut collected).await?;
            Ok(collected)
        };
        collected = session.engine().runtime().threads.run(work).await?;
    }
    let Unprofiled { table_id, state, .. } = unprofiled;
    Ok(catalog.values().store_profile(collected.into_profile(table_id, state)).await?)
}

/// The first rows, and of a larger table some from all over it.
async fn read(session: &Session, table: &TableName, collected: &mut Collected) -> Result<()> {
    let quoted = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
    let columns: Vec<String> = collected.columns().map(quoted).collect();
    let sql = format!(
        "SELECT {} FROM {}.{} LIMIT {}",
        columns.join(", "),
        quoted(&table.database),
        quoted(&table.table),
        FIRST_ROWS + 1
    );
    let (batches, stats) = session.sql(&sql).await?.collect().await?;
    for batch in &batches {
        collected.add(batch);
        tokio::task::yield_now().await;
    }
    if stats.rows > FIRST_ROWS || stats.truncated {
        collected.is_complete = false;
        let (batches, _) = session.sample(table, SAMPLED_ROWS).await?.collect().await?;
        for batch in &batches {
            collected.add(batch);
        }
    }
    Ok(())
}
