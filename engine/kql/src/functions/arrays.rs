//! Functions of dynamic arrays, and of arrays as sets. What is not an array gives null.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, Float64Array, Int64Array};
use datafusion::error::Result;
use serde_json::Value;

use super::arguments::{FunctionArguments, TypedColumn};
use super::comparison::{order, same};
use super::conversion::json_real;
use super::signature::{FunctionEntry, Returns, entry};
use crate::interrupt::LoopTurns;
use crate::types::KqlType;
use crate::values;

const LONG: Returns = Returns::Is(KqlType::Long);
const BOOL: Returns = Returns::Is(KqlType::Bool);
const REAL: Returns = Returns::Is(KqlType::Real);
const DYNAMIC: Returns = Returns::Is(KqlType::Dynamic);

pub(super) const FUNCTIONS: &[FunctionEntry] = &[
    entry("array_length", "j", LONG, array_length),
    entry("arraylength", "j", LONG, array_length),
    entry("array_concat", "j*", DYNAMIC, array_concat),
    entry("array_slice", "jii", DYNAMIC, array_slice),
    entry("array_split", "jx", Returns::By(split_type), array_split),
    entry("array_sum", "j", REAL, array_sum),
    entry("array_index_of", "jx?iii", LONG, array_index_of),
    entry("array_iff", "jxx", DYNAMIC, array_iff),
    entry("array_iif", "jxx", DYNAMIC, array_iff),
    entry("array_reverse", "j", DYNAMIC, |arguments| mapped(arguments, |elements| elements.reverse())),
    entry("array_rotate_left", "ji", DYNAMIC, |arguments| rotated(arguments, 1)),
    entry("array_rotate_right", "ji", DYNAMIC, |arguments| rotated(arguments, -1)),
    entry("array_shift_left", "ji?x", DYNAMIC, |arguments| shifted(arguments, 1)),
    entry("array_shift_right", "ji?x", DYNAMIC, |arguments| shifted(arguments, -1)),
    entry("array_sort_asc", "j?x*", DYNAMIC, |arguments| sorted(arguments, false)),
    entry("array_sort_desc", "j?x*", DYNAMIC, |arguments| sorted(arguments, true)),
    entry("zip", "jj*", DYNAMIC, zip),
    entry("set_union", "jj*", DYNAMIC, set_union),
    entry("set_intersect", "jj*", DYNAMIC, set_intersect),
    entry("set_difference", "jj*", DYNAMIC, set_difference),
    entry("set_has_element", "jx", BOOL, set_has_element),
    entry("set_equals", "jj", BOOL, set_equals),
    entry("jaccard_index", "jj", REAL, jaccard_index),
];

fn array_length(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let arrays = arguments.dynamics(0)?;
    arguments.make_longs(|row| arrays.get(row).as_array().map(|elements| elements.len() as i64))
}

fn array_concat(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let arrays = arguments.all_dynamics(0)?;
    arguments.make_dynamics(|row| {
        let mut all: Option<Vec<Value>> = None;
        for array in &arrays {
            if let Some(elements) = array.elements(row) {
                all.get_or_insert_default().extend(elements);
            }
        }
        Ok(all.map_or(Value::Null, Value::Array))
    })
}

/// Returns the elements between two positions, both included. A negative position counts from the end.
fn array_slice(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let (arrays, starts, ends) = (arguments.dynamics(0)?, arguments.longs(1)?, arguments.longs(2)?);
    arguments.make_dynamics(|row| {
        let (Some(elements), Some(start), Some(end)) = (arrays.elements(row), starts.get(row), ends.get(row)) else {
            return Ok(Value::Null);
        };
        let length = elements.len() as i64;
        let position = |index: i64| if index < 0 { index.saturating_add(length) } else { index };
        let (start, end) = (position(start).max(0), position(end).min(length - 1));
        let count = usize::try_from(end.saturating_sub(start).saturating_add(1)).unwrap_or(0);
        Ok(elements.into_iter().skip(start as usize).take(count).collect::<Vec<_>>().into())
    })
}

/// Checks where an array is split: at a place, or at the places in an array.
fn split_type(types: &[KqlType]) -> std::result::Result<KqlType, String> {
    match types.get(1) {
        Some(KqlType::Int | KqlType::Long | KqlType::Dynamic) => Ok(KqlType::Dynamic),
        _ => Err("argument 2 of array_split() must be a whole number, or an array of them".to_owned()),
    }
}

/// Splits at one position or several.
fn array_split(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let (arrays, positions) = (arguments.dynamics(0)?, arguments.dynamics(1)?);
    arguments.make_dynamics(|row| {
        let Some(elements) = arrays.elements(row) else { return Ok(Value::Null) };
        let positions = positions.elements(row).unwrap_or_else(|| vec![positions.get(row).into_owned()]);
        let length = elements.len() as i64;
        let position =
            |value: &Value| value.as_i64().map(|at| if at < 0 { (at + length).max(0) } else { at.min(length) });
        let (mut parts, mut start) = (Vec::new(), 0);
        for position in positions.iter().filter_map(position) {
            let end = (position as usize).max(start);
            parts.push(Value::Array(elements[start..end].to_vec()));
            start = end;
        }
        parts.push(Value::Array(elements[start..].to_vec()));
        Ok(parts.into())
    })
}

/// Adds up numbers and truth values, and passes over nulls; null if the array has anything else.
fn array_sum(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let arrays = arguments.dynamics(0)?;
    arguments.make_reals(|row| {
        let number = |value: &Value| if value.is_string() { None } else { json_real(value) };
        let sum: Option<f64> = arrays.elements(row)?.iter().filter(|value| !value.is_null()).map(number).sum();
        // The sum of no reals is -0.
        sum.map(|sum| sum + 0.0)
    })
}

/// Returns the ticks of the spans that an argument has, as which a literal of type dynamic holds them.
fn ticks_of(arguments: &FunctionArguments, index: usize) -> Result<Option<TypedColumn<Int64Array>>> {
    if arguments.kql_type(index) == KqlType::TimeSpan { arguments.timespans(index).map(Some) } else { Ok(None) }
}

fn array_index_of(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let (arrays, wanted, spans) = (arguments.dynamics(0)?, arguments.dynamics(1)?, ticks_of(arguments, 1)?);
    let option = |index: usize| if arguments.len() > index { arguments.longs(index).map(Some) } else { Ok(None) };
    let (starts, lengths, occurrences) = (option(2)?, option(3)?, option(4)?);
    arguments.make_longs(|row| {
        let (elements, wanted) = (arrays.elements(row)?, wanted.get(row));
        let ticks = spans.as_ref().and_then(|spans| spans.get(row));
        let is_it = |element: &Value| same(element, &wanted) || (ticks.is_some() && element.as_i64() == ticks);
        let count = elements.len() as i64;
        let start = starts.as_ref().and_then(|starts| starts.get(row)).unwrap_or(0);
        let start = if start < 0 { (start + count).max(0) } else { start } as usize;
        let length = lengths.as_ref().and_then(|lengths| lengths.get(row)).unwrap_or(-1);
        let nth = occurrences.as_ref().and_then(|occurrences| occurrences.get(row)).unwrap_or(1);
        if length < -1 || nth < 0 {
            return None;
        }
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let nth = nth.max(1) as usize;
        let mut places = elements.iter().enumerate().skip(start).take(length).filter(|(_, element)| is_it(element));
        Some(places.nth(nth - 1).map_or(-1, |(place, _)| place as i64))
    })
}

/// Chooses for each condition from one of two arrays. A scalar stands for an array of it.
fn array_iff(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let (conditions, yes, no) = (arguments.dynamics(0)?, arguments.dynamics(1)?, arguments.dynamics(2)?);
    let at = |values: &Value, index: usize| match values {
        Value::Array(elements) => elements.get(index).cloned().unwrap_or(Value::Null),
        scalar => scalar.clone(),
    };
    arguments.make_dynamics(|row| {
        let Some(conditions) = conditions.elements(row) else { return Ok(Value::Null) };
        let (yes, no) = (yes.get(row), no.get(row));
        for branch in [&yes, &no].into_iter().filter(|branch| !branch.is_array()) {
            arguments.bounded_copies(branch, conditions.len())?;
        }
        let choose = |(index, condition): (usize, &Value)| match condition {
            Value::Bool(true) => at(&yes, index),
            Value::Bool(false) => at(&no, index),
            Value::Number(number) if number.as_f64() != Some(0.0) => at(&yes, index),
            Value::Number(_) => at(&no, index),
            _ => Value::Null,
        };
        Ok(conditions.iter().enumerate().map(choose).collect::<Vec<_>>().into())
    })
}

fn mapped(arguments: &FunctionArguments, change: impl Fn(&mut Vec<Value>)) -> Result<ArrayRef> {
    let arrays = arguments.dynamics(0)?;
    arguments.make_dynamics(|row| {
        let Some(mut elements) = arrays.elements(row) else { return Ok(Value::Null) };
        change(&mut elements);
        Ok(elements.into())
    })
}

fn rotated(arguments: &FunctionArguments, direction: i64) -> Result<ArrayRef> {
    let (arrays, counts) = (arguments.dynamics(0)?, arguments.longs(1)?);
    arguments.make_dynamics(|row| {
        let (Some(mut elements), Some(count)) = (arrays.elements(row), counts.get(row)) else {
            return Ok(Value::Null);
        };
        if !elements.is_empty() {
            let length = elements.len() as i64;
            elements.rotate_left((count % length * direction).rem_euclid(length) as usize);
        }
        Ok(elements.into())
    })
}

/// Shifts the elements. The freed positions become null or the third argument.
fn shifted(arguments: &FunctionArguments, direction: i64) -> Result<ArrayRef> {
    let (arrays, counts) = (arguments.dynamics(0)?, arguments.longs(1)?);
    let fill = if arguments.len() > 2 { Some(arguments.dynamics(2)?) } else { None };
    arguments.make_dynamics(|row| {
        let (Some(elements), Some(count)) = (arrays.elements(row), counts.get(row)) else { return Ok(Value::Null) };
        let fill = fill.as_ref().map_or(Value::Null, |fill| fill.get(row).into_owned());
        let freed = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX).min(elements.len());
        arguments.bounded_copies(&fill, freed)?;
        let distance = count.saturating_mul(direction);
        let moved = |index: usize| {
            let from = usize::try_from((index as i64).saturating_add(distance)).ok();
            from.and_then(|from| elements.get(from)).unwrap_or(&fill).clone()
        };
        Ok((0..elements.len()).map(moved).collect::<Vec<_>>().into())
    })
}

/// Returns what elements are ordered by: spans by their length, where all texts are some.
fn ranked(keys: &[Value]) -> Vec<Value> {
    let ticks = |text: &str| values::parse_timespan(text).filter(|ticks| values::format_timespan(*ticks) == text);
    if !keys.iter().filter_map(Value::as_str).all(|text| ticks(text).is_some()) {
        return keys.to_vec();
    }
    keys.iter().map(|key| key.as_str().and_then(ticks).map_or_else(|| key.clone(), Value::from)).collect()
}

/// Sorts an array. A last argument of type bool says whether nulls come last. The first of several arrays decides the
/// order of all, and the result is an array of them.
fn sorted(arguments: &FunctionArguments, descending: bool) -> Result<ArrayRef> {
    let has_option = arguments.len() > 1 && arguments.kql_type(arguments.len() - 1) == KqlType::Bool;
    let count = arguments.len() - usize::from(has_option);
    let nulls_last = if has_option { Some(arguments.bools(count)?) } else { None };
    let arrays = (0..count).map(|index| arguments.dynamics(index)).collect::<Result<Vec<_>>>()?;
    arguments.make_dynamics(|row| {
        let Some(keys) = arrays.first().and_then(|keys| keys.elements(row)) else { return Ok(Value::Null) };
        let nulls_last = nulls_last.as_ref().and_then(|option| option.get(row)).unwrap_or(true);
        let mut positions: Vec<usize> = (0..keys.len()).collect();
        let ranks = ranked(&keys);
        positions.sort_by(|left, right| compare(&ranks[*left], &ranks[*right], descending, nulls_last));
        let arranged = |elements: Vec<Value>| -> Value {
            positions
                .iter()
                .map(|position| elements.get(*position).cloned().unwrap_or(Value::Null))
                .collect::<Vec<_>>()
                .into()
        };
        if count == 1 {
            return Ok(arranged(keys));
        }
        let all = arrays.iter().map(|array| match array.elements(row) {
            Some(elements) if elements.len() == keys.len() => arranged(elements),
            _ => Value::Null,
        });
        Ok(all.collect::<Vec<_>>().into())
    })
}

fn compare(left: &Value, right: &Value, descending: bool, nulls_last: bool) -> Ordering {
    match (left.is_null(), right.is_null()) {
        (true, true) => Ordering::Equal,
        (true, false) => {
            if nulls_last {
                Ordering::Greater
            } else {
                Ordering::Less
            }
        }
        (false, true) => {
            if nulls_last {
                Ordering::Less
            } else {
                Ordering::Greater
            }
        }
        (false, false) => match order(left, right) {
            Some(ascending) if descending => ascending.reverse(),
            Some(ascending) => ascending,
            None => kind(left).cmp(&kind(right)),
        },
    }
}

/// Orders numbers before strings before the rest, ascending or descending.
fn kind(value: &Value) -> u8 {
    match value {
        Value::Bool(_) | Value::Number(_) => 0,
        Value::String(_) => 1,
        _ => 2,
    }
}

fn zip(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let arrays = arguments.all_dynamics(0)?;
    arguments.make_dynamics(|row| {
        let arrays: Vec<Vec<Value>> = arrays.iter().map(|array| array.elements(row).unwrap_or_default()).collect();
        let longest = arrays.iter().map(Vec::len).max().unwrap_or(0);
        arguments.bounded_elements(longest.saturating_mul(arrays.len()))?;
        let tuple = |index: usize| -> Value {
            arrays.iter().map(|array| array.get(index).cloned().unwrap_or(Value::Null)).collect::<Vec<_>>().into()
        };
        Ok((0..longest).map(tuple).collect::<Vec<_>>().into())
    })
}

/// Returns the key under which a set holds an element.
fn identity(value: &Value) -> String {
    value.to_string()
}

/// Returns the elements that a set keeps, each once.
fn distinct(elements: impl IntoIterator<Item = Value>, is_kept: impl Fn(&str) -> bool) -> Result<Vec<Value>> {
    let (mut seen, mut kept, mut turns) = (HashSet::new(), Vec::new(), LoopTurns::default());
    for element in elements {
        turns.count()?;
        let identity = identity(&element);
        if is_kept(&identity) && seen.insert(identity) {
            kept.push(element);
        }
    }
    Ok(kept)
}

fn identities(elements: &[Value]) -> Result<HashSet<String>> {
    let mut turns = LoopTurns::default();
    elements.iter().map(|element| turns.count().map(|()| identity(element))).collect()
}

/// Applies a set operation; null if an argument is not an array.
fn sets(
    arguments: &FunctionArguments,
    combine: impl Fn(Vec<Value>, Vec<Vec<Value>>) -> Result<Vec<Value>>,
) -> Result<ArrayRef> {
    let arrays = arguments.all_dynamics(0)?;
    arguments.make_dynamics(|row| {
        let arrays: Option<Vec<Vec<Value>>> = arrays.iter().map(|array| array.elements(row)).collect();
        let Some(mut arrays) = arrays else { return Ok(Value::Null) };
        let first = arrays.remove(0);
        Ok(combine(first, arrays)?.into())
    })
}

fn set_union(arguments: &FunctionArguments) -> Result<ArrayRef> {
    sets(arguments, |first, others| distinct(first.into_iter().chain(others.into_iter().flatten()), |_| true))
}

fn set_intersect(arguments: &FunctionArguments) -> Result<ArrayRef> {
    sets(arguments, |first, others| {
        let others = others.iter().map(|other| identities(other)).collect::<Result<Vec<_>>>()?;
        distinct(first, |identity| others.iter().all(|other| other.contains(identity)))
    })
}

fn set_difference(arguments: &FunctionArguments) -> Result<ArrayRef> {
    sets(arguments, |first, others| {
        let others = others.iter().map(|other| identities(other)).collect::<Result<Vec<_>>>()?;
        distinct(first, |identity| !others.iter().any(|other| other.contains(identity)))
    })
}

fn set_has_element(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let (arrays, wanted, spans) = (arguments.dynamics(0)?, arguments.dynamics(1)?, ticks_of(arguments, 1)?);
    arguments.make_bools(|row| {
        let wanted = wanted.get(row);
        let ticks = spans.as_ref().and_then(|spans| spans.get(row));
        let is_it = |element: &Value| same(element, &wanted) || (ticks.is_some() && element.as_i64() == ticks);
        Some(arrays.elements(row)?.iter().any(is_it))
    })
}

fn set_equals(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let (left, right) = (arguments.dynamics(0)?, arguments.dynamics(1)?);
    let of_rows = (0..arguments.rows).map(|row| {
        let (Some(left), Some(right)) = (left.elements(row), right.elements(row)) else { return Ok(None) };
        Ok(Some(identities(&left)? == identities(&right)?))
    });
    Ok(Arc::new(of_rows.collect::<Result<BooleanArray>>()?))
}

fn jaccard_index(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let (left, right) = (arguments.dynamics(0)?, arguments.dynamics(1)?);
    let of_rows = (0..arguments.rows).map(|row| {
        let (Some(left), Some(right)) = (left.elements(row), right.elements(row)) else { return Ok(None) };
        let (left, right) = (identities(&left)?, identities(&right)?);
        Ok(Some(left.intersection(&right).count() as f64 / left.union(&right).count() as f64))
    });
    Ok(Arc::new(of_rows.collect::<Result<Float64Array>>()?))
}
