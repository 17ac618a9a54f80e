//! `/v1/responses`: creates responses, retrieves and follows them, cancels and deletes them.

use axum::response::Response;
use futures::StreamExt;
use http::{HeaderMap, StatusCode};
use querent_agent::protocols::Renderer;
use querent_agent::protocols::responses::{
    ResponsesDialect, ResponsesRenderer, ResponsesRequest, input_items, parse_count, parse_request, response_id,
    run_of_response,
};
use querent_agent::{OnDisconnect, Protocol, RunEvents, RunOutcome, RunRequest, events_of};
use querent_catalog::{ConversationKey, Principal, RunRecord, RunStatus};
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::error::OpenAiError;
use super::fields::{MAX_LISTED, OpenAiParams, checked_limit};
use super::run::{begin, tokens_of, wait_for_start};
use crate::error::{ApiError, ErrorCode};
use crate::http::elsewhere::as_stored;
use crate::http::request::{ApiCall, PathText, QueryBytes, header_text, parse_off_runtime};
use crate::http::response::json_response;
use crate::http::stream::event_stream;
use crate::state::AppState;

/// The header that asks for KsADK's extension events.
const KSADK_EVENTS: &str = "x-ksadk-events";
/// The prefix of headers that OpenAI's own libraries send.
const STAINLESS: &str = "x-stainless-";

/// `POST /v1/responses`.
pub(in crate::http) async fn create(
    ApiCall { state, principal }: ApiCall,
    headers: HeaderMap,
    QueryBytes(body): QueryBytes,
) -> Result<Response, OpenAiError> {
    let request = parse_off_runtime(body, parse_request).await??;
    check_tool_servers(&request, &headers)?;
    let dialect = dialect_of(&request, &headers)?;
    answer(&state, &principal, request, Protocol::Responses, dialect).await
}

/// `POST /v1/responses/input_tokens`: estimates the tokens of what a request says and continues, without the server's own
/// prompt.
pub(in crate::http) async fn input_tokens(
    ApiCall { state, principal }: ApiCall,
    headers: HeaderMap,
    QueryBytes(body): QueryBytes,
) -> Result<Response, OpenAiError> {
    let mut request = parse_off_runtime(body, parse_count).await??;
    check_tool_servers(&request, &headers)?;
    let mut conversation = request.conversation.take().map(ConversationKey::shared);
    if let Some(key) = &conversation
        && let Err(error) = state.agent.catalog().conversations().get(&principal, key).await
    {
        match ErrorCode::from(&error) {
            // A response would begin it.
            ErrorCode::ConversationNotFound => conversation = None,
            _ => return Err(error.into()),
        }
    }
    let previous = request.previous_response_id.take();
    let (run, items) = request.into_run(Protocol::Responses);
    let tokens = tokens_of(&state, &principal, run, items, conversation, previous.as_deref()).await?;
    Ok(json_response(StatusCode::OK, &json!({ "object": "response.input_tokens", "input_tokens": tokens })))
}

/// Refuses servers of tools other than this one, as its client names it.
pub(super) fn check_tool_servers(request: &ResponsesRequest, headers: &HeaderMap) -> Result<(), OpenAiError> {
    let own = headers.get(http::header::HOST).and_then(|host| host.to_str().ok());
    for (field, address) in &request.tool_servers {
        let authority = address.split_once("://").map_or(address.as_str(), |(_, rest)| rest);
        let authority = authority.split(['/', '?', '#']).next().unwrap_or_default();
        // HTTP/2 has no such header; the address of a proxy is not known here.
        if own.is_some_and(|own| !authority.eq_ignore_ascii_case(own)) {
            let message = format!("`{field}` {address} is another server, whose tools are not called from here");
            return Err(OpenAiError::bad_request(ErrorCode::InvalidRequest, field, message));
        }
    }
    Ok(())
}

/// Runs a request and answers with events, with the finished response, or at once, as it asks.
pub(in crate::http) async fn answer(
    state: &AppState,
    principal: &Principal,
    request: ResponsesRequest,
    protocol: Protocol,
    dialect: ResponsesDialect,
) -> Result<Response, OpenAiError> {
    let (stream, background) = (request.stream, request.background);
    let (run_id, events) = start(state, principal, request, protocol).await?;
    if stream {
        return Ok(event_stream(wait_for_start(events).await?, ResponsesRenderer::new(dialect)));
    }
    let response = if background {
        let mut events = wait_for_start(events).await?;
        let mut renderer = ResponsesRenderer::new(dialect);
        while let Some(event) = events.next().await {
            if !renderer.frame(&event).is_empty() {
                break;
            }
        }
        tracing::info!(%run_id, "run goes on in the background");
        renderer.response()
    } else {
        response_when_done(events, dialect).await?
    };
    Ok(json_response(StatusCode::OK, &response))
}

/// Starts the run of a request, or finds it.
pub(in crate::http) async fn start(
    state: &AppState,
    principal: &Principal,
    mut request: ResponsesRequest,
    protocol: Protocol,
) -> Result<(Uuid, RunEvents), OpenAiError> {
    let detached = request.store || request.background;
    let conversation = request.conversation.take().map(ConversationKey::shared);
    let previous = request.previous_response_id.take();
    let (run, items) = request.into_run(protocol);
    let on_disconnect = if detached { OnDisconnect::KeepRunning } else { OnDisconnect::Cancel };
    begin(state, principal, RunRequest { on_disconnect, ..run }, items, conversation, previous.as_deref()).await
}

/// Returns the response when the run has ended. Errors: a run that failed.
pub(in crate::http) async fn response_when_done(
    events: RunEvents,
    dialect: ResponsesDialect,
) -> Result<Value, OpenAiError> {
    let mut events = wait_for_start(events).await?;
    let mut renderer = ResponsesRenderer::new(dialect);
    let mut detail = String::new();
    let mut cancelled = false;
    while let Some(event) = events.next().await {
        match &event.kind {
            querent_agent::EventKind::RunError { detail_code, .. } => detail.clone_from(detail_code),
            querent_agent::EventKind::RunFinished(finished) => cancelled = finished.outcome == RunOutcome::Cancelled,
            _ => {}
        }
        renderer.frame(&event);
    }
    match renderer.failure() {
        Some((code, message)) if !cancelled => Err(OpenAiError::from_run(code, message, &detail)),
        _ => Ok(renderer.response()),
    }
}

pub(super) fn dialect_of(request: &ResponsesRequest, headers: &HeaderMap) -> Result<ResponsesDialect, ApiError> {
    let asked = dialect_of_headers(headers)?;
    let official = headers.keys().any(|name| name.as_str().starts_with(STAINLESS));
    let is_ksadk = request.has_ksadk_metadata || (request.is_ksadk && !official);
    Ok(if is_ksadk { ResponsesDialect::KsAdk } else { asked })
}

/// Returns the dialect that a request's headers ask for. Errors: `bad_header`.
fn dialect_of_headers(headers: &HeaderMap) -> Result<ResponsesDialect, ApiError> {
    match header_text(headers, &[KSADK_EVENTS])?.as_deref() {
        Some("1") => Ok(ResponsesDialect::KsAdk),
        None | Some("0") => Ok(ResponsesDialect::OpenAi),
        Some(other) => {
            let message = format!("header {KSADK_EVENTS} is 1 or 0, not `{other}`");
            Err(ApiError::new(ErrorCode::BadHeader, message))
        }
    }
}

#[derive(Debug, Deserialize)]
pub(in crate::http) struct RetrieveParams {
    #[serde(default)]
    stream: bool,
    starting_after: Option<u64>,
}

/// `GET /v1/responses/{id}`: returns the response, or its events after the `starting_after`th.
pub(in crate::http) async fn retrieve(
    ApiCall { state, principal }: ApiCall,
    headers: HeaderMap,
    PathText(id): PathText,
    OpenAiParams(params): OpenAiParams<RetrieveParams>,
) -> Result<Response, OpenAiError> {
    if !params.stream && params.starting_after.is_some() {
        let message = "`starting_after` goes with `stream=true`; leave it out";
        return Err(OpenAiError::bad_request(ErrorCode::BadParameter, "starting_after", message));
    }
    let dialect = dialect_of_headers(&headers)?;
    let run = stored_run(&state, &principal, &id).await?;
    if !params.stream && state.agent.server_of_run(&run).await?.is_some() {
        return Ok(as_stored(&state, Some(&run), json_response(StatusCode::OK, &object_of(&run, dialect)?)).await?);
    }
    let events = state.agent.events(&principal, run.run_id, 0).await?;
    if params.stream {
        let renderer = After { inner: ResponsesRenderer::new(dialect), seen: 0, after: params.starting_after };
        return Ok(event_stream(events, renderer));
    }
    let response = if run.status == RunStatus::Running {
        object_of(&state.agent.get_run(&principal, run.run_id).await?, dialect)?
    } else {
        object_of(&run, dialect)?
    };
    Ok(json_response(StatusCode::OK, &response))
}

/// Leaves out the frames that a client has seen; never the end of a run that ended with its server.
struct After {
    inner: ResponsesRenderer,
    seen: u64,
    after: Option<u64>,
}

impl Renderer for After {
    fn frame(&mut self, event: &querent_agent::RunEvent) -> Vec<querent_agent::protocols::Frame> {
        if event.ended_with_server() {
            self.after = None;
        }
        let mut frames = self.inner.frame(event);
        frames.retain(|_| {
            let number = self.seen;
            self.seen += 1;
            self.after.is_none_or(|after| number > after)
        });
        frames
    }
}

/// `POST /v1/responses/{id}/cancel`. One that is over and was not made in the background cannot have been meant.
pub(in crate::http) async fn cancel(
    ApiCall { state, principal }: ApiCall,
    PathText(id): PathText,
) -> Result<Response, OpenAiError> {
    let run = stored_run(&state, &principal, &id).await?;
    let is_over = !matches!(run.status, RunStatus::Running | RunStatus::Cancelled);
    if is_over && object_of(&run, ResponsesDialect::OpenAi)?["background"] != json!(true) {
        let message = format!("response `{id}` is over; only one in the background, or in progress, is cancelled");
        return Err(OpenAiError::bad_request(ErrorCode::InvalidRequest, "response_id", message));
    }
    let run = state.agent.cancel_run(&principal, run.run_id).await?;
    Ok(json_response(StatusCode::OK, &object_of(&run, ResponsesDialect::OpenAi)?))
}

/// `POST /v1/responses/{id}:pause` and `:resume`, which newer clients of KsADK send: a run here is only cancelled.
pub(in crate::http) async fn pause_or_resume(
    ApiCall { .. }: ApiCall,
    PathText(id): PathText,
) -> Result<Response, OpenAiError> {
    Err(match id.rsplit_once(':') {
        Some((_, action @ ("pause" | "resume"))) => {
            let message = format!("{action} is not done here: cancel the run, and ask again in its conversation");
            OpenAiError::not_supported(ErrorCode::ActionNotSupported, message)
        }
        _ => OpenAiError::not_found(ErrorCode::NotFound, format!("there is nothing to do with `{id}` by POST")),
    })
}

/// `DELETE /v1/responses/{id}`: a run in progress is cancelled first. A conversation keeps its items, as OpenAI's does.
pub(in crate::http) async fn remove(
    ApiCall { state, principal }: ApiCall,
    PathText(id): PathText,
) -> Result<Response, OpenAiError> {
    let run = stored_run(&state, &principal, &id).await?;
    state.agent.delete_run(&principal, &run).await?;
    state.idempotent_answers.forget_document(&run.subject, &response_id(run.run_id));
    let deleted = json!({ "id": response_id(run.run_id), "object": "response", "deleted": true });
    Ok(json_response(StatusCode::OK, &deleted))
}

#[derive(Debug, Deserialize)]
pub(in crate::http) struct ItemListParams {
    pub(super) after: Option<String>,
    pub(super) limit: Option<usize>,
    pub(super) order: Option<String>,
}

impl ItemListParams {
    /// Returns `{object: "list", data, first_id, last_id, has_more}` of items, which are given in order of creation.
    pub(super) fn listing(&self, mut items: Vec<Value>) -> Result<Value, OpenAiError> {
        match self.order.as_deref() {
            None | Some("desc") => items.reverse(),
            Some("asc") => {}
            Some(other) => {
                let message = format!("`order` `{other}` is neither asc nor desc");
                return Err(OpenAiError::bad_request(ErrorCode::InvalidRequest, "order", message));
            }
        }
        if let Some(after) = &self.after {
            let Some(place) = items.iter().position(|item| item["id"] == after.as_str()) else {
                let message = format!("no item `{after}` in this list");
                return Err(OpenAiError::not_found(ErrorCode::ItemNotFound, message).with_param("after"));
            };
            items.drain(..=place);
        }
        let limit = checked_limit(self.limit, 20, MAX_LISTED)?;
        let has_more = items.len() > limit;
        items.truncate(limit);
        let id = |item: Option<&Value>| item.map_or(Value::Null, |item| item["id"].clone());
        Ok(json!({
            "object": "list",
            "first_id": id(items.first()),
            "last_id": id(items.last()),
            "has_more": has_more,
            "data": items,
        }))
    }
}

/// `GET /v1/responses/{id}/input_items`.
pub(in crate::http) async fn list_input(
    ApiCall { state, principal }: ApiCall,
    PathText(id): PathText,
    OpenAiParams(params): OpenAiParams<ItemListParams>,
) -> Result<Response, OpenAiError> {
    let run = stored_run(&state, &principal, &id).await?;
    // What another server was asked is stored since its run began.
    let items = if run.status == RunStatus::Running && state.agent.server_of_run(&run).await?.is_none() {
        let mut events = state.agent.events(&principal, run.run_id, 0).await?;
        input_items(events.peek().await.map(std::slice::from_ref).unwrap_or_default())
    } else {
        input_items(&events_of(&run)?)
    };
    Ok(json_response(StatusCode::OK, &params.listing(items)?))
}

/// Returns the run of a response that may be retrieved.
async fn stored_run(state: &AppState, principal: &Principal, id: &str) -> Result<RunRecord, OpenAiError> {
    let unknown = || OpenAiError::not_found(ErrorCode::ResponseNotFound, format!("response with id `{id}` not found"));
    let run_id = run_of_response(id).ok_or_else(unknown)?;
    // Read from the catalog, since the log of a run in progress may be long.
    match state.agent.catalog().runs().get(principal, run_id).await {
        Ok(run) if run.retained => Ok(run),
        Ok(_) => Err(unknown()),
        Err(error) if ErrorCode::from(&error) == ErrorCode::RunNotFound => Err(unknown()),
        Err(error) => Err(error.into()),
    }
}

/// Returns the response of a run; of one in progress, as far as it is.
fn object_of(run: &RunRecord, dialect: ResponsesDialect) -> Result<Value, OpenAiError> {
    let mut renderer = ResponsesRenderer::new(dialect);
    for event in events_of(run)? {
        renderer.frame(&event);
    }
    Ok(renderer.response())
}
