//! Managed (DuckLake) tables: scans over Parquet files pruned by catalog statistics, and writing new files.
//!
//! A scan lists the table's files at the snapshot the table was resolved at, when it is planned and not before, with
//! statistics of the columns the query touches only. Every path read or written lies inside the data folder.

mod columns;
mod leaves;
mod stats;
mod write;

use std::fmt;
use std::path::{Component, Path};
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{DataFusionError, Result as DfResult};
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::table_schema::TableSchema;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use object_store::path::Path as StorePath;
use querent_catalog::{Catalog, DataFile, ManagedTable, ResolvedTable};

pub(crate) use write::{remove_files, write_files};

use super::files::{FileScan, scan_schema};
use crate::EngineError;
use columns::FieldIdAdapterFactory;

/// With more columns than this, a projection's statistics cost more to fetch than the optimizer gains by them.
const MAX_STATISTICS_COLUMNS: usize = 32;

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

    /// The table's files with the statistics of the columns that `projection` and `filters` name, none dropped yet.
    pub(super) async fn file_scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
    ) -> DfResult<FileScan> {
        let wanted = self.statistics_columns(projection, filters);
        let files = self
            .catalog
            .data_files(&self.table, &wanted)
            .await
            .map_err(|error| DataFusionError::from(EngineError::Catalog(error)))?;
        let files = files.iter().map(|file| self.partitioned_file(file)).collect::<DfResult<_>>()?;
        let ids = self.schema.fields().iter().map(|field| field.name().clone()).zip(self.column_ids.iter().copied());
        Ok(FileScan {
            format: Arc::new(ParquetFormat::default().with_options(state.table_options().parquet.clone())),
            schema: TableSchema::from_file_schema(Arc::clone(&self.schema)),
            files,
            partitions: state.config().target_partitions(),
            adapter: Some(Arc::new(FieldIdAdapterFactory { table: self.name.clone(), ids: ids.collect() })),
        })
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
        let mut scanned = PartitionedFile::new(String::new(), file.file_size_bytes)
            .with_statistics(Arc::new(stats::file_statistics(file, &self.schema, &self.column_ids)));
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
        let scan = self.file_scan(state, projection, filters).await?;
        scan.pruned_plan(state, projection, filters, limit).await
    }
}

/// Whether `path` is absolute, plain (no `..`) and below `folder`.
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
