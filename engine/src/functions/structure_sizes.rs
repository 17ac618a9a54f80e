//! Functions that make structures. One of a value twice, of which the next one has two again, is a line of text each time, and twice as
//! long for the planner, which hashes and compares types at each SELECT: so a type is counted where it is made. What queries do
//! with each other's columns is counted at each relation; this is for what one expression does, such as lambdas within lambdas.

use std::sync::{Arc, LazyLock};

use arrow::datatypes::FieldRef;
use datafusion::error::Result;
use datafusion::functions::core::{named_struct, r#struct};
use datafusion::logical_expr::{ReturnFieldArgs, ScalarUDF};

use super::wrapped_functions::{FunctionOverride, WrappedFunction};
use crate::limits::check_type;

/// `named_struct`, with the bound.
pub(crate) static NAMED_STRUCT: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| bounded(named_struct()));
/// `struct`, with the bound.
pub(crate) static STRUCT: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| bounded(r#struct()));

/// Returns the function, which refuses a result whose type is too large where it makes types of several types.
pub(super) fn bounded(function: Arc<ScalarUDF>) -> Arc<ScalarUDF> {
    match function.name() {
        "named_struct" | "struct" | "arrays_zip" => WrappedFunction::new_udf(function, StructureSize),
        _ => function,
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct StructureSize;

impl FunctionOverride for StructureSize {
    fn return_field(&self, inner: &ScalarUDF, args: ReturnFieldArgs) -> Result<FieldRef> {
        let field = inner.return_field_from_args(args)?;
        check_type(inner.name(), field.data_type())?;
        Ok(field)
    }
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::{DataType, Field};

    use super::*;
    use crate::functions::scalar_functions;

    #[test]
    fn types_of_types_end_at_the_bound() {
        for name in ["struct", "arrays_zip", "map"] {
            let function = scalar_functions().into_iter().rfind(|function| function.name() == name).unwrap();
            let mut field: FieldRef = Arc::new(Field::new("x", DataType::Int64, true));
            let mut refused = None;
            for _ in 0..40 {
                let arg = match name {
                    "struct" => Arc::clone(&field),
                    _ => Arc::new(Field::new("x", DataType::List(Arc::clone(&field)), true)),
                };
                let arg_fields = [Arc::clone(&arg), arg];
                let args = ReturnFieldArgs { arg_fields: &arg_fields, scalar_arguments: &[None, None] };
                match function.return_field_from_args(args) {
                    Ok(returned) => field = Arc::new(Field::new("x", returned.data_type().clone(), true)),
                    Err(error) => {
                        refused = Some(error.to_string());
                        break;
                    }
                }
            }
            assert!(refused.as_ref().is_some_and(|error| error.contains("too many parts")), "{name}: {refused:?}");
        }
    }
}
