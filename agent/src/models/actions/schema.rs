//! The union of actions that a model may reply with, as a JSON schema for its server and in words for its prompt. The
//! field that names the action comes first, so that the kind of a streamed reply is known at once.

use serde_json::{Map, Value, json};

use crate::models::ToolSpec;

/// Names the action.
pub(super) const ACTION_FIELD: &str = "action";
/// The action that ends the run.
pub(super) const ANSWER_ACTION: &str = "answer";
/// The answer's text.
pub(super) const ANSWER_FIELD: &str = "text";

/// Returns a schema that only a call of one of `tools`, or an answer where it `may_answer`, satisfies.
///
/// Only required arguments are offered: under a schema a model fills in whatever it may, and a small one fills in
/// optional arguments with nonsense.
pub(super) fn action_schema(tools: &[ToolSpec], may_answer: bool) -> Value {
    let answer = action_object(ANSWER_ACTION, [(ANSWER_FIELD.to_owned(), json!({"type": "string"}))]);
    let mut actions: Vec<Value> =
        tools.iter().map(|tool| action_object(&tool.name, required_arguments(tool))).collect();
    if may_answer || actions.is_empty() {
        actions.push(answer);
    }
    json!({ "anyOf": actions })
}

/// Describes the same union in words, one line for each action.
pub(super) fn action_instructions(tools: &[ToolSpec]) -> String {
    let mut text = String::from("Reply with one JSON object each time:\n");
    for tool in tools {
        let mut example = Map::new();
        example.insert(ACTION_FIELD.to_owned(), json!(tool.name));
        for (argument, _) in required_arguments(tool) {
            example.insert(argument, json!("..."));
        }
        text.push_str(&format!("{} - {}\n", Value::Object(example), tool.description));
    }
    let answer = json!({ ACTION_FIELD: ANSWER_ACTION, ANSWER_FIELD: "..." });
    text.push_str(&format!(
        "{answer} - Answer the user from the rows of a query, or say that the data does not have it.\n"
    ));
    text
}

fn action_object(action: &str, arguments: impl IntoIterator<Item = (String, Value)>) -> Value {
    let mut properties = Map::new();
    properties.insert(ACTION_FIELD.to_owned(), json!({ "const": action }));
    properties.extend(arguments);
    let required: Vec<&String> = properties.keys().collect();
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

pub(super) fn required_arguments(tool: &ToolSpec) -> Vec<(String, Value)> {
    let properties = &tool.parameters["properties"];
    let required = tool.parameters["required"].as_array().map(Vec::as_slice).unwrap_or_default();
    required
        .iter()
        .filter_map(Value::as_str)
        .map(|name| (name.to_owned(), argument_schema(&properties[name])))
        .collect()
}

/// Returns an argument's schema without its prose, which constrains nothing.
fn argument_schema(schema: &Value) -> Value {
    let Value::Object(fields) = schema else { return json!({ "type": "string" }) };
    let constraints = fields.iter().filter(|(key, _)| !matches!(key.as_str(), "description" | "title" | "examples"));
    Value::Object(constraints.map(|(key, value)| (key.clone(), value.clone())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run_sql() -> ToolSpec {
        ToolSpec {
            name: "run_sql".to_owned(),
            description: "Runs a query.".to_owned(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "sql": {"type": "string", "description": "One statement."},
                    "max_rows": {"type": "integer"},
                },
                "required": ["sql"],
            }),
        }
    }

    #[test]
    fn the_schema_names_the_action_first_and_leaves_optional_arguments_out() {
        let schema = action_schema(&[run_sql()], true);
        assert_eq!(
            schema.to_string(),
            concat!(
                r#"{"anyOf":[{"type":"object","properties":{"action":{"const":"run_sql"},"sql":{"type":"string"}},"#,
                r#""required":["action","sql"],"additionalProperties":false},"#,
                r#"{"type":"object","properties":{"action":{"const":"answer"},"text":{"type":"string"}},"#,
                r#""required":["action","text"],"additionalProperties":false}]}"#,
            )
        );
    }

    #[test]
    fn the_instructions_show_each_action() {
        let text = action_instructions(&[run_sql()]);
        assert!(text.contains(r#"{"action":"run_sql","sql":"..."} - Runs a query."#), "{text}");
        assert!(text.contains(r#"{"action":"answer","text":"..."}"#), "{text}");
    }
}
