//! Approval tokens: the proof that a call in a client's history is one for which this server asked for approval. A token
//! is a JWT (HS256), valid for 30 days, for one call with its tool and arguments, and for one caller.
//!
//! A token alone executes nothing: the server's own record of the call must wait for a decision too.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, Duration, Utc};
use querent_agent::WaitingCall;
use querent_agent::protocols::holmes::{ApprovalSigner, HistoryCall};
use ring::hmac;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tokio::io::AsyncWriteExt;
use uuid::Uuid;

use crate::config::Settings;

/// The file of the key, in the data folder.
const KEY_FILE: &str = "holmes-approvals.key";
const KEY_BYTES: usize = 32;
const HEADER: &str = r#"{"alg":"HS256","typ":"JWT"}"#;

/// Signs tokens and checks them.
#[derive(Debug, Clone)]
pub(super) struct ApprovalKey(hmac::Key);

#[derive(Debug, Serialize, Deserialize)]
struct Claims {
    sub: String,
    tool_call_id: String,
    tool_name: String,
    args_hash: String,
    iat: i64,
    exp: i64,
}

impl ApprovalKey {
    /// Returns the key of a server: of servers that share a catalog one for all of them, where they have `cluster.key`; else
    /// that of its data folder.
    pub(super) async fn of_server(settings: &Settings) -> Self {
        let shared = settings.cluster.key.as_ref().filter(|_| settings.catalog.url.is_some());
        match shared {
            Some(key) => Self::new(&Sha256::digest(format!("approvals of holmes\n{key}"))),
            None => Self::of_folder(&settings.data).await,
        }
    }

    /// Reads the key of a data folder, or makes it. If it cannot be stored, tokens do not outlive the process.
    async fn of_folder(data: &Path) -> Self {
        let path = data.join(KEY_FILE);
        if let Ok(secret) = tokio::fs::read(&path).await
            && secret.len() == KEY_BYTES
        {
            return Self::new(&secret);
        }
        // Two version 4 UUIDs hold 244 random bits from the system's generator.
        let secret = [Uuid::new_v4().into_bytes(), Uuid::new_v4().into_bytes()].concat();
        if let Err(error) = write_key_file(&path, &secret).await {
            tracing::warn!(path = %path.display(), %error, "the key of approval tokens cannot be kept; they end with the process");
        }
        Self::new(&secret)
    }

    fn new(secret: &[u8]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, secret))
    }

    /// Returns a signer of tokens for `subject`.
    pub(super) fn signer(&self, subject: &str) -> Box<dyn ApprovalSigner> {
        Box::new(Signer { key: self.clone(), subject: subject.to_owned() })
    }

    /// Whether `call` has a token that was made for it and for `subject` and has not expired.
    pub(super) fn is_valid(&self, call: &HistoryCall, subject: &str, now: DateTime<Utc>) -> bool {
        let Some(claims) = call.token.as_deref().and_then(|token| self.open(token)) else { return false };
        claims.sub == subject
            && claims.tool_call_id == call.id
            && claims.tool_name == call.name
            && claims.args_hash == hash_of(&call.arguments)
            && claims.exp > now.timestamp()
    }

    fn seal(&self, claims: &Claims) -> String {
        let payload = serde_json::to_vec(claims).unwrap_or_default();
        let signed = format!("{}.{}", URL_SAFE_NO_PAD.encode(HEADER), URL_SAFE_NO_PAD.encode(payload));
        let signature = hmac::sign(&self.0, signed.as_bytes());
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature.as_ref()))
    }

    fn open(&self, token: &str) -> Option<Claims> {
        let (signed, signature) = token.rsplit_once('.')?;
        let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
        hmac::verify(&self.0, signed.as_bytes(), &signature).ok()?;
        let (header, payload) = signed.split_once('.')?;
        if URL_SAFE_NO_PAD.decode(header).ok()? != HEADER.as_bytes() {
            return None;
        }
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(payload).ok()?).ok()
    }
}

struct Signer {
    key: ApprovalKey,
    subject: String,
}

impl ApprovalSigner for Signer {
    fn sign(&self, call: &WaitingCall, at: DateTime<Utc>) -> String {
        self.key.seal(&Claims {
            sub: self.subject.clone(),
            tool_call_id: call.call_id.clone(),
            tool_name: call.name.clone(),
            args_hash: hash_of(&call.args_raw),
            iat: at.timestamp(),
            exp: (at + Duration::days(30)).timestamp(),
        })
    }
}

fn hash_of(arguments: &str) -> String {
    URL_SAFE_NO_PAD.encode(Sha256::digest(arguments.as_bytes()))
}

/// Writes a file that only its owner may read.
async fn write_key_file(path: &Path, secret: &[u8]) -> std::io::Result<()> {
    let mut options = tokio::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    options.mode(0o600);
    let mut file = options.open(path).await?;
    file.write_all(secret).await?;
    file.sync_all().await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting() -> WaitingCall {
        WaitingCall {
            item_id: "c1".to_owned(),
            call_id: "c1".to_owned(),
            name: "insert_rows".to_owned(),
            args_raw: "{}".to_owned(),
            description: String::new(),
            approval: true,
        }
    }

    fn returned(token: Option<String>) -> HistoryCall {
        HistoryCall {
            id: "c1".to_owned(),
            name: "insert_rows".to_owned(),
            arguments: "{}".to_owned(),
            token,
            is_approval: true,
            is_frontend: false,
        }
    }

    #[test]
    fn a_token_is_good_for_its_call_and_caller_and_for_thirty_days() {
        let (key, now) = (ApprovalKey::new(&[7; 32]), Utc::now());
        let token = key.signer("ann").sign(&waiting(), now);
        let call = returned(Some(token.clone()));
        assert!(key.is_valid(&call, "ann", now));
        assert!(key.is_valid(&call, "ann", now + Duration::days(29)));
        assert!(!key.is_valid(&call, "ann", now + Duration::days(30)));
        assert!(!key.is_valid(&call, "bob", now));
        assert!(!key.is_valid(&HistoryCall { id: "c2".to_owned(), ..call.clone() }, "ann", now));
        assert!(!key.is_valid(&HistoryCall { name: "drop_table".to_owned(), ..call.clone() }, "ann", now));
        assert!(!key.is_valid(&HistoryCall { arguments: "{\"a\":1}".to_owned(), ..call.clone() }, "ann", now));
        assert!(!ApprovalKey::new(&[8; 32]).is_valid(&call, "ann", now));
        assert_eq!(token.split('.').count(), 3);
    }

    #[test]
    fn what_is_no_token_is_refused() {
        let (key, now) = (ApprovalKey::new(&[7; 32]), Utc::now());
        let good = key.signer("ann").sign(&waiting(), now);
        let (_, rest) = good.split_once('.').unwrap();
        let unsigned = format!("{}.{rest}", URL_SAFE_NO_PAD.encode(r#"{"alg":"none","typ":"JWT"}"#));
        for bad in ["", ".", "..", "a.b.c", good.trim_end_matches(|_| true), unsigned.as_str(), &good[..good.len() - 2]]
        {
            assert!(!key.is_valid(&returned(Some(bad.to_owned())), "ann", now), "{bad}");
        }
        assert!(!key.is_valid(&returned(None), "ann", now));
    }
}
