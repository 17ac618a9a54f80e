//! JSON in texts: parts by DuckDB's paths and PostgreSQL's keys, and JSON made of values. A part is JSON again, so that `->`
//! can be written behind `->`; `->>` and its kin take it as text.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array, ListBuilder, StringArray, StringBuilder};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Decimal128Type, Float64Type, Int64Type, UInt64Type};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::ScalarUDF;
use serde_json::{Map, Number, Value};

use super::definition::{ANY_NUMBER, Definition, invalid, unfit};
use super::value_text;
use crate::type_names::sql_name;

/// The one field of a struct whose value is JSON and no text.
pub(crate) const JSON_MARK: &str = "__json";

/// The function that returns JSON, and null for a text that is none.
pub(crate) const TRY_JSON: &str = "try_json";

/// Returns the functions of this file.
pub(super) fn functions() -> Vec<Arc<ScalarUDF>> {
    let part = |name, aliases, returns, compute: fn(&[ArrayRef], usize) -> Result<ArrayRef>| Definition {
        name,
        aliases,
        arguments: 2..=2,
        takes: json_and_path,
        returns,
        compute,
    };
    let about = |name, aliases, returns, compute: fn(&[ArrayRef], usize) -> Result<ArrayRef>| Definition {
        name,
        aliases,
        arguments: 1..=2,
        takes: json_and_path,
        returns,
        compute,
    };
    let along = |name, aliases, compute: fn(&[ArrayRef], usize) -> Result<ArrayRef>| Definition {
        name,
        aliases,
        arguments: 2..=ANY_NUMBER,
        takes: |types| Ok(vec![DataType::Utf8; types.len()]),
        returns: |_| Ok(DataType::Utf8),
        compute,
    };
    let made = |name, aliases, arguments, compute: fn(&[ArrayRef], usize) -> Result<ArrayRef>| Definition {
        name,
        aliases,
        arguments,
        takes: |types| Ok(types.to_vec()),
        returns: |_| Ok(DataType::Utf8),
        compute,
    };
    let text: fn(&[DataType]) -> Result<DataType> = |_| Ok(DataType::Utf8);
    let definitions = [
        part("json_extract", &["json_get", "jsonb_extract"], text, |arrays, rows| {
            texts(arrays, rows, |value| Some(value.to_string()))
        }),
        part("json_extract_string", &["json_extract_text", "json_get_str"], text, |arrays, rows| {
            texts(arrays, rows, as_text)
        }),
        part("json_value", &[], text, |arrays, rows| {
            texts(arrays, rows, |value| if value.is_object() || value.is_array() { None } else { as_text(value) })
        }),
        part(
            "json_exists",
            &["json_has", "jsonb_exists"],
            |_| Ok(DataType::Boolean),
            |arrays, rows| {
                let found = parts(arrays, rows, |value| value.map(|value| Some(value.is_some())))?;
                Ok(Arc::new(BooleanArray::from(found)))
            },
        ),
        along("json_extract_path", &["jsonb_extract_path"], |arrays, rows| {
            by_keys(arrays, rows, |value| Some(value.to_string()))
        }),
        along("json_extract_path_text", &["jsonb_extract_path_text"], |arrays, rows| by_keys(arrays, rows, as_text)),
        about(
            "json_array_length",
            &["jsonb_array_length"],
            |_| Ok(DataType::Int64),
            |arrays, rows| {
                let lengths = parts(arrays, rows, |value| {
                    value.map(|value| value.map(|value| value.as_array().map_or(0, |all| all.len() as i64)))
                })?;
                Ok(Arc::new(Int64Array::from(lengths)))
            },
        ),
        about("json_type", &[], text, |arrays, rows| texts(arrays, rows, |value| Some(duckdb_type(value).to_owned()))),
        about("json_typeof", &["jsonb_typeof"], text, |arrays, rows| {
            texts(arrays, rows, |value| Some(postgres_type(value).to_owned()))
        }),
        about("json_keys", &["json_object_keys"], |_| Ok(DataType::new_list(DataType::Utf8, true)), keys),
        Definition {
            name: "json_valid",
            aliases: &[],
            arguments: 1..=1,
            takes: |_| Ok(vec![DataType::Utf8]),
            returns: |_| Ok(DataType::Boolean),
            compute: |arrays, _| {
                let valid = |text: &str| serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
                Ok(Arc::new(arrays[0].as_string::<i32>().iter().map(|text| text.map(valid)).collect::<BooleanArray>()))
            },
        },
        made("json", &[], 1..=1, |arrays, rows| match arrays[0].data_type() {
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
                let texts = cast(&arrays[0], &DataType::Utf8)?;
                let mut values = Vec::with_capacity(rows);
                for text in texts.as_string::<i32>() {
                    values.push(text.map(|text| parsed(text).map(|value| value.to_string())).transpose()?);
                }
                Ok(Arc::new(StringArray::from(values)))
            }
            _ => to_json(arrays, rows),
        }),
        made(TRY_JSON, &[], 1..=1, |arrays, rows| match arrays[0].data_type() {
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
                let texts = cast(&arrays[0], &DataType::Utf8)?;
                let values = texts.as_string::<i32>().iter();
                let values = values.map(|text| text.and_then(|text| parsed(text).ok()).map(|value| value.to_string()));
                Ok(Arc::new(values.collect::<StringArray>()))
            }
            _ => to_json(arrays, rows),
        }),
        made("to_json", &["to_jsonb", "row_to_json", "array_to_json"], 1..=1, to_json),
        made("json_array", &["json_build_array", "jsonb_build_array"], 0..=ANY_NUMBER, |arrays, rows| {
            let row = |row: usize| -> Result<Option<String>> {
                let values = arrays.iter().map(|array| json_of(array, row)).collect::<Result<Vec<_>>>()?;
                Ok(Some(Value::Array(values).to_string()))
            };
            Ok(Arc::new(StringArray::from((0..rows).map(row).collect::<Result<Vec<_>>>()?)))
        }),
        made("json_object", &["json_build_object", "jsonb_build_object"], 0..=ANY_NUMBER, |arrays, rows| {
            if arrays.len() % 2 == 1 {
                return Err(invalid("json_object takes pairs of a key and a value".into()));
            }
            let row = |row: usize| -> Result<Option<String>> {
                let mut object = Map::new();
                for pair in arrays.chunks_exact(2) {
                    let key = match json_of(&pair[0], row)? {
                        Value::String(key) => key,
                        Value::Null => return Err(invalid("a key of JSON may not be null".into())),
                        other => other.to_string(),
                    };
                    object.insert(key, json_of(&pair[1], row)?);
                }
                Ok(Some(Value::Object(object).to_string()))
            };
            Ok(Arc::new(StringArray::from((0..rows).map(row).collect::<Result<Vec<_>>>()?)))
        }),
    ];
    definitions.into_iter().map(Definition::into_udf).collect()
}

pub(super) fn json_and_path(types: &[DataType]) -> Result<Vec<DataType>> {
    let json = match types.first() {
        Some(DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Null) | None => DataType::Utf8,
        Some(other) => return Err(unfit(format!("JSON is a text, not {}; write to_json(value)", sql_name(other)))),
    };
    let path = types.get(1).map(|path| if path.is_integer() { DataType::Int64 } else { DataType::Utf8 });
    Ok(std::iter::once(json).chain(path).collect())
}

pub(super) fn parsed(text: &str) -> Result<Value> {
    serde_json::from_str(text).map_err(|error| {
        let start: String = text.chars().take(40).collect();
        let more = if text.chars().nth(40).is_some() { "..." } else { "" };
        invalid(format!("`{start}{more}` is not JSON: {error}"))
    })
}

/// A step of a path.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Step {
    Key(String),
    Index(i64),
    /// A number within a pointer: a key of an object, and an index of an array.
    KeyOrIndex(String),
    /// The place behind the last item of an array, where nothing is yet.
    End,
}

pub(super) fn step_into<'a>(value: &'a Value, step: &Step) -> Option<&'a Value> {
    match step {
        Step::Key(key) => value.as_object()?.get(key),
        Step::Index(index) => {
            let items = value.as_array()?;
            let at = if *index < 0 { index.checked_add(i64::try_from(items.len()).ok()?)? } else { *index };
            items.get(usize::try_from(at).ok()?)
        }
        Step::KeyOrIndex(_) => step_into(value, &step.within(value)),
        Step::End => None,
    }
}

impl Step {
    /// Returns the step, as it is taken within a value.
    pub(super) fn within(&self, value: &Value) -> Step {
        match self {
            Step::KeyOrIndex(number) => match number.parse() {
                Ok(index) if value.is_array() => Step::Index(index),
                _ => Step::Key(number.clone()),
            },
            known @ (Step::Key(_) | Step::Index(_) | Step::End) => known.clone(),
        }
    }
}

/// The most steps of a path. A document that is read is not deeper; one that is made of more would be walked by recursion.
pub(super) const MAX_STEPS: usize = 128;

/// Reads `$.a.b[0]`, `/a/b/0`, or a key. Errors: what is no path, or has more steps than [`MAX_STEPS`].
pub(super) fn steps_of(path: &str) -> Result<Vec<Step>> {
    let steps = all_steps_of(path)?;
    match steps.len() {
        0..=MAX_STEPS => Ok(steps),
        count => Err(too_many_steps(count)),
    }
}

pub(super) fn too_many_steps(count: usize) -> DataFusionError {
    invalid(format!("a path of JSON has at most {MAX_STEPS} steps, as documents are not deeper; this one has {count}"))
}

fn all_steps_of(path: &str) -> Result<Vec<Step>> {
    let wrong = || invalid(format!("`{path}` is no path of JSON; write $.key[0].key, /key/0, or a key"));
    if let Some(pointer) = path.strip_prefix('/') {
        let step = |part: &str| match part.parse::<i64>() {
            Ok(_) => Step::KeyOrIndex(part.to_owned()),
            Err(_) => Step::Key(part.replace("~1", "/").replace("~0", "~")),
        };
        return Ok(pointer.split('/').map(step).collect());
    }
    let Some(mut rest) = path.strip_prefix('$') else { return Ok(vec![Step::Key(path.to_owned())]) };
    let mut steps = Vec::new();
    while !rest.is_empty() {
        if let Some(inside) = rest.strip_prefix('[') {
            let end = inside.find(']').ok_or_else(wrong)?;
            let index = inside[..end].trim();
            let from_end = index.strip_prefix('#');
            let index = from_end.unwrap_or(index);
            if from_end.is_some() && matches!(index, "" | "-0") {
                steps.push(Step::End);
                rest = &inside[end + 1..];
                continue;
            }
            let quoted = index.strip_prefix(['"', '\'']).and_then(|text| text.strip_suffix(['"', '\'']));
            steps.push(match quoted {
                Some(key) => Step::Key(key.to_owned()),
                None => Step::Index(index.parse().map_err(|_| wrong())?),
            });
            rest = &inside[end + 1..];
        } else if let Some(key) = rest.strip_prefix('.') {
            if let Some(quoted) = key.strip_prefix('"') {
                let (name, behind) = quoted_key(quoted).ok_or_else(wrong)?;
                steps.push(Step::Key(name));
                rest = behind;
                continue;
            }
            let end = key.find(['.', '[']).unwrap_or(key.len());
            if end == 0 || key[..end].contains('*') {
                return Err(wrong());
            }
            steps.push(Step::Key(key[..end].to_owned()));
            rest = &key[end..];
        } else {
            return Err(wrong());
        }
    }
    Ok(steps)
}

/// Returns the key up to its closing quote, and what follows that; a backslash is before a quote or a backslash that is meant itself.
fn quoted_key(quoted: &str) -> Option<(String, &str)> {
    let mut key = String::new();
    let mut characters = quoted.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((key, &quoted[at + 1..])),
            '\\' => match characters.next()? {
                (_, escaped @ ('"' | '\\')) => key.push(escaped),
                (_, other) => key.extend(['\\', other]),
            },
            other => key.push(other),
        }
    }
    None
}

/// Finds the part that the second argument names, or the whole, and computes something of it: `Ok(None)` where there is no
/// such part, `Err` where the row is null.
fn parts<T>(
    arrays: &[ArrayRef],
    rows: usize,
    of: impl Fn(std::result::Result<Option<&Value>, ()>) -> std::result::Result<Option<T>, ()>,
) -> Result<Vec<Option<T>>> {
    let texts = arrays[0].as_string::<i32>();
    let mut last: Option<(String, Vec<Step>)> = None;
    let mut values = Vec::with_capacity(rows);
    for row in 0..rows {
        if arrays.iter().any(|array| array.is_null(row)) {
            values.push(of(Err(())).ok().flatten());
            continue;
        }
        let value = parsed(texts.value(row))?;
        let steps: &[Step] = match arrays.get(1) {
            None => &[],
            Some(path) if *path.data_type() == DataType::Int64 => {
                &[Step::Index(path.as_primitive::<Int64Type>().value(row))]
            }
            Some(path) => {
                let path = path.as_string::<i32>().value(row);
                if last.as_ref().is_none_or(|(known, _)| known != path) {
                    last = Some((path.to_owned(), steps_of(path)?));
                }
                last.as_ref().map_or(&[], |(_, steps)| steps)
            }
        };
        let found = steps.iter().try_fold(&value, step_into);
        values.push(of(Ok(found)).ok().flatten());
    }
    Ok(values)
}

fn texts(arrays: &[ArrayRef], rows: usize, of: fn(&Value) -> Option<String>) -> Result<ArrayRef> {
    let found = parts(arrays, rows, |value| value.map(|value| value.and_then(of)))?;
    Ok(Arc::new(StringArray::from(found)))
}

pub(super) fn as_text(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

/// PostgreSQL's `#>`: keys as arguments, or as one array written `{a,0,b}`.
fn by_keys(arrays: &[ArrayRef], rows: usize, of: fn(&Value) -> Option<String>) -> Result<ArrayRef> {
    let texts: Vec<&StringArray> = arrays.iter().map(|array| array.as_string::<i32>()).collect();
    let mut values = Vec::with_capacity(rows);
    for row in 0..rows {
        if texts.iter().any(|text| text.is_null(row)) {
            values.push(None);
            continue;
        }
        let mut keys: Vec<&str> = texts[1..].iter().map(|text| text.value(row)).collect();
        if let [one] = keys.as_slice()
            && let Some(inside) = one.strip_prefix('{').and_then(|text| text.strip_suffix('}'))
        {
            keys = inside.split(',').map(|key| key.trim().trim_matches('"')).filter(|key| !key.is_empty()).collect();
        }
        let value = parsed(texts[0].value(row))?;
        let step = |value: &'_ Value, key: &str| match (value, key.parse::<i64>()) {
            (Value::Array(_), Ok(index)) => step_into(value, &Step::Index(index)).cloned(),
            _ => step_into(value, &Step::Key(key.to_owned())).cloned(),
        };
        let found = keys.iter().try_fold(value, |value, key| step(&value, key));
        values.push(found.as_ref().and_then(of));
    }
    Ok(Arc::new(StringArray::from(values)))
}

fn keys(arrays: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let found = parts(arrays, rows, |value| {
        value.map(|value| {
            value.map(|value| value.as_object().map(|object| object.keys().cloned().collect()).unwrap_or_default())
        })
    })?;
    let found: Vec<Option<Vec<String>>> = found;
    let mut lists = ListBuilder::new(StringBuilder::new());
    for keys in found {
        let is_list = keys.is_some();
        keys.into_iter().flatten().for_each(|key| lists.values().append_value(key));
        lists.append(is_list);
    }
    Ok(Arc::new(lists.finish()))
}

pub(super) fn duckdb_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "NULL",
        Value::Bool(_) => "BOOLEAN",
        Value::Number(number) if number.is_u64() => "UBIGINT",
        Value::Number(number) if number.is_i64() => "BIGINT",
        Value::Number(_) => "DOUBLE",
        Value::String(_) => "VARCHAR",
        Value::Array(_) => "ARRAY",
        Value::Object(_) => "OBJECT",
    }
}

fn postgres_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn to_json(arrays: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let row = |row: usize| json_of(&arrays[0], row).map(|value| (!value.is_null()).then(|| value.to_string()));
    Ok(Arc::new(StringArray::from((0..rows).map(row).collect::<Result<Vec<_>>>()?)))
}

/// Returns a value as JSON. Times and the like are texts.
fn json_of(array: &ArrayRef, row: usize) -> Result<Value> {
    if array.is_null(row) {
        return Ok(Value::Null);
    }
    let number = |value: f64| Number::from_f64(value).map_or(Value::Null, Value::Number);
    Ok(match array.data_type() {
        DataType::Null => Value::Null,
        DataType::Boolean => Value::Bool(array.as_boolean().value(row)),
        DataType::UInt64 => Value::from(array.as_primitive::<UInt64Type>().value(row)),
        integer if integer.is_integer() => {
            let one = cast(&array.slice(row, 1), &DataType::Int64)?;
            Value::from(one.as_primitive::<Int64Type>().value(0))
        }
        // A whole number has no point; one beyond 64 bits is a double, as JSON's readers take it.
        DataType::Decimal128(_, 0) => {
            let value = array.as_primitive::<Decimal128Type>().value(row);
            let small = i64::try_from(value).map(Number::from).or_else(|_| u64::try_from(value).map(Number::from));
            small.map_or_else(|_| number(value as f64), Value::Number)
        }
        real if real.is_numeric() => {
            let one = cast(&array.slice(row, 1), &DataType::Float64)?;
            number(one.as_primitive::<Float64Type>().value(0))
        }
        DataType::List(_) => all_of(&array.as_list::<i32>().value(row))?,
        DataType::LargeList(_) => all_of(&array.as_list::<i64>().value(row))?,
        DataType::FixedSizeList(_, _) => all_of(&array.as_fixed_size_list().value(row))?,
        DataType::Struct(fields) if fields.len() == 1 && fields[0].name() == JSON_MARK => {
            let texts = cast(&array.as_struct().columns()[0].slice(row, 1), &DataType::Utf8)?;
            let texts = texts.as_string::<i32>();
            if texts.is_null(0) { Value::Null } else { parsed(texts.value(0))? }
        }
        DataType::Struct(fields) => {
            let columns = array.as_struct().columns();
            let mut object = Map::new();
            for (field, column) in fields.iter().zip(columns) {
                object.insert(field.name().clone(), json_of(column, row)?);
            }
            Value::Object(object)
        }
        DataType::Map(_, _) => {
            let entries = array.as_map().value(row);
            let (keys, values) = (entries.column(0), entries.column(1));
            let mut object = Map::new();
            for entry in 0..entries.len() {
                let key = match json_of(keys, entry)? {
                    Value::String(key) => key,
                    other => other.to_string(),
                };
                object.insert(key, json_of(values, entry)?);
            }
            Value::Object(object)
        }
        // Arrow's text of them is none of SQL.
        DataType::Interval(_) | DataType::Duration(_) => {
            Value::String(value_text::texts(&array.slice(row, 1), false)?.value(0).to_owned())
        }
        _ => Value::String(ArrayFormatter::try_new(array, &FormatOptions::default())?.value(row).to_string()),
    })
}

fn all_of(values: &ArrayRef) -> Result<Value> {
    Ok(Value::Array((0..values.len()).map(|index| json_of(values, index)).collect::<Result<Vec<_>>>()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_read() {
        let key = |key: &str| Step::Key(key.to_owned());
        assert_eq!(steps_of("$.a.b[1]").unwrap(), [key("a"), key("b"), Step::Index(1)]);
        assert_eq!(steps_of("$[-1].\"a.b\"").unwrap(), [Step::Index(-1), key("a.b")]);
        assert_eq!(steps_of("/a/0").unwrap(), [key("a"), Step::KeyOrIndex("0".to_owned())]);
        assert_eq!(steps_of("a.b").unwrap(), [key("a.b")]);
        assert_eq!(steps_of(r#"$."a\"b"."c\\"[#]"#).unwrap(), [key("a\"b"), key("c\\"), Step::End]);
        for wrong in ["$a", "$.", "$[x", "$.*", "$[*]"] {
            assert!(steps_of(wrong).is_err(), "{wrong}");
        }
        for (step, begin) in [(".a", "$"), ("[0]", "$"), ("/a", "")] {
            assert_eq!(steps_of(&format!("{begin}{}", step.repeat(128))).unwrap().len(), 128);
            assert!(steps_of(&format!("{begin}{}", step.repeat(129))).is_err(), "{step}");
        }
    }
}
