//! OpenAI's Responses: its requests, its stream of `response.*` events and its response object. The KsADK dialect,
//! where a client asks for it, shows our tools as function calls and ends a pause for approval with
//! `response.incomplete`. References: <https://platform.openai.com/docs/api-reference/responses>.

mod items;
mod object;
mod render;
mod request;

pub use items::{Content, InputItem, listed_item, parse_content, parse_items};
pub use object::{input_items, output_items, response_id, run_of_item, run_of_response};
pub use render::{Dialect, ResponsesRenderer};
pub use request::{ResponsesRequest, parse_request, parse_value};
pub(crate) use request::{allowed_tools, answer_schema, flag, metadata_of, positive, text, tool_choice, tools_of};

use serde_json::Value;

/// A request that its protocol does not allow: the status and body of its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadRequest {
    /// HTTP status.
    pub status: u16,
    /// What is wrong and what to do.
    pub message: String,
    /// The field it is about.
    pub param: Option<String>,
    /// Stable.
    pub code: &'static str,
}

impl BadRequest {
    pub(crate) fn new(code: &'static str, param: &str, message: impl Into<String>) -> Self {
        Self { status: 400, message: message.into(), param: Some(param.to_owned()), code }
    }

    pub(crate) fn invalid(param: &str, message: impl Into<String>) -> Self {
        Self::new("invalid_request", param, message)
    }

    pub(crate) fn with_status(self, status: u16) -> Self {
        Self { status, ..self }
    }
}

/// `a string`, `an array`: for messages.
pub(crate) fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}
