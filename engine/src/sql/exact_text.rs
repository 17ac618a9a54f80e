//! Syntax written as text that is read as the same syntax again.
//!
//! The parser's own way of writing takes a quote that stands beside another one, or behind a backslash, for one that is escaped
//! already. A text such as `\' OR true --` would end where it should not, and what is behind it would become syntax.

use std::fmt::Display;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{Value, ValueWithSpan, VisitMut, VisitorMut};

/// Returns the text of a part of a statement.
pub(super) fn exact_text<T: VisitMut + Clone + Display>(part: &T) -> String {
    let mut part = part.clone();
    double_quotes(&mut part);
    part.to_string()
}

/// Doubles the quotes in all texts of a part of a statement, which is to be written and nothing else: quotes in pairs are written as
/// they are.
pub(super) fn double_quotes(part: &mut impl VisitMut) {
    let _: ControlFlow<()> = part.visit(&mut DoubledQuotes);
}

struct DoubledQuotes;

impl VisitorMut for DoubledQuotes {
    type Break = ();

    fn pre_visit_value(&mut self, value: &mut ValueWithSpan) -> ControlFlow<()> {
        if let Value::SingleQuotedString(text) | Value::NationalStringLiteral(text) = &mut value.value {
            *text = text.replace('\'', "''");
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use datafusion::sql::sqlparser::ast::Expr;
    use datafusion::sql::sqlparser::parser::Parser;

    use super::*;
    use crate::sql::dialect::SqlDialect;

    fn parsed(text: &str) -> Expr {
        Parser::new(&SqlDialect).try_with_sql(text).unwrap().parse_expr().unwrap()
    }

    #[test]
    fn texts_are_read_again_as_they_were() {
        let values =
            ["", "a", "'", "''", "'''", "\\", "\\'", "\\''", "\\'''", "'\\'", "a\\'b'c''", "\\' || 1 || '", "é''"];
        for value in values {
            for prefix in ["", "N"] {
                let expr = parsed(&format!("upper({prefix}'{}')", value.replace('\'', "''")));
                let text = exact_text(&expr);
                assert_eq!(parsed(&text), expr, "{value}: {text}");
            }
        }
    }
}
