//! Functions of KQL written down, for plans that are sent to another process of the same version.
//!
//! A function is its name and what it was bound with: the types of its arguments, the time of the query, a pattern. Invariant:
//! what is written is read as a function that is equal.

use std::sync::Arc;

use datafusion::logical_expr::{AggregateUDF, ScalarUDF, WindowUDF};
use serde::{Deserialize, Serialize};

use crate::aggregates::WrittenAggregate;
use crate::bind::{is_sessions_function, sessions_udwf};
use crate::functions::WrittenFunction;
use crate::plan::WrittenOperatorFunction;

/// A function of one row.
#[derive(Debug, Serialize, Deserialize)]
enum WrittenScalar {
    Function(WrittenFunction),
    OperatorFunction(WrittenOperatorFunction),
}

/// Returns a function of one row as text; `None` for one that is not KQL's, or cannot be written down.
pub fn written_function(function: &ScalarUDF) -> Option<String> {
    let written = match WrittenFunction::from_udf(function) {
        Some(written) => WrittenScalar::Function(written),
        None => WrittenScalar::OperatorFunction(WrittenOperatorFunction::from_udf(function)?),
    };
    let text = serde_json::to_string(&written).ok()?;
    let read = read_function(&text)?;
    (read.as_ref() == function).then_some(text)
}

/// Returns the function of a text of [`written_function`]; `None` where it is none.
pub fn read_function(text: &str) -> Option<Arc<ScalarUDF>> {
    match serde_json::from_str(text).ok()? {
        WrittenScalar::Function(written) => written.into_udf(),
        WrittenScalar::OperatorFunction(written) => written.into_udf(),
    }
}

/// Returns an aggregate as text; `None` for one that is not KQL's, or cannot be written down.
pub fn written_aggregate(function: &AggregateUDF) -> Option<String> {
    let text = serde_json::to_string(&WrittenAggregate::from_udaf(function)?).ok()?;
    let read = read_aggregate(&text)?;
    (read.as_ref() == function).then_some(text)
}

/// Returns the aggregate of a text of [`written_aggregate`]; `None` where it is none.
pub fn read_aggregate(text: &str) -> Option<Arc<AggregateUDF>> {
    Some(serde_json::from_str::<WrittenAggregate>(text).ok()?.into_udaf())
}

/// Returns a function over rows in their order as text; `None` for one that is not KQL's, or cannot be written down, as the
/// steps of `scan` cannot.
pub fn written_window_function(function: &WindowUDF) -> Option<String> {
    is_sessions_function(function).then(|| function.name().to_owned())
}

/// Returns the function of a text of [`written_window_function`]; `None` where it is none.
pub fn read_window_function(text: &str) -> Option<Arc<WindowUDF>> {
    let sessions = sessions_udwf();
    (sessions.name() == text).then_some(sessions)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::functions::{FunctionContext, ScalarOperator, bind, bind_multi_column, operator};
    use crate::types::KqlType;

    fn assert_survives(function: &ScalarUDF) {
        let text = written_function(function).unwrap_or_else(|| panic!("{} is not written", function.name()));
        assert_eq!(read_function(&text).unwrap().as_ref(), function, "{text}");
    }

    #[test]
    fn functions_are_read_as_they_were() {
        let context = FunctionContext { now_ticks: 638_000_000_000_000_000 };
        for (name, arguments) in [
            ("strlen", &[KqlType::String][..]),
            ("tostring", &[KqlType::Dynamic]),
            ("now", &[]),
            ("bin", &[KqlType::DateTime, KqlType::TimeSpan]),
            ("strcat", &[KqlType::String, KqlType::Long, KqlType::Real]),
        ] {
            assert_survives(&bind(name, arguments, context).unwrap().function);
        }
        for (named, arguments) in [
            (ScalarOperator::DynamicMember, [KqlType::Dynamic, KqlType::String]),
            (ScalarOperator::Binary(crate::ast::BinaryOperator::Add), [KqlType::DateTime, KqlType::TimeSpan]),
        ] {
            assert_survives(&operator(named, &arguments).unwrap().function);
        }
        let several = bind_multi_column("series_stats", &[KqlType::Dynamic], context).unwrap().unwrap();
        assert_survives(&several.whole());
        // One that differs in its types is another one.
        let of_long = bind("tostring", &[KqlType::Long], context).unwrap().function;
        let of_real = bind("tostring", &[KqlType::Real], context).unwrap().function;
        assert_ne!(written_function(&of_long), written_function(&of_real));
        assert_eq!(written_function(&datafusion::functions::string::upper()), None);
        assert!(read_function("{}").is_none());
    }

    #[test]
    fn sessions_are_read_as_they_were() {
        let sessions = sessions_udwf();
        let text = written_window_function(&sessions).unwrap();
        assert_eq!(read_window_function(&text).unwrap(), sessions);
        assert!(read_window_function("rank").is_none());
    }
}
