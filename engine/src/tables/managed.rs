//! Managed (DuckLake) tables: scans over Parquet files pruned by catalog statistics, and writing new files.

use std::path::Path;

use arrow::datatypes::SchemaRef;
use datafusion::execution::SendableRecordBatchStream;
use querent_catalog::NewDataFile;

use crate::Result;

/// Writes a stream as Parquet files named `ducklake-<uuidv7>.parquet` in `location` (made when absent), each synced, with
/// statistics. `write_schema` carries field ids; input batches are cast to it by position. On error or drop every file written is removed.
#[allow(unused_variables, dead_code, clippy::todo, clippy::allow_attributes)]
pub(crate) async fn write_files(
    location: &Path,
    write_schema: SchemaRef,
    input: SendableRecordBatchStream,
) -> Result<Vec<NewDataFile>> {
    todo!()
}
