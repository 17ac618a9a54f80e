//! Golden bytes of sequences that span several requests: cancelled runs, conversations, decisions, results of the
//! client's tools, and summaries; and of what the lists in `openai.rs` leave out.

use querent_tests::{TestServer, collect_sse, read_until};
use serde_json::{Value, json};

use super::{serve, still, stream};
use crate::adk::long_conversation;

const ANN: Option<&str> = Some("ann-tok");
const RESPONSES: &str = "/v1/responses";
const CHAT: &str = "/v1/chat/completions";

#[tokio::test(flavor = "multi_thread")]
async fn charts_and_calls_side_by_side() {
    let server = serve().await;
    let chart = stream(&server, RESPONSES, json!({ "input": "chart" })).await;
    insta::assert_snapshot!("responses_chart", chart);
    // Our own calls are not shown to whoever would execute them, however many and whatever comes of them.
    for (name, words) in [("parallel", "both"), ("tool_error", "unknown tool"), ("chart", "chart")] {
        let bytes = stream(&server, CHAT, chat(json!([user(words)]))).await;
        insta::assert_snapshot!(format!("chat_{name}"), bytes);
    }
}

/// Returns what the run's client, a cancelling client and a later reader receive.
#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_response() {
    let server = serve().await;
    let (begun, mut response) = begun(&server, RESPONSES, json!({ "input": "slow", "stream": true })).await;
    let id = collect_sse(begun.split_inclusive("\n\n").next().unwrap())[0].data["response"]["id"].clone();
    let path = format!("{RESPONSES}/{}", id.as_str().unwrap());
    let retrieved = server.get(&path, ANN).await;
    insta::assert_snapshot!("responses_in_progress", still(retrieved.text));
    // Another reader of the same stream.
    let reader = server.http.get(server.url(&format!("{path}?stream=true"))).bearer_auth("ann-tok").send();
    let mut reader = reader.await.unwrap();
    let read = read_until(&mut reader, "Let me see").await;

    let cancelled = server.post(&format!("{path}/cancel"), &json!({}), ANN).await;
    assert_eq!(cancelled.status, 200, "{}", cancelled.text);
    let whole = [begun, rest(&mut response).await].concat();
    assert_eq!([read, rest(&mut reader).await].concat(), whole, "both read the same");
    insta::assert_snapshot!("responses_cancelled", still(whole.clone()));
    insta::assert_snapshot!("responses_cancelled_told", still(cancelled.text.clone()));
    assert_eq!(server.get(&path, ANN).await.text, cancelled.text);
    assert_eq!(server.get(&format!("{path}?stream=true"), ANN).await.text, whole);
    // Whoever goes on from it has read what it said.
    respond(&server, json!({ "input": "thanks", "previous_response_id": id })).await;
    assert_eq!(told(&server), ["slow", "Let me see", "thanks"]);
}

/// Cancels by this server's own route: the protocol cancels by closing the connection.
#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_completion() {
    let server = serve().await;
    let mut body = chat(json!([user("slow")]));
    body["stream"] = json!(true);
    let (begun, mut response) = begun(&server, CHAT, body).await;
    let run = server.get("/v1/agent/runs", ANN).await.json()["runs"][0]["run_id"].clone();
    let cancel = format!("/v1/agent/runs/{}/cancel", run.as_str().unwrap());
    assert_eq!(server.post(&cancel, &json!({}), ANN).await.status, 200);
    insta::assert_snapshot!("chat_cancelled", still([begun, rest(&mut response).await].concat()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_that_goes_on() {
    let server = serve().await;
    let first = respond(&server, json!({ "input": "both" })).await;
    let after = json!({ "input": "and later?", "previous_response_id": first["id"] });
    insta::assert_snapshot!("responses_continued", stream(&server, RESPONSES, after).await);
    assert_eq!(told(&server), ["both", "", "a\n1\n(1 row)", "b\n2\n(1 row)", "1 and 2.", "and later?"]);

    respond(&server, json!({ "input": "thanks", "conversation": "conv_1" })).await;
    let in_it = json!({ "input": "and later?", "conversation": { "id": "conv_1" } });
    insta::assert_snapshot!("responses_in_a_conversation", stream(&server, RESPONSES, in_it).await);
    assert_eq!(told(&server), ["thanks", "You are welcome.", "and later?"]);
    let items = server.get("/v1/conversations/conv_1/items?order=asc", ANN).await;
    insta::assert_snapshot!("conversation_items", still(items.text));

    // Chat Completions: with all that was said, or in a session.
    let said = json!([user("thanks"), { "role": "assistant", "content": "You are welcome." }, user("and later?")]);
    let bytes = stream(&server, CHAT, chat(said)).await;
    assert_eq!(told(&server), ["thanks", "You are welcome.", "and later?"]);
    insta::assert_snapshot!("chat_continued", bytes);
    for (name, words) in [("begun", "thanks"), ("continued", "and later?")] {
        let mut body = chat(json!([user(words)]));
        body["session_id"] = json!("s-1");
        let reply = server.post(CHAT, &body, ANN).await;
        insta::assert_snapshot!(format!("chat_session_{name}"), still(reply.text));
    }
    assert_eq!(told(&server), ["thanks", "You are welcome.", "and later?"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_that_is_decided() {
    let server = serve().await;
    for (approve, name) in [(false, "responses_denied"), (true, "responses_approved")] {
        let paused = respond(&server, json!({ "input": "create a table" })).await;
        let mut decision = json!({
            "type": "mcp_approval_response",
            "approval_request_id": paused["output"][0]["id"],
            "approve": approve,
        });
        if !approve {
            decision["reason"] = json!("too large");
        }
        let body = json!({ "input": [decision], "previous_response_id": paused["id"] });
        insta::assert_snapshot!(name, stream(&server, RESPONSES, body).await);
    }
}

/// Two calls at once.
#[tokio::test(flavor = "multi_thread")]
async fn clients_tools_and_their_results() {
    let server = serve().await;
    let tools = json!([{ "type": "function", "name": "get_weather", "parameters": { "type": "object" } }]);
    let body = json!({ "input": "cities", "tools": tools });
    insta::assert_snapshot!("responses_client_tools", stream(&server, RESPONSES, body.clone()).await);
    let paused = respond(&server, body).await;
    let output = |at: usize, said: &str| json!({ "type": "function_call_output", "call_id": paused["output"][at]["call_id"], "output": said });
    let body = json!({
        "input": [output(0, "rain"), output(1, "sun")],
        "previous_response_id": paused["id"],
        "tools": tools,
    });
    insta::assert_snapshot!("responses_client_tools_resumed", stream(&server, RESPONSES, body).await);
    assert_eq!(told(&server), ["cities", "", "rain", "sun"]);

    let tools = json!([{ "type": "function", "function": tools[0] }]);
    let mut body = chat(json!([user("cities")]));
    body["tools"] = tools;
    insta::assert_snapshot!("chat_client_tools", stream(&server, CHAT, body.clone()).await);
    let whole = server.post(CHAT, &body, ANN).await;
    insta::assert_snapshot!("chat_client_tools_whole", still(whole.text.clone()));
    let called = whole.json()["choices"][0]["message"].clone();
    let result = |at: usize, said: &str| json!({ "role": "tool", "tool_call_id": called["tool_calls"][at]["id"], "content": said });
    body["messages"] = json!([user("cities"), called, result(0, "rain"), result(1, "sun")]);
    insta::assert_snapshot!("chat_client_tools_resumed", stream(&server, CHAT, body).await);
    assert_eq!(told(&server), ["cities", "", "rain", "sun"]);
}

/// In KsADK's dialect alone there are events for it.
#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_that_is_summed_up() {
    let server = serve().await;
    for (name, metadata) in [("compacted", json!({})), ("ksadk_compacted", json!({ "agentengine": {} }))] {
        let body = json!({ "input": long_conversation(), "metadata": metadata });
        let bytes = stream(&server, RESPONSES, body).await;
        insta::assert_snapshot!(format!("responses_{name}"), bytes);
        assert!(told(&server)[0].contains("The nights were quiet."), "{:?}", told(&server));
    }
    insta::assert_snapshot!("chat_compacted", stream(&server, CHAT, chat(long_conversation())).await);
}

fn user(words: &str) -> Value {
    json!({ "role": "user", "content": words })
}

fn chat(messages: Value) -> Value {
    json!({ "messages": messages })
}

async fn respond(server: &TestServer, body: Value) -> Value {
    let reply = server.post(RESPONSES, &body, ANN).await;
    assert_eq!(reply.status, 200, "{body}: {}", reply.text);
    reply.json()
}

/// Reads a stream up to its first words.
async fn begun(server: &TestServer, path: &str, body: Value) -> (String, reqwest::Response) {
    let mut response = server.http.post(server.url(path)).bearer_auth("ann-tok").json(&body).send().await.unwrap();
    (read_until(&mut response, "Let me see").await, response)
}

async fn rest(response: &mut reqwest::Response) -> String {
    let mut text = String::new();
    while let Some(chunk) = response.chunk().await.unwrap() {
        text.push_str(std::str::from_utf8(&chunk).unwrap());
    }
    text
}

/// Returns the model's last request without the system message.
fn told(server: &TestServer) -> Vec<String> {
    let messages = server.model.requests().last().unwrap().messages.clone();
    messages.into_iter().skip(1).map(|message| message.content).collect()
}
