//! `make_list`, `make_set` and `make_bag`: many values as one JSON text. Values come as JSON arrays of one element, so
//! that no code here writes values as JSON. Nulls are left out, and the number of values is limited.

use std::collections::HashSet;
use std::mem::size_of;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::error::Result;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility};
use datafusion::scalar::ScalarValue;

/// The most values that are kept, as in Kusto.
const MAX_VALUES: usize = 1_048_576;

/// What the values become.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Collection {
    /// An array.
    List,
    /// An array with nulls in it.
    ListWithNulls,
    /// An array without duplicates.
    Set,
    /// A bag of the properties of all bags. If several have a property, the first one counts.
    Bag,
}

/// Returns the aggregate.
pub(super) fn collect_udaf(collection: Collection, limit: Option<usize>) -> Arc<AggregateUDF> {
    let limit = limit.unwrap_or(MAX_VALUES).min(MAX_VALUES);
    let signature = Signature::exact(vec![DataType::Utf8], Volatility::Immutable);
    Arc::new(AggregateUDF::new_from_impl(CollectFunction { collection, limit, signature }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct CollectFunction {
    collection: Collection,
    limit: usize,
    signature: Signature,
}

impl AggregateUDFImpl for CollectFunction {
    fn name(&self) -> &str {
        match self.collection {
            Collection::List => "kql_make_list",
            Collection::ListWithNulls => "kql_make_list_with_nulls",
            Collection::Set => "kql_make_set",
            Collection::Bag => "kql_make_bag",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn accumulator(&self, _arguments: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(CollectAccumulator {
            collection: self.collection,
            limit: self.limit,
            values: Vec::new(),
            known: HashSet::new(),
            bytes: 0,
        }))
    }

    fn state_fields(&self, arguments: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let item = Arc::new(Field::new_list_field(DataType::Utf8, true));
        Ok(vec![Arc::new(Field::new(format!("{}[values]", arguments.name), DataType::List(item), true))])
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::HardRequirement
    }
}

/// The values of a group: JSON texts, or `"name":value` for a bag.
#[derive(Debug)]
struct CollectAccumulator {
    collection: Collection,
    limit: usize,
    values: Vec<String>,
    /// The values of a set, or the names of a bag.
    known: HashSet<String>,
    bytes: usize,
}

impl CollectAccumulator {
    fn add(&mut self, json: &str) {
        match self.collection {
            Collection::List => {
                if json != "null" {
                    self.push(json);
                }
            }
            Collection::ListWithNulls => self.push(json),
            Collection::Set => {
                if json != "null" && self.values.len() < self.limit && self.known.insert(json.to_owned()) {
                    self.bytes += json.len() + size_of::<String>();
                    self.push(json);
                }
            }
            Collection::Bag => self.add_properties(json),
        }
    }

    /// Adds the elements of an array.
    fn add_elements(&mut self, json: &str) {
        match serde_json::from_str(json) {
            Ok(serde_json::Value::Array(items)) => items.iter().for_each(|item| self.add(&item.to_string())),
            _ => self.add(json),
        }
    }

    fn push(&mut self, json: &str) {
        if self.values.len() < self.limit {
            self.bytes += json.len() + size_of::<String>();
            self.values.push(json.to_owned());
        }
    }

    fn add_properties(&mut self, json: &str) {
        let Ok(serde_json::Value::Object(properties)) = serde_json::from_str(json) else { return };
        for (name, value) in properties {
            if self.values.len() < self.limit && self.known.insert(name.clone()) {
                self.bytes += name.len() + size_of::<String>();
                self.push(&format!("{}:{value}", serde_json::Value::String(name)));
            }
        }
    }
}

/// Returns the element of a JSON array of one.
fn element(array: &str) -> &str {
    array.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or("null")
}

impl Accumulator for CollectAccumulator {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let Some(strings) = values.first().and_then(|values| values.as_string_opt::<i32>()) else { return Ok(()) };
        for text in strings.iter() {
            match (self.collection, text) {
                (Collection::Bag, Some(bag)) => self.add(bag),
                (Collection::Bag, None) => {}
                // An array stands for its elements.
                (_, Some(text)) if text.starts_with("[[") => self.add_elements(element(text)),
                (_, text) => self.add(element(text.unwrap_or("[null]"))),
            }
        }
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let Some(lists) = states.first().and_then(|states| states.as_list_opt::<i32>()) else { return Ok(()) };
        for list in lists.iter().flatten() {
            let Some(strings) = list.as_string_opt::<i32>() else { continue };
            for text in strings.iter().flatten() {
                match self.collection {
                    Collection::Bag => self.add(&format!("{{{text}}}")),
                    _ => self.add(text),
                }
            }
        }
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let values: Vec<ScalarValue> = self.values.drain(..).map(|text| ScalarValue::Utf8(Some(text))).collect();
        Ok(vec![ScalarValue::List(ScalarValue::new_list_nullable(&values, &DataType::Utf8))])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let (open, close) = if self.collection == Collection::Bag { ('{', '}') } else { ('[', ']') };
        // Once, at its length: the text may be as long as memory allows.
        let length = self.values.iter().map(|value| value.len() + 1).sum::<usize>();
        let mut text = String::with_capacity(length + 2);
        text.push(open);
        for (index, value) in self.values.iter().enumerate() {
            if index > 0 {
                text.push(',');
            }
            text.push_str(value);
        }
        text.push(close);
        Ok(ScalarValue::Utf8(Some(text)))
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.bytes
    }
}
