//! A call's arguments for one batch, read as the type that a function wants whatever type they have, and the arrays it
//! makes. A literal is converted once a batch. What is made is bounded, since it is not in any memory pool until it is
//! whole.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Datum, Decimal128Array, Float64Array, Int64Array, Scalar, StringArray,
    StringBuilder, StringViewArray,
};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Decimal128Type, Float64Type, Int64Type};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::ColumnarValue;
use regex::{Regex, RegexBuilder};
use serde_json::Value;

use super::super::types::{DECIMAL_PRECISION, DECIMAL_SCALE, KqlType};
use super::super::values;
use super::conversion;
use crate::ExecutionError;

/// The most text that one call may make.
pub(super) const MAX_BYTES: usize = 256 << 20;
/// The most that a compiled pattern may take.
const MAX_PATTERN_BYTES: usize = 4 << 20;
/// Compiled patterns kept, where they come from a column.
const MAX_PATTERNS: usize = 64;

/// One batch's arguments.
pub(super) struct Arguments<'a> {
    name: &'a str,
    types: &'a [KqlType],
    /// What the function was bound to return.
    pub(super) returns: KqlType,
    columns: Vec<Column>,
    /// How many rows to make.
    pub(super) rows: usize,
    /// The query's one instant.
    pub(super) now_ticks: i64,
}

struct Column {
    array: ArrayRef,
    /// The texts of views one after the other, once they are asked for.
    texts: OnceCell<ArrayRef>,
    constant: bool,
}

/// A column read as a type; a constant has one row that stands for all.
pub(super) struct Reader<A> {
    pub(super) array: A,
    pub(super) constant: bool,
}

impl<A> Reader<A> {
    fn at(&self, row: usize) -> usize {
        if self.constant { 0 } else { row }
    }
}

impl<'a> Arguments<'a> {
    pub(super) fn new(
        name: &'a str,
        types: &'a [KqlType],
        returns: KqlType,
        values: Vec<ColumnarValue>,
        rows: usize,
        now_ticks: i64,
    ) -> Result<Self> {
        let columns = values.into_iter().zip(types).map(|(value, kql_type)| Column::new(value, *kql_type));
        Ok(Self { name, types, returns, columns: columns.collect::<Result<_>>()?, rows, now_ticks })
    }

    pub(super) fn len(&self) -> usize {
        self.types.len()
    }

    /// The type of an argument; the last one's for those left out.
    pub(super) fn kql_type(&self, index: usize) -> KqlType {
        self.types.get(index).copied().unwrap_or(KqlType::Dynamic)
    }

    pub(super) fn types(&self) -> &[KqlType] {
        self.types
    }

    pub(super) fn is_constant(&self, index: usize) -> bool {
        self.columns.get(index).is_none_or(|column| column.constant)
    }

    /// An argument as it came; of strings, a `StringArray`.
    pub(super) fn array(&self, index: usize) -> Result<&ArrayRef> {
        self.column(index)?.readable()
    }

    fn column(&self, index: usize) -> Result<&Column> {
        self.columns.get(index).ok_or_else(|| self.error("an argument is missing"))
    }

    /// An argument as what goes into a result, one row for all rows where it is constant.
    pub(super) fn datum(&self, index: usize, wanted: KqlType) -> Result<Box<dyn Datum>> {
        let array = match (self.kql_type(index), wanted) {
            (KqlType::String, KqlType::String) => Arc::clone(&self.column(index)?.array),
            (from, _) => cast(&conversion::convert(from, self.array(index)?, wanted)?, &wanted.arrow_type())?,
        };
        Ok(if self.is_constant(index) { Box::new(Scalar::new(array)) } else { Box::new(array) })
    }

    /// An argument, one row a row.
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

    pub(super) fn texts(&self, index: usize) -> Result<Reader<StringArray>> {
        let (array, constant) = self.converted(index, KqlType::String)?;
        Ok(Reader { array: array.as_string::<i32>().clone(), constant })
    }

    /// The same without a copy of strings.
    pub(super) fn text_views(&self, index: usize) -> Result<Reader<StringViewArray>> {
        let constant = self.is_constant(index);
        let array = match self.kql_type(index) {
            KqlType::String => Arc::clone(&self.column(index)?.array),
            _ => cast(&self.texts(index)?.array, &DataType::Utf8View)?,
        };
        Ok(Reader { array: array.as_string_view().clone(), constant })
    }

    pub(super) fn longs(&self, index: usize) -> Result<Reader<Int64Array>> {
        let (array, constant) = self.converted(index, KqlType::Long)?;
        Ok(Reader { array: array.as_primitive::<Int64Type>().clone(), constant })
    }

    /// The ticks of datetimes.
    pub(super) fn datetimes(&self, index: usize) -> Result<Reader<Int64Array>> {
        let (array, constant) = self.converted(index, KqlType::DateTime)?;
        Ok(Reader { array: array.as_primitive::<Int64Type>().clone(), constant })
    }

    /// The ticks of timespans.
    pub(super) fn timespans(&self, index: usize) -> Result<Reader<Int64Array>> {
        let (array, constant) = self.converted(index, KqlType::TimeSpan)?;
        Ok(Reader { array: array.as_primitive::<Int64Type>().clone(), constant })
    }

    pub(super) fn reals(&self, index: usize) -> Result<Reader<Float64Array>> {
        let (array, constant) = self.converted(index, KqlType::Real)?;
        Ok(Reader { array: array.as_primitive::<Float64Type>().clone(), constant })
    }

    pub(super) fn decimals(&self, index: usize) -> Result<Reader<Decimal128Array>> {
        let (array, constant) = self.converted(index, KqlType::Decimal)?;
        Ok(Reader { array: array.as_primitive::<Decimal128Type>().clone(), constant })
    }

    pub(super) fn bools(&self, index: usize) -> Result<Reader<BooleanArray>> {
        let (array, constant) = self.converted(index, KqlType::Bool)?;
        Ok(Reader { array: array.as_boolean().clone(), constant })
    }

    /// Values as JSON; what is null there is JSON's null.
    pub(super) fn dynamics(&self, index: usize) -> Result<Dynamics> {
        let (array, constant) = self.converted(index, KqlType::Dynamic)?;
        let array = array.as_string::<i32>().clone();
        let literal = constant.then(|| if array.is_null(0) { Value::Null } else { values::parse(array.value(0)) });
        Ok(Dynamics { array, literal })
    }

    /// All arguments from `first` on as JSON.
    pub(super) fn all_dynamics(&self, first: usize) -> Result<Vec<Dynamics>> {
        (first..self.len()).map(|index| self.dynamics(index)).collect()
    }

    /// All arguments from `first` on as text.
    pub(super) fn all_texts(&self, first: usize) -> Result<Vec<Reader<StringArray>>> {
        (first..self.len()).map(|index| self.texts(index)).collect()
    }

    /// Dynamic arguments as their JSON text.
    pub(super) fn json(&self, index: usize) -> Result<Reader<StringArray>> {
        let (array, constant) = self.converted(index, KqlType::Dynamic)?;
        Ok(Reader { array: array.as_string::<i32>().clone(), constant })
    }

    pub(super) fn make_longs(&self, row: impl FnMut(usize) -> Option<i64>) -> Result<ArrayRef> {
        Ok(Arc::new((0..self.rows).map(row).collect::<Int64Array>()))
    }

    pub(super) fn make_reals(&self, row: impl FnMut(usize) -> Option<f64>) -> Result<ArrayRef> {
        Ok(Arc::new((0..self.rows).map(row).collect::<Float64Array>()))
    }

    pub(super) fn make_bools(&self, row: impl FnMut(usize) -> Option<bool>) -> Result<ArrayRef> {
        Ok(Arc::new((0..self.rows).map(row).collect::<BooleanArray>()))
    }

    /// Truth values without nulls.
    pub(super) fn make_total(&self, row: impl FnMut(usize) -> bool) -> Result<ArrayRef> {
        Ok(Arc::new(BooleanArray::new(arrow::buffer::BooleanBuffer::collect_bool(self.rows, row), None)))
    }

    pub(super) fn make_decimals(&self, row: impl FnMut(usize) -> Option<i128>) -> Result<ArrayRef> {
        let decimals = (0..self.rows).map(row).collect::<Decimal128Array>();
        Ok(Arc::new(decimals.with_precision_and_scale(DECIMAL_PRECISION, DECIMAL_SCALE)?))
    }

    /// Texts, each appended by `row` to what it is given.
    pub(super) fn make_texts(&self, mut row: impl FnMut(usize, &mut String) -> Result<()>) -> Result<ArrayRef> {
        self.make_some_texts(|index, text| row(index, text).map(|()| true))
    }

    /// Texts where `row` says so; nulls elsewhere.
    pub(super) fn make_some_texts(&self, mut row: impl FnMut(usize, &mut String) -> Result<bool>) -> Result<ArrayRef> {
        let mut builder = StringBuilder::new();
        let (mut text, mut bytes) = (String::new(), 0);
        for index in 0..self.rows {
            text.clear();
            let is_some = row(index, &mut text)?;
            bytes += text.len();
            self.bounded(bytes)?;
            if is_some { builder.append_value(&text) } else { builder.append_null() }
        }
        Ok(Arc::new(builder.finish()))
    }

    /// Dynamic values.
    pub(super) fn make_dynamics(&self, mut row: impl FnMut(usize) -> Result<Value>) -> Result<ArrayRef> {
        self.make_some_texts(|index, text| {
            let value = row(index)?;
            if value.is_null() {
                return Ok(false);
            }
            text.push_str(&value.to_string());
            Ok(true)
        })
    }

    /// Fails where a call makes more than it may.
    pub(super) fn bounded(&self, bytes: usize) -> Result<()> {
        if bytes <= MAX_BYTES {
            return Ok(());
        }
        let message = format!("makes at most {} MiB at a time; ask for less", MAX_BYTES >> 20);
        Err(self.error(&message))
    }

    /// An error of this function.
    pub(super) fn error(&self, message: &str) -> DataFusionError {
        let name = self.name.strip_prefix("kql_").unwrap_or(self.name);
        ExecutionError::new(format!("{name}: {message}")).into()
    }
}

impl Column {
    fn new(value: ColumnarValue, kql_type: KqlType) -> Result<Self> {
        let (array, constant) = match value {
            ColumnarValue::Array(array) => (array, false),
            ColumnarValue::Scalar(scalar) => (scalar.to_array()?, true),
        };
        let wanted = kql_type.arrow_type();
        let array = if array.data_type() == &wanted { array } else { cast(&array, &wanted)? };
        Ok(Self { array, texts: OnceCell::new(), constant })
    }

    fn readable(&self) -> Result<&ArrayRef> {
        if self.array.data_type() != &DataType::Utf8View {
            return Ok(&self.array);
        }
        match self.texts.get() {
            Some(texts) => Ok(texts),
            None => {
                let texts = cast(&self.array, &DataType::Utf8)?;
                Ok(self.texts.get_or_init(|| texts))
            }
        }
    }
}

impl Reader<StringViewArray> {
    /// The text of a row; that of null is empty.
    pub(super) fn get(&self, row: usize) -> &str {
        let row = self.at(row);
        if self.array.is_null(row) { "" } else { self.array.value(row) }
    }
}

impl Reader<StringArray> {
    /// The text of a row; that of null is empty.
    pub(super) fn get(&self, row: usize) -> &str {
        let row = self.at(row);
        if self.array.is_null(row) { "" } else { self.array.value(row) }
    }

    /// The text of a row that may be null, as JSON may.
    pub(super) fn some(&self, row: usize) -> Option<&str> {
        let row = self.at(row);
        (!self.array.is_null(row)).then(|| self.array.value(row))
    }
}

impl Reader<Int64Array> {
    pub(super) fn get(&self, row: usize) -> Option<i64> {
        let row = self.at(row);
        (!self.array.is_null(row)).then(|| self.array.value(row))
    }
}

impl Reader<Float64Array> {
    pub(super) fn get(&self, row: usize) -> Option<f64> {
        let row = self.at(row);
        (!self.array.is_null(row)).then(|| self.array.value(row))
    }
}

impl Reader<Decimal128Array> {
    pub(super) fn get(&self, row: usize) -> Option<i128> {
        let row = self.at(row);
        (!self.array.is_null(row)).then(|| self.array.value(row))
    }
}

impl Reader<BooleanArray> {
    pub(super) fn get(&self, row: usize) -> Option<bool> {
        let row = self.at(row);
        (!self.array.is_null(row)).then(|| self.array.value(row))
    }
}

/// A column of dynamic values.
pub(super) struct Dynamics {
    array: StringArray,
    /// Of a literal.
    literal: Option<Value>,
}

impl Dynamics {
    pub(super) fn get(&self, row: usize) -> Cow<'_, Value> {
        match &self.literal {
            Some(value) => Cow::Borrowed(value),
            None if self.array.is_null(row) => Cow::Owned(Value::Null),
            None => Cow::Owned(values::parse(self.array.value(row))),
        }
    }

    /// The elements of an array; `None` of anything else.
    pub(super) fn elements(&self, row: usize) -> Option<Vec<Value>> {
        match self.get(row) {
            Cow::Borrowed(Value::Array(elements)) => Some(elements.clone()),
            Cow::Owned(Value::Array(elements)) => Some(elements),
            _ => None,
        }
    }
}

/// Compiled patterns of one batch.
pub(super) struct Patterns(HashMap<String, Arc<Regex>>);

impl Patterns {
    pub(super) fn new() -> Self {
        Self(HashMap::new())
    }

    pub(super) fn get(&mut self, arguments: &Arguments, pattern: &str) -> Result<Arc<Regex>> {
        if let Some(regex) = self.0.get(pattern) {
            return Ok(Arc::clone(regex));
        }
        let compiled = RegexBuilder::new(pattern).size_limit(MAX_PATTERN_BYTES).build();
        let regex = Arc::new(compiled.map_err(|error| arguments.error(&format!("not a regular expression: {error}")))?);
        if self.0.len() >= MAX_PATTERNS {
            self.0.clear();
        }
        self.0.insert(pattern.to_owned(), Arc::clone(&regex));
        Ok(regex)
    }
}
