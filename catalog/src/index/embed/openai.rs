//! Embeddings of OpenAI and of servers that speak its protocol: `POST /v1/embeddings`.

use reqwest::RequestBuilder;
use serde_json::{Value, json};

use super::http::{EmbedProtocol, numbers};

/// The default model.
pub(super) const DEFAULT_MODEL: &str = "text-embedding-3-small";
/// The conventional environment variable of the key.
pub(super) const KEY_VARIABLE: &str = "OPENAI_API_KEY";

/// OpenAI's protocol.
pub(super) struct OpenAi;

impl EmbedProtocol for OpenAi {
    const BASE_URL: &'static str = "https://api.openai.com/v1";
    /// OpenAI's limits are 2,048 strings and 300,000 tokens.
    const BATCH: usize = 128;
    const WORKERS: usize = 4;

    fn path(_model: &str) -> String {
        "embeddings".to_owned()
    }

    fn body(model: &str, texts: &[String]) -> Value {
        json!({ "model": model, "input": texts, "encoding_format": "float" })
    }

    fn with_key(request: RequestBuilder, key: &str) -> RequestBuilder {
        request.bearer_auth(key)
    }

    fn vectors(mut answer: Value) -> Option<Vec<Vec<f32>>> {
        let items = answer.get_mut("data")?.as_array_mut()?;
        // Each vector carries the index of its string.
        items.sort_by_key(|item| item.get("index").and_then(Value::as_u64));
        items.iter().map(|item| numbers(item.get("embedding")?)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_come_in_the_order_of_their_texts() {
        let answer = json!({"data": [{"index": 1, "embedding": [2.0]}, {"index": 0, "embedding": [1.0]}]});
        assert_eq!(OpenAi::vectors(answer), Some(vec![vec![1.0], vec![2.0]]));
        assert_eq!(OpenAi::vectors(json!({"data": [{"index": 0, "embedding": "AAAA"}]})), None);
        assert_eq!(OpenAi::vectors(json!([])), None);
    }
}
