//! `/v1/chat/completions/*`: completions that were asked for with `store`, which are runs that are retained.

use std::collections::HashMap;

use axum::response::Response;
use http::StatusCode;
use querent_agent::protocols::chat::{StoredCompletion, completion_id, run_of_completion, stored_completion};
use querent_agent::{Protocol, events_of};
use querent_catalog::{CatalogError, PageRequest, Principal, RunRecord, RunStatus};
use serde_json::{Value, json};
use uuid::Uuid;

use super::error::OpenAiError;
use super::fields::{MAX_LISTED, OpenAiParams, checked_limit, new_metadata};
use super::responses::ItemListParams;
use crate::error::ErrorCode;
use crate::http::elsewhere::as_stored;
use crate::http::request::{ApiCall, PathText, QueryBytes};
use crate::http::response::json_response;
use crate::state::AppState;

/// The newest runs among which a listing looks for completions.
const MAX_SCANNED: usize = 2_000;
const PAGE: usize = 100;
/// Before the name of a pair in a query, as in `metadata[topic]=orders`.
const METADATA: &str = "metadata[";

/// `GET /v1/chat/completions`.
pub(in crate::http) async fn list(
    ApiCall { state, principal }: ApiCall,
    OpenAiParams(params): OpenAiParams<HashMap<String, String>>,
) -> Result<Response, OpenAiError> {
    let invalid = |name: &str, message: String| OpenAiError::bad_request(ErrorCode::InvalidRequest, name, message);
    let mut filter = CompletionFilter::default();
    let (mut after, mut limit, mut is_newest_first) = (None, None, false);
    for (name, value) in &params {
        match name.as_str() {
            "after" => after = Some(value.clone()),
            "limit" => {
                let number = value.parse::<usize>();
                limit = Some(number.map_err(|_| invalid(name, format!("`limit` `{value}` is not a number")))?);
            }
            "model" => filter.model = Some(value.clone()),
            "order" if value == "asc" => is_newest_first = false,
            "order" if value == "desc" => is_newest_first = true,
            "order" => return Err(invalid(name, format!("`order` `{value}` is neither asc nor desc"))),
            other => match other.strip_prefix(METADATA).and_then(|rest| rest.strip_suffix(']')) {
                Some(key) => filter.metadata.push((key.to_owned(), value.clone())),
                None => return Err(invalid(other, format!("`{other}` is not a parameter of this listing"))),
            },
        }
    }
    let limit = checked_limit(limit, 20, MAX_LISTED)?;
    let mut runs = candidates(&state, &principal).await?;
    if !is_newest_first {
        runs.reverse();
    }
    if let Some(after) = after {
        let Some(place) = runs.iter().position(|run_id| completion_id(*run_id) == after) else {
            let message = format!("no completion `{after}` in this list");
            return Err(OpenAiError::not_found(ErrorCode::ItemNotFound, message).with_param("after"));
        };
        runs.drain(..=place);
    }
    let mut found: Vec<Value> = Vec::new();
    for run_id in runs {
        if found.len() > limit {
            break;
        }
        let run = match state.agent.catalog().runs().get(&principal, run_id).await {
            // What its caller may not read any more is not listed.
            Err(CatalogError::RunWithheld { .. }) => continue,
            found => found?,
        };
        let completion = stored_completion(&events_of(&run)?).map(|stored| stored.completion);
        found.extend(completion.filter(|completion| filter.accepts(completion)));
    }
    let has_more = found.len() > limit;
    found.truncate(limit);
    Ok(json_response(StatusCode::OK, &listing(found, has_more)))
}

/// `GET /v1/chat/completions/{id}`.
pub(in crate::http) async fn retrieve(
    ApiCall { state, principal }: ApiCall,
    PathText(id): PathText,
) -> Result<Response, OpenAiError> {
    let (run, stored) = find(&state, &principal, &id).await?;
    Ok(as_stored(&state, Some(&run), json_response(StatusCode::OK, &stored.completion)).await?)
}

/// `GET /v1/chat/completions/{id}/messages`: what it was asked.
pub(in crate::http) async fn messages(
    ApiCall { state, principal }: ApiCall,
    PathText(id): PathText,
    OpenAiParams(mut params): OpenAiParams<ItemListParams>,
) -> Result<Response, OpenAiError> {
    let (_, stored) = find(&state, &principal, &id).await?;
    params.order.get_or_insert_with(|| "asc".to_owned());
    Ok(json_response(StatusCode::OK, &params.listing(stored.messages)?))
}

/// `POST /v1/chat/completions/{id}`: new metadata.
pub(in crate::http) async fn update(
    ApiCall { state, principal }: ApiCall,
    PathText(id): PathText,
    QueryBytes(body): QueryBytes,
) -> Result<Response, OpenAiError> {
    let metadata = new_metadata(&body)?;
    if stored_run(&state, &principal, &id).await?.status == RunStatus::Running {
        let message = format!("completion `{id}` is still in progress; wait for its end");
        return Err(OpenAiError::conflict(ErrorCode::ResponseInProgress, message));
    }
    let (mut run, _) = find(&state, &principal, &id).await?;
    // It is part of what the run began with, which is read again from the log.
    let mut log: Value = serde_json::from_str(&run.events_json).map_err(crate::error::ApiError::internal)?;
    let first = log.as_array_mut().and_then(|events| {
        events.iter_mut().find_map(|event| event.pointer_mut("/data/request").filter(|request| request.is_object()))
    });
    if let Some(request) = first {
        request["metadata"] = metadata;
    }
    run.events_json = log.to_string();
    state.agent.catalog().runs().update(&run).await?;
    let (_, stored) = find(&state, &principal, &id).await?;
    Ok(json_response(StatusCode::OK, &stored.completion))
}

/// `DELETE /v1/chat/completions/{id}`: one in progress is cancelled first.
pub(in crate::http) async fn remove(
    ApiCall { state, principal }: ApiCall,
    PathText(id): PathText,
) -> Result<Response, OpenAiError> {
    let run = stored_run(&state, &principal, &id).await?;
    state.agent.delete_run(&principal, &run).await?;
    state.idempotent_answers.forget_document(&run.subject, &id);
    let deleted = json!({ "id": id, "object": "chat.completion.deleted", "deleted": true });
    Ok(json_response(StatusCode::OK, &deleted))
}

/// Which completions a listing shows.
#[derive(Debug, Default)]
struct CompletionFilter {
    model: Option<String>,
    metadata: Vec<(String, String)>,
}

impl CompletionFilter {
    fn accepts(&self, completion: &Value) -> bool {
        let has_model = self.model.as_ref().is_none_or(|model| completion["model"] == model.as_str());
        has_model && self.metadata.iter().all(|(key, value)| completion["metadata"][key] == value.as_str())
    }
}

/// Returns the caller's newest runs that may be stored completions, newest first.
async fn candidates(state: &AppState, principal: &Principal) -> Result<Vec<Uuid>, OpenAiError> {
    let (mut found, mut scanned, mut page) = (Vec::new(), 0, PageRequest::first(PAGE));
    while scanned < MAX_SCANNED {
        let listed = state.agent.catalog().runs().list(principal, page).await?;
        scanned += listed.items.len();
        let is_candidate = |run: &RunRecord| run.retained && run.protocol == Protocol::Chat.as_str();
        found.extend(listed.items.iter().filter(|run| is_candidate(run)).map(|run| run.run_id));
        let Some(after) = listed.next else { break };
        page = PageRequest { limit: PAGE, after: Some(after) };
    }
    Ok(found)
}

/// Returns a completion with its run. Errors: `response_not_found`, also where the run has not ended with a completion.
async fn find(state: &AppState, principal: &Principal, id: &str) -> Result<(RunRecord, StoredCompletion), OpenAiError> {
    let run = stored_run(state, principal, id).await?;
    let stored = stored_completion(&events_of(&run)?).ok_or_else(|| unknown(id))?;
    Ok((run, stored))
}

/// Returns the run of a completion that is to be stored, whatever became of it. Errors: `response_not_found`.
async fn stored_run(state: &AppState, principal: &Principal, id: &str) -> Result<RunRecord, OpenAiError> {
    let run_id = run_of_completion(id).ok_or_else(|| unknown(id))?;
    match state.agent.get_run(principal, run_id).await {
        Ok(run) if run.retained && run.protocol == Protocol::Chat.as_str() => Ok(run),
        Ok(_) => Err(unknown(id)),
        Err(error) if ErrorCode::from(&error) == ErrorCode::RunNotFound => Err(unknown(id)),
        Err(error) => Err(error.into()),
    }
}

fn unknown(id: &str) -> OpenAiError {
    OpenAiError::not_found(ErrorCode::ResponseNotFound, format!("completion with id `{id}` not found"))
}

fn listing(data: Vec<Value>, has_more: bool) -> Value {
    let id = |item: Option<&Value>| item.map_or(Value::Null, |item| item["id"].clone());
    json!({
        "object": "list",
        "first_id": id(data.first()),
        "last_id": id(data.last()),
        "has_more": has_more,
        "data": data,
    })
}
