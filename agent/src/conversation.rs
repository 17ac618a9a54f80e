//! Conversations and runs as the catalog stores them, read back: what a new run continues, and what an earlier one
//! emitted.

use chrono::Utc;
use querent_catalog::{
    Catalog, CatalogError, ConversationAccess, ConversationKey, ConversationRecord, Principal, RunRecord,
};

use crate::error::{AgentError, Result};
use crate::event::RunEvent;
use crate::models::ChatMessage;
use crate::request::RunRequest;

/// Characters of a conversation's title, taken from its first question.
const TITLE_CHARS: usize = 120;

/// Lets `request` continue the conversation `key`, which is created if it does not exist.
///
/// Errors: `conversation_not_found` where it belongs to somebody else.
pub(crate) async fn continue_conversation(
    catalog: &Catalog,
    who: &Principal,
    request: &mut RunRequest,
    key: ConversationKey,
) -> Result<()> {
    let title = conversation_title(&request.question());
    let record = ConversationRecord { title, ..ConversationRecord::new(key.clone(), who.subject(), Utc::now()) };
    match catalog.conversations().open(who, &record).await? {
        ConversationAccess::Created(_) => {}
        ConversationAccess::Existing(_) => {
            if let Some(last) = catalog.runs().last_of_conversation(who, &key).await? {
                request.history = messages_of(&last);
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

/// Returns the conversation as it stood when the run ended.
pub fn messages_of(run: &RunRecord) -> Vec<ChatMessage> {
    serde_json::from_str(&run.messages_json).unwrap_or_default()
}

/// Returns the run's event log. Errors: `internal` for a log that cannot be read.
pub fn events_of(run: &RunRecord) -> Result<Vec<RunEvent>> {
    serde_json::from_str(&run.events_json)
        .map_err(|error| AgentError::Internal(format!("the log of run {} cannot be read: {error}", run.run_id)))
}
