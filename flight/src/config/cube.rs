//! `[cube]`: the chat API of Cube's clients.

use serde::{Deserialize, Serialize};

use super::{RoleName, TokenSettings};

/// The prefix of the subjects of applications' users.
const RESERVED: &str = "cube:";

/// Who may use the chat API, and for whom.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CubeSettings {
    /// `key` or `name=key`; none: `auth.tokens` are taken.
    pub api_keys: Vec<String>,
    /// The accounts that exist; none: any.
    pub accounts: Vec<String>,
    /// The agents that exist; none: any.
    pub agents: Vec<String>,
    /// Names of user attributes that may be sent; none: any.
    pub user_attributes: Vec<String>,
    /// The most users that are not ephemeral.
    pub max_external_users: u64,
}

impl Default for CubeSettings {
    fn default() -> Self {
        Self {
            api_keys: Vec::new(),
            accounts: Vec::new(),
            agents: Vec::new(),
            user_attributes: Vec::new(),
            max_external_users: 10_000,
        }
    }
}

impl CubeSettings {
    /// Returns the keys as tokens that may read.
    pub(crate) fn tokens(&self) -> Vec<TokenSettings> {
        let token = |entry: &String| {
            let (name, key) = split(entry);
            let subject = name.map(|name| format!("{RESERVED}key:{name}"));
            TokenSettings { token: key.to_owned(), role: RoleName::Read, subject, databases: None }
        };
        self.api_keys.iter().map(token).collect()
    }

    /// Returns what is wrong with the keys, without repeating one.
    pub(super) fn keys_fault(&self) -> Option<String> {
        for (index, entry) in self.api_keys.iter().enumerate() {
            let (_, key) = split(entry);
            if key.is_empty() || !key.bytes().all(|byte| byte.is_ascii_graphic()) {
                return Some(format!("key {} must be printable ASCII without spaces", index + 1));
            }
            if self.api_keys.iter().take(index).any(|earlier| split(earlier).1 == key) {
                return Some(format!("key {} is there twice", index + 1));
            }
        }
        None
    }

    /// Whether a subject is reserved for applications' users.
    pub(crate) fn is_reserved(subject: &str) -> bool {
        subject.starts_with(RESERVED)
    }
}

/// Splits an entry into the key's name, if it has one, and the key, which may end with `=`.
fn split(entry: &str) -> (Option<&str>, &str) {
    let is_name = |name: &str| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
    match entry.split_once('=') {
        Some((name, key)) if is_name(name) && !key.trim_matches('=').is_empty() => (Some(name), key),
        _ => (None, entry),
    }
}

impl std::fmt::Debug for CubeSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CubeSettings")
            .field("api_keys", &format_args!("[{} keys]", self.api_keys.len()))
            .field("accounts", &self.accounts)
            .field("agents", &self.agents)
            .field("user_attributes", &self.user_attributes)
            .field("max_external_users", &self.max_external_users)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_may_have_names() {
        for (entry, expected) in [
            ("secret", (None, "secret")),
            ("acme=secret", (Some("acme"), "secret")),
            ("c2VjcmV0==", (None, "c2VjcmV0==")),
            ("acme=c2VjcmV0==", (Some("acme"), "c2VjcmV0==")),
            ("a/b=c", (None, "a/b=c")),
        ] {
            assert_eq!(split(entry), expected, "{entry}");
        }
    }
}
