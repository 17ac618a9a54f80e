//! `make_list`, `make_set` and `make_bag`: many values as one JSON text. Values come as JSON arrays of one, so that
//! writing a value as JSON is nobody's business here; nulls are left out, and there are never more than the limit.

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

/// The most values that are kept, as Kusto has it.
const MAX_VALUES: usize = 1_048_576;

/// What is made of the values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Collection {
    /// An array.
    List,
    /// An array with nulls in it.
    ListWithNulls,
    /// An array with each value once.
    Set,
    /// A bag of all bags' properties; of two of one name the first.
    Bag,
}

/// The function.
pub(super) fn collect(collection: Collection, limit: Option<usize>) -> Arc<AggregateUDF> {
    let limit = limit.unwrap_or(MAX_VALUES).min(MAX_VALUES);
    let signature = Signature::exact(vec![DataType::Utf8], Volatility::Immutable);
    Arc::new(AggregateUDF::new_from_impl(Collect { collection, limit, signature }))
}

pub(super) fn is(function: &dyn AggregateUDFImpl) -> bool {
    (function as &dyn std::any::Any).is::<Collect>()
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Collect {
    collection: Collection,
    limit: usize,
    signature: Signature,
}

impl AggregateUDFImpl for Collect {
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
        Ok(Box::new(Collected {
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

/// What one group has so far: JSON texts, or `"name":value` of a bag.
#[derive(Debug)]
struct Collected {
    collection: Collection,
    limit: usize,
    values: Vec<String>,
    /// Of a set the values, of a bag the names.
    known: HashSet<String>,
    bytes: usize,
}

impl Collected {
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

    /// An array stands for its elements.
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

/// The one element of a JSON array of one.
fn element(array: &str) -> &str {
    array.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or("null")
}

impl Accumulator for Collected {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let Some(texts) = values.first().and_then(|values| values.as_string_opt::<i32>()) else { return Ok(()) };
        for text in texts.iter() {
            match (self.collection, text) {
                (Collection::Bag, Some(bag)) => self.add(bag),
                (Collection::Bag, None) => {}
                (Collection::List, Some(text)) if text.starts_with("[[") => self.add_elements(element(text)),
                (_, text) => self.add(element(text.unwrap_or("[null]"))),
            }
        }
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let Some(lists) = states.first().and_then(|states| states.as_list_opt::<i32>()) else { return Ok(()) };
        for list in lists.iter().flatten() {
            let Some(texts) = list.as_string_opt::<i32>() else { continue };
            for text in texts.iter().flatten() {
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
        let joined = self.values.join(",");
        let text = if self.collection == Collection::Bag { format!("{{{joined}}}") } else { format!("[{joined}]") };
        Ok(ScalarValue::Utf8(Some(text)))
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.bytes
    }
}
