//! `/v1/agent/sessions`: the caller's conversations, and their turns.

use axum::response::Response;
use chrono::{DateTime, SecondsFormat, Utc};
use http::StatusCode;
use querent_agent::models::ChatRole;
use querent_agent::protocols::Renderer;
use querent_agent::protocols::ask::AskRenderer;
use querent_agent::protocols::responses::{message_text, shown_question};
use querent_agent::{EventKind, events_of};
use querent_catalog::{ConversationFilter, ConversationKey, ConversationRecord, PageRequest, Principal};
use serde_json::{Value, json};

use crate::error::{ApiError, ErrorCode};
use crate::http::item_changes::ItemChanges;
use crate::http::request::{ApiCall, PageParams, Params, PathText};
use crate::http::response::json_response;
use crate::state::AppState;

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

/// `GET /v1/agent/sessions/{id}/turns`: what was asked and answered, and what clients added to the conversation, oldest
/// first.
pub(super) async fn turns(ApiCall { state, principal }: ApiCall, PathText(id): PathText) -> Result<Response, ApiError> {
    let catalog = state.agent.catalog();
    let key = ConversationKey::shared(id);
    catalog.conversations().get(&principal, &key).await?;
    let ItemChanges { added, deleted } = ItemChanges::of_conversation(catalog, &principal, &key).await?;
    let turn_of = |(at, item): (DateTime<Utc>, Value)| {
        let (author, text) = message_text(&item)?;
        let role = match author {
            ChatRole::User => "user",
            ChatRole::Assistant => "assistant",
            ChatRole::System | ChatRole::Tool => return None,
        };
        Some((at, role, text, Value::Null))
    };
    let mut said: Vec<(DateTime<Utc>, &str, String, Value)> = added.into_iter().filter_map(turn_of).collect();
    for run in catalog.runs().of_conversation(&principal, &key, MAX_TURNS).await? {
        let mut renderer = AskRenderer::default();
        let log = events_of(&run)?;
        // The log of a run whose data the caller may not see any more is empty.
        let question = if log.is_empty() { Some(run.question.as_str()) } else { shown_question(&log, &deleted) };
        said.extend(question.map(|question| (run.started_at, "user", question.to_owned(), json!(run.run_id))));
        for event in &log {
            let frames = renderer.frame(event);
            if let (EventKind::AnswerFinal(answer), Some(frame)) = (&event.kind, frames.first())
                && !deleted.contains(&answer.item_id)
                && let Some(text) = serde_json::from_str::<Value>(&frame.data).ok().and_then(text_of)
            {
                said.push((run.started_at, "assistant", text, json!(run.run_id)));
            }
        }
    }
    said.sort_by_key(|(at, ..)| *at);
    let turns = said.into_iter().enumerate().map(|(index, (at, role, content, run_id))| {
        json!({
            "turn_index": index,
            "role": role,
            "content": content,
            "run_id": run_id,
            "created_at": at.to_rfc3339_opts(SecondsFormat::Millis, true),
        })
    });
    Ok(json_response(StatusCode::OK, &json!({ "turns": turns.collect::<Vec<_>>() })))
}

/// `DELETE /v1/agent/sessions/{id}`: with its runs; one in progress is cancelled first.
pub(super) async fn remove(
    ApiCall { state, principal }: ApiCall,
    PathText(id): PathText,
) -> Result<Response, ApiError> {
    if !delete_conversation(&state, &principal, &ConversationKey::shared(&id)).await? {
        return Err(ApiError::new(ErrorCode::ConversationNotFound, format!("there is no session `{id}`")));
    }
    Ok(json_response(StatusCode::OK, &json!({ "deleted": true, "session_id": id })))
}

/// Deletes a conversation with its runs, and with their answers that are kept for those who send a request again. Returns
/// whether there was one.
pub(in crate::http) async fn delete_conversation(
    state: &AppState,
    principal: &Principal,
    key: &ConversationKey,
) -> querent_agent::Result<bool> {
    let runs = state.agent.catalog().runs().ids_of_conversation(principal, key).await?;
    let is_deleted = state.agent.delete_conversation(principal, key).await?;
    if is_deleted {
        state.idempotent_answers.forget_runs(&runs);
    }
    Ok(is_deleted)
}

fn session_json(session: &ConversationRecord) -> Value {
    let time = |at: DateTime<Utc>| at.to_rfc3339_opts(SecondsFormat::Millis, true);
    json!({
        "session_id": session.key.id,
        "title": session.title,
        "created_at": time(session.created_at),
        "last_active": time(session.updated_at),
        "turn_count": session.run_count,
    })
}

fn text_of(mut answer: Value) -> Option<String> {
    match answer["text"].take() {
        Value::String(text) => Some(text),
        _ => None,
    }
}
