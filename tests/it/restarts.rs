//! A server that is killed in the middle of runs: the next one ends them as failed, and they read back whole in every
//! protocol.

use std::path::Path;
use std::time::Duration;

use querent_tests::script::run_sql;
use querent_tests::{ServerProcess, wait_for};
use reqwest::{Client, Response};
use serde_json::{Value, json};
use tempfile::TempDir;

const CODE: &str = "server_restarted";
const CUBE: &str = "/api/v1/public/acme/agents/1/chat/stream-chat-state";
const KSADK: &str = "/agentengine/api/v1";
const ADK_SESSION: &str = "/apps/querent/users/u1/sessions/a1";

/// A server whose model queries, says a few words and then nothing.
struct Interrupted {
    server: ServerProcess,
    script: String,
    http: Client,
    _folder: TempDir,
}

impl Interrupted {
    fn start() -> Self {
        Self::start_with(&[])
    }

    /// The same, with further settings.
    fn start_with(further: &[(&str, &str)]) -> Self {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("script.json");
        let slow = json!({ "when": "slow", "turns": [
            { "events": [{ "text": "I look. " }, run_sql("SELECT 1 AS a")] },
            { "events": [{ "text": "Half an " }, "hang"] },
        ] });
        let quick = json!({ "turns": [{ "events": [{ "text": "Here." }] }], "repeat_last": true });
        std::fs::write(&path, json!({ "runs": [slow, quick] }).to_string()).unwrap();
        let script = path.display().to_string();
        let mut all = settings(&script).to_vec();
        all.extend(further);
        let server = ServerProcess::start(&all);
        Self { server, script, http: Client::new(), _folder: folder }
    }

    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.server.url.trim_end_matches('/'))
    }

    async fn get(&self, path: &str) -> Value {
        let reply = self.http.get(self.url(path)).send().await.unwrap();
        let (status, text) = (reply.status(), reply.text().await.unwrap());
        assert!(status.is_success(), "{path}: {status} {text}");
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{path}: {error}: {text}"))
    }

    async fn post(&self, path: &str, body: Value) -> Response {
        self.http.post(self.url(path)).header("authorization", "Api-Key any-key").json(&body).send().await.unwrap()
    }

    async fn read(&self, path: &str, body: Value) -> String {
        self.post(path, body).await.text().await.unwrap()
    }

    /// Starts a run whose answer is a stream, and reads it as far as the words before the silence.
    async fn begin(&self, path: &str, body: Value) -> Response {
        let mut stream = self.post(path, body).await;
        let mut text = String::new();
        while !text.contains("Half an") {
            let chunk = tokio::time::timeout(Duration::from_secs(60), stream.chunk()).await.expect("in time").unwrap();
            text.push_str(&String::from_utf8_lossy(&chunk.unwrap_or_else(|| panic!("it ended: {text}"))));
        }
        stream
    }

    fn kill(self) -> Self {
        let server = self.server.killed_and_started(&settings(&self.script));
        Self { server, ..self }
    }
}

fn settings(script: &str) -> [(&'static str, &str); 1] {
    [("QUERENT_AGENT_SCRIPT", script)]
}

/// Waits until what is stored of the latest run has its query's result.
async fn stored(data: &Path) {
    // A second process may read the file, as DuckDB does.
    let database = data.join("catalog.sqlite");
    wait_for("the query's result is stored", async || {
        let open = rusqlite::Connection::open_with_flags(&database, rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY).ok()?;
        let query = "SELECT count(*) FROM querent_run WHERE events_json NOT LIKE '%Half an%'";
        let without: i64 = open.query_row(query, [], |row| row.get(0)).ok()?;
        (without == 0).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_response_is_failed_and_whole() {
    let server = Interrupted::start();
    let asked = json!({ "input": "slow", "background": true, "conversation": "c1" });
    let begun: Value = server.post("/v1/responses", asked).await.json().await.unwrap();
    let id = begun["id"].as_str().unwrap().to_owned();
    let path = format!("/v1/responses/{id}");
    stored(server.server.data.path()).await;
    let server = server.kill();

    let response = server.get(&path).await;
    assert_eq!((&response["id"], &response["status"]), (&json!(id), &json!("failed")), "{response}");
    assert!(response["error"]["message"].as_str().unwrap().contains(CODE), "{response}");
    let kinds: Vec<&str> =
        response["output"].as_array().unwrap().iter().map(|item| item["type"].as_str().unwrap()).collect();
    assert!(kinds.contains(&"mcp_call"), "{response}");
    let stream =
        server.http.get(server.url(&format!("{path}?stream=true"))).send().await.unwrap().text().await.unwrap();
    assert!(stream.starts_with("event: response.created") && stream.contains("event: response.failed"), "{stream}");
    // Whoever had more of it than was stored is told the end.
    let rest = server.http.get(server.url(&format!("{path}?stream=true&starting_after=999"))).send().await.unwrap();
    let rest = rest.text().await.unwrap();
    assert!(rest.starts_with("event: response.failed") && stream.ends_with(&rest), "{rest}");
    let items = server.get(&format!("{path}/input_items")).await;
    assert_eq!(items["data"][0]["content"][0]["text"], "slow", "{items}");

    // The conversation goes on after it.
    let items = server.get("/v1/conversations/c1/items").await;
    assert!(items.to_string().contains("slow"), "{items}");
    let next: Value =
        server.post("/v1/responses", json!({ "input": "and now?", "conversation": "c1" })).await.json().await.unwrap();
    assert_eq!(next["status"], "completed", "{next}");
    let next: Value = server
        .post("/v1/responses", json!({ "input": "and now?", "previous_response_id": id }))
        .await
        .json()
        .await
        .unwrap();
    assert_eq!(next["status"], "completed", "{next}");
}

#[tokio::test]
async fn a_run_of_ask_is_failed_and_whole() {
    let server = Interrupted::start();
    let asked = json!({ "question": "slow", "session_id": "s1" });
    let _client = server.begin("/v1/agent/ask", asked).await;
    stored(server.server.data.path()).await;
    let server = server.kill();

    let runs = server.get("/v1/agent/runs").await;
    let run_id = runs["runs"][0]["run_id"].as_str().unwrap_or_else(|| panic!("{runs}")).to_owned();
    let run = server.get(&format!("/v1/agent/runs/{run_id}")).await;
    assert_eq!((&run["status"], &run["question"]), (&json!("error"), &json!("slow")), "{run}");
    let names: Vec<&str> =
        run["trace"].as_array().unwrap().iter().map(|frame| frame["event"].as_str().unwrap()).collect();
    assert_eq!(names.first(), Some(&"run_started"), "{run}");
    assert_eq!(names[names.len() - 2..], ["run_error", "run_finished"], "{run}");
    assert!(names.contains(&"tool_result") && run.to_string().contains(CODE), "{run}");
    // Whoever had more of it than was stored is told the end, asking again or following.
    let ask = server.http.post(server.url("/v1/agent/ask")).json(&json!({ "question": "slow", "session_id": "s1" }));
    for request in [ask, server.http.get(server.url(&format!("/v1/agent/runs/{run_id}/events")))] {
        let rest = request.header("last-event-id", format!("{run_id}:999.0")).send().await.unwrap();
        let rest = rest.text().await.unwrap();
        assert!(rest.starts_with("event: run_error") && rest.contains("event: run_finished"), "{rest}");
    }
    let turns = server.get("/v1/agent/sessions/s1/turns").await;
    assert!(turns.to_string().contains("slow"), "{turns}");
    let again = server.read("/v1/agent/ask", json!({ "question": "and now?", "session_id": "s1" })).await;
    assert!(again.contains("Here."), "{again}");
}

/// A run that is not kept still leaves a whole trace.
#[tokio::test]
async fn a_chat_completion_leaves_a_whole_trace() {
    let server = Interrupted::start();
    let asked = json!({ "messages": [{ "role": "user", "content": "slow" }], "stream": true });
    let _client = server.begin("/v1/chat/completions", asked).await;
    stored(server.server.data.path()).await;
    let server = server.kill();
    let runs = server.get("/v1/agent/runs").await;
    let run_id = runs["runs"][0]["run_id"].as_str().unwrap().to_owned();
    let run = server.get(&format!("/v1/agent/runs/{run_id}")).await;
    let names: Vec<&str> =
        run["trace"].as_array().unwrap().iter().map(|frame| frame["event"].as_str().unwrap()).collect();
    assert_eq!((names.first(), names.last()), (Some(&"run_started"), Some(&"run_finished")), "{run}");
}

#[tokio::test]
async fn messages_holmes_ag_ui_and_a2a_leave_whole_traces() {
    let user = json!([{ "id": "m", "role": "user", "content": "slow" }]);
    let messages = json!({ "model": "querent", "max_tokens": 500, "stream": true, "messages": [{ "role": "user", "content": "slow" }] });
    let sent = json!({ "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "slow" }] });
    let send = json!({ "jsonrpc": "2.0", "id": 1, "method": "SendStreamingMessage", "params": { "message": sent } });
    for (path, asked) in [
        ("/v1/messages", messages),
        ("/ag-ui", json!({ "threadId": "t", "runId": "r", "messages": user })),
        ("/a2a", send),
    ] {
        let server = Interrupted::start();
        let _client = server.begin(path, asked).await;
        stored(server.server.data.path()).await;
        let server = server.kill();
        assert_whole_trace(&server, path).await;
        if path == "/a2a" {
            let runs = server.get("/v1/agent/runs").await;
            let get = json!({ "jsonrpc": "2.0", "id": 2, "method": "GetTask", "params": { "id": runs["runs"][0]["run_id"] } });
            let task: Value = server.post("/a2a", get).await.json().await.unwrap();
            assert_eq!(task["result"]["status"]["state"], "TASK_STATE_FAILED", "{task}");
            assert!(task.to_string().contains(CODE), "{task}");
        }
    }
    // Its stream shows whole messages only, so that what is read is the call before the silence.
    let server = Interrupted::start();
    let mut stream = server.post("/api/chat", json!({ "ask": "slow", "stream": true })).await;
    let mut text = String::new();
    while !text.contains("tool_calling_result") {
        let chunk = tokio::time::timeout(Duration::from_secs(60), stream.chunk()).await.expect("in time").unwrap();
        text.push_str(&String::from_utf8_lossy(&chunk.unwrap_or_else(|| panic!("it ended: {text}"))));
    }
    stored(server.server.data.path()).await;
    let server = server.kill();
    assert_whole_trace(&server, "/api/chat").await;
    let again = server.read("/api/chat", json!({ "ask": "and now?" })).await;
    assert!(again.contains("Here."), "{again}");
}

async fn assert_whole_trace(server: &Interrupted, path: &str) {
    let runs = server.get("/v1/agent/runs").await;
    let run_id = runs["runs"][0]["run_id"].as_str().unwrap().to_owned();
    let run = server.get(&format!("/v1/agent/runs/{run_id}")).await;
    let names: Vec<&str> =
        run["trace"].as_array().unwrap().iter().map(|frame| frame["event"].as_str().unwrap()).collect();
    assert_eq!((names.first(), names.last()), (Some(&"run_started"), Some(&"run_finished")), "{path}: {run}");
    assert_eq!(run["status"], "error", "{path}: {run}");
    assert!(run.to_string().contains(CODE), "{path}: {run}");
}

#[tokio::test]
async fn a_thread_of_cube_keeps_the_message() {
    let server = Interrupted::start();
    let who = json!({ "externalId": "ann@example.com" });
    let asked = json!({ "input": "slow", "chatId": "c", "messageId": "1717500000000-message", "sessionSettings": who });
    let _client = server.begin(CUBE, asked.clone()).await;
    stored(server.server.data.path()).await;
    let server = server.kill();
    let state = server.read(CUBE, json!({ "chatId": "c", "sessionSettings": who })).await;
    let lines: Vec<Value> = state.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let message = lines.iter().find(|line| line["role"] == "user").unwrap_or_else(|| panic!("{state}"));
    assert_eq!(message["content"], "slow", "{state}");
    let mark = lines.iter().find(|line| line["id"] == "__cutoff__").unwrap();
    assert_eq!(mark["state"]["isStreaming"], false, "{state}");
    // A thread shows no errors; what was said before is there.
    assert!(state.contains("Half an"), "{state}");
    let again = server.read(CUBE, json!({ "input": "and now?", "chatId": "c", "sessionSettings": who })).await;
    assert!(again.contains("Here."), "{again}");
}

#[tokio::test]
async fn sessions_of_ksadk_and_adk_keep_the_run() {
    let server = Interrupted::start();
    let asked = json!({ "AgentId": "querent", "UserId": "u1", "SessionId": "k1", "InvocationId": "i1", "Stream": true, "Messages": [{ "role": "user", "content": "slow" }] });
    let _ksadk = server.begin(&format!("{KSADK}/RunAgent"), asked).await;
    server.post(ADK_SESSION, json!({})).await;
    let asked = json!({ "appName": "querent", "userId": "u1", "sessionId": "a1", "streaming": true,
        "newMessage": { "role": "user", "parts": [{ "text": "slow" }] } });
    let _adk = server.begin("/run_sse", asked).await;
    stored(server.server.data.path()).await;
    let server = server.kill();
    let messages = server
        .read(
            &format!("{KSADK}/ListSessionMessages"),
            json!({ "AgentId": "querent", "UserId": "u1", "SessionId": "k1" }),
        )
        .await;
    assert!(messages.contains("slow"), "{messages}");
    let events = server
        .read(&format!("{KSADK}/ListSessionEvents"), json!({ "AgentId": "querent", "UserId": "u1", "SessionId": "k1" }))
        .await;
    assert!(events.contains(CODE), "{events}");
    let follow = format!("{KSADK}/SubscribeRunEvents?SessionId=k1&InvocationId=i1&AfterSeqId=999999999999");
    let rest = server.http.get(server.url(&follow)).send().await.unwrap().text().await.unwrap();
    assert!(rest.contains("run_status") && rest.contains(CODE), "{rest}");
    let session = server.get(ADK_SESSION).await;
    assert!(session.to_string().contains("slow") && session.to_string().contains(CODE), "{session}");
}

/// A response in the background, whose server is killed while its model hangs; the next server's model answers.
async fn killed_in_the_background(
    first: &[(&str, &str)],
    second: &[(&str, &str)],
    token: &str,
) -> (Interrupted, Value) {
    let server = Interrupted::start_with(first);
    let asked = json!({ "input": "slow", "background": true, "conversation": "c1", "instructions": "Be brief." });
    let request = server.http.post(server.url("/v1/responses")).bearer_auth("ann-key").json(&asked);
    let begun: Value = request.send().await.unwrap().json().await.unwrap();
    assert_eq!(begun["status"], "in_progress", "{begun}");
    let path = format!("/v1/responses/{}", begun["id"].as_str().unwrap());
    stored(server.server.data.path()).await;
    let answer = json!({ "turns": [{ "events": [{ "text": "Half an hour." }] }], "repeat_last": true });
    std::fs::write(&server.script, json!({ "runs": [answer] }).to_string()).unwrap();
    let mut settings = vec![("QUERENT_AGENT_SCRIPT", server.script.as_str())];
    settings.extend(second);
    let next = server.server.killed_and_started(&settings);
    let server =
        Interrupted { server: next, http: server.http, script: server.script.clone(), _folder: server._folder };
    let ended = wait_for("the response has ended", async || {
        let request = server.http.get(server.url(&path)).bearer_auth(token);
        let response: Value = request.send().await.unwrap().json().await.unwrap();
        (response["status"] != "in_progress").then_some(response)
    })
    .await;
    assert!(path.ends_with(ended["id"].as_str().unwrap_or("none")), "{ended}");
    (server, ended)
}

#[tokio::test]
async fn a_response_in_the_background_begins_again_where_the_settings_say_so() {
    let again = [("QUERENT_AGENT_RESTART_BACKGROUND", "true")];
    let (server, ended) = killed_in_the_background(&again, &again, "none").await;
    assert_eq!((&ended["status"], &ended["output_text"]), (&json!("completed"), &json!("Half an hour.")), "{ended}");
    assert_eq!((&ended["instructions"], &ended["background"]), (&json!("Be brief."), &json!(true)), "{ended}");
    // The question was asked once, as far as its conversation knows.
    let items = server.get("/v1/conversations/c1/items").await;
    let asked = items["data"].as_array().unwrap().iter().filter(|item| item["role"] == "user").count();
    assert_eq!(asked, 1, "{items}");

    // Those that were begun while nothing said so do not begin again.
    let (_server, ended) = killed_in_the_background(&[], &again, "none").await;
    assert_eq!(ended["status"], "failed", "{ended}");
    assert!(ended.to_string().contains(CODE), "{ended}");
}

#[tokio::test]
async fn a_response_begins_again_with_the_rights_that_its_caller_has_now() {
    let again = ("QUERENT_AGENT_RESTART_BACKGROUND", "true");
    let first = [again, ("QUERENT_AUTH_TOKENS", "ann-key:read:ann")];
    for (tokens, completes) in [
        ("ann-key:read:ann,boss-key:admin:boss", true),
        ("boss-key:admin:boss", false),
        // Nobody can say with whose rights.
        ("ann-key:read:ann,other-key:write:ann,boss-key:admin:boss", false),
    ] {
        let second = [again, ("QUERENT_AUTH_TOKENS", tokens)];
        let (_server, ended) = killed_in_the_background(&first, &second, "boss-key").await;
        assert_eq!(ended["status"], if completes { "completed" } else { "failed" }, "{tokens}: {ended}");
    }
}
