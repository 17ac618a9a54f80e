//! Resolves the names of a statement, and suggests the nearest name when one is unknown.

use super::names::{key_range_end, name_key, nearest};
use super::relations::RelationLoader;
use super::view_rights::{known_to, may_know_id};
use super::visible::{VisibleObjects, database_condition, object_condition};
use super::{SnapshotView, databases, objects};
use crate::connection::{StoreConnection, params};
use crate::error::{CatalogError, Result};
use crate::model::{ResolvedTable, TableInfo, TableName};
use crate::policy::is_system_database;
use crate::principal::Principal;

/// Candidates read from each index range when a name is unknown: the cost of a hint does not grow with the catalog, but with
/// what its caller may not find. That takes no place among them.
const MAX_CANDIDATES: i64 = 100;

/// Resolves all names at one snapshot, in order; `None` where an object does not exist or may not be seen.
pub(crate) fn resolve(
    view: &SnapshotView<'_>,
    who: &Principal,
    names: &[TableName],
) -> Result<Vec<Option<ResolvedTable>>> {
    let loader = RelationLoader::for_view(view);
    let mut resolved = Vec::with_capacity(names.len());
    for name in names {
        let object = match view.rights(who).may_see(&name.database) {
            true => objects::object(view.connection, &name.database, &name.table)?,
            false => None,
        };
        let relation = match object {
            Some(object) => loader.load_known(object)?,
            None => None,
        };
        let known = match relation {
            Some(relation) => known_to(&loader, who, relation)?,
            None => None,
        };
        resolved.push(known.map(|relation| relation.resolved));
    }
    Ok(resolved)
}

/// The error for a name that did not resolve.
pub(crate) fn not_found(view: &SnapshotView<'_>, who: &Principal, name: &TableName) -> Result<CatalogError> {
    let is_of_system = is_system_database(&name.database) && !name.table.is_empty();
    if is_of_system {
        let TableName { database, table } = name.clone();
        return Ok(CatalogError::TableNotFound { database, table, nearest: None });
    }
    if databases::find(view, who, &name.database)?.is_none() {
        let nearest = nearest_database(view, who, &name.database)?;
        return Ok(CatalogError::DatabaseNotFound { database: name.database.clone(), nearest });
    }
    Ok(CatalogError::TableNotFound {
        database: name.database.clone(),
        table: name.table.clone(),
        nearest: nearest_table(view, who, name)?,
    })
}

/// The error for an unknown database.
pub(crate) fn database_not_found(view: &SnapshotView<'_>, who: &Principal, name: &str) -> Result<CatalogError> {
    let nearest = nearest_database(view, who, name)?;
    Ok(CatalogError::DatabaseNotFound { database: name.to_string(), nearest })
}

/// The error for a column that a table does not have.
pub(crate) fn column_not_found(table: &TableInfo, column: &str) -> CatalogError {
    CatalogError::ColumnNotFound {
        table: table.name.table.clone(),
        column: column.to_string(),
        nearest: nearest(column, table.columns.iter().map(|column| column.name.as_str())).map(str::to_string),
    }
}

/// What `who` may find, in one database where it is named. Errors: `database_not_found`.
pub(crate) fn visible_objects(view: &SnapshotView<'_>, who: &Principal, only: Option<&str>) -> Result<VisibleObjects> {
    if let Some(name) = only
        && databases::find(view, who, name)?.is_none()
    {
        return Err(database_not_found(view, who, name)?);
    }
    VisibleObjects::for_caller(view, who, only)
}

fn nearest_table(view: &SnapshotView<'_>, who: &Principal, name: &TableName) -> Result<Option<String>> {
    let database = name_key(&name.database);
    let is_visible = object_condition("?5", "schema_id", "object_id");
    let range = |key: &str| {
        format!(
            "SELECT name FROM querent_object WHERE database_key = ?4 AND {key} >= ?1 AND {key} < ?2 AND {is_visible}
             ORDER BY {key} LIMIT ?3"
        )
    };
    let ranges = CandidateRanges {
        by_key: range("key"),
        by_reversed: Some(range("key_reversed")),
        scope: &database,
        visible: VisibleObjects::for_caller(view, who, None)?.parameter()?,
    };
    let candidates = ranges.candidates(view.connection, &name.table)?;
    let rights = view.rights(who);
    // What has the very name and did not resolve may not be known.
    let is_other = |other: &&str| name_key(other) != name_key(&name.table);
    let is_known = |other: &&str| rights.may_see_table(&TableName::new(&*name.database, *other));
    let others = candidates.iter().map(String::as_str).filter(|other| is_other(other) && is_known(other));
    let mut others: Vec<&str> = others.collect();
    let loader = RelationLoader::for_view(view);
    // A view may be there for nobody who sees the names beside it.
    while let Some(near) = nearest(&name.table, others.iter().copied()) {
        let object = objects::object(view.connection, &name.database, near)?;
        if object.map_or(Ok(false), |object| may_know_id(&loader, who, object.id, object.kind))? {
            return Ok(Some(near.to_string()));
        }
        others.retain(|other| *other != near);
    }
    // The right name in the wrong database.
    let elsewhere =
        super::listing::by_name(view, who, None, &name.table, super::NameMatch::Exact, 1)?.into_iter().next();
    Ok(elsewhere.map(|(_, table)| table.to_string()))
}

fn nearest_database(view: &SnapshotView<'_>, who: &Principal, name: &str) -> Result<Option<String>> {
    let is_visible = database_condition("?5", "schema_id");
    let ranges = CandidateRanges {
        by_key: format!(
            "SELECT name FROM querent_database WHERE key >= ?1 AND key < ?2 AND ?4 = '' AND {is_visible}
             ORDER BY key LIMIT ?3"
        ),
        by_reversed: None,
        scope: "",
        visible: VisibleObjects::for_caller(view, who, None)?.parameter()?,
    };
    let candidates = ranges.candidates(view.connection, name)?;
    let rights = view.rights(who);
    let visible = candidates.iter().map(String::as_str).filter(|candidate| rights.may_see(candidate));
    Ok(nearest(name, visible).map(str::to_string))
}

/// Where names are looked for that somebody may have meant, and who looks.
struct CandidateRanges<'a> {
    /// The first names of a range of keys.
    by_key: String,
    /// The same of keys that are written backwards.
    by_reversed: Option<String>,
    /// The key of the database that the names are in; empty where they are names of databases.
    scope: &'a str,
    /// What the caller may find.
    visible: Option<String>,
}

impl CandidateRanges<'_> {
    /// Names that share a prefix or a suffix with `wanted`, and the first names of all. Each candidate comes from one
    /// bounded range of an index; longer shared parts have ranges of their own. A typo leaves the name on one side of it
    /// intact.
    fn candidates(&self, connection: &StoreConnection, wanted: &str) -> Result<Vec<String>> {
        let key: Vec<char> = name_key(wanted).chars().collect();
        let count = key.len();
        let mut lengths: Vec<usize> = [0, 1, 2, 3].map(|cut| count.saturating_sub(cut)).to_vec();
        lengths.extend([count.div_ceil(2), 1, 0]);
        lengths.sort_unstable();
        lengths.dedup();
        let mut found = Vec::new();
        for length in lengths {
            let beginning: String = key.iter().take(length).collect();
            self.read(connection, &self.by_key, &beginning, &mut found)?;
            if let Some(by_reversed) = self.by_reversed.as_ref().filter(|_| length > 0) {
                let ending: String = key.iter().rev().take(length).collect();
                self.read(connection, by_reversed, &ending, &mut found)?;
            }
        }
        Ok(found)
    }

    fn read(&self, connection: &StoreConnection, sql: &str, prefix: &str, found: &mut Vec<String>) -> Result<()> {
        let below = match prefix {
            "" => char::MAX.to_string(),
            _ => key_range_end(prefix),
        };
        let mut statement = connection.prepare_cached(sql)?;
        let rows =
            statement.query_map(params![prefix, below, MAX_CANDIDATES, self.scope, self.visible], |row| row.get(0))?;
        for row in rows {
            found.push(row?);
        }
        Ok(())
    }
}
