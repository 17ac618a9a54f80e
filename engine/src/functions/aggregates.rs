//! Aggregates with DuckDB's names that count how often each value is there: `mode`, `histogram`, `quantile_disc`; and
//! `product`.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::mem::size_of;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, MapArray, StructArray, UInt64Array, new_empty_array};
use arrow::buffer::OffsetBuffer;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, FieldRef, Fields, Float64Type, UInt64Type};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility};

use super::definition::{invalid, unfit};
use super::one_nan::plain_nan;
use crate::type_names::sql_name;

/// Returns the functions of this file.
pub(super) fn functions() -> Vec<Arc<AggregateUDF>> {
    let counting = [Counting::Mode, Counting::Histogram, Counting::Quantile].map(|counting| {
        let aliases: &[&str] = if counting == Counting::Quantile { &["quantile"] } else { &[] };
        let aliases = aliases.iter().map(|alias| (*alias).to_owned()).collect();
        AggregateUDF::new_from_impl(CountingFunction {
            counting,
            aliases,
            signature: Signature::user_defined(Volatility::Immutable),
        })
    });
    let product = AggregateUDF::new_from_impl(Product { signature: Signature::user_defined(Volatility::Immutable) });
    counting.into_iter().chain([product]).map(Arc::new).collect()
}

/// What is computed from the counts of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Counting {
    /// The most frequent value, and of several the least.
    Mode,
    /// Each value with its count, from the least.
    Histogram,
    /// The least value up to which a fraction of all is.
    Quantile,
}

#[derive(Debug)]
struct CountingFunction {
    counting: Counting,
    aliases: Vec<String>,
    signature: Signature,
}

impl PartialEq for CountingFunction {
    fn eq(&self, other: &Self) -> bool {
        self.counting == other.counting
    }
}

impl Eq for CountingFunction {}

impl Hash for CountingFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.counting.hash(state);
    }
}

impl AggregateUDFImpl for CountingFunction {
    fn name(&self) -> &str {
        match self.counting {
            Counting::Mode => "mode",
            Counting::Histogram => "histogram",
            Counting::Quantile => "quantile_disc",
        }
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        let plain = |data_type: &DataType| match data_type {
            DataType::Utf8View | DataType::LargeUtf8 => DataType::Utf8,
            DataType::Dictionary(_, values) => values.as_ref().clone(),
            other => other.clone(),
        };
        match (self.counting, arg_types) {
            (Counting::Mode | Counting::Histogram, [value]) => Ok(vec![plain(value)]),
            (Counting::Quantile, [value, fraction]) if fraction.is_numeric() => {
                Ok(vec![plain(value), DataType::Float64])
            }
            (Counting::Quantile, [_, other]) => {
                Err(unfit(format!("{} takes a value and a fraction, not {}", self.name(), sql_name(other))))
            }
            _ => Err(unfit(format!(
                "{} takes {}",
                self.name(),
                if self.counting == Counting::Quantile { "a value and a fraction" } else { "one value" }
            ))),
        }
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        let value = arg_types.first().cloned().unwrap_or(DataType::Null);
        Ok(match self.counting {
            Counting::Mode | Counting::Quantile => value,
            Counting::Histogram => DataType::Map(map_entries(value), false),
        })
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let value = args.input_fields.first().map_or(DataType::Null, |field| field.data_type().clone());
        let list = |name: &str, element: DataType| Arc::new(Field::new(name, DataType::new_list(element, true), true));
        let fraction = Arc::new(Field::new("fraction", DataType::Float64, true));
        Ok(vec![list("values", value), list("counts", DataType::UInt64), fraction])
    }

    // Otherwise what the rows are ordered by would come as further arguments.
    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let value_type = args.expr_fields.first().map_or(DataType::Null, |field| field.data_type().clone());
        Ok(Box::new(Counts {
            counting: self.counting,
            is_distinct: args.is_distinct,
            value_type,
            counts: HashMap::new(),
            bytes: 0,
            fraction: None,
        }))
    }
}

fn map_entries(value: DataType) -> FieldRef {
    let fields = Fields::from(vec![Field::new("key", value, false), Field::new("value", DataType::UInt64, true)]);
    Arc::new(Field::new("entries", DataType::Struct(fields), false))
}

#[derive(Debug)]
struct Counts {
    counting: Counting,
    /// Whether each value counts once.
    is_distinct: bool,
    value_type: DataType,
    counts: HashMap<ScalarValue, u64>,
    /// The memory of the values.
    bytes: usize,
    fraction: Option<f64>,
}

impl Counts {
    fn add(&mut self, value: ScalarValue, count: u64) {
        use std::collections::hash_map::Entry;
        match self.counts.entry(value) {
            Entry::Occupied(mut entry) => *entry.get_mut() += count,
            Entry::Vacant(entry) => {
                self.bytes += entry.key().size() + size_of::<u64>();
                entry.insert(count);
            }
        }
    }

    /// Returns the values upwards, with their counts.
    fn sorted(&self) -> Vec<(&ScalarValue, u64)> {
        let counted = self.counts.iter().map(|(value, count)| (value, if self.is_distinct { 1 } else { *count }));
        let mut sorted: Vec<(&ScalarValue, u64)> = counted.collect();
        sorted.sort_by(|(left, _), (right, _)| left.partial_cmp(right).unwrap_or(std::cmp::Ordering::Equal));
        sorted
    }
}

impl Accumulator for Counts {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let Some(array) = values.first() else { return Ok(()) };
        if let (Some(fractions), None) = (values.get(1), self.fraction) {
            let fraction = fractions.as_primitive::<Float64Type>().iter().flatten().next();
            if fraction.is_some_and(|fraction| !(0.0..=1.0).contains(&fraction)) {
                return Err(invalid("a quantile is a fraction from 0 to 1".into()));
            }
            self.fraction = fraction;
        }
        // An array of the type NULL says of none of its values that it is null.
        let nulls = array.logical_nulls();
        for row in (0..array.len()).filter(|row| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(*row))) {
            self.add(ScalarValue::try_from_array(array, row)?.compacted(), 1);
        }
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let [values, counts, fractions] = states else { return Ok(()) };
        let (values, counts) = (values.as_list::<i32>(), counts.as_list::<i32>());
        for (values, counts) in values.iter().zip(counts.iter()) {
            let (Some(values), Some(counts)) = (values, counts) else { continue };
            let counts = counts.as_primitive::<UInt64Type>();
            for row in 0..values.len() {
                self.add(ScalarValue::try_from_array(&values, row)?.compacted(), counts.value(row));
            }
        }
        self.fraction = self.fraction.or(fractions.as_primitive::<Float64Type>().iter().flatten().next());
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let (mut values, mut counts) = (Vec::new(), Vec::new());
        for (value, count) in &self.counts {
            values.push(value.clone());
            counts.push(ScalarValue::from(*count));
        }
        Ok(vec![
            ScalarValue::List(ScalarValue::new_list_nullable(&values, &self.value_type)),
            ScalarValue::List(ScalarValue::new_list_nullable(&counts, &DataType::UInt64)),
            ScalarValue::Float64(self.fraction),
        ])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let sorted = self.sorted();
        let nothing = || match self.counting {
            Counting::Histogram => ScalarValue::try_from(&DataType::Map(map_entries(self.value_type.clone()), false)),
            Counting::Mode | Counting::Quantile => ScalarValue::try_from(&self.value_type),
        };
        match self.counting {
            _ if sorted.is_empty() => nothing(),
            Counting::Mode => {
                let mut best = sorted.first().copied();
                for (value, count) in &sorted {
                    if best.is_none_or(|(_, most)| *count > most) {
                        best = Some((value, *count));
                    }
                }
                best.map_or_else(nothing, |(value, _)| Ok(value.clone()))
            }
            Counting::Quantile => {
                let all: u64 = sorted.iter().map(|(_, count)| count).sum();
                let wanted = rank_of(self.fraction.unwrap_or(0.5), all);
                let mut seen = 0;
                let found = sorted.iter().find(|(_, count)| {
                    seen += count;
                    seen >= wanted
                });
                found.map_or_else(nothing, |(value, _)| Ok((*value).clone()))
            }
            Counting::Histogram => {
                let values: Vec<ScalarValue> = sorted.iter().map(|(value, _)| (*value).clone()).collect();
                let keys = match values.is_empty() {
                    true => new_empty_array(&self.value_type),
                    false => cast(&ScalarValue::iter_to_array(values)?, &self.value_type)?,
                };
                let counts: ArrayRef = Arc::new(UInt64Array::from_iter_values(sorted.iter().map(|(_, count)| *count)));
                let entries = map_entries(self.value_type.clone());
                let DataType::Struct(fields) = entries.data_type() else { return nothing() };
                let offsets = OffsetBuffer::from_lengths([keys.len()]);
                let pairs = StructArray::try_new(fields.clone(), vec![keys, counts], None)?;
                let map = MapArray::try_new(Arc::clone(&entries), offsets, pairs, None, false)?;
                Ok(ScalarValue::Map(Arc::new(map)))
            }
        }
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.bytes + self.counts.capacity() * size_of::<(ScalarValue, u64)>()
    }
}

/// Returns the rank, from 1, of the value up to which a fraction of all is. By the rounding of doubles 0.07 of 100 is a little more
/// than 7, which makes no eighth of it.
fn rank_of(fraction: f64, all: u64) -> u64 {
    querent_kql::rounded_up(fraction * all as f64, f64::EPSILON).max(1.0) as u64
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Product {
    signature: Signature,
}

impl AggregateUDFImpl for Product {
    fn name(&self) -> &str {
        "product"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        match arg_types {
            [number] if number.is_numeric() || *number == DataType::Null => Ok(vec![DataType::Float64]),
            [other] => Err(unfit(format!("product takes numbers, not {}", sql_name(other)))),
            _ => Err(unfit("product takes one number".into())),
        }
    }

    fn return_type(&self, _arg_types: &[DataType]) -> Result<DataType> {
        Ok(DataType::Float64)
    }

    fn state_fields(&self, _args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        Ok(vec![Arc::new(Field::new("product", DataType::Float64, true))])
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }

    fn accumulator(&self, _args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(ProductSoFar(None)))
    }
}

#[derive(Debug)]
struct ProductSoFar(Option<f64>);

impl Accumulator for ProductSoFar {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let Some(array) = values.first() else { return Ok(()) };
        for value in array.as_primitive::<Float64Type>().iter().flatten() {
            self.0 = Some(self.0.unwrap_or(1.0) * value);
        }
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.update_batch(states)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![ScalarValue::Float64(self.0)])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(ScalarValue::Float64(self.0.map(plain_nan)))
    }

    fn size(&self) -> usize {
        size_of::<Self>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fraction_that_is_a_whole_number_of_values_is_no_value_more() {
        for (fraction, all, rank) in [
            (0.07, 100, 7),
            (0.29, 100, 29),
            (0.55, 100, 55),
            (0.1, 30, 3),
            (0.5, 3, 2),
            (0.0, 5, 1),
            (1.0, 5, 5),
            (0.071, 100, 8),
        ] {
            assert_eq!(rank_of(fraction, all), rank, "{fraction} of {all}");
        }
    }
}
