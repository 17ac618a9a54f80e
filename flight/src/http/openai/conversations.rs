//! `/v1/conversations`: conversations and their items, from runs or added by the client.

use axum::extract::Path;
use axum::response::Response;
use chrono::Utc;
use http::StatusCode;
use querent_agent::events_of;
use querent_agent::protocols::responses::{input_items, listed_item, metadata_of, output_items, parse_items};
use querent_catalog::{
    ConversationAccess, ConversationChange, ConversationKey, ConversationRecord, ItemRecord, ItemRole, ItemScope,
    Principal,
};
use serde_json::{Value, json};
use uuid::Uuid;

use super::error::OpenAiError;
use super::fields::{new_metadata, object_fields};
use super::responses::ItemListParams;
use crate::error::ErrorCode;
use crate::http::request::{ApiCall, Params, PathText, QueryBytes};
use crate::http::response::json_response;
use crate::state::AppState;

/// The most runs, and the most added items, of one conversation that a listing reads.
const MAX_READ: usize = 1_000;
/// The most items that one request may add.
const MAX_ADDED: usize = 20;

/// `POST /v1/conversations`: `{metadata?, items?}`.
pub(in crate::http) async fn create(
    ApiCall { state, principal }: ApiCall,
    QueryBytes(body): QueryBytes,
) -> Result<Response, OpenAiError> {
    let fields = object_fields(&body, &["metadata", "items"])?;
    let key = ConversationKey::shared(format!("conv_{}", Uuid::now_v7().simple()));
    let metadata = metadata_of(&fields).map_err(|error| error.with_status(400))?;
    let record = ConversationRecord {
        metadata_json: metadata.to_string(),
        ..ConversationRecord::new(key.clone(), principal.subject(), Utc::now())
    };
    let ConversationAccess::Created(record) = state.agent.catalog().conversations().open(&principal, &record).await?
    else {
        return Err(unknown(&key));
    };
    if let Some(items) = fields.get("items").filter(|items| !items.is_null()) {
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
    let change = ConversationChange { metadata_json: Some(metadata.to_string()), ..ConversationChange::default() };
    let key = ConversationKey::shared(id);
    let record = state.agent.catalog().conversations().update(&principal, &key, &change).await?;
    Ok(json_response(StatusCode::OK, &conversation_json(&record)))
}

/// `DELETE /v1/conversations/{id}`: with its runs.
pub(in crate::http) async fn remove(
    ApiCall { state, principal }: ApiCall,
    PathText(id): PathText,
) -> Result<Response, OpenAiError> {
    let key = ConversationKey::shared(id);
    if !state.agent.catalog().conversations().delete(&principal, &key).await? {
        return Err(unknown(&key));
    }
    Ok(json_response(StatusCode::OK, &json!({ "id": key.id, "object": "conversation.deleted", "deleted": true })))
}

/// `POST /v1/conversations/{id}/items`: `{items}`.
pub(in crate::http) async fn add_items(
    ApiCall { state, principal }: ApiCall,
    PathText(id): PathText,
    QueryBytes(body): QueryBytes,
) -> Result<Response, OpenAiError> {
    let fields = object_fields(&body, &["items"])?;
    let key = ConversationKey::shared(&id);
    state.agent.catalog().conversations().get(&principal, &key).await?;
    let added = add(&state, &principal, &key, fields.get("items").unwrap_or(&Value::Null)).await?;
    let params = ItemListParams { after: None, limit: Some(MAX_ADDED), order: Some("asc".to_owned()) };
    Ok(json_response(StatusCode::OK, &params.listing(added)?))
}

/// `GET /v1/conversations/{id}/items`.
pub(in crate::http) async fn list_items(
    ApiCall { state, principal }: ApiCall,
    PathText(id): PathText,
    Params(params): Params<ItemListParams>,
) -> Result<Response, OpenAiError> {
    let items = all_items(&state, &principal, &ConversationKey::shared(&id)).await?;
    Ok(json_response(StatusCode::OK, &params.listing(items)?))
}

/// `GET /v1/conversations/{id}/items/{item}`.
pub(in crate::http) async fn get_item(
    ApiCall { state, principal }: ApiCall,
    Path((id, item_id)): Path<(String, String)>,
) -> Result<Response, OpenAiError> {
    let items = all_items(&state, &principal, &ConversationKey::shared(&id)).await?;
    let item = items.into_iter().find(|item| item["id"] == item_id.as_str());
    Ok(json_response(StatusCode::OK, &item.ok_or_else(|| unknown_item(&item_id))?))
}

/// `DELETE /v1/conversations/{id}/items/{item}`: deletes an item that the client added.
pub(in crate::http) async fn remove_item(
    ApiCall { state, principal }: ApiCall,
    Path((id, item_id)): Path<(String, String)>,
) -> Result<Response, OpenAiError> {
    let catalog = state.agent.catalog();
    let record = catalog.conversations().get(&principal, &ConversationKey::shared(&id)).await?;
    let stored = catalog.items().get(&principal, std::slice::from_ref(&item_id)).await?;
    let is_here = stored.into_iter().flatten().any(|item| item.conversation.as_ref() == Some(&record.key));
    if !is_here || !catalog.items().delete(&principal, &item_id).await? {
        return Err(unknown_item(&item_id));
    }
    Ok(json_response(StatusCode::OK, &conversation_json(&record)))
}

async fn add(
    state: &AppState,
    principal: &Principal,
    key: &ConversationKey,
    items: &Value,
) -> Result<Vec<Value>, OpenAiError> {
    let Value::Array(items) = items else {
        return Err(OpenAiError::bad_request(ErrorCode::InvalidRequest, "items", "`items` must be a list"));
    };
    if items.len() > MAX_ADDED {
        let message = format!("{} items at once; at most {MAX_ADDED} are taken", items.len());
        return Err(OpenAiError::bad_request(ErrorCode::InvalidRequest, "items", message));
    }
    parse_items(&Value::Array(items.clone()))?;
    let records: Vec<ItemRecord> = items
        .iter()
        .map(|item| {
            let item_id = format!("msg_{}", Uuid::now_v7());
            let mut item = listed_item(item);
            item["id"] = json!(item_id);
            ItemRecord {
                item_id,
                subject: principal.subject().to_owned(),
                conversation: Some(key.clone()),
                run_id: None,
                role: ItemRole::Added,
                item_json: item.to_string(),
                created_at: Utc::now(),
            }
        })
        .collect();
    state.agent.catalog().items().insert(&records).await?;
    Ok(records.iter().filter_map(|record| serde_json::from_str(&record.item_json).ok()).collect())
}

/// Returns all items, from runs and from the client, in order.
async fn all_items(state: &AppState, principal: &Principal, key: &ConversationKey) -> Result<Vec<Value>, OpenAiError> {
    let catalog = state.agent.catalog();
    let scope = ItemScope::Conversation(key.clone());
    let added = catalog.items().list(principal, &scope, None, MAX_READ, true).await?;
    let mut items: Vec<_> = added
        .items
        .into_iter()
        .filter_map(|record| Some((record.created_at, serde_json::from_str::<Value>(&record.item_json).ok()?)))
        .collect();
    for run in catalog.runs().of_conversation(principal, key, MAX_READ).await? {
        let log = events_of(&run)?;
        items.extend(input_items(&log).into_iter().chain(output_items(&log)).map(|item| (run.started_at, item)));
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
