//! Listings: pages by key, with filters pushed down to the indexes; nothing is read beyond the page.

mod narrowed;

use std::collections::BinaryHeap;

use serde::{Deserialize, Serialize};

use super::names::{Beginning, KeyPattern, key_after, key_range_end, name_key};
use super::objects::{self, ObjectRow};
use super::relations::{RelationLoader, RowCounts};
use super::rows::{MAX_PAGE, bad_token, to_json};
use super::view_rights::{known_to, may_know, may_know_id};
use super::visible::{VisibleObjects, database_condition, object_condition};
use super::{SnapshotView, relations};
use crate::connection::{DatabaseResult, OptionalRow, params};
use crate::error::Result;
use crate::model::{
    Page, PageRequest, PageToken, RowRestriction, TableFilter, TableInfo, TableKind, TableName, TableSummary,
};
use crate::principal::Principal;

/// Rows read along the index of names, across all databases, before the databases are walked one by one: a page of a
/// more common name fills up quickly that way.
const FEW: usize = 512;
/// The same limit once [`NEAR`] databases gave less than a page: the name is common in a few databases only.
const MANY: usize = 16_384;
/// Databases that are walked before the second attempt along the index of names.
const NEAR: i64 = 256;
/// A seek in an index costs about as much as this many steps along it.
const STEPS_A_SEARCH: usize = 4;

/// The most databases that are read one by one for a caller who may see no others, where each is a journey to a server.
const MOST_JOURNEYS: usize = 32;

/// Where a listing of tables continues.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct TablePosition {
    database: String,
    key: String,
    id: i64,
}

impl TablePosition {
    /// The position of an object of a database.
    fn of(database: &str, object: &ObjectRow) -> Self {
        Self { database: name_key(database), key: name_key(&object.name), id: object.id }
    }

    fn is_before(&self, database: &str, key: &str, id: i64) -> bool {
        (self.database.as_str(), self.key.as_str(), self.id) < (database, key, id)
    }
}

/// A page of the tables that `who` may see, by lowercase database and name.
pub(crate) fn tables(
    view: &SnapshotView<'_>,
    who: &Principal,
    filter: &TableFilter,
    page: &PageRequest,
) -> Result<Page<TableSummary>> {
    let page = known_rows(view, who, filter, page)?;
    let counts = RowCounts::new(view.connection, view.snapshot)?.row_counts(&managed_ids(&page))?;
    let rights = view.rights(who);
    let mut items = Vec::with_capacity(page.items.len());
    for (database, object) in page.items {
        let mut summary = relations::summary(&counts, object, &database);
        if rights.rows(&summary.name) != RowRestriction::All {
            summary.row_count = None;
        }
        items.push(summary);
    }
    Ok(Page { items, next: page.next })
}

/// The managed tables of a page.
fn managed_ids(page: &Page<(String, ObjectRow)>) -> Vec<i64> {
    let managed = page.items.iter().filter(|(_, object)| object.kind == TableKind::Managed);
    managed.map(|(_, object)| object.id).collect()
}

/// As [`tables`], with columns.
pub(crate) fn tables_with_columns(
    view: &SnapshotView<'_>,
    who: &Principal,
    filter: &TableFilter,
    page: &PageRequest,
) -> Result<Page<TableInfo>> {
    let page = known_rows(view, who, filter, page)?;
    let ids: Vec<i64> = page.items.iter().map(|(_, object)| object.id).collect();
    let loader = RelationLoader::for_view(view).with_listed(&ids)?;
    let mut items = Vec::with_capacity(page.items.len());
    for (_, object) in page.items {
        if let Some(relation) = loader.load_known(object)?
            && let Some(known) = known_to(&loader, who, relation)?
        {
            items.push(known.resolved.info);
        }
    }
    Ok(Page { items, next: page.next })
}

/// The rows of a page, without the views that `who` may not know: they take no place on it, and no position is told by one.
fn known_rows(
    view: &SnapshotView<'_>,
    who: &Principal,
    filter: &TableFilter,
    page: &PageRequest,
) -> Result<Page<(String, ObjectRow)>> {
    let limit = page.limit.clamp(1, MAX_PAGE);
    let mut position: Option<TablePosition> = match &page.after {
        Some(token) => Some(serde_json::from_str(&token.0).map_err(|_| bad_token(token, "table listing"))?),
        None => None,
    };
    let query = RowQuery::new(filter);
    let loader = RelationLoader::for_view(view);
    let mut known = Vec::new();
    // What may not be known is skipped, so a page may take several reads.
    loop {
        // One more than requested shows whether there is a next page.
        let wanted = ListingRange { view, who, filter, after: position.as_ref(), limit: limit + 1 };
        let rows = query.read(&wanted)?;
        let is_last = rows.len() <= limit;
        position = rows.last().map(|(database, last)| TablePosition::of(database, last));
        for (database, object) in rows {
            if may_know_id(&loader, who, object.id, object.kind)? {
                known.push((database, object));
            }
        }
        if is_last || known.len() > limit {
            return page_of(known, limit);
        }
    }
}

/// A page of at most `limit` of the items, which are more where there is a next page.
fn page_of(mut items: Vec<(String, ObjectRow)>, limit: usize) -> Result<Page<(String, ObjectRow)>> {
    let has_more = items.len() > limit;
    items.truncate(limit);
    let next = match items.last() {
        Some((database, last)) if has_more => Some(PageToken(to_json(&TablePosition::of(database, last))?)),
        _ => None,
    };
    Ok(Page { items, next })
}

/// A part of a listing: the first objects after a position.
struct ListingRange<'a> {
    view: &'a SnapshotView<'a>,
    who: &'a Principal,
    filter: &'a TableFilter,
    after: Option<&'a TablePosition>,
    limit: usize,
}

impl ListingRange<'_> {
    /// The database that the position is in; before all others without one.
    fn first_database(&self) -> &str {
        self.after.map_or("", |at| at.database.as_str())
    }

    /// The key of the database that `count` others are before, from the position on; above all where there are fewer.
    fn database_after(&self, count: i64) -> Result<String> {
        let mut read = self.view.connection.prepare_cached(
            "SELECT key FROM querent_database INDEXED BY querent_ix_database WHERE key >= ?1
             ORDER BY key LIMIT 1 OFFSET ?2",
        )?;
        let key = read.query_row(params![self.first_database(), count], |row| row.get(0)).optional()?;
        Ok(key.unwrap_or_else(|| char::MAX.to_string()))
    }
}

/// The part of a filter that is about tables, as parameters.
struct RowQuery {
    at_least: String,
    below: String,
    /// `None` where every key of the range matches.
    pattern: Option<KeyPattern>,
    /// `None` for all.
    kinds: Option<Vec<TableKind>>,
}

impl RowQuery {
    fn new(filter: &TableFilter) -> Self {
        let pattern = filter.name_like.as_deref().filter(|like| *like != "%").map(KeyPattern::new);
        let (mut at_least, mut below) = match &pattern {
            Some(pattern) => (pattern.at_least.clone(), pattern.below.clone()),
            None => (String::new(), String::new()),
        };
        // A whole name is a range of one key.
        if let Some(name) = filter.name.as_deref().map(name_key) {
            below = key_after(&name);
            at_least = name;
        }
        if below.is_empty() {
            below = char::MAX.to_string();
        }
        let kinds = (!filter.kinds.is_empty()).then(|| filter.kinds.clone());
        Self { at_least, below, pattern: pattern.filter(|pattern| !pattern.is_range), kinds }
    }

    /// The first objects by database and key, by whichever way is shorter: a rare name is found along the index of
    /// names, a common one turns up soon while the databases are walked.
    fn read(&self, wanted: &ListingRange<'_>) -> Result<Vec<(String, ObjectRow)>> {
        // Steps along an index are journeys to a server.
        let steps_are_cheap = !wanted.view.connection.is_remote();
        if let Some(queries) = (!steps_are_cheap).then(|| self.narrowed(wanted.view.connection)).transpose()?.flatten()
        {
            let mut objects = Vec::new();
            for query in queries {
                objects.extend(query.read_by_database(wanted, char::MAX.encode_utf8(&mut [0; 4]))?);
            }
            sort_objects(&mut objects);
            objects.truncate(wanted.limit);
            return Ok(objects);
        }
        if steps_are_cheap && !self.at_least.is_empty() && wanted.filter.database.is_none() {
            if let Some(objects) = self.read_by_name(wanted, FEW)? {
                return Ok(objects);
            }
            let near = self.read_by_database(wanted, &wanted.database_after(NEAR)?)?;
            if near.len() == wanted.limit {
                return Ok(near);
            }
            if let Some(objects) = self.read_by_name(wanted, MANY)? {
                return Ok(objects);
            }
        }
        self.read_by_database(wanted, char::MAX.encode_utf8(&mut [0; 4]))
    }

    /// Reads along the index of names, in which the objects of a name are ordered by database; objects after the best
    /// ones found so far, or before the position, are skipped. Returns `None` when that takes more than `most` steps.
    fn read_by_name(&self, wanted: &ListingRange<'_>, most: usize) -> Result<Option<Vec<(String, ObjectRow)>>> {
        let connection = wanted.view.connection;
        let rights = wanted.view.rights(wanted.who);
        let is_visible = |database: &str, key: &str| rights.may_see_table(&TableName::new(database, key));
        let database_like = wanted.filter.database_like.as_deref().map(|like| KeyPattern::new(like).like);
        let mut in_range = connection.prepare_cached(
            "SELECT database_key, key, object_id, kind, (?4 IS NULL OR key LIKE ?4 ESCAPE '\\')
               AND (?5 IS NULL OR database_key LIKE ?5 ESCAPE '\\')
             FROM querent_object INDEXED BY querent_ix_object_key
             WHERE (key, database_key) >= (?1, ?2) AND key < ?3 ORDER BY key, database_key",
        )?;
        let first = wanted.first_database();
        let mut best: BinaryHeap<(String, String, i64)> = BinaryHeap::new();
        let mut steps_left = most;
        let mut next = Some(self.at_least.clone());
        while let Some(from) = next.take() {
            steps_left = steps_left.saturating_sub(STEPS_A_SEARCH);
            let mut rows = in_range.query(params![from, first, self.below, self.like(), database_like])?;
            let mut stepped_over = 0;
            while let Some(row) = rows.next()? {
                if steps_left == 0 {
                    return Ok(None);
                }
                steps_left -= 1;
                let (database, key) = (row.text(0)?, row.text(1)?);
                match self.pattern.as_ref().map_or(Beginning::Same, |pattern| pattern.beginning_of(key)) {
                    Beginning::Same => {}
                    Beginning::NotBefore(later) => {
                        next = Some(later);
                        break;
                    }
                    Beginning::Past => break,
                }
                let is_early = database < first;
                let worst = best.peek().filter(|_| best.len() == wanted.limit);
                if is_early || worst.is_some_and(|(worst, ..)| database > worst.as_str()) {
                    stepped_over += 1;
                    if stepped_over == STEPS_A_SEARCH {
                        next = Some(if is_early { key.to_owned() } else { key_after(key) });
                        break;
                    }
                    continue;
                }
                stepped_over = 0;
                let id: i64 = row.get(2)?;
                let is_after = wanted.after.is_none_or(|at| at.is_before(database, key, id));
                if row.get(4)? && is_after && self.is_of_kind(row.text(3)?) && is_visible(database, key) {
                    best.push((database.to_owned(), key.to_owned(), id));
                    if best.len() > wanted.limit {
                        best.pop();
                    }
                }
            }
        }
        let mut read = connection.prepare_cached(
            "SELECT o.object_id, o.name, o.kind, o.comment, d.name
             FROM querent_object o JOIN querent_database d USING (schema_id) WHERE o.object_id = ?",
        )?;
        let mut objects = Vec::with_capacity(best.len());
        for (_, _, id) in best.into_sorted_vec() {
            let row = read.query_row([id], |row| Ok((row.get::<String>(4)?, objects::read_object(row)?)));
            objects.extend(row.optional()?);
        }
        Ok(Some(objects))
    }

    /// Walks the databases up to `until`; each is a range of one index, or of one per requested kind.
    fn read_by_database(&self, wanted: &ListingRange<'_>, until: &str) -> Result<Vec<(String, ObjectRow)>> {
        let Some(kinds) = &self.kinds else { return self.walk(wanted, until, None) };
        let mut objects = Vec::new();
        for kind in kinds {
            objects.extend(self.walk(wanted, until, Some(*kind))?);
        }
        sort_objects(&mut objects);
        objects.dedup_by_key(|(_, object)| object.id);
        objects.truncate(wanted.limit);
        Ok(objects)
    }

    fn walk(
        &self,
        wanted: &ListingRange<'_>,
        until: &str,
        kind: Option<TableKind>,
    ) -> Result<Vec<(String, ObjectRow)>> {
        let ListingRange { view, who, filter, limit, .. } = wanted;
        // The walk starts at whichever bound is later.
        let (first, below) = match filter.database.as_deref().map(name_key) {
            Some(database) => (database.as_str().max(wanted.first_database()).to_owned(), key_after(&database)),
            None => (wanted.first_database().to_owned(), until.to_owned()),
        };
        let visible = VisibleObjects::for_caller(view, who, None)?;
        if view.connection.is_remote()
            && let Some(databases) = visible.databases(view, MOST_JOURNEYS)?
        {
            // PostgreSQL would walk through all others.
            let mut objects = Vec::new();
            for database in databases.iter().filter(|key| (&first..&below).contains(key)) {
                let left = limit - objects.len();
                objects.extend(self.walk_range(wanted, (database, &key_after(database)), kind, &visible, left)?);
                if objects.len() == *limit {
                    break;
                }
            }
            return Ok(objects);
        }
        self.walk_range(wanted, (&first, &below), kind, &visible, *limit)
    }

    /// The first objects of the databases from a key to another.
    fn walk_range(
        &self,
        wanted: &ListingRange<'_>,
        (first, below): (&str, &str),
        kind: Option<TableKind>,
        visible: &VisibleObjects,
        limit: usize,
    ) -> Result<Vec<(String, ObjectRow)>> {
        let ListingRange { view, filter, after, .. } = wanted;
        let (after_database, after_key, after_id) =
            after.map_or(("", "", -1), |at| (at.database.as_str(), at.key.as_str(), at.id));
        let database_like = filter.database_like.as_deref().map(|like| KeyPattern::new(like).like);
        // Without statistics SQLite does not see that the longer index is the better one.
        let (index, of_kind) = match kind {
            Some(_) => ("querent_ix_object_kind", "AND o.kind = ?11"),
            None => ("querent_ix_object", "AND ?11 IS NULL"),
        };
        let of_database = if view.connection.is_remote() { "o.schema_id" } else { "d.schema_id" };
        let (is_listed, is_visible) =
            (database_condition("?10", of_database), object_condition("?10", of_database, "o.object_id"));
        // Whichever is later, so that the walk along the index starts there.
        let start = (first, self.at_least.as_str(), -1);
        let (start_database, start_key, start_id) = (after_database, after_key, after_id).max(start);
        let sql = if view.connection.is_remote() {
            // PostgreSQL has statistics, and walks one index, or finds a rare name along the other, as they tell it. Of one table
            // it knows how far it has to walk for a page; of a join it takes a guess, and sorts the whole catalog.
            format!(
                "SELECT o.object_id, o.name, o.kind, o.comment,
                        (SELECT d.name FROM querent_database d WHERE d.schema_id = o.schema_id)
                 FROM querent_object o
                 WHERE o.key >= ?1 AND o.key < ?2 AND o.database_key >= ?3 AND o.database_key < ?4 {of_kind}
                   AND (o.database_key, o.key, o.object_id) > (?5, ?6, ?7)
                   AND (?8 IS NULL OR o.key LIKE ?8 ESCAPE '\\') AND (?9 IS NULL OR o.database_key LIKE ?9 ESCAPE '\\')
                   AND {is_listed} AND {is_visible}
                 ORDER BY o.database_key, o.key, o.object_id LIMIT ?12"
            )
        } else {
            // The order is that of the two indexes, so that the walk ends with the page.
            // The plus keeps SQLite from starting the walk at the position, which on a first page is before everything.
            format!(
                "SELECT o.object_id, o.name, o.kind, o.comment, d.name FROM querent_database d INDEXED BY querent_ix_database
                 CROSS JOIN querent_object o INDEXED BY {index}
                   ON o.database_key = d.key {of_kind}
                    AND o.key >= CASE WHEN d.key = ?5 AND ?6 > ?1 THEN ?6 ELSE ?1 END AND o.key < ?2
                 WHERE d.key >= ?3 AND d.key < ?4 AND (+d.key, o.key, o.object_id) > (?5, ?6, ?7)
                   AND (?8 IS NULL OR o.key LIKE ?8 ESCAPE '\\') AND (?9 IS NULL OR d.key LIKE ?9 ESCAPE '\\')
                   AND {is_listed} AND o.schema_id = d.schema_id AND {is_visible}
                 ORDER BY d.key, d.schema_id, o.key, o.object_id LIMIT ?12"
            )
        };
        // One that is kept is planned once for all pages, whatever they are of.
        let mut statement = match view.connection.is_remote() {
            true => view.connection.prepare(&sql)?,
            false => view.connection.prepare_cached(&sql)?,
        };
        let rows = statement.query_map(
            params![
                self.at_least,
                self.below,
                first,
                below,
                start_database,
                start_key,
                start_id,
                self.like(),
                database_like,
                visible.parameter()?,
                kind.map(TableKind::as_str),
                limit as i64,
            ],
            |row| Ok((row.get(4)?, objects::read_object(row)?)),
        )?;
        let rows = rows.collect::<DatabaseResult<Vec<(Option<String>, ObjectRow)>>>()?;
        Ok(rows.into_iter().filter_map(|(database, object)| Some((database?, object))).collect())
    }

    fn like(&self) -> Option<&str> {
        self.pattern.as_ref().map(|pattern| pattern.like.as_str())
    }

    fn is_of_kind(&self, stored: &str) -> bool {
        self.kinds.as_ref().is_none_or(|kinds| kinds.iter().any(|kind| kind.as_str() == stored))
    }
}

/// Brings objects into the order of listings.
fn sort_objects(objects: &mut [(String, ObjectRow)]) {
    objects.sort_by_cached_key(|(database, object)| (name_key(database), name_key(&object.name), object.id));
}

/// How a name is looked up for search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NameMatch {
    /// The whole name, ignoring case.
    Exact,
    /// Names with this prefix, ignoring case.
    Prefix,
}

/// The ids and names of the tables of a name or prefix in every database (or one) that `who` may see, shortest name
/// first; at most `limit`.
pub(crate) fn by_name(
    view: &SnapshotView<'_>,
    who: &Principal,
    database: Option<&str>,
    name: &str,
    how: NameMatch,
    limit: usize,
) -> Result<Vec<(i64, TableName)>> {
    let key = name_key(name);
    if key.is_empty() {
        return Ok(Vec::new());
    }
    let below = match how {
        NameMatch::Exact => key_after(&key),
        NameMatch::Prefix => key_range_end(&key),
    };
    let visible = VisibleObjects::for_caller(view, who, None)?;
    let is_visible = object_condition("?4", "o.schema_id", "o.object_id");
    let mut statement = view.connection.prepare_cached(&format!(
        "SELECT o.object_id, o.name, d.name FROM querent_object o JOIN querent_database d USING (schema_id)
         WHERE o.key >= ?1 AND o.key < ?2 AND (?3 IS NULL OR o.database_key = ?3)
           AND {is_visible}
         ORDER BY o.key, o.object_id LIMIT ?5"
    ))?;
    let (database, parameter) = (database.map(name_key), visible.parameter()?);
    let loader = RelationLoader::for_view(view);
    let mut most = limit;
    // Views that may not be known take no place, so more may have to be read.
    loop {
        let rows = statement.query_map(params![key, below, database, parameter, most as i64], |row| {
            Ok((row.get(0)?, TableName { database: row.get(2)?, table: row.get(1)? }))
        })?;
        let read: Vec<(i64, TableName)> = rows.collect::<DatabaseResult<_>>()?;
        if visible.is_all() {
            return Ok(read);
        }
        let is_last = read.len() < most;
        let mut found = Vec::with_capacity(read.len());
        for (id, name) in read {
            if loader.load(id)?.map_or(Ok(false), |relation| may_know(&loader, who, &relation))? {
                found.push((id, name));
            }
        }
        if is_last || found.len() >= limit {
            found.truncate(limit);
            return Ok(found);
        }
        most = most.saturating_mul(4);
    }
}
