//! Which columns of a Parquet file are written with a dictionary, by a look at the first rows.
//!
//! The writer gives a dictionary up once its page is full, and a row group of numbers that all differ does not fill one:
//! it would hash every value, and write each of them beside an index.

use std::collections::HashSet;

use arrow::array::{Array, ArrayRef};
use arrow::datatypes::DataType;
use datafusion::common::hash_utils::{RandomState, create_hashes};

/// Rows that are looked at, and the fewest that say anything.
const SAMPLED_ROWS: usize = 8_192;
const LEAST_ROWS: usize = 1_024;
/// A dictionary is left out where more than nine tenths of the values differ.
const DISTINCT_TENTHS: usize = 9;

/// Returns whether a dictionary would only cost: almost all of the column's first values differ from one another.
pub(super) fn is_dictionary_futile(column: &ArrayRef) -> bool {
    let sampled = column.slice(0, column.len().min(SAMPLED_ROWS));
    let values = sampled.len() - sampled.null_count();
    if values < LEAST_ROWS || *column.data_type() == DataType::Boolean {
        return false;
    }
    let mut hashes = vec![0; sampled.len()];
    if create_hashes([&sampled], &RandomState::default(), &mut hashes).is_err() {
        return false;
    }
    let distinct: HashSet<u64> =
        (0..sampled.len()).filter(|row| sampled.is_valid(*row)).map(|row| hashes[row]).collect();
    distinct.len() * 10 > values * DISTINCT_TENTHS
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Int64Array, StringArray};

    use super::*;

    #[test]
    fn only_values_that_repeat_get_a_dictionary() {
        let numbers =
            |distinct: i64| -> ArrayRef { Arc::new(Int64Array::from_iter_values((0..8_000).map(|n| n % distinct))) };
        assert!(is_dictionary_futile(&numbers(8_000)));
        assert!(!is_dictionary_futile(&numbers(4_000)));
        let texts: ArrayRef = Arc::new(StringArray::from_iter_values((0..8_000).map(|n| format!("text {n}"))));
        assert!(is_dictionary_futile(&texts));
        // Nulls are no values, and few values say nothing.
        let sparse: ArrayRef = Arc::new(Int64Array::from_iter((0..8_000).map(|n| (n % 4 == 0).then_some(n))));
        assert!(is_dictionary_futile(&sparse));
        assert!(!is_dictionary_futile(&numbers(8_000).slice(0, 1_000)));
    }
}
