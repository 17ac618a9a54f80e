//! `externaldata`: the values of each format, and who may read which location.

use std::path::Path;

use base64::Engine as _;
use querent_catalog::{Principal, Role};
use querent_engine::{Limits, Session};

use super::{answered, cells, code_of};
use crate::sql::{admin, engine, rows};

const COLUMNS: &str = "(name:string, n:long, at:datetime, bag:dynamic)";
/// The content of `a.csv`.
const GZIPPED: &str = "H4sIAAAAAAACAwXBMQqAMAwF0L2nKH/+hTSjm3qSiMGpEYqIRby774U1Z9Aubnawnd3TvBsrVVSK1CJKvIABU64f+CQszCvYLAbDb+/kSD8l9I0YSAAAAA==";

#[tokio::test(flavor = "multi_thread")]
async fn files_are_read_as_the_declared_columns() {
    let (_folder, engine) = engine().await;
    let session = admin(&engine);
    let files = tempfile::tempdir().unwrap();
    let text = "name,n,at,bag,more\nAda,1,2020-01-02,\"{\"\"a\"\": 1}\",x\n\"B, C\",many,never,,y\n";
    let gzipped = base64::engine::general_purpose::STANDARD.decode(GZIPPED).unwrap();
    write(files.path(), "a.csv", text.as_bytes());
    write(files.path(), "a.csv.gz", &gzipped);
    write(files.path(), "a.tsv", b"Ada\t1\t2020-01-02\t{\"a\": 1}\n");
    write(files.path(), "a.txt", b"one \"quoted\", line\n\nanother\n");
    let records = "{\"n\": 1, \"name\": \"Ada\", \"at\": \"2020-01-02\", \"bag\": {\"a\": 1}}\nnothing\n{\"n\": \"x\", \"name\": 5}\n";
    write(files.path(), "a.json", records.as_bytes());
    let array =
        "[{\"n\": 1,\n\"name\": \"Ada\", \"at\": \"2020-01-02\", \"bag\": {\"a\": 1}},\n {\"n\": null}] {\"n\": 3}";
    write(files.path(), "array.json", array.as_bytes());
    rows(&session, "CREATE TABLE t AS SELECT 'Ada' AS name, 1 AS n, TIMESTAMP '2020-01-02' AS at, '{\"a\": 1}' AS bag")
        .await
        .unwrap();

    let ada = ["Ada", "1", "2020-01-02T00:00:00.0000000Z", "{\"a\":1}"];
    let with_header = [ada, ["B, C", "null", "null", "null"]];
    for file in ["a.csv", "a.csv.gz"] {
        let kql = external(files.path(), file, "with (format='csv', ignoreFirstRecord=true)");
        assert_eq!(cells(&session, &kql).await, with_header, "{file}");
    }
    let headed = cells(&session, &external(files.path(), "a.csv", "")).await;
    assert_eq!((headed.len(), headed[0].clone()), (3, vec!["name".into(), "null".into(), "null".into(), "bag".into()]));
    assert_eq!(cells(&session, &external(files.path(), "a.tsv", "")).await, [ada]);
    let json = [ada.to_vec(), vec!["", "null", "null", "null"], vec!["5", "null", "null", "null"]];
    assert_eq!(cells(&session, &external(files.path(), "a.json", "")).await, json);
    let array = [ada.to_vec(), vec!["", "null", "null", "null"], vec!["", "3", "null", "null"]];
    assert_eq!(cells(&session, &external(files.path(), "array.json", "with (format=multijson)")).await, array);

    let inline = format!(
        "inline_external_table {COLUMNS} kind=storage dataformat=csv (@'{}') with (includeHeaders='All', encoding=UTF8NoBOM)",
        files.path().join("a.csv").display()
    );
    assert_eq!(cells(&session, &inline).await, with_header);
    assert_eq!(code_of(&session, &inline.replace("storage", "delta")).await, "kql_not_supported");

    let lines = format!("externaldata (line:string) [@'{}']", files.path().join("a.txt").display());
    assert_eq!(cells(&session, &lines).await, [["one \"quoted\", line"], ["another"]]);
    let more = format!(
        "let f = externaldata (n:string) [@'{0}', @'{0}'] with (format='txt', ignorefirstrecord=True); f | count",
        files.path().join("a.csv").display()
    );
    assert_eq!(cells(&session, &more).await, [["4"]]);
}

/// The mappings are those of the documentation of `externaldata`, of JSON mappings and of CSV mappings.
#[tokio::test(flavor = "multi_thread")]
async fn a_mapping_says_where_columns_are() {
    let (_folder, engine) = engine().await;
    let session = admin(&engine);
    let files = tempfile::tempdir().unwrap();
    let events = r#"{"timestamp": "2020-09-01", "data": {"tenant": "a", "calls": [{"n": 5}], "the method": "Get"}}"#;
    write(files.path(), "events.json", events.as_bytes());
    write(files.path(), "events.csv", b"Ada,1,x\nBob,2,y\n");
    let mapping = r#"[{"Column":"name","Properties":{"Path":"$.['data']['the method']"}},
        {"column":"n","path":"$.data.calls[0].n"}, {"Column":"at","Properties":{"Path":"$.timestamp"}}]"#;
    let json = format!("with (format='multijson', ingestionMapping=```{mapping}```)");
    let found = cells(&session, &external(files.path(), "events.json", &json)).await;
    assert_eq!(found, [["Get", "5", "2020-09-01T00:00:00.0000000Z", "null"]]);
    let mapping = r#"[{"Column":"name","Properties":{"Ordinal":"2"}}, {"Column":"n","Properties":{"Ordinal":1}},
        {"Column":"at","Properties":{"ConstValue":"2021-01-01T10:32:00"}}]"#;
    let csv = format!("with (format='csv', ingestionMapping=```{mapping}```)");
    let found = cells(&session, &external(files.path(), "events.csv", &csv)).await;
    let at = "2021-01-01T10:32:00.0000000Z";
    assert_eq!(found, [["x", "1", at, "null"], ["y", "2", at, "null"]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn parquet_has_columns_by_name() {
    use arrow::array::{Int32Array, RecordBatch, StringArray};
    use parquet::arrow::ArrowWriter;
    use std::sync::Arc;

    let (_folder, engine) = engine().await;
    let files = tempfile::tempdir().unwrap();
    let batch = RecordBatch::try_from_iter([
        ("n", Arc::new(Int32Array::from(vec![Some(1), None])) as arrow::array::ArrayRef),
        ("name", Arc::new(StringArray::from(vec!["Ada", "Bob"]))),
    ])
    .unwrap();
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    write(files.path(), "a.parquet", &bytes);
    let rows = cells(&admin(&engine), &external(files.path(), "a.parquet", "")).await;
    assert_eq!(rows, [["Ada", "1", "null", "null"], ["Bob", "null", "null", "null"]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_administrators_read_and_only_what_is_allowed() {
    let (data, engine) = engine().await;
    let files = tempfile::tempdir().unwrap();
    write(files.path(), "a.csv", b"Ada,1,2020-01-02,\n");
    let kql = external(files.path(), "a.csv", "");
    let administrator = admin(&engine);
    assert_eq!(cells(&administrator, &kql).await.len(), 1);
    for session in [
        engine.session(Principal::new("writer", Role::Write), Limits::default()),
        engine.session(Principal::new("reader", Role::Read), Limits::default()),
        admin(&engine).read_only(),
    ] {
        for kql in [
            kql.clone(),
            format!("let t = {kql}; print toscalar(t | count)"),
            format!("let t = materialize({kql}); t"),
            format!("print 1 | union ({kql})"),
        ] {
            assert_eq!(code_of(&session, &kql).await, "not_allowed", "{kql}");
        }
    }
    let inside = data.path().join("data").join("catalog.sqlite");
    for location in [
        inside.display().to_string(),
        "https://example.org/a.csv".into(),
        "s3://bucket/a.csv".into(),
        "file://host/a".into(),
    ] {
        let kql = format!("externaldata (a:string) [@'{location}'] with (format='txt')");
        assert_eq!(code_of(&administrator, &kql).await, "location_not_allowed", "{kql}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_read_is_an_error() {
    let (_folder, engine) = engine().await;
    let session = admin(&engine);
    let files = tempfile::tempdir().unwrap();
    write(files.path(), "bad.json", b"[{\"n\": 1}, {\"n\": ]");
    for (file, rest, code) in [
        ("nowhere.csv", "", "no_files"),
        ("bad.json", "with (format='multijson')", "bad_data"),
        ("bad.json", "with (format='avro')", "kql_not_supported"),
        ("bad.json", "with (ingestionMapping='x')", "kql_invalid"),
        ("bad.json", "with (ingestionMapping='[{\"Column\":\"n\",\"Properties\":{\"Ordinal\":0}}]')", "kql_invalid"),
        (
            "bad.json",
            "with (ingestionMapping='[{\"Column\":\"n\",\"Properties\":{\"Path\":\"$..n\"}}]')",
            "kql_not_supported",
        ),
    ] {
        assert_eq!(code_of(&session, &external(files.path(), file, rest)).await, code, "{file} {rest}");
    }
    let unknown = "let place = 1; externaldata (a:string) [place]";
    assert_eq!(code_of(&session, unknown).await, "kql_invalid");
    let many = format!("[{}{{}}]", "{\"name\": \"0123456789012345678901234567890123456789\"},".repeat(100_000));
    write(files.path(), "many.json", many.as_bytes());
    let small = engine.session(Principal::local_admin(), Limits { memory_bytes: 1 << 20, ..Limits::default() });
    let kql = external(files.path(), "many.json", "with (format='multijson')");
    assert_eq!(code_of(&small, &kql).await, "memory_exceeded");
    assert_eq!(count(&session, &kql).await, "100001");
}

async fn count(session: &Session, kql: &str) -> String {
    answered(session, &format!("{kql} | count")).await.unwrap().1[0][0].clone()
}

fn external(folder: &Path, file: &str, rest: &str) -> String {
    format!("externaldata {COLUMNS} [@'{}'] {rest}", folder.join(file).display())
}

fn write(folder: &Path, name: &str, bytes: &[u8]) {
    std::fs::write(folder.join(name), bytes).unwrap();
}
