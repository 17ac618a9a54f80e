//! `partition by`: the body runs on the rows of each value separately. Most operators do so in one plan, by groups; a body
//! with one that looks at all rows of its input runs as a query of its own for each value.

use arrow::array::RecordBatch;
use datafusion::logical_expr::lit;
use datafusion::scalar::ScalarValue;

use super::relation::Groups;
use super::{Column, Relation, plain_key};
use crate::ast::{Expr, ExprKind, Operator, OperatorKind, Partition, PartitionBody};
use crate::bind::{
    BindErrorCode, Binder, Binding, Environment, ExpressionScope, Result, Typed, fail, invalid, null_of,
};
use crate::span::Span;
use crate::types::KqlType;

/// The most values that a query of its own runs for, as in Kusto.
const MAX_VALUES: usize = 64;
/// The plugins whose results for a row, or for those near it, are the same among other groups.
const PLUGINS_OF_ROWS: &[&str] =
    &["bag_unpack", "geo_line_lookup", "geo_polygon_lookup", "identity", "ipv4_lookup", "ipv6_lookup", "rows_near"];

/// Whether an operator looks at all rows of its input, whatever group they are in.
pub(super) fn ignores_groups(kind: &OperatorKind) -> bool {
    match kind {
        OperatorKind::Evaluate { plugin, .. } => match &plugin.kind {
            ExprKind::Call(call) => !PLUGINS_OF_ROWS.contains(&call.function.text.as_str()),
            _ => true,
        },
        kind => matches!(
            kind,
            OperatorKind::GetSchema
                | OperatorKind::GraphTraverse(_)
                | OperatorKind::MakeGraph(_)
                | OperatorKind::Reduce { .. }
                | OperatorKind::TopNested(_)
        ),
    }
}

/// Whether an operator combines its input with another table.
fn takes_a_table(kind: &OperatorKind) -> bool {
    matches!(kind, OperatorKind::Join { .. } | OperatorKind::Lookup { .. } | OperatorKind::Union(_))
}

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
        let key = plain_key(key)?;
        let needs_own_query = |operator: &Operator| ignores_groups(&operator.kind) || takes_a_table(&operator.kind);
        if outer.is_none() && body.operators.iter().any(needs_own_query) {
            return self.piped_for_each(input, key, &body.operators, span, environment);
        }
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

    /// Returns the rows of the operators over the rows of each value of a key. The values are read.
    fn piped_for_each(
        &mut self,
        input: Relation,
        key: Typed,
        operators: &'a [Operator],
        span: Span,
        environment: &Environment<'a>,
    ) -> Result<Relation> {
        let (keyed, field) = self.with_field(input, "partition", key.expr)?;
        let key = Column { name: "partition".to_owned(), field, kql_type: key.kql_type };
        let values = self.values_of(&keyed, &key, span)?;
        let is_empty = values.is_empty();
        let conditions = values.into_iter().map(|value| match value.is_null() {
            true => key.expr().is_null(),
            false => key.expr().eq(lit(value)),
        });
        // No value has a result without rows.
        let conditions: Vec<_> = if is_empty { vec![lit(false)] } else { conditions.collect() };
        let mut results = Vec::with_capacity(conditions.len());
        for condition in conditions {
            let mut rows = self.filtered(keyed.clone(), condition)?;
            for operator in operators {
                rows = self.operator(rows, operator, environment)?;
            }
            results.push(rows);
        }
        let united = self.united(results, &[])?;
        if is_empty { self.filtered(united, lit(false)) } else { Ok(united) }
    }

    /// Reads the values of a column that a query of its own runs for.
    fn values_of(&mut self, input: &Relation, column: &Column, span: Span) -> Result<Vec<ScalarValue>> {
        let batches = self.rows(input.distinct_values(column)?, MAX_VALUES + 1)?;
        let count: usize = batches.iter().map(RecordBatch::num_rows).sum();
        if count > MAX_VALUES {
            let message = format!("the column has more than {MAX_VALUES} values; a query for each is too many");
            return fail(BindErrorCode::TooLarge, span, message);
        }
        let mut values = Vec::with_capacity(count);
        for batch in batches {
            for row in 0..batch.num_rows() {
                values.push(ScalarValue::try_from_array(batch.column(0), row)?);
            }
        }
        Ok(values)
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
        let plain = plain_key(column.typed())?;
        let (input, field) = self.with_field(input, "partition", plain.expr)?;
        let column = Column { field, ..column };
        let values = self.values_of(&input, &column, span)?;
        let mut results = Vec::with_capacity(values.len());
        for value in values {
            let value = Binding::Scalar(Typed::new(lit(value), column.kql_type), 1);
            results.push(self.table(body, &environment.with(&name.text, value))?);
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
