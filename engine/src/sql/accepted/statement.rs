//! Statements that write, and SHOW. Other kinds of statements are refused as a whole, by `statement` and by policy.

use datafusion::sql::sqlparser::ast::{
    ColumnDef, CreateTable, CreateTableOptions, CreateView, Delete, HiveDistributionStyle, HiveFormat, Insert,
    ObjectType, Statement, TableObject, Update, ViewColumnDef,
};

use super::{LEAVE_OUT, refuse, refuse_if};
use crate::error::Result;
use crate::sql::sort_orders::is_sort_order;

pub(super) fn check(statement: &Statement) -> Result<()> {
    match statement {
        Statement::Insert(insert) => check_insert(insert),
        Statement::Update(update) => check_update(update),
        Statement::Delete(delete) => check_delete(delete),
        Statement::CreateTable(table) => check_create_table(table),
        Statement::CreateView(view) => check_create_view(view),
        Statement::Drop { object_type, if_exists: _, names: _, cascade: _, restrict, purge, temporary, table } => {
            let is_of_tables = matches!(object_type, ObjectType::Table | ObjectType::View);
            refuse_if(
                *restrict && is_of_tables,
                "RESTRICT of DROP",
                "leave it out: views that read what is dropped are not looked for, and fail where they are queried",
            )?;
            refuse_if(*purge, "PURGE", LEAVE_OUT)?;
            refuse_if(*temporary, "DROP TEMPORARY", "write DROP TABLE: a table of the session comes first")?;
            refuse_if(table.is_some(), "DROP ... ON table", "drop the table")
        }
        Statement::CreateSchema { schema_name: _, if_not_exists: _, with, options, default_collate_spec, clone } => {
            let any = [with.is_some(), options.is_some(), default_collate_spec.is_some(), clone.is_some()];
            refuse_if(any.contains(&true), "options of CREATE SCHEMA", "write CREATE SCHEMA [IF NOT EXISTS] name")
        }
        Statement::CreateDatabase {
            db_name: _,
            if_not_exists: _,
            location,
            managed_location,
            or_replace,
            transient,
            clone,
            data_retention_time_in_days,
            max_data_extension_time_in_days,
            external_volume,
            catalog,
            replace_invalid_characters,
            default_ddl_collation,
            storage_serialization_policy,
            comment,
            default_charset,
            default_collation,
            catalog_sync,
            catalog_sync_namespace_mode,
            catalog_sync_namespace_flatten_delimiter,
            with_tags,
            with_contacts,
        } => {
            let any = [
                location.is_some(),
                managed_location.is_some(),
                *or_replace,
                *transient,
                clone.is_some(),
                data_retention_time_in_days.is_some(),
                max_data_extension_time_in_days.is_some(),
                external_volume.is_some(),
                catalog.is_some(),
                replace_invalid_characters.is_some(),
                default_ddl_collation.is_some(),
                storage_serialization_policy.is_some(),
                comment.is_some(),
                default_charset.is_some(),
                default_collation.is_some(),
                catalog_sync.is_some(),
                catalog_sync_namespace_mode.is_some(),
                catalog_sync_namespace_flatten_delimiter.is_some(),
                with_tags.is_some(),
                with_contacts.is_some(),
            ];
            refuse_if(any.contains(&true), "options of CREATE DATABASE", "write CREATE DATABASE [IF NOT EXISTS] name")
        }
        Statement::ShowTables { terse, history, extended, full, external, show_options: _ } => {
            let any = *terse || *history || *extended || *full || *external;
            refuse_if(any, "a modifier of SHOW TABLES", "write SHOW TABLES [FROM database] [LIKE pattern]")
        }
        Statement::ShowColumns { extended, full, show_options: _ } => {
            refuse_if(*extended || *full, "a modifier of SHOW COLUMNS", "write SHOW COLUMNS FROM table")
        }
        Statement::ShowDatabases { terse, history, show_options: _ }
        | Statement::ShowSchemas { terse, history, show_options: _ } => {
            refuse_if(*terse || *history, "a modifier of SHOW", "write SHOW DATABASES [LIKE pattern]")
        }
        Statement::ExplainTable { describe_alias: _, hive_format, has_table_keyword: _, table_name: _ } => {
            refuse_if(hive_format.is_some(), "a format of DESCRIBE", LEAVE_OUT)
        }
        Statement::Explain {
            describe_alias: _,
            analyze: _,
            verbose: _,
            query_plan,
            estimate,
            statement: _,
            format: _,
            options,
        } => {
            let any = *query_plan || *estimate || options.is_some();
            refuse_if(any, "options of EXPLAIN", "write EXPLAIN [ANALYZE] [VERBOSE] statement")
        }
        // Each is either planned as a whole, or refused as a whole.
        _ => Ok(()),
    }
}

fn check_insert(insert: &Insert) -> Result<()> {
    let Insert {
        insert_token: _,
        optimizer_hints: _,
        or,
        ignore,
        into: _,
        table,
        table_alias,
        columns,
        overwrite: _,
        source,
        assignments,
        partitioned,
        after_columns,
        has_table_keyword: _,
        on,
        returning: _,
        output,
        replace_into,
        priority,
        insert_alias,
        settings,
        format_clause,
        multi_table_insert_type,
        multi_table_into_clauses,
        multi_table_when_clauses,
        multi_table_else_clause,
    } = insert;
    const NO_KEYS: &str = "keys are recorded and not enforced, so that no row conflicts; say by which columns rows match: \
                           MERGE INTO t USING (VALUES ...) AS n(...) ON t.key = n.key WHEN MATCHED THEN UPDATE SET ... \
                           WHEN NOT MATCHED THEN INSERT (...) VALUES (...)";
    refuse_if(or.is_some() || *ignore || on.is_some() || *replace_into, "INSERT with a conflict clause", NO_KEYS)?;
    match table {
        TableObject::TableName(_) => {}
        TableObject::TableFunction(_) | TableObject::TableQuery(_) => {
            refuse("INSERT INTO a function or a query", "name a table")?;
        }
    }
    refuse_if(table_alias.is_some() || insert_alias.is_some(), "an alias in INSERT", LEAVE_OUT)?;
    // Without rows there are DEFAULT VALUES.
    let is_without = source.is_none() && !columns.is_empty();
    refuse_if(is_without || !assignments.is_empty(), "INSERT without rows", "write VALUES (...) or a query")?;
    refuse_if(partitioned.is_some() || !after_columns.is_empty(), "PARTITION in INSERT", LEAVE_OUT)?;
    refuse_if(output.is_some(), "OUTPUT", "write RETURNING")?;
    refuse_if(priority.is_some(), "a priority of INSERT", LEAVE_OUT)?;
    refuse_if(settings.is_some() || format_clause.is_some(), "SETTINGS and FORMAT of INSERT", LEAVE_OUT)?;
    let several = multi_table_insert_type.is_some()
        || !multi_table_into_clauses.is_empty()
        || !multi_table_when_clauses.is_empty()
        || multi_table_else_clause.is_some();
    refuse_if(several, "INSERT into several tables", "write one INSERT for each")
}

/// The parts of UPDATE that are taken apart where it is planned.
fn check_update(update: &Update) -> Result<()> {
    let Update {
        update_token: _,
        optimizer_hints: _,
        table: _,
        assignments: _,
        from: _,
        selection: _,
        returning: _,
        output,
        or,
        order_by,
        limit,
    } = update;
    refuse_if(output.is_some(), "OUTPUT", "write RETURNING")?;
    refuse_if(or.is_some(), "UPDATE with a conflict clause", LEAVE_OUT)?;
    refuse_if(!order_by.is_empty() || limit.is_some(), "ORDER BY and LIMIT of UPDATE", CHOOSE)
}

const CHOOSE: &str = "choose the rows in WHERE: key IN (SELECT key FROM t ORDER BY ... LIMIT ...)";

fn check_delete(delete: &Delete) -> Result<()> {
    let Delete {
        delete_token: _,
        optimizer_hints: _,
        tables,
        from: _,
        using: _,
        selection: _,
        returning: _,
        output,
        order_by,
        limit,
    } = delete;
    refuse_if(!tables.is_empty(), "DELETE of several tables", "write DELETE FROM t USING others WHERE ...")?;
    refuse_if(output.is_some(), "OUTPUT", "write RETURNING")?;
    refuse_if(!order_by.is_empty() || limit.is_some(), "ORDER BY and LIMIT of DELETE", CHOOSE)
}

fn check_create_view(view: &CreateView) -> Result<()> {
    let CreateView {
        or_alter,
        or_replace: _,
        materialized,
        secure,
        name: _,
        name_before_not_exists: _,
        columns,
        query: _,
        options,
        cluster_by,
        comment,
        with_no_schema_binding,
        if_not_exists: _,
        temporary,
        copy_grants,
        to,
        params,
    } = view;
    let typed =
        columns.iter().any(|ViewColumnDef { name: _, data_type, options }| data_type.is_some() || options.is_some());
    let any = *or_alter
        || *materialized
        || *secure
        || typed
        || !matches!(options, CreateTableOptions::None)
        || !cluster_by.is_empty()
        || comment.is_some()
        || *with_no_schema_binding
        || *temporary
        || *copy_grants
        || to.is_some()
        || params.is_some();
    refuse_if(
        any,
        "this form of CREATE VIEW",
        "write CREATE [OR REPLACE] VIEW [IF NOT EXISTS] name [(columns)] AS query",
    )
}

fn check_create_table(table: &CreateTable) -> Result<()> {
    let CreateTable {
        or_replace: _,
        temporary: _,
        external,
        dynamic,
        global,
        if_not_exists: _,
        transient,
        volatile,
        iceberg,
        snapshot,
        name: _,
        columns,
        constraints: _,
        hive_distribution,
        hive_formats,
        table_options,
        file_format,
        location,
        query: _,
        without_rowid,
        like,
        clone,
        version,
        comment,
        on_commit,
        on_cluster,
        primary_key,
        order_by,
        partition_by,
        cluster_by,
        clustered_by,
        inherits,
        partition_of,
        for_values,
        strict,
        copy_grants,
        enable_schema_evolution,
        change_tracking,
        data_retention_time_in_days,
        max_data_extension_time_in_days,
        default_ddl_collation,
        with_aggregation_policy,
        with_row_access_policy,
        with_storage_lifecycle_policy,
        with_tags,
        external_volume,
        base_location,
        catalog,
        catalog_sync,
        storage_serialization_policy,
        target_lag,
        warehouse,
        refresh_mode,
        initialize,
        require_user,
        diststyle,
        distkey,
        sortkey,
        backup,
    } = table;
    // The options of a column are checked where keys are taken from them.
    columns.iter().for_each(|ColumnDef { name: _, data_type: _, options: _ }| {});
    // Of LIKE the columns are read, before this.
    refuse_if(
        like.is_some() || clone.is_some(),
        "this form of CREATE TABLE ... LIKE",
        "write CREATE TABLE new (LIKE old)",
    )?;
    refuse_if(
        partition_by.is_some() || partition_of.is_some() || for_values.is_some(),
        "PARTITION BY of a table",
        "leave it out: files are pruned by their statistics",
    )?;
    refuse_if(comment.is_some(), "COMMENT in CREATE TABLE", "write COMMENT ON TABLE afterwards")?;
    refuse_if(primary_key.is_some(), "PRIMARY KEY behind the columns", "write it between the parentheses")?;
    let hive = match hive_formats {
        None => false,
        Some(HiveFormat { row_format, serde_properties, storage, location }) => {
            row_format.is_some() || serde_properties.is_some() || storage.is_some() || location.is_some()
        }
    };
    let distributed = match hive_distribution {
        HiveDistributionStyle::NONE => false,
        HiveDistributionStyle::PARTITIONED { columns: _ }
        | HiveDistributionStyle::SKEWED { columns: _, on: _, stored_as_directories: _ } => true,
    };
    let options = match table_options {
        CreateTableOptions::None => false,
        // It is planned, and taken from there.
        CreateTableOptions::With(_) if is_sort_order(table_options) => false,
        CreateTableOptions::With(_)
        | CreateTableOptions::Options(_)
        | CreateTableOptions::Plain(_)
        | CreateTableOptions::TableProperties(_) => true,
    };
    let any = [
        *external,
        *dynamic,
        global.is_some(),
        *transient,
        *volatile,
        *iceberg,
        *snapshot,
        hive,
        distributed,
        options,
        file_format.is_some(),
        location.is_some(),
        *without_rowid,
        version.is_some(),
        on_commit.is_some(),
        on_cluster.is_some(),
        order_by.is_some(),
        cluster_by.is_some(),
        clustered_by.is_some(),
        inherits.is_some(),
        *strict,
        *copy_grants,
        enable_schema_evolution.is_some(),
        change_tracking.is_some(),
        data_retention_time_in_days.is_some(),
        max_data_extension_time_in_days.is_some(),
        default_ddl_collation.is_some(),
        with_aggregation_policy.is_some(),
        with_row_access_policy.is_some(),
        with_storage_lifecycle_policy.is_some(),
        with_tags.is_some(),
        external_volume.is_some(),
        base_location.is_some(),
        catalog.is_some(),
        catalog_sync.is_some(),
        storage_serialization_policy.is_some(),
        target_lag.is_some(),
        warehouse.is_some(),
        refresh_mode.is_some(),
        initialize.is_some(),
        *require_user,
        diststyle.is_some(),
        distkey.is_some(),
        sortkey.is_some(),
        backup.is_some(),
    ];
    refuse_if(
        any.contains(&true),
        "this option of CREATE TABLE",
        "write CREATE [OR REPLACE] [TEMPORARY] TABLE [IF NOT EXISTS] name (columns and keys), or AS query",
    )
}
