//! Whether a function in a plan was made by this crate. A policy that lets functions through by a list of names asks
//! here about the others: they are made from a query's text, and read nothing but their arguments.

use datafusion::logical_expr::{AggregateUDF, ScalarUDF, WindowUDF};

use crate::{aggregates, functions, plan};

/// Whether a scalar function is one of KQL's.
pub fn is_kql_function(function: &ScalarUDF) -> bool {
    functions::is_bound_function(function) || plan::is_operator_function(function)
}

/// Whether an aggregate is one of KQL's. That of [`crate::graph`] is not among them: SQL has it, too.
pub fn is_kql_aggregate(function: &AggregateUDF) -> bool {
    aggregates::is_made_here(function)
}

/// Whether a function over rows in their order is one of KQL's.
pub fn is_kql_window_function(function: &WindowUDF) -> bool {
    plan::is_operator_window_function(function)
}

/// Whether a scalar function converts what is stored to KQL's types. [`crate::StoredComparisons`] has to find it as it is.
pub fn is_stored_conversion(function: &ScalarUDF) -> bool {
    plan::is_stored_conversion(function)
}
