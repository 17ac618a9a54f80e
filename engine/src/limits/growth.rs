//! How large a call's result can be, by its arguments alone.
//!
//! Most functions make about as much as they are given. Those that repeat one argument for each part of another make up to
//! the product of both; those whose result follows a number are bounded by `functions::bounded`.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::ColumnarValue;

use super::row_pace::array_bytes;

/// What a function makes of a byte, at most, where it repeats nothing: hexadecimal digits, offsets of parts, escapes.
const LINEAR_FACTOR: usize = 4;
/// What deflate makes of a byte, at most, encoded as text.
const INFLATION_FACTOR: usize = 1_100;
/// What a row costs beside its values.
const ROW_BYTES: usize = 16;

/// What a value takes in a tree that a function parses a text into, while the vector that holds it grows.
const TREE_VALUE_BYTES: usize = 2 * size_of::<serde_json::Value>();
/// The texts of shorter rows become small trees.
const LARGE_TEXT_BYTES: usize = 64 << 10;

/// What an item of a list counts for at least: functions make numbers, rows and texts of truth values, which are bits, and of
/// nulls, which are nothing.
const LEAST_ITEM_BYTES: usize = 4;

/// What an item of a list of a fixed length takes while it is only known where it comes from.
const PLACE_BYTES: usize = 24;

/// Parts of the names of functions that make a tree of a text, or of a list, before they make a result of it.
const TREE_MAKING: [&str; 4] = ["json", "todynamic", "toobject", "text_to_list"];
/// The one of them that only reads.
const TREELESS: &str = "json_valid";
/// KQL's functions do so with dynamic values.
const KQL: &str = "kql_";
/// Parts of the names of functions that repeat one argument for each part of another.
const REPEATING: [&str; 14] = [
    "replace",
    "to_string",
    "concat_ws",
    "strcat",
    "strrep",
    "repeat",
    "pad",
    "format",
    "translate",
    "join",
    "printf",
    "cross",
    "product",
    "string_agg",
];
/// Parts of the names of functions that inflate what was compressed.
const INFLATING: [&str; 3] = ["gzip", "zlib", "inflate"];
/// Functions that compare each element of one list with each of another.
const COMPARING: [&str; 4] = ["array_has_all", "array_has_any", "levenshtein", "list_has_all"];
/// Functions that look for each character of one text in another.
const TRIMMING: [&str; 3] = ["btrim", "ltrim", "rtrim"];
/// The function that compares a text with each place of another, where both are columns.
const SEARCHING: &str = "strpos";

/// How a function's result follows from its arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum CallGrowth {
    Linear(usize),
    Product,
}

impl CallGrowth {
    pub(crate) fn of_function(name: &str) -> Self {
        let name = name.to_ascii_lowercase();
        if REPEATING.iter().any(|part| name.contains(part)) {
            CallGrowth::Product
        } else if INFLATING.iter().any(|part| name.contains(part)) {
            CallGrowth::Linear(INFLATION_FACTOR)
        } else {
            CallGrowth::Linear(LINEAR_FACTOR)
        }
    }

    /// Returns the most bytes that a call makes for `rows` rows.
    pub(crate) fn most_bytes(self, arguments: &[ColumnarValue], rows: usize) -> usize {
        let sizes: Vec<ArgumentSize> = arguments.iter().map(|value| ArgumentSize::of_value(value, rows)).collect();
        let sum = sizes.iter().fold(rows.saturating_mul(ROW_BYTES), |sum, size| sum.saturating_add(size.all));
        match self {
            CallGrowth::Linear(factor) => sum.saturating_mul(factor),
            CallGrowth::Product => {
                let product = |(at, one): (usize, &ArgumentSize)| {
                    let others = sizes.iter().enumerate().filter(move |(other, _)| *other != at);
                    one.all.saturating_mul(others.map(|(_, other)| other.largest).max().unwrap_or(0))
                };
                let largest = sizes.iter().enumerate().map(product).max().unwrap_or(0);
                // A separator stands between the other arguments.
                let most = sizes.iter().map(|size| size.all).max().unwrap_or(0).saturating_mul(sizes.len());
                sum.saturating_mul(LINEAR_FACTOR).saturating_add(largest.max(most))
            }
        }
    }
}

/// Returns about how many bytes the trees take that a call makes of its large arguments, beside what [`CallGrowth`] says: a
/// text of `1,1,1` becomes seventy times as large.
pub(crate) fn tree_bytes(name: &str, arguments: &[ColumnarValue]) -> usize {
    let makes_trees = name != TREELESS && TREE_MAKING.iter().any(|part| name.contains(part));
    // Of KQL's types dynamic ones are texts, and strings are views.
    let is_read = |data_type: &DataType| makes_trees || (name.starts_with(KQL) && *data_type == DataType::Utf8);
    let read = arguments.iter().filter(|value| is_read(&value.data_type()));
    read.map(tree_values).fold(0_usize, usize::saturating_add).saturating_mul(TREE_VALUE_BYTES)
}

/// Returns how many values the trees of an argument have, those of short texts left out.
fn tree_values(argument: &ColumnarValue) -> usize {
    match argument {
        ColumnarValue::Scalar(scalar) => match scalar {
            ScalarValue::Utf8(Some(text)) | ScalarValue::Utf8View(Some(text)) | ScalarValue::LargeUtf8(Some(text)) => {
                values_of_text(text)
            }
            other => values_within(other),
        },
        ColumnarValue::Array(array) => match array.data_type() {
            DataType::Utf8 => array.as_string::<i32>().iter().flatten().map(values_of_text).sum(),
            DataType::LargeUtf8 => array.as_string::<i64>().iter().flatten().map(values_of_text).sum(),
            DataType::Utf8View => array.as_string_view().iter().flatten().map(values_of_text).sum(),
            _ => nested_values(array.as_ref()),
        },
    }
}

/// Returns how many values a text has at most: one behind each comma, colon or bracket.
fn values_of_text(text: &str) -> usize {
    if text.len() < LARGE_TEXT_BYTES {
        return 0;
    }
    text.bytes().filter(|byte| matches!(byte, b',' | b':' | b'[' | b'{')).count()
}

/// Returns how many values an argument's rows have nested in them.
pub(crate) fn nested_items(argument: &ColumnarValue) -> usize {
    match argument {
        ColumnarValue::Scalar(value) => values_within(value),
        ColumnarValue::Array(array) => nested_values(array.as_ref()),
    }
}

/// Returns how many values are nested in a value.
fn values_within(value: &ScalarValue) -> usize {
    match value {
        ScalarValue::List(list) => nested_values(list.as_ref()),
        ScalarValue::LargeList(list) => nested_values(list.as_ref()),
        ScalarValue::FixedSizeList(list) => nested_values(list.as_ref()),
        ScalarValue::Struct(fields) => nested_values(fields.as_ref()),
        ScalarValue::Map(entries) => nested_values(entries.as_ref()),
        _ => 0,
    }
}

/// Returns how many values an array's rows have nested in them.
fn nested_values(array: &dyn Array) -> usize {
    let part = |values: &ArrayRef, first: usize, last: usize| {
        let items = values.slice(first, last - first);
        items.len() + nested_values(items.as_ref())
    };
    match array.data_type() {
        DataType::List(_) => {
            let list = array.as_list::<i32>();
            match list.value_offsets() {
                [first, .., last] => part(list.values(), *first as usize, *last as usize),
                _ => 0,
            }
        }
        DataType::LargeList(_) => {
            let list = array.as_list::<i64>();
            match list.value_offsets() {
                [first, .., last] => part(list.values(), *first as usize, *last as usize),
                _ => 0,
            }
        }
        DataType::FixedSizeList(_, _) => {
            let values = array.as_fixed_size_list().values();
            part(values, 0, values.len())
        }
        DataType::Struct(_) => array.as_struct().columns().iter().map(|column| part(column, 0, column.len())).sum(),
        DataType::Map(_, _) => {
            let map = array.as_map();
            match map.value_offsets() {
                [first, .., last] => {
                    let (first, last) = (*first as usize, *last as usize);
                    part(map.keys(), first, last) + part(map.values(), first, last)
                }
                _ => 0,
            }
        }
        _ => 0,
    }
}

/// Returns what each row of a type takes, whatever is in it, while it is made.
pub(crate) fn row_bytes(data_type: &DataType) -> usize {
    match data_type {
        DataType::FixedSizeList(item, length) => {
            let item_bytes = row_bytes(item.data_type()).max(PLACE_BYTES);
            usize::try_from(*length).unwrap_or_default().saturating_mul(item_bytes)
        }
        DataType::FixedSizeBinary(length) => usize::try_from(*length).unwrap_or_default().saturating_mul(PLACE_BYTES),
        DataType::Struct(fields) => {
            fields.iter().map(|field| row_bytes(field.data_type())).fold(0, usize::saturating_add)
        }
        other => other.primitive_width().unwrap_or(ROW_BYTES),
    }
}

/// Returns the bytes of the largest value of an array, or more.
pub(crate) fn largest_value(array: &dyn Array) -> usize {
    ArgumentSize::of_array(array).largest
}

/// Whether the values that a function makes can be larger than its arguments by any factor.
pub(crate) fn grows(name: &str) -> bool {
    CallGrowth::of_function(name) != CallGrowth::Linear(LINEAR_FACTOR)
}

/// Returns how many pairs of elements or characters a call compares at most; 0 where it compares none.
pub(crate) fn compared_pairs(name: &str, arguments: &[ColumnarValue], rows: usize) -> u128 {
    // Elements are 8 bytes or more, texts are compared by many bytes at once.
    let pair_bytes = match name {
        name if COMPARING.contains(&name) => 8 * 8,
        name if TRIMMING.contains(&name) => 1,
        SEARCHING if matches!(arguments, [_, ColumnarValue::Array(_)]) => 32,
        _ => return 0,
    };
    let [left, right] = arguments else { return 0 };
    let (left, right) = (ArgumentSize::of_value(left, rows), ArgumentSize::of_value(right, rows));
    left.all as u128 * right.largest as u128 / pair_bytes
}

/// Returns the bytes of an argument's values in all rows together.
pub(crate) fn argument_bytes(value: &ColumnarValue, rows: usize) -> usize {
    ArgumentSize::of_value(value, rows).all
}

/// The bytes of an argument whose values differ in length.
#[derive(Debug, Clone, Copy, Default)]
struct ArgumentSize {
    /// Of all rows together.
    all: usize,
    /// Of the largest row.
    largest: usize,
}

impl ArgumentSize {
    fn of_value(value: &ColumnarValue, rows: usize) -> Self {
        match value {
            ColumnarValue::Scalar(scalar) if has_length(&scalar.data_type()) => {
                let bytes = scalar_bytes(scalar);
                Self { all: bytes.saturating_mul(rows), largest: bytes }
            }
            ColumnarValue::Array(array) if has_length(array.data_type()) => Self::of_array(array.as_ref()),
            ColumnarValue::Scalar(_) | ColumnarValue::Array(_) => Self::default(),
        }
    }

    fn of_array(array: &dyn Array) -> Self {
        let all = array_bytes(array).max(nested_values(array).saturating_mul(LEAST_ITEM_BYTES));
        let longest = match array.data_type() {
            DataType::Utf8 => widest(array.as_string::<i32>().value_offsets()),
            DataType::Binary => widest(array.as_binary::<i32>().value_offsets()),
            DataType::LargeUtf8 => widest_large(array.as_string::<i64>().value_offsets()),
            DataType::LargeBinary => widest_large(array.as_binary::<i64>().value_offsets()),
            DataType::Utf8View => longest_view(array.as_string_view().views()),
            DataType::BinaryView => longest_view(array.as_binary_view().views()),
            DataType::List(_) => share(all, array.as_list::<i32>().value_offsets()),
            _ => all,
        };
        Self { all, largest: longest.min(all) }
    }
}

/// Returns the bytes of the longest of lists that take `all` bytes together.
fn share(all: usize, offsets: &[i32]) -> usize {
    let elements = match offsets {
        [first, .., last] => last.abs_diff(*first) as usize,
        _ => 0,
    };
    // Elements may differ in size; a list may have a few large ones.
    let widest = widest(offsets);
    if elements == 0 { 0 } else { all.div_ceil(elements).saturating_mul(widest).saturating_mul(2) }
}

fn widest(offsets: &[i32]) -> usize {
    offsets.windows(2).map(|pair| pair[1].abs_diff(pair[0]) as usize).max().unwrap_or(0)
}

fn widest_large(offsets: &[i64]) -> usize {
    let longest = offsets.windows(2).map(|pair| pair[1].abs_diff(pair[0])).max().unwrap_or(0);
    usize::try_from(longest).unwrap_or(usize::MAX)
}

fn longest_view(views: &[u128]) -> usize {
    views.iter().map(|view| arrow::array::ByteView::from(*view).length as usize).max().unwrap_or(0)
}

/// Returns the bytes of a value alone, whatever else its buffers hold, and at least some for each of its items.
pub(crate) fn scalar_bytes(value: &ScalarValue) -> usize {
    let bytes = match value {
        ScalarValue::Utf8(Some(text)) | ScalarValue::Utf8View(Some(text)) | ScalarValue::LargeUtf8(Some(text)) => {
            text.len()
        }
        ScalarValue::List(list) => array_bytes(list.as_ref()),
        ScalarValue::LargeList(list) => array_bytes(list.as_ref()),
        ScalarValue::FixedSizeList(list) => array_bytes(list.as_ref()),
        ScalarValue::Struct(fields) => array_bytes(fields.as_ref()),
        ScalarValue::Map(entries) => array_bytes(entries.as_ref()),
        other => other.size(),
    };
    bytes.max(values_within(value).saturating_mul(LEAST_ITEM_BYTES))
}

/// Whether values of a type differ in length.
fn has_length(data_type: &DataType) -> bool {
    !(data_type.is_primitive() || matches!(data_type, DataType::Null | DataType::Boolean))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::StringArray;

    use super::*;

    #[test]
    fn a_result_is_measured_by_its_arguments() {
        let texts = ColumnarValue::Array(Arc::new(StringArray::from(vec!["a".repeat(1_000); 10])));
        let long = ColumnarValue::Scalar(ScalarValue::from("b".repeat(3_000)));
        let linear = CallGrowth::of_function("upper").most_bytes(std::slice::from_ref(&texts), 10);
        assert!((10_000..100_000).contains(&linear), "{linear}");
        let product = CallGrowth::of_function("regexp_replace").most_bytes(&[texts.clone(), long.clone()], 10);
        assert!(product >= 30_000_000, "{product}");
        let counted = CallGrowth::of_function("concat").most_bytes(&[long], 8_192);
        assert!(counted >= 8_192 * 3_000, "a literal counts once a row: {counted}");
        assert!(grows("array_to_string") && !grows("upper"));
    }

    #[test]
    fn trees_are_counted_by_their_values() {
        let text = format!("[{}]", vec!["1"; 100_000].join(","));
        let json = ColumnarValue::Scalar(ScalarValue::from(text.as_str()));
        let expected = 100_000 * TREE_VALUE_BYTES;
        assert_eq!(tree_bytes("json_extract", std::slice::from_ref(&json)), expected);
        assert_eq!(tree_bytes("kql_array_length", std::slice::from_ref(&json)), expected);
        assert_eq!(tree_bytes("upper", std::slice::from_ref(&json)), 0);
        let texts: Vec<&str> = vec![&text, "[1,1]", &text];
        let column = ColumnarValue::Array(Arc::new(StringArray::from(texts)));
        assert_eq!(tree_bytes("json_keys", std::slice::from_ref(&column)), 2 * expected);
        let string = ColumnarValue::Scalar(ScalarValue::Utf8View(Some(text)));
        assert_eq!(tree_bytes("kql_strlen", std::slice::from_ref(&string)), 0);
        let flags = ScalarValue::new_list_nullable(&vec![ScalarValue::Boolean(Some(true)); 1_000], &DataType::Boolean);
        let nested = ScalarValue::List(ScalarValue::new_list_nullable(
            &vec![ScalarValue::List(flags); 3],
            &DataType::new_list(DataType::Boolean, true),
        ));
        assert_eq!(tree_bytes("to_json", &[ColumnarValue::Scalar(nested)]), (3 + 3_000) * TREE_VALUE_BYTES);
    }

    #[test]
    fn items_that_take_no_bytes_are_counted() {
        let of = |value: ScalarValue, item: DataType| {
            ScalarValue::List(ScalarValue::new_list_nullable(&vec![value; 100_000], &item))
        };
        for list in [of(ScalarValue::Boolean(Some(true)), DataType::Boolean), of(ScalarValue::Null, DataType::Null)] {
            assert!(scalar_bytes(&list) >= 400_000, "{}", scalar_bytes(&list));
            let array = list.to_array().unwrap();
            assert!(largest_value(array.as_ref()) >= 400_000);
            assert_eq!(nested_items(&ColumnarValue::Array(array)), 100_000);
            assert_eq!(nested_items(&ColumnarValue::Scalar(list)), 100_000);
        }
    }

    #[test]
    fn rows_of_a_fixed_width_are_counted() {
        let vectors = |length| DataType::new_fixed_size_list(DataType::Float32, length, true);
        assert_eq!(row_bytes(&vectors(100_000)), 2_400_000);
        assert_eq!(row_bytes(&DataType::new_fixed_size_list(vectors(1_000), 1_000, true)), 24_000_000);
        assert_eq!(row_bytes(&DataType::Utf8), ROW_BYTES);
    }

    #[test]
    fn comparisons_are_counted() {
        let list = ScalarValue::List(ScalarValue::new_list_nullable(
            &vec![ScalarValue::Int64(Some(1)); 1_000],
            &DataType::Int64,
        ));
        let list = ColumnarValue::Scalar(list);
        let pairs = compared_pairs("array_has_all", &[list.clone(), list], 1);
        assert!(pairs >= 1_000_000, "{pairs}");
        let texts = ColumnarValue::Array(Arc::new(StringArray::from(vec!["a".repeat(1_000); 10])));
        let characters = ColumnarValue::Scalar(ScalarValue::from("b".repeat(3_000)));
        let pairs = compared_pairs("btrim", &[texts.clone(), characters.clone()], 10);
        assert!((30_000_000..31_000_000).contains(&pairs), "{pairs}");
        assert_eq!(compared_pairs("btrim", std::slice::from_ref(&texts), 10), 0);
        assert_eq!(compared_pairs("strpos", &[texts.clone(), characters], 10), 0, "a constant is found in one pass");
        assert!(compared_pairs("strpos", &[texts.clone(), texts], 10) >= 300_000);
    }
}
