//! `POST /api/chat`, as one answer or as server-sent events. Every event's `id:` names its run and its position, so
//! that a client whose stream broke off gets the rest when it repeats the request.

use std::sync::Arc;

use axum::Extension;
use axum::response::Response;
use futures::StreamExt;
use http::{HeaderMap, StatusCode};
use querent_agent::models::Models;
use querent_agent::protocols::Renderer;
use querent_agent::protocols::holmes::{HolmesRenderer, HolmesRequest, parse_request};
use querent_agent::{EventKind, RunEvents, known_tool};
use querent_catalog::Principal;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::approvals::ApprovalKey;
use super::attach::AttachedReader;
use super::error::HolmesError;
use super::resume::{ChatPlan, plan};
use super::surface::HolmesSurface;
use crate::http::continued::{EventId, events_again, push_after};
use crate::http::request::{ApiCall, QueryBytes, parse_off_runtime};
use crate::http::response::json_response;
use crate::http::stream::event_stream_with;
use crate::state::AppState;

/// A run for one reader.
struct JoinedRun {
    run_id: Uuid,
    events: RunEvents,
    /// The last frame that the reader has.
    after: Option<EventId>,
}

/// `POST /api/chat`.
pub(in crate::http) async fn chat(
    ApiCall { state, principal }: ApiCall,
    Extension(surface): Extension<Arc<HolmesSurface>>,
    headers: HeaderMap,
    QueryBytes(body): QueryBytes,
) -> Result<Response, HolmesError> {
    let is_server_tool = |name: &str| known_tool(name).is_some();
    let request = parse_off_runtime(body.clone(), move |body| parse_request(body, is_server_tool)).await??;
    if let Some(model) = request.model.as_deref() {
        check_model(model, state.agent.models())?;
    }
    let last_event = EventId::of_request(&headers)?;
    let key = surface.approvals.get_or_init(|| ApprovalKey::of_server(&state.settings)).await;
    let renderer = HolmesRenderer::new(key.signer(principal.subject()));
    let digest = digest_of(&principal, &body);
    let reader = surface.attachments.reader(digest);
    let stream = request.stream;
    let joined = join(&state, key, &principal, &reader, request, &hex(&digest), last_event).await?;
    if stream {
        let push = push_after(joined.run_id, joined.after);
        return Ok(event_stream_with(joined.events, renderer, push, || reader.delivered()));
    }
    let answer = whole_answer(joined.events, renderer).await;
    reader.delivered();
    answer
}

/// Returns the whole answer when the run has ended. Errors: a run that failed.
async fn whole_answer(mut events: RunEvents, mut renderer: HolmesRenderer) -> Result<Response, HolmesError> {
    while let Some(event) = events.next().await {
        renderer.frame(&event);
    }
    match renderer.failure() {
        Some(failure) => Err(failure.into()),
        None => Ok(json_response(StatusCode::OK, &renderer.whole())),
    }
}

/// Joins the run that an equal request started and nobody read to its end, or the run that the client has a part of; or
/// starts a new one.
async fn join(
    state: &AppState,
    key: &ApprovalKey,
    principal: &Principal,
    reader: &AttachedReader,
    request: HolmesRequest,
    digest: &str,
    last_event: Option<EventId>,
) -> Result<JoinedRun, HolmesError> {
    let attachment = reader.attachment();
    let mut run = attachment.run.lock().await;
    let after_of = |run_id: Uuid| last_event.filter(|place| place.run_id == run_id);
    if let Some(run_id) = *run
        && let Some(events) = events_again(state, principal, run_id).await?
    {
        return Ok(JoinedRun { run_id, events, after: after_of(run_id) });
    }
    if let Some(place) = last_event
        && let Some(events) = events_again(state, principal, place.run_id).await?
        && let Some(events) = events_of_request(events, digest).await
    {
        *run = Some(place.run_id);
        return Ok(JoinedRun { run_id: place.run_id, events, after: Some(place) });
    }
    match plan(state, key, principal, request, digest).await? {
        ChatPlan::Replay(run_id) => {
            let events = state.agent.events(principal, run_id, 0).await?;
            Ok(JoinedRun { run_id, events, after: None })
        }
        ChatPlan::Start(request) => {
            let begun = state.agent.start(principal, *request).await?;
            tracing::info!(run_id = %begun.run_id, "run started");
            *run = Some(begun.run_id);
            Ok(JoinedRun { run_id: begun.run_id, events: begun.events, after: None })
        }
    }
}

/// Returns the events if the request with this digest started their run.
async fn events_of_request(mut events: RunEvents, digest: &str) -> Option<RunEvents> {
    match &events.peek().await?.kind {
        EventKind::RunStarted(started) if started.request["body"] == digest => Some(events),
        _ => None,
    }
}

fn check_model(model: &str, models: &Models) -> Result<(), HolmesError> {
    if models.named(model).is_some() {
        return Ok(());
    }
    let names: Vec<&str> = models.entries().map(|entry| entry.name.as_str()).collect();
    let shown: String = model.chars().take(200).collect();
    let detail = format!("model `{shown}` is not one of the configured models: {}", names.join(", "));
    Err(HolmesError::new(StatusCode::BAD_REQUEST, detail))
}

fn digest_of(principal: &Principal, body: &[u8]) -> [u8; 32] {
    let mut digest = Sha256::new();
    digest.update(principal.subject().as_bytes());
    digest.update([0]);
    digest.update(body);
    digest.finalize().into()
}

fn hex(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
