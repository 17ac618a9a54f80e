//! Functions that build dynamic values and read from them: members, elements, paths.

use std::collections::HashSet;

use arrow::array::ArrayRef;
use datafusion::error::Result;
use serde_json::{Map, Value};

use super::arguments::FunctionArguments;
use super::signature::{FunctionEntry, Returns, entry};
use crate::interrupt::LoopTurns;
use crate::types::KqlType;
use crate::values;

const DYNAMIC: Returns = Returns::Is(KqlType::Dynamic);
const BAG: Returns = Returns::By(bag_type);
/// The most elements of a `range`, as in Kusto.
const MOST_ELEMENTS: i64 = 1_048_576;

/// The functions that `mv-expand` applies before it converts an element: other values become null. No query can call
/// them by these names.
pub(crate) const NUMBER_ONLY: &str = "mv-expand to a number";
pub(crate) const TRUTH_ONLY: &str = "mv-expand to a bool";
pub(crate) const TEXT_ONLY: &str = "mv-expand to a text";

pub(super) const FUNCTIONS: &[FunctionEntry] = &[
    entry(NUMBER_ONLY, "j", DYNAMIC, |arguments| values_where(arguments, Value::is_number)),
    entry(TRUTH_ONLY, "j", DYNAMIC, |arguments| values_where(arguments, |value| value.is_boolean() || value.is_i64())),
    entry(TEXT_ONLY, "j", DYNAMIC, |arguments| values_where(arguments, Value::is_string)),
    entry("pack", "x*", BAG, pack),
    entry("bag_pack", "x*", BAG, pack),
    entry("pack_dictionary", "x*", BAG, pack),
    entry("pack_array", "x*", DYNAMIC, pack_array),
    entry("range", "xx?x", Returns::By(range_type), range),
    entry("repeat", "xi", DYNAMIC, repeat),
    entry("dynamic_to_json", "x", Returns::Is(KqlType::String), dynamic_to_json),
    entry("extract_json", "ww", Returns::Is(KqlType::String), extract_json),
    entry("extractjson", "ww", Returns::Is(KqlType::String), extract_json),
    entry("treepath", "j", DYNAMIC, treepath),
];

/// `value.name`.
pub(super) fn member(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let (values, names) = (arguments.json(0)?, arguments.strings(1)?);
    arguments.make_optional_strings(|row, text| {
        let found = values.optional(row).and_then(|json| values::json_member(json, names.get(row)));
        text.push_str(found.unwrap_or_default());
        Ok(found.is_some())
    })
}

/// `value[index]`, from the end if the index is negative. A dynamic string as the index names a member.
pub(super) fn element(arguments: &FunctionArguments) -> Result<ArrayRef> {
    if matches!(arguments.kql_type(1), KqlType::String) {
        return member(arguments);
    }
    let (values, indexes) = (arguments.json(0)?, arguments.longs(1)?);
    let names = (arguments.kql_type(1) == KqlType::Dynamic).then(|| arguments.json(1)).transpose()?;
    arguments.make_optional_strings(|row, text| {
        let name = names.as_ref().and_then(|names| names.optional(row)).filter(|name| name.starts_with('"'));
        let found = values.optional(row).and_then(|json| match name {
            Some(name) => values::json_member(json, &values::json_to_string(name)),
            None => values::json_element(json, indexes.get(row)?),
        });
        text.push_str(found.unwrap_or_default());
        Ok(found.is_some())
    })
}

fn values_where(arguments: &FunctionArguments, is_kept: impl Fn(&Value) -> bool) -> Result<ArrayRef> {
    let values = arguments.dynamics(0)?;
    arguments.make_dynamics(|row| {
        let value = values.get(row);
        Ok(if is_kept(&value) { value.into_owned() } else { Value::Null })
    })
}

/// Names alternate with values.
fn bag_type(types: &[KqlType]) -> std::result::Result<KqlType, String> {
    if types.len() % 2 == 1 {
        return Err("a bag is packed of pairs of a name and a value".to_owned());
    }
    let is_name = |kql_type: &&KqlType| matches!(kql_type, KqlType::String | KqlType::Dynamic);
    match types.iter().step_by(2).find(|kql_type| !is_name(kql_type)) {
        Some(other) => Err(format!("the name of a property must be string, not {}", other.name())),
        None => Ok(KqlType::Dynamic),
    }
}

fn pack(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let names = (0..arguments.len()).step_by(2).map(|index| arguments.strings(index)).collect::<Result<Vec<_>>>()?;
    let values = (1..arguments.len()).step_by(2).map(|index| arguments.dynamics(index)).collect::<Result<Vec<_>>>()?;
    arguments.make_dynamics(|row| {
        let mut bag = Map::new();
        // A value without a name is left out.
        for (name, value) in names.iter().zip(&values).filter(|(name, _)| !name.get(row).is_empty()) {
            bag.insert(name.get(row).to_owned(), value.get(row).into_owned());
        }
        Ok(Value::Object(bag))
    })
}

fn pack_array(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let values = arguments.all_dynamics(0)?;
    arguments.make_dynamics(|row| Ok(values.iter().map(|value| value.get(row).into_owned()).collect::<Vec<_>>().into()))
}

fn range_type(types: &[KqlType]) -> std::result::Result<KqlType, String> {
    let is_wrong = |kql_type: &&KqlType| matches!(kql_type, KqlType::String | KqlType::Bool | KqlType::Guid);
    match types.iter().find(is_wrong) {
        Some(wrong) => Err(format!("range() goes over numbers, datetimes and timespans, not {}", wrong.name())),
        None => Ok(KqlType::Dynamic),
    }
}

/// Includes both ends. The number of elements is bounded as in Kusto.
fn range(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let kinds = arguments.types();
    if kinds.iter().any(|kql_type| matches!(kql_type, KqlType::Real | KqlType::Decimal)) {
        return real_range(arguments);
    }
    let (starts, ends) = (arguments.longs(0)?, arguments.longs(1)?);
    let steps = if arguments.len() > 2 { Some(arguments.longs(2)?) } else { None };
    let default_step = match kinds.first() {
        Some(KqlType::DateTime) => values::TICKS_PER_HOUR,
        Some(KqlType::TimeSpan) => values::TICKS_PER_HOUR,
        _ => 1,
    };
    let kind = arguments.kql_type(0);
    arguments.make_dynamics(|row| {
        let step = steps.as_ref().map_or(Some(default_step), |steps| steps.get(row));
        let (Some(start), Some(end), Some(step)) = (starts.get(row), ends.get(row), step) else {
            return Ok(Value::Null);
        };
        let count = element_count(start, end, step);
        let element = |index: i64| match start.wrapping_add(index.wrapping_mul(step)) {
            ticks if kind == KqlType::DateTime => values::format_datetime(ticks).into(),
            ticks if kind == KqlType::TimeSpan => values::format_timespan(ticks).into(),
            number => Value::from(number),
        };
        Ok((0..count).map(element).collect::<Vec<_>>().into())
    })
}

fn element_count(start: i64, end: i64, step: i64) -> i64 {
    let distance = i128::from(end) - i128::from(start);
    let count = distance.checked_div(step.into()).unwrap_or(-1) + 1;
    let past = distance != 0 && (distance < 0) != (step < 0);
    if past { 0 } else { i64::try_from(count).unwrap_or(MOST_ELEMENTS).clamp(0, MOST_ELEMENTS) }
}

fn real_range(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let (starts, ends) = (arguments.reals(0)?, arguments.reals(1)?);
    let steps = if arguments.len() > 2 { Some(arguments.reals(2)?) } else { None };
    arguments.make_dynamics(|row| {
        let step = steps.as_ref().map_or(Some(1.0), |steps| steps.get(row));
        let (Some(start), Some(end), Some(step)) = (starts.get(row), ends.get(row), step) else {
            return Ok(Value::Null);
        };
        let count = ((end - start) / step).floor() + 1.0;
        let count = if count.is_finite() { count.clamp(0.0, MOST_ELEMENTS as f64) as i64 } else { 0 };
        Ok((0..count).map(|index| Value::from(start + index as f64 * step)).collect::<Vec<_>>().into())
    })
}

fn repeat(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let (values, counts) = (arguments.dynamics(0)?, arguments.longs(1)?);
    arguments.make_dynamics(|row| {
        let Some(count) = counts.get(row).filter(|count| *count >= 0) else { return Ok(Value::Null) };
        let value = values.get(row);
        let count = usize::try_from(count.min(MOST_ELEMENTS)).unwrap_or(0);
        arguments.bounded_copies(&value, count)?;
        Ok(vec![value.into_owned(); count].into())
    })
}

/// Returns JSON with the names of all objects sorted.
fn dynamic_to_json(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let values = arguments.dynamics(0)?;
    arguments.make_strings(|row, text| {
        let value = values.get(row);
        text.push_str(&if value.is_null() { String::new() } else { sorted(&value).to_string() });
        Ok(())
    })
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Array(elements) => elements.iter().map(sorted).collect::<Vec<_>>().into(),
        Value::Object(members) => {
            let mut names: Vec<&String> = members.keys().collect();
            names.sort();
            names.into_iter().map(|name| (name.clone(), sorted(&members[name]))).collect::<Map<_, _>>().into()
        }
        scalar => scalar.clone(),
    }
}

fn extract_json(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let (paths, strings) = (arguments.strings(0)?, arguments.strings(1)?);
    arguments.make_strings(|row, text| {
        let value = serde_json::from_str::<Value>(strings.get(row)).unwrap_or(Value::Null);
        text.push_str(&at_path(&value, paths.get(row)).map(values::value_to_string).unwrap_or_default());
        Ok(())
    })
}

/// Returns the value that a path like `$.a.b[0]['c']` leads to.
pub(super) fn at_path<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    path_steps(path)?.iter().try_fold(value, |value, step| match value {
        Value::Array(elements) => elements.get(step.parse::<usize>().ok()?),
        Value::Object(members) => members.get(step),
        _ => None,
    })
}

/// Returns the names and indexes of a path like `$.a.b[0]['c']`.
pub(crate) fn path_steps(path: &str) -> Option<Vec<String>> {
    let mut rest = path.strip_prefix('$')?;
    let mut steps = Vec::new();
    while !rest.is_empty() {
        let (step, after) = if let Some(bracket) = rest.strip_prefix('[') {
            let (inside, after) = bracket.split_once(']')?;
            (inside.trim_matches(['\'', '"']), after)
        } else {
            let name = rest.strip_prefix('.')?;
            name.split_at(name.find(['.', '[']).unwrap_or(name.len()))
        };
        steps.push(step.to_owned());
        rest = after;
    }
    Some(steps)
}

fn treepath(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let values = arguments.dynamics(0)?;
    arguments.make_dynamics(|row| {
        let (mut paths, mut seen, mut bytes) = (Vec::new(), HashSet::new(), 0_usize);
        let mut turns = LoopTurns::default();
        collect_paths(&values.get(row), "", &mut |path: &str| {
            turns.count()?;
            if !seen.contains(path) {
                // Each path repeats the names that lead to it, and is held twice.
                bytes = bytes.saturating_add(path.len().saturating_mul(2));
                arguments.bounded(bytes)?;
                seen.insert(path.to_owned());
                paths.push(path.to_owned());
            }
            Ok(())
        })?;
        Ok(paths.into())
    })
}

/// Names the path of each value inside another one. Every element of an array has the path `[0]`.
fn collect_paths(value: &Value, prefix: &str, add: &mut impl FnMut(&str) -> Result<()>) -> Result<()> {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                let path = format!("{prefix}['{name}']");
                add(&path)?;
                collect_paths(member, &path, add)?;
            }
        }
        Value::Array(elements) => {
            let path = format!("{prefix}[0]");
            for element in elements {
                add(&path)?;
                collect_paths(element, &path, add)?;
            }
        }
        _ => {}
    }
    Ok(())
}
