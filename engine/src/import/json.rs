//! JSON imports: one pass over all records to infer the columns and types, and one to read them.

use std::collections::BTreeMap;

use arrow::datatypes::SchemaRef;
use datafusion::common::ScalarValue;

use super::column_mapping::ColumnMapping;
use super::{BatchSender, ByteCounter};
use crate::error::Result;
use crate::tables::external::{JsonFiles, LocatedFile, Rejects, TypedJson, blocking, open};

/// Infers the columns of all records of all files.
pub(super) async fn infer(
    files: Vec<LocatedFile>,
    options: BTreeMap<String, String>,
    counter: ByteCounter,
) -> Result<(SchemaRef, TypedJson)> {
    blocking(move || {
        let json = JsonFiles::from_options(&files, &options)?;
        let mut inference = json.inference();
        for file in &files {
            json.infer(&file.path, &mut inference, counter.count(open(file)?), usize::MAX, true)?;
        }
        let typed = json.typed(&inference)?;
        Ok((typed.schema(), typed))
    })
    .await
}

/// Reads a file and sends its rows. Blocks.
pub(super) fn read(
    json: &TypedJson,
    file: &LocatedFile,
    partition: &[ScalarValue],
    columns: &ColumnMapping,
    rejects: Option<&Rejects>,
    counter: &ByteCounter,
    output: &BatchSender,
) -> Result<()> {
    let all: Vec<usize> = (0..columns.read.fields().len()).collect();
    json.read(&file.path, &all, rejects.cloned(), counter.count(open(file)?), columns.sending(partition, output))
}
