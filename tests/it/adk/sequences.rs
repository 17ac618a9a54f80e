//! Golden transcripts of what ADK's clients see beyond a plain answer and a call: calls side by side and failing, charts,
//! runs that are cut, decisions, and conversations that go on. The protocol has no event for a compaction and no way
//! to ask for an answer of a schema.

use querent_tests::{TestServer, collect_sse, read_until};
use serde_json::{Value, json};

use super::{SESSION, answered, asked, pretty, started, started_in_haste, transcript, unnamed};

#[tokio::test]
async fn calls_and_their_results() {
    let server = started(false).await;
    for name in ["parallel", "nowhere", "chart"] {
        let reply = server.post("/run_sse", &asked(name, false), None).await;
        insta::assert_snapshot!(name, transcript(&reply));
    }
}

#[tokio::test]
async fn a_run_out_of_time() {
    let server = started_in_haste().await;
    insta::assert_snapshot!("timeout", transcript(&server.post("/run_sse", &asked("wait", true), None).await));
    insta::assert_snapshot!("timeout_in_the_session", pretty(&events_of_session(&server).await));
}

/// Cancels by this server's own route: ADK cancels by closing the connection.
#[tokio::test]
async fn a_cancelled_run() {
    let server = started(false).await;
    let mut response = server.http.post(server.url("/run_sse")).json(&asked("wait", true)).send().await.unwrap();
    let begun = read_until(&mut response, "Well").await;
    let run = server.get("/v1/agent/runs", None).await.json()["runs"][0]["run_id"].clone();
    let cancel = format!("/v1/agent/runs/{}/cancel", run.as_str().unwrap());
    assert_eq!(server.post(&cancel, &json!({}), None).await.status, 200);
    let rest = response.text().await.unwrap();
    insta::assert_snapshot!("cancelled", pretty(&frames_of(&[begun, rest].concat())));
    insta::assert_snapshot!("cancelled_in_the_session", pretty(&events_of_session(&server).await));
}

#[tokio::test]
async fn a_denied_call() {
    let server = started(true).await;
    let paused = unnamed(&server.post("/run_sse", &asked("write", false), None).await);
    let id = paused[0]["longRunningToolIds"][0].as_str().unwrap();
    let no = json!({ "confirmed": false, "hint": "too large" });
    let denied = server.post("/run_sse", &answered(id, "adk_request_confirmation", no), None).await;
    insta::assert_snapshot!("denied", transcript(&denied));
    insta::assert_snapshot!("denied_in_the_session", pretty(&events_of_session(&server).await));
}

#[tokio::test]
async fn a_refused_run_leaves_its_session_as_it_was() {
    let server = started(false).await;
    server.post(SESSION, &json!({ "a": 1 }), None).await;
    let mut body = asked("plain", false);
    body["stateDelta"] = json!({ "a": 2, "user:b": 3 });
    // The second is what the server's own tool is called beside the first.
    let tool = |name: &str| json!({ "type": "function", "name": name, "parameters": {} });
    body["tools"] = json!([tool("run_sql"), tool("querent_run_sql")]);
    let refused = server.post("/run_sse", &body, None).await;
    assert_eq!(refused.status, 400, "{}", refused.text);
    assert_eq!(server.get(SESSION, None).await.json()["state"], json!({ "a": 1 }));
    body["tools"] = json!([]);
    assert_eq!(server.post("/run_sse", &body, None).await.status, 200);
    assert_eq!(server.get(SESSION, None).await.json()["state"], json!({ "a": 2, "user:b": 3 }));
}

/// Two calls at once, each with its result.
#[tokio::test]
async fn clients_tools_and_their_results() {
    let server = started(false).await;
    let mut body = asked("cities", false);
    body["tools"] = json!([{ "type": "function", "name": "get_weather", "parameters": {} }]);
    let paused = server.post("/run_sse", &body, None).await;
    insta::assert_snapshot!("client_tools", transcript(&paused));
    let ids: Vec<Value> = unnamed(&paused).iter().map(|event| event["longRunningToolIds"][0].clone()).collect();
    let result = |id: &Value, said: &str| json!({ "functionResponse": { "id": id, "name": "get_weather", "response": { "result": said } } });
    body["newMessage"]["parts"] = json!([result(&ids[0], "rain"), result(&ids[1], "sun")]);
    let resumed = server.post("/run_sse", &body, None).await;
    insta::assert_snapshot!("client_tools_resumed", transcript(&resumed));
    insta::assert_snapshot!("client_tools_in_the_session", pretty(&events_of_session(&server).await));
    let told = server.model.requests().last().unwrap().messages.clone();
    let said: Vec<&str> = told.iter().rev().take(2).map(|message| message.content.as_str()).collect();
    assert_eq!(said, ["sun", "rain"]);
}

#[tokio::test]
async fn a_conversation_that_goes_on() {
    let server = started(false).await;
    server.post("/run_sse", &asked("tools", false), None).await;
    insta::assert_snapshot!("continued", transcript(&server.post("/run_sse", &asked("later", true), None).await));
    insta::assert_snapshot!("continued_in_the_session", pretty(&events_of_session(&server).await));
    let told = server.model.requests().last().unwrap().messages.clone();
    let said: Vec<&str> = told.iter().skip(1).map(|message| message.content.as_str()).collect();
    assert_eq!((said.len(), said[0], said[3], said[4]), (5, "tools", "It is 1.", "later"), "{said:?}");
}

async fn events_of_session(server: &TestServer) -> Vec<Value> {
    server.get(SESSION, None).await.json()["events"].as_array().unwrap().clone()
}

fn frames_of(text: &str) -> Vec<Value> {
    // The frames have no names.
    let named = text.replace("data: ", "event: message\ndata: ");
    collect_sse(&named).into_iter().map(|frame| frame.data).collect()
}
