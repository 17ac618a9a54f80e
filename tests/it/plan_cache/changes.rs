//! What changes between two uses of a statement is seen by the second: rows, tables, views, rights, files, the session, time.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use parquet::arrow::ArrowWriter;
use querent_catalog::{Principal, Role};
use querent_engine::{Limits, Session};

use super::{USES, answer, int};
use crate::policies::{caller, principal, run};
use crate::sql::{admin, engine, rows};

/// Runs a statement until its plan is kept and used, and returns its answer.
async fn known(session: &Session, sql: &str) -> Result<Vec<Vec<String>>, String> {
    let first = answer(session, sql, Vec::new()).await;
    for _ in 1..USES {
        assert_eq!(answer(session, sql, Vec::new()).await, first, "{sql}");
    }
    first
}

async fn known_code(session: &Session, sql: &str) -> String {
    let error = known(session, sql).await.unwrap_err();
    error.split(':').next().unwrap_or_default().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_tables_and_views_change() {
    let (_folder, engine) = engine().await;
    let session = admin(&engine);
    run(&session, &["CREATE TABLE t AS SELECT 1 AS a, 'x' AS b", "CREATE VIEW v AS SELECT a FROM t"]).await;
    let (table, view) = ("SELECT * FROM t ORDER BY 1", "SELECT * FROM v ORDER BY 1");
    assert_eq!(known(&session, table).await.unwrap(), [["1", "x"]]);
    assert_eq!(known(&session, view).await.unwrap(), [["1"]]);
    run(&session, &["INSERT INTO t VALUES (2, 'y')"]).await;
    assert_eq!(known(&session, table).await.unwrap(), [["1", "x"], ["2", "y"]]);
    assert_eq!(known(&session, view).await.unwrap(), [["1"], ["2"]]);
    run(&session, &["CREATE OR REPLACE VIEW v AS SELECT b, a FROM t WHERE a > 1"]).await;
    assert_eq!(known(&session, view).await.unwrap(), [["y", "2"]]);
    run(&session, &["CREATE OR REPLACE TABLE t AS SELECT 'z' AS b, 3 AS a, true AS c"]).await;
    assert_eq!(known(&session, table).await.unwrap(), [["z", "3", "true"]]);
    assert_eq!(known(&session, view).await.unwrap(), [["z", "3"]]);
    run(&session, &["DROP TABLE t"]).await;
    assert_eq!(known_code(&session, table).await, "table_not_found");
    assert!(known(&session, view).await.is_err());
    run(&session, &["CREATE TABLE t AS SELECT 4 AS only"]).await;
    assert_eq!(known(&session, table).await.unwrap(), [["4"]]);
    run(&session, &["DROP VIEW v"]).await;
    assert_eq!(known_code(&session, view).await, "table_not_found");
    // One that did not plan is planned once it can be.
    assert_eq!(known_code(&session, "SELECT * FROM later").await, "table_not_found");
    run(&session, &["CREATE TABLE later AS SELECT 5 AS a"]).await;
    assert_eq!(known(&session, "SELECT * FROM later").await.unwrap(), [["5"]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn parameters_see_changes_too() {
    let (_folder, engine) = engine().await;
    let session = admin(&engine);
    run(&session, &["CREATE TABLE t AS SELECT value AS a FROM generate_series(1, 100) AS s(value)"]).await;
    let sql = "SELECT a FROM t WHERE a = $1";
    for value in 1..6 {
        assert_eq!(answer(&session, sql, vec![int(value)]).await.unwrap(), [[value.to_string()]]);
    }
    run(&session, &["INSERT INTO t VALUES (3), (1000)"]).await;
    assert_eq!(answer(&session, sql, vec![int(3)]).await.unwrap(), [["3"], ["3"]]);
    assert_eq!(answer(&session, sql, vec![int(1000)]).await.unwrap(), [["1000"]]);
    run(&session, &["CREATE OR REPLACE TABLE t AS SELECT '7' AS a"]).await;
    let fresh = "SELECT a FROM t WHERE  a = $1";
    let wanted = answer(&session, fresh, vec![int(7)]).await;
    assert_eq!(answer(&session, sql, vec![int(7)]).await, wanted);
    run(&session, &["DROP TABLE t"]).await;
    let gone = answer(&session, sql, vec![int(7)]).await.unwrap_err();
    assert!(gone.starts_with("table_not_found"), "{gone}");
}

#[tokio::test(flavor = "multi_thread")]
async fn rights_change_and_are_each_callers_own() {
    let (_folder, engine) = engine().await;
    let root = admin(&engine);
    run(
        &root,
        &[
            "CREATE DATABASE sales",
            "CREATE TABLE sales.orders AS SELECT * FROM (VALUES (1, 'EU', 10), (2, 'US', 20), (3, 'EU', 30)) \
             AS v(id, region, amount)",
        ],
    )
    .await;
    let (eu, us) =
        (caller(&engine, "anna", &["analyst"], Some("EU")), caller(&engine, "ben", &["analyst"], Some("US")));
    let sql = "SELECT id, amount FROM sales.orders ORDER BY id";
    let all = [["1", "10"], ["2", "20"], ["3", "30"]];
    assert_eq!(known(&eu, sql).await.unwrap(), all);
    run(&root, &["GRANT SELECT ON sales.orders TO ROLE analyst"]).await;
    assert_eq!(known(&eu, sql).await.unwrap(), all);
    run(&root, &["CREATE ROW POLICY own ON sales.orders USING (region = attribute('region')) TO ROLE analyst"]).await;
    for _ in 0..2 {
        assert_eq!(known(&eu, sql).await.unwrap(), [["1", "10"], ["3", "30"]]);
        assert_eq!(known(&us, sql).await.unwrap(), [["2", "20"]]);
        assert_eq!(known(&root, sql).await.unwrap(), all);
    }
    // The same name with another attribute is another caller, with parameters as without.
    let moved = caller(&engine, "anna", &["analyst"], Some("US"));
    assert_eq!(known(&moved, sql).await.unwrap(), [["2", "20"]]);
    let by_amount = "SELECT id FROM sales.orders WHERE amount > $1";
    for _ in 0..USES {
        assert_eq!(answer(&eu, by_amount, vec![int(15)]).await.unwrap(), [["3"]]);
        assert_eq!(answer(&us, by_amount, vec![int(15)]).await.unwrap(), [["2"]]);
        assert_eq!(answer(&us, by_amount, vec![int(25)]).await.unwrap(), Vec::<Vec<String>>::new());
    }
    run(&root, &["CREATE MASK hidden ON sales.orders(amount) USING (0) TO ROLE analyst"]).await;
    assert_eq!(known(&eu, sql).await.unwrap(), [["1", "0"], ["3", "0"]]);
    assert_eq!(answer(&us, by_amount, vec![int(15)]).await.unwrap(), Vec::<Vec<String>>::new());
    run(&root, &["DROP MASK hidden ON sales.orders", "DROP ROW POLICY own ON sales.orders"]).await;
    assert_eq!(known(&us, sql).await.unwrap(), all);
    run(&root, &["REVOKE SELECT ON sales.orders FROM ROLE analyst"]).await;
    assert_eq!(known_code(&eu, sql).await, "database_not_found");
    assert_eq!(known(&root, sql).await.unwrap(), all);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_condition_that_fails_on_a_hidden_row_is_not_evaluated_there() {
    let (_folder, engine) = engine().await;
    let root = admin(&engine);
    run(
        &root,
        &[
            "CREATE TABLE t AS SELECT * FROM (VALUES (1, 'EU', '10'), (2, 'US', 'no number')) AS v(id, region, amount)",
            "CREATE ROW POLICY own ON t USING (region = attribute('region')) TO PUBLIC",
        ],
    )
    .await;
    let eu = caller(&engine, "anna", &[], Some("EU"));
    for value in [9, 10, 10, 11, 10] {
        let found = answer(&eu, "SELECT id FROM t WHERE CAST(amount AS BIGINT) = $1", vec![int(value)]).await;
        let wanted = if value == 10 { vec![vec!["1".to_owned()]] } else { Vec::new() };
        assert_eq!(found.unwrap(), wanted);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn files_of_external_tables_change() {
    let (folder, engine) = engine().await;
    let session = admin(&engine);
    let parquet = folder.path().join("p");
    fs::create_dir(&parquet).unwrap();
    write_parquet(&parquet.join("1.parquet"), &[1, 2, 3]);
    let csv = folder.path().join("c.csv");
    fs::write(&csv, "a,b\n1,x\n").unwrap();
    run(
        &session,
        &[
            &format!("CREATE EXTERNAL TABLE p STORED AS PARQUET LOCATION '{}'", parquet.display()),
            &format!("CREATE EXTERNAL TABLE c STORED AS CSV LOCATION '{}'", csv.display()),
        ],
    )
    .await;
    let (sum, text) = ("SELECT count(*), sum(v) FROM p", "SELECT a, b FROM c ORDER BY a");
    assert_eq!(known(&session, sum).await.unwrap(), [["3", "6"]]);
    assert_eq!(known(&session, text).await.unwrap(), [["1", "x"]]);
    let by_value = "SELECT v FROM p WHERE v >= $1";
    for value in [3, 3, 3] {
        assert_eq!(answer(&session, by_value, vec![int(value)]).await.unwrap(), [["3"]]);
    }
    write_parquet(&parquet.join("2.parquet"), &[10]);
    assert_eq!(known(&session, sum).await.unwrap(), [["4", "16"]]);
    assert_eq!(answer(&session, by_value, vec![int(3)]).await.unwrap(), [["10"], ["3"]]);
    write_parquet(&parquet.join("1.parquet"), &[100, 200]);
    assert_eq!(known(&session, sum).await.unwrap(), [["3", "310"]]);
    fs::write(&csv, "a,b\n1,x\n2,y\n").unwrap();
    assert_eq!(known(&session, text).await.unwrap(), [["1", "x"], ["2", "y"]]);
    // A file by its name is read for its columns, too.
    let named = format!("SELECT * FROM '{}'", csv.display());
    assert_eq!(known(&session, &named).await.unwrap().len(), 2);
    fs::write(&csv, "b,c,d\n7,8,9\n").unwrap();
    assert_eq!(known(&session, &named).await.unwrap(), [["7", "8", "9"]]);
    fs::remove_dir_all(&parquet).unwrap();
    assert_eq!(known_code(&session, sum).await, "no_files");
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_of_a_session_change_and_are_its_own() {
    let (_folder, engine) = engine().await;
    let root = admin(&engine);
    run(&root, &["CREATE TABLE points AS SELECT 0 AS id, 'stored' AS name"]).await;
    let session = || admin(&engine).with_temporary_tables(engine.temporary_tables(64 << 20));
    let (one, two) = (session(), session());
    let sql = "SELECT id, name FROM points ORDER BY id";
    assert_eq!(known(&one, sql).await.unwrap(), [["0", "stored"]]);
    run(&one, &["CREATE TEMPORARY TABLE points AS SELECT 1 AS id, 'own' AS name"]).await;
    assert_eq!(known(&one, sql).await.unwrap(), [["1", "own"]]);
    assert_eq!(known(&two, sql).await.unwrap(), [["0", "stored"]]);
    run(&two, &["CREATE TEMPORARY TABLE points AS SELECT 2 AS id, 'other' AS name"]).await;
    assert_eq!(known(&two, sql).await.unwrap(), [["2", "other"]]);
    let by_id = "SELECT name FROM points WHERE id = ?";
    for _ in 0..USES {
        assert_eq!(answer(&one, by_id, vec![int(1)]).await.unwrap(), [["own"]]);
        assert!(answer(&one, by_id, vec![int(2)]).await.unwrap().is_empty());
        assert_eq!(answer(&two, by_id, vec![int(2)]).await.unwrap(), [["other"]]);
    }
    run(&one, &["INSERT INTO points VALUES (3, 'more')"]).await;
    assert_eq!(known(&one, sql).await.unwrap(), [["1", "own"], ["3", "more"]]);
    assert_eq!(answer(&one, by_id, vec![int(3)]).await.unwrap(), [["more"]]);
    // Rows that change, by the statements that change those of any table.
    assert_eq!(rows(&one, "UPDATE points SET name = name || '!' WHERE id = 3").await.unwrap(), [["1"]]);
    assert_eq!(answer(&one, by_id, vec![int(3)]).await.unwrap(), [["more!"]]);
    let merge = "MERGE INTO points USING (VALUES (1, 'merged'), (4, 'new')) AS v(id, name) ON v.id = points.id \
                 WHEN MATCHED THEN UPDATE SET name = v.name WHEN NOT MATCHED THEN INSERT VALUES (v.id, v.name)";
    assert_eq!(rows(&one, merge).await.unwrap(), [["2"]]);
    assert_eq!(rows(&one, "DELETE FROM points WHERE id = 3 RETURNING name").await.unwrap(), [["more!"]]);
    assert_eq!(
        rows(&one, "DELETE FROM points USING (VALUES (7), (9)) v(id) WHERE v.id = points.id").await.unwrap(),
        [["0"]]
    );
    assert_eq!(known(&one, sql).await.unwrap(), [["1", "merged"], ["4", "new"]]);
    assert_eq!(rows(&one, "INSERT INTO points VALUES (5, 'x') RETURNING id + 1").await.unwrap(), [["6"]]);
    assert_eq!(rows(&one, "TRUNCATE points").await.unwrap(), [["3"]]);
    assert_eq!(known(&one, "SELECT count(*) FROM points").await.unwrap(), [["0"]]);
    assert_eq!(known(&root, sql).await.unwrap(), [["0", "stored"]]);
    run(&one, &["DROP TABLE points", "CREATE TEMPORARY TABLE points AS SELECT 'text' AS id, 4 AS name"]).await;
    assert_eq!(known(&one, sql).await.unwrap(), [["text", "4"]]);
    run(&one, &["DROP TABLE points"]).await;
    assert_eq!(known(&one, sql).await.unwrap(), [["0", "stored"]]);
    assert_eq!(known(&root, sql).await.unwrap(), [["0", "stored"]]);
    // Plans over a session's tables go with it.
    let with_session = engine.plan_cache().bytes;
    drop(two);
    assert!(engine.plan_cache().bytes < with_session);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_session_sets_counts() {
    let (_folder, engine) = engine().await;
    let root = admin(&engine);
    run(
        &root,
        &["CREATE DATABASE other", "CREATE TABLE t AS SELECT 1 AS a", "CREATE TABLE other.t AS SELECT 2 AS a, 3 AS b"],
    )
    .await;
    let session = admin(&engine).with_variables(Arc::default());
    assert_eq!(known(&session, "SELECT * FROM t").await.unwrap(), [["1"]]);
    run(&session, &["USE other"]).await;
    assert_eq!(known(&session, "SELECT * FROM t").await.unwrap(), [["2", "3"]]);
    assert_eq!(known(&session, "SELECT current_schema()").await.unwrap(), [["other"]]);
    assert_eq!(known(&root, "SELECT * FROM t").await.unwrap(), [["1"]]);
    let name = "SELECT current_setting('application_name')";
    run(&session, &["SET application_name = 'one'"]).await;
    assert_eq!(known(&session, name).await.unwrap(), [["one"]]);
    run(&session, &["SET application_name = 'two'"]).await;
    assert_eq!(known(&session, name).await.unwrap(), [["two"]]);
    for subject in ["anna", "ben"] {
        let session = engine.session(Principal::new(subject, Role::Read), Limits::default());
        assert_eq!(known(&session, "SELECT current_user").await.unwrap(), [[subject]]);
    }
    let write = principal("anna", Role::Write, &[], None);
    let (reads, writes) =
        (engine.session(write.clone(), Limits::default()).read_only(), engine.session(write, Limits::default()));
    assert_eq!(known(&reads, "SELECT count(*) FROM t").await.unwrap(), [["1"]]);
    run(&writes, &["INSERT INTO t VALUES (5)"]).await;
    assert_eq!(known_code(&reads, "INSERT INTO t VALUES (6)").await, "not_allowed");
    assert_eq!(known(&reads, "SELECT count(*) FROM t").await.unwrap(), [["2"]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_time_moves_on() {
    let (_folder, engine) = engine().await;
    let session = admin(&engine);
    run(
        &session,
        &[
            "CREATE TABLE t AS SELECT 1 AS a",
            "CREATE VIEW clock AS SELECT now() AS at",
            "CREATE TABLE u AS SELECT now() AS at",
        ],
    )
    .await;
    for sql in [
        "SELECT CAST(now() AS VARCHAR) AS x",
        "SELECT CAST(now() AS VARCHAR) AS x FROM t",
        "SELECT CAST(at AS VARCHAR) AS x FROM clock",
        "SELECT CAST(now() AS VARCHAR) || CAST(at AS VARCHAR) AS x FROM u",
        "SELECT random() AS x",
        "SELECT random() AS x FROM t",
        "SELECT uuid() AS x FROM t",
        "SELECT CAST(value AS VARCHAR) AS x FROM \
         generate_series(CAST(now() AS TIMESTAMP), CAST(now() AS TIMESTAMP), INTERVAL '1 day') AS s(value)",
    ] {
        let mut seen = BTreeSet::new();
        for _ in 0..USES {
            let found = rows(&session, sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
            seen.insert(found[0][0].clone());
        }
        assert_eq!(seen.len(), USES, "{sql}: {seen:?}");
    }
    let with_value = "SELECT a FROM t WHERE now() < TIMESTAMP '2200-01-01' AND a = $1";
    for _ in 0..USES {
        assert_eq!(answer(&session, with_value, vec![int(1)]).await.unwrap(), [["1"]]);
    }
}

fn write_parquet(path: &Path, values: &[i64]) {
    let column: ArrayRef = Arc::new(Int64Array::from(values.to_vec()));
    let batch = RecordBatch::try_from_iter([("v", column)]).unwrap();
    let mut writer = ArrowWriter::try_new(fs::File::create(path).unwrap(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}
