//! What a caller may not see is answered as what is not there, whatever a statement does to it.

use querent_catalog::{Principal, Role};
use querent_engine::Limits;

use super::{admin, principal, run};
use crate::sql::{engine, rows};

/// Statements about the database `{}`.
const OF_DATABASES: [&str; 16] = [
    "SELECT * FROM {}.t",
    "DROP DATABASE {}",
    "DROP DATABASE {} CASCADE",
    "DROP DATABASE IF EXISTS {}",
    "DROP SCHEMA IF EXISTS {} CASCADE",
    "COMMENT ON DATABASE {} IS 'x'",
    "CREATE TABLE {}.made (a INT)",
    "CREATE VIEW {}.made AS SELECT 1 AS a",
    "CREATE EXTERNAL TABLE {}.made STORED AS CSV LOCATION '/nowhere/x.csv'",
    "DROP TABLE {}.t",
    "DROP TABLE IF EXISTS {}.t",
    "DROP VIEW IF EXISTS {}.t",
    "COMMENT ON TABLE {}.t IS 'x'",
    "ALTER TABLE {}.t ADD COLUMN b INT",
    "INSERT INTO {}.t VALUES (1)",
    "CREATE TABLE pub.made (a INT REFERENCES {}.t(a))",
];
/// Statements about the table `pub.{}`.
const OF_TABLES: [&str; 6] = [
    "SELECT * FROM pub.{}",
    "DROP TABLE pub.{}",
    "DROP TABLE IF EXISTS pub.{}",
    "CREATE TABLE pub.{} (a INT)",
    "COMMENT ON COLUMN pub.{}.a IS 'x'",
    "SELECT * FROM pub.{} UNION SELECT * FROM pub.{}",
];

#[tokio::test(flavor = "multi_thread")]
async fn a_writer_cannot_tell_what_is_hidden_from_what_is_absent() {
    let (_folder, engine) = engine().await;
    let root = admin(&engine);
    run(
        &root,
        &[
            "CREATE DATABASE pub",
            "CREATE DATABASE pubc",
            "CREATE TABLE pub.t AS SELECT 1 AS a",
            "CREATE TABLE pub.tc AS SELECT 1 AS a",
            "CREATE TABLE pubc.t AS SELECT 1 AS a",
            "GRANT SELECT ON pubc.t TO ROLE boss",
            "GRANT SELECT ON pub.t TO ROLE loader",
        ],
    )
    .await;
    let writer = |principal: Principal| engine.session(principal, Limits::default());
    let writer = writer(principal("wes", Role::Write, &["loader"], None));
    let pairs = OF_DATABASES.iter().map(|statement| (statement, "pubc", "pubd"));
    for (statement, hidden, absent) in pairs.chain(OF_TABLES.iter().map(|statement| (statement, "tc", "td"))) {
        let answer = async |name: &str| match rows(&writer, &statement.replace("{}", name)).await {
            Ok(rows) => format!("{rows:?}"),
            Err(error) => format!("{} {}", error.code(), error.to_string().replace(name, "it")),
        };
        assert_eq!(answer(hidden).await, answer(absent).await, "{statement}");
    }
    // Nothing was dropped.
    assert_eq!(rows(&root, "SELECT a FROM pubc.t").await.unwrap(), [["1"]]);
    assert_eq!(rows(&root, "SELECT a FROM pub.tc").await.unwrap(), [["1"]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_definition_has_no_column_that_its_reader_may_not_see() {
    let (_folder, engine) = engine().await;
    let root = admin(&engine);
    run(
        &root,
        &[
            "CREATE TABLE t (id BIGINT, secret BIGINT, note VARCHAR DEFAULT 'secret', PRIMARY KEY (secret))",
            "ALTER TABLE t SET SORTED BY (id, secret, note)",
            "GRANT SELECT (id, note) ON t TO PUBLIC",
        ],
    )
    .await;
    let reader = engine.session(principal("ann", Role::Read, &[], None), Limits::default());
    let shown = rows(&reader, "SHOW CREATE TABLE t").await.unwrap();
    let text = &shown[0][1];
    assert!(text.contains("SORTED BY (\"id\" ASC NULLS LAST)") && !text.contains("\"secret\""), "{text}");
    let whole = rows(&root, "SHOW CREATE TABLE t").await.unwrap();
    assert!(whole[0][1].contains("\"secret\" ASC NULLS LAST, \"note\""), "{whole:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn names_that_are_hidden_take_no_place_among_those_that_are_near() {
    let (_folder, engine) = engine().await;
    let root = admin(&engine);
    run(&root, &["CREATE DATABASE shopz", "CREATE TABLE shopz.ordersz AS SELECT 1 AS a"]).await;
    // More than are looked at, and before the one that is seen.
    for number in 0..120 {
        let database = format!("CREATE DATABASE shop_{number:03}");
        run(&root, &[&database, &format!("CREATE TABLE shopz.orders_{number:03} AS SELECT 1 AS a")]).await;
    }
    run(&root, &["GRANT SELECT ON shopz.ordersz TO ROLE buyer"]).await;
    let buyer = principal("ann", Role::Read, &["buyer"], None).with_databases(["shopz"]);
    let buyer = engine.session(buyer, Limits::default());
    for (statement, near) in [("SELECT * FROM shopz.ordersy", "`ordersz`"), ("SELECT * FROM shopy.ordersz", "`shopz`")]
    {
        let error = rows(&buyer, statement).await.unwrap_err().to_string();
        assert!(error.contains(near), "{statement}: {error}");
    }
}
