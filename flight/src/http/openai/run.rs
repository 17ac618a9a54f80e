//! Starts the run of a request, or finds the one that it started before.

use futures::StreamExt;
use querent_agent::protocols::Renderer;
use querent_agent::protocols::responses::{InputContent, InputItem};
use querent_agent::{Continued, EventKind, RunEvents, RunRequest, conversation_title};
use querent_catalog::{ConversationKey, Principal};
use uuid::Uuid;

use super::error::OpenAiError;
use crate::state::AppState;

/// Waits for the first event of a run, so that one that cannot begin (its model is unavailable) fails before any byte of
/// the answer.
pub(in crate::http) async fn wait_for_start(mut events: RunEvents) -> Result<RunEvents, OpenAiError> {
    if let Some(EventKind::RunError { code, message, detail_code }) = events.peek().await.map(|event| &event.kind) {
        return Err(OpenAiError::from_run(*code, message, detail_code));
    }
    Ok(events)
}

/// Renders a run to its end. Returns the detailed code of its failure, empty where it did not fail.
pub(in crate::http) async fn render_whole(
    events: RunEvents,
    renderer: &mut impl Renderer,
) -> Result<String, OpenAiError> {
    let mut events = wait_for_start(events).await?;
    let mut detail = String::new();
    while let Some(event) = events.next().await {
        if let EventKind::RunError { detail_code, .. } = &event.kind {
            detail.clone_from(detail_code);
        }
        renderer.frame(&event);
    }
    Ok(detail)
}

/// Starts the run of a request, or finds the one that the same decision started before.
pub(in crate::http) async fn begin(
    state: &AppState,
    principal: &Principal,
    run: RunRequest,
    items: Vec<InputItem>,
    conversation: Option<ConversationKey>,
    previous: Option<&str>,
) -> Result<(Uuid, RunEvents), OpenAiError> {
    match state.agent.continue_with(principal, run, items, conversation, previous).await? {
        Continued::Start(run) => {
            let run = state.agent.start(principal, *run).await?;
            tracing::info!(run_id = %run.run_id, "run started");
            Ok((run.run_id, run.events))
        }
        Continued::Replay(run_id) => Ok((run_id, state.agent.events(principal, run_id, 0).await?)),
    }
}

/// Estimates the tokens of what a run would be told, without starting it.
pub(in crate::http) async fn tokens_of(
    state: &AppState,
    principal: &Principal,
    run: RunRequest,
    items: Vec<InputItem>,
    conversation: Option<ConversationKey>,
    previous: Option<&str>,
) -> Result<usize, OpenAiError> {
    let counted = run.clone();
    match state.agent.continue_with(principal, run, items, conversation, previous).await? {
        Continued::Start(run) => Ok(run.tokens()),
        // Nothing new would be said.
        Continued::Replay(_) => Ok(counted.tokens()),
    }
}

/// Returns a conversation's title: the first words of the newest message.
pub(in crate::http) fn title_of_items(items: &[InputItem]) -> String {
    let words = items.iter().rev().find_map(|item| match item {
        InputItem::Message { content, .. } => content.iter().find_map(|part| match part {
            InputContent::Text(text) => Some(text),
            _ => None,
        }),
        _ => None,
    });
    conversation_title(words.map(String::as_str).unwrap_or_default())
}
