//! Functions of dynamic objects, which Kusto calls bags. If several bags have a member, the first one counts.

use std::collections::HashSet;

use arrow::array::ArrayRef;
use datafusion::error::Result;
use serde_json::{Map, Value};

use super::arguments::FunctionArguments;
use super::dynamic::at_path;
use super::signature::{FunctionEntry, Returns, entry};
use crate::interrupt::check_interrupt;
use crate::types::KqlType;
use crate::values;

const DYNAMIC: Returns = Returns::Is(KqlType::Dynamic);

/// The function that `pack_all(true)` applies to its bag. No query can call it by this name.
pub(crate) const WITHOUT_EMPTY: &str = "pack_all(true)";

/// The most names of a path: about as deep as dynamic values nest.
const MOST_NAMES: usize = 100;

pub(super) const FUNCTIONS: &[FunctionEntry] = &[
    entry(WITHOUT_EMPTY, "j", Returns::Is(KqlType::Dynamic), without_empty),
    entry("bag_keys", "j", DYNAMIC, bag_keys),
    entry("bag_merge", "jj*", DYNAMIC, bag_merge),
    entry("bag_remove_keys", "jj", DYNAMIC, bag_remove_keys),
    entry("bag_has_key", "js", Returns::Is(KqlType::Bool), bag_has_key),
    entry("bag_set_key", "jsx", DYNAMIC, bag_set_key),
    entry("bag_zip", "jj", DYNAMIC, bag_zip),
];

fn bag_keys(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let bags = arguments.dynamics(0)?;
    arguments.make_dynamics(|row| {
        Ok(match bags.get(row).as_ref() {
            Value::Object(members) => members.keys().cloned().collect::<Vec<_>>().into(),
            _ => Value::Null,
        })
    })
}

fn bag_merge(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let bags = arguments.all_dynamics(0)?;
    arguments.make_dynamics(|row| {
        let mut merged: Option<Map<String, Value>> = None;
        for bag in &bags {
            if let Value::Object(members) = bag.get(row).as_ref() {
                let merged = merged.get_or_insert_default();
                for (name, value) in members {
                    merged.entry(name.clone()).or_insert_with(|| value.clone());
                }
            }
        }
        Ok(merged.map_or(Value::Null, Value::Object))
    })
}

fn bag_remove_keys(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let (bags, keys) = (arguments.dynamics(0)?, arguments.dynamics(1)?);
    arguments.make_dynamics(|row| {
        let Value::Object(mut members) = bags.get(row).into_owned() else { return Ok(Value::Null) };
        let keys = keys.elements(row).unwrap_or_default();
        let (paths, names): (HashSet<String>, HashSet<String>) =
            keys.iter().map(values::value_to_string).partition(|key| is_path(key));
        // All at once: each that is removed moves those behind it.
        members.retain(|name, _| !names.contains(name));
        for path in &paths {
            check_interrupt()?;
            remove_at(&mut members, path);
        }
        Ok(Value::Object(members))
    })
}

/// Removes the member that a path of names leads to.
fn remove_at(members: &mut Map<String, Value>, path: &str) {
    let names = names_of(path);
    let Some((last, parents)) = names.split_last() else { return };
    let mut bag = members;
    for name in parents {
        let Some(Value::Object(inner)) = bag.get_mut(*name) else { return };
        bag = inner;
    }
    bag.shift_remove(*last);
}

fn is_path(key: &str) -> bool {
    key.starts_with("$.") || key.starts_with("$[")
}

/// Returns the names of a path: `$.a['b']`.
fn names_of(path: &str) -> Vec<&str> {
    let names = path[1..].split(['.', '[', ']']).map(|name| name.trim_matches(['\'', '"']));
    names.filter(|name| !name.is_empty()).collect()
}

/// Sets the member that a path of names leads to. Bags that are missing on the way are made.
fn set_at(members: &mut Map<String, Value>, names: &[&str], set: Value) {
    let Some((first, rest)) = names.split_first() else { return };
    if rest.is_empty() {
        members.insert((*first).to_owned(), set);
        return;
    }
    let inner = members.entry((*first).to_owned()).or_insert(Value::Null);
    if !inner.is_object() {
        *inner = Value::Object(Map::new());
    }
    if let Value::Object(inner) = inner {
        set_at(inner, rest, set);
    }
}

fn bag_has_key(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let (bags, keys) = (arguments.dynamics(0)?, arguments.strings(1)?);
    arguments.make_bools(|row| {
        let (bag, key) = (bags.get(row), keys.get(row));
        let Value::Object(members) = bag.as_ref() else { return None };
        Some(if key.starts_with('$') { at_path(&bag, key).is_some() } else { members.contains_key(key) })
    })
}

fn bag_set_key(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let (bags, keys, set) = (arguments.dynamics(0)?, arguments.strings(1)?, arguments.dynamics(2)?);
    arguments.make_dynamics(|row| {
        let Value::Object(mut members) = bags.get(row).into_owned() else { return Ok(Value::Null) };
        let (key, set) = (keys.get(row), set.get(row).into_owned());
        if is_path(key) {
            let names = names_of(key);
            if names.len() > MOST_NAMES {
                return Err(arguments.error(&format!("a path has at most {MOST_NAMES} names")));
            }
            set_at(&mut members, &names, set);
        } else {
            members.insert(key.to_owned(), set);
        }
        Ok(Value::Object(members))
    })
}

/// Takes names from one array and values from the other. Elements that are not strings are no names.
fn bag_zip(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let (keys, values) = (arguments.dynamics(0)?, arguments.dynamics(1)?);
    arguments.make_dynamics(|row| {
        let Some(keys) = keys.elements(row) else { return Ok(Value::Null) };
        let values = values.elements(row).unwrap_or_default();
        let mut bag = Map::new();
        for (index, key) in keys.iter().enumerate() {
            if let Value::String(key) = key {
                bag.insert(key.clone(), values.get(index).cloned().unwrap_or(Value::Null));
            }
        }
        Ok(Value::Object(bag))
    })
}

/// Removes nulls and empty strings.
fn without_empty(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let bags = arguments.dynamics(0)?;
    let is_empty = |value: &Value| value.is_null() || value.as_str().is_some_and(str::is_empty);
    arguments.make_dynamics(|row| match bags.get(row).into_owned() {
        Value::Object(mut bag) => {
            bag.retain(|_, value| !is_empty(value));
            Ok(Value::Object(bag))
        }
        other => Ok(other),
    })
}
