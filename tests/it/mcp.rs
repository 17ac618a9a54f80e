//! The Model Context Protocol: the official client over HTTP and over standard input and output, and what the routes
//! refuse.

mod apps;
mod more;
mod sequences;

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use arrow::datatypes::{DataType, Field, Schema};
use querent_catalog::{IfExists, NewTable, NoProgress, TableName};
use querent_flight::config::{RoleName, Settings, TokenSettings};
use querent_tests::{HttpReply, Python, TestServer, TestSettings, querent_binary, wait_until};
use serde_json::{Map, Value, json};

#[tokio::test]
async fn the_official_client_over_http() {
    let server = TestServer::start(TestSettings::default().change(|settings| {
        settings.auth.tokens = vec![token("reader-tok", None), token("sales-tok", Some("sales"))];
        settings.query.max_concurrent = 1;
    }))
    .await;
    seed(&server).await;
    client_is_content(&["http", &server.url(""), "reader-tok", "sales-tok"], &[]).await;
}

#[tokio::test]
async fn the_official_client_over_standard_input_to_a_server() {
    let server = TestServer::start(TestSettings::default().change(|settings| {
        settings.auth.tokens = vec![token("reader-tok", None)];
        settings.query.max_concurrent = 1;
    }))
    .await;
    seed(&server).await;
    let binary = querent_binary().to_str().unwrap();
    let arguments = ["stdio", binary, "mcp", "--server", &server.url("")];
    client_is_content(&arguments, &[("QUERENT_TOKEN", "reader-tok")]).await;
}

#[tokio::test]
async fn the_official_client_over_standard_input_to_a_data_folder() {
    let server = TestServer::start(TestSettings::default()).await;
    seed(&server).await;
    let data = server.stop().await;
    let binary = querent_binary().to_str().unwrap();
    let arguments = ["stdio", binary, "mcp", "--data", data.path().to_str().unwrap()];
    let settings = [("QUERENT_EMBED_PROVIDER", "none"), ("QUERENT_MAX_CONCURRENT_QUERIES", "1")];
    client_is_content(&arguments, &settings).await;
}

#[tokio::test]
async fn bad_messages_are_refused_in_the_protocols_words() {
    let server = TestServer::start(TestSettings::default().change(|settings| {
        settings.http.max_query_bytes.0 = 4_096;
    }))
    .await;
    let long = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping", "params": { "x": "y".repeat(5_000) } }).to_string();
    let cases = [
        ("{not json", 400, -32_700, "bad_request_body"),
        ("[]", 400, -32_600, "invalid_request"),
        ("7", 400, -32_600, "invalid_request"),
        (r#"{"id": 1, "method": "ping"}"#, 400, -32_600, "invalid_request"),
        (r#"{"jsonrpc": "2.0", "id": {}, "method": "ping"}"#, 400, -32_600, "invalid_request"),
        (r#"{"jsonrpc": "2.0", "id": null, "method": "ping"}"#, 400, -32_600, "invalid_request"),
        (r#"{"jsonrpc": "2.0", "id": 1.5, "method": "ping"}"#, 400, -32_600, "invalid_request"),
        (r#"{"jsonrpc": "2.0", "id": 1e30, "method": "ping"}"#, 400, -32_600, "invalid_request"),
        (&long, 413, -32_000, "body_too_large"),
    ];
    for (body, status, rpc_code, code) in cases {
        let reply = send(&server, body, &[]).await;
        let what = format!("{body:.60}: {} {}", reply.status, reply.text);
        assert_eq!(reply.status, status, "{what}");
        let error = &reply.json()["error"];
        assert_eq!((&error["code"], &error["data"]["code"]), (&json!(rpc_code), &json!(code)), "{what}");
        assert_eq!((reply.header("content-type"), &reply.json()["jsonrpc"]), ("application/json", &json!("2.0")));
    }
    for (header, value, status, code) in [
        ("accept", "text/html", 406, "not_acceptable"),
        ("accept", "application/json", 406, "not_acceptable"),
        ("content-type", "text/plain", 415, "unsupported_media_type"),
        ("mcp-session-id", "none-of-ours", 404, "session_not_found"),
        ("mcp-protocol-version", "1999-01-01", 400, "invalid_request"),
        ("origin", "https://evil.example", 403, "forbidden"),
    ] {
        let reply = send(&server, &ping(7), &[(header, value)]).await;
        assert_eq!((reply.status, &reply.json()["error"]["data"]["code"]), (status, &json!(code)), "{}", reply.text);
        assert_eq!(reply.header("x-querent-error-code"), code);
    }
    let unasked = server.get("/mcp", None).await;
    let error = &unasked.json()["error"];
    assert_eq!((unasked.status, &unasked.json()["jsonrpc"]), (405, &json!("2.0")), "{}", unasked.text);
    assert_eq!((&error["code"], &error["data"]["code"]), (&json!(-32_000), &json!("method_not_allowed")));
    assert_eq!(unasked.header("allow"), "POST, DELETE");
}

/// Reference: "Batching" of the revision 2025-03-26; newer ones have none.
#[tokio::test]
async fn a_batch_is_answered_message_by_message_where_the_revision_has_batches() {
    let server = TestServer::start(TestSettings::default()).await;
    let notified = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    let list = json!({ "jsonrpc": "2.0", "id": "b", "method": "tools/list" });
    let unknown = json!({ "jsonrpc": "2.0", "id": 3, "method": "tables/drop" });
    let ping: Value = serde_json::from_str(&ping(1)).unwrap();
    let all = json!([ping, notified, list, { "id": 9 }, unknown]).to_string();
    for headers in [&[][..], &[("mcp-protocol-version", "2025-03-26")][..]] {
        let reply = send(&server, &all, headers).await;
        assert_eq!((reply.status, reply.header("content-type")), (200, "text/event-stream"), "{}", reply.text);
        let lines = reply.text.lines().filter_map(|line| line.strip_prefix("data: "));
        let answers: Vec<Value> = lines.map(|line| serde_json::from_str(line).unwrap()).collect();
        let ids: Vec<&Value> = answers.iter().map(|answer| &answer["id"]).collect();
        assert_eq!(ids, [&json!(1), &json!("b"), &json!(9), &json!(3)], "{}", reply.text);
        assert!(answers[0]["result"].is_object() && answers[1]["result"]["tools"].is_array(), "{}", reply.text);
        let codes = (&answers[2]["error"]["code"], &answers[3]["error"]["code"]);
        assert_eq!(codes, (&json!(-32_600), &json!(-32_601)), "{}", reply.text);
    }
    assert_eq!(send(&server, &json!([notified, notified]).to_string(), &[]).await.status, 202);
    let begin = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {} });
    for (body, headers) in [
        (all.as_str(), &[("mcp-protocol-version", "2025-06-18")][..]),
        (json!([begin]).to_string().as_str(), &[][..]),
        ("[]", &[][..]),
    ] {
        let reply = send(&server, body, headers).await;
        assert_eq!(
            (reply.status, &reply.json()["error"]["code"]),
            (400, &json!(-32_600)),
            "{body:.60}: {}",
            reply.text
        );
    }
}

#[tokio::test]
async fn calls_with_bad_params_are_refused_by_their_method() {
    let server = TestServer::start(TestSettings::default()).await;
    for (method, params, rpc_code) in [
        ("tools/call", json!({ "arguments": {} }), -32_602),
        ("tools/call", json!({ "name": "run_sql", "arguments": [1] }), -32_602),
        ("tools/call", json!({ "name": "nothing" }), -32_602),
        ("resources/read", json!({}), -32_602),
        ("completion/complete", json!({ "ref": {} }), -32_602),
        ("tables/drop", json!({}), -32_601),
        ("initialize", json!({ "protocolVersion": "2025-06-18" }), -32_602),
        ("initialize", json!({}), -32_602),
        (
            "initialize",
            json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "c" } }),
            -32_602,
        ),
        ("tools/list", json!({ "cursor": 1 }), -32_602),
        ("resources/list", json!({ "cursor": {} }), -32_602),
        ("resources/templates/list", json!({ "cursor": [] }), -32_602),
        ("prompts/list", json!({ "cursor": false }), -32_602),
    ] {
        let body = json!({ "jsonrpc": "2.0", "id": "a", "method": method, "params": params });
        let reply = send(&server, &body.to_string(), &[]).await;
        let answer = answer(&reply);
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!("a"), &json!(rpc_code)), "{method}: {answer}");
        assert_eq!(reply.header("mcp-session-id"), "", "{method}");
    }
    for (method, params, words) in [
        ("tools/call", json!({ "arguments": {} }), "missing field `name`"),
        (
            "tools/call",
            json!({ "name": "list_databases", "arguments": { "x": 1 } }),
            "list_databases takes no arguments",
        ),
        ("initialize", json!({ "protocolVersion": "2025-06-18" }), "missing field `capabilities`"),
    ] {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let reply = send(&server, &body.to_string(), &[]).await;
        assert!(reply.text.contains(words), "{}", reply.text);
    }
}

#[tokio::test]
async fn a_misspelt_table_is_the_one_of_its_database_with_nearly_that_name() {
    let server = TestServer::start(TestSettings::default()).await;
    seed(&server).await;
    let call = json!({ "name": "run_sql", "arguments": { "sql": "SELECT count(*) AS n FROM sales.custmers" } });
    let result = called(&server, "tools/call", call).await;
    let content = &result["structuredContent"];
    assert_eq!(content["rows"], json!([{ "n": 2 }]), "{result}");
    assert_eq!(content["repaired"]["changes"][0]["kind"], "table", "{result}");
}

#[tokio::test]
async fn sessions_are_their_owners_and_end() {
    let server = TestServer::start(TestSettings::default().change(|settings| {
        settings.auth.tokens = vec![token("ann-tok", None), token("bob-tok", None)];
        settings.mcp.max_sessions = 2;
    }))
    .await;
    assert_eq!(send(&server, &ping(1), &[]).await.status, 401);
    let ann = begin(&server, "ann-tok").await;
    let with = |session: &str, token: &str| {
        vec![("mcp-session-id", session.to_owned()), ("authorization", format!("Bearer {token}"))]
    };
    assert_eq!(send_owned(&server, &ping(1), &with(&ann, "ann-tok")).await.status, 200);
    assert_eq!(send_owned(&server, &ping(1), &with(&ann, "bob-tok")).await.status, 404);
    let foreign = server.http.delete(server.url("/mcp")).header("mcp-session-id", &ann);
    assert_eq!(server.send(foreign, Some("bob-tok")).await.status, 404);

    let second = begin(&server, "ann-tok").await;
    let third = begin(&server, "ann-tok").await;
    assert_eq!(send_owned(&server, &ping(1), &with(&ann, "ann-tok")).await.status, 404, "the oldest made room");
    assert_eq!(send_owned(&server, &ping(1), &with(&second, "ann-tok")).await.status, 200);

    let end = || server.http.delete(server.url("/mcp")).header("mcp-session-id", &third);
    assert_eq!(server.send(end(), Some("ann-tok")).await.status, 204);
    assert_eq!(server.send(end(), Some("ann-tok")).await.status, 404);
    assert_eq!(server.send(server.http.delete(server.url("/mcp")), Some("ann-tok")).await.status, 400);
}

#[tokio::test]
async fn a_call_ends_by_notification_by_session_and_with_its_client() {
    let server = TestServer::start(TestSettings::default().change(|settings: &mut Settings| {
        settings.query.max_concurrent = 1;
        settings.query.timeout.0 = Duration::from_secs(120);
    }))
    .await;
    let session = begin(&server, "").await;
    let slow = "SELECT count(*) FROM generate_series(1, 1000000) AS a(x), generate_series(1, 1000000) AS b(y)
                WHERE (x * y) % 7 = 3";
    let headers = [("mcp-session-id", session.as_str())];
    for ending in ["notification", "client", "session"] {
        let body = run_sql(5, slow);
        let mut call = Box::pin(send(&server, &body, &headers));
        assert!(tokio::time::timeout(Duration::from_millis(700), &mut call).await.is_err(), "{ending}: it is slow");
        assert_eq!(outcome(&send(&server, &run_sql(6, "SELECT 1"), &[]).await), "too_many_requests");
        match ending {
            "client" => drop(call),
            "notification" => {
                let cancel =
                    json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 5 } });
                assert_eq!(send(&server, &cancel.to_string(), &headers).await.status, 202);
                let reply = call.await;
                assert!(!reply.text.contains("result"), "a cancelled call has no result: {}", reply.text);
            }
            _ => {
                let end = server.http.delete(server.url("/mcp")).header("mcp-session-id", &session);
                assert_eq!(server.send(end, None).await.status, 204);
                call.await;
            }
        }
        is_free_soon(&server, ending).await;
    }
}

async fn is_free_soon(server: &TestServer, ending: &str) {
    let description = format!("the call ended by its {ending} gives its place back");
    let is_let_in = async || outcome(&send(server, &run_sql(9, "SELECT 1"), &[]).await) == "success";
    wait_until(&description, is_let_in).await;
}

/// More tables than a page of any listing holds.
#[tokio::test]
async fn many_tables_are_listed_a_page_at_a_time() {
    const TABLES: usize = 1_234;
    let server = TestServer::start(TestSettings::default()).await;
    let tables = (0..TABLES).map(|number| NewTable {
        name: TableName::new("yard", format!("t{number:04}")),
        schema: Arc::new(Schema::new(vec![Field::new("a|b", DataType::Int64, true)])),
        comment: Some(format!("number {number}\n| of many |")),
        column_comments: BTreeMap::new(),
        external: None,
    });
    server.engine().catalog().tables().register(tables, IfExists::Error, Arc::new(NoProgress)).await.unwrap();
    let (mut uris, mut cursor) = (BTreeSet::new(), Value::Null);
    loop {
        let page = called(&server, "resources/list", json!({ "cursor": cursor })).await;
        let resources = page["resources"].as_array().unwrap();
        assert!(resources.len() <= 100, "{} in a page", resources.len());
        uris.extend(resources.iter().map(|resource| resource["uri"].as_str().unwrap().to_owned()));
        cursor = page["nextCursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    let of_yard = uris.iter().filter(|uri| uri.starts_with("querent://schema/yard/")).count();
    assert_eq!((of_yard, uris.contains("querent://schema/yard")), (TABLES, true));

    let (mut seen, mut next) = (0, Some("querent://schema/yard".to_owned()));
    while let Some(uri) = next {
        let read = called(&server, "resources/read", json!({ "uri": uri })).await;
        let text = read["contents"][0]["text"].as_str().unwrap().to_owned();
        seen += text.matches("\n| t").count() - 1;
        next = text.split_once("more tables: read ").map(|(_, uri)| uri.to_owned());
    }
    assert_eq!(seen, TABLES);

    let read = called(&server, "resources/read", json!({ "uri": "querent://schema/yard/t0007" })).await;
    let text = read["contents"][0]["text"].as_str().unwrap();
    assert!(text.contains("| a\\|b | Int64 | yes |") && text.contains("number 7 | of many |"), "{text}");
    let reference = json!({ "type": "ref/resource", "uri": "querent://schema/{database}/{table}" });
    let params = json!({ "ref": reference, "argument": { "name": "table", "value": "t0" } });
    let completion = called(&server, "completion/complete", params).await["completion"].clone();
    assert_eq!((completion["values"].as_array().unwrap().len(), &completion["hasMore"]), (100, &json!(true)));
}

#[test]
fn configurations_are_printed_for_every_client() {
    let print = |arguments: &[&str]| {
        let mut command = Command::new(querent_binary());
        let output = command.args(["mcp", "--print-config"]).args(arguments).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let cursor: Value = serde_json::from_str(&print(&["cursor", "--data", "/srv/lake"])).unwrap();
    assert_eq!(cursor["mcpServers"]["querent"]["args"], json!(["mcp", "--data", "/srv/lake"]));
    let all = print(&["--server", "http://127.0.0.1:8080"]);
    for said in ["claude mcp add --transport http querent http://127.0.0.1:8080/mcp", "[mcp_servers.querent]", "# Zed"]
    {
        assert!(all.contains(said), "{said}: {all}");
    }
}

fn token(token: &str, database: Option<&str>) -> TokenSettings {
    TokenSettings {
        token: token.to_owned(),
        role: RoleName::Read,
        subject: None,
        databases: database.map(|name| vec![name.to_owned()]),
    }
}

async fn seed(server: &TestServer) {
    server.seed_otel_logs().await;
    server.execute("CREATE DATABASE sales").await;
    server
        .execute(
            "CREATE TABLE sales.orders AS SELECT * FROM (VALUES (1, 10), (2, 10), (3, 20)) AS t(order_id, customer_id)",
        )
        .await;
    server
        .execute("CREATE TABLE sales.customers AS SELECT * FROM (VALUES (10, 'Ann'), (20, 'Bob')) AS t(id, name)")
        .await;
}

async fn client_is_content(arguments: &[&str], settings: &[(&str, &str)]) {
    let mut client = Python::client("mcp_client.py");
    client.args(arguments).envs(settings.iter().copied());
    let output = tokio::task::spawn_blocking(move || client.output().expect("the client starts")).await.unwrap();
    let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    assert!(output.status.success(), "{said}");
}

/// Returns the result of a request that must succeed.
async fn called(server: &TestServer, method: &str, params: Value) -> Value {
    let params: Map<String, Value> =
        params.as_object().unwrap().clone().into_iter().filter(|(_, value)| !value.is_null()).collect();
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let mut answer = answer(&send(server, &body.to_string(), &[]).await);
    assert!(answer["result"].is_object(), "{answer}");
    answer["result"].take()
}

fn ping(id: i64) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "method": "ping" }).to_string()
}

fn run_sql(id: i64, sql: &str) -> String {
    let params = json!({ "name": "run_sql", "arguments": { "sql": sql } });
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }).to_string()
}

fn post(
    client: &reqwest::Client,
    server: &TestServer,
    body: &str,
    headers: &[(&'static str, &str)],
) -> reqwest::RequestBuilder {
    let mut all = vec![("accept", "application/json, text/event-stream"), ("content-type", "application/json")];
    all.retain(|(name, _)| !headers.iter().any(|(other, _)| other == name));
    all.extend(headers.iter().copied());
    let request = client.post(server.url("/mcp")).body(body.to_owned());
    all.into_iter().fold(request, |request, (name, value)| request.header(name, value))
}

async fn send(server: &TestServer, body: &str, headers: &[(&'static str, &str)]) -> HttpReply {
    server.send(post(&server.http, server, body, headers), None).await
}

async fn send_owned(server: &TestServer, body: &str, headers: &[(&'static str, String)]) -> HttpReply {
    let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    send(server, body, &headers).await
}

/// Opens a session and returns its id.
async fn begin(server: &TestServer, token: &str) -> String {
    let params = json!({
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" },
    });
    let body = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params }).to_string();
    let authorization = format!("Bearer {token}");
    let reply = send(server, &body, &[("authorization", &authorization)]).await;
    let answer = answer(&reply);
    assert_eq!(answer["result"]["protocolVersion"], "2025-06-18", "{answer}");
    assert_eq!(answer["result"]["serverInfo"]["name"], "querent");
    let session = reply.header("mcp-session-id").to_owned();
    assert!(!session.is_empty(), "{:?}", reply.headers);
    session
}

/// Returns the one message of a reply, which is JSON or a stream.
fn answer(reply: &HttpReply) -> Value {
    if reply.header("content-type") == "application/json" {
        return reply.json();
    }
    let data: Vec<&str> = reply.text.lines().filter_map(|line| line.strip_prefix("data:")).collect();
    assert_eq!(data.len(), 1, "{} {}", reply.status, reply.text);
    serde_json::from_str(data[0]).unwrap()
}

/// Returns `success`, or the code of a call's error.
fn outcome(reply: &HttpReply) -> String {
    let answer = answer(reply);
    let result = &answer["result"];
    match result["isError"].as_bool() {
        Some(false) => "success".to_owned(),
        _ => result["structuredContent"]["error"]["code"].as_str().unwrap_or_default().to_owned(),
    }
}
