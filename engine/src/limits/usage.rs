//! The query that a thread works for. Functions, casts and optimizer rules are called by DataFusion without a word about the
//! query that they belong to; here they find its interrupt, its memory and the meter of the batch that they evaluate.
//!
//! A future enters its query whenever it is polled, and what DataFusion spawns while it is polled belongs to the same query.

use std::any::Any;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

use chrono::{DateTime, Utc};
use datafusion::common::runtime::{JoinSetTracer, set_join_set_tracer};
use datafusion::error::Result;
use datafusion::execution::memory_pool::MemoryPool;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use querent_catalog::Principal;

use super::clock::{QueryClock, QueryEnd};
use super::interrupt::Interrupt;
use super::resident::ResidentLimit;
use crate::error::{EngineError, FilePlace};

thread_local! {
    static CURRENT: RefCell<Option<Arc<QueryUsage>>> = const { RefCell::new(None) };
    static METER: RefCell<Option<Arc<AtomicUsize>>> = const { RefCell::new(None) };
}

/// The number of the last query of this process.
static LAST_ID: AtomicU64 = AtomicU64::new(0);

/// Whose query it is, and what it says.
#[derive(Debug, Clone, Default)]
pub(crate) struct QueryLabel {
    pub(crate) subject: String,
    /// `None` for a part of another server's query.
    pub(crate) caller: Option<Principal>,
    pub(crate) database: String,
    /// Its text, or a part of it.
    pub(crate) text: String,
    /// The name that its client gave the request.
    pub(crate) request_id: Option<Arc<str>>,
}

/// What one query reads and writes, for the audit log.
#[derive(Debug, Clone, Default)]
pub(crate) struct TouchedTables {
    pub(crate) tables: BTreeSet<String>,
    pub(crate) columns: BTreeSet<String>,
    pub(crate) written: Option<String>,
    pub(crate) policies: BTreeSet<String>,
}

/// What one query uses while it is planned and executed.
pub(crate) struct QueryUsage {
    id: u64,
    label: QueryLabel,
    started_at: DateTime<Utc>,
    interrupt: Interrupt,
    resident: Arc<ResidentLimit>,
    /// The pools of its operators; more than one where it plans with rows.
    pools: Mutex<Vec<Weak<dyn MemoryPool>>>,
    /// The bytes of values that functions made last, which no pool knows.
    made: AtomicUsize,
    touched: Arc<Mutex<TouchedTables>>,
    /// Where the files lie that it reads.
    places: Arc<Mutex<Vec<FilePlace>>>,
    /// Tells that its threads are in use, for as long as any task of the query is.
    _lane: Arc<dyn Any + Send + Sync>,
}

impl QueryUsage {
    /// A query that has used nothing; `lane` is held until its last task has ended.
    pub(crate) fn new(
        label: QueryLabel,
        interrupt: Interrupt,
        resident: Arc<ResidentLimit>,
        lane: Arc<dyn Any + Send + Sync>,
    ) -> Arc<Self> {
        let usage = Arc::new(Self {
            id: LAST_ID.fetch_add(1, Ordering::Relaxed) + 1,
            label,
            started_at: Utc::now(),
            interrupt,
            resident: Arc::clone(&resident),
            pools: Mutex::new(Vec::new()),
            made: AtomicUsize::new(0),
            touched: Arc::default(),
            places: Arc::default(),
            _lane: lane,
        });
        resident.watch(&usage);
        usage
    }

    /// Returns the number by which people name the query.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    pub(crate) fn label(&self) -> &QueryLabel {
        &self.label
    }

    pub(crate) fn started_at(&self) -> DateTime<Utc> {
        self.started_at
    }

    /// Remembers what a part of the query reads and writes.
    pub(crate) fn touch(&self, more: TouchedTables) {
        let mut touched = self.touched.lock();
        touched.tables.extend(more.tables);
        touched.columns.extend(more.columns);
        touched.policies.extend(more.policies);
        touched.written = more.written.or(touched.written.take());
    }

    /// Returns where the query remembers what it reads and writes; whoever keeps it does not keep the query.
    pub(crate) fn touched(&self) -> Arc<Mutex<TouchedTables>> {
        Arc::clone(&self.touched)
    }

    /// Remembers where files lie that the query of this thread reads.
    pub(crate) fn note_place(place: FilePlace) {
        let Some(usage) = Self::current() else { return };
        let mut places = usage.places.lock();
        if !places.contains(&place) {
            places.push(place);
        }
    }

    /// Returns where the files lie that the query reads, as far as that is known.
    pub(crate) fn places(&self) -> Arc<Mutex<Vec<FilePlace>>> {
        Arc::clone(&self.places)
    }

    /// Ends the query because somebody asked for it, who may have said why.
    pub(crate) fn cancel(&self, reason: Option<&str>) {
        self.interrupt.clock().end(QueryEnd::Cancelled(reason.map(str::to_owned)));
    }

    /// Returns the query that this thread works for.
    pub(crate) fn current() -> Option<Arc<Self>> {
        CURRENT.with_borrow(Clone::clone)
    }

    /// Returns the future, which works for this query.
    pub(crate) fn scope<F: Future>(self: &Arc<Self>, work: F) -> InQuery<F> {
        InQuery { usage: Arc::clone(self), work: Box::pin(work) }
    }

    /// Returns work for a task of its own, which does it for the query that this thread works for, if any.
    pub(crate) fn followed<F: Future + Send + 'static>(work: F) -> BoxFuture<'static, F::Output> {
        match Self::current() {
            Some(usage) => Box::pin(usage.scope(work)),
            None => Box::pin(work),
        }
    }

    /// Lets the query go on for as long as it takes.
    pub(crate) fn stop_clock(&self) {
        self.interrupt.clock().stop();
    }

    /// Returns the clock of the query.
    pub(super) fn clock(&self) -> &QueryClock {
        self.interrupt.clock()
    }

    /// Lets this thread work for the query until what is returned is dropped.
    pub(super) fn enter(self: &Arc<Self>) -> Entered {
        Entered::enter(Arc::clone(self))
    }

    /// Remembers a pool of the query's operators.
    pub(crate) fn count_pool(&self, pool: &Arc<dyn MemoryPool>) {
        self.pools.lock().push(Arc::downgrade(pool));
    }

    /// Returns an error once the query of this thread has to end, as [`QueryUsage::check`]; nothing where it works for none.
    pub(crate) fn check_current() -> Result<()> {
        Self::current().map_or(Ok(()), |usage| usage.check())
    }

    /// Returns an error once the query has to end. Errors: `wall_clock_exceeded`, `memory_exceeded`.
    pub(crate) fn check(&self) -> Result<()> {
        self.interrupt.check()
    }

    /// Asks for `bytes` that no pool counts. Errors: `memory_exceeded` where the process has no room for them.
    pub(crate) fn admit(&self, bytes: usize) -> Result<(), EngineError> {
        self.resident.admit(bytes)
    }

    /// Asks for `bytes` for the query of this thread, as [`QueryUsage::admit`]; nothing where it works for none.
    pub(crate) fn admit_current(bytes: usize) -> Result<(), EngineError> {
        Self::current().map_or(Ok(()), |usage| usage.admit(bytes))
    }

    /// Returns work for another thread, which does it for the query that this one works for, if there is one.
    pub(crate) fn carried<T>(work: impl FnOnce() -> T) -> impl FnOnce() -> T {
        let usage = Self::current();
        move || {
            let _entered = usage.as_ref().map(Self::enter);
            work()
        }
    }

    /// Records the size of values that were made, for the query and for the batch in hand.
    pub(crate) fn made(&self, bytes: usize) {
        self.made.store(bytes, Ordering::Relaxed);
        METER.with_borrow(|meter| {
            if let Some(meter) = meter {
                meter.fetch_max(bytes, Ordering::Relaxed);
            }
        });
    }

    pub(super) fn limit(&self) -> &ResidentLimit {
        &self.resident
    }

    /// Returns about how many bytes the query holds.
    pub(crate) fn held_bytes(&self) -> usize {
        let pools = self.pools.lock();
        let reserved: usize = pools.iter().filter_map(Weak::upgrade).map(|pool| pool.reserved()).sum();
        reserved + self.made.load(Ordering::Relaxed)
    }

    /// Ends the query for the sake of the others.
    pub(super) fn evict(&self) {
        self.interrupt.clock().end(QueryEnd::NoMemory(self.resident.exceeded_detail()));
    }

    pub(super) fn is_evicted(&self) -> bool {
        self.interrupt.clock().is_ended()
    }
}

/// Looks whether a query has to end, from a loop over its rows.
#[derive(Debug)]
pub(crate) struct InterruptWatch {
    query: Option<Arc<QueryUsage>>,
    calls: usize,
}

impl InterruptWatch {
    /// How many calls are made between two looks at the clock.
    const CALLS: usize = 64;

    /// Watches the query that this thread works for.
    pub(crate) fn of_current_query() -> Self {
        Self { query: QueryUsage::current(), calls: 0 }
    }

    /// Returns an error once the query has to end, as [`QueryUsage::check`].
    pub(crate) fn check(&mut self) -> Result<()> {
        self.calls += 1;
        match &self.query {
            Some(query) if self.calls.is_multiple_of(Self::CALLS) => query.check(),
            Some(_) | None => Ok(()),
        }
    }
}

impl fmt::Debug for QueryUsage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueryUsage").field("held_bytes", &self.held_bytes()).finish_non_exhaustive()
    }
}

/// Lets functions record the bytes of their values in `meter` until another one takes its place on this thread.
pub(super) fn measure_with(meter: &Arc<AtomicUsize>) {
    METER.with_borrow_mut(|current| *current = Some(Arc::clone(meter)));
}

/// Does work, and returns with its result the bytes of the largest value that a function made on the way.
pub(crate) fn measured<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let meter = Arc::<AtomicUsize>::default();
    let before = METER.with_borrow_mut(|current| current.replace(Arc::clone(&meter)));
    let done = work();
    let largest = meter.load(Ordering::Relaxed);
    if let Some(before) = &before {
        before.fetch_max(largest, Ordering::Relaxed);
    }
    METER.with_borrow_mut(|current| *current = before);
    (done, largest)
}

/// A future that works for a query.
pub(crate) struct InQuery<F> {
    usage: Arc<QueryUsage>,
    work: Pin<Box<F>>,
}

impl<F: Future> Future for InQuery<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let _entered = Entered::enter(Arc::clone(&self.usage));
        self.work.as_mut().poll(cx)
    }
}

/// Puts back the query that the thread worked for before.
#[must_use]
pub(super) struct Entered(Option<Arc<QueryUsage>>);

impl Entered {
    fn enter(usage: Arc<QueryUsage>) -> Self {
        Self(CURRENT.with_borrow_mut(|current| current.replace(usage)))
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        let before = self.0.take();
        CURRENT.with_borrow_mut(|current| *current = before);
    }
}

/// Hands the query on to the tasks that DataFusion spawns, and lets KQL's functions ask whether it is to end.
pub(crate) fn follow_spawned_tasks() {
    // Another engine of this process has done it before; it is the same.
    let _ = set_join_set_tracer(&SpawnedTasks);
    querent_kql::check_interrupts_with(|| QueryUsage::current().map_or(Ok(()), |usage| usage.check()));
}

struct SpawnedTasks;

type Boxed = Box<dyn Any + Send>;

impl JoinSetTracer for SpawnedTasks {
    fn trace_future(&self, task: BoxFuture<'static, Boxed>) -> BoxFuture<'static, Boxed> {
        match QueryUsage::current() {
            Some(usage) => Box::pin(usage.scope(task)),
            None => task,
        }
    }

    fn trace_block(&self, work: Box<dyn FnOnce() -> Boxed + Send>) -> Box<dyn FnOnce() -> Boxed + Send> {
        Box::new(QueryUsage::carried(work))
    }
}
