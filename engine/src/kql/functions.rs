//! Stand-in until the functions arrive.

use std::sync::Arc;

use datafusion::logical_expr::ScalarUDF;

use super::ast::{BinaryOperator, ListOperator, TextMatch, TextMatchKind};
use super::types::KqlType;

/// A function for arguments of known types.
pub(crate) struct BoundFunction {
    pub(crate) returns: KqlType,
    pub(crate) function: Arc<ScalarUDF>,
}

/// Why there is none.
#[derive(Debug)]
pub(crate) enum FunctionError {
    Unknown { nearest: Option<String> },
    KnownToKusto,
    WrongArguments { message: String },
}

/// What a query's functions share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct FunctionContext {
    /// The query's one instant, in ticks.
    pub(crate) now_ticks: i64,
}

pub(crate) fn bind(_name: &str, _arguments: &[KqlType], _context: FunctionContext) -> Result<BoundFunction, FunctionError> {
    Err(FunctionError::Unknown { nearest: None })
}

pub(crate) fn operator(_operator: Operator, _arguments: &[KqlType]) -> Result<BoundFunction, FunctionError> {
    Err(FunctionError::KnownToKusto)
}

/// An operator, or what is written without a name: an element, a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Operator {
    /// `a + b`, `a has b`, ...
    Binary(BinaryOperator),
    /// `a in (b, c)`: the operand, then the list; a dynamic array in it stands for its elements.
    List(ListOperator),
    /// `a between (b .. c)`.
    Between {
        /// `!between`.
        negated: bool,
    },
    /// `-a`.
    Negate,
    /// `not(a)`.
    Not,
    /// `a and b`, of any number.
    And,
    /// `a or b`, of any number.
    Or,
    /// `a.name`, `a["name"]`: dynamic and string.
    DynamicMember,
    /// `a[0]`: dynamic and long.
    DynamicElement,
}

impl Operator {
    /// As it is written.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Operator::Binary(operator) => binary_name(operator),
            Operator::List(ListOperator::In { negated, ignore_case }) => match (negated, ignore_case) {
                (false, false) => "in",
                (true, false) => "!in",
                (false, true) => "in~",
                (true, true) => "!in~",
            },
            Operator::List(ListOperator::HasAny) => "has_any",
            Operator::List(ListOperator::HasAll) => "has_all",
            Operator::Between { negated: false } => "between",
            Operator::Between { negated: true } => "!between",
            Operator::Negate => "negate",
            Operator::Not => "not",
            Operator::And => "and",
            Operator::Or => "or",
            Operator::DynamicMember => "member",
            Operator::DynamicElement => "element",
        }
    }
}

fn binary_name(operator: BinaryOperator) -> &'static str {
    match operator {
        BinaryOperator::Add => "+",
        BinaryOperator::Subtract => "-",
        BinaryOperator::Multiply => "*",
        BinaryOperator::Divide => "/",
        BinaryOperator::Modulo => "%",
        BinaryOperator::Equal => "==",
        BinaryOperator::NotEqual => "!=",
        BinaryOperator::Less => "<",
        BinaryOperator::LessOrEqual => "<=",
        BinaryOperator::Greater => ">",
        BinaryOperator::GreaterOrEqual => ">=",
        BinaryOperator::EqualIgnoreCase => "=~",
        BinaryOperator::NotEqualIgnoreCase => "!~",
        BinaryOperator::Text(text) => text_name(text),
        BinaryOperator::MatchesRegex => "matches regex",
        BinaryOperator::SearchTerm => ":",
    }
}

fn text_name(text: TextMatch) -> &'static str {
    let names = match text.kind {
        TextMatchKind::Contains => ["contains", "!contains", "contains_cs", "!contains_cs"],
        TextMatchKind::EndsWith => ["endswith", "!endswith", "endswith_cs", "!endswith_cs"],
        TextMatchKind::Has => ["has", "!has", "has_cs", "!has_cs"],
        TextMatchKind::HasPrefix => ["hasprefix", "!hasprefix", "hasprefix_cs", "!hasprefix_cs"],
        TextMatchKind::HasSuffix => ["hassuffix", "!hassuffix", "hassuffix_cs", "!hassuffix_cs"],
        TextMatchKind::Like => ["like", "notlike", "likecs", "notlikecs"],
        TextMatchKind::StartsWith => ["startswith", "!startswith", "startswith_cs", "!startswith_cs"],
    };
    names[2 * usize::from(text.case_sensitive) + usize::from(text.negated)]
}

