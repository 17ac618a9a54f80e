//! The engine's functions: DataFusion's, with those bounded that make much out of little.

mod bounded;

use std::sync::Arc;

use datafusion::execution::SessionStateDefaults;
use datafusion::logical_expr::{AggregateUDF, ScalarUDF};

use querent_kql::graph;

pub(crate) use bounded::series_rows;

/// Every aggregate there is: DataFusion's and the walk over graphs.
pub(crate) fn aggregate_functions() -> Vec<Arc<AggregateUDF>> {
    SessionStateDefaults::default_aggregate_functions().into_iter().chain([graph::traverse()]).collect()
}

/// Every scalar function there is.
pub(crate) fn scalar_functions() -> Vec<Arc<ScalarUDF>> {
    SessionStateDefaults::default_scalar_functions().into_iter().map(bounded::bounded).collect()
}
