//! A server that is killed again and again in the middle of everything, and workers that are lost in the middle of
//! queries: `tests/faults/crash.py`, `run_kills.py` and `cluster_crash.py`, in their short form. `make crash`, `make run-kills`
//! and `make cluster-crash` are the long ones.

use querent_tests::{Python, package_folder, querent_binary, run_client};

/// How often it is killed.
const KILLS: &str = "5";
/// How often it is killed in the middle of runs.
const RUN_KILLS: &str = "2";
/// How many workers are lost.
const LOSSES: &str = "2";

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

#[tokio::test]
async fn a_run_that_was_cut_off_reads_back_whole_in_its_protocol() {
    let binary = tokio::task::spawn_blocking(querent_binary).await.unwrap();
    let mut killer = Python::command([package_folder().join("faults/run_kills.py")]);
    killer.args(["--kills", RUN_KILLS]).env("QUERENT_BINARY", binary);
    let [told, _] = run_client(killer).await;
    println!("{told}");
    assert!(told.contains("2 kills") && told.contains(" 0 faults"), "{told}");
}

#[tokio::test]
async fn a_lost_worker_costs_one_error_at_most_and_is_used_again() {
    let binary = tokio::task::spawn_blocking(querent_binary).await.unwrap();
    let mut crasher = Python::command([package_folder().join("faults/cluster_crash.py")]);
    crasher.args(["--kills", LOSSES]).env("QUERENT_BINARY", binary);
    let [told, _] = run_client(crasher).await;
    println!("{told}");
    assert!(told.contains("2 losses") && told.contains("0 faults"), "{told}");
}
