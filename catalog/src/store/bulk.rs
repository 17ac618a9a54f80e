//! Registers many tables in one snapshot. Unlike a single create, nothing is read back and composed for the schema
//! index here: a row marks the table as due, and the index composes its text later. On a server each statement is a journey: rows
//! are inserted many at a time ([`ObjectRows`]), the names of a few hundred tables looked up at once, and texts go with the rows.

use std::collections::{HashMap, HashSet};

use arrow_schema::Schema;
use uuid::Uuid;

use super::change::CatalogChange;
use super::columns::ColumnLayout;
use super::names::{check_name, folder_name, name_key};
use super::object_rows::ObjectRows;
use super::objects::ObjectName;
use super::pending::{ColumnText, TEXT_HASH_BYTES};
use super::relations::LakePath;
use super::search_text::{column_text, table_text};
use super::{databases, objects, tables, views};
use crate::connection::{ROWS_AT_ONCE, StoreConnection};
use crate::error::{CatalogError, Result};
use crate::model::{ColumnInfo, IfExists, NewTable, Registered, TableInfo, TableKind, TableName};
use crate::progress::Progress;

const TASK: &str = "registering tables";
/// Tables registered between two progress reports.
const REPORT_EVERY: u64 = 1024;
/// Tables whose names are looked up at once: as many as rows are sent, so that few of these wait when they have to go.
const BATCH: usize = ROWS_AT_ONCE;
/// Column texts whose hashes are kept, to record each only once: 32 MiB.
const MAX_KNOWN_COLUMNS: usize = 1 << 20;

/// Registers the tables, and the databases they name. Errors name the table; nothing is then registered.
pub(crate) fn register(
    change: &mut CatalogChange<'_>,
    tables: impl IntoIterator<Item = NewTable>,
    if_exists: IfExists,
    progress: &dyn Progress,
) -> Result<Registered> {
    let mut tables = tables.into_iter();
    let total = tables.size_hint().1.map_or(0, |total| total as u64);
    let mut registered = Registered::default();
    let mut registration = BulkRegistration::default();
    let mut done = 0;
    loop {
        let batch: Vec<NewTable> = tables.by_ref().take(BATCH).collect();
        if batch.is_empty() {
            break;
        }
        registration.look_up(change.connection(), &batch)?;
        for table in &batch {
            if registration.database(change, &table.name.database)? {
                registered.databases += 1;
            }
            match registration.table(change, table, if_exists)? {
                true => registered.created += 1,
                false => registered.existing += 1,
            }
            done += 1;
            if done % REPORT_EVERY == 0 {
                progress.report(TASK, done, total);
            }
        }
    }
    registration.rows.flush(change.connection())?;
    let (has_tables, has_columns) = registration.rows.has_texts();
    change.index_later(has_tables, has_columns);
    progress.report(TASK, done, done);
    Ok(registered)
}

/// What is known while tables are registered.
#[derive(Default)]
struct BulkRegistration {
    rows: ObjectRows,
    /// Databases by key: id, and name as it is spelled.
    databases: HashMap<String, (i64, String)>,
    /// Keys of database and name that the tables of the batch have and other objects, too.
    taken: HashSet<(String, String)>,
    is_writable: bool,
    /// Hashes of column texts that were added.
    known_columns: HashSet<[u8; TEXT_HASH_BYTES]>,
}

fn key_of(name: &TableName) -> (String, String) {
    (name_key(&name.database), name_key(&name.table))
}

impl BulkRegistration {
    /// Looks up the names of a batch.
    fn look_up(&mut self, connection: &StoreConnection, batch: &[NewTable]) -> Result<()> {
        self.rows.flush(connection)?;
        let names: Vec<(String, String)> = batch.iter().map(|table| key_of(&table.name)).collect();
        self.taken = objects::taken(connection, &names)?;
        Ok(())
    }

    /// Makes sure that a database is there. Returns whether it was created.
    fn database(&mut self, change: &mut CatalogChange<'_>, name: &str) -> Result<bool> {
        let key = name_key(name);
        if self.databases.contains_key(&key) {
            return Ok(false);
        }
        let connection = change.connection();
        let found = objects::database_id(connection, name)?;
        if found.is_none() {
            databases::create_checked(change, name, IfExists::Error)?;
        }
        let (id, spelled) = connection
            .prepare_cached("SELECT schema_id, name FROM querent_database WHERE key = ? ORDER BY schema_id LIMIT 1")?
            .query_row([&key], |row| Ok((row.get(0)?, row.get(1)?)))?;
        self.databases.insert(key, (id, spelled));
        Ok(found.is_none())
    }

    /// Registers a table. Returns whether it is new.
    fn table(&mut self, change: &mut CatalogChange<'_>, table: &NewTable, if_exists: IfExists) -> Result<bool> {
        let kind = if table.external.is_some() { TableKind::External } else { TableKind::Managed };
        let name = &table.name.table;
        check_name(name)?;
        let key = key_of(&table.name);
        if self.taken.contains(&key) {
            // Where the other one is of this call, its rows may wait.
            self.rows.flush(change.connection())?;
            if tables::make_room(change, &table.name, kind, if_exists)?.is_none() {
                return Ok(false);
            }
        }
        let Some((schema_id, database)) = self.databases.get(&key.0).cloned() else {
            return Err(CatalogError::Internal(format!("database `{}` was not looked up", table.name.database)));
        };
        self.taken.insert(key);
        let (object_id, columns) = match &table.external {
            Some(external) => {
                let rows = &mut self.rows;
                let object_id = views::insert_external(change, rows, schema_id, name, external, &table.schema)?;
                (object_id, described_columns(&table.schema))
            }
            None => {
                if !self.is_writable {
                    tables::refuse_encrypted(change, name)?;
                    self.is_writable = true;
                }
                let layout = ColumnLayout::from_schema(name, &table.schema)?;
                let uuid = Uuid::now_v7();
                let path = LakePath { path: folder_name(name, uuid), is_relative: true };
                let rows = &mut self.rows;
                let object_id = tables::insert_table(change, rows, schema_id, name, uuid, &path, &layout)?;
                (object_id, layout.columns)
            }
        };
        change.record_schema(format!("created_table:{}", tables::entry_name(&database, name)));
        if let Some(comment) = &table.comment {
            self.rows.add_comment(change, object_id, comment)?;
        }
        let columns = self.columns(change, table, object_id, columns)?;
        let connection = change.connection();
        let object = ObjectName { id: object_id, name: &table.name, kind, comment: table.comment.as_deref() };
        self.rows.add_object(connection, schema_id, &object)?;
        // To read a table back from a server costs several journeys.
        let text = connection.is_remote().then(|| {
            table_text(&TableInfo {
                id: object_id,
                uuid: Uuid::nil(),
                name: TableName::new(database, name.clone()),
                kind,
                comment: table.comment.clone(),
                columns,
                row_count: None,
            })
        });
        self.rows.add_table_text(connection, object_id, schema_id, text.as_deref())?;
        Ok(true)
    }

    /// Adds the comments of a new table's columns, and their texts for the schema index. Returns the columns with them.
    fn columns(
        &mut self,
        change: &CatalogChange<'_>,
        table: &NewTable,
        object_id: i64,
        mut columns: Vec<ColumnInfo>,
    ) -> Result<Vec<ColumnInfo>> {
        for (column, comment) in &table.column_comments {
            let key = name_key(column);
            let commented = columns.iter_mut().find(|known| name_key(&known.name) == key).ok_or_else(|| {
                CatalogError::ColumnNotFound { table: table.name.table.clone(), column: column.clone(), nearest: None }
            })?;
            self.rows.add_column_comment(change, object_id, commented.id, comment)?;
            commented.comment = Some(comment.clone());
        }
        for column in &columns {
            self.column_text(change.connection(), &ColumnText::new(&column.name, column_text(column)))?;
        }
        Ok(columns)
    }

    fn column_text(&mut self, connection: &StoreConnection, column: &ColumnText<'_>) -> Result<()> {
        if self.known_columns.contains(&column.hash()) {
            return Ok(());
        }
        if self.known_columns.len() < MAX_KNOWN_COLUMNS {
            self.known_columns.insert(column.hash());
        }
        self.rows.add_column_text(connection, column)
    }
}

/// The columns of an external table, whose comments go by position.
fn described_columns(schema: &Schema) -> Vec<ColumnInfo> {
    let described = schema.fields().iter().zip(1..).map(|(field, position)| ColumnInfo {
        id: position,
        name: field.name().clone(),
        data_type: field.data_type().clone(),
        is_json: false,
        is_uuid: false,
        nullable: field.is_nullable(),
        comment: None,
        default: None,
        initial_default: None,
    });
    described.collect()
}
