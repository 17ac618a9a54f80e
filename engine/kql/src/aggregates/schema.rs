//! `buildschema`: the least schema that admits all of the dynamic values. What is made for a group is bounded by the
//! different names in it, and nests no deeper than a fixed depth.

use std::collections::{BTreeMap, BTreeSet};
use std::mem::size_of;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::error::Result;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility};
use datafusion::scalar::ScalarValue;
use serde_json::Value;

/// The property that stands for an array's elements.
const INDEXER: &str = "`indexer`";
/// What is nested deeper is `dynamic`: a schema is a dynamic value itself, and may be nested twice as deep.
const MAX_DEPTH: usize = 40;
const BYTES_PER_NODE: usize = 2 * size_of::<Schema>();

/// The function.
pub(super) fn schema() -> Arc<AggregateUDF> {
    let signature = Signature::exact(vec![DataType::Utf8], Volatility::Immutable);
    Arc::new(AggregateUDF::new_from_impl(BuildSchema { signature }))
}

pub(super) fn is(function: &dyn AggregateUDFImpl) -> bool {
    (function as &dyn std::any::Any).is::<BuildSchema>()
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct BuildSchema {
    signature: Signature,
}

impl AggregateUDFImpl for BuildSchema {
    fn name(&self) -> &str {
        "kql_buildschema"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn accumulator(&self, _arguments: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(Gathered { schema: Schema::default(), bytes: 0 }))
    }

    fn state_fields(&self, arguments: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        Ok(vec![Arc::new(Field::new(format!("{}[schema]", arguments.name), DataType::Utf8, true))])
    }
}

/// What values there are at a place.
#[derive(Debug, Default)]
struct Schema {
    /// The names of types that have no parts.
    types: BTreeSet<&'static str>,
    /// The parts of bags, and of arrays under one name.
    parts: BTreeMap<String, Schema>,
}

impl Schema {
    /// Adds a value, and returns the bytes that it took.
    fn add(&mut self, value: &Value, depth: usize) -> usize {
        let name = match value {
            Value::Null => return 0,
            Value::Bool(_) => "bool",
            Value::Number(number) if number.is_f64() => "double",
            Value::Number(_) => "long",
            Value::String(_) => "string",
            Value::Array(_) | Value::Object(_) if depth == 0 => "dynamic",
            Value::Array(elements) => {
                return elements.iter().map(|element| self.add_part(INDEXER, element, depth - 1)).sum();
            }
            Value::Object(properties) => {
                return properties.iter().map(|(name, value)| self.add_part(name, value, depth - 1)).sum();
            }
        };
        self.types.insert(name);
        0
    }

    fn part(&mut self, name: &str) -> (&mut Self, usize) {
        let bytes = if self.parts.contains_key(name) { 0 } else { name.len() + BYTES_PER_NODE };
        (self.parts.entry(name.to_owned()).or_default(), bytes)
    }

    fn add_part(&mut self, name: &str, value: &Value, depth: usize) -> usize {
        let (part, bytes) = self.part(name);
        bytes + part.add(value, depth)
    }

    /// One type is itself, several are an array of them; types with parts come last.
    fn to_value(&self) -> Value {
        let types = self.types.iter().map(|name| Value::from(*name));
        let parts = self.parts.iter().map(|(name, part)| (name.clone(), part.to_value()));
        let container = (!self.parts.is_empty()).then(|| Value::Object(parts.collect()));
        let mut all: Vec<Value> = types.chain(container).collect();
        if all.len() == 1 { all.pop().unwrap_or_default() } else { Value::Array(all) }
    }

    /// Adds what [`Schema::to_value`] made of another.
    fn merge(&mut self, value: &Value) -> usize {
        const NAMES: [&str; 5] = ["bool", "double", "dynamic", "long", "string"];
        match value {
            Value::String(name) => {
                self.types.extend(NAMES.into_iter().find(|known| known == name));
                0
            }
            Value::Array(several) => several.iter().map(|one| self.merge(one)).sum(),
            Value::Object(parts) => {
                let merged = parts.iter().map(|(name, value)| {
                    let (part, bytes) = self.part(name);
                    bytes + part.merge(value)
                });
                merged.sum()
            }
            _ => 0,
        }
    }
}

#[derive(Debug)]
struct Gathered {
    schema: Schema,
    bytes: usize,
}

impl Gathered {
    fn each(&mut self, texts: Option<&ArrayRef>, add: fn(&mut Schema, &Value) -> usize) {
        let Some(texts) = texts.and_then(|texts| texts.as_string_opt::<i32>()) else { return };
        for text in texts.iter().flatten() {
            if let Ok(value) = serde_json::from_str(text) {
                self.bytes += add(&mut self.schema, &value);
            }
        }
    }
}

impl Accumulator for Gathered {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.each(values.first(), |schema, value| schema.add(value, MAX_DEPTH));
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.each(states.first(), Schema::merge);
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.evaluate()?])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(ScalarValue::Utf8(Some(self.schema.to_value().to_string())))
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.bytes
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn schemas_admit_all_and_merge() {
        let values = [
            json!({"x": 1, "y": 3.5}),
            json!({"x": "a", "z": [1, 2, 3]}),
            json!({"y": {"w": "zzz"}, "t": ["aa"], "z": ["foo"], "n": null}),
        ];
        let mut whole = Schema::default();
        let mut merged = Schema::default();
        for value in &values {
            whole.add(value, MAX_DEPTH);
            let mut own = Schema::default();
            own.add(value, MAX_DEPTH);
            merged.merge(&own.to_value());
        }
        let expected = json!({
            "n": [],
            "t": {"`indexer`": "string"},
            "x": ["long", "string"],
            "y": ["double", {"w": "string"}],
            "z": {"`indexer`": ["long", "string"]},
        });
        assert_eq!(whole.to_value(), expected);
        assert_eq!(merged.to_value(), expected);
    }
}
