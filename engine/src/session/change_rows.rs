//! Applies DELETE, UPDATE and MERGE: the query's rows say which rows of the table go and what comes in their places; delete files
//! and data files are written first, and one catalog transaction makes both hold.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, RecordBatch, StringArray};
use arrow::compute::filter_record_batch;
use arrow::datatypes::{DataType, Field, FieldRef, Int64Type, Schema, SchemaRef};
use datafusion::error::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::memory_pool::MemoryPool;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::StreamExt;
use parking_lot::Mutex;
use querent_catalog::{CatalogError, ResolvedTable, RowChanges, TableSource};

use super::Session;
use super::apply_write::not_null;
use super::returning::{WrittenRows, answered, noted};
use super::sorted_rows::sorted_rows;
use crate::error::{EngineError, Result};
use crate::limits::{Interrupt, PlanningMemory, batch_bytes};
use crate::sql::write_statement::{MERGE_ACTION, RowStatement};
use crate::tables::managed::{self, DeletedPositions, INLINED_FILE};
use crate::temporary::no_session;

/// What a position takes in a set, with its share of the set's nodes.
const POSITION_BYTES: usize = 32;

/// Returns how many rows changed. Errors: `conflict` where another writer changed the same rows.
pub(super) async fn change_rows(
    session: &Session,
    target: &ResolvedTable,
    statement: RowStatement,
    input: &LogicalPlan,
    written: Option<&Arc<WrittenRows>>,
    interrupt: &Interrupt,
) -> Result<u64> {
    let TableSource::Managed(table) = &target.source else {
        return Err(EngineError::Internal(format!("{} of `{}`", statement.label(), target.info.name)));
    };
    let catalog = Arc::clone(session.engine().catalog());
    let memory = session.engine().runtime().query_memory(session.limits());
    let chosen = ChosenRows::new(target.info.name.to_string(), statement, &memory);
    let order = match statement {
        RowStatement::Delete => Vec::new(),
        RowStatement::Update | RowStatement::Merge => catalog.tables().insert_order(table).await?,
    };
    // The values of the columns are behind what says which row it is.
    let before = input.schema().fields().len().saturating_sub(target.info.columns.len());
    let input = sorted_rows(input, &order, &target.info.columns, before);
    let rows = session.execute_query_within(&input, &memory, interrupt).await?;
    let added = match statement {
        RowStatement::Delete => {
            delete(rows, &chosen, written).await?;
            Vec::new()
        }
        RowStatement::Update | RowStatement::Merge => {
            let write_schema = catalog.tables().write_schema(table).await?;
            let values = noted(
                not_null(written_values(rows, &chosen, statement, (&write_schema, written))?, &write_schema),
                &write_schema,
                after(statement, written),
            );
            let values = answered(values, written);
            managed::write_files(session.engine().table_files(), &table.location, write_schema, values).await?
        }
    };
    let (changed, mut positions) = {
        let mut chosen = chosen.lock();
        (chosen.changed(), std::mem::take(&mut chosen.positions))
    };
    if positions.is_empty() && added.is_empty() {
        return Ok(0);
    }
    let inlined = positions.remove(&INLINED_FILE).unwrap_or_default().into_iter().collect();
    let (table, committed) = (table.clone(), added.clone());
    let place = Arc::clone(session.engine().table_files());
    session
        .engine()
        .commit_files(added, async move {
            let files = match positions.is_empty() {
                true => Vec::new(),
                // At the snapshot that the positions are of.
                false => catalog.tables().contents(&table, &[]).await?.files,
            };
            let deletes = managed::write_delete_files(place, &table.location, files, positions).await?;
            let changes = RowChanges { deleted: deletes.deleted(), inlined, added: committed };
            match catalog.tables().change_rows(&table, changes).await {
                Ok(_) => deletes.keep(),
                // The table may have them.
                Err(error @ CatalogError::CommitInDoubt { .. }) => {
                    deletes.keep();
                    return Err(error.into());
                }
                Err(error) => return Err(error.into()),
            }
            Ok(true)
        })
        .await?;
    session.engine().queue_changed_table(target.info.name.clone());
    Ok(changed)
}

/// As [`change_rows`], of a table of the session, which has a name while the tables are of a version.
pub(super) async fn change_temporary(
    session: &Session,
    (name, version): (&str, u64),
    statement: RowStatement,
    input: &LogicalPlan,
    written: Option<&Arc<WrittenRows>>,
    interrupt: &Interrupt,
) -> Result<u64> {
    let tables = session.temporary_tables().ok_or_else(no_session)?;
    let schema = tables.provider(name).map(|table| table.schema()).ok_or_else(no_session)?;
    let memory = session.engine().runtime().query_memory(session.limits());
    let chosen = ChosenRows::new(name.to_owned(), statement, &memory);
    let rows = session.execute_query_within(input, &memory, interrupt).await?;
    let mut added = Vec::new();
    match statement {
        RowStatement::Delete => delete(rows, &chosen, written).await?,
        RowStatement::Update | RowStatement::Merge => {
            let kept = PlanningMemory::in_pool(Arc::clone(&memory));
            let values = not_null(written_values(rows, &chosen, statement, (&schema, written))?, &schema);
            let mut values = answered(noted(values, &schema, after(statement, written)), written);
            while let Some(batch) = values.next().await {
                let batch = managed::cast_batch(&batch?, &schema)?;
                kept.keep(batch_bytes(&batch))?;
                added.push(batch);
            }
        }
    }
    let chosen = chosen.lock();
    let deleted = chosen.positions.values().flatten().copied().collect();
    tables.change(name, version, &deleted, added)?;
    Ok(chosen.changed())
}

/// Notes the rows that go.
async fn delete(
    mut rows: SendableRecordBatchStream,
    chosen: &Arc<Mutex<ChosenRows>>,
    written: Option<&Arc<WrittenRows>>,
) -> Result<()> {
    while let Some(batch) = rows.next().await {
        let batch = batch?;
        let is_new = chosen.lock().add(&batch)?;
        if let Some(written) = written {
            let values: Vec<usize> = (2..batch.num_columns()).collect();
            written.keep(&filter_record_batch(&batch, &is_new)?.project(&values)?)?;
        }
    }
    match written {
        Some(written) => written.make_answer().await,
        None => Ok(()),
    }
}

/// The rows that a statement found, by their numbers.
struct ChosenRows {
    table: String,
    statement: RowStatement,
    positions: DeletedPositions,
    /// Rows of the query.
    rows: u64,
    memory: PlanningMemory,
}

impl ChosenRows {
    fn new(table: String, statement: RowStatement, memory: &Arc<dyn MemoryPool>) -> Arc<Mutex<Self>> {
        let memory = PlanningMemory::in_pool(Arc::clone(memory));
        Arc::new(Mutex::new(Self { table, statement, positions: DeletedPositions::new(), rows: 0, memory }))
    }

    /// Notes the rows of a batch. Returns which of them were not found before. Errors: a row that is to get several values,
    /// `memory_exceeded`.
    fn add(&mut self, batch: &RecordBatch) -> Result<BooleanArray> {
        let mut found = Vec::with_capacity(batch.num_rows());
        let number = |index: usize| {
            let column = batch.columns().get(index).and_then(|column| column.as_primitive_opt::<Int64Type>());
            column.ok_or_else(|| EngineError::Internal(format!("{} has no row numbers", self.statement.label())))
        };
        let (files, positions) = (number(0)?, number(1)?);
        self.memory.keep(batch.num_rows() * POSITION_BYTES)?;
        for (file, position) in files.iter().zip(positions) {
            self.rows += 1;
            let (Some(file), Some(position)) = (file, position) else {
                found.push(true);
                continue;
            };
            let position = u64::try_from(position)
                .map_err(|_| EngineError::Internal(format!("row {position} of file {file} changes")))?;
            let is_new = self.positions.entry(file).or_default().insert(position);
            found.push(is_new);
            if !is_new && self.statement != RowStatement::Delete {
                return Err(EngineError::InvalidValue {
                    message: format!(
                        "{} changes a row of `{}` more than once; let each row match one row of the other side",
                        self.statement.label(),
                        self.table
                    ),
                });
            }
        }
        Ok(BooleanArray::from(found))
    }

    /// How many rows of the table changed: a DELETE may have found one several times.
    fn changed(&self) -> u64 {
        match self.statement {
            RowStatement::Delete => self.positions.values().map(|positions| positions.len() as u64).sum(),
            RowStatement::Update | RowStatement::Merge => self.rows,
        }
    }
}

/// Returns where the rows of a statement are kept once they are as they are written; a MERGE keeps those that it deletes too.
fn after(statement: RowStatement, written: Option<&Arc<WrittenRows>>) -> Option<&Arc<WrittenRows>> {
    written.filter(|_| statement != RowStatement::Merge)
}

/// Returns the values of the rows of a MERGE, with what becomes of each.
fn with_actions(batch: &RecordBatch, is_written: &BooleanArray, values: &RecordBatch) -> Result<RecordBatch> {
    let files = batch.column(0);
    let actions = (0..batch.num_rows()).map(|row| match (files.is_null(row), is_written.value(row)) {
        (true, _) => "INSERT",
        (false, true) => "UPDATE",
        (false, false) => "DELETE",
    });
    let actions: ArrayRef = Arc::new(StringArray::from_iter_values(actions));
    let mut fields: Vec<FieldRef> = values.schema_ref().fields().iter().map(Arc::clone).collect();
    let mut columns = values.columns().to_vec();
    fields.push(Arc::new(Field::new(MERGE_ACTION, DataType::Utf8, true)));
    columns.push(actions);
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
        .map_err(|error| EngineError::Internal(error.to_string()))
}

/// Returns the values of the rows that are written, and notes the rows whose places they take. `returned`: where the rows of a
/// MERGE are kept, as values of the table's columns.
fn written_values(
    rows: SendableRecordBatchStream,
    chosen: &Arc<Mutex<ChosenRows>>,
    statement: RowStatement,
    (target, returned): (&SchemaRef, Option<&Arc<WrittenRows>>),
) -> Result<SendableRecordBatchStream> {
    let numbers = match statement {
        RowStatement::Delete | RowStatement::Update => 2,
        RowStatement::Merge => 3,
    };
    let schema = rows.schema();
    let values: Vec<usize> = (numbers..schema.fields().len()).collect();
    let written: Schema = schema.project(&values).map_err(|error| EngineError::Internal(error.to_string()))?;
    let (chosen, target, returned) = (Arc::clone(chosen), Arc::clone(target), returned.map(Arc::clone));
    let batches = rows.map(move |batch| {
        let batch = batch?;
        chosen.lock().add(&batch)?;
        let written = match statement {
            RowStatement::Delete | RowStatement::Update => batch,
            RowStatement::Merge => {
                let is_written = batch.columns().get(2).and_then(|writes| writes.as_boolean_opt());
                let is_written = is_written.ok_or_else(|| EngineError::Internal("MERGE without a choice".into()))?;
                if let Some(returned) = &returned {
                    let stored = managed::cast_batch(&batch.project(&values)?, &target)?;
                    returned.keep(&with_actions(&batch, is_written, &stored)?)?;
                }
                filter_record_batch(&batch, is_written)?
            }
        };
        Ok::<_, DataFusionError>(written.project(&values)?)
    });
    Ok(Box::pin(RecordBatchStreamAdapter::new(Arc::new(written), batches)))
}
