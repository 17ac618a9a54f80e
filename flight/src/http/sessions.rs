//! `/v1/agent/sessions`: the caller's conversations, and their turns.

use axum::response::Response;
use chrono::SecondsFormat;
use http::StatusCode;
use querent_agent::{EventKind, events_of, protocols::Renderer, protocols::ask::AskRenderer};
use querent_catalog::{ConversationFilter, ConversationKey, ConversationRecord, PageRequest};
use serde_json::{Value, json};

use crate::error::{ApiError, ErrorCode};
use crate::http::request::{ApiCall, PageParams, Params, PathText};
use crate::http::response::json_response;

const DEFAULT_LIMIT: usize = 200;
/// The most turns of a session that are shown.
const MAX_TURNS: usize = 1_000;

/// `GET /v1/agent/sessions`: newest activity first.
pub(super) async fn list(
    ApiCall { state, principal }: ApiCall,
    Params(params): Params<PageParams>,
) -> Result<Response, ApiError> {
    let page: PageRequest = params.page(DEFAULT_LIMIT);
    let filter = ConversationFilter::default();
    let page = state.agent.catalog().conversations().list(&principal, &filter, page).await?;
    let sessions: Vec<Value> = page.items.iter().map(session_json).collect();
    let next = page.next.map(|token| token.0);
    Ok(json_response(StatusCode::OK, &json!({ "sessions": sessions, "next_page_token": next })))
}

/// `GET /v1/agent/sessions/{id}`.
pub(super) async fn get(ApiCall { state, principal }: ApiCall, PathText(id): PathText) -> Result<Response, ApiError> {
    let session = state.agent.catalog().conversations().get(&principal, &ConversationKey::shared(&id)).await?;
    Ok(json_response(StatusCode::OK, &session_json(&session)))
}

/// `GET /v1/agent/sessions/{id}/turns`: what was asked and answered, oldest first.
pub(super) async fn turns(ApiCall { state, principal }: ApiCall, PathText(id): PathText) -> Result<Response, ApiError> {
    let catalog = state.agent.catalog();
    let key = ConversationKey::shared(id);
    catalog.conversations().get(&principal, &key).await?;
    let mut turns = Vec::new();
    for run in catalog.runs().of_conversation(&principal, &key, MAX_TURNS).await? {
        let mut renderer = AskRenderer::default();
        let mut answer = None;
        for event in events_of(&run)? {
            let frames = renderer.frame(&event);
            if let (EventKind::AnswerFinal { .. }, Some(frame)) = (&event.kind, frames.first()) {
                answer = serde_json::from_str::<Value>(&frame.data).ok();
            }
        }
        let at = run.started_at.to_rfc3339_opts(SecondsFormat::Millis, true);
        let said =
            [("user", json!(run.question)), ("assistant", answer.map_or(Value::Null, |mut data| data["text"].take()))];
        for (role, content) in said.into_iter().filter(|(_, content)| !content.is_null()) {
            turns.push(json!({
                "turn_index": turns.len(),
                "role": role,
                "content": content,
                "run_id": run.run_id,
                "created_at": at,
            }));
        }
    }
    Ok(json_response(StatusCode::OK, &json!({ "turns": turns })))
}

/// `DELETE /v1/agent/sessions/{id}`: with its runs; one in progress is cancelled first.
pub(super) async fn remove(
    ApiCall { state, principal }: ApiCall,
    PathText(id): PathText,
) -> Result<Response, ApiError> {
    if !state.agent.delete_conversation(&principal, &ConversationKey::shared(&id)).await? {
        return Err(ApiError::new(ErrorCode::ConversationNotFound, format!("there is no session `{id}`")));
    }
    Ok(json_response(StatusCode::OK, &json!({ "deleted": true, "session_id": id })))
}

fn session_json(session: &ConversationRecord) -> Value {
    let time = |at: chrono::DateTime<chrono::Utc>| at.to_rfc3339_opts(SecondsFormat::Millis, true);
    json!({
        "session_id": session.key.id,
        "title": session.title,
        "created_at": time(session.created_at),
        "last_active": time(session.updated_at),
        "turn_count": session.run_count,
    })
}
