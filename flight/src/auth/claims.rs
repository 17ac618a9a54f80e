//! What the claims of a signed token mean here: who the caller is, what it may do and by which policies it is judged.

use querent_catalog::{Identity, Principal, Role};
use serde_json::{Map, Value};

use crate::config::{CubeSettings, OidcSettings};

/// The most bytes of a subject, a role, a group and a database, as of the catalog's tokens.
const MAX_NAME: usize = 256;
/// The most bytes of an attribute's value.
const MAX_VALUE: usize = 4_096;
/// The most roles, groups and databases, each.
const MAX_ENTRIES: usize = 256;
/// The caller of a server that knows none, whose runs are not a person's of the provider.
const LOCAL: &str = "local";

/// Which claims are what.
pub(super) struct ClaimRules {
    subject: String,
    roles: String,
    groups: String,
    databases: Option<String>,
    /// Names of attributes, each with its claim.
    attributes: Vec<(String, String)>,
    mapped_roles: Vec<(String, Role)>,
    default_role: Option<Role>,
}

impl ClaimRules {
    pub(super) fn new(settings: &OidcSettings) -> Self {
        let owned = |(name, claim): (&str, &str)| (name.to_owned(), claim.to_owned());
        Self {
            subject: settings.subject_claim.clone(),
            roles: settings.roles_claim.clone(),
            groups: settings.groups_claim.clone(),
            databases: settings.databases_claim.clone(),
            attributes: settings.attributes().map(owned).collect(),
            mapped_roles: settings.mapped_roles().map(|(value, role)| (value.to_owned(), role)).collect(),
            default_role: settings.default_role.role(),
        }
    }

    /// Returns the caller with these claims, or why it is not let in.
    pub(super) fn principal(&self, claims: &Map<String, Value>) -> Result<Principal, String> {
        let subject = claim(claims, &self.subject).and_then(Value::as_str);
        let subject =
            subject.ok_or_else(|| format!("the token has no text in claim `{}`, the subject", self.subject))?;
        check_name(&self.subject, subject)?;
        if CubeSettings::is_reserved(subject) || subject == LOCAL {
            return Err(format!("the subject `{subject}` is one of this server's own"));
        }
        let identity = Identity {
            roles: self.names(claims, &self.roles)?.into_iter().collect(),
            groups: self.names(claims, &self.groups)?.into_iter().collect(),
            attributes: self.attributes(claims)?,
        };
        let mapped = self.mapped_roles.iter().filter(|(value, _)| identity.roles.contains(value));
        let role = mapped.map(|(_, role)| *role).max().or(self.default_role);
        let role = role.ok_or_else(|| format!("none of the token's `{}` may use this server", self.roles))?;
        let principal = Principal::new(subject, role).with_identity(identity);
        match &self.databases {
            // Without the claim it sees none: what is not said is not granted.
            Some(databases) => Ok(principal.with_databases(self.names(claims, databases)?)),
            None => Ok(principal),
        }
    }

    fn attributes(&self, claims: &Map<String, Value>) -> Result<std::collections::BTreeMap<String, String>, String> {
        let given = self.attributes.iter().filter_map(|(name, path)| Some((name, path, claim(claims, path)?)));
        given
            .filter(|(_, _, value)| !value.is_null())
            .map(|(name, path, value)| {
                let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                match text.len() <= MAX_VALUE {
                    true => Ok((name.clone(), text)),
                    false => Err(format!("claim `{path}` of the token has more than {MAX_VALUE} bytes")),
                }
            })
            .collect()
    }

    /// Returns the names that a claim lists: an array of texts, or one text.
    fn names(&self, claims: &Map<String, Value>, path: &str) -> Result<Vec<String>, String> {
        // A provider that leaves a long list out says where it is instead. Policies would be judged without it.
        if claims.get("_claim_names").and_then(|names| names.get(path)).is_some() {
            return Err(format!("the token leaves claim `{path}` out, since it is too long; let it list fewer"));
        }
        let wrong = || format!("claim `{path}` of the token is not a list of texts");
        let names = match claim(claims, path) {
            None | Some(Value::Null) => Vec::new(),
            // Scopes are words of one text, by RFC 8693.
            Some(Value::String(text)) if matches!(path, "scope" | "scp") => {
                text.split_ascii_whitespace().map(str::to_owned).collect()
            }
            Some(Value::String(text)) => vec![text.clone()],
            Some(Value::Array(items)) => {
                let texts = items.iter().map(|item| item.as_str().map(str::to_owned));
                texts.collect::<Option<Vec<_>>>().ok_or_else(wrong)?
            }
            Some(_) => return Err(wrong()),
        };
        if names.len() > MAX_ENTRIES {
            return Err(format!("claim `{path}` of the token has more than {MAX_ENTRIES} entries"));
        }
        names.iter().try_for_each(|name| check_name(path, name))?;
        Ok(names)
    }
}

/// Returns a claim by its name, or by a path into objects (`realm_access.roles`). Names of claims may have dots themselves.
fn claim<'a>(claims: &'a Map<String, Value>, path: &str) -> Option<&'a Value> {
    claims.get(path).or_else(|| {
        let (first, rest) = path.split_once('.')?;
        claim(claims.get(first)?.as_object()?, rest)
    })
}

fn check_name(claim: &str, name: &str) -> Result<(), String> {
    let is_name = !name.trim().is_empty() && name.len() <= MAX_NAME && !name.chars().any(char::is_control);
    is_name.then_some(()).ok_or_else(|| {
        format!("what claim `{claim}` of the token names has 1 to {MAX_NAME} bytes and no control characters")
    })
}

#[cfg(test)]
mod tests {
    use querent_catalog::DatabaseScope;
    use serde_json::json;

    use super::*;
    use crate::config::DefaultRole;

    fn principal(settings: &OidcSettings, claims: Value) -> Result<Principal, String> {
        ClaimRules::new(settings).principal(claims.as_object().unwrap())
    }

    fn list(entries: &[&str]) -> Vec<String> {
        entries.iter().map(|entry| (*entry).to_owned()).collect()
    }

    #[test]
    fn claims_become_roles_groups_attributes_and_databases() {
        let settings = OidcSettings {
            roles_claim: "realm_access.roles".to_owned(),
            groups_claim: "https://example.org/groups".to_owned(),
            databases_claim: Some("databases".to_owned()),
            attribute_claims: list(&["region", "level=clearance.level", "tags", "absent"]),
            role_map: list(&["writers=write", "staff=read", "root=admin"]),
            ..OidcSettings::default()
        };
        let claims = json!({ "sub": "anna", "realm_access": { "roles": ["staff", "writers", "analyst"] },
            "https://example.org/groups": "emea", "databases": ["Sales"], "region": "EU",
            "clearance": { "level": 3 }, "tags": ["a", "b"] });
        let known = principal(&settings, claims).unwrap();
        assert_eq!((known.subject(), known.role()), ("anna", Role::Write));
        assert_eq!(known.identity().roles.iter().collect::<Vec<_>>(), ["analyst", "staff", "writers"]);
        assert!(known.identity().groups.contains("emea") && known.may_see("sales") && !known.may_see("hr"));
        let attributes: Vec<(&str, &str)> =
            known.identity().attributes.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(attributes, [("level", "3"), ("region", "EU"), ("tags", r#"["a","b"]"#)]);
        // What a token does not say of databases is none of them.
        let silent = principal(&settings, json!({ "sub": "ben" })).unwrap();
        assert_eq!((silent.role(), silent.may_see("sales")), (Role::Read, false));
        assert!(matches!(silent.scope(), DatabaseScope::Only(_)));
    }

    #[test]
    fn a_token_that_does_not_say_who_and_what_is_refused() {
        let settings = OidcSettings { role_map: list(&["staff=read"]), ..OidcSettings::default() };
        for claims in [
            json!({}),
            json!({ "sub": 7 }),
            json!({ "sub": "" }),
            json!({ "sub": "a\nb" }),
            json!({ "sub": "cube:anna" }),
            json!({ "sub": "local" }),
            json!({ "sub": "anna", "roles": { "a": true } }),
            json!({ "sub": "anna", "groups": ["a", 7] }),
            json!({ "sub": "anna", "groups": vec!["g"; MAX_ENTRIES + 1] }),
            json!({ "sub": "anna", "_claim_names": { "groups": "src1" } }),
        ] {
            assert!(principal(&settings, claims.clone()).is_err(), "{claims}");
        }
        let strict = OidcSettings { default_role: DefaultRole::None, ..settings };
        assert!(principal(&strict, json!({ "sub": "anna", "roles": ["guest"] })).is_err());
        assert_eq!(principal(&strict, json!({ "sub": "anna", "roles": "staff" })).unwrap().role(), Role::Read);
    }
}
