//! OpenAI's Chat Completions: its requests, its chunks and its completion object. The server's tools are not shown:
//! clients would try to execute them. References: <https://platform.openai.com/docs/api-reference/chat>.

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::responses::{
    BadRequest, InputContent, InputItem, MAX_ID_BYTES, allowed_tools, answer_schema, check_item_count, flag,
    metadata_of, parse_content, positive, text, tool_choice, tools_of,
};
use super::run_end::{RunEnd, model_named};
use super::{Frame, Paragraphs, Renderer, kind_of, ksadk};
use crate::assessment::ASSESSMENT;
use crate::event::{EventKind, RunErrorCode, RunEvent, WaitingCall};
use crate::models::{ChatRole, Sampling, TokenUsage, ToolChoice, ToolSpec};
use crate::protocols::fields::WrongField;
use crate::protocols::json::parse_json;
use crate::protocols::message_fields::{CHAT_MESSAGE, CHAT_TOOL_MESSAGE, OPENAI_PARTS, check_message};
use crate::protocols::openai_fields::{OpenAiRequest, call_limits, check_fields, sampling_of};
use crate::request::{AnswerSchema, Protocol, RunRequest};

/// What the request asks for.
#[derive(Debug, Clone)]
pub struct ChatCompletionRequest {
    /// The messages, as items.
    pub items: Vec<InputItem>,
    /// The requested model.
    pub model: Option<String>,
    /// Whether to answer in chunks.
    pub stream: bool,
    /// Whether the last chunk contains the token counts.
    pub include_usage: bool,
    /// A session of this server.
    pub session_id: Option<String>,
    /// Tools that the client executes.
    pub tools: Vec<ToolSpec>,
    /// Whether a tool must be called.
    pub tool_choice: ToolChoice,
    /// The schema of the answer.
    pub answer_schema: Option<AnswerSchema>,
    /// Whether to show thinking.
    pub include_thinking: bool,
    /// Tokens of one turn.
    pub max_output_tokens: Option<u32>,
    /// How the model chooses tokens.
    pub sampling: Sampling,
    /// Whether only the first call of a reply is made.
    pub one_call_a_turn: bool,
    /// Whether it may be retrieved.
    pub store: bool,
    /// Fields that the completion repeats, and the messages of one that is stored.
    pub echo: Value,
}

impl ChatCompletionRequest {
    /// Takes the model that the request's address names.
    pub fn name_model(&mut self, name: String) {
        self.echo["model"] = Value::from(name.as_str());
        self.model = Some(name);
    }

    /// Returns the requested run, and its items.
    pub fn into_run(self, protocol: Protocol) -> (RunRequest, Vec<InputItem>) {
        let run = RunRequest {
            include_thinking: self.include_thinking,
            model: self.model,
            client_tools: self.tools,
            tool_choice: self.tool_choice,
            answer_schema: self.answer_schema,
            max_output_tokens: self.max_output_tokens,
            sampling: self.sampling,
            one_call_a_turn: self.one_call_a_turn,
            retained: self.store,
            echo: self.echo,
            ..RunRequest::new(protocol, Vec::new())
        };
        (run, self.items)
    }
}

/// Parses a body.
pub fn parse_request(body: &[u8]) -> Result<ChatCompletionRequest, BadRequest> {
    let body = parse_json(body)
        .map_err(|error| BadRequest::new("invalid_json", "body", format!("the body is not JSON: {error}")))?;
    let request = parse_value(&body)?;
    if !request.stream && body.get("stream_options").is_some_and(|options| !options.is_null()) {
        return Err(BadRequest::invalid("stream_options", "`stream_options` goes with `stream`; leave it out"));
    }
    check_messages(&body["messages"], "messages")?;
    Ok(request)
}

/// Refuses what the messages of the field `name`, and their parts, have beside their fields.
pub(super) fn check_messages(messages: &Value, name: &str) -> Result<(), WrongField> {
    for (index, message) in messages.as_array().into_iter().flatten().enumerate() {
        let fields = if message["role"] == "tool" { CHAT_TOOL_MESSAGE } else { CHAT_MESSAGE };
        check_message(message, &format!("{name}[{index}]"), fields, &OPENAI_PARTS)?;
    }
    Ok(())
}

/// Parses a request.
pub fn parse_value(body: &Value) -> Result<ChatCompletionRequest, BadRequest> {
    let Value::Object(fields) = body else {
        return Err(BadRequest::invalid("body", format!("the body must be a JSON object, not {}", kind_of(body))));
    };
    let messages = match fields.get("messages") {
        None | Some(Value::Null) => {
            return Err(BadRequest::new("missing_required_parameter", "messages", "`messages` is missing"));
        }
        Some(Value::Array(messages)) if messages.is_empty() => {
            return Err(BadRequest::invalid("messages", "`messages` is empty; say something"));
        }
        Some(Value::Array(messages)) => messages,
        Some(other) => {
            return Err(BadRequest::invalid("messages", format!("`messages` must be a list, not {}", kind_of(other))));
        }
    };
    check_item_count("messages", messages.len())?;
    check_fields(fields, OpenAiRequest::Chat)?;
    let mut items = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        read_message(message, &format!("messages[{index}]"), &mut items)?;
    }
    check_item_count("messages", items.len())?;
    ksadk::attach(fields, &mut items)?;
    let max_output_tokens = match (positive(fields, "max_completion_tokens")?, positive(fields, "max_tokens")?) {
        (Some(tokens), Some(older)) if tokens != older => {
            let message = "`max_tokens` is not `max_completion_tokens`, which says the same; leave it out";
            return Err(BadRequest::invalid("max_tokens", message));
        }
        (tokens, older) => tokens.or(older),
    };
    let include_usage = fields.get("stream_options").is_some_and(|options| options["include_usage"] == json!(true));
    let effort = fields.get("reasoning_effort").and_then(Value::as_str);
    let option = ksadk::asks_for_thinking(fields.get("model_options"), "model_options")?;
    let session_id = text(fields, "session_id")?.filter(|id| !id.is_empty());
    if session_id.as_ref().is_some_and(|id| id.len() > MAX_ID_BYTES) {
        let message = format!("`session_id` is longer than {MAX_ID_BYTES} bytes");
        return Err(BadRequest::invalid("session_id", message));
    }
    let model = text(fields, "model")?;
    let store = flag(fields, "store", false)?;
    let mut echo = json!({ "model": model, "metadata": metadata_of(fields)? });
    if store {
        echo["messages"] = json!(messages);
    }
    let tools = tools_of(fields, "parameters", |tool| tool.get("function"))?;
    let tool_choice = tool_choice(fields.get("tool_choice"), &tools)?;
    Ok(ChatCompletionRequest {
        items,
        stream: flag(fields, "stream", false)?,
        include_usage,
        session_id,
        tools: allowed_tools(tools, fields.get("tool_choice")),
        tool_choice,
        answer_schema: answer_schema(fields.get("response_format").unwrap_or(&Value::Null), "response_format")?,
        include_thinking: option || effort.is_some_and(|effort| effort != "none"),
        max_output_tokens,
        sampling: sampling_of(fields, OpenAiRequest::Chat),
        one_call_a_turn: call_limits(fields).1,
        store,
        echo,
        model,
    })
}

fn read_message(message: &Value, at: &str, items: &mut Vec<InputItem>) -> Result<(), BadRequest> {
    let role = message["role"].as_str().unwrap_or_default();
    match role {
        "user" => {
            items.push(InputItem::message(ChatRole::User, parse_content(&message["content"], at)?, at)?);
        }
        "system" | "developer" => {
            items.push(InputItem::message(ChatRole::System, parse_content(&message["content"], at)?, at)?);
        }
        "assistant" => {
            if !message["function_call"].is_null() {
                let param = format!("{at}.function_call");
                let refusal = format!("`{param}` is not read; send the call in `tool_calls`, its result as a tool's");
                return Err(BadRequest::invalid(&param, refusal));
            }
            let content = parse_content(&message["content"], at)?;
            if !content.is_empty() {
                items.push(InputItem::Message { role: ChatRole::Assistant, content });
            }
            read_calls(&message["tool_calls"], &format!("{at}.tool_calls"), items)?;
        }
        "tool" => {
            let Some(call_id) = message["tool_call_id"].as_str() else {
                let param = format!("{at}.tool_call_id");
                return Err(BadRequest::invalid(&param, format!("`{param}` is missing")));
            };
            let output = parse_content(&message["content"], at)?.into_iter().map(InputContent::into_text);
            let output = output.collect::<Vec<_>>().join("\n");
            items.push(InputItem::FunctionCallOutput { call_id: call_id.to_owned(), output });
        }
        _ => {
            let roles = "system, developer, user, assistant and tool";
            return Err(BadRequest::invalid(&format!("{at}.role"), format!("`{at}.role` is not one of {roles}")));
        }
    }
    Ok(())
}

/// Reads the calls of an assistant's message.
fn read_calls(calls: &Value, param: &str, items: &mut Vec<InputItem>) -> Result<(), BadRequest> {
    let calls = match calls {
        Value::Null => return Ok(()),
        Value::Array(calls) => calls,
        other => {
            return Err(BadRequest::invalid(param, format!("`{param}` must be a list, not {}", kind_of(other))));
        }
    };
    for (index, call) in calls.iter().enumerate() {
        let function = &call["function"];
        if !call["type"].is_null() && call["type"] != "function" {
            let at = format!("{param}[{index}].type");
            return Err(BadRequest::invalid(&at, format!("`{at}` must be function; there are no other calls here")));
        }
        let (Some(id), Some(name)) = (call["id"].as_str(), function["name"].as_str()) else {
            return Err(BadRequest::invalid(param, format!("a call of `{param}` has no id or no function name")));
        };
        let arguments = match &function["arguments"] {
            Value::Null => "{}".to_owned(),
            Value::String(arguments) => arguments.clone(),
            other => {
                let at = format!("{param}[{index}].function.arguments");
                let message = format!("`{at}` must be the JSON of an object in a string, not {}", kind_of(other));
                return Err(BadRequest::invalid(&at, message));
            }
        };
        items.push(InputItem::FunctionCall { call_id: id.to_owned(), name: name.to_owned(), arguments });
    }
    Ok(())
}

/// Turns events into chunks, or into one completion.
#[derive(Debug)]
pub struct ChatRenderer {
    include_usage: bool,
    head: Map<String, Value>,
    session_id: Option<String>,
    metadata: Value,
    answer: Paragraphs,
    thinking: String,
    calls: Vec<Value>,
    end: RunEnd,
}

/// One chunk of the stream.
#[derive(Serialize)]
struct Chunk<'a, C> {
    #[serde(flatten)]
    head: &'a Map<String, Value>,
    choices: C,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<Value>,
    /// Only in the chunk with the reason why it ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    assessment: Option<&'a Value>,
}

/// The choice of a chunk with a piece of the answer.
#[derive(Serialize)]
struct ContentChoice<'a> {
    index: u32,
    delta: ContentDelta<'a>,
    logprobs: Option<()>,
    finish_reason: Option<()>,
}

#[derive(Serialize)]
struct ContentDelta<'a> {
    content: &'a str,
}

impl ChatRenderer {
    /// Creates a renderer; `include_usage` as in the request's `stream_options`.
    pub fn new(include_usage: bool) -> Self {
        Self {
            include_usage,
            head: Map::new(),
            session_id: None,
            metadata: Value::Null,
            answer: Paragraphs::default(),
            thinking: String::new(),
            calls: Vec::new(),
            end: RunEnd::default(),
        }
    }

    /// Returns why the run failed, if it did: its code, and what to do.
    pub fn failure(&self) -> Option<(RunErrorCode, &str)> {
        self.end.failure()
    }

    /// Returns the completion, once the run has ended.
    pub fn completion(&self) -> Value {
        let mut message =
            json!({ "role": "assistant", "content": self.answer.text().unwrap_or_default(), "refusal": null });
        if !self.calls.is_empty() {
            message["tool_calls"] = json!(self.calls);
            if self.answer.text().unwrap_or_default().is_empty() {
                message["content"] = Value::Null;
            }
        }
        if !self.thinking.is_empty() {
            message["reasoning_content"] = json!(self.thinking);
        }
        let mut completion = self.head.clone();
        completion.insert("object".to_owned(), json!("chat.completion"));
        let choice = json!({ "index": 0, "message": message, "logprobs": null, "finish_reason": self.finish_reason() });
        completion.insert("choices".to_owned(), json!([choice]));
        completion.insert("usage".to_owned(), usage_json(&self.end.usage));
        completion.insert("session_id".to_owned(), json!(self.session_id));
        if let Some(assessment) = &self.end.assessment {
            completion.insert(ASSESSMENT.to_owned(), assessment.clone());
        }
        Value::Object(completion)
    }

    fn begin(&mut self, id: String, at: DateTime<Utc>, model: Value) {
        let fields = [
            ("id", json!(id)),
            ("object", json!("chat.completion.chunk")),
            ("created", json!(at.timestamp())),
            ("model", model),
            ("system_fingerprint", Value::Null),
        ];
        self.head = fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    }

    fn chunk(&self, choices: Value, usage: Value) -> Frame {
        let usage = self.include_usage.then_some(usage);
        Frame::unnamed(&Chunk { head: &self.head, choices, usage, assessment: None })
    }

    fn delta(&self, delta: &Value, finish_reason: Option<&str>) -> Frame {
        let choice = json!({ "index": 0, "delta": delta, "logprobs": null, "finish_reason": finish_reason });
        let usage = self.include_usage.then_some(Value::Null);
        let assessment = self.end.assessment.as_ref().filter(|_| finish_reason.is_some());
        Frame::unnamed(&Chunk { head: &self.head, choices: json!([choice]), usage, assessment })
    }

    /// Returns a piece of the answer. Nearly all frames are these: they are written without building a document first.
    fn content(&self, content: &str) -> Frame {
        let choice = ContentChoice { index: 0, delta: ContentDelta { content }, logprobs: None, finish_reason: None };
        let usage = self.include_usage.then_some(Value::Null);
        Frame::unnamed(&Chunk { head: &self.head, choices: [choice], usage, assessment: None })
    }

    fn finish_reason(&self) -> &'static str {
        match (self.calls.is_empty(), self.end.cut, self.end.filtered) {
            (false, _, _) => "tool_calls",
            (true, true, _) => "length",
            (true, false, true) => "content_filter",
            (true, false, false) => "stop",
        }
    }

    fn call(&mut self, call: &WaitingCall) -> Vec<Frame> {
        let index = self.calls.len();
        let whole = |arguments: &str| {
            json!({
                "id": call.call_id,
                "type": "function",
                "function": { "name": call.name, "arguments": arguments },
            })
        };
        self.calls.push(whole(&call.args_raw));
        let mut begun = whole("");
        begun["index"] = json!(index);
        let arguments = json!({ "index": index, "function": { "arguments": call.args_raw } });
        vec![
            self.delta(&json!({ "tool_calls": [begun] }), None),
            self.delta(&json!({ "tool_calls": [arguments] }), None),
        ]
    }

    fn finished(&self) -> Vec<Frame> {
        if let Some((_, message)) = self.end.failure() {
            return vec![Frame::unnamed(&error_json(message, self.end.failure_code()))];
        }
        let mut frames = vec![self.delta(&json!({}), Some(self.finish_reason()))];
        if self.include_usage {
            frames.push(self.chunk(json!([]), usage_json(&self.end.usage)));
        }
        frames.push(Frame { event: None, data: "[DONE]".to_owned() });
        frames
    }
}

impl Renderer for ChatRenderer {
    fn frame(&mut self, event: &RunEvent) -> Vec<Frame> {
        self.end.note(&event.kind);
        match &event.kind {
            EventKind::RunStarted(started) => {
                self.begin(completion_id(started.run_id), event.at, model_named(started));
                self.metadata = started.request["metadata"].clone();
                self.session_id.clone_from(&started.conversation);
                vec![self.delta(&json!({ "role": "assistant", "content": "" }), None)]
            }
            EventKind::ThinkingDelta { text, .. } => {
                self.thinking.push_str(text);
                vec![self.delta(&json!({ "reasoning_content": text }), None)]
            }
            EventKind::TextStarted { .. } => {
                self.answer.begin();
                Vec::new()
            }
            EventKind::TextDelta { text, .. } => {
                let text = self.answer.push(text);
                vec![self.content(&text)]
            }
            EventKind::ClientToolRequested(call) => self.call(call),
            EventKind::RunFinished { .. } => self.finished(),
            EventKind::CompactionStarted { .. }
            | EventKind::CompactionFinished { .. }
            | EventKind::LlmCallStarted { .. }
            | EventKind::LlmCallFinished { .. }
            | EventKind::ThinkingStarted { .. }
            | EventKind::ThinkingDone { .. }
            | EventKind::TextDone { .. }
            | EventKind::ToolCallStarted(_)
            | EventKind::ToolResult(_)
            | EventKind::ApprovalRequested(_)
            | EventKind::ApprovalResolved { .. }
            | EventKind::ClientToolResolved { .. }
            | EventKind::Conversation { .. }
            | EventKind::AnswerFinal { .. }
            | EventKind::RunError { .. }
            | EventKind::Paused { .. } => Vec::new(),
        }
    }
}

/// Returns `chatcmpl-<run>`.
pub fn completion_id(run_id: Uuid) -> String {
    format!("chatcmpl-{}", run_id.simple())
}

/// Returns the run of a completion.
pub fn run_of_completion(completion_id: &str) -> Option<Uuid> {
    Uuid::try_parse(completion_id.strip_prefix("chatcmpl-")?).ok()
}

/// What was asked for by a completion that is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredCompletion {
    /// The completion, with its metadata.
    pub completion: Value,
    /// The messages that it answers, each with an id.
    pub messages: Vec<Value>,
}

/// Returns a completion from its log; `None` where its request did not ask to store it, and where there is none: its
/// run is in progress, failed or was cancelled.
pub fn stored_completion(log: &[RunEvent]) -> Option<StoredCompletion> {
    let started = log.iter().find_map(|event| match &event.kind {
        EventKind::RunStarted(started) => Some(started),
        _ => None,
    })?;
    let messages = started.request["messages"].as_array()?;
    let mut renderer = ChatRenderer::new(false);
    for event in log {
        renderer.frame(event);
    }
    if renderer.end.outcome.is_none() || renderer.failure().is_some() {
        return None;
    }
    let id = completion_id(started.run_id);
    let messages = messages.iter().enumerate().map(|(index, message)| {
        let mut message = message.clone();
        message["id"] = json!(format!("{id}-{index}"));
        let parts = message["content"].as_array().cloned();
        if let Some(parts) = &parts {
            let texts: Vec<&str> = parts.iter().filter_map(|part| part["text"].as_str()).collect();
            message["content"] = if texts.is_empty() { Value::Null } else { json!(texts.join("\n")) };
        }
        message["content_parts"] = json!(parts);
        message
    });
    let mut completion = renderer.completion();
    completion["metadata"] = renderer.metadata.clone();
    Some(StoredCompletion { completion, messages: messages.collect() })
}

pub(super) fn usage_json(usage: &TokenUsage) -> Value {
    json!({
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
        "prompt_tokens_details": { "cached_tokens": usage.cached_tokens },
        "completion_tokens_details": { "reasoning_tokens": usage.reasoning_tokens },
    })
}

/// Returns a failure in the protocol's error shape, with the code that it has where the answer is no stream.
pub fn error_json(message: &str, code: &str) -> Value {
    json!({ "error": { "message": message, "type": "server_error", "param": null, "code": code } })
}
