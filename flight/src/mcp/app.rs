//! The viewer of results for hosts that show MCP Apps (SEP-1865): a resource that the tools with rows, and `ask`, name.
//! Clients that show none ignore it.

use std::collections::BTreeMap;

use rmcp::model::{ExtensionCapabilities, MetaObject, ReadResourceResult, ResourceContents};
use serde_json::{Map, Value, json};

use super::prompts::ASK;

/// The extension's name among the capabilities.
const EXTENSION: &str = "io.modelcontextprotocol/ui";
const URI: &str = "ui://querent/result";
const MIME_TYPE: &str = "text/html;profile=mcp-app";
/// The whole viewer, which asks nothing of any other place.
const HTML: &str = include_str!("../../assets/result_app.html");
/// The tools whose results it shows.
const TOOLS: [&str; 4] = ["run_sql", "run_kql", "sample_rows", ASK];

/// Returns the extension among the server's capabilities.
pub(super) fn extension() -> ExtensionCapabilities {
    BTreeMap::from([(EXTENSION.to_owned(), object(json!({ "mimeTypes": [MIME_TYPE] })))])
}

/// Returns what a tool's metadata say of the viewer; `None` for tools whose results it does not show.
pub(super) fn meta_of_tool(tool: &str) -> Option<MetaObject> {
    TOOLS.contains(&tool).then(|| MetaObject(object(json!({ "ui": { "resourceUri": URI } }))))
}

/// Reads the viewer; `None` where the address is another one. It declares no other place, so that hosts allow it none.
pub(super) fn read(uri: &str) -> Option<ReadResourceResult> {
    if uri != URI {
        return None;
    }
    let meta = MetaObject(object(json!({ "ui": { "prefersBorder": true } })));
    Some(ReadResourceResult::new(vec![ResourceContents::text(HTML, URI).with_mime_type(MIME_TYPE).with_meta(meta)]))
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}
