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
    // Theirs under our columns, and ours under theirs.
    lake.change(&["INSERT INTO u VALUES (7, 'seven', 2, 'theirs')", "ALTER TABLE u ADD COLUMN e DATE"]);
    lake.agree("SELECT a, word, d, c, CAST(e AS VARCHAR) FROM u ORDER BY a").await;
    rows(session, "ALTER TABLE u RENAME COLUMN e TO day").await.unwrap();
    rows(session, "INSERT INTO u VALUES (8, 'eight', 3, NULL, DATE '2024-02-29')").await.unwrap();
    lake.agree("SELECT a, word, d, c, CAST(day AS VARCHAR) FROM u ORDER BY a").await;
    lake.change(&["UPDATE u SET d = 0 WHERE a IN (1, 7)", "ALTER TABLE u RENAME TO v"]);
    lake.agree("SELECT a, word, d, c, CAST(day AS VARCHAR) FROM v ORDER BY a").await;
    // A version of ours between two of theirs, with rows in each.
    for (ours, theirs) in [
        ("ALTER TABLE v RENAME COLUMN word TO text", "INSERT INTO v (a, text) VALUES (9, 'nine')"),
        ("ALTER TABLE v DROP COLUMN c", "INSERT INTO v VALUES (10, 'ten', 1, DATE '2024-01-01')"),
        ("ALTER TABLE v ADD COLUMN f INTEGER DEFAULT 5", "INSERT INTO v (a) VALUES (11)"),
        ("ALTER TABLE v ALTER COLUMN f TYPE BIGINT", "INSERT INTO v (a, f) VALUES (12, 5000000000)"),
        ("ALTER TABLE v ALTER COLUMN f SET DEFAULT 6", "INSERT INTO v (a) VALUES (13)"),
        ("ALTER TABLE v ALTER COLUMN a SET NOT NULL", "INSERT INTO v (a) VALUES (14)"),
        ("ALTER TABLE v ALTER COLUMN a DROP NOT NULL", "INSERT INTO v (text) VALUES ('none')"),
        (
            "ALTER TABLE v DROP COLUMN day, ALTER COLUMN d TYPE BIGINT, ALTER COLUMN d SET DEFAULT 8, ADD COLUMN g INT DEFAULT 1",
            "INSERT INTO v (a) VALUES (17)",
        ),
        ("ALTER TABLE v RENAME TO w", "INSERT INTO w (a) VALUES (15)"),
    ] {
        rows(session, ours).await.unwrap_or_else(|error| panic!("{ours}: {error}"));
        lake.change(&[theirs]);
        let table = if ours.ends_with("TO w") { "w" } else { "v" };
        lake.agree(&format!("SELECT * FROM {table} ORDER BY a, text")).await;
    }
    lake.change(&["UPDATE w SET d = 42 WHERE a > 6", "DELETE FROM w WHERE a IN (2, 12)"]);
    rows(session, "INSERT INTO w (a) VALUES (16)").await.unwrap();
    lake.agree("SELECT * FROM w ORDER BY a, text").await;
    lake.change(&["CALL ducklake_flush_inlined_data('lake')"]);
    lake.agree("SELECT * FROM w ORDER BY a, text").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn defaults_of_either_hold_for_both() {
    let lake = Lake::new().await;
    let session = &lake.session;
    rows(
        session,
        "CREATE TABLE t (a INT DEFAULT 5, b VARCHAR DEFAULT 'it''s', c DOUBLE DEFAULT -1.5, d DATE DEFAULT DATE '2024-02-29', \
         e BOOLEAN DEFAULT true, f VARCHAR DEFAULT 'NULL', g DECIMAL(10, 2) DEFAULT 1.5, h TIMESTAMP DEFAULT current_timestamp, k INT)",
    )
    .await
    .unwrap();
    let all =
        "SELECT a, b, c, CAST(d AS VARCHAR), e, f, g = 1.5, h > TIMESTAMP '2024-01-01 00:00:00', k FROM t ORDER BY k";
    rows(session, "INSERT INTO t (k) VALUES (1)").await.unwrap();
    rows(session, "INSERT INTO t (k, a) SELECT 2, 7").await.unwrap();
    rows(session, "INSERT INTO t (k, a, b) VALUES (3, DEFAULT, NULL)").await.unwrap();
    lake.change(&["INSERT INTO t (k) VALUES (4)"]);
    lake.agree(all).await;
    lake.change_with(TO_FILES, &["INSERT INTO t (k, c) VALUES (5, 0)", "ALTER TABLE t ADD COLUMN l INTEGER DEFAULT 9"]);
    lake.change(&["ALTER TABLE t ALTER COLUMN a SET DEFAULT 50"]);
    rows(session, "INSERT INTO t (k) VALUES (6)").await.unwrap();
    rows(session, "ALTER TABLE t ADD COLUMN m VARCHAR DEFAULT 'new'").await.unwrap();
    rows(session, "ALTER TABLE t ALTER COLUMN b DROP DEFAULT").await.unwrap();
    lake.change(&["INSERT INTO t (k) VALUES (7)"]);
    rows(session, "INSERT INTO t (k) VALUES (8)").await.unwrap();
    lake.agree(all).await;
    lake.agree("SELECT k, a, b, l, m FROM t ORDER BY k").await;
    for condition in ["l = 9 AND m = 'new'", "l IS NULL", "l < 9", "m > 'n' AND k > 4", "l + k = 10"] {
        lake.agree(&format!("SELECT k FROM t WHERE {condition} ORDER BY k")).await;
    }
    lake.agree("SELECT count(l), count(m), min(l), max(m), sum(l) FROM t").await;
    rows(session, "UPDATE t SET a = DEFAULT, l = l + 1 WHERE k IN (2, 3)").await.unwrap();
    lake.change(&["UPDATE t SET m = 'theirs' WHERE k IN (1, 2, 8)"]);
    lake.agree("SELECT k, a, b, l, m FROM t ORDER BY k").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_value_of_a_new_column_is_the_same_for_both() {
    let lake = Lake::new().await;
    let session = &lake.session;
    rows(session, "CREATE TABLE t AS SELECT 1 AS k").await.unwrap();
    // A row in the catalog, beside that of a file.
    lake.change(&["INSERT INTO t VALUES (2)", r"ALTER TABLE t ADD COLUMN a BLOB DEFAULT '\xFF\x00a'"]);
    for column in [
        r"b BLOB DEFAULT '\xAA\xBB'",
        "c BOOLEAN DEFAULT 1",
        "d INT DEFAULT 1.5",
        "e DECIMAL(4, 1) DEFAULT 1.25",
        "f TIME DEFAULT '1:02:03'",
    ] {
        rows(session, &format!("ALTER TABLE t ADD COLUMN {column}")).await.unwrap();
    }
    rows(session, "INSERT INTO t (k) VALUES (3)").await.unwrap();
    lake.change(&["INSERT INTO t (k) VALUES (4)"]);
    let bytes = "a = from_hex('FF0061') AND b = from_hex('AABB')";
    lake.agree(&format!("SELECT k, {bytes}, c, d, CAST(e AS VARCHAR), CAST(f AS VARCHAR) FROM t ORDER BY k")).await;
    let found = format!("SELECT count(*) FROM t WHERE {bytes} AND c AND d = 2 AND e > 1.2 AND f = TIME '01:02:03'");
    lake.agree(&found).await;
    assert_eq!(rows(session, &found).await.unwrap(), [["4"]]);
}

/// DuckDB 1.5 takes the bounds of the file for those of doubles, and finds no row.
#[tokio::test(flavor = "multi_thread")]
async fn bounds_of_files_are_of_the_type_that_their_columns_had() {
    let lake = Lake::new().await;
    let session = &lake.session;
    lake.change_with(
        TO_FILES,
        &[
            "CREATE TABLE t (k INTEGER, f FLOAT, d DATE, i INTEGER)",
            "INSERT INTO t VALUES (1, 0.1, DATE '2024-02-29', 9), (2, 0.1, DATE '2024-02-29', 10)",
            "ALTER TABLE t ALTER f TYPE DOUBLE",
            "ALTER TABLE t ALTER d TYPE TIMESTAMP",
            "ALTER TABLE t ALTER i TYPE JSON",
        ],
    );
    for condition in
        ["f > 0.1e0", "f <> 0.1e0", "d = TIMESTAMP '2024-02-29 00:00:00'", "d < TIMESTAMP '2024-02-29 00:00:01'"]
    {
        let found = rows(session, &format!("SELECT k FROM t WHERE {condition} ORDER BY k")).await.unwrap();
        assert_eq!(found, [["1"], ["2"]], "{condition}");
    }
    assert_eq!(rows(session, "SELECT k FROM t WHERE i = '10'").await.unwrap(), [["2"]]);
    assert_eq!(rows(session, "SELECT min(f) > 0.1e0, max(f) > 0.1e0 FROM t").await.unwrap(), [["true", "true"]]);
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
