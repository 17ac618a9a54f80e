//! Passes messages of a client on standard input to a server's `/mcp`, and the answers back, one a line.
//!
//! Messages are passed unchanged. Each request is a task of its own: cancelling it drops its connection, which ends it on
//! the server. A session that the server forgot is opened again with the client's own `initialize`.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use futures::TryStreamExt;
use parking_lot::Mutex;
use querent_agent::protocols::json::parse_exact_json;
use reqwest::{Method, Response, StatusCode, header};
use rmcp::transport::stdio_pipes;
use serde_json::{Value, json};
use tokio::io::{AsyncWriteExt, BufReader};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};

use super::lines::{InputLine, next_line};
use crate::cli::client::Client;
use crate::cli::error::CliError;
use crate::cli::sse;

/// The most bytes of one message.
const MAX_LINE: usize = 16 << 20;
/// The most requests at once; more wait to be read.
const MAX_CALLS: usize = 64;
/// The most answers that wait for a client that does not read.
const ANSWERS_IN_FLIGHT: usize = 16;
/// How long requests may take to end after standard input has ended.
const LAST_ANSWERS: Duration = Duration::from_secs(5);
const PARSE_ERROR: i64 = -32_700;
const SERVER_ERROR: i64 = -32_000;
const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";

/// Passes messages until standard input ends.
pub(super) async fn run(client: Client, database: Option<String>) -> Result<(), CliError> {
    let (stdin, mut stdout) = stdio_pipes();
    let (answers, mut lines) = mpsc::channel::<String>(ANSWERS_IN_FLIGHT);
    let server = Arc::new(ProxiedServer { client, database, agreed: Mutex::default(), answers });
    let write = async move {
        while let Some(line) = lines.recv().await {
            stdout.write_all(line.as_bytes()).await?;
            stdout.write_all(b"\n").await?;
            stdout.flush().await?;
        }
        Ok::<(), CliError>(())
    };
    let read = async move {
        let mut stdin = BufReader::new(stdin);
        let mut calls = Calls::default();
        while let Some(line) = next_line(&mut stdin, MAX_LINE).await? {
            match line {
                InputLine::Text(line) if line.trim().is_empty() => {}
                InputLine::Text(line) => calls.begin(&server, &line).await,
                InputLine::TooLong => {
                    let message = format!("a message is larger than {MAX_LINE} bytes");
                    server.refuse(&Value::Null, PARSE_ERROR, &message).await;
                }
                InputLine::NotText => {
                    server.refuse(&Value::Null, PARSE_ERROR, "the message is not UTF-8").await;
                }
            }
        }
        if tokio::time::timeout(LAST_ANSWERS, calls.all_ended()).await.is_err() {
            calls.give_up(&server).await;
        }
        Ok::<(), CliError>(())
    };
    tokio::try_join!(read, write).map(|((), ())| ())
}

/// Requests in progress, by their ids.
#[derive(Default)]
struct Calls {
    tasks: JoinSet<String>,
    by_id: HashMap<String, AbortHandle>,
}

impl Calls {
    async fn begin(&mut self, server: &Arc<ProxiedServer>, line: &str) {
        let message = match parse_exact_json(line.trim_start_matches('\u{feff}').as_bytes()) {
            Ok(message) => message,
            Err(error) => {
                return server.refuse(&Value::Null, PARSE_ERROR, &format!("the message is not JSON: {error}")).await;
            }
        };
        if message["method"] == "notifications/cancelled" {
            if let Some(call) = self.by_id.remove(&message["params"]["requestId"].to_string()) {
                call.abort();
            }
            return;
        }
        while let Some(ended) = self.tasks.try_join_next() {
            self.forget(ended.ok());
        }
        if self.tasks.len() >= MAX_CALLS
            && let Some(ended) = self.tasks.join_next().await
        {
            self.forget(ended.ok());
        }
        let id = message["id"].to_string();
        let (server, key) = (Arc::clone(server), id.clone());
        let call = self.tasks.spawn(async move {
            server.pass(&message).await;
            key
        });
        self.by_id.insert(id, call);
    }

    fn forget(&mut self, id: Option<String>) {
        if let Some(id) = id
            && self.by_id.get(&id).is_some_and(AbortHandle::is_finished)
        {
            self.by_id.remove(&id);
        }
    }

    async fn all_ended(&mut self) {
        while let Some(ended) = self.tasks.join_next().await {
            self.forget(ended.ok());
        }
    }

    /// Ends the requests in progress, and says so: whoever has piped them in would read nothing of them.
    async fn give_up(&mut self, server: &ProxiedServer) {
        self.tasks.abort_all();
        // Those that were answered meanwhile are forgotten.
        self.all_ended().await;
        for id in std::mem::take(&mut self.by_id).into_keys() {
            // A notification has none.
            let id: Value = serde_json::from_str(&id).unwrap_or_default();
            if !id.is_null() {
                let message = format!("standard input ended {LAST_ANSWERS:?} ago, and this is not answered yet");
                server.refuse(&id, SERVER_ERROR, &message).await;
            }
        }
    }
}

/// The server, and what `initialize` agreed on.
struct ProxiedServer {
    client: Client,
    database: Option<String>,
    agreed: Mutex<Agreed>,
    answers: mpsc::Sender<String>,
}

#[derive(Clone, Default)]
struct Agreed {
    initialize: Option<Value>,
    session: Option<String>,
    version: Option<String>,
}

impl ProxiedServer {
    /// Sends a message and passes its answers on. A failure on the way becomes an error answer.
    async fn pass(&self, message: &Value) {
        if let Err(error) = self.exchange(message).await
            && message.get("id").is_some()
        {
            self.refuse(&message["id"], SERVER_ERROR, &error.to_string()).await;
        }
    }

    async fn refuse(&self, id: &Value, code: i64, message: &str) {
        let error = json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } });
        let _ = self.answers.send(error.to_string()).await;
    }

    async fn exchange(&self, message: &Value) -> Result<(), CliError> {
        let is_initialize = message["method"] == "initialize";
        let mut response = self.send(message).await?;
        let had_session = self.agreed.lock().session.is_some();
        if response.status() == StatusCode::NOT_FOUND && had_session && !is_initialize && self.begin_again().await? {
            response = self.send(message).await?;
        }
        if is_initialize && response.status().is_success() {
            let session = session_of(&response);
            *self.agreed.lock() = Agreed { initialize: Some(message.clone()), session, version: None };
        }
        let status = response.status();
        if is_stream(&response) {
            let mut events = sse::events(&self.client, response);
            while let Some(event) = events.try_next().await? {
                self.answer(message, &event.data).await?;
            }
            return Ok(());
        }
        let body = response.text().await.map_err(|error| self.client.http_error(error))?;
        match body.is_empty() {
            true if status.is_success() => Ok(()),
            true => Err(CliError::failed(format!("the server answered {status}"))),
            false => self.answer(message, &body).await,
        }
    }

    /// Opens the session that the server no longer knows. Returns whether there was one to open.
    async fn begin_again(&self) -> Result<bool, CliError> {
        let Some(initialize) = self.agreed.lock().initialize.clone() else { return Ok(false) };
        self.agreed.lock().session = None;
        let response = self.send(&initialize).await?;
        let session = session_of(&response).filter(|_| response.status().is_success());
        let is_begun = session.is_some();
        self.agreed.lock().session = session;
        Ok(is_begun)
    }

    /// Passes one answer on, on one line.
    async fn answer(&self, message: &Value, text: &str) -> Result<(), CliError> {
        let mut answer: Value = serde_json::from_str(text)
            .map_err(|_| CliError::failed("the server's answer is not MCP's; is it a querent server?"))?;
        if answer.get("jsonrpc").is_none() {
            // A refusal from before the MCP handler, in the shape of the other routes.
            let said = answer["error"]["message"].as_str().or(answer["error"].as_str()).unwrap_or("the server refused");
            return Err(CliError::failed(said));
        }
        if answer["id"].is_null() && answer.get("error").is_some() {
            answer["id"] = message.get("id").cloned().unwrap_or(Value::Null);
        }
        if message["method"] == "initialize" {
            let version = answer["result"]["protocolVersion"].as_str().map(str::to_owned);
            self.agreed.lock().version = version;
        }
        self.answers.send(answer.to_string()).await.map_err(|_| CliError::OutputClosed)
    }

    async fn send(&self, message: &Value) -> Result<Response, CliError> {
        let Agreed { session, version, .. } = self.agreed.lock().clone();
        let is_initialize = message["method"] == "initialize";
        let own_version = message["params"]["_meta"][VERSION_KEY].as_str().map(str::to_owned);
        let agreed = version.filter(|_| !is_initialize);
        let named = message["params"]["name"].as_str().or(message["params"]["uri"].as_str());
        let headers = [
            ("mcp-session-id", session.filter(|_| own_version.is_none() && !is_initialize)),
            ("mcp-protocol-version", own_version.or(agreed)),
            ("mcp-method", message["method"].as_str().map(header_value)),
            ("mcp-name", named.map(header_value)),
            ("x-database", self.database.clone()),
        ];
        let mut request = self
            .client
            .request(Method::POST, "/mcp")?
            .header(header::ACCEPT, "application/json, text/event-stream")
            .json(message);
        for (name, value) in headers {
            if let Some(value) = value {
                request = request.header(name, value);
            }
        }
        request.send().await.map_err(|error| self.client.http_error(error))
    }
}

fn session_of(response: &Response) -> Option<String> {
    response.headers().get("mcp-session-id")?.to_str().ok().map(str::to_owned)
}

fn is_stream(response: &Response) -> bool {
    let kind = response.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    kind.is_some_and(|kind| kind.starts_with("text/event-stream"))
}

/// Returns a header's value; text that a header cannot carry is encoded as MCP specifies.
fn header_value(text: &str) -> String {
    let is_plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic()) && !text.starts_with("=?");
    if is_plain { text.to_owned() } else { format!("=?base64?{}?=", BASE64.encode(text)) }
}
