//! The engine's functions: DataFusion's, with a bound on those whose results can be much larger than their arguments, and
//! `from_hex`.

mod bounded;
mod hex;

use std::sync::Arc;

use datafusion::execution::SessionStateDefaults;
use datafusion::logical_expr::{AggregateUDF, ScalarUDF};

use querent_kql::graph;

pub(crate) use bounded::series_rows;
pub(crate) use hex::FROM_HEX;

/// Returns all aggregate functions: DataFusion's and the traversal of graphs.
pub(crate) fn aggregate_functions() -> Vec<Arc<AggregateUDF>> {
    SessionStateDefaults::default_aggregate_functions().into_iter().chain([graph::traverse()]).collect()
}

/// Returns all scalar functions: DataFusion's and ours.
pub(crate) fn scalar_functions() -> Vec<Arc<ScalarUDF>> {
    SessionStateDefaults::default_scalar_functions()
        .into_iter()
        .map(bounded::bounded)
        .chain([hex::from_hex()])
        .collect()
}
