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
    let known = |value: &ScalarValue| (!value.is_null()).then(|| value.data_type());
    let item = values.iter().find_map(known).unwrap_or(DataType::Null);
    for value in &mut values {
        if value.is_null() {
            *value = ScalarValue::try_from(&item).map_err(|_| ListValueError::MixedTypes)?;
        } else if value.data_type() != item {
            return Err(ListValueError::MixedTypes);
        }
    }
    Ok(ScalarValue::List(ScalarValue::new_list_nullable(&values, &item)))
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
        let nested = [list(&[1_i64.into()]).unwrap(), ScalarValue::Null];
        assert_eq!(shown(&nested).1, of(of(DataType::Int64)));
        assert_eq!(list(&[1_i64.into(), "a".into()]), Err(ListValueError::MixedTypes));
        assert_eq!(list(&[0.5.into(), (EXACT_DOUBLES + 1).into()]), Err(ListValueError::InexactInteger));
    }
}
