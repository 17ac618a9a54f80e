//! Rows in the order in which their table has them written, so that each row group and each file has a small range of values.
//!
//! The order is made by a sort of the query's, within its memory and with spilling. Nothing is told of it when the table is read.

use std::borrow::Cow;
use std::sync::Arc;

use datafusion::catalog::Session as PlanningSession;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::logical_expr::{Expr, LogicalPlan, Sort, SortExpr};
use datafusion::physical_plan::execute_stream;
use querent_catalog::{ColumnInfo, SortedByKey};

use super::ingest::arriving;
use crate::engine::Engine;
use crate::error::Result;
use crate::identifiers::same_name;
use crate::limits::Limits;
use crate::sql::sort_orders::is_sortable;

/// Returns the query with its rows in an order; `columns` are the table's, of which the query has the first at `first`. A key that is no
/// column ends the order.
pub(super) fn sorted_rows<'p>(
    query: &'p LogicalPlan,
    order: &[SortedByKey],
    columns: &[ColumnInfo],
    first: usize,
) -> Cow<'p, LogicalPlan> {
    let given = query.schema().columns();
    let sort_expr = |key: &SortedByKey| -> Option<SortExpr> {
        let name = key.column()?;
        let place = columns.iter().position(|column| same_name(&column.name, &name))?;
        if !is_sortable(&columns.get(place)?.data_type) {
            return None;
        }
        let column = given.get(first + place)?.clone();
        Some(Expr::Column(column).sort(!key.is_descending, key.nulls_first))
    };
    let keys: Vec<SortExpr> = order.iter().map_while(sort_expr).collect();
    if keys.is_empty() {
        return Cow::Borrowed(query);
    }
    Cow::Owned(LogicalPlan::Sort(Sort { expr: keys, input: Arc::new(query.clone()), fetch: None }))
}

/// Returns the rows of a stream in an order, as [`sorted_rows`] has it, within the memory that a query has by default.
pub(crate) async fn sorted_stream(
    engine: &Engine,
    state: &dyn PlanningSession,
    rows: SendableRecordBatchStream,
    order: &[SortedByKey],
    columns: &[ColumnInfo],
) -> Result<SendableRecordBatchStream> {
    if order.is_empty() {
        return Ok(rows);
    }
    let arriving_rows = arriving(rows)?;
    let plan = state.create_physical_plan(&sorted_rows(&arriving_rows, order, columns, 0)).await?;
    let runtime = engine.runtime();
    let memory = runtime.query_memory(&Limits::default());
    Ok(execute_stream(plan, runtime.task(runtime.config().clone(), &memory))?)
}
