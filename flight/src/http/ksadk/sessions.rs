//! What KsADK's web interface needs beside runs: its bootstrap, sessions with their events, models, uploads.

use axum::Extension;
use axum::extract::Request;
use axum::response::Response;
use querent_agent::protocols::ksadk::{Action, SessionEventRenderer, ShownBeside, added_events, session_messages};
use querent_catalog::{ConversationFilter, ConversationRecord, Principal, RunRecord, RunStatus};
use serde_json::{Value, json};

use super::call::{ActionCall, envelope};
use super::scope::{MAX_SESSIONS, new_session_id, newest_sessions, open_session, scoped_session, status_name};
use crate::error::ErrorCode;
use crate::http::elsewhere::as_stored;
use crate::http::item_changes::ItemChanges;
use crate::http::openai::error::OpenAiError;
use crate::http::openai::room::take_room;
use crate::http::openai::{files, models as model_list};
use crate::http::request::{ApiCall, RequestId};
use crate::http::sessions::delete_conversation;
use crate::state::AppState;

/// The most runs of a session whose events are read.
const MAX_RUNS: usize = 200;

/// `GetAgentUiBootstrap`.
pub(in crate::http) async fn bootstrap(
    ActionCall { state, request_id, action, .. }: ActionCall,
) -> Result<Response, OpenAiError> {
    let agent_id = action.name("AgentId")?.unwrap_or_else(|| model_list::AGENT.to_owned());
    let can_write = state.agent.config().write_tools;
    let data = json!({
        "Agent": {
            "AgentId": agent_id,
            "Name": model_list::AGENT,
            "Description": "Answers questions about the tables of this server.",
            "Framework": "querent",
        },
        "Modules": ["Chat"],
        "Capabilities": {
            "Attachments": true,
            "WorkspaceFiles": false,
            "Approval": can_write,
            "Thinking": true,
            "StopRun": true,
            "ResumeRun": false,
            "RunLifecycle": {
                "Enabled": true,
                "Resume": false,
                "Abort": true,
                "Checkpoints": false,
                "CheckpointResume": false,
                "CheckpointResumePreview": false,
            },
            "MCP": true,
            "HostedRuntime": false,
            "BuiltinTools": [],
        },
        "WorkspaceFiles": { "Enabled": false },
        "AccessMode": "Owner",
        "SharePermissions": { "Interactive": true },
        "CustomUI": { "Enabled": false },
        "ApiFormats": ["responses", "chat_completions"],
        "HostedChat": {
            "PreferredTransport": "responses",
            "Transports": [{
                "Protocol": "responses",
                "Runtime": "querent",
                "Endpoint": "/v1/responses",
                "Version": "v1",
                "Capabilities": { "A2UI": false, "Interrupt": can_write, "Cancel": true },
            }],
        },
        "Stream": true,
        "SessionId": action.name("SessionId")?,
        "HostedRuntime": null,
        "Model": { "Current": model_list::current(&state), "Models": model_list::models(&state) },
    });
    Ok(envelope(&request_id, "GetAgentUiBootstrap", &data))
}

/// `CreateSession`: returns an existing session as it is.
pub(in crate::http) async fn create(
    ActionCall { state, principal, request_id, action }: ActionCall,
) -> Result<Response, OpenAiError> {
    let (agent, user) = (action.required("AgentId")?, action.user()?);
    let id = action.name("SessionId")?.unwrap_or_else(new_session_id);
    take_room(&state, &principal, agent.len() + user.len()).await?;
    let (record, _) = open_session(&state, &principal, &agent, &user, id, "").await?;
    let session = session_json(&state, &principal, &record).await?;
    Ok(envelope(&request_id, "CreateSession", &json!({ "Session": session })))
}

/// `ListSessions`: newest activity first.
pub(in crate::http) async fn list(
    ActionCall { state, principal, request_id, action }: ActionCall,
) -> Result<Response, OpenAiError> {
    let filter = ConversationFilter {
        app: Some(action.required("AgentId")?),
        user_id: action.name("UserId")?,
        ..ConversationFilter::default()
    };
    let page = count_of(&action, "Page", 1, u64::MAX)?.unwrap_or(1);
    let page_size = count_of(&action, "PageSize", 1, MAX_SESSIONS as u64)?.unwrap_or(20);
    let records = newest_sessions(&state, &principal, &filter).await?;
    let mut sessions = Vec::new();
    for record in records.iter().skip(page_size.saturating_mul(page - 1)).take(page_size) {
        sessions.push(summary_json(record));
    }
    let data = json!({
        "Sessions": sessions,
        "Total": records.len(),
        "Page": page,
        "PageSize": page_size,
        "DataSource": "runtime",
        "Degraded": false,
        "SessionContractVersion": 2,
    });
    Ok(envelope(&request_id, "ListSessions", &data))
}

/// `GetSession`.
pub(in crate::http) async fn get(
    ActionCall { state, principal, request_id, action }: ActionCall,
) -> Result<Response, OpenAiError> {
    let record = named_session(&state, &principal, &action).await?;
    let session = session_json(&state, &principal, &record).await?;
    Ok(envelope(&request_id, "GetSession", &json!({ "Session": session })))
}

/// `DeleteSession`: with its runs; one in progress is cancelled first.
pub(in crate::http) async fn remove(
    ActionCall { state, principal, request_id, action }: ActionCall,
) -> Result<Response, OpenAiError> {
    let record = named_session(&state, &principal, &action).await?;
    let deleted = delete_conversation(&state, &principal, &record.key).await?;
    Ok(envelope(&request_id, "DeleteSession", &json!({ "Deleted": deleted })))
}

async fn named_session(
    state: &AppState,
    principal: &Principal,
    action: &querent_agent::protocols::ksadk::Action,
) -> Result<ConversationRecord, OpenAiError> {
    let (agent, user) = (action.name("AgentId")?, action.name("UserId")?);
    // KsADK's own client calls it `Id` where it asks for one session.
    let id = match action.name("Id")? {
        Some(id) if action.name("SessionId")?.is_none() => id,
        _ => action.required("SessionId")?,
    };
    scoped_session(state, principal, &id, agent.as_deref(), user.as_deref()).await
}

/// `ListSessionEvents`: newest first.
pub(in crate::http) async fn events(
    ActionCall { state, principal, request_id, action }: ActionCall,
) -> Result<Response, OpenAiError> {
    let record = named_session(&state, &principal, &action).await?;
    let (after, before) = places(&action)?;
    let kinds = action.event_types()?;
    without_checkpoints(&action)?;
    let offset = count_of(&action, "Offset", 0, u64::MAX)?.unwrap_or(0);
    let limit = count_of(&action, "Limit", 1, 2_000)?.unwrap_or(200);
    let (mut events, running) = session_events(&state, &principal, &record, after.unwrap_or(0)).await?;
    let is_before = |event: &Value| before.is_none_or(|before| event["SeqId"].as_u64().is_some_and(|id| id < before));
    events.retain(|event| is_before(event) && is_of_kind(event, &kinds));
    events.reverse();
    let total = events.len();
    let shown: Vec<Value> = events.into_iter().skip(offset).take(limit).collect();
    let data = json!({
        "Events": shown,
        "Total": total,
        "Offset": offset,
        "Limit": limit,
        "AfterSeqId": after,
        "BeforeSeqId": before,
        "CheckpointIds": [],
        "EventTypes": kinds,
    });
    Ok(as_stored(&state, running.as_ref(), envelope(&request_id, "ListSessionEvents", &data)).await?)
}

/// Returns how many are asked for, within the bounds that KsADK's own server has. Errors: 422.
fn count_of(action: &Action, field: &str, least: u64, most: u64) -> Result<Option<usize>, OpenAiError> {
    Ok(action.number(field, least, most)?.map(|number| usize::try_from(number).unwrap_or(usize::MAX)))
}

/// Returns the places after and before which events are asked for. Errors: 422.
fn places(action: &Action) -> Result<(Option<u64>, Option<u64>), OpenAiError> {
    Ok((action.number("AfterSeqId", 0, u64::MAX)?, action.number("BeforeSeqId", 1, u64::MAX)?))
}

/// Whether an event is of one of these kinds; no kinds are all.
fn is_of_kind(event: &Value, kinds: &[String]) -> bool {
    kinds.is_empty() || kinds.iter().any(|kind| event["EventType"] == kind.as_str())
}

/// Refuses to look for the events of checkpoints, of which there are none.
fn without_checkpoints(action: &Action) -> Result<(), OpenAiError> {
    if action.words("CheckpointIds")?.is_empty() {
        return Ok(());
    }
    let message = "`CheckpointIds` is not supported: this server keeps no checkpoints; leave it out";
    Err(OpenAiError::not_supported(ErrorCode::ActionNotSupported, message))
}

/// `ListSessionMessages`: the newest `Limit` before `BeforeSeqId`, oldest first; of a client that goes on from
/// `AfterSeqId` all that follow, as KsADK's own server answers it.
pub(in crate::http) async fn messages(
    ActionCall { state, principal, request_id, action }: ActionCall,
) -> Result<Response, OpenAiError> {
    let record = named_session(&state, &principal, &action).await?;
    let (after, before) = places(&action)?;
    let kinds = action.event_types()?;
    without_checkpoints(&action)?;
    let limit = count_of(&action, "Limit", 1, 200)?.unwrap_or(50);
    let (events, running) = session_events(&state, &principal, &record, after.unwrap_or(0)).await?;
    let events: Vec<Value> = events.into_iter().filter(|event| is_of_kind(event, &kinds)).collect();
    let beside = ShownBeside { reasoning: action.flag("IncludeReasoning")?, tools: action.flag("IncludeToolEvents")? };
    let mut said = session_messages(&events, beside);
    said.retain(|message| before.is_none_or(|before| number_of(message) < before));
    let from = if after.is_some() { 0 } else { said.len().saturating_sub(limit) };
    let has_more = from > 0;
    let shown: Vec<Value> = said.into_iter().skip(from).collect();
    let latest = shown.last().map_or(json!(after.unwrap_or(0)), |message| message["SeqId"].clone());
    let next = shown.first().filter(|_| has_more).map(|message| message["StartSeqId"].clone());
    let data = json!({
        "SessionId": record.key.id,
        "Messages": shown,
        "LatestSeqId": latest,
        "HasMore": has_more,
        "NextCursor": next,
    });
    Ok(as_stored(&state, running.as_ref(), envelope(&request_id, "ListSessionMessages", &data)).await?)
}

/// `ListAgentModels`.
pub(in crate::http) async fn models(ActionCall { state, request_id, .. }: ActionCall) -> Response {
    let data = json!({
        "Models": model_list::models(&state),
        "Current": model_list::current(&state),
        "Source": "operator",
    });
    envelope(&request_id, "ListAgentModels", &data)
}

/// `UploadFile`: a form with `file`. The file is also in `/v1/files`; its URI here is its id there.
pub(in crate::http) async fn upload(
    ApiCall { state, principal }: ApiCall,
    Extension(request_id): Extension<RequestId>,
    request: Request,
) -> Result<Response, OpenAiError> {
    let file = files::store(&state, &principal, request, false).await?;
    let data = json!({
        "FileData": {
            "fileUri": file.file_id,
            "fileId": file.file_id,
            "displayName": file.filename,
            "mimeType": file.media_type,
            "sizeBytes": file.bytes,
        },
    });
    Ok(envelope(&request_id, "UploadFile", &data))
}

/// Returns the events of a session after the `after`th, in order, of its runs and of what clients added to its
/// conversation, and the run that is in progress.
async fn session_events(
    state: &AppState,
    principal: &Principal,
    record: &ConversationRecord,
    after: u64,
) -> Result<(Vec<Value>, Option<RunRecord>), OpenAiError> {
    let changed = ItemChanges::of_conversation(state.agent.catalog(), principal, &record.key).await?;
    let mut running = None;
    // What was added, and what a run showed, with when it was: of the catalog's clock, whichever server's run it is.
    let mut shown = Vec::new();
    let (mut millisecond, mut nth) = (None, 0);
    for (at, item) in &changed.added {
        // Those that were added together are numbered one after the other.
        nth = if millisecond == Some(at.timestamp_millis()) { nth + 1 } else { 0 };
        millisecond = Some(at.timestamp_millis());
        let mut events = added_events(&record.key.id, record.created_at, (*at, nth), item);
        events.retain(|event| number_of(event) > after);
        shown.push((*at, events));
    }
    for run in state.agent.catalog().runs().of_conversation(principal, &record.key, MAX_RUNS).await? {
        let run =
            if run.status == RunStatus::Running { state.agent.get_run(principal, run.run_id).await? } else { run };
        let mut renderer = SessionEventRenderer::new(record.key.id.as_str(), record.created_at, after)
            .without(changed.deleted.clone());
        let log = querent_agent::events_of(&run)?;
        shown.push((run.started_at, log.iter().flat_map(|event| renderer.render(event)).collect()));
        if run.status == RunStatus::Running {
            running = Some(run);
        }
    }
    shown.sort_by_key(|(at, _)| *at);
    Ok((shown.into_iter().flat_map(|(_, events)| events).collect(), running))
}

fn number_of(event: &Value) -> u64 {
    event["SeqId"].as_u64().unwrap_or_default()
}

fn summary_json(record: &ConversationRecord) -> Value {
    let seconds = |at: chrono::DateTime<chrono::Utc>| at.timestamp_millis() as f64 / 1_000.0;
    json!({
        "SessionId": record.key.id,
        "AgentId": if record.app.is_empty() { model_list::AGENT } else { &record.app },
        "UserId": record.user_id,
        "Title": record.title,
        "TitleSource": "first_prompt",
        "Summary": null,
        "FirstPrompt": record.title,
        "State": serde_json::from_str::<Value>(&record.state_json).unwrap_or_else(|_| json!({})),
        "CreatedAt": seconds(record.created_at),
        "UpdatedAt": seconds(record.updated_at),
    })
}

/// Returns a session with the state of its last run.
async fn session_json(
    state: &AppState,
    principal: &Principal,
    record: &ConversationRecord,
) -> Result<Value, OpenAiError> {
    let last = state.agent.catalog().runs().last_of_conversation(principal, &record.key).await?;
    let mut session = summary_json(record);
    session["LastPrompt"] = json!(last.as_ref().map(|run| run.question.as_str()));
    session["ActiveInvocationId"] = json!(last.as_ref().and_then(|run| run.invocation_id.as_deref()));
    session["ActiveRunStatus"] = json!(last.as_ref().map(|run| status_name(run.status)));
    Ok(session)
}
