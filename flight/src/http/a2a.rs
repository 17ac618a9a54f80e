//! A2A's surface: the agent's card, and `POST /a2a`, whose messages begin tasks. A task goes on when its client goes away.

use std::collections::HashMap;

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, Utc};
use futures::StreamExt;
use http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use querent_agent::protocols::Renderer;
use querent_agent::protocols::a2a::{
    A2aCall, A2aFault, A2aRenderer, A2aVersion, INTERNAL_ERROR, INVALID_PARAMS, SentMessage, TASK_NOT_CANCELABLE,
    TASK_NOT_FOUND, TaskFilter, UNSUPPORTED_OPERATION, agent_card, check_version, error_object, parse_request,
    task_list,
};
use querent_agent::{EventKind, OnDisconnect, Protocol, RunEvent, RunRequest, events_of};
use querent_catalog::{ConversationKey, PageRequest, RunRecord, RunStatus};
use serde_json::{Value, json};
use uuid::Uuid;

use super::mcp;
use super::openai::error::{OpenAiError, OpenAiErrorParts};
use super::openai::run::{begin, wait_for_start};
use crate::error::{ApiError, RUN_SERVER};
use crate::http::elsewhere::as_stored;
use crate::http::idempotency::NotKept;
use crate::http::request::{ApiCall, QueryBytes};
use crate::http::response::json_response;
use crate::http::stream::event_stream;
use crate::state::AppState;

/// The header with the version that a client speaks.
const VERSION: &str = "a2a-version";
/// How long clients may keep the card: what it says changes with the server's settings.
const CARD_LIFETIME: HeaderValue = HeaderValue::from_static("max-age=300");
/// The newest runs among which a list looks for tasks, and how many are read at a time.
const MAX_SCANNED: usize = 2_000;
const RUNS_AT_ONCE: usize = 100;
/// The newest runs of a conversation among which the replies of a task are, and the bytes of their logs.
const MAX_REPLIES: usize = 200;
const MAX_LOG_BYTES: usize = 32 << 20;

/// Writes errors from before the handler (a wrong token, a long body) as JSON-RPC does, in their own status.
pub(super) fn add_layers(router: Router<AppState>, _state: &AppState) -> Router<AppState> {
    router.route_layer(from_fn(render_errors))
}

async fn render_errors(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    match response.extensions_mut().remove::<ApiError>() {
        Some(error) => mcp::error_response(error),
        None => response,
    }
}

/// `GET /.well-known/agent-card.json`: what other agents read first. Its address is the one that they asked.
pub(super) async fn card(State(state): State<AppState>, uri: Uri, headers: HeaderMap) -> Response {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).map(str::to_owned);
    let host = host.or_else(|| uri.authority().map(ToString::to_string)).unwrap_or_else(|| "localhost".to_owned());
    let forwarded = headers.get("x-forwarded-proto").and_then(|scheme| scheme.to_str().ok());
    let scheme = match forwarded {
        Some("https") => "https",
        Some("http") => "http",
        _ if state.settings.tls.is_on() => "https",
        _ => "http",
    };
    let card = agent_card(&format!("{scheme}://{host}/a2a"), !state.auth.is_open());
    let mut response = json_response(StatusCode::OK, &card);
    response.headers_mut().insert(header::CACHE_CONTROL, CARD_LIFETIME);
    response
}

/// `POST /a2a`: one request of JSON-RPC.
pub(super) async fn call(
    ApiCall { state, principal }: ApiCall,
    headers: HeaderMap,
    QueryBytes(body): QueryBytes,
) -> Response {
    let spoken = headers.get(VERSION).map_or(Ok(""), |version| version.to_str()).unwrap_or("unreadable");
    let request = match check_version(&body, spoken).and_then(|()| parse_request(&body)) {
        Ok(request) => request,
        Err(fault) => return not_kept(fault_response(&fault)),
    };
    let starts_run = matches!(request.call, A2aCall::Send(_));
    let (version, id) = (request.version, request.id.clone());
    let api = ApiCall { state, principal };
    let call = A2aCaller { api, version, id: request.id, history_length: request.history_length };
    let answered = match request.call {
        A2aCall::Send(message) => call.send(*message).await,
        A2aCall::Get(task) => call.task(task).await,
        A2aCall::Cancel(task) => call.cancel(task).await,
        A2aCall::Subscribe(task) => call.subscribe(task).await,
        A2aCall::List(filter) => call.list(&filter).await,
    };
    match answered {
        Ok(response) if starts_run => response,
        Ok(response) => not_kept(response),
        Err(A2aError::Fault(code, message)) => not_kept(fault_response(&A2aFault { id, code, message })),
        Err(A2aError::Failed(error)) => not_kept(failure_response(id, error)),
    }
}

/// Marks an answer that is made anew when its request is sent again.
fn not_kept(mut response: Response) -> Response {
    response.extensions_mut().insert(NotKept);
    response
}

/// One request.
struct A2aCaller {
    api: ApiCall,
    version: A2aVersion,
    id: Value,
    history_length: Option<usize>,
}

enum A2aError {
    Fault(i64, String),
    Failed(OpenAiError),
}

impl<E: Into<OpenAiError>> From<E> for A2aError {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

impl A2aCaller {
    async fn send(self, message: SentMessage) -> Result<Response, A2aError> {
        let ApiCall { state, principal } = &self.api;
        let (stream, at_once) = (message.stream, message.at_once);
        let mut renderer = A2aRenderer::new(self.version, self.id.clone()).with_history(self.history_length);
        let mut context = message.context_id.clone();
        if let Some(task) = message.task_id {
            let runs = self.runs_of(task).await?;
            renderer.replay(&logs_of(&runs)?);
            if !renderer.waits_for_input() {
                let text = format!("task {task} waits for no message; send it in its `contextId`, without a `taskId`");
                return Err(A2aError::Fault(UNSUPPORTED_OPERATION, text));
            }
            let its_own = runs.first().and_then(|run| run.conversation.as_ref()).map(|key| key.id.clone());
            if context.is_some() && context != its_own {
                let text = "`params.message.contextId` is not that of the task; leave it out";
                return Err(A2aError::Fault(INVALID_PARAMS, text.to_owned()));
            }
            context = its_own;
        }
        let context = context.unwrap_or_else(|| format!("ctx_{}", Uuid::now_v7().simple()));
        let (run, items) = message.into_run();
        let run = RunRequest { on_disconnect: OnDisconnect::KeepRunning, ..run };
        let key = ConversationKey::shared(context.trim());
        let (_, events) = begin(state, principal, run, items, Some(key), None).await?;
        let mut events = wait_for_start(events).await?;
        if stream {
            return Ok(event_stream(events, renderer));
        }
        while let Some(event) = events.next().await {
            renderer.frame(&event);
            if at_once {
                break;
            }
        }
        Ok(json_response(StatusCode::OK, &renderer.answer(true)))
    }

    async fn task(self, task: Uuid) -> Result<Response, A2aError> {
        let runs = self.runs_of(task).await?;
        let state = self.api.state.clone();
        let running = runs.iter().find(|run| run.status == RunStatus::Running);
        Ok(as_stored(&state, running, self.task_response(&runs)?).await?)
    }

    async fn cancel(self, task: Uuid) -> Result<Response, A2aError> {
        let mut runs = self.runs_of(task).await?;
        let mut renderer = A2aRenderer::new(self.version, Value::Null);
        renderer.replay(&logs_of(&runs)?);
        let Some(newest) = runs.pop() else { return Err(no_task(task)) };
        let ApiCall { state, principal } = &self.api;
        let cancelled = match newest.status {
            RunStatus::Running => Some(state.agent.cancel_run(principal, newest.run_id).await?),
            _ if renderer.waits_for_input() => state.agent.give_up_question(principal, newest.run_id).await?,
            _ => None,
        };
        let ended = || A2aError::Fault(TASK_NOT_CANCELABLE, format!("task {task} has ended"));
        runs.push(cancelled.ok_or_else(ended)?);
        self.task_response(&runs)
    }

    async fn subscribe(self, task: Uuid) -> Result<Response, A2aError> {
        let mut runs = self.runs_of(task).await?;
        let Some(newest) = runs.pop() else { return Err(no_task(task)) };
        if self.version == A2aVersion::V1_0 && newest.status != RunStatus::Running {
            return Err(A2aError::Fault(UNSUPPORTED_OPERATION, format!("task {task} has ended; get it with GetTask")));
        }
        let events = self.api.state.agent.events(&self.api.principal, newest.run_id, 0).await?;
        let mut renderer = A2aRenderer::new(self.version, self.id.clone()).with_history(self.history_length);
        renderer.replay(&logs_of(&runs)?);
        Ok(event_stream(events, renderer))
    }

    async fn list(self, filter: &TaskFilter) -> Result<Response, A2aError> {
        let ApiCall { state, principal } = &self.api;
        let mut runs: Vec<RunRecord> = Vec::new();
        let mut replied: HashMap<String, DateTime<Utc>> = HashMap::new();
        let (mut scanned, mut page) = (0, PageRequest::first(RUNS_AT_ONCE));
        while scanned < MAX_SCANNED {
            let listed = state.agent.catalog().runs().list(principal, page).await?;
            scanned += listed.items.len();
            for run in listed.items.into_iter().filter(|run| run.protocol == Protocol::A2a.as_str()) {
                if let Some(task) = &run.invocation_id {
                    let at = replied.entry(task.clone()).or_insert_with(|| changed_at(&run));
                    *at = changed_at(&run).max(*at);
                } else if filter.accepts(&run) {
                    runs.push(run);
                }
            }
            let Some(after) = listed.next else { break };
            page = PageRequest { limit: RUNS_AT_ONCE, after: Some(after) };
        }
        if filter.needs_logs() {
            let mut fitting = Vec::new();
            for run in runs {
                let log = logs_of(&self.with_replies(run.clone()).await?)?;
                if filter.is_listed(&filter.task(&log)) {
                    fitting.push(run);
                }
            }
            runs = fitting;
        }
        runs.sort_by_key(|run| {
            let replied = replied.get(&run.run_id.to_string()).copied();
            std::cmp::Reverse((replied.map_or_else(|| changed_at(run), |at| at.max(changed_at(run))), run.run_id))
        });
        let total = runs.len();
        if let Some(token) = &filter.page_token {
            let Some(place) = runs.iter().position(|run| run.run_id.to_string() == *token) else {
                let message = "`params.pageToken` is not one of this list; start without it";
                return Err(A2aError::Fault(INVALID_PARAMS, message.to_owned()));
            };
            runs.drain(..=place);
        }
        let next = runs.get(filter.page_size - 1).filter(|_| runs.len() > filter.page_size);
        let next = next.map(|run| run.run_id.to_string());
        let mut tasks = Vec::new();
        for run in runs.iter().take(filter.page_size) {
            tasks.push(filter.task(&logs_of(&self.with_replies(run.clone()).await?)?));
        }
        Ok(json_response(StatusCode::OK, &task_list(&self.id, &tasks, filter.page_size, total, next.as_deref())))
    }

    /// Returns the runs of a task of the caller's, the oldest first: one for its first message, and one for each reply to
    /// what it has asked back.
    async fn runs_of(&self, task: Uuid) -> Result<Vec<RunRecord>, A2aError> {
        let ApiCall { state, principal } = &self.api;
        match state.agent.catalog().runs().get(principal, task).await {
            Ok(run) if run.protocol == Protocol::A2a.as_str() && run.invocation_id.is_none() => {
                self.with_replies(run).await
            }
            Ok(_) => Err(no_task(task)),
            Err(querent_catalog::CatalogError::RunNotFound { .. }) => Err(no_task(task)),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the first run of a task with those of its replies, and with the logs of all as they are now.
    async fn with_replies(&self, first: RunRecord) -> Result<Vec<RunRecord>, A2aError> {
        let ApiCall { state, principal } = &self.api;
        let (task, key) = (first.run_id.to_string(), first.conversation.clone());
        let mut runs = vec![state.agent.get_run(principal, first.run_id).await?];
        let Some(key) = key else { return Ok(runs) };
        let newer =
            state.agent.catalog().runs().logs_of_conversation(principal, &key, MAX_REPLIES, MAX_LOG_BYTES).await?;
        for reply in newer.into_iter().filter(|run| run.invocation_id.as_ref() == Some(&task)) {
            let reply = state.agent.get_run(principal, reply.run_id).await?;
            // One that could not begin was answered with an error, and says nothing of its task.
            let has_begun = |log: Vec<RunEvent>| log.iter().any(|event| matches!(event.kind, EventKind::RunStarted(_)));
            if reply.status == RunStatus::Running || events_of(&reply).map(has_begun)? {
                runs.push(reply);
            }
        }
        Ok(runs)
    }

    fn task_response(self, runs: &[RunRecord]) -> Result<Response, A2aError> {
        let mut renderer = A2aRenderer::new(self.version, self.id).with_history(self.history_length);
        renderer.replay(&logs_of(runs)?);
        Ok(json_response(StatusCode::OK, &renderer.answer(false)))
    }
}

/// When a run's status changed last, as far as is known without its log.
fn changed_at(run: &RunRecord) -> DateTime<Utc> {
    run.finished_at.unwrap_or(run.started_at)
}

fn logs_of(runs: &[RunRecord]) -> Result<Vec<RunEvent>, A2aError> {
    let mut events = Vec::new();
    for run in runs {
        events.extend(events_of(run)?);
    }
    Ok(events)
}

fn no_task(task: Uuid) -> A2aError {
    A2aError::Fault(TASK_NOT_FOUND, format!("there is no task {task}"))
}

fn fault_response(fault: &A2aFault) -> Response {
    let error = error_object(fault.code, &fault.message, None);
    json_response(StatusCode::OK, &json!({ "jsonrpc": "2.0", "id": fault.id, "error": error }))
}

/// Writes an error of the server as JSON-RPC does; one that says when to come back keeps its status.
fn failure_response(id: Value, error: OpenAiError) -> Response {
    let mut response = error.into_response();
    let status = response.status();
    let Some(OpenAiErrorParts { message, code, .. }) = response.extensions_mut().remove::<OpenAiErrorParts>() else {
        return response;
    };
    let rpc_code = match status {
        StatusCode::CONFLICT => UNSUPPORTED_OPERATION,
        status if status.is_client_error() && status != StatusCode::TOO_MANY_REQUESTS => INVALID_PARAMS,
        _ => INTERNAL_ERROR,
    };
    let error = error_object(rpc_code, &message, Some(code.as_str()));
    let body = json!({ "jsonrpc": "2.0", "id": id, "error": error });
    let is_for_later = response.headers().contains_key(header::RETRY_AFTER);
    let status = if is_for_later { status } else { StatusCode::OK };
    let mut rendered = json_response(status, &body);
    for name in [header::RETRY_AFTER, RUN_SERVER] {
        if let Some(value) = response.headers_mut().remove(&name) {
            rendered.headers_mut().insert(name, value);
        }
    }
    rendered
}
