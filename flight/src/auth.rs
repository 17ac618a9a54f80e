//! Authentication: maps tokens to principals, for HTTP headers and gRPC metadata alike.
//!
//! Accepts bearer tokens, and basic auth with any user name and the token as the password. Without tokens every caller is an
//! administrator and an `Authorization` header is ignored. Tokens are kept as digests; those of the settings are compared in
//! constant time, those of the catalog are found by their digest. Signed tokens of an identity provider are not kept at all
//! (`oidc`). Where a request has no token, the certificate that its connection showed says who calls, if the settings name it.
//! `provider_keys` has its keys, `signatures` checks with them, `claims` says what a token's claims mean.

mod claims;
mod oidc;
mod provider_keys;
mod signatures;

use std::collections::HashMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use chrono::Utc;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use querent_catalog::{Catalog, Principal, Role};
use rustls::pki_types::CertificateDer;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use webpki::EndEntityCert;

use crate::config::{CertificateSettings, TokenSettings};
use crate::error::{ApiError, ErrorCode};

pub use oidc::OidcVerifier;

/// Go's Flight client, which is under ADBC, leaves the padding away.
pub(crate) const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The header in which the server itself writes the known name of a connection's certificate; one that a client sends is taken
/// away.
pub(crate) const CLIENT_CERTIFICATE: HeaderName = HeaderName::from_static("x-querent-client-certificate");

/// The tokens of the settings and of the catalog, and whom each stands for; and the issuer of others.
pub struct Authenticator {
    tokens: Vec<KnownToken>,
    /// Where further tokens are; keys of one protocol have none.
    catalog: Option<Arc<Catalog>>,
    /// Takes signed tokens; keys of one protocol are none.
    oidc: Option<OidcVerifier>,
    /// Whom clients' certificates stand for, by a name of them.
    certificates: HashMap<String, Principal>,
}

#[derive(Debug)]
struct KnownToken {
    digest: [u8; 32],
    principal: Principal,
}

impl Authenticator {
    /// Makes an authenticator of the settings' tokens. Without any, every caller is an administrator.
    pub fn new(tokens: &[TokenSettings]) -> Self {
        let tokens = tokens
            .iter()
            .map(|settings| KnownToken { digest: digest(&settings.token), principal: principal_of(settings) })
            .collect();
        Self { tokens, catalog: None, oidc: None, certificates: HashMap::new() }
    }

    /// The same, and the tokens that the catalog has at the time of a request.
    pub fn with_catalog(mut self, catalog: Arc<Catalog>) -> Self {
        self.catalog = Some(catalog);
        self
    }

    /// The same, and the signed tokens that `oidc` takes.
    pub fn with_oidc(mut self, oidc: Option<OidcVerifier>) -> Self {
        self.oidc = oidc;
        self
    }

    /// The same, and whom clients' certificates stand for.
    pub fn with_certificates(mut self, clients: &[CertificateSettings]) -> Self {
        let principal = |client: &CertificateSettings| {
            let subject = client.subject.as_ref().unwrap_or(&client.name);
            let principal = Principal::new(subject.as_str(), client.role.into());
            match &client.databases {
                Some(databases) => principal.with_databases(databases),
                None => principal,
            }
        };
        self.certificates = clients.iter().map(|client| (client.name.clone(), principal(client))).collect();
        self
    }

    /// Returns the name under which the settings know a client's certificate, which has been verified.
    pub(crate) fn known_certificate(&self, certificate: &CertificateDer<'_>) -> Option<HeaderValue> {
        if self.certificates.is_empty() {
            return None;
        }
        let known = certificate_names(certificate).into_iter().find(|name| self.certificates.contains_key(name))?;
        HeaderValue::from_str(&known).ok()
    }

    /// Whether there are no tokens, never were any in the catalog, and no issuer of others is known: then every caller may
    /// do everything.
    pub fn is_open(&self) -> bool {
        let knows_tokens = !self.tokens.is_empty() || self.oidc.is_some() || !self.certificates.is_empty();
        !knows_tokens && !self.catalog.as_ref().is_some_and(|catalog| catalog.tokens().any())
    }

    /// Returns the caller of a request with these headers (of HTTP, or `MetadataMap::as_ref()` of gRPC).
    /// Errors: `unauthenticated`, `identity_provider_unavailable`.
    pub async fn authenticate(&self, headers: &HeaderMap) -> Result<Principal, ApiError> {
        if self.is_open() {
            return Ok(Principal::local_admin());
        }
        match token_of(headers)? {
            Some(token) => self.principal_for(&token).await,
            None => self
                .certified(headers)
                .ok_or_else(|| unauthenticated("a token is needed; send `Authorization: Bearer <token>`")),
        }
    }

    /// Returns whom the certificate of a request's connection stands for.
    fn certified(&self, headers: &HeaderMap) -> Option<Principal> {
        let name = headers.get(CLIENT_CERTIFICATE)?.to_str().ok()?;
        self.certificates.get(name).cloned()
    }

    /// Returns the principal of that subject, if a token has it.
    pub(crate) fn principal_named(&self, subject: &str) -> Option<Principal> {
        let mut known = self.tokens.iter().map(|known| &known.principal).chain(self.certificates.values());
        let found = known.find(|principal| principal.subject() == subject).cloned();
        found.or_else(|| self.catalog.as_ref()?.tokens().principal_named(subject, Utc::now()))
    }

    /// Returns the principal that requests of that subject have now; `None` where no token has the subject any more, or several
    /// have it with different rights, of which nobody can say which are meant. Those of an identity provider are not known here.
    pub(crate) fn only_principal_of(&self, subject: &str) -> Option<Principal> {
        if self.is_open() {
            return Some(Principal::local_admin()).filter(|admin| admin.subject() == subject);
        }
        let mut all = self.principals_of(subject).into_iter();
        let first = all.next()?;
        all.all(|other| other == first).then_some(first)
    }

    /// Returns the principals that requests of that subject may have now, one of each token and certificate that has it. Those
    /// of an identity provider are not known here.
    pub(crate) fn principals_of(&self, subject: &str) -> Vec<Principal> {
        let of_settings = self.tokens.iter().map(|known| &known.principal).chain(self.certificates.values());
        let of_catalog = self.catalog.iter().flat_map(|catalog| catalog.tokens().principals_of(subject, Utc::now()));
        of_settings.filter(|one| one.subject() == subject).cloned().chain(of_catalog).collect()
    }

    /// Whether a token of the settings has that subject.
    pub(crate) fn is_of_settings(&self, subject: &str) -> bool {
        self.tokens.iter().any(|known| known.principal.subject() == subject)
    }

    /// Returns the token that a client sends after its handshake: the one that it sent now, once it is known to be valid. A
    /// server without tokens returns whatever it was sent, since it ignores it later. Errors: as [`Self::authenticate`].
    pub async fn handshake(&self, headers: &HeaderMap) -> Result<String, ApiError> {
        if self.is_open() {
            let token = token_of(headers).ok().flatten().filter(|token| !token.is_empty());
            return Ok(token.unwrap_or_else(|| "anonymous".to_owned()));
        }
        let token = token_of(headers)?
            .ok_or_else(|| unauthenticated("a token is needed; give it as the password, with any user name"))?;
        self.principal_for(&token).await?;
        Ok(token)
    }

    /// Returns the caller with this token. Errors: as [`Self::authenticate`].
    pub(crate) async fn principal_for(&self, token: &str) -> Result<Principal, ApiError> {
        let given = digest(token);
        let mut found = None;
        // No early exit: the time must not depend on which token matches.
        for known in &self.tokens {
            if bool::from(known.digest.ct_eq(&given)) {
                found = Some(&known.principal);
            }
        }
        let found = found.cloned().or_else(|| self.catalog.as_ref()?.tokens().principal_for(token, Utc::now()));
        match (found, &self.oidc) {
            (Some(principal), _) => Ok(principal),
            (None, Some(oidc)) if oidc::looks_signed(token) => oidc.principal_for(token).await,
            (None, _) => Err(unauthenticated("the token is not known to this server, or its time is over")),
        }
    }
}

/// Fails with `forbidden` unless the caller's role is `needed` or a later one.
pub fn require_role(principal: &Principal, needed: Role) -> Result<(), ApiError> {
    if principal.role() >= needed {
        return Ok(());
    }
    let (role, needed) = (principal.role().as_str(), needed.as_str());
    Err(ApiError::new(ErrorCode::Forbidden, format!("role {role} may not do this; it needs role {needed}")))
}

/// Returns the token in an `Authorization` header; `None` without one.
fn token_of(headers: &HeaderMap) -> Result<Option<String>, ApiError> {
    let Some(value) = headers.get(header::AUTHORIZATION) else {
        return Ok(None);
    };
    let malformed = || unauthenticated("the Authorization header is malformed; send `Authorization: Bearer <token>`");
    let value = value.to_str().map_err(|_| malformed())?;
    let (scheme, credentials) = value.split_once(' ').ok_or_else(malformed)?;
    let credentials = credentials.trim();
    if scheme.eq_ignore_ascii_case("bearer") {
        return Ok(Some(credentials.to_owned()));
    }
    if scheme.eq_ignore_ascii_case("basic") {
        let decoded = BASE64.decode(credentials).map_err(|_| malformed())?;
        let decoded = String::from_utf8(decoded).map_err(|_| malformed())?;
        let (_user, password) = decoded.split_once(':').ok_or_else(malformed)?;
        return Ok(Some(password.to_owned()));
    }
    Err(unauthenticated("the Authorization header's scheme is neither Bearer nor Basic"))
}

/// Returns the DNS names of a certificate.
fn certificate_names(certificate: &CertificateDer<'_>) -> Vec<String> {
    let parsed = EndEntityCert::try_from(certificate);
    parsed.map(|parsed| parsed.valid_dns_names().map(str::to_owned).collect()).unwrap_or_default()
}

fn principal_of(settings: &TokenSettings) -> Principal {
    let principal = Principal::new(settings.subject_or_default(), settings.role.into());
    match &settings.databases {
        Some(databases) => principal.with_databases(databases),
        None => principal,
    }
}

fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

fn unauthenticated(message: &str) -> ApiError {
    ApiError::new(ErrorCode::Unauthenticated, message)
}
