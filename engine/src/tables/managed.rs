//! Managed (DuckLake) tables: scans over Parquet files pruned by catalog statistics, and writing new files.
//!
//! Rows that DuckDB deleted are left out, and rows that it keeps in the catalog are read with those of the files.
//!
//! A scan lists the table's files at the snapshot the table was resolved at, when it is planned and not before, with
//! the statistics of only the columns that the query uses. Every path read or written lies inside the data folder.

mod delete_files;
mod deletes;
mod encodings;
mod field_ids;
mod file_statistics;
mod leaf_statistics;
mod numbered;
mod row_groups;
mod write;

use std::collections::HashMap;
use std::fmt;
use std::path::{Component, Path};
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{DataFusionError, Result as DfResult};
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::datasource::table_schema::TableSchema;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::union::UnionExec;
use object_store::path::Path as StorePath;
use querent_catalog::{Catalog, DataFile, FileDeletes, ManagedTable, ResolvedTable, TableContents};

pub(crate) use delete_files::{DeletedPositions, write_delete_files};
pub(crate) use numbered::{FILE_COLUMN, INLINED_FILE, NumberedTable, POSITION_COLUMN};
pub(crate) use write::{cast_batch, remove_files, write_files};

use super::file_scan::{FileScan, scan_schema};
use crate::error::EngineError;
use field_ids::FieldIdAdapterFactory;

/// With more columns than this, a projection's statistics cost more to fetch than the optimizer gains by them.
const MAX_STATISTICS_COLUMNS: usize = 32;

/// What a scan of a managed table reads.
pub(super) struct ScanContents {
    /// The table's files.
    pub scan: FileScan,
    /// The rows that are deleted from some of them.
    deletes: HashMap<StorePath, FileDeletes>,
    /// Rows that are in the catalog and in no file.
    inlined: Option<RecordBatch>,
}

impl ScanContents {
    /// Returns whether the table's rows are exactly those of its files.
    pub(super) fn is_whole_files(&self) -> bool {
        self.deletes.is_empty() && self.inlined.is_none()
    }
}

/// A managed table as resolved by one statement.
pub(super) struct ManagedTableProvider {
    catalog: Arc<Catalog>,
    name: String,
    table: ManagedTable,
    schema: SchemaRef,
    column_ids: Vec<i64>,
}

impl ManagedTableProvider {
    pub(super) fn new(
        catalog: &Arc<Catalog>,
        state: &dyn Session,
        resolved: &ResolvedTable,
        table: &ManagedTable,
    ) -> Self {
        Self {
            catalog: Arc::clone(catalog),
            name: resolved.info.name.to_string(),
            table: table.clone(),
            schema: scan_schema(state, &resolved.info.arrow_schema()),
            column_ids: resolved.info.columns.iter().map(|column| column.id).collect(),
        }
    }

    /// Returns what the table holds, with the statistics of the columns that `projection` and `filters` name, and all its files.
    pub(super) async fn contents(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
    ) -> DfResult<ScanContents> {
        let TableContents { files, inlined } = self.listed(projection, filters).await?;
        let mut deletes = HashMap::new();
        for file in files.iter().filter(|file| !file.deletes.is_empty()) {
            deletes.insert(self.partitioned_file(file)?.object_meta.location, file.deletes.clone());
        }
        let files = files.iter().map(|file| self.partitioned_file(file)).collect::<DfResult<_>>()?;
        Ok(ScanContents { scan: self.file_scan(state, files), deletes, inlined })
    }

    /// Returns what the catalog lists of the table.
    async fn listed(&self, projection: Option<&Vec<usize>>, filters: &[Expr]) -> DfResult<TableContents> {
        let wanted = self.statistics_columns(projection, filters);
        let contents = self.catalog.tables().contents(&self.table, &wanted).await;
        contents.map_err(|error| DataFusionError::from(EngineError::Catalog(error)))
    }

    fn file_scan(&self, state: &dyn Session, files: Vec<PartitionedFile>) -> FileScan {
        let ids = self.schema.fields().iter().map(|field| field.name().clone()).zip(self.column_ids.iter().copied());
        let format = Arc::new(ParquetFormat::default().with_options(state.table_options().parquet.clone()));
        let schema = TableSchema::from_file_schema(Arc::clone(&self.schema));
        let mut scan = FileScan::new(state, format, ObjectStoreUrl::local_filesystem(), schema, files);
        scan.table = Some(self.name.clone());
        scan.adapter = Some(Arc::new(FieldIdAdapterFactory { table: self.name.clone(), ids: ids.collect() }));
        scan
    }

    /// Returns a plan of the rows that are in the catalog.
    fn inlined_plan(&self, inlined: &RecordBatch, projection: Option<&Vec<usize>>) -> DfResult<Arc<dyn ExecutionPlan>> {
        let columns = inlined
            .columns()
            .iter()
            .zip(self.schema.fields())
            .map(|(column, field)| Ok(arrow::compute::cast(column, field.data_type())?))
            .collect::<DfResult<Vec<_>>>()?;
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), columns)?;
        Ok(MemorySourceConfig::try_new_exec(&[vec![batch]], Arc::clone(&self.schema), projection.cloned())?)
    }

    fn statistics_columns(&self, projection: Option<&Vec<usize>>, filters: &[Expr]) -> Vec<i64> {
        let mut indices: Vec<usize> = filters
            .iter()
            .flat_map(|filter| filter.column_refs())
            .filter_map(|column| self.schema.index_of(column.name()).ok())
            .collect();
        match projection {
            Some(projected) if projected.len() <= MAX_STATISTICS_COLUMNS => indices.extend(projected),
            None if self.column_ids.len() <= MAX_STATISTICS_COLUMNS => indices.extend(0..self.column_ids.len()),
            Some(_) | None => {}
        }
        indices.sort_unstable();
        indices.dedup();
        indices.into_iter().filter_map(|index| self.column_ids.get(index).copied()).collect()
    }

    fn partitioned_file(&self, file: &DataFile) -> DfResult<PartitionedFile> {
        if !is_inside(&file.path, self.catalog.data_dir()) {
            return Err(DataFusionError::from(EngineError::LocationNotAllowed {
                location: file.path.display().to_string(),
                reason: format!("a data file of `{}` must lie inside the data folder", self.name),
            }));
        }
        let location =
            StorePath::from_absolute_path(&file.path).map_err(|error| DataFusionError::External(Box::new(error)))?;
        let mut statistics = file_statistics::file_statistics(file, &self.schema, &self.column_ids);
        if !file.deletes.is_empty() {
            statistics = statistics.to_inexact();
        }
        let mut scanned =
            PartitionedFile::new(String::new(), file.file_size_bytes).with_statistics(Arc::new(statistics));
        scanned.object_meta.location = location;
        Ok(scanned)
    }
}

impl fmt::Debug for ManagedTableProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ManagedTableProvider").field("name", &self.name).field("table", &self.table).finish()
    }
}

#[async_trait]
impl TableProvider for ManagedTableProvider {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> DfResult<Vec<TableProviderFilterPushDown>> {
        Ok(vec![TableProviderFilterPushDown::Inexact; filters.len()])
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> DfResult<Arc<dyn ExecutionPlan>> {
        let ScanContents { mut scan, mut deletes, inlined } = self.contents(state, projection, filters).await?;
        if !deletes.is_empty() {
            scan.prune(state, filters);
            let mut files = Vec::with_capacity(scan.files.len());
            for file in scan.files {
                files.push(match deletes.remove(&file.object_meta.location) {
                    Some(gone) => deletes::without(state, file, gone, self.catalog.data_dir()).await?,
                    None => file,
                });
            }
            scan.files = files;
        }
        let plan = scan.pruned_plan(state, projection, filters, limit).await?;
        match inlined {
            Some(rows) => UnionExec::try_new(vec![plan, self.inlined_plan(&rows, projection)?]),
            None => Ok(plan),
        }
    }
}

/// Returns whether `path` is absolute, plain (no `..`) and below `folder`.
pub(crate) fn is_inside(path: &Path, folder: &Path) -> bool {
    let plain = path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
    path.is_absolute() && plain && path.starts_with(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_inside_the_data_folder() {
        let folder = Path::new("/srv/lake");
        assert!(is_inside(Path::new("/srv/lake/data/db/t/a.parquet"), folder));
        assert!(!is_inside(Path::new("/srv/lake/../secret.parquet"), folder));
        assert!(!is_inside(Path::new("/srv/lakeside/a.parquet"), folder));
        assert!(!is_inside(Path::new("data/a.parquet"), folder));
    }
}
