//! Leaves out the rows of a data file that were deleted: positions in the file, as DuckLake's delete files and inlined
//! deletes name them, become a selection of the rows to read.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{Array, AsArray};
use arrow::datatypes::Int64Type;
use datafusion::catalog::Session;
use datafusion::common::DataFusionError;
use datafusion::common::stats::Precision;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::parquet::metadata::DFParquetMetadata;
use datafusion::datasource::physical_plan::parquet::{ParquetAccessPlan, RowGroupAccess};
use object_store::ObjectStoreExt;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReaderBuilder, RowSelection};
use parquet::file::reader::ChunkReader;
use querent_catalog::FileDeletes;

use crate::error::{EngineError, Result};
use crate::stores::TableFiles;
use crate::tables::external::{blocking, open_local};

/// The column of positions in a delete file.
const POSITION: &str = "pos";

/// Returns the file without its deleted rows.
pub(super) async fn without(
    state: &dyn Session,
    mut file: PartitionedFile,
    deletes: FileDeletes,
    files: &TableFiles,
) -> Result<PartitionedFile> {
    let named = file.object_meta.location.to_string();
    let bad = |detail: String| EngineError::BadData { location: named.clone(), detail };
    let gone = deleted_positions(deletes, &named, files).await?;
    let store = state.runtime_env().object_store(files.store_url()?)?;
    let metadata = DFParquetMetadata::new(&store, &file.object_meta)
        .with_file_metadata_cache(Some(state.runtime_env().cache_manager.get_file_metadata_cache()))
        .fetch_metadata()
        .await?;
    let mut before = 0_u64;
    let mut access = Vec::with_capacity(metadata.num_row_groups());
    for group in metadata.row_groups() {
        let rows = u64::try_from(group.num_rows()).unwrap_or_default();
        let here: Vec<usize> =
            gone.range(before..before + rows).filter_map(|position| usize::try_from(position - before).ok()).collect();
        access.push(group_access(&here, usize::try_from(rows).unwrap_or_default()));
        before += rows;
    }
    if gone.last().is_some_and(|last| *last >= before) {
        return Err(bad(format!("a row is deleted that the file does not have; it has {before}")));
    }
    let left = usize::try_from(before - gone.len() as u64).map_or(Precision::Absent, Precision::Exact);
    if let Some(known) = &file.statistics {
        let mut known = known.as_ref().clone().to_inexact();
        known.num_rows = left;
        file.statistics = Some(Arc::new(known));
    }
    Ok(file.with_extension(ParquetAccessPlan::new(access)))
}

/// Returns the positions of all rows that are deleted from the file at `location`.
pub(super) async fn deleted_positions(
    deletes: FileDeletes,
    location: &str,
    files: &TableFiles,
) -> Result<BTreeSet<u64>> {
    let mut gone = file_positions(deletes.file, deletes.file_rows, location, files).await?;
    gone.extend(deletes.positions);
    Ok(gone)
}

/// Returns the positions that a delete file of the data file at `location` names; none where there is no such file.
pub(super) async fn file_positions(
    path: Option<PathBuf>,
    expected: u64,
    location: &str,
    files: &TableFiles,
) -> Result<BTreeSet<u64>> {
    let Some(path) = path else { return Ok(BTreeSet::new()) };
    let place = files.path_of(&path, "a delete file")?;
    let positions = match files {
        TableFiles::Local(_) => blocking(move || positions_in(&path, open_local(&path)?)).await?,
        TableFiles::Remote(lake) => {
            let store = lake.scanned()?;
            let content = async { store.get(&place).await?.bytes().await };
            let content = content.await.map_err(DataFusionError::from)?;
            blocking(move || positions_in(&path, content)).await?
        }
    };
    if positions.len() as u64 != expected {
        let found = positions.len();
        let detail = format!("its delete file names {found} rows where {expected} are expected");
        return Err(EngineError::BadData { location: location.to_owned(), detail });
    }
    Ok(positions)
}

/// Returns the rows of a row group that are left without `gone`, which are sorted.
fn group_access(gone: &[usize], rows: usize) -> RowGroupAccess {
    if gone.is_empty() {
        return RowGroupAccess::Scan;
    }
    if gone.len() == rows {
        return RowGroupAccess::Skip;
    }
    let ends = gone.iter().copied().chain([rows]);
    let starts = std::iter::once(0).chain(gone.iter().map(|position| position + 1));
    let kept = starts.zip(ends).filter(|(start, end)| start < end).map(|(start, end)| start..end);
    RowGroupAccess::Selection(RowSelection::from_consecutive_ranges(kept, rows))
}

/// Returns the positions that a delete file names. Blocks.
fn positions_in(path: &Path, content: impl ChunkReader + 'static) -> Result<BTreeSet<u64>> {
    let bad = |detail: String| EngineError::BadData { location: path.display().to_string(), detail };
    let reader = ParquetRecordBatchReaderBuilder::try_new(content)
        .and_then(|builder| builder.build())
        .map_err(|error| bad(error.to_string()))?;
    let mut positions = BTreeSet::new();
    for batch in reader {
        let batch = batch.map_err(|error| bad(error.to_string()))?;
        let column = batch.column_by_name(POSITION).and_then(|column| column.as_primitive_opt::<Int64Type>());
        let Some(column) = column.filter(|column| column.null_count() == 0) else {
            return Err(bad(format!("no column `{POSITION}` of positions")));
        };
        for position in column.values() {
            positions.insert(u64::try_from(*position).map_err(|_| bad(format!("position {position}")))?);
        }
    }
    Ok(positions)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_deleted_is_read() {
        assert!(matches!(group_access(&[], 3), RowGroupAccess::Scan));
        assert!(matches!(group_access(&[0, 1, 2], 3), RowGroupAccess::Skip));
        let RowGroupAccess::Selection(selection) = group_access(&[0, 3, 4], 6) else { panic!("some are left") };
        let kept: Vec<(usize, bool)> = selection.iter().map(|part| (part.row_count, part.skip)).collect();
        assert_eq!(kept, [(1, true), (2, false), (2, true), (1, false)]);
    }
}
