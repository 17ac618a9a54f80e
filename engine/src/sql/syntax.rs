//! What several steps need of SQL's syntax trees.

use std::ops::ControlFlow;

use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    JoinConstraint, JoinOperator, ObjectNamePart, TableFactor, VisitMut, VisitorMut,
};

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
pub(super) fn visit_statement<V: VisitorMut>(statement: &mut Statement, visitor: &mut V) {
    // A visitor here never breaks off, so what the visit returns says nothing.
    let _: ControlFlow<V::Break> = match statement {
        Statement::Statement(statement) => statement.visit(visitor),
        Statement::Explain(explain) => {
            visit_statement(&mut explain.statement, visitor);
            ControlFlow::Continue(())
        }
        Statement::CopyTo(_) | Statement::CreateExternalTable(_) | Statement::Reset(_) => ControlFlow::Continue(()),
    };
}
