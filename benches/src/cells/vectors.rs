//! The nearest of 100,000 vectors of 384 dimensions, one query at a time: the catalog's vector index, and a table's in SQL,
//! against FAISS's HNSW and flat indexes in memory, on the same vectors and queries.
//!
//! The vectors are the default model's of generated tables of three columns, which takes ten minutes on two cores; the
//! queries are Spider dev's questions (even half). `QUERENT_BENCH_TABLES` takes another number of tables.

mod sql_search;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use querent_catalog::index::embed::{Embedder, EmbeddingModel};
use querent_catalog::{Catalog, CatalogOptions, IfExists, NewTable, NoProgress, Result as CatalogResult};
use serde::{Deserialize, Serialize};
use tokio::process::Command;

use super::embedders::EmbedderModels;
use super::recall::questions;
use crate::Failure;
use crate::generator::Generator;
use crate::harness::{Figure, Peer, cache_folder, measure_in_process, percentile};

const TABLES: u64 = 100_000;
const DIMENSION: usize = 384;
const SEED: u64 = 42;
/// Columns of a table that are kept: short texts embed sooner.
const COLUMNS: [usize; 3] = [0, 1, 2];
/// Tables registered in one call.
const A_CALL: u64 = 10_000;
const NEIGHBOURS: usize = 10;
const RECALL_BAR: f64 = 0.98;
/// The highest ratio to FAISS HNSW's median.
const FAISS_BAR: f64 = 10.0;
/// The same of a table's index in SQL, and of the exact scan in SQL to FAISS flat's median.
const SQL_BAR: f64 = 4.0;
const SQL_FLAT_BAR: f64 = 1.5;
/// The vectors and the queries, as little-endian floats, for FAISS.
const VECTORS_FILE: &str = "vectors.f32";
const QUERIES_FILE: &str = "queries.f32";

#[derive(Serialize, Deserialize)]
struct VectorMeasurement {
    /// Milliseconds, by index.
    times: BTreeMap<String, Vec<f64>>,
    /// The recall of [`INDEX`] against the exact answers.
    recall: f64,
    /// The same of a table's index in SQL.
    sql_recall: f64,
}

/// What `faiss_search.py` prints.
#[derive(Deserialize)]
struct Faiss {
    hnsw_ms: Vec<f64>,
    hnsw_recall: f64,
    flat_ms: Vec<f64>,
}

const INDEX: &str = "by the vector index";
const EXACT: &str = "by an exact scan";

pub(crate) async fn run() -> Result<Vec<Figure>, Failure> {
    let tables = match std::env::var("QUERENT_BENCH_TABLES") {
        Ok(text) => text.trim().parse()?,
        Err(_) => TABLES,
    };
    let folder = tempfile::tempdir()?;
    build(folder.path(), tables).await?;
    let measured: VectorMeasurement = measure_in_process("vectors", folder.path()).await?;
    let faiss = faiss(folder.path()).await?;
    let ours = |what: &str| measured.times.get(what).map(Vec::as_slice).unwrap_or_default();
    let name = |what: &str, percent: &str| format!("nearest {NEIGHBOURS} of {tables} vectors {what}, {percent}");
    let hnsw =
        Peer { name: format!("FAISS HNSW, recall {:.3}", faiss.hnsw_recall), value: percentile(&faiss.hnsw_ms, 50.0) };
    let flat = Peer { name: "FAISS flat".to_string(), value: percentile(&faiss.flat_ms, 50.0) };
    let [indexed, scanned] = [sql_search::INDEXED, sql_search::SCANNED];
    let median = |what: &str| percentile(ours(what), 50.0);
    Ok(vec![
        Figure::against(name(indexed, "p50"), median(indexed), "ms", hnsw.clone(), Some(SQL_BAR)),
        Figure::at_least(format!("its recall@{NEIGHBOURS}"), measured.sql_recall, "", Some(RECALL_BAR)),
        Figure::against(name(scanned, "p50"), median(scanned), "ms", flat.clone(), Some(SQL_FLAT_BAR)),
        Figure::against(name(INDEX, "p50"), percentile(ours(INDEX), 50.0), "ms", hnsw, Some(FAISS_BAR)),
        Figure::alone(name(INDEX, "p95"), percentile(ours(INDEX), 95.0), "ms", None),
        Figure::at_least(format!("its recall@{NEIGHBOURS}"), measured.recall, "", Some(RECALL_BAR)),
        Figure::against(name(EXACT, "p50"), percentile(ours(EXACT), 50.0), "ms", flat, None),
    ])
}

/// Registers and indexes the tables; leaves their vectors in the folder.
async fn build(folder: &Path, tables: u64) -> Result<(), Failure> {
    let embedder = Arc::new(embedder()?);
    let catalog = open(folder, Arc::clone(&embedder)).await?;
    let generator = Arc::new(Generator::new(SEED));
    let bar = indicatif::ProgressBar::new(tables).with_message("registering tables");
    for from in (0..tables).step_by(A_CALL as usize) {
        let mut some = Vec::new();
        for table in Arc::clone(&generator).tables(from, tables.min(from + A_CALL)) {
            let schema = Arc::new(table.schema.project(&COLUMNS)?);
            some.push(NewTable { schema, column_comments: BTreeMap::new(), ..table });
        }
        catalog.tables().register(some, IfExists::Error, Arc::new(NoProgress)).await?;
        bar.inc(A_CALL);
    }
    bar.set_message("embedding");
    catalog.search().index_idle().await?;
    bar.finish_and_clear();
    catalog.close().await?;
    let vectors = std::mem::take(&mut *embedder.of_tables.lock().map_err(|_| "the embedder panicked")?);
    write(&folder.join(VECTORS_FILE), &vectors).await
}

fn embedder() -> Result<Remembering, Failure> {
    let model = EmbedderModels::MiniLm.embedder()?.ok_or("no embedder")?;
    Ok(Remembering { model, of_tables: Mutex::default() })
}

async fn open(folder: &Path, embedder: Arc<Remembering>) -> Result<Arc<Catalog>, Failure> {
    let options = CatalogOptions { embedder: Some(embedder), ..CatalogOptions::new(folder.join("lake")) };
    Ok(Catalog::open(options).await?)
}

pub(crate) async fn measure(folder: &Path) -> Result<serde_json::Value, Failure> {
    let catalog = open(folder, Arc::new(embedder()?)).await?;
    catalog.search().index_idle().await?;
    let mut queries = Vec::new();
    for question in questions().await? {
        queries.push(catalog.measurements().embed_question(&question).await.ok_or("the embedder failed")?);
    }
    write(&folder.join(QUERIES_FILE), &queries).await?;
    let mut times: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    let (mut hits, mut of) = (0, 0);
    // The first round fills the caches that a server has warm.
    for round in 0..2 {
        for query in &queries {
            let mut timed = async |what: &str, exact: bool| {
                let started = Instant::now();
                let found = catalog.measurements().nearest_tables(query, NEIGHBOURS, exact).await;
                if round == 1 {
                    times.entry(what.into()).or_default().push(started.elapsed().as_secs_f64() * 1e3);
                }
                found
            };
            let found = timed(INDEX, false).await;
            let exact = timed(EXACT, true).await;
            hits += exact.iter().filter(|id| found.contains(id)).count();
            of += exact.len();
        }
    }
    catalog.close().await?;
    let in_sql = sql_search::measure(folder, &queries).await?;
    times.extend(in_sql.times);
    let recall = hits as f64 / of as f64;
    Ok(serde_json::to_value(VectorMeasurement { times, recall, sql_recall: in_sql.recall })?)
}

async fn faiss(folder: &Path) -> Result<Faiss, Failure> {
    let python = cache_folder()?.join("bench-venv/bin/python");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("faiss_search.py");
    let output = Command::new(&python)
        .arg(script)
        .arg(folder.join(VECTORS_FILE))
        .arg(folder.join(QUERIES_FILE))
        .args([DIMENSION.to_string(), NEIGHBOURS.to_string(), RECALL_BAR.to_string()])
        .output()
        .await
        .map_err(|error| format!("{}: {error}", python.display()))?;
    if !output.status.success() {
        return Err(format!("FAISS failed: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

async fn write(file: &Path, vectors: &[Vec<f32>]) -> Result<(), Failure> {
    let bytes: Vec<u8> = vectors.iter().flatten().flat_map(|value| value.to_le_bytes()).collect();
    Ok(tokio::fs::write(file, bytes).await?)
}

/// The default model, which remembers the vectors of tables.
struct Remembering {
    model: Arc<dyn Embedder>,
    of_tables: Mutex<Vec<Vec<f32>>>,
}

impl Embedder for Remembering {
    fn model(&self) -> &EmbeddingModel {
        self.model.model()
    }

    fn workers(&self) -> usize {
        self.model.workers()
    }

    #[expect(clippy::expect_used, reason = "a panic while the lock is held ends the measurement anyway")]
    fn embed(&self, texts: &[String]) -> CatalogResult<Vec<Vec<f32>>> {
        let vectors = self.model.embed(texts)?;
        let of_tables = texts.iter().zip(&vectors).filter(|(text, _)| text.starts_with("table "));
        self.of_tables.lock().expect("no panic with the lock held").extend(of_tables.map(|(_, vector)| vector.clone()));
        Ok(vectors)
    }
}
