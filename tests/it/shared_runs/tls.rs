//! Servers that share a catalog and speak TLS: what is asked about a run goes on to its server over it.

use querent_tests::{Certificates, PostgresProcess, ServerProcess, read_until};
use reqwest::Client;
use serde_json::{Value, json};

use super::{SERVER, run_id_in, script};

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_reached_over_tls_by_those_who_know_the_authority() {
    let postgres = PostgresProcess::start();
    let url = postgres.new_database("lake");
    let certificates = Certificates::new();
    certificates.issue("server", &["localhost", "127.0.0.1"]);
    std::fs::write(certificates.file("script.json"), script().to_string()).unwrap();
    let [ca, certificate, key, script] =
        ["ca.pem", "server.pem", "server.key", "script.json"].map(|name| certificates.text(name));
    let settings = [
        ("QUERENT_AGENT_SCRIPT", script.as_str()),
        ("QUERENT_CATALOG_URL", url.as_str()),
        ("QUERENT_TLS_CERTIFICATE", certificate.as_str()),
        ("QUERENT_TLS_KEY", key.as_str()),
    ];
    let trusting = [&settings[..], &[("QUERENT_CLUSTER_CA", ca.as_str())]].concat();
    let (one, two) = (ServerProcess::start(&trusting), ServerProcess::start(&trusting));
    let stranger = ServerProcess::start(&settings);
    let authority = reqwest::Certificate::from_pem(&std::fs::read(certificates.file("ca.pem")).unwrap()).unwrap();
    let http = Client::builder().add_root_certificate(authority).build().unwrap();
    let at = |server: &ServerProcess, path: &str| format!("{}{path}", server.url.trim_end_matches('/'));
    assert!(one.url.starts_with("https://"), "{}", one.url);

    let mut asked = http.post(at(&one, "/v1/agent/ask")).json(&json!({ "question": "slow" })).send().await.unwrap();
    let run_id = run_id_in(&read_until(&mut asked, "Half an").await);
    let events = format!("/v1/agent/runs/{run_id}/events");
    let mut followed = http.get(at(&two, &events)).send().await.unwrap();
    assert_eq!(followed.status(), 200);
    read_until(&mut followed, "Half an").await;

    // Nothing is sent to a server whose certificate is not known.
    let refused = http.get(at(&stranger, &events)).send().await.unwrap();
    assert_eq!(refused.status(), 503);
    assert_eq!(refused.headers()["x-querent-error-code"], "run_elsewhere");
    assert!(refused.headers().contains_key(SERVER));

    let cancel = at(&two, &format!("/v1/agent/runs/{run_id}/cancel"));
    let cancelled: Value = http.post(cancel).json(&json!({})).send().await.unwrap().json().await.unwrap();
    assert_eq!(cancelled["status"], "cancelled", "{cancelled}");
    assert!(asked.text().await.unwrap().contains("event: run_finished"));
}
