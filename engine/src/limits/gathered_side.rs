//! The side that a join by hashes keeps. DataFusion copies its batches into one when all of them are there, and has each of them twice
//! for that time, which nobody counts. Here they become one column by column, and the parts of a column go before the next one is made.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::compute::concat;
use datafusion::common::utils::memory::get_record_batch_memory_size;
use datafusion::error::Result;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::{StreamExt, future, stream};

use super::input_watch::{InputWatch, WatchedInputExec};

/// Returns the operator; a join by hashes gets the side that it keeps as one batch of each partition.
pub(super) fn with_gathered_side(node: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let Some(join) = node.downcast_ref::<HashJoinExec>() else { return Ok(node) };
    let inputs = vec![WatchedInputExec::of_input(join.left(), GatherRows), Arc::clone(join.right())];
    node.with_new_children(inputs)
}

#[derive(Clone)]
struct GatherRows;

impl InputWatch for GatherRows {
    const NAME: &'static str = "GatheredExec";

    fn watched(&self, input: SendableRecordBatchStream, context: &TaskContext) -> SendableRecordBatchStream {
        // The join reserves it when it has it.
        let held = MemoryConsumer::new("HashJoinInput").register(context.memory_pool());
        let schema = input.schema();
        let rows = stream::once(gathered(input, held)).filter_map(|batch| future::ready(batch.transpose()));
        Box::pin(RecordBatchStreamAdapter::new(schema, rows))
    }
}

/// Returns all rows of `input` as one batch; `None` where there is none.
async fn gathered(mut input: SendableRecordBatchStream, held: MemoryReservation) -> Result<Option<RecordBatch>> {
    let schema = input.schema();
    let mut batches = Vec::new();
    while let Some(batch) = input.next().await.transpose()? {
        held.try_grow(get_record_batch_memory_size(&batch))?;
        batches.push(batch);
    }
    drop(input);
    if batches.len() < 2 {
        return Ok(batches.pop());
    }
    let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
    let mut columns: Vec<Vec<ArrayRef>> = schema.fields().iter().map(|_| Vec::with_capacity(batches.len())).collect();
    for batch in batches {
        let (_, arrays, _) = batch.into_parts();
        for (column, array) in columns.iter_mut().zip(arrays) {
            column.push(array);
        }
    }
    let mut whole: Vec<ArrayRef> = Vec::with_capacity(columns.len());
    for parts in columns {
        let arrays: Vec<&dyn Array> = parts.iter().map(AsRef::as_ref).collect();
        whole.push(concat(&arrays)?);
    }
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(Some(RecordBatch::try_new_with_options(schema, whole, &options)?))
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "each test has a runtime of its own")]
mod tests {
    use arrow::array::{Int64Array, StringArray};
    use arrow::datatypes::{DataType, Field, Schema};
    use datafusion::execution::memory_pool::{GreedyMemoryPool, MemoryPool};
    use datafusion::physical_plan::memory::MemoryStream;

    use super::*;

    #[tokio::test]
    async fn batches_become_one_and_count() {
        let schema =
            Arc::new(Schema::new(vec![Field::new("a", DataType::Int64, false), Field::new("b", DataType::Utf8, true)]));
        let batch = |from: i64| {
            let a: ArrayRef = Arc::new(Int64Array::from_iter_values(from..from + 3));
            let b: ArrayRef = Arc::new(StringArray::from(vec![Some("x"), None, Some("y")]));
            RecordBatch::try_new(Arc::clone(&schema), vec![a, b]).unwrap()
        };
        let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(1 << 20));
        let of = |batches: Vec<RecordBatch>| -> SendableRecordBatchStream {
            Box::pin(MemoryStream::try_new(batches, Arc::clone(&schema), None).unwrap())
        };
        let held = || MemoryConsumer::new("test").register(&pool);
        let all = gathered(of(vec![batch(0), batch(3), batch(6)]), held()).await.unwrap().unwrap();
        assert_eq!(all.num_rows(), 9);
        assert_eq!(all.column(0).to_data(), Int64Array::from_iter_values(0..9).to_data());
        assert_eq!(all.column(1).null_count(), 3);
        assert_eq!(gathered(of(vec![batch(7)]), held()).await.unwrap(), Some(batch(7)));
        assert_eq!(gathered(of(Vec::new()), held()).await.unwrap(), None);
        assert_eq!(pool.reserved(), 0);
        let small: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(1));
        let few = MemoryConsumer::new("test").register(&small);
        assert!(gathered(of(vec![batch(0)]), few).await.is_err());
    }
}
