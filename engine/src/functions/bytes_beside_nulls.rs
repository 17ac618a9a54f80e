//! `coalesce` and `make_array` of bytes and nulls, and of maps. DataFusion finds no type that bytes have in common with anything, a
//! null among them, nor with bytes in another layout; and none of maps with values of other types, or without entries.

use std::sync::{Arc, LazyLock};

use arrow::datatypes::DataType;
use datafusion::error::Result;
use datafusion::functions_nested::make_array::make_array_udf;
use datafusion::logical_expr::type_coercion::binary::type_union_coercion;
use datafusion::logical_expr::{Expr, ScalarUDF};

use super::maps::map_type;
use super::wrapped_functions::{FunctionOverride, WrappedFunction};

const COALESCE: &str = "coalesce";
const MAKE_ARRAY: &str = "make_array";

/// Returns the function, which takes bytes beside nulls, and maps beside others, where it is one of those.
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

/// Returns the type of values that are maps or null; `None` where something else is among them, and where they are of one type.
fn map_of_all(types: &[DataType]) -> Option<DataType> {
    let mut common: Option<(DataType, DataType)> = None;
    let mut is_mixed = false;
    for data_type in types.iter().filter(|data_type| !data_type.is_null()) {
        let DataType::Map(entries, _) = data_type else { return None };
        let DataType::Struct(pair) = entries.data_type() else { return None };
        let [key, value] = &**pair else { return None };
        let found = (key.data_type().clone(), value.data_type().clone());
        common = Some(match common {
            None => found,
            Some(same) if same == found => same,
            Some((keys, values)) => {
                is_mixed = true;
                (beside(&keys, &found.0)?, beside(&values, &found.1)?)
            }
        });
    }
    common.filter(|_| is_mixed).map(|(keys, values)| map_type(keys, values))
}

fn beside(left: &DataType, right: &DataType) -> Option<DataType> {
    match (left, right) {
        (DataType::Null, known) | (known, DataType::Null) => Some(known.clone()),
        _ => type_union_coercion(left, right),
    }
}

fn is_bytes(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_))
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct BytesBesideNulls;

impl FunctionOverride for BytesBesideNulls {
    fn coerce_types(&self, inner: &ScalarUDF, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        match bytes_type(arg_types).or_else(|| map_of_all(arg_types)) {
            Some(common) => Ok(vec![common; arg_types.len()]),
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

    #[test]
    fn maps_without_entries_have_the_type_of_those_beside_them() {
        let map = |value: DataType| map_type(DataType::Utf8, value);
        let empty = map_type(DataType::Null, DataType::Null);
        assert_eq!(map_of_all(&[empty.clone(), map(DataType::Int64)]), Some(map(DataType::Int64)));
        assert_eq!(
            map_of_all(&[map(DataType::Int64), DataType::Null, map(DataType::Null)]),
            Some(map(DataType::Int64))
        );
        assert_eq!(map_of_all(&[map(DataType::Int64), map(DataType::Float64)]), Some(map(DataType::Float64)));
        assert_eq!(map_of_all(&[map(DataType::Int64), map(DataType::Int64)]), None);
        assert_eq!(map_of_all(&[map(DataType::Int64), empty, DataType::Int64]), None);
    }
}
