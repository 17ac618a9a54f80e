//! KQL at `POST /v1/query` and on the command line: formats, errors with their place, limits.

use querent_tests::{HttpReply, TestServer, TestSettings};
use serde_json::json;

const TOKENS: &str = "reader-tok:read:reader,admin-tok:admin:boss";

#[tokio::test]
async fn rows_come_in_every_format() {
    let server = TestServer::start(TestSettings::default()).await;
    server.seed_otel_logs().await;
    let kql = "otel_logs | where severity_text == 'ERROR' and timestamp > ago(2h) | summarize n = count() by service_name | top 2 by n";
    let reply = sent(&server, kql, &[]).await;
    assert_eq!(reply.header("content-type"), "application/x-ndjson; charset=utf-8");
    assert_eq!(
        reply.lines(),
        [json!({ "service_name": "payments", "n": 12 }), json!({ "service_name": "auth", "n": 5 })],
        "{}",
        reply.text
    );
    let document = sent(
        &server,
        "print a = 1, t = datetime(2024-02-03 04:05:06), s = 1d, d = dynamic([1])",
        &[("accept", "application/json")],
    )
    .await;
    let document = document.json();
    assert_eq!(document["rows"][0][0], 1, "{document}");
    assert_eq!(document["rows"][0][1], "2024-02-03T04:05:06Z", "{document}");
    let bytes = server
        .http
        .post(server.url("/v1/query"))
        .header("content-type", "application/x-kql")
        .header("accept", "application/vnd.apache.arrow.stream")
        .body("range x from 1 to 50000 step 1")
        .send()
        .await
        .unwrap()
        .bytes()
        .await
        .unwrap();
    let reader = arrow::ipc::reader::StreamReader::try_new(std::io::Cursor::new(bytes), None).unwrap();
    assert_eq!(reader.map(|batch| batch.unwrap().num_rows()).sum::<usize>(), 50_000);
}

/// Each query has an error: its code, and the position that its message names.
#[tokio::test]
async fn errors_say_where_and_what_instead() {
    let server = TestServer::start(TestSettings::default()).await;
    server.seed_otel_logs().await;
    for (kql, code, told) in [
        ("otel_logs | where a ==", "kql_unexpected", "line 1, column 23: expected an expression, found the end"),
        ("otel_logs\n| wher a == 1", "kql_unknown_operator", "line 2, column 3"),
        (
            "otel_log | count",
            "kql_unknown_table",
            "line 1, column 1: unknown table `otel_log` in database `default`; did you mean `otel_logs`?\n  otel_log | count\n  ^^^^^^^^",
        ),
        ("otel_logs | project servce_name", "kql_unknown_column", "line 1, column 21: unknown column `servce_name`"),
        ("print tolowr('a')", "kql_unknown_function", "line 1, column 7: unknown function `tolowr`"),
        (
            "print cursor_after('x')",
            "kql_not_supported",
            "line 1, column 7: the function `cursor_after` is known to Kusto, but not supported here",
        ),
        ("print 1 + 'a'", "kql_type_mismatch", "line 1, column 7"),
        ("print a = 'x", "kql_unterminated", "line 1, column 11"),
        ("otel_logs | where a == | where b ==", "kql_unexpected", "line 1, column 36"),
    ] {
        let reply = sent(&server, kql, &[]).await;
        let error = &reply.json()["error"];
        assert_eq!((reply.status, &error["code"]), (400, &json!(code)), "{kql}: {}", reply.text);
        let message = error["message"].as_str().unwrap();
        assert!(message.contains(told), "{kql}: {message}");
        assert!(message.contains('^'), "{kql}: {message}");
    }
    let near = sent(&server, "print tolowr('a')", &[]).await.json();
    assert_eq!(near["error"]["hint"], "did you mean `tolower`?", "{near}");
    let aggregate = sent(&server, "print a = 1 | summarize cout() by a", &[]).await.json();
    assert_eq!(aggregate["error"]["hint"], "did you mean `count`?", "{aggregate}");
    let instead = sent(&server, "stored_query_result('r')", &[]).await.json();
    let hint = instead["error"]["hint"].as_str().unwrap();
    assert!(hint.contains("CREATE TABLE"), "{instead}");
    for (kql, hint) in [
        ("otel_logs | take", "it is written as in `T | take 10`"),
        ("print substring('abc')", "it is written as in `substring(string, long, [long])`"),
        ("print a = 1, b = 2 | project zzzzzz", "the columns here are `a`, `b`"),
        ("zzzzzz | count", "SHOW TABLES in SQL lists the tables, and `.show tables` over Kusto's REST interface"),
    ] {
        let reply = sent(&server, kql, &[]).await;
        assert_eq!(reply.json()["error"]["hint"], hint, "{kql}: {}", reply.text);
    }
    let empty = sent(&server, " \n", &[]).await;
    assert_eq!((empty.status, &empty.json()["error"]["code"]), (400, &json!("empty_query")));
}

#[tokio::test]
async fn limits_asked_for_in_headers_hold() {
    let server = TestServer::start(TestSettings::default().tokens(TOKENS)).await;
    let slow = "range a from 1 to 1000000 step 1 | extend k = 1 | join kind=inner (range b from 1 to 1000000 step 1 | extend k = 1) on k | where a + b < 0 | count";
    let reply = read(&server, slow, &[("x-querent-max-wall-clock-ms", "200")]).await;
    assert_eq!((reply.status, &reply.json()["error"]["code"]), (429, &json!("wall_clock_exceeded")), "{}", reply.text);
    let large = "print 1 in ((range x from 1 to 100000 step 1))";
    let reply = read(&server, large, &[("x-querent-max-memory-bytes", "1")]).await;
    assert_eq!((reply.status, &reply.json()["error"]["code"]), (429, &json!("memory_exceeded")), "{}", reply.text);
    assert_eq!(reply.header("x-kyma-budget-limit"), "1048576 memory");
    assert_eq!(sent(&server, "print 1", &[]).await.status, 401);
}

async fn sent(server: &TestServer, kql: &str, headers: &[(&str, &str)]) -> HttpReply {
    server.send(request(server, kql, headers), None).await
}

async fn read(server: &TestServer, kql: &str, headers: &[(&str, &str)]) -> HttpReply {
    server.send(request(server, kql, headers), Some("reader-tok")).await
}

fn request(server: &TestServer, kql: &str, headers: &[(&str, &str)]) -> reqwest::RequestBuilder {
    let request = server.http.post(server.url("/v1/query")).header("content-type", "application/x-kql");
    headers.iter().fold(request, |request, (name, value)| request.header(*name, *value)).body(kql.to_owned())
}
