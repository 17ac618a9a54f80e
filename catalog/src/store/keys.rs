//! Keys: `querent_key` has primary keys and unique constraints by the ids of their table and columns, so that they follow
//! what DuckDB renames; foreign keys are rows of `querent_relationship`, whose names `querent_foreign_key` has.
//!
//! Invariant: a key of which a table or a column is gone is not shown, and none is enforced.

use std::collections::HashSet;

use super::change::CatalogChange;
use super::columns::{self, ColumnRow};
use super::names::{KeyPattern, check_name, name_key};
use super::objects::{self, ObjectRow, object_name};
use super::relations::load_schema;
use super::rows::{MAX_PAGE, bad_token, read_json, to_json};
use super::visible::{VisibleObjects, named_condition};
use super::{SnapshotView, dependents, may_know_named};
use crate::connection::{DatabaseResult, StoreConnection, StoreParameter, StoreRow, params};
use crate::error::{CatalogError, Result};
use crate::model::{
    ColumnInfo, ForeignKey, KeyConstraint, KeyFilter, KeyKind, NewRelationship, Page, PageRequest, PageToken,
    ReferredKey, RelationshipOrigin, TableDraft, TableFilter, TableInfo, TableKind, TableName, UniqueKey,
};
use crate::principal::Principal;

/// The longest name that is made for a key.
const MAX_MADE_NAME_CHARS: usize = 63;

/// Records the keys of a new table, in the transaction that creates it. Errors: `invalid_object`, `column_not_found`.
pub(super) fn declare(change: &CatalogChange<'_>, table_id: i64, draft: &TableDraft) -> Result<()> {
    if draft.keys.iter().filter(|key| key.is_primary).count() > 1 {
        return Err(invalid("a table has one primary key".into()));
    }
    let mut names = KeyNames::default();
    for name in draft.keys.iter().map(|key| &key.name).chain(draft.foreign_keys.iter().map(|key| &key.name)).flatten() {
        names.take(name)?;
    }
    let connection = change.connection();
    let table = &draft.name.table;
    for key in &draft.keys {
        let ids = column_ids(table, &draft.columns, &key.columns, key.is_primary)?;
        let name = key.name.clone().unwrap_or_else(|| names.make(&unique_name(table, key)));
        insert_unique(connection, table_id, key.is_primary, &name, &ids)?;
    }
    for key in &draft.foreign_keys {
        let name = match &key.name {
            Some(name) => name.clone(),
            None => names.make(&made_name(table, &key.columns, FOREIGN_SUFFIX)),
        };
        declare_foreign(connection, &draft.name, key, &name)?;
    }
    Ok(())
}

/// Records one more key of a table. Returns whether there is anything new. Errors: `invalid_object`, `column_not_found`.
pub(super) fn add_unique(change: &CatalogChange<'_>, info: &TableInfo, key: &UniqueKey) -> Result<bool> {
    let connection = change.connection();
    let mut names = KeyNames::of_table(connection, info)?;
    let has_primary: bool = connection
        .prepare_cached("SELECT EXISTS (SELECT 1 FROM querent_key WHERE table_id = ? AND is_primary = 1)")?
        .query_row([info.id], |row| row.get(0))?;
    if key.is_primary && has_primary {
        return Err(invalid(format!("`{}` has a primary key; a table has one", info.name.table)));
    }
    let ids = column_ids(&info.name.table, &info.columns, &key.columns, key.is_primary)?;
    let name = names.given_or_made(key.name.as_ref(), &unique_name(&info.name.table, key))?;
    insert_unique(connection, info.id, key.is_primary, &name, &ids)?;
    Ok(true)
}

/// As [`add_unique`], of a foreign key, whose columns are known.
pub(super) fn add_foreign(change: &CatalogChange<'_>, info: &TableInfo, key: &ForeignKey) -> Result<bool> {
    let connection = change.connection();
    let mut names = KeyNames::of_table(connection, info)?;
    let made = made_name(&info.name.table, &key.columns, FOREIGN_SUFFIX);
    let name = names.given_or_made(key.name.as_ref(), &made)?;
    declare_foreign(connection, &info.name, key, &name)?;
    Ok(true)
}

fn insert_unique(
    connection: &StoreConnection,
    table_id: i64,
    is_primary: bool,
    name: &str,
    column_ids: &[i64],
) -> Result<()> {
    connection
        .prepare_cached("INSERT INTO querent_key (table_id, is_primary, name, column_ids) VALUES (?, ?, ?, ?)")?
        .execute(params![table_id, is_primary, name, to_json(&column_ids)?])?;
    Ok(())
}

fn declare_foreign(connection: &StoreConnection, table: &TableName, key: &ForeignKey, name: &str) -> Result<()> {
    let new = NewRelationship {
        from: table.clone(),
        from_columns: key.columns.clone(),
        to: key.table.clone(),
        to_columns: key.referred.clone(),
    };
    let id = dependents::insert_relationship(connection, &new, RelationshipOrigin::ForeignKey, "")?;
    connection
        .prepare_cached(
            "INSERT INTO querent_foreign_key (relationship_id, name) VALUES (?1, ?2)
             ON CONFLICT (relationship_id) DO UPDATE SET name = ?2",
        )?
        .execute(params![id, name])?;
    Ok(())
}

fn unique_name(table: &str, key: &UniqueKey) -> String {
    match key.is_primary {
        true => made_name(table, &[], "pkey"),
        false => made_name(table, &key.columns, "key"),
    }
}

const FOREIGN_SUFFIX: &str = "fkey";

/// The name of a key that has none, as PostgreSQL makes it: `orders_pkey`, `orders_customer_id_fkey`.
fn made_name(table: &str, columns: &[String], suffix: &str) -> String {
    let mut name = table.to_owned();
    for part in columns {
        name.push('_');
        name.push_str(part);
    }
    let kept: String = name.chars().take(MAX_MADE_NAME_CHARS - suffix.len() - 1).collect();
    format!("{kept}_{suffix}")
}

/// The names of one table's keys.
#[derive(Default)]
struct KeyNames {
    taken: HashSet<String>,
}

impl KeyNames {
    /// The names of the keys that a table has.
    fn of_table(connection: &StoreConnection, info: &TableInfo) -> Result<Self> {
        let mut names = Self::default();
        let mut unique = connection.prepare_cached("SELECT name FROM querent_key WHERE table_id = ?")?;
        let unique = unique.query_map([info.id], |row| row.get::<String>(0))?;
        let mut foreign = connection.prepare_cached(
            "SELECT f.name FROM querent_relationship r CROSS JOIN querent_foreign_key f
             ON f.relationship_id = r.relationship_id
             WHERE r.origin = 'foreign_key' AND r.from_database = ? AND r.from_table = ?",
        )?;
        let (database, table) = (name_key(&info.name.database), name_key(&info.name.table));
        let foreign = foreign.query_map(params![database, table], |row| row.get::<String>(0))?;
        for name in
            unique.collect::<DatabaseResult<Vec<_>>>()?.into_iter().chain(foreign.collect::<DatabaseResult<Vec<_>>>()?)
        {
            names.taken.insert(name_key(&name));
        }
        Ok(names)
    }

    fn given_or_made(&mut self, given: Option<&String>, wanted: &str) -> Result<String> {
        match given {
            Some(name) => self.take(name).map(|()| name.clone()),
            None => Ok(self.make(wanted)),
        }
    }

    fn take(&mut self, name: &str) -> Result<()> {
        check_name(name)?;
        match self.taken.insert(name_key(name)) {
            true => Ok(()),
            false => Err(invalid(format!("two constraints are named `{name}`"))),
        }
    }

    /// A free name that begins with `wanted`.
    fn make(&mut self, wanted: &str) -> String {
        let numbered = (1..).map(|number| format!("{wanted}{number}"));
        let mut candidates = std::iter::once(wanted.to_owned()).chain(numbered);
        let free = candidates.find(|name| !self.taken.contains(&name_key(name))).unwrap_or_else(|| wanted.to_owned());
        self.taken.insert(name_key(&free));
        free
    }
}

fn invalid(reason: String) -> CatalogError {
    CatalogError::InvalidObject { what: "key", reason }
}

/// The ids of a key's columns in a table.
fn column_ids(table: &str, columns: &[ColumnInfo], names: &[String], is_primary: bool) -> Result<Vec<i64>> {
    let mut ids = Vec::with_capacity(names.len());
    for name in names {
        let column = columns.iter().find(|column| name_key(&column.name) == name_key(name));
        let column = column.ok_or_else(|| CatalogError::ColumnNotFound {
            table: table.to_owned(),
            column: name.clone(),
            nearest: super::names::nearest(name, columns.iter().map(|column| column.name.as_str())).map(str::to_owned),
        })?;
        if is_primary && column.nullable {
            return Err(invalid(format!("column `{}` of the primary key may hold nulls", column.name)));
        }
        if ids.contains(&column.id) {
            return Err(invalid(format!("column `{}` stands twice in a key", column.name)));
        }
        ids.push(column.id);
    }
    match ids.is_empty() {
        true => Err(invalid("a key needs a column".into())),
        false => Ok(ids),
    }
}

/// Deletes the keys of an object that is being dropped.
pub(super) fn delete(connection: &StoreConnection, object_id: i64) -> Result<()> {
    dependents::delete_unique_keys(connection, object_id)?;
    connection
        .prepare_cached(
            "DELETE FROM querent_foreign_key WHERE relationship_id IN
             (SELECT relationship_id FROM querent_relationship WHERE origin = 'foreign_key' AND
              (from_database, from_table) = (SELECT database_key, key FROM querent_object WHERE object_id = ?))",
        )?
        .execute([object_id])?;
    Ok(())
}

/// Where a listing of keys continues: after the row of this id among the unique keys, or among the foreign ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct KeyPosition {
    is_foreign: bool,
    after: i64,
}

impl KeyPosition {
    fn parse(page: &PageRequest) -> Result<Self> {
        let Some(token) = &page.after else { return Ok(Self { is_foreign: false, after: 0 }) };
        let parsed = token.0.split_at_checked(1).and_then(|(kind, id)| {
            let is_foreign = match kind {
                "u" => false,
                "f" => true,
                _ => return None,
            };
            Some(Self { is_foreign, after: id.parse().ok()? })
        });
        parsed.ok_or_else(|| bad_token(token, "key listing"))
    }

    fn token(self) -> PageToken {
        PageToken(format!("{}{}", if self.is_foreign { "f" } else { "u" }, self.after))
    }
}

/// A page of the keys that `who` may see.
pub(crate) fn list(
    view: &SnapshotView<'_>,
    who: &Principal,
    filter: &KeyFilter,
    page: &PageRequest,
) -> Result<Page<KeyConstraint>> {
    let limit = page.limit.clamp(1, MAX_PAGE);
    let start = KeyPosition::parse(page)?;
    let mut items: Vec<(KeyPosition, KeyConstraint)> = Vec::new();
    for is_foreign in [false, true] {
        let is_over = start.is_foreign && !is_foreign;
        if is_over || !is_wanted(filter, is_foreign) {
            continue;
        }
        let mut after = if is_foreign == start.is_foreign { start.after } else { 0 };
        // Keys of which a part is gone are skipped, so a page may take several reads.
        loop {
            let rows = match is_foreign {
                false => unique_rows(view, who, filter, after, limit + 1)?,
                true => foreign_rows(view, who, filter, after, limit + 1)?,
            };
            let is_last = rows.len() <= limit;
            for row in rows {
                after = row.id();
                let Some(key) = row.resolve(view, filter)?.filter(|key| view.rights(who).sees_key(key)) else {
                    continue;
                };
                // In the place of a table that was dropped there may be a view by now.
                if let Some(referred) = &key.referred
                    && !may_know_named(view, who, &referred.table)?
                {
                    continue;
                }
                if items.len() == limit {
                    let next = items.last().map(|(position, _)| position.token());
                    return Ok(Page { items: items.into_iter().map(|(_, key)| key).collect(), next });
                }
                items.push((KeyPosition { is_foreign, after }, key));
            }
            if is_last {
                break;
            }
        }
    }
    Ok(Page { items: items.into_iter().map(|(_, key)| key).collect(), next: None })
}

fn is_wanted(filter: &KeyFilter, is_foreign: bool) -> bool {
    let kinds: &[KeyKind] = if is_foreign { &[KeyKind::Foreign] } else { &[KeyKind::Primary, KeyKind::Unique] };
    let of_kind = filter.kinds.is_empty() || filter.kinds.iter().any(|kind| kinds.contains(kind));
    of_kind && (is_foreign || filter.referred.is_none())
}

/// The conditions of a query, with their parameters in order.
#[derive(Default)]
struct Conditions {
    sql: String,
    values: Vec<Box<dyn StoreParameter>>,
}

impl Conditions {
    fn and(&mut self, condition: &str, value: impl StoreParameter + 'static) {
        self.sql.push_str(" AND ");
        self.sql.push_str(condition);
        self.values.push(Box::new(value));
    }

    /// The conditions on a database and a name in columns that have their keys. A name without a database is found along
    /// the index of names.
    fn and_table(&mut self, filter: &TableFilter, database: &str, name: &str) {
        match (&filter.database, &filter.name) {
            (None, Some(wanted)) => {
                let condition =
                    format!("({database}, {name}) IN (SELECT database_key, key FROM querent_object WHERE key = ?)");
                self.and(&condition, name_key(wanted));
            }
            (wanted_database, wanted) => {
                if let Some(wanted) = wanted_database {
                    self.and(&format!("{database} = ?"), name_key(wanted));
                }
                if let Some(wanted) = wanted {
                    self.and(&format!("{name} = ?"), name_key(wanted));
                }
            }
        }
        for (pattern, column) in [(&filter.database_like, database), (&filter.name_like, name)] {
            if let Some(pattern) = pattern {
                self.and(&format!("{column} LIKE ? ESCAPE '\\'"), KeyPattern::new(pattern).like);
            }
        }
    }

    /// Only tables that the caller may find, by the columns of their databases' keys and their own.
    fn and_visible(&mut self, view: &SnapshotView<'_>, who: &Principal, database: &str, name: &str) -> Result<()> {
        if let Some(parameter) = VisibleObjects::for_caller(view, who, None)?.parameter()? {
            self.and(&named_condition("?", database, name), parameter);
        }
        Ok(())
    }
}

/// A stored key: its tables and columns are yet to be found.
enum KeyRow {
    Unique(UniqueRow),
    Foreign(ForeignRow),
}

struct UniqueRow {
    id: i64,
    table_id: i64,
    is_primary: bool,
    name: String,
    column_ids: Vec<i64>,
}

struct ForeignRow {
    id: i64,
    /// `None` for a declared relationship, and for a key that is older than the names of keys.
    name: Option<String>,
    from: TableName,
    from_columns: Vec<String>,
    to: TableName,
    to_columns: Vec<String>,
}

fn unique_rows(
    view: &SnapshotView<'_>,
    who: &Principal,
    filter: &KeyFilter,
    after: i64,
    limit: usize,
) -> Result<Vec<KeyRow>> {
    let mut conditions = Conditions::default();
    conditions.and("k.key_id > ?", after);
    conditions.and_table(&filter.table, "o.database_key", "o.key");
    conditions.and_visible(view, who, "o.database_key", "o.key")?;
    let wants = |kind| filter.kinds.is_empty() || filter.kinds.contains(&kind);
    if !wants(KeyKind::Primary) || !wants(KeyKind::Unique) {
        conditions.and("k.is_primary = ?", wants(KeyKind::Primary));
    }
    // The keys of a name are found by its objects, all others along the keys: there are fewer of them than of objects.
    let from = match filter.table.name.is_some() {
        true => "querent_object o CROSS JOIN querent_key k ON k.table_id = o.object_id",
        false => "querent_key k CROSS JOIN querent_object o ON o.object_id = k.table_id",
    };
    let sql = format!(
        "SELECT k.key_id, k.table_id, k.is_primary, k.name, k.column_ids FROM {from}
         WHERE TRUE{} ORDER BY k.key_id LIMIT {limit}",
        conditions.sql
    );
    read(view.connection, &sql, &conditions, |row| {
        Ok(KeyRow::Unique(UniqueRow {
            id: row.get(0)?,
            table_id: row.get(1)?,
            is_primary: row.get(2)?,
            name: row.get(3)?,
            column_ids: read_json(row, 4)?,
        }))
    })
}

fn foreign_rows(
    view: &SnapshotView<'_>,
    who: &Principal,
    filter: &KeyFilter,
    after: i64,
    limit: usize,
) -> Result<Vec<KeyRow>> {
    let mut conditions = Conditions::default();
    conditions.and("r.relationship_id > ?", after);
    conditions.and_table(&filter.table, "r.from_database", "r.from_table");
    conditions.and_visible(view, who, "r.from_database", "r.from_table")?;
    conditions.and_visible(view, who, "r.to_database", "r.to_table")?;
    if let Some(referred) = &filter.referred {
        conditions.and_table(referred, "r.to_database", "r.to_table");
    }
    // What is declared and in the definition is one key.
    let sql = format!(
        "SELECT r.relationship_id, f.name, r.from_database, r.from_table, r.from_columns, r.to_database, r.to_table,
                r.to_columns
         FROM querent_relationship r LEFT JOIN querent_foreign_key f USING (relationship_id)
         WHERE (r.origin = 'foreign_key' OR NOT EXISTS (
                SELECT 1 FROM querent_relationship same
                WHERE (same.from_database, same.from_table, same.to_database, same.to_table, same.from_columns,
                       same.to_columns, same.origin)
                    = (r.from_database, r.from_table, r.to_database, r.to_table, r.from_columns, r.to_columns,
                       'foreign_key'))){}
         ORDER BY r.relationship_id LIMIT {limit}",
        conditions.sql
    );
    read(view.connection, &sql, &conditions, |row| {
        Ok(KeyRow::Foreign(ForeignRow {
            id: row.get(0)?,
            name: row.get(1)?,
            from: TableName { database: row.get(2)?, table: row.get(3)? },
            from_columns: read_json(row, 4)?,
            to: TableName { database: row.get(5)?, table: row.get(6)? },
            to_columns: read_json(row, 7)?,
        }))
    })
}

fn read(
    connection: &StoreConnection,
    sql: &str,
    conditions: &Conditions,
    row: impl FnMut(&StoreRow<'_>) -> DatabaseResult<KeyRow>,
) -> Result<Vec<KeyRow>> {
    let mut statement = connection.prepare_cached(sql)?;
    let values: Vec<&dyn StoreParameter> = conditions.values.iter().map(|value| value.as_ref()).collect();
    let rows = statement.query_map(values.as_slice(), row)?;
    Ok(rows.collect::<DatabaseResult<_>>()?)
}

impl KeyRow {
    fn id(&self) -> i64 {
        match self {
            KeyRow::Unique(row) => row.id,
            KeyRow::Foreign(row) => row.id,
        }
    }

    /// The key, if its tables and columns exist and its tables are of the kinds that the filter wants.
    fn resolve(self, view: &SnapshotView<'_>, filter: &KeyFilter) -> Result<Option<KeyConstraint>> {
        match self {
            KeyRow::Unique(row) => row.resolve(view, filter),
            KeyRow::Foreign(row) => row.resolve(view, filter),
        }
    }
}

impl UniqueRow {
    fn resolve(self, view: &SnapshotView<'_>, filter: &KeyFilter) -> Result<Option<KeyConstraint>> {
        let Some((table, kind)) = object_name(view.connection, self.table_id)? else { return Ok(None) };
        let found = column_names(view, self.table_id, &self.column_ids)?;
        let Some(columns) = found.filter(|_| is_of_kind(&filter.table, kind)) else { return Ok(None) };
        let kind = if self.is_primary { KeyKind::Primary } else { KeyKind::Unique };
        Ok(Some(KeyConstraint { table, name: self.name, kind, columns, referred: None }))
    }
}

impl ForeignRow {
    fn resolve(self, view: &SnapshotView<'_>, filter: &KeyFilter) -> Result<Option<KeyConstraint>> {
        let connection = view.connection;
        let find = |name: &TableName| objects::object(connection, &name.database, &name.table);
        let (Some(from), Some(to)) = (find(&self.from)?, find(&self.to)?) else { return Ok(None) };
        let referred_kind = filter.referred.as_ref().is_none_or(|filter| is_of_kind(filter, to.kind));
        if !is_of_kind(&filter.table, from.kind) || !referred_kind {
            return Ok(None);
        }
        let (Some((table, _)), Some((referred, _))) =
            (object_name(connection, from.id)?, object_name(connection, to.id)?)
        else {
            return Ok(None);
        };
        let (Some(columns), Some(referred_columns)) =
            (spelled(view, &from, &self.from_columns)?, spelled(view, &to, &self.to_columns)?)
        else {
            return Ok(None);
        };
        let name = self.name.unwrap_or_else(|| made_name(&table.table, &columns, FOREIGN_SUFFIX));
        let (key, key_columns) = match key_of_columns(view, to.id, &referred_columns)? {
            Some((name, columns)) => (Some(name), columns),
            None => (None, Vec::new()),
        };
        let referred = ReferredKey { table: referred, columns: referred_columns, key, key_columns };
        Ok(Some(KeyConstraint { table, name, kind: KeyKind::Foreign, columns, referred: Some(referred) }))
    }
}

fn is_of_kind(filter: &TableFilter, kind: TableKind) -> bool {
    filter.kinds.is_empty() || filter.kinds.contains(&kind)
}

/// The names of a managed table's columns; `None` where one is gone.
fn column_names(view: &SnapshotView<'_>, table_id: i64, ids: &[i64]) -> Result<Option<Vec<String>>> {
    let rows = columns::load_rows(view.connection, table_id, view.snapshot)?;
    let name_of = |id: &i64| rows.iter().find(|row| row.id == *id).map(|row| row.name.clone());
    Ok(ids.iter().map(name_of).collect())
}

/// The columns as their table spells them; `None` where one is gone.
fn spelled(view: &SnapshotView<'_>, object: &ObjectRow, columns: &[String]) -> Result<Option<Vec<String>>> {
    let names: Vec<String> = match object.kind {
        TableKind::Managed => {
            let rows = columns::load_rows(view.connection, object.id, view.snapshot)?;
            rows.into_iter().filter(ColumnRow::is_whole_column).map(|row| row.name).collect()
        }
        TableKind::External | TableKind::View => {
            let schema = load_schema(view.connection, object.id)?;
            schema.iter().flat_map(|schema| schema.fields().iter().map(|field| field.name().clone())).collect()
        }
    };
    let find = |column: &String| names.iter().find(|name| name_key(name) == name_key(column)).cloned();
    Ok(columns.iter().map(find).collect())
}

/// The primary key, else the unique constraint, that has exactly these columns, in any order: its name and its columns.
fn key_of_columns(view: &SnapshotView<'_>, table_id: i64, columns: &[String]) -> Result<Option<(String, Vec<String>)>> {
    let mut statement = view.connection.prepare_cached(
        "SELECT name, column_ids FROM querent_key WHERE table_id = ? ORDER BY is_primary DESC, key_id",
    )?;
    let keys: Vec<(String, Vec<i64>)> =
        statement.query_map([table_id], |row| Ok((row.get(0)?, read_json(row, 1)?)))?.collect::<DatabaseResult<_>>()?;
    let wanted: HashSet<&String> = columns.iter().collect();
    for (name, ids) in keys {
        if let Some(names) = column_names(view, table_id, &ids)?
            && names.iter().collect::<HashSet<_>>() == wanted
        {
            return Ok(Some((name, names)));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_made_as_postgresql_makes_them() {
        assert_eq!(made_name("orders", &[], "pkey"), "orders_pkey");
        let columns = ["customer_id".to_owned(), "day".to_owned()];
        assert_eq!(made_name("orders", &columns, "fkey"), "orders_customer_id_day_fkey");
        assert_eq!(made_name(&"é".repeat(200), &[], "pkey").chars().count(), MAX_MADE_NAME_CHARS);
    }

    #[test]
    fn made_names_are_free_and_given_ones_stand_once() {
        let mut names = KeyNames::default();
        names.take("t_a_key").unwrap();
        assert_eq!(names.make("t_a_key"), "t_a_key1");
        assert_eq!(names.make("t_a_key"), "t_a_key2");
        assert_eq!(names.take("T_A_KEY").unwrap_err().code(), "invalid_object");
    }

    #[test]
    fn tokens_come_back() {
        for position in [KeyPosition { is_foreign: false, after: 7 }, KeyPosition { is_foreign: true, after: 0 }] {
            let page = PageRequest { limit: 1, after: Some(position.token()) };
            assert_eq!(KeyPosition::parse(&page).unwrap(), position);
        }
        for bad in ["", "x1", "u", "fé"] {
            let page = PageRequest { limit: 1, after: Some(PageToken(bad.into())) };
            assert!(KeyPosition::parse(&page).is_err(), "{bad}");
        }
    }
}
