//! Conversations and runs as the catalog stores them, read back: what a new run continues, and what an earlier one
//! emitted.

use chrono::Utc;
use querent_catalog::{
    Catalog, CatalogError, ConversationAccess, ConversationChange, ConversationKey, ConversationRecord, Principal,
    RunRecord, RunStatus,
};
use serde::de::DeserializeOwned;

use crate::error::{AgentError, Result};
use crate::event::{EventKind, RunEvent};
use crate::models::ChatMessage;
use crate::request::{Protocol, RunRequest};
use crate::stored_log::decode_log;

/// Characters of a conversation's title, taken from its first question.
const TITLE_CHARS: usize = 120;

/// Lets `request` continue the conversation `key`, which is created if it does not exist. It is called by its first
/// question that has words.
///
/// Errors: `conversation_not_found` where it belongs to somebody else, `internal` where its last run cannot be read.
pub(crate) async fn continue_conversation(
    catalog: &Catalog,
    who: &Principal,
    request: &mut RunRequest,
    key: ConversationKey,
    question: &str,
) -> Result<()> {
    let title = conversation_title(question);
    let record = ConversationRecord { title, ..ConversationRecord::new(key.clone(), who.subject(), Utc::now()) };
    let access = match request.creates_conversation {
        // Opened once more it would count as used, and would stay where the request is refused.
        true => ConversationAccess::Existing(catalog.conversations().get(who, &key).await?),
        false => catalog.conversations().open(who, &record).await?,
    };
    match access {
        ConversationAccess::Created(_) => request.creates_conversation = true,
        ConversationAccess::Existing(existing) => {
            if existing.title.is_empty() && !record.title.is_empty() {
                let change = ConversationChange { title: Some(record.title), ..ConversationChange::default() };
                catalog.conversations().update(who, &key, &change).await?;
            }
            // Where what it read is not for this caller, neither its words nor its calls go on.
            if let Some(last) = catalog.runs().last_readable_of_conversation(who, &key).await? {
                request.go_on_from(messages_of(&last)?);
                request.previous_run_id.get_or_insert(last.run_id);
            }
        }
        ConversationAccess::Foreign => return Err(CatalogError::ConversationNotFound { id: key.id }.into()),
    }
    request.conversation = Some(key);
    // A response that is not to be stored is a turn of its conversation all the same.
    request.retained |= request.protocol != Protocol::Responses;
    Ok(())
}

/// Deletes a conversation that was created for a run that does not begin, unless somebody has used it since, or is about to.
pub(crate) async fn delete_created(catalog: &Catalog, who: &Principal, key: &ConversationKey) {
    if let Err(error) = catalog.conversations().delete_unused(who, key).await {
        tracing::warn!(code = error.code(), %error, "the conversation of a run that did not begin could not be deleted");
    }
}

/// Returns the title of a conversation that begins with `question`.
pub fn conversation_title(question: &str) -> String {
    question.trim().chars().take(TITLE_CHARS).collect()
}

/// Returns the conversation as it stood when the run ended, its instructions first. What the run was saying when it broke off
/// belongs to it, since its caller has read it. Errors: `internal` for one that cannot be read.
pub fn messages_of(run: &RunRecord) -> Result<Vec<ChatMessage>> {
    let mut messages: Vec<ChatMessage> = stored(&run.messages_json, "conversation", run)?;
    let text = match run.status {
        RunStatus::Error | RunStatus::BudgetExceeded | RunStatus::Cancelled => unfinished_text(&events_of(run)?),
        RunStatus::Running | RunStatus::Success | RunStatus::Paused => String::new(),
    };
    if !text.trim().is_empty() {
        messages.push(ChatMessage::assistant(text, Vec::new()));
    }
    Ok(messages)
}

/// Returns the text of a message that begins in a log and does not end there.
fn unfinished_text(log: &[RunEvent]) -> String {
    let mut text = String::new();
    for event in log {
        match &event.kind {
            EventKind::TextStarted { .. } | EventKind::TextDone { .. } => text.clear(),
            EventKind::TextDelta { text: piece, .. } => text.push_str(piece),
            _ => {}
        }
    }
    text
}

/// Returns the run's event log. Errors: `internal` for a log that cannot be read.
pub fn events_of(run: &RunRecord) -> Result<Vec<RunEvent>> {
    decode_log(&run.events_json).map_err(|error| unreadable("log", run, &error))
}

fn stored<T: DeserializeOwned>(json: &str, what: &str, run: &RunRecord) -> Result<T> {
    serde_json::from_str(json).map_err(|error| unreadable(what, run, &error))
}

fn unreadable(what: &str, run: &RunRecord, error: &serde_json::Error) -> AgentError {
    AgentError::Internal(format!("the {what} of run {} cannot be read: {error}", run.run_id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_run_was_saying_when_it_broke_off_is_told() {
        let text = |text: &str| EventKind::TextDelta { item_id: "msg_1".into(), text: text.to_owned() };
        let started = || EventKind::TextStarted { item_id: "msg_1".to_owned() };
        let done = EventKind::TextDone {
            item_id: "msg_1".to_owned(),
            text: "I look.".to_owned(),
            phase: crate::event::TextPhase::Commentary,
        };
        let kinds = [started(), text("I look."), done, started(), text("It"), text(" is")];
        let log: Vec<RunEvent> = kinds.map(|kind| RunEvent { seq: 0, at: Utc::now(), kind }).into();
        let run = RunRecord {
            status: RunStatus::Cancelled,
            events_json: serde_json::to_string(&log).unwrap(),
            ..RunRecord::new(uuid::Uuid::nil(), "ann", "how many?", "model", Utc::now())
        };
        assert_eq!(messages_of(&run).unwrap(), [ChatMessage::assistant("It is", Vec::new())]);
        assert!(messages_of(&RunRecord { status: RunStatus::Success, ..run }).unwrap().is_empty());
    }

    #[test]
    fn what_cannot_be_read_is_not_forgotten() {
        let whole = RunRecord::new(uuid::Uuid::nil(), "ann", "how many?", "model", Utc::now());
        assert!(messages_of(&whole).unwrap().is_empty() && events_of(&whole).unwrap().is_empty());
        let cut = RunRecord { messages_json: "[{".into(), events_json: "[{".into(), ..whole };
        assert_eq!(messages_of(&cut).unwrap_err().code(), "internal");
        assert_eq!(events_of(&cut).unwrap_err().code(), "internal");
    }
}
