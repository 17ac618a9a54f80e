//! Other engines of PyPI beside a suite: those that `QUERENT_BENCH_PEERS` names (`polars`, `chdb`, `datafusion`), compared in the
//! queries which they run and whose rows are DuckDB's.

use std::path::Path;
use std::process::Stdio;

use tokio::process::Command;

use super::{ROUNDS, Suite, SuiteRows, data_of, first_difference, queries_folder};
use crate::Failure;
use crate::harness::{Figure, Peer, cache_folder, median};

const KNOWN: [&str; 3] = ["polars", "chdb", "datafusion"];
/// The peer of a cluster, which no suite measures.
pub(crate) const BALLISTA: &str = "ballista";

/// The engines that `QUERENT_BENCH_PEERS` names.
pub(crate) fn named_peers() -> impl Iterator<Item = String> {
    let named = std::env::var("QUERENT_BENCH_PEERS").unwrap_or_default();
    named.split(',').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect::<Vec<_>>().into_iter()
}

/// Measures the named engines one after the other: `ours` are the milliseconds of each query over external files, `expected`
/// DuckDB's rows.
pub(super) async fn figures(
    suite: &Suite,
    ours: &[f64],
    expected: &[SuiteRows],
    folder: &Path,
) -> Result<Vec<Figure>, Failure> {
    let mut figures = Vec::new();
    for name in named_peers().filter(|name| name != BALLISTA) {
        if !KNOWN.contains(&name.as_str()) {
            let known = KNOWN.join(",");
            return Err(format!("QUERENT_BENCH_PEERS has `{name}`; it takes some of {known},{BALLISTA}").into());
        }
        let (times, rows) = measure(suite, &name, folder).await?;
        let (mut total, mut theirs, mut equal) = (0.0, 0.0, 0);
        for (query, (rows, expected)) in rows.iter().zip(expected).enumerate() {
            let taken = times.iter().skip(1).filter_map(|round| round[query]).collect::<Vec<_>>();
            let same = rows.as_ref().is_some_and(|rows| first_difference(rows, expected).is_none());
            if same && taken.len() == ROUNDS {
                (total, theirs, equal) = (total + ours[query], theirs + median(&taken), equal + 1);
            }
        }
        let label = format!("{}, external, {equal} of {} queries", suite.name, expected.len());
        figures.push(Figure::against(label, total, "ms", Peer { name, value: theirs }, None));
    }
    Ok(figures)
}

type OtherRounds = Vec<Vec<Option<f64>>>;

async fn measure(suite: &Suite, name: &str, folder: &Path) -> Result<(OtherRounds, Vec<Option<SuiteRows>>), Failure> {
    let rows = folder.join(format!("{name}.json"));
    let output = Command::new(cache_folder()?.join("peers-venv/bin/python"))
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("suite_peers.py"))
        .arg(name)
        .arg(queries_folder(suite))
        .arg(data_of(suite).await?)
        .arg(ROUNDS.to_string())
        .arg(&rows)
        // It says there which queries it did not run, and why.
        .stderr(Stdio::inherit())
        .output()
        .await?;
    if !output.status.success() {
        return Err(format!("{name} failed: {}", output.status).into());
    }
    Ok((serde_json::from_slice(&output.stdout)?, serde_json::from_slice(&tokio::fs::read(rows).await?)?))
}
