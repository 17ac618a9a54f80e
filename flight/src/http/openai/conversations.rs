//! `/v1/conversations`: conversations and their items, from runs or added by the client.

use axum::extract::Path;
use axum::response::Response;
use chrono::{DateTime, Utc};
use http::StatusCode;
use querent_agent::events_of;
use querent_agent::protocols::responses::{
    check_messages, id_prefix, input_items, listed_item, metadata_of, output_items, parse_items_of, run_of_item,
};
use querent_catalog::{
    CatalogError, ConversationAccess, ConversationChange, ConversationKey, ConversationRecord, ItemRecord, ItemRole,
    PendingState, Principal,
};
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use uuid::Uuid;

use super::error::OpenAiError;
use super::fields::{OpenAiParams, new_metadata, object_fields};
use super::responses::ItemListParams;
use super::room::take_room;
use crate::error::ErrorCode;
use crate::http::item_changes::ItemChanges;
use crate::http::request::{ApiCall, PathText, QueryBytes};
use crate::http::response::json_response;
use crate::state::AppState;

/// The most runs of one conversation that a listing reads.
const MAX_RUNS: usize = 1_000;
/// The most items that one request may add.
const MAX_ADDED: usize = 20;
/// The longest id that an item keeps.
const MAX_ID_BYTES: usize = 64;

/// `POST /v1/conversations`: `{metadata?, items?}`.
pub(in crate::http) async fn create(
    ApiCall { state, principal }: ApiCall,
    QueryBytes(body): QueryBytes,
) -> Result<Response, OpenAiError> {
    let fields = object_fields(&body, &["metadata", "items"])?;
    let key = ConversationKey::shared(format!("conv_{}", Uuid::now_v7().simple()));
    let metadata = metadata_of(&fields)?;
    // A conversation whose items are refused is not made.
    let items = fields.get("items").filter(|items| !items.is_null()).map(checked_items).transpose()?;
    take_room(&state, &principal, body.len()).await?;
    let record = ConversationRecord {
        metadata_json: metadata.to_string(),
        ..ConversationRecord::new(key.clone(), principal.subject(), Utc::now())
    };
    let ConversationAccess::Created(record) = state.agent.catalog().conversations().open(&principal, &record).await?
    else {
        return Err(unknown(&key));
    };
    if let Some(items) = items {
        add(&state, &principal, &key, items).await?;
    }
    Ok(json_response(StatusCode::OK, &conversation_json(&record)))
}

/// `GET /v1/conversations/{id}`.
pub(in crate::http) async fn get(
    ApiCall { state, principal }: ApiCall,
    PathText(id): PathText,
) -> Result<Response, OpenAiError> {
    let record = state.agent.catalog().conversations().get(&principal, &ConversationKey::shared(&id)).await?;
    Ok(json_response(StatusCode::OK, &conversation_json(&record)))
}

/// `POST /v1/conversations/{id}`: new metadata.
pub(in crate::http) async fn update(
    ApiCall { state, principal }: ApiCall,
    PathText(id): PathText,
    QueryBytes(body): QueryBytes,
) -> Result<Response, OpenAiError> {
    let metadata = new_metadata(&body)?;
    take_room(&state, &principal, body.len()).await?;
    let change = ConversationChange { metadata_json: Some(metadata.to_string()), ..ConversationChange::default() };
    let key = ConversationKey::shared(id);
    let record = state.agent.catalog().conversations().update(&principal, &key, &change).await?;
    Ok(json_response(StatusCode::OK, &conversation_json(&record)))
}

/// `DELETE /v1/conversations/{id}`: its responses stay, as OpenAI keeps them.
pub(in crate::http) async fn remove(
    ApiCall { state, principal }: ApiCall,
    PathText(id): PathText,
) -> Result<Response, OpenAiError> {
    let key = ConversationKey::shared(id);
    if !state.agent.catalog().conversations().delete_and_keep_runs(&principal, &key).await? {
        return Err(unknown(&key));
    }
    Ok(json_response(StatusCode::OK, &json!({ "id": key.id, "object": "conversation.deleted", "deleted": true })))
}

/// `POST /v1/conversations/{id}/items`: `{items}`.
pub(in crate::http) async fn add_items(
    ApiCall { state, principal }: ApiCall,
    PathText(id): PathText,
    OpenAiParams(IgnoredAny): OpenAiParams<IgnoredAny>,
    QueryBytes(body): QueryBytes,
) -> Result<Response, OpenAiError> {
    let fields = object_fields(&body, &["items"])?;
    let key = ConversationKey::shared(&id);
    state.agent.catalog().conversations().get(&principal, &key).await?;
    let items = checked_items(fields.get("items").unwrap_or(&Value::Null))?;
    take_room(&state, &principal, body.len()).await?;
    let added = add(&state, &principal, &key, items).await?;
    let params = ItemListParams { after: None, limit: Some(MAX_ADDED), order: Some("asc".to_owned()) };
    Ok(json_response(StatusCode::OK, &params.listing(added)?))
}

/// `GET /v1/conversations/{id}/items`.
pub(in crate::http) async fn list_items(
    ApiCall { state, principal }: ApiCall,
    PathText(id): PathText,
    OpenAiParams(params): OpenAiParams<ItemListParams>,
) -> Result<Response, OpenAiError> {
    let items = all_items(&state, &principal, &ConversationKey::shared(&id)).await?;
    Ok(json_response(StatusCode::OK, &params.listing(items)?))
}

/// `GET /v1/conversations/{id}/items/{item}`.
pub(in crate::http) async fn get_item(
    ApiCall { state, principal }: ApiCall,
    Path((id, item_id)): Path<(String, String)>,
    OpenAiParams(IgnoredAny): OpenAiParams<IgnoredAny>,
) -> Result<Response, OpenAiError> {
    let items = all_items(&state, &principal, &ConversationKey::shared(&id)).await?;
    let item = items.into_iter().find(|item| item["id"] == item_id.as_str());
    Ok(json_response(StatusCode::OK, &item.ok_or_else(|| unknown_item(&item_id))?))
}

/// `DELETE /v1/conversations/{id}/items/{item}`: the model does not see it any more either, from the next run on.
pub(in crate::http) async fn remove_item(
    ApiCall { state, principal }: ApiCall,
    Path((id, item_id)): Path<(String, String)>,
) -> Result<Response, OpenAiError> {
    let catalog = state.agent.catalog();
    let record = catalog.conversations().get(&principal, &ConversationKey::shared(&id)).await?;
    let items = all_items(&state, &principal, &record.key).await?;
    let Some(item) = items.into_iter().find(|item| item["id"] == item_id.as_str()) else {
        return Err(unknown_item(&item_id));
    };
    // One that the client added; those of runs are in their logs.
    let added = catalog.items().get(&principal, std::slice::from_ref(&item_id)).await?.into_iter().flatten().next();
    let last = catalog.runs().last_of_conversation(&principal, &record.key).await?;
    // What no run has read leaves nothing to take out: an equal message that was said before stays.
    let is_unread = added.is_some_and(|added| last.is_none_or(|last| added.created_at > last.started_at));
    if !is_unread {
        let removed = ItemRecord {
            item_id: format!("removed_{}", Uuid::now_v7().simple()),
            role: ItemRole::Removed,
            item_json: item.to_string(),
            ..added_record(&record.subject, &record.key, catalog.now().await?)
        };
        catalog.items().insert(&[removed]).await?;
    }
    catalog.items().delete(&principal, &item_id).await?;
    give_up_call(&state, &principal, &record.key, &item).await?;
    Ok(json_response(StatusCode::OK, &conversation_json(&record)))
}

/// Gives up a call of a conversation that waits, with its item: no later decision brings it back.
async fn give_up_call(
    state: &AppState,
    principal: &Principal,
    key: &ConversationKey,
    item: &Value,
) -> Result<(), OpenAiError> {
    let call_id = match item["type"].as_str() {
        Some("function_call") => item["call_id"].as_str(),
        Some("mcp_approval_request") => item["id"].as_str(),
        _ => None,
    };
    let Some(call_id) = call_id else { return Ok(()) };
    let calls = state.agent.catalog().pending_calls();
    match calls.get(principal, call_id).await {
        // A client may have added the call of another conversation.
        Ok(call) if call.conversation.as_ref() == Some(key) && call.state == PendingState::Waiting => {
            calls.decide(principal, call_id, PendingState::Abandoned, "{}").await?;
            Ok(())
        }
        Ok(_) | Err(CatalogError::PendingCallNotFound { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Creates the record of an item of a conversation.
fn added_record(subject: &str, key: &ConversationKey, created_at: DateTime<Utc>) -> ItemRecord {
    ItemRecord {
        item_id: String::new(),
        subject: subject.to_owned(),
        conversation: Some(key.clone()),
        run_id: None,
        role: ItemRole::Added,
        item_json: String::new(),
        created_at,
    }
}

/// Returns the items that a request adds. Errors: `invalid_request`.
fn checked_items(listed: &Value) -> Result<&[Value], OpenAiError> {
    let Value::Array(items) = listed else {
        return Err(OpenAiError::bad_request(ErrorCode::InvalidRequest, "items", "`items` must be a list"));
    };
    if items.len() > MAX_ADDED {
        let message = format!("{} items at once; at most {MAX_ADDED} are taken", items.len());
        return Err(OpenAiError::bad_request(ErrorCode::InvalidRequest, "items", message));
    }
    parse_items_of("items", listed)?;
    check_messages(listed, "items")?;
    Ok(items)
}

async fn add(
    state: &AppState,
    principal: &Principal,
    key: &ConversationKey,
    items: &[Value],
) -> Result<Vec<Value>, OpenAiError> {
    let now = state.agent.catalog().now().await?;
    let records = |keeps_ids: bool| -> Vec<ItemRecord> {
        let listed = items.iter().map(|item| with_id(listed_item(item), keeps_ids));
        let record = |(item_id, item): (String, Value)| ItemRecord {
            item_id,
            item_json: item.to_string(),
            ..added_record(principal.subject(), key, now)
        };
        listed.map(record).collect()
    };
    let mut added = records(true);
    match state.agent.catalog().items().insert(&added).await {
        // An id that was given is taken already, which is nobody's fault.
        Err(CatalogError::ItemExists { .. }) => {
            added = records(false);
            state.agent.catalog().items().insert(&added).await?;
        }
        inserted => inserted?,
    }
    Ok(added.iter().filter_map(|record| serde_json::from_str(&record.item_json).ok()).collect())
}

/// Returns an item with its id: the one that it came with, where that is one of its kind and not that of a run's item.
fn with_id(mut item: Value, keeps_id: bool) -> (String, Value) {
    let prefix = id_prefix(&item);
    let is_good = |id: &&str| {
        let rest = id.strip_prefix(prefix).and_then(|rest| rest.strip_prefix('_')).unwrap_or_default();
        !rest.is_empty()
            && id.len() <= MAX_ID_BYTES
            && rest.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
            && run_of_item(id).is_none()
    };
    let given = item["id"].as_str().filter(|_| keeps_id).filter(is_good).map(str::to_owned);
    let id = given.unwrap_or_else(|| format!("{prefix}_{}", Uuid::now_v7()));
    item["id"] = json!(id);
    (id, item)
}

/// Returns all items, from runs and from the client, in order.
async fn all_items(state: &AppState, principal: &Principal, key: &ConversationKey) -> Result<Vec<Value>, OpenAiError> {
    let catalog = state.agent.catalog();
    let mut changed = ItemChanges::of_conversation(catalog, principal, key).await?;
    let mut items = std::mem::take(&mut changed.added);
    for run in catalog.runs().of_conversation(principal, key, MAX_RUNS).await? {
        let log = events_of(&run)?;
        let of_run = input_items(&log).into_iter().chain(output_items(&log)).filter(|item| changed.has(item));
        items.extend(of_run.map(|item| (run.started_at, item)));
    }
    items.sort_by_key(|(at, _)| *at);
    Ok(items.into_iter().map(|(_, item)| item).collect())
}

fn conversation_json(record: &ConversationRecord) -> Value {
    json!({
        "id": record.key.id,
        "object": "conversation",
        "created_at": record.created_at.timestamp(),
        "metadata": serde_json::from_str::<Value>(&record.metadata_json).unwrap_or_else(|_| json!({})),
    })
}

fn unknown(key: &ConversationKey) -> OpenAiError {
    OpenAiError::not_found(ErrorCode::ConversationNotFound, format!("conversation with id `{}` not found", key.id))
}

fn unknown_item(id: &str) -> OpenAiError {
    OpenAiError::not_found(ErrorCode::ItemNotFound, format!("item with id `{id}` not found"))
}
