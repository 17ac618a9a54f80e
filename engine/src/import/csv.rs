//! CSV imports: one pass over all files to infer the types and one to convert the values. An error names its row and column.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, RecordBatch, StringArray};
use arrow::compute::{CastOptions, cast_with_options, kernels::cmp, nullif, or};
use arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::ScalarValue;

use super::column_mapping::{ColumnMapping, repeated};
use super::{BatchSender, ByteCounter};
use crate::error::{EngineError, Result};
use crate::tables::external::{CsvFiles, CsvReader, LocatedFile, bad_row, blocking, open, shortened};

/// CSV files whose types and null markers are known.
#[derive(Debug, Clone)]
pub(super) struct TypedCsv {
    files: CsvFiles,
    null_markers: Vec<String>,
}

/// Infers the narrowest types that hold every value of all files.
pub(super) async fn infer(
    files: Vec<LocatedFile>,
    options: BTreeMap<String, String>,
    counter: ByteCounter,
) -> Result<(SchemaRef, TypedCsv)> {
    blocking(move || {
        let csv = CsvFiles::open(&files, &options)?;
        let mut inference = csv.inference();
        for file in &files {
            let source = counter.count(open(file)?);
            let mut reader = CsvReader::open(&file.path, &csv.dialect, &csv.names, source)?;
            while let Some((_, batch)) = reader.next_batch()? {
                inference.update(&batch);
            }
        }
        let null_markers = inference.null_markers(csv.dialect.null_value.is_some());
        Ok((Arc::new(inference.schema()) as SchemaRef, TypedCsv { files: csv, null_markers }))
    })
    .await
}

impl TypedCsv {
    /// Reads a file and sends its rows. Blocks.
    pub(super) fn read(
        &self,
        file: &LocatedFile,
        partition: &[ScalarValue],
        columns: &ColumnMapping,
        counter: &ByteCounter,
        output: &BatchSender,
    ) -> Result<()> {
        let source = counter.count(open(file)?);
        let mut reader = CsvReader::open(&file.path, &self.files.dialect, &self.files.names, source)?;
        while let Some((before, batch)) = reader.next_batch()? {
            let typed = self.typed(file, before, &batch, &columns.read)?;
            let folders = repeated(partition, batch.num_rows())?;
            output.send(columns.arrange(&typed, batch.num_rows(), &folders)?)?;
        }
        Ok(())
    }

    fn typed(
        &self,
        file: &LocatedFile,
        rows_before: u64,
        text: &RecordBatch,
        schema: &SchemaRef,
    ) -> Result<Vec<ArrayRef>> {
        let mut typed = Vec::with_capacity(text.num_columns());
        for (column, field) in text.columns().iter().zip(schema.fields()) {
            let present = self.without_markers(column)?;
            let converted = convert(&present, field.data_type())?;
            if converted.null_count() > present.null_count() {
                let bad = (0..present.len()).find(|row| present.is_valid(*row) && converted.is_null(*row));
                let row = bad.unwrap_or_default();
                let value = present.as_string::<i32>().value(row);
                let detail = format!("expected {}, found `{}`", field.data_type(), shortened(value));
                let row = rows_before + 1 + row as u64;
                return Err(bad_row(&file.path, Some(row), Some(field.name()), detail));
            }
            typed.push(converted);
        }
        Ok(typed)
    }

    fn without_markers(&self, column: &ArrayRef) -> Result<ArrayRef> {
        let mut is_null: Option<BooleanArray> = None;
        for marker in &self.null_markers {
            let equal = cmp::eq(column, &StringArray::new_scalar(marker))?;
            is_null = Some(match is_null {
                Some(others) => or(&others, &equal)?,
                None => equal,
            });
        }
        match is_null {
            Some(is_null) if is_null.true_count() > 0 => Ok(nullif(column, &is_null)?),
            _ => Ok(Arc::clone(column)),
        }
    }
}

/// Converts strings to `data_type`; a value that cannot be converted becomes null.
fn convert(text: &ArrayRef, data_type: &DataType) -> Result<ArrayRef> {
    if text.data_type() == data_type {
        return Ok(Arc::clone(text));
    }
    cast_with_options(text, data_type, &CastOptions { safe: true, ..Default::default() }).map_err(|_| {
        EngineError::Unsupported {
            what: format!("a column of type {data_type} from CSV"),
            hint: "import it from Parquet or NDJSON".into(),
        }
    })
}
