//! Files of one's own: what is inferred of text, beside DuckDB, and how to say it otherwise. Writers that make one table at once.

mod columnar;
mod csv;
mod json;
mod workbooks;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema};
use querent_catalog::{IfExists, NoProgress, Principal, TableName};
use querent_engine::{Engine, EngineError, ImportOutcome, ImportRequest, IngestMode, SourceReading};
use tokio::task::JoinSet;

use crate::maintenance::parquet_files;
use crate::sql::{admin, engine, rows};

/// Imports a file as table `t`, which is replaced, with options of its reader.
async fn import(engine: &Engine, source: &Path, options: &[(&str, &str)]) -> Result<ImportOutcome, EngineError> {
    let request = ImportRequest {
        source: source.display().to_string(),
        format: None,
        options: options_of(options),
        table: TableName::new("default", "t"),
        external: false,
        if_exists: Some(IfExists::Replace),
    };
    engine.import(&Principal::local_admin(), request, Arc::new(NoProgress)).await
}

fn options_of(options: &[(&str, &str)]) -> BTreeMap<String, String> {
    options.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn write(folder: &Path, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

fn types(reading: &SourceReading) -> Vec<&str> {
    reading.columns.iter().map(|column| column.sql_type.as_str()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn imports_that_make_one_table_at_once_append_to_it() {
    let (folder, engine) = engine().await;
    let source = write(folder.path(), "rows.csv", "a,b\n1,x\n3\n2,y\n");
    let mut imports = JoinSet::new();
    for _ in 0..8 {
        let request = ImportRequest {
            source: source.display().to_string(),
            format: None,
            options: options_of(&[("ignore_errors", "true")]),
            table: TableName::new("default", "t"),
            external: false,
            if_exists: None,
        };
        let engine = engine.clone();
        imports.spawn(async move { engine.import(&Principal::local_admin(), request, Arc::new(NoProgress)).await });
    }
    let outcomes: Vec<ImportOutcome> = imports.join_all().await.into_iter().map(Result::unwrap).collect();
    assert_eq!(outcomes.iter().filter(|outcome| outcome.created).count(), 1);
    assert!(outcomes.iter().all(|outcome| outcome.rows == Some(2)), "{outcomes:?}");
    let counted = rows(&admin(&engine), "SELECT a, b, count(*) FROM t GROUP BY a, b ORDER BY a").await.unwrap();
    assert_eq!(counted, [["1", "x", "8"], ["2", "y", "8"]]);
    let set_aside = rows(&admin(&engine), "SELECT line, value, count(*) FROM t_rejects GROUP BY ALL").await.unwrap();
    assert_eq!(set_aside, [["3", "3", "8"]], "of none of them they are replaced by another's");
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_that_are_sent_are_appended_to_a_table_that_another_made_meanwhile() {
    let (folder, engine) = engine().await;
    let session = admin(&engine);
    let fields = vec![Field::new("A", DataType::Int64, true), Field::new("b", DataType::Utf8, true)];
    let schema = Arc::new(Schema::new(fields));
    let (numbers, texts) = (Int64Array::from(vec![1, 2]), StringArray::from(vec!["x", "y"]));
    let batch = RecordBatch::try_new(Arc::clone(&schema), vec![Arc::new(numbers), Arc::new(texts)]).unwrap();
    let other = session.clone();
    let sent = futures::stream::once(async move {
        rows(&other, "CREATE TABLE t AS SELECT 'z' AS b, CAST(3 AS INTEGER) AS a, true AS is_own").await.unwrap();
        Ok::<RecordBatch, EngineError>(batch)
    });
    let table = TableName::new("default", "t");
    assert_eq!(session.ingest(&table, false, IngestMode::CreateOrAppend, schema, sent).await.unwrap(), 2);
    let found = rows(&session, "SELECT a, b, coalesce(is_own, false) FROM t ORDER BY a").await.unwrap();
    assert_eq!(found, [["1", "x", "false"], ["2", "y", "false"], ["3", "z", "true"]]);
    assert_eq!(parquet_files(folder.path()).len(), 2, "the files that the rows were read from again are gone");
}
