//! Nested Arrow values as JSON text: what a list, a struct or a map of a stored table is in KQL.

use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef, StringArray, StructArray};
use arrow::datatypes::{DataType, Field};
use arrow::json::writer::{LineDelimited, WriterBuilder};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};

static JSON_TEXT: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let signature = Signature::any(1, Volatility::Immutable);
    Arc::new(ScalarUDF::new_from_impl(JsonText { signature }))
});

/// The function from any value to its JSON.
pub(super) fn json_text() -> Arc<ScalarUDF> {
    Arc::clone(&JSON_TEXT)
}

/// Whether this is that function.
pub(super) fn is_ours(function: &ScalarUDF) -> bool {
    (function.inner().as_ref() as &dyn std::any::Any).is::<JsonText>()
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct JsonText {
    signature: Signature,
}

impl ScalarUDFImpl for JsonText {
    fn name(&self) -> &str {
        "kql_json_text"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let mut arrays = ColumnarValue::values_to_arrays(&args.args)?;
        match arrays.pop() {
            Some(values) => Ok(ColumnarValue::Array(Arc::new(texts(values)?))),
            None => Err(DataFusionError::Internal("kql_json_text takes one value".into())),
        }
    }
}

/// Each value as the property of a line, of which the value is taken again.
fn texts(values: ArrayRef) -> Result<StringArray> {
    const BEFORE: &str = "{\"v\":";
    let field = Arc::new(Field::new("v", values.data_type().clone(), true));
    let rows = StructArray::new(vec![field].into(), vec![Arc::clone(&values)], None);
    let mut writer = WriterBuilder::new().with_explicit_nulls(true).build::<_, LineDelimited>(Vec::new());
    writer.write(&rows.into())?;
    writer.finish()?;
    let written = String::from_utf8(writer.into_inner()).map_err(|error| DataFusionError::External(error.into()))?;
    let line_value =
        |line: &str| line.strip_prefix(BEFORE).and_then(|rest| rest.strip_suffix('}')).unwrap_or("null").to_owned();
    let lines = written.lines().zip(0..values.len());
    Ok(lines.map(|(line, row)| values.is_valid(row).then(|| line_value(line))).collect())
}
