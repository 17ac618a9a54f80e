//! A table of the catalog as KQL sees it: each Arrow type becomes the KQL type that holds its values, where that is
//! another one by casts and arithmetic of DataFusion's own. What is of the right type already stays as it is, so that
//! filters reach the files.

use std::sync::Arc;

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::Column as PlanColumn;
use datafusion::functions::encoding::encode;
use datafusion::logical_expr::{Expr as PlanExpr, LogicalPlanBuilder, TableSource, cast, lit};
use datafusion::prelude::coalesce;

use super::super::bind::{Binder, Result};
use super::super::json_text;
use super::super::span::Span;
use super::super::types::{DECIMAL_PRECISION, DECIMAL_SCALE, KqlType};
use super::super::values::{
    TICKS_PER_DAY, TICKS_PER_MICROSECOND, TICKS_PER_MILLISECOND, TICKS_PER_SECOND, UNIX_EPOCH_TICKS,
};
use super::{Column, Relation};

const NANOSECONDS_PER_TICK: i64 = 100;

impl Binder<'_> {
    /// Reads a table.
    pub(crate) fn scan(&mut self, name: &str, source: Arc<dyn TableSource>, _span: Span) -> Result<Relation> {
        let scanned = LogicalPlanBuilder::scan(name, source, None)?;
        let schema = Arc::clone(scanned.schema());
        let mut exprs = Vec::with_capacity(schema.fields().len());
        let mut columns = Vec::with_capacity(schema.fields().len());
        for (qualifier, stored) in schema.iter() {
            let column = PlanExpr::Column(PlanColumn::new(qualifier.cloned(), stored.name()));
            let (expr, kql_type) = converted(column, stored.data_type());
            let field = self.field(stored.name());
            exprs.push(expr.alias(field.clone()));
            columns.push(Column { name: stored.name().clone(), field, kql_type });
        }
        let plan = scanned.project(exprs)?.build()?;
        Ok(Relation { name: Some(name.to_owned()), ..Relation::new(plan, columns) })
    }
}

/// A stored column in the KQL type that holds its values.
fn converted(column: PlanExpr, stored: &DataType) -> (PlanExpr, KqlType) {
    let ticks = |scaled: PlanExpr| scaled + lit(UNIX_EPOCH_TICKS);
    let long = |expr: PlanExpr| cast(expr, DataType::Int64);
    match stored {
        DataType::Boolean => (column, KqlType::Bool),
        DataType::Int32 => (column, KqlType::Int),
        DataType::Int8 | DataType::Int16 | DataType::UInt8 | DataType::UInt16 => {
            (cast(column, DataType::Int32), KqlType::Int)
        }
        DataType::Int64 => (column, KqlType::Long),
        DataType::UInt32 => (long(column), KqlType::Long),
        // Past what a long holds it would fail; a decimal holds it all.
        DataType::UInt64 | DataType::Decimal32(..) | DataType::Decimal64(..) | DataType::Decimal128(..) => {
            (cast(column, DataType::Decimal128(DECIMAL_PRECISION, DECIMAL_SCALE)), KqlType::Decimal)
        }
        DataType::Float64 => (column, KqlType::Real),
        DataType::Float16 | DataType::Float32 => (cast(column, DataType::Float64), KqlType::Real),
        DataType::Utf8 => (coalesce(vec![column, lit("")]), KqlType::String),
        DataType::Date32 => {
            let days = long(cast(column, DataType::Int32));
            (ticks(days * lit(TICKS_PER_DAY)), KqlType::DateTime)
        }
        DataType::Date64 => (ticks(long(column) * lit(TICKS_PER_MILLISECOND)), KqlType::DateTime),
        DataType::Timestamp(unit, _) => (ticks(scaled(long(column), *unit)), KqlType::DateTime),
        DataType::Duration(unit) => (scaled(long(column), *unit), KqlType::TimeSpan),
        DataType::Time32(TimeUnit::Second) => {
            (long(cast(column, DataType::Int32)) * lit(TICKS_PER_SECOND), KqlType::TimeSpan)
        }
        DataType::Time32(_) => (long(cast(column, DataType::Int32)) * lit(TICKS_PER_MILLISECOND), KqlType::TimeSpan),
        DataType::Time64(unit) => (scaled(long(column), *unit), KqlType::TimeSpan),
        DataType::Interval(_) => {
            let span = cast(column, DataType::Duration(TimeUnit::Nanosecond));
            (scaled(long(span), TimeUnit::Nanosecond), KqlType::TimeSpan)
        }
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
            let text = encode().call(vec![cast(column, DataType::Binary), lit("base64")]);
            (coalesce(vec![text, lit("")]), KqlType::String)
        }
        DataType::List(_)
        | DataType::LargeList(_)
        | DataType::FixedSizeList(..)
        | DataType::ListView(_)
        | DataType::LargeListView(_)
        | DataType::Struct(_)
        | DataType::Map(..) => (json_text::json_text().call(vec![column]), KqlType::Dynamic),
        _ => (coalesce(vec![cast(column, DataType::Utf8), lit("")]), KqlType::String),
    }
}

/// A number of some unit of time in ticks.
fn scaled(number: PlanExpr, unit: TimeUnit) -> PlanExpr {
    match unit {
        TimeUnit::Second => number * lit(TICKS_PER_SECOND),
        TimeUnit::Millisecond => number * lit(TICKS_PER_MILLISECOND),
        TimeUnit::Microsecond => number * lit(TICKS_PER_MICROSECOND),
        TimeUnit::Nanosecond => number / lit(NANOSECONDS_PER_TICK),
    }
}
