//! The public keys of an identity provider: fetched when they are needed, kept while they are fresh, fetched again for a
//! key that is not among them.
//!
//! Invariant: what callers send makes this server ask the provider once in [`PAUSE`] at most, and one fetch at a time.
//! A fetch is a task of the server: the caller who caused it may go away.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use http::HeaderMap;
use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyAlgorithm, KeyOperations, PublicKeyUse};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey, DecodingKeyKind};
use parking_lot::RwLock;
use querent_catalog::outbound::with_causes;
use reqwest::redirect::Policy;
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::{Mutex, OwnedMutexGuard};
use url::Url;

use crate::config::{is_this_machine, provider_url};
use crate::shutdown::Shutdown;

/// How long an answer of the provider may take.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The most bytes of an answer.
const MAX_ANSWER: usize = 1 << 20;
/// The most keys. Providers have two or three.
const MAX_KEYS: usize = 100;
/// How long the provider is left alone after it was asked, where there are keys.
const PAUSE: Duration = Duration::from_secs(10);
/// The same while there are none, so that nobody is let in.
const PAUSE_WITHOUT_KEYS: Duration = Duration::from_secs(1);
/// How long keys are fresh where the provider does not say.
const FRESH: Duration = Duration::from_secs(600);
/// The longest that they are, whatever it says: a key that it has withdrawn must not be taken for ever.
const LONGEST_FRESH: Duration = Duration::from_secs(86_400);
/// How long after they are fresh keys are used while they are fetched anew.
const STALE: Duration = Duration::from_secs(60);
/// The fewest bits of an RSA key's modulus.
const RSA_BITS: usize = 2_048;

/// The keys of an issuer. Cheap to clone.
#[derive(Clone)]
pub(super) struct ProviderKeys {
    shared: Arc<Shared>,
}

struct Shared {
    issuer: String,
    /// Unset: as the issuer's configuration says.
    jwks_url: Option<Url>,
    http: reqwest::Client,
    tasks: Shutdown,
    fetched: RwLock<Option<Arc<FetchedKeys>>>,
    /// Held while they are fetched: when that began last.
    fetching: Arc<Mutex<Option<Instant>>>,
    /// Whether the last fetch failed.
    has_failed: AtomicBool,
}

struct FetchedKeys {
    keys: Vec<ProviderKey>,
    fresh_until: Instant,
}

#[derive(Clone)]
struct ProviderKey {
    id: Option<String>,
    algorithm: Option<KeyAlgorithm>,
    key: DecodingKey,
}

/// Why there is no key for a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoKey {
    /// The provider has none of that name and kind.
    Unknown,
    /// The provider does not answer.
    Unavailable,
}

/// The provider's configuration, as OpenID Connect Discovery has it.
#[derive(Deserialize)]
struct ProviderConfiguration {
    issuer: String,
    jwks_uri: String,
}

#[derive(Deserialize)]
struct KeySetDocument {
    keys: Vec<Value>,
}

impl ProviderKeys {
    /// Prepares for the keys of an issuer; nothing is fetched yet.
    /// Errors: an address that is none, a client that cannot be made.
    pub(super) fn new(issuer: &str, jwks_url: Option<&str>, tasks: Shutdown) -> Result<Self, String> {
        let jwks_url = jwks_url.map(provider_url).transpose()?;
        let client = reqwest::Client::builder().timeout(TIMEOUT).redirect(Policy::none());
        let asked = jwks_url.clone().map_or_else(|| provider_url(issuer), Ok)?;
        let client = if is_this_machine(&asked) { client.no_proxy() } else { client };
        let http = client.build().map_err(|error| with_causes(&error))?;
        let (issuer, fetched, fetching) = (issuer.to_owned(), RwLock::default(), Arc::default());
        let has_failed = AtomicBool::new(false);
        Ok(Self { shared: Arc::new(Shared { issuer, jwks_url, http, tasks, fetched, fetching, has_failed }) })
    }

    /// Returns the key of that name, or without a name the only one that a token of that algorithm can be of.
    pub(super) async fn find(&self, id: Option<&str>, algorithm: Algorithm) -> Result<DecodingKey, NoKey> {
        if let Some(fetched) = self.fetched()
            && !self.is_too_old(&fetched)
            && let Some(key) = fetched.find(id, algorithm)
        {
            if fetched.fresh_until < Instant::now() {
                self.refresh_meanwhile();
            }
            return Ok(key);
        }
        let has_failed = self.refresh().await;
        let found = self.fetched().and_then(|fetched| fetched.find(id, algorithm));
        found.ok_or(if has_failed { NoKey::Unavailable } else { NoKey::Unknown })
    }

    /// Whether the provider is asked before these keys are used: some may be withdrawn. One that just failed is not waited for.
    fn is_too_old(&self, fetched: &FetchedKeys) -> bool {
        fetched.fresh_until + STALE < Instant::now() && !self.has_failed()
    }

    fn has_failed(&self) -> bool {
        self.shared.has_failed.load(Ordering::Relaxed)
    }

    fn fetched(&self) -> Option<Arc<FetchedKeys>> {
        self.shared.fetched.read().clone()
    }

    /// Fetches the keys unless that was done a moment ago, or waits for those who do. Returns whether it failed.
    async fn refresh(&self) -> bool {
        let (this, fetching) = (self.clone(), Arc::clone(&self.shared.fetching));
        let fetch = self.shared.tasks.spawn(async move {
            let last = fetching.lock_owned().await;
            this.fetch(last).await;
        });
        fetch.await.is_err() || self.has_failed()
    }

    /// Fetches the keys while those that are there are used, unless somebody does so.
    fn refresh_meanwhile(&self) {
        if let Ok(last) = Arc::clone(&self.shared.fetching).try_lock_owned() {
            let this = self.clone();
            self.shared.tasks.spawn(async move { this.fetch(last).await });
        }
    }

    async fn fetch(&self, mut last: OwnedMutexGuard<Option<Instant>>) {
        let pause = if self.fetched().is_some() { PAUSE } else { PAUSE_WITHOUT_KEYS };
        if last.is_some_and(|began| began.elapsed() < pause) {
            return;
        }
        *last = Some(Instant::now());
        let fetched = self.shared.fetch().await;
        self.shared.has_failed.store(fetched.is_err(), Ordering::Relaxed);
        match fetched {
            Ok(fetched) => {
                tracing::info!(issuer = self.shared.issuer, keys = fetched.keys.len(), "fetched the provider's keys");
                *self.shared.fetched.write() = Some(Arc::new(fetched));
            }
            Err(reason) => {
                tracing::warn!(issuer = self.shared.issuer, reason, "the identity provider's keys were not fetched");
            }
        }
    }
}

impl Shared {
    async fn fetch(&self) -> Result<FetchedKeys, String> {
        let url = match &self.jwks_url {
            Some(url) => url.clone(),
            None => self.discover().await?,
        };
        let (headers, body) = self.get(url).await?;
        let document: KeySetDocument = serde_json::from_slice(&body).map_err(|error| format!("no key set: {error}"))?;
        if document.keys.len() > MAX_KEYS {
            return Err(format!("the key set has {} keys, and {MAX_KEYS} are taken", document.keys.len()));
        }
        let keys: Vec<ProviderKey> = document.keys.into_iter().filter_map(provider_key).collect();
        if keys.is_empty() {
            return Err("the key set has no key that signs as this server takes it".to_owned());
        }
        Ok(FetchedKeys { keys, fresh_until: Instant::now() + fresh_for(&headers) })
    }

    async fn discover(&self) -> Result<Url, String> {
        let url = provider_url(&format!("{}/.well-known/openid-configuration", self.issuer.trim_end_matches('/')))?;
        let (_, body) = self.get(url).await?;
        let found: ProviderConfiguration =
            serde_json::from_slice(&body).map_err(|error| format!("no configuration of a provider: {error}"))?;
        if found.issuer != self.issuer {
            return Err(format!("it calls itself `{}`, and auth.oidc.issuer is `{}`", found.issuer, self.issuer));
        }
        provider_url(&found.jwks_uri)
    }

    async fn get(&self, url: Url) -> Result<(HeaderMap, Vec<u8>), String> {
        let shown = url.to_string();
        let failed = |error: reqwest::Error| format!("{shown}: {}", with_causes(&error.without_url()));
        let mut response = self.http.get(url).send().await.map_err(failed)?;
        if !response.status().is_success() {
            return Err(format!("{shown}: it answered {}", response.status()));
        }
        let headers = response.headers().clone();
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(failed)? {
            if body.len() + chunk.len() > MAX_ANSWER {
                return Err(format!("{shown}: the answer has more than {MAX_ANSWER} bytes"));
            }
            body.extend_from_slice(&chunk);
        }
        Ok((headers, body))
    }
}

impl FetchedKeys {
    fn find(&self, id: Option<&str>, algorithm: Algorithm) -> Option<DecodingKey> {
        let mut fitting = self.keys.iter().filter(|key| key.fits(algorithm));
        match id {
            Some(id) => fitting.find(|key| key.id.as_deref() == Some(id)).map(|key| key.key.clone()),
            None => fitting.next().filter(|_| fitting.next().is_none()).map(|key| key.key.clone()),
        }
    }
}

impl ProviderKey {
    fn fits(&self, algorithm: Algorithm) -> bool {
        let family = match algorithm {
            Algorithm::RS256 | Algorithm::RS384 | Algorithm::RS512 => AlgorithmFamily::Rsa,
            Algorithm::ES256 => AlgorithmFamily::Ec,
            Algorithm::EdDSA => AlgorithmFamily::Ed,
            _ => return false,
        };
        let named = format!("{algorithm:?}").parse().ok();
        self.key.family() == family && (self.algorithm.is_none() || self.algorithm == named)
    }
}

/// Returns a key of the set that checks signatures as this server takes them; others are passed over.
fn provider_key(entry: Value) -> Option<ProviderKey> {
    let Jwk { common, algorithm } = serde_json::from_value(entry).ok()?;
    let is_taken = match &algorithm {
        AlgorithmParameters::RSA(_) => true,
        AlgorithmParameters::EllipticCurve(key) => key.curve == EllipticCurve::P256,
        AlgorithmParameters::OctetKeyPair(key) => key.curve == EllipticCurve::Ed25519,
        _ => false,
    };
    let signs = common.public_key_use.as_ref().is_none_or(|used| *used == PublicKeyUse::Signature)
        && common.key_operations.as_ref().is_none_or(|operations| operations.contains(&KeyOperations::Verify));
    if !is_taken || !signs {
        return None;
    }
    let (id, named) = (common.key_id.clone(), common.key_algorithm);
    let key = match DecodingKey::from_jwk(&Jwk { common, algorithm }).ok()? {
        rsa if rsa.family() == AlgorithmFamily::Rsa => long_enough(&rsa).or_else(|| {
            tracing::warn!(key = id, "a key of the identity provider is left out: it has fewer than {RSA_BITS} bits");
            None
        })?,
        key => key,
    };
    Some(ProviderKey { id, algorithm: named, key })
}

/// Returns an RSA key as `ring` takes it, without leading zeros; `None` where it is too short.
fn long_enough(key: &DecodingKey) -> Option<DecodingKey> {
    let DecodingKeyKind::RsaModulusExponent { n, e } = key.kind() else { return None };
    let [n, e] = [n, e].map(|number| {
        let zeros = number.iter().take_while(|byte| **byte == 0).count();
        number.get(zeros..).unwrap_or_default()
    });
    let bits = n.len() * 8 - n.first()?.leading_zeros() as usize;
    (bits >= RSA_BITS).then(|| DecodingKey::from_rsa_raw_components(n, e))
}

/// How long an answer says that it is fresh, within bounds.
fn fresh_for(headers: &HeaderMap) -> Duration {
    let directives = headers.get_all(http::header::CACHE_CONTROL).iter().filter_map(|value| value.to_str().ok());
    let mut ages = directives.flat_map(|value| value.split(',')).filter_map(|directive| {
        let (name, seconds) = directive.trim().split_once('=')?;
        name.eq_ignore_ascii_case("max-age").then(|| seconds.trim_matches('"').parse().ok()).flatten()
    });
    ages.next().map_or(FRESH, Duration::from_secs).clamp(PAUSE, LONGEST_FRESH)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use serde_json::json;

    use super::*;

    #[test]
    fn freshness_is_as_the_provider_says_within_bounds() {
        let fresh = |text: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert("cache-control", HeaderValue::from_static(text));
            fresh_for(&headers)
        };
        assert_eq!(fresh("public, max-age=3600, must-revalidate"), Duration::from_secs(3_600));
        assert_eq!(fresh("Max-Age=\"60\""), Duration::from_secs(60));
        assert_eq!(fresh("max-age=0"), PAUSE);
        assert_eq!(fresh("max-age=99999999999"), LONGEST_FRESH);
        assert_eq!(fresh("s-maxage=5, no-store"), FRESH);
        assert_eq!(fresh_for(&HeaderMap::new()), FRESH);
    }

    #[test]
    fn keys_that_cannot_check_a_signature_here_are_passed_over() {
        let modulus = |bytes: usize| {
            use base64::Engine as _;
            base64::prelude::BASE64_URL_SAFE_NO_PAD.encode(vec![0xff; bytes])
        };
        let rsa = json!({ "kty": "RSA", "kid": "a", "n": modulus(256), "e": "AQAB" });
        let with = |name: &str, value: Value| {
            let mut key = rsa.clone();
            key[name] = value;
            provider_key(key)
        };
        assert!(provider_key(rsa.clone()).is_some());
        assert!(with("use", json!("enc")).is_none());
        assert!(with("key_ops", json!(["encrypt"])).is_none());
        assert!(with("n", json!(modulus(128))).is_none(), "1,024 bits");
        assert!(provider_key(json!({ "kty": "oct", "kid": "a", "k": "c2VjcmV0" })).is_none());
        assert!(provider_key(json!({ "kty": "EC", "crv": "P-384", "x": "AA", "y": "AA" })).is_none());
        assert!(provider_key(json!({ "kty": "quantum" })).is_none());
        let named = with("alg", json!("RS512")).unwrap();
        assert!(named.fits(Algorithm::RS512) && !named.fits(Algorithm::RS256) && !named.fits(Algorithm::ES256));
        let other = with("alg", json!("RSA-OAEP")).unwrap();
        assert!(!other.fits(Algorithm::RS256), "a key of another purpose");
        // Without a name the key must be the only one.
        let keys = |count: usize| FetchedKeys {
            keys: vec![provider_key(rsa.clone()).unwrap(); count],
            fresh_until: Instant::now(),
        };
        assert!(keys(1).find(None, Algorithm::RS256).is_some());
        assert!(keys(2).find(None, Algorithm::RS256).is_none());
    }
}
