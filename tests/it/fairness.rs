//! Turns of callers: whoever sends many queries waits behind its own, and nobody else does.

use std::time::{Duration, Instant};

use querent_catalog::{Principal, Role};
use querent_engine::Limits;
use querent_flight::config::Settings;
use querent_tests::{TestServer, TestSettings, wait_until};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::flight_sql::ENDLESS;
use crate::tokens::flight;

const TOKENS: &str = "boss-tok:admin:boss,heavy-tok:read:heavy,light-tok:read:light";

async fn start(change: impl FnOnce(&mut Settings) + Send + 'static) -> TestServer {
    TestServer::start(TestSettings::default().tokens(TOKENS).change(change)).await
}

async fn status(server: &TestServer, sql: &str, token: &str) -> u16 {
    server.post("/v1/query", &json!({ "sql": sql }), Some(token)).await.status
}

/// Sends endless queries, each of which ends with the status of its answer.
fn load(server: &TestServer, queries: usize) -> JoinSet<u16> {
    let mut sent = JoinSet::new();
    for _ in 0..queries {
        let request = server.http.post(server.url("/v1/query")).json(&json!({ "sql": ENDLESS }));
        let request = request.bearer_auth("heavy-tok");
        sent.spawn(async move { request.send().await.unwrap().status().as_u16() });
    }
    sent
}

/// The endless queries that run.
async fn running(server: &TestServer) -> Vec<Value> {
    let listed = server.get("/v1/queries", Some("boss-tok")).await.json();
    let all = listed["queries"].as_array().unwrap_or_else(|| panic!("{listed}")).iter();
    all.filter(|query| query.to_string().contains("generate_series")).cloned().collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn one_callers_load_is_not_anothers_wait() {
    let server = start(|settings| {
        settings.query.max_concurrent = 8;
        settings.query.max_queued = 4;
        settings.query.queue_timeout.0 = Duration::from_secs(60);
    })
    .await;
    let mut heavy = load(&server, 14);
    // Seven run, four wait, and the rest is refused.
    for _ in 0..3 {
        assert_eq!(heavy.join_next().await.unwrap().unwrap(), 429);
    }
    wait_until("the load is there", async || running(&server).await.len() == 7).await;
    let mut slowest = Duration::ZERO;
    for _ in 0..10 {
        let began = Instant::now();
        assert_eq!(status(&server, "SELECT 1 AS one", "light-tok").await, 200);
        slowest = slowest.max(began.elapsed());
    }
    flight(&server, "light-tok").await.unwrap();
    println!("the slowest point query took {slowest:?} beside seven endless ones");
    assert!(slowest < Duration::from_secs(2), "{slowest:?}");
    assert_eq!(status(&server, "SELECT 1 AS one", "heavy-tok").await, 429, "its own queue is full");
    let metrics = server.get("/metrics", Some("boss-tok")).await.text;
    let value = |series: &str| {
        let line =
            metrics.lines().find(|line| line.starts_with(series)).unwrap_or_else(|| panic!("{series}: {metrics}"));
        line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()
    };
    // Servers of other tests in this process count in the same series.
    assert!(value("querent_queries_waiting ") >= 4.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_place_that_becomes_free_goes_to_whoever_has_none() {
    let server = start(|settings| {
        settings.query.max_concurrent = 1;
        settings.query.max_queued = 3;
        settings.query.queue_timeout.0 = Duration::from_secs(60);
    })
    .await;
    let mut heavy = load(&server, 4);
    wait_until("one runs", async || running(&server).await.len() == 1).await;
    let mut light = JoinSet::new();
    let request = server.http.post(server.url("/v1/query")).json(&json!({ "sql": "SELECT 1 AS one" }));
    let request = request.bearer_auth("light-tok");
    light.spawn(async move { request.send().await.unwrap().status().as_u16() });
    // The queue was full: the youngest of those that had most in it made room.
    assert_eq!(heavy.join_next().await.unwrap().unwrap(), 429);
    let id = running(&server).await[0]["id"].to_string().trim_matches('"').to_owned();
    let cancelled = server.post(&format!("/v1/queries/{id}/cancel"), &json!({}), Some("boss-tok")).await;
    assert_eq!(cancelled.status, 200, "{}", cancelled.text);
    assert_eq!(light.join_next().await.unwrap().unwrap(), 200, "before those that had come earlier");
    wait_until("the next of the others runs", async || running(&server).await.len() == 1).await;
    let metrics = server.get("/metrics", Some("boss-tok")).await.text;
    assert!(metrics.contains("querent_query_wait_seconds_count{door=\"http\"}"), "{metrics}");
}

/// Runs of the agent have turns as queries do.
#[tokio::test(flavor = "multi_thread")]
async fn one_callers_runs_leave_some_to_others() {
    let script = json!({ "runs": [
        { "when": "hang", "turns": [{ "events": ["hang"] }], "repeat_last": true },
        { "turns": [{ "events": [{ "text": "42" }] }], "repeat_last": true },
    ] });
    let change = |settings: &mut Settings| {
        settings.agent.max_concurrent_runs = 8;
        settings.agent.max_queued_runs = 2;
        settings.agent.run_queue_timeout.0 = Duration::from_secs(60);
    };
    let server = TestServer::start(TestSettings::default().tokens(TOKENS).script(script).change(change)).await;
    let ask = |question: &str, token: &str| {
        let request = server.http.post(server.url("/v1/agent/ask")).json(&json!({ "question": question }));
        request.bearer_auth(token).send()
    };
    let mut heavy = JoinSet::new();
    for _ in 0..10 {
        heavy.spawn(ask("hang", "heavy-tok"));
    }
    // Seven run, two wait, and one is refused: the answers of those that run have begun.
    let mut begun = Vec::new();
    let mut refused = 0;
    for _ in 0..8 {
        let answer = heavy.join_next().await.unwrap().unwrap().unwrap();
        match answer.status().as_u16() {
            200 => begun.push(answer),
            status => {
                assert_eq!((status, answer.headers()["retry-after"].to_str().unwrap()), (429, "1"));
                refused += 1;
            }
        }
    }
    assert_eq!((begun.len(), refused), (7, 1));
    for _ in 0..5 {
        let answer = ask("how much?", "light-tok").await.unwrap();
        assert_eq!(answer.status(), 200);
        let text = answer.text().await.unwrap();
        assert!(text.contains("run_finished"), "{text}");
    }
    // One that ends makes room for one that waits.
    drop(begun.pop());
    assert_eq!(heavy.join_next().await.unwrap().unwrap().unwrap().status(), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_that_is_too_long_is_refused() {
    let server = start(|settings| {
        settings.query.max_concurrent = 1;
        settings.query.queue_timeout.0 = Duration::from_millis(300);
    })
    .await;
    let _heavy = load(&server, 1);
    wait_until("one runs", async || running(&server).await.len() == 1).await;
    let began = Instant::now();
    let reply = server.post("/v1/query", &json!({ "sql": "SELECT 1 AS one" }), Some("light-tok")).await;
    assert_eq!((reply.status, reply.header("retry-after")), (429, "1"), "{}", reply.text);
    assert!(began.elapsed() >= Duration::from_millis(300));
    let refused = flight(&server, "light-tok").await;
    assert!(refused.is_ok(), "planning takes no place: {refused:?}");
    assert_eq!(server.get("/v1/catalog/schema", Some("light-tok")).await.status, 200, "nor do metadata");
}

#[tokio::test(flavor = "multi_thread")]
async fn statements_that_are_only_planned_leave_room_for_others() {
    let (_folder, engine) = crate::sql::engine().await;
    let limits = Limits { wall_clock: Duration::from_secs(5), ..Limits::default() };
    let heavy = engine.session(Principal::new("heavy", Role::Read), limits.clone());
    let mut planned = JoinSet::new();
    for statement in 0..40 {
        let heavy = heavy.clone();
        let chain = "+x-x".repeat(60);
        planned.spawn(async move {
            heavy.describe_sql(&format!("SELECT {statement}, x{chain} FROM (SELECT CAST(1 AS BIGINT) AS x)")).await
        });
    }
    let light = engine.session(Principal::new("light", Role::Read), limits);
    for _ in 0..5 {
        let asked = Instant::now();
        light.describe_sql("SELECT 1").await.unwrap();
        assert!(asked.elapsed() < Duration::from_secs(3), "{:?}", asked.elapsed());
    }
    planned.shutdown().await;
    // What was given up gives its place back.
    heavy.describe_sql("SELECT 1").await.unwrap();
}
