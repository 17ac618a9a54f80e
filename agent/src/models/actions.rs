//! Tool calls for every model: above [`ToolCalling`], each model looks as if it had native tool calls.
//!
//! - [`ToolStyle::Native`]: tools go to the provider as they are. A model that writes its call as text instead
//!   (a `<tool_call>` block, a fenced JSON block, a bare JSON object and nothing else) is understood all the same.
//! - [`ToolStyle::Actions`]: each reply is one JSON object, held to a schema by the model's server: a tool call
//!   `{"action":"run_sql","sql":"..."}` or the answer `{"action":"answer","text":"..."}`, whose text is passed on
//!   while it is generated.
//!
//! The agent keeps its conversation in the native form (an assistant's `tool_calls`, then messages of the role
//! [`ChatRole::Tool`] with `tool_name`); what the model receives instead is decided here.

mod forced;
mod ignored_choice;
mod parse;
mod schema;
mod text_form;

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Poll, ready};

use futures::StreamExt;
use futures::stream::{self, BoxStream};
use serde_json::{Value, json};
use tracing::{Instrument, Span};

use self::forced::{ForcedCallParser, forced_instructions, forced_schema};
use self::ignored_choice::with_forced_call;
use self::parse::ActionParser;
use self::schema::{ACTION_FIELD, ANSWER_ACTION, ANSWER_FIELD};
use self::text_form::TextFormParser;
use super::{
    ChatMessage, ChatRequest, ChatRole, DoneReason, ModelCapabilities, ModelEvent, ModelProvider, ModelToolCall,
    Sampling, ToolChoice, ToolSpec, ToolStyle,
};
use crate::error::{AgentError, Result};
use crate::telemetry;

/// One turn to take, in the native form.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnRequest {
    /// The conversation so far.
    pub messages: Vec<ChatMessage>,
    /// Tools the model may call now. With none it can only answer.
    pub tools: Vec<ToolSpec>,
    /// All tools that were described to it: a call of one of them that is written as text is a call, offered now or
    /// not.
    pub known_tools: Vec<ToolSpec>,
    /// The names of those that the client executes, which may need arguments that are not required.
    pub client_tools: Vec<String>,
    /// Whether it may answer now, where that can be enforced: a small model that may answer before it has seen a result
    /// invents one.
    pub may_answer: bool,
    /// Whether to ask the model to think, where it can.
    pub think: Option<bool>,
    /// At most this many tokens generated.
    pub max_output_tokens: Option<u32>,
    /// JSON schema that an answer must satisfy, where the provider can enforce it.
    pub answer_schema: Option<Value>,
    /// Whether it must call a tool.
    pub tool_choice: ToolChoice,
    /// How tokens are chosen.
    pub sampling: Sampling,
    /// As in [`ChatRequest::variation`].
    pub variation: u32,
}

/// A model whose tool calls are always native.
#[derive(Clone)]
pub struct ToolCalling {
    provider: Arc<dyn ModelProvider>,
    capabilities: ModelCapabilities,
}

impl ToolCalling {
    /// Drives `provider` in the style that its `capabilities` name.
    pub fn new(provider: Arc<dyn ModelProvider>, capabilities: ModelCapabilities) -> Self {
        Self { provider, capabilities }
    }

    /// Returns what the model can do.
    pub fn capabilities(&self) -> &ModelCapabilities {
        &self.capabilities
    }

    /// Returns the system prompt's instructions for replying; `None` where the provider gives them to the model. They
    /// count for the prompt's token budget.
    pub fn instructions(&self, tools: &[ToolSpec]) -> Option<String> {
        match self.capabilities.tool_style {
            ToolStyle::Native => None,
            ToolStyle::Actions => Some(schema::action_instructions(tools)),
        }
    }

    /// Generates one turn. The stream is [`ModelProvider::chat`]'s, but every tool call in it is a
    /// [`ModelEvent::ToolCall`] with an object for arguments, and no text in it is part of a call.
    ///
    /// A call that was cut at the output limit is left out: the turn then ends with [`DoneReason::Length`] and
    /// without a call. A reply that is no action at all ends the stream with `model_failed`.
    pub async fn turn(&self, turn: TurnRequest) -> Result<BoxStream<'static, Result<ModelEvent>>> {
        let span =
            telemetry::turn_span(self.provider.provider_name(), self.provider.model_id(), turn.max_output_tokens);
        let begun = Box::pin(self.begin_turn(turn)).instrument(span.clone()).await;
        match begun {
            Ok(events) if span.is_disabled() => Ok(events),
            Ok(events) => Ok(traced_turn(events, span)),
            Err(error) => {
                telemetry::record_failure(&span, error.code());
                Err(error)
            }
        }
    }

    async fn begin_turn(&self, turn: TurnRequest) -> Result<BoxStream<'static, Result<ModelEvent>>> {
        let is_enforced = self.capabilities.tool_style == ToolStyle::Native && self.provider.forces_calls();
        let must_call = matches!(turn.tool_choice, ToolChoice::Required | ToolChoice::Named(_));
        if must_call && !turn.tools.is_empty() {
            if !is_enforced {
                return self.forced_turn(turn).await;
            }
            if self.provider.may_ignore_tool_choice() {
                let first = self.native_turn(turn.clone()).await?;
                return Ok(with_forced_call(self.clone(), turn, first));
            }
        }
        match self.capabilities.tool_style {
            ToolStyle::Native => self.native_turn(turn).await,
            ToolStyle::Actions if turn.answer_schema.is_some() => self.document_turn(turn).await,
            ToolStyle::Actions => self.action_turn(turn).await,
        }
    }

    async fn native_turn(&self, turn: TurnRequest) -> Result<BoxStream<'static, Result<ModelEvent>>> {
        let TurnRequest {
            messages,
            tools,
            known_tools,
            client_tools: _,
            may_answer: _,
            think,
            max_output_tokens,
            answer_schema,
            tool_choice,
            sampling,
            variation,
        } = turn;
        // A document that is asked for is no call, whatever it looks like.
        let reader = match &answer_schema {
            Some(_) => TextFormParser::new(&[]),
            None => TextFormParser::new(&known_tools),
        };
        let request = ChatRequest {
            messages,
            tools,
            format: answer_schema,
            think,
            max_output_tokens,
            tool_choice,
            sampling,
            variation,
        };
        Ok(read_content(self.provider.chat(request).await?, reader))
    }

    /// Generates a turn that is a call: the model's server holds the reply to the schema of one call's arguments, or of
    /// the calls that there are.
    async fn forced_turn(&self, turn: TurnRequest) -> Result<BoxStream<'static, Result<ModelEvent>>> {
        let TurnRequest { messages, tools, client_tools, think, max_output_tokens, sampling, variation, .. } = turn;
        let (format, asked) = (forced_schema(&tools, &client_tools), forced_instructions(&tools, &client_tools));
        let mut messages: Vec<ChatMessage> = match self.capabilities.tool_style {
            ToolStyle::Native => messages,
            ToolStyle::Actions => messages.iter().map(as_action_message).collect(),
        };
        // Not in the system message, which is the same in every turn, so that servers need not read it again.
        messages.push(ChatMessage::text(ChatRole::User, asked));
        let request = ChatRequest {
            messages,
            tools: Vec::new(),
            format: Some(format),
            think,
            max_output_tokens,
            tool_choice: ToolChoice::Auto,
            sampling,
            variation,
        };
        Ok(read_content(self.provider.chat(request).await?, ForcedCallParser::new(tools)))
    }

    /// Generates a turn that is the document that was asked for, and no action; its server holds it to the schema.
    async fn document_turn(&self, turn: TurnRequest) -> Result<BoxStream<'static, Result<ModelEvent>>> {
        let request = ChatRequest {
            messages: turn.messages.iter().map(as_action_message).collect(),
            tools: Vec::new(),
            format: turn.answer_schema,
            think: turn.think,
            max_output_tokens: turn.max_output_tokens,
            tool_choice: ToolChoice::Auto,
            sampling: turn.sampling,
            variation: turn.variation,
        };
        Ok(read_content(self.provider.chat(request).await?, TextFormParser::new(&[])))
    }

    async fn action_turn(&self, turn: TurnRequest) -> Result<BoxStream<'static, Result<ModelEvent>>> {
        let request = ChatRequest {
            messages: turn.messages.iter().map(as_action_message).collect(),
            tools: Vec::new(),
            format: Some(schema::action_schema(&turn.tools, turn.may_answer)),
            think: turn.think,
            max_output_tokens: turn.max_output_tokens,
            tool_choice: ToolChoice::Auto,
            sampling: turn.sampling,
            variation: turn.variation,
        };
        Ok(read_content(self.provider.chat(request).await?, ActionParser::new()))
    }
}

/// Keeps a turn's span until its last event, which says what it cost.
fn traced_turn(events: BoxStream<'static, Result<ModelEvent>>, span: Span) -> BoxStream<'static, Result<ModelEvent>> {
    let traced = events.inspect(move |event| match event {
        Ok(ModelEvent::Done { usage, reason }) => {
            telemetry::record_turn(&span, usage.input_tokens, usage.output_tokens, reason.as_str());
        }
        Ok(ModelEvent::Thinking(_) | ModelEvent::Text(_) | ModelEvent::ToolCall(_)) => {}
        Err(error) => telemetry::record_failure(&span, error.code()),
    });
    traced.boxed()
}

/// Turns the content of a reply into events; other events pass unchanged.
trait ContentReader: Send + 'static {
    /// Reads the next piece of content. Returns the text to pass on.
    fn push(&mut self, piece: String) -> Option<String>;
    /// Ends the content.
    fn finish(&mut self, reason: DoneReason) -> Result<Vec<ModelEvent>>;
}

/// Whether a message is a tool's result rather than a message of the asker.
pub(super) fn is_tool_result(message: &ChatMessage) -> bool {
    message.tool_name.is_some()
}

fn read_content(
    mut pieces: BoxStream<'static, Result<ModelEvent>>,
    mut reader: impl ContentReader,
) -> BoxStream<'static, Result<ModelEvent>> {
    // Nothing follows the end of a reply, nor a failure.
    let mut last: VecDeque<Result<ModelEvent>> = VecDeque::new();
    let mut is_over = false;
    stream::poll_fn(move |context| {
        while !is_over {
            match ready!(pieces.poll_next_unpin(context)) {
                Some(Ok(ModelEvent::Text(text))) => {
                    if let Some(text) = reader.push(text) {
                        return Poll::Ready(Some(Ok(ModelEvent::Text(text))));
                    }
                }
                Some(Ok(ModelEvent::Done { usage, reason })) => {
                    is_over = true;
                    match reader.finish(reason) {
                        Ok(events) => {
                            last.extend(events.into_iter().map(Ok));
                            last.push_back(Ok(ModelEvent::Done { usage, reason }));
                        }
                        Err(error) => last.push_back(Err(error)),
                    }
                }
                Some(Ok(event @ (ModelEvent::Thinking(_) | ModelEvent::ToolCall(_)))) => {
                    return Poll::Ready(Some(Ok(event)));
                }
                Some(Err(error)) => {
                    is_over = true;
                    last.push_back(Err(error));
                }
                None => is_over = true,
            }
        }
        Poll::Ready(last.pop_front())
    })
    .boxed()
}

/// Converts a message of the native form for a model that knows only actions.
fn as_action_message(message: &ChatMessage) -> ChatMessage {
    let (role, content) = match message.role {
        ChatRole::System | ChatRole::User => (message.role, message.content.clone()),
        ChatRole::Assistant if message.tool_calls.is_empty() => {
            (ChatRole::Assistant, json!({ ACTION_FIELD: ANSWER_ACTION, ANSWER_FIELD: message.content }).to_string())
        }
        ChatRole::Assistant => {
            let calls: Vec<String> = message.tool_calls.iter().map(action_text).collect();
            (ChatRole::Assistant, calls.join("\n"))
        }
        ChatRole::Tool => {
            let tool = message.tool_name.as_deref().unwrap_or("the tool");
            (ChatRole::User, format!("Result of {tool}:\n{}", message.content))
        }
    };
    ChatMessage {
        tool_name: message.tool_name.clone(),
        images: message.images.clone(),
        ..ChatMessage::text(role, content)
    }
}

fn action_text(call: &ModelToolCall) -> String {
    let mut action = serde_json::Map::new();
    action.insert(ACTION_FIELD.to_owned(), Value::String(call.name.clone()));
    if let Value::Object(arguments) = &call.arguments {
        action.extend(arguments.clone());
    }
    Value::Object(action).to_string()
}

/// Returns the text between the outermost braces: a server that enforces a schema only by instructions lets fences
/// through.
fn object_in(content: &str) -> &str {
    match (content.find('{'), content.rfind('}')) {
        (Some(start), Some(end)) if start < end => &content[start..=end],
        _ => content,
    }
}

fn not_an_action(content: &str) -> AgentError {
    AgentError::ModelFailed {
        detail: format!(
            "the reply is not one of the actions it was held to: {}; \
             the server may not support `format` with a JSON schema, set QUERENT_AGENT_TOOL_STYLE=native",
            shown(content)
        ),
    }
}

fn no_forced_call(content: &str) -> AgentError {
    let replied = match content.trim() {
        "" => "it replied with nothing".to_owned(),
        said => format!("it replied: {}", shown(said)),
    };
    AgentError::ModelFailed {
        detail: format!(
            "the request forces a call of a tool, and the model made none: {replied}; its server may support neither \
             `tool_choice` nor JSON schemas, use another model"
        ),
    }
}

/// Returns the beginning of a reply, for a message.
fn shown(content: &str) -> String {
    const SHOWN_CHARS: usize = 200;
    content.chars().take(SHOWN_CHARS).collect()
}
