//! Functions written down, where a name does not say all of them: KQL's and those of casts, which are bound to types, and those
//! of windows, which have bounds around them. Invariant: a function inside is looked up by a name that both sides mean the same by.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::{DataFusionError, exec_err};
use datafusion::error::Result;
use datafusion::execution::{SessionState, TaskContext};
use datafusion::logical_expr::{AggregateUDF, ScalarUDF, WindowUDF};
use datafusion_proto::protobuf::ArrowType;
use prost::Message;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::functions::{checked_sum, conversion_of, is_checked_sum, list_reader, list_reader_of, value_conversion};
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

/// A function of one row that is planned for types.
#[derive(Debug, Serialize, Deserialize)]
enum TypedFunction {
    Kql(String),
    /// A cast that SQL does otherwise than Arrow, with the type as `datafusion-proto` writes it.
    Conversion {
        target: Vec<u8>,
        is_try: bool,
    },
    /// A text that is cast to a list.
    ListReader {
        target: Vec<u8>,
        is_try: bool,
    },
}

#[derive(Debug, Serialize, Deserialize)]
struct ScalarDefinition {
    is_governed: bool,
    function: TypedFunction,
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

impl TypedFunction {
    /// `None` of one that travels by its name, or whose type cannot be written down.
    fn of(function: &ScalarUDF) -> Option<Self> {
        if let Some(kql) = querent_kql::written_function(function) {
            return Some(Self::Kql(kql));
        }
        let written = match (conversion_of(function), list_reader_of(function)) {
            (Some((target, is_try)), _) => Self::Conversion { target: written_type(target)?, is_try },
            (_, Some((target, is_try))) => Self::ListReader { target: written_type(target)?, is_try },
            (None, None) => return None,
        };
        (written.function()?.as_ref() == function).then_some(written)
    }

    fn function(&self) -> Option<Arc<ScalarUDF>> {
        Some(match self {
            Self::Kql(text) => querent_kql::read_function(text)?,
            Self::Conversion { target, is_try } => Arc::new(value_conversion(&read_type(target)?, *is_try)),
            Self::ListReader { target, is_try } => Arc::new(list_reader(&read_type(target)?, *is_try)),
        })
    }
}

fn written_type(data_type: &DataType) -> Option<Vec<u8>> {
    Some(ArrowType::try_from(data_type).ok()?.encode_to_vec())
}

fn read_type(bytes: &[u8]) -> Option<DataType> {
    DataType::try_from(&ArrowType::decode(bytes).ok()?).ok()
}

/// Returns the definition of a function of one row; `None` of one that travels by its name.
pub(super) fn scalar_definition(function: &ScalarUDF) -> Result<Option<Vec<u8>>> {
    let inner = ungoverned(function);
    let Some(typed) = TypedFunction::of(inner.map_or(function, Arc::as_ref)) else { return Ok(None) };
    definition(&ScalarDefinition { is_governed: inner.is_some(), function: typed }).map(Some)
}

/// Returns the function of a definition.
pub(super) fn defined_scalar(bytes: &[u8]) -> Result<Arc<ScalarUDF>> {
    let written: ScalarDefinition = read(bytes)?;
    match written.function.function() {
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

#[cfg(test)]
mod tests {
    use arrow::datatypes::{Field, TimeUnit};

    use super::*;

    #[test]
    fn casts_are_read_as_they_were() {
        let list = |item: DataType| DataType::List(Arc::new(Field::new_list_field(item, true)));
        let point = DataType::Struct(vec![Field::new("x", DataType::Int32, true)].into());
        for target in [
            DataType::Int64,
            DataType::Date32,
            DataType::Decimal128(12, 3),
            DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
            list(DataType::Float64),
            list(point),
        ] {
            for function in [
                value_conversion(&target, false),
                value_conversion(&target, true),
                list_reader(&target, false),
                list_reader(&target, true),
            ] {
                let written = scalar_definition(&function).unwrap().unwrap();
                assert_eq!(*defined_scalar(&written).unwrap(), function);
                let bound = governed(Arc::new(function));
                let written = scalar_definition(&bound).unwrap().unwrap();
                assert_eq!(defined_scalar(&written).unwrap(), bound);
            }
        }
    }
}
