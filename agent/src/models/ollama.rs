//! Models served by Ollama, or by anything that speaks its HTTP protocol.
//!
//! `ollama-rs` asks for what a model can do and provides the types of a request. The byte stream of a chat is read here:
//! the crate's own reader loses a chunk that splits a character, errors within the stream, the HTTP status, the reason
//! of the end and the ids of tool calls.

mod ndjson;
mod probe;

use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use futures::stream::BoxStream;
use ollama_rs::Ollama;
use ollama_rs::error::OllamaError;
use ollama_rs::generation::parameters::{FormatType, ThinkType};
use ollama_rs::generation::tools::ToolInfo;
use ollama_rs::models::{ModelInfo, ModelOptions};
use querent_catalog::outbound::with_causes;
use reqwest::StatusCode;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::OnceCell;
use url::Url;

use self::ndjson::NdjsonDecoder;
use self::probe::ReportedModel;
use super::address::{is_loopback, without_credentials};
use super::{
    ChatMessage, ChatRequest, ChatRole, ModelCapabilities, ModelEvent, ModelProvider, ModelToolCall, Sampling,
    ToolStyle, ToolStyleSetting,
};
use crate::error::{AgentError, Result};
use crate::telemetry::trace_headers;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// For questions that need no model: which models there are, what they can do.
const PROBE_TIMEOUT: Duration = Duration::from_secs(10);
/// The same question gets the same answer, as far as the model's server allows.
const TEMPERATURE: f32 = 0.0;
const SEED: i32 = 42;
/// For another reply than the likeliest.
const VARIED_TEMPERATURE: f32 = 0.7;
/// Room for a first prompt of 900 tokens, a dozen tool results of 600 and the replies between them.
const SMALL_CONTEXT_TOKENS: u32 = 8_192;
/// Room for a first prompt of 4,000 tokens, half a dozen full tool results and the replies; Ollama's own default
/// would cut off the prompt's beginning silently.
const CONTEXT_TOKENS: u32 = 16_384;

/// A model on an Ollama server.
pub struct OllamaModel {
    base: Url,
    model: String,
    tool_style: ToolStyleSetting,
    context_tokens: Option<u32>,
    client: reqwest::Client,
    ollama: Ollama,
    capabilities: OnceCell<ModelCapabilities>,
}

impl OllamaModel {
    /// Creates the model `model` of the server at `host` (`http://host:port`, with or without a path). Nothing is sent
    /// yet.
    pub fn new(host: &str, model: &str, tool_style: ToolStyleSetting) -> Result<Self> {
        let base = base_url(host)?;
        let builder = reqwest::Client::builder().connect_timeout(CONNECT_TIMEOUT);
        // A proxy cannot reach this machine's loopback.
        let builder = if is_loopback(&base) { builder.no_proxy() } else { builder };
        let client = builder
            .build()
            .map_err(|error| AgentError::Internal(format!("cannot make an HTTP client: {}", with_causes(&error))))?;
        let ollama = Ollama::builder().url(base.clone()).reqwest_client(client.clone()).build();
        Ok(Self {
            base,
            model: model.to_owned(),
            tool_style,
            context_tokens: None,
            client,
            ollama,
            capabilities: OnceCell::new(),
        })
    }

    /// Sets the context length, where one is given, instead of one that fits most machines.
    pub fn with_context_tokens(self, context_tokens: Option<u32>) -> Self {
        Self { context_tokens, ..self }
    }

    async fn probe(&self) -> Result<ModelCapabilities> {
        let shown = within_probe_timeout(self.ollama.show_model_info(self.model.clone()));
        let info = match shown.await {
            Ok(info) => info,
            Err(ProbeError::Unanswered(detail)) => return Err(self.unreachable(detail)),
            Err(ProbeError::Refused(detail)) => return Err(self.why_not_shown(detail).await),
        };
        // Only a hint of the model's size: a server that does not list its models still serves them.
        let file_bytes = self
            .listed_models()
            .await
            .unwrap_or_default()
            .into_iter()
            .find_map(|(name, bytes)| same_model(&name, &self.model).then_some(bytes));
        let reported = ReportedModel {
            name: &self.model,
            capabilities: &info.capabilities,
            parameters: info.model_info.get("general.parameter_count").and_then(Value::as_u64),
            file_bytes,
        };
        let tool_style = match self.tool_style {
            ToolStyleSetting::Auto => reported.tool_style(),
            ToolStyleSetting::Native => ToolStyle::Native,
            ToolStyleSetting::Actions => ToolStyle::Actions,
        };
        let small = reported.is_small();
        let by_size = if small { SMALL_CONTEXT_TOKENS } else { CONTEXT_TOKENS };
        let wanted = self.context_tokens.unwrap_or(by_size);
        let context_tokens = trained_context(&info).map_or(wanted, |trained| trained.min(wanted));
        let thinking = reported.thinks();
        let images = info.capabilities.iter().any(|capability| capability == "vision");
        Ok(ModelCapabilities { tool_style, thinking, small, context_tokens: Some(context_tokens), images })
    }

    /// Returns why a model was not shown: it is not listed, or as the server says.
    async fn why_not_shown(&self, detail: String) -> AgentError {
        match self.listed_models().await {
            Ok(listed) if !listed.iter().any(|(name, _)| same_model(name, &self.model)) => self.not_found(),
            Ok(_) => AgentError::ModelFailed { detail },
            Err(error) => error,
        }
    }

    /// Returns the names and file sizes of the server's models.
    async fn listed_models(&self) -> Result<Vec<(String, u64)>> {
        match within_probe_timeout(self.ollama.list_local_models()).await {
            Ok(models) => Ok(models.into_iter().map(|model| (model.name, model.size)).collect()),
            Err(ProbeError::Unanswered(detail)) => Err(self.unreachable(detail)),
            Err(ProbeError::Refused(detail)) => Err(AgentError::ModelFailed { detail }),
        }
    }

    fn chat_body(&self, request: ChatRequest, capabilities: &ModelCapabilities) -> Result<ChatBody> {
        let (temperature, seed) = match i32::try_from(request.variation) {
            Ok(0) => (TEMPERATURE, SEED),
            Ok(variation) => (VARIED_TEMPERATURE, SEED.saturating_add(variation)),
            Err(_) => (VARIED_TEMPERATURE, i32::MAX),
        };
        let mut options = ModelOptions::default().temperature(temperature).seed(seed);
        if let Some(context_tokens) = capabilities.context_tokens {
            options = options.num_ctx(u64::from(context_tokens));
        }
        if let Some(max_output_tokens) = request.max_output_tokens {
            options = options.num_predict(i32::try_from(max_output_tokens).unwrap_or(i32::MAX));
        }
        options = with_sampling(options, request.sampling);
        let tools: Result<Vec<ToolInfo>, serde_json::Error> = request
            .tools
            .iter()
            .map(|tool| serde_json::from_value(json!({"type": "function", "function": tool})))
            .collect();
        let format: Result<Option<FormatType>, serde_json::Error> =
            request.format.map(serde_json::from_value).transpose();
        let not_a_schema = |error| AgentError::Internal(format!("a tool's parameters are no JSON schema: {error}"));
        Ok(ChatBody {
            model: self.model.clone(),
            messages: request.messages.into_iter().map(WireMessage::from).collect(),
            tools: tools.map_err(not_a_schema)?,
            options,
            format: format.map_err(not_a_schema)?,
            // Asking a model to think that cannot is an error.
            think: request.think.filter(|_| capabilities.thinking).map(ThinkType::from),
            stream: true,
        })
    }

    async fn refusal(&self, response: reqwest::Response) -> AgentError {
        let status = response.status();
        if status == StatusCode::NOT_FOUND {
            return self.not_found();
        }
        let body = response.text().await.unwrap_or_default();
        let message = serde_json::from_str::<Value>(&body)
            .ok()
            .and_then(|body| body["error"].as_str().map(str::to_owned))
            .unwrap_or(body);
        let hint =
            if message.contains("does not support tools") { "; set QUERENT_AGENT_TOOL_STYLE=actions" } else { "" };
        AgentError::ModelFailed { detail: format!("{status}: {}{hint}", message.trim()) }
    }

    fn unreachable(&self, detail: String) -> AgentError {
        AgentError::ModelUnreachable { host: self.host(), detail }
    }

    fn not_found(&self) -> AgentError {
        AgentError::ModelNotFound { model: self.model.clone(), host: self.host() }
    }

    fn host(&self) -> String {
        without_credentials(&self.base)
    }
}

#[async_trait]
impl ModelProvider for OllamaModel {
    fn model_id(&self) -> &str {
        &self.model
    }

    fn provider_name(&self) -> &'static str {
        "ollama"
    }

    fn is_self_hosted(&self) -> bool {
        true
    }

    async fn capabilities(&self) -> Result<ModelCapabilities> {
        self.capabilities.get_or_try_init(|| self.probe()).await.cloned()
    }

    async fn chat(&self, request: ChatRequest) -> Result<BoxStream<'static, Result<ModelEvent>>> {
        let capabilities = self.capabilities().await?;
        let body = self.chat_body(request, &capabilities)?;
        let url = self
            .base
            .join("api/chat")
            .map_err(|error| AgentError::Internal(format!("no address under {}: {error}", self.base)))?;
        let mut post = self.client.post(url).json(&body);
        for (name, value) in trace_headers() {
            post = post.header(name, value);
        }
        let sent = post.send().await;
        let response = sent.map_err(|error| self.unreachable(with_causes(&error)))?;
        if !response.status().is_success() {
            return Err(self.refusal(response).await);
        }
        let mut bytes = response.bytes_stream();
        let stream = async_stream::try_stream! {
            let mut decoder = NdjsonDecoder::default();
            while let Some(piece) = bytes.next().await {
                let piece = piece.map_err(|error| {
                    let detail = format!("the connection broke: {}", with_causes(&error.without_url()));
                    AgentError::ModelFailed { detail }
                })?;
                for event in decoder.push(&piece)? {
                    yield event;
                }
            }
            for event in decoder.finish()? {
                yield event;
            }
        };
        Ok(stream.boxed())
    }
}

/// Sets what a request says about how tokens are chosen.
fn with_sampling(mut options: ModelOptions, sampling: Sampling) -> ModelOptions {
    let Sampling { temperature, top_p, seed, stop, presence_penalty, frequency_penalty } = sampling;
    if let Some(temperature) = temperature {
        options = options.temperature(temperature as f32);
    }
    if let Some(top_p) = top_p {
        options = options.top_p(top_p as f32);
    }
    if let Some(seed) = seed {
        // Ollama's seeds are smaller; one that is too large still names one of its own.
        options = options.seed((seed % i64::from(i32::MAX)) as i32);
    }
    if !stop.is_empty() {
        options = options.stop(stop);
    }
    for (name, penalty) in [("presence_penalty", presence_penalty), ("frequency_penalty", frequency_penalty)] {
        if let Some(penalty) = penalty {
            options = options.extra(name, json!(penalty));
        }
    }
    options
}

/// The body of `/api/chat`. `ollama-rs` keeps `stream` to itself and its messages have no tool name.
#[derive(Debug, Serialize)]
struct ChatBody {
    model: String,
    messages: Vec<WireMessage>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<ToolInfo>,
    options: ModelOptions,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<FormatType>,
    #[serde(skip_serializing_if = "Option::is_none")]
    think: Option<ThinkType>,
    stream: bool,
}

#[derive(Debug, Serialize)]
struct WireMessage {
    role: ChatRole,
    content: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<WireToolCall>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_name: Option<String>,
    /// Base64.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    images: Vec<String>,
}

#[derive(Debug, Serialize)]
struct WireToolCall {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    function: WireFunction,
}

#[derive(Debug, Serialize)]
struct WireFunction {
    name: String,
    arguments: Value,
}

impl From<ChatMessage> for WireMessage {
    fn from(message: ChatMessage) -> Self {
        let ChatMessage { role, content, tool_calls, tool_name, tool_call_id: _, images } = message;
        let tool_calls = tool_calls
            .into_iter()
            .map(|ModelToolCall { id, name, arguments }| WireToolCall {
                id,
                function: WireFunction { name, arguments },
            })
            .collect();
        let images = images.into_iter().map(|image| image.data).collect();
        Self { role, content, tool_calls, tool_name: tool_name.filter(|_| role == ChatRole::Tool), images }
    }
}

/// Why a probe failed.
enum ProbeError {
    /// No answer from the server.
    Unanswered(String),
    /// An answer, but not the expected one.
    Refused(String),
}

async fn within_probe_timeout<T>(
    probe: impl Future<Output = ollama_rs::error::Result<T>>,
) -> std::result::Result<T, ProbeError> {
    match tokio::time::timeout(PROBE_TIMEOUT, probe).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(OllamaError::ReqwestError(error))) => Err(ProbeError::Unanswered(with_causes(&error))),
        Ok(Err(OllamaError::Other(body))) => Err(ProbeError::Refused(body)),
        Ok(Err(error)) => Err(ProbeError::Refused(with_causes(&error))),
        Err(_) => Err(ProbeError::Unanswered(format!("no answer within {} s", PROBE_TIMEOUT.as_secs()))),
    }
}

/// Returns the context length the model was trained for.
fn trained_context(info: &ModelInfo) -> Option<u32> {
    let architecture = info.model_info.get("general.architecture")?.as_str()?;
    let context = info.model_info.get(&format!("{architecture}.context_length"))?.as_u64()?;
    u32::try_from(context).ok()
}

/// Compares names by Ollama's rule: one without a tag means `latest`.
fn same_model(listed: &str, wanted: &str) -> bool {
    let tagged = |name: &str| {
        let last_part = name.rsplit('/').next().unwrap_or(name);
        if last_part.contains(':') { name.to_owned() } else { format!("{name}:latest") }
    };
    tagged(listed).eq_ignore_ascii_case(&tagged(wanted))
}

fn base_url(host: &str) -> Result<Url> {
    let host = host.trim();
    // `OLLAMA_HOST` is usually written without a scheme.
    let address = if host.contains("://") { host.to_owned() } else { format!("http://{host}") };
    // Without its slash, joining would replace the last part of the path.
    let address = if address.ends_with('/') { address } else { format!("{address}/") };
    Url::parse(&address).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host()).ok_or_else(
        || AgentError::ModelUnreachable {
            host: host.to_owned(),
            detail: "not an address; write it as http://localhost:11434".to_owned(),
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_keeps_its_path_with_or_without_a_slash() {
        let cases = [
            ("http://localhost:11434", "http://localhost:11434/api/chat"),
            ("http://localhost:11434/", "http://localhost:11434/api/chat"),
            ("https://models.example/ollama", "https://models.example/ollama/api/chat"),
            ("https://models.example/ollama/", "https://models.example/ollama/api/chat"),
            ("127.0.0.1:11434", "http://127.0.0.1:11434/api/chat"),
        ];
        for (host, expected) in cases {
            assert_eq!(base_url(host).unwrap().join("api/chat").unwrap().as_str(), expected);
        }
        for bad in ["", "ftp://localhost", "http://"] {
            assert_eq!(base_url(bad).unwrap_err().code(), "model_unreachable", "{bad}");
        }
    }

    #[test]
    fn a_name_without_a_tag_is_the_latest() {
        assert!(same_model("gemma4:latest", "gemma4"));
        assert!(same_model("hf.co/a/b:latest", "hf.co/a/b"));
        assert!(!same_model("gemma4:27b", "gemma4"));
    }
}
