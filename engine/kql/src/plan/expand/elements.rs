//! The function that returns the elements of a dynamic value as a list: of an array its elements, of a bag a bag of
//! each property, and of any other value the value. A null element is null; only an empty array has no elements.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Builder, ListBuilder, StringBuilder};
use arrow::datatypes::{DataType, Field};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};
use serde_json::Value;

/// Which elements the function returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub(crate) struct Elements {
    /// Properties of a bag as arrays of name and value.
    pub(super) as_arrays: bool,
    /// The most elements of one value.
    pub(super) limit: Option<usize>,
    /// The indexes instead of the elements, as many as the longest of all arguments has.
    pub(super) indexes: bool,
}

/// Returns the function.
pub(crate) fn elements(elements: Elements) -> Arc<ScalarUDF> {
    let signature = Signature::variadic(vec![DataType::Utf8], Volatility::Immutable);
    Arc::new(ScalarUDF::new_from_impl(ElementsOf { elements, signature }))
}

/// Returns which elements a function returns, if it is this one.
pub(crate) fn elements_of_function(function: &ScalarUDF) -> Option<Elements> {
    let function = (function.inner().as_ref() as &dyn std::any::Any).downcast_ref::<ElementsOf>()?;
    Some(function.elements)
}

/// Whether a function is this one.
pub(crate) fn is_elements_function(function: &ScalarUDF) -> bool {
    (function.inner().as_ref() as &dyn std::any::Any).is::<ElementsOf>()
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct ElementsOf {
    elements: Elements,
    signature: Signature,
}

impl ScalarUDFImpl for ElementsOf {
    fn name(&self) -> &str {
        "kql_elements"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        let item = if self.elements.indexes { DataType::Int64 } else { DataType::Utf8 };
        Ok(DataType::List(Arc::new(Field::new_list_field(item, true))))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let made = if self.elements.indexes { self.places(&arrays) } else { self.lists(&arrays) };
        Ok(ColumnarValue::Array(made?))
    }
}

impl ElementsOf {
    fn lists(&self, arrays: &[ArrayRef]) -> Result<ArrayRef> {
        let Some(texts) = arrays.first().and_then(|array| array.as_string_opt::<i32>()) else {
            return Err(DataFusionError::Internal("kql_elements takes dynamic values".into()));
        };
        let mut builder = ListBuilder::new(StringBuilder::new());
        for text in texts.iter() {
            for element in self.elements_of(text) {
                builder.values().append_option(element);
            }
            builder.append(true);
        }
        Ok(Arc::new(builder.finish()))
    }

    fn places(&self, arrays: &[ArrayRef]) -> Result<ArrayRef> {
        let mut builder = ListBuilder::new(Int64Builder::new());
        for row in 0..arrays.first().map_or(0, |array| array.len()) {
            let mut longest = 0;
            for texts in arrays.iter().filter_map(|array| array.as_string_opt::<i32>()) {
                let text = texts.is_valid(row).then(|| texts.value(row));
                longest = longest.max(self.elements_of(text).len());
            }
            for place in 0..longest {
                builder.values().append_value(i64::try_from(place).unwrap_or(i64::MAX));
            }
            builder.append(true);
        }
        Ok(Arc::new(builder.finish()))
    }

    fn elements_of(&self, text: Option<&str>) -> Vec<Option<String>> {
        let mut elements = match text.map(serde_json::from_str) {
            Some(Ok(Value::Array(items))) => items.iter().map(json_of).collect(),
            Some(Ok(Value::Object(properties))) => {
                properties.into_iter().map(|(name, value)| Some(self.property(name, value))).collect()
            }
            _ => vec![text.map(str::to_owned)],
        };
        elements.truncate(self.elements.limit.unwrap_or(usize::MAX));
        elements
    }

    fn property(&self, name: String, value: Value) -> String {
        let name = Value::String(name);
        if self.elements.as_arrays { format!("[{name},{value}]") } else { format!("{{{name}:{value}}}") }
    }
}

fn json_of(value: &Value) -> Option<String> {
    (!value.is_null()).then(|| value.to_string())
}
