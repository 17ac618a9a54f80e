//! JSON that is changed, and all parts of it that a path with `*` names: PostgreSQL's `||`, `-`, `#-`, `jsonb_set` and its kin.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, ListBuilder, StringArray, StringBuilder};
use arrow::datatypes::{DataType, Int64Type};
use datafusion::error::Result;
use datafusion::logical_expr::ScalarUDF;
use serde_json::Value;

use super::definition::{Definition, invalid, unfit};
use super::json::{MAX_STEPS, Step, as_text, parsed, step_into, steps_of, too_many_steps};
use super::json_paths::{PathChange, changed_at};
use crate::type_names::sql_name;

/// Returns the functions of this file.
pub(super) fn functions() -> Vec<Arc<ScalarUDF>> {
    let all_parts = |name, compute: fn(&[ArrayRef], usize) -> Result<ArrayRef>| Definition {
        name,
        aliases: &[],
        arguments: 2..=2,
        takes: |types| Ok(vec![DataType::Utf8; types.len()]),
        returns: |_| Ok(DataType::new_list(DataType::Utf8, true)),
        compute,
    };
    let definitions = [
        all_parts("json_extract_all", |arrays, rows| all(arrays, rows, |value| Some(value.to_string()))),
        all_parts("json_extract_string_all", |arrays, rows| all(arrays, rows, as_text)),
        Definition {
            name: "json_concat",
            aliases: &["jsonb_concat"],
            arguments: 2..=2,
            takes: |types| Ok(vec![DataType::Utf8; types.len()]),
            returns: |_| Ok(DataType::Utf8),
            compute: |arrays, rows| {
                changed(arrays, rows, |row, value| {
                    let other = parsed(arrays[1].as_string::<i32>().value(row))?;
                    Ok(concatenated(value, other))
                })
            },
        },
        Definition {
            name: "json_delete",
            aliases: &["jsonb_delete"],
            arguments: 2..=2,
            takes: |types| match types {
                [_, index] if index.is_integer() => Ok(vec![DataType::Utf8, DataType::Int64]),
                [_, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Null] => {
                    Ok(vec![DataType::Utf8; 2])
                }
                [_, list] if list.is_list() => Ok(vec![DataType::Utf8, DataType::new_list(DataType::Utf8, true)]),
                [_, other] => Err(unfit(format!("a key is a text or a number, not {}", sql_name(other)))),
                _ => Err(unfit("json_delete takes JSON and a key".into())),
            },
            returns: |_| Ok(DataType::Utf8),
            compute: |arrays, rows| {
                changed(arrays, rows, |row, value| match arrays[1].data_type() {
                    DataType::Int64 => Ok(without_index(value, arrays[1].as_primitive::<Int64Type>().value(row))),
                    DataType::Utf8 => Ok(without_keys(value, &[arrays[1].as_string::<i32>().value(row).to_owned()])),
                    _ => Ok(without_keys(value, &texts_of(&arrays[1], row)?)),
                })
            },
        },
        Definition {
            name: "json_set",
            aliases: &["jsonb_set"],
            arguments: 3..=4,
            takes: takes_path_and_value,
            returns: |_| Ok(DataType::Utf8),
            compute: |arrays, rows| changed(arrays, rows, |row, value| placed(arrays, row, value, JsonPlace::At)),
        },
        Definition {
            name: "json_insert",
            aliases: &["jsonb_insert"],
            arguments: 3..=4,
            takes: takes_path_and_value,
            returns: |_| Ok(DataType::Utf8),
            compute: |arrays, rows| changed(arrays, rows, |row, value| placed(arrays, row, value, JsonPlace::Before)),
        },
        Definition {
            name: "json_delete_path",
            aliases: &["jsonb_delete_path"],
            arguments: 2..=2,
            takes: |types| takes_path_and_value(types).map(|types| types[..2].to_vec()),
            returns: |_| Ok(DataType::Utf8),
            compute: |arrays, rows| changed(arrays, rows, |row, value| placed(arrays, row, value, JsonPlace::Nowhere)),
        },
        Definition {
            name: "json_strip_nulls",
            aliases: &["jsonb_strip_nulls"],
            arguments: 1..=1,
            takes: |types| Ok(vec![DataType::Utf8; types.len()]),
            returns: |_| Ok(DataType::Utf8),
            compute: |arrays, rows| changed(arrays, rows, |_, value| Ok(without_nulls(value))),
        },
    ];
    definitions.into_iter().map(Definition::into_udf).collect()
}

fn takes_path_and_value(types: &[DataType]) -> Result<Vec<DataType>> {
    let path = match types.get(1) {
        Some(list) if list.is_list() => DataType::new_list(DataType::Utf8, true),
        _ => DataType::Utf8,
    };
    let all = [DataType::Utf8, path, DataType::Utf8, DataType::Boolean];
    Ok(all.into_iter().take(types.len().max(2)).collect())
}

/// Changes the JSON of each row in which no argument is null.
fn changed(arrays: &[ArrayRef], rows: usize, change: impl Fn(usize, Value) -> Result<Value>) -> Result<ArrayRef> {
    let texts = arrays[0].as_string::<i32>();
    let row = |row: usize| -> Result<Option<String>> {
        if arrays.iter().any(|array| array.is_null(row)) {
            return Ok(None);
        }
        change(row, parsed(texts.value(row))?).map(|value| Some(value.to_string()))
    };
    Ok(Arc::new((0..rows).map(row).collect::<Result<StringArray>>()?))
}

/// The parts of each row that a path with `*` names.
fn all(arrays: &[ArrayRef], rows: usize, of: fn(&Value) -> Option<String>) -> Result<ArrayRef> {
    let (texts, paths) = (arrays[0].as_string::<i32>(), arrays[1].as_string::<i32>());
    let mut lists = ListBuilder::new(StringBuilder::new());
    let mut last: Option<(&str, WildcardPath)> = None;
    for row in 0..rows {
        if texts.is_null(row) || paths.is_null(row) {
            lists.append_null();
            continue;
        }
        let value = parsed(texts.value(row))?;
        let text = paths.value(row);
        let path = match last.take() {
            Some((known, path)) if known == text => path,
            _ => WildcardPath::read(text)?,
        };
        path.parts(&value).into_iter().for_each(|part| lists.values().append_option(of(part)));
        lists.append(true);
        last = Some((text, path));
    }
    Ok(Arc::new(lists.finish()))
}

/// A path with `*`: the steps before each of them, and those behind the last.
#[derive(Debug)]
struct WildcardPath {
    before: Vec<(Vec<Step>, Wildcard)>,
    last: Vec<Step>,
}

#[derive(Debug, Clone, Copy)]
enum Wildcard {
    /// `[*]`: each item of an array.
    Items,
    /// `.*`: each member of an object.
    Members,
}

impl WildcardPath {
    /// Errors: what is no path, or has too many steps.
    fn read(path: &str) -> Result<Self> {
        let steps = |part: &str, is_first: bool| match (is_first, part) {
            (_, "") => Ok(Vec::new()),
            (true, part) => steps_of(part),
            (false, part) => steps_of(&format!("${part}")),
        };
        let (mut before, mut rest) = (Vec::new(), path);
        loop {
            let wildcards = [("[*]", Wildcard::Items), (".*", Wildcard::Members)];
            let found = wildcards.iter().filter_map(|(text, kind)| Some((rest.find(text)?, text.len(), *kind)));
            let Some((at, length, kind)) = found.min_by_key(|(at, ..)| *at) else { break };
            before.push((steps(&rest[..at], before.is_empty())?, kind));
            rest = &rest[at + length..];
            if before.len() > MAX_STEPS {
                return Err(too_many_steps(before.len()));
            }
        }
        let last = steps(rest, before.is_empty())?;
        Ok(Self { before, last })
    }

    fn parts<'v>(&self, value: &'v Value) -> Vec<&'v Value> {
        let mut found = vec![value];
        for (steps, wildcard) in &self.before {
            let parts = found.into_iter().filter_map(|part| steps.iter().try_fold(part, step_into));
            found = parts
                .flat_map(|part| -> Box<dyn Iterator<Item = &'v Value> + 'v> {
                    match (part, wildcard) {
                        (Value::Array(items), Wildcard::Items) => Box::new(items.iter()),
                        (Value::Object(members), Wildcard::Members) => Box::new(members.values()),
                        _ => Box::new(std::iter::empty()),
                    }
                })
                .collect();
        }
        found.into_iter().filter_map(|part| self.last.iter().try_fold(part, step_into)).collect()
    }
}

/// PostgreSQL's `||`: objects are merged at the top, arrays follow each other, and anything else is an array of itself.
fn concatenated(left: Value, right: Value) -> Value {
    match (left, right) {
        (Value::Object(mut left), Value::Object(right)) => {
            left.extend(right);
            Value::Object(left)
        }
        (left, right) => {
            let items = |value: Value| match value {
                Value::Array(items) => items,
                other => vec![other],
            };
            let mut all = items(left);
            all.extend(items(right));
            Value::Array(all)
        }
    }
}

fn without_keys(value: Value, keys: &[String]) -> Value {
    let keys: HashSet<&str> = keys.iter().map(String::as_str).collect();
    let has = |key: &str| keys.contains(key);
    match value {
        Value::Object(members) => Value::Object(members.into_iter().filter(|(key, _)| !has(key)).collect()),
        Value::Array(items) => {
            let is_kept = |item: &Value| item.as_str().is_none_or(|text| !has(text));
            Value::Array(items.into_iter().filter(is_kept).collect())
        }
        other => other,
    }
}

fn without_index(value: Value, index: i64) -> Value {
    match value {
        Value::Array(mut items) => {
            if let Some(at) = place_of(index, items.len()).filter(|at| *at < items.len()) {
                items.remove(at);
            }
            Value::Array(items)
        }
        other => other,
    }
}

fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let kept = members.into_iter().filter(|(_, member)| !member.is_null());
            Value::Object(kept.map(|(key, member)| (key, without_nulls(member))).collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(without_nulls).collect()),
        other => other,
    }
}

/// Where a new value goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum JsonPlace {
    /// In the place of what is there, or behind the last where there is none.
    At,
    /// Before the item of an array, and only where an object has no such key.
    Before,
    /// Nowhere: what is there is taken away.
    Nowhere,
}

fn placed(arrays: &[ArrayRef], row: usize, mut value: Value, place: JsonPlace) -> Result<Value> {
    let new = match place {
        JsonPlace::Nowhere => Value::Null,
        JsonPlace::At | JsonPlace::Before => parsed(arrays[2].as_string::<i32>().value(row))?,
    };
    // `create_if_missing` of jsonb_set, and `insert_after` of jsonb_insert.
    let flag = arrays.get(3).map(|array| array.as_boolean().value(row));
    if let Some(path) = path_of_duckdb(&arrays[1], row) {
        let change = match (place, flag) {
            (JsonPlace::At, Some(false)) => PathChange::Replace,
            (JsonPlace::At, _) => PathChange::Set,
            (JsonPlace::Before, None) => PathChange::Insert,
            (JsonPlace::Before, Some(_)) => {
                return Err(invalid(format!(
                    "with a fourth argument a path is an array, not `{path}`: ARRAY['a', '0']"
                )));
            }
            (JsonPlace::Nowhere, _) => PathChange::Remove,
        };
        return Ok(changed_at(value, path, &new, change)?.unwrap_or_default());
    }
    let path = texts_of(&arrays[1], row)?;
    let Some((last, parents)) = path.split_last() else { return Ok(value) };
    let mut parent = &mut value;
    for key in parents {
        let next = match parent {
            Value::Object(members) => members.get_mut(key),
            Value::Array(items) => {
                let at = key.parse().ok().and_then(|index| place_of(index, items.len()));
                at.and_then(|at| items.get_mut(at))
            }
            _ => None,
        };
        match next {
            Some(next) => parent = next,
            None => return Ok(value),
        }
    }
    match parent {
        Value::Object(members) => match place {
            JsonPlace::Nowhere => {
                members.shift_remove(last);
            }
            JsonPlace::Before if members.contains_key(last) => {
                return Err(invalid(format!("there is a key `{last}` already; write jsonb_set(json, path, value)")));
            }
            JsonPlace::At if flag == Some(false) && !members.contains_key(last) => {}
            JsonPlace::At | JsonPlace::Before => {
                members.insert(last.clone(), new);
            }
        },
        Value::Array(items) => {
            let index: i64 = last.parse().map_err(|_| invalid(format!("`{last}` is no place in an array of JSON")))?;
            let at = place_of(index, items.len());
            match (place, at.filter(|at| *at < items.len())) {
                (JsonPlace::Nowhere, Some(at)) => {
                    items.remove(at);
                }
                (JsonPlace::At, Some(at)) => items[at] = new,
                (JsonPlace::Before, Some(at)) => items.insert(at + usize::from(flag == Some(true)), new),
                (JsonPlace::Nowhere, None) => {}
                (JsonPlace::At, None) if flag == Some(false) => {}
                // Beyond either end.
                (JsonPlace::At | JsonPlace::Before, None) if index < 0 => items.insert(0, new),
                (JsonPlace::At | JsonPlace::Before, None) => items.push(new),
            }
        }
        _ => {}
    }
    Ok(value)
}

/// Returns the place of an index, which counts from the end where it is negative.
fn place_of(index: i64, length: usize) -> Option<usize> {
    let at = if index < 0 { index.checked_add(i64::try_from(length).ok()?)? } else { index };
    usize::try_from(at).ok()
}

/// Returns a path that is written as DuckDB's: `$.a[0]`, `/a/0` or a key, and none of PostgreSQL's `{a,0}`.
fn path_of_duckdb(array: &ArrayRef, row: usize) -> Option<&str> {
    let path = array.as_string_opt::<i32>()?.value(row);
    (!path.trim_start().starts_with('{')).then_some(path)
}

/// Returns the texts of a list, or of PostgreSQL's `{a,b}`.
fn texts_of(array: &ArrayRef, row: usize) -> Result<Vec<String>> {
    if let Some(lists) = array.as_list_opt::<i32>() {
        let items = lists.value(row);
        return Ok(items.as_string::<i32>().iter().flatten().map(str::to_owned).collect());
    }
    let text = array.as_string::<i32>().value(row);
    let inside = text.trim().strip_prefix('{').and_then(|text| text.strip_suffix('}'));
    let inside = inside.ok_or_else(|| invalid(format!("`{text}` is no path; write ARRAY['a', '0']")))?;
    if inside.trim().is_empty() {
        return Ok(Vec::new());
    }
    Ok(inside.split(',').map(|part| part.trim().trim_matches('"').to_owned()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_found_by_wildcards() {
        let value = parsed(r#"{"a": [{"b": 1}, {"b": 2}], "c": {"d": 3}}"#).unwrap();
        for (path, expected) in [
            ("$.a[*].b", vec!["1", "2"]),
            ("$.c.*", vec!["3"]),
            ("$.a[*]", vec![r#"{"b":1}"#, r#"{"b":2}"#]),
            ("$.x[*]", vec![]),
            ("$.c[*]", vec![]),
        ] {
            let found = WildcardPath::read(path).unwrap().parts(&value);
            let found: Vec<String> = found.into_iter().map(Value::to_string).collect();
            assert_eq!(found, expected, "{path}");
        }
        assert!(WildcardPath::read(&format!("${}", "[*]".repeat(1_000))).is_err());
    }

    #[test]
    fn many_keys_are_taken_away_at_once() {
        let keys: Vec<String> = (0..200_000).map(|key: u32| key.to_string()).collect();
        let items = keys.iter().map(String::as_str).chain(["kept"]).map(Value::from);
        assert_eq!(without_keys(Value::Array(items.collect()), &keys), Value::Array(vec!["kept".into()]));
    }
}
