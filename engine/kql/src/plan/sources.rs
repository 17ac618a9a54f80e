//! Sources of rows other than tables: `datatable`, `print`, `range`.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, i256};
use datafusion::common::DFSchema;
use datafusion::datasource::provider_as_source;
use datafusion::functions_table::generate_series::{GenSeriesArgs, GenerateSeriesTable};
use datafusion::logical_expr::{EmptyRelation, Expr as PlanExpr, LogicalPlan, LogicalPlanBuilder, cast, lit};
use datafusion::scalar::ScalarValue;

use super::{Column, Relation, field_column};
use crate::ast::{BinaryOperator, DataTable, Expr, Name, NamedExpr, Names};
use crate::bind::{
    BindErrorCode, Binder, Environment, ExpressionScope, Result, Typed, constant_of, fail, invalid, null_of,
    too_many_names, unique_name,
};
use crate::functions::ScalarOperator;
use crate::types::{DECIMAL_PRECISION, DECIMAL_SCALE, KqlType};

/// The most rows that `range` returns.
const MAX_RANGE_ROWS: i64 = 1_000_000_000;

impl<'a> Binder<'a> {
    pub(crate) fn data_table(&mut self, table: &'a DataTable, environment: &Environment<'a>) -> Result<Relation> {
        let columns: Vec<(String, KqlType)> =
            table.columns.iter().map(|column| (column.name.text.clone(), KqlType::from(column.scalar_type))).collect();
        if columns.is_empty() {
            return invalid(Default::default(), "a datatable needs columns");
        }
        let mut rows = Vec::with_capacity(table.values.len() / columns.len());
        for values in table.values.chunks(columns.len()) {
            if values.len() < columns.len() {
                let span = values.first().map(|value| value.span).unwrap_or_default();
                return invalid(span, "the number of values is no multiple of the number of columns");
            }
            let mut row = Vec::with_capacity(columns.len());
            for (value, (_, kql_type)) in values.iter().zip(&columns) {
                row.push(self.cell(value, *kql_type, environment)?);
            }
            rows.push(row);
        }
        self.values(columns, rows)
    }

    fn cell(&mut self, value: &'a Expr, kql_type: KqlType, environment: &Environment<'a>) -> Result<PlanExpr> {
        let typed = self.scalar(value, &ExpressionScope::constant(environment))?;
        let typed = match (typed.kql_type, kql_type) {
            (from, to) if from == to => typed,
            _ => self.convert(typed, kql_type, value.span)?,
        };
        match constant_of(&typed.expr)? {
            Some(value) => Ok(lit(value)),
            None => invalid(value.span, "a datatable's values are constants"),
        }
    }

    /// Returns a plan of literal rows.
    pub(super) fn values(&mut self, columns: Vec<(String, KqlType)>, rows: Vec<Vec<PlanExpr>>) -> Result<Relation> {
        let columns: Vec<Column> =
            columns.into_iter().map(|(name, kql_type)| Column { field: self.field(&name), name, kql_type }).collect();
        let fields = columns.iter().map(|column| Field::new(&column.field, column.kql_type.arrow_type(), true));
        let schema = Arc::new(DFSchema::try_from(Schema::new(fields.collect::<Vec<_>>()))?);
        let plan = if rows.is_empty() || columns.is_empty() {
            LogicalPlan::EmptyRelation(EmptyRelation { produce_one_row: false, schema })
        } else {
            // DataFusion chooses the names of the fields of literal rows.
            let renamed = columns
                .iter()
                .enumerate()
                .map(|(index, column)| field_column(&format!("column{}", index + 1)).alias(column.field.clone()));
            let renamed: Vec<PlanExpr> = renamed.collect();
            LogicalPlanBuilder::values_with_schema(rows, &schema)?.project(renamed)?.build()?
        };
        Ok(Relation::new(plan, columns))
    }

    pub(super) fn print(&mut self, values: &'a [NamedExpr], environment: &Environment<'a>) -> Result<Relation> {
        let mut outputs: Vec<(String, Typed)> = Vec::with_capacity(values.len());
        for (index, named) in values.iter().enumerate() {
            let scope = ExpressionScope::constant(environment);
            if let Some(parts) = self.several(named, &scope)? {
                let is_one = parts.len() == 1;
                for part in parts {
                    let natural = if is_one { format!("print_{index}") } else { part.natural };
                    let is_taken = |name: &str| outputs.iter().any(|(it, _)| it == name);
                    let name = part.given.unwrap_or_else(|| unique_name(&natural, is_taken));
                    outputs.push((name, part.typed));
                }
                continue;
            }
            let value = self.scalar(&named.expr, &scope)?;
            match &named.names {
                Names::One(name) => {
                    if outputs.iter().any(|(known, _)| *known == name.text) {
                        return invalid(named.span, format!("the column `{}` is there twice", name.text));
                    }
                    outputs.push((name.text.clone(), value));
                }
                Names::Unnamed => {
                    let name = unique_name(&format!("print_{index}"), |name| outputs.iter().any(|(it, _)| it == name));
                    outputs.push((name, value));
                }
                Names::Several(names) => return too_many_names(names.len(), 1, named.span),
            }
        }
        self.one_row(outputs)
    }

    /// Returns a table of one row.
    pub(crate) fn one_row(&mut self, outputs: Vec<(String, Typed)>) -> Result<Relation> {
        let nothing = LogicalPlanBuilder::empty(true).build()?;
        let relation = Relation { is_serialized: true, ..Relation::new(nothing, Vec::new()) };
        self.projected(relation, outputs)
    }

    pub(super) fn range(
        &mut self,
        column: &'a Name,
        from: &'a Expr,
        to: &'a Expr,
        step: &'a Expr,
        environment: &Environment<'a>,
    ) -> Result<Relation> {
        let scope = ExpressionScope::constant(environment);
        let from_typed = self.scalar(from, &scope)?;
        let to_typed = self.scalar(to, &scope)?;
        let step_typed = self.scalar(step, &scope)?;
        let kql_type = match (from_typed.kql_type, to_typed.kql_type, step_typed.kql_type) {
            (KqlType::DateTime, KqlType::DateTime, KqlType::TimeSpan) => KqlType::DateTime,
            (KqlType::TimeSpan, KqlType::TimeSpan, KqlType::TimeSpan) => KqlType::TimeSpan,
            (from, to, step) if from.is_numeric() && to.is_numeric() && step.is_numeric() => match [from, to, step] {
                [KqlType::Int, KqlType::Int, KqlType::Int] => KqlType::Int,
                types if types.contains(&KqlType::Decimal) => KqlType::Decimal,
                types if types.contains(&KqlType::Real) => KqlType::Real,
                _ => KqlType::Long,
            },
            _ => {
                return fail(
                    BindErrorCode::TypeMismatch,
                    from.span,
                    "`range` needs bounds and a step that fit together",
                );
            }
        };
        // An int's bounds are counted as long ones are.
        let (kql_type, result_type) =
            if kql_type == KqlType::Int { (KqlType::Long, KqlType::Int) } else { (kql_type, kql_type) };
        let step_type = if kql_type == KqlType::DateTime { KqlType::TimeSpan } else { kql_type };
        let from_value = self.bound_of_range(from_typed, kql_type, from)?;
        let to_value = self.bound_of_range(to_typed, kql_type, to)?;
        let step_value = self.bound_of_range(step_typed, step_type, step)?;
        let (count, start, step_expr) = match (from_value, to_value, step_value) {
            (
                ScalarValue::Int64(Some(from_value)),
                ScalarValue::Int64(Some(to_value)),
                ScalarValue::Int64(Some(step_value)),
            ) => {
                if step_value == 0 {
                    return invalid(step.span, "the step is 0");
                }
                let distance = i128::from(to_value) - i128::from(from_value);
                let count = if (distance < 0) != (step_value < 0) && distance != 0 {
                    0
                } else {
                    distance / i128::from(step_value) + 1
                };
                (i64::try_from(count).unwrap_or(i64::MAX), lit(from_value), lit(step_value))
            }
            (
                ScalarValue::Float64(Some(from_value)),
                ScalarValue::Float64(Some(to_value)),
                ScalarValue::Float64(Some(step_value)),
            ) => {
                if step_value == 0.0 || step_value.is_nan() {
                    return invalid(step.span, "the step is 0");
                }
                let steps = ((to_value - from_value) / step_value).floor();
                // A conversion of a float saturates.
                let count = if steps.is_nan() || steps < 0.0 { 0 } else { (steps as i64).saturating_add(1) };
                (count, lit(from_value), lit(step_value))
            }
            (
                ScalarValue::Decimal256(Some(from_value), ..),
                ScalarValue::Decimal256(Some(to_value), ..),
                ScalarValue::Decimal256(Some(step_value), ..),
            ) => {
                if step_value == i256::ZERO {
                    return invalid(step.span, "the step is 0");
                }
                let distance = to_value.wrapping_sub(from_value);
                let is_away = distance != i256::ZERO && distance.is_negative() != step_value.is_negative();
                let steps = distance.wrapping_div(step_value).to_i128().and_then(|steps| i64::try_from(steps).ok());
                let count = if is_away { 0 } else { steps.unwrap_or(i64::MAX).saturating_add(1) };
                let decimal = |value| lit(ScalarValue::Decimal256(Some(value), DECIMAL_PRECISION, DECIMAL_SCALE));
                (count, decimal(from_value), decimal(step_value))
            }
            _ => (0, lit(null_of(kql_type)), lit(null_of(step_type))),
        };
        if count > MAX_RANGE_ROWS {
            return invalid(from.span, format!("`range` makes at most {MAX_RANGE_ROWS} rows; use a larger step"));
        }
        let (series, index) = self.series(count)?;
        let value = match kql_type {
            // DataFusion's product of decimals has the scales of both.
            KqlType::Decimal => {
                let index = self.convert(Typed::new(index, KqlType::Long), kql_type, step.span)?;
                let times = ScalarOperator::Binary(BinaryOperator::Multiply);
                let moved = self.apply_operator(times, vec![index, Typed::new(step_expr, kql_type)], step.span)?;
                let plus = ScalarOperator::Binary(BinaryOperator::Add);
                self.apply_operator(plus, vec![Typed::new(start, kql_type), moved], step.span)?
            }
            KqlType::Real => Typed::new(start + cast(index, DataType::Float64) * step_expr, kql_type),
            _ => Typed::new(cast(start + index * step_expr, result_type.arrow_type()), result_type),
        };
        let relation = Relation { is_serialized: true, ..Relation::new(series, Vec::new()) };
        self.projected(relation, vec![(column.text.clone(), value)])
    }

    fn bound_of_range(&mut self, typed: Typed, kql_type: KqlType, expr: &Expr) -> Result<ScalarValue> {
        let typed = self.convert(typed, kql_type, expr.span)?;
        match constant_of(&typed.expr)? {
            Some(value) => Ok(value),
            None => invalid(expr.span, "this must be a constant"),
        }
    }

    /// Returns a plan of the `count` numbers from 0, and their field.
    pub(super) fn series(&mut self, count: i64) -> Result<(LogicalPlan, PlanExpr)> {
        let schema = Arc::new(Schema::new(vec![Field::new("value", DataType::Int64, false)]));
        let args = GenSeriesArgs::Int64Args { start: 0, end: count, step: 1, include_end: false, name: "range" };
        let table = Arc::new(GenerateSeriesTable::new(schema, args));
        let field = self.field("index");
        let mut scanned = LogicalPlanBuilder::scan("range", provider_as_source(table), None)?.build()?;
        // Whoever plans it sees how many rows there are.
        if let LogicalPlan::TableScan(scan) = &mut scanned {
            scan.fetch = usize::try_from(count).ok();
        }
        let value = PlanExpr::Column(datafusion::common::Column::new(Some("range"), "value"));
        let plan = LogicalPlanBuilder::from(scanned).project(vec![value.alias(field.clone())])?.build()?;
        Ok((plan, field_column(&field)))
    }
}
