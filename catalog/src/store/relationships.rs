//! Declared relationships as stored, by name: a table that is dropped and made again, as a nightly load does, keeps
//! what people declared of it. What its definition says (`REFERENCES`) goes with the definition.
//!
//! Names that no longer resolve, and columns that are gone, are passed over when relationships are read.

use std::collections::{BTreeMap, HashMap, HashSet};

use chrono::Utc;
use rusqlite::{Connection, OptionalExtension, params};

use super::relations::Loader;
use super::types::LakeType;
use super::{View, name_key, objects, resolve, values};
use crate::relationships::infer::{JoinTable, infer};
use crate::relationships::{Edge, same_columns};
use crate::{
    CatalogError, DatabaseScope, NewRelationship, Page, PageRequest, PageToken, Principal, Relationship,
    RelationshipOrigin, Result, TableDraft, TableInfo, TableKind, TableName,
};

/// Part of the store's migrations.
pub(super) const RELATIONSHIPS_DDL: &str = "
CREATE TABLE querent_relationship (relationship_id INTEGER PRIMARY KEY AUTOINCREMENT, from_database VARCHAR NOT NULL, from_table VARCHAR NOT NULL, from_columns VARCHAR NOT NULL, to_database VARCHAR NOT NULL, to_table VARCHAR NOT NULL, to_columns VARCHAR NOT NULL, origin VARCHAR NOT NULL, subject VARCHAR NOT NULL, created_at BIGINT NOT NULL);
CREATE UNIQUE INDEX querent_ix_relationship ON querent_relationship (from_database, from_table, to_database, to_table, from_columns, to_columns, origin);
CREATE INDEX querent_ix_relationship_to ON querent_relationship (to_database, to_table);
";

/// Columns of a relationship.
const MAX_COLUMNS: usize = 16;
/// Stored relationships that are read of one table.
const MAX_STORED: usize = 64;
/// A database of at most so many tables is small: all of them are neighbours.
const SMALL_DATABASE: usize = 40;
/// Names that a table's key columns are looked up by.
const MAX_NAMES: usize = 64;
/// Tables that may join the ones looked at.
const MAX_AROUND: usize = 40;
/// Columns that are read of all tables together.
const MAX_COLUMNS_READ: i64 = 4_000;

/// Records a new table's foreign keys, in the transaction that makes the table.
pub(super) fn declare_foreign_keys(connection: &Connection, draft: &TableDraft) -> Result<()> {
    for key in &draft.foreign_keys {
        let new = NewRelationship {
            from: draft.name.clone(),
            from_columns: key.columns.clone(),
            to: key.table.clone(),
            to_columns: key.referred.clone(),
        };
        insert(connection, &new, RelationshipOrigin::ForeignKey, "")?;
    }
    Ok(())
}

/// Forgets what the definition of an object that is being dropped said.
pub(super) fn forget_object(connection: &Connection, object_id: i64) -> Result<()> {
    connection
        .prepare_cached(
            "DELETE FROM querent_relationship WHERE origin = 'foreign_key' AND (from_database, from_table) =
             (SELECT database_key, key FROM querent_object WHERE object_id = ?)",
        )?
        .execute([object_id])?;
    Ok(())
}

/// Records a relationship between tables and columns that are there.
pub(crate) fn declare(view: &View<'_>, who: &Principal, new: &NewRelationship) -> Result<Relationship> {
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
    let id = insert(view.connection, &new, RelationshipOrigin::Declared, who.subject())?;
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

/// Removes one that somebody declared and the caller may see.
pub(crate) fn remove(view: &View<'_>, who: &Principal, id: i64) -> Result<()> {
    let unknown = || CatalogError::ObjectNotFound { what: "relationship", id: id.to_string() };
    let row = view
        .connection
        .prepare_cached(&format!("SELECT {COLUMNS} FROM querent_relationship WHERE relationship_id = ?"))?
        .query_row([id], read)
        .optional()?;
    let row = row.filter(|row| who.may_see(&row.from.database) && who.may_see(&row.to.database)).ok_or_else(unknown)?;
    if row.origin == RelationshipOrigin::ForeignKey {
        return Err(CatalogError::InvalidObject {
            what: "relationship",
            reason: "the table's definition says so; create the table again without it".into(),
        });
    }
    view.connection.prepare_cached("DELETE FROM querent_relationship WHERE relationship_id = ?")?.execute([id])?;
    Ok(())
}

/// A page of what is declared, oldest first.
pub(crate) fn list(
    view: &View<'_>,
    who: &Principal,
    table: Option<&TableName>,
    page: &PageRequest,
) -> Result<Page<Relationship>> {
    let limit = page.limit.clamp(1, super::listing::MAX_PAGE);
    let mut after = after_id(page, "relationship")?;
    let mut items = Vec::new();
    // Rows that the caller may not see are passed over, so a page may take several reads.
    loop {
        let batch = match table {
            Some(table) => of_table(view.connection, table)?.into_iter().filter(|row| row.id > after).collect(),
            None => rows_after(view.connection, who, after, limit + 1)?,
        };
        let is_last = table.is_some() || batch.len() <= limit;
        for row in batch {
            after = row.id;
            if let Some(edge) = resolved(view, who, row)? {
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

/// The tables of a list of ids as inference reads them; those that are gone or may not be seen are left out.
pub(crate) fn join_tables(view: &View<'_>, who: &Principal, ids: &[i64]) -> Result<Vec<JoinTable>> {
    let mut columns: HashMap<i64, Vec<(String, arrow_schema::DataType)>> = HashMap::new();
    let mut statement = view.connection.prepare_cached(
        "SELECT c.table_id, c.column_name, c.column_type FROM json_each(?1) ids
         JOIN ducklake_column c ON c.table_id = ids.value
         WHERE c.parent_column IS NULL AND c.begin_snapshot <= ?2 AND (c.end_snapshot IS NULL OR c.end_snapshot > ?2)
         ORDER BY ids.key, c.column_order LIMIT ?3",
    )?;
    let mut rows = statement.query(params![json_ids(ids)?, view.snapshot, MAX_COLUMNS_READ])?;
    while let Some(row) = rows.next()? {
        let data_type = match LakeType::parse(&row.get::<_, String>(2)?) {
            LakeType::Readable(data_type) | LakeType::Unreadable(data_type) => data_type,
        };
        columns.entry(row.get(0)?).or_default().push((row.get(1)?, data_type));
    }
    let loader = Loader::of(view);
    let mut tables = Vec::new();
    for id in ids {
        let Some((name, kind)) = name_of(view.connection, *id)? else { continue };
        if !who.may_see(&name.database) {
            continue;
        }
        match (kind, columns.remove(id)) {
            (TableKind::Managed, Some(columns)) => tables.push(JoinTable::new(*id, name, columns.into_iter())),
            (TableKind::Managed, None) => {}
            (TableKind::External | TableKind::View, _) => {
                let relation = loader.load(*id)?;
                tables.extend(relation.map(|relation| JoinTable::from(relation.info())));
            }
        }
    }
    Ok(tables)
}

/// How tables join one another: what is declared, and for other pairs what can be inferred; surest first.
pub(crate) fn among(view: &View<'_>, who: &Principal, tables: &[JoinTable]) -> Result<Vec<Edge>> {
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
    view: &View<'_>,
    who: &Principal,
    tables: &[JoinTable],
    others: &[JoinTable],
) -> Result<Vec<Edge>> {
    let mut edges = declared_among(view, who, tables, others)?;
    for left in tables {
        for right in others {
            infer_edge(left, right, &mut edges);
        }
    }
    Ok(surest_first(edges))
}

type Edges = BTreeMap<(i64, i64), Edge>;

/// What is declared between one of `tables` and one of `others`.
fn declared_among(view: &View<'_>, who: &Principal, tables: &[JoinTable], others: &[JoinTable]) -> Result<Edges> {
    let mut edges = Edges::new();
    for table in tables {
        for row in of_table(view.connection, &table.name)? {
            let Some(edge) = resolved(view, who, row)? else { continue };
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

fn infer_edge(left: &JoinTable, right: &JoinTable, edges: &mut Edges) {
    if left.id == right.id || edges.contains_key(&pair(left.id, right.id)) {
        return;
    }
    if let Some(relationship) = infer(left, right) {
        let is_left = relationship.from == left.name;
        let (from, to) = if is_left { (left.id, right.id) } else { (right.id, left.id) };
        edges.insert(pair(from, to), Edge { from, to, relationship });
    }
}

fn surest_first(edges: Edges) -> Vec<Edge> {
    let mut edges: Vec<Edge> = edges.into_values().collect();
    edges.sort_by(|a, b| b.relationship.confidence.total_cmp(&a.relationship.confidence));
    edges
}

/// The ids of tables by name, of those that are there.
pub(crate) fn table_ids(view: &View<'_>, names: &[TableName]) -> Result<Vec<i64>> {
    let mut ids = Vec::new();
    for name in names {
        ids.extend(objects::object(view.connection, &name.database, &name.table)?.map(|object| object.id));
    }
    Ok(ids)
}

/// The databases of objects, by id, in order.
pub(crate) fn databases_of(view: &View<'_>, ids: &[i64]) -> Result<Vec<Option<i64>>> {
    let mut statement = view.connection.prepare_cached("SELECT schema_id FROM querent_object WHERE object_id = ?")?;
    ids.iter().map(|id| Ok(statement.query_row([id], |row| row.get(0)).optional()?)).collect()
}

/// Tables that may join the given ones and are not among them: bounded look-ups by name.
pub(crate) fn around(view: &View<'_>, who: &Principal, tables: &[JoinTable]) -> Result<Vec<i64>> {
    let known: HashSet<i64> = tables.iter().map(|table| table.id).collect();
    let mut found: Vec<i64> = Vec::new();
    let mut databases: Vec<String> = Vec::new();
    for table in tables {
        for row in of_table(view.connection, &table.name)? {
            if let Some(edge) = resolved(view, who, row)? {
                found.extend([edge.from, edge.to]);
            }
        }
        let database = name_key(&table.name.database);
        let names = serde_json::to_string(&table.referred_names(MAX_NAMES)).map_err(internal)?;
        // CROSS JOIN keeps this order: the other one reads the whole database.
        let mut statement = view.connection.prepare_cached(
            "SELECT o.object_id FROM json_each(?2) names
             CROSS JOIN querent_object o INDEXED BY querent_ix_object
             WHERE o.database_key = ?1 AND o.key = names.value LIMIT ?3",
        )?;
        let ids = statement.query_map(params![database, names, MAX_NAMES as i64], |row| row.get(0))?;
        found.extend(ids.collect::<rusqlite::Result<Vec<i64>>>()?);
        if !databases.contains(&database) {
            databases.push(database);
        }
    }
    for database in &databases {
        let mut statement = view
            .connection
            .prepare_cached("SELECT object_id FROM querent_object WHERE database_key = ?1 ORDER BY key LIMIT ?2")?;
        let ids = statement.query_map(params![database, SMALL_DATABASE as i64 + 1], |row| row.get(0))?;
        let ids = ids.collect::<rusqlite::Result<Vec<i64>>>()?;
        if ids.len() <= SMALL_DATABASE {
            found.extend(ids);
        }
    }
    let mut seen = known;
    found.retain(|id| seen.insert(*id));
    found.truncate(MAX_AROUND);
    Ok(found)
}

/// The relationships, their confidence raised or lowered by what is known of the columns' values.
pub(crate) fn with_evidence(view: &View<'_>, edges: Vec<Edge>) -> Result<Vec<Relationship>> {
    let mut relationships = Vec::with_capacity(edges.len());
    for Edge { from, to, mut relationship } in edges {
        if let (RelationshipOrigin::Inferred, [from_column], [to_column]) =
            (relationship.origin, relationship.from_columns.as_slice(), relationship.to_columns.as_slice())
            && let Some(share) = values::containment(view.connection, (from, from_column), (to, to_column))?
        {
            relationship.confidence = weighed(relationship.confidence, share);
            relationship.why.push_str(&format!("; {:.0} % of sampled values match", share * 100.0));
        }
        relationships.push(relationship);
    }
    relationships.sort_by(|a, b| b.confidence.total_cmp(&a.confidence));
    Ok(relationships)
}

/// A confidence that names gave, given the share of values that match.
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

const COLUMNS: &str =
    "relationship_id, from_database, from_table, from_columns, to_database, to_table, to_columns, origin, subject";

/// A stored row; names are keys, columns as spelled.
struct Row {
    id: i64,
    from: TableName,
    from_columns: Vec<String>,
    to: TableName,
    to_columns: Vec<String>,
    origin: RelationshipOrigin,
    subject: String,
}

fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<Row> {
    let columns = |index: usize| -> rusqlite::Result<Vec<String>> {
        let text: String = row.get(index)?;
        serde_json::from_str(&text).map_err(|error| {
            rusqlite::Error::FromSqlConversionFailure(index, rusqlite::types::Type::Text, error.into())
        })
    };
    let origin: String = row.get(7)?;
    Ok(Row {
        id: row.get(0)?,
        from: TableName { database: row.get(1)?, table: row.get(2)? },
        from_columns: columns(3)?,
        to: TableName { database: row.get(4)?, table: row.get(5)? },
        to_columns: columns(6)?,
        origin: if origin == RelationshipOrigin::ForeignKey.as_str() {
            RelationshipOrigin::ForeignKey
        } else {
            RelationshipOrigin::Declared
        },
        subject: row.get(8)?,
    })
}

fn insert(connection: &Connection, new: &NewRelationship, origin: RelationshipOrigin, subject: &str) -> Result<i64> {
    let columns = |names: &[String]| serde_json::to_string(names).map_err(internal);
    let id = connection
        .prepare_cached(
            "INSERT INTO querent_relationship
             (from_database, from_table, from_columns, to_database, to_table, to_columns, origin, subject, created_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
             ON CONFLICT DO UPDATE SET subject = ?8 RETURNING relationship_id",
        )?
        .query_row(
            params![
                name_key(&new.from.database),
                name_key(&new.from.table),
                columns(&new.from_columns)?,
                name_key(&new.to.database),
                name_key(&new.to.table),
                columns(&new.to_columns)?,
                origin.as_str(),
                subject,
                Utc::now().timestamp_micros(),
            ],
            |row| row.get(0),
        )?;
    Ok(id)
}

/// What is stored of a table, in either role.
fn of_table(connection: &Connection, table: &TableName) -> Result<Vec<Row>> {
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM querent_relationship WHERE from_database = ?1 AND from_table = ?2
         UNION SELECT {COLUMNS} FROM querent_relationship WHERE to_database = ?1 AND to_table = ?2
         ORDER BY relationship_id LIMIT ?3"
    ))?;
    let rows =
        statement.query_map(params![name_key(&table.database), name_key(&table.table), MAX_STORED as i64], read)?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

fn rows_after(connection: &Connection, who: &Principal, after: i64, limit: usize) -> Result<Vec<Row>> {
    let only = match who.scope() {
        DatabaseScope::All => None,
        DatabaseScope::Only(names) => Some(serde_json::to_string(names.as_ref()).map_err(internal)?),
    };
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM querent_relationship
         WHERE relationship_id > ?1 AND (?2 IS NULL OR from_database IN (SELECT value FROM json_each(?2)))
         ORDER BY relationship_id LIMIT ?3"
    ))?;
    let rows = statement.query_map(params![after, only, limit as i64], read)?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// The row as the catalog has its tables now, if both are there and may be seen.
fn resolved(view: &View<'_>, who: &Principal, row: Row) -> Result<Option<Edge>> {
    if !who.may_see(&row.from.database) || !who.may_see(&row.to.database) {
        return Ok(None);
    }
    let find = |name: &TableName| objects::object(view.connection, &name.database, &name.table);
    let (Some(from), Some(to)) = (find(&row.from)?, find(&row.to)?) else { return Ok(None) };
    let (Some((from_name, _)), Some((to_name, _))) =
        (name_of(view.connection, from.id)?, name_of(view.connection, to.id)?)
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
    Ok(Some(Edge { from: from.id, to: to.id, relationship }))
}

fn why(origin: RelationshipOrigin, subject: &str) -> String {
    match origin {
        RelationshipOrigin::ForeignKey => "the table's definition says so".into(),
        RelationshipOrigin::Declared | RelationshipOrigin::Inferred => format!("declared by {subject}"),
    }
}

fn name_of(connection: &Connection, object_id: i64) -> Result<Option<(TableName, TableKind)>> {
    let found = connection
        .prepare_cached(
            "SELECT o.object_id, o.name, o.kind, o.comment, d.name
             FROM querent_object o JOIN querent_database d USING (schema_id) WHERE o.object_id = ?",
        )?
        .query_row([object_id], |row| Ok((objects::read_object(row)?, row.get::<_, String>(4)?)))
        .optional()?;
    Ok(found.map(|(object, database)| (TableName::new(database, object.name), object.kind)))
}

/// A column's own spelling.
fn column_of(table: &TableInfo, column: &str) -> Result<String> {
    let key = name_key(column);
    match table.columns.iter().find(|candidate| name_key(&candidate.name) == key) {
        Some(found) => Ok(found.name.clone()),
        None => Err(CatalogError::ColumnNotFound {
            table: table.name.table.clone(),
            column: column.to_string(),
            nearest: super::names::nearest(column, table.columns.iter().map(|column| column.name.as_str()))
                .map(str::to_string),
        }),
    }
}

/// Where a page by id goes on.
pub(super) fn after_id(page: &PageRequest, what: &str) -> Result<i64> {
    let Some(token) = &page.after else { return Ok(0) };
    token.0.parse().map_err(|_| CatalogError::InvalidName {
        name: token.0.clone(),
        reason: format!("it is not a page token of a {what} listing"),
    })
}

pub(super) fn json_ids(ids: &[i64]) -> Result<String> {
    serde_json::to_string(ids).map_err(internal)
}

pub(super) fn internal(error: serde_json::Error) -> CatalogError {
    CatalogError::Internal(error.to_string())
}

fn pair(left: i64, right: i64) -> (i64, i64) {
    (left.min(right), left.max(right))
}
