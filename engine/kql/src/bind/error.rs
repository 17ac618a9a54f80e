//! What is wrong with a query whose text parses: a stable code, the place, and where one is known a hint.

use crate::error::render_at;
use crate::span::Span;

/// One error of a KQL query's meaning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BindError {
    /// What kind.
    pub code: BindErrorCode,
    /// What, without the place.
    pub message: String,
    /// Where.
    pub span: Span,
    /// What to do, where it is known.
    pub hint: Option<String>,
}

/// The kinds of errors in a query's meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BindErrorCode {
    /// A column that is not there.
    UnknownColumn,
    /// A table that is not there.
    UnknownTable,
    /// A function that is not there.
    UnknownFunction,
    /// Types that do not go together.
    TypeMismatch,
    /// Known to Kusto, not supported here.
    NotSupported,
    /// Says what cannot be meant.
    Invalid,
    /// Expands to more than the planner makes.
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
    /// An error without a hint.
    pub fn new(code: BindErrorCode, span: Span, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), span, hint: None }
    }

    /// The same with a hint.
    pub fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// The error with its line of `text` and a caret below the place.
    pub fn render(&self, text: &str) -> String {
        render_at(text, self.span, &self.message, self.hint.as_deref())
    }
}
