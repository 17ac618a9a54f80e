//! The tools of a request and the choice among them, in the forms of Responses and Chat Completions.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::BadRequest;
use crate::answer::StructuredAnswer;
use crate::event::SERVER_LABEL;
use crate::models::{ToolChoice, ToolSpec};
use crate::protocols::fields::{FieldValues, check_members, check_value};
use crate::protocols::kind_of;
use crate::request::AnswerSchema;
use crate::tools::{known_tool, tool_names};

/// The type of a tool choice that allows several tools.
const ALLOWED_TOOLS: &str = "allowed_tools";
/// The longest name of a tool, or of a schema.
const MAX_NAME_BYTES: usize = 64;
/// The most tools of one request. OpenAI takes 128.
const MAX_TOOLS: usize = 1_000;
/// The fields of a client's tool.
const FUNCTION: &[(&str, FieldValues)] = &[
    ("type", FieldValues::Text),
    ("name", FieldValues::Text),
    ("description", FieldValues::Text),
    ("parameters", FieldValues::Object),
    ("strict", FieldValues::Flag),
    ("output_schema", FieldValues::Object),
    ("defer_loading", FieldValues::Only("false")),
    ("allowed_callers", FieldValues::Only("[\"direct\"]")),
    ("async", FieldValues::Only("false")),
];
/// The fields of a choice among tools, in both forms.
const CHOICE: &[(&str, FieldValues)] = &[
    ("type", FieldValues::Text),
    ("name", FieldValues::Text),
    ("server_label", FieldValues::Text),
    ("mode", FieldValues::Text),
    ("tools", FieldValues::List),
    ("function", FieldValues::Members(&[("name", FieldValues::Text)])),
    (ALLOWED_TOOLS, FieldValues::Members(&[("mode", FieldValues::Text), ("tools", FieldValues::List)])),
];
/// The fields of an entry of a choice's list of tools, in both forms.
const CHOICE_ENTRY: &[(&str, FieldValues)] = &[
    ("type", FieldValues::OneOf(&["function", "mcp"])),
    ("name", FieldValues::Text),
    ("server_label", FieldValues::Text),
    ("function", FieldValues::Members(&[("name", FieldValues::Text)])),
];
/// The fields of an entry that names this server. Tools that write wait for a person and others do not, whatever
/// `require_approval` says; who asks is the request's owner, so that `headers` and `authorization` have no effect.
const MCP_TOOL: &[(&str, FieldValues)] = &[
    ("type", FieldValues::Text),
    ("server_label", FieldValues::Text),
    ("server_url", FieldValues::Text),
    ("server_description", FieldValues::Text),
    ("allowed_tools", FieldValues::Parsed),
    ("require_approval", FieldValues::Parsed),
    ("headers", FieldValues::Object),
    ("authorization", FieldValues::Text),
    ("connector_id", FieldValues::Only("null")),
    ("defer_loading", FieldValues::Only("false")),
    ("allowed_callers", FieldValues::Only("[\"direct\"]")),
];

/// Returns the function tools of a request; `function` finds a tool's definition in its entry.
pub(crate) fn tools_of(
    fields: &Map<String, Value>,
    parameters: &str,
    function: impl Fn(&Value) -> Option<&Value>,
) -> Result<Vec<ToolSpec>, BadRequest> {
    let nothing = Map::new();
    let entries = match fields.get("tools") {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(entries)) => entries,
        Some(other) => {
            return Err(BadRequest::invalid("tools", format!("`tools` must be a list, not {}", kind_of(other))));
        }
    };
    check_tool_count("tools", entries.len())?;
    let mut tools = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        let at = format!("tools[{index}]");
        let members = entry.as_object().unwrap_or(&nothing);
        match entry["type"].as_str() {
            Some("function") => {}
            // Names this server's tools, which are always available.
            Some("mcp") if entry["connector_id"].is_null() => {
                check_members(members, &at, MCP_TOOL)?;
                check_allowed(&entry["allowed_tools"], &format!("{at}.allowed_tools"))?;
                check_approval(&entry["require_approval"], &format!("{at}.require_approval"))?;
                continue;
            }
            kind => {
                let said = kind.map_or_else(|| "a tool without a type".to_owned(), |kind| format!("`{kind}`"));
                let message = format!(
                    "`{at}`: {said} is not supported; a tool is a `function` of yours, or `mcp` \
                    with this server's address"
                );
                return Err(BadRequest::invalid(&format!("{at}.type"), message));
            }
        }
        let definition = function(entry).unwrap_or(&Value::Null);
        let Some(name) = definition["name"].as_str().filter(|name| !name.is_empty()) else {
            return Err(BadRequest::invalid(&format!("{at}.name"), format!("`{at}` has no name")));
        };
        if std::ptr::eq(definition, entry) {
            check_members(members, &at, FUNCTION)?;
        } else {
            check_members(members, &at, &[("type", FieldValues::Text), ("function", FieldValues::Members(FUNCTION))])?;
        }
        let inner = if std::ptr::eq(definition, entry) { "" } else { ".function" };
        check_tool_name(name, &format!("{at}{inner}.name"))?;
        let schema_at = format!("{at}{inner}.{parameters}");
        let parameters = match &definition[parameters] {
            Value::Null => json!({ "type": "object", "properties": {} }),
            schema => {
                check_arguments_schema(name, schema, &schema_at)?;
                schema.clone()
            }
        };
        let description = definition["description"].as_str().unwrap_or_default().to_owned();
        tools.push(ToolSpec { name: name.to_owned(), description, parameters });
    }
    check_distinct(&tools)?;
    Ok(tools)
}

/// Checks which tools of this server the model is left: a list of their names, or `{tool_names, read_only}`.
fn check_allowed(allowed: &Value, at: &str) -> Result<(), BadRequest> {
    let names = match allowed {
        Value::Null => return Ok(()),
        Value::Object(filter) => {
            check_members(filter, at, &[("tool_names", FieldValues::List), ("read_only", FieldValues::Only("true"))])?;
            filter.get("tool_names").unwrap_or(&Value::Null)
        }
        Value::Array(_) => allowed,
        other => {
            let message = format!("`{at}` must be a list of names or an object, not {}", kind_of(other));
            return Err(BadRequest::invalid(at, message));
        }
    };
    check_tool_count(at, names.as_array().map_or(0, Vec::len))?;
    let unknown = names.as_array().into_iter().flatten().find(|name| name.as_str().and_then(known_tool).is_none());
    match unknown {
        None => Ok(()),
        Some(name) => {
            let there = tool_names(true).collect::<Vec<_>>().join(", ");
            Err(BadRequest::invalid(at, format!("`{at}` names {name}, which is no tool here; there are {there}")))
        }
    }
}

/// Checks a word or a filter that says which calls wait for a person. It has no effect: those do that write.
fn check_approval(approval: &Value, at: &str) -> Result<(), BadRequest> {
    const TOOLS: FieldValues =
        FieldValues::Members(&[("tool_names", FieldValues::TextList), ("read_only", FieldValues::Flag)]);
    match approval {
        Value::Null => Ok(()),
        Value::Object(filters) => Ok(check_members(filters, at, &[("always", TOOLS), ("never", TOOLS)])?),
        word => Ok(check_value(at, FieldValues::OneOf(&["always", "never"]), "leave it out", word)?),
    }
}

/// Refuses a name that models' servers do not take.
pub(crate) fn check_tool_name(name: &str, at: &str) -> Result<(), BadRequest> {
    let is_good = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if name.len() <= MAX_NAME_BYTES && !name.is_empty() && name.bytes().all(is_good) {
        return Ok(());
    }
    let message = format!("`{at}` must be 1 to {MAX_NAME_BYTES} letters, digits, `_` and `-`");
    Err(BadRequest::invalid(at, message))
}

/// Refuses a schema of a tool's arguments that is no JSON schema, or not one of an object: models' servers fail on it.
pub(crate) fn check_arguments_schema(name: &str, schema: &Value, at: &str) -> Result<(), BadRequest> {
    if schema.get("type").is_some_and(|kind| kind != "object") {
        return Err(BadRequest::invalid(at, format!("`{at}.type` must be object")));
    }
    let arguments = AnswerSchema { name: name.to_owned(), schema: schema.clone() };
    match StructuredAnswer::new(&arguments) {
        Ok(_) => Ok(()),
        Err(error) => Err(BadRequest::invalid(at, format!("`{at}`: {error}"))),
    }
}

/// Refuses a list of more tools, or of their names, than one request may have.
pub(crate) fn check_tool_count(at: &str, count: usize) -> Result<(), BadRequest> {
    if count > MAX_TOOLS {
        return Err(BadRequest::invalid(
            at,
            format!("there are {count} tools in `{at}`; at most {MAX_TOOLS} are read"),
        ));
    }
    Ok(())
}

/// Refuses two tools of one name.
pub(crate) fn check_distinct(tools: &[ToolSpec]) -> Result<(), BadRequest> {
    let mut names = HashSet::with_capacity(tools.len());
    match tools.iter().find(|tool| !names.insert(tool.name.as_str())) {
        Some(twice) => Err(BadRequest::invalid("tools", format!("two tools are named `{}`", twice.name))),
        None => Ok(()),
    }
}

/// Returns the server's tools to which all entries of the type `mcp` restrict the model; `None` for all tools.
pub(super) fn server_tools(fields: &Map<String, Value>) -> Option<Vec<String>> {
    let entries = fields.get("tools").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let mut allowed: Option<Vec<String>> = None;
    for entry in entries.iter().filter(|entry| entry["type"] == "mcp") {
        let (names, only_reads) = match &entry["allowed_tools"] {
            Value::Null => return None,
            Value::Object(filter) => (filter.get("tool_names"), filter.get("read_only") == Some(&json!(true))),
            names => (Some(names), false),
        };
        let names: Vec<String> = match names.and_then(Value::as_array) {
            Some(names) => names.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            None if only_reads => tool_names(false).collect(),
            None => return None,
        };
        let is_allowed = |name: &String| !only_reads || tool_names(false).any(|reader| reader == *name);
        allowed.get_or_insert_default().extend(names.into_iter().filter(is_allowed));
    }
    allowed
}

/// Returns the server's tools that a choice of the type `allowed_tools` names; `None` where it restricts none.
pub(super) fn chosen_server_tools(choice: Option<&Value>, clients: &[ToolSpec]) -> Option<Vec<String>> {
    let choice = choice.filter(|choice| choice["type"] == ALLOWED_TOOLS)?;
    let entries = allowed(choice)["tools"].as_array()?;
    if entries.iter().any(|entry| entry["type"] == "mcp" && name_of(entry).is_none()) {
        return None;
    }
    let is_ours = |name: &&str| known_tool(name).is_some() && clients.iter().all(|tool| tool.name != **name);
    let names: Vec<String> = allowed_names(choice).into_iter().filter(is_ours).map(str::to_owned).collect();
    (!names.is_empty()).then_some(names)
}

/// Returns the addresses of servers of tools, with the field that has each.
pub(super) fn tool_servers(fields: &Map<String, Value>) -> Vec<(String, String)> {
    let entries = fields.get("tools").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let servers = entries.iter().enumerate().filter_map(|(index, entry)| {
        let url = entry["server_url"].as_str().filter(|_| entry["type"] == "mcp")?;
        Some((format!("tools[{index}].server_url"), url.to_owned()))
    });
    servers.collect()
}

/// Refuses a choice among the tools of a server that the request does not declare; this one is there by its own name too.
pub(super) fn check_chosen_servers(fields: &Map<String, Value>) -> Result<(), BadRequest> {
    let choice = fields.get("tool_choice").unwrap_or(&Value::Null);
    let entries = fields.get("tools").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let of_servers = entries.iter().filter(|entry| entry["type"] == "mcp");
    let declared: HashSet<&str> = of_servers.filter_map(|entry| entry["server_label"].as_str()).collect();
    let is_declared = |label: &str| label == SERVER_LABEL || declared.contains(label);
    let chosen = std::iter::once(choice).chain(choice["tools"].as_array().into_iter().flatten());
    let mut labels = chosen.filter(|one| one["type"] == "mcp").filter_map(|one| one["server_label"].as_str());
    match labels.find(|label| !is_declared(label)) {
        None => Ok(()),
        Some(label) => {
            let message = format!("`tool_choice` names the server `{label}`, which is not in `tools`");
            Err(BadRequest::invalid("tool_choice", message))
        }
    }
}

/// Parses `auto`, `none`, `required`, the name of one of `tools` or of the server's, or the allowed functions, in either
/// protocol's form.
pub(crate) fn tool_choice(choice: Option<&Value>, tools: &[ToolSpec]) -> Result<ToolChoice, BadRequest> {
    let unknown = |name: &str| {
        let known: Vec<String> = tools.iter().map(|tool| tool.name.clone()).chain(tool_names(false)).collect();
        let message = format!("`tool_choice` names `{name}`, which is not there; there are {}", known.join(", "));
        BadRequest::invalid("tool_choice", message)
    };
    let is_known = |name: &str| known_tool(name).is_some() || tools.iter().any(|tool| tool.name == name);
    if let Some(Value::Object(fields)) = choice {
        check_members(fields, "tool_choice", CHOICE)?;
    }
    match choice {
        Some(choice) if choice["type"] == ALLOWED_TOOLS => {
            let Some(entries) = allowed(choice)["tools"].as_array() else {
                let message =
                    "`tool_choice` of the type allowed_tools has no `tools`, the list of those that are allowed";
                return Err(BadRequest::invalid("tool_choice", message));
            };
            check_tool_count("tool_choice", entries.len())?;
            if let Some(entry) = entries.iter().find(|entry| name_of(entry).is_none() && entry["type"] != "mcp") {
                let message = format!("`tool_choice` allows {entry}, which names no tool");
                return Err(BadRequest::invalid("tool_choice", message));
            }
            let inner = if choice[ALLOWED_TOOLS].is_object() { ".allowed_tools" } else { "" };
            for (index, entry) in entries.iter().enumerate() {
                if let Value::Object(fields) = entry {
                    check_members(fields, &format!("tool_choice{inner}.tools[{index}]"), CHOICE_ENTRY)?;
                }
            }
            let names = allowed_names(choice);
            match names.iter().find(|name| !is_known(name)) {
                Some(name) => Err(unknown(name)),
                None => tool_choice(allowed(choice).get("mode"), tools),
            }
        }
        None | Some(Value::Null) => Ok(ToolChoice::Auto),
        Some(Value::String(word)) => match word.as_str() {
            "auto" => Ok(ToolChoice::Auto),
            "none" => Ok(ToolChoice::None),
            "required" => Ok(ToolChoice::Required),
            other => Err(BadRequest::invalid(
                "tool_choice",
                format!("`tool_choice` `{other}` is not known; it may be auto, none, required or a tool"),
            )),
        },
        Some(choice) => match name_of(choice) {
            Some(_) if !["function", "mcp"].iter().any(|kind| choice["type"] == *kind) && !choice["type"].is_null() => {
                let message = format!("`tool_choice.type` is function, mcp or allowed_tools, not {}", choice["type"]);
                Err(BadRequest::invalid("tool_choice.type", message))
            }
            Some(name) if is_known(name) => Ok(ToolChoice::Named(name.to_owned())),
            Some(name) => Err(unknown(name)),
            // Any tool of the server.
            None if choice["type"] == "mcp" => Ok(ToolChoice::Required),
            None => {
                let message = format!("`tool_choice` must be a word or name a function, not {choice}");
                Err(BadRequest::invalid("tool_choice", message))
            }
        },
    }
}

/// Returns the client's tools without those that its choice does not allow.
pub(crate) fn allowed_tools(mut tools: Vec<ToolSpec>, choice: Option<&Value>) -> Vec<ToolSpec> {
    if let Some(choice) = choice.filter(|choice| choice["type"] == ALLOWED_TOOLS) {
        let names = allowed_names(choice);
        tools.retain(|tool| names.contains(&tool.name.as_str()));
    }
    tools
}

fn allowed_names(choice: &Value) -> Vec<&str> {
    let entries = allowed(choice)["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
    entries.iter().filter_map(name_of).collect()
}

/// Returns the tool's name that a choice, or an entry of it, has in either form.
fn name_of(choice: &Value) -> Option<&str> {
    choice["name"].as_str().or(choice["function"]["name"].as_str())
}

/// Returns `{mode, tools}`, which Chat Completions put one level deeper.
fn allowed(choice: &Value) -> &Value {
    if choice[ALLOWED_TOOLS].is_object() { &choice[ALLOWED_TOOLS] } else { choice }
}
