//! Grants, row policies and masks: what is not granted is not there, through any door; and a caller's answers are those of an
//! administrator of a catalog that has no more than the caller sees.

mod doors;
mod hidden_names;
mod hidden_values;
mod property;
mod renames;
mod row_changes;
mod stored_runs;
mod table_functions;
mod told_places;

use querent_catalog::{Identity, Principal, Role};
use querent_engine::{Engine, Limits, Session};

use crate::sql::{engine, rows};

/// A caller with role `read`, with these policy roles.
pub(crate) fn caller(engine: &Engine, subject: &str, roles: &[&str], region: Option<&str>) -> Session {
    engine.session(principal(subject, Role::Read, roles, region), Limits::default())
}

pub(crate) fn principal(subject: &str, role: Role, roles: &[&str], region: Option<&str>) -> Principal {
    let identity = Identity {
        roles: roles.iter().map(|role| role.to_string()).collect(),
        attributes: region.map(|region| ("region".to_owned(), region.to_owned())).into_iter().collect(),
        ..Identity::default()
    };
    Principal::new(subject, role).with_identity(identity)
}

pub(crate) async fn run(session: &Session, statements: &[&str]) {
    for statement in statements {
        rows(session, statement).await.unwrap_or_else(|error| panic!("{statement}: {error}"));
    }
}

pub(crate) fn admin(engine: &Engine) -> Session {
    engine.session(Principal::local_admin(), Limits::default())
}

async fn code(session: &Session, sql: &str) -> &'static str {
    match rows(session, sql).await {
        Ok(rows) => panic!("{sql}: {rows:?}"),
        Err(error) => error.code(),
    }
}

const SETUP: [&str; 5] = [
    "CREATE DATABASE sales",
    "CREATE DATABASE hr",
    "CREATE TABLE sales.orders AS SELECT * FROM (VALUES (1, 'EU', 10.0, 'a@x.org'), (2, 'US', 20.0, 'b@x.org'),
        (3, 'EU', 0.0, 'c@x.org'), (4, NULL, 40.0, NULL)) AS v(id, region, amount, mail)",
    "CREATE TABLE hr.people AS SELECT 1 AS id, 'Ann' AS name, '123' AS ssn",
    "CREATE TABLE open AS SELECT 1 AS one",
];

#[tokio::test(flavor = "multi_thread")]
async fn without_grants_everything_is_as_it_was() {
    let (_folder, engine) = engine().await;
    let root = admin(&engine);
    run(&root, &SETUP).await;
    let anna = caller(&engine, "anna", &[], None);
    assert_eq!(rows(&anna, "SELECT count(*) FROM sales.orders").await.unwrap(), [["4"]]);
    assert_eq!(engine.catalog().policies().current().version, 0);
    assert_eq!(code(&anna, "GRANT SELECT ON sales.orders TO PUBLIC").await, "not_allowed");
    assert_eq!(code(&anna, "SHOW GRANTS").await, code(&anna, "SELECT * FROM system.nothing").await);
    assert_eq!(code(&anna, "SELECT * FROM system.policies").await, "table_not_found");
    assert!(rows(&root, "SHOW GRANTS").await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_a_grant_names_has_only_what_is_granted() {
    let (_folder, engine) = engine().await;
    let root = admin(&engine);
    run(&root, &SETUP).await;
    run(
        &root,
        &["CREATE TABLE sales.hidden AS SELECT 1 AS secret_column", "GRANT SELECT ON sales.orders TO ROLE analyst"],
    )
    .await;
    let (anna, ben) = (caller(&engine, "anna", &["analyst"], None), caller(&engine, "ben", &[], None));
    assert_eq!(rows(&anna, "SELECT count(*) FROM sales.orders").await.unwrap(), [["4"]]);
    assert_eq!(code(&anna, "SELECT * FROM sales.hidden").await, "table_not_found");
    assert_eq!(code(&ben, "SELECT * FROM sales.orders").await, "database_not_found");
    // Databases that no grant names are as they were.
    assert_eq!(rows(&ben, "SELECT name FROM hr.people").await.unwrap(), [["Ann"]]);
    let tables = "SELECT name FROM system.tables WHERE database = 'sales'";
    assert_eq!(rows(&anna, tables).await.unwrap(), [["orders"]]);
    assert!(rows(&ben, tables).await.unwrap().is_empty());
    let databases = "SELECT name FROM system.databases ORDER BY name";
    assert_eq!(rows(&anna, databases).await.unwrap(), [["default"], ["hr"], ["sales"]]);
    assert_eq!(rows(&ben, databases).await.unwrap(), [["default"], ["hr"]]);
    let columns = "SELECT column_name FROM information_schema.columns WHERE table_schema = 'sales' ORDER BY 1";
    assert_eq!(rows(&anna, columns).await.unwrap(), [["amount"], ["id"], ["mail"], ["region"]]);
    // A hint names nothing that is hidden.
    let error = rows(&anna, "SELECT * FROM sales.hiddem").await.unwrap_err();
    assert!(!error.to_string().contains("`hidden`"), "{error}");
    // Revoking does not open what was governed.
    run(&root, &["REVOKE SELECT ON sales.orders FROM ROLE analyst"]).await;
    assert_eq!(code(&anna, "SELECT * FROM sales.orders").await, "database_not_found");
    run(&root, &["GRANT SELECT ON DATABASE sales TO PUBLIC"]).await;
    assert_eq!(rows(&ben, "SELECT count(*) FROM sales.hidden").await.unwrap(), [["1"]]);
    run(&root, &["REVOKE ALL ON ALL DATABASES FROM PUBLIC"]).await;
    assert_eq!(code(&ben, "SELECT name FROM hr.people").await, "database_not_found");
    assert_eq!(rows(&ben, "SELECT count(*) FROM sales.hidden").await.unwrap(), [["1"]]);
    assert_eq!(rows(&ben, databases).await.unwrap(), [["sales"]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn columns_that_are_not_granted_are_not_there() {
    let (_folder, engine) = engine().await;
    let root = admin(&engine);
    run(&root, &SETUP).await;
    run(
        &root,
        &[
            "CREATE VIEW hr.all_people AS SELECT * FROM hr.people",
            "GRANT SELECT (Id, name) ON hr.people TO ROLE analyst",
            "GRANT SELECT ON hr.all_people TO ROLE analyst",
        ],
    )
    .await;
    let anna = caller(&engine, "anna", &["analyst"], None);
    assert_eq!(rows(&anna, "SELECT * FROM hr.people").await.unwrap(), [["1", "Ann"]]);
    assert_eq!(code(&anna, "SELECT ssn FROM hr.people").await, "column_not_found");
    assert_eq!(code(&anna, "SELECT id FROM hr.people WHERE ssn = '123'").await, "column_not_found");
    let described = rows(&anna, "DESCRIBE hr.people").await.unwrap();
    assert!(!format!("{described:?}").contains("ssn"), "{described:?}");
    // What a view is made of would tell.
    assert_eq!(code(&anna, "SELECT * FROM hr.all_people").await, "table_not_found");
    assert_eq!(code(&root, "GRANT SELECT (nothing) ON hr.people TO PUBLIC").await, "column_not_found");
    assert_eq!(code(&root, "REVOKE SELECT (name) ON hr.all_people FROM ROLE analyst").await, "invalid_object");
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_and_values_are_those_of_the_policies() {
    let (_folder, engine) = engine().await;
    let root = admin(&engine);
    run(&root, &SETUP).await;
    run(
        &root,
        &[
            "CREATE ROW POLICY own_region ON sales.orders USING (region = attribute('region')) TO ROLE analyst",
            "CREATE ROW POLICY everything ON sales.orders USING (true) TO SUBJECT auditor",
            "CREATE MASK mail ON sales.orders(mail) USING ('***' || substr(mail, 2)) TO PUBLIC EXCEPT SUBJECT auditor",
        ],
    )
    .await;
    let anna = caller(&engine, "anna", &["analyst"], Some("EU"));
    let none = caller(&engine, "nora", &["analyst"], None);
    let ben = caller(&engine, "ben", &[], Some("EU"));
    let auditor = caller(&engine, "auditor", &[], None);
    let all = "SELECT id, mail FROM sales.orders ORDER BY id";
    assert_eq!(rows(&anna, all).await.unwrap(), [["1", "***@x.org"], ["3", "***@x.org"]]);
    assert!(rows(&none, all).await.unwrap().is_empty());
    assert!(rows(&ben, all).await.unwrap().is_empty());
    assert_eq!(rows(&auditor, all).await.unwrap().len(), 4);
    assert_eq!(rows(&root, all).await.unwrap()[0], ["1", "a@x.org"]);
    assert_eq!(rows(&anna, "SELECT count(*), max(amount) FROM sales.orders").await.unwrap(), [["2", "10.0"]]);
    // A condition that fails on a hidden row says nothing: id 3 is the only visible one with amount 0.
    assert_eq!(rows(&anna, "SELECT id FROM sales.orders WHERE 1 / (id - 2) > -5 ORDER BY id").await.unwrap().len(), 2);
    assert_eq!(rows(&anna, "SELECT id FROM sales.orders WHERE mail LIKE 'a%'").await.unwrap().len(), 0);
    assert!(rows(&anna, "SELECT id FROM sales.orders WHERE 1 / (id - 3) > 0").await.is_err());
    // Nor does anything that knows the files.
    assert_eq!(code(&anna, "EXPLAIN ANALYZE SELECT * FROM sales.orders").await, "not_allowed");
    assert_eq!(
        code(&anna, "EXPLAIN SELECT id FROM sales.orders WHERE id IN (SELECT id FROM sales.orders)").await,
        "not_allowed"
    );
    let counted = rows(&anna, "SELECT row_count FROM system.tables WHERE name = 'orders'").await.unwrap();
    assert_ne!(counted, [["4"]]);
    let kql = anna.kql("database('sales').orders | count").await.unwrap().collect().await.unwrap();
    assert!(format!("{:?}", kql.0).contains('2'), "{kql:?}");
    let sampled = anna.sample(&querent_catalog::TableName::new("sales", "orders"), 100).await.unwrap();
    assert_eq!(sampled.collect().await.unwrap().0.iter().map(|batch| batch.num_rows()).sum::<usize>(), 2);
    // A view reads what its caller sees.
    run(&root, &["CREATE VIEW sales.big AS SELECT id FROM sales.orders WHERE amount >= 10"]).await;
    assert_eq!(rows(&anna, "SELECT * FROM sales.big").await.unwrap(), [["1"]]);
    // What is wrong is refused when it is made.
    for (statement, expected) in [
        ("CREATE ROW POLICY own_region ON sales.orders USING (true) TO PUBLIC", "already_exists"),
        ("CREATE ROW POLICY p ON sales.orders USING (nothing = 1) TO PUBLIC", "column_not_found"),
        ("CREATE ROW POLICY p ON sales.orders USING (id) TO PUBLIC", "sql_plan_error"),
        ("CREATE ROW POLICY p ON sales.big USING (true) TO PUBLIC", "unsupported"),
        ("CREATE ROW POLICY p ON sales.nothing USING (true) TO PUBLIC", "table_not_found"),
        ("CREATE MASK m ON sales.orders(nothing) USING (1) TO PUBLIC", "column_not_found"),
        ("CREATE MASK m ON sales.orders(id) USING ('words') TO PUBLIC", "sql_plan_error"),
        ("CREATE ROW POLICY p ON sales.orders USING (row_number() OVER () = 1) TO PUBLIC", "sql_plan_error"),
        ("CREATE MASK m ON sales.orders(id) USING (unnest([1, 2])) TO PUBLIC", "sql_plan_error"),
        ("DROP MASK m ON sales.orders", "object_not_found"),
    ] {
        assert_eq!(code(&root, statement).await, expected, "{statement}");
    }
    run(&root, &["DROP ROW POLICY own_region ON sales.orders", "DROP ROW POLICY everything ON sales.orders"]).await;
    assert_eq!(rows(&ben, "SELECT count(*) FROM sales.orders").await.unwrap(), [["4"]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_over_a_part_of_a_table_say_what_helps() {
    let (_folder, engine) = engine().await;
    let root = admin(&engine);
    run(&root, &SETUP).await;
    run(
        &root,
        &[
            "CREATE ROW POLICY eu ON sales.orders USING (region = 'EU') TO PUBLIC",
            "CREATE MASK hush ON hr.people(ssn) USING ('hidden words') TO PUBLIC",
            "CREATE OR REPLACE TABLE hr.people AS SELECT 1 AS id, 'Ann' AS name, 123 AS ssn",
        ],
    )
    .await;
    let anna = caller(&engine, "anna", &[], None);
    let unknown = rows(&anna, "SELECT zzz FROM sales.orders").await.unwrap_err().to_string();
    assert_eq!(unknown.matches("region").count(), 1, "{unknown}");
    // The column has another type since: the mask is named, and not what it says.
    let unfit = rows(&anna, "SELECT ssn FROM hr.people").await.unwrap_err();
    let text = unfit.to_string();
    assert_eq!(unfit.code(), "not_allowed", "{text}");
    assert!(text.contains("`hush`") && text.contains("administrator") && !text.contains("hidden words"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn writing_needs_what_is_granted() {
    let (_folder, engine) = engine().await;
    let root = admin(&engine);
    run(&root, &SETUP).await;
    run(
        &root,
        &[
            "CREATE TABLE sales.log AS SELECT 1 AS id",
            "GRANT SELECT ON DATABASE sales TO PUBLIC",
            "GRANT INSERT ON sales.log TO ROLE loader",
            "GRANT MODIFY ON DATABASE sales TO ROLE owner",
            "CREATE ROW POLICY some ON sales.orders USING (id = 1) TO PUBLIC",
        ],
    )
    .await;
    let as_writer = |roles: &[&str]| engine.session(principal("w", Role::Write, roles, None), Limits::default());
    let (nobody, loader, owner) = (as_writer(&[]), as_writer(&["loader"]), as_writer(&["owner"]));
    for statement in [
        "INSERT INTO sales.log VALUES (2)",
        "INSERT OVERWRITE sales.log VALUES (2)",
        "DROP TABLE sales.log",
        "CREATE TABLE sales.mine AS SELECT 1 AS a",
        "CREATE OR REPLACE TABLE sales.log AS SELECT 1 AS a",
        "CREATE VIEW sales.v AS SELECT 1 AS a",
        "COMMENT ON TABLE sales.log IS 'mine'",
        "DROP DATABASE sales CASCADE",
    ] {
        assert_eq!(code(&nobody, statement).await, "not_allowed", "{statement}");
    }
    run(&loader, &["INSERT INTO sales.log VALUES (2)"]).await;
    assert_eq!(code(&loader, "INSERT OVERWRITE sales.log VALUES (2)").await, "not_allowed");
    run(
        &owner,
        &["CREATE TABLE sales.mine AS SELECT 1 AS a", "COMMENT ON TABLE sales.mine IS 'mine'", "DROP TABLE sales.mine"],
    )
    .await;
    // Whoever sees a part of a table does not replace or remove the other part.
    for statement in ["DROP TABLE sales.orders", "CREATE OR REPLACE TABLE sales.orders AS SELECT 1 AS a"] {
        assert_eq!(code(&owner, statement).await, "not_allowed", "{statement}");
    }
    // Nor with the database that it is in.
    assert_eq!(code(&owner, "DROP DATABASE sales CASCADE").await, "not_allowed");
    assert_eq!(rows(&root, "SELECT count(*) FROM sales.orders").await.unwrap(), [["4"]]);
    // Elsewhere a writer writes.
    run(&nobody, &["CREATE TABLE mine AS SELECT 1 AS a"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_holds_after_a_restart_and_its_versions_are_kept() {
    let (folder, engine) = engine().await;
    let root = admin(&engine);
    run(&root, &SETUP).await;
    run(
        &root,
        &[
            "GRANT SELECT ON sales.orders TO ROLE analyst",
            "CREATE ROW POLICY p ON sales.orders USING (id < 3) TO PUBLIC",
        ],
    )
    .await;
    let versions = engine.catalog().policies().versions(10).await.unwrap();
    let statements: Vec<&str> = versions.iter().map(|version| version.statement.as_str()).collect();
    assert_eq!(
        statements,
        [
            "CREATE ROW POLICY p ON sales.orders USING (id < 3) TO PUBLIC",
            "GRANT SELECT ON sales.orders TO ROLE analyst"
        ]
    );
    engine.close().await.unwrap();
    drop((root, engine));
    let engine = Engine::open(folder.path().join("data")).await.unwrap();
    let anna = caller(&engine, "anna", &["analyst"], None);
    assert_eq!(rows(&anna, "SELECT count(*) FROM sales.orders").await.unwrap(), [["2"]]);
    assert_eq!(code(&caller(&engine, "ben", &[], None), "SELECT 1 FROM sales.orders").await, "database_not_found");
    let shown = rows(&admin(&engine), "SHOW ROW POLICIES").await.unwrap();
    assert_eq!(shown[0][..3], ["p", "\"sales\".\"orders\"", "id < 3"]);
}
