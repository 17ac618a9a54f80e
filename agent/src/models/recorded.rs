//! Records a model's replies to a file, and replays them: for tests with a real model's replies but without the model,
//! and for reruns that are identical byte for byte.
//!
//! A recording is NDJSON. Its first line says which model it is and what it can do; every other line is one turn: the
//! request's key, the beginning of its last message (for readers of the file only) and the events in the pieces in
//! which they arrived. A key is the hash of the model's name and the whole request, so a changed prompt, tool or schema
//! is a request that was never recorded. What differs from run to run (ids, the time of day) must therefore stay out of
//! prompts and tool results; the ids of tool calls are left out of the key.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use futures::StreamExt;
use futures::stream::BoxStream;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tokio::io::AsyncWriteExt;
use tokio::sync::OnceCell;

use super::{ChatRequest, ModelCapabilities, ModelEvent, ModelProvider};
use crate::error::{AgentError, Result};

/// First line of a recording.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Header {
    model: String,
    capabilities: ModelCapabilities,
}

/// Any other line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct RecordedTurn {
    key: String,
    about: String,
    events: Vec<ModelEvent>,
    /// Why the turn failed, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// Passes requests on to a model and records the replies.
pub struct RecordingModel {
    inner: Arc<dyn ModelProvider>,
    path: PathBuf,
    file: Arc<tokio::sync::Mutex<tokio::fs::File>>,
    header_written: OnceCell<()>,
}

impl RecordingModel {
    /// Records `inner` into a new file at `path`; an existing one is replaced.
    pub async fn create(inner: Arc<dyn ModelProvider>, path: &Path) -> Result<Self> {
        let file = tokio::fs::File::create(path)
            .await
            .map_err(|error| failed(format!("cannot write the recording {}: {error}", path.display())))?;
        Ok(Self {
            inner,
            path: path.to_owned(),
            file: Arc::new(tokio::sync::Mutex::new(file)),
            header_written: OnceCell::new(),
        })
    }
}

#[async_trait]
impl ModelProvider for RecordingModel {
    fn model_id(&self) -> &str {
        self.inner.model_id()
    }

    fn is_self_hosted(&self) -> bool {
        self.inner.is_self_hosted()
    }

    fn provider_name(&self) -> &'static str {
        self.inner.provider_name()
    }

    fn forces_calls(&self) -> bool {
        self.inner.forces_calls()
    }

    fn may_ignore_tool_choice(&self) -> bool {
        self.inner.may_ignore_tool_choice()
    }

    async fn capabilities(&self) -> Result<ModelCapabilities> {
        let capabilities = self.inner.capabilities().await?;
        let header = Header { model: self.model_id().to_owned(), capabilities: capabilities.clone() };
        self.header_written.get_or_try_init(|| append(&self.file, &self.path, &header)).await?;
        Ok(capabilities)
    }

    async fn chat(&self, request: ChatRequest) -> Result<BoxStream<'static, Result<ModelEvent>>> {
        // The header comes first.
        self.capabilities().await?;
        let mut turn = RecordedTurn {
            key: request_key(self.model_id(), &request)?,
            about: about(&request),
            events: Vec::new(),
            error: None,
        };
        let mut pieces = self.inner.chat(request).await?;
        let (file, path) = (Arc::clone(&self.file), self.path.clone());
        // A turn is written when it ends; one that is dropped before is not a whole reply and is left out.
        let stream = async_stream::stream! {
            while let Some(piece) = pieces.next().await {
                let is_last = match &piece {
                    Ok(event) => {
                        turn.events.push(event.clone());
                        matches!(event, ModelEvent::Done { .. })
                    }
                    Err(error) => {
                        turn.error = Some(failure_detail(error));
                        true
                    }
                };
                if is_last && let Err(error) = append(&file, &path, &turn).await {
                    yield Err(error);
                    return;
                }
                yield piece;
            }
        };
        Ok(stream.boxed())
    }
}

/// Replies from a recording, without the model.
pub struct ReplayingModel {
    path: PathBuf,
    header: Header,
    turns: HashMap<String, Mutex<Replay>>,
}

/// The recorded turns of one request.
struct Replay {
    turns: Vec<RecordedTurn>,
    next: usize,
}

impl Replay {
    /// Returns the turns in order; the last one again when the request is repeated more often than it was recorded.
    fn next_turn(&mut self) -> Option<RecordedTurn> {
        let turn = self.turns.get(self.next).cloned();
        self.next = (self.next + 1).min(self.turns.len().saturating_sub(1));
        turn
    }
}

impl ReplayingModel {
    /// Reads the recording at `path`.
    pub async fn open(path: &Path) -> Result<Self> {
        let unreadable = |error: String| failed(format!("cannot read the recording {}: {error}", path.display()));
        let text = tokio::fs::read_to_string(path).await.map_err(|error| unreadable(error.to_string()))?;
        let mut lines = text.lines();
        let header = lines.next().ok_or_else(|| unreadable("it is empty".to_owned()))?;
        let header = serde_json::from_str(header).map_err(|error| unreadable(format!("line 1: {error}")))?;
        let mut turns: HashMap<String, Mutex<Replay>> = HashMap::new();
        for (index, line) in lines.enumerate() {
            let turn: RecordedTurn =
                serde_json::from_str(line).map_err(|error| unreadable(format!("line {}: {error}", index + 2)))?;
            let replay =
                turns.entry(turn.key.clone()).or_insert_with(|| Mutex::new(Replay { turns: Vec::new(), next: 0 }));
            replay.get_mut().turns.push(turn);
        }
        Ok(Self { path: path.to_owned(), header, turns })
    }
}

#[async_trait]
impl ModelProvider for ReplayingModel {
    fn model_id(&self) -> &str {
        &self.header.model
    }

    async fn capabilities(&self) -> Result<ModelCapabilities> {
        Ok(self.header.capabilities.clone())
    }

    async fn chat(&self, request: ChatRequest) -> Result<BoxStream<'static, Result<ModelEvent>>> {
        let key = request_key(self.model_id(), &request)?;
        let turn = self.turns.get(&key).and_then(|replay| replay.lock().next_turn()).ok_or_else(|| {
            failed(format!(
                "replay_miss: {} holds no reply to this request (key {key}, about {}); the prompt, a tool or the data \
                 changed since it was recorded: record it again with `make record`, or with QUERENT_AGENT_RECORD={}",
                self.path.display(),
                about(&request),
                self.path.display(),
            ))
        })?;
        let end = turn.error.map(|detail| Err(failed(detail)));
        let events: Vec<Result<ModelEvent>> = turn.events.into_iter().map(Ok).chain(end).collect();
        Ok(futures::stream::iter(events).boxed())
    }
}

/// Returns what identifies a request: the hash of all of it but the ids of tool calls.
fn request_key(model: &str, request: &ChatRequest) -> Result<String> {
    let mut request = request.clone();
    for message in &mut request.messages {
        message.tool_call_id = None;
        for call in &mut message.tool_calls {
            call.id = None;
        }
    }
    let text = serde_json::to_vec(&(model, &request))
        .map_err(|error| AgentError::Internal(format!("a request is not JSON: {error}")))?;
    Ok(format!("{:x}", Sha256::digest(text)))
}

fn about(request: &ChatRequest) -> String {
    const SHOWN_CHARS: usize = 80;
    let last = request.messages.last().map_or("", |message| message.content.as_str());
    last.chars().take(SHOWN_CHARS).collect()
}

/// Returns what a replay of this failure repeats.
fn failure_detail(error: &AgentError) -> String {
    match error {
        AgentError::ModelFailed { detail } => detail.clone(),
        other => other.to_string(),
    }
}

async fn append(file: &tokio::sync::Mutex<tokio::fs::File>, path: &Path, line: &impl Serialize) -> Result<()> {
    let mut text =
        serde_json::to_vec(line).map_err(|error| AgentError::Internal(format!("a reply is not JSON: {error}")))?;
    text.push(b'\n');
    let mut file = file.lock().await;
    let written = match file.write_all(&text).await {
        Ok(()) => file.flush().await,
        Err(error) => Err(error),
    };
    written.map_err(|error| failed(format!("cannot write the recording {}: {error}", path.display())))
}

fn failed(detail: String) -> AgentError {
    AgentError::ModelFailed { detail }
}
