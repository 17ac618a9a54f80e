//! Old snapshots are forgotten with the files that only they have; what is newer stays, and DuckDB reads it.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use querent_catalog::ExpiredSnapshots;
use querent_engine::{Engine, EngineOptions, Session};
use querent_tests::{PostgresProcess, TestServer, TestSettings};
use serde_json::json;

use crate::duckdb::duckdb;
use crate::lake::sqlite;
use crate::maintenance::parquet_files;
use crate::sql::{admin, engine, rows};

/// Forgets what was superseded before a time.
async fn expire(engine: &Engine, before: DateTime<Utc>) -> ExpiredSnapshots {
    engine.expire_snapshots(before, Duration::ZERO).await.unwrap().expect("nobody else is at it")
}

/// Makes tables with every kind of rows that a newer snapshot supersedes.
async fn change_tables(session: &Session) {
    for statement in [
        "CREATE TABLE t (k INT, name VARCHAR)",
        "INSERT INTO t SELECT value, 'n' || value FROM generate_series(1, 100) AS s(value)",
        "INSERT INTO t SELECT value, 'n' || value FROM generate_series(101, 200) AS s(value)",
        "DELETE FROM t WHERE k % 10 = 0",
        "DELETE FROM t WHERE k % 10 = 1",
        "ALTER TABLE t RENAME TO u",
        "COMMENT ON TABLE u IS 'first'",
        "COMMENT ON TABLE u IS 'second'",
        "CREATE TABLE dropped AS SELECT 1 AS a",
        "CREATE VIEW v AS SELECT count(*) AS n FROM u",
        "CREATE VIEW w AS SELECT 1 AS one",
        "DROP VIEW w",
        "DROP TABLE dropped",
        "CREATE DATABASE gone",
        "CREATE TABLE gone.t AS SELECT 2 AS a",
        "DROP DATABASE gone CASCADE",
        "OPTIMIZE u",
    ] {
        rows(session, statement).await.unwrap_or_else(|error| panic!("{statement}: {error}"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn superseded_files_go_and_rows_stay() {
    let (lake, engine) = engine().await;
    let folder = lake.path().join("data");
    let session = admin(&engine);
    change_tables(&session).await;
    // Rows that DuckDB keeps in the catalog, of a table that is there and of one that is not.
    duckdb(
        &folder,
        "",
        &[
            "CREATE TABLE lake.\"default\".small (a INT)",
            "INSERT INTO lake.\"default\".small VALUES (1), (2)",
            "DELETE FROM lake.\"default\".small WHERE a = 1",
            "DELETE FROM lake.\"default\".u WHERE k = 2",
            "CREATE TABLE lake.\"default\".small_gone (a INT)",
            "INSERT INTO lake.\"default\".small_gone VALUES (1)",
            "DROP TABLE lake.\"default\".small_gone",
        ],
    );
    let read = "SELECT count(*), sum(k), (SELECT n FROM v), (SELECT sum(a) FROM small) FROM u";
    let before = rows(&session, read).await.unwrap();
    let files = parquet_files(&folder).len();
    assert!(files > 5, "{files}");

    // What is not superseded yet stays, and so does all of it before the first time.
    assert_eq!(expire(&engine, DateTime::from_timestamp(1, 0).unwrap()).await, ExpiredSnapshots::default());
    let middle = Utc::now();
    rows(&session, "INSERT INTO u VALUES (1000, 'later')").await.unwrap();
    rows(&session, "DELETE FROM u WHERE k = 1000").await.unwrap();
    let at_middle: i64 =
        sqlite(&folder).query_row("SELECT max(snapshot_id) - 2 FROM ducklake_snapshot", [], |row| row.get(0)).unwrap();
    let expired = expire(&engine, middle).await;
    assert!(expired.snapshots > 15 && expired.files >= 6 && expired.bytes > 0, "{expired:?}");
    assert_eq!(expired.tables, 3, "dropped, gone.t and small_gone: {expired:?}");
    assert_eq!(rows(&session, read).await.unwrap(), before);
    let told = duckdb(
        &folder,
        "",
        &[
            "SELECT count(*), sum(k) FROM lake.\"default\".u",
            &format!("SELECT count(*), sum(k) FROM lake.\"default\".u AT (VERSION => {at_middle})"),
            &format!("SELECT count(*) FROM lake.\"default\".u AT (VERSION => {})", at_middle + 1),
            "SELECT sum(a) FROM lake.\"default\".small",
        ],
    );
    let number = |text: &str| text.parse::<i64>().unwrap();
    let (count, sum) = (number(&before[0][0]), number(&before[0][1]));
    assert_eq!(told, [json!([[count, sum]]), json!([[count, sum]]), json!([[count + 1]]), json!([[2]])]);

    // Only the newest is left, with its files.
    let all = expire(&engine, Utc::now()).await;
    assert_eq!(all.snapshots, 2);
    assert_eq!(rows(&session, read).await.unwrap(), before);
    let check = engine.catalog().check(None).await.unwrap();
    assert_eq!((check.faults.len(), check.orphans.len()), (0, 0), "{check:?}");
    assert_eq!(parquet_files(&folder.join("data")).len() as u64, check.files, "no file that no snapshot has");
    assert_eq!(expire(&engine, Utc::now()).await, ExpiredSnapshots::default());
    let left: i64 = sqlite(&folder)
        .query_row(
            "SELECT count(*) FROM ducklake_table WHERE end_snapshot IS NOT NULL AND table_name <> 't'",
            [],
            |row| row.get(0),
        )
        .unwrap();
    assert_eq!(left, 0);
    rows(&session, "INSERT INTO u VALUES (7, 'after')").await.unwrap();
    engine.close().await.unwrap();
    let again = Engine::open(&folder).await.unwrap();
    assert_eq!(rows(&admin(&again), "SELECT count(*) FROM u").await.unwrap(), [[(count + 1).to_string()]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_was_wrong_shortens_no_history() {
    let (lake, engine) = engine().await;
    let folder = lake.path().join("data");
    change_tables(&admin(&engine)).await;
    let files = parquet_files(&folder).len();
    let date = |snapshot: &str, time: &str| {
        let time = format!("{time}-01-02 00:00:00.000000+00");
        let sql = format!("UPDATE ducklake_snapshot SET snapshot_time = ? WHERE snapshot_id = ({snapshot})");
        assert_eq!(sqlite(&folder).execute(&sql, [time]).unwrap(), 1);
    };
    // Made by a machine that did not know the time yet.
    date("SELECT max(snapshot_id) FROM ducklake_snapshot", "1970");
    assert_eq!(expire(&engine, Utc::now() - TimeDelta::hours(1)).await, ExpiredSnapshots::default());
    assert_eq!(parquet_files(&folder).len(), files);
    // Times that are yet to come keep nothing.
    date("SELECT 1", "2999");
    let expired = expire(&engine, Utc::now()).await;
    assert!(expired.snapshots > 5 && expired.files > 3, "{expired:?}");
    assert!(parquet_files(&folder).len() < files);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shared_catalog_forgets_them_too() {
    let postgres = PostgresProcess::start();
    let url = postgres.new_database("lake");
    let folder = tempfile::tempdir().unwrap();
    let options = EngineOptions { catalog_url: Some(url), ..EngineOptions::new(folder.path()) };
    let engine = Engine::open_with(options).await.unwrap();
    let session = admin(&engine);
    change_tables(&session).await;
    let read = "SELECT count(*), sum(k), (SELECT n FROM v) FROM u";
    let before = rows(&session, read).await.unwrap();
    let expired = expire(&engine, Utc::now()).await;
    assert!(expired.snapshots > 10 && expired.tables == 2 && expired.files >= 5, "{expired:?}");
    assert_eq!(rows(&session, read).await.unwrap(), before);
    assert_eq!(engine.catalog().check(None).await.unwrap().faults, Vec::<String>::new());
    let count = |table: &str| {
        let counted = postgres.psql("lake", &format!("SELECT count(*) FROM {table}")).unwrap();
        counted.trim().parse::<u64>().unwrap()
    };
    assert_eq!((count("ducklake_snapshot"), count("ducklake_data_file")), (1, 1));
    rows(&session, "INSERT INTO u VALUES (7, 'after')").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_keeps_an_hour_and_asks_for_an_administrator() {
    let server = TestServer::start(TestSettings::default().tokens("ann:write:ann,boss:admin:boss")).await;
    let expire = async |seconds: u64, token: &str| {
        server.post("/v1/snapshots/expire", &json!({ "older_than_seconds": seconds }), Some(token)).await
    };
    assert_eq!(expire(7_200, "ann").await.status, 403);
    let refused = expire(60, "boss").await;
    assert!(refused.status == 400 && refused.text.contains("3600"), "{}", refused.text);
    let done = expire(7_200, "boss").await;
    assert_eq!((done.status, done.json()), (200, json!({"snapshots": 0, "tables": 0, "files": 0, "bytes": 0})));
}
