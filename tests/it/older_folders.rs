//! Data folders that earlier versions wrote, kept in `tests/folders/` by the number of the catalog's format: this build opens a
//! copy of each, and reads what they hold. `scripts/folder_fixture.py` makes the next one.

use std::path::{Path, PathBuf};

use querent_catalog::{PageRequest, Principal, Role, TableName};
use querent_engine::{Engine, Limits};
use querent_tests::package_folder;
use rusqlite::Connection;

use crate::duckdb::duckdb;
use crate::policies::principal;
use crate::sql::{admin, rows};

/// The folders, by their formats.
fn kept() -> Vec<(i64, PathBuf)> {
    let folders = std::fs::read_dir(package_folder().join("folders")).unwrap();
    let mut kept: Vec<(i64, PathBuf)> = folders
        .map(|folder| {
            let path = folder.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            (name.strip_prefix("format-").unwrap().parse().unwrap(), path)
        })
        .collect();
    kept.sort();
    kept
}

/// Copies a folder; what is compressed in it is a store.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target);
        } else if path.extension().is_some_and(|extension| extension == "gz") {
            let mut packed = flate2::read::GzDecoder::new(std::fs::File::open(&path).unwrap());
            let mut store = std::fs::File::create(target.with_extension("")).unwrap();
            std::io::copy(&mut packed, &mut store).unwrap();
        } else {
            std::fs::copy(&path, &target).unwrap();
        }
    }
}

fn format_of(data: &Path) -> i64 {
    let store = Connection::open(data.join("catalog.sqlite")).unwrap();
    store.query_row("SELECT max(version) FROM querent_migrations", [], |row| row.get(0)).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_of_each_format_is_read_as_it_was_written() {
    let kept = kept();
    assert!(!kept.is_empty());
    for (format, folder) in kept {
        let copied = tempfile::tempdir().unwrap();
        let data = copied.path().join("data");
        copy(&folder, &data);
        assert_eq!(format_of(&data), format);
        let engine = Engine::open(&data).await.unwrap();
        reads_what_was_written(&engine).await;
        engine.close().await.unwrap();
        assert!(format_of(&data) >= format);
        // And once more, as what it is now.
        let engine = Engine::open(&data).await.unwrap();
        reads_what_was_written(&engine).await;
        engine.close().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_of_the_newest_format_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    Engine::open(&data).await.unwrap().close().await.unwrap();
    let newest = format_of(&data);
    assert!(
        kept().iter().any(|(format, _)| *format == newest),
        "no folder of format {newest} is kept: scripts/folder_fixture.py makes it"
    );
}

/// A server of before may open a folder between two newer ones, and writes the marks of its columns with JSON as it always did.
#[tokio::test(flavor = "multi_thread")]
async fn marks_of_columns_with_json_are_moved_to_their_tables_each_time_that_there_are_some() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let engine = Engine::open(&data).await.unwrap();
    for sql in ["CREATE TABLE t (a BIGINT, j JSON, k TEXT)", r#"INSERT INTO t VALUES (1, '{"b": 2}', '{}')"#] {
        rows(&admin(&engine), sql).await.unwrap();
    }
    engine.close().await.unwrap();
    for _ in 0..2 {
        let store = Connection::open(data.join("catalog.sqlite")).unwrap();
        let as_before = "INSERT INTO ducklake_column_tag
             SELECT object_id, CAST(substr(key, length('querent_json:') + 1) AS BIGINT), begin_snapshot, end_snapshot,
                    'querent_json', value
             FROM ducklake_tag WHERE key LIKE 'querent_json:%'";
        assert_eq!(store.execute(as_before, []).unwrap(), 1);
        store.execute("DELETE FROM ducklake_tag WHERE key LIKE 'querent_json:%'", []).unwrap();
        drop(store);
        let engine = Engine::open(&data).await.unwrap();
        let shown = rows(&admin(&engine), "SHOW CREATE TABLE t").await.unwrap();
        assert_eq!(format!("{shown:?}").matches("JSON").count(), 1, "{shown:?}");
        let theirs = duckdb(&data, "", &["SELECT a, j, k FROM lake.\"default\".t"]);
        assert_eq!(theirs, [serde_json::json!([[1, r#"{"b": 2}"#, "{}"]])]);
        engine.close().await.unwrap();
    }
}

async fn reads_what_was_written(engine: &Engine) {
    let root = admin(engine);
    let orders = "SELECT id, region, amount, placed, at, tags, note FROM sales.orders ORDER BY id";
    let expected = [
        ["1", "EU", "10.50", "2026-01-02", "2026-01-02T03:04:05", "[a, b]", "NULL"],
        ["3", "NULL", "-0.01", "NULL", "1969-12-31T23:59:59", "[]", "NULL"],
    ];
    assert_eq!(rows(&root, orders).await.unwrap(), expected);
    assert_eq!(rows(&root, "SELECT * FROM sales.europe").await.unwrap(), [["1", "10.50"]]);
    assert_eq!(rows(&root, "SELECT count(*) FROM sales.customers").await.unwrap(), [["0"]]);
    let twice = rows(&root, "INSERT INTO sales.orders (id) VALUES (4), (NULL)").await.unwrap_err();
    assert_eq!(twice.code(), "invalid_value", "an id may not be null: {twice}");

    // Grants, row policies and masks hold.
    let analyst = principal("ann", Role::Read, &["analyst"], Some("EU"));
    let session = |principal: Principal| engine.session(principal, Limits::default());
    let seen = rows(&session(analyst), "SELECT id, amount FROM sales.orders").await.unwrap();
    assert_eq!(seen, [["1", "0.00"]]);
    let nobody = session(principal("ben", Role::Read, &[], None));
    assert_eq!(rows(&nobody, "SELECT * FROM sales.orders").await.unwrap_err().code(), "database_not_found");

    // What was taught, what was asked, and who was let in.
    let (catalog, who) = (engine.catalog(), Principal::local_admin());
    let resolved = catalog.tables().resolve(&who, &[TableName::new("sales", "orders")]).await.unwrap();
    let info = &resolved[0].as_ref().unwrap().info;
    assert_eq!(info.comment.as_deref(), Some("one row an order"));
    let page = || PageRequest::first(10);
    let verified = catalog.knowledge().list_verified_queries(&who, None, page()).await.unwrap();
    assert_eq!(verified.items[0].question, "How many orders are there?");
    assert_eq!(catalog.knowledge().list_metrics(&who, None, page()).await.unwrap().items[0].name, "turnover");
    assert_eq!(catalog.relationships().list(&who, None, page()).await.unwrap().items.len(), 1);
    let runs = catalog.runs().list(&who, page()).await.unwrap().items;
    assert_eq!(runs.len(), 1);
    assert_eq!(runs[0].question, "How many orders are there?");
    let tokens = catalog.tokens().list(&who, page(), chrono::Utc::now()).await.unwrap().items;
    assert_eq!((tokens.len(), tokens[0].name.as_str()), (1, "boss"));
    assert!(catalog.tokens().any(), "who has no token is not let in");
    let conversations = rows(&root, "SELECT count(*) FROM system.agent_runs").await.unwrap();
    assert_eq!(conversations, [["1"]]);

    let log = catalog.audit().verify().await.unwrap();
    assert!(log.fault.is_none() && log.records >= 17, "{log:?}");
    let check = engine.check_contents(None).await.unwrap();
    assert_eq!((check.faults, check.files), (Vec::new(), 2));
}
