//! Tools that the client executes: those that a run waits for, and those that it does not.

use serde_json::{Value, json};

use super::{CHAT, answer, asked, frames, named, started, started_to_write, transcript};

#[tokio::test]
async fn a_run_waits_for_the_clients_tool() {
    let server = started().await;
    let reply = server.post(CHAT, &with_tools("chart"), None).await;
    insta::assert_snapshot!("frontend_pause", transcript(&reply));
    let paused = answer(&reply);
    let call = &paused["pending_frontend_tool_calls"][0];
    assert_eq!(call["arguments"], json!({ "chart_type": "line" }));
    let reply = server.post(CHAT, &resumed(&paused, json!("{\"rendered\": true}")), None).await;
    insta::assert_snapshot!("frontend_resumed", transcript(&reply));
    let told = server.model.requests().last().unwrap().messages.clone();
    assert_eq!(told.last().unwrap().content, "{\"rendered\": true}");
}

#[tokio::test]
async fn a_question_that_is_repeated_is_not_asked_twice() {
    let server = started().await;
    let paused = answer(&server.post(CHAT, &with_tools("chart"), None).await);
    let mut body = resumed(&paused, json!("done"));
    body["ask"] = json!("chart");
    // Definitions are of one request; results are taken without them.
    body.as_object_mut().unwrap().remove("frontend_tools");
    assert_eq!(answer(&server.post(CHAT, &body, None).await)["analysis"], "There it is.");
    let asked = |messages: &[querent_agent::models::ChatMessage]| {
        messages.iter().filter(|message| message.role == querent_agent::models::ChatRole::User).count()
    };
    assert_eq!(asked(&server.model.requests().last().unwrap().messages), 1);

    // Another question follows the result.
    body["ask"] = json!("plain");
    assert_eq!(answer(&server.post(CHAT, &body, None).await)["analysis"], "Hello there.");
    let told = server.model.requests().last().unwrap().messages.clone();
    assert_eq!((told[told.len() - 2].content.as_str(), told.last().unwrap().content.as_str()), ("done", "plain"));
}

#[tokio::test]
async fn a_result_that_is_missing_and_one_too_many() {
    let server = started().await;
    let paused = answer(&server.post(CHAT, &with_tools("chart"), None).await);
    let mut body = resumed(&paused, json!("x"));
    body["frontend_tool_results"][0]["tool_call_id"] = json!("call_of_nobody");
    let reply = server.post(CHAT, &body, None).await;
    let result = named(&reply, "tool_calling_result")[0].clone();
    assert_eq!((&result["result"]["status"], &result["name"]), (&json!("error"), &json!("render_chart")));
    assert_eq!(answer(&reply)["analysis"], "There it is.");
}

#[tokio::test]
async fn a_new_question_leaves_the_call() {
    let server = started().await;
    let paused = answer(&server.post(CHAT, &with_tools("chart"), None).await);
    let mut body = with_tools("plain");
    body["conversation_history"] = paused["conversation_history"].clone();
    let reply = server.post(CHAT, &body, None).await;
    insta::assert_snapshot!("frontend_abandoned", transcript(&reply));
    assert_eq!(frames(&reply)[0].event, "tool_calling_result", "before the model is asked");
}

#[tokio::test]
async fn a_run_does_not_wait_for_a_noop_tool() {
    let server = started().await;
    let reply = server.post(CHAT, &with_tools("navigate"), None).await;
    insta::assert_snapshot!("frontend_noop", transcript(&reply));
    let result = &named(&reply, "tool_calling_result")[0]["result"];
    assert_eq!((&result["status"], &result["data"]), (&json!("success"), &json!("The page was opened.")));
    // Without a text of its own, and as one answer.
    let mut body = with_tools("navigate");
    body["stream"] = json!(false);
    let mut noop = body["frontend_tools"][1].clone();
    noop.as_object_mut().unwrap().remove("noop_response");
    body["frontend_tools"] = json!([noop]);
    let whole = server.post(CHAT, &body, None).await.json();
    let data = whole["tool_calls"][0]["result"]["data"].as_str().unwrap();
    assert!(data.contains("performed successfully"), "{data}");
    assert_eq!(whole["analysis"], "You are there.");
}

#[tokio::test]
async fn a_person_and_the_client_at_once() {
    let server = started_to_write("").await;
    let mut body = with_tools("both");
    body["enable_tool_approval"] = json!(true);
    let reply = server.post(CHAT, &body, None).await;
    insta::assert_snapshot!("mixed", transcript(&reply));
    let paused = answer(&reply);
    let mut resume = resumed(&paused, json!("drawn"));
    resume["enable_tool_approval"] = json!(true);
    resume["tool_decisions"] = json!([{
        "tool_call_id": paused["pending_approvals"][0]["tool_call_id"], "approved": true,
    }]);
    let reply = server.post(CHAT, &resume, None).await;
    let names: Vec<Value> = named(&reply, "tool_calling_result").iter().map(|result| result["name"].clone()).collect();
    assert_eq!(names, ["create_table_as", "render_chart"], "decisions come first");
    insta::assert_snapshot!("mixed_resumed", transcript(&reply));
    server.execute("SELECT * FROM kept").await;
}

/// One tool of each mode.
fn with_tools(question: &str) -> Value {
    let mut body = asked(question);
    body["frontend_tools"] = json!([
        {
            "name": "render_chart",
            "description": "Draws a chart.",
            "mode": "pause",
            "parameters": { "type": "object", "properties": { "chart_type": { "type": "string" } } },
        },
        {
            "name": "navigate_to_page",
            "description": "Opens a page.",
            "mode": "noop",
            "noop_response": "The page was opened.",
        },
    ]);
    body
}

fn resumed(paused: &Value, result: Value) -> Value {
    let call = &paused["pending_frontend_tool_calls"][0];
    let mut body = with_tools("");
    body.as_object_mut().unwrap().remove("ask");
    body["conversation_history"] = paused["conversation_history"].clone();
    body["frontend_tool_results"] = json!([{
        "tool_call_id": call["tool_call_id"], "tool_name": call["tool_name"], "result": result,
    }]);
    body
}
