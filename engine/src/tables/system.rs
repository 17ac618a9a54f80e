//! The `system` database (`agent_runs`, `databases`, `tables`, `columns`) and `information_schema`: filters are pushed
//! down into catalog queries, pages are streamed, and only what the principal may see is shown.

use std::sync::Arc;

use datafusion::catalog::TableProvider;
use querent_catalog::{Catalog, Principal};

/// The system table `schema.name`, where `schema` is `system` or `information_schema`.
#[allow(unused_variables, dead_code, clippy::todo, clippy::allow_attributes)]
pub(crate) fn provider(
    catalog: &Arc<Catalog>,
    who: &Principal,
    schema: &str,
    name: &str,
) -> Option<Arc<dyn TableProvider>> {
    todo!()
}
