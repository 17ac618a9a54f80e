//! Functions that return several columns, as `series_stats` does. A call is one DataFusion function that returns a
//! struct, and each column is a field of it, so the work is done once however many of the columns a query uses.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Float64Builder, Int64Builder, StringBuilder, StructArray};
use arrow::datatypes::{DataType, Field, Fields};
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use serde_json::Value;

use super::arguments::FunctionArguments;
use super::signature::check_arguments;
use super::{FunctionContext, FunctionError};
use crate::ExecutionError;
use crate::interrupt::check_interrupt;
use crate::types::KqlType;

/// A function that returns several columns.
pub(super) struct MultiColumnFunction {
    pub(super) name: &'static str,
    /// In the notation of [`super::signature`].
    pub(super) parameters: &'static str,
    /// The names and types of the columns.
    pub(super) outputs: &'static [(&'static str, KqlType)],
    pub(super) kernel: fn(&FunctionArguments, &mut OutputColumns) -> Result<()>,
}

/// Makes an entry of a family's table.
pub(super) const fn multi_column(
    name: &'static str,
    parameters: &'static str,
    outputs: &'static [(&'static str, KqlType)],
    kernel: fn(&FunctionArguments, &mut OutputColumns) -> Result<()>,
) -> MultiColumnFunction {
    MultiColumnFunction { name, parameters, outputs, kernel }
}

/// The value of one column in one row.
pub(super) enum OutputValue {
    Real(f64),
    Long(i64),
    Dynamic(Value),
}

/// A multi-column function bound to arguments of certain types.
#[derive(Debug, Clone)]
pub(crate) struct BoundMultiColumn {
    entry: &'static MultiColumnFunction,
    function: Arc<ScalarUDF>,
}

impl BoundMultiColumn {
    pub(super) fn new(
        entry: &'static MultiColumnFunction,
        arguments: &[KqlType],
        context: FunctionContext,
    ) -> std::result::Result<Self, FunctionError> {
        check_arguments(entry.name, entry.parameters, arguments)
            .map_err(|message| FunctionError::WrongArguments { message })?;
        let types: Vec<DataType> = arguments.iter().map(|kql_type| kql_type.arrow_type()).collect();
        let function = StructFunction {
            entry,
            name: format!("kql_{}", entry.name),
            arguments: arguments.to_vec(),
            now_ticks: context.now_ticks,
            signature: Signature::exact(types, Volatility::Immutable),
        };
        Ok(Self { entry, function: Arc::new(ScalarUDF::new_from_impl(function)) })
    }

    /// Returns the function that makes all columns.
    pub(crate) fn whole(self) -> Arc<ScalarUDF> {
        self.function
    }

    /// Returns the columns of a call: the name, the type and the expression of each.
    pub(crate) fn call(&self, arguments: Vec<Expr>) -> Vec<(&'static str, KqlType, Expr)> {
        let together = self.function.call(arguments);
        let part = |(index, (name, kql_type)): (usize, &(&'static str, KqlType))| {
            let part = named_part(format!("kql_{}_{name}", self.entry.name), together.clone(), index, *kql_type);
            (*name, *kql_type, part)
        };
        self.entry.outputs.iter().enumerate().map(part).collect()
    }
}

/// Returns a field of a struct as an expression. DataFusion's own `get_field` is moved towards the scans by its
/// optimizer, also past nodes that make the struct, which then do not plan.
pub(crate) fn part_of(whole: Expr, index: usize, kql_type: KqlType) -> Expr {
    named_part("kql_part".to_owned(), whole, index, kql_type)
}

fn named_part(name: String, whole: Expr, index: usize, kql_type: KqlType) -> Expr {
    column_function(name, index, kql_type).call(vec![whole])
}

/// Whether a function is part of a multi-column call.
pub(super) fn is_multi_column_function(function: &ScalarUDF) -> bool {
    let function = function.inner().as_ref() as &dyn std::any::Any;
    function.is::<StructFunction>() || function.is::<FieldFunction>()
}

/// What a function of this module is made of.
pub(super) enum MultiColumnParts<'f> {
    /// All columns: the name, the types of the arguments, and the time of the query.
    Whole(&'f str, &'f [KqlType], i64),
    /// One column: the name, its place, and its type.
    Column(&'f str, usize, KqlType),
}

/// Returns what a function is made of; `None` if it is not of this module.
pub(super) fn multi_column_parts(function: &ScalarUDF) -> Option<MultiColumnParts<'_>> {
    let function = function.inner().as_ref() as &dyn std::any::Any;
    if let Some(whole) = function.downcast_ref::<StructFunction>() {
        return Some(MultiColumnParts::Whole(whole.entry.name, &whole.arguments, whole.now_ticks));
    }
    let column = function.downcast_ref::<FieldFunction>()?;
    Some(MultiColumnParts::Column(&column.name, column.index, column.kql_type))
}

/// Returns the function of one column.
pub(super) fn column_function(name: String, index: usize, kql_type: KqlType) -> ScalarUDF {
    let part = FieldFunction { name, index, kql_type, signature: Signature::any(1, Volatility::Immutable) };
    ScalarUDF::new_from_impl(part)
}

/// The columns that a kernel fills row by row.
pub(super) struct OutputColumns {
    columns: Vec<Builder>,
    bytes: usize,
}

enum Builder {
    Real(Float64Builder),
    Long(Int64Builder),
    Dynamic(StringBuilder),
}

impl OutputColumns {
    fn new(outputs: &[(&str, KqlType)]) -> Self {
        let builder = |(_, kql_type): &(&str, KqlType)| match kql_type {
            KqlType::Real => Builder::Real(Float64Builder::new()),
            KqlType::Long => Builder::Long(Int64Builder::new()),
            _ => Builder::Dynamic(StringBuilder::new()),
        };
        Self { columns: outputs.iter().map(builder).collect(), bytes: 0 }
    }

    /// Computes all rows of a batch. `None` fills a row with nulls.
    pub(super) fn fill_rows(
        &mut self,
        arguments: &FunctionArguments,
        mut row: impl FnMut(usize) -> Result<Option<Vec<OutputValue>>>,
    ) -> Result<()> {
        for index in 0..arguments.rows {
            check_interrupt()?;
            let mut parts = row(index)?.unwrap_or_default().into_iter();
            for column in &mut self.columns {
                match (column, parts.next()) {
                    (Builder::Real(reals), Some(OutputValue::Real(real))) => reals.append_value(real),
                    (Builder::Real(reals), _) => reals.append_null(),
                    (Builder::Long(longs), Some(OutputValue::Long(long))) => longs.append_value(long),
                    (Builder::Long(longs), _) => longs.append_null(),
                    (Builder::Dynamic(strings), Some(OutputValue::Dynamic(value))) if !value.is_null() => {
                        let text = value.to_string();
                        self.bytes += text.len();
                        arguments.bounded(self.bytes)?;
                        strings.append_value(text);
                    }
                    (Builder::Dynamic(strings), _) => strings.append_null(),
                }
            }
        }
        Ok(())
    }

    fn finish(self) -> Vec<ArrayRef> {
        let finished = |column| -> ArrayRef {
            match column {
                Builder::Real(mut reals) => Arc::new(reals.finish()),
                Builder::Long(mut longs) => Arc::new(longs.finish()),
                Builder::Dynamic(mut strings) => Arc::new(strings.finish()),
            }
        };
        self.columns.into_iter().map(finished).collect()
    }
}

/// The DataFusion function that returns the struct of all columns.
struct StructFunction {
    entry: &'static MultiColumnFunction,
    name: String,
    arguments: Vec<KqlType>,
    now_ticks: i64,
    signature: Signature,
}

impl StructFunction {
    fn fields(&self) -> Fields {
        let field = |(name, kql_type): &(&str, KqlType)| Field::new(*name, kql_type.arrow_type(), true);
        self.entry.outputs.iter().map(field).collect()
    }
}

impl ScalarUDFImpl for StructFunction {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(DataType::Struct(self.fields()))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let once = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let rows = if once { 1 } else { args.number_rows };
        let arguments =
            FunctionArguments::new(&self.name, &self.arguments, KqlType::Dynamic, args.args, rows, self.now_ticks)?;
        let mut made = OutputColumns::new(self.entry.outputs);
        (self.entry.kernel)(&arguments, &mut made)?;
        let array = StructArray::try_new_with_length(self.fields(), made.finish(), None, rows)?;
        if once {
            Ok(ColumnarValue::Scalar(ScalarValue::Struct(Arc::new(array))))
        } else {
            Ok(ColumnarValue::Array(Arc::new(array)))
        }
    }
}

/// The DataFusion function that returns one field of the struct.
struct FieldFunction {
    name: String,
    index: usize,
    kql_type: KqlType,
    signature: Signature,
}

impl ScalarUDFImpl for FieldFunction {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(self.kql_type.arrow_type())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let part_of = |array: &ArrayRef| -> Result<ArrayRef> {
            let parts = array.as_struct_opt().filter(|parts| self.index < parts.num_columns());
            parts.map(|parts| Arc::clone(parts.column(self.index))).ok_or_else(|| self.misused())
        };
        match args.args.first() {
            Some(ColumnarValue::Array(array)) => Ok(ColumnarValue::Array(part_of(array)?)),
            Some(ColumnarValue::Scalar(scalar)) => {
                let part = part_of(&scalar.to_array()?)?;
                Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&part, 0)?))
            }
            None => Err(self.misused()),
        }
    }
}

impl FieldFunction {
    fn misused(&self) -> DataFusionError {
        ExecutionError::new(format!("{} takes a function's several values", self.name)).into()
    }
}

impl std::fmt::Debug for MultiColumnFunction {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("MultiColumnFunction").field("name", &self.name).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for StructFunction {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("StructFunction").field("name", &self.name).field("arguments", &self.arguments).finish()
    }
}

impl std::fmt::Debug for FieldFunction {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("FieldFunction").field("name", &self.name).finish()
    }
}

impl PartialEq for StructFunction {
    fn eq(&self, other: &Self) -> bool {
        (&self.name, &self.arguments, self.now_ticks) == (&other.name, &other.arguments, other.now_ticks)
    }
}

impl Eq for StructFunction {}

impl Hash for StructFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.name, &self.arguments, self.now_ticks).hash(state);
    }
}

impl PartialEq for FieldFunction {
    fn eq(&self, other: &Self) -> bool {
        (&self.name, self.index, self.kql_type) == (&other.name, other.index, other.kql_type)
    }
}

impl Eq for FieldFunction {}

impl Hash for FieldFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.name, self.index, self.kql_type).hash(state);
    }
}
