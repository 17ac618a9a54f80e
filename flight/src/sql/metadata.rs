//! The metadata commands: what there is, as streams of record batches read from the catalog page by page.
//!
//! Invariant: nothing here loads a listing whole or opens a table; filters go down to the catalog.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray};
use arrow_flight::sql::metadata::{GetCatalogsBuilder, GetDbSchemasBuilder, GetTablesBuilder, SqlInfoDataBuilder};
use arrow_flight::sql::{Command, CommandGetDbSchemas, CommandGetSqlInfo, CommandGetTables};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use futures::stream::BoxStream;
use futures::{StreamExt, stream};
use querent_catalog::{CATALOG_NAME, Principal};
use querent_engine::Engine;
use tonic::Status;

use super::sql_info::sql_info;
use super::{db_schemas, tables};
use crate::error::ApiError;

/// The batches of a listing.
pub(super) type Batches = BoxStream<'static, Result<RecordBatch, Status>>;

/// A metadata command that is served.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Listing {
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
}

impl Listing {
    /// The listing that a command asks for, if it is one.
    pub(super) fn of(command: &Command) -> Option<Self> {
        match command {
            Command::CommandGetCatalogs(_) => Some(Listing::Catalogs),
            Command::CommandGetDbSchemas(command) => Some(Listing::DbSchemas(command.clone())),
            Command::CommandGetTables(command) => Some(Listing::Tables(command.clone())),
            Command::CommandGetTableTypes(_) => Some(Listing::TableTypes),
            Command::CommandGetSqlInfo(command) => Some(Listing::SqlInfo(command.clone())),
            _ => None,
        }
    }

    /// The schema of its batches, as the protocol fixes it.
    pub(super) fn schema(&self) -> SchemaRef {
        match self {
            Listing::Catalogs => GetCatalogsBuilder::new().schema(),
            Listing::DbSchemas(_) => GetDbSchemasBuilder::new(None::<String>, None::<String>).schema(),
            Listing::Tables(command) => tables_schema(command.include_schema),
            Listing::TableTypes => Arc::new(Schema::new(vec![Field::new("table_type", DataType::Utf8, false)])),
            Listing::SqlInfo(_) => Arc::new(SqlInfoDataBuilder::schema().clone()),
        }
    }

    /// Its batches, for what `caller` may see.
    pub(super) fn batches(self, engine: &Engine, caller: &Principal) -> Result<Batches, ApiError> {
        let schema = self.schema();
        Ok(match self {
            Listing::Catalogs => one_column(&schema, &[CATALOG_NAME])?,
            Listing::TableTypes => one_column(&schema, tables::TABLE_TYPES)?,
            Listing::SqlInfo(command) => stream::iter([Ok(sql_info(&command, caller.role())?)]).boxed(),
            Listing::DbSchemas(command) => db_schemas::batches(schema, engine, caller.clone(), command),
            Listing::Tables(command) => tables::batches(schema, engine, caller.clone(), command),
        })
    }
}

/// Whether a command's catalog filter lets ours through. An empty name asks for what has no catalog: nothing here.
pub(super) fn catalog_matches(filter: Option<&str>) -> bool {
    filter.is_none_or(|name| name == CATALOG_NAME)
}

fn tables_schema(include_schema: bool) -> SchemaRef {
    let no_filter = None::<String>;
    GetTablesBuilder::new(no_filter.clone(), no_filter.clone(), no_filter.clone(), Vec::<String>::new(), include_schema)
        .schema()
}

fn one_column(schema: &SchemaRef, values: &[&str]) -> Result<Batches, ApiError> {
    let values: ArrayRef = Arc::new(StringArray::from_iter_values(values));
    let batch = RecordBatch::try_new(Arc::clone(schema), vec![values]).map_err(ApiError::internal)?;
    Ok(stream::iter([Ok(batch)]).boxed())
}
