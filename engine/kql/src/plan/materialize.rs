//! `materialize` and `as hint.materialized=true`: a table that is computed once, however often a name for it is used.
//! Each use is a scan of the same rows, with fields of its own.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use datafusion::common::Column as PlanColumn;
use datafusion::datasource::provider_as_source;
use datafusion::logical_expr::{Expr as PlanExpr, LogicalPlanBuilder, SortExpr};

use super::{Column, Relation, field_column, field_of};
use crate::ast::{Expr, Literal, Operator, ParameterValue};
use crate::bind::{BindStop, Binder, Environment, Need, Result};
use crate::materialized::Materialized;

/// The table name of its scans in a plan.
const SCAN: &str = "materialized";

/// Where a query says that a table is computed once.
#[derive(Clone, Copy)]
enum MaterializedSource<'a> {
    /// A call of `materialize`.
    Call(&'a Expr),
    /// `as hint.materialized=true`.
    Named(&'a Operator),
}

impl MaterializedSource<'_> {
    fn is_same_as(&self, other: &MaterializedSource<'_>) -> bool {
        match (self, other) {
            (MaterializedSource::Call(own), MaterializedSource::Call(other)) => std::ptr::eq(*own, *other),
            (MaterializedSource::Named(own), MaterializedSource::Named(other)) => std::ptr::eq(*own, *other),
            (MaterializedSource::Call(_), MaterializedSource::Named(_))
            | (MaterializedSource::Named(_), MaterializedSource::Call(_)) => false,
        }
    }
}

/// A materialized table. Where the query says so and its environment identify it.
pub(crate) struct MaterializedPart<'a> {
    source: MaterializedSource<'a>,
    environment: Environment<'a>,
    relation: Rc<Relation>,
    rows: Arc<Materialized>,
}

impl<'a> Binder<'a> {
    pub(crate) fn materialize(
        &mut self,
        expr: &'a Expr,
        body: &'a Expr,
        environment: &Environment<'a>,
    ) -> Result<Relation> {
        let source = MaterializedSource::Call(expr);
        if let Some((relation, rows)) = self.known_rows(source, environment) {
            return self.used(&relation, rows);
        }
        let relation = self.table(body, environment)?;
        self.computed_once(source, relation, environment)
    }

    /// Names a table by `as`; with `hint.materialized=true` it is computed once.
    pub(crate) fn materialized_as(
        &mut self,
        relation: Relation,
        operator: &'a Operator,
        environment: &Environment<'a>,
    ) -> Result<Relation> {
        let is_hinted = match operator.parameter("hint.materialized").map(|parameter| &parameter.value) {
            Some(ParameterValue::Literal(Literal::Bool(is_hinted))) => *is_hinted,
            Some(ParameterValue::Name(name)) => name.text == "true",
            Some(ParameterValue::Literal(_)) | None => false,
        };
        if !is_hinted {
            return Ok(relation);
        }
        let source = MaterializedSource::Named(operator);
        match self.known_rows(source, environment) {
            Some((known, rows)) => self.used(&known, rows),
            None => self.computed_once(source, relation, environment),
        }
    }

    fn known_rows(
        &self,
        source: MaterializedSource<'a>,
        environment: &Environment<'a>,
    ) -> Option<(Rc<Relation>, Arc<Materialized>)> {
        let mut parts = self.materialized.iter();
        let known = parts.find(|part| part.source.is_same_as(&source) && part.environment.is_same_as(environment))?;
        Some((Rc::clone(&known.relation), Arc::clone(&known.rows)))
    }

    fn computed_once(
        &mut self,
        source: MaterializedSource<'a>,
        relation: Relation,
        environment: &Environment<'a>,
    ) -> Result<Relation> {
        let fields = fields_of(&relation);
        if relation.groups.is_some() || fields.is_empty() {
            return Ok(relation);
        }
        let rows = match self.answers.materialized.get(self.materialized.len()) {
            Some(rows) => Arc::clone(rows),
            None => {
                let exprs = fields.iter().map(|field| field_column(field).alias(field.clone()));
                let plan = LogicalPlanBuilder::from(relation.plan).project(exprs)?.build()?;
                return Err(BindStop::Needs(Need::Materialized(Box::new(plan))));
            }
        };
        let relation = Rc::new(relation);
        let environment = environment.clone();
        self.materialized.push(MaterializedPart {
            source,
            environment,
            relation: Rc::clone(&relation),
            rows: Arc::clone(&rows),
        });
        self.used(&relation, rows)
    }

    /// Returns a scan of the rows into fields that no other scan has.
    fn used(&mut self, relation: &Relation, rows: Arc<Materialized>) -> Result<Relation> {
        let scanned = LogicalPlanBuilder::scan(SCAN, provider_as_source(rows), None)?;
        let mut renamed: HashMap<String, String> = HashMap::new();
        let mut exprs = Vec::new();
        for column in &relation.columns {
            renamed.insert(column.field.clone(), self.field(&column.name));
        }
        for field in fields_of(relation) {
            let name = match renamed.get(&field) {
                Some(name) => name.clone(),
                None => self.field("hidden"),
            };
            exprs.push(PlanExpr::Column(PlanColumn::new(Some(SCAN), field.clone())).alias(name.clone()));
            renamed.insert(field, name);
        }
        let plan = scanned.project(exprs)?.build()?;
        let new_field = |field: &str| renamed.get(field).cloned().unwrap_or_default();
        let columns = relation.columns.iter();
        let columns = columns.map(|column| Column { field: new_field(&column.field), ..column.clone() }).collect();
        let order = relation.order.iter().map(|sort| {
            let field = field_of(&sort.expr)?;
            Some(SortExpr { expr: field_column(&new_field(field)), ..sort.clone() })
        });
        Ok(Relation {
            order: order.collect::<Option<_>>().unwrap_or_default(),
            is_serialized: relation.is_serialized,
            name: relation.name.clone(),
            is_variable: relation.is_variable,
            ..Relation::new(plan, columns)
        })
    }
}

/// Returns the fields that a relation's plan must keep: its columns, and those that it is ordered by.
fn fields_of(relation: &Relation) -> Vec<String> {
    let mut fields: Vec<String> = relation.columns.iter().map(|column| column.field.clone()).collect();
    for hidden in relation.hidden_fields() {
        if !fields.contains(&hidden) {
            fields.push(hidden);
        }
    }
    fields
}
