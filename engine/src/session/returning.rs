//! Statements with RETURNING: the rows that one writes are kept in the query's memory, and what it answers with is read from them
//! before they are committed, so that a statement whose answer fails changes nothing.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::datasource::MemTable;
use datafusion::error::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::memory_pool::MemoryPool;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::{StreamExt, stream};
use parking_lot::Mutex;

use super::Session;
use super::apply_write::apply_write;
use crate::error::{EngineError, Result};
use crate::limits::{Interrupt, PlanningMemory, batch_bytes};
use crate::sql::returning::over_returned;
use crate::sql::write_statement::WriteStatement;
use crate::tables::managed;

/// The rows that a statement writes, and what it answers with.
pub(super) struct WrittenRows {
    schema: SchemaRef,
    batches: Mutex<Vec<RecordBatch>>,
    memory: Mutex<PlanningMemory>,
    pool: Arc<dyn MemoryPool>,
    session: Session,
    interrupt: Interrupt,
    /// The query behind RETURNING.
    returning: LogicalPlan,
    answer: Mutex<Option<(SchemaRef, Vec<RecordBatch>)>>,
}

impl WrittenRows {
    /// Keeps rows. Errors: `memory_exceeded`.
    pub(super) fn keep(&self, batch: &RecordBatch) -> Result<()> {
        let batch = managed::cast_batch(batch, &self.schema)?;
        self.memory.lock().keep(batch_bytes(&batch))?;
        self.batches.lock().push(batch);
        Ok(())
    }

    /// Makes the answer, once all rows are kept and before they are committed. Errors: those of the query behind RETURNING.
    pub(super) async fn make_answer(&self) -> Result<()> {
        let rows = std::mem::take(&mut *self.batches.lock());
        let rows = MemTable::try_new(Arc::clone(&self.schema), vec![rows])?;
        let query = over_returned(&self.returning, rows)?;
        let answer = self.session.execute_query_within(&query, &self.pool, &self.interrupt);
        let mut answer = Box::pin(answer).await?;
        let (memory, mut batches) = (PlanningMemory::in_pool(Arc::clone(&self.pool)), Vec::new());
        while let Some(batch) = answer.next().await {
            let batch = batch?;
            memory.keep(batch_bytes(&batch))?;
            batches.push(batch);
        }
        *self.answer.lock() = Some((answer.schema(), batches));
        // The rows themselves are gone with the query over them.
        drop(answer);
        *self.memory.lock() = memory;
        Ok(())
    }
}

/// Returns the stream, whose rows are kept as they are written: in the types and the spelling of `target`.
pub(super) fn noted(
    rows: SendableRecordBatchStream,
    target: &SchemaRef,
    written: Option<&Arc<WrittenRows>>,
) -> SendableRecordBatchStream {
    let target = Arc::clone(target);
    let Some(written) = written.map(Arc::clone) else { return rows };
    let schema = rows.schema();
    let rows = rows.map(move |batch| {
        let batch = batch?;
        written.keep(&managed::cast_batch(&batch, &target)?)?;
        Ok(batch)
    });
    Box::pin(RecordBatchStreamAdapter::new(schema, rows))
}

/// Returns the stream of the rows that a statement writes, at whose end its answer is made: where that fails, the rows do, and none
/// of them is committed.
pub(super) fn answered(
    rows: SendableRecordBatchStream,
    written: Option<&Arc<WrittenRows>>,
) -> SendableRecordBatchStream {
    let Some(written) = written.map(Arc::clone) else { return rows };
    let schema = rows.schema();
    let answer = stream::once(async move { written.make_answer().await });
    let failure = answer.filter_map(|made| {
        let failure = made.err().map(|error| Err::<RecordBatch, _>(DataFusionError::from(error)));
        std::future::ready(failure)
    });
    Box::pin(RecordBatchStreamAdapter::new(schema, rows.chain(failure)))
}

/// Applies a statement, and returns what a query says of the rows that it wrote.
pub(super) async fn returned(
    session: &Session,
    statement: WriteStatement,
    schema: &SchemaRef,
    returning: &LogicalPlan,
    memory: &Arc<dyn MemoryPool>,
    interrupt: &Interrupt,
) -> Result<SendableRecordBatchStream> {
    let written = Arc::new(WrittenRows {
        schema: Arc::clone(schema),
        batches: Mutex::default(),
        memory: Mutex::new(PlanningMemory::in_pool(Arc::clone(memory))),
        pool: Arc::clone(memory),
        session: session.clone(),
        interrupt: interrupt.clone(),
        returning: returning.clone(),
        answer: Mutex::default(),
    });
    apply_write(session, statement, Some(&written), interrupt).await?;
    let answer = written.answer.lock().take();
    let Some((schema, batches)) = answer else {
        return Err(EngineError::Internal("a statement with RETURNING has no answer".into()));
    };
    let answer = stream::iter(batches).map(Ok::<_, DataFusionError>).inspect(move |_| {
        let _held = &written;
    });
    Ok(Box::pin(RecordBatchStreamAdapter::new(schema, answer)))
}
