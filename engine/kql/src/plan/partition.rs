//! `partition by`: the body runs on the rows of each value separately.

use super::relation::Groups;
use super::{Column, Relation};
use crate::ast::{Partition, PartitionBody};
use crate::bind::{Binder, Environment, ExpressionScope, Result, not_supported};
use crate::span::Span;

impl<'a> Binder<'a> {
    pub(super) fn partition(
        &mut self,
        input: Relation,
        partition: &'a Partition,
        span: Span,
        environment: &Environment<'a>,
    ) -> Result<Relation> {
        let PartitionBody::Piped(body) = &partition.body else {
            return not_supported(span, "`partition` with a query of its own");
        };
        let outer = input.groups.clone();
        let key = self.scalar(&partition.by, &ExpressionScope::over_columns(environment, &input.columns))?;
        let (keyed, field) = self.with_field(input, "partition", key.expr)?;
        let mut keys = outer.as_ref().map(|groups| groups.keys.clone()).unwrap_or_default();
        keys.push(super::field_column(&field));
        let carried = outer.as_ref().map(|groups| groups.carried.clone()).unwrap_or_default();
        let mut relation = Relation { groups: Some(Groups { keys, carried }), ..keyed };
        for operator in &body.operators {
            relation = self.operator(relation, operator, environment)?;
        }
        let outputs = relation.columns.iter().map(Column::output).collect();
        self.projected(Relation { groups: outer, order: Vec::new(), ..relation }, outputs)
    }
}
