//! The models that the server offers: a name, a provider, and what the operator knows beyond what the provider reports.
//!
//! Never empty, so that there always is a default: the first.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::recorded::RecordingModel;
use super::{ModelCapabilities, ModelProvider, TokenUsage};
use crate::error::{AgentError, Result};

/// The agent's own name among the models: a request that names it gets the default one.
pub const AGENT_MODEL: &str = "querent";

/// What a model's tokens cost, in a currency of the operator's choice per million.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// Prompt tokens.
    pub input: f64,
    /// Generated tokens, reasoning included.
    pub output: f64,
    /// Prompt tokens read from the provider's cache; unset: as any other prompt token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_input: Option<f64>,
}

impl Price {
    /// Returns what `usage` costs. A token written to a cache costs as much as a prompt token.
    pub fn cost(&self, usage: &TokenUsage) -> f64 {
        let cached = usage.cached_tokens.min(usage.input_tokens);
        let fresh = usage.input_tokens - cached;
        let millionths = fresh as f64 * self.input
            + cached as f64 * self.cached_input.unwrap_or(self.input)
            + usage.output_tokens as f64 * self.output;
        millionths / 1e6
    }
}

/// One model.
#[derive(Clone)]
pub struct ModelEntry {
    /// The name by which requests choose it.
    pub name: String,
    /// The provider that answers.
    pub provider: Arc<dyn ModelProvider>,
    /// What it costs, where the operator set it.
    pub price: Option<Price>,
    /// Context length, where the provider reports none or a longer one.
    pub context_tokens: Option<u32>,
    /// Bound of one turn's output, where the request has no lower one.
    pub max_output_tokens: Option<u32>,
}

impl ModelEntry {
    /// Creates an entry under the provider's own name, with nothing set.
    pub fn from_provider(provider: Arc<dyn ModelProvider>) -> Self {
        Self {
            name: provider.model_id().to_owned(),
            provider,
            price: None,
            context_tokens: None,
            max_output_tokens: None,
        }
    }

    /// Returns what the provider says it can do, within this entry's context length.
    pub async fn capabilities(&self) -> Result<ModelCapabilities> {
        let reported = self.provider.capabilities().await?;
        let context_tokens = [self.context_tokens, reported.context_tokens].into_iter().flatten().min();
        Ok(ModelCapabilities { context_tokens, ..reported })
    }
}

impl fmt::Debug for ModelEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelEntry")
            .field("name", &self.name)
            .field("model", &self.provider.model_id())
            .field("price", &self.price)
            .field("context_tokens", &self.context_tokens)
            .field("max_output_tokens", &self.max_output_tokens)
            .finish()
    }
}

/// The list of models. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Models {
    first: ModelEntry,
    others: Arc<[ModelEntry]>,
}

impl Models {
    /// Creates the list; the first entry is the default. Errors: `invalid_request` for an empty list or a repeated
    /// name.
    pub fn new(entries: Vec<ModelEntry>) -> Result<Self> {
        for (index, entry) in entries.iter().enumerate() {
            if entries.iter().take(index).any(|earlier| earlier.name.eq_ignore_ascii_case(&entry.name)) {
                let message = format!("two models are named `{}`; give each its own name", entry.name);
                return Err(AgentError::InvalidRequest { message });
            }
        }
        let mut entries = entries.into_iter();
        let no_model = || AgentError::InvalidRequest { message: "the list of models is empty; name one".to_owned() };
        Ok(Self { first: entries.next().ok_or_else(no_model)?, others: entries.collect() })
    }

    /// Creates the list of one model.
    pub fn single(provider: Arc<dyn ModelProvider>) -> Self {
        Self { first: ModelEntry::from_provider(provider), others: Arc::default() }
    }

    /// Records the replies of the default model in the file `path`.
    pub async fn record_default(mut self, path: &Path) -> Result<Self> {
        let recording = RecordingModel::create(Arc::clone(&self.first.provider), path).await?;
        self.first.provider = Arc::new(recording);
        Ok(self)
    }

    /// Returns the model that is used unless a request names another.
    pub fn default_entry(&self) -> &ModelEntry {
        &self.first
    }

    /// Finds the model of that name: exactly, else without regard to case.
    pub fn named(&self, name: &str) -> Option<&ModelEntry> {
        self.entries()
            .find(|entry| entry.name == name)
            .or_else(|| self.entries().find(|entry| entry.name.eq_ignore_ascii_case(name)))
    }

    /// Returns all models, the default first.
    pub fn entries(&self) -> impl Iterator<Item = &ModelEntry> {
        std::iter::once(&self.first).chain(self.others.iter())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::models::scripted;

    fn entry(name: &str) -> ModelEntry {
        let provider = Arc::new(scripted::from_value(json!({"runs": []})).unwrap());
        ModelEntry { name: name.to_owned(), ..ModelEntry::from_provider(provider) }
    }

    #[test]
    fn a_name_chooses_exactly_then_without_case() {
        let models = Models::new(vec![entry("Fast"), entry("deep")]).unwrap();
        assert_eq!(models.default_entry().name, "Fast");
        assert_eq!(models.named("fast").map(|entry| entry.name.as_str()), Some("Fast"));
        assert_eq!(models.named("deep").map(|entry| entry.name.as_str()), Some("deep"));
        assert!(models.named("other").is_none());
        assert_eq!(models.entries().count(), 2);
    }

    #[test]
    fn a_list_is_not_empty_and_names_each_model_once() {
        assert!(Models::new(Vec::new()).is_err());
        assert!(Models::new(vec![entry("a"), entry("A")]).unwrap_err().to_string().contains("`A`"));
    }

    #[test]
    fn cached_tokens_have_their_own_price() {
        let price = Price { input: 3.0, output: 15.0, cached_input: Some(0.3) };
        let usage = TokenUsage {
            input_tokens: 1_000_000,
            output_tokens: 100_000,
            cached_tokens: 500_000,
            ..TokenUsage::default()
        };
        assert!((price.cost(&usage) - (1.5 + 0.15 + 1.5)).abs() < 1e-9);
        assert!((Price { cached_input: None, ..price }.cost(&usage) - 4.5).abs() < 1e-9);
    }
}
