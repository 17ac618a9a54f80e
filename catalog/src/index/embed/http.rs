//! The common part of embedders over HTTP: batches, retries while the server is busy, limits, errors without the key.
//!
//! The index calls an embedder from its own threads, and a caller may construct one anywhere: requests run on a small
//! runtime of the embedder, so that waiting for a request never blocks the caller's runtime.

use std::time::Duration;

use chrono::Utc;
use reqwest::header::RETRY_AFTER;
use reqwest::{RequestBuilder, Response, StatusCode, Url};
use serde_json::Value;
use tokio::runtime::Runtime;

use super::{EmbedSettings, Embedder, EmbeddingModel, embedder_error, normalise};
use crate::error::{CatalogError, Result};
use crate::outbound::{ApiKey, jittered, message_in, retry_after, with_causes};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);
/// The largest response; that of a batch is some megabytes.
const MAX_ANSWER_BYTES: usize = 64 << 20;
/// Bytes of a string that every provider accepts in any language: their limits are 2,048 to 8,192 tokens.
const MAX_TEXT_CHARS: usize = 6_000;
const ATTEMPTS: u32 = 3;
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// The longest pause before a retry. When a server asks for a longer one, the index tries again later.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
const SHOWN_CHARS: usize = 300;

/// The protocol of one provider. Pure.
pub(super) trait EmbedProtocol: Send + Sync + 'static {
    /// The provider's own address.
    const BASE_URL: &'static str;
    /// Strings in one request.
    const BATCH: usize;
    /// Concurrent requests.
    const WORKERS: usize;
    /// The path below the base URL.
    fn path(model: &str) -> String;
    /// The request's body.
    fn body(model: &str, texts: &[String]) -> Value;
    /// The request with the key added.
    fn with_key(request: RequestBuilder, key: &str) -> RequestBuilder;
    /// The vectors of a response, in order; `None` when they are not where they should be.
    fn vectors(answer: Value) -> Option<Vec<Vec<f32>>>;
}

/// An embedder behind HTTP.
pub(super) struct HttpEmbedder<P> {
    model: EmbeddingModel,
    server: EmbedServer,
    /// `None` only while this is being dropped.
    runtime: Option<Runtime>,
    protocol: std::marker::PhantomData<fn() -> P>,
}

/// Where requests go.
#[derive(Clone)]
struct EmbedServer {
    model: String,
    url: Url,
    key: Option<ApiKey>,
    key_variable: Option<String>,
    client: reqwest::Client,
}

impl<P: EmbedProtocol> HttpEmbedder<P> {
    /// Connects to the server and embeds one string, to learn the model's dimension.
    pub(super) fn new(settings: &EmbedSettings) -> Result<Self> {
        let id = &settings.model;
        let base = settings.base_url.as_deref().unwrap_or(P::BASE_URL).trim();
        let url = Url::parse(&format!("{}/{}", base.trim_end_matches('/'), P::path(id)))
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
            .ok_or_else(|| embedder_error(id, format!("`{base}` is not an address"), "write it as https://host/v1"))?;
        if settings.api_key.is_none()
            && settings.base_url.is_none()
            && let Some(variable) = &settings.api_key_variable
        {
            return Err(embedder_error(id, "there is no key", &format!("set {variable}")));
        }
        // A key must not follow a redirect to another host.
        let builder = reqwest::Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(REQUEST_TIMEOUT)
            .redirect(reqwest::redirect::Policy::none());
        // A proxy cannot reach this machine's loopback.
        let is_local = matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"));
        let builder = if is_local { builder.no_proxy() } else { builder };
        let client = builder.build().map_err(|error| embedder_error(id, with_causes(&error), "report this"))?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("querent-embed")
            .enable_all()
            .build()
            .map_err(|error| embedder_error(id, error, "check the machine's limits of threads"))?;
        let server = EmbedServer {
            model: id.clone(),
            url,
            key: settings.api_key.clone(),
            key_variable: settings.api_key_variable.clone(),
            client,
        };
        let model = EmbeddingModel { id: id.clone(), dimension: 0 };
        let mut embedder = Self { model, server, runtime: Some(runtime), protocol: std::marker::PhantomData };
        let first = embedder.embed(&["dimension".to_owned()])?;
        embedder.model.dimension = first.first().map_or(0, Vec::len);
        if embedder.model.dimension == 0 {
            return Err(embedder.server.odd("an empty vector"));
        }
        Ok(embedder)
    }

    /// Runs a future on the embedder's own runtime and waits for it.
    fn wait_for<T: Send + 'static>(&self, work: impl Future<Output = Result<T>> + Send + 'static) -> Result<T> {
        let stopped = || CatalogError::Internal("the embedder's runtime has stopped".into());
        let runtime = self.runtime.as_ref().ok_or_else(stopped)?;
        let (done, outcome) = std::sync::mpsc::sync_channel(1);
        runtime.spawn(async move {
            let _ = done.send(work.await);
        });
        outcome.recv().map_err(|_| stopped())?
    }
}

impl<P> Drop for HttpEmbedder<P> {
    fn drop(&mut self) {
        // A plain drop would wait, which is not allowed on an async thread.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl<P: EmbedProtocol> Embedder for HttpEmbedder<P> {
    fn model(&self) -> &EmbeddingModel {
        &self.model
    }

    fn workers(&self) -> usize {
        P::WORKERS
    }

    fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>> {
        let server = self.server.clone();
        let batches: Vec<Vec<String>> =
            texts.chunks(P::BATCH).map(|batch| batch.iter().map(|text| sendable(text)).collect()).collect();
        self.wait_for(async move {
            let mut vectors = Vec::new();
            for batch in batches {
                let answer = server.ask::<P>(&P::body(&server.model, &batch)).await?;
                let mut answered = P::vectors(answer).ok_or_else(|| server.odd("an answer without vectors"))?;
                if answered.len() != batch.len() {
                    return Err(server.odd(&format!("{} vectors for {} texts", answered.len(), batch.len())));
                }
                answered.iter_mut().for_each(|vector| normalise(vector));
                vectors.append(&mut answered);
            }
            Ok(vectors)
        })
    }
}

impl EmbedServer {
    async fn ask<P: EmbedProtocol>(&self, body: &Value) -> Result<Value> {
        let mut pause = FIRST_PAUSE;
        for _ in 1..ATTEMPTS {
            let response = self.send::<P>(body).await?;
            let Some(asked) = asked_pause(&response) else { return self.read(response).await };
            if asked.is_some_and(|asked| asked > LONGEST_PAUSE) {
                return self.read(response).await;
            }
            tokio::time::sleep(asked.unwrap_or_default().max(jittered(pause))).await;
            pause *= 2;
        }
        let last = self.send::<P>(body).await?;
        self.read(last).await
    }

    async fn send<P: EmbedProtocol>(&self, body: &Value) -> Result<Response> {
        let request = self.client.post(self.url.clone()).json(body);
        let request = match &self.key {
            Some(key) => P::with_key(request, key.secret()),
            None => request,
        };
        let hint = "start the server, or check embed.base_url and the network";
        request.send().await.map_err(|error| self.error(&format!("cannot reach it: {}", with_causes(&error)), hint))
    }

    async fn read(&self, mut response: Response) -> Result<Value> {
        let status = response.status();
        let mut body = Vec::new();
        let broke =
            |error: reqwest::Error| self.error(&format!("the connection broke: {}", with_causes(&error)), "try again");
        while let Some(piece) = response.chunk().await.map_err(broke)? {
            if body.len() + piece.len() > MAX_ANSWER_BYTES {
                return Err(self.odd("more bytes than vectors need"));
            }
            body.extend_from_slice(&piece);
        }
        if status.is_success() {
            return serde_json::from_slice(&body).map_err(|error| self.odd(&format!("no JSON: {error}")));
        }
        let said = String::from_utf8_lossy(&body);
        let message = serde_json::from_str::<Value>(&said).ok().and_then(|body| message_in(&body));
        let detail = format!("{}: {}", status.as_u16(), message.as_deref().unwrap_or(said.trim()));
        let key = self.key_variable.as_deref().unwrap_or("embed.api_key_env");
        Err(match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => self.error(&detail, &format!("check the key in {key}")),
            StatusCode::NOT_FOUND => self.error(&detail, "check embed.model and embed.base_url"),
            StatusCode::TOO_MANY_REQUESTS => self.error(&detail, "the server limits its callers"),
            _ => self.error(&detail, "check embed.model and the server's log"),
        })
    }

    fn odd(&self, what: &str) -> CatalogError {
        self.error(&format!("the server sent {what}"), "check embed.provider, embed.base_url and embed.model")
    }

    fn error(&self, detail: &str, hint: &str) -> CatalogError {
        let detail = match &self.key {
            Some(key) => key.masked_in(detail),
            None => detail.to_owned(),
        };
        let shown: String = detail.chars().take(SHOWN_CHARS).collect();
        embedder_error(&self.model, format!("{shown} ({})", self.shown_url()), hint)
    }

    fn shown_url(&self) -> String {
        let mut url = self.url.clone();
        let _ = url.set_username("");
        let _ = url.set_password(None);
        url.set_query(None);
        url.to_string()
    }
}

/// `Some` for a response of a busy server, with the pause that it asks for, if any.
fn asked_pause(response: &Response) -> Option<Option<Duration>> {
    if !matches!(response.status().as_u16(), 429 | 503 | 529) {
        return None;
    }
    let after = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
    Some(after.and_then(|text| retry_after(text, Utc::now())))
}

/// A string that providers accept: they refuse empty strings and ones that are too long.
fn sendable(text: &str) -> String {
    if text.trim().is_empty() {
        return "-".to_owned();
    }
    text.chars().take(MAX_TEXT_CHARS).collect()
}

/// The numbers of a vector; `None` when an element is not a number.
pub(super) fn numbers(values: &Value) -> Option<Vec<f32>> {
    values.as_array()?.iter().map(|value| value.as_f64().map(|number| number as f32)).collect()
}
