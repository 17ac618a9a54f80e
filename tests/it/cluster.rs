//! Queries on several servers: a coordinator and its workers, each a process of its own, against one node with the same data.

mod bytes;
mod discovery;
mod errors;
mod functions;
mod limits;
mod one_worker;
mod subqueries;
mod tls;

use std::path::Path;
use std::time::{Duration, Instant};

use querent_tests::ServerProcess;
use reqwest::Client;
use serde_json::{Value, json};
use tempfile::TempDir;

const KEY: &str = "a secret of the cluster";
/// Longer than it takes to notice that a worker vanished.
const PROMPT: Duration = Duration::from_secs(10);

/// Queries as those of TPC-H, by what they are there for.
const QUERIES: [(&str, &str); 17] = [
    ("rows are counted once", "SELECT count(*) AS n FROM lineitem WHERE l_partkey >= 0"),
    (
        "aggregates in two steps",
        "SELECT l_returnflag, l_linestatus, sum(l_quantity) AS q, sum(l_extendedprice * (1 - l_discount)) AS s, \
         avg(l_quantity) AS a, count(*) AS n FROM lineitem WHERE l_shipdate <= DATE '1998-09-02' \
         GROUP BY l_returnflag, l_linestatus ORDER BY 1, 2",
    ),
    (
        "three tables",
        "SELECT l_orderkey, sum(l_extendedprice * (1 - l_discount)) AS revenue, o_orderdate \
         FROM customer, orders, lineitem WHERE c_mktsegment = 'BUILDING' AND c_custkey = o_custkey \
         AND l_orderkey = o_orderkey AND o_orderdate < DATE '1995-03-15' AND l_shipdate > DATE '1995-03-15' \
         GROUP BY l_orderkey, o_orderdate ORDER BY revenue DESC, o_orderdate, l_orderkey LIMIT 10",
    ),
    (
        "a semi-join",
        "SELECT o_orderpriority, count(*) AS n FROM orders WHERE o_orderdate >= DATE '1993-07-01' AND EXISTS \
         (SELECT * FROM lineitem WHERE l_orderkey = o_orderkey AND l_quantity > 25) GROUP BY o_orderpriority ORDER BY 1",
    ),
    (
        "a filter",
        "SELECT sum(l_extendedprice * l_discount) AS revenue FROM lineitem WHERE l_shipdate >= DATE '1994-01-01' \
         AND l_discount BETWEEN 0.05 AND 0.07 AND l_quantity < 24",
    ),
    (
        "an outer join",
        "SELECT c_count, count(*) AS n FROM (SELECT c_custkey, count(o_orderkey) AS c_count FROM customer \
         LEFT JOIN orders ON c_custkey = o_custkey AND o_comment NOT LIKE '%9%' GROUP BY c_custkey) AS c \
         GROUP BY c_count ORDER BY n DESC, c_count DESC",
    ),
    (
        "a subquery with a sum",
        "SELECT o_orderkey, sum(l_quantity) AS q FROM orders, lineitem WHERE o_orderkey IN \
         (SELECT l_orderkey FROM lineitem GROUP BY l_orderkey HAVING sum(l_quantity) > 90) \
         AND o_orderkey = l_orderkey GROUP BY o_orderkey ORDER BY q DESC, o_orderkey LIMIT 20",
    ),
    (
        "a scalar subquery and an anti-join",
        "SELECT substring(c_phone, 1, 2) AS country, count(*) AS n, sum(c_acctbal) AS s FROM customer \
         WHERE c_acctbal > (SELECT avg(c_acctbal) FROM customer WHERE c_acctbal > 0) AND NOT EXISTS \
         (SELECT * FROM orders WHERE o_custkey = c_custkey AND o_orderkey % 5 = 0) GROUP BY 1 ORDER BY 1",
    ),
    (
        "a union",
        "SELECT k, count(*) AS n FROM (SELECT l_orderkey AS k FROM lineitem UNION ALL SELECT o_orderkey FROM orders) \
         GROUP BY k ORDER BY n DESC, k LIMIT 7",
    ),
    ("distinct values", "SELECT count(DISTINCT l_partkey) AS p, count(DISTINCT l_suppkey) AS s FROM lineitem"),
    ("a join without columns", "SELECT count(*) AS n FROM lineitem JOIN orders ON l_orderkey = o_orderkey"),
    (
        "a full join",
        "SELECT count(*) AS n, sum(o_orderkey) AS s FROM customer FULL JOIN orders ON c_custkey = o_custkey AND o_orderkey < 500",
    ),
    ("a limit is one limit", "SELECT count(*) AS n FROM (SELECT * FROM orders LIMIT 100) o"),
    (
        "a limit below a join",
        "SELECT count(*) AS n FROM (SELECT o_custkey FROM orders LIMIT 1000) o JOIN (SELECT c_custkey FROM customer) c \
         ON c_custkey = o_custkey",
    ),
    (
        "texts that functions make",
        "SELECT upper(c_name) AS u, length(c_phone) AS l, c_name || '!' AS e FROM customer JOIN orders \
         ON o_custkey = c_custkey ORDER BY o_orderkey LIMIT 5",
    ),
    (
        "grouping sets",
        "SELECT l_returnflag, l_linestatus, count(*) AS n FROM lineitem GROUP BY ROLLUP(l_returnflag, l_linestatus) \
         ORDER BY 1, 2",
    ),
    (
        "an inequality without columns",
        "SELECT count(*) AS n FROM (SELECT c_custkey FROM customer WHERE c_custkey % 50 = 0) c JOIN orders \
         ON c_custkey < o_custkey",
    ),
];

/// A coordinator with its workers, and one node beside it.
struct ClusterProcesses {
    workers: Vec<ServerProcess>,
    coordinator: ServerProcess,
    alone: ServerProcess,
    http: Client,
}

impl ClusterProcesses {
    fn start(settings: &[(&str, &str)]) -> Self {
        Self::with_workers(2, &[], settings)
    }

    /// Starts so many workers. `both` is for them and for the coordinator, `settings` for the coordinator and the one node.
    fn with_workers(count: usize, both: &[(&str, &str)], settings: &[(&str, &str)]) -> Self {
        let workers: Vec<ServerProcess> = (0..count).map(|_| worker(both)).collect();
        let urls: Vec<&str> = workers.iter().map(|worker| worker.url.as_str()).collect();
        let coordinator = coordinator(&urls.join(","), &[both, settings].concat());
        Self { workers, coordinator, alone: ServerProcess::start(settings), http: Client::new() }
    }

    /// Runs a statement on the coordinator and on the one node.
    async fn execute(&self, sql: &str) {
        for server in [&self.coordinator, &self.alone] {
            ask(&self.http, &server.url, json!({ "sql": sql }), Some("boss"))
                .await
                .unwrap_or_else(|e| panic!("{sql}: {e}"));
        }
    }

    async fn seed(&self) {
        for statement in tables() {
            self.execute(&statement).await;
        }
    }

    async fn on_workers(&self, body: Value, token: &str) -> Result<Vec<Value>, Value> {
        ask(&self.http, &self.coordinator.url, body, Some(token)).await
    }

    async fn on_one_node(&self, body: Value, token: &str) -> Result<Vec<Value>, Value> {
        ask(&self.http, &self.alone.url, body, Some(token)).await
    }

    /// Checks that a query has the same rows on both. Returns where the cluster ran it.
    async fn assert_same(&self, what: &str, sql: &str, token: &str) -> String {
        let here = self.on_one_node(json!({ "sql": sql }), token).await.unwrap();
        assert!(!here.is_empty(), "{what}");
        let shared = self.on_workers(json!({ "sql": sql }), token).await.unwrap();
        assert_eq!(shared, here, "{what}");
        self.explained(sql).await
    }

    /// The same, of a query that workers do a part of.
    async fn assert_shared(&self, what: &str, sql: &str, token: &str) {
        let placement = self.assert_same(what, sql, token).await;
        let count = self.workers.len();
        let expected = if count == 1 { "runs on 1 worker:".to_owned() } else { format!("runs on {count} workers") };
        assert!(placement.contains(&expected), "{what}: {placement}");
    }

    async fn explained(&self, sql: &str) -> String {
        let rows = self.on_workers(json!({ "sql": format!("EXPLAIN {sql}") }), "boss").await.unwrap();
        let plans: Vec<&str> = rows.iter().filter_map(|row| row["plan"].as_str()).collect();
        plans.join("\n")
    }
}

fn worker(settings: &[(&str, &str)]) -> ServerProcess {
    let role = [("QUERENT_CLUSTER_ROLE", "worker"), ("QUERENT_CLUSTER_KEY", KEY)];
    ServerProcess::start(&[&role[..], settings].concat())
}

/// Starts a worker at an address.
fn worker_at(address: &str) -> ServerProcess {
    ServerProcess::start_at(address, &[("QUERENT_CLUSTER_ROLE", "worker"), ("QUERENT_CLUSTER_KEY", KEY)])
}

fn coordinator(workers: &str, settings: &[(&str, &str)]) -> ServerProcess {
    let cluster =
        [("QUERENT_CLUSTER_WORKERS", workers), ("QUERENT_CLUSTER_KEY", KEY), ("QUERENT_CLUSTER_MIN_SCAN_BYTES", "1")];
    ServerProcess::start(&[&cluster[..], settings].concat())
}

async fn ask(http: &Client, url: &str, body: Value, token: Option<&str>) -> Result<Vec<Value>, Value> {
    let mut request = http.post(format!("{}/v1/query", url.trim_end_matches('/'))).json(&body);
    if let Some(token) = token {
        request = request.bearer_auth(token);
    }
    let reply = request.send().await.expect("an answer");
    let (status, text) = (reply.status(), reply.text().await.expect("a whole answer"));
    let lines: Vec<Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let failed = lines.iter().find(|line| line.get("error").is_some()).cloned();
    match failed {
        Some(error) => Err(error["error"].clone()),
        None if status.is_success() => Ok(lines),
        None => Err(json!({ "code": status.as_u16(), "message": text })),
    }
}

async fn ask_kql(http: &Client, url: &str, kql: &str) -> String {
    let asked =
        http.post(format!("{}/v1/query", url.trim_end_matches('/'))).header("content-type", "application/x-kql");
    let reply = asked.body(kql.to_owned()).send().await.expect("an answer");
    assert!(reply.status().is_success(), "{}", reply.status());
    reply.text().await.expect("a whole answer")
}

/// Tables as those of TPC-H, of several files each.
fn tables() -> Vec<String> {
    let customer = "SELECT i AS c_custkey, 'Customer#' || i AS c_name, \
        CAST((i * 7919 % 10000) / 10.0 - 100 AS DECIMAL(15, 2)) AS c_acctbal, \
        CASE i % 5 WHEN 0 THEN 'BUILDING' WHEN 1 THEN 'MACHINERY' ELSE 'FURNITURE' END AS c_mktsegment, \
        (10 + i % 25) || '-' || (i % 1000) AS c_phone";
    let orders = "SELECT i AS o_orderkey, 1 + i * 31 % 3000 AS o_custkey, \
        CAST(i * 13 % 500000 / 100.0 AS DECIMAL(15, 2)) AS o_totalprice, \
        DATE '1992-01-01' + CAST(i * 37 % 2400 AS INT) AS o_orderdate, (1 + i % 5) || '-PRIO' AS o_orderpriority, \
        'comment ' || (i % 97) AS o_comment";
    let lineitem = "SELECT 1 + i * 17 % 15000 AS l_orderkey, i % 2000 AS l_partkey, 1 + i % 100 AS l_suppkey, \
        CAST(1 + i % 50 AS DECIMAL(15, 2)) AS l_quantity, CAST(i * 101 % 9000000 / 100.0 AS DECIMAL(15, 2)) AS l_extendedprice, \
        CAST(i % 11 / 100.0 AS DECIMAL(15, 2)) AS l_discount, CASE i % 3 WHEN 0 THEN 'R' WHEN 1 THEN 'A' ELSE 'N' END AS l_returnflag, \
        CASE i % 2 WHEN 0 THEN 'O' ELSE 'F' END AS l_linestatus, DATE '1992-01-02' + CAST(i * 41 % 2500 AS INT) AS l_shipdate";
    [("customer", customer, 1_000), ("orders", orders, 5_000), ("lineitem", lineitem, 10_000)]
        .into_iter()
        .flat_map(|(name, columns, rows)| {
            (0..3).map(move |part| {
                let make = if part == 0 { format!("CREATE TABLE {name} AS") } else { format!("INSERT INTO {name}") };
                format!("{make} {columns} FROM generate_series({}, {}) t(i)", part * rows + 1, (part + 1) * rows)
            })
        })
        .collect()
}

#[tokio::test]
async fn workers_give_the_rows_of_one_node() {
    let cluster = ClusterProcesses::start(&[]);
    cluster.seed().await;
    let mut stayed = Vec::new();
    for (what, sql) in QUERIES {
        if !cluster.assert_same(what, sql, "boss").await.contains("runs on 2 workers") {
            stayed.push(what);
        }
    }
    // A limit without an order is done where its rows are counted.
    assert!(stayed.iter().all(|what| what.contains("limit")), "{stayed:?}");

    // What was deleted, renamed, added and inserted little of.
    for statement in [
        "DELETE FROM lineitem WHERE l_partkey % 7 = 3",
        "UPDATE orders SET o_totalprice = o_totalprice + 1 WHERE o_orderkey % 11 = 0",
        "ALTER TABLE lineitem RENAME COLUMN l_suppkey TO l_supplier",
        "ALTER TABLE lineitem ADD COLUMN l_extra INTEGER",
        "INSERT INTO customer (c_custkey, c_name) VALUES (90001, 'Late')",
    ] {
        cluster.execute(statement).await;
    }
    for (what, sql) in &QUERIES[..6] {
        cluster.assert_shared(what, sql, "boss").await;
    }
    let renamed = "SELECT count(*) AS n, sum(l_supplier) AS s, count(l_extra) AS e, sum(l_partkey) AS p FROM lineitem";
    cluster.assert_shared("columns that changed", renamed, "boss").await;
    let late = "SELECT c_name, count(o_orderkey) AS n FROM customer LEFT JOIN orders ON o_custkey = c_custkey \
                GROUP BY c_name ORDER BY c_name DESC LIMIT 3";
    cluster.assert_shared("rows in the catalog", late, "boss").await;

    // KQL has the same rows, wherever it runs.
    let kql = "orders | summarize n = count(), s = sum(o_orderkey) by o_orderpriority | order by o_orderpriority asc";
    let here = ask_kql(&cluster.http, &cluster.alone.url, kql).await;
    assert_eq!(ask_kql(&cluster.http, &cluster.coordinator.url, kql).await, here);
    assert_eq!(here.lines().count(), 5, "{here}");

    let stages = cluster.explained(QUERIES[2].1).await;
    for words in ["DistributedExec", "Stage 1", "tasks=2", "NetworkShuffleExec"] {
        assert!(stages.contains(words), "{words}: {stages}");
    }
    let analyzed = format!("EXPLAIN ANALYZE {}", QUERIES[1].1);
    let analyzed = cluster.on_workers(json!({ "sql": analyzed }), "boss").await.unwrap();
    let analyzed = json!(analyzed).to_string();
    assert!(analyzed.contains("bytes_transferred") && analyzed.contains("Stage 1"), "{analyzed}");
}

#[tokio::test]
async fn policies_hold_on_workers() {
    let cluster = ClusterProcesses::start(&[("QUERENT_AUTH_TOKENS", "boss:admin:boss,ann:read:ann")]);
    cluster.seed().await;
    for statement in [
        "GRANT SELECT ON default.orders TO USER ann",
        "GRANT SELECT ON default.customer TO USER ann",
        "CREATE ROW POLICY few ON default.orders USING (o_orderkey % 3 = 0) TO USER ann",
        "CREATE MASK phones ON default.customer(c_phone) USING ('***') TO USER ann",
    ] {
        cluster.execute(statement).await;
    }
    let few = "SELECT count(*) AS n, sum(o_orderkey) AS s FROM orders";
    cluster.assert_shared("some rows", few, "ann").await;
    assert_eq!(cluster.on_workers(json!({ "sql": few }), "ann").await.unwrap()[0]["n"], 5_000);
    assert_eq!(cluster.on_workers(json!({ "sql": few }), "boss").await.unwrap()[0]["n"], 15_000);
    let masked =
        "SELECT c_phone, count(*) AS n FROM customer JOIN orders ON o_custkey = c_custkey GROUP BY c_phone ORDER BY 1";
    cluster.assert_shared("values behind a mask", masked, "ann").await;
    let rows = cluster.on_workers(json!({ "sql": masked }), "ann").await.unwrap();
    assert_eq!((rows.len(), rows[0]["c_phone"].as_str()), (1, Some("***")));
}

#[tokio::test]
async fn external_files_are_shared_out() {
    let cluster = ClusterProcesses::start(&[]);
    let folder = TempDir::new().unwrap();
    let files = folder.path().join("numbers");
    std::fs::create_dir(&files).unwrap();
    // So many rows that they are not read in one stream.
    for part in 0..3 {
        let path = files.join(format!("{part}.parquet"));
        let made = format!(
            "COPY (SELECT i, i % 10 AS k, 'text ' || i AS t FROM generate_series({}, {}) s(i)) TO '{}'",
            part * 4_000 + 1,
            (part + 1) * 4_000,
            path.display()
        );
        ask(&cluster.http, &cluster.alone.url, json!({ "sql": made }), None).await.unwrap();
    }
    cluster.execute(&external("numbers", &files)).await;
    let sums = "SELECT k, count(*) AS n, sum(i) AS s, max(t) AS t FROM numbers GROUP BY k ORDER BY k";
    cluster.assert_shared("external files", sums, "boss").await;
}

fn external(name: &str, folder: &Path) -> String {
    format!("CREATE EXTERNAL TABLE {name} STORED AS PARQUET LOCATION '{}/'", folder.display())
}

#[tokio::test]
async fn a_lost_worker_costs_one_attempt() {
    let mut cluster = ClusterProcesses::start(&[]);
    cluster.seed().await;
    let (what, sql) = QUERIES[1];
    cluster.assert_shared(what, sql, "boss").await;
    let here = cluster.on_one_node(json!({ "sql": sql }), "boss").await.unwrap();
    for lost in 0..2 {
        cluster.workers[lost].child.kill().unwrap();
        cluster.workers[lost].child.wait().unwrap();
        let began = Instant::now();
        assert_eq!(cluster.on_workers(json!({ "sql": sql }), "boss").await.unwrap(), here, "{lost}");
        assert!(began.elapsed() < PROMPT, "{:?}", began.elapsed());
    }
    let explained = cluster.explained(sql).await;
    assert!(explained.contains("runs on one node: "), "{explained}");
}

#[tokio::test]
async fn a_worker_killed_in_a_query_is_one_clean_error_or_the_right_rows() {
    let mut cluster = ClusterProcesses::start(&[]);
    cluster.seed().await;
    // Seconds of work, spread over both workers.
    let sql = "SELECT count(*) AS n FROM lineitem a JOIN lineitem b ON a.l_suppkey = b.l_suppkey AND a.l_partkey <> b.l_orderkey";
    let here = cluster.on_one_node(json!({ "sql": sql }), "boss").await.unwrap();
    let ClusterProcesses { workers, coordinator, http, .. } = &mut cluster;
    let asked = ask(http, &coordinator.url, json!({ "sql": sql }), None);
    let killed = async {
        // In the middle of its work, wherever that is.
        tokio::time::sleep(Duration::from_millis(150)).await;
        workers[1].child.kill().unwrap();
    };
    match tokio::time::timeout(Duration::from_secs(60), async { tokio::join!(asked, killed).0 }).await.expect("no hang")
    {
        Ok(rows) => assert_eq!(rows, here),
        Err(error) => assert_eq!(error["code"], "worker_lost", "{error}"),
    }
}

#[tokio::test]
async fn a_worker_answers_nobody_without_the_key() {
    let worker = ServerProcess::start(&[("QUERENT_CLUSTER_ROLE", "worker"), ("QUERENT_CLUSTER_KEY", KEY)]);
    let url = worker.url.trim_end_matches('/').to_owned();
    let http = Client::builder().http2_prior_knowledge().build().unwrap();
    for method in ["GetWorkerInfo", "ExecuteTask", "CoordinatorChannel"] {
        let asked =
            http.post(format!("{url}/worker.WorkerService/{method}")).header("content-type", "application/grpc");
        let reply = asked.header("te", "trailers").body(vec![0_u8; 5]).send().await.unwrap();
        // Unauthenticated.
        assert_eq!(reply.headers()["grpc-status"], "16", "{method}");
        let message = reply.headers()["grpc-message"].to_str().unwrap();
        assert!(message.contains("cluster.key"), "{message}");
    }
    let plain = Client::new();
    assert_eq!(
        plain.get(format!("{url}/health")).send().await.unwrap().json::<Value>().await.unwrap()["role"],
        "worker"
    );
    assert!(plain.get(format!("{url}/metrics")).send().await.unwrap().status().is_success());
    let query = plain.post(format!("{url}/v1/query")).json(&json!({ "sql": "SELECT 1" })).send().await.unwrap();
    assert_eq!(query.status().as_u16(), 404);

    // A coordinator with another key does the work by itself, and says why.
    let settings = [
        ("QUERENT_CLUSTER_WORKERS", worker.url.as_str()),
        ("QUERENT_CLUSTER_KEY", "another secret of another cluster"),
        ("QUERENT_CLUSTER_MIN_SCAN_BYTES", "1"),
    ];
    let other = ServerProcess::start(&settings);
    for statement in tables() {
        ask(&plain, &other.url, json!({ "sql": statement }), None).await.unwrap();
    }
    let rows =
        ask(&plain, &other.url, json!({ "sql": "SELECT count(*) AS n FROM orders WHERE o_orderkey > 7" }), None).await;
    assert_eq!(rows.unwrap()[0]["n"], 14_993);
    let explained = json!({ "sql": "EXPLAIN SELECT count(*) AS n FROM orders WHERE o_orderkey > 7" });
    let explained = json!(ask(&plain, &other.url, explained, None).await.unwrap()).to_string();
    assert!(explained.contains("another key than this worker's"), "{explained}");
}
