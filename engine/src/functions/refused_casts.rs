//! Casts that Arrow does and SQL does not: days, ticks and bytes as the numbers that they are in memory, and one value as a list.
//! Casts of a statement and values that are written ([`super::assigned_values`]) are refused for the same reasons.

use arrow::datatypes::DataType;

use super::text_parts::number_as_bytes;
use super::value_conversions::types_of_parts;
use crate::type_names::sql_name;

/// Returns why a cast of a date to a number is refused; `None` for any other.
pub(crate) fn refused_date_cast(from: &DataType, target: &DataType) -> Option<String> {
    let to = sql_name(target);
    (matches!(from, DataType::Date32 | DataType::Date64) && target.is_numeric()).then(|| {
        format!(
            "DATE is not cast to {to}; write date_diff('day', DATE '1970-01-01', date), or \
             CAST(strftime(date, '%Y%m%d') AS {to})"
        )
    })
}

/// Returns why a cast is refused by what is inside of lists, structs and maps; `None` for any other.
pub(crate) fn refused_cast_of_parts(from: &DataType, target: &DataType) -> Option<String> {
    types_of_parts(from, target).into_iter().find_map(|(from, target)| {
        refused_date_cast(from, target)
            .or_else(|| refused_cast(from, target))
            .or_else(|| refused_cast_of_parts(from, target))
    })
}

/// Returns why a cast is refused that Arrow does and SQL does not; `None` for any other.
pub(crate) fn refused_cast(from: &DataType, target: &DataType) -> Option<String> {
    let is_plain = |found: &DataType| !found.is_nested() && !found.is_string() && !found.is_null();
    match (from, target) {
        // Arrow counts days since 1970, which is nobody's date: 20240131 would be one of the year 57385.
        (from, DataType::Date32 | DataType::Date64) if from.is_integer() => Some(format!(
            "{} is not cast to DATE; write date_from_days(days since 1970), or make_date(year, month, day)",
            sql_name(from)
        )),
        // Arrow's is in the unit of the timestamp, of which there are four.
        (DataType::Timestamp(_, _), target) if target.is_numeric() => Some(format!(
            "{} is not cast to {}; write epoch(timestamp), epoch_ms(timestamp) or epoch_us(timestamp)",
            sql_name(from),
            sql_name(target)
        )),
        // Arrow's is in the unit of the time of day.
        (DataType::Time32(_) | DataType::Time64(_), target) if target.is_numeric() => {
            Some(format!("TIME is not cast to {}; write epoch(time)", sql_name(target)))
        }
        (from, target) if from.is_numeric() && is_bytes(target) => Some(number_as_bytes(from)),
        (from, target) if (from.is_nested() && is_plain(target)) || (is_plain(from) && target.is_nested()) => {
            Some(format!("{} is not cast to {}", sql_name(from), sql_name(target)))
        }
        _ => None,
    }
}

/// Returns whether a type is one of bytes.
pub(crate) fn is_bytes(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Binary | DataType::LargeBinary | DataType::BinaryView)
}
