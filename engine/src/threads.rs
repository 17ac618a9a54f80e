//! The threads for planning and executing queries.
//!
//! Planning and evaluating a function can take long without a point at which a task yields. On the caller's runtime that
//! would keep a server from answering, from noticing its timers and from stopping. Here each query that runs has a lane,
//! which is a few threads of its own: the processor is shared among lanes by the operating system, which asks nobody to
//! yield. A lane is used again when the last task of its query has ended, however long it goes on after its caller left.
//! Lanes stay: connections to object stores and other servers are driven by the lane that opened them, for all of them.
//! Its threads come after those that answer requests ([`crate::thread_priority`]).

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use parking_lot::Mutex;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::JoinError;
use tokio_util::task::AbortOnDropHandle;
use tracing::Instrument;

use crate::error::{EngineError, Result};
use crate::thread_priority::lower_this_thread;

/// Plans are walked recursively; only the part of a stack that is used takes memory.
const STACK_BYTES: usize = 64 << 20;
/// The most lanes; beyond, queries share them.
const MAX_LANES: usize = 32;
/// The most threads of all lanes where there are more than [`LEAST_LANES`].
const MAX_THREADS: usize = 512;
const LEAST_LANES: usize = 8;
/// The threads that read and write files for a query, beside those of its lane.
const FILE_THREADS: usize = 4;
/// Enough for a thread that waits.
const PROBE_STACK_BYTES: usize = 64 << 10;

/// The query threads. Dropping them abandons their work.
pub(crate) struct QueryThreads {
    lanes: Mutex<Vec<LaneThreads>>,
    workers: usize,
    most_lanes: usize,
    /// How many queries have the threads to run beside each other; `None` where nothing bounds them.
    capacity: Option<usize>,
    has_warned: AtomicBool,
}

struct LaneThreads {
    runtime: Runtime,
    /// Held by everything that the lane does for the query that has it.
    token: Arc<LaneToken>,
}

#[derive(Debug)]
struct LaneToken;

/// The threads of one query.
#[derive(Debug, Clone)]
pub(crate) struct Lane {
    handle: Handle,
    token: Arc<LaneToken>,
}

impl QueryThreads {
    /// Starts the first lane. A lane has as many threads as the machine has cores, and at least two, so that one long
    /// function leaves one for the rest of its query. Of the threads that the process may have beyond those that there are,
    /// `left`, lanes take half: files are read by others. Errors: `too_many_requests` where there are none even for one.
    pub(crate) fn start(left: Option<usize>) -> Result<Self> {
        let workers = thread::available_parallelism().map_or(2, usize::from).max(2);
        if let Some(left) = left.filter(|left| left / 2 < workers + FILE_THREADS) {
            tracing::warn!(
                threads_left = left,
                "this process may start hardly any more threads, too few to serve: raise the limit of its control group \
                 (`pids.max`, `TasksMax=`) or its user (`ulimit -u`)"
            );
        }
        let first = LaneThreads::start(workers)?;
        Ok(Self {
            lanes: Mutex::new(vec![first]),
            workers,
            most_lanes: most_lanes(left, workers),
            capacity: capacity(left),
            has_warned: AtomicBool::new(false),
        })
    }

    /// Returns how many queries have the threads to run beside each other; `None` where nothing bounds them.
    pub(crate) fn capacity(&self) -> Option<usize> {
        self.capacity
    }

    /// Returns a lane that nobody uses, or the one that the fewest tasks use where there is none.
    pub(crate) fn lane(&self) -> Result<Lane> {
        let mut lanes = self.lanes.lock();
        if let Some(free) = lanes.iter_mut().find(|lane| lane.users() == 0) {
            return Ok(free.lease());
        }
        if lanes.len() < self.most_lanes {
            match LaneThreads::start(self.workers) {
                Ok(mut lane) => {
                    let taken = lane.lease();
                    lanes.push(lane);
                    return Ok(taken);
                }
                Err(error) => {
                    if !self.has_warned.swap(true, Ordering::Relaxed) {
                        tracing::warn!(%error, lanes = lanes.len(), "queries share their threads");
                    }
                }
            }
        }
        lanes.iter().min_by_key(|lane| lane.users()).map(LaneThreads::lane).ok_or_else(Lane::closed)
    }

    /// Runs `work` on a lane: see [`Lane::run`].
    pub(crate) async fn run<T>(&self, work: impl Future<Output = Result<T>> + Send + 'static) -> Result<T>
    where
        T: Send + 'static,
    {
        self.lane()?.run(work).await
    }
}

impl LaneThreads {
    fn start(workers: usize) -> Result<Self> {
        if !can_start(workers) {
            return Err(EngineError::ServerThreads { detail: format!("{workers} threads of a query do not start") });
        }
        let build = || {
            Builder::new_multi_thread()
                .worker_threads(workers)
                .thread_name("querent-query")
                .thread_stack_size(STACK_BYTES)
                .on_thread_start(lower_this_thread)
                .enable_all()
                .build()
        };
        // Others may have taken the last threads meanwhile.
        let runtime = catch_unwind(AssertUnwindSafe(build))
            .map_err(|panic| EngineError::from_panic(panic.as_ref()))?
            .map_err(|error| EngineError::Internal(format!("cannot start query threads: {error}")))?;
        Ok(Self { runtime, token: Arc::new(LaneToken) })
    }

    /// Gives the lane, which nobody uses, to a query.
    fn lease(&mut self) -> Lane {
        self.token = Arc::new(LaneToken);
        self.lane()
    }

    fn users(&self) -> usize {
        Arc::strong_count(&self.token) - 1
    }

    fn lane(&self) -> Lane {
        Lane { handle: self.runtime.handle().clone(), token: Arc::clone(&self.token) }
    }
}

impl Lane {
    /// Runs `work` on these threads. Dropping the future ends it where it yields next. Errors: those of `work`, and
    /// `internal` or `value_too_large` where it panics.
    pub(crate) async fn run<T>(&self, work: impl Future<Output = Result<T>> + Send + 'static) -> Result<T>
    where
        T: Send + 'static,
    {
        self.spawn(work).await.unwrap_or_else(|ended| Err(Self::failure(ended)))
    }

    /// Returns why a task of these threads has no outcome: it panicked, or the engine is closed.
    pub(crate) fn failure(ended: JoinError) -> EngineError {
        match ended.try_into_panic() {
            Ok(panic) => EngineError::from_panic(panic.as_ref()),
            Err(_) => Self::closed(),
        }
    }

    /// Returns the error of work that is not done because the engine is closed.
    pub(crate) fn closed() -> EngineError {
        EngineError::Internal("the engine is closed".into())
    }

    /// Runs `work` on these threads, until the handle is dropped.
    pub(crate) fn spawn<T>(&self, work: impl Future<Output = T> + Send + 'static) -> AbortOnDropHandle<T>
    where
        T: Send + 'static,
    {
        let token = Arc::clone(&self.token);
        let work = async move {
            let _token = token;
            work.await
        };
        AbortOnDropHandle::new(self.handle.spawn(work.in_current_span()))
    }

    /// Returns what keeps the lane from being used for another query.
    pub(crate) fn token(&self) -> Arc<dyn Any + Send + Sync> {
        let token: Arc<LaneToken> = Arc::clone(&self.token);
        token
    }
}

impl Drop for QueryThreads {
    fn drop(&mut self) {
        // An engine is mostly dropped in async code, where waiting for threads is not allowed.
        for lane in self.lanes.get_mut().drain(..) {
            lane.runtime.shutdown_background();
        }
    }
}

/// Returns how many lanes there may be, of so many threads each.
fn most_lanes(left: Option<usize>, workers: usize) -> usize {
    let most = (MAX_THREADS / workers).clamp(LEAST_LANES, MAX_LANES);
    left.map_or(most, |left| most.min(left / 2 / workers).max(1))
}

/// Returns how many queries have threads for their files in the half that is not the lanes'.
fn capacity(left: Option<usize>) -> Option<usize> {
    left.map(|left| (left / 2 / FILE_THREADS).max(1))
}

/// Returns whether the operating system lets this process have `count` threads more. A runtime panics where it does not.
fn can_start(count: usize) -> bool {
    let gate = Mutex::new(());
    let closed = gate.lock();
    thread::scope(|scope| {
        let gate = &gate;
        let builder = || thread::Builder::new().stack_size(PROBE_STACK_BYTES);
        let have_started = (0..count).all(|_| builder().spawn_scoped(scope, move || drop(gate.lock())).is_ok());
        drop(closed);
        have_started
    })
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "each test has a runtime of its own")]
mod tests {
    use super::*;

    #[test]
    fn lanes_and_queries_keep_to_the_threads_that_are_left() {
        assert_eq!((most_lanes(None, 2), capacity(None)), (MAX_LANES, None));
        assert_eq!((most_lanes(None, 256), capacity(None)), (LEAST_LANES, None));
        assert_eq!((most_lanes(Some(48), 2), capacity(Some(48))), (12, Some(6)));
        assert_eq!((most_lanes(Some(1_000), 16), capacity(Some(1_000))), (31, Some(125)));
        assert_eq!((most_lanes(Some(3), 16), capacity(Some(3))), (1, Some(1)));
    }

    #[test]
    fn a_panic_for_want_of_threads_is_an_error_that_says_what_to_do() {
        let panic = "OS can't spawn worker thread: Resource temporarily unavailable (os error 11)".to_owned();
        let error = EngineError::from_panic(&panic);
        assert_eq!(error.code(), "too_many_requests");
        assert!(error.to_string().ends_with("Resource temporarily unavailable (os error 11)"), "{error}");
        assert!(error.hint().is_some_and(|hint| hint.contains("pids.max")));
        assert!(EngineError::no_threads("index out of bounds").is_none());
    }

    #[tokio::test]
    async fn queries_share_the_threads_of_a_process_that_may_have_few() {
        let threads = QueryThreads::start(Some(8)).unwrap();
        assert!(can_start(2));
        let (first, second) = (threads.lane().unwrap(), threads.lane().unwrap());
        assert_eq!(threads.lanes.lock().len(), 8 / 2 / threads.workers.clamp(2, 4));
        assert_eq!(second.run(async { Ok(2) }).await.unwrap(), 2);
        drop(first);
    }
}
