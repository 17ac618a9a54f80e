//! Whether the first record of a file is one of the columns that a statement declares.

use arrow::datatypes::{DataType, FieldRef};

use super::dialect::CsvDialect;
use super::inference::ColumnInference;

/// Returns whether a record's values are of the declared types, of which some are no text, and not the columns' names.
pub(super) fn is_record_of(record: &[String], declared: &[FieldRef], dialect: &CsvDialect) -> bool {
    let columns = || record.iter().zip(declared);
    let are_names = columns().all(|(value, field)| value.trim().eq_ignore_ascii_case(field.name()));
    let has_typed = columns().any(|(value, field)| !value.is_empty() && !is_text(field.data_type()));
    record.len() == declared.len()
        && !are_names
        && has_typed
        && columns().all(|(value, field)| value.is_empty() || is_value_of(value.trim(), field.data_type(), dialect))
}

fn is_text(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Utf8 | DataType::Utf8View | DataType::LargeUtf8 | DataType::Binary)
}

fn is_value_of(value: &str, data_type: &DataType, dialect: &CsvDialect) -> bool {
    let is_marker = || dialect.null_markers().iter().any(|marker| marker == value);
    let number = || dialect.numbers.plain(value).and_then(|plain| plain.parse::<f64>().ok());
    match data_type {
        text if is_text(text) => true,
        whole if whole.is_integer() => {
            is_marker() || dialect.numbers.plain(value).is_some_and(|plain| plain.parse::<i128>().is_ok())
        }
        numeric if numeric.is_numeric() => is_marker() || number().is_some_and(f64::is_finite),
        DataType::Boolean => is_marker() || ["true", "false"].iter().any(|word| value.eq_ignore_ascii_case(word)),
        DataType::Date32 | DataType::Timestamp(_, _) | DataType::Time64(_) => {
            let mut column = ColumnInference::new(dialect.given_formats());
            column.update(value, &[]);
            let found = column.inferred().data_type;
            is_marker() || column.is_temporal() || found.is_temporal()
        }
        _ => false,
    }
}
