//! A Parquet file of which rows at known positions are read, and no more pages than hold them.

use datafusion::catalog::Session;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::parquet::metadata::DFParquetMetadata;
use datafusion::datasource::physical_plan::parquet::{ParquetAccessPlan, RowGroupAccess};
use datafusion::execution::object_store::ObjectStoreUrl;
use parquet::arrow::arrow_reader::RowSelection;

use crate::error::Result;

/// Returns the file restricted to rows at `positions`, which are sorted; `None` where its footer counts another number of
/// rows than expected.
pub(super) async fn with_rows(
    state: &dyn Session,
    store: &ObjectStoreUrl,
    mut file: PartitionedFile,
    rows: usize,
    positions: &[usize],
) -> Result<Option<PartitionedFile>> {
    let store = state.runtime_env().object_store(store)?;
    let metadata = DFParquetMetadata::new(&store, &file.object_meta)
        .with_file_metadata_cache(Some(state.runtime_env().cache_manager.get_file_metadata_cache()))
        .fetch_metadata()
        .await?;
    let mut before = 0;
    let mut access = Vec::with_capacity(metadata.num_row_groups());
    for group in metadata.row_groups() {
        let group_rows = usize::try_from(group.num_rows()).unwrap_or_default();
        let from = positions.partition_point(|position| *position < before);
        let to = positions.partition_point(|position| *position < before + group_rows);
        let ranges = positions[from..to].iter().map(|position| position - before..position - before + 1);
        access.push(match from == to {
            true => RowGroupAccess::Skip,
            false => RowGroupAccess::Selection(RowSelection::from_consecutive_ranges(ranges, group_rows)),
        });
        before += group_rows;
    }
    if before != rows {
        return Ok(None);
    }
    // The statistics of the whole file do not hold for these rows.
    file.statistics = None;
    Ok(Some(file.with_extension(ParquetAccessPlan::new(access))))
}
