//! A table of the catalog as KQL sees it: each Arrow type becomes the KQL type that holds its values, where that is
//! another one by a cast, or by a function of ours. What is of the right type already stays as it is, so that
//! filters reach the files.

mod comparisons;
mod conversion;
mod json_text;
mod strings;
mod ticks;

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::Column as PlanColumn;
use datafusion::functions::encoding::encode;
use datafusion::logical_expr::{
    Expr as PlanExpr, LogicalPlanBuilder, Operator, ScalarUDF, TableSource, binary_expr, cast, lit,
};
use datafusion::prelude::substring;

use super::{Column, Relation};
use crate::bind::{Binder, Result};
use crate::types::{GUID_BYTES, KqlType};

pub use comparisons::StoredComparisons;
pub(super) use conversion::StoredConversion;

/// Whether a function is one of this one's own.
pub(super) fn is_scan_function(function: &ScalarUDF) -> bool {
    StoredConversion::from_udf(function).is_some()
}

impl Binder<'_> {
    /// Reads a table; the columns of text that `json` names hold JSON, and those of `uuids` UUIDs.
    pub(crate) fn scan(
        &mut self,
        name: &str,
        source: Arc<dyn TableSource>,
        json: &[String],
        uuids: &[String],
    ) -> Result<Relation> {
        let scanned = LogicalPlanBuilder::scan(name, source, None)?;
        let schema = Arc::clone(scanned.schema());
        let mut exprs = Vec::with_capacity(schema.fields().len());
        let mut columns = Vec::with_capacity(schema.fields().len());
        for (qualifier, stored) in schema.iter() {
            let column = PlanExpr::Column(PlanColumn::new(qualifier.cloned(), stored.name()));
            let is_json = stored.data_type().is_string() && json.contains(stored.name());
            let is_uuid = stored.data_type().is_string() && uuids.contains(stored.name());
            let kql_type = KqlType::of_column(stored.data_type(), is_json, is_uuid);
            let field = self.field(stored.name());
            let value = match (is_json, is_uuid) {
                (true, _) => StoredConversion::JsonText.call(column),
                (_, true) => cast(column, kql_type.arrow_type()),
                _ => converted(column, stored.data_type()),
            };
            exprs.push(value.alias(field.clone()));
            columns.push(Column { name: stored.name().clone(), field, kql_type });
        }
        let plan = scanned.project(exprs)?.build()?;
        Ok(Relation { name: Some(name.to_owned()), ..Relation::new(plan, columns) })
    }
}

/// Converts a stored column to [`KqlType::from_stored`] of its type.
fn converted(column: PlanExpr, stored: &DataType) -> PlanExpr {
    match stored {
        DataType::Boolean | DataType::Int32 | DataType::Int64 | DataType::Float64 => column,
        DataType::Int8
        | DataType::Int16
        | DataType::UInt8
        | DataType::UInt16
        | DataType::UInt32
        | DataType::UInt64
        | DataType::Decimal32(..)
        | DataType::Decimal64(..)
        | DataType::Decimal128(..)
        | DataType::Decimal256(..)
        | DataType::Float16
        | DataType::Float32 => cast(column, KqlType::from_stored(stored).arrow_type()),
        DataType::Utf8View | DataType::Utf8 | DataType::LargeUtf8 => StoredConversion::String.call(column),
        DataType::Date32
        | DataType::Date64
        | DataType::Timestamp(..)
        | DataType::Duration(_)
        | DataType::Time32(_)
        | DataType::Time64(_)
        | DataType::Interval(_) => StoredConversion::Ticks.call(column),
        DataType::FixedSizeBinary(GUID_BYTES) => guid_text(column),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
            let text = encode().call(vec![cast(column, DataType::Binary), lit("base64")]);
            StoredConversion::String.call(text)
        }
        DataType::List(_)
        | DataType::LargeList(_)
        | DataType::FixedSizeList(..)
        | DataType::ListView(_)
        | DataType::LargeListView(_)
        | DataType::Struct(_)
        | DataType::Map(..) => StoredConversion::Json.call(column),
        DataType::Dictionary(_, values) => converted(cast(column, values.as_ref().clone()), values),
        _ => StoredConversion::String.call(cast(column, DataType::Utf8View)),
    }
}

/// The 16 bytes of a UUID as its 36 characters.
fn guid_text(column: PlanExpr) -> PlanExpr {
    let digits = encode().call(vec![cast(column, DataType::Binary), lit("hex")]);
    let part = |from: i64, count: i64| substring(digits.clone(), lit(from), lit(count));
    let parts =
        [part(1, 8), lit("-"), part(9, 4), lit("-"), part(13, 4), lit("-"), part(17, 4), lit("-"), part(21, 12)];
    parts.into_iter().reduce(|left, right| binary_expr(left, Operator::StringConcat, right)).unwrap_or_else(|| lit(""))
}
