//! The viewer of results for hosts that show MCP Apps (SEP-1865): a resource that the tools with rows, and `ask`, name.
//! Clients that do not announce that they show it are not told of it.

use std::collections::BTreeMap;

use rmcp::RoleServer;
use rmcp::model::{ExtensionCapabilities, MetaObject, ReadResourceResult, ResourceContents};
use rmcp::service::RequestContext;
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

/// Whether the client of a request has said that it shows the viewer: in the request itself, or when its connection began.
pub(super) fn is_announced(context: &RequestContext<RoleServer>) -> bool {
    let at_begin = || context.peer.peer_info().map(|client| client.capabilities.clone());
    let capabilities = context.meta.client_capabilities().or_else(at_begin);
    let extensions = capabilities.and_then(|capabilities| capabilities.extensions).unwrap_or_default();
    extensions.get(EXTENSION).is_some_and(takes_viewer)
}

/// Whether the params of an `initialize` say that the client shows the viewer.
pub(super) fn is_announced_by(initialize: &Value) -> bool {
    initialize["capabilities"]["extensions"][EXTENSION].as_object().is_some_and(takes_viewer)
}

/// Whether a client with these settings of the extension shows documents of the viewer's type.
fn takes_viewer(settings: &Map<String, Value>) -> bool {
    match settings.get("mimeTypes") {
        Some(Value::Array(types)) => types.iter().any(|kind| kind == MIME_TYPE),
        _ => true,
    }
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
