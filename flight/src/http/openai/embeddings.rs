//! `POST /v1/embeddings`: the vectors that the schema index has for texts, from the embedder of the settings.

use std::sync::Arc;

use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::StatusCode;
use querent_agent::estimate_tokens;
use querent_catalog::{CatalogError, Role};
use serde_json::{Value, json};
use tiktoken_rs::cl100k_base_singleton;

use super::error::OpenAiError;
use super::fields::object_fields;
use crate::error::{ApiError, ErrorCode};
use crate::http::request::{ApiCall, QueryBytes};
use crate::http::response::json_response;

/// As OpenAI has it.
const MAX_TEXTS: usize = 2_048;
/// Every field; others are refused, since each would change the vectors.
const FIELDS: [&str; 5] = ["input", "model", "encoding_format", "dimensions", "user"];

/// `POST /v1/embeddings`.
pub(in crate::http) async fn create(
    ApiCall { state, principal }: ApiCall,
    QueryBytes(body): QueryBytes,
) -> Result<Response, OpenAiError> {
    let fields = object_fields(&body, &FIELDS)?;
    let input = fields.get("input").cloned().unwrap_or_default();
    // The vocabulary of tokens takes a moment when it is first needed.
    let read = tokio::task::spawn_blocking(move || texts_of(&input)).await;
    let texts = read.map_err(ApiError::internal)??;
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
    let embedded = embedded.map_err(ApiError::internal)?;
    let vectors = embedded.map_err(|error| unusable(&name, error, principal.role()))?;
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
fn texts_of(input: &Value) -> Result<Vec<String>, OpenAiError> {
    let wrong = || {
        invalid(
            "input",
            "`input` must be a text, a list of texts, a list of tokens, or a list of such lists, not a mixture",
        )
    };
    let texts = match input {
        Value::String(text) => vec![text.clone()],
        Value::Array(tokens) if tokens.first().is_some_and(Value::is_number) => vec![text_of_tokens(tokens)?],
        Value::Array(lists) if lists.first().is_some_and(Value::is_array) => {
            let texts = lists.iter().map(|list| list.as_array().map(|tokens| text_of_tokens(tokens)));
            texts.collect::<Option<Result<Vec<String>, OpenAiError>>>().ok_or_else(wrong)??
        }
        Value::Array(texts) => {
            let texts: Option<Vec<String>> = texts.iter().map(|text| text.as_str().map(str::to_owned)).collect();
            texts.ok_or_else(wrong)?
        }
        Value::Null => {
            return Err(OpenAiError::bad_request(ErrorCode::MissingRequiredParameter, "input", "`input` is missing"));
        }
        _ => return Err(wrong()),
    };
    if texts.is_empty() || texts.iter().any(String::is_empty) {
        return Err(invalid("input", "`input` has an empty text, or none"));
    }
    if texts.len() > MAX_TEXTS {
        return Err(invalid("input", format!("`input` has {} texts; at most {MAX_TEXTS} are taken", texts.len())));
    }
    Ok(texts)
}

/// Returns the text of tokens, which clients send that cut long texts themselves, LangChain's among them. They are those of
/// OpenAI's models for embeddings; half a character at an end is marked as missing.
fn text_of_tokens(tokens: &[Value]) -> Result<String, OpenAiError> {
    let numbers: Option<Vec<u32>> = tokens.iter().map(|token| token.as_u64()?.try_into().ok()).collect();
    match numbers.map(|numbers| cl100k_base_singleton().decode_bytes(&numbers)) {
        Some(Ok(bytes)) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Some(Err(_)) | None => Err(invalid("input", "`input` has what is no token of cl100k_base; send texts")),
    }
}

/// Returns the error for a model that cannot be used. What it lacks, and where its server is, is told to administrators only, as of
/// the agent's models.
fn unusable(model: &str, error: CatalogError, role: Role) -> OpenAiError {
    let CatalogError::Embedder { .. } = error else { return error.into() };
    tracing::warn!(model, %error, "texts could not be embedded");
    let message = match role {
        Role::Admin => error.to_string(),
        Role::Read | Role::Write => {
            format!("the embedding model {model} cannot be used; tell whoever runs this server, its log says why")
        }
    };
    OpenAiError::unavailable(ErrorCode::EmbedderError, message)
}

fn invalid(param: &str, message: impl Into<String>) -> OpenAiError {
    OpenAiError::bad_request(ErrorCode::InvalidRequest, param, message)
}
