//! Golden answers of the Model Context Protocol: the list of the tools, and calls that succeed, fail and are refused. A
//! run of the agent is not offered here, so that no call pauses or continues.

use querent_tests::{TestServer, TestSettings};
use serde_json::{Value, json};

use super::{answer, called, run_sql, send};
use crate::adk::masked;

#[tokio::test]
async fn the_tools() {
    let server = TestServer::start(TestSettings::default()).await;
    let listed = called(&server, "tools/list", json!({})).await;
    assert_eq!(listed.as_object().unwrap().keys().collect::<Vec<_>>(), ["tools"], "one page: {listed}");
    insta::assert_snapshot!("tools_list", masked(&listed["tools"]));
}

#[tokio::test]
async fn calls() {
    let server = TestServer::start(TestSettings::default()).await;
    let rpc = |name: &str, arguments: Value| {
        let params = json!({ "name": name, "arguments": arguments });
        json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params }).to_string()
    };
    let carriers = "SELECT * FROM (VALUES ('UA', 3), ('B6', 2), ('EV', 1)) AS t(carrier, flights)";
    for (name, body) in [
        ("call", run_sql(7, "SELECT 1 AS one, 'a' AS word, NULL AS nothing")),
        ("empty", run_sql(7, "SELECT 1 AS one WHERE false")),
        ("chart", run_sql(7, carriers)),
        ("failed", run_sql(7, "SELECT * FROM nowhere")),
        ("writing", run_sql(7, "CREATE TABLE kept AS SELECT 1 AS one")),
        ("bad_arguments", rpc("run_sql", json!({ "max_rows": 3 }))),
        ("tool_that_writes", rpc("create_table_as", json!({ "table": "kept", "sql": "SELECT 1 AS one" }))),
        ("unknown_tool", rpc("get_weather", json!({ "city": "Oslo" }))),
    ] {
        let reply = send(&server, &body, &[]).await;
        assert_eq!(reply.status, 200, "{name}: {}", reply.text);
        insta::assert_snapshot!(name, masked(&json!([answer(&reply)])));
    }
}
