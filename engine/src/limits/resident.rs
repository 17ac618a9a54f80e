//! The memory that the process has taken from the machine. Pools count what operators say that they take; kernels and
//! functions take more, and what they take is only seen from outside. A thread looks at it while queries run, and beyond the
//! limit it ends the query that holds most, until what is left fits.

use std::cmp::Reverse;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Weak};
use std::time::{Duration, Instant};

use chrono::{TimeDelta, Utc};
use parking_lot::{Condvar, Mutex};
use querent_catalog::{DatabaseScope, Principal, Role};

use super::kept_memory::KeptMemory;
use super::usage::QueryUsage;
use crate::error::EngineError;

/// How often the process is looked at.
const INTERVAL: Duration = Duration::from_millis(5);
/// How long a query that was ended gets to give its memory back before the next one is ended.
const PATIENCE: Duration = Duration::from_millis(250);
/// Calls that need less than this are not asked about.
const SMALL_BYTES: usize = 4 << 20;
/// The share of the limit at which queries are ended, in percent: what they take until they notice fits into the rest.
const EVICTION_PERCENT: usize = 92;
/// While a query that was ended has yet to give its memory back, those that hold less of the limit than one part in so many
/// are left alone: what they hold is not what is missing.
const SMALL_SHARE: usize = 64;
/// For how long they are: what a query takes may be what nobody counts.
const UNCOUNTED: TimeDelta = TimeDelta::seconds(2);
/// The share of the limit that the column cache gives back at once where it is reached, in percent.
const GIVEN_BACK_PERCENT: usize = 10;
/// The share that is left to what no call announces, in percent.
const ADMISSION_PERCENT: usize = 85;
/// What the process may take of the memory of queries before cached columns give way to what nobody counts, in percent.
const KEPT_PERCENT: usize = 112;
/// Beside less than this, what the process takes by itself (indexes, models) is no small part, and nothing gives way to it.
const LARGE_POOL: usize = 1 << 30;

/// The resident bytes of the process, as last seen.
static RESIDENT: AtomicUsize = AtomicUsize::new(0);
/// What calls that are running may still take.
static ANNOUNCED: AtomicUsize = AtomicUsize::new(0);
static WATCH: LazyLock<Watch> = LazyLock::new(Watch::default);

/// The limit of one engine's queries.
#[derive(Debug)]
pub(crate) struct ResidentLimit {
    bytes: usize,
    /// Beyond it what is kept gives way, though no query has to end.
    kept_bytes: usize,
    /// The engine's data folder.
    data_dir: PathBuf,
    /// Gives way before a query does.
    kept: Arc<KeptMemory>,
}

#[derive(Default)]
struct Watch {
    queries: Mutex<Vec<Weak<QueryUsage>>>,
    arrived: Condvar,
    is_running: AtomicBool,
}

impl ResidentLimit {
    /// At most `bytes` for the whole process, of which queries may count `query_bytes`; `data_dir` tells the queries of one
    /// engine from those of others.
    pub(crate) fn new(bytes: usize, query_bytes: usize, data_dir: &Path, kept: Arc<KeptMemory>) -> Arc<Self> {
        let kept_bytes = if query_bytes < LARGE_POOL { usize::MAX } else { query_bytes / 100 * KEPT_PERCENT };
        Arc::new(Self { bytes, kept_bytes, data_dir: data_dir.to_owned(), kept })
    }

    /// Watches a query for as long as it lasts.
    pub(super) fn watch(&self, usage: &Arc<QueryUsage>) {
        let watch = &*WATCH;
        watch.queries.lock().push(Arc::downgrade(usage));
        watch.arrived.notify_one();
        if !watch.is_running.swap(true, Ordering::AcqRel) {
            let started = std::thread::Builder::new().name("querent-memory".into()).spawn(|| WATCH.run());
            if let Err(error) = started {
                // The next query tries again.
                watch.is_running.store(false, Ordering::Release);
                tracing::warn!(%error, "resident memory is not watched");
            }
        }
    }

    /// Asks for `bytes`. Errors: `memory_exceeded` where the process has no room for them.
    pub(super) fn admit(&self, bytes: usize) -> Result<(), EngineError> {
        if bytes < SMALL_BYTES {
            return Ok(());
        }
        let taken = RESIDENT.load(Ordering::Relaxed).saturating_add(ANNOUNCED.load(Ordering::Relaxed));
        let excess = taken.saturating_add(bytes).saturating_sub(self.bytes / 100 * ADMISSION_PERCENT);
        if excess > 0 && self.kept.give_way(excess) < excess {
            return Err(EngineError::ServerMemory {
                detail: format!("a value or batch of up to {} MiB was refused, where {}", bytes >> 20, self.state()),
            });
        }
        Ok(())
    }

    /// What one operator may gather in one batch.
    pub(super) fn gathered_bytes(&self) -> usize {
        self.bytes / 4
    }

    pub(super) fn exceeded_detail(&self) -> String {
        format!("{}, of which this query held most", self.state())
    }

    fn state(&self) -> String {
        format!("the process has {} of {} MiB", RESIDENT.load(Ordering::Relaxed) >> 20, self.bytes >> 20)
    }

    fn is_reached(&self) -> bool {
        RESIDENT.load(Ordering::Relaxed) > self.bytes / 100 * EVICTION_PERCENT
    }

    /// Lets go of what is kept, as much as the process has beyond what queries may count. Returns whether anything was.
    fn let_go(&self) -> bool {
        let excess = RESIDENT.load(Ordering::Relaxed).saturating_sub(self.kept_bytes);
        excess > 0 && self.kept.give_way(excess) > 0
    }
}

/// Returns the queries of the engine on a data folder that `who` may see: an administrator of all databases all of them, others
/// their own, but not those of a token of theirs that reads more, whose texts may name what is hidden.
pub(crate) fn running_queries(data_dir: &Path, who: &Principal) -> Vec<Arc<QueryUsage>> {
    let queries: Vec<_> = WATCH.queries.lock().iter().filter_map(Weak::upgrade).collect();
    let sees_all = who.role() == Role::Admin && *who.scope() == DatabaseScope::All;
    let may_see = |query: &Arc<QueryUsage>| {
        let caller = query.label().caller.as_ref();
        let is_seen = sees_all || caller.is_some_and(|caller| who.is_same_with_as_much(caller));
        is_seen && query.limit().data_dir == data_dir
    };
    queries.into_iter().filter(may_see).collect()
}

/// Bytes that a call may take; they count until it has ended.
#[derive(Debug)]
pub(crate) struct Announced(usize);

impl Announced {
    pub(crate) fn new(bytes: usize) -> Self {
        ANNOUNCED.fetch_add(bytes, Ordering::Relaxed);
        Self(bytes)
    }
}

impl Drop for Announced {
    fn drop(&mut self) {
        ANNOUNCED.fetch_sub(self.0, Ordering::Relaxed);
    }
}

impl Watch {
    fn run(&self) {
        let (mut evicted_at, mut let_go_at): (Option<Instant>, Option<Instant>) = (None, None);
        let mut statm = None;
        loop {
            let queries = self.running();
            // Where there is no answer, as for want of a file handle, the last one holds: a watch that ended would miss what is next.
            if let Some(bytes) = resident_bytes(&mut statm) {
                RESIDENT.store(bytes, Ordering::Relaxed);
            }
            let mut limits = queries.iter().map(|query| query.limit()).filter(|limit| limit.is_reached());
            if limits.any(|limit| limit.kept.give_way(limit.bytes / 100 * GIVEN_BACK_PERCENT) > 0) {
                evicted_at = Some(Instant::now());
            }
            // What is let go takes a while to be the machine's again.
            let has_waited = let_go_at.is_none_or(|at| at.elapsed() >= PATIENCE);
            if has_waited && queries.iter().any(|query| query.limit().let_go()) {
                let_go_at = Some(Instant::now());
            }
            let is_patient = evicted_at.is_some_and(|at| at.elapsed() < PATIENCE);
            if !is_patient && let Some(largest) = query_to_end(&queries) {
                tracing::warn!(
                    resident_bytes = RESIDENT.load(Ordering::Relaxed),
                    held_bytes = largest.held_bytes(),
                    "a query is ended because the process has reached its memory limit"
                );
                largest.evict();
                evicted_at = Some(Instant::now());
            }
            drop(queries);
            std::thread::sleep(INTERVAL);
        }
    }

    /// Waits until there are queries, and returns them.
    fn running(&self) -> Vec<Arc<QueryUsage>> {
        let mut queries = self.queries.lock();
        loop {
            queries.retain(|query| query.strong_count() > 0);
            let running: Vec<_> = queries.iter().filter_map(Weak::upgrade).collect();
            if !running.is_empty() {
                return running;
            }
            self.arrived.wait(&mut queries);
        }
    }
}

/// Returns the query that holds most of those beyond their limit, of equal ones the oldest.
fn query_to_end(queries: &[Arc<QueryUsage>]) -> Option<&Arc<QueryUsage>> {
    let is_awaited = queries.iter().any(|query| query.is_evicted());
    let may_be_ended = |query: &Arc<QueryUsage>| {
        let is_large = query.held_bytes() >= query.limit().bytes / SMALL_SHARE;
        is_large || !is_awaited || Utc::now() - query.started_at() >= UNCOUNTED
    };
    let candidates = queries.iter().filter(|query| query.limit().is_reached() && !query.is_evicted());
    candidates.filter(|query| may_be_ended(query)).max_by_key(|query| (query.held_bytes(), Reverse(query.started_at())))
}

/// Returns the resident bytes of this process; `None` where the system does not say. The file that tells them stays open in
/// `statm`: it is written anew each time that it is read from its beginning.
pub(crate) fn resident_bytes(statm: &mut Option<File>) -> Option<usize> {
    if statm.is_none() {
        #[expect(clippy::disallowed_methods, reason = "a thread of its own reads what is no file on a disk")]
        let opened = File::open("/proc/self/statm").ok();
        *statm = opened;
    }
    // Seven numbers.
    let mut text = [0; 256];
    let length = statm.as_ref()?.read_at(&mut text, 0).ok()?;
    let text = std::str::from_utf8(text.get(..length)?).ok()?;
    let pages: usize = text.split(' ').nth(1)?.parse().ok()?;
    Some(pages * page_bytes())
}

/// Returns the bytes of a page of memory, which are more than 4096 on some machines.
fn page_bytes() -> usize {
    static BYTES: LazyLock<usize> = LazyLock::new(|| {
        #[expect(unsafe_code, reason = "a question about this machine")]
        let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        usize::try_from(bytes).unwrap_or(4_096)
    });
    *BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_process_says_what_it_takes() {
        let mut statm = None;
        for _ in 0..2 {
            assert!(resident_bytes(&mut statm).is_some_and(|bytes| bytes > 1 << 20));
        }
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test reads what is no file on a disk")]
    fn pages_are_those_of_the_machine() {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        let kilobytes: usize = line.split_whitespace().nth(1).unwrap().parse().unwrap();
        let seen = resident_bytes(&mut None).unwrap();
        // Other tests of the process take and give back while both are read.
        assert!((kilobytes << 9..kilobytes << 11).contains(&seen), "{seen} bytes, {kilobytes} kB");
    }
}
