//! The aggregate of `make-series`: the values of a series' bins as one array, with a default for empty bins.

use std::mem::size_of;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::{DataType, Field, FieldRef, Int64Type};
use datafusion::error::Result;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility};
use datafusion::scalar::ScalarValue;

/// The number of bins, and the JSON of an empty one.
#[derive(Debug, Clone, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub(crate) struct SeriesBins {
    pub(crate) bins: usize,
    pub(crate) default: String,
}

impl SeriesBins {
    /// Returns the series without any values.
    pub(crate) fn empty(&self) -> String {
        format!("[{}]", vec![self.default.as_str(); self.bins].join(","))
    }
}

/// Returns the aggregate over the number of a bin and its value as a JSON array of one element.
pub(crate) fn series_udaf(bins: SeriesBins) -> Arc<AggregateUDF> {
    let signature = Signature::exact(vec![DataType::Int64, DataType::Utf8], Volatility::Immutable);
    Arc::new(AggregateUDF::new_from_impl(SeriesFunction { bins, signature }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct SeriesFunction {
    pub(super) bins: SeriesBins,
    signature: Signature,
}

impl AggregateUDFImpl for SeriesFunction {
    fn name(&self) -> &str {
        "kql_series"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn accumulator(&self, _arguments: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(SeriesAccumulator { bins: self.bins.clone(), values: Vec::new(), bytes: 0 }))
    }

    fn state_fields(&self, arguments: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let list = |item: DataType| DataType::List(Arc::new(Field::new_list_field(item, true)));
        Ok(vec![
            Arc::new(Field::new(format!("{}[bins]", arguments.name), list(DataType::Int64), true)),
            Arc::new(Field::new(format!("{}[values]", arguments.name), list(DataType::Utf8), true)),
        ])
    }
}

#[derive(Debug)]
struct SeriesAccumulator {
    bins: SeriesBins,
    values: Vec<(i64, String)>,
    bytes: usize,
}

impl SeriesAccumulator {
    fn add(&mut self, bins: &ArrayRef, values: &ArrayRef) {
        let (Some(bins), Some(values)) = (bins.as_primitive_opt::<Int64Type>(), values.as_string_opt::<i32>()) else {
            return;
        };
        for (bin, value) in bins.iter().zip(values.iter()) {
            if let Some((bin, value)) = bin.zip(value) {
                self.bytes += value.len() + size_of::<(i64, String)>();
                self.values.push((bin, value.to_owned()));
            }
        }
    }
}

impl Accumulator for SeriesAccumulator {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        if let [bins, values] = values {
            self.add(bins, values);
        }
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let [bins, values] = states else { return Ok(()) };
        let (Some(bins), Some(values)) = (bins.as_list_opt::<i32>(), values.as_list_opt::<i32>()) else {
            return Ok(());
        };
        for (bins, values) in bins.iter().zip(values.iter()) {
            if let Some((bins, values)) = bins.zip(values) {
                self.add(&bins, &values);
            }
        }
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let (bins, values): (Vec<_>, Vec<_>) = self.values.drain(..).unzip();
        let bins: Vec<ScalarValue> = bins.into_iter().map(ScalarValue::from).collect();
        let values: Vec<ScalarValue> = values.into_iter().map(|value| ScalarValue::Utf8(Some(value))).collect();
        Ok(vec![
            ScalarValue::List(ScalarValue::new_list_nullable(&bins, &DataType::Int64)),
            ScalarValue::List(ScalarValue::new_list_nullable(&values, &DataType::Utf8)),
        ])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let mut all = vec![self.bins.default.as_str(); self.bins.bins];
        for (bin, value) in &self.values {
            let place = usize::try_from(*bin).ok().and_then(|bin| all.get_mut(bin));
            if let Some(place) = place {
                *place = value.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or("null");
            }
        }
        Ok(ScalarValue::Utf8(Some(format!("[{}]", all.join(",")))))
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.bytes
    }
}
