//! Functions that give several values for a row, each a column of its own where a query makes columns. Such a function
//! is one call that makes a struct, and each column is a part of it, so that the work is done once however many of the
//! parts a query takes.

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

use super::super::types::KqlType;
use super::arguments::Arguments;
use super::signature::check_arguments;
use super::{FunctionContext, FunctionError};
use crate::ExecutionError;

/// A function of several values.
pub(super) struct Several {
    pub(super) name: &'static str,
    /// Written as those of other functions are.
    pub(super) parameters: &'static str,
    /// The values' names and types.
    pub(super) outputs: &'static [(&'static str, KqlType)],
    pub(super) kernel: fn(&Arguments, &mut Rows) -> Result<()>,
}

/// An entry of a family's table.
pub(super) const fn several(
    name: &'static str,
    parameters: &'static str,
    outputs: &'static [(&'static str, KqlType)],
    kernel: fn(&Arguments, &mut Rows) -> Result<()>,
) -> Several {
    Several { name, parameters, outputs, kernel }
}

/// One value of a row.
pub(super) enum Part {
    Real(f64),
    Long(i64),
    Dynamic(Value),
}

/// A function of several values for arguments of certain types.
#[derive(Debug, Clone)]
pub(crate) struct BoundSeveral {
    entry: &'static Several,
    function: Arc<ScalarUDF>,
}

impl BoundSeveral {
    pub(super) fn new(
        entry: &'static Several,
        arguments: &[KqlType],
        context: FunctionContext,
    ) -> std::result::Result<Self, FunctionError> {
        check_arguments(entry.name, entry.parameters, arguments)
            .map_err(|message| FunctionError::WrongArguments { message })?;
        let types: Vec<DataType> = arguments.iter().map(|kql_type| kql_type.arrow_type()).collect();
        let function = Together {
            entry,
            name: format!("kql_{}", entry.name),
            arguments: arguments.to_vec(),
            now_ticks: context.now_ticks,
            signature: Signature::exact(types, Volatility::Immutable),
        };
        Ok(Self { entry, function: Arc::new(ScalarUDF::new_from_impl(function)) })
    }

    /// The call's values: their names, their types, and what takes each.
    pub(crate) fn call(&self, arguments: Vec<Expr>) -> Vec<(&'static str, KqlType, Expr)> {
        let together = self.function.call(arguments);
        let part = |(index, (name, kql_type)): (usize, &(&'static str, KqlType))| {
            let part = OnePart {
                name: format!("kql_{}_{name}", self.entry.name),
                index,
                kql_type: *kql_type,
                signature: Signature::any(1, Volatility::Immutable),
            };
            (*name, *kql_type, ScalarUDF::new_from_impl(part).call(vec![together.clone()]))
        };
        self.entry.outputs.iter().enumerate().map(part).collect()
    }
}

/// Whether a function was made here.
pub(super) fn is_ours(function: &ScalarUDF) -> bool {
    let function = function.inner().as_ref() as &dyn std::any::Any;
    function.is::<Together>() || function.is::<OnePart>()
}

/// The columns that a kernel makes, row by row.
pub(super) struct Rows {
    columns: Vec<Builder>,
    bytes: usize,
}

enum Builder {
    Real(Float64Builder),
    Long(Int64Builder),
    Dynamic(StringBuilder),
}

impl Rows {
    fn new(outputs: &[(&str, KqlType)]) -> Self {
        let builder = |(_, kql_type): &(&str, KqlType)| match kql_type {
            KqlType::Real => Builder::Real(Float64Builder::new()),
            KqlType::Long => Builder::Long(Int64Builder::new()),
            _ => Builder::Dynamic(StringBuilder::new()),
        };
        Self { columns: outputs.iter().map(builder).collect(), bytes: 0 }
    }

    /// Makes all rows of a batch; a row that is nothing has only nulls.
    pub(super) fn each(
        &mut self,
        arguments: &Arguments,
        mut row: impl FnMut(usize) -> Result<Option<Vec<Part>>>,
    ) -> Result<()> {
        for index in 0..arguments.rows {
            let mut parts = row(index)?.unwrap_or_default().into_iter();
            for column in &mut self.columns {
                match (column, parts.next()) {
                    (Builder::Real(reals), Some(Part::Real(real))) => reals.append_value(real),
                    (Builder::Real(reals), _) => reals.append_null(),
                    (Builder::Long(longs), Some(Part::Long(long))) => longs.append_value(long),
                    (Builder::Long(longs), _) => longs.append_null(),
                    (Builder::Dynamic(texts), Some(Part::Dynamic(value))) if !value.is_null() => {
                        let text = value.to_string();
                        self.bytes += text.len();
                        arguments.bounded(self.bytes)?;
                        texts.append_value(text);
                    }
                    (Builder::Dynamic(texts), _) => texts.append_null(),
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
                Builder::Dynamic(mut texts) => Arc::new(texts.finish()),
            }
        };
        self.columns.into_iter().map(finished).collect()
    }
}

/// The DataFusion function that makes the struct of all values.
struct Together {
    entry: &'static Several,
    name: String,
    arguments: Vec<KqlType>,
    now_ticks: i64,
    signature: Signature,
}

impl Together {
    fn fields(&self) -> Fields {
        let field = |(name, kql_type): &(&str, KqlType)| Field::new(*name, kql_type.arrow_type(), true);
        self.entry.outputs.iter().map(field).collect()
    }
}

impl ScalarUDFImpl for Together {
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
        let arguments = Arguments::new(&self.name, &self.arguments, KqlType::Dynamic, args.args, rows, self.now_ticks)?;
        let mut made = Rows::new(self.entry.outputs);
        (self.entry.kernel)(&arguments, &mut made)?;
        let array = StructArray::try_new_with_length(self.fields(), made.finish(), None, rows)?;
        if once {
            Ok(ColumnarValue::Scalar(ScalarValue::Struct(Arc::new(array))))
        } else {
            Ok(ColumnarValue::Array(Arc::new(array)))
        }
    }
}

/// The DataFusion function that takes one value out of the struct.
struct OnePart {
    name: String,
    index: usize,
    kql_type: KqlType,
    signature: Signature,
}

impl ScalarUDFImpl for OnePart {
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

impl OnePart {
    fn misused(&self) -> DataFusionError {
        ExecutionError::new(format!("{} takes a function's several values", self.name)).into()
    }
}

impl std::fmt::Debug for Several {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Several").field("name", &self.name).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Together {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Together").field("name", &self.name).field("arguments", &self.arguments).finish()
    }
}

impl std::fmt::Debug for OnePart {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("OnePart").field("name", &self.name).finish()
    }
}

impl PartialEq for Together {
    fn eq(&self, other: &Self) -> bool {
        (&self.name, &self.arguments, self.now_ticks) == (&other.name, &other.arguments, other.now_ticks)
    }
}

impl Eq for Together {}

impl Hash for Together {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.name, &self.arguments, self.now_ticks).hash(state);
    }
}

impl PartialEq for OnePart {
    fn eq(&self, other: &Self) -> bool {
        (&self.name, self.index, self.kql_type) == (&other.name, other.index, other.kql_type)
    }
}

impl Eq for OnePart {}

impl Hash for OnePart {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.name, self.index, self.kql_type).hash(state);
    }
}
