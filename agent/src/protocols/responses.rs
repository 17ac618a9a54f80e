//! OpenAI's Responses: its requests, its stream of `response.*` events and its response object. The KsADK dialect,
//! where a client asks for it, shows the server's tools as function calls and ends a pause for approval with
//! `response.incomplete`. References: <https://platform.openai.com/docs/api-reference/responses>.

mod call_outputs;
mod compaction;
mod continuation;
mod decisions;
mod item_messages;
mod items;
mod object;
mod removal;
mod render;
mod request;
mod tools;

pub use compaction::compaction_item;
pub use continuation::{ContinueError, Continued};
pub(crate) use continuation::{continue_run, join_conversation};
pub(crate) use items::check_item_count;
pub use items::{
    InputContent, InputItem, id_prefix, listed_item, message_text, parse_content, parse_items, parse_items_of,
};
pub use object::{
    input_items, named_runs, output_items, response_id, run_of_item, run_of_response, shown_question, usage_json,
};
pub use render::{ResponsesDialect, ResponsesRenderer};
pub(crate) use request::{MAX_ID_BYTES, answer_schema, flag, positive, text};
pub use request::{
    ResponsesRequest, check_messages, metadata_of, parse_count, parse_event, parse_request, parse_value,
};
pub(crate) use tools::{
    allowed_tools, check_arguments_schema, check_distinct, check_tool_count, check_tool_name, tool_choice, tools_of,
};

use super::fields::WrongField;

/// A request that its protocol does not allow: the status and body of its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadRequest {
    /// HTTP status.
    pub status: u16,
    /// What is wrong, and what to do.
    pub message: String,
    /// The faulty field.
    pub param: Option<String>,
    /// The stable code.
    pub code: &'static str,
}

impl BadRequest {
    pub(crate) fn new(code: &'static str, param: &str, message: impl Into<String>) -> Self {
        Self { status: 400, message: message.into(), param: Some(param.to_owned()), code }
    }

    pub(crate) fn invalid(param: &str, message: impl Into<String>) -> Self {
        Self::new("invalid_request", param, message)
    }

    /// Returns it with another HTTP status.
    pub fn with_status(self, status: u16) -> Self {
        Self { status, ..self }
    }
}

impl From<WrongField> for BadRequest {
    fn from(field: WrongField) -> Self {
        Self::invalid(&field.at, field.message)
    }
}
