//! Joins that find no room for what they keep of one side: a join by hashes cannot spill. Before its first row such a query is planned
//! and executed once more, with joins that sort both sides, which can.
//!
//! Invariant: only a query whose rows can be computed again is, and only one whose keys both kinds of joins compare alike.

use std::sync::Arc;
use std::time::Duration;

use arrow::datatypes::DataType;
use datafusion::common::JoinType;
use datafusion::error::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::memory_pool::{MemoryLimit, MemoryPool};
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::StreamingTableExec;
use futures::{StreamExt, TryStreamExt, stream};

use super::{Session, paced};
use crate::analyzed_plan::with_estimates;
use crate::error::{EngineError, Result};
use crate::limits::Interrupt;

/// What one partition of a side that is sorted should have: a part of it is kept for merging what was spilled.
const SORTED_PARTITION_BYTES: usize = 32 << 20;
/// The rows of a batch: a merge holds two of each run that it reads, and takes as many runs as there is memory for, which the sort of
/// the other side then lacks.
const SORTED_BATCH_ROWS: usize = 1_024;
/// What each sort keeps for merging what it spills.
const SORT_RESERVATION_BYTES: usize = 4 << 20;

/// How often, and for how long, it is looked whether a query that failed has given its memory back.
const MEMORY_LOOK: Duration = Duration::from_millis(5);
const MEMORY_LOOKS: usize = 400;

/// What a query was made of, to plan it again with joins that sort.
pub(super) struct HashedJoins {
    optimized: LogicalPlan,
    joins: usize,
}

impl HashedJoins {
    /// Returns what is needed to plan a query again; `None` where nothing is to be gained or it is not certain that the rows are the
    /// same.
    pub(super) fn of_plan(physical: &Arc<dyn ExecutionPlan>, optimized: &LogicalPlan) -> Option<Box<Self>> {
        let joins = count_joins(physical)?;
        (joins > 0).then(|| Box::new(Self { optimized: optimized.clone(), joins }))
    }

    /// Returns how many partitions the sides are sorted in, of `most`, so that each has memory to merge what it has spilled.
    fn partitions(&self, memory: &dyn MemoryPool, most: usize) -> usize {
        // One partition has no joins that sort.
        const FEWEST: usize = 2;
        let bytes = match memory.memory_limit() {
            MemoryLimit::Finite(bytes) => bytes,
            MemoryLimit::Infinite | MemoryLimit::Unknown => return most.max(FEWEST),
        };
        let sides = self.joins.saturating_mul(2).max(1);
        (bytes / SORTED_PARTITION_BYTES / sides).clamp(FEWEST, most.max(FEWEST))
    }
}

/// Returns how many joins by hashes a plan has; `None` where one of them is not to be sorted, or what is read cannot be read again.
fn count_joins(plan: &Arc<dyn ExecutionPlan>) -> Option<usize> {
    // Rows that a client sends, among others, come once.
    if plan.is::<StreamingTableExec>() {
        return None;
    }
    let of_this = match plan.downcast_ref::<HashJoinExec>() {
        Some(join) if !can_sort(join) => return None,
        Some(_) => 1,
        None => 0,
    };
    plan.children().into_iter().try_fold(of_this, |joins, input| Some(joins + count_joins(input)?))
}

/// Whether a join that sorts gives the same rows: it knows no NULL that decides over all rows (`NOT IN`), and fails on keys of some
/// types. Of an outer join with a filter it keeps all pairs of a row, which nobody counts.
fn can_sort(join: &HashJoinExec) -> bool {
    let keeps_pairs =
        join.filter().is_some() && matches!(join.join_type(), JoinType::Left | JoinType::Right | JoinType::Full);
    let schema = join.left().schema();
    let is_sorted = |data_type: &DataType| {
        data_type.is_integer()
            || data_type.is_string()
            || matches!(
                data_type,
                DataType::Boolean
                    | DataType::Date32
                    | DataType::Date64
                    | DataType::Timestamp(_, None)
                    | DataType::Decimal128(_, _)
                    | DataType::Binary
                    | DataType::LargeBinary
                    | DataType::BinaryView
                    | DataType::FixedSizeBinary(_)
            )
    };
    !join.null_aware
        && !keeps_pairs
        && join.on().iter().all(|(key, _)| key.data_type(&schema).is_ok_and(|data_type| is_sorted(&data_type)))
}

impl Session {
    /// Executes a plan with joins by hashes. Where it needs more than its memory before its first row, it begins again, once, with
    /// joins that sort.
    pub(super) fn execute_joins(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        joins: Box<HashedJoins>,
        memory: &Arc<dyn MemoryPool>,
        interrupt: &Interrupt,
    ) -> Result<SendableRecordBatchStream> {
        let reserved = memory.reserved();
        let mut first = self.execute_physical(plan, memory)?;
        let schema = first.schema();
        let (session, memory, interrupt) = (self.clone(), Arc::clone(memory), interrupt.clone());
        let rows = stream::once(async move {
            let error = match first.next().await {
                Some(Ok(batch)) => {
                    let begun = stream::once(async move { Ok::<_, DataFusionError>(batch) });
                    return Ok::<_, DataFusionError>(begun.chain(first).boxed());
                }
                Some(Err(error)) => EngineError::from(error),
                None => return Ok(stream::empty().boxed()),
            };
            if !is_of_pool(&error) {
                return Err(DataFusionError::from(error));
            }
            drop(first);
            tracing::debug!(%error, "a query begins again with joins that sort");
            wait_for_memory(memory.as_ref(), reserved).await;
            interrupt.check()?;
            match Box::pin(session.begin_sorted(&joins, &memory, &interrupt)).await {
                Ok(again) => Ok(again.boxed()),
                // What keeps the joins from being sorted says nothing to whoever asked.
                Err(_) => {
                    interrupt.check()?;
                    Err(DataFusionError::from(error))
                }
            }
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows.try_flatten())))
    }

    async fn begin_sorted(
        &self,
        joins: &HashedJoins,
        memory: &Arc<dyn MemoryPool>,
        interrupt: &Interrupt,
    ) -> Result<SendableRecordBatchStream> {
        let mut state = self.engine.planning_state();
        let options = state.config_mut().options_mut();
        options.optimizer.prefer_hash_join = false;
        options.execution.target_partitions = joins.partitions(memory.as_ref(), options.execution.target_partitions);
        let physical = self.unpaced_plan_of(&mut state, &joins.optimized).await?;
        let plan = paced(&state, with_estimates(physical), interrupt)?;
        let mut config = self.task_config(&plan);
        let execution = &mut config.options_mut().execution;
        execution.batch_size = execution.batch_size.min(SORTED_BATCH_ROWS);
        execution.sort_spill_reservation_bytes = SORT_RESERVATION_BYTES;
        self.execute_configured(plan, config, memory)
    }
}

/// Whether it was a pool that had no room, and not the space for spilling or a row that is too large.
fn is_of_pool(error: &EngineError) -> bool {
    matches!(error, EngineError::MemoryExceeded { detail } if detail.contains("allocate"))
}

/// Waits until a query has given back what it reserved beyond `before`, for a while: its tasks end a moment after it has failed.
async fn wait_for_memory(memory: &dyn MemoryPool, before: usize) {
    for _ in 0..MEMORY_LOOKS {
        if memory.reserved() <= before {
            return;
        }
        tokio::time::sleep(MEMORY_LOOK).await;
    }
}
