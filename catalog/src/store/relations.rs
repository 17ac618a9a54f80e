//! Loads tables, views and external tables by id at a snapshot, as the model describes them.

mod listed;

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::ipc::convert::{IpcSchemaEncoder, fb_to_schema};
use arrow::ipc::root_as_schema;
use arrow::ipc::writer::DictionaryTracker;
use arrow_schema::{Schema, SchemaRef};
use uuid::Uuid;

use listed::{ListedExternal, ListedManaged, ListedObjects};

use super::columns::{self, COMMENT_KEY};
use super::object_rows::ObjectRows;
use super::rows::to_json;
use super::view_rights::known_to;
use super::{SnapshotView, column_names, deletes, inlined, objects};
use crate::connection::{DatabaseResult, OptionalRow, StoreConnection, StoreRow, params};
use crate::error::{CatalogError, Result};
use crate::model::{
    CATALOG_NAME, ColumnInfo, ExternalTable, ManagedTable, ResolvedTable, SnapshotId, TableInfo, TableKind, TableName,
    TableSource, TableSummary, quote_identifier,
};
use crate::policy::{PolicySet, Rights};
use crate::principal::Principal;

/// A resolved object and the database it is in.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StoredRelation {
    pub(crate) resolved: ResolvedTable,
    pub(crate) database_id: i64,
}

impl StoredRelation {
    pub(crate) fn info(&self) -> &TableInfo {
        &self.resolved.info
    }
}

/// A database at a snapshot.
#[derive(Clone)]
struct Database {
    id: i64,
    name: String,
    folder: PathBuf,
}

/// Reads objects at a snapshot; their databases are read once each.
pub(crate) struct RelationLoader<'a> {
    connection: &'a StoreConnection,
    snapshot: SnapshotId,
    counts: OnceCell<RowCounts<'a>>,
    policies: Arc<PolicySet>,
    databases: RefCell<HashMap<i64, Option<Database>>>,
    /// What was read at once.
    listed: ListedObjects,
}

/// A row of `ducklake_table` or `querent_external_table`.
#[derive(Clone)]
struct ObjectPlace {
    uuid: String,
    schema_id: i64,
    name: String,
}

impl<'a> RelationLoader<'a> {
    /// A loader for what is not shown to anybody.
    pub(super) fn new(connection: &'a StoreConnection, snapshot: SnapshotId) -> Self {
        let policies = Arc::default();
        Self {
            connection,
            snapshot,
            counts: OnceCell::new(),
            policies,
            databases: RefCell::default(),
            listed: ListedObjects::default(),
        }
    }

    /// Reads tables and external tables in a few statements for all; each may be a journey to a server.
    pub(super) fn with_listed(mut self, object_ids: &[i64]) -> Result<Self> {
        self.listed = ListedObjects::read(self.connection, self.snapshot, object_ids)?;
        Ok(self)
    }

    pub(crate) fn for_view(view: &SnapshotView<'a>) -> Self {
        Self { policies: Arc::clone(&view.policies), ..Self::new(view.connection, view.snapshot) }
    }

    /// What a caller may do.
    pub(crate) fn rights<'r>(&'r self, who: &'r Principal) -> Rights<'r> {
        Rights::new(who, &self.policies)
    }

    pub(super) fn connection(&self) -> &'a StoreConnection {
        self.connection
    }

    /// Reads an object; `None` where it is gone.
    pub(crate) fn load(&self, object_id: i64) -> Result<Option<StoredRelation>> {
        for kind in self.listed.kinds(object_id) {
            if let Some(mut relation) = self.load_of_kind(object_id, *kind)? {
                relation.resolved.info.comment = match self.listed.comment(object_id) {
                    Some(comment) => comment,
                    None => load_comment(self.connection, object_id, self.snapshot)?,
                };
                return Ok(Some(relation));
            }
        }
        Ok(None)
    }

    /// The same for an object whose row was already read, which gives its kind and comment.
    pub(super) fn load_known(&self, object: objects::ObjectRow) -> Result<Option<StoredRelation>> {
        let mut relation = self.load_of_kind(object.id, object.kind)?;
        if let Some(relation) = &mut relation {
            relation.resolved.info.comment = object.comment;
        }
        Ok(relation)
    }

    /// Reads an object without its comment.
    fn load_of_kind(&self, object_id: i64, kind: TableKind) -> Result<Option<StoredRelation>> {
        match kind {
            TableKind::Managed => self.load_managed(object_id),
            TableKind::View => self.load_view(object_id),
            TableKind::External => self.load_external(object_id),
        }
    }

    fn database(&self, schema_id: i64) -> Result<Option<Database>> {
        if let Some(known) = self.databases.borrow().get(&schema_id) {
            return Ok(known.clone());
        }
        let database = load_database(self.connection, schema_id, self.snapshot)?;
        self.databases.borrow_mut().insert(schema_id, database.clone());
        Ok(database)
    }

    fn row_count(&self, table_id: i64) -> Result<Option<u64>> {
        let counts = match self.counts.get() {
            Some(counts) => counts,
            None => {
                let counts = RowCounts::new(self.connection, self.snapshot)?;
                self.counts.get_or_init(|| counts)
            }
        };
        counts.row_count(table_id)
    }

    fn load_managed(&self, table_id: i64) -> Result<Option<StoredRelation>> {
        if let Some(listed) = self.listed.managed(table_id) {
            let ListedManaged { place, path, columns, row_count } = listed;
            return self.managed(table_id, place.clone(), path, columns.clone(), *row_count);
        }
        let row = self
            .connection
            .prepare_cached(
                "SELECT CAST(table_uuid AS TEXT), schema_id, table_name, path, path_is_relative FROM ducklake_table
                 WHERE table_id = ?1 AND begin_snapshot <= ?2 AND (end_snapshot IS NULL OR end_snapshot > ?2)",
            )?
            .query_row([table_id, self.snapshot], |row| {
                Ok((read_place(row)?, LakePath { path: row.get(3)?, is_relative: row.get(4)? }))
            })
            .optional()?;
        let Some((place, path)) = row else { return Ok(None) };
        let columns = columns::load(self.connection, table_id, self.snapshot)?.columns;
        self.managed(table_id, place, &path, columns, self.row_count(table_id)?)
    }

    fn managed(
        &self,
        table_id: i64,
        place: ObjectPlace,
        path: &LakePath,
        columns: Vec<ColumnInfo>,
        row_count: Option<u64>,
    ) -> Result<Option<StoredRelation>> {
        let Some(database) = self.database(place.schema_id)? else { return Ok(None) };
        let location = path.under(&database.folder);
        let source = TableSource::Managed(ManagedTable { id: table_id, snapshot: self.snapshot, location });
        Ok(Some(stored(table_id, TableKind::Managed, place, database, source, columns, row_count)))
    }

    fn load_view(&self, view_id: i64) -> Result<Option<StoredRelation>> {
        let row = self
            .connection
            .prepare_cached(
                "SELECT CAST(view_uuid AS TEXT), schema_id, view_name, sql, column_aliases,
                        (SELECT default_database FROM querent_view ours WHERE ours.view_id = v.view_id)
                 FROM ducklake_view v
                 WHERE view_id = ?1 AND begin_snapshot <= ?2 AND (end_snapshot IS NULL OR end_snapshot > ?2)",
            )?
            .query_row([view_id, self.snapshot], |row| {
                Ok((
                    row.get::<String>(0)?,
                    row.get::<i64>(1)?,
                    row.get::<String>(2)?,
                    row.get::<String>(3)?,
                    row.get::<Option<String>>(4)?.unwrap_or_default(),
                    row.get::<Option<String>>(5)?,
                ))
            })
            .optional()?;
        let Some((uuid, schema_id, name, sql, aliases, default_database)) = row else { return Ok(None) };
        let Some(database) = self.database(schema_id)? else { return Ok(None) };
        let source = TableSource::View {
            sql: readable_view_sql(&sql, &aliases),
            default_database: default_database.unwrap_or_else(|| database.name.clone()),
        };
        let info = TableInfo {
            id: view_id,
            uuid: parse_uuid(&uuid),
            name: TableName::new(database.name, name),
            kind: TableKind::View,
            comment: None,
            columns: load_described_columns(self.connection, view_id, self.snapshot)?,
            row_count: None,
        };
        Ok(Some(StoredRelation {
            resolved: ResolvedTable { info, source, restriction: None },
            database_id: database.id,
        }))
    }

    fn load_external(&self, object_id: i64) -> Result<Option<StoredRelation>> {
        if let Some(ListedExternal { place, definition, columns }) = self.listed.external(object_id) {
            return self.external(object_id, place.clone(), definition, columns.clone());
        }
        let row = self
            .connection
            .prepare_cached(
                "SELECT table_uuid, schema_id, table_name, definition FROM querent_external_table
                 WHERE object_id = ?1 AND begin_snapshot <= ?2 AND (end_snapshot IS NULL OR end_snapshot > ?2)",
            )?
            .query_row([object_id, self.snapshot], |row| Ok((read_place(row)?, row.get::<String>(3)?)))
            .optional()?;
        let Some((place, definition)) = row else { return Ok(None) };
        let columns = load_described_columns(self.connection, object_id, self.snapshot)?;
        self.external(object_id, place, &definition, columns)
    }

    fn external(
        &self,
        object_id: i64,
        place: ObjectPlace,
        definition: &str,
        columns: Vec<ColumnInfo>,
    ) -> Result<Option<StoredRelation>> {
        // DuckDB drops a schema without knowing our tables in it.
        let Some(database) = self.database(place.schema_id)? else { return Ok(None) };
        let external: ExternalTable = serde_json::from_str(definition).map_err(|error| {
            CatalogError::Internal(format!("the definition of external table `{}` cannot be read: {error}", place.name))
        })?;
        let source = TableSource::External(external);
        Ok(Some(stored(object_id, TableKind::External, place, database, source, columns, None)))
    }
}

/// A table of which everything is read but its comment.
fn stored(
    id: i64,
    kind: TableKind,
    place: ObjectPlace,
    database: Database,
    source: TableSource,
    columns: Vec<ColumnInfo>,
    row_count: Option<u64>,
) -> StoredRelation {
    let (uuid, name) = (parse_uuid(&place.uuid), TableName::new(database.name, place.name));
    let info = TableInfo { id, uuid, name, kind, comment: None, columns, row_count };
    StoredRelation { resolved: ResolvedTable { info, source, restriction: None }, database_id: database.id }
}

/// The first three columns of a row: the id for all time, the database's id, the name.
fn read_place(row: &StoreRow<'_>) -> DatabaseResult<ObjectPlace> {
    Ok(ObjectPlace { uuid: row.get(0)?, schema_id: row.get(1)?, name: row.get(2)? })
}

/// One object, as of [`RelationLoader::load`].
pub(super) fn load(
    connection: &StoreConnection,
    object_id: i64,
    snapshot: SnapshotId,
) -> Result<Option<StoredRelation>> {
    RelationLoader::new(connection, snapshot).load(object_id)
}

/// The tables of a list of ids at one snapshot, in order; `None` where one is gone or may not be seen.
pub(crate) fn table_infos(view: &SnapshotView<'_>, who: &Principal, ids: &[i64]) -> Result<Vec<Option<TableInfo>>> {
    let loader = RelationLoader::for_view(view).with_listed(ids)?;
    let mut infos = Vec::with_capacity(ids.len());
    for id in ids {
        let visible = match loader.load(*id)? {
            Some(relation) => known_to(&loader, who, relation)?,
            None => None,
        };
        infos.push(visible.map(|relation| relation.resolved.info));
    }
    Ok(infos)
}

/// The summary of an object in a listing. `counts` has the rows of managed tables, as far as they are known.
pub(super) fn summary(counts: &HashMap<i64, u64>, object: objects::ObjectRow, database: &str) -> TableSummary {
    TableSummary {
        id: object.id,
        name: TableName::new(database, object.name),
        kind: object.kind,
        comment: object.comment,
        row_count: counts.get(&object.id).copied(),
    }
}

/// Adds the schema of a new external table or view.
pub(super) fn insert_described_columns(
    connection: &StoreConnection,
    rows: &mut ObjectRows,
    object_id: i64,
    schema: &Schema,
) -> Result<()> {
    let mut dictionaries = DictionaryTracker::new(true);
    let mut encoder = IpcSchemaEncoder::new().with_dictionary_tracker(&mut dictionaries);
    let encoded = encoder.schema_to_fb(schema);
    rows.schemas.add(connection, params![object_id, encoded.finished_data()])?;
    column_names::insert_described(connection, rows, object_id, schema.fields().iter().map(|field| field.name()))
}

/// The columns of an external table or view: comments go by position, from 1.
fn load_described_columns(
    connection: &StoreConnection,
    object_id: i64,
    snapshot: SnapshotId,
) -> Result<Vec<ColumnInfo>> {
    let Some(schema) = load_schema(connection, object_id)? else { return Ok(Vec::new()) };
    Ok(described_columns(&schema, columns::load_tags(connection, object_id, snapshot)?))
}

fn described_columns(schema: &Schema, tags: columns::ColumnTags) -> Vec<ColumnInfo> {
    let mut comments = tags.comments;
    let described = schema.fields().iter().zip(1..).map(|(field, position)| ColumnInfo {
        id: 0,
        name: field.name().clone(),
        data_type: field.data_type().clone(),
        is_json: false,
        is_uuid: false,
        nullable: field.is_nullable(),
        comment: comments.remove(&position),
        default: None,
        initial_default: None,
    });
    described.collect()
}

/// The schema of an external table or view, also of a dropped one.
pub(super) fn load_schema(connection: &StoreConnection, object_id: i64) -> Result<Option<SchemaRef>> {
    let encoded: Option<Vec<u8>> = connection
        .prepare_cached("SELECT arrow_schema FROM querent_object_schema WHERE object_id = ?")?
        .query_row([object_id], |row| row.get(0))
        .optional()?;
    encoded.map(|bytes| decoded_schema(object_id, &bytes)).transpose()
}

fn decoded_schema(object_id: i64, encoded: &[u8]) -> Result<SchemaRef> {
    root_as_schema(encoded)
        .map(|schema| Arc::new(fb_to_schema(schema)))
        .map_err(|error| CatalogError::Internal(format!("the schema of object {object_id} cannot be read: {error}")))
}

/// A table's or view's comment.
fn load_comment(connection: &StoreConnection, object_id: i64, snapshot: SnapshotId) -> Result<Option<String>> {
    let comment: Option<Option<String>> = connection
        .prepare_cached(
            "SELECT value FROM ducklake_tag
             WHERE object_id = ?1 AND key = ?2
               AND begin_snapshot <= ?3 AND (end_snapshot IS NULL OR end_snapshot > ?3)",
        )?
        .query_row(params![object_id, COMMENT_KEY, snapshot], |row| row.get(0))
        .optional()?;
    Ok(comment.flatten())
}

/// How many rows managed tables hold at a snapshot.
pub(super) struct RowCounts<'a> {
    connection: &'a StoreConnection,
    snapshot: SnapshotId,
    /// Whether DuckDB keeps deletes of any table in the catalog (one `ducklake_inlined_delete_*` table each).
    has_inlined_deletes: bool,
}

impl<'a> RowCounts<'a> {
    pub(super) fn new(connection: &'a StoreConnection, snapshot: SnapshotId) -> Result<Self> {
        let has_inlined_deletes = connection
            .prepare_cached(
                "SELECT EXISTS (SELECT 1 FROM sqlite_master
                                WHERE type = 'table' AND substr(name, 1, 24) = 'ducklake_inlined_delete_')",
            )?
            .query_row([], |row| row.get(0))?;
        Ok(Self { connection, snapshot, has_inlined_deletes })
    }

    /// The rows of a table's live files; unknown where DuckDB may have deleted or inlined some.
    pub(super) fn row_count(&self, table_id: i64) -> Result<Option<u64>> {
        if self.has_inlined_deletes && deletes::inlined_table(self.connection, table_id)?.is_some() {
            return Ok(None);
        }
        for (kept, _) in inlined::data_tables(self.connection, table_id)? {
            let sql = format!("SELECT EXISTS (SELECT 1 FROM {})", quote_identifier(&kept));
            if self.connection.query_row(&sql, [], |row| row.get::<bool>(0))? {
                return Ok(None);
            }
        }
        let rows: Option<i64> = self
            .connection
            .prepare_cached(
                "SELECT CASE
                    WHEN EXISTS (SELECT 1 FROM ducklake_delete_file WHERE table_id = ?1 AND end_snapshot IS NULL) THEN NULL
                    ELSE (SELECT CAST(COALESCE(SUM(record_count), 0) AS BIGINT) FROM ducklake_data_file
                          WHERE table_id = ?1 AND begin_snapshot <= ?2 AND (end_snapshot IS NULL OR end_snapshot > ?2))
                 END",
            )?
            .query_row([table_id, self.snapshot], |row| row.get(0))?;
        Ok(rows.and_then(|rows| u64::try_from(rows).ok()))
    }

    /// The same of many tables, in a few statements for all: each may be a journey to a server. Those that are missing are unknown.
    pub(super) fn row_counts(&self, table_ids: &[i64]) -> Result<HashMap<i64, u64>> {
        if table_ids.is_empty() {
            return Ok(HashMap::new());
        }
        let wanted = to_json(table_ids)?;
        let mut counts: HashMap<i64, u64> = table_ids.iter().map(|id| (*id, 0)).collect();
        let mut files = self.connection.prepare_cached(
            "SELECT table_id, CAST(COALESCE(SUM(record_count), 0) AS BIGINT) FROM ducklake_data_file
             WHERE table_id IN (SELECT CAST(value AS BIGINT) FROM json_each(?1))
               AND begin_snapshot <= ?2 AND (end_snapshot IS NULL OR end_snapshot > ?2)
             GROUP BY table_id",
        )?;
        let of_files =
            files.query_map(params![wanted, self.snapshot], |row| Ok((row.get::<i64>(0)?, row.get::<i64>(1)?)))?;
        let mut unknown = Vec::new();
        for row in of_files {
            let (table_id, rows) = row?;
            match u64::try_from(rows) {
                Ok(rows) => {
                    counts.insert(table_id, rows);
                }
                Err(_) => unknown.push(table_id),
            }
        }
        let mut deleted = self.connection.prepare_cached(
            "SELECT DISTINCT table_id FROM ducklake_delete_file
             WHERE table_id IN (SELECT CAST(value AS BIGINT) FROM json_each(?1)) AND end_snapshot IS NULL",
        )?;
        let of_deleted = deleted.query_map([wanted.as_str()], |row| row.get::<i64>(0))?;
        unknown.extend(of_deleted.collect::<DatabaseResult<Vec<i64>>>()?);
        unknown.extend(inlined::tables_with_rows(self.connection, &wanted)?);
        if self.has_inlined_deletes {
            unknown.extend(deletes::inlined_tables(self.connection, &wanted)?);
        }
        for table_id in unknown {
            counts.remove(&table_id);
        }
        Ok(counts)
    }
}

fn load_database(connection: &StoreConnection, schema_id: i64, snapshot: SnapshotId) -> Result<Option<Database>> {
    let row = connection
        .prepare_cached(
            "SELECT schema_name, path, path_is_relative FROM ducklake_schema
             WHERE schema_id = ?1 AND begin_snapshot <= ?2 AND (end_snapshot IS NULL OR end_snapshot > ?2)",
        )?
        .query_row([schema_id, snapshot], |row| {
            Ok((row.get::<String>(0)?, LakePath { path: row.get(1)?, is_relative: row.get(2)? }))
        })
        .optional()?;
    let Some((name, path)) = row else { return Ok(None) };
    Ok(Some(Database { id: schema_id, name, folder: path.under(&data_path(connection)?) }))
}

/// The absolute folder of a database's tables.
pub(super) fn database_folder(
    connection: &StoreConnection,
    schema_id: i64,
    snapshot: SnapshotId,
) -> Result<Option<PathBuf>> {
    Ok(load_database(connection, schema_id, snapshot)?.map(|database| database.folder))
}

/// The lake's `DATA_PATH`.
pub(super) fn data_path(connection: &StoreConnection) -> Result<PathBuf> {
    let path: String = connection
        .prepare_cached("SELECT value FROM ducklake_metadata WHERE key = 'data_path' AND scope IS NULL")?
        .query_row([], |row| row.get(0))?;
    Ok(PathBuf::from(path))
}

/// A path as the lake stores it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LakePath {
    pub(super) path: String,
    pub(super) is_relative: bool,
}

impl LakePath {
    /// The absolute path, where this one is relative to `folder`.
    pub(super) fn under(&self, folder: &Path) -> PathBuf {
        if self.is_relative { folder.join(&self.path) } else { PathBuf::from(&self.path) }
    }

    /// The stored form of a path: relative if it is below `folder`, else absolute.
    pub(super) fn relative_to(path: &Path, folder: &Path) -> Self {
        match path.strip_prefix(folder) {
            Ok(relative) => Self { path: relative.to_string_lossy().into_owned(), is_relative: true },
            Err(_) => Self { path: path.to_string_lossy().into_owned(), is_relative: false },
        }
    }
}

/// A view's SQL as Querent plans it. DuckDB stores the catalog's name as a placeholder, so that a lake can be attached
/// under any name, and keeps column aliases apart from the SQL.
fn readable_view_sql(sql: &str, aliases: &str) -> String {
    let sql = replace_outside_quotes(sql, "{DUCKLAKE_CATALOG}.", &format!("{CATALOG_NAME}."));
    if aliases.is_empty() { sql } else { format!("SELECT * FROM ({sql}) AS aliased({aliases})") }
}

fn replace_outside_quotes(text: &str, from: &str, to: &str) -> String {
    let mut replaced = String::with_capacity(text.len());
    let mut quote: Option<char> = None;
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if quote.is_none() && rest.starts_with(from) {
            replaced.push_str(to);
            rest = &rest[from.len()..];
            continue;
        }
        match quote {
            Some(open) if open == c => quote = None,
            None if c == '\'' || c == '"' => quote = Some(c),
            _ => {}
        }
        replaced.push(c);
        rest = &rest[c.len_utf8()..];
    }
    replaced
}

fn parse_uuid(text: &str) -> Uuid {
    Uuid::parse_str(text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_in_quotes_stay() {
        let sql = "SELECT '{DUCKLAKE_CATALOG}.x' FROM {DUCKLAKE_CATALOG}.main.t";
        assert_eq!(readable_view_sql(sql, ""), "SELECT '{DUCKLAKE_CATALOG}.x' FROM querent.main.t");
        assert_eq!(readable_view_sql("SELECT 1", "\"a\""), "SELECT * FROM (SELECT 1) AS aliased(\"a\")");
    }
}
