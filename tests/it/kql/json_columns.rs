//! Columns of type JSON: text to SQL, `dynamic` to KQL, as Kusto's columns of that type are.

use std::path::Path;
use std::sync::Arc;

use querent_catalog::{NoProgress, Principal, TableName};
use querent_engine::{Engine, ImportRequest};

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
