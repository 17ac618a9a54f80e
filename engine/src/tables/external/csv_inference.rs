//! Infers the types of CSV columns from their values: the narrowest that hold them all.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::{AsArray, RecordBatch};
use arrow::compute::kernels::cast_utils::string_to_datetime;
use arrow::datatypes::{DataType, Field, Schema, TimeUnit};
use chrono::{NaiveDate, Utc};

/// Kinds of values, one bit each.
mod kind {
    pub(super) const BOOLEAN: u8 = 1;
    pub(super) const INTEGER: u8 = 1 << 1;
    pub(super) const FLOAT: u8 = 1 << 2;
    pub(super) const DATE: u8 = 1 << 3;
    pub(super) const TIMESTAMP: u8 = 1 << 4;
    pub(super) const ZONED: u8 = 1 << 5;
    /// Digits after the microseconds.
    pub(super) const NANOSECONDS: u8 = 1 << 6;
    pub(super) const TEXT: u8 = 1 << 7;
}

/// What is known of the columns of a CSV file after some of its rows.
#[derive(Debug)]
pub(crate) struct CsvInference {
    markers: Vec<String>,
    columns: Vec<ColumnInference>,
}

#[derive(Debug)]
struct ColumnInference {
    name: String,
    kinds: u8,
    /// The positions of the null markers that the column holds.
    markers: BTreeSet<usize>,
}

impl CsvInference {
    /// Starts without values for columns of these names; `markers` may mean null.
    pub(crate) fn new(names: &[String], markers: &[&str]) -> Self {
        let columns = names
            .iter()
            .map(|name| ColumnInference { name: name.clone(), kinds: 0, markers: BTreeSet::new() })
            .collect();
        Self { markers: markers.iter().map(ToString::to_string).collect(), columns }
    }

    /// Adds the values of a batch of string columns.
    pub(crate) fn update(&mut self, batch: &RecordBatch) {
        for (column, array) in self.columns.iter_mut().zip(batch.columns()) {
            // A column of strings stays one; its markers matter only once another column confirms them.
            if column.kinds & kind::TEXT != 0 {
                continue;
            }
            for value in array.as_string::<i32>().iter().flatten() {
                match self.markers.iter().position(|marker| marker == value) {
                    Some(marker) => {
                        column.markers.insert(marker);
                    }
                    None => column.kinds |= classify(value),
                }
            }
        }
    }

    /// Returns the markers that mean null in this file: given ones always, the usual ones where a column of another type
    /// than string holds them. A country code `NA` in a file of only strings stays what it is.
    pub(crate) fn null_markers(&self, given: bool) -> Vec<String> {
        let typed = self.columns.iter().filter(|column| !matches!(column.data_type(), DataType::Utf8));
        let confirmed: BTreeSet<usize> = typed.flat_map(|column| column.markers.iter().copied()).collect();
        self.markers
            .iter()
            .enumerate()
            .filter(|(index, _)| given || confirmed.contains(index))
            .map(|(_, marker)| marker.clone())
            .collect()
    }

    /// Returns the markers that any column holds.
    pub(crate) fn seen_markers(&self) -> Vec<String> {
        let seen: BTreeSet<usize> = self.columns.iter().flat_map(|column| column.markers.iter().copied()).collect();
        seen.into_iter().filter_map(|index| self.markers.get(index).cloned()).collect()
    }

    /// The columns' types so far; a column without a value is text.
    pub(crate) fn schema(&self) -> Schema {
        let fields: Vec<Arc<Field>> =
            self.columns.iter().map(|column| Arc::new(Field::new(&column.name, column.data_type(), true))).collect();
        Schema::new(fields)
    }
}

impl ColumnInference {
    fn data_type(&self) -> DataType {
        let only = |allowed: u8| self.kinds != 0 && self.kinds & !allowed == 0;
        let unit = if self.kinds & kind::NANOSECONDS != 0 { TimeUnit::Nanosecond } else { TimeUnit::Microsecond };
        if only(kind::BOOLEAN) {
            DataType::Boolean
        } else if only(kind::INTEGER) {
            DataType::Int64
        } else if only(kind::INTEGER | kind::FLOAT) {
            DataType::Float64
        } else if only(kind::DATE) {
            DataType::Date32
        } else if only(kind::DATE | kind::TIMESTAMP | kind::NANOSECONDS) {
            DataType::Timestamp(unit, None)
        } else if only(kind::ZONED | kind::NANOSECONDS) {
            DataType::Timestamp(unit, Some("UTC".into()))
        } else {
            DataType::Utf8
        }
    }
}

fn classify(value: &str) -> u8 {
    let Some(first) = value.as_bytes().first() else { return 0 };
    match first {
        b'0'..=b'9' => number(value).or_else(|| instant(value)).unwrap_or(kind::TEXT),
        b'-' | b'+' | b'.' => number(value).or_else(|| float_word(value)).unwrap_or(kind::TEXT),
        b't' | b'T' | b'f' | b'F' if value.eq_ignore_ascii_case("true") || value.eq_ignore_ascii_case("false") => {
            kind::BOOLEAN
        }
        b'n' | b'N' | b'i' | b'I' => float_word(value).unwrap_or(kind::TEXT),
        _ => kind::TEXT,
    }
}

fn number(value: &str) -> Option<u8> {
    let digits = value.strip_prefix(['-', '+']).unwrap_or(value);
    if digits.bytes().all(|byte| byte.is_ascii_digit()) {
        // More digits than a bigint has are a name for something, which a float would change.
        return Some(if value.parse::<i64>().is_ok() { kind::INTEGER } else { kind::TEXT });
    }
    let plain = digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'-' | b'+'));
    (plain && value.parse::<f64>().is_ok()).then_some(kind::FLOAT)
}

fn float_word(value: &str) -> Option<u8> {
    let word = value.strip_prefix('-').unwrap_or(value);
    matches!(word, "NaN" | "nan" | "inf" | "Inf" | "infinity" | "Infinity").then_some(kind::FLOAT)
}

/// `2013-01-01`, or with a time of day, or with that and a zone.
fn instant(value: &str) -> Option<u8> {
    let bytes = value.as_bytes();
    let day = value.get(..10)?;
    if bytes.get(4) != Some(&b'-') || bytes.get(7) != Some(&b'-') {
        return None;
    }
    let Some(time) = value.get(10..).filter(|rest| !rest.is_empty()) else {
        return NaiveDate::parse_from_str(day, "%Y-%m-%d").is_ok().then_some(kind::DATE);
    };
    if !time.starts_with(['T', ' ', 't']) || string_to_datetime(&Utc, value).is_err() {
        return None;
    }
    let clock = time.get(1..)?;
    let zone_at = clock.find(|letter: char| !letter.is_ascii_digit() && letter != ':' && letter != '.');
    let fraction = clock.get(..zone_at.unwrap_or(clock.len()))?.split_once('.').map_or(0, |(_, digits)| digits.len());
    let precision = if fraction > 6 { kind::NANOSECONDS } else { 0 };
    Some(precision | if zone_at.is_some() { kind::ZONED } else { kind::TIMESTAMP })
}

#[cfg(test)]
mod tests {
    use arrow::array::{ArrayRef, StringArray};

    use super::*;

    fn inferred(values: &[&str]) -> DataType {
        let array: ArrayRef = Arc::new(StringArray::from(
            values.iter().map(|value| (!value.is_empty()).then_some(*value)).collect::<Vec<_>>(),
        ));
        let batch = RecordBatch::try_from_iter_with_nullable([("c", array, true)]).unwrap();
        let mut inference = CsvInference::new(&["c".to_string()], &["NA"]);
        inference.update(&batch);
        inference.schema().field(0).data_type().clone()
    }

    #[test]
    fn the_narrowest_type_that_holds_every_value() {
        let utc = Some("UTC".into());
        let cases: [(&[&str], DataType); 14] = [
            (&["1", "-2", "", "NA"], DataType::Int64),
            (&["1", "2.5"], DataType::Float64),
            (&["1e3", "NaN"], DataType::Float64),
            (&["99999999999999999999"], DataType::Utf8),
            (&["true", "False"], DataType::Boolean),
            (&["true", "1"], DataType::Utf8),
            (&["2013-01-01"], DataType::Date32),
            (&["2013-02-30"], DataType::Utf8),
            (&["2013-01-01", "2013-01-01 10:00:00"], DataType::Timestamp(TimeUnit::Microsecond, None)),
            (&["2013-01-01T10:00:00Z"], DataType::Timestamp(TimeUnit::Microsecond, utc.clone())),
            (&["2013-01-01T10:00:00.123456789+02:00"], DataType::Timestamp(TimeUnit::Nanosecond, utc)),
            (&["2013-01-01T10:00:00Z", "2013-01-01T10:00:00"], DataType::Utf8),
            (&["N14228", "1"], DataType::Utf8),
            (&["", "NA"], DataType::Utf8),
        ];
        for (values, expected) in cases {
            assert_eq!(inferred(values), expected, "{values:?}");
        }
    }

    #[test]
    fn a_marker_means_null_once_a_typed_column_holds_it() {
        let names = ["code".to_string(), "people".to_string()];
        let column = |values: [&str; 2]| -> ArrayRef { Arc::new(StringArray::from(values.to_vec())) };
        let batch =
            |people| RecordBatch::try_from_iter([("code", column(["NA", "DE"])), ("people", column(people))]).unwrap();
        let mut complete = CsvInference::new(&names, &["NA"]);
        complete.update(&batch(["1", "2"]));
        assert!(complete.null_markers(false).is_empty());
        let mut holed = CsvInference::new(&names, &["NA"]);
        holed.update(&batch(["NA", "2"]));
        assert_eq!(holed.null_markers(false), ["NA"]);
    }
}
