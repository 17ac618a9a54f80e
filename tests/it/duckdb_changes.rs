//! Tables that DuckDB changed: rows it keeps in the catalog, deletes there and in delete files, updates. DuckDB is the
//! oracle: each query is asked of both.

mod row_changes;

use std::path::Path;

use querent_catalog::{NewRelationship, PageRequest, Principal, TableName};
use querent_engine::{Engine, Session};
use serde_json::Value;

use crate::duckdb::duckdb;
use crate::sql::{admin, rows};

/// Rows go into files, deletes too.
const TO_FILES: &str = "DATA_INLINING_ROW_LIMIT 0";

/// DuckDB reads nothing of a lake in which a column has a tag that is no comment.
#[tokio::test(flavor = "multi_thread")]
async fn columns_with_json_are_text_to_duckdb() {
    let lake = Lake::new().await;
    let session = &lake.session;
    for sql in [
        "CREATE TABLE t (a BIGINT, j JSON, k JSON)",
        r#"INSERT INTO t VALUES (1, '{"b": 2}', NULL)"#,
        "COMMENT ON COLUMN t.j IS 'a document'",
    ] {
        rows(session, sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
    lake.agree("SELECT a, j, k FROM t").await;
    lake.change(&["ALTER TABLE t ADD COLUMN z INTEGER", "INSERT INTO t VALUES (2, '{}', NULL, 3)"]);
    lake.agree("SELECT a, j, k, z FROM t ORDER BY a").await;
    rows(session, "ALTER TABLE t DROP COLUMN k").await.unwrap();
    rows(session, "ALTER TABLE t ALTER COLUMN j TYPE TEXT").await.unwrap();
    lake.agree("SELECT * FROM t ORDER BY a").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn inlined_rows_are_read_with_the_files() {
    let lake = Lake::new().await;
    let session = &lake.session;
    rows(session, "CREATE TABLE t AS SELECT value AS a, 'n' || value AS b FROM generate_series(1, 5) AS s(value)")
        .await
        .unwrap();
    lake.change(&["INSERT INTO t VALUES (6, 'six'), (7, NULL)", "INSERT INTO t VALUES (8, 'it''s \"é\"')"]);
    lake.agree("SELECT count(*), sum(a), min(b), max(b), count(b) FROM t").await;
    lake.agree("SELECT a, b FROM t WHERE a > 4 ORDER BY a").await;
    lake.agree("SELECT count(*) FROM t WHERE b IS NULL").await;
    lake.agree("SELECT b FROM t WHERE b >= 'o' ORDER BY b LIMIT 1").await;
    // Ours beside theirs, and theirs again.
    rows(session, "INSERT INTO t VALUES (9, 'nine')").await.unwrap();
    lake.change(&["INSERT INTO t VALUES (10, 'ten')", "DELETE FROM t WHERE a IN (6, 9, 2)"]);
    lake.agree("SELECT a, b FROM t ORDER BY a").await;
    lake.change(&["UPDATE t SET b = 'changed' WHERE a IN (1, 7, 10)"]);
    lake.agree("SELECT a, b FROM t ORDER BY a").await;
    lake.agree("SELECT max(a), min(a), count(*) FROM t").await;
    let sampled = session.sample(&querent_catalog::TableName::new("default", "t"), 100).await.unwrap();
    assert_eq!(sampled.collect().await.unwrap().1.rows, 7);
    // Older rows under newer columns.
    lake.change(&["ALTER TABLE t ADD COLUMN c INTEGER", "INSERT INTO t VALUES (11, 'eleven', 3)"]);
    lake.agree("SELECT a, b, c FROM t ORDER BY a").await;
    lake.change(&["ALTER TABLE t RENAME COLUMN b TO word", "INSERT INTO t VALUES (12, 'twelve', 4)"]);
    lake.agree("SELECT a, word, c FROM t ORDER BY a").await;
    lake.change(&["CALL ducklake_flush_inlined_data('lake')"]);
    lake.agree("SELECT a, word, c FROM t ORDER BY a").await;
    // What is overwritten is gone for both.
    assert_eq!(rows(session, "INSERT OVERWRITE t SELECT a, word, c FROM t WHERE a > 9").await.unwrap(), [["3"]]);
    lake.agree("SELECT a, word, c FROM t ORDER BY a").await;
    lake.change(&["INSERT INTO t VALUES (13, 'x', 1)"]);
    assert_eq!(rows(session, "INSERT OVERWRITE t SELECT a, word, c FROM t WHERE a = 13").await.unwrap(), [["1"]]);
    lake.agree("SELECT a, word, c FROM t ORDER BY a").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn inlined_values_of_every_type_are_read_exactly() {
    let lake = Lake::new().await;
    lake.change(&[
        "CREATE TABLE v (k INTEGER, i1 TINYINT, i2 SMALLINT, i8 BIGINT, u1 UTINYINT, u4 UINTEGER, u8 UBIGINT, f4 FLOAT, \
         f8 DOUBLE, bo BOOLEAN, d DATE, ts TIMESTAMP, tz TIMESTAMPTZ, tms TIMESTAMP_MS, tns TIMESTAMP_NS, ti TIME, \
         de DECIMAL(10,2), hd DECIMAL(30,3), bl BLOB, s VARCHAR)",
        "INSERT INTO v VALUES (1, -128, 32767, -9223372036854775808, 255, 4294967295, 18446744073709551615, 1.1, 0.1, \
         true, '2024-02-29', '2024-01-02 03:04:05.123456', '2024-01-02 03:04:05+02', '2024-01-02 03:04:05.123', \
         '2024-01-02 03:04:05.123456789', '01:02:03.5', 1.25, 123456789012345678901234567.125, '\\x00\\xFFa'::BLOB, '')",
        "INSERT INTO v (k, f4, f8, bo, d, de, s) VALUES (2, 1e-30, 1e300, false, '1969-12-31', -0.05, 'a\nb')",
        "INSERT INTO v (k, f4, f8) VALUES (3, 'nan', '-inf')",
        "INSERT INTO v (k) VALUES (4)",
    ]);
    lake.agree("SELECT k, i1, i2, i8, u1, u4, u8::VARCHAR, bo, s FROM v ORDER BY k").await;
    lake.agree("SELECT k, CAST(d AS VARCHAR), de::VARCHAR, hd::VARCHAR FROM v WHERE k < 3 ORDER BY k").await;
    // Where the two print values in other ways, comparisons are what both can say.
    for condition in [
        "f4 = 1.1::FLOAT AND f8 = 0.1::DOUBLE",
        "f4 = 1e-30::FLOAT AND f8 = 1e300::DOUBLE",
        "ts = TIMESTAMP '2024-01-02 03:04:05.123456'",
        "tz = TIMESTAMPTZ '2024-01-02 01:04:05+00:00'",
        "CAST(tms AS TIMESTAMP) = TIMESTAMP '2024-01-02 03:04:05.123'",
        "CAST(ti AS VARCHAR) LIKE '01:02:03.5%'",
        "bl IS NOT NULL",
        "isnan(f4)",
        "f8 < -1e308",
    ] {
        lake.agree(&format!("SELECT k FROM v WHERE {condition} ORDER BY k")).await;
    }
    let nanoseconds = "SELECT k FROM v WHERE tns = arrow_cast('2024-01-02 03:04:05.123456789', 'Timestamp(ns)')";
    assert_eq!(rows(&lake.session, nanoseconds).await.unwrap(), [["1"]]);

    // What does not read back exactly refuses the table.
    lake.change(&["CREATE TABLE n (l INTEGER[])", "INSERT INTO n VALUES ([1, 2])", "CREATE TABLE bc (d DATE)"]);
    lake.change(&["INSERT INTO bc VALUES ('0044-03-15 (BC)')"]);
    for (table, what) in [("n", "in column `l`"), ("bc", "in column `d`")] {
        let error = rows(&lake.session, &format!("SELECT * FROM {table}")).await.unwrap_err();
        assert_eq!(error.code(), "unsupported_lake");
        assert!(error.to_string().contains(what), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn times_of_every_precision_are_read_by_both() {
    let lake = Lake::new().await;
    let session = &lake.session;
    rows(session, "CREATE TABLE m (k INT, s TIMESTAMP(0), ms TIMESTAMP(3), us TIMESTAMP, ns TIMESTAMP(9))")
        .await
        .unwrap();
    for insert in [
        "INSERT INTO m VALUES (1, TIMESTAMP '0001-01-01 00:00:00', TIMESTAMP '2024-01-02 03:04:05.123', \
         TIMESTAMP '9999-12-31 23:59:59.123456', TIMESTAMP '2024-01-02 03:04:05.123456789')",
        "INSERT INTO m VALUES (2, TIMESTAMP '2024-01-02 03:04:05', NULL, NULL, NULL)",
    ] {
        rows(session, insert).await.unwrap();
        lake.change(&["INSERT INTO m SELECT k + 10, s, ms, us, ns FROM m WHERE k < 10"]);
    }
    for condition in [
        "CAST(s AS TIMESTAMP) = TIMESTAMP '0001-01-01 00:00:00'",
        "CAST(s AS TIMESTAMP) = TIMESTAMP '2024-01-02 03:04:05'",
        "CAST(ms AS TIMESTAMP) = TIMESTAMP '2024-01-02 03:04:05.123'",
        "us = TIMESTAMP '9999-12-31 23:59:59.123456'",
        "us IS NULL AND s < TIMESTAMP '2024-01-03 00:00:00'",
    ] {
        lake.agree(&format!("SELECT k FROM m WHERE {condition} ORDER BY k")).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_follow_what_is_renamed_and_go_with_what_is_dropped() {
    let lake = Lake::new().await;
    let session = &lake.session;
    rows(session, "CREATE TABLE buyers (id BIGINT PRIMARY KEY, mail VARCHAR UNIQUE)").await.unwrap();
    rows(session, "CREATE TABLE sales (id BIGINT PRIMARY KEY, who BIGINT REFERENCES buyers)").await.unwrap();
    let keys = "SELECT u.table_name, u.column_name, f.unique_constraint_name \
                FROM information_schema.key_column_usage u LEFT JOIN information_schema.referential_constraints f \
                USING (constraint_name) ORDER BY 1, 2";
    let before = [
        ["buyers", "id", "NULL"],
        ["buyers", "mail", "NULL"],
        ["sales", "id", "NULL"],
        ["sales", "who", "buyers_pkey"],
    ];
    assert_eq!(rows(session, keys).await.unwrap(), before);
    lake.change(&[
        "ALTER TABLE buyers RENAME COLUMN id TO nr",
        "ALTER TABLE buyers RENAME TO people",
        "ALTER TABLE sales RENAME COLUMN who TO person",
    ]);
    let after = [
        ["people", "mail", "NULL"],
        ["people", "nr", "NULL"],
        ["sales", "id", "NULL"],
        ["sales", "person", "buyers_pkey"],
    ];
    assert_eq!(rows(session, keys).await.unwrap(), after);
    lake.change(&["ALTER TABLE people DROP COLUMN mail", "DROP TABLE sales"]);
    assert_eq!(rows(session, keys).await.unwrap(), [["people", "nr", "NULL"]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn foreign_keys_stay_with_tables_and_columns_that_change_names_with_each_other() {
    let lake = Lake::new().await;
    let session = &lake.session;
    for sql in [
        "CREATE TABLE lands (id BIGINT PRIMARY KEY)",
        "CREATE TABLE towns (id BIGINT PRIMARY KEY, land BIGINT REFERENCES lands)",
        "CREATE TABLE people (land BIGINT REFERENCES lands, town BIGINT REFERENCES towns)",
    ] {
        rows(session, sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
    let keys = "SELECT u.table_name, u.column_name, f.unique_constraint_name \
                FROM information_schema.key_column_usage u JOIN information_schema.referential_constraints f \
                USING (constraint_name) ORDER BY 1, 2";
    let before = [["people", "land", "lands_pkey"], ["people", "town", "towns_pkey"], ["towns", "land", "lands_pkey"]];
    assert_eq!(rows(session, keys).await.unwrap(), before);
    lake.change(&[
        "ALTER TABLE lands RENAME TO passing",
        "ALTER TABLE towns RENAME TO lands",
        "ALTER TABLE passing RENAME TO towns",
        "ALTER TABLE people RENAME COLUMN land TO passing",
        "ALTER TABLE people RENAME COLUMN town TO land",
        "ALTER TABLE people RENAME COLUMN passing TO town",
    ]);
    // Names of primary keys stay what they were.
    let after = [["lands", "land", "lands_pkey"], ["people", "land", "towns_pkey"], ["people", "town", "lands_pkey"]];
    assert_eq!(rows(session, keys).await.unwrap(), after);
    // A table that takes the name of one that is dropped keeps its own.
    lake.change(&["DROP TABLE people", "ALTER TABLE lands RENAME TO people"]);
    assert_eq!(rows(session, keys).await.unwrap(), [["people", "land", "lands_pkey"]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn declared_relationships_follow_columns_and_stay_with_the_names_of_tables() {
    let lake = Lake::new().await;
    let session = &lake.session;
    for sql in ["CREATE TABLE buyers (id BIGINT)", "CREATE TABLE sales (who BIGINT)"] {
        rows(session, sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
    let who = Principal::local_admin();
    let relationships = session.engine().catalog().relationships();
    let new = NewRelationship {
        from: TableName::new("default", "sales"),
        from_columns: vec!["who".to_owned()],
        to: TableName::new("default", "buyers"),
        to_columns: vec!["id".to_owned()],
    };
    relationships.declare(&who, &new).await.unwrap();
    let declared = async || {
        rows(session, "SELECT count(*) FROM buyers, sales").await.unwrap();
        let page = relationships.list(&who, None, PageRequest::first(10)).await.unwrap();
        let sides = page
            .items
            .into_iter()
            .map(|found| (found.from.table, found.from_columns, found.to.table, found.to_columns));
        sides.collect::<Vec<_>>()
    };
    let followed = |from: &str, to: &str| {
        vec![("sales".to_owned(), vec![from.to_owned()], "buyers".to_owned(), vec![to.to_owned()])]
    };
    lake.change(&["ALTER TABLE buyers RENAME COLUMN id TO nr"]);
    assert_eq!(declared().await, followed("who", "nr"));
    rows(session, "ALTER TABLE sales RENAME COLUMN who TO person").await.unwrap();
    assert_eq!(declared().await, followed("person", "nr"));
    lake.change(&[
        "CREATE TABLE newer (nr BIGINT)",
        "ALTER TABLE buyers RENAME TO older",
        "ALTER TABLE newer RENAME TO buyers",
    ]);
    assert_eq!(declared().await, followed("person", "nr"));
}

#[tokio::test(flavor = "multi_thread")]
async fn uuids_are_text_here_and_uuids_there() {
    const FIRST: &str = "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11";
    let lake = Lake::new().await;
    let session = &lake.session;
    let queries = [
        "SELECT id::VARCHAR, n FROM t ORDER BY n",
        "SELECT count(*), min(id::VARCHAR), max(id::VARCHAR) FROM t",
        "SELECT n FROM t WHERE id = 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'",
        "SELECT n FROM t WHERE id IN ('{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}', 'D0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11') ORDER BY n",
        "SELECT count(*) FROM t WHERE id > 'b8000000-0000-0000-0000-000000000000'",
        "SELECT a.n FROM t a JOIN t b ON a.id = b.id ORDER BY a.n",
    ];
    // A table of ours, with rows in files of both and in the catalog.
    rows(session, "CREATE TABLE t (id UUID, n INTEGER)").await.unwrap();
    rows(session, &format!("INSERT INTO t VALUES (upper('{FIRST}'), 1), (NULL, 2)")).await.unwrap();
    lake.change_with(TO_FILES, &["INSERT INTO t SELECT 'b0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::UUID, 3"]);
    lake.change(&["INSERT INTO t VALUES ('D0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11', 4)"]);
    for query in queries {
        lake.agree(query).await;
    }
    let theirs = asked(lake.folder.path(), "", &["SELECT DISTINCT typeof(id) FROM t"]);
    assert_eq!(theirs, [serde_json::json!([["UUID"]])]);
    assert_eq!(rows(session, "SELECT typeof(id), id FROM t WHERE n = 1").await.unwrap(), [["VARCHAR", FIRST]]);
    lake.change(&["DELETE FROM t WHERE n = 1", "ALTER TABLE t RENAME TO older"]);
    // A table of theirs.
    lake.change_with(
        TO_FILES,
        &["CREATE TABLE t AS SELECT 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::UUID AS id, 1 AS n"],
    );
    rows(session, "INSERT INTO t VALUES ('{D0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11}', 4)").await.unwrap();
    for query in queries {
        lake.agree(query).await;
    }
    let refused = rows(session, "INSERT INTO t VALUES ('x', 5)").await.unwrap_err().to_string();
    assert!(refused.contains("column `id`: `x` is no UUID"), "{refused}");
    assert_eq!(rows(session, "SELECT count(*) FROM t").await.unwrap(), [["2"]]);
    // UUIDs inside of columns are text, too.
    lake.change_with(
        TO_FILES,
        &["CREATE TABLE inner_ids AS SELECT ['a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::UUID] AS ids"],
    );
    assert_eq!(rows(session, "SELECT ids[1] FROM inner_ids").await.unwrap(), [[FIRST]]);
    let refused = rows(session, "INSERT INTO inner_ids VALUES (['x'])").await.unwrap_err().to_string();
    assert!(refused.contains("UUIDs inside of a column"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn deleted_rows_are_left_out() {
    let lake = Lake::new().await;
    let session = &lake.session;
    // Two files of several row groups each.
    for first in [0, 300_000] {
        let last = first + 299_999;
        let made = format!("SELECT value AS a, value % 10 AS m FROM generate_series({first}, {last}) AS s(value)");
        let statement = if first == 0 { format!("CREATE TABLE t AS {made}") } else { format!("INSERT INTO t {made}") };
        rows(session, &statement).await.unwrap();
    }
    let queries = [
        "SELECT count(*), sum(a), min(a), max(a) FROM t",
        "SELECT m, count(*) FROM t GROUP BY m ORDER BY m",
        "SELECT a FROM t WHERE a BETWEEN 299990 AND 300010 ORDER BY a",
        "SELECT count(*) FROM t WHERE a > 599990 OR a < 5",
        "SELECT count(*) FROM (SELECT a FROM t LIMIT 1000) AS x",
    ];
    let steps: [(&str, &[&str]); 4] = [
        ("", &["DELETE FROM t WHERE a IN (0, 122880, 299999, 300000, 599999)"]),
        (TO_FILES, &["DELETE FROM t WHERE m = 3"]),
        (TO_FILES, &["DELETE FROM t WHERE a >= 300000 AND a < 450000", "DELETE FROM t WHERE a < 200"]),
        ("", &["UPDATE t SET a = -a WHERE a = 250", "DELETE FROM t WHERE m = 7 AND a > 599000"]),
    ];
    for (options, statements) in steps {
        lake.change_with(options, statements);
        for query in queries {
            lake.agree(query).await;
        }
    }
    let listed = "SELECT count(*) FROM t a JOIN t b ON a.a = b.a";
    lake.agree(listed).await;
    // A whole file's rows, and all there are.
    lake.change_with(TO_FILES, &["DELETE FROM t WHERE a >= 300000"]);
    lake.agree(queries[0]).await;
    lake.change_with(TO_FILES, &["DELETE FROM t"]);
    lake.agree("SELECT count(*) FROM t").await;
    rows(session, "INSERT INTO t VALUES (1, 1)").await.unwrap();
    lake.agree("SELECT a, m FROM t").await;
}

/// An engine's folder, which DuckDB attaches too.
#[tokio::test(flavor = "multi_thread")]
async fn a_vector_index_leaves_out_what_was_deleted() {
    let lake = Lake::new().await;
    let session = &lake.session;
    rows(session, "CREATE TABLE near (id BIGINT, v FLOAT[2])").await.unwrap();
    let made = "SELECT value, [cos(value / 50.0), sin(value / 50.0)] FROM generate_series(1, 300) AS s(value)";
    rows(session, &format!("INSERT INTO near {made}")).await.unwrap();
    rows(session, "CREATE INDEX by_angle ON near USING vector (v)").await.unwrap();
    let search = "SELECT id FROM near ORDER BY cosine_distance(v, [0.5403, 0.8415]) LIMIT 1";
    let shown = rows(session, &format!("EXPLAIN {search}")).await.unwrap();
    assert!(shown.iter().flatten().any(|text| text.contains("index=by_angle")), "{shown:?}");
    assert_eq!(rows(session, search).await.unwrap(), [["50"]]);
    lake.change(&["DELETE FROM near WHERE id = 50"]);
    let next = rows(session, search).await.unwrap();
    assert!(next == [["49"]] || next == [["51"]], "{next:?}");
    lake.change(&["DELETE FROM near WHERE id IN (49, 51, 52)"]);
    assert_eq!(rows(session, search).await.unwrap(), [["48"]]);
    lake.change(&["DROP TABLE near"]);
    assert!(rows(session, "SHOW INDEXES").await.unwrap().is_empty());
}

struct Lake {
    folder: tempfile::TempDir,
    session: Session,
    _engine: Engine,
}

impl Lake {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let engine = Engine::open(folder.path()).await.unwrap();
        Self { session: admin(&engine), _engine: engine, folder }
    }

    /// Statements for DuckDB, with its own inlining.
    fn change(&self, statements: &[&str]) {
        self.change_with("", statements);
    }

    fn change_with(&self, options: &str, statements: &[&str]) {
        asked(self.folder.path(), options, statements);
    }

    /// Asks both and compares.
    async fn agree(&self, sql: &str) {
        let theirs = asked(self.folder.path(), "", &[sql]).pop().unwrap();
        let theirs: Vec<Vec<String>> =
            theirs.as_array().unwrap().iter().map(|row| row.as_array().unwrap().iter().map(text).collect()).collect();
        // From the files, and from the columns that were decoded of them.
        for _ in 0..3 {
            let ours = rows(&self.session, sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
            assert_eq!(ours, theirs, "{sql}");
        }
    }
}

/// What DuckDB says, in the database `default`.
fn asked(folder: &Path, options: &str, statements: &[&str]) -> Vec<Value> {
    let statements = [&["USE lake.\"default\""], statements].concat();
    duckdb(folder, options, &statements).split_off(1)
}

fn text(value: &Value) -> String {
    match value {
        Value::Null => "NULL".into(),
        Value::String(text) if text.is_empty() => "(empty)".into(),
        Value::String(text) => text.clone(),
        Value::Number(number) if number.as_f64().is_some_and(|float| number.is_f64() && float.fract() == 0.0) => {
            format!("{:.1}", number.as_f64().unwrap())
        }
        other => other.to_string(),
    }
}
