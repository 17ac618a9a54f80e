//! `arg_max`, `arg_min` and `take_any`: values of one row, as a struct. The row is the first of those with the greatest
//! or least first value; a row with null there is taken only if there is no other, as is one with an empty text by
//! `take_any` of a single column.

use std::cmp::Ordering;
use std::mem::size_of;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, make_comparator};
use arrow::compute::SortOptions;
use arrow::datatypes::{DataType, Field, FieldRef, Fields, Float64Type};
use datafusion::common::scalar::ScalarStructBuilder;
use datafusion::error::Result;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility};
use datafusion::scalar::ScalarValue;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub(super) enum RowChoice {
    Greatest,
    Least,
    Any,
}

/// Returns the aggregate that picks the row with the greatest, or least, first value.
pub(super) fn arg_extreme_udaf(greatest: bool) -> Arc<AggregateUDF> {
    row_choice_udaf(if greatest { RowChoice::Greatest } else { RowChoice::Least })
}

/// Returns the aggregate that picks any row; if possible, one whose first value is not null.
pub(super) fn take_any_udaf() -> Arc<AggregateUDF> {
    row_choice_udaf(RowChoice::Any)
}

/// Returns the name of the struct's field of the argument at `index`.
pub(super) fn part_name(index: usize) -> String {
    format!("c{index}")
}

/// Returns the aggregate that picks a row so.
pub(super) fn row_choice_udaf(choice: RowChoice) -> Arc<AggregateUDF> {
    let signature = Signature::variadic_any(Volatility::Immutable);
    Arc::new(AggregateUDF::new_from_impl(ArgExtremeFunction { choice, signature }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct ArgExtremeFunction {
    pub(super) choice: RowChoice,
    signature: Signature,
}

fn parts(types: impl Iterator<Item = DataType>) -> Fields {
    types.enumerate().map(|(index, data_type)| Field::new(part_name(index), data_type, true)).collect()
}

impl AggregateUDFImpl for ArgExtremeFunction {
    fn name(&self) -> &str {
        match self.choice {
            RowChoice::Greatest => "kql_arg_max",
            RowChoice::Least => "kql_arg_min",
            RowChoice::Any => "kql_take_any",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        Ok(DataType::Struct(parts(arguments.iter().cloned())))
    }

    fn accumulator(&self, arguments: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let fields = parts(arguments.expr_fields.iter().map(|field| field.data_type().clone()));
        Ok(Box::new(ArgExtremeAccumulator { choice: self.choice, fields, row: None }))
    }

    fn state_fields(&self, arguments: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let mut fields = vec![Arc::new(Field::new(format!("{}[found]", arguments.name), DataType::Boolean, true))];
        for (index, input) in arguments.input_fields.iter().enumerate() {
            let name = format!("{}[{index}]", arguments.name);
            fields.push(Arc::new(Field::new(name, input.data_type().clone(), true)));
        }
        Ok(fields)
    }
}

#[derive(Debug)]
struct ArgExtremeAccumulator {
    choice: RowChoice,
    fields: Fields,
    row: Option<Vec<ScalarValue>>,
}

impl ArgExtremeAccumulator {
    /// Returns the first of a batch's best rows.
    fn best_of(&self, keys: &ArrayRef, rows: impl Iterator<Item = usize>) -> Result<Option<usize>> {
        if self.choice == RowChoice::Any {
            let rows: Vec<usize> = rows.collect();
            let full = rows.iter().copied().find(|row| !keys.is_null(*row) && !self.is_empty_text(keys, *row));
            let known = || rows.iter().copied().find(|row| !keys.is_null(*row));
            return Ok(full.or_else(known).or(rows.first().copied()));
        }
        // NaN is both the least and the greatest value.
        let rows: Vec<usize> = rows.collect();
        if let Some(reals) = keys.as_primitive_opt::<Float64Type>()
            && let Some(row) = rows.iter().copied().find(|row| reals.is_valid(*row) && reals.value(*row).is_nan())
        {
            return Ok(Some(row));
        }
        let options = SortOptions { descending: self.choice == RowChoice::Greatest, nulls_first: false };
        let compare = make_comparator(keys, keys, options)?;
        Ok(rows.into_iter().reduce(|best, row| if compare(row, best) == Ordering::Less { row } else { best }))
    }

    /// Whether a row has an empty text, where `take_any` has only that column to look at.
    fn is_empty_text(&self, keys: &ArrayRef, row: usize) -> bool {
        self.fields.len() == 1
            && match keys.data_type() {
                DataType::Utf8View => keys.as_string_view().value(row).is_empty(),
                DataType::Utf8 => keys.as_string::<i32>().value(row).is_empty(),
                _ => false,
            }
    }

    /// Whether `take_any` leaves a value where there is another one.
    fn is_missing(&self, value: &ScalarValue) -> bool {
        match value {
            ScalarValue::Utf8(Some(text)) | ScalarValue::Utf8View(Some(text)) => {
                self.fields.len() == 1 && text.is_empty()
            }
            other => other.is_null(),
        }
    }

    fn is_better(&self, key: &ScalarValue) -> bool {
        let Some(best) = self.row.as_ref().and_then(|row| row.first()) else { return true };
        if self.choice == RowChoice::Any {
            return self.is_missing(best) && !self.is_missing(key);
        }
        if best.is_null() || key.is_null() {
            return best.is_null() && !key.is_null();
        }
        if is_nan(best) || is_nan(key) {
            return !is_nan(best);
        }
        match self.choice {
            RowChoice::Greatest => key.partial_cmp(best) == Some(Ordering::Greater),
            RowChoice::Least => key.partial_cmp(best) == Some(Ordering::Less),
            RowChoice::Any => false,
        }
    }

    fn offer(&mut self, values: &[ArrayRef], row: usize) -> Result<()> {
        let Some(keys) = values.first() else { return Ok(()) };
        if self.is_better(&ScalarValue::try_from_array(keys, row)?) {
            let picked = values.iter().map(|values| ScalarValue::try_from_array(values, row));
            self.row = Some(picked.collect::<Result<_>>()?);
        }
        Ok(())
    }
}

fn is_nan(value: &ScalarValue) -> bool {
    matches!(value, ScalarValue::Float64(Some(real)) if real.is_nan())
}

impl Accumulator for ArgExtremeAccumulator {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let Some(keys) = values.first() else { return Ok(()) };
        match self.best_of(keys, 0..keys.len())? {
            Some(row) => self.offer(values, row),
            None => Ok(()),
        }
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let Some((found, values)) = states.split_first() else { return Ok(()) };
        for row in (0..found.len()).filter(|row| found.is_valid(*row)) {
            self.offer(values, row)?;
        }
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        match self.row.take() {
            Some(row) => Ok(std::iter::once(ScalarValue::Boolean(Some(true))).chain(row).collect()),
            None => {
                let nulls = self.fields.iter().map(|field| ScalarValue::try_from(field.data_type()));
                let nulls = nulls.collect::<Result<Vec<_>>>()?;
                Ok(std::iter::once(ScalarValue::Boolean(None)).chain(nulls).collect())
            }
        }
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let mut builder = ScalarStructBuilder::new();
        for (index, field) in self.fields.iter().enumerate() {
            let value = match self.row.as_ref().and_then(|row| row.get(index)) {
                Some(value) => value.clone(),
                None => ScalarValue::try_from(field.data_type())?,
            };
            builder = builder.with_scalar(Arc::clone(field), value);
        }
        builder.build()
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.row.iter().flatten().map(ScalarValue::size).sum::<usize>()
    }
}
