//! Errors of tasks: they come back with their codes, however long they are.

use reqwest::Client;
use serde_json::json;

use super::{ClusterProcesses, ask, coordinator, tables, worker};

#[tokio::test]
async fn errors_of_tasks_have_the_codes_of_one_node() {
    let cluster = ClusterProcesses::start(&[]);
    cluster.seed().await;
    for (sql, code, words) in [
        ("SELECT max(o_orderkey * 922337203685477580) AS m FROM orders", "invalid_value", "out of the range of BIGINT"),
        ("SELECT max(1 / (o_orderkey - 7)) AS m FROM orders", "invalid_value", "division by zero"),
        // Such a text does not fit into the headers that an error comes back in.
        ("SELECT max(strptime(repeat(o_comment, 20000), '%Y')) AS m FROM orders", "invalid_value", "comment "),
    ] {
        let explained = cluster.explained(sql).await;
        assert!(explained.contains("runs on 2 workers"), "{sql}: {explained}");
        let here = cluster.on_one_node(json!({ "sql": sql }), "boss").await.unwrap_err();
        let shared = cluster.on_workers(json!({ "sql": sql }), "boss").await.unwrap_err();
        for error in [here, shared] {
            assert_eq!(error["code"], code, "{sql}");
            assert!(error["message"].as_str().is_some_and(|message| message.contains(words)), "{sql}");
        }
    }
    // No worker was taken for lost.
    let counted = "SELECT count(*) AS n FROM orders WHERE o_orderkey > 7";
    cluster.assert_shared("the next query", counted, "boss").await;
}

#[tokio::test]
async fn where_workers_are_is_told_to_administrators() {
    let there = worker(&[]);
    // Nobody listens at it.
    let gone = "http://127.0.0.1:9";
    let tokens = ("QUERENT_AUTH_TOKENS", "boss:admin:boss,ann:read:ann");
    let server = coordinator(&format!("{},{gone}", there.url), &[tokens]);
    let http = Client::new();
    for statement in tables() {
        ask(&http, &server.url, json!({ "sql": statement }), Some("boss")).await.unwrap();
    }
    let sql = "EXPLAIN SELECT o_custkey, count(*) AS n FROM orders GROUP BY o_custkey";
    for (token, is_told) in [("boss", true), ("ann", false)] {
        let shown = json!(ask(&http, &server.url, json!({ "sql": sql }), Some(token)).await.unwrap()).to_string();
        assert!(shown.contains("runs on 1 worker") && shown.contains("left out: "), "{shown}");
        assert_eq!(shown.contains("127.0.0.1"), is_told, "{token}: {shown}");
        let analyzed = sql.replace("EXPLAIN", "EXPLAIN ANALYZE");
        let shown = json!(ask(&http, &server.url, json!({ "sql": analyzed }), Some(token)).await.unwrap()).to_string();
        assert!(shown.contains(".parquet"), "{shown}");
        assert_eq!(shown.contains("default/orders"), is_told, "{token}: {shown}");
    }
}
