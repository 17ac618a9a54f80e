//! CSV imports: one pass over all files to infer the types and one to convert the values. An error names its line and column.

use std::collections::BTreeMap;

use arrow::datatypes::SchemaRef;
use datafusion::common::ScalarValue;

use super::column_mapping::ColumnMapping;
use super::{BatchSender, ByteCounter};
use crate::error::Result;
use crate::tables::external::{CsvFiles, LocatedFile, Rejects, TypedCsv, blocking, open};

/// Infers the types that hold every value of all files.
pub(super) async fn infer(
    files: Vec<LocatedFile>,
    options: BTreeMap<String, String>,
    counter: ByteCounter,
) -> Result<(SchemaRef, TypedCsv)> {
    blocking(move || {
        let mut csv = CsvFiles::open(&files, &options)?;
        let inference = csv.infer_all(|csv, inference| {
            for file in &files {
                csv.infer(&file.path, inference, counter.count(open(file)?), true)?;
            }
            Ok(())
        })?;
        let typed = csv.typed(&inference, false)?;
        Ok((typed.schema(), typed))
    })
    .await
}

/// Reads a file and sends its rows. Blocks.
pub(super) fn read(
    csv: &TypedCsv,
    file: &LocatedFile,
    partition: &[ScalarValue],
    columns: &ColumnMapping,
    rejects: Option<&Rejects>,
    counter: &ByteCounter,
    output: &BatchSender,
) -> Result<()> {
    csv.read_all(&file.path, rejects.cloned(), counter.count(open(file)?), columns.sending(partition, output))
}
