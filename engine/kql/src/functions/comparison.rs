//! `==`, `!=`, `<` and their like. Null is unequal to every value, and whether two nulls are equal is null. A
//! comparison by order with null is null.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Datum, Scalar, StringViewArray};
use arrow::buffer::{BooleanBuffer, NullBuffer};
use arrow::compute::kernels::cmp;
use arrow::datatypes::{ArrowPrimitiveType, Decimal256Type, Float64Type, Int64Type};
use datafusion::error::Result;
use serde_json::Value;

use super::arguments::{FunctionArguments, TypedColumn};
use super::conversion;
use crate::ast::BinaryOperator;
use crate::types::KqlType;

/// How two operands are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Domain {
    /// Both are converted to this type.
    Typed(KqlType),
    /// By the content of dynamic values.
    Content,
}

/// Returns how operands of these types are compared, or `None` if they cannot be. Of two dynamic values nothing says which
/// comparison is meant: Kusto asks for a conversion of one of them.
pub(super) fn domain(left: KqlType, right: KqlType) -> Option<Domain> {
    use KqlType::{Bool, DateTime, Decimal, Dynamic, Guid, Int, Long, Real, String, TimeSpan};
    let domain = match (left, right) {
        (Dynamic, Dynamic) => return None,
        // Strings in a dynamic value have to be parsed as times.
        (Dynamic, DateTime) | (DateTime, Dynamic) => Domain::Typed(DateTime),
        (Dynamic, TimeSpan) | (TimeSpan, Dynamic) => Domain::Typed(TimeSpan),
        (Dynamic, String | Guid) | (String | Guid, Dynamic) => Domain::Typed(String),
        (Dynamic, _) | (_, Dynamic) => Domain::Content,
        (String | Guid, String | Guid) => Domain::Typed(String),
        (DateTime, DateTime) | (TimeSpan, TimeSpan) => Domain::Typed(left),
        (Bool | Int | Long, Bool | Int | Long) => Domain::Typed(Long),
        (Decimal, Bool | Int | Long | Decimal) | (Bool | Int | Long, Decimal) => Domain::Typed(Decimal),
        (Real, Bool | Int | Long | Real | Decimal) | (Bool | Int | Long | Decimal, Real) => Domain::Typed(Real),
        _ => return None,
    };
    Some(domain)
}

/// Returns how `==` and `!=` compare operands of these types. A string is compared with another value by what it
/// converts to; one that converts to nothing is unequal.
pub(super) fn equality_domain(left: KqlType, right: KqlType) -> Option<Domain> {
    match (left, right) {
        (KqlType::String, other) | (other, KqlType::String) if other.is_numeric() => {
            Some(Domain::Typed(if other == KqlType::Int { KqlType::Long } else { other }))
        }
        (KqlType::String, other) | (other, KqlType::String)
            if matches!(other, KqlType::Bool | KqlType::DateTime | KqlType::TimeSpan) =>
        {
            Some(Domain::Typed(other))
        }
        _ => domain(left, right),
    }
}

/// Whether `<` and its like take operands of these types. Strings and guids have no order.
pub(super) fn has_order(left: KqlType, right: KqlType) -> bool {
    use KqlType::{Bool, DateTime, Dynamic, TimeSpan};
    match (left, right) {
        (DateTime, DateTime) | (TimeSpan, TimeSpan) => true,
        (Dynamic, other) | (other, Dynamic) => other.is_numeric() || matches!(other, DateTime | TimeSpan),
        (left, right) => [left, right].iter().all(|side| *side == Bool || side.is_numeric()),
    }
}

/// Computes a batch of one of the six comparisons.
pub(super) fn compare(operator: BinaryOperator, arguments: &FunctionArguments) -> Result<ArrayRef> {
    compare_arguments(operator, arguments, 0, 1)
}

fn compare_arguments(
    operator: BinaryOperator,
    arguments: &FunctionArguments,
    left: usize,
    right: usize,
) -> Result<ArrayRef> {
    let Some(domain) = equality_domain(arguments.kql_type(left), arguments.kql_type(right)) else {
        return Err(arguments.error("its operands cannot be compared"));
    };
    let result = match domain {
        Domain::Content => content(operator, arguments, left, right)?,
        Domain::Typed(KqlType::String) => strings(operator, arguments, left, right)?,
        Domain::Typed(KqlType::Real) => primitives::<Float64Type>(operator, arguments, left, right, KqlType::Real)?,
        Domain::Typed(KqlType::Decimal) => {
            primitives::<Decimal256Type>(operator, arguments, left, right, KqlType::Decimal)?
        }
        Domain::Typed(kql_type) => primitives::<Int64Type>(operator, arguments, left, right, kql_type)?,
    };
    Ok(Arc::new(result))
}

/// Whether the first argument is from the second to the third, both included. A timespan as the third is relative to
/// the second.
pub(super) fn between(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let from = compare_arguments(BinaryOperator::GreaterOrEqual, arguments, 0, 1)?;
    let to = if arguments.kql_type(0) == KqlType::DateTime && arguments.kql_type(2) == KqlType::TimeSpan {
        within(arguments)?
    } else {
        compare_arguments(BinaryOperator::LessOrEqual, arguments, 0, 2)?
    };
    Ok(Arc::new(arrow::compute::and_kleene(from.as_boolean(), to.as_boolean())?))
}

fn within(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let (time, start, length) = (arguments.datetimes(0)?, arguments.datetimes(1)?, arguments.timespans(2)?);
    arguments.make_bools(|row| Some(time.get(row)? <= start.get(row)?.saturating_add(length.get(row)?)))
}

fn primitives<T: ArrowPrimitiveType>(
    operator: BinaryOperator,
    arguments: &FunctionArguments,
    left: usize,
    right: usize,
    kql_type: KqlType,
) -> Result<BooleanArray>
where
    T::Native: PartialOrd,
{
    let read = |index: usize| {
        let array = conversion::convert(arguments.kql_type(index), arguments.array(index)?, kql_type)?;
        if kql_type == KqlType::Bool { conversion::convert(kql_type, &array, KqlType::Long) } else { Ok(array) }
    };
    let (left_array, right_array) = (read(left)?, read(right)?);
    let (left_values, right_values) =
        (left_array.as_primitive::<T>().values(), right_array.as_primitive::<T>().values());
    let rows = arguments.rows;
    let values = match (arguments.is_constant(left), arguments.is_constant(right)) {
        (false, false) => ordered(operator, rows, |row| left_values[row], |row| right_values[row]),
        (true, true) => ordered(operator, rows, |_| left_values[0], |_| right_values[0]),
        (false, true) => {
            let constant = right_values[0];
            ordered(operator, rows, |row| left_values[row], |_| constant)
        }
        (true, false) => {
            let constant = left_values[0];
            ordered(operator, rows, |_| constant, |row| right_values[row])
        }
    };
    let nulls = |array: &ArrayRef, index: usize| valid_rows(array, arguments.is_constant(index), rows);
    Ok(with_nulls(operator, values, nulls(&left_array, left), nulls(&right_array, right)))
}

/// NaN is unequal to everything and has no order with anything.
fn ordered<T: PartialOrd>(
    operator: BinaryOperator,
    rows: usize,
    left: impl Fn(usize) -> T,
    right: impl Fn(usize) -> T,
) -> BooleanBuffer {
    match operator {
        BinaryOperator::NotEqual => BooleanBuffer::collect_bool(rows, |row| left(row) != right(row)),
        BinaryOperator::Less => BooleanBuffer::collect_bool(rows, |row| left(row) < right(row)),
        BinaryOperator::LessOrEqual => BooleanBuffer::collect_bool(rows, |row| left(row) <= right(row)),
        BinaryOperator::Greater => BooleanBuffer::collect_bool(rows, |row| left(row) > right(row)),
        BinaryOperator::GreaterOrEqual => BooleanBuffer::collect_bool(rows, |row| left(row) >= right(row)),
        _ => BooleanBuffer::collect_bool(rows, |row| left(row) == right(row)),
    }
}

fn valid_rows(array: &ArrayRef, constant: bool, rows: usize) -> Option<NullBuffer> {
    if constant {
        return array.is_null(0).then(|| NullBuffer::new_null(rows));
    }
    array.nulls().filter(|nulls| nulls.null_count() > 0).cloned()
}

fn with_nulls(
    operator: BinaryOperator,
    values: BooleanBuffer,
    left: Option<NullBuffer>,
    right: Option<NullBuffer>,
) -> BooleanArray {
    let both = NullBuffer::union(left.as_ref(), right.as_ref());
    let Some(both) = both else { return BooleanArray::new(values, None) };
    let values = match operator {
        BinaryOperator::Equal => &values & both.inner(),
        BinaryOperator::NotEqual => &values | &!both.inner(),
        _ => return BooleanArray::new(values, Some(both)),
    };
    let either = match (left, right) {
        (Some(left), Some(right)) => Some(NullBuffer::new(left.inner() | right.inner())),
        _ => None,
    };
    BooleanArray::new(values, either)
}

fn strings(operator: BinaryOperator, arguments: &FunctionArguments, left: usize, right: usize) -> Result<BooleanArray> {
    let (left, right) = (without_nulls(arguments.string_views(left)?), without_nulls(arguments.string_views(right)?));
    if left.constant && right.constant {
        let values = ordered(operator, arguments.rows, |_| left.array.value(0), |_| right.array.value(0));
        return Ok(BooleanArray::new(values, None));
    }
    let (left, right) = (datum(left), datum(right));
    let compared = match operator {
        BinaryOperator::NotEqual => cmp::neq(left.as_ref(), right.as_ref()),
        BinaryOperator::Less => cmp::lt(left.as_ref(), right.as_ref()),
        BinaryOperator::LessOrEqual => cmp::lt_eq(left.as_ref(), right.as_ref()),
        BinaryOperator::Greater => cmp::gt(left.as_ref(), right.as_ref()),
        BinaryOperator::GreaterOrEqual => cmp::gt_eq(left.as_ref(), right.as_ref()),
        _ => cmp::eq(left.as_ref(), right.as_ref()),
    };
    Ok(compared?)
}

fn without_nulls(strings: TypedColumn<StringViewArray>) -> TypedColumn<StringViewArray> {
    if strings.array.null_count() == 0 {
        return strings;
    }
    let array = StringViewArray::from_iter_values(strings.array.iter().map(Option::unwrap_or_default));
    TypedColumn { array, constant: strings.constant }
}

fn datum(strings: TypedColumn<StringViewArray>) -> Box<dyn Datum> {
    if strings.constant { Box::new(Scalar::new(strings.array)) } else { Box::new(strings.array) }
}

fn content(operator: BinaryOperator, arguments: &FunctionArguments, left: usize, right: usize) -> Result<BooleanArray> {
    let (left, right) = (arguments.dynamics(left)?, arguments.dynamics(right)?);
    let compare = |row| {
        let (left, right) = (left.get(row), right.get(row));
        let equal = || same(&left, &right);
        match (operator, left.is_null(), right.is_null()) {
            (BinaryOperator::Equal | BinaryOperator::NotEqual, true, true) => None,
            (BinaryOperator::Equal, ..) => Some(equal()),
            (BinaryOperator::NotEqual, ..) => Some(!equal()),
            (_, true, _) | (_, _, true) => None,
            _ => order(&left, &right).map(|order| match operator {
                BinaryOperator::Less => order.is_lt(),
                BinaryOperator::LessOrEqual => order.is_le(),
                BinaryOperator::Greater => order.is_gt(),
                _ => order.is_ge(),
            }),
        }
    };
    Ok((0..arguments.rows).map(compare).collect())
}

/// Whether two dynamic values are equal. `1` and `1.0` are.
pub(super) fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(_) | Value::Bool(_), Value::Number(_) | Value::Bool(_)) => {
            order(left, right) == Some(Ordering::Equal)
        }
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| same(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left.iter().all(|(name, value)| right.get(name).is_some_and(|other| same(value, other)))
        }
        _ => left == right,
    }
}

/// Compares two scalars of one kind.
pub(super) fn order(left: &Value, right: &Value) -> Option<Ordering> {
    match (left, right) {
        (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
        _ => match (whole(left), whole(right)) {
            (Some(left), Some(right)) => Some(left.cmp(&right)),
            _ => real(left)?.partial_cmp(&real(right)?),
        },
    }
}

fn whole(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| value.as_bool().map(i64::from))
}

fn real(value: &Value) -> Option<f64> {
    value.as_f64().or_else(|| value.as_bool().map(|truth| f64::from(u8::from(truth))))
}
