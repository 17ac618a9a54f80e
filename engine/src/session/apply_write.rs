//! Applies a statement that writes: files first, then one catalog transaction. A statement that fails, runs out of time or
//! is abandoned leaves nothing behind.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::StreamExt;
use querent_catalog::policy::Rights;
use querent_catalog::{
    CatalogError, ColumnDefault, Created, DraftedTable, FileFormat, ForeignKey, IfExists, NewDataFile, PageRequest,
    Principal, ResolvedTable, SortedByKey, TableAlteration, TableFilter, TableName, TableSource, UniqueKey,
};

use super::change_rows::{change_rows, change_temporary};
use super::returning::{WrittenRows, answered, noted};
use super::sorted_rows::sorted_rows;
use super::{RejectsTable, Session};
use crate::error::{EngineError, RUNNING_QUERY, Result};
use crate::limits::{Interrupt, PlanningMemory, QueryUsage, TouchedTables, batch_bytes, running_queries};
use crate::policy::{AuthorizedPlan, allowed_location};
use crate::sql::json_columns::TextColumns;
use crate::sql::write_statement::{CommentTarget, ExternalTableRequest, GraphChange, WriteStatement};
use crate::stream::ResultTypes;
use crate::tables::external::with_text_parts;
use crate::tables::{external, managed};
use crate::temporary::no_session;

/// Applies a statement and returns how many rows it wrote, which are kept in `written`. The caller has authorised it and limits its time.
pub(super) async fn apply_write(
    session: &Session,
    statement: WriteStatement,
    written: Option<&Arc<WrittenRows>>,
    interrupt: &Interrupt,
) -> Result<u64> {
    let catalog = session.engine().catalog();
    match statement {
        WriteStatement::CreateDatabase { name, if_exists } => {
            catalog.databases().create(&name, if_exists).await?;
        }
        // What the caller may not see is not there.
        WriteStatement::DropDatabase { name, if_missing_ok: true, .. } if !sees_database(session, &name) => {}
        WriteStatement::DropDatabase { name, if_missing_ok, cascade } => {
            if cascade && holds_hidden(session, &name).await? {
                // What could not be dropped by itself does not go with its database.
                return Err(EngineError::NotAllowed {
                    what: "DROP DATABASE with CASCADE".to_owned(),
                    why: format!(": `{name}` holds more than this caller sees"),
                });
            }
            catalog.databases().drop(&name, if_missing_ok, cascade).await?;
            catalog.vector_indexes().forget_dropped().await?;
        }
        WriteStatement::CreateTable {
            name,
            if_exists,
            with_rows,
            not_null,
            keys,
            foreign_keys,
            defaults,
            sort_order,
            texts,
            input,
        } => {
            let table = TableDefinition { name, if_exists, not_null, keys, foreign_keys, defaults, sort_order, texts };
            return create_table(session, table, with_rows.then_some(&input), &input, interrupt).await;
        }
        WriteStatement::CreateExternalTable(request) => create_external_table(session, request).await?,
        WriteStatement::CreateView { name, sql, default_database, if_exists, input } => {
            if if_exists == IfExists::Replace && is_hidden(session, &name).await? {
                return Err(CatalogError::AlreadyExists { name: name.table, existing: None }.into());
            }
            let schema = ResultTypes::default().result_schema(input.schema().as_arrow());
            catalog.tables().create_view(&name, &sql, &default_database, &schema, if_exists).await?;
        }
        WriteStatement::DropTables { names, kinds, if_missing_ok } => {
            let mut seen = Vec::with_capacity(names.len());
            for name in names {
                let is_absent = if_missing_ok && !sees_database(session, &name.database);
                if is_absent || is_hidden(session, &name).await? {
                    if !if_missing_ok {
                        return Err(catalog.tables().not_found(session.principal(), &name).await.into());
                    }
                    continue;
                }
                seen.push(name);
            }
            if !seen.is_empty() {
                catalog.tables().drop_all(seen, kinds, if_missing_ok).await?;
                catalog.vector_indexes().forget_dropped().await?;
            }
        }
        WriteStatement::Insert { target, overwrite, input } => {
            return insert(session, &target, overwrite, &input, written, interrupt).await;
        }
        WriteStatement::ChangeRows { target, statement, input } => {
            return change_rows(session, &target, statement, &input, written, interrupt).await;
        }
        WriteStatement::Analyze { target, columns, input } => {
            session.analyze_table(&target, &columns, &input, interrupt).await?;
        }
        WriteStatement::Optimize { target, files, input } => {
            return session.merge_files(&target, &files, &input, interrupt).await;
        }
        WriteStatement::ChangeTemporary { name, version, statement, input, .. } => {
            return change_temporary(session, (&name, version), statement, &input, written, interrupt).await;
        }
        WriteStatement::Returning { statement, .. } => {
            return Box::pin(apply_write(session, *statement, written, interrupt)).await;
        }
        WriteStatement::AlterTable { name, alterations, nulls } => {
            let renamed = alterations.iter().find_map(|alteration| match alteration {
                TableAlteration::RenameTable { to } => Some(TableName::new(&name.database, to)),
                TableAlteration::AddColumn { .. }
                | TableAlteration::DropColumn { .. }
                | TableAlteration::DropNotNull { .. }
                | TableAlteration::SetNotNull { .. }
                | TableAlteration::WidenColumn { .. }
                | TableAlteration::SetJson { .. }
                | TableAlteration::SetDefault { .. }
                | TableAlteration::SetSortOrder { .. }
                | TableAlteration::AddKey { .. }
                | TableAlteration::AddForeignKey { .. }
                | TableAlteration::RenameColumn { .. } => None,
            });
            let now = renamed.unwrap_or_else(|| name.clone());
            if let Some(nulls) = &nulls {
                let filled: Vec<&str> = alterations.iter().filter_map(TableAlteration::filled_column).collect();
                require_none(session, &filled, nulls, interrupt).await?;
            }
            catalog.tables().alter(&name, alterations).await?;
            catalog.vector_indexes().forget_dropped().await?;
            session.engine().queue_changed_table(now);
        }
        WriteStatement::CreateTemporary { name, if_exists, with_rows, not_null, input } => {
            let tables = session.temporary_tables().ok_or_else(no_session)?;
            if if_exists == IfExists::Ignore && tables.contains(&name) {
                return Ok(0);
            }
            let schema = Arc::clone(input.schema().inner());
            let schema = if with_rows { nullable(&schema, &not_null) } else { schema };
            let rows = if with_rows { session_rows(session, &input, &schema, interrupt).await? } else { Vec::new() };
            return tables.create(&name, &schema, rows, if_exists);
        }
        WriteStatement::InsertTemporary { name, overwrite, input } => {
            let tables = session.temporary_tables().ok_or_else(no_session)?;
            let schema = tables.provider(&name).map(|table| table.schema()).ok_or_else(no_session)?;
            let rows = session_rows(session, &input, &schema, interrupt).await?;
            if let Some(written) = written {
                rows.iter().try_for_each(|batch| written.keep(batch))?;
                written.make_answer().await?;
            }
            return tables.insert(&name, rows, overwrite);
        }
        WriteStatement::DropTemporary { name } => {
            session.temporary_tables().ok_or_else(no_session)?.drop_table(&name);
        }
        WriteStatement::CopyTo { target, input } => return session.copy_to(target, &input, interrupt).await,
        WriteStatement::Session(change) => session.apply_change(change)?,
        WriteStatement::ChangePolicy { edit, text } => session.change_policy(&text, *edit).await?,
        WriteStatement::ChangeGraph { database, change } => change_graph(session, &database, change).await?,
        WriteStatement::CreateVectorIndex(request) => {
            session.create_vector_index(request, interrupt).await?;
            session.engine().forget_plans();
        }
        WriteStatement::DropVectorIndex { found: Some((id, _)), .. } => {
            catalog.vector_indexes().drop(id).await?;
            session.engine().forget_plans();
        }
        WriteStatement::DropVectorIndex { found: None, missing, .. } => {
            if let Some(id) = missing {
                return Err(CatalogError::ObjectNotFound { what: "index", id }.into());
            }
        }
        WriteStatement::Kill { id } => {
            let running = running_queries(catalog.data_dir(), session.principal());
            let query = running.iter().find(|query| query.id() == id);
            let query =
                query.ok_or_else(|| CatalogError::ObjectNotFound { what: RUNNING_QUERY, id: id.to_string() })?;
            query.cancel(None);
        }
        WriteStatement::Comment { target, comment, if_missing_ok } => {
            let comment = comment.as_deref();
            let hidden = match &target {
                CommentTarget::Table(name) | CommentTarget::Column(name, _) | CommentTarget::Several(name, _) => {
                    is_hidden(session, name).await?
                }
                CommentTarget::Database(_) => false,
            };
            let commented = match &target {
                CommentTarget::Table(name) | CommentTarget::Column(name, _) | CommentTarget::Several(name, _)
                    if hidden =>
                {
                    Err(catalog.tables().not_found(session.principal(), name).await)
                }
                CommentTarget::Database(name) => catalog.databases().set_comment(name, comment).await,
                CommentTarget::Table(name) => catalog.tables().set_comment(name, None, comment).await,
                CommentTarget::Column(name, column) => catalog.tables().set_comment(name, Some(column), comment).await,
                CommentTarget::Several(name, comments) => catalog.tables().set_comments(name, comments.clone()).await,
            };
            match commented {
                Err(CatalogError::TableNotFound { .. } | CatalogError::DatabaseNotFound { .. }) if if_missing_ok => {}
                other => other?,
            }
        }
    }
    Ok(0)
}

async fn change_graph(session: &Session, database: &str, change: GraphChange) -> Result<()> {
    let catalog = session.engine().catalog();
    let (models, who) = (catalog.graph_models(), session.principal());
    match change {
        GraphChange::Save { name, definition } => models.save(who, database, &name, &definition).await?,
        GraphChange::AddSnapshot { model, name, definition, tables } => {
            let names: Vec<TableName> = tables.iter().map(|table| table.draft.name.clone()).collect();
            let files: Vec<NewDataFile> = tables.iter().flat_map(|table| table.files.clone()).collect();
            let (catalog, who) = (Arc::clone(catalog), who.clone());
            let add = async move {
                catalog.graph_models().add_snapshot(&who, &model, &name, &definition, tables).await?;
                Ok(true)
            };
            session.engine().commit_files(files, add).await?;
            names.into_iter().for_each(|name| session.engine().queue_changed_table(name));
        }
        GraphChange::Drop { name, if_missing_ok } => models.drop(database, &name, if_missing_ok).await?,
        GraphChange::DropSnapshot { model, name } => models.drop_snapshot(&model, &name).await?,
    }
    Ok(())
}

/// What `CREATE TABLE` says besides its columns and rows.
struct TableDefinition {
    name: TableName,
    if_exists: IfExists,
    /// Columns that are declared NOT NULL.
    not_null: Vec<String>,
    keys: Vec<UniqueKey>,
    foreign_keys: Vec<ForeignKey>,
    defaults: Vec<(String, ColumnDefault)>,
    sort_order: Vec<SortedByKey>,
    /// Columns that hold JSON and UUIDs.
    texts: TextColumns,
}

impl TableDefinition {
    fn is_not_null(&self, column: &str) -> bool {
        let mut primary = self.keys.iter().filter(|key| key.is_primary).flat_map(|key| &key.columns);
        self.not_null.iter().any(|name| name == column) || primary.any(|name| name == column)
    }

    /// Returns the schema of the table whose rows are those of a query, or which begins without rows. That a query's result
    /// has no nulls now does not mean that the table never will.
    fn schema(&self, input: &Schema, with_rows: bool) -> Schema {
        let fields = input.fields().iter().map(|field| {
            let nullable = (with_rows || field.is_nullable()) && !self.is_not_null(field.name());
            table_column(field).with_nullable(nullable)
        });
        Schema::new(fields.collect::<Vec<_>>())
    }
}

async fn create_table(
    session: &Session,
    table: TableDefinition,
    rows: Option<&Arc<LogicalPlan>>,
    input: &LogicalPlan,
    interrupt: &Interrupt,
) -> Result<u64> {
    let (name, if_exists) = (table.name.clone(), table.if_exists);
    // Checked before the query runs, so that it does not run in vain; the transaction checks again.
    if let Some(existing) = existing(session, &name).await? {
        match if_exists {
            IfExists::Replace => {}
            IfExists::Ignore => return Ok(0),
            IfExists::Error => return Err(already_exists(&name, &existing)),
        }
    }
    let DraftedTable { draft, files } = draft_table(session, table, rows, input, interrupt).await?;
    let catalog = Arc::clone(session.engine().catalog());
    let committed = files.clone();
    let written = session
        .engine()
        .commit_files(files, async move {
            match catalog.tables().create(draft, committed, if_exists).await? {
                Created::New(_) => Ok(true),
                Created::Existing => Ok(false),
            }
        })
        .await?;
    if if_exists == IfExists::Replace {
        session.engine().catalog().vector_indexes().forget_dropped().await?;
    }
    if rows.is_some() && written.is_some() {
        session.engine().queue_changed_table(name);
    }
    Ok(written.unwrap_or_default())
}

/// Writes the rows of an authorised `CREATE TABLE`. The table is created later, with others; where it is not, its files are the
/// caller's to remove.
pub(super) async fn drafted_table(
    session: &Session,
    plan: AuthorizedPlan,
    interrupt: &Interrupt,
) -> Result<DraftedTable> {
    let statement = WriteStatement::from_plan(&plan.into_plan()).cloned();
    let Some(WriteStatement::CreateTable {
        name,
        if_exists,
        with_rows,
        not_null,
        keys,
        foreign_keys,
        defaults,
        sort_order,
        texts,
        input,
    }) = statement
    else {
        return Err(EngineError::Internal("what is drafted is a table".to_owned()));
    };
    if let Some(usage) = QueryUsage::current() {
        usage.touch(TouchedTables { written: Some(name.to_string()), ..TouchedTables::default() });
    }
    let table = TableDefinition { name, if_exists, not_null, keys, foreign_keys, defaults, sort_order, texts };
    draft_table(session, table, with_rows.then_some(&input), &input, interrupt).await
}

async fn draft_table(
    session: &Session,
    table: TableDefinition,
    rows: Option<&Arc<LogicalPlan>>,
    input: &LogicalPlan,
    interrupt: &Interrupt,
) -> Result<DraftedTable> {
    let schema = table.schema(&ResultTypes::default().result_schema(input.schema().as_arrow()), rows.is_some());
    let TableDefinition { name, if_exists: _, not_null: _, keys, foreign_keys, defaults, sort_order, texts } = table;
    let mut draft = session.engine().catalog().tables().draft(&name, &schema, None).await?;
    draft.keys = keys;
    draft.foreign_keys = foreign_keys;
    draft.defaults = defaults;
    draft.sort_order = sort_order;
    for column in &mut draft.columns {
        column.is_json = texts.json.contains(&column.name);
    }
    draft.declare_uuids(&texts.uuids);
    let files = match rows {
        Some(query) => {
            let query = sorted_rows(query, &draft.sort_order, &draft.columns, 0);
            let stream = not_null(session.execute_query(&query, interrupt).await?, &draft.write_schema);
            let files = session.engine().table_files();
            managed::write_files(files, &draft.location, Arc::clone(&draft.write_schema), stream).await?
        }
        None => Vec::new(),
    };
    Ok(DraftedTable { draft, files })
}

/// Errors: `invalid_value` where the query has a row, in which one of the columns is null.
async fn require_none(session: &Session, columns: &[&str], nulls: &LogicalPlan, interrupt: &Interrupt) -> Result<()> {
    let mut rows = session.execute_query(nulls, interrupt).await?;
    while let Some(batch) = rows.next().await {
        if batch?.num_rows() > 0 {
            let columns = columns.join("` or `");
            let message = format!("column `{columns}` is null in rows that are there; give them a value first");
            return Err(EngineError::InvalidValue { message });
        }
    }
    Ok(())
}

/// Returns a query's column as that of a table: what only nulls are known of is text, as in rows that are imported or that a
/// client sends. A column of no type could hold nothing else.
fn table_column(field: &Field) -> Field {
    let data_type = match field.data_type() {
        DataType::Null => DataType::Utf8,
        nested if nested.is_nested() => with_text_parts(nested, &mut |part| part.data_type().is_null()),
        known => known.clone(),
    };
    field.clone().with_data_type(data_type)
}

/// Returns the schema of a table of a query's rows: that they have no nulls now does not mean that it never will, unless
/// the column is declared so.
fn nullable(schema: &Schema, not_null: &[String]) -> SchemaRef {
    let fields = schema.fields().iter();
    let nullable = fields.map(|field| table_column(field).with_nullable(!not_null.contains(field.name())));
    Arc::new(Schema::new(nullable.collect::<Vec<_>>()))
}

/// Returns the rows of a query for a table of the session, in the table's types, within the query's memory.
async fn session_rows(
    session: &Session,
    input: &LogicalPlan,
    schema: &SchemaRef,
    interrupt: &Interrupt,
) -> Result<Vec<RecordBatch>> {
    let memory = session.engine().runtime().query_memory(session.limits());
    let kept = PlanningMemory::in_pool(Arc::clone(&memory));
    let mut rows = not_null(session.execute_query_within(input, &memory, interrupt).await?, schema);
    let mut batches = Vec::new();
    while let Some(batch) = rows.next().await {
        let batch = managed::cast_batch(&batch?, schema)?;
        kept.keep(batch_bytes(&batch))?;
        batches.push(batch);
    }
    Ok(batches)
}

async fn insert(
    session: &Session,
    target: &ResolvedTable,
    overwrite: bool,
    input: &LogicalPlan,
    written: Option<&Arc<WrittenRows>>,
    interrupt: &Interrupt,
) -> Result<u64> {
    let table = match &target.source {
        TableSource::Managed(table) => table,
        TableSource::External(_) => {
            return Err(no_insert(target, ": it is an external table; its files belong to somebody else"));
        }
        TableSource::View { .. } => {
            return Err(no_insert(target, ": it is a view; insert into the tables that it reads"));
        }
    };
    let catalog = session.engine().catalog();
    let write_schema = catalog.tables().write_schema(table).await?;
    let input = sorted_rows(input, &catalog.tables().insert_order(table).await?, &target.info.columns, 0);
    let rows = not_null(session.execute_query(&input, interrupt).await?, &write_schema);
    let stream = answered(noted(rows, &write_schema, written), written);
    let files = managed::write_files(session.engine().table_files(), &table.location, write_schema, stream).await?;
    if files.is_empty() && !overwrite {
        return Ok(0);
    }
    let (catalog, table, committed) = (Arc::clone(catalog), table.clone(), files.clone());
    let written = session
        .engine()
        .commit_files(files, async move {
            match overwrite {
                true => catalog.tables().replace_files(&table, committed).await?,
                false => catalog.tables().append(&table, committed).await?,
            };
            Ok(true)
        })
        .await?;
    session.engine().queue_changed_table(target.info.name.clone());
    Ok(written.unwrap_or_default())
}

/// Whether a database exists for the caller, if it exists.
fn sees_database(session: &Session, database: &str) -> bool {
    let policies = session.engine().catalog().policies().current();
    Rights::new(session.principal(), &policies).may_see(database)
}

async fn create_external_table(session: &Session, request: ExternalTableRequest) -> Result<()> {
    let format = match request.format.to_uppercase().as_str() {
        "PARQUET" => FileFormat::Parquet,
        "CSV" => FileFormat::Csv,
        "JSON" | "NDJSON" => FileFormat::Ndjson,
        "ARROW" | "IPC" | "FEATHER" => FileFormat::Arrow,
        "LANCE" => FileFormat::Lance,
        "XLSX" | "EXCEL" | "XLS" | "ODS" => FileFormat::Xlsx,
        other => {
            return Err(EngineError::Unsupported {
                what: format!("STORED AS {other}"),
                hint: "external tables are PARQUET, CSV, NDJSON, ARROW, XLSX or LANCE".into(),
            });
        }
    };
    let engine = session.engine();
    let database = &request.name.database;
    // Looked for before the location is, as it is where the caller may not see it.
    if engine.catalog().databases().get(session.principal(), database).await?.is_none() {
        return Err(CatalogError::DatabaseNotFound { database: database.clone(), nearest: None }.into());
    }
    let location = allowed_location(&request.location, session.principal(), engine).await?;
    if let Some(existing) = existing(session, &request.name).await? {
        match request.if_exists {
            IfExists::Replace => {}
            IfExists::Ignore => return Ok(()),
            IfExists::Error => return Err(already_exists(&request.name, &existing)),
        }
    }
    let options: BTreeMap<String, String> = request.options;
    let state = engine.planning_state();
    let (mut table, schema) = external::infer(
        &*state,
        &location,
        Some(format),
        &options,
        request.columns.as_deref(),
        &request.partition_columns,
    )
    .await?;
    if request.columns.is_some() {
        table.options.insert(external::DECLARED_COLUMNS.to_owned(), "true".to_owned());
    }
    let files = external::locate(&*state, &table.location, table.format).await?;
    let rejects = external::rejects_of(&table, &schema, &files).await?;
    let rejects_table =
        RejectsTable::find(engine, session.principal(), &request.name, &options, &rejects, false).await?;
    engine.catalog().tables().create_external(&request.name, table, &schema, request.if_exists).await?;
    rejects_table.write(engine).await?;
    engine.queue_changed_table(request.name);
    Ok(())
}

fn no_insert(target: &ResolvedTable, why: &str) -> EngineError {
    EngineError::NotAllowed { what: format!("inserting into `{}`", target.info.name), why: why.to_owned() }
}

async fn existing(session: &Session, name: &TableName) -> Result<Option<ResolvedTable>> {
    let resolved = session.engine().catalog().tables().resolve(session.principal(), std::slice::from_ref(name)).await?;
    Ok(resolved.into_iter().next().flatten())
}

/// Returns whether there is something of that name that the caller may not know: a view over what is hidden from it.
async fn is_hidden(session: &Session, name: &TableName) -> Result<bool> {
    if existing(session, name).await?.is_some() {
        return Ok(false);
    }
    let all = Principal::local_admin();
    let resolved = session.engine().catalog().tables().resolve(&all, std::slice::from_ref(name)).await?;
    Ok(resolved.iter().any(Option::is_some))
}

/// Returns whether a database holds something that the caller may not know.
async fn holds_hidden(session: &Session, database: &str) -> Result<bool> {
    let held = count_objects(session, &Principal::local_admin(), database).await?;
    Ok(held > count_objects(session, session.principal(), database).await?)
}

async fn count_objects(session: &Session, who: &Principal, database: &str) -> Result<usize> {
    const PAGE: usize = 10_000;
    let filter = TableFilter { database: Some(database.to_owned()), ..TableFilter::default() };
    let mut request = PageRequest::first(PAGE);
    let mut count = 0;
    loop {
        let page = session.engine().catalog().tables().list(who, &filter, request).await?;
        count += page.items.len();
        let Some(next) = page.next else { return Ok(count) };
        request = PageRequest { limit: PAGE, after: Some(next) };
    }
}

fn already_exists(name: &TableName, existing: &ResolvedTable) -> EngineError {
    let found = &existing.info.name;
    let existing = (found.table != name.table).then(|| found.table.clone());
    CatalogError::AlreadyExists { name: name.table.clone(), existing }.into()
}

/// Returns the stream, which fails where a column that may not hold nulls does.
pub(super) fn not_null(input: SendableRecordBatchStream, target: &SchemaRef) -> SendableRecordBatchStream {
    let required: Vec<(usize, String)> = target
        .fields()
        .iter()
        .enumerate()
        .filter(|(_, field)| !field.is_nullable())
        .map(|(index, field)| (index, field.name().clone()))
        .collect();
    if required.is_empty() {
        return input;
    }
    let schema = input.schema();
    let checked = input.map(move |batch| {
        let batch: RecordBatch = batch?;
        for (index, name) in &required {
            if batch.columns().get(*index).is_some_and(|column| column.logical_null_count() > 0) {
                let message = format!("column `{name}` may not be null");
                return Err(EngineError::InvalidValue { message }.into());
            }
        }
        Ok(batch)
    });
    Box::pin(RecordBatchStreamAdapter::new(schema, checked))
}
