//! `coalesce` and `make_array` of bytes and nulls. DataFusion finds no type that bytes have in common with anything, a null
//! among them, nor with bytes in another layout.

use std::sync::{Arc, LazyLock};

use arrow::datatypes::DataType;
use datafusion::error::Result;
use datafusion::functions_nested::make_array::make_array_udf;
use datafusion::logical_expr::{Expr, ScalarUDF};

use super::wrapped_functions::{FunctionOverride, WrappedFunction};

const COALESCE: &str = "coalesce";
const MAKE_ARRAY: &str = "make_array";

/// Returns the function, which takes bytes beside nulls where it is one of those.
pub(super) fn with_bytes(function: Arc<ScalarUDF>) -> Arc<ScalarUDF> {
    match function.name() {
        COALESCE | MAKE_ARRAY => WrappedFunction::new_udf(function, BytesBesideNulls),
        _ => function,
    }
}

/// Returns the list of values, which may be bytes and nulls.
pub(crate) fn list_literal(values: Vec<Expr>) -> Expr {
    static LIST: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| with_bytes(make_array_udf()));
    LIST.call(values)
}

/// Returns the type of values that are bytes or null; `None` where something else is among them, and for nulls alone.
pub(crate) fn bytes_type(types: &[DataType]) -> Option<DataType> {
    let mut known = types.iter().filter(|data_type| !data_type.is_null());
    let first = known.next().filter(|data_type| is_bytes(data_type))?;
    let mut is_same = true;
    for other in known {
        if !is_bytes(other) {
            return None;
        }
        is_same &= other == first;
    }
    Some(if is_same { first.clone() } else { DataType::Binary })
}

fn is_bytes(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_))
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct BytesBesideNulls;

impl FunctionOverride for BytesBesideNulls {
    fn coerce_types(&self, inner: &ScalarUDF, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        match bytes_type(arg_types) {
            Some(bytes) => Ok(vec![bytes; arg_types.len()]),
            None => inner.coerce_types(arg_types),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_nulls_have_a_type_in_common() {
        let fixed = DataType::FixedSizeBinary(16);
        assert_eq!(bytes_type(&[DataType::Null, fixed.clone()]), Some(fixed.clone()));
        assert_eq!(bytes_type(&[fixed, DataType::Null, DataType::BinaryView]), Some(DataType::Binary));
        assert_eq!(bytes_type(&[DataType::Null, DataType::Null]), None);
        assert_eq!(bytes_type(&[DataType::Binary, DataType::Utf8]), None);
    }
}
