//! The HTTP door: every route, who may use it, what it answers, and how it refuses.

mod agent;
mod approvals;
mod catalog;
mod complete;
mod idempotency;
mod import;
mod openapi;
mod query;
mod settings;
mod tables;
mod values;

use base64::Engine as _;
use querent_tests::{TestServer, TestSettings};
use serde_json::{Value, json};

const TOKENS: &str = "reader-tok:read:reader,writer-tok:write:writer,admin-tok:admin:boss";

#[tokio::test]
async fn health_ready_and_index_answer_without_a_token() {
    let server = TestServer::start(TestSettings::default().tokens(TOKENS)).await;
    let health = server.get("/health", None).await;
    assert_eq!(health.status, 200);
    assert_eq!(health.json()["status"], "ok");
    for key in ["version", "framework", "agent"] {
        assert!(health.json()[key].is_string(), "{key}: {}", health.text);
    }
    assert_eq!(server.get("/ready", None).await.json(), json!({ "status": "ready" }));
    let index = server.get("/", None).await.json();
    assert!(index["routes"].as_array().unwrap().contains(&json!("POST /v1/query")), "{index}");
}

#[tokio::test]
async fn request_ids_are_echoed_or_minted() {
    let server = TestServer::start(TestSettings::default()).await;
    let sent = server.http.get(server.url("/nowhere")).header("X-Request-ID", "mine-42");
    let reply = server.send(sent, None).await;
    assert_eq!(reply.header("x-request-id"), "mine-42");
    assert_eq!(reply.json()["error"]["request_id"], "mine-42");

    for unfit in ["two words", &"x".repeat(200)] {
        let sent = server.http.get(server.url("/health")).header("X-Request-ID", unfit);
        let minted = server.send(sent, None).await.header("x-request-id").to_owned();
        assert!(uuid::Uuid::parse_str(&minted).is_ok(), "{minted}");
    }
}

#[tokio::test]
async fn unknown_paths_and_methods_are_json_errors() {
    let server = TestServer::start(TestSettings::default()).await;
    for path in ["/openai/nothing", "/openai/deployments/d/nothing"] {
        let unknown = server.get(path, None).await;
        assert_eq!(
            (unknown.status, &unknown.json()["error"]["type"]),
            (404, &json!("invalid_request_error")),
            "{path}"
        );
    }
    let unknown = server.get("/v1/nothing", None).await;
    assert_eq!((unknown.status, &unknown.json()["error"]["code"]), (404, &json!("not_found")));
    assert_eq!(unknown.header("content-type"), "application/json");
    let method = server.get("/v1/query", None).await;
    assert_eq!((method.status, &method.json()["error"]["code"]), (405, &json!("method_not_allowed")));
    assert_eq!(method.header("x-querent-error-code"), "method_not_allowed");
    assert_eq!(method.header("allow"), "POST");
    assert_eq!(method.json()["error"]["hint"], "it takes POST");
    // Ours has this shape below /v1, too; what is not ours is OpenAI's.
    let ours = server.get("/v1/complete", None).await;
    assert_eq!(ours.json()["error"]["hint"], "it takes POST");
    let theirs = server.get("/v1/embeddings", None).await.json();
    assert_eq!(theirs["error"]["message"], "/v1/embeddings does not take GET; it takes POST");
}

/// What no handler answers has the shape of the protocol whose path it is.
#[tokio::test]
async fn paths_and_methods_of_a_protocol_are_refused_in_its_words() {
    let server = TestServer::start(TestSettings::default().tokens(TOKENS)).await;
    for (path, status) in
        [("/v2/rest/query", 405), ("/v1/rest/mgmt", 405), ("/v2/rest/nothing", 404), ("/v1/rest/x", 404)]
    {
        let request = server.http.get(server.url(path)).header("x-ms-client-request-id", "mine;1");
        let reply = server.send(request, None).await;
        let error = &reply.json()["error"];
        assert_eq!((reply.status, &error["code"]), (status, &json!("General_BadRequest")), "{path}: {}", reply.text);
        assert!(error["@message"].is_string() && error["@permanent"] == true, "{path}: {}", reply.text);
        assert_eq!(
            (reply.header("x-ms-client-request-id"), &error["@context"]["clientRequestId"]),
            ("mine;1", &json!("mine;1"))
        );
        assert!(!reply.header("x-ms-activity-id").is_empty(), "{path}");
    }
    for (path, status, code) in [
        ("/mcp", 405, "method_not_allowed"),
        ("/mcp/nothing", 404, "not_found"),
        ("/a2a", 405, "method_not_allowed"),
        ("/a2a/nothing", 404, "not_found"),
    ] {
        let reply = server.get(path, None).await;
        let body = reply.json();
        assert_eq!(
            (reply.status, &body["jsonrpc"], &body["id"]),
            (status, &json!("2.0"), &json!(null)),
            "{path}: {body}"
        );
        assert!(body["error"]["code"].is_i64() && body["error"]["message"].is_string(), "{path}: {body}");
        assert_eq!(body["error"]["data"]["code"], code, "{path}: {body}");
    }
    let nobody = server.post("/a2a", &json!({}), None).await;
    assert_eq!((nobody.status, &nobody.json()["jsonrpc"]), (401, &json!("2.0")), "{}", nobody.text);
    assert!(!nobody.header("www-authenticate").is_empty());
    let action = server.get("/agentengine/api/v1/RunAgent", None).await;
    let body = action.json();
    assert_eq!((action.status, &body["Code"], &body["Action"]), (405, &json!(405), &json!("RunAgent")), "{body}");
    assert_eq!(body["Message"], body["error"]["message"], "{body}");
    let adk = server.get("/apps/querent/nothing", None).await;
    assert_eq!((adk.status, &adk.json()["error"]["type"]), (404, &json!("invalid_request_error")), "{}", adk.text);
}

/// Every endpoint by every kind of caller: 401 without a known token, 403 without the role, something else with it.
#[tokio::test]
async fn every_endpoint_asks_for_its_role() {
    let server = TestServer::start(TestSettings::default().tokens(TOKENS)).await;
    let some_run = "/v1/agent/runs/01890000-0000-7000-8000-000000000000";
    let cancel = format!("{some_run}/cancel");
    let endpoints = [
        ("GET", "/", "none"),
        ("GET", "/health", "none"),
        ("GET", "/ready", "none"),
        ("GET", "/metrics", "read"),
        ("POST", "/v1/query", "read"),
        ("GET", "/v1/catalog/schema", "read"),
        ("GET", "/v1/catalog/search?q=x", "read"),
        ("POST", "/v1/agent/ask", "read"),
        ("GET", "/v1/agent/runs", "read"),
        ("GET", some_run, "read"),
        ("POST", &cancel, "read"),
        ("POST", "/agentengine/api/v1/RunAgent", "read"),
        ("POST", "/agentengine/api/v1/ListSessions", "read"),
        ("GET", "/agentengine/api/v1/SubscribeRunEvents", "read"),
        ("POST", "/run_sse", "read"),
        ("GET", "/apps/querent/users/u/sessions", "read"),
        ("GET", "/list-apps", "read"),
        ("POST", "/mcp", "read"),
        ("DELETE", "/mcp", "read"),
        ("POST", "/v1/import?table=t&format=csv", "write"),
        ("GET", "/v1/catalog/relationships", "read"),
        ("POST", "/v1/catalog/relationships", "write"),
        ("DELETE", "/v1/catalog/relationships/1", "write"),
        ("GET", "/v1/catalog/verified-queries", "read"),
        ("POST", "/v1/catalog/verified-queries", "write"),
        ("DELETE", "/v1/catalog/verified-queries/1", "write"),
        ("GET", "/v1/catalog/metrics", "read"),
        ("POST", "/v1/catalog/metrics", "write"),
        ("DELETE", "/v1/catalog/metrics/1", "write"),
        ("GET", "/v1/tokens", "admin"),
        ("POST", "/v1/tokens", "admin"),
        ("DELETE", "/v1/tokens/1", "admin"),
        ("GET", "/v1/policy", "admin"),
        ("POST", "/v1/policy", "admin"),
        ("POST", "/v1/policy/explain", "admin"),
        ("POST", "/v1/policy/test", "admin"),
        ("GET", "/v1/queries", "read"),
        ("POST", "/v1/queries/1/cancel", "read"),
        ("DELETE", "/v1/queries/1", "read"),
        ("GET", "/v1/audit", "admin"),
        ("GET", "/v1/audit/verify", "admin"),
        ("POST", "/v1/check", "admin"),
        ("POST", "/v1/backup", "admin"),
    ];
    let callers =
        [(None, -1), (Some("wrong-tok"), -1), (Some("reader-tok"), 1), (Some("writer-tok"), 2), (Some("admin-tok"), 3)];
    for (method, path, role) in endpoints {
        let needed = match role {
            "none" => -2,
            "read" => 1,
            "write" => 2,
            _ => 3,
        };
        for (token, rank) in callers {
            let request = server.http.request(method.parse().unwrap(), server.url(path));
            let reply = server.send(request, token).await;
            let what = format!("{method} {path} as {token:?}: {} {}", reply.status, reply.text);
            if rank >= needed {
                assert!(![401, 403, 500].contains(&reply.status), "{what}");
            } else if rank < 0 {
                assert_eq!(reply.status, 401, "{what}");
                assert!(reply.header("www-authenticate").starts_with("Bearer"), "{what}");
            } else {
                assert_eq!(reply.status, 403, "{what}");
            }
        }
    }
}

#[tokio::test]
async fn basic_auth_takes_any_user_with_the_token_as_password() {
    let server = TestServer::start(TestSettings::default().tokens(TOKENS)).await;
    for (user, password, status) in [("anybody", "reader-tok", 200), ("", "reader-tok", 200), ("reader-tok", "x", 401)]
    {
        let request = server.http.get(server.url("/v1/catalog/schema")).basic_auth(user, Some(password));
        assert_eq!(server.send(request, None).await.status, status, "{user}:{password}");
    }
    let no_colon = base64::engine::general_purpose::STANDARD.encode("reader-tok");
    for malformed in ["Bearer", "reader-tok", "Digest x", "Basic !!!", &format!("Basic {no_colon}")] {
        let request = server.http.get(server.url("/v1/catalog/schema")).header("authorization", malformed);
        let reply = server.send(request, None).await;
        assert_eq!((reply.status, &reply.json()["error"]["code"]), (401, &json!("unauthenticated")), "{malformed}");
    }
}

#[tokio::test]
async fn without_tokens_an_authorization_header_is_ignored() {
    let server = TestServer::start(TestSettings::default()).await;
    assert_eq!(server.get("/v1/catalog/schema", Some("whatever")).await.status, 200);
    let created = query_as(&server, "CREATE TABLE t AS SELECT 1 AS a", Some("whatever")).await;
    assert_eq!(created.status, 200, "{}", created.text);
}

#[tokio::test]
async fn a_reader_may_query_and_not_change() {
    let server = TestServer::start(TestSettings::default().tokens(TOKENS)).await;
    let created = query_as(&server, "CREATE TABLE t AS SELECT 1 AS a", Some("writer-tok")).await;
    assert_eq!(created.status, 200, "{}", created.text);
    let read = query_as(&server, "SELECT a FROM t", Some("reader-tok")).await;
    assert_eq!(read.lines(), [json!({ "a": 1 })]);
    for change in ["DROP TABLE t", "INSERT INTO t VALUES (2)", "CREATE TABLE u AS SELECT 1 AS a"] {
        let refused = query_as(&server, change, Some("reader-tok")).await;
        assert_eq!((refused.status, &refused.json()["error"]["code"]), (403, &json!("not_allowed")), "{change}");
    }
}

#[tokio::test]
async fn cors_headers_are_sent_by_setting_only() {
    let preflight = |server: &TestServer, origin: &str| {
        server
            .http
            .request(reqwest::Method::OPTIONS, server.url("/v1/query"))
            .header("origin", origin.to_owned())
            .header("access-control-request-method", "POST")
            .header("access-control-request-headers", "authorization,x-database")
    };
    let closed = TestServer::start(TestSettings::default()).await;
    let reply = closed.send(preflight(&closed, "https://a.example"), None).await;
    assert_eq!(reply.header("access-control-allow-origin"), "");

    let change = |settings: &mut querent_flight::config::Settings| {
        settings.http.cors_allowed_origins = vec!["https://a.example".to_owned()];
    };
    let open = TestServer::start(TestSettings::default().change(change)).await;
    let reply = open.send(preflight(&open, "https://a.example"), None).await;
    assert_eq!((reply.status, reply.header("access-control-allow-origin")), (200, "https://a.example"));
    assert_eq!(reply.header("access-control-allow-headers"), "authorization,x-database");
    let reply = open.send(preflight(&open, "https://b.example"), None).await;
    assert_eq!(reply.header("access-control-allow-origin"), "");
    // What libraries in browsers read of an answer.
    let answered = open.send(open.http.get(open.url("/health")).header("origin", "https://a.example"), None).await;
    let exposed = answered.header("access-control-expose-headers").to_owned();
    for name in [
        "x-should-retry",
        "retry-after",
        "idempotency-replayed",
        "x-querent-result-cache",
        "x-request-id",
        "mcp-session-id",
    ] {
        assert!(exposed.split(',').any(|one| one.trim() == name), "{name}: {exposed}");
    }
}

#[tokio::test]
async fn metrics_are_prometheus_text_with_the_documented_series() {
    let server = TestServer::start(TestSettings::default()).await;
    query_as(&server, "SELECT 1 AS a", None).await;
    query_as(&server, "SELECT nothing", None).await;
    let body = json!({ "question": "anything?" });
    server.post("/v1/agent/ask", &body, None).await;
    let metrics = server.get("/metrics", None).await;
    assert_eq!(metrics.header("content-type"), "text/plain; version=0.0.4; charset=utf-8");
    let series = [
        r#"querent_queries_total{door="http",outcome="success"}"#,
        r#"querent_queries_total{door="http",outcome="error"}"#,
        r#"querent_errors_total{code="column_not_found"}"#,
        r#"querent_http_requests_total{route="/v1/query",method="POST",status="200"}"#,
        r#"querent_runs_total{outcome="success"}"#,
        "querent_query_duration_seconds_bucket",
        "querent_model_tokens_total",
        "querent_connections ",
        "# HELP querent_queries_total",
    ];
    for one in series {
        assert!(metrics.text.contains(one), "{one} in\n{}", metrics.text);
    }
}

/// The one port answers HTTP/2 without TLS as well as HTTP/1.1.
#[tokio::test]
async fn http2_by_prior_knowledge_is_served_on_the_same_port() {
    let server = TestServer::start(TestSettings::default()).await;
    for (flag, version) in [("--http1.1", "1.1"), ("--http2-prior-knowledge", "2")] {
        let url = server.url("/health");
        let output = tokio::process::Command::new("curl")
            .args(["-sS", flag, "-o", "/dev/null", "-w", "%{http_version} %{http_code}", &url])
            .output()
            .await
            .unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), format!("{version} 200"), "{output:?}");
    }
}

pub(crate) async fn query_as(server: &TestServer, sql: &str, token: Option<&str>) -> querent_tests::HttpReply {
    server.send(server.http.post(server.url("/v1/query")).body(sql.to_owned()), token).await
}

async fn query_json(server: &TestServer, sql: &str) -> Value {
    let request = server.http.post(server.url("/v1/query")).header("accept", "application/json");
    let reply = server.send(request.body(sql.to_owned()), None).await;
    assert_eq!(reply.status, 200, "{sql}: {}", reply.text);
    reply.json()
}
