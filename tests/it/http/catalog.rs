//! The catalog over HTTP: schema pages and search.

use querent_tests::{TestServer, TestSettings};
use serde_json::{Value, json};

#[tokio::test]
async fn the_schema_lists_databases_tables_and_columns() {
    let server = TestServer::start(TestSettings::default()).await;
    server.execute("CREATE TABLE t (a BIGINT NOT NULL, b VARCHAR)").await;
    server.execute("CREATE SCHEMA empty").await;
    let schema = server.get("/v1/catalog/schema", None).await.json();
    assert!(schema.get("next_page_token").is_none(), "{schema}");
    let databases = schema["databases"].as_array().unwrap();
    let named = |name: &str| databases.iter().find(|database| database["name"] == name).unwrap();
    let table = &named("default")["tables"][0];
    assert_eq!(table["name"], "t");
    assert_eq!(
        table["columns"],
        json!([
            { "name": "a", "data_type": "Int64", "nullable": false },
            { "name": "b", "data_type": "Utf8", "nullable": true },
        ])
    );
    assert_eq!(named("empty")["tables"], json!([]));
}

#[tokio::test]
async fn pages_of_any_size_add_up_to_the_whole() {
    let server = TestServer::start(TestSettings::default()).await;
    for database in ["alpha", "beta", "gamma", "zeta"] {
        server.execute(&format!("CREATE SCHEMA {database}")).await;
    }
    for table in ["alpha.a1", "alpha.a2", "alpha.a3", "gamma.g1", "zeta.z1"] {
        server.execute(&format!("CREATE TABLE {table} AS SELECT 1 AS x")).await;
    }
    let whole = entries(&server, "limit=1000").await;
    assert!(whole.iter().any(|(database, table)| database == "gamma" && table == "g1"), "{whole:?}");
    assert!(whole.iter().any(|(database, table)| database == "beta" && table.is_empty()), "{whole:?}");
    for limit in 1..=4 {
        assert_eq!(entries(&server, &format!("limit={limit}")).await, whole, "limit {limit}");
    }
    let one = entries(&server, "limit=2&database=alpha").await;
    assert_eq!(one.iter().map(|(_, table)| table.as_str()).collect::<Vec<_>>(), ["a1", "a2", "a3"]);
}

#[tokio::test]
async fn bad_pages_and_unknown_databases_are_errors() {
    let server = TestServer::start(TestSettings::default()).await;
    let cases = [
        ("/v1/catalog/schema?page_token=nonsense", 400, "bad_parameter"),
        ("/v1/catalog/schema?limit=many", 400, "bad_parameter"),
        ("/v1/catalog/schema?databse=x", 400, "bad_parameter"),
        ("/v1/catalog/schema?database=defualt", 404, "database_not_found"),
        ("/v1/catalog/search", 400, "bad_parameter"),
        ("/v1/catalog/search?q=%20", 400, "bad_parameter"),
    ];
    for (path, status, code) in cases {
        let reply = server.get(path, None).await;
        assert_eq!((reply.status, &reply.json()["error"]["code"]), (status, &json!(code)), "{path}: {}", reply.text);
    }
    let near = server.get("/v1/catalog/schema?database=defualt", None).await.json();
    assert!(near["error"]["message"].as_str().unwrap().contains("`default`"), "{near}");
}

#[tokio::test]
async fn search_finds_by_name_at_once() {
    let server = TestServer::start(TestSettings::default()).await;
    server.execute("CREATE TABLE invoice_lines AS SELECT 1 AS amount").await;
    server.execute("CREATE TABLE weather AS SELECT 1 AS temperature").await;
    let reply = server.get("/v1/catalog/search?q=invoice%20lines&limit=5", None).await.json();
    let hit = &reply["hits"][0];
    assert_eq!((&hit["database"], &hit["table"]), (&json!("default"), &json!("invoice_lines")), "{reply}");
    assert!(!hit["found_by"].as_array().unwrap().is_empty(), "{reply}");
}

/// A scoped token sees its databases only, and cannot tell that others exist.
#[tokio::test]
async fn a_scoped_token_sees_its_databases_only() {
    let change = |settings: &mut querent_flight::config::Settings| {
        for token in &mut settings.auth.tokens {
            if token.token == "scoped-tok" {
                token.databases = Some(vec!["Shop".to_owned()]);
            }
        }
    };
    let tokens = "admin-tok:admin,scoped-tok:read:guest";
    let server = TestServer::start(TestSettings::default().tokens(tokens).change(change)).await;
    server.execute("CREATE SCHEMA shop").await;
    server.execute("CREATE TABLE shop.orders AS SELECT 1 AS a").await;
    server.execute("CREATE TABLE orders_secret AS SELECT 1 AS a").await;

    let schema = server.get("/v1/catalog/schema", Some("scoped-tok")).await;
    let names: Vec<Value> = schema.json()["databases"].as_array().unwrap().iter().map(|d| d["name"].clone()).collect();
    assert_eq!(names, ["shop"]);
    let found = server.get("/v1/catalog/search?q=orders", Some("scoped-tok")).await;
    assert!(found.text.contains("\"orders\"") && !found.text.contains("orders_secret"), "{}", found.text);
    let hidden = super::query_as(&server, "SELECT * FROM \"default\".orders_secret", Some("scoped-tok")).await;
    let missing = super::query_as(&server, "SELECT * FROM \"default\".orders_nothing", Some("scoped-tok")).await;
    assert_eq!(hidden.status, missing.status);
    assert_eq!(hidden.json()["error"]["code"], missing.json()["error"]["code"], "{}", hidden.text);
    let hidden = server.get("/v1/catalog/schema?database=default", Some("scoped-tok")).await;
    assert_eq!(hidden.status, 404);
}

/// Returns all pages of the schema as (database, table) pairs; a database without tables has a pair with an empty
/// table.
async fn entries(server: &TestServer, query: &str) -> Vec<(String, String)> {
    let mut entries = Vec::new();
    let mut token = String::new();
    for _ in 0..100 {
        let page = server.get(&format!("/v1/catalog/schema?{query}{token}"), None).await.json();
        for database in page["databases"].as_array().unwrap() {
            let name = database["name"].as_str().unwrap();
            let tables = database["tables"].as_array().unwrap();
            if tables.is_empty() {
                entries.push((name.to_owned(), String::new()));
            }
            entries.extend(tables.iter().map(|table| (name.to_owned(), table["name"].as_str().unwrap().to_owned())));
        }
        match page["next_page_token"].as_str() {
            Some(next) => token = format!("&page_token={next}"),
            None => return entries,
        }
    }
    panic!("the pages do not end");
}
