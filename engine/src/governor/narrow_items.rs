//! Casts of lists whose items take more behind the cast. Truth values are bits, and nulls are nothing: a cast makes eight
//! bytes, or sixteen, of each in one allocation, and of four bytes as many. So lists are counted by their items on the way into it.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, ExpressionPlacement, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

use super::text::{BoundedText, holds_text};
use crate::error::EngineError;
use crate::limits::{QueryUsage, nested_items};
use crate::type_parts::any_part;

/// The most items of one batch that take less than a number.
const MAX_ITEMS: usize = 32 << 20;
/// What an item becomes.
const ITEM_BYTES: usize = 16;
/// What the text of a number takes, or of a time.
const WRITTEN_BYTES: usize = 24;
/// What a text takes of which a number is read.
const READ_BYTES: usize = 4;

/// Returns its argument, for whose lists there is room behind a cast.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct NarrowItems {
    signature: Signature,
    /// Whether there may be any number of items: they take about as much before the cast.
    are_wide: bool,
}

static BOUNDING: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| NarrowItems::new_udf(false));
static COUNTING: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| NarrowItems::new_udf(true));

impl NarrowItems {
    fn new_udf(are_wide: bool) -> Arc<ScalarUDF> {
        let signature = Signature::any(1, Volatility::Immutable);
        Arc::new(ScalarUDF::new_from_impl(Self { signature, are_wide }))
    }

    /// The function that refuses lists of more items.
    pub(super) fn bounding() -> &'static ScalarUDF {
        &BOUNDING
    }

    /// The function that asks for the room that items of a number's size take behind a cast.
    pub(super) fn counting() -> &'static ScalarUDF {
        &COUNTING
    }

    /// Returns the function that counts the items of an expression on its way into a cast; `None` where they take no more behind
    /// it, and where they are counted.
    pub(super) fn of_cast(expr: &Expr, target: &DataType, schema: &DFSchema) -> Option<&'static ScalarUDF> {
        if !holds_lists(target) || is_counted(expr) {
            return None;
        }
        let from = expr.get_type(schema).ok()?;
        if has_narrow_items(&from) {
            return Some(Self::bounding());
        }
        (holds_lists(&from) && widens_items(&from, target)).then(Self::counting)
    }
}

/// Whether the items of an expression are counted, also where its texts are looked at behind that.
fn is_counted(expr: &Expr) -> bool {
    let Expr::ScalarFunction(call) = expr else { return false };
    let inner = call.func.inner();
    inner.is::<NarrowItems>() || inner.is::<BoundedText>() && call.args.first().is_some_and(is_counted)
}

/// Whether the items of a list take more as those of another type.
fn widens_items(from: &DataType, target: &DataType) -> bool {
    let text_bytes = if holds_text(target) { WRITTEN_BYTES } else { READ_BYTES };
    item_bytes(target, WRITTEN_BYTES) > item_bytes(from, text_bytes)
}

/// Returns what an item of a list takes, or of the innermost lists of one, where a text takes `text_bytes`.
fn item_bytes(data_type: &DataType, text_bytes: usize) -> usize {
    match data_type {
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            item_bytes(item.data_type(), text_bytes)
        }
        DataType::Struct(fields) => fields.iter().map(|field| item_bytes(field.data_type(), text_bytes)).sum(),
        DataType::Null | DataType::Boolean => 1,
        other => other.primitive_width().unwrap_or(text_bytes),
    }
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
        if self.are_wide { "wide_items" } else { "narrow_items" }
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
        if items > MAX_ITEMS && !self.are_wide {
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
            Field::new("texts", list(DataType::Utf8), true),
            Field::new("pairs", list(DataType::Struct(vec![Field::new("a", DataType::Int32, true)].into())), true),
            Field::new("truth", DataType::Boolean, true),
        ];
        let schema = DFSchema::try_from(Schema::new(fields)).unwrap();
        let counted = |expr: &Expr, target: &DataType| NarrowItems::of_cast(expr, target, &schema).map(ScalarUDF::name);
        let integers = list(DataType::Int64);
        assert_eq!(counted(&col("truths"), &integers), Some("narrow_items"));
        assert_eq!(counted(&col("nested"), &list(integers.clone())), Some("narrow_items"));
        assert_eq!(counted(&NarrowItems::bounding().call(vec![col("truths")]), &integers), None, "once is enough");
        assert_eq!(counted(&col("truth"), &DataType::Int64), None);
        assert_eq!(counted(&col("numbers"), &integers), Some("wide_items"));
        assert_eq!(counted(&col("numbers"), &list(DataType::Utf8)), Some("wide_items"));
        assert_eq!(counted(&col("numbers"), &list(DataType::Int32)), None);
        assert_eq!(counted(&col("texts"), &list(DataType::Decimal128(38, 2))), Some("wide_items"));
        assert_eq!(counted(&col("texts"), &list(DataType::Utf8View)), None);
        let wide = DataType::Struct(vec![Field::new("a", DataType::Decimal128(38, 0), true)].into());
        assert_eq!(counted(&col("pairs"), &list(wide)), Some("wide_items"));
    }
}
