//! Windows and KQL's own functions on workers.

use serde_json::json;

use super::{ClusterProcesses, ask_kql};

/// Windows that travel; the order of each result is whole.
const WINDOWS: [(&str, &str); 14] = [
    (
        "numbers of rows",
        "SELECT o_orderkey, row_number() OVER (PARTITION BY o_custkey ORDER BY o_orderkey) AS r FROM orders \
         ORDER BY o_orderkey LIMIT 50",
    ),
    (
        "ranks over all rows",
        "SELECT o_orderkey, rank() OVER (ORDER BY o_orderpriority) AS r, dense_rank() OVER (ORDER BY o_orderpriority) AS d \
         FROM orders ORDER BY o_orderkey LIMIT 50",
    ),
    (
        "running sums",
        "SELECT o_orderkey, sum(o_totalprice) OVER (PARTITION BY o_custkey ORDER BY o_orderkey) AS s FROM orders \
         ORDER BY o_orderkey LIMIT 50",
    ),
    (
        "rows before and after",
        "SELECT o_orderkey, lag(o_orderkey) OVER (PARTITION BY o_custkey ORDER BY o_orderkey) AS b, \
         lead(o_orderkey, 2, -1) OVER (PARTITION BY o_custkey ORDER BY o_orderkey) AS a FROM orders \
         ORDER BY o_orderkey LIMIT 50",
    ),
    (
        "frames that slide",
        "SELECT o_orderkey, avg(o_totalprice) OVER (PARTITION BY o_custkey ORDER BY o_orderkey \
         ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS v FROM orders ORDER BY o_orderkey LIMIT 50",
    ),
    (
        "whole partitions",
        "SELECT o_orderkey, count(*) OVER (PARTITION BY o_orderpriority) AS n, \
         max(o_totalprice) OVER (PARTITION BY o_orderpriority) AS m FROM orders ORDER BY o_orderkey LIMIT 50",
    ),
    (
        "texts of windows",
        "SELECT o_orderkey, max(o_comment) OVER (PARTITION BY o_custkey ORDER BY o_orderkey) AS m, \
         first_value(o_comment) OVER (PARTITION BY o_orderpriority ORDER BY o_orderkey ROWS BETWEEN UNBOUNDED PRECEDING \
         AND UNBOUNDED FOLLOWING) AS f FROM orders ORDER BY o_orderkey LIMIT 50",
    ),
    (
        "the first of each",
        "SELECT o_custkey, o_orderkey FROM (SELECT o_custkey, o_orderkey, row_number() OVER (PARTITION BY o_custkey \
         ORDER BY o_totalprice DESC, o_orderkey) AS r FROM orders) o WHERE r = 1 ORDER BY o_custkey LIMIT 50",
    ),
    (
        "an aggregate over a window",
        "SELECT o_orderpriority, sum(d) AS s FROM (SELECT o_orderpriority, o_orderkey - lag(o_orderkey) OVER \
         (PARTITION BY o_orderpriority ORDER BY o_orderkey) AS d FROM orders) o GROUP BY o_orderpriority ORDER BY 1",
    ),
    (
        "a key of one value",
        "SELECT o_orderkey, row_number() OVER (PARTITION BY o_orderpriority ORDER BY o_orderkey) AS r, \
         sum(o_custkey) OVER (PARTITION BY o_custkey, o_orderpriority ORDER BY o_orderkey) AS s FROM orders \
         WHERE o_orderpriority = '3-PRIO' ORDER BY o_orderkey LIMIT 50",
    ),
    (
        "a key that is written down",
        "SELECT o_orderkey, row_number() OVER (PARTITION BY x ORDER BY o_orderkey DESC) AS r FROM \
         (SELECT o_orderkey, 7 AS x FROM orders) o ORDER BY o_orderkey LIMIT 50",
    ),
    (
        "one key by two names",
        "SELECT o_orderkey, p, rank() OVER (PARTITION BY a ORDER BY o_custkey) AS r, max(o_custkey) OVER (PARTITION BY a, p) \
         AS m, sum(o_custkey) OVER (PARTITION BY p ORDER BY o_orderkey DESC) AS s FROM (SELECT o_orderkey, o_custkey, \
         o_orderpriority AS p, o_orderpriority AS a FROM orders) o ORDER BY o_orderkey LIMIT 50",
    ),
    (
        "both sides of a join",
        "SELECT o_orderkey, sum(o_totalprice) OVER (PARTITION BY c_custkey, o_custkey ORDER BY o_orderkey) AS s \
         FROM customer JOIN orders ON c_custkey = o_custkey ORDER BY o_orderkey LIMIT 50",
    ),
    (
        "whole partitions of one value",
        "SELECT o_orderkey, max(o_totalprice) OVER (PARTITION BY o_orderpriority) AS m FROM orders \
         WHERE o_orderpriority = '3-PRIO' ORDER BY o_orderkey LIMIT 50",
    ),
];

/// Windows of which a part would be left behind.
const STAY: [(&str, &str); 2] = [
    (
        "a filter",
        "SELECT o_orderkey, sum(o_orderkey) FILTER (WHERE o_orderkey % 2 = 0) OVER (PARTITION BY o_custkey \
         ORDER BY o_orderkey) AS s FROM orders ORDER BY o_orderkey LIMIT 50",
    ),
    (
        "nulls that are left out",
        "SELECT o_orderkey, lag(nullif(o_orderkey % 3, 0)) IGNORE NULLS OVER (PARTITION BY o_custkey \
         ORDER BY o_orderkey) AS b FROM orders ORDER BY o_orderkey LIMIT 50",
    ),
];

/// Queries in KQL with functions, operators and aggregates that SQL does not have.
const KQL: [&str; 10] = [
    "orders | where o_orderpriority startswith '1' | summarize n = count() by bin(o_orderdate, 365d) | order by o_orderdate asc",
    "orders | extend t = strcat(o_comment, '!', tostring(o_orderkey)) | summarize m = max(t), l = sum(strlen(t))",
    "orders | summarize arg_max(o_totalprice, o_orderkey) by o_orderpriority | order by o_orderpriority asc",
    "orders | summarize p = percentile(o_orderkey, 90), d = dcount(o_custkey) by o_orderpriority | order by o_orderpriority asc",
    "orders | parse o_comment with 'comment ' number:long | summarize s = sum(number), n = countif(number > 50)",
    "orders | where o_comment has '7' or o_comment matches regex @'9\\d' | summarize n = count() by o_comment | order by o_comment asc",
    "orders | extend y = datetime_part('year', o_orderdate), b = pack('k', o_custkey) | summarize n = count(), k = max(tolong(b.k)) by y | order by y asc",
    "orders | partition by o_orderpriority (top 2 by o_orderkey desc) | project o_orderkey, o_custkey | order by o_orderkey asc",
    "orders | order by o_orderkey asc | extend r = row_number() | where r % 1000 == 1 | project o_orderkey, r",
    "customer | join kind=inner orders on $left.c_custkey == $right.o_custkey | summarize n = count(), s = sum(iff(o_orderkey > 100, 1, 0)) by c_mktsegment | order by c_mktsegment asc",
];

#[tokio::test]
async fn windows_run_on_workers() {
    let cluster = ClusterProcesses::start(&[]);
    cluster.seed().await;
    for (what, sql) in WINDOWS {
        cluster.assert_shared(what, sql, "boss").await;
    }
    for (what, sql) in STAY {
        let placement = cluster.assert_same(what, sql, "boss").await;
        assert!(placement.contains("runs on one node: "), "{what}: {placement}");
    }
    let analyzed = json!({ "sql": format!("EXPLAIN ANALYZE {}", WINDOWS[2].1) });
    let analyzed = json!(cluster.on_workers(analyzed, "boss").await.unwrap()).to_string();
    assert!(analyzed.contains("WindowAggExec") && analyzed.contains("Stage 1"), "{analyzed}");
}

/// Casts that SQL does otherwise than Arrow are functions that are planned for a type; EXTRACT is one that has no name of its own.
const CASTS: [(&str, &str); 6] = [
    (
        "parts of times",
        "SELECT extract(year FROM o_orderdate) AS y, date_part('month', o_orderdate) AS m, count(*) AS n FROM orders \
         GROUP BY 1, 2 ORDER BY 1, 2",
    ),
    (
        "texts as numbers",
        "SELECT CAST(substring(o_orderpriority, 1, 1) AS INTEGER) AS p, sum(CAST(substring(o_comment, 9) AS DOUBLE)) AS s, \
         max(TRY_CAST(o_comment AS DECIMAL(9, 2))) AS d FROM orders GROUP BY 1 ORDER BY 1",
    ),
    (
        "fractions as integers",
        "SELECT o_orderpriority, sum(CAST(o_totalprice AS BIGINT)) AS s FROM orders GROUP BY 1 ORDER BY 1",
    ),
    (
        "texts as times",
        "SELECT CAST('1992-0' || (1 + o_orderkey % 9) || '-01' AS DATE) AS d, count(*) AS n FROM orders GROUP BY 1 ORDER BY 1",
    ),
    (
        "texts as lists",
        "SELECT max(CAST('[' || o_orderkey || ', 2]' AS INTEGER[])) AS l FROM orders WHERE o_orderkey > 7",
    ),
    (
        "a condition",
        "SELECT count(*) AS n FROM orders WHERE CAST(substring(o_comment, 9) AS INTEGER) BETWEEN 10 AND 20",
    ),
];

#[tokio::test]
async fn casts_run_on_workers() {
    let cluster = ClusterProcesses::start(&[]);
    cluster.seed().await;
    for (what, sql) in CASTS {
        cluster.assert_shared(what, sql, "boss").await;
    }
    let unfit = "SELECT sum(CAST(o_comment AS INTEGER)) AS s FROM orders";
    let error = cluster.on_workers(json!({ "sql": unfit }), "boss").await.unwrap_err();
    assert_eq!(error["code"], "invalid_value", "{error}");
}

#[tokio::test]
async fn the_functions_of_kql_run_on_workers() {
    let cluster = ClusterProcesses::start(&[]);
    cluster.seed().await;
    for kql in KQL {
        let here = ask_kql(&cluster.http, &cluster.alone.url, kql).await;
        assert!(!here.is_empty(), "{kql}");
        assert_eq!(ask_kql(&cluster.http, &cluster.coordinator.url, kql).await, here, "{kql}");
        let plan = format!(".show queryplan <| {kql}");
        let plan = ask_kql(&cluster.http, &cluster.coordinator.url, &plan).await;
        assert!(plan.contains("runs on 2 workers"), "{kql}: {plan}");
    }
}
