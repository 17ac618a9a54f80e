//! The spans of statements, for whoever follows a request from door to operator: planning, execution, and what each operator
//! of a plan did.
//!
//! All have the target [`TRACE_TARGET`], which the log leaves out: where nobody collects it, a span costs the look at whether
//! somebody does. A span holds no value of a statement; its text is in it only where [`show_statements`] says so, as the audit
//! log has it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::StreamExt;
use tracing::field::Empty;
use tracing::{Instrument, Span};

use crate::error::Result;

/// The target of all spans and events that are made to be collected, and not to be logged.
pub const TRACE_TARGET: &str = "querent::trace";
/// The most operators of one plan that are told of: a span keeps 128 events.
const MAX_OPERATORS: usize = 120;

static SHOWS_STATEMENTS: AtomicBool = AtomicBool::new(false);

/// Says whether the spans of this process have the texts of statements.
pub fn show_statements(shown: bool) {
    SHOWS_STATEMENTS.store(shown, Ordering::Relaxed);
}

/// Returns the span of a statement from its beginning to its last row.
pub(crate) fn statement_span(database: &str, door: &'static str, text: impl FnOnce() -> String) -> Span {
    let span = tracing::info_span!(
        target: TRACE_TARGET,
        "statement",
        "db.system.name" = "querent",
        "db.namespace" = database,
        "db.query.text" = Empty,
        "db.response.returned_rows" = Empty,
        "querent.door" = door,
        "error.type" = Empty,
        "otel.status_code" = Empty,
    );
    if !span.is_disabled() && SHOWS_STATEMENTS.load(Ordering::Relaxed) {
        span.record("db.query.text", text());
    }
    span
}

/// Records how the work of a span ended.
pub(crate) fn record_end(span: &Span, rows: Option<u64>, error: Option<&'static str>) {
    if let Some(rows) = rows {
        span.record("db.response.returned_rows", as_integer(rows));
    }
    if let Some(code) = error {
        span.record("error.type", code).record("otel.status_code", "ERROR");
    }
}

/// Plans and authorises a statement in a span of its own, which belongs to the span in which this is called.
pub(crate) fn traced_plan<T>(
    language: &'static str,
    planning: impl Future<Output = Result<T>>,
) -> impl Future<Output = Result<T>> {
    let span = tracing::info_span!(
        target: TRACE_TARGET,
        "plan",
        "querent.language" = language,
        "error.type" = Empty,
        "otel.status_code" = Empty,
    );
    async move {
        let planned = planning.instrument(span.clone()).await;
        record_end(&span, None, planned.as_ref().err().map(|error| error.code()));
        planned
    }
}

/// Begins the execution of a plan in a span that lasts as long as its rows, and has an event for each operator.
pub(crate) fn traced_execution(
    plan: Arc<dyn ExecutionPlan>,
    execute: impl FnOnce(Arc<dyn ExecutionPlan>) -> Result<SendableRecordBatchStream>,
) -> Result<SendableRecordBatchStream> {
    let span = tracing::info_span!(target: TRACE_TARGET, "execute");
    if span.is_disabled() {
        return execute(plan);
    }
    let rows = span.in_scope(|| execute(Arc::clone(&plan)))?;
    let executed = ExecutedPlan { plan, span };
    let schema = rows.schema();
    let rows = rows.inspect(move |_| {
        let _reported_when_dropped = &executed;
    });
    Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
}

/// Tells of a plan's operators when it is dropped: only then are their metrics final.
struct ExecutedPlan {
    plan: Arc<dyn ExecutionPlan>,
    span: Span,
}

impl Drop for ExecutedPlan {
    fn drop(&mut self) {
        let _entered = self.span.enter();
        let mut left = MAX_OPERATORS;
        report_operators(&*self.plan, 0, &mut left);
    }
}

fn report_operators(plan: &dyn ExecutionPlan, depth: u64, left: &mut usize) {
    if *left == 0 {
        return;
    }
    *left -= 1;
    let metrics = plan.metrics().unwrap_or_default();
    let number = |value: Option<usize>| value.map(|value| as_integer(value as u64));
    tracing::info!(
        target: TRACE_TARGET,
        {
            querent.operator.name = plan.name(),
            querent.operator.depth = as_integer(depth),
            querent.operator.rows = number(metrics.output_rows()),
            querent.operator.compute_ns = number(metrics.elapsed_compute()),
            querent.operator.spills = number(metrics.spill_count()),
            querent.operator.spilled_bytes = number(metrics.spilled_bytes()),
        },
        "operator"
    );
    for child in plan.children() {
        report_operators(&**child, depth + 1, left);
    }
}

/// Spans have no unsigned integers: they would become texts.
fn as_integer(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
