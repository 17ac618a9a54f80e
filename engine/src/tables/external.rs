//! External tables: Parquet, CSV and NDJSON at a file, a folder, a glob or Hive partitions.

use std::collections::BTreeMap;

use arrow::datatypes::{Schema, SchemaRef};
use datafusion::catalog::Session;
use querent_catalog::{ExternalTable, FileFormat};

use crate::Result;

/// Finds the files of a location and infers what is not given: format, partition columns, schema.
/// Errors: `no_files`, `bad_data`, `location_not_allowed`.
#[allow(unused_variables, dead_code, clippy::todo, clippy::allow_attributes)]
pub(crate) async fn infer(
    state: &dyn Session,
    location: &str,
    format: Option<FileFormat>,
    options: &BTreeMap<String, String>,
    declared: Option<&Schema>,
    partition_columns: &[String],
) -> Result<(ExternalTable, SchemaRef)> {
    todo!()
}
