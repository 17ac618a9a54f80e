//! The arguments of a call for one batch, read as the type that the function wants, and the arrays that the function
//! returns. A literal is converted once a batch. The size of a result is bounded, because no memory pool accounts for
//! it before it is complete.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Datum, Decimal256Array, Float64Array, Int64Array, Scalar, StringArray,
    StringBuilder, StringViewArray,
};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Decimal256Type, Float64Type, Int64Type, i256};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::ColumnarValue;
use regex::Regex;
use serde_json::Value;

use super::conversion;
use super::regular_expressions::compile_pattern;
use crate::ExecutionError;
use crate::interrupt::{LoopTurns, check_interrupt, is_interrupted};
use crate::types::{DECIMAL_PRECISION, DECIMAL_SCALE, KqlType};
use crate::values;

/// The most bytes of strings that one call may return.
pub(super) const MAX_BYTES: usize = 256 << 20;
/// The most compiled patterns kept when they come from a column.
const MAX_PATTERNS: usize = 64;
/// The bytes of a row's arguments, or of its text, from which on it may be much work.
const LARGE_ROW_BYTES: usize = 1_024;

/// The arguments of a call for one batch.
pub(super) struct FunctionArguments<'a> {
    name: &'a str,
    types: &'a [KqlType],
    /// The type that the function was bound to return.
    pub(super) returns: KqlType,
    columns: Vec<ArgumentColumn>,
    /// How many rows the result has.
    pub(super) rows: usize,
    /// The time of the query in ticks.
    pub(super) now_ticks: i64,
}

struct ArgumentColumn {
    array: ArrayRef,
    /// String views as a `StringArray`, once that is asked for.
    strings: OnceCell<ArrayRef>,
    constant: bool,
}

/// A column read as a type. A constant has one row that stands for all.
pub(super) struct TypedColumn<A> {
    pub(super) array: A,
    pub(super) constant: bool,
}

impl<A> TypedColumn<A> {
    fn physical_row(&self, row: usize) -> usize {
        if self.constant { 0 } else { row }
    }
}

impl<'a> FunctionArguments<'a> {
    pub(super) fn new(
        name: &'a str,
        types: &'a [KqlType],
        returns: KqlType,
        values: Vec<ColumnarValue>,
        rows: usize,
        now_ticks: i64,
    ) -> Result<Self> {
        let columns = values.into_iter().zip(types).map(|(value, kql_type)| ArgumentColumn::new(value, *kql_type));
        Ok(Self { name, types, returns, columns: columns.collect::<Result<_>>()?, rows, now_ticks })
    }

    pub(super) fn len(&self) -> usize {
        self.types.len()
    }

    /// Returns the type of an argument; `Dynamic` past the last.
    pub(super) fn kql_type(&self, index: usize) -> KqlType {
        self.types.get(index).copied().unwrap_or(KqlType::Dynamic)
    }

    pub(super) fn types(&self) -> &[KqlType] {
        self.types
    }

    pub(super) fn is_constant(&self, index: usize) -> bool {
        self.columns.get(index).is_none_or(|column| column.constant)
    }

    /// Returns an argument as it came, with string views as a `StringArray`.
    pub(super) fn array(&self, index: usize) -> Result<&ArrayRef> {
        self.column(index)?.readable()
    }

    fn column(&self, index: usize) -> Result<&ArgumentColumn> {
        self.columns.get(index).ok_or_else(|| self.error("an argument is missing"))
    }

    /// Returns an argument in the form of a result: a scalar if it is constant.
    pub(super) fn datum(&self, index: usize, wanted: KqlType) -> Result<Box<dyn Datum>> {
        let array = match (self.kql_type(index), wanted) {
            (KqlType::String, KqlType::String) => Arc::clone(&self.column(index)?.array),
            (from, _) => cast(&conversion::convert(from, self.array(index)?, wanted)?, &wanted.arrow_type())?,
        };
        Ok(if self.is_constant(index) { Box::new(Scalar::new(array)) } else { Box::new(array) })
    }

    /// Returns an argument with one value for each row.
    pub(super) fn whole(&self, index: usize, wanted: KqlType) -> Result<ArrayRef> {
        let array = conversion::convert(self.kql_type(index), self.array(index)?, wanted)?;
        if self.is_constant(index) && self.rows != 1 {
            let first = arrow::array::UInt32Array::from(vec![0; self.rows]);
            return Ok(arrow::compute::take(&array, &first, None)?);
        }
        Ok(array)
    }

    fn converted(&self, index: usize, wanted: KqlType) -> Result<(ArrayRef, bool)> {
        let array = conversion::convert(self.kql_type(index), self.array(index)?, wanted)?;
        Ok((array, self.is_constant(index)))
    }

    pub(super) fn strings(&self, index: usize) -> Result<TypedColumn<StringArray>> {
        let (array, constant) = self.converted(index, KqlType::String)?;
        Ok(TypedColumn { array: array.as_string::<i32>().clone(), constant })
    }

    /// Like [`Self::strings`], without copying strings.
    pub(super) fn string_views(&self, index: usize) -> Result<TypedColumn<StringViewArray>> {
        let constant = self.is_constant(index);
        let array = match self.kql_type(index) {
            KqlType::String => Arc::clone(&self.column(index)?.array),
            _ => cast(&self.strings(index)?.array, &DataType::Utf8View)?,
        };
        Ok(TypedColumn { array: array.as_string_view().clone(), constant })
    }

    pub(super) fn longs(&self, index: usize) -> Result<TypedColumn<Int64Array>> {
        let (array, constant) = self.converted(index, KqlType::Long)?;
        Ok(TypedColumn { array: array.as_primitive::<Int64Type>().clone(), constant })
    }

    /// Reads an argument as the ticks of datetimes.
    pub(super) fn datetimes(&self, index: usize) -> Result<TypedColumn<Int64Array>> {
        let (array, constant) = self.converted(index, KqlType::DateTime)?;
        Ok(TypedColumn { array: array.as_primitive::<Int64Type>().clone(), constant })
    }

    /// Reads an argument as the ticks of timespans.
    pub(super) fn timespans(&self, index: usize) -> Result<TypedColumn<Int64Array>> {
        let (array, constant) = self.converted(index, KqlType::TimeSpan)?;
        Ok(TypedColumn { array: array.as_primitive::<Int64Type>().clone(), constant })
    }

    pub(super) fn reals(&self, index: usize) -> Result<TypedColumn<Float64Array>> {
        let (array, constant) = self.converted(index, KqlType::Real)?;
        Ok(TypedColumn { array: array.as_primitive::<Float64Type>().clone(), constant })
    }

    pub(super) fn decimals(&self, index: usize) -> Result<TypedColumn<Decimal256Array>> {
        let (array, constant) = self.converted(index, KqlType::Decimal)?;
        Ok(TypedColumn { array: array.as_primitive::<Decimal256Type>().clone(), constant })
    }

    pub(super) fn bools(&self, index: usize) -> Result<TypedColumn<BooleanArray>> {
        let (array, constant) = self.converted(index, KqlType::Bool)?;
        Ok(TypedColumn { array: array.as_boolean().clone(), constant })
    }

    /// Reads an argument as JSON values; null is JSON's null.
    pub(super) fn dynamics(&self, index: usize) -> Result<DynamicColumn> {
        let (array, constant) = self.converted(index, KqlType::Dynamic)?;
        let array = array.as_string::<i32>().clone();
        let literal = constant.then(|| if array.is_null(0) { Value::Null } else { values::parse_json(array.value(0)) });
        Ok(DynamicColumn { array, literal })
    }

    /// Reads all arguments from `first` on as JSON values.
    pub(super) fn all_dynamics(&self, first: usize) -> Result<Vec<DynamicColumn>> {
        (first..self.len()).map(|index| self.dynamics(index)).collect()
    }

    /// Reads all arguments from `first` on as strings.
    pub(super) fn all_strings(&self, first: usize) -> Result<Vec<TypedColumn<StringArray>>> {
        (first..self.len()).map(|index| self.strings(index)).collect()
    }

    /// Reads an argument as JSON text.
    pub(super) fn json(&self, index: usize) -> Result<TypedColumn<StringArray>> {
        let (array, constant) = self.converted(index, KqlType::Dynamic)?;
        Ok(TypedColumn { array: array.as_string::<i32>().clone(), constant })
    }

    /// Returns whether a row may be so much work that the query is asked for before each.
    fn has_large_rows(&self) -> bool {
        let row_bytes = |column: &ArgumentColumn| column.array.get_array_memory_size() / column.array.len().max(1);
        self.columns.iter().any(|column| row_bytes(column) >= LARGE_ROW_BYTES)
    }

    /// Computes the values of all rows. Errors: the query is to end.
    fn collected<T, C: FromIterator<Option<T>>>(&self, mut row: impl FnMut(usize) -> Option<T>) -> Result<C> {
        let has_large_rows = self.has_large_rows();
        let value = |index| if has_large_rows && is_interrupted() { None } else { row(index) };
        let values = (0..self.rows).map(value).collect();
        // What broke off has left out values.
        check_interrupt()?;
        Ok(values)
    }

    pub(super) fn make_longs(&self, row: impl FnMut(usize) -> Option<i64>) -> Result<ArrayRef> {
        Ok(Arc::new(self.collected::<i64, Int64Array>(row)?))
    }

    pub(super) fn make_reals(&self, row: impl FnMut(usize) -> Option<f64>) -> Result<ArrayRef> {
        Ok(Arc::new(self.collected::<f64, Float64Array>(row)?))
    }

    pub(super) fn make_bools(&self, row: impl FnMut(usize) -> Option<bool>) -> Result<ArrayRef> {
        Ok(Arc::new(self.collected::<bool, BooleanArray>(row)?))
    }

    /// Makes a column of truth values without nulls.
    pub(super) fn make_total(&self, mut row: impl FnMut(usize) -> bool) -> Result<ArrayRef> {
        let has_large_rows = self.has_large_rows();
        let value = |index| !(has_large_rows && is_interrupted()) && row(index);
        let values = arrow::buffer::BooleanBuffer::collect_bool(self.rows, value);
        check_interrupt()?;
        Ok(Arc::new(BooleanArray::new(values, None)))
    }

    pub(super) fn make_decimals(&self, row: impl FnMut(usize) -> Option<i256>) -> Result<ArrayRef> {
        let decimals = self.collected::<i256, Decimal256Array>(row)?;
        Ok(Arc::new(decimals.with_precision_and_scale(DECIMAL_PRECISION, DECIMAL_SCALE)?))
    }

    /// Makes a column of strings; `row` appends each to an empty string.
    pub(super) fn make_strings(&self, mut row: impl FnMut(usize, &mut String) -> Result<()>) -> Result<ArrayRef> {
        self.make_optional_strings(|index, text| row(index, text).map(|()| true))
    }

    /// Makes a column of strings with nulls where `row` returns false.
    pub(super) fn make_optional_strings(
        &self,
        mut row: impl FnMut(usize, &mut String) -> Result<bool>,
    ) -> Result<ArrayRef> {
        let mut builder = StringBuilder::new();
        let (mut text, mut bytes) = (String::new(), 0);
        let mut turns = LoopTurns::default();
        let has_large_rows = self.has_large_rows();
        for index in 0..self.rows {
            turns.count()?;
            text.clear();
            let is_some = row(index, &mut text)?;
            if has_large_rows || text.len() >= LARGE_ROW_BYTES {
                check_interrupt()?;
            }
            bytes += text.len();
            self.bounded(bytes)?;
            if is_some { builder.append_value(&text) } else { builder.append_null() }
        }
        // What broke off has left out values.
        check_interrupt()?;
        Ok(Arc::new(builder.finish()))
    }

    /// Makes a column of dynamic values.
    pub(super) fn make_dynamics(&self, mut row: impl FnMut(usize) -> Result<Value>) -> Result<ArrayRef> {
        self.make_optional_strings(|index, text| {
            let value = row(index)?;
            if value.is_null() {
                return Ok(false);
            }
            text.push_str(&value.to_string());
            Ok(true)
        })
    }

    /// Returns an error if a call makes more bytes than it may.
    pub(super) fn bounded(&self, bytes: usize) -> Result<()> {
        if bytes <= MAX_BYTES {
            return Ok(());
        }
        let message = format!("makes at most {} MiB at a time; ask for less", MAX_BYTES >> 20);
        Err(self.error(&message))
    }

    /// Returns an error if a call makes an array of more elements than it may.
    pub(super) fn bounded_elements(&self, elements: usize) -> Result<()> {
        self.bounded(elements.saturating_mul(size_of::<Value>()))
    }

    /// Returns an error if a call makes more copies of a value than it may.
    pub(super) fn bounded_copies(&self, value: &Value, copies: usize) -> Result<()> {
        self.bounded(values::tree_bytes(value).saturating_mul(copies))
    }

    /// Returns an error that names this function.
    pub(super) fn error(&self, message: &str) -> DataFusionError {
        let name = self.name.strip_prefix("kql_").unwrap_or(self.name);
        ExecutionError::new(format!("{name}: {message}")).into()
    }
}

impl ArgumentColumn {
    fn new(value: ColumnarValue, kql_type: KqlType) -> Result<Self> {
        let (array, constant) = match value {
            ColumnarValue::Array(array) => (array, false),
            ColumnarValue::Scalar(scalar) => (scalar.to_array()?, true),
        };
        let wanted = kql_type.arrow_type();
        let array = if array.data_type() == &wanted { array } else { cast(&array, &wanted)? };
        Ok(Self { array, strings: OnceCell::new(), constant })
    }

    fn readable(&self) -> Result<&ArrayRef> {
        if self.array.data_type() != &DataType::Utf8View {
            return Ok(&self.array);
        }
        match self.strings.get() {
            Some(strings) => Ok(strings),
            None => {
                let strings = cast(&self.array, &DataType::Utf8)?;
                Ok(self.strings.get_or_init(|| strings))
            }
        }
    }
}

impl TypedColumn<StringViewArray> {
    /// Returns the string of a row; null is the empty string.
    pub(super) fn get(&self, row: usize) -> &str {
        let row = self.physical_row(row);
        if self.array.is_null(row) { "" } else { self.array.value(row) }
    }
}

impl TypedColumn<StringArray> {
    /// Returns the string of a row; null is the empty string.
    pub(super) fn get(&self, row: usize) -> &str {
        let row = self.physical_row(row);
        if self.array.is_null(row) { "" } else { self.array.value(row) }
    }

    /// Returns the text of a row that may be null, as JSON may.
    pub(super) fn optional(&self, row: usize) -> Option<&str> {
        let row = self.physical_row(row);
        (!self.array.is_null(row)).then(|| self.array.value(row))
    }
}

impl TypedColumn<Int64Array> {
    pub(super) fn get(&self, row: usize) -> Option<i64> {
        let row = self.physical_row(row);
        (!self.array.is_null(row)).then(|| self.array.value(row))
    }
}

impl TypedColumn<Float64Array> {
    pub(super) fn get(&self, row: usize) -> Option<f64> {
        let row = self.physical_row(row);
        (!self.array.is_null(row)).then(|| self.array.value(row))
    }
}

impl TypedColumn<Decimal256Array> {
    pub(super) fn get(&self, row: usize) -> Option<i256> {
        let row = self.physical_row(row);
        (!self.array.is_null(row)).then(|| self.array.value(row))
    }
}

impl TypedColumn<BooleanArray> {
    pub(super) fn get(&self, row: usize) -> Option<bool> {
        let row = self.physical_row(row);
        (!self.array.is_null(row)).then(|| self.array.value(row))
    }
}

/// A column of dynamic values.
pub(super) struct DynamicColumn {
    array: StringArray,
    /// The value of a constant column.
    literal: Option<Value>,
}

impl DynamicColumn {
    pub(super) fn get(&self, row: usize) -> Cow<'_, Value> {
        match &self.literal {
            Some(value) => Cow::Borrowed(value),
            None if self.array.is_null(row) => Cow::Owned(Value::Null),
            None => Cow::Owned(values::parse_json(self.array.value(row))),
        }
    }

    /// Returns the elements of an array; `None` for anything else.
    pub(super) fn elements(&self, row: usize) -> Option<Vec<Value>> {
        match self.get(row) {
            Cow::Borrowed(Value::Array(elements)) => Some(elements.clone()),
            Cow::Owned(Value::Array(elements)) => Some(elements),
            _ => None,
        }
    }
}

/// The compiled patterns of one batch.
pub(super) struct RegexCache(HashMap<String, Arc<Regex>>);

impl RegexCache {
    pub(super) fn new() -> Self {
        Self(HashMap::new())
    }

    pub(super) fn get(&mut self, arguments: &FunctionArguments, pattern: &str) -> Result<Arc<Regex>> {
        if let Some(regex) = self.0.get(pattern) {
            return Ok(Arc::clone(regex));
        }
        let regex = Arc::new(compile_pattern(pattern).map_err(|message| arguments.error(&message))?);
        if self.0.len() >= MAX_PATTERNS {
            self.0.clear();
        }
        self.0.insert(pattern.to_owned(), Arc::clone(&regex));
        Ok(regex)
    }
}
