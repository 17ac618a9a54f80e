//! A server of PostgreSQL that stands still, that ends statements and connections, and whose locks are not to be had.

use std::sync::Arc;
use std::time::Duration;

use arrow::datatypes::{DataType, Field};
use querent_catalog::{NewToken, Principal, Role, TableAlteration, TableKind, TableName, TableSource};
use querent_engine::{Engine, EngineOptions, Limits};
use querent_tests::{PostgresProcess, ServerProcess, wait_until};
use serde_json::json;
use tokio::task::JoinSet;

use super::{create, names, open, snapshot};
use crate::sql::rows;

/// Longer than a write waits for a server that says nothing, with all that it asks on the way.
const WRITE_TIME: Duration = Duration::from_secs(45);
/// Longer than a read of known names waits: once for what nobody knows yet, and afterwards.
const FIRST_READ_TIME: Duration = Duration::from_secs(20);
const NEXT_READ_TIME: Duration = Duration::from_secs(4);
/// Ends whatever holds a lock for its sleep.
const END_SLEEPERS: &str = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                            WHERE query LIKE '%pg_sleep%' AND state = 'active' AND pid <> pg_backend_pid()";

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_stands_still_is_not_waited_for_without_end() {
    let postgres = PostgresProcess::start();
    let url = postgres.new_database("lake");
    let folder = tempfile::tempdir().unwrap();
    let catalog = open(folder.path(), &url).await;
    create(&catalog, "orders").await.unwrap();
    let (who, orders) = (Principal::local_admin(), [TableName::new("default", "orders")]);
    let known = catalog.tables().resolve_at(&who, &orders).await.unwrap();
    assert!(catalog.is_reachable());

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
    wait_until("the catalog is known to be away", async || !catalog.is_reachable()).await;

    // It recovers by itself.
    drop(suspended);
    wait_until("tables are made again", async || create(&catalog, "customers").await.is_ok()).await;
    wait_until("the catalog is known to be there", async || catalog.is_reachable()).await;
    assert_eq!(names(&catalog).await, ["customers", "orders"]);
    let (version, _) = catalog.tables().resolve_at(&who, &orders).await.unwrap();
    assert_eq!(version.snapshot, snapshot(&catalog).await, "what is read is what holds again");
    catalog.close().await.unwrap();
}

/// Rows that an operator counts or joins are read by several others, who all meet the error.
#[tokio::test(flavor = "multi_thread")]
async fn a_lost_server_keeps_its_code_below_any_operator() {
    let postgres = PostgresProcess::start();
    let folder = tempfile::tempdir().unwrap();
    let options =
        EngineOptions { catalog_url: Some(postgres.new_database("lake")), ..EngineOptions::new(folder.path()) };
    let engine = Engine::open_with(options).await.unwrap();
    let session = engine.session(Principal::local_admin(), Limits::default());
    drop(postgres);
    for sql in [
        "SELECT * FROM information_schema.columns",
        "SELECT count(*) FROM information_schema.columns",
        "SELECT count(*) FROM information_schema.tables t JOIN information_schema.columns c ON t.table_name = c.table_name",
    ] {
        let error = rows(&session, sql).await.unwrap_err();
        assert_eq!(error.code(), "catalog_unavailable", "{sql}: {error}");
    }
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
    let holds = "SET statement_timeout = 0; BEGIN; LOCK TABLE ducklake_snapshot IN SHARE ROW EXCLUSIVE MODE; \
                 SELECT pg_sleep(600)";
    let server = Arc::clone(&postgres);
    let holder = tokio::task::spawn_blocking(move || server.psql("lake", holds).unwrap_err());
    let held = "SELECT count(*) FROM pg_locks WHERE mode = 'ShareRowExclusiveLock' AND granted";
    wait_until("the lock is held", async || postgres.psql("lake", held).unwrap().trim() != "0").await;
    // All of them wait no longer than one.
    let refused = ["a", "b", "c"].map(|name| create(&catalog, name));
    for refused in futures::future::join_all(refused).await {
        let error = refused.unwrap_err();
        assert_eq!(error.code(), "catalog_busy", "{error}");
    }
    postgres.psql("postgres", END_SLEEPERS).unwrap();
    holder.await.unwrap();
    // The connection writes again, and so does what follows other servers.
    create(&catalog, "customers").await.unwrap();
    assert_eq!(names(&catalog).await, ["customers", "orders"]);
    catalog.close().await.unwrap();
}

/// What another server revoked is known while this one waits for its turn to write.
#[tokio::test(flavor = "multi_thread")]
async fn a_write_that_waits_keeps_no_revoked_token_valid() {
    let postgres = Arc::new(PostgresProcess::start());
    let url = postgres.new_database("lake");
    let folder = tempfile::tempdir().unwrap();
    let catalog = open(folder.path(), &url).await;
    let (admin, now) = (Principal::local_admin(), chrono::Utc::now());
    let new: NewToken = serde_json::from_str(r#"{"name": "grafana", "role": "read"}"#).unwrap();
    let (_, secret) = catalog.tokens().create(&admin, new, now).await.unwrap();
    let holds = "BEGIN; LOCK TABLE ducklake_snapshot IN SHARE ROW EXCLUSIVE MODE; SELECT pg_sleep(600)";
    let server = Arc::clone(&postgres);
    let holder = tokio::task::spawn_blocking(move || server.psql("lake", holds).unwrap_err());
    let locks = |is_granted: bool| {
        format!(
            "SELECT count(*) FROM pg_locks WHERE relation = 'ducklake_snapshot'::regclass
             AND mode = 'ShareRowExclusiveLock' AND granted = {is_granted}"
        )
    };
    let has_lock = async |is_granted: bool| postgres.psql("lake", &locks(is_granted)).unwrap().trim() == "1";
    wait_until("the lock is held", async || has_lock(true).await).await;
    let (mut waiting, writer) = (JoinSet::new(), Arc::clone(&catalog));
    waiting.spawn(async move { create(&writer, "orders").await });
    wait_until("the write waits", async || has_lock(false).await).await;
    postgres.psql("lake", "UPDATE querent_token SET revoked_at = created_at").unwrap();
    wait_until("the token is refused", async || catalog.tokens().principal_for(&secret, now).is_none()).await;
    assert!(waiting.try_join_next().is_none(), "the token was valid for as long as the write waited");
    postgres.psql("postgres", END_SLEEPERS).unwrap();
    holder.await.unwrap();
    waiting.join_next().await.unwrap().unwrap().unwrap();
    catalog.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_stands_still_in_its_commit_keeps_nobody_from_writing() {
    let postgres = Arc::new(PostgresProcess::start());
    let url = postgres.new_database("lake");
    let folder = tempfile::tempdir().unwrap();
    let catalog = open(folder.path(), &url).await;
    let server = ServerProcess::start(&[("QUERENT_CATALOG_URL", url.as_str())]);
    // Its commit gets as far as this table, with the lock of all commits.
    let holds = "BEGIN; LOCK TABLE ducklake_snapshot_changes IN SHARE ROW EXCLUSIVE MODE; SELECT pg_sleep(600)";
    let holding = Arc::clone(&postgres);
    let holder = tokio::task::spawn_blocking(move || holding.psql("lake", holds).unwrap_err());
    let locks = |is_granted: bool| {
        format!(
            "SELECT count(*) FROM pg_locks WHERE relation = 'ducklake_snapshot_changes'::regclass AND granted = {is_granted}
             AND mode = '{}'",
            if is_granted { "ShareRowExclusiveLock" } else { "RowExclusiveLock" }
        )
    };
    let has_lock = async |is_granted: bool| postgres.psql("lake", &locks(is_granted)).unwrap().trim() == "1";
    wait_until("the table is locked", async || has_lock(true).await).await;
    let http = reqwest::Client::new();
    let create_orders = || {
        let statement = json!({ "sql": "CREATE TABLE orders (a INT)" });
        http.post(format!("{}/v1/query", server.url.trim_end_matches('/'))).json(&statement).send()
    };
    let written = tokio::spawn(create_orders());
    wait_until("the commit waits for the table", async || has_lock(false).await).await;
    server.signal("STOP");
    postgres.psql("postgres", END_SLEEPERS).unwrap();
    holder.await.unwrap();

    create(&catalog, "customers").await.unwrap();
    // When it goes on, it knows that nothing of its commit is there.
    server.signal("CONT");
    let refused = written.await.unwrap().unwrap();
    assert_eq!(refused.status(), 503);
    assert!(refused.headers().contains_key("retry-after"), "{refused:?}");
    let told = refused.text().await.unwrap();
    assert!(told.contains("catalog_unavailable") && !told.contains("postgres"), "{told}");
    assert_eq!(names(&catalog).await, ["customers"]);
    assert_eq!(create_orders().await.unwrap().status(), 200);
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

/// Others write all the time, so that the version that holds is never the one at which a table was read.
#[tokio::test(flavor = "multi_thread")]
async fn what_others_changed_elsewhere_does_not_make_known_tables_unknown() {
    let postgres = PostgresProcess::start();
    let url = postgres.new_database("lake");
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let (one, two) = (open(folders[0].path(), &url).await, open(folders[1].path(), &url).await);
    let who = Principal::local_admin();
    let named = |name: &str| [TableName::new("default", name)];
    for name in ["orders", "altered", "dropped"] {
        create(&one, name).await.unwrap();
        one.tables().resolve(&who, &named(name)).await.unwrap();
    }
    let TableSource::Managed(table) =
        one.tables().resolve(&who, &named("orders")).await.unwrap()[0].clone().unwrap().source
    else {
        panic!("it has rows of its own")
    };
    let contents = one.tables().contents(&table, &[]).await.unwrap();
    let field = Field::new("c", DataType::Int64, true);
    let alteration =
        TableAlteration::AddColumn { field, is_json: false, is_uuid: false, default: None, if_missing: false };
    two.tables().alter(&named("altered")[0], vec![alteration]).await.unwrap();
    assert!(two.tables().drop(&named("dropped")[0], &[TableKind::Managed], false).await.unwrap());
    create(&two, "created").await.unwrap();

    // One statement says what changed: the table is found at the version of now.
    let newest = snapshot(&two).await;
    let (version, found) = one.tables().resolve_at(&who, &named("orders")).await.unwrap();
    let TableSource::Managed(carried) = found[0].clone().unwrap().source else { panic!("{found:?}") };
    assert_eq!((version.snapshot, carried.snapshot), (newest, newest));
    // Its own commit is a version, too.
    create(&one, "own").await.unwrap();

    let suspended = postgres.suspend();
    let names = named("orders");
    let asked = one.tables().resolve_at(&who, &names);
    let (version, found) = tokio::time::timeout(FIRST_READ_TIME, asked).await.expect("an answer in time").unwrap();
    assert_eq!(version.snapshot, newest + 1);
    let TableSource::Managed(carried) = found[0].clone().unwrap().source else { panic!("{found:?}") };
    assert_eq!(one.tables().contents(&carried, &[]).await.unwrap(), contents);
    // What was changed was not read since.
    for name in ["altered", "dropped", "own"] {
        let error = one.tables().resolve(&who, &named(name)).await.unwrap_err();
        assert_eq!(error.code(), "catalog_unavailable", "{name}: {error}");
    }
    drop(suspended);
    let is_back = async || one.tables().resolve(&who, &named("own")).await.is_ok();
    wait_until("the server answers again", is_back).await;
    assert_eq!(one.tables().resolve(&who, &named("dropped")).await.unwrap(), [None]);
    let altered = one.tables().resolve(&who, &named("altered")).await.unwrap();
    assert_eq!(altered[0].as_ref().unwrap().info.columns.len(), 3);
    one.close().await.unwrap();
    two.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_whose_connection_is_ended_is_made_on_another() {
    let postgres = Arc::new(PostgresProcess::start());
    let url = postgres.new_database("lake");
    let folder = tempfile::tempdir().unwrap();
    let catalog = open(folder.path(), &url).await;
    create(&catalog, "orders").await.unwrap();
    let orders = [TableName::new("default", "orders")];
    let end_all = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = 'lake'";
    for round in 0..20 {
        let server = Arc::clone(&postgres);
        let ending = tokio::task::spawn_blocking(move || server.psql("postgres", end_all).unwrap());
        let mut reads = 0;
        while !ending.is_finished() {
            // Nobody has read it for this caller.
            let who = Principal::new(format!("caller {reads} of {round}"), Role::Read);
            let found = catalog.tables().resolve(&who, &orders).await.unwrap();
            assert!(found[0].is_some());
            reads += 1;
        }
        ending.await.unwrap();
    }
    catalog.close().await.unwrap();
}
