//! A call that the client forces, for models whose server does not enforce it: the reply is held to a schema, that of the
//! arguments where there is one tool to call, else of `{"action": name, ...arguments}` for each tool.

use serde_json::{Map, Value, json};

use super::schema::{ACTION_FIELD, required_arguments};
use super::{ContentReader, no_forced_call, object_in};
use crate::error::Result;
use crate::models::{DoneReason, ModelEvent, ModelToolCall, ToolSpec};

/// Where JSON schemas keep what they refer to.
const DEFINITIONS: [&str; 2] = ["$defs", "definitions"];

/// Returns a schema that only a call of one of `tools` satisfies; those of `client_tools` with all their arguments.
pub(super) fn forced_schema(tools: &[ToolSpec], client_tools: &[String]) -> Value {
    if let [tool] = tools {
        return arguments_schema(tool, client_tools);
    }
    let mut definitions = Map::new();
    let calls: Vec<Value> = tools
        .iter()
        .map(|tool| {
            let mut schema = arguments_schema(tool, client_tools);
            for name in DEFINITIONS {
                // References are from the root of the whole schema.
                if let Some(Value::Object(defined)) =
                    schema.as_object_mut().and_then(|schema| schema.shift_remove(name))
                {
                    let all = definitions.entry(name).or_insert_with(|| json!({}));
                    if let Value::Object(all) = all {
                        all.extend(defined);
                    }
                }
            }
            let mut properties = Map::from_iter([(ACTION_FIELD.to_owned(), json!({ "const": tool.name }))]);
            properties.extend(schema["properties"].as_object().cloned().unwrap_or_default());
            let mut required = vec![json!(ACTION_FIELD)];
            required.extend(schema["required"].as_array().cloned().unwrap_or_default());
            schema["properties"] = Value::Object(properties);
            schema["required"] = Value::Array(required);
            schema
        })
        .collect();
    let mut schema = json!({ "anyOf": calls });
    for (name, defined) in definitions {
        schema[name] = defined;
    }
    schema
}

/// Says what to reply, in words.
pub(super) fn forced_instructions(tools: &[ToolSpec], client_tools: &[String]) -> String {
    if let [tool] = tools {
        return format!(
            "Call the tool {} now: reply with one JSON object, its arguments, and nothing else. {}\nArguments: {}",
            tool.name,
            tool.description,
            arguments_schema(tool, client_tools)
        );
    }
    let mut text = format!(
        "Call one of these tools now: reply with one JSON object, its name in \"{ACTION_FIELD}\", and nothing else.\n"
    );
    for tool in tools {
        let mut example = Map::from_iter([(ACTION_FIELD.to_owned(), json!(tool.name))]);
        let schema = arguments_schema(tool, client_tools);
        let arguments = schema["properties"].as_object().into_iter().flat_map(|properties| properties.keys());
        example.extend(arguments.map(|name| (name.clone(), json!("..."))));
        text.push_str(&format!("{} - {}\n", Value::Object(example), tool.description));
    }
    text
}

/// Returns the schema of a tool's arguments: of the server's own only those that are required, since under a schema a
/// model fills in whatever it may.
fn arguments_schema(tool: &ToolSpec, client_tools: &[String]) -> Value {
    if client_tools.contains(&tool.name) {
        let mut schema = tool.parameters.clone();
        if !schema.is_object() || schema["type"] != "object" {
            schema = json!({ "type": "object", "properties": {} });
        }
        return schema;
    }
    let arguments = required_arguments(tool);
    let required: Vec<&String> = arguments.iter().map(|(name, _)| name).collect();
    json!({
        "type": "object",
        "required": required,
        "additionalProperties": false,
        "properties": arguments.iter().cloned().collect::<Map<_, _>>(),
    })
}

/// Reads a reply that is one call.
pub(super) struct ForcedCallParser {
    tools: Vec<ToolSpec>,
    content: String,
}

impl ForcedCallParser {
    /// Expects a call of one of `tools`.
    pub(super) fn new(tools: Vec<ToolSpec>) -> Self {
        Self { tools, content: String::new() }
    }

    /// Returns the call, in the form that was asked for or in one that models know.
    fn call(&self) -> Option<ModelToolCall> {
        let Ok(Value::Object(mut object)) = serde_json::from_str(object_in(&self.content)) else { return None };
        let has_tool = |name: &str| self.tools.iter().any(|tool| tool.name == name);
        let named = |object: &Map<String, Value>, field: &str| {
            object.get(field).and_then(Value::as_str).filter(|name| has_tool(name)).map(str::to_owned)
        };
        if let Some(name) = named(&object, ACTION_FIELD) {
            object.shift_remove(ACTION_FIELD);
            return Some(ModelToolCall { id: None, name, arguments: Value::Object(object) });
        }
        if let Some(name) = named(&object, "name")
            && let Some(arguments) = ["arguments", "parameters"].iter().find_map(|field| object.get(*field))
            && object.len() == 2
        {
            return Some(ModelToolCall { id: None, name, arguments: arguments.clone() });
        }
        match self.tools.as_slice() {
            [tool] => Some(ModelToolCall { id: None, name: tool.name.clone(), arguments: Value::Object(object) }),
            _ => None,
        }
    }
}

impl ContentReader for ForcedCallParser {
    fn push(&mut self, piece: String) -> Option<String> {
        self.content.push_str(&piece);
        None
    }

    fn finish(&mut self, reason: DoneReason) -> Result<Vec<ModelEvent>> {
        match (self.call(), reason) {
            (Some(call), _) => Ok(vec![ModelEvent::ToolCall(call)]),
            // Half a call is no call.
            (None, DoneReason::Length | DoneReason::Filtered) => Ok(Vec::new()),
            // It called a tool in its server's own way.
            (None, DoneReason::Stop) if self.content.trim().is_empty() => Ok(Vec::new()),
            (None, DoneReason::Stop) => Err(no_forced_call(&self.content)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tools() -> [ToolSpec; 2] {
        let spec =
            |name: &str, parameters: Value| ToolSpec { name: name.to_owned(), description: String::new(), parameters };
        [
            spec(
                "run_sql",
                json!({
                    "type": "object",
                    "properties": { "sql": { "type": "string", "description": "One." }, "max_rows": { "type": "integer" } },
                    "required": ["sql"],
                }),
            ),
            spec(
                "Person",
                json!({
                    "type": "object",
                    "properties": { "name": { "type": "string" }, "home": { "$ref": "#/$defs/Home" } },
                    "required": ["name"],
                    "$defs": { "Home": { "type": "object", "properties": { "city": { "type": "string" } } } },
                }),
            ),
        ]
    }

    #[test]
    fn one_tool_is_the_schema_of_its_arguments_and_several_are_a_union() {
        let [own, client] = tools();
        let clients = ["Person".to_owned()];
        assert_eq!(forced_schema(std::slice::from_ref(&client), &clients), client.parameters);
        let schema = forced_schema(&[own, client], &clients);
        assert_eq!(schema["$defs"]["Home"]["type"], "object", "{schema}");
        let [sql, person] = [0, 1].map(|index| &schema["anyOf"][index]);
        assert_eq!(sql["properties"], json!({ "action": { "const": "run_sql" }, "sql": { "type": "string" } }));
        assert_eq!(person["required"], json!(["action", "name"]));
        assert!(person["properties"]["home"].is_object() && person.get("$defs").is_none(), "{person}");
    }

    #[test]
    fn a_call_is_read_in_each_form() {
        let [own, client] = tools();
        let read = |tools: Vec<ToolSpec>, content: &str| {
            let mut parser = ForcedCallParser::new(tools);
            parser.push(content.to_owned());
            parser.finish(DoneReason::Stop).map_err(|error| error.code())
        };
        let ada = |events: std::result::Result<Vec<ModelEvent>, &str>| match events.as_deref() {
            Ok([ModelEvent::ToolCall(call)]) => call.name == "Person" && call.arguments == json!({ "name": "Ada" }),
            _ => false,
        };
        assert!(ada(read(vec![client.clone()], r#"{"name": "Ada"}"#)));
        assert!(ada(read(vec![client.clone()], r#"{"action": "Person", "name": "Ada"}"#)));
        assert!(ada(read(vec![own.clone(), client.clone()], r#"{"action": "Person", "name": "Ada"}"#)));
        assert!(ada(read(vec![own.clone(), client.clone()], r#"{"name": "Person", "arguments": {"name": "Ada"}}"#)));
        assert_eq!(read(vec![own, client], "It is Ada."), Err("model_failed"));
    }
}
