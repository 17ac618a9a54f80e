//! Databases: schemas of the lake, with comments of ours.

use uuid::Uuid;

use super::change::CatalogChange;
use super::names::{KeyPattern, check_database_name, folder_name, name_key};
use super::rows::MAX_PAGE;
use super::visible::{VisibleObjects, database_condition};
use super::{SnapshotView, objects, tables};
use crate::connection::{DatabaseResult, StoreRow, params};
use crate::error::{CatalogError, Result};
use crate::model::{Created, DEFAULT_DATABASE, DatabaseInfo, IfExists, Page, PageRequest, PageToken, quote_identifier};
use crate::principal::Principal;

/// DuckDB's own default database: listed only once it holds something.
const DUCKDB_DEFAULT: &str = "main";

/// The database of a name.
pub(crate) fn find(view: &SnapshotView<'_>, who: &Principal, name: &str) -> Result<Option<DatabaseInfo>> {
    if !view.rights(who).may_see(name) {
        return Ok(None);
    }
    by_key(view, &name_key(name))
}

/// The id of a database, whoever may see it.
pub(super) fn id_of(view: &SnapshotView<'_>, name: &str) -> Result<Option<i64>> {
    Ok(by_key(view, &name_key(name))?.map(|database| database.id))
}

fn by_key(view: &SnapshotView<'_>, key: &str) -> Result<Option<DatabaseInfo>> {
    let mut statement = view.connection.prepare_cached(
        "SELECT schema_id, name, comment FROM querent_database WHERE key = ? ORDER BY schema_id LIMIT 1",
    )?;
    let mut rows = statement.query_map([key], read_database)?;
    Ok(rows.next().transpose()?)
}

fn read_database(row: &StoreRow<'_>) -> DatabaseResult<DatabaseInfo> {
    Ok(DatabaseInfo { id: row.get(0)?, name: row.get(1)?, comment: row.get(2)? })
}

/// A page of the databases that `who` may see, by lowercase name.
pub(crate) fn list(
    view: &SnapshotView<'_>,
    who: &Principal,
    like: Option<&str>,
    page: &PageRequest,
) -> Result<Page<DatabaseInfo>> {
    let limit = page.limit.clamp(1, MAX_PAGE);
    let pattern = KeyPattern::new(like.unwrap_or("%"));
    let below = if pattern.below.is_empty() { char::MAX.to_string() } else { pattern.below };
    let is_visible = database_condition("?5", "schema_id");
    let mut statement = view.connection.prepare_cached(&format!(
        "SELECT schema_id, name, comment FROM querent_database INDEXED BY querent_ix_database
         WHERE key > ?1 AND key >= ?2 AND key < ?3 AND key LIKE ?4 ESCAPE '\\' AND {is_visible}
           AND (key <> ?6 OR EXISTS (SELECT 1 FROM querent_object WHERE database_key = ?6))
         ORDER BY key, schema_id LIMIT ?7"
    ))?;
    let after = page.after.as_ref().map_or("", |token| token.0.as_str());
    let only = VisibleObjects::for_caller(view, who, None)?.parameter()?;
    // One more than requested shows whether there is a next page.
    let wanted = params![after, pattern.at_least, below, pattern.like, only, DUCKDB_DEFAULT, (limit + 1) as i64];
    let items = statement.query_map(wanted, read_database)?.collect::<DatabaseResult<_>>()?;
    Ok(Page::cut(items, limit, |last| PageToken(name_key(&last.name))))
}

/// Creates a database.
pub(crate) fn create_checked(
    change: &mut CatalogChange<'_>,
    name: &str,
    if_exists: IfExists,
) -> Result<Created<DatabaseInfo>> {
    check_database_name(name)?;
    let existing = by_key(&change.view(), &name_key(name))?;
    match (existing, if_exists) {
        (None, _) => {}
        (Some(_), IfExists::Ignore) => return Ok(Created::Existing),
        (Some(existing), IfExists::Error) => {
            let spelled = (existing.name != name).then_some(existing.name);
            return Err(CatalogError::AlreadyExists { name: name.into(), existing: spelled });
        }
        (Some(existing), IfExists::Replace) => drop_found(change, &existing, true)?,
    }
    Ok(Created::New(create(change, name)?))
}

/// Creates a database whose name is free.
pub(super) fn create(change: &mut CatalogChange<'_>, name: &str) -> Result<DatabaseInfo> {
    let id = change.new_object_id();
    let uuid = Uuid::now_v7();
    change
        .connection()
        .prepare_cached("INSERT INTO ducklake_schema VALUES (?, ?, ?, NULL, ?, ?, TRUE)")?
        .execute(params![id, uuid.to_string(), change.snapshot(), name, folder_name(name, uuid)])?;
    change.record_schema(format!("created_schema:{}", quote_identifier(name)));
    objects::refresh_database(change.connection(), id, change.snapshot())?;
    Ok(DatabaseInfo { id, name: name.to_string(), comment: None })
}

/// Drops a database. Returns whether there was one.
pub(crate) fn drop_named(
    change: &mut CatalogChange<'_>,
    name: &str,
    if_missing_ok: bool,
    cascade: bool,
) -> Result<bool> {
    match by_key(&change.view(), &name_key(name))? {
        Some(database) => {
            drop_found(change, &database, cascade)?;
            Ok(true)
        }
        None if if_missing_ok => Ok(false),
        None => Err(CatalogError::DatabaseNotFound { database: name.into(), nearest: None }),
    }
}

fn drop_found(change: &mut CatalogChange<'_>, database: &DatabaseInfo, cascade: bool) -> Result<()> {
    // Sessions begin in the one, DuckDB in the other.
    if [DEFAULT_DATABASE, DUCKDB_DEFAULT].contains(&name_key(&database.name).as_str()) {
        return Err(CatalogError::InvalidName {
            name: database.name.clone(),
            reason: "this database is always there; drop the tables in it instead".into(),
        });
    }
    let connection = change.connection();
    let mut statement =
        connection.prepare_cached("SELECT object_id, name, kind, comment FROM querent_object WHERE schema_id = ?")?;
    let held: Vec<_> = statement.query_map([database.id], objects::read_object)?.collect::<DatabaseResult<Vec<_>>>()?;
    if !held.is_empty() && !cascade {
        return Err(CatalogError::DatabaseNotEmpty { database: database.name.clone() });
    }
    change.record_schema(format!("dropped_schema:{}", database.id));
    for object in held {
        tables::drop_object(change, &object)?;
    }
    connection
        .prepare_cached("UPDATE ducklake_schema SET end_snapshot = ? WHERE schema_id = ? AND end_snapshot IS NULL")?
        .execute([change.snapshot(), database.id])?;
    for statement in [
        "DELETE FROM querent_graph_snapshot WHERE model_id IN
             (SELECT model_id FROM querent_graph_model WHERE database_key = ?)",
        "DELETE FROM querent_graph_model WHERE database_key = ?",
    ] {
        connection.prepare_cached(statement)?.execute([name_key(&database.name)])?;
    }
    objects::refresh_database(connection, database.id, change.snapshot())
}

/// Comments are ours alone: DuckLake has none for schemas.
pub(crate) fn set_comment(change: &mut CatalogChange<'_>, name: &str, comment: Option<&str>) -> Result<()> {
    let updated = change
        .connection()
        .prepare_cached("UPDATE querent_database SET comment = ? WHERE key = ?")?
        .execute(params![comment, name_key(name)])?;
    if updated == 0 {
        return Err(CatalogError::DatabaseNotFound { database: name.into(), nearest: None });
    }
    Ok(())
}
