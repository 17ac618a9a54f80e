//! A server that speaks as much of Ollama's protocol as a test needs, and can misbehave.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use querent_agent::models::ToolStyleSetting;
use querent_agent::models::ollama::OllamaModel;
use serde_json::{Value, json};
use tokio::sync::watch;

/// The answer to every chat.
#[derive(Clone)]
pub enum CannedReply {
    /// A body in these pieces, each a network write of its own.
    Stream { pieces: Vec<Vec<u8>>, then_hang: bool },
    /// A refusal.
    Status(u16, &'static str),
}

impl CannedReply {
    pub fn lines(lines: &[&str]) -> Self {
        let pieces = lines.iter().map(|line| format!("{line}\n").into_bytes()).collect();
        Self::Stream { pieces, then_hang: false }
    }

    pub fn text(text: &str) -> Self {
        let line = json!({"message": {"role": "assistant", "content": text}, "done": true, "done_reason": "stop"});
        Self::lines(&[&line.to_string()])
    }
}

pub struct FakeOllama {
    address: std::net::SocketAddr,
    chats: watch::Receiver<Vec<Value>>,
    traces: watch::Receiver<Vec<String>>,
    closed: watch::Receiver<bool>,
    server: tokio::task::JoinHandle<()>,
}

#[derive(Clone)]
struct OllamaState {
    reply: CannedReply,
    chats: Arc<watch::Sender<Vec<Value>>>,
    traces: Arc<watch::Sender<Vec<String>>>,
    closed: Arc<watch::Sender<bool>>,
}

impl FakeOllama {
    pub async fn start(reply: CannedReply) -> Self {
        let (chats, chats_seen) = watch::channel(Vec::new());
        let (traces, traces_seen) = watch::channel(Vec::new());
        let (closed, closed_seen) = watch::channel(false);
        let shared = OllamaState { reply, chats: Arc::new(chats), traces: Arc::new(traces), closed: Arc::new(closed) };
        let router = Router::new()
            .route("/api/tags", get(async || Json(tags())))
            .route("/api/show", post(show))
            .route("/api/chat", post(chat))
            .with_state(shared);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let serving = async move { axum::serve(listener, router).await.unwrap() };
        #[expect(clippy::disallowed_methods, reason = "aborted when the test drops the server")]
        let server = tokio::spawn(serving);
        Self { address, chats: chats_seen, traces: traces_seen, closed: closed_seen, server }
    }

    pub fn host(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn model(&self, name: &str) -> OllamaModel {
        OllamaModel::new(&self.host(), name, ToolStyleSetting::Auto).unwrap()
    }

    /// Returns the bodies of the chats so far.
    pub fn chats(&self) -> Vec<Value> {
        self.chats.borrow().clone()
    }

    /// Returns the `traceparent` of each chat that had one.
    pub fn traces(&self) -> Vec<String> {
        self.traces.borrow().clone()
    }

    /// Whether the last chat's reply was dropped before its end.
    pub fn request_closed(&self) -> bool {
        *self.closed.borrow()
    }

    pub async fn wait_until_closed(&self) {
        self.closed.clone().wait_for(|closed| *closed).await.unwrap();
    }
}

impl Drop for FakeOllama {
    fn drop(&mut self) {
        self.server.abort();
    }
}

/// The server's description of each of its models.
fn card(name: &str) -> Option<Value> {
    let sized = |parameters: u64, capabilities: &[&str], context: u64| {
        json!({
            "capabilities": capabilities,
            "model_info": {
                "general.architecture": "arch",
                "general.parameter_count": parameters,
                "arch.context_length": context,
            },
        })
    };
    let tools = ["completion", "tools"];
    match name {
        "gemma4" => Some(sized(8_000_000_000, &tools, 131_072)),
        "no-tools" => Some(sized(8_000_000_000, &["completion"], 4_096)),
        "qwen2.5-coder:7b" => Some(sized(7_600_000_000, &tools, 32_768)),
        "qwen3:1.7b" => Some(sized(2_000_000_000, &tools, 40_960)),
        "unsized" => Some(json!({"capabilities": tools, "model_info": {}})),
        _ => None,
    }
}

fn tags() -> Value {
    let listing = |name: &str, size: u64| json!({"name": name, "modified_at": "2026-01-01T00:00:00Z", "size": size});
    json!({"models": [listing("gemma4:latest", 9_000_000_000), listing("unsized:latest", 1_100_000_000)]})
}

async fn show(Json(body): Json<Value>) -> Response {
    match card(body["name"].as_str().unwrap()) {
        Some(card) => Json(card).into_response(),
        None => (StatusCode::NOT_FOUND, Json(json!({"error": "model not found"}))).into_response(),
    }
}

async fn chat(State(shared): State<OllamaState>, headers: HeaderMap, Json(body): Json<Value>) -> Response {
    if let Some(trace) = headers.get("traceparent") {
        shared.traces.send_modify(|traces| traces.push(trace.to_str().unwrap().to_owned()));
    }
    shared.chats.send_modify(|chats| chats.push(body));
    let (pieces, then_hang) = match shared.reply {
        CannedReply::Status(status, text) => return (StatusCode::from_u16(status).unwrap(), text).into_response(),
        CannedReply::Stream { pieces, then_hang } => (pieces, then_hang),
    };
    let mut unfinished = UnfinishedReply(Some(shared.closed));
    let stream = async_stream_of(pieces, then_hang, move || unfinished.finish());
    Body::from_stream(stream).into_response()
}

/// Reports that a reply is dropped before its end.
struct UnfinishedReply(Option<Arc<watch::Sender<bool>>>);

impl UnfinishedReply {
    fn finish(&mut self) {
        self.0 = None;
    }
}

impl Drop for UnfinishedReply {
    fn drop(&mut self) {
        if let Some(closed) = self.0.take() {
            closed.send_replace(true);
        }
    }
}

fn async_stream_of(
    pieces: Vec<Vec<u8>>,
    then_hang: bool,
    mut finished: impl FnMut() + Send + 'static,
) -> impl futures::Stream<Item = Result<Bytes, std::io::Error>> + Send + 'static {
    futures::stream::unfold(pieces.into_iter(), move |mut rest| {
        let piece = rest.next();
        if piece.is_none() && !then_hang {
            finished();
        }
        async move {
            // Lets each piece leave on its own.
            tokio::task::yield_now().await;
            match piece {
                Some(piece) => Some((Ok(Bytes::from(piece)), rest)),
                None if then_hang => futures::future::pending().await,
                None => None,
            }
        }
    })
}
