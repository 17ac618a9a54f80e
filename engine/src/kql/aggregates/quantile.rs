//! Percentiles by nearest rank, of the values' own type: all values are kept until the group is complete, and counted
//! against the query's memory.

use std::mem::size_of;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, new_empty_array};
use arrow::compute::{SortOptions, concat, sort};
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::error::Result;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility};
use datafusion::scalar::ScalarValue;

/// The values at these percentiles, as a list.
pub(super) fn quantile(percentiles: Vec<f64>) -> Arc<AggregateUDF> {
    let percentiles = percentiles.into_iter().map(f64::to_bits).collect();
    let signature = Signature::any(1, Volatility::Immutable);
    Arc::new(AggregateUDF::new_from_impl(Quantile { percentiles, signature }))
}

pub(super) fn is(function: &dyn AggregateUDFImpl) -> bool {
    (function as &dyn std::any::Any).is::<Quantile>()
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Quantile {
    /// As bits, so that two of the same percentiles are the same function.
    percentiles: Vec<u64>,
    signature: Signature,
}

fn list_of(data_type: &DataType) -> DataType {
    DataType::List(Arc::new(Field::new_list_field(data_type.clone(), true)))
}

impl AggregateUDFImpl for Quantile {
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
        let data_type = arguments.expr_fields.first().map_or(DataType::Null, |field| field.data_type().clone());
        let percentiles = self.percentiles.iter().copied().map(f64::from_bits).collect();
        Ok(Box::new(Values { percentiles, data_type, batches: Vec::new() }))
    }

    fn state_fields(&self, arguments: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let data_type = arguments.input_fields.first().map_or(DataType::Null, |field| field.data_type().clone());
        Ok(vec![Arc::new(Field::new(format!("{}[values]", arguments.name), list_of(&data_type), true))])
    }
}

#[derive(Debug)]
struct Values {
    percentiles: Vec<f64>,
    data_type: DataType,
    batches: Vec<ArrayRef>,
}

impl Values {
    fn add(&mut self, values: &ArrayRef) -> Result<()> {
        if !values.is_empty() {
            // A slice would keep the whole batch that it is of.
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

/// Where the value of a percentile stands among so many ordered ones.
fn nearest_rank(percentile: f64, count: usize) -> usize {
    // A conversion of a float saturates, and counts are far below what a float holds exactly.
    let rank = (percentile / 100.0 * count as f64).ceil() as usize;
    rank.saturating_sub(1).min(count.saturating_sub(1))
}

impl Accumulator for Values {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        values.first().map_or(Ok(()), |values| self.add(values))
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let Some(lists) = states.first().and_then(|states| states.as_list_opt::<i32>()) else { return Ok(()) };
        for list in lists.iter().flatten() {
            self.add(&list)?;
        }
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let all = self.all()?;
        self.batches.clear();
        let list = datafusion::common::utils::SingleRowListArrayBuilder::new(all).build_list_scalar();
        Ok(vec![list])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let sorted = sort(&self.all()?, Some(SortOptions { descending: false, nulls_first: false }))?;
        let count = sorted.len() - sorted.null_count();
        let mut picked = Vec::with_capacity(self.percentiles.len());
        for percentile in &self.percentiles {
            picked.push(match count {
                0 => ScalarValue::try_from(&self.data_type)?,
                count => ScalarValue::try_from_array(&sorted, nearest_rank(*percentile, count))?,
            });
        }
        Ok(ScalarValue::List(ScalarValue::new_list_nullable(&picked, &self.data_type)))
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.batches.iter().map(|batch| batch.get_array_memory_size()).sum::<usize>()
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
    }
}
