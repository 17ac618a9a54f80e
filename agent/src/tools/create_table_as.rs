//! `create_table_as`: creates a table from the rows of a query. Each call waits for a person.

use async_trait::async_trait;
use serde_json::{Map, Value, json};

use super::arguments::ToolArguments;
use super::{Tool, ToolContext, ToolError, ToolOutput, rows_written, table_name, writer};
use crate::models::ToolSpec;
use crate::sql_text::quoted_table;

pub(super) const NAME: &str = "create_table_as";

pub(super) struct CreateTableAs;

#[async_trait]
impl Tool for CreateTableAs {
    fn name(&self) -> &'static str {
        NAME
    }

    fn aliases(&self) -> &'static [&'static str] {
        &["name", "query"]
    }

    fn spec(&self, _default_rows: usize) -> ToolSpec {
        ToolSpec {
            name: NAME.to_owned(),
            description: "Create a new table from the rows of a query. A person is asked first.".to_owned(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "table": {"type": "string", "description": "The new table's name."},
                    "sql": {"type": "string", "description": "One SELECT statement."},
                    "database": {"type": "string", "description": "The new table's database, unless the current one."},
                },
                "required": ["table", "sql"],
            }),
        }
    }

    async fn call(&self, context: &ToolContext, arguments: &Map<String, Value>) -> Result<ToolOutput, ToolError> {
        let mut arguments = ToolArguments::new(arguments);
        let table = arguments.required("table", &["name"]);
        let sql = arguments.required("sql", &["query"]);
        let database = arguments.optional("database");
        arguments.finish(NAME)?;
        let writer = writer(context)?;
        let name = table_name(writer, database, &table)?;
        // Anything but a query is refused before it becomes part of a statement that writes.
        drop(context.session.sql(&sql).await?);
        let sql = sql.trim().trim_end_matches(';');
        writer.sql(&format!("CREATE TABLE {} AS {sql}", quoted_table(&name))).await?.collect().await?;
        let count = rows_written(writer, &name).await?;
        Ok(ToolOutput::new(
            json!({ "table": name.to_string(), "row_count": count }),
            format!("created `{name}` with {count} rows"),
        ))
    }
}
