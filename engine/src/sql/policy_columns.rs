//! The columns that conditions and masks of policies name, and their table, for the catalog, which keeps their texts.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{Expr, Ident, Query, VisitMut, VisitorMut};
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::Token;
use querent_catalog::policy::PolicyName;

use super::dialect::SqlDialect;
use super::exact_text::exact_text;

/// Returns an expression with other names of columns: what `renamed` returns of one takes its place. It stays as it is written
/// where nothing is renamed. `None` where it is no expression, or one with a query, whose columns are those of other tables.
pub(crate) fn with_renamed_columns(
    expression: &str,
    renamed: &dyn Fn(PolicyName, &str) -> Option<String>,
) -> Option<String> {
    let mut parser = Parser::new(&SqlDialect).try_with_sql(expression).ok()?;
    let mut parsed = parser.parse_expr().ok()?;
    if parser.peek_token().token != Token::EOF {
        return None;
    }
    let mut names = RenamedColumns { renamed, is_changed: false };
    match VisitMut::visit(&mut parsed, &mut names) {
        ControlFlow::Break(()) => None,
        ControlFlow::Continue(()) if names.is_changed => Some(exact_text(&parsed)),
        ControlFlow::Continue(()) => Some(expression.to_owned()),
    }
}

struct RenamedColumns<'a> {
    renamed: &'a dyn Fn(PolicyName, &str) -> Option<String>,
    is_changed: bool,
}

impl RenamedColumns<'_> {
    /// Renames a column or a table; returns whether it is one that is renamed.
    fn rename(&mut self, of: PolicyName, ident: &mut Ident) -> bool {
        let Some(name) = (self.renamed)(of, &ident.value) else { return false };
        *ident = Ident::with_quote('"', name);
        self.is_changed = true;
        true
    }
}

impl VisitorMut for RenamedColumns<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, _query: &mut Query) -> ControlFlow<()> {
        ControlFlow::Break(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        match expr {
            Expr::Identifier(ident) => {
                self.rename(PolicyName::Column, ident);
            }
            // `column.part`, or `table.column`.
            Expr::CompoundIdentifier(parts) => {
                let is_first = parts.first_mut().is_some_and(|part| self.rename(PolicyName::Column, part));
                if let (false, [table, column, ..]) = (is_first, parts.as_mut_slice()) {
                    self.rename(PolicyName::Table, table);
                    self.rename(PolicyName::Column, column);
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use super::{PolicyName, with_renamed_columns};

    fn renamed(expression: &str) -> Option<String> {
        let names = [("owner", "x"), ("buyer", "owner"), ("at", "when it was")];
        with_renamed_columns(expression, &|of, column| {
            if of == PolicyName::Table {
                return (column == "orders").then(|| "sales".to_owned());
            }
            let found = names.iter().find(|(old, _)| *old == column.to_lowercase());
            found.map(|(_, new)| (*new).to_owned())
        })
    }

    #[test]
    fn columns_are_renamed_and_texts_and_functions_are_not() {
        for (expression, expected) in [
            ("owner = current_subject()", "\"x\" = current_subject()"),
            ("OWNER = 'owner' AND buyer <> 'it''s'", "\"x\" = 'owner' AND \"owner\" <> 'it''s'"),
            ("t.owner = 1 OR \"buyer\".part = 2", "t.\"x\" = 1 OR \"owner\".part = 2"),
            ("orders.owner = orders.mail", "\"sales\".\"x\" = \"sales\".mail"),
            (r"owner = '\''' OR buyer = ''''''", r#""x" = '\''' OR "owner" = ''''''"#),
            ("at < DATE '2024-01-01'", "\"when it was\" < DATE '2024-01-01'"),
            ("owner(amount)  >  1", "owner(amount)  >  1"),
        ] {
            assert_eq!(renamed(expression).as_deref(), Some(expected), "{expression}");
        }
        for unread in ["owner IN (SELECT owner FROM t)", "owner = ", "owner; DROP TABLE t"] {
            assert_eq!(renamed(unread), None, "{unread}");
        }
    }
}
