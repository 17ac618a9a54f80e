//! Foreign keys follow what is renamed: they are stored by the names of their tables and columns, which DuckDB may change. Declared
//! relationships follow columns. They stay with the names of tables: a load that makes a table beside the old one and lets the two
//! change names keeps them.

use std::collections::{BTreeMap, HashMap};

use super::names::name_key;
use super::rows::{read_json, to_json};
use crate::connection::{DatabaseResult, StoreConnection, StoreRow, params};
use crate::error::Result;
use crate::model::{RelationshipOrigin, TableName};
use crate::policy::RenamedTable;

/// Whether there are relationships.
pub(super) fn any(connection: &StoreConnection) -> Result<bool> {
    let mut statement = connection.prepare_cached("SELECT EXISTS (SELECT 1 FROM querent_relationship)")?;
    Ok(statement.query_row([], |row| row.get(0))?)
}

/// Gives relationships the new names of columns, and foreign keys those of tables: of all tables at once, since two may have each
/// other's names now. Called before the rows of these objects have the new names, and without the foreign keys of tables that are gone.
pub(super) fn follow_renames(connection: &StoreConnection, tables: &[RenamedTable]) -> Result<()> {
    let by_name: HashMap<(String, String), &RenamedTable> =
        tables.iter().map(|renamed| (keys_of(&renamed.known), renamed)).collect();
    let mut moved = BTreeMap::new();
    for (database, table) in by_name.keys() {
        for (id, sides) in relationships(connection, database, table)? {
            let now = sides.renamed(&by_name);
            if now != sides {
                moved.insert(id, now);
            }
        }
    }
    // Each leaves its place before another takes it.
    for id in moved.keys() {
        connection
            .prepare_cached("UPDATE querent_relationship SET from_table = ?1 WHERE relationship_id = ?2")?
            .execute(params![format!("\u{1}{id}"), *id])?;
    }
    for (id, sides) in &moved {
        sides.take_place(connection, *id)?;
    }
    Ok(())
}

fn keys_of(table: &TableName) -> (String, String) {
    (name_key(&table.database), name_key(&table.table))
}

/// The columns of a relationship and those that they refer to.
#[derive(PartialEq, Eq)]
struct RelationshipSides {
    is_foreign_key: bool,
    from: KeySide,
    to: KeySide,
}

/// A table, by the keys of its name, and columns of it.
#[derive(PartialEq, Eq)]
struct KeySide {
    database: String,
    table: String,
    columns: Vec<String>,
}

impl KeySide {
    fn renamed(&self, tables: &HashMap<(String, String), &RenamedTable>, follows_tables: bool) -> Self {
        let known = (self.database.clone(), self.table.clone());
        let follows = |renamed: &&&RenamedTable| follows_tables || keys_of(&renamed.table) == known;
        let Some(renamed) = tables.get(&known).filter(follows) else {
            return Self { database: known.0, table: known.1, columns: self.columns.clone() };
        };
        let (database, table) = keys_of(&renamed.table);
        let new_name = |column: &String| {
            let found = renamed.columns.iter().find(|(old, _)| name_key(old) == name_key(column));
            found.map_or_else(|| column.clone(), |(_, new)| new.clone())
        };
        Self { database, table, columns: self.columns.iter().map(new_name).collect() }
    }
}

impl RelationshipSides {
    fn renamed(&self, tables: &HashMap<(String, String), &RenamedTable>) -> Self {
        let is_foreign_key = self.is_foreign_key;
        let (from, to) = (self.from.renamed(tables, is_foreign_key), self.to.renamed(tables, is_foreign_key));
        Self { is_foreign_key, from, to }
    }

    /// Puts a relationship where it is by its names now. One of its kind that is there is of what is gone.
    fn take_place(&self, connection: &StoreConnection, id: i64) -> Result<()> {
        let (from_columns, to_columns) = (to_json(&self.from.columns)?, to_json(&self.to.columns)?);
        let place =
            params![self.from.database, self.from.table, from_columns, self.to.database, self.to.table, to_columns, id];
        let there = "SELECT relationship_id FROM querent_relationship
             WHERE origin = (SELECT origin FROM querent_relationship WHERE relationship_id = ?7)
               AND from_database = ?1 AND from_table = ?2 AND from_columns = ?3
               AND to_database = ?4 AND to_table = ?5 AND to_columns = ?6 AND relationship_id <> ?7";
        for table in ["querent_foreign_key", "querent_relationship"] {
            let delete = format!("DELETE FROM {table} WHERE relationship_id IN ({there})");
            connection.prepare_cached(&delete)?.execute(place)?;
        }
        connection
            .prepare_cached(
                "UPDATE querent_relationship SET from_database = ?1, from_table = ?2, from_columns = ?3,
                        to_database = ?4, to_table = ?5, to_columns = ?6 WHERE relationship_id = ?7",
            )?
            .execute(place)?;
        Ok(())
    }
}

/// Returns the relationships of a table and those that refer to it, by their ids.
fn relationships(connection: &StoreConnection, database: &str, table: &str) -> Result<Vec<(i64, RelationshipSides)>> {
    let mut statement = connection.prepare_cached(
        "SELECT relationship_id, from_database, from_table, from_columns, to_database, to_table, to_columns, origin
         FROM querent_relationship
         WHERE (from_database = ?1 AND from_table = ?2) OR (to_database = ?1 AND to_table = ?2)",
    )?;
    let rows = statement.query_map([database, table], |row| {
        let is_foreign_key = row.get::<String>(7)? == RelationshipOrigin::ForeignKey.as_str();
        Ok((row.get(0)?, RelationshipSides { is_foreign_key, from: read_side(row, 1)?, to: read_side(row, 4)? }))
    })?;
    Ok(rows.collect::<DatabaseResult<_>>()?)
}

/// Reads a side of which `first` is the first column.
fn read_side(row: &StoreRow<'_>, first: usize) -> DatabaseResult<KeySide> {
    Ok(KeySide { database: row.get(first)?, table: row.get(first + 1)?, columns: read_json(row, first + 2)? })
}
