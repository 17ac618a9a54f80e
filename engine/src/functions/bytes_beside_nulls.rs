//! `coalesce` and `make_array` of bytes and nulls. DataFusion finds no type that bytes have in common with anything, a null
//! among them, nor with bytes in another layout.

use std::sync::{Arc, LazyLock};

use arrow::datatypes::{DataType, FieldRef};
use datafusion::error::Result;
use datafusion::functions_nested::make_array::make_array_udf;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Documentation, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};

const COALESCE: &str = "coalesce";
const MAKE_ARRAY: &str = "make_array";

/// Returns the function, which takes bytes beside nulls where it is one of those.
pub(super) fn with_bytes(function: Arc<ScalarUDF>) -> Arc<ScalarUDF> {
    match function.name() {
        COALESCE | MAKE_ARRAY => Arc::new(ScalarUDF::new_from_impl(BytesBesideNulls { inner: function })),
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

#[derive(Debug, PartialEq, Eq, Hash)]
struct BytesBesideNulls {
    inner: Arc<ScalarUDF>,
}

impl ScalarUDFImpl for BytesBesideNulls {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        self.inner.schema_name(args)
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        self.inner.return_type(arg_types)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        self.inner.return_field_from_args(args)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        self.inner.invoke_with_args(args)
    }

    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        self.inner.simplify(args, info)
    }

    fn short_circuits(&self) -> bool {
        self.inner.short_circuits()
    }

    fn conditional_arguments<'a>(&self, args: &'a [Expr]) -> Option<(Vec<&'a Expr>, Vec<&'a Expr>)> {
        self.inner.conditional_arguments(args)
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        match bytes_type(arg_types) {
            Some(bytes) => Ok(vec![bytes; arg_types.len()]),
            None => self.inner.coerce_types(arg_types),
        }
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.inner.documentation()
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
