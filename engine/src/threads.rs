//! The threads for planning and executing queries.
//!
//! Planning and evaluating a function can take long without a point at which a task yields. On the caller's runtime that
//! would keep a server from answering, from noticing its timers and from stopping. Here it keeps one of these threads: the
//! caller's deadline is the caller's own, and other queries have the other threads.

use tokio::runtime::{Builder, Runtime};
use tokio_util::task::AbortOnDropHandle;
use tracing::Instrument;

use crate::error::{EngineError, Result};

/// Plans are walked recursively; only the part of a stack that is used takes memory.
const STACK_BYTES: usize = 64 << 20;

/// The query threads. Dropping them abandons their work.
pub(crate) struct QueryThreads {
    /// `None` only while it is dropped.
    runtime: Option<Runtime>,
}

impl QueryThreads {
    /// Starts as many threads as the machine has cores, and at least two, so that one long query leaves one for the rest.
    pub(crate) fn start() -> Result<Self> {
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        let runtime = Builder::new_multi_thread()
            .worker_threads(cores.max(2))
            .thread_name("querent-query")
            .thread_stack_size(STACK_BYTES)
            .enable_all()
            .build()
            .map_err(|error| EngineError::Internal(format!("cannot start query threads: {error}")))?;
        Ok(Self { runtime: Some(runtime) })
    }

    /// Runs `work` on these threads. Dropping the future ends it where it yields next. Errors: those of `work`, and
    /// `internal` or `value_too_large` where it panics.
    pub(crate) async fn run<T>(&self, work: impl Future<Output = Result<T>> + Send + 'static) -> Result<T>
    where
        T: Send + 'static,
    {
        match self.spawn(work)?.await {
            Ok(outcome) => outcome,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => Err(EngineError::from_panic(panic.as_ref())),
                Err(_) => Err(closed()),
            },
        }
    }

    /// Runs `work` on these threads, until the handle is dropped.
    pub(crate) fn spawn<T>(&self, work: impl Future<Output = T> + Send + 'static) -> Result<AbortOnDropHandle<T>>
    where
        T: Send + 'static,
    {
        let runtime = self.runtime.as_ref().ok_or_else(closed)?;
        Ok(AbortOnDropHandle::new(runtime.spawn(work.in_current_span())))
    }
}

fn closed() -> EngineError {
    EngineError::Internal("the engine is closed".into())
}

impl Drop for QueryThreads {
    fn drop(&mut self) {
        // An engine is mostly dropped in async code, where waiting for threads is not allowed.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
