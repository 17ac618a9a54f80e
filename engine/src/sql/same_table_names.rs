//! Tables of one name in one statement, such as `s1.t` and `s2.t`, or `t` beside `s1.t`. The planner takes a name with fewer parts
//! for any that ends with it, and of several the first: what it would mistake is refused, with what to write instead.

use std::ops::ControlFlow;

use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    self, Expr, FromTable, Ident, JoinConstraint, JoinOperator, ObjectNamePart, Select, TableFactor, TableWithJoins,
    UpdateTableFromKind, Visit, Visitor,
};

use super::syntax::relation_name;
use crate::error::{EngineError, Result};
use crate::identifiers::same_name;

/// Refuses references that could be to several tables of one name. Errors: `sql_plan_error`.
pub(super) fn check_table_names(statement: &Statement) -> Result<()> {
    match statement {
        Statement::Statement(statement) => match statement.visit(&mut TableNames { scopes: Vec::new() }) {
            ControlFlow::Break(error) => Err(error),
            ControlFlow::Continue(()) => Ok(()),
        },
        Statement::Explain(explain) => check_table_names(&explain.statement),
        Statement::CopyTo(_) | Statement::CreateExternalTable(_) | Statement::Reset(_) => Ok(()),
    }
}

/// The parts of a name that a relation's columns can be qualified with.
type NameParts = Vec<String>;

struct TableNames {
    /// The relations of each SELECT around, the innermost last.
    scopes: Vec<Vec<NameParts>>,
}

impl Visitor for TableNames {
    type Break = EngineError;

    fn pre_visit_statement(&mut self, statement: &ast::Statement) -> ControlFlow<EngineError> {
        let mut relations = Vec::new();
        match statement {
            ast::Statement::Update(update) => {
                collect(std::slice::from_ref(&update.table), &mut relations);
                if let Some(UpdateTableFromKind::BeforeSet(from) | UpdateTableFromKind::AfterSet(from)) = &update.from {
                    collect(from, &mut relations);
                }
            }
            ast::Statement::Delete(delete) => {
                let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = &delete.from;
                collect(from, &mut relations);
                collect(delete.using.as_deref().unwrap_or_default(), &mut relations);
            }
            _ => {}
        }
        // The table that is changed is known by the last part of its name.
        flow(check_scope(&relations, is_twin))
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<EngineError> {
        let mut relations = Vec::new();
        collect(&select.from, &mut relations);
        let is_end = |name: &NameParts, other: &NameParts| name.len() != other.len() && is_twin(name, other);
        let checked = check_scope(&relations, is_end).and_then(|()| check_merged(&select.from, &relations));
        self.scopes.push(relations);
        flow(checked)
    }

    fn post_visit_select(&mut self, _select: &Select) -> ControlFlow<EngineError> {
        self.scopes.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<EngineError> {
        let (Expr::CompoundIdentifier(parts), Some((own, around))) = (expr, self.scopes.split_last()) else {
            return ControlFlow::Continue(());
        };
        match parts.as_slice() {
            [table, _] => flow(check_short(table, own, expr)),
            [database, table, _, ..] => flow(check_long(database, table, own, around, expr)),
            _ => ControlFlow::Continue(()),
        }
    }
}

fn flow(result: Result<()>) -> ControlFlow<EngineError> {
    match result {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => ControlFlow::Break(error),
    }
}

/// Adds the names of the relations of a FROM clause.
fn collect(from: &[TableWithJoins], relations: &mut Vec<NameParts>) {
    for tables in from {
        let joined = tables.joins.iter().map(|join| &join.relation);
        for relation in std::iter::once(&tables.relation).chain(joined) {
            match relation {
                TableFactor::NestedJoin { table_with_joins, alias: None } => {
                    collect(std::slice::from_ref(table_with_joins.as_ref()), relations);
                }
                TableFactor::Table { name, alias: None, args: None, .. } => {
                    let parts = name.0.iter().filter_map(ObjectNamePart::as_ident).map(|part| part.value.clone());
                    relations.push(parts.collect());
                }
                other => relations.extend(relation_name(other).map(|name| vec![name])),
            }
        }
    }
}

/// Refuses relations that are mistaken for each other.
fn check_scope(relations: &[NameParts], is_mistaken: impl Fn(&NameParts, &NameParts) -> bool) -> Result<()> {
    for (index, relation) in relations.iter().enumerate() {
        if let Some(other) = relations[index + 1..].iter().find(|other| is_mistaken(relation, other)) {
            let (first, second) = (relation.join("."), other.join("."));
            return Err(wrong(format!(
                "`{first}` and `{second}` have one name in this query; give one of them an alias, such as {second} AS other"
            )));
        }
    }
    Ok(())
}

/// Refuses joins by the names of columns of more than two relations, of which some have one name.
fn check_merged(from: &[TableWithJoins], relations: &[NameParts]) -> Result<()> {
    let merges = |join: &ast::Join| match &join.join_operator {
        JoinOperator::Join(constraint)
        | JoinOperator::Inner(constraint)
        | JoinOperator::Left(constraint)
        | JoinOperator::LeftOuter(constraint)
        | JoinOperator::Right(constraint)
        | JoinOperator::RightOuter(constraint)
        | JoinOperator::FullOuter(constraint) => {
            matches!(constraint, JoinConstraint::Using(_) | JoinConstraint::Natural)
        }
        _ => false,
    };
    let twin = relations
        .iter()
        .enumerate()
        .find(|(index, name)| relations[index + 1..].iter().any(|other| is_twin(name, other)));
    match twin {
        Some((_, name)) if relations.len() > 2 && from.iter().flat_map(|tables| &tables.joins).any(merges) => {
            Err(wrong(format!(
                "USING and NATURAL join several tables whose name is the last part of `{}`; give each of them an alias",
                name.join(".")
            )))
        }
        _ => Ok(()),
    }
}

/// Refuses `t.a` of two relations whose names end with `t`.
fn check_short(table: &Ident, own: &[NameParts], expr: &Expr) -> Result<()> {
    let mut named = own.iter().filter(|name| name.last().is_some_and(|last| same_name(last, &table.value)));
    match (named.next(), named.next()) {
        (Some(first), Some(second)) => Err(wrong(format!(
            "`{expr}` could be of `{}` or of `{}`; write it with the database, or give the tables aliases",
            first.join("."),
            second.join(".")
        ))),
        _ => Ok(()),
    }
}

/// Refuses `d.t.a` of a query further out, where the query itself has a relation `t`.
fn check_long(
    database: &Ident,
    table: &Ident,
    own: &[NameParts],
    around: &[Vec<NameParts>],
    expr: &Expr,
) -> Result<()> {
    let is_meant = |name: &NameParts| match name.as_slice() {
        [.., qualifier, last] => same_name(qualifier, &database.value) && same_name(last, &table.value),
        _ => false,
    };
    let is_short = |name: &NameParts| matches!(name.as_slice(), [only] if same_name(only, &table.value));
    if own.iter().any(is_short) && !own.iter().any(is_meant) && around.iter().flatten().any(is_meant) {
        return Err(wrong(format!(
            "`{expr}` is of a query around one that has a `{}` of its own; give one of the two an alias",
            table.value
        )));
    }
    Ok(())
}

/// Returns whether two names have one last part.
fn is_twin(name: &NameParts, other: &NameParts) -> bool {
    matches!((name.last(), other.last()), (Some(name), Some(other)) if same_name(name, other))
}

fn wrong(message: String) -> EngineError {
    EngineError::Plan { message }
}
