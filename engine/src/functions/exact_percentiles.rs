//! `percentile_cont` (`quantile_cont`) between two values: DataFusion 54 cuts the weight of the upper one to six digits. Here
//! DataFusion's accumulators collect the values, and the percentile of what they hold is computed with the whole weight.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray, ListArray, PrimitiveArray, PrimitiveBuilder, RecordBatch,
};
use arrow::datatypes::{ArrowNativeTypeOp, DataType, Float32Type, Float64Type};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::function::AccumulatorArgs;
use datafusion::logical_expr::{Accumulator, AggregateUDF, ColumnarValue, EmitTo, GroupsAccumulator};

use super::definition::unfit;
use super::one_nan::plain_nan;
use super::wrapped_aggregates::{AggregateOverride, WrappedAggregate};

/// Returns the aggregate as it is called here.
pub(super) fn with_whole_weights(function: Arc<AggregateUDF>) -> Arc<AggregateUDF> {
    match function.name() {
        "percentile_cont" => WrappedAggregate::new_udf(function, WholeWeights),
        _ => function,
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct WholeWeights;

impl AggregateOverride for WholeWeights {
    fn accumulator(&self, inner: &AggregateUDF, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let fraction = fraction_of(&args);
        let inner = inner.accumulator(args)?;
        Ok(with_fraction(fraction, inner, true))
    }

    fn groups_accumulator(&self, inner: &AggregateUDF, args: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        let fraction = fraction_of(&args);
        let inner = inner.create_groups_accumulator(args)?;
        Ok(match fraction {
            Some(fraction) => Box::new(GroupPercentiles { inner, fraction }),
            None => inner,
        })
    }

    fn sliding_accumulator(&self, inner: &Arc<AggregateUDF>, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let (fraction, is_distinct) = (fraction_of(&args), args.is_distinct);
        let inner = inner.create_sliding_accumulator(args)?;
        Ok(with_fraction(fraction, inner, !is_distinct))
    }
}

/// Returns the fraction of a call from the least value, where its values are numbers that interpolate.
fn fraction_of(args: &AccumulatorArgs) -> Option<f64> {
    let is_known = matches!(args.return_field.data_type(), DataType::Float32 | DataType::Float64);
    let no_rows = RecordBatch::new_empty(Arc::new(args.schema.clone()));
    let ColumnarValue::Scalar(fraction) = args.exprs.get(1).filter(|_| is_known)?.evaluate(&no_rows).ok()? else {
        return None;
    };
    let ScalarValue::Float64(Some(fraction)) = fraction.cast_to(&DataType::Float64).ok()? else { return None };
    let is_downwards = args.order_bys.first().is_some_and(|sort| sort.options.descending);
    Some(if is_downwards { 1.0 - fraction } else { fraction })
}

fn with_fraction(fraction: Option<f64>, inner: Box<dyn Accumulator>, retracts: bool) -> Box<dyn Accumulator> {
    match fraction {
        Some(fraction) => Box::new(Percentile { inner, fraction, retracts }),
        None => inner,
    }
}

#[derive(Debug)]
struct Percentile {
    inner: Box<dyn Accumulator>,
    fraction: f64,
    /// Whether values can be taken off. DataFusion 54's accumulator of distinct values drops one that is still in the frame.
    retracts: bool,
}

impl Accumulator for Percentile {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        // The fraction is known; DataFusion 54's accumulator of distinct values takes the values alone.
        self.inner.update_batch(values.get(..1).unwrap_or_default())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.inner.merge_batch(states)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.inner.retract_batch(values.get(..1).unwrap_or_default())
    }

    fn supports_retract_batch(&self) -> bool {
        self.retracts && self.inner.supports_retract_batch()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.inner.state()
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        // The state is taken out of the accumulator, and put back for values that follow.
        let Some(ScalarValue::List(list)) = self.inner.state()?.pop() else { return self.inner.evaluate() };
        let (field, offsets, values, nulls) = Arc::unwrap_or_clone(list).into_parts();
        let (percentile, values) = match field.data_type() {
            DataType::Float32 => partitioned::<Float32Type>(values, self.fraction, weighted_singles)?,
            _ => partitioned::<Float64Type>(values, self.fraction, weighted)?,
        };
        self.inner.merge_batch(&[Arc::new(ListArray::new(field, offsets, values, nulls))])?;
        Ok(percentile)
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.inner.size()
    }
}

struct GroupPercentiles {
    inner: Box<dyn GroupsAccumulator>,
    fraction: f64,
}

impl GroupsAccumulator for GroupPercentiles {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        self.inner.update_batch(values, group_indices, filter, total_num_groups)
    }

    fn merge_batch(
        &mut self,
        states: &[ArrayRef],
        group_indices: &[usize],
        filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        self.inner.merge_batch(states, group_indices, filter, total_num_groups)
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let state = self.inner.state(emit_to)?;
        match state.first().and_then(|values| values.as_list_opt::<i32>()) {
            Some(values) => Ok(percentiles(values, self.fraction)),
            None => Err(unfit("the values of a percentile are a list of each group".into())),
        }
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        self.inner.state(emit_to)
    }

    fn convert_to_state(&self, values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        self.inner.convert_to_state(values, filter)
    }

    fn supports_convert_to_state(&self) -> bool {
        self.inner.supports_convert_to_state()
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.inner.size()
    }
}

/// Returns the percentile of values, and these again: they are put in order where they lie, if nothing else has them.
fn partitioned<T: ArrowPrimitiveType>(
    values: ArrayRef,
    fraction: f64,
    between: fn(T::Native, T::Native, f64) -> T::Native,
) -> Result<(ScalarValue, ArrayRef)> {
    let numbers = values.as_primitive::<T>().clone();
    drop(values);
    let mut numbers = numbers.into_builder().unwrap_or_else(|shared| {
        let mut copied = PrimitiveBuilder::with_capacity(shared.len());
        copied.append_slice(shared.values());
        copied
    });
    let found = percentile(numbers.values_slice_mut(), fraction, between);
    Ok((ScalarValue::new_primitive::<T>(found, &T::DATA_TYPE)?, Arc::new(numbers.finish())))
}

/// Returns the percentile of each list.
fn percentiles(lists: &ListArray, fraction: f64) -> ArrayRef {
    fn percentiles_of_type<T: ArrowPrimitiveType>(
        lists: &ListArray,
        fraction: f64,
        between: fn(T::Native, T::Native, f64) -> T::Native,
    ) -> ArrayRef {
        let found = lists.iter().map(|values| {
            let mut values = values?.as_primitive::<T>().values().to_vec();
            percentile(&mut values, fraction, between)
        });
        Arc::new(found.collect::<PrimitiveArray<T>>())
    }
    match lists.value_type() {
        DataType::Float32 => percentiles_of_type::<Float32Type>(lists, fraction, weighted_singles),
        _ => percentiles_of_type::<Float64Type>(lists, fraction, weighted),
    }
}

/// Returns the percentile of values: the one at its place, or what is between the two around it.
fn percentile<N: ArrowNativeTypeOp>(values: &mut [N], fraction: f64, between: fn(N, N, f64) -> N) -> Option<N> {
    let last = values.len().checked_sub(1)?;
    let place = (fraction * last as f64).clamp(0.0, last as f64);
    let below = place.floor() as usize;
    let (_, lower, above) = values.select_nth_unstable_by(below, |left, right| left.compare(*right));
    let lower = *lower;
    let weight = place - below as f64;
    let next = above.iter().copied().min_by(|left, right| left.compare(*right));
    match next {
        Some(upper) if weight > 0.0 => Some(between(lower, upper, weight)),
        _ => Some(lower),
    }
}

/// As DuckDB computes it. Two infinities have nothing between them.
fn weighted(lower: f64, upper: f64, weight: f64) -> f64 {
    plain_nan(if lower == upper { lower } else { lower * (1.0 - weight) + upper * weight })
}

fn weighted_singles(lower: f32, upper: f32, weight: f64) -> f32 {
    weighted(f64::from(lower), f64::from(upper), weight) as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn percentile_of(values: &[f64], fraction: f64) -> Option<f64> {
        percentile(&mut values.to_vec(), fraction, weighted)
    }

    #[test]
    fn the_weight_has_all_its_digits() {
        assert_eq!(percentile_of(&[0.0, 1e9], 0.999_999_9), Some(999_999_900.0));
        assert_eq!(percentile_of(&[], 0.5), None);
        assert_eq!(percentile_of(&[7.0], 0.25), Some(7.0));
        assert_eq!(percentile_of(&[3.0, 1.0, 2.0], 0.5), Some(2.0));
        assert_eq!(percentile_of(&[3.0, 1.0, 2.0, 4.0], 0.5), Some(2.5));
        assert_eq!((percentile_of(&[1.0, 2.0], 0.0), percentile_of(&[1.0, 2.0], 1.0)), (Some(1.0), Some(2.0)));
        assert_eq!(percentile_of(&[f64::INFINITY, f64::INFINITY], 0.5), Some(f64::INFINITY));
    }
}
