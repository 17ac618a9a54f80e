//! The scalar operators: the operands that each takes, and the kernel that computes it. `!x` negates `x`. Both return
//! true or false even for null, except comparisons by order, `between` and logic, which can return null.

use arrow::array::{ArrayRef, AsArray};
use datafusion::error::Result;

use super::arguments::FunctionArguments;
use super::{arithmetic, comparison, dynamic, in_list, regular_expressions, string, string_operators};
use crate::ast::{BinaryOperator, ListOperator, TextMatch, TextMatchKind};
use crate::types::KqlType;

/// An operator, or an access that has no name in the language: to an element, to a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub(crate) enum ScalarOperator {
    /// `a + b`, `a has b`, ...
    Binary(BinaryOperator),
    /// `a in (b, c)`: the operand, then the list. A dynamic array in the list stands for its elements.
    List(ListOperator),
    /// `a between (b .. c)`.
    Between {
        /// `!between`.
        negated: bool,
    },
    /// `-a`.
    Negate,
    /// `a.name`, `a["name"]`: dynamic and string.
    DynamicMember,
    /// `a[0]`: dynamic and long.
    DynamicElement,
    /// `split(a, b)[0]`: two strings and a long that is not negative. The array itself is never built.
    SplitElement,
    /// The same as a string, empty if there is no such part.
    SplitText,
}

impl ScalarOperator {
    /// Returns the operator as it is written.
    pub(crate) fn name(self) -> &'static str {
        match self {
            ScalarOperator::Binary(operator) => binary_name(operator),
            ScalarOperator::List(ListOperator::In { negated, ignore_case }) => match (negated, ignore_case) {
                (false, false) => "in",
                (true, false) => "!in",
                (false, true) => "in~",
                (true, true) => "!in~",
            },
            ScalarOperator::List(ListOperator::HasAny) => "has_any",
            ScalarOperator::List(ListOperator::HasAll) => "has_all",
            ScalarOperator::Between { negated: false } => "between",
            ScalarOperator::Between { negated: true } => "!between",
            ScalarOperator::Negate => "negate",
            ScalarOperator::DynamicMember => "member",
            ScalarOperator::DynamicElement => "element",
            ScalarOperator::SplitElement => "split_element",
            ScalarOperator::SplitText => "split_text",
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

/// Returns the type of the result for these operands, or what is wrong with them.
pub(super) fn check(operator: ScalarOperator, types: &[KqlType]) -> std::result::Result<KqlType, String> {
    let operands = |least: usize, most: usize| {
        let name = operator.name();
        if (least..=most).contains(&types.len()) { Ok(()) } else { Err(format!("{name} takes {least} operands")) }
    };
    match operator {
        ScalarOperator::Binary(binary) => {
            operands(2, 2)?;
            let [left, right] = [types[0], types[1]];
            check_binary(binary, left, right)
        }
        ScalarOperator::List(list) => {
            operands(1, usize::MAX)?;
            let is_of_text = !matches!(list, ListOperator::In { ignore_case: false, .. });
            if is_of_text && !is_textual(types[0]) {
                return Err(mismatch(operator.name(), &types[..1]));
            }
            Ok(KqlType::Bool)
        }
        ScalarOperator::Between { .. } => {
            operands(3, 3)?;
            let below = comparison::has_order(types[0], types[1]);
            let span = types[0] == KqlType::DateTime && types[2] == KqlType::TimeSpan;
            let above = span || comparison::has_order(types[0], types[2]);
            if below && above { Ok(KqlType::Bool) } else { Err(mismatch("between", types)) }
        }
        ScalarOperator::Negate => {
            operands(1, 1)?;
            arithmetic::negated(types[0]).ok_or_else(|| mismatch("-", types))
        }
        ScalarOperator::DynamicMember | ScalarOperator::DynamicElement => operands(2, 2).map(|()| KqlType::Dynamic),
        ScalarOperator::SplitElement => operands(3, 3).map(|()| KqlType::Dynamic),
        ScalarOperator::SplitText => operands(3, 3).map(|()| KqlType::String),
    }
}

fn check_binary(operator: BinaryOperator, left: KqlType, right: KqlType) -> std::result::Result<KqlType, String> {
    let wrong = || mismatch(binary_name(operator), &[left, right]);
    match operator {
        BinaryOperator::Add
        | BinaryOperator::Subtract
        | BinaryOperator::Multiply
        | BinaryOperator::Divide
        | BinaryOperator::Modulo => arithmetic::result_type(operator, left, right).ok_or_else(wrong),
        BinaryOperator::Equal | BinaryOperator::NotEqual => {
            comparison::equality_domain(left, right).map(|_| KqlType::Bool).ok_or_else(wrong)
        }
        BinaryOperator::Less
        | BinaryOperator::LessOrEqual
        | BinaryOperator::Greater
        | BinaryOperator::GreaterOrEqual => {
            if comparison::has_order(left, right) {
                Ok(KqlType::Bool)
            } else {
                Err(wrong())
            }
        }
        BinaryOperator::EqualIgnoreCase
        | BinaryOperator::NotEqualIgnoreCase
        | BinaryOperator::Text(_)
        | BinaryOperator::MatchesRegex
        | BinaryOperator::SearchTerm => {
            if is_textual(left) && is_textual(right) {
                Ok(KqlType::Bool)
            } else {
                Err(wrong())
            }
        }
    }
}

/// Whether operators of text take a value of this type.
fn is_textual(kql_type: KqlType) -> bool {
    matches!(kql_type, KqlType::String | KqlType::Dynamic)
}

fn mismatch(name: &str, types: &[KqlType]) -> String {
    let types: Vec<&str> = types.iter().map(|kql_type| kql_type.name()).collect();
    format!("{name} does not take {}; convert them first", types.join(" and "))
}

/// Computes a batch.
pub(super) fn evaluate(operator: ScalarOperator, arguments: &FunctionArguments) -> Result<ArrayRef> {
    match operator {
        ScalarOperator::Binary(binary) => evaluate_binary(binary, arguments),
        ScalarOperator::List(ListOperator::In { negated, ignore_case }) => {
            in_list::is_in(arguments, ignore_case).and_then(|array| negated_if(negated, array))
        }
        ScalarOperator::List(ListOperator::HasAny) => string_operators::has_any(arguments),
        ScalarOperator::List(ListOperator::HasAll) => string_operators::has_all(arguments),
        ScalarOperator::Between { negated } => {
            comparison::between(arguments).and_then(|array| negated_if(negated, array))
        }
        ScalarOperator::Negate => arithmetic::negate(arguments),
        ScalarOperator::DynamicMember => dynamic::member(arguments),
        ScalarOperator::DynamicElement => dynamic::element(arguments),
        ScalarOperator::SplitElement => string::split_element(arguments),
        ScalarOperator::SplitText => string::split_text(arguments),
    }
}

fn evaluate_binary(operator: BinaryOperator, arguments: &FunctionArguments) -> Result<ArrayRef> {
    match operator {
        BinaryOperator::Add
        | BinaryOperator::Subtract
        | BinaryOperator::Multiply
        | BinaryOperator::Divide
        | BinaryOperator::Modulo => arithmetic::compute(operator, arguments),
        BinaryOperator::Equal
        | BinaryOperator::NotEqual
        | BinaryOperator::Less
        | BinaryOperator::LessOrEqual
        | BinaryOperator::Greater
        | BinaryOperator::GreaterOrEqual => comparison::compare(operator, arguments),
        BinaryOperator::EqualIgnoreCase => string_operators::equal_ignore_case(arguments),
        BinaryOperator::NotEqualIgnoreCase => {
            string_operators::equal_ignore_case(arguments).and_then(|array| negated_if(true, array))
        }
        BinaryOperator::Text(text) => {
            string_operators::matches(arguments, text).and_then(|array| negated_if(text.negated, array))
        }
        BinaryOperator::MatchesRegex => regular_expressions::is_match(arguments),
        BinaryOperator::SearchTerm => {
            let has = TextMatch { kind: TextMatchKind::Has, negated: false, case_sensitive: false };
            string_operators::matches(arguments, has)
        }
    }
}

fn negated_if(negated: bool, array: ArrayRef) -> Result<ArrayRef> {
    if !negated {
        return Ok(array);
    }
    Ok(std::sync::Arc::new(arrow::compute::not(array.as_boolean())?))
}
