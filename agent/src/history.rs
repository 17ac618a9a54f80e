//! The conversation of a run, kept within the model's context: when it grows past it, the oldest tool results are
//! shortened first, and marked. What the model is told never ends in the middle without saying so.

use crate::models::{ChatMessage, ChatRole, ModelToolCall};
use crate::prompt::tokens::{estimate_tokens, take_tokens};

/// What is kept of a result that had to be shortened.
const SHORTENED_RESULT_TOKENS: usize = 48;
const SHORTENED_MARK: &str =
    "\n[the rest of this earlier result was left out to save space; call the tool again if you need it]";
/// Tokens that a chat template adds around a message.
const MESSAGE_TOKENS: usize = 8;

/// The messages so far.
#[derive(Debug)]
pub(crate) struct Conversation {
    messages: Vec<ChatMessage>,
    /// What the messages may cost; the rest of the context is the reply's.
    limit_tokens: usize,
}

impl Conversation {
    /// Begins with the first turn's messages, which are never shortened.
    pub(crate) fn new(messages: Vec<ChatMessage>, limit_tokens: usize) -> Self {
        Self { messages, limit_tokens }
    }

    /// What the model said.
    pub(crate) fn push_assistant(&mut self, content: String, tool_calls: Vec<ModelToolCall>) {
        self.messages.push(ChatMessage::assistant(content, tool_calls));
    }

    /// What a tool returned.
    pub(crate) fn push_tool_result(&mut self, tool: &str, content: String) {
        self.messages.push(ChatMessage::tool_result(tool, None, content));
    }

    /// The messages for the next turn. The latest result stays whole: it is what the turn is about.
    pub(crate) fn for_next_turn(&mut self) -> Vec<ChatMessage> {
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
        self.messages.clone()
    }
}

fn cost(message: &ChatMessage) -> usize {
    let calls: usize =
        message.tool_calls.iter().map(|call| estimate_tokens(&call.arguments.to_string()) + MESSAGE_TOKENS).sum();
    estimate_tokens(&message.content) + calls + MESSAGE_TOKENS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_results_are_shortened_first_and_marked() {
        let question = ChatMessage::text(ChatRole::User, "q");
        let mut conversation = Conversation::new(vec![question], 1_500);
        for number in 0..4 {
            conversation.push_assistant(String::new(), Vec::new());
            conversation.push_tool_result("run_sql", format!("result {number}: {}", "carrier | 17\n".repeat(90)));
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
}
