//! The client libraries that people use, as processes of their own against a server in this one.

use querent_tests::script::run_sql;
use querent_tests::{NodeJs, Python, TestServer, TestSettings, python_package, run_client};
use serde_json::json;
use tempfile::TempDir;

#[tokio::test]
async fn adbc_without_tokens() {
    let server = TestServer::start(TestSettings::default()).await;
    run_python("adbc.py", &[format!("grpc://{}", server.addr)]).await;
}

#[tokio::test]
async fn adbc_with_a_token() {
    let server = TestServer::start(TestSettings::default().tokens("writer-tok:write")).await;
    run_python("adbc.py", &[format!("grpc://{}", server.addr), "writer-tok".to_owned()]).await;
}

#[tokio::test]
async fn pyarrow_flight() {
    let server = TestServer::start(TestSettings::default().tokens("reader-tok:read")).await;
    run_python("pyarrow_flight.py", &[format!("grpc://{}", server.addr), "reader-tok".to_owned()]).await;
}

#[tokio::test]
async fn pandas_polars_duckdb_and_sqlalchemy() {
    let server = TestServer::start(TestSettings::default().tokens("writer-tok:write")).await;
    run_python("flight_dataframes.py", &[format!("grpc://{}", server.addr), "writer-tok".to_owned()]).await;
}

#[tokio::test]
async fn flight_sql_for_node() {
    let server = TestServer::start(TestSettings::default().tokens("writer-tok:write")).await;
    let mut node = NodeJs::client("flight_node.mjs");
    node.args([server.addr.to_string(), "writer-tok".to_owned()]);
    run_client(node).await;
}

/// The client package that is made of the server's own OpenAPI document, `clients/typescript`.
#[tokio::test]
async fn the_generated_client() {
    let server = TestServer::start(TestSettings::default().tokens("writer-tok:write")).await;
    let folder = TempDir::new().unwrap();
    let generator = querent_tests::package_folder().join("../scripts/typescript_client.mjs");
    let kept = querent_tests::package_folder().join("../clients/typescript");
    let mut node = NodeJs::client("typescript_client.mjs");
    node.args([server.url("/"), "writer-tok".to_owned()]);
    node.args([generator.as_path(), folder.path(), kept.as_path()]);
    run_client(node).await;
}

#[tokio::test]
async fn kusto_for_python() {
    let server = TestServer::start(TestSettings::default()).await;
    server.seed_otel_logs().await;
    run_python("kusto.py", &[server.url("")]).await;
}

#[tokio::test]
async fn kusto_for_python_with_a_token() {
    let server = TestServer::start(TestSettings::default().tokens("reader-tok:read,admin-tok:admin")).await;
    server.seed_otel_logs().await;
    run_python("kusto.py", &[server.url(""), "reader-tok".to_owned()]).await;
}

#[tokio::test]
async fn kusto_for_node() {
    let server = TestServer::start(TestSettings::default().tokens("reader-tok:read,admin-tok:admin")).await;
    server.seed_otel_logs().await;
    let mut node = NodeJs::client("kusto.mjs");
    node.args([server.url(""), "reader-tok".to_owned()]);
    run_client(node).await;
}

#[tokio::test]
async fn the_python_module() {
    run_with_module("python_module.py", &[]).await;
}

#[tokio::test]
async fn cells_of_a_notebook() {
    run_with_module("notebook.py", &[("QUERENT_EMBED_PROVIDER", "none")]).await;
}

/// Runs a client of the Python module, whose agent counts flights and says so.
async fn run_with_module(client: &str, settings: &[(&str, &str)]) {
    let folder = TempDir::new().unwrap();
    let script = folder.path().join("script.json");
    let asked = json!({ "turns": [
        { "events": [run_sql("SELECT count(*) AS n FROM flights")] },
        { "events": [{ "text": "There are **3** flights." }] },
    ] });
    let plotted = json!({ "when": "each carrier", "turns": [
        { "events": [run_sql("SELECT carrier, count(*) AS n FROM flights GROUP BY carrier ORDER BY carrier")] },
        { "events": [{ "text": "As the chart shows." }] },
    ] });
    std::fs::write(&script, json!({ "runs": [plotted, asked, asked] }).to_string()).unwrap();
    let package = python_package();
    let mut python = Python::client(client);
    python.env("PYTHONPATH", package.path()).env("QUERENT_AGENT_SCRIPT", script).current_dir(folder.path());
    python.envs(settings.iter().copied()).env("IPYTHONDIR", folder.path());
    let [printed, _] = run_client(python).await;
    assert!(printed.ends_with("ok\n"), "{printed}");
}

async fn run_python(script: &str, arguments: &[String]) {
    let mut python = Python::client(script);
    python.args(arguments);
    run_client(python).await;
}
