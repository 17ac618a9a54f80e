//! The server's metrics, as Prometheus series with the prefix `querent_`.
//!
//! Every series is named and described here; the rest of the crate calls the functions below. Labels hold only names
//! from closed sets, so that no client can add series.

use std::time::{Duration, Instant};

use metrics::{counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram};
use metrics_exporter_prometheus::{BuildError, PrometheusBuilder, PrometheusHandle};
use parking_lot::Mutex;
use querent_agent::{RunErrorCode, RunOutcome, RunWatcher, ToolResult, ToolStatus, Usage};
use querent_engine::{ColumnCacheState, Engine, FileCacheState, PlanCacheState, ResultCacheState};

/// How the names of series begin that count the catalog's objects.
const INDEX_SERIES: &str = "querent_index_";
/// Upper bounds of the duration histograms, in seconds.
const DURATION_BUCKETS: [f64; 14] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0, 300.0];

/// Installs the process's recorder at the first call and returns its handle. The `metrics` crate has one recorder a
/// process.
pub fn install() -> Result<PrometheusHandle, BuildError> {
    static INSTALLED: Mutex<Option<PrometheusHandle>> = Mutex::new(None);
    let mut installed = INSTALLED.lock();
    if let Some(handle) = &*installed {
        return Ok(handle.clone());
    }
    let recorder = PrometheusBuilder::new().set_buckets(&DURATION_BUCKETS)?.build_recorder();
    let handle = recorder.handle();
    if metrics::set_global_recorder(recorder).is_err() {
        tracing::warn!("another metrics recorder is installed in this process; /metrics stays empty");
    }
    describe();
    *installed = Some(handle.clone());
    Ok(handle)
}

fn describe() {
    describe_counter!("querent_http_requests_total", "HTTP requests answered, by route, method and status");
    describe_histogram!("querent_http_request_duration_seconds", "time to the response's headers, by route");
    describe_counter!("querent_errors_total", "errors sent to clients, by code");
    describe_gauge!("querent_connections", "open connections");
    describe_counter!("querent_connections_total", "connections accepted");
    describe_gauge!("querent_queries_running", "queries running");
    describe_gauge!("querent_queries_waiting", "queries that wait for their turn to begin");
    describe_histogram!(
        "querent_query_wait_seconds",
        "how long queries waited for their turn, by door; others did not wait"
    );
    describe_counter!("querent_queries_total", "queries ended, by door and outcome");
    describe_histogram!("querent_query_duration_seconds", "from admission to the last row, by door");
    describe_counter!("querent_query_rows_total", "rows delivered, by door");
    describe_gauge!("querent_column_cache_bytes", "memory of decoded columns that are kept for the next query");
    describe_counter!("querent_column_cache_hits_total", "columns of row groups that scans found decoded");
    describe_counter!("querent_column_cache_misses_total", "columns of row groups that scans decoded");
    describe_gauge!("querent_plan_cache_bytes", "memory of plans that are kept for statements that come again");
    describe_counter!("querent_plan_cache_hits_total", "statements whose plan was known");
    describe_counter!("querent_plan_cache_misses_total", "statements that were planned and whose plan was kept");
    describe_gauge!("querent_result_cache_bytes", "memory of rows that are kept for queries that come again");
    describe_counter!("querent_result_cache_hits_total", "queries that kept rows answered");
    describe_counter!("querent_result_cache_misses_total", "queries that were executed and whose rows were kept");
    describe_gauge!("querent_file_cache_bytes", "disk of parts of files in an object store");
    describe_counter!("querent_file_cache_hits_total", "blocks of files in an object store that the disk had");
    describe_counter!("querent_file_cache_misses_total", "blocks of files in an object store that were fetched");
    describe_gauge!("querent_catalog_reachable", "1 where the catalog can be read, 0 where a shared one is away");
    describe_gauge!("querent_resident_bytes", "memory that the process takes of the machine");
    describe_gauge!("querent_disk_free_bytes", "room that the disk of the data folder has left");
    describe_gauge!("querent_spill_bytes", "disk that running queries have spilled to");
    describe_gauge!("querent_index_in_memory", "objects that the index has yet to write to its files, by kind");
    describe_gauge!("querent_index_without_vector", "objects that are not found by meaning yet, by kind");
    describe_gauge!("querent_runs_running", "agent runs in progress");
    describe_counter!("querent_runs_total", "agent runs ended, by outcome");
    describe_histogram!("querent_run_duration_seconds", "wall clock of agent runs");
    describe_counter!("querent_tool_calls_total", "tool calls of agent runs and of MCP clients, by tool and outcome");
    describe_histogram!("querent_tool_duration_seconds", "from a tool's call to its result, by tool");
    describe_gauge!("querent_mcp_sessions", "open sessions of MCP clients");
    describe_counter!(
        "querent_trace_spans_total",
        "spans that were exported, whose export failed, or that were dropped before it, by outcome"
    );
    describe_counter!("querent_model_tokens_total", "tokens the model reported, by direction");
}

/// Counts an answered HTTP request. `route` is the pattern, never the path.
pub fn http_request(route: &str, method: &http::Method, status: http::StatusCode, elapsed: Duration) {
    let method = match *method {
        http::Method::GET => "GET",
        http::Method::POST => "POST",
        http::Method::HEAD => "HEAD",
        http::Method::OPTIONS => "OPTIONS",
        _ => "other",
    };
    let (route, status) = (route.to_owned(), status.as_u16().to_string());
    counter!("querent_http_requests_total", "route" => route.clone(), "method" => method, "status" => status)
        .increment(1);
    histogram!("querent_http_request_duration_seconds", "route" => route).record(elapsed);
}

/// Counts an error that was sent to a client.
pub fn error(code: &str) {
    counter!("querent_errors_total", "code" => code.to_owned()).increment(1);
}

/// Counts an accepted connection, which is open until the guard is dropped.
pub fn connection_opened() -> GaugeGuard {
    counter!("querent_connections_total").increment(1);
    GaugeGuard::new("querent_connections")
}

/// Counts an admitted query.
pub fn query_started() {
    gauge!("querent_queries_running").increment(1.0);
}

/// Counts a query that waits for its turn, until the guard is dropped.
pub fn query_waiting(door: &'static str) -> WaitGuard {
    WaitGuard { door, began: Instant::now(), _waiting: GaugeGuard::new("querent_queries_waiting") }
}

/// Counts the end of an admitted query.
pub fn query_finished(door: &'static str, outcome: &'static str, rows: u64, elapsed: Duration) {
    gauge!("querent_queries_running").decrement(1.0);
    counter!("querent_queries_total", "door" => door, "outcome" => outcome).increment(1);
    counter!("querent_query_rows_total", "door" => door).increment(rows);
    histogram!("querent_query_duration_seconds", "door" => door).record(elapsed);
}

/// Shows what the engine keeps, and whether its catalog can be read, as of now.
pub fn engine_state(engine: &Engine) {
    column_cache(engine.column_cache());
    plan_cache(engine.plan_cache());
    result_cache(engine.result_cache());
    file_cache(engine.file_cache());
    catalog(engine.catalog().is_reachable());
    if let Some(bytes) = engine.resident_bytes() {
        gauge!("querent_resident_bytes").set(bytes as f64);
    }
    if let Some(bytes) = engine.catalog().free_disk_bytes() {
        gauge!("querent_disk_free_bytes").set(bytes as f64);
    }
    gauge!("querent_spill_bytes").set(engine.spilled_bytes() as f64);
    for part in engine.catalog().search().index_status() {
        gauge!("querent_index_in_memory", "objects" => part.objects).set(part.in_memory as f64);
        gauge!("querent_index_without_vector", "objects" => part.objects).set(part.without_vector as f64);
    }
}

/// Returns the series that a caller is shown: how many objects the index waits for is for those who see all of them.
pub fn shown(written: String, sees_all: bool) -> String {
    if sees_all {
        return written;
    }
    written.split_inclusive('\n').filter(|line| !line.contains(INDEX_SERIES)).collect()
}

/// Shows what the engine keeps of decoded columns, as of now.
pub fn column_cache(cache: ColumnCacheState) {
    gauge!("querent_column_cache_bytes").set(cache.bytes as f64);
    counter!("querent_column_cache_hits_total").absolute(cache.hits);
    counter!("querent_column_cache_misses_total").absolute(cache.misses);
}

/// Shows what the engine keeps of statements that were planned, as of now.
fn plan_cache(cache: PlanCacheState) {
    gauge!("querent_plan_cache_bytes").set(cache.bytes as f64);
    counter!("querent_plan_cache_hits_total").absolute(cache.hits);
    counter!("querent_plan_cache_misses_total").absolute(cache.misses);
}

/// Shows what the engine keeps of queries that were answered, as of now.
fn result_cache(cache: ResultCacheState) {
    gauge!("querent_result_cache_bytes").set(cache.bytes as f64);
    counter!("querent_result_cache_hits_total").absolute(cache.hits);
    counter!("querent_result_cache_misses_total").absolute(cache.misses);
}

/// Shows what the engine keeps of files in an object store, as of now.
pub fn file_cache(cache: FileCacheState) {
    gauge!("querent_file_cache_bytes").set(cache.bytes as f64);
    counter!("querent_file_cache_hits_total").absolute(cache.hits);
    counter!("querent_file_cache_misses_total").absolute(cache.misses);
}

/// Shows whether the catalog can be read.
fn catalog(is_reachable: bool) {
    gauge!("querent_catalog_reachable").set(f64::from(u8::from(is_reachable)));
}

/// Counts the agent's runs.
pub struct RunMetrics;

impl RunWatcher for RunMetrics {
    fn began(&self) {
        gauge!("querent_runs_running").increment(1.0);
    }

    fn tool_returned(&self, result: &ToolResult) {
        let outcome = match result.status {
            ToolStatus::Success | ToolStatus::NoData => "success",
            ToolStatus::Error => "error",
            ToolStatus::Denied => "denied",
            ToolStatus::Cancelled => "cancelled",
        };
        // A model may call tools that do not exist; their names must not become labels.
        let tool = querent_agent::known_tool(&result.tool).unwrap_or("unknown");
        tool_call(tool, outcome, Duration::from_millis(result.elapsed_ms));
    }

    fn ended(&self, outcome: RunOutcome, failure: Option<(RunErrorCode, &str)>, usage: &Usage) {
        gauge!("querent_runs_running").decrement(1.0);
        if let Some((_, code)) = failure {
            error(code);
        }
        let outcome = match (outcome, failure) {
            (RunOutcome::Success, _) => "success",
            (RunOutcome::Paused, _) => "paused",
            (RunOutcome::Cancelled, _) => "cancelled",
            (RunOutcome::Error | RunOutcome::BudgetExceeded, Some((code, _))) => code.as_str(),
            (RunOutcome::Error | RunOutcome::BudgetExceeded, None) => "internal",
        };
        counter!("querent_runs_total", "outcome" => outcome).increment(1);
        histogram!("querent_run_duration_seconds").record(Duration::from_millis(usage.elapsed_ms));
        counter!("querent_model_tokens_total", "direction" => "input").increment(usage.tokens.input_tokens);
        counter!("querent_model_tokens_total", "direction" => "output").increment(usage.tokens.output_tokens);
    }
}

/// Counts a tool call that returned.
pub fn tool_call(tool: &'static str, outcome: &'static str, elapsed: Duration) {
    counter!("querent_tool_calls_total", "tool" => tool, "outcome" => outcome).increment(1);
    histogram!("querent_tool_duration_seconds", "tool" => tool).record(elapsed);
}

/// Counts spans that were `exported`, whose export `failed`, or that were `dropped` because too many waited for it.
pub fn trace_spans(outcome: &'static str, spans: u64) {
    counter!("querent_trace_spans_total", "outcome" => outcome).increment(spans);
}

/// Sets the number of open MCP sessions.
pub fn mcp_sessions(open: usize) {
    gauge!("querent_mcp_sessions").set(open as f64);
}

/// Adds one to a gauge while it lives.
#[derive(Debug)]
pub struct GaugeGuard {
    series: &'static str,
}

/// Measures a wait, which ends when this is dropped.
pub struct WaitGuard {
    door: &'static str,
    began: Instant,
    _waiting: GaugeGuard,
}

impl Drop for WaitGuard {
    fn drop(&mut self) {
        histogram!("querent_query_wait_seconds", "door" => self.door).record(self.began.elapsed());
    }
}

impl GaugeGuard {
    fn new(series: &'static str) -> Self {
        gauge!(series).increment(1.0);
        Self { series }
    }
}

impl Drop for GaugeGuard {
    fn drop(&mut self) {
        gauge!(self.series).decrement(1.0);
    }
}
