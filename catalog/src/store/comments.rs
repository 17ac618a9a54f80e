//! Comments: tags of the lake, for tables, views, external tables and their columns.

use super::change::CatalogChange;
use super::columns::COMMENT_KEY;
use super::names::name_key;
use super::object_rows::ObjectRows;
use super::objects;
use super::relations::{self, StoredRelation};
use super::resolve::column_not_found;
use super::tables::{insert_comment, unknown_table};
use crate::connection::params;
use crate::error::Result;
use crate::model::{TableKind, TableName};

/// Sets or removes comments of an object and of its columns: of each the column, where it is one's, and the comment.
pub(crate) fn set(
    change: &mut CatalogChange<'_>,
    name: &TableName,
    comments: &[(Option<String>, Option<String>)],
) -> Result<()> {
    let connection = change.connection();
    let object = objects::object(connection, &name.database, &name.table)?.ok_or_else(|| unknown_table(name))?;
    let relation = relations::load(connection, object.id, change.base())?.ok_or_else(|| unknown_table(name))?;
    for (column, comment) in comments {
        let comment = comment.as_deref();
        match column {
            None => set_object(change, object.id, comment)?,
            Some(column) => set_column(change, &relation, column_id(&relation, column)?, comment)?,
        }
    }
    let altered = match object.kind {
        TableKind::View => "altered_view",
        TableKind::Managed | TableKind::External => "altered_table",
    };
    change.record_schema(format!("{altered}:{}", object.id));
    objects::refresh(change, object.id, change.snapshot())?;
    Ok(())
}

fn set_object(change: &CatalogChange<'_>, object_id: i64, comment: Option<&str>) -> Result<()> {
    change
        .connection()
        .prepare_cached(
            "UPDATE ducklake_tag SET end_snapshot = ? WHERE object_id = ? AND key = ? AND end_snapshot IS NULL",
        )?
        .execute(params![change.snapshot(), object_id, COMMENT_KEY])?;
    match comment {
        Some(comment) => insert_comment(change, object_id, comment),
        None => Ok(()),
    }
}

fn set_column(
    change: &CatalogChange<'_>,
    relation: &StoredRelation,
    column_id: i64,
    comment: Option<&str>,
) -> Result<()> {
    let connection = change.connection();
    let object_id = relation.info().id;
    connection
        .prepare_cached(
            "UPDATE ducklake_column_tag SET end_snapshot = ?
             WHERE table_id = ? AND column_id = ? AND key = ? AND end_snapshot IS NULL",
        )?
        .execute(params![change.snapshot(), object_id, column_id, COMMENT_KEY])?;
    match comment {
        Some(comment) => {
            let mut rows = ObjectRows::default();
            rows.add_column_comment(change, object_id, column_id, comment)?;
            rows.flush(connection)
        }
        None => Ok(()),
    }
}

/// The id under which a column's comment is stored: its own, or its position in an external table or view.
fn column_id(relation: &StoredRelation, column: &str) -> Result<i64> {
    let info = relation.info();
    let key = name_key(column);
    let found = info.columns.iter().zip(1..).find(|(candidate, _)| name_key(&candidate.name) == key);
    match found {
        Some((found, position)) => Ok(if info.kind == TableKind::Managed { found.id } else { position }),
        None => Err(column_not_found(info, column)),
    }
}
