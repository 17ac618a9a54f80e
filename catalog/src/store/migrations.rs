//! The tables of the store: a DuckLake 1.0 exactly as DuckDB's extension makes it, our tables beside it, and
//! indexes of ours over both. Our tables change by numbered migrations, each recorded as it is applied.

use std::collections::BTreeSet;
use std::path::Path;

use chrono::Utc;
use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};
use uuid::Uuid;

use super::knowledge::KNOWLEDGE_DDL;
use super::relationships::RELATIONSHIPS_DDL;
use super::values::VALUES_DDL;
use super::{DATA_FOLDER, change, column_names, objects};
use crate::conversations::CONVERSATIONS_DDL;
use crate::external_users::EXTERNAL_USERS_DDL;
use crate::index::pending::{COLUMN_TEXT_DDL, PENDING_DDL, PENDING_DUE_DDL};
use crate::{CatalogError, DEFAULT_DATABASE, Result, runs};

/// The DuckLake version that is read and written.
const DUCKLAKE_VERSION: &str = "1.0";
/// Names a lake of ours in `ducklake_metadata`.
const CREATED_BY: &str = concat!("Querent ", env!("CARGO_PKG_VERSION"));

/// What DuckDB creates, byte for byte (`SELECT sql FROM sqlite_master` of a lake made by DuckDB 1.5.5).
const DUCKLAKE_DDL: &str = r#"
CREATE TABLE ducklake_metadata("key" VARCHAR NOT NULL, "value" VARCHAR NOT NULL, "scope" VARCHAR, scope_id BIGINT);
CREATE TABLE ducklake_snapshot(snapshot_id BIGINT PRIMARY KEY, snapshot_time VARCHAR, schema_version BIGINT, next_catalog_id BIGINT, next_file_id BIGINT);
CREATE TABLE ducklake_snapshot_changes(snapshot_id BIGINT PRIMARY KEY, changes_made VARCHAR, author VARCHAR, commit_message VARCHAR, commit_extra_info VARCHAR);
CREATE TABLE ducklake_schema(schema_id BIGINT PRIMARY KEY, schema_uuid VARCHAR, begin_snapshot BIGINT, end_snapshot BIGINT, schema_name VARCHAR, path VARCHAR, path_is_relative BIGINT);
CREATE TABLE ducklake_table(table_id BIGINT, table_uuid VARCHAR, begin_snapshot BIGINT, end_snapshot BIGINT, schema_id BIGINT, table_name VARCHAR, path VARCHAR, path_is_relative BIGINT);
CREATE TABLE ducklake_view(view_id BIGINT, view_uuid VARCHAR, begin_snapshot BIGINT, end_snapshot BIGINT, schema_id BIGINT, view_name VARCHAR, dialect VARCHAR, "sql" VARCHAR, column_aliases VARCHAR);
CREATE TABLE ducklake_tag(object_id BIGINT, begin_snapshot BIGINT, end_snapshot BIGINT, "key" VARCHAR, "value" VARCHAR);
CREATE TABLE ducklake_column_tag(table_id BIGINT, column_id BIGINT, begin_snapshot BIGINT, end_snapshot BIGINT, "key" VARCHAR, "value" VARCHAR);
CREATE TABLE ducklake_data_file(data_file_id BIGINT PRIMARY KEY, table_id BIGINT, begin_snapshot BIGINT, end_snapshot BIGINT, file_order BIGINT, path VARCHAR, path_is_relative BIGINT, file_format VARCHAR, record_count BIGINT, file_size_bytes BIGINT, footer_size BIGINT, row_id_start BIGINT, partition_id BIGINT, encryption_key VARCHAR, mapping_id BIGINT, partial_max BIGINT);
CREATE TABLE ducklake_file_column_stats(data_file_id BIGINT, table_id BIGINT, column_id BIGINT, column_size_bytes BIGINT, value_count BIGINT, null_count BIGINT, min_value VARCHAR, max_value VARCHAR, contains_nan BIGINT, extra_stats VARCHAR);
CREATE TABLE ducklake_file_variant_stats(data_file_id BIGINT, table_id BIGINT, column_id BIGINT, variant_path VARCHAR, shredded_type VARCHAR, column_size_bytes BIGINT, value_count BIGINT, null_count BIGINT, min_value VARCHAR, max_value VARCHAR, contains_nan BIGINT, extra_stats VARCHAR);
CREATE TABLE ducklake_delete_file(delete_file_id BIGINT PRIMARY KEY, table_id BIGINT, begin_snapshot BIGINT, end_snapshot BIGINT, data_file_id BIGINT, path VARCHAR, path_is_relative BIGINT, format VARCHAR, delete_count BIGINT, file_size_bytes BIGINT, footer_size BIGINT, encryption_key VARCHAR, partial_max BIGINT);
CREATE TABLE ducklake_column(column_id BIGINT, begin_snapshot BIGINT, end_snapshot BIGINT, table_id BIGINT, column_order BIGINT, column_name VARCHAR, column_type VARCHAR, initial_default VARCHAR, default_value VARCHAR, nulls_allowed BIGINT, parent_column BIGINT, default_value_type VARCHAR, default_value_dialect VARCHAR);
CREATE TABLE ducklake_table_stats(table_id BIGINT, record_count BIGINT, next_row_id BIGINT, file_size_bytes BIGINT);
CREATE TABLE ducklake_table_column_stats(table_id BIGINT, column_id BIGINT, contains_null BIGINT, contains_nan BIGINT, min_value VARCHAR, max_value VARCHAR, extra_stats VARCHAR);
CREATE TABLE ducklake_partition_info(partition_id BIGINT, table_id BIGINT, begin_snapshot BIGINT, end_snapshot BIGINT);
CREATE TABLE ducklake_partition_column(partition_id BIGINT, table_id BIGINT, partition_key_index BIGINT, column_id BIGINT, "transform" VARCHAR);
CREATE TABLE ducklake_file_partition_value(data_file_id BIGINT, table_id BIGINT, partition_key_index BIGINT, partition_value VARCHAR);
CREATE TABLE ducklake_files_scheduled_for_deletion(data_file_id BIGINT, path VARCHAR, path_is_relative BIGINT, schedule_start VARCHAR);
CREATE TABLE ducklake_inlined_data_tables(table_id BIGINT, table_name VARCHAR, schema_version BIGINT);
CREATE TABLE ducklake_column_mapping(mapping_id BIGINT, table_id BIGINT, "type" VARCHAR);
CREATE TABLE ducklake_name_mapping(mapping_id BIGINT, column_id BIGINT, source_name VARCHAR, target_field_id BIGINT, parent_column BIGINT, is_partition BIGINT);
CREATE TABLE ducklake_schema_versions(begin_snapshot BIGINT, schema_version BIGINT, table_id BIGINT);
CREATE TABLE ducklake_macro(schema_id BIGINT, macro_id BIGINT, macro_name VARCHAR, begin_snapshot BIGINT, end_snapshot BIGINT);
CREATE TABLE ducklake_macro_impl(macro_id BIGINT, impl_id BIGINT, dialect VARCHAR, "sql" VARCHAR, "type" VARCHAR);
CREATE TABLE ducklake_macro_parameters(macro_id BIGINT, impl_id BIGINT, column_id BIGINT, parameter_name VARCHAR, parameter_type VARCHAR, default_value VARCHAR, default_value_type VARCHAR);
CREATE TABLE ducklake_sort_info(sort_id BIGINT, table_id BIGINT, begin_snapshot BIGINT, end_snapshot BIGINT);
CREATE TABLE ducklake_sort_expression(sort_id BIGINT, table_id BIGINT, sort_key_index BIGINT, expression VARCHAR, dialect VARCHAR, sort_direction VARCHAR, null_order VARCHAR);
"#;

/// Known before the migrations are: format and bookkeeping.
const META_DDL: &str = "
CREATE TABLE IF NOT EXISTS querent_meta (key VARCHAR PRIMARY KEY, value VARCHAR NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS querent_migrations (version BIGINT PRIMARY KEY, name VARCHAR NOT NULL, applied_at VARCHAR NOT NULL);
";

/// A numbered change of our tables. Never edited once released; the last number is the format's version.
struct Migration {
    version: i64,
    name: &'static str,
    sql: &'static [&'static str],
    /// What SQL cannot do.
    fill: Option<fn(&Connection) -> Result<()>>,
}

const MIGRATIONS: [Migration; 7] = [
    Migration {
        version: 1,
        name: "objects, external tables, views, runs",
        sql: &[LAKE_INDEXES, OBJECTS_DDL, RUNS_DDL, PENDING_DDL],
        fill: None,
    },
    Migration {
        version: 2,
        name: "many tables at once, columns by name",
        sql: &[PENDING_DUE_DDL, COLUMN_TEXT_DDL, column_names::COLUMN_NAMES_DDL],
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
        sql: &[runs::RUNS_DDL, CONVERSATIONS_DDL],
        fill: None,
    },
    Migration { version: 5, name: "listings read one index", sql: &[LISTING_DDL], fill: None },
    Migration { version: 6, name: "users of embedded applications", sql: &[EXTERNAL_USERS_DDL], fill: None },
    Migration {
        version: 7,
        name: "columns of a name in one index",
        sql: &[column_names::COVERED_COLUMN_NAMES_DDL],
        fill: None,
    },
];

/// DuckDB ignores them; a look-up among a million tables needs them.
const LAKE_INDEXES: &str = "
CREATE INDEX querent_ix_schema_begin ON ducklake_schema (begin_snapshot);
CREATE INDEX querent_ix_table_id ON ducklake_table (table_id);
CREATE INDEX querent_ix_table_begin ON ducklake_table (begin_snapshot);
CREATE INDEX querent_ix_view_id ON ducklake_view (view_id);
CREATE INDEX querent_ix_view_begin ON ducklake_view (begin_snapshot);
CREATE INDEX querent_ix_tag ON ducklake_tag (object_id);
CREATE INDEX querent_ix_column_tag ON ducklake_column_tag (table_id, column_id);
CREATE INDEX querent_ix_column ON ducklake_column (table_id, column_order);
CREATE INDEX querent_ix_data_file ON ducklake_data_file (table_id, end_snapshot, begin_snapshot, record_count);
CREATE INDEX querent_ix_file_stats ON ducklake_file_column_stats (data_file_id, column_id);
CREATE INDEX querent_ix_delete_file ON ducklake_delete_file (table_id);
CREATE INDEX querent_ix_table_stats ON ducklake_table_stats (table_id);
CREATE INDEX querent_ix_table_column_stats ON ducklake_table_column_stats (table_id, column_id);
CREATE INDEX querent_ix_inlined ON ducklake_inlined_data_tables (table_id);
CREATE INDEX querent_ix_partition_info ON ducklake_partition_info (table_id);
CREATE INDEX querent_ix_sort_info ON ducklake_sort_info (table_id);
CREATE INDEX querent_ix_schema_versions ON ducklake_schema_versions (table_id);
";

/// `querent_object` and `querent_database` hold what lives at the newest snapshot, under lowercase keys, so that
/// names resolve and page flatly whoever wrote them; the versioned truth stays in the lake's tables.
const OBJECTS_DDL: &str = "
CREATE TABLE querent_database (schema_id INTEGER PRIMARY KEY, key VARCHAR NOT NULL, name VARCHAR NOT NULL, comment VARCHAR);
CREATE INDEX querent_ix_database ON querent_database (key);
CREATE TABLE querent_object (object_id INTEGER PRIMARY KEY, schema_id BIGINT NOT NULL, database_key VARCHAR NOT NULL, key VARCHAR NOT NULL, key_reversed VARCHAR NOT NULL, name VARCHAR NOT NULL, kind VARCHAR NOT NULL);
CREATE INDEX querent_ix_object ON querent_object (database_key, key, object_id);
CREATE INDEX querent_ix_object_kind ON querent_object (database_key, kind, key, object_id);
CREATE INDEX querent_ix_object_reversed ON querent_object (database_key, key_reversed);
CREATE INDEX querent_ix_object_key ON querent_object (key);
CREATE INDEX querent_ix_object_schema ON querent_object (schema_id);
CREATE TABLE querent_external_table (object_id INTEGER PRIMARY KEY, table_uuid VARCHAR NOT NULL, begin_snapshot BIGINT NOT NULL, end_snapshot BIGINT, schema_id BIGINT NOT NULL, table_name VARCHAR NOT NULL, definition VARCHAR NOT NULL);
CREATE TABLE querent_view (view_id INTEGER PRIMARY KEY, default_database VARCHAR NOT NULL);
CREATE TABLE querent_object_schema (object_id INTEGER PRIMARY KEY, arrow_schema BLOB NOT NULL);
CREATE TABLE querent_vector_column (table_id BIGINT, column_id BIGINT, dimension BIGINT NOT NULL, PRIMARY KEY (table_id, column_id)) WITHOUT ROWID;
";

/// One range of an index holds all that is listed of a database's objects, and all but the columns of one.
const LISTING_DDL: &str = "
ALTER TABLE querent_object ADD COLUMN comment VARCHAR;
UPDATE querent_object SET comment = tag.value FROM ducklake_tag tag
    WHERE tag.object_id = querent_object.object_id AND tag.key = 'comment' AND tag.end_snapshot IS NULL;
DROP INDEX querent_ix_object;
CREATE INDEX querent_ix_object ON querent_object (database_key, key, object_id, name, kind, schema_id, comment);
";

const RUNS_DDL: &str = "
CREATE TABLE querent_run (run_id VARCHAR PRIMARY KEY, subject VARCHAR NOT NULL, question VARCHAR NOT NULL, model_id VARCHAR NOT NULL, status VARCHAR NOT NULL, started_at BIGINT NOT NULL, finished_at BIGINT, usage_json VARCHAR NOT NULL, trace_json VARCHAR NOT NULL);
CREATE INDEX querent_ix_run_time ON querent_run (started_at, run_id);
CREATE INDEX querent_ix_run_subject ON querent_run (subject, started_at, run_id);
CREATE INDEX querent_ix_run_running ON querent_run (status) WHERE status = 'running';
";

/// Makes the lake where there is none, checks the versions of one that is there, and applies what migrations it lacks.
pub(super) fn prepare(connection: &mut Connection, data_dir: &Path) -> Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let file = data_dir.join(super::CATALOG_FILE);
    if has_table(&transaction, "ducklake_metadata")? {
        check_ducklake_version(&transaction, &file)?;
    } else if is_empty(&transaction)? {
        create_lake(&transaction, data_dir)?;
    } else {
        return Err(CatalogError::Corrupt { path: file, detail: "it is a SQLite file but not a DuckLake".into() });
    }
    transaction.execute_batch(META_DDL)?;
    migrate(&transaction, &file)?;
    follow_moved_folder(&transaction, data_dir)?;
    ensure_default_database(&transaction)?;
    transaction.commit()?;
    Ok(())
}

fn create_lake(transaction: &Connection, data_dir: &Path) -> Result<()> {
    transaction.execute_batch(DUCKLAKE_DDL)?;
    transaction.execute_batch(META_DDL)?;
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
        "INSERT INTO ducklake_schema VALUES (0, ?, 0, NULL, 'main', 'main/', 1)",
        params![Uuid::now_v7().to_string()],
    )?;
    set_meta(transaction, "owns_data_path", "true")
}

fn check_ducklake_version(transaction: &Connection, file: &Path) -> Result<()> {
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

/// Applies every migration that the store lacks, whichever later ones it has.
fn migrate(transaction: &Connection, file: &Path) -> Result<()> {
    let applied: BTreeSet<i64> = transaction
        .prepare("SELECT version FROM querent_migrations")?
        .query_map([], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
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
            transaction.execute_batch(sql)?;
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

/// A lake that was made here keeps its files beside its catalog, also after the folder was moved or copied.
fn follow_moved_folder(transaction: &Connection, data_dir: &Path) -> Result<()> {
    if meta(transaction, "owns_data_path")?.as_deref() == Some("true") {
        transaction.execute(
            "UPDATE ducklake_metadata SET value = ?1 WHERE key = 'data_path' AND scope IS NULL AND value <> ?1",
            [data_path(data_dir)],
        )?;
    }
    Ok(())
}

fn ensure_default_database(transaction: &Connection) -> Result<()> {
    let mut change = change::Change::begin(transaction)?;
    objects::absorb(&mut change)?;
    if objects::database_id(transaction, DEFAULT_DATABASE)?.is_none() {
        super::databases::create(&mut change, DEFAULT_DATABASE)?;
    }
    // No index is open yet; it finds what was recorded in the pending rows.
    change.finish()?;
    Ok(())
}

fn data_path(data_dir: &Path) -> String {
    format!("{}/", data_dir.join(DATA_FOLDER).display())
}

pub(super) fn meta(connection: &Connection, key: &str) -> Result<Option<String>> {
    Ok(connection
        .prepare_cached("SELECT value FROM querent_meta WHERE key = ?")?
        .query_row([key], |row| row.get(0))
        .optional()?)
}

pub(super) fn set_meta(connection: &Connection, key: &str, value: &str) -> Result<()> {
    connection
        .prepare_cached("INSERT INTO querent_meta VALUES (?1, ?2) ON CONFLICT (key) DO UPDATE SET value = ?2")?
        .execute([key, value])?;
    Ok(())
}

fn has_table(connection: &Connection, name: &str) -> Result<bool> {
    Ok(connection
        .prepare_cached("SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?)")?
        .query_row([name], |row| row.get(0))?)
}

fn is_empty(connection: &Connection) -> Result<bool> {
    Ok(connection.query_row("SELECT NOT EXISTS (SELECT 1 FROM sqlite_master)", [], |row| row.get(0))?)
}
