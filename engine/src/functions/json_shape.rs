//! The structure of JSON, and JSON as values of a structure: `json_structure`, `json_transform`; and whole documents joined,
//! compared and laid out.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, RecordBatch, StringArray, new_null_array};
use arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema, TimeUnit};
use arrow::json::ReaderBuilder;
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use serde_json::{Map, Value};

use super::definition::{Definition, invalid, unfit};
use super::json::parsed;
use crate::limits::QueryUsage;

/// The most bytes that `json_transform` makes of one batch.
const MAX_BYTES: usize = 256 << 20;
/// What a value takes that is made to fit, beside its name: as a member of a tree, and as a token of the decoder and one of an array.
const MEMBER_BYTES: usize = 160;
const TOKEN_BYTES: usize = 48;
/// Arrays of more items are compared for as long as the query lasts.
const LONG_ARRAY: usize = 1_000;

/// Returns the functions of this file.
pub(super) fn functions() -> Vec<Arc<ScalarUDF>> {
    let one = |name, compute: fn(&[ArrayRef], usize) -> Result<ArrayRef>| Definition {
        name,
        aliases: &[],
        arguments: 1..=1,
        takes: |_| Ok(vec![DataType::Utf8]),
        returns: |_| Ok(DataType::Utf8),
        compute,
    };
    let two = |name, returns, compute: fn(&[ArrayRef], usize) -> Result<ArrayRef>| Definition {
        name,
        aliases: &[],
        arguments: 2..=2,
        takes: |_| Ok(vec![DataType::Utf8; 2]),
        returns,
        compute,
    };
    let definitions = [
        one("json_structure", |arrays, _| {
            each(&arrays[0], |value| Ok(structure(&value).unwrap_or_else(|| Value::from("NULL")).to_string()))
        }),
        one("json_pretty", |arrays, _| {
            each(&arrays[0], |value| {
                let mut bytes = Vec::new();
                let form = serde_json::ser::PrettyFormatter::with_indent(b"    ");
                let mut writer = serde_json::Serializer::with_formatter(&mut bytes, form);
                let written = serde::Serialize::serialize(&value, &mut writer);
                written.map_err(|error| invalid(error.to_string()))?;
                Ok(String::from_utf8_lossy(&bytes).into_owned())
            })
        }),
        two(
            "json_merge_patch",
            |_| Ok(DataType::Utf8),
            |arrays, rows| {
                let (left, right) = (arrays[0].as_string::<i32>(), arrays[1].as_string::<i32>());
                let mut all = Vec::with_capacity(rows);
                for (left, right) in left.iter().zip(right) {
                    let (Some(left), Some(right)) = (left, right) else {
                        all.push(right.or(left).map(str::to_owned));
                        continue;
                    };
                    let mut value = parsed(left)?;
                    merge_patch(&mut value, parsed(right)?);
                    all.push(Some(value.to_string()));
                }
                Ok(Arc::new(StringArray::from(all)))
            },
        ),
        two("json_contains", |_| Ok(DataType::Boolean), |arrays, _| of_documents(arrays, contains)),
        two("jsonb_contains", |_| Ok(DataType::Boolean), |arrays, _| of_documents(arrays, contains_document)),
        two("jsonb_equals", |_| Ok(DataType::Boolean), |arrays, _| of_documents(arrays, is_same_document)),
    ];
    let transform = |name: &'static str, alias: &str, is_strict| {
        Arc::new(ScalarUDF::new_from_impl(JsonTransform {
            name,
            aliases: vec![alias.to_owned()],
            is_strict,
            signature: Signature::any(2, Volatility::Immutable),
        }))
    };
    let transforms =
        [transform("json_transform", "from_json", false), transform("json_transform_strict", "from_json_strict", true)];
    definitions.into_iter().map(Definition::into_udf).chain(transforms).collect()
}

fn each(array: &ArrayRef, of: fn(Value) -> Result<String>) -> Result<ArrayRef> {
    let mut all = Vec::with_capacity(array.len());
    for text in array.as_string::<i32>() {
        all.push(text.map(|text| of(parsed(text)?)).transpose()?);
    }
    Ok(Arc::new(StringArray::from(all)))
}

/// Returns what holds of each two documents; null where one of them is.
fn of_documents(arrays: &[ArrayRef], holds: fn(&Value, &Value) -> bool) -> Result<ArrayRef> {
    let pairs = arrays[0].as_string::<i32>().iter().zip(arrays[1].as_string::<i32>());
    let all: BooleanArray = pairs
        .map(|(left, right)| {
            left.zip(right).map(|(left, right)| Ok(holds(&parsed(left)?, &parsed(right)?))).transpose()
        })
        .collect::<Result<_>>()?;
    // A comparison that was broken off says nothing.
    QueryUsage::current().map_or(Ok(()), |usage| usage.check())?;
    Ok(Arc::new(all))
}

/// Whether the comparison with an array is broken off, as the query has to end.
fn is_broken_off(items: &[Value]) -> bool {
    items.len() > LONG_ARRAY && QueryUsage::current().is_some_and(|usage| usage.check().is_err())
}

/// Returns the structure of a value as DuckDB names it; `None` of null.
fn structure(value: &Value) -> Option<Value> {
    Some(match value {
        Value::Null => return None,
        Value::Bool(_) => Value::from("BOOLEAN"),
        Value::Number(number) if number.is_u64() => Value::from("UBIGINT"),
        Value::Number(number) if number.is_i64() => Value::from("BIGINT"),
        Value::Number(_) => Value::from("DOUBLE"),
        Value::String(_) => Value::from("VARCHAR"),
        Value::Array(items) => {
            let common = items.iter().filter_map(structure).reduce(common);
            Value::Array(vec![common.unwrap_or_else(|| Value::from("NULL"))])
        }
        Value::Object(members) => {
            let of = |value: &Value| structure(value).unwrap_or_else(|| Value::from("NULL"));
            Value::Object(members.iter().map(|(key, value)| (key.clone(), of(value))).collect())
        }
    })
}

/// Returns the structure that holds values of two.
fn common(left: Value, right: Value) -> Value {
    match (left, right) {
        (left, right) if left == right => left,
        (Value::String(null), other) | (other, Value::String(null)) if null == "NULL" => other,
        (Value::Object(mut left), Value::Object(right)) => {
            for (key, value) in right {
                // In its place: a key that is removed lets the last one take it.
                match left.get_mut(&key) {
                    Some(own) => *own = common(own.take(), value),
                    None => _ = left.insert(key, value),
                }
            }
            Value::Object(left)
        }
        (Value::Array(left), Value::Array(right)) => {
            let item = left.into_iter().chain(right).reduce(common);
            Value::Array(item.into_iter().collect())
        }
        (Value::String(left), Value::String(right)) => {
            let is_number = |name: &str| ["UBIGINT", "BIGINT", "DOUBLE"].contains(&name);
            Value::from(match (left.as_str(), right.as_str()) {
                (left, right) if is_number(left) && is_number(right) => {
                    if left == "DOUBLE" || right == "DOUBLE" {
                        "DOUBLE"
                    } else {
                        "BIGINT"
                    }
                }
                _ => "JSON",
            })
        }
        _ => Value::from("JSON"),
    }
}

/// RFC 7396.
fn merge_patch(target: &mut Value, patch: Value) {
    let Value::Object(members) = patch else {
        *target = patch;
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    if let Value::Object(own) = target {
        for (key, value) in members {
            if value.is_null() {
                own.shift_remove(&key);
            } else {
                merge_patch(own.entry(key).or_insert(Value::Null), value);
            }
        }
    }
}

/// Returns whether a document has another anywhere inside.
fn contains(haystack: &Value, needle: &Value) -> bool {
    contains_at(haystack, needle)
        || match haystack {
            Value::Array(items) => items.iter().any(|item| contains(item, needle)),
            Value::Object(members) => members.values().any(|value| contains(value, needle)),
            _ => false,
        }
}

fn contains_at(value: &Value, needle: &Value) -> bool {
    match (value, needle) {
        (Value::Object(own), Value::Object(wanted)) => {
            wanted.iter().all(|(key, value)| own.get(key).is_some_and(|found| contains_at(found, value)))
        }
        (Value::Array(all), Value::Array(wanted)) => {
            wanted.iter().all(|one| !is_broken_off(all) && all.iter().any(|item| contains_at(item, one)))
        }
        (left, right) => left == right,
    }
}

/// Returns whether a document has another from its root on, as PostgreSQL's `@>`: an array has one of which it has each
/// element, in any order, and a plain value that it has.
fn contains_document(own: &Value, wanted: &Value) -> bool {
    match (own, wanted) {
        (Value::Array(items), wanted) if !wanted.is_array() && !wanted.is_object() => {
            items.iter().any(|item| is_equal(item, wanted))
        }
        (own, wanted) => contains_value(own, wanted),
    }
}

fn contains_value(own: &Value, wanted: &Value) -> bool {
    match (own, wanted) {
        (Value::Object(own), Value::Object(wanted)) => {
            wanted.iter().all(|(key, value)| own.get(key).is_some_and(|found| contains_value(found, value)))
        }
        (Value::Array(own), Value::Array(wanted)) => {
            wanted.iter().all(|value| !is_broken_off(own) && own.iter().any(|item| contains_value(item, value)))
        }
        (own, wanted) => is_equal(own, wanted),
    }
}

/// Returns whether two documents are equal, as PostgreSQL's `jsonb` are: in whatever order members stand, and however numbers are
/// written.
fn is_same_document(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Object(left), Value::Object(right)) => {
            let is_there =
                |(key, value): (&String, &Value)| right.get(key).is_some_and(|found| is_same_document(value, found));
            left.len() == right.len() && left.iter().all(is_there)
        }
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| is_same_document(left, right))
        }
        (left, right) => is_equal(left, right),
    }
}

/// Whether two plain values are equal, as 1 and 1.0 are.
fn is_equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) if left.is_f64() != right.is_f64() => {
            left.as_f64().is_some_and(|left| right.as_f64() == Some(left))
        }
        (left, right) => left == right,
    }
}

/// `json_transform(json, structure)`: the type of the result is what the second argument says.
#[derive(Debug, PartialEq, Eq, Hash)]
struct JsonTransform {
    name: &'static str,
    aliases: Vec<String>,
    /// Whether a value of another type is an error, and not null.
    is_strict: bool,
    signature: Signature,
}

impl JsonTransform {
    fn wanted(&self, structure: Option<&ScalarValue>) -> Result<DataType> {
        let text = structure.and_then(|value| value.try_as_str().flatten());
        let text = text.ok_or_else(|| {
            unfit(format!("{} takes the structure as a text as written: '{{\"a\": \"INTEGER\"}}'", self.name))
        })?;
        type_of_structure(&parsed(text)?)
    }
}

/// Returns the type that a structure names: `{"a": "INTEGER", "b": ["VARCHAR"]}`.
fn type_of_structure(structure: &Value) -> Result<DataType> {
    match structure {
        Value::String(name) => match name.strip_suffix("[]") {
            Some(item) => Ok(DataType::new_list(type_of_structure(&Value::from(item))?, true)),
            None => type_named(name),
        },
        Value::Array(items) => match items.as_slice() {
            [item] => Ok(DataType::new_list(type_of_structure(item)?, true)),
            _ => Err(unfit("a list of a structure has one type: [\"INTEGER\"]".into())),
        },
        Value::Object(members) => {
            let fields = members.iter().map(|(key, value)| Ok(Field::new(key, type_of_structure(value)?, true)));
            Ok(DataType::Struct(fields.collect::<Result<Fields>>()?))
        }
        other => Err(unfit(format!("`{other}` is no type of a structure; write names of types as texts"))),
    }
}

fn type_named(name: &str) -> Result<DataType> {
    let name = name.trim().to_uppercase();
    if let Some(inside) = name.strip_prefix("DECIMAL(").and_then(|rest| rest.strip_suffix(')')) {
        let (digits, scale) = inside.split_once(',').unwrap_or((inside, "0"));
        let parsed = digits.trim().parse::<u8>().ok().zip(scale.trim().parse::<i8>().ok());
        if let Some((digits @ 1..=38, scale @ 0..=38)) = parsed {
            return Ok(DataType::Decimal128(digits, scale));
        }
    }
    Ok(match name.as_str() {
        "VARCHAR" | "TEXT" | "STRING" | "JSON" | "NULL" | "UUID" => DataType::Utf8,
        "BOOLEAN" | "BOOL" => DataType::Boolean,
        "TINYINT" => DataType::Int8,
        "SMALLINT" => DataType::Int16,
        "INTEGER" | "INT" => DataType::Int32,
        "BIGINT" => DataType::Int64,
        "UTINYINT" => DataType::UInt8,
        "USMALLINT" => DataType::UInt16,
        "UINTEGER" => DataType::UInt32,
        "UBIGINT" => DataType::UInt64,
        "REAL" | "FLOAT" => DataType::Float32,
        "DOUBLE" => DataType::Float64,
        "DATE" => DataType::Date32,
        "TIMESTAMP" => DataType::Timestamp(TimeUnit::Microsecond, None),
        "TIMESTAMPTZ" | "TIMESTAMP WITH TIME ZONE" => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        "TIME" => DataType::Time64(TimeUnit::Microsecond),
        _ => {
            return Err(unfit(format!("`{name}` is no type of a structure; write VARCHAR, BIGINT, DOUBLE, DATE, ...")));
        }
    })
}

/// The bytes that values take that were made to fit.
#[derive(Debug, Default)]
struct FittedBytes {
    /// Of the tree of this row.
    tree: usize,
    /// Of all rows, in the decoder.
    tokens: usize,
}

impl FittedBytes {
    /// Counts a value and its name. Errors: they are too many.
    fn count(&mut self, name: &str) -> Result<()> {
        self.tree += MEMBER_BYTES + name.len();
        self.tokens += TOKEN_BYTES + name.len();
        match self.tree.max(self.tokens) > MAX_BYTES {
            true => {
                Err(invalid(format!("json_transform makes at most {} MiB at a time; ask for less", MAX_BYTES >> 20)))
            }
            false => Ok(()),
        }
    }
}

/// Makes a value fit a type; what does not is null, or an error where it is strict. `made` counts what that takes.
fn fit(value: Value, wanted: &DataType, is_strict: bool, made: &mut FittedBytes) -> Result<Value> {
    let unfit_value = |value: &Value| match is_strict {
        true => Err(invalid(format!("`{value}` is not of the type {}", crate::type_names::sql_name(wanted)))),
        false => Ok(Value::Null),
    };
    Ok(match (value, wanted) {
        (Value::Null, _) => Value::Null,
        (Value::Object(mut members), DataType::Struct(fields)) => {
            let mut kept = Map::new();
            for field in fields {
                let value = match (members.shift_remove(field.name()), is_strict) {
                    (Some(value), _) => value,
                    (None, false) => Value::Null,
                    (None, true) => return Err(invalid(format!("the key `{}` is missing", field.name()))),
                };
                made.count(field.name())?;
                kept.insert(field.name().clone(), fit(value, field.data_type(), is_strict, made)?);
            }
            Value::Object(kept)
        }
        (Value::Array(items), DataType::List(item)) => {
            let mut fitted = Vec::with_capacity(items.len());
            for item_value in items {
                made.count("")?;
                fitted.push(fit(item_value, item.data_type(), is_strict, made)?);
            }
            Value::Array(fitted)
        }
        (value @ (Value::Array(_) | Value::Object(_)), DataType::Utf8) => Value::from(value.to_string()),
        (value, DataType::Struct(_) | DataType::List(_)) => return unfit_value(&value),
        (value, DataType::Utf8) => match value {
            Value::String(text) => Value::from(text),
            other => Value::from(other.to_string()),
        },
        (value @ (Value::Array(_) | Value::Object(_)), _) => return unfit_value(&value),
        (value, wanted) => {
            let text = match &value {
                Value::String(text) => text.trim().to_owned(),
                other => other.to_string(),
            };
            let scalar = ScalarValue::from(text.as_str());
            let is_whole = wanted.is_integer() && text.parse::<f64>().is_ok();
            let number = text.parse::<f64>().ok().filter(|_| is_whole && text.parse::<i128>().is_err());
            let scalar = number.map_or(scalar, |number| ScalarValue::from(number.round().to_string().as_str()));
            match scalar.cast_to(wanted) {
                Ok(found) if !found.is_null() => match value {
                    Value::Bool(_) if *wanted == DataType::Boolean => value,
                    _ => Value::from(found.to_string()),
                },
                _ => return unfit_value(&value),
            }
        }
    })
}

impl ScalarUDFImpl for JsonTransform {
    fn name(&self) -> &str {
        self.name
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arg_types: &[DataType]) -> Result<DataType> {
        Err(invalid(format!("the type of {} is what its structure says", self.name)))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let wanted = self.wanted(args.scalar_arguments.get(1).copied().flatten())?;
        Ok(Arc::new(Field::new(self.name, wanted, true)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [json, ColumnarValue::Scalar(structure)] = args.args.as_slice() else {
            return Err(unfit(format!("{} takes the structure as a text as written", self.name)));
        };
        let wanted = self.wanted(Some(structure))?;
        let texts = arrow::compute::cast(&json.to_array(args.number_rows)?, &DataType::Utf8)?;
        let schema = Arc::new(Schema::new(vec![Field::new("value", wanted.clone(), true)]));
        let mut decoder = ReaderBuilder::new(Arc::clone(&schema))
            .with_coerce_primitive(true)
            .with_batch_size(texts.len().max(1))
            .build_decoder()?;
        let mut made = FittedBytes::default();
        for text in texts.as_string::<i32>() {
            let value = text.map(|text| fit(parsed(text)?, &wanted, self.is_strict, &mut made)).transpose()?;
            made.tree = 0;
            // One row's tree at a time: a tree is many times as large as what the decoder keeps of it.
            decoder.serialize(&[Map::from_iter([("value".to_owned(), value.unwrap_or(Value::Null))])])?;
        }
        let batch: Option<RecordBatch> = decoder.flush()?;
        let array = batch.map_or_else(|| new_null_array(&wanted, 0), |batch| Arc::clone(batch.column(0)));
        Ok(ColumnarValue::Array(array))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structures_hold_all_items() {
        let of = |text: &str| structure(&parsed(text).unwrap()).unwrap().to_string();
        assert_eq!(of(r#"{"a": 1, "b": {"c": true}}"#), r#"{"a":"UBIGINT","b":{"c":"BOOLEAN"}}"#);
        assert_eq!(of(r#"["a", null]"#), r#"["VARCHAR"]"#);
        assert_eq!(of("[1, 2.5]"), r#"["DOUBLE"]"#);
        assert_eq!(of(r#"[1, "a"]"#), r#"["JSON"]"#);
        assert_eq!(of(r#"[{"a": 1}, {"a": "x"}]"#), r#"[{"a":"JSON"}]"#);
        assert_eq!(of("[1, -2]"), r#"["BIGINT"]"#);
        assert_eq!(of(r#"[{"a": 1}, {"b": "x"}]"#), r#"[{"a":"UBIGINT","b":"VARCHAR"}]"#);
        let mut value = parsed(r#"{"a": {"b": 1, "c": 2}}"#).unwrap();
        merge_patch(&mut value, parsed(r#"{"a": {"b": null}, "d": 3}"#).unwrap());
        assert_eq!(value.to_string(), r#"{"a":{"c":2},"d":3}"#);
    }
}
