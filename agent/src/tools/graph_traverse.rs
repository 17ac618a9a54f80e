//! `graph_traverse`: what can be reached over a table of edges.

use async_trait::async_trait;
use serde_json::{Map, Value, json};

use super::arguments::ToolArguments;
use super::run_kql::query_output;
use super::{Tool, ToolContext, ToolError, ToolOutput, table_name};
use crate::config::MAX_TOOL_ROWS;
use crate::models::ToolSpec;

pub(super) const NAME: &str = "graph_traverse";
const DEFAULT_HOPS: usize = 5;
const MAX_HOPS: usize = 20;
const DIRECTIONS: [&str; 3] = ["forward", "backward", "both"];

pub(super) struct GraphTraverseTool;

#[async_trait]
impl Tool for GraphTraverseTool {
    fn name(&self) -> &'static str {
        NAME
    }

    fn counts(&self) -> &'static [(&'static str, usize)] {
        &[("max_hops", MAX_HOPS)]
    }

    fn aliases(&self) -> &'static [&'static str] {
        &["table", "from", "to"]
    }

    fn spec(&self, _default_rows: usize) -> ToolSpec {
        ToolSpec {
            name: NAME.to_owned(),
            description: "Find what can be reached over a table of edges: each node once, with the fewest hops to it."
                .to_owned(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "edges_table": {"type": "string", "description": "The table with a row for each edge, or database.table."},
                    "source": {"type": ["string", "number", "array"], "description": "Where to begin: a node's id, or several."},
                    "from_column": {"type": "string", "description": "The column of an edge's source."},
                    "to_column": {"type": "string", "description": "The column of an edge's target."},
                    "max_hops": {"type": "integer", "description": format!("How far to go; {DEFAULT_HOPS} unless given, at most {MAX_HOPS}.")},
                    "direction": {"type": "string", "enum": DIRECTIONS, "description": "forward unless given."},
                    "edge_type": {"type": ["string", "array"], "description": "Only edges whose column `type` is this, or one of these."},
                    "database": {"type": "string", "description": "The table's database, unless it is the current one."},
                },
                "required": ["edges_table", "source", "from_column", "to_column"],
            }),
        }
    }

    async fn call(&self, context: &ToolContext, arguments: &Map<String, Value>) -> Result<ToolOutput, ToolError> {
        let mut arguments = ToolArguments::new(arguments);
        let table = arguments.required("edges_table", &["table"]);
        let sources = arguments.values("source", true);
        let from = arguments.required("from_column", &["from"]);
        let to = arguments.required("to_column", &["to"]);
        let max_hops = arguments.count("max_hops", DEFAULT_HOPS, 1..=MAX_HOPS);
        let direction = arguments.one_of("direction", &DIRECTIONS);
        let edge_types = arguments.values("edge_type", false);
        let database = arguments.optional("database");
        arguments.finish(NAME)?;
        let table = table_name(&context.session, database, &table)?;
        let mut kql = format!(
            "{} | graph-traverse source {} from {} to {} max-hops {max_hops} direction {direction}",
            bracketed(&table.table),
            listed(&sources),
            bracketed(&from),
            bracketed(&to),
        );
        if !edge_types.is_empty() {
            kql.push_str(&format!(" edge-type {}", listed(&edge_types)));
        }
        let mut output = query_output(context, &kql, MAX_TOOL_ROWS, Some(table.database), None).await?;
        // A chart of depths says nothing about the nodes.
        output.chart = None;
        output.json["compiled_kql"] = json!(kql);
        Ok(output)
    }
}

/// Quotes a name for KQL.
fn bracketed(name: &str) -> String {
    format!("['{}']", name.replace('\\', "\\\\").replace('\'', "\\'"))
}

fn listed(values: &[Value]) -> String {
    let values: Vec<String> = values.iter().map(Value::to_string).collect();
    format!("({})", values.join(", "))
}
