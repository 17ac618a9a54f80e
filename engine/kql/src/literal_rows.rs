//! Whether all rows of a plan come from the query's own text. Such rows have an order, the one they are written in, and
//! there are few of them: in one partition groups come in the order in which the rows first name them.

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::datasource::source_as_provider;
use datafusion::functions_table::generate_series::GenerateSeriesTable;
use datafusion::logical_expr::{LogicalPlan, TableScan};

use crate::materialized::Materialized;

/// The most rows of a `range` that count as written.
const MOST_RANGE_ROWS: usize = 100_000;

/// Whether a plan reads only what the query writes: `datatable`, `print`, a short `range`, and parts made of these.
pub fn is_over_literals(plan: &LogicalPlan) -> bool {
    let mut reads_others = false;
    let walked = plan.apply_with_subqueries(|node| {
        let is_written = match node {
            LogicalPlan::Values(_) | LogicalPlan::EmptyRelation(_) => true,
            LogicalPlan::TableScan(scan) => is_written_scan(scan),
            other => !other.inputs().is_empty(),
        };
        reads_others |= !is_written;
        Ok(if is_written { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
    });
    walked.is_ok() && !reads_others
}

fn is_written_scan(scan: &TableScan) -> bool {
    let Ok(provider) = source_as_provider(&scan.source) else { return false };
    if let Some(part) = provider.downcast_ref::<Materialized>() {
        return part.is_over_literals();
    }
    // The plan of a `range` says how many rows it has.
    provider.is::<GenerateSeriesTable>() && scan.fetch.is_some_and(|rows| rows <= MOST_RANGE_ROWS)
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "each test has a runtime of its own")]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Int64Array, RecordBatch};
    use datafusion::prelude::SessionContext;

    use super::*;
    use crate::KqlParameters;

    #[tokio::test]
    async fn rows_of_tables_and_of_long_ranges_are_not_written() {
        let context = SessionContext::new();
        let values = Arc::new(Int64Array::from(vec![1, 2]));
        context.register_batch("stored", RecordBatch::try_from_iter([("v", values as _)]).unwrap()).unwrap();
        for (query, expected) in [
            ("datatable(v:long)[1, 2] | summarize count() by v", true),
            ("print v = 1 | union (range v from 1 to 10 step 1)", true),
            ("let m = materialize(datatable(v:long)[1]); m | join m on v", true),
            ("print a = dynamic([1, 2]) | mv-expand a | where a in (datatable(v:long)[1])", true),
            ("range v from 1 to 200000 step 1 | count", false),
            ("stored | count", false),
            ("datatable(v:long)[1] | join kind=inner stored on v", false),
            ("let m = materialize(stored); m | union m", false),
        ] {
            let planned = crate::plan(&context.state(), query, &KqlParameters::new()).await.unwrap();
            assert_eq!(is_over_literals(&planned.plan), expected, "{query}");
        }
    }
}
