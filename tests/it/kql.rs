//! KQL from outside: the same tables, policy, limits and errors that SQL has, and every column type.

mod access;
mod decimals;
mod documentation;
mod external_data;
mod find;
mod graph;
mod graph_models;
mod http;
mod json_columns;
mod kusto;
mod materialize;
mod options;
mod order;
mod plugins;
mod policy;
mod scalars;
mod sequences;
mod series;
mod sketches;
mod stored;
mod types;

use std::time::{Duration, Instant};

use futures::StreamExt;
use querent_catalog::Principal;
use querent_engine::{Engine, EngineError, Limits, Session};
use querent_tests::wait_until_memory_is_free;

use crate::sql::{admin, engine, rows};

/// Runs a query to its end and returns its columns as `name:type` and its cells as Kusto prints them, null as `null`.
async fn answered(session: &Session, kql: &str) -> Result<(Vec<String>, Vec<Vec<String>>), EngineError> {
    let mut answers = session.kql_answers(kql, Default::default()).await?;
    let stream = answers.next_rows().await?.expect("a query has a result");
    let columns = answers.results()[0].columns.clone();
    let named = columns.iter().map(|column| format!("{}:{}", column.name, column.kql_type.name())).collect();
    let (batches, _) = stream.collect().await?;
    let mut rows = Vec::new();
    for batch in &batches {
        for row in 0..batch.num_rows() {
            let cells = columns.iter().zip(batch.columns());
            rows.push(
                cells
                    .map(|(column, array)| match array.is_null(row) {
                        true => "null".to_owned(),
                        false => column.text(array.as_ref(), row),
                    })
                    .collect(),
            );
        }
    }
    Ok((named, rows))
}

/// Returns the cells of a query that must succeed.
async fn cells(session: &Session, kql: &str) -> Vec<Vec<String>> {
    answered(session, kql).await.unwrap_or_else(|error| panic!("`{kql}`: {}: {error}", error.code())).1
}

async fn code_of(session: &Session, kql: &str) -> String {
    match answered(session, kql).await {
        Ok(answer) => panic!("`{kql}` ran: {answer:?}"),
        Err(error) => error.code().to_owned(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn operators_work_over_stored_tables() {
    let (_folder, engine) = flights().await;
    let session = admin(&engine);
    for (kql, expected) in [
        ("flights | count", vec![vec!["5"]]),
        (
            "flights | summarize n = count(), avg(delay) by carrier | sort by carrier asc",
            vec![vec!["AA", "2", "4.0"], vec!["UA", "3", "10.0"]],
        ),
        ("flights | where isnull(delay) | project carrier, flight", vec![vec!["AA", "20"]]),
        ("flights | where carrier == '' or carrier has 'ua' | top 1 by delay", vec![vec!["UA", "11", "30"]]),
        (
            "let late = flights | where delay > 3; late | join kind=inner (airlines) on carrier | summarize count() by name | sort by name asc",
            vec![vec!["American Airlines", "1"], vec!["United Air Lines", "2"]],
        ),
        (
            "flights | join kind=leftanti (flights | where delay > 0) on flight | project flight | sort by flight desc",
            vec![vec!["20"], vec!["12"]],
        ),
        ("search 'united' | project ['$table'], name", vec![vec!["airlines", "United Air Lines"]]),
        (
            "search in (flights, late_flights) flight == 21 | summarize count() by ['$table'] | sort by ['$table'] asc",
            vec![vec!["flights", "1"], vec!["late_flights", "1"]],
        ),
        (
            "flights | top-nested 1 of carrier by count(), top-nested 1 of flight by max(delay)",
            vec![vec!["UA", "3", "11", "30"]],
        ),
        ("late_flights | summarize max(delay)", vec![vec!["30"]]),
        ("Flights | where flight in ((late_flights | project flight)) | count", vec![vec!["3"]]),
        ("print toscalar(flights | summarize max(delay)) + 1", vec![vec!["31"]]),
        (
            "union withsource=t flights, late_flights | summarize count() by t | sort by t asc",
            vec![vec!["flights", "5"], vec!["late_flights", "3"]],
        ),
        ("union *_flights, airlines | count", vec![vec!["5"]]),
    ] {
        assert_eq!(cells(&session, kql).await, expected, "{kql}");
    }
    let pivoted = answered(&session, "flights | project carrier | evaluate pivot(carrier)").await.unwrap();
    assert_eq!(pivoted, (vec!["AA:long".to_owned(), "UA:long".to_owned()], vec![vec!["2".to_owned(), "3".to_owned()]]));
}

#[tokio::test(flavor = "multi_thread")]
async fn other_databases_are_named() {
    let (_folder, engine) = flights().await;
    let session = admin(&engine);
    rows(&session, "CREATE SCHEMA other").await.unwrap();
    rows(&session, "CREATE TABLE other.t AS SELECT 7 AS a").await.unwrap();
    for kql in ["database('other').t", "database(\"OTHER\").T", "database('other').table('t')"] {
        assert_eq!(cells(&session, kql).await, [["7"]], "{kql}");
    }
    assert_eq!(code_of(&session, "t").await, "kql_unknown_table");
    let inside = session.with_database("other").await.unwrap();
    assert_eq!(cells(&inside, "t | extend b = a + 1").await, [["7", "8"]]);
    assert_eq!(cells(&inside, "database('default').airlines | count").await, [["2"]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_and_bytes_are_cut_as_those_of_sql() {
    let (_folder, engine) = engine().await;
    let limited = |limits: Limits| engine.session(Principal::local_admin(), limits);
    let ten = limited(Limits { max_rows: Some(10), ..Limits::default() });
    for (kql, expected, truncated) in [
        ("range x from 1 to 100000 step 1", 10, true),
        ("range x from 1 to 100000 step 1 | sort by x", 10, true),
        ("range x from 1 to 10 step 1", 10, false),
        ("range x from 1 to 11 step 1", 10, true),
        ("range x from 1 to 100 step 1 | take 5", 5, false),
        ("range x from 1 to 100 step 1 | where x in ((range y from 1 to 20 step 1))", 10, true),
    ] {
        let (_, stats) = ten.kql(kql).await.unwrap().collect().await.unwrap();
        assert_eq!((stats.rows, stats.truncated), (expected, truncated), "{kql}");
    }
    let kilobyte = limited(Limits { max_bytes: Some(1_000), ..Limits::default() });
    let (_, stats) = kilobyte.kql("range x from 1 to 100000 step 1").await.unwrap().collect().await.unwrap();
    assert_eq!((stats.rows, stats.bytes, stats.truncated), (125, 1_000, true), "eight bytes a row");
}

/// Queries that never end: the first while it runs, the others while they are planned.
const ENDLESS: &[&str] = &[
    "range a from 1 to 1000000 step 1 | extend k = 1 | join kind=inner (range b from 1 to 1000000 step 1 | extend k = 1) on k | where a + b < 0 | count",
    "print toscalar(range a from 1 to 1000000 step 1 | extend k = 1 | join kind=inner (range b from 1 to 1000000 step 1 | extend k = 1) on k | where a + b < 0 | count)",
    "range x from 1 to 3 step 1 | where x in ((range a from 1 to 1000000 step 1 | extend k = 1 | join kind=inner (range b from 1 to 1000000 step 1 | extend k = 1) on k | where a + b < 0 | project a))",
];

#[tokio::test(flavor = "multi_thread")]
async fn time_runs_out() {
    let (_folder, engine) = engine().await;
    let limits = Limits { wall_clock: Duration::from_millis(300), ..Limits::default() };
    let session = engine.session(Principal::local_admin(), limits);
    for kql in ENDLESS {
        let started = Instant::now();
        assert_eq!(code_of(&session, kql).await, "wall_clock_exceeded", "{kql}");
        assert!(started.elapsed() < Duration::from_secs(10), "{kql} took {:?}", started.elapsed());
    }
    wait_until_memory_is_free(&engine).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_nobody_waits_for_stops() {
    let (_folder, engine) = engine().await;
    let session = admin(&engine);
    for kql in ENDLESS {
        let work = async {
            let mut stream = session.kql(kql).await.unwrap();
            stream.next().await
        };
        assert!(tokio::time::timeout(Duration::from_millis(300), work).await.is_err(), "{kql} is still at work");
        wait_until_memory_is_free(&engine).await;
    }
    let started = Instant::now();
    assert_eq!(cells(&session, "print 1").await, [["1"]]);
    assert!(started.elapsed() < Duration::from_secs(5), "answered after {:?}", started.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_planning_reads_counts_in_the_querys_memory() {
    let (_folder, engine) = engine().await;
    let small = engine.session(Principal::local_admin(), Limits { memory_bytes: 24 << 20, ..Limits::default() });
    let many = "range x from 1 to 100000 step 1";
    let listed = format!("print 1 in (({many}))");
    assert_eq!(code_of(&small, &listed).await, "memory_exceeded");
    let bags = format!("{many} | project bag = bag_pack('a', x) | evaluate bag_unpack(bag) | count");
    assert_eq!(code_of(&small, &bags).await, "memory_exceeded");
    wait_until_memory_is_free(&engine).await;
    assert_eq!(cells(&small, "print 1 in ((range x from 1 to 1000 step 1))").await, [["True"]]);
    let too_many = "print 1 in ((range x from 1 to 1000001 step 1))";
    assert_eq!(code_of(&admin(&engine), too_many).await, "kql_too_large");

    // Held for as long as the plan that it became part of.
    let session = admin(&engine);
    let stream = session.kql("range x from 1 to 100000000 step 1 | where x in ((range y from 1 to 100000 step 1))");
    let stream = stream.await.unwrap();
    assert!(engine.memory_reserved_bytes() > 10 << 20, "{}", engine.memory_reserved_bytes());
    drop(stream);
    wait_until_memory_is_free(&engine).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_is_shown_and_judged() {
    let (_folder, engine) = flights().await;
    let session = admin(&engine);
    let plans = cells(&session, ".show queryplan <| flights | where carrier == 'UA' | count").await;
    assert_eq!(plans.iter().map(|row| row[0].as_str()).collect::<Vec<_>>(), ["logical_plan", "physical_plan"]);
    assert!(plans[0][1].contains("Aggregate") && plans[1][1].contains("DataSourceExec"), "{plans:?}");
    let error = answered(&session, ".show queryplan <| flights | wher carrier").await.unwrap_err();
    assert!(error.to_string().contains("line 1, column 30"), "{error}");
    let stranger = Principal::new("stranger", querent_catalog::Role::Read).with_databases(["other"]);
    let stranger = engine.session(stranger, Limits::default());
    assert_eq!(code_of(&stranger, ".show queryplan <| database('default').flights").await, "kql_unknown_table");
}

/// `flights` and `airlines`, and the view `late_flights`.
async fn flights() -> (tempfile::TempDir, Engine) {
    let (folder, engine) = engine().await;
    let session = admin(&engine);
    for sql in [
        "CREATE TABLE flights AS SELECT * FROM (VALUES ('UA', 10, 5), ('UA', 11, 30), ('UA', 12, -5), ('AA', 20, NULL), ('AA', 21, 4)) \
         AS f(carrier, flight, delay)",
        "CREATE TABLE airlines AS SELECT * FROM (VALUES ('UA', 'United Air Lines'), ('AA', 'American Airlines')) AS a(carrier, name)",
        "CREATE VIEW late_flights AS SELECT * FROM flights WHERE delay > 0",
    ] {
        rows(&session, sql).await.unwrap();
    }
    (folder, engine)
}
