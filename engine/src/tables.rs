//! Tables as DataFusion sees them: managed, external and system, one file each.

pub(crate) mod external;
pub(crate) mod files;
pub(crate) mod managed;
pub(crate) mod sample;
pub(crate) mod system;

use std::sync::Arc;

use datafusion::catalog::{Session, TableProvider};
use querent_catalog::{Catalog, FileFormat, ResolvedTable, TableSource};

use crate::{EngineError, Result};

/// The provider of a managed or external table. Reads nothing but, lazily at scan time, the table's own file list.
/// Views are planned by `sql`, system tables by [`system::provider`].
pub(crate) async fn provider(
    catalog: &Arc<Catalog>,
    state: &dyn Session,
    table: &ResolvedTable,
) -> Result<Arc<dyn TableProvider>> {
    match &table.source {
        TableSource::Managed(managed) => {
            Ok(Arc::new(managed::ManagedTableProvider::new(catalog, state, table, managed)))
        }
        TableSource::External(external) if external.format == FileFormat::Lance => {
            Ok(Arc::new(external::LanceTable::new(table, external)))
        }
        TableSource::External(external) => Ok(Arc::new(external::ExternalTableProvider::new(state, table, external)?)),
        TableSource::View { .. } => {
            Err(EngineError::Internal(format!("view {} reached the table provider", table.info.name)))
        }
    }
}
