//! What DuckDB renames keeps its policies: they are about the table and the column, not about what these were called.

use std::collections::BTreeSet;
use std::time::Duration;

use querent_catalog::policy::{Grantee, Mask, PolicyDocument, PolicyEdit};
use querent_catalog::{ColumnProfile, LeasedWork, Principal, TableName, TableProfile};
use querent_engine::Session;

use super::{admin, caller, run};
use crate::duckdb::duckdb;
use crate::sql::{engine, rows};

#[tokio::test(flavor = "multi_thread")]
async fn policies_follow_what_duckdb_renames() {
    let (folder, engine) = engine().await;
    let root = admin(&engine);
    run(
        &root,
        &[
            "CREATE TABLE people AS SELECT * FROM (VALUES (1, 'EU', '123'), (2, 'US', '456')) v(id, region, ssn)",
            "CREATE TABLE pay AS SELECT * FROM (VALUES (1, 10.5)) v(id, amount)",
            "CREATE ROW POLICY eu ON people USING (region = 'EU') TO PUBLIC",
            "CREATE MASK hidden ON people(ssn) USING ('***') TO PUBLIC",
            "GRANT SELECT (id) ON pay TO PUBLIC",
            "GRANT SELECT ON people TO PUBLIC",
        ],
    )
    .await;
    let anna = caller(&engine, "anna", &[], None);
    assert_eq!(rows(&anna, "SELECT id, ssn FROM people").await.unwrap(), [["1", "***"]]);
    let statements = [
        "USE lake.\"default\"",
        "ALTER TABLE people RENAME COLUMN ssn TO tax_id",
        "ALTER TABLE people RENAME TO persons",
        "ALTER TABLE pay RENAME COLUMN id TO nr",
    ];
    duckdb(&folder.path().join("data"), "", &statements);
    assert_eq!(rows(&anna, "SELECT id, tax_id FROM persons").await.unwrap(), [["1", "***"]]);
    assert_eq!(rows(&anna, "SELECT * FROM pay").await.unwrap(), [["1"]]);
    // So do conditions.
    duckdb(
        &folder.path().join("data"),
        "",
        &["USE lake.\"default\"", "ALTER TABLE persons RENAME COLUMN region TO area"],
    );
    assert_eq!(rows(&anna, "SELECT id, area FROM persons").await.unwrap(), [["1", "EU"]]);
    // One over a column that is gone hides the table rather than open it.
    duckdb(&folder.path().join("data"), "", &["USE lake.\"default\"", "ALTER TABLE persons DROP COLUMN area"]);
    assert!(rows(&anna, "SELECT id FROM persons").await.is_err());
    assert_eq!(rows(&root, "SELECT count(*) FROM persons").await.unwrap(), [["2"]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_that_change_names_with_each_other_keep_their_own_policies() {
    let (folder, engine) = engine().await;
    let root = admin(&engine);
    run(
        &root,
        &[
            "CREATE TABLE known AS SELECT * FROM (VALUES (1, 'EU'), (2, 'US')) v(id, region)",
            "CREATE TABLE secret AS SELECT 3 AS id, 'EU' AS region",
            "GRANT SELECT ON known TO PUBLIC",
            "CREATE ROW POLICY eu ON known USING (known.region = 'EU') TO PUBLIC",
        ],
    )
    .await;
    let anna = caller(&engine, "anna", &[], None);
    assert_eq!(rows(&anna, "SELECT id FROM known").await.unwrap(), [["1"]]);
    let statements = [
        "USE lake.\"default\"",
        "ALTER TABLE known RENAME TO passing",
        "ALTER TABLE secret RENAME TO known",
        "ALTER TABLE passing RENAME TO secret",
    ];
    duckdb(&folder.path().join("data"), "", &statements);
    assert_eq!(rows(&anna, "SELECT id FROM secret").await.unwrap(), [["1"]]);
    assert_eq!(rows(&anna, "SELECT id FROM known").await.unwrap_err().code(), "table_not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn values_of_a_column_that_duckdb_renames_are_not_told_under_its_old_name() {
    let (folder, engine) = engine().await;
    let root = admin(&engine);
    run(
        &root,
        &[
            "CREATE TABLE people AS SELECT 'Ann' AS name, 'SECRET' AS ssn",
            "CREATE MASK hidden ON people(ssn) USING ('***') TO PUBLIC",
        ],
    )
    .await;
    engine.wait_for_profiles(Duration::from_secs(20)).await;
    let anna = caller(&engine, "anna", &[], None);
    let values = engine.catalog().values();
    let found = async |session: &Session| {
        let (hits, _) = values.find(session.principal(), None, &["SECRET".to_owned()], 10).await.unwrap();
        hits.into_iter().map(|hit| hit.column).collect::<Vec<_>>()
    };
    assert_eq!((found(&root).await, found(&anna).await), (vec!["ssn".to_owned()], Vec::new()));
    duckdb(
        &folder.path().join("data"),
        "",
        &["USE lake.\"default\"", "ALTER TABLE people RENAME COLUMN ssn TO tax_id"],
    );
    assert_eq!(rows(&anna, "SELECT tax_id FROM people").await.unwrap(), [["***"]]);
    assert_eq!(found(&anna).await, Vec::<String>::new());
}

/// A profile takes seconds to read. What was read under a name is not kept where something else may have the name by now.
#[tokio::test(flavor = "multi_thread")]
async fn values_that_were_read_before_a_rename_are_not_kept_after_it() {
    let (_folder, engine) = engine().await;
    let root = admin(&engine);
    run(&root, &["CREATE TABLE people AS SELECT 'Ann' AS name, 'SECRET' AS ssn"]).await;
    engine.wait_for_profiles(Duration::from_secs(20)).await;
    let (catalog, who) = (engine.catalog(), Principal::local_admin());
    let people = catalog.tables().resolve(&who, &[TableName::new("default", "people")]).await.unwrap().remove(0);
    let table_id = people.unwrap().info.id;
    let lease = catalog.leases().take(LeasedWork::ColumnValues, Duration::ZERO).await.unwrap().had().unwrap();
    let profile = |state: &str| {
        let column = ColumnProfile {
            name: "read_before".to_owned(),
            values: vec![("KNOWN".to_owned(), 1)],
            shapes: Vec::new(),
            is_complete: true,
            sketch: Vec::new(),
        };
        TableProfile { table_id, state: state.to_owned(), columns: vec![column] }
    };
    let found = async || {
        let (hits, _) = catalog.values().find(&who, None, &["KNOWN".to_owned()], 10).await.unwrap();
        hits.into_iter().map(|hit| hit.column).collect::<Vec<_>>()
    };
    for rename in ["ALTER TABLE people RENAME COLUMN ssn TO tax_id", "ALTER TABLE people RENAME TO persons"] {
        // Of another state: what was kept is forgotten.
        catalog.values().store_profile(profile("older"), &lease).await.unwrap();
        let state = catalog.values().unprofiled(&[table_id]).await.unwrap().remove(0).state;
        catalog.values().store_profile(profile(&state), &lease).await.unwrap();
        assert_eq!(found().await, ["read_before"]);
        run(&root, &[rename]).await;
        catalog.values().store_profile(profile(&state), &lease).await.unwrap();
        assert_eq!(found().await, Vec::<String>::new(), "{rename}");
        engine.wait_for_profiles(Duration::from_secs(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn masks_and_conditions_follow_columns_whatever_they_are_called() {
    let (_folder, engine) = engine().await;
    let root = admin(&engine);
    run(
        &root,
        &[
            r#"CREATE TABLE people AS SELECT 1 AS id, 'Köln' AS "ÖRT", 'a\''b' AS note"#,
            r#"CREATE MASK hidden ON people("ÖRT") USING ('***') TO PUBLIC"#,
            r"CREATE ROW POLICY own ON people USING (note = E'a\\\'b') TO PUBLIC",
        ],
    )
    .await;
    let anna = caller(&engine, "anna", &[], None);
    assert_eq!(rows(&anna, r#"SELECT id, "ÖRT" FROM people"#).await.unwrap(), [["1", "***"]]);
    run(&root, &[r#"ALTER TABLE people RENAME COLUMN "ÖRT" TO "STRAßE""#]).await;
    run(&root, &["ALTER TABLE people RENAME COLUMN note TO remark"]).await;
    assert_eq!(rows(&anna, r#"SELECT id, "STRAßE" FROM people"#).await.unwrap(), [["1", "***"]]);
}

/// What is hidden may be renamed between a statement's check and its commit, by whoever works beside: the policy would then be of
/// a name that nothing has.
#[tokio::test(flavor = "multi_thread")]
async fn a_policy_of_what_was_renamed_meanwhile_is_a_conflict() {
    let (_folder, engine) = engine().await;
    let root = admin(&engine);
    run(
        &root,
        &[
            "CREATE TABLE people AS SELECT 1 AS id, '123' AS ssn",
            "CREATE MASK hush ON people(id) USING (0) TO PUBLIC",
            "ALTER TABLE people RENAME COLUMN ssn TO tax_id",
        ],
    )
    .await;
    let (policies, who) = (engine.catalog().policies(), Principal::local_admin());
    let mask = |table: &str, column: &str| Mask {
        name: "hidden".to_owned(),
        table: TableName::new("default", table),
        column: column.to_owned(),
        expression: "'***'".to_owned(),
        to: [Grantee::Public].into(),
        except: BTreeSet::new(),
    };
    for checked_before in [mask("people", "ssn"), mask("persons", "tax_id")] {
        let document = PolicyDocument { masks: vec![checked_before.clone()], ..PolicyDocument::default() };
        let edit = PolicyEdit::CreateMask { mask: checked_before, or_replace: false };
        assert_eq!(policies.change(&who, "CREATE MASK", edit).await.unwrap_err().code(), "conflict");
        assert_eq!(policies.replace(&who, "policies", document).await.unwrap_err().code(), "conflict");
    }
    let edit = PolicyEdit::CreateMask { mask: mask("people", "TAX_ID"), or_replace: false };
    policies.change(&who, "CREATE MASK", edit).await.unwrap();
    let anna = caller(&engine, "anna", &[], None);
    assert_eq!(rows(&anna, "SELECT * FROM people").await.unwrap(), [["0", "***"]]);
    // A policy of a table that is gone is in nobody's way.
    let rest =
        ["DROP TABLE people", "CREATE TABLE t AS SELECT 1 AS a", "CREATE MASK other ON t(a) USING (0) TO PUBLIC"];
    run(&root, &rest).await;
}
