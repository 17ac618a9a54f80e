//! The client libraries that people use, as processes of their own against a server in this one.

use std::process::Command;

use querent_tests::{Node, Python, TestServer, TestSettings, package_folder};

#[tokio::test]
async fn adbc_without_tokens() {
    let server = TestServer::start(TestSettings::default()).await;
    content("adbc.py", &[format!("grpc://{}", server.addr)]).await;
}

#[tokio::test]
async fn adbc_with_a_token() {
    let server = TestServer::start(TestSettings::default().tokens("writer-tok:write")).await;
    content("adbc.py", &[format!("grpc://{}", server.addr), "writer-tok".to_owned()]).await;
}

#[tokio::test]
async fn pyarrow_flight() {
    let server = TestServer::start(TestSettings::default().tokens("reader-tok:read")).await;
    content("pyarrow_flight.py", &[format!("grpc://{}", server.addr), "reader-tok".to_owned()]).await;
}

#[tokio::test]
async fn kusto_for_python() {
    let server = TestServer::start(TestSettings::default()).await;
    server.seed_otel_logs().await;
    content("kusto.py", &[server.url("")]).await;
}

#[tokio::test]
async fn kusto_for_python_with_a_token() {
    let server = TestServer::start(TestSettings::default().tokens("reader-tok:read,admin-tok:admin")).await;
    server.seed_otel_logs().await;
    content("kusto.py", &[server.url(""), "reader-tok".to_owned()]).await;
}

#[tokio::test]
async fn kusto_for_node() {
    let server = TestServer::start(TestSettings::default().tokens("reader-tok:read,admin-tok:admin")).await;
    server.seed_otel_logs().await;
    let script = package_folder().join("clients/kusto.mjs");
    let mut node = Node::command(&script);
    node.args([server.url(""), "reader-tok".to_owned()]);
    succeeds(node).await;
}

/// Runs one of `tests/clients/`, which exits with 0 when it is content with the server.
async fn content(script: &str, arguments: &[String]) {
    let script = package_folder().join("clients").join(script);
    let mut python = Python::command([script]);
    python.args(arguments);
    succeeds(python).await;
}

async fn succeeds(mut client: Command) {
    let output = tokio::task::spawn_blocking(move || client.output().expect("the client starts")).await.unwrap();
    let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    assert!(output.status.success(), "{said}");
}
