//! Runs of servers that share a catalog: any of them follows, cancels, decides and continues what another one has in progress,
//! fetches its tickets, and ends what it left when it was killed.

mod tls;

use std::time::Duration;

use arrow::array::RecordBatch;
use arrow_flight::{CancelFlightInfoRequest, CancelFlightInfoResult, CancelStatus, Ticket};
use prost::Message;
use querent_catalog::{Principal, RunRecord, RunStatus};
use querent_flight::config::Settings;
use querent_tests::script::{run_sql, says, tool_call};
use querent_tests::{
    PostgresProcess, ServerProcess, TestServer, TestSettings, collect_sse, read_until, wait_for, wait_until,
};
use reqwest::Response;
use serde_json::{Value, json};
use tempfile::TempDir;
use tonic::Code;

use crate::flight_sql::{Raw, decode, ticket_of};

const TOKENS: &str = "ann-tok:write:ann,bob-tok:read:bob";
const ANN: Option<&str> = Some("ann-tok");
const KEY: &str = "a key that all of them have";
const SERVER: &str = "x-querent-run-server";
const KSADK: &str = "/agentengine/api/v1";
const CUBE: &str = "/api/v1/public/acme/agents/1/chat";

fn script() -> Value {
    json!({ "runs": [
        { "when": "slow", "turns": [
            { "events": [{ "text": "I look. " }, run_sql("SELECT 1 AS a")] },
            { "events": [{ "text": "Half an " }, "hang"] },
        ] },
        { "when": "paced", "turns": [{ "events": [{ "text": "Begin. " }, { "delay_ms": 3000 }, { "text": "End." }] }] },
        { "when": "make", "turns": [
            { "events": [tool_call("create_table_as", json!({ "table": "made", "sql": "SELECT 1 AS a" }))] },
            says("It is made."),
        ] },
        { "when": "rows", "turns": [
            { "events": [run_sql("SELECT value AS n FROM generate_series(1, 1000) AS s(value)")] },
            says("A thousand."),
        ] },
        { "turns": [says("Here.")], "repeat_last": true },
    ] })
}

/// The id by which the other one knows a server.
fn id_of(server: &TestServer) -> String {
    server.engine().catalog().members().own().unwrap().to_owned()
}

/// Servers with a folder each, over one catalog.
struct TwoServers {
    one: TestServer,
    two: TestServer,
    _postgres: PostgresProcess,
}

impl TwoServers {
    async fn start(tokens: &str) -> Self {
        Self::start_with(tokens, |_| ()).await
    }

    /// Starts them; `change` is for the settings of the first.
    async fn start_with(tokens: &str, change: impl FnOnce(&mut Settings) + Send + 'static) -> Self {
        let postgres = PostgresProcess::start();
        let url = postgres.new_database("lake");
        let one = Self::server(tokens, url.clone(), change).await;
        let two = Self::server(tokens, url, |_| ()).await;
        Self { one, two, _postgres: postgres }
    }

    async fn server(tokens: &str, url: String, change: impl FnOnce(&mut Settings) + Send + 'static) -> TestServer {
        let settings = TestSettings::default().tokens(tokens).script(script()).change(move |settings| {
            settings.catalog.url = Some(url);
            settings.cluster.key = Some(KEY.to_owned());
            settings.agent.write_tools = true;
            change(settings);
        });
        TestServer::start(settings).await
    }

    /// Waits until both say that the run has this status.
    async fn wait_for_status(&self, run_id: &str, status: &str, token: Option<&str>) {
        for server in [&self.one, &self.two] {
            wait_until(status, async || {
                server.get(&format!("/v1/agent/runs/{run_id}"), token).await.json()["status"] == status
            })
            .await;
        }
    }
}

/// Begins a request whose answer is a stream.
async fn begin(server: &TestServer, path: &str, body: &Value, headers: &[(&str, &str)]) -> Response {
    let request = server.http.post(server.url(path)).json(body);
    let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    let response = request.send().await.unwrap();
    assert!(response.status().is_success(), "{path}: {response:?}");
    response
}

/// The run that a stream of ours names.
fn run_id_in(text: &str) -> String {
    let (_, rest) = text.split_once("\"run_id\":\"").unwrap_or_else(|| panic!("no run in {text}"));
    rest.split('"').next().unwrap().to_owned()
}

fn newest_run(runs: &Value) -> String {
    runs["runs"][0]["run_id"].as_str().unwrap_or_else(|| panic!("{runs}")).to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_followed_through_another_server_to_its_end() {
    let servers = TwoServers::start(TOKENS).await;
    let bearer = [("authorization", "Bearer ann-tok")];
    let mut asked = begin(&servers.one, "/v1/agent/ask", &json!({ "question": "paced" }), &bearer).await;
    let begun = read_until(&mut asked, "Begin.").await;
    let run_id = run_id_in(&begun);
    let events = format!("/v1/agent/runs/{run_id}/events");
    let mut followed = servers.two.http.get(servers.two.url(&events)).bearer_auth("ann-tok").send().await.unwrap();
    assert_eq!(followed.status(), 200);
    assert_eq!(followed.headers()["content-type"], "text/event-stream");
    // As it is made, and not when all of it is there.
    let mut seen = read_until(&mut followed, "Begin.").await;
    assert!(!seen.contains("End."), "{seen}");
    seen.push_str(&followed.text().await.unwrap());
    assert_eq!(seen, begun + &asked.text().await.unwrap());
    assert_eq!(collect_sse(&seen).last().unwrap().event, "run_finished");
    // Afterwards from the store, the same bytes.
    assert_eq!(servers.two.get(&events, ANN).await.text, seen);

    let background = json!({ "input": "paced", "background": true });
    let response = servers.one.post("/v1/responses", &background, ANN).await.json();
    let path = format!("/v1/responses/{}", response["id"].as_str().unwrap());
    assert_eq!(servers.two.get(&path, ANN).await.json()["status"], "in_progress");
    let stream = servers.two.get(&format!("{path}?stream=true"), ANN).await;
    assert!(stream.text.contains("event: response.completed"), "{}", stream.text);
    assert_eq!(servers.one.get(&format!("{path}?stream=true"), ANN).await.text, stream.text);
    assert_eq!(servers.two.get(&path, ANN).await.json()["output_text"], "Begin. End.");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_cancelled_through_another_server_by_its_owner() {
    let servers = TwoServers::start(TOKENS).await;
    let bearer = [("authorization", "Bearer ann-tok")];
    let mut asked = begin(&servers.one, "/v1/agent/ask", &json!({ "question": "slow" }), &bearer).await;
    let run_id = run_id_in(&read_until(&mut asked, "Half an").await);
    let cancel = format!("/v1/agent/runs/{run_id}/cancel");
    assert_eq!(servers.two.post(&cancel, &json!({}), Some("bob-tok")).await.status, 404);
    assert_eq!(servers.two.post(&cancel, &json!({}), Some("no-tok")).await.status, 401);
    let cancelled = servers.two.post(&cancel, &json!({}), ANN).await;
    assert_eq!((cancelled.status, &cancelled.json()["status"]), (200, &json!("cancelled")), "{}", cancelled.text);
    let rest = asked.text().await.unwrap();
    assert!(rest.contains("event: run_finished"), "{rest}");

    let background = json!({ "input": "slow", "background": true });
    let response = servers.one.post("/v1/responses", &background, ANN).await.json();
    let path = format!("/v1/responses/{}", response["id"].as_str().unwrap());
    let cancelled = servers.two.post(&format!("{path}/cancel"), &json!({}), ANN).await;
    assert_eq!(cancelled.json()["status"], "cancelled", "{}", cancelled.text);
    let deleted = servers.one.post("/v1/responses", &background, ANN).await.json();
    let path = servers.two.url(&format!("/v1/responses/{}", deleted["id"].as_str().unwrap()));
    let deleted = servers.two.send(servers.two.http.delete(path.clone()), ANN).await;
    assert_eq!(deleted.json()["deleted"], true, "{}", deleted.text);
    assert_eq!(servers.one.send(servers.one.http.get(path), ANN).await.status, 404);
}

/// A client that goes away is gone on the server that has the run, too.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_ends_with_its_last_client_wherever_that_is() {
    let servers = TwoServers::start("").await;
    let body = json!({ "question": "slow" });
    let mut asked = begin(&servers.one, "/v1/agent/ask", &body, &[]).await;
    let text = read_until(&mut asked, "Half an").await;
    let run_id = run_id_in(&text);
    let first = text.lines().find_map(|line| line.strip_prefix("id:")).unwrap().trim().to_owned();
    let mut again = begin(&servers.two, "/v1/agent/ask", &body, &[("last-event-id", &first)]).await;
    read_until(&mut again, "Half an").await;
    drop(asked);
    let run = servers.two.get(&format!("/v1/agent/runs/{run_id}"), None).await.json();
    assert_eq!(run["status"], "running");
    drop(again);
    servers.wait_for_status(&run_id, "cancelled", None).await;
    assert_eq!(servers.one.get("/v1/agent/runs", None).await.json()["runs"].as_array().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_of_ksadk_are_read_and_cancelled_through_another_server() {
    let servers = TwoServers::start("").await;
    let asked = json!({ "AgentId": "querent", "UserId": "u1", "SessionId": "k1", "InvocationId": "i1", "Stream": true,
        "Messages": [{ "role": "user", "content": "slow" }] });
    let mut stream = begin(&servers.one, &format!("{KSADK}/RunAgent"), &asked, &[]).await;
    read_until(&mut stream, "Half an").await;
    let named = json!({ "AgentId": "querent", "UserId": "u1", "SessionId": "k1" });
    let messages = servers.two.post(&format!("{KSADK}/ListSessionMessages"), &named, None).await;
    assert!(messages.text.contains("slow"), "{}", messages.text);
    assert_eq!(messages.header(SERVER), "", "the server that has the run answered");
    let url = servers.two.url(&format!("{KSADK}/SubscribeRunEvents?SessionId=k1&InvocationId=i1"));
    let mut followed = servers.two.http.get(url).send().await.unwrap();
    let seen = read_until(&mut followed, "user_message").await;
    let cancel = json!({ "SessionId": "k1", "InvocationId": "i1" });
    let cancelled = servers.two.post(&format!("{KSADK}/CancelRun"), &cancel, None).await.json();
    assert_eq!(cancelled["Data"]["Cancelled"], true, "{cancelled}");
    let seen = seen + &followed.text().await.unwrap();
    assert!(seen.contains("[DONE]"), "{seen}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_of_adk_is_read_and_deleted_through_another_server() {
    let servers = TwoServers::start("").await;
    let path = "/apps/querent/users/u1/sessions/a1";
    assert_eq!(servers.one.post(path, &json!({}), None).await.status, 200);
    let asked = json!({ "appName": "querent", "userId": "u1", "sessionId": "a1", "streaming": true,
        "newMessage": { "role": "user", "parts": [{ "text": "slow" }] } });
    let mut stream = begin(&servers.one, "/run_sse", &asked, &[]).await;
    read_until(&mut stream, "Half an").await;
    let session = servers.two.get(path, None).await;
    assert!(session.text.contains("slow"), "{}", session.text);
    assert_eq!(session.header(SERVER), "");
    let deleted = servers.two.send(servers.two.http.delete(servers.two.url(path)), None).await;
    assert_eq!(deleted.status, 200, "{}", deleted.text);
    stream.text().await.unwrap();
    assert_eq!(servers.one.get(path, None).await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_of_a_session_of_adk_through_two_servers_all_stay() {
    let servers = TwoServers::start("").await;
    let path = "/apps/querent/users/u1/sessions/a1";
    assert_eq!(servers.one.post(path, &json!({}), None).await.status, 200);
    let changes = [&servers.one, &servers.two].into_iter().cycle().zip(0..10).map(|(server, number)| {
        let delta = json!({ "stateDelta": { (format!("own{number}")): 1, (format!("app:{number}")): 1 } });
        server.send(server.http.patch(server.url(path)).json(&delta), None)
    });
    for changed in futures::future::join_all(changes).await {
        assert_eq!(changed.status, 200, "{}", changed.text);
    }
    let state = servers.two.get(path, None).await.json()["state"].clone();
    assert_eq!(state.as_object().unwrap().len(), 20, "{state}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_deleted_with_its_run_through_another_server() {
    let servers = TwoServers::start("").await;
    let body = json!({ "question": "slow", "session_id": "s1" });
    let mut asked = begin(&servers.one, "/v1/agent/ask", &body, &[]).await;
    let run_id = run_id_in(&read_until(&mut asked, "Half an").await);
    let deleted = servers.two.http.delete(servers.two.url("/v1/agent/sessions/s1"));
    assert_eq!(servers.two.send(deleted, None).await.status, 200);
    let rest = asked.text().await.unwrap();
    assert!(rest.contains("event: run_finished"), "{rest}");
    assert_eq!(servers.one.get(&format!("/v1/agent/runs/{run_id}"), None).await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thread_of_cube_is_joined_and_aborted_through_another_server() {
    let servers = TwoServers::start("").await;
    let key = [("authorization", "Api-Key any-key")];
    let who = json!({ "externalId": "ann@example.com" });
    let asked = json!({ "input": "slow", "chatId": "c", "messageId": "1717500000000-message", "sessionSettings": who });
    let path = format!("{CUBE}/stream-chat-state");
    let mut stream = begin(&servers.one, &path, &asked, &key).await;
    read_until(&mut stream, "Half an").await;
    let thread = json!({ "chatId": "c", "sessionSettings": who });
    let mut joined = begin(&servers.two, &path, &thread, &key).await;
    let seen = read_until(&mut joined, "__cutoff__").await;
    assert!(seen.contains("slow"), "{seen}");
    let aborted = begin(&servers.two, &format!("{CUBE}/abort"), &thread, &key).await;
    assert_eq!(aborted.status(), 204);
    let rest = seen + &joined.text().await.unwrap();
    assert!(rest.contains("Half an"), "{rest}");
    let run_id = newest_run(&servers.one.get("/v1/agent/runs", None).await.json());
    servers.wait_for_status(&run_id, "cancelled", None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_of_a2a_is_got_and_cancelled_through_another_server() {
    let servers = TwoServers::start("").await;
    let call = |method: &str, params: Value| json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let message = json!({ "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "slow" }] });
    let send = call("SendMessage", json!({ "message": message, "configuration": { "returnImmediately": true } }));
    let begun = servers.one.post("/a2a", &send, None).await.json();
    let id = begun["result"]["task"]["id"].clone();
    let got = servers.two.post("/a2a", &call("GetTask", json!({ "id": id })), None).await;
    assert_eq!(got.json()["result"]["status"]["state"], "TASK_STATE_WORKING", "{}", got.text);
    assert_eq!(got.header(SERVER), "");
    let subscribe = call("SubscribeToTask", json!({ "id": id }));
    let mut followed = begin(&servers.two, "/a2a", &subscribe, &[]).await;
    read_until(&mut followed, "TASK_STATE_WORKING").await;
    let cancelled = servers.two.post("/a2a", &call("CancelTask", json!({ "id": id })), None).await;
    assert_eq!(cancelled.json()["result"]["status"]["state"], "TASK_STATE_CANCELED", "{}", cancelled.text);
    let rest = followed.text().await.unwrap();
    assert!(rest.contains("TASK_STATE_CANCELED"), "{rest}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_of_holmes_goes_on_through_another_server() {
    let servers = TwoServers::start("").await;
    let body = json!({ "ask": "slow", "stream": true });
    let mut stream = begin(&servers.one, "/api/chat", &body, &[]).await;
    let seen = read_until(&mut stream, "tool_calling_result").await;
    let first = seen.lines().find_map(|line| line.strip_prefix("id:")).unwrap().trim().to_owned();
    let mut again = begin(&servers.two, "/api/chat", &body, &[("last-event-id", &first)]).await;
    read_until(&mut again, "tool_calling_result").await;
    let runs = servers.one.get("/v1/agent/runs", None).await.json();
    assert_eq!(runs["runs"].as_array().unwrap().len(), 1, "{runs}");
    let cancel = format!("/v1/agent/runs/{}/cancel", newest_run(&runs));
    assert_eq!(servers.two.post(&cancel, &json!({}), None).await.json()["status"], "cancelled");
    again.text().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_is_approved_through_another_server_and_executed_once() {
    let servers = TwoServers::start(TOKENS).await;
    let question = json!({ "question": "make a table", "approvals": true });
    let asked = servers.one.post("/v1/agent/ask", &question, ANN).await.text;
    let run_id = run_id_in(&asked);
    let path = format!("/v1/agent/runs/{run_id}/approvals");
    let waiting = servers.two.get(&path, ANN).await.json();
    assert_eq!(waiting["approvals"][0]["tool"], "create_table_as", "{waiting}");
    let decided = servers.two.post(&path, &json!({ "approve": true }), ANN).await;
    assert!(decided.text.contains("It is made."), "{}", decided.text);
    // Again, where it began: the run that went on elsewhere.
    let again = servers.one.post(&path, &json!({ "approve": true }), ANN).await;
    assert_eq!(again.text, decided.text);
    let mut ann = Raw::connect(&servers.one).await.token("ann-tok");
    let (_, rows) = ann.rows("SELECT a FROM made").await.unwrap();
    assert_eq!(row_count(&rows), 1);
}

/// A run of AG-UI is not kept: of two servers that are sent its decision at once, one executes it.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_of_ag_ui_is_approved_once_by_two_servers() {
    let servers = TwoServers::start("").await;
    let user = json!([{ "id": "m1", "role": "user", "content": "make a table" }]);
    let asked = json!({ "threadId": "t", "runId": "r1", "messages": user });
    let text = servers.one.post("/ag-ui", &asked, None).await.text;
    let (_, rest) = text.split_once("\"interrupts\":[{\"id\":\"").unwrap_or_else(|| panic!("{text}"));
    let id = rest.split('"').next().unwrap();
    let approved = json!({ "interruptId": id, "status": "resolved", "payload": { "approved": true } });
    let body = json!({ "threadId": "t", "runId": "r2", "messages": user, "resume": [approved] });
    let (first, second) =
        tokio::join!(servers.one.post("/ag-ui", &body, None), servers.two.post("/ag-ui", &body, None));
    let mut statuses = [first.status, second.status];
    statuses.sort_unstable();
    // One that comes when the other has been executed is answered with what came of it.
    assert!(statuses == [200, 409] || statuses == [200, 200], "{}\n{}", first.text, second.text);
    let mut client = Raw::connect(&servers.two).await;
    assert_eq!(row_count(&client.rows("SELECT a FROM made").await.unwrap().1), 1);
}

fn row_count(batches: &[RecordBatch]) -> usize {
    batches.iter().map(RecordBatch::num_rows).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn tickets_are_fetched_through_any_server_by_their_caller() {
    let servers = TwoServers::start(TOKENS).await;
    let mut one = Raw::connect(&servers.one).await.token("ann-tok");
    let mut two = Raw::connect(&servers.two).await.token("ann-tok");
    let mut bob = Raw::connect(&servers.two).await.token("bob-tok");

    let text = servers.one.post("/v1/agent/ask", &json!({ "question": "rows" }), ANN).await.text;
    let frames = collect_sse(&text);
    let answer = frames.iter().find(|frame| frame.event == "answer_final").unwrap();
    let ticket = Ticket::new(answer.data["ticket"].as_str().unwrap().to_owned());
    let (_, rows) = decode(two.fetch(ticket.clone()).await.unwrap()).await;
    assert_eq!(row_count(&rows), 1_000);
    assert_eq!(decode(one.fetch(ticket.clone()).await.unwrap()).await.1, rows);
    let refused = bob.fetch(ticket).await.unwrap_err();
    assert_eq!((refused.code(), code_of(&refused)), (Code::PermissionDenied, "forbidden"));

    let ticket = ticket_of(&one.plan("SELECT value AS n FROM generate_series(1, 10) AS s(value)").await.unwrap());
    let (_, rows) = decode(two.fetch(ticket.clone()).await.unwrap()).await;
    assert_eq!(row_count(&rows), 10);
    assert_eq!(bob.fetch(ticket).await.unwrap_err().code(), Code::PermissionDenied);
    // A change is carried out once, by the server that planned it.
    let ticket = ticket_of(&one.plan("CREATE TABLE through_two AS SELECT 1 AS a").await.unwrap());
    two.fetch(ticket.clone()).await.unwrap();
    assert_eq!(code_of(&two.fetch(ticket.clone()).await.unwrap_err()), "ticket_used");
    assert_eq!(code_of(&one.fetch(ticket).await.unwrap_err()), "ticket_used");
    // It is cancelled where it was made.
    let info = one.plan("SELECT 1 AS a").await.unwrap();
    let cancel = CancelFlightInfoRequest::new(info.clone()).encode_to_vec();
    let answer = two.act("CancelFlightInfo", cancel).await.unwrap();
    let answer = CancelFlightInfoResult::decode(answer[0].clone()).unwrap();
    assert_eq!(answer.status(), CancelStatus::Cancelled);
    assert_eq!(code_of(&one.fetch(ticket_of(&info)).await.unwrap_err()), "ticket_used");
    // One of a server that is none.
    let forged = Ticket::new(format!("querentresultset{:032x}{}", 7, uuid::Uuid::now_v7().simple()));
    let refused = two.fetch(forged).await.unwrap_err();
    assert_eq!((refused.code(), code_of(&refused)), (Code::Unavailable, "run_elsewhere"));
}

/// A client is not to take a part of the rows for all of them, and may try again.
#[tokio::test(flavor = "multi_thread")]
async fn rows_of_a_killed_server_end_with_its_name() {
    let postgres = PostgresProcess::start();
    let url = postgres.new_database("lake");
    let settings = [("QUERENT_CATALOG_URL", url.as_str())];
    let (mut one, two) = (ServerProcess::start(&settings), ServerProcess::start(&settings));
    let sql = "SELECT value AS n, repeat('x', 200) AS s FROM generate_series(1, 20000000) AS s(value)";
    let ticket = ticket_of(&Raw::at(&one.url).await.plan(sql).await.unwrap());
    let mut through = Raw::at(&two.url).await;
    let mut rows = through.client.do_get(ticket).await.unwrap().into_inner();
    rows.message().await.unwrap().unwrap();
    one.child.kill().unwrap();
    one.child.wait().unwrap();
    let error = loop {
        match rows.message().await {
            Ok(Some(_)) => {}
            Ok(None) => panic!("a part of the rows is taken for all"),
            Err(error) => break error,
        }
    };
    assert_eq!((error.code(), code_of(&error)), (Code::Unavailable, "run_elsewhere"), "{error}");
}

fn code_of(status: &tonic::Status) -> &str {
    status.metadata().get("x-querent-code").unwrap().to_str().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_not_reached_is_named_and_what_is_stored_is_shown() {
    // Nothing listens there.
    let servers = TwoServers::start_with(TOKENS, |settings| {
        settings.cluster.address = Some("http://127.0.0.1:1".to_owned());
    })
    .await;
    let bearer = [("authorization", "Bearer ann-tok")];
    let mut asked = begin(&servers.one, "/v1/agent/ask", &json!({ "question": "slow" }), &bearer).await;
    let run_id = run_id_in(&read_until(&mut asked, "Half an").await);
    let own = id_of(&servers.one);
    let run = servers.two.get(&format!("/v1/agent/runs/{run_id}"), ANN).await;
    assert_eq!((run.status, &run.json()["status"]), (200, &json!("running")));
    assert_eq!(run.header(SERVER), own);
    for path in ["events", "cancel"].map(|what| format!("/v1/agent/runs/{run_id}/{what}")) {
        let reply = match path.ends_with("events") {
            true => servers.two.get(&path, ANN).await,
            false => servers.two.post(&path, &json!({}), ANN).await,
        };
        assert_eq!((reply.status, reply.header("x-querent-error-code")), (503, "run_elsewhere"), "{}", reply.text);
        assert_eq!((reply.header(SERVER), reply.header("retry-after")), (own.as_str(), "1"));
    }
    let response = servers.one.post("/v1/responses", &json!({ "input": "slow", "background": true }), ANN).await.json();
    let path = format!("/v1/responses/{}", response["id"].as_str().unwrap());
    assert_eq!(servers.two.get(&path, ANN).await.json()["status"], "in_progress");
    let stream = servers.two.get(&format!("{path}?stream=true"), ANN).await;
    assert_eq!((stream.status, &stream.json()["error"]["code"]), (503, &json!("run_elsewhere")));
    let items = servers.two.get(&format!("{path}/input_items"), ANN).await.json();
    assert_eq!(items["data"][0]["content"][0]["text"], "slow", "{items}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_has_one_run_in_progress_wherever_that_is() {
    let servers = TwoServers::start(TOKENS).await;
    let background = json!({ "input": "slow", "background": true, "conversation": "c1" });
    let response = servers.one.post("/v1/responses", &background, ANN).await.json();
    let second = servers.two.post("/v1/responses", &json!({ "input": "and?", "conversation": "c1" }), ANN).await;
    assert_eq!((second.status, &second.json()["error"]["code"]), (409, &json!("conversation_locked")));
    let cancel = format!("/v1/responses/{}/cancel", response["id"].as_str().unwrap());
    servers.two.post(&cancel, &json!({}), ANN).await;
    let second = servers.two.post("/v1/responses", &json!({ "input": "and?", "conversation": "c1" }), ANN).await;
    assert_eq!(second.json()["output_text"], "Here.", "{}", second.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_says_it_is_a_server_is_refused() {
    let servers = TwoServers::start(TOKENS).await;
    for name in ["x-querent-forwarded-by", "x-querent-forwarded-signature"] {
        let request = servers.two.http.get(servers.two.url("/v1/agent/runs")).header(name, "me");
        let reply = servers.two.send(request, ANN).await;
        let expected = if name == "x-querent-forwarded-by" { (403, "forbidden") } else { (200, "") };
        assert_eq!((reply.status, reply.header("x-querent-error-code")), expected, "{name}: {}", reply.text);
    }
}

/// A bound that is set holds for all servers together, by what the catalog has in progress.
#[tokio::test(flavor = "multi_thread")]
async fn a_caller_has_so_many_runs_on_all_servers_together() {
    let postgres = PostgresProcess::start();
    let url = postgres.new_database("lake");
    let bound = |settings: &mut Settings| settings.agent.max_concurrent_runs_per_caller = Some(2);
    let one = TwoServers::server(TOKENS, url.clone(), bound).await;
    let two = TwoServers::server(TOKENS, url, bound).await;
    let bearer = [("authorization", "Bearer ann-tok")];
    let body = json!({ "question": "slow" });
    let mut on_one = begin(&one, "/v1/agent/ask", &body, &bearer).await;
    let first = run_id_in(&read_until(&mut on_one, "Half an").await);
    let mut on_two = begin(&two, "/v1/agent/ask", &body, &bearer).await;
    read_until(&mut on_two, "Half an").await;

    for server in [&one, &two] {
        let refused = server.post("/v1/agent/ask", &json!({ "question": "hello" }), ANN).await;
        assert_eq!(
            (refused.status, refused.header("x-querent-error-code")),
            (429, "too_many_runs"),
            "{}",
            refused.text
        );
        assert!(refused.text.contains("2 runs"), "{}", refused.text);
        assert_eq!(server.get("/v1/agent/runs", ANN).await.json()["runs"].as_array().unwrap().len(), 2);
    }
    let others = two.post("/v1/agent/ask", &json!({ "question": "hello" }), Some("bob-tok")).await;
    assert!(others.text.contains("Here."), "{}", others.text);

    // One after the other all of them have a turn, wherever the one before was.
    let cancelled = two.post(&format!("/v1/agent/runs/{first}/cancel"), &json!({}), ANN).await;
    assert_eq!(cancelled.json()["status"], "cancelled", "{}", cancelled.text);
    for server in [&one, &two, &one] {
        let answered = server.post("/v1/agent/ask", &json!({ "question": "hello" }), ANN).await;
        assert!(answered.text.contains("Here."), "{}", answered.text);
    }
}

/// A server that stood still goes on with a run that another one has ended meanwhile: its clients are told so, and what is
/// stored stays.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_another_server_ended_ends_so_for_its_clients() {
    let servers = TwoServers::start("").await;
    let mut asked = begin(&servers.one, "/v1/agent/ask", &json!({ "question": "paced" }), &[]).await;
    let begun = read_until(&mut asked, "Begin.").await;
    let run_id = run_id_in(&begun).parse().unwrap();
    let own = id_of(&servers.one);
    let (runs, who) = (servers.two.engine().catalog().runs(), Principal::local_admin());
    let run = runs.get(&who, run_id).await.unwrap();
    let ended = RunRecord { status: RunStatus::Error, finished_at: Some(chrono::Utc::now()), ..run };
    assert!(runs.end_on(&own, &ended).await.unwrap());
    let seen = begun + &asked.text().await.unwrap();
    let last: Vec<_> = collect_sse(&seen).into_iter().rev().take(2).collect();
    assert_eq!([&last[1].event, &last[0].event], ["run_error", "run_finished"], "{seen}");
    assert_eq!(last[1].data["detail_code"], "server_restarted", "{seen}");
    assert!(!seen.contains("End."), "{seen}");
    assert_eq!(runs.get(&who, run_id).await.unwrap().events_json, ended.events_json);
}

/// The run of a server that was killed is ended by the other one, once, and its conversation goes on.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_of_a_killed_server_is_ended_by_another() {
    let postgres = PostgresProcess::start();
    let url = postgres.new_database("lake");
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("script.json");
    std::fs::write(&path, script().to_string()).unwrap();
    let script = path.display().to_string();
    let settings = [("QUERENT_AGENT_SCRIPT", script.as_str()), ("QUERENT_CATALOG_URL", url.as_str())];
    let (mut one, two) = (ServerProcess::start(&settings), ServerProcess::start(&settings));
    let http = reqwest::Client::new();
    let at = |server: &ServerProcess, path: &str| format!("{}{path}", server.url.trim_end_matches('/'));
    let body = json!({ "question": "slow", "session_id": "s1" });
    let mut asked = http.post(at(&one, "/v1/agent/ask")).json(&body).send().await.unwrap();
    let run_id = run_id_in(&read_until(&mut asked, "Half an").await);
    let run = at(&two, &format!("/v1/agent/runs/{run_id}"));
    let mut followed = http.get(format!("{run}/events")).send().await.unwrap();
    read_until(&mut followed, "Half an").await;

    one.child.kill().unwrap();
    one.child.wait().unwrap();
    // What came from there breaks off, as it would have there.
    let rest = tokio::time::timeout(Duration::from_secs(30), followed.text()).await.unwrap();
    assert!(!rest.is_ok_and(|rest| rest.contains("run_finished")));
    let refused = http.get(format!("{run}/events")).send().await.unwrap();
    assert_eq!((refused.status().as_u16(), refused.headers().contains_key(SERVER)), (503, true));
    let ended = wait_for("the run is ended", async || {
        let run: Value = http.get(&run).send().await.ok()?.json().await.ok()?;
        (run["status"] == "error").then_some(run)
    })
    .await;
    let names: Vec<&str> =
        ended["trace"].as_array().unwrap().iter().map(|frame| frame["event"].as_str().unwrap()).collect();
    assert_eq!(names[names.len() - 2..], ["run_error", "run_finished"], "{ended}");
    assert!(ended.to_string().contains("server_restarted"), "{ended}");
    let replayed = http.get(format!("{run}/events")).send().await.unwrap().text().await.unwrap();
    assert!(replayed.contains("event: run_finished"), "{replayed}");
    let next = json!({ "question": "and now?", "session_id": "s1" });
    let next = http.post(at(&two, "/v1/agent/ask")).json(&next).send().await.unwrap().text().await.unwrap();
    assert!(next.contains("Here."), "{next}");
}
