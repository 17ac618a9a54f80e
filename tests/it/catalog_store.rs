//! The catalog through its public interface: what is created is found, listed, described, commented, dropped, refused,
//! and still there after the process has ended.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Fields, Schema, TimeUnit};
use querent_catalog::{
    Catalog, CatalogError, Created, ExternalTable, FileFormat, IfExists, PageRequest, Principal, Role, RunRecord,
    RunStatus, TableFilter, TableKind, TableName, TableSource,
};
use uuid::Uuid;

use crate::lake::{admin, create_numbers, managed, new, open, resolve, sqlite, try_open, write_numbers};

#[tokio::test]
async fn a_new_folder_has_the_default_database() {
    let folder = tempfile::tempdir().unwrap();
    let catalog = open(folder.path()).await;
    let databases = catalog.databases().list(&admin(), None, PageRequest::first(10)).await.unwrap();
    assert_eq!(databases.items.iter().map(|database| database.name.as_str()).collect::<Vec<_>>(), ["default"]);
    assert_eq!(databases.next, None);
    assert!(catalog.databases().get(&admin(), "DEFAULT").await.unwrap().is_some());
    assert!(folder.path().join("catalog.sqlite").exists());
}

#[tokio::test]
async fn a_new_folder_is_for_its_owner_alone() {
    let outer = tempfile::tempdir().unwrap();
    let folder = outer.path().join("new");
    let mode = || std::fs::metadata(&folder).unwrap().permissions().mode() & 0o777;
    open(&folder).await.close().await.unwrap();
    assert_eq!(mode(), 0o700);
    // Whoever lets others in has a reason.
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o750)).unwrap();
    open(&folder).await.close().await.unwrap();
    assert_eq!(mode(), 0o750);
}

#[tokio::test]
async fn a_catalog_whose_file_was_taken_away_takes_no_writes() {
    let folder = tempfile::tempdir().unwrap();
    let catalog = open(folder.path()).await;
    let (file, aside) = (folder.path().join("catalog.sqlite"), folder.path().join("aside.sqlite"));
    let run = || RunRecord::new(Uuid::now_v7(), "ann", "how many?", "m", chrono::Utc::now());
    std::fs::rename(&file, &aside).unwrap();
    assert_eq!(catalog.runs().insert(&run()).await.unwrap_err().code(), "catalog_corrupt");
    std::fs::copy(&aside, &file).unwrap();
    assert_eq!(catalog.runs().insert(&run()).await.unwrap_err().code(), "catalog_corrupt", "a copy is another file");
    std::fs::rename(&aside, &file).unwrap();
    catalog.runs().insert(&run()).await.unwrap();
}

#[tokio::test]
async fn a_created_table_resolves_in_any_case_and_keeps_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let catalog = open(folder.path()).await;
    let created = create_numbers(&catalog, "Größe Tabelle.\"x\"", &[1, 2, 3]).await;
    assert_eq!(created.kind, TableKind::Managed);
    assert_eq!(created.row_count, Some(3));

    let names = [TableName::new("DEFAULT", "GRÖSSE"), TableName::new("Default", "GRÖßE TABELLE.\"X\"")];
    let resolved = catalog.tables().resolve(&admin(), &names).await.unwrap();
    assert_eq!(resolved[0], None);
    let found = resolved[1].as_ref().unwrap();
    assert_eq!(found.info, created);
    assert_eq!(found.info.name, TableName::new("default", "Größe Tabelle.\"x\""));

    let managed = managed(found);
    let files = catalog.tables().data_files(&managed, &[1]).await.unwrap();
    assert_eq!(files.len(), 1);
    assert!(files[0].path.exists());
    assert_eq!(files[0].row_count, 3);
    let stats = &files[0].column_stats[&1];
    assert_eq!((stats.min_value.as_deref(), stats.max_value.as_deref()), (Some("1"), Some("3")));
    assert!(catalog.tables().data_files(&managed, &[]).await.unwrap()[0].column_stats.is_empty());
}

#[tokio::test]
async fn names_are_unique_without_regard_to_case_across_kinds() {
    let folder = tempfile::tempdir().unwrap();
    let catalog = open(folder.path()).await;
    create_numbers(&catalog, "Straßen", &[1]).await;
    let name = TableName::new("default", "STRAßEN");
    let view = catalog.tables().create_view(&name, "SELECT 1 AS a", "default", &one_column(), IfExists::Error).await;
    let error = view.unwrap_err();
    assert_eq!(error.code(), "already_exists");
    assert_eq!(error.to_string(), "`STRAßEN` already exists as `Straßen` (names are unique without regard to case)");
    let left =
        catalog.tables().create_view(&name, "SELECT 1 AS a", "default", &one_column(), IfExists::Ignore).await.unwrap();
    assert_eq!(left, Created::Existing);
    let replaced =
        catalog.tables().create_view(&name, "SELECT 1 AS a", "default", &one_column(), IfExists::Replace).await;
    let error = replaced.unwrap_err();
    assert_eq!((error.code(), error.to_string().contains("`Straßen` is a table")), ("already_exists", true), "{error}");
    assert!(catalog.tables().drop(&name, &[TableKind::Managed], false).await.unwrap());
    let view =
        catalog.tables().create_view(&name, "SELECT 1 AS a", "default", &one_column(), IfExists::Error).await.unwrap();
    assert_eq!(new(view).kind, TableKind::View);
    let listed = list(&catalog, &TableFilter::default()).await;
    assert_eq!(listed, ["default.STRAßEN"]);
}

#[tokio::test]
async fn names_that_cannot_be_used_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let catalog = open(folder.path()).await;
    for name in ["", "a\nb", &"x".repeat(256)] {
        let error = catalog.tables().draft(&TableName::new("default", name), &one_column(), None).await.unwrap_err();
        assert_eq!(error.code(), "invalid_name", "{name}");
    }
    catalog.tables().draft(&TableName::new("default", "y".repeat(255)), &one_column(), None).await.unwrap();
    for database in ["system", "Information_Schema", ""] {
        let error = catalog.databases().create(database, IfExists::Error).await.unwrap_err();
        assert_eq!(error.code(), "invalid_name", "{database}");
    }
    let twice = Schema::new(vec![Field::new("a", DataType::Int64, true), Field::new("A", DataType::Int64, true)]);
    let error = catalog.tables().draft(&TableName::new("default", "t"), &twice, None).await.unwrap_err();
    assert_eq!(error.code(), "invalid_name");
}

#[tokio::test]
async fn types_come_back_as_they_were_or_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let catalog = open(folder.path()).await;
    let item = |data_type| Arc::new(Field::new("item", data_type, true));
    let point = DataType::Struct(Fields::from(vec![
        Field::new("x", DataType::Float64, true),
        Field::new("tags", DataType::List(item(DataType::Utf8)), true),
    ]));
    let entries = Fields::from(vec![
        Field::new("key", DataType::Utf8, false),
        Field::new("value", DataType::FixedSizeList(item(DataType::Float32), 3), true),
    ]);
    let schema = Schema::new(vec![
        Field::new("id", DataType::Int64, false),
        Field::new("price", DataType::Decimal128(12, 2), true),
        Field::new("at", DataType::Timestamp(TimeUnit::Nanosecond, None), true),
        Field::new("seen", DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())), true),
        Field::new("embedding", DataType::FixedSizeList(item(DataType::Float32), 384), true),
        Field::new("points", DataType::List(item(point)), true),
        Field::new(
            "by_key",
            DataType::Map(Arc::new(Field::new("entries", DataType::Struct(entries), false)), false),
            true,
        ),
    ]);
    let name = TableName::new("default", "typed");
    let draft = catalog.tables().draft(&name, &schema, None).await.unwrap();
    assert_eq!(draft.write_schema.field(5).metadata()["PARQUET:field_id"], "7");
    let write_schema = Arc::clone(&draft.write_schema);
    let created = new(catalog.tables().create(draft, Vec::new(), IfExists::Error).await.unwrap());
    assert_eq!(created.arrow_schema().as_ref(), &schema);
    assert_eq!(created.row_count, Some(0));
    let resolved = resolve(&catalog, "typed").await;
    assert_eq!(catalog.tables().write_schema(&managed(&resolved)).await.unwrap(), write_schema);

    let loose = Schema::new(vec![Field::new("s", DataType::LargeUtf8, true), Field::new("n", DataType::Null, true)]);
    let error = catalog.tables().draft(&name, &loose, None).await.unwrap_err();
    assert_eq!(error.code(), "unsupported_type");
    assert!(error.to_string().contains("`n`") || error.to_string().contains("column n"), "{error}");
}

#[tokio::test]
async fn listings_page_and_filter() {
    let folder = tempfile::tempdir().unwrap();
    let catalog = open(folder.path()).await;
    for database in ["Sales", "archive"] {
        catalog.databases().create(database, IfExists::Error).await.unwrap();
        for table in ["b_1", "A_1", "bX1", "c"] {
            create_external(&catalog, database, table).await;
        }
    }
    let all = list(&catalog, &TableFilter::default()).await;
    assert_eq!(
        all,
        ["archive.A_1", "archive.b_1", "archive.bX1", "archive.c", "Sales.A_1", "Sales.b_1", "Sales.bX1", "Sales.c"]
    );
    for limit in 1..=8 {
        assert_eq!(list_by(&catalog, &admin(), &TableFilter::default(), limit).await, all, "pages of {limit}");
    }
    let like = TableFilter { name_like: Some(r"B\_%".into()), ..TableFilter::default() };
    assert_eq!(list_by(&catalog, &admin(), &like, 1).await, ["archive.b_1", "Sales.b_1"]);
    let in_sales = TableFilter { database: Some("SALES".into()), name: Some("a_1".into()), ..TableFilter::default() };
    assert_eq!(list(&catalog, &in_sales).await, ["Sales.A_1"]);
    let views = TableFilter { kinds: vec![TableKind::View], ..TableFilter::default() };
    assert!(list(&catalog, &views).await.is_empty());
    let databases =
        TableFilter { database_like: Some("s%".into()), name_like: Some("%1".into()), ..TableFilter::default() };
    assert_eq!(list_by(&catalog, &admin(), &databases, 2).await, ["Sales.A_1", "Sales.b_1", "Sales.bX1"]);
}

#[tokio::test]
async fn a_scoped_principal_sees_only_its_databases() {
    let folder = tempfile::tempdir().unwrap();
    let catalog = open(folder.path()).await;
    for database in ["open", "secret"] {
        catalog.databases().create(database, IfExists::Error).await.unwrap();
        create_external(&catalog, database, "plans").await;
    }
    let reader = Principal::new("reader", Role::Read).with_databases(["OPEN"]);
    assert_eq!(list_by(&catalog, &reader, &TableFilter::default(), 10).await, ["open.plans"]);
    let databases = catalog.databases().list(&reader, None, PageRequest::first(10)).await.unwrap();
    assert_eq!(databases.items.len(), 1);
    let names = [TableName::new("secret", "plans"), TableName::new("open", "plans")];
    let resolved = catalog.tables().resolve(&reader, &names).await.unwrap();
    assert!(resolved[0].is_none() && resolved[1].is_some());
    let error = catalog.tables().not_found(&reader, &names[0]).await;
    assert_eq!(error.to_string(), "unknown database `secret`");
    let error = catalog.tables().not_found(&reader, &TableName::new("open", "plan")).await;
    assert_eq!(error.to_string(), "unknown table `plan` in database `open`; did you mean `plans`?");
}

#[tokio::test]
async fn an_unknown_name_is_answered_with_the_nearest_one() {
    let folder = tempfile::tempdir().unwrap();
    let catalog = open(folder.path()).await;
    catalog.databases().create("Weather", IfExists::Error).await.unwrap();
    for table in ["otel_logs", "otel_metrics", "flights"] {
        create_external(&catalog, "default", table).await;
    }
    create_external(&catalog, "Weather", "stations").await;
    let cases = [
        ("default", "otel_log", "unknown table `otel_log` in database `default`; did you mean `otel_logs`?"),
        ("default", "flihgts", "unknown table `flihgts` in database `default`; did you mean `flights`?"),
        ("default", "xlights", "unknown table `xlights` in database `default`; did you mean `flights`?"),
        ("default", "Stations", "unknown table `Stations` in database `default`; did you mean `Weather.stations`?"),
        ("default", "zzz", "unknown table `zzz` in database `default`"),
        ("wheather", "x", "unknown database `wheather`; did you mean `Weather`?"),
    ];
    for (database, table, message) in cases {
        assert_eq!(catalog.tables().not_found(&admin(), &TableName::new(database, table)).await.to_string(), message);
    }
}

#[tokio::test]
async fn rows_are_appended_and_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let catalog = open(folder.path()).await;
    create_numbers(&catalog, "numbers", &[5, 9]).await;
    let first = resolve(&catalog, "numbers").await;
    let file = write_numbers(&catalog, &managed(&first), &[-3, 10]).await;
    catalog.tables().append(&managed(&first), vec![file]).await.unwrap();
    let second = resolve(&catalog, "numbers").await;
    assert_eq!(second.info.row_count, Some(4));
    assert_eq!(catalog.tables().data_files(&managed(&first), &[]).await.unwrap().len(), 1, "the older snapshot stays");
    assert_eq!(catalog.tables().data_files(&managed(&second), &[]).await.unwrap().len(), 2);
    assert_eq!(table_bounds(folder.path(), second.info.id), (Some("-3".into()), Some("10".into())));

    let stale = write_numbers(&catalog, &managed(&first), &[7]).await;
    let error = catalog.tables().replace_files(&managed(&first), vec![stale]).await.unwrap_err();
    assert_eq!(error.code(), "conflict");
    let file = write_numbers(&catalog, &managed(&second), &[7]).await;
    catalog.tables().replace_files(&managed(&second), vec![file]).await.unwrap();
    let third = resolve(&catalog, "numbers").await;
    assert_eq!(third.info.row_count, Some(1));
    assert_eq!(catalog.tables().data_files(&managed(&third), &[]).await.unwrap().len(), 1);
    assert_eq!(table_bounds(folder.path(), third.info.id), (Some("7".into()), Some("7".into())));
    catalog.tables().replace_files(&managed(&third), Vec::new()).await.unwrap();
    assert_eq!(resolve(&catalog, "numbers").await.info.row_count, Some(0));
}

#[tokio::test]
async fn an_append_to_a_dropped_table_is_a_conflict() {
    let folder = tempfile::tempdir().unwrap();
    let catalog = open(folder.path()).await;
    create_numbers(&catalog, "numbers", &[1]).await;
    let table = managed(&resolve(&catalog, "numbers").await);
    let file = write_numbers(&catalog, &table, &[2]).await;
    let name = TableName::new("default", "numbers");
    assert!(!catalog.tables().drop(&name, &[TableKind::View], true).await.unwrap());
    assert!(catalog.tables().drop(&name, &[TableKind::Managed], false).await.unwrap());
    assert_eq!(catalog.tables().drop(&name, &[TableKind::Managed], false).await.unwrap_err().code(), "table_not_found");
    create_numbers(&catalog, "numbers", &[1]).await;
    let error = catalog.tables().append(&table, vec![file]).await.unwrap_err();
    assert_eq!(error.code(), "conflict");
    assert!(error.to_string().starts_with("`numbers` was changed"), "{error}");
    assert_eq!(catalog.tables().data_files(&table, &[]).await.unwrap().len(), 1, "the old snapshot can still be read");
}

#[tokio::test]
async fn comments_on_tables_columns_and_databases() {
    let folder = tempfile::tempdir().unwrap();
    let catalog = open(folder.path()).await;
    create_numbers(&catalog, "numbers", &[1]).await;
    create_external(&catalog, "default", "events").await;
    for table in ["numbers", "events"] {
        let name = TableName::new("default", table);
        catalog.tables().set_comment(&name, None, Some("first")).await.unwrap();
        catalog.tables().set_comment(&name, None, Some("what it is")).await.unwrap();
        catalog.tables().set_comment(&name, Some("A"), Some("a column")).await.unwrap();
        let info = resolve(&catalog, table).await.info;
        assert_eq!(info.comment.as_deref(), Some("what it is"));
        assert_eq!(info.columns[0].comment.as_deref(), Some("a column"));
        catalog.tables().set_comment(&name, None, None).await.unwrap();
        assert_eq!(resolve(&catalog, table).await.info.comment, None);
        let error = catalog.tables().set_comment(&name, Some("aa"), Some("x")).await.unwrap_err();
        assert_eq!(error.to_string(), format!("unknown column `aa` in table `{table}`; did you mean `a`?"));
    }
    catalog.databases().set_comment("Default", Some("everything")).await.unwrap();
    let database = catalog.databases().get(&admin(), "default").await.unwrap().unwrap();
    assert_eq!(database.comment.as_deref(), Some("everything"));
}

#[tokio::test]
async fn databases_are_dropped_with_their_tables_only_by_cascade() {
    let folder = tempfile::tempdir().unwrap();
    let catalog = open(folder.path()).await;
    catalog.databases().create("Old", IfExists::Error).await.unwrap();
    assert_eq!(catalog.databases().create("OLD", IfExists::Error).await.unwrap_err().code(), "already_exists");
    assert_eq!(catalog.databases().create("OLD", IfExists::Ignore).await.unwrap(), Created::Existing);
    create_external(&catalog, "old", "t").await;
    assert_eq!(catalog.databases().drop("old", false, false).await.unwrap_err().code(), "database_not_empty");
    assert!(catalog.databases().drop("old", false, true).await.unwrap());
    assert!(!catalog.databases().drop("old", true, true).await.unwrap());
    assert_eq!(catalog.databases().drop("old", false, true).await.unwrap_err().code(), "database_not_found");
    assert!(catalog.tables().resolve(&admin(), &[TableName::new("old", "t")]).await.unwrap()[0].is_none());
    catalog.databases().create("old", IfExists::Error).await.unwrap();
    assert!(list(&catalog, &TableFilter::default()).await.is_empty());
}

#[tokio::test]
async fn views_and_external_tables_resolve_to_what_they_were_made_of() {
    let folder = tempfile::tempdir().unwrap();
    let catalog = open(folder.path()).await;
    let name = TableName::new("default", "recent");
    catalog
        .tables()
        .create_view(&name, "SELECT a FROM events", "default", &one_column(), IfExists::Error)
        .await
        .unwrap();
    let view = resolve(&catalog, "Recent").await;
    assert_eq!(
        view.source,
        TableSource::View { sql: "SELECT a FROM events".into(), default_database: "default".into() }
    );
    assert_eq!(view.info.arrow_schema().as_ref(), &one_column());
    create_external(&catalog, "default", "events").await;
    let events = resolve(&catalog, "events").await;
    assert_eq!(events.source, TableSource::External(events_definition()));
    assert_eq!(events.info.columns[0].name, "a");
}

#[tokio::test]
async fn runs_belong_to_who_asked() {
    let folder = tempfile::tempdir().unwrap();
    let catalog = open(folder.path()).await;
    let ann = Principal::new("ann", Role::Write);
    let mut ids = Vec::new();
    for (index, subject) in ["ann", "ben", "ann"].into_iter().enumerate() {
        let run = run_record(subject, index as i64);
        ids.push(run.run_id);
        catalog.runs().insert(&run).await.unwrap();
    }
    assert_eq!(catalog.runs().get(&ann, ids[1]).await.unwrap_err().code(), "run_not_found");
    assert_eq!(catalog.runs().get(&admin(), ids[1]).await.unwrap(), run_record_of(ids[1], "ben", 1));
    let first = catalog.runs().list(&ann, PageRequest::first(1)).await.unwrap();
    assert_eq!(first.items[0].run_id, ids[2]);
    assert_eq!(first.items[0].trace_json, "");
    let second = catalog.runs().list(&ann, PageRequest { limit: 1, after: first.next }).await.unwrap();
    assert_eq!((second.items[0].run_id, second.next), (ids[0], None));
    assert_eq!(catalog.runs().list(&admin(), PageRequest::first(10)).await.unwrap().items.len(), 3);

    let mut done = run_record_of(ids[0], "ann", 0);
    done.status = RunStatus::Success;
    done.finished_at = Some(done.started_at);
    done.trace_json = "[1]".into();
    catalog.runs().update(&done).await.unwrap();
    assert_eq!(catalog.runs().get(&ann, ids[0]).await.unwrap(), done);
    let running: Vec<Uuid> = catalog.runs().running(10).await.unwrap().iter().map(|run| run.run_id).collect();
    assert_eq!(running, ids[1..], "of anybody, oldest first");
}

#[tokio::test]
async fn what_was_acknowledged_is_there_after_a_drop_without_close() {
    let folder = tempfile::tempdir().unwrap();
    let catalog = open(folder.path()).await;
    create_numbers(&catalog, "numbers", &[1, 2]).await;
    let before = resolve(&catalog, "numbers").await;
    drop(catalog);
    let reopened = open(folder.path()).await;
    assert_eq!(resolve(&reopened, "numbers").await, before);
    reopened.close().await.unwrap();
    assert_eq!(reopened.snapshot().await.unwrap_err().code(), "internal");
}

/// Set for the process that [`what_was_acknowledged_survives_a_kill`] kills: the data folder to write to.
const KILLED_WRITER_FOLDER: &str = "QUERENT_TEST_KILLED_WRITER_FOLDER";

#[tokio::test]
async fn what_was_acknowledged_survives_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "catalog_store::writes_until_it_is_killed", "--nocapture"])
        .env(KILLED_WRITER_FOLDER, folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut acknowledged = Vec::new();
    for line in BufReader::new(writer.stdout.take().unwrap()).lines() {
        acknowledged.extend(line.unwrap().strip_prefix("acknowledged ").map(str::to_string));
        if acknowledged.len() == 25 {
            writer.kill().unwrap();
            break;
        }
    }
    writer.wait().unwrap();
    assert_eq!(acknowledged.len(), 25, "the writer ended early");
    let catalog = open(folder.path()).await;
    for table in &acknowledged {
        let table = resolve(&catalog, table).await;
        let files = catalog.tables().data_files(&managed(&table), &[]).await.unwrap();
        assert_eq!((files.len(), table.info.row_count), (1, Some(2)));
        assert!(files[0].path.exists());
    }
    let check: String = sqlite(folder.path()).query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(check, "ok");
}

#[tokio::test]
#[ignore = "the process that what_was_acknowledged_survives_a_kill starts and kills"]
async fn writes_until_it_is_killed() {
    let folder = std::env::var_os(KILLED_WRITER_FOLDER).expect("the folder to write to");
    let catalog = open(Path::new(&folder)).await;
    for index in 0.. {
        let name = format!("table_{index}");
        create_numbers(&catalog, &name, &[index, 1]).await;
        println!("acknowledged {name}");
    }
}

#[tokio::test]
async fn a_moved_folder_finds_its_files() {
    let parent = tempfile::tempdir().unwrap();
    let (here, there) = (parent.path().join("here"), parent.path().join("there"));
    let catalog = open(&here).await;
    create_numbers(&catalog, "numbers", &[1]).await;
    catalog.close().await.unwrap();
    drop(catalog);
    std::fs::rename(&here, &there).unwrap();
    let catalog = open(&there).await;
    let table = managed(&resolve(&catalog, "numbers").await);
    assert!(catalog.tables().data_files(&table, &[]).await.unwrap()[0].path.starts_with(there.canonicalize().unwrap()));
}

#[tokio::test]
async fn a_folder_in_use_is_refused_and_says_by_whom() {
    let folder = tempfile::tempdir().unwrap();
    let catalog = open(folder.path()).await;
    let Err(error) = try_open(folder.path()).await else { panic!("opened twice") };
    assert_eq!(error.code(), "data_folder_in_use");
    assert!(error.to_string().contains("in use by this process"), "{error}");
    catalog.close().await.unwrap();
    open(folder.path()).await;
}

/// A folder of an older version gains what it lacks, whatever else was applied before.
#[tokio::test]
async fn migrations_that_a_store_lacks_are_applied_in_any_order() {
    let folder = tempfile::tempdir().unwrap();
    open(folder.path()).await.close().await.unwrap();
    let store = sqlite(folder.path());
    let taught = ["relationship", "verified_query", "metric", "column_value", "column_profile", "profile"];
    for table in taught.into_iter().chain(["conversation", "item", "pending_call", "file", "file_content"]) {
        store.execute(&format!("DROP TABLE querent_{table}"), []).unwrap();
    }
    store.execute("DELETE FROM querent_migrations WHERE version = 3", []).unwrap();
    drop(store);
    let catalog = open(folder.path()).await;
    let page = querent_catalog::PageRequest::first(10);
    let listed = catalog.relationships().list(&admin(), None, page).await.unwrap();
    assert!(listed.items.is_empty());
}

#[tokio::test]
async fn newer_and_damaged_stores_are_refused() {
    let newer = tempfile::tempdir().unwrap();
    open(newer.path()).await.close().await.unwrap();
    sqlite(newer.path()).execute("INSERT INTO querent_migrations VALUES (9999, 'later', '')", []).unwrap();
    assert_eq!(open_error(newer.path()).await.code(), "newer_format");

    let newer_lake = tempfile::tempdir().unwrap();
    open(newer_lake.path()).await.close().await.unwrap();
    sqlite(newer_lake.path()).execute("UPDATE ducklake_metadata SET value = '1.1' WHERE key = 'version'", []).unwrap();
    let error = open_error(newer_lake.path()).await;
    assert_eq!(error.code(), "newer_format");
    assert!(error.to_string().contains("DuckLake 1.1"), "{error}");

    let damaged = tempfile::tempdir().unwrap();
    std::fs::write(damaged.path().join("catalog.sqlite"), "no database, just a text that is long enough to be read")
        .unwrap();
    assert_eq!(open_error(damaged.path()).await.code(), "catalog_corrupt");

    let other = tempfile::tempdir().unwrap();
    sqlite(other.path()).execute("CREATE TABLE t (a)", []).unwrap();
    assert_eq!(open_error(other.path()).await.code(), "catalog_corrupt");
}

#[tokio::test(flavor = "multi_thread")]
async fn writers_of_one_process_wait_for_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let catalog = open(folder.path()).await;
    create_numbers(&catalog, "numbers", &[]).await;
    let table = managed(&resolve(&catalog, "numbers").await);
    let mut writers = tokio::task::JoinSet::new();
    for value in 0..20 {
        let (catalog, table) = (Arc::clone(&catalog), table.clone());
        writers.spawn(async move {
            let file = write_numbers(&catalog, &table, &[value]).await;
            catalog.tables().append(&table, vec![file]).await.unwrap();
        });
    }
    writers.join_all().await;
    assert_eq!(resolve(&catalog, "numbers").await.info.row_count, Some(20));
    let starts: BTreeSet<i64> = sqlite(folder.path())
        .prepare("SELECT row_id_start FROM ducklake_data_file")
        .unwrap()
        .query_map([], |row| row.get(0))
        .unwrap()
        .map(|start| start.unwrap())
        .collect();
    assert_eq!(starts.len(), 20, "row ids are never given twice");
}

async fn open_error(folder: &Path) -> CatalogError {
    match try_open(folder).await {
        Ok(_) => panic!("{} was opened", folder.display()),
        Err(error) => error,
    }
}

fn one_column() -> Schema {
    Schema::new(vec![Field::new("a", DataType::Int64, true)])
}

fn events_definition() -> ExternalTable {
    ExternalTable {
        location: "/var/log/events/*.csv".into(),
        format: FileFormat::Csv,
        options: BTreeMap::from([("has_header".into(), "true".into())]),
        partition_columns: Vec::new(),
    }
}

async fn create_external(catalog: &Catalog, database: &str, table: &str) {
    let name = TableName::new(database, table);
    catalog.tables().create_external(&name, events_definition(), &one_column(), IfExists::Error).await.unwrap();
}

async fn list(catalog: &Catalog, filter: &TableFilter) -> Vec<String> {
    list_by(catalog, &admin(), filter, 100).await
}

async fn list_by(catalog: &Catalog, who: &Principal, filter: &TableFilter, limit: usize) -> Vec<String> {
    let mut names = Vec::new();
    let mut request = PageRequest::first(limit);
    loop {
        let page = catalog.tables().list(who, filter, request).await.unwrap();
        assert!(page.items.len() <= limit);
        names.extend(page.items.iter().map(|table| table.name.to_string()));
        match page.next {
            Some(next) => request = PageRequest { limit, after: Some(next) },
            None => return names,
        }
    }
}

fn table_bounds(folder: &Path, table_id: i64) -> (Option<String>, Option<String>) {
    sqlite(folder)
        .query_row(
            "SELECT min_value, max_value FROM ducklake_table_column_stats WHERE table_id = ? AND column_id = 1",
            [table_id],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
        .unwrap()
}

fn run_record(subject: &str, second: i64) -> RunRecord {
    run_record_of(Uuid::now_v7(), subject, second)
}

fn run_record_of(run_id: Uuid, subject: &str, second: i64) -> RunRecord {
    let started_at = chrono::DateTime::from_timestamp(1_700_000_000 + second, 0).unwrap();
    RunRecord::new(run_id, subject, "how many?", "scripted", started_at)
}
