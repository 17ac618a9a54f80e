//! Takes what a client deleted from a conversation out of the messages that its next run goes on from.

use crate::models::{ChatMessage, ChatRole, ModelToolCall};

/// What stands for a result that was deleted, since providers want one for each call.
const DELETED: &str = "The result of this call was deleted.";

/// Takes messages out of a history, of equal ones the latest. A call goes with its result.
pub(super) fn take_out(history: &mut Vec<ChatMessage>, removed: &[ChatMessage]) {
    for message in removed {
        for call in &message.tool_calls {
            take_out_call(history, call);
        }
        let has_words = !message.content.trim().is_empty() || !message.images.is_empty();
        if message.role != ChatRole::Tool && has_words {
            take_out_words(history, message);
        }
    }
}

/// Takes the result of a client's call out of a history, of equal ones the latest; the call stays.
pub(super) fn take_out_result(history: &mut [ChatMessage], call_id: &str, output: &str) {
    let is_same = |message: &ChatMessage| message.role == ChatRole::Tool && message.content.trim() == output.trim();
    let has_id = |message: &ChatMessage| message.tool_call_id.as_deref() == Some(call_id);
    // The model may know the call by an id of its own.
    let named = history.iter().rposition(|message| has_id(message) && is_same(message));
    if let Some(message) = named.or_else(|| history.iter().rposition(is_same)).and_then(|at| history.get_mut(at)) {
        DELETED.clone_into(&mut message.content);
    }
}

fn take_out_words(history: &mut Vec<ChatMessage>, removed: &ChatMessage) {
    let is_same = |message: &ChatMessage| {
        message.role == removed.role
            && message.content.trim() == removed.content.trim()
            && message.images == removed.images
    };
    let Some(at) = history.iter().rposition(is_same) else { return };
    match history.get_mut(at) {
        Some(message) if !message.tool_calls.is_empty() => message.content.clear(),
        _ => drop(history.remove(at)),
    }
}

fn take_out_call(history: &mut Vec<ChatMessage>, removed: &ModelToolCall) {
    // The model may know one of our tools by a longer name.
    let is_same = |call: &ModelToolCall| call.name.ends_with(&removed.name) && call.arguments == removed.arguments;
    let Some(at) = history.iter().rposition(|message| message.tool_calls.iter().any(is_same)) else { return };
    let Some(message) = history.get_mut(at) else { return };
    let Some(place) = message.tool_calls.iter().rposition(is_same) else { return };
    let id = message.tool_calls.remove(place).id;
    let is_empty = message.content.trim().is_empty() && message.tool_calls.is_empty();
    let result =
        history.iter().skip(at).position(|message| message.role == ChatRole::Tool && message.tool_call_id == id);
    if let Some(result) = result {
        history.remove(at + result);
    }
    if is_empty {
        history.remove(at);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn called(id: &str, name: &str) -> ChatMessage {
        let call =
            ModelToolCall { id: Some(id.to_owned()), name: name.to_owned(), arguments: json!({"sql": "SELECT 1"}) };
        ChatMessage::assistant("", vec![call])
    }

    #[test]
    fn the_latest_of_equal_messages_goes_and_a_call_with_its_result() {
        let said = |words: &str| ChatMessage::text(ChatRole::User, words);
        let mut history = vec![
            said("again"),
            called("call_1", "querent_run_sql"),
            ChatMessage::tool_result("querent_run_sql", Some("call_1".to_owned()), "1"),
            ChatMessage::assistant("one", Vec::new()),
            said("again"),
        ];
        let result = ChatMessage::tool_result("run_sql", Some("mcp_1".to_owned()), "{}");
        take_out(&mut history, &[said("again "), called("mcp_1", "run_sql"), result, said("never said")]);
        assert_eq!(history, [said("again"), ChatMessage::assistant("one", Vec::new())]);
        let mut both = called("mcp_2", "run_sql");
        both.content = "one".to_owned();
        take_out(&mut history, &[both]);
        assert_eq!(history, [said("again")]);
    }

    #[test]
    fn a_result_goes_and_its_call_stays() {
        let result = |id: &str, said: &str| ChatMessage::tool_result("get_rate", Some(id.to_owned()), said);
        let mut history =
            vec![called("c1", "get_rate"), result("c1", "7"), called("own", "get_rate"), result("own", "7")];
        take_out_result(&mut history, "c1", "7");
        assert_eq!(history.iter().map(|message| message.content.as_str()).collect::<Vec<_>>(), ["", DELETED, "", "7"]);
        take_out_result(&mut history, "call_of_ours", "7 ");
        take_out_result(&mut history, "c2", "8");
        assert_eq!(history.last().unwrap().content, DELETED);
    }
}
