//! The types in which numbers meet. A double beside a decimal makes a double, and decimals are divided as doubles, as in DuckDB:
//! DataFusion turns both into decimals of fifteen digits, which a large, small or infinite double has no place in, and keeps four
//! digits of a quotient. Narrow integers are added as wide ones, since Arrow's sums wrap around. A date beside a timestamp is
//! one of microseconds: DataFusion's is of nanoseconds, which reach from 1677 to 2262. Timestamps beside others become those with
//! more digits, which DataFusion would take from the others.

pub(super) mod meeting_types;
mod set_operations;

use std::sync::Arc;

use arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType, Decimal128Type, Decimal256Type, DecimalType, TimeUnit};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::{
    AggregateFunction, Case, Cast, InList, InSubquery, ScalarFunction, SetComparison,
};
use datafusion::logical_expr::{
    Between, BinaryExpr, Expr, ExprSchemable, Join, LogicalPlan, LogicalPlanBuilder, Operator, Projection, Subquery,
    Union, Values, lit,
};

use self::meeting_types::{
    argument_type, common_type, compared_type, gives_way, is_date, is_other_number, meeting_type, other_lists,
    time_of_all_digits, union_type, widest_number,
};
use self::set_operations::{is_set_operation, with_set_types};
use super::elapsed_times::compares;
use super::exact_times::bound_of_column;
use super::field_access::own_call;
use super::in_subqueries::with_values_as;
use crate::error::EngineError;
use crate::functions::{QUOTIENT, conversion_of, converted, value_conversion};
use crate::type_names::sql_name;

/// The functions whose arguments have one type.
const OF_ONE_TYPE: [&str; 7] = ["coalesce", "greatest", "least", "nullif", "nvl", "nvl2", "make_array"];
/// The functions that are computed with doubles whatever they are given.
const OF_DOUBLES: [&str; 1] = ["power"];

/// The aggregates of numbers, and of nothing else.
const OF_NUMBERS: [&str; 2] = ["sum", "stddev"];
/// The aggregates whose result lies between decimals, and is a double.
const MIDDLES: [&str; 2] = ["avg", "median"];
/// The aggregate that counts integers, texts and times.
const APPROXIMATE_COUNT: &str = "approx_distinct";
/// The functions whose second argument is a timestamp, also where it is written as a date.
const OF_TIMES: [&str; 2] = ["date_trunc", "date_bin"];

/// The functions whose result has so many digits behind its point: a whole number stays one of its type.
const TO_PLACES: [&str; 2] = ["round", "trunc"];
const ROUND: &str = "round";
/// A decimal for every whole number of 64 bits.
const WHOLE_NUMBERS: DataType = DataType::Decimal128(20, 0);
/// The functions whose result is the next whole number on one side.
const TO_WHOLE: [&str; 2] = ["ceil", "floor"];

fn is_whole(expr: &Expr, schema: &DFSchema) -> bool {
    expr.get_type(schema).is_ok_and(|found| found.is_integer())
}

/// Returns a whole number to so many places: a double would not have the digits of those beyond 2^53.
fn to_places(call: ScalarFunction, schema: &DFSchema) -> Result<Expr> {
    let ScalarFunction { func, mut args } = call;
    let whole = args[0].get_type(schema)?;
    let keeps_all = match args.get(1) {
        None => true,
        Some(Expr::Literal(places, _)) => {
            matches!(places.cast_to(&DataType::Int64), Ok(ScalarValue::Int64(Some(places))) if places >= 0)
        }
        Some(_) => false,
    };
    if keeps_all {
        return Ok(args.swap_remove(0));
    }
    args[0] = cast(std::mem::take(&mut args[0]), WHOLE_NUMBERS);
    Ok(cast(Expr::ScalarFunction(ScalarFunction { func, args }), whole))
}

/// Returns whether types of numbers may meet in an expression.
pub(super) fn may_mix_numbers(expr: &Expr) -> bool {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            let is_plain = |expr: &Expr| match expr {
                Expr::Literal(value, _) => !matches!(
                    value.data_type(),
                    DataType::Decimal128(_, _)
                        | DataType::Decimal256(_, _)
                        | DataType::Float64
                        | DataType::Date32
                        | DataType::Date64
                        | DataType::Timestamp(_, _)
                        | DataType::Time32(_)
                        | DataType::Time64(_)
                ),
                _ => false,
            };
            is_bitwise(*op) || (meets(*op) && !is_plain(left) && !is_plain(right))
        }
        Expr::Between(_)
        | Expr::InList(_)
        | Expr::InSubquery(_)
        | Expr::SetComparison(_)
        | Expr::Case(_)
        | Expr::Negative(_) => true,
        Expr::ScalarFunction(call) => {
            let name = call.name();
            let is_of_one_kind = OF_ONE_TYPE.contains(&name) || OF_DOUBLES.contains(&name) || OF_TIMES.contains(&name);
            is_of_one_kind || TO_PLACES.contains(&name) || TO_WHOLE.contains(&name)
        }
        Expr::WindowFunction(call) => MIDDLES.contains(&call.fun.name()),
        Expr::AggregateFunction(call) => {
            let name = call.func.name();
            MIDDLES.contains(&name) || OF_NUMBERS.contains(&name) || name == APPROXIMATE_COUNT
        }
        _ => false,
    }
}

/// Returns the expression with its numbers of types that meet without loss.
pub(super) fn with_number_types(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    Ok(match expr {
        // DataFusion cuts their fractions off, and what is beyond 64 bits.
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if is_bitwise(op) => {
            for side in [&left, &right] {
                if let Ok(found) = side.get_type(schema)
                    && (found.is_decimal() || found.is_floating())
                {
                    let message =
                        format!("`{op}` takes integers, not {}; write CAST(value AS BIGINT)", sql_name(&found));
                    return Err(EngineError::Plan { message }.into());
                }
            }
            Transformed::no(Expr::BinaryExpr(BinaryExpr::new(left, op, right)))
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if meets(op) => {
            let types = (met_type(&left, schema), met_type(&right, schema));
            let (Ok(left_type), Ok(right_type)) = types else {
                return Ok(Transformed::no(Expr::BinaryExpr(BinaryExpr::new(left, op, right))));
            };
            let common = common_type(op, &left_type, &right_type).or_else(|| {
                let is_written = |expr: &Expr| compares(op) && is_written(expr);
                let times = [(&left_type, is_written(&left)), (&right_type, is_written(&right))];
                (compares(op) || op == Operator::Minus).then(|| time_of_all_digits(&times)).flatten()
            });
            match common {
                Some(common) if op == Operator::Divide && !left_type.is_floating() && !right_type.is_floating() => {
                    Transformed::yes(own_call(QUOTIENT, vec![cast(*left, common.clone()), cast(*right, common)])?)
                }
                Some(common) => {
                    let bound = bound_of_column((left.as_ref(), &left_type), op, (right.as_ref(), &right_type));
                    let (left, right) = (as_type(*left, &left_type, &common), as_type(*right, &right_type, &common));
                    let computed = Expr::BinaryExpr(BinaryExpr::new(Box::new(left), op, Box::new(right)));
                    Transformed::yes(bound.into_iter().fold(computed, Expr::and))
                }
                None => Transformed::no(Expr::BinaryExpr(BinaryExpr::new(left, op, right))),
            }
        }
        Expr::Between(Between { expr, negated, low, high }) => unified(vec![*expr, *low, *high], true, schema)
            .update_data(|mut exprs| {
                let (high, low) = (exprs.pop().unwrap_or_default(), exprs.pop().unwrap_or_default());
                let expr = exprs.pop().unwrap_or_default();
                Expr::Between(Between::new(Box::new(expr), negated, Box::new(low), Box::new(high)))
            }),
        Expr::InList(InList { expr, list, negated }) => {
            let exprs = std::iter::once(*expr).chain(list).collect();
            unified(exprs, true, schema).update_data(|mut exprs| {
                let expr = exprs.remove(0);
                Expr::InList(InList::new(Box::new(expr), exprs, negated))
            })
        }
        Expr::InSubquery(InSubquery { expr, subquery, negated }) => with_queried_values(*expr, subquery, schema)?
            .update_data(|(expr, subquery)| Expr::InSubquery(InSubquery { expr: Box::new(expr), subquery, negated })),
        Expr::SetComparison(SetComparison { expr, subquery, op, quantifier }) => {
            with_queried_values(*expr, subquery, schema)?.update_data(|(expr, subquery)| {
                Expr::SetComparison(SetComparison { expr: Box::new(expr), subquery, op, quantifier })
            })
        }
        Expr::Case(case) => with_one_result_type(case, schema),
        Expr::ScalarFunction(ScalarFunction { func, args }) if OF_ONE_TYPE.contains(&func.name()) => {
            unified(args, false, schema).update_data(|args| Expr::ScalarFunction(ScalarFunction { func, args }))
        }
        Expr::ScalarFunction(ScalarFunction { func, args }) if OF_DOUBLES.contains(&func.name()) => {
            let has_decimal = args.iter().any(|arg| arg.get_type(schema).is_ok_and(|found| found.is_decimal()));
            let args =
                if has_decimal { args.into_iter().map(|arg| cast(arg, DataType::Float64)).collect() } else { args };
            Transformed::new_transformed(Expr::ScalarFunction(ScalarFunction { func, args }), has_decimal)
        }
        Expr::ScalarFunction(mut call) if OF_TIMES.contains(&call.name()) => {
            let date = call.args.get_mut(1).filter(|arg| arg.get_type(schema).is_ok_and(|found| is_date(&found)));
            let has_date = date.is_some();
            if let Some(date) = date {
                *date = cast(std::mem::take(date), DataType::Timestamp(TimeUnit::Microsecond, None));
            }
            Transformed::new_transformed(Expr::ScalarFunction(call), has_date)
        }
        Expr::ScalarFunction(call)
            if TO_PLACES.contains(&call.name()) && call.args.first().is_some_and(|arg| is_whole(arg, schema)) =>
        {
            Transformed::yes(to_places(call, schema)?)
        }
        Expr::ScalarFunction(ScalarFunction { func, mut args }) if func.name() == ROUND && args.len() == 2 => {
            // A literal of the function's own type: one that is cast on the way decides no digits of the result.
            let digits = match args.get(1) {
                Some(Expr::Literal(ScalarValue::Int64(Some(digits)), _)) => i32::try_from(*digits).ok(),
                _ => None,
            };
            if let (Some(digits), Some(last)) = (digits, args.last_mut()) {
                *last = lit(digits);
            }
            Transformed::new_transformed(Expr::ScalarFunction(ScalarFunction { func, args }), digits.is_some())
        }
        Expr::ScalarFunction(ScalarFunction { func, args }) if TO_WHOLE.contains(&func.name()) && args.len() == 1 => {
            match args.first().and_then(|arg| arg.get_type(schema).ok()) {
                Some(DataType::Decimal128(precision, scale)) if scale > 0 => {
                    // The next whole number may have a digit more, for which there is room without a fraction.
                    let wide = DataType::Decimal128((precision + 1).min(DECIMAL128_MAX_PRECISION), scale);
                    let args = args.into_iter().map(|arg| cast(arg, wide.clone())).collect();
                    let whole = Expr::ScalarFunction(ScalarFunction { func, args });
                    Transformed::yes(cast(whole, DataType::Decimal128(precision, 0)))
                }
                _ => Transformed::no(Expr::ScalarFunction(ScalarFunction { func, args })),
            }
        }
        // A rank, and what else is counted without a sign.
        Expr::Negative(value) if value.get_type(schema).is_ok_and(|found| found.is_unsigned_integer()) => {
            Transformed::yes(Expr::Negative(Box::new(cast(*value, DataType::Int64))))
        }
        Expr::Negative(value) => match taken_from_zero(&value, schema) {
            Some(negated) => Transformed::yes(negated),
            None => Transformed::no(Expr::Negative(value)),
        },
        Expr::AggregateFunction(AggregateFunction { func, mut params }) if MIDDLES.contains(&func.name()) => {
            let mut changed = false;
            for arg in &mut params.args {
                if arg.get_type(schema).is_ok_and(|found| found.is_decimal() || found.is_null()) {
                    *arg = cast(std::mem::take(arg), DataType::Float64);
                    changed = true;
                }
            }
            Transformed::new_transformed(Expr::AggregateFunction(AggregateFunction { func, params }), changed)
        }
        Expr::WindowFunction(mut call) if MIDDLES.contains(&call.fun.name()) => {
            let mut changed = false;
            for arg in &mut call.params.args {
                if arg.get_type(schema).is_ok_and(|found| found.is_decimal()) {
                    *arg = cast(std::mem::take(arg), DataType::Float64);
                    changed = true;
                }
            }
            Transformed::new_transformed(Expr::WindowFunction(call), changed)
        }
        // Each value has one text.
        Expr::AggregateFunction(AggregateFunction { func, mut params }) if func.name() == APPROXIMATE_COUNT => {
            let is_uncounted =
                |found: DataType| found.is_decimal() || found.is_floating() || found == DataType::Boolean;
            let mut changed = false;
            for arg in &mut params.args {
                if arg.get_type(schema).is_ok_and(is_uncounted) {
                    *arg = cast(std::mem::take(arg), DataType::Utf8);
                    changed = true;
                }
            }
            Transformed::new_transformed(Expr::AggregateFunction(AggregateFunction { func, params }), changed)
        }
        // A column that is null everywhere has no type that they take.
        Expr::AggregateFunction(AggregateFunction { func, mut params }) if OF_NUMBERS.contains(&func.name()) => {
            let mut changed = false;
            for arg in &mut params.args {
                if arg.get_type(schema).is_ok_and(|found| found.is_null()) {
                    *arg = cast(std::mem::take(arg), DataType::Int64);
                    changed = true;
                }
            }
            Transformed::new_transformed(Expr::AggregateFunction(AggregateFunction { func, params }), changed)
        }
        other => Transformed::no(other),
    })
}

/// Returns the negative of a decimal or an interval as what is left when it is taken from zero: DataFusion does not negate a null of
/// these types that stands by itself, and a column of a subquery becomes one where that is what it selects.
fn taken_from_zero(value: &Expr, schema: &DFSchema) -> Option<Expr> {
    let is_known = matches!(value, Expr::Literal(literal, _) if !literal.is_null());
    if is_known {
        return None;
    }
    let found =
        value.get_type(schema).ok().filter(|found| found.is_decimal() || matches!(found, DataType::Interval(_)))?;
    let zero = lit(ScalarValue::new_zero(&found).ok()?);
    let rest = Expr::BinaryExpr(BinaryExpr::new(Box::new(zero), Operator::Minus, Box::new(value.clone())));
    Some(if found.is_decimal() { cast(rest, found) } else { rest })
}

/// Returns the node with numbers of one type in the columns that it puts together.
pub(super) fn with_column_types(node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    Ok(match node {
        LogicalPlan::Join(join) if is_set_operation(&join) => with_set_types(join)?,
        LogicalPlan::Join(join) => {
            let mut changed = false;
            let on = join.on.into_iter().map(|(left, right)| {
                let types = (left.get_type(join.left.schema()), right.get_type(join.right.schema()));
                let (Ok(left_type), Ok(right_type)) = types else { return (left, right) };
                let times = [(&left_type, false), (&right_type, false)];
                match common_type(Operator::Eq, &left_type, &right_type).or_else(|| time_of_all_digits(&times)) {
                    Some(common) => {
                        changed = true;
                        (as_type(left, &left_type, &common), as_type(right, &right_type, &common))
                    }
                    None => (left, right),
                }
            });
            let on = on.collect();
            Transformed::new_transformed(LogicalPlan::Join(Join { on, ..join }), changed)
        }
        LogicalPlan::Union(Union { inputs, schema }) => {
            let common: Vec<Option<DataType>> = (0..schema.fields().len())
                .map(|column| {
                    let types: Vec<_> = inputs.iter().filter_map(|input| met_column(input, column)).collect();
                    meeting_type(&types).or_else(|| union_type(&types))
                })
                .collect();
            if common.iter().all(Option::is_none) {
                // Types of its inputs may have changed: those that it was made with would meet theirs once more.
                let is_of_inputs = inputs.first().is_none_or(|first| {
                    let types = first.schema().fields().iter().zip(schema.fields());
                    types.into_iter().all(|(own, known)| own.data_type() == known.data_type())
                });
                return match is_of_inputs {
                    true => Ok(Transformed::no(LogicalPlan::Union(Union { inputs, schema }))),
                    false => Union::try_new_with_loose_types(inputs).map(LogicalPlan::Union).map(Transformed::yes),
                };
            }
            let inputs = inputs.into_iter().map(|input| with_columns(input, &common)).collect::<Result<_>>()?;
            Transformed::yes(LogicalPlan::Union(Union::try_new_with_loose_types(inputs)?))
        }
        LogicalPlan::Values(Values { schema, values }) => {
            let common: Vec<Option<DataType>> = (0..schema.fields().len())
                .map(|column| {
                    // A null has the type of its column already.
                    let types = values.iter().filter_map(|row| row.get(column)).filter(|value| !is_null(value));
                    let known = types.clone().filter_map(|value| uncast(value, &schema).get_type(&schema).ok());
                    let types = types.filter_map(|value| value.get_type(&schema).ok());
                    meeting_type(&known.collect::<Vec<_>>())
                        .or_else(|| other_lists(&types.collect::<Vec<_>>(), schema.field(column).data_type()))
                })
                .collect();
            if common.iter().all(Option::is_none) {
                return Ok(Transformed::no(LogicalPlan::Values(Values { schema, values })));
            }
            let rows = values.into_iter().map(|row| {
                let row = row.into_iter().zip(&common).map(|(value, wanted)| match wanted {
                    Some(wanted) => {
                        let value = uncast(&value, &schema);
                        match value.get_type(&schema) {
                            Ok(found) => as_type(value.clone(), &found, wanted),
                            Err(_) => cast(value.clone(), wanted.clone()),
                        }
                    }
                    None => value,
                });
                row.collect::<Vec<_>>()
            });
            Transformed::yes(LogicalPlanBuilder::values(rows.collect())?.build()?)
        }
        other => Transformed::no(other),
    })
}

/// Returns a plan that writes rows with their doubles as the decimals of their columns, each by itself: among the values of a
/// query it would make doubles of the decimals beside it.
pub(super) fn with_written_decimals(plan: LogicalPlan) -> Result<LogicalPlan> {
    let LogicalPlan::Dml(mut dml) = plan else { return Ok(plan) };
    if let LogicalPlan::Projection(projection) = dml.input.as_ref()
        && let LogicalPlan::Values(rows) = projection.input.as_ref()
    {
        let as_written = |value: &Expr| match value {
            Expr::Cast(cast) if is_double_to_decimal(cast, &rows.schema) => {
                value_conversion(cast.field.data_type(), false).call(vec![cast.expr.as_ref().clone()])
            }
            other => other.clone(),
        };
        let values = rows.values.iter().map(|row| row.iter().map(as_written).collect()).collect();
        let rows = LogicalPlan::Values(Values { schema: Arc::clone(&rows.schema), values });
        let (exprs, schema) = (projection.expr.clone(), Arc::clone(&projection.schema));
        let projection = Projection::try_new_with_schema(exprs, Arc::new(rows), schema)?;
        dml.input = Arc::new(LogicalPlan::Projection(projection));
    }
    Ok(LogicalPlan::Dml(dml))
}

fn is_double_to_decimal(cast: &Cast, schema: &DFSchema) -> bool {
    cast.expr.get_type(schema).is_ok_and(|found| makes_decimals(&found, cast.field.data_type()))
}

/// Whether a cast makes decimals of doubles, or of those within lists, structures and maps.
fn makes_decimals(found: &DataType, wanted: &DataType) -> bool {
    match (found, wanted) {
        (DataType::List(found), DataType::List(wanted)) => makes_decimals(found.data_type(), wanted.data_type()),
        (DataType::Map(found, _), DataType::Map(wanted, _)) => makes_decimals(found.data_type(), wanted.data_type()),
        (DataType::Struct(found), DataType::Struct(wanted)) if found.len() == wanted.len() => {
            let mut fields = found.iter().zip(wanted);
            fields.any(|(found, wanted)| makes_decimals(found.data_type(), wanted.data_type()))
        }
        (found, wanted) => wanted.is_decimal() && found.is_floating(),
    }
}

fn is_null(value: &Expr) -> bool {
    match value {
        Expr::Literal(value, _) => value.is_null(),
        Expr::Cast(cast) => is_null(&cast.expr),
        Expr::Alias(alias) => is_null(&alias.expr),
        Expr::ScalarFunction(call) if conversion_of(&call.func).is_some() => call.args.iter().all(is_null),
        _ => false,
    }
}

/// Returns a double, a text, a date or a timestamp without the cast that brought it to the type of its column.
fn uncast<'a>(value: &'a Expr, schema: &DFSchema) -> &'a Expr {
    // An expression that was changed has an alias, by its old name.
    let unaliased = if let Expr::Alias(alias) = value { alias.expr.as_ref() } else { value };
    if let Some(time) = unconverted_time(unaliased, schema) {
        return time;
    }
    let Expr::Cast(cast) = unaliased else { return value };
    let Ok(found) = cast.expr.get_type(schema) else { return value };
    let is_coerced = match cast.field.data_type() {
        DataType::Timestamp(TimeUnit::Nanosecond, _) => is_date(&found) || matches!(found, DataType::Timestamp(_, _)),
        wanted => makes_decimals(&found, wanted) || (wanted.is_decimal() && found.is_string()),
    };
    if is_coerced { &cast.expr } else { value }
}

/// Returns a timestamp without the conversion to fewer digits, or to nanoseconds; `None` for others.
fn unconverted_time<'a>(value: &'a Expr, schema: &DFSchema) -> Option<&'a Expr> {
    let Expr::ScalarFunction(call) = value else { return None };
    let ((DataType::Timestamp(kept, _), false), [time]) = (conversion_of(&call.func)?, call.args.as_slice()) else {
        return None;
    };
    let is_coerced = |unit: TimeUnit| unit > *kept || *kept == TimeUnit::Nanosecond;
    matches!(time.get_type(schema), Ok(DataType::Timestamp(unit, _)) if is_coerced(unit)).then_some(time)
}

fn with_columns(input: Arc<LogicalPlan>, types: &[Option<DataType>]) -> Result<Arc<LogicalPlan>> {
    let columns = input.schema().columns().into_iter().zip(types).map(|(column, wanted)| {
        let name = (column.relation.clone(), column.name.clone());
        match (wanted, Expr::Column(column.clone()).get_type(input.schema())) {
            (Some(wanted), Ok(found))
                if gives_way(&found, wanted) || is_other_number(&found, wanted) || found.is_null() =>
            {
                as_type(Expr::Column(column), &found, wanted).alias_qualified(name.0, name.1)
            }
            _ => Expr::Column(column),
        }
    });
    Ok(Arc::new(LogicalPlan::Projection(Projection::try_new(columns.collect(), Arc::clone(&input))?)))
}

/// Whether an operator is one of bits, which only integers have.
fn is_bitwise(op: Operator) -> bool {
    matches!(
        op,
        Operator::BitwiseAnd
            | Operator::BitwiseOr
            | Operator::BitwiseXor
            | Operator::BitwiseShiftLeft
            | Operator::BitwiseShiftRight
    )
}

/// Whether an operator's operands are brought to one type.
fn meets(op: Operator) -> bool {
    op.is_numerical_operators() || compares(op)
}

/// Returns whether an expression is a timestamp as it is written.
fn is_written(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(_, _) => true,
        Expr::Cast(cast) => matches!(cast.expr.as_ref(), Expr::Literal(_, _)),
        _ => false,
    }
}

/// Returns the type of an expression that meets another: now, and what is computed of it and no column, is no more exact than a
/// microsecond there, so that it meets all days.
fn met_type(expr: &Expr, schema: &DFSchema) -> Result<DataType> {
    let is_now = |part: &Expr| Ok(matches!(part, Expr::ScalarFunction(call) if call.name() == "now"));
    Ok(match expr.get_type(schema)? {
        DataType::Timestamp(TimeUnit::Nanosecond, zone) if !expr.any_column_refs() && expr.exists(is_now)? => {
            DataType::Timestamp(TimeUnit::Microsecond, zone)
        }
        found => found,
    })
}

/// The same of a column of a query's rows.
fn met_column(rows: &LogicalPlan, column: usize) -> Option<DataType> {
    match rows {
        LogicalPlan::Projection(Projection { expr, input, .. }) => met_type(expr.get(column)?, input.schema()).ok(),
        other => other.schema().fields().get(column).map(|field| field.data_type().clone()),
    }
}

/// Returns expressions whose decimals are doubles where some are, whose dates are timestamps, and whose timestamps have the digits
/// of all. `are_compared`: whether they are compared, and none of them is the result.
fn unified(exprs: Vec<Expr>, are_compared: bool, schema: &DFSchema) -> Transformed<Vec<Expr>> {
    let types = exprs.iter().map(|expr| met_type(expr, schema)).collect::<Result<Vec<_>>>();
    let common = types.ok().and_then(|types| {
        let common = match are_compared {
            true => compared_type(&types, |at| exprs.get(at).is_some_and(is_written)),
            false => argument_type(&types),
        };
        Some((common?, types))
    });
    match common {
        Some((common, types)) => {
            let exprs = exprs.into_iter().zip(types).map(|(expr, found)| match gives_way(&found, &common) {
                true => as_type(expr, &found, &common),
                false => expr,
            });
            Transformed::yes(exprs.collect())
        }
        None => Transformed::no(exprs),
    }
}

/// Returns a value and the query with whose values it is compared, with both of the type in which they meet.
fn with_queried_values(expr: Expr, subquery: Subquery, schema: &DFSchema) -> Result<Transformed<(Expr, Subquery)>> {
    let queried = subquery.subquery.schema().fields().first().map(|field| field.data_type().clone());
    let (Ok(sought), Some(queried)) = (met_type(&expr, schema), queried) else {
        return Ok(Transformed::no((expr, subquery)));
    };
    let Some(common) = compared_type(&[sought.clone(), queried.clone()], |_| false) else {
        return Ok(Transformed::no((expr, subquery)));
    };
    let subquery = match gives_way(&queried, &common) {
        true => with_values_as(subquery, common.clone())?,
        false => subquery,
    };
    let expr = if gives_way(&sought, &common) { cast(expr, common) } else { expr };
    Ok(Transformed::yes((expr, subquery)))
}

/// Returns a CASE whose results are of one type where they are numbers: the type of a CASE is that of its first result until
/// DataFusion brings them together, which is too late for what is around it.
fn with_one_result_type(case: Case, schema: &DFSchema) -> Transformed<Expr> {
    let Case { expr, when_then_expr, else_expr } = case;
    let results = when_then_expr.iter().map(|(_, then)| then.as_ref()).chain(else_expr.as_deref());
    let types: Vec<_> = results.filter_map(|result| met_type(result, schema).ok()).collect();
    let Some(common) = meeting_type(&types).or_else(|| widest_number(&types)) else {
        return Transformed::no(Expr::Case(Case { expr, when_then_expr, else_expr }));
    };
    let as_common = |result: Box<Expr>| match result.get_type(schema) {
        Ok(found) if gives_way(&found, &common) || is_other_number(&found, &common) => {
            Box::new(as_type(*result, &found, &common))
        }
        _ => result,
    };
    let when_then_expr = when_then_expr.into_iter().map(|(when, then)| (when, as_common(then))).collect();
    Transformed::yes(Expr::Case(Case { expr, when_then_expr, else_expr: else_expr.map(as_common) }))
}

fn as_type(expr: Expr, found: &DataType, wanted: &DataType) -> Expr {
    match (found, wanted) {
        (found, wanted) if found == wanted => expr,
        (DataType::Timestamp(_, _), DataType::Timestamp(_, _)) => converted(expr, found, wanted, false),
        _ => cast(expr, wanted.clone()),
    }
}

fn cast(expr: Expr, to: DataType) -> Expr {
    as_double(&expr, &to).unwrap_or_else(|| Expr::Cast(Cast::new(Box::new(expr), to)))
}

/// Returns a decimal that is written out as the nearest double; `None` for what is none, and for other types. Arrow divides its
/// digits by a power of ten, and of more than fifteen digits that is often the double beside it.
pub(super) fn as_double(expr: &Expr, to: &DataType) -> Option<Expr> {
    let Expr::Literal(value, _) = expr else { return None };
    let text = match value {
        ScalarValue::Decimal128(Some(digits), precision, scale) => {
            Decimal128Type::format_decimal(*digits, *precision, *scale)
        }
        ScalarValue::Decimal256(Some(digits), precision, scale) => {
            Decimal256Type::format_decimal(*digits, *precision, *scale)
        }
        _ => return None,
    };
    let double = match to {
        DataType::Float32 => ScalarValue::Float32(Some(text.parse().ok()?)),
        DataType::Float64 => ScalarValue::Float64(Some(text.parse().ok()?)),
        _ => return None,
    };
    Some(lit(double))
}
