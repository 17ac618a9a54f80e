//! Managed (DuckLake) tables: scans over Parquet files pruned by catalog statistics, and writing new files.
//!
//! Rows that DuckDB deleted are left out, and rows that it keeps in the catalog are read with those of the files.
//!
//! A scan lists the table's files at the snapshot the table was resolved at, when it is planned and not before, with
//! the statistics of only the columns that the query uses. Every path read or written lies in the lake's own place ([`TableFiles`]).

mod delete_files;
mod deletes;
mod encodings;
mod field_ids;
mod file_statistics;
mod leaf_statistics;
mod near_rows;
mod nearest;
mod numbered;
mod row_groups;
mod small_files;
mod upload;
mod write;

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{DataFusionError, Result as DfResult, ScalarValue};
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::datasource::table_schema::TableSchema;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::union::UnionExec;
use object_store::path::Path as StorePath;
use parking_lot::Mutex;
use querent_catalog::{Catalog, DataFile, DraftedTable, FileDeletes, ManagedTable, ResolvedTable, TableContents};

pub(crate) use delete_files::{DeletedPositions, write_delete_files};
pub(crate) use nearest::{ExactVectorSearch, NearestRequest, NearestTable, is_worth_indexing};
pub(crate) use numbered::{INLINED_FILE, NumberedTable};
pub(crate) use small_files::{SMALL_BYTES, SmallFiles};
pub(crate) use upload::write_files;
pub(crate) use write::cast_batch;

use super::file_scan::{ColumnMatching, FileScan, scan_schema};
use crate::error::EngineError;
use crate::functions::{prepared_for_cast, stored_value};
use crate::stores::TableFiles;
pub(crate) use field_ids::FieldIdAdapterFactory;

/// With more columns than this, a projection's statistics cost more to fetch than the optimizer gains by them.
const MAX_STATISTICS_COLUMNS: usize = 32;

/// With more files than this, a table's contents are looked up for each scan.
const MAX_KNOWN_FILES: usize = 16;

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
pub(crate) struct ManagedTableProvider {
    catalog: Arc<Catalog>,
    files: Arc<TableFiles>,
    name: String,
    table: ManagedTable,
    schema: SchemaRef,
    column_ids: Vec<i64>,
    /// What columns are, by their names, in files that are older than they; one that cannot be read fails the scan.
    initial: Result<BTreeMap<String, ScalarValue>, String>,
    /// What the last scan found, where it is little: a plan that is kept is scanned again, and at its snapshot a table's
    /// contents stay the same.
    known: Mutex<Option<KnownContents>>,
}

/// The contents of a table with the statistics of some columns.
struct KnownContents {
    columns: Vec<i64>,
    contents: Arc<TableContents>,
}

impl ManagedTableProvider {
    pub(crate) fn new(
        catalog: &Arc<Catalog>,
        state: &dyn Session,
        resolved: &ResolvedTable,
        table: &ManagedTable,
    ) -> Self {
        let files = state.config().get_extension::<TableFiles>();
        Self {
            catalog: Arc::clone(catalog),
            files: files.unwrap_or_else(|| Arc::new(TableFiles::Local(catalog.data_dir().to_owned()))),
            name: resolved.info.name.to_string(),
            table: table.clone(),
            schema: scan_schema(state, &resolved.info.arrow_schema()),
            column_ids: resolved.info.columns.iter().map(|column| column.id).collect(),
            initial: initial_values(state, resolved),
            known: Mutex::new(None),
        }
    }

    /// Returns what the table holds, with the statistics of the columns that `projection` and `filters` name, and all its files.
    pub(super) async fn contents(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
    ) -> DfResult<ScanContents> {
        let contents = self.listed(projection, filters).await?;
        let mut found = self.contents_of(state, &contents.files, contents.inlined.clone())?;
        found.scan.distinct_values = self.distinct_values(&contents);
        Ok(found)
    }

    /// Returns the distinct values that columns are thought to have, by their places in the schema.
    fn distinct_values(&self, contents: &TableContents) -> Vec<(usize, usize)> {
        let place = |(id, count): (&i64, &u64)| {
            let column = self.column_ids.iter().position(|known| known == id)?;
            Some((column, usize::try_from(*count).ok()?))
        };
        contents.distinct_values.iter().filter_map(place).collect()
    }

    /// Returns what the table holds, with statistics as [`ManagedTableProvider::contents`] has them.
    async fn listed(&self, projection: Option<&Vec<usize>>, filters: &[Expr]) -> DfResult<Arc<TableContents>> {
        let wanted = self.statistics_columns(projection, filters);
        if let Some(known) = self.known.lock().as_ref().filter(|known| known.columns == wanted) {
            return Ok(Arc::clone(&known.contents));
        }
        let contents = self.catalog.tables().contents(&self.table, &wanted).await;
        let contents = Arc::new(contents.map_err(|error| DataFusionError::from(EngineError::Catalog(error)))?);
        if contents.files.len() <= MAX_KNOWN_FILES && contents.inlined.is_none() {
            *self.known.lock() = Some(KnownContents { columns: wanted, contents: Arc::clone(&contents) });
        }
        Ok(contents)
    }

    /// Returns what is read of some files of the table and of rows in the catalog.
    fn contents_of(
        &self,
        state: &dyn Session,
        files: &[DataFile],
        inlined: Option<RecordBatch>,
    ) -> DfResult<ScanContents> {
        let mut deletes = HashMap::new();
        for file in files.iter().filter(|file| !file.deletes.is_empty()) {
            deletes.insert(self.partitioned_file(file)?.object_meta.location, file.deletes.clone());
        }
        let files = files.iter().map(|file| self.partitioned_file(file)).collect::<DfResult<_>>()?;
        Ok(ScanContents { scan: self.file_scan(state, files)?, deletes, inlined })
    }

    fn file_scan(&self, state: &dyn Session, files: Vec<PartitionedFile>) -> DfResult<FileScan> {
        let ids = self.schema.fields().iter().map(|field| field.name().clone()).zip(self.column_ids.iter().copied());
        let format = Arc::new(ParquetFormat::default().with_options(state.table_options().parquet.clone()));
        let schema = TableSchema::from_file_schema(Arc::clone(&self.schema));
        let mut scan = FileScan::new(state, format, self.files.store_url()?, schema, files);
        scan.table = Some(self.name.clone());
        let initial = self.initial.clone().map_err(|detail| {
            DataFusionError::from(EngineError::BadData { location: format!("table `{}`", self.name), detail })
        })?;
        let adapter = FieldIdAdapterFactory { table: self.name.clone(), ids: ids.collect(), initial };
        scan.matching = ColumnMatching::FieldIds(Arc::new(adapter));
        Ok(scan)
    }

    /// Returns the plan of a scan, without deleted rows.
    async fn plan_of(
        &self,
        state: &dyn Session,
        contents: ScanContents,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> DfResult<Arc<dyn ExecutionPlan>> {
        let ScanContents { mut scan, mut deletes, inlined } = contents;
        if !deletes.is_empty() {
            scan.prune(state, filters);
            let mut files = Vec::with_capacity(scan.files.len());
            for file in scan.files {
                files.push(match deletes.remove(&file.object_meta.location) {
                    Some(gone) => deletes::without(state, file, gone, &self.files).await?,
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

    /// Returns the plan of one column of a file, with its deleted rows, in order and in one partition.
    pub(crate) async fn column_of_file(
        &self,
        state: &dyn Session,
        file: &DataFile,
        column: usize,
    ) -> DfResult<Arc<dyn ExecutionPlan>> {
        let whole = DataFile { deletes: FileDeletes::default(), ..file.clone() };
        let mut scan = self.contents_of(state, &[whole], None)?.scan;
        scan.in_order();
        scan.plan(state, Some(&vec![column]), None).await
    }

    /// Returns the table's files.
    pub(crate) async fn files(&self) -> DfResult<Vec<DataFile>> {
        Ok(self.listed(Some(&Vec::new()), &[]).await?.files.clone())
    }

    /// Returns a plan of the rows that are in the catalog.
    fn inlined_plan(&self, inlined: &RecordBatch, projection: Option<&Vec<usize>>) -> DfResult<Arc<dyn ExecutionPlan>> {
        let columns = inlined
            .columns()
            .iter()
            .zip(self.schema.fields())
            .map(|(column, field)| inlined_column(column, field.data_type()))
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
        let location = self.files.path_of(&file.path, &format!("a data file of `{}`", self.name))?;
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

/// Returns the plan of the rows that were written for a table which is not created, in order.
pub(crate) async fn drafted_rows(
    state: &dyn Session,
    files: &TableFiles,
    drafted: &DraftedTable,
) -> DfResult<Arc<dyn ExecutionPlan>> {
    let (table, columns) = (drafted.draft.name.to_string(), &drafted.draft.columns);
    let mut written = Vec::with_capacity(drafted.files.len());
    for file in &drafted.files {
        let mut scanned = PartitionedFile::new(String::new(), file.file_size_bytes);
        scanned.object_meta.location = files.path_of(&file.path, &format!("a data file of `{table}`"))?;
        written.push(scanned);
    }
    let fields = columns.iter().map(|column| Field::new(&column.name, column.data_type.clone(), column.nullable));
    let schema = scan_schema(state, &Schema::new(fields.collect::<Vec<_>>()));
    let format = Arc::new(ParquetFormat::default().with_options(state.table_options().parquet.clone()));
    let mut scan = FileScan::new(state, format, files.store_url()?, TableSchema::from_file_schema(schema), written);
    let ids = columns.iter().map(|column| (column.name.clone(), column.id)).collect();
    let adapter = FieldIdAdapterFactory { table, ids, initial: BTreeMap::new() };
    scan.matching = ColumnMatching::FieldIds(Arc::new(adapter));
    scan.in_order();
    scan.plan(state, None, None).await
}

/// Returns the values of a table's columns in files that are older than they, in the types of scans.
fn initial_values(state: &dyn Session, resolved: &ResolvedTable) -> Result<BTreeMap<String, ScalarValue>, String> {
    let schema = scan_schema(state, &resolved.info.arrow_schema());
    let columns = resolved.info.columns.iter().zip(schema.fields());
    let defaulted = columns.filter_map(|(column, field)| Some((column.initial_default.as_ref()?, field)));
    defaulted
        .map(|(text, field)| {
            let value = stored_value(text, field.data_type());
            let detail = |error| format!("`{text}`, the first value of column `{}`, is none: {error}", field.name());
            Ok((field.name().clone(), value.map_err(detail)?))
        })
        .collect()
}

/// Returns a column of the rows that are in the catalog, in the type that it has in the table.
fn inlined_column(column: &ArrayRef, data_type: &DataType) -> DfResult<ArrayRef> {
    Ok(arrow::compute::cast(&prepared_for_cast(column, data_type, false)?, data_type)?)
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
        let contents = self.contents(state, projection, filters).await?;
        self.plan_of(state, contents, projection, filters, limit).await
    }
}
