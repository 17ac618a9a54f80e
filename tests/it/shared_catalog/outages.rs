//! A server of PostgreSQL that stands still, that ends statements and connections, and whose locks are not to be had.

use std::sync::Arc;
use std::time::Duration;

use querent_catalog::{Principal, TableName};
use querent_tests::{PostgresProcess, wait_until};

use super::{create, names, open, snapshot};

/// Longer than a write waits for a server that says nothing, with all that it asks on the way.
const WRITE_TIME: Duration = Duration::from_secs(45);
/// Longer than a read of known names waits: once for what nobody knows yet, and afterwards.
const FIRST_READ_TIME: Duration = Duration::from_secs(20);
const NEXT_READ_TIME: Duration = Duration::from_secs(4);

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_stands_still_is_not_waited_for_without_end() {
    let postgres = PostgresProcess::start();
    let url = postgres.new_database("lake");
    let folder = tempfile::tempdir().unwrap();
    let catalog = open(folder.path(), &url).await;
    create(&catalog, "orders").await.unwrap();
    let (who, orders) = (Principal::local_admin(), [TableName::new("default", "orders")]);
    let known = catalog.tables().resolve_at(&who, &orders).await.unwrap();

    let suspended = postgres.suspend();
    for patience in [FIRST_READ_TIME, NEXT_READ_TIME, NEXT_READ_TIME] {
        let asked = catalog.tables().resolve_at(&who, &orders);
        let found = tokio::time::timeout(patience, asked).await.expect("an answer in time").unwrap();
        assert_eq!(found, known, "as it was");
    }
    // All of them wait no longer than one.
    let written = ["a", "b", "c", "d"].map(|name| create(&catalog, name));
    let written = tokio::time::timeout(WRITE_TIME, futures::future::join_all(written)).await.expect("errors in time");
    for error in written {
        let error = error.unwrap_err();
        assert_eq!(error.code(), "catalog_unavailable", "{error}");
    }

    // It recovers by itself.
    drop(suspended);
    wait_until("tables are made again", async || create(&catalog, "customers").await.is_ok()).await;
    assert_eq!(names(&catalog).await, ["customers", "orders"]);
    let (version, _) = catalog.tables().resolve_at(&who, &orders).await.unwrap();
    assert_eq!(version.snapshot, snapshot(&catalog).await, "what is read is what holds again");
    catalog.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_that_is_not_to_be_had_costs_one_statement() {
    let postgres = Arc::new(PostgresProcess::start());
    let url = postgres.new_database("lake");
    // An administrator's limit for others: how long we wait is ours to say.
    postgres.psql("postgres", "ALTER DATABASE lake SET statement_timeout = '500ms'").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let catalog = open(folder.path(), &url).await;
    create(&catalog, "orders").await.unwrap();
    // Somewhat longer than a writer waits.
    let holds = "SET statement_timeout = 0; BEGIN; LOCK TABLE ducklake_snapshot IN SHARE ROW EXCLUSIVE MODE; \
                 SELECT pg_sleep(14); COMMIT";
    let server = Arc::clone(&postgres);
    let holder = tokio::task::spawn_blocking(move || server.psql("lake", holds).unwrap());
    let held = "SELECT count(*) FROM pg_locks WHERE mode = 'ShareRowExclusiveLock' AND granted";
    wait_until("the lock is held", async || postgres.psql("lake", held).unwrap().trim() != "0").await;
    let error = create(&catalog, "customers").await.unwrap_err();
    assert_eq!(error.code(), "catalog_busy", "{error}");
    holder.await.unwrap();
    // The connection writes again, and so does what follows other servers.
    create(&catalog, "customers").await.unwrap();
    assert_eq!(names(&catalog).await, ["customers", "orders"]);
    catalog.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_are_ended_for_being_idle_are_made_again() {
    let postgres = PostgresProcess::start();
    let url = postgres.new_database("lake");
    postgres.psql("postgres", "ALTER DATABASE lake SET idle_session_timeout = '500ms'").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let catalog = open(folder.path(), &url).await;
    let connections = "SELECT count(*) FROM pg_stat_activity WHERE datname = 'lake'";
    for name in ["a", "b", "c"] {
        let is_none = async || postgres.psql("postgres", connections).unwrap().trim() == "0";
        wait_until("all connections are ended", is_none).await;
        create(&catalog, name).await.unwrap();
        wait_until("all connections are ended", is_none).await;
        assert_eq!(names(&catalog).await.last().map(String::as_str), Some(name));
    }
    catalog.close().await.unwrap();
}
