//! GetDbSchemas: databases, in pages.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray};
use arrow_flight::sql::CommandGetDbSchemas;
use arrow_schema::{ArrowError, SchemaRef};
use futures::StreamExt;
use querent_catalog::{CATALOG_NAME, PageRequest, Principal};
use querent_engine::Engine;
use tonic::Status;

use super::listing::{BatchStream, catalog_matches};
use crate::error::ApiError;

/// The databases of one batch.
const PAGE: usize = 2_000;

/// Returns the databases that match the command and that `caller` may see.
pub(super) fn batches(
    schema: SchemaRef,
    engine: &Engine,
    caller: Principal,
    command: CommandGetDbSchemas,
) -> BatchStream {
    let catalog = Arc::clone(engine.catalog());
    async_stream::try_stream! {
        if !catalog_matches(command.catalog.as_deref()) {
            return;
        }
        let like = command.db_schema_filter_pattern.as_deref();
        let mut request = PageRequest::first(PAGE);
        loop {
            let page = catalog.databases().list(&caller, like, request).await.map_err(ApiError::from)?;
            let names = page.items.iter().map(|database| database.name.as_str());
            yield batch(&schema, names).map_err(ApiError::internal)?;
            let Some(next) = page.next else { break };
            request = PageRequest { limit: PAGE, after: Some(next) };
        }
    }
    .map(|batch: Result<RecordBatch, ApiError>| batch.map_err(Status::from))
    .boxed()
}

fn batch<'a>(schema: &SchemaRef, names: impl Iterator<Item = &'a str>) -> Result<RecordBatch, ArrowError> {
    let names: ArrayRef = Arc::new(StringArray::from_iter_values(names));
    let catalogs = StringArray::from_iter_values(std::iter::repeat_n(CATALOG_NAME, names.len()));
    let columns: Vec<ArrayRef> = vec![Arc::new(catalogs), names];
    RecordBatch::try_new(Arc::clone(schema), columns)
}
