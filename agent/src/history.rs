//! The messages of a run, kept within the model's context: when they outgrow it, the oldest tool results are shortened
//! first. Every cut is marked, so that the model knows of it.

use crate::models::{ChatMessage, ChatRole, ModelToolCall};
use crate::tokens::{estimate_tokens, take_tokens};

/// Tokens kept of a result that had to be shortened.
const SHORTENED_RESULT_TOKENS: usize = 48;
const SHORTENED_MARK: &str =
    "\n[the rest of this earlier result was left out to save space; call the tool again if you need it]";
/// Tokens that a chat template adds around a message.
const MESSAGE_TOKENS: usize = 8;

/// Share of the limit, in percent, from which on earlier messages are summarised.
const COMPACT_AT_PERCENT: usize = 95;
const SUMMARY_MARK: &str = "[Summary of the conversation so far, written by you to save space]";

/// The messages so far: the system message, then the conversation.
#[derive(Debug)]
pub(crate) struct ChatHistory {
    messages: Vec<ChatMessage>,
    /// Tokens that the messages may take; the rest of the context is for the reply.
    limit_tokens: usize,
    /// Tokens from which on earlier messages are summed up.
    compact_at: usize,
}

/// Messages to be summarised.
pub(crate) struct Compaction {
    /// The messages between the system message and the last question.
    pub(crate) older: Vec<ChatMessage>,
    /// Estimated tokens of all messages.
    pub(crate) tokens: usize,
}

impl ChatHistory {
    /// Begins with the system message, which is never shortened, and the conversation so far.
    pub(crate) fn new(system: ChatMessage, said: Vec<ChatMessage>, limit_tokens: usize) -> Self {
        let mut messages = vec![system];
        messages.extend(said);
        Self { messages, limit_tokens, compact_at: limit_tokens * COMPACT_AT_PERCENT / 100 }
    }

    /// Has earlier messages summed up from fewer tokens on.
    pub(crate) fn compact_from(&mut self, tokens: usize) {
        self.compact_at = self.compact_at.min(tokens);
    }

    /// Returns the tokens that the messages may take.
    pub(crate) fn limit_tokens(&self) -> usize {
        self.limit_tokens
    }

    /// Returns the number of messages.
    pub(crate) fn len(&self) -> usize {
        self.messages.len()
    }

    /// Returns the estimated tokens of all messages.
    pub(crate) fn tokens(&self) -> usize {
        self.messages.iter().map(cost).sum()
    }

    /// Returns all messages, the system message first.
    pub(crate) fn all(&self) -> &[ChatMessage] {
        &self.messages
    }

    /// Returns all messages but the system message.
    pub(crate) fn said(&self) -> &[ChatMessage] {
        self.messages.get(1..).unwrap_or_default()
    }

    /// Appends a message of the model.
    pub(crate) fn push_assistant(&mut self, content: String, tool_calls: Vec<ModelToolCall>) {
        self.messages.push(ChatMessage::assistant(content, tool_calls));
    }

    /// Appends messages.
    pub(crate) fn extend(&mut self, said: Vec<ChatMessage>) {
        self.messages.extend(said);
    }

    /// Appends a message of the asker, or one in the asker's name.
    pub(crate) fn push_user(&mut self, content: String) {
        self.messages.push(ChatMessage::text(ChatRole::User, content));
    }

    /// Appends the result of a tool.
    pub(crate) fn push_tool_result(&mut self, tool: &str, call_id: &str, content: String) {
        self.messages.push(ChatMessage::tool_result(tool, Some(call_id.to_owned()), content));
    }

    /// Appends text to the last message.
    pub(crate) fn add_to_last(&mut self, words: &str) {
        if let Some(last) = self.messages.last_mut() {
            last.content.push_str(words);
        }
    }

    /// Returns the messages before the last question, once all messages fill the context even with shortened results.
    pub(crate) fn due_compaction(&mut self) -> Option<Compaction> {
        self.shorten_results();
        let tokens = self.tokens();
        if tokens <= self.compact_at {
            return None;
        }
        let question = self.messages.iter().rposition(|message| message.role == ChatRole::User)?;
        let older = self.messages.get(1..question).filter(|older| older.len() > 1)?.to_vec();
        Some(Compaction { older, tokens })
    }

    /// Replaces the first `count` messages after the system message by a summary.
    pub(crate) fn replace_older(&mut self, count: usize, summary: &str) {
        let summary = ChatMessage::text(ChatRole::User, format!("{SUMMARY_MARK}\n{summary}"));
        self.messages.splice(1..=count, [summary]);
    }

    /// Returns the messages for the next turn. The latest result stays whole: the turn is about it.
    pub(crate) fn for_next_turn(&mut self) -> Vec<ChatMessage> {
        self.shorten_results();
        self.messages.clone()
    }

    fn shorten_results(&mut self) {
        let latest_result = self.messages.iter().rposition(|message| message.role == ChatRole::Tool);
        let mut total: usize = self.messages.iter().map(cost).sum();
        for (index, message) in self.messages.iter_mut().enumerate() {
            if total <= self.limit_tokens {
                break;
            }
            if message.role != ChatRole::Tool
                || Some(index) == latest_result
                || message.content.ends_with(SHORTENED_MARK)
            {
                continue;
            }
            let before = cost(message);
            let kept = take_tokens(&message.content, SHORTENED_RESULT_TOKENS);
            if kept.len() < message.content.len() {
                message.content = format!("{kept}{SHORTENED_MARK}");
                total = (total + cost(message)).saturating_sub(before);
            }
        }
    }
}

/// Returns the messages as one text.
pub(crate) fn transcript_of(messages: &[ChatMessage]) -> String {
    let mut transcript = String::new();
    for message in messages {
        let who = match message.role {
            ChatRole::System => "system",
            ChatRole::User => "user",
            ChatRole::Assistant => "assistant",
            ChatRole::Tool => message.tool_name.as_deref().unwrap_or("tool"),
        };
        transcript.push_str(&format!("{who}: {}\n", message.content));
        for call in &message.tool_calls {
            transcript.push_str(&format!("{who} calls {} {}\n", call.name, call.arguments));
        }
    }
    transcript
}

/// Returns the estimated tokens of a message.
pub(crate) fn cost(message: &ChatMessage) -> usize {
    words_cost(message) + calls_cost(message)
}

/// Returns the estimated tokens of a message without its tool calls.
pub(crate) fn words_cost(message: &ChatMessage) -> usize {
    estimate_tokens(&message.content) + MESSAGE_TOKENS
}

/// Returns the estimated tokens of a message's tool calls.
pub(crate) fn calls_cost(message: &ChatMessage) -> usize {
    message.tool_calls.iter().map(|call| estimate_tokens(&call.arguments.to_string()) + MESSAGE_TOKENS).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_results_are_shortened_first_and_marked() {
        let system = ChatMessage::text(ChatRole::System, "s");
        let mut conversation = ChatHistory::new(system, Vec::new(), 1_500);
        for number in 0..4 {
            conversation.push_assistant(String::new(), Vec::new());
            conversation.push_tool_result(
                "run_sql",
                "call",
                format!("result {number}: {}", "carrier | 17\n".repeat(90)),
            );
        }
        let messages = conversation.for_next_turn();
        let shortened: Vec<bool> = messages
            .iter()
            .filter(|message| message.role == ChatRole::Tool)
            .map(|message| message.content.ends_with(SHORTENED_MARK))
            .collect();
        assert_eq!(shortened, [true, true, false, false], "no more than the limit asks for");
        assert!(messages.iter().map(cost).sum::<usize>() <= 1_500);
        assert_eq!(messages, conversation.for_next_turn());
    }

    #[test]
    fn what_was_said_before_the_last_question_is_summed_up_when_the_context_is_full() {
        let system = ChatMessage::text(ChatRole::System, "s");
        let mut said = Vec::new();
        for number in 0..10 {
            said.push(ChatMessage::text(ChatRole::User, format!("question {number}")));
            said.push(ChatMessage::assistant("an answer of some words ".repeat(20), Vec::new()));
        }
        said.push(ChatMessage::text(ChatRole::User, "the last question"));
        assert!(ChatHistory::new(system.clone(), said.clone(), 100_000).due_compaction().is_none());
        let mut conversation = ChatHistory::new(system, said, 800);
        let Compaction { older, tokens } = conversation.due_compaction().unwrap();
        assert_eq!(older.len(), 20);
        assert!(tokens > 760);
        conversation.replace_older(older.len(), "ten questions");
        assert_eq!(conversation.len(), 3);
        assert!(conversation.messages[1].content.ends_with("ten questions"));
        assert_eq!(conversation.messages[2].content, "the last question");
        assert!(conversation.due_compaction().is_none());
    }
}
