//! `make_list`, `make_set` and `make_bag`: many values as one JSON text. Values come as JSON arrays of one element, so
//! that no code here writes values as JSON. Nulls are left out, and the number of values is limited.
//!
//! Where the rows are in an order, the values are too, also when several threads gathered parts of them: each value has
//! the key of its row's place beside it, by which the parts are put together.

use std::collections::HashSet;
use std::mem::size_of;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::{DataType, Field, FieldRef};
use arrow::row::{RowConverter, SortField};
use datafusion::error::Result;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility};
use datafusion::scalar::ScalarValue;

/// The most values that are kept, as in Kusto.
const MAX_VALUES: usize = 1_048_576;

/// What the values become.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
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
    pub(super) collection: Collection,
    pub(super) limit: usize,
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

    fn accumulator(&self, arguments: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let collected = Collected {
            collection: self.collection,
            limit: self.limit,
            values: Vec::new(),
            known: HashSet::new(),
            bytes: 0,
        };
        if arguments.order_bys.is_empty() {
            return Ok(Box::new(CollectAccumulator { collected, places: None }));
        }
        let fields = arguments
            .order_bys
            .iter()
            .map(|key| Ok(SortField::new_with_options(key.expr.data_type(arguments.schema)?, key.options)));
        let converter = RowConverter::new(fields.collect::<Result<_>>()?)?;
        let places = Places { converter, keys: Vec::new(), parts: Vec::new(), bytes: 0 };
        Ok(Box::new(CollectAccumulator { collected, places: Some(places) }))
    }

    fn state_fields(&self, arguments: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let list = |what: &str, of: DataType| {
            let item = Arc::new(Field::new_list_field(of, true));
            Arc::new(Field::new(format!("{}[{what}]", arguments.name), DataType::List(item), true))
        };
        let mut fields = vec![list("values", DataType::Utf8)];
        if !arguments.ordering_fields.is_empty() {
            fields.push(list("places", DataType::Binary));
        }
        Ok(fields)
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::HardRequirement
    }
}

#[derive(Debug)]
struct CollectAccumulator {
    collected: Collected,
    /// The places of the values, where the rows are in an order.
    places: Option<Places>,
}

/// The places of values among the rows: keys that compare as bytes as the rows are ordered.
#[derive(Debug)]
struct Places {
    converter: RowConverter,
    /// One of each value that is collected.
    keys: Vec<Vec<u8>>,
    /// Values that others gathered, with their keys.
    parts: Vec<(Vec<u8>, String)>,
    bytes: usize,
}

impl Places {
    fn push(&mut self, key: &[u8]) {
        self.bytes += key.len() + size_of::<Vec<u8>>();
        self.keys.push(key.to_vec());
    }
}

/// The values of a group: JSON texts, or `"name":value` for a bag.
#[derive(Debug)]
struct Collected {
    collection: Collection,
    limit: usize,
    values: Vec<String>,
    /// The values of a set, or the names of a bag.
    known: HashSet<String>,
    bytes: usize,
}

impl Collected {
    /// Adds the values of a row.
    fn add_row(&mut self, text: Option<&str>) {
        match (self.collection, text) {
            (Collection::Bag, Some(bag)) => self.add(bag),
            (Collection::Bag, None) => {}
            // An array stands for its elements.
            (_, Some(text)) if text.starts_with("[[") => self.add_elements(element(text)),
            (_, text) => self.add(element(text.unwrap_or("[null]"))),
        }
    }

    /// Adds a value that was collected before.
    fn add_again(&mut self, text: &str) {
        match self.collection {
            Collection::Bag => self.add(&format!("{{{text}}}")),
            _ => self.add(text),
        }
    }

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

impl CollectAccumulator {
    /// Puts the parts that others gathered in their places.
    fn put_together(&mut self) {
        let Some(places) = &mut self.places else { return };
        if places.parts.is_empty() {
            return;
        }
        let mut all = std::mem::take(&mut places.parts);
        all.extend(std::mem::take(&mut places.keys).into_iter().zip(self.collected.values.drain(..)));
        all.sort_by(|(one, _), (other, _)| one.cmp(other));
        self.collected.known.clear();
        self.collected.bytes = 0;
        places.bytes = 0;
        for (key, text) in all {
            let before = self.collected.values.len();
            self.collected.add_again(&text);
            for _ in before..self.collected.values.len() {
                places.push(&key);
            }
        }
    }
}

impl Accumulator for CollectAccumulator {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let Some((values, order)) = values.split_first() else { return Ok(()) };
        let Some(strings) = values.as_string_opt::<i32>() else { return Ok(()) };
        let Some(places) = &mut self.places else {
            strings.iter().for_each(|text| self.collected.add_row(text));
            return Ok(());
        };
        let keys = places.converter.convert_columns(order)?;
        for (text, key) in strings.iter().zip(keys.iter()) {
            let before = self.collected.values.len();
            self.collected.add_row(text);
            for _ in before..self.collected.values.len() {
                places.push(key.as_ref());
            }
        }
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let Some(lists) = states.first().and_then(|states| states.as_list_opt::<i32>()) else { return Ok(()) };
        let keys = states.get(1).and_then(|states| states.as_list_opt::<i32>());
        for (row, list) in lists.iter().enumerate() {
            let Some(list) = list else { continue };
            let Some(strings) = list.as_string_opt::<i32>() else { continue };
            match (&mut self.places, keys) {
                (Some(places), Some(keys)) => {
                    let keys = keys.value(row);
                    for (key, text) in keys.as_binary::<i32>().iter().zip(strings.iter()) {
                        let Some((key, text)) = key.zip(text) else { continue };
                        places.bytes += key.len() + text.len() + size_of::<(Vec<u8>, String)>();
                        places.parts.push((key.to_vec(), text.to_owned()));
                    }
                }
                _ => strings.iter().flatten().for_each(|text| self.collected.add_again(text)),
            }
        }
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.put_together();
        let values: Vec<_> = self.collected.values.drain(..).map(|text| ScalarValue::Utf8(Some(text))).collect();
        let mut state = vec![ScalarValue::List(ScalarValue::new_list_nullable(&values, &DataType::Utf8))];
        if let Some(places) = &mut self.places {
            let keys: Vec<_> = places.keys.drain(..).map(|key| ScalarValue::Binary(Some(key))).collect();
            state.push(ScalarValue::List(ScalarValue::new_list_nullable(&keys, &DataType::Binary)));
        }
        Ok(state)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.put_together();
        let Collected { collection, values, .. } = &self.collected;
        let (open, close) = if *collection == Collection::Bag { ('{', '}') } else { ('[', ']') };
        // Once, at its length: the text may be as long as memory allows.
        let length = values.iter().map(|value| value.len() + 1).sum::<usize>();
        let mut text = String::with_capacity(length + 2);
        text.push(open);
        for (index, value) in values.iter().enumerate() {
            if index > 0 {
                text.push(',');
            }
            text.push_str(value);
        }
        text.push(close);
        Ok(ScalarValue::Utf8(Some(text)))
    }

    fn size(&self) -> usize {
        let places = self.places.as_ref().map_or(0, |places| places.bytes + places.converter.size());
        size_of::<Self>() + self.collected.bytes + places
    }
}
