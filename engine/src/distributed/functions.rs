//! Functions written down, where a name does not say all of them: KQL's, which are bound to types, and those of windows, which
//! have bounds around them. Invariant: a function inside is looked up by a name that both sides mean the same by.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::common::{DataFusionError, exec_err};
use datafusion::error::Result;
use datafusion::execution::{SessionState, TaskContext};
use datafusion::logical_expr::{AggregateUDF, ScalarUDF, WindowUDF};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::functions::{checked_sum, is_checked_sum};
use crate::governor::{
    Repetition, governed, governed_aggregate, governed_window_function, ungoverned, ungoverned_aggregate,
    ungoverned_window_function, unnamed_functions,
};

/// Returns the scalar functions that plans may name: those of every session, and those that stand for operators and casts.
pub(crate) fn functions_of_plans(state: &SessionState) -> HashMap<String, Arc<ScalarUDF>> {
    let own = unnamed_functions().into_iter().map(|function| (function.name().to_owned(), function));
    state.scalar_functions().iter().map(|(name, function)| (name.clone(), Arc::clone(function))).chain(own).collect()
}

/// What names stand for.
#[derive(Debug, Default)]
pub(super) struct NamedFunctions {
    scalar: HashMap<String, Arc<ScalarUDF>>,
    aggregate: HashMap<String, Arc<AggregateUDF>>,
    window: HashMap<String, Arc<WindowUDF>>,
}

impl NamedFunctions {
    pub(super) fn of_state(state: &SessionState) -> Self {
        Self {
            scalar: functions_of_plans(state),
            aggregate: state.aggregate_functions().clone(),
            window: state.window_functions().clone(),
        }
    }

    /// Those that definitions name.
    pub(super) fn of_task(context: &TaskContext) -> Self {
        Self {
            scalar: HashMap::new(),
            aggregate: context.aggregate_functions().clone(),
            window: context.window_functions().clone(),
        }
    }

    pub(super) fn has_scalar(&self, function: &ScalarUDF) -> bool {
        self.scalar.get(function.name()).is_some_and(|same| same.as_ref() == function)
    }

    pub(super) fn has_aggregate(&self, function: &AggregateUDF) -> bool {
        self.aggregate.get(function.name()).is_some_and(|same| same.as_ref() == function)
    }

    pub(super) fn has_window(&self, function: &WindowUDF) -> bool {
        self.window.get(function.name()).is_some_and(|same| same.as_ref() == function)
    }
}

/// A function without the bounds around it.
#[derive(Debug, Serialize, Deserialize)]
enum InnerFunction {
    Named(String),
    /// SQL's sum, of which DataFusion's has the name.
    CheckedSum,
    Kql(String),
}

#[derive(Debug, Serialize, Deserialize)]
struct ScalarDefinition {
    is_governed: bool,
    kql: String,
}

#[derive(Debug, Serialize, Deserialize)]
struct AggregateDefinition {
    /// `None`: it has no bounds around it.
    repetition: Option<Repetition>,
    inner: InnerFunction,
}

#[derive(Debug, Serialize, Deserialize)]
struct WindowDefinition {
    is_governed: bool,
    inner: InnerFunction,
}

/// Returns the definition of a function of one row; `None` of one that travels by its name.
pub(super) fn scalar_definition(function: &ScalarUDF) -> Result<Option<Vec<u8>>> {
    let inner = ungoverned(function);
    let Some(kql) = querent_kql::written_function(inner.map_or(function, Arc::as_ref)) else { return Ok(None) };
    definition(&ScalarDefinition { is_governed: inner.is_some(), kql }).map(Some)
}

/// Returns the function of a definition.
pub(super) fn defined_scalar(bytes: &[u8]) -> Result<Arc<ScalarUDF>> {
    let written: ScalarDefinition = read(bytes)?;
    match querent_kql::read_function(&written.kql) {
        Some(inner) if written.is_governed => Ok(governed(inner)),
        Some(inner) => Ok(inner),
        None => exec_err!("a function that this version does not know"),
    }
}

/// Returns the definition of an aggregate; `None` of one that travels by its name.
pub(super) fn aggregate_definition(function: &AggregateUDF) -> Result<Option<Vec<u8>>> {
    let (inner, repetition) = match ungoverned_aggregate(function) {
        Some((inner, repetition)) => (inner.as_ref(), Some(repetition)),
        None => (function, None),
    };
    let inner = match (querent_kql::written_aggregate(inner), repetition) {
        _ if is_checked_sum(inner) => InnerFunction::CheckedSum,
        (Some(kql), _) => InnerFunction::Kql(kql),
        (None, Some(_)) => InnerFunction::Named(inner.name().to_owned()),
        (None, None) => return Ok(None),
    };
    definition(&AggregateDefinition { repetition, inner }).map(Some)
}

/// Returns the aggregate of a definition.
pub(super) fn defined_aggregate(bytes: &[u8], named: &NamedFunctions) -> Result<Arc<AggregateUDF>> {
    let written: AggregateDefinition = read(bytes)?;
    let inner = match &written.inner {
        InnerFunction::Named(name) => named.aggregate.get(name).map(Arc::clone),
        InnerFunction::CheckedSum => Some(checked_sum()),
        InnerFunction::Kql(text) => querent_kql::read_aggregate(text),
    };
    match (inner, written.repetition) {
        (Some(inner), Some(repetition)) => Ok(governed_aggregate(inner, repetition)),
        (Some(inner), None) => Ok(inner),
        (None, _) => exec_err!("an aggregate that this version does not know"),
    }
}

/// Returns the definition of a window function; `None` of one that travels by its name.
pub(super) fn window_definition(function: &WindowUDF) -> Result<Option<Vec<u8>>> {
    let governed = ungoverned_window_function(function);
    let inner = governed.map_or(function, Arc::as_ref);
    let inner = match (querent_kql::written_window_function(inner), governed) {
        (Some(kql), _) => InnerFunction::Kql(kql),
        (None, Some(_)) => InnerFunction::Named(inner.name().to_owned()),
        (None, None) => return Ok(None),
    };
    definition(&WindowDefinition { is_governed: governed.is_some(), inner }).map(Some)
}

/// Returns the window function of a definition.
pub(super) fn defined_window(bytes: &[u8], named: &NamedFunctions) -> Result<Arc<WindowUDF>> {
    let written: WindowDefinition = read(bytes)?;
    let inner = match &written.inner {
        InnerFunction::Named(name) => named.window.get(name).map(Arc::clone),
        InnerFunction::CheckedSum => None,
        InnerFunction::Kql(text) => querent_kql::read_window_function(text),
    };
    match inner {
        Some(inner) if written.is_governed => Ok(governed_window_function(inner)),
        Some(inner) => Ok(inner),
        None => exec_err!("a window function that this version does not know"),
    }
}

fn definition(written: &impl Serialize) -> Result<Vec<u8>> {
    serde_json::to_vec(written).map_err(|error| DataFusionError::Internal(error.to_string()))
}

fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    serde_json::from_slice(bytes).map_err(|error| DataFusionError::Execution(error.to_string()))
}
