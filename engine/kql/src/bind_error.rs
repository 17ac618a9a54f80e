//! The errors of a query that parses: a stable code, the position, and where one is known a hint.

use crate::error::render_at;
use crate::span::Span;

/// One error of a KQL query's meaning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BindError {
    /// The kind of error.
    pub code: BindErrorCode,
    /// The message, without the position.
    pub message: String,
    /// Where in the query.
    pub span: Span,
    /// What to do, where it is known.
    pub hint: Option<String>,
}

/// The kinds of errors in a query's meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BindErrorCode {
    /// There is no such column.
    UnknownColumn,
    /// There is no such table.
    UnknownTable,
    /// There is no such function.
    UnknownFunction,
    /// Types that do not go together.
    TypeMismatch,
    /// Known to Kusto, not supported here.
    NotSupported,
    /// Has no meaning.
    Invalid,
    /// Expands to more operators and expressions, or deeper, than the planner allows.
    TooLarge,
}

impl BindErrorCode {
    /// The stable snake_case code.
    pub fn as_str(self) -> &'static str {
        match self {
            BindErrorCode::UnknownColumn => "kql_unknown_column",
            BindErrorCode::UnknownTable => "kql_unknown_table",
            BindErrorCode::UnknownFunction => "kql_unknown_function",
            BindErrorCode::TypeMismatch => "kql_type_mismatch",
            BindErrorCode::NotSupported => "kql_not_supported",
            BindErrorCode::Invalid => "kql_invalid",
            BindErrorCode::TooLarge => "kql_too_large",
        }
    }
}

impl BindError {
    /// Returns an error without a hint.
    pub fn new(code: BindErrorCode, span: Span, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), span, hint: None }
    }

    /// Adds a hint.
    pub fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// Returns the error with its line of `text` and a caret below the position.
    pub fn render(&self, text: &str) -> String {
        render_at(text, self.span, &self.message, self.hint.as_deref())
    }
}
