//! A server in the test's own process, on a free port and a data folder of its own, with a scripted model.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use querent_agent::Agent;
use querent_agent::models::scripted::{Script, ScriptedModel};
use querent_catalog::{NoProgress, Principal};
use querent_engine::{Engine, Limits};
use querent_flight::config::{Config, EmbedProviderName, SettingSources, Settings};
use querent_flight::{RunningServer, Server};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::models_dir;

/// How a test's server differs from the default one.
pub struct TestSettings {
    tokens: String,
    script: Value,
    embedder: bool,
    change: Box<dyn FnOnce(&mut Settings) + Send>,
}

impl Default for TestSettings {
    fn default() -> Self {
        let script =
            json!({ "runs": [{ "turns": [{ "events": [{ "text": "nothing to say" }] }], "repeat_last": true }] });
        Self { tokens: String::new(), script, embedder: false, change: Box::new(|_| {}) }
    }
}

impl TestSettings {
    /// `token:role[:subject],...`, as in `QUERENT_AUTH_TOKENS`.
    pub fn tokens(mut self, tokens: &str) -> Self {
        self.tokens = tokens.to_owned();
        self
    }

    /// What the model says, in the scripted model's own format.
    pub fn script(mut self, script: Value) -> Self {
        self.script = script;
        self
    }

    /// Searches by meaning too. Takes a second or two to load the model.
    pub fn with_embedder(mut self) -> Self {
        self.embedder = true;
        self
    }

    /// Changes any other setting.
    pub fn change(mut self, change: impl FnOnce(&mut Settings) + Send + 'static) -> Self {
        self.change = Box::new(change);
        self
    }
}

/// A running server. Dropping it cuts it; [`TestServer::stop`] is the polite way.
pub struct TestServer {
    /// Where it listens.
    pub addr: SocketAddr,
    /// The model it asks; tells what it was asked and which calls were dropped.
    pub model: Arc<ScriptedModel>,
    /// A client without a token.
    pub http: reqwest::Client,
    running: RunningServer,
    data: TempDir,
}

/// A response, read to its end.
#[derive(Debug, Clone)]
pub struct HttpReply {
    /// Status code.
    pub status: u16,
    /// Headers.
    pub headers: reqwest::header::HeaderMap,
    /// Body.
    pub text: String,
}

impl HttpReply {
    /// The body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error} in the body: {}", self.text))
    }

    /// The body's lines as JSON.
    pub fn lines(&self) -> Vec<Value> {
        self.text.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
    }

    /// A header as text; empty when absent.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }
}

impl TestServer {
    /// Starts it.
    pub async fn start(settings: TestSettings) -> Self {
        let data = TempDir::new().unwrap();
        Self::start_in(data, settings).await
    }

    /// Starts it on a data folder that exists already.
    pub async fn start_in(data: TempDir, settings: TestSettings) -> Self {
        let mut sources = SettingSources::default().with_flag("listen", "127.0.0.1:0");
        sources = sources.with_flag("data", data.path().to_str().unwrap());
        sources = sources.with_flag("auth.tokens", settings.tokens);
        let mut chosen = Config::load(&sources).unwrap().settings;
        chosen.shutdown_timeout.0 = Duration::from_secs(10);
        match settings.embedder {
            true => {
                chosen.embed.model_path = Some(models_dir().join("all-minilm-l6-v2"));
                chosen.embed.runtime = Some(models_dir().join("ort/libonnxruntime.so"));
            }
            false => chosen.embed.provider = EmbedProviderName::None,
        }
        (settings.change)(&mut chosen);
        let script: Script = serde_json::from_value(settings.script).expect("a script");
        let model = Arc::new(ScriptedModel::new(script));
        let config = Config::from_settings(chosen).unwrap();
        let shared: Arc<ScriptedModel> = Arc::clone(&model);
        let running = Server::start_with(config, shared, Arc::new(NoProgress)).await.unwrap();
        Self { addr: running.addr, model, http: reqwest::Client::new(), running, data }
    }

    /// The engine behind it.
    pub fn engine(&self) -> &Engine {
        &self.running.state().engine
    }

    /// The agent behind it.
    pub fn agent(&self) -> &Agent {
        &self.running.state().agent
    }

    /// The data folder.
    pub fn data(&self) -> &Path {
        self.data.path()
    }

    /// `http://127.0.0.1:PORT` and the path.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.addr)
    }

    /// A GET, with a token when there is one.
    pub async fn get(&self, path: &str, token: Option<&str>) -> HttpReply {
        self.send(self.http.get(self.url(path)), token).await
    }

    /// A POST of JSON, with a token when there is one.
    pub async fn post(&self, path: &str, body: &Value, token: Option<&str>) -> HttpReply {
        self.send(self.http.post(self.url(path)).json(body), token).await
    }

    /// Any request, read to its end.
    pub async fn send(&self, request: reqwest::RequestBuilder, token: Option<&str>) -> HttpReply {
        let request = match token {
            Some(token) => request.bearer_auth(token),
            None => request,
        };
        let response = request.send().await.expect("a response");
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        HttpReply { status, headers, text: response.text().await.expect("a whole body") }
    }

    /// Runs SQL as an administrator, past HTTP.
    pub async fn execute(&self, sql: &str) {
        let session = self.engine().session(Principal::local_admin(), Limits::default());
        let stream = session.sql(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
        stream.collect().await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    }

    /// `otel_logs` in database `default`: 40 rows of the last hour and 10 older ones. Of the last hour's errors
    /// `payments` has 12, `auth` 5 and `search` 2.
    pub async fn seed_otel_logs(&self) {
        self.execute(
            "CREATE TABLE otel_logs AS
             WITH n AS (SELECT value AS i FROM generate_series(0, 49) AS s(value))
             SELECT
                 to_timestamp(CAST(date_part('epoch', now()) AS BIGINT) - CASE WHEN i < 40 THEN i * 60 ELSE 18000 END)
                     AS timestamp,
                 CASE WHEN i < 19 OR i >= 40 THEN 17 ELSE 9 END AS severity_number,
                 CASE WHEN i < 19 OR i >= 40 THEN 'ERROR' ELSE 'INFO' END AS severity_text,
                 CASE WHEN i < 19 OR i >= 40 THEN 'request failed: timeout' ELSE 'request served' END AS body,
                 CASE WHEN i < 12 THEN 'payments' WHEN i < 17 THEN 'auth' WHEN i < 19 THEN 'search' ELSE 'web' END
                     AS service_name
             FROM n",
        )
        .await;
    }

    /// Stops it and returns its data folder.
    pub async fn stop(self) -> TempDir {
        self.running.shutdown().await.unwrap();
        self.data
    }
}

/// One SSE frame.
#[derive(Debug, Clone, PartialEq)]
pub struct SseFrame {
    /// `event:`
    pub event: String,
    /// `data:`
    pub data: Value,
}

/// Reads a response until it has said `text`; all of it so far.
pub async fn read_until(response: &mut reqwest::Response, text: &str) -> String {
    let mut read = String::new();
    while !read.contains(text) {
        let chunk = tokio::time::timeout(Duration::from_secs(20), response.chunk()).await.expect("in time");
        read.push_str(std::str::from_utf8(&chunk.expect("a chunk").expect("more")).expect("whole letters"));
    }
    read
}

/// The frames of a whole SSE text. Comments are passed over; anything else that is not a frame panics.
pub fn collect_sse(text: &str) -> Vec<SseFrame> {
    let frames = text.split("\n\n").filter(|frame| !frame.trim().is_empty() && !frame.starts_with(':'));
    let field = |frame: &str, name: &str| {
        let lines = frame.lines().filter_map(|line| line.strip_prefix(name)).map(str::trim).collect::<Vec<_>>();
        assert_eq!(lines.len(), 1, "one {name} line a frame: {frame}");
        lines.concat()
    };
    frames
        .map(|frame| SseFrame {
            event: field(frame, "event:"),
            data: serde_json::from_str(&field(frame, "data:")).expect("JSON data"),
        })
        .collect()
}
