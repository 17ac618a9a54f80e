//! A principal reads its own databases' tables through KQL and no others, however they are spelled.

use querent_catalog::{Principal, Role};
use querent_engine::{Engine, Limits, Session};

use super::{answered, cells, code_of};
use crate::sql::{admin, engine, rows};

/// Every way to reach `secrets` of database `other`, and the view of `default` that reads it.
const HIDDEN: &[&str] = &[
    "database('other').secrets",
    "database(\"OTHER\").Secrets",
    "database(strcat('oth', 'er')).secrets",
    "let d = 'other'; database(d).secrets",
    "other.secrets",
    "['other'].['secrets']",
    "database('other').table('secrets')",
    "database('other').secrets | take 1",
    "database('other').*",
    "union database('other').*",
    "union database('other').secr*",
    "union t, database('other').secrets",
    "union kind=inner (database('other').secrets)",
    "t | union (database('other').secrets)",
    "t | join kind=inner (database('other').secrets | extend a = 1) on a",
    "t | lookup (database('other').secrets | extend a = 1) on a",
    "t | where 'hush' in ((database('other').secrets | project word))",
    "t | where 'hush' !in~ ((database('other').secrets))",
    "print toscalar(database('other').secrets | project word)",
    "print toscalar(database('other').secrets | count)",
    "let s = materialize(database('other').secrets); s | count",
    "let s = database('other').secrets; s",
    "let f = () { database('other').secrets }; f()",
    "let f = (T: (a: long)) { T | union (database('other').secrets) }; t | invoke f()",
    "database('other').secrets | evaluate bag_unpack(word)",
    "database('other').secrets | evaluate pivot(word)",
    "database('other').secrets | getschema",
    "database('other').secrets | make-series count() on word from 0 to 1 step 1",
    "t | mv-apply a to typeof(long) on (union (database('other').secrets))",
    "search in (database('other').secrets) 'hush'",
    "find in (database('other').secrets) where word == 'hush'",
    "find in (database('other').*) where * has 'hush'",
    "find in (t, peek) where * has 'hush'",
    "find in (secrets) where word == 'hush' project pack(*)",
    "let s = materialize(database('other').secrets | extend r = rand()); union s, s",
    "let s = materialize(peek); let n = toscalar(s | count); s | take n",
    "print ip = '1.1.1.1' | evaluate ipv4_lookup((database('other').secrets), ip, word)",
    "print id = 'a', at = now() | evaluate new_activity_metrics(id, at, now(), now(), 1d, now(), (database('other').secrets | project id = word))",
    "declare pattern p = (a: string) { ('x') = { database('other').secrets } }; p('x')",
    "declare pattern p = (a: string)[b: string] { ('x').['y'] = { peek } }; union p('x').['*']",
    "table('other.secrets')",
    "table('secrets')",
    "secrets",
    "peek",
    "union peek, t",
    "print toscalar(peek | project word)",
    "cluster('x').database('other').secrets",
];

#[tokio::test(flavor = "multi_thread")]
async fn another_databases_tables_stay_out_of_reach() {
    let (_folder, engine) = prepared().await;
    let session = scoped(&engine);
    assert_eq!(cells(&session, "t | sort by a asc").await, [["1"], ["2"]]);
    for kql in HIDDEN {
        match answered(&session, kql).await {
            Ok(answer) => panic!("`{kql}` ran: {answer:?}"),
            Err(error) => {
                let told = error.to_string();
                let is_hint = told.contains("mean `secrets`") || told.contains("mean `other`");
                assert!(!is_hint, "`{kql}` gets a hint about what is hidden: {told}");
            }
        }
    }
    assert_eq!(cells(&admin(&engine), "database('other').secrets").await, [["hush"]]);
}

/// A hidden table is refused with the same words as one that does not exist.
#[tokio::test(flavor = "multi_thread")]
async fn a_hidden_table_looks_like_one_that_is_not_there() {
    let (_folder, engine) = prepared().await;
    let session = scoped(&engine);
    for (hidden, missing) in [
        ("database('other').secrets", "database('nowhr').secrets"),
        ("union database('other').s*", "union database('nowhr').s*"),
        ("print toscalar(database('other').secrets)", "print toscalar(database('nowhr').secrets)"),
        ("secrets | count", "setercs | count"),
    ] {
        let told = |error: querent_engine::EngineError| {
            let told = error.to_string();
            (error.code().to_owned(), told.replace("other", "_").replace("nowhr", "_").replace("setercs", "secrets"))
        };
        let (hidden, missing) = (answered(&session, hidden).await, answered(&session, missing).await);
        assert_eq!(told(hidden.unwrap_err()), told(missing.unwrap_err()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn wildcards_hold_what_may_be_seen() {
    let (_folder, engine) = prepared().await;
    let session = scoped(&engine);
    assert_eq!(cells(&session, "union isfuzzy=true t, database('other').secrets | count").await, [["2"]]);
    assert_eq!(cells(&session, "union t* | summarize sum(a)").await, [["3"]]);
    assert_eq!(code_of(&session, "union s*").await, "kql_unknown_table");
}

#[tokio::test(flavor = "multi_thread")]
async fn there_is_no_statement_that_changes_anything() {
    let (_folder, engine) = prepared().await;
    let session = admin(&engine);
    for command in [".drop table t", ".create table x (a: long)", ".set-or-append t <| print a = 3", ".show tables"] {
        let code = code_of(&session, command).await;
        assert!(code.starts_with("kql_"), "{command}: {code}");
    }
    assert_eq!(cells(&session, "t | count").await, [["2"]]);
}

fn scoped(engine: &Engine) -> Session {
    engine.session(Principal::new("scoped", Role::Write).with_databases(["Default"]), Limits::default())
}

async fn prepared() -> (tempfile::TempDir, Engine) {
    let (folder, engine) = engine().await;
    let session = admin(&engine);
    for sql in [
        "CREATE TABLE t AS SELECT a FROM (VALUES (1), (2)) AS x(a)",
        "CREATE SCHEMA other",
        "CREATE TABLE other.secrets AS SELECT 'hush' AS word",
        "CREATE VIEW peek AS SELECT * FROM other.secrets",
    ] {
        rows(&session, sql).await.unwrap();
    }
    (folder, engine)
}
