//! How many rows a table gives, and how many values a column of it has, as far as statistics tell.

use std::sync::Arc;

use datafusion::common::stats::Precision;
use datafusion::common::{ScalarValue, Statistics};
use datafusion::error::Result;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{BinaryExpr, Column, InListExpr, LikeExpr, Literal};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::ProjectionExec;

/// The share of rows that pass what nothing is known of.
const UNKNOWN: f64 = 0.2;
/// The share of rows that match a pattern.
const PATTERN: f64 = 0.1;
/// Values of a column of which only the rows are known: this power of them.
const VALUES_OF_ROWS: f64 = 0.6;

/// What is thought of one of the joined tables.
#[derive(Debug)]
pub(super) struct LeafEstimate {
    rows: f64,
    rows_before_filters: f64,
    statistics: Arc<Statistics>,
}

impl LeafEstimate {
    /// Returns the estimate of a plan; `None` where its rows are not known.
    pub(super) fn of(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<Self>> {
        let statistics = plan.partition_statistics(None)?;
        let (rows, rows_before_filters) = match filtered_rows(plan)? {
            Some(rows) => rows,
            None => match statistics.num_rows.get_value() {
                Some(rows) => (*rows as f64, *rows as f64),
                None => return Ok(None),
            },
        };
        Ok(Some(Self { rows: rows.max(1.0), rows_before_filters: rows_before_filters.max(1.0), statistics }))
    }

    /// Returns the rows, one at least.
    pub(super) fn rows(&self) -> f64 {
        self.rows
    }

    /// Returns the rows of the table before its filters, one at least.
    pub(super) fn rows_before_filters(&self) -> f64 {
        self.rows_before_filters
    }

    /// Returns the values that a column is thought to have, one at least and no more than there are rows. A key that nothing is
    /// known of is thought to be unique.
    pub(super) fn distinct(&self, column: usize) -> f64 {
        distinct(&self.statistics, column).unwrap_or(self.rows).clamp(1.0, self.rows)
    }
}

/// Returns the rows that a filter leaves and those that it is given; `None` where a plan is none, projections aside, or the rows
/// below it are not known.
fn filtered_rows(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<(f64, f64)>> {
    if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        return filtered_rows(projection.input());
    }
    let Some(filter) = plan.downcast_ref::<FilterExec>() else { return Ok(None) };
    let below = filter.input().partition_statistics(None)?;
    let Some(rows) = below.num_rows.get_value().map(|rows| *rows as f64) else { return Ok(None) };
    Ok(Some((rows * share(filter.predicate(), &below, rows), rows)))
}

/// Returns the share of rows that pass a predicate.
fn share(predicate: &Arc<dyn PhysicalExpr>, statistics: &Statistics, rows: f64) -> f64 {
    let of = |expr: &Arc<dyn PhysicalExpr>| share(expr, statistics, rows);
    let one_of = |column: usize| 1.0 / distinct(statistics, column).unwrap_or(rows.powf(VALUES_OF_ROWS)).max(1.0);
    if let Some(binary) = predicate.downcast_ref::<BinaryExpr>() {
        let (left, right) = (binary.left(), binary.right());
        return match binary.op() {
            Operator::And => of(left) * of(right),
            Operator::Or => (of(left) + of(right)).min(1.0),
            Operator::Eq => column_of(left, right).map_or(UNKNOWN, |(column, _)| one_of(column)),
            Operator::NotEq => column_of(left, right).map_or(1.0, |(column, _)| 1.0 - one_of(column)),
            Operator::Lt | Operator::LtEq => below(left, right, statistics),
            Operator::Gt | Operator::GtEq => below(right, left, statistics),
            _ => UNKNOWN,
        };
    }
    if let Some(list) = predicate.downcast_ref::<InListExpr>() {
        let column = list.expr().downcast_ref::<Column>().map(Column::index);
        let found = column.map_or(UNKNOWN, |column| one_of(column) * list.list().len() as f64).min(1.0);
        return if list.negated() { 1.0 - found } else { found };
    }
    if let Some(like) = predicate.downcast_ref::<LikeExpr>() {
        return if like.negated() { 1.0 - PATTERN } else { PATTERN };
    }
    UNKNOWN
}

fn column_of<'a>(one: &'a Arc<dyn PhysicalExpr>, other: &'a Arc<dyn PhysicalExpr>) -> Option<(usize, &'a ScalarValue)> {
    let pair = |column: &'a Arc<dyn PhysicalExpr>, value: &'a Arc<dyn PhysicalExpr>| {
        Some((column.downcast_ref::<Column>()?.index(), value.downcast_ref::<Literal>()?.value()))
    };
    pair(one, other).or_else(|| pair(other, one))
}

/// Returns the share of rows in which `lower` is below `upper`, by the range of the column that one of them is.
fn below(lower: &Arc<dyn PhysicalExpr>, upper: &Arc<dyn PhysicalExpr>, statistics: &Statistics) -> f64 {
    let Some((column, value)) = column_of(lower, upper) else { return UNKNOWN };
    let Some(known) = statistics.column_statistics.get(column) else { return UNKNOWN };
    let number = |value: &Precision<ScalarValue>| value.get_value().and_then(as_number);
    let (Some(min), Some(max), Some(value)) = (number(&known.min_value), number(&known.max_value), as_number(value))
    else {
        return UNKNOWN;
    };
    if max <= min {
        return UNKNOWN;
    }
    let part = ((value - min) / (max - min)).clamp(0.0, 1.0);
    let is_column_lower = lower.downcast_ref::<Column>().is_some();
    if is_column_lower { part } else { 1.0 - part }
}

/// Returns the values that a column is known or bound to have; `None` where nothing is known.
fn distinct(statistics: &Statistics, column: usize) -> Option<f64> {
    let known = statistics.column_statistics.get(column)?;
    if let Some(count) = known.distinct_count.get_value() {
        return Some(*count as f64);
    }
    let (min, max) = (known.min_value.get_value()?, known.max_value.get_value()?);
    // Whole numbers have no more values than their range.
    let is_whole = min.data_type().is_integer() || min.data_type().is_temporal();
    is_whole.then(|| as_number(max).zip(as_number(min)).map(|(max, min)| (max - min + 1.0).max(1.0))).flatten()
}

/// Returns a value as a number: what it is, or the days or ticks that it is stored as.
fn as_number(value: &ScalarValue) -> Option<f64> {
    Some(match value {
        ScalarValue::Int8(Some(value)) => f64::from(*value),
        ScalarValue::Int16(Some(value)) => f64::from(*value),
        ScalarValue::Int32(Some(value)) | ScalarValue::Date32(Some(value)) => f64::from(*value),
        ScalarValue::Int64(Some(value))
        | ScalarValue::TimestampSecond(Some(value), _)
        | ScalarValue::TimestampMillisecond(Some(value), _)
        | ScalarValue::TimestampMicrosecond(Some(value), _)
        | ScalarValue::TimestampNanosecond(Some(value), _) => *value as f64,
        ScalarValue::UInt8(Some(value)) => f64::from(*value),
        ScalarValue::UInt16(Some(value)) => f64::from(*value),
        ScalarValue::UInt32(Some(value)) => f64::from(*value),
        ScalarValue::UInt64(Some(value)) => *value as f64,
        ScalarValue::Float32(Some(value)) => f64::from(*value),
        ScalarValue::Float64(Some(value)) => *value,
        ScalarValue::Decimal128(Some(value), _, scale) => *value as f64 / 10_f64.powi(i32::from(*scale)),
        _ => return None,
    })
}
