//! `POST /v1/query`: requests, formats, limits, and failures before and after the first byte.

use parquet::file::metadata::ParquetMetaDataReader;
use querent_tests::{HttpReply, TestServer, TestSettings, wait_for};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{query_as, query_json};

#[tokio::test]
async fn rows_come_as_ndjson_with_nulls_kept() {
    let server = TestServer::start(TestSettings::default()).await;
    let reply = query_as(&server, "SELECT a, b FROM (VALUES (1, 'x'), (2, NULL)) AS t(a, b) ORDER BY a", None).await;
    assert_eq!(reply.header("content-type"), "application/x-ndjson; charset=utf-8");
    assert_eq!(reply.text, "{\"a\":1,\"b\":\"x\"}\n{\"a\":2,\"b\":null}\n");
}

#[tokio::test]
async fn json_says_the_columns_even_of_no_rows() {
    let server = TestServer::start(TestSettings::default()).await;
    let empty = query_json(&server, "SELECT 1 AS a, 'x' AS b WHERE 1 = 0").await;
    assert_eq!(
        empty,
        json!({
            "columns": [{ "name": "a", "type": "Int64" }, { "name": "b", "type": "Utf8" }],
            "rows": [],
            "row_count": 0,
            "truncated": false,
        })
    );
    let repeated = query_json(&server, "SELECT * FROM (SELECT 1 AS id) a CROSS JOIN (SELECT 2 AS id) b").await;
    assert_eq!(repeated["columns"][1]["name"], "id_1", "{repeated}");
    assert_eq!(repeated["rows"], json!([[1, 2]]));
}

#[tokio::test]
async fn a_compressed_body_is_decompressed_within_the_limits_of_its_route() {
    let settings = TestSettings::default().change(|settings| settings.http.max_query_bytes.0 = 64 << 10);
    let server = TestServer::start(settings).await;
    let zip = |text: &str| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        std::io::Write::write_all(&mut encoder, text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    };
    let send = async |path: &str, media_type: &str, encoding: &str, body: Vec<u8>| {
        let request = server.http.post(server.url(path)).header("content-type", media_type);
        let answer = request.header("content-encoding", encoding).body(body).send().await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    };
    let sql = "application/sql";
    assert_eq!(send("/v1/query", sql, "gzip", zip("SELECT 41 + 1 AS n")).await, (200, "{\"n\":42}\n".to_owned()));
    let kusto = r#"{"db": "default", "csl": "print n = 42"}"#;
    let (status, answer) = send("/v1/rest/query", "application/json", "gzip", zip(kusto)).await;
    assert!(status == 200 && answer.contains("[42]"), "{answer}");
    let (status, answer) = send("/v1/query", sql, "gzip", zip(&format!("SELECT 1 --{}", " ".repeat(1 << 20)))).await;
    assert!(status == 413 && answer.contains("body_too_large"), "{answer}");
    let (status, answer) = send("/v1/query", sql, "gzip", b"SELECT 1".to_vec()).await;
    assert!(status == 400 && answer.contains("bad_request_body"), "{answer}");
    let mut cut = zip("SELECT 41 + 1 AS n");
    cut.truncate(cut.len() - 6);
    assert_eq!(send("/v1/query", sql, "gzip", cut).await.0, 400);
    for path in ["/v1/query", "/v1/complete", "/v1/agent/ask", "/v1/catalog/metrics", "/v1/responses", "/v1/messages"] {
        let (status, answer) = send(path, "application/json", "br", b"{}".to_vec()).await;
        assert!(status == 415 && answer.contains("Content-Encoding"), "{path}: {answer}");
    }
}

#[tokio::test]
async fn many_batches_arrive_whole_in_every_format() {
    let server = TestServer::start(TestSettings::default()).await;
    let sql = "SELECT value AS i, 'row ' || value AS s FROM generate_series(1, 50000) AS t(value) ORDER BY i";
    let lines = query_as(&server, sql, None).await.lines();
    assert_eq!(lines.len(), 50_000);
    assert_eq!(lines[49_999], json!({ "i": 50_000, "s": "row 50000" }));

    let document = query_json(&server, sql).await;
    assert_eq!(document["row_count"], 50_000);
    assert_eq!(document["rows"].as_array().unwrap().len(), 50_000);
    assert_eq!(document["rows"][0], json!([1, "row 1"]));

    let request = server.http.post(server.url("/v1/query")).header("accept", "application/vnd.apache.arrow.stream");
    let bytes = request.body(sql).send().await.unwrap().bytes().await.unwrap();
    let reader = arrow::ipc::reader::StreamReader::try_new(std::io::Cursor::new(bytes), None).unwrap();
    assert_eq!(reader.schema().field(1).name(), "s");
    assert_eq!(reader.map(|batch| batch.unwrap().num_rows()).sum::<usize>(), 50_000);
}

#[tokio::test]
async fn arrays_are_lists() {
    let server = TestServer::start(TestSettings::default()).await;
    for (sql, params, rows) in [
        ("SELECT $1 AS a, len($1) AS n", json!([[1, null, 3]]), json!([[[1, null, 3], 3]])),
        ("SELECT $1 AS a, typeof($1) AS t", json!([["x", "y"]]), json!([[["x", "y"], "VARCHAR[]"]])),
        ("SELECT list_sum($1) AS s, $2 AS b", json!([[1, 0.5, -3], [[1], [], null]]), json!([[-1.5, [[1], [], null]]])),
        (
            "SELECT value AS v FROM unnest($1) AS t(value) WHERE value = ANY($2)",
            json!([[1, 2, 3], [2, 9]]),
            json!([[2]]),
        ),
        ("SELECT array_distance([3, 4]::FLOAT[2], $1) AS d", json!([[0, 0]]), json!([[5.0]])),
        ("SELECT array_distance([3, 4]::FLOAT[2], $1::FLOAT[2]) AS d", json!([[0.5, 4]]), json!([[2.5]])),
    ] {
        let body = json!({ "sql": sql, "params": params, "format": "json" });
        let reply = server.send(server.http.post(server.url("/v1/query")).json(&body), None).await;
        assert_eq!((reply.status, &reply.json()["rows"]), (200, &rows), "{sql}: {}", reply.text);
    }
}

#[tokio::test]
async fn csv_is_asked_for_in_three_ways_and_streamed() {
    let server = TestServer::start(TestSettings::default()).await;
    let sql = "SELECT 1 AS a, 'x,y' AS \"b \"\"c\"\"\", NULL AS d, 9007199254740993 AS big, TIMESTAMP '2024-01-02 03:04:05' AS t";
    let expected = "a,\"b \"\"c\"\"\",d,big,t\n1,\"x,y\",,9007199254740993,2024-01-02T03:04:05Z\n";
    let post = |path: &str| server.http.post(server.url(path));
    for request in [
        post("/v1/query").header("accept", "text/csv").body(sql),
        post("/v1/query").header("accept", "text/html;q=0.9, text/csv").body(sql),
        post("/v1/query?format=csv").body(sql),
        post("/v1/query").json(&json!({ "sql": sql, "format": "csv" })),
    ] {
        let reply = server.send(request, None).await;
        assert_eq!((reply.status, reply.text.as_str()), (200, expected));
        assert!(
            reply.header("content-type").starts_with("text/csv; charset=utf-8"),
            "{}",
            reply.header("content-type")
        );
    }
    let empty = server.send(post("/v1/query?format=tsv").body("SELECT 1 AS a, 2 AS b WHERE false"), None).await;
    assert_eq!(empty.text, "a\tb\n");
    let unknown = server.send(post("/v1/query?format=xml").body("SELECT 1"), None).await;
    assert_eq!((unknown.status, &unknown.json()["error"]["code"]), (400, &json!("bad_parameter")), "{}", unknown.text);
    let sql = "SELECT value AS i FROM generate_series(1, 50000) AS t(value) ORDER BY i";
    let many = server.send(post("/v1/query?format=csv").body(sql), None).await;
    assert_eq!(many.text.lines().count(), 50_001);
    let parquet = post("/v1/query?format=parquet").body(sql).send().await.unwrap().bytes().await.unwrap();
    assert!(parquet.starts_with(b"PAR1") && parquet.ends_with(b"PAR1"));
    // A writer holds a row group, whatever the rows are.
    let sql = "SELECT value AS i FROM generate_series(1, 300000) AS t(value)";
    let parquet = post("/v1/query?format=parquet").body(sql).send().await.unwrap().bytes().await.unwrap();
    let footer = ParquetMetaDataReader::new().parse_and_finish(&parquet).unwrap();
    let groups: Vec<i64> = footer.row_groups().iter().map(|group| group.num_rows()).collect();
    assert_eq!(groups.iter().sum::<i64>(), 300_000);
    assert!(groups.iter().all(|rows| *rows <= 122_880), "{groups:?}");
    // A failure after the first byte cuts the body, so that it never looks whole.
    let late = "SELECT 10 / (40000 - value) AS i FROM generate_series(1, 50000) AS t(value)";
    let cut = post("/v1/query?format=csv").body(late).send().await.unwrap();
    assert!(!cut.status().is_success() || cut.text().await.is_err());
}

#[tokio::test]
async fn a_query_that_fails_among_its_first_rows_has_an_errors_status() {
    let server = TestServer::start(TestSettings::default()).await;
    // The function is called with one row before it is called with the others.
    let sql = "SELECT bin(x) AS v FROM (SELECT * FROM (VALUES (1::HUGEINT), (99999999999999999999::HUGEINT)) AS t(x) OFFSET 0) u";
    for format in ["arrow", "json", "csv", "ndjson"] {
        let request = server.http.post(server.url(&format!("/v1/query?format={format}"))).body(sql);
        let reply = server.send(request, None).await;
        assert_eq!(
            (reply.status, &reply.json()["error"]["code"]),
            (400, &json!("invalid_value")),
            "{format}: {}",
            reply.text
        );
    }
}

#[tokio::test]
async fn the_root_is_a_page_for_people_and_json_for_programs() {
    let server = TestServer::start(TestSettings::default()).await;
    let browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
    let page = server.send(server.http.get(server.url("/")).header("accept", browser), None).await;
    assert!(page.header("content-type").starts_with("text/html"), "{}", page.text);
    assert!(page.text.contains("<title>Querent</title>"), "{}", page.text);
    let policy = page.header("content-security-policy");
    assert!(policy.contains("default-src 'none'"), "{policy}");
    for accept in ["*/*", "application/json", "application/json, text/html"] {
        let index = server.send(server.http.get(server.url("/")).header("accept", accept), None).await;
        assert_eq!(index.json()["name"], "querent", "{accept}");
    }
}

#[tokio::test]
async fn the_row_count_is_a_trailer() {
    let server = TestServer::start(TestSettings::default()).await;
    let request = "POST /v1/query HTTP/1.1\r\nhost: localhost\r\nte: trailers\r\nconnection: close\r\ncontent-length: 46\r\n\r\n\
                   SELECT value FROM generate_series(1, 3) AS t(value)";
    let sql = request.split("\r\n\r\n").nth(1).unwrap();
    let request = request.replace("content-length: 46", &format!("content-length: {}", sql.len()));
    let reply = raw(&server, &request).await;
    let (head, body) = reply.split_once("\r\n\r\n").unwrap();
    assert!(head.to_lowercase().contains("trailer: x-kyma-rows, x-querent-rows, x-querent-truncated"), "{head}");
    let trailers = body.rsplit("\r\n0\r\n").next().unwrap().to_lowercase();
    assert!(trailers.contains("x-kyma-rows: 3\r\n"), "{body}");
    assert!(trailers.contains("x-querent-rows: 3\r\n"), "{body}");
}

#[tokio::test]
async fn a_json_body_brings_parameters_a_database_and_a_row_limit() {
    let server = TestServer::start(TestSettings::default()).await;
    server.execute("CREATE SCHEMA other").await;
    server.execute("CREATE TABLE other.t AS SELECT value AS a FROM generate_series(1, 10) AS s(value)").await;
    let body = json!({
        "sql": "SELECT a, $2 AS word, $3 AS nothing FROM t WHERE a > $1 ORDER BY a",
        "params": [4, "x'; DROP TABLE t", null],
        "database": "other",
        "max_rows": 2,
    });
    let request = server.http.post(server.url("/v1/query")).header("accept", "application/json").json(&body);
    let reply = server.send(request, None).await.json();
    assert_eq!(reply["rows"], json!([[5, "x'; DROP TABLE t", null], [6, "x'; DROP TABLE t", null]]), "{reply}");
    assert_eq!((&reply["row_count"], &reply["truncated"]), (&json!(2), &json!(true)));

    server.execute("CREATE TABLE other.numbers (i BIGINT, t TIMESTAMP)").await;
    let written = json!({ "sql": "INSERT INTO other.numbers VALUES ($1, $2)", "params": [2.6, 5] });
    assert_eq!(server.post("/v1/query", &written, None).await.status, 200);
    let read = json!({ "sql": "SELECT i, t = '1970-01-01 00:00:05' AS t FROM other.numbers" });
    assert_eq!(server.post("/v1/query", &read, None).await.lines(), [json!({ "i": 3, "t": true })]);

    // What some functions have to know before they are planned.
    let known = json!({
        "sql": "SELECT date_trunc($1, TIMESTAMP '2024-05-06 10:00:00') = '2024-05-01' AS m, \
                date_part($1, DATE '2024-05-06') AS p, (SELECT count(*) FROM generate_series(1, $2)) AS n",
        "params": ["month", 4],
    });
    let reply = server.post("/v1/query", &known, None).await;
    assert_eq!(reply.lines(), [json!({ "m": true, "p": 5, "n": 4 })], "{}", reply.text);

    let by_header = server.http.post(server.url("/v1/query")).header("x-database", "other");
    let count = server.send(by_header.body("SELECT count(*) AS n FROM t"), None).await;
    assert_eq!(count.lines(), [json!({ "n": 10 })]);
    server.execute("CREATE SCHEMA \"дані ü\"").await;
    server.execute("CREATE TABLE \"дані ü\".t AS SELECT 7 AS n").await;
    let beyond_ascii = server.http.post(server.url("/v1/query")).header("x-database", "дані ü".as_bytes());
    let rows = server.send(beyond_ascii.body("SELECT n FROM t"), None).await;
    assert_eq!(rows.lines(), [json!({ "n": 7 })], "{}", rows.text);
    let no_text = server.http.post(server.url("/v1/query")).header("x-database", &b"\xff\xfe"[..]);
    assert_eq!(server.send(no_text.body("SELECT 1"), None).await.status, 400);
    let everywhere = server.http.post(server.url("/v1/query")).header("x-database", "*");
    let count = server.send(everywhere.body("SELECT count(*) AS n FROM other.t"), None).await;
    assert_eq!(count.lines(), [json!({ "n": 10 })]);
}

/// Each request has an error, and gets a status and a code.
#[tokio::test]
async fn bad_queries_have_different_codes() {
    let server = TestServer::start(TestSettings::default()).await;
    server.execute("CREATE TABLE otel_logs AS SELECT 'x' AS service_name").await;
    let cases = [
        ("", 400, "empty_query"),
        (" \n ", 400, "empty_query"),
        ("SELEC 1", 400, "sql_parse_error"),
        ("SELECT 1; SELECT 2", 400, "multiple_statements"),
        ("SELECT * FROM otel_log", 400, "table_not_found"),
        ("SELECT servce_name FROM otel_logs", 400, "column_not_found"),
        ("SELECT cuont(1)", 400, "function_not_found"),
        ("CREATE TABLE otel_logs AS SELECT 1 AS a", 409, "already_exists"),
        ("CREATE TABLE OTEL_LOGS AS SELECT 1 AS a", 409, "already_exists"),
    ];
    for (sql, status, code) in cases {
        let reply = query_as(&server, sql, None).await;
        assert_eq!((reply.status, &reply.json()["error"]["code"]), (status, &json!(code)), "{sql}: {}", reply.text);
    }
    let near = query_as(&server, "SELECT * FROM otel_log", None).await.json();
    assert!(near["error"]["message"].as_str().unwrap().contains("did you mean `otel_logs`?"), "{near}");

    let post = || server.http.post(server.url("/v1/query"));
    let json_type = "application/json";
    let requests = [
        (post().body(vec![0xff, 0xfe]), 400, "bad_encoding"),
        (post().header("content-type", json_type).body("{"), 400, "bad_request_body"),
        (post().json(&json!({ "sql": "SELECT 1", "maxrows": 1 })), 400, "bad_request_body"),
        (post().json(&json!({ "sql": "SELECT $1", "params": [{ "a": 1 }] })), 400, "bad_parameter"),
        (post().json(&json!({ "sql": "SELECT $1", "params": [[1, "a"]] })), 400, "bad_parameter"),
        (post().json(&json!({ "sql": "SELECT $1", "params": [[0.5, 9007199254740993_i64]] })), 400, "bad_parameter"),
        (post().header("content-type", "application/x-cypher").body("T"), 415, "unsupported_media_type"),
        (post().header("accept", "text/html").body("SELECT 1"), 406, "not_acceptable"),
        (post().header("x-database", "nowhere").body("SELECT 1"), 404, "database_not_found"),
        (post().header("x-kyma-max-wall-clock-ms", "soon").body("SELECT 1"), 400, "bad_header"),
    ];
    for (request, status, code) in requests {
        let reply = server.send(request, None).await;
        assert_eq!((reply.status, &reply.json()["error"]["code"]), (status, &json!(code)), "{}", reply.text);
    }
}

/// As some editors and programs begin what they write.
#[tokio::test]
async fn a_byte_order_mark_before_a_body_is_passed_over() {
    let server = TestServer::start(TestSettings::default()).await;
    for (media_type, body) in
        [("application/sql", "\u{feff}SELECT 1 AS a"), ("application/json", "\u{feff}{\"sql\": \"SELECT 1 AS a\"}")]
    {
        let request = server.http.post(server.url("/v1/query")).header("content-type", media_type).body(body);
        let reply = server.send(request, None).await;
        assert_eq!((reply.status, reply.text.as_str()), (200, "{\"a\":1}\n"), "{media_type}");
    }
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused() {
    let server =
        TestServer::start(TestSettings::default().change(|settings| settings.http.max_query_bytes.0 = 100)).await;
    let long = format!("SELECT 1 -- {}", "x".repeat(200));
    let reply = query_as(&server, &long, None).await;
    assert_eq!((reply.status, &reply.json()["error"]["code"]), (413, &json!("body_too_large")));
    assert_eq!(query_as(&server, "SELECT 1", None).await.status, 200);
}

#[tokio::test]
async fn limits_asked_for_in_headers_hold() {
    let server = TestServer::start(TestSettings::default()).await;
    let slow = "SELECT count(*) FROM generate_series(1, 1000000) a CROSS JOIN generate_series(1, 1000000) b";
    for header in ["x-kyma-max-wall-clock-ms", "x-querent-max-wall-clock-ms"] {
        let request = server.http.post(server.url("/v1/query")).header(header, "200").body(slow);
        let reply = server.send(request, None).await;
        assert_eq!(
            (reply.status, &reply.json()["error"]["code"]),
            (429, &json!("wall_clock_exceeded")),
            "{}",
            reply.text
        );
        assert_eq!((reply.header("retry-after"), reply.header("x-kyma-budget-limit")), ("1", "200 wall_clock_ms"));
    }
    // Sorting needs its rows in memory or on disk; a hash table of this size can do neither in 1 MiB.
    let large = "SELECT array_agg(value) FROM generate_series(1, 3000000) AS t(value)";
    let request = server.http.post(server.url("/v1/query")).header("x-kyma-max-memory-bytes", "1").body(large);
    let reply = server.send(request, None).await;
    assert_eq!((reply.status, &reply.json()["error"]["code"]), (429, &json!("memory_exceeded")), "{}", reply.text);
    let hint = reply.json()["error"]["hint"].to_string();
    assert!(hint.contains("query.memory") && hint.contains("query.threads"), "{hint}");
    assert_eq!(reply.header("x-kyma-budget-limit"), "1048576 memory");
}

/// A row fails after others were sent: the status has been sent too, so the body must not look complete.
#[tokio::test]
async fn a_failure_after_the_first_byte_cannot_be_missed() {
    let server = TestServer::start(TestSettings::default()).await;
    let sql = "SELECT 100 / (60000 - value) AS q FROM generate_series(1, 100000) AS t(value)";
    let reply = query_as(&server, sql, None).await;
    assert_eq!(reply.status, 200);
    let lines = reply.lines();
    assert!(lines.len() > 1_000, "rows came first: {}", lines.len());
    let last = lines.last().unwrap();
    assert_eq!(last["error"]["code"], "invalid_value", "{last}");
    assert_eq!(last["error"]["request_id"], reply.header("x-request-id"));

    for accept in ["application/json", "application/vnd.apache.arrow.stream"] {
        let request = server.http.post(server.url("/v1/query")).header("accept", accept).body(sql);
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 200);
        assert!(response.bytes().await.is_err(), "{accept} must be aborted");
    }
    let early = query_as(&server, "SELECT 1 / (value - 1) AS q FROM generate_series(1, 3) AS t(value)", None).await;
    assert_eq!((early.status, &early.json()["error"]["code"]), (400, &json!("invalid_value")), "{}", early.text);
}

#[tokio::test]
async fn queries_beyond_the_bound_must_retry() {
    let server = TestServer::start(TestSettings::default().change(|settings| settings.query.max_concurrent = 1)).await;
    // One that works: a query that waits for its reader does not count.
    let endless = "SELECT count(*) FROM generate_series(1, 1000000) a JOIN generate_series(1, 1000000) b \
                   ON a.value + b.value < 0";
    let held = tokio::spawn(server.http.post(server.url("/v1/query")).body(endless).send());
    let refused = wait_for("the only place is taken", async || {
        let reply = query_as(&server, "SELECT 1 AS a", None).await;
        (reply.status != 200).then_some(reply)
    });
    let refused = refused.await;
    assert_eq!((refused.status, &refused.json()["error"]["code"]), (429, &json!("too_many_requests")));
    assert_eq!(refused.header("retry-after"), "1");
    assert_eq!(server.get("/v1/catalog/schema", None).await.status, 200, "metadata is exempt");
    held.abort();
    let admitted = eventually_admitted(&server).await;
    assert_eq!(admitted.lines(), [json!({ "a": 1 })]);
}

#[tokio::test]
async fn changes_say_how_many_rows() {
    let server = TestServer::start(TestSettings::default()).await;
    let created = query_as(&server, "CREATE TABLE t (a BIGINT, b VARCHAR)", None).await;
    assert_eq!((created.status, created.text.as_str()), (200, ""));
    let inserted = query_as(&server, "INSERT INTO t VALUES (1, 'x'), (2, 'y')", None).await;
    assert_eq!(inserted.lines(), [json!({ "count": 2 })]);
    let rows: Vec<Value> = query_as(&server, "SELECT * FROM t ORDER BY a", None).await.lines();
    assert_eq!(rows, [json!({ "a": 1, "b": "x" }), json!({ "a": 2, "b": "y" })]);
}

async fn eventually_admitted(server: &TestServer) -> HttpReply {
    let attempt = async || Some(query_as(server, "SELECT 1 AS a", None).await).filter(|reply| reply.status != 429);
    wait_for("the place is given back", attempt).await
}

/// Sends bytes and returns all that comes back until the server closes.
async fn raw(server: &TestServer, request: &str) -> String {
    let mut stream = tokio::net::TcpStream::connect(server.addr).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).await.unwrap();
    reply
}
