//! What is not granted is told at no door: queries, listings, searches, tools, metadata.

use arrow_flight::sql::CommandGetTables;
use arrow_flight::sql::client::FlightSqlServiceClient;
use futures::TryStreamExt;
use querent_tests::script::{run_sql, says, tool_call};
use querent_tests::{TestServer, TestSettings};
use serde_json::json;
use tonic::transport::Endpoint;

/// Parts of what must not be told.
const HIDDEN: [&str; 5] = ["tbl_okapi", "col_gnu", "val_lynx", "hdb_zebra", "col_ibex"];

const SETUP: [&str; 9] = [
    "CREATE DATABASE pub",
    "CREATE DATABASE hdb_zebra",
    "CREATE TABLE pub.plain AS SELECT * FROM (VALUES (1, 'val_seen', 'x'), (2, 'val_lynx', 'y')) AS v(a, word, col_ibex)",
    "CREATE TABLE pub.tbl_okapi AS SELECT 7 AS col_gnu, 'val_lynx' AS word",
    "CREATE TABLE hdb_zebra.inner_table AS SELECT 7 AS col_gnu",
    "CREATE VIEW pub.above AS SELECT col_gnu FROM pub.tbl_okapi",
    "GRANT SELECT (a, word) ON pub.plain TO ROLE reader",
    "REVOKE ALL ON DATABASE hdb_zebra FROM PUBLIC",
    "CREATE ROW POLICY first ON pub.plain USING (a = 1) TO ROLE reader",
];

fn tells_nothing(what: &str, text: &str) {
    for hidden in HIDDEN {
        assert!(!text.contains(hidden), "{what} tells {hidden}: {text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_door_tells_what_is_not_granted() {
    let calls = [
        tool_call("search_schema", json!({ "query": "word plain okapi" })),
        tool_call("explore_schema", json!({})),
        tool_call("describe_table", json!({ "table": "pub.plain" })),
        tool_call("sample_rows", json!({ "table": "pub.plain" })),
        run_sql("SELECT * FROM pub.plain"),
        run_sql("SELECT * FROM pub.tbl_okap"),
    ];
    let turns = json!([{ "events": calls }, says("done")]);
    let script = json!({ "runs": [{ "turns": turns, "repeat_last": true }] });
    let server = TestServer::start(TestSettings::default().tokens("boss-tok:admin:boss").script(script)).await;
    for statement in SETUP {
        server.execute(statement).await;
    }
    server.engine().wait_for_profiles(std::time::Duration::from_secs(20)).await;
    server.engine().catalog().search().text_idle().await;
    let body = json!({ "name": "anna", "role": "read", "roles": ["reader"] });
    let token = server.post("/v1/tokens", &body, Some("boss-tok")).await.json()["token"].as_str().unwrap().to_owned();
    let sent = token.as_str();
    let token = Some(sent);

    for path in [
        "/v1/catalog/schema",
        "/v1/catalog/schema?database=pub",
        "/v1/catalog/search?q=okapi",
        "/v1/catalog/search?q=word",
        "/v1/catalog/search?q=val_lyn",
        "/v1/catalog/search?q=gnu",
        "/v1/catalog/search?q=ibex",
        "/v1/catalog/relationships",
        "/v1/catalog/verified-queries",
    ] {
        let reply = server.get(path, token).await;
        assert_eq!(reply.status, 200, "{path}: {}", reply.text);
        tells_nothing(path, &reply.text);
    }
    let found = server.get("/v1/catalog/search?q=word&limit=1", token).await.text;
    assert!(found.contains("plain"), "what is hidden takes no place: {found}");
    for sql in [
        "SELECT * FROM pub.plain",
        "SELECT * FROM pub.okapi",
        "SELECT * FROM pub.above",
        "SELECT ibex FROM pub.plain",
        "SELECT * FROM information_schema.columns",
        "SELECT * FROM information_schema.views",
        "SELECT * FROM information_schema.tables",
        "SELECT * FROM information_schema.key_column_usage",
        "SELECT * FROM system.columns",
        "SHOW ALL TABLES",
        "SHOW CREATE TABLE pub.plain",
        "SUMMARIZE pub.plain",
        "SELECT a FROM pub.plain WHERE CAST(word AS INT) > 1",
    ] {
        let reply = server.post("/v1/query", &json!({ "sql": sql }), token).await;
        tells_nothing(sql, &reply.text);
    }
    for csl in [
        "database('pub').plain",
        "union database('pub').*",
        "search 'val_lynx'",
        "database('pub').plain | getschema",
        "database('pub').okapi",
        ".show tables",
        ".show database pub schema",
    ] {
        let body = json!({ "db": "pub", "csl": csl });
        let path = if csl.starts_with('.') { "/v1/rest/mgmt" } else { "/v2/rest/query" };
        tells_nothing(csl, &server.post(path, &body, token).await.text);
    }
    let asked = server.post("/v1/agent/ask", &json!({ "question": "word of plain?", "database": "pub" }), token).await;
    tells_nothing("ask", &asked.text);
    assert!(asked.text.contains("val_seen"), "{}", asked.text);
    tells_nothing("the model's prompt", &format!("{:?}", server.model.requests()));
    for (method, params) in [
        ("tools/call", json!({ "name": "explore_schema", "arguments": {} })),
        ("tools/call", json!({ "name": "describe_table", "arguments": { "table": "pub.plain" } })),
        ("resources/list", json!({})),
    ] {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let request = server.http.post(server.url("/mcp")).json(&body);
        let reply = server.send(request.header("accept", "application/json, text/event-stream"), token).await;
        tells_nothing(&format!("mcp {method} {params}"), &reply.text);
    }
    tells_nothing("flight", &flight_tables(&server, sent).await);
    // An administrator finds all of it.
    let all = server.get("/v1/catalog/schema", Some("boss-tok")).await.text;
    assert!(HIDDEN.iter().filter(|hidden| **hidden != "val_lynx").all(|hidden| all.contains(hidden)), "{all}");
}

async fn flight_tables(server: &TestServer, token: &str) -> String {
    let channel = Endpoint::from_shared(server.url("")).unwrap().connect().await.unwrap();
    let mut client = FlightSqlServiceClient::new(channel);
    client.set_token(token.to_owned());
    let info =
        client.get_tables(CommandGetTables { include_schema: true, ..CommandGetTables::default() }).await.unwrap();
    let ticket = info.endpoint.into_iter().next().unwrap().ticket.unwrap();
    let batches: Vec<_> = client.do_get(ticket).await.unwrap().try_collect().await.unwrap();
    let mut text = String::new();
    for batch in &batches {
        text.push_str(&arrow::util::pretty::pretty_format_batches(std::slice::from_ref(batch)).unwrap().to_string());
        let schemas = batch.column_by_name("table_schema").unwrap();
        text.push_str(&String::from_utf8_lossy(
            &schemas.to_data().buffers().iter().flat_map(|b| b.as_slice().to_vec()).collect::<Vec<u8>>(),
        ));
    }
    text
}
