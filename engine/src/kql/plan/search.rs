//! `search`: terms in any string column, and predicates. The table's name comes first in the result.

use datafusion::logical_expr::{Expr as PlanExpr, lit};

use super::super::ast::{
    BinaryOperator, Expr, ExprKind, Literal, LogicalOperator, NamePattern, Operator, ParameterValue, Search, TextMatch,
    TextMatchKind,
};
use super::super::bind::{Binder, Environment, Result, Scope, Typed, invalid, not_supported};
use super::super::functions::Operator as FunctionOperator;
use super::super::span::Span;
use super::super::types::KqlType;
use super::columns::matches;
use super::{Column, Relation};

impl<'a> Binder<'a> {
    /// `search in (T, U) "term"`.
    pub(super) fn search_tables(
        &mut self,
        search: &'a Search,
        operator: &'a Operator,
        environment: &Environment<'a>,
    ) -> Result<Relation> {
        if search.sources.is_empty() {
            return not_supported(operator.span, "`search` over all tables");
        }
        let united = self.union_of(&search.sources, &[], environment)?;
        self.search_rows(united, search, operator, environment)
    }

    pub(super) fn search_rows(
        &mut self,
        input: Relation,
        search: &'a Search,
        operator: &'a Operator,
        environment: &Environment<'a>,
    ) -> Result<Relation> {
        let case_sensitive = operator
            .parameter("kind")
            .is_some_and(|kind| matches!(&kind.value, ParameterValue::Name(name) if name.text == "case_sensitive"));
        let name = match &input.name {
            Some(name) if !input.is_variable => name.clone(),
            _ => "search_arg0".to_owned(),
        };
        let predicate = self.search_predicate(&search.predicate, &input, case_sensitive, environment)?;
        let found = self.filtered(input, predicate)?;
        let mut outputs = vec![("$table".to_owned(), Typed::new(lit(name), KqlType::String))];
        outputs.extend(found.columns.iter().map(|column| (column.name.clone(), column.typed())));
        self.projected(found, outputs)
    }

    fn search_predicate(
        &mut self,
        predicate: &'a Expr,
        input: &Relation,
        case_sensitive: bool,
        environment: &Environment<'a>,
    ) -> Result<PlanExpr> {
        match &predicate.kind {
            ExprKind::Star => Ok(lit(true)),
            ExprKind::Literal(Literal::String(term)) => {
                self.term_in(&input.columns, term, case_sensitive, predicate.span)
            }
            ExprKind::Logical { operator, operands } => {
                let mut all = Vec::with_capacity(operands.len());
                for operand in operands {
                    all.push(self.search_predicate(operand, input, case_sensitive, environment)?);
                }
                let combined = match operator {
                    LogicalOperator::And => all.into_iter().reduce(PlanExpr::and),
                    LogicalOperator::Or => all.into_iter().reduce(PlanExpr::or),
                };
                Ok(combined.unwrap_or_else(|| lit(true)))
            }
            ExprKind::Call(call) if call.function.text == "not" && call.arguments.len() == 1 => {
                match call.arguments.first() {
                    Some(argument) => Ok(PlanExpr::Not(Box::new(self.search_predicate(
                        &argument.expr,
                        input,
                        case_sensitive,
                        environment,
                    )?))),
                    None => invalid(predicate.span, "`not` takes one condition"),
                }
            }
            ExprKind::Binary { operator: BinaryOperator::SearchTerm, left, right, .. } => {
                let ExprKind::Literal(Literal::String(term)) = &right.kind else {
                    return invalid(right.span, "expected a term");
                };
                let columns: Vec<Column> = match &left.kind {
                    ExprKind::Name(name) => input.columns.iter().filter(|it| it.name == name.text).cloned().collect(),
                    ExprKind::Wildcard { base: None, pattern } => {
                        let pattern = NamePattern { text: pattern.clone(), wildcard: true, span: left.span };
                        input.columns.iter().filter(|it| matches(&pattern, &it.name)).cloned().collect()
                    }
                    _ => input.columns.clone(),
                };
                self.term_in(&columns, term, case_sensitive, predicate.span)
            }
            _ => self.predicate(predicate, &Scope::of(environment, &input.columns)),
        }
    }

    /// Whether a term, which may have `*` at its ends, is in any of the columns.
    fn term_in(&mut self, columns: &[Column], term: &str, case_sensitive: bool, span: Span) -> Result<PlanExpr> {
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
        let mut any: Option<PlanExpr> = None;
        for column in columns {
            let text = self.convert(column.typed(), KqlType::String, span)?;
            let term = Typed::new(lit(bare), KqlType::String);
            let found = self.apply_operator(FunctionOperator::Binary(operator), vec![text, term], span)?.expr;
            any = Some(match any {
                Some(before) => before.or(found),
                None => found,
            });
        }
        Ok(any.unwrap_or_else(|| lit(false)))
    }
}
