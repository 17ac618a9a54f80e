//! `partition by`: the body runs on the rows of each value separately.

use arrow::array::RecordBatch;
use datafusion::logical_expr::lit;
use datafusion::scalar::ScalarValue;

use super::relation::Groups;
use super::{Column, Relation};
use crate::ast::{Expr, ExprKind, Partition, PartitionBody};
use crate::bind::{
    BindErrorCode, Binder, Binding, Environment, ExpressionScope, Result, Typed, fail, invalid, null_of,
};
use crate::span::Span;
use crate::types::KqlType;

/// The most values that a query of its own runs for, as in Kusto.
const MAX_VALUES: usize = 64;

impl<'a> Binder<'a> {
    pub(super) fn partition(
        &mut self,
        input: Relation,
        partition: &'a Partition,
        span: Span,
        environment: &Environment<'a>,
    ) -> Result<Relation> {
        let body = match &partition.body {
            PartitionBody::Piped(body) => body,
            PartitionBody::Query(body) => return self.query_for_each(input, &partition.by, body, span, environment),
        };
        let outer = input.groups.clone();
        let key = self.scalar(&partition.by, &ExpressionScope::over_columns(environment, &input.columns))?;
        check_key(key.kql_type, partition.by.span)?;
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

    /// Returns the rows of a query of its own for each value of a column, which it may name. The values are read.
    fn query_for_each(
        &mut self,
        input: Relation,
        by: &'a Expr,
        body: &'a Expr,
        span: Span,
        environment: &Environment<'a>,
    ) -> Result<Relation> {
        let ExprKind::Name(name) = &by.kind else {
            return invalid(by.span, "expected a column");
        };
        let Some(column) = input.column(&name.text).cloned() else {
            return Err(self.unknown_column(name, &input.columns).into());
        };
        check_key(column.kql_type, by.span)?;
        let values = input.distinct_values(&column)?;
        let batches = self.rows(values, MAX_VALUES + 1)?;
        let count: usize = batches.iter().map(RecordBatch::num_rows).sum();
        if count > MAX_VALUES {
            let message = format!("the column has more than {MAX_VALUES} values; a query for each is too many");
            return fail(BindErrorCode::TooLarge, span, message);
        }
        let mut results = Vec::with_capacity(count);
        for batch in batches {
            for row in 0..batch.num_rows() {
                let value = lit(ScalarValue::try_from_array(batch.column(0), row)?);
                let value = Binding::Scalar(Typed::new(value, column.kql_type), 1);
                results.push(self.table(body, &environment.with(&name.text, value))?);
            }
        }
        if results.is_empty() {
            let none = Binding::Scalar(Typed::new(lit(null_of(column.kql_type)), column.kql_type), 1);
            let nothing = self.table(body, &environment.with(&name.text, none))?;
            return self.filtered(nothing, lit(false));
        }
        self.united(results, &[])
    }
}

fn check_key(kql_type: KqlType, span: Span) -> Result<()> {
    if kql_type == KqlType::Dynamic {
        return invalid(
            span,
            "rows cannot be partitioned by a dynamic value; convert it, for example with tostring(...)",
        );
    }
    Ok(())
}
