//! `EXPLAIN ANALYZE` with the rows that each operator was thought to give beside those that it gave: where they are far apart, the
//! statistics or the estimate misled the planner. And long constants in what `EXPLAIN` shows.

mod short_constants;

use std::fmt;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Instant;

use arrow::array::{ArrayRef, RecordBatch, StringArray};
use datafusion::common::Statistics;
use datafusion::common::display::StringifiedPlan;
use datafusion::common::stats::Precision;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_plan::analyze::AnalyzeExec;
use datafusion::physical_plan::display::DisplayableExecutionPlan;
use datafusion::physical_plan::explain::ExplainExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, Partitioning, PlanProperties, execute_stream,
};
use futures::StreamExt;

use self::short_constants::with_short_constants;

/// Puts a node that shows estimates in the place of DataFusion's, where a plan is that of `EXPLAIN ANALYZE`.
pub(crate) fn with_estimates(plan: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
    match plan.downcast_ref::<AnalyzeExec>() {
        Some(analyze) => Arc::new(AnalyzedPlanExec::new(analyze.verbose(), Arc::clone(analyze.input()), &plan)),
        None => plan,
    }
}

/// Returns the plan of an `EXPLAIN` with its long lists of constants cut.
pub(crate) fn with_short_lists(explained: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
    let Some(shown) = explained.downcast_ref::<ExplainExec>() else { return explained };
    let short = |plan: &StringifiedPlan| StringifiedPlan::new(plan.plan_type.clone(), with_short_constants(&plan.plan));
    let plans = shown.stringified_plans().iter().map(short).collect();
    Arc::new(ExplainExec::new(shown.schema(), plans, shown.verbose()))
}

/// Runs its input, drops the rows, and gives the plan as text with what was measured.
#[derive(Debug)]
struct AnalyzedPlanExec {
    verbose: bool,
    input: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
}

impl AnalyzedPlanExec {
    /// Returns the node over `input` with the schema of `replaced`.
    fn new(verbose: bool, input: Arc<dyn ExecutionPlan>, replaced: &Arc<dyn ExecutionPlan>) -> Self {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(replaced.schema()),
            Partitioning::UnknownPartitioning(1),
            input.pipeline_behavior(),
            input.boundedness(),
        );
        Self { verbose, input, properties: Arc::new(properties) }
    }
}

impl DisplayAs for AnalyzedPlanExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AnalyzedPlanExec: verbose={}", self.verbose)
    }
}

impl ExecutionPlan for AnalyzedPlanExec {
    fn name(&self) -> &'static str {
        "AnalyzedPlanExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn with_new_children(self: Arc<Self>, mut children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        let wrong = || DataFusionError::Internal("an analysed plan has one input".to_owned());
        let input = children.pop().ok_or_else(wrong)?;
        let this = Arc::clone(&self) as Arc<dyn ExecutionPlan>;
        Ok(Arc::new(Self::new(self.verbose, input, &this)))
    }

    fn execute(&self, _partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let mut rows = execute_stream(Arc::clone(&self.input), context)?;
        let (input, verbose, schema) = (Arc::clone(&self.input), self.verbose, self.schema());
        let begun = Instant::now();
        let told = async move {
            let mut count = 0;
            while let Some(batch) = rows.next().await {
                count += batch?.num_rows();
            }
            let took = begun.elapsed();
            let mut texts = vec![("Plan with Metrics", annotated(&input, Metrics::Summed)?)];
            if verbose {
                texts.push(("Plan with Full Metrics", annotated(&input, Metrics::ByPartition)?));
                texts.push(("Output Rows", count.to_string()));
                texts.push(("Duration", format!("{took:?}")));
            }
            let kinds = StringArray::from_iter_values(texts.iter().map(|(kind, _)| *kind));
            let plans = StringArray::from_iter_values(texts.iter().map(|(_, text)| text));
            Ok(RecordBatch::try_new(schema, vec![Arc::new(kinds) as ArrayRef, Arc::new(plans)])?)
        };
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), futures::stream::once(told))))
    }
}

#[derive(Clone, Copy)]
enum Metrics {
    Summed,
    ByPartition,
}

/// Returns a plan as a line an operator, each with what was measured of it.
fn annotated(plan: &Arc<dyn ExecutionPlan>, metrics: Metrics) -> Result<String> {
    let mut text = String::new();
    let mut waiting = vec![(plan, 0)];
    while let Some((node, depth)) = waiting.pop() {
        let shown = match metrics {
            Metrics::Summed => DisplayableExecutionPlan::with_metrics(node.as_ref()),
            Metrics::ByPartition => DisplayableExecutionPlan::with_full_metrics(node.as_ref()),
        };
        let line = with_short_constants(&shown.one_line().to_string());
        let (operator, measured) = line.trim_end().rsplit_once(", metrics=[").unwrap_or((line.trim_end(), "]"));
        let estimate = estimated_rows(&*node.partition_statistics(None)?);
        let indent = 2 * depth;
        // Writing to a text does not fail.
        let _ = writeln!(text, "{:indent$}{operator}, estimated_rows={estimate}, metrics=[{measured}", "");
        waiting.extend(node.children().into_iter().rev().map(|child| (child, depth + 1)));
    }
    Ok(text)
}

fn estimated_rows(statistics: &Statistics) -> String {
    match statistics.num_rows {
        Precision::Exact(rows) | Precision::Inexact(rows) => rows.to_string(),
        Precision::Absent => "unknown".to_owned(),
    }
}
