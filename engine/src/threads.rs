//! The threads for planning and executing queries.
//!
//! Planning and evaluating a function can take long without a point at which a task yields. On the caller's runtime that
//! would keep a server from answering, from noticing its timers and from stopping. Here each query that runs has a lane,
//! which is a few threads of its own: the processor is shared among lanes by the operating system, which asks nobody to
//! yield. A lane is used again when the last task of its query has ended, however long it goes on after its caller left.
//! Its threads come after those that answer requests ([`crate::thread_priority`]).

use std::any::Any;
use std::sync::Arc;

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

/// The query threads. Dropping them abandons their work.
pub(crate) struct QueryThreads {
    lanes: Mutex<Vec<LaneThreads>>,
    workers: usize,
    most_lanes: usize,
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
    /// function leaves one for the rest of its query.
    pub(crate) fn start() -> Result<Self> {
        let workers = std::thread::available_parallelism().map_or(2, usize::from).max(2);
        let most_lanes = (MAX_THREADS / workers).clamp(LEAST_LANES, MAX_LANES);
        let first = LaneThreads::start(workers)?;
        Ok(Self { lanes: Mutex::new(vec![first]), workers, most_lanes })
    }

    /// Returns a lane that nobody uses, or the one that the fewest tasks use where there is none.
    pub(crate) fn lane(&self) -> Result<Lane> {
        let mut lanes = self.lanes.lock();
        if let Some(free) = lanes.iter_mut().find(|lane| lane.users() == 0) {
            return Ok(free.lease());
        }
        if lanes.len() < self.most_lanes {
            let mut lane = LaneThreads::start(self.workers)?;
            let taken = lane.lease();
            lanes.push(lane);
            return Ok(taken);
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
        let runtime = Builder::new_multi_thread()
            .worker_threads(workers)
            .thread_name("querent-query")
            .thread_stack_size(STACK_BYTES)
            .on_thread_start(lower_this_thread)
            .enable_all()
            .build()
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
