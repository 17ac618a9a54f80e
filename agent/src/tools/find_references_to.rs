//! `find_references_to`: the columns of a name, and the columns that hold a value. It reports what it searched, so that
//! "not found" never claims more than it knows.

use async_trait::async_trait;
use serde_json::{Map, Value, json};

use super::arguments::ToolArguments;
use super::{Tool, ToolContext, ToolError, ToolOutput};
use crate::models::ToolSpec;
use crate::sql_text::quote_identifier;

const NAME: &str = "find_references_to";
const MAX_MATCHES: usize = 200;
/// Columns with values are counted up to this.
const MAX_COUNTED: usize = 10_000;

pub(super) struct FindReferencesTo;

#[async_trait]
impl Tool for FindReferencesTo {
    fn name(&self) -> &'static str {
        NAME
    }

    fn aliases(&self) -> &'static [&'static str] {
        &["column", "name"]
    }

    fn spec(&self, _default_rows: usize) -> ToolSpec {
        ToolSpec {
            name: NAME.to_owned(),
            description: "Find which columns have a name or hold a value.".to_owned(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "value": {"type": "string", "description": "A column's name, or a value as it is stored."},
                    "database": {"type": "string", "description": "Only in this database."},
                },
                "required": ["value"],
            }),
        }
    }

    async fn call(&self, context: &ToolContext, arguments: &Map<String, Value>) -> Result<ToolOutput, ToolError> {
        // A number is also a value.
        let mut given = arguments.clone();
        if let Some(Value::Number(number)) = arguments.get("value") {
            given.insert("value".to_owned(), Value::String(number.to_string()));
        }
        let mut arguments = ToolArguments::new(&given);
        let value = arguments.required("value", &["column", "name"]);
        let database = arguments.optional("database");
        arguments.finish(NAME)?;
        let session = &context.session;
        let (catalog, who) = (session.engine().catalog(), session.principal());
        let columns = catalog.search().columns(who, database.as_deref(), &value, MAX_MATCHES).await?;
        let (values, more_values) =
            catalog.values().find(who, database.as_deref(), std::slice::from_ref(&value), MAX_MATCHES).await?;
        let value_columns = catalog.values().count_columns(who, database.as_deref(), MAX_COUNTED).await?;

        let mut matches: Vec<Value> = Vec::new();
        let mut lines: Vec<String> = Vec::new();
        for hit in &values {
            matches.push(json!({
                "kind": if hit.is_like { "like" } else { "value" }, "database": hit.table.database, "table": hit.table.table, "column": hit.column,
                "value": hit.value,
            }));
            let column = quoted_path(&[&hit.table.database, &hit.table.table, &hit.column]);
            let holds = if hit.is_like { "holds values like it, such as" } else { "holds" };
            lines.push(format!("{column} {holds} '{}'", hit.value.replace('\'', "''")));
        }
        for hit in columns.hits.iter().take(MAX_MATCHES.saturating_sub(values.len())) {
            matches.push(json!({
                "kind": "column", "database": hit.table.database, "table": hit.table.table, "column": hit.column,
                "type": hit.data_type,
            }));
            lines.push(format!(
                "{} is a column ({})",
                quoted_path(&[&hit.table.database, &hit.table.table, &hit.column]),
                hit.data_type
            ));
        }
        let truncated = columns.is_truncated || more_values;
        let searched = format!(
            "searched the names of all columns you may read (spelled {}), and the values of {value_columns} text \
             columns with few values or codes{}",
            columns.spellings.join(", "),
            if truncated { " (truncated: there may be more; name a database)" } else { "" }
        );
        let hint = match matches.is_empty() {
            true => "other columns' values are not indexed: look with run_sql, WHERE column = 'value'",
            false => "values are spelled as stored",
        };
        lines.insert(0, searched);
        lines.push(hint.to_owned());
        Ok(ToolOutput::within(
            json!({
                "value": value,
                "match_count": matches.len(),
                "matches": matches,
                "searched": {
                    "column_names": "all",
                    "spellings": columns.spellings,
                    "value_columns": value_columns,
                },
                "truncated": truncated,
                "hint": hint,
            }),
            &lines.join("\n"),
            context.text_tokens,
        ))
    }
}

fn quoted_path(parts: &[&str]) -> String {
    parts.iter().map(|part| quote_identifier(part)).collect::<Vec<_>>().join(".")
}
