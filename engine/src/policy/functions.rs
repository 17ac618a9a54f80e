//! The functions that a plan may call: DataFusion's built-in ones and ours. None of them reads a file, changes anything or reaches outside
//! of the process; a function that is registered in any other way is not on the list and does not run.

use std::collections::HashSet;
use std::sync::LazyLock;

use datafusion::execution::SessionStateDefaults;

use crate::functions::{
    CONVERT_VALUE, EMBED, TEXT_TO_LIST, higher_order_functions, own_aggregate_functions, own_scalar_functions,
};

/// The names of the functions of each kind.
pub(super) struct AllowedFunctions {
    pub(super) scalar: HashSet<String>,
    pub(super) higher_order: HashSet<String>,
    pub(super) aggregate: HashSet<String>,
    pub(super) window: HashSet<String>,
}

/// The list, which does not depend on any session.
pub(super) static ALLOWED: LazyLock<AllowedFunctions> = LazyLock::new(|| AllowedFunctions {
    scalar: SessionStateDefaults::default_scalar_functions()
        .iter()
        .map(|function| function.name().to_owned())
        .chain(own_scalar_functions().iter().map(|function| function.name().to_owned()))
        .chain([TEXT_TO_LIST.to_owned(), CONVERT_VALUE.to_owned()])
        .chain([EMBED.to_owned()])
        .collect(),
    higher_order: higher_order_functions().iter().map(|function| function.name().to_owned()).collect(),
    aggregate: SessionStateDefaults::default_aggregate_functions()
        .iter()
        .chain(own_aggregate_functions())
        .map(|function| function.name().to_owned())
        .collect(),
    window: SessionStateDefaults::default_window_functions()
        .iter()
        .map(|function| function.name().to_owned())
        .collect(),
});
