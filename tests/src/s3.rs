//! A real S3-compatible server (moto's, in a process of its own), and a proxy before it that fails as networks and stores do.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::StreamExt;
use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::object_store::{ACCESS_KEY, SECRET_KEY};
use crate::process::{installed, package_folder};

/// The bucket that there is.
pub const BUCKET: &str = "lake";

/// How a request fails.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreFault {
    /// The store says that it is too busy (503).
    Busy,
    /// The store does what it is told, and the answer is lost on the way (503).
    AnswerLost,
    /// The connection breaks after a half of the answer's body.
    CutOff,
    /// The answer comes later.
    Slow(Duration),
    /// The store does not look at the request's condition.
    Unconditional,
    /// Somebody else writes `other` to the same name just before.
    Overtaken,
}

/// A request that reached the proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxiedRequest {
    /// `GET`, `HEAD`, ...
    pub method: String,
    /// With the bucket, as it was sent.
    pub path: String,
    /// Whether it lists.
    pub is_listing: bool,
}

struct PlannedFault {
    method: Method,
    /// What its path contains.
    part: String,
    fault: StoreFault,
    /// So many go through before.
    skip: usize,
    times: usize,
}

struct ProxyState {
    store: String,
    client: reqwest::Client,
    faults: Mutex<Vec<PlannedFault>>,
    requests: Mutex<Vec<ProxiedRequest>>,
}

/// A running S3 server behind a proxy. Both stop when it is dropped.
pub struct S3Server {
    /// The proxy's address: `http://127.0.0.1:PORT`.
    pub url: String,
    shared: Arc<ProxyState>,
    child: Child,
    _serving: JoinSet<()>,
}

impl S3Server {
    /// Starts one with an empty bucket.
    pub async fn start() -> Self {
        let mut command = Command::new(installed("QUERENT_S3_PYTHON", "s3-venv/bin/python"));
        command.arg(package_folder().join("clients/s3_server.py"));
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("python starts");
        let stdout = child.stdout.take().expect("a pipe");
        let store = tokio::task::spawn_blocking(move || {
            let mut lines = BufReader::new(stdout).lines().map_while(Result::ok);
            lines.find(|line| line.starts_with("http://"))
        });
        let store = store.await.unwrap().expect("moto says where it listens");
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let shared = Arc::new(ProxyState {
            store,
            client: reqwest::Client::builder().no_proxy().build().unwrap(),
            faults: Mutex::default(),
            requests: Mutex::default(),
        });
        let router = Router::new().fallback(answer).with_state(Arc::clone(&shared));
        let mut serving = JoinSet::new();
        serving.spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { url, shared, child, _serving: serving }
    }

    /// Lets the next `times` requests of a method whose path contains `part` fail.
    pub fn fail(&self, method: Method, part: &str, fault: StoreFault, times: usize) {
        self.fail_after(0, method, part, fault, times);
    }

    /// The same, after `skip` of them went through.
    pub fn fail_after(&self, skip: usize, method: Method, part: &str, fault: StoreFault, times: usize) {
        self.shared.faults.lock().push(PlannedFault { method, part: part.to_owned(), fault, skip, times });
    }

    /// Takes back all faults that have not happened.
    pub fn heal(&self) {
        self.shared.faults.lock().clear();
    }

    /// Returns the requests since the last call.
    pub fn take_requests(&self) -> Vec<ProxiedRequest> {
        std::mem::take(&mut self.shared.requests.lock())
    }

    /// What a server process needs to use it.
    pub fn settings(&self) -> Vec<(&str, &str)> {
        vec![
            ("AWS_ENDPOINT", self.url.as_str()),
            ("AWS_ALLOW_HTTP", "true"),
            ("AWS_ACCESS_KEY_ID", ACCESS_KEY),
            ("AWS_SECRET_ACCESS_KEY", SECRET_KEY),
            ("AWS_REGION", "us-east-1"),
        ]
    }

    /// Returns the keys of all objects, of which there are less than a thousand.
    pub async fn keys(&self) -> Vec<String> {
        let (status, text) = self.shared.direct(Method::GET, &format!("{BUCKET}?list-type=2"), Bytes::new()).await;
        assert_eq!(status, StatusCode::OK);
        let text = String::from_utf8(text.to_vec()).unwrap();
        text.split("<Key>").skip(1).map(|rest| rest.split("</Key>").next().unwrap_or_default().to_owned()).collect()
    }

    /// Puts an object, whatever is there.
    pub async fn put(&self, key: &str, content: impl Into<Bytes>) {
        let (status, _) = self.shared.direct(Method::PUT, &format!("{BUCKET}/{key}"), content.into()).await;
        assert_eq!(status, StatusCode::OK);
    }

    /// Returns an object.
    pub async fn get(&self, key: &str) -> Bytes {
        let (status, content) = self.shared.direct(Method::GET, &format!("{BUCKET}/{key}"), Bytes::new()).await;
        assert_eq!(status, StatusCode::OK, "{key}");
        content
    }

    /// Removes an object.
    pub async fn delete(&self, key: &str) {
        self.shared.direct(Method::DELETE, &format!("{BUCKET}/{key}"), Bytes::new()).await;
    }
}

impl Drop for S3Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl ProxyState {
    /// Asks the store itself, past the proxy. It checks no signature, but wants one.
    async fn direct(&self, method: Method, path: &str, content: Bytes) -> (StatusCode, Bytes) {
        let signature = format!(
            "AWS4-HMAC-SHA256 Credential={ACCESS_KEY}/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=00"
        );
        let request = self.client.request(method, format!("{}/{path}", self.store));
        let request = request.header(header::AUTHORIZATION, signature).body(content);
        let reply = request.send().await.unwrap();
        (reply.status(), reply.bytes().await.unwrap())
    }

    fn next_fault(&self, method: &Method, path: &str) -> Option<StoreFault> {
        let mut faults = self.faults.lock();
        let planned = faults
            .iter_mut()
            .find(|planned| planned.times > 0 && planned.method == *method && path.contains(planned.part.as_str()))?;
        if planned.skip > 0 {
            planned.skip -= 1;
            return None;
        }
        planned.times -= 1;
        Some(planned.fault.clone())
    }
}

async fn answer(State(shared): State<Arc<ProxyState>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let path = parts.uri.path().trim_start_matches('/').to_owned();
    let is_listing = parts.uri.query().is_some_and(|query| query.contains("list-type"));
    let content = axum::body::to_bytes(body, usize::MAX).await.unwrap_or_default();
    shared.requests.lock().push(ProxiedRequest { method: parts.method.to_string(), path: path.clone(), is_listing });
    let fault = shared.next_fault(&parts.method, &path);
    let mut headers = forwarded(&parts.headers);
    match &fault {
        Some(StoreFault::Busy) => return busy(),
        // The delay is what the test asked for.
        Some(StoreFault::Slow(time)) => tokio::time::sleep(*time).await,
        Some(StoreFault::Unconditional) => {
            headers.remove(header::IF_NONE_MATCH);
        }
        Some(StoreFault::Overtaken) => {
            shared.direct(Method::PUT, &path, Bytes::from_static(b"other")).await;
        }
        Some(StoreFault::AnswerLost | StoreFault::CutOff) | None => {}
    }
    let target = parts.uri.path_and_query().map_or("/", |target| target.as_str());
    let sent = shared.client.request(parts.method, format!("{}{target}", shared.store)).headers(headers).body(content);
    let Ok(reply) = sent.send().await else { return StatusCode::BAD_GATEWAY.into_response() };
    let (status, headers) = (reply.status(), forwarded(reply.headers()));
    let length = reply.headers().get(header::CONTENT_LENGTH).cloned();
    let content = reply.bytes().await.unwrap_or_default();
    match fault {
        Some(StoreFault::AnswerLost) => return busy(),
        Some(StoreFault::CutOff) => {
            let half = content.slice(..content.len() / 2);
            let broken = futures::stream::once(async { Err(std::io::Error::other("cut off")) });
            let body = Body::from_stream(futures::stream::once(async { Ok(half) }).chain(broken));
            let mut response = (status, headers, body).into_response();
            if let Some(length) = length {
                response.headers_mut().insert(header::CONTENT_LENGTH, length);
            }
            return response;
        }
        _ => {}
    }
    let mut response = (status, headers, content).into_response();
    // Of an answer to HEAD, which has no body, the length is that of the object.
    if let Some(length) = length {
        response.headers_mut().insert(header::CONTENT_LENGTH, length);
    }
    response
}

fn busy() -> Response {
    (StatusCode::SERVICE_UNAVAILABLE, "<Error><Code>SlowDown</Code></Error>").into_response()
}

/// Returns the headers that are not the connection's own.
fn forwarded(headers: &HeaderMap) -> HeaderMap {
    const OWN: [HeaderName; 4] = [header::HOST, header::CONNECTION, header::TRANSFER_ENCODING, header::CONTENT_LENGTH];
    let mut kept = headers.clone();
    for name in OWN {
        kept.remove(name);
    }
    kept
}
