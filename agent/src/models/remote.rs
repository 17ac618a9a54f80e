//! Models of providers other than Ollama, through genai: OpenAI and whatever speaks its Chat Completions, Anthropic,
//! Gemini. A turn is retried while the provider is busy, but only before its first piece has arrived.
//!
//! What to know about genai 0.7: the base URL ends where the provider's version does (`https://host/v1`);
//! OpenAI's thinking has no text, so it is neither asked for nor turned off; its structured output is strict, so that
//! every field becomes required, and a schema that leaves members open is not sent; no temperature is sent, since
//! reasoning models refuse one; a stream of OpenAI's form must end with `[DONE]`; pictures go with the asker's messages
//! only. The process installs a rustls provider before the first of these models is made.

mod calls;
mod errors;
mod frames;
mod probe;
mod reply;
mod request;
mod retry;
mod thoughts;

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures::stream::BoxStream;
use genai::adapter::AdapterKind;
use genai::resolver::{AuthData, Endpoint};
use genai::{Client, Headers, ModelIden, ServiceTarget};
use querent_catalog::outbound::{ApiKey, with_causes};
use tokio::sync::OnceCell;
use url::Url;

use super::address::{is_loopback, without_credentials};
use super::{ChatRequest, ModelCapabilities, ModelEvent, ModelProvider, ToolStyleSetting};
use crate::error::{AgentError, Result};
use crate::telemetry::trace_headers;

pub use retry::RetryPolicy;

use errors::{ErrorTranslator, ProviderRefusal};
use frames::FrameWatch;
use thoughts::ThoughtMemory;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The protocol that a model speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemoteKind {
    /// Chat Completions, of OpenAI or of any server that speaks it.
    OpenAi,
    /// Messages.
    Anthropic,
    /// `generateContent`.
    Gemini,
}

impl RemoteKind {
    /// Returns the provider's own address.
    pub fn default_base_url(self) -> &'static str {
        match self {
            RemoteKind::OpenAi => "https://api.openai.com/v1",
            RemoteKind::Anthropic => "https://api.anthropic.com/v1",
            RemoteKind::Gemini => "https://generativelanguage.googleapis.com/v1beta",
        }
    }

    /// Returns the variable that usually holds its key.
    pub fn default_key_variable(self) -> &'static str {
        match self {
            RemoteKind::OpenAi => "OPENAI_API_KEY",
            RemoteKind::Anthropic => "ANTHROPIC_API_KEY",
            RemoteKind::Gemini => "GEMINI_API_KEY",
        }
    }

    fn adapter(self) -> AdapterKind {
        match self {
            RemoteKind::OpenAi => AdapterKind::OpenAI,
            RemoteKind::Anthropic => AdapterKind::Anthropic,
            RemoteKind::Gemini => AdapterKind::Gemini,
        }
    }
}

/// Which model, and how it is reached.
#[derive(Debug, Clone)]
pub struct RemoteSettings {
    /// Its provider's protocol.
    pub kind: RemoteKind,
    /// Its name there.
    pub model: String,
    /// Its address; `None`: the provider's own.
    pub base_url: Option<String>,
    /// The key; servers of OpenAI's protocol at an address of their own may need none.
    pub api_key: Option<ApiKey>,
    /// The variable that holds or should hold the key; errors name it.
    pub api_key_variable: String,
    /// Context length, instead of the known one.
    pub context_tokens: Option<u32>,
    /// How tools are described to it; natively by default.
    pub tool_style: ToolStyleSetting,
    /// How often and how long a busy provider is retried.
    pub retry: RetryPolicy,
}

/// A model of a provider.
pub struct RemoteModel {
    settings: RemoteSettings,
    /// Ends with a slash.
    base: Url,
    http: reqwest_genai::Client,
    client: Client,
    thoughts: Arc<ThoughtMemory>,
    capabilities: OnceCell<ModelCapabilities>,
}

impl RemoteModel {
    /// Creates the model that the settings name. Nothing is sent yet. Errors: `model_unreachable` for an invalid
    /// address.
    pub fn new(settings: RemoteSettings) -> Result<Self> {
        let address = settings.base_url.as_deref().unwrap_or_else(|| settings.kind.default_base_url());
        let base = base_url(address)?;
        // A key must not follow a redirect to another host.
        let builder = reqwest_genai::Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .redirect(reqwest_genai::redirect::Policy::none());
        // A proxy cannot reach this machine's loopback.
        let builder = if is_loopback(&base) { builder.no_proxy() } else { builder };
        let http = builder
            .build()
            .map_err(|error| AgentError::Internal(format!("cannot make an HTTP client: {}", with_causes(&error))))?;
        let client = Client::builder()
            .with_reqwest(http.clone())
            .build()
            .map_err(|error| AgentError::Internal(format!("cannot make a model client: {error}")))?;
        let thoughts = Arc::new(ThoughtMemory::default());
        Ok(Self { settings, base, http, client, thoughts, capabilities: OnceCell::new() })
    }

    fn host(&self) -> String {
        without_credentials(&self.base)
    }

    fn translator(&self) -> ErrorTranslator {
        ErrorTranslator {
            host: self.host(),
            model: self.settings.model.clone(),
            key: self.settings.api_key.clone(),
            key_variable: self.settings.api_key_variable.clone(),
        }
    }

    /// Returns the key, or the error that names its variable. A server of OpenAI's protocol elsewhere may need none.
    fn key(&self) -> Result<Option<&ApiKey>> {
        let is_elsewhere = self.settings.base_url.is_some();
        match &self.settings.api_key {
            Some(key) => Ok(Some(key)),
            None if is_elsewhere => Ok(None),
            None => Err(AgentError::ModelAuth {
                host: self.host(),
                detail: format!("there is no key; set {}", self.settings.api_key_variable),
            }),
        }
    }

    fn target(&self) -> Result<ServiceTarget> {
        let auth = match (self.key()?, self.settings.kind) {
            (Some(key), _) => AuthData::from_single(key.secret()),
            (None, RemoteKind::OpenAi) => {
                AuthData::RequestOverride { url: format!("{}chat/completions", self.base), headers: Headers::default() }
            }
            (None, RemoteKind::Anthropic | RemoteKind::Gemini) => AuthData::from_single(String::new()),
        };
        let model = match self.settings.model.contains("::") {
            // genai would take the part before for a namespace.
            true => format!("model::{}", self.settings.model),
            false => self.settings.model.clone(),
        };
        Ok(ServiceTarget {
            endpoint: Endpoint::from_owned(self.base.as_str()),
            auth,
            model: ModelIden::new(self.settings.kind.adapter(), model),
        })
    }

    async fn attempt(
        &self,
        target: ServiceTarget,
        request: &request::GenaiRequest,
        translator: &ErrorTranslator,
    ) -> Result<BoxStream<'static, Result<ModelEvent>>, ProviderRefusal> {
        let frames = FrameWatch::default();
        let mut options = frames.watching(request.options.clone(), self.settings.kind);
        let headers = trace_headers();
        if !headers.is_empty() {
            options = options.with_extra_headers(headers);
        }
        let opened = self.client.exec_chat_stream(target, request.chat.clone(), Some(&options)).await;
        let stream = opened.map_err(|error| translator.refusal(error))?.stream;
        let reader = reply::ReplyReader {
            stream,
            kind: self.settings.kind,
            translator: translator.clone(),
            thoughts: Arc::clone(&self.thoughts),
            frames,
        };
        reader.events().await
    }
}

#[async_trait]
impl ModelProvider for RemoteModel {
    fn model_id(&self) -> &str {
        &self.settings.model
    }

    fn provider_name(&self) -> &'static str {
        match self.settings.kind {
            RemoteKind::OpenAi => "openai",
            RemoteKind::Anthropic => "anthropic",
            RemoteKind::Gemini => "gcp.gemini",
        }
    }

    fn forces_calls(&self) -> bool {
        true
    }

    fn may_ignore_tool_choice(&self) -> bool {
        true
    }

    async fn capabilities(&self) -> Result<ModelCapabilities> {
        self.capabilities.get_or_try_init(|| self.probe()).await.cloned()
    }

    async fn chat(&self, request: ChatRequest) -> Result<BoxStream<'static, Result<ModelEvent>>> {
        let target = self.target()?;
        let request = request::GenaiRequest::new(request, &self.settings, &self.thoughts);
        let translator = self.translator();
        let started = Instant::now();
        for tried in 1.. {
            let refusal = match self.attempt(target.clone(), &request, &translator).await {
                Ok(events) => return Ok(events),
                Err(refusal) => refusal,
            };
            let Some(pause) = self.settings.retry.pause(tried, started.elapsed(), &refusal) else {
                return Err(refusal.error);
            };
            tracing::info!(model = %self.settings.model, error = %refusal.error, ?pause, "the model's server is busy");
            tokio::time::sleep(pause).await;
        }
        Err(AgentError::Internal("a turn was tried too often".to_owned()))
    }
}

fn base_url(address: &str) -> Result<Url> {
    let address = address.trim();
    // Without its slash, joining would replace the last part of the path.
    let with_slash = format!("{}/", address.trim_end_matches('/'));
    let fits = |url: &Url| matches!(url.scheme(), "http" | "https") && url.has_host() && url.query().is_none();
    Url::parse(&with_slash).ok().filter(fits).ok_or_else(|| AgentError::ProviderUnreachable {
        host: address.to_owned(),
        detail: "not an address; write it as https://host/v1".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_ends_with_one_slash() {
        for (address, expected) in [
            ("https://host/v1", "https://host/v1/"),
            ("https://host/v1//", "https://host/v1/"),
            (" http://127.0.0.1:8000", "http://127.0.0.1:8000/"),
        ] {
            assert_eq!(base_url(address).unwrap().as_str(), expected);
        }
        for bad in ["", "host/v1", "ftp://host", "https://host/v1?key=a"] {
            assert_eq!(base_url(bad).unwrap_err().code(), "model_unreachable", "{bad}");
        }
    }
}
