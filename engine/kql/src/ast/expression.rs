//! Expressions, scalar and tabular. Parentheses leave no node behind; an expression's span covers its own.

use super::{ColumnDeclaration, Literal, Name, OperatorParameter, Pipeline};
use crate::span::Span;

/// An expression.
#[derive(Debug, Clone, PartialEq)]
pub struct Expr {
    /// What it is.
    pub kind: ExprKind,
    /// Where.
    pub span: Span,
}

/// The kinds of expressions.
#[derive(Debug, Clone, PartialEq)]
pub enum ExprKind {
    /// `1`, `"a"`, `datetime(2020-01-01)`, ...
    Literal(Literal),
    /// A column, table, function or variable.
    Name(Name),
    /// `*`, where an operator or a function takes it.
    Star,
    /// `T*` or `database('d').T*`.
    Wildcard {
        /// What stands before the dot.
        base: Option<Box<Expr>>,
        /// The name with its `*`.
        pattern: String,
    },
    /// `base.name`, `base.['name']` where the base is a table or a database.
    Member {
        /// What stands before the dot.
        base: Box<Expr>,
        /// What stands after it.
        name: Name,
    },
    /// `base[index]`.
    Element {
        /// What stands before the bracket.
        base: Box<Expr>,
        /// What stands inside.
        index: Box<Expr>,
    },
    /// `f(a, b)`, `database('d').f(a)`.
    Call(Box<FunctionCall>),
    /// `-a`.
    Unary {
        /// Which.
        operator: UnaryOperator,
        /// Of what.
        operand: Box<Expr>,
    },
    /// `a + b`, `a has b`.
    Binary {
        /// Which.
        operator: BinaryOperator,
        /// Where the operator itself stands.
        operator_span: Span,
        /// What stands before it.
        left: Box<Expr>,
        /// What stands after it.
        right: Box<Expr>,
    },
    /// `a and b and c`: all of a chain.
    Logical {
        /// Which.
        operator: LogicalOperator,
        /// Two or more.
        operands: Vec<Expr>,
    },
    /// `a in (b, c)`, `a has_any (b)`.
    List {
        /// Which.
        operator: ListOperator,
        /// Where the operator itself stands.
        operator_span: Span,
        /// What is looked for.
        value: Box<Expr>,
        /// Where: scalars, or one table.
        list: Vec<Expr>,
    },
    /// `a between (low .. high)`, both included.
    Between {
        /// `!between`.
        negated: bool,
        /// What is looked at.
        value: Box<Expr>,
        /// The lower bound.
        low: Box<Expr>,
        /// The upper bound.
        high: Box<Expr>,
    },
    /// `T | where a`, `print 1`, `union A, B`.
    Pipeline(Box<Pipeline>),
    /// `toscalar(T | count)`, `materialize(T)`.
    Subquery {
        /// Which.
        function: SubqueryFunction,
        /// Of what.
        body: Box<Expr>,
    },
    /// `datatable(a:long)[1, 2]`.
    DataTable(Box<DataTable>),
    /// `externaldata(a:long)["https://..."]`, `inline_external_table(a:long) kind=storage dataformat=csv ("https://...")`.
    ExternalData(Box<ExternalData>),
    /// `entity_group [database('a'), database('b')]`.
    EntityGroup(Vec<Expr>),
    /// Could not be parsed; an error says why.
    Invalid,
}

/// A function call.
#[derive(Debug, Clone, PartialEq)]
pub struct FunctionCall {
    /// What stands before the dot in `database('d').f()`.
    pub target: Option<Expr>,
    /// The function.
    pub function: Name,
    /// In order, some of them named.
    pub arguments: Vec<NamedExpr>,
}

/// An expression with the names it is given: `a = f(b)`, `(a, b) = f(c)`, `f(b)`.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedExpr {
    /// The names.
    pub names: Names,
    /// What is named.
    pub expr: Expr,
    /// Where, names included.
    pub span: Span,
}

/// The names that an expression is given.
#[derive(Debug, Clone, PartialEq)]
pub enum Names {
    /// None.
    Unnamed,
    /// `a = ...`.
    One(Name),
    /// `(a, b) = ...`.
    Several(Vec<Name>),
}

/// Operators before an operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum UnaryOperator {
    /// `-`.
    Minus,
    /// `+`.
    Plus,
}

/// `and` and `or`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LogicalOperator {
    /// `and`.
    And,
    /// `or`.
    Or,
}

/// Operators between two operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "plan", derive(serde::Serialize, serde::Deserialize))]
pub enum BinaryOperator {
    /// `+`.
    Add,
    /// `-`.
    Subtract,
    /// `*`.
    Multiply,
    /// `/`.
    Divide,
    /// `%`.
    Modulo,
    /// `==`.
    Equal,
    /// `!=`, `<>`.
    NotEqual,
    /// `<`.
    Less,
    /// `<=`.
    LessOrEqual,
    /// `>`.
    Greater,
    /// `>=`.
    GreaterOrEqual,
    /// `=~`.
    EqualIgnoreCase,
    /// `!~`.
    NotEqualIgnoreCase,
    /// `has`, `!startswith_cs`, ...
    Text(TextMatch),
    /// `matches regex`.
    MatchesRegex,
    /// `column:"term"` of `search`.
    SearchTerm,
}

/// Operators that compare texts in parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "plan", derive(serde::Serialize, serde::Deserialize))]
pub struct TextMatch {
    /// How.
    pub kind: TextMatchKind,
    /// `!has`.
    pub negated: bool,
    /// `has_cs`.
    pub case_sensitive: bool,
}

/// How texts are compared in parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "plan", derive(serde::Serialize, serde::Deserialize))]
pub enum TextMatchKind {
    /// Anywhere.
    Contains,
    /// At the end.
    EndsWith,
    /// A whole term.
    Has,
    /// A term's start.
    HasPrefix,
    /// A term's end.
    HasSuffix,
    /// With `*` and `?` for any characters; old.
    Like,
    /// At the start.
    StartsWith,
}

/// Operators between a scalar and a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "plan", derive(serde::Serialize, serde::Deserialize))]
pub enum ListOperator {
    /// `in`, `!in`, `in~`, `!in~`.
    In {
        /// `!in`.
        negated: bool,
        /// `in~`.
        ignore_case: bool,
    },
    /// `has_any`.
    HasAny,
    /// `has_all`.
    HasAll,
}

/// Functions of a whole query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SubqueryFunction {
    /// `toscalar`: the first value.
    ToScalar,
    /// `totable`.
    ToTable,
    /// `materialize`: computed once.
    Materialize,
}

/// A table written out.
#[derive(Debug, Clone, PartialEq)]
pub struct DataTable {
    /// Between `datatable` and the columns.
    pub parameters: Vec<OperatorParameter>,
    /// The columns.
    pub columns: Vec<ColumnDeclaration>,
    /// Row by row: literals, and `-` before one.
    pub values: Vec<Expr>,
}

/// A table read from files.
#[derive(Debug, Clone, PartialEq)]
pub struct ExternalData {
    /// Between `externaldata` and the columns, or behind those of `inline_external_table`.
    pub parameters: Vec<OperatorParameter>,
    /// The columns.
    pub columns: Vec<ColumnDeclaration>,
    /// Where the files are.
    pub locations: Vec<Expr>,
    /// `with (format = "csv")`.
    pub properties: Vec<Property>,
}

/// A property in a `with (...)`.
#[derive(Debug, Clone, PartialEq)]
pub struct Property {
    /// Its name.
    pub name: Name,
    /// One value, but for lists of columns.
    pub values: Vec<Expr>,
    /// Where.
    pub span: Span,
}
