//! Golden transcripts of the ask route, as `agent.rs` has them of the agent itself: those that need a server. The
//! protocol asks nobody, knows no client's tools and no schema of an answer, and has no event
//! for a compaction, which `sessions.rs` brings about.

use querent_tests::{TestServer, collect_sse, read_until};
use serde_json::{Value, json};

use crate::adk::{masked, named_transcript, started, started_in_haste};

const ASK: &str = "/v1/agent/ask";

#[tokio::test]
async fn answers_and_calls() {
    let server = started(true).await;
    for name in ["plain", "parallel", "nowhere", "chart", "fail"] {
        insta::assert_snapshot!(name, named_transcript(&server.post(ASK, &question(name), None).await));
    }
}

/// A call that would wait for a person or for the client fails, and the run continues.
#[tokio::test]
async fn nobody_is_asked() {
    let server = started(true).await;
    insta::assert_snapshot!("approval", named_transcript(&server.post(ASK, &question("write"), None).await));
    insta::assert_snapshot!("client_tool", named_transcript(&server.post(ASK, &question("weather"), None).await));
}

#[tokio::test]
async fn a_run_out_of_time() {
    let server = started_in_haste().await;
    let reply = server.post(ASK, &question("wait"), None).await;
    insta::assert_snapshot!("timeout", named_transcript(&reply));
    insta::assert_snapshot!("timeout_stored", stored(&server, &run_id(&reply.text)).await);
}

/// Returns the client's stream and the stored run.
#[tokio::test]
async fn a_cancelled_run() {
    let server = started(false).await;
    let mut response = server.http.post(server.url(ASK)).json(&question("wait")).send().await.unwrap();
    let begun = read_until(&mut response, "Well").await;
    let id = run_id(&begun);
    let cancelled = server.post(&format!("/v1/agent/runs/{id}/cancel"), &json!({}), None).await;
    let text = [begun, response.text().await.unwrap()].concat();
    let reply = querent_tests::HttpReply { text, ..cancelled.clone() };
    insta::assert_snapshot!("cancelled", named_transcript(&reply));
    insta::assert_snapshot!("cancelled_stored", stored(&server, &id).await);
    assert_eq!(cancelled.json()["status"], "cancelled", "{}", cancelled.text);
}

#[tokio::test]
async fn a_session_that_goes_on() {
    let server = started(false).await;
    let mut body = question("tools");
    body["session_id"] = json!("s-1");
    server.post(ASK, &body, None).await;
    body["question"] = json!("and later?");
    insta::assert_snapshot!("continued", named_transcript(&server.post(ASK, &body, None).await));
    let turns = server.get("/v1/agent/sessions/s-1/turns", None).await.json();
    insta::assert_snapshot!("continued_turns", masked(&turns["turns"]));
}

fn question(text: &str) -> Value {
    json!({ "question": text })
}

fn run_id(text: &str) -> String {
    let first = text.split_inclusive("\n\n").next().unwrap();
    collect_sse(first)[0].data["run_id"].as_str().unwrap().to_owned()
}

async fn stored(server: &TestServer, run_id: &str) -> String {
    masked(&json!([server.get(&format!("/v1/agent/runs/{run_id}"), None).await.json()]))
}
