//! Bulk ingest: the rows of a stream become those of a table, all or none.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::{DataType, Field, FieldRef, SchemaRef, UInt64Type};
use datafusion::catalog::streaming::StreamingTable;
use datafusion::common::Column;
use datafusion::datasource::provider_as_source;
use datafusion::error::DataFusionError;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Projection, lit};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
use datafusion::physical_plan::{EmptyRecordBatchStream, execute_stream};
use datafusion::scalar::ScalarValue;
use futures::{Stream, StreamExt};
use parking_lot::Mutex;
use querent_catalog::{ColumnInfo, Created, DraftedTable, IfExists, TableName};
use querent_kql::nearest_name;
use tokio::sync::OwnedMutexGuard;

use super::apply_write::drafted_table;
use super::{Session, write_result};
use crate::error::{EngineError, KEPT_BY_QUERENT, Result, listed_columns};
use crate::functions::{
    assigned_value, converted, refuse_impossible_values, rows_with_aligned_intervals, rows_with_one_nan,
};
use crate::identifiers::same_name;
use crate::limits::{Interrupt, QueryUsage};
use crate::policy::AuthorizedPlan;
use crate::sql::catalog_table::CatalogTable;
use crate::sql::column_defaults::default_value;
use crate::sql::json_columns::TextColumns;
use crate::sql::parameters::ParameterValues;
use crate::sql::parse::parse_statement;
use crate::sql::write_statement::WriteStatement;
use crate::stream::StartedQuery;
use crate::tables::external::{held_type_of, is_json_text, is_uuid};
use crate::tables::managed;
use crate::tables::system::is_system_database;
use crate::temporary::{no_session, no_such_table};

/// The name of the rows that arrive, in a plan.
const ARRIVING: &str = "rows";

/// What becomes of the table that rows go to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IngestMode {
    /// It is made, and must not be there.
    Create,
    /// It must be there, and keeps its rows.
    Append,
    /// It must be there, and loses its rows and columns.
    Overwrite,
    /// It is made, in place of one that is there.
    Replace,
    /// It is made unless it is there.
    CreateOrAppend,
}

impl Session {
    /// Writes a stream of batches of `schema` to a managed table, or to one of the session's own. Where rows are added, columns are matched by
    /// name without regard to case, converted to the table's types, and their default, or null, where the stream has none. Where a
    /// table is made, a column of nulls alone becomes text. The wall clock stands still while rows are awaited.
    /// Returns the number of rows. Errors: `already_exists`, `table_not_found`, `column_not_found`, `not_allowed`, and
    /// those of the stream, after which nothing is written.
    pub async fn ingest(
        &self,
        table: &TableName,
        temporary: bool,
        mode: IngestMode,
        schema: SchemaRef,
        rows: impl Stream<Item = Result<RecordBatch>> + Send + 'static,
    ) -> Result<u64> {
        let rows = rows.map(|batch| {
            let batch = batch?;
            batch.columns().iter().try_for_each(refuse_impossible_values)?;
            Ok::<_, DataFusionError>(rows_with_one_nan(rows_with_aligned_intervals(batch)?)?)
        });
        let rows = rows.boxed();
        let label = self.label(&format!("rows sent to {table}"));
        let table = table.clone();
        let written = self.spawn_on_query_threads(label, move |session: Session, interrupt| async move {
            let rows = RecordBatchStreamAdapter::new(schema, interrupt.clock().awaited(rows));
            let rows: SendableRecordBatchStream = Box::pin(rows);
            // Held until the table is written: whoever is next finds it.
            let _turn = session.turn_to_make(&table, temporary, mode).await?;
            if temporary {
                let plan = session.temporary_ingest_plan(table.table, mode, rows)?;
                return session.begin_plan(session.authorize(plan)?, &interrupt).await;
            }
            let plan = session.authorize(session.ingest_plan(table.clone(), mode, rows).await?)?;
            let makes_table =
                matches!(WriteStatement::from_plan(plan.plan()), Some(WriteStatement::CreateTable { .. }));
            match mode {
                IngestMode::CreateOrAppend if makes_table => session.create_or_append(table, plan, &interrupt).await,
                _ => session.begin_plan(plan, &interrupt).await,
            }
        });
        count_rows(written.await?).await
    }

    /// Returns the session in the database that rows are sent to. Errors: as [`Session::in_database`]; `not_allowed` for one
    /// whose tables Querent itself serves.
    pub async fn in_ingest_database(self, database: Option<&str>) -> Result<Self> {
        if let Some(own) = database.filter(|name| is_system_database(name)) {
            let why = format!(" into `{own}`, {KEPT_BY_QUERENT}");
            return Err(EngineError::NotAllowed { what: "an ingest".to_owned(), why });
        }
        self.in_database(database).await
    }

    /// Executes a plan whose rows nobody wants. Returns the number of rows that it wrote, or that the query has.
    pub async fn execute_update(&self, plan: AuthorizedPlan) -> Result<u64> {
        let has_rows = plan.has_rows();
        let mut rows = self.execute(plan).await?;
        if !has_rows {
            return count_rows(rows).await;
        }
        while let Some(batch) = rows.next().await {
            batch?;
        }
        Ok(rows.stats().rows)
    }

    /// Waits for the turn of an ingest that may find, once it has all its rows, that another one was faster.
    async fn turn_to_make(
        &self,
        table: &TableName,
        temporary: bool,
        mode: IngestMode,
    ) -> Result<Option<OwnedMutexGuard<()>>> {
        if temporary {
            let tables = self.temporary.as_ref().ok_or_else(no_session)?;
            let takes_turns = mode == IngestMode::CreateOrAppend && !tables.contains(&table.table);
            return Ok(if takes_turns { Some(tables.turn_of_table(&table.table).await) } else { None });
        }
        let takes_turns = match mode {
            IngestMode::Create | IngestMode::Append => false,
            IngestMode::Overwrite | IngestMode::Replace => true,
            IngestMode::CreateOrAppend => {
                let tables = self.engine.catalog().tables();
                tables.resolve(&self.principal, std::slice::from_ref(table)).await?.pop().flatten().is_none()
            }
        };
        Ok(if takes_turns { Some(self.engine.turn_of_table(table).await) } else { None })
    }

    async fn ingest_plan(
        &self,
        name: TableName,
        mode: IngestMode,
        rows: SendableRecordBatchStream,
    ) -> Result<LogicalPlan> {
        let catalog = self.engine.catalog();
        let existing = catalog.tables().resolve(&self.principal, std::slice::from_ref(&name)).await?.pop().flatten();
        let input = arriving(rows)?;
        let if_exists = match (mode, &existing) {
            (IngestMode::Append | IngestMode::Overwrite, None) => {
                return Err(catalog.tables().not_found(&self.principal, &name).await.into());
            }
            (IngestMode::Append | IngestMode::CreateOrAppend, Some(target)) => {
                let defaults = Box::pin(self.defaults_of(&target.info.columns, &input)).await?;
                let columns = target.info.columns.iter().map(|column| (column.name.as_str(), &column.data_type));
                let input = Arc::new(in_columns(input, columns, &defaults)?);
                let target = Box::new(target.clone());
                return Ok(WriteStatement::Insert { target, overwrite: false, input }.into_plan());
            }
            (IngestMode::Create | IngestMode::CreateOrAppend, _) => IfExists::Error,
            (IngestMode::Replace | IngestMode::Overwrite, _) => IfExists::Replace,
        };
        let names = |is_it: fn(&Field) -> bool| -> Vec<String> {
            let fields = input.schema().fields().iter().filter(|field| is_it(field));
            fields.map(|field| field.name().clone()).collect()
        };
        let texts = TextColumns { json: names(is_json_text), uuids: names(is_uuid) };
        let input = with_types(input)?;
        Ok(WriteStatement::CreateTable {
            name,
            if_exists,
            with_rows: true,
            not_null: required_columns(&input),
            keys: Vec::new(),
            foreign_keys: Vec::new(),
            defaults: Vec::new(),
            sort_order: Vec::new(),
            texts,
            input: Arc::new(input),
        }
        .into_plan())
    }

    /// Makes a table of the rows of a plan, or appends them where another made it while they came: then they are read again, as they
    /// were written, and become those of the table as any others would.
    async fn create_or_append(
        &self,
        table: TableName,
        plan: AuthorizedPlan,
        interrupt: &Interrupt,
    ) -> Result<StartedQuery> {
        let schema = self.schema_of(&plan);
        let memory = self.engine.runtime().query_memory(&self.limits);
        let drafted = Box::pin(drafted_table(self, plan, interrupt)).await?;
        let files = drafted.files.clone();
        let rows: u64 = files.iter().map(|file| file.row_count).sum();
        let (session, name, interrupt) = (self.clone(), table.clone(), interrupt.clone());
        let written = async move {
            let DraftedTable { draft, files } = drafted.clone();
            let created = session.engine.catalog().tables().create(draft, files, IfExists::Ignore).await?;
            if let Created::New(_) = created {
                return Ok(true);
            }
            let rows = session.drafted_rows(&drafted).await?;
            let plan = session.ingest_plan(name, IngestMode::CreateOrAppend, rows).await?;
            session.begin_plan(session.authorize(plan)?, &interrupt).await?;
            // The table has copies of the rows, and these files are nobody's.
            Ok::<bool, EngineError>(false)
        };
        if self.engine.commit_files(files, QueryUsage::followed(written)).await?.is_some() {
            self.engine.queue_changed_table(table);
        }
        let rows = write_result(Arc::clone(&schema), Some(rows))?;
        Ok(StartedQuery { schema, rows, memory, is_all: true, is_quick: false, is_kept: false })
    }

    /// Returns the rows that were written for a table which is not created.
    async fn drafted_rows(&self, drafted: &DraftedTable) -> Result<SendableRecordBatchStream> {
        let (runtime, state) = (self.engine.runtime(), self.engine.planning_state());
        let plan = managed::drafted_rows(&*state, self.engine.table_files(), drafted).await?;
        let memory = runtime.query_memory(&self.limits);
        Ok(execute_stream(plan, runtime.task(state.config().clone(), &memory))?)
    }

    /// Returns what the columns that rows lack are by default, by the columns' names.
    async fn defaults_of(&self, columns: &[ColumnInfo], rows: &LogicalPlan) -> Result<Vec<(String, Expr)>> {
        let mut defaults = Vec::new();
        let given: HashSet<String> = rows.schema().fields().iter().map(|own| own.name().to_lowercase()).collect();
        for column in columns {
            if column.default.is_none() || given.contains(&column.name.to_lowercase()) {
                continue;
            }
            let text = format!("SELECT {}", default_value(column)?);
            let plan = self.plan_parsed(parse_statement(&text)?, ParameterValues::None).await?;
            let LogicalPlan::Projection(Projection { expr, input, .. }) = plan else {
                return Err(EngineError::Internal(format!("the default of column `{}` is no value", column.name)));
            };
            for value in expr {
                let from = value.get_type(input.schema())?;
                let value = converted(value.unalias(), &from, &column.data_type, false);
                defaults.push((column.name.clone(), value));
            }
        }
        Ok(defaults)
    }

    fn temporary_ingest_plan(
        &self,
        name: String,
        mode: IngestMode,
        rows: SendableRecordBatchStream,
    ) -> Result<LogicalPlan> {
        let tables = self.temporary.as_ref().ok_or_else(no_session)?;
        let existing = tables.provider(&name);
        let input = arriving(rows)?;
        let if_exists = match (mode, existing) {
            (IngestMode::Append | IngestMode::Overwrite, None) => return Err(no_such_table(&name)),
            (IngestMode::Append | IngestMode::CreateOrAppend, Some(target)) => {
                let schema = target.schema();
                let columns = schema.fields().iter().map(|field| (field.name().as_str(), field.data_type()));
                let input = Arc::new(in_columns(input, columns, &[])?);
                return Ok(WriteStatement::InsertTemporary { name, overwrite: false, input }.into_plan());
            }
            (IngestMode::Create | IngestMode::CreateOrAppend, _) => IfExists::Error,
            (IngestMode::Replace | IngestMode::Overwrite, _) => IfExists::Replace,
        };
        let input = with_types(input)?;
        let not_null = required_columns(&input);
        Ok(WriteStatement::CreateTemporary { name, if_exists, with_rows: true, not_null, input: Arc::new(input) }
            .into_plan())
    }
}

/// Returns the number that a statement that writes answered with; 0 where it answers with nothing.
async fn count_rows(mut answer: crate::stream::QueryStream) -> Result<u64> {
    let mut written = 0;
    while let Some(batch) = answer.next().await {
        let batch = batch?;
        if let Some(counts) = batch.columns().first().and_then(|column| column.as_primitive_opt::<UInt64Type>()) {
            written += (0..counts.len()).map(|row| counts.value(row)).sum::<u64>();
        }
    }
    Ok(written)
}

/// Returns the columns that the sender says are never null.
fn required_columns(rows: &LogicalPlan) -> Vec<String> {
    let required = rows.schema().fields().iter().filter(|field| !field.is_nullable());
    required.map(|field| field.name().clone()).collect()
}

/// Returns the scan of a stream that can be read once. Errors: two of its columns have one name.
pub(super) fn arriving(rows: SendableRecordBatchStream) -> Result<LogicalPlan> {
    let schema = rows.schema();
    if let Some(name) = name_that_is_twice(&schema) {
        return Err(EngineError::Plan { message: format!("the rows have more than one column `{name}`") });
    }
    let partition = ArrivingRows { schema: Arc::clone(&schema), rows: Mutex::new(Some(rows)) };
    let table = StreamingTable::try_new(schema, vec![Arc::new(partition)])?;
    let source = provider_as_source(Arc::new(CatalogTable::at_allowed_location(Arc::new(table))));
    Ok(LogicalPlanBuilder::scan(ARRIVING, source, None)?.build()?)
}

fn name_that_is_twice(schema: &SchemaRef) -> Option<&str> {
    let mut names = HashSet::new();
    schema.fields().iter().map(|field| field.name().as_str()).find(|name| !names.insert(*name))
}

/// Returns the rows with a type for each column. A data frame's column of nulls alone has none, and becomes text, as a UUID
/// does.
fn with_types(rows: LogicalPlan) -> Result<LogicalPlan> {
    let fields = rows.schema().fields();
    if fields.iter().all(|field| type_in_table(field) == *field.data_type()) {
        return Ok(rows);
    }
    let exprs: Vec<Expr> = fields
        .iter()
        .map(|field| {
            let column = Expr::Column(Column::new(Some(ARRIVING), field.name()));
            converted(column, field.data_type(), &type_in_table(field), false)
                .alias_qualified(Some(ARRIVING), field.name())
        })
        .collect();
    Ok(LogicalPlanBuilder::from(rows).project(exprs)?.build()?)
}

fn type_in_table(field: &Field) -> DataType {
    held_type_of(field, &DataType::Utf8)
}

/// Returns the rows with the columns of a table, in its order and types; `defaults` are those of columns that the rows lack.
fn in_columns<'a>(
    rows: LogicalPlan,
    columns: impl Iterator<Item = (&'a str, &'a DataType)>,
    defaults: &[(String, Expr)],
) -> Result<LogicalPlan> {
    let columns: Vec<_> = columns.collect();
    // DataFusion looks each column of a projection up among all others, in each of its passes.
    if has_columns(&rows, &columns) {
        return Ok(rows);
    }
    let names: HashSet<String> = columns.iter().map(|(column, _)| column.to_lowercase()).collect();
    let mut given: HashMap<String, &FieldRef> = HashMap::new();
    for field in rows.schema().fields() {
        let (name, folded) = (field.name(), field.name().to_lowercase());
        if !names.contains(&folded) {
            let own: Vec<&str> = columns.iter().map(|(column, _)| *column).collect();
            let near = nearest_name(name, own.iter().copied()).map(|near| format!("; did you mean `{near}`?"));
            let hint = near.unwrap_or_else(|| listed_columns(&own));
            return Err(EngineError::ColumnNotFound { column: name.clone(), hint });
        }
        if given.insert(folded, field).is_some() {
            return Err(EngineError::Plan { message: format!("the rows have more than one column `{name}`") });
        }
    }
    let defaults: HashMap<&str, &Expr> = defaults.iter().map(|(name, default)| (name.as_str(), default)).collect();
    let mut exprs = Vec::with_capacity(columns.len());
    for (column, data_type) in columns {
        let value = match given.get(&column.to_lowercase()) {
            Some(field) => {
                let source = Expr::Column(Column::new(Some(ARRIVING), field.name()));
                // What a table would hold is what is assigned: bool8 is no number.
                let held = held_type_of(field, &DataType::Null);
                let value = match held == *field.data_type() {
                    true => source,
                    false => converted(source, field.data_type(), &held, false),
                };
                assigned_value(value, &held, data_type).map_err(|error| EngineError::Plan {
                    message: format!("column `{column}`: {}", EngineError::from(error)),
                })?
            }
            None => match defaults.get(column) {
                Some(default) => (*default).clone(),
                None => lit(ScalarValue::try_from(data_type)?),
            },
        };
        exprs.push(value.alias(column));
    }
    Ok(LogicalPlanBuilder::from(rows).project(exprs)?.build()?)
}

/// Whether rows have the columns of a table already, in its order and types. Texts of another encoding are the same when they are
/// written.
fn has_columns(rows: &LogicalPlan, columns: &[(&str, &DataType)]) -> bool {
    let fields = rows.schema().fields();
    fields.len() == columns.len()
        && fields.iter().zip(columns).all(|(field, (column, data_type))| {
            let is_same = field.data_type() == *data_type || (field.data_type().is_string() && data_type.is_string());
            is_same && held_type_of(field, &DataType::Null) == *field.data_type() && same_name(field.name(), column)
        })
}

/// A stream as the one partition of a table.
struct ArrivingRows {
    schema: SchemaRef,
    rows: Mutex<Option<SendableRecordBatchStream>>,
}

impl fmt::Debug for ArrivingRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ArrivingRows").field("schema", &self.schema).finish_non_exhaustive()
    }
}

impl PartitionStream for ArrivingRows {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let rows = self.rows.lock().take();
        rows.unwrap_or_else(|| Box::pin(EmptyRecordBatchStream::new(Arc::clone(&self.schema))))
    }
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::Schema;

    use super::*;

    /// A projection of many columns takes DataFusion time in the square of their number.
    #[test]
    fn rows_that_have_the_columns_of_a_table_are_not_projected() {
        let is_projected = |sent: &[(&str, DataType)], table: &[(&str, DataType)]| {
            let fields = sent.iter().map(|(name, data_type)| Field::new(*name, data_type.clone(), true));
            let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
            let rows = arriving(Box::pin(EmptyRecordBatchStream::new(schema))).unwrap();
            let columns = table.iter().map(|(name, data_type)| (*name, data_type));
            let plan = in_columns(rows, columns, &[]).unwrap();
            let names: Vec<&str> = plan.schema().fields().iter().map(|field| field.name().as_str()).collect();
            assert!(names.iter().zip(table).all(|(name, (column, _))| same_name(name, column)), "{names:?}");
            matches!(plan, LogicalPlan::Projection(_))
        };
        let (number, text) = (("n", DataType::Int64), ("s", DataType::Utf8));
        let table = [number.clone(), text.clone()];
        assert!(!is_projected(&table, &table));
        assert!(!is_projected(&[("N", DataType::Int64), ("s", DataType::LargeUtf8)], &table));
        assert!(is_projected(&[text.clone(), number.clone()], &table));
        assert!(is_projected(&[("n", DataType::Int32), text], &table));
        assert!(is_projected(&[number], &table));
    }
}
