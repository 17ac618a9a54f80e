//! The viewer of results for hosts that show MCP Apps: who names it, what is sent of it, and how it works in a browser.
//! Reference: SEP-1865, `specification/2026-01-26/apps.mdx` of `modelcontextprotocol/ext-apps`.

use querent_tests::script::run_sql;
use querent_tests::{NodeJs, TestServer, TestSettings, run_client};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{answer, called, send};

const URI: &str = "ui://querent/result";
const MIME_TYPE: &str = "text/html;profile=mcp-app";

async fn serve() -> TestServer {
    let turns = json!([{ "events": [run_sql("SELECT 42 AS n")] }, { "events": [{ "text": "It is 42." }] }]);
    TestServer::start(TestSettings::default().script(json!({ "runs": [{ "turns": turns }] }))).await
}

/// To clients that announced that they show it: in the request, or as its session began.
#[tokio::test]
async fn tools_with_rows_name_the_viewer() {
    let server = serve().await;
    let announced = |kind: &str| json!({ "extensions": { "io.modelcontextprotocol/ui": { "mimeTypes": [kind] } } });
    let of_request = |capabilities: Value| json!({ "io.modelcontextprotocol/clientCapabilities": capabilities });
    for (capabilities, is_told) in [
        (announced(MIME_TYPE), true),
        (json!({ "extensions": { "io.modelcontextprotocol/ui": {} } }), true),
        (announced("text/html"), false),
        (json!({ "extensions": { "example.org/ui": {} } }), false),
        (json!({}), false),
    ] {
        let listed = called(&server, "tools/list", json!({ "_meta": of_request(capabilities.clone()) })).await;
        check_tools(&listed, is_told, &capabilities);

        let (begun, session) = begun_with(&server, &capabilities).await;
        let extensions = &begun["result"]["capabilities"]["extensions"];
        assert_eq!(*extensions, announced(MIME_TYPE)["extensions"], "the server's own: {begun}");
        let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }).to_string();
        let listed = answer(&send(&server, &list, &[("mcp-session-id", &session)]).await);
        check_tools(&listed["result"], is_told, &capabilities);
    }
    let listed = called(&server, "tools/list", json!({})).await;
    check_tools(&listed, false, &Value::Null);
}

fn check_tools(listed: &Value, is_told: bool, capabilities: &Value) {
    for tool in listed["tools"].as_array().unwrap() {
        let name = tool["name"].as_str().unwrap();
        let has_rows = ["run_sql", "run_kql", "sample_rows", "ask"].contains(&name);
        let named = if is_told && has_rows { json!({ "ui": { "resourceUri": URI } }) } else { Value::Null };
        assert_eq!(tool["_meta"], named, "{name}, {capabilities}");
    }
}

/// Begins a session; returns the answer, and the session's name.
async fn begun_with(server: &TestServer, capabilities: &Value) -> (Value, String) {
    let params = json!({
        "protocolVersion": "2025-06-18",
        "capabilities": capabilities,
        "clientInfo": { "name": "test", "version": "1" },
    });
    let body = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params }).to_string();
    let reply = send(server, &body, &[]).await;
    let session = reply.header("mcp-session-id").to_owned();
    (answer(&reply), session)
}

#[tokio::test]
async fn the_viewer_is_one_document_that_asks_nothing_of_others() {
    let server = serve().await;
    let read = called(&server, "resources/read", json!({ "uri": URI })).await;
    let contents = read["contents"].as_array().unwrap();
    assert_eq!(contents.len(), 1);
    assert_eq!((&contents[0]["uri"], &contents[0]["mimeType"]), (&json!(URI), &json!(MIME_TYPE)));
    // Without `csp` a host allows no other place.
    assert_eq!(contents[0]["_meta"], json!({ "ui": { "prefersBorder": true } }));
    let html = contents[0]["text"].as_str().unwrap();
    assert!(html.starts_with("<!doctype html>"), "{html:.80}");
    for foreign in
        ["https://", "<link", "<img", "<iframe", "import(", "fetch(", "@import", "url(", "innerHTML", "eval("]
    {
        assert!(!html.contains(foreign), "{foreign}");
    }
    let namespace = "http://www.w3.org/2000/svg";
    assert_eq!(html.matches("http://").count(), html.matches(namespace).count(), "only the name of SVG");
    assert!(html.len() < 64 << 10, "{} bytes", html.len());

    let unknown =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": { "uri": "ui://querent/x" } });
    let refused = answer(&send(&server, &unknown.to_string(), &[]).await);
    assert!(refused["error"]["code"].is_i64(), "{refused}");
    // It is for hosts; people and models are shown schemas.
    let listed = called(&server, "resources/list", json!({})).await.to_string();
    assert!(!listed.contains("ui://"), "{listed}");
}

#[tokio::test]
#[cfg_attr(not(has_browser), ignore = "needs Chromium, and `playwright-core` beside the client libraries for Node")]
async fn a_host_shows_results_in_a_browser() {
    let server = serve().await;
    let pictures = TempDir::new().unwrap();
    let mut node = NodeJs::client("mcp_app.mjs");
    node.args([server.url("/"), pictures.path().to_string_lossy().into_owned()]);
    let [printed, _] = run_client(node).await;
    assert!(printed.ends_with("ok\n"), "{printed}");
}
