//! What a provider's model can do: as the provider reports it, else as known by the model's name.
//!
//! The probe also finds a wrong key and a wrong name before a run begins. A provider that is busy or does not support
//! it is no error: the chat itself will show.

use std::time::Duration;

use serde_json::Value;

use super::{RemoteKind, RemoteModel};
use crate::error::{AgentError, Result};
use crate::models::{ModelCapabilities, ToolStyle, ToolStyleSetting};

const TIMEOUT: Duration = Duration::from_secs(10);
/// A list of a thousand models is a megabyte.
const MAX_BYTES: usize = 8 << 20;

impl RemoteModel {
    pub(super) async fn probe(&self) -> Result<ModelCapabilities> {
        let model = &self.settings.model;
        let said = match tokio::time::timeout(TIMEOUT, self.described()).await {
            Ok(described) => described?,
            Err(_) => {
                let detail = format!("no answer within {} s", TIMEOUT.as_secs());
                return Err(AgentError::ProviderUnreachable { host: self.host(), detail });
            }
        };
        let said_number = |fields: &[&str]| {
            let found = fields.iter().find_map(|field| said.get(*field)?.as_u64());
            found.and_then(|tokens| u32::try_from(tokens).ok()).filter(|tokens| *tokens > 0)
        };
        let context = said_number(&["inputTokenLimit", "max_input_tokens", "max_model_len", "context_length"]);
        let thinking = match self.settings.kind {
            RemoteKind::OpenAi => false,
            RemoteKind::Anthropic => anthropic_thinks(model),
            RemoteKind::Gemini => said.get("thinking").and_then(Value::as_bool).unwrap_or_else(|| gemini_thinks(model)),
        };
        Ok(ModelCapabilities {
            tool_style: match self.settings.tool_style {
                ToolStyleSetting::Auto | ToolStyleSetting::Native => ToolStyle::Native,
                ToolStyleSetting::Actions => ToolStyle::Actions,
            },
            thinking,
            small: false,
            context_tokens: self
                .settings
                .context_tokens
                .or(context)
                .or_else(|| known_context(self.settings.kind, model)),
            images: true,
        })
    }

    /// Asks the provider to describe the model; null where it does not.
    async fn described(&self) -> Result<Value> {
        let path = match self.settings.kind {
            RemoteKind::OpenAi => "models".to_owned(),
            RemoteKind::Anthropic | RemoteKind::Gemini => format!("models/{}", self.settings.model),
        };
        let translator = self.translator();
        let url = self.base.join(&path).map_err(|error| translator.failed(format!("no address: {error}")).error)?;
        let mut request = self.http.get(url);
        let key = self.key()?.map(|key| key.secret().to_owned());
        request = match (self.settings.kind, key) {
            (_, None) => request,
            (RemoteKind::OpenAi, Some(key)) => request.bearer_auth(key),
            (RemoteKind::Anthropic, Some(key)) => {
                request.header("x-api-key", key).header("anthropic-version", "2023-06-01")
            }
            (RemoteKind::Gemini, Some(key)) => request.header("x-goog-api-key", key),
        };
        let mut response = request.send().await.map_err(|error| translator.refusal_of_transport(&error).error)?;
        let (status, headers) = (response.status(), response.headers().clone());
        let mut body = Vec::new();
        while let Ok(Some(piece)) = response.chunk().await {
            if body.len() + piece.len() > MAX_BYTES {
                return Ok(Value::Null);
            }
            body.extend_from_slice(&piece);
        }
        if status.is_success() {
            let said: Value = serde_json::from_slice(&body).unwrap_or_default();
            return Ok(self.entry_of(said));
        }
        let refusal = translator.refusal_of_status(status, &String::from_utf8_lossy(&body), &headers);
        match refusal.error {
            error @ AgentError::ModelAuth { .. } => Err(error),
            // A server of OpenAI's protocol need not list its models, nor have Anthropic's look-alikes this route.
            error @ AgentError::ProviderModelNotFound { .. } if self.settings.base_url.is_none() => Err(error),
            _ => Ok(Value::Null),
        }
    }

    /// Returns the model's own entry of a list.
    fn entry_of(&self, mut said: Value) -> Value {
        let Some(entries) = said.get_mut("data").and_then(Value::as_array_mut) else { return said };
        let own =
            entries.iter().position(|entry| entry.get("id").and_then(Value::as_str) == Some(&self.settings.model));
        own.map(|index| entries.swap_remove(index)).unwrap_or_default()
    }
}

fn anthropic_thinks(model: &str) -> bool {
    let first_without =
        ["claude-3-5", "claude-3-opus", "claude-3-sonnet", "claude-3-haiku", "claude-2", "claude-instant"];
    !first_without.iter().any(|name| model.contains(name))
}

fn gemini_thinks(model: &str) -> bool {
    !["gemini-1", "gemini-2.0", "gemma-3"].iter().any(|name| model.contains(name))
}

/// Returns context lengths that providers publish but do not report by API.
fn known_context(kind: RemoteKind, model: &str) -> Option<u32> {
    let families: &[(&str, u32)] = match kind {
        RemoteKind::OpenAi => &[
            ("gpt-3.5", 16_385),
            ("gpt-4.1", 1_047_576),
            ("gpt-4o", 128_000),
            ("gpt-4-turbo", 128_000),
            ("gpt-5", 272_000),
            ("o1", 200_000),
            ("o3", 200_000),
            ("o4", 200_000),
        ],
        RemoteKind::Anthropic => &[("claude", 200_000)],
        RemoteKind::Gemini => &[("gemini", 1_048_576)],
    };
    families.iter().find(|(family, _)| model.starts_with(family)).map(|(_, tokens)| *tokens)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_are_known_by_their_names() {
        assert!(anthropic_thinks("claude-sonnet-4-5") && !anthropic_thinks("claude-3-5-haiku-latest"));
        assert!(gemini_thinks("gemini-2.5-pro") && !gemini_thinks("gemini-2.0-flash"));
        assert_eq!(known_context(RemoteKind::OpenAi, "gpt-4o-mini"), Some(128_000));
        assert_eq!(known_context(RemoteKind::OpenAi, "llama-3"), None);
    }
}
