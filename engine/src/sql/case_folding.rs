//! Names without regard to case. DataFusion compares identifiers exactly; here `SELECT Carrier FROM FLIGHTS F`
//! finds `flights.carrier`, as in DuckDB. What is spelled exactly always wins, so a file whose columns differ
//! only in case stays readable.
//!
//! Relations are matched up front. Columns are matched when planning reports one as missing: the statement is corrected
//! to the spelling of the columns in scope ([`super::scopes`]), and planned again. A statement that is spelled as its
//! tables are costs nothing more.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use datafusion::common::{Column, SchemaError};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::LogicalPlan;
use datafusion::logical_expr::planner::ContextProvider;
use datafusion::sql::parser::Statement;
use datafusion::sql::planner::SqlToRel;
use datafusion::sql::sqlparser::ast::{
    self, CastKind, DataType, ExactNumberInfo, Expr, Ident, JoinConstraint, JoinOperator, ObjectName, ObjectNamePart,
    Query, Select, SelectItem, SelectItemQualifiedWildcardKind, TableFactor, Value, ValueWithSpan, VisitMut,
    VisitorMut,
};

use super::graph_traverse;
use super::scopes::{self, Doubt};

/// The most corrections of one statement.
const MAX_CORRECTIONS: usize = 200;

/// Plans a statement, correcting the case of column names until it plans or fails for another reason.
pub(crate) fn plan_folded<S: ContextProvider>(scope: &S, mut statement: Statement) -> Result<LogicalPlan> {
    let mut applied = Vec::new();
    loop {
        let error = match SqlToRel::new(scope).statement_to_plan(statement.clone()) {
            Ok(plan) => {
                let doubt = scopes::doubtful(&plan)?;
                if doubt.is_none() || !scopes::rebind(scope, &mut statement, &doubt)? {
                    return Ok(plan);
                }
                continue;
            }
            Err(error) => error,
        };
        if missing_field(&error).is_some() && scopes::rebind(scope, &mut statement, &Doubt::Any)? {
            continue;
        }
        // What stands in no scope (the columns of INSERT and USING) is corrected wherever it stands, once.
        match correction(&error).filter(|correction| !applied.contains(correction)) {
            Some(correction) if applied.len() < MAX_CORRECTIONS && correction.apply(&mut statement) => {
                applied.push(correction);
            }
            _ => return Err(error),
        }
    }
}

/// Gives references to common table expressions, and qualified wildcards, the spelling of what they refer to, and
/// numbers with an exponent their type.
/// Table functions of ours become the queries that they are. Errors: `sql_plan_error`.
pub(crate) fn fold_relations(statement: &mut Statement) -> crate::Result<()> {
    graph_traverse::rewrite_table_functions(statement)?;
    visit(statement, &mut RelationFolder { ctes: Vec::new() });
    Ok(())
}

struct RelationFolder {
    /// Names of the common table expressions in scope, innermost last, one entry a `WITH`.
    ctes: Vec<Vec<String>>,
}

impl VisitorMut for RelationFolder {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        let names = query.with.iter().flat_map(|with| &with.cte_tables).map(|cte| cte.alias.name.value.clone());
        self.ctes.push(names.collect());
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _query: &mut Query) -> ControlFlow<()> {
        self.ctes.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        // As the standard has it: `1.5` is a decimal, `1.5e0` a double, which the planner would make a decimal too.
        if let Expr::Value(ValueWithSpan { value: Value::Number(number, _), span }) = expr
            && number.contains(['e', 'E'])
        {
            let text = Value::SingleQuotedString(number.clone()).with_span(*span);
            *expr = Expr::Cast {
                kind: CastKind::Cast,
                expr: Box::new(Expr::Value(text)),
                data_type: DataType::Double(ExactNumberInfo::None),
                array: false,
                format: None,
            };
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_relation(&mut self, relation: &mut ObjectName) -> ControlFlow<()> {
        if let [ObjectNamePart::Identifier(ident)] = relation.0.as_mut_slice() {
            respell(ident, self.ctes.iter().rev().flatten().map(String::as_str));
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        let relations: Vec<String> = select
            .from
            .iter()
            .flat_map(|from| std::iter::once(&from.relation).chain(from.joins.iter().map(|join| &join.relation)))
            .filter_map(relation_name)
            .collect();
        for item in &mut select.projection {
            if let SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) = item
                && let [ObjectNamePart::Identifier(ident)] = name.0.as_mut_slice()
            {
                respell(ident, relations.iter().map(String::as_str));
            }
        }
        ControlFlow::Continue(())
    }
}

/// What columns of a relation can be qualified with.
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

/// Takes the first candidate's spelling that matches without regard to case, unless one matches exactly.
fn respell<'a>(ident: &mut Ident, candidates: impl Iterator<Item = &'a str>) {
    let mut folded = None;
    for candidate in candidates {
        if candidate == ident.value {
            return;
        }
        if folded.is_none() && same_name(candidate, &ident.value) {
            folded = Some(candidate.to_owned());
        }
    }
    if let Some(spelling) = folded {
        ident.value = spelling;
    }
}

/// Whether two names are one without regard to case.
pub(crate) fn same_name(left: &str, right: &str) -> bool {
    left == right || left.to_lowercase() == right.to_lowercase()
}

/// A column as written, and as it is spelled in scope.
#[derive(Debug, PartialEq, Eq)]
struct Correction {
    written: Column,
    /// The qualifier's spelling, when the column was written with one.
    table: Option<String>,
    name: String,
}

fn correction(error: &DataFusionError) -> Option<Correction> {
    let (written, valid) = missing_field(error)?;
    let qualifier = written.relation.as_ref().map(|relation| relation.table());
    let mut spellings = BTreeSet::new();
    for column in valid {
        let table = column.relation.as_ref().map(|relation| relation.table());
        let same_table = match (qualifier, table) {
            (None, _) => true,
            (Some(written), Some(table)) => same_name(written, table),
            (Some(_), None) => false,
        };
        if same_table && same_name(&column.name, &written.name) {
            spellings.insert((qualifier.and(table), column.name.as_str()));
        }
    }
    let (table, name) = spellings.pop_first()?;
    if !spellings.is_empty() || (table == qualifier && name == written.name) {
        return None;
    }
    Some(Correction { written: written.clone(), table: table.map(str::to_owned), name: name.to_owned() })
}

fn missing_field(error: &DataFusionError) -> Option<(&Column, &[Column])> {
    match error {
        DataFusionError::SchemaError(inner, _) => match inner.as_ref() {
            SchemaError::FieldNotFound { field, valid_fields } => Some((field, valid_fields)),
            _ => None,
        },
        DataFusionError::Context(_, inner) | DataFusionError::Diagnostic(_, inner) => missing_field(inner),
        DataFusionError::Collection(errors) => errors.iter().find_map(missing_field),
        _ => None,
    }
}

impl Correction {
    /// Whether anything was corrected.
    fn apply(&self, statement: &mut Statement) -> bool {
        let mut corrector = Corrector { correction: self, changed: false };
        visit(statement, &mut corrector);
        corrector.changed
    }
}

struct Corrector<'a> {
    correction: &'a Correction,
    changed: bool,
}

impl Corrector<'_> {
    fn ident(&mut self, ident: &mut Ident) {
        if self.correction.table.is_none() && ident.value == self.correction.written.name {
            ident.value = self.correction.name.clone();
            self.changed = true;
        }
    }

    fn qualified(&mut self, idents: &mut [Ident]) {
        let (Some(table), Some(relation)) = (&self.correction.table, &self.correction.written.relation) else { return };
        if let [.., qualifier, column] = idents
            && qualifier.value == relation.table()
            && column.value == self.correction.written.name
        {
            qualifier.value = table.clone();
            column.value = self.correction.name.clone();
            self.changed = true;
        }
    }

    fn names(&mut self, names: &mut [ObjectName]) {
        for name in names {
            if let [ObjectNamePart::Identifier(ident)] = name.0.as_mut_slice() {
                self.ident(ident);
            }
        }
    }
}

impl VisitorMut for Corrector<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        match expr {
            Expr::Identifier(ident) => self.ident(ident),
            Expr::CompoundIdentifier(idents) => self.qualified(idents),
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        for join in select.from.iter_mut().flat_map(|from| &mut from.joins) {
            if let Some(JoinConstraint::Using(columns)) = constraint_of(&mut join.join_operator) {
                self.names(columns);
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_statement(&mut self, statement: &mut ast::Statement) -> ControlFlow<()> {
        if let ast::Statement::Insert(insert) = statement {
            self.names(&mut insert.columns);
        }
        ControlFlow::Continue(())
    }
}

pub(super) fn constraint_of(join: &mut JoinOperator) -> Option<&mut JoinConstraint> {
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

fn visit<V: VisitorMut>(statement: &mut Statement, visitor: &mut V) {
    // A visitor here never breaks off, so what `visit` returns says nothing.
    let _: ControlFlow<V::Break> = match statement {
        Statement::Statement(statement) => statement.visit(visitor),
        Statement::Explain(explain) => {
            visit(&mut explain.statement, visitor);
            ControlFlow::Continue(())
        }
        Statement::CopyTo(_) | Statement::CreateExternalTable(_) | Statement::Reset(_) => ControlFlow::Continue(()),
    };
}
