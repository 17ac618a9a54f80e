//! Golden transcripts of `RunAgent`'s streams, and of the session events that those who follow a run get: every
//! sequence, in KsADK's dialect. An answer of a schema can be asked for on `/v1/responses` alone.

use querent_tests::{HttpReply, TestServer, collect_sse, read_until};
use serde_json::{Value, json};

use super::{RUN_AGENT, asked, data_of, followed_events, transcript};
use crate::adk::{long_conversation, masked, started, started_in_haste};

const FOLLOWED: &str = "/agentengine/api/v1/SubscribeRunEvents?SessionId=s1&InvocationId=i1";

#[tokio::test]
async fn answers_and_calls() {
    let server = started(false).await;
    for name in ["plain", "parallel", "nowhere", "chart"] {
        let mut body = streamed(name);
        body["SessionId"] = json!(name);
        insta::assert_snapshot!(name, transcript(&server.post(RUN_AGENT, &body, None).await));
    }
    let chart = FOLLOWED.replace("s1", "chart");
    let mut events = followed_events(&server.get(&chart, None).await);
    events.retain(|event| event["EventType"] == "tool_result");
    insta::assert_snapshot!("chart_followed", masked(&json!(events)));
}

#[tokio::test]
async fn a_run_out_of_time() {
    let server = started_in_haste().await;
    insta::assert_snapshot!("timeout", transcript(&server.post(RUN_AGENT, &streamed("wait"), None).await));
    insta::assert_snapshot!("timeout_followed", followed(&server).await);
}

/// Returns what the run's client receives, what a cancelling client receives, and what a following client receives.
#[tokio::test]
async fn a_cancelled_run() {
    let server = started(false).await;
    let mut response = server.http.post(server.url(RUN_AGENT)).json(&streamed("wait")).send().await.unwrap();
    let begun = read_until(&mut response, "Well").await;
    let mut follower = server.http.get(server.url(FOLLOWED)).send().await.unwrap();
    let followed_so_far = read_until(&mut follower, "in_progress").await;
    let done = data_of(&server, "CancelRun", json!({ "InvocationId": "i1" })).await;
    insta::assert_snapshot!("cancelled", frames(&[begun, response.text().await.unwrap()].concat()));
    insta::assert_snapshot!("cancelled_told", masked(&json!([done])));
    let text = [followed_so_far, follower.text().await.unwrap()].concat();
    let events = followed_events(&HttpReply { status: 200, headers: Default::default(), text });
    insta::assert_snapshot!("cancelled_followed", masked(&json!(events)));
    assert_eq!(followed_events(&server.get(FOLLOWED, None).await), events, "the same afterwards");
}

#[tokio::test]
async fn a_denied_call() {
    let server = started(true).await;
    let paused = server.post(RUN_AGENT, &streamed("write"), None).await;
    insta::assert_snapshot!("approval_followed", followed(&server).await);
    let response = last_response(&paused);
    let mut body = resumed(&response);
    body["ResponsesInput"] = json!([{
        "type": "mcp_approval_response",
        "approval_request_id": response["output"][0]["id"],
        "approve": false,
        "reason": "too large",
    }]);
    insta::assert_snapshot!("denied", transcript(&server.post(RUN_AGENT, &body, None).await));
    let told = server.model.requests().last().unwrap().messages.last().unwrap().content.clone();
    assert!(told.contains("denied") && told.contains("too large"), "{told}");
}

/// Two calls at once.
#[tokio::test]
async fn clients_tools_and_their_results() {
    let server = started(false).await;
    let mut body = streamed("cities");
    body["Tools"] = json!([{ "type": "function", "name": "get_weather", "parameters": { "type": "object" } }]);
    let paused = server.post(RUN_AGENT, &body, None).await;
    insta::assert_snapshot!("client_tools", transcript(&paused));
    insta::assert_snapshot!("client_tools_followed", followed(&server).await);
    let response = last_response(&paused);
    let output = |at: usize, said: &str| json!({ "type": "function_call_output", "call_id": response["output"][at]["call_id"], "output": said });
    let mut body = resumed(&response);
    body["InvocationId"] = json!("i2");
    body["ResponsesInput"] = json!([output(0, "rain"), output(1, "sun")]);
    insta::assert_snapshot!("client_tools_resumed", transcript(&server.post(RUN_AGENT, &body, None).await));
    let events = followed_events(&server.get(&FOLLOWED.replace("i1", "i2"), None).await);
    insta::assert_snapshot!("client_tools_resumed_followed", masked(&json!(events)));
}

#[tokio::test]
async fn an_answer_of_a_schema() {
    let server = started(false).await;
    let schema = json!({ "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"] });
    let body = json!({
        "input": "structured",
        "stream": true,
        "text": { "format": { "type": "json_schema", "name": "count", "schema": schema, "strict": true } },
    });
    let request = server.http.post(server.url("/v1/responses")).header("X-KsADK-Events", "1").json(&body);
    insta::assert_snapshot!("structured", transcript(&server.send(request, None).await));
}

/// With the header, as it was streamed: the events of OpenAI's dialect are other ones, and are counted otherwise.
#[tokio::test]
async fn a_response_is_read_again_in_its_dialect() {
    let server = started(false).await;
    let send = async |request: reqwest::RequestBuilder| {
        let reply = server.send(request.header("X-KsADK-Events", "1"), None).await;
        assert_eq!(reply.status, 200, "{}", reply.text);
        reply
    };
    let body = json!({ "input": "tools", "stream": true });
    let whole = send(server.http.post(server.url("/v1/responses")).json(&body)).await.text;
    let frames = collect_sse(&whole);
    let response = &frames.last().unwrap().data["response"];
    let path = server.url(&format!("/v1/responses/{}", response["id"].as_str().unwrap()));
    let got = async |query: &str| send(server.http.get(format!("{path}{query}"))).await;
    assert_eq!(got("?stream=true").await.text, whole);
    assert_eq!(collect_sse(&got("?stream=true&starting_after=2").await.text).len(), frames.len() - 3);
    assert_eq!(got("").await.json()["output"], response["output"]);
}

#[tokio::test]
async fn a_session_that_goes_on() {
    let server = started(false).await;
    let first = server.post(RUN_AGENT, &streamed("tools"), None).await;
    let mut body = streamed("later");
    body["InvocationId"] = json!("i2");
    insta::assert_snapshot!("continued", transcript(&server.post(RUN_AGENT, &body, None).await));
    assert_eq!(told(&server), ["tools", "Let me look.", "one\n1\n(1 row)", "It is 1.", "later"]);
    // After a response, the session is found by it.
    let mut body = resumed(&last_response(&first));
    body["InvocationId"] = json!("i3");
    body.as_object_mut().unwrap().remove("SessionId");
    body["ResponsesInput"] = json!("later");
    insta::assert_snapshot!("continued_after_a_response", transcript(&server.post(RUN_AGENT, &body, None).await));
    let said = data_of(&server, "ListSessionMessages", json!({ "SessionId": "s1" })).await;
    insta::assert_snapshot!("continued_messages", masked(&said["Messages"]));
}

/// What was said in it would be lost, though the answer names it.
#[tokio::test]
async fn a_response_of_another_session_is_refused() {
    let server = started(false).await;
    let first = server.post(RUN_AGENT, &streamed("plain"), None).await;
    let mut body = resumed(&last_response(&first));
    body["SessionId"] = json!("s2");
    body["ResponsesInput"] = json!("later");
    let refused = server.post(RUN_AGENT, &body, None).await;
    let error = refused.json()["error"].clone();
    assert_eq!((refused.status, &error["param"]), (400, &json!("previous_response_id")), "{}", refused.text);
    body["SessionId"] = json!("s1");
    assert_eq!(server.post(RUN_AGENT, &body, None).await.status, 200);
}

#[tokio::test]
async fn a_session_that_is_summed_up() {
    let server = started(false).await;
    let mut body = streamed("");
    body["Messages"] = long_conversation();
    insta::assert_snapshot!("compacted", transcript(&server.post(RUN_AGENT, &body, None).await));
    assert!(told(&server)[0].contains("The nights were quiet."), "{:?}", told(&server));
}

fn streamed(text: &str) -> Value {
    let mut body = asked(text);
    body["Stream"] = json!(true);
    body
}

/// Continues from a response, as KsADK's interface does.
fn resumed(response: &Value) -> Value {
    json!({
        "AgentId": "querent",
        "UserId": "u1",
        "SessionId": "s1",
        "InvocationId": "i1",
        "Stream": true,
        "PreviousResponseId": response["id"],
    })
}

fn last_response(reply: &HttpReply) -> Value {
    collect_sse(&reply.text).pop().unwrap().data["response"].clone()
}

async fn followed(server: &TestServer) -> String {
    masked(&json!(followed_events(&server.get(FOLLOWED, None).await)))
}

fn frames(text: &str) -> String {
    masked(&collect_sse(text).into_iter().map(|frame| frame.data).collect())
}

/// Returns the model's last request without the system message.
fn told(server: &TestServer) -> Vec<String> {
    let messages = server.model.requests().last().unwrap().messages.clone();
    messages.into_iter().skip(1).map(|message| message.content).collect()
}
