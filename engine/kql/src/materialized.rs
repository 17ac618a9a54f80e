//! The rows of a part of a query that runs once, however often the query uses it. They are in the query's memory from
//! the first use to the query's end; where the query uses the part only once its rows are streamed and not kept.
//!
//! Only the planner makes one, of what its host planned or of rows that its host gave. A host that judges that need not
//! judge what reads the rows.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{Session as PlanningSession, TableProvider};
use datafusion::common::Result;
use datafusion::error::DataFusionError;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use futures::future::{BoxFuture, FutureExt, Shared};
use futures::{StreamExt, TryFutureExt, stream};
use parking_lot::Mutex;

/// A table of the rows of a part of a query.
#[derive(Debug)]
pub struct Materialized {
    rows: Arc<MaterializedRows>,
    is_over_literals: bool,
}

impl Materialized {
    /// The rows of a part that the host planned and did not run yet, and whether they are those of the query's text.
    pub(crate) fn new(physical: Arc<dyn ExecutionPlan>, is_over_literals: bool) -> Self {
        let rows = MaterializedRows {
            physical,
            uses: AtomicUsize::new(0),
            is_all_known: AtomicBool::new(false),
            running: Mutex::new(None),
        };
        Self { rows: Arc::new(rows), is_over_literals }
    }

    /// Whether the rows are those of the query's text.
    pub(crate) fn is_over_literals(&self) -> bool {
        self.is_over_literals
    }

    /// Declares that no uses follow but those of the current plan.
    pub(crate) fn all_uses_are_known(&self) {
        self.rows.is_all_known.store(true, Ordering::Release);
    }
}

#[async_trait]
impl TableProvider for Materialized {
    fn schema(&self) -> SchemaRef {
        self.rows.physical.schema()
    }

    fn table_type(&self) -> TableType {
        TableType::Temporary
    }

    async fn scan(
        &self,
        _state: &dyn PlanningSession,
        projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.rows.uses.fetch_add(1, Ordering::AcqRel);
        let rows: Arc<dyn PartitionStream> =
            Arc::new(MaterializedScan { schema: self.schema(), rows: Arc::clone(&self.rows) });
        Ok(Arc::new(StreamingTableExec::try_new(self.schema(), vec![rows], projection, [], false, limit)?))
    }
}

type SharedRows = Shared<BoxFuture<'static, std::result::Result<Arc<BufferedRows>, Arc<DataFusionError>>>>;

/// The state that all uses share.
struct MaterializedRows {
    physical: Arc<dyn ExecutionPlan>,
    /// The number of planned scans.
    uses: AtomicUsize,
    is_all_known: AtomicBool,
    /// Driven by whichever use is polled, and by another one where that is dropped.
    running: Mutex<Option<SharedRows>>,
}

impl std::fmt::Debug for MaterializedRows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MaterializedRows").field("physical", &self.physical).finish_non_exhaustive()
    }
}

/// Rows in memory, and their reservation.
struct BufferedRows {
    batches: Vec<RecordBatch>,
    _reserved: MemoryReservation,
}

impl MaterializedRows {
    /// Returns the run that all uses share; `None` where the only use streams the rows.
    fn running(&self, context: &Arc<TaskContext>) -> Option<SharedRows> {
        let mut running = self.running.lock();
        if let Some(started) = running.as_ref() {
            return Some(started.clone());
        }
        if self.is_all_known.load(Ordering::Acquire) && self.uses.load(Ordering::Acquire) == 1 {
            return None;
        }
        let read = read_all(Arc::clone(&self.physical), Arc::clone(context)).map(|held| held.map_err(Arc::new));
        Some(running.insert(read.boxed().shared()).clone())
    }
}

async fn read_all(physical: Arc<dyn ExecutionPlan>, context: Arc<TaskContext>) -> Result<Arc<BufferedRows>> {
    let reserved = MemoryConsumer::new("materialize").register(context.memory_pool());
    let mut rows = execute_stream(physical, context)?;
    let mut batches = Vec::new();
    while let Some(batch) = rows.next().await {
        let batch = batch?;
        reserved.try_grow(batch.get_array_memory_size())?;
        batches.push(batch);
    }
    Ok(Arc::new(BufferedRows { batches, _reserved: reserved }))
}

/// One use of the rows.
#[derive(Debug)]
struct MaterializedScan {
    schema: SchemaRef,
    rows: Arc<MaterializedRows>,
}

impl PartitionStream for MaterializedScan {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let rows = match self.rows.running(&context) {
            None => match execute_stream(Arc::clone(&self.rows.physical), context) {
                Ok(rows) => return rows,
                Err(error) => stream::once(async { Err(error) }).boxed(),
            },
            Some(running) => running
                .map(|read| match read {
                    Ok(held) => Ok(each_of(held)),
                    Err(error) => Err(DataFusionError::Shared(error)),
                })
                .try_flatten_stream()
                .boxed(),
        };
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), rows))
    }
}

fn each_of(held: Arc<BufferedRows>) -> impl stream::Stream<Item = Result<RecordBatch>> {
    stream::iter((0..).map_while(move |index: usize| held.batches.get(index).cloned().map(Ok)))
}
