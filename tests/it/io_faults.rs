//! Disks that are full or read-only, torn files and connections that are cut: `tests/faults/io_faults.py`. A log that cannot be
//! written.

use std::path::Path;

use querent_tests::{Python, ServerProcess, package_folder, querent_binary, run_client};
use serde_json::json;

#[tokio::test]
async fn failing_disks_and_networks_lose_nothing_that_was_acknowledged() {
    let binary = tokio::task::spawn_blocking(querent_binary).await.unwrap();
    let mut faults = Python::command([package_folder().join("faults/io_faults.py")]);
    faults.env("QUERENT_BINARY", binary);
    let [told, _] = run_client(faults).await;
    println!("{told}");
    assert!(told.contains("requests cut") && told.trim_end().ends_with(" 0 faults"), "{told}");
}

#[tokio::test]
async fn a_log_that_cannot_be_written_stops_nothing() {
    let log = Path::new("/dev/full");
    let server = ServerProcess::start_with_log(&[("QUERENT_LOG", "debug")], log);
    let url = format!("{}/v1/query", server.url.trim_end_matches('/'));
    for sql in ["CREATE TABLE t AS SELECT 1 AS a", "SELECT a FROM t"] {
        let answered = reqwest::Client::new().post(&url).json(&json!({ "sql": sql })).send().await.unwrap();
        assert_eq!(answered.status(), 200, "{sql}");
    }
}
