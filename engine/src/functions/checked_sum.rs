//! `sum` of 64-bit integers, and of decimals of 38 digits, that does not wrap around: a sum that its type has no place for is an
//! error. Of other numbers it is DataFusion's, whose name it has, so that rules that know a sum by its name know this one too; of doubles
//! with one NaN.
//!
//! The sum of all rows, and that of a window, are exact until they are asked for. Those of groups are looked at as they grow.

use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray, PrimitiveArray};
use arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType, Decimal128Type, DecimalType, Int64Type, UInt64Type};
use datafusion::common::{HashMap, ScalarValue};
use datafusion::error::{DataFusionError, Result};
use datafusion::functions_aggregate::sum::sum_udaf;
use datafusion::logical_expr::function::AccumulatorArgs;
use datafusion::logical_expr::{Accumulator, AggregateUDF, EmitTo, GroupsAccumulator};
use datafusion::physical_expr::NullState;

use super::checked_integers::out_of_range;
use super::definition::{invalid, unfit};
use super::group_states::states_of_rows;
use super::maps::refuse_long_decimals;
use super::plain_results::{with_plain_value, with_plain_values};
use super::wrapped_aggregates::{AggregateOverride, WrappedAggregate};
use crate::type_names::sql_name;

/// Returns the sum that does not wrap around.
pub(crate) fn checked_sum() -> Arc<AggregateUDF> {
    static CHECKED: LazyLock<Arc<AggregateUDF>> = LazyLock::new(|| WrappedAggregate::new_udf(sum_udaf(), CheckedSum));
    Arc::clone(&CHECKED)
}

/// Returns whether a function is the sum that does not wrap around.
pub(crate) fn is_checked_sum(function: &AggregateUDF) -> bool {
    WrappedAggregate::<CheckedSum>::unwrapped(function).is_some()
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct CheckedSum;

impl AggregateOverride for CheckedSum {
    fn accumulator(&self, inner: &AggregateUDF, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let returned = args.return_field.data_type().clone();
        match exact_accumulator(&args) {
            Some(exact) => Ok(exact),
            None => Ok(with_plain_value(&returned, inner.accumulator(args)?)),
        }
    }

    fn groups_accumulator(&self, inner: &AggregateUDF, args: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        let data_type = args.return_field.data_type().clone();
        match data_type {
            DataType::Int64 => Ok(Box::new(GroupSums::<Int64Type, _>::new(data_type, i64::overflowing_add))),
            DataType::UInt64 => Ok(Box::new(GroupSums::<UInt64Type, _>::new(data_type, u64::overflowing_add))),
            DataType::Decimal128(DECIMAL128_MAX_PRECISION, _) => {
                Ok(Box::new(GroupSums::<Decimal128Type, _>::new(data_type, i128::overflowing_add)))
            }
            other => Ok(with_plain_values(&other, inner.create_groups_accumulator(args)?)),
        }
    }

    fn sliding_accumulator(&self, inner: &Arc<AggregateUDF>, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let returned = args.return_field.data_type().clone();
        match exact_accumulator(&args) {
            Some(exact) => Ok(exact),
            None => Ok(with_plain_value(&returned, inner.create_sliding_accumulator(args)?)),
        }
    }
}

fn exact_accumulator(args: &AccumulatorArgs) -> Option<Box<dyn Accumulator>> {
    let data_type = args.return_field.data_type().clone();
    if !matches!(data_type, DataType::Int64 | DataType::UInt64 | DataType::Decimal128(DECIMAL128_MAX_PRECISION, _)) {
        return None;
    }
    let total = CheckedTotal::new(data_type);
    Some(match args.is_distinct {
        true => Box::new(DistinctTotal { counts: HashMap::new(), total }),
        false => Box::new(total),
    })
}

/// A sum of 64-bit integers, of any size; or of decimals, to where 128 bits end.
#[derive(Debug)]
struct CheckedTotal {
    /// `None` once it is beyond 128 bits.
    sum: Option<i128>,
    count: usize,
    data_type: DataType,
}

impl CheckedTotal {
    fn new(data_type: DataType) -> Self {
        Self { sum: Some(0), count: 0, data_type }
    }

    fn change(&mut self, number: i128, change: fn(i128, i128) -> Option<i128>) {
        self.sum = self.sum.and_then(|sum| change(sum, number));
    }

    fn change_by_all(&mut self, values: &ArrayRef, change: fn(i128, i128) -> Option<i128>) -> Result<()> {
        match values.as_primitive_opt::<Decimal128Type>() {
            // A batch of them may be beyond 128 bits by itself.
            Some(decimals) => decimals.iter().flatten().for_each(|number| self.change(number, change)),
            None => self.change(exact_sum(values)?, change),
        }
        Ok(())
    }
}

impl Accumulator for CheckedTotal {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let Some(values) = values.first() else { return Ok(()) };
        self.change_by_all(values, i128::checked_add)?;
        self.count += values.len() - values.null_count();
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.update_batch(states)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let Some(values) = values.first() else { return Ok(()) };
        self.change_by_all(values, i128::checked_sub)?;
        self.count = self.count.saturating_sub(values.len() - values.null_count());
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.evaluate()?])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        if self.count == 0 {
            return ScalarValue::try_new_null(&self.data_type);
        }
        let value = self.sum.and_then(|sum| match self.data_type {
            DataType::Decimal128(precision, scale) => Decimal128Type::is_valid_decimal_precision(sum, precision)
                .then_some(ScalarValue::Decimal128(Some(sum), precision, scale)),
            DataType::UInt64 => u64::try_from(sum).ok().map(|sum| ScalarValue::UInt64(Some(sum))),
            _ => i64::try_from(sum).ok().map(|sum| ScalarValue::Int64(Some(sum))),
        });
        value.ok_or_else(|| match self.sum {
            Some(sum) if self.data_type.is_integer() => out_of_range(&self.data_type, &format!("a sum of {sum}")),
            _ => decimal_out_of_range(&self.data_type),
        })
    }

    fn size(&self) -> usize {
        size_of::<Self>()
    }
}

fn decimal_out_of_range(data_type: &DataType) -> DataFusionError {
    invalid(format!("a sum is out of the range of {}; sum up CAST(... AS DOUBLE)", sql_name(data_type)))
}

/// Returns the sum of a batch. Where its numbers are small enough for their sum to be of their type, it is Arrow's.
fn exact_sum(values: &ArrayRef) -> Result<i128> {
    let row_bits = usize::BITS - values.len().leading_zeros();
    if let Some(numbers) = values.as_primitive_opt::<Int64Type>() {
        // A number and its complement have the same bits.
        let widest = numbers.values().iter().fold(0, |seen, number| seen | (number ^ (number >> 63)));
        let bits = i64::BITS - widest.leading_zeros();
        return Ok(match bits + row_bits < i64::BITS {
            true => arrow::compute::sum(numbers).map_or(0, i128::from),
            false => numbers.iter().flatten().map(i128::from).sum(),
        });
    }
    let Some(numbers) = values.as_primitive_opt::<UInt64Type>() else {
        return Err(unfit("a sum of integers is of BIGINT or UBIGINT".into()));
    };
    let widest = numbers.values().iter().fold(0, |seen, number| seen | number);
    let bits = u64::BITS - widest.leading_zeros();
    Ok(match bits + row_bits <= u64::BITS {
        true => arrow::compute::sum(numbers).map_or(0, i128::from),
        false => numbers.iter().flatten().map(i128::from).sum(),
    })
}

/// A sum of different numbers, with how often each was there.
#[derive(Debug)]
struct DistinctTotal {
    counts: HashMap<i128, u64>,
    total: CheckedTotal,
}

impl DistinctTotal {
    fn numbers(values: &ArrayRef) -> Vec<i128> {
        if let Some(numbers) = values.as_primitive_opt::<Int64Type>() {
            return numbers.iter().flatten().map(i128::from).collect();
        }
        if let Some(numbers) = values.as_primitive_opt::<UInt64Type>() {
            return numbers.iter().flatten().map(i128::from).collect();
        }
        let decimals = values.as_primitive_opt::<Decimal128Type>();
        decimals.map(|numbers| numbers.iter().flatten().collect()).unwrap_or_default()
    }

    fn typed(&self, number: i128) -> ScalarValue {
        match self.total.data_type {
            DataType::Decimal128(precision, scale) => ScalarValue::Decimal128(Some(number), precision, scale),
            DataType::UInt64 => ScalarValue::UInt64(u64::try_from(number).ok()),
            _ => ScalarValue::Int64(i64::try_from(number).ok()),
        }
    }
}

impl Accumulator for DistinctTotal {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        for number in values.first().map(Self::numbers).unwrap_or_default() {
            let count = self.counts.entry(number).or_insert(0);
            if *count == 0 {
                self.total.change(number, i128::checked_add);
                self.total.count += 1;
            }
            *count += 1;
        }
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let Some(lists) = states.first() else { return Ok(()) };
        for values in lists.as_list::<i32>().iter().flatten() {
            self.update_batch(&[values])?;
        }
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        for number in values.first().map(Self::numbers).unwrap_or_default() {
            let Some(count) = self.counts.get_mut(&number) else { continue };
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&number);
                self.total.change(number, i128::checked_sub);
                self.total.count -= 1;
            }
        }
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let values: Vec<ScalarValue> = self.counts.keys().map(|number| self.typed(*number)).collect();
        Ok(vec![ScalarValue::List(ScalarValue::new_list_nullable(&values, &self.total.data_type))])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.total.evaluate()
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.counts.capacity() * size_of::<(i128, u64)>()
    }
}

/// The sums of groups.
struct GroupSums<T: ArrowPrimitiveType, F> {
    data_type: DataType,
    sums: Vec<T::Native>,
    seen: NullState,
    add: F,
}

impl<T, F> GroupSums<T, F>
where
    T: ArrowPrimitiveType + Send,
    F: Fn(T::Native, T::Native) -> (T::Native, bool) + Send + Sync + 'static,
{
    fn new(data_type: DataType, add: F) -> Self {
        Self { data_type, sums: Vec::new(), seen: NullState::new(), add }
    }
}

impl<T, F> GroupsAccumulator for GroupSums<T, F>
where
    T: ArrowPrimitiveType + Send,
    F: Fn(T::Native, T::Native) -> (T::Native, bool) + Send + Sync + 'static,
{
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        let Some(values) = values.first() else { return Ok(()) };
        self.sums.resize(total_num_groups, T::Native::default());
        let Self { data_type, sums, seen, add } = self;
        let mut beyond = false;
        seen.accumulate(group_indices, values.as_primitive::<T>(), filter, total_num_groups, |group, value| {
            if let Some(sum) = sums.get_mut(group) {
                let (added, is_beyond) = add(*sum, value);
                *sum = added;
                beyond |= is_beyond;
            }
        });
        match (beyond, data_type.is_decimal()) {
            (false, _) => Ok(()),
            (true, true) => Err(decimal_out_of_range(data_type)),
            (true, false) => Err(out_of_range(data_type, "the sum of a group")),
        }
    }

    fn merge_batch(
        &mut self,
        states: &[ArrayRef],
        group_indices: &[usize],
        filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        self.update_batch(states, group_indices, filter, total_num_groups)
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let sums = emit_to.take_needed(&mut self.sums);
        let nulls = self.seen.build(emit_to);
        let sums = PrimitiveArray::<T>::new(sums.into(), nulls).with_data_type(self.data_type.clone());
        let sums: ArrayRef = Arc::new(sums);
        refuse_long_decimals(&sums)?;
        Ok(sums)
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        Ok(vec![self.evaluate(emit_to)?])
    }

    /// The sum of one row is its number.
    fn convert_to_state(&self, values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let Some(values) = values.first() else { return Ok(Vec::new()) };
        Ok(vec![Arc::new(states_of_rows::<T>(values, filter).with_data_type(self.data_type.clone()))])
    }

    fn supports_convert_to_state(&self) -> bool {
        true
    }

    fn size(&self) -> usize {
        self.sums.capacity() * size_of::<T::Native>() + self.seen.size()
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{Int64Array, UInt64Array};

    use super::*;

    #[test]
    fn a_sum_may_leave_its_range_on_the_way() {
        let mut sum = CheckedTotal::new(DataType::Int64);
        let batch = |values: Vec<Option<i64>>| [Arc::new(Int64Array::from(values)) as ArrayRef];
        assert_eq!(sum.evaluate().unwrap(), ScalarValue::Int64(None));
        sum.update_batch(&batch(vec![Some(i64::MAX), None, Some(1)])).unwrap();
        assert!(sum.evaluate().is_err());
        sum.update_batch(&batch(vec![Some(-1)])).unwrap();
        assert_eq!(sum.evaluate().unwrap(), ScalarValue::Int64(Some(i64::MAX)));
        sum.retract_batch(&batch(vec![Some(i64::MAX), None])).unwrap();
        assert_eq!(sum.evaluate().unwrap(), ScalarValue::Int64(Some(0)));
    }

    #[test]
    fn a_batch_of_extremes_is_summed_exactly() {
        let signed: ArrayRef = Arc::new(Int64Array::from(vec![i64::MIN; 3]));
        assert_eq!(exact_sum(&signed).unwrap(), i128::from(i64::MIN) * 3);
        let unsigned: ArrayRef = Arc::new(UInt64Array::from(vec![u64::MAX, 1]));
        assert_eq!(exact_sum(&unsigned).unwrap(), i128::from(u64::MAX) + 1);
        let small: ArrayRef = Arc::new(Int64Array::from(vec![Some(-5), None, Some(7)]));
        assert_eq!(exact_sum(&small).unwrap(), 2);
    }

    #[test]
    fn different_numbers_count_once() {
        let mut sum = DistinctTotal { counts: HashMap::new(), total: CheckedTotal::new(DataType::Int64) };
        let batch = |values: Vec<i64>| [Arc::new(Int64Array::from(values)) as ArrayRef];
        sum.update_batch(&batch(vec![i64::MAX, i64::MAX, -1])).unwrap();
        assert_eq!(sum.evaluate().unwrap(), ScalarValue::Int64(Some(i64::MAX - 1)));
        sum.retract_batch(&batch(vec![-1])).unwrap();
        sum.update_batch(&batch(vec![1])).unwrap();
        assert!(sum.evaluate().is_err());
    }

    #[test]
    fn groups_are_looked_at_as_they_grow() {
        let mut sums = GroupSums::<Int64Type, _>::new(DataType::Int64, i64::overflowing_add);
        let values: ArrayRef = Arc::new(Int64Array::from(vec![i64::MAX, 5, 1]));
        sums.update_batch(&[Arc::clone(&values)], &[0, 1, 1], None, 2).unwrap();
        assert!(sums.update_batch(&[values], &[0, 1, 0], None, 2).is_err());
    }

    #[test]
    fn decimals_do_not_wrap_around() {
        let data_type = DataType::Decimal128(38, 2);
        let largest = 10_i128.pow(38) - 1;
        let batch = |values: Vec<Option<i128>>| -> ArrayRef {
            Arc::new(PrimitiveArray::<Decimal128Type>::from(values).with_data_type(data_type.clone()))
        };
        let mut sum = CheckedTotal::new(data_type.clone());
        assert_eq!(sum.evaluate().unwrap(), ScalarValue::Decimal128(None, 38, 2));
        sum.update_batch(&[batch(vec![Some(largest), None])]).unwrap();
        assert_eq!(sum.evaluate().unwrap(), ScalarValue::Decimal128(Some(largest), 38, 2));
        sum.update_batch(&[batch(vec![Some(1)])]).unwrap();
        assert!(sum.evaluate().is_err(), "39 digits");
        sum.retract_batch(&[batch(vec![Some(1)])]).unwrap();
        assert!(sum.evaluate().is_ok());
        sum.update_batch(&[batch(vec![Some(largest)])]).unwrap();
        assert!(sum.evaluate().is_err(), "more than 128 bits");

        let mut different = DistinctTotal { counts: HashMap::new(), total: CheckedTotal::new(data_type.clone()) };
        different.update_batch(&[batch(vec![Some(7), Some(7), None, Some(5)])]).unwrap();
        assert_eq!(different.evaluate().unwrap(), ScalarValue::Decimal128(Some(12), 38, 2));
        different.update_batch(&[batch(vec![Some(largest), Some(largest - 1)])]).unwrap();
        assert!(different.evaluate().is_err());

        let mut sums = GroupSums::<Decimal128Type, _>::new(data_type.clone(), i128::overflowing_add);
        sums.update_batch(&[batch(vec![Some(largest), Some(5), None])], &[0, 1, 2], None, 3).unwrap();
        assert!(sums.update_batch(&[batch(vec![Some(largest)])], &[0], None, 3).is_err());
        let mut sums = GroupSums::<Decimal128Type, _>::new(data_type.clone(), i128::overflowing_add);
        sums.update_batch(&[batch(vec![Some(7), Some(5), None])], &[0, 0, 1], None, 2).unwrap();
        assert_eq!(&sums.evaluate(EmitTo::All).unwrap(), &batch(vec![Some(12), None]));
        let narrow = PrimitiveArray::<Decimal128Type>::from(vec![Some(3)]).with_data_type(DataType::Decimal128(30, 2));
        let narrow: ArrayRef = Arc::new(narrow);
        assert_eq!(sums.convert_to_state(&[narrow], None).unwrap()[0].data_type(), &data_type);
    }
}
