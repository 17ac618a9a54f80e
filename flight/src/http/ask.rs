//! `POST /v1/agent/ask`: a question in, the run's events out as SSE.
//!
//! Whatever goes wrong once the run exists is an event, and `run_finished` is always last. A client that goes away drops
//! the body, the body drops the run's events, and that cancels the run.

use std::convert::Infallible;
use std::time::{Duration, Instant};

use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures::StreamExt;
use http::{HeaderName, HeaderValue};
use querent_agent::protocols::ask::{AskRenderer, parse_request};
use querent_agent::protocols::{Frame, Renderer};
use querent_agent::{RunErrorCode, RunEvent, Usage};
use querent_catalog::Principal;
use serde_json::Value;

use super::request::read_body;
use crate::error::ApiError;
use crate::{AppState, metrics};

/// Proxies cut connections that are silent for long; a model may be.
const KEEP_ALIVE: Duration = Duration::from_secs(10);
/// nginx buffers responses unless told not to.
const UNBUFFERED: HeaderName = HeaderName::from_static("x-accel-buffering");

pub(super) async fn ask(
    State(state): State<AppState>,
    Extension(principal): Extension<Principal>,
    body: Body,
) -> Result<Response, ApiError> {
    let body = read_body(body, state.settings.http.max_query_bytes.0).await?;
    let request = parse_request(&body)?;
    let run = state.agent.ask(&principal, request).await?;
    tracing::info!(run_id = %run.run_id, "run started");
    let (mut renderer, mut observer) = (AskRenderer, RunObserver::new());
    let frames = run.events.flat_map(move |event| {
        observer.observe(&event);
        let frames = renderer.frame(&event).into_iter().map(|frame| Ok::<_, Infallible>(sse_event(&frame)));
        futures::stream::iter(frames.collect::<Vec<_>>())
    });
    let sse = Sse::new(frames).keep_alive(KeepAlive::new().interval(KEEP_ALIVE));
    let mut response = sse.into_response();
    response.headers_mut().insert(UNBUFFERED, HeaderValue::from_static("no"));
    Ok(response)
}

fn sse_event(frame: &Frame) -> Event {
    let event = Event::default();
    let event = match frame.event {
        Some(name) => event.event(name),
        None => event,
    };
    event.data(&frame.data)
}

/// Turns a run's events into its metrics. One dropped before `RunFinished` was cancelled by its client.
struct RunObserver {
    started: Instant,
    outcome: &'static str,
    usage: Usage,
    calls: Vec<(u32, Instant)>,
    _running: metrics::GaugeGuard,
}

impl RunObserver {
    fn new() -> Self {
        Self {
            started: Instant::now(),
            outcome: "cancelled",
            usage: Usage::default(),
            calls: Vec::new(),
            _running: metrics::run_started(),
        }
    }

    fn observe(&mut self, event: &RunEvent) {
        match event {
            RunEvent::RunStarted { .. } | RunEvent::ThinkingDelta { .. } | RunEvent::AnswerDelta { .. } => {}
            RunEvent::ToolCall { call_index, .. } => self.calls.push((*call_index, Instant::now())),
            RunEvent::ToolResult { tool, call_index, result } => self.tool_returned(tool, *call_index, result),
            RunEvent::AnswerFinal { .. } => self.outcome = "success",
            RunEvent::RunError { code, detail_code, .. } => {
                metrics::error(detail_code);
                self.outcome = outcome_of(*code);
            }
            RunEvent::RunFinished { usage, .. } => self.usage = *usage,
        }
    }

    fn tool_returned(&mut self, tool: &str, call_index: u32, result: &Value) {
        let Some(position) = self.calls.iter().position(|(index, _)| *index == call_index) else {
            return;
        };
        let (_, called) = self.calls.swap_remove(position);
        let outcome = if result.get("error").is_some() { "error" } else { "success" };
        metrics::tool_call(tool_label(tool), outcome, called.elapsed());
    }
}

impl Drop for RunObserver {
    fn drop(&mut self) {
        let Usage { input_tokens, output_tokens, .. } = self.usage;
        metrics::run_finished(self.outcome, self.started.elapsed(), input_tokens, output_tokens);
    }
}

/// A model may call tools that do not exist; their names must not become labels.
fn tool_label(tool: &str) -> &'static str {
    const KNOWN: [&str; 4] = ["list_databases", "describe_table", "run_sql", "sample_rows"];
    KNOWN.into_iter().find(|known| *known == tool).unwrap_or("unknown")
}

fn outcome_of(code: RunErrorCode) -> &'static str {
    match code {
        RunErrorCode::Timeout => "timeout",
        RunErrorCode::ToolLoop => "tool_loop",
        RunErrorCode::RunnerError => "runner_error",
        RunErrorCode::InitError => "init_error",
        RunErrorCode::Internal => "internal",
    }
}
