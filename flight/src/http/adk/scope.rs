//! ADK's sessions: whose they are, and the state that they keep.

use chrono::Utc;
use querent_agent::protocols::adk::check_name;
use querent_catalog::{CatalogError, ConversationAccess, ConversationKey, ConversationRecord, Principal, StateMerge};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::shared_state::{check_shared, is_shared, keep_shared};
use crate::error::ErrorCode;
use crate::http::openai::error::OpenAiError;
use crate::http::openai::room::take_room;
use crate::state::AppState;

/// The most bytes of a session's state.
const MAX_STATE_BYTES: usize = 1 << 20;
/// The prefix of keys that belong to one run and are not kept.
const OF_ONE_RUN: &str = "temp:";

pub(super) fn new_session_id() -> String {
    Uuid::now_v7().to_string()
}

/// The application and the user of a session, within which its id is unique.
pub(super) struct AdkScope {
    pub(super) app: String,
    pub(super) user: String,
}

impl AdkScope {
    pub(super) fn space(&self) -> String {
        format!("adk/{}", self.user)
    }

    fn key(&self, id: &str) -> ConversationKey {
        ConversationKey { space: self.space(), id: id.to_owned() }
    }

    /// Returns an existing session. Errors: `conversation_not_found`, also if it belongs to somebody else.
    pub(super) async fn session(
        &self,
        state: &AppState,
        principal: &Principal,
        id: &str,
    ) -> Result<ConversationRecord, OpenAiError> {
        let record = state.agent.catalog().conversations().get(principal, &self.key(id)).await?;
        if record.app == self.app { Ok(record) } else { Err(unknown(id)) }
    }

    /// Returns a session, created if it does not exist, and whether it was created. Errors: `conversation_not_found` if it
    /// belongs to somebody else; `invalid_request` for a name that is too long.
    pub(super) async fn open(
        &self,
        state: &AppState,
        principal: &Principal,
        id: String,
        title: &str,
        with: Map<String, Value>,
    ) -> Result<(ConversationRecord, bool), OpenAiError> {
        for (name, at) in [(&self.app, "appName"), (&self.user, "userId"), (&id, "sessionId")] {
            check_name(name, at)?;
        }
        let (shared, own): (Map<_, _>, Map<_, _>) = with.into_iter().partition(|(key, _)| is_shared(key));
        let record = ConversationRecord {
            app: self.app.clone(),
            user_id: self.user.clone(),
            title: title.to_owned(),
            state_json: merged("{}", own)?,
            ..ConversationRecord::new(self.key(&id), principal.subject(), Utc::now())
        };
        match state.agent.catalog().conversations().open(principal, &record).await? {
            ConversationAccess::Created(record) => {
                keep_shared(state, principal, &record, shared).await?;
                Ok((record, true))
            }
            ConversationAccess::Existing(record) if record.app == self.app => Ok((record, false)),
            ConversationAccess::Existing(_) | ConversationAccess::Foreign => Err(unknown(&id)),
        }
    }
}

fn unknown(id: &str) -> OpenAiError {
    CatalogError::ConversationNotFound { id: id.to_owned() }.into()
}

/// Checks that a session's state has room for `delta`, and what it shares with others. Errors: `state_too_large`.
pub(super) async fn check_state(
    state: &AppState,
    principal: &Principal,
    session: &ConversationRecord,
    delta: &Map<String, Value>,
) -> Result<(), OpenAiError> {
    check_shared(state, principal, session, delta).await?;
    let own = delta.iter().filter(|(key, _)| !is_shared(key)).map(|(key, value)| (key.clone(), value.clone()));
    merged(&session.state_json, own.collect()).map(drop)
}

/// Merges `delta` into a session's state, and into what it shares with others. Returns the session.
pub(super) async fn merge_state(
    state: &AppState,
    principal: &Principal,
    session: &ConversationRecord,
    delta: Map<String, Value>,
) -> Result<ConversationRecord, OpenAiError> {
    let delta = keep_shared(state, principal, session, delta).await?;
    if delta.is_empty() {
        return Ok(session.clone());
    }
    take_room(state, principal, merged(&session.state_json, delta.clone())?.len()).await?;
    put_into_state(state, principal, &session.key, delta).await
}

/// Puts what is kept of `delta` into the state of a conversation, beside what others put there. Errors: `state_too_large`.
pub(super) async fn put_into_state(
    state: &AppState,
    principal: &Principal,
    key: &ConversationKey,
    delta: Map<String, Value>,
) -> Result<ConversationRecord, OpenAiError> {
    let values = kept(delta).collect();
    match state.agent.catalog().conversations().merge_state(principal, key, values, MAX_STATE_BYTES).await? {
        StateMerge::Merged(record) => Ok(*record),
        StateMerge::TooLarge { bytes } => Err(too_large(bytes)),
    }
}

/// Returns a state with the changes of `delta`. Errors: `state_too_large`.
pub(super) fn merged(state_json: &str, delta: Map<String, Value>) -> Result<String, OpenAiError> {
    let mut merged: Map<String, Value> = serde_json::from_str(state_json).unwrap_or_default();
    merged.extend(kept(delta));
    let text = Value::Object(merged).to_string();
    if text.len() > MAX_STATE_BYTES { Err(too_large(text.len())) } else { Ok(text) }
}

/// Returns the changes that do not belong to one run.
fn kept(delta: Map<String, Value>) -> impl Iterator<Item = (String, Value)> {
    delta.into_iter().filter(|(key, _)| !key.starts_with(OF_ONE_RUN))
}

fn too_large(bytes: usize) -> OpenAiError {
    let message = format!("the session's state would be {bytes} bytes; at most {MAX_STATE_BYTES} are kept");
    OpenAiError::bad_request(ErrorCode::StateTooLarge, "stateDelta", message)
}
