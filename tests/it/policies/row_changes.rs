//! DELETE, UPDATE and ALTER TABLE are for those who may change the table and see all of it; policies follow what is renamed.

use std::collections::BTreeMap;
use std::sync::Arc;

use querent_catalog::{NoProgress, Role, TableName};
use querent_engine::{Engine, EngineOptions, ImportRequest, Limits};

use super::{admin, caller, code, principal, run};
use crate::sql::{engine, rows};

const CHANGES: [&str; 5] = [
    "DELETE FROM people WHERE id = 1",
    "UPDATE people SET region = 'EU'",
    "MERGE INTO people USING (SELECT 1 AS id) s ON people.id = s.id WHEN MATCHED THEN DELETE",
    "ALTER TABLE people RENAME COLUMN region TO area",
    "ALTER TABLE people RENAME TO persons",
];

#[tokio::test(flavor = "multi_thread")]
async fn rows_that_are_not_seen_are_not_changed() {
    let (_folder, engine) = engine().await;
    let root = admin(&engine);
    let setup = [
        "CREATE TABLE people AS SELECT * FROM (VALUES (1, 'EU', '123'), (2, 'US', '456')) v(id, region, ssn)",
        "GRANT SELECT, INSERT ON people TO ROLE clerk",
        "GRANT SELECT, MODIFY ON DATABASE default TO ROLE owner",
    ];
    run(&root, &setup).await;
    let writer = |roles: &[&str]| engine.session(principal("anna", Role::Write, roles, None), Limits::default());
    let before = engine.catalog().snapshot().await.unwrap();
    for change in CHANGES {
        assert_eq!(code(&writer(&["clerk"]), change).await, "not_allowed", "{change}");
        assert_eq!(code(&caller(&engine, "ben", &["owner"], None), change).await, "not_allowed", "{change}");
        assert_eq!(code(&writer(&["owner"]).read_only(), change).await, "not_allowed", "{change}");
    }
    run(&root, &["CREATE ROW POLICY eu ON people USING (region = 'EU') TO ROLE owner"]).await;
    for change in CHANGES {
        assert_eq!(code(&writer(&["owner"]), change).await, "not_allowed", "{change}");
    }
    run(&root, &["DROP ROW POLICY eu ON people", "CREATE MASK hidden ON people(ssn) USING ('***') TO ROLE owner"])
        .await;
    for change in CHANGES {
        assert_eq!(code(&writer(&["owner"]), change).await, "not_allowed", "{change}");
    }
    assert_eq!(engine.catalog().snapshot().await.unwrap(), before);
    run(&root, &["DROP MASK hidden ON people"]).await;
    assert_eq!(rows(&writer(&["owner"]), "UPDATE people SET region = 'AS' WHERE id = 2").await.unwrap(), [["1"]]);
    // A condition that reads what is hidden reads the part that is there.
    run(
        &root,
        &[
            "CREATE TABLE done AS SELECT 1 AS id UNION ALL SELECT 2",
            "CREATE ROW POLICY asia ON people USING (region = 'AS') TO ROLE owner",
        ],
    )
    .await;
    let delete = "DELETE FROM done WHERE id IN (SELECT id FROM people)";
    assert_eq!(rows(&writer(&["owner"]), delete).await.unwrap(), [["1"]]);
    assert_eq!(rows(&root, "SELECT id FROM done").await.unwrap(), [["1"]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_change_nothing_is_not_told_that_a_part_is_hidden() {
    let (_folder, engine) = engine().await;
    let root = admin(&engine);
    let setup = [
        "CREATE TABLE people AS SELECT * FROM (VALUES (1, 'EU', '123'), (2, 'US', '456')) v(id, region, ssn)",
        "CREATE TABLE guests AS SELECT * FROM people",
        "GRANT SELECT (id, region) ON people TO PUBLIC",
        "GRANT SELECT ON guests TO PUBLIC",
        "CREATE ROW POLICY eu ON people USING (region = 'EU') TO PUBLIC",
    ];
    run(&root, &setup).await;
    let others = [
        "ANALYZE people",
        "OPTIMIZE people",
        "TRUNCATE people",
        "UPDATE people SET region = 'EU' RETURNING id",
        "ALTER TABLE people ALTER COLUMN region SET NOT NULL",
        "INSERT INTO people (id) VALUES (3)",
    ];
    let reader = caller(&engine, "ben", &[], None);
    // A writer to whom MODIFY is not granted.
    let clerk = engine.session(principal("anna", Role::Write, &[], None), Limits::default());
    for change in CHANGES.into_iter().chain(others) {
        for session in [&reader, &clerk] {
            let told = rows(session, change).await.unwrap_err().to_string();
            let of_whole = rows(session, &change.replace("people", "guests")).await.unwrap_err().to_string();
            assert_eq!(told.replace("people", "guests"), of_whole, "{change}");
        }
    }
    assert_eq!(rows(&root, "SELECT count(*) FROM people").await.unwrap(), [["2"]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn policies_follow_what_we_rename() {
    let (_folder, engine) = engine().await;
    let root = admin(&engine);
    run(
        &root,
        &[
            "CREATE TABLE people AS SELECT * FROM (VALUES (1, 'EU', '123'), (2, 'US', '456')) v(id, region, ssn)",
            "CREATE ROW POLICY eu ON people USING (people.region = 'EU') TO PUBLIC",
            "CREATE MASK hidden ON people(ssn) USING ('***') TO PUBLIC",
            "GRANT SELECT ON people TO PUBLIC",
        ],
    )
    .await;
    let anna = caller(&engine, "anna", &[], None);
    assert_eq!(rows(&anna, "SELECT id, ssn FROM people").await.unwrap(), [["1", "***"]]);
    run(&root, &["ALTER TABLE people RENAME COLUMN ssn TO tax_id", "ALTER TABLE people RENAME TO persons"]).await;
    assert_eq!(rows(&anna, "SELECT id, tax_id FROM persons").await.unwrap(), [["1", "***"]]);
    // A condition over a column that is gone would hide the table.
    let error = rows(&root, "ALTER TABLE persons DROP COLUMN region").await.unwrap_err();
    assert_eq!(error.code(), "invalid_name");
    assert!(error.to_string().contains("row policy `eu` names it"), "{error}");
    run(&root, &["DROP ROW POLICY eu ON persons", "ALTER TABLE persons DROP COLUMN region"]).await;
    assert_eq!(rows(&anna, "SELECT id FROM persons ORDER BY id").await.unwrap(), [["1"], ["2"]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_policy_says_stays_when_columns_change_their_names() {
    let (_folder, engine) = engine().await;
    let root = admin(&engine);
    run(
        &root,
        &[
            "CREATE TABLE o AS SELECT * FROM (VALUES (1, 'anna', 'bob', 'a@x'), (2, 'bob', 'anna', 'b@x')) v(id, owner, buyer, mail)",
            "CREATE ROW POLICY own ON o USING (owner = current_subject()) TO SUBJECT anna",
            "CREATE MASK hidden ON o(mail) USING ('***' || substr(mail, 2)) TO SUBJECT anna",
            "GRANT SELECT ON o TO SUBJECT anna",
        ],
    )
    .await;
    let anna = caller(&engine, "anna", &[], None);
    assert_eq!(rows(&anna, "SELECT id, mail FROM o").await.unwrap(), [["1", "***@x"]]);
    for (from, to) in [("owner", "x"), ("buyer", "owner"), ("x", "buyer"), ("mail", "e mail")] {
        run(&root, &[&format!("ALTER TABLE o RENAME COLUMN {from} TO \"{to}\"")]).await;
    }
    assert_eq!(rows(&anna, "SELECT id, \"e mail\" FROM o").await.unwrap(), [["1", "***@x"]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_that_are_set_aside_go_only_where_their_caller_may_write() {
    let folder = tempfile::tempdir().unwrap();
    let files = folder.path().join("files");
    std::fs::create_dir(&files).unwrap();
    std::fs::write(files.join("t.csv"), "a\n1\nx\n").unwrap();
    let options =
        EngineOptions { external_roots: vec![files.clone()], ..EngineOptions::new(folder.path().join("data")) };
    let engine = Engine::open_with(options).await.unwrap();
    let root = admin(&engine);
    let import = async |roles: &[&str], table: &str, rejects: &str| {
        let options = [("ignore_errors", "true"), ("types", "a=BIGINT"), ("rejects", rejects)];
        let request = ImportRequest {
            source: files.join("t.csv").display().to_string(),
            format: None,
            options: options
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect::<BTreeMap<_, _>>(),
            table: TableName::new("default", table),
            external: false,
            if_exists: None,
        };
        let imported = engine.import(&principal("anna", Role::Write, roles, None), request, Arc::new(NoProgress)).await;
        imported.map_err(|error| error.code())
    };
    // A table of the administrator's, which is one of rejects.
    import(&[], "first", "kept").await.unwrap();
    let grants = [
        "CREATE TABLE t (a BIGINT)",
        "GRANT SELECT, INSERT ON t TO ROLE clerk",
        "GRANT SELECT, MODIFY, INSERT ON DATABASE default TO ROLE owner",
    ];
    run(&root, &grants).await;
    for rejects in ["kept", "made"] {
        assert_eq!(import(&["clerk"], "t", rejects).await.unwrap_err(), "not_allowed", "{rejects}");
    }
    assert_eq!(rows(&root, "SELECT count(*) FROM t").await.unwrap(), [["0"]]);
    assert_eq!(rows(&root, "SELECT count(*) FROM kept").await.unwrap(), [["1"]]);
    run(&root, &["GRANT SELECT, INSERT ON kept TO ROLE clerk"]).await;
    assert_eq!(import(&["clerk"], "t", "kept").await.unwrap().rows, Some(1));
    assert_eq!(rows(&root, "SELECT count(*) FROM kept").await.unwrap(), [["2"]]);
    // Nor do they take the place of the table that is imported.
    assert_eq!(import(&["owner"], "fresh", "Fresh").await.unwrap_err(), "already_exists");
    assert_eq!(code(&root, "SELECT * FROM fresh").await, "table_not_found");
}
