//! Tables as DataFusion sees them: managed, external and system, one file each.

pub(crate) mod external;
pub(crate) mod managed;
pub(crate) mod sample;
pub(crate) mod system;

use std::sync::Arc;

use datafusion::catalog::{Session, TableProvider};
use querent_catalog::{Catalog, ResolvedTable};

use crate::Result;

/// The provider of a managed or external table. Reads nothing but, lazily at scan time, the table's own file list.
/// Views are planned by `sql`, system tables by [`system::provider`].
#[allow(unused_variables, dead_code, clippy::todo, clippy::allow_attributes)]
pub(crate) async fn provider(
    catalog: &Arc<Catalog>,
    state: &dyn Session,
    table: &ResolvedTable,
) -> Result<Arc<dyn TableProvider>> {
    todo!()
}
