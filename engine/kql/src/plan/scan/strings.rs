//! Stored strings as KQL's: null is the empty string.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StringViewArray};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use datafusion::error::Result;

/// Returns a column as string views in which null is the empty string.
pub(super) fn without_nulls(stored: &ArrayRef) -> Result<ArrayRef> {
    let strings =
        if stored.data_type() == &DataType::Utf8View { Arc::clone(stored) } else { cast(stored, &DataType::Utf8View)? };
    if strings.null_count() == 0 {
        return Ok(strings);
    }
    let (views, buffers, nulls) = strings.as_string_view().clone().into_parts();
    // The view of a short string holds it: 0 is the empty string.
    let is_some = |row: usize| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
    let views = views.iter().enumerate().map(|(row, view)| if is_some(row) { *view } else { 0 }).collect();
    Ok(Arc::new(StringViewArray::try_new(views, buffers, None)?))
}

#[cfg(test)]
mod tests {
    use arrow::array::StringArray;

    use super::*;

    #[test]
    fn null_is_the_empty_string() {
        let long = "longer than what fits into a view";
        let stored: ArrayRef = Arc::new(StringArray::from(vec![Some("a"), None, Some(long), Some("")]));
        let strings = without_nulls(&stored).unwrap();
        assert_eq!(strings.as_string_view().iter().collect::<Vec<_>>(), [Some("a"), Some(""), Some(long), Some("")]);
    }
}
