//! Infers the types of CSV columns from their values: of every value, by the rules of DuckDB's sniffer.
//!
//! BOOLEAN, TIME, DATE, TIMESTAMP, TIMESTAMP WITH TIME ZONE, BIGINT, DOUBLE, VARCHAR: the first that gives every value of
//! the column back. Where DuckDB's types would change a value (digits beyond a double, a day that might be a month), the
//! column is text.

use std::collections::BTreeSet;

use arrow::datatypes::{DataType, TimeUnit};

use super::comma_numbers::CommaNumbers;
use super::dates::{TemporalFormat, format_of_order, orders};
use super::kinds::{ValueKinds, kind, kinds_of};
use super::number_form::NumberForm;

/// The formats of dates, timestamps and numbers that somebody gave for all columns.
#[derive(Debug, Clone, Default)]
pub(super) struct GivenFormats {
    pub date: Option<TemporalFormat>,
    pub timestamp: Option<TemporalFormat>,
    pub numbers: NumberForm,
}

/// What is known of a column after some of its values.
#[derive(Debug, Clone)]
pub(super) struct ColumnInference {
    given: GivenFormats,
    kinds: u16,
    values: u64,
    /// Whether a number was seen that is not `NaN` or infinity.
    number: bool,
    /// Whether the affirmative and the negative of a pair of words were seen.
    words: (bool, bool),
    dates: DateInference,
    /// The positions of the null markers that the column holds.
    markers: BTreeSet<usize>,
    /// The length of the values, while all have the same and are capital letters: codes.
    code_length: Option<usize>,
    commas: CommaNumbers,
}

/// The orders that the same numbers can have.
const PAIRS: [u8; 4] = [
    orders::DMY | orders::MDY,
    orders::SHORT_DMY | orders::SHORT_MDY,
    orders::SHORT_YMD | orders::SHORT_DMY,
    orders::SHORT_YMD | orders::SHORT_MDY,
];

#[derive(Debug, Clone, Copy)]
struct DateInference {
    orders: u8,
    separator: Option<u8>,
    /// For each of [`PAIRS`], whether a value is one day in the one order and another in the other.
    differing: [bool; PAIRS.len()],
    twelve_hours: Option<bool>,
    seconds: bool,
    fraction: u8,
    /// Whether a day was seen whose nanoseconds no timestamp counts.
    is_beyond_nanoseconds: bool,
}

/// The type of a column, and what else has to be known to read it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct InferredType {
    pub data_type: DataType,
    pub format: Option<TemporalFormat>,
    /// Why the column is text, where one might expect another type.
    pub note: Option<String>,
}

impl InferredType {
    fn plain(data_type: DataType) -> Self {
        Self { data_type, format: None, note: None }
    }
}

impl ColumnInference {
    /// Starts without values. `given` formats are left as long as every value is of them.
    pub(super) fn new(given: GivenFormats) -> Self {
        Self {
            given,
            kinds: kind::ALL,
            values: 0,
            number: false,
            words: (false, false),
            dates: DateInference::new(),
            markers: BTreeSet::new(),
            code_length: None,
            commas: CommaNumbers::default(),
        }
    }

    /// Adds a value; an empty one is null.
    pub(super) fn update(&mut self, value: &str, markers: &[String]) {
        if value.is_empty() {
            return;
        }
        if let Some(marker) = markers.iter().position(|marker| marker == value) {
            self.markers.insert(marker);
            return;
        }
        self.values += 1;
        self.update_code_length(value);
        let trimmed = value.trim_matches(' ');
        self.given.date = self.given.date.take().filter(|format| format.date(trimmed).is_some());
        self.given.timestamp = self.given.timestamp.take().filter(|format| format.is_timestamp(trimmed));
        // A column of text stays one.
        if self.kinds == 0 {
            self.commas.update(value);
            return;
        }
        let found = kinds_of(value, self.given.numbers);
        let were_numbers = self.kinds & (kind::INTEGER | kind::FLOAT) != 0;
        self.kinds &= found.kinds;
        if self.kinds == 0 && were_numbers {
            self.commas = CommaNumbers::beginning_with(value);
        }
        if self.kinds & (kind::INTEGER | kind::FLOAT) != 0 {
            self.number |= !found.float_word;
        } else if self.kinds & (kind::BOOLEAN | kind::LETTER | kind::YES_NO) != 0 {
            self.words.0 |= found.affirmative;
            self.words.1 |= !found.affirmative;
        } else if self.kinds != 0 && !self.dates.update(&found) {
            self.kinds = 0;
        }
    }

    fn update_code_length(&mut self, value: &str) {
        if self.code_length == Some(0) {
            return;
        }
        let is_code = value.bytes().all(|byte| byte.is_ascii_uppercase());
        self.code_length = match self.code_length {
            _ if !is_code => Some(0),
            None => Some(value.len()),
            Some(length) if length == value.len() => Some(length),
            Some(_) => Some(0),
        };
    }

    /// Returns whether a column of text has this marker among codes of its kind, such as `NA` among those of countries.
    pub(super) fn keeps(&self, marker: &str) -> bool {
        self.code_length == Some(marker.len()) && marker.bytes().all(|byte| byte.is_ascii_uppercase())
    }

    /// Returns the positions of the null markers that the column holds.
    pub(super) fn markers(&self) -> &BTreeSet<usize> {
        &self.markers
    }

    /// Returns whether any value was seen.
    pub(super) fn has_values(&self) -> bool {
        self.values > 0
    }

    /// Returns whether every value is a date with or without a clock, in whichever order.
    pub(super) fn is_temporal(&self) -> bool {
        self.values > 0 && self.kinds & (kind::DATE | kind::TIMESTAMP | kind::ZONED) != 0
    }

    /// Returns the column's type so far; a column without a value is text.
    pub(super) fn inferred(&self) -> InferredType {
        let text = InferredType::plain(DataType::Utf8);
        let is = |kinds: u16| self.kinds & kinds != 0;
        if self.values == 0 {
            return text;
        }
        if let Some(format) = &self.given.date {
            return InferredType { data_type: DataType::Date32, format: Some(format.clone()), note: None };
        }
        // Who wants microseconds of them declares a TIMESTAMP.
        if self.dates.fraction > 6 && self.dates.is_beyond_nanoseconds {
            return text;
        }
        if let Some(format) = &self.given.timestamp {
            let unit = if self.dates.fraction > 6 { TimeUnit::Nanosecond } else { TimeUnit::Microsecond };
            let data_type = DataType::Timestamp(unit, format.has_offset().then(|| "UTC".into()));
            return InferredType { data_type, format: Some(format.clone()), note: None };
        }
        if is(kind::BOOLEAN) || (is(kind::LETTER | kind::YES_NO) && self.words == (true, true)) {
            return InferredType::plain(DataType::Boolean);
        }
        if is(kind::INTEGER) {
            return InferredType::plain(DataType::Int64);
        }
        if is(kind::FLOAT) {
            return if self.number { InferredType::plain(DataType::Float64) } else { text };
        }
        let unit = if self.dates.fraction > 6 { TimeUnit::Nanosecond } else { TimeUnit::Microsecond };
        if is(kind::TIME) {
            return InferredType::plain(DataType::Time64(unit));
        }
        let data_type = if is(kind::DATE) {
            DataType::Date32
        } else if is(kind::TIMESTAMP) {
            DataType::Timestamp(unit, None)
        } else if is(kind::ZONED) {
            DataType::Timestamp(unit, Some("UTC".into()))
        } else {
            // Who says how numbers are written knows.
            let note = self.commas.note().filter(|_| self.given.numbers.is_plain());
            return InferredType { note, ..text };
        };
        match self.dates.format(&data_type) {
            Ok(format) => InferredType { data_type, format: Some(format), note: None },
            Err(note) => InferredType { note, ..text },
        }
    }
}

impl DateInference {
    fn new() -> Self {
        Self {
            orders: u8::MAX,
            separator: None,
            differing: [false; PAIRS.len()],
            twelve_hours: None,
            seconds: true,
            fraction: 0,
            is_beyond_nanoseconds: false,
        }
    }

    /// Adds a value's date and clock, and returns whether the column can still be one of dates or times.
    fn update(&mut self, found: &ValueKinds) -> bool {
        self.fraction = self.fraction.max(found.fraction);
        let Some(numbers) = found.date else { return true };
        self.is_beyond_nanoseconds |= !numbers.is_within_nanoseconds();
        if found.kinds & kind::DATE == 0 {
            self.seconds &= found.seconds;
            if *self.twelve_hours.get_or_insert(found.twelve_hours) != found.twelve_hours {
                return false;
            }
        }
        self.orders &= numbers.orders();
        if *self.separator.get_or_insert(numbers.separator) != numbers.separator || self.orders == 0 {
            return false;
        }
        for (pair, differing) in PAIRS.into_iter().zip(&mut self.differing) {
            *differing |= self.orders & pair == pair && numbers.disagrees(pair);
        }
        true
    }

    /// Returns the one format of all values. Errors: why there is none, where that needs saying.
    fn format(&self, data_type: &DataType) -> Result<TemporalFormat, Option<String>> {
        let separator = self.separator.unwrap_or(b'-');
        let is_date = *data_type == DataType::Date32;
        let twelve_hours = self.twelve_hours == Some(true);
        let left: Vec<u8> = (0..6).map(|bit| 1 << bit).filter(|order| self.orders & order != 0).collect();
        let is_ambiguous = |(pair, differing): (u8, bool)| differing && self.orders & pair == pair;
        if PAIRS.into_iter().zip(self.differing).any(is_ambiguous) {
            let names: Vec<String> = left
                .iter()
                .filter_map(|order| format_of_order(*order, separator))
                .map(|format| format!("`{}`", TemporalFormat::Numbers(format).text(true)))
                .collect();
            let option = if is_date { "date_format" } else { "timestamp_format" };
            return Err(Some(format!("dates that may be {}; say which with the option {option}", names.join(" or "))));
        }
        let order = left.first().copied().unwrap_or_default();
        if order == orders::YMD && matches!(separator, b'-' | b'/') && !twelve_hours {
            return Ok(TemporalFormat::Iso);
        }
        let known = match (is_date, twelve_hours) {
            (true, _) => true,
            (false, true) => self.seconds && order & (orders::MDY | orders::SHORT_MDY) != 0,
            (false, false) => self.seconds && order & (orders::MDY | orders::SHORT_MDY) == 0,
        };
        let zoned = matches!(data_type, DataType::Timestamp(_, Some(_)));
        match format_of_order(order, separator) {
            Some(format) if known && !zoned => Ok(TemporalFormat::Numbers(format.with_twelve_hours(twelve_hours))),
            _ => Err(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inferred(values: &[&str]) -> InferredType {
        let mut column = ColumnInference::new(GivenFormats::default());
        values.iter().for_each(|value| column.update(value, &["NA".to_owned()]));
        column.inferred()
    }

    #[test]
    fn the_first_type_that_gives_every_value_back() {
        let utc = Some("UTC".into());
        let micros = TimeUnit::Microsecond;
        let cases: [(&[&str], DataType); 39] = [
            (&["1", "-2", "", "NA"], DataType::Int64),
            (&[" 1 ", "22 "], DataType::Int64),
            (&["1", "2.5"], DataType::Float64),
            (&["1e3", "NaN", "-inf"], DataType::Float64),
            (&["1.", ".5", "-0"], DataType::Float64),
            (&["inf", "nan"], DataType::Utf8),
            (&["1e400"], DataType::Utf8),
            (&["501", "06090"], DataType::Utf8),
            (&["01.5"], DataType::Utf8),
            (&["-05"], DataType::Utf8),
            (&["+49"], DataType::Utf8),
            (&["0", "0.5"], DataType::Float64),
            (&["9007199254740993", "0.5"], DataType::Utf8),
            (&["99999999999999999999"], DataType::Utf8),
            (&["9223372036854775807"], DataType::Int64),
            (&["1_000", "2"], DataType::Utf8),
            (&["1,000"], DataType::Utf8),
            (&["10%"], DataType::Utf8),
            (&["true", "False"], DataType::Boolean),
            (&["T", "F"], DataType::Boolean),
            (&["Yes", "no"], DataType::Boolean),
            (&["F", "F"], DataType::Utf8),
            (&["NO"], DataType::Utf8),
            (&["true", "1"], DataType::Utf8),
            (&["10:00", "23:59:59.5"], DataType::Time64(micros)),
            (&["25:00:00"], DataType::Utf8),
            (&["2013-01-01"], DataType::Date32),
            (&["2013-02-30"], DataType::Utf8),
            (&["20130101"], DataType::Int64),
            (&["2013-01-01", "2013-01-01 10:00:00"], DataType::Utf8),
            (&["2013-01-01 10:00", "2013-01-01T10:00:00.5"], DataType::Timestamp(micros, None)),
            (&["2015/01/01 01:00:00"], DataType::Timestamp(micros, None)),
            (&["2013-01-01T10:00:00Z", "2013-01-01 10:00:00+02"], DataType::Timestamp(micros, utc.clone())),
            (&["2013-01-01T10:00:00.123456789+02:00"], DataType::Timestamp(TimeUnit::Nanosecond, utc)),
            (&["2013-01-01 10:00:00.1234567", "9999-12-31 23:59:59.9999999"], DataType::Utf8),
            (&["2013-01-01T10:00:00Z", "2013-01-01T10:00:00"], DataType::Utf8),
            (&["10.0.0.1"], DataType::Utf8),
            (&["N14228", "1"], DataType::Utf8),
            (&["", "NA"], DataType::Utf8),
        ];
        for (values, expected) in cases {
            assert_eq!(inferred(values).data_type, expected, "{values:?}");
        }
    }

    #[test]
    fn dates_are_read_in_the_one_order_that_they_allow() {
        let cases: [(&[&str], Option<&str>); 16] = [
            (&["31.12.2024", "01.02.2024"], Some("%d.%m.%Y")),
            (&["3/30/12", "1/2/12"], Some("%m/%d/%y")),
            (&["12/31/2015", "1/5/2015"], Some("%m/%d/%Y")),
            (&["31-12-2020"], Some("%d-%m-%Y")),
            (&["2020/12/31"], Some("%Y-%m-%d")),
            (&["2020.12.31"], Some("%Y.%m.%d")),
            (&["31 12 2024"], Some("%d %m %Y")),
            (&["2013-1-1"], Some("%Y-%m-%d")),
            (&["5/5/2012", "6/6/2012"], Some("%d/%m/%Y")),
            (&["1/2/2012", "3/4/2012"], None),
            (&["01/02/03"], None),
            (&["31.12.24"], None),
            (&["31/12/2020", "12/31/2020"], None),
            (&["31/12/2020", "30-12-2020"], None),
            (&["1.2.3", "1.10.4"], None),
            (&["99-12-31"], Some("%y-%m-%d")),
        ];
        for (values, expected) in cases {
            let found = inferred(values);
            assert_eq!(found.format.map(|format| format.text(true)).as_deref(), expected, "{values:?}");
        }
        assert!(inferred(&["12", "1,5"]).note.unwrap().starts_with("numbers with a comma for the point"));
        assert_eq!(inferred(&["2020-01-01", "1,5"]).note, None);
        assert!(inferred(&["1/2/2012"]).note.unwrap().contains("`%d/%m/%Y` or `%m/%d/%Y`"));
        let clocks: [(&[&str], Option<&str>); 6] = [
            (&["31/12/2020 10:00:00"], Some("%d/%m/%Y %H:%M:%S")),
            (&["1/13/2015 1:00:00 PM"], Some("%m/%d/%Y %I:%M:%S %p")),
            (&["13/1/2015 1:00:00 PM"], None),
            (&["12/31/2015 10:00:00"], None),
            (&["1/13/2015 1:00"], None),
            (&["2015/01/01 01:00"], Some("%Y-%m-%d %H:%M:%S")),
        ];
        for (values, expected) in clocks {
            let found = inferred(values);
            assert_eq!(found.format.map(|format| format.text(false)).as_deref(), expected, "{values:?}");
        }
    }

    #[test]
    fn a_marker_among_codes_is_one_of_them() {
        let mut countries = ColumnInference::new(GivenFormats::default());
        ["DE", "NA", "FR"].iter().for_each(|value| countries.update(value, &["NA".to_owned()]));
        assert!(countries.keeps("NA") && !countries.keeps("NULL"));
        let mut tails = ColumnInference::new(GivenFormats::default());
        ["N14228", "NA"].iter().for_each(|value| tails.update(value, &["NA".to_owned()]));
        assert!(!tails.keeps("NA") && tails.markers().contains(&0));
    }
}
