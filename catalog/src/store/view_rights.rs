//! Who may know a view. A view over what its reader may not see cannot be read by it, and its text, its columns and the errors
//! of its plan would tell what is hidden: for such a reader it is not there. This is decided where objects are loaded and
//! listed, so that no door can forget it.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use super::relations::{RelationLoader, StoredRelation};
use super::{SnapshotView, objects};
use crate::error::Result;
use crate::model::{SYSTEM_DATABASE, TableKind, TableName, TableSource};
use crate::principal::Principal;

/// Returns the tables that a view's query names, by its text and the database where bare names resolve; `None` where the text
/// cannot be read.
pub type ViewReferences = fn(sql: &str, default_database: &str) -> Option<Vec<TableName>>;

/// The other database of system tables.
const INFORMATION_SCHEMA: &str = "information_schema";
/// How deep views may stand on one another.
const MAX_VIEW_DEPTH: usize = 16;

static REFERENCES: OnceLock<ViewReferences> = OnceLock::new();

/// Says how the text of a view is read. Where nobody has, callers who may see some databases only see no views.
pub fn read_views_with(references: ViewReferences) {
    // Whoever says it again says the same.
    let _ = REFERENCES.set(references);
}

/// Returns the tables that the text of a query names; `None` where it cannot be read.
pub(crate) fn tables_named(sql: &str, default_database: &str) -> Option<Vec<TableName>> {
    REFERENCES.get().and_then(|references| references(sql, default_database))
}

/// Returns an object as `who` knows it: without the columns that it does not see; `None` where it may not know it.
pub(crate) fn known_to(
    loader: &RelationLoader<'_>,
    who: &Principal,
    mut relation: StoredRelation,
) -> Result<Option<StoredRelation>> {
    if !may_know(loader, who, &relation)? {
        return Ok(None);
    }
    relation.resolved.restriction = loader.rights(who).restrict(&mut relation.resolved.info).map(Arc::new);
    // Policies are about tables; a view that one names after all is not there.
    let is_bound_view = relation.info().kind == TableKind::View && relation.resolved.restriction.is_some();
    Ok((!is_bound_view).then_some(relation))
}

/// Returns whether `who` may know an object.
pub(crate) fn may_know(loader: &RelationLoader<'_>, who: &Principal, relation: &StoredRelation) -> Result<bool> {
    match relation.info().kind {
        _ if loader.rights(who).sees_all() => Ok(true),
        TableKind::View => may_read(loader, who, relation, MAX_VIEW_DEPTH),
        TableKind::Managed | TableKind::External => Ok(loader.rights(who).may_see_table(&relation.info().name)),
    }
}

/// As [`may_know`], of an object by id that a listing found among what `who` may find.
pub(crate) fn may_know_id(loader: &RelationLoader<'_>, who: &Principal, id: i64, kind: TableKind) -> Result<bool> {
    if loader.rights(who).sees_all() || kind != TableKind::View {
        return Ok(true);
    }
    loader.load(id)?.map_or(Ok(false), |relation| may_know(loader, who, &relation))
}

/// Whether `who` may know what is stored about an object by its name: what is stored about a view has the view's name and
/// columns. Of other objects rights decide.
pub(crate) fn may_know_named(view: &SnapshotView<'_>, who: &Principal, name: &TableName) -> Result<bool> {
    if view.rights(who).sees_all() {
        return Ok(true);
    }
    match objects::object(view.connection, &name.database, &name.table)? {
        Some(object) => may_know_id(&RelationLoader::for_view(view), who, object.id, object.kind),
        None => Ok(true),
    }
}

/// Returns those of some objects that `who` may know.
pub(crate) fn known_of(view: &SnapshotView<'_>, who: &Principal, ids: BTreeSet<i64>) -> Result<BTreeSet<i64>> {
    let loader = RelationLoader::for_view(view);
    let mut known = BTreeSet::new();
    for id in ids {
        let found = objects::object_name(view.connection, id)?;
        if found.map_or(Ok(false), |(_, kind)| may_know_id(&loader, who, id, kind))? {
            known.insert(id);
        }
    }
    Ok(known)
}

fn may_read(loader: &RelationLoader<'_>, who: &Principal, relation: &StoredRelation, depth: usize) -> Result<bool> {
    let rights = loader.rights(who);
    if !rights.may_see_table(&relation.info().name) {
        return Ok(false);
    }
    let TableSource::View { sql, default_database } = &relation.resolved.source else { return Ok(true) };
    let (Some(named), Some(depth)) = (tables_named(sql, default_database), depth.checked_sub(1)) else {
        return Ok(false);
    };
    for name in named {
        if [SYSTEM_DATABASE, INFORMATION_SCHEMA].iter().any(|own| own.eq_ignore_ascii_case(&name.database)) {
            continue;
        }
        // The text of a view, and the errors of its plan, tell of columns too.
        if !rights.may_see_table(&name) || rights.columns(&name).is_some() {
            return Ok(false);
        }
        let Some(object) = objects::object(loader.connection(), &name.database, &name.table)? else { continue };
        if object.kind == TableKind::View
            && let Some(below) = loader.load_known(object)?
            && !may_read(loader, who, &below, depth)?
        {
            return Ok(false);
        }
    }
    Ok(true)
}
