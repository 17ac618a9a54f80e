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

#[tokio::test]
async fn tools_with_rows_name_the_viewer() {
    let server = serve().await;
    let listed = called(&server, "tools/list", json!({})).await;
    for tool in listed["tools"].as_array().unwrap() {
        let name = tool["name"].as_str().unwrap();
        let shown = ["run_sql", "run_kql", "sample_rows", "ask"].contains(&name);
        let named = if shown { json!({ "ui": { "resourceUri": URI } }) } else { Value::Null };
        assert_eq!(tool["_meta"], named, "{name}");
    }
    let extensions = json!({ "io.modelcontextprotocol/ui": { "mimeTypes": [MIME_TYPE] } });
    let params = json!({
        "protocolVersion": "2025-06-18",
        "capabilities": { "extensions": extensions },
        "clientInfo": { "name": "test", "version": "1" },
    });
    let body = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params }).to_string();
    let begun = answer(&send(&server, &body, &[]).await);
    assert_eq!(begun["result"]["capabilities"]["extensions"], extensions, "{begun}");
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
