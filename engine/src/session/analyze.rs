//! `ANALYZE` as it is carried out: one pass over the table, and then its distinct values are known to plans.

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, UInt64Type};
use datafusion::logical_expr::LogicalPlan;
use futures::TryStreamExt;
use querent_catalog::{ResolvedTable, TableSource};

use super::Session;
use crate::error::{EngineError, Result};
use crate::limits::Interrupt;

impl Session {
    /// Counts rows and distinct values by `input`, and keeps the counts of `columns` (their ids).
    pub(super) async fn analyze_table(
        &self,
        target: &ResolvedTable,
        columns: &[i64],
        input: &LogicalPlan,
        interrupt: &Interrupt,
    ) -> Result<()> {
        let TableSource::Managed(table) = &target.source else {
            return Err(EngineError::Internal(format!("ANALYZE of `{}`", target.info.name)));
        };
        let batches: Vec<RecordBatch> = self.execute_query(input, interrupt).await?.try_collect().await?;
        let row = batches.iter().find(|batch| batch.num_rows() > 0);
        let row = row.ok_or_else(|| EngineError::Internal("an aggregation without a row".to_owned()))?;
        let counts = row.columns().iter().map(|column| {
            let counts = cast(column, &DataType::UInt64)?;
            let counts = counts.as_primitive::<UInt64Type>();
            Ok(if counts.is_null(0) { 0 } else { counts.value(0) })
        });
        let counts = counts.collect::<Result<Vec<u64>>>()?;
        let (rows, distinct) = counts.split_first().ok_or_else(|| EngineError::Internal("no counts".to_owned()))?;
        // A sketch may count more values than there are rows.
        let counts = columns.iter().zip(distinct).map(|(column, count)| (*column, *count.min(rows))).collect();
        self.engine().catalog().tables().keep_distinct_values(table, *rows, counts).await?;
        // A kept plan remembers what its tables were like.
        self.engine().forget_plans();
        Ok(())
    }
}
