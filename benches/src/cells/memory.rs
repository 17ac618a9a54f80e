//! TPC-H at scale 10 with a small pool: whether each of the 22 queries over external Parquet completes with DuckDB's rows, and
//! how much memory the process takes for it. `QUERENT_BENCH_SCALE` takes another scale.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use querent_catalog::{NoProgress, Principal};
use querent_engine::{Engine, EngineOptions, Limits};
use serde::{Deserialize, Serialize};

use super::catalog::memory_mib;
use super::suites::{
    SuitePeer, SuiteRows, TPCH_TEN, duckdb, first_difference, import, queries_of, rows_in, rows_of, settings,
};
use crate::Failure;
use crate::harness::{Figure, cache_folder, measure_in_process};

/// The memory that all queries share.
const POOL_BYTES: usize = 2 << 30;
const RESIDENT_BAR_MIB: f64 = 2_560.0;
/// A query that spills may take long.
const WALL_CLOCK: Duration = Duration::from_secs(1_800);

#[derive(Serialize, Deserialize)]
struct MemoryMeasurement {
    queries: Vec<BoundedQuery>,
    /// The most memory that the process had, at any time.
    peak_resident_mib: f64,
}

#[derive(Serialize, Deserialize)]
struct BoundedQuery {
    name: String,
    milliseconds: f64,
    /// The most memory that the process had meanwhile.
    peak_resident_mib: f64,
    outcome: Result<SuiteRows, String>,
}

pub(crate) async fn run() -> Result<Vec<Figure>, Failure> {
    let folder = tempfile::tempdir_in(cache_folder()?)?;
    let measured: MemoryMeasurement = measure_in_process("memory", folder.path()).await?;
    duckdb(&TPCH_TEN, SuitePeer::DuckDbParquet, 0, folder.path()).await?;
    let expected = rows_in(folder.path(), SuitePeer::DuckDbParquet).await?;
    let mut faults = Vec::new();
    for (query, theirs) in measured.queries.iter().zip(&expected) {
        let fault = match &query.outcome {
            Ok(rows) => first_difference(rows, theirs),
            Err(message) => Some(message.clone()),
        };
        faults.extend(fault.map(|fault| format!("{}: {fault}", query.name)));
    }
    if !faults.is_empty() {
        return Err(faults.join("\n").into());
    }
    let all = measured.queries.len() as f64;
    let mut figures = vec![
        Figure::at_least("queries that complete with DuckDB's rows", all, "queries", Some(22.0)),
        Figure::alone("peak resident memory", measured.peak_resident_mib, "MiB", Some(RESIDENT_BAR_MIB)),
    ];
    for query in &measured.queries {
        figures.push(Figure::alone(format!("{}, the first time", query.name), query.milliseconds, "ms", None));
        figures.push(Figure::alone(
            format!("{}: peak resident memory", query.name),
            query.peak_resident_mib,
            "MiB",
            None,
        ));
    }
    Ok(figures)
}

pub(crate) async fn measure(folder: &Path) -> Result<serde_json::Value, Failure> {
    let lake = tempfile::tempdir_in(folder)?;
    let engine = Engine::open_with(EngineOptions {
        memory_bytes: Some(POOL_BYTES),
        embedder: None,
        datafusion_settings: settings()?,
        progress: Arc::new(NoProgress),
        ..EngineOptions::new(lake.path())
    })
    .await?;
    import(&TPCH_TEN, &engine, true).await?;
    let limits = Limits { wall_clock: WALL_CLOCK, memory_bytes: POOL_BYTES, ..Limits::default() };
    let session = engine.session(Principal::local_admin(), limits).read_only();
    let mut queries = Vec::new();
    let mut peak_resident_mib = memory_mib("VmHWM").await?;
    for (name, text) in queries_of(&TPCH_TEN).await? {
        forget_peak().await?;
        let started = Instant::now();
        let outcome = match session.sql(&text).await {
            Ok(stream) => stream.collect().await,
            Err(error) => Err(error),
        };
        let milliseconds = started.elapsed().as_secs_f64() * 1e3;
        let outcome = match outcome {
            Ok((batches, _)) => Ok(rows_of(&batches)?),
            Err(error) => Err(error.to_string()),
        };
        let of_query = memory_mib("VmHWM").await?;
        peak_resident_mib = f64::max(peak_resident_mib, of_query);
        queries.push(BoundedQuery { name, milliseconds, peak_resident_mib: of_query, outcome });
    }
    engine.close().await?;
    Ok(serde_json::to_value(MemoryMeasurement { queries, peak_resident_mib })?)
}

/// Makes the memory that the process has now the most that it had.
async fn forget_peak() -> Result<(), Failure> {
    Ok(tokio::fs::write("/proc/self/clear_refs", "5").await?)
}
