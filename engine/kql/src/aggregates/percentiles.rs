//! Percentiles by nearest rank, in the type of the values. All values are kept until the group is complete, and count
//! against the memory of the query. With a second argument each value counts as often as that says.

use std::mem::size_of;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, new_empty_array};
use arrow::compute::{SortOptions, concat, sort_to_indices, take};
use arrow::datatypes::{DataType, Field, FieldRef, Int64Type};
use datafusion::error::Result;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility};
use datafusion::scalar::ScalarValue;

/// Returns the aggregate that lists the values at these percentiles.
pub(super) fn percentiles_udaf(percentiles: Vec<f64>) -> Arc<AggregateUDF> {
    let percentiles = percentiles.into_iter().map(f64::to_bits).collect();
    let signature = Signature::variadic_any(Volatility::Immutable);
    Arc::new(AggregateUDF::new_from_impl(PercentilesFunction { percentiles, signature }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct PercentilesFunction {
    /// As bits, so that functions with equal percentiles are equal.
    pub(super) percentiles: Vec<u64>,
    signature: Signature,
}

fn list_of(data_type: &DataType) -> DataType {
    DataType::List(Arc::new(Field::new_list_field(data_type.clone(), true)))
}

impl AggregateUDFImpl for PercentilesFunction {
    fn name(&self) -> &str {
        "kql_percentiles"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        Ok(list_of(arguments.first().unwrap_or(&DataType::Null)))
    }

    fn accumulator(&self, arguments: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let columns = arguments.expr_fields.iter().map(|field| ArgumentBatches::new(field.data_type()));
        let percentiles = self.percentiles.iter().copied().map(f64::from_bits).collect();
        Ok(Box::new(PercentilesAccumulator { percentiles, columns: columns.collect() }))
    }

    fn state_fields(&self, arguments: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let fields = arguments.input_fields.iter().enumerate().map(|(index, field)| {
            let what = if index == 0 { "values" } else { "weights" };
            Arc::new(Field::new(format!("{}[{what}]", arguments.name), list_of(field.data_type()), true))
        });
        Ok(fields.collect())
    }
}

/// The values of one argument.
#[derive(Debug)]
struct ArgumentBatches {
    data_type: DataType,
    batches: Vec<ArrayRef>,
}

impl ArgumentBatches {
    fn new(data_type: &DataType) -> Self {
        Self { data_type: data_type.clone(), batches: Vec::new() }
    }

    fn add(&mut self, values: &ArrayRef) -> Result<()> {
        if !values.is_empty() {
            // A slice would keep the whole batch alive.
            self.batches.push(concat(&[values.as_ref()])?);
        }
        Ok(())
    }

    fn all(&self) -> Result<ArrayRef> {
        if self.batches.is_empty() {
            return Ok(new_empty_array(&self.data_type));
        }
        let batches: Vec<&dyn Array> = self.batches.iter().map(AsRef::as_ref).collect();
        Ok(concat(&batches)?)
    }
}

/// The values of a group, and their weights if they have any.
#[derive(Debug)]
struct PercentilesAccumulator {
    percentiles: Vec<f64>,
    columns: Vec<ArgumentBatches>,
}

/// Returns how many of so many values are up to a percentile, rounded up. By the rounding of doubles 7 percent of 100 are a little
/// more than 7, which makes no eighth of it.
fn values_up_to(percentile: f64, count: f64) -> f64 {
    rounded_up(percentile / 100.0 * count, 2.0 * f64::EPSILON)
}

/// Returns a number rounded up, unless it is a whole one but for the rounding of the doubles that it was computed of: `error` is how
/// far it may be from that, as a share of it.
pub fn rounded_up(number: f64, error: f64) -> f64 {
    let whole = number.round();
    if (number - whole).abs() <= whole * error { whole } else { number.ceil() }
}

/// Returns the index of a percentile among ordered values.
fn nearest_rank(percentile: f64, count: usize) -> usize {
    // A float to integer cast saturates, and a float holds all counts exactly.
    let rank = values_up_to(percentile, count as f64) as usize;
    rank.saturating_sub(1).min(count.saturating_sub(1))
}

/// Returns the index of the first ordered value at which the cumulative weight reaches the percentile.
fn nearest_weight(percentile: f64, weights: &Int64Array) -> usize {
    let weight = |index: usize| if weights.is_null(index) { 0.0 } else { weights.value(index).max(0) as f64 };
    let all: f64 = (0..weights.len()).map(weight).sum();
    let wanted = values_up_to(percentile, all);
    let mut reached = 0.0;
    let found = (0..weights.len()).position(|index| {
        reached += weight(index);
        reached > 0.0 && reached >= wanted
    });
    found.unwrap_or(weights.len().saturating_sub(1))
}

impl Accumulator for PercentilesAccumulator {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.columns.iter_mut().zip(values).try_for_each(|(column, values)| column.add(values))
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        for (column, states) in self.columns.iter_mut().zip(states) {
            let Some(lists) = states.as_list_opt::<i32>() else { return Ok(()) };
            for list in lists.iter().flatten() {
                column.add(&list)?;
            }
        }
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let mut lists = Vec::with_capacity(self.columns.len());
        for column in &mut self.columns {
            let all = column.all()?;
            column.batches.clear();
            lists.push(datafusion::common::utils::SingleRowListArrayBuilder::new(all).build_list_scalar());
        }
        Ok(lists)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let (values, weights) = match self.columns.as_slice() {
            [values] => (values, None),
            [values, weights, ..] => (values, Some(weights)),
            [] => return Ok(ScalarValue::Null),
        };
        let data_type = &values.data_type;
        let values = values.all()?;
        let order = sort_to_indices(&values, Some(SortOptions { descending: false, nulls_first: false }), None)?;
        let sorted = take(&values, &order, None)?;
        let count = sorted.len() - sorted.null_count();
        let weights = match weights {
            Some(weights) => Some(take(&weights.all()?, &order, None)?.slice(0, count)),
            None => None,
        };
        let weights = weights.as_ref().and_then(|weights| weights.as_primitive_opt::<Int64Type>());
        let mut picked = Vec::with_capacity(self.percentiles.len());
        for percentile in &self.percentiles {
            let place = weights
                .map_or_else(|| nearest_rank(*percentile, count), |weights| nearest_weight(*percentile, weights));
            picked.push(match count {
                0 => ScalarValue::try_from(data_type)?,
                _ => ScalarValue::try_from_array(&sorted, place)?,
            });
        }
        Ok(ScalarValue::List(ScalarValue::new_list_nullable(&picked, data_type)))
    }

    fn size(&self) -> usize {
        let batches = self.columns.iter().flat_map(|column| &column.batches);
        size_of::<Self>() + batches.map(|batch| batch.get_array_memory_size()).sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_rank_is_the_lower() {
        assert_eq!(nearest_rank(50.0, 2), 0);
        assert_eq!(nearest_rank(50.0, 3), 1);
        assert_eq!(nearest_rank(100.0, 3), 2);
        assert_eq!(nearest_rank(0.0, 3), 0);
        // Seven percent of a hundred, as doubles, are a little more than seven.
        assert_eq!(nearest_rank(7.0, 100), 6);
        assert_eq!(nearest_weight(7.0, &Int64Array::from(vec![7, 93])), 0);
        assert_eq!(nearest_rank(7.1, 100), 7);
    }

    #[test]
    fn a_weight_counts_as_that_many_values() {
        let weights = Int64Array::from(vec![8, 6, 3, 1]);
        for (percentile, place) in [(0.0, 0), (44.4, 0), (50.0, 1), (75.0, 1), (99.9, 3), (100.0, 3)] {
            assert_eq!(nearest_weight(percentile, &weights), place, "{percentile}");
        }
        assert_eq!(nearest_weight(50.0, &Int64Array::from(vec![None, Some(2), Some(-3)])), 1);
    }
}
