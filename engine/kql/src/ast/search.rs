//! Operators that look for text: `search`, `find`, `parse`.

use super::{Expr, Literal, Name, ScalarType};
use crate::span::Span;

/// `search in (T) "term"`.
#[derive(Debug, Clone, PartialEq)]
pub struct Search {
    /// The tables; all, where none is named.
    pub sources: Vec<Expr>,
    /// [`Star`](super::ExprKind::Star), a term, or a predicate with terms in it.
    pub predicate: Expr,
}

/// `find in (T) where a project b`.
#[derive(Debug, Clone, PartialEq)]
pub struct Find {
    /// The tables; all, where none is named.
    pub sources: Vec<Expr>,
    /// What to find.
    pub predicate: Expr,
    /// What to return.
    pub projection: FindProjection,
}

/// What `find` returns.
#[derive(Debug, Clone, PartialEq)]
pub enum FindProjection {
    /// Not said.
    Default,
    /// `project-smart`.
    Smart,
    /// `project a, b:string, pack(*)`.
    Columns(Vec<FindColumn>),
}

/// A column that `find` returns.
#[derive(Debug, Clone, PartialEq)]
pub enum FindColumn {
    /// `a`, `a:string`.
    Column {
        /// Which.
        name: Name,
        /// As which type.
        scalar_type: Option<ScalarType>,
    },
    /// `pack(*)`: all others.
    Pack(Span),
}

/// `parse a with "x" b:long *`. Its `kind` and `flags` are the operator's parameters.
#[derive(Debug, Clone, PartialEq)]
pub struct Parse {
    /// `parse-where`: drops rows that do not match.
    pub filters: bool,
    /// The text.
    pub expr: Expr,
    /// What it is made of.
    pub pattern: Vec<ParsePart>,
}

/// A part of what a text is made of.
#[derive(Debug, Clone, PartialEq)]
pub enum ParsePart {
    /// `*`: anything.
    Skip(Span),
    /// A text, or a regular expression.
    Text {
        /// A string.
        text: Literal,
        /// Where.
        span: Span,
    },
    /// A column.
    Column {
        /// Its name.
        name: Name,
        /// `string`, where it is not said.
        scalar_type: Option<ScalarType>,
    },
}
