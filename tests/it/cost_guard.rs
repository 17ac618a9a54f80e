//! The guard against costly statements: judged by what is known of the files before they are read, by the role of the caller.

use arrow_flight::sql::client::FlightSqlServiceClient;
use futures::TryStreamExt;
use querent_tests::{HttpReply, TestServer, TestSettings};
use serde_json::json;
use tonic::transport::Endpoint;

const TOKENS: &str = "boss-tok:admin:boss,read-tok:read:rita,write-tok:write:walt";

/// Readers may read 1,500 rows, writers 3,000. `big` has two files of 1,000 rows, by `id`.
async fn start() -> TestServer {
    let server = TestServer::start(TestSettings::default().tokens(TOKENS).change(|settings| {
        settings.query.max_scan_rows = vec!["read=1500".to_owned(), "write=3000".to_owned()];
    }))
    .await;
    server.execute("CREATE TABLE big AS SELECT value AS id, value % 7 AS kind FROM generate_series(1, 1000)").await;
    server.execute("INSERT INTO big SELECT value, value % 7 FROM generate_series(1001, 2000)").await;
    server.execute("CREATE TABLE small AS SELECT value AS id FROM generate_series(1, 400)").await;
    server
}

async fn query(server: &TestServer, sql: &str, token: &str) -> HttpReply {
    server.post("/v1/query", &json!({ "sql": sql }), Some(token)).await
}

/// Whether a reader may run a statement.
async fn is_let_through(server: &TestServer, sql: &str) -> bool {
    let reply = query(server, sql, "read-tok").await;
    if reply.status == 200 {
        return true;
    }
    assert_eq!(
        (reply.status, &reply.json()["error"]["code"]),
        (400, &json!("scan_too_large")),
        "{sql}: {}",
        reply.text
    );
    false
}

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_that_would_read_too_much_is_not_begun() {
    let server = start().await;
    let refused = query(&server, "SELECT kind, count(*) FROM big GROUP BY kind", "read-tok").await;
    let error = &refused.json()["error"];
    assert_eq!((refused.status, &error["code"]), (400, &json!("scan_too_large")), "{}", refused.text);
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("about 2000 rows, 2000 of them from `default.big`"), "{message}");
    assert!(message.contains("1500 rows are the most for role read"), "{message}");
    assert!(error["hint"].as_str().unwrap().contains("LIMIT"), "{}", refused.text);
    for (sql, let_through) in [
        ("SELECT sum(kind) FROM big WHERE id <= 500", true),
        ("SELECT sum(kind) FROM big WHERE id > 900", false),
        ("SELECT * FROM big LIMIT 10", true),
        ("SELECT * FROM big ORDER BY kind LIMIT 10", false),
        ("SELECT count(*) FROM big", true),
        ("EXPLAIN SELECT sum(kind) FROM big", true),
        ("EXPLAIN ANALYZE SELECT sum(kind) FROM big", false),
        ("SELECT sum(id) FROM small", true),
        ("SELECT sum(a.id) FROM small a JOIN small b ON a.id = b.id", true),
        ("SELECT count(*) FROM small a JOIN (SELECT * FROM big WHERE id > 1000) b ON a.id = b.kind", true),
        (
            "SELECT count(*) FROM small a JOIN small b ON a.id = b.id JOIN (SELECT * FROM big WHERE id > 1000) c \
          ON a.id = c.kind",
            false,
        ),
        ("SELECT (SELECT sum(kind) FROM big) FROM small", false),
        ("SELECT count(*) FROM generate_series(1, 100000)", true),
        ("SELECT count(*) FROM information_schema.tables", true),
    ] {
        assert_eq!(is_let_through(&server, sql).await, let_through, "{sql}");
    }
    // Each role has its own limit, and administrators none.
    assert_eq!(query(&server, "SELECT sum(kind) FROM big", "write-tok").await.status, 200);
    let twice = "SELECT sum(a.kind) FROM big a JOIN big b ON a.id = b.id";
    assert_eq!(query(&server, twice, "write-tok").await.status, 400);
    assert_eq!(query(&server, twice, "boss-tok").await.status, 200);
    let copied =
        query(&server, "CREATE TABLE copied AS SELECT a.* FROM big a JOIN big b ON a.id = b.id", "write-tok").await;
    assert_eq!(copied.json()["error"]["code"], "scan_too_large", "{}", copied.text);
    assert_eq!(query(&server, "SELECT * FROM copied", "write-tok").await.json()["error"]["code"], "table_not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_guard_holds_at_every_door() {
    let server = start().await;
    let request = server.http.post(server.url("/v1/query")).header("content-type", "application/x-kql");
    let kql = server.send(request.body("big | summarize sum(kind)"), Some("read-tok")).await;
    assert_eq!(kql.json()["error"]["code"], "scan_too_large", "{}", kql.text);
    let body = json!({ "db": "default", "csl": "big | summarize sum(kind)" });
    let kusto = server.post("/v2/rest/query", &body, Some("read-tok")).await.text;
    assert!(kusto.contains("scan_too_large") || kusto.contains("2000 rows"), "{kusto}");
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": "run_sql", "arguments": { "sql": "SELECT sum(kind) FROM big" } } });
    let request =
        server.http.post(server.url("/mcp")).json(&call).header("accept", "application/json, text/event-stream");
    let tool = server.send(request, Some("read-tok")).await.text;
    assert!(tool.contains("scan_too_large"), "{tool}");

    let channel = Endpoint::from_shared(server.url("")).unwrap().connect().await.unwrap();
    let mut client = FlightSqlServiceClient::new(channel);
    client.set_token("read-tok".to_owned());
    let rows = async |client: &mut FlightSqlServiceClient<_>, sql: &str| {
        let info = client.execute(sql.to_owned(), None).await.map_err(|error| error.to_string())?;
        let stream =
            client.do_get(info.endpoint[0].ticket.clone().unwrap()).await.map_err(|error| error.to_string())?;
        let batches: Vec<_> = stream.try_collect().await.map_err(|error| error.to_string())?;
        Ok::<_, String>(batches.iter().map(arrow::array::RecordBatch::num_rows).sum::<usize>())
    };
    let refused = rows(&mut client, "SELECT * FROM big").await.unwrap_err();
    assert!(refused.contains("2000 rows"), "{refused}");
    assert_eq!(rows(&mut client, "SELECT * FROM big WHERE id <= 500").await.unwrap(), 500);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_guard_tells_nothing_of_rows_that_a_policy_hides() {
    let server = start().await;
    server.execute("CREATE ROW POLICY few ON big USING (kind = 3) TO PUBLIC").await;
    let all = query(&server, "SELECT * FROM big", "read-tok").await;
    let one = query(&server, "SELECT * FROM big WHERE id = 1", "read-tok").await;
    for reply in [&all, &one] {
        assert_eq!(reply.json()["error"]["code"], "scan_too_large", "{}", reply.text);
        assert!(!reply.text.contains("2000"), "{}", reply.text);
    }
    assert_eq!(all.json()["error"]["message"], one.json()["error"]["message"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn bytes_are_limited_where_rows_are_not_known() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.csv");
    std::fs::write(&path, format!("a,b\n{}", "1,some text that is long enough\n".repeat(1_000))).unwrap();
    let server = TestServer::start(TestSettings::default().tokens(TOKENS).change(|settings| {
        settings.query.max_scan_bytes = vec!["read=10KiB".to_owned()];
        settings.query.max_scan_rows = vec!["read=10".to_owned()];
    }))
    .await;
    server.execute(&format!("CREATE EXTERNAL TABLE log STORED AS CSV LOCATION '{}'", path.display())).await;
    let refused = query(&server, "SELECT count(b) FROM log", "read-tok").await;
    let message = refused.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(message.contains("bytes") && message.contains("`default.log`"), "{message}");
    assert_eq!(query(&server, "SELECT count(b) FROM log", "write-tok").await.status, 200);
}
