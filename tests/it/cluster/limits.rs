//! The bounds of queries on workers: time, memory, and the end of a query that nobody waits for.

use std::time::{Duration, Instant};

use querent_tests::{PATIENCE, wait_until};
use reqwest::Client;
use serde_json::json;

use super::{ClusterProcesses, PROMPT};

/// Minutes of work, spread over all workers.
const LONG: &str = "SELECT count(*) AS n FROM lineitem a JOIN lineitem b ON a.l_returnflag = b.l_returnflag \
                    AND a.l_partkey + b.l_partkey <> a.l_orderkey";

/// How many tasks a worker has.
async fn running_tasks(http: &Client, url: &str) -> u64 {
    let ready = http.get(format!("{}/ready", url.trim_end_matches('/'))).send().await.expect("an answer");
    let ready: serde_json::Value = ready.json().await.expect("JSON");
    ready["tasks"].as_u64().expect("a number")
}

impl ClusterProcesses {
    async fn wait_until_idle(&self) {
        for worker in &self.workers {
            wait_until("its tasks have ended", async || running_tasks(&self.http, &worker.url).await == 0).await;
        }
    }

    async fn wait_until_busy(&self) {
        for worker in &self.workers {
            wait_until("it has tasks", async || running_tasks(&self.http, &worker.url).await > 0).await;
        }
    }
}

#[tokio::test]
async fn tasks_end_with_their_querys_client() {
    let cluster = ClusterProcesses::start(&[]);
    cluster.seed().await;
    let asked = cluster.on_workers(json!({ "sql": LONG }), "boss");
    tokio::select! {
        answer = asked => panic!("it ended by itself: {answer:?}"),
        () = cluster.wait_until_busy() => {}
    }
    cluster.wait_until_idle().await;
    // Nothing of it is in the way of the next one.
    let counted = "SELECT count(*) AS n FROM orders WHERE o_orderkey > 7";
    cluster.assert_shared("another query", counted, "boss").await;
}

#[tokio::test]
async fn tasks_end_with_their_querys_time() {
    let cluster = ClusterProcesses::start(&[("QUERENT_QUERY_TIMEOUT", "5s")]);
    cluster.seed().await;
    let began = Instant::now();
    let error = cluster.on_workers(json!({ "sql": LONG }), "boss").await.unwrap_err();
    assert_eq!(error["code"], "wall_clock_exceeded", "{error}");
    assert!(began.elapsed() < PATIENCE, "{:?}", began.elapsed());
    cluster.wait_until_idle().await;
}

#[tokio::test]
async fn tasks_have_the_memory_of_their_query() {
    let cluster = ClusterProcesses::start(&[("QUERENT_QUERY_MEMORY", "32MiB")]);
    cluster.seed().await;
    // Nine million texts, which are kept until the end and are not spilled: some 70 MB on each worker.
    let sql = "SELECT length(string_agg(a.l_linestatus, ',')) AS l FROM lineitem a \
               JOIN lineitem b ON a.l_suppkey = b.l_suppkey";
    let explained = cluster.explained(sql).await;
    assert!(explained.contains("runs on 2 workers"), "{explained}");
    let error = cluster.on_workers(json!({ "sql": sql }), "boss").await.unwrap_err();
    let said = error.to_string();
    assert!(said.contains("memory") && !said.contains("worker_lost"), "{said}");
    cluster.wait_until_idle().await;
    let counted = "SELECT count(*) AS n FROM orders WHERE o_orderkey > 7";
    cluster.assert_shared("a small query", counted, "boss").await;
}

/// Each row is read once, however its files are cut and shared out.
#[tokio::test]
async fn rows_of_file_groups_are_counted_once() {
    for workers in 1..=3 {
        let cluster = ClusterProcesses::with_workers(workers, &[], &[("QUERENT_QUERY_THREADS", "3")]);
        // Files of very different lengths, the last one of a single row.
        for (from, to) in [(1, 40_000), (40_001, 40_100), (40_101, 41_000), (41_001, 41_001)] {
            let make = if from == 1 { "CREATE TABLE numbers AS" } else { "INSERT INTO numbers" };
            let sql = format!("{make} SELECT i, i % 7 AS k, 'text ' || i AS t FROM generate_series({from}, {to}) s(i)");
            cluster.execute(&sql).await;
        }
        let sql = "SELECT k, count(*) AS n, count(DISTINCT i) AS d, sum(i) AS s, min(t) AS t FROM numbers GROUP BY k ORDER BY k";
        cluster.assert_shared("rows of many files", sql, "boss").await;
        let all = cluster.on_workers(json!({ "sql": "SELECT count(*) AS n FROM numbers WHERE t <> ''" }), "boss").await;
        assert_eq!(all.unwrap()[0]["n"], 41_001, "{workers}");
    }
}

/// Rows that have come are not taken back: where a worker is lost after the first of them, the query fails.
#[tokio::test]
async fn a_worker_lost_after_the_first_rows_is_an_error() {
    use futures::StreamExt;
    let mut cluster = ClusterProcesses::start(&[]);
    cluster.seed().await;
    // Far more rows than buffers hold.
    let sql = "SELECT a.l_orderkey, a.l_partkey, b.l_orderkey AS o, b.l_shipdate FROM lineitem a JOIN lineitem b \
               ON a.l_suppkey = b.l_suppkey WHERE a.l_orderkey <> b.l_partkey";
    let explained = cluster.explained(sql).await;
    assert!(explained.contains("runs on 2 workers"), "{explained}");
    let url = format!("{}/v1/query", cluster.coordinator.url.trim_end_matches('/'));
    let reply = cluster.http.post(url).json(&json!({ "sql": sql })).send().await.unwrap();
    assert!(reply.status().is_success(), "{}", reply.status());
    let mut body = reply.bytes_stream();
    let first = body.next().await.expect("rows").expect("rows");
    assert!(first.starts_with(b"{"), "{first:?}");
    for worker in &mut cluster.workers {
        worker.child.kill().unwrap();
    }
    let mut rest = Vec::new();
    let read = async {
        while let Some(Ok(bytes)) = body.next().await {
            // The end is enough.
            rest.extend_from_slice(&bytes);
            let beyond = rest.len().saturating_sub(1 << 16);
            rest.drain(..beyond);
        }
    };
    tokio::time::timeout(Duration::from_secs(120), read).await.expect("no hang");
    let end = String::from_utf8_lossy(&rest);
    assert!(end.contains("worker_lost"), "{}", &end[end.len().saturating_sub(500)..]);
}

/// Minutes of work in calls of a function, each of which computes a whole batch of rows and never yields.
const LONG_CALLS: &str = "let numbers = range(1, 300000, 1); \
                          lineitem | summarize m = max(array_index_of(numbers, l_partkey + 1000000))";

impl ClusterProcesses {
    /// Asks for [`LONG_CALLS`], and returns the whole answer.
    async fn ask_long_calls(&self) -> String {
        let url = format!("{}/v1/query", self.coordinator.url.trim_end_matches('/'));
        let asked = self.http.post(url).header("content-type", "application/x-kql").body(LONG_CALLS);
        asked.send().await.expect("an answer").text().await.expect("a whole answer")
    }

    /// Waits until no worker computes, whatever it says of its tasks.
    async fn wait_until_quiet(&self) {
        const LOOK: Duration = Duration::from_millis(500);
        /// Of the fifty that a thread has in that time.
        const IDLE_TICKS: u64 = 5;
        for worker in &self.workers {
            wait_until("it computes nothing", async || {
                let before = worker.cpu_ticks();
                // What it computes meanwhile is counted.
                tokio::time::sleep(LOOK).await;
                worker.cpu_ticks() <= before + IDLE_TICKS
            })
            .await;
        }
    }
}

#[tokio::test]
async fn calls_of_functions_end_with_their_querys_client() {
    let cluster = ClusterProcesses::start(&[]);
    cluster.seed().await;
    tokio::select! {
        answer = cluster.ask_long_calls() => panic!("it ended by itself: {answer}"),
        () = cluster.wait_until_busy() => {}
    }
    cluster.wait_until_idle().await;
    cluster.wait_until_quiet().await;
}

#[tokio::test]
async fn calls_of_functions_end_with_their_querys_time() {
    let cluster = ClusterProcesses::start(&[("QUERENT_QUERY_TIMEOUT", "5s")]);
    cluster.seed().await;
    let answer = cluster.ask_long_calls().await;
    assert!(answer.contains("wall_clock_exceeded"), "{answer}");
    cluster.wait_until_quiet().await;
}

/// A worker that is taken for lost because it computes would fail every long query.
#[tokio::test]
async fn a_worker_that_computes_answers() {
    let cluster = ClusterProcesses::start(&[]);
    cluster.seed().await;
    // One more than a server has threads to answer with.
    let count = std::thread::available_parallelism().map_or(2, usize::from) + 1;
    let queries = futures::future::join_all((0..count).map(|_| cluster.ask_long_calls()));
    let health = async {
        for worker in &cluster.workers {
            let busy = async || running_tasks(&cluster.http, &worker.url).await >= count as u64;
            wait_until("it has a task of each query", busy).await;
        }
        let began = Instant::now();
        while began.elapsed() < PROMPT {
            for worker in &cluster.workers {
                let url = format!("{}/health", worker.url.trim_end_matches('/'));
                let answer = cluster.http.get(url).timeout(PROMPT / 2).send().await;
                assert!(answer.expect("an answer in time").status().is_success());
            }
            // Ten times a second, as a cluster's members ask.
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::select! {
        answers = queries => panic!("they ended by themselves: {answers:?}"),
        () = health => {}
    }
    cluster.wait_until_quiet().await;
}
