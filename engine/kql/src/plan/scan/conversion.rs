//! The DataFusion functions that convert a stored column to a KQL value, where a cast is not enough. Only plans made
//! here call them.

use std::sync::{Arc, LazyLock};

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::{json_text, strings, ticks};

/// A conversion of a stored column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub(crate) enum StoredConversion {
    /// A string, or a value that is printed as one, to a string; null to the empty string.
    String,
    /// A date, an instant or a length of time to ticks.
    Ticks,
    /// A list, a struct or a map to JSON text.
    Json,
    /// A text that holds JSON to JSON text; one that does not to a string.
    JsonText,
}

static STRING: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| StoredConversion::String.new_udf());
static TICKS: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| StoredConversion::Ticks.new_udf());
static JSON: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| StoredConversion::Json.new_udf());
static JSON_TEXT: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| StoredConversion::JsonText.new_udf());

impl StoredConversion {
    /// Returns the conversion of a column.
    pub(super) fn call(self, column: Expr) -> Expr {
        let function = match self {
            StoredConversion::String => &STRING,
            StoredConversion::Ticks => &TICKS,
            StoredConversion::Json => &JSON,
            StoredConversion::JsonText => &JSON_TEXT,
        };
        function.call(vec![column])
    }

    /// Returns the conversion that a function does, if it is one.
    pub(crate) fn from_udf(function: &ScalarUDF) -> Option<Self> {
        let function = (function.inner().as_ref() as &dyn std::any::Any).downcast_ref::<ConversionFunction>()?;
        Some(function.conversion)
    }

    /// Returns the function of the conversion.
    pub(crate) fn new_udf(self) -> Arc<ScalarUDF> {
        let signature = Signature::any(1, Volatility::Immutable);
        Arc::new(ScalarUDF::new_from_impl(ConversionFunction { conversion: self, signature }))
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct ConversionFunction {
    conversion: StoredConversion,
    signature: Signature,
}

impl ScalarUDFImpl for ConversionFunction {
    fn name(&self) -> &str {
        match self.conversion {
            StoredConversion::String => "kql_text",
            StoredConversion::Ticks => "kql_ticks",
            StoredConversion::Json => "kql_json_text",
            StoredConversion::JsonText => "kql_dynamic",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(match self.conversion {
            StoredConversion::String => DataType::Utf8View,
            StoredConversion::Ticks => DataType::Int64,
            StoredConversion::Json | StoredConversion::JsonText => DataType::Utf8,
        })
    }

    fn return_field_from_args(&self, _arguments: ReturnFieldArgs) -> Result<FieldRef> {
        let nullable = self.conversion != StoredConversion::String;
        Ok(Field::new(self.name(), self.return_type(&[])?, nullable).into())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_constant = matches!(args.args.as_slice(), [ColumnarValue::Scalar(_)]);
        let Some(stored) = ColumnarValue::values_to_arrays(&args.args)?.pop() else {
            return Err(DataFusionError::Internal(format!("{} takes one value", self.name())));
        };
        let converted: ArrayRef = match self.conversion {
            StoredConversion::String => strings::without_nulls(&stored)?,
            StoredConversion::Ticks => Arc::new(ticks::ticks_of(&stored)?),
            StoredConversion::Json => Arc::new(json_text::json_texts(&stored)?),
            StoredConversion::JsonText => Arc::new(json_text::normalized(&stored)?),
        };
        Ok(match is_constant {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&converted, 0)?),
            false => ColumnarValue::Array(converted),
        })
    }
}
