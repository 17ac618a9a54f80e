//! `GET /v1/settings`: for administrators, and without secrets. `GET /v1/caller`: what a client may offer its user.
//! `system.metrics`: the server's numbers in SQL.

use querent_tests::{TestServer, TestSettings};
use serde_json::{Value, json};

use super::TOKENS;

#[tokio::test]
async fn settings_are_shown_to_administrators_without_secrets() {
    let change = |settings: &mut querent_flight::config::Settings| {
        settings.cube.api_keys = vec!["app=very-secret".to_owned()];
        settings.agent.ollama_host = "http://user:hush@models.example/v1".to_owned();
    };
    let server = TestServer::start(TestSettings::default().tokens(TOKENS).change(change)).await;
    let reply = server.get("/v1/settings", Some("admin-tok")).await;
    let settings = reply.json();
    let named = |name: &str| -> Value {
        let settings = settings["settings"].as_array().unwrap();
        settings.iter().find(|setting| setting["name"] == name).unwrap_or_else(|| panic!("no {name}")).clone()
    };
    assert_eq!((&named("auth.tokens")["is_secret"], &named("log.format")["is_secret"]), (&json!(true), &json!(false)));
    assert_eq!(named("agent.ollama_host")["value"], "http://***@models.example/v1");
    for secret in ["admin-tok", "reader-tok", "very-secret", "hush"] {
        assert!(!reply.text.contains(secret), "{secret}: {}", reply.text);
    }
    assert!(named("data")["about"].as_str().unwrap().contains("data folder"), "{settings}");
    for token in ["reader-tok", "writer-tok"] {
        assert_eq!(server.get("/v1/settings", Some(token)).await.status, 403, "{token}");
    }
    assert_eq!(server.get("/v1/settings", None).await.status, 401);
}

#[tokio::test]
async fn callers_are_told_who_they_are() {
    let server = TestServer::start(TestSettings::default().tokens(TOKENS)).await;
    for (token, subject, role) in [("reader-tok", "reader", "read"), ("admin-tok", "boss", "admin")] {
        let expected = json!({ "subject": subject, "role": role, "databases": null, "roles": [], "groups": [] });
        assert_eq!(server.get("/v1/caller", Some(token)).await.json(), expected);
    }
    assert_eq!(server.get("/v1/caller", None).await.status, 401);
    let token =
        json!({ "name": "till", "subject": "anna", "role": "write", "databases": ["sales"], "groups": ["emea"] });
    let made = server.post("/v1/tokens", &token, Some("admin-tok")).await.json();
    let anna = server.get("/v1/caller", made["token"].as_str()).await.json();
    assert_eq!((&anna["subject"], &anna["databases"]), (&json!("anna"), &json!(["sales"])));
    assert_eq!((&anna["groups"], &anna["roles"]), (&json!(["emea"]), &json!([])));
    let open = TestServer::start(TestSettings::default()).await;
    let local = open.get("/v1/caller", None).await.json();
    assert_eq!((&local["subject"], &local["role"]), (&json!("local"), &json!("admin")));
}

#[tokio::test]
async fn metrics_are_rows_too() {
    let server = TestServer::start(TestSettings::default().tokens(TOKENS)).await;
    let query = async |sql: &str| {
        let request = server.http.post(server.url("/v1/query?format=csv")).header("content-type", "application/sql");
        server.send(request.body(sql.to_owned()), Some("reader-tok")).await.text
    };
    assert_eq!(query("SELECT 1 AS one").await, "one\n1\n");
    let answered = "SELECT count(*) > 0 AS n FROM system.metrics WHERE name = 'querent_queries_total' AND labels LIKE '%outcome=\"success\"%'";
    assert_eq!(query(answered).await, "n\ntrue\n");
    let plain =
        "SELECT count(*) AS n FROM system.metrics WHERE name = 'querent_connections' AND labels IS NULL AND value >= 1";
    assert_eq!(query(plain).await, "n\n1\n");
}

/// A caller from whom objects are hidden is not told how many there are, by neither door.
#[tokio::test]
async fn metrics_do_not_count_what_is_hidden() {
    let server = TestServer::start(TestSettings::default().tokens(TOKENS)).await;
    let token = json!({ "name": "till", "subject": "anna", "role": "read", "databases": ["sales"] });
    let made = server.post("/v1/tokens", &token, Some("admin-tok")).await.json();
    for (token, sees_all) in [("admin-tok", true), ("reader-tok", true), (made["token"].as_str().unwrap(), false)] {
        let text = server.get("/metrics", Some(token)).await.text;
        assert!(text.contains("querent_connections"), "{text}");
        let value = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<f64>().ok());
        assert!(value("querent_disk_free_bytes ") > Some(0.0), "{text}");
        assert!(value("querent_spill_bytes ") >= Some(0.0), "{text}");
        assert_eq!(text.contains("querent_index_in_memory"), sees_all, "{text}");
        let request = server.http.post(server.url("/v1/query?format=csv")).header("content-type", "application/sql");
        let sql = "SELECT count(*) > 0 AS n FROM system.metrics WHERE name LIKE 'querent_index_%'";
        assert_eq!(server.send(request.body(sql), Some(token)).await.text, format!("n\n{sees_all}\n"));
    }
}
