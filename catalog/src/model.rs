//! The nouns of the catalog: databases, tables, columns, files, pages, relationships. Plain data without I/O.

mod column_default;
mod key;
mod lake_location;
mod relationship;
mod row_changes;
mod sorted_by;
mod table_alteration;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow_schema::{DataType, Schema, SchemaRef};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

pub use column_default::ColumnDefault;
pub use key::{KeyConstraint, KeyFilter, KeyKind, ReferredKey, UniqueKey};
pub use lake_location::LakeLocation;
pub(crate) use lake_location::is_url;
pub use relationship::{ForeignKey, NewRelationship, Relationship, RelationshipOrigin};
pub use row_changes::{DeletedRows, NewDeleteFile, RowChanges};
pub use sorted_by::SortedByKey;
pub use table_alteration::{TableAlteration, is_wider_type};

/// A DuckLake snapshot number; every committed change makes the next one.
pub type SnapshotId = i64;

/// What a statement's names resolve by: while it is the same, every name resolves to the same for the same caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CatalogVersion {
    /// The lake's snapshot.
    pub snapshot: SnapshotId,
    /// The version of the policy that holds.
    pub policies: i64,
}

/// The SQL and Flight catalog that every database belongs to.
pub const CATALOG_NAME: &str = "querent";
/// The database that exists from the start.
pub const DEFAULT_DATABASE: &str = "default";
/// The database of read-only system tables; not stored, and not a legal name for a user's database.
pub const SYSTEM_DATABASE: &str = "system";

/// A table's full name. Case is kept; equality of names for resolution disregards it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TableName {
    /// The database (a DuckLake schema, a Flight `db_schema`).
    pub database: String,
    /// The table or view.
    pub table: String,
}

impl TableName {
    /// `database.table`.
    pub fn new(database: impl Into<String>, table: impl Into<String>) -> Self {
        Self { database: database.into(), table: table.into() }
    }
}

impl std::fmt::Display for TableName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.database, self.table)
    }
}

/// What kind of relation an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TableKind {
    /// A DuckLake table over Parquet that Querent writes.
    Managed,
    /// Files that Querent does not own.
    External,
    /// A stored query.
    View,
}

impl TableKind {
    /// The kind as Flight SQL and information_schema spell it.
    pub fn table_type(self) -> &'static str {
        match self {
            TableKind::Managed => "BASE TABLE",
            TableKind::External => "EXTERNAL TABLE",
            TableKind::View => "VIEW",
        }
    }
}

/// A database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatabaseInfo {
    /// DuckLake `schema_id`.
    pub id: i64,
    /// Its name as created.
    pub name: String,
    /// Its comment.
    pub comment: Option<String>,
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnInfo {
    /// DuckLake `column_id`, which is also the Parquet field id; 0 for views' and external tables' columns.
    pub id: i64,
    /// Its name as created.
    pub name: String,
    /// Its Arrow type.
    pub data_type: DataType,
    /// Whether it is text that was declared as JSON, or was read from it.
    pub is_json: bool,
    /// Whether it is text of which each value is a UUID: lower case, with dashes.
    pub is_uuid: bool,
    /// Whether it may hold nulls.
    pub nullable: bool,
    /// Its comment.
    pub comment: Option<String>,
    /// What it is in a new row of which a statement does not say it; `None`: null.
    pub default: Option<ColumnDefault>,
    /// What it is in rows that are older than the column, as text; `None`: null.
    pub initial_default: Option<String>,
}

/// A table, view or external table with its columns, at one snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableInfo {
    /// DuckLake `table_id` or `view_id`, or the id of an external table; unique across all three (all come from
    /// `next_catalog_id`).
    pub id: i64,
    /// Stable identity across renames.
    pub uuid: Uuid,
    /// Full name.
    pub name: TableName,
    /// Managed, external or view.
    pub kind: TableKind,
    /// Its comment.
    pub comment: Option<String>,
    /// In order.
    pub columns: Vec<ColumnInfo>,
    /// Number of rows, where the catalog knows it without reading data.
    pub row_count: Option<u64>,
}

impl TableInfo {
    /// The table's Arrow schema, field metadata left empty.
    pub fn arrow_schema(&self) -> SchemaRef {
        let fields: Vec<_> = self
            .columns
            .iter()
            .map(|column| arrow_schema::Field::new(&column.name, column.data_type.clone(), column.nullable))
            .collect();
        Arc::new(Schema::new(fields))
    }
}

/// A table's name and kind, without its columns: what listings return.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableSummary {
    /// As in [`TableInfo::id`].
    pub id: i64,
    /// Full name.
    pub name: TableName,
    /// Managed, external or view.
    pub kind: TableKind,
    /// Its comment.
    pub comment: Option<String>,
    /// Number of rows, where the catalog knows it without reading data.
    pub row_count: Option<u64>,
}

/// The source of a resolved table's rows.
#[derive(Debug, Clone, PartialEq)]
pub enum TableSource {
    /// A DuckLake table; its files are listed by [`crate::CatalogTables::data_files`].
    Managed(ManagedTable),
    /// Files that Querent does not own.
    External(ExternalTable),
    /// A stored query, and the database its bare names resolve in.
    View {
        /// SQL text of the query.
        sql: String,
        /// The database in which bare names in `sql` resolve.
        default_database: String,
    },
}

/// A managed table at a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManagedTable {
    /// DuckLake `table_id`.
    pub id: i64,
    /// The snapshot at which the table was resolved: reads list the files of it, writes check for conflicts since it.
    pub snapshot: SnapshotId,
    /// Absolute folder of the table's data files.
    pub location: PathBuf,
}

/// The file formats of external tables and imports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileFormat {
    /// Apache Parquet.
    Parquet,
    /// Comma-separated values.
    Csv,
    /// JSON: objects one a line, one after the other or in an array, or features of GeoJSON.
    Ndjson,
    /// Arrow IPC, of the file format or the stream format.
    Arrow,
    /// A Lance dataset, which is a folder.
    Lance,
    /// A workbook of Excel or OpenDocument, of which a sheet is a table.
    Xlsx,
}

/// Where an external table's rows are, and how to read them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExternalTable {
    /// A file, a folder or a glob: an absolute local path.
    pub location: String,
    /// File format.
    pub format: FileFormat,
    /// Reader options by lowercase name: `has_header`, `delimiter`, `null_value`, `compression` and so on.
    pub options: BTreeMap<String, String>,
    /// Hive partition columns (`key=value` folders), which are also the last columns of the schema.
    pub partition_columns: Vec<String>,
}

/// A resolved name: the object and the source of its rows.
#[derive(Debug, Clone, PartialEq)]
pub struct ResolvedTable {
    /// Name, columns, comments.
    pub info: TableInfo,
    /// What to read.
    pub source: TableSource,
    /// What of it its caller does not see, where that is not all.
    pub restriction: Option<Arc<Restriction>>,
}

impl ResolvedTable {
    /// The table with all that it has, for those who read its files and show a part.
    pub fn whole(&self) -> Cow<'_, Self> {
        match &self.restriction {
            None => Cow::Borrowed(self),
            Some(restriction) => {
                Cow::Owned(Self { info: restriction.whole.clone(), source: self.source.clone(), restriction: None })
            }
        }
    }
}

/// What a caller does not see of a table that it sees.
#[derive(Debug, Clone, PartialEq)]
pub struct Restriction {
    /// The whole table, for those who read its files.
    pub whole: TableInfo,
    /// The rows that are there.
    pub rows: RowRestriction,
    /// Columns that are read as an expression: the column, the mask's name, the expression.
    pub masks: Vec<(String, String, String)>,
}

/// Which rows of a table are there for a caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RowRestriction {
    /// All.
    All,
    /// None.
    None,
    /// Those that fulfil one of these conditions: the policy's name, the condition.
    Any(Vec<(String, String)>),
}

/// The contents of a managed table at its snapshot.
#[derive(Debug, Clone, PartialEq)]
pub struct TableContents {
    /// Its files, in order.
    pub files: Vec<DataFile>,
    /// Rows that DuckDB keeps in the catalog itself, with the table's columns.
    pub inlined: Option<RecordBatch>,
    /// The distinct values that analysed columns are thought to have, by column id.
    pub distinct_values: BTreeMap<i64, u64>,
}

/// The rows of a data file that are deleted, by their position in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileDeletes {
    /// A Parquet file with some of the positions in its column `pos`.
    pub file: Option<PathBuf>,
    /// Number of positions in `file`.
    pub file_rows: u64,
    /// Further positions.
    pub positions: Vec<u64>,
}

impl FileDeletes {
    /// Whether no row is deleted.
    pub fn is_empty(&self) -> bool {
        self.file.is_none() && self.positions.is_empty()
    }

    /// The number of deleted rows.
    pub fn rows(&self) -> u64 {
        self.file_rows + self.positions.len() as u64
    }
}

/// One Parquet file of a managed table, at the table's snapshot.
#[derive(Debug, Clone, PartialEq)]
pub struct DataFile {
    /// DuckLake `data_file_id`.
    pub id: i64,
    /// Absolute path.
    pub path: PathBuf,
    /// Rows in the file.
    pub row_count: u64,
    /// Bytes of the file.
    pub file_size_bytes: u64,
    /// Bytes of the Parquet footer, where recorded.
    pub footer_size: Option<u64>,
    /// Statistics of the requested columns, by column id.
    pub column_stats: BTreeMap<i64, ColumnStats>,
    /// Its deleted rows.
    pub deletes: FileDeletes,
}

/// Statistics of one column in one file. Values are DuckLake's text form.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ColumnStats {
    /// Non-null values.
    pub value_count: Option<u64>,
    /// Nulls.
    pub null_count: Option<u64>,
    /// A lower bound.
    pub min_value: Option<String>,
    /// An upper bound.
    pub max_value: Option<String>,
    /// Whether a float column holds NaN (then bounds do not cover it).
    pub contains_nan: Option<bool>,
    /// Bytes of the column in the file.
    pub column_size_bytes: Option<u64>,
}

/// A Parquet file that has been written and synced and is not yet part of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct NewDataFile {
    /// Absolute path, inside the table's folder.
    pub path: PathBuf,
    /// Rows in the file.
    pub row_count: u64,
    /// Bytes of the file.
    pub file_size_bytes: u64,
    /// Bytes of the Parquet footer.
    pub footer_size: u64,
    /// By column id; nested columns' leaves by their own ids.
    pub column_stats: BTreeMap<i64, ColumnStats>,
}

/// A table about to be created: ids and folder are fixed so that files can be written first.
/// Made only by [`crate::CatalogTables::draft`].
#[derive(Debug, Clone, PartialEq)]
pub struct TableDraft {
    pub(crate) uuid: Uuid,
    /// Full name.
    pub name: TableName,
    /// With ids assigned (depth first from 1; nested fields take ids too).
    pub columns: Vec<ColumnInfo>,
    /// The table's comment.
    pub comment: Option<String>,
    /// Absolute folder for data files; made by the writer.
    pub location: PathBuf,
    /// The schema to write: the columns as Parquet has them, with `PARQUET:field_id` metadata at every level.
    pub write_schema: SchemaRef,
    /// Its primary key and unique constraints, committed with the table; recorded and not enforced.
    pub keys: Vec<UniqueKey>,
    /// Its foreign keys, committed with the table; recorded and not enforced.
    pub foreign_keys: Vec<ForeignKey>,
    /// The defaults of its columns, by the columns' names.
    pub defaults: Vec<(String, ColumnDefault)>,
    /// The order in which its rows are written.
    pub sort_order: Vec<SortedByKey>,
    /// The newest snapshot at the time of the draft.
    pub(crate) base: SnapshotId,
}

/// A table to register with many others ([`crate::CatalogTables::register`]).
#[derive(Debug, Clone, PartialEq)]
pub struct NewTable {
    /// Full name; a database that does not exist is created.
    pub name: TableName,
    /// Columns.
    pub schema: SchemaRef,
    /// Its comment.
    pub comment: Option<String>,
    /// Comments of its columns, by column name.
    pub column_comments: BTreeMap<String, String>,
    /// External files; `None` creates a managed table without rows.
    pub external: Option<ExternalTable>,
}

/// The outcome of registering many tables.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Registered {
    /// Tables created, including those that replaced others.
    pub created: u64,
    /// Tables left alone because their names were taken ([`IfExists::Ignore`]).
    pub existing: u64,
    /// Databases created.
    pub databases: u64,
}

/// What to do when the name is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IfExists {
    /// Refuse.
    Error,
    /// Keep the existing object; the call succeeds and says so.
    Ignore,
    /// Drop the existing object in the same transaction.
    Replace,
}

/// Whether a create made a new object.
#[derive(Debug, Clone, PartialEq)]
pub enum Created<T> {
    /// Created.
    New(T),
    /// Existed already ([`IfExists::Ignore`]).
    Existing,
}

/// A page of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    /// At most the requested number.
    pub items: Vec<T>,
    /// Pass to the next request; `None` on the last page.
    pub next: Option<PageToken>,
}

impl<T> Page<T> {
    /// The first `limit` of `items`, of which there is one more than that where there is a next page; `token` makes the
    /// position after the last item.
    pub(crate) fn cut(mut items: Vec<T>, limit: usize, token: impl FnOnce(&T) -> PageToken) -> Self {
        let has_more = items.len() > limit;
        items.truncate(limit);
        let next = items.last().filter(|_| has_more).map(token);
        Self { items, next }
    }
}

/// The position from which a listing continues. Opaque to callers, stable across snapshots: the last name seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageToken(pub String);

/// Which page of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageRequest {
    /// At most this many items; clamped to 1..=10,000.
    pub limit: usize,
    /// From the previous page.
    pub after: Option<PageToken>,
}

impl PageRequest {
    /// The first page, with at most `limit` items.
    pub fn first(limit: usize) -> Self {
        Self { limit, after: None }
    }
}

/// Which tables to list. All conditions must hold; names compare ignoring case.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TableFilter {
    /// Only this database.
    pub database: Option<String>,
    /// Only databases matching this SQL `LIKE` pattern (`\` escapes).
    pub database_like: Option<String>,
    /// Only this table name.
    pub name: Option<String>,
    /// Only names matching this SQL `LIKE` pattern (`\` escapes).
    pub name_like: Option<String>,
    /// Only these kinds; empty means all.
    pub kinds: Vec<TableKind>,
}

/// One result of a schema search.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchHit {
    /// The table found.
    pub table: TableSummary,
    /// Fused score; larger is better; comparable within one search only.
    pub score: f32,
    /// What found it: `name`, `bm25`, `dense`, `column`, `value`, `verified_query`, `metric`, `relationship`, in that
    /// order.
    pub found_by: Vec<FoundBy>,
    /// Details in words: `value 'UA' in flights.carrier`.
    pub why: Vec<String>,
}

/// Why searches answer by name and by text only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingMeaning {
    /// What is wrong.
    pub reason: String,
    /// What to do about it.
    pub hint: String,
    /// Whether the settings leave meaning out, so that nothing is wrong.
    pub is_chosen: bool,
}

/// A first-stage search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, PartialOrd, Ord)]
#[serde(rename_all = "snake_case")]
pub enum FoundBy {
    /// The name itself.
    Name,
    /// Full-text ranking.
    Bm25,
    /// Embedding similarity.
    Dense,
    /// A column of a name or comment that fits.
    Column,
    /// A column that holds a literal of the question.
    Value,
    /// A verified query whose question is much like this one reads it.
    VerifiedQuery,
    /// A metric that the question names is computed over it.
    Metric,
    /// It joins a table that was found.
    Relationship,
}

/// Which stages take part in a search: all, except when one is measured without another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SearchStages {
    /// Names in the question.
    pub names: bool,
    /// Full text of tables.
    pub bm25: bool,
    /// Vectors of tables.
    pub dense: bool,
    /// Columns, their values, and taught knowledge.
    pub columns: bool,
    /// Relationships.
    pub expansion: bool,
}

impl Default for SearchStages {
    fn default() -> Self {
        Self { names: true, bm25: true, dense: true, columns: true, expansion: true }
    }
}

/// What to search for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchRequest {
    /// A question or keywords.
    pub query: String,
    /// Only this database.
    pub database: Option<String>,
    /// At most this many hits; clamped to 1..=200.
    pub limit: usize,
}

/// The key of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ConversationKey {
    /// The space in which its id is unique; the empty space is shared by all.
    pub space: String,
    /// Its id in the space.
    pub id: String,
}

impl ConversationKey {
    /// A conversation in the shared space.
    pub fn shared(id: impl Into<String>) -> Self {
        Self { space: String::new(), id: id.into() }
    }
}

/// The embedding model that made a vector; recorded on every index row.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct EmbeddingModel {
    /// For example `all-MiniLM-L6-v2`.
    pub id: String,
    /// Vector length.
    pub dimension: usize,
}

/// Returns a name in double quotes, as SQL has it.
pub(crate) fn quote_identifier(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
