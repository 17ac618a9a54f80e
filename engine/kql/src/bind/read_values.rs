//! Values that expressions read from tables while binding: the first one of a `toscalar`, and those to the right of
//! `in`.

use datafusion::common::SchemaError;
use datafusion::error::DataFusionError;
use datafusion::logical_expr::lit;
use datafusion::scalar::ScalarValue;

use super::{
    BindError, BindErrorCode, BindStop, Binder, Environment, ExpressionScope, Result, Typed, constant_of, fail,
    invalid, null_of,
};
use crate::ast::Expr;
use crate::span::Span;

/// The most values that the table on the right of an `in` may have.
const MAX_IN_VALUES: usize = 1_000_000;

/// A `toscalar` with its value.
pub(super) struct FirstValue<'a> {
    body: &'a Expr,
    environment: Environment<'a>,
    value: Typed,
}

impl<'a> Binder<'a> {
    /// Binds a `toscalar`: worked out once, however often the function that it stands in is called without arguments.
    pub(super) fn first_value(&mut self, body: &'a Expr, scope: &ExpressionScope<'_, 'a>) -> Result<Typed> {
        let known = self
            .first_values
            .iter()
            .find(|known| std::ptr::eq(known.body, body) && known.environment.is_same_as(scope.environment));
        if let Some(known) = known {
            let value = known.value.clone();
            self.spend_on(&value, body.span)?;
            return Ok(value);
        }
        let value = self.first_value_of(body, scope)?;
        self.spend_on(&value, body.span)?;
        let environment = scope.environment.clone();
        self.first_values.push(FirstValue { body, environment, value: value.clone() });
        Ok(value)
    }

    fn first_value_of(&mut self, body: &'a Expr, scope: &ExpressionScope<'_, 'a>) -> Result<Typed> {
        if !self.is_tabular(body, scope.environment) {
            let typed = self.scalar(body, &ExpressionScope::constant(scope.environment))?;
            return Ok(match constant_of(&typed.expr)? {
                Some(value) => Typed::new(lit(value), typed.kql_type),
                None => typed,
            });
        }
        let relation = self.table(body, scope.environment).map_err(|stop| outside_of_row(stop, body.span))?;
        let Some(column) = relation.columns.first().cloned() else {
            return invalid(body.span, "a table without columns has no first value");
        };
        let plan = relation.only(&column)?;
        let rows = self.rows(plan, 1)?;
        let first = rows.iter().find(|batch| batch.num_rows() > 0);
        let value = match first.and_then(|batch| batch.columns().first()) {
            Some(values) => ScalarValue::try_from_array(values, 0)?,
            None => null_of(column.kql_type),
        };
        Ok(Typed::new(lit(value), column.kql_type))
    }

    /// Reads the values of a table's first column.
    pub(super) fn first_column(&mut self, table: &'a Expr, scope: &ExpressionScope<'_, 'a>) -> Result<Vec<Typed>> {
        let relation = self.table(table, scope.environment).map_err(|stop| outside_of_row(stop, table.span))?;
        let Some(column) = relation.columns.first().cloned() else {
            return invalid(table.span, "a table without columns has no values");
        };
        let plan = relation.distinct_values(&column)?;
        let rows = self.rows(plan, MAX_IN_VALUES + 1)?;
        let count: usize = rows.iter().map(|batch| batch.num_rows()).sum();
        if count > MAX_IN_VALUES {
            return fail(
                BindErrorCode::TooLarge,
                table.span,
                format!("more than {MAX_IN_VALUES} values to compare with"),
            );
        }
        let mut values = Vec::with_capacity(count);
        for batch in rows {
            for row in 0..batch.num_rows() {
                let value = ScalarValue::try_from_array(batch.column(0), row)?;
                let value = Typed::new(lit(value), column.kql_type);
                self.spend_on(&value, table.span)?;
                values.push(value);
            }
        }
        Ok(values)
    }
}

/// Returns what is wrong where a table that is read while binding uses a value of the row around it: DataFusion does
/// not find the field.
fn outside_of_row(stop: BindStop, span: Span) -> BindStop {
    let BindStop::Plan(error) = &stop else { return stop };
    let DataFusionError::SchemaError(schema, _) = error.find_root() else { return stop };
    let SchemaError::FieldNotFound { field, .. } = schema.as_ref() else { return stop };
    let name = field.name.split('#').next().unwrap_or_default();
    let message = format!("`{name}` is a value of each row, and this table is read once for all of them");
    let error = BindError::new(BindErrorCode::Invalid, span, message);
    error.with_hint("join the table, or look the value up with `lookup`").into()
}
