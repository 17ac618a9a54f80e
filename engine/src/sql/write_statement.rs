//! A statement that writes, as one plan node of ours. DataFusion's own DDL and DML nodes never execute
//! here: they are turned into a [`WriteStatement`] with full names, or refused.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::path::PathBuf;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::common::{DFSchema, DFSchemaRef};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, Extension, LogicalPlan, UserDefinedLogicalNodeCore};
use querent_catalog::policy::PolicyEdit;
use querent_catalog::{
    ColumnDefault, DraftedTable, ForeignKey, GraphModel, IfExists, ResolvedTable, SortedByKey, TableAlteration,
    TableKind, TableName, UniqueKey, VectorMetric,
};

use super::json_columns::TextColumns;
use super::session_variables::SessionChange;

/// What a statement writes to the catalog, and to the files of its tables.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum WriteStatement {
    /// `CREATE DATABASE`, `CREATE SCHEMA`.
    CreateDatabase { name: String, if_exists: IfExists },
    /// `DROP DATABASE`, `DROP SCHEMA`.
    DropDatabase { name: String, if_missing_ok: bool, cascade: bool },
    /// `CREATE TABLE`, with rows (`AS SELECT`) or without.
    CreateTable {
        name: TableName,
        if_exists: IfExists,
        with_rows: bool,
        /// Columns that are declared NOT NULL.
        not_null: Vec<String>,
        keys: Vec<UniqueKey>,
        foreign_keys: Vec<ForeignKey>,
        /// Of columns, by their names.
        defaults: Vec<(String, ColumnDefault)>,
        /// The order in which its rows are written.
        sort_order: Vec<SortedByKey>,
        /// Columns that hold JSON and UUIDs.
        texts: TextColumns,
        input: Arc<LogicalPlan>,
    },
    /// `CREATE EXTERNAL TABLE`.
    CreateExternalTable(ExternalTableRequest),
    /// `CREATE VIEW`; `sql` is its query, `input` the query's plan.
    CreateView { name: TableName, sql: String, default_database: String, if_exists: IfExists, input: Arc<LogicalPlan> },
    /// `DROP TABLE`, `DROP VIEW`, of one database.
    DropTables { names: Vec<TableName>, kinds: &'static [TableKind], if_missing_ok: bool },
    /// `INSERT INTO`, `INSERT OVERWRITE`; `input` has the target's columns in the target's order.
    Insert { target: Box<ResolvedTable>, overwrite: bool, input: Arc<LogicalPlan> },
    /// `DELETE`, `UPDATE`, `MERGE`: `input` has the rows that change, as [`RowStatement`] says.
    ChangeRows { target: Box<ResolvedTable>, statement: RowStatement, input: Arc<LogicalPlan> },
    /// `ANALYZE`: `input` gives one row, the number of rows and then the distinct values of each of `columns` (their ids).
    Analyze { target: Box<ResolvedTable>, columns: Vec<i64>, input: Arc<LogicalPlan> },
    /// `OPTIMIZE`: `input` has the rows of `files` (their ids).
    Optimize { target: Box<ResolvedTable>, files: Vec<i64>, input: Arc<LogicalPlan> },
    /// `ALTER TABLE`.
    AlterTable {
        name: TableName,
        /// One after the other, in one change.
        alterations: Vec<TableAlteration>,
        /// The rows that stand against them.
        nulls: Option<Arc<LogicalPlan>>,
    },
    /// `CREATE TEMPORARY TABLE`, with rows or without: a table of the session.
    CreateTemporary {
        name: String,
        if_exists: IfExists,
        with_rows: bool,
        not_null: Vec<String>,
        input: Arc<LogicalPlan>,
    },
    /// As `Insert`, into a table of the session.
    InsertTemporary { name: String, overwrite: bool, input: Arc<LogicalPlan> },
    /// As `ChangeRows`, of a table of the session, whose columns are of the types, while the session's tables are of a version.
    ChangeTemporary {
        name: String,
        version: u64,
        columns: Vec<DataType>,
        statement: RowStatement,
        input: Arc<LogicalPlan>,
    },
    /// A statement that writes rows, and answers with a query over them; they are of the schema.
    Returning { statement: Box<WriteStatement>, schema: SchemaRef, returning: Arc<LogicalPlan> },
    /// `DROP TABLE`, of a table of the session.
    DropTemporary { name: String },
    /// `SET`, `USE`, `RESET`, `PREPARE`, `DEALLOCATE`: what the session's later statements find.
    Session(SessionChange),
    /// `COPY query TO 'file'`.
    CopyTo { target: CopyTarget, input: Arc<LogicalPlan> },
    /// `COMMENT ON`.
    Comment { target: CommentTarget, comment: Option<String>, if_missing_ok: bool },
    /// KQL's commands for graph models and their snapshots.
    ChangeGraph { database: String, change: GraphChange },
    /// `CREATE INDEX ... USING vector`.
    CreateVectorIndex(VectorIndexRequest),
    /// `DROP INDEX`, of the index with an id and its table; `missing` is its name where there has to be one and is none.
    DropVectorIndex { database: String, found: Option<(i64, TableName)>, missing: Option<String> },
    /// `KILL`, of a running query.
    Kill { id: u64 },
    /// `GRANT`, `REVOKE`, `CREATE` and `DROP` of a `ROW POLICY` or a `MASK`; `text` is kept with the change.
    ChangePolicy { edit: Box<PolicyEdit>, text: String },
}

/// The column of RETURNING that says what a MERGE did with a row: `INSERT`, `UPDATE` or `DELETE`.
pub(crate) const MERGE_ACTION: &str = "merge_action";

/// A statement that changes rows. Its query has the row's file and its position there first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RowStatement {
    /// Nothing else.
    Delete,
    /// Then a value for each column.
    Update,
    /// Then whether a row is written, and a value for each column; a row that is new has no file.
    Merge,
}

impl RowStatement {
    /// Returns its name in messages.
    pub(crate) fn label(self) -> &'static str {
        match self {
            RowStatement::Delete => "DELETE",
            RowStatement::Update => "UPDATE",
            RowStatement::Merge => "MERGE",
        }
    }
}

/// What `CREATE EXTERNAL TABLE` asks for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ExternalTableRequest {
    pub(crate) name: TableName,
    pub(crate) location: String,
    /// As written after `STORED AS`.
    pub(crate) format: String,
    /// `None`: to be inferred.
    pub(crate) columns: Option<SchemaRef>,
    pub(crate) partition_columns: Vec<String>,
    pub(crate) options: BTreeMap<String, String>,
    pub(crate) if_exists: IfExists,
}

/// What `CREATE INDEX ... USING vector` asks for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct VectorIndexRequest {
    pub(crate) name: String,
    pub(crate) table: TableName,
    pub(crate) column: String,
    pub(crate) metric: VectorMetric,
    /// How many partitions a search reads.
    pub(crate) probes: Option<usize>,
    pub(crate) if_not_exists: bool,
}

/// Which options a COPY to a file has.
pub(crate) const COPY_OPTIONS: &str =
    "there are FORMAT; DELIMITER, HEADER and NULL for csv; ARRAY for json; COMPRESSION for csv, json and parquet";

/// The file of a COPY.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CopyTarget {
    pub(crate) path: PathBuf,
    pub(crate) format: CopyFormat,
    /// Whether CSV or JSON is compressed with gzip.
    pub(crate) is_gzip: bool,
    pub(crate) delimiter: u8,
    pub(crate) has_header: bool,
    /// What stands for null in CSV.
    pub(crate) null: String,
    /// Whether JSON is one array, instead of a record a line.
    pub(crate) is_array: bool,
    pub(crate) compression: String,
}

/// The formats that COPY writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CopyFormat {
    Csv,
    Json,
    Parquet,
    Arrow,
}

/// What is done with a graph model or a snapshot of it. The rows of a snapshot's tables are written before.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum GraphChange {
    /// `.create-or-alter graph_model`.
    Save { name: String, definition: String },
    /// `.drop graph_model`.
    Drop { name: String, if_missing_ok: bool },
    /// `.make graph_snapshot`.
    AddSnapshot { model: Box<GraphModel>, name: String, definition: String, tables: Vec<DraftedTable> },
    /// `.drop graph_snapshot`.
    DropSnapshot { model: Box<GraphModel>, name: String },
}

impl GraphChange {
    fn label(&self) -> &'static str {
        match self {
            GraphChange::Save { .. } => ".create-or-alter graph_model",
            GraphChange::Drop { .. } => ".drop graph_model",
            GraphChange::AddSnapshot { .. } => ".make graph_snapshot",
            GraphChange::DropSnapshot { .. } => ".drop graph_snapshot",
        }
    }
}

/// What a comment is about.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum CommentTarget {
    Database(String),
    Table(TableName),
    Column(TableName, String),
    /// A table and columns of it at once: of each the column, where it is one's, and the comment.
    Several(TableName, Vec<(Option<String>, Option<String>)>),
}

impl WriteStatement {
    /// Returns the plan of this statement: one node, whose inputs are the queries that it reads from.
    pub(crate) fn into_plan(self) -> LogicalPlan {
        let schema = if self.counts_rows() { count_schema() } else { Arc::new(Schema::empty()) };
        // A schema of one named field, or of none, is always valid.
        let schema = DFSchema::try_from(schema).map(Arc::new).unwrap_or_else(|_| Arc::new(DFSchema::empty()));
        let schema = match &self {
            WriteStatement::Returning { returning, .. } => Arc::clone(returning.schema()),
            _ => schema,
        };
        LogicalPlan::Extension(Extension { node: Arc::new(WriteNode { statement: self, schema }) })
    }

    /// Returns the statement that writes of which `plan` is the plan, if it is one.
    pub(crate) fn from_plan(plan: &LogicalPlan) -> Option<&WriteStatement> {
        match plan {
            LogicalPlan::Extension(extension) => {
                extension.node.as_any().downcast_ref::<WriteNode>().map(|node| &node.statement)
            }
            _ => None,
        }
    }

    /// Returns whether the statement answers with the number of rows that it wrote.
    pub(crate) fn counts_rows(&self) -> bool {
        matches!(
            self,
            WriteStatement::Insert { .. }
                | WriteStatement::ChangeRows { .. }
                | WriteStatement::Optimize { .. }
                | WriteStatement::InsertTemporary { .. }
                | WriteStatement::ChangeTemporary { .. }
                | WriteStatement::CopyTo { .. }
                | WriteStatement::CreateTable { with_rows: true, .. }
                | WriteStatement::CreateTemporary { with_rows: true, .. }
        )
    }

    /// Returns the statement's name in messages.
    pub(crate) fn label(&self) -> &'static str {
        match self {
            WriteStatement::CreateDatabase { .. } => "CREATE DATABASE",
            WriteStatement::DropDatabase { .. } => "DROP DATABASE",
            WriteStatement::CreateTable { with_rows: false, .. } => "CREATE TABLE",
            WriteStatement::CreateTable { with_rows: true, .. } => "CREATE TABLE AS",
            WriteStatement::CreateExternalTable(_) => "CREATE EXTERNAL TABLE",
            WriteStatement::CreateView { .. } => "CREATE VIEW",
            WriteStatement::DropTables { kinds, .. } if kinds.contains(&TableKind::View) => "DROP VIEW",
            WriteStatement::DropTables { .. } => "DROP TABLE",
            WriteStatement::Insert { overwrite: false, .. }
            | WriteStatement::InsertTemporary { overwrite: false, .. } => "INSERT",
            WriteStatement::Insert { .. } | WriteStatement::InsertTemporary { .. } => "INSERT OVERWRITE",
            WriteStatement::ChangeRows { statement, .. } | WriteStatement::ChangeTemporary { statement, .. } => {
                statement.label()
            }
            WriteStatement::Returning { statement, .. } => statement.label(),
            WriteStatement::AlterTable { .. } => "ALTER TABLE",
            WriteStatement::Analyze { .. } => "ANALYZE",
            WriteStatement::Optimize { .. } => "OPTIMIZE",
            WriteStatement::CreateTemporary { .. } => "CREATE TEMPORARY TABLE",
            WriteStatement::DropTemporary { .. } => "DROP TABLE",
            WriteStatement::Session(change) => change.label(),
            WriteStatement::CopyTo { .. } => "COPY TO",
            WriteStatement::Comment { .. } => "COMMENT ON",
            WriteStatement::ChangeGraph { change, .. } => change.label(),
            WriteStatement::CreateVectorIndex(_) => "CREATE INDEX",
            WriteStatement::DropVectorIndex { .. } => "DROP INDEX",
            WriteStatement::Kill { .. } => "KILL",
            WriteStatement::ChangePolicy { edit, .. } => match edit.as_ref() {
                PolicyEdit::Grant { .. } => "GRANT",
                PolicyEdit::Revoke { .. } => "REVOKE",
                PolicyEdit::CreateRowPolicy { .. } => "CREATE ROW POLICY",
                PolicyEdit::DropRowPolicy { .. } => "DROP ROW POLICY",
                PolicyEdit::CreateMask { .. } => "CREATE MASK",
                PolicyEdit::DropMask { .. } => "DROP MASK",
            },
        }
    }

    /// Returns the database that the statement writes to; `None` for one that only changes tables of the session, or
    /// ends one of the caller's queries.
    pub(crate) fn database(&self) -> Option<&str> {
        Some(match self {
            WriteStatement::CreateDatabase { name, .. } | WriteStatement::DropDatabase { name, .. } => name,
            WriteStatement::ChangeGraph { database, .. } | WriteStatement::DropVectorIndex { database, .. } => database,
            WriteStatement::CreateVectorIndex(request) => &request.table.database,
            WriteStatement::CreateTable { name, .. }
            | WriteStatement::CreateView { name, .. }
            | WriteStatement::AlterTable { name, .. } => &name.database,
            WriteStatement::DropTables { names, .. } => return names.first().map(|name| name.database.as_str()),
            WriteStatement::CreateExternalTable(request) => &request.name.database,
            WriteStatement::Insert { target, .. }
            | WriteStatement::ChangeRows { target, .. }
            | WriteStatement::Optimize { target, .. }
            | WriteStatement::Analyze { target, .. } => &target.info.name.database,
            WriteStatement::Returning { statement, .. } => return statement.database(),
            WriteStatement::Comment { target, .. } => match target {
                CommentTarget::Database(name) => name,
                CommentTarget::Table(name) | CommentTarget::Column(name, _) | CommentTarget::Several(name, _) => {
                    &name.database
                }
            },
            WriteStatement::CreateTemporary { .. }
            | WriteStatement::CopyTo { .. }
            | WriteStatement::InsertTemporary { .. }
            | WriteStatement::ChangeTemporary { .. }
            | WriteStatement::Session(_)
            | WriteStatement::DropTemporary { .. }
            | WriteStatement::ChangePolicy { .. }
            | WriteStatement::Kill { .. } => return None,
        })
    }

    /// Returns what the statement writes, as the audit log says it.
    pub(crate) fn target(&self) -> Option<String> {
        match self {
            WriteStatement::CreateTable { name, .. }
            | WriteStatement::CreateView { name, .. }
            | WriteStatement::AlterTable { name, .. } => Some(name.to_string()),
            WriteStatement::DropTables { names, .. } => {
                Some(names.iter().map(TableName::to_string).collect::<Vec<_>>().join(", "))
            }
            WriteStatement::CreateExternalTable(request) => Some(request.name.to_string()),
            WriteStatement::Insert { target, .. }
            | WriteStatement::ChangeRows { target, .. }
            | WriteStatement::Optimize { target, .. }
            | WriteStatement::Analyze { target, .. } => Some(target.info.name.to_string()),
            WriteStatement::Returning { statement, .. } => statement.target(),
            WriteStatement::CreateVectorIndex(request) => Some(request.table.to_string()),
            WriteStatement::DropVectorIndex { found: Some((_, table)), .. } => Some(table.to_string()),
            WriteStatement::ChangePolicy { .. } => Some("the policy".to_owned()),
            WriteStatement::CopyTo { target, .. } => Some(target.path.display().to_string()),
            other => other.database().map(str::to_owned),
        }
    }

    /// Returns the values that an UPDATE or a MERGE gives to the columns of its table, each with its column's type.
    pub(crate) fn assigned_values(&self) -> Vec<(&Expr, &DataType)> {
        let (columns, statement, input): (Vec<&DataType>, _, _) = match self {
            WriteStatement::ChangeRows { target, statement, input } => {
                (target.info.columns.iter().map(|column| &column.data_type).collect(), statement, input)
            }
            WriteStatement::ChangeTemporary { columns, statement, input, .. } => {
                (columns.iter().collect(), statement, input)
            }
            WriteStatement::Returning { statement, .. } => return statement.assigned_values(),
            _ => return Vec::new(),
        };
        let before_values = match statement {
            RowStatement::Delete => return Vec::new(),
            RowStatement::Update => 2,
            RowStatement::Merge => 3,
        };
        let LogicalPlan::Projection(projection) = input.as_ref() else { return Vec::new() };
        let values = projection.expr.iter().skip(before_values);
        values.zip(columns).collect()
    }

    /// Returns the query that the statement reads from.
    pub(crate) fn input(&self) -> Option<&LogicalPlan> {
        match self {
            WriteStatement::CreateTable { input, .. }
            | WriteStatement::CreateView { input, .. }
            | WriteStatement::CreateTemporary { input, .. }
            | WriteStatement::InsertTemporary { input, .. }
            | WriteStatement::CopyTo { input, .. }
            | WriteStatement::ChangeRows { input, .. }
            | WriteStatement::Analyze { input, .. }
            | WriteStatement::Optimize { input, .. }
            | WriteStatement::ChangeTemporary { input, .. }
            | WriteStatement::Insert { input, .. } => Some(input),
            WriteStatement::Returning { statement, .. } => statement.input(),
            WriteStatement::AlterTable { nulls, .. } => nulls.as_deref(),
            WriteStatement::CreateDatabase { .. }
            | WriteStatement::DropDatabase { .. }
            | WriteStatement::CreateExternalTable(_)
            | WriteStatement::DropTables { .. }
            | WriteStatement::DropTemporary { .. }
            | WriteStatement::Session(_)
            | WriteStatement::Comment { .. }
            | WriteStatement::ChangeGraph { .. }
            | WriteStatement::CreateVectorIndex(_)
            | WriteStatement::DropVectorIndex { .. }
            | WriteStatement::ChangePolicy { .. }
            | WriteStatement::Kill { .. } => None,
        }
    }

    /// Returns the query over the rows that the statement writes, with which it answers.
    pub(crate) fn returning(&self) -> Option<&LogicalPlan> {
        match self {
            WriteStatement::Returning { returning, .. } => Some(returning),
            _ => None,
        }
    }

    /// Returns the statement with another query in place of the one that it reads from.
    pub(crate) fn with_input(&self, replacement: LogicalPlan) -> Self {
        let mut changed = self.clone();
        match &mut changed {
            WriteStatement::CreateTable { input, .. }
            | WriteStatement::CreateView { input, .. }
            | WriteStatement::CreateTemporary { input, .. }
            | WriteStatement::InsertTemporary { input, .. }
            | WriteStatement::CopyTo { input, .. }
            | WriteStatement::ChangeRows { input, .. }
            | WriteStatement::Analyze { input, .. }
            | WriteStatement::Optimize { input, .. }
            | WriteStatement::ChangeTemporary { input, .. }
            | WriteStatement::Insert { input, .. } => {
                *input = Arc::new(replacement);
            }
            WriteStatement::AlterTable { nulls, .. } => *nulls = Some(Arc::new(replacement)),
            WriteStatement::Returning { statement, .. } => **statement = statement.with_input(replacement),
            WriteStatement::CreateDatabase { .. }
            | WriteStatement::DropDatabase { .. }
            | WriteStatement::CreateExternalTable(_)
            | WriteStatement::DropTables { .. }
            | WriteStatement::DropTemporary { .. }
            | WriteStatement::Session(_)
            | WriteStatement::Comment { .. }
            | WriteStatement::ChangeGraph { .. }
            | WriteStatement::CreateVectorIndex(_)
            | WriteStatement::DropVectorIndex { .. }
            | WriteStatement::ChangePolicy { .. }
            | WriteStatement::Kill { .. } => {}
        }
        changed
    }
}

/// Returns the schema of the answer to a statement that writes rows.
pub(crate) fn count_schema() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("count", DataType::UInt64, false)]))
}

/// A [`WriteStatement`] as DataFusion's extension node. It has no physical plan: `session::apply_write` applies it.
#[derive(Debug, Clone, PartialEq)]
struct WriteNode {
    statement: WriteStatement,
    schema: DFSchemaRef,
}

impl Eq for WriteNode {}

impl PartialOrd for WriteNode {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        (self == other).then_some(Ordering::Equal)
    }
}

impl Hash for WriteNode {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.statement.label().hash(state);
        self.statement.database().hash(state);
        self.statement.input().hash(state);
    }
}

impl UserDefinedLogicalNodeCore for WriteNode {
    fn name(&self) -> &str {
        self.statement.label()
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        self.statement.input().into_iter().chain(self.statement.returning()).collect()
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    fn expressions(&self) -> Vec<Expr> {
        Vec::new()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}", self.statement.label())
    }

    fn with_exprs_and_inputs(&self, _exprs: Vec<Expr>, inputs: Vec<LogicalPlan>) -> Result<Self> {
        let mut inputs = inputs.into_iter();
        let mut statement = match inputs.next() {
            Some(input) => self.statement.with_input(input),
            None => self.statement.clone(),
        };
        let mut schema = Arc::clone(&self.schema);
        if let (WriteStatement::Returning { returning, .. }, Some(query)) = (&mut statement, inputs.next()) {
            schema = Arc::clone(query.schema());
            *returning = Arc::new(query);
        }
        Ok(Self { statement, schema })
    }
}
