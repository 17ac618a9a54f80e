//! What a catalog costs by its size: the same work on 1,000, 100,000 and 1,000,000 generated tables of 20 columns.
//!
//! Every size is measured in a process of its own on a catalog that was closed, without an embedder: what is measured
//! is the catalog, not search. `QUERENT_BENCH_TABLES=1000,20000` measures other sizes. `QUERENT_BENCH_CATALOG=postgres` does
//! the same work on PostgreSQL, too, each size right after SQLite's, on a server of its own.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use futures::TryStreamExt;
use querent_catalog::{IfExists, NoProgress, PageRequest, Principal, TableFilter, TableName};
use querent_engine::{Engine, EngineOptions, Limits, Session};
use serde::{Deserialize, Serialize};

use crate::Failure;
use crate::generator::{Generator, Random};
use crate::harness::{Figure, Peer, measure_in_process, median, percentile};
use crate::postgres::PostgresProcess;

const SIZES: [u64; 3] = [1_000, 100_000, 1_000_000];
const SEED: u64 = 42;
/// Tables registered in one call.
const A_CALL: u64 = 10_000;
/// Each operation is done this often.
const TIMES: usize = 300;
/// The largest size against the smallest.
const FLAT: f64 = 1.5;
const RESOLVE_P99_MS: f64 = 2.0;
const MEMORY_MIB: f64 = 150.0;
/// PostgreSQL against SQLite, where the names were used before.
const POSTGRES: f64 = 2.0;
const WARM: [&str; 2] = [RESOLVE_AGAIN, PLAN_AGAIN];
/// Commits are durable; the rest is as a server of a catalog of this size has it.
const POSTGRES_SETTINGS: [&str; 3] = ["fsync=on", "shared_buffers=1GB", "max_wal_size=4GB"];
/// Tables of the catalog that memory is compared with, where the same work is done.
const NEARLY_EMPTY: u64 = 10;

#[derive(Serialize, Deserialize)]
struct CatalogMeasurement {
    /// Milliseconds, by operation.
    times: BTreeMap<String, Vec<f64>>,
    /// Resident memory after the work.
    resident_mib: f64,
}

pub(crate) async fn run() -> Result<Vec<Figure>, Failure> {
    let sizes = match std::env::var("QUERENT_BENCH_TABLES") {
        Ok(text) => text.split(',').map(|size| size.trim().parse()).collect::<Result<Vec<u64>, _>>()?,
        Err(_) => SIZES.to_vec(),
    };
    let postgres = match std::env::var("QUERENT_BENCH_CATALOG") {
        Ok(kind) if kind == "postgres" => Some(PostgresProcess::start_with(&POSTGRES_SETTINGS)),
        Ok(other) => return Err(format!("QUERENT_BENCH_CATALOG is `{other}`, and may be `postgres`").into()),
        Err(_) => None,
    };
    let folder = tempfile::tempdir()?;
    let mut figures = Vec::new();
    let nearly_empty = folder.path().join(NEARLY_EMPTY.to_string());
    seed(&nearly_empty, NEARLY_EMPTY).await?;
    let nothing: CatalogMeasurement = measure_in_process("catalog", &nearly_empty).await?;
    let mut smallest: Option<(u64, CatalogMeasurement)> = None;
    let mut smallest_on_postgres: Option<(u64, CatalogMeasurement)> = None;
    for size in sizes {
        let lake = folder.path().join(size.to_string());
        let rate = size as f64 / seed(&lake, size).await?;
        figures.push(Figure::alone(format!("registering {size} tables"), rate, "tables/s", None));
        let measured: CatalogMeasurement = measure_in_process("catalog", &lake).await?;
        for (operation, times) in &measured.times {
            let name = format!("{operation}, {size} tables, p50");
            figures.push(match &smallest {
                Some((of, base)) if base.times.contains_key(operation) => {
                    let peer = Peer { name: format!("{of} tables"), value: median(&base.times[operation]) };
                    Figure::against(name, median(times), "ms", peer, Some(FLAT))
                }
                _ => Figure::alone(name, median(times), "ms", None),
            });
        }
        let resolve = percentile(&measured.times[RESOLVE], 99.0);
        figures.push(Figure::alone(format!("{RESOLVE}, {size} tables, p99"), resolve, "ms", Some(RESOLVE_P99_MS)));
        let growth = measured.resident_mib - nothing.resident_mib;
        figures.push(Figure::alone(
            format!("memory over a catalog of {NEARLY_EMPTY} tables, {size} tables"),
            growth,
            "MiB",
            Some(MEMORY_MIB),
        ));
        tokio::fs::remove_dir_all(&lake).await?;
        if let Some(server) = &postgres {
            let on_postgres = run_on_postgres(server, folder.path(), size, &mut figures).await?;
            compare_with_sqlite(size, &measured, &on_postgres, &mut figures);
            if let Some(base) = &smallest_on_postgres {
                compare_sizes_on_postgres(size, base, &on_postgres, &mut figures);
            }
            smallest_on_postgres.get_or_insert((size, on_postgres));
        }
        smallest.get_or_insert((size, measured));
    }
    Ok(figures)
}

/// Measures one size on PostgreSQL, in a database of its own.
async fn run_on_postgres(
    server: &PostgresProcess,
    folder: &Path,
    size: u64,
    figures: &mut Vec<Figure>,
) -> Result<CatalogMeasurement, Failure> {
    let database = format!("lake_{size}");
    let lake = folder.join("postgres").join(size.to_string());
    tokio::fs::create_dir_all(&lake).await?;
    tokio::fs::write(url_file(&lake), server.new_database(&database)).await?;
    let rate = size as f64 / seed(&lake, size).await?;
    figures.push(Figure::alone(format!("registering {size} tables on PostgreSQL"), rate, "tables/s", None));
    // What its own housekeeping does within minutes.
    server.psql(&database, "VACUUM ANALYZE")?;
    let measured: CatalogMeasurement = measure_in_process("catalog", &lake).await?;
    let resolve = percentile(&measured.times[RESOLVE], 99.0);
    figures.push(Figure::alone(format!("{RESOLVE} on PostgreSQL, {size} tables, p99"), resolve, "ms", None));
    tokio::fs::remove_dir_all(&lake).await?;
    server.psql("postgres", &format!("DROP DATABASE {database}"))?;
    Ok(measured)
}

fn compare_with_sqlite(
    size: u64,
    sqlite: &CatalogMeasurement,
    on_postgres: &CatalogMeasurement,
    figures: &mut Vec<Figure>,
) {
    for (operation, times) in &on_postgres.times {
        let Some(base) = sqlite.times.get(operation) else { continue };
        let name = format!("{operation} on PostgreSQL, {size} tables, p50");
        let peer = Peer { name: "SQLite".to_owned(), value: median(base) };
        let bar = WARM.contains(&operation.as_str()).then_some(POSTGRES);
        figures.push(Figure::against(name, median(times), "ms", peer, bar));
    }
}

fn compare_sizes_on_postgres(
    size: u64,
    (of, smallest): &(u64, CatalogMeasurement),
    measured: &CatalogMeasurement,
    figures: &mut Vec<Figure>,
) {
    for (operation, times) in &measured.times {
        let Some(base) = smallest.times.get(operation) else { continue };
        let name = format!("{operation} on PostgreSQL, {size} tables, p50, by size");
        let peer = Peer { name: format!("{of} tables"), value: median(base) };
        figures.push(Figure::against(name, median(times), "ms", peer, Some(FLAT)));
    }
}

const RESOLVE: &str = "resolve a table";
const RESOLVE_AGAIN: &str = "resolve a table again";
const PLAN: &str = "plan a query of three tables";
const PLAN_AGAIN: &str = "plan a query of three tables again";

/// Beside a data folder whose catalog is on a server: the server's URL.
fn url_file(lake: &Path) -> PathBuf {
    lake.with_extension("url")
}

pub(super) async fn open(lake: &Path) -> Result<Engine, Failure> {
    let catalog_url = match tokio::fs::read_to_string(url_file(lake)).await {
        Ok(url) => Some(url),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => return Err(error.into()),
    };
    let progress = Arc::new(NoProgress);
    let options = EngineOptions { embedder: None, progress, catalog_url, ..EngineOptions::new(lake) };
    Ok(Engine::open_with(options).await?)
}

/// Makes a catalog of the generator's first tables and waits for its index. Returns the seconds of the first part.
pub(super) async fn seed(lake: &Path, size: u64) -> Result<f64, Failure> {
    let engine = open(lake).await?;
    let generator = Arc::new(Generator::new(SEED));
    let bar = indicatif::ProgressBar::new(size).with_message("registering tables");
    let started = Instant::now();
    for from in (0..size).step_by(A_CALL as usize) {
        let tables = Arc::clone(&generator).tables(from, size.min(from + A_CALL));
        engine.catalog().tables().register(tables, IfExists::Error, Arc::new(NoProgress)).await?;
        bar.set_position(size.min(from + A_CALL));
    }
    let registered = started.elapsed().as_secs_f64();
    bar.set_message("indexing");
    engine.catalog().search().index_idle().await?;
    bar.finish_and_clear();
    engine.close().await?;
    Ok(registered)
}

pub(crate) async fn measure(lake: &Path) -> Result<serde_json::Value, Failure> {
    let mut times: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for _ in 0..7 {
        let started = Instant::now();
        let engine = open(lake).await?;
        let names = [TableName::new("default", "none")];
        engine.catalog().tables().resolve(&Principal::local_admin(), &names).await?;
        times.entry("open and resolve a first name".into()).or_default().push(milliseconds(started));
        engine.close().await?;
    }
    let engine = open(lake).await?;
    let size = lake.file_name().and_then(|name| name.to_str()).and_then(|name| name.parse().ok()).unwrap_or(0);
    if size > 0 {
        let tables = Known { generator: Generator::new(SEED), size, random: Random::new(7, 7) };
        work(&engine, tables, &mut times).await?;
    }
    let resident_mib = resident_mib().await?;
    engine.close().await?;
    Ok(serde_json::to_value(CatalogMeasurement { times, resident_mib })?)
}

/// Returns names of existing tables, drawn by chance.
struct Known {
    generator: Generator,
    size: u64,
    random: Random,
}

impl Known {
    fn draw(&mut self) -> TableName {
        self.generator.table(self.random.below(self.size)).name
    }

    fn draw_with_column(&mut self) -> (TableName, String) {
        let table = self.generator.table(self.random.below(self.size));
        (table.name, table.schema.field(3).name().clone())
    }
}

async fn work(engine: &Engine, mut known: Known, times: &mut BTreeMap<String, Vec<f64>>) -> Result<(), Failure> {
    let catalog = engine.catalog();
    let who = Principal::local_admin();
    let session = engine.session(who.clone(), Limits::default());
    let mut note = |operation: &str, started: Instant| {
        times.entry(operation.to_string()).or_default().push(milliseconds(started));
    };
    for _ in 0..TIMES {
        let names = [known.draw()];
        let started = Instant::now();
        let resolved = catalog.tables().resolve(&who, &names).await?;
        note(RESOLVE, started);
        if resolved.iter().any(Option::is_none) {
            return Err(format!("{} did not resolve", names[0]).into());
        }
        let started = Instant::now();
        catalog.tables().resolve(&who, &names).await?;
        note(RESOLVE_AGAIN, started);

        let [a, b, c] = [known.draw(), known.draw(), known.draw()].map(|name| sql_name(&name));
        let sql = format!("EXPLAIN SELECT count(*) FROM {a} a CROSS JOIN {b} b CROSS JOIN {c} c");
        timed(&session, &sql, PLAN, &mut note).await?;
        timed(&session, &sql, PLAN_AGAIN, &mut note).await?;
        timed(&session, &format!("DESCRIBE {}", sql_name(&known.draw())), "describe a table", &mut note).await?;

        let name = known.draw();
        let filter = TableFilter { database: Some(name.database.clone()), ..TableFilter::default() };
        let started = Instant::now();
        catalog.tables().list(&who, &filter, PageRequest::first(50)).await?;
        note("list a page of a database's tables", started);
        let started = Instant::now();
        catalog.tables().list(&who, &TableFilter::default(), PageRequest::first(50)).await?;
        note("list a page of all tables", started);
        let started = Instant::now();
        catalog.databases().list(&who, None, PageRequest::first(10)).await?;
        note("list a page of databases", started);

        let filter = TableFilter { name_like: Some(format!("{}%", name.table)), ..TableFilter::default() };
        let started = Instant::now();
        let found = catalog.tables().list_with_columns(&who, &filter, PageRequest::first(10)).await?;
        note("GetTables with a name's prefix", started);
        if found.items.is_empty() {
            return Err(format!("{name} was not listed").into());
        }

        // A whole name begins one table's among a thousand, and ten among a million; few letters fill a page at any size.
        let letters: String = name.table.chars().take(3).collect();
        let filter = TableFilter { name_like: Some(format!("{letters}%")), ..TableFilter::default() };
        let started = Instant::now();
        catalog.tables().list_with_columns(&who, &filter, PageRequest::first(10)).await?;
        note("GetTables with a name's first three letters", started);

        let name = known.draw();
        let sql = format!(
            "SELECT count(*) FROM information_schema.columns WHERE table_schema = {} AND table_name = {}",
            literal(&name.database),
            literal(&name.table)
        );
        timed(&session, &sql, "information_schema.columns of a table", &mut note).await?;

        let (_, column) = known.draw_with_column();
        let started = Instant::now();
        let found = catalog.search().columns(&who, None, &column, 20).await?;
        note("find a column by name", started);
        if found.hits.is_empty() {
            return Err(format!("column {column} was not found").into());
        }
    }
    Ok(())
}

async fn timed(
    session: &Session,
    sql: &str,
    operation: &str,
    note: &mut impl FnMut(&str, Instant),
) -> Result<(), Failure> {
    let started = Instant::now();
    let stream = session.sql(sql).await.map_err(|error| format!("{sql}: {error}"))?;
    let _batches: Vec<_> = stream.try_collect().await?;
    note(operation, started);
    Ok(())
}

fn sql_name(name: &TableName) -> String {
    format!("\"{}\".\"{}\"", name.database, name.table)
}

fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

pub(super) fn milliseconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}

/// Returns the resident memory of the process, from `/proc`.
pub(super) async fn resident_mib() -> Result<f64, Failure> {
    memory_mib("VmRSS").await
}

/// Returns a figure of the process's memory that `/proc/self/status` has, by its name there.
pub(super) async fn memory_mib(name: &str) -> Result<f64, Failure> {
    let status = tokio::fs::read_to_string("/proc/self/status").await?;
    let value = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let value = value.ok_or_else(|| format!("no {name} in /proc/self/status"))?;
    let kib: f64 = value.trim().trim_end_matches(" kB").parse()?;
    Ok(kib / 1024.0)
}
