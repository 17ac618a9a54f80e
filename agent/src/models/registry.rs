//! The models that the server offers: a name, a provider, and what is known of it beyond what the provider says.
//!
//! Never empty, so that there always is a default: the first.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::recorded::RecordingModel;
use super::{ModelCapabilities, ModelProvider, TokenUsage};
use crate::{AgentError, Result};

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
    /// What `usage` costs. Tokens written to a cache cost what a prompt token costs.
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
    /// Who answers.
    pub provider: Arc<dyn ModelProvider>,
    /// What it costs, where the operator told.
    pub price: Option<Price>,
    /// Context length that is assumed where the provider says none or a longer one.
    pub context_tokens: Option<u32>,
    /// Bound of one turn's output, where the request has no lower one.
    pub max_output_tokens: Option<u32>,
}

impl ModelEntry {
    /// The provider under its own name, nothing set.
    pub fn of(provider: Arc<dyn ModelProvider>) -> Self {
        Self {
            name: provider.model_id().to_owned(),
            provider,
            price: None,
            context_tokens: None,
            max_output_tokens: None,
        }
    }

    /// What the provider says it can do, within this entry's context length.
    pub async fn capabilities(&self) -> Result<ModelCapabilities> {
        let said = self.provider.capabilities().await?;
        let context_tokens = [self.context_tokens, said.context_tokens].into_iter().flatten().min();
        Ok(ModelCapabilities { context_tokens, ..said })
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
    /// The list; the first is the default. Errors: `invalid_request` when it is empty or a name is there twice.
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

    /// The list of one.
    pub fn single(provider: Arc<dyn ModelProvider>) -> Self {
        Self { first: ModelEntry::of(provider), others: Arc::default() }
    }

    /// The same with what the default model says recorded in the file `path`.
    pub async fn record_default(mut self, path: &Path) -> Result<Self> {
        let recording = RecordingModel::create(Arc::clone(&self.first.provider), path).await?;
        self.first.provider = Arc::new(recording);
        Ok(self)
    }

    /// The model that is used unless a request names another.
    pub fn default_entry(&self) -> &ModelEntry {
        &self.first
    }

    /// The model of that name: exactly, else without regard to case.
    pub fn named(&self, name: &str) -> Option<&ModelEntry> {
        self.entries()
            .find(|entry| entry.name == name)
            .or_else(|| self.entries().find(|entry| entry.name.eq_ignore_ascii_case(name)))
    }

    /// All, the default first.
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
        ModelEntry { name: name.to_owned(), ..ModelEntry::of(provider) }
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
