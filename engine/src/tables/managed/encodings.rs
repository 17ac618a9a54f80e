//! How the columns of a Parquet file are written, by a look at the first rows.
//!
//! The writer gives a dictionary up once its page is full, and a row group of numbers that all differ does not fill one:
//! it would hash every value, and write each of them beside an index. Integers that lie near their neighbours, as keys and
//! times do, are written as the steps between them, a few bits each: that takes half the time of compressing them and is read
//! several times as fast.
//!
//! What nearly always differs and is in no order, as identifiers are, gets a Bloom filter for each row group: the least and the
//! greatest value of a group say nothing there, and a search for one value would read them all.

use std::collections::HashSet;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Decimal128Type, Int64Type};
use datafusion::common::hash_utils::{RandomState, create_hashes};

/// Rows that are looked at, and the fewest that say anything.
pub(super) const SAMPLED_ROWS: usize = 8_192;
const LEAST_ROWS: usize = 1_024;
/// A dictionary is left out where more than nine tenths of the values differ.
const DISTINCT_TENTHS: usize = 9;
/// So many steps have a width of their own.
const STEPS_IN_BLOCK: usize = 32;
/// Steps are worth their time up to this part of the width of a value.
const MOST_STEP_SHARE: f64 = 0.65;
/// So many bits less than by a dictionary are worth leaving it.
const LEAST_SAVED_BITS: f64 = 2.0;
/// The most digits of a decimal that Parquet keeps as an integer of 32 and of 64 bits.
const DIGITS_OF_INT32: u8 = 9;
const DIGITS_OF_INT64: u8 = 18;
/// The most bytes of a text, on average, for which a Bloom filter is made: longer ones are read, not looked up.
const MOST_TEXT_BYTES: usize = 64;
/// The bytes of a UUID.
const UUID_BYTES: i32 = 16;

/// How a column is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ColumnEncoding {
    /// With a dictionary, while it pays.
    Dictionary,
    /// Each value as it is.
    Plain,
    /// Integers as the steps between them.
    Steps,
}

impl ColumnEncoding {
    /// Returns how a column is written whose first values these are.
    pub(super) fn for_column(column: &ArrayRef) -> Self {
        let sampled = column.slice(0, column.len().min(SAMPLED_ROWS));
        let values = sampled.len() - sampled.null_count();
        if values < LEAST_ROWS || *column.data_type() == DataType::Boolean {
            return Self::Dictionary;
        }
        let Some(distinct) = distinct(&sampled) else { return Self::Dictionary };
        let is_futile = distinct * 10 > values * DISTINCT_TENTHS;
        if let Some((numbers, width)) = integers(&sampled) {
            let bits = step_bits(&numbers);
            // What it is in a dictionary: an index, and its part of the value itself.
            let in_dictionary = (distinct as f64).log2() + width * distinct as f64 / values as f64;
            if bits <= width * MOST_STEP_SHARE && (is_futile || bits + LEAST_SAVED_BITS < in_dictionary) {
                return Self::Steps;
            }
        }
        if is_futile { Self::Plain } else { Self::Dictionary }
    }
}

/// Returns whether a column whose first values these are gets a Bloom filter: integers, short texts and UUIDs that nearly all differ
/// and are in no order.
pub(super) fn has_bloom_filter(column: &ArrayRef) -> bool {
    let sampled = column.slice(0, column.len().min(SAMPLED_ROWS));
    let values = sampled.len() - sampled.null_count();
    if values < LEAST_ROWS {
        return false;
    }
    let is_looked_up = match sampled.data_type() {
        DataType::Int32 | DataType::Int64 | DataType::UInt32 | DataType::UInt64 => {
            integers(&sampled).is_some_and(|(numbers, _)| step_bits(&numbers) + 1.0 >= range_bits(&numbers))
        }
        DataType::FixedSizeBinary(UUID_BYTES) => is_unordered(sampled.as_fixed_size_binary().iter().flatten()),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
            let Ok(views) = cast(&sampled, &DataType::Utf8View) else { return false };
            let texts = || views.as_string_view().iter().flatten().map(str::as_bytes);
            texts().map(<[u8]>::len).sum::<usize>() <= values * MOST_TEXT_BYTES && is_unordered(texts())
        }
        _ => false,
    };
    is_looked_up && distinct(&sampled).is_some_and(|distinct| distinct * 10 > values * DISTINCT_TENTHS)
}

/// Returns whether values go up and down: of those in order a row group has a range of its own.
fn is_unordered<'a>(values: impl Iterator<Item = &'a [u8]> + Clone) -> bool {
    let pairs = values.clone().zip(values.skip(1));
    let (mut up, mut all) = (0, 0);
    for (value, next) in pairs {
        all += 1;
        up += usize::from(value <= next);
    }
    (all / 10..=all - all / 10).contains(&up)
}

/// Returns how many bits tell a value from the others.
fn range_bits(numbers: &[i64]) -> f64 {
    let least = numbers.iter().min().copied().unwrap_or_default();
    let most = numbers.iter().max().copied().unwrap_or_default();
    (most.wrapping_sub(least) as u64 as f64).max(1.0).log2()
}

fn distinct(sampled: &ArrayRef) -> Option<usize> {
    let mut hashes = vec![0; sampled.len()];
    create_hashes([sampled], &RandomState::default(), &mut hashes).ok()?;
    let distinct: HashSet<u64> =
        (0..sampled.len()).filter(|row| sampled.is_valid(*row)).map(|row| hashes[row]).collect();
    Some(distinct.len())
}

/// Returns the values that are there as integers, and how many bits Parquet gives each; `None` for what it keeps otherwise.
fn integers(sampled: &ArrayRef) -> Option<(Vec<i64>, f64)> {
    let width = match sampled.data_type() {
        DataType::Int8
        | DataType::Int16
        | DataType::Int32
        | DataType::UInt8
        | DataType::UInt16
        | DataType::UInt32
        | DataType::Date32
        | DataType::Time32(_) => 32.0,
        DataType::Int64 | DataType::UInt64 | DataType::Time64(_) | DataType::Timestamp(..) => 64.0,
        DataType::Decimal128(digits, _) if *digits <= DIGITS_OF_INT64 => {
            let numbers =
                sampled.as_primitive::<Decimal128Type>().iter().flatten().map(|number| number as i64).collect();
            return Some((numbers, if *digits <= DIGITS_OF_INT32 { 32.0 } else { 64.0 }));
        }
        _ => return None,
    };
    let numbers = cast(sampled, &DataType::Int64).ok()?;
    Some((numbers.as_primitive::<Int64Type>().iter().flatten().collect(), width))
}

/// Returns how many bits a step takes on average.
fn step_bits(numbers: &[i64]) -> f64 {
    let steps: Vec<i64> = numbers.windows(2).map(|pair| pair[1].wrapping_sub(pair[0])).collect();
    let mut bits = 0;
    for block in steps.chunks(STEPS_IN_BLOCK) {
        let (least, most) =
            block.iter().fold((i64::MAX, i64::MIN), |(least, most), step| (least.min(*step), most.max(*step)));
        bits += block.len() * (u64::BITS - (most.wrapping_sub(least) as u64).leading_zeros()) as usize;
    }
    bits as f64 / steps.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{
        Decimal128Array, FixedSizeBinaryArray, Float64Array, Int32Array, Int64Array, StringArray,
        TimestampMicrosecondArray,
    };

    use super::*;

    fn chosen(array: impl Array + 'static) -> ColumnEncoding {
        ColumnEncoding::for_column(&(Arc::new(array) as ArrayRef))
    }

    /// Numbers that are spread over all integers.
    fn spread(n: i64) -> i64 {
        let mixed = n.wrapping_mul(-7_046_029_254_386_353_131);
        (mixed ^ (mixed >> 29)).wrapping_mul(-4_658_895_280_553_007_687)
    }

    #[test]
    fn only_values_that_repeat_get_a_dictionary() {
        let texts =
            |distinct: usize| StringArray::from_iter_values((0..8_000).map(|n| format!("text {}", n % distinct)));
        assert_eq!(chosen(texts(8_000)), ColumnEncoding::Plain);
        assert_eq!(chosen(texts(4_000)), ColumnEncoding::Dictionary);
        let numbers = |distinct: i64| Int64Array::from_iter_values((0..8_000).map(|n| spread(n % distinct)));
        assert_eq!(chosen(numbers(8_000)), ColumnEncoding::Plain);
        assert_eq!(chosen(numbers(4_000)), ColumnEncoding::Dictionary);
        // Nulls are no values, and few values say nothing.
        let sparse = Int64Array::from_iter((0..8_000).map(|n| (n % 4 == 0).then_some(spread(n))));
        assert_eq!(chosen(sparse), ColumnEncoding::Plain);
        assert_eq!(chosen(numbers(8_000).slice(0, 1_000)), ColumnEncoding::Dictionary);
    }

    #[test]
    fn what_is_looked_up_by_its_value_gets_a_bloom_filter() {
        let filtered = |array: ArrayRef| has_bloom_filter(&array);
        let texts =
            |text: fn(i64) -> String| -> ArrayRef { Arc::new(StringArray::from_iter_values((0..8_000).map(text))) };
        assert!(filtered(texts(|n| format!("id {:x}", spread(n)))));
        assert!(!filtered(texts(|n| format!("id {}", n % 100))), "few values");
        assert!(!filtered(texts(|n| format!("{n} {}", "x".repeat(100)))), "long texts");
        let numbers =
            |number: fn(i64) -> i64| -> ArrayRef { Arc::new(Int64Array::from_iter_values((0..8_000).map(number))) };
        assert!(filtered(numbers(spread)));
        assert!(filtered(numbers(|n| spread(n).rem_euclid(1 << 30))), "also where they are written as steps");
        assert!(
            !filtered(numbers(|n| n * 1_000 + spread(n).rem_euclid(1 << 12))),
            "in order: the range of a group says more"
        );
        assert!(!filtered(texts(|n| format!("id {n:06}"))), "in order");
        let few: ArrayRef = numbers(spread).slice(0, 1_000);
        assert!(!filtered(few));
        let uuids = (0..8_000_i64).map(|n| [spread(n).to_le_bytes(), spread(n + 1).to_le_bytes()].concat());
        assert!(filtered(Arc::new(FixedSizeBinaryArray::try_from_iter(uuids).unwrap())));
        let doubles: ArrayRef = Arc::new(Float64Array::from_iter_values((0..8_000).map(|n| spread(n) as f64)));
        assert!(!filtered(doubles));
    }

    #[test]
    fn integers_near_their_neighbours_are_written_as_steps() {
        assert_eq!(chosen(Int64Array::from_iter_values((0..8_000).map(|n| n * 7_919))), ColumnEncoding::Steps);
        // A key that comes several times in a row.
        assert_eq!(chosen(Int32Array::from_iter_values((0..8_000).map(|n| n / 4))), ColumnEncoding::Steps);
        let times = (0..8_000).map(|n| 1_700_000_000_000_000 + n * 1_000_000 + (spread(n) & 0xffff));
        assert_eq!(chosen(TimestampMicrosecondArray::from_iter_values(times)), ColumnEncoding::Steps);
        let prices = Decimal128Array::from_iter_values((0..8_000).map(|n| i128::from(spread(n) & 0xff_ffff)));
        assert_eq!(chosen(prices.with_precision_and_scale(15, 2).unwrap()), ColumnEncoding::Steps);
        // A few values in any order.
        let few = Int64Array::from_iter_values((0..8_000).map(|n| spread(n).rem_euclid(50)));
        assert_eq!(chosen(few), ColumnEncoding::Dictionary);
        // Steps may go beyond the largest integer, and come back as they went.
        let ends =
            Int64Array::from_iter_values((0..8_000).map(|n| if n % 2 == 0 { i64::MIN + n } else { i64::MAX - n }));
        assert_eq!(chosen(ends), ColumnEncoding::Steps);
    }
}
