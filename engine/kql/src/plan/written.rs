//! Functions that operators call, written down.

use std::sync::Arc;

use datafusion::logical_expr::ScalarUDF;
use serde::{Deserialize, Serialize};

use super::expand::{Elements, elements, elements_of_function};
use super::parse::{KeyValues, captures, key_values, pattern_of_captures, wanted_key_values};
use super::scan::StoredConversion;

/// A function that an operator calls, written down.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct WrittenOperatorFunction(OperatorFunctionParts);

#[derive(Debug, Serialize, Deserialize)]
enum OperatorFunctionParts {
    Elements(Elements),
    Captures { pattern: String, groups: usize },
    KeyValues(KeyValues),
    Stored(StoredConversion),
}

impl WrittenOperatorFunction {
    pub(crate) fn from_udf(function: &ScalarUDF) -> Option<Self> {
        let parts = if let Some(stored) = StoredConversion::from_udf(function) {
            OperatorFunctionParts::Stored(stored)
        } else if let Some(elements) = elements_of_function(function) {
            OperatorFunctionParts::Elements(elements)
        } else if let Some((pattern, groups)) = pattern_of_captures(function) {
            OperatorFunctionParts::Captures { pattern: pattern.to_owned(), groups }
        } else {
            OperatorFunctionParts::KeyValues(wanted_key_values(function)?.clone())
        };
        Some(Self(parts))
    }

    /// Returns the function; `None` where there is none such.
    pub(crate) fn into_udf(self) -> Option<Arc<ScalarUDF>> {
        match self.0 {
            OperatorFunctionParts::Elements(wanted) => Some(elements(wanted)),
            OperatorFunctionParts::Captures { pattern, groups } => captures(&pattern, groups).ok(),
            OperatorFunctionParts::KeyValues(wanted) => key_values(wanted).ok(),
            OperatorFunctionParts::Stored(stored) => Some(stored.new_udf()),
        }
    }
}
