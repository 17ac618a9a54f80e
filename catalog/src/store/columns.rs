//! A table's columns as rows of `ducklake_column`: nested types are child rows, ids run depth first from 1 and
//! are also the Parquet field ids.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef};

use super::change::CatalogChange;
use super::names::name_key;
use super::object_rows::ObjectRows;
use super::types::{LakeType, Shape, list_of, map_of, shown_type, storable, written_field};
use crate::connection::{DatabaseResult, StoreConnection, StoreRow, params};
use crate::error::{CatalogError, Result};
use crate::model::{ColumnDefault, ColumnInfo, SnapshotId, TableDraft};

/// The Arrow field metadata key that the Parquet writer takes field ids from.
const FIELD_ID_KEY: &str = "PARQUET:field_id";
/// The key of comments in `ducklake_tag` and `ducklake_column_tag`.
pub(super) const COMMENT_KEY: &str = "comment";
/// With the id of a column of text behind it, the key in `ducklake_tag` that says that it holds JSON. DuckDB passes over tags of
/// tables; where a column has one that is no comment, it reads nothing of the whole lake.
pub(super) const JSON_KEY: &str = "querent_json:";
/// Keys of columns with JSON, as a pattern of LIKE.
const JSON_KEYS: &str = "querent_json:%";
/// The type of JSON columns that DuckDB made.
const JSON_TYPE: &str = "json";
/// The type of columns of UUIDs. Here their values are text, in the files that Querent writes too; DuckDB writes 16 bytes, and reads
/// both.
pub(super) const UUID_TYPE: &str = "uuid";
/// The key in the metadata of fields that are written, of text of which each value is a UUID.
const UUID_KEY: &str = "querent.uuid";

/// One row of `ducklake_column`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ColumnRow {
    pub(super) id: i64,
    pub(super) name: String,
    pub(super) column_type: String,
    pub(super) nullable: bool,
    pub(super) parent: Option<i64>,
    /// The value of rows that are older than the column.
    pub(super) initial_default: Option<String>,
    /// The value of new rows.
    pub(super) default: Option<ColumnDefault>,
}

impl ColumnRow {
    /// Whether it is a column of the table and no part of one.
    pub(super) fn is_whole_column(&self) -> bool {
        self.parent.is_none()
    }
}

/// A schema laid out for the lake.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ColumnLayout {
    /// Canonical types, without field metadata.
    pub(super) columns: Vec<ColumnInfo>,
    /// The types that are written to Parquet, with field ids at every level.
    pub(super) write_schema: SchemaRef,
    rows: Vec<ColumnRow>,
    dimensions: BTreeMap<i64, i32>,
}

impl ColumnLayout {
    /// Lays out a schema. Errors: `unsupported_type` names the column that DuckLake cannot hold.
    pub(super) fn from_schema(table: &str, schema: &Schema) -> Result<Self> {
        let invalid = |name: &str, reason: &str| CatalogError::InvalidName { name: name.into(), reason: reason.into() };
        if schema.fields().is_empty() {
            return Err(invalid(table, "a table needs at least one column"));
        }
        let mut seen = HashSet::new();
        let mut builder = ColumnLayoutBuilder::default();
        let mut columns = Vec::new();
        let mut fields = Vec::new();
        for field in schema.fields() {
            if field.name().is_empty() {
                return Err(invalid(field.name(), "a column needs a name"));
            }
            if !seen.insert(name_key(field.name())) {
                return Err(invalid(field.name(), "another column of the table has this name (case aside)"));
            }
            let written = builder.column(field)?;
            columns.push(column_info(field, &written));
            fields.push(written_field(&written));
        }
        let write_schema = Arc::new(Schema::new(fields));
        Ok(Self { columns, write_schema, rows: builder.rows, dimensions: builder.dimensions })
    }

    /// Lays out one more column of a table whose columns have the ids up to `last_id`. Errors: `unsupported_type`.
    pub(super) fn of_column(field: &Field, last_id: i64) -> Result<Self> {
        let mut builder = ColumnLayoutBuilder { last_id, ..ColumnLayoutBuilder::default() };
        let written = builder.column(field)?;
        let columns = vec![column_info(field, &written)];
        let write_schema = Arc::new(Schema::new(vec![written_field(&written)]));
        Ok(Self { columns, write_schema, rows: builder.rows, dimensions: builder.dimensions })
    }

    /// Returns the layout whose columns of these names hold JSON.
    pub(super) fn with_json(mut self, is_json: impl Fn(&str) -> bool) -> Self {
        for column in &mut self.columns {
            column.is_json = is_json(&column.name);
        }
        self
    }

    /// Returns the layout whose columns of these names are text that holds UUIDs.
    pub(super) fn with_uuids(mut self, is_uuid: impl Fn(&str) -> bool) -> Self {
        for column in self.columns.iter_mut().filter(|column| is_uuid(&column.name)) {
            column.is_uuid = true;
            for row in self.rows.iter_mut().filter(|row| row.id == column.id) {
                row.column_type = UUID_TYPE.to_owned();
            }
        }
        self
    }

    /// Adds the rows of new columns.
    pub(super) fn insert(&self, change: &CatalogChange<'_>, rows: &mut ObjectRows, table_id: i64) -> Result<()> {
        let connection = change.connection();
        for row in &self.rows {
            let is_nested = matches!(row.column_type.as_str(), "list" | "struct" | "map");
            let column = params![
                row.id,
                change.snapshot(),
                table_id,
                row.id,
                row.name,
                row.column_type,
                row.nullable,
                row.parent,
                if is_nested { "" } else { "literal" },
            ];
            rows.columns.add(connection, column)?;
        }
        for (column_id, dimension) in &self.dimensions {
            rows.vectors.add(connection, params![table_id, column_id, dimension])?;
        }
        for column in self.columns.iter().filter(|column| column.is_json) {
            mark_json(change, table_id, column.id)?;
        }
        Ok(())
    }
}

#[derive(Default)]
struct ColumnLayoutBuilder {
    /// The highest id of the columns before these.
    last_id: i64,
    rows: Vec<ColumnRow>,
    dimensions: BTreeMap<i64, i32>,
}

fn column_info(field: &Field, written: &Field) -> ColumnInfo {
    ColumnInfo {
        id: field_id(written),
        name: field.name().clone(),
        data_type: without_metadata(written.data_type()),
        is_json: false,
        is_uuid: false,
        nullable: field.is_nullable(),
        comment: None,
        default: None,
        initial_default: None,
    }
}

impl ColumnLayoutBuilder {
    /// Adds a column of the table, as [`ColumnLayoutBuilder::add`] does.
    fn column(&mut self, field: &Field) -> Result<Field> {
        self.add(field.name(), field, None).map_err(|hint| CatalogError::UnsupportedType {
            column: field.name().clone(),
            data_type: shown_type(field.data_type()),
            hint,
        })
    }

    /// Adds a field with its children and returns it as it is written to Parquet. `Err` holds a hint for the user.
    fn add(&mut self, name: &str, field: &Field, parent: Option<i64>) -> Result<Field, String> {
        let id = self.last_id + self.rows.len() as i64 + 1;
        let shape = storable(field.data_type())?;
        let column_type = match &shape {
            Shape::Leaf(name, _) => name.clone(),
            Shape::List(..) => "list".to_string(),
            Shape::Struct(_) => "struct".to_string(),
            Shape::Map(..) => "map".to_string(),
        };
        // DuckDB knows NOT NULL for whole columns only.
        let nullable = parent.is_some() || field.is_nullable();
        let row = ColumnRow {
            id,
            name: name.to_string(),
            column_type,
            nullable,
            parent,
            initial_default: None,
            default: None,
        };
        self.rows.push(row);
        let data_type = match shape {
            Shape::Leaf(_, canonical) => canonical,
            Shape::List(element, dimension) => {
                if let Some(dimension) = dimension {
                    self.dimensions.insert(id, dimension);
                }
                list_of(self.add("element", &element, Some(id))?.with_name("item"), dimension)
            }
            Shape::Struct(fields) => {
                let mut written = Vec::with_capacity(fields.len());
                for child in &fields {
                    written.push(self.add(child.name(), child, Some(id))?);
                }
                DataType::Struct(written.into())
            }
            Shape::Map(key, value) => {
                let key = self.add("key", &key, Some(id))?;
                let value = self.add("value", &value, Some(id))?;
                map_of(key, value)
            }
        };
        Ok(with_field_id(Field::new(name, data_type, nullable), id))
    }
}

/// Keeps the default of a column that a change made. Errors: `column_not_found` is the caller's.
pub(super) fn set_default(
    change: &CatalogChange<'_>,
    table_id: i64,
    column_id: i64,
    default: Option<&ColumnDefault>,
) -> Result<()> {
    let (text, kind) = default.map_or(("NULL", "literal"), |default| (default.text(), default.kind()));
    change
        .connection()
        .prepare_cached(
            "UPDATE ducklake_column SET default_value = ?, default_value_type = ?
             WHERE table_id = ? AND column_id = ? AND end_snapshot IS NULL",
        )?
        .execute(params![text, kind, table_id, column_id])?;
    Ok(())
}

/// A table's live columns at a snapshot, and those whose values cannot be read.
pub(super) struct LoadedColumns {
    pub(super) columns: Vec<ColumnInfo>,
    /// As [`ColumnLayout::write_schema`].
    pub(super) write_schema: SchemaRef,
    pub(super) rows: Vec<ColumnRow>,
    /// Columns of types that are not readable yet: name and type.
    pub(super) unreadable: Vec<(String, String)>,
}

/// Reads a table's columns at a snapshot.
pub(super) fn load(connection: &StoreConnection, table_id: i64, snapshot: SnapshotId) -> Result<LoadedColumns> {
    let rows = load_rows(connection, table_id, snapshot)?;
    let mut statement =
        connection.prepare_cached("SELECT column_id, dimension FROM querent_vector_column WHERE table_id = ?")?;
    let dimensions: HashMap<i64, i32> =
        statement.query_map([table_id], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<DatabaseResult<_>>()?;
    Ok(loaded(rows, dimensions, &load_tags(connection, table_id, snapshot)?))
}

/// The columns of many tables, a JSON list of ids, in a few statements for all; a table without columns is missing.
pub(super) fn load_many(
    connection: &StoreConnection,
    table_ids: &str,
    snapshot: SnapshotId,
) -> Result<HashMap<i64, LoadedColumns>> {
    let mut statement = connection.prepare_cached(
        "SELECT column_id, column_name, column_type, nulls_allowed, parent_column, initial_default,
                default_value, default_value_type, table_id
         FROM ducklake_column
         WHERE table_id IN (SELECT CAST(value AS BIGINT) FROM json_each(?1))
           AND begin_snapshot <= ?2 AND (end_snapshot IS NULL OR end_snapshot > ?2)
         ORDER BY table_id, column_order",
    )?;
    let mut rows: HashMap<i64, Vec<ColumnRow>> = HashMap::new();
    for row in
        statement.query_map(params![table_ids, snapshot], |row| Ok((row.get::<i64>(8)?, read_column_row(row)?)))?
    {
        let (table_id, row) = row?;
        rows.entry(table_id).or_default().push(row);
    }
    let mut statement = connection.prepare_cached(
        "SELECT table_id, column_id, dimension FROM querent_vector_column
         WHERE table_id IN (SELECT CAST(value AS BIGINT) FROM json_each(?1))",
    )?;
    let mut dimensions: HashMap<i64, HashMap<i64, i32>> = HashMap::new();
    for row in
        statement.query_map([table_ids], |row| Ok((row.get::<i64>(0)?, row.get::<i64>(1)?, row.get::<i32>(2)?)))?
    {
        let (table_id, column_id, dimension) = row?;
        dimensions.entry(table_id).or_default().insert(column_id, dimension);
    }
    let mut tags = load_many_tags(connection, table_ids, snapshot)?;
    let of_tables = rows.into_iter().map(|(table_id, rows)| {
        let dimensions = dimensions.remove(&table_id).unwrap_or_default();
        (table_id, loaded(rows, dimensions, &tags.remove(&table_id).unwrap_or_default()))
    });
    Ok(of_tables.collect())
}

/// The columns of a table by what is stored of them.
fn loaded(rows: Vec<ColumnRow>, dimensions: HashMap<i64, i32>, tags: &ColumnTags) -> LoadedColumns {
    let mut children: HashMap<i64, Vec<&ColumnRow>> = HashMap::new();
    for row in &rows {
        if let Some(parent) = row.parent {
            children.entry(parent).or_default().push(row);
        }
    }
    let mut tree = ColumnTree { children, dimensions, unreadable: Vec::new() };
    let mut columns = Vec::new();
    let mut fields = Vec::new();
    for row in rows.iter().filter(|row| row.parent.is_none()) {
        let field = tree.field(row, &row.name, row.nullable, &row.name);
        columns.push(ColumnInfo {
            id: row.id,
            name: row.name.clone(),
            data_type: without_metadata(field.data_type()),
            is_json: row.column_type == JSON_TYPE || tags.json.contains(&row.id),
            is_uuid: row.column_type == UUID_TYPE,
            nullable: row.nullable,
            comment: tags.comments.get(&row.id).cloned(),
            default: row.default.clone(),
            initial_default: row.initial_default.clone(),
        });
        let written = written_field(&field);
        fields.push(if row.column_type == UUID_TYPE { with_uuid_mark(written) } else { written });
    }
    let unreadable = tree.unreadable;
    LoadedColumns { columns, write_schema: Arc::new(Schema::new(fields)), rows, unreadable }
}

/// The live rows of a table's columns, nested ones included, in order.
pub(super) fn load_rows(connection: &StoreConnection, table_id: i64, snapshot: SnapshotId) -> Result<Vec<ColumnRow>> {
    let mut statement = connection.prepare_cached(
        "SELECT column_id, column_name, column_type, nulls_allowed, parent_column, initial_default,
                default_value, default_value_type
         FROM ducklake_column
         WHERE table_id = ?1 AND begin_snapshot <= ?2 AND (end_snapshot IS NULL OR end_snapshot > ?2)
         ORDER BY column_order",
    )?;
    let rows = statement.query_map([table_id, snapshot], read_column_row)?;
    Ok(rows.collect::<DatabaseResult<_>>()?)
}

fn read_column_row(row: &StoreRow<'_>) -> DatabaseResult<ColumnRow> {
    Ok(ColumnRow {
        id: row.get(0)?,
        name: row.get(1)?,
        column_type: row.get(2)?,
        nullable: row.get::<Option<bool>>(3)?.unwrap_or(true),
        parent: row.get(4)?,
        initial_default: row.get(5)?,
        default: ColumnDefault::stored(row.get(6)?, row.get::<Option<String>>(7)?.as_deref()),
    })
}

/// What is said of columns beside their types.
#[derive(Default)]
pub(super) struct ColumnTags {
    /// Comments by column id.
    pub(super) comments: HashMap<i64, String>,
    /// The ids of columns of text that hold JSON.
    json: HashSet<i64>,
}

/// Reads what is said of an object's columns.
pub(super) fn load_tags(connection: &StoreConnection, object_id: i64, snapshot: SnapshotId) -> Result<ColumnTags> {
    let mut statement = connection.prepare_cached(
        "SELECT column_id, key, value FROM ducklake_column_tag
         WHERE table_id = ?1 AND key = ?2 AND value IS NOT NULL
           AND begin_snapshot <= ?4 AND (end_snapshot IS NULL OR end_snapshot > ?4)
         UNION ALL
         SELECT object_id, key, value FROM ducklake_tag
         WHERE object_id = ?1 AND key LIKE ?3 AND value IS NOT NULL
           AND begin_snapshot <= ?4 AND (end_snapshot IS NULL OR end_snapshot > ?4)",
    )?;
    let rows = statement.query_map(params![object_id, COMMENT_KEY, JSON_KEYS, snapshot], |row| {
        Ok((row.get::<i64>(0)?, row.get::<String>(1)?, row.get::<String>(2)?))
    })?;
    let mut tags = ColumnTags::default();
    for row in rows {
        let (column_id, key, value) = row?;
        tags.add(column_id, &key, value);
    }
    Ok(tags)
}

/// As [`load_tags`], of many objects, a JSON list of ids.
pub(super) fn load_many_tags(
    connection: &StoreConnection,
    object_ids: &str,
    snapshot: SnapshotId,
) -> Result<HashMap<i64, ColumnTags>> {
    let mut statement = connection.prepare_cached(
        "SELECT column_id, key, value, table_id FROM ducklake_column_tag
         WHERE table_id IN (SELECT CAST(value AS BIGINT) FROM json_each(?1))
           AND key = ?2 AND value IS NOT NULL
           AND begin_snapshot <= ?4 AND (end_snapshot IS NULL OR end_snapshot > ?4)
         UNION ALL
         SELECT object_id, key, value, object_id FROM ducklake_tag
         WHERE object_id IN (SELECT CAST(value AS BIGINT) FROM json_each(?1))
           AND key LIKE ?3 AND value IS NOT NULL
           AND begin_snapshot <= ?4 AND (end_snapshot IS NULL OR end_snapshot > ?4)",
    )?;
    let mut tags: HashMap<i64, ColumnTags> = HashMap::new();
    for row in statement.query_map(params![object_ids, COMMENT_KEY, JSON_KEYS, snapshot], |row| {
        Ok((row.get::<i64>(3)?, row.get::<i64>(0)?, row.get::<String>(1)?, row.get::<String>(2)?))
    })? {
        let (table_id, column_id, key, value) = row?;
        tags.entry(table_id).or_default().add(column_id, &key, value);
    }
    Ok(tags)
}

impl ColumnTags {
    fn add(&mut self, column_id: i64, key: &str, value: String) {
        match key.strip_prefix(JSON_KEY) {
            Some(id) => self.json.extend(id.parse::<i64>().ok()),
            None => drop(self.comments.insert(column_id, value)),
        }
    }
}

/// Keeps that a column of text, of which it is not said yet, holds JSON.
pub(super) fn mark_json(change: &CatalogChange<'_>, table_id: i64, column_id: i64) -> Result<()> {
    change.connection().prepare_cached("INSERT INTO ducklake_tag VALUES (?, ?, NULL, ?, 'true')")?.execute(params![
        table_id,
        change.snapshot(),
        json_key(column_id)
    ])?;
    Ok(())
}

/// Keeps that a column of text is text only. Returns whether it was marked.
pub(super) fn unmark_json(change: &CatalogChange<'_>, table_id: i64, column_id: i64) -> Result<bool> {
    let unmarked = change
        .connection()
        .prepare_cached(
            "UPDATE ducklake_tag SET end_snapshot = ? WHERE object_id = ? AND key = ? AND end_snapshot IS NULL",
        )?
        .execute(params![change.snapshot(), table_id, json_key(column_id)])?;
    Ok(unmarked > 0)
}

fn json_key(column_id: i64) -> String {
    format!("{JSON_KEY}{column_id}")
}

struct ColumnTree<'a> {
    children: HashMap<i64, Vec<&'a ColumnRow>>,
    dimensions: HashMap<i64, i32>,
    unreadable: Vec<(String, String)>,
}

impl ColumnTree<'_> {
    fn field(&mut self, row: &ColumnRow, name: &str, nullable: bool, column: &str) -> Field {
        with_field_id(Field::new(name, self.data_type(row, column), nullable), row.id)
    }

    fn data_type(&mut self, row: &ColumnRow, column: &str) -> DataType {
        let children = self.children.get(&row.id).cloned().unwrap_or_default();
        match (row.column_type.as_str(), children.as_slice()) {
            ("list", [element]) => {
                let element = self.field(element, "item", true, column);
                list_of(element, self.dimensions.get(&row.id).copied())
            }
            ("struct", fields) if !fields.is_empty() => {
                let fields: Vec<Field> =
                    fields.iter().map(|child| self.field(child, &child.name, child.nullable, column)).collect();
                DataType::Struct(fields.into())
            }
            ("map", [key, value]) => {
                let key = self.field(key, "key", false, column);
                let value = self.field(value, "value", true, column);
                map_of(key, value)
            }
            (leaf, _) => match LakeType::parse(leaf) {
                LakeType::Readable(data_type) => data_type,
                LakeType::Unreadable(data_type) => {
                    self.unreadable.push((column.to_string(), leaf.to_string()));
                    data_type
                }
            },
        }
    }
}

impl TableDraft {
    /// Says which columns, all of them text, hold UUIDs: what is written to them is checked.
    pub fn declare_uuids(&mut self, names: &[String]) {
        for column in &mut self.columns {
            column.is_uuid = names.contains(&column.name);
        }
        let fields = self.write_schema.fields().iter().map(|field| match names.contains(field.name()) {
            true => with_uuid_mark(field.as_ref().clone()),
            false => field.as_ref().clone(),
        });
        self.write_schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    }
}

/// Returns whether a field of a schema to write is text of which each value is a UUID.
pub fn holds_uuids(field: &Field) -> bool {
    field.metadata().contains_key(UUID_KEY)
}

fn with_uuid_mark(field: Field) -> Field {
    let mut metadata = field.metadata().clone();
    metadata.insert(UUID_KEY.to_owned(), String::new());
    field.with_metadata(metadata)
}

fn with_field_id(field: Field, id: i64) -> Field {
    field.with_metadata(HashMap::from([(FIELD_ID_KEY.to_string(), id.to_string())]))
}

fn field_id(field: &Field) -> i64 {
    field.metadata().get(FIELD_ID_KEY).and_then(|id| id.parse().ok()).unwrap_or(0)
}

fn without_metadata(data_type: &DataType) -> DataType {
    let strip = |field: &Arc<Field>| {
        Arc::new(Field::new(field.name(), without_metadata(field.data_type()), field.is_nullable()))
    };
    match data_type {
        DataType::List(item) => DataType::List(strip(item)),
        DataType::FixedSizeList(item, dimension) => DataType::FixedSizeList(strip(item), *dimension),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(strip).collect()),
        DataType::Map(entries, sorted) => DataType::Map(strip(entries), *sorted),
        other => other.clone(),
    }
}
