//! Earlier messages as a summary, once they fill the model's context.

use futures::StreamExt;

use super::{Turns, context_window, max_output_tokens};
use crate::error::AgentError;
use crate::event::{CompactionFinished, EventKind};
use crate::history::Compaction;
use crate::models::actions::TurnRequest;
use crate::models::{ChatMessage, ChatRole, ModelEvent, Sampling, TokenUsage, ToolChoice};
use crate::tokens::take_tokens;

impl Turns<'_> {
    /// Summarises earlier messages once they fill the model's context.
    pub(super) async fn compact(&mut self) {
        let Some(Compaction { older, tokens }) = self.conversation.due_compaction() else { return };
        let max_tokens = self.conversation.limit_tokens();
        self.emit(EventKind::CompactionStarted {
            tokens,
            max_tokens,
            messages: older.len(),
            messages_before: self.conversation.len(),
            window: context_window(self.task, &self.capabilities),
            max_output_tokens: self.max_reply_tokens(),
        });
        let (summary, usage) = self.summary_of(&older, max_tokens).await;
        let cost = self.count(usage);
        let messages_before = self.conversation.len();
        self.conversation.replace_older(older.len(), &summary);
        self.emit(EventKind::CompactionFinished(Box::new(CompactionFinished {
            initial_tokens: tokens,
            compacted_tokens: self.conversation.tokens(),
            messages_before,
            messages_after: self.conversation.len(),
            summary,
            messages: self.returned_messages(),
            usage,
            cost,
        })));
    }

    /// Lets the model summarise the messages; where it fails, returns their beginning with a mark.
    async fn summary_of(&self, older: &[ChatMessage], max_tokens: usize) -> (String, TokenUsage) {
        const ASK: &str = "Sum up this conversation for yourself, so that you can go on without it: what was asked, what \
            was found (names, figures, queries that worked), what is still open. Be brief.";
        let transcript = crate::history::transcript_of(older);
        let transcript = take_tokens(&transcript, max_tokens / 2).to_owned();
        let request = TurnRequest {
            messages: vec![
                ChatMessage::text(ChatRole::System, ASK),
                ChatMessage::text(ChatRole::User, transcript.as_str()),
            ],
            tools: Vec::new(),
            known_tools: Vec::new(),
            client_tools: Vec::new(),
            may_answer: true,
            think: self.capabilities.thinking.then_some(false),
            max_output_tokens: Some(max_output_tokens(true)),
            answer_schema: None,
            tool_choice: ToolChoice::Auto,
            sampling: Sampling::default(),
            variation: 0,
        };
        let mut summary = String::new();
        let mut tokens = TokenUsage::default();
        let read = async {
            let mut pieces = self.model.turn(request).await?;
            while let Some(piece) = pieces.next().await {
                match piece? {
                    ModelEvent::Text(text) => summary.push_str(&text),
                    ModelEvent::Done { usage, .. } => tokens = usage,
                    ModelEvent::Thinking(_) | ModelEvent::ToolCall(_) => {}
                }
            }
            Ok::<_, AgentError>(())
        };
        if let Err(error) = read.await {
            tracing::warn!(code = error.code(), %error, "earlier messages could not be summed up; they are cut");
        }
        if summary.trim().is_empty() {
            summary = format!("{}\n[the rest was left out to save space]", take_tokens(&transcript, max_tokens / 8));
        }
        (summary, tokens)
    }
}
