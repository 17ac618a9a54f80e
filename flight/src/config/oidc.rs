//! `[auth.oidc]`: signed tokens (JWT) of an identity provider, and what their claims mean here.

use querent_catalog::Role;
use serde::{Deserialize, Serialize};
use url::{Host, Url};

/// The identity provider whose tokens are taken, beside those of the settings and of the catalog.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OidcSettings {
    /// The provider's URL, as its tokens have it in `iss`; unset: no signed token is taken.
    pub issuer: Option<String>,
    /// What `aud` of a token must name, one of them.
    pub audience: Vec<String>,
    /// Where the provider's keys are; unset: where its `.well-known/openid-configuration` says.
    pub jwks_url: Option<String>,
    /// The claim that is the subject.
    pub subject_claim: String,
    /// The claim that lists roles.
    pub roles_claim: String,
    /// The claim that lists groups.
    pub groups_claim: String,
    /// The claim that lists the only databases the caller may see; unset: all.
    pub databases_claim: Option<String>,
    /// `claim` or `name=claim`: the claims that are attributes.
    pub attribute_claims: Vec<String>,
    /// `value=read|write|admin`: what a value of the claim of roles may do.
    pub role_map: Vec<String>,
    /// What a token may do none of whose roles is in the map.
    pub default_role: DefaultRole,
}

/// The role of a token none of whose roles is in `auth.oidc.role_map`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DefaultRole {
    /// It is not taken.
    None,
    /// Query and ask.
    Read,
    /// Also create, insert and drop.
    Write,
    /// Everything.
    Admin,
}

impl Default for OidcSettings {
    fn default() -> Self {
        Self {
            issuer: None,
            audience: Vec::new(),
            jwks_url: None,
            subject_claim: "sub".to_owned(),
            roles_claim: "roles".to_owned(),
            groups_claim: "groups".to_owned(),
            databases_claim: None,
            attribute_claims: Vec::new(),
            role_map: Vec::new(),
            default_role: DefaultRole::Read,
        }
    }
}

impl OidcSettings {
    /// Whether signed tokens are taken.
    pub fn is_on(&self) -> bool {
        self.issuer.is_some()
    }

    /// Returns the names of attributes, each with its claim.
    pub(crate) fn attributes(&self) -> impl Iterator<Item = (&str, &str)> {
        self.attribute_claims.iter().map(|entry| entry.split_once('=').unwrap_or((entry, entry)))
    }

    /// Returns what each value of the claim of roles may do.
    pub(crate) fn mapped_roles(&self) -> impl Iterator<Item = (&str, Role)> {
        self.role_map.iter().filter_map(|entry| mapped_role(entry))
    }

    /// Returns the setting that is wrong, and what to do.
    pub(super) fn fault(&self) -> Option<(&'static str, String)> {
        let Some(issuer) = &self.issuer else {
            let is_set = !self.audience.is_empty() || self.jwks_url.is_some();
            return is_set.then(|| ("auth.oidc.issuer", "the other settings of auth.oidc need it".to_owned()));
        };
        for (key, url) in [("auth.oidc.issuer", Some(issuer)), ("auth.oidc.jwks_url", self.jwks_url.as_ref())] {
            if let Some(Err(fault)) = url.map(|url| provider_url(url)) {
                return Some((key, fault));
            }
        }
        if self.audience.is_empty() || self.audience.iter().any(String::is_empty) {
            let detail = "name what the provider writes into `aud` of tokens for this server: a token for another \
                          service must not be taken here";
            return Some(("auth.oidc.audience", detail.to_owned()));
        }
        for (key, claim) in [
            ("auth.oidc.subject_claim", &self.subject_claim),
            ("auth.oidc.roles_claim", &self.roles_claim),
            ("auth.oidc.groups_claim", &self.groups_claim),
        ] {
            if claim.is_empty() {
                return Some((key, "must be the name of a claim".to_owned()));
            }
        }
        if let Some(entry) = self.role_map.iter().find(|entry| mapped_role(entry).is_none()) {
            return Some(("auth.oidc.role_map", format!("`{entry}` is not value=read, value=write or value=admin")));
        }
        let names: Vec<&str> = self.attributes().map(|(name, _)| name).collect();
        if self.attributes().any(|(name, claim)| name.is_empty() || claim.is_empty()) {
            return Some(("auth.oidc.attribute_claims", "each is written claim or name=claim".to_owned()));
        }
        let twice = names.iter().enumerate().find(|(index, name)| names[..*index].contains(name));
        twice.map(|(_, name)| ("auth.oidc.attribute_claims", format!("attribute `{name}` is there twice")))
    }
}

impl DefaultRole {
    /// The role; `None` where such a token is not taken.
    pub(crate) fn role(self) -> Option<Role> {
        match self {
            DefaultRole::None => None,
            DefaultRole::Read => Some(Role::Read),
            DefaultRole::Write => Some(Role::Write),
            DefaultRole::Admin => Some(Role::Admin),
        }
    }
}

/// Parses `value=role`. A value may have `=` itself, as names of LDAP have.
fn mapped_role(entry: &str) -> Option<(&str, Role)> {
    let (value, role) = entry.rsplit_once('=')?;
    Some((value, role.parse().ok()?)).filter(|(value, _)| !value.is_empty())
}

/// Parses an address of the provider. Whoever answers there decides who the callers are, so it is asked over TLS, but for
/// this machine itself.
pub(crate) fn provider_url(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| format!("`{text}` is not a URL: {error}"))?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err("a user name or password in the URL is not used; leave it out".to_owned());
    }
    match url.scheme() {
        "https" => Ok(url),
        "http" if is_this_machine(&url) => Ok(url),
        _ => Err(format!("`{text}` must be https (http on this machine only)")),
    }
}

/// Whether a URL is of this machine.
pub(crate) fn is_this_machine(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> OidcSettings {
        OidcSettings {
            issuer: Some("https://id.example.org/realms/data".to_owned()),
            audience: vec!["querent".to_owned()],
            ..OidcSettings::default()
        }
    }

    #[test]
    fn what_is_missing_or_unsafe_is_said_with_its_setting() {
        assert_eq!(OidcSettings::default().fault(), None);
        assert_eq!(settings().fault(), None);
        let faults = [
            (OidcSettings { issuer: None, ..settings() }, "auth.oidc.issuer"),
            (OidcSettings { issuer: Some("http://id.example.org".to_owned()), ..settings() }, "auth.oidc.issuer"),
            (OidcSettings { issuer: Some("id.example.org".to_owned()), ..settings() }, "auth.oidc.issuer"),
            (
                OidcSettings { issuer: Some("https://me:pw@id.example.org".to_owned()), ..settings() },
                "auth.oidc.issuer",
            ),
            (OidcSettings { jwks_url: Some("http://10.0.0.1/keys".to_owned()), ..settings() }, "auth.oidc.jwks_url"),
            (OidcSettings { audience: Vec::new(), ..settings() }, "auth.oidc.audience"),
            (OidcSettings { subject_claim: String::new(), ..settings() }, "auth.oidc.subject_claim"),
            (OidcSettings { role_map: vec!["boss=owner".to_owned()], ..settings() }, "auth.oidc.role_map"),
            (
                OidcSettings { attribute_claims: vec!["a".to_owned(), "a=b".to_owned()], ..settings() },
                "auth.oidc.attribute_claims",
            ),
        ];
        for (settings, key) in faults {
            assert_eq!(settings.fault().map(|(key, _)| key), Some(key), "{settings:?}");
        }
        let local = OidcSettings { issuer: Some("http://127.0.0.1:9000/".to_owned()), ..settings() };
        assert_eq!(local.fault(), None, "a provider on this machine needs no TLS");
    }

    #[test]
    fn a_mapped_value_may_be_a_name_of_ldap() {
        assert_eq!(mapped_role("cn=admins,ou=it=admin"), Some(("cn=admins,ou=it", Role::Admin)));
        assert_eq!(mapped_role("=read"), None);
        assert_eq!(mapped_role("read"), None);
    }
}
