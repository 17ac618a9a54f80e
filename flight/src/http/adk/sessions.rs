//! ADK's sessions: `{id, appName, userId, state, events, lastUpdateTime}` and no other key, since its clients refuse
//! others. The events are those of the session's runs, rendered again from their logs.

use std::collections::BTreeMap;

use axum::extract::Path;
use axum::response::Response;
use http::StatusCode;
use querent_agent::events_of;
use querent_agent::protocols::Renderer;
use querent_agent::protocols::adk::{AdkRenderer, AdkView, state_delta};
use querent_agent::protocols::fields::{WrongField, check_names};
use querent_agent::protocols::responses::BadRequest;
use querent_catalog::{ConversationFilter, ConversationRecord, Principal, RunStatus};
use serde_json::{Map, Value, json};

use super::scope::{AdkScope, merge_state, new_session_id};
use super::shared_state::shared_state;
use crate::error::ErrorCode;
use crate::http::elsewhere::as_stored;
use crate::http::ksadk::scope::newest_sessions;
use crate::http::openai::error::OpenAiError;
use crate::http::openai::fields::any_fields;
use crate::http::openai::room::take_room;
use crate::http::request::{ApiCall, QueryBytes};
use crate::http::response::json_response;
use crate::http::sessions::delete_conversation;
use crate::state::AppState;

/// The most runs of a session whose events are shown.
const MAX_RUNS: usize = 200;

/// `POST .../sessions`: `{sessionId?, state?}`, or nothing.
pub(in crate::http) async fn create(
    ApiCall { state, principal }: ApiCall,
    Path((app, user)): Path<(String, String)>,
    QueryBytes(body): QueryBytes,
) -> Result<Response, OpenAiError> {
    let fields = fields_of(&body)?;
    refuse_others(&fields, &["sessionId", "session_id", "state"])?;
    let id = match either(&fields, "sessionId", "session_id")? {
        None => None,
        Some(Value::String(id)) => Some(id.clone()),
        Some(_) => return Err(wrong("sessionId", "`sessionId` must be a string".to_owned())),
    };
    let with = state_delta(fields.get("state"))?;
    make(&state, &principal, &AdkScope { app, user }, id, with).await
}

/// `POST .../sessions/{session}`: the body is the state, or `{state}`.
pub(in crate::http) async fn create_named(
    ApiCall { state, principal }: ApiCall,
    Path((app, user, id)): Path<(String, String, String)>,
    QueryBytes(body): QueryBytes,
) -> Result<Response, OpenAiError> {
    let fields = fields_of(&body)?;
    let with = match fields.get("state") {
        Some(Value::Object(with)) if fields.len() == 1 => with.clone(),
        _ => fields,
    };
    make(&state, &principal, &AdkScope { app, user }, Some(id), with).await
}

async fn make(
    state: &AppState,
    principal: &Principal,
    scope: &AdkScope,
    id: Option<String>,
    with: Map<String, Value>,
) -> Result<Response, OpenAiError> {
    let id = id.filter(|id| !id.is_empty()).unwrap_or_else(new_session_id);
    take_room(state, principal, Value::Object(with.clone()).to_string().len()).await?;
    let (record, is_new) = scope.open(state, principal, id.clone(), "", with).await?;
    if !is_new {
        return Err(OpenAiError::conflict(ErrorCode::AlreadyExists, format!("session `{id}` exists already")));
    }
    let shared = shared_state(state, principal, &record).await?;
    Ok(json_response(StatusCode::OK, &session_json(scope, &record, shared, Vec::new())))
}

/// `GET .../sessions`: newest activity first, without events.
pub(in crate::http) async fn list(
    ApiCall { state, principal }: ApiCall,
    Path((app, user)): Path<(String, String)>,
) -> Result<Response, OpenAiError> {
    let scope = AdkScope { app, user };
    let filter = ConversationFilter { space: scope.space(), app: Some(scope.app.clone()), user_id: None };
    let records = newest_sessions(&state, &principal, &filter).await?;
    let mut of_owners: BTreeMap<&str, Map<String, Value>> = BTreeMap::new();
    let mut sessions = Vec::with_capacity(records.len());
    for record in &records {
        let shared = match of_owners.get(record.subject.as_str()) {
            Some(shared) => shared.clone(),
            None => {
                let shared = shared_state(&state, &principal, record).await?;
                of_owners.insert(&record.subject, shared.clone());
                shared
            }
        };
        sessions.push(session_json(&scope, record, shared, Vec::new()));
    }
    Ok(json_response(StatusCode::OK, &json!(sessions)))
}

/// `GET .../sessions/{session}`.
pub(in crate::http) async fn get(
    ApiCall { state, principal }: ApiCall,
    Path((app, user, id)): Path<(String, String, String)>,
) -> Result<Response, OpenAiError> {
    let scope = AdkScope { app, user };
    let record = scope.session(&state, &principal, &id).await?;
    session_response(&state, &principal, &scope, &record).await
}

/// `PATCH .../sessions/{session}`: `{stateDelta}`.
pub(in crate::http) async fn patch(
    ApiCall { state, principal }: ApiCall,
    Path((app, user, id)): Path<(String, String, String)>,
    QueryBytes(body): QueryBytes,
) -> Result<Response, OpenAiError> {
    let scope = AdkScope { app, user };
    let fields = fields_of(&body)?;
    refuse_others(&fields, &["stateDelta", "state_delta"])?;
    let delta = state_delta(either(&fields, "stateDelta", "state_delta")?)?;
    let record = scope.session(&state, &principal, &id).await?;
    let record = merge_state(&state, &principal, &record, delta).await?;
    session_response(&state, &principal, &scope, &record).await
}

/// `DELETE .../sessions/{session}`: with its runs; one in progress is cancelled first.
pub(in crate::http) async fn remove(
    ApiCall { state, principal }: ApiCall,
    Path((app, user, id)): Path<(String, String, String)>,
) -> Result<Response, OpenAiError> {
    let record = AdkScope { app, user }.session(&state, &principal, &id).await?;
    delete_conversation(&state, &principal, &record.key).await?;
    Ok(json_response(StatusCode::OK, &Value::Null))
}

async fn session_response(
    state: &AppState,
    principal: &Principal,
    scope: &AdkScope,
    record: &ConversationRecord,
) -> Result<Response, OpenAiError> {
    let (mut events, mut running) = (Vec::new(), None);
    for run in state.agent.catalog().runs().of_conversation(principal, &record.key, MAX_RUNS).await? {
        let run =
            if run.status == RunStatus::Running { state.agent.get_run(principal, run.run_id).await? } else { run };
        let mut renderer = AdkRenderer::new(AdkView::Session).of_run(run.run_id, run.invocation_id.clone());
        for event in events_of(&run)? {
            let frames = renderer.frame(&event);
            events.extend(frames.iter().filter_map(|frame| serde_json::from_str::<Value>(&frame.data).ok()));
        }
        if run.status == RunStatus::Running {
            running = Some(run);
        }
    }
    let shared = shared_state(state, principal, record).await?;
    let answer = json_response(StatusCode::OK, &session_json(scope, record, shared, events));
    Ok(as_stored(state, running.as_ref(), answer).await?)
}

/// Returns a session with its own state and what it shares with others.
fn session_json(
    scope: &AdkScope,
    record: &ConversationRecord,
    shared: Map<String, Value>,
    events: Vec<Value>,
) -> Value {
    let mut kept: Map<String, Value> = serde_json::from_str(&record.state_json).unwrap_or_default();
    kept.extend(shared);
    json!({
        "id": record.key.id,
        "appName": scope.app,
        "userId": scope.user,
        "state": kept,
        "events": events,
        "lastUpdateTime": record.updated_at.timestamp_millis() as f64 / 1_000.0,
    })
}

/// Returns the fields of a body; an empty body and `null` have none.
fn fields_of(body: &[u8]) -> Result<Map<String, Value>, OpenAiError> {
    match body.trim_ascii() {
        b"null" => Ok(Map::new()),
        _ => any_fields(body),
    }
}

/// Returns the value of a field in the spelling that has one. Errors: another value in each.
fn either<'a>(fields: &'a Map<String, Value>, camel: &str, snake: &str) -> Result<Option<&'a Value>, OpenAiError> {
    let given = |name: &str| fields.get(name).filter(|value| !value.is_null());
    match (given(camel), given(snake)) {
        (Some(one), Some(other)) if one != other => {
            Err(wrong(snake, format!("`{snake}` is another value than `{camel}`, the same field; send one")))
        }
        (one, other) => Ok(one.or(other)),
    }
}

fn wrong(at: &str, message: String) -> OpenAiError {
    BadRequest::from(WrongField { at: at.to_owned(), message }).with_status(422).into()
}

/// Refuses a field that has a value and is not one of `known`. ADK's clients write every field, null or empty where unused.
fn refuse_others(fields: &Map<String, Value>, known: &[&str]) -> Result<(), OpenAiError> {
    let mut given = fields.clone();
    given.retain(|_, value| !value.is_null() && *value != json!([]) && *value != json!({}));
    Ok(check_names(&given, "", known.iter().copied()).map_err(|field| BadRequest::from(field).with_status(422))?)
}
