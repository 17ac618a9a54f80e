//! How tables join one another: what is declared between them, and for other pairs what names and types let one infer,
//! with the evidence of sampled values. Bounded look-ups by name; nothing goes through the catalog.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::JoinEdge;
use super::infer::{JoinTable, infer};
use super::rows::{resolve_row, rows_of_table};
use crate::connection::{DatabaseResult, params};
use crate::error::Result;
use crate::model::{Relationship, RelationshipOrigin, TableKind};
use crate::principal::Principal;
use crate::store::known_to;
use crate::store::objects::object_name;
use crate::store::relations::RelationLoader;
use crate::store::rows::to_json;
use crate::store::types::LakeType;
use crate::store::{SnapshotView, name_key};
use crate::values;

/// A database with at most this many tables is small: all of them are neighbors.
const SMALL_DATABASE: usize = 40;
/// The most names by which tables that key columns refer to are looked up.
const MAX_NAMES: usize = 64;
/// The most neighbors.
const MAX_NEIGHBORS: usize = 40;
/// The most columns that are read of all tables together.
const MAX_COLUMNS_READ: i64 = 4_000;

/// The tables with these ids as input of inference; those that are gone or may not be seen are left out.
pub(crate) fn join_tables(view: &SnapshotView<'_>, who: &Principal, ids: &[i64]) -> Result<Vec<JoinTable>> {
    let mut columns: HashMap<i64, Vec<(String, arrow_schema::DataType)>> = HashMap::new();
    let mut statement = view.connection.prepare_cached(
        "SELECT c.table_id, c.column_name, c.column_type FROM json_each(?1) ids
         JOIN ducklake_column c ON c.table_id = CAST(ids.value AS BIGINT)
         WHERE c.parent_column IS NULL AND c.begin_snapshot <= ?2 AND (c.end_snapshot IS NULL OR c.end_snapshot > ?2)
         ORDER BY ids.key, c.column_order LIMIT ?3",
    )?;
    let mut rows = statement.query(params![to_json(ids)?, view.snapshot, MAX_COLUMNS_READ])?;
    while let Some(row) = rows.next()? {
        let data_type = match LakeType::parse(&row.get::<String>(2)?) {
            LakeType::Readable(data_type) | LakeType::Unreadable(data_type) => data_type,
        };
        columns.entry(row.get(0)?).or_default().push((row.get(1)?, data_type));
    }
    let loader = RelationLoader::for_view(view);
    let mut tables = Vec::new();
    for id in ids {
        let Some((name, kind)) = object_name(view.connection, *id)? else { continue };
        let rights = view.rights(who);
        if !rights.may_see_table(&name) {
            continue;
        }
        let known = rights.columns(&name);
        match (kind, columns.remove(id)) {
            (TableKind::Managed, Some(mut columns)) => {
                columns.retain(|(column, _)| known.as_ref().is_none_or(|known| known.contains(&column.to_lowercase())));
                tables.push(JoinTable::new(*id, name, columns.into_iter()));
            }
            (TableKind::Managed, None) => {}
            (TableKind::External | TableKind::View, _) => {
                let relation = match loader.load(*id)? {
                    Some(relation) => known_to(&loader, who, relation)?,
                    None => None,
                };
                tables.extend(relation.map(|relation| JoinTable::from(relation.info())));
            }
        }
    }
    Ok(tables)
}

/// How tables join one another: declared relationships, and inferred ones for other pairs, by descending confidence.
pub(crate) fn among(view: &SnapshotView<'_>, who: &Principal, tables: &[JoinTable]) -> Result<Vec<JoinEdge>> {
    let mut edges = declared_among(view, who, tables, tables)?;
    for (position, left) in tables.iter().enumerate() {
        for right in &tables[position + 1..] {
            infer_edge(left, right, &mut edges);
        }
    }
    Ok(surest_first(edges))
}

/// As [`among`], for pairs of one of `tables` and one of `others`.
pub(crate) fn between(
    view: &SnapshotView<'_>,
    who: &Principal,
    tables: &[JoinTable],
    others: &[JoinTable],
) -> Result<Vec<JoinEdge>> {
    let mut edges = declared_among(view, who, tables, others)?;
    for left in tables {
        for right in others {
            infer_edge(left, right, &mut edges);
        }
    }
    Ok(surest_first(edges))
}

type EdgesByPair = BTreeMap<(i64, i64), JoinEdge>;

/// The declared relationships between one of `tables` and one of `others`.
fn declared_among(
    view: &SnapshotView<'_>,
    who: &Principal,
    tables: &[JoinTable],
    others: &[JoinTable],
) -> Result<EdgesByPair> {
    let mut edges = EdgesByPair::new();
    for table in tables {
        for row in rows_of_table(view.connection, &table.name)? {
            let Some(edge) = resolve_row(view, who, row)? else { continue };
            let other = if edge.from == table.id { edge.to } else { edge.from };
            let Some(other) = others.iter().find(|candidate| candidate.id == other) else { continue };
            let (from, to) = if edge.from == table.id { (table, other) } else { (other, table) };
            if from.has_columns(&edge.relationship.from_columns) && to.has_columns(&edge.relationship.to_columns) {
                edges.entry(pair(edge.from, edge.to)).or_insert(edge);
            }
        }
    }
    Ok(edges)
}

fn infer_edge(left: &JoinTable, right: &JoinTable, edges: &mut EdgesByPair) {
    if left.id == right.id || edges.contains_key(&pair(left.id, right.id)) {
        return;
    }
    if let Some(relationship) = infer(left, right) {
        let is_left = relationship.from == left.name;
        let (from, to) = if is_left { (left.id, right.id) } else { (right.id, left.id) };
        edges.insert(pair(from, to), JoinEdge { from, to, relationship });
    }
}

fn surest_first(edges: EdgesByPair) -> Vec<JoinEdge> {
    let mut edges: Vec<JoinEdge> = edges.into_values().collect();
    edges.sort_by(|a, b| b.relationship.confidence.total_cmp(&a.relationship.confidence));
    edges
}

/// Tables that may join the given ones and are not among them, found by bounded look-ups by name.
pub(crate) fn neighbors(view: &SnapshotView<'_>, who: &Principal, tables: &[JoinTable]) -> Result<Vec<i64>> {
    let known: HashSet<i64> = tables.iter().map(|table| table.id).collect();
    let mut found: Vec<i64> = Vec::new();
    let mut databases: Vec<String> = Vec::new();
    for table in tables {
        for row in rows_of_table(view.connection, &table.name)? {
            if let Some(edge) = resolve_row(view, who, row)? {
                found.extend([edge.from, edge.to]);
            }
        }
        let database = name_key(&table.name.database);
        let names = to_json(&table.referred_names(MAX_NAMES))?;
        // CROSS JOIN keeps this join order: the other one reads the whole database.
        let mut statement = view.connection.prepare_cached(
            "SELECT o.object_id FROM json_each(?2) names
             CROSS JOIN querent_object o INDEXED BY querent_ix_object
                 ON o.database_key = ?1 AND o.key = names.value LIMIT ?3",
        )?;
        let ids = statement.query_map(params![database, names, MAX_NAMES as i64], |row| row.get(0))?;
        found.extend(ids.collect::<DatabaseResult<Vec<i64>>>()?);
        if !databases.contains(&database) {
            databases.push(database);
        }
    }
    for database in &databases {
        let mut statement = view
            .connection
            .prepare_cached("SELECT object_id FROM querent_object WHERE database_key = ?1 ORDER BY key LIMIT ?2")?;
        let ids = statement.query_map(params![database, SMALL_DATABASE as i64 + 1], |row| row.get(0))?;
        let ids = ids.collect::<DatabaseResult<Vec<i64>>>()?;
        if ids.len() <= SMALL_DATABASE {
            found.extend(ids);
        }
    }
    let mut seen = known;
    found.retain(|id| seen.insert(*id));
    found.truncate(MAX_NEIGHBORS);
    Ok(found)
}

/// The relationships with their confidence raised or lowered by the sampled values of their columns.
pub(crate) fn with_evidence(
    view: &SnapshotView<'_>,
    who: &Principal,
    edges: Vec<JoinEdge>,
) -> Result<Vec<Relationship>> {
    let rights = view.rights(who);
    let mut relationships = Vec::with_capacity(edges.len());
    for JoinEdge { from, to, mut relationship } in edges {
        if let (RelationshipOrigin::Inferred, [from_column], [to_column]) =
            (relationship.origin, relationship.from_columns.as_slice(), relationship.to_columns.as_slice())
            // Sketches are of all rows, and of values before their masks.
            && rights.may_know_values(&relationship.from, from_column)
            && rights.may_know_values(&relationship.to, to_column)
            && let Some(share) = values::rows::containment(view.connection, (from, from_column), (to, to_column))?
        {
            relationship.confidence = weighed(relationship.confidence, share);
            relationship.why.push_str(&format!("; {:.0} % of sampled values match", share * 100.0));
        }
        relationships.push(relationship);
    }
    relationships.sort_by(|a, b| b.confidence.total_cmp(&a.confidence));
    Ok(relationships)
}

/// Adjusts a confidence by the share of matching values.
fn weighed(confidence: f32, share: f32) -> f32 {
    const MATCHING: f32 = 0.8;
    const DIFFERING: f32 = 0.2;
    if share >= MATCHING {
        confidence + (1.0 - confidence) / 2.0
    } else if share < DIFFERING {
        confidence / 3.0
    } else {
        confidence
    }
}

fn pair(left: i64, right: i64) -> (i64, i64) {
    (left.min(right), left.max(right))
}
