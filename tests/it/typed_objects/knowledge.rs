//! Verified queries and metrics.

use querent_tests::TestServer;
use serde_json::{Value, json};

use super::{delete, hit, position, search, server};

const QUERIES: &str = "/v1/catalog/verified-queries";
const METRICS: &str = "/v1/catalog/metrics";

#[tokio::test(flavor = "multi_thread")]
async fn a_query_is_stored_only_after_it_ran() {
    let server = server().await;
    server.execute("CREATE TABLE shop.orders AS SELECT 1 AS id, 10.0 AS total").await;
    server.execute("CREATE VIEW shop.paid AS SELECT * FROM shop.orders").await;
    let good = json!({"question": "What did we earn?", "sql": "SELECT sum(total) FROM paid;", "database": "shop"});
    assert_eq!(server.post(QUERIES, &good, Some("reader-tok")).await.status, 403);
    let stored = server.post(QUERIES, &good, Some("writer-tok")).await;
    assert_eq!(stored.status, 201, "{}", stored.text);
    let tables: Vec<String> =
        stored.json()["tables"].as_array().unwrap().iter().map(|table| table["table"].to_string()).collect();
    assert_eq!(tables, ["\"orders\"", "\"paid\""], "what it reads behind a view too");
    assert_eq!(stored.json()["subject"], "ann");

    let refused = [
        ("SELECT sum(totl) FROM orders", "column_not_found"),
        ("SELECT 1/0 FROM orders WHERE CAST('x' AS INT) = 1", "invalid_value"),
        ("DROP TABLE orders", "not_allowed"),
        ("SELECT 1; SELECT 2", "multiple_statements"),
        ("", "empty_query"),
    ];
    for (sql, code) in refused {
        let body = json!({"question": "What?", "sql": sql, "database": "shop"});
        let reply = server.post(QUERIES, &body, Some("writer-tok")).await;
        assert_eq!(reply.json()["error"]["code"], code, "{sql}: {}", reply.text);
    }
    let empty = json!({"question": " ", "sql": "SELECT 1"});
    assert_eq!(server.post(QUERIES, &empty, Some("writer-tok")).await.json()["error"]["code"], "invalid_object");

    // The same question again takes the place of the first.
    let better =
        json!({"question": "what did we earn?", "sql": "SELECT sum(total) AS t FROM orders", "database": "shop"});
    assert_eq!(server.post(QUERIES, &better, Some("writer-tok")).await.json()["id"], stored.json()["id"]);
    assert_eq!(list(&server, QUERIES, "verified_queries", "reader-tok").await.len(), 1);
    let one = format!("{QUERIES}/{}", stored.json()["id"]);
    assert_eq!(delete(&server, &one, "writer-tok").await.status, 200);
    assert!(list(&server, QUERIES, "verified_queries", "reader-tok").await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_taught_is_found_by_who_may_see_its_tables() {
    let server = server().await;
    server.execute("CREATE TABLE shop.t81 AS SELECT 1 AS a, 'x' AS b").await;
    server.execute("CREATE TABLE hr.t82 AS SELECT 1 AS a").await;
    for number in 0..5 {
        server.execute(&format!("CREATE TABLE shop.churn_notes_{number} AS SELECT 1 AS customers")).await;
    }
    let question = "how many customers churned per month";
    let body = json!({"question": question, "sql": "SELECT count(*) FROM t81", "database": "shop"});
    assert_eq!(server.post(QUERIES, &body, Some("writer-tok")).await.status, 201);
    let both = json!({"question": "customers churned by team", "database": "shop", "sql": "SELECT * FROM t81 JOIN hr.t82 USING (a)"});
    assert_eq!(server.post(QUERIES, &both, Some("writer-tok")).await.status, 201);

    let hits = search(&server, "how many customers churned each month", "admin-tok").await;
    assert_eq!(position(&hits, "t81"), Some(0), "{hits:?}");
    assert!(hit(&hits, "t81")["why"].to_string().contains(question), "{hits:?}");
    let seen = list(&server, QUERIES, "verified_queries", "scoped-tok").await;
    assert_eq!(seen.len(), 1, "one reads a table that may not be seen: {seen:?}");
    let hits = search(&server, "customers churned by team", "scoped-tok").await;
    assert!(position(&hits, "t82").is_none() && !json!(hits).to_string().contains("by team"), "{hits:?}");
    let hidden = list(&server, QUERIES, "verified_queries", "admin-tok").await;
    let id = hidden.iter().find(|one| one["question"] == "customers churned by team").unwrap()["id"].clone();
    assert_eq!(delete(&server, &format!("{QUERIES}/{id}"), "scoped-tok").await.status, 403);
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_are_checked_listed_and_found() {
    let server = server().await;
    server.execute("CREATE TABLE shop.t90 AS SELECT 5.0 AS a, 'paid' AS s").await;
    server.execute("CREATE TABLE hr.pay AS SELECT 5.0 AS a").await;
    let good = json!({
        "name": "net revenue", "table": {"database": "shop", "table": "T90"}, "expression": "sum(a)",
        "filter": "s = 'paid'", "description": "what is left",
    });
    let stored = server.post(METRICS, &good, Some("writer-tok")).await;
    assert_eq!(stored.status, 201, "{}", stored.text);
    assert_eq!(stored.json()["table"], json!({"database": "shop", "table": "t90"}));
    let refused = [
        ("expression", "sum(b)", "column_not_found"),
        ("filter", "s = ", "sql_parse_error"),
        ("expression", "(SELECT sum(a) FROM hr.pay)", "sql_plan_error"),
        ("expression", "sum(a) FROM shop.t90; DROP TABLE shop.t90 --", "multiple_statements"),
    ];
    for (key, value, code) in refused {
        let mut body = good.clone();
        body[key] = json!(value);
        let reply = server.post(METRICS, &body, Some("writer-tok")).await;
        assert_eq!(reply.json()["error"]["code"], code, "{value}: {}", reply.text);
    }
    let hits = search(&server, "net revenue last year", "reader-tok").await;
    assert_eq!(position(&hits, "t90"), Some(0), "{hits:?}");
    assert_eq!(hit(&hits, "t90")["found_by"], json!(["metric"]), "{hits:?}");
    let listed = list(&server, METRICS, "metrics", "scoped-tok").await;
    assert_eq!(listed[0]["name"], "net revenue");
    assert_eq!(delete(&server, &format!("{METRICS}/{}", listed[0]["id"]), "writer-tok").await.status, 200);
    assert!(search(&server, "net revenue last year", "reader-tok").await.is_empty());
}

async fn list(server: &TestServer, path: &str, name: &str, token: &str) -> Vec<Value> {
    let reply = server.get(&format!("{path}?limit=1"), Some(token)).await;
    let mut page = reply.json();
    let mut items = page[name].as_array().unwrap_or_else(|| panic!("{}", reply.text)).clone();
    while let Some(next) = page["next_page_token"].as_str() {
        page = server.get(&format!("{path}?limit=1&page_token={next}"), Some(token)).await.json();
        items.extend(page[name].as_array().unwrap().clone());
    }
    items
}
