//! Importing CSV: a file of a gigabyte of mixed columns into an empty lake, against DuckDB of PyPI, which reads the same file
//! into a lake of its own by its `ducklake` extension, or into Parquet where there is none. Three interleaved runs, medians.
//! `QUERENT_BENCH_MB` takes another size.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use querent_catalog::{IfExists, NoProgress, Principal, TableName};
use querent_engine::{Engine, ImportRequest};
use tokio::fs::File;
use tokio::io::{AsyncWriteExt, BufWriter};
use tokio::process::Command;

use crate::Failure;
use crate::harness::{Figure, Peer, cache_folder, measure_in_process, median};

const MEGABYTES: u64 = 1_000;
const RUNS: usize = 3;
/// Our time against DuckDB's.
const BAR: f64 = 1.5;
const SOURCE: &str = "orders.csv";

pub(crate) async fn run() -> Result<Vec<Figure>, Failure> {
    let megabytes: u64 = match std::env::var("QUERENT_BENCH_MB") {
        Ok(text) => text.trim().parse()?,
        Err(_) => MEGABYTES,
    };
    let folder = tempfile::tempdir()?;
    let rows = write_source(&folder.path().join(SOURCE), megabytes << 20).await?;
    let bar = indicatif::ProgressBar::new((2 * RUNS) as u64).with_message("import");
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for round in 0..RUNS {
        // Neither is always the one that runs on the warmer machine.
        for turn in 0..2 {
            let measured: ImportReading = match (round + turn) % 2 {
                0 => measure_in_process("import", folder.path()).await?,
                _ => duckdb(folder.path()).await?,
            };
            if measured.rows != rows {
                return Err(format!("{} rows of {rows} were imported", measured.rows).into());
            }
            if (round + turn) % 2 == 0 {
                ours.push(measured.seconds)
            } else {
                theirs.push(measured.seconds)
            }
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    let peer = Peer { name: "DuckDB into a lake".to_owned(), value: median(&theirs) };
    let name = format!("import of {megabytes} MB of CSV, {rows} rows");
    Ok(vec![Figure::against(name, median(&ours), "s", peer, Some(BAR))])
}

#[derive(Debug, serde::Serialize, serde::Deserialize)]
struct ImportReading {
    seconds: f64,
    rows: u64,
}

/// Writes a table of numbers, texts, dates and decimals, some of them quoted and some missing; returns its rows.
async fn write_source(path: &Path, bytes: u64) -> Result<u64, Failure> {
    let mut file = BufWriter::with_capacity(1 << 20, File::create(path).await?);
    let header = "id,customer,product,quantity,price,discount,ordered,shipped,status,comment\n";
    file.write_all(header.as_bytes()).await?;
    let (mut written, mut rows) = (header.len() as u64, 0_u64);
    while written < bytes {
        // Spread by multiplication, so that every run has the same rows.
        let spread = rows.wrapping_mul(2_654_435_761) % 4_294_967_291;
        let (month, day) = (spread % 12 + 1, spread % 28 + 1);
        let discount = if spread % 7 == 0 { String::new() } else { format!("0.{:02}", spread % 50) };
        let comment = match spread % 5 {
            0 => format!("\"called, asked for \"\"{}\"\" again\"", spread % 97),
            1 => String::new(),
            _ => format!("left at door {} of the house", spread % 9_000),
        };
        let line = format!(
            "{rows},customer-{},product {},{},{}.{:02},{discount},2024-{month:02}-{day:02},2024-{month:02}-{day:02} \
             {:02}:{:02}:{:02},{},{comment}\n",
            spread % 100_000,
            spread % 5_000,
            spread % 100,
            spread % 10_000,
            spread % 100,
            spread % 24,
            spread % 60,
            spread % 59,
            ["new", "paid", "sent", "returned"][(spread % 4) as usize],
        );
        file.write_all(line.as_bytes()).await?;
        written += line.len() as u64;
        rows += 1;
    }
    file.flush().await?;
    Ok(rows)
}

/// Imports the file into a new lake and prints how long that took, until the rows are committed.
pub(crate) async fn measure(folder: &Path) -> Result<serde_json::Value, Failure> {
    let lake = tempfile::tempdir_in(folder)?;
    let engine = Engine::open(lake.path()).await?;
    let request = ImportRequest {
        source: folder.join(SOURCE).display().to_string(),
        format: None,
        options: std::collections::BTreeMap::new(),
        table: TableName::new("default", "orders"),
        external: false,
        if_exists: Some(IfExists::Error),
    };
    let started = Instant::now();
    let outcome = engine.import(&Principal::local_admin(), request, Arc::new(NoProgress)).await?;
    let seconds = started.elapsed().as_secs_f64();
    engine.close().await?;
    Ok(serde_json::to_value(ImportReading { seconds, rows: outcome.rows.unwrap_or_default() })?)
}

async fn duckdb(folder: &Path) -> Result<ImportReading, Failure> {
    let lake = tempfile::tempdir_in(folder)?;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("import_duckdb.py");
    let output = Command::new(python()?).arg(script).arg(folder.join(SOURCE)).arg(lake.path()).output().await?;
    if !output.status.success() {
        return Err(format!("DuckDB failed: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

fn python() -> Result<PathBuf, Failure> {
    match std::env::var_os("QUERENT_PYTHON") {
        Some(python) => Ok(PathBuf::from(python)),
        // The environment of the client tests has DuckDB's extension.
        None => Ok(cache_folder()?.join("venv/bin/python")),
    }
}
