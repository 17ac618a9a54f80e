//! Stored texts as KQL's strings: null is the empty one.

use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef, AsArray, StringViewArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

static TEXT: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let signature = Signature::any(1, Volatility::Immutable);
    Arc::new(ScalarUDF::new_from_impl(Text { signature }))
});

/// The function from a stored text, or what is printed as one, to a string.
pub(super) fn text() -> Arc<ScalarUDF> {
    Arc::clone(&TEXT)
}

/// Whether this is that function.
pub(super) fn is_texts_function(function: &ScalarUDF) -> bool {
    (function.inner().as_ref() as &dyn std::any::Any).is::<Text>()
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Text {
    signature: Signature,
}

impl ScalarUDFImpl for Text {
    fn name(&self) -> &str {
        "kql_text"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8View)
    }

    fn return_field_from_args(&self, _arguments: ReturnFieldArgs) -> Result<FieldRef> {
        Ok(Field::new(self.name(), DataType::Utf8View, false).into())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_constant = matches!(args.args.as_slice(), [ColumnarValue::Scalar(_)]);
        let texts = match ColumnarValue::values_to_arrays(&args.args)?.pop() {
            Some(stored) => without_nulls(&stored)?,
            None => return Ok(ColumnarValue::Scalar(ScalarValue::Utf8View(Some(String::new())))),
        };
        Ok(match is_constant {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&texts, 0)?),
            false => ColumnarValue::Array(texts),
        })
    }
}

fn without_nulls(stored: &ArrayRef) -> Result<ArrayRef> {
    let texts =
        if stored.data_type() == &DataType::Utf8View { Arc::clone(stored) } else { cast(stored, &DataType::Utf8View)? };
    if texts.null_count() == 0 {
        return Ok(texts);
    }
    let (views, buffers, nulls) = texts.as_string_view().clone().into_parts();
    // The view of a short text holds it: 0 is the empty one.
    let is_text = |row: usize| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
    let views = views.iter().enumerate().map(|(row, view)| if is_text(row) { *view } else { 0 }).collect();
    Ok(Arc::new(StringViewArray::try_new(views, buffers, None)?))
}

#[cfg(test)]
mod tests {
    use arrow::array::StringArray;

    use super::*;

    #[test]
    fn null_is_the_empty_text() {
        let long = "longer than what fits into a view";
        let stored: ArrayRef = Arc::new(StringArray::from(vec![Some("a"), None, Some(long), Some("")]));
        let texts = without_nulls(&stored).unwrap();
        assert_eq!(texts.as_string_view().iter().collect::<Vec<_>>(), [Some("a"), Some(""), Some(long), Some("")]);
    }
}
