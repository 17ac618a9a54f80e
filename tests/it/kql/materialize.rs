//! `materialize` is computed once, within the query's memory; what is used once is not stored.

use querent_catalog::Principal;
use querent_engine::Limits;
use querent_tests::wait_until_memory_is_free;

use super::{cells, code_of};
use crate::sql::{admin, engine, rows};

#[tokio::test(flavor = "multi_thread")]
async fn every_use_sees_the_same_rows() {
    let (_folder, engine) = engine().await;
    let session = admin(&engine);
    rows(&session, "CREATE TABLE t AS SELECT * FROM generate_series(1, 1000) AS x(a)").await.unwrap();
    for (kql, expected) in [
        // Each of a thousand random numbers is found again.
        ("let m = materialize(t | extend r = rand()); m | join kind=inner (m) on r | count", "1000"),
        ("let m = materialize(t | extend g = new_guid()); union m, m | summarize dcount(g)", "1000"),
        ("let m = materialize(t | extend r = rand()) | where a <= 10; m | join kind=inner m on r | count", "10"),
        (
            "let f = (n: long) { materialize(t | where a <= n | extend g = new_guid()) }; union f(3), f(4) | summarize dcount(g)",
            "7",
        ),
        ("t | extend g = new_guid() | as hint.materialized=true T | union T | summarize dcount(g)", "1000"),
        ("t | extend r = rand() | as hint.materialized=true T | join kind=inner (T) on r | count", "1000"),
        ("t | extend g = new_guid() | as T | union T | summarize dcount(g)", "2000"),
        // Read while planning, and again by what is planned.
        (
            "let m = materialize(t | extend r = rand()); let most = toscalar(m | summarize max(r)); m | where r == most | count",
            "1",
        ),
        ("let m = materialize(t | extend r = rand()); m | where r in ((m | project r)) | count", "1000"),
        // One of another.
        (
            "let m = materialize(t | extend r = rand()); let n = materialize(m | where a > 500 | extend s = rand()); n | join kind=inner m on r | join kind=inner n on s | count",
            "500",
        ),
        ("let m = materialize(t | sort by a desc); m | extend i = row_number() | where i == 1 | project a", "1000"),
        ("let m = materialize(t); m | count", "1000"),
        ("materialize(t | take 0) | count", "0"),
        ("let m = materialize(t); let unused = materialize(t | extend g = new_guid()); m | summarize max(a)", "1000"),
    ] {
        assert_eq!(cells(&session, kql).await, [[expected]], "{kql}");
    }
    let ordered = "let m = materialize(t | sort by a desc | take 3); m";
    assert_eq!(cells(&session, ordered).await, [["1000"], ["999"], ["998"]]);
    wait_until_memory_is_free(&engine).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_that_are_kept_count_in_the_querys_memory() {
    let (_folder, engine) = engine().await;
    let small = engine.session(Principal::local_admin(), Limits { memory_bytes: 8 << 20, ..Limits::default() });
    let many = "let m = materialize(range x from 1 to 3000000 step 1)";
    assert_eq!(code_of(&small, &format!("{many}; union m, (m | where x < 0) | count")).await, "memory_exceeded");
    assert_eq!(cells(&small, &format!("{many}; m | count")).await, [["3000000"]]);
    wait_until_memory_is_free(&engine).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_of_each_other_are_planned_once_each() {
    let (_folder, engine) = engine().await;
    let mut kql = "let m0 = materialize(print a = 1);".to_owned();
    for level in 1..=40 {
        let below = level - 1;
        kql.push_str(&format!("let m{level} = materialize(union m{below}, m{below} | summarize a = max(a));"));
    }
    kql.push_str("m40");
    assert_eq!(cells(&admin(&engine), &kql).await, [["1"]]);
}
