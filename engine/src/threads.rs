//! The threads for planning and executing queries.
//!
//! Planning and evaluating a function can take long without a point at which a task yields. On the caller's runtime that
//! would keep a server from answering, from noticing its timers and from stopping. Here it keeps one of these threads: the
//! caller's deadline is the caller's own, and other queries have the other threads.

use std::panic::resume_unwind;

use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchReceiverStreamBuilder;
use futures::StreamExt;
use tokio::runtime::{Builder, Runtime};
use tokio_util::task::AbortOnDropHandle;
use tracing::Instrument;

use crate::error::{EngineError, Result};

/// Plans are walked recursively; only the part of a stack that is used takes memory.
const STACK_BYTES: usize = 64 << 20;
/// Batches between a query and its reader.
const BATCHES_AHEAD: usize = 2;

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

    /// Runs `work` on these threads. Dropping the future ends it where it yields next.
    pub(crate) async fn run<T>(&self, work: impl Future<Output = Result<T>> + Send + 'static) -> Result<T>
    where
        T: Send + 'static,
    {
        let work = AbortOnDropHandle::new(self.runtime()?.spawn(work.in_current_span()));
        match work.await {
            Ok(outcome) => outcome,
            // A panic continues in the task that waits for the work.
            Err(error) => match error.try_into_panic() {
                Ok(panic) => resume_unwind(panic),
                Err(_) => Err(closed()),
            },
        }
    }

    /// Returns the stream, read on these threads a few batches ahead of its reader.
    pub(crate) fn stream(&self, mut input: SendableRecordBatchStream) -> Result<SendableRecordBatchStream> {
        let mut reading = RecordBatchReceiverStreamBuilder::new(input.schema(), BATCHES_AHEAD);
        let sender = reading.tx();
        let read = async move {
            while let Some(batch) = input.next().await {
                if sender.send(batch).await.is_err() {
                    break;
                }
            }
            Ok(())
        };
        reading.spawn_on(read.in_current_span(), self.runtime()?.handle());
        Ok(reading.build())
    }

    fn runtime(&self) -> Result<&Runtime> {
        self.runtime.as_ref().ok_or_else(closed)
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
