//! Sums and averages of doubles over a sliding window. A number that is taken out by subtracting it leaves what it made of the
//! others: beside 1e20 a small one is lost, and once a NaN or an infinity has been there all are NaN. Here numbers are only added:
//! of the older rows of the window there is a total from each of them on, which leaves with its row, and of the newer ones one of all.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type};
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{Accumulator, AggregateUDF};

use super::accumulator::OwnedAccumulatorArgs;
use crate::limits::QueryUsage;

/// What a window takes without asking.
const ADMITTED_BYTES: usize = 1 << 20;

/// An accumulator that only adds.
#[derive(Debug)]
pub(super) struct MovingTotal {
    is_average: bool,
    returned: DataType,
    /// The totals from each of the older rows on; that of the oldest is the last.
    older: Vec<PartTotal>,
    /// The values of the newer rows, in order.
    newer: Vec<Option<f64>>,
    of_newer: PartTotal,
    /// The bytes that the query was asked for.
    admitted: usize,
}

/// The sum of some values, and how many they are.
#[derive(Debug, Clone, Copy, Default)]
struct PartTotal {
    sum: f64,
    count: u64,
}

impl PartTotal {
    fn plus(self, value: Option<f64>) -> Self {
        match value {
            Some(value) => Self { sum: self.sum + value, count: self.count + 1 },
            None => self,
        }
    }
}

impl MovingTotal {
    /// Returns the accumulator of a sum or an average that is a double; `None` of other calls.
    pub(super) fn of_call(function: &AggregateUDF, args: &OwnedAccumulatorArgs) -> Option<Self> {
        let is_average = match function.name() {
            "sum" => false,
            "avg" => true,
            _ => return None,
        };
        let args = args.borrowed();
        let returned = args.return_field.data_type();
        let is_of_numbers = args.expr_fields.iter().all(|field| field.data_type().is_numeric());
        let is_simple = !args.is_distinct && is_of_numbers && returned.is_floating();
        is_simple.then(|| Self {
            is_average,
            returned: returned.clone(),
            older: Vec::new(),
            newer: Vec::new(),
            of_newer: PartTotal::default(),
            admitted: ADMITTED_BYTES,
        })
    }

    /// Makes older rows of the newer ones.
    fn age(&mut self) -> Result<()> {
        let mut from_here = PartTotal::default();
        for value in std::mem::take(&mut self.newer).into_iter().rev() {
            from_here = from_here.plus(value);
            self.older.push(from_here);
        }
        self.of_newer = PartTotal::default();
        self.admit()
    }

    /// Asks the query for what a long window takes. Errors: `memory_exceeded`.
    fn admit(&mut self) -> Result<()> {
        if self.size() > self.admitted {
            self.admitted = 2 * self.size();
            QueryUsage::admit_current(self.admitted)?;
        }
        Ok(())
    }
}

impl Accumulator for MovingTotal {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let Some(values) = values.first() else { return Ok(()) };
        let values = cast(values, &DataType::Float64)?;
        for value in values.as_primitive::<Float64Type>() {
            self.of_newer = self.of_newer.plus(value);
            self.newer.push(value);
        }
        self.admit()
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        for _ in 0..values.first().map_or(0, |column| column.len()) {
            if self.older.is_empty() {
                self.age()?;
            }
            self.older.pop();
        }
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let older = self.older.last().copied().unwrap_or_default();
        let (sum, count) = (older.sum + self.of_newer.sum, older.count + self.of_newer.count);
        let value = match (count, self.is_average) {
            (0, _) => None,
            // All of them are one value in SQL.
            _ if sum.is_nan() => Some(f64::NAN),
            (count, true) => Some(sum / count as f64),
            (_, false) => Some(sum),
        };
        match self.returned {
            DataType::Float64 => Ok(ScalarValue::Float64(value)),
            _ => ScalarValue::Float64(value).cast_to(&self.returned),
        }
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Err(DataFusionError::Internal("the rows of a frame are not merged".into()))
    }

    fn merge_batch(&mut self, _states: &[ArrayRef]) -> Result<()> {
        Err(DataFusionError::Internal("the rows of a frame are not merged".into()))
    }

    fn size(&self) -> usize {
        size_of::<Self>()
            + self.older.capacity() * size_of::<PartTotal>()
            + self.newer.capacity() * size_of::<Option<f64>>()
    }
}
