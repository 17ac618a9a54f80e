//! `find` over stored tables: which tables count, which columns the result has, and what a caller may not see.

use querent_catalog::{Principal, Role};
use querent_engine::{Engine, Limits, Session};

use super::{answered, code_of};
use crate::sql::{admin, engine, rows};

async fn found(session: &Session, kql: &str) -> (Vec<String>, Vec<Vec<String>>) {
    let (columns, mut rows) =
        answered(session, kql).await.unwrap_or_else(|error| panic!("`{kql}`: {}: {error}", error.code()));
    rows.sort();
    (columns, rows)
}

#[tokio::test(flavor = "multi_thread")]
async fn columns_are_common_ones_then_named_ones_then_the_rest() {
    let (_folder, engine) = events().await;
    let session = admin(&engine);
    for (kql, columns, rows) in [
        (
            "find in (events1, events2) where session == 'a' and level == 'Error'",
            "source_:string session:string level:string pack_:dynamic",
            vec![
                vec!["events1", "a", "Error", r#"{"version":"v1"}"#],
                vec!["events2", "a", "Error", r#"{"name":"Event3"}"#],
            ],
        ),
        (
            "find in (events1, events2) where name == 'Event1' or version == 'v1' and level == 'Error'",
            "source_:string session:string level:string name:string version:string",
            vec![vec!["events1", "a", "Error", "", "v1"], vec!["events2", "b", "Information", "Event1", ""]],
        ),
        // Only one table has the column, so all of its columns are common.
        (
            "find withsource=T in (events*) where version == 'v2'",
            "T:string session:string level:string version:string",
            vec![vec!["events1", "c", "Error", "v2"]],
        ),
        (
            "find in (events1, events2) where session == 'c' project version, name, pack(*)",
            "source_:string version:string name:string pack_:dynamic",
            vec![vec!["events1", "v2", "", r#"{"session":"c","level":"Error"}"#]],
        ),
        (
            "find session == 'c' project pack_all()",
            "source_:string pack_:dynamic",
            vec![vec!["events1", r#"{"session":"c","level":"Error","version":"v2"}"#]],
        ),
        ("find \"Event3\" project name", "source_:string name:string", vec![vec!["events2", "Event3"]]),
        (
            "find in (events1, numbers) where * has 'v2' or code == 7 project code:string, level",
            "source_:string code:string level:string",
            vec![vec!["events1", "", "Error"], vec!["numbers", "7", "low"]],
        ),
        (
            "let few = events1 | where version == 'v2'; find in (few, (events2 | take 0)) where level == 'Error' project-smart",
            "source_:string session:string level:string pack_:dynamic",
            vec![vec!["union_arg0", "c", "Error", r#"{"version":"v2"}"#]],
        ),
    ] {
        let expected: Vec<String> = columns.split(' ').map(str::to_owned).collect();
        assert_eq!(found(&session, kql).await, (expected, owned(rows)), "{kql}");
    }
    let (_, sources) = found(&session, "find level == 'low' or level == 'Error' | summarize count() by source_").await;
    assert_eq!(sources, [["codes", "1"], ["events1", "2"], ["events2", "1"], ["numbers", "1"]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_of_several_types_is_several_columns() {
    let (_folder, engine) = events().await;
    let session = admin(&engine);
    let both = "find in (numbers, codes) where level == 'low'";
    let expected: Vec<String> =
        ["source_:string", "level:string", "code_long:long", "code_string:string"].map(str::to_owned).to_vec();
    assert_eq!(found(&session, both).await.0, expected);
    let one = found(&session, "find in (numbers, codes) where level == 'low' project code:string").await;
    assert_eq!(one.1, [["codes", "x7"], ["numbers", "7"]]);
    // The condition makes sense in one of them only.
    let one = found(&session, "find in (numbers, codes) where code has 'x7' project level").await;
    assert_eq!(one.1, [["codes", "low"]]);
    for (kql, code) in [
        ("find in (numbers, codes) where level == 'low' project code", "kql_invalid"),
        ("find in (numbers, codes) where level == 'low' project nothing", "kql_unknown_column"),
        ("find in (numbers, codes) where nothing == 'low'", "kql_unknown_column"),
        ("find in (numbers) where level < 'low'", "kql_type_mismatch"),
        ("find in (nowhere) where level == 'low'", "kql_unknown_table"),
        ("events1 | find level == 'low'", "kql_invalid"),
    ] {
        assert_eq!(code_of(&session, kql).await, code, "{kql}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_what_the_caller_may_see_is_looked_at() {
    let (_folder, engine) = events().await;
    let session = admin(&engine);
    rows(&session, "CREATE SCHEMA other").await.unwrap();
    rows(&session, "CREATE TABLE other.secrets AS SELECT 'Error' AS level").await.unwrap();
    let scoped = Principal::new("scoped", Role::Write).with_databases(["default"]);
    let scoped = engine.session(scoped, Limits::default());
    for kql in ["find \"Error\" | summarize count() by source_", "find level == 'Error' | summarize count() by source_"]
    {
        assert_eq!(found(&scoped, kql).await.1, [["events1", "2"], ["events2", "1"]], "{kql}");
    }
    for kql in [
        "find in (database('other').secrets) where level == 'Error'",
        "find in (database('other').*) where * has 'Error'",
    ] {
        assert_eq!(code_of(&scoped, kql).await, "kql_unknown_table", "{kql}");
    }
    let named = found(&session, "find in (database('other').secrets) where level == 'Error'").await;
    assert_eq!(named.1, [["secrets", "Error"]]);
}

fn owned(rows: Vec<Vec<&str>>) -> Vec<Vec<String>> {
    rows.into_iter().map(|row| row.into_iter().map(str::to_owned).collect()).collect()
}

async fn events() -> (tempfile::TempDir, Engine) {
    let (folder, engine) = engine().await;
    let session = admin(&engine);
    for sql in [
        "CREATE TABLE events1 AS SELECT * FROM (VALUES ('a', 'Information', 'v1'), ('a', 'Error', 'v1'), ('c', 'Error', 'v2')) \
         AS e(session, level, version)",
        "CREATE TABLE events2 AS SELECT * FROM (VALUES ('b', 'Information', 'Event1'), ('a', 'Information', 'Event2'), ('a', 'Error', 'Event3')) \
         AS e(session, level, name)",
        "CREATE TABLE numbers AS SELECT * FROM (VALUES ('low', 7), ('high', 8)) AS n(level, code)",
        "CREATE TABLE codes AS SELECT * FROM (VALUES ('low', 'x7')) AS c(level, code)",
    ] {
        rows(&session, sql).await.unwrap();
    }
    (folder, engine)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_union_names_where_its_rows_are_from() {
    let (_folder, engine) = events().await;
    let session = admin(&engine);
    for (kql, names) in [
        ("union withsource=T events1, events2", vec!["events1", "events2"]),
        ("let a = events1; let b = a; union withsource=T b, events2", vec!["events1", "events2"]),
        ("let a = events1 | take 1; union withsource=T a, events2", vec!["events2", "union_arg0"]),
        ("union withsource=T events1, (events2 | where session == 'b')", vec!["events1", "union_arg1"]),
        ("union withsource=T events1, (events2 | where session == 'b' | as few)", vec!["events1", "few"]),
    ] {
        let (_, labels) = found(&session, &format!("{kql} | distinct T")).await;
        assert_eq!(labels.concat(), names, "`{kql}`");
    }
}
