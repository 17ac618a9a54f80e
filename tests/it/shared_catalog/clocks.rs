//! Servers whose clocks differ: what one compares with what another wrote has the time of the database that they share.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use querent_catalog::{LeasedWork, time_before};
use querent_tests::{PostgresProcess, TestServer, TestSettings};
use serde_json::{Value, json};

use super::{create, names, open, snapshot};

const HOUR: Duration = Duration::from_secs(3_600);
/// A clock of the database that is two hours ahead of everybody else's.
const AHEAD: &str = "CREATE FUNCTION public.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS
     $$ SELECT pg_catalog.clock_timestamp() + interval '2 hours' $$";

fn database_ahead(postgres: &PostgresProcess) -> String {
    let url = postgres.new_database("lake");
    postgres.psql("lake", AHEAD).unwrap();
    postgres.psql("postgres", "ALTER DATABASE lake SET search_path = public, pg_catalog").unwrap();
    url
}

/// Whether a time is about two hours from now.
fn is_ahead(time: DateTime<Utc>) -> bool {
    (time - Utc::now() - TimeDelta::hours(2)).abs() < TimeDelta::minutes(5)
}

#[tokio::test(flavor = "multi_thread")]
async fn snapshots_age_by_the_clock_of_the_database() {
    let postgres = PostgresProcess::start();
    let url = database_ahead(&postgres);
    let folder = tempfile::tempdir().unwrap();
    let catalog = open(folder.path(), &url).await;
    let now = catalog.now().await.unwrap();
    assert!(is_ahead(now), "{now}");
    for name in ["orders", "customers"] {
        create(&catalog, name).await.unwrap();
    }
    let newest = "SELECT snapshot_time > pg_catalog.clock_timestamp() + interval '1 hour' FROM ducklake_snapshot
                  ORDER BY snapshot_id DESC LIMIT 1";
    assert_eq!(postgres.psql("lake", newest).unwrap().trim(), "t");

    // Of the last hour nothing is forgotten, though a server's clock says otherwise.
    let count = || postgres.psql("lake", "SELECT count(*) FROM ducklake_snapshot").unwrap();
    let (before, last) = (count(), snapshot(&catalog).await);
    let lease = catalog.leases().take(LeasedWork::Snapshots, HOUR).await.unwrap().had().unwrap();
    let an_hour_ago = time_before(catalog.now().await.unwrap(), HOUR).unwrap();
    catalog.expire_snapshots(an_hour_ago, &lease).await.unwrap();
    assert_eq!((count(), snapshot(&catalog).await), (before, last));
    lease.finish().await.unwrap();
    assert_eq!(names(&catalog).await, ["customers", "orders"]);
    catalog.close().await.unwrap();
}

/// Which run of a conversation is its last one, and what was added since, is decided by times that servers wrote.
#[tokio::test(flavor = "multi_thread")]
async fn runs_and_items_have_the_time_of_the_database() {
    let postgres = PostgresProcess::start();
    let url = database_ahead(&postgres);
    let settings = TestSettings::default().change(|settings| settings.catalog.url = Some(url));
    let server = TestServer::start(settings).await;
    server.post("/v1/agent/ask", &json!({ "question": "how many?", "session_id": "s" }), None).await;
    let listed = server.get("/v1/agent/runs", None).await.json();
    let run = &listed["runs"][0];
    let started: DateTime<Utc> = run["started_at"].as_str().unwrap().parse().unwrap();
    assert!(is_ahead(started), "{run}");
    let message = json!({ "items": [{ "type": "message", "role": "user", "content": "And one thing more." }] });
    let added = server.post("/v1/conversations/s/items", &message, None).await;
    assert_eq!(added.status, 200, "{}", added.text);
    server.post("/v1/agent/ask", &json!({ "question": "and now?", "session_id": "s" }), None).await;
    let told = server.model.requests().last().unwrap().messages.clone();
    assert!(told.iter().any(|message| message.content.contains("one thing more")), "{told:?}");
}

/// What a user is granted through one server is good on the others for as long as it was said to be.
#[tokio::test(flavor = "multi_thread")]
async fn users_of_applications_and_their_grants_end_by_the_clock_of_the_database() {
    let postgres = PostgresProcess::start();
    let url = database_ahead(&postgres);
    let settings = TestSettings::default().change(|settings| settings.catalog.url = Some(url));
    let server = TestServer::start(settings).await;
    let asked = async |path: &str, body: Value| {
        let request = server.http.post(server.url(path)).header("authorization", "Api-Key any-key").json(&body);
        let answer = server.send(request, None).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.text);
        answer.json()
    };
    let session = asked("/api/v1/embed/generate-session", json!({ "externalId": "x" })).await;
    let token = asked("/api/v1/embed/session/token", json!({ "sessionId": session["sessionId"] })).await;
    let good = "SELECT count(*) FROM querent_embed_grant
                WHERE to_timestamp(expires_at / 1000000.0) > pg_catalog.clock_timestamp() + interval '2 hours'";
    assert_eq!(postgres.psql("lake", good).unwrap().trim(), "2", "the session and the token");
    let bearer = format!("Bearer {}", token["token"].as_str().unwrap());
    let chat = server.http.post(server.url("/api/v1/public/acme/agents/1/chat/stream-chat-state"));
    let chat = chat.header("authorization", bearer).json(&json!({ "chatId": "c", "input": "how many?" }));
    assert_eq!(server.send(chat, None).await.status, 200);
}
