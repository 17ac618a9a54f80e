//! Tables as DataFusion sees them: managed, external and system, one file each.

pub(crate) mod external;
mod files;
pub(crate) mod managed;
pub(crate) mod sample;
pub(crate) mod system;

use std::sync::Arc;

use datafusion::catalog::{Session, TableProvider};
use datafusion::common::DataFusionError;
use querent_catalog::{Catalog, ResolvedTable, TableSource};

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
        TableSource::External(_) => Err(EngineError::Internal("external tables are not read yet".into())),
        TableSource::View { .. } => {
            Err(EngineError::Internal(format!("view {} reached the table provider", table.info.name)))
        }
    }
}

/// Carries an engine error through DataFusion, which gives it back as it was.
pub(crate) fn datafusion_error(error: EngineError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// What DataFusion carried, or what it says itself.
pub(crate) fn engine_error(error: DataFusionError) -> EngineError {
    match error {
        DataFusionError::External(inner) => match inner.downcast::<EngineError>() {
            Ok(ours) => *ours,
            Err(other) => EngineError::Execution { message: other.to_string() },
        },
        other => EngineError::Execution { message: other.strip_backtrace() },
    }
}
