//! What several steps need of SQL's syntax trees.

use std::ops::ControlFlow;

use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    DollarQuotedString, Expr, Ident, JoinConstraint, JoinOperator, ObjectNamePart, Query, TableFactor, TableWithJoins,
    Value, ValueWithSpan, Visit, VisitMut, Visitor, VisitorMut,
};
use querent_catalog::CatalogError;

use crate::error::{EngineError, Result};
use crate::identifiers::same_name;

/// Returns the name that a relation's columns can be qualified with.
pub(super) fn relation_name(relation: &TableFactor) -> Option<String> {
    match relation {
        TableFactor::Table { alias: Some(alias), .. } | TableFactor::Derived { alias: Some(alias), .. } => {
            Some(alias.name.value.clone())
        }
        TableFactor::Table { name, alias: None, .. } => {
            name.0.last().and_then(ObjectNamePart::as_ident).map(|ident| ident.value.clone())
        }
        _ => None,
    }
}

/// Returns the relations of a FROM clause, joined ones too, as they are written.
pub(super) fn relations_of(from: &[TableWithJoins]) -> impl Iterator<Item = &TableFactor> {
    from.iter()
        .flat_map(|tables| std::iter::once(&tables.relation).chain(tables.joins.iter().map(|join| &join.relation)))
}

/// Returns whether a FROM clause has a relation of that name, or one whose name cannot be told.
pub(super) fn has_relation(from: &[TableWithJoins], name: &Ident) -> bool {
    let is_named = |relation: &TableFactor| match relation {
        TableFactor::NestedJoin { .. } => true,
        TableFactor::Derived { alias: None, .. } => false,
        other => relation_name(other).is_none_or(|own| same_name(&own, &name.value)),
    };
    relations_of(from).any(is_named)
}

/// Returns the condition of a join, where its kind has one.
pub(super) fn join_constraint(join: &mut JoinOperator) -> Option<&mut JoinConstraint> {
    match join {
        JoinOperator::Join(constraint)
        | JoinOperator::Inner(constraint)
        | JoinOperator::Left(constraint)
        | JoinOperator::LeftOuter(constraint)
        | JoinOperator::Right(constraint)
        | JoinOperator::RightOuter(constraint)
        | JoinOperator::FullOuter(constraint)
        | JoinOperator::LeftSemi(constraint)
        | JoinOperator::RightSemi(constraint)
        | JoinOperator::LeftAnti(constraint)
        | JoinOperator::RightAnti(constraint) => Some(constraint),
        _ => None,
    }
}

/// Visits a statement, or the statement that an EXPLAIN is about.
pub(super) fn visit_statement<V: VisitorMut>(statement: &mut Statement, visitor: &mut V) -> ControlFlow<V::Break> {
    match statement {
        Statement::Statement(statement) => VisitMut::visit(statement, visitor),
        Statement::Explain(explain) => visit_statement(&mut explain.statement, visitor),
        Statement::CopyTo(_) | Statement::CreateExternalTable(_) | Statement::Reset(_) => ControlFlow::Continue(()),
    }
}

/// Visits a statement, or the one that an EXPLAIN is about, and returns the error with which the visitor breaks off.
pub(super) fn try_visit_statement<V>(statement: &mut Statement, visitor: &mut V) -> Result<()>
where
    V: VisitorMut<Break = EngineError>,
{
    match visit_statement(statement, visitor) {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(()),
    }
}

/// Visits the parts of an expression from the inside out, but for those of its subqueries, which have relations of their own.
pub(super) fn visit_own_exprs<B>(
    part: &mut impl VisitMut,
    visit: impl FnMut(&mut Expr) -> ControlFlow<B>,
) -> ControlFlow<B> {
    struct OwnExprs<F> {
        visit: F,
        /// How many subqueries are around.
        depth: usize,
    }
    impl<B, F: FnMut(&mut Expr) -> ControlFlow<B>> VisitorMut for OwnExprs<F> {
        type Break = B;
        fn pre_visit_query(&mut self, _query: &mut Query) -> ControlFlow<B> {
            self.depth += 1;
            ControlFlow::Continue(())
        }
        fn post_visit_query(&mut self, _query: &mut Query) -> ControlFlow<B> {
            self.depth -= 1;
            ControlFlow::Continue(())
        }
        fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<B> {
            if self.depth == 0 { (self.visit)(expr) } else { ControlFlow::Continue(()) }
        }
    }
    part.visit(&mut OwnExprs { visit, depth: 0 })
}

/// Visits the outermost queries of a part of a statement.
pub(super) fn visit_outermost_queries<B>(
    part: &mut impl VisitMut,
    visit: impl FnMut(&mut Query) -> ControlFlow<B>,
) -> ControlFlow<B> {
    struct OutermostQueries<F> {
        visit: F,
        /// How many queries are around.
        depth: usize,
    }
    impl<B, F: FnMut(&mut Query) -> ControlFlow<B>> VisitorMut for OutermostQueries<F> {
        type Break = B;
        fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<B> {
            self.depth += 1;
            if self.depth == 1 { (self.visit)(query) } else { ControlFlow::Continue(()) }
        }
        fn post_visit_query(&mut self, _query: &mut Query) -> ControlFlow<B> {
            self.depth -= 1;
            ControlFlow::Continue(())
        }
    }
    part.visit(&mut OutermostQueries { visit, depth: 0 })
}

/// Changes the parts of an expression from the inside out, but for those of its subqueries.
pub(super) fn change_own_exprs(part: &mut impl VisitMut, mut change: impl FnMut(&mut Expr)) {
    let _: ControlFlow<()> = visit_own_exprs(part, |expr| {
        change(expr);
        ControlFlow::Continue(())
    });
}

/// Returns the name that an identifier stands for: without quotes it is folded to lower case.
pub(super) fn folded_name(ident: &Ident) -> String {
    match ident.quote_style {
        Some(_) => ident.value.clone(),
        None => ident.value.to_lowercase(),
    }
}

/// Returns the columns as their table spells them. Errors: `column_not_found`.
pub(super) fn spelled_columns(written: &[Ident], columns: &[&str], table: &str) -> Result<Vec<String>> {
    let mut found = Vec::with_capacity(written.len());
    for name in written {
        match columns.iter().find(|column| same_name(column, &name.value)) {
            Some(column) => found.push((*column).to_owned()),
            None => {
                let nearest = querent_kql::nearest_name(&name.value, columns.iter().copied()).map(str::to_owned);
                let (table, column) = (table.to_owned(), name.value.clone());
                return Err(CatalogError::ColumnNotFound { table, column, nearest }.into());
            }
        }
    }
    Ok(found)
}

/// Returns whether `holds` of any part of an expression, in its subqueries too.
pub(super) fn any_expr(expr: &Expr, holds: impl FnMut(&Expr) -> bool) -> bool {
    struct AnyFinder<F>(F);
    impl<F: FnMut(&Expr) -> bool> Visitor for AnyFinder<F> {
        type Break = ();
        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
            match (self.0)(expr) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        }
    }
    expr.visit(&mut AnyFinder(holds)).is_break()
}

/// Returns whether `holds` of any part of an expression that is in none of its subqueries.
pub(super) fn any_own_expr(expr: &Expr, holds: impl FnMut(&Expr) -> bool) -> bool {
    struct OwnFinder<F> {
        holds: F,
        /// How many subqueries are around.
        depth: usize,
    }
    impl<F: FnMut(&Expr) -> bool> Visitor for OwnFinder<F> {
        type Break = ();
        fn pre_visit_query(&mut self, _query: &Query) -> ControlFlow<()> {
            self.depth += 1;
            ControlFlow::Continue(())
        }
        fn post_visit_query(&mut self, _query: &Query) -> ControlFlow<()> {
            self.depth -= 1;
            ControlFlow::Continue(())
        }
        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
            match self.depth == 0 && (self.holds)(expr) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        }
    }
    expr.visit(&mut OwnFinder { holds, depth: 0 }).is_break()
}

/// Returns the text that an expression writes out.
pub(super) fn text_of(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(text), .. }) => Some(text),
        _ => None,
    }
}

/// Returns how many nodes expressions have; a long text counts as many.
pub(super) fn count_nodes(exprs: &[Expr]) -> usize {
    /// So many bytes of a text weigh as much as an expression.
    const TEXT_BYTES_OF_NODE: usize = 2_048;
    struct NodeCount(usize);
    impl Visitor for NodeCount {
        type Break = ();
        fn pre_visit_expr(&mut self, _expr: &Expr) -> ControlFlow<()> {
            self.0 += 1;
            ControlFlow::Continue(())
        }
        fn pre_visit_value(&mut self, value: &ValueWithSpan) -> ControlFlow<()> {
            if let Value::SingleQuotedString(text)
            | Value::EscapedStringLiteral(text)
            | Value::UnicodeStringLiteral(text)
            | Value::NationalStringLiteral(text)
            | Value::DollarQuotedString(DollarQuotedString { value: text, .. }) = &value.value
            {
                self.0 += text.len() / TEXT_BYTES_OF_NODE;
            }
            ControlFlow::Continue(())
        }
    }
    let mut count = NodeCount(0);
    for expr in exprs {
        let _: ControlFlow<()> = Visit::visit(expr, &mut count);
    }
    count.0
}
