//! Integers that leave the range of their type, and sums of decimals that do: an error in SQL, as in PostgreSQL and DuckDB, where
//! Arrow's kernels wrap around. KQL's plans do not come here: Kusto wraps around.
//!
//! Decimals of 32 and 64 bits are summed up as those of 128 bits that tables have.
//!
//! What the types have room for stays an operator of DataFusion, which its rules know: sums and products of INTEGERs are BIGINTs,
//! and no sum of INTEGERs leaves that. Only where a BIGINT takes part is the result looked at.

use arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::functions_aggregate::sum::Sum;
use datafusion::logical_expr::binary::BinaryTypeCoercer;
use datafusion::logical_expr::expr::{Alias, Cast, WindowFunctionDefinition};
use datafusion::logical_expr::{AggregateUDF, BinaryExpr, Expr, ExprSchemable, Operator, lit, when};

use super::field_access::own_call;
use crate::functions::{
    CHECKED_ADD, CHECKED_MULTIPLY, CHECKED_SHIFT_LEFT, CHECKED_SHIFT_RIGHT, CHECKED_SUBTRACT, CHECKED_XOR, checked_sum,
};
use crate::tables::external::wide_decimal;

/// The bits of numbers of which 2^31 rows have a sum that is a BIGINT.
const SUMMED_BITS: u32 = 32;
/// The digits of decimals of which 10^10 rows have a sum that is a decimal.
const SUMMED_DIGITS: u8 = 28;

/// Returns whether an expression may be one whose integers leave their range.
pub(super) fn may_overflow(expr: &Expr) -> bool {
    match expr {
        Expr::BinaryExpr(BinaryExpr { op, .. }) => function_of(*op).is_some(),
        Expr::Negative(_) => true,
        Expr::AggregateFunction(call) => sums_up(&call.func),
        Expr::WindowFunction(call) => match &call.fun {
            WindowFunctionDefinition::AggregateUDF(function) => sums_up(function),
            WindowFunctionDefinition::WindowUDF(_) => false,
        },
        _ => false,
    }
}

/// Returns an expression that is an error where its integers leave their range.
pub(super) fn with_checked_integers(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => checked_operation(*left, op, *right, schema),
        Expr::Negative(operand) => checked_negative(*operand, schema),
        Expr::AggregateFunction(mut call) => {
            let is_wider = sums_up(&call.func) && widen_decimals(&mut call.params.args, schema);
            let is_checked = is_sum(&call.func) && needs_checked_sum(&call.params.args, schema);
            if is_checked {
                call.func = checked_sum();
            }
            Ok(Transformed::new_transformed(Expr::AggregateFunction(call), is_wider || is_checked))
        }
        Expr::WindowFunction(mut call) => {
            let function = match &call.fun {
                WindowFunctionDefinition::AggregateUDF(function) => function,
                WindowFunctionDefinition::WindowUDF(_) => return Ok(Transformed::no(Expr::WindowFunction(call))),
            };
            let is_wider = sums_up(function) && widen_decimals(&mut call.params.args, schema);
            // DataFusion 54's sum of distinct values of a sliding window takes a null for a zero.
            let is_checked = is_sum(function) && (call.params.distinct || needs_checked_sum(&call.params.args, schema));
            if is_checked {
                call.fun = WindowFunctionDefinition::AggregateUDF(checked_sum());
            }
            Ok(Transformed::new_transformed(Expr::WindowFunction(call), is_wider || is_checked))
        }
        other => Ok(Transformed::no(other)),
    }
}

fn function_of(op: Operator) -> Option<&'static str> {
    match op {
        Operator::Plus => Some(CHECKED_ADD),
        Operator::Minus => Some(CHECKED_SUBTRACT),
        Operator::Multiply => Some(CHECKED_MULTIPLY),
        Operator::BitwiseShiftLeft => Some(CHECKED_SHIFT_LEFT),
        Operator::BitwiseShiftRight => Some(CHECKED_SHIFT_RIGHT),
        Operator::BitwiseXor => Some(CHECKED_XOR),
        _ => None,
    }
}

fn is_sum(function: &AggregateUDF) -> bool {
    function.inner().is::<Sum>()
}

/// Whether an aggregate has a sum that may wrap around.
fn sums_up(function: &AggregateUDF) -> bool {
    is_sum(function) || function.name() == "avg"
}

/// Casts narrow decimals among the arguments of an aggregate to wide ones. Returns whether there were any.
fn widen_decimals(arguments: &mut [Expr], schema: &DFSchema) -> bool {
    let mut is_wider = false;
    for argument in arguments {
        let Ok(found) = argument.get_type(schema) else { continue };
        let wide = wide_decimal(&found);
        if wide != found {
            *argument = Expr::Cast(Cast::new(Box::new(std::mem::take(argument)), wide));
            is_wider = true;
        }
    }
    is_wider
}

fn checked_operation(left: Expr, op: Operator, right: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let whole = |left, right| Expr::BinaryExpr(BinaryExpr::new(Box::new(left), op, Box::new(right)));
    let types = (left.get_type(schema), right.get_type(schema));
    let (Some(name), (Ok(left_type), Ok(right_type))) = (function_of(op), types) else {
        return Ok(Transformed::no(whole(left, right)));
    };
    if !left_type.is_integer() || !right_type.is_integer() {
        return Ok(Transformed::no(whole(left, right)));
    }
    let Ok(result) = BinaryTypeCoercer::new(&left_type, &op, &right_type).get_result_type() else {
        return Ok(Transformed::no(whole(left, right)));
    };
    let as_type = |expr: Expr, found: &DataType, wanted: &DataType| match found == wanted {
        true => expr,
        false => Expr::Cast(Cast::new(Box::new(expr), wanted.clone())),
    };
    if matches!(op, Operator::BitwiseShiftLeft | Operator::BitwiseShiftRight | Operator::BitwiseXor) {
        // Bits keep their type, and have to fit it.
        let wide = if result.is_unsigned_integer() { DataType::UInt64 } else { DataType::Int64 };
        // It stands there twice then: shifts within shifts would double at each level, and a number drawn twice is two.
        let is_twice = op == Operator::BitwiseShiftRight
            && !right.is_volatile()
            && !right.exists(|part| Ok(matches!(part, Expr::ScalarFunction(call) if call.name() == name)))?;
        let narrow = narrow_bits(&left_type, &right, &right_type).filter(|_| is_twice);
        let right = as_type(right, &right_type, &wide);
        let right = match narrow {
            Some(width) => when(right.clone().gt_eq(lit(width)), lit(i64::from(i64::BITS))).otherwise(right)?,
            None => right,
        };
        let sides = vec![as_type(left, &left_type, &wide), right];
        return Ok(Transformed::yes(as_type(own_call(name, sides)?, &wide, &result)));
    }
    let (left_bits, right_bits) = (bits(&left, schema), bits(&right, schema));
    let needed = match op {
        Operator::Multiply => left_bits + right_bits,
        _ => left_bits.max(right_bits) + 1,
    };
    let has_room = match result {
        DataType::Int64 => needed < 63,
        DataType::UInt64 => op != Operator::Minus && needed < 64,
        _ => true,
    };
    if has_room {
        return Ok(Transformed::no(whole(left, right)));
    }
    let (left, right) = (as_type(left, &left_type, &result), as_type(right, &right_type, &result));
    Ok(Transformed::yes(match left {
        // A chain of one operator is one call.
        Expr::ScalarFunction(mut call) if call.name() == name => {
            call.args.push(right);
            Expr::ScalarFunction(call)
        }
        left => own_call(name, vec![left, right])?,
    }))
}

/// Returns the bits of a signed integer that is shifted, where it has fewer than a BIGINT: shifted by as many, nothing is left of it,
/// also of its sign. `None` where it is widened to the type of the number that it is shifted by.
fn narrow_bits(shifted: &DataType, by: &Expr, by_type: &DataType) -> Option<i64> {
    let bits = match shifted {
        DataType::Int8 => 8,
        DataType::Int16 => 16,
        DataType::Int32 => 32,
        _ => return None,
    };
    let is_as_narrow = by_type.primitive_width().is_some_and(|bytes| bytes * 8 <= bits);
    (is_as_narrow || matches!(by, Expr::Literal(..))).then_some(bits as i64)
}

/// A number and its negative are of one type; only the least one has none.
fn checked_negative(operand: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let found = operand.get_type(schema).unwrap_or(DataType::Null);
    let as_type = |expr, wanted| Expr::Cast(Cast::new(Box::new(expr), wanted));
    match found {
        DataType::Int64 if bits(&operand, schema) >= 63 => {
            Ok(Transformed::yes(own_call(CHECKED_SUBTRACT, vec![lit(0_i64), operand])?))
        }
        DataType::Int8 | DataType::Int16 | DataType::Int32 => {
            let negative = Expr::Negative(Box::new(as_type(operand, DataType::Int64)));
            Ok(Transformed::yes(as_type(negative, found)))
        }
        _ => Ok(Transformed::no(Expr::Negative(Box::new(operand)))),
    }
}

fn needs_checked_sum(arguments: &[Expr], schema: &DFSchema) -> bool {
    arguments.iter().any(|argument| match argument.get_type(schema) {
        Ok(DataType::Decimal128(digits, _)) => digits > SUMMED_DIGITS,
        // Nothing is out of the range of doubles; the sum has one NaN.
        Ok(found) if found.is_floating() => true,
        Ok(found) => found.is_integer() && bits(argument, schema) > SUMMED_BITS,
        Err(_) => false,
    })
}

/// Returns the bits that an integer needs at most, without its sign: it is from -2^bits to 2^bits.
fn bits(expr: &Expr, schema: &DFSchema) -> u32 {
    let of_type = match expr.get_type(schema) {
        Ok(DataType::Int8) => 7,
        Ok(DataType::UInt8) => 8,
        Ok(DataType::Int16) => 15,
        Ok(DataType::UInt16) => 16,
        Ok(DataType::Int32) => 31,
        Ok(DataType::UInt32) => 32,
        Ok(DataType::Int64) => 63,
        _ => 64,
    };
    let of_value = match expr {
        Expr::Literal(value, _) => literal_bits(value).unwrap_or(of_type),
        Expr::Alias(Alias { expr, .. }) | Expr::Negative(expr) => bits(expr, schema),
        Expr::Cast(cast) if cast.expr.get_type(schema).is_ok_and(|found| found.is_integer()) => {
            bits(&cast.expr, schema)
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            let (left, right) = (bits(left, schema), bits(right, schema));
            match op {
                Operator::Plus | Operator::Minus => left.max(right) + 1,
                Operator::Multiply => left + right,
                // A remainder is not larger than either.
                Operator::Modulo => left.min(right),
                Operator::Divide => left,
                _ => of_type,
            }
        }
        _ => of_type,
    };
    of_value.min(of_type)
}

fn literal_bits(value: &ScalarValue) -> Option<u32> {
    let number = match value {
        ScalarValue::UInt64(number) => return number.map(|number| u64::BITS - number.leading_zeros()),
        other => match other.cast_to(&DataType::Int64).ok()? {
            ScalarValue::Int64(number) => number?,
            _ => return None,
        },
    };
    // The least number needs as many bits as the one behind the largest.
    Some(if number == i64::MIN { 63 } else { u64::BITS - number.unsigned_abs().leading_zeros() })
}
