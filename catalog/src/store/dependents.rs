//! Rows that are created and deleted in the transaction of their table: its relationships, its sampled values and its vector
//! indexes. Keys are in [`super::keys`].

use chrono::Utc;

use super::names::name_key;
use super::rows::to_json;
use crate::connection::{DatabaseResult, StoreConnection, params};
use crate::error::Result;
use crate::model::{NewRelationship, RelationshipOrigin};

/// Deletes the foreign keys of an object that is being dropped.
pub(super) fn delete_foreign_keys(connection: &StoreConnection, object_id: i64) -> Result<()> {
    connection
        .prepare_cached(
            "DELETE FROM querent_relationship WHERE origin = 'foreign_key' AND (from_database, from_table) =
             (SELECT database_key, key FROM querent_object WHERE object_id = ?)",
        )?
        .execute([object_id])?;
    Ok(())
}

/// Deletes the primary key and the unique constraints of a table.
pub(super) fn delete_unique_keys(connection: &StoreConnection, table_id: i64) -> Result<()> {
    connection.prepare_cached("DELETE FROM querent_key WHERE table_id = ?")?.execute([table_id])?;
    Ok(())
}

/// Deletes the sampled values of an object.
pub(crate) fn delete_values(connection: &StoreConnection, object_id: i64) -> Result<()> {
    for table in ["querent_column_value", "querent_column_profile", "querent_profile"] {
        connection.prepare_cached(&format!("DELETE FROM {table} WHERE object_id = ?"))?.execute([object_id])?;
    }
    Ok(())
}

/// The columns of an object whose values are kept.
pub(super) fn columns_with_values(connection: &StoreConnection, object_id: i64) -> Result<Vec<String>> {
    let mut statement =
        connection.prepare_cached("SELECT column_name FROM querent_column_profile WHERE object_id = ?")?;
    Ok(statement.query_map([object_id], |row| row.get::<String>(0))?.collect::<DatabaseResult<Vec<_>>>()?)
}

/// Deletes the vector indexes of a table that is being dropped; their datasets are removed afterwards.
pub(super) fn delete_vector_indexes(connection: &StoreConnection, table_id: i64) -> Result<()> {
    for statement in [
        "DELETE FROM querent_vector_index_file
         WHERE index_id IN (SELECT index_id FROM querent_vector_index WHERE table_id = ?)",
        "DELETE FROM querent_vector_index WHERE table_id = ?",
    ] {
        connection.prepare_cached(statement)?.execute([table_id])?;
    }
    Ok(())
}

/// Records a relationship; one that is already recorded keeps its id.
pub(crate) fn insert_relationship(
    connection: &StoreConnection,
    new: &NewRelationship,
    origin: RelationshipOrigin,
    subject: &str,
) -> Result<i64> {
    let id = connection
        .prepare_cached(
            "INSERT INTO querent_relationship
             (from_database, from_table, from_columns, to_database, to_table, to_columns, origin, subject, created_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
             ON CONFLICT (from_database, from_table, to_database, to_table, from_columns, to_columns, origin)
             DO UPDATE SET subject = ?8 RETURNING relationship_id",
        )?
        .query_row(
            params![
                name_key(&new.from.database),
                name_key(&new.from.table),
                to_json(&new.from_columns)?,
                name_key(&new.to.database),
                name_key(&new.to.table),
                to_json(&new.to_columns)?,
                origin.as_str(),
                subject,
                Utc::now().timestamp_micros(),
            ],
            |row| row.get(0),
        )?;
    Ok(id)
}

/// Deletes the vector indexes of a column that is being dropped; their datasets are removed afterwards.
pub(super) fn delete_vector_indexes_of_column(
    connection: &StoreConnection,
    table_id: i64,
    column_id: i64,
) -> Result<()> {
    for statement in [
        "DELETE FROM querent_vector_index_file
         WHERE index_id IN (SELECT index_id FROM querent_vector_index WHERE table_id = ? AND column_id = ?)",
        "DELETE FROM querent_vector_index WHERE table_id = ? AND column_id = ?",
    ] {
        connection.prepare_cached(statement)?.execute([table_id, column_id])?;
    }
    Ok(())
}
