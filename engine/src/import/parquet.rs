//! Parquet imports: the files' rows in order, read by one stream.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::catalog::Session;
use datafusion::common::DataFusionError;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::execute_stream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::StreamExt;
use parquet::errors::ParquetError;

use super::column_mapping::ColumnMapping;
use super::{ByteCounter, ImportSource};
use crate::error::{EngineError, Result, find_cause, lost_file_in, store_error_in};
use crate::tables::external::{object_meta, parquet_scan, store_of};

/// Returns the rows of all files as a stream, as `columns` arranges them.
pub(super) async fn read(
    state: &dyn Session,
    source: &ImportSource,
    fields: SchemaRef,
    columns: ColumnMapping,
    mut counter: ByteCounter,
) -> Result<SendableRecordBatchStream> {
    let files = source
        .files
        .iter()
        .map(|file| {
            let values = source.partitioning.values(file)?;
            Ok(PartitionedFile::new_from_meta(object_meta(file)?).with_partition_values(values))
        })
        .collect::<Result<Vec<_>>>()?;
    let table = Arc::clone(&columns.table);
    let file_columns = fields.fields().len();
    let mut scan = parquet_scan(state, store_of(source.files.first()), files, fields, &source.partitioning).await?;
    scan.in_order();
    let plan = scan.plan(state, None, None).await?;
    if let Some(rows) = plan.partition_statistics(None).ok().and_then(|known| known.num_rows.get_value().copied()) {
        counter.total = rows as u64;
    }
    let location = source.files.first().map(|file| file.path.display().to_string()).unwrap_or_default();
    // Some of what a damaged file holds makes its decoder panic.
    let rows = AssertUnwindSafe(execute_stream(plan, state.task_ctx())?).catch_unwind();
    let arranged = rows.map(move |batch| {
        let batch = match batch {
            Ok(batch) => batch.map_err(|error| damaged(&location, error))?,
            Err(panic) => {
                let error = match EngineError::from_panic(panic.as_ref()) {
                    EngineError::Internal(_) => unreadable(&location, "its data cannot be decoded".to_owned()),
                    known => known,
                };
                return Err(error.into());
            }
        };
        counter.add(batch.num_rows() as u64);
        // The scan returns the partition values after the file's columns.
        let (from_file, from_folders) = batch.columns().split_at(file_columns.min(batch.num_columns()));
        columns.arrange(from_file, batch.num_rows(), from_folders).map_err(DataFusionError::from)
    });
    Ok(Box::pin(RecordBatchStreamAdapter::new(table, arranged)))
}

/// Returns the error of a file whose footer can be read and whose data cannot; any other error as it is.
fn damaged(location: &str, error: DataFusionError) -> DataFusionError {
    let is_of_store = store_error_in(&error).is_some() || lost_file_in(&error).is_some();
    match find_cause::<ParquetError>(&error) {
        Some(cause) if !is_of_store && find_cause::<EngineError>(&error).is_none() => {
            unreadable(location, cause.to_string()).into()
        }
        _ => error,
    }
}

fn unreadable(location: &str, detail: String) -> EngineError {
    EngineError::BadData { location: location.to_owned(), detail: format!("not Parquet as expected: {detail}") }
}
