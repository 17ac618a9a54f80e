//! `OPTIMIZE`: the small files of a table and those with many deleted rows become few, with the same rows.

use std::time::Duration;

use querent_flight::config::{DurationSetting, Settings};
use querent_tests::{TestServer, TestSettings, wait_until};
use serde_json::json;

use crate::duckdb::duckdb;
use crate::lake::sqlite;
use crate::maintenance::parquet_files;
use crate::sql::{admin, engine, rows};

#[tokio::test(flavor = "multi_thread")]
async fn small_files_are_merged_in_order_and_earlier_snapshots_keep_theirs() {
    let (lake, engine) = engine().await;
    let folder = lake.path().join("data");
    let session = admin(&engine);
    let files = || -> i64 {
        let connection = sqlite(&folder);
        connection
            .query_row("SELECT count(*) FROM ducklake_data_file WHERE end_snapshot IS NULL", [], |row| row.get(0))
            .unwrap()
    };
    rows(&session, "CREATE TABLE t (k INT, name VARCHAR)").await.unwrap();
    for k in [5, 3, 4, 1, 2, 6] {
        rows(&session, &format!("INSERT INTO t VALUES ({k}, 'a{k}'), ({k}, 'b{k}')")).await.unwrap();
    }
    rows(&session, "ALTER TABLE t ADD COLUMN later INT DEFAULT 7").await.unwrap();
    rows(&session, "DELETE FROM t WHERE k = 4 AND name = 'a4'").await.unwrap();
    let read = "SELECT k, name, later FROM t";
    let before = rows(&session, read).await.unwrap();
    assert_eq!((files(), before.len()), (6, 11));
    let snapshot: i64 =
        sqlite(&folder).query_row("SELECT max(snapshot_id) FROM ducklake_snapshot", [], |row| row.get(0)).unwrap();

    assert_eq!(rows(&session, "OPTIMIZE t").await.unwrap(), [["11"]]);
    // In the order in which they were written.
    let written = ["a5", "b5", "a3", "b3", "b4", "a1", "b1", "a2", "b2", "a6", "b6"];
    let expected: Vec<Vec<String>> =
        written.iter().map(|name| vec![name[1..].to_owned(), (*name).to_owned(), "7".to_owned()]).collect();
    assert_eq!((files(), rows(&session, read).await.unwrap()), (1, expected));
    // One file is as few as there can be.
    assert_eq!(rows(&session, "OPTIMIZE TABLE \"default\".t").await.unwrap(), [["0"]]);

    let told = duckdb(
        &folder,
        "",
        &[
            "SELECT count(*), sum(k), sum(later) FROM lake.\"default\".t",
            &format!("SELECT count(*) FROM lake.\"default\".t AT (VERSION => {snapshot})"),
        ],
    );
    assert_eq!(told[0], json!([[11, 38, 77]]));
    assert_eq!(told[1], json!([[11]]));

    // In the table's order, where it has one; a file alone is written anew where many of its rows are deleted.
    rows(&session, "ALTER TABLE t SET SORTED BY (k DESC, name)").await.unwrap();
    rows(&session, "DELETE FROM t WHERE k > 4").await.unwrap();
    assert_eq!(rows(&session, "OPTIMIZE t").await.unwrap(), [["7"]]);
    let sorted = rows(&session, "SELECT name FROM t").await.unwrap();
    assert_eq!(sorted.concat(), ["b4", "a3", "b3", "a2", "b2", "a1", "b1"]);
    rows(&session, "DELETE FROM t").await.unwrap();
    assert_eq!(rows(&session, "OPTIMIZE t").await.unwrap(), [["0"]]);
}

/// In a new file, whose checksum says that it is right, nobody would find what is wrong.
#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_file_is_not_merged_with_others() {
    let (lake, engine) = engine().await;
    let session = admin(&engine);
    rows(&session, "CREATE TABLE t AS SELECT value AS k FROM generate_series(1, 10) AS s(value)").await.unwrap();
    rows(&session, "INSERT INTO t SELECT value FROM generate_series(11, 20) AS s(value)").await.unwrap();
    let file = parquet_files(&lake.path().join("data/data")).remove(0);
    let bytes = std::fs::read(&file).unwrap();
    let mut changed = bytes.clone();
    changed[4] ^= 0x10;
    std::fs::write(&file, &changed).unwrap();
    let error = rows(&session, "OPTIMIZE t").await.unwrap_err();
    assert_eq!(error.code(), "query_execution_error");
    let name = file.file_name().unwrap().to_str().unwrap();
    assert!(error.to_string().starts_with(&format!("the file {name} is not as it was written")), "{error}");
    assert_eq!(engine.check_contents(None).await.unwrap().faults.len(), 1, "it is found as before");
    std::fs::write(&file, &bytes).unwrap();
    assert_eq!(rows(&session, "OPTIMIZE t").await.unwrap(), [["20"]]);
}

/// A server that is told to merges tables with many small files, and leaves others alone.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_merges_small_files_by_itself() {
    let often = Duration::from_millis(200);
    let change = move |settings: &mut Settings| settings.catalog.merge_small_files = DurationSetting(often);
    let server = TestServer::start(TestSettings::default().change(change)).await;
    server.execute("CREATE TABLE many (k INT)").await;
    server.execute("CREATE TABLE \"Few \"\" of\" (k INT)").await;
    for k in 0..8 {
        server.execute(&format!("INSERT INTO many VALUES ({k})")).await;
    }
    for k in 0..7 {
        server.execute(&format!("INSERT INTO \"Few \"\" of\" VALUES ({k})")).await;
    }
    let folder = server.data().to_owned();
    let files = |table: &str| -> i64 {
        let sql = "SELECT count(*) FROM ducklake_data_file f JOIN ducklake_table t USING (table_id)
                   WHERE f.end_snapshot IS NULL AND table_name = ?";
        sqlite(&folder).query_row(sql, [table], |row| row.get(0)).unwrap()
    };
    wait_until("the files of the table are merged", async || files("many") == 1).await;
    assert_eq!(files("Few \" of"), 7);
    let merged = rows(&admin(server.engine()), "SELECT count(*), sum(k) FROM many").await.unwrap();
    assert_eq!(merged, [["8", "28"]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_has_no_files_of_ours_is_refused() {
    let (_folder, engine) = engine().await;
    let session = admin(&engine);
    for made in ["CREATE TABLE t AS SELECT 1 AS k", "CREATE VIEW v AS SELECT * FROM t"] {
        rows(&session, made).await.unwrap();
    }
    for (statement, code) in [
        ("OPTIMIZE v", "not_allowed"),
        ("OPTIMIZE missing", "table_not_found"),
        ("OPTIMIZE TABLE t FINAL", "unsupported"),
        ("OPTIMIZE t WHERE k = 1", "unsupported"),
        ("OPTIMIZE t ZORDER BY (k)", "unsupported"),
        ("OPTIMIZE TABLE t DEDUPLICATE", "unsupported"),
    ] {
        assert_eq!(rows(&session, statement).await.unwrap_err().code(), code, "{statement}");
    }
    let refused = rows(&admin(&engine).read_only(), "OPTIMIZE t").await.unwrap_err();
    assert_eq!(refused.code(), "not_allowed");
}
