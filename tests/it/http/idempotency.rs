//! `Idempotency-Key`: a request that is sent twice runs once, in every protocol.

use querent_tests::{TestServer, TestSettings, read_until};
use serde_json::{Value, json};

const KEY: &str = "idempotency-key";

async fn serve() -> TestServer {
    let script = json!({ "runs": [
        { "when": "slow", "turns": [{ "events": [{ "text": "One" }, { "delay_ms": 600 }, { "text": " two." }] }] },
        { "when": "fail", "turns": [{ "events": [{ "error": "out of memory" }] }] },
        { "turns": [{ "events": [{ "text": "Hello." }] }], "repeat_last": true },
    ] });
    TestServer::start(TestSettings::default().script(script)).await
}

async fn send(server: &TestServer, path: &str, key: &str, body: &Value) -> (u16, bool, String) {
    let reply = server
        .http
        .post(server.url(path))
        .header(KEY, key)
        .header("authorization", "Api-Key any-key")
        .json(body)
        .send()
        .await
        .unwrap();
    let again = reply.headers().contains_key("idempotency-replayed");
    (reply.status().as_u16(), again, reply.text().await.unwrap())
}

fn asked_over_mcp(question: &str) -> Value {
    let params = json!({ "name": "ask", "arguments": { "question": question } });
    json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params })
}

/// A tool's failure has the status of an answer, and other tools start no run.
#[tokio::test]
async fn of_mcp_an_answer_of_the_agent_is_kept() {
    let server = serve().await;
    for _ in 0..2 {
        let (status, again, text) = send(&server, "/mcp", "k", &asked_over_mcp("fail")).await;
        assert_eq!((status, again), (200, false), "{text}");
        assert!(text.contains("\"isError\":true"), "{text}");
    }
    assert_eq!(server.model.requests().len(), 2);
    let mut listed = asked_over_mcp("hello");
    listed["params"] = json!({ "name": "list_databases", "arguments": {} });
    for _ in 0..2 {
        let (status, again, text) = send(&server, "/mcp", "k2", &listed).await;
        assert_eq!((status, again), (200, false), "{text}");
    }
}

#[tokio::test]
async fn a_request_that_is_sent_twice_runs_once() {
    let server = serve().await;
    let message = json!([{ "role": "user", "content": "hello" }]);
    let requests = [
        ("/v1/responses", json!({ "input": "hello" })),
        ("/v1/responses", json!({ "input": "hello", "stream": true })),
        ("/v1/chat/completions", json!({ "messages": message, "stream": true })),
        ("/v1/completions", json!({ "prompt": "hello", "stream": true })),
        ("/v1/responses/compact", json!({ "input": "hello" })),
        ("/v1/messages", json!({ "model": "querent", "max_tokens": 100, "messages": message })),
        ("/v1/agent/ask", json!({ "question": "hello" })),
        (
            "/agentengine/api/v1/RunAgent",
            json!({ "AgentId": "querent", "UserId": "u", "Messages": message, "Stream": true }),
        ),
        (
            "/run_sse",
            json!({ "appName": "querent", "userId": "u", "sessionId": "s", "newMessage": { "role": "user", "parts": [{ "text": "hello" }] } }),
        ),
        (
            "/api/v1/public/acme/agents/1/chat/stream-chat-state",
            json!({ "input": "hello", "sessionSettings": { "externalId": "ann@example.com" } }),
        ),
        ("/api/chat", json!({ "ask": "hello" })),
        ("/mcp", asked_over_mcp("hello")),
    ];
    for (index, (path, body)) in requests.iter().enumerate() {
        let key = format!("key-{index}");
        let before = server.model.requests().len();
        let first = send(&server, path, &key, body).await;
        assert_eq!((first.0, first.1), (200, false), "{path}: {}", first.2);
        let again = send(&server, path, &key, body).await;
        assert_eq!((again.0, again.1, &again.2), (200, true, &first.2), "{path}");
        assert_eq!(server.model.requests().len(), before + 1, "{path}: one run");
        let other = send(&server, path, &format!("other-{index}"), body).await;
        assert!(!other.1, "{path}: another key is another request");
    }
    let conflict = send(&server, "/v1/responses", "key-0", &json!({ "input": "other" })).await;
    assert_eq!(conflict.0, 409, "{}", conflict.2);
    assert!(conflict.2.contains("idempotency_conflict"), "{}", conflict.2);
    let long = send(&server, "/v1/responses", &"k".repeat(300), &json!({ "input": "hello" })).await;
    assert_eq!(long.0, 400, "{}", long.2);
}

/// What is forgotten is not told again to whoever has its key. A response that goes on from it, and names it, is kept.
#[tokio::test]
async fn the_answer_of_what_was_deleted_is_forgotten() {
    let server = serve().await;
    let message = json!([{ "role": "user", "content": "hello" }]);
    let requests = [
        ("/v1/responses", json!({ "input": "hello" })),
        ("/v1/responses", json!({ "input": "hello", "stream": true })),
        ("/v1/chat/completions", json!({ "messages": message, "store": true })),
    ];
    for (index, (path, body)) in requests.iter().enumerate() {
        let key = format!("key-{index}");
        let (status, _, first) = send(&server, path, &key, body).await;
        assert_eq!(status, 200, "{first}");
        let id: String = first.split("\"id\":\"").nth(1).unwrap().chars().take_while(|c| *c != '"').collect();
        let next = json!({ "input": "and then?", "previous_response_id": id });
        let goes_on = id.starts_with("resp_");
        if goes_on {
            assert_eq!(send(&server, path, &format!("next-{index}"), &next).await.0, 200);
        }
        let deleted =
            server.http.delete(server.url(&format!("{path}/{id}"))).header("authorization", "Api-Key any-key");
        let deleted = deleted.send().await.unwrap();
        assert_eq!(deleted.status(), 200, "{}", deleted.text().await.unwrap());
        let (status, again, text) = send(&server, path, &key, body).await;
        assert_eq!((status, again), (200, false), "{text}");
        assert!(!text.contains(&id), "{text}");
        if goes_on {
            assert!(send(&server, path, &format!("next-{index}"), &next).await.1, "the answer that names it is kept");
        }
    }
}

/// Whatever the protocol; what was asked elsewhere is kept.
#[tokio::test]
async fn the_answers_of_a_session_that_was_deleted_are_forgotten() {
    let server = serve().await;
    let message = json!([{ "role": "user", "content": "hello" }]);
    let said = json!({ "role": "user", "parts": [{ "text": "hello" }] });
    let ksadk = json!({ "AgentId": "querent", "UserId": "u", "SessionId": "s" });
    let mut run_agent = ksadk.clone();
    run_agent["Messages"] = message.clone();
    let sessions = "/v1/agent/sessions/s".to_owned();
    let requests = [
        (sessions.clone(), "/v1/agent/ask", json!({ "question": "hello", "session_id": "s" })),
        (sessions.clone(), "/v1/responses", json!({ "input": "hello", "conversation": "s", "stream": true })),
        (sessions, "/v1/chat/completions", json!({ "messages": message, "session_id": "s" })),
        (
            "/apps/querent/users/u/sessions/s".to_owned(),
            "/run_sse",
            json!({ "appName": "querent", "userId": "u", "sessionId": "s", "newMessage": said }),
        ),
        (String::new(), "/agentengine/api/v1/RunAgent", run_agent),
    ];
    for (index, (session, path, body)) in requests.iter().enumerate() {
        let key = format!("key-{index}");
        let first = send(&server, path, &key, body).await;
        assert_eq!((first.0, first.1), (200, false), "{path}: {}", first.2);
        let other = send(&server, "/v1/responses", "other", &json!({ "input": "hello" })).await;
        assert_eq!((other.0, other.1), (200, index > 0), "{path}: {}", other.2);
        let request = match session.is_empty() {
            true => server.http.post(server.url("/agentengine/api/v1/DeleteSession")).json(&ksadk),
            false => server.http.delete(server.url(session)),
        };
        let deleted = request.send().await.unwrap();
        assert_eq!(deleted.status(), 200, "{path}: {}", deleted.text().await.unwrap());
        let again = send(&server, path, &key, body).await;
        assert_eq!((again.0, again.1), (200, false), "{path}: {}", again.2);
    }
}

/// Of two keys one would have no effect.
#[tokio::test]
async fn two_keys_are_refused() {
    let server = serve().await;
    let twice = server.http.post(server.url("/v1/responses")).header(KEY, "k1").header(KEY, "k2");
    let reply = server.send(twice.json(&json!({ "input": "hello" })), None).await;
    assert!(reply.status == 400 && reply.text.contains("bad_header"), "{}: {}", reply.status, reply.text);
    assert_eq!(server.model.requests().len(), 0);
}

/// Azure's clients name the model in the path alone.
#[tokio::test]
async fn a_key_is_of_one_deployment() {
    let server = serve().await;
    let body = json!({ "messages": [{ "role": "user", "content": "hello" }] });
    for (deployment, is_again) in [("a", false), ("b", false), ("a", true)] {
        let path = format!("/openai/deployments/{deployment}/chat/completions?api-version=2024-10-21");
        let (status, again, text) = send(&server, &path, "k", &body).await;
        assert_eq!((status, again), (200, is_again), "{deployment}: {text}");
        let answer: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(answer["model"], deployment, "{text}");
    }
}

#[tokio::test]
async fn a_stream_that_broke_off_is_followed_from_its_beginning() {
    let server = serve().await;
    let body = json!({ "question": "slow" });
    let request = server.http.post(server.url("/v1/agent/ask")).header(KEY, "k").json(&body);
    let mut first = request.header("authorization", "Api-Key any-key").send().await.unwrap();
    read_until(&mut first, "One").await;
    drop(first);
    let (status, again, text) = send(&server, "/v1/agent/ask", "k", &body).await;
    assert_eq!((status, again), (200, true));
    assert!(text.starts_with("event: run_started") && text.contains("One two."), "{text}");
    assert_eq!(server.model.requests().len(), 1, "one run");
}

#[tokio::test]
async fn what_is_refused_is_not_kept() {
    let server = serve().await;
    let body = json!({ "input": "fail" });
    for _ in 0..2 {
        let (status, again, text) = send(&server, "/v1/responses", "k", &body).await;
        assert_eq!((status, again), (502, false), "{text}");
    }
    assert_eq!(server.model.requests().len(), 2);
}

/// A refusal's status is 200 all the same. What a task is like now is not kept either.
#[tokio::test]
async fn of_a2a_what_begins_a_task_is_kept() {
    let server = serve().await;
    let sent = |message: Value| {
        let params = json!({ "message": message });
        json!({ "jsonrpc": "2.0", "id": 1, "method": "message/send", "params": params })
    };
    let parts = json!([{ "kind": "text", "text": "hello" }]);
    let question = sent(json!({ "messageId": "m1", "role": "user", "kind": "message", "parts": parts }));
    let begun = send(&server, "/a2a", "key-1", &question).await;
    let task: Value = serde_json::from_str(&begun.2).unwrap();
    assert_eq!(task["result"]["status"]["state"], "completed", "{task}");
    assert_eq!(send(&server, "/a2a", "key-1", &question).await, (200, true, begun.2));

    let got = json!({ "jsonrpc": "2.0", "id": 1, "method": "tasks/get", "params": { "id": task["result"]["id"] } });
    let nowhere = json!({ "messageId": "m2", "role": "user", "kind": "message", "taskId": "none", "parts": parts });
    for (key, body) in [("key-2", got), ("key-3", sent(nowhere)), ("key-4", json!({ "jsonrpc": "2.0", "id": 1 }))] {
        let first = send(&server, "/a2a", key, &body).await;
        assert_eq!((first.0, first.1), (200, false), "{body}: {}", first.2);
        assert_eq!(send(&server, "/a2a", key, &body).await, first, "{body}");
    }
}

/// The text behind the last `id:` of what a client read.
fn last_id(read: &str) -> String {
    read.lines().filter_map(|line| line.strip_prefix("id: ")).next_back().expect("an id").to_owned()
}

async fn ask_again(server: &TestServer, question: &str, last_event_id: &str) -> String {
    let request = server.http.post(server.url("/v1/agent/ask")).header("last-event-id", last_event_id);
    let reply = request.json(&json!({ "question": question })).send().await.unwrap();
    assert_eq!(reply.status().as_u16(), 200);
    reply.text().await.unwrap()
}

#[tokio::test]
async fn a_stream_that_broke_off_goes_on_behind_its_last_event() {
    let server = serve().await;
    let body = json!({ "question": "slow" });
    let request = server.http.post(server.url("/v1/agent/ask")).header(KEY, "k").json(&body);
    let mut first = request.header("authorization", "Api-Key any-key").send().await.unwrap();
    let read = read_until(&mut first, "One").await;
    drop(first);
    let rest = ask_again(&server, "slow", &last_id(&read)).await;
    assert!(!rest.contains("run_started") && rest.contains(" two.") && rest.contains("event: run_finished"), "{rest}");
    let (_, _, whole) = send(&server, "/v1/agent/ask", "k", &body).await;
    assert!(whole.ends_with(&rest), "the rest is as it would have been:\n{whole}\n---\n{rest}");
    assert_eq!(ask_again(&server, "slow", &last_id(&whole)).await, "", "nothing follows the last event");
    assert_eq!(server.model.requests().len(), 1, "one run");

    // Another question is another run; so is one whose run was cancelled because nobody was there.
    let other = ask_again(&server, "hello", &last_id(&read)).await;
    assert!(other.contains("run_started") && other.contains("Hello."), "{other}");
    let run_id = last_id(&whole).split(':').next().unwrap().to_owned();
    let followed = server.http.get(server.url(&format!("/v1/agent/runs/{run_id}/events"))).send().await.unwrap();
    assert_eq!(followed.text().await.unwrap(), whole);
    let unknown = uuid::Uuid::nil();
    let missing = server.http.get(server.url(&format!("/v1/agent/runs/{unknown}/events"))).send().await.unwrap();
    assert_eq!(missing.status().as_u16(), 404);
}

#[tokio::test]
async fn of_holmesgpt_too_a_stream_with_a_key_goes_on_behind_its_last_event() {
    let server = serve().await;
    let body = json!({ "ask": "hello", "stream": true });
    let (_, _, whole) = send(&server, "/api/chat", "k", &body).await;
    let (first, rest) = whole.split_once("\n\n").unwrap();
    let request = server.http.post(server.url("/api/chat")).header(KEY, "k").header("last-event-id", last_id(first));
    let request = request.header("authorization", "Api-Key any-key");
    let reply = request.json(&body).send().await.unwrap();
    assert_eq!(reply.text().await.unwrap(), rest);
    assert_eq!(server.model.requests().len(), 1, "one run");
}

#[tokio::test]
async fn a_run_that_was_cancelled_with_its_client_begins_again() {
    let server = serve().await;
    let request = server.http.post(server.url("/v1/agent/ask")).json(&json!({ "question": "slow" }));
    let mut first = request.send().await.unwrap();
    let read = read_until(&mut first, "One").await;
    drop(first);
    let run_id = last_id(&read).split(':').next().unwrap().to_owned();
    querent_tests::wait_until("the run to be cancelled", async || {
        let run = server.get(&format!("/v1/agent/runs/{run_id}"), None).await.json();
        run["status"] == "cancelled"
    })
    .await;
    let again = ask_again(&server, "slow", &last_id(&read)).await;
    assert!(again.starts_with("event: run_started") && again.contains("One two."), "{again}");
}

#[tokio::test]
async fn an_id_of_no_event_takes_nothing_from_a_key() {
    let server = serve().await;
    for again in [false, true] {
        let request = server.http.post(server.url("/v1/agent/ask")).header(KEY, "k").header("last-event-id", "0");
        let reply = request.json(&json!({ "question": "hello" })).send().await.unwrap();
        assert_eq!(reply.headers().contains_key("idempotency-replayed"), again);
        assert!(reply.text().await.unwrap().contains("Hello."));
    }
    assert_eq!(server.model.requests().len(), 1, "one run");
}
