//! The parts of JSON as rows, for `json_each` and `json_tree` in FROM: lists of structures with the columns of DuckDB.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, ListArray, StringBuilder, StructArray, UInt64Builder};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Field, Fields, Int64Type};
use datafusion::error::Result;
use datafusion::logical_expr::ScalarUDF;
use serde_json::Value;

use super::definition::{Definition, invalid};
use super::json::{Step, duckdb_type, json_and_path, parsed, steps_of};

/// The most bytes that a call makes of one batch: each row repeats the keys that lead to it.
const MAX_BYTES: usize = 256 << 20;
/// What a row takes beside its texts.
const ROW_BYTES: usize = 64;

/// The columns of a row.
pub(crate) const JSON_ROW_COLUMNS: [&str; 8] = ["key", "value", "type", "atom", "id", "parent", "fullkey", "path"];

/// Returns the functions of this file.
pub(super) fn functions() -> Vec<Arc<ScalarUDF>> {
    let rows = |name, compute: fn(&[ArrayRef], usize) -> Result<ArrayRef>| Definition {
        name,
        aliases: &[],
        arguments: 1..=2,
        takes: json_and_path,
        returns: |_| Ok(DataType::new_list(DataType::Struct(row_fields()), true)),
        compute,
    };
    let definitions = [
        rows("json_each_rows", |arrays, rows| lists(arrays, rows, Depth::Children)),
        rows("json_tree_rows", |arrays, rows| lists(arrays, rows, Depth::All)),
    ];
    definitions.into_iter().map(Definition::into_udf).collect()
}

fn row_fields() -> Fields {
    let field = |name: &str| {
        let data_type = if matches!(name, "id" | "parent") { DataType::UInt64 } else { DataType::Utf8 };
        Field::new(name, data_type, true)
    };
    JSON_ROW_COLUMNS.into_iter().map(field).collect()
}

/// Which parts of a value are rows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Depth {
    /// Those right below it.
    Children,
    /// It and all below it.
    All,
}

fn lists(arrays: &[ArrayRef], rows: usize, depth: Depth) -> Result<ArrayRef> {
    let texts = arrays[0].as_string::<i32>();
    let mut parts = PartRows::default();
    let mut lengths = Vec::with_capacity(rows);
    for row in 0..rows {
        let before = parts.count;
        if arrays.iter().all(|array| array.is_valid(row)) {
            let value = parsed(texts.value(row))?;
            let steps = match arrays.get(1) {
                None => Vec::new(),
                Some(path) if *path.data_type() == DataType::Int64 => {
                    vec![Step::Index(path.as_primitive::<Int64Type>().value(row))]
                }
                Some(path) => steps_of(path.as_string::<i32>().value(row))?,
            };
            if let Some(found) = located(&value, &steps) {
                parts.add(&found, depth)?;
            }
        }
        lengths.push(parts.count - before);
    }
    let item = Arc::new(Field::new_list_field(DataType::Struct(row_fields()), true));
    let offsets = OffsetBuffer::from_lengths(lengths);
    Ok(Arc::new(ListArray::try_new(item, offsets, Arc::new(parts.finish()?), None)?))
}

/// A value within a document.
struct JsonPart<'a> {
    value: &'a Value,
    key: Option<String>,
    /// Its place in the document, in which each key of an object has one as well.
    id: u64,
    full_key: String,
}

impl<'a> JsonPart<'a> {
    /// Returns the parts right below, each made when it is asked for: a million of them repeat one long key.
    fn children(&self) -> Box<dyn Iterator<Item = JsonPart<'a>> + '_> {
        let mut next = self.id + 1;
        let mut placed = move |key: String, full_key: String, value: &'a Value, own_places: u64| {
            let id = next + own_places - 1;
            next = id + places(value);
            JsonPart { value, key: Some(key), id, full_key }
        };
        match self.value {
            Value::Array(items) => {
                let child = move |(index, item): (usize, &'a Value)| {
                    placed(index.to_string(), format!("{}[{index}]", self.full_key), item, 1)
                };
                Box::new(items.iter().enumerate().map(child))
            }
            Value::Object(members) => {
                let child = move |(key, value): (&'a String, &'a Value)| {
                    placed(key.clone(), format!("{}.{}", self.full_key, path_key(key)), value, 2)
                };
                Box::new(members.iter().map(child))
            }
            _ => Box::new(std::iter::empty()),
        }
    }
}

/// Returns a key as paths have it: in quotes where it is more than letters, digits and underscores.
fn path_key(key: &str) -> String {
    let is_letter = |letter: char| letter.is_ascii_alphabetic() || letter == '_';
    match key.starts_with(is_letter) && key.chars().all(|letter| is_letter(letter) || letter.is_ascii_digit()) {
        true => key.to_owned(),
        false => format!("\"{}\"", key.replace('\\', "\\\\").replace('"', "\\\"")),
    }
}

/// Returns how many places a value takes in its document.
fn places(value: &Value) -> u64 {
    match value {
        Value::Array(items) => 1 + items.iter().map(places).sum::<u64>(),
        Value::Object(members) => 1 + members.values().map(|member| 1 + places(member)).sum::<u64>(),
        _ => 1,
    }
}

fn located<'a>(document: &'a Value, steps: &[Step]) -> Option<JsonPart<'a>> {
    let mut part = JsonPart { value: document, key: None, id: 0, full_key: "$".to_owned() };
    for step in steps {
        let found = match (step.within(part.value), part.value) {
            (Step::Key(key), Value::Object(_)) => {
                part.children().find(|child| child.key.as_deref() == Some(key.as_str()))?
            }
            (Step::Index(index), Value::Array(items)) => {
                let at = if index < 0 { index.checked_add(i64::try_from(items.len()).ok()?)? } else { index };
                part.children().nth(usize::try_from(at).ok()?)?
            }
            _ => return None,
        };
        part = found;
    }
    Some(part)
}

#[derive(Default)]
struct PartRows {
    key: StringBuilder,
    value: StringBuilder,
    kind: StringBuilder,
    atom: StringBuilder,
    id: UInt64Builder,
    parent: UInt64Builder,
    full_key: StringBuilder,
    path: StringBuilder,
    count: usize,
    bytes: usize,
}

impl PartRows {
    fn add(&mut self, found: &JsonPart<'_>, depth: Depth) -> Result<()> {
        let is_container = found.value.is_object() || found.value.is_array();
        if depth == Depth::All || !is_container {
            self.row(None, found, None, &found.full_key)?;
        }
        self.below(found, depth)
    }

    fn below(&mut self, container: &JsonPart<'_>, depth: Depth) -> Result<()> {
        for child in container.children() {
            let parent = (depth == Depth::All).then_some(container.id);
            self.row(child.key.as_deref(), &child, parent, &container.full_key)?;
            if depth == Depth::All {
                self.below(&child, depth)?;
            }
        }
        Ok(())
    }

    fn row(&mut self, key: Option<&str>, part: &JsonPart<'_>, parent: Option<u64>, path: &str) -> Result<()> {
        let value = part.value.to_string();
        let is_atom = !matches!(part.value, Value::Null | Value::Array(_) | Value::Object(_));
        let key_bytes = key.map_or(0, str::len) + part.full_key.len() + path.len();
        self.bytes += ROW_BYTES + key_bytes + value.len() * (1 + usize::from(is_atom));
        if self.bytes > MAX_BYTES {
            let limit = MAX_BYTES >> 20;
            return Err(invalid(format!("the parts of this JSON are more than {limit} MiB; name a path")));
        }
        self.key.append_option(key);
        self.atom.append_option(is_atom.then_some(&value));
        self.value.append_value(value);
        self.kind.append_value(duckdb_type(part.value));
        self.id.append_value(part.id);
        self.parent.append_option(parent);
        self.full_key.append_value(&part.full_key);
        self.path.append_value(path);
        self.count += 1;
        Ok(())
    }

    fn finish(mut self) -> Result<StructArray> {
        let columns: Vec<ArrayRef> = vec![
            Arc::new(self.key.finish()),
            Arc::new(self.value.finish()),
            Arc::new(self.kind.finish()),
            Arc::new(self.atom.finish()),
            Arc::new(self.id.finish()),
            Arc::new(self.parent.finish()),
            Arc::new(self.full_key.finish()),
            Arc::new(self.path.finish()),
        ];
        Ok(StructArray::try_new(row_fields(), columns, None)?)
    }
}
