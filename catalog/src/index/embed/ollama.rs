//! Embeddings of an Ollama server: `POST /api/embed`.

use reqwest::RequestBuilder;
use serde_json::{Value, json};

use super::http::{EmbedProtocol, numbers};

/// The default model.
pub(super) const DEFAULT_MODEL: &str = "all-minilm";

/// Ollama's protocol.
pub(super) struct Ollama;

impl EmbedProtocol for Ollama {
    const BASE_URL: &'static str = "http://localhost:11434";
    const BATCH: usize = 64;
    /// Ollama usually computes on this machine, where two requests at once only wait for each other.
    const WORKERS: usize = 1;

    fn path(_model: &str) -> String {
        "api/embed".to_owned()
    }

    fn body(model: &str, texts: &[String]) -> Value {
        json!({ "model": model, "input": texts, "truncate": true })
    }

    fn with_key(request: RequestBuilder, key: &str) -> RequestBuilder {
        request.bearer_auth(key)
    }

    fn vectors(answer: Value) -> Option<Vec<Vec<f32>>> {
        answer.get("embeddings")?.as_array()?.iter().map(numbers).collect()
    }
}
