//! Columns of type JSON: text to SQL, `dynamic` to KQL, as Kusto's columns of that type are.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema};
use arrow::ipc::writer::FileWriter;
use parquet::arrow::ArrowWriter;
use querent_catalog::{NoProgress, Principal, TableName};
use querent_engine::{Engine, ImportRequest, IngestMode};

use super::{answered, cells};
use crate::sql::{admin, engine, rows};

const ROWS: &str = r#"(1, '{"a": {"b": 5}, "items": [{"k": "x"}, {"k": "y"}]}'), (2, NULL), (3, 'plain'), (4, 'null')"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_json_column_acts_as_dynamic() {
    let (_folder, engine) = engine().await;
    let session = admin(&engine);
    rows(&session, "CREATE TABLE events (id INT, payload JSON)").await.unwrap();
    rows(&session, &format!("INSERT INTO events VALUES {ROWS}")).await.unwrap();
    let (columns, found) = answered(
        &session,
        "events | sort by id asc | project gettype(payload), x = payload.a.b, isnull(payload), tostring(payload)",
    )
    .await
    .unwrap();
    assert_eq!(columns[1], "x:dynamic");
    let expected = [
        ["dictionary", "5", "False", r#"{"a":{"b":5},"items":[{"k":"x"},{"k":"y"}]}"#],
        ["null", "null", "True", ""],
        ["string", "null", "False", "plain"],
        ["null", "null", "True", ""],
    ];
    assert_eq!(found, expected);
    for (kql, expected) in [
        (
            "events | getschema | where ColumnName == 'payload' | project DataType, ColumnType",
            vec![vec!["System.Object", "dynamic"]],
        ),
        (
            "events | mv-expand item = payload.items | where isnotnull(item) | project tostring(item.k)",
            vec![vec!["x"], vec!["y"]],
        ),
        ("events | where payload.a.b == 5 | project id", vec![vec!["1"]]),
        ("events | where payload == 'plain' | project id", vec![vec!["3"]]),
        ("events | where payload has 'items' | project id", vec![vec!["1"]]),
        (
            "events | where id == 1 | mv-expand key = bag_keys(payload) to typeof(string) | project key",
            vec![vec!["a"], vec!["items"]],
        ),
        ("events | where id == 1 | project parse_json(payload).a.b", vec![vec!["5"]]),
        ("events | where id == 1 | summarize take_any(payload.items[1].k)", vec![vec!["y"]]),
    ] {
        let mut found = cells(&session, kql).await;
        found.sort();
        assert_eq!(found, expected, "{kql}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_json_column_is_text_to_sql() {
    let (_folder, engine) = engine().await;
    let session = admin(&engine);
    rows(&session, "CREATE TABLE events (id INT, payload JSON)").await.unwrap();
    rows(&session, &format!("INSERT INTO events VALUES {ROWS}")).await.unwrap();
    let text = rows(&session, "SELECT payload || '!' FROM events WHERE id = 3").await.unwrap();
    assert!(format!("{text:?}").contains("plain!"), "{text:?}");
    let shown = rows(&session, "SHOW CREATE TABLE events").await.unwrap();
    assert!(format!("{shown:?}").contains("JSON"), "{shown:?}");
}

/// Whether a column is JSON follows it: into tables of queries, views and copies, through renames; not through text.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_json_stays_json() {
    let (_folder, engine) = engine().await;
    let session = admin(&engine);
    for sql in [
        "CREATE TABLE events (id INT, payload JSON, note TEXT)",
        "INSERT INTO events VALUES (1, '{\"a\": 1}', '{\"a\": 1}')",
        "CREATE TABLE copied AS SELECT payload AS p FROM events WHERE id > 0 ORDER BY id",
        "CREATE TABLE made AS SELECT json_object('a', id) AS p FROM events",
        "CREATE TABLE cast_to AS SELECT note::JSON AS p FROM events",
        "CREATE TABLE alike (LIKE events)",
        "CREATE VIEW seen AS SELECT e.payload AS p, o.note FROM events e JOIN events o ON e.id = o.id",
        "CREATE TABLE as_text AS SELECT payload || '' AS p FROM events",
        "CREATE TABLE renamed AS SELECT * FROM events",
        "ALTER TABLE renamed RENAME COLUMN payload TO p",
        "CREATE TABLE added (id INT)",
        "ALTER TABLE added ADD COLUMN p JSON",
        "CREATE TABLE declared (p TEXT, q TEXT)",
        "ALTER TABLE declared ALTER COLUMN p TYPE JSON",
        "CREATE TABLE taken_back (p JSON)",
        "ALTER TABLE taken_back ALTER COLUMN p TYPE VARCHAR",
    ] {
        rows(&session, sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
    for (table, column, expected) in [
        ("events", "payload", "dynamic"),
        ("events", "note", "string"),
        ("copied", "p", "dynamic"),
        ("made", "p", "dynamic"),
        ("cast_to", "p", "dynamic"),
        ("alike", "payload", "dynamic"),
        ("seen", "p", "dynamic"),
        ("seen", "note", "string"),
        ("as_text", "p", "string"),
        ("renamed", "p", "dynamic"),
        ("added", "p", "dynamic"),
        ("declared", "p", "dynamic"),
        ("declared", "q", "string"),
        ("taken_back", "p", "string"),
    ] {
        let kql = format!("{table} | getschema | where ColumnName == '{column}' | project ColumnType");
        assert_eq!(cells(&session, &kql).await, [[expected]], "{table}.{column}");
    }
}

async fn import(engine: &Engine, file: &Path, table: &str, types: Option<&str>) {
    let options = types.map(|types| ("types".to_owned(), types.to_owned())).into_iter().collect();
    let request = ImportRequest {
        source: file.display().to_string(),
        format: None,
        options,
        table: TableName::new("default", table),
        external: false,
        if_exists: None,
    };
    engine.import(&Principal::local_admin(), request, Arc::new(NoProgress)).await.unwrap();
}

/// What is a list or an object in one record and another value in the next one is text that holds JSON.
#[tokio::test(flavor = "multi_thread")]
async fn imported_json_without_one_type_is_dynamic() {
    let (folder, engine) = engine().await;
    let session = admin(&engine);
    let records = folder.path().join("records.ndjson");
    let lines = [
        r#"{"id": 1, "payload": {"a": {"b": 5}}, "note": "x"}"#,
        r#"{"id": 2, "payload": [7, 8], "note": 3}"#,
        r#"{"id": 3, "payload": "plain", "note": "y"}"#,
    ];
    std::fs::write(&records, lines.join("\n")).unwrap();
    import(&engine, &records, "records", None).await;
    let (columns, found) = answered(
        &session,
        "records | sort by id asc | project payload, b = tolong(payload.a.b), zeroth = tolong(payload[0]), note",
    )
    .await
    .unwrap();
    assert_eq!(columns, ["payload:dynamic", "b:long", "zeroth:long", "note:string"]);
    let expected =
        [[r#"{"a":{"b":5}}"#, "5", "null", "x"], ["[7,8]", "null", "7", "3"], ["plain", "null", "null", "y"]];
    assert_eq!(found, expected);

    let separated = folder.path().join("separated.csv");
    std::fs::write(&separated, "id,payload\n1,\"{\"\"a\"\": 1}\"\n").unwrap();
    import(&engine, &separated, "separated", Some("payload=JSON")).await;
    assert_eq!(cells(&session, "separated | project gettype(payload), payload.a").await, [["dictionary", "1"]]);
}

/// A column that Arrow's extension type calls JSON is one, in files and in what is sent.
#[tokio::test(flavor = "multi_thread")]
async fn what_arrow_calls_json_is_dynamic() {
    let (folder, engine) = engine().await;
    let session = admin(&engine);
    let extension = [("ARROW:extension:name".to_owned(), "arrow.json".to_owned())].into();
    let schema = Arc::new(Schema::new(vec![
        Field::new("payload", DataType::Utf8, true).with_metadata(extension),
        Field::new("note", DataType::Utf8, true),
    ]));
    let texts: ArrayRef = Arc::new(StringArray::from(vec![r#"{"a": {"b": 5}}"#, "plain"]));
    let batch = RecordBatch::try_new(Arc::clone(&schema), vec![Arc::clone(&texts), texts]).unwrap();

    let parquet = folder.path().join("x.parquet");
    let mut writer = ArrowWriter::try_new(File::create(&parquet).unwrap(), Arc::clone(&schema), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    import(&engine, &parquet, "parquet_rows", None).await;
    let arrow = folder.path().join("x.arrow");
    let mut writer = FileWriter::try_new(File::create(&arrow).unwrap(), &schema).unwrap();
    writer.write(&batch).unwrap();
    writer.finish().unwrap();
    import(&engine, &arrow, "arrow_rows", None).await;
    let sent = futures::stream::iter([Ok(batch)]);
    let table = TableName::new("default", "sent_rows");
    session.ingest(&table, false, IngestMode::Create, schema, sent).await.unwrap();

    for table in ["parquet_rows", "arrow_rows", "sent_rows"] {
        let query = format!("{table} | project kind = gettype(payload), tolong(payload.a.b), gettype(note)");
        let mut found = cells(&session, &query).await;
        found.sort();
        assert_eq!(found, [["dictionary", "5", "string"], ["string", "null", "string"]], "{table}");
    }
}
