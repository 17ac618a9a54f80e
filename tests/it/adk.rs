//! ADK's API server as its clients see it: runs as events, approvals, sessions, and how bad requests are refused.

mod sequences;

use std::time::Duration;

use querent_flight::config::Settings;
use querent_tests::script::{run_sql, says, tool_call};
use querent_tests::{HttpReply, TestServer, TestSettings, collect_sse, wait_until};
use serde_json::{Value, json};

const TOKENS: &str = "ann-tok:write:ann,bob-tok:write:bob";
const SESSION: &str = "/apps/querent/users/u1/sessions/s1";

#[tokio::test]
async fn a_plain_answer_and_its_pieces() {
    let server = started(false).await;
    let whole = server.post("/run_sse", &asked("plain", false), None).await;
    assert_eq!((whole.status, whole.header("content-type")), (200, "text/event-stream"), "{}", whole.text);
    insta::assert_snapshot!("plain_whole", transcript(&whole));
    insta::assert_snapshot!("plain_streaming", transcript(&server.post("/run_sse", &asked("plain", true), None).await));

    let list = server.post("/run", &asked("plain", true), None).await;
    let events = list.json();
    assert_eq!(events.as_array().unwrap().len(), 1, "no pieces in a list: {events}");
    assert_eq!(events[0]["content"]["parts"][0]["text"], "Hello there.");
}

#[tokio::test]
async fn tools_are_calls_with_responses() {
    let server = started(false).await;
    let reply = server.post("/run_sse", &asked("tools", false), None).await;
    insta::assert_snapshot!("tools", transcript(&reply));
    let events = unnamed(&reply);
    let (call, response) = (&events[0]["content"]["parts"][1]["functionCall"], &events[1]["content"]["parts"][0]);
    assert_eq!(call["id"], response["functionResponse"]["id"]);
    assert!(response["functionResponse"]["response"].is_object());
}

#[tokio::test]
async fn thoughts_are_shown_when_asked_for() {
    let server = started(false).await;
    let mut body = asked("think", true);
    assert!(!server.post("/run_sse", &body, None).await.text.contains("\"thought\":"));
    body["modelOptions"] = json!({ "thinking": true });
    insta::assert_snapshot!("thinking", transcript(&server.post("/run_sse", &body, None).await));
}

#[tokio::test]
async fn an_approval_pauses_and_is_resumed_by_a_function_response() {
    let server = started(true).await;
    let paused = server.post("/run_sse", &asked("write", false), None).await;
    insta::assert_snapshot!("approval", transcript(&paused));
    let events = unnamed(&paused);
    let id = events[0]["longRunningToolIds"][0].as_str().unwrap();
    let resumed =
        server.post("/run_sse", &answered(id, "adk_request_confirmation", json!({"confirmed": true})), None).await;
    insta::assert_snapshot!("approval_resumed", transcript(&resumed));
    server.execute("SELECT * FROM kept").await;

    // Again: what came of it is reported, and nothing is executed. The opposite decision comes too late.
    server.execute("DROP TABLE kept").await;
    let decide = |wrapped: Value| answered(id, "adk_request_confirmation", wrapped);
    let again = server.post("/run_sse", &decide(json!({"response": "{\"confirmed\": true}"})), None).await;
    assert_eq!(again.text, resumed.text);
    let opposite = server.post("/run_sse", &decide(json!({"confirmed": false})), None).await;
    assert_eq!(opposite.status, 409, "{}", opposite.text);
    // The session tells all of it.
    let session = server.get(SESSION, None).await.json();
    let authors: Vec<&str> =
        session["events"].as_array().unwrap().iter().map(|event| event["author"].as_str().unwrap()).collect();
    assert_eq!(authors, ["user", "querent", "user", "querent", "querent", "querent"], "{session:#}");
}

#[tokio::test]
async fn a_denied_call_is_not_shown() {
    let server = started(true).await;
    let paused = unnamed(&server.post("/run_sse", &asked("write", false), None).await);
    let id = paused[0]["longRunningToolIds"][0].as_str().unwrap();
    let denied =
        server.post("/run_sse", &answered(id, "adk_request_confirmation", json!({"confirmed": false})), None).await;
    assert!(!denied.text.contains("functionCall") && !denied.text.contains("functionResponse"), "{}", denied.text);
    let server_tables = server.get("/v1/catalog/schema", None).await;
    assert!(!server_tables.text.contains("kept"), "{}", server_tables.text);
}

#[tokio::test]
async fn a_clients_tool_is_a_long_running_call() {
    let server = started(false).await;
    let mut body = asked("weather", false);
    body["tools"] = json!([{ "type": "function", "name": "get_weather", "description": "Weather", "parameters": {} }]);
    let paused = server.post("/run_sse", &body, None).await;
    insta::assert_snapshot!("client_tool", transcript(&paused));
    let id = unnamed(&paused)[0]["longRunningToolIds"][0].as_str().unwrap().to_owned();
    let resumed = server.post("/run_sse", &answered(&id, "get_weather", json!({"result": "rain"})), None).await;
    assert!(resumed.text.contains("It rains."), "{}", resumed.text);
    let told = server.model.requests().last().unwrap().messages.last().unwrap().content.clone();
    assert_eq!(told, "rain");
}

#[tokio::test]
async fn a_failure_is_an_error_frame_and_an_event_of_the_session() {
    let server = started(false).await;
    let reply = server.post("/run_sse", &asked("fail", true), None).await;
    insta::assert_snapshot!("error", transcript(&reply));
    assert_eq!(server.post("/run", &asked("fail", false), None).await.status, 502);
    let session = server.get(SESSION, None).await.json();
    let last = session["events"].as_array().unwrap().last().unwrap().clone();
    assert_eq!(last["errorCode"], "model_failed", "{session:#}");
}

/// Interfaces know events by their ids.
#[tokio::test]
async fn runs_that_did_not_begin_are_told_apart_in_the_session() {
    let script = json!({ "unavailable": "unreachable", "runs": [] });
    let server = TestServer::start(TestSettings::default().script(script)).await;
    for invocation in ["e-1", "e-2"] {
        let mut body = asked("plain", false);
        body["invocationId"] = json!(invocation);
        let refused = server.post("/run", &body, None).await;
        assert_eq!((refused.status, &refused.json()["error"]["code"]), (503, &json!("model_unreachable")));
    }
    let session = server.get(SESSION, None).await.json();
    let [first, second] = session["events"].as_array().unwrap().as_slice() else { panic!("{session:#}") };
    assert_eq!((&first["invocationId"], &second["invocationId"]), (&json!("e-1"), &json!("e-2")), "{session:#}");
    assert_eq!(first["errorCode"], "model_unreachable", "{session:#}");
    assert!(first["id"] != second["id"], "{session:#}");
}

#[tokio::test]
async fn a_client_that_goes_away_cancels_its_run() {
    let server = started(false).await;
    let response = server.http.post(server.url("/run_sse")).json(&asked("wait", true)).send().await.unwrap();
    drop(response);
    let is_cancelled = async || server.get("/v1/agent/runs", None).await.json()["runs"][0]["status"] == "cancelled";
    wait_until("the run is cancelled", is_cancelled).await;
}

#[tokio::test]
async fn sessions_have_the_keys_that_adk_declares() {
    let server = started(false).await;
    let made = server.post(SESSION, &json!({ "state": { "a": 1, "temp:b": 2 } }), None).await;
    assert_eq!(made.status, 200, "{}", made.text);
    assert_eq!(keys(&made.json()), ["id", "appName", "userId", "state", "events", "lastUpdateTime"]);
    assert_eq!(made.json()["state"], json!({ "a": 1 }));
    assert_eq!(server.post(SESSION, &json!({}), None).await.status, 409);

    let mut body = asked("plain", false);
    body["stateDelta"] = json!({ "c": [3] });
    server.post("/run_sse", &body, None).await;
    let patch = server.http.patch(server.url(SESSION)).json(&json!({ "stateDelta": { "a": null } }));
    let session = server.send(patch, None).await.json();
    assert_eq!(session["state"], json!({ "a": null, "c": [3] }));
    insta::assert_snapshot!("session_events", pretty(session["events"].as_array().unwrap()));

    let sessions = "/apps/querent/users/u1/sessions";
    for body in [
        json!({ "sessionId": 7 }),
        json!({ "sessionId": "s2", "session_id": "s3" }),
        json!({ "state": [1] }),
        json!({ "zzz": 1 }),
        json!({ "sessionId": "x".repeat(300) }),
    ] {
        assert_eq!(server.post(sessions, &body, None).await.status, 422, "{body}");
    }
    for path in [format!("{sessions}/{}", "x".repeat(300)), format!("/apps/querent/users/{}/sessions", "x".repeat(300))]
    {
        assert_eq!(server.post(&path, &json!({}), None).await.status, 422, "no run would take it: {path}");
    }
    let patch = json!({ "stateDelta": null, "state_delta": { "d": 4 } });
    let patched = server.send(server.http.patch(server.url(SESSION)).json(&patch), None).await.json();
    assert_eq!(patched["state"], json!({ "a": null, "c": [3], "d": 4 }));
    let minted = server.send(server.http.post(server.url(sessions)), None).await.json();
    assert!(!minted["id"].as_str().unwrap().is_empty());
    let listed = server.get(sessions, None).await.json();
    assert_eq!(listed.as_array().unwrap().len(), 2, "{listed}");
    assert_eq!(listed[0]["events"], json!([]));
    assert_eq!(server.get("/apps/other/users/u1/sessions/s1", None).await.status, 404);
    assert_eq!(server.send(server.http.delete(server.url(SESSION)), None).await.text, "null");
    assert_eq!(server.get(SESSION, None).await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_of_a_session_that_come_at_once_all_stay() {
    let server = started(false).await;
    assert_eq!(server.post(SESSION, &json!({}), None).await.status, 200);
    let changes = (0..20).map(|number| {
        let (own, shared) = (format!("own{number}"), format!("app:{number}"));
        let delta = json!({ "stateDelta": { (own): number, (shared): number } });
        server.send(server.http.patch(server.url(SESSION)).json(&delta), None)
    });
    for changed in futures::future::join_all(changes).await {
        assert_eq!(changed.status, 200, "{}", changed.text);
    }
    let state = server.get(SESSION, None).await.json()["state"].clone();
    assert_eq!(state.as_object().unwrap().len(), 40, "{state}");
}

#[tokio::test]
async fn sessions_share_the_state_of_their_user_and_of_their_application() {
    let server = TestServer::start(TestSettings::default().script(script()).tokens(TOKENS)).await;
    let sessions = |app: &str, user: &str| format!("/apps/{app}/users/{user}/sessions");
    let state_of =
        async |path: String, token: &'static str| server.get(&path, Some(token)).await.json()["state"].clone();
    let first = json!({ "state": { "own": 1, "user:tone": "brief", "app:unit": "km" } });
    let made = server.post(SESSION, &first, Some("ann-tok")).await.json();
    assert_eq!(made["state"], first["state"]);

    // By a run, and by a change.
    let mut body = asked("plain", false);
    body["sessionId"] = json!("s2");
    body["stateDelta"] = json!({ "user:tone": "long", "user:city": "Bern", "other": 2, "temp:x": 3 });
    assert_eq!(server.post("/run_sse", &body, Some("ann-tok")).await.status, 200);
    let shared = |own: Value| {
        let mut state = json!({ "user:tone": "long", "user:city": "Bern", "app:unit": "km" });
        state.as_object_mut().unwrap().extend(own.as_object().unwrap().clone());
        state
    };
    assert_eq!(state_of(SESSION.to_owned(), "ann-tok").await, shared(json!({ "own": 1 })));
    let listed = server.get(&sessions("querent", "u1"), Some("ann-tok")).await.json();
    assert_eq!(listed[0]["state"], shared(json!({ "other": 2 })), "{listed}");
    let patch = server.http.patch(server.url(SESSION)).json(&json!({ "stateDelta": { "app:unit": "mi" } }));
    assert_eq!(server.send(patch, Some("ann-tok")).await.json()["state"]["app:unit"], "mi");

    // Another user has the application's; another application, and another caller, have nothing of it.
    let made =
        async |path: String, token: &str| server.post(&path, &json!({}), Some(token)).await.json()["state"].clone();
    assert_eq!(made(sessions("querent", "u2"), "ann-tok").await, json!({ "app:unit": "mi" }));
    assert_eq!(made(sessions("other", "u1"), "ann-tok").await, json!({}));
    assert_eq!(made(sessions("querent", "u1"), "bob-tok").await, json!({}));

    // It outlives the session that it came with, and is no session itself.
    server.send(server.http.delete(server.url(SESSION)), Some("ann-tok")).await;
    assert_eq!(made(sessions("querent", "u1"), "ann-tok").await["user:city"], "Bern");
    assert_eq!(server.get(&sessions("querent", "u1"), Some("ann-tok")).await.json().as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn sessions_are_their_owners() {
    let server = TestServer::start(TestSettings::default().script(script()).tokens(TOKENS)).await;
    assert_eq!(server.post("/run_sse", &asked("plain", false), Some("ann-tok")).await.status, 200);
    assert_eq!(server.get(SESSION, Some("bob-tok")).await.status, 404);
    assert_eq!(server.post("/run_sse", &asked("plain", false), Some("bob-tok")).await.status, 404);
    let delete = server.http.delete(server.url(SESSION));
    assert_eq!(server.send(delete, Some("bob-tok")).await.status, 404);
    assert_eq!(server.get(SESSION, Some("ann-tok")).await.status, 200);
}

#[tokio::test]
async fn what_the_server_is() {
    let server = started(false).await;
    assert_eq!(server.get("/list-apps?relative_path=./", None).await.json(), json!(["querent"]));
    let detailed = server.get("/list-apps?detailed=true", None).await.json();
    assert_eq!(
        (&detailed["apps"][0]["name"], &detailed["apps"][0]["rootAgentName"]),
        (&json!("querent"), &json!("querent"))
    );
    assert!(server.get("/version", None).await.json()["version"].is_string());
    for stub in [
        "/apps/querent/eval_sets",
        "/apps/querent/eval_results",
        "/debug/trace/session/s1",
        "/dev/apps/querent/eval_sets",
        "/dev/apps/querent/eval_results",
        "/dev/apps/querent/debug/trace/session/s1",
        "/apps/querent/users/u1/sessions/s1/artifacts",
    ] {
        assert_eq!(server.get(stub, None).await.json(), json!([]), "{stub}");
    }
}

#[tokio::test]
async fn bad_requests_are_refused() {
    let server = started(false).await;
    let with = |field: &str, value: Value| {
        let mut body = asked("plain", false);
        body[field] = value;
        body
    };
    let part = |part: Value| with("newMessage", json!({ "role": "user", "parts": [part] }));
    for (body, status) in [
        (json!([]), 400),
        (json!({}), 422),
        (with("userId", Value::Null), 422),
        (with("appName", json!(7)), 422),
        (with("sessionId", json!("x".repeat(300))), 422),
        (with("streaming", json!("yes")), 422),
        (with("stateDelta", json!([1])), 422),
        (with("newMessage", json!({ "role": "user", "parts": [] })), 422),
        (with("newMessage", json!(7)), 422),
        (with("newMessage", json!({ "role": "user", "parts": [{ "text": "plain" }], "zzz": 1 })), 422),
        (part(json!({ "text": "plain", "zzz": 1 })), 422),
        (part(json!({ "executableCode": { "code": "1 + 1", "language": "PYTHON" } })), 422),
        (with("newMessage", json!({ "role": "model", "parts": [{ "text": "plain" }] })), 422),
        (part(json!({ "text": "plain", "inlineData": { "mimeType": "text/plain", "data": "aGk=" } })), 422),
        (part(json!({ "text": "plain", "functionResponse": { "id": "x", "name": "f", "response": {} } })), 422),
        (with("user_id", json!("another")), 422),
        (with("customMetadata", json!(7)), 422),
        (with("functionCallEventId", json!(7)), 422),
        (with("serviceTier", json!([])), 422),
        (part(json!({ "text": "plain", "thought": "yes" })), 422),
        (part(json!({ "text": "plain", "videoMetadata": 7 })), 422),
        (part(json!({ "inlineData": { "mimeType": "text/csv", "data": "aGk=", "zzz": 1 } })), 422),
        (part(json!({ "fileData": { "fileUri": "gs://a/b", "mimeType": 7 } })), 422),
        (part(json!({ "functionResponse": { "id": "x", "name": "f", "response": {}, "willContinue": true } })), 422),
        (part(json!({ "functionResponse": { "id": "x", "name": 7, "response": {} } })), 422),
        (part(json!({ "functionResponse": { "name": "x", "response": {} } })), 422),
        (part(json!({ "functionResponse": { "id": "x", "name": "adk_request_confirmation", "response": {} } })), 422),
        (
            part(
                json!({ "functionResponse": { "id": "x", "name": "adk_request_confirmation", "response": { "confirmed": true, "payload": { "table": "other" } } } }),
            ),
            422,
        ),
        (
            part(
                json!({ "functionResponse": { "id": "forged", "name": "adk_request_confirmation", "response": { "confirmed": true } } }),
            ),
            400,
        ),
        (part(json!({ "inlineData": { "mimeType": "text/csv", "data": "***" } })), 400),
        (part(json!({ "inlineData": { "mimeType": "text/csv" } })), 400),
        (part(json!({ "fileData": { "mimeType": "text/csv" } })), 400),
        (with("modelOptions", json!({ "thinking": "yes" })), 422),
    ] {
        let reply = server.post("/run_sse", &body, None).await;
        assert_eq!(reply.status, status, "{body}: {}", reply.text);
        assert!(reply.json()["error"]["message"].is_string() && reply.json()["detail"].is_string(), "{}", reply.text);
        assert_ne!(reply.json()["error"]["param"], "input", "another protocol's field: {}", reply.text);
    }
    assert_eq!(server.get("/v1/agent/runs", None).await.json()["runs"], json!([]), "nothing was run");
}

/// One that was made by itself stays.
#[tokio::test]
async fn a_refused_run_leaves_no_session_that_it_would_have_begun() {
    let server = started(false).await;
    let mut full = asked("plain", false);
    full["stateDelta"] = json!({ "a": "x".repeat(1 << 20) });
    let refused = [answered("forged", "get_weather", json!({})), asked(" ", false), full];
    for sessions in [0, 1] {
        for body in &refused {
            let reply = server.post("/run_sse", body, None).await;
            assert_eq!(reply.status, 400, "{}", reply.text);
        }
        let listed = server.get("/apps/querent/users/u1/sessions", None).await.json();
        assert_eq!(listed.as_array().unwrap().len(), sessions, "{listed}");
        server.post(SESSION, &json!({}), None).await;
    }
}

#[tokio::test]
async fn strict_servers_refuse_unknown_sessions() {
    let settings =
        TestSettings::default().script(script()).change(|settings| settings.agent.adk_strict_sessions = true);
    let server = TestServer::start(settings).await;
    let refused = server.post("/run_sse", &asked("plain", false), None).await;
    assert_eq!((refused.status, &refused.json()["error"]["code"]), (404, &json!("conversation_not_found")));
    server.post(SESSION, &json!({}), None).await;
    assert_eq!(server.post("/run_sse", &asked("plain", false), None).await.status, 200);
}

/// Starts a server with the script and a table.
pub(crate) async fn started(write_tools: bool) -> TestServer {
    started_with(move |settings| settings.agent.write_tools = write_tools).await
}

/// Starts a server whose runs time out after a moment.
pub(crate) async fn started_in_haste() -> TestServer {
    started_with(|settings| settings.agent.run_timeout.0 = Duration::from_millis(300)).await
}

async fn started_with(change: impl FnOnce(&mut Settings) + Send + 'static) -> TestServer {
    TestServer::start(TestSettings::default().script(script()).change(change)).await
}

/// Fills the model's context with a conversation and asks a question about it.
pub(crate) fn long_conversation() -> Value {
    let mut said = Vec::new();
    for _ in 0..12 {
        said.push(json!({ "role": "user", "content": "how was the night? ".repeat(40) }));
        said.push(json!({ "role": "assistant", "content": "quiet, like the others. ".repeat(60) }));
    }
    said.push(json!({ "role": "user", "content": "and later?" }));
    json!(said)
}

pub(crate) fn script() -> Value {
    let usage = json!({ "input_tokens": 20, "output_tokens": 5 });
    let weather = |city: &str| tool_call("get_weather", json!({ "city": city }));
    let carriers = "SELECT * FROM (VALUES ('UA', 3), ('B6', 2), ('EV', 1)) AS t(carrier, flights)";
    json!({
        "capabilities": { "tool_style": "native", "thinking": true, "small": false, "context_tokens": 8192 },
        "runs": [
            { "when": "plain", "turns": [{ "events": [{ "text": "Hello " }, { "text": "there." }], "usage": usage }] },
            { "when": "think", "turns": [{ "events": [{ "thinking": "hm" }, { "text": "Yes." }], "usage": usage }] },
            { "when": "tools", "turns": [
                { "events": [{ "text": "Let me look." }, run_sql("SELECT 1 AS one")], "usage": usage },
                says("It is 1."),
            ] },
            { "when": "parallel", "turns": [
                { "events": [run_sql("SELECT 1 AS one"), run_sql("SELECT 2 AS two")], "usage": usage },
                says("Both."),
            ] },
            { "when": "nowhere", "turns": [{ "events": [run_sql("SELECT * FROM nowhere")], "usage": usage }, says("It is not there.")] },
            { "when": "chart", "turns": [{ "events": [run_sql(carriers)], "usage": usage }, says("Drawn.")] },
            { "when": "structured", "turns": [says("{\"n\": 3}")] },
            { "when": "later", "turns": [says("Nothing more.")] },
            { "when": "night", "turns": [says("The nights were quiet.")] },
            { "when": "write", "turns": [
                { "events": [tool_call("create_table_as", json!({ "table": "kept", "sql": "SELECT 1 AS one" }))], "usage": usage },
                says("Done."),
            ] },
            { "when": "weather", "turns": [{ "events": [weather("Oslo")] }, says("It rains.")] },
            { "when": "cities", "turns": [{ "events": [weather("Oslo"), weather("Rome")] }, says("Rain and sun.")] },
            { "when": "fail", "turns": [{ "events": [{ "text": "Well" }, { "error": "out of order" }] }] },
            { "when": "wait", "turns": [{ "events": [{ "text": "Well" }, "hang"] }] },
        ],
    })
}

fn asked(text: &str, streaming: bool) -> Value {
    json!({
        "appName": "querent",
        "userId": "u1",
        "sessionId": "s1",
        "invocationId": "e-1",
        "newMessage": { "role": "user", "parts": [{ "text": text }] },
        "streaming": streaming,
    })
}

fn answered(id: &str, name: &str, response: Value) -> Value {
    let mut body = asked("", false);
    body["newMessage"]["parts"] = json!([{ "functionResponse": { "id": id, "name": name, "response": response } }]);
    body
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

/// Returns the data of frames without names.
pub(crate) fn unnamed(reply: &HttpReply) -> Vec<Value> {
    let frames = reply.text.split("\n\n").filter(|frame| !frame.is_empty());
    frames.map(|frame| serde_json::from_str(frame.strip_prefix("data: ").expect(frame)).expect(frame)).collect()
}

fn transcript(reply: &HttpReply) -> String {
    assert_eq!(reply.status, 200, "{}", reply.text);
    pretty(&unnamed(reply))
}

fn pretty(events: &[Value]) -> String {
    masked(&json!(events))
}

/// Returns frames of named events, one line each, masked as by [`masked`].
pub(crate) fn named_transcript(reply: &HttpReply) -> String {
    assert_eq!(reply.status, 200, "{}", reply.text);
    let line = |frame: querent_tests::SseFrame| format!("{} {}", frame.event, still(frame.data));
    without_ids(collect_sse(&reply.text).into_iter().map(line).collect())
}

/// Returns one line for each entry of a list, with what differs from run to run replaced: ids by the position at which
/// they first occur, times by 0.
pub(crate) fn masked(list: &Value) -> String {
    without_ids(list.as_array().unwrap().iter().map(|entry| still(entry.clone()).to_string()).collect())
}

/// Ids with and without hyphens are equal.
pub(crate) fn without_ids(mut lines: Vec<String>) -> String {
    let mut ids: Vec<String> = Vec::new();
    for line in &mut lines {
        let mut at = 0;
        while at < line.len() {
            let long = line.get(at..at + 36).filter(|id| uuid::Uuid::try_parse(id).is_ok());
            let short = line.get(at..at + 32).filter(|id| id.bytes().all(|byte| byte.is_ascii_hexdigit()));
            if let Some(found) = long.or(short).map(str::to_owned) {
                let id = found.replace('-', "");
                let place = ids.iter().position(|known| *known == id).unwrap_or_else(|| {
                    ids.push(id);
                    ids.len() - 1
                });
                line.replace_range(at..at + found.len(), &format!("<run{place}>"));
            }
            at += 1;
        }
    }
    lines.join("\n")
}

fn still(mut value: Value) -> Value {
    const MOVING: [&str; 14] = [
        "timestamp",
        "Timestamp",
        "created_at",
        "completed_at",
        "created",
        "elapsed_ms",
        "SeqId",
        "StartSeqId",
        "LatestSeqId",
        // They follow the words of the prompt.
        "tokens",
        "max_tokens",
        "initial_tokens",
        "compacted_tokens",
        "lastUpdateTime",
    ];
    match &mut value {
        Value::Array(values) => values.iter_mut().for_each(|value| *value = still(value.take())),
        Value::Object(fields) => {
            for (name, value) in fields.iter_mut() {
                *value = match value {
                    Value::Number(_) if MOVING.contains(&name.as_str()) => json!(0),
                    Value::String(_) if name.ends_with("_at") => json!("<time>"),
                    _ => still(value.take()),
                }
            }
        }
        _ => {}
    }
    value
}
