//! `[holmes]`: HolmesGPT's API, its keys and the sections of its prompt.

use querent_catalog::Role;
use serde::{Deserialize, Serialize};

use super::{RoleName, TokenSettings};

/// HolmesGPT's API.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HolmesSettings {
    /// `[name=]key[:role]`; none: the server's tokens are the keys.
    pub api_keys: Vec<String>,
    /// The only sections of the prompt that requests may have, or `none`; unset: all.
    pub enabled_prompts: Option<Vec<String>>,
    /// What the data is about, for the model.
    pub cluster_name: Option<String>,
    /// Added to the model's instructions.
    pub system_prompt_additions: Option<String>,
    /// Whether `GET /api/model` answers with the list's JSON as a string.
    pub model_name_as_text: bool,
}

impl HolmesSettings {
    /// Returns the keys as tokens. The subject of a key without a name is derived from it.
    pub fn tokens(&self) -> Vec<TokenSettings> {
        self.api_keys.iter().map(|entry| token(entry)).collect()
    }

    /// Returns what is wrong with the keys, without repeating one.
    pub(super) fn keys_fault(&self) -> Option<String> {
        let tokens = self.tokens();
        for (index, token) in tokens.iter().enumerate() {
            let number = index + 1;
            if token.token.is_empty() || !token.token.bytes().all(|byte| byte.is_ascii_graphic()) {
                return Some(format!("key {number} must be printable ASCII without spaces"));
            }
            if token.subject.as_deref() == Some("") {
                return Some(format!("the name of key {number} is empty; write name=key, or the key alone"));
            }
            if tokens.iter().take(index).any(|earlier| earlier.token == token.token) {
                return Some(format!("key {number} is there twice"));
            }
        }
        None
    }
}

/// Parses `[name=]key[:role]`. A tail that is not a role belongs to the key.
fn token(entry: &str) -> TokenSettings {
    let entry = entry.trim();
    // Keys in Base64 end with `=`, never before another character.
    let (subject, rest) = match entry.split_once('=') {
        Some((name, rest)) if !rest.trim_start_matches('=').is_empty() => (Some(name.to_owned()), rest),
        _ => (None, entry),
    };
    let with_role = rest.rsplit_once(':').and_then(|(key, role)| Some((key, role_name(role)?)));
    let (key, role) = with_role.unwrap_or((rest, RoleName::Read));
    TokenSettings { token: key.to_owned(), role, subject, databases: None }
}

fn role_name(text: &str) -> Option<RoleName> {
    match text.parse::<Role>().ok()? {
        Role::Read => Some(RoleName::Read),
        Role::Write => Some(RoleName::Write),
        Role::Admin => Some(RoleName::Admin),
    }
}

impl std::fmt::Debug for HolmesSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HolmesSettings")
            .field("api_keys", &self.api_keys.len())
            .field("enabled_prompts", &self.enabled_prompts)
            .field("cluster_name", &self.cluster_name)
            .field("system_prompt_additions", &self.system_prompt_additions)
            .field("model_name_as_text", &self.model_name_as_text)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(entry: &str) -> (Option<String>, String, RoleName) {
        let token = token(entry);
        (token.subject, token.token, token.role)
    }

    #[test]
    fn a_key_may_have_a_name_and_a_role() {
        assert_eq!(read("secret"), (None, "secret".to_owned(), RoleName::Read));
        assert_eq!(read("ui=secret"), (Some("ui".to_owned()), "secret".to_owned(), RoleName::Read));
        assert_eq!(read("ui=se:cret:write"), (Some("ui".to_owned()), "se:cret".to_owned(), RoleName::Write));
        assert_eq!(read("c2VjcmV0=="), (None, "c2VjcmV0==".to_owned(), RoleName::Read));
        assert_eq!(read("a:b"), (None, "a:b".to_owned(), RoleName::Read));
    }

    #[test]
    fn faults_name_the_place_not_the_key() {
        let fault = |keys: &[&str]| {
            let api_keys = keys.iter().map(|key| (*key).to_owned()).collect();
            HolmesSettings { api_keys, ..HolmesSettings::default() }.keys_fault()
        };
        assert_eq!(fault(&["a", "ui=b:write"]), None);
        for keys in [&["a", "x=a"][..], &["=b"], &["a b"], &["a", ""]] {
            let said = fault(keys).unwrap();
            assert!(!said.contains('a') || said.contains("key "), "{said}");
        }
    }
}
