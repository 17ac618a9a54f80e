//! `[[agent.models]]`: the list of models that requests choose from, its checks, and the models that it opens.
//!
//! Keys are never in the settings: an entry names the environment variable that holds its key.

use std::collections::BTreeMap;

use querent_agent::AgentError;
use querent_agent::models::configured::{EntrySettings, ProviderSettings, open_list};
use querent_agent::models::remote::{RemoteKind, RemoteSettings, RetryPolicy};
use querent_agent::models::{Models, Price, ToolStyleSetting};
use querent_catalog::outbound::ApiKey;
use serde::{Deserialize, Serialize};

use super::{AgentSettings, ToolStyleName};

/// One entry of the list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelEntrySettings {
    /// The name by which requests choose it.
    pub name: String,
    /// Whose protocol it speaks.
    pub provider: ModelProviderName,
    /// The model's name at its provider; unset: `name`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The provider's address as far as its version, such as `http://localhost:8000/v1`; unset: the provider's own, or
    /// `agent.ollama_host`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// The environment variable that holds the key; unset: the provider's usual one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_key_env: Option<String>,
    /// Context length in tokens; unset: as the provider says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_tokens: Option<u32>,
    /// Most tokens of one turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u32>,
    /// What a million tokens cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    /// Names of the entries that are asked, in order, where this one cannot be reached or is busy.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fallbacks: Vec<String>,
    /// How tools are described to it; unset: `agent.tool_style`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_style: Option<ToolStyleName>,
}

/// Whose protocol a model speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ModelProviderName {
    /// An Ollama server.
    Ollama,
    /// OpenAI, or a server that speaks Chat Completions.
    OpenAi,
    /// Anthropic.
    Anthropic,
    /// Google's Gemini.
    Gemini,
}

impl ModelProviderName {
    fn remote(self) -> Option<RemoteKind> {
        match self {
            ModelProviderName::Ollama => None,
            ModelProviderName::OpenAi => Some(RemoteKind::OpenAi),
            ModelProviderName::Anthropic => Some(RemoteKind::Anthropic),
            ModelProviderName::Gemini => Some(RemoteKind::Gemini),
        }
    }
}

impl From<ToolStyleName> for ToolStyleSetting {
    fn from(name: ToolStyleName) -> Self {
        match name {
            ToolStyleName::Auto => ToolStyleSetting::Auto,
            ToolStyleName::Native => ToolStyleSetting::Native,
            ToolStyleName::Actions => ToolStyleSetting::Actions,
        }
    }
}

impl ModelEntrySettings {
    fn is_named(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }

    fn model(&self) -> &str {
        self.model.as_deref().unwrap_or(&self.name)
    }

    /// Returns the variable that holds its key, if it takes one.
    fn key_variable(&self) -> Option<&str> {
        let usual = self.provider.remote()?.default_key_variable();
        Some(self.api_key_env.as_deref().unwrap_or(usual))
    }

    /// Returns what is wrong with the entry itself.
    fn fault(&self) -> Option<String> {
        if self.name.trim().is_empty() || self.name.trim() != self.name {
            return Some("`name` must not be empty or begin or end with a space".to_owned());
        }
        if self.model().trim().is_empty() {
            return Some("`model` must not be empty".to_owned());
        }
        if self.provider == ModelProviderName::Ollama && self.api_key_env.is_some() {
            return Some("provider ollama takes no key; remove `api_key_env`".to_owned());
        }
        if self.api_key_env.as_deref().is_some_and(|name| !is_variable(name)) {
            return Some("`api_key_env` is the name of an environment variable, not the key itself".to_owned());
        }
        if let Some(url) =
            self.base_url.as_deref().filter(|url| !url.starts_with("http://") && !url.starts_with("https://"))
        {
            return Some(format!("`base_url` {url:?} is not an address; write it as https://host/v1"));
        }
        if self.context_tokens == Some(0) || self.max_output_tokens == Some(0) {
            return Some("`context_tokens` and `max_output_tokens` must be at least 1".to_owned());
        }
        let prices = self.price.iter().flat_map(|price| [Some(price.input), Some(price.output), price.cached_input]);
        if prices.flatten().any(|price| !price.is_finite() || price < 0.0) {
            return Some("a `price` must be 0 or more, per million tokens".to_owned());
        }
        None
    }
}

impl AgentSettings {
    /// Returns what is wrong with the list of models, and what to write.
    pub(super) fn models_fault(&self) -> Option<String> {
        for (index, entry) in self.models.iter().enumerate() {
            let which = format!("model {} (`{}`)", index + 1, entry.name);
            if let Some(fault) = entry.fault() {
                return Some(format!("{which}: {fault}"));
            }
            if self.models.iter().take(index).any(|earlier| earlier.is_named(&entry.name)) {
                return Some(format!("{which}: the name is there twice"));
            }
            for fallback in &entry.fallbacks {
                if entry.is_named(fallback) {
                    return Some(format!("{which}: it cannot stand in for itself"));
                }
                if !self.models.iter().any(|other| other.is_named(fallback)) {
                    let names: Vec<&str> = self.models.iter().map(|other| other.name.as_str()).collect();
                    return Some(format!("{which}: fallback `{fallback}` is none of {}", names.join(", ")));
                }
            }
        }
        None
    }

    /// Moves the model `name` to the front, if the list has it.
    pub(super) fn prefer_model(&mut self, name: &str) -> bool {
        let found = self.models.iter().position(|entry| entry.is_named(name));
        if let Some(chosen) = found.and_then(|index| self.models.get_mut(..=index)) {
            chosen.rotate_right(1);
        }
        found.is_some()
    }

    /// Returns warnings about missing keys, without which the first use of a model will fail.
    pub(super) fn missing_keys(&self, environment: &BTreeMap<String, String>) -> Vec<String> {
        let is_missing = |variable: &str| environment.get(variable).is_none_or(|key| key.trim().is_empty());
        let without = self.models.iter().filter_map(|entry| {
            let variable = entry.key_variable().filter(|variable| is_missing(variable))?;
            // A private server may take no key.
            let is_wanted = entry.base_url.is_none() || entry.api_key_env.is_some();
            is_wanted.then(|| format!("model `{}` has no key: environment variable {variable} is not set", entry.name))
        });
        without.collect()
    }

    /// Opens the models of the list. Errors: invalid addresses.
    pub(super) fn open_models(&self) -> Result<Models, AgentError> {
        let entries: Vec<EntrySettings> = self.models.iter().map(|entry| self.entry(entry)).collect();
        open_list(&entries)
    }

    fn entry(&self, entry: &ModelEntrySettings) -> EntrySettings {
        let tool_style = entry.tool_style.unwrap_or(self.tool_style).into();
        let model = entry.model().to_owned();
        let provider = match entry.provider.remote() {
            None => ProviderSettings::Ollama {
                host: entry.base_url.clone().unwrap_or_else(|| self.ollama_host.clone()),
                model,
                tool_style,
            },
            Some(kind) => {
                let api_key_variable = entry.key_variable().unwrap_or_default().to_owned();
                ProviderSettings::Remote(RemoteSettings {
                    kind,
                    model,
                    base_url: entry.base_url.clone(),
                    api_key: std::env::var(&api_key_variable).ok().and_then(ApiKey::new),
                    api_key_variable,
                    context_tokens: entry.context_tokens,
                    tool_style,
                    retry: RetryPolicy::default(),
                })
            }
        };
        EntrySettings {
            name: entry.name.clone(),
            provider,
            price: entry.price,
            context_tokens: entry.context_tokens,
            max_output_tokens: entry.max_output_tokens,
            fallbacks: entry.fallbacks.clone(),
        }
    }
}

/// Whether a string can be a variable's name. A key that was pasted here by mistake must not reach a log.
fn is_variable(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
    !name.is_empty() && name.chars().all(fits) && !name.starts_with(|c: char| c.is_ascii_digit())
}
