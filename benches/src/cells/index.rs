//! The schema index at scale: 100,000 generated tables of 20 columns are registered, indexed with their columns as
//! objects, and searched with Spider dev's questions.
//!
//! The vectors are a static model's, as is meant for catalogs of this size; `QUERENT_BENCH_EMBEDDER=minilm` takes the
//! default model, which needs half an hour on two cores. `QUERENT_BENCH_TABLES` takes another size.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use datafusion::arrow::datatypes::Schema;
use querent_catalog::table_text;
use querent_catalog::{
    Catalog, CatalogOptions, Created, IfExists, NoProgress, Principal, SearchRequest, SearchStages, TableInfo,
    TableName,
};
use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;

use super::embedders::EmbedderModels;
use super::recall::questions;
use crate::Failure;
use crate::generator::Generator;
use crate::harness::{Figure, measure_in_process, percentile};

const TABLES: u64 = 100_000;
const SEED: u64 = 42;
/// Tables registered in one call.
const A_CALL: u64 = 10_000;
/// Questions searched for in each way.
const QUESTIONS: usize = 300;
/// Tables created one at a time, idle between them.
const CREATES: u64 = 100;
/// Tables created in a row while questions are searched for.
const CREATES_IN_A_ROW: u64 = 10_000;

#[derive(Serialize, Deserialize)]
struct IndexMeasurement {
    /// Milliseconds by operation.
    times: BTreeMap<String, Vec<f64>>,
    index_recall: f64,
    files: usize,
    resident_mib: f64,
}

pub(crate) async fn run() -> Result<Vec<Figure>, Failure> {
    let tables = match std::env::var("QUERENT_BENCH_TABLES") {
        Ok(text) => text.trim().parse()?,
        Err(_) => TABLES,
    };
    let lake = tempfile::tempdir()?;
    let mut figures = build(lake.path(), tables).await?;
    let measured: IndexMeasurement = measure_in_process("index", lake.path()).await?;
    let mut timed = |what: &str, percent: f64, bar: Option<f64>| {
        let times = measured.times.get(what).map(Vec::as_slice).unwrap_or_default();
        figures.push(Figure::alone(
            format!("{what}, {tables} tables, p{percent}"),
            percentile(times, percent),
            "ms",
            bar,
        ));
    };
    timed(TABLES_ALONE, 50.0, Some(4.0));
    timed(TABLES_ALONE, 95.0, Some(10.0));
    timed(WITH_COLUMNS, 50.0, Some(15.0));
    timed(WITH_COLUMNS, 95.0, Some(40.0));
    timed(NEAREST, 50.0, None);
    timed(EXACT, 50.0, None);
    timed(ACKNOWLEDGED, 50.0, Some(5.0));
    timed(ACKNOWLEDGED, 99.0, Some(25.0));
    timed(VECTOR, 99.0, Some(250.0));
    timed(COLUMN_VECTORS, 99.0, Some(2_000.0));
    timed(DURING_CREATES, 50.0, None);
    timed(DURING_CREATES, 95.0, None);
    timed(CREATE_IN_A_ROW, 50.0, None);
    figures.push(Figure::at_least("index recall@10 against exact search", measured.index_recall, "", Some(0.99)));
    let during = |what: &str| percentile(measured.times.get(what).map(Vec::as_slice).unwrap_or_default(), 95.0);
    let ratio = during(DURING_CREATES) / during(WITH_COLUMNS);
    let name = format!("search while {CREATES_IN_A_ROW} tables are created in a row, p95 against quiet");
    figures.push(Figure::alone(name, ratio, "x", Some(2.0)));
    figures.push(Figure::alone("files of the index after that", measured.files as f64, "files", None));
    figures.push(Figure::alone("memory of the process after that", measured.resident_mib, "MiB", None));
    Ok(figures)
}

const TABLES_ALONE: &str = "search tables by name, text and meaning, the question's embedding included";
const WITH_COLUMNS: &str = "search with columns and relationships, the question's embedding included";
const NEAREST: &str = "nearest vectors by the index";
const EXACT: &str = "nearest vectors by an exact scan";
const ACKNOWLEDGED: &str = "create a table: acknowledged and found by name";
const VECTOR: &str = "create a table: found by its vector after that";
const COLUMN_VECTORS: &str = "create a table: its 20 columns found by their vectors after that";
const DURING_CREATES: &str = "search while tables are created";
const CREATE_IN_A_ROW: &str = "create a table, one after the other, while searches run";

async fn build(lake: &Path, tables: u64) -> Result<Vec<Figure>, Failure> {
    let catalog = open(lake).await?;
    let generator = Arc::new(Generator::new(SEED));
    let bar = indicatif::ProgressBar::new(tables).with_message("registering tables");
    let started = Instant::now();
    for from in (0..tables).step_by(A_CALL as usize) {
        let some = Arc::clone(&generator).tables(from, tables.min(from + A_CALL));
        catalog.tables().register(some, IfExists::Error, Arc::new(NoProgress)).await?;
        bar.set_position(tables.min(from + A_CALL));
    }
    let registered = started.elapsed().as_secs_f64();
    bar.set_message("indexing and embedding");
    catalog.search().index_idle().await?;
    let indexed = started.elapsed().as_secs_f64() - registered;
    bar.finish_and_clear();
    catalog.close().await?;
    let limit =
        if EmbedderModels::from_environment_or(EmbedderModels::Static)? == EmbedderModels::MiniLm { 45.0 } else { 8.0 };
    Ok(vec![
        Figure::alone(format!("registering {tables} tables"), registered, "s", None),
        Figure::alone(
            format!("index of {tables} tables with their columns, from the last registration"),
            indexed / 60.0,
            "minutes",
            Some(limit),
        ),
    ])
}

async fn open(lake: &Path) -> Result<Arc<Catalog>, Failure> {
    let models = EmbedderModels::from_environment_or(EmbedderModels::Static)?;
    let (embedder, reranker) = (models.embedder()?, models.reranker()?);
    Ok(Catalog::open(CatalogOptions { embedder, reranker, ..CatalogOptions::new(lake) }).await?)
}

pub(crate) async fn measure(lake: &Path) -> Result<serde_json::Value, Failure> {
    let catalog = open(lake).await?;
    catalog.search().index_idle().await?;
    let asked: Vec<String> = questions().await?.into_iter().take(QUESTIONS).collect();
    let mut times: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    let tables_alone = SearchStages { columns: false, expansion: false, ..SearchStages::default() };
    for (what, stages) in [(TABLES_ALONE, tables_alone), (WITH_COLUMNS, SearchStages::default())] {
        // The first round fills the caches that a server has warm.
        for round in 0..2 {
            for question in &asked {
                let took = search(&catalog, question, stages).await?;
                if round == 1 {
                    times.entry(what.into()).or_default().push(took);
                }
            }
        }
    }
    let (mut hit, mut of) = (0, 0);
    for question in &asked {
        let vector = embedded(&catalog, question).await?;
        let started = Instant::now();
        let found = catalog.measurements().nearest_tables(&vector, 10, false).await;
        times.entry(NEAREST.into()).or_default().push(milliseconds(started));
        let started = Instant::now();
        let exact = catalog.measurements().nearest_tables(&vector, 10, true).await;
        times.entry(EXACT.into()).or_default().push(milliseconds(started));
        hit += exact.iter().filter(|id| found.contains(id)).count();
        of += exact.len();
    }
    create_one_at_a_time(&catalog, &mut times).await?;
    search_while_creating(&catalog, &asked, &mut times).await?;
    let resident_mib = super::catalog::resident_mib().await?;
    catalog.search().index_idle().await?;
    catalog.close().await?;
    let files = count_files(&lake.join("index")).await?;
    Ok(serde_json::to_value(IndexMeasurement { times, index_recall: hit as f64 / of as f64, files, resident_mib })?)
}

async fn search(catalog: &Catalog, question: &str, stages: SearchStages) -> Result<f64, Failure> {
    let request = SearchRequest { query: question.to_string(), database: None, limit: 10 };
    let started = Instant::now();
    catalog.measurements().search_by_stages(&Principal::local_admin(), &request, stages).await?;
    Ok(milliseconds(started))
}

async fn create_one_at_a_time(catalog: &Catalog, times: &mut BTreeMap<String, Vec<f64>>) -> Result<(), Failure> {
    let by_name = SearchStages { bm25: false, dense: false, columns: false, expansion: false, names: true };
    for number in 0..CREATES {
        let name = format!("zeppelin_mooring_{number}");
        let request = SearchRequest { query: name.clone(), database: None, limit: 1 };
        let started = Instant::now();
        let table = create(catalog, &name, number).await?;
        let hits = catalog.measurements().search_by_stages(&Principal::local_admin(), &request, by_name).await?;
        times.entry(ACKNOWLEDGED.into()).or_default().push(milliseconds(started));
        if hits.first().is_none_or(|(hit, _)| hit.table.name.table != name) {
            return Err(format!("{name} was not found by name").into());
        }
        let started = Instant::now();
        // Nothing is as near to the table as its own text.
        let vector = embedded(catalog, &table_text(&table)).await?;
        while !catalog.measurements().nearest_tables(&vector, 3, false).await.contains(&table.id) {
            if started.elapsed() > Duration::from_secs(30) {
                return Err(format!("{name} was not found by its vector").into());
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        times.entry(VECTOR.into()).or_default().push(milliseconds(started));
        catalog.search().index_idle().await?;
        times.entry(COLUMN_VECTORS.into()).or_default().push(milliseconds(started));
    }
    Ok(())
}

async fn embedded(catalog: &Catalog, text: &str) -> Result<Vec<f32>, Failure> {
    catalog.measurements().embed_question(text).await.ok_or_else(|| "the embedder failed".into())
}

async fn create(catalog: &Catalog, name: &str, number: u64) -> Result<TableInfo, Failure> {
    let like = Generator::new(SEED + 1).table(number);
    let schema: &Schema = &like.schema;
    let draft = catalog.tables().draft(&TableName::new("default", name), schema, None).await?;
    match catalog.tables().create(draft, Vec::new(), IfExists::Error).await? {
        Created::New(table) => Ok(table),
        Created::Existing => Err(format!("{name} is there already").into()),
    }
}

async fn search_while_creating(
    catalog: &Arc<Catalog>,
    asked: &[String],
    times: &mut BTreeMap<String, Vec<f64>>,
) -> Result<(), Failure> {
    let mut creating = JoinSet::new();
    let creator = Arc::clone(catalog);
    creating.spawn(async move {
        let mut times = Vec::new();
        for number in 0..CREATES_IN_A_ROW {
            let started = Instant::now();
            create(&creator, &format!("airship_{number}"), CREATES + number).await?;
            times.push(milliseconds(started));
        }
        Ok::<_, Failure>(times)
    });
    for question in asked.iter().cycle() {
        if let Some(created) = creating.try_join_next() {
            times.insert(CREATE_IN_A_ROW.into(), created??);
            return Ok(());
        }
        let took = search(catalog, question, SearchStages::default()).await?;
        times.entry(DURING_CREATES.into()).or_default().push(took);
    }
    Ok(())
}

async fn count_files(folder: &Path) -> Result<usize, Failure> {
    let mut count = 0;
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let mut entries = tokio::fs::read_dir(&folder).await?;
        while let Some(entry) = entries.next_entry().await? {
            match entry.file_type().await?.is_dir() {
                true => folders.push(entry.path()),
                false => count += 1,
            }
        }
    }
    Ok(count)
}

fn milliseconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}
