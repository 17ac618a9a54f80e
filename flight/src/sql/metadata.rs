//! The metadata commands, answered with record batches that are read from the catalog page by page.
//!
//! Invariant: nothing here loads a whole listing or opens a table; filters are pushed down to the catalog.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray};
use arrow_flight::sql::metadata::{GetCatalogsBuilder, GetDbSchemasBuilder, GetTablesBuilder, SqlInfoDataBuilder};
use arrow_flight::sql::{
    Command, CommandGetCrossReference, CommandGetDbSchemas, CommandGetExportedKeys, CommandGetImportedKeys,
    CommandGetPrimaryKeys, CommandGetSqlInfo, CommandGetTables, CommandGetXdbcTypeInfo,
};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use futures::{StreamExt, stream};
use querent_catalog::{CATALOG_NAME, Principal};
use querent_engine::Engine;

use super::listing::BatchStream;
use super::sql_info::sql_info;
use super::{db_schemas, keys, sql_types, tables};
use crate::error::ApiError;

/// A metadata command that is served.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum MetadataCommand {
    /// The one catalog.
    Catalogs,
    /// Databases.
    DbSchemas(CommandGetDbSchemas),
    /// Tables, external tables and views.
    Tables(CommandGetTables),
    /// The kinds of tables there can be.
    TableTypes,
    /// What the server is and can do.
    SqlInfo(CommandGetSqlInfo),
    /// The types of SQL.
    XdbcTypeInfo(CommandGetXdbcTypeInfo),
    /// A table's primary key.
    PrimaryKeys(CommandGetPrimaryKeys),
    /// The foreign keys that refer to a table.
    ExportedKeys(CommandGetExportedKeys),
    /// The foreign keys of a table.
    ImportedKeys(CommandGetImportedKeys),
    /// The foreign keys of one table to another.
    CrossReference(CommandGetCrossReference),
}

impl MetadataCommand {
    /// Returns the command if it asks for metadata.
    pub(super) fn from_command(command: &Command) -> Option<Self> {
        match command {
            Command::CommandGetCatalogs(_) => Some(MetadataCommand::Catalogs),
            Command::CommandGetDbSchemas(command) => Some(MetadataCommand::DbSchemas(command.clone())),
            Command::CommandGetTables(command) => Some(MetadataCommand::Tables(command.clone())),
            Command::CommandGetTableTypes(_) => Some(MetadataCommand::TableTypes),
            Command::CommandGetSqlInfo(command) => Some(MetadataCommand::SqlInfo(command.clone())),
            Command::CommandGetXdbcTypeInfo(command) => Some(MetadataCommand::XdbcTypeInfo(*command)),
            Command::CommandGetPrimaryKeys(command) => Some(MetadataCommand::PrimaryKeys(command.clone())),
            Command::CommandGetExportedKeys(command) => Some(MetadataCommand::ExportedKeys(command.clone())),
            Command::CommandGetImportedKeys(command) => Some(MetadataCommand::ImportedKeys(command.clone())),
            Command::CommandGetCrossReference(command) => Some(MetadataCommand::CrossReference(command.clone())),
            _ => None,
        }
    }

    /// Returns the schema of its batches, which the protocol fixes.
    pub(super) fn schema(&self) -> SchemaRef {
        match self {
            MetadataCommand::Catalogs => GetCatalogsBuilder::new().schema(),
            MetadataCommand::DbSchemas(_) => GetDbSchemasBuilder::new(None::<String>, None::<String>).schema(),
            MetadataCommand::Tables(command) => tables_schema(command.include_schema),
            MetadataCommand::TableTypes => Arc::new(Schema::new(vec![Field::new("table_type", DataType::Utf8, false)])),
            MetadataCommand::SqlInfo(_) => Arc::new(SqlInfoDataBuilder::schema().clone()),
            MetadataCommand::XdbcTypeInfo(_) => sql_types::type_info_schema(),
            MetadataCommand::PrimaryKeys(_) => keys::primary_keys_schema(),
            MetadataCommand::ExportedKeys(_)
            | MetadataCommand::ImportedKeys(_)
            | MetadataCommand::CrossReference(_) => keys::foreign_keys_schema(),
        }
    }

    /// Returns its batches, for what `caller` may see; `temporary` are the tables of its session.
    pub(super) fn batches(
        self,
        engine: &Engine,
        caller: &Principal,
        temporary: Vec<(String, SchemaRef)>,
    ) -> Result<BatchStream, ApiError> {
        let schema = self.schema();
        Ok(match self {
            MetadataCommand::Catalogs => one_column(&schema, &[CATALOG_NAME])?,
            MetadataCommand::TableTypes => one_column(&schema, tables::TABLE_TYPES)?,
            MetadataCommand::SqlInfo(command) => stream::iter([Ok(sql_info(&command, caller.role())?)]).boxed(),
            MetadataCommand::DbSchemas(command) => db_schemas::batches(schema, engine, caller.clone(), command),
            MetadataCommand::Tables(command) => tables::batches(schema, engine, caller.clone(), command, temporary),
            MetadataCommand::XdbcTypeInfo(command) => stream::iter([Ok(sql_types::type_info(command)?)]).boxed(),
            MetadataCommand::PrimaryKeys(command) => keys::primary_keys(engine, caller.clone(), command),
            MetadataCommand::ExportedKeys(command) => keys::exported_keys(engine, caller.clone(), command),
            MetadataCommand::ImportedKeys(command) => keys::imported_keys(engine, caller.clone(), command),
            MetadataCommand::CrossReference(command) => keys::cross_reference(engine, caller.clone(), command),
        })
    }
}

fn tables_schema(include_schema: bool) -> SchemaRef {
    let no_filter = None::<String>;
    GetTablesBuilder::new(no_filter.clone(), no_filter.clone(), no_filter.clone(), Vec::<String>::new(), include_schema)
        .schema()
}

fn one_column(schema: &SchemaRef, values: &[&str]) -> Result<BatchStream, ApiError> {
    let values: ArrayRef = Arc::new(StringArray::from_iter_values(values));
    let batch = RecordBatch::try_new(Arc::clone(schema), vec![values]).map_err(ApiError::internal)?;
    Ok(stream::iter([Ok(batch)]).boxed())
}
