//! Embeddings of Google's Gemini: `POST /v1beta/models/MODEL:batchEmbedContents`.

use reqwest::RequestBuilder;
use serde_json::{Value, json};

use super::http::{EmbedProtocol, numbers};

/// The default model.
pub(super) const DEFAULT_MODEL: &str = "gemini-embedding-001";
/// The conventional environment variable of the key.
pub(super) const KEY_VARIABLE: &str = "GEMINI_API_KEY";
/// The default of 3,072 numbers would make the index four times as large for little gain.
const DIMENSION: usize = 768;

/// Gemini's protocol.
pub(super) struct Gemini;

impl EmbedProtocol for Gemini {
    const BASE_URL: &'static str = "https://generativelanguage.googleapis.com/v1beta";
    /// Gemini's limit.
    const BATCH: usize = 100;
    const WORKERS: usize = 4;

    fn path(model: &str) -> String {
        format!("models/{model}:batchEmbedContents")
    }

    fn body(model: &str, texts: &[String]) -> Value {
        let request = |text: &String| {
            json!({
                "model": format!("models/{model}"),
                "content": { "parts": [{ "text": text }] },
                "outputDimensionality": DIMENSION,
            })
        };
        json!({ "requests": texts.iter().map(request).collect::<Vec<_>>() })
    }

    fn with_key(request: RequestBuilder, key: &str) -> RequestBuilder {
        request.header("x-goog-api-key", key)
    }

    fn vectors(answer: Value) -> Option<Vec<Vec<f32>>> {
        answer.get("embeddings")?.as_array()?.iter().map(|item| numbers(item.get("values")?)).collect()
    }
}
