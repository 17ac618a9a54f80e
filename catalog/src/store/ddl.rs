//! The DDL of all tables in `catalog.sqlite`: DuckLake's own, byte for byte, and every `querent_*` table and index,
//! each constant in the state of the migration that applies it. The migrations are in `store/migrations.rs`.
//!
//! Invariant: a constant that a released migration applies never changes.

/// What DuckDB creates, byte for byte (`SELECT sql FROM sqlite_master` of a lake made by DuckDB 1.5.5).
pub(super) const DUCKLAKE_DDL: &str = r#"
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

/// The same as DuckDB creates it in PostgreSQL, where values have types of their own (`pg_dump --schema-only` of a lake made
/// by DuckDB 1.5.5).
pub(super) const POSTGRES_DUCKLAKE_DDL: &str = r#"
CREATE TABLE ducklake_metadata("key" VARCHAR NOT NULL, "value" VARCHAR NOT NULL, "scope" VARCHAR, scope_id BIGINT);
CREATE TABLE ducklake_snapshot(snapshot_id BIGINT PRIMARY KEY, snapshot_time TIMESTAMPTZ, schema_version BIGINT, next_catalog_id BIGINT, next_file_id BIGINT);
CREATE TABLE ducklake_snapshot_changes(snapshot_id BIGINT PRIMARY KEY, changes_made VARCHAR, author VARCHAR, commit_message VARCHAR, commit_extra_info VARCHAR);
CREATE TABLE ducklake_schema(schema_id BIGINT PRIMARY KEY, schema_uuid UUID, begin_snapshot BIGINT, end_snapshot BIGINT, schema_name VARCHAR, path VARCHAR, path_is_relative BOOLEAN);
CREATE TABLE ducklake_table(table_id BIGINT, table_uuid UUID, begin_snapshot BIGINT, end_snapshot BIGINT, schema_id BIGINT, table_name VARCHAR, path VARCHAR, path_is_relative BOOLEAN);
CREATE TABLE ducklake_view(view_id BIGINT, view_uuid UUID, begin_snapshot BIGINT, end_snapshot BIGINT, schema_id BIGINT, view_name VARCHAR, dialect VARCHAR, "sql" VARCHAR, column_aliases VARCHAR);
CREATE TABLE ducklake_tag(object_id BIGINT, begin_snapshot BIGINT, end_snapshot BIGINT, "key" VARCHAR, "value" VARCHAR);
CREATE TABLE ducklake_column_tag(table_id BIGINT, column_id BIGINT, begin_snapshot BIGINT, end_snapshot BIGINT, "key" VARCHAR, "value" VARCHAR);
CREATE TABLE ducklake_data_file(data_file_id BIGINT PRIMARY KEY, table_id BIGINT, begin_snapshot BIGINT, end_snapshot BIGINT, file_order BIGINT, path VARCHAR, path_is_relative BOOLEAN, file_format VARCHAR, record_count BIGINT, file_size_bytes BIGINT, footer_size BIGINT, row_id_start BIGINT, partition_id BIGINT, encryption_key VARCHAR, mapping_id BIGINT, partial_max BIGINT);
CREATE TABLE ducklake_file_column_stats(data_file_id BIGINT, table_id BIGINT, column_id BIGINT, column_size_bytes BIGINT, value_count BIGINT, null_count BIGINT, min_value VARCHAR, max_value VARCHAR, contains_nan BOOLEAN, extra_stats VARCHAR);
CREATE TABLE ducklake_file_variant_stats(data_file_id BIGINT, table_id BIGINT, column_id BIGINT, variant_path VARCHAR, shredded_type VARCHAR, column_size_bytes BIGINT, value_count BIGINT, null_count BIGINT, min_value VARCHAR, max_value VARCHAR, contains_nan BOOLEAN, extra_stats VARCHAR);
CREATE TABLE ducklake_delete_file(delete_file_id BIGINT PRIMARY KEY, table_id BIGINT, begin_snapshot BIGINT, end_snapshot BIGINT, data_file_id BIGINT, path VARCHAR, path_is_relative BOOLEAN, format VARCHAR, delete_count BIGINT, file_size_bytes BIGINT, footer_size BIGINT, encryption_key VARCHAR, partial_max BIGINT);
CREATE TABLE ducklake_column(column_id BIGINT, begin_snapshot BIGINT, end_snapshot BIGINT, table_id BIGINT, column_order BIGINT, column_name VARCHAR, column_type VARCHAR, initial_default VARCHAR, default_value VARCHAR, nulls_allowed BOOLEAN, parent_column BIGINT, default_value_type VARCHAR, default_value_dialect VARCHAR);
CREATE TABLE ducklake_table_stats(table_id BIGINT, record_count BIGINT, next_row_id BIGINT, file_size_bytes BIGINT);
CREATE TABLE ducklake_table_column_stats(table_id BIGINT, column_id BIGINT, contains_null BOOLEAN, contains_nan BOOLEAN, min_value VARCHAR, max_value VARCHAR, extra_stats VARCHAR);
CREATE TABLE ducklake_partition_info(partition_id BIGINT, table_id BIGINT, begin_snapshot BIGINT, end_snapshot BIGINT);
CREATE TABLE ducklake_partition_column(partition_id BIGINT, table_id BIGINT, partition_key_index BIGINT, column_id BIGINT, "transform" VARCHAR);
CREATE TABLE ducklake_file_partition_value(data_file_id BIGINT, table_id BIGINT, partition_key_index BIGINT, partition_value VARCHAR);
CREATE TABLE ducklake_files_scheduled_for_deletion(data_file_id BIGINT, path VARCHAR, path_is_relative BOOLEAN, schedule_start TIMESTAMPTZ);
CREATE TABLE ducklake_inlined_data_tables(table_id BIGINT, table_name VARCHAR, schema_version BIGINT);
CREATE TABLE ducklake_column_mapping(mapping_id BIGINT, table_id BIGINT, "type" VARCHAR);
CREATE TABLE ducklake_name_mapping(mapping_id BIGINT, column_id BIGINT, source_name VARCHAR, target_field_id BIGINT, parent_column BIGINT, is_partition BOOLEAN);
CREATE TABLE ducklake_schema_versions(begin_snapshot BIGINT, schema_version BIGINT, table_id BIGINT);
CREATE TABLE ducklake_macro(schema_id BIGINT, macro_id BIGINT, macro_name VARCHAR, begin_snapshot BIGINT, end_snapshot BIGINT);
CREATE TABLE ducklake_macro_impl(macro_id BIGINT, impl_id BIGINT, dialect VARCHAR, "sql" VARCHAR, "type" VARCHAR);
CREATE TABLE ducklake_macro_parameters(macro_id BIGINT, impl_id BIGINT, column_id BIGINT, parameter_name VARCHAR, parameter_type VARCHAR, default_value VARCHAR, default_value_type VARCHAR);
CREATE TABLE ducklake_sort_info(sort_id BIGINT, table_id BIGINT, begin_snapshot BIGINT, end_snapshot BIGINT);
CREATE TABLE ducklake_sort_expression(sort_id BIGINT, table_id BIGINT, sort_key_index BIGINT, expression VARCHAR, dialect VARCHAR, sort_direction VARCHAR, null_order VARCHAR);
"#;

/// Known before the migrations are: format and bookkeeping.
pub(super) const META_DDL: &str = "
CREATE TABLE IF NOT EXISTS querent_meta (key VARCHAR PRIMARY KEY, value VARCHAR NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS querent_migrations (version BIGINT PRIMARY KEY, name VARCHAR NOT NULL, applied_at VARCHAR NOT NULL);
";

/// DuckDB ignores them; a look-up among a million tables needs them.
pub(super) const LAKE_INDEXES: &str = "
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

/// Has what earlier versions said of columns with JSON: nothing as a rule, which is found without reading every comment.
pub(super) const COLUMN_MARKS_INDEX: &str = "
CREATE INDEX IF NOT EXISTS querent_ix_column_marks ON ducklake_column_tag (table_id) WHERE key = 'querent_json';
";

/// `querent_object` and `querent_database` hold what lives at the newest snapshot, under lowercase keys, so that
/// names resolve and page flatly whoever wrote them; the versioned truth stays in the lake's tables.
pub(super) const OBJECTS_DDL: &str = "
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
pub(super) const LISTING_DDL: &str = "
ALTER TABLE querent_object ADD COLUMN comment VARCHAR;
UPDATE querent_object SET comment = tag.value FROM ducklake_tag tag
    WHERE tag.object_id = querent_object.object_id AND tag.key = 'comment' AND tag.end_snapshot IS NULL;
DROP INDEX querent_ix_object;
CREATE INDEX querent_ix_object ON querent_object (database_key, key, object_id, name, kind, schema_id, comment);
";

pub(super) const RUNS_DDL: &str = "
CREATE TABLE querent_run (run_id VARCHAR PRIMARY KEY, subject VARCHAR NOT NULL, question VARCHAR NOT NULL, model_id VARCHAR NOT NULL, status VARCHAR NOT NULL, started_at BIGINT NOT NULL, finished_at BIGINT, usage_json VARCHAR NOT NULL, trace_json VARCHAR NOT NULL);
CREATE INDEX querent_ix_run_time ON querent_run (started_at, run_id);
CREATE INDEX querent_ix_run_subject ON querent_run (subject, started_at, run_id);
CREATE INDEX querent_ix_run_running ON querent_run (status) WHERE status = 'running';
";

/// Objects that have not reached the schema index yet, and the state of the index.
pub(super) const PENDING_DDL: &str = "
CREATE TABLE IF NOT EXISTS querent_pending_objects (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT,
    object_id BIGINT NOT NULL UNIQUE,
    kind VARCHAR NOT NULL,
    database_id BIGINT NOT NULL,
    text VARCHAR
);
CREATE TABLE IF NOT EXISTS querent_index_state (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    folder VARCHAR NOT NULL,
    version BIGINT NOT NULL,
    text_version BIGINT NOT NULL,
    model_id VARCHAR,
    dimension BIGINT
);
";

/// Lets rows without a text say that it is due.
pub(super) const PENDING_DUE_DDL: &str =
    "ALTER TABLE querent_pending_objects ADD COLUMN is_due BIGINT NOT NULL DEFAULT 0;";

/// Distinct column texts, each found by its hash; `is_due` until Lance holds it. And a state for each kind of object.
pub(super) const COLUMN_TEXT_DDL: &str = "
CREATE TABLE querent_column_text (
    text_id INTEGER PRIMARY KEY,
    hash BLOB NOT NULL UNIQUE,
    name VARCHAR NOT NULL,
    words VARCHAR NOT NULL,
    text VARCHAR NOT NULL,
    is_due BIGINT NOT NULL
);
CREATE INDEX querent_ix_column_text_words ON querent_column_text (words);
CREATE INDEX querent_ix_column_text_due ON querent_column_text (text_id) WHERE is_due = 1;
CREATE TABLE querent_index (
    kind VARCHAR PRIMARY KEY,
    folder VARCHAR NOT NULL,
    version BIGINT NOT NULL,
    text_version BIGINT NOT NULL,
    model_id VARCHAR,
    dimension BIGINT,
    is_embedded BIGINT NOT NULL
);
INSERT INTO querent_index SELECT 'table', folder, version, text_version, model_id, dimension, 0 FROM querent_index_state;
DROP TABLE querent_index_state;
";

/// The index of objects covers what [`crate::store::listing`] reads of a name that many databases have.
pub(super) const COLUMN_NAMES_DDL: &str = "
DROP INDEX querent_ix_object_key;
CREATE INDEX querent_ix_object_key ON querent_object (key, database_key, object_id, kind);
CREATE INDEX querent_ix_column_name ON ducklake_column (column_name COLLATE NOCASE, table_id);
CREATE TABLE querent_described_column (key VARCHAR NOT NULL, object_id BIGINT NOT NULL, name VARCHAR NOT NULL, PRIMARY KEY (key, object_id)) WITHOUT ROWID;
";

/// All that a look-up of a name reads of a managed table's column: a row of the lake's for each table of a common name
/// would have to be fetched otherwise.
pub(super) const COVERED_COLUMN_NAMES_DDL: &str = "
DROP INDEX querent_ix_column_name;
CREATE INDEX querent_ix_column_name ON ducklake_column (column_name COLLATE NOCASE, table_id, parent_column, begin_snapshot, end_snapshot);
";

/// Declared relationships and foreign keys.
pub(super) const RELATIONSHIPS_DDL: &str = "
CREATE TABLE querent_relationship (relationship_id INTEGER PRIMARY KEY AUTOINCREMENT, from_database VARCHAR NOT NULL, from_table VARCHAR NOT NULL, from_columns VARCHAR NOT NULL, to_database VARCHAR NOT NULL, to_table VARCHAR NOT NULL, to_columns VARCHAR NOT NULL, origin VARCHAR NOT NULL, subject VARCHAR NOT NULL, created_at BIGINT NOT NULL);
CREATE UNIQUE INDEX querent_ix_relationship ON querent_relationship (from_database, from_table, to_database, to_table, from_columns, to_columns, origin);
CREATE INDEX querent_ix_relationship_to ON querent_relationship (to_database, to_table);
";

/// Verified queries and metrics.
pub(super) const KNOWLEDGE_DDL: &str = "
CREATE TABLE querent_verified_query (id INTEGER PRIMARY KEY AUTOINCREMENT, database_key VARCHAR NOT NULL, question_key VARCHAR NOT NULL, database VARCHAR NOT NULL, question VARCHAR NOT NULL, sql VARCHAR NOT NULL, tables VARCHAR NOT NULL, subject VARCHAR NOT NULL, created_at BIGINT NOT NULL, UNIQUE (database_key, question_key));
CREATE TABLE querent_metric (id INTEGER PRIMARY KEY AUTOINCREMENT, database_key VARCHAR NOT NULL, name_key VARCHAR NOT NULL, database VARCHAR NOT NULL, name VARCHAR NOT NULL, description VARCHAR, of_table VARCHAR NOT NULL, expression VARCHAR NOT NULL, row_filter VARCHAR, subject VARCHAR NOT NULL, created_at BIGINT NOT NULL, UNIQUE (database_key, name_key));
";

/// Sampled values and sketches of columns.
pub(super) const VALUES_DDL: &str = "
CREATE TABLE querent_column_value (key VARCHAR NOT NULL, schema_id BIGINT NOT NULL, object_id BIGINT NOT NULL, column_name VARCHAR NOT NULL, value VARCHAR NOT NULL, row_count BIGINT NOT NULL, PRIMARY KEY (key, schema_id, object_id, column_name)) WITHOUT ROWID;
CREATE INDEX querent_ix_column_value ON querent_column_value (object_id);
CREATE TABLE querent_column_profile (object_id BIGINT NOT NULL, column_name VARCHAR NOT NULL, schema_id BIGINT NOT NULL, has_values BIGINT NOT NULL, is_complete BIGINT NOT NULL, sketch BLOB NOT NULL, PRIMARY KEY (object_id, column_name)) WITHOUT ROWID;
CREATE INDEX querent_ix_column_profile ON querent_column_profile (schema_id, has_values);
CREATE TABLE querent_profile (object_id INTEGER PRIMARY KEY, state VARCHAR NOT NULL, profiled_at BIGINT NOT NULL);
";

/// Rewrites the table: the logs come last, so that no listing walks over them to what it shows.
pub(super) const RUN_LOGS_DDL: &str = "
CREATE TABLE querent_run_made_anew (run_id VARCHAR PRIMARY KEY, subject VARCHAR NOT NULL, question VARCHAR NOT NULL, model_id VARCHAR NOT NULL, status VARCHAR NOT NULL, started_at BIGINT NOT NULL, finished_at BIGINT, protocol VARCHAR NOT NULL, space VARCHAR, conversation_id VARCHAR, previous_run_id VARCHAR, invocation_id VARCHAR, retained BIGINT NOT NULL, usage_json VARCHAR NOT NULL, trace_json VARCHAR NOT NULL, events_json VARCHAR NOT NULL, messages_json VARCHAR NOT NULL);
INSERT INTO querent_run_made_anew SELECT run_id, subject, question, model_id, status, started_at, finished_at, 'ask', NULL, NULL, NULL, NULL, 0, usage_json, trace_json, '[]', '[]' FROM querent_run;
DROP TABLE querent_run;
ALTER TABLE querent_run_made_anew RENAME TO querent_run;
CREATE INDEX querent_ix_run_time ON querent_run (started_at, run_id);
CREATE INDEX querent_ix_run_subject ON querent_run (subject, started_at, run_id);
CREATE INDEX querent_ix_run_running ON querent_run (status) WHERE status = 'running';
CREATE INDEX querent_ix_run_finished ON querent_run (finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX querent_ix_run_conversation ON querent_run (space, conversation_id, started_at, run_id) WHERE conversation_id IS NOT NULL;
CREATE INDEX querent_ix_run_invocation ON querent_run (invocation_id, started_at) WHERE invocation_id IS NOT NULL;
";

/// Large values come last, so that no listing walks over them; a file's content is in a table of its own.
pub(super) const CONVERSATIONS_DDL: &str = "
CREATE TABLE querent_conversation (space VARCHAR NOT NULL, id VARCHAR NOT NULL, subject VARCHAR NOT NULL, user_id VARCHAR NOT NULL, app VARCHAR NOT NULL, title VARCHAR NOT NULL, created_at BIGINT NOT NULL, updated_at BIGINT NOT NULL, metadata_json VARCHAR NOT NULL, state_json VARCHAR NOT NULL, PRIMARY KEY (space, id));
CREATE INDEX querent_ix_conversation_space ON querent_conversation (space, updated_at, id);
CREATE INDEX querent_ix_conversation_subject ON querent_conversation (subject, space, updated_at, id);
CREATE INDEX querent_ix_conversation_subject_user ON querent_conversation (subject, user_id, space, updated_at, id);
CREATE INDEX querent_ix_conversation_user ON querent_conversation (user_id, space, updated_at, id);
CREATE INDEX querent_ix_conversation_updated ON querent_conversation (updated_at);
CREATE TABLE querent_item (seq INTEGER PRIMARY KEY, item_id VARCHAR NOT NULL UNIQUE, subject VARCHAR NOT NULL, space VARCHAR, conversation_id VARCHAR, run_id VARCHAR, role VARCHAR NOT NULL, created_at BIGINT NOT NULL, item_json VARCHAR NOT NULL);
CREATE INDEX querent_ix_item_conversation ON querent_item (space, conversation_id) WHERE conversation_id IS NOT NULL;
CREATE INDEX querent_ix_item_run ON querent_item (run_id, role) WHERE run_id IS NOT NULL;
CREATE TABLE querent_pending_call (call_id VARCHAR PRIMARY KEY, kind VARCHAR NOT NULL, subject VARCHAR NOT NULL, run_id VARCHAR NOT NULL, space VARCHAR, conversation_id VARCHAR, tool VARCHAR NOT NULL, state VARCHAR NOT NULL, decided_at BIGINT, arguments_json VARCHAR NOT NULL, decision_json VARCHAR, receipt_json VARCHAR);
CREATE INDEX querent_ix_pending_call_run ON querent_pending_call (run_id);
CREATE INDEX querent_ix_pending_call_conversation ON querent_pending_call (space, conversation_id) WHERE conversation_id IS NOT NULL;
CREATE TABLE querent_file (file_id VARCHAR PRIMARY KEY, subject VARCHAR NOT NULL, filename VARCHAR NOT NULL, media_type VARCHAR NOT NULL, purpose VARCHAR NOT NULL, bytes BIGINT NOT NULL, created_at BIGINT NOT NULL);
CREATE INDEX querent_ix_file_time ON querent_file (created_at, file_id);
CREATE INDEX querent_ix_file_subject ON querent_file (subject, created_at, file_id);
CREATE TABLE querent_file_content (file_id VARCHAR PRIMARY KEY, content BLOB NOT NULL);
";

/// Users of applications, and the digests of what their browsers hold.
pub(super) const EXTERNAL_USERS_DDL: &str = "
CREATE TABLE querent_external_user (subject VARCHAR PRIMARY KEY, space VARCHAR NOT NULL, created_at BIGINT NOT NULL, expires_at BIGINT);
CREATE INDEX querent_ix_external_user_expiry ON querent_external_user (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX querent_ix_external_user_kept ON querent_external_user (space) WHERE expires_at IS NULL;
CREATE TABLE querent_embed_grant (digest VARCHAR PRIMARY KEY, kind VARCHAR NOT NULL, subject VARCHAR NOT NULL, expires_at BIGINT NOT NULL, user_json VARCHAR NOT NULL);
CREATE INDEX querent_ix_embed_grant_expiry ON querent_embed_grant (expires_at);
CREATE INDEX querent_ix_embed_grant_subject ON querent_embed_grant (subject);
";

/// Primary keys and unique constraints, and the names of foreign keys, which are relationships.
pub(super) const KEYS_DDL: &str = "
CREATE TABLE querent_key (key_id INTEGER PRIMARY KEY AUTOINCREMENT, table_id BIGINT NOT NULL, is_primary BIGINT NOT NULL, name VARCHAR NOT NULL, column_ids VARCHAR NOT NULL);
CREATE INDEX querent_ix_key ON querent_key (table_id);
CREATE TABLE querent_foreign_key (relationship_id INTEGER PRIMARY KEY, name VARCHAR NOT NULL);
";

/// Tokens by the digest of what their holders send, which itself is not kept.
pub(super) const TOKENS_DDL: &str = "
CREATE TABLE querent_token (token_id INTEGER PRIMARY KEY AUTOINCREMENT, digest BLOB NOT NULL UNIQUE, name VARCHAR NOT NULL, subject VARCHAR NOT NULL, role VARCHAR NOT NULL, databases_json VARCHAR, identity_json VARCHAR NOT NULL, created_by VARCHAR NOT NULL, created_at BIGINT NOT NULL, expires_at BIGINT, revoked_at BIGINT);
";

/// Grants, row policies and masks: a document a version.
pub(super) const POLICIES_DDL: &str = "
CREATE TABLE querent_policy (version INTEGER PRIMARY KEY AUTOINCREMENT, document_json VARCHAR NOT NULL, statement VARCHAR NOT NULL, changed_by VARCHAR NOT NULL, changed_at BIGINT NOT NULL);
";

/// Graph models and their snapshots, by the names of their databases.
pub(super) const GRAPH_MODELS_DDL: &str = "
CREATE TABLE querent_graph_model (model_id VARCHAR NOT NULL PRIMARY KEY, database_key VARCHAR NOT NULL, name_key VARCHAR NOT NULL, database VARCHAR NOT NULL, name VARCHAR NOT NULL, definition VARCHAR NOT NULL, subject VARCHAR NOT NULL, created_at BIGINT NOT NULL, UNIQUE (database_key, name_key));
CREATE TABLE querent_graph_snapshot (id INTEGER PRIMARY KEY AUTOINCREMENT, model_id VARCHAR NOT NULL, name_key VARCHAR NOT NULL, name VARCHAR NOT NULL, definition VARCHAR NOT NULL, tables VARCHAR NOT NULL, subject VARCHAR NOT NULL, created_at BIGINT NOT NULL, UNIQUE (model_id, name_key));
";

/// What the caller of a run could read while it ran.
pub(super) const RUN_REACH_DDL: &str =
    "CREATE TABLE querent_run_reach (run_id VARCHAR PRIMARY KEY, reach_json VARCHAR NOT NULL) WITHOUT ROWID;";

/// What people say of runs, and the verified queries that this proposes.
pub(super) const FEEDBACK_DDL: &str = "
CREATE TABLE querent_run_feedback (run_id VARCHAR NOT NULL, subject VARCHAR NOT NULL, verdict VARCHAR NOT NULL, comment VARCHAR, corrected_sql VARCHAR, corrected_text VARCHAR, created_at BIGINT NOT NULL, updated_at BIGINT NOT NULL, PRIMARY KEY (run_id, subject)) WITHOUT ROWID;
CREATE TABLE querent_query_proposal (id INTEGER PRIMARY KEY AUTOINCREMENT, run_id VARCHAR NOT NULL, subject VARCHAR NOT NULL, state VARCHAR NOT NULL, database VARCHAR NOT NULL, question VARCHAR NOT NULL, sql VARCHAR NOT NULL, tables VARCHAR NOT NULL, created_at BIGINT NOT NULL, decided_at BIGINT, decided_by VARCHAR, UNIQUE (run_id, subject));
CREATE INDEX querent_ix_query_proposal ON querent_query_proposal (state, id);
";

/// The servers that share a catalog, how far each is in the log of pending rows, and whose run is whose.
pub(super) const MEMBERS_DDL: &str = "
CREATE TABLE querent_member (member VARCHAR PRIMARY KEY, sequence BIGINT NOT NULL, seen_at BIGINT NOT NULL);
ALTER TABLE querent_run ADD COLUMN member VARCHAR;
";

/// Which server does the work that is done once for all, and how often each began its index anew.
pub(super) const LEASES_DDL: &str = "
CREATE TABLE querent_lease (name VARCHAR PRIMARY KEY, holder VARCHAR, fence BIGINT NOT NULL, expires_at BIGINT NOT NULL, done_at BIGINT);
ALTER TABLE querent_member ADD COLUMN epoch BIGINT NOT NULL DEFAULT 0;
";

/// Where the servers that share a catalog are reached, and their signs of life. A table of its own: each server writes its row
/// beside whatever writes to the catalog.
pub(super) const MEMBER_ADDRESSES_DDL: &str = "
CREATE TABLE querent_member_address (member VARCHAR PRIMARY KEY, address VARCHAR, alive_at BIGINT NOT NULL);
";

/// The schema index that servers which share a catalog have in common: the list of its files, and how far it is.
pub(super) const PUBLISHED_INDEX_DDL: &str = "
CREATE TABLE querent_published_index (kind VARCHAR PRIMARY KEY, list VARCHAR, held BIGINT NOT NULL, wanted BIGINT NOT NULL, unusable VARCHAR);
";

/// How many distinct values columns had, of how many rows, when a table was last analysed.
pub(super) const DISTINCT_VALUES_DDL: &str = "
CREATE TABLE querent_distinct_values (table_id BIGINT NOT NULL, column_id BIGINT NOT NULL, distinct_values BIGINT NOT NULL, row_count BIGINT NOT NULL, counted_at BIGINT NOT NULL, PRIMARY KEY (table_id, column_id)) WITHOUT ROWID;
";

/// Vector indexes of columns, and the data files that each covers.
pub(super) const VECTOR_INDEXES_DDL: &str = "
CREATE TABLE querent_vector_index (index_id INTEGER PRIMARY KEY AUTOINCREMENT, table_id BIGINT NOT NULL, column_id BIGINT NOT NULL, name VARCHAR NOT NULL, name_key VARCHAR NOT NULL, metric VARCHAR NOT NULL, dimension BIGINT NOT NULL, probes BIGINT, subject VARCHAR NOT NULL, created_at BIGINT NOT NULL, folder VARCHAR, version BIGINT, trained_rows BIGINT);
CREATE INDEX querent_ix_vector_index ON querent_vector_index (table_id);
CREATE TABLE querent_vector_index_file (index_id BIGINT NOT NULL, data_file_id BIGINT NOT NULL, rows BIGINT NOT NULL, null_rows BIGINT NOT NULL, has_odd_numbers BIGINT NOT NULL, runs_json VARCHAR NOT NULL, PRIMARY KEY (index_id, data_file_id)) WITHOUT ROWID;
";
