//! Rows that binding reads as a whole, and tables of rows that it makes of them.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::compute::{cast, concat};
use arrow::datatypes::{Field, Schema};
use arrow::error::ArrowError;
use datafusion::common::Column as PlanColumn;
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::datasource::provider_as_source;
use datafusion::error::DataFusionError;
use datafusion::logical_expr::{Expr as PlanExpr, LogicalPlanBuilder};

use super::{Column, Relation};
use crate::bind::{BindErrorCode, Binder, Result, fail};
use crate::materialized::Materialized;
use crate::span::Span;

/// The table name of made rows in a plan.
const SCAN: &str = "made";

impl Binder<'_> {
    /// Returns each column's values, of its KQL type, and the number of rows. Errors: more than `most`, which are `what`.
    pub(super) fn all_rows(
        &mut self,
        table: Relation,
        most: usize,
        span: Span,
        what: &str,
    ) -> Result<(Vec<(Column, ArrayRef)>, usize)> {
        let exprs: Vec<_> = table.columns.iter().map(|column| column.expr().alias(column.field.clone())).collect();
        let plan = LogicalPlanBuilder::from(table.plan_in_order()?).project(exprs)?.build()?;
        let batches = self.rows(plan, most + 1)?;
        let count: usize = batches.iter().map(RecordBatch::num_rows).sum();
        if count > most {
            return fail(BindErrorCode::TooLarge, span, format!("these are more than {most} {what}"));
        }
        let mut arrays: Vec<(Column, ArrayRef)> = Vec::with_capacity(table.columns.len());
        for (index, column) in table.columns.into_iter().enumerate() {
            let parts: Vec<&dyn Array> = batches.iter().map(|batch| batch.column(index).as_ref()).collect();
            let to = column.kql_type.arrow_type();
            let whole = if parts.is_empty() {
                arrow::array::new_empty_array(&to)
            } else {
                concat(&parts).map_err(arrow_error)?
            };
            arrays.push((column, cast(&whole, &to).map_err(arrow_error)?));
        }
        Ok((arrays, count))
    }

    /// Returns columns with their values, `count` of each, as a table.
    pub(super) fn made_table(&mut self, columns: Vec<(Column, ArrayRef)>, count: usize) -> Result<Relation> {
        let (batch, columns) = batch_of(columns, count)?;
        self.made_rows(batch, columns)
    }

    /// Returns rows that are made as a table. The fields of `batch` are those of `columns`.
    pub(super) fn made_rows(&mut self, batch: RecordBatch, columns: Vec<Column>) -> Result<Relation> {
        let schema = batch.schema();
        let fields: Vec<String> = schema.fields().iter().map(|field| field.name().clone()).collect();
        let rows = Materialized::new(MemorySourceConfig::try_new_exec(&[vec![batch]], schema, None)?, false);
        rows.all_uses_are_known();
        let exprs = fields
            .into_iter()
            .map(|field| PlanExpr::Column(PlanColumn::new(Some(SCAN), field.clone())).alias(field))
            .collect::<Vec<_>>();
        let scan = LogicalPlanBuilder::scan(SCAN, provider_as_source(Arc::new(rows)), None)?;
        Ok(Relation::new(scan.project(exprs)?.build()?, columns))
    }
}

/// Returns columns with their values, `count` of each, as a batch whose fields are the columns'.
pub(super) fn batch_of(columns: Vec<(Column, ArrayRef)>, count: usize) -> Result<(RecordBatch, Vec<Column>)> {
    let field = |(column, array): &(Column, ArrayRef)| Field::new(&column.field, array.data_type().clone(), true);
    let schema = Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()));
    let (columns, arrays): (Vec<Column>, Vec<ArrayRef>) = columns.into_iter().unzip();
    let options = RecordBatchOptions::new().with_row_count(Some(count));
    Ok((RecordBatch::try_new_with_options(schema, arrays, &options).map_err(arrow_error)?, columns))
}

pub(super) fn arrow_error(error: ArrowError) -> DataFusionError {
    DataFusionError::from(error)
}
