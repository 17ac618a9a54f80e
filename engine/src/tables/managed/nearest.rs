//! The rows of a managed table that a search for the nearest vectors needs: those that a vector index names, and all rows of
//! the files that it does not cover. Whoever scans computes the distances, sorts and limits as if all rows were there.
//!
//! Where the index cannot be read or names too few rows that pass the filters, all rows are there.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use arrow::array::{FixedSizeListArray, Float32Array};
use arrow::datatypes::{DataType, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{DFSchema, DataFusionError, Result as DfResult};
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::{ExecutionPlan, collect};
use querent_catalog::{
    DataFile, FileDeletes, OpenVectors, TableContents, TableVectorIndex, VectorMetric, VectorNeighbours,
};

use super::near_rows::{NearRows, NearRowsExec};
use super::{ManagedTableProvider, deletes};
use crate::error::EngineError;
use crate::tables::row_positions::with_rows;

/// The most rows of a top-k that an index finds.
const MAX_ROWS: usize = 1_000;
/// The most rows that an index names where a filter leaves some of them out.
const MAX_CANDIDATES: usize = 4_096;
/// The fewest rows that an index is asked for where there is a filter.
const MIN_FILTERED: usize = 64;
/// How many rows that an index does not cover are worth to be added to it, and which share of its rows: one of so many.
const WORTH_ROWS: u64 = 1_000;
const WORTH_SHARE: u64 = 20;

/// An extension of a session's configuration: no search for vectors uses an index.
#[derive(Debug)]
pub(crate) struct ExactVectorSearch;

/// Returns whether a vector index of `indexed` rows should take in `others` more.
pub(crate) fn is_worth_indexing(others: u64, indexed: u64) -> bool {
    others >= WORTH_ROWS && others >= indexed / WORTH_SHARE
}

/// A search for the rows nearest to a vector.
#[derive(Debug, Clone)]
pub(crate) struct NearestRequest {
    pub(crate) metric: VectorMetric,
    pub(crate) vector: Vec<f32>,
    /// How many rows are asked for.
    pub(crate) rows: usize,
    /// Whether rows without a distance come first.
    pub(crate) nulls_first: bool,
}

/// A managed table as a search for the nearest rows reads it.
pub(crate) struct NearestTable {
    /// A [`ManagedTableProvider`].
    table: Arc<dyn TableProvider>,
    index: Arc<TableVectorIndex>,
    /// The column's position.
    column: usize,
    request: NearestRequest,
}

impl NearestTable {
    /// Returns the table as a search in a column reads it; `None` where no index serves the search.
    pub(crate) fn over(table: &Arc<dyn TableProvider>, column: &str, request: NearestRequest) -> Option<Self> {
        let managed = table.downcast_ref::<ManagedTableProvider>()?;
        let indexes = managed.catalog.vector_indexes();
        let position = managed.schema.index_of(column).ok().filter(|_| !indexes.is_empty())?;
        let index = indexes.of_column(managed.table.id, *managed.column_ids.get(position)?, request.metric)?;
        let DataType::FixedSizeList(item, dimension) = managed.schema.field(position).data_type() else { return None };
        let is_fit = *item.data_type() == DataType::Float32
            && usize::try_from(*dimension) == Ok(index.spec().dimension)
            && request.vector.len() == index.spec().dimension
            && (1..=MAX_ROWS).contains(&request.rows)
            && request.vector.iter().all(|number| number.is_finite())
            && (request.metric != VectorMetric::Cosine || request.vector.iter().any(|number| *number != 0.0));
        is_fit.then(|| Self { table: Arc::clone(table), index, column: position, request })
    }

    fn managed(&self) -> DfResult<&ManagedTableProvider> {
        self.table
            .downcast_ref::<ManagedTableProvider>()
            .ok_or_else(|| DataFusionError::Internal("a vector index of what is no managed table".into()))
    }

    /// Returns the plan of the rows that the search needs; `None` where these are all.
    async fn indexed_plan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
    ) -> DfResult<Option<Arc<dyn ExecutionPlan>>> {
        let Some(opened) = self.index.open().await else { return Ok(None) };
        let managed = self.managed()?;
        let contents = managed.listed(projection, filters).await?;
        let TableContents { files, inlined, .. } = contents.as_ref();
        let (covered, others): (Vec<DataFile>, Vec<DataFile>) =
            files.iter().cloned().partition(|file| self.is_covered(&opened, file));
        let new_rows: u64 =
            others.iter().filter(|file| opened.file(file.id).is_none()).map(|file| file.row_count).sum();
        if is_worth_indexing(new_rows, covered.iter().map(|file| file.row_count).sum()) {
            self.index.ask_for_upkeep();
        }
        let covered: BTreeMap<i64, DataFile> = covered.into_iter().map(|file| (file.id, file)).collect();
        let Some(found) = self.candidates(state, &opened, &covered, filters).await? else { return Ok(None) };
        let mut inputs = self.rows_plans(state, &covered, &found, projection).await?;
        if !others.is_empty() || inlined.is_some() {
            let contents = managed.contents_of(state, &others, inlined.clone())?;
            inputs.push(managed.plan_of(state, contents, projection, filters, None).await?);
        }
        match <[_; 1]>::try_from(inputs) {
            Ok([only]) => Ok(Some(only)),
            Err(inputs) => UnionExec::try_new(inputs).map(Some),
        }
    }

    /// Returns whether the index says all that the search has to know of a file.
    fn is_covered(&self, opened: &OpenVectors, file: &DataFile) -> bool {
        opened.file(file.id).is_some_and(|known| {
            let has_first_rows = self.request.nulls_first && known.null_rows > 0;
            known.rows == file.row_count && !known.has_odd_numbers && !has_first_rows
        })
    }

    /// Returns rows of covered files that are nearest, so many that enough of them pass the filters; `None` where that
    /// cannot be said.
    async fn candidates(
        &self,
        state: &dyn Session,
        opened: &Arc<OpenVectors>,
        covered: &BTreeMap<i64, DataFile>,
        filters: &[Expr],
    ) -> DfResult<Option<VectorNeighbours>> {
        let managed = self.managed()?;
        let files: HashSet<i64> = covered.keys().copied().collect();
        if files.is_empty() {
            return Ok(None);
        }
        let mut deleted: HashMap<i64, BTreeSet<u64>> = HashMap::new();
        for file in covered.values().filter(|file| !file.deletes.is_empty()) {
            let location = file.path.display().to_string();
            let gone = deletes::deleted_positions(file.deletes.clone(), &location, &managed.files).await?;
            deleted.insert(file.id, gone);
        }
        let rows = self.request.rows;
        let mut wanted = match filters {
            // A few more, since the statement's own sums may round otherwise.
            [] => rows + rows / 8 + 8,
            _ => (4 * rows).clamp(MIN_FILTERED, MAX_CANDIDATES),
        };
        loop {
            let found = match opened.nearest(&self.request.vector, wanted, &files, &deleted).await {
                Ok(found) => found,
                Err(error) => {
                    self.index.note_damage(Some(opened), &error).await;
                    return Ok(None);
                }
            };
            if found.rows.len() < rows {
                return Ok(None);
            }
            if filters.is_empty() {
                return Ok(Some(found));
            }
            let passing = self.passing(state, covered, &found, filters).await?;
            if passing >= rows {
                return Ok(Some(found));
            }
            if wanted >= MAX_CANDIDATES || found.rows.len() < wanted {
                return Ok(None);
            }
            // Twice as many as the share that passed asks for.
            wanted = (2 * wanted * rows).checked_div(passing).unwrap_or(MAX_CANDIDATES);
            wanted = wanted.clamp(1, MAX_CANDIDATES);
        }
    }

    /// Returns how many of the rows pass the filters.
    async fn passing(
        &self,
        state: &dyn Session,
        covered: &BTreeMap<i64, DataFile>,
        found: &VectorNeighbours,
        filters: &[Expr],
    ) -> DfResult<usize> {
        let Some(filter) = conjunction(filters.iter().cloned()) else { return Ok(found.rows.len()) };
        let schema = self.schema();
        let columns: BTreeSet<usize> =
            filter.column_refs().into_iter().filter_map(|column| schema.index_of(column.name()).ok()).collect();
        let columns: Vec<usize> = columns.into_iter().collect();
        let mut passing = 0;
        for plan in self.rows_plans(state, covered, found, Some(&columns)).await? {
            let schema = DFSchema::try_from(plan.schema())?;
            let predicate = state.create_physical_expr(filter.clone(), &schema)?;
            let filtered = FilterExec::try_new(predicate, plan)?;
            let batches = collect(Arc::new(filtered), state.task_ctx()).await?;
            passing += batches.iter().map(|batch| batch.num_rows()).sum::<usize>();
        }
        Ok(passing)
    }

    /// Returns plans of the rows, one a file.
    async fn rows_plans(
        &self,
        state: &dyn Session,
        covered: &BTreeMap<i64, DataFile>,
        found: &VectorNeighbours,
        projection: Option<&Vec<usize>>,
    ) -> DfResult<Vec<Arc<dyn ExecutionPlan>>> {
        let managed = self.managed()?;
        let all: Vec<usize> = (0..managed.schema.fields().len()).collect();
        let columns = projection.unwrap_or(&all);
        let schema = Arc::new(managed.schema.project(columns)?);
        let vector_at = columns.iter().position(|column| *column == self.column);
        let read: Vec<usize> = columns.iter().copied().filter(|column| *column != self.column).collect();
        let mut by_file: BTreeMap<i64, BTreeMap<u64, usize>> = BTreeMap::new();
        for (at, row) in found.rows.iter().enumerate() {
            by_file.entry(row.file_id).or_default().insert(row.position, at);
        }
        let mut plans = Vec::with_capacity(by_file.len());
        for (id, positions) in by_file {
            let Some(file) = covered.get(&id) else {
                return Err(DataFusionError::Internal("a vector index names a file that was not asked for".into()));
            };
            let rows = NearRows {
                index: self.index.spec().name.clone(),
                schema: Arc::clone(&schema),
                vectors: Arc::new(self.vectors(found, positions.values().copied())?),
                vector_at,
            };
            let input = match read.as_slice() {
                [] => None,
                _ => Some(self.columns_at(state, file, &read, positions.keys().copied()).await?),
            };
            plans.push(Arc::new(NearRowsExec::new(Arc::new(rows), input)) as Arc<dyn ExecutionPlan>);
        }
        Ok(plans)
    }

    /// Returns the vectors of found rows, in the table's type.
    fn vectors(&self, found: &VectorNeighbours, rows: impl Iterator<Item = usize>) -> DfResult<FixedSizeListArray> {
        let schema = self.schema();
        let DataType::FixedSizeList(item, dimension) = schema.field(self.column).data_type() else {
            return Err(DataFusionError::Internal("a vector index of a column that has no vectors".into()));
        };
        let size = self.index.spec().dimension;
        let numbers = rows.flat_map(|row| found.numbers.get(row * size..(row + 1) * size).unwrap_or_default());
        let numbers = Arc::new(Float32Array::from_iter_values(numbers.copied()));
        Ok(FixedSizeListArray::try_new(Arc::clone(item), *dimension, numbers, None)?)
    }

    /// Returns the plan of columns of a file's rows at `positions`, which are sorted.
    async fn columns_at(
        &self,
        state: &dyn Session,
        file: &DataFile,
        columns: &Vec<usize>,
        positions: impl Iterator<Item = u64>,
    ) -> DfResult<Arc<dyn ExecutionPlan>> {
        let managed = self.managed()?;
        let whole = DataFile { deletes: FileDeletes::default(), ..file.clone() };
        let mut scan = managed.contents_of(state, &[whole], None)?.scan;
        let positions: Vec<usize> = positions.filter_map(|position| usize::try_from(position).ok()).collect();
        let rows = usize::try_from(file.row_count).unwrap_or(usize::MAX);
        let mut files = Vec::new();
        for file in std::mem::take(&mut scan.files) {
            let location = file.object_meta.location.to_string();
            let Some(file) = with_rows(state, &scan.store, file, rows, &positions).await? else {
                let detail = format!("its footer counts other rows than the {rows} that the catalog knows");
                return Err(DataFusionError::from(EngineError::BadData { location, detail }));
            };
            files.push(file);
        }
        scan.files = files;
        scan.in_order();
        scan.plan(state, Some(columns), None).await
    }
}

impl fmt::Debug for NearestTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NearestTable").field("table", &self.table).field("index", &self.index.spec().name).finish()
    }
}

#[async_trait]
impl TableProvider for NearestTable {
    fn schema(&self) -> SchemaRef {
        self.table.schema()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> DfResult<Vec<TableProviderFilterPushDown>> {
        self.table.supports_filters_pushdown(filters)
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> DfResult<Arc<dyn ExecutionPlan>> {
        let is_exact = state.config().get_extension::<ExactVectorSearch>().is_some();
        if !is_exact && let Some(plan) = self.indexed_plan(state, projection, filters).await? {
            return Ok(plan);
        }
        self.table.scan(state, projection, filters, limit).await
    }
}
