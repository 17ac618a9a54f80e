//! TLS between servers, with certificates of an authority that each test makes.

use std::path::PathBuf;

use querent_flight::config::{ClusterSettings, Config, Settings};
use querent_tests::{Certificates, ServerProcess};
use reqwest::Client;
use serde_json::json;

use super::{ClusterProcesses, KEY, QUERIES, ask, coordinator, tables, worker};

const COUNTED: &str = "SELECT count(*) AS n FROM orders WHERE o_orderkey > 7";

fn certificates() -> Certificates {
    let certificates = Certificates::new();
    certificates.issue("worker", &["localhost", "127.0.0.1"]);
    certificates.issue("coordinator", &["coordinator.example"]);
    certificates
}

/// Seeds a coordinator, and returns where it runs a query, whose rows are right.
async fn placement(coordinator: &ServerProcess) -> String {
    let http = Client::new();
    for statement in tables() {
        ask(&http, &coordinator.url, json!({ "sql": statement }), None).await.unwrap();
    }
    let rows = ask(&http, &coordinator.url, json!({ "sql": COUNTED }), None).await.unwrap();
    assert_eq!(rows[0]["n"], 14_993);
    let explained = json!({ "sql": format!("EXPLAIN {COUNTED}") });
    json!(ask(&http, &coordinator.url, explained, None).await.unwrap()).to_string()
}

#[tokio::test]
async fn rows_travel_over_tls_that_both_sides_check() {
    let certificates = certificates();
    let [ca, certificate, key] = ["ca.pem", "worker.pem", "worker.key"].map(|name| certificates.text(name));
    let [shown, shown_key] = ["coordinator.pem", "coordinator.key"].map(|name| certificates.text(name));
    let cluster = [
        ("QUERENT_CLUSTER_CA", ca.as_str()),
        ("QUERENT_CLUSTER_CLIENT_CERTIFICATE", shown.as_str()),
        ("QUERENT_CLUSTER_CLIENT_KEY", shown_key.as_str()),
    ];
    let tls = [
        ("QUERENT_TLS_CERTIFICATE", certificate.as_str()),
        ("QUERENT_TLS_KEY", key.as_str()),
        ("QUERENT_TLS_CLIENT_CA", ca.as_str()),
    ];
    let workers = vec![worker(&[&cluster[..], &tls].concat()), worker(&[&cluster[..], &tls].concat())];
    assert!(workers[0].url.starts_with("https://"), "{}", workers[0].url);
    let urls = format!("{},{}", workers[0].url, workers[1].url);
    let coordinator = coordinator(&urls, &cluster);
    let cluster = ClusterProcesses { workers, coordinator, alone: ServerProcess::start(&[]), http: Client::new() };
    cluster.seed().await;
    // With rows that workers send to each other.
    for (what, sql) in &QUERIES[..6] {
        cluster.assert_shared(what, sql, "boss").await;
    }
}

#[tokio::test]
async fn certificates_are_for_the_name_that_workers_are_found_by() {
    let certificates = certificates();
    certificates.issue("named", &["localhost"]);
    let [ca, certificate, key] = ["ca.pem", "named.pem", "named.key"].map(|name| certificates.text(name));
    let tls = [("QUERENT_TLS_CERTIFICATE", certificate.as_str()), ("QUERENT_TLS_KEY", key.as_str())];
    let found = worker(&tls);
    let port = found.url.trim_end_matches('/').rsplit(':').next().unwrap();
    let trust = [("QUERENT_CLUSTER_CA", ca.as_str())];
    let by_name = placement(&coordinator(&format!("dns+https://localhost:{port}"), &trust)).await;
    assert!(by_name.contains("runs on 1 worker:"), "{by_name}");
    // The certificate is not for the address.
    let by_address = placement(&coordinator(&found.url, &trust)).await;
    assert!(by_address.contains("runs on one node: no worker can be used"), "{by_address}");
    assert!(by_address.contains("invalid peer certificate"), "{by_address}");
}

#[tokio::test]
async fn what_is_wrong_with_tls_is_said() {
    let certificates = certificates();
    let [ca, certificate, key] = ["ca.pem", "worker.pem", "worker.key"].map(|name| certificates.text(name));
    let tls = [("QUERENT_TLS_CERTIFICATE", certificate.as_str()), ("QUERENT_TLS_KEY", key.as_str())];
    let trust = [("QUERENT_CLUSTER_CA", ca.as_str())];
    let encrypted = worker(&tls);
    let plain = worker(&[]);

    let unknown = placement(&coordinator(&encrypted.url, &[])).await;
    assert!(unknown.contains("invalid peer certificate") && unknown.contains("cluster.ca"), "{unknown}");
    let to_tls = placement(&coordinator(&encrypted.url.replace("https://", "http://"), &[])).await;
    assert!(to_tls.contains("no worker can be used") && to_tls.contains("named with https://"), "{to_tls}");
    let to_plain = placement(&coordinator(&plain.url.replace("http://", "https://"), &trust)).await;
    assert!(to_plain.contains("no worker can be used") && to_plain.contains("named with http://"), "{to_plain}");

    let asking = worker(&[&tls[..], &[("QUERENT_TLS_CLIENT_CA", ca.as_str())]].concat());
    let without = placement(&coordinator(&asking.url, &trust)).await;
    assert!(without.contains("no worker can be used"), "{without}");
}

#[test]
fn settings_that_do_not_go_together_are_refused() {
    let cluster = || ClusterSettings { key: Some(KEY.to_owned()), ..ClusterSettings::default() };
    let file = || Some(PathBuf::from("x.pem"));
    for (cluster, setting) in [
        (ClusterSettings { client_certificate: file(), ..cluster() }, "cluster.client_certificate"),
        (ClusterSettings { client_key: file(), ..cluster() }, "cluster.client_key"),
        (ClusterSettings { workers: vec!["dns://workers".to_owned()], ..cluster() }, "cluster.workers"),
        (ClusterSettings { workers: vec!["grpc://workers:1".to_owned()], ..cluster() }, "cluster.workers"),
    ] {
        let error = Config::from_settings(Settings { cluster, ..Settings::default() }).unwrap_err();
        assert!(error.to_string().contains(&format!("`{setting}`")), "{error}");
    }
}
