//! A function of lambdas with bounds around its calls.
//!
//! DataFusion evaluates a lambda on the elements of all lists of a batch at once, whatever it makes of them: a list of
//! a million numbers for each of a hundred thousand elements is one allocation. Here the elements come in slices, as
//! many at a time as made few megabytes the last time, beginning with one; and what a constant list becomes for all rows
//! is counted before it is made.

use std::cell::LazyCell;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, GenericListArray, OffsetSizeTrait, RecordBatch, UInt32Array};
use arrow::compute::{concat, take_arrays};
use arrow::datatypes::{DataType, Field, FieldRef, Schema};
use datafusion::common::utils::remove_list_null_values;
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, Documentation, Expr, HigherOrderFunctionArgs, HigherOrderReturnFieldArgs, HigherOrderSignature,
    HigherOrderUDF, HigherOrderUDFImpl, LambdaArgument, LambdaParametersProgress, ValueOrLambda,
};
use datafusion::physical_expr::PhysicalExpr;

use super::folding::check_folded;
use crate::error::EngineError;
use crate::limits::{Announced, QueryUsage, array_bytes, measured, scalar_bytes};

/// Functions that evaluate their lambda once, on all elements, and do not look at what else it is given.
const EVALUATED_AT_ONCE: [&str; 3] = ["array_transform", "array_filter", "array_any_match"];

/// What the elements of one slice may make together.
const SLICE_BYTES: usize = 8 << 20;
const SLICE_ELEMENTS: usize = 8_192;
/// How much larger a slice may be than the one before it, since values may grow.
const SLICE_GROWTH: usize = 16;
/// What one call may make of a batch: the offsets of lists and texts address no more.
const MOST_BYTES: usize = i32::MAX as usize;

/// Returns a function as sessions know it: within bounds.
pub(crate) fn governed_lambdas(inner: Arc<HigherOrderUDF>) -> Arc<HigherOrderUDF> {
    Arc::new(HigherOrderUDF::new_from_impl(GovernedLambdas { inner }))
}

/// A function of lambdas within bounds.
#[derive(Debug, PartialEq, Eq, Hash)]
struct GovernedLambdas {
    inner: Arc<HigherOrderUDF>,
}

impl GovernedLambdas {
    /// Returns a value for each row, where it is a list; null lists have no elements then.
    fn value_of_rows(&self, value: &ColumnarValue, rows: usize) -> Result<ColumnarValue> {
        let is_list = matches!(value.data_type(), DataType::List(_) | DataType::LargeList(_));
        if !is_list || !self.inner.clear_null_values() {
            return Ok(value.clone());
        }
        let bytes = match value {
            ColumnarValue::Scalar(list) => scalar_bytes(list).saturating_mul(rows),
            ColumnarValue::Array(_) => 0,
        };
        let _announced = self.admitted(bytes)?;
        let list = value.to_array(rows)?;
        Ok(ColumnarValue::Array(if list.null_count() == 0 { list } else { remove_list_null_values(&list)? }))
    }

    /// Announces bytes that are about to be made. Errors: `invalid_value` beyond what one call may make, or what a constant in a
    /// plan may be, `memory_exceeded` where the process has no room for them.
    fn admitted(&self, bytes: usize) -> Result<Announced> {
        if bytes > MOST_BYTES {
            let message =
                format!("{} makes at most {} MiB at a time; ask for less", self.inner.name(), MOST_BYTES >> 20);
            return Err(EngineError::InvalidValue { message }.into());
        }
        check_folded(self.inner.name(), bytes)?;
        if bytes > SLICE_BYTES
            && let Some(usage) = QueryUsage::current()
        {
            usage.admit(bytes)?;
        }
        Ok(Announced::new(bytes))
    }

    /// Returns what a lambda makes of all elements, which are not none; `rows_of` returns the rows whose lists have the
    /// elements from a place on, so many of them.
    fn made_of_elements(
        &self,
        lambda: &LambdaArgument,
        elements: &ArrayRef,
        rows_of: &dyn Fn(usize, usize) -> UInt32Array,
    ) -> Result<ArrayRef> {
        let mut made: Vec<ArrayRef> = Vec::new();
        let (mut from, mut count, mut bytes) = (0, 1, 0_usize);
        while from < elements.len() {
            if let Some(usage) = QueryUsage::current() {
                usage.check()?;
            }
            count = count.min(elements.len() - from);
            let slice = elements.slice(from, count);
            let (value, largest) = measured(|| {
                lambda.evaluate(&[&|| Ok(Arc::clone(&slice))], |captured| {
                    Ok(take_arrays(captured, &rows_of(from, count), None)?)
                })
            });
            let value = value?;
            if let ColumnarValue::Scalar(constant) = &value
                && count > 1
                && scalar_bytes(constant).saturating_mul(count) > SLICE_BYTES
            {
                count = (SLICE_BYTES / scalar_bytes(constant)).clamp(1, count - 1);
                continue;
            }
            let part = value.into_array(count)?;
            let part_bytes = array_bytes(part.as_ref());
            bytes = bytes.saturating_add(part_bytes);
            self.admitted(bytes)?;
            made.push(part);
            from += count;
            let of_one = part_bytes.max(largest).div_ceil(count).max(1);
            count = (SLICE_BYTES / of_one).min(count * SLICE_GROWTH).clamp(1, SLICE_ELEMENTS);
        }
        let _announced = self.admitted(bytes)?;
        let parts: Vec<&dyn Array> = made.iter().map(AsRef::as_ref).collect();
        let all = concat(&parts)?;
        if let Some(usage) = QueryUsage::current() {
            usage.made(bytes);
        }
        Ok(all)
    }

    /// As [`GovernedLambdas::made_of_elements`], of a column of lists.
    fn made_of_lists<O: OffsetSizeTrait>(
        &self,
        lambda: &LambdaArgument,
        lists: &GenericListArray<O>,
    ) -> Result<Option<(FieldRef, ArrayRef)>> {
        let offsets = lists.value_offsets();
        let (Some(first), Some(last)) = (offsets.first(), offsets.last()) else { return Ok(None) };
        let (first, last) = (first.as_usize(), last.as_usize());
        if first == last {
            return Ok(None);
        }
        let elements = lists.values().slice(first, last - first);
        let rows = LazyCell::new(|| row_of_each(lists));
        let made = self.made_of_elements(lambda, &elements, &|from, count| rows.slice(from, count))?;
        Ok(Some((Arc::new(Field::new("element", elements.data_type().clone(), true)), made)))
    }
}

/// Returns for each element the row whose list has it.
fn row_of_each<O: OffsetSizeTrait>(lists: &GenericListArray<O>) -> UInt32Array {
    let lengths = lists.value_offsets().windows(2).map(|pair| pair[1].as_usize() - pair[0].as_usize());
    lengths.enumerate().flat_map(|(row, length)| std::iter::repeat_n(row as u32, length)).collect()
}

#[warn(clippy::missing_trait_methods)]
impl HigherOrderUDFImpl for GovernedLambdas {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        self.inner.schema_name(args)
    }

    fn signature(&self) -> &HigherOrderSignature {
        self.inner.signature()
    }

    fn lambda_parameters(
        &self,
        step: usize,
        fields: &[ValueOrLambda<FieldRef, Option<FieldRef>>],
    ) -> Result<LambdaParametersProgress> {
        QueryUsage::check_current()?;
        self.inner.lambda_parameters(step, fields)
    }

    fn coerce_values_for_lambdas(&self, fields: &[ValueOrLambda<DataType, DataType>]) -> Result<Option<Vec<DataType>>> {
        self.inner.coerce_values_for_lambdas(fields)
    }

    fn return_field_from_args(&self, args: HigherOrderReturnFieldArgs) -> Result<FieldRef> {
        // The planner asks for the types of lambdas within lambdas again and again.
        QueryUsage::check_current()?;
        self.inner.return_field_from_args(args)
    }

    /// They are cleared here, once what a constant list becomes is counted.
    fn clear_null_values(&self) -> bool {
        false
    }

    fn invoke_with_args(&self, mut args: HigherOrderFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        for argument in &mut args.args {
            if let ValueOrLambda::Value(value) = argument {
                *value = self.value_of_rows(value, rows)?;
            }
        }
        let made = match args.args.as_slice() {
            [ValueOrLambda::Value(ColumnarValue::Array(lists)), ValueOrLambda::Lambda(lambda)]
                if EVALUATED_AT_ONCE.contains(&self.inner.name()) =>
            {
                match lists.data_type() {
                    DataType::List(_) => self.made_of_lists(lambda, lists.as_list::<i32>())?,
                    DataType::LargeList(_) => self.made_of_lists(lambda, lists.as_list::<i64>())?,
                    _ => None,
                }
            }
            _ => None,
        };
        if let Some((element, made)) = made
            && let [_, lambda] = args.args.as_mut_slice()
        {
            *lambda = ValueOrLambda::Lambda(LambdaArgument::new(vec![element], Arc::new(MadeOfElements(made)), None));
        }
        self.inner.invoke_with_args(args)
    }

    fn short_circuits(&self) -> bool {
        self.inner.short_circuits()
    }

    fn conditional_arguments<'a>(&self, args: &'a [Expr]) -> Option<(Vec<&'a Expr>, Vec<&'a Expr>)> {
        self.inner.conditional_arguments(args)
    }

    fn coerce_value_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        self.inner.coerce_value_types(arg_types)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.inner.documentation()
    }
}

/// The body of a lambda that has been evaluated: what it made of all elements.
#[derive(Debug)]
struct MadeOfElements(ArrayRef);

impl PartialEq for MadeOfElements {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for MadeOfElements {}

impl Hash for MadeOfElements {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.len().hash(state);
    }
}

impl fmt::Display for MadeOfElements {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "made of {} elements", self.0.len())
    }
}

impl PhysicalExpr for MadeOfElements {
    fn data_type(&self, _input_schema: &Schema) -> Result<DataType> {
        Ok(self.0.data_type().clone())
    }

    fn nullable(&self, _input_schema: &Schema) -> Result<bool> {
        Ok(true)
    }

    fn evaluate(&self, _batch: &RecordBatch) -> Result<ColumnarValue> {
        Ok(ColumnarValue::Array(Arc::clone(&self.0)))
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        Vec::new()
    }

    fn with_new_children(self: Arc<Self>, _children: Vec<Arc<dyn PhysicalExpr>>) -> Result<Arc<dyn PhysicalExpr>> {
        Ok(self)
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
