//! Imports of workbooks: one pass over the sheet of each file to find its table, and one to read its rows.

use std::collections::BTreeMap;

use arrow::datatypes::SchemaRef;
use datafusion::common::ScalarValue;

use super::column_mapping::ColumnMapping;
use super::{BatchSender, ByteCounter};
use crate::error::Result;
use crate::tables::external::{LocatedFile, Rejects, TypedWorkbook, WorkbookFiles, WorkbookSource, blocking, open};

/// Finds the table in the files' sheets.
pub(super) async fn infer(
    files: Vec<LocatedFile>,
    options: BTreeMap<String, String>,
    counter: ByteCounter,
) -> Result<(SchemaRef, TypedWorkbook)> {
    blocking(move || {
        let open = |file: &LocatedFile| Ok(Box::new(counter.count(open(file)?)) as Box<dyn WorkbookSource>);
        let typed = WorkbookFiles::from_options(&options)?.infer(&files, open)?;
        Ok((typed.schema(), typed))
    })
    .await
}

/// Reads a file and sends its rows. Blocks.
pub(super) fn read(
    workbook: &TypedWorkbook,
    file: &LocatedFile,
    partition: &[ScalarValue],
    columns: &ColumnMapping,
    rejects: Option<&Rejects>,
    counter: &ByteCounter,
    output: &BatchSender,
) -> Result<()> {
    let all: Vec<usize> = (0..columns.read.fields().len()).collect();
    workbook.read(&file.path, &all, rejects, Box::new(counter.count(open(file)?)), columns.sending(partition, output))
}
