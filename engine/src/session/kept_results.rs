//! Queries that were answered before: their rows are those that are kept, and those of others are kept while they are read.
//!
//! Invariants: a query whose rows are kept was planned and authorised as any is; its rows pass the limits of whoever asks, and the
//! audit log has what they were read from.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation};
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::memory::MemoryStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::StreamExt;

use super::Session;
use super::audit::note_touched;
use crate::error::Result;
use crate::limits::Interrupt;
use crate::plan_cache::{ResultCache, ResultKey};
use crate::stream::StartedQuery;

impl Session {
    /// Begins an authorised query, of which `optimized` is what the optimizer made, where that is known, and `result` is what its rows
    /// are kept by, where they are.
    pub(super) async fn begin_query(
        &self,
        plan: LogicalPlan,
        optimized: Option<Arc<LogicalPlan>>,
        result: Option<Arc<ResultKey>>,
        schema: SchemaRef,
        memory: Arc<dyn MemoryPool>,
        interrupt: &Interrupt,
    ) -> Result<StartedQuery> {
        // Whoever executes a plan may have another limit than whoever made it.
        let result = result.filter(|key| key.plan.pushed_rows == self.pushed_rows());
        if let Some(kept) = result.as_ref().and_then(|key| self.engine.results().find(key)) {
            if self.engine.catalog().audit().is_kept() {
                match &optimized {
                    Some(optimized) => note_touched(optimized),
                    None => note_touched(&self.optimized(&plan)?),
                }
            }
            let rows = MemoryStream::try_new(kept.batches.clone(), Arc::clone(&kept.schema), None)?;
            let rows: SendableRecordBatchStream = Box::pin(rows);
            return Ok(StartedQuery { schema, rows, memory, is_all: true, is_quick: true, is_kept: true });
        }
        let mut is_quick = false;
        let rows = match optimized {
            Some(optimized) => {
                let mut state = self.engine.planning_state();
                let ready = self.physical_plan_of(&mut state, &optimized, interrupt).await?;
                is_quick = ready.reads_few_rows();
                self.execute_ready(ready, &memory, interrupt)?
            }
            None => self.execute_query_within(&self.with_row_limit(plan), &memory, interrupt).await?,
        };
        let rows = match result {
            Some(key) => kept_when_read(rows, key, Arc::clone(self.engine.results()), &memory),
            None => rows,
        };
        Ok(StartedQuery { schema, rows, memory, is_all: true, is_quick, is_kept: false })
    }
}

/// The part of a query's memory that its gathered rows may take: they do not give way to what it computes.
const GATHERED_SHARE: usize = 8;

/// The rows of a query so far, which are charged to it.
struct GatheredRows {
    batches: Vec<RecordBatch>,
    memory: MemoryReservation,
}

impl GatheredRows {
    /// Returns these rows and those of `batch`; `None` where they are more than `most` bytes or than the query's memory has room for.
    fn and(mut self, batch: &RecordBatch, most: usize) -> Option<Self> {
        let bytes = batch.get_array_memory_size();
        if self.memory.size() + bytes > most || self.memory.try_grow(bytes).is_err() {
            return None;
        }
        self.batches.push(batch.clone());
        Some(self)
    }
}

/// Returns the rows of a query, which are kept once the last one was read.
fn kept_when_read(
    rows: SendableRecordBatchStream,
    key: Arc<ResultKey>,
    cache: Arc<ResultCache>,
    memory: &Arc<dyn MemoryPool>,
) -> SendableRecordBatchStream {
    let schema = rows.schema();
    let most = match memory.memory_limit() {
        MemoryLimit::Finite(bytes) => cache.largest_bytes().min(bytes / GATHERED_SHARE),
        MemoryLimit::Infinite | MemoryLimit::Unknown => cache.largest_bytes(),
    };
    let reservation = MemoryConsumer::new("a result that is kept").register(memory);
    let gathered = Some(GatheredRows { batches: Vec::new(), memory: reservation });
    let row_schema = Arc::clone(&schema);
    let passed = futures::stream::unfold((rows, gathered), move |(mut rows, gathered)| {
        let (key, cache, schema) = (Arc::clone(&key), Arc::clone(&cache), Arc::clone(&row_schema));
        async move {
            match rows.next().await {
                Some(Ok(batch)) => {
                    let gathered = gathered.and_then(|gathered| gathered.and(&batch, most));
                    Some((Ok(batch), (rows, gathered)))
                }
                Some(Err(error)) => Some((Err(error), (rows, None))),
                None => {
                    if let Some(GatheredRows { batches, memory }) = gathered {
                        drop(memory);
                        cache.keep(key.as_ref().clone(), schema, batches);
                    }
                    None
                }
            }
        }
    });
    Box::pin(RecordBatchStreamAdapter::new(schema, passed))
}
