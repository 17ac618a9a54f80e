//! Finding the tables of a question: Spider dev's questions (even half) over its 166 schemas as one catalog.
//!
//! Alone, and hidden among the generator's tables; by the whole search and by parts of it. A question is fully served when all tables of its gold query are among the first k hits; the search is not told the
//! database. The half is told by the first byte of the question's SHA-1; the other half is kept for acceptance.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use datafusion::common::config::Dialect;
use datafusion::prelude::SessionContext;
use querent_catalog::{IfExists, NoProgress, Principal, SearchRequest, SearchStages};
use querent_engine::{Engine, Limits};
use serde::{Deserialize, Serialize};
use sha1::{Digest, Sha1};

use super::agent::open;
use crate::Failure;
use crate::generator::Generator;
use crate::harness::{Figure, cache_folder, measure_in_process, percentile};

/// Hits asked for.
const DEPTH: usize = 20;
/// All gold tables in the first ten, in questions of a hundred.
const BAR: f64 = 93.0;
/// The same among generated tables, and by how many points that must be better than one ranking alone.
const HIDDEN_BAR: f64 = 85.0;
const GAIN_BAR: f64 = 5.0;
/// Generated tables that the questions' tables are hidden among; `QUERENT_BENCH_DISTRACTORS=0,100000` takes others.
const DISTRACTORS: [u64; 2] = [0, 10_000];
const SEED: u64 = 4242;

/// One of Spider's databases, as `tables.json` has it.
#[derive(Deserialize)]
pub(super) struct SpiderDatabase {
    pub(super) db_id: String,
    pub(super) table_names_original: Vec<String>,
    /// Table index (-1 for `*`) and name.
    pub(super) column_names_original: Vec<(i64, String)>,
    pub(super) column_types: Vec<String>,
    /// Indexes of columns.
    #[serde(default)]
    pub(super) primary_keys: Vec<usize>,
    /// Indexes of the referring column and of the one referred to.
    #[serde(default)]
    pub(super) foreign_keys: Vec<[usize; 2]>,
}

/// A question, as `dev.json` has it.
#[derive(Deserialize)]
pub(super) struct SpiderQuestion {
    pub(super) db_id: String,
    pub(super) question: String,
    pub(super) query: String,
}

#[derive(Serialize, Deserialize)]
struct RecallMeasurement {
    questions: usize,
    /// Figures by [`WAYS`].
    ways: Vec<Served>,
}

#[derive(Default, Serialize, Deserialize)]
struct Served {
    /// Percent of questions whose gold tables are all among the first k.
    full_at: BTreeMap<usize, f64>,
    /// Percent of gold tables among the first k, mean over questions.
    recall_at: BTreeMap<usize, f64>,
    search_ms: Vec<f64>,
}

/// The searches that are measured, each with a part left out; the last one is the whole search.
const WAYS: [(&str, SearchStages); 5] = [
    ("BM25 alone", SearchStages { bm25: true, ..NOTHING }),
    ("dense alone", SearchStages { dense: true, ..NOTHING }),
    ("fused", SearchStages { names: true, bm25: true, dense: true, ..NOTHING }),
    ("fused, columns", SearchStages { names: true, bm25: true, dense: true, columns: true, ..NOTHING }),
    ("all stages", SearchStages { names: true, bm25: true, dense: true, columns: true, expansion: true }),
];
const NOTHING: SearchStages =
    SearchStages { names: false, bm25: false, dense: false, columns: false, expansion: false };

pub(crate) async fn run() -> Result<Vec<Figure>, Failure> {
    let sizes = match std::env::var("QUERENT_BENCH_DISTRACTORS") {
        Ok(text) => text.split(',').map(|size| size.trim().parse()).collect::<Result<Vec<u64>, _>>()?,
        Err(_) => DISTRACTORS.to_vec(),
    };
    let mut figures = Vec::new();
    for distractors in sizes {
        let lake = tempfile::tempdir()?;
        let started = Instant::now();
        seed(lake.path(), distractors).await?;
        let seconds = started.elapsed().as_secs_f64();
        let among = if distractors == 0 { "alone".to_string() } else { format!("among {distractors} others") };
        figures.push(Figure::alone(format!("Spider dev {among}, made and embedded in"), seconds, "s", None));
        let measured = measure_in_process::<RecallMeasurement>("recall", lake.path()).await?;
        figures.extend(figures_of(&measured, &among, distractors));
    }
    Ok(figures)
}

fn figures_of(measured: &RecallMeasurement, among: &str, distractors: u64) -> Vec<Figure> {
    let mut figures = Vec::new();
    let at_ten = |served: &Served| served.full_at.get(&10).copied().unwrap_or_default();
    let single = measured.ways.iter().take(2).map(at_ten).fold(0.0, f64::max);
    let is_hidden = distractors > 0;
    for ((way, _), served) in WAYS.iter().zip(&measured.ways) {
        let is_whole = *way == WAYS[WAYS.len() - 1].0;
        for (k, percent) in &served.full_at {
            let name = format!("{way}: all tables in the first {k}, {among} ({} questions)", measured.questions);
            let bar = if is_hidden { HIDDEN_BAR } else { BAR };
            figures.push(Figure::at_least(name, *percent, "%", (*k == 10 && is_whole).then_some(bar)));
        }
        for (k, percent) in served.recall_at.iter().filter(|_| is_whole) {
            figures.push(Figure::alone(format!("{way}: recall@{k} of tables, {among}"), *percent, "%", None));
        }
        if is_whole {
            let gain = at_ten(served) - single;
            let name = format!("{way}: points above the better of BM25 and dense alone, {among}");
            figures.push(Figure::at_least(name, gain, "points", is_hidden.then_some(GAIN_BAR)));
            for (name, percent) in [("p50", 50.0), ("p95", 95.0)] {
                let value = percentile(&served.search_ms, percent);
                let name = format!("{way}: search, embedding of the question included, {among}, {name}");
                figures.push(Figure::alone(name, value, "ms", None));
            }
        }
    }
    figures
}

pub(crate) async fn measure(lake: &Path) -> Result<serde_json::Value, Failure> {
    let engine = open(lake).await?;
    // The first questions would be asked of an index that is being opened.
    engine.catalog().search().index_idle().await?;
    let questions: Vec<SpiderQuestion> = read("dev.json").await?;
    let mut asked = Vec::new();
    for question in questions.iter().filter(|one| is_even(&one.question)) {
        let gold = gold_tables(question)?;
        if gold.is_empty() {
            return Err(format!("no tables in `{}`", question.query).into());
        }
        asked.push((question, gold));
    }
    let mut ways = Vec::new();
    for (_, stages) in WAYS {
        ways.push(served(&engine, &asked, stages).await?);
    }
    engine.close().await?;
    Ok(serde_json::to_value(RecallMeasurement { questions: asked.len(), ways })?)
}

/// The questions of the even half, in order.
pub(super) async fn questions() -> Result<Vec<String>, Failure> {
    let questions: Vec<SpiderQuestion> = read("dev.json").await?;
    Ok(questions.into_iter().map(|one| one.question).filter(|question| is_even(question)).collect())
}

type Gold = BTreeSet<(String, String)>;

async fn served(engine: &Engine, asked: &[(&SpiderQuestion, Gold)], stages: SearchStages) -> Result<Served, Failure> {
    let principal = Principal::local_admin();
    let mut served = Served::default();
    for (question, gold) in asked {
        let request = SearchRequest { query: question.question.clone(), database: None, limit: DEPTH };
        let started = Instant::now();
        let hits = engine.catalog().measurements().search_by_stages(&principal, &request, stages).await?;
        served.search_ms.push(started.elapsed().as_secs_f64() * 1e3);
        let found: Vec<(String, String)> = hits
            .iter()
            .map(|(hit, _)| (hit.table.name.database.clone(), hit.table.name.table.to_lowercase()))
            .collect();
        for k in [1, 5, 10, 20] {
            let first: BTreeSet<_> = found.iter().take(k).cloned().collect();
            let share = gold.intersection(&first).count() as f64 / gold.len() as f64;
            let percent = 100.0 / asked.len() as f64;
            *served.full_at.entry(k).or_insert(0.0) += if share == 1.0 { percent } else { 0.0 };
            *served.recall_at.entry(k).or_insert(0.0) += share * percent;
        }
    }
    Ok(served)
}

/// Every schema as a database, its tables without rows, and so many generated tables.
async fn seed(lake: &Path, distractors: u64) -> Result<(), Failure> {
    let engine = open(lake).await?;
    let session = engine.session(Principal::local_admin(), Limits::default());
    let schemas = read::<Vec<SpiderDatabase>>("tables.json").await?;
    let bar = indicatif::ProgressBar::new(schemas.len() as u64).with_message("creating databases");
    for schema in &schemas {
        execute(&session, format!("create schema {}", quoted(&schema.db_id))).await?;
        for (index, table) in schema.table_names_original.iter().enumerate() {
            let mut columns = Vec::new();
            for ((of, name), kind) in schema.column_names_original.iter().zip(&schema.column_types) {
                if usize::try_from(*of) == Ok(index) {
                    let data_type = match kind.as_str() {
                        "number" => "double",
                        "time" => "timestamp",
                        "boolean" => "boolean",
                        _ => "varchar",
                    };
                    columns.push(format!("{} {data_type}", quoted(name)));
                }
            }
            let name = format!("{}.{}", quoted(&schema.db_id), quoted(table));
            execute(&session, format!("create table {name} ({})", columns.join(", "))).await?;
        }
        bar.inc(1);
    }
    bar.set_message("embedding");
    if distractors > 0 {
        let others = Arc::new(Generator::new(SEED)).tables(0, distractors);
        engine.catalog().tables().register(others, IfExists::Error, Arc::new(NoProgress)).await?;
    }
    engine.catalog().search().index_idle().await?;
    bar.finish_and_clear();
    engine.close().await?;
    Ok(())
}

async fn execute(session: &querent_engine::Session, sql: String) -> Result<(), Failure> {
    session.sql(&sql).await.map_err(|error| format!("{sql}: {error}"))?.collect().await?;
    Ok(())
}

/// Returns the tables that the question's query reads, lowercase, with their database.
fn gold_tables(question: &SpiderQuestion) -> Result<Gold, Failure> {
    let state = SessionContext::new().state();
    let statement = state.sql_to_statement(&question.query, &Dialect::SQLite)?;
    let tables = state.resolve_table_references(&statement)?;
    Ok(tables.into_iter().map(|table| (question.db_id.clone(), table.table().to_lowercase())).collect())
}

pub(super) fn is_even(question: &str) -> bool {
    Sha1::digest(question.as_bytes()).first().is_some_and(|byte| byte % 2 == 0)
}

pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

pub(super) async fn read<T: serde::de::DeserializeOwned>(file: &str) -> Result<T, Failure> {
    let path = cache_folder()?.join("spider").join(file);
    let text = tokio::fs::read(&path).await.map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(serde_json::from_slice(&text)?)
}
