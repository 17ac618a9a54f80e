//! Where a shared catalog is, and where its files are: databases of other encodings and schemas, and the folder of the server
//! that was first.

use std::path::Path;
use std::time::Duration;

use querent_catalog::{Catalog, CatalogOptions, Principal};
use querent_engine::{Engine, EngineOptions, Limits};
use querent_tests::PostgresProcess;

use super::{create, names, open};
use crate::maintenance::parquet_files;
use crate::sql::rows;

#[tokio::test(flavor = "multi_thread")]
async fn servers_read_and_write_the_files_in_the_first_ones_folder() {
    let postgres = PostgresProcess::start();
    let url = postgres.new_database("lake");
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let open = async |folder: &Path| {
        Engine::open_with(EngineOptions { catalog_url: Some(url.clone()), ..EngineOptions::new(folder) }).await.unwrap()
    };
    let (one, two) = (open(folders[0].path()).await, open(folders[1].path()).await);
    let session = |engine: &Engine| engine.session(Principal::local_admin(), Limits::default());
    let (first, second) = (session(&one), session(&two));
    rows(&first, "CREATE TABLE t AS SELECT value AS a FROM generate_series(1, 10000) AS s(value)").await.unwrap();
    assert_eq!(rows(&second, "SELECT count(*), sum(a) FROM t").await.unwrap(), [["10000", "50005000"]]);
    rows(&second, "INSERT INTO t SELECT value AS a FROM generate_series(10001, 20000) AS s(value)").await.unwrap();
    rows(&second, "DELETE FROM t WHERE a % 2 = 0").await.unwrap();
    for session in [&first, &second] {
        assert_eq!(rows(session, "SELECT count(*), max(a) FROM t").await.unwrap(), [["10000", "19999"]]);
    }
    assert!(parquet_files(&folders[0].path().join("data")).len() >= 2);
    assert_eq!(parquet_files(&folders[1].path().join("data")).len(), 0);

    // They are read under the grants of their tables only, on the other server, too.
    let files = folders[0].path().canonicalize().unwrap().join("data");
    let outside = format!("CREATE EXTERNAL TABLE x STORED AS PARQUET LOCATION '{}/'", files.display());
    for session in [&first, &second] {
        assert_eq!(rows(session, &outside).await.unwrap_err().code(), "location_not_allowed");
    }
    drop((first, second));
    one.close().await.unwrap();
    two.close().await.unwrap();
}

/// A server whose folder had a lake of its own before must not take that one's files for what nobody knows.
#[tokio::test(flavor = "multi_thread")]
async fn files_of_another_lake_are_no_orphans() {
    let postgres = PostgresProcess::start();
    let url = postgres.new_database("lake");
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let shared = |folder: &Path| EngineOptions { catalog_url: Some(url.clone()), ..EngineOptions::new(folder) };
    let one = Engine::open_with(shared(folders[0].path())).await.unwrap();

    let before = Engine::open(folders[1].path()).await.unwrap();
    let session = before.session(Principal::local_admin(), Limits::default());
    rows(&session, "CREATE TABLE old AS SELECT value AS a FROM generate_series(1, 1000) AS s(value)").await.unwrap();
    drop(session);
    before.close().await.unwrap();

    let two = Engine::open_with(shared(folders[1].path())).await.unwrap();
    assert_eq!(two.remove_orphans(Duration::ZERO).await.unwrap(), []);
    assert_eq!(two.check(None).await.unwrap().orphans, []);
    // What nobody knows in the lake's own folder is found by every server.
    let left = folders[0].path().canonicalize().unwrap().join("data/ducklake-left.parquet");
    tokio::fs::write(&left, "PAR1").await.unwrap();
    let removed = two.remove_orphans(Duration::ZERO).await.unwrap();
    assert_eq!(removed.into_iter().map(|file| file.path).collect::<Vec<_>>(), [left]);
    for engine in [one, two] {
        engine.close().await.unwrap();
    }
    let after = Engine::open(folders[1].path()).await.unwrap();
    let session = after.session(Principal::local_admin(), Limits::default());
    assert_eq!(rows(&session, "SELECT count(*) FROM old").await.unwrap(), [["1000"]]);
    drop(session);
    after.close().await.unwrap();
}

#[tokio::test]
async fn a_database_that_names_do_not_fit_into_is_refused() {
    let postgres = PostgresProcess::start();
    let url = postgres.new_database("lake");
    postgres.psql("postgres", "CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let latin = url.replace("/lake", "/latin");
    let options = CatalogOptions { url: Some(latin), ..CatalogOptions::new(folder.path()) };
    let error = Catalog::open(options).await.err().unwrap();
    assert!(error.to_string().contains("LATIN1") && error.code() == "invalid_object", "{error}");
}

#[tokio::test]
async fn a_catalog_may_be_in_a_schema_of_any_name() {
    let postgres = PostgresProcess::start();
    let url = postgres.new_database("lake");
    postgres.psql("lake", "CREATE SCHEMA \"My Lake\"; CREATE TABLE public.other (a INTEGER)").unwrap();
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let url = format!("{url}?options=-c%20search_path%3D%22My%5C%20Lake%22");
    let one = open(folders[0].path(), &url).await;
    let two = open(folders[1].path(), &url).await;
    let long = "ö".repeat(100);
    for name in ["Über \"Q\" 日本", "it's", long.as_str()] {
        create(&one, name).await.unwrap();
        assert_eq!(create(&two, &name.to_uppercase()).await.unwrap_err().code(), "already_exists", "{name}");
    }
    assert_eq!(names(&one).await.len(), 3);
    assert_eq!(names(&one).await, names(&two).await);
    let elsewhere = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'";
    assert_eq!(postgres.psql("lake", elsewhere).unwrap().trim(), "1");
    one.close().await.unwrap();
    two.close().await.unwrap();
}
