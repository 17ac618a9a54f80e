//! `list_databases`: the databases the caller may see.

use async_trait::async_trait;
use querent_catalog::PageRequest;
use serde_json::{Map, Value, json};

use super::{Tool, ToolContext, ToolError, ToolOutput};
use crate::models::ToolSpec;

/// Databases listed at most; a query over `system.databases` can filter the others.
const MAX_DATABASES: usize = 200;

const NAME: &str = "list_databases";

pub(super) struct ListDatabases;

#[async_trait]
impl Tool for ListDatabases {
    fn name(&self) -> &'static str {
        NAME
    }

    fn spec(&self, _default_rows: usize) -> ToolSpec {
        ToolSpec {
            name: NAME.to_owned(),
            description: "List the databases.".to_owned(),
            parameters: json!({ "type": "object", "properties": {} }),
        }
    }

    async fn call(&self, context: &ToolContext, _arguments: &Map<String, Value>) -> Result<ToolOutput, ToolError> {
        let session = &context.session;
        let page = session
            .engine()
            .catalog()
            .databases()
            .list(session.principal(), None, PageRequest::first(MAX_DATABASES))
            .await?;
        let names: Vec<&str> = page.items.iter().map(|database| database.name.as_str()).collect();
        let truncated = page.next.is_some();
        let mut text = names.join("\n");
        if truncated {
            text.insert_str(0, "(truncated: filter with SELECT * FROM system.databases WHERE ...)\n");
        }
        let json = json!({ "databases": names, "truncated": truncated });
        Ok(ToolOutput::within(json, &text, context.text_tokens))
    }
}
