//! A query and its statements.

use super::{Expr, Literal, Name, ParameterValue, ScalarType};
use crate::span::Span;

/// A whole text: statements separated by `;`.
#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    /// In order.
    pub statements: Vec<Statement>,
    /// Where.
    pub span: Span,
}

/// A statement.
#[derive(Debug, Clone, PartialEq)]
pub struct Statement {
    /// What it is.
    pub kind: StatementKind,
    /// Where.
    pub span: Span,
}

/// The kinds of statements.
#[derive(Debug, Clone, PartialEq)]
pub enum StatementKind {
    /// A query, or the result of a function.
    Expression(Expr),
    /// `let name = value`.
    Let {
        /// The name.
        name: Name,
        /// A scalar or a table.
        value: Expr,
    },
    /// `let name = (parameters) { body }`.
    LetFunction {
        /// The name.
        name: Name,
        /// The function.
        function: Box<Function>,
    },
    /// `set option = value`.
    Set {
        /// The option.
        name: Name,
        /// Its value, if it has one.
        value: Option<ParameterValue>,
    },
    /// `declare query_parameters (...)`.
    QueryParameters(Vec<Parameter>),
    /// `declare pattern`.
    Pattern(Box<Pattern>),
    /// `alias database name = ...`.
    AliasDatabase {
        /// The new name.
        name: Name,
        /// The database.
        database: Expr,
    },
    /// `restrict access to (...)`.
    RestrictAccess(Vec<Expr>),
    /// `.show tables`, ...: a management command, which is no query and stands alone. It is not parsed.
    Command,
    /// Could not be parsed; an error says why.
    Invalid,
}

/// A function of a `let`.
#[derive(Debug, Clone, PartialEq)]
pub struct Function {
    /// `view () { ... }`: `union *` sees it.
    pub is_view: bool,
    /// In order.
    pub parameters: Vec<Parameter>,
    /// Declarations, and at the end an expression, if there is one.
    pub body: Vec<Statement>,
    /// Where, from its parameters on.
    pub span: Span,
}

/// A parameter of a function or a query.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameter {
    /// Its name.
    pub name: Name,
    /// A scalar or a table.
    pub kind: ParameterKind,
    /// Where.
    pub span: Span,
}

/// The kinds of parameters.
#[derive(Debug, Clone, PartialEq)]
pub enum ParameterKind {
    /// `a:long = 1`.
    Scalar {
        /// The type.
        scalar_type: ScalarType,
        /// The default: a literal, and `-` before one.
        default: Option<Expr>,
    },
    /// `T:(a:long)`: a table with at least these columns; none for `T:(*)`.
    Tabular(Vec<ColumnDeclaration>),
}

/// `name:type`.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnDeclaration {
    /// The name.
    pub name: Name,
    /// The type.
    pub scalar_type: ScalarType,
    /// Where.
    pub span: Span,
}

/// `declare pattern name = ...`.
#[derive(Debug, Clone, PartialEq)]
pub struct Pattern {
    /// The name.
    pub name: Name,
    /// Absent when only the name is declared.
    pub definition: Option<PatternDefinition>,
}

/// What a pattern maps to what.
#[derive(Debug, Clone, PartialEq)]
pub struct PatternDefinition {
    /// In parentheses.
    pub parameters: Vec<ColumnDeclaration>,
    /// In brackets.
    pub path: Option<ColumnDeclaration>,
    /// In order.
    pub rules: Vec<PatternRule>,
}

/// `("a", "b").["c"] = { body }`.
#[derive(Debug, Clone, PartialEq)]
pub struct PatternRule {
    /// In parentheses.
    pub arguments: Vec<Literal>,
    /// In brackets.
    pub path: Option<Literal>,
    /// Declarations, and at the end an expression.
    pub body: Vec<Statement>,
    /// Where.
    pub span: Span,
}
