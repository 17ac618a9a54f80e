//! A server that is killed again and again in the middle of everything: `tests/faults/crash.py`, in its short form.
//! `make crash` is the long one.

use querent_tests::{Python, package_folder, querent_binary, run_client};

/// How often it is killed.
const KILLS: &str = "5";

#[tokio::test]
async fn what_was_acknowledged_is_there_and_nothing_half_is() {
    let binary = tokio::task::spawn_blocking(querent_binary).await.unwrap();
    let mut crasher = Python::command([package_folder().join("faults/crash.py")]);
    crasher.args(["--kills", KILLS, "--seconds", "1.5"]).env("QUERENT_BINARY", binary);
    let [told, _] = run_client(crasher).await;
    println!("{told}");
    let acknowledged = told.lines().filter_map(|line| line.split_once(" acknowledged ")).count();
    assert!(acknowledged > 10, "every kind of change says how many it made: {told}");
}
