//! Conversations whose last run is over for its client, and not yet for the server: what is asked next waits for it, and
//! knows what it said.

use std::time::Duration;

use querent_tests::{HttpReply, TestServer, TestSettings, read_until};
use serde_json::{Value, json};

use super::hanging_script;
use crate::lake::sqlite;

const ASK: &str = "/v1/agent/ask";
const CUBE: &str = "/api/v1/public/acme/agents/1/chat/stream-chat-state";

/// The end of a run is delivered when it could not be stored for two seconds.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_is_not_stored_yet_is_continued() {
    let pause = json!({ "delay_ms": 500 });
    let slow = json!({ "when": "first", "turns": [{ "events": [{ "text": "Half " }, pause, { "text": "a word." }] }] });
    let quick = json!({ "turns": [{ "events": [{ "text": "And more." }] }], "repeat_last": true });
    let server = TestServer::start(TestSettings::default().script(json!({ "runs": [slow, quick] }))).await;
    let ask = |question: &str| json!({ "question": question, "session_id": "s1" });
    let respond = |input: &str| json!({ "input": input, "conversation": "c1", "stream": true });
    let cube = |input: &str| json!({ "input": input, "chatId": "t1", "sessionSettings": { "externalId": "ann" } });
    for (path, first, second) in [
        (ASK, ask("first"), ask("second")),
        ("/v1/responses", respond("first"), respond("second")),
        (CUBE, cube("first"), cube("second")),
    ] {
        let mut stream = posted(&server, path, &first).await;
        read_until(&mut stream, "Half").await;
        let catalog = sqlite(server.data());
        catalog.execute_batch("BEGIN IMMEDIATE").unwrap();
        let said = stream.text().await.unwrap();
        assert!(said.contains("a word."), "{path}: {said}");
        let release = async {
            // The next request has come by then, and waits.
            tokio::time::sleep(Duration::from_millis(300)).await;
            catalog.execute_batch("COMMIT").unwrap();
        };
        let (reply, ()) = tokio::join!(read(&server, path, &second), release);
        assert_eq!(reply.status, 200, "{path}: {}", reply.text);
        assert_eq!(told(&server), ["first", "Half a word.", "second"], "{path}");
    }
}

/// Its next request may come before the server knows that it is gone.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_left_asks_on() {
    let server = TestServer::start(TestSettings::default().script(hanging_script())).await;
    for round in 0..5 {
        let body = json!({ "question": "are you there?", "session_id": format!("s{round}") });
        for turn in 0..3 {
            let mut stream = posted(&server, ASK, &body).await;
            assert_eq!(stream.status(), 200, "round {round}, turn {turn}");
            read_until(&mut stream, "run_started").await;
        }
    }
}

async fn posted(server: &TestServer, path: &str, body: &Value) -> reqwest::Response {
    let request = server.http.post(server.url(path)).header("authorization", "Api-Key any-key").json(body);
    request.send().await.unwrap()
}

async fn read(server: &TestServer, path: &str, body: &Value) -> HttpReply {
    let response = posted(server, path, body).await;
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    HttpReply { status, headers, text: response.text().await.unwrap() }
}

/// Returns the model's last request without the system message.
fn told(server: &TestServer) -> Vec<String> {
    let messages = server.model.requests().last().unwrap().messages.clone();
    messages.into_iter().skip(1).map(|message| message.content).collect()
}
