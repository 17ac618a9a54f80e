//! Conversions between all types. What cannot be converted is null, never an error.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Decimal256Array, Float64Array, Int32Array, Int64Array, StringArray,
};
use arrow::datatypes::{Decimal256Type, Float64Type, Int32Type, Int64Type, i256};
use datafusion::error::Result;
use serde_json::Value;

use super::arguments::FunctionArguments;
use super::signature::{FunctionEntry, Returns, entry};
use crate::types::{DECIMAL_PRECISION, DECIMAL_SCALE, KqlType};
use crate::values::{
    self, MAX_DATETIME_TICKS, decimal_from_long, decimal_from_real, decimal_to_long, decimal_to_real, parse_bool,
    parse_datetime, parse_decimal, parse_guid, parse_int, parse_long, parse_real, parse_timespan,
};

pub(super) const FUNCTIONS: &[FunctionEntry] = &[
    entry("tostring", "x", Returns::Is(KqlType::String), to_bound_type),
    entry("toint", "x", Returns::Is(KqlType::Int), to_bound_type),
    entry("tolong", "x", Returns::Is(KqlType::Long), to_bound_type),
    entry("todouble", "x", Returns::Is(KqlType::Real), to_bound_type),
    entry("toreal", "x", Returns::Is(KqlType::Real), to_bound_type),
    entry("todecimal", "x", Returns::Is(KqlType::Decimal), to_bound_type),
    entry("tobool", "x", Returns::Is(KqlType::Bool), to_bound_type),
    entry("toboolean", "x", Returns::Is(KqlType::Bool), to_bound_type),
    entry("todatetime", "x", Returns::Is(KqlType::DateTime), to_bound_type),
    entry("totimespan", "x", Returns::Is(KqlType::TimeSpan), to_bound_type),
    entry("totime", "x", Returns::Is(KqlType::TimeSpan), to_bound_type),
    entry("toguid", "x", Returns::Is(KqlType::Guid), to_bound_type),
    entry("todynamic", "x", Returns::Is(KqlType::Dynamic), to_dynamic),
    entry("toobject", "x", Returns::Is(KqlType::Dynamic), to_dynamic),
    entry("parse_json", "x", Returns::Is(KqlType::Dynamic), to_dynamic),
    entry("parsejson", "x", Returns::Is(KqlType::Dynamic), to_dynamic),
    entry("gettype", "x", Returns::Is(KqlType::String), get_type),
    entry("tohex", "i?i", Returns::Is(KqlType::String), to_hex),
];

/// Converts an array to another type.
pub(super) fn convert(from: KqlType, array: &ArrayRef, to: KqlType) -> Result<ArrayRef> {
    if from == to {
        return Ok(Arc::clone(array));
    }
    Ok(match to {
        KqlType::Bool => Arc::new(to_bools(from, array)),
        KqlType::Int => Arc::new(to_ints(from, array)),
        KqlType::Long => to_longs(from, array)?,
        KqlType::Real => to_reals(from, array)?,
        KqlType::Decimal => {
            Arc::new(to_decimals(from, array).with_precision_and_scale(DECIMAL_PRECISION, DECIMAL_SCALE)?)
        }
        KqlType::DateTime => Arc::new(to_datetimes(from, array)),
        KqlType::TimeSpan => Arc::new(to_timespans(from, array)),
        KqlType::String => to_strings(from, array),
        KqlType::Guid => Arc::new(to_guids(from, array)),
        KqlType::Dynamic => Arc::new(to_json(from, array)),
    })
}

fn to_bound_type(arguments: &FunctionArguments) -> Result<ArrayRef> {
    // Kusto's constants overflow to the least integer, its columns saturate at the greatest.
    let is_constant = arguments.is_constant(0);
    match (arguments.kql_type(0), arguments.returns) {
        (KqlType::Real, KqlType::Long) if !is_constant => {
            let reals = arguments.reals(0)?;
            return arguments.make_longs(|row| reals.get(row).filter(|real| real.is_finite()).map(|real| real as i64));
        }
        (KqlType::Real, KqlType::Int) => {
            let reals = arguments.reals(0)?;
            let int = |real: f64| {
                let is_inside = (f64::from(i32::MIN)..f64::from(i32::MAX) + 1.0).contains(&real);
                if is_constant && !is_inside { i32::MIN } else { real as i32 }
            };
            let int_of = |row: usize| reals.get(row).filter(|real| real.is_finite()).map(int);
            return Ok(Arc::new((0..arguments.rows).map(int_of).collect::<Int32Array>()));
        }
        _ => {}
    }
    arguments.whole(0, arguments.returns)
}

/// Parses a string as JSON. Any other value becomes a dynamic one.
fn to_dynamic(arguments: &FunctionArguments) -> Result<ArrayRef> {
    if arguments.kql_type(0) != KqlType::String {
        return arguments.whole(0, KqlType::Dynamic);
    }
    let strings = arguments.strings(0)?;
    let literal = strings.constant.then(|| values::normalize_json(strings.get(0)));
    arguments.make_optional_strings(|row, json| {
        let value = match &literal {
            Some(value) => value.clone(),
            None => values::normalize_json(strings.get(row)),
        };
        json.push_str(value.as_deref().unwrap_or_default());
        Ok(value.is_some())
    })
}

fn get_type(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let kql_type = arguments.kql_type(0);
    let json = (kql_type == KqlType::Dynamic).then(|| arguments.json(0)).transpose()?;
    arguments.make_strings(|row, text| {
        let name = match &json {
            Some(json) => json.optional(row).map_or("null", values::json_type_name),
            None => kql_type.name(),
        };
        text.push_str(name);
        Ok(())
    })
}

fn to_hex(arguments: &FunctionArguments) -> Result<ArrayRef> {
    const MOST_DIGITS: i64 = 16;
    let numbers = arguments.longs(0)?;
    let least = if arguments.len() > 1 { Some(arguments.longs(1)?) } else { None };
    let is_int = arguments.kql_type(0) == KqlType::Int;
    arguments.make_strings(|row, text| {
        if let Some(number) = numbers.get(row) {
            let digits = least.as_ref().and_then(|least| least.get(row)).unwrap_or(0).clamp(0, MOST_DIGITS) as usize;
            let shown = if is_int { format!("{:x}", number as i32) } else { format!("{number:x}") };
            text.push_str(&format!("{shown:0>digits$}"));
        }
        Ok(())
    })
}

fn to_bools(from: KqlType, array: &ArrayRef) -> BooleanArray {
    match from {
        KqlType::Int | KqlType::Long | KqlType::DateTime | KqlType::TimeSpan => {
            longs(from, array).iter().map(|long| long.map(|long| long != 0)).collect()
        }
        KqlType::Real => array.as_primitive::<Float64Type>().iter().map(|real| real.map(|real| real != 0.0)).collect(),
        KqlType::Decimal => array
            .as_primitive::<Decimal256Type>()
            .iter()
            .map(|stored| stored.map(|stored| stored != i256::ZERO))
            .collect(),
        KqlType::Dynamic => from_json(array, |value| match value {
            Value::Bool(truth) => Some(*truth),
            Value::Number(number) => number.as_f64().map(|number| number != 0.0),
            Value::String(text) => parse_bool(text),
            _ => None,
        })
        .collect(),
        KqlType::Bool => array.as_boolean().clone(),
        KqlType::String | KqlType::Guid => from_strings(array, parse_bool).collect(),
    }
}

fn to_ints(from: KqlType, array: &ArrayRef) -> Int32Array {
    match from {
        KqlType::String | KqlType::Guid => from_strings(array, parse_int).collect(),
        // As in Kusto, only the low bits are kept.
        _ => longs(from, array).iter().map(|long| long.map(|long| long as i32)).collect(),
    }
}

fn to_longs(from: KqlType, array: &ArrayRef) -> Result<ArrayRef> {
    Ok(match from {
        KqlType::Long | KqlType::DateTime | KqlType::TimeSpan => Arc::clone(array),
        KqlType::Int => arrow::compute::cast(array, &KqlType::Long.arrow_type())?,
        _ => Arc::new(longs(from, array)),
    })
}

fn longs(from: KqlType, array: &ArrayRef) -> Int64Array {
    match from {
        KqlType::Bool => array.as_boolean().iter().map(|truth| truth.map(i64::from)).collect(),
        KqlType::Int => array.as_primitive::<Int32Type>().iter().map(|int| int.map(i64::from)).collect(),
        KqlType::Long | KqlType::DateTime | KqlType::TimeSpan => array.as_primitive::<Int64Type>().clone(),
        KqlType::Real => array.as_primitive::<Float64Type>().iter().map(|real| real.and_then(truncated)).collect(),
        KqlType::Decimal => {
            array.as_primitive::<Decimal256Type>().iter().map(|stored| stored.and_then(decimal_to_long)).collect()
        }
        KqlType::String | KqlType::Guid => from_strings(array, parse_long).collect(),
        KqlType::Dynamic => from_json(array, json_long).collect(),
    }
}

/// Returns the integer part. A real out of range is the least long, as x86 converts it.
fn truncated(real: f64) -> Option<i64> {
    if !real.is_finite() {
        return None;
    }
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    Some(if (-LIMIT..LIMIT).contains(&real) { real as i64 } else { i64::MIN })
}

fn json_long(value: &Value) -> Option<i64> {
    match value {
        Value::Bool(truth) => Some(i64::from(*truth)),
        Value::Number(number) => number.as_i64().or_else(|| number.as_f64().and_then(truncated)),
        Value::String(text) => parse_long(text),
        _ => None,
    }
}

fn to_reals(from: KqlType, array: &ArrayRef) -> Result<ArrayRef> {
    Ok(match from {
        KqlType::Real => Arc::clone(array),
        KqlType::Int | KqlType::Long | KqlType::DateTime | KqlType::TimeSpan => {
            arrow::compute::cast(array, &KqlType::Real.arrow_type())?
        }
        _ => Arc::new(reals(from, array)),
    })
}

fn reals(from: KqlType, array: &ArrayRef) -> Float64Array {
    match from {
        KqlType::Decimal => {
            array.as_primitive::<Decimal256Type>().iter().map(|stored| stored.map(decimal_to_real)).collect()
        }
        KqlType::String | KqlType::Guid => from_strings(array, parse_real).collect(),
        KqlType::Dynamic => from_json(array, json_real).collect(),
        KqlType::Real => array.as_primitive::<Float64Type>().clone(),
        KqlType::Bool | KqlType::Int | KqlType::Long | KqlType::DateTime | KqlType::TimeSpan => {
            longs(from, array).iter().map(|long| long.map(|long| long as f64)).collect()
        }
    }
}

pub(super) fn json_real(value: &Value) -> Option<f64> {
    match value {
        Value::Bool(truth) => Some(f64::from(u8::from(*truth))),
        Value::Number(number) => number.as_f64(),
        Value::String(text) => parse_real(text),
        _ => None,
    }
}

fn to_decimals(from: KqlType, array: &ArrayRef) -> Decimal256Array {
    match from {
        KqlType::Decimal => array.as_primitive::<Decimal256Type>().clone(),
        KqlType::Real => {
            array.as_primitive::<Float64Type>().iter().map(|real| real.and_then(decimal_from_real)).collect()
        }
        KqlType::String | KqlType::Guid => from_strings(array, parse_decimal).collect(),
        KqlType::Dynamic => from_json(array, |value| parse_decimal(&values::value_to_string(value))).collect(),
        _ => longs(from, array).iter().map(|long| long.map(decimal_from_long)).collect(),
    }
}

fn to_datetimes(from: KqlType, array: &ArrayRef) -> Int64Array {
    let in_range = |ticks: &i64| (0..=MAX_DATETIME_TICKS).contains(ticks);
    match from {
        KqlType::String | KqlType::Guid => from_strings(array, parse_datetime).collect(),
        KqlType::Dynamic => from_json(array, |value| match value {
            Value::String(text) => parse_datetime(text),
            other => json_long(other).filter(in_range),
        })
        .collect(),
        _ => longs(from, array).iter().map(|ticks| ticks.filter(in_range)).collect(),
    }
}

fn to_timespans(from: KqlType, array: &ArrayRef) -> Int64Array {
    match from {
        KqlType::String | KqlType::Guid => from_strings(array, parse_timespan).collect(),
        KqlType::Dynamic => from_json(array, |value| match value {
            Value::String(text) => parse_timespan(text),
            other => json_long(other),
        })
        .collect(),
        _ => longs(from, array),
    }
}

fn to_guids(from: KqlType, array: &ArrayRef) -> StringArray {
    match from {
        KqlType::String => from_strings(array, parse_guid).collect(),
        KqlType::Dynamic => from_json(array, |value| parse_guid(value.as_str()?)).collect(),
        _ => StringArray::new_null(array.len()),
    }
}

fn to_strings(from: KqlType, array: &ArrayRef) -> ArrayRef {
    if from == KqlType::Guid && array.null_count() == 0 {
        return Arc::clone(array);
    }
    let strings = (0..array.len()).map(|row| {
        let text = values::format_value(from, array, row);
        match from {
            KqlType::Real => values::with_greatest_digits(text),
            KqlType::Dynamic if is_no_text(array, row) => values::with_greatest_reals(&text),
            _ => text,
        }
    });
    Arc::new(StringArray::from_iter_values(strings))
}

/// Whether a dynamic value is none of a string.
fn is_no_text(array: &ArrayRef, row: usize) -> bool {
    let json = array.as_string_opt::<i32>().filter(|texts| texts.is_valid(row)).map(|texts| texts.value(row));
    json.is_some_and(|json| !json.starts_with('"'))
}

fn to_json(from: KqlType, array: &ArrayRef) -> StringArray {
    let json = |row: usize| {
        if array.is_null(row) {
            return (from == KqlType::String).then(|| "\"\"".to_owned());
        }
        match from {
            KqlType::Bool => Some(array.as_boolean().value(row).to_string()),
            KqlType::Int | KqlType::Long => Some(values::format_value(from, array, row)),
            KqlType::Dynamic => Some(array.as_string::<i32>().value(row).to_owned()),
            KqlType::Real | KqlType::Decimal => values::value_to_json(&number_value(from, array, row)),
            _ => values::value_to_json(&Value::String(values::format_value(from, array, row))),
        }
    };
    (0..array.len()).map(json).collect()
}

/// Returns a number as JSON, or as a string if JSON has no such number.
fn number_value(from: KqlType, array: &ArrayRef, row: usize) -> Value {
    let text = values::format_value(from, array, row);
    match (from, text.parse::<f64>()) {
        (KqlType::Real, Ok(real)) if real.is_finite() => Value::from(real),
        (KqlType::Real, Ok(real)) if real == f64::INFINITY => "Infinity".into(),
        (KqlType::Real, Ok(real)) if real == f64::NEG_INFINITY => "-Infinity".into(),
        _ => Value::String(text),
    }
}

/// Parses the strings of a string or guid column.
fn from_strings<'a, T>(
    array: &'a ArrayRef,
    read: impl Fn(&str) -> Option<T> + 'a,
) -> impl Iterator<Item = Option<T>> + 'a {
    array.as_string::<i32>().iter().map(move |text| text.and_then(&read))
}

fn from_json<'a, T>(
    array: &'a ArrayRef,
    read: impl Fn(&Value) -> Option<T> + 'a,
) -> impl Iterator<Item = Option<T>> + 'a {
    array.as_string::<i32>().iter().map(move |json| json.and_then(|json| read(&values::parse_json(json))))
}
