//! The rows of a part of a query that is worked out once, however often the query uses it. They are in memory, within the
//! query's, from the first use to the query's end; the part of a query that uses it once goes through.
//!
//! Only the planner makes one, of what its host planned. A host that judges that plan need not judge what reads the rows.

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
pub struct Materialized(Arc<Rows>);

impl Materialized {
    /// Of a part that its host planned, and did not run yet.
    pub(crate) fn new(physical: Arc<dyn ExecutionPlan>) -> Self {
        Self(Arc::new(Rows {
            physical,
            uses: AtomicUsize::new(0),
            is_all_known: AtomicBool::new(false),
            gathering: Mutex::new(None),
        }))
    }

    /// That no more uses come than those of the plan that is made now.
    pub(crate) fn all_uses_are_known(&self) {
        self.0.is_all_known.store(true, Ordering::Release);
    }
}

#[async_trait]
impl TableProvider for Materialized {
    fn schema(&self) -> SchemaRef {
        self.0.physical.schema()
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
        self.0.uses.fetch_add(1, Ordering::AcqRel);
        let rows: Arc<dyn PartitionStream> = Arc::new(Use { schema: self.schema(), rows: Arc::clone(&self.0) });
        Ok(Arc::new(StreamingTableExec::try_new(self.schema(), vec![rows], projection, [], false, limit)?))
    }
}

type Gathering = Shared<BoxFuture<'static, std::result::Result<Arc<Held>, Arc<DataFusionError>>>>;

/// What all uses share.
struct Rows {
    physical: Arc<dyn ExecutionPlan>,
    /// Scans that were planned.
    uses: AtomicUsize,
    is_all_known: AtomicBool,
    /// Driven by whichever use is polled, and by another one where that goes away.
    gathering: Mutex<Option<Gathering>>,
}

impl std::fmt::Debug for Rows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rows").field("physical", &self.physical).finish_non_exhaustive()
    }
}

/// Rows in memory, and the reservation for them.
struct Held {
    batches: Vec<RecordBatch>,
    _reserved: MemoryReservation,
}

impl Rows {
    /// `None` where the one use there is may have the rows as they come.
    fn gathering(&self, context: &Arc<TaskContext>) -> Option<Gathering> {
        let mut gathering = self.gathering.lock();
        if let Some(started) = gathering.as_ref() {
            return Some(started.clone());
        }
        if self.is_all_known.load(Ordering::Acquire) && self.uses.load(Ordering::Acquire) == 1 {
            return None;
        }
        let gathered = gathered(Arc::clone(&self.physical), Arc::clone(context)).map(|held| held.map_err(Arc::new));
        Some(gathering.insert(gathered.boxed().shared()).clone())
    }
}

async fn gathered(physical: Arc<dyn ExecutionPlan>, context: Arc<TaskContext>) -> Result<Arc<Held>> {
    let reserved = MemoryConsumer::new("materialize").register(context.memory_pool());
    let mut rows = execute_stream(physical, context)?;
    let mut batches = Vec::new();
    while let Some(batch) = rows.next().await {
        let batch = batch?;
        reserved.try_grow(batch.get_array_memory_size())?;
        batches.push(batch);
    }
    Ok(Arc::new(Held { batches, _reserved: reserved }))
}

/// One use.
#[derive(Debug)]
struct Use {
    schema: SchemaRef,
    rows: Arc<Rows>,
}

impl PartitionStream for Use {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let rows = match self.rows.gathering(&context) {
            None => match execute_stream(Arc::clone(&self.rows.physical), context) {
                Ok(rows) => return rows,
                Err(error) => stream::once(async { Err(error) }).boxed(),
            },
            Some(gathering) => gathering
                .map(|gathered| match gathered {
                    Ok(held) => Ok(each_of(held)),
                    Err(error) => Err(DataFusionError::Shared(error)),
                })
                .try_flatten_stream()
                .boxed(),
        };
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), rows))
    }
}

fn each_of(held: Arc<Held>) -> impl stream::Stream<Item = Result<RecordBatch>> {
    stream::iter((0..).map_while(move |index: usize| held.batches.get(index).cloned().map(Ok)))
}
