//! Several endpoints for the rows of one query, for clients that ask for them.

use std::time::Duration;

use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use arrow_flight::{FlightInfo, Ticket};
use querent_tests::{TestServer, TestSettings, wait_until};
use tonic::Code;

use super::{ENDLESS, Raw, decode, refused};

const ENDPOINTS: &str = "x-querent-endpoints";
const ROWS: i64 = 300_000;

fn tickets(info: &FlightInfo) -> Vec<Ticket> {
    info.endpoint.iter().map(|endpoint| endpoint.ticket.clone().unwrap()).collect()
}

fn series() -> String {
    format!("SELECT value FROM generate_series(1, {ROWS}) AS t(value)")
}

/// Returns how many rows an endpoint gives, and their sum.
async fn share(mut raw: Raw, ticket: Ticket) -> (usize, i64) {
    let (_, batches) = decode(raw.fetch(ticket).await.unwrap()).await;
    let values = batches.iter().flat_map(|batch| batch.column(0).as_primitive::<Int64Type>().values().iter());
    (batches.iter().map(|batch| batch.num_rows()).sum(), values.sum())
}

#[tokio::test(flavor = "multi_thread")]
async fn every_row_reaches_one_of_them() {
    let server = TestServer::start(TestSettings::default()).await;
    let mut raw = Raw::connect(&server).await.header(ENDPOINTS, "4");
    let info = raw.plan(&series()).await.unwrap();
    let tickets = tickets(&info);
    assert_eq!(tickets.len(), 4);
    assert!(info.endpoint.iter().all(|endpoint| endpoint.expiration_time.is_none()), "each is fetched once");
    let shares = futures::future::join_all(tickets.iter().map(|ticket| share(raw.clone(), ticket.clone()))).await;
    let (rows, sums): (Vec<usize>, Vec<i64>) = shares.into_iter().unzip();
    assert_eq!(rows.iter().sum::<usize>() as i64, ROWS, "{rows:?}");
    assert_eq!(sums.iter().sum::<i64>(), ROWS * (ROWS + 1) / 2);
    assert_eq!(refused(raw.fetch(tickets[2].clone()).await), (Code::FailedPrecondition, "ticket_used".to_owned()));
}

#[tokio::test]
async fn one_after_the_other_gives_the_rest_to_the_later_ones() {
    let server = TestServer::start(TestSettings::default()).await;
    let mut raw = Raw::connect(&server).await.header(ENDPOINTS, "2");
    let tickets = tickets(&raw.plan(&series()).await.unwrap());
    assert_eq!(share(raw.clone(), tickets[1].clone()).await.0 as i64, ROWS);
    assert_eq!(share(raw.clone(), tickets[0].clone()).await, (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_is_not_read_keeps_no_rows_from_the_others() {
    let server = TestServer::start(TestSettings::default()).await;
    let mut raw = Raw::connect(&server).await.header(ENDPOINTS, "2");
    let sql = "SELECT value, repeat('x', 1000) AS s FROM generate_series(1, 60000) AS t(value)";
    let tickets = tickets(&raw.plan(sql).await.unwrap());
    let mut unread = raw.client.do_get(raw.request(tickets[0].clone())).await.unwrap().into_inner();
    let mut messages = vec![unread.message().await.unwrap().unwrap()];
    // Nothing tells when the connection holds as much as it may.
    tokio::time::sleep(Duration::from_millis(500)).await;
    let other = Raw::connect(&server).await.header(ENDPOINTS, "2");
    let read = tokio::time::timeout(Duration::from_secs(60), share(other, tickets[1].clone())).await;
    let (read, _) = read.expect("an endpoint waits for one that is not read");
    while let Some(message) = unread.message().await.unwrap() {
        messages.push(message);
    }
    let (_, batches) = decode(messages).await;
    let unread: usize = batches.iter().map(|batch| batch.num_rows()).sum();
    assert_eq!(read + unread, 60_000, "{read} and {unread}");
}

#[tokio::test]
async fn one_that_is_left_early_fails_the_others() {
    let server = TestServer::start(TestSettings::default()).await;
    let mut raw = Raw::connect(&server).await.header(ENDPOINTS, "2");
    let sql = "SELECT value, repeat('x', 1000) AS s FROM generate_series(1, 100000000) AS t(value)";
    let tickets = tickets(&raw.plan(sql).await.unwrap());
    let mut begun = raw.client.do_get(raw.request(tickets[0].clone())).await.unwrap().into_inner();
    assert!(begun.message().await.unwrap().is_some());
    drop(begun);
    let status = raw.fetch(tickets[1].clone()).await.unwrap_err();
    assert_eq!(status.code(), Code::Aborted, "CANCELLED is an interrupt of pyarrow's own process");
    assert!(status.message().contains("another endpoint"), "{status}");
}

/// Nobody is left who would ask for its rows, and find that it failed.
#[tokio::test(flavor = "multi_thread")]
async fn a_query_whose_endpoints_are_all_left_is_over() {
    let server = TestServer::start(TestSettings::default()).await;
    let (mut raw, mut other) = (Raw::connect(&server).await.header(ENDPOINTS, "2"), Raw::connect(&server).await);
    let listed = "SELECT count(*) FROM system.queries WHERE statement LIKE 'select sum(a.value%'";
    let mut begun = Vec::new();
    for ticket in tickets(&raw.plan(ENDLESS).await.unwrap()) {
        let mut messages = raw.client.do_get(raw.request(ticket)).await.unwrap().into_inner();
        assert!(messages.message().await.unwrap().is_some(), "the schema");
        begun.push(messages);
    }
    assert_eq!(other.number(listed).await, 1);
    drop(begun);
    wait_until("the query ends", async || other.number(listed).await == 0).await;
}

#[tokio::test]
async fn rows_in_an_order_and_changes_have_one() {
    let server = TestServer::start(TestSettings::default()).await;
    server.execute("CREATE TABLE t (a BIGINT)").await;
    let mut raw = Raw::connect(&server).await.header(ENDPOINTS, "4");
    for sql in [
        "SELECT a FROM t ORDER BY a",
        "SELECT a + 1 AS b FROM (SELECT a FROM t ORDER BY a LIMIT 3)",
        "EXPLAIN SELECT 1",
    ] {
        assert_eq!(raw.plan(sql).await.unwrap().endpoint.len(), 1, "{sql}");
    }
    assert_eq!(raw.plan("INSERT INTO t VALUES (1)").await.unwrap().endpoint.len(), 1);
    assert_eq!(raw.plan("SELECT a FROM t WHERE a > 1").await.unwrap().endpoint.len(), 4);
    assert_eq!(raw.plan(ENDLESS).await.unwrap().endpoint.len(), 4);
    for refused in ["0", "17", "many"] {
        let mut raw = Raw::connect(&server).await.header(ENDPOINTS, refused);
        assert_eq!(raw.plan("SELECT 1").await.unwrap_err().metadata().get("x-querent-code").unwrap(), "bad_header");
    }
}
