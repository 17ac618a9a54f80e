//! What is wrong with a query as a whole: its text, its meaning, or what its functions were given while it ran.

use datafusion::error::DataFusionError;

use crate::bind_error::{BindError, BindErrorCode};
use crate::error::{SyntaxError, SyntaxErrorCode, render_at};

/// A query that does not parse, or means nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct KqlError {
    /// The kind of the first error.
    pub code: KqlErrorCode,
    /// Each error with its place and the line there.
    pub message: String,
    /// What to do, where it is known.
    pub hint: Option<String>,
}

/// The kinds of errors in a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KqlErrorCode {
    /// The text does not parse.
    Syntax(SyntaxErrorCode),
    /// The text parses and cannot be planned.
    Bind(BindErrorCode),
}

impl KqlErrorCode {
    /// The stable snake_case code.
    pub fn as_str(self) -> &'static str {
        match self {
            KqlErrorCode::Syntax(code) => code.as_str(),
            KqlErrorCode::Bind(code) => code.as_str(),
        }
    }
}

impl From<SyntaxErrorCode> for KqlErrorCode {
    fn from(code: SyntaxErrorCode) -> Self {
        KqlErrorCode::Syntax(code)
    }
}

impl From<BindErrorCode> for KqlErrorCode {
    fn from(code: BindErrorCode) -> Self {
        KqlErrorCode::Bind(code)
    }
}

impl KqlError {
    pub(crate) fn from_syntax(text: &str, errors: &[SyntaxError]) -> Self {
        let first = errors.first();
        // The first one's hint is beside the message.
        let first_rendered = first.map(|error| render_at(text, error.span, &error.message, None));
        let others = errors.iter().skip(1).map(|error| error.render(text));
        let rendered: Vec<String> = first_rendered.into_iter().chain(others).collect();
        Self {
            code: first.map_or(SyntaxErrorCode::Unexpected, |error| error.code).into(),
            message: rendered.join("\n"),
            hint: first.and_then(|error| error.hint.clone()),
        }
    }

    pub(crate) fn from_bind(text: &str, error: BindError) -> Self {
        Self { code: error.code.into(), message: render_at(text, error.span, &error.message, None), hint: error.hint }
    }
}

impl From<KqlError> for DataFusionError {
    fn from(error: KqlError) -> Self {
        DataFusionError::External(Box::new(error))
    }
}

/// A function's refusal of what it was given while a query runs. It passes through DataFusion as
/// [`DataFusionError::External`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ExecutionError {
    /// Which function, and why.
    pub message: String,
}

impl ExecutionError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into() }
    }
}

impl From<ExecutionError> for DataFusionError {
    fn from(error: ExecutionError) -> Self {
        DataFusionError::External(Box::new(error))
    }
}
