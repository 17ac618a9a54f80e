//! Queries that workers do a part of: their place is decided, they are told their limits, and one that loses a worker before
//! its first row begins once again without it.

use std::sync::Arc;

use datafusion::common::display::{PlanType, StringifiedPlan};
use datafusion::error::DataFusionError;
use datafusion::execution::memory_pool::MemoryPool;
use datafusion::execution::{SendableRecordBatchStream, SessionState};
use datafusion::logical_expr::{Explain, LogicalPlan};
use datafusion::physical_plan::explain::ExplainExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use datafusion::prelude::SessionConfig;
use futures::{StreamExt, TryStreamExt, stream};
use querent_catalog::Role;

use super::shown_plans::batch_with_names_of_files;
use super::sorted_joins::HashedJoins;
use super::{Session, paced};
use crate::analyzed_plan::with_estimates;
use crate::distributed::{Placement, TaskHeaders, WorkerPlan, ready_to_send};
use crate::error::{EngineError, FilePlace, Result};
use crate::limits::{Interrupt, QueryClock, QueryUsage};

/// A table of so many rows is read in no time.
const FEW_ROWS: usize = 10_000;

/// A physical plan that is ready to be executed.
pub(super) struct ExecutablePlan {
    pub(super) plan: Arc<dyn ExecutionPlan>,
    /// The configuration to execute it with where workers do a part of it, and what it was made of, to make it again.
    workers: Option<Box<(SessionConfig, LogicalPlan)>>,
    /// Whether its rows are a plan of which the caller reads the names of files, and not where they lie, after workers made it.
    names_files_only: bool,
    /// What it was made of where its joins may need more memory than there is, on one node.
    joins: Option<Box<HashedJoins>>,
}

impl ExecutablePlan {
    pub(super) fn on_one_node(plan: Arc<dyn ExecutionPlan>) -> Self {
        Self { plan, workers: None, names_files_only: false, joins: None }
    }

    /// Whether it reads one table, here, which is known to have few rows.
    pub(super) fn reads_few_rows(&self) -> bool {
        self.workers.is_none() && reads_few_rows(&self.plan)
    }
}

/// Returns the error of a query: a task knows how much time was left when it began, and not how much the query had.
fn in_its_time(error: DataFusionError, clock: &QueryClock) -> EngineError {
    match EngineError::from(error) {
        EngineError::WallClockExceeded { .. } => clock.exceeded(),
        other => other,
    }
}

fn reads_few_rows(plan: &Arc<dyn ExecutionPlan>) -> bool {
    match plan.children().as_slice() {
        [] => {
            let statistics = plan.partition_statistics(None);
            statistics.is_ok_and(|known| known.num_rows.get_value().is_some_and(|rows| *rows <= FEW_ROWS))
        }
        [input] => reads_few_rows(input),
        _ => false,
    }
}

/// Returns a plan that runs here, with the interrupt in it.
fn on_this_node(
    state: &SessionState,
    optimized: &LogicalPlan,
    physical: Arc<dyn ExecutionPlan>,
    interrupt: &Interrupt,
) -> Result<ExecutablePlan> {
    let joins = HashedJoins::of_plan(&physical, optimized);
    let plan = paced(state, with_estimates(physical), interrupt)?;
    Ok(ExecutablePlan { joins, ..ExecutablePlan::on_one_node(plan) })
}

impl Session {
    /// Returns the plan of a query that is given to workers where it reads enough, with the interrupt in it.
    pub(super) async fn placed(
        &self,
        state: &SessionState,
        optimized: &LogicalPlan,
        physical: Arc<dyn ExecutionPlan>,
        interrupt: &Interrupt,
    ) -> Result<ExecutablePlan> {
        let Some(cluster) = &self.engine.runtime().cluster else {
            return on_this_node(state, optimized, physical, interrupt);
        };
        match Box::pin(cluster.place(state, optimized, &physical)).await? {
            Placement::OneNode(reason) | Placement::NoWorker(reason) => {
                tracing::debug!(reason, "a query runs on one node");
                on_this_node(state, optimized, physical, interrupt)
            }
            Placement::Workers(worker_plan) => {
                for worker in cluster.known_workers() {
                    QueryUsage::note_place(FilePlace::of_worker(&worker));
                }
                let config = worker_plan.execution_config(self.task_headers(interrupt))?;
                let WorkerPlan { plan, .. } = worker_plan;
                let plan = ready_to_send(paced(state, plan, interrupt)?)?;
                let workers = Some(Box::new((config, optimized.clone())));
                Ok(ExecutablePlan { plan, workers, names_files_only: false, joins: None })
            }
        }
    }

    fn task_headers(&self, interrupt: &Interrupt) -> TaskHeaders {
        TaskHeaders { time_left: interrupt.clock().left(), memory_bytes: self.limits.memory_bytes }
    }

    /// Executes a plan that is ready. One that loses a worker before its first row is made and executed again, once.
    pub(super) fn execute_ready(
        &self,
        ready: ExecutablePlan,
        memory: &Arc<dyn MemoryPool>,
        interrupt: &Interrupt,
    ) -> Result<SendableRecordBatchStream> {
        let Some(workers) = ready.workers else {
            return match ready.joins {
                Some(joins) => self.execute_joins(ready.plan, joins, memory, interrupt),
                None => self.execute_physical(ready.plan, memory),
            };
        };
        let names_files_only = ready.names_files_only;
        let (config, optimized) = *workers;
        let runtime = self.engine.runtime();
        let first = execute_stream(ready.plan, runtime.task(config, memory))?;
        let (session, memory, interrupt) = (self.clone(), Arc::clone(memory), interrupt.clone());
        let schema = first.schema();
        let rows = stream::once(async move {
            let clock = interrupt.clock().clone();
            let mut first = first.map_err(move |error| in_its_time(error, &clock));
            match first.next().await {
                Some(Err(EngineError::WorkerLost { worker, detail })) => {
                    drop(first);
                    tracing::warn!(worker, detail, "a query begins again without a worker");
                    let again = Box::pin(session.begin_again(&worker, &optimized, &memory, &interrupt)).await?;
                    let noted = move |error: DataFusionError| {
                        DataFusionError::from(session.noted(in_its_time(error, interrupt.clock())))
                    };
                    Ok::<_, DataFusionError>(again.map_err(noted).boxed())
                }
                Some(begun) => {
                    let rest = first.map_err(move |error| session.noted(error).into());
                    Ok(stream::once(async move { begun.map_err(DataFusionError::from) }).chain(rest).boxed())
                }
                None => Ok(stream::empty().boxed()),
            }
        });
        let rows = rows.try_flatten();
        if !names_files_only {
            return Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)));
        }
        let shown = rows.map(|batch| batch.and_then(|batch| batch_with_names_of_files(&batch)));
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, shown)))
    }

    async fn begin_again(
        &self,
        lost: &str,
        optimized: &LogicalPlan,
        memory: &Arc<dyn MemoryPool>,
        interrupt: &Interrupt,
    ) -> std::result::Result<SendableRecordBatchStream, DataFusionError> {
        if let Some(cluster) = &self.engine.runtime().cluster {
            cluster.note_lost(lost);
        }
        let mut state = self.engine.planning_state();
        let ready = self.physical_plan_of(&mut state, optimized, interrupt).await?;
        match ready.workers {
            None => Ok(self.execute_physical(ready.plan, memory)?),
            Some(workers) => execute_stream(ready.plan, self.engine.runtime().task(workers.0, memory)),
        }
    }

    /// Returns the error, after the worker that it names is left out.
    fn noted(&self, error: EngineError) -> EngineError {
        if let (EngineError::WorkerLost { worker, .. }, Some(cluster)) = (&error, &self.engine.runtime().cluster) {
            cluster.note_lost(worker);
        }
        error
    }

    /// Returns the plan of EXPLAIN ANALYZE as this caller sees it. One that workers do a part of stays as it is, and its rows are
    /// changed.
    pub(super) fn with_shown_files(&self, mut ready: ExecutablePlan) -> Result<ExecutablePlan> {
        match ready.workers {
            None => {
                ready.plan = self.with_names_of_files(ready.plan)?;
                ready.joins = None;
            }
            Some(_) => ready.names_files_only = self.principal.role() != Role::Admin,
        }
        Ok(ready)
    }

    /// Returns what `EXPLAIN` shows, with where the query runs and its stages where workers do a part of it.
    pub(super) async fn with_placement(
        &self,
        state: &SessionState,
        explain: &Explain,
        explained: Arc<dyn ExecutionPlan>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Some(cluster) = &self.engine.runtime().cluster else { return Ok(explained) };
        let Some(shown) = explained.downcast_ref::<ExplainExec>() else { return Ok(explained) };
        let optimized = state.optimizer().optimize(explain.plan.as_ref().clone(), state, |_, _| {})?;
        let physical = state.query_planner().create_physical_plan(&optimized, state).await?;
        let placement = Box::pin(cluster.place(state, &optimized, &physical)).await?;
        let (said, stages) = placement.explained(self.principal.role() == Role::Admin);
        let plans = shown.stringified_plans().iter().map(|plan| match (&plan.plan_type, &stages) {
            (PlanType::FinalPhysicalPlan, Some(stages)) => StringifiedPlan::new(PlanType::FinalPhysicalPlan, stages),
            _ => plan.clone(),
        });
        let placement = StringifiedPlan::new(PlanType::FinalPhysicalPlan, said);
        let plans = plans.chain([placement]).collect();
        Ok(Arc::new(ExplainExec::new(shown.schema(), plans, shown.verbose())))
    }
}
