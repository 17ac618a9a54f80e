//! Requests that another server of a shared catalog answers, since it has what they are about: they go there as they came,
//! with their caller's own credentials, and the answer comes back as it is made.
//!
//! A header says which server forwarded a request, so that it is forwarded once. With `cluster.key` that header is signed, and
//! one that is not is refused; only then is the name of a client's certificate taken from another server.
//!
//! Invariant: what belongs to one connection stays on it, and what a page's browser says of itself is judged where it came in.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http::header::{self, HeaderName, HeaderValue};
use http::{HeaderMap, Method, Request, Response, Uri, Version};
use http_body::{Frame, SizeHint};
use http_body_util::Full;
use parking_lot::Mutex;
use tonic::body::Body;
use tonic::transport::Channel;
use tower::Service;
use url::Url;

use super::channels::{lazy_channel, with_causes};
use super::signature::ClusterKey;
use super::watched_stream::ConnectionFault;
use super::worker_tls::ClusterTls;
use crate::config::ClusterSettings;
use crate::error::{ApiError, ErrorCode};
use crate::tls::TlsError;

const FORWARDED_BY: HeaderName = HeaderName::from_static("x-querent-forwarded-by");
const FORWARDED_AT: HeaderName = HeaderName::from_static("x-querent-forwarded-at");
const SIGNATURE: HeaderName = HeaderName::from_static("x-querent-forwarded-signature");
const CERTIFICATE: HeaderName = HeaderName::from_static("x-querent-forwarded-certificate");
/// How far two servers' clocks may be apart, and how old a signature may be.
const GOOD_FOR: Duration = Duration::from_secs(300);
/// How long a connection is kept that nobody uses.
const KEPT_UNUSED: Duration = Duration::from_secs(600);
/// Within this time a request fails whose connection was closed already; what takes longer is a server that says nothing.
const FAILS_AT_ONCE: Duration = Duration::from_secs(1);
/// Requests that one connection carries at a time; a server takes 256, and more would wait for each other.
const REQUESTS_A_CONNECTION: usize = 200;
/// Headers of one connection, and those that the way to another server gives values of their own.
const NOT_FORWARDED: [&str; 14] = [
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "expect",
    "host",
    "content-length",
    "origin",
    "x-querent-client-certificate",
];
/// The beginnings of others: what a browser says of the page, and what only a server says.
const NOT_FORWARDED_PREFIXES: [&str; 3] = ["sec-fetch-", "x-querent-forwarded-", "access-control-"];

/// The way to the other servers of a catalog. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Forwarding(Arc<ForwardingParts>);

struct ForwardingParts {
    /// The id of this server among them; `None` where it shares its catalog with nobody.
    member: Option<String>,
    key: Option<ClusterKey>,
    tls: ClusterTls,
    open: Mutex<HashMap<Url, Vec<OpenConnection>>>,
}

/// A connection to a server.
#[derive(Clone)]
struct OpenConnection {
    channel: Channel,
    /// Why there is no connection, which HTTP does not say.
    fault: ConnectionFault,
    last_used: Instant,
    in_use: InUse,
}

/// Counts the requests of a connection: each holds one until its answer has been read.
#[derive(Clone, Default)]
pub(crate) struct InUse(Arc<()>);

impl InUse {
    /// Returns how many there are beside the connection's own.
    fn requests(&self) -> usize {
        Arc::strong_count(&self.0).saturating_sub(1)
    }
}

/// The body of an answer, until whose end its connection is in use.
struct ForwardedBody {
    inner: Body,
    _in_use: InUse,
}

impl http_body::Body for ForwardedBody {
    type Data = Bytes;
    type Error = tonic::Status;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, tonic::Status>>> {
        Pin::new(&mut self.inner).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

/// What is known of a request that another server forwarded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ForwardedRequest {
    /// The known name of the certificate that its client showed there.
    pub(crate) certificate: Option<HeaderValue>,
}

impl Forwarding {
    /// Returns the way to the servers that share a catalog with `member`.
    pub(crate) async fn open(settings: &ClusterSettings, member: Option<&str>) -> Result<Self, TlsError> {
        let tls = match member {
            Some(_) => ClusterTls::open(settings).await?,
            None => ClusterTls::default(),
        };
        let key = settings.key.as_deref().map(ClusterKey::new);
        Ok(Self(Arc::new(ForwardingParts { member: member.map(str::to_owned), key, tls, open: Mutex::default() })))
    }

    /// Whether there may be other servers.
    pub(crate) fn is_shared(&self) -> bool {
        self.0.member.is_some()
    }

    /// Returns why the other servers would not know the caller of a request with these headers, whose client shows a
    /// certificate of that known name here; `None` where they do.
    pub(crate) fn unknown_there(&self, headers: &HeaderMap, certificate: Option<&HeaderValue>) -> Option<&'static str> {
        let is_certified_alone = certificate.is_some() && !headers.contains_key(header::AUTHORIZATION);
        (is_certified_alone && self.0.key.is_none())
            .then_some("its caller is known by a certificate alone, which needs cluster.key on both servers")
    }

    /// Returns what is known of a request that another server forwarded; `None` for one of a client.
    /// Errors: `forbidden`, for one that only says so.
    pub(crate) fn forwarded(
        &self,
        method: &Method,
        uri: &Uri,
        headers: &HeaderMap,
    ) -> Result<Option<ForwardedRequest>, ApiError> {
        let Some(by) = headers.get(&FORWARDED_BY).filter(|_| self.is_shared()) else { return Ok(None) };
        let Some(key) = &self.0.key else { return Ok(Some(ForwardedRequest { certificate: None })) };
        let at = headers.get(&FORWARDED_AT);
        let signed_at = at.and_then(|at| at.to_str().ok()?.parse().ok()).map_or(Duration::ZERO, Duration::from_secs);
        let certificate = headers.get(&CERTIFICATE);
        let signature = headers.get(&SIGNATURE).and_then(|signature| signature.to_str().ok()).unwrap_or_default();
        let is_signed = key.has_signed(&signed_text(method, uri, by, at, certificate), signature);
        let apart = now().abs_diff(signed_at);
        if !is_signed || apart > GOOD_FOR {
            // Some routes write an error without its hint: the setting is named here.
            let message = match (is_signed, signature.is_empty()) {
                (true, _) => format!(
                    "another server forwarded the request, and signed it {} s away from this one's clock",
                    apart.as_secs()
                ),
                (false, true) => {
                    "the request says that another server forwarded it, and is not signed: this server has a \
                                  cluster.key, and that one has none"
                        .to_owned()
                }
                (false, false) => {
                    "another server forwarded the request, and signed it with another cluster.key than this \
                                   server's"
                        .to_owned()
                }
            };
            tracing::warn!(server = ?by, reason = message, "a forwarded request was refused");
            let hint = "give all servers of the catalog the same cluster.key, and clocks that agree";
            return Err(ApiError::new(ErrorCode::Forbidden, message).with_hint(hint));
        }
        Ok(Some(ForwardedRequest { certificate: certificate.cloned() }))
    }

    /// Returns the headers with which a request goes on to another server. `certificate` is the known name of the one that
    /// its client shows here.
    pub(crate) fn headers(
        &self,
        method: &Method,
        uri: &Uri,
        headers: &HeaderMap,
        certificate: Option<&HeaderValue>,
    ) -> HeaderMap {
        let mut sent = between_servers(headers);
        let Some(by) = self.0.member.as_deref().and_then(|member| HeaderValue::from_str(member).ok()) else {
            return sent;
        };
        if let Some(key) = &self.0.key {
            let at = HeaderValue::from(now().as_secs());
            let signature = key.signature_of(&signed_text(method, uri, &by, Some(&at), certificate));
            if let Ok(signature) = HeaderValue::from_str(&signature) {
                sent.insert(SIGNATURE, signature);
            }
            sent.insert(FORWARDED_AT, at);
            sent.extend(certificate.map(|name| (CERTIFICATE, name.clone())));
        }
        sent.insert(FORWARDED_BY, by);
        sent
    }

    /// Sends a request to the server at a URL, and returns its answer, whose body comes as it is made. Dropping the body, or
    /// this future, ends the request there. Errors: why there is no answer.
    pub(crate) async fn send(&self, address: &str, request: Request<Bytes>) -> Result<Response<Body>, String> {
        // The server may have closed a connection that idled just when this one is sent over it.
        let again = (request.method() == Method::GET).then(|| request.clone());
        let begun = Instant::now();
        match (self.send_once(address, request).await, again) {
            (Err(_), Some(again)) if begun.elapsed() < FAILS_AT_ONCE => self.send_once(address, again).await,
            (answered, _) => answered,
        }
    }

    async fn send_once(&self, address: &str, request: Request<Bytes>) -> Result<Response<Body>, String> {
        let OpenConnection { mut channel, fault, in_use, .. } = self.connection(address)?;
        let mut request = request.map(|body| Body::new(Full::new(body)));
        *request.version_mut() = Version::HTTP_2;
        let answered = async {
            std::future::poll_fn(|cx| channel.poll_ready(cx)).await?;
            channel.call(request).await
        };
        let response = answered.await.map_err(|error| fault.get().unwrap_or_else(|| with_causes(&error)))?;
        let (mut parts, body) = response.into_parts();
        parts.headers = between_servers(&parts.headers);
        // That of the connection here is written, whatever it is.
        parts.version = Version::default();
        Ok(Response::from_parts(parts, Body::new(ForwardedBody { inner: body, _in_use: in_use })))
    }

    /// Returns a channel for a call of gRPC to the server at a URL, and what is held until its answer has been read.
    /// Errors: why it cannot be one.
    pub(crate) fn channel(&self, address: &str) -> Result<(Channel, InUse), String> {
        let OpenConnection { channel, in_use, .. } = self.connection(address)?;
        Ok((channel, in_use))
    }

    /// Returns a connection that has room for a request; it is made when the request is sent.
    fn connection(&self, address: &str) -> Result<OpenConnection, String> {
        let url = Url::parse(address).map_err(|error| format!("`{address}` is no URL: {error}"))?;
        let mut open = self.0.open.lock();
        open.retain(|_, known| {
            known.retain(|one| one.in_use.requests() > 0 || one.last_used.elapsed() < KEPT_UNUSED);
            !known.is_empty()
        });
        let known = open.entry(url.clone()).or_default();
        if let Some(free) = known.iter_mut().find(|one| one.in_use.requests() < REQUESTS_A_CONNECTION) {
            free.last_used = Instant::now();
            return Ok(free.clone());
        }
        let fault = ConnectionFault::default();
        let channel = lazy_channel(&url, &self.0.tls, &fault).map_err(|error| with_causes(&error))?;
        let opened = OpenConnection { channel, fault, last_used: Instant::now(), in_use: InUse::default() };
        known.push(opened.clone());
        Ok(opened)
    }
}

/// Returns the headers that go from one server to another.
fn between_servers(headers: &HeaderMap) -> HeaderMap {
    let of_connection: Vec<String> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|names| names.split(','))
        .map(|name| name.trim().to_ascii_lowercase())
        .collect();
    let stays = |name: &str| {
        NOT_FORWARDED.contains(&name)
            || NOT_FORWARDED_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
            || of_connection.iter().any(|own| own == name)
    };
    let sent = headers.iter().filter(|(name, _)| !stays(name.as_str()));
    let mut kept = HeaderMap::new();
    for (name, value) in sent {
        kept.append(name.clone(), value.clone());
    }
    kept
}

/// Returns what a signature covers: the request, who forwarded it and when, and the certificate.
fn signed_text(
    method: &Method,
    uri: &Uri,
    by: &HeaderValue,
    at: Option<&HeaderValue>,
    certificate: Option<&HeaderValue>,
) -> Vec<u8> {
    let path = uri.path_and_query().map(|path| path.as_str()).unwrap_or_default();
    let bytes = |value: Option<&HeaderValue>| value.map(|value| value.as_bytes().to_vec()).unwrap_or_default();
    // Values of headers hold no line breaks.
    [
        b"forwarded".to_vec(),
        method.as_str().as_bytes().to_vec(),
        path.as_bytes().to_vec(),
        by.as_bytes().to_vec(),
        bytes(at),
        bytes(certificate),
    ]
    .join(&b'\n')
}

fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "each test has a runtime of its own")]
mod tests {
    use super::*;

    const PATH: &str = "/v1/agent/runs/1/events?from=2";

    async fn server(member: &str, key: Option<&str>) -> Forwarding {
        let settings = ClusterSettings { key: key.map(str::to_owned), ..ClusterSettings::default() };
        Forwarding::open(&settings, Some(member)).await.unwrap()
    }

    fn uri() -> Uri {
        Uri::from_static(PATH)
    }

    fn sent(forwarding: &Forwarding, certificate: Option<&HeaderValue>) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(header::AUTHORIZATION, HeaderValue::from_static("Bearer t"));
        forwarding.headers(&Method::GET, &uri(), &headers, certificate)
    }

    #[tokio::test]
    async fn what_another_server_forwarded_is_known_by_the_key() {
        let (one, two) = (server("one", Some("a key of sixteen")).await, server("two", Some("a key of sixteen")).await);
        let name = HeaderValue::from_static("grafana.example");
        let headers = sent(&one, Some(&name));
        let known = two.forwarded(&Method::GET, &uri(), &headers).unwrap();
        assert_eq!(known, Some(ForwardedRequest { certificate: Some(name) }));
        assert_eq!(headers[header::AUTHORIZATION], "Bearer t");
        let refused = |method: Method, path: &'static str, headers: &HeaderMap| {
            two.forwarded(&method, &Uri::from_static(path), headers).unwrap_err().code()
        };
        assert_eq!(refused(Method::POST, PATH, &headers), ErrorCode::Forbidden);
        assert_eq!(refused(Method::GET, "/v1/agent/runs/2/events", &headers), ErrorCode::Forbidden);
        let mut other = headers.clone();
        other.insert(CERTIFICATE, HeaderValue::from_static("admin.example"));
        assert_eq!(refused(Method::GET, PATH, &other), ErrorCode::Forbidden);
        let mut old = headers;
        old.insert(FORWARDED_AT, HeaderValue::from(now().as_secs() - 301));
        assert_eq!(refused(Method::GET, PATH, &old), ErrorCode::Forbidden);
        for (key, says) in [(Some("another long key"), "with another cluster.key"), (None, "that one has none")] {
            let stranger = server("three", key).await;
            let error = two.forwarded(&Method::GET, &uri(), &sent(&stranger, None)).unwrap_err();
            assert_eq!(error.code(), ErrorCode::Forbidden);
            assert!(error.message().contains(says), "{error}");
        }
        assert_eq!(two.forwarded(&Method::GET, &uri(), &HeaderMap::new()).unwrap(), None);
    }

    #[tokio::test]
    async fn without_a_key_nobody_is_believed_about_certificates() {
        let (one, two) = (server("one", None).await, server("two", None).await);
        let name = HeaderValue::from_static("grafana.example");
        let mut headers = sent(&one, Some(&name));
        assert!(!headers.contains_key(CERTIFICATE));
        headers.insert(CERTIFICATE, name);
        let known = two.forwarded(&Method::GET, &uri(), &headers).unwrap();
        assert_eq!(known, Some(ForwardedRequest { certificate: None }));
        let (nothing, certificate) = (HeaderMap::new(), HeaderValue::from_static("grafana.example"));
        assert!(one.unknown_there(&nothing, Some(&certificate)).is_some());
        assert!(one.unknown_there(&headers, Some(&certificate)).is_none(), "it has a token");
        assert!(one.unknown_there(&nothing, None).is_none());
        let alone = Forwarding::open(&ClusterSettings::default(), None).await.unwrap();
        assert_eq!(alone.forwarded(&Method::GET, &uri(), &headers).unwrap(), None);
    }

    #[tokio::test]
    async fn a_connection_that_is_full_is_joined_by_another() {
        let forwarding = server("one", None).await;
        let held: Vec<OpenConnection> =
            (0..=REQUESTS_A_CONNECTION).map(|_| forwarding.connection("http://10.0.0.1:80").unwrap()).collect();
        let connections = || forwarding.0.open.lock().values().map(Vec::len).sum::<usize>();
        assert_eq!(connections(), 2);
        drop(held);
        drop(forwarding.connection("http://10.0.0.1:80").unwrap());
        assert_eq!(connections(), 2, "they are kept for a while");
        assert!(forwarding.0.open.lock().values().flatten().all(|one| one.in_use.requests() == 0));
        assert!(forwarding.connection("nowhere").is_err());
    }

    #[test]
    fn what_belongs_to_a_connection_stays_on_it() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("connection", "keep-alive, X-Own"),
            ("x-own", "1"),
            ("host", "one.example"),
            ("origin", "https://page.example"),
            ("sec-fetch-site", "same-origin"),
            ("x-querent-client-certificate", "admin"),
            ("x-querent-forwarded-by", "me"),
            ("last-event-id", "1:2.3"),
            ("accept", "text/event-stream"),
        ] {
            headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        headers.append(header::ACCEPT, HeaderValue::from_static("application/json"));
        let sent = between_servers(&headers);
        let names: Vec<&str> = sent.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names.iter().filter(|name| **name == "accept").count(), 2);
        assert_eq!(sent.len(), 3, "{names:?}");
        assert!(sent.contains_key("last-event-id"));
    }
}
