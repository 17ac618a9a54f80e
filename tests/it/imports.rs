//! Files of one's own: what is inferred of text, beside DuckDB, and how to say it otherwise.

mod columnar;
mod csv;
mod json;
mod workbooks;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use querent_catalog::{IfExists, NoProgress, Principal, TableName};
use querent_engine::{Engine, EngineError, ImportOutcome, ImportRequest, SourceReading};
use tokio::task::JoinSet;

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
    let source = write(folder.path(), "rows.csv", "a,b\n1,x\n2,y\n");
    let mut imports = JoinSet::new();
    for _ in 0..8 {
        let request = ImportRequest {
            source: source.display().to_string(),
            format: None,
            options: BTreeMap::new(),
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
}
