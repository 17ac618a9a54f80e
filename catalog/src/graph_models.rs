//! Graph models: how a graph is made of a database's tables, as Kusto's `.create-or-alter graph_model` defines it. What a
//! definition says is KQL's business; here it is a text with a name.
//!
//! A model belongs to its database and goes with it. It holds no rows: whoever queries it reads its tables with their own
//! rights. A snapshot of it is the same over tables of its own, which hold the rows that the model's queries had.

use chrono::{DateTime, Utc};
use serde::Serialize;
use uuid::Uuid;

use crate::connection::{DatabaseResult, OptionalRow, StoreConnection, StoreRow, params};
use crate::error::{CatalogError, Result};
use crate::index::SchemaIndex;
use crate::model::{IfExists, NewDataFile, TableDraft, TableKind, TableName};
use crate::principal::Principal;
use crate::store::names::check_name;
use crate::store::rows::{read_json, read_time, read_uuid, to_json};
use crate::store::{CatalogChange, SnapshotView, Store, databases, name_key, resolve, tables};

/// The most models of a database.
const MAX_MODELS: i64 = 1_000;
/// The most bytes of a definition.
const MAX_DEFINITION_BYTES: usize = 256 * 1024;
/// The most snapshots of a model.
const MAX_SNAPSHOTS: i64 = 100;
const WHAT: &str = "graph model";
const SNAPSHOT: &str = "graph snapshot";
const COLUMNS: &str = "model_id, database, name, definition, subject, created_at,
    (SELECT count(*) FROM querent_graph_snapshot s WHERE s.model_id = querent_graph_model.model_id)";
const SNAPSHOT_COLUMNS: &str = "name, definition, tables, created_at";

/// A stored graph model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GraphModel {
    /// Its id, which it keeps when it is altered.
    pub id: Uuid,
    /// Its database.
    pub database: String,
    /// Its name.
    pub name: String,
    /// The JSON document that defines it.
    pub definition: String,
    /// Who created or altered it last.
    pub subject: String,
    /// When.
    pub created_at: DateTime<Utc>,
    /// How many snapshots there are of it.
    pub snapshots: i64,
}

/// A snapshot of a graph model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GraphSnapshot {
    /// Its name, which no other snapshot of the model has.
    pub name: String,
    /// The model's definition over the tables of the snapshot.
    pub definition: String,
    /// The tables with its rows, in the model's database.
    pub tables: Vec<String>,
    /// When it was made.
    pub created_at: DateTime<Utc>,
}

/// A table whose rows are written, and which is created later, with others.
#[derive(Debug, Clone, PartialEq)]
pub struct DraftedTable {
    /// What it will be.
    pub draft: TableDraft,
    /// Its rows.
    pub files: Vec<NewDataFile>,
}

/// Graph models. Made by [`Catalog::graph_models`](crate::Catalog::graph_models).
#[derive(Clone, Copy)]
pub struct CatalogGraphModels<'a> {
    pub(crate) store: &'a Store,
    pub(crate) index: &'a SchemaIndex,
}

impl CatalogGraphModels<'_> {
    /// Returns a model of a database that the caller may see. Names are compared without regard to case.
    pub async fn get(self, who: &Principal, database: &str, name: &str) -> Result<Option<GraphModel>> {
        let (who, database, name) = (who.clone(), database.to_owned(), name.to_owned());
        self.store
            .view(move |view| match databases::find(view, &who, &database)? {
                Some(_) => find(view.connection, &database, &name),
                None => Ok(None),
            })
            .await
    }

    /// Returns the models of a database, by name. Errors: `database_not_found`.
    pub async fn list(self, who: &Principal, database: &str) -> Result<Vec<GraphModel>> {
        let (who, database) = (who.clone(), database.to_owned());
        self.store
            .view(move |view| {
                if databases::find(view, &who, &database)?.is_none() {
                    return Err(resolve::database_not_found(view, &who, &database)?);
                }
                let mut statement = view.connection.prepare_cached(&format!(
                    "SELECT {COLUMNS} FROM querent_graph_model WHERE database_key = ? ORDER BY name_key"
                ))?;
                Ok(statement.query_map([name_key(&database)], read)?.collect::<DatabaseResult<_>>()?)
            })
            .await
    }

    /// Creates a model, or alters the one of that name. The caller has authorised it and checked the definition. Errors:
    /// `database_not_found`, `invalid_name`, `invalid_object`.
    pub async fn save(self, who: &Principal, database: &str, name: &str, definition: &str) -> Result<()> {
        let who = who.clone();
        let (database, name, definition) = (database.to_owned(), name.to_owned(), definition.to_owned());
        self.store.write_ours(move |view| save(view, &who, &database, &name, &definition)).await
    }

    /// Deletes a model with its snapshots and their tables, all of it or nothing. Errors: `object_not_found`, unless that is fine.
    pub async fn drop(self, database: &str, name: &str, if_missing_ok: bool) -> Result<()> {
        let (database, name) = (database.to_owned(), name.to_owned());
        let drop = self.store.write(move |change| {
            let connection = change.connection();
            let Some(model) = find(connection, &database, &name)? else {
                return match if_missing_ok {
                    true => Ok(()),
                    false => Err(CatalogError::ObjectNotFound { what: WHAT, id: name }),
                };
            };
            for snapshot in snapshots_of(connection, &model)? {
                drop_tables(change, &model, &snapshot)?;
            }
            for statement in [
                "DELETE FROM querent_graph_snapshot WHERE model_id = ?",
                "DELETE FROM querent_graph_model WHERE model_id = ?",
            ] {
                connection.prepare_cached(statement)?.execute([model.id.to_string()])?;
            }
            Ok(())
        });
        self.index.change(drop).await
    }

    /// Returns the snapshots of a model, oldest first.
    pub async fn snapshots(self, model: &GraphModel) -> Result<Vec<GraphSnapshot>> {
        let model = model.clone();
        self.store.view(move |view| snapshots_of(view.connection, &model)).await
    }

    /// Creates a snapshot with its tables, all of it or nothing. Errors: `object_not_found` where the model was dropped since it was
    /// read, `already_exists`, `invalid_name`, `invalid_object`.
    pub async fn add_snapshot(
        self,
        who: &Principal,
        model: &GraphModel,
        name: &str,
        definition: &str,
        drafted: Vec<DraftedTable>,
    ) -> Result<()> {
        let (subject, model, name) = (who.subject().to_owned(), model.clone(), name.to_owned());
        let definition = definition.to_owned();
        let add = self.store.write(move |change| {
            check_name(&name)?;
            let connection = change.connection();
            // It may have been dropped, or snapshots of it made, while the rows of this one were written.
            let now = find(connection, &model.database, &model.name)?.filter(|now| now.id == model.id);
            let Some(model) = now else {
                return Err(CatalogError::ObjectNotFound { what: WHAT, id: model.name });
            };
            if model.snapshots >= MAX_SNAPSHOTS {
                let reason = format!("the model has {MAX_SNAPSHOTS} already; drop some");
                return Err(CatalogError::InvalidObject { what: SNAPSHOT, reason });
            }
            let names: Vec<&str> = drafted.iter().map(|table| table.draft.name.table.as_str()).collect();
            let added = connection
                .prepare_cached(
                    "INSERT INTO querent_graph_snapshot (model_id, name_key, name, definition, tables, subject,
                         created_at) VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
                )?
                .execute(params![
                    model.id.to_string(),
                    name_key(&name),
                    name,
                    definition,
                    to_json(&names)?,
                    subject,
                    Utc::now().timestamp_micros()
                ])?;
            if added == 0 {
                return Err(CatalogError::AlreadyExists { name, existing: None });
            }
            for table in &drafted {
                tables::create(change, &table.draft, &table.files, IfExists::Error)?;
            }
            Ok(())
        });
        self.index.change(add).await
    }

    /// Deletes a snapshot with its tables. Errors: `object_not_found`.
    pub async fn drop_snapshot(self, model: &GraphModel, name: &str) -> Result<()> {
        let (model, name) = (model.clone(), name.to_owned());
        let drop = self.store.write(move |change| {
            let connection = change.connection();
            let mut snapshots = snapshots_of(connection, &model)?.into_iter();
            let Some(snapshot) = snapshots.find(|snapshot| same_name(&snapshot.name, &name)) else {
                return Err(CatalogError::ObjectNotFound { what: SNAPSHOT, id: name });
            };
            drop_tables(change, &model, &snapshot)?;
            connection
                .prepare_cached("DELETE FROM querent_graph_snapshot WHERE model_id = ? AND name_key = ?")?
                .execute([model.id.to_string(), name_key(&snapshot.name)])?;
            Ok(())
        });
        self.index.change(drop).await
    }
}

/// Drops the tables of a snapshot, those that are still there.
fn drop_tables(change: &mut CatalogChange<'_>, model: &GraphModel, snapshot: &GraphSnapshot) -> Result<()> {
    for table in &snapshot.tables {
        tables::drop_named(change, &TableName::new(&model.database, table), &[TableKind::Managed], true)?;
    }
    Ok(())
}

fn same_name(left: &str, right: &str) -> bool {
    name_key(left) == name_key(right)
}

fn snapshots_of(connection: &StoreConnection, model: &GraphModel) -> Result<Vec<GraphSnapshot>> {
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {SNAPSHOT_COLUMNS} FROM querent_graph_snapshot WHERE model_id = ? ORDER BY id"
    ))?;
    let read = |row: &StoreRow<'_>| {
        Ok(GraphSnapshot {
            name: row.get(0)?,
            definition: row.get(1)?,
            tables: read_json(row, 2)?,
            created_at: read_time(row, 3)?,
        })
    };
    Ok(statement.query_map([model.id.to_string()], read)?.collect::<DatabaseResult<_>>()?)
}

fn find(connection: &StoreConnection, database: &str, name: &str) -> Result<Option<GraphModel>> {
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM querent_graph_model WHERE database_key = ? AND name_key = ?"
    ))?;
    Ok(statement.query_row([name_key(database), name_key(name)], read).optional()?)
}

fn read(row: &StoreRow<'_>) -> DatabaseResult<GraphModel> {
    Ok(GraphModel {
        id: read_uuid(row, 0)?.unwrap_or_default(),
        database: row.get(1)?,
        name: row.get(2)?,
        definition: row.get(3)?,
        subject: row.get(4)?,
        created_at: read_time(row, 5)?,
        snapshots: row.get(6)?,
    })
}

fn save(view: &SnapshotView<'_>, who: &Principal, database: &str, name: &str, definition: &str) -> Result<()> {
    check_name(name)?;
    let invalid = |reason: String| CatalogError::InvalidObject { what: WHAT, reason };
    if definition.len() > MAX_DEFINITION_BYTES {
        return Err(invalid(format!("its definition is longer than {MAX_DEFINITION_BYTES} bytes")));
    }
    let Some(database) = databases::find(view, who, database)?.map(|found| found.name) else {
        return Err(resolve::database_not_found(view, who, database)?);
    };
    let count: i64 = view.connection.query_row(
        "SELECT count(*) FROM querent_graph_model WHERE database_key = ?1 AND name_key <> ?2",
        [name_key(&database), name_key(name)],
        |row| row.get(0),
    )?;
    if count >= MAX_MODELS {
        return Err(invalid(format!("the database has {MAX_MODELS} already; drop some")));
    }
    view.connection
        .prepare_cached(
            "INSERT INTO querent_graph_model (model_id, database_key, name_key, database, name, definition, subject,
                 created_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
             ON CONFLICT (database_key, name_key) DO UPDATE SET definition = ?6, subject = ?7, created_at = ?8",
        )?
        .execute(params![
            Uuid::now_v7().to_string(),
            name_key(&database),
            name_key(name),
            database,
            name,
            definition,
            who.subject(),
            Utc::now().timestamp_micros()
        ])?;
    Ok(())
}
