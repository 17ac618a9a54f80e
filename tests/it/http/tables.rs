//! Single tables over HTTP: what they are, their comments, and what their columns hold.

use querent_catalog::{Principal, TableName};
use querent_engine::Limits;
use querent_tests::{HttpReply, TestServer, TestSettings};
use serde_json::{Value, json};

use super::TOKENS;

const FLIGHTS: &str = "/v1/catalog/tables/flights";

#[tokio::test]
async fn a_table_has_a_document() {
    let server = started().await;
    let reply = server.get(FLIGHTS, Some("reader-tok")).await;
    let table = reply.json();
    assert_eq!(
        (&table["database"], &table["name"], &table["kind"]),
        (&json!("default"), &json!("flights"), &json!("managed"))
    );
    assert_eq!((&table["row_count"], table.get("comment")), (&json!(100), None), "{table}");
    assert_eq!(table["columns"][0], json!({ "name": "carrier", "data_type": "Utf8", "nullable": true }));
    for (path, status, code) in [
        ("/v1/catalog/tables/fligths", 400, "table_not_found"),
        ("/v1/catalog/tables/flights?database=nowhere", 404, "database_not_found"),
        ("/v1/catalog/tables/flights?databse=x", 400, "bad_parameter"),
        ("/v1/catalog/tables/fligths/profile", 400, "table_not_found"),
    ] {
        let reply = server.get(path, Some("reader-tok")).await;
        assert_eq!((reply.status, &reply.json()["error"]["code"]), (status, &json!(code)), "{path}: {}", reply.text);
    }
    let near = server.get("/v1/catalog/tables/fligths", Some("reader-tok")).await.json();
    assert!(near["error"]["message"].as_str().unwrap().contains("`flights`"), "{near}");
}

#[tokio::test]
async fn comments_are_set_and_taken_away() {
    let server = started().await;
    let body = json!({ "comment": "it's 2013", "columns": { "CARRIER": "who flew", "dep_delay": "minutes" } });
    let changed = patch(&server, FLIGHTS, &body, "writer-tok").await;
    assert_eq!((changed.status, &changed.json()["comment"]), (200, &json!("it's 2013")), "{}", changed.text);
    assert_eq!(changed.json()["columns"][0]["comment"], "who flew");
    let changed = patch(&server, FLIGHTS, &json!({ "columns": { "carrier": null } }), "writer-tok").await.json();
    assert_eq!((changed["columns"][0].get("comment"), &changed["comment"]), (None, &json!("it's 2013")), "{changed}");
    assert_eq!(changed["columns"][1]["comment"], "minutes");
    let changed = patch(&server, FLIGHTS, &json!({ "comment": null }), "writer-tok").await.json();
    assert_eq!(changed.get("comment"), None, "{changed}");

    // Nothing is changed where one of the names is unknown, and not by who may not.
    let body = json!({ "comment": "x", "columns": { "carier": "y" } });
    let reply = patch(&server, FLIGHTS, &body, "writer-tok").await;
    assert_eq!((reply.status, &reply.json()["error"]["code"]), (400, &json!("column_not_found")), "{}", reply.text);
    assert_eq!(patch(&server, FLIGHTS, &json!({ "comment": "x" }), "reader-tok").await.status, 403);
    // Nor where one is found to be unknown when the others are set.
    let comments = [(None, "x"), (Some("gone"), "y")]
        .map(|(column, comment): (Option<&str>, &str)| (column.map(str::to_owned), Some(comment.to_owned())));
    let session = server.engine().session(Principal::local_admin(), Limits::default());
    let refused = session.set_comments(&TableName::new("default", "flights"), comments.to_vec()).await.unwrap_err();
    assert_eq!(refused.code(), "column_not_found", "{refused}");
    let table = server.get(FLIGHTS, Some("reader-tok")).await.json();
    assert_eq!(table.get("comment"), None, "{table}");
    for bad in
        [json!({}), json!({ "coment": "x" }), json!({ "comment": 1 }), json!({ "columns": ["carrier"] }), json!([])]
    {
        let reply = patch(&server, FLIGHTS, &bad, "writer-tok").await;
        assert_eq!((reply.status, &reply.json()["error"]["code"]), (400, &json!("bad_request_body")), "{bad}");
    }
    let unknown = patch(&server, "/v1/catalog/tables/nothing", &json!({ "comment": "x" }), "writer-tok").await;
    assert_eq!(unknown.json()["error"]["code"], "table_not_found", "{}", unknown.text);
}

#[tokio::test]
async fn databases_have_comments_too() {
    let server = started().await;
    server.execute("CREATE SCHEMA shop").await;
    let path = "/v1/catalog/databases/shop";
    let changed = patch(&server, path, &json!({ "comment": "what was sold" }), "writer-tok").await;
    assert_eq!((changed.status, changed.json()), (200, json!({ "name": "shop", "comment": "what was sold" })));
    assert_eq!(patch(&server, path, &json!({}), "writer-tok").await.status, 400);
    let unknown = patch(&server, "/v1/catalog/databases/shpo", &json!({ "comment": "x" }), "writer-tok").await;
    assert_eq!(
        (unknown.status, &unknown.json()["error"]["code"]),
        (404, &json!("database_not_found")),
        "{}",
        unknown.text
    );
}

#[tokio::test]
async fn a_profile_says_what_columns_hold() {
    let server = started().await;
    let profile = profile(&server, "flights", "reader-tok").await;
    assert_eq!(
        (&profile["rows"], &profile["is_complete"], &profile["left_out_columns"]),
        (&json!(100), &json!(true), &json!(0))
    );
    let carrier = column(&profile, "carrier");
    assert_eq!((&carrier["type"], &carrier["nulls"], &carrier["distinct"]), (&json!("VARCHAR"), &json!(10), &json!(2)));
    assert_eq!((&carrier["min"], &carrier["max"], &carrier["histogram"]), (&json!("B6"), &json!("UA"), &Value::Null));
    assert_eq!(carrier["top_values"], json!([{ "value": "UA", "rows": 60 }, { "value": "B6", "rows": 30 }]));
    let delay = column(&profile, "dep_delay");
    assert_eq!((&delay["min"], &delay["max"], &delay["mean"]), (&json!("0"), &json!("4"), &json!(2.0)));
    let bars: Vec<(&Value, &Value)> =
        delay["histogram"].as_array().unwrap().iter().map(|bucket| (&bucket["from"], &bucket["rows"])).collect();
    let numbers = [json!("0"), json!("1"), json!("2"), json!("3"), json!("4")];
    assert_eq!(bars, numbers.iter().map(|from| (from, &delay["histogram"][0]["rows"])).collect::<Vec<_>>(), "{delay}");
    assert_eq!(delay["histogram"][0]["rows"], 20);
    let day = column(&profile, "day");
    assert_eq!((&day["min"], &day["histogram"][0]["from"]), (&json!("2013-01-01"), &json!("2013-01-01")), "{day}");
    let rows: u64 = day["histogram"].as_array().unwrap().iter().map(|bucket| bucket["rows"].as_u64().unwrap()).sum();
    assert_eq!(rows, 100, "{day}");
    let list = column(&profile, "list");
    assert_eq!((&list["nulls"], &list["distinct"], &list["min"]), (&json!(0), &Value::Null, &Value::Null), "{list}");

    // New rows are counted at the next look.
    server.execute("INSERT INTO flights SELECT * FROM flights LIMIT 5").await;
    assert_eq!(self::profile(&server, "flights", "reader-tok").await["rows"], 105);
}

#[tokio::test]
async fn empty_tables_and_odd_numbers_have_profiles() {
    let server = started().await;
    server.execute("CREATE TABLE nothing (a BIGINT, b VARCHAR, c TIMESTAMP)").await;
    let empty = profile(&server, "nothing", "reader-tok").await;
    assert_eq!((&empty["rows"], &column(&empty, "a")["histogram"]), (&json!(0), &Value::Null), "{empty}");
    server
        .execute(
            "CREATE TABLE odd AS SELECT * FROM (VALUES (CAST('NaN' AS DOUBLE)), (CAST(1.5 AS DOUBLE)), (CAST('Infinity' AS DOUBLE)), (NULL)) AS t(x)",
        )
        .await;
    let odd = profile(&server, "odd", "reader-tok").await;
    let x = column(&odd, "x");
    assert_eq!((&x["nulls"], &x["mean"]), (&json!(1), &json!(1.5)), "{x}");
    assert_eq!(x["histogram"], json!([{ "from": "1.5", "to": "1.5", "rows": 1 }]), "{x}");
}

/// Row policies and masks hold for what is counted, for each caller.
#[tokio::test]
async fn a_profile_shows_no_more_than_its_caller_sees() {
    let server = started().await;
    server
        .execute(
            "CREATE TABLE people AS SELECT * FROM (VALUES (1, 'ada@x'), (2, 'bob@x'), (3, 'eve@x')) AS t(id, mail)",
        )
        .await;
    server.execute("CREATE ROW POLICY few ON people USING (id <= 2) TO SUBJECT reader").await;
    server.execute("CREATE ROW POLICY everything ON people USING (true) TO SUBJECT boss").await;
    server.execute("CREATE MASK mail ON people(mail) USING ('hidden') TO PUBLIC EXCEPT SUBJECT boss").await;
    let whole = profile(&server, "people", "admin-tok").await;
    assert_eq!((&whole["rows"], &column(&whole, "mail")["max"]), (&json!(3), &json!("eve@x")), "{whole}");
    let seen = profile(&server, "people", "reader-tok").await;
    assert_eq!((&seen["rows"], &column(&seen, "id")["max"]), (&json!(2), &json!("2")), "{seen}");
    assert_eq!(column(&seen, "mail")["top_values"], json!([{ "value": "hidden", "rows": 2 }]), "{seen}");
    assert!(!seen.to_string().contains("@x"), "{seen}");
    // A change of the policy holds at once.
    server.execute("DROP ROW POLICY few ON people").await;
    assert_eq!(profile(&server, "people", "reader-tok").await["rows"], 0);
}

async fn started() -> TestServer {
    let server = TestServer::start(TestSettings::default().tokens(TOKENS)).await;
    server
        .execute(
            "CREATE TABLE flights AS SELECT \
             CASE WHEN value <= 60 THEN 'UA' WHEN value <= 90 THEN 'B6' END AS carrier, \
             value % 5 AS dep_delay, \
             CAST('2013-01-0' || CAST(value % 9 + 1 AS VARCHAR) AS DATE) AS day, \
             [value] AS list FROM generate_series(1, 100) AS s(value)",
        )
        .await;
    server
}

async fn patch(server: &TestServer, path: &str, body: &Value, token: &str) -> HttpReply {
    server.send(server.http.patch(server.url(path)).json(body), Some(token)).await
}

async fn profile(server: &TestServer, table: &str, token: &str) -> Value {
    let reply = server.get(&format!("/v1/catalog/tables/{table}/profile"), Some(token)).await;
    assert_eq!(reply.status, 200, "{}", reply.text);
    reply.json()
}

fn column<'a>(profile: &'a Value, name: &str) -> &'a Value {
    let columns = profile["columns"].as_array().unwrap();
    columns.iter().find(|column| column["name"] == name).unwrap_or_else(|| panic!("no {name}: {profile}"))
}
