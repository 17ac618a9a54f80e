//! Language models behind one trait. A provider turns one chat request into a stream of pieces; `actions` above it
//! decides how a model's tool calls are written (natively, as text, as schema-constrained actions).

pub mod actions;
mod address;
pub mod configured;
mod cut_text;
pub mod ollama;
pub mod recorded;
pub mod registry;
pub mod remote;
pub mod scripted;

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use futures::stream::BoxStream;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::Result;

pub use registry::{AGENT_MODEL, ModelEntry, Models, Price};

/// The author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChatRole {
    /// Instructions.
    System,
    /// The asker.
    User,
    /// The model.
    Assistant,
    /// A tool's result.
    Tool,
}

/// A picture in a message of the asker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChatImage {
    /// `image/png` and the like.
    pub media_type: String,
    /// Base64.
    pub data: String,
}

impl ChatImage {
    /// Encodes the bytes of a picture.
    pub fn from_bytes(media_type: &str, data: &[u8]) -> Self {
        use base64::Engine as _;
        Self { media_type: media_type.to_owned(), data: base64::engine::general_purpose::STANDARD.encode(data) }
    }
}

/// One message of a chat.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChatMessage {
    /// Who.
    pub role: ChatRole,
    /// What.
    pub content: String,
    /// Calls the assistant made in this message.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ModelToolCall>,
    /// For a tool's result: which tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_name: Option<String>,
    /// For a tool's result: which call of the assistant it answers, as in [`ModelToolCall::id`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// Pictures, for models that take them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<ChatImage>,
}

impl ChatMessage {
    /// Creates a message of text only.
    pub fn text(role: ChatRole, content: impl Into<String>) -> Self {
        Self {
            role,
            content: content.into(),
            tool_calls: Vec::new(),
            tool_name: None,
            tool_call_id: None,
            images: Vec::new(),
        }
    }

    /// Creates a message of the assistant, with its calls.
    pub fn assistant(content: impl Into<String>, tool_calls: Vec<ModelToolCall>) -> Self {
        Self { tool_calls, ..Self::text(ChatRole::Assistant, content) }
    }

    /// Creates the message with the result of `tool` for the call `call_id`.
    pub fn tool_result(tool: &str, call_id: Option<String>, content: impl Into<String>) -> Self {
        Self { tool_name: Some(tool.to_owned()), tool_call_id: call_id, ..Self::text(ChatRole::Tool, content) }
    }
}

/// A tool call as the model made it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelToolCall {
    /// The provider's id, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Tool name.
    pub name: String,
    /// A JSON object; anything else the model wrote is kept as a string, for the tool to refuse.
    pub arguments: Value,
}

/// A tool as it is described to a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// Name.
    pub name: String,
    /// One or two sentences.
    pub description: String,
    /// JSON schema of the arguments.
    pub parameters: Value,
}

/// Whether a turn must call a tool.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolChoice {
    /// The model decides.
    #[default]
    Auto,
    /// It must not.
    None,
    /// It must call one.
    Required,
    /// It must call this one.
    Named(String),
}

impl ToolChoice {
    /// Whether the model decides.
    pub fn is_auto(&self) -> bool {
        *self == ToolChoice::Auto
    }
}

/// Tokens of one turn, as the model's server reports them; zero where it does not say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TokenUsage {
    /// Prompt tokens, cached ones included.
    pub input_tokens: u64,
    /// Generated tokens, reasoning included.
    pub output_tokens: u64,
    /// Prompt tokens read from the provider's cache.
    #[serde(skip_serializing_if = "is_zero")]
    pub cached_tokens: u64,
    /// Prompt tokens written to it.
    #[serde(skip_serializing_if = "is_zero")]
    pub cache_write_tokens: u64,
    /// Generated tokens that were thinking.
    #[serde(skip_serializing_if = "is_zero")]
    pub reasoning_tokens: u64,
}

impl std::ops::AddAssign for TokenUsage {
    fn add_assign(&mut self, other: Self) {
        self.input_tokens += other.input_tokens;
        self.output_tokens += other.output_tokens;
        self.cached_tokens += other.cached_tokens;
        self.cache_write_tokens += other.cache_write_tokens;
        self.reasoning_tokens += other.reasoning_tokens;
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a field by reference")]
fn is_zero(tokens: &u64) -> bool {
    *tokens == 0
}

/// How tokens are chosen, where a request says so; otherwise as the provider does it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Sampling {
    /// Between 0, always the likeliest, and 2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Only the likeliest tokens that together have this probability.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    /// The same seed gives the same tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<i64>,
    /// Texts that end the reply.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stop: Vec<String>,
    /// Against tokens that were there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub presence_penalty: Option<f64>,
    /// Against tokens that were there often.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frequency_penalty: Option<f64>,
}

impl Sampling {
    /// Whether nothing is said.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// One turn to generate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChatRequest {
    /// The conversation so far.
    pub messages: Vec<ChatMessage>,
    /// Native tools; empty when actions are used instead.
    pub tools: Vec<ToolSpec>,
    /// JSON schema that the output must satisfy (Ollama's `format`).
    pub format: Option<Value>,
    /// Whether to ask the model to think.
    pub think: Option<bool>,
    /// At most this many tokens generated.
    pub max_output_tokens: Option<u32>,
    /// Whether it must call a tool, where the provider supports that.
    #[serde(default, skip_serializing_if = "ToolChoice::is_auto")]
    pub tool_choice: ToolChoice,
    /// How tokens are chosen.
    #[serde(default, skip_serializing_if = "Sampling::is_default")]
    pub sampling: Sampling,
    /// Which of several replies is asked for: 0 is the likeliest, others are drawn, each by its own seed. Providers
    /// without a temperature take it for 0.
    #[serde(default, skip_serializing_if = "is_likeliest")]
    pub variation: u32,
}

fn is_likeliest(variation: &u32) -> bool {
    *variation == 0
}

/// A piece of a turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelEvent {
    /// Thinking text.
    Thinking(String),
    /// Content text.
    Text(String),
    /// A native tool call.
    ToolCall(ModelToolCall),
    /// The end of the turn; nothing follows.
    Done {
        /// Tokens.
        #[serde(flatten)]
        usage: TokenUsage,
        /// Why it ended.
        reason: DoneReason,
    },
}

/// Why a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DoneReason {
    /// The model stopped.
    Stop,
    /// Cut at the context or output limit.
    Length,
    /// Stopped by the filter of the model's server, or refused by the model.
    Filtered,
}

impl DoneReason {
    fn as_str(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Length => "length",
            Self::Filtered => "content_filter",
        }
    }
}

/// How tools are described to a model and how its calls come back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolStyle {
    /// The provider's own tool calls; text-form calls in `content` are still recognised by the strict parser.
    Native,
    /// Each turn is one JSON object constrained by a schema (Ollama's `format`).
    Actions,
}

/// What a model can do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelCapabilities {
    /// Chosen from what the server reports and the model's family; overridable by setting.
    pub tool_style: ToolStyle,
    /// Whether it can think.
    pub thinking: bool,
    /// Whether it is small: its prompt and its tool results are shorter (900 and 600 tokens).
    pub small: bool,
    /// Context length in tokens, where known.
    pub context_tokens: Option<u32>,
    /// Whether it takes pictures.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub images: bool,
}

impl ModelCapabilities {
    /// What is taken for granted of a model that does not answer, for what needs none.
    pub(crate) fn of_none() -> Self {
        Self { tool_style: ToolStyle::Native, thinking: false, small: true, context_tokens: None, images: false }
    }
}

/// A language model.
#[async_trait]
pub trait ModelProvider: Send + Sync {
    /// Returns its name, as in `run_started.model`.
    fn model_id(&self) -> &str;
    /// Checks that the model is available and returns what it can do. Cached by the provider after the first success.
    /// Errors: `model_unreachable`, `model_not_found`, `model_failed`.
    async fn capabilities(&self) -> Result<ModelCapabilities>;
    /// Returns whether [`ChatRequest::tool_choice`] is enforced by its server. Otherwise a call is forced by a schema.
    fn forces_calls(&self) -> bool {
        false
    }
    /// Returns whether its server may pass over [`ChatRequest::tool_choice`] all the same, as some do that speak the
    /// protocol of another: a reply without the call is then followed, once, by a turn that forces it by a schema.
    fn may_ignore_tool_choice(&self) -> bool {
        false
    }
    /// Returns what serves it, as OpenTelemetry names providers of models.
    fn provider_name(&self) -> &'static str {
        "querent"
    }
    /// Returns whether its user's own machine computes it, perhaps without a GPU: then it may be slow without being ill.
    fn is_self_hosted(&self) -> bool {
        false
    }
    /// Generates one turn. The stream ends with [`ModelEvent::Done`] or an error; dropping it closes the request.
    async fn chat(&self, request: ChatRequest) -> Result<BoxStream<'static, Result<ModelEvent>>>;
}

/// Which style of tool calls a setting asks for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolStyleSetting {
    /// Chosen from what the model's server reports.
    #[default]
    Auto,
    /// Always [`ToolStyle::Native`].
    Native,
    /// Always [`ToolStyle::Actions`].
    Actions,
}

/// Which model to use, from the settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelSettings {
    /// Address of the Ollama server.
    pub ollama_host: String,
    /// The model's name there.
    pub model: String,
    /// How tools are described to it.
    pub tool_style: ToolStyleSetting,
    /// A script to follow instead of a model.
    pub script: Option<PathBuf>,
    /// A recording to reply from instead of a model.
    pub replay: Option<PathBuf>,
    /// Where to record the model's replies.
    pub record: Option<PathBuf>,
}

/// Opens the model that the settings name. Whether it is available shows in [`ModelProvider::capabilities`]; errors
/// here are files that cannot be read or written, and invalid addresses.
pub async fn open(settings: &ModelSettings) -> Result<Arc<dyn ModelProvider>> {
    let model: Arc<dyn ModelProvider> = match (&settings.script, &settings.replay) {
        (Some(script), _) => Arc::new(scripted::from_file(script).await?),
        (None, Some(recording)) => Arc::new(recorded::ReplayingModel::open(recording).await?),
        (None, None) => {
            Arc::new(ollama::OllamaModel::new(&settings.ollama_host, &settings.model, settings.tool_style)?)
        }
    };
    match &settings.record {
        Some(recording) => Ok(Arc::new(recorded::RecordingModel::create(model, recording).await?)),
        None => Ok(model),
    }
}
