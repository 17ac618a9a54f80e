//! `skewness`, `kurtosis` and `kurtosis_pop`: of moments around the mean, which are computed as the values come and joined by
//! Pébay's formulas (Sandia National Laboratories, SAND2008-6212). Sums of powers lose all digits where numbers are large beside
//! what they differ by.

use std::collections::{HashSet, VecDeque};
use std::mem::size_of;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::{DataType, Field, FieldRef, Float64Type};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility};

use super::definition::unfit;
use super::one_nan::plain_nan;
use crate::type_names::sql_name;

/// Returns the functions of this file.
pub(super) fn functions() -> Vec<Arc<AggregateUDF>> {
    let function = |shape| MomentFunction { shape, signature: Signature::user_defined(Volatility::Immutable) };
    [DistributionShape::Skewness, DistributionShape::Kurtosis, DistributionShape::KurtosisOfAll]
        .map(|shape| Arc::new(AggregateUDF::new_from_impl(function(shape))))
        .into()
}

/// What is computed of the moments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum DistributionShape {
    /// How uneven the sides are, of a sample.
    Skewness,
    /// How much lies far out, of a sample.
    Kurtosis,
    /// The same of all values that there are.
    KurtosisOfAll,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct MomentFunction {
    shape: DistributionShape,
    signature: Signature,
}

impl AggregateUDFImpl for MomentFunction {
    fn name(&self) -> &str {
        match self.shape {
            DistributionShape::Skewness => "skewness",
            DistributionShape::Kurtosis => "kurtosis",
            DistributionShape::KurtosisOfAll => "kurtosis_pop",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        match arg_types {
            [number] if number.is_numeric() || *number == DataType::Null => Ok(vec![DataType::Float64]),
            [other] => Err(unfit(format!("{} takes numbers, not {}", self.name(), sql_name(other)))),
            _ => Err(unfit(format!("{} takes one number", self.name()))),
        }
    }

    fn return_type(&self, _arg_types: &[DataType]) -> Result<DataType> {
        Ok(DataType::Float64)
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        if args.is_distinct {
            let numbers = DataType::new_list(DataType::Float64, true);
            return Ok(vec![Arc::new(Field::new("numbers", numbers, true))]);
        }
        let number = |name: &str| Arc::new(Field::new(name, DataType::Float64, true));
        Ok(["count", "mean", "second", "third", "fourth"].map(number).into())
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        if args.is_distinct {
            return Ok(Box::new(DistinctMoments { shape: self.shape, numbers: HashSet::new() }));
        }
        Ok(Box::new(MomentsSoFar { shape: self.shape, moments: CentralMoments::default() }))
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(FrameMoments { shape: self.shape, is_distinct: args.is_distinct, numbers: VecDeque::new() }))
    }
}

/// The mean of numbers, and the sums of the second to fourth powers of what each differs from it.
#[derive(Debug, Clone, Copy, Default)]
struct CentralMoments {
    count: f64,
    mean: f64,
    second: f64,
    third: f64,
    fourth: f64,
}

impl CentralMoments {
    fn of_numbers(numbers: impl Iterator<Item = f64>) -> Self {
        numbers.fold(Self::default(), |moments, number| {
            moments.joined(Self { count: 1.0, mean: number, ..Self::default() })
        })
    }

    /// Returns the moments of the numbers of both.
    fn joined(self, other: Self) -> Self {
        if self.count == 0.0 {
            return other;
        }
        if other.count == 0.0 {
            return self;
        }
        let (own, others) = (self.count, other.count);
        let count = own + others;
        let distance = other.mean - self.mean;
        let step = distance / count;
        let product = distance * step * own * others;
        Self {
            count,
            mean: self.mean + step * others,
            second: self.second + other.second + product,
            third: self.third
                + other.third
                + product * step * (own - others)
                + 3.0 * step * (own * other.second - others * self.second),
            fourth: self.fourth
                + other.fourth
                + product * step * step * (own * own - own * others + others * others)
                + 6.0 * step * step * (own * own * other.second + others * others * self.second)
                + 4.0 * step * (own * other.third - others * self.third),
        }
    }

    /// Returns what a function says of the numbers; null where there are too few, or, but for the skewness, all are one number.
    fn value(self, shape: DistributionShape) -> ScalarValue {
        let count = self.count;
        let spread = self.second / count;
        let excess = self.fourth / count / spread.powi(2);
        let found = match shape {
            DistributionShape::Skewness if count > 2.0 && spread == 0.0 => Some(f64::NAN),
            DistributionShape::Skewness if count > 2.0 => {
                let skew = self.third / count / spread.powf(1.5);
                Some((count * (count - 1.0)).sqrt() / (count - 2.0) * skew)
            }
            DistributionShape::Kurtosis if count > 3.0 && spread != 0.0 => {
                let factor = (count - 1.0) / ((count - 2.0) * (count - 3.0));
                Some(factor * ((count + 1.0) * excess - 3.0 * (count - 1.0)))
            }
            DistributionShape::KurtosisOfAll if count > 1.0 && spread != 0.0 => Some(excess - 3.0),
            _ => None,
        };
        ScalarValue::Float64(found.map(plain_nan))
    }
}

/// Returns the numbers of a batch that are not null.
fn known_numbers(values: &[ArrayRef]) -> impl Iterator<Item = f64> + '_ {
    values.first().into_iter().flat_map(|array| array.as_primitive::<Float64Type>().iter().flatten())
}

#[derive(Debug)]
struct MomentsSoFar {
    shape: DistributionShape,
    moments: CentralMoments,
}

impl Accumulator for MomentsSoFar {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.moments = self.moments.joined(CentralMoments::of_numbers(known_numbers(values)));
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let [counts, means, seconds, thirds, fourths] = states else { return Ok(()) };
        let number = |array: &ArrayRef, row: usize| array.as_primitive::<Float64Type>().value(row);
        for row in 0..counts.len() {
            self.moments = self.moments.joined(CentralMoments {
                count: number(counts, row),
                mean: number(means, row),
                second: number(seconds, row),
                third: number(thirds, row),
                fourth: number(fourths, row),
            });
        }
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let CentralMoments { count, mean, second, third, fourth } = self.moments;
        Ok([count, mean, second, third, fourth].map(|number| ScalarValue::Float64(Some(number))).into())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(self.moments.value(self.shape))
    }

    fn size(&self) -> usize {
        size_of::<Self>()
    }
}

/// Each number once, by its bits: a zero has no sign, and there is one NaN.
#[derive(Debug)]
struct DistinctMoments {
    shape: DistributionShape,
    numbers: HashSet<u64>,
}

impl DistinctMoments {
    fn add(&mut self, numbers: impl Iterator<Item = f64>) {
        self.numbers.extend(numbers.map(|number| plain_nan(number + 0.0).to_bits()));
    }

    /// Returns the numbers upwards, so that what is computed of them is the same each time.
    fn sorted(&self) -> Vec<f64> {
        let mut numbers: Vec<f64> = self.numbers.iter().map(|bits| f64::from_bits(*bits)).collect();
        numbers.sort_by(f64::total_cmp);
        numbers
    }
}

impl Accumulator for DistinctMoments {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.add(known_numbers(values));
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let Some(lists) = states.first() else { return Ok(()) };
        for numbers in lists.as_list::<i32>().iter().flatten() {
            self.add(known_numbers(&[numbers]));
        }
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let numbers: Vec<ScalarValue> =
            self.sorted().into_iter().map(|number| ScalarValue::Float64(Some(number))).collect();
        Ok(vec![ScalarValue::List(ScalarValue::new_list_nullable(&numbers, &DataType::Float64))])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(CentralMoments::of_numbers(self.sorted().into_iter()).value(self.shape))
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.numbers.capacity() * size_of::<u64>()
    }
}

/// The numbers of a window's frame, which leave it in the order in which they came: what is taken off a moment that was
/// computed would leave its rounding behind.
#[derive(Debug)]
struct FrameMoments {
    shape: DistributionShape,
    is_distinct: bool,
    numbers: VecDeque<f64>,
}

impl Accumulator for FrameMoments {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.numbers.extend(known_numbers(values));
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let gone = known_numbers(values).count().min(self.numbers.len());
        self.numbers.drain(..gone);
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn merge_batch(&mut self, _states: &[ArrayRef]) -> Result<()> {
        Err(unfit("a frame is of one window".into()))
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Err(unfit("a frame is of one window".into()))
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        if self.is_distinct {
            let mut distinct = DistinctMoments { shape: self.shape, numbers: HashSet::new() };
            distinct.add(self.numbers.iter().copied());
            return distinct.evaluate();
        }
        Ok(CentralMoments::of_numbers(self.numbers.iter().copied()).value(self.shape))
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.numbers.capacity() * size_of::<f64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(moments: CentralMoments, shape: DistributionShape) -> f64 {
        let ScalarValue::Float64(Some(value)) = moments.value(shape) else { panic!("{moments:?} has no {shape:?}") };
        value
    }

    #[test]
    fn parts_join_to_the_moments_of_all_and_large_numbers_keep_their_digits() {
        let numbers = [1.0, 2.0, 3.0, 10.0, 4.0, 4.0, -7.0];
        let all = CentralMoments::of_numbers(numbers.into_iter());
        for far in [0.0, 1e9] {
            for at in 0..=numbers.len() {
                let (first, second) = numbers.split_at(at);
                let part = |part: &[f64]| CentralMoments::of_numbers(part.iter().map(|number| number + far));
                let joined = part(first).joined(part(second));
                for shape in
                    [DistributionShape::Skewness, DistributionShape::Kurtosis, DistributionShape::KurtosisOfAll]
                {
                    let difference = value(joined, shape) - value(all, shape);
                    assert!(difference.abs() < 1e-6, "{shape:?} of parts at {at}, {far} away: {difference}");
                }
            }
        }
    }

    #[test]
    fn numbers_that_are_all_one_have_no_kurtosis() {
        let same = CentralMoments::of_numbers([0.1; 5].into_iter());
        assert_eq!(same.value(DistributionShape::Kurtosis), ScalarValue::Float64(None));
        assert!(value(same, DistributionShape::Skewness).is_nan());
    }
}
