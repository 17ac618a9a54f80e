//! `ask` with a model that answers at once, over 1,000 tables: what the agent adds to the model's and the query's time.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use querent_agent::models::{
    ChatRequest, ChatRole, DoneReason, ModelCapabilities, ModelEvent, ModelProvider, ModelToolCall, TokenUsage,
};
use querent_agent::{Agent, AgentConfig, AskRequest, EventKind};
use querent_catalog::Principal;
use querent_engine::{Engine, EngineOptions, Limits};
use serde::{Deserialize, Serialize};

use super::embedders::EmbedderModels;
use crate::Failure;
use crate::harness::{Figure, measure_in_process, median};

const TABLES: usize = 1_000;
const PROCESSES: usize = 3;
const WARM_UPS: usize = 5;
const RUNS: usize = 50;
const QUERY: &str = "select count(*) as n from orders_7";

#[derive(Serialize, Deserialize)]
struct AgentMeasurement {
    first_event_ms: Vec<f64>,
    first_model_request_ms: Vec<f64>,
    tool_call_ms: Vec<f64>,
    query_ms: Vec<f64>,
}

pub(crate) async fn run() -> Result<Vec<Figure>, Failure> {
    let lake = tempfile::tempdir()?;
    seed(lake.path()).await?;
    let bar = indicatif::ProgressBar::new(PROCESSES as u64).with_message("ask");
    let mut processes = Vec::new();
    for _ in 0..PROCESSES {
        processes.push(measure_in_process::<AgentMeasurement>("ask", lake.path()).await?);
        bar.inc(1);
    }
    bar.finish_and_clear();
    let all = |pick: fn(&AgentMeasurement) -> &Vec<f64>| {
        median(&processes.iter().flat_map(|process| pick(process).iter().copied()).collect::<Vec<_>>())
    };
    let overhead = all(|measured| &measured.tool_call_ms) - all(|measured| &measured.query_ms);
    Ok(vec![
        Figure::alone("ask to first event", all(|measured| &measured.first_event_ms), "ms", Some(5.0)),
        Figure::alone(
            "ask to first model request, 1,000 tables",
            all(|measured| &measured.first_model_request_ms),
            "ms",
            Some(60.0),
        ),
        Figure::alone("a run_sql call above the query itself", overhead, "ms", Some(1.0)),
    ])
}

/// Times of `RUNS` questions and of the same query without the agent, alternating.
pub(crate) async fn measure(lake: &Path) -> Result<serde_json::Value, Failure> {
    let engine = open(lake).await?;
    let model = Arc::new(InstantModel { first_request: FirstMark::default() });
    let agent = Agent::new(engine.clone(), Arc::clone(&model) as Arc<dyn ModelProvider>, AgentConfig::default());
    let principal = Principal::local_admin();
    let session = engine.session(principal.clone(), Limits::default()).read_only();
    let mut measured = AgentMeasurement {
        first_event_ms: vec![],
        first_model_request_ms: vec![],
        tool_call_ms: vec![],
        query_ms: vec![],
    };
    for round in 0..WARM_UPS + RUNS {
        model.first_request.clear();
        let question = format!("how many orders were made in region {round}?");
        let request =
            AskRequest { question, database: None, include_thinking: false, session_id: None, approvals: false };
        let started = Instant::now();
        let mut run = agent.ask(&principal, request).await?;
        let (mut first_event, mut called, mut tool_call) = (None, None, None);
        while let Some(event) = run.events.next().await {
            first_event.get_or_insert_with(|| milliseconds(started));
            match &event.kind {
                EventKind::ToolCallStarted(_) => called = Some(Instant::now()),
                EventKind::ToolResult(returned) => {
                    if returned.result.get("error").is_some() {
                        return Err(format!("the query failed: {}", returned.result).into());
                    }
                    tool_call = called.map(milliseconds);
                }
                EventKind::RunError { message, .. } => return Err(message.clone().into()),
                _ => {}
            }
        }
        let query_started = Instant::now();
        session.sql(QUERY).await?.collect().await?;
        let query = milliseconds(query_started);
        let first_request = model.first_request.since(started);
        if round >= WARM_UPS {
            measured.first_event_ms.extend(first_event);
            measured.first_model_request_ms.extend(first_request);
            measured.tool_call_ms.extend(tool_call);
            measured.query_ms.push(query);
        }
    }
    engine.close().await?;
    Ok(serde_json::to_value(measured)?)
}

fn milliseconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}

/// An engine with the models that `make bench` installs.
pub(super) async fn open(lake: &Path) -> Result<Engine, Failure> {
    let models = EmbedderModels::from_environment_or(EmbedderModels::MiniLm)?;
    let (embedder, reranker) = (models.embedder()?, models.reranker()?);
    Ok(Engine::open_with(EngineOptions { embedder, reranker, ..EngineOptions::new(lake) }).await?)
}

/// 1,000 tables of ten columns over a few domains; one row each in those that the query reads.
async fn seed(lake: &Path) -> Result<(), Failure> {
    const DOMAINS: &[&str] = &[
        "orders",
        "customers",
        "payments",
        "shipments",
        "sessions",
        "tickets",
        "invoices",
        "devices",
        "campaigns",
        "employees",
    ];
    let engine = open(lake).await?;
    let session = engine.session(Principal::local_admin(), Limits::default());
    let bar = indicatif::ProgressBar::new(TABLES as u64).with_message("creating tables");
    for number in 0..TABLES {
        let domain = DOMAINS[number % DOMAINS.len()];
        let name = if number == 70 { "orders_7".to_owned() } else { format!("{domain}_{number}") };
        let columns = "id bigint, created_at timestamp, region varchar, status varchar, amount double, owner_id bigint, note varchar, quantity int, currency varchar, updated_at timestamp";
        session.sql(&format!("create table {name} ({columns})")).await?.collect().await?;
        bar.inc(1);
    }
    session.sql("insert into orders_7 (id, region) values (1, 'north'), (2, 'south')").await?.collect().await?;
    bar.set_message("embedding");
    engine.catalog().search().index_idle().await?;
    bar.finish_and_clear();
    engine.close().await?;
    Ok(())
}

/// Calls `run_sql` in its first turn and answers in its second, at once.
struct InstantModel {
    first_request: FirstMark,
}

#[async_trait]
impl ModelProvider for InstantModel {
    fn model_id(&self) -> &str {
        "instant"
    }

    async fn capabilities(&self) -> querent_agent::Result<ModelCapabilities> {
        Ok(super::native_calls())
    }

    async fn chat(
        &self,
        request: ChatRequest,
    ) -> querent_agent::Result<BoxStream<'static, querent_agent::Result<ModelEvent>>> {
        self.first_request.mark();
        let answered = request.messages.iter().any(|message| message.role == ChatRole::Tool);
        let piece = if answered {
            ModelEvent::Text("two".to_owned())
        } else {
            let arguments = serde_json::json!({ "sql": QUERY });
            ModelEvent::ToolCall(ModelToolCall { id: None, name: "run_sql".to_owned(), arguments })
        };
        let done = ModelEvent::Done { usage: TokenUsage::default(), reason: DoneReason::Stop };
        Ok(stream::iter([Ok(piece), Ok(done)]).boxed())
    }
}

/// The time of an event's first occurrence since it was cleared.
#[derive(Default)]
struct FirstMark(std::sync::Mutex<Option<Instant>>);

impl FirstMark {
    fn clear(&self) {
        *self.lock() = None;
    }

    fn mark(&self) {
        self.lock().get_or_insert_with(Instant::now);
    }

    fn since(&self, started: Instant) -> Option<f64> {
        self.lock().map(|at| at.duration_since(started).as_secs_f64() * 1e3)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Instant>> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
