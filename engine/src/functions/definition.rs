//! A scalar function as a table of what differs between them: a name, the types that it takes and returns, and what it
//! computes for a batch.

use std::hash::{Hash, Hasher};
use std::ops::RangeInclusive;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, StringArray};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};

use crate::error::EngineError;
use crate::limits::check_type;

/// The most arguments of a function that takes any number.
pub(super) const ANY_NUMBER: usize = 1_000;

/// What one function is.
pub(super) struct Definition {
    pub(super) name: &'static str,
    pub(super) aliases: &'static [&'static str],
    pub(super) arguments: RangeInclusive<usize>,
    /// Returns the types that the arguments are cast to. Errors: types that the function does not take.
    pub(super) takes: fn(&[DataType]) -> Result<Vec<DataType>>,
    /// Returns the type of the result for arguments of these types.
    pub(super) returns: fn(&[DataType]) -> Result<DataType>,
    /// Computes a batch; the arrays have as many rows as the third argument says.
    pub(super) compute: fn(&[ArrayRef], usize) -> Result<ArrayRef>,
}

impl Definition {
    pub(super) fn into_udf(self) -> Arc<ScalarUDF> {
        let aliases = self.aliases.iter().map(|alias| (*alias).to_owned()).collect();
        let signature = Signature::user_defined(Volatility::Immutable);
        Arc::new(ScalarUDF::new_from_impl(Defined { definition: self, aliases, signature }))
    }
}

struct Defined {
    definition: Definition,
    aliases: Vec<String>,
    signature: Signature,
}

impl std::fmt::Debug for Defined {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.definition.name)
    }
}

// Names are unique among the engine's functions.
impl PartialEq for Defined {
    fn eq(&self, other: &Self) -> bool {
        self.definition.name == other.definition.name
    }
}

impl Eq for Defined {}

impl Hash for Defined {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.definition.name.hash(state);
    }
}

impl ScalarUDFImpl for Defined {
    fn name(&self) -> &str {
        self.definition.name
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        let Definition { name, arguments, takes, .. } = &self.definition;
        if !arguments.contains(&arg_types.len()) {
            let (least, most) = (*arguments.start(), *arguments.end());
            let count = match (least, most) {
                (least, ANY_NUMBER) => format!("at least {least}"),
                (least, most) if least == most => least.to_string(),
                (least, most) => format!("{least} to {most}"),
            };
            let message = format!("{name} takes {count} arguments, not {}", arg_types.len());
            return Err(EngineError::Plan { message }.into());
        }
        takes(arg_types)
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        let returned = (self.definition.returns)(arg_types)?;
        check_type(self.definition.name, &returned)?;
        Ok(returned)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_scalar = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let rows = if is_scalar { 1 } else { args.number_rows };
        let arrays = args.args.iter().map(|arg| arg.to_array(rows)).collect::<Result<Vec<_>>>()?;
        let types: Vec<DataType> = arrays.iter().map(|array| array.data_type().clone()).collect();
        let arrays = arrays
            .iter()
            .zip((self.definition.takes)(&types)?)
            .map(|(array, wanted)| match array.data_type() == &wanted {
                true => Ok(Arc::clone(array)),
                false => Ok(cast(array, &wanted)?),
            })
            .collect::<Result<Vec<_>>>()?;
        let result = (self.definition.compute)(&arrays, rows)?;
        match is_scalar {
            true => Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&result, 0)?)),
            false => Ok(ColumnarValue::Array(result)),
        }
    }
}

/// Returns the texts of the first argument, changed.
pub(super) fn texts(arrays: &[ArrayRef], change: impl Fn(&str) -> String) -> Result<ArrayRef> {
    let texts = arrays[0].as_string::<i32>().iter();
    Ok(Arc::new(texts.map(|text| text.map(&change)).collect::<StringArray>()))
}

/// Returns the error of a value that a function cannot compute with.
pub(super) fn invalid(message: String) -> datafusion::error::DataFusionError {
    EngineError::InvalidValue { message }.into()
}

/// Returns the error of types that a function does not take.
pub(super) fn unfit(message: String) -> datafusion::error::DataFusionError {
    EngineError::Plan { message }.into()
}
