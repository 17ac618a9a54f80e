//! Workers that are found by a name.

use std::time::Duration;

use querent_tests::wait_until;
use reqwest::Client;
use serde_json::json;

use super::{ask, coordinator, tables, worker, worker_at};

const COUNTED: &str = "SELECT count(*) AS n FROM orders WHERE o_orderkey > 7";

#[tokio::test]
async fn workers_are_all_addresses_of_a_name() {
    let mut found = worker(&[]);
    let port = found.url.trim_end_matches('/').rsplit(':').next().unwrap().to_owned();
    let coordinator = coordinator(&format!("dns://localhost:{port}"), &[]);
    let http = Client::new();
    let query = async |sql: &str| ask(&http, &coordinator.url, json!({ "sql": sql }), None).await.unwrap();
    for statement in tables() {
        query(&statement).await;
    }
    assert_eq!(query(COUNTED).await[0]["n"], 14_993);
    // An address at which nobody listens, as that of IPv6 may be, is left out, which `EXPLAIN` says behind this.
    let explained = json!(query(&format!("EXPLAIN {COUNTED}")).await).to_string();
    assert!(explained.contains("runs on 1 worker:"), "{explained}");

    found.child.kill().unwrap();
    found.child.wait().unwrap();
    assert_eq!(query(COUNTED).await[0]["n"], 14_993);
}

#[tokio::test]
async fn a_name_that_nobody_knows_leaves_the_coordinator() {
    let coordinator = coordinator("dns://workers.invalid:8815", &[]);
    let http = Client::new();
    let query = async |sql: &str| ask(&http, &coordinator.url, json!({ "sql": sql }), None).await.unwrap();
    for statement in tables() {
        query(&statement).await;
    }
    assert_eq!(query(COUNTED).await[0]["n"], 14_993);
    let explained = json!(query(&format!("EXPLAIN {COUNTED}")).await).to_string();
    assert!(explained.contains("no worker can be used: workers.invalid"), "{explained}");
}

/// A worker that was lost and is there again, at its old address, is used when it is asked again.
#[tokio::test]
async fn a_worker_that_comes_back_is_used_again() {
    let first = worker_at("127.0.0.47:0");
    let address = first.url.trim_start_matches("http://").trim_end_matches('/').to_owned();
    let coordinator = coordinator(&first.url, &[]);
    let http = Client::new();
    let query = async |sql: &str| ask(&http, &coordinator.url, json!({ "sql": sql }), None).await.unwrap();
    for statement in tables() {
        query(&statement).await;
    }
    let explained = async || json!(query(&format!("EXPLAIN {COUNTED}")).await).to_string();
    assert!(explained().await.contains("runs on 1 worker:"));
    drop(first);
    assert_eq!(query(COUNTED).await[0]["n"], 14_993);
    assert!(explained().await.contains("no worker can be used"));

    let _later = worker_at(&address);
    wait_until("the worker is used", async || {
        // It is asked again ten seconds after it was lost, and each look plans a statement.
        tokio::time::sleep(Duration::from_millis(200)).await;
        explained().await.contains("runs on 1 worker:")
    })
    .await;
    assert_eq!(query(COUNTED).await[0]["n"], 14_993);
}
