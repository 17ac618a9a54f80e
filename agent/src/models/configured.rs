//! A model as the operator configured it: with a limit of its output, and with fallbacks.
//!
//! A fallback is asked only where the first model cannot be reached or is still busy after its own retries, and only
//! before the first piece of a turn: a reply is never repeated by another model. A fallback gets requests in the style
//! of the model whose capabilities the run began with, so both should call tools alike.

use std::sync::Arc;

use async_trait::async_trait;
use futures::StreamExt;
use futures::stream::BoxStream;

use super::ollama::OllamaModel;
use super::registry::{ModelEntry, Models, Price};
use super::remote::{RemoteModel, RemoteSettings};
use super::{ChatRequest, ModelCapabilities, ModelEvent, ModelProvider, ToolStyleSetting};
use crate::error::{AgentError, Result};

/// One entry of the list of models, from the settings.
#[derive(Debug, Clone)]
pub struct EntrySettings {
    /// The name by which requests choose it.
    pub name: String,
    /// The provider that answers.
    pub provider: ProviderSettings,
    /// What it costs.
    pub price: Option<Price>,
    /// Context length, instead of the provider's.
    pub context_tokens: Option<u32>,
    /// Bound of one turn's output.
    pub max_output_tokens: Option<u32>,
    /// Names of its fallbacks, in order.
    pub fallbacks: Vec<String>,
}

/// The provider of a model.
#[derive(Debug, Clone)]
pub enum ProviderSettings {
    /// An Ollama server.
    Ollama {
        /// Its address.
        host: String,
        /// The model's name there.
        model: String,
        /// How tools are described to it.
        tool_style: ToolStyleSetting,
    },
    /// A provider reached with a key.
    Remote(RemoteSettings),
}

/// Opens the models that the settings name. Nothing is sent to any of them yet. Errors: invalid addresses, an empty
/// list, repeated names, fallbacks that are not in the list.
pub fn open_list(list: &[EntrySettings]) -> Result<Models> {
    let candidates = list.iter().map(ModelCandidate::open).collect::<Result<Vec<_>>>()?;
    let named = |name: &String| {
        let found = candidates.iter().find(|candidate| candidate.name.eq_ignore_ascii_case(name));
        let unknown =
            || AgentError::InvalidRequest { message: format!("fallback `{name}` is not in the list of models") };
        found.cloned().ok_or_else(unknown)
    };
    let mut entries = Vec::new();
    for (settings, first) in list.iter().zip(&candidates) {
        let fallbacks = settings.fallbacks.iter().map(named).collect::<Result<Vec<_>>>()?;
        entries.push(ModelEntry {
            name: settings.name.clone(),
            provider: Arc::new(ConfiguredModel { first: first.clone(), fallbacks }),
            price: settings.price,
            context_tokens: settings.context_tokens,
            max_output_tokens: settings.max_output_tokens,
        });
    }
    Models::new(entries)
}

/// A provider and the limit of its output.
#[derive(Clone)]
struct ModelCandidate {
    name: String,
    provider: Arc<dyn ModelProvider>,
    max_output_tokens: Option<u32>,
}

impl ModelCandidate {
    fn open(settings: &EntrySettings) -> Result<Self> {
        let provider: Arc<dyn ModelProvider> = match &settings.provider {
            ProviderSettings::Ollama { host, model, tool_style } => {
                Arc::new(OllamaModel::new(host, model, *tool_style)?.with_context_tokens(settings.context_tokens))
            }
            ProviderSettings::Remote(remote) => {
                let context_tokens = settings.context_tokens.or(remote.context_tokens);
                Arc::new(RemoteModel::new(RemoteSettings { context_tokens, ..remote.clone() })?)
            }
        };
        Ok(Self { name: settings.name.clone(), provider, max_output_tokens: settings.max_output_tokens })
    }

    /// Begins a turn. Returns once its first piece has arrived.
    async fn begin(&self, mut request: ChatRequest) -> Result<BoxStream<'static, Result<ModelEvent>>> {
        request.max_output_tokens = [request.max_output_tokens, self.max_output_tokens].into_iter().flatten().min();
        let mut events = self.provider.chat(request).await?;
        match events.next().await {
            Some(first) => Ok(futures::stream::once(std::future::ready(Ok(first?))).chain(events).boxed()),
            None => Ok(events),
        }
    }
}

struct ConfiguredModel {
    first: ModelCandidate,
    fallbacks: Vec<ModelCandidate>,
}

impl ConfiguredModel {
    /// Returns the answer of the first model that can be reached; where none can, the error of the first one.
    async fn ask<T, F: Future<Output = Result<T>>>(&self, ask: impl Fn(ModelCandidate) -> F) -> Result<T> {
        let first_error = match ask(self.first.clone()).await {
            Err(error) if may_fall_back(&error) => error,
            outcome => return outcome,
        };
        for fallback in &self.fallbacks {
            tracing::warn!(model = %self.first.name, fallback = %fallback.name, error = %first_error, "another model stands in");
            match ask(fallback.clone()).await {
                Err(error) if may_fall_back(&error) => {
                    tracing::warn!(model = %fallback.name, %error, "it cannot stand in");
                }
                outcome => return outcome,
            }
        }
        Err(first_error)
    }
}

#[async_trait]
impl ModelProvider for ConfiguredModel {
    fn model_id(&self) -> &str {
        self.first.provider.model_id()
    }

    fn is_self_hosted(&self) -> bool {
        self.first.provider.is_self_hosted()
    }

    fn provider_name(&self) -> &'static str {
        self.first.provider.provider_name()
    }

    fn forces_calls(&self) -> bool {
        self.first.provider.forces_calls()
    }

    fn may_ignore_tool_choice(&self) -> bool {
        // A turn does not say which of them has taken it.
        let mut candidates = std::iter::once(&self.first).chain(&self.fallbacks);
        candidates.any(|candidate| candidate.provider.may_ignore_tool_choice())
    }

    async fn capabilities(&self) -> Result<ModelCapabilities> {
        self.ask(|candidate| async move { candidate.provider.capabilities().await }).await
    }

    async fn chat(&self, request: ChatRequest) -> Result<BoxStream<'static, Result<ModelEvent>>> {
        self.ask(|candidate| {
            let request = request.clone();
            async move { candidate.begin(request).await }
        })
        .await
    }
}

/// Whether a fallback may be asked. A wrong key, name or question stays wrong: the operator must see it.
fn may_fall_back(error: &AgentError) -> bool {
    matches!(
        error,
        AgentError::ModelUnreachable { .. }
            | AgentError::ProviderUnreachable { .. }
            | AgentError::ModelRateLimited { .. }
    )
}
