//! KQL over ten million rows of synthetic logs: ten queries as they are written in the field, against the same question
//! in SQL through the same engine, and against duckdb-kql on the same Parquet files. Five interleaved runs, medians.
//! `QUERENT_BENCH_ROWS` takes another number of rows.

use std::path::{Path, PathBuf};
use std::time::Instant;

use querent_catalog::Principal;
use querent_engine::{Engine, Limits};
use tokio::process::Command;

use crate::Failure;
use crate::harness::{Figure, Peer, cache_folder, measure_in_process, median};

const ROWS: u64 = 10_000_000;
const RUNS: usize = 5;
/// KQL's time against SQL's.
const SQL_BAR: f64 = 1.1;
/// KQL's time against duckdb-kql's, in total.
const DUCKDB_BAR: f64 = 1.0;

/// A day of logs of fifty services. The numbers are spread by multiplication, so that every run has the same rows.
const TABLES: &[&str] = &[
    "CREATE TABLE owners AS SELECT 'svc-' || i AS service, 'team-' || (i % 7) AS team FROM generate_series(0, 49) AS s(i)",
    "CREATE TABLE logs AS
     SELECT i AS id,
            to_timestamp_micros(1767225600000000 + i * {step}) AS timestamp,
            'svc-' || (h % 50) AS service,
            CASE WHEN h % 100 < 3 THEN 'ERROR' WHEN h % 100 < 10 THEN 'WARN' ELSE 'INFO' END AS level,
            CASE WHEN h % 97 < 2 THEN 503 WHEN h % 97 < 9 THEN 404 ELSE 200 END AS status,
            (h % 1000) AS duration_ms,
            (h % 65536) AS bytes,
            (h % 200000) AS user_id,
            '/' || CASE WHEN h % 3 = 0 THEN 'static' ELSE 'api' END || '/p' || (h % 40) || '/' || (h % 1000) AS path,
            CASE h % 11 WHEN 0 THEN 'upstream timeout after retry' WHEN 1 THEN 'connection_timeout closed'
                 WHEN 2 THEN 'request served from cache' ELSE 'request handled' END || ' for user ' || (h % 200000) AS message
     FROM (SELECT i, (i * 2654435761) % 4294967291 AS h FROM generate_series(1, {rows}) AS s(i))",
];

pub(crate) async fn run() -> Result<Vec<Figure>, Failure> {
    let rows = match std::env::var("QUERENT_BENCH_ROWS") {
        Ok(text) => text.trim().parse()?,
        Err(_) => ROWS,
    };
    let lake = tempfile::tempdir()?;
    make_tables(lake.path(), rows).await?;
    let bar = indicatif::ProgressBar::new((3 * RUNS) as u64).with_message("KQL");
    let mut times: [Vec<Vec<Option<f64>>>; 3] = Default::default();
    for round in 0..RUNS {
        // None is always the one that runs on the warmer machine.
        for turn in 0..3 {
            let who = (round + turn) % 3;
            times[who].push(match who {
                0 => measure_in_process("kql", lake.path()).await?,
                1 => measure_in_process("kql-as-sql", lake.path()).await?,
                _ => duckdb(lake.path()).await?,
            });
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    let names: Vec<String> = queries("kql").await?.into_iter().map(|(name, _)| name).collect();
    let at = |who: usize, query: usize| -> Option<f64> {
        let runs: Option<Vec<f64>> = times[who].iter().map(|run| run.get(query).copied().flatten()).collect();
        runs.map(|runs| median(&runs))
    };
    let total = |who: usize, asked: &dyn Fn(usize) -> bool| -> f64 {
        (0..names.len()).filter(|query| asked(*query)).filter_map(|query| at(who, query)).sum()
    };
    let everything = |_: usize| true;
    let shared = |query: usize| at(2, query).is_some();
    let shared_count = (0..names.len()).filter(|query| shared(*query)).count();
    let sql = Peer { name: "the same in SQL".to_string(), value: total(1, &everything) };
    let duckdb = Peer { name: "duckdb-kql".to_string(), value: total(2, &shared) };
    let mut figures = vec![
        Figure::against(format!("ten KQL queries over {rows} rows"), total(0, &everything), "ms", sql, Some(SQL_BAR)),
        Figure::against(
            format!("the {shared_count} of them that duckdb-kql answers"),
            total(0, &shared),
            "ms",
            duckdb,
            Some(DUCKDB_BAR),
        ),
    ];
    for (query, name) in names.iter().enumerate() {
        let ours = at(0, query).unwrap_or_default();
        let sql = Peer { name: "the same in SQL".to_string(), value: at(1, query).unwrap_or_default() };
        figures.push(Figure::against(name.clone(), ours, "ms", sql, None));
    }
    Ok(figures)
}

async fn make_tables(lake: &Path, rows: u64) -> Result<(), Failure> {
    const DAY_MICROS: u64 = 86_400_000_000;
    let engine = Engine::open(lake).await?;
    let session = engine.session(Principal::local_admin(), Limits::default());
    let step = (DAY_MICROS / rows.max(1)).max(1);
    for table in TABLES {
        let sql = table.replace("{rows}", &rows.to_string()).replace("{step}", &step.to_string());
        session.sql(&sql).await?.collect().await?;
    }
    engine.close().await?;
    Ok(())
}

/// Milliseconds a query of a language, `kql` or `sql`.
pub(crate) async fn measure(lake: &Path, language: &str) -> Result<serde_json::Value, Failure> {
    let engine = Engine::open(lake).await?;
    let session = engine.session(Principal::local_admin(), Limits::default()).read_only();
    let mut times = Vec::new();
    for (name, text) in queries(language).await? {
        let started = Instant::now();
        let answer = async {
            let rows = if language == "kql" { session.kql(&text).await? } else { session.sql(&text).await? };
            rows.collect().await
        };
        let (_, stats) = answer.await.map_err(|error| format!("{name}: {error}"))?;
        times.push(started.elapsed().as_secs_f64() * 1e3);
        answered(&name, stats.rows)?;
    }
    engine.close().await?;
    Ok(serde_json::to_value(times)?)
}

/// A query that finds nothing measures nothing.
fn answered(name: &str, rows: u64) -> Result<(), Failure> {
    if rows == 0 { Err(format!("{name} returned no rows").into()) } else { Ok(()) }
}

async fn duckdb(lake: &Path) -> Result<Vec<Option<f64>>, Failure> {
    let benches = Path::new(env!("CARGO_MANIFEST_DIR"));
    let files = |table: &str| -> Result<PathBuf, Failure> {
        let folder = lake.join("data/default").join(table);
        match folder.is_dir() {
            true => Ok(folder.join("**/*.parquet")),
            false => Err(format!("no folder {}", folder.display()).into()),
        }
    };
    let output = Command::new(cache_folder()?.join("bench-venv/bin/python"))
        .arg(benches.join("kql_duckdb.py"))
        .arg(folder_of_queries())
        .args([files("logs")?, files("owners")?])
        .output()
        .await?;
    if !output.status.success() {
        return Err(format!("duckdb-kql failed: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

fn folder_of_queries() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("queries/kql")
}

/// The queries of a language, by name, in order.
async fn queries(extension: &str) -> Result<Vec<(String, String)>, Failure> {
    let mut found = Vec::new();
    let mut entries = tokio::fs::read_dir(folder_of_queries()).await?;
    while let Some(entry) = entries.next_entry().await? {
        let path = entry.path();
        if path.extension().is_some_and(|it| it == extension) {
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            found.push((name, tokio::fs::read_to_string(&path).await?));
        }
    }
    found.sort();
    Ok(found)
}
