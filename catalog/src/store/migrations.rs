//! Creates and migrates the store: a DuckLake 1.0 exactly as DuckDB's extension makes it, our tables beside it, and
//! indexes of ours over both (`store/ddl.rs`). Our tables change by numbered migrations, each recorded as it is
//! applied.

use std::collections::BTreeSet;
use std::path::Path;

use chrono::Utc;
use uuid::Uuid;

use super::columns::JSON_KEY;
use super::ddl::{
    COLUMN_MARKS_INDEX, COLUMN_NAMES_DDL, COLUMN_TEXT_DDL, CONVERSATIONS_DDL, COVERED_COLUMN_NAMES_DDL,
    DISTINCT_VALUES_DDL, DUCKLAKE_DDL, EXTERNAL_USERS_DDL, FEEDBACK_DDL, GRAPH_MODELS_DDL, KEYS_DDL, KNOWLEDGE_DDL,
    LAKE_INDEXES, LEASES_DDL, LISTING_DDL, MEMBER_ADDRESSES_DDL, MEMBERS_DDL, META_DDL, OBJECTS_DDL, PENDING_DDL,
    PENDING_DUE_DDL, POLICIES_DDL, POSTGRES_DUCKLAKE_DDL, PUBLISHED_INDEX_DDL, RELATIONSHIPS_DDL, RUN_LOGS_DDL,
    RUN_REACH_DDL, RUNS_DDL, TOKENS_DDL, VALUES_DDL, VECTOR_INDEXES_DDL,
};
use super::{CatalogPlace, DATA_FOLDER, change, column_names, lake_location, objects, relations};
use crate::connection::{Access, DatabaseResult, OptionalRow, StoreConnection, params};
use crate::error::{CatalogError, Result};
use crate::model::DEFAULT_DATABASE;

/// The DuckLake version that is read and written.
const DUCKLAKE_VERSION: &str = "1.0";
/// Names a lake of ours in `ducklake_metadata`.
const CREATED_BY: &str = concat!("Querent ", env!("CARGO_PKG_VERSION"));
/// The key of the catalog's id in `querent_meta`.
const CATALOG_ID: &str = "catalog_id";

/// A numbered change of our tables. Never edited once released; the last number is the format's version.
struct Migration {
    version: i64,
    name: &'static str,
    sql: &'static [&'static str],
    /// The part of the migration that needs code.
    fill: Option<fn(&StoreConnection) -> Result<()>>,
}

const MIGRATIONS: [Migration; 19] = [
    Migration {
        version: 1,
        name: "objects, external tables, views, runs",
        sql: &[LAKE_INDEXES, OBJECTS_DDL, RUNS_DDL, PENDING_DDL],
        fill: None,
    },
    Migration {
        version: 2,
        name: "many tables at once, columns by name",
        sql: &[PENDING_DUE_DDL, COLUMN_TEXT_DDL, COLUMN_NAMES_DDL],
        fill: Some(column_names::fill),
    },
    Migration {
        version: 3,
        name: "relationships, verified queries, metrics, values",
        sql: &[RELATIONSHIPS_DDL, KNOWLEDGE_DDL, VALUES_DDL],
        fill: None,
    },
    Migration {
        version: 4,
        name: "runs that continue, conversations, items, pending calls, files",
        sql: &[RUN_LOGS_DDL, CONVERSATIONS_DDL],
        fill: None,
    },
    Migration { version: 5, name: "listings read one index", sql: &[LISTING_DDL], fill: None },
    Migration { version: 6, name: "users of embedded applications", sql: &[EXTERNAL_USERS_DDL], fill: None },
    Migration { version: 7, name: "columns of a name in one index", sql: &[COVERED_COLUMN_NAMES_DDL], fill: None },
    Migration {
        version: 8,
        name: "primary keys, unique constraints, names of foreign keys",
        sql: &[KEYS_DDL],
        fill: None,
    },
    Migration { version: 9, name: "tokens", sql: &[TOKENS_DDL], fill: None },
    Migration { version: 10, name: "policies", sql: &[POLICIES_DDL], fill: None },
    Migration { version: 11, name: "feedback on runs, proposed verified queries", sql: &[FEEDBACK_DDL], fill: None },
    Migration { version: 12, name: "graph models", sql: &[GRAPH_MODELS_DDL], fill: None },
    Migration { version: 13, name: "what the callers of runs could read", sql: &[RUN_REACH_DDL], fill: None },
    Migration { version: 14, name: "vector indexes", sql: &[VECTOR_INDEXES_DDL], fill: None },
    Migration { version: 15, name: "distinct values of columns", sql: &[DISTINCT_VALUES_DDL], fill: None },
    Migration { version: 16, name: "servers that share the catalog", sql: &[MEMBERS_DDL], fill: None },
    Migration { version: 17, name: "work that one server does for all", sql: &[LEASES_DDL], fill: None },
    Migration { version: 18, name: "where other servers are reached", sql: &[MEMBER_ADDRESSES_DDL], fill: None },
    Migration { version: 19, name: "the schema index of several servers", sql: &[PUBLISHED_INDEX_DDL], fill: None },
];

/// Creates the lake where there is none, checks the version of an existing one, and applies the migrations that it
/// lacks. `data_path` is where the lake's files are to lie; `None`: where they do, beside the catalog where it is new.
pub(super) fn prepare(
    connection: &StoreConnection,
    place: &CatalogPlace,
    data_dir: &Path,
    data_path: Option<&str>,
) -> Result<()> {
    let transaction = connection.begin(Access::Create)?;
    let file = place.shown();
    if transaction.has_table("ducklake_metadata")? {
        check_ducklake_version(&transaction, &file)?;
    } else if transaction.is_empty()? {
        require_unicode(&transaction, place)?;
        super::intact::require_no_files(&file, &data_dir.join(super::DATA_FOLDER))?;
        // A disk that is not mounted is an empty folder, too.
        tracing::warn!(catalog = %file.display(), "there was no catalog here; an empty one is made");
        create_lake(&transaction, data_dir)?;
    } else {
        let detail = match place {
            CatalogPlace::File(_) => "it is a SQLite file but not a DuckLake".into(),
            CatalogPlace::Server(_) => {
                "its schema has tables and is not a DuckLake; give the catalog one of its own".into()
            }
        };
        return Err(CatalogError::Corrupt { path: file, detail });
    }
    transaction.define_functions()?;
    transaction.define(META_DDL)?;
    migrate(&transaction, &file)?;
    move_json_marks(&transaction)?;
    if !place.is_shared() {
        follow_moved_folder(&transaction, data_dir)?;
    }
    lake_location::choose(&transaction, data_path)?;
    ensure_default_database(&transaction)?;
    if meta(&transaction, CATALOG_ID)?.is_none() {
        set_meta(&transaction, CATALOG_ID, &Uuid::now_v7().to_string())?;
    }
    transaction.commit()?;
    Ok(())
}

/// Returns the id by which a catalog is told from others that were in its place.
pub(super) fn catalog_id(connection: &StoreConnection) -> Result<String> {
    Ok(meta(connection, CATALOG_ID)?.unwrap_or_default())
}

/// Any name and text has to fit into the database. SQLite's is chosen by whoever makes the file.
fn require_unicode(transaction: &StoreConnection, place: &CatalogPlace) -> Result<()> {
    if !place.is_shared() {
        return Ok(());
    }
    match transaction.encoding()?.as_str() {
        "UTF8" => Ok(()),
        other => Err(CatalogError::InvalidObject {
            what: "catalog URL",
            reason: format!(
                "its database has the encoding {other}, which not every name fits into; make one with ENCODING 'UTF8'"
            ),
        }),
    }
}

fn create_lake(transaction: &StoreConnection, data_dir: &Path) -> Result<()> {
    transaction.execute_batch(if transaction.is_remote() { POSTGRES_DUCKLAKE_DDL } else { DUCKLAKE_DDL })?;
    transaction.define(META_DDL)?;
    let entries = [
        ("version", DUCKLAKE_VERSION.to_string()),
        ("created_by", CREATED_BY.to_string()),
        ("data_path", data_path(data_dir)),
        ("encrypted", "false".to_string()),
    ];
    for (key, value) in entries {
        transaction.execute("INSERT INTO ducklake_metadata VALUES (?, ?, NULL, NULL)", params![key, value])?;
    }
    transaction
        .execute("INSERT INTO ducklake_snapshot VALUES (0, ?, 0, 1, 0)", params![change::snapshot_time(Utc::now())])?;
    transaction.execute(
        r#"INSERT INTO ducklake_snapshot_changes VALUES (0, 'created_schema:"main"', NULL, NULL, NULL)"#,
        [],
    )?;
    // DuckDB's own default: `USE lake` and bare names need it.
    transaction.execute(
        "INSERT INTO ducklake_schema VALUES (0, ?, 0, NULL, 'main', 'main/', TRUE)",
        params![Uuid::now_v7().to_string()],
    )?;
    set_meta(transaction, "owns_data_path", "true")
}

fn check_ducklake_version(transaction: &StoreConnection, file: &Path) -> Result<()> {
    let version: Option<String> = transaction
        .query_row("SELECT value FROM ducklake_metadata WHERE key = 'version' AND scope IS NULL", [], |row| row.get(0))
        .optional()?;
    match version.as_deref() {
        Some(DUCKLAKE_VERSION) => Ok(()),
        Some(old) if old.starts_with("0.") => Err(CatalogError::Corrupt {
            path: file.to_path_buf(),
            detail: format!(
                "it is a DuckLake {old}; attach it once with DuckDB 1.5 and AUTOMATIC_MIGRATION to make it {DUCKLAKE_VERSION}"
            ),
        }),
        Some(newer) => Err(CatalogError::NewerFormat {
            path: file.to_path_buf(),
            found: format!("DuckLake {newer}"),
            known: format!("DuckLake {DUCKLAKE_VERSION}"),
        }),
        None => Err(CatalogError::Corrupt { path: file.to_path_buf(), detail: "it names no DuckLake version".into() }),
    }
}

/// Applies every migration that the store lacks, even where it has later ones.
fn migrate(transaction: &StoreConnection, file: &Path) -> Result<()> {
    let applied: BTreeSet<i64> = transaction
        .prepare("SELECT version FROM querent_migrations")?
        .query_map([], |row| row.get(0))?
        .collect::<DatabaseResult<_>>()?;
    let known = MIGRATIONS.last().map_or(0, |migration| migration.version);
    if let Some(newest) = applied.last().filter(|newest| **newest > known) {
        return Err(CatalogError::NewerFormat {
            path: file.to_path_buf(),
            found: newest.to_string(),
            known: known.to_string(),
        });
    }
    for migration in MIGRATIONS.iter().filter(|migration| !applied.contains(&migration.version)) {
        for sql in migration.sql {
            transaction.define(sql)?;
        }
        if let Some(fill) = migration.fill {
            fill(transaction)?;
        }
        transaction.execute(
            "INSERT INTO querent_migrations VALUES (?, ?, ?)",
            params![migration.version, migration.name, change::snapshot_time(Utc::now())],
        )?;
    }
    Ok(())
}

/// Says of tables which of their columns hold JSON. Earlier versions said it of the columns, which kept DuckDB from reading the lake;
/// one of them may have opened the folder again, or write beside this one, so that it is seen to whenever the catalog is opened.
fn move_json_marks(transaction: &StoreConnection) -> Result<()> {
    const MOVED: &str = "json_marks_of_tables";
    const MOVED_BY_INDEX: &str = "indexed";
    if meta(transaction, MOVED)?.as_deref() != Some(MOVED_BY_INDEX) {
        transaction.define(COLUMN_MARKS_INDEX)?;
        set_meta(transaction, MOVED, MOVED_BY_INDEX)?;
    }
    let moved = format!(
        "INSERT INTO ducklake_tag
         SELECT table_id, begin_snapshot, end_snapshot, '{JSON_KEY}' || CAST(column_id AS VARCHAR), value
         FROM ducklake_column_tag old WHERE key = 'querent_json' AND NOT EXISTS (
             SELECT 1 FROM ducklake_tag same
             WHERE same.object_id = old.table_id AND same.key = '{JSON_KEY}' || CAST(old.column_id AS VARCHAR)
               AND (same.end_snapshot IS NULL OR same.begin_snapshot = old.begin_snapshot))"
    );
    transaction.execute(&moved, [])?;
    transaction.execute("DELETE FROM ducklake_column_tag WHERE key = 'querent_json'", [])?;
    Ok(())
}

/// Updates `data_path` after the folder was moved or copied: a lake created by Querent keeps its files beside its
/// catalog.
fn follow_moved_folder(transaction: &StoreConnection, data_dir: &Path) -> Result<()> {
    let path = data_path(data_dir);
    let is_owned = meta(transaction, "owns_data_path")?.as_deref() == Some("true");
    if is_owned && relations::data_path(transaction)? != Path::new(&path) {
        transaction
            .execute("UPDATE ducklake_metadata SET value = ? WHERE key = 'data_path' AND scope IS NULL", [path])?;
    }
    Ok(())
}

fn ensure_default_database(transaction: &StoreConnection) -> Result<()> {
    let mut change = change::CatalogChange::begin(transaction)?;
    objects::absorb(&mut change)?;
    if objects::database_id(transaction, DEFAULT_DATABASE)?.is_none() {
        super::databases::create(&mut change, DEFAULT_DATABASE)?;
    }
    // No index is open yet; it will read what was recorded from the pending rows.
    change.finish()?;
    Ok(())
}

fn data_path(data_dir: &Path) -> String {
    format!("{}/", data_dir.join(DATA_FOLDER).display())
}

pub(super) fn meta(connection: &StoreConnection, key: &str) -> Result<Option<String>> {
    Ok(connection
        .prepare_cached("SELECT value FROM querent_meta WHERE key = ?")?
        .query_row([key], |row| row.get(0))
        .optional()?)
}

pub(super) fn set_meta(connection: &StoreConnection, key: &str, value: &str) -> Result<()> {
    connection
        .prepare_cached("INSERT INTO querent_meta VALUES (?1, ?2) ON CONFLICT (key) DO UPDATE SET value = ?2")?
        .execute([key, value])?;
    Ok(())
}
