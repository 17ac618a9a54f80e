//! The types in which values of several types meet, where they are not those that DataFusion takes.

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::logical_expr::Operator;
use datafusion::logical_expr::type_coercion::binary::type_union_coercion;
use datafusion::logical_expr::type_coercion::other::get_coerce_type_for_case_expression;

use crate::functions::map_type;
use crate::sql::elapsed_times::compares;
use crate::sql::struct_types::common_struct;

/// The finest unit in which timestamps are compared.
const COMPARED_UNIT: TimeUnit = TimeUnit::Microsecond;

/// Returns the type in which two numbers meet, where it is not the one that DataFusion takes.
pub(super) fn common_type(op: Operator, left: &DataType, right: &DataType) -> Option<DataType> {
    let is_exact = |found: &DataType| found.is_decimal() || found.is_integer();
    if (compares(op) || op == Operator::Minus)
        && let Some(time) = time_beside_dates(&[left.clone(), right.clone()])
    {
        return Some(time);
    }
    if compares(op) && (is_finer_time_of_day(left, right) || is_finer_time_of_day(right, left)) {
        return finest_time_of_day(&[left.clone(), right.clone()]);
    }
    match (left, right) {
        (float, decimal) | (decimal, float) if float.is_floating() && decimal.is_decimal() => Some(float.clone()),
        _ if op == Operator::Divide && (left.is_decimal() || right.is_decimal()) => {
            (is_exact(left) && is_exact(right)).then_some(DataType::Float64)
        }
        _ if matches!(op, Operator::Plus | Operator::Minus | Operator::Multiply) => {
            let is_narrow = |found: &DataType| {
                matches!(
                    found,
                    DataType::Int8
                        | DataType::Int16
                        | DataType::Int32
                        | DataType::UInt8
                        | DataType::UInt16
                        | DataType::UInt32
                )
            };
            let may_be_negative = op == Operator::Minus && *left == DataType::UInt64 && *right == DataType::UInt64;
            ((is_narrow(left) && is_narrow(right)) || may_be_negative).then_some(DataType::Int64)
        }
        _ => None,
    }
}

/// Returns the type of the doubles among types, where there are decimals beside them.
fn float_beside_decimals(types: &[DataType]) -> Option<DataType> {
    let float = types.iter().filter(|found| found.is_floating()).max_by_key(|found| found.primitive_width())?;
    types.iter().any(DataType::is_decimal).then(|| float.clone())
}

/// Returns the type of the timestamps among types, where there are dates beside them. Where those are of nanoseconds, a date
/// becomes one of them.
fn time_beside_dates(types: &[DataType]) -> Option<DataType> {
    let mut time = None;
    for found in types {
        match found {
            DataType::Timestamp(TimeUnit::Nanosecond, _) => return None,
            DataType::Timestamp(_, zone) => time = Some(DataType::Timestamp(TimeUnit::Microsecond, zone.clone())),
            _ => {}
        }
    }
    time.filter(|_| types.iter().any(is_date))
}

/// Returns the type in which timestamps are compared, where some have fewer digits than others, of which DataFusion takes the
/// type; of at most microseconds, since nanoseconds do not reach far: those are compared by their numbers (`exact_times`). What is
/// written out has no say: the digits that it has too many are settled (`time_comparisons`).
pub(super) fn time_of_all_digits(types: &[(&DataType, bool)]) -> Option<DataType> {
    time_of_digits_to(COMPARED_UNIT, types)
}

/// Returns the type of timestamps with the digits of all of them, to those of a unit; `None` where it is the one that DataFusion
/// takes.
fn time_of_digits_to(least: TimeUnit, types: &[(&DataType, bool)]) -> Option<DataType> {
    let times = types.iter().filter_map(|(found, is_written)| match found {
        DataType::Timestamp(unit, zone) => Some((*unit, zone, *is_written)),
        _ => None,
    });
    let times: Vec<_> = times.collect();
    // A time without a zone is one of the zone of the others.
    let zone = times.iter().find_map(|(_, zone, _)| zone.as_ref());
    let columns = times.iter().filter(|(_, _, is_written)| !is_written).map(|(unit, _, _)| *unit).max();
    let finest = columns.or_else(|| times.iter().map(|(unit, _, _)| *unit).max())?.min(least);
    let is_mixed = times.iter().any(|(unit, _, _)| *unit < finest);
    is_mixed.then(|| DataType::Timestamp(finest, zone.cloned()))
}

/// Returns the type of the times of day that have the most digits, where others have fewer: DataFusion takes none.
fn finest_time_of_day(types: &[DataType]) -> Option<DataType> {
    let mut times = types.iter().filter_map(|found| Some((unit_of_time_of_day(found)?, found)));
    let (unit, finest) = times.clone().max_by_key(|(unit, _)| *unit)?;
    times.any(|(other, _)| other < unit).then(|| finest.clone())
}

/// Returns whether times of day of one type have more digits than those of another.
pub(in crate::sql) fn is_finer_time_of_day(found: &DataType, than: &DataType) -> bool {
    matches!((unit_of_time_of_day(found), unit_of_time_of_day(than)), (Some(unit), Some(other)) if unit > other)
}

fn unit_of_time_of_day(found: &DataType) -> Option<TimeUnit> {
    match found {
        DataType::Time32(unit) | DataType::Time64(unit) => Some(*unit),
        _ => None,
    }
}

/// Returns the type of a value that is one of several, where it is not the one that DataFusion takes.
pub(in crate::sql) fn meeting_type(types: &[DataType]) -> Option<DataType> {
    plain_meeting_type(types).or_else(|| common_struct(types)).or_else(|| common_map(types))
}

/// The same of the arguments of a function, of which structures have the same fields.
pub(super) fn argument_type(types: &[DataType]) -> Option<DataType> {
    let mut structs = types.iter().filter_map(|found| match found {
        DataType::Struct(fields) => Some(fields),
        _ => None,
    });
    let first = structs.next();
    let is_alike = structs.all(|fields| {
        first.is_none_or(|first| {
            let pairs = first.iter().zip(fields);
            first.len() == fields.len() && pairs.into_iter().all(|(left, right)| left.name() == right.name())
        })
    });
    if is_alike { meeting_type(types) } else { plain_meeting_type(types) }
}

/// The same of values that are no structures and no maps.
fn plain_meeting_type(types: &[DataType]) -> Option<DataType> {
    plain_type(types, TimeUnit::Nanosecond, |_| false)
}

/// Returns the type in which values are compared, where it is not the one that DataFusion takes. `is_written`: whether the value at
/// a place is written out.
pub(super) fn compared_type(types: &[DataType], is_written: impl Fn(usize) -> bool) -> Option<DataType> {
    plain_type(types, COMPARED_UNIT, is_written)
}

fn plain_type(types: &[DataType], finest: TimeUnit, is_written: impl Fn(usize) -> bool) -> Option<DataType> {
    let times: Vec<_> = types.iter().enumerate().map(|(at, found)| (found, is_written(at))).collect();
    let plain = float_beside_decimals(types).or_else(|| time_beside_dates(types));
    let time = plain.or_else(|| time_of_digits_to(finest, &times)).or_else(|| finest_time_of_day(types));
    time.or_else(|| common_list(types))
}

/// Returns the type of lists whose elements meet in another type than the one that DataFusion takes.
fn common_list(types: &[DataType]) -> Option<DataType> {
    let mut elements = Vec::with_capacity(types.len());
    for found in types {
        match found {
            DataType::List(element) => elements.push(element.data_type().clone()),
            DataType::Null => {}
            _ => return None,
        }
    }
    if elements.is_empty() {
        return None;
    }
    argument_type(&elements).map(|element| DataType::new_list(element, true))
}

/// Returns the type of maps whose keys or values meet in another type than the one that DataFusion takes.
fn common_map(types: &[DataType]) -> Option<DataType> {
    let (mut keys, mut values) = (Vec::with_capacity(types.len()), Vec::with_capacity(types.len()));
    for found in types {
        match found {
            DataType::Map(entries, _) => match entries.data_type() {
                DataType::Struct(pair) if pair.len() == 2 => {
                    keys.push(pair[0].data_type().clone());
                    values.push(pair[1].data_type().clone());
                }
                _ => return None,
            },
            DataType::Null => {}
            _ => return None,
        }
    }
    let is_one = |types: &[DataType]| types.windows(2).all(|pair| pair[0] == pair[1]);
    if is_one(&keys) && is_one(&values) {
        return None;
    }
    let common = |types: &[DataType]| if is_one(types) { types.first().cloned() } else { meeting_type(types) };
    Some(map_type(common(&keys)?, common(&values)?))
}

/// Returns the one type of the lists of a column, where it is not what the planner took their elements for.
pub(super) fn other_lists(types: &[DataType], planned: &DataType) -> Option<DataType> {
    let first = types.first().filter(|first| matches!(first, DataType::List(_)) && *first != planned)?;
    types.iter().all(|found| found == first).then(|| first.clone())
}

/// Returns whether values of a type become those of the type in which they meet others.
pub(super) fn gives_way(found: &DataType, common: &DataType) -> bool {
    match (common, found) {
        (DataType::Timestamp(unit, _), DataType::Timestamp(own, _)) => own < unit,
        (DataType::Timestamp(_, _), found) => is_date(found),
        (DataType::Time32(_) | DataType::Time64(_), found) => is_finer_time_of_day(common, found),
        (DataType::Struct(_), found) => matches!(found, DataType::Struct(_)) && found != common,
        (DataType::List(_), found) => matches!(found, DataType::List(_)) && found != common,
        (DataType::Map(_, _), found) => matches!(found, DataType::Map(_, _)) && found != common,
        _ => found.is_decimal(),
    }
}

pub(super) fn is_date(found: &DataType) -> bool {
    matches!(found, DataType::Date32 | DataType::Date64)
}

/// Returns the type that numbers of several types have in common, as DataFusion finds it; `None` where they are of one, or
/// not all numbers.
pub(super) fn widest_number(types: &[DataType]) -> Option<DataType> {
    let known: Vec<DataType> = types.iter().filter(|found| !found.is_null()).cloned().collect();
    let is_mixed = known.iter().any(|found| Some(found) != known.first());
    match is_mixed && known.iter().all(DataType::is_numeric) {
        true => get_coerce_type_for_case_expression(&known, None),
        false => None,
    }
}

/// Returns the type that DataFusion takes for a column of a union whose numbers are of several types, or are null in some of its
/// queries; `None` for others. A union around this one has to know it: DataFusion says so once types are coerced.
pub(super) fn union_type(types: &[DataType]) -> Option<DataType> {
    let known: Vec<&DataType> = types.iter().filter(|found| !found.is_null()).collect();
    let (first, others) = known.split_first()?;
    if others.iter().all(|other| other == first) {
        return (known.len() < types.len()).then(|| (*first).clone());
    }
    let mut common = (*first).clone();
    for other in others {
        common = type_union_coercion(&common, other).filter(DataType::is_numeric)?;
    }
    known.iter().all(|found| found.is_numeric()).then_some(common)
}

/// Returns whether both are types of numbers, and not the same.
pub(super) fn is_other_number(found: &DataType, common: &DataType) -> bool {
    found.is_numeric() && common.is_numeric() && found != common
}
