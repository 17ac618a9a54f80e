//! The files of a managed table that are worth merging, as a table of their rows.

use std::fmt;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Result as DfResult;
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::ExecutionPlan;
use querent_catalog::{Catalog, DataFile, ManagedTable, ResolvedTable};

use super::ManagedTableProvider;

/// A file below this is merged with others: half of what a file in an object store has.
pub(crate) const SMALL_BYTES: u64 = 32 << 20;
/// A file is written anew where one of so many of its rows is deleted.
const MUCH_DELETED: u64 = 10;

/// The files of a table that are small, or of which many rows are deleted; none where there is nothing to gain.
pub(crate) struct SmallFiles {
    table: ManagedTableProvider,
    files: Vec<DataFile>,
}

impl SmallFiles {
    /// Looks for them at the snapshot that the table was resolved at.
    pub(crate) async fn find(
        catalog: &Arc<Catalog>,
        state: &dyn Session,
        resolved: &ResolvedTable,
        managed: &ManagedTable,
    ) -> DfResult<Self> {
        let table = ManagedTableProvider::new(catalog, state, resolved, managed);
        let mut files = table.files().await?;
        files.retain(|file| is_small(file) || is_much_deleted(file));
        files.sort_by_key(|file| file.id);
        if files.len() < 2 && !files.iter().any(is_much_deleted) {
            files.clear();
        }
        Ok(Self { table, files })
    }

    /// Returns their ids.
    pub(crate) fn ids(&self) -> Vec<i64> {
        self.files.iter().map(|file| file.id).collect()
    }
}

fn is_small(file: &DataFile) -> bool {
    file.file_size_bytes < SMALL_BYTES
}

fn is_much_deleted(file: &DataFile) -> bool {
    !file.deletes.is_empty() && file.deletes.rows().saturating_mul(MUCH_DELETED) >= file.row_count
}

impl fmt::Debug for SmallFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SmallFiles").field("table", &self.table).field("files", &self.ids()).finish()
    }
}

#[async_trait]
impl TableProvider for SmallFiles {
    fn schema(&self) -> SchemaRef {
        self.table.schema()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    /// One partition, so that rows stay in the order of their files.
    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> DfResult<Arc<dyn ExecutionPlan>> {
        let mut contents = self.table.contents_of(state, &self.files, None)?;
        contents.scan.in_order();
        self.table.plan_of(state, contents, projection, filters, limit).await
    }
}
