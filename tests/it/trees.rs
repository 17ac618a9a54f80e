//! `import --recursive`: a tree of folders as external tables, its second run, and everything in it that is no table.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;
use parquet::arrow::ArrowWriter;
use querent_catalog::{NoProgress, Principal, Role, TableName};
use querent_engine::{Engine, EngineError, TreeEvent, TreeRequest, TreeStep, TreeSummary};

use crate::formats::{file_format, numbers, write_lance};
use crate::sql::{admin, engine, rows};

#[tokio::test(flavor = "multi_thread")]
async fn a_tree_is_registered_and_refreshed() {
    let (folder, engine) = engine().await;
    let root = folder.path().join("lake");
    text(&root.join("trips/a.csv"), "id,city\n1,Rome\n");
    text(&root.join("trips/b.csv"), "id,city\n2,Oslo\n");
    text(&root.join("sales/Orders 2024/o.ndjson"), "{\"id\":1,\"total\":2.5}\n");
    for (year, id) in [(2023, 1), (2024, 2)] {
        text(&root.join(format!("sales/by_year/year={year}/part.csv")), &format!("id\n{id}\n"));
    }
    parquet(&root.join("sales/eu/orders/p.parquet"), 1);
    fs::create_dir_all(root.join("sales/eu/arrow")).unwrap();
    file_format(&root.join("sales/eu/arrow/x.arrow"), &numbers(1));
    write_lance(&root.join("vectors.lance"), vec![numbers(1)]).await;
    // Files beside folders: the table is of the files alone.
    text(&root.join("mixed/top.csv"), "id\n7\n");
    text(&root.join("mixed/below/x.csv"), "other\nz\n");

    let dry = TreeRequest { dry_run: true, ..request(&root) };
    let (summary, events) = run(&engine, dry).await.unwrap();
    assert_eq!((summary.registered, summary.skipped), (8, 0), "{events:?}");
    assert!(
        rows(&admin(&engine), "SELECT name FROM system.tables").await.unwrap().is_empty(),
        "a dry run does nothing"
    );

    let (summary, events) = run(&engine, request(&root)).await.unwrap();
    assert_eq!(summary, TreeSummary { registered: 8, ..TreeSummary::default() }, "{events:?}");
    let session = admin(&engine);
    for (sql, expected) in [
        ("SELECT count(*), max(city) FROM trips", &["2", "Rome"][..]),
        ("SELECT sum(total) FROM sales.orders_2024", &["2.5"]),
        ("SELECT sum(id) FROM sales.by_year WHERE year = 2024", &["2"]),
        ("SELECT count(*) FROM sales.eu_orders", &["5"]),
        ("SELECT count(*) FROM sales.eu_arrow", &["5"]),
        ("SELECT count(*) FROM vectors", &["5"]),
        ("SELECT id FROM mixed", &["7"]),
        ("SELECT other FROM mixed.below", &["z"]),
    ] {
        assert_eq!(rows(&session, sql).await.unwrap(), [expected], "{sql}");
    }

    // A second run: nothing new; then a column more, a folder more, a folder less. Comments stay.
    let (summary, _) = run(&engine, request(&root)).await.unwrap();
    assert_eq!(summary, TreeSummary { unchanged: 8, ..TreeSummary::default() });
    rows(&session, "COMMENT ON TABLE sales.orders_2024 IS 'what was sold'").await.unwrap();
    rows(&session, "COMMENT ON COLUMN sales.orders_2024.total IS 'in euros'").await.unwrap();
    text(&root.join("sales/Orders 2024/o.ndjson"), "{\"id\":1,\"total\":2.5,\"note\":\"n\"}\n");
    text(&root.join("trips/c.csv"), "id,city\n3,Bonn\n");
    text(&root.join("new/n.csv"), "n\n1\n");
    fs::remove_dir_all(root.join("sales/eu/orders")).unwrap();
    let own = folder.path().join("own.csv");
    fs::write(&own, "a\n1\n").unwrap();
    rows(&session, &format!("CREATE EXTERNAL TABLE own STORED AS CSV LOCATION '{}'", own.display())).await.unwrap();
    fs::remove_file(&own).unwrap();
    let (summary, events) = run(&engine, request(&root)).await.unwrap();
    let expected = TreeSummary { registered: 1, refreshed: 1, unchanged: 6, dropped: 1, skipped: 0 };
    assert_eq!(summary, expected, "{events:?}");
    let gone = events.iter().find(|event| event.step == TreeStep::Dropped).unwrap();
    assert_eq!(gone.table, Some(TableName::new("sales", "eu_orders")));
    assert_eq!(rows(&session, "SELECT note FROM sales.orders_2024").await.unwrap(), [["n"]]);
    assert_eq!(rows(&session, "SELECT count(*) FROM trips").await.unwrap(), [["3"]], "new files are found when read");
    let comments = "SELECT comment FROM system.tables WHERE name = 'orders_2024'";
    assert_eq!(rows(&session, comments).await.unwrap(), [["what was sold"]]);
    let others = "SELECT count(*) FROM system.tables WHERE name = 'own'";
    assert_eq!(rows(&session, others).await.unwrap(), [["1"]], "what is not of the tree is left");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_table_is_skipped_with_its_reason() {
    let (folder, engine) = engine().await;
    let root = folder.path().join("lake");
    text(&root.join("good/a.csv"), "id\n1\n");
    text(&root.join("formats/a.csv"), "id\n1\n");
    text(&root.join("formats/b.ndjson"), "{\"id\":1}\n");
    text(&root.join("unlike/a.csv"), "id,city\n1,Rome\n");
    text(&root.join("unlike/b.csv"), "price\n1\n");
    parquet(&root.join("columns/a.parquet"), 1);
    other_parquet(&root.join("columns/b.parquet"));
    text(&root.join("broken/a.parquet"), "not Parquet");
    text(&root.join("notes/readme.txt"), "hello");
    text(&root.join("with_notes/a.csv"), "id\n1\n");
    text(&root.join("with_notes/readme.md"), "hello");
    text(&root.join("half/year=2024/a.csv"), "id\n1\n");
    text(&root.join("half/b.csv"), "id\n1\n");
    text(&root.join("empty/a.csv"), "");
    text(&root.join("twice/a.csv"), "id\n1\n");
    text(&root.join("Twice/a.csv"), "id\n2\n");
    text(&root.join("system/t/a.csv"), "id\n2\n");
    text(&root.join(".hidden/a.csv"), "id\n1\n");
    std::os::unix::fs::symlink("/etc", root.join("link")).unwrap();
    rows(&admin(&engine), "CREATE TABLE good AS SELECT 1 AS a").await.unwrap();
    let (summary, events) = run(&engine, request(&root)).await.unwrap();
    let reason = |name: &str| -> String {
        let folder = root.join(name).display().to_string();
        let reasons = events.iter().filter(|event| event.folder == folder).filter_map(|event| match &event.step {
            TreeStep::Skipped { reason } => Some(reason.as_str()),
            _ => None,
        });
        reasons.collect::<Vec<_>>().join("; ")
    };
    for (name, why) in [
        ("good", "is there already and is not of this tree"),
        ("formats", "several formats (csv, ndjson)"),
        ("unlike", "its columns (price) are not those of"),
        ("columns", "its columns (v) are not those of"),
        ("broken", "a.parquet"),
        ("notes", "1 files are of no format that is read: readme.txt"),
        ("with_notes", "readme.md"),
        ("half", "beside other files"),
        ("empty", "empty"),
        ("twice", "twice"),
        ("system/t", "not this caller's"),
    ] {
        assert!(reason(name).contains(why), "{name}: {} in {events:#?}", reason(name));
    }
    assert_eq!((summary.registered, summary.skipped), (2, 11), "{events:#?}");
    let listed = "SELECT name FROM system.tables ORDER BY name";
    assert_eq!(rows(&admin(&engine), listed).await.unwrap(), [["good"], ["twice"], ["with_notes"]]);

    let one = TreeRequest { database: Some("raw".into()), ..request(&root.join("good")) };
    run(&engine, one).await.unwrap();
    assert_eq!(rows(&admin(&engine), "SELECT id FROM raw.good").await.unwrap(), [["1"]]);
    let nowhere = run(&engine, request(&root.join("nowhere"))).await.unwrap_err();
    assert_eq!(nowhere.code(), "no_files");
    let writer = Principal::new("w", Role::Write);
    let refused = engine.import_tree(&writer, request(&root), Arc::new(NoProgress), &|_| {}).await.unwrap_err();
    assert_eq!(refused.code(), "location_not_allowed");
    let inside = run(&engine, request(folder.path())).await.unwrap_err();
    assert_eq!(inside.code(), "location_not_allowed", "Querent's own folder is in it");
}

fn request(root: &Path) -> TreeRequest {
    TreeRequest { source: root.display().to_string(), database: None, dry_run: false }
}

async fn run(engine: &Engine, request: TreeRequest) -> Result<(TreeSummary, Vec<TreeEvent>), EngineError> {
    let events = Mutex::new(Vec::new());
    let report = |event| events.lock().push(event);
    let summary = engine.import_tree(&Principal::local_admin(), request, Arc::new(NoProgress), &report).await?;
    Ok((summary, events.into_inner()))
}

fn text(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn parquet(path: &Path, first: i64) {
    write_parquet(path, &numbers(first));
}

fn other_parquet(path: &Path) {
    let values: arrow::array::ArrayRef = Arc::new(arrow::array::Int64Array::from(vec![1]));
    write_parquet(path, &arrow::array::RecordBatch::try_from_iter([("v", values)]).unwrap());
}

fn write_parquet(path: &Path, batch: &arrow::array::RecordBatch) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let mut writer = ArrowWriter::try_new(fs::File::create(path).unwrap(), batch.schema(), None).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
}
