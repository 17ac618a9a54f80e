//! Walks over edges: the KQL operator and the SQL table function. The agent's tool is in `agent.rs`.

use std::time::{Duration, Instant};

use querent_catalog::Principal;
use querent_engine::{Limits, Session};

use super::{cells, code_of};
use crate::sql::{admin, engine, rows};

/// Calls between services: `src`, `dst`, `type`, and a number for each end.
async fn calls(session: &Session) {
    let sql = "CREATE TABLE calls AS SELECT * FROM (VALUES
        ('api', 'billing', 'http', 1, 2), ('billing', 'ledger', 'grpc', 2, 3), ('ledger', 'audit', 'grpc', 3, 4),
        ('api', 'ledger', 'http', 1, 3), ('audit', 'api', 'cron', 4, 1)) AS c(src, dst, type, \"from id\", to_id)";
    rows(session, sql).await.unwrap();
}

fn pairs(rows: Vec<Vec<String>>) -> Vec<String> {
    rows.into_iter().map(|row| row.join("@")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_node_is_reached_once() {
    let (_folder, engine) = engine().await;
    let session = admin(&engine);
    calls(&session).await;
    for (walk, expected) in [
        ("calls | graph-traverse source 'api' from src to dst max-hops 5", "api@0 billing@1 ledger@1 audit@2"),
        (
            "calls | graph-traverse source 'audit' from src to dst max-hops 5 direction backward",
            "audit@0 ledger@1 api@2 billing@2",
        ),
        (
            "calls | graph-traverse source 'ledger' from src to dst max-hops 1 direction both",
            "ledger@0 api@1 audit@1 billing@1",
        ),
        (
            "calls | graph-traverse source ('billing', 'audit') from src to dst max-hops 1",
            "audit@0 billing@0 api@1 ledger@1",
        ),
        (
            "let s = dynamic(['billing']); calls | graph-traverse source s from src to dst max-hops 1",
            "billing@0 ledger@1",
        ),
        (
            "calls | graph-traverse source 'api' from src to dst max-hops 5 direction forward edge-type 'http'",
            "api@0 billing@1 ledger@1",
        ),
        (
            "calls | graph-traverse source 'api' from src to dst max-hops 5 edge-type ('http', 'cron')",
            "api@0 billing@1 ledger@1",
        ),
        // What is filtered before is not walked over.
        ("calls | where type != 'http' | graph-traverse source 'audit' from src to dst max-hops 9", "audit@0 api@1"),
        ("calls | graph-traverse source 1 from ['from id'] to to_id max-hops 1", "1@0 2@1 3@1"),
        ("calls | where false | graph-traverse source 'x' from src to dst max-hops 3", "x@0"),
    ] {
        let found = pairs(
            cells(
                &session,
                &format!(
                    "{walk} | sort by depth asc, tostring(column_ifexists('dst', column_ifexists('to_id', ''))) asc"
                ),
            )
            .await,
        );
        assert_eq!(found.join(" "), expected, "{walk}");
    }
    let joined = "calls | graph-traverse source 'api' from src to dst max-hops 9 | join kind=inner (calls) on $left.dst == $right.src | summarize count() by depth | sort by depth asc";
    assert_eq!(pairs(cells(&session, joined).await), ["0@2", "1@2", "2@1"]);
    for (walk, code) in [
        ("calls | graph-traverse source 'api' from nope to dst max-hops 5", "kql_unknown_column"),
        ("calls | graph-traverse source 'api' from src to to_id max-hops 5", "kql_type_mismatch"),
        ("calls | graph-traverse source 'api' from src to dst max-hops -1", "kql_unexpected"),
        (
            "calls | project src, dst | graph-traverse source 'api' from src to dst max-hops 5 edge-type 'x'",
            "kql_unknown_column",
        ),
    ] {
        assert_eq!(code_of(&session, walk).await, code, "{walk}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sql_has_shortest_paths_and_components() {
    let (_folder, engine) = engine().await;
    let session = admin(&engine);
    calls(&session).await;
    for (from, order, expected) in [
        ("shortest_path(calls, 'src', 'dst', 'api', 'audit')", "step", "api@0 ledger@1 audit@2"),
        ("shortest_path('default.calls', 'src', 'dst', 'billing', 'api', 1, 'both') p", "step", "billing@0 api@1"),
        ("shortest_path(calls, 'src', 'dst', 'billing', 'api', 1)", "step", ""),
        ("shortest_path(calls, 'from id', to_id, 2, 1)", "step", "2@0 3@1 4@2 1@3"),
        ("components(calls, 'src', 'dst')", "node", "api@0 audit@0 billing@0 ledger@0"),
        (
            "Components((SELECT * FROM calls WHERE type = 'grpc'), 'src', 'dst', 'strong')",
            "node",
            "audit@2 billing@0 ledger@1",
        ),
    ] {
        let found = rows(&session, &format!("SELECT * FROM {from} ORDER BY {order}")).await.unwrap();
        assert_eq!(pairs(found).join(" "), expected, "{from}");
    }
    for (sql, code) in [
        ("SELECT * FROM shortest_path(calls, 'src', 'dst', 'api')", "sql_plan_error"),
        ("SELECT * FROM shortest_path(nowhere, 'src', 'dst', 'api', 'audit')", "table_not_found"),
        ("SELECT * FROM components(calls, 'src', 'dst', 'odd')", "sql_plan_error"),
        ("SELECT * FROM components(calls, 'src')", "sql_plan_error"),
    ] {
        let error = rows(&session, sql).await.unwrap_err();
        assert_eq!(error.code(), code, "{sql}: {error}");
    }
    let stranger =
        engine.session(Principal::new("eve", querent_catalog::Role::Read).with_databases(["other"]), Limits::default());
    let error = rows(&stranger, "SELECT * FROM components(\"default\".calls, 'src', 'dst')").await.unwrap_err();
    assert!(["table_not_found", "database_not_found"].contains(&error.code()), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn sql_has_the_same_walk_as_a_table_function() {
    let (_folder, engine) = engine().await;
    let session = admin(&engine);
    calls(&session).await;
    for (from, expected) in [
        ("graph_traverse(calls, 'src', 'dst', 'api')", "api@0 billing@1 ledger@1 audit@2"),
        ("graph_traverse('default.calls', 'src', 'dst', 'api', 1)", "api@0 billing@1 ledger@1"),
        (
            "GRAPH_TRAVERSE(default.calls, 'src', 'dst', ARRAY['ledger'], 1, 'both') AS g",
            "ledger@0 api@1 audit@1 billing@1",
        ),
        ("graph_traverse((SELECT * FROM calls WHERE type <> 'http'), 'src', 'dst', 'audit', 9)", "audit@0 api@1"),
        ("graph_traverse(calls, 'src', 'dst', 'api', 5, 'forward', 'type', ARRAY['http'])", "api@0 billing@1 ledger@1"),
    ] {
        let found = rows(&session, &format!("SELECT * FROM {from} ORDER BY depth, dst")).await.unwrap();
        assert_eq!(pairs(found).join(" "), expected, "{from}");
    }
    rows(&session, "CREATE VIEW reached AS SELECT dst, depth FROM graph_traverse(calls, 'src', 'dst', 'api')")
        .await
        .unwrap();
    assert_eq!(rows(&session, "SELECT count(*) FROM reached").await.unwrap(), [["4"]]);
    for (sql, code) in [
        ("SELECT * FROM graph_traverse(calls, 'src')", "sql_plan_error"),
        ("SELECT * FROM graph_traverse(nowhere, 'src', 'dst', 'api')", "table_not_found"),
        ("SELECT * FROM graph_traverse(calls, 'nope', 'dst', 'api')", "column_not_found"),
        ("SELECT * FROM graph_traverse(calls, 'src', 'dst', 'api', 1, 'sideways')", "sql_plan_error"),
    ] {
        let error = rows(&session, sql).await.unwrap_err();
        assert_eq!(error.code(), code, "{sql}: {error}");
    }
    // The table behind the function is judged as any other is.
    rows(&session, "CREATE DATABASE hidden").await.unwrap();
    rows(&session, "CREATE TABLE hidden.e AS SELECT 1 AS a, 2 AS b").await.unwrap();
    let reader = Principal::new("reader", querent_catalog::Role::Read).with_databases(["default"]);
    let reader = engine.session(reader, Limits::default());
    let error = rows(&reader, "SELECT * FROM graph_traverse(hidden.e, 'a', 'b', 1)").await.unwrap_err();
    assert_eq!(error.code(), "database_not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_walk_is_quick_and_its_memory_bounded() {
    let (_folder, engine) = engine().await;
    let session = admin(&engine);
    // A clique of 20, and a chain of 100,000.
    let clique = "let n = range i from 1 to 20 step 1 | extend k = 1; n | join kind=inner (n) on k | where i != i1";
    let started = Instant::now();
    let walked = cells(
        &session,
        &format!("{clique} | graph-traverse source 1 from i to i1 max-hops 20 | summarize count(), max(depth)"),
    )
    .await;
    assert_eq!(walked, [["20", "1"]]);
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
    let chain = "range a from 1 to 100000 step 1 | extend b = a + 1 | graph-traverse source 1 from a to b max-hops 1000000 | summarize max(depth)";
    assert_eq!(cells(&session, chain).await, [["100000"]]);
    let small = engine.session(Principal::local_admin(), Limits { memory_bytes: 4 << 20, ..Limits::default() });
    assert_eq!(code_of(&small, chain).await, "memory_exceeded");
}
