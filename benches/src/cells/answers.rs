//! Answers to questions: Spider dev's (even half) over its 166 schemas as one catalog, no database named. The rows of
//! the query on which the answer rests are compared with those of the gold query, as sets, on three fillings. Beside
//! it, in the same run, the plain prompt: the whole schema of the right database in one shot, its query as the model
//! writes it.
//!
//! Needs a model: `QUERENT_AGENT_OLLAMA_HOST` and `QUERENT_AGENT_MODEL` (`scripts/eval.sh` starts the local one). Each
//! question is recorded as it is answered, and a run that is started again goes on; `QUERENT_EVAL_QUESTIONS` bounds
//! it.

mod fill;
mod judge;
mod plain;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt;
use querent_agent::models::ollama::OllamaModel;
use querent_agent::models::{ModelProvider, ToolStyleSetting};
use querent_agent::{Agent, AgentConfig, AskRequest, EventKind, RunErrorCode};
use querent_catalog::Principal;
use querent_engine::Engine;
use serde::{Deserialize, Serialize};
use tokio::io::AsyncWriteExt;

use self::judge::{RowSet, gold_rows};
use super::recall::{SpiderDatabase, SpiderQuestion, is_even, read};
use crate::Failure;
use crate::harness::{Figure, cache_folder, median};

/// Fillings on which rows are compared.
const FILLINGS: usize = 3;
/// Questions asked unless `QUERENT_EVAL_QUESTIONS` says otherwise.
const QUESTIONS: usize = 200;
/// Long enough for a slow machine: a question that takes longer is a failure.
const RUN_TIMEOUT: Duration = Duration::from_secs(300);
/// How much better than the plain prompt the agent is to be.
const RATIO_BAR: f64 = 1.4;
/// Queries of a hundred that may fail to run.
const FAILURES_BAR: f64 = 3.0;

/// What came of one question, as it is recorded.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Recorded {
    question: String,
    database: String,
    gold: String,
    agent: Outcome,
    plain: Outcome,
}

/// What came of one way to answer.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Outcome {
    /// The query that the answer rests on.
    sql: Option<String>,
    /// `right`, `differs`, or why there are no rows.
    verdict: String,
    /// Whether code repaired the query.
    repaired: bool,
    tokens: u64,
    seconds: f64,
}

pub(crate) async fn run() -> Result<Vec<Figure>, Failure> {
    let wanted = match std::env::var("QUERENT_EVAL_QUESTIONS") {
        Ok(text) => text.trim().parse()?,
        Err(_) => QUESTIONS,
    };
    let model = model_of_environment()?;
    let folder = cache_folder()?.join("answers");
    tokio::fs::create_dir_all(&folder).await?;
    let schemas: Vec<SpiderDatabase> = read("tables.json").await?;
    let questions: Vec<SpiderQuestion> = read("dev.json").await?;
    // Spread over all databases, in an order that does not depend on how many are asked.
    let mut asked: Vec<&SpiderQuestion> = questions.iter().filter(|one| is_even(&one.question)).collect();
    asked.sort_by_cached_key(|one| fill::hash(&format!("{}{}", one.db_id, one.question)));
    let mut engines = Vec::new();
    for filling in 0..FILLINGS {
        engines.push(fill::lake(&folder, filling, &schemas, &questions).await?);
    }
    let path = folder.join(format!("{}.ndjson", model.model_id().replace(|c: char| !c.is_alphanumeric(), "-")));
    let mut recorded = recorded_in(&path).await?;
    let mut without_gold = 0;
    let mut done = Vec::new();
    let bar = indicatif::ProgressBar::new(wanted as u64).with_message("asking");
    for question in asked {
        if done.len() == wanted {
            break;
        }
        if let Some(known) = recorded.remove(&question.question) {
            done.push(known);
            bar.inc(1);
            continue;
        }
        let Some(gold) = gold_rows(&engines, question).await else {
            without_gold += 1;
            continue;
        };
        let schema = schemas.iter().find(|schema| schema.db_id == question.db_id);
        let one = Recorded {
            question: question.question.clone(),
            database: question.db_id.clone(),
            gold: question.query.clone(),
            agent: ask_agent(&engines, &model, question, &gold).await?,
            plain: match schema {
                Some(schema) => plain::ask(&engines, &model, schema, question, &gold).await?,
                None => Outcome::default(),
            },
        };
        append(&path, &one).await?;
        done.push(one);
        bar.inc(1);
    }
    bar.finish_and_clear();
    for engine in engines {
        engine.close().await?;
    }
    Ok(figures_of(&done, without_gold))
}

fn model_of_environment() -> Result<Arc<dyn ModelProvider>, Failure> {
    let host = std::env::var("QUERENT_AGENT_OLLAMA_HOST").unwrap_or_else(|_| "http://localhost:11434".to_owned());
    let name = std::env::var("QUERENT_AGENT_MODEL")
        .map_err(|_| "name the model in QUERENT_AGENT_MODEL, and its server in QUERENT_AGENT_OLLAMA_HOST")?;
    Ok(Arc::new(OllamaModel::new(&host, &name, ToolStyleSetting::Auto)?))
}

/// Asks the agent on the first filling; its query runs on the others.
async fn ask_agent(
    engines: &[Engine],
    model: &Arc<dyn ModelProvider>,
    question: &SpiderQuestion,
    gold: &[RowSet],
) -> Result<Outcome, Failure> {
    let config = AgentConfig { run_timeout: RUN_TIMEOUT, ..AgentConfig::default() };
    let agent = Agent::new(engines[0].clone(), Arc::clone(model), config);
    let request =
        AskRequest { question: question.question.clone(), database: None, include_thinking: false, session_id: None };
    let started = Instant::now();
    let mut run = agent.ask(&Principal::local_admin(), request).await?;
    let mut outcome = Outcome { verdict: "no query".to_owned(), ..Outcome::default() };
    let mut failed = None;
    while let Some(event) = run.events.next().await {
        match &event.kind {
            EventKind::AnswerFinal { sql_used, .. } => outcome.sql = sql_used.clone(),
            EventKind::ToolResult(result) => {
                failed = result.result["error"]["code"].as_str().map(str::to_owned);
                outcome.repaired = result.result.get("repaired").is_some();
            }
            EventKind::RunError { code, detail_code, .. } => {
                let cause = if *code == RunErrorCode::ToolLoop { failed.take() } else { None };
                outcome.verdict = cause.unwrap_or_else(|| detail_code.clone());
            }
            EventKind::RunFinished { usage, .. } => {
                outcome.tokens = usage.tokens.input_tokens + usage.tokens.output_tokens;
            }
            _ => {}
        }
    }
    outcome.seconds = started.elapsed().as_secs_f64();
    agent.shutdown().await;
    if let Some(sql) = &outcome.sql {
        outcome.verdict = match failed {
            Some(code) => code,
            None => judge::verdict(engines, None, sql, gold).await,
        };
    }
    Ok(outcome)
}

async fn recorded_in(path: &Path) -> Result<BTreeMap<String, Recorded>, Failure> {
    let text = match tokio::fs::read_to_string(path).await {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(error.into()),
    };
    let mut recorded = BTreeMap::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let one: Recorded = serde_json::from_str(line)?;
        recorded.insert(one.question.clone(), one);
    }
    Ok(recorded)
}

async fn append(path: &PathBuf, one: &Recorded) -> Result<(), Failure> {
    let mut file = tokio::fs::OpenOptions::new().create(true).append(true).open(path).await?;
    file.write_all(format!("{}\n", serde_json::to_string(one)?).as_bytes()).await?;
    file.flush().await?;
    Ok(())
}

fn figures_of(done: &[Recorded], without_gold: usize) -> Vec<Figure> {
    let count = done.len();
    let mut figures = Vec::new();
    let ways: [(&str, Vec<&Outcome>); 2] = [
        ("agent", done.iter().map(|one| &one.agent).collect()),
        ("plain prompt", done.iter().map(|one| &one.plain).collect()),
    ];
    let share = |part: usize| 100.0 * part as f64 / count.max(1) as f64;
    let mut right = Vec::new();
    for (way, outcomes) in &ways {
        let of_verdict = |verdict: &str| outcomes.iter().filter(|one| one.verdict == verdict).count();
        let found = of_verdict("right");
        right.push(found);
        let (low, high) = interval(found, count);
        let name = format!("{way}: rows equal to gold's, {found} of {count} (95 %: {low:.0} to {high:.0} %)");
        figures.push(Figure::alone(name, share(found), "%", None));
        let mut causes: BTreeMap<&str, usize> = BTreeMap::new();
        for one in outcomes.iter().filter(|one| !["right", "differs"].contains(&one.verdict.as_str())) {
            *causes.entry(one.verdict.as_str()).or_default() += 1;
        }
        let failed: usize = causes.values().sum();
        let bar = (*way == "agent").then_some(FAILURES_BAR);
        figures.push(Figure::alone(format!("{way}: queries that did not run"), share(failed), "%", bar));
        for (cause, times) in causes {
            figures.push(Figure::alone(format!("{way}: {cause}"), share(times), "%", None));
        }
        let seconds: Vec<f64> = outcomes.iter().map(|one| one.seconds).collect();
        let tokens: Vec<f64> = outcomes.iter().map(|one| one.tokens as f64).collect();
        if count > 0 {
            figures.push(Figure::alone(format!("{way}: seconds a question, median"), median(&seconds), "s", None));
            figures.push(Figure::alone(format!("{way}: tokens a question, median"), median(&tokens), "tokens", None));
        }
    }
    let repaired = done.iter().filter(|one| one.agent.repaired).count();
    figures.push(Figure::alone("agent: answers whose query code had repaired", share(repaired), "%", None));
    figures.push(Figure::alone("questions whose gold query has no rows here", without_gold as f64, "questions", None));
    if let [agent, plain] = right.as_slice()
        && *plain > 0
    {
        let ratio = *agent as f64 / *plain as f64;
        figures.push(Figure::at_least("agent against the plain prompt", ratio, "times", Some(RATIO_BAR)));
    }
    figures
}

/// Returns Wilson's 95 % interval of a share, in percent.
fn interval(part: usize, whole: usize) -> (f64, f64) {
    const Z: f64 = 1.96;
    if whole == 0 {
        return (0.0, 100.0);
    }
    let (n, share) = (whole as f64, part as f64 / whole as f64);
    let centre = share + Z * Z / (2.0 * n);
    let spread = Z * (share * (1.0 - share) / n + Z * Z / (4.0 * n * n)).sqrt();
    let scale = 100.0 / (1.0 + Z * Z / n);
    (scale * (centre - spread), scale * (centre + spread))
}
