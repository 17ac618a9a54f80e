//! Conversations of the ask protocol: a follow-up question knows the earlier ones, one run happens at a time, only the
//! owner has access, long conversations are summarised, and old ones are deleted.

use std::time::Duration;

use querent_tests::{HttpReply, TestServer, TestSettings, collect_sse, read_until, wait_until};
use serde_json::{Value, json};

const ANN: Option<&str> = Some("ann-tok");
const BOB: Option<&str> = Some("bob-tok");

#[tokio::test(flavor = "multi_thread")]
async fn a_follow_up_knows_what_was_said() {
    let server = serve(8_192).await;
    let first = ask(&server, "how many?", "s-1", ANN).await;
    assert_eq!(collect_sse(&first.text)[0].data["session_id"], "s-1");
    ask(&server, "and then?", "s-1", ANN).await;
    let told = server.model.requests().last().unwrap().messages.clone();
    let said: Vec<&str> = told.iter().skip(1).map(|message| message.content.as_str()).collect();
    assert_eq!((said.first(), said.last()), (Some(&"how many?"), Some(&"and then?")), "{said:?}");
    assert!(said.contains(&"It is 42."), "{said:?}");

    let sessions = server.get("/v1/agent/sessions", ANN).await.json();
    let session = &sessions["sessions"][0];
    assert_eq!((&session["session_id"], &session["turn_count"]), (&json!("s-1"), &json!(2)));
    assert_eq!(session["title"], "how many?");
    let turns = server.get("/v1/agent/sessions/s-1/turns", ANN).await.json();
    let contents: Vec<&str> =
        turns["turns"].as_array().unwrap().iter().map(|turn| turn["content"].as_str().unwrap()).collect();
    assert_eq!(contents, ["how many?", "It is 42.", "and then?", "Nothing more."]);

    // To others it is not there, and they cannot go on with it.
    assert_eq!(server.get("/v1/agent/sessions/s-1", BOB).await.status, 404);
    assert_eq!(server.get("/v1/agent/sessions", BOB).await.json()["sessions"], json!([]));
    assert_eq!(ask(&server, "and then?", "s-1", BOB).await.status, 404);
    let delete =
        |token: &'static str| server.http.delete(server.url("/v1/agent/sessions/s-1")).bearer_auth(token).send();
    assert_eq!(delete("bob-tok").await.unwrap().status(), 404);
    assert_eq!(delete("ann-tok").await.unwrap().status(), 200);
    assert_eq!(server.get("/v1/agent/sessions/s-1", ANN).await.status, 404);
    assert_eq!(server.get("/v1/agent/runs", ANN).await.json()["runs"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn one_run_at_a_time() {
    let server = serve(8_192).await;
    let body = json!({ "question": "slow", "session_id": "s-1" });
    let slow = server.http.post(server.url("/v1/agent/ask")).bearer_auth("ann-tok").json(&body).send().await.unwrap();
    let refused = ask(&server, "how many?", "s-1", ANN).await;
    assert_eq!(refused.status, 409, "{}", refused.text);
    assert_eq!(ask(&server, "how many?", "s-2", ANN).await.status, 200);
    drop(slow);
    wait_until("the conversation is free again", async || ask(&server, "how many?", "s-1", ANN).await.status == 200)
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_in_progress_ends_with_its_session() {
    let server = serve(8_192).await;
    let body = json!({ "question": "slow", "session_id": "s-1" });
    let request = server.http.post(server.url("/v1/agent/ask")).bearer_auth("ann-tok").json(&body);
    let mut slow = request.send().await.unwrap();
    read_until(&mut slow, "Let me see").await;
    let deleted = server.http.delete(server.url("/v1/agent/sessions/s-1"));
    assert_eq!(server.send(deleted, ANN).await.status, 200);
    let rest = slow.text().await.unwrap();
    assert!(rest.contains("\"detail_code\":\"cancelled\""), "{rest}");
    assert!(rest.contains("event: run_finished"), "{rest}");
    assert_eq!(server.get("/v1/agent/runs", ANN).await.json()["runs"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_no_longer_fits_is_summed_up() {
    let server = serve(2_600).await;
    for number in 0..12 {
        let long = format!("tell number {number}: {}", "some words about it ".repeat(30));
        assert_eq!(ask(&server, &long, "s-1", ANN).await.status, 200);
    }
    let requests = server.model.requests();
    let summaries = requests.iter().filter(|request| request.messages[0].content.starts_with("Sum up")).count();
    assert!(summaries > 0, "nothing was summed up in {} requests", requests.len());
    let last = &requests.last().unwrap().messages;
    assert!(last.iter().any(|message| message.content.contains("[Summary of the conversation so far")), "{last:#?}");
    assert!(last.last().unwrap().content.starts_with("tell number 11"));
    let listed = server.get("/v1/agent/runs", ANN).await.json();
    assert!(listed["runs"].as_array().unwrap().iter().all(|run| run["status"] == "success"), "{listed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn old_runs_go() {
    let settings = TestSettings::default().tokens("ann-tok:read:ann").script(script(8_192));
    let server =
        TestServer::start(settings.change(|settings| settings.agent.retention.0 = Duration::from_millis(1))).await;
    ask(&server, "how many?", "s-1", ANN).await;
    let data = server.stop().await;
    let settings = TestSettings::default().tokens("ann-tok:read:ann").script(script(8_192));
    let settings = settings.change(|settings| settings.agent.retention.0 = Duration::from_millis(1));
    let server = TestServer::start_in(data, settings).await;
    let is_gone = async || server.get("/v1/agent/sessions/s-1", ANN).await.status == 404;
    wait_until("the old session is deleted", is_gone).await;
    assert_eq!(server.get("/v1/agent/runs", ANN).await.json()["runs"], json!([]));
}

async fn serve(context_tokens: u32) -> TestServer {
    TestServer::start(
        TestSettings::default().tokens("ann-tok:read:ann,bob-tok:read:bob").script(script(context_tokens)),
    )
    .await
}

fn script(context_tokens: u32) -> Value {
    let say = |text: &str| json!({"events": [{"text": text}]});
    json!({
        "capabilities": {"tool_style": "native", "thinking": false, "small": false, "context_tokens": context_tokens},
        "runs": [
            {"when": "how many?", "turns": [say("It is 42.")], "repeat_last": true},
            {"when": "slow", "turns": [{"events": [{"text": "Let me see"}, "hang"]}]},
            {"when": "and then", "turns": [say("Nothing more.")], "repeat_last": true},
            {"turns": [say(&"an answer of several words ".repeat(20))], "repeat_last": true},
        ],
    })
}

async fn ask(server: &TestServer, question: &str, session: &str, token: Option<&str>) -> HttpReply {
    server.post("/v1/agent/ask", &json!({ "question": question, "session_id": session }), token).await
}
