//! Functions that make structures. One of a column twice, of which the next one has two again, is a line of text each time, and twice as
//! long for the planner, which hashes and compares the types of columns at each SELECT: so a type is counted where it is made.

use std::sync::{Arc, LazyLock};

use arrow::datatypes::FieldRef;
use datafusion::error::Result;
use datafusion::functions::core::{named_struct, r#struct};
use datafusion::logical_expr::{ReturnFieldArgs, ScalarUDF};

use super::wrapped_functions::{FunctionOverride, WrappedFunction};
use crate::limits::check_type_size;

/// `named_struct`, with the bound.
pub(crate) static NAMED_STRUCT: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| bounded(named_struct()));
/// `struct`, with the bound.
pub(crate) static STRUCT: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| bounded(r#struct()));

/// Returns the function, which refuses a result whose type is too large where it makes types of types.
pub(super) fn bounded(function: Arc<ScalarUDF>) -> Arc<ScalarUDF> {
    match function.name() {
        "named_struct" | "struct" | "map" => WrappedFunction::new_udf(function, StructureSize),
        _ => function,
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct StructureSize;

impl FunctionOverride for StructureSize {
    fn return_field(&self, inner: &ScalarUDF, args: ReturnFieldArgs) -> Result<FieldRef> {
        let field = inner.return_field_from_args(args)?;
        check_type_size(field.name(), field.data_type())?;
        Ok(field)
    }
}
