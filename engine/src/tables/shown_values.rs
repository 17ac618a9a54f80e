//! Columns whose buffers hold what their rows show and nothing else.
//!
//! Kernels leave values where they are if taking them out means to copy: `CASE WHEN ... THEN column END` is carried out by
//! making the other rows null, above values that stay, and a filter keeps the data buffers of views and the values of
//! dictionaries. Who gets the buffers can read it all. So the part of a table that its caller sees passes here.
//!
//! Unions and run-end encoding, which conditions and masks do not give, are left as they are.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, DictionaryArray, FixedSizeListArray, GenericListArray, MapArray,
    OffsetSizeTrait, Scalar, StructArray, new_empty_array, new_null_array,
};
use arrow::compute::is_not_null;
use arrow::compute::kernels::zip::zip;
use arrow::datatypes::{ArrowDictionaryKeyType, DataType};
use arrow::downcast_dictionary_array;
use arrow::error::ArrowError;

/// Returns the column without the values that no row of it shows.
pub(super) fn shown_values(column: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    if matches!(column.data_type(), DataType::Dictionary(_, _)) {
        let array: &dyn Array = column.as_ref();
        return downcast_dictionary_array!(
            array => shown_dictionary(array),
            _ => Ok(ArrayRef::clone(column)),
        );
    }
    let column = without_values_of_nulls(column)?;
    let shown: ArrayRef = match column.data_type() {
        DataType::Utf8View => Arc::new(column.as_string_view().gc()),
        DataType::BinaryView => Arc::new(column.as_binary_view().gc()),
        DataType::Struct(_) => {
            let rows = column.len();
            let (fields, children, nulls) = column.as_struct().clone().into_parts();
            let children = children.iter().map(shown_values).collect::<Result<Vec<_>, _>>()?;
            Arc::new(StructArray::try_new_with_length(fields, children, nulls, rows)?)
        }
        DataType::List(_) => shown_list(column.as_list::<i32>())?,
        DataType::LargeList(_) => shown_list(column.as_list::<i64>())?,
        DataType::FixedSizeList(_, _) => {
            let rows = column.len();
            let (field, size, values, nulls) = column.as_fixed_size_list().clone().into_parts();
            Arc::new(FixedSizeListArray::try_new_with_length(field, size, shown_values(&values)?, nulls, rows)?)
        }
        DataType::Map(_, _) => {
            let (field, offsets, entries, nulls, ordered) = column.as_map().clone().into_parts();
            let entries: ArrayRef = Arc::new(entries);
            let entries = shown_values(&entries)?.as_struct().clone();
            Arc::new(MapArray::try_new(field, offsets, entries, nulls, ordered)?)
        }
        _ => ArrayRef::clone(&column),
    };
    Ok(shown)
}

fn shown_list<O: OffsetSizeTrait>(list: &GenericListArray<O>) -> Result<ArrayRef, ArrowError> {
    let (field, offsets, values, nulls) = list.clone().into_parts();
    let shown = GenericListArray::<O>::try_new(field, offsets, shown_values(&values)?, nulls)?;
    Ok(Arc::new(shown))
}

/// Returns a dictionary in which a value that no row shows has become one that a row shows.
fn shown_dictionary<K: ArrowDictionaryKeyType>(dictionary: &DictionaryArray<K>) -> Result<ArrayRef, ArrowError> {
    let keys: ArrayRef = Arc::new(dictionary.keys().clone());
    let keys = without_values_of_nulls(&keys)?.as_primitive::<K>().clone();
    let values = dictionary.values();
    let used = dictionary.occupancy();
    let first = used.set_indices().next();
    let values = match first {
        None => new_empty_array(values.data_type()),
        Some(_) if used.count_set_bits() == values.len() => ArrayRef::clone(values),
        Some(first) => zip(&BooleanArray::new(used, None), values, &Scalar::new(values.slice(first, 1)))?,
    };
    let shown = DictionaryArray::try_new(keys, shown_values(&values)?)?;
    Ok(Arc::new(shown))
}

/// Returns the column with nothing under its nulls.
fn without_values_of_nulls(column: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    if column.null_count() == 0 {
        return Ok(ArrayRef::clone(column));
    }
    let nothing = Scalar::new(new_null_array(column.data_type(), 1));
    zip(&is_not_null(column)?, column, &nothing)
}

#[cfg(test)]
mod tests {
    use arrow::array::{
        ArrayData, Int64Array, ListBuilder, MapBuilder, StringArray, StringBuilder, StringViewArray, UInt64Array,
    };
    use arrow::compute::kernels::nullif::nullif;
    use arrow::compute::take;
    use arrow::datatypes::{Field, Fields, Int8Type};

    use super::*;

    /// A number that no offset, length or key is.
    const SECRET: i64 = 0x0123_4567_89ab_cdef;
    const SECRET_TEXT: &str = "a text that no row shows";

    fn holds_secret(data: &ArrayData) -> bool {
        let number = SECRET.to_le_bytes();
        let has = |bytes: &[u8], part: &[u8]| bytes.windows(part.len()).any(|window| window == part);
        data.buffers().iter().any(|buffer| has(buffer, &number) || has(buffer, SECRET_TEXT.as_bytes()))
            || data.child_data().iter().any(holds_secret)
    }

    /// Returns columns of three rows of which the second is secret.
    fn columns() -> Vec<ArrayRef> {
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![1, SECRET, 3]));
        let texts: ArrayRef = Arc::new(StringArray::from(vec!["one", SECRET_TEXT, "three"]));
        let views: ArrayRef = Arc::new(StringViewArray::from(vec!["one", SECRET_TEXT, "a third text of some length"]));
        let codes: ArrayRef =
            Arc::new(["one", SECRET_TEXT, "three"].into_iter().collect::<DictionaryArray<Int8Type>>());
        let mut lists = ListBuilder::new(StringBuilder::new());
        let mut maps = MapBuilder::new(None, StringBuilder::new(), StringBuilder::new());
        for text in ["one", SECRET_TEXT, "three"] {
            lists.values().append_value(text);
            lists.append(true);
            maps.keys().append_value("key");
            maps.values().append_value(text);
            maps.append(true).unwrap();
        }
        let fields = Fields::from(vec![
            Field::new("number", DataType::Int64, true),
            Field::new("view", DataType::Utf8View, true),
            Field::new("code", codes.data_type().clone(), true),
        ]);
        let children = vec![ArrayRef::clone(&numbers), ArrayRef::clone(&views), ArrayRef::clone(&codes)];
        let structs: ArrayRef = Arc::new(StructArray::new(fields, children, None));
        let pairs: ArrayRef = Arc::new(FixedSizeListArray::new(
            Arc::new(Field::new("item", DataType::Int64, true)),
            2,
            Arc::new(Int64Array::from(vec![1, 1, SECRET, SECRET, 3, 3])),
            None,
        ));
        vec![numbers, texts, views, codes, Arc::new(lists.finish()), Arc::new(maps.finish()), structs, pairs]
    }

    #[test]
    fn nothing_lies_under_nulls() {
        let hidden = BooleanArray::from(vec![false, true, false]);
        for column in columns() {
            let masked = nullif(&column, &hidden).unwrap();
            let shown = shown_values(&masked).unwrap();
            assert_eq!(&shown, &masked);
            assert!(!holds_secret(&shown.to_data()), "{}", column.data_type());
        }
    }

    #[test]
    fn values_of_rows_that_were_taken_away_are_gone() {
        for column in columns() {
            let left = take(&column, &UInt64Array::from(vec![2, 0, 2]), None).unwrap();
            let shown = shown_values(&left).unwrap();
            assert_eq!(&shown, &left);
            assert!(!holds_secret(&shown.to_data()), "{}", column.data_type());
            let none = shown_values(&take(&column, &UInt64Array::from(Vec::<u64>::new()), None).unwrap()).unwrap();
            assert!(none.is_empty() && !holds_secret(&none.to_data()), "{}", column.data_type());
        }
    }

    #[test]
    fn values_that_are_shown_stay_where_they_are() {
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
        let shown = shown_values(&numbers).unwrap();
        assert_eq!(shown.to_data().buffers()[0].as_ptr(), numbers.to_data().buffers()[0].as_ptr());
        let only_nulls: ArrayRef =
            Arc::new(vec![None::<&str>, None].into_iter().collect::<DictionaryArray<Int8Type>>());
        assert_eq!(shown_values(&only_nulls).unwrap().null_count(), 2);
    }
}
