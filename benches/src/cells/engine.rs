//! SQL through `Session` on external Parquet against the same DataFusion's `SessionContext` used bare: the 22 TPC-H
//! queries at scale 1, five interleaved runs, medians.

use std::path::Path;
use std::time::Instant;

use datafusion::prelude::{ParquetReadOptions, SessionContext};
use querent_catalog::{Principal, TableName};
use querent_engine::{Engine, ImportRequest, Limits};

use crate::Failure;
use crate::harness::{Figure, Peer, cache_folder, measure_in_process, median};

const RUNS: usize = 5;
const BAR: f64 = 1.05;
const TABLES: &[&str] = &["customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier"];

pub(crate) async fn run() -> Result<Vec<Figure>, Failure> {
    let lake = tempfile::tempdir()?;
    register(lake.path()).await?;
    let bar = indicatif::ProgressBar::new((2 * RUNS) as u64).with_message("TPC-H");
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for round in 0..RUNS {
        // Neither is always the one that runs on the warmer machine.
        for ours_now in [round % 2 == 0, round % 2 == 1] {
            let name = if ours_now { "tpch-querent" } else { "tpch-datafusion" };
            let times = measure_in_process::<Vec<f64>>(name, lake.path()).await?;
            if ours_now {
                ours.push(times)
            } else {
                theirs.push(times)
            }
            bar.inc(1);
        }
    }
    bar.finish_and_clear();

    let query_count = queries().await?.len();
    let at = |runs: &[Vec<f64>], query: usize| median(&runs.iter().map(|run| run[query]).collect::<Vec<_>>());
    // Each query's median: one disturbed query does not make a run's total another.
    let total = |runs: &[Vec<f64>]| (0..query_count).map(|query| at(runs, query)).sum::<f64>();
    let peer = |value| Peer { name: "datafusion".to_string(), value };
    let mut figures =
        vec![Figure::against("TPC-H scale 1, sum of medians", total(&ours), "ms", peer(total(&theirs)), Some(BAR))];
    for query in 0..query_count {
        figures.push(Figure::against(
            format!("TPC-H q{}", query + 1),
            at(&ours, query),
            "ms",
            peer(at(&theirs, query)),
            None,
        ));
    }
    Ok(figures)
}

/// Milliseconds a query, through the engine.
pub(crate) async fn measure_querent(lake: &Path) -> Result<serde_json::Value, Failure> {
    let engine = Engine::open(lake).await?;
    let session = engine.session(Principal::local_admin(), Limits::default()).read_only();
    let mut times = Vec::new();
    for query in queries().await? {
        let started = Instant::now();
        session.sql(&query).await?.collect().await?;
        times.push(started.elapsed().as_secs_f64() * 1e3);
    }
    engine.close().await?;
    Ok(serde_json::to_value(times)?)
}

/// Milliseconds a query, through DataFusion alone.
#[expect(clippy::disallowed_methods, reason = "the peer is DataFusion used bare")]
pub(crate) async fn measure_datafusion(_lake: &Path) -> Result<serde_json::Value, Failure> {
    let context = SessionContext::new();
    for table in TABLES {
        let file = cache_folder()?.join("tpch-sf1").join(format!("{table}.parquet"));
        context.register_parquet(*table, file.to_string_lossy(), ParquetReadOptions::default()).await?;
    }
    let mut times = Vec::new();
    for query in queries().await? {
        let started = Instant::now();
        context.sql(&query).await?.collect().await?;
        times.push(started.elapsed().as_secs_f64() * 1e3);
    }
    Ok(serde_json::to_value(times)?)
}

async fn register(lake: &Path) -> Result<(), Failure> {
    let engine = Engine::open(lake).await?;
    for table in TABLES {
        let file = cache_folder()?.join("tpch-sf1").join(format!("{table}.parquet"));
        let request = ImportRequest {
            source: file.to_string_lossy().into_owned(),
            format: None,
            options: Default::default(),
            table: TableName::new("default", *table),
            external: true,
            if_exists: Some(querent_catalog::IfExists::Error),
        };
        engine.import(&Principal::local_admin(), request, std::sync::Arc::new(querent_catalog::NoProgress)).await?;
    }
    engine.close().await?;
    Ok(())
}

async fn queries() -> Result<Vec<String>, Failure> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("queries/tpch");
    let mut texts = Vec::new();
    for number in 1..=22 {
        texts.push(tokio::fs::read_to_string(folder.join(format!("q{number:02}.sql"))).await?);
    }
    Ok(texts)
}
