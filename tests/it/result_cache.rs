//! Rows of queries that were answered before: given again to the same caller while nothing has changed, and to nobody else.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use futures::TryStreamExt;
use parquet::arrow::ArrowWriter;
use querent_catalog::audit::AuditRecord;
use querent_catalog::{Principal, Role};
use querent_engine::{Engine, EngineOptions, Limits, QueryStats, ScalarValue, Session};
use querent_flight::config::ByteSize;
use querent_tests::{TestServer, TestSettings};
use serde_json::json;
use tempfile::TempDir;

use crate::duckdb::duckdb;
use crate::flight_sql::{Raw, decode, ticket_of};
use crate::policies::{caller, run};
use crate::sql::{admin, cells};

const SETUP: [&str; 2] = [
    "CREATE TABLE t AS SELECT value AS a, 'word ' || value AS c FROM generate_series(1, 500) AS s(value)",
    "CREATE VIEW v AS SELECT a FROM t WHERE a > 10",
];

async fn engine_with(bytes: usize) -> (TempDir, Engine) {
    let folder = tempfile::tempdir().unwrap();
    let options = EngineOptions { result_cache_bytes: bytes, ..EngineOptions::new(folder.path().join("data")) };
    let engine = Engine::open_with(options).await.unwrap();
    (folder, engine)
}

/// Returns a statement's cells, and how it was answered.
async fn answer(session: &Session, sql: &str, values: Vec<ScalarValue>) -> (Vec<Vec<String>>, QueryStats) {
    let stream = session.sql_with_params(sql, values).await.unwrap();
    let schema = stream.schema();
    let (batches, stats) = stream.collect().await.unwrap();
    (cells(&schema, &batches), stats)
}

/// Runs a statement; returns whether its rows came from the cache, after they were compared with `expected`.
async fn is_hit(session: &Session, sql: &str, expected: &[&[&str]]) -> bool {
    let (rows, stats) = answer(session, sql, Vec::new()).await;
    assert_eq!(rows, expected, "{sql}");
    stats.from_result_cache
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_statement_is_answered_from_what_was_kept() {
    let (_folder, engine) = engine_with(64 << 20).await;
    let session = admin(&engine);
    run(&session, &SETUP).await;
    for (sql, expected) in [
        ("SELECT count(*), sum(a) FROM t", ["500", "125250"].as_slice()),
        ("SELECT a, c FROM t WHERE a = 7", ["7", "word 7"].as_slice()),
        ("SELECT min(a) FROM v", ["11"].as_slice()),
        ("SELECT x.a, y.c FROM t AS x JOIN t AS y ON x.a = y.a + 499", ["500", "word 1"].as_slice()),
    ] {
        assert!(!is_hit(&session, sql, &[expected]).await, "{sql}");
        for _ in 0..3 {
            assert!(is_hit(&session, sql, &[expected]).await, "{sql}");
        }
    }
    let nothing = "SELECT a FROM t WHERE a = 1000";
    assert!(!is_hit(&session, nothing, &[]).await);
    assert!(is_hit(&session, nothing, &[]).await);
    let state = engine.result_cache();
    assert!(state.bytes > 0 && state.hits >= 13 && state.misses >= 5, "{state:?}");
    assert_eq!(engine.memory_reserved_bytes(), 0, "what is kept is no query's");
    // Values of parameters.
    let sql = "SELECT c FROM t WHERE a = $1";
    for value in [5, 6] {
        let expected = vec![vec![format!("word {value}")]];
        for hit in [false, true, true] {
            let (rows, stats) = answer(&session, sql, vec![ScalarValue::Int64(Some(value))]).await;
            assert_eq!((&rows, stats.from_result_cache), (&expected, hit), "{value}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_kept_unless_it_is_asked_for() {
    let (_folder, engine) = engine_with(0).await;
    let session = admin(&engine);
    run(&session, &SETUP).await;
    for _ in 0..3 {
        assert!(!is_hit(&session, "SELECT count(*) FROM t", &[&["500"]]).await);
    }
    assert_eq!(engine.result_cache().misses, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn any_commit_makes_a_query_run_again() {
    let (folder, engine) = engine_with(64 << 20).await;
    let session = admin(&engine);
    run(&session, &SETUP).await;
    let sql = "SELECT count(*) FROM t";
    let mut count = 500;
    for (statement, added) in [
        ("INSERT INTO t VALUES (501, 'more')", 1),
        ("DELETE FROM t WHERE a = 3", -1),
        ("UPDATE t SET c = 'other' WHERE a = 4", 0),
        ("CREATE TABLE elsewhere (b INT)", 0),
        ("CREATE OR REPLACE VIEW v AS SELECT 1 AS a", 0),
        ("GRANT SELECT ON t TO ROLE analyst", 0),
    ] {
        let before = count.to_string();
        is_hit(&session, sql, &[&[&before]]).await;
        assert!(is_hit(&session, sql, &[&[&before]]).await, "before {statement}");
        run(&session, &[statement]).await;
        count += added;
        let after = count.to_string();
        assert!(!is_hit(&session, sql, &[&[&after]]).await, "after {statement}");
    }
    assert!(is_hit(&session, sql, &[&["500"]]).await);
    // DuckDB commits beside us.
    let insert = "INSERT INTO lake.\"default\".t VALUES (502, 'theirs')";
    duckdb(&folder.path().join("data"), "DATA_INLINING_ROW_LIMIT 0", &[insert]);
    assert!(!is_hit(&session, sql, &[&["501"]]).await);
    assert!(is_hit(&session, sql, &[&["501"]]).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_are_each_callers_own() {
    let (_folder, engine) = engine_with(64 << 20).await;
    let root = admin(&engine);
    run(&root, &SETUP).await;
    let sql = "SELECT count(*) FROM t";
    let (anna, ben) = (caller(&engine, "anna", &["analyst"], Some("EU")), caller(&engine, "ben", &["analyst"], None));
    for session in [&root, &anna, &ben] {
        assert!(!is_hit(session, sql, &[&["500"]]).await);
        assert!(is_hit(session, sql, &[&["500"]]).await);
    }
    // The same name with another attribute, or another database, is another caller.
    assert!(!is_hit(&caller(&engine, "anna", &["analyst"], Some("US")), sql, &[&["500"]]).await);
    let scoped = Principal::new("anna", Role::Read).with_databases(["default"]);
    assert!(!is_hit(&engine.session(scoped, Limits::default()), sql, &[&["500"]]).await);
    // A part of a table is asked for anew each time.
    run(&root, &["GRANT SELECT ON t TO ROLE analyst", "CREATE ROW POLICY few ON t USING (a <= 100) TO ROLE analyst"])
        .await;
    for _ in 0..3 {
        assert!(!is_hit(&anna, sql, &[&["100"]]).await);
    }
    assert!(!is_hit(&root, sql, &[&["500"]]).await);
    assert!(is_hit(&root, sql, &[&["500"]]).await);
    run(&root, &["DROP ROW POLICY few ON t"]).await;
    assert!(!is_hit(&anna, sql, &[&["500"]]).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_limits_and_texts_are_told_apart() {
    let (_folder, engine) = engine_with(64 << 20).await;
    let session = admin(&engine);
    run(&session, &SETUP).await;
    let sql = "SELECT a FROM t ORDER BY a";
    let (rows, stats) = answer(&session, sql, Vec::new()).await;
    assert_eq!((rows.len(), stats.truncated, stats.from_result_cache), (500, false, false));
    assert!(!answer(&session, "SELECT a FROM t  ORDER BY a", Vec::new()).await.1.from_result_cache);
    // Limits hold for rows that were kept.
    for (limits, rows) in [
        (Limits { max_rows: Some(3), ..Limits::default() }, 3..=3),
        (Limits { max_rows: Some(20_000), max_bytes: Some(80), ..Limits::default() }, 1..=10),
    ] {
        let few = engine.session(Principal::local_admin(), limits);
        for _ in 0..3 {
            let (found, stats) = answer(&few, sql, Vec::new()).await;
            assert!(rows.contains(&found.len()) && stats.truncated, "{} rows, {stats:?}", found.len());
        }
    }
    // A plan that one session made and another executes is limited by the latter.
    let few = engine.session(Principal::local_admin(), Limits { max_rows: Some(2), ..Limits::default() });
    for _ in 0..3 {
        let plan = session.authorize_sql(sql).await.unwrap();
        let (batches, _) = few.execute(plan.clone()).await.unwrap().collect().await.unwrap();
        assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 2);
        let (batches, _) = session.execute(plan).await.unwrap().collect().await.unwrap();
        assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 500);
    }
    assert!(answer(&session, sql, Vec::new()).await.1.from_result_cache);
    // What is left early is not kept.
    let left = "SELECT a, c FROM t ORDER BY c";
    drop(session.sql(left).await.unwrap());
    let (rows, _) = answer(&session, left, Vec::new()).await;
    assert_eq!(rows.len(), 500);
}

fn write_numbers(path: &Path, numbers: std::ops::Range<i64>) {
    let column: ArrayRef = Arc::new(Int64Array::from_iter_values(numbers));
    let batch = RecordBatch::try_from_iter([("n", column)]).unwrap();
    let mut writer = ArrowWriter::try_new(File::create(path).unwrap(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_may_change_without_a_commit_is_not_kept() {
    let (folder, engine) = engine_with(64 << 20).await;
    let session = admin(&engine);
    run(&session, &SETUP).await;
    let file = folder.path().join("n.parquet");
    write_numbers(&file, 0..10);
    let create = format!("CREATE EXTERNAL TABLE n STORED AS PARQUET LOCATION '{}'", file.display());
    run(&session, &[&create]).await;
    for sql in [
        "SELECT sum(n) FROM n",
        "SELECT count(*) FROM t JOIN n ON t.a = n.n",
        "SELECT count(*) FROM t WHERE a IN (SELECT n FROM n)",
        "SELECT count(*) FROM t WHERE now() > TIMESTAMPTZ '2020-01-01 00:00:00Z'",
        "SELECT count(*) FROM t WHERE random() < 2",
        "SELECT count(*) FROM system.tables",
        "SELECT count(*) FROM information_schema.tables",
        "SELECT 1",
        "SELECT sum(value) FROM generate_series(1, 10) AS s(value)",
    ] {
        for _ in 0..3 {
            assert!(!answer(&session, sql, Vec::new()).await.1.from_result_cache, "{sql}");
        }
    }
    write_numbers(&file, 0..20);
    assert_eq!(answer(&session, "SELECT sum(n) FROM n", Vec::new()).await.0, [["190"]]);
    // A null is no value to find by.
    for _ in 0..3 {
        let (rows, stats) = answer(&session, "SELECT c FROM t WHERE a = $1", vec![ScalarValue::Int64(None)]).await;
        assert_eq!((rows.len(), stats.from_result_cache), (0, false));
    }
    assert_eq!(engine.result_cache().hits, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn large_results_are_not_kept_and_the_cache_stays_within_its_bounds() {
    let limit = 256 << 10;
    let (_folder, engine) = engine_with(limit).await;
    let session = admin(&engine);
    run(&session, &["CREATE TABLE t AS SELECT value AS a FROM generate_series(1, 50000) AS s(value)"]).await;
    for _ in 0..3 {
        let (rows, stats) = answer(&session, "SELECT a FROM t", Vec::new()).await;
        assert_eq!((rows.len(), stats.from_result_cache), (50_000, false));
    }
    for number in 0..400 {
        answer(&session, &format!("SELECT sum(a) + {number} FROM t"), Vec::new()).await;
        assert!(engine.result_cache().bytes <= limit, "{:?}", engine.result_cache());
    }
    assert!(engine.result_cache().bytes > 0);
    assert!(answer(&session, "SELECT sum(a) + 399 FROM t", Vec::new()).await.1.from_result_cache);
    assert!(!answer(&session, "SELECT sum(a) + 0 FROM t", Vec::new()).await.1.from_result_cache);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_says_so_and_audits_it() {
    let settings = TestSettings::default().tokens("ann-tok:read:ann,boss-tok:admin:boss").change(|settings| {
        settings.audit.enabled = true;
        settings.query.result_cache = ByteSize(16 << 20);
    });
    let server = TestServer::start(settings).await;
    server.execute("CREATE TABLE t AS SELECT 1 AS a, 2 AS b UNION ALL SELECT 3, 4").await;
    let sql = "SELECT sum(a) AS s FROM t WHERE b > 1";
    let mut said = Vec::new();
    for _ in 0..4 {
        let reply = server.post("/v1/query", &json!({ "sql": sql }), Some("ann-tok")).await;
        assert_eq!(reply.lines(), [json!({ "s": 4 })]);
        said.push(reply.header("x-querent-result-cache").to_owned());
    }
    assert_eq!(said, ["", "hit", "hit", "hit"]);
    // Over Flight, for another caller.
    let mut raw = Raw::connect(&server).await.token("boss-tok");
    let mut said = Vec::new();
    for _ in 0..3 {
        let info = raw.plan(sql).await.unwrap();
        let response = raw.client.do_get(raw.request(ticket_of(&info))).await.unwrap();
        said.push(response.metadata().get("x-querent-result-cache").map(|value| value.to_str().unwrap().to_owned()));
        let batches: Vec<_> = response.into_inner().try_collect().await.unwrap();
        let (_, batches) = decode(batches).await;
        assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 1);
    }
    assert_eq!(said, [None, Some("hit".to_owned()), Some("hit".to_owned())]);

    let kept = server.engine().catalog().audit().list(0, 1_000).await.unwrap();
    let same = |record: &AuditRecord| AuditRecord {
        at: chrono::DateTime::UNIX_EPOCH,
        bytes: 0,
        elapsed_ms: 0,
        ..record.clone()
    };
    let traces: Vec<AuditRecord> = kept
        .iter()
        .map(|kept| same(&kept.record))
        .filter(|record| record.statement == sql && record.subject == "ann")
        .collect();
    assert_eq!(traces.len(), 4);
    for trace in &traces {
        assert_eq!(*trace, traces[0]);
    }
    assert_eq!(traces[0].tables, ["default.t"]);
    let metrics = server.get("/metrics", Some("boss-tok")).await.text;
    let hits = metrics.lines().find_map(|line| line.strip_prefix("querent_result_cache_hits_total "));
    assert!(hits.unwrap().parse::<u64>().unwrap() >= 5, "{metrics}");
    for series in ["querent_result_cache_misses_total ", "querent_result_cache_bytes "] {
        assert!(metrics.lines().any(|line| line.starts_with(series)), "{series}: {metrics}");
    }
}
