//! Bad requests, each with its status and the shape of HolmesGPT's own server; keys; methods; routes that do not exist.

use querent_tests::{HttpReply, TestServer, TestSettings};
use serde_json::{Value, json};

use super::{CHAT, asked, started};

#[tokio::test]
async fn every_rule_has_its_status() {
    let server = started().await;
    let tool = |name: &str| json!({ "name": name, "description": "d" });
    let user_first = json!([{ "role": "user", "content": "x" }]);
    let system_first = json!([{ "role": "system", "content": "x" }]);
    let calls = vec![json!({}); 10_000];
    let many_calls = json!([{ "role": "system", "content": "x" }, { "role": "assistant", "tool_calls": calls }]);
    let cases: Vec<(Value, u16, &str)> = vec![
        (json!({}), 422, "Field required"),
        (json!([]), 422, "valid dictionary"),
        (json!({ "ask": 1 }), 422, "valid string"),
        (json!({ "ask": null }), 422, "valid string"),
        (json!({ "ask": "  " }), 400, "`ask` is empty"),
        (json!({ "conversation_history": system_first }), 422, "Field required"),
        (json!({ "ask": "plain", "conversation_history": user_first }), 422, "must contain 'role': 'system'"),
        (
            json!({ "ask": "plain", "conversation_history": [{ "role": "system", "content": "s" }, { "role": "x" }] }),
            422,
            "'role' must be one of",
        ),
        (json!({ "ask": "plain", "conversation_history": "x" }), 422, "valid list"),
        (json!({ "ask": "plain", "conversation_history": vec![json!({}); 10_001] }), 422, "at most 10000"),
        (json!({ "ask": "plain", "conversation_history": many_calls }), 422, "at most 10000"),
        (json!({ "ask": "plain", "frontend_tools": vec![json!({}); 1_001] }), 422, "at most 1000"),
        (json!({ "ask": "plain", "conversation_history": ["x"] }), 422, "valid dictionary"),
        (json!({ "ask": "plain", "model": 1 }), 422, "valid string"),
        (
            json!({ "ask": "plain", "model": "anthropic/claude-sonnet-4-5-20250929" }),
            400,
            "configured models: scripted",
        ),
        (json!({ "ask": "plain", "stream": "perhaps" }), 422, "valid boolean"),
        (
            json!({ "ask": "plain", "images": [{ "url": "data:image/png;base64,aGk=", "zzz": 1 }] }),
            422,
            "images[0].zzz",
        ),
        (
            json!({ "ask": "plain", "stream": true, "frontend_tools": [{ "name": "f", "description": "d", "zzz": 1 }] }),
            422,
            "frontend_tools[0].zzz",
        ),
        (json!({ "ask": "plain", "response_format": "json" }), 422, "valid dictionary"),
        (json!({ "ask": "plain", "response_format": { "type": "json_schema" } }), 400, "no `schema`"),
        (json!({ "ask": "plain", "response_format": { "type": "xml" } }), 400, "`xml` is not known"),
        (json!({ "ask": "plain", "images": "x" }), 422, "valid list"),
        (json!({ "ask": "plain", "images": [1] }), 422, "valid string"),
        (json!({ "ask": "plain", "images": [{ "detail": "low" }] }), 500, "Image dict must contain a 'url' key"),
        (json!({ "ask": "plain", "images": ["data:text/plain;base64,aGk="] }), 400, "not an image's"),
        (
            json!({ "ask": "plain", "images": [{ "url": "https://a.example/b.png", "detail": "x" }] }),
            422,
            "'low', 'high'",
        ),
        (json!({ "ask": "plain", "images": [{ "url": "https://a.example/b.png", "format": 7 }] }), 422, "valid string"),
        (
            json!({ "ask": "plain", "tool_decisions": [{ "tool_call_id": "c", "approved": false, "feedback": 7 }] }),
            422,
            "valid string",
        ),
        (json!({ "ask": "plain", "enable_tool_approval": [] }), 422, "valid boolean"),
        (json!({ "ask": "plain", "tool_decisions": {} }), 422, "valid list"),
        (json!({ "ask": "plain", "tool_decisions": [{ "approved": true }] }), 422, "Field required"),
        (json!({ "ask": "plain", "tool_decisions": [{ "tool_call_id": "c" }] }), 422, "Field required"),
        (
            json!({ "ask": "plain", "tool_decisions": [{ "tool_call_id": "c", "approved": true }] }),
            400,
            "waits for approval",
        ),
        (json!({ "ask": "plain", "frontend_tools": [{ "name": "f" }] }), 422, "Field required"),
        (
            json!({ "ask": "plain", "frontend_tools": [{ "name": "f", "description": "d", "mode": "x" }] }),
            422,
            "'pause' or 'noop'",
        ),
        (
            json!({ "ask": "plain", "stream": true, "frontend_tools": [tool("run_sql")] }),
            400,
            "conflicts with a built-in",
        ),
        (json!({ "ask": "plain", "stream": true, "frontend_tools": [tool("f"), tool("f")] }), 400, "Duplicate"),
        (json!({ "ask": "plain", "stream": true, "frontend_tools": [tool("")] }), 400, "empty name"),
        (json!({ "ask": "plain", "stream": true, "frontend_tools": [tool("a b")] }), 400, "letters, digits"),
        (json!({ "ask": "plain", "frontend_tools": [tool("f")] }), 400, "stream=true"),
        (
            json!({ "ask": "plain", "frontend_tool_results": [{ "tool_call_id": "c", "tool_name": "f", "result": {} }] }),
            422,
            "valid string",
        ),
        (
            json!({ "ask": "plain", "frontend_tool_results": [{ "tool_call_id": "c", "result": "x" }] }),
            422,
            "Field required",
        ),
        (json!({ "ask": "plain", "additional_system_prompt": 1 }), 422, "valid string"),
        (json!({ "ask": "plain", "behavior_controls": { "intro": "perhaps" } }), 422, "valid boolean"),
        (json!({ "ask": "plain", "behavior_controls": [] }), 422, "valid dictionary"),
        (json!({ "tool_decisions": [], "frontend_tool_results": [] }), 400, "`ask` is empty"),
    ];
    for (body, status, words) in cases {
        let reply = server.post(CHAT, &body, None).await;
        assert_eq!(reply.status, status, "{body}: {}", reply.text);
        let detail = &reply.json()["detail"];
        assert_eq!(detail.is_array(), status == 422, "{body}: {detail}");
        assert!(detail.to_string().contains(words), "{body}: {detail}");
        for fault in detail.as_array().into_iter().flatten() {
            assert!(fault["type"].is_string() && fault["loc"][0] == "body" && fault["msg"].is_string(), "{fault}");
        }
    }
    assert_eq!(server.model.requests().len(), 0, "nothing was asked");
}

#[tokio::test]
async fn every_fault_of_a_request_is_in_one_answer() {
    let server = started().await;
    let reply = server.post(CHAT, &json!({ "stream": "perhaps", "model": 7 }), None).await;
    let places: Vec<Value> =
        reply.json()["detail"].as_array().unwrap().iter().map(|fault| fault["loc"][1].clone()).collect();
    assert_eq!(places, ["ask", "model", "stream"]);
}

#[tokio::test]
async fn a_body_is_read_whatever_its_type() {
    let server = started().await;
    let send = |body: &'static str, kind: &'static str| {
        server.send(server.http.post(server.url(CHAT)).header("content-type", kind).body(body), None)
    };
    assert_eq!(send(r#"{"ask": "plain"}"#, "text/plain").await.json()["analysis"], "Hello there.");
    assert_eq!(
        send(
            r#"{"ask": "plain", "conversation_id": 7, "meta": {}, "user_id": "u", "x": null}"#,
            "application/x-www-form-urlencoded"
        )
        .await
        .status,
        200
    );
    let bad = send("{", "application/json").await;
    assert_eq!((bad.status, &bad.json()["detail"][0]["type"]), (422, &json!("json_invalid")));
    assert_eq!(send("", "application/json").await.status, 422);
}

#[tokio::test]
async fn faults_outside_of_the_body_have_the_same_shape() {
    let settings = TestSettings::default().script(super::script());
    let server = TestServer::start(settings.change(|settings| settings.http.max_query_bytes.0 = 200)).await;
    let long = json!({ "ask": "x".repeat(500) });
    for (reply, status) in [
        (server.post(CHAT, &long, None).await, 413),
        (server.get(CHAT, None).await, 405),
        (server.post("/api/checks/execute", &json!({}), None).await, 501),
        (server.post("/api/oauth/callback", &json!({}), None).await, 501),
        (server.post("/api/investigate", &json!({}), None).await, 404),
    ] {
        assert_eq!(reply.status, status, "{}", reply.text);
        assert!(reply.json()["detail"].is_string(), "{}", reply.text);
    }
}

#[tokio::test]
async fn too_many_runs_are_refused() {
    let settings = TestSettings::default().script(super::script());
    let server = TestServer::start(settings.change(|settings| settings.agent.max_concurrent_runs = 1)).await;
    let one = server.http.post(server.url(CHAT)).json(&asked("hang")).send().await.unwrap();
    let reply = server.post(CHAT, &asked("plain"), None).await;
    assert_eq!((reply.status, reply.json()["detail"].is_string()), (429, true), "{}", reply.text);
    drop(one);
}

#[tokio::test]
async fn keys_of_its_own() {
    let settings = TestSettings::default().script(super::script()).tokens("server-tok:admin");
    let server = TestServer::start(settings.change(|settings| {
        settings.holmes.api_keys = vec!["bare-key".to_owned(), "ui=named-key:write".to_owned()];
    }))
    .await;
    let asks = |headers: &[(&'static str, &'static str)]| {
        let mut request = server.http.post(server.url(CHAT)).json(&json!({ "ask": "plain" }));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        server.send(request, None)
    };
    for headers in [
        &[("x-api-key", "bare-key")][..],
        &[("X-API-Key", "named-key")],
        &[("authorization", "Bearer bare-key")],
        &[("authorization", "bEaReR named-key")],
        &[("x-api-key", "bare-key"), ("authorization", "Bearer wrong")],
    ] {
        assert_eq!(asks(headers).await.status, 200, "{headers:?}");
    }
    for headers in [
        &[][..],
        &[("x-api-key", "wrong")],
        &[("x-api-key", "wrong"), ("authorization", "Bearer bare-key")],
        &[("authorization", "Bearer server-tok")],
        &[("authorization", "bare-key")],
    ] {
        refused(&asks(headers).await);
    }
    refused(&server.get("/api/model", None).await);
    refused(&server.get("/api/info", None).await);
    assert_eq!(server.get("/healthz", None).await.status, 200);
    assert_eq!(server.get("/readyz", None).await.status, 200);
    let runs = server.get("/v1/agent/runs", Some("server-tok")).await;
    assert_eq!(runs.status, 200, "the other routes have their own tokens: {}", runs.text);
}

#[test]
fn keys_are_read_from_the_environment_and_never_shown() {
    use querent_flight::config::{Config, SettingSources};
    let with = |keys: &str| {
        let environment = [("QUERENT_HOLMES_API_KEY".to_owned(), keys.to_owned())].into();
        Config::load(&SettingSources { environment, ..SettingSources::default() })
    };
    let config = with("secret-one, ui=secret-two:write").unwrap();
    let tokens = config.settings.holmes.tokens();
    let subjects: Vec<String> = tokens.iter().map(|token| token.subject_or_default()).collect();
    assert_eq!((tokens.len(), subjects[1].as_str()), (2, "ui"));
    let shown: String = config.effective().iter().map(|setting| setting.value.clone()).collect();
    assert!(!shown.contains("secret") && !format!("{:?}", config.settings).contains("secret"));
    let error = with("secret-one,x=secret-one").unwrap_err().to_string();
    assert!(error.contains("holmes.api_keys") && !error.contains("secret"), "{error}");
}

#[tokio::test]
async fn the_servers_tokens_where_there_are_no_keys() {
    let server = TestServer::start(TestSettings::default().script(super::script()).tokens("tok:read")).await;
    let request = || server.http.get(server.url("/api/model"));
    assert_eq!(server.send(request().header("x-api-key", "tok"), None).await.status, 200);
    assert_eq!(server.get("/api/model", Some("tok")).await.status, 200);
    refused(&server.get("/api/model", None).await);
}

fn refused(reply: &HttpReply) {
    assert_eq!(reply.status, 401, "{}", reply.text);
    assert_eq!(reply.json(), json!({ "detail": "Invalid or missing API key" }));
}
