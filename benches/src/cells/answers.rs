//! Answers to questions, judged by rows, in sets: Spider dev's (even half) over its 166 schemas as one catalog, no database
//! named, on three fillings; flights; logs to be asked in KQL; and questions that the data cannot answer. Beside the agent
//! the same model gets the plain prompt, on Spider's questions: the whole schema of the right database in one shot, its
//! query as the model writes it.
//!
//! Needs a model: `QUERENT_AGENT_OLLAMA_HOST` and `QUERENT_AGENT_MODEL` (`scripts/eval.sh` starts the local one). Each
//! question is recorded as it is answered, and a run that is started again goes on. `QUERENT_EVAL_QUESTIONS` bounds each
//! set, `QUERENT_EVAL_SETS` chooses among them, `QUERENT_EVAL_VOTING` and `QUERENT_EVAL_RUN_TIMEOUT` (seconds) set the agent,
//! `QUERENT_EVAL_FORM` leaves parts of the prompt out or writes them otherwise ([`PromptForm`]).

mod fill;
pub(super) mod fit;
mod judge;
mod plain;
mod sets;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt;
use querent_agent::models::ollama::OllamaModel;
use querent_agent::models::{ModelProvider, ToolStyleSetting};
use querent_agent::{Agent, AgentConfig, AnswerFinal, AskRequest, EventKind, PromptForm, RunErrorCode};
use querent_catalog::Principal;
use querent_engine::Engine;
use serde::{Deserialize, Serialize};
use tokio::io::AsyncWriteExt;

use self::judge::{AnswerQuery, gold_rows};
use self::sets::QuestionSet;
use super::recall::{SpiderDatabase, SpiderQuestion, is_even, read};
use crate::Failure;
use crate::harness::{Figure, cache_folder, median};

/// Fillings on which rows are compared.
const FILLINGS: usize = 3;
/// Questions asked unless `QUERENT_EVAL_QUESTIONS` says otherwise.
const QUESTIONS: usize = 200;
/// Long enough for a slow machine: a question that takes longer is a failure.
const RUN_TIMEOUT: Duration = Duration::from_secs(600);
/// The name of Spider's set.
const SPIDER: &str = "spider";
/// How much better than the plain prompt the agent is to be.
const RATIO_BAR: f64 = 1.4;
/// Of a hundred questions that have no answer, those of which the agent says so.
const UNANSWERABLE_BAR: f64 = 80.0;
/// Of a hundred questions that have an answer, those of which the agent may say that they have none.
const FALSE_ALARM_BAR: f64 = 5.0;
/// Queries of a hundred that may fail to run.
const FAILURES_BAR: f64 = 3.0;

/// What came of one question, as it is recorded.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Recorded {
    /// The set that it is of.
    #[serde(default = "spider")]
    set: String,
    question: String,
    database: String,
    gold: String,
    pub(super) agent: Outcome,
    /// Only of Spider's questions.
    #[serde(default)]
    plain: Option<Outcome>,
}

fn spider() -> String {
    SPIDER.to_owned()
}

/// What came of one way to answer.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Outcome {
    /// The query that the answer rests on.
    sql: Option<String>,
    /// `right`, `differs`, or why there are no rows.
    verdict: String,
    /// Whether code repaired the query.
    repaired: bool,
    tokens: u64,
    seconds: f64,
    /// The calls that were made for it and what came of each, for whoever looks why an answer is wrong.
    #[serde(default)]
    calls: Vec<RecordedCall>,
    /// What was answered.
    #[serde(default)]
    text: String,
    /// What the confidence rests on.
    #[serde(default)]
    pub(super) features: BTreeMap<String, f64>,
    /// The confidence's word.
    #[serde(default)]
    level: Option<String>,
    /// Its figure, where it was fitted.
    #[serde(default)]
    probability: Option<f64>,
}

/// A call of a tool.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct RecordedCall {
    tool: String,
    /// As the model wrote them.
    arguments: String,
    /// What the model read, at most [`RecordedCall::MOST_CHARACTERS`] of it.
    result: String,
}

impl RecordedCall {
    const MOST_CHARACTERS: usize = 600;
}

impl Outcome {
    pub(super) fn is_right(&self) -> bool {
        self.verdict == "right"
    }
}

pub(crate) async fn run() -> Result<Vec<Figure>, Failure> {
    let wanted = number_of_environment("QUERENT_EVAL_QUESTIONS")?.unwrap_or(QUESTIONS);
    let chosen = std::env::var("QUERENT_EVAL_SETS").unwrap_or_default();
    let is_chosen = |name: &str| chosen.is_empty() || chosen.split(',').any(|set| set.trim() == name);
    let model = model_of_environment()?;
    let folder = cache_folder()?.join("answers");
    tokio::fs::create_dir_all(&folder).await?;
    // Another form of the prompt is another evaluation.
    let (id, form) = (model.model_id(), prompt_form_of_environment()?.to_string());
    let name = if form.is_empty() { id.to_owned() } else { format!("{id} {form}") };
    let path = folder.join(format!("{}.ndjson", name.replace(|c: char| !c.is_alphanumeric(), "-")));
    let mut results = Results { recorded: recorded_in(&path).await?, path, done: Vec::new(), without_gold: 0 };
    for set in QuestionSet::ALL.into_iter().filter(|set| is_chosen(set.name())) {
        own_questions(&mut results, &model, &folder, set, wanted).await?;
    }
    if is_chosen(SPIDER) {
        spider_questions(&mut results, &model, &folder, wanted).await?;
    }
    Ok(figures_of(&results.done, results.without_gold))
}

/// Returns the form of the prompt: `types=off,joins=clauses` and the like.
fn prompt_form_of_environment() -> Result<PromptForm, Failure> {
    match std::env::var("QUERENT_EVAL_FORM") {
        Ok(text) => Ok(text.parse().map_err(|error| format!("QUERENT_EVAL_FORM: {error}"))?),
        Err(_) => Ok(PromptForm::DEFAULT),
    }
}

fn number_of_environment(name: &str) -> Result<Option<usize>, Failure> {
    match std::env::var(name) {
        Ok(text) => Ok(Some(text.trim().parse().map_err(|error| format!("{name}={text}: {error}"))?)),
        Err(_) => Ok(None),
    }
}

/// What was recorded before, and in this run.
struct Results {
    recorded: BTreeMap<(String, String), Recorded>,
    path: PathBuf,
    done: Vec<Recorded>,
    without_gold: usize,
}

impl Results {
    /// Takes over what was recorded before. Returns whether there was anything.
    fn take_known(&mut self, set: &str, question: &str) -> bool {
        let known = self.recorded.remove(&(set.to_owned(), question.to_owned()));
        let is_known = known.is_some();
        self.done.extend(known);
        is_known
    }

    /// Records a question and says what came of it.
    async fn add(&mut self, one: Recorded) -> Result<(), Failure> {
        append(&self.path, &one).await?;
        let plain = one.plain.as_ref().map(|plain| format!(", plain {}", plain.verdict)).unwrap_or_default();
        let Outcome { verdict, seconds, .. } = &one.agent;
        let line = format!(
            "{} {}: agent {verdict} in {seconds:.0} s{plain}: {}\n",
            one.set,
            self.done.len() + 1,
            one.question
        );
        tokio::io::stderr().write_all(line.as_bytes()).await?;
        self.done.push(one);
        Ok(())
    }
}

/// Asks the questions of a set of our own.
async fn own_questions(
    results: &mut Results,
    model: &Arc<dyn ModelProvider>,
    folder: &Path,
    set: QuestionSet,
    wanted: usize,
) -> Result<(), Failure> {
    let engine = match set.is_over_spider() {
        true => {
            let schemas: Vec<SpiderDatabase> = read("tables.json").await?;
            let questions: Vec<SpiderQuestion> = read("dev.json").await?;
            fill::lake(folder, 0, &schemas, &questions).await?
        }
        false => sets::lake(folder).await?,
    };
    for question in set.questions().await?.into_iter().take(wanted) {
        if results.take_known(set.name(), &question.question) {
            continue;
        }
        let gold = question.gold_rows(&engine).await?;
        let mut asked = ask_agent(&engine, model, &question.question).await?;
        match (&gold, &asked.query) {
            (None, _) => {
                let says_so = asked.held_back || sets::says_unanswerable(&asked.text);
                asked.outcome.verdict = if says_so { "right".to_owned() } else { "differs".to_owned() };
            }
            (Some(gold), Some(query)) if asked.failed.is_none() => {
                asked.outcome.verdict = judge::verdict_of(&engine, query, gold).await;
            }
            (Some(_), _) => {}
        }
        let one = Recorded {
            set: set.name().to_owned(),
            question: question.question.clone(),
            database: question.database.clone().unwrap_or_else(|| "default".to_owned()),
            gold: question.sql.or(question.kql).unwrap_or_default(),
            agent: asked.outcome,
            plain: None,
        };
        results.add(one).await?;
    }
    engine.close().await?;
    Ok(())
}

/// Asks Spider's questions.
async fn spider_questions(
    results: &mut Results,
    model: &Arc<dyn ModelProvider>,
    folder: &Path,
    wanted: usize,
) -> Result<(), Failure> {
    let schemas: Vec<SpiderDatabase> = read("tables.json").await?;
    let questions: Vec<SpiderQuestion> = read("dev.json").await?;
    // Spread over all databases, in an order that does not depend on how many are asked.
    let mut asked: Vec<&SpiderQuestion> = questions.iter().filter(|one| is_even(&one.question)).collect();
    asked.sort_by_cached_key(|one| fill::hash(&format!("{}{}", one.db_id, one.question)));
    let mut engines = Vec::new();
    for filling in 0..FILLINGS {
        engines.push(fill::lake(folder, filling, &schemas, &questions).await?);
    }
    let mut count = 0;
    for question in asked {
        if count == wanted {
            break;
        }
        if results.take_known(SPIDER, &question.question) {
            count += 1;
            continue;
        }
        let Some(gold) = gold_rows(&engines, question).await else {
            results.without_gold += 1;
            continue;
        };
        let mut asked = ask_agent(&engines[0], model, &question.question).await?;
        if let (Some(AnswerQuery::Sql(sql)), None) = (&asked.query, &asked.failed) {
            asked.outcome.verdict = judge::verdict(&engines, asked.database.as_deref(), sql, &gold).await;
        }
        let schema = schemas.iter().find(|schema| schema.db_id == question.db_id);
        let plain = match schema {
            Some(schema) => Some(plain::ask(&engines, model, schema, question, &gold).await),
            None => None,
        };
        let one = Recorded {
            set: spider(),
            question: question.question.clone(),
            database: question.db_id.clone(),
            gold: question.query.clone(),
            agent: asked.outcome,
            plain,
        };
        results.add(one).await?;
        count += 1;
    }
    for engine in engines {
        engine.close().await?;
    }
    Ok(())
}

fn model_of_environment() -> Result<Arc<dyn ModelProvider>, Failure> {
    let host = std::env::var("QUERENT_AGENT_OLLAMA_HOST").unwrap_or_else(|_| "http://localhost:11434".to_owned());
    let name = std::env::var("QUERENT_AGENT_MODEL")
        .map_err(|_| "name the model in QUERENT_AGENT_MODEL, and its server in QUERENT_AGENT_OLLAMA_HOST")?;
    Ok(Arc::new(OllamaModel::new(&host, &name, ToolStyleSetting::Auto)?))
}

/// What the agent answered.
struct AgentAnswer {
    /// Its verdict says why there is no query, where there is none.
    outcome: Outcome,
    query: Option<AnswerQuery>,
    /// Where its names resolve, if that is not where the caller's do.
    database: Option<String>,
    text: String,
    held_back: bool,
    /// The code of its last query's error.
    failed: Option<String>,
}

/// Asks the agent.
async fn ask_agent(engine: &Engine, model: &Arc<dyn ModelProvider>, question: &str) -> Result<AgentAnswer, Failure> {
    let run_timeout = match number_of_environment("QUERENT_EVAL_RUN_TIMEOUT")? {
        Some(seconds) => Duration::from_secs(seconds as u64),
        None => RUN_TIMEOUT,
    };
    let voting = match std::env::var("QUERENT_EVAL_VOTING") {
        Ok(text) => text.parse()?,
        Err(_) => AgentConfig::DEFAULT.voting,
    };
    let prompt_form = prompt_form_of_environment()?;
    let config =
        AgentConfig { run_timeout, slow_run_timeout: run_timeout, voting, prompt_form, ..AgentConfig::default() };
    let agent = Agent::new(engine.clone(), Arc::clone(model), config);
    let request = AskRequest {
        question: question.to_owned(),
        database: None,
        include_thinking: false,
        session_id: None,
        approvals: false,
    };
    let started = Instant::now();
    let mut run = agent.ask(&Principal::local_admin(), request).await?;
    let mut answer = AgentAnswer {
        outcome: Outcome { verdict: "no query".to_owned(), ..Outcome::default() },
        query: None,
        database: None,
        text: String::new(),
        held_back: false,
        failed: None,
    };
    while let Some(event) = run.events.next().await {
        match &event.kind {
            EventKind::AnswerFinal(last) => {
                let AnswerFinal { text, sql_used, kql_used, assessment, .. } = last.as_ref();
                answer.text.clone_from(text);
                answer.outcome.text.clone_from(text);
                answer.held_back = assessment.held_back;
                answer.database.clone_from(&assessment.sql_database);
                answer.outcome.features = assessment.features.clone();
                if let Some(confidence) = &assessment.confidence {
                    answer.outcome.level = Some(confidence.level.as_str().to_owned());
                    answer.outcome.probability = confidence.probability;
                }
                let kql = kql_used.clone().map(AnswerQuery::Kql);
                answer.query = kql.or_else(|| sql_used.clone().map(AnswerQuery::Sql));
                answer.outcome.sql = sql_used.clone().or_else(|| kql_used.clone());
            }
            EventKind::ToolCallStarted(call) => answer.outcome.calls.push(RecordedCall {
                tool: call.tool.clone(),
                arguments: call.args_raw.clone(),
                result: String::new(),
            }),
            EventKind::ToolResult(result) => {
                if let Some(call) = answer.outcome.calls.last_mut() {
                    call.result = result.text.chars().take(RecordedCall::MOST_CHARACTERS).collect();
                }
                answer.failed = result.result["error"]["code"].as_str().map(str::to_owned);
                answer.outcome.repaired = result.result.get("repaired").is_some();
            }
            EventKind::RunError { code, detail_code, .. } => {
                let cause = if *code == RunErrorCode::ToolLoop { answer.failed.clone() } else { None };
                answer.outcome.verdict = cause.unwrap_or_else(|| detail_code.clone());
            }
            EventKind::RunFinished(finished) => {
                let tokens = finished.usage.tokens;
                answer.outcome.tokens = tokens.input_tokens + tokens.output_tokens;
            }
            _ => {}
        }
    }
    answer.outcome.seconds = started.elapsed().as_secs_f64();
    agent.shutdown().await;
    if let (Some(_), Some(code)) = (&answer.query, &answer.failed) {
        answer.outcome.verdict.clone_from(code);
    }
    Ok(answer)
}

/// Reads what was recorded, by set and question.
pub(super) async fn recorded_in(path: &Path) -> Result<BTreeMap<(String, String), Recorded>, Failure> {
    let text = match tokio::fs::read_to_string(path).await {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(error.into()),
    };
    let mut recorded = BTreeMap::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let one: Recorded = serde_json::from_str(line)?;
        recorded.insert((one.set.clone(), one.question.clone()), one);
    }
    Ok(recorded)
}

async fn append(path: &PathBuf, one: &Recorded) -> Result<(), Failure> {
    let mut file = tokio::fs::OpenOptions::new().create(true).append(true).open(path).await?;
    file.write_all(format!("{}\n", serde_json::to_string(one)?).as_bytes()).await?;
    file.flush().await?;
    Ok(())
}

fn figures_of(all: &[Recorded], without_gold: usize) -> Vec<Figure> {
    let mut figures = Vec::new();
    for set in QuestionSet::ALL.map(QuestionSet::name).into_iter().chain([SPIDER]) {
        let outcomes: Vec<&Outcome> = all.iter().filter(|one| one.set == set).map(|one| &one.agent).collect();
        if !outcomes.is_empty() {
            add_figures(&mut figures, &format!("{set}, agent"), &outcomes, set != SPIDER);
        }
    }
    let compared: Vec<&Recorded> = all.iter().filter(|one| one.set == SPIDER && one.plain.is_some()).collect();
    let plain: Vec<&Outcome> = compared.iter().filter_map(|one| one.plain.as_ref()).collect();
    if plain.is_empty() {
        return figures;
    }
    add_figures(&mut figures, "spider, plain prompt", &plain, true);
    let repaired = compared.iter().filter(|one| one.agent.repaired).count();
    let share = 100.0 * repaired as f64 / compared.len() as f64;
    figures.push(Figure::alone("spider, agent: answers whose query code had repaired", share, "%", None));
    figures.push(Figure::alone("questions whose gold query has no rows here", without_gold as f64, "questions", None));
    let right = |outcomes: &mut dyn Iterator<Item = &Outcome>| outcomes.filter(|one| one.is_right()).count();
    let (agent, plain) = (right(&mut compared.iter().map(|one| &one.agent)), right(&mut plain.into_iter()));
    if plain > 0 {
        let ratio = agent as f64 / plain as f64;
        figures.push(Figure::at_least("agent against the plain prompt", ratio, "times", Some(RATIO_BAR)));
    }
    figures
}

/// Adds the figures of one way to answer one set.
fn add_figures(figures: &mut Vec<Figure>, way: &str, outcomes: &[&Outcome], is_beside: bool) {
    let count = outcomes.len();
    let share = |part: usize| 100.0 * part as f64 / count.max(1) as f64;
    let found = outcomes.iter().filter(|one| one.is_right()).count();
    let (low, high) = interval(found, count);
    let is_unanswerable = way.starts_with(QuestionSet::Unanswerable.name());
    let what = if is_unanswerable { "said so" } else { "rows equal to gold's" };
    let name = format!("{way}: {what}, {found} of {count} (95 %: {low:.0} to {high:.0} %)");
    figures.push(match is_unanswerable {
        true => Figure::at_least(name, share(found), "%", Some(UNANSWERABLE_BAR)),
        false => Figure::alone(name, share(found), "%", None),
    });
    if !is_unanswerable {
        let alarms = outcomes.iter().filter(|one| one.features.get("missing").is_some_and(|flag| *flag > 0.0)).count();
        let name = format!("{way}: said to be without an answer, {alarms} of {count}");
        figures.push(Figure::alone(name, share(alarms), "%", Some(FALSE_ALARM_BAR)));
    }
    let mut causes: BTreeMap<&str, usize> = BTreeMap::new();
    for one in outcomes.iter().filter(|one| !["right", "differs"].contains(&one.verdict.as_str())) {
        *causes.entry(one.verdict.as_str()).or_default() += 1;
    }
    let failed: usize = causes.values().sum();
    let bar = (!is_beside).then_some(FAILURES_BAR);
    figures.push(Figure::alone(format!("{way}: queries that did not run"), share(failed), "%", bar));
    for (cause, times) in causes {
        figures.push(Figure::alone(format!("{way}: {cause}"), share(times), "%", None));
    }
    for level in ["likely", "unsure", "doubtful"] {
        let of_level: Vec<&&Outcome> = outcomes.iter().filter(|one| one.level.as_deref() == Some(level)).collect();
        if !of_level.is_empty() {
            let right = of_level.iter().filter(|one| one.is_right()).count();
            let (low, high) = interval(right, of_level.len());
            let name = format!(
                "{way}: right where called {level}, {right} of {} (95 %: {low:.0} to {high:.0} %)",
                of_level.len()
            );
            figures.push(Figure::alone(name, 100.0 * right as f64 / of_level.len() as f64, "%", None));
        }
    }
    let seconds: Vec<f64> = outcomes.iter().map(|one| one.seconds).collect();
    let tokens: Vec<f64> = outcomes.iter().map(|one| one.tokens as f64).collect();
    if count > 0 {
        figures.push(Figure::alone(format!("{way}: seconds a question, median"), median(&seconds), "s", None));
        figures.push(Figure::alone(format!("{way}: tokens a question, median"), median(&tokens), "tokens", None));
    }
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
