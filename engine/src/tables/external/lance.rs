//! External Lance datasets, on disk or in an object store, read by Lance itself: filters, projections and limits are its
//! own.
//!
//! A dataset is opened when it is scanned, at its newest version. One whose manifest names files elsewhere is refused: what
//! may be read was decided by where the dataset is.

use std::sync::{Arc, LazyLock};

use arrow::datatypes::{Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{Result as DfResult, project_schema};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType, cast, ident};
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use lance::Dataset;
use lance::datafusion::LanceTableProvider;
use lance::dataset::builder::DatasetBuilder;
use lance::session::Session as LanceSession;
use lance_table::io::commit::ConditionalPutCommitHandler;
use querent_catalog::{ExternalTable, ResolvedTable};
use url::Url;

use super::ipc::plain_types;
use super::note_place;
use super::scan::projected;
use crate::error::{EngineError, Result, store_error_in};
use crate::stores::{DatasetFolder, StoreUrl};

/// What all external datasets together keep in memory.
const INDEX_CACHE_BYTES: usize = 32 << 20;
const METADATA_CACHE_BYTES: usize = 32 << 20;

/// Lance's own defaults are 6 GiB and 1 GiB.
static SESSION: LazyLock<Arc<LanceSession>> =
    LazyLock::new(|| Arc::new(LanceSession::new(INDEX_CACHE_BYTES, METADATA_CACHE_BYTES, Arc::default())));

/// The columns of a dataset.
pub(crate) async fn lance_schema(state: &dyn Session, location: &str) -> Result<SchemaRef> {
    let dataset = open_dataset(state, location).await?;
    Ok(Arc::new(plain_types(&Schema::from(dataset.schema()))))
}

/// All rows of a dataset.
pub(crate) async fn read_lance(state: &dyn Session, location: &str) -> Result<SendableRecordBatchStream> {
    let provider = LanceTableProvider::new(open_dataset(state, location).await?, false, false);
    let plan = provider.scan(state, None, &[], None).await?;
    Ok(execute_stream(plan, state.task_ctx())?)
}

async fn open_dataset(state: &dyn Session, location: &str) -> Result<Arc<Dataset>> {
    let bad = |detail: String| EngineError::BadData { location: location.to_owned(), detail };
    let mut builder = DatasetBuilder::from_uri(location).with_session(Arc::clone(&SESSION));
    if let Some(url) = StoreUrl::parse(location)? {
        builder = in_store(builder, state, &url)?;
    }
    let opened = builder.load().await;
    let dataset = opened
        .map_err(|error| store_error_in(&error).unwrap_or_else(|| bad(format!("not a Lance dataset: {error}"))))?;
    if !dataset.manifest().base_paths.is_empty() {
        return Err(bad("its manifest names files outside of its folder, which are not read".into()));
    }
    Ok(Arc::new(dataset))
}

/// Has a dataset of a store read by the engine's own client of it.
#[expect(
    deprecated,
    reason = "a provider serves all of a process by URLs alone; which stores may be read is an engine's"
)]
fn in_store(builder: DatasetBuilder, state: &dyn Session, url: &StoreUrl) -> Result<DatasetBuilder> {
    let store = state.runtime_env().object_store(url.object_store_url()?)?;
    let folder = DatasetFolder::new(store, url.path_of(url.key())?);
    let root = Url::parse(&url.store()).map_err(|error| EngineError::Internal(format!("{url}: {error}")))?;
    // Of the handler only what finds the newest version is used.
    Ok(builder.with_object_store(Arc::new(folder), root, Arc::new(ConditionalPutCommitHandler)))
}

/// An external Lance dataset as resolved by one statement.
#[derive(Debug)]
pub(in crate::tables) struct LanceTable {
    location: String,
    name: String,
    schema: SchemaRef,
}

impl LanceTable {
    pub(in crate::tables) fn new(resolved: &ResolvedTable, table: &ExternalTable) -> Self {
        Self::at_location(&table.location, resolved.info.name.to_string(), resolved.info.arrow_schema())
    }

    pub(in crate::tables) fn at_location(location: &str, name: String, schema: SchemaRef) -> Self {
        Self { location: location.to_owned(), name, schema }
    }

    fn changed(&self, column: &str) -> EngineError {
        EngineError::BadData {
            location: self.location.clone(),
            detail: format!(
                "column `{column}` of `{}` is no longer what it was; register the dataset again",
                self.name
            ),
        }
    }

    /// Which of the dataset's columns are the table's.
    fn positions(&self, dataset: &SchemaRef, projection: Option<&[usize]>) -> Result<Vec<usize>> {
        let dataset = plain_types(dataset);
        let all: Vec<usize> = (0..self.schema.fields().len()).collect();
        let mut positions = Vec::new();
        for index in projection.unwrap_or(all.as_slice()) {
            let field = self.schema.field(*index);
            match dataset.index_of(field.name()) {
                Ok(position) if dataset.field(position).data_type() == field.data_type() => positions.push(position),
                _ => return Err(self.changed(field.name())),
            }
        }
        Ok(positions)
    }
}

#[async_trait]
impl TableProvider for LanceTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> DfResult<Vec<TableProviderFilterPushDown>> {
        Ok(vec![TableProviderFilterPushDown::Inexact; filters.len()])
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> DfResult<Arc<dyn ExecutionPlan>> {
        if self.name != self.location {
            note_place(&self.name, &self.location, false);
        }
        let dataset = open_dataset(state, &self.location).await?;
        let provider = LanceTableProvider::new(dataset, false, false);
        let mut positions = self.positions(&provider.schema(), projection.map(Vec::as_slice))?;
        if positions.is_empty() {
            // Lance reads at least a column; the first is as good as any.
            positions.extend(self.positions(&provider.schema(), Some(&[0]))?);
        }
        let plan = provider.scan(state, Some(&positions), filters, limit).await?;
        let wanted = project_schema(&self.schema, projection)?;
        let is_as_wanted = plan.schema().fields().len() == wanted.fields().len()
            && plan
                .schema()
                .fields()
                .iter()
                .zip(wanted.fields())
                .all(|(left, right)| left.name() == right.name() && left.data_type() == right.data_type());
        if is_as_wanted {
            return Ok(plan);
        }
        projected(state, plan, &wanted, |field| Ok(cast(ident(field.name()), field.data_type().clone())))
    }
}
