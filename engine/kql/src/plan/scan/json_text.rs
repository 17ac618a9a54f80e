//! Nested Arrow values as JSON text, which lists, structs and maps of a stored table become in KQL, and stored JSON.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StringArray, StructArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field};
use arrow::json::writer::{LineDelimited, WriterBuilder};
use datafusion::error::{DataFusionError, Result};

use crate::values::normalize_json;

/// Returns the JSON text of each value. Each is written as the property of an object, from which its text is cut out.
pub(super) fn json_texts(values: ArrayRef) -> Result<StringArray> {
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

/// Returns the dynamic value that each text holds, as `parse_json` reads it.
pub(super) fn normalized(texts: &ArrayRef) -> Result<StringArray> {
    let texts = cast(texts, &DataType::Utf8View)?;
    Ok(texts.as_string_view().iter().map(|text| text.and_then(normalize_json)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_holds_no_json_is_a_string() {
        let texts = [Some(r#" {"a": [1, 2.0]} "#), Some("[1]"), Some("not json"), Some("null"), Some(""), None];
        let stored: ArrayRef = Arc::new(StringArray::from(texts.to_vec()));
        let expected = [Some(r#"{"a":[1,2.0]}"#), Some("[1]"), Some("\"not json\""), None, None, None];
        assert_eq!(normalized(&stored).unwrap().iter().collect::<Vec<_>>(), expected);
    }
}
