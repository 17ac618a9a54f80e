//! Signed tokens (JWT) of an identity provider: whose they are, for whom, until when, and whether the provider signed them.

use chrono::Utc;
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Validation, decode, decode_header};
use querent_catalog::Principal;
use serde_json::{Map, Value};

use super::claims::ClaimRules;
use super::provider_keys::{NoKey, ProviderKeys};
use super::signatures;
use super::unauthenticated;
use crate::config::OidcSettings;
use crate::error::{ApiError, ErrorCode};
use crate::shutdown::Shutdown;

/// How far the clocks of the provider and of this server may be apart, in seconds.
const LEEWAY: u64 = 60;
/// The most bytes of a token. Headers of requests are hardly longer.
const MAX_TOKEN: usize = 64 << 10;

/// Takes the tokens of one issuer.
pub struct OidcVerifier {
    issuer: String,
    audience: Vec<String>,
    rules: ClaimRules,
    keys: ProviderKeys,
}

impl OidcVerifier {
    /// Makes one of the settings; `None` where no issuer is named. The provider is asked for its keys when the first token
    /// comes. Errors: an address that is none.
    pub(crate) fn new(settings: &OidcSettings, tasks: Shutdown) -> Result<Option<Self>, String> {
        let Some(issuer) = &settings.issuer else { return Ok(None) };
        signatures::install();
        let keys = ProviderKeys::new(issuer, settings.jwks_url.as_deref(), tasks)?;
        let (issuer, audience) = (issuer.clone(), settings.audience.clone());
        Ok(Some(Self { issuer, audience, rules: ClaimRules::new(settings), keys }))
    }

    /// Returns the caller with this token. Errors: `unauthenticated`, `identity_provider_unavailable`.
    pub(super) async fn principal_for(&self, token: &str) -> Result<Principal, ApiError> {
        let header = decode_header(token).map_err(|_| refused_algorithm())?;
        if !signatures::ALGORITHMS.contains(&header.alg) {
            return Err(refused_algorithm());
        }
        if header.crit.is_some() {
            return Err(unauthenticated("the token's header has `crit`: extensions that this server does not know"));
        }
        let key = self.keys.find(header.kid.as_deref(), header.alg).await.map_err(|reason| match reason {
            NoKey::Unknown => unauthenticated("the token is signed with a key that its issuer does not have"),
            NoKey::Unavailable => unavailable(),
        })?;
        let mut validation = Validation::new(header.alg);
        validation.leeway = LEEWAY;
        validation.validate_nbf = true;
        validation.set_issuer(&[&self.issuer]);
        validation.set_audience(&self.audience);
        validation.set_required_spec_claims(&["exp", "iss", "aud"]);
        let decoded = decode::<Map<String, Value>>(token, &key, &validation);
        let claims = decoded.map_err(|error| refusal(error.kind()))?.claims;
        check_issued_at(&claims)?;
        self.rules.principal(&claims).map_err(|reason| unauthenticated(&reason))
    }
}

/// Whether a token looks like a JWT: a JSON object in base64, and two dots.
pub(super) fn looks_signed(token: &str) -> bool {
    token.starts_with("eyJ") && token.len() <= MAX_TOKEN && token.bytes().filter(|byte| *byte == b'.').count() == 2
}

/// A token of a time to come was not issued by a provider whose clock is right.
fn check_issued_at(claims: &Map<String, Value>) -> Result<(), ApiError> {
    let Some(issued_at) = claims.get("iat") else { return Ok(()) };
    let latest = Utc::now().timestamp() as f64 + LEEWAY as f64;
    match issued_at.as_f64() {
        Some(at) if at <= latest => Ok(()),
        Some(_) => Err(unauthenticated("the token was issued in the future (`iat`); compare the clocks")),
        None => Err(unauthenticated("claim `iat` of the token is not a time")),
    }
}

/// What is wrong with a token, as far as whoever sent it may know.
fn refusal(kind: &ErrorKind) -> ApiError {
    match kind {
        ErrorKind::ExpiredSignature => unauthenticated("the token has expired (`exp`); get a new one"),
        ErrorKind::ImmatureSignature => unauthenticated("the token is not valid yet (`nbf`)"),
        ErrorKind::InvalidIssuer => unauthenticated("the token is of another issuer (`iss`)"),
        ErrorKind::InvalidAudience => unauthenticated("the token is for another service (`aud`)"),
        ErrorKind::InvalidSignature => unauthenticated("the token's signature is not its issuer's"),
        ErrorKind::MissingRequiredClaim(claim) => unauthenticated(&format!("the token has no valid claim `{claim}`")),
        ErrorKind::InvalidClaimFormat(claim) => unauthenticated(&format!("claim `{claim}` of the token is malformed")),
        _ => unauthenticated("the token is malformed"),
    }
}

fn refused_algorithm() -> ApiError {
    let names = signatures::ALGORITHMS.map(|algorithm| format!("{algorithm:?}")).join(", ");
    unauthenticated(&format!("the token's header is malformed, or its algorithm is none of {names}"))
}

fn unavailable() -> ApiError {
    let message = "the identity provider that signed the token does not answer, and its key is not known here";
    ApiError::new(ErrorCode::IdentityProviderUnavailable, message)
        .with_hint("try again in a second; the server's log says what the provider answered")
}
