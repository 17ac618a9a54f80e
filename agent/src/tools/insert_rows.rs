//! `insert_rows`: inserts rows into an existing table. Each call waits for a person.

use async_trait::async_trait;
use serde_json::{Map, Value, json};

use super::arguments::ToolArguments;
use super::{Tool, ToolContext, ToolError, ToolOutput, table_name, writer};
use crate::models::ToolSpec;
use crate::sql_text::{quote_identifier, quoted_table};

pub(super) const NAME: &str = "insert_rows";
const MAX_ROWS: usize = 1_000;

pub(super) struct InsertRows;

#[async_trait]
impl Tool for InsertRows {
    fn name(&self) -> &'static str {
        NAME
    }

    fn aliases(&self) -> &'static [&'static str] {
        &["name"]
    }

    fn spec(&self, _default_rows: usize) -> ToolSpec {
        ToolSpec {
            name: NAME.to_owned(),
            description: "Insert rows into a table. A person is asked first.".to_owned(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "table": {"type": "string", "description": "The table's name."},
                    "rows": {"type": "array", "items": {"type": "object"}, "description": format!("One object a row, by column name; at most {MAX_ROWS}.")},
                    "database": {"type": "string", "description": "The table's database, unless the current one."},
                },
                "required": ["table", "rows"],
            }),
        }
    }

    async fn call(&self, context: &ToolContext, arguments: &Map<String, Value>) -> Result<ToolOutput, ToolError> {
        let mut arguments = ToolArguments::new(arguments);
        let table = arguments.required("table", &["name"]);
        let rows = arguments.objects("rows");
        let database = arguments.optional("database");
        arguments.finish(NAME)?;
        if rows.len() > MAX_ROWS {
            let message = format!("{} rows at once; at most {MAX_ROWS} are taken", rows.len());
            return Err(ToolError::new("invalid_arguments", message).with_hint("insert them in several calls"));
        }
        let writer = writer(context)?;
        let name = table_name(writer, database, &table)?;
        let statement = insert_statement(&quoted_table(&name), &rows)?;
        writer.sql(&statement).await?.collect().await?;
        Ok(ToolOutput::new(
            json!({ "table": name.to_string(), "row_count": rows.len() }),
            format!("inserted {} rows into `{name}`", rows.len()),
        ))
    }
}

/// Returns one statement for all rows; a column that a row lacks is null.
fn insert_statement(table: &str, rows: &[Value]) -> Result<String, ToolError> {
    let no_objects = || ToolError::new("invalid_arguments", "`rows` must be a list of objects, one a row, not empty");
    let rows: Vec<&Map<String, Value>> =
        rows.iter().map(Value::as_object).collect::<Option<_>>().ok_or_else(no_objects)?;
    let mut columns: Vec<&String> = Vec::new();
    for column in rows.iter().flat_map(|row| row.keys()) {
        if !columns.contains(&column) {
            columns.push(column);
        }
    }
    if columns.is_empty() {
        return Err(no_objects());
    }
    let names: Vec<String> = columns.iter().map(|column| quote_identifier(column)).collect();
    let tuples: Vec<String> = rows
        .iter()
        .map(|row| {
            let values: Vec<String> = columns.iter().map(|column| literal(row.get(*column))).collect();
            format!("({})", values.join(", "))
        })
        .collect();
    Ok(format!("INSERT INTO {table} ({}) VALUES {}", names.join(", "), tuples.join(", ")))
}

fn literal(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => "NULL".to_owned(),
        Some(Value::Bool(value)) => value.to_string(),
        Some(Value::Number(number)) => number.to_string(),
        Some(Value::String(text)) => quoted_text(text),
        Some(nested @ (Value::Array(_) | Value::Object(_))) => quoted_text(&nested.to_string()),
    }
}

fn quoted_text(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_quoted_and_missing_ones_are_null() {
        let rows = [json!({"a": 1, "b": "it's"}), json!({"a": null, "Ünï": true})];
        let statement = insert_statement("t", &rows).unwrap();
        assert_eq!(statement, "INSERT INTO t (a, b, \"Ünï\") VALUES (1, 'it''s', NULL), (NULL, NULL, true)");
        assert!(insert_statement("t", &[json!([1])]).is_err());
        assert!(insert_statement("t", &[json!({})]).is_err());
    }
}
