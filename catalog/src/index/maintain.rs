//! The index's two background tasks. [`embed`] computes the vectors of the tail's texts, a few at a time, so that a
//! new table never waits behind a long batch. [`follow`] owns the dataset: it opens or rebuilds it, moves what
//! is ready from the tail to Lance by size or age, and keeps the dataset compact.
//!
//! Crash-safe in any order: rows leave `querent_pending_objects` only after Lance holds them, and writing an object
//! replaces its row, so writing it twice is harmless.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use super::lance::{IndexRow, IndexWriter};
use super::publisher::Publisher;
use super::shared;
use super::tail::{self, TailEntry, Unembedded};
use super::{IndexPart, UpkeepTask, backfill, off_runtime, rebuild};
use crate::error::Result;
use crate::store::{pending, set_index_reach};

/// Texts embedded in one call: under a tenth of a second on one core, the longest that a question may have to wait.
const EMBED_BATCH: usize = 4;
/// The same where a text costs microseconds: some milliseconds.
const FAST_EMBED_BATCH: usize = 64;
/// Successive changes are collected for this long, so that many changes cost one call and one look. A change after a
/// quiet time is handled at once.
const GATHERING: Duration = Duration::from_millis(20);
/// Rows reach Lance in batches of at least this, or a sixteenth of the dataset, so that upkeep stays in proportion.
const MIN_BATCH: usize = 256;
/// Nothing waits longer than this for a small dataset; each further [`ROWS_A_WAIT`] rows add as much, up to
/// [`LONGEST_WAIT`], since every write is some upkeep of all rows. Nothing is lost or hidden by waiting.
const SHORTEST_WAIT: Duration = Duration::from_secs(30);
const LONGEST_WAIT: Duration = Duration::from_secs(600);
const ROWS_A_WAIT: usize = 8192;
/// How often old versions are cleaned up when nothing happens.
const IDLE_TICK: Duration = Duration::from_secs(60);
const FIRST_RETRY: Duration = Duration::from_secs(1);
/// Objects read from the catalog and written to Lance at once where there are too many for the tail.
const PAGE: usize = 8192;
const LAST_RETRY: Duration = Duration::from_secs(300);

/// Computes the vectors of the tail's texts until stopped.
pub(super) async fn embed(part: Arc<IndexPart>, stop: CancellationToken) {
    while !stop.is_cancelled() {
        let most = match (part.vectorizer.is_fast(), part.traffic.is_busy()) {
            (true, _) => FAST_EMBED_BATCH,
            (false, false) => EMBED_BATCH,
            (false, true) => 1,
        };
        let batch = part.state.read().tail.unembedded(most);
        let pause = part.vectorizer.pause();
        if batch.is_empty() || pause.is_some() {
            tokio::select! {
                () = stop.cancelled() => {}
                () = part.texts_came.notified(), if pause.is_none() => {}
                () = tokio::time::sleep(pause.unwrap_or_default()), if pause.is_some() => {}
            }
            continue;
        }
        let texts: Vec<(i64, &str)> = batch.iter().map(|waiting| (waiting.object_id, waiting.text.as_str())).collect();
        let known = part.known_vectors(&texts).await;
        if !known.is_empty() {
            set_vectors(&part, &batch, |waiting| known.get(&waiting.object_id).cloned());
            continue;
        }
        let texts = batch.iter().map(|waiting| waiting.text.clone()).collect();
        let vectors = tokio::select! {
            vectors = part.embed_in_background(texts) => vectors,
            // The model may be loading, or downloading.
            () = stop.cancelled() => return,
        };
        if let Some(vectors) = vectors {
            let mut vectors = vectors.into_iter();
            set_vectors(&part, &batch, |_| vectors.next().map(Arc::from));
        }
        part.note_change();
        if batch.len() < most {
            gather(&stop).await;
        }
    }
}

/// Waits a moment for further changes, so that they are handled together.
async fn gather(stop: &CancellationToken) {
    tokio::select! {
        () = stop.cancelled() => {}
        () = tokio::time::sleep(GATHERING) => {}
    }
}

fn set_vectors(part: &IndexPart, batch: &[Unembedded], mut vector_of: impl FnMut(&Unembedded) -> Option<Arc<[f32]>>) {
    let mut state = part.state.write();
    for waiting in batch {
        if let Some(vector) = vector_of(waiting) {
            state.tail.set_vector(waiting.object_id, waiting.sequence, vector);
        }
    }
}

/// Keeps the dataset up to date with the catalog until stopped, then writes what is ready.
pub(super) async fn follow(part: Arc<IndexPart>, stop: CancellationToken) {
    let mut retry = FIRST_RETRY;
    while !stop.is_cancelled() {
        let outcome = match rebuild::open_or_rebuild(&part, &stop).await {
            Ok(Some(writer)) => {
                retry = FIRST_RETRY;
                drain_until_stopped(&part, writer, &stop, None).await
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

/// Ends when stopped, or when the dataset has to be reopened. With a publisher, others get what was written.
pub(super) async fn drain_until_stopped(
    part: &Arc<IndexPart>,
    mut writer: IndexWriter,
    stop: &CancellationToken,
    mut publisher: Option<&mut Publisher<'_>>,
) -> Result<()> {
    let mut has_old_versions = true;
    let patience = if publisher.is_some() { shared::LOOKS_APART } else { IDLE_TICK };
    while !stop.is_cancelled() {
        if part.state.read().is_damaged {
            return Ok(());
        }
        let mut has_written = false;
        if part.state.read().tail.is_overflowing {
            catch_up(part, &mut writer, stop).await?;
            has_written = true;
        }
        let is_wanted = publisher.as_ref().is_some_and(|publisher| publisher.is_wanted());
        if is_due(part, &writer, is_wanted) {
            drain(part, &mut writer, is_wanted).await?;
            has_written = true;
        }
        has_written |= backfill::embed_rows(part, &mut writer, stop).await?;
        has_old_versions |= has_written;
        if has_old_versions {
            has_old_versions = !writer.remove_old_versions().await?;
        }
        if let Some(publisher) = publisher.as_deref_mut() {
            tokio::select! {
                looked = publisher.look(&writer) => looked?,
                () = stop.cancelled() => {}
            }
        }
        if has_written {
            continue;
        }
        tokio::select! {
            () = stop.cancelled() => {}
            () = part.state_changed.notified() => gather(stop).await,
            () = tokio::time::sleep(time_to_next_look(part, &writer, has_old_versions).min(patience)) => {}
        }
    }
    drain(part, &mut writer, false).await?;
    writer.remove_old_versions().await?;
    Ok(())
}

/// Whether the tail should be written to Lance now: at once where another server waits for it.
fn is_due(part: &IndexPart, writer: &IndexWriter, is_wanted: bool) -> bool {
    let state = part.state.read();
    let counts = state.tail.counts();
    let takes_all = is_wanted || takes_unembedded(part, &state.tail);
    let drainable = if takes_all { state.tail.len() } else { counts.ready };
    if drainable == 0 || is_wanted {
        return drainable > 0;
    }
    let is_large = drainable >= (writer.rows() / 16).clamp(MIN_BATCH, tail::MAX_ENTRIES);
    let is_old = state.tail.oldest().is_some_and(|since| since.elapsed() >= max_age(writer));
    is_large || is_old
}

/// Whether texts are written to Lance without their vectors: when no vectors are available, or when waiting for them
/// would overflow the tail. They get their vectors there ([`backfill`]).
fn takes_unembedded(part: &IndexPart, tail: &tail::Tail) -> bool {
    part.vectorizer.model().is_none()
        || part.vectorizer.failure().is_some()
        || tail.len() >= tail::MAX_ENTRIES
        || tail.is_overflowing
}

fn max_age(writer: &IndexWriter) -> Duration {
    let waits = 1 + writer.rows() / ROWS_A_WAIT;
    SHORTEST_WAIT.saturating_mul(u32::try_from(waits).unwrap_or(u32::MAX)).min(LONGEST_WAIT)
}

fn time_to_next_look(part: &IndexPart, writer: &IndexWriter, has_old_versions: bool) -> Duration {
    let tick = if has_old_versions { FIRST_RETRY } else { IDLE_TICK };
    let (oldest, lacks_vectors): (Option<Instant>, bool) = {
        let state = part.state.read();
        (state.tail.oldest(), state.lacks_vectors)
    };
    // A failing embedder is called again when its pause is over.
    let pause = part.vectorizer.pause().filter(|_| lacks_vectors);
    let tick = pause.map_or(tick, |pause| pause.clamp(FIRST_RETRY, tick));
    oldest.map_or(tick, |since| max_age(writer).saturating_sub(since.elapsed()).clamp(FIRST_RETRY, tick))
}

/// Writes what is ready to Lance, or all of it, then removes it from the tail and from `querent_pending_objects`.
async fn drain(part: &IndexPart, writer: &mut IndexWriter, takes_all: bool) -> Result<()> {
    let drained: Vec<Arc<TailEntry>> = {
        let state = part.state.read();
        state.tail.drainable(takes_all || takes_unembedded(part, &state.tail))
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
    let lacks_vectors = rows.iter().any(|row| row.vector.is_none());
    let is_embedded = !lacks_vectors && !part.state.read().lacks_vectors;
    writer.replace(&rows, &removed).await?;
    writer.optimize(is_embedded).await?;
    let written: Vec<WrittenObject> = drained.iter().map(|entry| (entry.object_id, entry.sequence)).collect();
    install(part, writer, written, lacks_vectors).await
}

/// An object and the sequence number it was written at.
pub(super) type WrittenObject = (i64, i64);

/// Makes searches use what was written, and removes it from the tail and from `querent_pending_objects`.
pub(super) async fn install(
    part: &IndexPart,
    writer: &mut IndexWriter,
    written: Vec<WrittenObject>,
    lacks_vectors: bool,
) -> Result<()> {
    let view = writer.view().await?;
    let (is_embedded, forgotten) = {
        let mut state = part.state.write();
        let forgotten = state.tail.remove(&written);
        state.set_view(Some(view));
        state.lacks_vectors |= writer.model().is_some() && lacks_vectors;
        (!state.lacks_vectors, forgotten)
    };
    off_runtime(move || drop(forgotten)).await;
    debug!(objects = written.len(), version = writer.version(), "schema index written");
    let recorded = writer.recorded_state(is_embedded);
    let (kind, epoch) = (part.kind, writer.epoch());
    let store = part.store()?;
    let newest = written.iter().map(|(_, sequence)| *sequence).max().filter(|_| store.is_shared());
    store
        .write_index(epoch, move |transaction| {
            pending::set_index_state(transaction, kind, &recorded)?;
            if let Some(newest) = newest {
                set_index_reach(transaction, kind, newest)?;
            }
            pending::remove(transaction, kind, written.iter().map(|(_, sequence)| *sequence))
        })
        .await?;
    part.note_change();
    Ok(())
}

/// Moves objects that the tail has no room for directly to Lance; what could not be moved stays marked as pending.
async fn catch_up(part: &IndexPart, writer: &mut IndexWriter, stop: &CancellationToken) -> Result<()> {
    part.state.write().is_catching_up = true;
    let outcome = move_pages(part, writer, stop).await;
    {
        let mut state = part.state.write();
        state.is_catching_up = false;
        state.tail.is_overflowing |= !matches!(outcome, Ok(true));
    }
    part.note_change();
    outcome.map(|_| ())
}

/// Moves pages of pending objects, oldest first. Searches see them each time the index has grown by half, so that
/// merging stays in proportion; what was not installed when the process ends is written again. Returns whether all were
/// moved.
async fn move_pages(part: &IndexPart, writer: &mut IndexWriter, stop: &CancellationToken) -> Result<bool> {
    let kind = part.kind;
    let mut total = part.store()?.pending(move |connection| pending::count(connection, kind)).await?;
    let (mut after, mut done) = (0, 0);
    let mut written: Vec<WrittenObject> = Vec::new();
    let mut lacks_vectors = false;
    while !stop.is_cancelled() {
        // Objects that the tail turns away from here on set the flag again.
        part.state.write().tail.is_overflowing = false;
        let page = part.store()?.pending_texts(kind, after, PAGE).await?;
        let is_last = page.len() < PAGE;
        after = page.last().map_or(after, |object| object.sequence);
        written.extend(page.iter().map(|object| (object.object_id, object.sequence)));
        let (mut rows, mut removed) = (Vec::new(), Vec::new());
        for object in page {
            match IndexRow::from_pending(object) {
                Ok(row) => rows.push(row),
                Err(object_id) => removed.push(object_id),
            }
        }
        {
            let state = part.state.read();
            for row in &mut rows {
                row.vector = state.tail.vector(row.object_id, row.sequence);
            }
        }
        backfill::embed_at_once(part, &mut rows, stop).await;
        lacks_vectors |= rows.iter().any(|row| row.vector.is_none());
        done += (rows.len() + removed.len()) as u64;
        total = total.max(done);
        writer.replace(&rows, &removed).await?;
        part.progress.report(part.task(UpkeepTask::Text), done, total);
        if is_last || written.len() >= (writer.rows() / 3).max(PAGE) {
            let is_embedded = !lacks_vectors && !part.state.read().lacks_vectors;
            writer.optimize(is_last && is_embedded).await?;
            install(part, writer, std::mem::take(&mut written), lacks_vectors).await?;
        }
        if is_last {
            return Ok(true);
        }
    }
    Ok(false)
}
