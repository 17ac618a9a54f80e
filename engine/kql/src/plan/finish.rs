//! The end of a query: its columns under KQL's names, in the order that the query asked for.

use datafusion::logical_expr::LogicalPlanBuilder;

use super::{Column, Relation};
use crate::bind::{Binder, Result, invalid};
use crate::span::Span;

impl Binder<'_> {
    /// Returns the relation whose plan has the columns as its fields, and nothing else, in the order that the query
    /// asked for, even where operators follow the `sort`.
    pub(crate) fn finished(&mut self, relation: Relation) -> Result<Relation> {
        if relation.graph.is_some() {
            return invalid(Span::default(), "a graph is no result; a graph operator makes a table of it");
        }
        let exprs: Vec<_> = relation.columns.iter().map(|column| column.expr().alias(column.name.clone())).collect();
        let plan = LogicalPlanBuilder::from(relation.plan_in_order()?).project(exprs)?.build()?;
        let columns =
            relation.columns.iter().map(|column| Column { field: column.name.clone(), ..column.clone() }).collect();
        Ok(Relation { columns, order: Vec::new(), ..relation }.over(plan))
    }
}
