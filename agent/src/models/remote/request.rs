//! Converts a turn to genai's types. Pure but for the thoughts that are looked up.
//!
//! Providers refuse a conversation in which a call has no result or a result has no call; after a cut ours may have
//! either, so the gaps are filled here. They also refuse ids and names that another one, or we, have given.

use std::collections::{HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

use genai::chat::{
    Binary, CacheControl, ChatMessage as Message, ChatOptions, ChatRequest as Chat, ContentPart, JsonSpec,
    MessageContent, ReasoningEffort, Tool, ToolCall, ToolChoice as Choice, ToolResponse,
};
use serde_json::{Map, Value, json};

use super::thoughts::{ThoughtMemory, Thoughts};
use super::{RemoteKind, RemoteSettings};
use crate::models::{ChatMessage, ChatRequest, ChatRole, ModelToolCall, Sampling, ToolChoice};

/// Anthropic's smallest thinking budget is 1,024 tokens, which the output must exceed.
const LEAST_THINKING_OUTPUT: u32 = 2_048;
/// genai's medium budget, with room for the answer.
const MEDIUM_THINKING_OUTPUT: u32 = 9_000;
/// OpenAI's longest id of a call. Clients that keep the conversation have longer ones from other servers, and from earlier
/// versions of this one.
const LONGEST_CALL_ID: usize = 40;
/// OpenAI's and Anthropic's longest name of a tool.
const LONGEST_TOOL_NAME: usize = 64;
/// OpenAI wants a name for a schema.
const SCHEMA_NAME: &str = "answer";

/// A request to a provider, with its options.
#[derive(Debug, Clone)]
pub(super) struct GenaiRequest {
    pub(super) chat: Chat,
    pub(super) options: ChatOptions,
}

impl GenaiRequest {
    pub(super) fn new(request: ChatRequest, settings: &RemoteSettings, memory: &ThoughtMemory) -> Self {
        let ChatRequest { messages, tools, format, think, max_output_tokens, tool_choice, sampling, variation: _ } =
            request;
        let mut conversation =
            ProviderChat { memory, messages: Vec::new(), pending: VecDeque::new(), results: Vec::new() };
        for message in messages {
            conversation.push(message);
        }
        conversation.answer_pending();
        let is_free = tools.is_empty() || matches!(tool_choice, ToolChoice::Auto | ToolChoice::None);
        let mut options = ChatOptions::default().with_capture_usage(true);
        options.max_tokens = max_output_tokens;
        options.temperature = sampling.temperature;
        options.top_p = sampling.top_p;
        options.seed = sampling.seed.and_then(|seed| u64::try_from(seed).ok());
        if settings.kind == RemoteKind::OpenAi {
            options.extra_body = extra_sampling(&sampling);
        }
        options.stop_sequences = sampling.stop;
        options.tool_choice = if tools.is_empty() { None } else { choice(tool_choice) };
        options.response_format = format.filter(can_be_held).map(|schema| JsonSpec::new(SCHEMA_NAME, schema).into());
        match settings.kind {
            // Any effort keeps genai from deriving one from the model's name; this one is not sent.
            RemoteKind::OpenAi => options.reasoning_effort = Some(ReasoningEffort::Budget(0)),
            RemoteKind::Anthropic => {
                let may_think = think == Some(true) && is_free && conversation.has_its_thoughts();
                let effort = if may_think { anthropic_effort(max_output_tokens) } else { ReasoningEffort::Zero };
                options.capture_reasoning_content = Some(!matches!(effort, ReasoningEffort::Zero));
                options.reasoning_effort = Some(effort);
                // The instructions and the tools are the same in every turn of a run.
                options.cache_control = Some(CacheControl::Ephemeral);
            }
            RemoteKind::Gemini => options.capture_reasoning_content = think,
        }
        let mut chat = Chat::new(conversation.messages);
        if !tools.is_empty() {
            chat = chat.with_tools(
                tools
                    .into_iter()
                    .map(|tool| Tool::new(tool.name).with_description(tool.description).with_schema(tool.parameters)),
            );
        }
        Self { chat, options }
    }
}

/// Whether a provider can hold a reply to `schema`. In its strict form an object has the members that are named: one
/// without names, as `json_object` asks for, would be empty, so that it is only checked when it is there. A choice,
/// such as that of one call of several, is sent as it is.
fn can_be_held(schema: &Value) -> bool {
    schema.get("anyOf").is_some() || !is_open(schema)
}

/// Whether a schema allows members that it does not name, or anything.
fn is_open(schema: &Value) -> bool {
    match schema {
        Value::Object(fields) => {
            let named = fields.get("properties").and_then(Value::as_object);
            let names_members = named.is_some_and(|named| !named.is_empty());
            let allows_more = match fields.get("additionalProperties") {
                Some(more) => *more != Value::Bool(false),
                None => !names_members && fields.get("type").is_some_and(|kind| kind == "object"),
            };
            let has_open_part = || {
                fields.iter().any(|(key, part)| match (key.as_str(), part) {
                    ("const" | "enum" | "default" | "examples", _) => false,
                    ("properties" | "$defs" | "definitions", Value::Object(parts)) => parts.values().any(is_open),
                    _ => is_open(part),
                })
            };
            fields.is_empty() || allows_more || fields.contains_key("patternProperties") || has_open_part()
        }
        Value::Array(parts) => parts.iter().any(is_open),
        _ => false,
    }
}

/// Returns what OpenAI's protocol has of how tokens are chosen and genai has no field for.
fn extra_sampling(sampling: &Sampling) -> Option<Value> {
    let mut extra = Map::new();
    if let Some(seed) = sampling.seed.filter(|seed| *seed < 0) {
        extra.insert("seed".to_owned(), json!(seed));
    }
    let penalties =
        [("presence_penalty", sampling.presence_penalty), ("frequency_penalty", sampling.frequency_penalty)];
    for (name, penalty) in penalties {
        if let Some(penalty) = penalty {
            extra.insert(name.to_owned(), json!(penalty));
        }
    }
    (!extra.is_empty()).then_some(Value::Object(extra))
}

struct ProviderChat<'a> {
    memory: &'a ThoughtMemory,
    messages: Vec<Message>,
    /// Calls of the last assistant's message that have no result yet.
    pending: VecDeque<OpenToolCall>,
    /// Results since then, which go into one message.
    results: Vec<ToolResponse>,
}

struct OpenToolCall {
    /// As in the conversation.
    id: Option<String>,
    /// As it is sent.
    sent_id: String,
    name: String,
    /// As it is sent.
    sent_name: String,
}

impl OpenToolCall {
    fn answered(self, content: impl Into<String>) -> ToolResponse {
        ToolResponse::new(self.sent_id, content).with_fn_name(self.sent_name)
    }
}

impl ProviderChat<'_> {
    fn push(&mut self, message: ChatMessage) {
        let ChatMessage { role, content, tool_calls, tool_name, tool_call_id, images } = message;
        if role == ChatRole::Tool {
            return self.push_result(tool_call_id, tool_name, content);
        }
        self.answer_pending();
        match role {
            ChatRole::System => self.messages.push(Message::system(content)),
            ChatRole::Assistant => self.push_assistant(content, tool_calls),
            ChatRole::User | ChatRole::Tool => {
                let mut parts = vec![ContentPart::Text(content)];
                let pictures = images.into_iter();
                parts.extend(
                    pictures.map(|image| ContentPart::Binary(Binary::from_base64(image.media_type, image.data, None))),
                );
                self.messages.push(Message::user(MessageContent::from_parts(parts)));
            }
        }
    }

    fn push_assistant(&mut self, content: String, tool_calls: Vec<ModelToolCall>) {
        let mut parts = Vec::new();
        let mut calls = Vec::new();
        let turn = self.messages.len();
        let mut sent_ids = HashSet::with_capacity(tool_calls.len());
        for (index, ModelToolCall { id, name, arguments }) in tool_calls.into_iter().enumerate() {
            let Thoughts { leading, signatures } =
                id.as_deref().and_then(|id| self.memory.thoughts_of_call(id)).unwrap_or_default();
            parts.extend(leading);
            let sent_id = id.as_deref().map(sendable_id).filter(|sent_id| !sent_ids.contains(sent_id));
            let sent_id = sent_id.unwrap_or_else(|| format!("call_{turn}_{index}"));
            sent_ids.insert(sent_id.clone());
            let sent_name = sendable_name(&name);
            calls.push(ContentPart::ToolCall(ToolCall {
                call_id: sent_id.clone(),
                fn_name: sent_name.clone(),
                fn_arguments: as_object(arguments),
                thought_signatures: signatures,
            }));
            self.pending.push_back(OpenToolCall { id, sent_id, name, sent_name });
        }
        if !content.is_empty() {
            parts.push(ContentPart::Text(content));
        }
        parts.extend(calls);
        // A message with nothing in it is refused.
        if !parts.is_empty() {
            self.messages.push(Message::assistant(MessageContent::from_parts(parts)));
        }
    }

    fn push_result(&mut self, call_id: Option<String>, tool: Option<String>, content: String) {
        let by_id = call_id.as_ref().and_then(|id| self.pending.iter().position(|call| call.id.as_ref() == Some(id)));
        let by_name = || self.pending.iter().position(|call| tool.as_deref() == Some(call.name.as_str()));
        let found = by_id.or_else(|| if call_id.is_none() { by_name() } else { None });
        match found.and_then(|index| self.pending.remove(index)) {
            Some(call) => self.results.push(call.answered(content)),
            None => {
                self.answer_pending();
                let tool = tool.as_deref().unwrap_or("the tool");
                self.messages.push(Message::user(format!("Result of {tool}:\n{content}")));
            }
        }
    }

    /// Completes the last assistant's calls: those without a result get one that says so.
    fn answer_pending(&mut self) {
        let missing = std::mem::take(&mut self.pending).into_iter();
        self.results.extend(missing.map(|call| call.answered("(no result)")));
        if !self.results.is_empty() {
            let results = std::mem::take(&mut self.results).into_iter().map(ContentPart::ToolResponse);
            self.messages.push(Message::tool(MessageContent::from_parts(results.collect::<Vec<_>>())));
        }
    }

    /// Whether the calls since the asker's last message carry their thinking, which Anthropic requires once the model
    /// thinks.
    fn has_its_thoughts(&self) -> bool {
        let is_asked = |message: &&Message| matches!(message.role, genai::chat::ChatRole::User);
        let recent = self.messages.iter().rev().take_while(|message| !is_asked(message));
        let mut calls = recent.filter(|message| message.content.contains_tool_call());
        calls.all(|message| message.content.contains_thought_signature() || message.content.contains_custom())
    }
}

fn choice(choice: ToolChoice) -> Option<Choice> {
    match choice {
        ToolChoice::Auto => None,
        ToolChoice::None => Some(Choice::None),
        ToolChoice::Required => Some(Choice::Required),
        ToolChoice::Named(name) => Some(Choice::tool(name)),
    }
}

fn anthropic_effort(max_output_tokens: Option<u32>) -> ReasoningEffort {
    match max_output_tokens {
        Some(most) if most < LEAST_THINKING_OUTPUT => ReasoningEffort::Zero,
        Some(most) if most < MEDIUM_THINKING_OUTPUT => ReasoningEffort::Low,
        _ => ReasoningEffort::Medium,
    }
}

/// Returns an id that every provider takes: a conversation may have begun elsewhere.
fn sendable_id(id: &str) -> String {
    let fitting = fitting_text(id);
    if (1..=LONGEST_CALL_ID).contains(&fitting.len()) {
        return fitting;
    }
    // The same in every turn, so that a server that caches prompts knows it again.
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    format!("call_{:016x}", hasher.finish())
}

/// Returns a name that every provider takes. Those of tools that are offered are such.
fn sendable_name(name: &str) -> String {
    let mut fitting = fitting_text(name);
    fitting.truncate(LONGEST_TOOL_NAME);
    if fitting.is_empty() { "tool".to_owned() } else { fitting }
}

/// Replaces characters that providers refuse in ids and names; what is left is ASCII.
fn fitting_text(text: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    text.chars().map(|c| if fits(c) { c } else { '_' }).collect()
}

fn as_object(arguments: Value) -> Value {
    match arguments {
        Value::Object(_) => arguments,
        Value::Null => json!({}),
        other => json!({ "not_an_object": other }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(messages: Vec<ChatMessage>) -> Vec<Message> {
        let memory = ThoughtMemory::default();
        let mut conversation =
            ProviderChat { memory: &memory, messages: Vec::new(), pending: VecDeque::new(), results: Vec::new() };
        for message in messages {
            conversation.push(message);
        }
        conversation.answer_pending();
        conversation.messages
    }

    fn call(id: Option<&str>, name: &str) -> ModelToolCall {
        ModelToolCall { id: id.map(str::to_owned), name: name.to_owned(), arguments: json!({}) }
    }

    #[test]
    fn results_go_together_with_the_ids_of_their_calls() {
        let messages = sent(vec![
            ChatMessage::text(ChatRole::User, "how many?"),
            ChatMessage::assistant("", vec![call(Some("a#1"), "run_sql"), call(None, "run_kql")]),
            ChatMessage::tool_result("run_kql", None, "2"),
            ChatMessage::tool_result("run_sql", Some("a#1".to_owned()), "1"),
            ChatMessage::text(ChatRole::User, "thanks"),
        ]);
        assert_eq!(messages.len(), 4);
        let answers: Vec<_> = messages[2].content.tool_responses();
        let told: Vec<_> = answers.iter().map(|one| (one.call_id.as_str(), one.content.as_str())).collect();
        assert_eq!(told, [("call_1_1", "2"), ("a_1", "1")]);
    }

    #[test]
    fn a_reply_is_held_to_a_schema_that_names_its_members() {
        let with = |member: Value| json!({"type": "object", "properties": {"a": member}, "required": ["a"]});
        for (schema, expected) in [
            (with(json!({"type": "integer", "enum": [1, {}]})), true),
            (json!({"type": "object", "properties": {}, "additionalProperties": false}), true),
            (json!({"anyOf": [with(json!({"type": "array", "items": {"type": "object"}}))]}), true),
            (json!({}), false),
            (json!({"type": "object"}), false),
            (with(json!({"type": "array", "items": {"type": "object"}})), false),
            (with(json!({"type": "object", "additionalProperties": {"type": "integer"}})), false),
            (with(json!({})), false),
            (json!({"$ref": "#/$defs/A", "$defs": {"A": {"type": "object"}}}), false),
        ] {
            assert_eq!(can_be_held(&schema), expected, "{schema}");
        }
    }

    /// Once ours had 41 characters, of which OpenAI takes 40; the others are of clients.
    #[test]
    fn ids_and_names_are_such_as_providers_take() {
        let ours = "call_01a2273b3c277509a709a31fa91add460002";
        let longer = "x".repeat(200);
        for (id, name) in [(ours, "get_weather"), (longer.as_str(), "my.tool x"), ("", ""), ("a b", longer.as_str())] {
            let messages = sent(vec![
                ChatMessage::text(ChatRole::User, "weather?"),
                ChatMessage::assistant("", vec![call(Some(id), name), call(Some(id), name)]),
                ChatMessage::tool_result(name, Some(id.to_owned()), "sun"),
                ChatMessage::tool_result(name, Some(id.to_owned()), "rain"),
            ]);
            assert_eq!(messages.len(), 3, "{id}");
            let (calls, answers) = (messages[1].content.tool_calls(), messages[2].content.tool_responses());
            let ids: Vec<&str> = calls.iter().map(|call| call.call_id.as_str()).collect();
            assert!(ids[0] != ids[1], "two calls of one id are told apart: {ids:?}");
            for (call, (answer, content)) in calls.iter().zip(answers.iter().zip(["sun", "rain"])) {
                assert_eq!((&answer.call_id, answer.content.as_str()), (&call.call_id, content));
                for (text, longest) in [(&call.call_id, LONGEST_CALL_ID), (&call.fn_name, LONGEST_TOOL_NAME)] {
                    let is_fine = text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
                    assert!(is_fine && (1..=longest).contains(&text.len()), "{text}");
                }
            }
        }
        assert_eq!(sendable_id(ours), sendable_id(ours));
        assert_eq!((sendable_id("call_a#1"), sendable_name("run_sql")), ("call_a_1".to_owned(), "run_sql".to_owned()));
    }

    #[test]
    fn gaps_are_filled() {
        let messages = sent(vec![
            ChatMessage::assistant("", vec![call(Some("a"), "run_sql")]),
            ChatMessage::text(ChatRole::User, "never mind"),
            ChatMessage::tool_result("run_sql", Some("b".to_owned()), "late"),
            ChatMessage::assistant("", Vec::new()),
        ]);
        assert_eq!(messages.len(), 4, "an empty message is left out");
        assert_eq!(messages[1].content.tool_responses()[0].content, "(no result)");
        assert_eq!(messages[3].content.first_text(), Some("Result of run_sql:\nlate"));
    }
}
