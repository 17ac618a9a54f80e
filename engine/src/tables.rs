//! Tables as DataFusion sees them: managed, external and system, one file each.

pub(crate) mod decoded_parquet;
pub(crate) mod external;
pub(crate) mod file_scan;
pub(crate) mod managed;
pub(crate) mod restricted;
mod row_positions;
pub(crate) mod sample;
mod shown_values;
pub(crate) mod system;

use std::sync::Arc;

use datafusion::catalog::{Session, TableProvider};
use querent_catalog::{Catalog, FileFormat, ResolvedTable, TableSource};

pub use external::{BoundedBatches, ReadColumn, SourceReading, check_reader_options, row_bytes};

use crate::error::{EngineError, Result};

/// Returns the provider of a managed or external table; `is_part` says that the caller sees a part of it only, whatever `table` has.
/// Nothing is read before it is scanned.
/// Views are planned by `sql`, and system tables come from [`system::provider`].
pub(crate) async fn provider(
    catalog: &Arc<Catalog>,
    state: &dyn Session,
    table: &ResolvedTable,
    is_part: bool,
) -> Result<Arc<dyn TableProvider>> {
    match &table.source {
        TableSource::Managed(managed) => {
            Ok(Arc::new(managed::ManagedTableProvider::new(catalog, state, table, managed)))
        }
        TableSource::External(external) if external.format == FileFormat::Lance => {
            Ok(Arc::new(external::LanceTable::new(table, external)))
        }
        TableSource::External(external) => {
            Ok(Arc::new(external::ExternalTableProvider::try_new(state, table, external, is_part).await?))
        }
        TableSource::View { .. } => {
            Err(EngineError::Internal(format!("view {} reached the table provider", table.info.name)))
        }
    }
}
