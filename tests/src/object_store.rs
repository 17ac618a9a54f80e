//! An object store and web server in the test's own process, on a free port: as much of S3 (and of the XML interface of
//! GCS, which is the same), of Azure Blob and of HTTP as reading takes. It writes down what it was asked.
//!
//! Of a signed request it checks the key's name, not the signature.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// The key that is let in.
pub const ACCESS_KEY: &str = "AKIATESTS";
/// Its secret, which must be found nowhere.
pub const SECRET_KEY: &str = "hush-hush-secret-of-the-tests";

/// Objects in a page of a listing.
const PAGE: usize = 4;
const CHANGED: &str = "2024-05-06T07:08:09.000Z";
const CHANGED_HTTP: &str = "Mon, 06 May 2024 07:08:09 GMT";
/// The account of Azure's emulator.
const ACCOUNT: &str = "devstoreaccount1";

/// A running store. It stops when dropped.
pub struct ObjectServer {
    /// `http://127.0.0.1:PORT`.
    pub url: String,
    shared: Arc<StoreState>,
    _serving: JoinSet<()>,
}

#[derive(Default)]
struct StoreState {
    port: u16,
    objects: Mutex<BTreeMap<String, Bytes>>,
    replacements: Mutex<Vec<Replacement>>,
    requests: Mutex<Vec<StoreRequest>>,
}

/// What an object becomes while it is read.
struct Replacement {
    path: String,
    /// The requests that still get what was there before.
    reads: usize,
    body: Bytes,
}

/// A request that the store received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreRequest {
    /// `GET`, `HEAD`, ...
    pub method: String,
    /// Decoded, with the bucket.
    pub path: String,
    /// Whether it was a listing.
    pub is_listing: bool,
}

impl ObjectServer {
    /// Starts one that holds nothing.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::new(StoreState { port, ..StoreState::default() });
        let router = Router::new().fallback(answer).with_state(Arc::clone(&shared));
        let mut serving = JoinSet::new();
        serving.spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { url: format!("http://127.0.0.1:{port}"), shared, _serving: serving }
    }

    /// Puts an object: `bucket/key`.
    pub fn put(&self, path: &str, body: impl Into<Bytes>) {
        self.shared.objects.lock().insert(path.to_owned(), body.into());
    }

    /// Replaces an object after so many requests for parts of it.
    pub fn replace_after(&self, reads: usize, path: &str, body: impl Into<Bytes>) {
        let replacement = Replacement { path: path.to_owned(), reads, body: body.into() };
        self.shared.replacements.lock().push(replacement);
    }

    /// Removes all objects whose path begins so.
    pub fn remove(&self, prefix: &str) {
        self.shared.objects.lock().retain(|path, _| !path.starts_with(prefix));
    }

    /// Returns the requests since the last call.
    pub fn take_requests(&self) -> Vec<StoreRequest> {
        std::mem::take(&mut self.shared.requests.lock())
    }

    /// What a server process needs to read from it as S3.
    pub fn s3_settings(&self) -> Vec<(&str, &str)> {
        vec![
            ("AWS_ENDPOINT", self.url.as_str()),
            ("AWS_ALLOW_HTTP", "true"),
            ("AWS_ACCESS_KEY_ID", ACCESS_KEY),
            ("AWS_SECRET_ACCESS_KEY", SECRET_KEY),
            ("AWS_REGION", "eu-test-1"),
        ]
    }
}

impl StoreState {
    /// Counts a request for an object before it is answered.
    fn count_read(&self, path: &str) {
        let mut replacements = self.replacements.lock();
        let Some(at) = replacements.iter().position(|replacement| replacement.path == path) else { return };
        match replacements[at].reads.checked_sub(1) {
            Some(left) => replacements[at].reads = left,
            None => {
                let replacement = replacements.remove(at);
                self.objects.lock().insert(replacement.path, replacement.body);
            }
        }
    }
}

/// The entity tag of a content, without quotes.
fn entity_tag(body: &Bytes) -> String {
    let mut hasher = DefaultHasher::new();
    body.hash(&mut hasher);
    format!("{:x}", hasher.finish())
}

async fn answer(State(shared): State<Arc<StoreState>>, request: Request) -> Response {
    let path = percent_decoded(request.uri().path()).trim_matches('/').to_owned();
    let query = parameters(request.uri().query().unwrap_or_default());
    let method = request.method().clone();
    let is_listing = query.contains_key("list-type") || query.get("comp").is_some_and(|comp| comp == "list");
    let received = StoreRequest { method: method.to_string(), path: path.clone(), is_listing };
    shared.requests.lock().push(received);
    if let Some(to) = path.strip_prefix("redirect/") {
        return redirect(to, shared.port);
    }
    if let Some(refusal) = refusal(request.headers()) {
        return refusal;
    }
    if method != Method::GET && method != Method::HEAD {
        return StatusCode::METHOD_NOT_ALLOWED.into_response();
    }
    if method == Method::GET && !is_listing {
        shared.count_read(&path);
    }
    let objects = shared.objects.lock().clone();
    let (in_azure, path) = match path.strip_prefix(ACCOUNT) {
        Some(rest) => (true, rest.trim_start_matches('/').to_owned()),
        None => (false, path),
    };
    match (is_listing, in_azure) {
        (true, true) => azure_listing(&objects, &path, &query),
        (true, false) => s3_listing(&objects, &path, &query),
        (false, _) => object(&objects, &path, &method, request.headers()),
    }
}

/// `here/PATH` and `away/PATH`.
fn redirect(to: &str, port: u16) -> Response {
    let target = match to.split_once('/') {
        Some(("here", path)) => format!("/{path}"),
        Some((_, path)) => format!("http://localhost:{port}/{path}"),
        None => return StatusCode::NOT_FOUND.into_response(),
    };
    (StatusCode::FOUND, [(header::LOCATION, target)]).into_response()
}

fn refusal(headers: &HeaderMap) -> Option<Response> {
    let signed = headers.get(header::AUTHORIZATION)?.to_str().unwrap_or_default();
    let (_, rest) = signed.split_once("Credential=")?;
    let key = rest.split('/').next().unwrap_or_default();
    if key == ACCESS_KEY {
        return None;
    }
    let body = format!("<Error><Code>InvalidAccessKeyId</Code><AWSAccessKeyId>{key}</AWSAccessKeyId></Error>");
    Some((StatusCode::FORBIDDEN, body).into_response())
}

fn s3_listing(objects: &BTreeMap<String, Bytes>, bucket: &str, query: &BTreeMap<String, String>) -> Response {
    let Some(found) = page(objects, bucket, query, "continuation-token") else {
        return (StatusCode::NOT_FOUND, "<Error><Code>NoSuchBucket</Code></Error>").into_response();
    };
    let mut body = String::from("<ListBucketResult>");
    for (key, size, tag) in &found.keys {
        let _ = write!(
            body,
            "<Contents><Key>{key}</Key><Size>{size}</Size><LastModified>{CHANGED}</LastModified>\
             <ETag>&quot;{tag}&quot;</ETag></Contents>"
        );
    }
    if let Some(next) = found.next {
        let _ = write!(body, "<NextContinuationToken>{next}</NextContinuationToken>");
    }
    body.push_str("</ListBucketResult>");
    body.into_response()
}

fn azure_listing(objects: &BTreeMap<String, Bytes>, container: &str, query: &BTreeMap<String, String>) -> Response {
    let Some(found) = page(objects, container, query, "marker") else {
        return (StatusCode::NOT_FOUND, "<Error><Code>ContainerNotFound</Code></Error>").into_response();
    };
    let mut body = String::from("<EnumerationResults><Blobs>");
    for (key, size, tag) in &found.keys {
        let _ = write!(
            body,
            "<Blob><Name>{key}</Name><Properties><Last-Modified>{CHANGED_HTTP}</Last-Modified>\
             <Content-Length>{size}</Content-Length><Content-Type>b</Content-Type><Etag>{tag}</Etag></Properties></Blob>"
        );
    }
    let _ = write!(body, "</Blobs><NextMarker>{}</NextMarker></EnumerationResults>", found.next.unwrap_or_default());
    body.into_response()
}

struct ListingPage {
    /// With their lengths and entity tags.
    keys: Vec<(String, usize, String)>,
    next: Option<String>,
}

/// `None`: no such bucket.
fn page(
    objects: &BTreeMap<String, Bytes>,
    bucket: &str,
    query: &BTreeMap<String, String>,
    token: &str,
) -> Option<ListingPage> {
    let start = format!("{bucket}/");
    let within = || objects.iter().filter_map(|(path, body)| Some((path.strip_prefix(&start)?, body)));
    within().next()?;
    let prefix = query.get("prefix").cloned().unwrap_or_default();
    let after = query.get(token).cloned().unwrap_or_default();
    let mut keys: Vec<(String, usize, String)> = within()
        .filter(|(key, _)| key.starts_with(&prefix) && *key > after.as_str())
        .take(PAGE + 1)
        .map(|(key, body)| (key.to_owned(), body.len(), entity_tag(body)))
        .collect();
    let more = keys.len() > PAGE;
    keys.truncate(PAGE);
    let next = keys.last().filter(|_| more).map(|(key, ..)| key.clone());
    Some(ListingPage { keys, next })
}

fn object(objects: &BTreeMap<String, Bytes>, path: &str, method: &Method, headers: &HeaderMap) -> Response {
    let Some(body) = objects.get(path) else {
        return (StatusCode::NOT_FOUND, "<Error><Code>NoSuchKey</Code></Error>").into_response();
    };
    let size = body.len();
    let range = headers.get(header::RANGE).and_then(|range| parse_range(range.to_str().ok()?, size));
    let mut response = Response::builder()
        .header(header::LAST_MODIFIED, CHANGED_HTTP)
        .header(header::ETAG, format!("\"{}\"", entity_tag(body)))
        .header(header::ACCEPT_RANGES, "bytes");
    let part = match range {
        // Of an object that is shorter now.
        Some(range) if range.start >= size => {
            return (StatusCode::RANGE_NOT_SATISFIABLE, [(header::CONTENT_RANGE, format!("bytes */{size}"))])
                .into_response();
        }
        Some(range) => {
            let told = format!("bytes {}-{}/{size}", range.start, range.end - 1);
            response = response.status(StatusCode::PARTIAL_CONTENT).header(header::CONTENT_RANGE, told);
            body.slice(range)
        }
        None => body.clone(),
    };
    response = response.header(header::CONTENT_LENGTH, part.len());
    let body = if *method == Method::HEAD { Body::empty() } else { Body::from(part) };
    response.body(body).unwrap()
}

/// `bytes=1-2`, `bytes=1-` and `bytes=-2`.
fn parse_range(text: &str, size: usize) -> Option<Range<usize>> {
    let (from, to) = text.strip_prefix("bytes=")?.split_once('-')?;
    Some(match (from.parse::<usize>(), to.parse::<usize>()) {
        (Ok(from), Ok(to)) => from..(to + 1).min(size),
        (Ok(from), Err(_)) => from..size,
        (Err(_), Ok(last)) => size.saturating_sub(last)..size,
        (Err(_), Err(_)) => return None,
    })
}

fn parameters(query: &str) -> BTreeMap<String, String> {
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs.map(|(name, value)| (percent_decoded(name), percent_decoded(&value.replace('+', " ")))).collect()
}

fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.filter(|_| *first == b'%').and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8(bytes).unwrap()
}
