//! What plans are thought to give: distinct values that ANALYZE counts, and estimates beside what was measured.

use querent_catalog::{Principal, Role};
use querent_engine::{Limits, Session};

use crate::sql::{admin, engine, rows};

/// Returns the line of the join in `EXPLAIN ANALYZE` of a query.
async fn join_line(session: &Session, query: &str) -> String {
    let plan = rows(session, &format!("EXPLAIN ANALYZE {query}")).await.unwrap();
    assert_eq!(plan[0][0], "Plan with Metrics");
    let line = plan[0][1].lines().find(|line| line.contains("HashJoinExec"));
    line.unwrap_or_else(|| panic!("{plan:?}")).to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn analyze_counts_distinct_values_for_estimates() {
    let (_folder, engine) = engine().await;
    let session = admin(&engine);
    for made in [
        "CREATE TABLE visits AS SELECT value AS id, 'page ' || (value % 7) AS page, [value] AS parts, value * 1.5 AS weight \
         FROM generate_series(1, 1000) AS t(value)",
        "CREATE TABLE pages AS SELECT 'page ' || value AS page FROM generate_series(0, 13) AS t(value)",
    ] {
        rows(&session, made).await.unwrap();
    }
    let query = "SELECT count(*), min(id) FROM visits JOIN pages USING (page)";
    let before = join_line(&session, query).await;
    assert!(before.contains("output_rows=1.0"), "{before}");
    assert!(!before.contains("estimated_rows=1000,"), "{before}");

    for analyze in [
        "ANALYZE visits",
        "ANALYZE TABLE \"default\".pages COMPUTE STATISTICS FOR COLUMNS page",
        "ANALYZE pages (PAGE)",
    ] {
        assert_eq!(rows(&session, analyze).await.unwrap(), Vec::<Vec<String>>::new(), "{analyze}");
    }
    // 1,000 times 14 rows, of 14 values at most.
    let after = join_line(&session, query).await;
    assert!(after.contains("estimated_rows=1000,"), "{after}");
    // The rows stay what they are, and so does the estimate of a column of few values when there are more of them.
    rows(&session, "INSERT INTO visits SELECT id + 1000, page, parts, weight FROM visits").await.unwrap();
    let more = join_line(&session, query).await;
    assert!(more.contains("estimated_rows=2000,"), "{more}");
    assert_eq!(rows(&session, query).await.unwrap(), [["2000", "1"]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn analyze_is_for_those_who_may_change_a_managed_table() {
    let (_folder, engine) = engine().await;
    let session = admin(&engine);
    for made in ["CREATE TABLE t AS SELECT 1 AS a", "CREATE VIEW v AS SELECT a FROM t"] {
        rows(&session, made).await.unwrap();
    }
    let reader = engine.session(Principal::new("reader", Role::Read), Limits::default());
    for (session, statement, code) in [
        (&session, "ANALYZE", "unsupported"),
        (&session, "ANALYZE missing", "table_not_found"),
        (&session, "ANALYZE t (b)", "column_not_found"),
        (&session, "ANALYZE v", "not_allowed"),
        (&session, "ANALYZE t NOSCAN", "unsupported"),
        (&reader, "ANALYZE t", "not_allowed"),
        (&reader, "EXPLAIN ANALYZE ANALYZE t", "unsupported"),
    ] {
        let error = rows(session, statement).await.unwrap_err();
        assert_eq!(error.code(), code, "{statement}: {error}");
    }
}
