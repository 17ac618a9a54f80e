//! Finding the tables of a question: Spider dev's questions (even half) over its 166 schemas as one catalog.
//!
//! A question is fully served when all tables of its gold query are among the first k hits; the search is not told the
//! database. The half is told by the first byte of the question's SHA-1; the other half is kept for acceptance.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Instant;

use datafusion::common::config::Dialect;
use datafusion::prelude::SessionContext;
use querent_catalog::{Principal, SearchRequest};
use querent_engine::Limits;
use serde::{Deserialize, Serialize};
use sha1::{Digest, Sha1};

use super::agent::open;
use crate::Failure;
use crate::harness::{Figure, cache_folder, measure_in_process, median};

/// Hits asked for.
const DEPTH: usize = 20;
/// All gold tables in the first ten, in questions of a hundred.
const BAR: f64 = 93.0;

/// One of Spider's databases, as `tables.json` has it.
#[derive(Deserialize)]
struct Schema {
    db_id: String,
    table_names_original: Vec<String>,
    /// Table index (-1 for `*`) and name.
    column_names_original: Vec<(i64, String)>,
    column_types: Vec<String>,
}

/// A question, as `dev.json` has it.
#[derive(Deserialize)]
struct Question {
    db_id: String,
    question: String,
    query: String,
}

#[derive(Serialize, Deserialize)]
struct Measured {
    questions: usize,
    /// Percent of questions whose gold tables are all among the first k.
    full_at: BTreeMap<usize, f64>,
    /// Percent of gold tables among the first k, mean over questions.
    recall_at: BTreeMap<usize, f64>,
    search_ms: Vec<f64>,
}

pub(crate) async fn run() -> Result<Vec<Figure>, Failure> {
    let lake = tempfile::tempdir()?;
    seed(lake.path()).await?;
    let measured = measure_in_process::<Measured>("recall", lake.path()).await?;
    let mut figures = Vec::new();
    for (k, percent) in &measured.full_at {
        let name = format!("Spider dev, even half ({}), all tables in the first {k}", measured.questions);
        figures.push(Figure::at_least(name, *percent, "%", (*k == 10).then_some(BAR)));
    }
    for (k, percent) in &measured.recall_at {
        figures.push(Figure::alone(format!("Spider dev, even half, recall@{k} of tables"), *percent, "%", None));
    }
    figures.push(Figure::alone("search of 876 tables, embedding included", median(&measured.search_ms), "ms", None));
    Ok(figures)
}

pub(crate) async fn measure(lake: &Path) -> Result<serde_json::Value, Failure> {
    let engine = open(lake).await?;
    let principal = Principal::local_admin();
    let ks = [1, 5, 10, 20];
    let (mut served, mut recall) = (BTreeMap::new(), BTreeMap::new());
    let mut search_ms = Vec::new();
    let mut count = 0;
    for question in read::<Vec<Question>>("dev.json").await?.iter().filter(|one| is_even(&one.question)) {
        let gold = gold_tables(question)?;
        if gold.is_empty() {
            return Err(format!("no tables in `{}`", question.query).into());
        }
        let request = SearchRequest { query: question.question.clone(), database: None, limit: DEPTH };
        let started = Instant::now();
        let hits = engine.catalog().search(&principal, &request).await?;
        search_ms.push(started.elapsed().as_secs_f64() * 1e3);
        let found: Vec<(String, String)> =
            hits.iter().map(|hit| (hit.table.name.database.clone(), hit.table.name.table.to_lowercase())).collect();
        count += 1;
        for k in ks {
            let first: BTreeSet<_> = found.iter().take(k).cloned().collect();
            let share = gold.intersection(&first).count() as f64 / gold.len() as f64;
            *served.entry(k).or_insert(0.0) += if share == 1.0 { 1.0 } else { 0.0 };
            *recall.entry(k).or_insert(0.0) += share;
        }
    }
    engine.close().await?;
    let percent = |sums: BTreeMap<usize, f64>| {
        sums.into_iter().map(|(k, sum): (usize, f64)| (k, 100.0 * sum / f64::from(count))).collect()
    };
    let measured = Measured {
        questions: usize::try_from(count)?,
        full_at: percent(served),
        recall_at: percent(recall),
        search_ms,
    };
    Ok(serde_json::to_value(measured)?)
}

/// Every schema as a database, its tables without rows.
async fn seed(lake: &Path) -> Result<(), Failure> {
    let engine = open(lake).await?;
    let session = engine.session(Principal::local_admin(), Limits::default());
    let schemas = read::<Vec<Schema>>("tables.json").await?;
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
    engine.catalog().index_idle().await?;
    bar.finish_and_clear();
    engine.close().await?;
    Ok(())
}

async fn execute(session: &querent_engine::Session, sql: String) -> Result<(), Failure> {
    session.sql(&sql).await.map_err(|error| format!("{sql}: {error}"))?.collect().await?;
    Ok(())
}

/// The tables that the question's query reads, lowercase, with their database.
fn gold_tables(question: &Question) -> Result<BTreeSet<(String, String)>, Failure> {
    let state = SessionContext::new().state();
    let statement = state.sql_to_statement(&question.query, &Dialect::SQLite)?;
    let tables = state.resolve_table_references(&statement)?;
    Ok(tables.into_iter().map(|table| (question.db_id.clone(), table.table().to_lowercase())).collect())
}

fn is_even(question: &str) -> bool {
    Sha1::digest(question.as_bytes()).first().is_some_and(|byte| byte % 2 == 0)
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

async fn read<T: serde::de::DeserializeOwned>(file: &str) -> Result<T, Failure> {
    let path = cache_folder()?.join("spider").join(file);
    let text = tokio::fs::read(&path).await.map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(serde_json::from_slice(&text)?)
}
