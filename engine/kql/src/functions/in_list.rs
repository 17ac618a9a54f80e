//! `in`: whether a value is in a list. A list of literals becomes a set once a batch. A dynamic array in the list
//! stands for its elements. Null is in no list.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, StringArray};
use datafusion::error::Result;
use serde_json::Value;

use super::arguments::FunctionArguments;
use super::conversion;
use crate::types::KqlType;
use crate::values;

/// Whether the first argument is among the others.
pub(super) fn is_in(arguments: &FunctionArguments, ignore_case: bool) -> Result<ArrayRef> {
    let constant = (1..arguments.len()).all(|index| arguments.is_constant(index));
    if constant { in_constants(arguments, ignore_case) } else { in_columns(arguments, ignore_case) }
}

/// A value as a set holds it. An integer, a real and a decimal that are equal have one key.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum SetKey {
    Text(String),
    Whole(i64),
    Real(u64),
    Nested(String),
}

impl SetKey {
    fn as_text(&self) -> Option<&str> {
        match self {
            SetKey::Text(text) => Some(text),
            SetKey::Whole(_) | SetKey::Real(_) | SetKey::Nested(_) => None,
        }
    }
}

fn in_constants(arguments: &FunctionArguments, ignore_case: bool) -> Result<ArrayRef> {
    let mut keys = HashSet::new();
    for (list, kql_type) in arguments.all_dynamics(1)?.iter().zip(listed_types(arguments)) {
        collect(&list.get(0), *kql_type, ignore_case, &mut keys);
    }
    match arguments.kql_type(0) {
        KqlType::String | KqlType::Guid => strings_in(arguments, ignore_case, &keys),
        KqlType::Int | KqlType::Long => {
            let values = arguments.longs(0)?;
            let keys: HashSet<i64> = keys.iter().filter_map(whole).collect();
            arguments.make_total(|row| values.get(row).is_some_and(|value| keys.contains(&value)))
        }
        KqlType::Bool | KqlType::Real | KqlType::Decimal | KqlType::DateTime | KqlType::TimeSpan => {
            typed_in_constants(arguments, ignore_case, keys)
        }
        KqlType::Dynamic => {
            let values = arguments.dynamics(0)?;
            arguments.make_total(|row| key(&values.get(row), ignore_case).is_some_and(|key| keys.contains(&key)))
        }
    }
}

/// The types of the values in the list.
fn listed_types<'a>(arguments: &'a FunctionArguments) -> &'a [KqlType] {
    arguments.types().get(1..).unwrap_or_default()
}

/// Strings in the list count as what they convert to.
fn typed_in_constants(arguments: &FunctionArguments, ignore_case: bool, mut keys: HashSet<SetKey>) -> Result<ArrayRef> {
    let texts: Vec<&str> = keys.iter().filter_map(SetKey::as_text).collect();
    let kql_type = arguments.kql_type(0);
    if !texts.is_empty() {
        let texts: ArrayRef = Arc::new(StringArray::from(texts));
        let converted = conversion::convert(KqlType::String, &texts, kql_type)?;
        let converted = conversion::convert(kql_type, &converted, KqlType::Dynamic)?;
        let converted = converted.as_string::<i32>().iter().flatten();
        keys.extend(converted.filter_map(|json| typed_key(&values::parse_json(json), kql_type, ignore_case)));
    }
    if kql_type == KqlType::TimeSpan {
        add_spans(&mut keys);
    }
    let values = arguments.dynamics(0)?;
    let key_of = |row| typed_key(&values.get(row), kql_type, ignore_case);
    arguments.make_total(|row| key_of(row).is_some_and(|key| keys.contains(&key)))
}

fn strings_in(arguments: &FunctionArguments, ignore_case: bool, keys: &HashSet<SetKey>) -> Result<ArrayRef> {
    let strings = arguments.string_views(0)?;
    let keys: HashSet<String> = keys.iter().map(key_string).collect();
    if ignore_case {
        arguments.make_total(|row| keys.contains(&strings.get(row).to_lowercase()))
    } else {
        arguments.make_total(|row| keys.contains(strings.get(row)))
    }
}

fn in_columns(arguments: &FunctionArguments, ignore_case: bool) -> Result<ArrayRef> {
    let value = arguments.dynamics(0)?;
    let lists = arguments.all_dynamics(1)?;
    let is_text = matches!(arguments.kql_type(0), KqlType::String | KqlType::Guid);
    arguments.make_total(|row| {
        let mut keys = HashSet::new();
        for (list, kql_type) in lists.iter().zip(listed_types(arguments)) {
            // A text is compared with a decimal's.
            let kql_type = if is_text { KqlType::String } else { *kql_type };
            collect(&list.get(row), kql_type, ignore_case, &mut keys);
        }
        if arguments.kql_type(0) == KqlType::TimeSpan {
            add_spans(&mut keys);
        }
        typed_key(&value.get(row), arguments.kql_type(0), ignore_case).is_some_and(|key| keys.contains(&key))
    })
}

/// Adds the texts of spans: a literal of type dynamic holds one as its ticks, a value is its text.
fn add_spans(keys: &mut HashSet<SetKey>) {
    let span = |key: &SetKey| match key {
        SetKey::Whole(ticks) => Some(SetKey::Text(values::format_timespan(*ticks))),
        _ => None,
    };
    let spans: Vec<SetKey> = keys.iter().filter_map(span).collect();
    keys.extend(spans);
}

fn collect(value: &Value, kql_type: KqlType, ignore_case: bool, keys: &mut HashSet<SetKey>) {
    match value {
        Value::Array(elements) => keys.extend(elements.iter().filter_map(|element| key(element, ignore_case))),
        other => keys.extend(typed_key(other, kql_type, ignore_case)),
    }
}

/// The key of a value of a type: a decimal is a text in JSON, and a number here.
fn typed_key(value: &Value, kql_type: KqlType, ignore_case: bool) -> Option<SetKey> {
    match value {
        Value::String(text) if kql_type == KqlType::Decimal => Some(decimal_key(text)),
        other => key(other, ignore_case),
    }
}

/// The key of a decimal, which an integer or a real that is equal has; one that neither can be keeps all of its digits.
fn decimal_key(text: &str) -> SetKey {
    if let Ok(whole) = text.parse() {
        return SetKey::Whole(whole);
    }
    match text.parse::<f64>() {
        Ok(real) if real.to_string() == text => SetKey::Real(real.to_bits()),
        _ => SetKey::Text(text.to_owned()),
    }
}

fn key(value: &Value, ignore_case: bool) -> Option<SetKey> {
    let key = match value {
        Value::Null => return None,
        Value::Bool(truth) => SetKey::Whole(i64::from(*truth)),
        Value::String(text) if ignore_case => SetKey::Text(text.to_lowercase()),
        Value::String(text) => SetKey::Text(text.clone()),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => SetKey::Whole(whole),
            (None, Some(real)) if real.fract() == 0.0 && real.abs() < 9e15 => SetKey::Whole(real as i64),
            (None, real) => SetKey::Real(real.unwrap_or(f64::NAN).to_bits()),
        },
        nested => SetKey::Nested(nested.to_string()),
    };
    Some(key)
}

fn whole(key: &SetKey) -> Option<i64> {
    match key {
        SetKey::Whole(whole) => Some(*whole),
        SetKey::Text(text) => text.trim().parse().ok(),
        SetKey::Real(_) | SetKey::Nested(_) => None,
    }
}

fn key_string(key: &SetKey) -> String {
    match key {
        SetKey::Text(text) | SetKey::Nested(text) => text.clone(),
        SetKey::Whole(whole) => whole.to_string(),
        SetKey::Real(bits) => f64::from_bits(*bits).to_string(),
    }
}
