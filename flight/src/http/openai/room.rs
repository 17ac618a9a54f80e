//! Bounds what the conversations of a caller take together, whichever the protocol that adds to them.

use querent_catalog::{Principal, RECORD_BYTES};

use super::error::OpenAiError;
use crate::error::{ApiError, ErrorCode};
use crate::state::AppState;

/// Takes room for so many bytes that a request adds to its caller's conversations. Errors: `too_many_conversations`.
pub(in crate::http) async fn take_room(
    state: &AppState,
    principal: &Principal,
    added: usize,
) -> Result<(), OpenAiError> {
    let most = state.settings.agent.max_conversation_bytes_per_caller;
    let added = RECORD_BYTES + added as u64;
    if most.0 == 0 || state.conversation_room.take(state.agent.catalog(), principal.subject(), added, most.0).await? {
        return Ok(());
    }
    let message = format!(
        "your conversations would take more than the {most} that those of one caller may; delete some, or ask an \
         administrator to raise `agent.max_conversation_bytes_per_caller`"
    );
    Err(ApiError::new(ErrorCode::TooManyConversations, message).into())
}
