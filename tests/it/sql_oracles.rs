//! Random SQL against DuckDB's answers and against other ways to ask for the same: `tests/faults/sql_oracles.py`, in its short
//! form. `make sql-oracles` is the long one.

use querent_tests::{Python, package_folder, querent_binary, run_client};

/// How many cases.
const CASES: &str = "120";

#[tokio::test]
async fn random_statements_have_the_right_answers() {
    let binary = tokio::task::spawn_blocking(querent_binary).await.unwrap();
    let mut oracles = Python::command([package_folder().join("faults/sql_oracles.py")]);
    oracles.args(["--cases", CASES]).env("QUERENT_BINARY", binary);
    let [told, _] = run_client(oracles).await;
    println!("{told}");
    assert!(told.contains("120 cases, ") && told.trim_end().ends_with("0 faults"), "{told}");
}
