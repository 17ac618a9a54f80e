//! `POST /v1/complete`: what may stand at a place of a statement.

use querent_tests::{TestServer, TestSettings};
use serde_json::{Value, json};

async fn complete(server: &TestServer, body: Value) -> (u16, Value) {
    let reply = server.http.post(server.url("/v1/complete")).json(&body).send().await.unwrap();
    (reply.status().as_u16(), reply.json().await.unwrap())
}

fn texts(answer: &Value) -> Vec<&str> {
    answer["suggestions"].as_array().unwrap().iter().map(|one| one["text"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn names_are_offered_where_they_may_stand() {
    let server = TestServer::start(TestSettings::default()).await;
    for sql in [
        "CREATE TABLE flights (carrier VARCHAR, dep_delay DOUBLE)",
        "CREATE TABLE flight_notes (note VARCHAR)",
        "CREATE DATABASE crm",
        "CREATE TABLE crm.\"Big Deals\" (id BIGINT)",
    ] {
        server.execute(sql).await;
    }
    let (status, answer) = complete(&server, json!({ "text": "SELECT car FROM flights", "position": 10 })).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!((&answer["start"], &answer["truncated"]), (&json!(7), &json!(false)));
    assert_eq!(answer["suggestions"][0], json!({ "text": "carrier", "kind": "column", "detail": "VARCHAR" }));
    let (_, answer) = complete(&server, json!({ "text": "SELECT '🦆' FROM fli" })).await;
    assert_eq!(answer["start"], 17, "in UTF-16 code units");
    assert_eq!(texts(&answer), ["flight_notes", "flights"]);
    let (_, answer) = complete(&server, json!({ "text": "SELECT * FROM crm.b" })).await;
    assert_eq!(texts(&answer), ["\"Big Deals\""]);
    let (_, answer) = complete(&server, json!({ "text": "flights | where dep", "language": "kql" })).await;
    assert_eq!(answer["suggestions"][0], json!({ "text": "dep_delay", "kind": "column", "detail": "DOUBLE" }));
    let (_, answer) = complete(&server, json!({ "text": "SELECT date_tr", "limit": 1 })).await;
    assert_eq!((texts(&answer), &answer["truncated"]), (vec!["date_trunc("], &json!(false)));
    for (text, position, expected) in [
        ("SELECT * FROM crm.\"B", None, "\"Big Deals\""),
        ("SELECT * FROM crm.\"B\"", Some(20), "\"Big Deals"),
        ("SELECT d. FROM crm.\"Big Deals\" d", Some(9), "id"),
        ("SELECT  FROM flights", Some(7), "carrier"),
        ("SELECT * FROM system.qu", None, "queries"),
        ("SELECT * FROM info", None, "information_schema"),
        ("SELECT * FROM querent.cr", None, "crm"),
        ("USE cr", None, "crm"),
        ("SELECT regexp_match", None, "regexp_matches("),
        ("SELECT monthn", None, "monthname("),
        ("WITH late AS (SELECT dep_delay AS minutes FROM flights) SELECT  FROM late", Some(63), "minutes"),
    ] {
        let (_, answer) = complete(&server, json!({ "text": text, "position": position })).await;
        assert!(texts(&answer).contains(&expected), "{text}: {answer}");
    }
    for text in ["SELECT 'car", "SELECT 1 -- car", "SELECT carrier FROM flights WHERE carrier = 'fl"] {
        let (_, answer) = complete(&server, json!({ "text": text })).await;
        assert!(texts(&answer).is_empty(), "{text}: {answer}");
    }
    let (_, answer) = complete(&server, json!({ "text": "flights | ", "language": "kql" })).await;
    assert_eq!((texts(&answer)[0], &answer["suggestions"][0]["kind"]), ("where", &json!("keyword")));
    for wrong in [
        json!({ "text": "SELECT", "position": 99 }),
        json!({ "text": "SELECT", "postion": 1 }),
        json!({ "text": "SELECT", "language": "prolog" }),
    ] {
        let (status, answer) = complete(&server, wrong).await;
        assert_eq!(status, 400, "{answer}");
    }
    let (status, answer) = complete(&server, json!({ "text": "S", "database": "nowhere" })).await;
    assert_eq!((status, &answer["error"]["code"]), (404, &json!("database_not_found")));
}
