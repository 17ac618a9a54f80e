//! `buildschema`: the least schema that admits all dynamic values of a group. Its size is bounded by the distinct names
//! in the group, and its depth is limited.

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

/// The property that stands for the elements of an array.
const INDEXER: &str = "`indexer`";
/// Values nested deeper are `dynamic`. A schema is itself a dynamic value, and may be nested twice as deep as the
/// values.
const MAX_DEPTH: usize = 40;
const BYTES_PER_NODE: usize = 2 * size_of::<ValueSchema>();

/// Returns the aggregate.
pub(super) fn build_schema_udaf() -> Arc<AggregateUDF> {
    let signature = Signature::exact(vec![DataType::Utf8], Volatility::Immutable);
    Arc::new(AggregateUDF::new_from_impl(BuildSchemaFunction { signature }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct BuildSchemaFunction {
    signature: Signature,
}

impl AggregateUDFImpl for BuildSchemaFunction {
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
        Ok(Box::new(BuildSchemaAccumulator { schema: ValueSchema::default(), bytes: 0, has_values: false }))
    }

    fn state_fields(&self, arguments: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        Ok(vec![Arc::new(Field::new(format!("{}[schema]", arguments.name), DataType::Utf8, true))])
    }
}

/// The types of the values at one position.
#[derive(Debug, Default)]
struct ValueSchema {
    /// The names of types without parts.
    types: BTreeSet<&'static str>,
    /// The properties of bags; the elements of arrays are one property.
    parts: BTreeMap<String, ValueSchema>,
}

impl ValueSchema {
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

    /// Returns one type as itself and several as an array; types with parts come last.
    fn to_value(&self) -> Value {
        let types = self.types.iter().map(|name| Value::from(*name));
        let parts = self.parts.iter().map(|(name, part)| (name.clone(), part.to_value()));
        let container = (!self.parts.is_empty()).then(|| Value::Object(parts.collect()));
        let mut all: Vec<Value> = types.chain(container).collect();
        if all.len() == 1 { all.pop().unwrap_or_default() } else { Value::Array(all) }
    }

    /// Adds a schema that [`ValueSchema::to_value`] returned.
    fn merge(&mut self, value: &Value) -> usize {
        const NAMES: [&str; 5] = ["bool", "double", "dynamic", "long", "string"];
        match value {
            Value::String(name) => {
                self.types.extend(NAMES.into_iter().find(|known| known == name));
                0
            }
            Value::Array(elements) => elements.iter().map(|one| self.merge(one)).sum(),
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
struct BuildSchemaAccumulator {
    schema: ValueSchema,
    bytes: usize,
    /// Whether there was a value at all.
    has_values: bool,
}

impl BuildSchemaAccumulator {
    fn add_all(&mut self, strings: Option<&ArrayRef>, add: fn(&mut ValueSchema, &Value) -> usize) {
        let Some(strings) = strings.and_then(|strings| strings.as_string_opt::<i32>()) else { return };
        for text in strings.iter().flatten() {
            if let Ok(value) = serde_json::from_str(text) {
                self.bytes += add(&mut self.schema, &value);
                self.has_values = true;
            }
        }
    }
}

impl Accumulator for BuildSchemaAccumulator {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.add_all(values.first(), |schema, value| schema.add(value, MAX_DEPTH));
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.add_all(states.first(), ValueSchema::merge);
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.evaluate()?])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(ScalarValue::Utf8(self.has_values.then(|| self.schema.to_value().to_string())))
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
        let mut whole = ValueSchema::default();
        let mut merged = ValueSchema::default();
        for value in &values {
            whole.add(value, MAX_DEPTH);
            let mut own = ValueSchema::default();
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
