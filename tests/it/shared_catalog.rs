//! The catalog on PostgreSQL: several servers over one, with a data folder each.

mod clocks;
mod histories;
mod many_tables;
mod outages;
mod places;
mod policies;
mod schema_index;
mod tls;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use arrow::datatypes::{DataType, Field, Schema};
use chrono::SubsecRound;
use querent_catalog::{
    Catalog, CatalogError, CatalogOptions, ConversationKey, ConversationRecord, DecidedRun, IfExists, LeaseTurn,
    LeasedWork, NewToken, PageRequest, PendingCall, PendingDecision, PendingKind, PendingState, Principal, Purged,
    Role, RunRecord, RunStatus, RunTurn, SearchRequest, SnapshotId, TableFilter, TableName, TableSource,
};
use querent_engine::{Engine, EngineOptions, Limits};
use querent_tests::PostgresProcess;
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::maintenance::parquet_files;
use crate::sql::rows;

async fn open(folder: &Path, url: &str) -> Arc<Catalog> {
    Catalog::open(CatalogOptions { url: Some(url.to_owned()), ..CatalogOptions::new(folder) }).await.unwrap()
}

fn numbers() -> Schema {
    Schema::new(vec![Field::new("a", DataType::Int64, false), Field::new("b", DataType::Utf8, true)])
}

async fn create(catalog: &Catalog, name: &str) -> Result<(), CatalogError> {
    let name = TableName::new("default", name);
    let draft = catalog.tables().draft(&name, &numbers(), Some("numbers and their names".into())).await?;
    catalog.tables().create(draft, Vec::new(), IfExists::Error).await.map(|_| ())
}

async fn names(catalog: &Catalog) -> Vec<String> {
    let (mut names, mut after) = (Vec::new(), None);
    loop {
        let page = PageRequest { limit: 1_000, after };
        let listed = catalog.tables().list(&Principal::local_admin(), &TableFilter::default(), page).await.unwrap();
        names.extend(listed.items.into_iter().map(|table| table.name.table));
        match listed.next {
            Some(next) => after = Some(next),
            None => return names,
        }
    }
}

async fn snapshot(catalog: &Catalog) -> SnapshotId {
    catalog.snapshot().await.unwrap()
}

#[tokio::test]
async fn what_one_server_commits_the_other_sees_at_once() {
    let postgres = PostgresProcess::start();
    let url = postgres.new_database("lake");
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let (one, two) = (open(folders[0].path(), &url).await, open(folders[1].path(), &url).await);
    create(&one, "orders").await.unwrap();
    assert_eq!(names(&two).await, ["orders"]);
    assert_eq!(create(&two, "ORDERS").await.unwrap_err().code(), "already_exists");
    create(&two, "customers").await.unwrap();
    assert_eq!(names(&one).await, ["customers", "orders"]);
    assert_eq!(snapshot(&one).await, snapshot(&two).await);

    // The files of a table lie where the first server put them, whoever writes.
    let name = [TableName::new("default", "customers")];
    let found = two.tables().resolve(&Principal::local_admin(), &name).await.unwrap();
    let TableSource::Managed(table) = &found[0].as_ref().unwrap().source else { panic!("{found:?}") };
    assert!(table.location.starts_with(folders[0].path().canonicalize().unwrap()), "{:?}", table.location);

    // Search knows what the other made.
    for catalog in [&one, &two] {
        querent_tests::wait_until("both servers find both tables", async || {
            let request = SearchRequest { query: "numbers and their names".into(), database: None, limit: 10 };
            catalog.search().tables(&Principal::local_admin(), &request).await.unwrap().len() == 2
        })
        .await;
    }
    for catalog in [one, two] {
        catalog.close().await.unwrap();
    }
    let again = open(folders[0].path(), &url).await;
    assert_eq!(names(&again).await, ["customers", "orders"]);
    again.close().await.unwrap();
}

#[tokio::test]
async fn two_servers_create_the_same_tables_at_once_and_each_is_there_once() {
    let postgres = PostgresProcess::start();
    let url = postgres.new_database("lake");
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let (one, two) = (open(folders[0].path(), &url).await, open(folders[1].path(), &url).await);
    let before = snapshot(&one).await;
    let mut tasks = JoinSet::new();
    for catalog in [Arc::clone(&one), Arc::clone(&two)] {
        tasks.spawn(async move {
            let mut created = 0;
            for number in 0..50 {
                match create(&catalog, &format!("t{number:02}")).await {
                    Ok(()) => created += 1,
                    Err(error) => assert_eq!(error.code(), "already_exists"),
                }
            }
            created
        });
    }
    let created: i64 = tasks.join_all().await.into_iter().sum();
    assert_eq!(created, 50);
    assert_eq!(names(&one).await, names(&two).await);
    assert_eq!(names(&one).await.len(), 50);
    // Each is a snapshot of its own, and none is lost.
    assert_eq!(snapshot(&one).await, before + 50);
    let ids = postgres.psql("lake", "SELECT count(*), max(snapshot_id) + 1 FROM ducklake_snapshot").unwrap();
    let (count, next) = ids.trim().split_once('|').unwrap();
    assert_eq!(count, next);
}

#[tokio::test]
async fn tokens_and_runs_are_those_of_all_servers() {
    let postgres = PostgresProcess::start();
    let url = postgres.new_database("lake");
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let (one, two) = (open(folders[0].path(), &url).await, open(folders[1].path(), &url).await);
    let (admin, now) = (Principal::local_admin(), chrono::Utc::now());
    let new: NewToken = serde_json::from_str(r#"{"name": "grafana", "role": "read"}"#).unwrap();
    let (info, secret) = one.tokens().create(&admin, new, now).await.unwrap();
    querent_tests::wait_until("the other server takes the token", async || {
        two.tokens().principal_for(&secret, now).is_some()
    })
    .await;
    two.tokens().revoke(&admin, info.id, now).await.unwrap();
    querent_tests::wait_until("the other server refuses it", async || {
        one.tokens().principal_for(&secret, now).is_none()
    })
    .await;

    let run = RunRecord::new(Uuid::now_v7(), "ada", "how many?", "model", now);
    one.runs().insert(&run).await.unwrap();
    assert_eq!(two.runs().get(&admin, run.run_id).await.unwrap().question, "how many?");
    // What another server does is not taken for a run that ended with an earlier process.
    assert_eq!(two.runs().running(10).await.unwrap(), []);
    assert_eq!(one.runs().running(10).await.unwrap().len(), 1);
}

#[tokio::test]
async fn servers_know_where_the_others_are_and_one_ends_a_run() {
    let postgres = PostgresProcess::start();
    let url = postgres.new_database("lake");
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let (one, two) = (open(folders[0].path(), &url).await, open(folders[1].path(), &url).await);
    let first = one.members().own().unwrap().to_owned();
    assert_eq!(two.members().address_of(&first).await.unwrap(), None);
    one.members().announce(Some("http://10.0.0.1:8080".to_owned())).await.unwrap();
    assert_eq!(two.members().address_of(&first).await.unwrap().as_deref(), Some("http://10.0.0.1:8080"));
    assert_eq!(two.members().address_of("nobody").await.unwrap(), None);
    assert_eq!(two.members().lost(), Vec::<String>::new());

    let run = RunRecord::new(Uuid::now_v7(), "ada", "how many?", "model", chrono::Utc::now());
    one.runs().insert(&run).await.unwrap();
    assert_eq!(two.runs().server_of(run.run_id).await.unwrap().as_deref(), Some(first.as_str()));
    assert_eq!(one.runs().server_of(run.run_id).await.unwrap(), None);
    assert_eq!(two.runs().running_on(&first, 10).await.unwrap().len(), 1);
    let ended = RunRecord { status: RunStatus::Error, finished_at: Some(run.started_at), ..run.clone() };
    assert!(!two.runs().end_on("nobody", &ended).await.unwrap());
    assert!(two.runs().end_on(&first, &ended).await.unwrap());
    assert!(!two.runs().end_on(&first, &ended).await.unwrap(), "once");
    assert_eq!(two.runs().server_of(run.run_id).await.unwrap(), None);
    // Its server comes back too late, with another end, with what it has so far, and with an end of the same kind.
    for status in [RunStatus::Success, RunStatus::Running, RunStatus::Error] {
        let late = RunRecord { status, finished_at: Some(chrono::Utc::now()), ..run.clone() };
        assert_eq!(one.runs().update(&late).await.unwrap_err().code(), "run_not_found");
    }
    let stored = one.runs().get(&Principal::local_admin(), run.run_id).await.unwrap();
    assert_eq!(
        (stored.status, stored.finished_at),
        (RunStatus::Error, ended.finished_at.map(|at| at.trunc_subsecs(6)))
    );
    // Whoever ended it and did not hear that says it again.
    two.runs().update(&ended).await.unwrap();
}

/// Begins a run where no other is in its way.
async fn begin(catalog: &Catalog, run: &RunRecord, most: Option<usize>) -> RunTurn {
    catalog.runs().insert_in_turn(run, most).await.unwrap()
}

#[tokio::test]
async fn runs_of_a_subject_are_bounded_over_two_servers() {
    let postgres = PostgresProcess::start();
    let url = postgres.new_database("lake");
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let (one, two) = (open(folders[0].path(), &url).await, open(folders[1].path(), &url).await);
    let run = |subject: &str| RunRecord::new(Uuid::now_v7(), subject, "how many?", "model", chrono::Utc::now());
    let mut tasks = JoinSet::new();
    for number in 0..20 {
        let (catalog, run) = (Arc::clone(if number % 2 == 0 { &one } else { &two }), run("ada"));
        tasks.spawn(async move { (begin(&catalog, &run, Some(3)).await == RunTurn::Stored).then_some(run) });
    }
    let begun: Vec<RunRecord> = tasks.join_all().await.into_iter().flatten().collect();
    assert_eq!(begun.len(), 3);
    assert_eq!(begin(&two, &run("bob"), Some(3)).await, RunTurn::Stored, "another's runs are not counted");
    // A run that has ended makes room, whichever server had it.
    let ended = RunRecord { status: RunStatus::Success, finished_at: Some(chrono::Utc::now()), ..begun[0].clone() };
    one.runs().update(&ended).await.unwrap();
    assert_eq!(begin(&two, &run("ada"), Some(3)).await, RunTurn::Stored);
    assert_eq!(begin(&one, &run("ada"), Some(3)).await, RunTurn::TooMany);
    // Whoever waits for its turn reads.
    assert_eq!(two.runs().turn(&run("ada"), Some(3)).await.unwrap(), RunTurn::TooMany);
    assert_eq!(two.runs().turn(&run("eve"), Some(3)).await.unwrap(), RunTurn::Stored);
    assert_eq!(begin(&one, &run("eve"), Some(1)).await, RunTurn::Stored, "asking has stored none");
}

#[tokio::test]
async fn a_conversation_has_one_run_over_two_servers() {
    let postgres = PostgresProcess::start();
    let url = postgres.new_database("lake");
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let (one, two) = (open(folders[0].path(), &url).await, open(folders[1].path(), &url).await);
    let ada = Principal::new("ada", Role::Read);
    for number in 0..20 {
        let key = ConversationKey::shared(format!("c{number}"));
        one.conversations().open(&ada, &ConversationRecord::new(key.clone(), "ada", chrono::Utc::now())).await.unwrap();
        let run = || RunRecord {
            conversation: Some(key.clone()),
            ..RunRecord::new(Uuid::now_v7(), "ada", "how many?", "model", chrono::Utc::now())
        };
        let runs = [run(), run()];
        let (first, second) = tokio::join!(begin(&one, &runs[0], None), begin(&two, &runs[1], None));
        let mut turns = [first, second];
        turns.sort_by_key(|turn| *turn != RunTurn::Stored);
        assert_eq!(turns, [RunTurn::Stored, RunTurn::ConversationBusy]);
    }
}

#[tokio::test]
async fn a_run_that_acts_on_a_decision_is_alone_in_its_conversation() {
    let postgres = PostgresProcess::start();
    let url = postgres.new_database("lake");
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let (one, two) = (open(folders[0].path(), &url).await, open(folders[1].path(), &url).await);
    let ada = Principal::new("ada", Role::Read);
    for number in 0..10 {
        let key = ConversationKey::shared(format!("c{number}"));
        one.conversations().open(&ada, &ConversationRecord::new(key.clone(), "ada", chrono::Utc::now())).await.unwrap();
        let run = || RunRecord {
            conversation: Some(key.clone()),
            ..RunRecord::new(Uuid::now_v7(), "ada", "how many?", "model", chrono::Utc::now())
        };
        let paused = RunRecord { status: RunStatus::Paused, ..run() };
        one.runs().insert(&paused).await.unwrap();
        let call_id = format!("call_{number}");
        let call = PendingCall {
            call_id: call_id.clone(),
            kind: PendingKind::Approval,
            subject: "ada".into(),
            run_id: paused.run_id,
            conversation: Some(key.clone()),
            tool: "execute_sql".into(),
            arguments_json: "{}".into(),
            state: PendingState::Waiting,
            decided_at: None,
            decision_json: None,
            receipt_json: None,
        };
        one.pending_calls().insert(&[call]).await.unwrap();
        let decision =
            PendingDecision { call_id: call_id.clone(), state: PendingState::Approved, decision_json: "{}".into() };
        let (deciding, asking) = (run(), run());
        let (decided, asked) =
            tokio::join!(one.pending_calls().begin_run(&ada, &deciding, vec![decision]), begin(&two, &asking, None));
        // One of them goes on; where it is not the one with the decision, that is still to be made.
        let state = two.pending_calls().get(&ada, &call_id).await.unwrap().state;
        match decided.unwrap() {
            DecidedRun::Begun => assert_eq!((asked, state), (RunTurn::ConversationBusy, PendingState::Approved)),
            other => {
                assert_eq!(other, DecidedRun::ConversationBusy);
                assert_eq!((asked, state), (RunTurn::Stored, PendingState::Waiting));
            }
        }
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_is_said_with_a_code() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("postgres://nobody@{}/lake", folder.path().display().to_string().replace('/', "%2F"));
    let options = CatalogOptions { url: Some(url), ..CatalogOptions::new(folder.path()) };
    let error = Catalog::open(options).await.err().unwrap();
    assert_eq!(error.code(), "catalog_unavailable", "{error}");
    assert!(error.to_string().contains("postgres://"), "whoever opens it reads where it is: {error}");

    let postgres = PostgresProcess::start();
    let url = postgres.new_database("lake");
    let catalog = open(folder.path(), &url).await;
    create(&catalog, "orders").await.unwrap();
    drop(postgres);
    let error = create(&catalog, "customers").await.unwrap_err();
    assert_eq!(error.code(), "catalog_unavailable", "{error}");
    assert!(!error.to_string().contains("postgres"), "callers do not: {error}");
    catalog.close().await.unwrap();
}

#[tokio::test]
async fn names_that_were_used_are_read_on_while_the_server_is_away() {
    let postgres = PostgresProcess::start();
    let url = postgres.new_database("lake");
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let (one, two) = (open(folders[0].path(), &url).await, open(folders[1].path(), &url).await);
    let who = Principal::local_admin();
    let (orders, customers) = (TableName::new("default", "orders"), TableName::new("default", "customers"));
    create(&one, "orders").await.unwrap();
    let names = [orders.clone()];
    let (version, found) = one.tables().resolve_at(&who, &names).await.unwrap();

    // What is known is known at a version: another server's commit is seen by the very next statement.
    assert_eq!(one.tables().resolve_at(&who, &names).await.unwrap(), (version, found));
    create(&two, "customers").await.unwrap();
    let both = [orders, customers.clone()];
    let (later, found) = one.tables().resolve_at(&who, &both).await.unwrap();
    assert_eq!(later.snapshot, version.snapshot + 1);
    let TableSource::Managed(table) = found[0].as_ref().unwrap().source.clone() else { panic!("{found:?}") };
    let contents = one.tables().contents(&table, &[]).await.unwrap();
    let database = one.databases().get(&who, "Default").await.unwrap().expect("it is there");
    // A caller who may not see the database is another caller.
    let stranger = Principal::new("eve", Role::Read).with_databases(["elsewhere"]);
    assert_eq!(one.tables().resolve(&stranger, &names).await.unwrap(), [None]);

    drop(postgres);
    assert_eq!(one.tables().resolve_at(&who, &both).await.unwrap(), (later, found));
    assert_eq!(one.tables().contents(&table, &[]).await.unwrap(), contents);
    assert_eq!(one.tables().contents(&table, &[1]).await.unwrap(), contents, "without statistics");
    assert_eq!(one.tables().resolve(&stranger, &names).await.unwrap(), [None]);
    assert_eq!(one.tables().version().await.unwrap(), later);
    // Statements that begin in a database go on, of whoever found it.
    assert_eq!(one.databases().get(&who, "Default").await.unwrap(), Some(database));
    assert_eq!(one.databases().get(&stranger, "Default").await.unwrap_err().code(), "catalog_unavailable");
    // What was never asked for is not known to be there, or not.
    let unused = [TableName::new("default", "unused")];
    let error = one.tables().resolve(&who, &unused).await.unwrap_err();
    assert_eq!(error.code(), "catalog_unavailable", "{error}");
    assert_eq!(create(&one, "more").await.unwrap_err().code(), "catalog_unavailable");
    let error = two.tables().resolve(&who, &[customers]).await.unwrap_err();
    assert_eq!(error.code(), "catalog_unavailable", "the other server has not read it: {error}");
}

#[tokio::test]
async fn connections_that_the_server_ended_are_made_again() {
    let postgres = PostgresProcess::start();
    let url = postgres.new_database("lake");
    let folder = tempfile::tempdir().unwrap();
    let catalog = open(folder.path(), &url).await;
    create(&catalog, "orders").await.unwrap();
    let end = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = 'lake' AND pid <> pg_backend_pid()";
    postgres.psql("lake", end).unwrap();
    assert_eq!(names(&catalog).await, ["orders"]);
    create(&catalog, "customers").await.unwrap();
    assert_eq!(names(&catalog).await, ["customers", "orders"]);
}

const HOUR: Duration = Duration::from_secs(3_600);

/// A run that ended a second after the beginning of time.
async fn insert_old_run(catalog: &Catalog) {
    let second = chrono::DateTime::from_timestamp(1, 0).unwrap();
    let run = RunRecord::new(Uuid::now_v7(), "ada", "how many?", "model", second);
    let run = RunRecord { status: RunStatus::Success, finished_at: Some(second), ..run };
    catalog.runs().insert(&run).await.unwrap();
}

#[tokio::test]
async fn one_server_does_the_work_and_another_takes_over_when_it_is_gone() {
    let postgres = PostgresProcess::start();
    let url = postgres.new_database("lake");
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let (one, two) = (open(folders[0].path(), &url).await, open(folders[1].path(), &url).await);
    let lake = |sql: &str| postgres.psql("lake", sql).unwrap().trim().to_owned();
    let now = chrono::Utc::now();

    let lease = one.leases().take(LeasedWork::Retention, HOUR).await.unwrap().had().unwrap();
    assert!(lease.is_shared());
    for catalog in [&one, &two] {
        let turn = catalog.leases().take(LeasedWork::Retention, HOUR).await.unwrap();
        assert!(matches!(turn, LeaseTurn::Later(wait) if wait <= Duration::from_secs(30)), "{turn:?}");
    }
    let holder = std::fs::read_to_string(folders[0].path().join("server.id")).unwrap();
    let holder = holder.lines().next().unwrap();
    assert_eq!(lake("SELECT holder FROM querent_lease WHERE name = 'retention'"), holder);
    let left = "SELECT expires_at / 1000000.0 - extract(epoch FROM clock_timestamp()) BETWEEN 1 AND 30
                FROM querent_lease WHERE name = 'retention'";
    assert_eq!(lake(left), "t");
    insert_old_run(&one).await;
    let purged = one.purge_before(now, &lease).await.unwrap();
    assert_eq!(purged, Purged { runs: 1, ..Purged::default() });

    // Other work is another lease.
    let other = two.leases().take(LeasedWork::OrphanedFiles, HOUR).await.unwrap().had().unwrap();
    other.finish().await.unwrap();
    // Whoever did it: it is done.
    let turn = one.leases().take(LeasedWork::OrphanedFiles, HOUR).await.unwrap();
    assert!(matches!(turn, LeaseTurn::Later(wait) if wait > HOUR / 2), "{turn:?}");

    // The holder stands still until its time is over, and wakes up after another took over.
    insert_old_run(&one).await;
    lake("UPDATE querent_lease SET expires_at = 0 WHERE name = 'retention'");
    let taken = two.leases().take(LeasedWork::Retention, HOUR).await.unwrap().had().unwrap();
    assert_eq!(one.purge_before(now, &lease).await.unwrap_err().code(), "conflict");
    assert_eq!(one.external_users().purge(now, &lease).await.unwrap_err().code(), "conflict");
    assert_eq!(two.purge_before(now, &taken).await.unwrap(), Purged { runs: 1, ..Purged::default() });
    assert_eq!(lake("SELECT fence FROM querent_lease WHERE name = 'retention'"), "2");
    taken.finish().await.unwrap();

    // A server that shuts down has none, whatever it was at.
    let unfinished = two.leases().take(LeasedWork::ColumnValues, HOUR).await.unwrap().had().unwrap();
    let held = "SELECT count(*) FROM querent_lease WHERE holder IS NOT NULL AND name NOT LIKE 'index of %'";
    assert_eq!(lake(held), "1");
    two.close().await.unwrap();
    assert_eq!(lake(held), "0");
    assert!(one.leases().take(LeasedWork::ColumnValues, HOUR).await.unwrap().had().is_some());
    drop(unfinished);
    one.close().await.unwrap();
}

#[tokio::test]
async fn a_holder_that_was_killed_has_its_lease_again_when_it_is_back() {
    let postgres = PostgresProcess::start();
    let url = postgres.new_database("lake");
    let folder = tempfile::tempdir().unwrap();
    let one = open(folder.path(), &url).await;
    let lease = one.leases().take(LeasedWork::Retention, HOUR).await.unwrap().had().unwrap();
    // Neither gives anything back.
    drop((lease, one));
    let again = open(folder.path(), &url).await;
    assert!(again.leases().take(LeasedWork::Retention, HOUR).await.unwrap().had().is_some());
    let fence = postgres.psql("lake", "SELECT fence FROM querent_lease WHERE name = 'retention'").unwrap();
    assert_eq!(fence.trim(), "2");
    again.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn values_are_sampled_by_one_server() {
    let postgres = PostgresProcess::start();
    let url = postgres.new_database("lake");
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let open = async |folder: &Path| {
        Engine::open_with(EngineOptions { catalog_url: Some(url.clone()), ..EngineOptions::new(folder) }).await.unwrap()
    };
    let (one, two) = (open(folders[0].path()).await, open(folders[1].path()).await);
    let lake = |sql: &str| postgres.psql("lake", sql).unwrap().trim().to_owned();
    let profiles = "SELECT count(*) FROM querent_profile";

    // Another server is at it: this one waits for its turn.
    let lease = two.catalog().leases().take(LeasedWork::ColumnValues, Duration::ZERO).await.unwrap().had().unwrap();
    let session = one.session(Principal::local_admin(), Limits::default());
    session.sql("CREATE TABLE carriers AS SELECT 'UA' AS code").await.unwrap().collect().await.unwrap();
    one.wait_for_profiles(Duration::from_secs(2)).await;
    assert_eq!(lake(profiles), "0");
    lease.give_back().await.unwrap();
    querent_tests::wait_until("the values are sampled", async || lake(profiles) == "1").await;
    one.wait_for_profiles(Duration::from_secs(20)).await;
    let fence = "SELECT fence FROM querent_lease WHERE name = 'column values' AND holder IS NULL";
    assert_eq!(lake(fence), "2");

    // What one server has sampled, the other need not.
    two.queue_profiles([TableName::new("default", "carriers")]);
    two.wait_for_profiles(Duration::from_secs(20)).await;
    assert_eq!(lake(fence), "2");
    drop(session);
    one.close().await.unwrap();
    two.close().await.unwrap();
}

/// Ends the connection of whoever commits a snapshot, in the middle of that.
const LOSES_COMMITS: &str = "CREATE FUNCTION lose() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
         PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END $$;
     CREATE CONSTRAINT TRIGGER loses AFTER INSERT ON ducklake_snapshot DEFERRABLE INITIALLY DEFERRED
         FOR EACH ROW EXECUTE FUNCTION lose()";

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_of_which_nobody_heard_takes_no_file_away() {
    let postgres = PostgresProcess::start();
    let url = postgres.new_database("lake");
    let folder = tempfile::tempdir().unwrap();
    let options = EngineOptions { catalog_url: Some(url), ..EngineOptions::new(folder.path()) };
    let engine = Engine::open_with(options).await.unwrap();
    let session = engine.session(Principal::local_admin(), Limits::default());
    let files = || parquet_files(&folder.path().join("data")).len();
    rows(&session, "CREATE TABLE t AS SELECT value AS a FROM generate_series(1, 3) AS s(value)").await.unwrap();
    assert_eq!(files(), 1);
    postgres.psql("lake", LOSES_COMMITS).unwrap();
    // The table may have the file by now, whatever is answered.
    for (statement, expected) in [("INSERT INTO t VALUES (4)", 2), ("DELETE FROM t WHERE a = 1", 3)] {
        let error = rows(&session, statement).await.unwrap_err();
        assert_eq!(error.code(), "commit_in_doubt", "{statement}: {error}");
        assert!(!error.to_string().contains("postgres"), "{statement}: {error}");
        assert_eq!(files(), expected, "{statement}");
    }
    postgres.psql("lake", "DROP TRIGGER loses ON ducklake_snapshot").unwrap();
    assert_eq!(rows(&session, "SELECT a FROM t ORDER BY a").await.unwrap(), [["1"], ["2"], ["3"]]);
    rows(&session, "INSERT INTO t VALUES (5)").await.unwrap();
    assert_eq!(rows(&session, "SELECT count(*) FROM t").await.unwrap(), [["4"]]);
    // What is refused for another reason leaves nothing.
    let before = files();
    rows(&session, "INSERT INTO t SELECT CAST('x' AS BIGINT)").await.unwrap_err();
    assert_eq!(files(), before);
    drop(session);
    engine.close().await.unwrap();
}
