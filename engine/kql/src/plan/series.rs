//! `make-series`: aggregates by bins of an axis, and each group's bins as arrays, with a default for empty bins. Where the
//! axis has no start or no end, each series goes from its own first bin, or to its own last one.

use std::cell::RefCell;

use datafusion::functions::math::{floor, isnan};
use datafusion::functions_aggregate::expr_fn::{max, min};
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::{Expr as PlanExpr, LogicalPlanBuilder, cast, lit, try_cast, when};
use datafusion::prelude::coalesce;
use datafusion::scalar::ScalarValue;

use super::summarize::refuse_row_column;
use super::{Column, Relation, field_column};
use crate::aggregates::{self, AggregateOutput, SeriesBins};
use crate::ast::{Expr, MakeSeries, Operator, ParameterValue, SeriesRange};
use crate::bind::{
    BindErrorCode, Binder, Environment, ExpressionScope, Result, Typed, argument_name, constant_of, fail, given_name,
    invalid, unique_name,
};
use crate::span::Span;
use crate::types::KqlType;

/// The most bins of one series.
const MAX_BINS: i64 = 1_048_576;

/// A known axis: its first value, its step and its number of bins, over all series.
struct SeriesAxis {
    from: ScalarValue,
    step: ScalarValue,
    kql_type: KqlType,
    bins: i64,
    /// Whether each series starts with its own first bin.
    starts_with_data: bool,
    /// Whether each series ends with its own last bin.
    ends_with_data: bool,
}

impl<'a> Binder<'a> {
    pub(super) fn make_series(
        &mut self,
        input: Relation,
        series: &'a MakeSeries,
        operator: &'a Operator,
        environment: &Environment<'a>,
    ) -> Result<Relation> {
        let (input, assigned) = self.assigned(input, &series.by, environment)?;
        let keys = self.named(assigned, &input.columns)?;
        let (input, mut on) = self.assigned(input, std::slice::from_ref(&series.on), environment)?;
        let Some(on) = on.pop() else { return invalid(series.on.span, "expected an axis") };
        let on_name = on.given.or(on.natural).unwrap_or_else(|| "Column1".to_owned());
        let axis = self.axis(&input, &on.value, &series.range, operator.span, environment)?;

        let position = self.position(&axis, on.value.expr.clone());
        let (input, bin) = self.with_field(input, "bin", position)?;
        let inside = field_column(&bin).gt_eq(lit(0_i64)).and(field_column(&bin).lt(lit(axis.bins)));
        let input = self.filtered(input, inside)?;

        let collected = RefCell::new(Vec::new());
        let mut values: Vec<(String, Typed, Option<Typed>)> = Vec::with_capacity(series.aggregates.len());
        for aggregate in &series.aggregates {
            let scope = ExpressionScope {
                aggregates: Some(&collected),
                order: &input.order,
                ..ExpressionScope::over_columns(environment, &input.columns)
            };
            let given = given_name(&aggregate.expr.names).map(str::to_owned);
            let AggregateOutput { name, typed } = match aggregates::aggregate_call(&aggregate.expr.expr) {
                Some(call) => {
                    let mut outputs = self.aggregate(call, aggregate.expr.span, &scope, &collected)?;
                    if outputs.is_empty() {
                        return invalid(aggregate.expr.span, "expected an aggregate");
                    }
                    outputs.swap_remove(0)
                }
                None => {
                    let typed = self.scalar(&aggregate.expr.expr, &scope)?;
                    refuse_row_column(&typed, &input, aggregate.expr.span)?;
                    let name = argument_name(&aggregate.expr.expr).unwrap_or_else(|| "Column1".to_owned());
                    AggregateOutput { name, typed }
                }
            };
            let default = match &aggregate.default {
                Some(default) => Some(self.scalar(default, &ExpressionScope::constant(environment))?),
                None => None,
            };
            let name = unique_name(&given.unwrap_or(name), |name| values.iter().any(|(known, ..)| known == name));
            values.push((name, typed, default));
        }
        let keeps_empty = operator.parameter("kind").is_some_and(
            |kind| matches!(&kind.value, ParameterValue::Name(name) if name.text.eq_ignore_ascii_case("nonempty")),
        );
        self.filled(input, keys, &bin, on_name, &axis, collected.into_inner(), values, keeps_empty, operator.span)
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one clause, each used once")]
    fn filled(
        &mut self,
        input: Relation,
        keys: Vec<(String, Typed)>,
        bin: &str,
        on_name: String,
        axis: &SeriesAxis,
        collected: Vec<PlanExpr>,
        values: Vec<(String, Typed, Option<Typed>)>,
        keeps_empty: bool,
        span: Span,
    ) -> Result<Relation> {
        let key_count = keys.len();
        let mut by = keys;
        by.push(("bin".to_owned(), Typed::new(field_column(bin), KqlType::Long)));
        let mut outputs = Vec::with_capacity(values.len());
        for (name, typed, _) in &values {
            outputs.push((name.clone(), typed.clone()));
        }
        let binned = self.grouped(input, by, collected, outputs)?;
        let is_one = key_count == 0 && !keeps_empty;
        let Some(bin) = binned.columns.get(key_count).cloned() else {
            return invalid(span, "expected an axis");
        };
        let key_columns: Vec<Column> = binned.columns.iter().take(key_count).cloned().collect();
        let value_columns: Vec<Column> = binned.columns.iter().skip(key_count + 1).cloned().collect();
        let mut arrays = Vec::with_capacity(values.len());
        let mut results: Vec<(String, Typed)> = Vec::with_capacity(values.len() + 1);
        for (column, (name, typed, default)) in value_columns.iter().zip(values) {
            let default = match default {
                Some(default) => default,
                None => Typed::new(lit(0_i64), KqlType::Long),
            };
            let default = self.in_type(default, typed.kql_type, span)?;
            let default = self.json_of(default, span)?;
            let one = self.apply("pack_array", vec![column.typed()], span)?;
            let field = self.field(&name);
            let filled = SeriesBins { bins: usize::try_from(axis.bins).unwrap_or(0), default };
            let empty = filled.empty();
            let call = AggregateFunction::new_udf(
                aggregates::series_udaf(filled),
                vec![bin.expr(), one.expr],
                false,
                None,
                Vec::new(),
                None,
            );
            arrays.push(PlanExpr::AggregateFunction(call).alias(field.clone()));
            let array = coalesce(vec![field_column(&field), lit(empty)]);
            results.push((name, Typed::new(array, KqlType::Dynamic)));
        }
        let has_bins = axis.bins > 0;
        let axis_text = self.axis_text(axis, span)?;
        let on = (unique_name(&on_name, |name| results.iter().any(|(it, _)| it == name)), axis_text);
        results.push(on);
        let has_series = key_count > 0 || binned.groups.is_some();
        if has_series && (axis.starts_with_data || axis.ends_with_data) {
            let (first, last) = (self.field("first"), self.field("last"));
            arrays.extend([min(bin.expr()).alias(first.clone()), max(bin.expr()).alias(last.clone())]);
            let start = if axis.starts_with_data { field_column(&first) } else { lit(0_i64) };
            let end = if axis.ends_with_data { field_column(&last) } else { lit(-1_i64) };
            for (_, series) in &mut results {
                let [start, end] = [&start, &end].map(|edge| Typed::new(edge.clone(), KqlType::Long));
                *series = self.apply("array_slice", vec![series.clone(), start, end], span)?;
            }
        }
        let keys = key_columns.iter().map(Column::output).collect();
        let names = key_count + results.len();
        if is_one {
            let count = self.field("count");
            arrays.push(datafusion::functions_aggregate::count::count_all().alias(count.clone()));
            results.push((count.clone(), Typed::new(field_column(&count), KqlType::Long)));
        }
        let mut series = self.grouped(binned, keys, arrays, results)?;
        if is_one && let Some(count) = series.columns.get(names).cloned() {
            // No rows make no series.
            series.columns.truncate(names);
            series = self.filtered(series, count.expr().gt(lit(0_i64)))?;
        }
        // An axis without bins makes no series.
        if has_bins { Ok(series) } else { self.filtered(series, lit(false)) }
    }

    /// Returns the index of the bin of a value, from 0.
    fn position(&self, axis: &SeriesAxis, value: PlanExpr) -> PlanExpr {
        use arrow::datatypes::DataType;
        let real = |expr: PlanExpr| cast(expr, DataType::Float64);
        // Ticks are exact in 64 bits and not in a float; the difference is small enough for both.
        let distance = value - lit(axis.from.clone());
        // What is no number, or beyond all integers, is in no bin.
        try_cast(floor().call(vec![real(distance) / real(lit(axis.step.clone()))]), DataType::Int64)
    }

    fn axis(
        &mut self,
        input: &Relation,
        on: &Typed,
        range: &'a SeriesRange,
        span: Span,
        environment: &Environment<'a>,
    ) -> Result<SeriesAxis> {
        let (from, to, step, includes_end) = match range {
            SeriesRange::FromToStep { from, to, step } => (from.as_ref(), to.as_ref(), step, false),
            SeriesRange::InRange(bounds) => match bounds.as_slice() {
                [from, to, step] => (Some(&from.expr), Some(&to.expr), &step.expr, true),
                _ => return invalid(span, "expected a start, an end and a step"),
            },
        };
        let kql_type = match on.kql_type {
            KqlType::Int => KqlType::Long,
            KqlType::Long | KqlType::Real | KqlType::DateTime | KqlType::TimeSpan => on.kql_type,
            other => {
                return fail(BindErrorCode::TypeMismatch, span, format!("an axis cannot be a {}", other.name()));
            }
        };
        let step_type = if kql_type == KqlType::DateTime { KqlType::TimeSpan } else { kql_type };
        let step_span = step.span;
        let step = self.known(step, step_type, environment)?;
        let bounds = match (from, to) {
            (Some(_), Some(_)) => None,
            _ => Some(self.bounds(input, on)?),
        };
        let low = match (from, &bounds) {
            // `in range(...)` has the bins of bin(): its start need not be the first one's.
            (Some(from), _) if includes_end => {
                let from = self.known(from, kql_type, environment)?;
                self.aligned(from, &step)
            }
            (Some(from), _) => self.known(from, kql_type, environment)?,
            (None, Some((low, _))) => self.aligned(low.clone(), &step),
            (None, None) => return invalid(span, "expected a start"),
        };
        let (high, includes_end) = match (to, bounds) {
            (Some(to), _) => (self.known(to, kql_type, environment)?, includes_end),
            (None, Some((_, high))) => (high, true),
            (None, None) => return invalid(span, "expected an end"),
        };
        let bins = match (&low, &high, &step) {
            (ScalarValue::Int64(Some(low)), ScalarValue::Int64(Some(high)), ScalarValue::Int64(Some(step)))
                if *step > 0 =>
            {
                let distance = i128::from(*high) - i128::from(*low) + i128::from(includes_end);
                let step = i128::from(*step);
                i64::try_from((distance.max(0) + step - 1) / step).unwrap_or(i64::MAX)
            }
            (ScalarValue::Float64(Some(low)), ScalarValue::Float64(Some(high)), ScalarValue::Float64(Some(step)))
                if *step > 0.0 =>
            {
                let steps = (high - low) / step;
                // A conversion of a float saturates.
                if includes_end { (steps.floor() as i64).saturating_add(1) } else { steps.ceil() as i64 }
            }
            (low, high, _) if low.is_null() || high.is_null() => 0,
            _ => return invalid(step_span, "the step must be more than 0"),
        };
        if bins > MAX_BINS {
            return invalid(span, format!("a series has at most {MAX_BINS} bins; use a larger step"));
        }
        let (starts_with_data, ends_with_data) = (from.is_none(), to.is_none());
        Ok(SeriesAxis { from: low, step, kql_type, bins: bins.max(0), starts_with_data, ends_with_data })
    }

    /// Returns the start of a value's bin.
    fn aligned(&self, value: ScalarValue, step: &ScalarValue) -> ScalarValue {
        match (value, step) {
            (ScalarValue::Int64(Some(value)), ScalarValue::Int64(Some(step))) if *step != 0 => {
                ScalarValue::Int64(Some(value.saturating_sub(value.rem_euclid(*step))))
            }
            (ScalarValue::Float64(Some(value)), ScalarValue::Float64(Some(step))) => {
                ScalarValue::Float64(Some((value / step).floor() * step))
            }
            (value, _) => value,
        }
    }

    fn known(&mut self, expr: &'a Expr, kql_type: KqlType, environment: &Environment<'a>) -> Result<ScalarValue> {
        let typed = self.scalar(expr, &ExpressionScope::constant(environment))?;
        if typed.kql_type == KqlType::TimeSpan && kql_type.is_numeric() {
            let message = format!("an axis of type {} has no bounds and no step that are timespans", kql_type.name());
            return fail(BindErrorCode::TypeMismatch, expr.span, message);
        }
        let typed = self.convert(typed, kql_type, expr.span)?;
        match constant_of(&typed.expr)? {
            Some(value) => Ok(value),
            None => invalid(expr.span, "this must be a constant"),
        }
    }

    /// Returns the least and the greatest value of an axis.
    fn bounds(&mut self, input: &Relation, on: &Typed) -> Result<(ScalarValue, ScalarValue)> {
        let kql_type = if on.kql_type == KqlType::Int { KqlType::Long } else { on.kql_type };
        let value = cast(on.expr.clone(), kql_type.arrow_type());
        let value = if kql_type == KqlType::Real {
            when(isnan().call(vec![value.clone()]), lit(ScalarValue::Float64(None))).otherwise(value)?
        } else {
            value
        };
        let aggregates = vec![min(value.clone()).alias("low"), max(value).alias("high")];
        let plan =
            LogicalPlanBuilder::from(input.plan.clone()).aggregate(Vec::<PlanExpr>::new(), aggregates)?.build()?;
        let rows = self.rows(plan, 1)?;
        match rows.iter().find(|batch| batch.num_rows() > 0) {
            Some(batch) => {
                Ok((ScalarValue::try_from_array(batch.column(0), 0)?, ScalarValue::try_from_array(batch.column(1), 0)?))
            }
            None => {
                let null = crate::bind::null_of(kql_type);
                Ok((null.clone(), null))
            }
        }
    }

    fn in_type(&mut self, typed: Typed, kql_type: KqlType, span: Span) -> Result<Typed> {
        if typed.kql_type.is_numeric() && kql_type.is_numeric() {
            return self.convert(typed, kql_type, span);
        }
        Ok(typed)
    }

    /// Returns a constant as JSON.
    fn json_of(&mut self, typed: Typed, span: Span) -> Result<String> {
        let array = self.apply("pack_array", vec![typed], span)?;
        match constant_of(&array.expr)? {
            Some(ScalarValue::Utf8(Some(text))) => {
                let element = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
                Ok(element.unwrap_or(&text).to_owned())
            }
            _ => invalid(span, "the default must be a constant"),
        }
    }

    /// Returns the axis as an array.
    fn axis_text(&mut self, axis: &SeriesAxis, span: Span) -> Result<Typed> {
        let mut texts = Vec::with_capacity(usize::try_from(axis.bins).unwrap_or(0));
        for bin in 0..axis.bins {
            let value = match (&axis.from, &axis.step) {
                (ScalarValue::Int64(Some(from)), ScalarValue::Int64(Some(step))) => {
                    ScalarValue::Int64(Some(from.saturating_add(step.saturating_mul(bin))))
                }
                (ScalarValue::Float64(Some(from)), ScalarValue::Float64(Some(step))) => {
                    ScalarValue::Float64(Some(from + step * bin as f64))
                }
                _ => ScalarValue::Null,
            };
            texts.push(self.json_of(Typed::new(lit(value), axis.kql_type), span)?);
        }
        Ok(Typed::new(lit(format!("[{}]", texts.join(","))), KqlType::Dynamic))
    }
}
