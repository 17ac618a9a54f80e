//! Where the files of external tables lie: errors tell administrators, and others the names of the table and the file.

use querent_catalog::{Principal, Role};
use querent_engine::{Engine, EngineOptions, Limits};

use super::admin;
use crate::policy::engine_with_a_root;
use crate::sql::rows;

#[tokio::test(flavor = "multi_thread")]
async fn where_files_lie_is_told_to_administrators_only() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("allowed/secret-place");
    for dir in ["rows", "gone", "parquet"] {
        std::fs::create_dir_all(place.join(dir)).unwrap();
        std::fs::write(place.join(dir).join("a.csv"), "x\n1\n").unwrap();
    }
    let mut options = EngineOptions::new(folder.path().join("data"));
    options.external_roots = vec![folder.path().join("allowed")];
    let engine = Engine::open_with(options).await.unwrap();
    let administrator = admin(&engine);
    let made = format!("COPY (SELECT 1 AS x) TO '{}/parquet/p.parquet'", place.display());
    rows(&administrator, &made).await.unwrap();
    for (table, format, location) in [
        ("r", "CSV", "rows"),
        ("g", "CSV", "gone"),
        ("one", "CSV", "gone/a.csv"),
        ("p", "PARQUET", "parquet/p.parquet"),
    ] {
        let create =
            format!("CREATE EXTERNAL TABLE {table} STORED AS {format} LOCATION '{}/{location}'", place.display());
        rows(&administrator, &create).await.unwrap();
    }
    std::fs::write(place.join("rows/a.csv"), "x\n1\nnot a number\n").unwrap();
    std::fs::remove_file(place.join("gone/a.csv")).unwrap();
    std::fs::write(place.join("parquet/p.parquet"), "PAR1 is not all of a file PAR1").unwrap();
    for role in [Role::Read, Role::Write, Role::Admin] {
        let session = engine.session(Principal::new("somebody", role), Limits::default());
        for (table, code, told) in [
            ("r", "bad_data", "a.csv, line 3"),
            ("g", "no_files", "gone (table `default.g`)"),
            ("one", "no_files", "a.csv, which is not there"),
            ("p", "bad_data", "p.parquet"),
        ] {
            let error = rows(&session, &format!("SELECT sum(x) FROM {table}")).await.unwrap_err();
            let text = error.to_string();
            assert_eq!(error.code(), code, "{text}");
            let says_place = text.contains("secret-place");
            assert_eq!(says_place, role == Role::Admin, "{text}");
            assert!(says_place || (text.contains(told) && text.contains(&format!("`default.{table}`"))), "{text}");
        }
    }
    // A caller may be told what it says itself.
    let writer = engine.session(Principal::new("writer", Role::Write), Limits::default());
    let read = format!("SELECT * FROM '{}/rows/b.csv'", place.display());
    assert!(rows(&writer, &read).await.unwrap_err().to_string().contains("secret-place/rows/b.csv"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_administrator_of_some_databases_has_no_more_of_the_disk_than_a_writer() {
    let (_folder, engine, allowed, outside) = engine_with_a_root().await;
    let some = Principal::new("some", Role::Admin).with_databases(["default"]);
    let some = engine.session(some, Limits::default());
    let inside = format!("SELECT x FROM '{}/a.csv'", allowed.display());
    let beyond = format!("SELECT x FROM '{}/a.csv'", outside.display());
    assert_eq!(rows(&some, &inside).await.unwrap(), [["7"]]);
    assert_eq!(rows(&some, &beyond).await.unwrap_err().code(), "location_not_allowed");
    let table = format!("CREATE EXTERNAL TABLE e STORED AS CSV LOCATION '{}/a.csv'", outside.display());
    assert_eq!(rows(&some, &table).await.unwrap_err().code(), "location_not_allowed");
    let copy = format!("COPY (SELECT 1 AS x) TO '{}/made.csv'", allowed.display());
    assert_eq!(rows(&some, &copy).await.unwrap_err().code(), "not_allowed");
    assert!(!allowed.join("made.csv").exists());
    assert_eq!(rows(&admin(&engine), &beyond).await.unwrap(), [["7"]]);
    assert_eq!(rows(&admin(&engine), &copy).await.unwrap(), [["1"]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_that_reads_another_table_is_refused_by_name() {
    let (_folder, engine) = crate::sql::engine().await;
    let root = admin(&engine);
    for statement in ["CREATE TABLE t AS SELECT 1 AS a", "CREATE TABLE u AS SELECT 1 AS a"] {
        rows(&root, statement).await.unwrap();
    }
    for statement in [
        "CREATE ROW POLICY p ON t USING (a IN (SELECT a FROM u)) TO PUBLIC",
        "CREATE MASK m ON t(a) USING ((SELECT max(a) FROM u)) TO PUBLIC",
    ] {
        let refused = rows(&root, statement).await.unwrap_err();
        assert_eq!(refused.code(), "unsupported", "{statement}: {refused}");
        assert!(refused.to_string().contains("reads `default.u`"), "{refused}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_value_of_a_hidden_row_is_not_told() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.csv");
    std::fs::write(&file, "region,amount\nEU,5\nUS,6\n").unwrap();
    let engine = Engine::open(folder.path().join("data")).await.unwrap();
    let root = admin(&engine);
    let table = format!("CREATE EXTERNAL TABLE t STORED AS CSV LOCATION '{}'", file.display());
    for statement in [table.as_str(), "CREATE ROW POLICY eu ON t USING (region = 'EU') TO PUBLIC"] {
        rows(&root, statement).await.unwrap();
    }
    let reader = engine.session(Principal::new("ann", Role::Read), Limits::default());
    assert_eq!(rows(&reader, "SELECT sum(amount) FROM t").await.unwrap(), [["5"]]);
    std::fs::write(&file, "region,amount\nEU,5\nUS,hush-6\n").unwrap();
    let told = rows(&reader, "SELECT sum(amount) FROM t").await.unwrap_err();
    assert_eq!(told.code(), "bad_data");
    assert!(!told.to_string().contains("hush") && !told.to_string().contains("line"), "{told}");
    let told = rows(&root, "SELECT sum(amount) FROM t").await.unwrap_err().to_string();
    assert!(told.contains("line 3") && told.contains("hush-6"), "{told}");
}
