//! KsADK's sessions and runs, as far as an agent and a user of an application may reach them.

use chrono::Utc;
use querent_catalog::{
    CatalogError, ConversationAccess, ConversationFilter, ConversationKey, ConversationRecord, PageRequest, Principal,
    RunRecord, RunStatus,
};
use uuid::Uuid;

use crate::error::ErrorCode;
use crate::http::openai::error::OpenAiError;
use crate::state::AppState;

/// The most sessions that a listing reaches.
pub(super) const MAX_SESSIONS: usize = 1_000;

pub(super) fn new_session_id() -> String {
    format!("session-{}", Uuid::now_v7().simple())
}

/// Returns the session of that id, created if it does not exist, and whether it was created. Errors: `session_conflict` if it belongs to another
/// agent, user or caller.
pub(super) async fn open_session(
    state: &AppState,
    principal: &Principal,
    agent_id: &str,
    user_id: &str,
    id: String,
    title: &str,
) -> Result<(ConversationRecord, bool), OpenAiError> {
    let record = ConversationRecord {
        app: agent_id.to_owned(),
        user_id: user_id.to_owned(),
        title: title.to_owned(),
        ..ConversationRecord::new(ConversationKey::shared(&id), principal.subject(), Utc::now())
    };
    match state.agent.catalog().conversations().open(principal, &record).await? {
        ConversationAccess::Created(record) => Ok((record, true)),
        ConversationAccess::Existing(record) => {
            check_scope(&record, agent_id, user_id)?;
            Ok((record, false))
        }
        ConversationAccess::Foreign => Err(in_use(&id)),
    }
}

pub(super) fn check_scope(record: &ConversationRecord, agent_id: &str, user_id: &str) -> Result<(), OpenAiError> {
    if is_in_scope(record, Some(agent_id), Some(user_id)) { Ok(()) } else { Err(in_use(&record.key.id)) }
}

fn in_use(id: &str) -> OpenAiError {
    OpenAiError::conflict(
        ErrorCode::SessionConflict,
        format!("session `{id}` is another agent's or user's; take another id"),
    )
}

/// Whether a session belongs to the agent and the user, as far as they are named. A session that another protocol
/// created has neither and matches any.
pub(super) fn is_in_scope(record: &ConversationRecord, agent_id: Option<&str>, user_id: Option<&str>) -> bool {
    let fits = |own: &str, asked: Option<&str>| own.is_empty() || asked.is_none_or(|asked| asked == own);
    fits(&record.app, agent_id) && fits(&record.user_id, user_id)
}

/// Returns the session that an action names. Errors: `conversation_not_found`, also if it is out of scope.
pub(super) async fn scoped_session(
    state: &AppState,
    principal: &Principal,
    id: &str,
    agent_id: Option<&str>,
    user_id: Option<&str>,
) -> Result<ConversationRecord, OpenAiError> {
    let record = state.agent.catalog().conversations().get(principal, &ConversationKey::shared(id)).await?;
    if is_in_scope(&record, agent_id, user_id) {
        return Ok(record);
    }
    Err(CatalogError::ConversationNotFound { id: id.to_owned() }.into())
}

/// Returns the run of an invocation, which must be in the session if one is named. Errors: `invocation_conflict`.
pub(super) async fn run_of_invocation(
    state: &AppState,
    principal: &Principal,
    invocation_id: &str,
    session: Option<&ConversationRecord>,
) -> Result<Option<RunRecord>, OpenAiError> {
    let run = state.agent.catalog().runs().of_invocation(principal, invocation_id).await?;
    if let Some(session) = session
        && run.as_ref().is_none_or(|run| run.conversation.as_ref() != Some(&session.key))
    {
        let message = format!("invocation `{invocation_id}` is not one of session `{}`", session.key.id);
        return Err(OpenAiError::conflict(ErrorCode::InvocationConflict, message));
    }
    Ok(run)
}

/// Returns KsADK's name of a run's status.
pub(super) fn status_name(status: RunStatus) -> &'static str {
    match status {
        RunStatus::Running => "in_progress",
        RunStatus::Success => "completed",
        RunStatus::Paused => "interrupted",
        RunStatus::Error | RunStatus::BudgetExceeded => "failed",
        RunStatus::Cancelled => "cancelled",
    }
}

/// Returns the newest sessions, read over as many pages as it takes.
pub(in crate::http) async fn newest_sessions(
    state: &AppState,
    principal: &Principal,
    filter: &ConversationFilter,
) -> Result<Vec<ConversationRecord>, OpenAiError> {
    let mut records = Vec::new();
    let mut after = None;
    loop {
        let request = PageRequest { limit: MAX_SESSIONS, after };
        let page = state.agent.catalog().conversations().list(principal, filter, request).await?;
        records.extend(page.items);
        after = page.next;
        if after.is_none() || records.len() >= MAX_SESSIONS {
            records.truncate(MAX_SESSIONS);
            return Ok(records);
        }
    }
}
