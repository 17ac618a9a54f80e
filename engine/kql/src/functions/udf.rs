//! The DataFusion function that a KQL function is bound to. Two functions of the same name, types and query time are
//! equal.

use std::hash::{Hash, Hasher};

use arrow::array::{Array, ArrayRef};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};

use super::arguments::FunctionArguments;
use super::operators::{self, ScalarOperator};
use crate::types::KqlType;

/// What computes a batch.
#[derive(Clone, Copy)]
pub(super) enum Kernel {
    Function(fn(&FunctionArguments) -> Result<ArrayRef>),
    ScalarOperator(ScalarOperator),
}

/// The function that converts a value to a string.
const TO_TEXT: &str = "kql_tostring";

pub(super) struct KqlFunction {
    name: String,
    arguments: Vec<KqlType>,
    returns: KqlType,
    kernel: Kernel,
    now_ticks: i64,
    signature: Signature,
}

impl KqlFunction {
    pub(super) fn new(
        name: &str,
        arguments: &[KqlType],
        returns: KqlType,
        kernel: Kernel,
        volatile: bool,
        now_ticks: i64,
    ) -> Self {
        let volatility = if volatile { Volatility::Volatile } else { Volatility::Immutable };
        let types: Vec<DataType> = arguments.iter().map(|kql_type| kql_type.arrow_type()).collect();
        let signature =
            if types.is_empty() { Signature::nullary(volatility) } else { Signature::exact(types, volatility) };
        Self { name: format!("kql_{name}"), arguments: arguments.to_vec(), returns, kernel, now_ticks, signature }
    }

    /// Returns what it was made of, beside its types.
    pub(super) fn parts(&self) -> (&str, &[KqlType], Kernel, i64) {
        (&self.name, &self.arguments, self.kernel, self.now_ticks)
    }

    fn identity(&self) -> (&str, &[KqlType], KqlType, i64) {
        (&self.name, &self.arguments, self.returns, self.now_ticks)
    }
}

impl std::fmt::Debug for KqlFunction {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("KqlFunction").field("name", &self.name).field("arguments", &self.arguments).finish()
    }
}

impl PartialEq for KqlFunction {
    fn eq(&self, other: &Self) -> bool {
        self.identity() == other.identity()
    }
}

impl Eq for KqlFunction {}

impl Hash for KqlFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.identity().hash(state);
    }
}

impl ScalarUDFImpl for KqlFunction {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(self.returns.arrow_type())
    }

    fn return_field_from_args(&self, _arguments: ReturnFieldArgs) -> Result<FieldRef> {
        let nullable = self.returns != KqlType::String;
        Ok(Field::new(&self.name, self.returns.arrow_type(), nullable).into())
    }

    /// Rewrites `tostring(split(a, b)[i])` so that no JSON is built.
    fn simplify(&self, arguments: Vec<Expr>, _context: &SimplifyContext) -> Result<ExprSimplifyResult> {
        let is_to_text = self.returns == KqlType::String && self.name == TO_TEXT;
        let simplified = match arguments.as_slice() {
            [Expr::ScalarFunction(call)] if is_to_text => split_text(call),
            _ => None,
        };
        Ok(simplified.map_or(ExprSimplifyResult::Original(arguments), ExprSimplifyResult::Simplified))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let volatile = self.signature.volatility == Volatility::Volatile;
        let all_constant = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        // A volatile function is called for each row.
        let once = all_constant && !volatile;
        let rows = if once { 1 } else { args.number_rows };
        let arguments =
            FunctionArguments::new(&self.name, &self.arguments, self.returns, args.args, rows, self.now_ticks)?;
        let array = match self.kernel {
            Kernel::Function(kernel) => kernel(&arguments)?,
            Kernel::ScalarOperator(operator) => operators::evaluate(operator, &arguments)?,
        };
        // Kernels build `StringArray`s; casting them to views is cheap.
        let array = if array.data_type() == &self.returns.arrow_type() {
            array
        } else {
            cast(&array, &self.returns.arrow_type())?
        };
        if once {
            Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&array, 0)?))
        } else {
            Ok(ColumnarValue::Array(array))
        }
    }
}

fn split_text(call: &ScalarFunction) -> Option<Expr> {
    let inner = (call.func.inner().as_ref() as &dyn std::any::Any).downcast_ref::<KqlFunction>()?;
    match inner.kernel {
        Kernel::ScalarOperator(ScalarOperator::SplitElement) => {
            let bound = super::operator(ScalarOperator::SplitText, &inner.arguments).ok()?;
            Some(bound.function.call(call.args.clone()))
        }
        _ => None,
    }
}
