//! Stored relationships, keyed by names: a table that is dropped and created again, as by a nightly load, keeps its
//! declared relationships. Foreign keys (`REFERENCES`) are deleted with the table's definition.
//!
//! Names that no longer resolve, and columns that no longer exist, are skipped when relationships are read.

use super::{JoinEdge, same_columns};
use crate::connection::{DatabaseResult, OptionalRow, StoreConnection, StoreRow, params};
use crate::error::{CatalogError, Result};
use crate::model::{
    NewRelationship, Page, PageRequest, PageToken, Relationship, RelationshipOrigin, TableInfo, TableName,
};
use crate::principal::Principal;
use crate::store::dependents::insert_relationship;
use crate::store::objects::{self, object_name};
use crate::store::resolve::{self, column_not_found};
use crate::store::rows::{MAX_PAGE, parse_id_token, read_json};
use crate::store::visible::{VisibleObjects, database_condition};
use crate::store::{SnapshotView, may_know_named, name_key};

/// The most columns of a relationship.
const MAX_COLUMNS: usize = 16;
/// The most stored relationships that are read of one table.
const MAX_STORED: usize = 64;

/// Records a relationship after checking that its tables and columns exist.
pub(crate) fn declare(view: &SnapshotView<'_>, who: &Principal, new: &NewRelationship) -> Result<Relationship> {
    let invalid = |reason: &str| CatalogError::InvalidObject { what: "relationship", reason: reason.into() };
    if new.from_columns.is_empty() || new.from_columns.len() != new.to_columns.len() {
        return Err(invalid("from_columns and to_columns need the same number of names, at least one"));
    }
    if new.from_columns.len() > MAX_COLUMNS {
        return Err(invalid("it has too many columns"));
    }
    let names = [new.from.clone(), new.to.clone()];
    let mut spelled = Vec::new();
    for ((name, table), columns) in
        names.iter().zip(resolve::resolve(view, who, &names)?).zip([&new.from_columns, &new.to_columns])
    {
        let Some(table) = table else { return Err(resolve::not_found(view, who, name)?) };
        let columns = columns.iter().map(|column| column_of(&table.info, column)).collect::<Result<Vec<_>>>()?;
        spelled.push((table.info.name, columns));
    }
    let (Some((to, to_columns)), Some((from, from_columns))) = (spelled.pop(), spelled.pop()) else {
        return Err(invalid("it needs two tables"));
    };
    if from == to && same_columns(&from_columns, &to_columns) {
        return Err(invalid("a column does not refer to itself"));
    }
    let new = NewRelationship { from, from_columns, to, to_columns };
    let id = insert_relationship(view.connection, &new, RelationshipOrigin::Declared, who.subject())?;
    Ok(Relationship {
        id: Some(id),
        from: new.from,
        from_columns: new.from_columns,
        to: new.to,
        to_columns: new.to_columns,
        origin: RelationshipOrigin::Declared,
        confidence: 1.0,
        why: why(RelationshipOrigin::Declared, who.subject()),
    })
}

/// Deletes a declared relationship that the caller may see.
pub(crate) fn remove(view: &SnapshotView<'_>, who: &Principal, id: i64) -> Result<()> {
    let unknown = || CatalogError::ObjectNotFound { what: "relationship", id: id.to_string() };
    let row = view
        .connection
        .prepare_cached(&format!("SELECT {COLUMNS} FROM querent_relationship WHERE relationship_id = ?"))?
        .query_row([id], read)
        .optional()?;
    let row = row.ok_or_else(unknown)?;
    if !is_visible(view, who, &row)? {
        return Err(unknown());
    }
    if row.origin == RelationshipOrigin::ForeignKey {
        return Err(CatalogError::InvalidObject {
            what: "relationship",
            reason: "the table's definition says so; create the table again without it".into(),
        });
    }
    view.connection.prepare_cached("DELETE FROM querent_relationship WHERE relationship_id = ?")?.execute([id])?;
    Ok(())
}

/// A page of declared relationships, oldest first.
pub(crate) fn list(
    view: &SnapshotView<'_>,
    who: &Principal,
    table: Option<&TableName>,
    page: &PageRequest,
) -> Result<Page<Relationship>> {
    let limit = page.limit.clamp(1, MAX_PAGE);
    let mut after = parse_id_token(page, "relationship")?;
    let mut items = Vec::new();
    // Rows that the caller may not see are skipped, so a page may take several reads.
    loop {
        let batch = match table {
            Some(table) => rows_of_table_after(view.connection, table, after, limit + 1)?,
            None => rows_after(view, who, after, limit + 1)?,
        };
        let is_last = batch.len() <= limit;
        for row in batch {
            after = row.id;
            if let Some(edge) = resolve_row(view, who, row)? {
                if items.len() == limit {
                    let next = items.last().and_then(|last: &Relationship| last.id);
                    return Ok(Page { items, next: next.map(|id| PageToken(id.to_string())) });
                }
                items.push(edge.relationship);
            }
        }
        if is_last {
            return Ok(Page { items, next: None });
        }
    }
}

const COLUMNS: &str =
    "relationship_id, from_database, from_table, from_columns, to_database, to_table, to_columns, origin, subject";

/// A row of `querent_relationship`: table names are keys, columns are as spelled.
pub(super) struct RelationshipRow {
    id: i64,
    from: TableName,
    from_columns: Vec<String>,
    to: TableName,
    to_columns: Vec<String>,
    origin: RelationshipOrigin,
    subject: String,
}

fn read(row: &StoreRow<'_>) -> DatabaseResult<RelationshipRow> {
    let origin: String = row.get(7)?;
    Ok(RelationshipRow {
        id: row.get(0)?,
        from: TableName { database: row.get(1)?, table: row.get(2)? },
        from_columns: read_json(row, 3)?,
        to: TableName { database: row.get(4)?, table: row.get(5)? },
        to_columns: read_json(row, 6)?,
        origin: if origin == RelationshipOrigin::ForeignKey.as_str() {
            RelationshipOrigin::ForeignKey
        } else {
            RelationshipOrigin::Declared
        },
        subject: row.get(8)?,
    })
}

/// The stored relationships of a table, in either role.
pub(super) fn rows_of_table(connection: &StoreConnection, table: &TableName) -> Result<Vec<RelationshipRow>> {
    rows_of_table_after(connection, table, 0, MAX_STORED)
}

fn rows_of_table_after(
    connection: &StoreConnection,
    table: &TableName,
    after: i64,
    limit: usize,
) -> Result<Vec<RelationshipRow>> {
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM querent_relationship WHERE from_database = ?1 AND from_table = ?2 AND relationship_id > ?3
         UNION SELECT {COLUMNS} FROM querent_relationship WHERE to_database = ?1 AND to_table = ?2 AND relationship_id > ?3
         ORDER BY relationship_id LIMIT ?4"
    ))?;
    let (database, table) = (name_key(&table.database), name_key(&table.table));
    let rows = statement.query_map(params![database, table, after, limit as i64], read)?;
    Ok(rows.collect::<DatabaseResult<_>>()?)
}

fn rows_after(view: &SnapshotView<'_>, who: &Principal, after: i64, limit: usize) -> Result<Vec<RelationshipRow>> {
    let visible = VisibleObjects::for_caller(view, who, None)?;
    let is_visible = database_condition("?2", "d.schema_id");
    let mut statement = view.connection.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM querent_relationship
         WHERE relationship_id > ?1 AND (?2 IS NULL OR EXISTS
             (SELECT 1 FROM querent_database d WHERE d.key = from_database AND {is_visible}))
         ORDER BY relationship_id LIMIT ?3"
    ))?;
    let rows = statement.query_map(params![after, visible.parameter()?, limit as i64], read)?;
    Ok(rows.collect::<DatabaseResult<_>>()?)
}

/// Whether both tables of a relationship and the columns that it names may be seen.
fn is_visible(view: &SnapshotView<'_>, who: &Principal, row: &RelationshipRow) -> Result<bool> {
    let rights = view.rights(who);
    for (table, columns) in [(&row.from, &row.from_columns), (&row.to, &row.to_columns)] {
        let sees_columns = rights.may_see_table(table) && rights.sees_columns(table, columns);
        if !sees_columns || !may_know_named(view, who, table)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The relationship of a row with its tables resolved, if both exist and may be seen.
pub(super) fn resolve_row(view: &SnapshotView<'_>, who: &Principal, row: RelationshipRow) -> Result<Option<JoinEdge>> {
    if !is_visible(view, who, &row)? {
        return Ok(None);
    }
    let find = |name: &TableName| objects::object(view.connection, &name.database, &name.table);
    let (Some(from), Some(to)) = (find(&row.from)?, find(&row.to)?) else { return Ok(None) };
    let (Some((from_name, _)), Some((to_name, _))) =
        (object_name(view.connection, from.id)?, object_name(view.connection, to.id)?)
    else {
        return Ok(None);
    };
    let relationship = Relationship {
        id: Some(row.id),
        from: from_name,
        from_columns: row.from_columns,
        to: to_name,
        to_columns: row.to_columns,
        origin: row.origin,
        confidence: 1.0,
        why: why(row.origin, &row.subject),
    };
    Ok(Some(JoinEdge { from: from.id, to: to.id, relationship }))
}

fn why(origin: RelationshipOrigin, subject: &str) -> String {
    match origin {
        RelationshipOrigin::ForeignKey => "the table's definition says so".into(),
        RelationshipOrigin::Declared | RelationshipOrigin::Inferred => format!("declared by {subject}"),
    }
}

/// A column's name as the table spells it.
fn column_of(table: &TableInfo, column: &str) -> Result<String> {
    let key = name_key(column);
    match table.columns.iter().find(|candidate| name_key(&candidate.name) == key) {
        Some(found) => Ok(found.name.clone()),
        None => Err(column_not_found(table, column)),
    }
}
