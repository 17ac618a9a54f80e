//! `POST /v1/embeddings`: the vectors that the schema index has for texts, from the embedder of the settings.

use std::sync::Arc;

use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::StatusCode;
use querent_agent::estimate_tokens;
use serde_json::{Map, Value, json};

use super::error::OpenAiError;
use super::fields::object_fields;
use crate::error::ErrorCode;
use crate::http::request::{ApiCall, QueryBytes};
use crate::http::response::json_response;

/// As OpenAI has it.
const MAX_TEXTS: usize = 2_048;
/// Every field; others are refused, since each would change the vectors.
const FIELDS: [&str; 5] = ["input", "model", "encoding_format", "dimensions", "user"];

/// `POST /v1/embeddings`.
pub(in crate::http) async fn create(
    ApiCall { state, .. }: ApiCall,
    QueryBytes(body): QueryBytes,
) -> Result<Response, OpenAiError> {
    let fields = object_fields(&body, &FIELDS)?;
    let texts = texts_of(&fields)?;
    // There is one embedder, and who asks is the token's owner: neither changes anything.
    for name in ["model", "user"] {
        if let Some(other) = fields.get(name).filter(|value| !value.is_null() && !value.is_string()) {
            return Err(invalid(name, format!("`{name}` must be a string, not {other}")));
        }
    }
    let is_base64 = match fields.get("encoding_format").unwrap_or(&Value::Null) {
        Value::Null => false,
        Value::String(format) if format == "float" => false,
        Value::String(format) if format == "base64" => true,
        other => return Err(invalid("encoding_format", format!("`encoding_format` is float or base64, not {other}"))),
    };
    let Some(embedder) = &state.embedder else {
        let message = "there is no embedder: embed.provider is none";
        return Err(OpenAiError::not_supported(ErrorCode::NotImplemented, message));
    };
    let model = embedder.model();
    let (name, dimension) = (model.id.clone(), model.dimension);
    match fields.get("dimensions").unwrap_or(&Value::Null) {
        Value::Null => {}
        asked if asked.as_u64() == Some(dimension as u64) => {}
        asked => {
            return Err(invalid(
                "dimensions",
                format!("`dimensions` is {asked}; the vectors of {name} have {dimension}"),
            ));
        }
    }
    let tokens: usize = texts.iter().map(|text| estimate_tokens(text)).sum();
    let embedder = Arc::clone(embedder);
    let embedded = tokio::task::spawn_blocking(move || embedder.embed(&texts)).await;
    let vectors = embedded.map_err(crate::error::ApiError::internal)??;
    let data: Vec<Value> = vectors
        .into_iter()
        .enumerate()
        .map(|(index, vector)| {
            let embedding = match is_base64 {
                true => {
                    json!(STANDARD.encode(vector.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>()))
                }
                false => json!(vector),
            };
            json!({ "object": "embedding", "index": index, "embedding": embedding })
        })
        .collect();
    let usage = json!({ "prompt_tokens": tokens, "total_tokens": tokens });
    let body = json!({ "object": "list", "data": data, "model": name, "usage": usage });
    Ok(json_response(StatusCode::OK, &body))
}

/// Returns the texts to embed.
fn texts_of(fields: &Map<String, Value>) -> Result<Vec<String>, OpenAiError> {
    let wrong = || invalid("input", "`input` must be a text, or a list of texts; lists of tokens are not taken");
    let texts = match fields.get("input") {
        Some(Value::String(text)) => vec![text.clone()],
        Some(Value::Array(texts)) => {
            let texts: Option<Vec<String>> = texts.iter().map(|text| text.as_str().map(str::to_owned)).collect();
            texts.ok_or_else(wrong)?
        }
        None | Some(Value::Null) => {
            return Err(OpenAiError::bad_request(ErrorCode::MissingRequiredParameter, "input", "`input` is missing"));
        }
        Some(_) => return Err(wrong()),
    };
    if texts.is_empty() || texts.iter().any(String::is_empty) {
        return Err(invalid("input", "`input` has an empty text, or none"));
    }
    if texts.len() > MAX_TEXTS {
        return Err(invalid("input", format!("`input` has {} texts; at most {MAX_TEXTS} are taken", texts.len())));
    }
    Ok(texts)
}

fn invalid(param: &str, message: impl Into<String>) -> OpenAiError {
    OpenAiError::bad_request(ErrorCode::InvalidRequest, param, message)
}
