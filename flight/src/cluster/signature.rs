//! The signature of a request to a worker: an HMAC with the cluster's key over the method, the time, the version of the
//! sender, the headers that say what a task may use, and the first message of the body, which holds the plan and the task's
//! key. The messages that follow a plan carry nothing. The headers are signed by themselves, too, so that nothing of a
//! stranger's body is read.
//!
//! A signature is good for a few minutes, so that one that was read off a line does not open a worker for ever. It hides
//! nothing: plans and rows are as readable as the line is.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::{Bytes, BytesMut};
use futures::{Stream, StreamExt, stream};
use http::{HeaderMap, HeaderName, HeaderValue};
use http_body::{Body, Frame};
use http_body_util::BodyExt;
use ring::hmac;

const SIGNATURE: HeaderName = HeaderName::from_static("x-querent-cluster-signature");
const HEADERS_SIGNATURE: HeaderName = HeaderName::from_static("x-querent-cluster-headers");
const SIGNED_AT: HeaderName = HeaderName::from_static("x-querent-cluster-time");
const VERSION: HeaderName = HeaderName::from_static("x-querent-cluster-version");
/// The headers that a signature covers, by their beginnings.
const COVERED: [&str; 2] = ["x-querent-", "x-datafusion-"];
/// How far two servers' clocks may be apart, and how old a signature may be.
const GOOD_FOR: Duration = Duration::from_secs(300);
/// The bytes before a message of gRPC: whether it is compressed, and its length.
const MESSAGE_PREFIX: usize = 5;

/// The version of this server, which coordinator and workers must share.
pub(crate) const OWN_VERSION: &str = env!("CARGO_PKG_VERSION");

/// The key that the servers of a cluster share.
#[derive(Clone)]
pub(crate) struct ClusterKey(hmac::Key);

/// Why a request is not answered.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// It comes from a server of another version, or from none of ours.
    Version(String),
    /// It is not signed, or not with this key, or not now.
    Signature(String),
    /// It is no request of a coordinator.
    Malformed(String),
}

impl ClusterKey {
    pub(crate) fn new(secret: &str) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes()))
    }

    /// Signs a request whose body begins with `message`.
    pub(crate) fn sign(&self, path: &str, headers: &mut HeaderMap, message: &[u8]) {
        headers.insert(SIGNED_AT, HeaderValue::from(now().as_secs()));
        headers.insert(VERSION, HeaderValue::from_static(OWN_VERSION));
        headers.remove(SIGNATURE);
        headers.remove(HEADERS_SIGNATURE);
        for (name, message) in [(HEADERS_SIGNATURE, &[][..]), (SIGNATURE, message)] {
            let signature = hmac::sign(&self.0, &signed_text(path, headers, message));
            if let Ok(value) = HeaderValue::from_str(&hex(signature.as_ref())) {
                headers.insert(name, value);
            }
        }
    }

    /// Returns the signature of a text.
    pub(super) fn signature_of(&self, text: &[u8]) -> String {
        hex(hmac::sign(&self.0, text).as_ref())
    }

    /// Whether this is the signature of that text.
    pub(super) fn has_signed(&self, text: &[u8], signature: &str) -> bool {
        unhex(signature).is_some_and(|signature| hmac::verify(&self.0, text, &signature).is_ok())
    }

    /// Checks a request before its body is read.
    pub(crate) fn check_headers(&self, path: &str, headers: &HeaderMap) -> Result<(), Refusal> {
        let text = |name: &HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
        if !headers.contains_key(SIGNATURE) {
            return Err(Refusal::Signature(
                "the request is not signed with the cluster's key (cluster.key)".to_owned(),
            ));
        }
        match text(&VERSION) {
            Some(OWN_VERSION) => {}
            other => {
                let other = other.unwrap_or("unknown");
                let why = format!("this worker is of version {OWN_VERSION}, who asks is of version {other}");
                return Err(Refusal::Version(why));
            }
        }
        let signed_at = text(&SIGNED_AT).and_then(|time| time.parse().ok()).map_or(Duration::ZERO, Duration::from_secs);
        let apart = now().abs_diff(signed_at);
        if apart > GOOD_FOR {
            let why = format!("the request was signed {} s away from this worker's clock", apart.as_secs());
            return Err(Refusal::Signature(why));
        }
        let mut covered = headers.clone();
        covered.remove(SIGNATURE);
        let signature = covered.remove(HEADERS_SIGNATURE);
        self.verify(path, &covered, &[], signature.as_ref())
    }

    /// Checks the signature of a request whose body begins with `message`.
    pub(crate) fn check(&self, path: &str, headers: &HeaderMap, message: &[u8]) -> Result<(), Refusal> {
        let mut covered = headers.clone();
        let signature = covered.remove(SIGNATURE);
        self.verify(path, &covered, message, signature.as_ref())
    }

    fn verify(
        &self,
        path: &str,
        covered: &HeaderMap,
        message: &[u8],
        signature: Option<&HeaderValue>,
    ) -> Result<(), Refusal> {
        let signature = signature.and_then(|value| value.to_str().ok()).and_then(unhex).unwrap_or_default();
        hmac::verify(&self.0, &signed_text(path, covered, message), &signature).map_err(|_| {
            Refusal::Signature("the request is signed with another key than this worker's (cluster.key)".to_owned())
        })
    }
}

impl std::fmt::Debug for ClusterKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ClusterKey(***)")
    }
}

fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

fn signed_text(path: &str, headers: &HeaderMap, message: &[u8]) -> Vec<u8> {
    let is_covered = |name: &str| COVERED.iter().any(|prefix| name.starts_with(prefix));
    let mut covered: Vec<(&str, &[u8])> = headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_bytes()))
        .filter(|(name, _)| is_covered(name))
        .collect();
    covered.sort_unstable();
    let mut text = path.as_bytes().to_vec();
    for (name, value) in covered {
        text.push(b'\n');
        text.extend(name.as_bytes());
        text.push(b':');
        text.extend(value);
    }
    // Header values hold no line breaks, so where the message begins is certain.
    text.extend(b"\n\n");
    text.extend(message);
    text
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let pairs = text.as_bytes().chunks(2);
    pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

/// The first message of a body, with its prefix, and what was read beyond it.
pub(crate) struct FirstMessage {
    pub(crate) message: Bytes,
    pub(crate) beyond: Bytes,
}

/// Reads the first message of a gRPC body, of at most `most` bytes. `Ok(None)`: the body has none.
pub(crate) async fn first_message<B>(
    body: &mut B,
    most: usize,
) -> Result<Option<FirstMessage>, FirstMessageError<B::Error>>
where
    B: Body<Data = Bytes> + Unpin,
{
    let mut read = BytesMut::new();
    loop {
        if let Some((prefix, _)) = read.split_first_chunk::<MESSAGE_PREFIX>() {
            let [_, length @ ..] = *prefix;
            let whole = (u32::from_be_bytes(length) as usize).saturating_add(MESSAGE_PREFIX);
            if whole > most {
                return Err(FirstMessageError::TooLarge(whole));
            }
            if read.len() >= whole {
                let message = read.split_to(whole).freeze();
                return Ok(Some(FirstMessage { message, beyond: read.freeze() }));
            }
        }
        match body.frame().await {
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    read.extend_from_slice(&data);
                }
            }
            Some(Err(error)) => return Err(FirstMessageError::Body(error)),
            None => return Ok(None),
        }
    }
}

/// Why a first message cannot be read.
pub(crate) enum FirstMessageError<E> {
    Body(E),
    TooLarge(usize),
}

/// Returns the frames of a body of which the beginning was read.
pub(crate) fn resumed<B>(first: FirstMessage, rest: B) -> impl Stream<Item = Result<Frame<Bytes>, B::Error>>
where
    B: Body<Data = Bytes> + Unpin,
{
    let begun =
        [first.message, first.beyond].into_iter().filter(|part| !part.is_empty()).map(|part| Ok(Frame::data(part)));
    stream::iter(begun).chain(http_body_util::BodyStream::new(rest))
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "each test has a runtime of its own")]
mod tests {
    use http_body_util::Full;

    use super::*;

    const PATH: &str = "/worker.WorkerService/ExecuteTask";

    fn signed(key: &ClusterKey) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert("x-querent-memory-bytes", HeaderValue::from_static("7"));
        headers.insert("user-agent", HeaderValue::from_static("anything"));
        key.sign(PATH, &mut headers, b"plan");
        headers
    }

    #[test]
    fn a_signature_covers_method_limits_and_plan() {
        let key = ClusterKey::new("a key of the cluster");
        let headers = signed(&key);
        assert_eq!(key.check_headers(PATH, &headers), Ok(()));
        assert_eq!(key.check(PATH, &headers, b"plan"), Ok(()));
        assert!(key.check("/worker.WorkerService/CoordinatorChannel", &headers, b"plan").is_err());
        assert!(key.check(PATH, &headers, b"plan of another").is_err());
        let another = ClusterKey::new("another key");
        assert!(another.check(PATH, &headers, b"plan").is_err());
        assert!(matches!(another.check_headers(PATH, &headers), Err(Refusal::Signature(_))), "before a body is read");
        let mut more = headers.clone();
        more.insert("x-querent-memory-bytes", HeaderValue::from_static("8"));
        assert!(key.check(PATH, &more, b"plan").is_err());
        let mut uncovered = headers;
        uncovered.insert("user-agent", HeaderValue::from_static("something else"));
        assert_eq!(key.check(PATH, &uncovered, b"plan"), Ok(()));
    }

    #[test]
    fn other_versions_and_times_are_refused_before_the_body() {
        let key = ClusterKey::new("a key of the cluster");
        let mut other = signed(&key);
        other.insert(VERSION, HeaderValue::from_static("0.0.7"));
        let Err(Refusal::Version(why)) = key.check_headers(PATH, &other) else { panic!("another version") };
        assert!(why.contains("0.0.7") && why.contains(OWN_VERSION), "{why}");
        let mut old = signed(&key);
        old.insert(SIGNED_AT, HeaderValue::from(now().as_secs() - 301));
        assert!(matches!(key.check_headers(PATH, &old), Err(Refusal::Signature(_))));
        assert!(matches!(key.check_headers(PATH, &HeaderMap::new()), Err(Refusal::Signature(_))));
    }

    #[tokio::test]
    async fn the_first_message_is_found_and_put_back() {
        let bytes: Bytes = Bytes::from_static(b"\0\0\0\0\x03abc\0\0\0\0\x01d");
        let mut body = Full::new(bytes.clone());
        let Ok(Some(first)) = first_message(&mut body, 100).await else { panic!("a message") };
        assert_eq!(first.message.as_ref(), b"\0\0\0\0\x03abc");
        let frames: Vec<Bytes> = resumed(first, body).map(|frame| frame.unwrap().into_data().unwrap()).collect().await;
        assert_eq!(frames.concat(), bytes);
        let mut body = Full::new(Bytes::from_static(b"\0\xff\xff\xff\xff"));
        assert!(matches!(first_message(&mut body, 100).await, Err(FirstMessageError::TooLarge(_))));
    }
}
