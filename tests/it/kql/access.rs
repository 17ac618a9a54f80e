//! `restrict access`: what the statements after it may name, and what stands for a table by a function.

use super::{cells, code_of, flights};
use crate::sql::{admin, rows};

const VIEW: &str = "let V = view () { flights | where carrier == 'AA' };";

#[tokio::test(flavor = "multi_thread")]
async fn what_is_listed_is_there() {
    let (_folder, engine) = flights().await;
    let session = admin(&engine);
    rows(&session, "CREATE SCHEMA other").await.unwrap();
    rows(&session, "CREATE TABLE other.t AS SELECT 7 AS a").await.unwrap();
    for (query, expected) in [
        (format!("{VIEW} restrict access to (V); V | count"), "2"),
        (format!("{VIEW} restrict access to (*); V | count"), "2"),
        (format!("{VIEW} restrict access to (V); union * | count"), "2"),
        (format!("{VIEW} restrict access to (V); let n = 1; V | take n | count"), "1"),
        (format!("let n = 2; {VIEW} restrict access to (V, airlines); airlines | take n | count"), "2"),
        ("restrict access to (flights); Flights | count".to_owned(), "5"),
        ("restrict access to (fl*); flights | count".to_owned(), "5"),
        ("restrict access to (flights); union * | count".to_owned(), "5"),
        ("restrict access to (database().*); flights | count".to_owned(), "5"),
        ("restrict access to (database('other').*); database('other').t".to_owned(), "7"),
        ("restrict access to (database('oth*').t); database('other').t".to_owned(), "7"),
        ("restrict access to (late_flights); late_flights | count".to_owned(), "3"),
    ] {
        assert_eq!(cells(&session, &query).await, [[expected]], "{query}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_listed_is_not_there() {
    let (_folder, engine) = flights().await;
    let session = admin(&engine);
    rows(&session, "CREATE SCHEMA other").await.unwrap();
    rows(&session, "CREATE TABLE other.t AS SELECT 7 AS a").await.unwrap();
    for query in [
        "{VIEW} restrict access to (V); flights",
        "{VIEW} restrict access to (*); flights",
        "{VIEW} let W = view () { airlines }; restrict access to (V); W",
        "{VIEW} restrict access to (V); restrict access to (*); airlines",
        "restrict access to (flights); airlines",
        "restrict access to (flights); table('airlines')",
        "restrict access to (flights); external_table('airlines')",
        "restrict access to (flights); materialized_view('late_flights')",
        "restrict access to (flights); database('other').t",
        "restrict access to (database('other').*); flights",
        "restrict access to (flights); restrict access to (airlines); flights",
        "restrict access to (flights); let f = () { airlines }; f()",
        "restrict access to (flights); let t = airlines; t",
        "restrict access to (flights); print toscalar(airlines | count)",
        "restrict access to (flights); flights | where carrier in ((airlines | project carrier))",
        "restrict access to (flights); flights | join kind=inner airlines on carrier",
        "restrict access to (flights); flights | lookup (airlines) on carrier",
        "restrict access to (flights); find in (airlines) where carrier == 'AA'",
        "restrict access to (flights); search in (airlines) 'United'",
        "restrict access to (flights); union flights, airlines",
        "restrict access to (flights); macro-expand entity_group [database('other')] as D (D.t)",
        "restrict access to (flights); graph('Work') | graph-to-table nodes",
        "restrict access to (flights); externaldata (a: string) ['/data/x.csv']",
    ] {
        let query = query.replace("{VIEW}", VIEW);
        assert_eq!(code_of(&session, &query).await, "kql_unknown_table", "{query}");
    }
    for query in ["restrict access to (cluster('c').database('d').*); flights", "restrict access to (1); flights"] {
        assert!(code_of(&session, query).await.starts_with("kql_"), "{query}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn functions_name_tables() {
    let (_folder, engine) = flights().await;
    let session = admin(&engine);
    for (query, expected) in [
        ("external_table('airlines') | count", "2"),
        ("materialized_view('late_flights') | count", "3"),
        ("materialized_view('late_flights', 10m) | count", "3"),
        ("database().flights | count", "5"),
        ("database().table('flights') | count", "5"),
    ] {
        assert_eq!(cells(&session, query).await, [[expected]], "{query}");
    }
    for query in ["stored_query_result('r') | count", "cluster('c').database('d').t", "cluster('c').t | count"] {
        assert_eq!(code_of(&session, query).await, "kql_not_supported", "{query}");
    }
}

/// `preview` has two results: the first rows, and how many there are.
#[tokio::test(flavor = "multi_thread")]
async fn preview_has_two_results() {
    let (_folder, engine) = flights().await;
    let session = admin(&engine);
    let query = "flights | sort by flight asc | project flight | evaluate preview(2)";
    let mut answers = session.kql_answers(query, Default::default()).await.unwrap();
    let names: Vec<String> = answers.results().iter().map(|result| result.columns[0].name.clone()).collect();
    assert_eq!(names, ["flight", "Count"]);
    let mut counts = Vec::new();
    while let Some(stream) = answers.next_rows().await.unwrap() {
        counts.push(stream.collect().await.unwrap().1.rows);
    }
    assert_eq!(counts, [2, 1]);
    assert_eq!(code_of(&session, "let t = flights | evaluate preview(1); t").await, "kql_invalid");
}
