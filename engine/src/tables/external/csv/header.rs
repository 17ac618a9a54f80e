//! Whether the first record of a CSV file names the columns. It does, unless it could be a row: DuckDB's rule, by which all of
//! its values are of their columns' types then.
//!
//! It differs where all is text, of which DuckDB takes the first record for names: values that occur again below, or that are
//! written with digits as those below are, are data. And it differs where names look like values: years in equal steps, and what
//! stands beside an index without a name.

use arrow::datatypes::DataType;

use super::dialect::CsvDialect;
use super::inference::ColumnInference;
use super::kinds::{is_numeric, kind, kinds_of};
use super::records::{CsvSyntax, FieldBuffer, Parsed, parse_record};
use super::sniffer::SAMPLE_RECORDS;

/// So many rows say enough that a single one with a word of the first record is no reason to take that for data.
const FEW_ROWS: usize = 20;
/// So many years in equal steps are names of columns.
const LEAST_YEARS: usize = 3;

/// Returns the texts of the first records of the sample, as rows.
pub(super) fn rows_of(syntax: &CsvSyntax, text: &[u8], is_whole: bool, width: usize) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    let mut fields = FieldBuffer::default();
    let mut at = 0;
    while rows.len() < SAMPLE_RECORDS {
        fields.clear();
        match parse_record(syntax, text.get(at..).unwrap_or_default(), is_whole, &mut fields) {
            Parsed::Record(extent) => {
                let field = |index| String::from_utf8_lossy(fields.field(index)).into_owned();
                rows.push((0..width).map(field).collect());
                at += extent.bytes;
            }
            Parsed::Blank(extent) | Parsed::Comment(extent) => at += extent.bytes,
            Parsed::Unclosed | Parsed::Partial | Parsed::End => break,
        }
    }
    rows
}

/// Returns what is known of the columns from all records but the first.
pub(super) fn columns_below(rows: &[Vec<String>], width: usize, dialect: &CsvDialect) -> Vec<ColumnInference> {
    let markers = dialect.null_markers();
    let mut columns = vec![ColumnInference::new(dialect.given_formats()); width];
    let below = if rows.len() > 1 { 1 } else { 0 };
    for row in rows.iter().skip(below) {
        for (column, value) in columns.iter_mut().zip(row) {
            column.update(value, &markers);
        }
    }
    columns
}

/// Returns whether a column has another type than text, or would have one if the order of its dates were known.
pub(super) fn is_typed(column: &ColumnInference) -> bool {
    column.has_values() && (column.inferred().data_type != DataType::Utf8 || column.is_temporal())
}

/// Returns whether the first record names the columns.
pub(super) fn has_header(syntax: &CsvSyntax, text: &[u8], is_whole: bool, width: usize, dialect: &CsvDialect) -> bool {
    let rows = rows_of(syntax, text, is_whole, width);
    let columns = columns_below(&rows, width, dialect);
    let Some((first, below)) = rows.split_first() else { return true };
    if first.iter().all(String::is_empty) || names_years(first) && !below.iter().any(|row| names_years(row)) {
        return true;
    }
    let cells = || first.iter().zip(&columns).enumerate().filter(|(_, (value, _))| !value.is_empty());
    if columns.iter().any(is_typed) && !names_all_but_an_index(first, below, &columns) {
        let is_value = |index: usize, value: &str, column: &ColumnInference| match column.inferred().data_type {
            _ if !column.has_values() => false,
            // Half of the words, or of the orders of a date, says nothing by itself.
            DataType::Boolean | DataType::Date32 | DataType::Timestamp(_, _) => {
                !is_numeric(value) && is_like_those_below(&rows, index, dialect)
            }
            DataType::Utf8 if column.is_temporal() => is_like_those_below(&rows, index, dialect),
            found => could_be(value, &found, dialect),
        };
        let markers = dialect.null_markers();
        let is_typed_value = |index: usize, value: &String, column: &ColumnInference| {
            is_typed(column) && !markers.contains(value) && is_value(index, value, column)
        };
        let has_value = cells().any(|(index, (value, column))| is_typed_value(index, value, column));
        let has_no_name = cells().any(|(index, (value, column))| {
            is_typed_value(index, value, column) && is_no_name(value) || is_code_of_those_below(value, index, below)
        });
        return !cells().all(|(index, (value, column))| {
            // What stands for null, or above nothing, may be a name, where nothing beside it is a value.
            is_value(index, value, column)
                || has_no_name && !column.has_values()
                || (has_value || has_no_name) && markers.contains(value)
        });
    }
    // All that it stands above is text. Names of columns are no numbers, and most of them are not among the values; a list of
    // words may have one of them.
    let recurs = |(index, (value, _)): &(usize, (&String, &ColumnInference))| {
        let found = below.iter().filter(|row| row.get(*index) == Some(*value) && *row != first).take(2).count();
        found > 1 || found == 1 && below.len() < FEW_ROWS
    };
    let recurring = cells().filter(recurs).count();
    let are_values = recurring > 0 && recurring * 2 >= width;
    let has_code = cells().any(|(index, (value, _))| is_code_of_those_below(value, index, below));
    // A line of a file that spaces separate, or whose columns are ragged, is all in one column.
    let is_whole_line = width == 1 && first.iter().any(|line| holds_values(line));
    let are_numbers = !below.is_empty() && first.iter().all(|value| is_numeric(value));
    !(are_values || has_code || is_whole_line || are_numbers)
}

/// Returns whether a record is of names and years, with as many years between any two that follow each other. Tables with a column
/// a year, or one every five years, have such a header, whose years could be values too.
pub(in crate::tables::external) fn names_years(record: &[String]) -> bool {
    let year = |value: &String| value.parse::<u32>().ok().filter(|year| (1500..2200).contains(year));
    let years: Vec<u32> = record.iter().filter_map(year).collect();
    let steps: Vec<Option<u32>> =
        years.iter().zip(years.iter().skip(1)).map(|(one, next)| next.checked_sub(*one)).collect();
    let is_name = |value: &&String| year(value).is_none();
    let mut names = record.iter().filter(is_name).peekable();
    years.len() >= LEAST_YEARS
        && steps.iter().all(|step| step.is_some_and(|step| step > 0) && steps.first() == Some(step))
        && names.peek().is_some()
        && names.all(|name| name.is_empty() || name.contains(char::is_alphabetic))
}

/// Returns whether the first record names all columns of text, and not the first one, which has another type and a value in each
/// row: pandas and R write names so beside an index.
fn names_all_but_an_index(first: &[String], below: &[Vec<String>], columns: &[ColumnInference]) -> bool {
    let (Some((unnamed, names)), Some((index, texts))) = (first.split_first(), columns.split_first()) else {
        return false;
    };
    unnamed.is_empty()
        && !names.is_empty()
        && !names.iter().any(String::is_empty)
        && is_typed(index)
        && !texts.iter().any(is_typed)
        && below.iter().all(|row| row.first().is_some_and(|value| !value.is_empty()))
}

/// Returns whether a value is none of the numbers that columns are called by, such as years: it has a digit, and is more than
/// the digits of a whole number.
fn is_no_name(value: &str) -> bool {
    let value = value.trim();
    let is_whole_number = !value.starts_with('0') && value.parse::<u64>().is_ok();
    value.bytes().any(|byte| byte.is_ascii_digit()) && !is_whole_number
}

/// Returns whether a value is written as one of those below it, of which all are of digits and signs: postal codes with zeros
/// (`00501`), numbers with commas (`1,234`), addresses (`10.0.0.1`), numbers of telephones.
fn is_code_of_those_below(value: &str, index: usize, below: &[Vec<String>]) -> bool {
    let mut values = below.iter().filter_map(|row| row.get(index)).filter(|below| !below.is_empty()).peekable();
    let of_digits = |text: &str| text.contains(|c: char| c.is_ascii_digit()) && !text.contains(char::is_alphabetic);
    let is_alike = |other: &str| {
        let same = |(one, other): (u8, u8)| one == other || one.is_ascii_digit() && other.is_ascii_digit();
        value.len() == other.len() && value.bytes().zip(other.bytes()).all(same)
    };
    let mut has_alike = false;
    let are_codes = is_no_name(value)
        && of_digits(value)
        && values.peek().is_some()
        && values.all(|other| {
            has_alike |= is_alike(other);
            of_digits(other)
        });
    are_codes && has_alike
}

/// Returns whether a line that no delimiter takes apart is rather values than a name: names have no tabs or other
/// control characters, have letters or digits, and no numbers with a point and no time of day, as lines of logs have, among their words.
fn holds_values(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    let is_fraction = |word: &&str| word.contains('.') && is_numeric(word);
    let are_numbers = words.iter().any(is_fraction) || words.iter().all(|word| is_numeric(word));
    // Hive separates by a control character. A rule above a table, as programs print it, has neither letters nor digits.
    let is_sign = |char: char| char.is_control() && !matches!(char, '\n' | '\r');
    let is_rule = line.len() > 2 && !line.contains(char::is_alphanumeric);
    line.contains(is_sign) || is_rule || (words.len() > 1 && (are_numbers || has_time_of_day(line)))
}

fn has_time_of_day(line: &str) -> bool {
    let is_digit = |byte: &u8| byte.is_ascii_digit();
    line.as_bytes().windows(5).any(|part| match part {
        [hours @ .., b':', tens, ones] => hours.iter().all(is_digit) && is_digit(tens) && is_digit(ones),
        _ => false,
    })
}

/// Returns whether the first value of a column leaves it of another type than text.
fn is_like_those_below(rows: &[Vec<String>], index: usize, dialect: &CsvDialect) -> bool {
    let mut column = ColumnInference::new(dialect.given_formats());
    // What means null below may be a name.
    let mut markers = Vec::new();
    for value in rows.iter().filter_map(|row| row.get(index)) {
        column.update(value, &markers);
        markers = dialect.null_markers();
    }
    is_typed(&column)
}

/// Returns whether a value can be one of a column of this type.
fn could_be(value: &str, data_type: &DataType, dialect: &CsvDialect) -> bool {
    let mut column = ColumnInference::new(dialect.given_formats());
    column.update(value, &[]);
    match data_type {
        DataType::Utf8 => true,
        // `NaN` and `inf` are of no type by themselves.
        DataType::Float64 => kinds_of(value, dialect.numbers).kinds & (kind::INTEGER | kind::FLOAT) != 0,
        other => column.inferred().data_type == *other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_logs_are_no_names() {
        for line in [
            "127.0.0.1 - - [10/Oct/2000:13:55:36 -0700] \"GET / HTTP/1.0\" 200 2326",
            "Oct 11 22:14:15 host su: 'su root' failed",
            "2024-05-01T10:00:00Z INFO started",
            "1.5 2.5",
            "1\u{1}a\u{1}2.5",
            "+----+-------+",
        ] {
            assert!(holds_values(line), "{line}");
        }
        for line in ["name", "ratio 1:2", "what was said", "2024-05-01T10:00:00Z", "at 1:23", "#", "full\nname"] {
            assert!(!holds_values(line), "{line}");
        }
    }
}
