//! A server in place of a provider: it gives prepared answers in any protocol and records its requests.

use std::collections::VecDeque;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use futures::StreamExt;
use parking_lot::Mutex;
use querent_agent::models::ToolStyleSetting;
use querent_agent::models::remote::{RemoteKind, RemoteModel, RemoteSettings, RetryPolicy};
use querent_catalog::outbound::ApiKey;
use serde_json::{Value, json};
use tokio::sync::watch;

/// One answer to a POST.
#[derive(Clone)]
pub enum CannedAnswer {
    /// Server-sent events, each a network write of its own; then the end, or silence.
    Events { frames: Vec<String>, then_hang: bool },
    /// Any other answer.
    Plain { status: u16, headers: Vec<(&'static str, String)>, body: String },
}

impl CannedAnswer {
    /// OpenAI's and Gemini's form: data only.
    pub fn data(pieces: &[Value]) -> Self {
        let frames = pieces.iter().map(|piece| format!("data: {piece}\n\n")).collect();
        Self::Events { frames, then_hang: false }
    }

    /// OpenAI's form, ended as it must be.
    pub fn chat(pieces: &[Value]) -> Self {
        let Self::Events { mut frames, then_hang } = Self::data(pieces) else { unreachable!() };
        frames.push("data: [DONE]\n\n".to_owned());
        Self::Events { frames, then_hang }
    }

    /// Anthropic's form: each event has its name.
    pub fn named(events: &[Value]) -> Self {
        let name = |event: &Value| event["type"].as_str().unwrap_or_default().to_owned();
        let frames = events.iter().map(|event| format!("event: {}\ndata: {event}\n\n", name(event))).collect();
        Self::Events { frames, then_hang: false }
    }

    pub fn status(status: u16, body: &Value) -> Self {
        Self::Plain { status, headers: Vec::new(), body: body.to_string() }
    }

    pub fn with_header(self, name: &'static str, value: &str) -> Self {
        match self {
            Self::Plain { status, mut headers, body } => {
                headers.push((name, value.to_owned()));
                Self::Plain { status, headers, body }
            }
            events => events,
        }
    }

    pub fn then_hang(self) -> Self {
        match self {
            Self::Events { frames, .. } => Self::Events { frames, then_hang: true },
            plain => plain,
        }
    }
}

/// A request that the provider received.
#[derive(Clone, Debug)]
pub struct RecordedRequest {
    pub path: String,
    pub headers: HeaderMap,
    pub body: Value,
}

impl RecordedRequest {
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }
}

/// The server.
pub struct Provider {
    address: std::net::SocketAddr,
    shared: ProviderState,
    closed: watch::Receiver<bool>,
    serving: tokio::task::JoinHandle<()>,
}

#[derive(Clone)]
struct ProviderState {
    /// The last answer is repeated.
    answers: Arc<Mutex<VecDeque<CannedAnswer>>>,
    /// The answer to every GET.
    described: Arc<(u16, Value)>,
    requests: Arc<Mutex<Vec<RecordedRequest>>>,
    closed: Arc<watch::Sender<bool>>,
}

impl Provider {
    pub async fn start(answers: Vec<CannedAnswer>) -> Self {
        Self::describing(200, json!({}), answers).await
    }

    /// Starts a server that answers every GET with `body`.
    pub async fn describing(status: u16, body: Value, answers: Vec<CannedAnswer>) -> Self {
        querent_flight::install_crypto_provider();
        let (closed, closed_seen) = watch::channel(false);
        let shared = ProviderState {
            answers: Arc::new(Mutex::new(answers.into())),
            described: Arc::new((status, body)),
            requests: Arc::default(),
            closed: Arc::new(closed),
        };
        let router = Router::new().fallback(answer).with_state(shared.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let serving = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { address, shared, closed: closed_seen, serving }
    }

    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    pub fn settings(&self, kind: RemoteKind, model: &str) -> RemoteSettings {
        RemoteSettings {
            kind,
            model: model.to_owned(),
            base_url: Some(self.base_url()),
            api_key: ApiKey::new("sk-s3cret"),
            api_key_variable: "SOME_KEY".to_owned(),
            context_tokens: None,
            tool_style: ToolStyleSetting::Auto,
            retry: RetryPolicy { first_pause: std::time::Duration::from_millis(5), ..RetryPolicy::default() },
        }
    }

    pub fn model(&self, kind: RemoteKind, model: &str) -> RemoteModel {
        RemoteModel::new(self.settings(kind, model)).unwrap()
    }

    /// Returns the POST requests so far.
    pub fn requests(&self) -> Vec<RecordedRequest> {
        self.shared.requests.lock().clone()
    }

    /// When the last answer was dropped before its end.
    pub async fn wait_until_closed(&self) {
        self.closed.clone().wait_for(|closed| *closed).await.unwrap();
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn answer(
    State(shared): State<ProviderState>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    if method == Method::GET {
        let (status, body) = &*shared.described;
        return (StatusCode::from_u16(*status).unwrap(), axum::Json(body)).into_response();
    }
    let body = serde_json::from_slice(&body).unwrap();
    shared.requests.lock().push(RecordedRequest { path: uri.to_string(), headers, body });
    let answer = {
        let mut answers = shared.answers.lock();
        if answers.len() > 1 { answers.pop_front() } else { answers.front().cloned() }
    };
    match answer.unwrap() {
        CannedAnswer::Plain { status, headers, body } => {
            let mut response = (StatusCode::from_u16(status).unwrap(), body).into_response();
            for (name, value) in headers {
                response.headers_mut().insert(name, value.parse().unwrap());
            }
            response
        }
        CannedAnswer::Events { frames, then_hang } => {
            let pieces = futures::stream::iter(frames).then(async |frame| {
                // Lets each piece leave on its own.
                tokio::task::yield_now().await;
                Ok::<_, std::io::Error>(Bytes::from(frame))
            });
            let unfinished = UnfinishedAnswer(Some(shared.closed));
            let end = futures::stream::once(async move {
                if then_hang {
                    futures::future::pending::<()>().await;
                }
                let mut unfinished = unfinished;
                unfinished.0 = None;
                Ok(Bytes::new())
            });
            let response = Response::builder().header("content-type", "text/event-stream");
            response.body(Body::from_stream(pieces.chain(end))).unwrap()
        }
    }
}

/// Reports that an answer is dropped before its end.
struct UnfinishedAnswer(Option<Arc<watch::Sender<bool>>>);

impl Drop for UnfinishedAnswer {
    fn drop(&mut self) {
        if let Some(closed) = self.0.take() {
            closed.send_replace(true);
        }
    }
}
