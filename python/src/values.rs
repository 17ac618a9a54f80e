//! Single values between Arrow and Python: what `fetchall` returns, and the parameters of statements.

use arrow::array::{Array, AsArray, cast::as_map_array};
use arrow::datatypes::{
    DataType, Date32Type, Date64Type, Decimal128Type, Decimal256Type, DurationMicrosecondType, DurationMillisecondType,
    DurationNanosecondType, DurationSecondType, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, IntervalMonthDayNano, TimeUnit, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyByteArray, PyBytes, PyDict, PyFloat, PyInt, PyList, PyMemoryView, PyString, PyTuple};
use querent_engine::{ScalarValue, list_value};
use querent_flight::time_beyond_calendar;

/// Where the microseconds of `01:02:03.000000` end.
const MICROSECONDS_END: usize = 15;

/// Returns one value of a column. Types that Python has none for become text, as a table shows them.
pub(crate) fn python_value<'py>(py: Python<'py>, column: &dyn Array, row: usize) -> PyResult<Bound<'py, PyAny>> {
    if column.is_null(row) {
        return Ok(py.None().into_bound(py));
    }
    match column.data_type() {
        DataType::Null => Ok(py.None().into_bound(py)),
        DataType::Boolean => column.as_boolean().value(row).into_bound_py_any(py),
        DataType::Int8 => column.as_primitive::<Int8Type>().value(row).into_bound_py_any(py),
        DataType::Int16 => column.as_primitive::<Int16Type>().value(row).into_bound_py_any(py),
        DataType::Int32 => column.as_primitive::<Int32Type>().value(row).into_bound_py_any(py),
        DataType::Int64 => column.as_primitive::<Int64Type>().value(row).into_bound_py_any(py),
        DataType::UInt8 => column.as_primitive::<UInt8Type>().value(row).into_bound_py_any(py),
        DataType::UInt16 => column.as_primitive::<UInt16Type>().value(row).into_bound_py_any(py),
        DataType::UInt32 => column.as_primitive::<UInt32Type>().value(row).into_bound_py_any(py),
        DataType::UInt64 => column.as_primitive::<UInt64Type>().value(row).into_bound_py_any(py),
        DataType::Float16 => column.as_primitive::<Float16Type>().value(row).to_f64().into_bound_py_any(py),
        DataType::Float32 => column.as_primitive::<Float32Type>().value(row).into_bound_py_any(py),
        DataType::Float64 => column.as_primitive::<Float64Type>().value(row).into_bound_py_any(py),
        DataType::Utf8 => column.as_string::<i32>().value(row).into_bound_py_any(py),
        DataType::LargeUtf8 => column.as_string::<i64>().value(row).into_bound_py_any(py),
        DataType::Utf8View => column.as_string_view().value(row).into_bound_py_any(py),
        DataType::Binary => Ok(PyBytes::new(py, column.as_binary::<i32>().value(row)).into_any()),
        DataType::LargeBinary => Ok(PyBytes::new(py, column.as_binary::<i64>().value(row)).into_any()),
        DataType::BinaryView => Ok(PyBytes::new(py, column.as_binary_view().value(row)).into_any()),
        DataType::FixedSizeBinary(_) => Ok(PyBytes::new(py, column.as_fixed_size_binary().value(row)).into_any()),
        DataType::Decimal128(_, _) => decimal(py, column.as_primitive::<Decimal128Type>().value_as_string(row)),
        DataType::Decimal256(_, _) => decimal(py, column.as_primitive::<Decimal256Type>().value_as_string(row)),
        DataType::Date32 => {
            let date = column.as_primitive::<Date32Type>().value_as_date(row);
            day(py, column, row, date.map(|date| date.to_string()))
        }
        DataType::Date64 => {
            let date = column.as_primitive::<Date64Type>().value_as_date(row);
            day(py, column, row, date.map(|date| date.to_string()))
        }
        DataType::Timestamp(unit, zone) => {
            let ticks = match unit {
                TimeUnit::Second => column.as_primitive::<TimestampSecondType>().value(row),
                TimeUnit::Millisecond => column.as_primitive::<TimestampMillisecondType>().value(row),
                TimeUnit::Microsecond => column.as_primitive::<TimestampMicrosecondType>().value(row),
                TimeUnit::Nanosecond => column.as_primitive::<TimestampNanosecondType>().value(row),
            };
            match microseconds_of(*unit, ticks).map(|microseconds| instant(py, microseconds, zone.as_deref())) {
                Some(Ok(instant)) => Ok(instant),
                // Years that Python does not have.
                Some(Err(_)) | None => shown(py, column, row),
            }
        }
        DataType::Duration(unit) => {
            let ticks = match unit {
                TimeUnit::Second => column.as_primitive::<DurationSecondType>().value(row),
                TimeUnit::Millisecond => column.as_primitive::<DurationMillisecondType>().value(row),
                TimeUnit::Microsecond => column.as_primitive::<DurationMicrosecondType>().value(row),
                TimeUnit::Nanosecond => column.as_primitive::<DurationNanosecondType>().value(row),
            };
            match microseconds_of(*unit, ticks) {
                Some(microseconds) => span(py, microseconds),
                None => shown(py, column, row),
            }
        }
        DataType::List(_) => list(py, column.as_list::<i32>().value(row).as_ref()),
        DataType::LargeList(_) => list(py, column.as_list::<i64>().value(row).as_ref()),
        DataType::FixedSizeList(_, _) => list(py, column.as_fixed_size_list().value(row).as_ref()),
        DataType::Struct(_) => {
            let value = PyDict::new(py);
            let column = column.as_struct();
            for (name, field) in column.column_names().into_iter().zip(column.columns()) {
                value.set_item(name, python_value(py, field.as_ref(), row)?)?;
            }
            Ok(value.into_any())
        }
        DataType::Map(_, _) => {
            let value = PyDict::new(py);
            let entries = as_map_array(column).value(row);
            for entry in 0..entries.len() {
                let key = python_value(py, entries.column(0).as_ref(), entry)?;
                // Lists and structs are no keys of Python: their text is, as in JSON.
                let key = if key.hash().is_ok() { key } else { shown(py, entries.column(0).as_ref(), entry)? };
                value.set_item(key, python_value(py, entries.column(1).as_ref(), entry)?)?;
            }
            Ok(value.into_any())
        }
        DataType::Dictionary(_, _) => {
            // Of one row: the keys of all would be read for each.
            let one = column.slice(row, 1);
            let one = one.as_any_dictionary();
            python_value(py, one.values().as_ref(), one.normalized_keys()[0])
        }
        DataType::Time32(_) | DataType::Time64(_) => {
            let text: String = shown(py, column, row)?.extract()?;
            // Python's times have microseconds.
            let microseconds = text.get(..MICROSECONDS_END).unwrap_or(&text);
            py.import("datetime")?.getattr("time")?.call_method1("fromisoformat", (microseconds,))
        }
        _ => shown(py, column, row),
    }
}

/// Returns a parameter of a statement.
pub(crate) fn parameter(value: &Bound<'_, PyAny>) -> PyResult<ScalarValue> {
    if value.is_none() {
        return Ok(ScalarValue::Null);
    }
    // A bool is an int in Python.
    if value.is_instance_of::<PyBool>() {
        return Ok(ScalarValue::Boolean(Some(value.extract()?)));
    }
    if value.is_instance_of::<PyInt>() {
        return match value.extract::<i64>() {
            Ok(number) => Ok(ScalarValue::Int64(Some(number))),
            Err(_) => match value.extract::<u64>() {
                Ok(number) => Ok(ScalarValue::UInt64(Some(number))),
                Err(_) => Err(PyValueError::new_err(
                    "an int parameter is at least -2**63 and below 2**64; give a larger one as a Decimal",
                )),
            },
        };
    }
    if value.is_instance_of::<PyFloat>() {
        return Ok(ScalarValue::Float64(Some(value.extract()?)));
    }
    if value.is_instance_of::<PyString>() {
        return Ok(ScalarValue::Utf8(Some(value.extract()?)));
    }
    if value.is_instance_of::<PyBytes>() {
        return Ok(ScalarValue::Binary(Some(value.extract()?)));
    }
    // Bytes too, though a memoryview can make a list of numbers of itself.
    if value.is_instance_of::<PyByteArray>() || value.is_instance_of::<PyMemoryView>() {
        return parameter(&value.py().get_type::<PyBytes>().call1((value,))?);
    }
    let datetime = value.py().import("datetime")?;
    let is_one = |class: &str| -> PyResult<bool> { value.is_instance(&datetime.getattr(class)?) };
    // A datetime is a date in Python.
    if is_one("datetime")? {
        if is_not_a_time(value)? {
            return Ok(ScalarValue::Null);
        }
        let zone = if value.getattr("tzinfo")?.is_none() { None } else { Some("UTC".into()) };
        // A Timestamp of pandas is a datetime that may have nanoseconds besides.
        let unit = if part(value, "nanosecond")? == 0 { TimeUnit::Microsecond } else { TimeUnit::Nanosecond };
        return value_of_text(&value.call_method0("isoformat")?, &DataType::Timestamp(unit, zone));
    }
    if is_one("date")? {
        return value_of_text(&value.call_method0("isoformat")?, &DataType::Date32);
    }
    if is_one("time")? {
        return value_of_text(&value.call_method0("isoformat")?, &DataType::Time64(TimeUnit::Microsecond));
    }
    if is_one("timedelta")? {
        return interval_parameter(value);
    }
    if value.is_instance(&value.py().import("decimal")?.getattr("Decimal")?)? {
        return decimal_parameter(value);
    }
    // UUIDs are text in tables too.
    if value.is_instance(&value.py().import("uuid")?.getattr("UUID")?)? {
        return Ok(ScalarValue::Utf8(Some(value.str()?.extract()?)));
    }
    if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        let items = value.try_iter()?.map(|item| parameter(&item?)).collect::<PyResult<Vec<_>>>()?;
        return list_value(items).map_err(|error| PyValueError::new_err(format!("a list parameter {error}")));
    }
    if value.get_type().name()? == "NAType" {
        return Ok(ScalarValue::Null);
    }
    if let Some(value) = numpy_time(value)? {
        return Ok(value);
    }
    // Arrays and values of other libraries: NumPy's, Arrow's, polars'.
    for method in ["tolist", "to_pylist", "to_list", "as_py"] {
        if value.hasattr(method)? {
            return parameter(&value.call_method0(method)?);
        }
    }
    // Integers of other libraries, such as NumPy's.
    if value.hasattr("__index__")? {
        return parameter(&value.call_method0("__index__")?);
    }
    // And their fractions.
    if value.hasattr("__float__")? {
        return Ok(ScalarValue::Float64(Some(value.call_method0("__float__")?.extract()?)));
    }
    Err(PyTypeError::new_err(format!(
        "a parameter may be None, bool, int, float, str, bytes, date, datetime, time, timedelta, Decimal, UUID or a list of \
         these, not {}",
        value.get_type().name()?
    )))
}

/// Returns the value of a type that a text of Python says.
fn value_of_text(text: &Bound<'_, PyAny>, data_type: &DataType) -> PyResult<ScalarValue> {
    let text: String = text.extract()?;
    ScalarValue::try_from_string(text.clone(), data_type)
        .map_err(|_| PyValueError::new_err(format!("the parameter {text} is no value of SQL")))
}

/// Returns an instant or a span of NumPy, or an array of them. Those in nanoseconds are bare numbers to Python.
fn numpy_time(value: &Bound<'_, PyAny>) -> PyResult<Option<ScalarValue>> {
    let kind = value.getattr("dtype").and_then(|dtype| dtype.getattr("kind")?.extract::<String>());
    let is_instant = match kind.as_deref() {
        Ok("M") => true,
        Ok("m") => false,
        _ => return Ok(None),
    };
    if value.getattr("ndim")?.extract::<usize>()? > 0 {
        let items = value.try_iter()?.collect::<PyResult<Vec<_>>>()?;
        return parameter(&PyList::new(value.py(), items)?.into_any()).map(Some);
    }
    let plain = value.call_method0("tolist")?;
    if !plain.is_instance_of::<PyInt>() {
        return parameter(&plain).map(Some);
    }
    let value = match is_instant {
        true => value_of_text(value.str()?.as_any(), &DataType::Timestamp(TimeUnit::Nanosecond, None))?,
        false => ScalarValue::IntervalMonthDayNano(Some(IntervalMonthDayNano::new(0, 0, plain.extract()?))),
    };
    Ok(Some(value))
}

/// Whether a datetime is pandas' `NaT`, which is unlike itself.
fn is_not_a_time(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    PyAnyMethods::ne(value, value)
}

/// Returns a part of a time that only pandas' classes have; 0 of others.
fn part(value: &Bound<'_, PyAny>, name: &str) -> PyResult<i64> {
    if value.hasattr(name)? { value.getattr(name)?.extract() } else { Ok(0) }
}

/// Returns the days of a `timedelta`, and the rest of it.
fn interval_parameter(value: &Bound<'_, PyAny>) -> PyResult<ScalarValue> {
    let days: i32 = value.getattr("days")?.extract()?;
    let seconds: i64 = value.getattr("seconds")?.extract()?;
    let microseconds: i64 = value.getattr("microseconds")?.extract()?;
    // Python keeps fewer seconds than a day has, and fewer microseconds than a second.
    let nanoseconds = (seconds * 1_000_000 + microseconds) * 1_000 + part(value, "nanoseconds")?;
    Ok(ScalarValue::IntervalMonthDayNano(Some(IntervalMonthDayNano::new(0, days, nanoseconds))))
}

/// Returns a decimal with the digits that it has.
fn decimal_parameter(value: &Bound<'_, PyAny>) -> PyResult<ScalarValue> {
    const MOST_DIGITS: i64 = 38;
    let refused =
        || PyValueError::new_err(format!("a decimal parameter is finite and has at most {MOST_DIGITS} digits"));
    if !value.call_method0("is_finite")?.is_truthy()? {
        return Err(refused());
    }
    let parts = value.call_method0("as_tuple")?;
    let digits = i64::try_from(parts.getattr("digits")?.len()?).map_err(|_| refused())?;
    let exponent: i64 = parts.getattr("exponent")?.extract()?;
    let scale = exponent.saturating_neg().max(0);
    let precision = digits.saturating_add(exponent.max(0)).max(scale).max(1);
    if precision > MOST_DIGITS {
        return Err(refused());
    }
    let (precision, scale) =
        (u8::try_from(precision).map_err(|_| refused())?, i8::try_from(scale).map_err(|_| refused())?);
    value_of_text(&value.call_method1("__format__", ("f",))?, &DataType::Decimal128(precision, scale))
}

fn list<'py>(py: Python<'py>, items: &dyn Array) -> PyResult<Bound<'py, PyAny>> {
    let items = (0..items.len()).map(|item| python_value(py, items, item)).collect::<PyResult<Vec<_>>>()?;
    Ok(PyList::new(py, items)?.into_any())
}

fn decimal(py: Python<'_>, text: String) -> PyResult<Bound<'_, PyAny>> {
    py.import("decimal")?.getattr("Decimal")?.call1((text,))
}

/// Returns a number of ticks in microseconds, which is what Python's times have; `None` where there are too many.
fn microseconds_of(unit: TimeUnit, ticks: i64) -> Option<i64> {
    match unit {
        TimeUnit::Second => ticks.checked_mul(1_000_000),
        TimeUnit::Millisecond => ticks.checked_mul(1_000),
        TimeUnit::Microsecond => Some(ticks),
        TimeUnit::Nanosecond => Some(ticks.div_euclid(1_000)),
    }
}

/// Returns a timedelta.
fn span(py: Python<'_>, microseconds: i64) -> PyResult<Bound<'_, PyAny>> {
    let options = PyDict::new(py);
    options.set_item("microseconds", microseconds)?;
    py.import("datetime")?.getattr("timedelta")?.call((), Some(&options))
}

/// Returns an instant as a datetime: of its zone, or without one.
fn instant<'py>(py: Python<'py>, microseconds: i64, zone: Option<&str>) -> PyResult<Bound<'py, PyAny>> {
    let since = span(py, microseconds)?;
    let datetime = py.import("datetime")?;
    let epoch = datetime.getattr("datetime")?.call1((1970, 1, 1))?;
    let Some(zone) = zone else { return epoch.call_method1("__add__", (since,)) };
    let utc = datetime.getattr("timezone")?.getattr("utc")?;
    let options = PyDict::new(py);
    options.set_item("tzinfo", &utc)?;
    let instant = epoch.call_method("replace", (), Some(&options))?.call_method1("__add__", (since,))?;
    if matches!(zone, "UTC" | "+00:00" | "Z") {
        return Ok(instant);
    }
    match py.import("zoneinfo")?.getattr("ZoneInfo")?.call1((zone,)) {
        Ok(zone) => instant.call_method1("astimezone", (zone,)),
        // An offset, or a zone that this machine does not know: the same instant in UTC.
        Err(_) => Ok(instant),
    }
}

/// Returns a date by its ISO 8601 text; of a year that Python does not have, as text.
fn day<'py>(py: Python<'py>, column: &dyn Array, row: usize, text: Option<String>) -> PyResult<Bound<'py, PyAny>> {
    let Some(text) = text else {
        return shown(py, column, row);
    };
    match py.import("datetime")?.getattr("date")?.call_method1("fromisoformat", (text,)) {
        Ok(date) => Ok(date),
        Err(_) => shown(py, column, row),
    }
}

fn shown<'py>(py: Python<'py>, column: &dyn Array, row: usize) -> PyResult<Bound<'py, PyAny>> {
    shown_text(column, row)?.into_bound_py_any(py)
}

/// Returns a value as a table shows it.
pub(crate) fn shown_text(column: &dyn Array, row: usize) -> PyResult<String> {
    let options = FormatOptions::default().with_null("NULL");
    let formatter =
        ArrayFormatter::try_new(column, &options).map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok(match formatter.value(row).try_to_string() {
        Ok(text) => text,
        // What DuckDB has beyond all days.
        Err(_) => time_beyond_calendar(column, row).unwrap_or_else(|| formatter.value(row).to_string()),
    })
}
