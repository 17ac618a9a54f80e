//! KQL, the language of Kusto: text to a syntax tree with a place on every node.
//!
//! Parsing never fails: it returns a tree and the errors. Where there is an error the tree has an `Invalid` node and
//! goes on after the next `|` or `;`, so that one text can show several errors. It is linear in the text, and neither
//! its own stack nor the tree's depth grows with the text: past a fixed depth it is an error. How long a text may be
//! is the caller's to say.

pub mod ast;
mod error;
pub(crate) mod functions;
mod keywords;
mod lexer;
mod parse;
mod span;
pub(crate) mod types;
pub(crate) mod values;

#[cfg(test)]
mod corpus;

pub use error::{Position, SyntaxError, SyntaxErrorCode};
pub use span::Span;

/// What a text was parsed to.
#[derive(Debug, Clone, PartialEq)]
pub struct Parsed {
    /// The tree; whole where there are no errors.
    pub query: ast::Query,
    /// In the order of the text. Only the first of many.
    pub errors: Vec<SyntaxError>,
}

impl Parsed {
    /// The whole tree, or what is wrong with the text.
    pub fn into_result(self) -> Result<ast::Query, Vec<SyntaxError>> {
        if self.errors.is_empty() { Ok(self.query) } else { Err(self.errors) }
    }
}

/// Parses a query.
///
/// ```
/// # use querent_engine::kql;
/// let parsed = kql::parse("T | where a == | take 5");
/// assert_eq!(parsed.errors[0].message, "expected an expression, found `|`");
/// assert_eq!(kql::parse("T | take 5").errors, []);
/// ```
pub fn parse(text: &str) -> Parsed {
    parse::parse(text)
}
