//! `sample_rows`: a uniform random sample of a table's rows.

use async_trait::async_trait;
use serde_json::{Map, Value, json};

use super::arguments::ToolArguments;
use super::result_rows::ToolRows;
use super::{Tool, ToolContext, ToolError, ToolOutput, table_name};
use crate::config::MAX_TOOL_ROWS;
use crate::models::ToolSpec;

const NAME: &str = "sample_rows";
const DEFAULT_ROWS: usize = 5;

pub(super) struct SampleRows;

#[async_trait]
impl Tool for SampleRows {
    fn name(&self) -> &'static str {
        NAME
    }

    fn counts(&self) -> &'static [(&'static str, usize)] {
        &[("n", MAX_TOOL_ROWS)]
    }

    fn aliases(&self) -> &'static [&'static str] {
        &["table_name"]
    }

    fn spec(&self, _default_rows: usize) -> ToolSpec {
        ToolSpec {
            name: NAME.to_owned(),
            description: "Show random rows of a table.".to_owned(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "table": {"type": "string", "description": "The table, or database.table."},
                    "n": {"type": "integer", "description": format!("How many rows; {DEFAULT_ROWS} unless given, at most {MAX_TOOL_ROWS}.")},
                    "database": {"type": "string", "description": "The table's database, unless it is the current one."},
                },
                "required": ["table"],
            }),
        }
    }

    async fn call(&self, context: &ToolContext, arguments: &Map<String, Value>) -> Result<ToolOutput, ToolError> {
        let mut arguments = ToolArguments::new(arguments);
        let table = arguments.required("table", &["table_name"]);
        let n = arguments.count("n", DEFAULT_ROWS, 1..=MAX_TOOL_ROWS);
        let database = arguments.optional("database");
        arguments.finish(NAME)?;
        let name = table_name(&context.session, database, &table)?;
        let rows = ToolRows::read_and_keep(context.session.sample(&name, n).await?, n, context).await?;
        Ok(rows.to_output(context.text_tokens))
    }
}
