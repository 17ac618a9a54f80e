//! Suites of SQL queries over Parquet files: each through a session on external tables and on managed ones, through the same
//! DataFusion used bare, and through DuckDB on the same files and on its own format. Every peer is a process of its own that
//! runs all queries once cold and then five times; every query's rows are compared with DuckDB's.

mod films;
mod hits;
mod peers;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

pub(super) use self::peers::{BALLISTA, named_peers};
use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type};
use arrow::util::display::array_value_to_string;
use datafusion::prelude::{ParquetReadOptions, SessionContext};
use querent_catalog::{IfExists, NoProgress, Principal, TableName};
use querent_engine::{Engine, EngineOptions, ImportRequest, Limits};
use serde_json::Value;
use tokio::process::Command;

use crate::Failure;
use crate::harness::{Figure, Peer, cache_folder, measure_in_process, median};

const ROUNDS: usize = 5;
/// Numbers that differ by no more than this part are equal: sums of doubles depend on their order.
const TOLERANCE: f64 = 1e-6;

/// A suite: where its queries and files are, and what it has to reach.
pub(crate) struct Suite {
    name: &'static str,
    /// The scale of TPC-H's files, where `QUERENT_BENCH_SCALE` takes no other.
    scale: u64,
    /// Milliseconds of the total against DuckDB on the same files.
    external_bar: f64,
    /// The same of managed tables against DuckDB's own format.
    managed_bar: Option<f64>,
    /// The worst query against DuckDB on the same files.
    worst_bar: f64,
    /// The total against bare DataFusion.
    bare_bar: f64,
}

/// TPC-H; `QUERENT_BENCH_SCALE` takes another scale than 1.
pub(crate) const TPCH: Suite =
    Suite { name: "tpch", scale: 1, external_bar: 1.0, managed_bar: Some(1.8), worst_bar: 2.0, bare_bar: 0.7 };

/// The same at scale 10.
pub(crate) const TPCH_TEN: Suite = Suite { scale: 10, ..TPCH };

/// ClickBench's 43 queries over [rows of ours](hits); `QUERENT_BENCH_ROWS` takes another number than ten million.
pub(crate) const CLICKBENCH: Suite =
    Suite { name: "clickbench", scale: 1, external_bar: 1.0, managed_bar: None, worst_bar: 2.0, bare_bar: 0.7 };

/// Queries in the shape of the Join Order Benchmark's over [films of ours](films).
pub(crate) const JOINS: Suite =
    Suite { name: "joins", scale: 1, external_bar: 1.2, managed_bar: None, worst_bar: 3.0, bare_bar: 0.7 };

/// One peer of a suite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SuitePeer {
    External,
    Managed,
    Bare,
    DuckDbParquet,
    DuckDbNative,
}

impl SuitePeer {
    const ALL: [Self; 5] = [Self::External, Self::DuckDbParquet, Self::Bare, Self::Managed, Self::DuckDbNative];

    fn name(self) -> &'static str {
        match self {
            Self::External => "external",
            Self::Managed => "managed",
            Self::Bare => "bare",
            Self::DuckDbParquet => "parquet",
            Self::DuckDbNative => "native",
        }
    }
}

/// Milliseconds a query, a list a round; the first round is the cold one.
pub(super) type Rounds = Vec<Vec<f64>>;

/// Measures a suite with all its peers.
pub(crate) async fn run(suite: &Suite) -> Result<Vec<Figure>, Failure> {
    data_of(suite).await?;
    let folder = tempfile::tempdir_in(cache_folder()?)?;
    let bar = indicatif::ProgressBar::new(SuitePeer::ALL.len() as u64).with_message(suite.name);
    let mut measured = Vec::new();
    for peer in SuitePeer::ALL {
        let rounds: Rounds = match peer {
            SuitePeer::DuckDbParquet | SuitePeer::DuckDbNative => duckdb(suite, peer, ROUNDS, folder.path()).await?,
            _ => measure_in_process(&format!("{}-{}", suite.name, peer.name()), folder.path()).await?,
        };
        measured.push((peer, rounds));
        bar.inc(1);
    }
    bar.finish_and_clear();
    let names = queries_of(suite).await?.into_iter().map(|(name, _)| name).collect::<Vec<_>>();
    let expected = rows_in(folder.path(), SuitePeer::DuckDbParquet).await?;
    let mut differences = Vec::new();
    for peer in [SuitePeer::External, SuitePeer::Managed] {
        let rows = rows_in(folder.path(), peer).await?;
        for ((name, ours), theirs) in names.iter().zip(&rows).zip(&expected) {
            if let Some(difference) = first_difference(ours, theirs) {
                differences.push(format!("{} {name}, {}: {difference}", suite.name, peer.name()));
            }
        }
    }
    if !differences.is_empty() {
        return Err(differences.join("\n").into());
    }
    let of = |peer: SuitePeer| measured.iter().find(|(of, _)| *of == peer).map(|(_, rounds)| rounds);
    let warm = |peer| of(peer).map(|rounds| medians(&rounds[1..])).unwrap_or_default();
    let cold = |peer| of(peer).and_then(|rounds| rounds.first().cloned()).unwrap_or_default();
    let total = |times: &[f64]| times.iter().sum::<f64>();
    let peer = |name: &str, value| Peer { name: name.to_owned(), value };
    let (external, managed) = (warm(SuitePeer::External), warm(SuitePeer::Managed));
    let (parquet, native, bare) =
        (warm(SuitePeer::DuckDbParquet), warm(SuitePeer::DuckDbNative), warm(SuitePeer::Bare));
    let against = |what: &str, ours: &[f64], name: &str, theirs: &[f64], bar| {
        Figure::against(format!("{}, {what}", suite.name), total(ours), "ms", peer(name, total(theirs)), bar)
    };
    let mut figures = vec![
        against("external", &external, "DuckDB on Parquet", &parquet, Some(suite.external_bar)),
        against("external, cold", &cold(SuitePeer::External), "DuckDB", &cold(SuitePeer::DuckDbParquet), None),
        against("external", &external, "DataFusion", &bare, Some(suite.bare_bar)),
        against("managed", &managed, "DuckDB's format", &native, suite.managed_bar),
        against("managed, cold", &cold(SuitePeer::Managed), "DuckDB's", &cold(SuitePeer::DuckDbNative), None),
    ];
    let worst = names.iter().zip(external.iter().zip(&parquet));
    if let Some((name, (ours, theirs))) = worst.max_by(|a, b| (a.1.0 / a.1.1).total_cmp(&(b.1.0 / b.1.1))) {
        let worst = format!("{}, worst query, {name}", suite.name);
        figures.push(Figure::against(worst, *ours, "ms", peer("DuckDB on Parquet", *theirs), Some(suite.worst_bar)));
    }
    for (query, name) in names.iter().enumerate() {
        let label = format!("{} {name}", suite.name);
        figures.push(Figure::against(label, external[query], "ms", peer("DuckDB on Parquet", parquet[query]), None));
        let label = format!("{} {name}, managed", suite.name);
        figures.push(Figure::against(label, managed[query], "ms", peer("DuckDB's format", native[query]), None));
        let label = format!("{} {name}, against DataFusion", suite.name);
        figures.push(Figure::against(label, external[query], "ms", peer("DataFusion", bare[query]), None));
    }
    figures.extend(peers::figures(suite, &external, &expected, folder.path()).await?);
    Ok(figures)
}

/// Returns each query's median over the rounds.
pub(super) fn medians(rounds: &[Vec<f64>]) -> Vec<f64> {
    let queries = rounds.first().map_or(0, Vec::len);
    let of_query = |query: usize| median(&rounds.iter().map(|round| round[query]).collect::<Vec<_>>());
    (0..queries).map(of_query).collect()
}

/// Takes the measurement of one peer in this process; `None` where `name` is none of a suite.
pub(crate) async fn measure(name: &str, folder: &Path) -> Result<Option<Value>, Failure> {
    let Some((suite, peer)) = name.split_once('-') else { return Ok(None) };
    let Some(suite) = [&TPCH, &CLICKBENCH, &JOINS].into_iter().find(|one| one.name == suite) else { return Ok(None) };
    let rounds = match SuitePeer::ALL.into_iter().find(|one| one.name() == peer) {
        Some(peer @ (SuitePeer::External | SuitePeer::Managed)) => through_session(suite, peer, folder).await?,
        Some(SuitePeer::Bare) => through_datafusion(suite).await?,
        _ => return Ok(None),
    };
    Ok(Some(serde_json::to_value(rounds)?))
}

async fn through_session(suite: &Suite, peer: SuitePeer, folder: &Path) -> Result<Rounds, Failure> {
    let lake = tempfile::tempdir_in(folder)?;
    let engine = engine_of(lake.path()).await?;
    import(suite, &engine, peer == SuitePeer::External).await?;
    let session = engine.session(Principal::local_admin(), Limits::default()).read_only();
    let (mut rounds, mut answers) = (Vec::new(), Vec::new());
    for round in 0..=ROUNDS {
        let mut taken = Vec::new();
        for (_, query) in queries_of(suite).await? {
            let started = Instant::now();
            let (batches, _) = session.sql(&query).await?.collect().await?;
            taken.push(started.elapsed().as_secs_f64() * 1e3);
            if round == ROUNDS {
                answers.push(rows_of(&batches)?);
            }
        }
        rounds.push(taken);
    }
    tokio::fs::write(rows_file(folder, peer), serde_json::to_vec(&answers)?).await?;
    engine.close().await?;
    Ok(rounds)
}

/// Opens an engine, with other settings of DataFusion where `QUERENT_BENCH_SETTINGS` says so.
pub(super) async fn engine_of(lake: &Path) -> Result<Engine, Failure> {
    Ok(Engine::open_with(EngineOptions { datafusion_settings: settings()?, ..EngineOptions::new(lake) }).await?)
}

/// Returns what `QUERENT_BENCH_SETTINGS` says: `execution.batch_size=16384,optimizer.prefer_hash_join=false`.
pub(super) fn settings() -> Result<Vec<(String, String)>, Failure> {
    let text = std::env::var("QUERENT_BENCH_SETTINGS").unwrap_or_default();
    let given = text.split(',').map(str::trim).filter(|setting| !setting.is_empty());
    let parsed = given.map(|setting| match setting.split_once('=') {
        Some((name, value)) => {
            let name = name.trim();
            Ok((format!("datafusion.{}", name.strip_prefix("datafusion.").unwrap_or(name)), value.trim().to_owned()))
        }
        None => Err(format!("QUERENT_BENCH_SETTINGS has `{setting}`; it takes name=value,name=value").into()),
    });
    parsed.collect()
}

/// Makes the tables of a suite in the database `default`.
pub(super) async fn import(suite: &Suite, engine: &Engine, external: bool) -> Result<(), Failure> {
    for (table, file) in files_in(&data_of(suite).await?).await? {
        let request = ImportRequest {
            source: file.to_string_lossy().into_owned(),
            format: None,
            options: Default::default(),
            table: TableName::new("default", table),
            external,
            if_exists: Some(IfExists::Error),
        };
        engine.import(&Principal::local_admin(), request, Arc::new(NoProgress)).await?;
    }
    Ok(())
}

/// Returns DataFusion without an engine around it, with the tables of a suite.
#[expect(clippy::disallowed_methods, reason = "the peer is DataFusion used bare")]
pub(super) async fn bare_datafusion(suite: &Suite) -> Result<SessionContext, Failure> {
    let context = SessionContext::new();
    for (table, file) in files_in(&data_of(suite).await?).await? {
        context.register_parquet(table, file.to_string_lossy(), ParquetReadOptions::default()).await?;
    }
    Ok(context)
}

#[expect(clippy::disallowed_methods, reason = "the peer is DataFusion used bare")]
async fn through_datafusion(suite: &Suite) -> Result<Rounds, Failure> {
    let context = bare_datafusion(suite).await?;
    let mut rounds = Vec::new();
    for _ in 0..=ROUNDS {
        let mut taken = Vec::new();
        for (_, query) in queries_of(suite).await? {
            let started = Instant::now();
            context.sql(&query).await?.collect().await?;
            taken.push(started.elapsed().as_secs_f64() * 1e3);
        }
        rounds.push(taken);
    }
    Ok(rounds)
}

/// Runs a suite in DuckDB, once and then `rounds` times, and leaves its rows for [`rows_in`].
pub(super) async fn duckdb(suite: &Suite, peer: SuitePeer, rounds: usize, folder: &Path) -> Result<Rounds, Failure> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("suite_duckdb.py");
    let output = Command::new(cache_folder()?.join("bench-venv/bin/python"))
        .arg(script)
        .arg(peer.name())
        .arg(queries_folder(suite))
        .arg(data_of(suite).await?)
        .arg(rounds.to_string())
        .arg(rows_file(folder, peer))
        .output()
        .await?;
    if !output.status.success() {
        return Err(format!("DuckDB failed: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// Returns the scale of TPC-H's files.
pub(super) fn scale_of(suite: &Suite) -> Result<u64, Failure> {
    number("QUERENT_BENCH_SCALE", suite.scale)
}

fn number(variable: &str, usual: u64) -> Result<u64, Failure> {
    Ok(std::env::var(variable).ok().map(|text| text.trim().parse()).transpose()?.unwrap_or(usual))
}

/// Returns the folder of a suite's files, which are generated where they are not there yet.
pub(super) async fn data_of(suite: &Suite) -> Result<PathBuf, Failure> {
    let (scale, rows) = (scale_of(suite)?, number("QUERENT_BENCH_ROWS", 10_000_000)?);
    let name = match suite.name {
        "tpch" => format!("tpch-sf{scale}"),
        "clickbench" => format!("hits-{rows}"),
        other => other.to_owned(),
    };
    let folder = cache_folder()?.join(name);
    if tokio::fs::try_exists(folder.join(".complete")).await? {
        return Ok(folder);
    }
    tokio::fs::create_dir_all(&folder).await?;
    let into = folder.clone();
    match suite.name {
        "tpch" => {
            let generator = cache_folder()?.join("bench-venv/bin/tpchgen-cli");
            let arguments = ["parquet", "-s", &scale.to_string(), "--output-dir"];
            let status = Command::new(generator).args(arguments).arg(&folder).status().await?;
            if !status.success() {
                return Err(format!("tpchgen-cli failed: {status}").into());
            }
        }
        "clickbench" => tokio::task::spawn_blocking(move || hits::write(&into.join("hits.parquet"), rows)).await??,
        _ => tokio::task::spawn_blocking(move || films::write(&into)).await??,
    }
    tokio::fs::write(folder.join(".complete"), "").await?;
    Ok(folder)
}

pub(super) fn queries_folder(suite: &Suite) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("queries").join(suite.name)
}

/// Returns the names and texts of a suite's queries, by name.
pub(super) async fn queries_of(suite: &Suite) -> Result<Vec<(String, String)>, Failure> {
    let mut queries = Vec::new();
    for (name, file) in files_with(&queries_folder(suite), "sql").await? {
        queries.push((name, tokio::fs::read_to_string(file).await?));
    }
    Ok(queries)
}

/// Returns the names and Parquet files of a suite's tables.
async fn files_in(data: &Path) -> Result<Vec<(String, PathBuf)>, Failure> {
    files_with(data, "parquet").await
}

async fn files_with(folder: &Path, extension: &str) -> Result<Vec<(String, PathBuf)>, Failure> {
    let mut entries = tokio::fs::read_dir(folder).await?;
    let mut files = Vec::new();
    while let Some(entry) = entries.next_entry().await? {
        let path = entry.path();
        if path.extension().is_some_and(|found| found == extension)
            && let Some(stem) = path.file_stem()
        {
            files.push((stem.to_string_lossy().into_owned(), path));
        }
    }
    files.sort();
    Ok(files)
}

fn rows_file(folder: &Path, peer: SuitePeer) -> PathBuf {
    folder.join(format!("{}.json", peer.name()))
}

pub(super) type SuiteRows = Vec<Vec<Value>>;

pub(super) async fn rows_in(folder: &Path, peer: SuitePeer) -> Result<Vec<SuiteRows>, Failure> {
    Ok(serde_json::from_slice(&tokio::fs::read(rows_file(folder, peer)).await?)?)
}

/// Returns rows as they are compared: numbers and truth values as doubles, since peers hand over the latter as either;
/// the rest as text.
pub(super) fn rows_of(batches: &[RecordBatch]) -> Result<SuiteRows, Failure> {
    let mut rows = Vec::new();
    for batch in batches {
        let columns = batch.columns().iter().map(plain).collect::<Result<Vec<_>, _>>()?;
        rows.extend((0..batch.num_rows()).map(|row| columns.iter().map(|column| column[row].clone()).collect()));
    }
    Ok(rows)
}

fn plain(array: &ArrayRef) -> Result<Vec<Value>, Failure> {
    let is_number = array.data_type().is_numeric() || array.data_type() == &DataType::Boolean;
    let is_time = matches!(array.data_type(), DataType::Timestamp(..));
    let numbers = is_number.then(|| cast(array, &DataType::Float64)).transpose()?;
    let value = |row: usize| -> Result<Value, Failure> {
        Ok(match &numbers {
            _ if array.is_null(row) => Value::Null,
            Some(numbers) => Value::from(numbers.as_primitive::<Float64Type>().value(row)),
            // Python writes a time after a space.
            None if is_time => Value::from(array_value_to_string(array, row)?.replacen('T', " ", 1)),
            None => Value::from(array_value_to_string(array, row)?),
        })
    };
    (0..array.len()).map(value).collect()
}

/// Returns how two results differ, whatever the order of their rows.
pub(super) fn first_difference(ours: &SuiteRows, theirs: &SuiteRows) -> Option<String> {
    if ours.len() != theirs.len() {
        return Some(format!("{} rows, DuckDB has {}", ours.len(), theirs.len()));
    }
    let key = |row: &Vec<Value>| -> Vec<String> {
        let mut key: Vec<String> = row.iter().filter(|value| !value.is_number()).map(Value::to_string).collect();
        key.extend(row.iter().filter_map(Value::as_f64).map(|number| format!("{number:.3e}")));
        key
    };
    let sorted = |rows: &SuiteRows| {
        let mut rows = rows.clone();
        rows.sort_by_cached_key(key);
        rows
    };
    let differs = |a: &Value, b: &Value| match (a.as_f64(), b.as_f64()) {
        (Some(a), Some(b)) => (a - b).abs() > TOLERANCE * a.abs().max(b.abs()).max(1.0),
        _ => a != b,
    };
    let (ours, theirs) = (sorted(ours), sorted(theirs));
    let mut pairs = ours.iter().zip(&theirs);
    let found = pairs.find(|(a, b)| a.len() != b.len() || a.iter().zip(*b).any(|(a, b)| differs(a, b)))?;
    Some(format!("{:?}, DuckDB has {:?}", found.0, found.1))
}
