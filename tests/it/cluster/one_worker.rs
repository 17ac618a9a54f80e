//! One worker: it does a query as a whole.

use std::path::Path;
use std::process::Output;
use std::time::Duration;

use querent_catalog::HeldFolder;
use querent_tests::querent_binary;
use serde_json::json;

use super::{ClusterProcesses, KEY, QUERIES, worker};

#[tokio::test]
async fn one_worker_gives_the_rows_of_one_node() {
    let cluster = ClusterProcesses::with_workers(1, &[], &[]);
    cluster.seed().await;
    for (what, sql) in QUERIES {
        // What statistics answer reads no file.
        let placement = cluster.assert_same(what, sql, "boss").await;
        assert!(placement.contains("runs on 1 worker:") || what.contains("a limit"), "{what}: {placement}");
    }
    // There is one stage, and nothing is shared out between workers.
    let stages = cluster.explained(QUERIES[2].1).await;
    assert!(stages.contains("DistributedExec") && stages.contains("NetworkCoalesceExec"), "{stages}");
    assert!(!stages.contains("NetworkShuffleExec") && !stages.contains("Stage 2"), "{stages}");
    let analyzed = json!({ "sql": format!("EXPLAIN ANALYZE {}", QUERIES[1].1) });
    let analyzed = json!(cluster.on_workers(analyzed, "boss").await.unwrap()).to_string();
    assert!(analyzed.contains("Stage 1") && analyzed.contains("output_rows"), "{analyzed}");
    // Rows that would be sent as they are read are read here.
    let sql = "SELECT c_custkey, c_name FROM customer";
    let shared = cluster.on_workers(json!({ "sql": sql }), "boss").await.unwrap();
    let here = cluster.on_one_node(json!({ "sql": sql }), "boss").await.unwrap();
    // Without an order the files' rows come as they are read.
    let [shared, here] = [shared, here].map(|mut rows| {
        rows.sort_by_key(|row| row["c_custkey"].as_i64());
        rows
    });
    assert_eq!(shared, here);
    let all = cluster.explained(sql).await;
    assert!(all.contains("runs on one node: no part of it would be done by a worker"), "{all}");
}

/// Tasks of queries that are there at once are told apart.
#[tokio::test]
async fn queries_beside_each_other_do_not_mix() {
    let cluster = ClusterProcesses::with_workers(1, &[], &[]);
    cluster.seed().await;
    let counted = |least: usize| {
        let sql = format!("SELECT count(*) AS n, min(o_orderkey) AS m FROM orders WHERE o_orderkey > {least}");
        let cluster = &cluster;
        async move {
            let rows = cluster.on_workers(json!({ "sql": sql }), "boss").await.unwrap();
            assert_eq!(rows, [json!({ "n": 15_000 - least, "m": least + 1 })]);
        }
    };
    futures::future::join_all((0..24).map(counted)).await;
}

#[tokio::test]
async fn a_lost_only_worker_leaves_the_coordinator() {
    let mut cluster = ClusterProcesses::with_workers(1, &[], &[]);
    cluster.seed().await;
    let (what, sql) = QUERIES[1];
    cluster.assert_shared(what, sql, "boss").await;
    cluster.workers[0].child.kill().unwrap();
    cluster.workers[0].child.wait().unwrap();
    let placement = cluster.assert_same(what, sql, "boss").await;
    assert!(placement.contains("runs on one node: no worker can be used"), "{placement}");
}

async fn querent(arguments: &[&str], folder: &Path) -> Output {
    let mut command = tokio::process::Command::new(querent_binary());
    command.args(arguments).env("QUERENT_CLUSTER_KEY", KEY).current_dir(folder).kill_on_drop(true);
    tokio::time::timeout(Duration::from_secs(60), command.output()).await.expect("it ends").unwrap()
}

/// A worker empties the folder of what is spilled when it starts.
#[tokio::test]
async fn a_workers_folder_is_one_processes_alone() {
    let folder = tempfile::tempdir().unwrap();
    let held = HeldFolder::take(folder.path()).await.unwrap();
    let second = ["serve", "--role", "worker", "--listen", "127.0.0.1:0", "--data", "."];
    let refused = querent(&second, folder.path()).await;
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && said.contains("is in use by another querent process"), "{said}");
    drop(held);
    HeldFolder::take(folder.path()).await.unwrap();
}

#[tokio::test]
async fn a_worker_says_to_clients_of_flight_that_it_is_one() {
    let (worker, folder) = (worker(&[]), tempfile::tempdir().unwrap());
    let refused = querent(&["sql", "--server", &worker.url, "SELECT 1"], folder.path()).await;
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && said.contains("this server is a worker"), "{said}");
}
