//! Managed tables in an object store that is busy, slow or out of reach: what was acknowledged is there once, what failed is not
//! there, errors say when to try again, and nothing waits without end.

use std::time::{Duration, Instant};

use axum::http::Method;
use querent_tests::{S3Server, ServerProcess, StoreFault, wait_until};
use serde_json::json;

use crate::object_store_lake::{done, started, stored};
use crate::object_stores::ask;

/// Every scan reads the store.
const UNCACHED: [(&str, &str); 2] = [("QUERENT_QUERY_FILE_CACHE", "0"), ("QUERENT_QUERY_COLUMN_CACHE", "0")];
const NUMBERS: &str = "SELECT value AS v FROM generate_series(1, 100000) AS s(value)";
const SUM: &str = "SELECT count(*), sum(v) FROM t";

async fn table(store: &S3Server) -> ServerProcess {
    let server = started(store, &UNCACHED);
    done(&server, &format!("CREATE TABLE t AS {NUMBERS}")).await;
    assert_eq!(done(&server, SUM).await, json!([[100_000, 5_000_050_000_i64]]));
    server
}

#[tokio::test(flavor = "multi_thread")]
async fn a_busy_store_is_asked_again() {
    let store = S3Server::start().await;
    let server = table(&store).await;
    store.fail(Method::PUT, ".parquet", StoreFault::Busy, 2);
    done(&server, &format!("INSERT INTO t {NUMBERS}")).await;
    store.fail(Method::GET, ".parquet", StoreFault::Busy, 2);
    assert_eq!(done(&server, SUM).await, json!([[200_000, 10_000_100_000_i64]]));
    store.fail(Method::GET, ".parquet", StoreFault::CutOff, 2);
    store.fail(Method::GET, ".parquet", StoreFault::Slow(Duration::from_secs(1)), 1);
    assert_eq!(done(&server, SUM).await, json!([[200_000, 10_000_100_000_i64]]));
    assert_eq!(stored(&store).await.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_whose_answer_is_lost_is_there_once() {
    let store = S3Server::start().await;
    let server = table(&store).await;
    // The next attempts find the object there: their own.
    store.fail(Method::PUT, ".parquet", StoreFault::AnswerLost, 2);
    done(&server, &format!("INSERT INTO t {NUMBERS}")).await;
    assert_eq!(stored(&store).await.len(), 2);
    assert_eq!(done(&server, SUM).await, json!([[200_000, 10_000_100_000_i64]]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_stays_away_fails_statements_in_time_and_nothing_is_lost() {
    let store = S3Server::start().await;
    let server = table(&store).await;
    // Nobody has read it: its footer is not known, and is no damaged one.
    done(&server, &format!("CREATE TABLE unread AS {NUMBERS}")).await;
    let unread = "SELECT count(*), sum(v) FROM unread WHERE v > 3".to_owned();
    for method in [Method::GET, Method::PUT, Method::HEAD] {
        store.fail(method, "", StoreFault::Busy, 100_000);
    }
    for sql in [SUM.to_owned(), unread, format!("INSERT INTO t {NUMBERS}"), format!("CREATE TABLE u AS {NUMBERS}")] {
        let begun = Instant::now();
        let request = reqwest::Client::new().post(format!("{}/v1/query", server.url)).body(sql.clone());
        let request = request.header("accept", "application/json").header("content-type", "application/sql");
        let reply = request.send().await.unwrap();
        let (status, retry_after) = (reply.status(), reply.headers().get("retry-after").cloned());
        let text = reply.text().await.unwrap();
        assert!(text.contains("\"store_unavailable\""), "{sql}: {text}");
        if !sql.starts_with("SELECT") {
            assert_eq!(status, 503, "{sql}");
            assert!(retry_after.is_some(), "{sql}");
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{sql} took {:?}", begun.elapsed());
    }
    // What does not need the store goes on, and the check says what it cannot tell.
    assert_eq!(done(&server, "SELECT 1 + 1").await, json!([[2]]));
    let checked = reqwest::Client::new().post(format!("{}/v1/check", server.url)).send().await.unwrap();
    assert_eq!(checked.status(), 503);
    store.heal();
    assert_eq!(done(&server, SUM).await, json!([[100_000, 5_000_050_000_i64]]));
    assert_eq!(ask(&server, "SELECT * FROM u").await["error"]["code"], "table_not_found");
    assert_eq!(stored(&store).await.len(), 2);
    done(&server, &format!("INSERT INTO t {NUMBERS}")).await;
    assert_eq!(done(&server, SUM).await, json!([[200_000, 10_000_100_000_i64]]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_that_fails_half_way_leaves_nothing() {
    let store = S3Server::start().await;
    let server = table(&store).await;
    let before = stored(&store).await;
    // Texts of which the compression makes little, so that there are several files; the first arrives.
    store.fail_after(1, Method::PUT, ".parquet", StoreFault::Busy, 100_000);
    let failed = ask(
        &server,
        "CREATE TABLE x AS SELECT concat_ws('-', random(), random(), random(), random(), random(), random()) AS words \
         FROM generate_series(1, 1300000) AS s(value)",
    )
    .await;
    assert_eq!(failed["error"]["code"], "store_unavailable", "{failed}");
    let put = store.take_requests().into_iter().filter(|request| request.method == "PUT").count();
    assert!(put > 2, "{put} writes");
    wait_until("what was written is removed", async || stored(&store).await == before).await;
    store.heal();
    assert_eq!(ask(&server, "SELECT * FROM x").await["error"]["code"], "table_not_found");
    assert_eq!(done(&server, SUM).await, json!([[100_000, 5_000_050_000_i64]]));
}
