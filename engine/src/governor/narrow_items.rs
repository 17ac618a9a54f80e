//! Casts of lists whose items take less than a number does. Truth values are bits, and nulls are nothing: a cast makes eight
//! bytes, or sixteen, of each in one allocation. So lists are counted by their items on the way into it.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, ExpressionPlacement, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

use crate::error::EngineError;
use crate::limits::{QueryUsage, nested_items};
use crate::type_parts::any_part;

/// The most items of one batch.
const MAX_ITEMS: usize = 32 << 20;
/// What an item becomes.
const ITEM_BYTES: usize = 16;

/// Returns its argument, whose lists have no more items than a cast may make.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct NarrowItems {
    signature: Signature,
}

static BOUNDING: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    Arc::new(ScalarUDF::new_from_impl(NarrowItems { signature: Signature::any(1, Volatility::Immutable) }))
});

impl NarrowItems {
    /// The function that refuses lists of more items.
    pub(super) fn bounding() -> &'static ScalarUDF {
        &BOUNDING
    }
}

/// Whether a cast of an expression to a type makes lists of what takes less than a number, and nothing counts its items yet.
pub(super) fn widens_items(expr: &Expr, target: &DataType, schema: &DFSchema) -> bool {
    let is_counted = matches!(expr, Expr::ScalarFunction(call) if call.func.inner().is::<NarrowItems>());
    !is_counted && holds_lists(target) && expr.get_type(schema).is_ok_and(|from| has_narrow_items(&from))
}

fn is_list(data_type: &DataType) -> bool {
    matches!(data_type, DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(_, _))
}

fn holds_lists(data_type: &DataType) -> bool {
    is_list(data_type) || any_part(data_type, &holds_lists)
}

fn has_narrow_items(data_type: &DataType) -> bool {
    let is_narrow = |item: &DataType| {
        matches!(
            item,
            DataType::Null | DataType::Boolean | DataType::Int8 | DataType::UInt8 | DataType::Int16 | DataType::UInt16
        )
    };
    is_list(data_type) && any_part(data_type, &is_narrow) || any_part(data_type, &has_narrow_items)
}

impl ScalarUDFImpl for NarrowItems {
    fn name(&self) -> &'static str {
        "narrow_items"
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        Ok(args.iter().map(|arg| arg.schema_name().to_string()).collect())
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        Ok(arg_types.first().cloned().unwrap_or(DataType::Null))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let Some(value) = args.args.into_iter().next() else {
            return Err(EngineError::Internal("a cast has one argument".into()).into());
        };
        let items = nested_items(&value);
        if items > MAX_ITEMS {
            let message =
                format!("a cast makes lists of at most {} million items at a time; ask for less", MAX_ITEMS >> 20);
            return Err(EngineError::InvalidValue { message }.into());
        }
        QueryUsage::admit_current(items.saturating_mul(ITEM_BYTES))?;
        Ok(value)
    }

    fn placement(&self, args: &[ExpressionPlacement]) -> ExpressionPlacement {
        args.first().copied().unwrap_or(ExpressionPlacement::KeepInPlace)
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::datatypes::{Field, Schema};
    use datafusion::logical_expr::col;

    use super::*;

    #[test]
    fn lists_of_less_than_numbers_are_counted() {
        let list = |item: DataType| DataType::new_list(item, true);
        let fields = vec![
            Field::new("truths", list(DataType::Boolean), true),
            Field::new("nested", list(list(DataType::Null)), true),
            Field::new("numbers", list(DataType::Float32), true),
            Field::new("truth", DataType::Boolean, true),
        ];
        let schema = DFSchema::try_from(Schema::new(fields)).unwrap();
        let target = list(DataType::Int64);
        let widens = |expr: &Expr, target: &DataType| widens_items(expr, target, &schema);
        assert!(widens(&col("truths"), &target) && widens(&col("nested"), &list(target.clone())));
        assert!(!widens(&col("numbers"), &target) && !widens(&col("truth"), &DataType::Int64));
        assert!(!widens(&NarrowItems::bounding().call(vec![col("truths")]), &target), "once is enough");
    }
}
