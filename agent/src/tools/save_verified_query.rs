//! `save_verified_query`: saves a question with the SQL that answers it, for later questions. Each call waits for a
//! person.

use async_trait::async_trait;
use serde_json::{Map, Value, json};

use super::arguments::ToolArguments;
use super::{Tool, ToolContext, ToolError, ToolOutput, writer};
use crate::models::ToolSpec;

pub(super) const NAME: &str = "save_verified_query";

pub(super) struct SaveVerifiedQuery;

#[async_trait]
impl Tool for SaveVerifiedQuery {
    fn name(&self) -> &'static str {
        NAME
    }

    fn aliases(&self) -> &'static [&'static str] {
        &["query"]
    }

    fn spec(&self, _default_rows: usize) -> ToolSpec {
        ToolSpec {
            name: NAME.to_owned(),
            description: "Keep a question and the SQL that answers it, for later questions. A person is asked first."
                .to_owned(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "question": {"type": "string", "description": "As a user would ask it."},
                    "sql": {"type": "string", "description": "One SELECT statement that ran and answers it."},
                    "database": {"type": "string", "description": "Where bare table names are found, unless in the current database."},
                },
                "required": ["question", "sql"],
            }),
        }
    }

    async fn call(&self, context: &ToolContext, arguments: &Map<String, Value>) -> Result<ToolOutput, ToolError> {
        let mut arguments = ToolArguments::new(arguments);
        let question = arguments.required("question", &[]);
        let sql = arguments.required("sql", &["query"]);
        let database = arguments.optional("database");
        arguments.finish(NAME)?;
        let writer = writer(context)?.clone().in_database(database.as_deref()).await?;
        let saved = writer.verify_query(&question, &sql).await?;
        Ok(ToolOutput::new(json!(saved), format!("kept the query for `{question}`")))
    }
}
