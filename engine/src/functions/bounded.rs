//! Functions whose result can be any size whatever the size of their arguments: `repeat('x', 2000000000)`,
//! `range(1, 1000000000)`. They allocate in one call, past every memory pool, so what they would make is
//! computed first and refused beyond a bound.

use std::sync::Arc;

use arrow::datatypes::{FieldRef, IntervalMonthDayNanoType};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::{ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF};

use super::wrapped_functions::{FunctionOverride, WrappedFunction};
use crate::error::EngineError;
use crate::limits::{row_bytes, scalar_bytes};

/// The largest result of one call, in bytes. A call sees one batch.
const MAX_BYTES: i128 = 256 << 20;
/// The most that every value of a type may take, a null as well.
const MAX_FIXED_BYTES: usize = 4 << 20;

/// Returns the function, with a bound if its results can be of any size.
pub(super) fn bounded(function: Arc<ScalarUDF>) -> Arc<ScalarUDF> {
    let growth = match function.name() {
        "repeat" => Growth::Repeat,
        "lpad" | "rpad" => Growth::Pad,
        "array_repeat" => Growth::ArrayRepeat,
        "array_resize" => Growth::ArrayResize,
        "range" | "generate_series" => Growth::Series,
        "replace" => Growth::Replace,
        "levenshtein" => Growth::Product,
        "arrow_cast" | "arrow_try_cast" | "arrow_field" => Growth::TypeName,
        _ => return function,
    };
    WrappedFunction::new_udf(function, growth)
}

/// Returns how many bytes a call makes, and the function without its bound, which was looked at with that; `None` where
/// the size of the arguments says as much, or nothing of the kind is made. Errors: `invalid_value` where it is too
/// much.
pub(crate) fn counted_call<'f>(
    function: &'f ScalarUDF,
    args: &ScalarFunctionArgs,
) -> Result<Option<(usize, &'f ScalarUDF)>> {
    match WrappedFunction::<Growth>::unwrapped(function) {
        Some((_, Growth::Replace | Growth::Product | Growth::TypeName)) | None => Ok(None),
        Some((inner, growth)) => Ok(Some((growth.measure(inner.name(), args)?, inner.as_ref()))),
    }
}

/// How a function's result grows with its arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Growth {
    /// The first argument, repeated as often as the second says.
    Repeat,
    /// As many characters as the second argument says.
    Pad,
    /// As `Repeat`, as elements of an array.
    ArrayRepeat,
    /// As many elements as the second argument says, each as large as the third.
    ArrayResize,
    /// The third argument for each second in the first.
    Replace,
    /// A table of both arguments' characters; the time of a call grows with it too.
    Product,
    /// From, to, step.
    Series,
    /// Nothing; the text of a type is parsed recursively while the call is planned.
    TypeName,
}

impl Growth {
    /// Returns the bytes of the result for one row's arguments.
    fn bytes(self, args: &[ScalarValue]) -> i128 {
        const ELEMENT_BYTES: i128 = 8;
        const MAX_CHARACTER_BYTES: i128 = 4;
        let count = || args.get(1).and_then(position).unwrap_or(0).max(0);
        match self {
            Growth::Repeat | Growth::ArrayRepeat => count() * args.first().map_or(0, value_bytes),
            Growth::Pad => {
                let is_ascii = |value: &ScalarValue| value.try_as_str().flatten().is_none_or(str::is_ascii);
                count() * if args.iter().all(is_ascii) { 1 } else { MAX_CHARACTER_BYTES }
            }
            Growth::ArrayResize => count() * args.get(2).map_or(0, value_bytes).max(ELEMENT_BYTES),
            Growth::Replace => {
                let bytes = |index: usize| args.get(index).map_or(0, value_bytes);
                bytes(0) + bytes(0) / bytes(1).max(1) * bytes(2)
            }
            Growth::Product => args.iter().take(2).map(value_bytes).product(),
            Growth::Series => series_rows(args).unwrap_or(0) * ELEMENT_BYTES,
            Growth::TypeName => 0,
        }
    }
}

fn value_bytes(value: &ScalarValue) -> i128 {
    match value {
        ScalarValue::Utf8(Some(text)) | ScalarValue::Utf8View(Some(text)) | ScalarValue::LargeUtf8(Some(text)) => {
            text.len() as i128
        }
        other => other.size().max(scalar_bytes(other)) as i128,
    }
}

/// Returns how many rows or elements a series has; `None` where its arguments are not numbers or points in time, which the
/// functions refuse themselves.
pub(crate) fn series_rows(args: &[ScalarValue]) -> Option<i128> {
    let values: Vec<i128> = args.iter().map(position).collect::<Option<_>>()?;
    let (start, end, step) = match values.as_slice() {
        [end] => (0, *end, 1),
        [start, end] => (*start, *end, 1),
        [start, end, step] => (*start, *end, *step),
        _ => return None,
    };
    Some((end - start).checked_div(step)?.max(0) + 1)
}

/// Returns a number as itself, and a time or an interval in nanoseconds.
fn position(value: &ScalarValue) -> Option<i128> {
    const DAY: i128 = 86_400_000_000_000;
    const SHORTEST_MONTH: i128 = 28 * DAY;
    match value {
        ScalarValue::Int64(Some(value)) => Some(i128::from(*value)),
        ScalarValue::Int32(Some(value)) => Some(i128::from(*value)),
        ScalarValue::UInt64(Some(value)) => Some(i128::from(*value)),
        ScalarValue::Date32(Some(days)) => Some(i128::from(*days) * DAY),
        ScalarValue::TimestampSecond(Some(value), _) => Some(i128::from(*value) * 1_000_000_000),
        ScalarValue::TimestampMillisecond(Some(value), _) => Some(i128::from(*value) * 1_000_000),
        ScalarValue::TimestampMicrosecond(Some(value), _) => Some(i128::from(*value) * 1_000),
        ScalarValue::TimestampNanosecond(Some(value), _) => Some(i128::from(*value)),
        ScalarValue::IntervalMonthDayNano(Some(interval)) => {
            let (months, days, nanoseconds) = IntervalMonthDayNanoType::to_parts(*interval);
            let signs = [i64::from(months).signum(), i64::from(days).signum(), nanoseconds.signum()];
            if signs.contains(&1) && signs.contains(&-1) {
                // Months differ in length, so a step of this kind may be as short as can be, or none at all.
                return Some(1);
            }
            Some(i128::from(months) * SHORTEST_MONTH + i128::from(days) * DAY + i128::from(nanoseconds))
        }
        _ => None,
    }
}

/// Returns whether a replacement of one constant string by another makes no string longer.
fn shrinks(args: &[ColumnarValue]) -> bool {
    match args {
        [_, ColumnarValue::Scalar(from), ColumnarValue::Scalar(to)] => {
            !from.is_null() && value_bytes(to) <= value_bytes(from)
        }
        _ => false,
    }
}

/// Whether the text of a type nests more types in one another than anybody writes.
fn nests_deeply(value: &ScalarValue) -> bool {
    const MAX_TYPE_BYTES: usize = 64 << 10;
    const MAX_TYPE_BRACKETS: usize = 128;
    let is_deep = |text: &str| text.len() > MAX_TYPE_BYTES || text.matches(['(', '<']).count() > MAX_TYPE_BRACKETS;
    value.try_as_str().flatten().is_some_and(is_deep)
}

impl Growth {
    /// Returns what a call of a function will make, in bytes. Errors: it is more than [`MAX_BYTES`].
    fn measure(self, function: &str, args: &ScalarFunctionArgs) -> Result<usize> {
        if self == Growth::TypeName {
            return Ok(0);
        }
        let all_scalar = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        if self == Growth::Replace && shrinks(&args.args) {
            return Ok(0);
        }
        let rows = if all_scalar { 1 } else { args.number_rows };
        let mut bytes: i128 = 0;
        for row in 0..rows {
            let values = args.args.iter().map(|arg| match arg {
                ColumnarValue::Scalar(value) => Ok(value.clone()),
                ColumnarValue::Array(array) => ScalarValue::try_from_array(array, row),
            });
            bytes += self.bytes(&values.collect::<Result<Vec<_>>>()?);
            if bytes > MAX_BYTES {
                let message = format!("{function} makes at most {} MiB at a time; ask for less", MAX_BYTES >> 20);
                return Err(EngineError::InvalidValue { message }.into());
            }
        }
        Ok(usize::try_from(bytes).unwrap_or_default())
    }
}

impl FunctionOverride for Growth {
    fn return_field(&self, inner: &ScalarUDF, args: ReturnFieldArgs) -> Result<FieldRef> {
        let type_name = args.scalar_arguments.get(1).copied().flatten();
        if *self == Growth::TypeName && type_name.is_some_and(nests_deeply) {
            return Err(EngineError::too_deep().into());
        }
        let field = inner.return_field_from_args(args)?;
        if *self == Growth::TypeName && row_bytes(field.data_type()) > MAX_FIXED_BYTES {
            let message = format!(
                "{}: a value of that type takes more than {} MiB, whatever is in it; name a shorter length",
                inner.name(),
                MAX_FIXED_BYTES >> 20
            );
            return Err(EngineError::InvalidValue { message }.into());
        }
        Ok(field)
    }

    fn invoke(&self, inner: &ScalarUDF, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        self.measure(inner.name(), &args)?;
        inner.invoke_with_args(args)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_measured_before_they_are_made() {
        let text = ScalarValue::from("ab");
        assert_eq!(Growth::Repeat.bytes(&[text.clone(), ScalarValue::from(10_i64)]), 20);
        assert_eq!(Growth::Repeat.bytes(&[text.clone(), ScalarValue::from(-1_i64)]), 0);
        assert_eq!(Growth::Pad.bytes(&[text.clone(), ScalarValue::from(7_i64)]), 7);
        assert_eq!(Growth::Pad.bytes(&[text, ScalarValue::from(7_i64), ScalarValue::from("é")]), 28);
        let (long, x) = (ScalarValue::from("a".repeat(1_000)), ScalarValue::from("x".repeat(500)));
        assert_eq!(Growth::Replace.bytes(&[long.clone(), ScalarValue::from("a"), x.clone()]), 501_000);
        assert_eq!(Growth::ArrayResize.bytes(&[ScalarValue::Null, ScalarValue::from(3_i64), x.clone()]), 1_500);
        assert_eq!(Growth::Product.bytes(&[long, x]), 500_000);
        assert_eq!(Growth::Series.bytes(&[ScalarValue::from(0_i64), ScalarValue::from(9_i64)]), 80);
    }

    #[test]
    fn series_are_counted() {
        let int = |value: i64| ScalarValue::from(value);
        assert_eq!(series_rows(&[int(10)]), Some(11));
        assert_eq!(series_rows(&[int(0), int(i64::MAX)]), Some(i128::from(i64::MAX) + 1));
        assert_eq!(series_rows(&[int(10), int(0), int(-2)]), Some(6));
        assert_eq!(series_rows(&[int(1), int(5), int(0)]), None);
        assert_eq!(series_rows(&[ScalarValue::from("a")]), None);
        let (start, end) =
            (ScalarValue::TimestampNanosecond(Some(0), None), ScalarValue::TimestampNanosecond(Some(1 << 60), None));
        let step = ScalarValue::IntervalMonthDayNano(Some(IntervalMonthDayNanoType::make_value(1, -28, 0)));
        assert!(series_rows(&[start, end, step]).unwrap() > 1 << 59);
    }
}
