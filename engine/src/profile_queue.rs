//! The queue of tables for the background profiler: those that were written and those that somebody looks at.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use querent_catalog::TableName;
use tokio::sync::{Notify, watch};

/// The most pending tables; more are left out until they are looked at again.
const MAX_PENDING: usize = 1_000;
/// Writes that follow one another within this time are profiled together, unless somebody waits for them.
const SETTLING_TIME: Duration = Duration::from_secs(1);
/// A table that was looked at is not checked again for this long.
const CHECKS_APART: Duration = Duration::from_secs(60);

/// The tables whose columns are to be profiled.
pub(crate) struct ProfileQueue {
    pending: Mutex<PendingTables>,
    /// Notified when a table is pushed.
    pushed: Notify,
    /// Notified when somebody waits until the queue is empty.
    hurry: Notify,
    /// How many tables are pending or being read.
    left: watch::Sender<usize>,
}

#[derive(Default)]
struct PendingTables {
    order: VecDeque<TableName>,
    /// The tables in `order`.
    members: HashSet<TableName>,
    /// When a table was last taken.
    checked: HashMap<TableName, Instant>,
}

impl ProfileQueue {
    pub(crate) fn new() -> Self {
        Self { pending: Mutex::default(), pushed: Notify::new(), hurry: Notify::new(), left: watch::Sender::new(0) }
    }

    /// Adds a table whose rows have changed.
    pub(crate) fn push_changed(&self, table: TableName) {
        self.push(vec![table], false);
    }

    /// Adds tables that somebody looks at, unless they were taken a short while ago.
    pub(crate) fn push_unchecked(&self, tables: Vec<TableName>) {
        self.push(tables, true);
    }

    /// Waits until nothing is pending or being read, at most `time`.
    pub(crate) async fn wait_until_empty(&self, time: Duration) {
        let mut left = self.left.subscribe();
        if *left.borrow() == 0 {
            return;
        }
        self.hurry.notify_one();
        // Running out of time is no error: a pending table is profiled when it is looked at the next time.
        let _ = tokio::time::timeout(time, left.wait_for(|left| *left == 0)).await;
    }

    /// Waits until a table is pushed, and then a moment longer for the writes that follow it, unless somebody waits.
    pub(crate) async fn pushed(&self) {
        self.pushed.notified().await;
        tokio::select! {
            () = tokio::time::sleep(SETTLING_TIME) => {}
            () = self.hurry.notified() => {}
        }
    }

    /// Returns the table that is pending for longest. It counts as being read until [`ProfileQueue::done`].
    pub(crate) fn pop(&self) -> Option<TableName> {
        let mut pending = self.pending.lock();
        let table = pending.order.pop_front()?;
        pending.members.remove(&table);
        if pending.checked.len() >= MAX_PENDING {
            pending.checked.clear();
        }
        pending.checked.insert(table.clone(), Instant::now());
        Some(table)
    }

    /// Notes that a table is no longer being read.
    pub(crate) fn done(&self) {
        self.left.send_modify(|left| *left = left.saturating_sub(1));
    }

    fn push(&self, tables: Vec<TableName>, only_unchecked: bool) {
        let mut pending = self.pending.lock();
        for table in tables {
            let was_checked = pending.checked.get(&table).is_some_and(|at| at.elapsed() < CHECKS_APART);
            if (only_unchecked && was_checked) || pending.order.len() >= MAX_PENDING {
                continue;
            }
            if pending.members.insert(table.clone()) {
                pending.order.push_back(table);
                self.left.send_modify(|left| *left += 1);
            }
        }
        drop(pending);
        self.pushed.notify_one();
    }
}
