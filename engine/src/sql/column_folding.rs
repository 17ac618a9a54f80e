//! Names of columns without regard to case. DataFusion compares identifiers exactly; here `SELECT Carrier FROM FLIGHTS F`
//! finds `flights.carrier`, as in DuckDB. A name that is spelled exactly always wins, so a file whose columns differ only in
//! case stays readable.
//!
//! Columns are matched when planning reports one as missing: the statement is corrected to the spelling of the columns in
//! scope ([`super::column_scopes`]), and planned again. A statement that is spelled as its tables are costs nothing more.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use arrow::datatypes::FieldRef;
use datafusion::common::{Column, SchemaError};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::LogicalPlan;
use datafusion::logical_expr::planner::ContextProvider;
use datafusion::sql::parser::Statement;
use datafusion::sql::planner::{PlannerContext, SqlToRel};
use datafusion::sql::sqlparser::ast::{
    self, Expr, Ident, JoinConstraint, ObjectName, ObjectNamePart, Select, VisitorMut,
};

use super::column_scopes::{self, Doubt};
use super::expansion::expand_columns;
use super::near_references::near_references;
use super::nested_calls::bound_nested_calls;
use super::outer_aggregates::refuse_outer_aggregates;
use super::plan_nodes::any_node;
use super::relations::over_items;
use super::syntax::{join_constraint, visit_statement};
use super::time_comparisons::settle_times;
use super::wide_queries::check_wide_queries;
use crate::identifiers::same_name;
use crate::limits::{QueryUsage, check_plan_size};

/// The most corrections of one statement.
const MAX_CORRECTIONS: usize = 200;

/// Plans a statement, correcting the case of column names until it plans or fails for another reason. `parameters` are
/// the types of `$1`, `$2`, ... where they are known.
pub(crate) fn plan_folded<S: ContextProvider>(
    scope: &S,
    mut statement: Statement,
    parameters: &[Option<FieldRef>],
) -> Result<LogicalPlan> {
    check_wide_queries(&mut statement)?;
    expand_columns(scope, &mut statement)?;
    plan_expanded(scope, statement, parameters)
}

/// As [`plan_folded`], for a statement whose columns are written out.
pub(super) fn plan_expanded<S: ContextProvider>(
    scope: &S,
    mut statement: Statement,
    parameters: &[Option<FieldRef>],
) -> Result<LogicalPlan> {
    bound_nested_calls(scope, &mut statement)?;
    let mut applied = Vec::new();
    loop {
        QueryUsage::check_current()?;
        let error = match plan_exactly(scope, statement.clone(), parameters) {
            Ok(plan) => {
                check_plan_size(&plan)?;
                if sorts_by_missing(&plan)? && column_scopes::rebind(scope, &mut statement, &Doubt::Any)? {
                    continue;
                }
                let doubt = column_scopes::doubtful(&plan)?;
                if doubt.is_none() || !column_scopes::rebind(scope, &mut statement, &doubt)? {
                    refuse_outer_aggregates(&plan)?;
                    return settle_times(near_references(plan)?);
                }
                continue;
            }
            Err(error) => error,
        };
        if missing_field(&error).is_some() && column_scopes::rebind(scope, &mut statement, &Doubt::Any)? {
            continue;
        }
        // Names outside of any scope (the columns of INSERT and USING) are corrected everywhere, once.
        match correction(&error).filter(|correction| !applied.contains(correction)) {
            Some(correction) if applied.len() < MAX_CORRECTIONS && correction.apply(&mut statement) => {
                applied.push(correction);
            }
            _ => return Err(error),
        }
    }
}

/// Whether rows are sorted by a column that they do not have: the planner takes a qualified name of ORDER BY as it is
/// written, and only the analysis of the plan misses it.
fn sorts_by_missing(plan: &LogicalPlan) -> Result<bool> {
    any_node(plan, |node| {
        let LogicalPlan::Sort(sort) = node else { return Ok(false) };
        let schema = sort.input.schema();
        let mut columns = sort.expr.iter().flat_map(|sort| sort.expr.column_refs());
        Ok(columns.any(|column| !schema.has_column(column)))
    })
}

fn plan_exactly<S: ContextProvider>(
    scope: &S,
    mut statement: Statement,
    parameters: &[Option<FieldRef>],
) -> Result<LogicalPlan> {
    let planner = SqlToRel::new(scope);
    over_items(most_items(&mut statement), || match statement {
        Statement::Statement(statement) if !parameters.is_empty() => {
            let mut context = PlannerContext::new().with_prepare_param_data_types(parameters.to_vec());
            planner.sql_statement_to_plan_with_context(*statement, &mut context)
        }
        other => planner.statement_to_plan(other),
    })
}

/// Returns how many items the widest SELECT has that is over any relation.
fn most_items(statement: &mut Statement) -> usize {
    struct MostItems(usize);
    impl VisitorMut for MostItems {
        type Break = ();
        fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
            if !select.from.is_empty() {
                self.0 = self.0.max(select.projection.len());
            }
            ControlFlow::Continue(())
        }
    }
    let mut most = MostItems(0);
    let _: ControlFlow<()> = visit_statement(statement, &mut most);
    most.0
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
    /// Corrects the column in the statement and returns whether anything changed.
    fn apply(&self, statement: &mut Statement) -> bool {
        let mut corrector = Corrector { correction: self, changed: false };
        let _: ControlFlow<()> = visit_statement(statement, &mut corrector);
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
            if let Some(JoinConstraint::Using(columns)) = join_constraint(&mut join.join_operator) {
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
