//! The catalog on PostgreSQL: several servers over one, with a data folder each.

use std::path::Path;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema};
use querent_catalog::{
    Catalog, CatalogError, CatalogOptions, IfExists, NewToken, PageRequest, Principal, RunRecord, RunStatus,
    SearchRequest, SnapshotId, TableFilter, TableName, TableSource,
};
use querent_tests::PostgresProcess;
use tokio::task::JoinSet;
use uuid::Uuid;

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
    let page = PageRequest { limit: 10_000, after: None };
    let listed = catalog.tables().list(&Principal::local_admin(), &TableFilter::default(), page).await.unwrap();
    listed.items.into_iter().map(|table| table.name.table).collect()
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
    // Its server comes back too late, with another end and with what it has so far.
    for status in [RunStatus::Success, RunStatus::Running] {
        let late = RunRecord { status, ..run.clone() };
        assert_eq!(one.runs().update(&late).await.unwrap_err().code(), "run_not_found");
    }
    assert_eq!(one.runs().get(&Principal::local_admin(), run.run_id).await.unwrap().status, RunStatus::Error);
}

#[tokio::test]
async fn a_server_that_is_not_there_is_said_with_a_code() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("postgres://nobody@{}/lake", folder.path().display().to_string().replace('/', "%2F"));
    let options = CatalogOptions { url: Some(url), ..CatalogOptions::new(folder.path()) };
    let error = Catalog::open(options).await.err().unwrap();
    assert_eq!(error.code(), "catalog_unavailable", "{error}");

    let postgres = PostgresProcess::start();
    let url = postgres.new_database("lake");
    let catalog = open(folder.path(), &url).await;
    create(&catalog, "orders").await.unwrap();
    drop(postgres);
    let error = create(&catalog, "customers").await.unwrap_err();
    assert_eq!(error.code(), "catalog_unavailable", "{error}");
    catalog.close().await.unwrap();
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
