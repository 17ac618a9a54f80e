//! Subqueries in expressions on workers: one for a value that has several rows is an error there, too, and one in a place
//! for which there is no plan of stages is answered on one node.

use serde_json::json;

use super::ClusterProcesses;

#[tokio::test]
async fn a_subquery_for_a_value_has_one_row_at_most() {
    let cluster = ClusterProcesses::start(&[]);
    cluster.seed().await;
    for several in [
        "SELECT count(*) AS n FROM lineitem WHERE l_orderkey = (SELECT o_orderkey FROM orders WHERE o_orderkey < 5)",
        "SELECT count(*) AS n FROM lineitem WHERE l_orderkey > \
         (SELECT max(o_orderkey) FROM orders WHERE o_orderkey < 5 GROUP BY o_orderkey)",
        "SELECT count(*) AS n FROM lineitem WHERE l_orderkey > (SELECT c_custkey FROM customer LIMIT 2)",
    ] {
        let here = cluster.on_one_node(json!({ "sql": several }), "boss").await.unwrap_err();
        let shared = cluster.on_workers(json!({ "sql": several }), "boss").await.expect_err(several);
        assert_eq!((&shared["code"], &shared["message"]), (&here["code"], &here["message"]), "{several}");
        let placement = cluster.explained(several).await;
        assert!(placement.contains("runs on one node: it has a subquery for one value"), "{placement}");
    }
    let one = "SELECT count(*) AS n FROM lineitem WHERE l_orderkey > (SELECT avg(o_orderkey) FROM orders)";
    cluster.assert_shared(one, one, "boss").await;
    let none = "SELECT count(*) AS n FROM lineitem WHERE l_orderkey > \
                (SELECT max(o_orderkey) FROM orders WHERE o_orderkey < 0)";
    cluster.assert_same("no row", none, "boss").await;
    let one_by_chance = "SELECT count(*) AS n FROM lineitem WHERE l_orderkey = \
                         (SELECT o_orderkey FROM orders WHERE o_orderkey = 18)";
    cluster.assert_same("one row by chance", one_by_chance, "boss").await;
}

#[tokio::test]
async fn subqueries_in_any_place_have_the_rows_of_one_node() {
    let cluster = ClusterProcesses::start(&[]);
    cluster.seed().await;
    for sql in [
        "SELECT o_orderkey IN (SELECT nullif(c_custkey, 5) FROM customer) AS is_in, count(*) AS n FROM orders \
         GROUP BY 1 ORDER BY 1",
        "SELECT o_orderkey IN (SELECT nullif(c_custkey, 5) FROM customer) OR o_orderkey % 2 = 0 AS is_in, \
         count(*) AS n FROM orders GROUP BY 1 ORDER BY 1",
        "SELECT sum(CASE WHEN o_custkey IN (SELECT nullif(c_custkey, 5) FROM customer) THEN 1 ELSE 0 END) AS n \
         FROM orders",
        "SELECT o_orderkey, (SELECT max(c_custkey) FROM customer) AS m FROM orders WHERE o_orderkey < 5 \
         ORDER BY (SELECT count(*) FROM customer), o_orderkey",
    ] {
        cluster.assert_same(sql, sql, "boss").await;
    }
}
