//! Every rule of the request, with its status.

use querent_tests::{TestServer, TestSettings};
use serde_json::{Value, json};

use super::{ABORT, STREAM, say, started};

#[tokio::test]
async fn wrong_fields_are_refused() {
    let server = started().await;
    let with = |name: &str, value: Value| json!({ "input": "plain", name: value });
    let who = |settings: Value| json!({ "input": "plain", "sessionSettings": settings });
    let known = |name: &str, value: Value| who(json!({ "externalId": "ann", name: value }));
    let internal = |name: &str, value: Value| who(json!({ "internalId": "ann", name: value }));
    let bodies = [
        with("input", json!(7)),
        with("input", json!("  ")),
        with("input", json!("x".repeat(300_000))),
        with("chatId", json!(7)),
        with("chatId", json!("")),
        with("chatId", json!("x".repeat(300))),
        with("messageId", json!(1_717_500_000_000_u64)),
        with("messageId", json!("1717500000000")),
        with("messageId", json!("171750000000-message")),
        with("messageId", json!("1717500000000-Message")),
        with("messageId", json!("x1717500000000-message")),
        with("messageId", json!("1717500000000-message ")),
        with("messageId", json!("")),
        with("isDevMode", json!("yes")),
        with("activeBranchName", json!(1)),
        with("isDefaultBranch", json!("true")),
        with("images", json!({})),
        with("images", json!([{ "mimeType": "image/png" }])),
        with("images", json!([{ "data": "aGk=" }])),
        with("context", json!([])),
        who(json!([])),
        who(json!("ann")),
        who(json!({})),
        who(json!({ "email": "ann@example.com" })),
        who(json!({ "externalId": "ann", "internalId": "ann" })),
        who(json!({ "externalId": "" })),
        who(json!({ "externalId": "Ann" })),
        who(json!({ "externalId": "ann lee" })),
        who(json!({ "externalId": " ann" })),
        who(json!({ "externalId": 7 })),
        who(json!({ "internalId": "nobody@example.com" })),
        known("email", json!(7)),
        known("userAttributes", json!({ "city": "Oslo" })),
        known("userAttributes", json!([{ "name": "city" }])),
        known("userAttributes", json!([{ "name": "city", "value": 7 }])),
        known("userAttributes", json!([{ "name": "city", "value": "Oslo", "scope": "row" }])),
        known("userAttributes", json!([{ "name": "a", "value": "1" }, { "name": "a", "value": "2" }])),
        known("groups", json!("admins")),
        known("groups", json!([7])),
        known("roles", json!("admins")),
        known("securityContext", json!("x")),
        known("securityContext", json!({ "x": "y".repeat(70_000) })),
        known("isEphemeral", json!("no")),
        known("ephemeralTtlSeconds", json!(0)),
        known("ephemeralTtlSeconds", json!(-5)),
        known("ephemeralTtlSeconds", json!("60")),
        who(json!({ "externalId": "ann", "isEphemeral": false, "ephemeralTtlSeconds": 60 })),
        internal("userAttributes", json!([])),
        internal("groups", json!([])),
        internal("roles", json!([])),
        internal("securityContext", json!({})),
    ];
    for body in bodies {
        let reply = say(&server, body.clone()).await;
        assert_eq!(reply.status, 400, "{body}: {}", reply.text);
        let error = reply.json();
        assert!(error["error"].is_string() && error.as_object().unwrap().len() == 1, "{error}");
    }
    assert!(server.model.requests().is_empty(), "nothing was run");
    for taken in [
        with("images", json!([{ "mimeType": "image/png", "data": "aGk=", "name": "x" }])),
        with("workbookContext", json!({ "any": "thing" })),
        with("messageId", Value::Null),
        with("messageId", json!("17175000000001-message")),
        known("roles", json!(["viewer"])),
        known("userAttributes", json!([{ "name": "city", "value": "Oslo" }])),
    ] {
        let reply = say(&server, taken.clone()).await;
        assert_eq!(reply.status, 200, "{taken}: {}", reply.text);
    }
}

#[tokio::test]
async fn wrong_bodies_are_refused_in_cubes_shape() {
    let server = started().await;
    for (path, body, status) in [
        (STREAM, "{", 400),
        (STREAM, "[]", 400),
        (STREAM, "", 400),
        (STREAM, "\"plain\"", 400),
        (ABORT, "{}", 400),
        (ABORT, r#"{"chatId": 7}"#, 400),
        (ABORT, r#"{"chatId": "c"}"#, 400),
        (ABORT, r#"{"chatId": "c", "sessionSettings": {"externalId": "ann"}}"#, 404),
        ("/api/v1/embed/generate-session", "{}", 400),
        ("/api/v1/embed/generate-session", "nothing", 400),
        ("/api/v1/embed/session/token", "{}", 400),
        ("/api/v1/embed/session/token", r#"{"sessionId": "unknown"}"#, 404),
        ("/api/v1/embed/nothing", "{}", 404),
        ("/api/v1/public/acme/agents/1/chat/nothing", "{}", 404),
    ] {
        let request = server.http.post(server.url(path)).header("authorization", "Api-Key k").body(body);
        let reply = server.send(request, None).await;
        assert_eq!(reply.status, status, "{path} {body}: {}", reply.text);
        assert!(reply.json()["error"].is_string(), "{path} {body}: {}", reply.text);
    }
    let settings = TestSettings::default().change(|settings| settings.http.max_query_bytes.0 = 1_024);
    let narrow = TestServer::start(settings).await;
    let reply = say(&narrow, json!({ "input": "x".repeat(2_000) })).await;
    assert_eq!(reply.status, 400, "{}", reply.text);
    assert!(reply.json()["error"].is_string());
}

#[tokio::test]
async fn a_key_is_needed() {
    let server = started().await;
    let body = json!({ "input": "plain", "sessionSettings": { "externalId": "ann" } });
    for authorization in ["", "Api-Key", "Api-Key ", "Bearer unknown", "Basic YTpi"] {
        for path in [STREAM, ABORT, "/api/v1/embed/generate-session", "/api/v1/embed/session/token"] {
            assert_eq!(status(&server, path, authorization, &body).await, 401, "{path} {authorization}");
        }
    }
    assert_eq!(status(&server, STREAM, "api-key any", &body).await, 200);
}

async fn status(server: &TestServer, path: &str, authorization: &str, body: &Value) -> u16 {
    let mut request = server.http.post(server.url(path)).json(body);
    if !authorization.is_empty() {
        request = request.header("authorization", authorization);
    }
    server.send(request, None).await.status
}
