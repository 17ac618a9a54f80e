//! JSON that is changed at a path of DuckDB's: `json_set('{}', '$.a[0].b', '1')` and its kin. What the path lacks is made on the way
//! where a value is set or inserted: an object for a key, an array for its first place.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StringArray};
use arrow::datatypes::DataType;
use datafusion::error::Result;
use datafusion::logical_expr::ScalarUDF;
use serde_json::{Map, Value};

use super::definition::Definition;
use super::json::{Step, parsed, steps_of};

/// What becomes of the place that a path names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PathChange {
    /// The value goes there, whether there is one or not.
    Set,
    /// The value goes there where there is none.
    Insert,
    /// The value goes there where there is one.
    Replace,
    Remove,
}

impl PathChange {
    fn makes_new_places(self) -> bool {
        matches!(self, Self::Set | Self::Insert)
    }
}

/// Returns the functions of this file.
pub(super) fn functions() -> Vec<Arc<ScalarUDF>> {
    let definition = |name, arguments: usize, compute: fn(&[ArrayRef], usize) -> Result<ArrayRef>| Definition {
        name,
        aliases: &[],
        arguments: arguments..=arguments,
        takes: |types| Ok(vec![DataType::Utf8; types.len()]),
        returns: |_| Ok(DataType::Utf8),
        compute,
    };
    let definitions = [
        definition("json_remove", 2, |arrays, rows| changed_rows(arrays, rows, PathChange::Remove)),
        definition("json_replace", 3, |arrays, rows| changed_rows(arrays, rows, PathChange::Replace)),
    ];
    definitions.into_iter().map(Definition::into_udf).collect()
}

fn changed_rows(arrays: &[ArrayRef], rows: usize, change: PathChange) -> Result<ArrayRef> {
    let text = |index: usize, row: usize| arrays.get(index).map_or("null", |array| array.as_string::<i32>().value(row));
    let row = |row: usize| -> Result<Option<String>> {
        if arrays.iter().any(|array| array.is_null(row)) {
            return Ok(None);
        }
        let value = changed_at(parsed(text(0, row))?, text(1, row), &parsed(text(2, row))?, change)?;
        Ok(value.map(|value| value.to_string()))
    };
    Ok(Arc::new((0..rows).map(row).collect::<Result<StringArray>>()?))
}

/// Returns the JSON with the value of a path changed to `new`; `None` where nothing is left of it. Errors: what is no path.
pub(super) fn changed_at(mut value: Value, path: &str, new: &Value, change: PathChange) -> Result<Option<Value>> {
    let steps = if path.is_empty() { Vec::new() } else { steps_of(path)? };
    if steps.is_empty() {
        return Ok(match change {
            PathChange::Set | PathChange::Replace => Some(new.clone()),
            PathChange::Insert => Some(value),
            PathChange::Remove => None,
        });
    }
    change_part(&mut value, &steps, new, change);
    Ok(Some(value))
}

fn change_part(value: &mut Value, steps: &[Step], new: &Value, change: PathChange) {
    let [step, rest @ ..] = steps else { return };
    let made = || if change.makes_new_places() { made_at(rest, new) } else { None };
    match value {
        Value::Object(members) => {
            let (Step::Key(key) | Step::KeyOrIndex(key)) = step else { return };
            if !members.contains_key(key) {
                if let Some(made) = made() {
                    members.insert(key.clone(), made);
                }
            } else if rest.is_empty() && change == PathChange::Remove {
                members.shift_remove(key);
            } else if let Some(member) = members.get_mut(key) {
                change_found(member, rest, new, change);
            }
        }
        Value::Array(items) => {
            let Some(at) = place_in(items.len(), step) else { return };
            if at == items.len() {
                items.extend(made());
            } else if rest.is_empty() && change == PathChange::Remove && at < items.len() {
                items.remove(at);
            } else if let Some(item) = items.get_mut(at) {
                change_found(item, rest, new, change);
            }
        }
        _ => {}
    }
}

/// Changes what a step found, which is taken away by its parent.
fn change_found(found: &mut Value, rest: &[Step], new: &Value, change: PathChange) {
    match (rest.is_empty(), change) {
        (true, PathChange::Set | PathChange::Replace) => *found = new.clone(),
        (true, PathChange::Insert | PathChange::Remove) => {}
        (false, _) => change_part(found, rest, new, change),
    }
}

/// Returns the place of a step within an array; its length for the place behind the last item.
fn place_in(length: usize, step: &Step) -> Option<usize> {
    let index: i64 = match step {
        Step::End => return Some(length),
        // As JSON Pointer says.
        Step::Key(key) if key == "-" => return Some(length),
        Step::Key(_) => return None,
        Step::Index(index) => *index,
        Step::KeyOrIndex(number) => number.parse().ok()?,
    };
    let at = if index < 0 { index.checked_add(i64::try_from(length).ok()?)? } else { index };
    usize::try_from(at).ok()
}

/// Returns what is made for steps that lead nowhere yet; `None` where one of them is a place that a new array does not have.
fn made_at(steps: &[Step], new: &Value) -> Option<Value> {
    steps.iter().rev().try_fold(new.clone(), |inner, step| match step {
        Step::Key(key) | Step::KeyOrIndex(key) => Some(Value::Object(Map::from_iter([(key.clone(), inner)]))),
        Step::Index(0) | Step::End => Some(Value::Array(vec![inner])),
        Step::Index(_) => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_made_where_a_value_is_set() {
        for (json, path, expected) in [
            ("{}", "$.a.b.c", r#"{"a":{"b":{"c":9}}}"#),
            ("{}", "$.a[0].b[0]", r#"{"a":[{"b":[9]}]}"#),
            ("{}", "$.a[1]", "{}"),
            ("{}", "/a/0", r#"{"a":{"0":9}}"#),
            ("[1,2]", "$[#]", "[1,2,9]"),
            ("[1,2]", "$[#-1]", "[1,9]"),
            ("[1,2]", "/-", "[1,2,9]"),
            ("[1,2]", "$[2]", "[1,2,9]"),
            ("[1,2]", "$[5]", "[1,2]"),
            (r#"{"a":null}"#, "$.a.b", r#"{"a":null}"#),
            (r#"{"a":1}"#, "$", "9"),
        ] {
            let changed = changed_at(parsed(json).unwrap(), path, &Value::from(9), PathChange::Set).unwrap();
            assert_eq!(changed.unwrap().to_string(), expected, "{json} {path}");
        }
    }

    #[test]
    fn what_is_there_decides_about_inserts_and_replacements() {
        let changed = |json: &str, path: &str, change| {
            let changed = changed_at(parsed(json).unwrap(), path, &Value::from(9), change).unwrap();
            changed.map_or_else(|| "nothing".to_owned(), |value| value.to_string())
        };
        assert_eq!(changed(r#"{"a":1}"#, "$.a", PathChange::Insert), r#"{"a":1}"#);
        assert_eq!(changed(r#"{"a":1}"#, "$.b", PathChange::Insert), r#"{"a":1,"b":9}"#);
        assert_eq!(changed(r#"{"a":1}"#, "$.b", PathChange::Replace), r#"{"a":1}"#);
        assert_eq!(changed("[1,2]", "$[#]", PathChange::Replace), "[1,2]");
        assert_eq!(changed(r#"{"a":1,"b":2,"c":3}"#, "$.a", PathChange::Remove), r#"{"b":2,"c":3}"#);
        assert_eq!(changed("[1,2,3]", "$[#-2]", PathChange::Remove), "[1,3]");
        assert_eq!(changed("[1]", "$", PathChange::Remove), "nothing");
        assert!(changed_at(Value::Null, "$x", &Value::Null, PathChange::Set).is_err());
    }
}
