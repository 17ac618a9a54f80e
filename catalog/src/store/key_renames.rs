//! Foreign keys follow what is renamed: they are stored by the names of their tables and columns, which DuckDB may change.

use super::change::CatalogChange;
use super::names::name_key;
use super::rows::{read_json, to_json};
use crate::connection::{DatabaseResult, StoreConnection, params};
use crate::error::Result;
use crate::model::TableName;

/// Gives foreign keys the new names of a table and of its columns, which DuckDB may have renamed: they are stored by name.
/// Called before the object's row has the new name.
pub(super) fn follow_renames(change: &CatalogChange<'_>, object_id: i64, table: &TableName) -> Result<()> {
    let connection = change.connection();
    let mut statement =
        connection.prepare_cached("SELECT database_key, key FROM querent_object WHERE object_id = ?")?;
    let known: Vec<(String, String)> =
        statement.query_map([object_id], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<DatabaseResult<_>>()?;
    let Some((database, key)) = known.into_iter().next() else { return Ok(()) };
    for (role, other) in ROLES {
        follow_columns(change, object_id, (&database, &key), (role, other))?;
    }
    let (new_database, new_key) = (name_key(&table.database), name_key(&table.table));
    if (&database, &key) == (&new_database, &new_key) {
        return Ok(());
    }
    for (role, other) in ROLES {
        // What would be there twice stays as it is.
        connection
            .prepare_cached(&format!(
                "UPDATE querent_relationship AS old SET {role}_database = ?1, {role}_table = ?2
                 WHERE origin = 'foreign_key' AND {role}_database = ?3 AND {role}_table = ?4 AND NOT EXISTS (
                     SELECT 1 FROM querent_relationship same
                     WHERE same.{role}_database = ?1 AND same.{role}_table = ?2 AND same.{role}_columns = old.{role}_columns
                       AND same.{other}_database = old.{other}_database AND same.{other}_table = old.{other}_table
                       AND same.{other}_columns = old.{other}_columns AND same.origin = old.origin)"
            ))?
            .execute([&new_database, &new_key, &database, &key])?;
    }
    Ok(())
}

/// The two sides of a relationship, each with the other one, as the names of its columns begin.
const ROLES: [(&str, &str); 2] = [("from", "to"), ("to", "from")];

fn follow_columns(
    change: &CatalogChange<'_>,
    table_id: i64,
    table: (&str, &str),
    (role, other): (&str, &str),
) -> Result<()> {
    let connection = change.connection();
    let mut statement = connection.prepare_cached(&format!(
        "SELECT relationship_id, {role}_columns FROM querent_relationship
         WHERE origin = 'foreign_key' AND {role}_database = ? AND {role}_table = ?"
    ))?;
    let keys: Vec<(i64, Vec<String>)> = statement
        .query_map([table.0, table.1], |row| Ok((row.get(0)?, read_json(row, 1)?)))?
        .collect::<DatabaseResult<_>>()?;
    for (id, mut names) in keys {
        let mut renamed = false;
        for name in &mut names {
            if let Some(new) = new_name(connection, table_id, name)? {
                *name = new;
                renamed = true;
            }
        }
        if renamed {
            connection
                .prepare_cached(&format!(
                    "UPDATE querent_relationship AS old SET {role}_columns = ?1
                     WHERE relationship_id = ?2 AND NOT EXISTS (
                         SELECT 1 FROM querent_relationship same
                         WHERE same.{role}_database = old.{role}_database AND same.{role}_table = old.{role}_table
                           AND same.{role}_columns = ?1 AND same.{other}_database = old.{other}_database
                           AND same.{other}_table = old.{other}_table AND same.{other}_columns = old.{other}_columns
                           AND same.origin = old.origin)"
                ))?
                .execute(params![to_json(&names)?, id])?;
        }
    }
    Ok(())
}

/// The name that a column of a managed table has now, where it is not the one that it had.
fn new_name(connection: &StoreConnection, table_id: i64, name: &str) -> Result<Option<String>> {
    let mut statement = connection.prepare_cached(
        "SELECT now.column_name FROM ducklake_column before
         JOIN ducklake_column now USING (table_id, column_id)
         WHERE before.table_id = ?1 AND before.column_name = ?2 COLLATE NOCASE AND before.parent_column IS NULL
           AND before.end_snapshot IS NOT NULL AND now.end_snapshot IS NULL
           AND NOT EXISTS (SELECT 1 FROM ducklake_column live WHERE live.table_id = ?1 AND live.parent_column IS NULL
                           AND live.column_name = ?2 COLLATE NOCASE AND live.end_snapshot IS NULL)
         ORDER BY before.end_snapshot DESC LIMIT 1",
    )?;
    let mut names = statement.query_map(params![table_id, name], |row| row.get(0))?;
    Ok(names.next().transpose()?)
}
