//! `search`: terms in any string column, and predicates. The table's name comes first in the result.

use datafusion::logical_expr::{Expr as PlanExpr, lit};

use super::columns::matches;
use super::{Column, Relation};
use crate::ast::{
    BinaryOperator, Expr, ExprKind, Literal, LogicalOperator, NamePattern, Operator, ParameterValue, Search, TextMatch,
    TextMatchKind,
};
use crate::bind::{
    BindErrorCode, Binder, Environment, ExpressionScope, Result, Typed, fail, invalid, joined_conditions,
};
use crate::functions::ScalarOperator;
use crate::span::Span;
use crate::types::KqlType;

/// The columns that a condition of `search` or `find` refers to.
pub(super) struct Searched<'s> {
    /// The columns in which terms without a column are searched.
    pub(super) terms: &'s [Column],
    /// The columns that may be named.
    pub(super) columns: &'s [Column],
    pub(super) case_sensitive: bool,
}

/// The result's first column.
const TABLE_COLUMN: &str = "$table";

fn is_case_sensitive(operator: &Operator) -> bool {
    operator
        .parameter("kind")
        .is_some_and(|kind| matches!(&kind.value, ParameterValue::Name(name) if name.text == "case_sensitive"))
}

impl<'a> Binder<'a> {
    /// `search in (T, U) "term"`, and `search "term"` over all tables. Each row has the name of its table.
    pub(super) fn search_tables(
        &mut self,
        search: &'a Search,
        operator: &'a Operator,
        environment: &Environment<'a>,
    ) -> Result<Relation> {
        let mut sources = Vec::with_capacity(search.sources.len());
        if search.sources.is_empty() {
            self.add_matching(&mut sources, None, "*", operator.span, environment)?;
        }
        for source in &search.sources {
            self.add_tables(&mut sources, source, false, environment)?;
        }
        if sources.is_empty() {
            return fail(BindErrorCode::UnknownTable, operator.span, "there is no table to search");
        }
        let mut named = Vec::with_capacity(sources.len());
        for source in sources {
            named.push(self.with_table_name(source)?);
        }
        let united = self.united(named, &[])?;
        let own: Vec<Column> = united.columns.iter().filter(|column| column.name != TABLE_COLUMN).cloned().collect();
        let searched = Searched { terms: &own, columns: &own, case_sensitive: is_case_sensitive(operator) };
        let predicate = self.search_predicate(&search.predicate, &searched, environment)?;
        self.filtered(united, predicate)
    }

    fn with_table_name(&mut self, input: Relation) -> Result<Relation> {
        let name = match &input.name {
            Some(name) if !input.is_variable => name.clone(),
            _ => "search_arg0".to_owned(),
        };
        let mut outputs = vec![(TABLE_COLUMN.to_owned(), Typed::text(name))];
        outputs.extend(input.columns.iter().map(Column::output));
        self.projected(input, outputs)
    }

    pub(super) fn search_rows(
        &mut self,
        input: Relation,
        search: &'a Search,
        operator: &'a Operator,
        environment: &Environment<'a>,
    ) -> Result<Relation> {
        let own: Vec<Column> = input.columns.iter().filter(|column| column.name != TABLE_COLUMN).cloned().collect();
        let searched = Searched { terms: &own, columns: &input.columns, case_sensitive: is_case_sensitive(operator) };
        let predicate = self.search_predicate(&search.predicate, &searched, environment)?;
        let is_named = own.len() < input.columns.len();
        let found = self.filtered(input, predicate)?;
        // A search of what a search found keeps the names of the tables.
        if is_named { Ok(found) } else { self.with_table_name(found) }
    }

    pub(super) fn search_predicate(
        &mut self,
        predicate: &'a Expr,
        searched: &Searched<'_>,
        environment: &Environment<'a>,
    ) -> Result<PlanExpr> {
        match &predicate.kind {
            ExprKind::Star => Ok(lit(true)),
            ExprKind::Literal(Literal::String(term)) => {
                self.term_in(searched.terms, term, searched.case_sensitive, predicate.span)
            }
            ExprKind::Logical { operator, operands } => {
                let mut all = Vec::with_capacity(operands.len());
                for operand in operands {
                    all.push(self.search_predicate(operand, searched, environment)?);
                }
                Ok(joined_conditions(*operator, all))
            }
            ExprKind::Call(call) if call.function.text == "not" && call.arguments.len() == 1 => {
                match call.arguments.first() {
                    Some(argument) => {
                        let condition = self.search_predicate(&argument.expr, searched, environment)?;
                        Ok(PlanExpr::Not(Box::new(condition)))
                    }
                    None => invalid(predicate.span, "`not` takes one condition"),
                }
            }
            ExprKind::Binary { operator: BinaryOperator::SearchTerm, left, right, .. } => {
                let ExprKind::Literal(Literal::String(term)) = &right.kind else {
                    return invalid(right.span, "expected a term");
                };
                let columns: Vec<Column> = match &left.kind {
                    ExprKind::Name(name) => {
                        searched.columns.iter().filter(|it| it.name == name.text).cloned().collect()
                    }
                    ExprKind::Wildcard { base: None, pattern } => {
                        let pattern = NamePattern { text: pattern.clone(), wildcard: true, span: left.span };
                        searched.columns.iter().filter(|it| matches(&pattern, &it.name)).cloned().collect()
                    }
                    _ => searched.terms.to_vec(),
                };
                self.term_in(&columns, term, searched.case_sensitive, predicate.span)
            }
            ExprKind::Binary { operator: BinaryOperator::Text(text), left, right, .. }
                if searched.case_sensitive && !matches!(left.kind, ExprKind::Star) =>
            {
                let scope = ExpressionScope::over_columns(environment, searched.columns);
                let sides = vec![self.scalar(left, &scope)?, self.scalar(right, &scope)?];
                let exact = BinaryOperator::Text(TextMatch { case_sensitive: true, ..*text });
                Ok(self.apply_operator(ScalarOperator::Binary(exact), sides, predicate.span)?.expr)
            }
            _ => self.predicate(predicate, &ExpressionScope::over_columns(environment, searched.columns)),
        }
    }

    /// Returns whether a term, which may have `*` in it, is in any of the columns.
    fn term_in(&mut self, columns: &[Column], term: &str, case_sensitive: bool, span: Span) -> Result<PlanExpr> {
        if term.trim_matches('*').contains('*') {
            let pattern = Typed::text(term_pattern(term, case_sensitive));
            return self.found_in(columns, BinaryOperator::MatchesRegex, &pattern, span);
        }
        let kind = match (term.strip_prefix('*').is_some(), term.strip_suffix('*').is_some()) {
            (false, false) => TextMatchKind::Has,
            (false, true) => TextMatchKind::HasPrefix,
            (true, false) => TextMatchKind::HasSuffix,
            (true, true) => TextMatchKind::Contains,
        };
        let bare = term.trim_matches('*');
        if bare.is_empty() {
            return Ok(lit(true));
        }
        let operator = BinaryOperator::Text(TextMatch { kind, negated: false, case_sensitive });
        self.found_in(columns, operator, &Typed::text(bare), span)
    }

    /// Returns whether an operator holds between any of the columns, as a text, and what is wanted.
    fn found_in(
        &mut self,
        columns: &[Column],
        operator: BinaryOperator,
        wanted: &Typed,
        span: Span,
    ) -> Result<PlanExpr> {
        let mut each = Vec::with_capacity(columns.len());
        for column in columns {
            let text = self.convert(column.typed(), KqlType::String, span)?;
            each.push(self.apply_operator(ScalarOperator::Binary(operator), vec![text, wanted.clone()], span)?.expr);
        }
        Ok(if each.is_empty() { lit(false) } else { joined_conditions(LogicalOperator::Or, each) })
    }
}

/// Returns the regular expression of a term with `*` between its letters: each stands for any text. Where the term has
/// none at an end, it begins or ends there as terms of `has` do, which letters and digits make.
fn term_pattern(term: &str, case_sensitive: bool) -> String {
    let parts: Vec<String> = term.trim_matches('*').split('*').map(regex::escape).collect();
    let flags = if case_sensitive { "(?s)" } else { "(?si)" };
    let begins = term.starts_with(char::is_alphanumeric);
    let ends = term.ends_with(char::is_alphanumeric);
    let before = if begins { r"(?:^|[^\p{Alphabetic}\p{N}])" } else { "" };
    let behind = if ends { r"(?:$|[^\p{Alphabetic}\p{N}])" } else { "" };
    format!("{flags}{before}{}{behind}", parts.join(".*"))
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test has a runtime of its own")]
mod tests {
    use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
    use datafusion::prelude::SessionContext;

    use super::*;
    use crate::KqlParameters;

    fn depth(expr: &PlanExpr) -> usize {
        let mut below = 0;
        expr.apply_children(|child| {
            below = below.max(depth(child));
            Ok(TreeNodeRecursion::Continue)
        })
        .unwrap();
        below + 1
    }

    /// Plans are walked again and again, and each walk of a chain costs its length squared.
    #[tokio::test]
    async fn a_term_in_many_columns_is_a_low_tree() {
        let columns: Vec<String> = (0..64).map(|number| format!("c{number}:string")).collect();
        let query = format!("datatable({})[] | search 'x' or 'y'", columns.join(", "));
        let planned = crate::plan(&SessionContext::new().state(), &query, &KqlParameters::new()).await.unwrap();
        let mut deepest = 0;
        planned
            .plan
            .apply(|node| {
                deepest = node.expressions().iter().map(depth).fold(deepest, usize::max);
                Ok(TreeNodeRecursion::Continue)
            })
            .unwrap();
        assert!((8..24).contains(&deepest), "{deepest}");
    }

    #[test]
    fn a_star_within_a_term_is_any_text() {
        let matches = |term, text| regex::Regex::new(&term_pattern(term, false)).unwrap().is_match(text);
        for (term, text, is_there) in [
            ("Lab*PC", "the lab1 pc", true),
            ("Lab*PC", "a_Lab\nPC_b", true),
            ("Lab*PC", "labs1 pcs", false),
            ("Lab*PC", "collab pc", false),
            ("*Lab*PC*", "collab pcs", true),
            ("a.b**c", "a.b c", true),
            ("a.b**c", "axb c", false),
        ] {
            assert_eq!(matches(term, text), is_there, "{term} in {text}");
        }
        assert!(term_pattern("a*b", true).starts_with("(?s)"));
    }
}
