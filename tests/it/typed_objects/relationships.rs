//! Declared and inferred relationships, and the expansion of a search along them.

use querent_catalog::Principal;
use serde_json::{Value, json};

use super::{delete, hit, position, search, server};

#[tokio::test(flavor = "multi_thread")]
async fn references_in_a_definition_are_recorded() {
    let server = server().await;
    server.execute("CREATE TABLE shop.buyers (nr BIGINT, region VARCHAR)").await;
    server
        .execute(
            "CREATE TABLE shop.sales (id BIGINT, who BIGINT REFERENCES shop.buyers(nr), parent BIGINT, \
             FOREIGN KEY (parent) REFERENCES shop.SALES (ID))",
        )
        .await;
    let listed = list(&server, "admin-tok").await;
    let edges: Vec<String> = listed.iter().map(edge).collect();
    assert_eq!(edges, ["sales.who -> buyers.nr foreign_key", "sales.parent -> sales.id foreign_key"]);

    let refused = [
        ("CREATE TABLE shop.a (x BIGINT REFERENCES shop.nowhere(nr))", "table_not_found"),
        ("CREATE TABLE shop.a (x BIGINT REFERENCES shop.buyers(number))", "column_not_found"),
        ("CREATE TABLE shop.a (x BIGINT REFERENCES shop.buyers(nr) ON DELETE CASCADE)", "unsupported"),
        ("CREATE TABLE shop.a (x BIGINT REFERENCES shop.buyers(nr) ENFORCED)", "unsupported"),
        ("CREATE TABLE shop.a (x BIGINT, FOREIGN KEY (y) REFERENCES shop.buyers(nr))", "column_not_found"),
    ];
    for (sql, code) in refused {
        let reply = crate::http::query_as(&server, sql, Some("writer-tok")).await;
        assert_eq!(reply.json()["error"]["code"], code, "{sql}: {}", reply.text);
    }
    // They go with the definition.
    server.execute("CREATE OR REPLACE TABLE shop.sales (id BIGINT, who BIGINT)").await;
    assert!(list(&server, "admin-tok").await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn declared_relationships_have_rights_and_survive_a_replacement() {
    let server = server().await;
    server.execute("CREATE TABLE shop.sales (who BIGINT)").await;
    server.execute("CREATE TABLE hr.people (nr BIGINT)").await;
    let body = json!({
        "from": {"database": "shop", "table": "Sales"}, "from_columns": ["WHO"],
        "to": {"database": "hr", "table": "people"}, "to_columns": ["nr"],
    });
    let path = "/v1/catalog/relationships";
    let denied = server.post(path, &body, Some("reader-tok")).await;
    assert_eq!((denied.status, &denied.json()["error"]["code"]), (403, &json!("forbidden")));
    let declared = server.post(path, &body, Some("writer-tok")).await;
    assert_eq!(declared.status, 201, "{}", declared.text);
    assert_eq!(edge(&declared.json()), "sales.who -> people.nr declared", "as the tables spell it");
    let again = server.post(path, &body, Some("writer-tok")).await;
    assert_eq!(again.json()["id"], declared.json()["id"], "said twice, stored once");

    server.execute("CREATE OR REPLACE TABLE shop.sales (who BIGINT, total DOUBLE)").await;
    assert_eq!(list(&server, "admin-tok").await.len(), 1);
    assert!(list(&server, "scoped-tok").await.is_empty(), "one of its tables may not be seen");

    let mut wrong = body.clone();
    wrong["to_columns"] = json!(["number"]);
    assert_eq!(server.post(path, &wrong, Some("writer-tok")).await.json()["error"]["code"], "column_not_found");
    wrong["to_columns"] = json!([]);
    assert_eq!(server.post(path, &wrong, Some("writer-tok")).await.json()["error"]["code"], "invalid_object");
    let of_one = server.get(&format!("{path}?database=hr&table=people"), Some("reader-tok")).await.json();
    assert_eq!(of_one["relationships"].as_array().unwrap().len(), 1, "{of_one}");

    let one = format!("{path}/{}", declared.json()["id"]);
    assert_eq!(delete(&server, &one, "reader-tok").await.status, 403);
    assert_eq!(delete(&server, &one, "writer-tok").await.status, 200);
    assert_eq!(delete(&server, &one, "writer-tok").await.json()["error"]["code"], "object_not_found");
}

/// The tables of a join come together though nothing in the question is like the bridge between them.
#[tokio::test(flavor = "multi_thread")]
async fn a_search_brings_the_tables_that_a_join_needs() {
    let server = server().await;
    server.execute("CREATE TABLE shop.student (stuid BIGINT, lname VARCHAR)").await;
    server.execute("CREATE TABLE shop.pets (petid BIGINT, weight DOUBLE)").await;
    server.execute("CREATE TABLE shop.xyz_map (stuid BIGINT, petid BIGINT)").await;
    for number in 0..12 {
        server.execute(&format!("CREATE TABLE hr.student_report_{number} (lname VARCHAR, weight DOUBLE)")).await;
    }
    let hits = search(&server, "student pets", "admin-tok").await;
    let bridge = hit(&hits, "xyz_map");
    assert!(position(&hits, "xyz_map").unwrap() < 8, "{hits:?}");
    assert!(bridge["why"].to_string().contains("joins by"), "{bridge}");
    // Only from what may be seen, and only from the database asked for.
    server.execute("CREATE TABLE hr.secret_map (stuid BIGINT, petid BIGINT)").await;
    let hits = search(&server, "student pets", "scoped-tok").await;
    assert!(hits.iter().all(|hit| hit["database"] == "shop"), "{hits:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn sampled_values_judge_what_names_suggest() {
    let server = server().await;
    server.execute("CREATE TABLE shop.customers AS SELECT value AS id FROM generate_series(1, 500)").await;
    server
        .execute("CREATE TABLE shop.orders AS SELECT value % 400 + 1 AS customer_id FROM generate_series(1, 900)")
        .await;
    server
        .execute("CREATE TABLE shop.visits AS SELECT value + 90000 AS customer_id FROM generate_series(1, 900)")
        .await;
    super::values_known(&server).await;
    let catalog = server.engine().catalog();
    let who = Principal::local_admin();
    let names = ["customers", "orders", "visits"].map(|table| querent_catalog::TableName::new("shop", table));
    let resolved = catalog.tables().resolve(&who, &names).await.unwrap();
    let ids: Vec<i64> = resolved.into_iter().map(|table| table.unwrap().info.id).collect();
    let found = catalog.relationships().among(&who, &ids).await.unwrap();
    let confidence = |from: &str| {
        let one = found.iter().find(|one| one.from.table == from && one.to.table == "customers");
        one.unwrap_or_else(|| panic!("{found:?}")).confidence
    };
    assert!(confidence("orders") > 0.9, "{found:?}");
    assert!(confidence("visits") < 0.5, "{found:?}");
}

fn edge(one: &Value) -> String {
    format!(
        "{}.{} -> {}.{} {}",
        one["from"]["table"].as_str().unwrap(),
        one["from_columns"][0].as_str().unwrap(),
        one["to"]["table"].as_str().unwrap(),
        one["to_columns"][0].as_str().unwrap(),
        one["origin"].as_str().unwrap()
    )
}

async fn list(server: &querent_tests::TestServer, token: &str) -> Vec<Value> {
    let reply = server.get("/v1/catalog/relationships", Some(token)).await;
    reply.json()["relationships"].as_array().unwrap_or_else(|| panic!("{}", reply.text)).clone()
}
