//! Runs and answers that are kept are judged again whenever they are read: by a token that reads less, after a policy came, after
//! the token ended.

use std::time::Duration;

use querent_tests::script::{run_sql, says};
use querent_tests::{HttpReply, TestServer, TestSettings, collect_sse};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const ASK: &str = "/v1/agent/ask";

async fn serve() -> TestServer {
    let turns = json!([{ "events": [run_sql("SELECT word FROM pub.plain")] }, says("done")]);
    let script = json!({ "runs": [{ "turns": turns, "repeat_last": true }] });
    let server = TestServer::start(TestSettings::default().tokens("boss-tok:admin:boss").script(script)).await;
    for statement in ["CREATE DATABASE pub", "CREATE TABLE pub.plain AS SELECT 1 AS a, 'val_lynx' AS word"] {
        server.execute(statement).await;
    }
    server
}

async fn token(server: &TestServer, body: Value) -> (i64, String) {
    let reply = server.post("/v1/tokens", &body, Some("boss-tok")).await;
    assert_eq!(reply.status, 201, "{}", reply.text);
    (reply.json()["id"].as_i64().unwrap(), reply.json()["token"].as_str().unwrap().to_owned())
}

async fn ask_with_key(server: &TestServer, key: &str, token: &str) -> HttpReply {
    let request = server.http.post(server.url(ASK)).header("idempotency-key", key);
    server.send(request.json(&json!({ "question": "which word?" })), Some(token)).await
}

fn run_id(reply: &HttpReply) -> String {
    collect_sse(&reply.text)[0].data["run_id"].as_str().unwrap().to_owned()
}

/// Both ways to read a run say why they do not show it.
async fn assert_withheld(server: &TestServer, run: &str, token: &str) {
    for path in [format!("/v1/agent/runs/{run}"), format!("/v1/agent/runs/{run}/events")] {
        let reply = server.get(&path, Some(token)).await;
        assert_eq!(
            (reply.status, reply.header("x-querent-error-code")),
            (403, "run_withheld"),
            "{path}: {}",
            reply.text
        );
        assert!(!reply.text.contains("val_lynx"), "{}", reply.text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_narrower_token_of_the_same_name_reads_no_run_of_the_wider_one() {
    let server = serve().await;
    let (_, wide) = token(&server, json!({ "name": "anna", "role": "read" })).await;
    let narrow = json!({ "name": "other", "subject": "anna", "role": "read", "databases": ["default"] });
    let (_, narrow) = token(&server, narrow).await;
    let answer = ask_with_key(&server, "k", &wide).await;
    assert!(answer.text.contains("val_lynx"), "{}", answer.text);
    let run = run_id(&answer);
    assert_withheld(&server, &run, &narrow).await;
    let replayed = ask_with_key(&server, "k", &narrow).await;
    assert_eq!((replayed.status, replayed.header("x-querent-error-code")), (403, "run_withheld"), "{}", replayed.text);
    let traces = json!({ "sql": "SELECT run_id, trace_json FROM system.agent_runs" });
    let traces = server.post("/v1/query", &traces, Some(&narrow)).await;
    assert!(traces.text.contains(&run) && !traces.text.contains("val_lynx"), "{}", traces.text);
    for reader in [&wide, "boss-tok"] {
        let shown = server.get(&format!("/v1/agent/runs/{run}"), Some(reader)).await;
        assert!(shown.text.contains("val_lynx"), "{}", shown.text);
    }
    assert_eq!(ask_with_key(&server, "k", &wide).await.header("idempotency-replayed"), "true");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_administrator_read_of_others_is_not_for_a_reader_of_its_name() {
    let turns = json!([{ "events": [run_sql("SELECT question FROM system.agent_runs")] }, says("done")]);
    let script = json!({ "runs": [{ "turns": turns, "repeat_last": true }] });
    let server = TestServer::start(TestSettings::default().tokens("boss-tok:admin:boss").script(script)).await;
    let (_, anna) = token(&server, json!({ "name": "anna", "role": "read" })).await;
    let (_, reader) = token(&server, json!({ "name": "daily", "subject": "boss", "role": "read" })).await;
    let asked = server.post(ASK, &json!({ "question": "who is val_lynx?" }), Some(&anna)).await;
    assert_eq!(asked.status, 200, "{}", asked.text);
    let answer = ask_with_key(&server, "k", "boss-tok").await;
    assert!(answer.text.contains("val_lynx"), "{}", answer.text);
    assert_withheld(&server, &run_id(&answer), &reader).await;
    let replayed = ask_with_key(&server, "k", &reader).await;
    assert_eq!((replayed.status, replayed.header("x-querent-error-code")), (403, "run_withheld"), "{}", replayed.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_that_came_hides_what_was_read_before() {
    let server = serve().await;
    let (_, anna) = token(&server, json!({ "name": "anna", "role": "read" })).await;
    let answer = ask_with_key(&server, "k", &anna).await;
    let run = run_id(&answer);
    // A grant of another database changes the policy, and not what may be read of this one.
    server.execute("CREATE DATABASE hr").await;
    server.execute("GRANT SELECT ON DATABASE hr TO PUBLIC").await;
    assert!(server.get(&format!("/v1/agent/runs/{run}"), Some(&anna)).await.text.contains("val_lynx"));
    server.execute("CREATE ROW POLICY few ON pub.plain USING (a > 1) TO PUBLIC").await;
    assert_withheld(&server, &run, &anna).await;
    assert_eq!(ask_with_key(&server, "k", &anna).await.status, 403);
    let listed = server.get("/v1/agent/runs", Some(&anna)).await;
    assert!(listed.text.contains(&run), "its own question stays listed: {}", listed.text);
    assert_eq!(server.get(&format!("/v1/agent/runs/{run}"), Some("boss-tok")).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_takes_nothing_from_a_caller_who_is_not_known() {
    let server = serve().await;
    let (id, anna) = token(&server, json!({ "name": "anna", "role": "read" })).await;
    assert_eq!(ask_with_key(&server, "k", &anna).await.status, 200);
    let revoked = server.send(server.http.delete(server.url(&format!("/v1/tokens/{id}"))), Some("boss-tok")).await;
    assert_eq!(revoked.status, 200);
    assert_eq!(ask_with_key(&server, "k", &anna).await.status, 401, "a token that ended gets no answer again");

    // It is refused by its headers, while none of its body is there.
    let address = server.url("").trim_start_matches("http://").trim_end_matches('/').to_owned();
    let mut connection = TcpStream::connect(&address).await.unwrap();
    let head = format!(
        "POST {ASK} HTTP/1.1\r\nHost: {address}\r\nIdempotency-Key: u\r\nContent-Type: application/json\r\n\
         Content-Length: 16000000\r\n\r\n"
    );
    connection.write_all(head.as_bytes()).await.unwrap();
    let mut answer = [0; 12];
    tokio::time::timeout(Duration::from_secs(20), connection.read_exact(&mut answer)).await.unwrap().unwrap();
    assert_eq!(&answer, b"HTTP/1.1 401");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_administrator_of_some_databases_is_nobody_else() {
    let server = serve().await;
    let (_, anna) = token(&server, json!({ "name": "anna", "role": "read" })).await;
    let run = run_id(&ask_with_key(&server, "k", &anna).await);
    let (_, lead) = token(&server, json!({ "name": "lead", "role": "admin", "databases": ["pub"] })).await;
    let listed = server.get("/v1/agent/runs", Some(&lead)).await;
    assert!(!listed.text.contains(&run), "{}", listed.text);
    assert_eq!(server.get(&format!("/v1/agent/runs/{run}"), Some(&lead)).await.status, 404);
    for subject in ["anna", "boss"] {
        let body = json!({ "name": "x", "subject": subject, "role": "read", "databases": ["pub"] });
        let refused = server.post("/v1/tokens", &body, Some(&lead)).await;
        assert_eq!((refused.status, refused.header("x-querent-error-code")), (400, "invalid_object"), "{subject}");
    }
    for _ in 0..2 {
        let body = json!({ "name": "new", "role": "read", "databases": ["pub"] });
        assert_eq!(server.post("/v1/tokens", &body, Some(&lead)).await.status, 201, "its own tokens can be renewed");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn feedback_needs_no_database_that_the_caller_does_not_see() {
    let server = serve().await;
    let (_, anna) = token(&server, json!({ "name": "anna", "role": "read", "databases": ["pub"] })).await;
    let run = run_id(&ask_with_key(&server, "k", &anna).await);
    let said = json!({ "verdict": "right" });
    let reply = server.post(&format!("/v1/agent/runs/{run}/feedback"), &said, Some(&anna)).await;
    assert_eq!(reply.status, 200, "{}", reply.text);
}
