//! The engine's functions: DataFusion's, with those bounded that make much out of little.

mod bounded;

use std::sync::Arc;

use datafusion::execution::SessionStateDefaults;
use datafusion::logical_expr::ScalarUDF;

pub(crate) use bounded::series_rows;

/// Every scalar function there is.
pub(crate) fn scalar_functions() -> Vec<Arc<ScalarUDF>> {
    SessionStateDefaults::default_scalar_functions().into_iter().map(bounded::bounded).collect()
}
