//! KsADK: the body of `RunAgent` and its sibling actions, files sent beside a message, and a session as its web interface
//! reads it (`session_events`, `session_messages`). The answers themselves are [`super::responses`] in its dialect, or [`super::chat`].

mod session_events;
mod session_messages;

use serde_json::{Map, Value, json};

pub use session_events::{SessionEventRenderer, added_events};
pub use session_messages::{ShownBeside, session_messages};

use super::chat::{self, ChatCompletionRequest};
use super::fields::{WrongField, check_names};
use super::json::parse_json;
use super::kind_of;
use super::message_fields::{KSADK_MESSAGE, OPENAI_PARTS, check_item, check_message};
use super::responses::{self, BadRequest, InputContent, InputItem, ResponsesRequest, parse_content};
use crate::models::ChatRole;

/// KsADK's user of requests that name none.
const DEFAULT_USER: &str = "user";
/// Longest name of an agent, a user, a session or an invocation.
const MAX_NAME_BYTES: usize = 256;
/// The types of the session events that there are here.
const EVENT_TYPES: [&str; 7] =
    ["user_message", "assistant_message", "reasoning", "tool_call", "tool_result", "approval_request", "run_status"];
/// Other types of KsADK's, of which there are no events here; and so are those of its runtime, whose names have a dot.
const TYPES_OF_KSADK: [&str; 7] = [
    "approval_response",
    "assistant_stream_snapshot",
    "compaction_boundary",
    "context_checkpoint",
    "run_checkpoint",
    "run_resume",
    "usage_reported",
];

/// The fields of an action.
#[derive(Debug, Clone)]
pub struct Action(Map<String, Value>);

impl Action {
    /// Parses a body; an empty one has no fields.
    pub fn parse(body: &[u8]) -> Result<Self, BadRequest> {
        if body.is_empty() {
            return Ok(Self(Map::new()));
        }
        match parse_json(body) {
            Ok(Value::Object(fields)) => Ok(Self(fields)),
            Ok(other) => Err(wrong("body", format!("the body must be a JSON object, not {}", kind_of(&other)))),
            Err(error) => Err(BadRequest::new("invalid_json", "body", format!("the body is not JSON: {error}"))),
        }
    }

    /// Refuses fields that the action does not have. Errors: 422.
    pub fn check_names<'a>(&self, known: impl IntoIterator<Item = &'a str> + Clone) -> Result<(), BadRequest> {
        check_names(&self.0, "", known).map_err(|field| wrong(&field.at, field.message))
    }

    /// Returns a name; an empty one counts as absent.
    pub fn name(&self, field: &str) -> Result<Option<String>, BadRequest> {
        match self.0.get(field) {
            Some(Value::String(name)) if name.len() > MAX_NAME_BYTES => {
                Err(wrong(field, format!("`{field}` has {} bytes; at most {MAX_NAME_BYTES} are taken", name.len())))
            }
            _ => self.text(field),
        }
    }

    /// Returns a text of any length; an empty one counts as absent. Errors: 422.
    pub fn text(&self, field: &str) -> Result<Option<String>, BadRequest> {
        match self.0.get(field) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.trim().to_owned()).filter(|text| !text.is_empty())),
            Some(other) => Err(wrong(field, format!("`{field}` must be a string, not {}", kind_of(other)))),
        }
    }

    /// Returns a required name. Errors: 422.
    pub fn required(&self, field: &str) -> Result<String, BadRequest> {
        let missing = || BadRequest::new("missing_required_parameter", field, format!("`{field}` is missing"));
        self.name(field)?.ok_or_else(|| missing().with_status(422))
    }

    /// Returns the client's user.
    pub fn user(&self) -> Result<String, BadRequest> {
        Ok(self.name("UserId")?.unwrap_or_else(|| DEFAULT_USER.to_owned()))
    }

    /// Returns a whole number of `least` or more, up to `most`. Errors: 422.
    pub fn number(&self, field: &str, least: u64, most: u64) -> Result<Option<u64>, BadRequest> {
        let value = match self.0.get(field) {
            None | Some(Value::Null) => return Ok(None),
            Some(value) => value,
        };
        match value.as_u64() {
            Some(number) if (least..=most).contains(&number) => Ok(Some(number)),
            _ if most == u64::MAX => Err(wrong(field, format!("`{field}` must be a whole number of {least} or more"))),
            _ => Err(wrong(field, format!("`{field}` must be a whole number between {least} and {most}"))),
        }
    }

    /// Returns the types of events that are asked for; none are all. Errors: 422 for a type that KsADK does not have.
    pub fn event_types(&self) -> Result<Vec<String>, BadRequest> {
        let kinds = self.words("EventTypes")?;
        let is_known = |kind: &str| {
            EVENT_TYPES.contains(&kind) || TYPES_OF_KSADK.contains(&kind) || (kind.contains('.') && !kind.contains(' '))
        };
        match kinds.iter().find(|kind| !is_known(kind)) {
            None => Ok(kinds),
            Some(kind) => {
                let there = EVENT_TYPES.join(", ");
                Err(wrong("EventTypes", format!("`EventTypes` has `{kind}`, which no event is; there are {there}")))
            }
        }
    }

    /// Returns words: a list, or one.
    pub fn words(&self, field: &str) -> Result<Vec<String>, BadRequest> {
        let wrong_kind = |other: &Value| {
            wrong(field, format!("`{field}` must be a string or a list of strings, not {}", kind_of(other)))
        };
        match self.0.get(field) {
            None | Some(Value::Null) => Ok(Vec::new()),
            Some(Value::String(word)) => Ok(vec![word.clone()]),
            Some(Value::Array(words)) => {
                words.iter().map(|word| word.as_str().map(str::to_owned).ok_or_else(|| wrong_kind(word))).collect()
            }
            Some(other) => Err(wrong_kind(other)),
        }
    }

    /// Returns a flag, which is not set unless the request says so. Errors: 422.
    pub fn flag(&self, field: &str) -> Result<bool, BadRequest> {
        match self.0.get(field) {
            None | Some(Value::Null) => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(other) => Err(wrong(field, format!("`{field}` must be true or false, not {}", kind_of(other)))),
        }
    }
}

/// A request of `RunAgent`.
#[derive(Debug, Clone)]
pub struct RunAgentRequest {
    /// The client's name for this agent.
    pub agent_id: String,
    /// The client's user.
    pub user_id: String,
    /// The session, unless it is to be created.
    pub session_id: Option<String>,
    /// The client's id for the run.
    pub invocation_id: Option<String>,
    /// Whether to answer as events.
    pub stream: bool,
    /// Whether to answer before it is done.
    pub background: bool,
    /// The rest, in the requested format.
    pub format: ApiFormat,
}

/// The format of a request and its answer.
#[derive(Debug, Clone)]
pub enum ApiFormat {
    /// As Responses.
    Responses(Box<ResponsesRequest>),
    /// As Chat Completions.
    Chat(Box<ChatCompletionRequest>),
}

/// The fields of `RunAgent` that Responses and Chat Completions have too, under their names there.
const RENAMED: [(&str, &str); 8] = [
    ("Model", "model"),
    ("ModelMetadata", "model_metadata"),
    ("ModelOptions", "model_options"),
    ("Metadata", "metadata"),
    ("Tools", "tools"),
    ("Attachments", "attachments"),
    ("CurrentAttachments", "current_attachments"),
    ("HasCurrentFiles", "has_current_files"),
];
/// Its other fields. `AccountId` has no effect: whose a run is, its token says.
const RUN_AGENT: [&str; 11] = [
    "AgentId",
    "UserId",
    "AccountId",
    "SessionId",
    "InvocationId",
    "ApiFormat",
    "Stream",
    "Background",
    "ResponsesInput",
    "Messages",
    "PreviousResponseId",
];

/// Parses the body of `RunAgent`. Errors: 422 for a field that is missing or wrong.
pub fn parse_run_agent(body: &[u8]) -> Result<RunAgentRequest, BadRequest> {
    let action = Action::parse(body)?;
    let agent_id = action.required("AgentId")?;
    let fields = &action.0;
    let given = |name: &str| fields.get(name).filter(|value| !value.is_null());
    let mut inner = Map::new();
    check_names(fields, "", RENAMED.iter().flat_map(|(theirs, ours)| [*theirs, *ours]).chain(RUN_AGENT))
        .map_err(|field| wrong(&field.at, field.message))?;
    for (theirs, ours) in RENAMED {
        if let (Some(one), Some(other)) = (given(theirs), given(ours))
            && one != other
        {
            let message = format!("`{ours}` is another value than `{theirs}`, the same field; send one");
            return Err(wrong(ours, message));
        }
        if let Some(value) = given(theirs).or_else(|| given(ours)) {
            inner.insert(ours.to_owned(), value.clone());
        }
    }
    let input_name = match given("ResponsesInput") {
        Some(_) => "ResponsesInput",
        None => "Messages",
    };
    let renamed = |error: BadRequest| in_clients_names(error, input_name, fields);
    responses::metadata_of(&inner).map_err(|error| renamed(error).with_status(422))?;
    action.name("AccountId")?;
    let user_id = action.user()?;
    inner.insert("user".to_owned(), json!(user_id));
    let format = match action.name("ApiFormat")?.as_deref() {
        None | Some("responses") => {
            let input = given("ResponsesInput").or_else(|| given("Messages")).filter(|input| *input != &json!([]));
            let Some(input) = input else {
                let message = "neither `ResponsesInput` nor `Messages` says anything";
                return Err(BadRequest::new("missing_required_parameter", "Messages", message).with_status(422));
            };
            inner.insert("input".to_owned(), input.clone());
            if let Some(previous) = action.name("PreviousResponseId")? {
                inner.insert("previous_response_id".to_owned(), json!(previous));
            }
            let request = responses::parse_value(&Value::Object(inner)).map_err(renamed)?;
            check_items(input, input_name).map_err(|field| wrong(&field.at, field.message))?;
            ApiFormat::Responses(Box::new(request))
        }
        Some("chat_completions") => {
            if action.name("PreviousResponseId")?.is_some() {
                let message =
                    "`PreviousResponseId` goes with the `ApiFormat` responses; send the conversation, or `SessionId`";
                return Err(wrong("PreviousResponseId", message.to_owned()));
            }
            if given("ResponsesInput").is_some_and(|input| *input != json!([]) && *input != json!("")) {
                let message = "`ResponsesInput` goes with the `ApiFormat` responses; send `Messages`";
                return Err(wrong("ResponsesInput", message.to_owned()));
            }
            inner.insert("messages".to_owned(), given("Messages").cloned().unwrap_or_default());
            inner.insert("stream_options".to_owned(), json!({ "include_usage": true }));
            let request = chat::parse_value(&Value::Object(inner)).map_err(renamed)?;
            let messages = given("Messages").unwrap_or(&Value::Null);
            chat::check_messages(messages, "Messages").map_err(|field| wrong(&field.at, field.message))?;
            ApiFormat::Chat(Box::new(request))
        }
        Some(other) => {
            let message = format!("`ApiFormat` `{other}` is neither responses nor chat_completions");
            return Err(wrong("ApiFormat", message));
        }
    };
    Ok(RunAgentRequest {
        agent_id,
        user_id,
        session_id: action.name("SessionId")?,
        invocation_id: action.name("InvocationId")?,
        stream: action.flag("Stream")?,
        background: action.flag("Background")?,
        format,
    })
}

/// Returns a refusal with the names that the client has for the fields; `input` is the one of the messages.
fn in_clients_names(error: BadRequest, input: &str, fields: &Map<String, Value>) -> BadRequest {
    let param = error.param.clone().unwrap_or_default();
    let root = param.split(['.', '[']).next().unwrap_or_default();
    let renamed = RENAMED.iter().find(|(theirs, ours)| *ours == root && fields.contains_key(*theirs));
    let theirs = match (root, renamed) {
        ("input" | "messages", _) => input,
        (_, Some((theirs, _))) => theirs,
        (_, None) => return error,
    };
    let message = ['`', '.', '[']
        .iter()
        .fold(error.message, |message, end| message.replace(&format!("`{root}{end}"), &format!("`{theirs}{end}")));
    BadRequest { message, param: Some(format!("{theirs}{}", &param[root.len()..])), ..error }
}

/// Refuses what messages and items of the field `name` have beside their fields.
fn check_items(input: &Value, name: &str) -> Result<(), WrongField> {
    let items = input.as_array().map_or(std::slice::from_ref(input), Vec::as_slice);
    for (index, item) in items.iter().enumerate() {
        let at = if input.is_array() { format!("{name}[{index}]") } else { name.to_owned() };
        match item.get("role") {
            Some(_) => check_message(item, &at, KSADK_MESSAGE, &OPENAI_PARTS)?,
            None => check_item(item, &at)?,
        }
    }
    Ok(())
}

/// Returns whether the options of a model, in the field `at`, ask for thinking. Their other members have no effect.
pub(crate) fn asks_for_thinking(options: Option<&Value>, at: &str) -> Result<bool, BadRequest> {
    match options {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Object(options)) => match options.get("thinking") {
            None | Some(Value::Null) => Ok(false),
            Some(Value::Bool(thinking)) => Ok(*thinking),
            Some(other) => {
                let message = format!("`{at}.thinking` must be true or false, not {}", kind_of(other));
                Err(BadRequest::invalid(&format!("{at}.thinking"), message))
            }
        },
        Some(other) => Err(BadRequest::invalid(at, format!("`{at}` must be an object, not {}", kind_of(other)))),
    }
}

/// Adds to a message the files sent beside it: `current_attachments`, or `attachments` unless `has_current_files` says
/// that they belong to earlier messages.
pub(crate) fn attach(fields: &Map<String, Value>, items: &mut Vec<InputItem>) -> Result<(), BadRequest> {
    let listed = |name: &str| match fields.get(name) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(files)) => Ok(files.clone()),
        Some(other) => Err(BadRequest::invalid(name, format!("`{name}` must be a list, not {}", kind_of(other)))),
    };
    let mut files = listed("current_attachments")?;
    let (others, are_current) = (listed("attachments")?, fields.get("has_current_files") != Some(&json!(false)));
    if files.is_empty() && are_current {
        files = others;
    }
    let mut parts = Vec::new();
    for file in &files {
        parts.extend(attachment(file)?);
    }
    if parts.is_empty() {
        return Ok(());
    }
    let last = items.iter_mut().rev().find_map(|item| match item {
        InputItem::Message { role: ChatRole::User, content } => Some(content),
        _ => None,
    });
    match last {
        Some(content) => content.extend(parts),
        None => items.push(InputItem::Message { role: ChatRole::User, content: parts }),
    }
    Ok(())
}

/// Parses a block of a message, or `{name, mime_type, data | text | file_id | url}` in its usual spellings.
fn attachment(file: &Value) -> Result<Vec<InputContent>, BadRequest> {
    let at = "attachments";
    let is_block = ["type", "inlineData", "inline_data", "fileData"].iter().any(|key| file.get(*key).is_some())
        && !matches!(file["type"].as_str(), Some("file" | "image") if file.get("file").is_none());
    if is_block || file.is_string() {
        return parse_content(&json!([file]), at);
    }
    if !file.is_object() {
        return Err(BadRequest::invalid(at, format!("an entry of `{at}` must be an object, not {}", kind_of(file))));
    }
    let text = |names: &[&str]| names.iter().find_map(|name| file[*name].as_str());
    let name = text(&["filename", "file_name", "display_name", "displayName", "name"]).unwrap_or("file");
    let media_type = text(&["mime_type", "mimeType", "media_type", "content_type"]).unwrap_or("text/plain");
    if let Some(id) = text(&["file_id", "fileId"]) {
        return Ok(vec![InputContent::FileId(id.to_owned())]);
    }
    if let Some(words) = text(&["text"]) {
        return Ok(vec![InputContent::Text(format!("[File {name}]\n{words}\n[End of {name}]"))]);
    }
    if let Some(data) = text(&["data", "file_data", "base64"]) {
        let data = data.split_once(";base64,").map_or(data, |(_, data)| data);
        let inline = json!({ "inlineData": { "mimeType": media_type, "data": data, "displayName": name } });
        return parse_content(&json!([inline]), at);
    }
    match text(&["url", "uri", "file_url", "file_uri", "fileUri"]) {
        Some(uri) => parse_content(&json!([{ "fileData": { "fileUri": uri } }]), at),
        None => Err(BadRequest::invalid(at, format!("the file `{name}` of `{at}` has no data, text, file_id or url"))),
    }
}

fn wrong(field: &str, message: String) -> BadRequest {
    BadRequest::invalid(field, message).with_status(422)
}
