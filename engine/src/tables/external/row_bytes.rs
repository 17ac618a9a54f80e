//! What rows take when nothing of them is shared any more. A message can say much with few bytes: a run of a billion
//! values, a long word in a dictionary for each of a million rows, views of one buffer, any number of nulls.
//!
//! Invariant: rows go on in batches of bounded bytes, whatever their message was.

use arrow::array::{Array, ArrayRef, AsArray, ByteView, PrimitiveArray, RecordBatch};
use arrow::datatypes::{ArrowNativeType, ArrowPrimitiveType, DataType, Int16Type, Int32Type, Int64Type};

/// The bytes of a batch, where one row alone is not larger.
const BATCH_BYTES: u64 = 8 << 20;
/// The rows of a batch.
const BATCH_ROWS: usize = 64 << 10;
/// The largest row.
const MAX_ROW_BYTES: u64 = 1 << 30;
/// The bytes of a value that is null by its type. It becomes one of another type.
const NULL_BYTES: u64 = 8;

/// Rows in batches of bounded bytes.
#[derive(Debug)]
pub struct BoundedBatches {
    batch: RecordBatch,
    columns: Vec<ColumnBytes>,
    start: usize,
    rows: usize,
}

impl BoundedBatches {
    /// Returns the rows of one batch.
    pub fn new(batch: RecordBatch) -> Self {
        let columns = batch.columns().iter().map(ColumnBytes::new).collect();
        Self { batch, columns, start: 0, rows: BATCH_ROWS }
    }

    fn bytes(&self, rows: usize) -> u64 {
        self.columns.iter().fold(0, |all, column| all.saturating_add(column.bytes(self.start, rows)))
    }
}

impl Iterator for BoundedBatches {
    /// The error says what is wrong with a row.
    type Item = Result<RecordBatch, String>;

    fn next(&mut self) -> Option<Self::Item> {
        let left = self.batch.num_rows() - self.start;
        if left == 0 {
            return None;
        }
        let mut rows = self.rows.saturating_mul(2).min(BATCH_ROWS).min(left);
        while rows > 1 && self.bytes(rows) > BATCH_BYTES {
            rows /= 2;
        }
        if rows == 1 && self.bytes(1) > MAX_ROW_BYTES {
            self.start = self.batch.num_rows();
            return Some(Err(format!("a row takes more than {} MiB", MAX_ROW_BYTES >> 20)));
        }
        let next = self.batch.slice(self.start, rows);
        self.start += rows;
        self.rows = rows;
        Some(Ok(next))
    }
}

/// Returns the bytes of all rows of a batch.
pub fn row_bytes(batch: &RecordBatch) -> u64 {
    let columns = batch.columns().iter().map(|column| ColumnBytes::new(column).bytes(0, batch.num_rows()));
    columns.fold(0, u64::saturating_add)
}

/// How many bytes the rows of a column take: at least as many as they do.
#[derive(Debug)]
enum ColumnBytes {
    /// Each as many.
    Each(u64),
    /// Text or binary: what the array says of each.
    Values(ArrayRef),
    /// Lists and maps: what their elements take.
    Lists(ArrayRef, Box<ColumnBytes>),
    /// Lists whose elements need not lie in order: a number of the largest one.
    ListViews(ArrayRef, u64),
    FixedSizeLists(usize, Box<ColumnBytes>),
    Structs(Vec<ColumnBytes>),
    /// Words: what each key's word takes. Their lengths are kept where there are no more of them than rows.
    Words(ArrayRef, Option<Vec<u64>>),
}

impl ColumnBytes {
    fn new(array: &ArrayRef) -> Self {
        use DataType as Type;
        match array.data_type() {
            Type::Null => Self::Each(NULL_BYTES),
            Type::Boolean => Self::Each(1),
            Type::Utf8 | Type::LargeUtf8 | Type::Utf8View | Type::Binary | Type::LargeBinary | Type::BinaryView => {
                Self::Values(ArrayRef::clone(array))
            }
            Type::FixedSizeBinary(width) => Self::Each(u64::try_from(*width).unwrap_or(0).max(1)),
            Type::List(_) => Self::lists(array, array.as_list::<i32>().values()),
            Type::LargeList(_) => Self::lists(array, array.as_list::<i64>().values()),
            Type::Map(_, _) => {
                let entries: ArrayRef = std::sync::Arc::new(array.as_map().entries().clone());
                Self::lists(array, &entries)
            }
            Type::ListView(_) => Self::list_views(array, array.as_list_view::<i32>().values()),
            Type::LargeListView(_) => Self::list_views(array, array.as_list_view::<i64>().values()),
            Type::FixedSizeList(_, size) => {
                let elements = Self::new(array.as_fixed_size_list().values());
                Self::FixedSizeLists(usize::try_from(*size).unwrap_or(0), Box::new(elements))
            }
            Type::Struct(_) => Self::Structs(array.as_struct().columns().iter().map(Self::new).collect()),
            Type::Union(fields, _) => {
                let union = array.as_union();
                let largest = fields.iter().map(|(id, _)| Self::largest(union.child(id)));
                Self::Each(largest.max().unwrap_or(1))
            }
            Type::Dictionary(_, word) => match word.as_ref() {
                Type::Utf8 | Type::LargeUtf8 | Type::Utf8View | Type::Binary | Type::LargeBinary | Type::BinaryView => {
                    let words = array.as_any_dictionary().values();
                    let is_small = words.len() <= array.len();
                    let lengths =
                        is_small.then(|| (0..words.len()).map(|word| value_bytes(words.as_ref(), word, 1)).collect());
                    Self::Words(ArrayRef::clone(array), lengths)
                }
                _ => Self::Each(Self::largest(array.as_any_dictionary().values())),
            },
            Type::RunEndEncoded(_, _) => Self::Each(run_values(array).map_or(1, Self::largest)),
            other => Self::Each(other.primitive_width().unwrap_or(1) as u64),
        }
    }

    fn lists(array: &ArrayRef, elements: &ArrayRef) -> Self {
        Self::Lists(ArrayRef::clone(array), Box::new(Self::new(elements)))
    }

    fn list_views(array: &ArrayRef, elements: &ArrayRef) -> Self {
        Self::ListViews(ArrayRef::clone(array), Self::largest(elements))
    }

    /// Returns the bytes of the largest row; at least one.
    fn largest(array: &ArrayRef) -> u64 {
        match Self::new(array) {
            Self::Each(bytes) => bytes.max(1),
            column => (0..array.len()).map(|row| column.bytes(row, 1)).max().unwrap_or(1).max(1),
        }
    }

    /// Returns the bytes of `rows` rows from `start`.
    fn bytes(&self, start: usize, rows: usize) -> u64 {
        let count = rows as u64;
        match self {
            Self::Each(bytes) => count.saturating_mul(*bytes),
            Self::Values(array) => value_bytes(array.as_ref(), start, rows).saturating_add(count.saturating_mul(4)),
            Self::Lists(array, elements) => {
                let (from, to) = match array.data_type() {
                    DataType::LargeList(_) => {
                        let offsets = array.as_list::<i64>().value_offsets();
                        (offsets[start], offsets[start + rows])
                    }
                    DataType::Map(_, _) => range(array.as_map().value_offsets(), start, rows),
                    _ => range(array.as_list::<i32>().value_offsets(), start, rows),
                };
                let (from, to) = (usize::try_from(from).unwrap_or(0), usize::try_from(to).unwrap_or(0));
                elements.bytes(from, to.saturating_sub(from)).saturating_add(count.saturating_mul(4))
            }
            Self::ListViews(array, largest) => {
                let sum = |sizes: &mut dyn Iterator<Item = i64>| {
                    sizes.fold(0_u64, |all, size| all.saturating_add(u64::try_from(size).unwrap_or(0)))
                };
                let elements = match array.data_type() {
                    DataType::LargeListView(_) => {
                        sum(&mut array.as_list_view::<i64>().value_sizes()[start..start + rows].iter().copied())
                    }
                    _ => {
                        let sizes = array.as_list_view::<i32>().value_sizes();
                        sum(&mut sizes[start..start + rows].iter().map(|size| i64::from(*size)))
                    }
                };
                elements.saturating_mul(*largest).saturating_add(count.saturating_mul(4))
            }
            Self::FixedSizeLists(size, elements) => {
                elements.bytes(start.saturating_mul(*size), rows.saturating_mul(*size)).saturating_add(count)
            }
            Self::Structs(columns) => {
                columns.iter().fold(count, |all, column| all.saturating_add(column.bytes(start, rows)))
            }
            Self::Words(array, lengths) => {
                let column = array.as_any_dictionary();
                let (keys, words) = (column.keys(), column.values());
                let length = |key: usize| match lengths {
                    Some(lengths) => lengths.get(key).copied().unwrap_or(0),
                    None if key < words.len() => value_bytes(words.as_ref(), key, 1),
                    None => 0,
                };
                sum_over_keys(keys, start, rows, length).saturating_add(count.saturating_mul(4))
            }
        }
    }
}

/// Returns the bytes of values of text or binary.
fn value_bytes(array: &dyn Array, start: usize, rows: usize) -> u64 {
    let between = |from: i64, to: i64| u64::try_from(to.saturating_sub(from)).unwrap_or(0);
    match array.data_type() {
        DataType::Utf8 => {
            let (from, to) = range(array.as_string::<i32>().value_offsets(), start, rows);
            between(from, to)
        }
        DataType::Binary => {
            let (from, to) = range(array.as_binary::<i32>().value_offsets(), start, rows);
            between(from, to)
        }
        DataType::LargeUtf8 => {
            let offsets = array.as_string::<i64>().value_offsets();
            between(offsets[start], offsets[start + rows])
        }
        DataType::LargeBinary => {
            let offsets = array.as_binary::<i64>().value_offsets();
            between(offsets[start], offsets[start + rows])
        }
        DataType::Utf8View => view_bytes(&array.as_string_view().views()[start..start + rows]),
        DataType::BinaryView => view_bytes(&array.as_binary_view().views()[start..start + rows]),
        _ => 0,
    }
}

fn view_bytes(views: &[u128]) -> u64 {
    views.iter().map(|view| u64::from(ByteView::from(*view).length)).sum()
}

fn range(offsets: &[i32], start: usize, rows: usize) -> (i64, i64) {
    (i64::from(offsets[start]), i64::from(offsets[start + rows]))
}

/// Returns the sum of what the words of rows take, by their keys.
fn sum_over_keys(keys: &dyn Array, start: usize, rows: usize, length: impl Fn(usize) -> u64) -> u64 {
    use arrow::datatypes::{Int8Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type};
    match keys.data_type() {
        DataType::Int8 => sum_over(keys.as_primitive::<Int8Type>(), start, rows, length),
        DataType::Int16 => sum_over(keys.as_primitive::<Int16Type>(), start, rows, length),
        DataType::Int32 => sum_over(keys.as_primitive::<Int32Type>(), start, rows, length),
        DataType::Int64 => sum_over(keys.as_primitive::<Int64Type>(), start, rows, length),
        DataType::UInt8 => sum_over(keys.as_primitive::<UInt8Type>(), start, rows, length),
        DataType::UInt16 => sum_over(keys.as_primitive::<UInt16Type>(), start, rows, length),
        DataType::UInt32 => sum_over(keys.as_primitive::<UInt32Type>(), start, rows, length),
        DataType::UInt64 => sum_over(keys.as_primitive::<UInt64Type>(), start, rows, length),
        _ => 0,
    }
}

fn sum_over<K: ArrowPrimitiveType>(
    keys: &PrimitiveArray<K>,
    start: usize,
    rows: usize,
    length: impl Fn(usize) -> u64,
) -> u64 {
    let values = keys.values()[start..start + rows].iter();
    let add = |all: u64, key: &K::Native| all.saturating_add(key.to_usize().map_or(0, &length));
    match keys.nulls() {
        None => values.fold(0, add),
        Some(nulls) => values.enumerate().fold(0, |all, (row, key)| match nulls.is_valid(start + row) {
            true => add(all, key),
            false => all,
        }),
    }
}

/// Returns the values of a run-end encoded column.
fn run_values(array: &ArrayRef) -> Option<&ArrayRef> {
    let small = array.as_run_opt::<Int16Type>().map(|runs| runs.values());
    let middle = || array.as_run_opt::<Int32Type>().map(|runs| runs.values());
    small.or_else(middle).or_else(|| array.as_run_opt::<Int64Type>().map(|runs| runs.values()))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{
        DictionaryArray, Int32Array, Int64Array, ListArray, ListViewArray, NullArray, RunArray, StringArray,
        StringViewArray,
    };
    use arrow::datatypes::Field;

    use super::*;

    const LONG: usize = 1 << 20;

    fn batches(column: ArrayRef) -> Vec<usize> {
        let batch = RecordBatch::try_from_iter([("a", column)]).unwrap();
        BoundedBatches::new(batch).map(|batch| batch.unwrap().num_rows()).collect()
    }

    #[test]
    fn rows_that_are_small_go_on_together() {
        assert_eq!(batches(Arc::new(Int64Array::from(vec![1; 10_000]))), [10_000]);
        assert_eq!(batches(Arc::new(Int64Array::from(vec![1; 100_000]))), [BATCH_ROWS, 100_000 - BATCH_ROWS]);
        assert!(batches(Arc::new(Int64Array::from(Vec::<i64>::new()))).is_empty());
        let texts = StringArray::from_iter_values((0..1_000).map(|row| "x".repeat(row)));
        assert_eq!(batches(Arc::new(texts)), [1_000]);
    }

    #[test]
    fn what_is_said_with_few_bytes_is_cut() {
        let long = StringArray::from(vec!["x".repeat(LONG)]);
        let many = 1_000;
        let words: ArrayRef = Arc::new(DictionaryArray::new(Int32Array::from(vec![0; many]), Arc::new(long.clone())));
        let runs: ArrayRef = Arc::new(RunArray::try_new(&Int32Array::from(vec![1_000]), &long).unwrap());
        let block = StringViewArray::from_iter_values([long.value(0)]);
        let views = vec![block.views()[0]; many];
        let views: ArrayRef =
            Arc::new(StringViewArray::try_new(views.into(), block.data_buffers().to_vec(), None).unwrap());
        for column in [words, runs, views] {
            let cut = batches(Arc::clone(&column));
            assert_eq!(cut.iter().sum::<usize>(), many, "{}", column.data_type());
            assert!(cut.iter().all(|rows| *rows <= 8), "{}: {cut:?}", column.data_type());
        }
        let nulls = batches(Arc::new(NullArray::new(1_000_000)));
        assert!(nulls.len() >= 15 && nulls.iter().sum::<usize>() == 1_000_000);
        let field = Arc::new(Field::new("item", DataType::Int64, true));
        let elements = Arc::new(Int64Array::from(vec![7; 100_000]));
        let (offsets, sizes) = (vec![0; 1_000], vec![100_000; 1_000]);
        let lists = ListViewArray::new(field, offsets.into(), sizes.into(), elements, None);
        assert!(batches(Arc::new(lists)).len() > 50);
    }

    #[test]
    fn a_row_that_nobody_could_hold_is_refused() {
        let nulls = NullArray::new(1 << 30);
        let field = Arc::new(Field::new("item", DataType::Null, true));
        let list: ArrayRef = Arc::new(ListArray::new(
            field,
            arrow::buffer::OffsetBuffer::from_lengths([1 << 30]),
            Arc::new(nulls),
            None,
        ));
        let batch = RecordBatch::try_from_iter([("a", list)]).unwrap();
        let all: Vec<_> = BoundedBatches::new(batch).collect();
        assert!(matches!(all.as_slice(), [Err(error)] if error.contains("more than 1024 MiB")), "{all:?}");
    }

    #[test]
    fn bytes_are_those_of_the_values() {
        let texts: ArrayRef = Arc::new(StringArray::from(vec!["ab", "", "cdef"]));
        let lists = ListArray::from_iter_primitive::<Int32Type, _, _>((0..10).map(|_| Some(vec![Some(1); 100])));
        let batch = RecordBatch::try_from_iter([("a", texts)]).unwrap();
        assert_eq!(row_bytes(&batch), 6 + 3 * 4);
        let batch = RecordBatch::try_from_iter([("a", Arc::new(lists) as ArrayRef)]).unwrap();
        assert_eq!(row_bytes(&batch), 10 * (4 + 400));
    }
}
