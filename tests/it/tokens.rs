//! Tokens of the catalog: every door takes them beside those of the settings, until they end; nothing keeps or tells them.

use std::path::Path;
use std::time::Duration;

use arrow_flight::sql::client::FlightSqlServiceClient;
use querent_catalog::{NewToken, Principal};
use querent_tests::{TestServer, TestSettings, wait_until};
use serde_json::{Value, json};
use tonic::transport::Endpoint;

/// Requests of each door, as POST of a path and a body.
pub(crate) fn doors() -> Vec<(&'static str, Value)> {
    vec![
        ("/v1/query", json!({ "sql": "SELECT 1 AS one" })),
        ("/v2/rest/query", json!({ "db": "default", "csl": "print one = 1" })),
        ("/v1/rest/query", json!({ "db": "default", "csl": "print one = 1" })),
        ("/mcp", json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" })),
        ("/v1/agent/ask", json!({ "question": "how many?" })),
        ("/v1/responses", json!({ "model": "querent", "input": "how many?" })),
        (
            "/v1/chat/completions",
            json!({ "model": "querent", "messages": [{ "role": "user", "content": "how many?" }] }),
        ),
        (
            "/v1/messages",
            json!({ "model": "querent", "max_tokens": 100, "messages": [{ "role": "user", "content": "how many?" }] }),
        ),
        (
            "/agentengine/api/v1/RunAgent",
            json!({ "Messages": [{ "Role": "user", "Content": "how many?" }], "Stream": false }),
        ),
        (
            "/run",
            json!({ "app_name": "querent", "user_id": "u", "session_id": "s",
                "new_message": { "role": "user", "parts": [{ "text": "how many?" }] } }),
        ),
        ("/api/chat", json!({ "ask": "how many?" })),
    ]
}

/// Sends a request with a token as the door's clients send it.
pub(crate) async fn knock(server: &TestServer, path: &str, body: &Value, token: &str) -> u16 {
    let request = server.http.post(server.url(path)).json(body);
    let request = request.header("accept", "application/json, text/event-stream");
    server.send(request, Some(token)).await.status
}

pub(crate) async fn flight(server: &TestServer, token: &str) -> Result<i64, String> {
    let channel = Endpoint::from_shared(server.url("")).unwrap().connect().await.unwrap();
    let mut client = FlightSqlServiceClient::new(channel);
    client.set_token(token.to_owned());
    let info = client.execute("SELECT 1 AS one".to_owned(), None).await.map_err(|error| error.to_string())?;
    Ok(info.total_records)
}

async fn create(server: &TestServer, body: Value, token: Option<&str>) -> (Value, String) {
    let reply = server.post("/v1/tokens", &body, token).await;
    assert_eq!(reply.status, 201, "{}", reply.text);
    assert_eq!(reply.header("cache-control"), "no-store");
    let created = reply.json();
    let token = created["token"].as_str().unwrap().to_owned();
    (created, token)
}

#[tokio::test]
async fn every_door_takes_a_token_of_the_catalog_until_it_is_revoked() {
    let server = TestServer::start(TestSettings::default().tokens("boss-tok:admin:boss")).await;
    let (created, token) = create(&server, json!({ "name": "anna", "role": "read" }), Some("boss-tok")).await;
    let id = created["id"].as_i64().unwrap();
    for (path, body) in doors() {
        let status = knock(&server, path, &body, &token).await;
        assert!(![401, 403].contains(&status), "{path}: {status}");
        assert_eq!(knock(&server, path, &body, &format!("{token}0")).await, 401, "{path}");
    }
    let cube = |key: String| {
        let body = json!({ "chatId": "c", "input": "how many?", "sessionSettings": { "internalId": "anna" } });
        let request = server.http.post(server.url("/api/v1/public/acme/agents/1/chat/stream-chat-state")).json(&body);
        request.header("authorization", format!("Api-Key {key}"))
    };
    assert_eq!(knock(&server, "/v1/query", &json!({ "sql": "SELECT 1 AS one" }), &token).await, 200);
    let with_cube = server.send(cube(token.clone()), None).await.status;
    flight(&server, &token).await.unwrap();
    assert_eq!(server.post("/v1/tokens", &json!({ "name": "x", "role": "read" }), Some(&token)).await.status, 403);

    let revoked = server.send(server.http.delete(server.url(&format!("/v1/tokens/{id}"))), Some("boss-tok")).await;
    assert_eq!(revoked.status, 200, "{}", revoked.text);
    for (path, body) in doors() {
        assert_eq!(knock(&server, path, &body, &token).await, 401, "{path} after it was revoked");
    }
    assert_ne!(with_cube, 401);
    assert_eq!(server.send(cube(token.clone()), None).await.status, 401);
    assert!(flight(&server, &token).await.is_err());
    // Those of the settings are as before.
    assert_eq!(server.get("/v1/tokens", Some("boss-tok")).await.json()["tokens"][0]["state"], "revoked");
}

#[tokio::test]
async fn a_token_sees_its_databases_and_ends_at_its_time() {
    let server = TestServer::start(TestSettings::default().tokens("boss-tok:admin:boss")).await;
    server.execute("CREATE DATABASE sales").await;
    server.execute("CREATE TABLE sales.t AS SELECT 7 AS a").await;
    server.execute("CREATE TABLE main_only AS SELECT 8 AS a").await;
    let body = json!({ "name": "anna", "role": "read", "databases": ["Sales"] });
    let (_, token) = create(&server, body, Some("boss-tok")).await;
    let query = async |sql: &str| server.post("/v1/query", &json!({ "sql": sql }), Some(&token)).await;
    assert_eq!(query("SELECT a FROM sales.t").await.lines(), [json!({ "a": 7 })]);
    assert_eq!(query("SELECT a FROM default.main_only").await.json()["error"]["code"], "database_not_found");
    assert_eq!(query("CREATE TABLE sales.u AS SELECT 1 AS a").await.status, 403);

    let end = chrono::Utc::now() + chrono::TimeDelta::seconds(2);
    let body = json!({ "name": "brief", "role": "read", "expires_at": end });
    let (created, brief) = create(&server, body, Some("boss-tok")).await;
    assert_eq!(created["state"], "active");
    assert_eq!(server.get("/v1/catalog/schema", Some(&brief)).await.status, 200);
    wait_until("the token ends", async || server.get("/v1/catalog/schema", Some(&brief)).await.status == 401).await;
    let listed = server.get("/v1/tokens", Some("boss-tok")).await.json();
    assert_eq!(listed["tokens"][1]["state"], "expired");

    let refused = [
        json!({ "name": "x", "role": "owner" }),
        json!({ "name": "", "role": "read" }),
        json!({ "name": "x", "role": "read", "expires_at": "2001-01-01T00:00:00Z" }),
        json!({ "name": "x", "role": "read", "secret": "mine" }),
        json!({ "name": "x\n", "role": "read" }),
    ];
    for body in refused {
        let reply = server.post("/v1/tokens", &body, Some("boss-tok")).await;
        assert_eq!(reply.status, 400, "{body}: {}", reply.text);
    }
}

#[tokio::test]
async fn an_administrator_of_some_databases_makes_no_token_for_others() {
    let server = TestServer::start(TestSettings::default().tokens("boss-tok:admin:boss")).await;
    let body = json!({ "name": "lead", "role": "admin", "databases": ["sales"] });
    let (_, lead) = create(&server, body, Some("boss-tok")).await;
    let (other, _) = create(&server, json!({ "name": "all", "role": "read" }), Some("boss-tok")).await;
    for databases in [json!(null), json!(["sales", "hr"])] {
        let body = json!({ "name": "x", "role": "read", "databases": databases });
        assert_eq!(server.post("/v1/tokens", &body, Some(&lead)).await.status, 400, "{body}");
    }
    // Of the time before there were tokens, and of applications' users.
    for (subject, creator) in [("local", lead.as_str()), ("cube:7", lead.as_str()), ("cube:7", "boss-tok")] {
        let body = json!({ "name": "x", "role": "read", "databases": ["sales"], "subject": subject });
        let refused = server.post("/v1/tokens", &body, Some(creator)).await;
        assert_eq!(refused.status, 400, "{subject}: {}", refused.text);
    }
    create(&server, json!({ "name": "y", "role": "read", "databases": ["SALES"] }), Some(&lead)).await;
    let listed = server.get("/v1/tokens", Some(&lead)).await.json();
    let names: Vec<&Value> = listed["tokens"].as_array().unwrap().iter().map(|token| &token["name"]).collect();
    assert_eq!(names, ["lead", "y"]);
    let path = format!("/v1/tokens/{}", other["id"]);
    assert_eq!(server.send(server.http.delete(server.url(&path)), Some(&lead)).await.status, 404);
}

#[tokio::test]
async fn the_first_token_closes_an_open_server_and_it_stays_closed() {
    let server = TestServer::start(TestSettings::default()).await;
    assert_eq!(server.get("/v1/catalog/schema", None).await.status, 200);
    let reply = server.post("/v1/tokens", &json!({ "name": "anna", "role": "read" }), None).await;
    assert_eq!((reply.status, reply.text.contains("role admin")), (400, true), "{}", reply.text);
    let (created, boss) = create(&server, json!({ "name": "boss", "role": "admin" }), None).await;
    assert_eq!(server.get("/v1/catalog/schema", None).await.status, 401);
    assert_eq!(server.get("/v1/catalog/schema", Some(&boss)).await.status, 200);
    let path = format!("/v1/tokens/{}", created["id"]);
    assert_eq!(server.send(server.http.delete(server.url(&path)), Some(&boss)).await.status, 200);
    assert_eq!(server.get("/v1/catalog/schema", Some(&boss)).await.status, 401);
    assert_eq!(server.get("/v1/catalog/schema", None).await.status, 401);
    assert!(flight(&server, "anything").await.is_err());
    // A restart changes nothing of it.
    let data = server.stop().await;
    let server = TestServer::start_in(data, TestSettings::default()).await;
    assert_eq!(server.get("/v1/catalog/schema", None).await.status, 401);
    assert_eq!(server.get("/v1/catalog/schema", Some(&boss)).await.status, 401);
}

#[tokio::test]
async fn a_token_survives_a_restart_and_stands_in_no_file() {
    let server = TestServer::start(TestSettings::default().tokens("boss-tok:admin:boss")).await;
    let body = json!({ "name": "anna", "role": "write", "subject": "anna@example.org", "roles": ["analyst"],
        "groups": ["emea"], "attributes": { "region": "EU" } });
    let (created, token) = create(&server, body, Some("boss-tok")).await;
    assert_eq!(created["attributes"]["region"], "EU");
    let listed = server.get("/v1/tokens", Some("boss-tok")).await.text;
    assert!(listed.contains("anna@example.org") && !listed.contains(&token), "{listed}");
    let data = server.stop().await;
    let secret = token.trim_start_matches("qrt_");
    let holding = files_that_hold(data.path(), secret.as_bytes());
    assert!(holding.is_empty(), "{holding:?}");
    let server = TestServer::start_in(data, TestSettings::default().tokens("boss-tok:admin:boss")).await;
    let known = server.engine().catalog().tokens().principal_for(&token, chrono::Utc::now()).unwrap();
    assert_eq!((known.subject(), known.identity().roles.contains("analyst")), ("anna@example.org", true));
    assert_eq!(server.get("/v1/agent/runs", Some(&token)).await.status, 200);
    let later = chrono::Utc::now() + Duration::from_secs(60);
    let new: NewToken = serde_json::from_value(json!({ "name": "b", "role": "read", "expires_at": later })).unwrap();
    let tokens = server.engine().catalog().tokens();
    let (_, brief) = tokens.create(&Principal::local_admin(), new, chrono::Utc::now()).await.unwrap();
    assert!(tokens.principal_for(&brief, chrono::Utc::now()).is_some());
    assert!(tokens.principal_for(&brief, later).is_none(), "the moment it ends it is not accepted");
}

fn files_that_hold(folder: &Path, bytes: &[u8]) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_that_hold(&path, bytes));
        } else if std::fs::read(&path).unwrap_or_default().windows(bytes.len()).any(|window| window == bytes) {
            found.push(path);
        }
    }
    found
}
