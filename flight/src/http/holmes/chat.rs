//! `POST /api/chat`, as one answer or as server-sent events. Every event's `id:` names its run and its position, so
//! that a client whose stream broke off gets the rest when it repeats the request.

use std::sync::Arc;

use axum::Extension;
use axum::response::Response;
use futures::StreamExt;
use http::{HeaderMap, HeaderName, StatusCode};
use querent_agent::models::Models;
use querent_agent::protocols::holmes::{HolmesRenderer, HolmesRequest, parse_request};
use querent_agent::protocols::{Frame, Renderer};
use querent_agent::{EventKind, RunEvents, known_tool};
use querent_catalog::{Principal, RunStatus};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::approvals::ApprovalKey;
use super::attach::AttachedReader;
use super::error::HolmesError;
use super::resume::{ChatPlan, plan};
use super::surface::HolmesSurface;
use crate::error::ErrorCode;
use crate::http::request::{ApiCall, QueryBytes, header_text};
use crate::http::response::json_response;
use crate::http::stream::event_stream_with;
use crate::state::AppState;

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// A position in a run's stream: the event, and the index of the frame among those of the event.
type FramePosition = (u64, usize);

/// A run for one reader.
struct JoinedRun {
    run_id: Uuid,
    events: RunEvents,
    /// The last frame that the reader has.
    after: Option<FramePosition>,
}

/// `POST /api/chat`.
pub(in crate::http) async fn chat(
    ApiCall { state, principal }: ApiCall,
    Extension(surface): Extension<Arc<HolmesSurface>>,
    headers: HeaderMap,
    QueryBytes(body): QueryBytes,
) -> Result<Response, HolmesError> {
    let request = parse_request(&body, |name| known_tool(name).is_some())?;
    if let Some(model) = request.model.as_deref() {
        check_model(model, state.agent.models())?;
    }
    let last_event = header_text(&headers, &[LAST_EVENT_ID.as_str()])?.and_then(|id| frame_position(&id));
    let key = surface.approvals.get_or_init(|| ApprovalKey::of_folder(&state.settings.data)).await;
    let renderer = HolmesRenderer::new(key.signer(principal.subject()));
    let digest = digest_of(&principal, &body);
    let reader = surface.attachments.reader(digest);
    let stream = request.stream;
    let joined = join(&state, key, &principal, &reader, request, &hex(&digest), last_event).await?;
    if stream {
        let (run_id, after) = (joined.run_id, joined.after);
        let push = move |seq: u64, index: usize, frame: &Frame, chunk: &mut Vec<u8>| {
            if after.is_none_or(|after| (seq, index) > after) {
                frame.push_sse_with_id(&format!("{run_id}:{seq}.{index}"), chunk);
            }
        };
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
    last_event: Option<(Uuid, FramePosition)>,
) -> Result<JoinedRun, HolmesError> {
    let attachment = reader.attachment();
    let mut run = attachment.run.lock().await;
    let after_of = |run_id: Uuid| last_event.filter(|(named, _)| *named == run_id).map(|(_, place)| place);
    if let Some(run_id) = *run
        && let Some(events) = events_again(state, principal, run_id).await?
    {
        return Ok(JoinedRun { run_id, events, after: after_of(run_id) });
    }
    if let Some((run_id, place)) = last_event
        && let Some(events) = events_again(state, principal, run_id).await?
        && let Some(events) = events_of_request(events, digest).await
    {
        *run = Some(run_id);
        return Ok(JoinedRun { run_id, events, after: Some(place) });
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

/// Returns the events of a run in progress or of a stored one; `None` if it is not the caller's, or was cancelled because
/// nobody came back for it.
async fn events_again(state: &AppState, principal: &Principal, run_id: Uuid) -> Result<Option<RunEvents>, HolmesError> {
    match state.agent.follow(principal, run_id, 0).await {
        Ok(Some(run)) => return Ok(Some(run.events)),
        Ok(None) => {}
        Err(error) if ErrorCode::from(&error) == ErrorCode::RunNotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    }
    let stored = match state.agent.get_run(principal, run_id).await {
        Ok(stored) => stored,
        Err(error) if ErrorCode::from(&error) == ErrorCode::RunNotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    if !stored.retained || stored.status == RunStatus::Cancelled || stored.subject != principal.subject() {
        return Ok(None);
    }
    Ok(Some(state.agent.events(principal, run_id, 0).await?))
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

/// Parses `<run>:<event>.<frame>`.
fn frame_position(id: &str) -> Option<(Uuid, FramePosition)> {
    let (run_id, place) = id.split_once(':')?;
    let (seq, index) = place.split_once('.')?;
    Some((Uuid::try_parse(run_id).ok()?, (seq.parse().ok()?, index.parse().ok()?)))
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
