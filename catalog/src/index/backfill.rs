//! Vectors for rows that reached Lance without one: after a rebuild, a registration of many tables, an outage of the
//! embedder, or a start without one. It works in slices, each written before the next, so that a kill costs one
//! slice and searches profit early.

use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, stream};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::lance::{IndexRow, IndexWriter};
use super::maintain::install;
use super::{IndexPart, UpkeepTask};
use crate::error::Result;
use crate::store::pending::ObjectKind;

/// The time that one slice takes to embed: other upkeep waits for it.
const SLICE: Duration = Duration::from_secs(20);
/// Rows of one slice: about 25 MB of vectors.
const MAX_ROWS: usize = 16 * 1024;
/// Texts embedded in one call. Texts of similar length go together, since a batch is padded to its longest.
const BATCH: usize = 16;
/// The same while a search is in progress.
const BUSY_BATCH: usize = 2;
const FAST_BATCH: usize = 1024;
/// Beyond this many distinct column texts, those without a vector are found by full text only.
const MAX_EMBEDDED_COLUMNS: usize = 1_000_000;

/// Embeds one slice of the rows that lack a vector. Returns whether any were written.
pub(super) async fn embed_rows(part: &IndexPart, writer: &mut IndexWriter, stop: &CancellationToken) -> Result<bool> {
    let can_embed = part.vectorizer.model().is_some() && part.vectorizer.pause().is_none();
    if !part.state.read().lacks_vectors || !can_embed {
        return Ok(false);
    }
    if part.kind == ObjectKind::Column && writer.rows() > MAX_EMBEDDED_COLUMNS {
        part.state.write().lacks_vectors = false;
        part.note_change();
        return Ok(false);
    }
    let mut rows = writer.rows_without_vector(MAX_ROWS).await?;
    if rows.is_empty() {
        part.state.write().lacks_vectors = false;
        writer.optimize(true).await?;
        install(part, writer, Vec::new(), false).await?;
        return Ok(true);
    }
    embed(part, &mut rows, stop, Some(Instant::now() + SLICE)).await;
    rows.retain(|row| row.vector.is_some());
    if rows.is_empty() {
        // Whoever waits for the vectors learns that the embedder fails.
        part.note_change();
        return Ok(false);
    }
    writer.replace(&rows, &[]).await?;
    writer.optimize(false).await?;
    let (done, total) = {
        let mut state = part.state.write();
        state.backfilled += rows.len() as u64;
        (state.backfilled, state.to_backfill.max(state.backfilled))
    };
    part.progress.report(part.task(UpkeepTask::Vectors), done, total);
    install(part, writer, Vec::new(), false).await?;
    Ok(true)
}

/// Sets the vectors that are available at once: those that the dataset holds for the same texts, and all where the
/// embedder is fast.
pub(super) async fn embed_at_once(part: &IndexPart, rows: &mut [IndexRow], stop: &CancellationToken) {
    if part.vectorizer.is_fast() {
        return embed(part, rows, stop, None).await;
    }
    let lacking = rows.iter().filter(|row| row.vector.is_none());
    let texts: Vec<(i64, &str)> = lacking.map(|row| (row.object_id, row.text.as_str())).collect();
    let mut known = part.known_vectors(&texts).await;
    for row in rows.iter_mut().filter(|row| row.vector.is_none()) {
        row.vector = known.remove(&row.object_id);
    }
}

/// Embeds the rows on all workers of the embedder, until stopped, failed or out of time.
async fn embed(part: &IndexPart, rows: &mut [IndexRow], stop: &CancellationToken, deadline: Option<Instant>) {
    let batch = match (part.vectorizer.is_fast(), part.traffic.is_busy()) {
        (true, _) => FAST_BATCH,
        (false, false) => BATCH,
        (false, true) => BUSY_BATCH,
    };
    rows.sort_by_key(|row| (row.vector.is_some(), row.text.len()));
    let missing = rows.partition_point(|row| row.vector.is_none());
    let rows = &mut rows[..missing];
    let is_over = || stop.is_cancelled() || deadline.is_some_and(|deadline| Instant::now() >= deadline);
    let texts: Vec<Vec<String>> =
        rows.chunks(batch).map(|rows| rows.iter().map(|row| row.text.clone()).collect()).collect();
    let mut batches = stream::iter(texts)
        .take_while(|_| std::future::ready(!is_over()))
        .map(|texts| part.embed_in_background(texts))
        .buffered(part.vectorizer.workers());
    let mut vectors: Vec<Arc<[f32]>> = Vec::with_capacity(rows.len());
    loop {
        let embedded = tokio::select! {
            embedded = batches.next() => embedded,
            // The model may be loading, or downloading.
            () = stop.cancelled() => break,
        };
        let Some(Some(embedded)) = embedded else { break };
        vectors.extend(embedded.into_iter().map(Arc::from));
    }
    drop(batches);
    for (row, vector) in rows.iter_mut().zip(vectors) {
        row.vector = Some(vector);
    }
}
