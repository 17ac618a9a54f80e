//! JSON schemas as clients of this protocol read them: of arguments, in the plainest form, and of results.

use std::sync::Arc;

use serde_json::{Map, Value, json};

/// Returns a schema without lists of types, which some clients cannot read: each becomes a choice of schemas.
pub(super) fn without_lists_of_types(schema: &Value) -> Value {
    match schema {
        Value::Array(entries) => entries.iter().map(without_lists_of_types).collect(),
        Value::Object(fields) => {
            let mut plain: Map<String, Value> =
                fields.iter().map(|(name, value)| (name.clone(), without_lists_of_types(value))).collect();
            if let Some(Value::Array(types)) = fields.get("type")
                && types.iter().all(Value::is_string)
            {
                plain.shift_remove("type");
                let choice = |kind: &Value| match kind.as_str() {
                    Some("array") => json!({ "type": kind, "items": {} }),
                    _ => json!({ "type": kind }),
                };
                plain.insert("anyOf".to_owned(), types.iter().map(choice).collect());
            }
            Value::Object(plain)
        }
        other => other.clone(),
    }
}

/// Returns the schema of a tool's structured result; of a call that failed it has `error`.
pub(super) fn output_of(tool: &str) -> Arc<Map<String, Value>> {
    let error = json!({
        "type": "object",
        "properties": {
            "code": { "type": "string" },
            "message": { "type": "string" },
            "hint": { "type": "string" },
        },
    });
    let mut properties = match tool {
        "run_sql" | "run_kql" | "sample_rows" => json!({
            "columns": { "type": "array", "items": {}, "description": "The columns, in order." },
            "rows": { "type": "array", "items": {}, "description": "The rows, in order." },
            "row_count": { "type": "integer", "description": "The number of rows here." },
            "truncated": { "type": "boolean", "description": "Whether the query has more rows." },
            "ticket": { "type": "string", "description": "Names all rows, for Arrow Flight." },
            "vegaSpec": { "type": "object", "description": "A chart of the rows, without them." },
        }),
        "ask" => json!({
            "answer": { "type": "string" },
            "run_id": { "type": "string" },
            "sql": { "anyOf": [{ "type": "string" }, { "type": "null" }] },
            "kql": { "anyOf": [{ "type": "string" }, { "type": "null" }] },
            "ticket": { "type": "string" },
            "assessment": {
                "type": "object",
                "description": "How far the answer is to be trusted, what is missing, and the readings to choose from.",
            },
        }),
        _ => json!({}),
    };
    properties["error"] = error;
    let schema = json!({ "type": "object", "properties": properties });
    Arc::new(schema.as_object().cloned().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_types_becomes_a_choice() {
        let schema =
            json!({ "type": "object", "properties": { "a": { "type": ["string", "array"], "description": "x" } } });
        let plain = without_lists_of_types(&schema);
        assert_eq!(
            plain["properties"]["a"],
            json!({ "description": "x", "anyOf": [{ "type": "string" }, { "type": "array", "items": {} }] })
        );
        assert_eq!(plain["type"], "object");
    }
}
