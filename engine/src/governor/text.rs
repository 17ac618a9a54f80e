//! Text on its way to a decimal. Arrow's parser of 256-bit integers recurses once for every 38 digits, so a text of a hundred
//! million digits overflows the stack, which nothing catches.

use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray};
use arrow::compute::nullif;
use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExpressionPlacement, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use crate::error::EngineError;

/// The longest text that is parsed as a number.
const MAX_NUMBER_BYTES: usize = 4_096;

/// Returns its argument, whose texts are short enough to be parsed as numbers.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct BoundedText {
    signature: Signature,
    /// Whether a longer text becomes null, as in TRY_CAST.
    nulls: bool,
}

static REFUSING: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| BoundedText::new_udf(false));
static NULLING: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| BoundedText::new_udf(true));

impl BoundedText {
    fn new_udf(nulls: bool) -> Arc<ScalarUDF> {
        Arc::new(ScalarUDF::new_from_impl(Self { signature: Signature::any(1, Volatility::Immutable), nulls }))
    }

    /// The function that refuses longer texts.
    pub(super) fn refusing() -> &'static ScalarUDF {
        &REFUSING
    }

    /// The function that makes longer texts null.
    pub(super) fn nulling() -> &'static ScalarUDF {
        &NULLING
    }
}

impl ScalarUDFImpl for BoundedText {
    fn name(&self) -> &'static str {
        "number_text"
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
        let Some(value) = args.args.into_iter().next() else { return Ok(ColumnarValue::Scalar(ScalarValue::Null)) };
        match value {
            ColumnarValue::Scalar(scalar) if is_long(&scalar) => {
                if self.nulls {
                    return Ok(ColumnarValue::Scalar(ScalarValue::try_from(&scalar.data_type())?));
                }
                Err(too_long().into())
            }
            ColumnarValue::Scalar(scalar) => Ok(ColumnarValue::Scalar(scalar)),
            ColumnarValue::Array(array) => Ok(ColumnarValue::Array(self.bounded(array)?)),
        }
    }

    fn placement(&self, args: &[ExpressionPlacement]) -> ExpressionPlacement {
        args.first().copied().unwrap_or(ExpressionPlacement::KeepInPlace)
    }
}

impl BoundedText {
    fn bounded(&self, array: ArrayRef) -> Result<ArrayRef> {
        if !has_long(array.as_ref()) {
            return Ok(array);
        }
        match text_lengths(array.as_ref()) {
            Some(lengths) if self.nulls => {
                let long: BooleanArray = lengths.map(|length| Some(length > MAX_NUMBER_BYTES)).collect();
                Ok(nullif(array.as_ref(), &long)?)
            }
            Some(_) | None => Err(too_long().into()),
        }
    }
}

fn too_long() -> EngineError {
    EngineError::InvalidValue { message: format!("a text of more than {MAX_NUMBER_BYTES} bytes is no number") }
}

/// Whether a constant is or holds a text that is too long.
pub(super) fn is_long(value: &ScalarValue) -> bool {
    match value {
        ScalarValue::Utf8(text) | ScalarValue::Utf8View(text) | ScalarValue::LargeUtf8(text) => {
            text.as_ref().is_some_and(|text| text.len() > MAX_NUMBER_BYTES)
        }
        other if holds_text(&other.data_type()) => other.to_array().map_or(true, |array| has_long(array.as_ref())),
        _ => false,
    }
}

/// Whether an expression has been bounded, or needs no bound.
pub(super) fn is_bounded(expr: &Expr) -> bool {
    match expr {
        Expr::ScalarFunction(call) => call.func.inner().is::<BoundedText>(),
        Expr::Literal(value, _) => !is_long(value),
        _ => false,
    }
}

/// Whether an array has a text that is too long, in a column or in what is nested in it.
fn has_long(array: &dyn Array) -> bool {
    if let Some(mut lengths) = text_lengths(array) {
        return lengths.any(|length| length > MAX_NUMBER_BYTES);
    }
    if !holds_text(array.data_type()) {
        return false;
    }
    match array.data_type() {
        DataType::List(_) => has_long(array.as_list::<i32>().values().as_ref()),
        DataType::LargeList(_) => has_long(array.as_list::<i64>().values().as_ref()),
        DataType::FixedSizeList(_, _) => has_long(array.as_fixed_size_list().values().as_ref()),
        DataType::Dictionary(_, _) => has_long(array.as_any_dictionary().values().as_ref()),
        DataType::Struct(_) => array.as_struct().columns().iter().any(|column| has_long(column.as_ref())),
        DataType::Map(_, _) => array.as_map().entries().columns().iter().any(|column| has_long(column.as_ref())),
        // What cannot be looked into is taken by its size.
        _ => array.get_array_memory_size() > MAX_NUMBER_BYTES,
    }
}

/// Returns the lengths of an array of texts; `None` of others.
fn text_lengths(array: &dyn Array) -> Option<Box<dyn Iterator<Item = usize> + '_>> {
    Some(match array.data_type() {
        DataType::Utf8 => {
            let offsets = array.as_string::<i32>().value_offsets();
            Box::new(offsets.windows(2).map(|pair| pair[1].abs_diff(pair[0]) as usize))
        }
        DataType::LargeUtf8 => {
            let offsets = array.as_string::<i64>().value_offsets();
            let length = |pair: &[i64]| usize::try_from(pair[1].abs_diff(pair[0])).unwrap_or(usize::MAX);
            Box::new(offsets.windows(2).map(length))
        }
        DataType::Utf8View => {
            let views = array.as_string_view().views();
            Box::new(views.iter().map(|view| arrow::array::ByteView::from(*view).length as usize))
        }
        _ => return None,
    })
}

/// Whether a type is a decimal or holds some.
pub(super) fn holds_decimals(data_type: &DataType) -> bool {
    data_type.is_decimal() || nested(data_type, &holds_decimals)
}

/// Whether a type is text or holds some.
pub(super) fn holds_text(data_type: &DataType) -> bool {
    data_type.is_string() || nested(data_type, &holds_text)
}

fn nested(data_type: &DataType, holds: &dyn Fn(&DataType) -> bool) -> bool {
    match data_type {
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::ListView(field)
        | DataType::LargeListView(field)
        | DataType::FixedSizeList(field, _)
        | DataType::Map(field, _) => holds(field.data_type()),
        DataType::Struct(fields) => fields.iter().any(|field| holds(field.data_type())),
        DataType::Union(fields, _) => fields.iter().any(|(_, field)| holds(field.data_type())),
        DataType::Dictionary(_, values) => holds(values),
        DataType::RunEndEncoded(_, values) => holds(values.data_type()),
        _ => false,
    }
}
