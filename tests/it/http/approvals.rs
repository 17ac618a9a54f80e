//! Approvals on ask: a run that waits for a person is answered by its id, by who asked, once.

use querent_tests::script::tool_call;
use querent_tests::{HttpReply, SseFrame, TestServer, TestSettings, collect_sse};
use serde_json::{Value, json};

const TOKENS: &str = "ann-tok:write:ann,bob-tok:write:bob,admin-tok:admin:boss";
const ASK: &str = "/v1/agent/ask";

#[tokio::test]
async fn an_approved_call_is_executed_once_and_the_answer_follows() {
    let server = started().await;
    let (run_id, frames) = asked(&server, "Keep one").await;
    assert_eq!(names(&frames), ["run_started", "approval_requested", "run_finished"], "{frames:#?}");
    let request = &frames[1].data;
    assert_eq!(request["tool"], "create_table_as");
    assert_eq!(request["args"], json!({ "table": "kept", "sql": "SELECT 1 AS one" }));
    assert!(request["description"].as_str().unwrap().contains("create_table_as"), "{request}");
    assert_eq!(frames[2].data["outcome"], "paused");
    let path = format!("/v1/agent/runs/{run_id}/approvals");
    let listed = server.get(&path, Some("ann-tok")).await.json();
    assert_eq!(listed["approvals"][0]["approval_id"], request["approval_id"], "{listed}");
    assert_eq!(listed["approvals"][0]["state"], "waiting");
    assert!(!exists(&server).await, "nothing before a person has said yes");

    let approved = server.post(&path, &json!({ "approve": true }), Some("ann-tok")).await;
    let frames = collect_sse(&approved.text);
    let expected = [
        "run_started",
        "approval_resolved",
        "tool_call",
        "tool_result",
        "answer_delta",
        "answer_final",
        "run_finished",
    ];
    assert_eq!(names(&frames), expected, "{}", approved.text);
    assert_eq!((&frames[0].data["continues"], &frames[0].data["question"]), (&json!(run_id), &json!("Keep one")));
    assert_eq!((&frames[1].data["approved"], &frames[1].data["approval_id"]), (&json!(true), &request["approval_id"]));
    assert_eq!(frames[2].data["approval_id"], request["approval_id"]);
    assert_eq!(frames[5].data["text"], "It is kept.");
    assert!(exists(&server).await);
    let listed = server.get(&path, Some("ann-tok")).await.json();
    assert_eq!(listed["approvals"][0]["state"], "approved", "{listed}");
    assert!(listed["approvals"][0]["decided_at"].is_string(), "{listed}");

    // Again: the same run, and nothing is executed. The other way round it comes too late.
    server.execute("DROP TABLE kept").await;
    let again = server.post(&path, &json!({ "approve": true }), Some("ann-tok")).await;
    assert_eq!(collect_sse(&again.text), frames);
    let opposite = server.post(&path, &json!({ "approve": false }), Some("ann-tok")).await;
    assert_eq!(
        (opposite.status, opposite.header("x-querent-error-code")),
        (409, "already_resumed"),
        "{}",
        opposite.text
    );
    assert!(!exists(&server).await);

    // What is stored tells the same.
    let stored = server.get(&format!("/v1/agent/runs/{run_id}"), Some("ann-tok")).await.json();
    assert_eq!((&stored["status"], &stored["trace"][1]["event"]), (&json!("paused"), &json!("approval_requested")));
}

#[tokio::test]
async fn the_model_learns_of_a_denied_call() {
    let server = started().await;
    let (run_id, frames) = asked(&server, "Keep one").await;
    let decisions = json!({ "decisions": [
        { "approval_id": frames[1].data["approval_id"], "approve": false, "reason": "too large" },
    ] });
    let denied = server.post(&format!("/v1/agent/runs/{run_id}/approvals"), &decisions, Some("ann-tok")).await;
    let frames = collect_sse(&denied.text);
    assert_eq!((&frames[1].event[..], &frames[1].data["approved"]), ("approval_resolved", &json!(false)));
    assert_eq!(frames[1].data["reason"], "too large");
    assert!(!names(&frames).contains(&"tool_call"), "{}", denied.text);
    let told = server.model.requests().last().unwrap().messages.last().unwrap().content.clone();
    assert!(told.contains("denied") && told.contains("too large"), "{told}");
    assert!(!exists(&server).await);
}

/// A run continues its session: the next question knows what was decided.
#[tokio::test]
async fn the_session_goes_on() {
    let server = started().await;
    let body = json!({ "question": "Keep one", "approvals": true, "session_id": "s-1" });
    let run_id = run_id_of(&server.post(ASK, &body, Some("ann-tok")).await);
    let path = format!("/v1/agent/runs/{run_id}/approvals");
    let approved = server.post(&path, &json!({ "approve": true }), Some("ann-tok")).await;
    assert_eq!(collect_sse(&approved.text)[0].data["session_id"], "s-1", "{}", approved.text);
    let body = json!({ "question": "thanks", "approvals": true, "session_id": "s-1" });
    let thanked = server.post(ASK, &body, Some("ann-tok")).await;
    assert!(thanked.text.contains("You are welcome."), "{}", thanked.text);
    let messages = server.model.requests().last().unwrap().messages.clone();
    assert!(messages.iter().any(|message| message.content.contains("It is kept.")), "{messages:?}");
}

/// What was not decided is not done any more once something else is asked.
#[tokio::test]
async fn a_question_instead_of_a_decision_leaves_the_call() {
    let server = started().await;
    let body = |question: &str| json!({ "question": question, "approvals": true, "session_id": "s-1" });
    let run_id = run_id_of(&server.post(ASK, &body("Keep one"), Some("ann-tok")).await);
    let thanked = server.post(ASK, &body("thanks"), Some("ann-tok")).await;
    assert!(thanked.text.contains("You are welcome."), "{}", thanked.text);
    assert!(collect_sse(&thanked.text)[0].data.get("continues").is_none(), "{}", thanked.text);
    let messages = server.model.requests().last().unwrap().messages.clone();
    assert!(messages.iter().any(|message| message.content.contains("asked something else")), "{messages:?}");
    let path = format!("/v1/agent/runs/{run_id}/approvals");
    let late = server.post(&path, &json!({ "approve": true }), Some("ann-tok")).await;
    assert_eq!((late.status, late.header("x-querent-error-code")), (409, "already_resumed"), "{}", late.text);
    assert!(server.get(&path, Some("ann-tok")).await.text.contains("abandoned"));
    assert!(!exists(&server).await);
    let items = server.get("/v1/conversations/s-1/items", Some("ann-tok")).await;
    assert!(items.text.contains("\"thanks\""), "{}", items.text);
}

/// Without `approvals` nobody is asked, as ever.
#[tokio::test]
async fn a_client_that_cannot_ask_is_not_left_waiting() {
    let server = started().await;
    let reply = server.post(ASK, &json!({ "question": "Keep one" }), Some("ann-tok")).await;
    assert!(reply.text.contains("approval_unavailable") && !reply.text.contains("paused"), "{}", reply.text);
}

#[tokio::test]
async fn decisions_that_do_not_fit_are_refused() {
    let server = started().await;
    let (run_id, frames) = asked(&server, "Keep one").await;
    let (id, path) = (&frames[1].data["approval_id"], format!("/v1/agent/runs/{run_id}/approvals"));
    for (body, status, code) in [
        (json!({}), 400, "invalid_request"),
        (json!({ "approve": "yes" }), 400, "bad_request_body"),
        (json!({ "aprove": true }), 400, "bad_request_body"),
        (json!({ "decisions": [{ "approval_id": "mcpr_forged", "approve": true }] }), 400, "unknown_call"),
        (json!({ "approve": true, "decisions": [{ "approval_id": id, "approve": true }] }), 400, "invalid_request"),
    ] {
        let reply = server.post(&path, &body, Some("ann-tok")).await;
        assert_eq!((reply.status, reply.header("x-querent-error-code")), (status, code), "{body}: {}", reply.text);
        assert!(reply.json()["error"].is_string(), "{}", reply.text);
    }
    // Whoever did not ask does not decide, not even an administrator, who may look on.
    for token in ["bob-tok", "admin-tok"] {
        let reply = server.post(&path, &json!({ "approve": true }), Some(token)).await;
        assert_eq!((reply.status, reply.header("x-querent-error-code")), (404, "run_not_found"), "{token}");
    }
    assert_eq!(server.get(&path, Some("bob-tok")).await.status, 404);
    assert_eq!(server.get(&path, Some("admin-tok")).await.status, 200);
    assert!(!exists(&server).await);
    // A run that waits for nothing, one that is not there, and what is no id.
    let done = run_id_of(&server.post(ASK, &json!({ "question": "thanks" }), Some("ann-tok")).await);
    for (run_id, status, code) in [
        (done.as_str(), 400, "unknown_call"),
        ("01890000-0000-7000-8000-000000000000", 404, "run_not_found"),
        ("one", 400, "bad_parameter"),
    ] {
        let path = format!("/v1/agent/runs/{run_id}/approvals");
        let reply = server.post(&path, &json!({ "approve": true }), Some("ann-tok")).await;
        assert_eq!((reply.status, reply.header("x-querent-error-code")), (status, code), "{run_id}: {}", reply.text);
    }
}

async fn started() -> TestServer {
    let script = json!({ "runs": [
        { "when": "thanks", "turns": [{ "events": [{ "text": "You are welcome." }] }] },
        { "turns": [
            { "events": [tool_call("create_table_as", json!({ "table": "kept", "sql": "SELECT 1 AS one" }))] },
            { "events": [{ "text": "It is kept." }] },
        ] },
    ] });
    let settings = TestSettings::default().tokens(TOKENS).script(script);
    TestServer::start(settings.change(|settings| settings.agent.write_tools = true)).await
}

async fn asked(server: &TestServer, question: &str) -> (String, Vec<SseFrame>) {
    let reply = server.post(ASK, &json!({ "question": question, "approvals": true }), Some("ann-tok")).await;
    assert_eq!(reply.status, 200, "{}", reply.text);
    (run_id_of(&reply), collect_sse(&reply.text))
}

fn run_id_of(reply: &HttpReply) -> String {
    let frames = collect_sse(&reply.text);
    frames[0].data["run_id"].as_str().unwrap_or_else(|| panic!("{}", reply.text)).to_owned()
}

fn names(frames: &[SseFrame]) -> Vec<&str> {
    frames.iter().map(|frame| frame.event.as_str()).collect()
}

async fn exists(server: &TestServer) -> bool {
    let schema: Value = server.get("/v1/catalog/schema", Some("admin-tok")).await.json();
    schema.to_string().contains("\"kept\"")
}
