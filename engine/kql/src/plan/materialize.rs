//! `materialize`: a table that is computed once, however often a variable that holds it is used. Each use is a scan of
//! the same rows, with fields of its own.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use datafusion::common::Column as PlanColumn;
use datafusion::datasource::provider_as_source;
use datafusion::logical_expr::{Expr as PlanExpr, LogicalPlanBuilder, SortExpr};

use super::{Column, Relation, field_column, field_of};
use crate::ast::Expr;
use crate::bind::{BindStop, Binder, Environment, Need, Result};
use crate::materialized::Materialized;

/// The table name of its scans in a plan.
const SCAN: &str = "materialized";

/// A materialized table. Its expression and its environment identify it.
pub(crate) struct MaterializedPart<'a> {
    expr: &'a Expr,
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
        let known = self
            .materialized
            .iter()
            .find(|part| std::ptr::eq(part.expr, expr) && part.environment.is_same_as(environment));
        if let Some(part) = known {
            let (relation, rows) = (Rc::clone(&part.relation), Arc::clone(&part.rows));
            return self.used(&relation, rows);
        }
        let relation = self.table(body, environment)?;
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
            expr,
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
