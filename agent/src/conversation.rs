//! Conversations and runs as the catalog stores them, read back: what a new run continues, and what an earlier one
//! emitted.

use chrono::Utc;
use querent_catalog::{
    Catalog, CatalogError, ConversationAccess, ConversationChange, ConversationKey, ConversationRecord, Principal,
    RunRecord,
};
use serde::de::DeserializeOwned;

use crate::error::{AgentError, Result};
use crate::event::RunEvent;
use crate::models::ChatMessage;
use crate::request::RunRequest;

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
    match catalog.conversations().open(who, &record).await? {
        ConversationAccess::Created(_) => {}
        ConversationAccess::Existing(existing) => {
            if existing.title.is_empty() && !record.title.is_empty() {
                let change = ConversationChange { title: Some(record.title), ..ConversationChange::default() };
                catalog.conversations().update(who, &key, &change).await?;
            }
            if let Some(last) = catalog.runs().last_of_conversation(who, &key).await? {
                request.go_on_from(messages_of(&last)?);
                request.previous_run_id.get_or_insert(last.run_id);
            }
        }
        ConversationAccess::Foreign => return Err(CatalogError::ConversationNotFound { id: key.id }.into()),
    }
    request.conversation = Some(key);
    request.retained = true;
    Ok(())
}

/// Returns the title of a conversation that begins with `question`.
pub fn conversation_title(question: &str) -> String {
    question.trim().chars().take(TITLE_CHARS).collect()
}

/// Returns the conversation as it stood when the run ended, its instructions first. Errors: `internal` for one that cannot be read.
pub fn messages_of(run: &RunRecord) -> Result<Vec<ChatMessage>> {
    stored(&run.messages_json, "conversation", run)
}

/// Returns the run's event log. Errors: `internal` for a log that cannot be read.
pub fn events_of(run: &RunRecord) -> Result<Vec<RunEvent>> {
    stored(&run.events_json, "log", run)
}

fn stored<T: DeserializeOwned>(json: &str, what: &str, run: &RunRecord) -> Result<T> {
    serde_json::from_str(json)
        .map_err(|error| AgentError::Internal(format!("the {what} of run {} cannot be read: {error}", run.run_id)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_read_is_not_forgotten() {
        let whole = RunRecord::new(uuid::Uuid::nil(), "ann", "how many?", "model", Utc::now());
        assert!(messages_of(&whole).unwrap().is_empty() && events_of(&whole).unwrap().is_empty());
        let cut = RunRecord { messages_json: "[{".into(), events_json: "[{".into(), ..whole };
        assert_eq!(messages_of(&cut).unwrap_err().code(), "internal");
        assert_eq!(events_of(&cut).unwrap_err().code(), "internal");
    }
}
