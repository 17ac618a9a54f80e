//! Syntax errors, and how they are rendered. An error carries a stable code, its span and, where one is known, a hint;
//! the query is needed only to render it. What is rendered is bounded, however long the line is.

use std::fmt;

use crate::span::Span;

/// How much of a long line is shown on each side of the position.
const SHOWN_CHARS: usize = 60;

/// One syntax error of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyntaxError {
    /// The kind of error.
    pub code: SyntaxErrorCode,
    /// `expected X, found Y`, without the position.
    pub message: String,
    /// Where in the query.
    pub span: Span,
    /// What to do, where it is known.
    pub hint: Option<String>,
}

/// The kinds of syntax errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SyntaxErrorCode {
    /// Another token was expected.
    Unexpected,
    /// What follows `|` is not an operator.
    UnknownOperator,
    /// A keyword stands where only a bracketed name may.
    ReservedName,
    /// A character that KQL does not have.
    UnexpectedCharacter,
    /// A string or a literal that does not end.
    Unterminated,
    /// An escape sequence that KQL does not have.
    BadEscape,
    /// A number that does not fit its type.
    NumberOutOfRange,
    /// Not the name of a type.
    UnknownType,
    /// Nested deeper than the parser goes.
    TooDeep,
}

impl SyntaxErrorCode {
    /// The stable snake_case code.
    pub fn as_str(self) -> &'static str {
        match self {
            SyntaxErrorCode::Unexpected => "kql_unexpected",
            SyntaxErrorCode::UnknownOperator => "kql_unknown_operator",
            SyntaxErrorCode::ReservedName => "kql_reserved_name",
            SyntaxErrorCode::UnexpectedCharacter => "kql_unexpected_character",
            SyntaxErrorCode::Unterminated => "kql_unterminated",
            SyntaxErrorCode::BadEscape => "kql_bad_escape",
            SyntaxErrorCode::NumberOutOfRange => "kql_number_out_of_range",
            SyntaxErrorCode::UnknownType => "kql_unknown_type",
            SyntaxErrorCode::TooDeep => "kql_too_deep",
        }
    }
}

impl fmt::Display for SyntaxErrorCode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// A position as people count it: both from 1, columns in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
}

impl SyntaxError {
    /// Returns the position in `text`, the query that was parsed.
    pub fn position(&self, text: &str) -> Position {
        position(text, self.span)
    }

    /// Returns the error with its line of `text` and a caret below the position:
    ///
    /// ```text
    /// line 2, column 11: expected an expression, found the end of the query
    ///   | where a ==
    ///               ^
    /// ```
    pub fn render(&self, text: &str) -> String {
        render_at(text, self.span, &self.message, self.hint.as_deref())
    }
}

fn position(text: &str, span: Span) -> Position {
    let before = before(text, span);
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    Position {
        line: 1 + before.bytes().filter(|byte| *byte == b'\n').count(),
        column: 1 + before.get(line_start..).unwrap_or_default().chars().count(),
    }
}

/// Returns a message with its position, the line there and a caret below it.
pub(super) fn render_at(text: &str, span: Span, message: &str, hint: Option<&str>) -> String {
    let Position { line, column } = position(text, span);
    let (excerpt, caret) = excerpt(text, span);
    let mut rendered = format!("line {line}, column {column}: {message}");
    rendered.push_str(&format!("\n  {excerpt}\n  {caret}"));
    if let Some(hint) = hint {
        rendered.push_str(&format!("\n  hint: {hint}"));
    }
    rendered
}

/// Returns the part of the line around the position, and the carets that go below it.
fn excerpt(text: &str, span: Span) -> (String, String) {
    let before = before(text, span);
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let left: Vec<char> = before.get(line_start..).unwrap_or_default().chars().rev().take(SHOWN_CHARS).collect();
    let rest = text.get(before.len()..).unwrap_or_default();
    let right = rest.chars().take_while(|char| *char != '\n').take(SHOWN_CHARS);
    // The width of a tab depends on the screen; a blank is one column in the line and below it.
    let excerpt: String =
        left.iter().rev().copied().chain(right).map(|char| if char.is_control() { ' ' } else { char }).collect();
    let marked = span.slice(text).chars().take_while(|char| *char != '\n').take(SHOWN_CHARS).count();
    let caret = format!("{}{}", " ".repeat(left.len()), "^".repeat(marked.max(1)));
    (excerpt.trim_end().to_owned(), caret)
}

fn before(text: &str, span: Span) -> &str {
    text.get(..span.start as usize).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error_at(start: usize, end: usize) -> SyntaxError {
        SyntaxError {
            code: SyntaxErrorCode::Unexpected,
            message: "expected X, found Y".to_owned(),
            span: Span::new(start, end),
            hint: None,
        }
    }

    #[test]
    fn shows_line_column_and_caret() {
        let text = "T\n|\twhére x y\n| take 1";
        let at = text.find('y').unwrap();
        let expected = "line 2, column 11: expected X, found Y\n  | whére x y\n            ^";
        assert_eq!(error_at(at, at + 1).render(text), expected);
    }

    #[test]
    fn shows_the_end_and_survives_any_span() {
        assert_eq!(error_at(1, 1).render("T"), "line 1, column 2: expected X, found Y\n  T\n   ^");
        assert!(error_at(7, 9).render("T").starts_with("line 1, column 2"));
    }

    #[test]
    fn shows_a_part_of_a_long_line() {
        let text = "x".repeat(1_000_000);
        assert!(error_at(500_000, 900_000).render(&text).len() < 400);
    }
}
