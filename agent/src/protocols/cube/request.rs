//! Parses the requests of Cube's clients. What they may say and does not count is listed and checked.

use querent_catalog::UserAttributes;
use serde_json::{Map, Value};

use crate::error::{AgentError, Result};
use crate::protocols::fields::check_names;
use crate::protocols::json::parse_json;
use crate::protocols::kind_of;
use crate::request::MAX_QUESTION_BYTES;

const MAX_ID_BYTES: usize = 256;
/// Bytes of a user's attributes, groups and security context, each.
const MAX_ATTRIBUTES_BYTES: usize = 64 * 1024;
/// A week.
const DEFAULT_TTL_SECONDS: u64 = 604_800;
/// A century: what is longer is a mistake.
const MAX_TTL_SECONDS: u64 = 3_155_760_000;
/// Digits of a time in milliseconds.
const MESSAGE_ID_DIGITS: usize = 13;
/// The one branch of the data.
const DEFAULT_BRANCH: &str = "main";

/// The fields of a request of the chat. Those after `isDevMode` have no effect: there is one agent, it sees no workbook
/// and no dashboard, and its rights are the user's.
const CHAT_FIELDS: [&str; 15] = [
    "input",
    "chatId",
    "messageId",
    "sessionSettings",
    "activeBranchName",
    "isDefaultBranch",
    "isDevMode",
    "images",
    "context",
    "workbookId",
    "workbookContext",
    "dashboardContext",
    "agentId",
    "cubeCredentials",
    "deploymentId",
];
/// The fields that say who asks. `deploymentId`, `tenantName` and `creatorMode` have no effect: there is one deployment.
const SETTINGS_FIELDS: [&str; 12] = [
    "externalId",
    "internalId",
    "email",
    "userAttributes",
    "groups",
    "roles",
    "securityContext",
    "isEphemeral",
    "ephemeralTtlSeconds",
    "deploymentId",
    "tenantName",
    "creatorMode",
];

/// A request of the chat.
#[derive(Debug, Clone, PartialEq)]
pub struct CubeRequest {
    /// A message; without one the thread's state is read.
    pub input: Option<String>,
    /// The thread.
    pub chat_id: Option<String>,
    /// The client's id for its message.
    pub message_id: Option<String>,
    /// The user who asks.
    pub session: Option<SessionSettings>,
    /// Whether it names a branch that does not exist.
    pub bad_branch: bool,
    /// Whether to show thinking.
    pub is_dev_mode: bool,
}

/// The user who asks.
#[derive(Debug, Clone, PartialEq)]
pub enum SessionSettings {
    /// A user of the application.
    External(ExternalId),
    /// A user of this server, by the name of a token.
    Internal(String),
}

/// A user of the application.
#[derive(Debug, Clone, PartialEq)]
pub struct ExternalId {
    /// The application's id of the user.
    pub id: String,
    /// Attributes from the application.
    pub attributes: UserAttributes,
    /// How long the user and its threads are kept; `None`: as long as others.
    pub ttl_seconds: Option<u64>,
}

impl CubeRequest {
    /// Parses a body, which may be empty. Errors: `invalid_request`.
    pub fn parse(body: &[u8]) -> Result<Self> {
        let fields = object_of(body)?;
        check_names(&fields, "", CHAT_FIELDS)?;
        let input = text(&fields, "input")?;
        if let Some(input) = &input {
            if input.trim().is_empty() {
                return Err(invalid("`input` is empty; ask something, or leave it out to read the thread's state"));
            }
            if input.len() > MAX_QUESTION_BYTES {
                let length = input.len();
                return Err(invalid(format!("`input` has {length} bytes; at most {MAX_QUESTION_BYTES} are read")));
            }
        }
        let message_id = text(&fields, "messageId")?;
        if let Some(id) = message_id.as_deref().filter(|id| !is_message_id(id)) {
            let id: String = id.chars().take(80).collect();
            return Err(invalid(format!(
                "`messageId` must be a time in milliseconds of {MESSAGE_ID_DIGITS} or more digits followed by \
                 `-message`, as 1717500000000-message, not `{id}`"
            )));
        }
        check_images(&fields)?;
        for name in ["context", "workbookId"] {
            text(&fields, name)?;
        }
        let branch = text(&fields, "activeBranchName")?;
        let is_default_branch = flag(&fields, "isDefaultBranch")?.unwrap_or(branch.is_none());
        Ok(Self {
            input,
            chat_id: id(&fields, "chatId")?,
            message_id,
            session: settings_in(&fields)?,
            bad_branch: branch.is_some_and(|branch| !is_default_branch && branch != DEFAULT_BRANCH),
            is_dev_mode: flag(&fields, "isDevMode")?.unwrap_or(false),
        })
    }
}

/// Parses a body of `abort`: the thread, and the user who asks. Errors: `invalid_request`.
pub fn abort_request(body: &[u8]) -> Result<(String, Option<SessionSettings>)> {
    let fields = object_of(body)?;
    check_names(&fields, "", ["chatId", "sessionSettings", "agentId"])?;
    let chat_id = id(&fields, "chatId")?.ok_or_else(|| invalid("`chatId` is missing; name the thread to abort"))?;
    Ok((chat_id, settings_in(&fields)?))
}

/// Parses the request for an embedded session: its user. Errors: `invalid_request`.
pub fn generate_session(body: &[u8]) -> Result<SessionSettings> {
    settings(&object_of(body)?, "")
}

/// Parses the request for a token: the session to exchange. Errors: `invalid_request`.
pub fn session_token(body: &[u8]) -> Result<String> {
    let fields = object_of(body)?;
    check_names(&fields, "", ["sessionId", "deploymentId"])?;
    id(&fields, "sessionId")?.ok_or_else(|| invalid("`sessionId` is missing"))
}

fn object_of(body: &[u8]) -> Result<Map<String, Value>> {
    if body.iter().all(u8::is_ascii_whitespace) {
        return Ok(Map::new());
    }
    let body = parse_json(body).map_err(|error| invalid(format!("the body is not JSON: {error}")))?;
    match body {
        Value::Object(fields) => Ok(fields),
        other => Err(invalid(format!("the body must be a JSON object, not {}", kind_of(&other)))),
    }
}

fn settings_in(fields: &Map<String, Value>) -> Result<Option<SessionSettings>> {
    match fields.get("sessionSettings") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Object(fields)) => settings(fields, "sessionSettings.").map(Some),
        Some(other) => Err(invalid(format!("`sessionSettings` must be an object, not {}", kind_of(other)))),
    }
}

fn settings(fields: &Map<String, Value>, at: &str) -> Result<SessionSettings> {
    check_names(fields, at.trim_end_matches('.'), SETTINGS_FIELDS)?;
    let placed = |error: AgentError| match error {
        AgentError::InvalidRequest { message } => invalid(message.replacen('`', &format!("`{at}"), 1)),
        other => other,
    };
    let external = id(fields, "externalId").map_err(placed)?;
    let internal = id(fields, "internalId").map_err(placed)?;
    let attributes = attributes(fields).map_err(placed)?;
    strings(fields, "roles").map_err(placed)?;
    let is_ephemeral = flag(fields, "isEphemeral").map_err(placed)?.unwrap_or(true);
    let ttl_seconds = ttl(fields).map_err(placed)?;
    if !is_ephemeral && ttl_seconds.is_some() {
        let message = format!("`{at}ephemeralTtlSeconds` is of a user that is ephemeral; leave out one of the two");
        return Err(invalid(message));
    }
    match (external, internal) {
        (None, None) => Err(invalid(format!("say who asks: `{at}externalId` or `{at}internalId` is needed"))),
        (Some(_), Some(_)) => Err(invalid(format!("`{at}externalId` and `{at}internalId` exclude each other"))),
        (Some(id), None) => {
            if id.to_lowercase() != id || id.contains(|c: char| c.is_whitespace() || c.is_control()) {
                return Err(invalid(format!("`{at}externalId` must be lowercase and without spaces")));
            }
            let ttl_seconds = is_ephemeral.then_some(ttl_seconds.unwrap_or(DEFAULT_TTL_SECONDS));
            Ok(SessionSettings::External(ExternalId { id, attributes, ttl_seconds }))
        }
        (None, Some(id)) => {
            let forbidden = ["userAttributes", "groups", "roles", "securityContext"];
            let given = forbidden.iter().find(|name| fields.get(**name).is_some_and(|value| !value.is_null()));
            match given {
                Some(name) => {
                    Err(invalid(format!("`{at}{name}` is not allowed with `{at}internalId`: that user has its own")))
                }
                None => Ok(SessionSettings::Internal(id)),
            }
        }
    }
}

fn attributes(fields: &Map<String, Value>) -> Result<UserAttributes> {
    let mut attributes =
        UserAttributes { email: text(fields, "email")?, groups: strings(fields, "groups")?, ..Default::default() };
    for (index, pair) in list(fields, "userAttributes")?.iter().enumerate() {
        let (Some(name), Some(value)) = (pair["name"].as_str(), pair["value"].as_str()) else {
            return Err(invalid(
                "`userAttributes` must be a list of objects with a `name` and a `value`, both strings",
            ));
        };
        let pair_fields = pair.as_object().cloned().unwrap_or_default();
        check_names(&pair_fields, &format!("userAttributes[{index}]"), ["name", "value"])
            .map_err(|fault| invalid(fault.message))?;
        if name.is_empty() || attributes.values.insert(name.to_owned(), value.to_owned()).is_some() {
            return Err(invalid(format!("`userAttributes` has the name `{name}` twice, or an empty one")));
        }
    }
    attributes.security_context = match fields.get("securityContext") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(context)) => context.clone(),
        Some(other) => return Err(invalid(format!("`securityContext` must be an object, not {}", kind_of(other)))),
    };
    for name in ["userAttributes", "groups", "securityContext"] {
        let bytes = fields.get(name).map_or(0, |value| value.to_string().len());
        if bytes > MAX_ATTRIBUTES_BYTES {
            return Err(invalid(format!("`{name}` has {bytes} bytes; at most {MAX_ATTRIBUTES_BYTES} are taken")));
        }
    }
    Ok(attributes)
}

fn ttl(fields: &Map<String, Value>) -> Result<Option<u64>> {
    match fields.get("ephemeralTtlSeconds") {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match value.as_u64().filter(|seconds| (1..=MAX_TTL_SECONDS).contains(seconds)) {
            Some(seconds) => Ok(Some(seconds)),
            None => {
                Err(invalid(format!("`ephemeralTtlSeconds` must be a whole number of seconds above 0, not {value}")))
            }
        },
    }
}

/// Checks the form of images, which are otherwise ignored.
fn check_images(fields: &Map<String, Value>) -> Result<()> {
    for image in list(fields, "images")? {
        if !image["mimeType"].is_string() || !image["data"].is_string() {
            return Err(invalid("`images` must be a list of objects with a `mimeType` and `data`, both strings"));
        }
    }
    Ok(())
}

/// Whether the id has the form `1717500000000-message`.
fn is_message_id(id: &str) -> bool {
    let digits = id.strip_suffix("-message").unwrap_or_default();
    digits.len() >= MESSAGE_ID_DIGITS && id.len() <= MAX_ID_BYTES && digits.bytes().all(|byte| byte.is_ascii_digit())
}

fn id(fields: &Map<String, Value>, name: &str) -> Result<Option<String>> {
    let Some(id) = text(fields, name)? else { return Ok(None) };
    let length = id.len();
    if id.trim().is_empty() || length > MAX_ID_BYTES || id.trim() != id || id.contains(char::is_control) {
        return Err(invalid(format!(
            "`{name}` must be a name of 1 to {MAX_ID_BYTES} bytes without spaces around it; it has {length} bytes"
        )));
    }
    Ok(Some(id))
}

fn text(fields: &Map<String, Value>, name: &str) -> Result<Option<String>> {
    match fields.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(other) => Err(invalid(format!("`{name}` must be a string, not {}", kind_of(other)))),
    }
}

fn flag(fields: &Map<String, Value>, name: &str) -> Result<Option<bool>> {
    match fields.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Bool(flag)) => Ok(Some(*flag)),
        Some(other) => Err(invalid(format!("`{name}` must be true or false, not {}", kind_of(other)))),
    }
}

fn list<'a>(fields: &'a Map<String, Value>, name: &str) -> Result<&'a [Value]> {
    match fields.get(name) {
        None | Some(Value::Null) => Ok(&[]),
        Some(Value::Array(items)) => Ok(items),
        Some(other) => Err(invalid(format!("`{name}` must be a list, not {}", kind_of(other)))),
    }
}

fn strings(fields: &Map<String, Value>, name: &str) -> Result<Vec<String>> {
    let string = |item: &Value| item.as_str().map(str::to_owned);
    let all: Option<Vec<String>> = list(fields, name)?.iter().map(string).collect();
    all.ok_or_else(|| invalid(format!("`{name}` must be a list of strings")))
}

fn invalid(message: impl Into<String>) -> AgentError {
    AgentError::InvalidRequest { message: message.into() }
}
