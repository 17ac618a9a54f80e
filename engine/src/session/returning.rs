//! Statements with RETURNING: the rows that one wrote are kept in the query's memory, and what it answers with is read from them
//! once they are committed.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::datasource::MemTable;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::memory_pool::MemoryPool;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::StreamExt;
use parking_lot::Mutex;

use super::Session;
use super::apply_write::apply_write;
use crate::error::Result;
use crate::limits::{Interrupt, PlanningMemory, batch_bytes};
use crate::sql::returning::over_returned;
use crate::sql::write_statement::WriteStatement;
use crate::tables::managed;

/// The rows that a statement writes.
pub(super) struct WrittenRows {
    schema: SchemaRef,
    batches: Mutex<Vec<RecordBatch>>,
    memory: PlanningMemory,
}

impl WrittenRows {
    /// Keeps rows. Errors: `memory_exceeded`.
    pub(super) fn keep(&self, batch: &RecordBatch) -> Result<()> {
        let batch = managed::cast_batch(batch, &self.schema)?;
        self.memory.keep(batch_bytes(&batch))?;
        self.batches.lock().push(batch);
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
        memory: PlanningMemory::in_pool(Arc::clone(memory)),
    });
    apply_write(session, statement, Some(&written), interrupt).await?;
    let rows = MemTable::try_new(Arc::clone(schema), vec![std::mem::take(&mut *written.batches.lock())])?;
    let answer = session.execute_query_within(&over_returned(returning, rows)?, memory, interrupt).await?;
    let schema = answer.schema();
    let answer = answer.inspect(move |_| {
        let _held = &written;
    });
    Ok(Box::pin(RecordBatchStreamAdapter::new(schema, answer)))
}
