//! `POST /v1/agent/ask`: a question in, the run's events out as SSE.
//!
//! Whatever goes wrong once the run exists is an event, and `run_finished` is always the last one. When a client goes
//! away its response body is dropped; that drops the run's events, which cancels the run, unless it was begun with an
//! `Idempotency-Key`. A client that comes back with `Last-Event-ID` gets what follows that event.

use axum::response::Response;
use http::HeaderMap;
use querent_agent::protocols::ask::{AskRenderer, parse_request};
use querent_agent::{AskRequest, EventKind, RunEvents};
use querent_catalog::Principal;

use super::continued::{EventId, events_again, push_after};
use super::runs::parse_run_id;
use super::stream::event_stream_with;
use crate::error::ApiError;
use crate::http::request::{ApiCall, PathText, QueryBytes};
use crate::state::AppState;

pub(super) async fn ask(
    ApiCall { state, principal }: ApiCall,
    headers: HeaderMap,
    QueryBytes(body): QueryBytes,
) -> Result<Response, ApiError> {
    let request = parse_request(&body)?;
    if let Some(after) = EventId::of_request(&headers)?
        && let Some(events) = rest_of(&state, &principal, after, &request).await?
    {
        return Ok(streamed(events, after.run_id, Some(after)));
    }
    let run = state.agent.ask(&principal, request).await?;
    tracing::info!(run_id = %run.run_id, "run started");
    Ok(streamed(run.events, run.run_id, None))
}

/// `GET /v1/agent/runs/{run_id}/events`: a run's events as `ask` streams them, of a run in progress as they come. Following
/// a run keeps it from nothing, so that looking on does not change when it is cancelled.
pub(super) async fn events(
    ApiCall { state, principal }: ApiCall,
    PathText(run_id): PathText,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let run_id = parse_run_id(&run_id)?;
    let events = state.agent.events(&principal, run_id, 0).await?;
    let after = EventId::of_request(&headers)?.filter(|after| after.run_id == run_id);
    Ok(streamed(events, run_id, after))
}

/// Returns the events of the run that a client has a part of, where it asked the same question.
async fn rest_of(
    state: &AppState,
    principal: &Principal,
    after: EventId,
    request: &AskRequest,
) -> Result<Option<RunEvents>, ApiError> {
    let Some(mut events) = events_again(state, principal, after.run_id).await? else { return Ok(None) };
    let is_same = match events.peek().await.map(|event| &event.kind) {
        Some(EventKind::RunStarted(started)) => started.question == request.question,
        _ => false,
    };
    Ok(is_same.then_some(events))
}

pub(super) fn streamed(events: RunEvents, run_id: uuid::Uuid, after: Option<EventId>) -> Response {
    event_stream_with(events, AskRenderer::default(), push_after(run_id, after), || ())
}
