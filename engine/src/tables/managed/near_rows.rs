//! Rows of one data file that a vector index named. The columns come from the file, and the vectors from the index, which has
//! them as they are: to read a few of them from Parquet would decode pages of thousands.

use std::fmt;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::datatypes::SchemaRef;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, Distribution, ExecutionPlan, Partitioning, PlanProperties,
};
use futures::StreamExt;

/// The rows of one file.
#[derive(Debug)]
pub(super) struct NearRowsExec {
    rows: Arc<NearRows>,
    /// The columns of the file that are asked for, in one partition; `None` where no column but the vector is.
    input: Option<Arc<dyn ExecutionPlan>>,
    properties: Arc<PlanProperties>,
}

/// What the operator shows and gives.
#[derive(Debug)]
pub(super) struct NearRows {
    /// The index's name.
    pub(super) index: String,
    pub(super) schema: SchemaRef,
    /// The vectors of the rows, in the order of the file.
    pub(super) vectors: ArrayRef,
    /// Where they stand among the columns, if they are asked for.
    pub(super) vector_at: Option<usize>,
}

impl NearRowsExec {
    pub(super) fn new(rows: Arc<NearRows>, input: Option<Arc<dyn ExecutionPlan>>) -> Self {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(Arc::clone(&rows.schema)),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Self { rows, input, properties: Arc::new(properties) }
    }
}

impl NearRows {
    /// Returns rows of the file with their vectors; `from` is the number of rows before them.
    fn batch(&self, columns: &[ArrayRef], from: usize, rows: usize) -> Result<RecordBatch> {
        let mut columns = columns.to_vec();
        if let Some(at) = self.vector_at {
            columns.insert(at.min(columns.len()), self.vectors.slice(from, rows));
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)?)
    }

    fn other_rows(&self) -> DataFusionError {
        DataFusionError::Internal(format!("a data file has other rows than the vector index `{}` names", self.index))
    }
}

impl DisplayAs for NearRowsExec {
    fn fmt_as(&self, _format: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "NearRowsExec: index={}, rows={}", self.rows.index, self.rows.vectors.len())
    }
}

impl ExecutionPlan for NearRowsExec {
    fn name(&self) -> &'static str {
        "NearRowsExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.input.iter().collect()
    }

    // The vectors stand beside the rows in the order of the file, which one partition keeps.
    fn required_input_distribution(&self) -> Vec<Distribution> {
        self.input.iter().map(|_| Distribution::SinglePartition).collect()
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        self.input.iter().map(|_| false).collect()
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(Self::new(Arc::clone(&self.rows), children.into_iter().next())))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let rows = Arc::clone(&self.rows);
        let schema = Arc::clone(&rows.schema);
        let memory = MemoryConsumer::new("NearRowsExec").register(context.memory_pool());
        memory.try_grow(rows.vectors.get_array_memory_size())?;
        let Some(input) = &self.input else {
            let batch = rows.batch(&[], 0, rows.vectors.len());
            let once = futures::stream::once(async move {
                let _held = memory;
                batch
            });
            return Ok(Box::pin(RecordBatchStreamAdapter::new(schema, once)));
        };
        let input = input.execute(partition, context)?;
        let batches = futures::stream::try_unfold((input, 0, memory), move |(mut input, from, memory)| {
            let rows = Arc::clone(&rows);
            async move {
                let Some(batch) = input.next().await else {
                    return if from == rows.vectors.len() { Ok(None) } else { Err(rows.other_rows()) };
                };
                let batch = batch?;
                let next = from + batch.num_rows();
                if next > rows.vectors.len() {
                    return Err(rows.other_rows());
                }
                Ok(Some((rows.batch(batch.columns(), from, batch.num_rows())?, (input, next, memory))))
            }
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)))
    }
}
