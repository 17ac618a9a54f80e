//! A managed table with the file of each row and the row's position in it, which is how DuckLake names rows: what DELETE, UPDATE
//! and MERGE read.
//!
//! Positions are counted while a file is read from its first row to its last, so that no row group is left out and no filter is
//! pushed into the scan of a file; whole files are, by their statistics.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, Int64Array, RecordBatch, RecordBatchOptions};
use arrow::compute::filter_record_batch;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{DataFusionError, Result as DfResult, internal_err};
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, Distribution, ExecutionPlan, Partitioning, PlanProperties,
};
use futures::{StreamExt, TryStreamExt, stream};
use querent_catalog::{Catalog, DataFile, ManagedTable, ResolvedTable, TableContents};

use super::{ManagedTableProvider, deletes, inlined_column};
use crate::error::EngineError;
use crate::identifiers::{FILE_COLUMN, POSITION_COLUMN};

/// The file of rows that are in the catalog and in no file; their positions are their places there.
pub(crate) const INLINED_FILE: i64 = -1;

/// A managed table with two more columns.
#[derive(Debug)]
pub(crate) struct NumberedTable {
    table: ManagedTableProvider,
    schema: SchemaRef,
}

impl NumberedTable {
    /// Errors: `unsupported` where the table has a column of one of these names.
    pub(crate) fn try_new(
        catalog: &Arc<Catalog>,
        state: &dyn Session,
        resolved: &ResolvedTable,
        managed: &ManagedTable,
    ) -> Result<Self, EngineError> {
        let table = ManagedTableProvider::new(catalog, state, resolved, managed);
        let own = [FILE_COLUMN, POSITION_COLUMN];
        if let Some(taken) = table.schema.fields().iter().find(|field| own.contains(&field.name().as_str())) {
            return Err(EngineError::Unsupported {
                what: format!("changing rows of a table with a column `{}`", taken.name()),
                hint: "rename the column".into(),
            });
        }
        let numbers = own.map(|name| Arc::new(Field::new(name, DataType::Int64, false)));
        let fields = table.schema.fields().iter().cloned().chain(numbers);
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        Ok(Self { table, schema })
    }

    /// Returns the rows that are in the catalog, numbered.
    fn inlined_plan(&self, inlined: &RecordBatch, projection: &[usize]) -> DfResult<Arc<dyn ExecutionPlan>> {
        let own = self.table.schema.fields().len();
        let rows = inlined.num_rows();
        let columns = projection.iter().map(|index| match inlined.columns().get(*index) {
            Some(column) => inlined_column(column, self.schema.field(*index).data_type()),
            None if *index == own => Ok(Arc::new(Int64Array::from(vec![INLINED_FILE; rows])) as ArrayRef),
            None => positions(0, rows),
        });
        let schema = Arc::new(self.schema.project(projection)?);
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let columns = columns.collect::<DfResult<Vec<_>>>()?;
        let batch = RecordBatch::try_new_with_options(Arc::clone(&schema), columns, &options)?;
        Ok(MemorySourceConfig::try_new_exec(&[vec![batch]], schema, None)?)
    }

    async fn numbered_file(
        &self,
        state: &dyn Session,
        file: &DataFile,
        columns: &Vec<usize>,
    ) -> DfResult<(Arc<dyn ExecutionPlan>, NumberedFile)> {
        let scanned = self.table.partitioned_file(file)?;
        let location = scanned.object_meta.location.to_string();
        let gone = deletes::deleted_positions(file.deletes.clone(), &location, &self.table.files).await?;
        let mut scan = self.table.file_scan(state, vec![scanned])?;
        scan.in_order();
        let plan = scan.plan(state, Some(columns), None).await?;
        Ok((plan, NumberedFile { id: file.id, gone: Arc::new(gone) }))
    }
}

#[async_trait]
impl TableProvider for NumberedTable {
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
        _limit: Option<usize>,
    ) -> DfResult<Arc<dyn ExecutionPlan>> {
        let own = self.table.schema.fields().len();
        let projection = projection.cloned().unwrap_or_else(|| (0..self.schema.fields().len()).collect());
        let columns: Vec<usize> = projection.iter().copied().filter(|index| *index < own).collect();
        // What is asked of the numbers themselves says nothing about files.
        let names_number = |filter: &&Expr| {
            let named = filter.column_refs();
            named.iter().any(|column| [FILE_COLUMN, POSITION_COLUMN].contains(&column.name.as_str()))
        };
        let filters: Vec<Expr> = filters.iter().filter(|filter| !names_number(filter)).cloned().collect();
        let contents = self.table.listed(Some(&columns), &filters).await?;
        let TableContents { files, inlined, .. } = contents.as_ref();
        let scanned = files.iter().map(|file| self.table.partitioned_file(file)).collect::<DfResult<Vec<_>>>()?;
        let mut by_location: HashMap<_, &DataFile> = HashMap::with_capacity(files.len());
        for (scanned, file) in scanned.iter().zip(files) {
            by_location.insert(scanned.object_meta.location.clone(), file);
        }
        let mut scan = self.table.file_scan(state, scanned)?;
        scan.prune(state, &filters);
        scan.count(state, Some(&columns), None);
        let mut inputs = Vec::with_capacity(scan.files.len());
        let mut numbered = Vec::with_capacity(scan.files.len());
        for file in scan.files.iter().filter_map(|file| by_location.get(&file.object_meta.location)) {
            let (plan, file) = self.numbered_file(state, file, &columns).await?;
            inputs.push(plan);
            numbered.push(file);
        }
        if let Some(rows) = inlined {
            inputs.push(self.inlined_plan(rows, &projection)?);
        }
        let schema = Arc::new(self.schema.project(&projection)?);
        let layout = projection.iter().map(|index| match *index {
            index if index < own => NumberedColumn::OfTable,
            index if index == own => NumberedColumn::File,
            _ => NumberedColumn::Position,
        });
        let numbering = Numbering { files: numbered, layout: layout.collect() };
        let partitions = state.config().target_partitions();
        Ok(Arc::new(NumberedExec::new(inputs, Arc::new(numbering), schema, partitions)))
    }
}

/// A column of the numbered rows.
#[derive(Debug, Clone, Copy)]
enum NumberedColumn {
    /// The next column of the table's.
    OfTable,
    File,
    Position,
}

#[derive(Debug)]
struct NumberedFile {
    id: i64,
    /// Rows that were deleted before.
    gone: Arc<BTreeSet<u64>>,
}

/// How the rows of the inputs are numbered.
#[derive(Debug)]
struct Numbering {
    /// The files of the first inputs; an input behind them has its numbers already.
    files: Vec<NumberedFile>,
    layout: Vec<NumberedColumn>,
}

/// Reads files one after the other in each of its partitions, and numbers their rows.
#[derive(Debug)]
struct NumberedExec {
    inputs: Vec<Arc<dyn ExecutionPlan>>,
    numbering: Arc<Numbering>,
    properties: Arc<PlanProperties>,
}

impl NumberedExec {
    fn new(
        inputs: Vec<Arc<dyn ExecutionPlan>>,
        numbering: Arc<Numbering>,
        schema: SchemaRef,
        partitions: usize,
    ) -> Self {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema),
            Partitioning::UnknownPartitioning(inputs.len().clamp(1, partitions.max(1))),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Self { inputs, numbering, properties: Arc::new(properties) }
    }
}

impl DisplayAs for NumberedExec {
    fn fmt_as(&self, _format: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("NumberedExec")
    }
}

impl ExecutionPlan for NumberedExec {
    fn name(&self) -> &'static str {
        "NumberedExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    /// A file that is read in parts has no first row.
    fn required_input_distribution(&self) -> Vec<Distribution> {
        vec![Distribution::SinglePartition; self.inputs.len()]
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.inputs.iter().collect()
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> DfResult<Arc<dyn ExecutionPlan>> {
        if children.len() != self.inputs.len() {
            return internal_err!("{} has {} inputs", self.name(), self.inputs.len());
        }
        let partitions = self.properties.output_partitioning().partition_count();
        Ok(Arc::new(Self::new(children, Arc::clone(&self.numbering), self.schema(), partitions)))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> DfResult<SendableRecordBatchStream> {
        let step = self.properties.output_partitioning().partition_count();
        let schema = self.schema();
        let mine: Vec<(usize, Arc<dyn ExecutionPlan>)> =
            self.inputs.iter().cloned().enumerate().skip(partition).step_by(step).collect();
        let (numbering, announced) = (Arc::clone(&self.numbering), Arc::clone(&schema));
        // A file is opened when the one before it is read.
        let rows = stream::iter(mine).map(Ok::<_, DataFusionError>).and_then(move |(index, input)| {
            let opened = numbered(&numbering, index, &input, &context, &announced);
            std::future::ready(opened)
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows.try_flatten())))
    }
}

fn numbered(
    numbering: &Arc<Numbering>,
    index: usize,
    input: &Arc<dyn ExecutionPlan>,
    context: &Arc<TaskContext>,
    schema: &SchemaRef,
) -> DfResult<SendableRecordBatchStream> {
    let rows = input.execute(0, Arc::clone(context))?;
    if index >= numbering.files.len() {
        return Ok(rows);
    }
    let (numbering, announced, mut first) = (Arc::clone(numbering), Arc::clone(schema), 0_u64);
    let rows = rows.map(move |batch| {
        let batch = batch?;
        let numbered = numbering.batch(index, &batch, first, &announced)?;
        first += batch.num_rows() as u64;
        Ok(numbered)
    });
    Ok(Box::pin(RecordBatchStreamAdapter::new(Arc::clone(schema), rows)))
}

impl Numbering {
    /// Returns a batch whose first row is the row `first` of its file, with its numbers and without rows that were deleted.
    fn batch(&self, index: usize, batch: &RecordBatch, first: u64, schema: &SchemaRef) -> DfResult<RecordBatch> {
        let Some(file) = self.files.get(index) else { return internal_err!("no file {index}") };
        let rows = batch.num_rows();
        let mut own = batch.columns().iter();
        let mut columns = Vec::with_capacity(self.layout.len());
        for column in &self.layout {
            columns.push(match column {
                NumberedColumn::OfTable => match own.next() {
                    Some(column) => Arc::clone(column),
                    None => return internal_err!("a scan has too few columns"),
                },
                NumberedColumn::File => Arc::new(Int64Array::from(vec![file.id; rows])),
                NumberedColumn::Position => positions(first, rows)?,
            });
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let numbered = RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?;
        let end = first + rows as u64;
        if file.gone.range(first..end).next().is_none() {
            return Ok(numbered);
        }
        let kept: BooleanArray = (first..end).map(|position| Some(!file.gone.contains(&position))).collect();
        Ok(filter_record_batch(&numbered, &kept)?)
    }
}

fn positions(first: u64, rows: usize) -> DfResult<ArrayRef> {
    let first = i64::try_from(first).map_err(|error| DataFusionError::External(Box::new(error)))?;
    Ok(Arc::new(Int64Array::from_iter_values((first..).take(rows))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_counted_with_those_that_were_deleted() {
        let gone = Arc::new(BTreeSet::from([11_u64, 12]));
        let numbering = Numbering {
            files: vec![NumberedFile { id: 7, gone }],
            layout: vec![NumberedColumn::Position, NumberedColumn::OfTable, NumberedColumn::File],
        };
        let number = |name: &str| Field::new(name, DataType::Int64, false);
        let schema = Arc::new(Schema::new(vec![number(POSITION_COLUMN), number("a"), number(FILE_COLUMN)]));
        let values: ArrayRef = Arc::new(Int64Array::from(vec![100, 101, 102, 103]));
        let input = RecordBatch::try_new(Arc::new(Schema::new(vec![number("a")])), vec![values]).unwrap();
        let found = numbering.batch(0, &input, 10, &schema).unwrap();
        let expected: [ArrayRef; 3] = [
            Arc::new(Int64Array::from(vec![10, 13])),
            Arc::new(Int64Array::from(vec![100, 103])),
            Arc::new(Int64Array::from(vec![7, 7])),
        ];
        assert_eq!(found.columns(), expected);
    }
}
