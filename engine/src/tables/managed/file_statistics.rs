//! Statistics of a data file as DuckLake keeps them: column bounds as text, which is turned into typed values and back
//! exactly as DuckDB spells it, so that either engine can prune the other's files. A bound that cannot be read back is
//! unknown, never a guess.

use arrow::datatypes::{DataType, Schema, TimeUnit};
use chrono::{DateTime, Datelike, NaiveDate, NaiveDateTime, NaiveTime};
use datafusion::common::stats::Precision;
use datafusion::common::{ColumnStatistics, ScalarValue, Statistics};
use querent_catalog::{ColumnStats, DataFile};
use uuid::Uuid;

use crate::functions::bytes_of_hex;

/// Where a writer cuts text bounds, DuckDB and Querent alike: what is cut is still a bound and no longer a value.
pub(super) const TEXT_BOUND_BYTES: usize = 256;
/// What is cut ends at a character's end, at most three bytes earlier.
const MAX_EXACT_TEXT_BYTES: usize = TEXT_BOUND_BYTES - 4;

/// Returns the statistics of a file for `schema`, whose columns have `column_ids`.
pub(super) fn file_statistics(file: &DataFile, schema: &Schema, column_ids: &[i64]) -> Statistics {
    let rows = usize::try_from(file.row_count).map_or(Precision::Absent, Precision::Exact);
    let column_statistics = schema
        .fields()
        .iter()
        .zip(column_ids)
        .map(|(field, id)| match file.column_stats.get(id) {
            Some(stats) => column_statistics(stats, field.data_type()),
            None => ColumnStatistics::new_unknown(),
        })
        .collect();
    let bytes = usize::try_from(file.file_size_bytes).map_or(Precision::Absent, Precision::Inexact);
    Statistics { num_rows: rows, total_byte_size: bytes, column_statistics }
}

fn column_statistics(stats: &ColumnStats, data_type: &DataType) -> ColumnStatistics {
    let count = |count: Option<u64>| count.and_then(|count| usize::try_from(count).ok());
    let mut known = ColumnStatistics::new_unknown()
        .with_null_count(count(stats.null_count).map_or(Precision::Absent, Precision::Exact))
        .with_byte_size(count(stats.column_size_bytes).map_or(Precision::Absent, Precision::Inexact));
    if data_type.is_nested() {
        return known;
    }
    // NaN sorts above every number and bounds leave it out, so they hold only where there is none for certain.
    if data_type.is_floating() && stats.contains_nan != Some(false) {
        return known;
    }
    let parsed = |text: &Option<String>| {
        let text = text.as_deref()?;
        let value = parse_bound(text, data_type)?;
        let exact = !is_text(data_type) || text.len() <= MAX_EXACT_TEXT_BYTES;
        Some(if exact { Precision::Exact(value) } else { Precision::Inexact(value) })
    };
    if let Some(min) = parsed(&stats.min_value) {
        known = known.with_min_value(safer_zero(min, -0.0));
    }
    if let Some(max) = parsed(&stats.max_value) {
        known = known.with_max_value(safer_zero(max, 0.0));
    }
    known
}

/// Returns a bound, of a zero the safer one, which is a bound and perhaps no value of the column.
fn safer_zero(bound: Precision<ScalarValue>, zero: f32) -> Precision<ScalarValue> {
    let is_zero = matches!(bound.get_value(), Some(ScalarValue::Float32(Some(0.0)) | ScalarValue::Float64(Some(0.0))));
    let bound = bound.map(|value| signed_zero(value, zero));
    if is_zero { bound.to_inexact() } else { bound }
}

/// Returns the zero that is the safer bound: writers of bounds take the two zeros for one value, comparisons here do not.
fn signed_zero(value: ScalarValue, zero: f32) -> ScalarValue {
    match value {
        ScalarValue::Float32(Some(0.0)) => ScalarValue::Float32(Some(zero)),
        ScalarValue::Float64(Some(0.0)) => ScalarValue::Float64(Some(f64::from(zero))),
        other => other,
    }
}

fn is_text(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Utf8
            | DataType::LargeUtf8
            | DataType::Utf8View
            | DataType::Binary
            | DataType::LargeBinary
            | DataType::BinaryView
    )
}

/// Parses a bound as a value of `data_type`; `None` where it is not one.
fn parse_bound(text: &str, data_type: &DataType) -> Option<ScalarValue> {
    let value = match data_type {
        DataType::Boolean => ScalarValue::Boolean(Some(match text {
            "0" | "false" => false,
            "1" | "true" => true,
            _ => return None,
        })),
        DataType::Utf8 => ScalarValue::Utf8(Some(text.to_string())),
        DataType::LargeUtf8 => ScalarValue::LargeUtf8(Some(text.to_string())),
        DataType::Utf8View => ScalarValue::Utf8View(Some(text.to_string())),
        DataType::Binary => ScalarValue::Binary(Some(bytes_of_hex(text.as_bytes())?)),
        DataType::LargeBinary => ScalarValue::LargeBinary(Some(bytes_of_hex(text.as_bytes())?)),
        DataType::BinaryView => ScalarValue::BinaryView(Some(bytes_of_hex(text.as_bytes())?)),
        DataType::FixedSizeBinary(16) => {
            ScalarValue::FixedSizeBinary(16, Some(Uuid::parse_str(text).ok()?.as_bytes().to_vec()))
        }
        // `0044-03-15 (BC)`, `infinity` and the like stay unknown.
        other => ScalarValue::try_from_string(text.to_string(), other).ok()?,
    };
    (!value.is_null()).then_some(value)
}

/// Formats a bound as DuckDB writes it; `None` for a value that it has no text for.
pub(super) fn format_bound(value: &ScalarValue) -> Option<String> {
    Some(match value {
        ScalarValue::Boolean(Some(value)) => if *value { "1" } else { "0" }.to_string(),
        ScalarValue::Int8(Some(value)) => value.to_string(),
        ScalarValue::Int16(Some(value)) => value.to_string(),
        ScalarValue::Int32(Some(value)) => value.to_string(),
        ScalarValue::Int64(Some(value)) => value.to_string(),
        ScalarValue::UInt8(Some(value)) => value.to_string(),
        ScalarValue::UInt16(Some(value)) => value.to_string(),
        ScalarValue::UInt32(Some(value)) => value.to_string(),
        ScalarValue::UInt64(Some(value)) => value.to_string(),
        ScalarValue::Float32(Some(value)) => format_float(&format!("{value:?}"), &format!("{value:e}")),
        ScalarValue::Float64(Some(value)) => format_float(&format!("{value:?}"), &format!("{value:e}")),
        ScalarValue::Decimal128(Some(value), _, scale) => format_decimal(*value, *scale),
        ScalarValue::Date32(Some(days)) => {
            let date = NaiveDate::from_num_days_from_ce_opt(days.checked_add(DAYS_BEFORE_EPOCH)?)?;
            four_digit_year(date.year()).then(|| date.format("%Y-%m-%d").to_string())?
        }
        ScalarValue::Time32Second(Some(value)) => format_time(i64::from(*value), TimeUnit::Second)?,
        ScalarValue::Time32Millisecond(Some(value)) => format_time(i64::from(*value), TimeUnit::Millisecond)?,
        ScalarValue::Time64Microsecond(Some(value)) => format_time(*value, TimeUnit::Microsecond)?,
        ScalarValue::Time64Nanosecond(Some(value)) => format_time(*value, TimeUnit::Nanosecond)?,
        ScalarValue::TimestampSecond(Some(value), zone) => format_timestamp(*value, TimeUnit::Second, zone.is_some())?,
        ScalarValue::TimestampMillisecond(Some(value), zone) => {
            format_timestamp(*value, TimeUnit::Millisecond, zone.is_some())?
        }
        ScalarValue::TimestampMicrosecond(Some(value), zone) => {
            format_timestamp(*value, TimeUnit::Microsecond, zone.is_some())?
        }
        ScalarValue::TimestampNanosecond(Some(value), zone) => {
            format_timestamp(*value, TimeUnit::Nanosecond, zone.is_some())?
        }
        ScalarValue::Utf8(Some(value)) => value.clone(),
        ScalarValue::Binary(Some(value)) => value.iter().map(|byte| format!("{byte:02X}")).collect(),
        ScalarValue::FixedSizeBinary(16, Some(value)) => Uuid::from_slice(value).ok()?.to_string(),
        _ => return None,
    })
}

const DAYS_BEFORE_EPOCH: i32 = 719_163;

/// Years outside of these have another spelling (`(BC)`, five digits): left unknown.
fn four_digit_year(year: i32) -> bool {
    (1..=9999).contains(&year)
}

/// Shortest digits, with an exponent of at least two digits outside of 1e-4 to 1e16.
fn format_float(plain: &str, scientific: &str) -> String {
    let Some((mantissa, exponent)) = scientific.split_once('e') else { return plain.to_string() };
    match exponent.parse::<i32>() {
        Ok(power @ (16.. | ..=-5)) => {
            let sign = if power < 0 { '-' } else { '+' };
            format!("{mantissa}e{sign}{:02}", power.abs())
        }
        Ok(_) | Err(_) => plain.to_string(),
    }
}

fn format_decimal(unscaled: i128, scale: i8) -> String {
    let Ok(scale @ 1..) = usize::try_from(scale) else { return unscaled.to_string() };
    let sign = if unscaled < 0 { "-" } else { "" };
    let digits = format!("{:0>width$}", unscaled.unsigned_abs(), width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    format!("{sign}{whole}.{fraction}")
}

fn units_per_second(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    }
}

/// `.5` for half a second, nothing for a whole one.
fn format_fraction(nanoseconds: u32) -> String {
    if nanoseconds == 0 {
        return String::new();
    }
    format!(".{nanoseconds:09}").trim_end_matches('0').to_string()
}

fn format_time(value: i64, unit: TimeUnit) -> Option<String> {
    let per_second = units_per_second(unit);
    let nanoseconds = u32::try_from(value.rem_euclid(per_second) * (1_000_000_000 / per_second)).ok()?;
    let seconds = u32::try_from(value.div_euclid(per_second)).ok()?;
    let time = NaiveTime::from_num_seconds_from_midnight_opt(seconds, nanoseconds)?;
    Some(format!("{}{}", time.format("%H:%M:%S"), format_fraction(nanoseconds)))
}

fn format_timestamp(value: i64, unit: TimeUnit, with_zone: bool) -> Option<String> {
    let per_second = units_per_second(unit);
    let nanoseconds = u32::try_from(value.rem_euclid(per_second) * (1_000_000_000 / per_second)).ok()?;
    let instant: NaiveDateTime = DateTime::from_timestamp(value.div_euclid(per_second), nanoseconds)?.naive_utc();
    if !four_digit_year(instant.year()) {
        return None;
    }
    let zone = if with_zone { "+00" } else { "" };
    Some(format!("{}{}{zone}", instant.format("%Y-%m-%d %H:%M:%S"), format_fraction(nanoseconds)))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    // What DuckDB 1.5.5 wrote into ducklake_file_column_stats for these values.
    #[test]
    fn bounds_are_spelled_as_duckdb_spells_them() {
        let utc = || Some(Arc::from("UTC"));
        let cases = [
            (ScalarValue::Boolean(Some(false)), "0"),
            (ScalarValue::Int64(Some(-9007199254740993)), "-9007199254740993"),
            (ScalarValue::UInt64(Some(u64::MAX)), "18446744073709551615"),
            (ScalarValue::Float32(Some(1.5)), "1.5"),
            (ScalarValue::Float64(Some(1e300)), "1e+300"),
            (ScalarValue::Float64(Some(0.0)), "0.0"),
            (ScalarValue::Decimal128(Some(-15), 4, 1), "-1.5"),
            (ScalarValue::Decimal128(Some(-12500), 18, 3), "-12.500"),
            (ScalarValue::Decimal128(Some(5), 18, 3), "0.005"),
            (ScalarValue::Date32(Some(18295)), "2020-02-03"),
            (ScalarValue::Time64Microsecond(Some(45_296_789_000)), "12:34:56.789"),
            (ScalarValue::Time64Microsecond(Some(0)), "00:00:00"),
            (ScalarValue::TimestampMicrosecond(Some(1_577_934_245_123_456), None), "2020-01-02 03:04:05.123456"),
            (ScalarValue::TimestampSecond(Some(-1), None), "1969-12-31 23:59:59"),
            (ScalarValue::TimestampMillisecond(Some(-500), None), "1969-12-31 23:59:59.5"),
            (ScalarValue::TimestampMicrosecond(Some(-1_000_000), utc()), "1969-12-31 23:59:59+00"),
            (ScalarValue::Binary(Some(vec![0x00, 0xff, 0x41])), "00FF41"),
            (ScalarValue::Utf8(Some("hé\"llo'".into())), "hé\"llo'"),
            (
                ScalarValue::FixedSizeBinary(16, Some(Uuid::from_u128(1).as_bytes().to_vec())),
                "00000000-0000-0000-0000-000000000001",
            ),
        ];
        for (value, text) in cases {
            assert_eq!(format_bound(&value).as_deref(), Some(text));
            assert_eq!(parse_bound(text, &value.data_type()), Some(value));
        }
    }

    #[test]
    fn what_has_no_plain_text_stays_unknown() {
        assert_eq!(parse_bound("0044-03-15 (BC)", &DataType::Date32), None);
        assert_eq!(parse_bound("infinity", &DataType::Timestamp(TimeUnit::Microsecond, None)), None);
        assert_eq!(format_bound(&ScalarValue::Date32(Some(-800_000))), None);
        assert_eq!(format_bound(&ScalarValue::Int64(None)), None);
    }

    #[test]
    fn nan_makes_bounds_unknown() {
        let stats = |contains_nan| ColumnStats {
            min_value: Some("1.5".into()),
            max_value: Some("2.5".into()),
            contains_nan,
            ..Default::default()
        };
        assert_eq!(column_statistics(&stats(Some(true)), &DataType::Float64).max_value, Precision::Absent);
        assert_eq!(column_statistics(&stats(None), &DataType::Float64).max_value, Precision::Absent);
        let known = column_statistics(&stats(Some(false)), &DataType::Float64);
        assert_eq!(known.max_value, Precision::Exact(ScalarValue::Float64(Some(2.5))));
    }
}
