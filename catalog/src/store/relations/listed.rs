//! Tables and external tables of a page, read in a few statements for all of them: on a server each statement is a journey.

use std::collections::HashMap;

use super::{LakePath, ObjectPlace, RowCounts, decoded_schema, described_columns, read_place};
use crate::connection::{DatabaseResult, StoreConnection, params};
use crate::error::Result;
use crate::model::{ColumnInfo, SnapshotId, TableKind};
use crate::store::columns::{self, COMMENT_KEY};
use crate::store::rows::to_json;

/// What was read of objects at a snapshot. Views are not among them, and nothing that is gone.
#[derive(Default)]
pub(super) struct ListedObjects {
    managed: HashMap<i64, ListedManaged>,
    external: HashMap<i64, ListedExternal>,
    comments: HashMap<i64, String>,
}

/// A managed table.
pub(super) struct ListedManaged {
    pub(super) place: ObjectPlace,
    pub(super) path: LakePath,
    pub(super) columns: Vec<ColumnInfo>,
    pub(super) row_count: Option<u64>,
}

/// An external table.
pub(super) struct ListedExternal {
    pub(super) place: ObjectPlace,
    pub(super) definition: String,
    pub(super) columns: Vec<ColumnInfo>,
}

impl ListedObjects {
    pub(super) fn read(connection: &StoreConnection, snapshot: SnapshotId, object_ids: &[i64]) -> Result<Self> {
        if object_ids.is_empty() {
            return Ok(Self::default());
        }
        let wanted = to_json(object_ids)?;
        Ok(Self {
            managed: managed(connection, snapshot, &wanted)?,
            external: external(connection, snapshot, &wanted)?,
            comments: comments(connection, snapshot, &wanted)?,
        })
    }

    pub(super) fn managed(&self, object_id: i64) -> Option<&ListedManaged> {
        self.managed.get(&object_id)
    }

    pub(super) fn external(&self, object_id: i64) -> Option<&ListedExternal> {
        self.external.get(&object_id)
    }

    /// The kinds that an object can be of.
    pub(super) fn kinds(&self, object_id: i64) -> &'static [TableKind] {
        match (self.managed.contains_key(&object_id), self.external.contains_key(&object_id)) {
            (true, _) => &[TableKind::Managed],
            (false, true) => &[TableKind::External],
            (false, false) => &[TableKind::Managed, TableKind::View, TableKind::External],
        }
    }

    /// An object's comment; `None` where it was not read.
    pub(super) fn comment(&self, object_id: i64) -> Option<Option<String>> {
        let is_listed = self.managed.contains_key(&object_id) || self.external.contains_key(&object_id);
        is_listed.then(|| self.comments.get(&object_id).cloned())
    }
}

fn managed(
    connection: &StoreConnection,
    snapshot: SnapshotId,
    object_ids: &str,
) -> Result<HashMap<i64, ListedManaged>> {
    let mut statement = connection.prepare_cached(
        "SELECT CAST(table_uuid AS TEXT), schema_id, table_name, path, path_is_relative, table_id FROM ducklake_table
         WHERE table_id IN (SELECT CAST(value AS BIGINT) FROM json_each(?1))
           AND begin_snapshot <= ?2 AND (end_snapshot IS NULL OR end_snapshot > ?2)",
    )?;
    let read = statement.query_map(params![object_ids, snapshot], |row| {
        Ok((row.get(5)?, read_place(row)?, LakePath { path: row.get(3)?, is_relative: row.get(4)? }))
    })?;
    let rows: Vec<(i64, ObjectPlace, LakePath)> = read.collect::<DatabaseResult<_>>()?;
    let ids: Vec<i64> = rows.iter().map(|(id, ..)| *id).collect();
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let counts = RowCounts::new(connection, snapshot)?.row_counts(&ids)?;
    let mut loaded = columns::load_many(connection, &to_json(&ids)?, snapshot)?;
    let listed = rows.into_iter().map(|(id, place, path)| {
        let columns = loaded.remove(&id).map(|loaded| loaded.columns).unwrap_or_default();
        (id, ListedManaged { place, path, columns, row_count: counts.get(&id).copied() })
    });
    Ok(listed.collect())
}

fn external(
    connection: &StoreConnection,
    snapshot: SnapshotId,
    object_ids: &str,
) -> Result<HashMap<i64, ListedExternal>> {
    let mut statement = connection.prepare_cached(
        "SELECT table_uuid, schema_id, table_name, definition, object_id FROM querent_external_table
         WHERE object_id IN (SELECT CAST(value AS BIGINT) FROM json_each(?1))
           AND begin_snapshot <= ?2 AND (end_snapshot IS NULL OR end_snapshot > ?2)",
    )?;
    let read =
        statement.query_map(params![object_ids, snapshot], |row| Ok((row.get(4)?, read_place(row)?, row.get(3)?)))?;
    let rows: Vec<(i64, ObjectPlace, String)> = read.collect::<DatabaseResult<_>>()?;
    let ids: Vec<i64> = rows.iter().map(|(id, ..)| *id).collect();
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let ids = to_json(&ids)?;
    let mut tags = columns::load_many_tags(connection, &ids, snapshot)?;
    let mut statement = connection.prepare_cached(
        "SELECT object_id, arrow_schema FROM querent_object_schema
         WHERE object_id IN (SELECT CAST(value AS BIGINT) FROM json_each(?1))",
    )?;
    let read = statement.query_map([ids.as_str()], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let mut described = HashMap::new();
    for (id, encoded) in read.collect::<DatabaseResult<Vec<(i64, Vec<u8>)>>>()? {
        let schema = decoded_schema(id, &encoded)?;
        described.insert(id, described_columns(&schema, tags.remove(&id).unwrap_or_default()));
    }
    let listed = rows.into_iter().map(|(id, place, definition)| {
        (id, ListedExternal { place, definition, columns: described.remove(&id).unwrap_or_default() })
    });
    Ok(listed.collect())
}

fn comments(connection: &StoreConnection, snapshot: SnapshotId, object_ids: &str) -> Result<HashMap<i64, String>> {
    let mut statement = connection.prepare_cached(
        "SELECT object_id, value FROM ducklake_tag
         WHERE object_id IN (SELECT CAST(value AS BIGINT) FROM json_each(?1)) AND key = ?2 AND value IS NOT NULL
           AND begin_snapshot <= ?3 AND (end_snapshot IS NULL OR end_snapshot > ?3)",
    )?;
    let read = statement
        .query_map(params![object_ids, COMMENT_KEY, snapshot], |row| Ok((row.get::<i64>(0)?, row.get::<String>(1)?)))?;
    Ok(read.collect::<DatabaseResult<_>>()?)
}
