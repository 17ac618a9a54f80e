//! Registers many tables in one snapshot. Unlike a single create, nothing is read back and composed for the schema
//! index here: a row marks the table as due ([`PendingObject`] without a text), and the index composes its text later.

use uuid::Uuid;

use super::change::CatalogChange;
use super::columns::ColumnLayout;
use super::names::{folder_name, name_key};
use super::objects::ObjectName;
use super::pending::PendingObject;
use super::relations::LakePath;
use super::search_text::column_text;
use super::{comments, databases, objects, tables, views};
use crate::error::{CatalogError, Result};
use crate::model::{ColumnInfo, IfExists, NewTable, Registered, TableKind};
use crate::progress::Progress;

const TASK: &str = "registering tables";
/// Tables registered between two progress reports.
const REPORT_EVERY: u64 = 1024;

/// Registers the tables, and the databases they name. Errors name the table; nothing is then registered.
pub(crate) fn register(
    change: &mut CatalogChange<'_>,
    tables: impl IntoIterator<Item = NewTable>,
    if_exists: IfExists,
    progress: &dyn Progress,
) -> Result<Registered> {
    let tables = tables.into_iter();
    let total = tables.size_hint().1.map_or(0, |total| total as u64);
    let mut registered = Registered::default();
    let mut done = 0;
    for table in tables {
        if objects::database_id(change.connection(), &table.name.database)?.is_none() {
            databases::create_checked(change, &table.name.database, IfExists::Error)?;
            registered.databases += 1;
        }
        match register_one(change, &table, if_exists)? {
            true => registered.created += 1,
            false => registered.existing += 1,
        }
        done += 1;
        if done % REPORT_EVERY == 0 {
            progress.report(TASK, done, total);
        }
    }
    progress.report(TASK, done, done);
    Ok(registered)
}

fn register_one(change: &mut CatalogChange<'_>, table: &NewTable, if_exists: IfExists) -> Result<bool> {
    let kind = if table.external.is_some() { TableKind::External } else { TableKind::Managed };
    let name = &table.name.table;
    let Some(schema_id) = tables::make_room(change, &table.name, kind, if_exists)? else { return Ok(false) };
    let (object_id, column_ids): (i64, Vec<i64>) = match &table.external {
        Some(external) => {
            let object_id = views::insert_external(change, schema_id, name, external, &table.schema)?;
            (object_id, (1..).take(table.schema.fields().len()).collect())
        }
        None => {
            tables::refuse_encrypted(change, name)?;
            let layout = ColumnLayout::from_schema(name, &table.schema)?;
            let uuid = Uuid::now_v7();
            let path = LakePath { path: folder_name(name, uuid), is_relative: true };
            let object_id = tables::insert_table(change, schema_id, name, uuid, &path, &layout)?;
            (object_id, layout.columns.iter().map(|column| column.id).collect())
        }
    };
    if let Some(comment) = &table.comment {
        tables::insert_comment(change, object_id, comment)?;
    }
    let mut column_comments = vec![None; column_ids.len()];
    for (column, comment) in &table.column_comments {
        let key = name_key(column);
        let position = table.schema.fields().iter().position(|field| name_key(field.name()) == key);
        let position = position.ok_or_else(|| CatalogError::ColumnNotFound {
            table: name.clone(),
            column: column.clone(),
            nearest: None,
        })?;
        comments::insert_for_column(change, object_id, column_ids[position], comment)?;
        column_comments[position] = Some(comment);
    }
    for ((field, id), comment) in table.schema.fields().iter().zip(column_ids).zip(column_comments) {
        let column = ColumnInfo {
            id,
            name: field.name().clone(),
            data_type: field.data_type().clone(),
            is_json: false,
            nullable: field.is_nullable(),
            comment: comment.cloned(),
            default: None,
            initial_default: None,
        };
        change.index_column_later(&column.name, column_text(&column))?;
    }
    let object = ObjectName { id: object_id, name: &table.name, kind, comment: table.comment.as_deref() };
    objects::insert_row(change.connection(), schema_id, &object)?;
    change.index_later(PendingObject::due_table(object_id, schema_id)).map(|()| true)
}
