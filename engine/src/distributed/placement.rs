//! Decides where a plan runs, and makes stages of one that runs on workers.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::common::internal_err;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfig};
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::context::QueryPlanner;
use datafusion::execution::{SessionState, SessionStateBuilder, TaskContext};
use datafusion::logical_expr::{Expr, FetchType, LogicalPlan, LogicalPlanBuilder};
use datafusion::physical_expr::window::{PlainAggregateWindowExpr, SlidingAggregateWindowExpr};
use datafusion::physical_plan::analyze::AnalyzeExec;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::joins::{HashJoinExec, NestedLoopJoinExec};
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, displayable};
use datafusion::prelude::SessionConfig;
use datafusion_distributed::{
    DesiredTaskCountEvent, DesiredTaskCountEventResponse, DistributedCodec, DistributedExec, DistributedExt,
    DistributedLeafExec, NetworkBoundary, NetworkCoalesceExec, ScaleUpLeafNodeEvent, ScaleUpLeafNodeEventResponse,
    SessionStateBuilderExt, Stage, display_plan_ascii,
};
use datafusion_proto::physical_plan::{AsExecutionPlan, ComposedPhysicalExtensionCodec, PhysicalExtensionCodec};
use datafusion_proto::protobuf::PhysicalPlanNode;
use url::Url;
use uuid::Uuid;

use super::cluster::{Cluster, UsableWorkers, execution_config};
use super::codec::PlanCodec;
use super::enclosed::{EnclosedExec, enclosed, has_definitions};
use super::functions::functions_of_plans;
use super::portable_scan::PortableScanExec;
use super::task_headers::TaskHeaders;
use super::window_orders::with_known_order;
use crate::limits::batch_rows;

/// The operators whose meaning in stages is known. Others keep a plan on one node.
const TRAVELLING: [&str; 18] = [
    "AggregateExec",
    "BoundedWindowAggExec",
    "CoalescePartitionsExec",
    "CooperativeExec",
    "CrossJoinExec",
    "DataSourceExec",
    "EmptyExec",
    "FilterExec",
    "GlobalLimitExec",
    "HashJoinExec",
    "LocalLimitExec",
    "NestedLoopJoinExec",
    "PlaceholderRowExec",
    "PortableScanExec",
    "ProjectionExec",
    "RepartitionExec",
    "RestrictedExec",
    "WindowAggExec",
];
/// The same, of those that sort and put inputs together.
const SORTING: [&str; 4] = ["SortExec", "SortExec(TopK)", "SortPreservingMergeExec", "UnionExec"];
/// A task is worth sending for so much of the least that a query reads to be distributed.
const TASKS_OF_LEAST: u64 = 4;

/// The most bytes of rows in memory, such as those of temporary tables, that go to each worker with a plan.
const MOST_BYTES_IN_PLAN: u64 = 32 << 20;

/// Where a plan runs.
pub(crate) enum Placement {
    /// Where it was planned, and why.
    OneNode(String),
    /// Where it was planned, since no worker can be used, and why none can.
    NoWorker(String),
    /// On workers.
    Workers(WorkerPlan),
}

/// A plan that runs on workers, with the configuration to execute it.
pub(crate) struct WorkerPlan {
    pub(crate) plan: Arc<dyn ExecutionPlan>,
    config: SessionConfig,
    /// What is said of it in `EXPLAIN`.
    said: String,
    /// The workers that do no part of it, and why.
    left_out: Vec<String>,
}

impl WorkerPlan {
    /// Returns the configuration to execute it with, whose tasks are told of `headers`.
    pub(crate) fn execution_config(&self, headers: TaskHeaders) -> Result<SessionConfig> {
        execution_config(&self.config, headers)
    }
}

/// Returns whether a plan has stages for workers.
fn is_distributed(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.exists(|node| Ok(node.is::<DistributedExec>())).unwrap_or(false)
}

impl Cluster {
    /// Decides where a query runs, of which `physical` is the plan on one node.
    pub(crate) async fn place(
        &self,
        state: &SessionState,
        optimized: &LogicalPlan,
        physical: &Arc<dyn ExecutionPlan>,
    ) -> Result<Placement> {
        let (bytes, least) = (scanned_bytes(physical)?, self.min_scan_bytes());
        if bytes < least {
            let (reads, least) = (size(bytes), size(least));
            return Ok(Placement::OneNode(format!(
                "it reads {reads} of files, less than {least} (cluster.min_scan_bytes)"
            )));
        }
        let usual = state.config().batch_size();
        if batch_rows(physical, usual) < usual {
            return Ok(Placement::OneNode("its rows are wide, and are read a few at a time".to_owned()));
        }
        let UsableWorkers { urls, left_out } = match self.available().await {
            Ok(usable) => usable,
            Err(faults) => return Ok(Placement::NoWorker(faults)),
        };
        // A plan for one node is there already: what cannot be planned for stages runs by that.
        let mut made = Box::pin(self.shared_out(state, optimized, urls, bytes)).await;
        if let Ok(Placement::Workers(plan)) = &mut made {
            plan.left_out = left_out;
        }
        Ok(made.unwrap_or_else(|error| {
            Placement::OneNode(format!("it cannot be planned for workers: {}", reason_of(error)))
        }))
    }

    /// Makes stages of a query that reads so many bytes of files.
    async fn shared_out(
        &self,
        state: &SessionState,
        optimized: &LogicalPlan,
        workers: Vec<Url>,
        bytes: u64,
    ) -> Result<Placement> {
        if counts_subquery_rows(optimized)? {
            let reason = "it has a subquery for one value that may have more rows, which are counted there";
            return Ok(Placement::OneNode(reason.to_owned()));
        }
        let planning = for_stages(state);
        let optimized = planning.optimizer().optimize(optimized.clone(), &planning, |_, _| {})?;
        let physical = planning.query_planner().create_physical_plan(&optimized, &planning).await?;
        let portable = match portable(&planning, physical)? {
            Ok(portable) => portable,
            Err(reason) => return Ok(Placement::OneNode(reason)),
        };
        let count = workers.len();
        let is_analyzed = portable.is::<AnalyzeExec>();
        let given = if count == 1 { one_stage(&portable, is_analyzed)? } else { portable };
        let state = self.stage_planner(planning.config().clone(), workers, is_analyzed, &given);
        let nothing = LogicalPlanBuilder::empty(false).build()?;
        let plan = state.query_planner().create_physical_plan(&nothing, &state).await?;
        if !is_distributed(&plan) {
            return Ok(Placement::OneNode("no part of it would be done by a worker".to_owned()));
        }
        let workers = if count == 1 { "1 worker".to_owned() } else { format!("{count} workers") };
        let said = format!("on {workers}: it reads {} of files", size(bytes));
        let config = state.config().clone();
        Ok(Placement::Workers(WorkerPlan { plan, config, said, left_out: Vec::new() }))
    }

    /// Returns what makes stages of a plan, and of nothing else.
    fn stage_planner(
        &self,
        base: SessionConfig,
        workers: Vec<Url>,
        is_analyzed: bool,
        plan: &Arc<dyn ExecutionPlan>,
    ) -> SessionState {
        let task_bytes = (self.min_scan_bytes() / TASKS_OF_LEAST).max(1);
        let most = workers.len();
        let config = self
            .config(base, workers, is_analyzed)
            .with_distributed_desired_task_count_handler(move |event: DesiredTaskCountEvent<'_>| {
                let scan = event.plan.downcast_ref::<PortableScanExec>()?;
                let tasks = usize::try_from(scan.scanned_bytes().div_ceil(task_bytes)).unwrap_or(most).clamp(1, most);
                Some(Ok(match scan.can_be_shared() {
                    true => DesiredTaskCountEventResponse::desired(tasks),
                    false => DesiredTaskCountEventResponse::maximum(1),
                }))
            })
            .with_distributed_scale_up_leaf_node_handler(|event: ScaleUpLeafNodeEvent<'_>| {
                let scan = event.plan.downcast_ref::<PortableScanExec>().filter(|_| event.task_count > 1)?;
                let shares = scan.shared_out(event.task_count);
                let leaf = shares.and_then(|shares| DistributedLeafExec::try_new(Arc::clone(event.plan), shares));
                Some(leaf.map(|leaf| ScaleUpLeafNodeEventResponse::new(Arc::new(leaf))))
            });
        SessionStateBuilder::new()
            .with_config(config)
            .with_query_planner(Arc::new(GivenPlan(Arc::clone(plan))))
            .with_distributed_planner()
            .build()
    }
}

/// Returns a plan for one worker, which does the query as a whole: stages that would all be on it only cost. A scan stays here,
/// whose rows would be sent as they are.
///
/// The planner of stages takes a boundary away that has one task on either side, so this plan is made without it.
fn one_stage(plan: &Arc<dyn ExecutionPlan>, collects_metrics: bool) -> Result<Arc<dyn ExecutionPlan>> {
    if let Some(analyze) = plan.downcast_ref::<AnalyzeExec>() {
        let inner = one_stage(analyze.input(), collects_metrics)?;
        return Arc::clone(plan).with_new_children(vec![inner]);
    }
    if plan.children().is_empty() {
        return Ok(Arc::clone(plan));
    }
    let boundary = NetworkCoalesceExec::try_new(Arc::clone(plan), 1, 1)?;
    let Stage::Local(mut stage) = boundary.input_stage().clone() else {
        return internal_err!("a stage that was just made is elsewhere");
    };
    // Tasks of queries are told apart by these.
    (stage.query_id, stage.num) = (Uuid::new_v4(), 1);
    let boundary: Arc<dyn ExecutionPlan> = boundary.with_input_stage(Stage::Local(stage))?;
    let head = match boundary.output_partitioning().partition_count() {
        1 => boundary,
        _ => Arc::new(CoalescePartitionsExec::new(boundary)) as Arc<dyn ExecutionPlan>,
    };
    Ok(Arc::new(DistributedExec::new(head).with_metrics_collection(collects_metrics)))
}

/// Returns what `EXPLAIN` shows of stages.
pub(super) fn stages(plan: &Arc<dyn ExecutionPlan>) -> String {
    let mut shown = String::new();
    let _ = plan.apply(|node| {
        if !node.is::<DistributedExec>() {
            return Ok(TreeNodeRecursion::Continue);
        }
        shown = display_plan_ascii(node.as_ref(), false);
        Ok(TreeNodeRecursion::Stop)
    });
    shown
}

impl Placement {
    /// Returns what `EXPLAIN` says: where the query runs, and its stages. Where workers are, and what is wrong with them, is
    /// said where `names_workers`.
    pub(crate) fn explained(&self, names_workers: bool) -> (String, Option<String>) {
        match self {
            Placement::OneNode(reason) => (format!("runs on one node: {reason}"), None),
            Placement::NoWorker(faults) if names_workers => {
                (format!("runs on one node: no worker can be used: {faults}"), None)
            }
            Placement::NoWorker(_) => ("runs on one node: no worker can be used".to_owned(), None),
            Placement::Workers(plan) => {
                let left_out = match plan.left_out.len() {
                    0 => String::new(),
                    _ if names_workers => format!("; left out: {}", plan.left_out.join("; ")),
                    1 => "; left out: 1 worker".to_owned(),
                    count => format!("; left out: {count} workers"),
                };
                (format!("runs {}{left_out}", plan.said), Some(stages(&plan.plan)))
            }
        }
    }
}

/// A planner that has its plan already.
#[derive(Debug)]
struct GivenPlan(Arc<dyn ExecutionPlan>);

#[async_trait]
impl QueryPlanner for GivenPlan {
    async fn create_physical_plan(&self, _: &LogicalPlan, _: &SessionState) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::clone(&self.0))
    }
}

/// Returns the state that plans for stages: operators of one stage cannot tell those of another what to leave out, scalar
/// subqueries are joins, and there are at least two partitions, without which nothing is shared out.
fn for_stages(state: &SessionState) -> SessionState {
    let mut state = state.clone();
    let options = state.config_mut().options_mut();
    options.optimizer.enable_dynamic_filter_pushdown = false;
    options.optimizer.enable_join_dynamic_filter_pushdown = false;
    options.optimizer.enable_topk_dynamic_filter_pushdown = false;
    options.optimizer.enable_aggregate_dynamic_filter_pushdown = false;
    options.optimizer.enable_sort_pushdown = false;
    options.optimizer.enable_physical_uncorrelated_scalar_subquery = false;
    options.execution.target_partitions = options.execution.target_partitions.max(2);
    state
}

/// Returns whether a subquery for one value may have more rows, which is an error. A join, which stages have in its
/// place, would take them all.
fn counts_subquery_rows(plan: &LogicalPlan) -> Result<bool> {
    let mut counts = false;
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            counts |= expr.exists(|part| match part {
                Expr::ScalarSubquery(query) => Ok(!has_one_row_at_most(&query.subquery)),
                _ => Ok(false),
            })?;
            Ok(if counts { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })
    })?;
    Ok(counts)
}

/// Returns whether a plan has no second row, whatever its tables hold. `LogicalPlan::max_rows` says less than there may
/// be of joins and unions of rows that are written out.
fn has_one_row_at_most(plan: &LogicalPlan) -> bool {
    let is_one = |fetch: Option<usize>| fetch.is_some_and(|rows| rows <= 1);
    match plan {
        LogicalPlan::Aggregate(aggregate) => aggregate.group_expr.is_empty(),
        LogicalPlan::EmptyRelation(_) => true,
        LogicalPlan::Limit(limit) => {
            let fetch = limit.get_fetch_type();
            matches!(fetch, Ok(FetchType::Literal(rows)) if is_one(rows)) || has_one_row_at_most(&limit.input)
        }
        LogicalPlan::Sort(sort) => is_one(sort.fetch) || has_one_row_at_most(&sort.input),
        LogicalPlan::Projection(projection) => has_one_row_at_most(&projection.input),
        LogicalPlan::Filter(filter) => has_one_row_at_most(&filter.input),
        LogicalPlan::SubqueryAlias(alias) => has_one_row_at_most(&alias.input),
        _ => false,
    }
}

/// Returns the plan with scans that travel. The inner error says why it stays on one node.
fn portable(state: &SessionState, plan: Arc<dyn ExecutionPlan>) -> Result<Result<Arc<dyn ExecutionPlan>, String>> {
    let mut reason = None;
    let plan = plan
        .transform_up(|node| {
            if node.children().is_empty() && !is_in_memory(&node) && node.is::<DataSourceExec>() {
                return Ok(match PortableScanExec::of_scan(&node) {
                    Ok(scan) => Transformed::yes(Arc::new(scan) as Arc<dyn ExecutionPlan>),
                    Err(why) => {
                        reason.get_or_insert(why);
                        Transformed::no(node)
                    }
                });
            }
            if node.is::<CoalescePartitionsExec>() {
                return with_inner_input(node);
            }
            if node.is::<SortPreservingMergeExec>() {
                return with_merged_tasks(node);
            }
            if node.is::<WindowAggExec>() || node.is::<BoundedWindowAggExec>() {
                return with_known_order(node);
            }
            with_written_projection(node)
        })
        .data()?;
    if let Some(reason) = reason {
        return Ok(Err(reason));
    }
    let query = plan.downcast_ref::<AnalyzeExec>().map_or(&plan, AnalyzeExec::input);
    let mut unknown = None;
    query.apply(|node| {
        let is_known = TRAVELLING.contains(&node.name()) || SORTING.contains(&node.name());
        let is_scan = !node.is::<DataSourceExec>() || is_in_memory(node);
        if is_known && is_scan {
            return Ok(TreeNodeRecursion::Continue);
        }
        unknown = Some(format!("{} stays where it is", node.name()));
        Ok(TreeNodeRecursion::Stop)
    })?;
    if let Some(unknown) = unknown {
        return Ok(Err(unknown));
    }
    let in_memory = bytes_in_memory(query)?;
    if in_memory > MOST_BYTES_IN_PLAN {
        return Ok(Err(format!("{} of its rows are in no file, and would go to each worker", size(in_memory))));
    }
    Ok(match arrives_as_it_is(state, query) {
        Ok(()) => Ok(plan),
        Err(reason) => Err(reason),
    })
}

/// A merge right above a leaf is not taken for the end of a stage; above an operator it is, and what comes after it is done
/// once.
fn with_inner_input(node: Arc<dyn ExecutionPlan>) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    let [input] = node.children()[..] else { return Ok(Transformed::no(node)) };
    if !input.children().is_empty() {
        return Ok(Transformed::no(node));
    }
    let inner: Arc<dyn ExecutionPlan> = Arc::new(CooperativeExec::new(Arc::clone(input)));
    node.with_new_children(vec![inner]).map(Transformed::yes)
}

/// A merge reads one input for long while the others wait; partitions of one task, which come by one connection, would wait for each
/// other without end. So each task merges its own, and sends them as one.
fn with_merged_tasks(merge: Arc<dyn ExecutionPlan>) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    let merge = with_inner_input(merge)?.data;
    let of_task = EnclosedExec::around(Arc::clone(&merge));
    merge.with_new_children(vec![of_task]).map(Transformed::yes)
}

/// A join without columns is written as one with all of them; the columns are taken away above it.
fn with_written_projection(node: Arc<dyn ExecutionPlan>) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    let has_none = |projection: Option<&[usize]>| projection.is_some_and(<[usize]>::is_empty);
    let whole: Arc<dyn ExecutionPlan> = if let Some(join) = node.downcast_ref::<HashJoinExec>() {
        if !has_none(join.projection.as_deref()) {
            return Ok(Transformed::no(node));
        }
        join.builder().with_projection(None).build_exec()?
    } else if let Some(join) = node.downcast_ref::<NestedLoopJoinExec>() {
        if !has_none(join.projection().as_deref()) {
            return Ok(Transformed::no(node));
        }
        let (left, right) = (Arc::clone(join.left()), Arc::clone(join.right()));
        Arc::new(NestedLoopJoinExec::try_new(left, right, join.filter().cloned(), join.join_type(), None)?)
    } else {
        return Ok(Transformed::no(node));
    };
    let none: Vec<ProjectionExpr> = Vec::new();
    Ok(Transformed::yes(Arc::new(ProjectionExec::try_new(none, whole)?)))
}

fn is_in_memory(node: &Arc<dyn ExecutionPlan>) -> bool {
    node.downcast_ref::<DataSourceExec>().is_some_and(|scan| scan.data_source().is::<MemorySourceConfig>())
}

/// Writes the plan and reads it again, as a worker does. Errors: what would not arrive.
fn arrives_as_it_is(state: &SessionState, plan: &Arc<dyn ExecutionPlan>) -> Result<(), String> {
    PhysicalPlanNode::try_from_physical_plan(Arc::clone(plan), &PlanCodec::checking(state)).map_err(reason_of)?;
    let mut lost = None;
    plan.apply(|node| {
        lost = match node.is::<RepartitionExec>() {
            true if has_definitions(node)? => Some("rows are shared out by a function that does not travel".to_owned()),
            true => None,
            false => lost_of_windows(node),
        };
        Ok(if lost.is_some() { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })
    .map_err(reason_of)?;
    if let Some(lost) = lost {
        return Err(lost);
    }
    // As it is written when it is sent.
    let codec = || {
        let codecs: Vec<Arc<dyn PhysicalExtensionCodec>> =
            vec![Arc::new(DistributedCodec), Arc::new(PlanCodec::trusting())];
        ComposedPhysicalExtensionCodec::new(codecs)
    };
    let sent = enclosed(Arc::clone(plan), true).map_err(reason_of)?;
    let written = PhysicalPlanNode::try_from_physical_plan(sent, &codec());
    let context = TaskContext::new(
        None,
        state.session_id().to_owned(),
        state.config().clone(),
        functions_of_plans(state),
        state.higher_order_functions().clone(),
        state.aggregate_functions().clone(),
        state.window_functions().clone(),
        Arc::clone(state.runtime_env()),
    );
    let read = written.map_err(reason_of)?.try_into_physical_plan(&context, &codec()).map_err(reason_of)?;
    check_same(plan, &read)
}

/// Returns why a plan stays, of the error with which it could not be written down.
fn reason_of(error: DataFusionError) -> String {
    let said = error.strip_backtrace();
    tracing::debug!(said, "a plan does not travel");
    if said.contains("HigherOrderFunctionExpr") {
        return "a function that takes a lambda stays where it is".to_owned();
    }
    match error {
        DataFusionError::Internal(_) => "a part of it cannot be written down".to_owned(),
        _ => ["This feature is not implemented: ", "Execution error: "]
            .iter()
            .find_map(|prefix| said.strip_prefix(prefix))
            .unwrap_or(&said)
            .to_owned(),
    }
}

/// Returns what of an operator's windows is not written down.
fn lost_of_windows(node: &Arc<dyn ExecutionPlan>) -> Option<String> {
    let windows = match (node.downcast_ref::<BoundedWindowAggExec>(), node.downcast_ref::<WindowAggExec>()) {
        (Some(bounded), _) => bounded.window_expr(),
        (_, Some(whole)) => whole.window_expr(),
        (None, None) => return None,
    };
    windows.iter().find_map(|window| {
        let any = window.as_any();
        let plain = any.downcast_ref::<PlainAggregateWindowExpr>().map(PlainAggregateWindowExpr::get_aggregate_expr);
        let sliding = any.downcast_ref::<SlidingAggregateWindowExpr>();
        let aggregate = plain.or(sliding.map(SlidingAggregateWindowExpr::get_aggregate_expr));
        // Nothing else says whether there is a filter, and which way a function reads its rows.
        let said = format!("{window:?}");
        let arrives = match aggregate {
            Some(aggregate) => !aggregate.is_reversed() && said.ends_with("filter: None }"),
            None => !said.contains("is_reversed: true") && !said.contains("ignore_nulls: true"),
        };
        (!arrives).then(|| {
            format!("the window {} has a filter, or reads its rows in a way that does not travel", window.name())
        })
    })
}

fn check_same(sent: &Arc<dyn ExecutionPlan>, read: &Arc<dyn ExecutionPlan>) -> Result<(), String> {
    let lost = || Err(format!("{} would not arrive as it is", sent.name()));
    let line = |plan: &Arc<dyn ExecutionPlan>| displayable(plan.as_ref()).one_line().to_string();
    let partitions = |plan: &Arc<dyn ExecutionPlan>| plan.output_partitioning().partition_count();
    let is_same = sent.name() == read.name()
        && sent.schema() == read.schema()
        && line(sent) == line(read)
        && partitions(sent) == partitions(read)
        && sent.children().len() == read.children().len();
    let scans = (sent.downcast_ref::<PortableScanExec>(), read.downcast_ref::<PortableScanExec>());
    let is_same_scan = match scans {
        (Some(sent), Some(read)) => sent.reads_the_same(read),
        (None, None) => true,
        _ => false,
    };
    if !is_same || !is_same_scan {
        tracing::debug!(sent = line(sent), read = line(read), "an operator does not survive being written");
        return lost();
    }
    sent.children().into_iter().zip(read.children()).try_for_each(|(sent, read)| check_same(sent, read))
}

/// Returns the bytes of files that a plan reads.
fn scanned_bytes(plan: &Arc<dyn ExecutionPlan>) -> Result<u64> {
    let mut bytes = 0;
    plan.apply(|node| {
        let scan = node.downcast_ref::<DataSourceExec>().map(DataSourceExec::data_source);
        if let Some(config) = scan.and_then(|source| source.downcast_ref::<FileScanConfig>()) {
            let files = config.file_groups.iter().flat_map(FileGroup::iter);
            bytes += files.map(PartitionedFile::effective_size).sum::<u64>();
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(bytes)
}

/// Returns the bytes of rows that a plan has in itself.
fn bytes_in_memory(plan: &Arc<dyn ExecutionPlan>) -> Result<u64> {
    let mut bytes = 0;
    plan.apply(|node| {
        let scan = node.downcast_ref::<DataSourceExec>().map(DataSourceExec::data_source);
        if let Some(memory) = scan.and_then(|source| source.downcast_ref::<MemorySourceConfig>()) {
            let batches = memory.partitions().iter().flatten();
            bytes += batches.map(|batch| batch.get_array_memory_size() as u64).sum::<u64>();
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(bytes)
}

/// A size as people read it.
fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut unit = 0;
    let mut scaled = bytes as f64;
    while scaled >= 1024.0 && unit + 1 < UNITS.len() {
        scaled /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{bytes} B") } else { format!("{scaled:.1} {}", UNITS[unit]) }
}

#[cfg(test)]
mod tests {
    use arrow::array::{Int64Array, RecordBatch};
    use arrow::datatypes::{DataType, Field, Schema};

    use super::*;

    #[test]
    fn rows_that_a_plan_has_in_itself_are_counted() {
        let schema = Arc::new(Schema::new(vec![Field::new("a", DataType::Int64, false)]));
        let column = Arc::new(Int64Array::from_iter_values(0..1_000));
        let batch = RecordBatch::try_new(Arc::clone(&schema), vec![column]).unwrap();
        let rows = MemorySourceConfig::try_new_exec(&[vec![batch.clone()], vec![batch]], schema, None).unwrap();
        let plan: Arc<dyn ExecutionPlan> = Arc::new(CoalescePartitionsExec::new(rows));
        let bytes = bytes_in_memory(&plan).unwrap();
        assert!((2 * 8 * 1_000..2 * 16 * 1_000).contains(&bytes), "{bytes}");
        assert_eq!(scanned_bytes(&plan).unwrap(), 0);
    }

    #[test]
    fn why_a_plan_stays_is_said_in_words() {
        let function = DataFusionError::NotImplemented("the function f does not travel".to_owned());
        assert_eq!(reason_of(function), "the function f does not travel");
        let lambda =
            DataFusionError::Internal("Unsupported physical expr: HigherOrderFunctionExpr { fun: f }".to_owned());
        assert_eq!(reason_of(lambda), "a function that takes a lambda stays where it is");
        assert_eq!(
            reason_of(DataFusionError::Internal("Unsupported: X".to_owned())),
            "a part of it cannot be written down"
        );
    }
}
