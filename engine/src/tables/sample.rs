//! Uniform random samples of a table's rows.
//!
//! Where rows can be addressed (managed tables, external Parquet) random positions are drawn first and only the pages
//! that hold them are read. Elsewhere a reservoir is drawn from the rows that can be read in a bounded time.

use std::sync::Arc;
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::compute::interleave_record_batch;
use datafusion::catalog::Session;
use datafusion::common::stats::Precision;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::ExecutionPlan;
use futures::StreamExt;
use querent_catalog::{Catalog, ResolvedTable, TableSource};
use rand::Rng;
use tokio::time::Instant;

use super::external::ExternalTableProvider;
use super::managed::ManagedTableProvider;
use super::row_positions::with_rows;
use crate::error::Result;

/// Returns a plan for `n` rows of a table at random positions, or for all of a smaller one; `None` where rows cannot be
/// addressed without reading those before them.
pub(crate) async fn by_position(
    catalog: &Arc<Catalog>,
    state: &dyn Session,
    table: &ResolvedTable,
    n: usize,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let scan = match &table.source {
        TableSource::Managed(managed) => {
            let provider = ManagedTableProvider::new(catalog, state, table, managed);
            let contents = provider.contents(state, Some(&Vec::new()), &[]).await?;
            contents.is_whole_files().then_some(contents.scan)
        }
        TableSource::External(external) => {
            ExternalTableProvider::try_new(state, table, external, false).await?.file_scan(state, &[]).await?
        }
        TableSource::View { .. } => None,
    };
    let Some(mut scan) = scan else { return Ok(None) };
    let Some(rows) = scan.files.iter().map(row_count).collect::<Option<Vec<usize>>>() else { return Ok(None) };
    let total: usize = rows.iter().sum();
    if total > n {
        let mut positions = rand::seq::index::sample(&mut rand::rng(), total, n).into_vec();
        positions.sort_unstable();
        let mut before = 0;
        let mut chosen = Vec::new();
        for (file, rows) in scan.files.into_iter().zip(rows) {
            let from = positions.partition_point(|position| *position < before);
            let to = positions.partition_point(|position| *position < before + rows);
            let inside: Vec<usize> = positions[from..to].iter().map(|position| position - before).collect();
            before += rows;
            if inside.is_empty() {
                continue;
            }
            match with_rows(state, &scan.store, file, rows, &inside).await? {
                Some(file) => chosen.push(file),
                None => return Ok(None),
            }
        }
        scan.files = chosen;
    }
    Ok(Some(scan.plan(state, None, None).await?))
}

fn row_count(file: &PartitionedFile) -> Option<usize> {
    match file.statistics.as_ref()?.num_rows {
        Precision::Exact(rows) => Some(rows),
        Precision::Inexact(_) | Precision::Absent => None,
    }
}

/// Returns `n` random rows of those that can be read in `time`, and whether those were all.
pub(crate) async fn reservoir(
    mut input: SendableRecordBatchStream,
    n: usize,
    time: Duration,
) -> Result<(RecordBatch, bool)> {
    let deadline = Instant::now() + time;
    let mut kept = RecordBatch::new_empty(input.schema());
    let mut seen = 0usize;
    loop {
        let batch = match tokio::time::timeout_at(deadline, input.next()).await {
            Ok(Some(batch)) => batch?,
            Ok(None) => return Ok((kept, true)),
            Err(_) => return Ok((kept, false)),
        };
        if let Some(slots) = replaced(&kept, &batch, n, seen) {
            kept = interleave_record_batch(&[&kept, &batch], &slots)?;
        }
        seen += batch.num_rows();
        tokio::task::consume_budget().await;
    }
}

/// Algorithm R (Vitter 1985), a batch at a time: returns which rows of those kept (0) and of the next batch (1) are kept
/// after it, where `seen` rows came before; `None` where nothing changes.
fn replaced(kept: &RecordBatch, batch: &RecordBatch, n: usize, seen: usize) -> Option<Vec<(usize, usize)>> {
    let mut random = rand::rng();
    let mut slots: Vec<(usize, usize)> = (0..kept.num_rows()).map(|row| (0, row)).collect();
    let mut changed = false;
    for row in 0..batch.num_rows() {
        if slots.len() < n {
            slots.push((1, row));
            changed = true;
        } else if let Some(slot) = slots.get_mut(random.random_range(0..=seen + row)) {
            *slot = (1, row);
            changed = true;
        }
    }
    changed.then_some(slots)
}
