//! A data folder and the files in it, for the tests of the catalog: opened without a server or an engine.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use parquet::arrow::ArrowWriter;
use querent_catalog::{
    Catalog, CatalogError, CatalogOptions, ColumnStats, Created, IfExists, ManagedTable, NewDataFile, Principal,
    ResolvedTable, TableDraft, TableInfo, TableName, TableSource,
};
use uuid::Uuid;

pub(crate) async fn open(folder: &Path) -> Arc<Catalog> {
    try_open(folder).await.unwrap()
}

pub(crate) async fn try_open(folder: &Path) -> Result<Arc<Catalog>, CatalogError> {
    let options = CatalogOptions::new(folder);
    Catalog::open(options).await
}

pub(crate) fn admin() -> Principal {
    Principal::local_admin()
}

pub(crate) fn new<T>(created: Created<T>) -> T {
    match created {
        Created::New(item) => item,
        Created::Existing => panic!("it was there already"),
    }
}

pub(crate) async fn resolve(catalog: &Catalog, table: &str) -> ResolvedTable {
    resolve_in(catalog, "default", table).await
}

pub(crate) async fn resolve_in(catalog: &Catalog, database: &str, table: &str) -> ResolvedTable {
    let resolved = catalog.tables().resolve(&admin(), &[TableName::new(database, table)]).await.unwrap();
    resolved.into_iter().next().unwrap().unwrap_or_else(|| panic!("{database}.{table} does not resolve"))
}

pub(crate) fn managed(resolved: &ResolvedTable) -> ManagedTable {
    match &resolved.source {
        TableSource::Managed(table) => table.clone(),
        other => panic!("not a managed table: {other:?}"),
    }
}

/// Creates `default.name (a BIGINT, b VARCHAR)` with one file of `values`, or without a file.
pub(crate) async fn create_numbers(catalog: &Catalog, name: &str, values: &[i64]) -> TableInfo {
    let schema = Schema::new(vec![Field::new("a", DataType::Int64, false), Field::new("b", DataType::Utf8, true)]);
    let draft: TableDraft = catalog.tables().draft(&TableName::new("default", name), &schema, None).await.unwrap();
    let files = match values {
        [] => Vec::new(),
        values => vec![write_file(&draft.location, &draft.write_schema, values)],
    };
    new(catalog.tables().create(draft, files, IfExists::Error).await.unwrap())
}

/// Writes a file for a table made by [`create_numbers`].
pub(crate) async fn write_numbers(catalog: &Catalog, table: &ManagedTable, values: &[i64]) -> NewDataFile {
    let schema = catalog.tables().write_schema(table).await.unwrap();
    write_file(&table.location, &schema, values)
}

fn write_file(folder: &Path, schema: &SchemaRef, values: &[i64]) -> NewDataFile {
    let texts: Vec<String> = values.iter().map(|value| format!("n{value}")).collect();
    let columns: Vec<ArrayRef> =
        vec![Arc::new(Int64Array::from(values.to_vec())), Arc::new(StringArray::from(texts.clone()))];
    let batch = RecordBatch::try_new(Arc::clone(schema), columns).unwrap();
    let stats = BTreeMap::from([
        (1, column_stats(values.len(), values.iter().min(), values.iter().max())),
        (2, column_stats(values.len(), texts.iter().min(), texts.iter().max())),
    ]);
    write_batch(folder, &batch, stats)
}

/// Writes a batch as a file of the lake.
pub(crate) fn write_batch(folder: &Path, batch: &RecordBatch, column_stats: BTreeMap<i64, ColumnStats>) -> NewDataFile {
    std::fs::create_dir_all(folder).unwrap();
    let path = folder.join(format!("ducklake-{}.parquet", Uuid::now_v7()));
    let mut writer = ArrowWriter::try_new(std::fs::File::create(&path).unwrap(), batch.schema(), None).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
    let bytes = std::fs::read(&path).unwrap();
    let footer = u32::from_le_bytes(bytes[bytes.len() - 8..bytes.len() - 4].try_into().unwrap());
    NewDataFile {
        row_count: batch.num_rows() as u64,
        file_size_bytes: bytes.len() as u64,
        footer_size: u64::from(footer),
        column_stats,
        path,
    }
}

pub(crate) fn column_stats<T: ToString>(values: usize, min: Option<T>, max: Option<T>) -> ColumnStats {
    ColumnStats {
        value_count: Some(values as u64),
        null_count: Some(0),
        min_value: min.map(|value| value.to_string()),
        max_value: max.map(|value| value.to_string()),
        contains_nan: None,
        column_size_bytes: None,
    }
}

pub(crate) fn sqlite(folder: &Path) -> rusqlite::Connection {
    rusqlite::Connection::open(folder.join("catalog.sqlite")).unwrap()
}
