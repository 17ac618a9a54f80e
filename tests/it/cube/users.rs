//! Applications' users: which key may act for whom, how long users are kept, and the tokens of their browsers.

use std::time::Duration;

use chrono::{DateTime, Utc};
use querent_catalog::LeasedWork;
use querent_tests::{HttpReply, TestServer, TestSettings, wait_until};
use serde_json::{Value, json};

use super::{ABORT, STREAM, script};

const TOKENS: &str = "ann-tok:read:ann,bob-tok:read:bob,root-tok:admin:root";

#[tokio::test]
async fn keys_are_those_of_the_settings() {
    let server = with_keys(&["acme=first-key", "second-key"]).await;
    let body = json!({ "input": "plain", "chatId": "c", "sessionSettings": { "externalId": "x" } });
    for (key, status) in [("first-key", 200), ("second-key", 200), ("acme", 401), ("ann-tok", 401), ("", 401)] {
        assert_eq!(ask(&server, &format!("Api-Key {key}"), &body).await.status, status, "{key}");
    }
    // A key of the chat opens nothing else.
    assert_eq!(server.get("/v1/agent/runs", Some("first-key")).await.status, 401);
    // It speaks for users of this server, who have threads of their own.
    let internal = json!({ "input": "plain", "chatId": "c", "sessionSettings": { "internalId": "ann" } });
    assert_eq!(ask(&server, "Api-Key first-key", &internal).await.status, 404, "the thread is another's");
    let own = json!({ "input": "plain", "sessionSettings": { "internalId": "ann" } });
    assert_eq!(ask(&server, "Api-Key first-key", &own).await.status, 200);
    assert_eq!(server.get("/v1/agent/runs", Some("ann-tok")).await.json()["runs"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn tokens_are_keys_with_users_of_their_own() {
    let server = TestServer::start(TestSettings::default().script(script()).tokens(TOKENS)).await;
    let body = json!({ "input": "plain", "chatId": "c", "sessionSettings": { "externalId": "x" } });
    assert_eq!(ask(&server, "Api-Key ann-tok", &body).await.status, 200);
    assert_eq!(ask(&server, "Api-Key bob-tok", &body).await.status, 404, "another application's user of that name");
    assert_eq!(ask(&server, "Bearer ann-tok", &json!({ "input": "plain" })).await.status, 401);
    for (key, who, status) in
        [("ann-tok", "ann", 200), ("ann-tok", "bob", 400), ("root-tok", "bob", 200), ("root-tok", "eve", 400)]
    {
        let body = json!({ "input": "plain", "sessionSettings": { "internalId": who } });
        assert_eq!(ask(&server, &format!("Api-Key {key}"), &body).await.status, status, "{key} for {who}");
    }
}

#[tokio::test]
async fn accounts_agents_and_attributes_may_be_listed() {
    let server = TestServer::start(TestSettings::default().script(script()).change(|settings| {
        settings.cube.accounts = vec!["acme".to_owned()];
        settings.cube.agents = vec!["1".to_owned()];
        settings.cube.user_attributes = vec!["city".to_owned()];
    }))
    .await;
    let of = |name: &str| json!({ "input": "plain", "sessionSettings": { "externalId": "x", "userAttributes": [{ "name": name, "value": "Oslo" }] } });
    assert_eq!(ask(&server, "Api-Key k", &of("city")).await.status, 200);
    let unknown = ask(&server, "Api-Key k", &of("town")).await;
    assert_eq!(unknown.status, 400);
    assert!(unknown.text.contains("town") && unknown.text.contains("city"), "{}", unknown.text);
    for path in [STREAM.replace("acme", "other"), STREAM.replace("/1/", "/2/")] {
        let request = server.http.post(server.url(&path)).header("authorization", "Api-Key k").json(&of("city"));
        assert_eq!(server.send(request, None).await.status, 404, "{path}");
    }
}

#[tokio::test]
async fn ephemeral_users_end_with_their_threads() {
    let server = TestServer::start(TestSettings::default().script(script())).await;
    let brief = json!({ "externalId": "x", "ephemeralTtlSeconds": 1 });
    let asked = json!({ "input": "plain", "chatId": "c", "sessionSettings": brief });
    assert_eq!(ask(&server, "Api-Key k", &asked).await.status, 200);
    // A longer time later does not lengthen its life.
    let read = json!({ "chatId": "c", "sessionSettings": { "externalId": "x" } });
    assert_eq!(ask(&server, "Api-Key k", &read).await.status, 200);
    wait_until("the user's time is over", async || ask(&server, "Api-Key k", &read).await.status == 404).await;

    // One that does not come back is purged, with its runs.
    let other =
        json!({ "input": "plain", "chatId": "d", "sessionSettings": { "externalId": "y", "ephemeralTtlSeconds": 1 } });
    assert_eq!(ask(&server, "Api-Key k", &other).await.status, 200);
    assert_eq!(server.get("/v1/agent/runs", None).await.json()["runs"].as_array().unwrap().len(), 1);
    let later = chrono::Utc::now() + chrono::TimeDelta::seconds(2);
    assert_eq!(purged(&server, later).await, 1);
    assert!(server.get("/v1/agent/runs", None).await.json()["runs"].as_array().unwrap().is_empty());
}

#[tokio::test]
async fn users_that_stay_are_limited() {
    let server = TestServer::start(
        TestSettings::default().script(script()).change(|settings| settings.cube.max_external_users = 2),
    )
    .await;
    let kept = |id: &str| json!({ "input": "plain", "chatId": id, "sessionSettings": { "externalId": id, "isEphemeral": false } });
    for (id, status) in [("a", 200), ("b", 200), ("c", 400), ("a", 200)] {
        let reply = ask(&server, "Api-Key k", &kept(id)).await;
        assert_eq!(reply.status, status, "{id}: {}", reply.text);
    }
    // One that stays is not made ephemeral by a request that says nothing of it.
    let read = json!({ "chatId": "a", "sessionSettings": { "externalId": "a", "ephemeralTtlSeconds": 1 } });
    assert_eq!(ask(&server, "Api-Key k", &read).await.status, 200);
    let later = chrono::Utc::now() + chrono::TimeDelta::days(100);
    assert_eq!(purged(&server, later).await, 0);
    let ephemeral = json!({ "input": "plain", "sessionSettings": { "externalId": "d" } });
    assert_eq!(ask(&server, "Api-Key k", &ephemeral).await.status, 200);
}

#[tokio::test]
async fn a_browser_gets_a_token_of_its_users() {
    let server = with_keys(&["the-key"]).await;
    let post = |path: &str, body: Value| {
        server.send(server.http.post(server.url(path)).header("authorization", "Api-Key the-key").json(&body), None)
    };
    let user = json!({ "externalId": "x", "userAttributes": [{ "name": "city", "value": "Oslo" }], "deploymentId": 1 });
    let session = post("/api/v1/embed/generate-session", user).await;
    assert_eq!(session.status, 200, "{}", session.text);
    let session_id = session.json()["sessionId"].clone();
    let token = post("/api/v1/embed/session/token", json!({ "sessionId": session_id, "deploymentId": 1 })).await;
    assert_eq!(token.status, 200, "{}", token.text);
    let bearer = format!("Bearer {}", token.json()["token"].as_str().unwrap());

    assert_eq!(ask(&server, &bearer, &json!({ "input": "plain", "chatId": "c" })).await.status, 200);
    let by_key = json!({ "chatId": "c", "sessionSettings": { "externalId": "x" } });
    assert_eq!(ask(&server, "Api-Key the-key", &by_key).await.status, 200, "it is the same user");
    assert_eq!(ask(&server, &bearer, &by_key).await.status, 400, "a token says who its user is");
    let abort = server.http.post(server.url(ABORT)).header("authorization", &bearer).json(&json!({ "chatId": "c" }));
    assert_eq!(server.send(abort, None).await.status, 204);
    let as_bearer = format!("Bearer {}", session_id.as_str().unwrap());
    assert_eq!(ask(&server, &as_bearer, &json!({ "input": "plain" })).await.status, 401, "a session is not a token");
    let again = server.http.post(server.url("/api/v1/embed/generate-session")).header("authorization", &bearer);
    assert_eq!(server.send(again.json(&json!({ "externalId": "y" })), None).await.status, 400, "nor is a token a key");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_users_token_ends_with_those_whose_rights_it_has() {
    let settings = TestSettings::default().script(script()).tokens("boss-tok:admin:boss");
    let server = TestServer::start(settings).await;
    let made = async |body: Value| {
        let made = server.post("/v1/tokens", &body, Some("boss-tok")).await;
        assert_eq!(made.status, 201, "{}", made.text);
        let made = made.json();
        (made["id"].as_i64().unwrap(), format!("Api-Key {}", made["token"].as_str().unwrap()))
    };
    let revoke = async |id: i64| {
        let revoked = server.send(server.http.delete(server.url(&format!("/v1/tokens/{id}"))), Some("boss-tok")).await;
        assert_eq!(revoked.status, 200, "{}", revoked.text);
    };
    let post = async |path: &str, key: &str, body: Value| {
        server.send(server.http.post(server.url(path)).header("authorization", key).json(&body), None).await
    };
    let session = async |key: &str, user: Value| {
        let session = post("/api/v1/embed/generate-session", key, user).await;
        assert_eq!(session.status, 200, "{}", session.text);
        session.json()["sessionId"].clone()
    };
    let bearer = async |key: &str, user: Value| {
        let body = json!({ "sessionId": session(key, user).await });
        let token = post("/api/v1/embed/session/token", key, body).await;
        assert_eq!(token.status, 200, "{}", token.text);
        format!("Bearer {}", token.json()["token"].as_str().unwrap())
    };
    let status = async |bearer: &str| ask(&server, bearer, &json!({ "input": "plain" })).await.status;

    let (app, app_key) = made(json!({ "name": "app", "role": "read" })).await;
    let (_, other_key) = made(json!({ "name": "other", "role": "read" })).await;
    let (anna, _) = made(json!({ "name": "anna", "role": "read" })).await;
    let of_app = bearer(&app_key, json!({ "externalId": "x" })).await;
    let of_other = bearer(&other_key, json!({ "externalId": "x" })).await;
    let of_anna = bearer("Api-Key boss-tok", json!({ "internalId": "anna" })).await;
    let waiting = session(&app_key, json!({ "externalId": "y" })).await;
    assert_eq!([status(&of_app).await, status(&of_other).await, status(&of_anna).await], [200; 3]);
    revoke(app).await;
    assert_eq!([status(&of_app).await, status(&of_other).await, status(&of_anna).await], [401, 200, 200]);
    let late = post("/api/v1/embed/session/token", &other_key, json!({ "sessionId": waiting })).await;
    assert_eq!(late.status, 404, "{}", late.text);
    revoke(anna).await;
    assert_eq!([status(&of_other).await, status(&of_anna).await], [200, 401]);
}

async fn purged(server: &TestServer, now: DateTime<Utc>) -> u64 {
    let catalog = server.engine().catalog();
    let lease = catalog.leases().take(LeasedWork::Retention, Duration::ZERO).await.unwrap().had().unwrap();
    catalog.external_users().purge(now, &lease).await.unwrap()
}

async fn with_keys(keys: &'static [&'static str]) -> TestServer {
    let settings = TestSettings::default().script(script()).tokens(TOKENS);
    let keys = keys.iter().map(|key| (*key).to_owned()).collect();
    TestServer::start(settings.change(move |settings| settings.cube.api_keys = keys)).await
}

async fn ask(server: &TestServer, authorization: &str, body: &Value) -> HttpReply {
    let request = server.http.post(server.url(STREAM)).header("authorization", authorization);
    server.send(request.json(body), None).await
}
