//! Lists as values of parameters, from the values of a client that has no types for lists, such as JSON and Python.

use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use thiserror::Error;

/// Doubles have all integers up to this one and its opposite.
const EXACT_DOUBLES: i64 = 1 << 53;

/// Why values are no list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ListValueError {
    /// They are of several types.
    #[error("has values of several types")]
    MixedTypes,
    /// Integers stand beside fractions, and a double would be another number than one of them.
    #[error("has fractions and an integer that no double has")]
    InexactInteger,
}

/// Returns the list of `values`, which are null or of one type; integers beside doubles become doubles.
///
/// # Errors
///
/// See [`ListValueError`].
pub fn list_value(mut values: Vec<ScalarValue>) -> Result<ScalarValue, ListValueError> {
    if values.iter().any(|value| matches!(value, ScalarValue::Float64(_))) {
        for value in &mut values {
            *value = as_double(value)?;
        }
    }
    let item = values.iter().map(ScalarValue::data_type).find(|data_type| !is_open(data_type));
    let item = item.or_else(|| values.iter().find(|value| !value.is_null()).map(ScalarValue::data_type));
    let item = item.unwrap_or(DataType::Null);
    for value in &mut values {
        let data_type = value.data_type();
        if data_type != item {
            let typed = is_open(&data_type).then(|| value.cast_to(&item).ok()).flatten();
            *value = typed.ok_or(ListValueError::MixedTypes)?;
        }
    }
    Ok(ScalarValue::List(ScalarValue::new_list_nullable(&values, &item)))
}

/// Whether a type is still to be told by other values: that of null, and of an empty list.
fn is_open(data_type: &DataType) -> bool {
    match data_type {
        DataType::Null => true,
        DataType::List(item) => is_open(item.data_type()),
        _ => false,
    }
}

fn as_double(value: &ScalarValue) -> Result<ScalarValue, ListValueError> {
    match value {
        ScalarValue::Int64(Some(number)) if (-EXACT_DOUBLES..=EXACT_DOUBLES).contains(number) => {
            Ok(ScalarValue::from(*number as f64))
        }
        ScalarValue::Int64(Some(_)) | ScalarValue::UInt64(Some(_)) => Err(ListValueError::InexactInteger),
        other => Ok(other.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_one_type_are_a_list() {
        let list = |values: &[ScalarValue]| list_value(values.to_vec());
        let shown = |values: &[ScalarValue]| {
            let value = list(values).unwrap();
            (value.to_string(), value.data_type())
        };
        let of = |item| DataType::new_list(item, true);
        assert_eq!(shown(&[1_i64.into(), ScalarValue::Null]), ("[1, ]".to_owned(), of(DataType::Int64)));
        assert_eq!(shown(&[1_i64.into(), 0.5.into()]), ("[1.0, 0.5]".to_owned(), of(DataType::Float64)));
        assert_eq!(shown(&["a".into()]), ("[a]".to_owned(), of(DataType::Utf8)));
        assert_eq!(shown(&[]), ("[]".to_owned(), of(DataType::Null)));
        let nested = [list(&[]).unwrap(), list(&[1_i64.into()]).unwrap(), ScalarValue::Null];
        assert_eq!(shown(&nested), ("[[], [1], ]".to_owned(), of(of(DataType::Int64))));
        assert_eq!(list(&[1_i64.into(), list(&[]).unwrap()]), Err(ListValueError::MixedTypes));
        assert_eq!(list(&[1_i64.into(), "a".into()]), Err(ListValueError::MixedTypes));
        assert_eq!(list(&[0.5.into(), (EXACT_DOUBLES + 1).into()]), Err(ListValueError::InexactInteger));
    }
}
