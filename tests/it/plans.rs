//! The plans of TPC-H's queries, as a snapshot: joins in their order and kind, aggregates and scans. The tables have the rows, keys and
//! distinct values of scale 0.01, made up by arithmetic. A change of the snapshot is a change of what these queries cost.

use std::fmt::Write as _;
use std::path::Path;

use querent_engine::{Engine, EngineOptions};

use crate::sql::{admin, rows};

const TABLES: [(&str, &str); 8] = [
    (
        "region",
        "SELECT value AS r_regionkey, CASE value WHEN 0 THEN 'AFRICA' WHEN 1 THEN 'AMERICA' WHEN 2 THEN 'ASIA' \
         WHEN 3 THEN 'EUROPE' ELSE 'MIDDLE EAST' END AS r_name, 'comment ' || value AS r_comment \
         FROM generate_series(0, 4) AS t(value)",
    ),
    (
        "nation",
        "SELECT value AS n_nationkey, CASE value WHEN 6 THEN 'FRANCE' WHEN 7 THEN 'GERMANY' WHEN 2 THEN 'BRAZIL' \
         WHEN 20 THEN 'SAUDI ARABIA' WHEN 3 THEN 'CANADA' ELSE 'NATION ' || value END AS n_name, \
         value % 5 AS n_regionkey, 'comment ' || value AS n_comment FROM generate_series(0, 24) AS t(value)",
    ),
    (
        "supplier",
        "SELECT value AS s_suppkey, 'Supplier#' || value AS s_name, 'address ' || value AS s_address, \
         value % 25 AS s_nationkey, (10 + value % 25) || '-555' AS s_phone, \
         CAST(value * 37 % 11000 - 999 AS DECIMAL(15, 2)) AS s_acctbal, 'comment ' || value AS s_comment \
         FROM generate_series(1, 100) AS t(value)",
    ),
    (
        "customer",
        "SELECT value AS c_custkey, 'Customer#' || value AS c_name, 'address ' || value AS c_address, \
         value % 25 AS c_nationkey, (10 + value % 25) || '-555' AS c_phone, \
         CAST(value * 37 % 11000 - 999 AS DECIMAL(15, 2)) AS c_acctbal, CASE value % 5 WHEN 0 THEN 'BUILDING' \
         WHEN 1 THEN 'AUTOMOBILE' WHEN 2 THEN 'MACHINERY' WHEN 3 THEN 'HOUSEHOLD' ELSE 'FURNITURE' END AS c_mktsegment, \
         'comment ' || value AS c_comment FROM generate_series(1, 1500) AS t(value)",
    ),
    (
        "part",
        "SELECT value AS p_partkey, 'green part ' || value AS p_name, 'Manufacturer#' || value % 5 AS p_mfgr, \
         'Brand#' || value % 25 AS p_brand, 'ECONOMY ANODIZED ' || value % 150 AS p_type, \
         CAST(value % 50 + 1 AS INTEGER) AS p_size, 'JUMBO ' || value % 40 AS p_container, \
         CAST(900 + value % 1000 AS DECIMAL(15, 2)) AS p_retailprice, 'comment ' || value AS p_comment \
         FROM generate_series(1, 2000) AS t(value)",
    ),
    (
        "partsupp",
        "SELECT value / 4 + 1 AS ps_partkey, (value * 7 + value / 4) % 100 + 1 AS ps_suppkey, \
         CAST(value % 9999 AS INTEGER) AS ps_availqty, CAST(value % 1000 AS DECIMAL(15, 2)) AS ps_supplycost, \
         'comment ' || value AS ps_comment FROM generate_series(0, 7999) AS t(value)",
    ),
    (
        "orders",
        "SELECT value * 4 AS o_orderkey, value * 31 % 1500 + 1 AS o_custkey, CASE value % 3 WHEN 0 THEN 'O' WHEN 1 THEN 'F' \
         ELSE 'P' END AS o_orderstatus, CAST(value % 400000 AS DECIMAL(15, 2)) AS o_totalprice, \
         DATE '1992-01-01' + CAST(value * 7 % 2406 AS INTEGER) AS o_orderdate, 'priority ' || value % 5 AS o_orderpriority, \
         'Clerk#' || value % 10 AS o_clerk, CAST(0 AS INTEGER) AS o_shippriority, 'comment ' || value AS o_comment \
         FROM generate_series(1, 15000) AS t(value)",
    ),
    (
        "lineitem",
        "SELECT (value / 4 + 1) * 4 AS l_orderkey, value * 13 % 2000 + 1 AS l_partkey, value * 17 % 100 + 1 AS l_suppkey, \
         CAST(value % 4 + 1 AS INTEGER) AS l_linenumber, CAST(value % 50 + 1 AS DECIMAL(15, 2)) AS l_quantity, \
         CAST(900 + value % 100000 AS DECIMAL(15, 2)) AS l_extendedprice, CAST((value % 11) / 100.0 AS DECIMAL(15, 2)) AS l_discount, \
         CAST((value % 9) / 100.0 AS DECIMAL(15, 2)) AS l_tax, CASE value % 3 WHEN 0 THEN 'R' WHEN 1 THEN 'A' ELSE 'N' END AS l_returnflag, \
         CASE value % 2 WHEN 0 THEN 'O' ELSE 'F' END AS l_linestatus, \
         DATE '1992-01-03' + CAST(value * 7 % 2520 AS INTEGER) AS l_shipdate, \
         DATE '1992-02-01' + CAST(value * 7 % 2466 AS INTEGER) AS l_commitdate, \
         DATE '1992-01-05' + CAST(value * 7 % 2550 AS INTEGER) AS l_receiptdate, \
         'DELIVER ' || value % 4 AS l_shipinstruct, CASE value % 7 WHEN 0 THEN 'AIR' WHEN 1 THEN 'MAIL' WHEN 2 THEN 'SHIP' \
         ELSE 'RAIL' END AS l_shipmode, 'comment ' || value AS l_comment FROM generate_series(0, 59999) AS t(value)",
    ),
];

#[tokio::test(flavor = "multi_thread")]
async fn tpc_h_is_planned_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let partitions = ("datafusion.execution.target_partitions".to_owned(), "2".to_owned());
    let options =
        EngineOptions { datafusion_settings: vec![partitions], ..EngineOptions::new(folder.path().join("data")) };
    let engine = Engine::open_with(options).await.unwrap();
    let session = admin(&engine);
    for (name, query) in TABLES {
        rows(&session, &format!("CREATE TABLE {name} AS {query}")).await.unwrap();
    }
    let queries = Path::new(env!("CARGO_MANIFEST_DIR")).join("../benches/queries/tpch");
    let mut plans = String::new();
    for number in 1..=22 {
        let query = std::fs::read_to_string(queries.join(format!("q{number:02}.sql"))).unwrap();
        let explained = rows(&session, &format!("EXPLAIN {query}")).await.unwrap();
        let physical = explained.iter().find(|row| row[0] == "physical_plan").unwrap();
        writeln!(plans, "q{number:02}").unwrap();
        plans.push_str(&shape(&physical[1]));
    }
    insta::assert_snapshot!("tpch_plans", plans);
}

/// Returns the operators of a plan that decide what it costs, each below the one that reads it.
fn shape(plan: &str) -> String {
    let mut shown = String::new();
    // How deep each operator above is in the plan, of those that are shown.
    let mut above: Vec<usize> = Vec::new();
    for line in plan.lines() {
        let operator = line.trim_start();
        let Some(said) = operator_of(operator) else { continue };
        let depth = line.len() - operator.len();
        above.retain(|one| *one < depth);
        writeln!(shown, "{:width$}{said}", "", width = 2 * (above.len() + 1)).unwrap();
        above.push(depth);
    }
    shown
}

/// Returns what is shown of an operator; `None` where it only moves, cuts or names columns.
fn operator_of(line: &str) -> Option<String> {
    let (name, said) = line.split_once(": ").unwrap_or((line, ""));
    match name {
        "DataSourceExec" => {
            let table = said.split("/data/default/").nth(1)?.split('/').next()?;
            let filtered = if said.contains("DynamicFilter") { ", filtered by a join" } else { "" };
            Some(format!("{table}{filtered}"))
        }
        "AggregateExec" => Some(format!("{name} {}", said.split(", aggr=").next()?)),
        _ if name.ends_with("JoinExec") => Some(format!("{name} {}", said.split(", projection=").next()?)),
        "SortExec" | "SortPreservingMergeExec" => Some(format!("{name} {}", said.split(", preserve").next()?)),
        _ => None,
    }
}
