//! Which objects a caller may find, as ids: what every ranking, listing and look-up is limited to before it takes the best
//! few, so that what is hidden takes no place among them.

use std::collections::BTreeSet;

use serde::Serialize;

use super::names::name_key;
use super::rows::to_json;
use super::{SnapshotView, databases, objects};
use crate::connection::DatabaseResult;
use crate::error::Result;
use crate::model::TableName;
use crate::policy::Rights;
use crate::principal::{DatabaseScope, Principal};

/// The objects that a caller may find: those of `only` (of all databases without it) that are not in one of `except`, and
/// `objects`. Views are judged one by one besides (`view_rights`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct VisibleObjects {
    pub(crate) only: Option<Vec<i64>>,
    pub(crate) except: Vec<i64>,
    /// Objects of databases that are not found as a whole.
    pub(crate) objects: Vec<i64>,
    /// The databases of those objects.
    pub(crate) partly: Vec<i64>,
    /// Those of the objects of which some columns are hidden.
    #[serde(skip)]
    pub(crate) in_part: Vec<i64>,
}

impl VisibleObjects {
    /// What `who` may find, in one database where it is named. The caller of this knows that the database may be seen.
    pub(crate) fn for_caller(view: &SnapshotView<'_>, who: &Principal, within: Option<&str>) -> Result<Self> {
        let rights = view.rights(who);
        if let Some(name) = within {
            let Some(database) = databases::find(view, who, name)? else { return Ok(Self::nothing()) };
            if rights.sees_all_of(name) {
                return Ok(Self { only: Some(vec![database.id]), ..Self::default() });
            }
            let key = name_key(name);
            let tables = rights.single_tables();
            let single = single_objects(view, rights, tables.iter().filter(|(database, _)| *database == key))?;
            return Ok(Self { only: Some(Vec::new()), ..single });
        }
        let single = single_objects(view, rights, rights.single_tables().iter())?;
        let hidden = rights.partly_hidden();
        let named: Option<BTreeSet<String>> = match (who.scope(), &hidden) {
            (DatabaseScope::All, Some(_)) => None,
            (DatabaseScope::All, None) => Some(rights.whole_databases()),
            (DatabaseScope::Only(names), _) => {
                Some(names.iter().filter(|name| rights.sees_all_of(name)).cloned().collect())
            }
        };
        let only = named.map(|names| database_ids(view, who, &names)).transpose()?;
        let except = match only {
            Some(_) => Vec::new(),
            None => database_ids_of_all(view, &hidden.unwrap_or_default())?,
        };
        Ok(Self { only, except, ..single })
    }

    fn nothing() -> Self {
        Self { only: Some(Vec::new()), ..Self::default() }
    }

    /// Whether everything may be found.
    pub(crate) fn is_all(&self) -> bool {
        self.only.is_none() && self.except.is_empty()
    }

    /// What may be found by its text, which has the names and comments of all columns.
    pub(crate) fn by_text(&self) -> Self {
        let objects = self.objects.iter().filter(|object| !self.in_part.contains(object));
        Self { objects: objects.copied().collect(), ..self.clone() }
    }

    /// Whether nothing can be found.
    pub(crate) fn is_nothing(&self) -> bool {
        self.only.as_ref().is_some_and(Vec::is_empty) && self.objects.is_empty()
    }

    /// The keys of the databases in which something may be found; `None` where these are all or more than `most`.
    pub(crate) fn databases(&self, view: &SnapshotView<'_>, most: usize) -> Result<Option<BTreeSet<String>>> {
        let Some(only) = &self.only else { return Ok(None) };
        let ids: BTreeSet<i64> = only.iter().chain(&self.partly).copied().collect();
        if ids.len() > most {
            return Ok(None);
        }
        let mut read = view.connection.prepare_cached(
            "SELECT key FROM querent_database WHERE schema_id IN (SELECT CAST(value AS BIGINT) FROM json_each(?1))",
        )?;
        let keys = read.query_map([to_json(&ids)?], |row| row.get(0))?;
        Ok(Some(keys.collect::<DatabaseResult<_>>()?))
    }

    /// Whether an object of a database may be found.
    pub(crate) fn admits(&self, object_id: i64, database_id: i64) -> bool {
        let in_whole = self.only.as_ref().is_none_or(|only| only.contains(&database_id));
        (in_whole && !self.except.contains(&database_id)) || self.objects.contains(&object_id)
    }

    /// The parameter of [`object_condition`] and [`database_condition`]; `None` where everything may be found.
    pub(crate) fn parameter(&self) -> Result<Option<String>> {
        if self.is_all() { Ok(None) } else { to_json(self).map(Some) }
    }
}

/// The condition that an object may be found, by the columns of its database's id and its own.
pub(crate) fn object_condition(parameter: &str, database: &str, object: &str) -> String {
    format!(
        "({parameter} IS NULL OR ({whole}) OR {object} IN (SELECT CAST(value AS BIGINT) FROM json_each({parameter}, '$.objects')))",
        whole = whole_condition(parameter, database)
    )
}

/// The condition that an object may be found, by the columns of its database's key and its own.
pub(crate) fn named_condition(parameter: &str, database: &str, name: &str) -> String {
    let is_visible = object_condition("p.visible", "seen.schema_id", "seen.object_id");
    format!(
        "EXISTS (SELECT 1 FROM querent_object seen, (SELECT {parameter} AS visible) p
             WHERE seen.database_key = {database} AND seen.key = {name} AND {is_visible})"
    )
}

/// The condition that a database may be found, by the column of its id.
pub(crate) fn database_condition(parameter: &str, database: &str) -> String {
    format!(
        "({parameter} IS NULL OR ({whole}) OR {database} IN (SELECT CAST(value AS BIGINT) FROM json_each({parameter}, '$.partly')))",
        whole = whole_condition(parameter, database)
    )
}

fn whole_condition(parameter: &str, database: &str) -> String {
    format!(
        "(json_type({parameter}, '$.only') = 'null' OR {database} IN (SELECT CAST(value AS BIGINT) FROM json_each({parameter}, '$.only')))
         AND {database} NOT IN (SELECT CAST(value AS BIGINT) FROM json_each({parameter}, '$.except'))"
    )
}

fn single_objects<'n>(
    view: &SnapshotView<'_>,
    rights: Rights<'_>,
    tables: impl Iterator<Item = &'n (String, String)>,
) -> Result<VisibleObjects> {
    let mut found = VisibleObjects::default();
    for (database, table) in tables {
        let name = TableName::new(database, table);
        if let Some(object) = objects::object(view.connection, &name.database, &name.table)? {
            found.objects.push(object.id);
            found.partly.extend(databases::id_of(view, database)?);
            if rights.columns(&name).is_some() {
                found.in_part.push(object.id);
            }
        }
    }
    found.partly.sort_unstable();
    found.partly.dedup();
    Ok(found)
}

fn database_ids(view: &SnapshotView<'_>, who: &Principal, names: &BTreeSet<String>) -> Result<Vec<i64>> {
    let mut ids = Vec::new();
    for name in names {
        ids.extend(databases::find(view, who, name)?.map(|database| database.id));
    }
    Ok(ids)
}

fn database_ids_of_all(view: &SnapshotView<'_>, names: &BTreeSet<String>) -> Result<Vec<i64>> {
    let mut ids = Vec::new();
    for name in names {
        ids.extend(databases::id_of(view, name)?);
    }
    Ok(ids)
}
