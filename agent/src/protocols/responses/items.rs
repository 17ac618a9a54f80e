//! Input items: the conversation as clients send it. Read leniently: a bare string, a message without its type, content
//! in any of the three forms.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::BadRequest;
use super::compaction::summary_of;
use crate::models::{ChatImage, ChatRole};
use crate::protocols::kind_of;

/// Types of items that say how far they are.
const HAVE_STATUS: [&str; 4] = ["message", "function_call", "function_call_output", "mcp_call"];

/// One item.
#[derive(Debug, Clone, PartialEq)]
pub enum InputItem {
    /// A message; instructions have the role system.
    Message {
        /// Its author.
        role: ChatRole,
        /// Its parts.
        content: Vec<InputContent>,
    },
    /// A call of a client's tool.
    FunctionCall {
        /// The call.
        call_id: String,
        /// Tool name.
        name: String,
        /// The arguments as text.
        arguments: String,
    },
    /// The result of a client's tool.
    FunctionCallOutput {
        /// The call.
        call_id: String,
        /// The result as text.
        output: String,
    },
    /// A call of a server's tool.
    McpCall {
        /// The item.
        id: String,
        /// Tool name.
        name: String,
        /// The arguments as text.
        arguments: String,
        /// What it returned, or why it failed; `None` where the client left it away.
        output: Option<String>,
        /// The request that was approved.
        approval_request_id: Option<String>,
    },
    /// A call that waited for approval.
    ApprovalRequest {
        /// The request.
        id: String,
        /// Tool name.
        name: String,
        /// The arguments as text.
        arguments: String,
    },
    /// A person's decision.
    ApprovalResponse {
        /// The request.
        request_id: String,
        /// Whether the call is approved.
        approve: bool,
        /// Why.
        reason: Option<String>,
    },
    /// A reference to a stored item.
    Reference {
        /// Its id.
        id: String,
    },
    /// Thinking, or a list of tools: left out.
    Ignored,
}

/// A part of a message.
#[derive(Debug, Clone, PartialEq)]
pub enum InputContent {
    /// Text.
    Text(String),
    /// A picture.
    Image(ChatImage),
    /// The URL of a picture, which is not fetched.
    ImageUrl(String),
    /// A file within the message.
    File {
        /// Its name.
        filename: String,
        /// Its media type as the client sent it.
        media_type: Option<String>,
        /// Its bytes.
        data: Vec<u8>,
    },
    /// The id of a stored file.
    FileId(String),
    /// The URL of a file, which is not fetched.
    FileUrl(String),
}

impl InputContent {
    /// Returns it where models take text only, as a tool's result: the text, or a mention of what is not shown.
    pub(crate) fn into_text(self) -> String {
        match self {
            Self::Text(text) => text,
            Self::Image(_) | Self::ImageUrl(_) => "[an image, which is not shown]".to_owned(),
            Self::File { .. } | Self::FileId(_) | Self::FileUrl(_) => "[a file, which is not shown]".to_owned(),
        }
    }
}

impl InputItem {
    /// Returns a message. Models take no pictures as instructions: those are refused.
    pub(crate) fn message(role: ChatRole, content: Vec<InputContent>, at: &str) -> Result<Self, BadRequest> {
        let has_picture = content.iter().any(|part| matches!(part, InputContent::Image(_)));
        if role == ChatRole::System && has_picture {
            return Err(BadRequest::invalid(&format!("{at}.content"), PICTURES_OF_INSTRUCTIONS));
        }
        Ok(Self::Message { role, content })
    }
}

/// The refusal of pictures where the model is instructed.
pub(crate) const PICTURES_OF_INSTRUCTIONS: &str =
    "instructions have no pictures; send them with a message of the role `user`";

/// The most items of one request, or messages with the calls in them: each is read on a thread that answers other requests too.
const MAX_ITEMS: usize = 10_000;

/// Refuses more items, or messages with the calls in them, than one request may have.
pub(crate) fn check_item_count(param: &str, count: usize) -> Result<(), BadRequest> {
    if count > MAX_ITEMS {
        return Err(BadRequest::invalid(param, format!("`{param}` has {count} entries; at most {MAX_ITEMS} are read")));
    }
    Ok(())
}

/// Parses `input`: a string, an item, or a list of items.
pub fn parse_items(input: &Value) -> Result<Vec<InputItem>, BadRequest> {
    parse_items_of("input", input)
}

/// Parses the field `name`, which has what `input` has.
pub fn parse_items_of(name: &str, input: &Value) -> Result<Vec<InputItem>, BadRequest> {
    check_item_count(name, input.as_array().map_or(0, Vec::len))?;
    match input {
        Value::String(text) => {
            Ok(vec![InputItem::Message { role: ChatRole::User, content: vec![InputContent::Text(text.clone())] }])
        }
        Value::Object(_) => Ok(vec![parse_item(input, name)?]),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .map(|(index, item)| match item {
                Value::String(text) => {
                    Ok(InputItem::Message { role: ChatRole::User, content: vec![InputContent::Text(text.clone())] })
                }
                item => parse_item(item, &format!("{name}[{index}]")),
            })
            .collect(),
        other => Err(BadRequest::invalid(
            name,
            format!("`{name}` must be a string or a list of items, not {}", kind_of(other)),
        )),
    }
}

fn parse_item(item: &Value, at: &str) -> Result<InputItem, BadRequest> {
    if !item.is_object() {
        return Err(BadRequest::invalid(at, format!("`{at}` must be an object, not {}", kind_of(item))));
    }
    let text = |name: &str| -> Result<String, BadRequest> {
        match &item[name] {
            Value::String(text) => Ok(text.clone()),
            other => Err(BadRequest::invalid(
                &format!("{at}.{name}"),
                format!("`{at}.{name}` must be a string, not {}", kind_of(other)),
            )),
        }
    };
    if !item["type"].is_null() && !item["type"].is_string() {
        let param = format!("{at}.type");
        let message = format!("`{param}` must be a string, not {}", kind_of(&item["type"]));
        return Err(BadRequest::invalid(&param, message));
    }
    let kind = item["type"].as_str().unwrap_or(if item.get("role").is_some() { "message" } else { "" });
    Ok(match kind {
        "message" => {
            let role = parse_role(&text("role")?).ok_or_else(|| {
                let roles = "user, assistant, system and developer";
                BadRequest::invalid(&format!("{at}.role"), format!("`{at}.role` is not one of {roles}"))
            })?;
            InputItem::message(role, parse_content(&item["content"], at)?, at)?
        }
        "function_call" => InputItem::FunctionCall {
            call_id: text("call_id")?,
            name: text("name")?,
            arguments: arguments_of(item, at)?,
        },
        "function_call_output" => {
            let output = match &item["output"] {
                output @ (Value::String(_) | Value::Array(_)) => output_text(output),
                other => {
                    let kind = kind_of(other);
                    let message = format!("`{at}.output` must be a string or a list of parts, not {kind}");
                    return Err(BadRequest::invalid(&format!("{at}.output"), message));
                }
            };
            InputItem::FunctionCallOutput { call_id: text("call_id")?, output }
        }
        "mcp_call" => InputItem::McpCall {
            // Sessions of OpenAI's agents send back what a server did without its id.
            id: match &item["id"] {
                Value::Null => format!("mcp_unnamed{}", at.replace(|letter: char| !letter.is_ascii_digit(), "")),
                _ => text("id")?,
            },
            name: text("name")?,
            arguments: arguments_of(item, at)?,
            output: match (&item["output"], &item["error"]) {
                (Value::Null, Value::Null) => None,
                (Value::Null, error) => Some(error_text(error)),
                (output, _) => Some(raw_text(output)),
            },
            approval_request_id: item["approval_request_id"].as_str().map(str::to_owned),
        },
        "mcp_approval_request" => {
            InputItem::ApprovalRequest { id: text("id")?, name: text("name")?, arguments: arguments_of(item, at)? }
        }
        "mcp_approval_response" => InputItem::ApprovalResponse {
            request_id: text("approval_request_id")?,
            approve: item["approve"].as_bool().ok_or_else(|| {
                BadRequest::invalid(&format!("{at}.approve"), format!("`{at}.approve` must be true or false"))
            })?,
            reason: item["reason"].as_str().map(str::to_owned),
        },
        "item_reference" => InputItem::Reference { id: text("id")? },
        "" => {
            return Err(BadRequest::invalid(&format!("{at}.type"), format!("`{at}` has neither a type nor a role")));
        }
        "compaction" => InputItem::Message {
            role: ChatRole::User,
            content: vec![InputContent::Text(summary_of(&text("encrypted_content")?, at)?)],
        },
        // What the model thought, and which tools there were, is not shown to it again.
        "reasoning" | "mcp_list_tools" => InputItem::Ignored,
        other => {
            let message = format!(
                "`{at}`: items of the type `{other}` are not supported; there are messages, function calls and their \
                outputs, `mcp_call`, approvals, `compaction`, `reasoning` and `item_reference`"
            );
            return Err(BadRequest::invalid(&format!("{at}.type"), message));
        }
    })
}

/// Returns the arguments of a call, which clients write as text, and some as the object itself.
fn arguments_of(item: &Value, at: &str) -> Result<String, BadRequest> {
    match &item["arguments"] {
        arguments @ (Value::Null | Value::String(_) | Value::Object(_)) => Ok(raw_text(arguments)),
        other => {
            let (param, kind) = (format!("{at}.arguments"), kind_of(other));
            Err(BadRequest::invalid(&param, format!("`{param}` must be a string, not {kind}")))
        }
    }
}

fn parse_role(role: &str) -> Option<ChatRole> {
    match role {
        "user" => Some(ChatRole::User),
        "assistant" => Some(ChatRole::Assistant),
        "system" | "developer" => Some(ChatRole::System),
        _ => None,
    }
}

/// Parses a message's content: a string, or a list of blocks of Responses, of Chat Completions or of the older
/// `inlineData` and `fileData` kind.
pub fn parse_content(content: &Value, at: &str) -> Result<Vec<InputContent>, BadRequest> {
    match content {
        Value::Null => Ok(Vec::new()),
        Value::String(text) => Ok(vec![InputContent::Text(text.clone())]),
        Value::Object(_) => Ok(vec![parse_block(content, at)?]),
        Value::Array(blocks) => blocks.iter().map(|block| parse_block(block, at)).collect(),
        other => Err(BadRequest::invalid(
            &format!("{at}.content"),
            format!("`{at}.content` must be a string or a list of blocks, not {}", kind_of(other)),
        )),
    }
}

fn parse_block(block: &Value, at: &str) -> Result<InputContent, BadRequest> {
    if let Value::String(text) = block {
        return Ok(InputContent::Text(text.clone()));
    }
    if !block.is_object() {
        let message = format!("a part of `{at}` must be an object or a text, not {}", kind_of(block));
        return Err(BadRequest::invalid(&format!("{at}.content"), message));
    }
    let is_file = ["inlineData", "inline_data", "fileData", "file_data"].iter().any(|name| block[*name].is_object());
    if is_file && block["text"].as_str().is_some_and(|text| !text.is_empty()) {
        let message = format!("a part of `{at}` is text and a file at once; make parts of them");
        return Err(BadRequest::invalid(&format!("{at}.content"), message));
    }
    if let Some(inline) = block.get("inlineData").or_else(|| block.get("inline_data")) {
        return parse_inline(inline, at);
    }
    if let Some(file) = block.get("fileData").or_else(|| block.get("file_data")).filter(|file| file.is_object()) {
        let uri = file["fileUri"].as_str().or(file["file_uri"].as_str()).unwrap_or_default();
        return file_at(uri, at);
    }
    let kind = match &block["type"] {
        Value::Null => "",
        Value::String(kind) => kind.as_str(),
        other => {
            let message = format!("the type of a part of `{at}` must be a string, not {}", kind_of(other));
            return Err(BadRequest::invalid(&format!("{at}.content"), message));
        }
    };
    Ok(match kind {
        "image_url" | "input_image" => {
            one_of(block, ["image_url", "file_id"], at)?;
            let url = block["image_url"]["url"].as_str().or(block["image_url"].as_str());
            match (url, block["file_id"].as_str()) {
                (Some(url), _) => parse_image(url, at)?,
                (None, Some(file_id)) => InputContent::FileId(file_id.to_owned()),
                (None, None) => {
                    return Err(BadRequest::invalid(
                        &format!("{at}.content"),
                        format!("an image of `{at}` has no image_url"),
                    ));
                }
            }
        }
        "file" => parse_file(&block["file"], at)?,
        "input_file" => parse_file(block, at)?,
        "refusal" => text_of_block(block, "refusal", at)?,
        "" | "text" | "input_text" | "output_text" | "summary_text" | "reasoning_text" => {
            text_of_block(block, "text", at)?
        }
        other => {
            let message = format!("a part `{other}` of `{at}` is not supported; send text, an image or a file");
            return Err(BadRequest::invalid(&format!("{at}.content"), message));
        }
    })
}

fn text_of_block(block: &Value, name: &str, at: &str) -> Result<InputContent, BadRequest> {
    match &block[name] {
        Value::String(text) => Ok(InputContent::Text(text.clone())),
        other => {
            let message = format!("`{name}` of a part of `{at}` must be a string, not {}", kind_of(other));
            Err(BadRequest::invalid(&format!("{at}.content"), message))
        }
    }
}

fn parse_image(url: &str, at: &str) -> Result<InputContent, BadRequest> {
    let bad = |why: String| BadRequest::invalid(&format!("{at}.content"), format!("an image of `{at}` {why}"));
    let Some(rest) = url.strip_prefix("data:") else {
        return match url.trim().is_empty() {
            true => Err(bad("has an empty address".to_owned())),
            false => Ok(InputContent::ImageUrl(url.to_owned())),
        };
    };
    let no_data = || bad("is not a base64 data URI".to_owned());
    let (media_type, data) = rest.split_once(";base64,").ok_or_else(no_data)?;
    if !media_type.is_empty() && !media_type.starts_with("image/") {
        return Err(bad(format!("is of the type {media_type}; send it as a file")));
    }
    if STANDARD.decode(data.trim()).map_err(|_| no_data())?.is_empty() {
        return Err(bad("is empty".to_owned()));
    }
    Ok(InputContent::Image(ChatImage { media_type: media_type.to_owned(), data: data.trim().to_owned() }))
}

fn parse_file(file: &Value, at: &str) -> Result<InputContent, BadRequest> {
    one_of(file, ["file_id", "file_url", "file_data"], at)?;
    if let Some(file_id) = file["file_id"].as_str() {
        return Ok(InputContent::FileId(file_id.to_owned()));
    }
    if let Some(url) = file["file_url"].as_str() {
        return file_at(url, at);
    }
    let Some(encoded) = file["file_data"].as_str() else {
        return Err(BadRequest::invalid(
            &format!("{at}.content"),
            format!("a file of `{at}` has neither file_data, file_id nor file_url"),
        ));
    };
    let filename = file["filename"].as_str().unwrap_or("file").to_owned();
    decoded_file(filename, None, encoded, at)
}

/// Refuses a part that says in several of these fields what it is, of which one would be read.
fn one_of<const N: usize>(part: &Value, names: [&str; N], at: &str) -> Result<(), BadRequest> {
    let given: Vec<&str> = names.into_iter().filter(|name| !part[*name].is_null()).collect();
    if given.len() > 1 {
        let message = format!("a part of `{at}` has {} at once; send one of them", given.join(" and "));
        return Err(BadRequest::invalid(&format!("{at}.content"), message));
    }
    Ok(())
}

/// Interprets a file's address: that of a stored file is its id, and one with its data is the file itself.
fn file_at(uri: &str, at: &str) -> Result<InputContent, BadRequest> {
    if uri.trim().is_empty() {
        return Err(BadRequest::invalid(&format!("{at}.content"), format!("a file of `{at}` has an empty address")));
    }
    if uri.starts_with("data:") {
        return decoded_file("file".to_owned(), None, uri, at);
    }
    Ok(match uri.starts_with("file-") {
        true => InputContent::FileId(uri.to_owned()),
        false => InputContent::FileUrl(uri.to_owned()),
    })
}

fn parse_inline(inline: &Value, at: &str) -> Result<InputContent, BadRequest> {
    let media_type = inline["mimeType"].as_str().or(inline["mime_type"].as_str()).unwrap_or_default();
    let Some(data) = inline["data"].as_str() else {
        return Err(BadRequest::invalid(&format!("{at}.content"), format!("a file of `{at}` has no data")));
    };
    if media_type.starts_with("image/") {
        return parse_image(&format!("data:{media_type};base64,{data}"), at);
    }
    let filename = inline["displayName"].as_str().or(inline["display_name"].as_str()).unwrap_or("file").to_owned();
    decoded_file(filename, Some(media_type.to_owned()), data, at)
}

/// Decodes a data URI, or base64 alone.
fn decoded_file(
    filename: String,
    media_type: Option<String>,
    encoded: &str,
    at: &str,
) -> Result<InputContent, BadRequest> {
    let (media_type, encoded) = match encoded.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,")) {
        Some((media_type, data)) => (Some(media_type.to_owned()), data),
        None => (media_type, encoded),
    };
    let data = STANDARD.decode(encoded.trim()).map_err(|_| {
        BadRequest::invalid(&format!("{at}.content"), format!("the file `{filename}` of `{at}` is not base64"))
    })?;
    if let Some(media_type) = media_type.as_deref().filter(|media_type| media_type.starts_with("image/")) {
        let image = ChatImage { media_type: media_type.to_owned(), data: encoded.trim().to_owned() };
        return Ok(InputContent::Image(image));
    }
    Ok(InputContent::File { filename, media_type, data })
}

fn raw_text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Returns why a tool failed: from a string, or an object with blocks or a message.
fn error_text(error: &Value) -> String {
    match (&error["content"], &error["message"]) {
        (Value::Null, Value::Null) => raw_text(error),
        (Value::Null, message) => raw_text(message),
        (content, _) => output_text(content),
    }
}

/// Returns a tool's output as text: from a string, or blocks. Models take text as a tool's result; other blocks are
/// only mentioned.
fn output_text(output: &Value) -> String {
    match output {
        Value::Array(blocks) => {
            let lines = blocks.iter().map(|block| match (block["text"].as_str(), block["type"].as_str()) {
                (Some(text), Some("input_text" | "output_text" | "text")) => Some(text.to_owned()),
                // Without a type it may be a row of a tool's, of which nothing is lost.
                (Some(text), None) if block.as_object().is_some_and(|block| block.len() == 1) => Some(text.to_owned()),
                (None, Some("input_image")) => Some("[an image, which is not shown]".to_owned()),
                (None, Some("input_file")) => Some("[a file, which is not shown]".to_owned()),
                _ => None,
            });
            // Any other list is JSON that a tool returned.
            lines.collect::<Option<Vec<_>>>().map_or_else(|| raw_text(output), |lines| lines.join("\n"))
        }
        other => raw_text(other),
    }
}

/// Returns the item as it is stored and listed: with a type, and with what typed clients require of it.
pub fn listed_item(item: &Value) -> Value {
    let mut listed = match item {
        Value::String(text) => json!({ "role": "user", "content": text }),
        other => other.clone(),
    };
    let Value::Object(fields) = &mut listed else { return listed };
    fields.entry("type").or_insert_with(|| json!("message"));
    if HAVE_STATUS.iter().any(|kind| fields["type"] == *kind) && fields.get("status").is_none_or(Value::is_null) {
        fields.insert("status".to_owned(), json!("completed"));
    }
    if let Some(Value::String(text)) = fields.get("content") {
        let kind = if fields.get("role") == Some(&json!("assistant")) { "output_text" } else { "input_text" };
        let block = json!([{ "type": kind, "text": text }]);
        fields.insert("content".to_owned(), block);
    }
    let parts = fields.get_mut("content").and_then(Value::as_array_mut).into_iter().flatten();
    for part in parts.filter_map(Value::as_object_mut).filter(|part| part.get("type") == Some(&json!("output_text"))) {
        part.entry("annotations").or_insert_with(|| json!([]));
    }
    listed
}

/// Returns who says a message, and its text, in which what is no text is mentioned; `None` for any other item.
pub fn message_text(item: &Value) -> Option<(ChatRole, String)> {
    if item["type"] != "message" {
        return None;
    }
    match parse_items(&Value::Array(vec![item.clone()])).ok()?.pop()? {
        InputItem::Message { role, content } => {
            let texts: Vec<String> = content.into_iter().map(InputContent::into_text).collect();
            Some((role, texts.join("\n\n")))
        }
        _ => None,
    }
}

/// Returns what the id of an item begins with.
pub fn id_prefix(item: &Value) -> &'static str {
    match item["type"].as_str().unwrap_or_default() {
        "function_call" => "fc",
        "function_call_output" => "fco",
        "reasoning" => "rs",
        "mcp_call" => "mcp",
        "mcp_approval_request" => "mcpr",
        "mcp_approval_response" => "mcpa",
        "mcp_list_tools" => "mcpl",
        "compaction" => "cmp",
        _ => "msg",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_an_output_is_lost() {
        let parts = json!([{ "type": "input_text", "text": "a" }, { "text": "b" }, { "type": "input_image" }]);
        assert_eq!(output_text(&parts), "a\nb\n[an image, which is not shown]");
        for rows in [json!([{ "text": "a", "score": 1 }]), json!([{ "type": "row", "text": "a" }]), json!([1, 2])] {
            assert_eq!(serde_json::from_str::<Value>(&output_text(&rows)).ok(), Some(rows));
        }
    }

    #[test]
    fn a_part_that_is_none_is_called_what_it_is() {
        for (part, kind) in [(json!(7), "a number"), (json!([]), "an array"), (Value::Null, "null")] {
            let refusal = parse_content(&json!([{ "text": "a" }, part]), "input[0]").unwrap_err();
            assert_eq!(refusal.param.as_deref(), Some("input[0].content"));
            assert_eq!(refusal.message, format!("a part of `input[0]` must be an object or a text, not {kind}"));
        }
    }

    #[test]
    fn a_servers_call_may_have_lost_its_id() {
        let call = |id: Value| json!({ "type": "mcp_call", "id": id, "name": "run_sql", "arguments": "{}" });
        let items = parse_items(&json!([call(Value::Null), call(json!("mcp_a")), call(Value::Null)])).unwrap();
        let id = |item: &InputItem| match item {
            InputItem::McpCall { id, .. } => id.clone(),
            other => panic!("{other:?}"),
        };
        assert_eq!(items.iter().map(id).collect::<Vec<_>>(), ["mcp_unnamed0", "mcp_a", "mcp_unnamed2"]);
        assert_eq!(parse_items(&json!([call(json!(7))])).unwrap_err().param.as_deref(), Some("input[0].id"));
    }
}
