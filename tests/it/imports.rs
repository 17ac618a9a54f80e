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
