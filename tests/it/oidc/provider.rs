//! An identity provider of a test: its configuration, its keys, and the tokens that it signs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use axum::{Json, Router};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use parking_lot::Mutex;
use querent_flight::config::Settings;
use ring::rand::SystemRandom;
use ring::signature::{
    self, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _, RsaEncoding, RsaKeyPair,
};
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::pki_types::pem::PemObject;
use serde_json::{Value, json};

/// For whom its tokens are.
pub const AUDIENCE: &str = "querent";

/// A running provider.
#[derive(Clone)]
pub struct IdentityProvider {
    pub issuer: String,
    answers: Arc<ProviderAnswers>,
}

#[derive(Default)]
struct ProviderAnswers {
    issuer: Mutex<String>,
    keys: Mutex<Vec<Value>>,
    down: AtomicBool,
    asked_for_keys: AtomicUsize,
}

/// A key that signs tokens.
pub struct SigningKey {
    pub id: &'static str,
    pub algorithm: &'static str,
    kind: KeyPairKind,
}

enum KeyPairKind {
    Rsa(&'static dyn RsaEncoding, Box<RsaKeyPair>),
    Ecdsa(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
}

impl IdentityProvider {
    /// Starts one that has these keys.
    pub async fn start(keys: &[&SigningKey]) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let issuer = format!("http://{}/realms/data", listener.local_addr().unwrap());
        let answers = Arc::new(ProviderAnswers::default());
        *answers.issuer.lock() = issuer.clone();
        let routes = Router::new()
            .route("/realms/data/.well-known/openid-configuration", get(configuration))
            .route("/realms/data/keys", get(key_set))
            .route("/moved", get(|| async { Redirect::temporary("/realms/data/keys") }))
            .route("/huge", get(|| async { " ".repeat((1 << 20) + 1) }))
            .with_state(Arc::clone(&answers));
        tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
        let provider = Self { issuer, answers };
        provider.rotate(keys);
        provider
    }

    /// Has these keys from now on.
    pub fn rotate(&self, keys: &[&SigningKey]) {
        *self.answers.keys.lock() = keys.iter().map(|key| key.jwk()).collect();
    }

    /// ProviderAnswers with an error, or no longer.
    pub fn set_down(&self, down: bool) {
        self.answers.down.store(down, Ordering::SeqCst);
    }

    /// Calls itself otherwise than its address.
    pub fn rename(&self, issuer: &str) {
        *self.answers.issuer.lock() = issuer.to_owned();
    }

    /// How often its keys were asked for.
    pub fn asked_for_keys(&self) -> usize {
        self.answers.asked_for_keys.load(Ordering::SeqCst)
    }

    /// The URL of another of its routes.
    pub fn url(&self, path: &str) -> String {
        self.issuer.replace("/realms/data", path)
    }

    /// Makes a server take its tokens.
    pub fn configure(&self, settings: &mut Settings) {
        settings.auth.oidc.issuer = Some(self.issuer.clone());
        settings.auth.oidc.audience = vec![AUDIENCE.to_owned()];
    }

    /// The claims of a token that is in order.
    pub fn claims(&self, subject: &str) -> Value {
        let now = chrono::Utc::now().timestamp();
        json!({ "iss": self.issuer, "aud": AUDIENCE, "sub": subject, "iat": now, "exp": now + 300 })
    }

    /// The same, with other claims in the place of some; null takes one out.
    pub fn claims_with(&self, changed: Value) -> Value {
        let mut claims = self.claims("anna");
        for (name, value) in changed.as_object().unwrap() {
            match value {
                Value::Null => drop(claims.as_object_mut().unwrap().shift_remove(name)),
                value => claims[name] = value.clone(),
            }
        }
        claims
    }
}

async fn configuration(State(answers): State<Arc<ProviderAnswers>>) -> Response {
    if answers.down.load(Ordering::SeqCst) {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    let issuer = answers.issuer.lock().clone();
    Json(json!({ "issuer": issuer, "jwks_uri": format!("{issuer}/keys"), "response_types_supported": ["code"] }))
        .into_response()
}

async fn key_set(State(answers): State<Arc<ProviderAnswers>>) -> Response {
    answers.asked_for_keys.fetch_add(1, Ordering::SeqCst);
    if answers.down.load(Ordering::SeqCst) {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    Json(json!({ "keys": *answers.keys.lock() })).into_response()
}

impl SigningKey {
    /// The RSA key of a file of this folder. `ring` makes none.
    pub fn rsa(id: &'static str, algorithm: &'static str, pem: &str) -> Self {
        let encoding: &'static dyn RsaEncoding = match algorithm {
            "RS384" => &signature::RSA_PKCS1_SHA384,
            "RS512" => &signature::RSA_PKCS1_SHA512,
            _ => &signature::RSA_PKCS1_SHA256,
        };
        let der = PrivatePkcs8KeyDer::from_pem_slice(pem.as_bytes()).unwrap();
        let pair = RsaKeyPair::from_pkcs8(der.secret_pkcs8_der()).unwrap();
        Self { id, algorithm, kind: KeyPairKind::Rsa(encoding, Box::new(pair)) }
    }

    /// A new key of P-256.
    pub fn ecdsa(id: &'static str) -> Self {
        let random = SystemRandom::new();
        let der = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, der.as_ref(), &random).unwrap();
        Self { id, algorithm: "ES256", kind: KeyPairKind::Ecdsa(pair) }
    }

    /// A new key of Ed25519.
    pub fn ed25519(id: &'static str) -> Self {
        let der = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        Self { id, algorithm: "EdDSA", kind: KeyPairKind::Ed25519(Ed25519KeyPair::from_pkcs8(der.as_ref()).unwrap()) }
    }

    /// A token with these claims.
    pub fn sign(&self, claims: &Value) -> String {
        self.sign_with(&json!({ "alg": self.algorithm, "kid": self.id, "typ": "JWT" }), claims)
    }

    /// A token with this header, whatever it says of the algorithm.
    pub fn sign_with(&self, header: &Value, claims: &Value) -> String {
        let message = message(header, claims);
        let random = SystemRandom::new();
        let signature = match &self.kind {
            KeyPairKind::Rsa(encoding, pair) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(*encoding, &random, message.as_bytes(), &mut signature).unwrap();
                signature
            }
            KeyPairKind::Ecdsa(pair) => pair.sign(&random, message.as_bytes()).unwrap().as_ref().to_vec(),
            KeyPairKind::Ed25519(pair) => pair.sign(message.as_bytes()).as_ref().to_vec(),
        };
        format!("{message}.{}", encoded(&signature))
    }

    /// Its public half, as bytes: of RSA the modulus.
    pub fn public(&self) -> Vec<u8> {
        match &self.kind {
            KeyPairKind::Rsa(_, pair) => ring::rsa::PublicKeyComponents::<Vec<u8>>::from(pair.public()).n,
            KeyPairKind::Ecdsa(pair) => pair.public_key().as_ref().to_vec(),
            KeyPairKind::Ed25519(pair) => pair.public_key().as_ref().to_vec(),
        }
    }

    fn jwk(&self) -> Value {
        let public = self.public();
        let mut jwk = match &self.kind {
            KeyPairKind::Rsa(..) => json!({ "kty": "RSA", "n": encoded(&public), "e": "AQAB" }),
            // After a byte that says that both coordinates follow.
            KeyPairKind::Ecdsa(_) => {
                json!({ "kty": "EC", "crv": "P-256", "x": encoded(&public[1..33]), "y": encoded(&public[33..]) })
            }
            KeyPairKind::Ed25519(_) => json!({ "kty": "OKP", "crv": "Ed25519", "x": encoded(&public) }),
        };
        jwk["kid"] = json!(self.id);
        jwk["alg"] = json!(self.algorithm);
        jwk["use"] = json!("sig");
        jwk
    }
}

/// What is signed.
pub fn message(header: &Value, claims: &Value) -> String {
    format!("{}.{}", encoded(header.to_string().as_bytes()), encoded(claims.to_string().as_bytes()))
}

pub fn encoded(bytes: &[u8]) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}
