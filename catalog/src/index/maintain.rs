//! The index's two background tasks. [`embed`] gives the tail's texts their vectors, a few at a time, so that a
//! table made now never waits behind a long batch. [`follow`] owns the dataset: it opens or rebuilds it, moves what
//! is ready from the tail to Lance by size or age, and keeps the dataset compact.
//!
//! Crash-safe in any order: rows leave `querent_pending_objects` only after Lance holds them, and writing an object
//! replaces its row, so writing it twice is harmless.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use super::lance::IndexWriter;
use super::pending;
use super::tail::{self, TailEntry};
use super::{Shared, rebuild};
use crate::Result;

/// Texts embedded in one call: under a tenth of a second on one core, which is how long a question may have to wait.
const EMBED_BATCH: usize = 4;
/// Rows reach Lance in batches of at least this, or a sixteenth of the dataset, so that upkeep stays in proportion.
const MIN_BATCH: usize = 256;
/// Nothing waits longer than this for a small dataset; each further [`ROWS_A_WAIT`] rows add as much, up to
/// [`LONGEST_WAIT`], since every write is some upkeep of all rows. Nothing is lost or hidden by waiting.
const SHORTEST_WAIT: Duration = Duration::from_secs(30);
const LONGEST_WAIT: Duration = Duration::from_secs(600);
const ROWS_A_WAIT: usize = 8192;
/// How often old versions are looked after when nothing happens.
const IDLE_TICK: Duration = Duration::from_secs(60);
const FIRST_RETRY: Duration = Duration::from_secs(1);
const LAST_RETRY: Duration = Duration::from_secs(300);

/// Gives the tail's texts their vectors until stopped.
pub(super) async fn embed(shared: Arc<Shared>, stop: CancellationToken) {
    while !stop.is_cancelled() {
        let batch = shared.state.read().tail.unembedded(EMBED_BATCH);
        let pause = shared.vectorizer.pause();
        if batch.is_empty() || pause.is_some() {
            tokio::select! {
                () = stop.cancelled() => {}
                () = shared.texts_came.notified(), if pause.is_none() => {}
                () = tokio::time::sleep(pause.unwrap_or_default()), if pause.is_some() => {}
            }
            continue;
        }
        let texts = batch.iter().map(|waiting| waiting.text.clone()).collect();
        let vectors = tokio::select! {
            vectors = shared.vectorizer.embed(texts) => vectors,
            // The model may be loading, or downloading.
            () = stop.cancelled() => return,
        };
        if let Some(vectors) = vectors {
            let mut state = shared.state.write();
            for (waiting, vector) in batch.iter().zip(vectors) {
                state.tail.set_vector(waiting.object_id, waiting.sequence, vector);
            }
            state.backfilled += batch.iter().filter(|waiting| waiting.is_backfill).count() as u64;
        }
        if batch.iter().any(|waiting| waiting.is_backfill) {
            let (done, total) = {
                let state = shared.state.read();
                (state.backfilled, state.to_backfill.max(state.backfilled))
            };
            shared.progress.report("embedding tables for search", done, total);
        }
        shared.note_change();
    }
}

/// Keeps the dataset up with the catalog until stopped, then writes what is ready.
pub(super) async fn follow(shared: Arc<Shared>, stop: CancellationToken) {
    let mut retry = FIRST_RETRY;
    while !stop.is_cancelled() {
        let outcome = match rebuild::open_or_rebuild(&shared, &stop).await {
            Ok(Some(writer)) => {
                retry = FIRST_RETRY;
                drain_until_stopped(&shared, writer, &stop).await
            }
            Ok(None) => return,
            Err(error) => Err(error),
        };
        if let Err(error) = outcome {
            if stop.is_cancelled() {
                return;
            }
            warn!(%error, retry_in = ?retry, "the schema index could not be written; nothing is lost, it is retried");
            tokio::select! {
                () = stop.cancelled() => {}
                () = tokio::time::sleep(retry) => {}
            }
            retry = (retry * 2).min(LAST_RETRY);
        }
    }
}

/// Ends when stopped, or when the dataset has to be opened anew.
async fn drain_until_stopped(shared: &Arc<Shared>, mut writer: IndexWriter, stop: &CancellationToken) -> Result<()> {
    let mut has_old_versions = true;
    loop {
        if shared.state.read().is_damaged {
            return Ok(());
        }
        backfill(shared, &writer).await?;
        if is_due(shared, &writer) {
            drain(shared, &mut writer).await?;
            has_old_versions = true;
            if shared.state.read().tail.is_overflowing {
                shared.load_pending().await?;
            }
        }
        if has_old_versions {
            has_old_versions = !writer.remove_old_versions().await?;
        }
        tokio::select! {
            () = stop.cancelled() => return drain(shared, &mut writer).await,
            () = shared.state_changed.notified() => {}
            () = tokio::time::sleep(time_to_next_look(shared, &writer, has_old_versions)) => {}
        }
    }
}

/// Whether the tail should go to Lance now.
fn is_due(shared: &Shared, writer: &IndexWriter) -> bool {
    let state = shared.state.read();
    let counts = state.tail.counts();
    let drainable = if takes_unembedded(shared, &state.tail) { state.tail.len() } else { counts.ready };
    if drainable == 0 {
        return false;
    }
    let is_large = drainable >= (writer.rows() / 16).clamp(MIN_BATCH, tail::MAX_ENTRIES);
    let is_old = state.tail.oldest().is_some_and(|since| since.elapsed() >= max_age(writer));
    is_large || is_old || state.tail.is_backfill_ready()
}

/// Texts go to Lance without vectors when no vectors can be had, or when waiting for them would overflow the tail;
/// they come back later as backfill.
fn takes_unembedded(shared: &Shared, tail: &tail::Tail) -> bool {
    shared.vectorizer.model().is_none()
        || shared.vectorizer.failure().is_some()
        || tail.len() >= tail::MAX_ENTRIES
        || tail.is_overflowing
}

fn max_age(writer: &IndexWriter) -> Duration {
    let waits = 1 + writer.rows() / ROWS_A_WAIT;
    SHORTEST_WAIT.saturating_mul(u32::try_from(waits).unwrap_or(u32::MAX)).min(LONGEST_WAIT)
}

fn time_to_next_look(shared: &Shared, writer: &IndexWriter, has_old_versions: bool) -> Duration {
    let tick = if has_old_versions { FIRST_RETRY } else { IDLE_TICK };
    let oldest: Option<Instant> = shared.state.read().tail.oldest();
    oldest.map_or(tick, |since| max_age(writer).saturating_sub(since.elapsed()).clamp(FIRST_RETRY, tick))
}

/// Moves what is ready to Lance, then forgets it here and in `querent_pending_objects`.
async fn drain(shared: &Shared, writer: &mut IndexWriter) -> Result<()> {
    let drained: Vec<Arc<TailEntry>> = {
        let state = shared.state.read();
        state.tail.drainable(takes_unembedded(shared, &state.tail))
    };
    if drained.is_empty() {
        return Ok(());
    }
    let mut rows = Vec::new();
    let mut removed = Vec::new();
    for entry in &drained {
        match entry.row() {
            Some(row) => rows.push(row),
            None => removed.push(entry.object_id),
        }
    }
    writer.replace(&rows, &removed).await?;
    writer.optimize().await?;

    let view = writer.view();
    {
        let mut state = shared.state.write();
        state.tail.remove(&drained);
        state.view = Some(view);
        state.lacks_vectors |= writer.model().is_some() && rows.iter().any(|row| row.vector.is_none());
    }
    let sequences: Vec<i64> = drained.iter().filter_map(|entry| entry.pending_sequence()).collect();
    let recorded = writer.recorded_state();
    shared
        .store()?
        .write_rows(move |transaction| {
            pending::set_index_state(transaction, &recorded)?;
            pending::remove(transaction, &sequences)
        })
        .await?;
    debug!(rows = rows.len(), removed = removed.len(), version = writer.version(), "schema index written");
    shared.note_change();
    Ok(())
}

/// Takes the next chunk of Lance's rows without a vector into the tail, once the last one is back in Lance: after a
/// rebuild, an outage of the embedder, or a start without one.
async fn backfill(shared: &Shared, writer: &IndexWriter) -> Result<()> {
    let can_take = {
        let state = shared.state.read();
        state.lacks_vectors && state.tail.backfilling() == 0 && state.tail.len() < tail::MAX_ENTRIES / 2
    };
    if !can_take || shared.vectorizer.failure().is_some() {
        return Ok(());
    }
    let limit = (writer.rows() / 16).clamp(MIN_BATCH, tail::MAX_ENTRIES / 2);
    let rows = writer.rows_without_vector(limit).await?;
    {
        let mut state = shared.state.write();
        state.lacks_vectors = rows.len() == limit;
        for row in rows {
            if !state.tail.contains(row.object_id) {
                state.tail.insert(TailEntry::backfill(row));
            }
        }
    }
    shared.texts_came.notify_one();
    shared.note_change();
    Ok(())
}
