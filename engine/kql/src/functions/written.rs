//! Functions of one row written down: the name and the types that each was bound to, from which it is bound again elsewhere.

use std::sync::Arc;

use datafusion::logical_expr::ScalarUDF;
use serde::{Deserialize, Serialize};

use super::multi_column::{MultiColumnParts, column_function, multi_column_parts};
use super::udf::{Kernel, KqlFunction};
use super::{FunctionContext, ScalarOperator, bind, bind_multi_column, operator};
use crate::types::KqlType;

/// What stands before a function's name in plans.
const PREFIX: &str = "kql_";

/// A function of [`super`], written down.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct WrittenFunction(FunctionParts);

#[derive(Debug, Serialize, Deserialize)]
enum FunctionParts {
    Function { name: String, arguments: Vec<KqlType>, now_ticks: i64 },
    Operator { operator: ScalarOperator, arguments: Vec<KqlType> },
    Columns { name: String, arguments: Vec<KqlType>, now_ticks: i64 },
    Column { name: String, index: usize, kql_type: KqlType },
}

impl WrittenFunction {
    pub(crate) fn from_udf(function: &ScalarUDF) -> Option<Self> {
        if let Some(parts) = multi_column_parts(function) {
            return Some(Self(match parts {
                MultiColumnParts::Whole(name, arguments, now_ticks) => {
                    FunctionParts::Columns { name: name.to_owned(), arguments: arguments.to_vec(), now_ticks }
                }
                MultiColumnParts::Column(name, index, kql_type) => {
                    FunctionParts::Column { name: name.to_owned(), index, kql_type }
                }
            }));
        }
        let bound = (function.inner().as_ref() as &dyn std::any::Any).downcast_ref::<KqlFunction>()?;
        let (name, arguments, kernel, now_ticks) = bound.parts();
        let arguments = arguments.to_vec();
        Some(Self(match kernel {
            Kernel::Function(_) => {
                FunctionParts::Function { name: name.strip_prefix(PREFIX)?.to_owned(), arguments, now_ticks }
            }
            Kernel::ScalarOperator(operator) => FunctionParts::Operator { operator, arguments },
        }))
    }

    /// Returns the function; `None` where there is none such.
    pub(crate) fn into_udf(self) -> Option<Arc<ScalarUDF>> {
        match self.0 {
            FunctionParts::Function { name, arguments, now_ticks } => {
                Some(bind(&name, &arguments, FunctionContext { now_ticks }).ok()?.function)
            }
            FunctionParts::Operator { operator: named, arguments } => Some(operator(named, &arguments).ok()?.function),
            FunctionParts::Columns { name, arguments, now_ticks } => {
                Some(bind_multi_column(&name, &arguments, FunctionContext { now_ticks })?.ok()?.whole())
            }
            FunctionParts::Column { name, index, kql_type } => Some(Arc::new(column_function(name, index, kql_type))),
        }
    }
}
