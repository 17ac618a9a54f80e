//! Reads and writes the conversation as its client keeps it, in OpenAI's format. Reading is lenient: clients drop keys,
//! add their own, and split text into parts.

use serde_json::{Value, json};

use crate::models::{ChatImage, ChatMessage, ChatRole, ModelToolCall};
use crate::protocols::kind_of;

/// The result that the model reads of a call that was abandoned in the middle of a conversation.
const ABANDONED: &str = "This call was left without a result.";
const TOKEN_KEY: &str = "approval_token";
const APPROVAL_KEY: &str = "pending_approval";
const FRONTEND_KEY: &str = "pending_frontend";

/// A call in the conversation that has no result.
#[derive(Debug, Clone, PartialEq)]
pub struct HistoryCall {
    /// Its id.
    pub id: String,
    /// Tool name.
    pub name: String,
    /// The arguments as the client sent them.
    pub arguments: String,
    /// The token that came with it, if it waited for a person.
    pub token: Option<String>,
    /// Whether it is marked as waiting for a person.
    pub is_approval: bool,
    /// Whether it is marked as waiting for the client.
    pub is_frontend: bool,
}

/// What a call waits for.
pub(super) enum Waits {
    /// A person, who answers with this token.
    Approval(Option<String>),
    /// The client.
    Frontend,
}

/// Parses the messages without the system message, and the calls at the end that have no result.
pub fn parse_history(conversation: &[Value]) -> (Vec<ChatMessage>, Vec<HistoryCall>) {
    let mut messages: Vec<ChatMessage> = Vec::new();
    let mut open: Vec<HistoryCall> = Vec::new();
    // The first message is the system message, which is written again.
    for message in conversation.iter().skip(1) {
        let (content, images) = content_of(&message["content"]);
        if message["role"] == "tool" {
            let id = message["tool_call_id"].as_str().unwrap_or_default();
            // A result without a call would make the whole conversation unreadable for a model.
            if let Some(answered) = open.iter().position(|call| call.id == id) {
                let call = open.remove(answered);
                messages.push(ChatMessage::tool_result(&call.name, Some(call.id), content));
            }
            continue;
        }
        for call in open.drain(..) {
            messages.push(ChatMessage::tool_result(&call.name, Some(call.id), ABANDONED));
        }
        if message["role"] == "assistant" {
            open = calls_of(&message["tool_calls"]);
            let calls = open.iter().map(|call| ModelToolCall {
                id: Some(call.id.clone()),
                name: call.name.clone(),
                arguments: serde_json::from_str(&call.arguments)
                    .unwrap_or_else(|_| Value::String(call.arguments.clone())),
            });
            let said = ChatMessage::assistant(content, calls.collect());
            if !said.content.is_empty() || !said.tool_calls.is_empty() {
                messages.push(said);
            }
        } else if !content.is_empty() || !images.is_empty() {
            messages.push(ChatMessage { images, ..ChatMessage::text(ChatRole::User, content) });
        }
    }
    (messages, open)
}

fn calls_of(calls: &Value) -> Vec<HistoryCall> {
    let read = calls.as_array().into_iter().flatten().filter_map(|call| {
        let function = &call["function"];
        Some(HistoryCall {
            id: call["id"].as_str().filter(|id| !id.is_empty())?.to_owned(),
            name: function["name"].as_str().filter(|name| !name.is_empty())?.to_owned(),
            arguments: match &function["arguments"] {
                Value::String(text) => text.clone(),
                Value::Null => "{}".to_owned(),
                other => other.to_string(),
            },
            token: call[TOKEN_KEY].as_str().map(str::to_owned),
            is_approval: call[APPROVAL_KEY] == true,
            is_frontend: call[FRONTEND_KEY] == true,
        })
    });
    read.collect()
}

/// Returns the text and the pictures of a message's content: a string, parts, or nothing.
fn content_of(content: &Value) -> (String, Vec<ChatImage>) {
    match content {
        Value::String(text) => (text.clone(), Vec::new()),
        Value::Array(parts) => {
            let (mut lines, mut images) = (Vec::new(), Vec::new());
            for part in parts {
                if let Some(text) = part.as_str().or(part["text"].as_str()) {
                    lines.push(text.to_owned());
                } else if let Some(url) = part["image_url"]["url"].as_str().or(part["image_url"].as_str()) {
                    match inline(url) {
                        Some(image) => images.push(image),
                        None => lines.push(not_fetched(url)),
                    }
                }
            }
            (lines.join("\n"), images)
        }
        Value::Null => (String::new(), Vec::new()),
        other => {
            tracing::debug!(kind = kind_of(other), "a message's content is neither a text nor parts");
            (other.to_string(), Vec::new())
        }
    }
}

fn inline(url: &str) -> Option<ChatImage> {
    let (head, data) = url.strip_prefix("data:")?.split_once(',')?;
    let media_type = head.strip_suffix(";base64").filter(|kind| kind.starts_with("image/"))?;
    Some(ChatImage { media_type: media_type.to_owned(), data: data.to_owned() })
}

/// Returns the text that replaces a picture that is not fetched.
pub(super) fn not_fetched(url: &str) -> String {
    format!("[Image at {url}; it was not fetched]")
}

/// Returns the conversation for the client; `waits` says for each call whether it waits, and for what.
pub(super) fn conversation_json(messages: &[ChatMessage], waits: impl Fn(&str) -> Option<Waits>) -> Vec<Value> {
    messages.iter().map(|message| message_json(message, &waits)).collect()
}

fn message_json(message: &ChatMessage, waits: &impl Fn(&str) -> Option<Waits>) -> Value {
    match message.role {
        ChatRole::System => json!({ "role": "system", "content": message.content }),
        ChatRole::User => json!({ "role": "user", "content": user_content(message) }),
        ChatRole::Tool => json!({
            "role": "tool",
            "tool_call_id": message.tool_call_id,
            "name": message.tool_name,
            "content": message.content,
        }),
        ChatRole::Assistant if message.tool_calls.is_empty() => {
            json!({ "role": "assistant", "content": message.content })
        }
        ChatRole::Assistant => {
            let content = if message.content.is_empty() { Value::Null } else { json!(message.content) };
            let calls: Vec<Value> = message.tool_calls.iter().map(|call| call_json(call, waits)).collect();
            json!({ "role": "assistant", "content": content, "tool_calls": calls })
        }
    }
}

fn user_content(message: &ChatMessage) -> Value {
    if message.images.is_empty() {
        return json!(message.content);
    }
    let mut parts = vec![json!({ "type": "text", "text": message.content })];
    parts.extend(message.images.iter().map(|image| {
        let url = format!("data:{};base64,{}", image.media_type, image.data);
        json!({ "type": "image_url", "image_url": { "url": url } })
    }));
    json!(parts)
}

fn call_json(call: &ModelToolCall, waits: &impl Fn(&str) -> Option<Waits>) -> Value {
    let arguments = match &call.arguments {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let id = call.id.as_deref().unwrap_or_default();
    let mut shown = json!({
        "id": id,
        "type": "function",
        "function": { "name": call.name, "arguments": arguments },
    });
    match waits(id) {
        Some(Waits::Approval(token)) => {
            shown[APPROVAL_KEY] = json!(true);
            shown[TOKEN_KEY] = json!(token);
        }
        Some(Waits::Frontend) => shown[FRONTEND_KEY] = json!(true),
        None => {}
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conversation_survives_its_client() {
        let call = |id: &str| ModelToolCall {
            id: Some(id.to_owned()),
            name: "run_sql".to_owned(),
            arguments: json!({ "sql": "SELECT 1" }),
        };
        let said = vec![
            ChatMessage::text(ChatRole::System, "s"),
            ChatMessage::text(ChatRole::User, "how many?"),
            ChatMessage::assistant("", vec![call("a"), call("b")]),
            ChatMessage::tool_result("run_sql", Some("a".to_owned()), "1"),
        ];
        let shown = conversation_json(&said, |id| (id == "b").then(|| Waits::Approval(Some("t".to_owned()))));
        assert_eq!(shown[2]["content"], Value::Null);
        let (read, open) = parse_history(&shown);
        assert_eq!(read, said[1..]);
        assert_eq!((open.len(), open[0].id.as_str(), open[0].token.as_deref()), (1, "b", Some("t")));
        assert!(open[0].is_approval && !open[0].is_frontend);
        assert_eq!(open[0].arguments, r#"{"sql":"SELECT 1"}"#);
    }

    #[test]
    fn whatever_clients_make_of_it_is_read() {
        let conversation = json!([
            { "role": "system", "content": "x" },
            { "role": "user", "content": [{ "type": "text", "text": "a" }, { "type": "text", "text": "b" }], "id": 7 },
            { "role": "assistant", "tool_calls": [{ "id": "c1", "function": { "name": "f", "arguments": { "x": 1 } } }] },
            { "role": "tool", "tool_call_id": "nobody's", "content": "dropped" },
            { "role": "user", "content": "next" },
            { "role": "assistant", "content": null },
            { "role": "assistant", "content": "done", "tool_calls": null },
        ]);
        let (read, open) = parse_history(conversation.as_array().unwrap());
        let texts: Vec<&str> = read.iter().map(|message| message.content.as_str()).collect();
        assert_eq!(texts, ["a\nb", "", ABANDONED, "next", "done"]);
        assert!(open.is_empty());
    }
}
