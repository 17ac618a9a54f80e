//! What our DELETE, UPDATE, MERGE and ALTER TABLE write, DuckDB reads; and both change one table by turns.

use std::path::Path;

use querent_engine::Engine;

use super::{Lake, TO_FILES};
use crate::sql::{admin, rows};

#[tokio::test(flavor = "multi_thread")]
async fn rows_that_we_change_are_changed_for_duckdb() {
    let lake = Lake::new().await;
    let session = &lake.session;
    for statement in [
        "CREATE TABLE t AS SELECT value AS a, 'n' || value AS b FROM generate_series(1, 1000) AS s(value)",
        "INSERT INTO t SELECT value, 'm' || value FROM generate_series(1001, 1010) AS s(value)",
        "DELETE FROM t WHERE a % 10 = 0",
        "DELETE FROM t WHERE a < 4",
        "UPDATE t SET b = 'changed' WHERE a IN (5, 1001)",
    ] {
        rows(session, statement).await.unwrap_or_else(|error| panic!("{statement}: {error}"));
    }
    let all = "SELECT count(*), sum(a), min(a), max(b) FROM t";
    lake.agree(all).await;
    lake.agree("SELECT a, b FROM t WHERE a < 12 OR a > 995 ORDER BY a").await;
    // Theirs on top of ours, and ours on top of theirs: into files, and into the catalog.
    lake.change_with(TO_FILES, &["DELETE FROM t WHERE a BETWEEN 5 AND 7", "UPDATE t SET b = 'theirs' WHERE a = 8"]);
    lake.agree(all).await;
    lake.change(&["DELETE FROM t WHERE a = 9", "INSERT INTO t VALUES (2000, 'inlined'), (2001, 'too')"]);
    lake.agree(all).await;
    assert_eq!(rows(session, "DELETE FROM t WHERE a IN (4, 9, 11, 2000)").await.unwrap(), [["3"]]);
    assert_eq!(rows(session, "UPDATE t SET b = b || '!' WHERE a >= 1001").await.unwrap(), [["10"]]);
    lake.agree(all).await;
    lake.agree("SELECT a, b FROM t WHERE a < 20 OR a > 995 ORDER BY a").await;
    let merge = "MERGE INTO t USING (VALUES (12, 'x'), (3000, 'new')) AS s(a, b) ON t.a = s.a \
                 WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (s.a, s.b)";
    assert_eq!(rows(session, merge).await.unwrap(), [["2"]]);
    lake.agree("SELECT a, b FROM t WHERE a < 20 OR a > 995 ORDER BY a").await;
    // No row of the first file is left, so the file goes.
    rows(session, "DELETE FROM t WHERE a <= 1000").await.unwrap();
    lake.agree("SELECT a, b FROM t ORDER BY a").await;
    rows(session, "DELETE FROM t").await.unwrap();
    lake.agree("SELECT count(*) FROM t").await;
    lake.change(&["INSERT INTO t VALUES (1, 'again')"]);
    lake.agree("SELECT a, b FROM t").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn columns_and_tables_that_we_alter_are_altered_for_duckdb() {
    let lake = Lake::new().await;
    let session = &lake.session;
    for statement in [
        "CREATE TABLE t AS SELECT value AS a, 'n' || value AS b, value * 2 AS c FROM generate_series(1, 5) AS s(value)",
        "ALTER TABLE t RENAME COLUMN b TO word",
        "ALTER TABLE t ADD COLUMN d INTEGER",
        "INSERT INTO t VALUES (6, 'six', 12, 1)",
        "ALTER TABLE t DROP COLUMN c",
        "ALTER TABLE t ADD COLUMN c VARCHAR",
        "ALTER TABLE t RENAME TO u",
        "UPDATE u SET c = 'late' WHERE d IS NULL AND a > 3",
    ] {
        rows(session, statement).await.unwrap_or_else(|error| panic!("{statement}: {error}"));
    }
    lake.agree("SELECT a, word, d, c FROM u ORDER BY a").await;
    lake.agree("SELECT count(*) FROM u WHERE c IS NULL").await;
    rows(session, "ALTER TABLE u RENAME COLUMN word TO text").await.unwrap();
    lake.agree("SELECT a, text, d, c FROM u ORDER BY a").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_two_change_at_once_changes_once() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::open(folder.path()).await.unwrap();
    let session = admin(&engine);
    rows(&session, "CREATE TABLE t AS SELECT value AS a, 0 AS n FROM generate_series(1, 100) AS s(value)")
        .await
        .unwrap();
    let changes = (0..8).map(|_| {
        let session = session.clone();
        async move { rows(&session, "UPDATE t SET n = n + 1 WHERE a = 50").await }
    });
    let mut done = 0;
    for outcome in futures::future::join_all(changes).await {
        match outcome {
            Ok(rows) => {
                assert_eq!(rows, [["1"]]);
                done += 1;
            }
            Err(error) => assert_eq!(error.code(), "conflict", "{error}"),
        }
    }
    assert!(done > 0);
    assert_eq!(rows(&session, "SELECT n FROM t WHERE a = 50").await.unwrap(), [[done.to_string()]]);
    assert_eq!(rows(&session, "SELECT count(*), sum(a) FROM t").await.unwrap(), [["100", "5050"]]);
    // Rows that are added meanwhile stay, and files of changes that were refused are gone.
    rows(&session, "INSERT INTO t VALUES (101, 0)").await.unwrap();
    rows(&session, "DELETE FROM t WHERE a <= 100").await.unwrap();
    assert_eq!(rows(&session, "SELECT a FROM t").await.unwrap(), [["101"]]);
    engine.close().await.unwrap();
    let known = crate::lake::sqlite(folder.path());
    let count = |sql: &str| known.query_row(sql, [], |row| row.get::<_, u32>(0)).unwrap() as usize;
    let recorded =
        count("SELECT count(*) FROM ducklake_data_file") + count("SELECT count(*) FROM ducklake_delete_file");
    assert_eq!(files_below(&folder.path().join("data")), recorded);
}

fn files_below(folder: &Path) -> usize {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.map(|path| if path.is_dir() { files_below(&path) } else { 1 }).sum()
}
