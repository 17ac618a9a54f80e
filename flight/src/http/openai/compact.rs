//! `POST /v1/responses/compact`: a conversation summed up by its model, as an item that its client sends in its place.

use axum::response::Response;
use chrono::Utc;
use futures::StreamExt;
use http::StatusCode;
use querent_agent::models::{ChatRole, ToolChoice};
use querent_agent::protocols::openai_fields::{OpenAiRequest, check_fields};
use querent_agent::protocols::responses::{
    InputContent, InputItem, check_messages, compaction_item, listed_item, parse_items, response_id, usage_json,
};
use querent_agent::{EventKind, Protocol, RunRequest};
use serde_json::{Value, json};

use super::error::OpenAiError;
use super::fields::object_fields;
use super::run::{begin, wait_for_start};
use crate::error::ErrorCode;
use crate::http::request::{ApiCall, QueryBytes, parse_off_runtime};
use crate::http::response::json_response;

const FIELDS: [&str; 9] = [
    "model",
    "input",
    "instructions",
    "previous_response_id",
    "prompt_cache_key",
    "prompt_cache_options",
    "prompt_cache_retention",
    "service_tier",
    "image",
];
const SUM_UP: &str = "Sum up this conversation for yourself, so that you can go on without it: what was asked, what was found \
    (names, figures, queries that worked), what is still open. Be brief.";

/// `POST /v1/responses/compact`.
pub(in crate::http) async fn create(
    ApiCall { state, principal }: ApiCall,
    QueryBytes(body): QueryBytes,
) -> Result<Response, OpenAiError> {
    let CompactRequest { model, instructions, previous, input, mut items } =
        parse_off_runtime(body, parse_compact).await??;
    items.push(InputItem::Message { role: ChatRole::User, content: vec![InputContent::Text(SUM_UP.to_owned())] });
    let run = RunRequest {
        model,
        instructions,
        tool_choice: ToolChoice::None,
        ..RunRequest::new(Protocol::Responses, Vec::new())
    };
    let (run_id, events) = begin(&state, &principal, run, items, None, previous.as_deref()).await?;
    let mut events = wait_for_start(events).await?;
    let (mut summary, mut failure, mut usage) = (String::new(), None, Value::Null);
    while let Some(event) = events.next().await {
        match &event.kind {
            EventKind::TextDone { text, .. } => summary.clone_from(text),
            EventKind::RunError { code, message, detail_code } => {
                failure = Some((*code, message.clone(), detail_code.clone()));
            }
            EventKind::RunFinished(finished) => {
                usage = usage_json(&finished.usage.tokens);
            }
            _ => {}
        }
    }
    if let Some((code, message, detail_code)) = failure {
        return Err(OpenAiError::from_run(code, &message, &detail_code));
    }
    let mut output = kept_messages(input.as_ref(), &run_id.simple().to_string());
    output.push(compaction_item(&format!("cmp_{}0000", run_id.simple()), &summary));
    let compacted = json!({
        "id": response_id(run_id),
        "object": "response.compaction",
        "created_at": Utc::now().timestamp(),
        "output": output,
        "usage": usage,
    });
    Ok(json_response(StatusCode::OK, &compacted))
}

/// A conversation to be summed up.
struct CompactRequest {
    model: Option<String>,
    instructions: Option<String>,
    /// The id of the response that it goes on from.
    previous: Option<String>,
    /// The items as they were sent.
    input: Option<Value>,
    items: Vec<InputItem>,
}

fn parse_compact(body: &[u8]) -> Result<CompactRequest, OpenAiError> {
    let mut fields = object_fields(body, &FIELDS)?;
    let text = |name: &str| match fields.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(invalid(name, format!("`{name}` must be a string"))),
    };
    let (model, instructions, previous) = (text("model")?, text("instructions")?, text("previous_response_id")?);
    check_fields(&fields, OpenAiRequest::Responses)?;
    let input = fields.remove("input").filter(|input| !input.is_null());
    let items = input.as_ref().map(parse_items).transpose()?.unwrap_or_default();
    check_messages(input.as_ref().unwrap_or(&Value::Null), "input")?;
    if items.is_empty() && previous.is_none() {
        let message = "`input` or `previous_response_id` says what is to be summed up";
        return Err(OpenAiError::bad_request(ErrorCode::MissingRequiredParameter, "input", message));
    }
    Ok(CompactRequest { model, instructions, previous, input, items })
}

/// Returns the messages of people, which stay word for word.
fn kept_messages(input: Option<&Value>, run: &str) -> Vec<Value> {
    let items = match input {
        None => return Vec::new(),
        Some(Value::Array(items)) => items.clone(),
        Some(item) => vec![item.clone()],
    };
    let listed = items.iter().map(listed_item).filter(|item| item["type"] == "message" && item["role"] == "user");
    let numbered = listed.enumerate().map(|(index, mut item)| {
        item["id"] = json!(format!("msg_{run}{:04x}", index + 1));
        item["status"] = json!("completed");
        item
    });
    numbered.collect()
}

fn invalid(param: &str, message: impl Into<String>) -> OpenAiError {
    OpenAiError::bad_request(ErrorCode::InvalidRequest, param, message)
}
