//! SQL through `Session` on external Parquet against the same DataFusion's `SessionContext` used bare: the 22 TPC-H
//! queries at scale 1, five interleaved runs, medians.

use std::path::Path;
use std::time::Instant;

use querent_catalog::Principal;
use querent_engine::{Engine, Limits};

use super::suites::{TPCH, bare_datafusion, engine_of, import, medians, queries_of, scale_of};
use crate::Failure;
use crate::harness::{Figure, Peer, measure_in_process};

const RUNS: usize = 5;
const BAR: f64 = 1.05;

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

    // Each query's median: one disturbed query does not make a run's total another.
    let (ours, theirs) = (medians(&ours), medians(&theirs));
    let total = |times: &[f64]| times.iter().sum::<f64>();
    let peer = |value| Peer { name: "datafusion".to_string(), value };
    let name = format!("TPC-H scale {}, sum of medians", scale_of(&TPCH)?);
    let mut figures = vec![Figure::against(name, total(&ours), "ms", peer(total(&theirs)), Some(BAR))];
    for (query, (ours, theirs)) in ours.into_iter().zip(theirs).enumerate() {
        figures.push(Figure::against(format!("TPC-H q{}", query + 1), ours, "ms", peer(theirs), None));
    }
    Ok(figures)
}

/// Milliseconds a query, through the engine.
pub(crate) async fn measure_querent(lake: &Path) -> Result<serde_json::Value, Failure> {
    let engine = engine_of(lake).await?;
    let session = engine.session(Principal::local_admin(), Limits::default()).read_only();
    let mut times = Vec::new();
    for (_, query) in queries_of(&TPCH).await? {
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
    let context = bare_datafusion(&TPCH).await?;
    let mut times = Vec::new();
    for (_, query) in queries_of(&TPCH).await? {
        let started = Instant::now();
        context.sql(&query).await?.collect().await?;
        times.push(started.elapsed().as_secs_f64() * 1e3);
    }
    Ok(serde_json::to_value(times)?)
}

async fn register(lake: &Path) -> Result<(), Failure> {
    let engine = Engine::open(lake).await?;
    import(&TPCH, &engine, true).await?;
    engine.close().await?;
    Ok(())
}
