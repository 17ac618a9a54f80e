//! Language models behind one trait. A provider turns one chat request into a stream of pieces;
//! how a model's tool calls are written (natively, as text, as schema-constrained actions) is settled above it, in `actions`.

pub mod actions;
pub mod ollama;
pub mod recorded;
pub mod scripted;

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use futures::stream::BoxStream;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Result;

/// Who said a message.
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
}

/// A tool call as the model made it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelToolCall {
    /// Provider's id, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Tool name.
    pub name: String,
    /// A JSON object.
    pub arguments: Value,
}

/// A tool as the model is told of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// Name.
    pub name: String,
    /// One or two sentences.
    pub description: String,
    /// JSON schema of the arguments.
    pub parameters: Value,
}

/// One turn to generate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChatRequest {
    /// The conversation so far.
    pub messages: Vec<ChatMessage>,
    /// Native tools; empty when actions are used instead.
    pub tools: Vec<ToolSpec>,
    /// JSON schema the output must satisfy (Ollama's `format`).
    pub format: Option<Value>,
    /// Whether to ask the model to think.
    pub think: Option<bool>,
    /// At most this many tokens generated.
    pub max_output_tokens: Option<u32>,
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
        /// Prompt tokens.
        input_tokens: u64,
        /// Generated tokens.
        output_tokens: u64,
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
}

/// How a model is told of tools and how its calls come back.
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
    /// Whether it is small: prompt and tool texts are cut harder (900 and 600 tokens).
    pub small: bool,
    /// Context length in tokens, where known.
    pub context_tokens: Option<u32>,
}

/// A language model.
#[async_trait]
pub trait ModelProvider: Send + Sync {
    /// Its name, as in `run_started.model`.
    fn model_id(&self) -> &str;
    /// Checks that the model is there and says what it can do. Cached by the provider after the first success.
    /// Errors: `model_unreachable`, `model_not_found`, `model_failed`.
    async fn capabilities(&self) -> Result<ModelCapabilities>;
    /// Generates one turn. The stream ends with [`ModelEvent::Done`] or an error; dropping it closes the request.
    async fn chat(&self, request: ChatRequest) -> Result<BoxStream<'static, Result<ModelEvent>>>;
}

/// Who decides the style of tool calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolStyleSetting {
    /// Judged from what the model's server reports.
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
    /// How it is told of tools.
    pub tool_style: ToolStyleSetting,
    /// A script to follow instead of a model.
    pub script: Option<PathBuf>,
    /// A recording to reply from instead of a model.
    pub replay: Option<PathBuf>,
    /// Where to record the model's replies.
    pub record: Option<PathBuf>,
}

/// The model that the settings name. Whether it is there shows in [`ModelProvider::capabilities`]; errors here are
/// files that cannot be read or written, and an address that is none.
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
