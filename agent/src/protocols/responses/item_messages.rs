//! Items as messages for the model: calls with their results, and the text and pictures of files.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde_json::Value;

use super::continuation::ContinueError;
use super::items::PICTURES_OF_INSTRUCTIONS;
use super::{BadRequest, InputContent, InputItem};
use crate::attachments;
use crate::models::{ChatImage, ChatMessage, ChatRole, ModelToolCall};
use crate::request::NO_RESULT;

/// A file that the catalog stores.
pub(super) struct StoredFile {
    pub(super) filename: String,
    pub(super) media_type: String,
    pub(super) data: Arc<[u8]>,
}

/// The items as messages for the model.
pub(super) struct Messages {
    pub(super) said: Vec<ChatMessage>,
    pub(super) instructions: Vec<String>,
}

/// Returns the items as messages; a file that is not among `files` is mentioned. Errors: a file that cannot be read.
pub(super) async fn messages(
    items: &[InputItem],
    files: &HashMap<String, StoredFile>,
) -> std::result::Result<Messages, ContinueError> {
    let mut messages = Messages { said: Vec::new(), instructions: Vec::new() };
    let mut names: HashMap<&str, &str> = HashMap::new();
    let mut unanswered: Vec<&str> = Vec::new();
    let answered: HashSet<&str> = items
        .iter()
        .filter_map(|item| match item {
            InputItem::FunctionCallOutput { call_id, .. } => Some(call_id.as_str()),
            _ => None,
        })
        .collect();
    let mut approvals: HashMap<&str, (&str, &str)> = HashMap::new();
    let executed: HashSet<&str> = items
        .iter()
        .filter_map(|item| match item {
            InputItem::McpCall { approval_request_id, .. } => approval_request_id.as_deref(),
            _ => None,
        })
        .collect();
    for item in items {
        match item {
            InputItem::Message { role: ChatRole::System, content } => {
                messages.instructions.push(message(ChatRole::System, content, files).await?.content);
            }
            InputItem::Message { role, content } => {
                if *role == ChatRole::User {
                    for call_id in unanswered.drain(..) {
                        let name = names.get(call_id).copied().unwrap_or_default();
                        messages.said.push(ChatMessage::tool_result(name, Some(call_id.to_owned()), NO_RESULT));
                    }
                }
                messages.said.push(message(*role, content, files).await?);
            }
            InputItem::FunctionCall { call_id, name, arguments } => {
                names.insert(call_id, name);
                if !answered.contains(call_id.as_str()) {
                    unanswered.push(call_id);
                }
                messages.call(call_id, name, arguments);
            }
            InputItem::FunctionCallOutput { call_id, output } => {
                if let Some(name) = names.get(call_id.as_str()) {
                    messages.said.push(ChatMessage::tool_result(name, Some(call_id.clone()), output.as_str()));
                }
            }
            InputItem::McpCall { id, name, arguments, output, .. } => {
                messages.call(id, name, arguments);
                let output = output.as_deref().unwrap_or("The result of this call is not known any more.");
                messages.said.push(ChatMessage::tool_result(name, Some(id.clone()), output));
            }
            InputItem::ApprovalRequest { id, name, arguments } => {
                approvals.insert(id, (name, arguments));
            }
            InputItem::ApprovalResponse { request_id, approve, .. } => {
                // A call that was executed comes with its result.
                if let Some((name, arguments)) = approvals.get(request_id.as_str())
                    && !executed.contains(request_id.as_str())
                {
                    messages.call(request_id, name, arguments);
                    let outcome = if *approve { "approved; its result is not known" } else { "denied by the user" };
                    messages.said.push(ChatMessage::tool_result(name, Some(request_id.clone()), outcome));
                }
            }
            InputItem::Reference { .. } | InputItem::Ignored => {}
        }
    }
    Ok(messages)
}

impl Messages {
    /// Adds a call. Consecutive calls belong to one message: their results come after all of them.
    fn call(&mut self, id: &str, name: &str, arguments: &str) {
        let call = ModelToolCall {
            id: Some(id.to_owned()),
            name: name.to_owned(),
            arguments: serde_json::from_str(arguments).unwrap_or_else(|_| Value::String(arguments.to_owned())),
        };
        match self.said.last_mut() {
            Some(last) if last.role == ChatRole::Assistant => last.tool_calls.push(call),
            _ => self.said.push(ChatMessage::assistant("", vec![call])),
        }
    }
}

async fn message(
    role: ChatRole,
    content: &[InputContent],
    files: &HashMap<String, StoredFile>,
) -> std::result::Result<ChatMessage, ContinueError> {
    let mut paragraphs = Vec::new();
    let mut images = Vec::new();
    for part in content {
        match part {
            InputContent::Text(text) => paragraphs.push(text.clone()),
            InputContent::Image(image) => images.push(image.clone()),
            InputContent::ImageUrl(url) => paragraphs.push(format!("[Image at {url}; it was not fetched]")),
            InputContent::FileUrl(url) => paragraphs.push(format!("[File at {url}; it was not fetched]")),
            InputContent::File { filename, media_type, data } => {
                let shown = attachments::shown_file(filename, media_type.as_deref(), data).await?;
                paragraphs.push(shown.text);
                images.extend(shown.pictures);
            }
            InputContent::FileId(file_id) => {
                let Some(file) = files.get(file_id) else {
                    paragraphs.push("[A file that is not there any more]".to_owned());
                    continue;
                };
                if file.media_type.starts_with("image/") {
                    images.push(ChatImage::from_bytes(&file.media_type, &file.data));
                } else {
                    let shown = attachments::shown_file(&file.filename, Some(&file.media_type), &file.data).await?;
                    paragraphs.push(shown.text);
                    images.extend(shown.pictures);
                }
            }
        }
    }
    if role == ChatRole::System && !images.is_empty() {
        return Err(BadRequest::invalid("input", PICTURES_OF_INSTRUCTIONS).into());
    }
    Ok(ChatMessage { images, ..ChatMessage::text(role, paragraphs.join("\n\n")) })
}

/// Returns the ids of the stored files that the items name.
pub(super) fn named_files(items: &[InputItem]) -> impl Iterator<Item = &str> {
    let parts = items.iter().flat_map(|item| match item {
        InputItem::Message { content, .. } => content.as_slice(),
        _ => &[],
    });
    parts.filter_map(|part| match part {
        InputContent::FileId(file_id) => Some(file_id.as_str()),
        _ => None,
    })
}
