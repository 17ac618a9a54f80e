//! A statement that changes something, as one plan node of ours. DataFusion's own DDL and DML nodes never execute
//! here: they are turned into a [`Change`] with full names, or refused.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::common::{DFSchema, DFSchemaRef};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, Extension, LogicalPlan, UserDefinedLogicalNodeCore};
use querent_catalog::{ForeignKey, IfExists, ResolvedTable, TableKind, TableName};

/// What a statement changes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Change {
    /// `CREATE DATABASE`, `CREATE SCHEMA`.
    CreateDatabase { name: String, if_exists: IfExists },
    /// `DROP DATABASE`, `DROP SCHEMA`.
    DropDatabase { name: String, if_missing_ok: bool, cascade: bool },
    /// `CREATE TABLE`, with rows (`AS SELECT`) or without.
    CreateTable {
        name: TableName,
        if_exists: IfExists,
        with_rows: bool,
        foreign_keys: Vec<ForeignKey>,
        input: Arc<LogicalPlan>,
    },
    /// `CREATE EXTERNAL TABLE`.
    CreateExternalTable(ExternalTableRequest),
    /// `CREATE VIEW`; `sql` is its query, `input` the query's plan.
    CreateView { name: TableName, sql: String, default_database: String, if_exists: IfExists, input: Arc<LogicalPlan> },
    /// `DROP TABLE`, `DROP VIEW`.
    DropTable { name: TableName, kinds: &'static [TableKind], if_missing_ok: bool },
    /// `INSERT INTO`, `INSERT OVERWRITE`; `input` has the target's columns in the target's order.
    Insert { target: Box<ResolvedTable>, overwrite: bool, input: Arc<LogicalPlan> },
    /// `COMMENT ON`.
    Comment { target: CommentTarget, comment: Option<String>, if_missing_ok: bool },
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

/// What a comment is about.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum CommentTarget {
    Database(String),
    Table(TableName),
    Column(TableName, String),
}

impl Change {
    /// The plan of this change: one node, whose inputs are the queries it reads from.
    pub(crate) fn into_plan(self) -> LogicalPlan {
        let schema = if self.counts_rows() { count_schema() } else { Arc::new(Schema::empty()) };
        // A schema of one named field, or of none, is always valid.
        let schema = DFSchema::try_from(schema).map(Arc::new).unwrap_or_else(|_| Arc::new(DFSchema::empty()));
        LogicalPlan::Extension(Extension { node: Arc::new(ChangeNode { change: self, schema }) })
    }

    /// The change that a plan is, when it is one.
    pub(crate) fn of(plan: &LogicalPlan) -> Option<&Change> {
        match plan {
            LogicalPlan::Extension(extension) => {
                extension.node.as_any().downcast_ref::<ChangeNode>().map(|node| &node.change)
            }
            _ => None,
        }
    }

    /// Whether it answers with the number of rows it wrote.
    pub(crate) fn counts_rows(&self) -> bool {
        matches!(self, Change::Insert { .. } | Change::CreateTable { with_rows: true, .. })
    }

    /// The statement's name in messages.
    pub(crate) fn label(&self) -> &'static str {
        match self {
            Change::CreateDatabase { .. } => "CREATE DATABASE",
            Change::DropDatabase { .. } => "DROP DATABASE",
            Change::CreateTable { with_rows: false, .. } => "CREATE TABLE",
            Change::CreateTable { with_rows: true, .. } => "CREATE TABLE AS",
            Change::CreateExternalTable(_) => "CREATE EXTERNAL TABLE",
            Change::CreateView { .. } => "CREATE VIEW",
            Change::DropTable { kinds, .. } if kinds.contains(&TableKind::View) => "DROP VIEW",
            Change::DropTable { .. } => "DROP TABLE",
            Change::Insert { overwrite: false, .. } => "INSERT",
            Change::Insert { overwrite: true, .. } => "INSERT OVERWRITE",
            Change::Comment { .. } => "COMMENT ON",
        }
    }

    /// The database that it changes something in.
    pub(crate) fn database(&self) -> &str {
        match self {
            Change::CreateDatabase { name, .. } | Change::DropDatabase { name, .. } => name,
            Change::CreateTable { name, .. } | Change::CreateView { name, .. } | Change::DropTable { name, .. } => {
                &name.database
            }
            Change::CreateExternalTable(request) => &request.name.database,
            Change::Insert { target, .. } => &target.info.name.database,
            Change::Comment { target, .. } => match target {
                CommentTarget::Database(name) => name,
                CommentTarget::Table(name) | CommentTarget::Column(name, _) => &name.database,
            },
        }
    }

    /// The query it reads from.
    pub(crate) fn input(&self) -> Option<&LogicalPlan> {
        match self {
            Change::CreateTable { input, .. } | Change::CreateView { input, .. } | Change::Insert { input, .. } => {
                Some(input)
            }
            Change::CreateDatabase { .. }
            | Change::DropDatabase { .. }
            | Change::CreateExternalTable(_)
            | Change::DropTable { .. }
            | Change::Comment { .. } => None,
        }
    }

    fn with_input(&self, replacement: LogicalPlan) -> Self {
        let mut changed = self.clone();
        match &mut changed {
            Change::CreateTable { input, .. } | Change::CreateView { input, .. } | Change::Insert { input, .. } => {
                *input = Arc::new(replacement);
            }
            Change::CreateDatabase { .. }
            | Change::DropDatabase { .. }
            | Change::CreateExternalTable(_)
            | Change::DropTable { .. }
            | Change::Comment { .. } => {}
        }
        changed
    }
}

/// What a statement that writes rows answers with.
pub(crate) fn count_schema() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("count", DataType::UInt64, false)]))
}

/// A [`Change`] as DataFusion's extension node. It has no physical plan: `sql::apply` carries it out.
#[derive(Debug, Clone, PartialEq)]
struct ChangeNode {
    change: Change,
    schema: DFSchemaRef,
}

impl Eq for ChangeNode {}

impl PartialOrd for ChangeNode {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        (self == other).then_some(Ordering::Equal)
    }
}

impl Hash for ChangeNode {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.change.label().hash(state);
        self.change.database().hash(state);
        self.change.input().hash(state);
    }
}

impl UserDefinedLogicalNodeCore for ChangeNode {
    fn name(&self) -> &str {
        self.change.label()
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        self.change.input().into_iter().collect()
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    fn expressions(&self) -> Vec<Expr> {
        Vec::new()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}", self.change.label())
    }

    fn with_exprs_and_inputs(&self, _exprs: Vec<Expr>, inputs: Vec<LogicalPlan>) -> Result<Self> {
        let change = match inputs.into_iter().next() {
            Some(input) => self.change.with_input(input),
            None => self.change.clone(),
        };
        Ok(Self { change, schema: Arc::clone(&self.schema) })
    }
}
