//! Operators that order and limit rows: `sort`, `top`, `take`, `sample`.

use datafusion::functions::math::{abs, isnan, random};
use datafusion::functions_window::row_number::row_number_udwf;
use datafusion::logical_expr::expr::{WindowFunction, WindowFunctionDefinition, WindowFunctionParams};
use datafusion::logical_expr::{Expr as PlanExpr, LogicalPlanBuilder, SortExpr, WindowFrame, lit, when};
use datafusion::scalar::ScalarValue;

use super::{Relation, field_column, field_of};
use crate::ast::{NamedExpr, NullsOrder, SortDirection, SortKey};
use crate::bind::{BindErrorCode, Binder, Environment, ExpressionScope, Result, Typed, constant_of, fail, invalid};
use crate::types::KqlType;

impl<'a> Binder<'a> {
    pub(super) fn sort(
        &mut self,
        input: Relation,
        keys: &'a [SortKey],
        environment: &Environment<'a>,
    ) -> Result<Relation> {
        let (input, order) = self.order(input, keys, environment)?;
        let mut sorts: Vec<SortExpr> = match &input.groups {
            Some(groups) => groups.keys.iter().map(|key| key.clone().sort(true, true)).collect(),
            None => Vec::new(),
        };
        sorts.extend(order.clone());
        let plan = LogicalPlanBuilder::from(input.plan.clone()).sort(sorts)?.build()?;
        Ok(Relation { order, is_serialized: true, ..input }.over(plan))
    }

    pub(super) fn top(
        &mut self,
        input: Relation,
        count: &'a NamedExpr,
        by: &'a SortKey,
        environment: &Environment<'a>,
    ) -> Result<Relation> {
        let rows = self.row_count(count, environment)?;
        let (input, order) = self.order(input, std::slice::from_ref(by), environment)?;
        if input.groups.is_some() {
            let input = Relation { order, ..input };
            let first = self.first_of_groups(input, rows)?;
            return Ok(Relation { is_serialized: true, ..first });
        }
        let plan = LogicalPlanBuilder::from(input.plan.clone()).sort(order.clone())?.limit(0, Some(rows))?.build()?;
        Ok(Relation { order, is_serialized: true, ..input }.over(plan))
    }

    pub(crate) fn take(
        &mut self,
        input: Relation,
        count: &'a NamedExpr,
        environment: &Environment<'a>,
    ) -> Result<Relation> {
        let rows = self.row_count(count, environment)?;
        if input.groups.is_some() {
            return self.first_of_groups(input, rows);
        }
        let plan = LogicalPlanBuilder::from(input.plan_in_order()?).limit(0, Some(rows))?.build()?;
        Ok(input.over(plan))
    }

    /// Adds a field with the number of each row in the relation's order, by which the rows are ordered from then on: no
    /// two of them are equal in it. Returns the field's name.
    pub(super) fn with_row_numbers(&mut self, input: Relation) -> Result<(Relation, String)> {
        let field = self.field("row");
        let number = PlanExpr::from(WindowFunction {
            fun: WindowFunctionDefinition::WindowUDF(row_number_udwf()),
            params: WindowFunctionParams {
                args: Vec::new(),
                partition_by: Vec::new(),
                order_by: input.order.clone(),
                window_frame: WindowFrame::new(None),
                filter: None,
                null_treatment: None,
                distinct: false,
            },
        });
        let numbered = self.windowed(input, vec![number.alias(field.clone())])?;
        let order = vec![field_column(&field).sort(true, false)];
        Ok((Relation { order, ..numbered }, field))
    }

    pub(super) fn sample(
        &mut self,
        input: Relation,
        count: &'a NamedExpr,
        environment: &Environment<'a>,
    ) -> Result<Relation> {
        let rows = self.row_count(count, environment)?;
        let (input, field) = self.with_field(input, "random", random().call(Vec::new()))?;
        let by = vec![field_column(&field).sort(true, true)];
        if input.groups.is_some() {
            let first = self.first_of_groups(Relation { order: by, ..input }, rows)?;
            return Ok(Relation { order: Vec::new(), is_serialized: false, ..first });
        }
        let plan = LogicalPlanBuilder::from(input.plan.clone()).sort(by)?.limit(0, Some(rows))?.build()?;
        Ok(Relation { order: Vec::new(), is_serialized: false, ..input }.over(plan))
    }

    pub(super) fn sample_distinct(
        &mut self,
        input: Relation,
        count: &'a NamedExpr,
        of: &'a NamedExpr,
        environment: &Environment<'a>,
    ) -> Result<Relation> {
        let distinct = self.distinct(input, std::slice::from_ref(of), environment)?;
        self.take(distinct, count, environment)
    }

    /// Returns the first rows of each group, in the relation's order.
    pub(super) fn first_of_groups(&mut self, input: Relation, rows: usize) -> Result<Relation> {
        let field = self.field("rank");
        let partition_by = input.groups.as_ref().map(|groups| groups.keys.clone()).unwrap_or_default();
        let rank = PlanExpr::from(WindowFunction {
            fun: WindowFunctionDefinition::WindowUDF(row_number_udwf()),
            params: WindowFunctionParams {
                args: Vec::new(),
                partition_by,
                order_by: input.order.clone(),
                window_frame: WindowFrame::new(None),
                filter: None,
                null_treatment: None,
                distinct: false,
            },
        });
        let ranked = self.windowed(input, vec![rank.alias(field.clone())])?;
        let rows = u64::try_from(rows).unwrap_or(u64::MAX);
        self.filtered(ranked, field_column(&field).lt_eq(lit(rows)))
    }

    /// Returns the sort keys, computed ones as fields of their own. Descending and nulls last by default.
    pub(super) fn order(
        &mut self,
        input: Relation,
        keys: &'a [SortKey],
        environment: &Environment<'a>,
    ) -> Result<(Relation, Vec<SortExpr>)> {
        let mut input = input;
        let mut order = Vec::with_capacity(keys.len());
        for key in keys {
            let value = self.scalar(&key.expr.expr, &ExpressionScope::over_columns(environment, &input.columns))?;
            if value.kql_type == KqlType::Dynamic {
                let message = "rows cannot be ordered by a dynamic value; convert it, for example with tostring(...)";
                return fail(BindErrorCode::TypeMismatch, key.span, message);
            }
            let expr = if field_of(&value.expr).is_some() {
                value.expr
            } else {
                let (extended, field) = self.with_field(input, "key", value.expr)?;
                input = extended;
                field_column(&field)
            };
            let ascending = key.direction == Some(SortDirection::Ascending);
            let nulls_first = match key.nulls {
                Some(NullsOrder::First) => true,
                Some(NullsOrder::Last) => false,
                None => ascending,
            };
            let key = Typed::new(expr, value.kql_type);
            input = self.push_sort_keys(input, key, ascending, nulls_first, &mut order)?;
        }
        Ok((input, order))
    }

    /// Adds the sort keys of a value to an order. NaN is beside the nulls, between them and the numbers, whatever the
    /// direction; there is one NaN, and one zero.
    pub(super) fn push_sort_keys(
        &mut self,
        input: Relation,
        value: Typed,
        ascending: bool,
        nulls_first: bool,
        order: &mut Vec<SortExpr>,
    ) -> Result<Relation> {
        if value.kql_type != KqlType::Real {
            order.push(value.expr.sort(ascending, nulls_first));
            return Ok(input);
        }
        let (input, nan) = self.with_field(input, "nan", isnan().call(vec![value.expr.clone()]))?;
        let is_nan = field_column(&nan);
        order.push(is_nan.clone().sort(!nulls_first, nulls_first));
        // The field is named, not computed again: where DataFusion 54 computes once what two columns of a projection share, it
        // takes that for a key of the rows of an aggregation, and leaves out all that is ordered by after it.
        let is_zero = abs().call(vec![value.expr.clone()]).eq(lit(0.0_f64));
        let plain = when(is_nan, lit(0.0_f64)).when(is_zero, lit(0.0_f64)).otherwise(value.expr)?;
        let (input, key) = self.with_field(input, "key", plain)?;
        order.push(field_column(&key).sort(ascending, nulls_first));
        Ok(input)
    }

    /// Returns a number of rows, which must be a constant.
    pub(super) fn row_count(&mut self, count: &'a NamedExpr, environment: &Environment<'a>) -> Result<usize> {
        let value = self.scalar(&count.expr, &ExpressionScope::constant(environment))?;
        if !matches!(value.kql_type, KqlType::Int | KqlType::Long | KqlType::Dynamic) {
            let message = format!("a number of rows is a whole number, not a {}", value.kql_type.name());
            return fail(BindErrorCode::TypeMismatch, count.span, message);
        }
        let value = self.convert(value, KqlType::Long, count.span)?;
        match constant_of(&value.expr)? {
            // Less than none is none.
            Some(ScalarValue::Int64(Some(rows))) => Ok(usize::try_from(rows).unwrap_or(0)),
            _ => invalid(count.span, "the number of rows must be a constant"),
        }
    }
}
