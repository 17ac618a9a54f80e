//! The schema index: finds objects by full text and by meaning. It is derived from the catalog, so it can be deleted at
//! any time and is then rebuilt. Its objects are tables and column texts; a column text is indexed once, however many
//! columns share it.
//!
//! What a commit changed is searchable when the commit returns: it sits in an in-memory tail that is searched
//! exactly, gets its vector off the async runtime, and reaches the Lance dataset in batches. The index may fail or lag
//! in any other way without affecting the catalog: searches then answer from what is indexed.

pub mod embed;

mod analyze;
mod backfill;
mod lance;
mod maintain;
mod published;
mod publisher;
mod rebuild;
mod rerank;
mod shared;
mod shelf;
mod status;
mod tail;
mod text_ranking;
mod traffic;
mod upkeep;
mod vectorizer;
mod view;

use std::cmp::Ordering;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use ::lance::session::Session;
use parking_lot::RwLock;
use tokio::sync::{Notify, watch};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;
use tracing::warn;

use self::analyze::{Analyzer, CorpusStats};
use self::embed::Embedder;
pub(crate) use self::lance::{dataset_uri, guarded, merge_of_newest};
#[cfg(test)]
pub(crate) use self::published::{held_up_to, may_take};
pub(crate) use self::rerank::Reranker;
pub(crate) use self::shared::SharedIndex;
pub(crate) use self::shelf::FolderShelf;
pub use self::shelf::{INDEX_SHELF, IndexShelf};
pub use self::status::SchemaIndexStatus;
use self::tail::{Arrival, Tail};
pub(crate) use self::text_ranking::TextRanking;
pub(crate) use self::traffic::Searching;
use self::traffic::Traffic;
use self::upkeep::UpkeepTask;
use self::vectorizer::Vectorizer;
pub(crate) use self::view::{Admitted, VectorProbe};
use self::view::{HiddenRows, IndexView};
use crate::error::{CatalogError, Result};
use crate::model::MissingMeaning;
use crate::progress::Progress;
use crate::store::pending::{Committed, ObjectKind, PendingObject};
use crate::store::{Store, VisibleObjects};

/// The least time between two checks of a dataset that was found intact.
const CHECKS_APART: Duration = Duration::from_secs(60);
/// The most vectors of the tail that are compared on the thread of the search: some ten microseconds of work. More are
/// compared on another thread.
const COMPARED_AT_ONCE: usize = 256;

/// How long after the start searches wait for the datasets to be opened; a rebuild may take longer.
const OPENING_PATIENCE: Duration = Duration::from_secs(3);

/// An object and how well it matched; larger is better.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Scored {
    pub(crate) object_id: i64,
    pub(crate) score: f32,
}

/// Which rows a search may return; applied before the top-k is taken.
#[derive(Debug, Clone, Default)]
pub(crate) struct SearchFilter {
    /// Only what this admits.
    pub(crate) visible: VisibleObjects,
    /// Whether vectors are scanned even where they have an index.
    pub(crate) exact: bool,
    /// Whether words are weighed by what is admitted alone: what is hidden from the caller has no say in the order of the rest.
    pub(crate) is_bound: bool,
}

impl SearchFilter {
    /// Only what `visible` admits.
    pub(crate) fn visible(visible: VisibleObjects) -> Self {
        Self { visible, ..Self::default() }
    }

    fn admits(&self, object_id: i64, database_id: i64) -> bool {
        self.visible.admits(object_id, database_id)
    }
}

/// The schema index of one catalog. Owns its background tasks; they end with [`SchemaIndex::close`] or a drop.
pub(crate) struct SchemaIndex {
    tables: Arc<IndexPart>,
    columns: Arc<IndexPart>,
    reranker: Option<Reranker>,
    traffic: Arc<Traffic>,
    changes: Arc<watch::Sender<u64>>,
    started_at: Instant,
    tasks: TaskTracker,
    stop: CancellationToken,
    _stop_on_drop: DropGuard,
}

/// The index of one kind of object: a dataset and its tail, and what it shares with the index of the other kind.
pub(crate) struct IndexPart {
    kind: ObjectKind,
    /// Weak, so that dropping the catalog releases the data folder whatever the tasks are at.
    store: Weak<Store>,
    folder: PathBuf,
    session: Arc<Session>,
    vectorizer: Arc<Vectorizer>,
    analyzer: Arc<Analyzer>,
    progress: Arc<dyn Progress>,
    traffic: Arc<Traffic>,
    state: RwLock<IndexPartState>,
    /// Notified when the tail gets texts without vectors.
    texts_came: Notify,
    /// Notified when the maintenance task should look at the state.
    state_changed: Notify,
    /// Counts changes of the state of either part, for callers that wait in [`SchemaIndex::idle`].
    changes: Arc<watch::Sender<u64>>,
}

#[derive(Default)]
struct IndexPartState {
    tail: Tail,
    /// `None` until the dataset was opened or rebuilt.
    view: Option<Arc<IndexView>>,
    /// The view's rows that are deleted, or that an entry of the tail overrides.
    hidden: Arc<HiddenRows>,
    /// Whether the dataset fits the embedder and the text version.
    is_current: bool,
    /// Whether Lance holds rows without a vector that are not in the tail.
    lacks_vectors: bool,
    /// How many rows lacked a vector when the dataset was opened or rebuilt, and how many of them got one.
    to_backfill: u64,
    backfilled: u64,
    /// Whether objects that the tail has no room for are being moved to Lance.
    is_catching_up: bool,
    /// Whether another server writes the index.
    is_following: bool,
    /// Whether a search could not read the dataset, and it has not been checked since.
    is_damaged: bool,
    /// When the dataset was last found intact.
    checked_at: Option<Instant>,
    /// The epoch of what the tail holds ([`Store::index_epoch`]).
    epoch: Option<i64>,
}

impl IndexPartState {
    /// Makes searches use a version of the dataset, overridden by what the tail holds.
    fn set_view(&mut self, view: Option<Arc<IndexView>>) {
        let hidden = view.as_ref().map(|view| view.hidden(self.tail.object_ids()));
        self.hidden = Arc::new(hidden.unwrap_or_default());
        self.view = view;
    }

    /// Makes searches see a committed object, if the tail has room for it.
    fn insert(&mut self, arrival: Arrival) {
        let object_id = arrival.object_id();
        if self.tail.insert(arrival) {
            for address in self.view.iter().flat_map(|view| view.rows_of(object_id)) {
                Arc::make_mut(&mut self.hidden).insert(address);
            }
        }
    }
}

impl SchemaIndex {
    /// Loads the pending objects and starts the background tasks; the datasets are opened, taken from another server where it is
    /// `shared`, or rebuilt by them.
    pub(crate) async fn open(
        store: &Arc<Store>,
        folder: PathBuf,
        embedder: Option<Arc<dyn Embedder>>,
        reranker: Option<Arc<dyn Embedder>>,
        progress: Arc<dyn Progress>,
        shared: Option<SharedIndex>,
    ) -> Result<Self> {
        let shared = shared.map(Arc::new);
        let session = lance::new_session();
        let vectorizer = Arc::new(Vectorizer::new(embedder));
        let analyzer = Arc::new(Analyzer::new()?);
        let traffic = Arc::new(Traffic::default());
        let changes = Arc::new(watch::Sender::new(0));
        let part = |kind| {
            Arc::new(IndexPart {
                kind,
                store: Arc::downgrade(store),
                folder: folder.clone(),
                session: Arc::clone(&session),
                vectorizer: Arc::clone(&vectorizer),
                analyzer: Arc::clone(&analyzer),
                progress: Arc::clone(&progress),
                traffic: Arc::clone(&traffic),
                state: RwLock::default(),
                texts_came: Notify::new(),
                state_changed: Notify::new(),
                changes: Arc::clone(&changes),
            })
        };
        let (tables, columns) = (part(ObjectKind::Table), part(ObjectKind::Column));
        tables.load_pending().await?;
        columns.load_pending().await?;
        let listeners = [Arc::clone(&tables), Arc::clone(&columns)];
        store.on_commit(Box::new(move |committed| {
            let Committed { objects, columns, has_due, has_due_columns, .. } = committed;
            listeners[0].take_in(objects, has_due);
            listeners[1].take_in(columns, has_due_columns);
        }));
        let tasks = TaskTracker::new();
        let stop = CancellationToken::new();
        for part in [&tables, &columns] {
            match &shared {
                Some(shared) => tasks.spawn(shared::follow(Arc::clone(part), Arc::clone(shared), stop.clone())),
                None => tasks.spawn(maintain::follow(Arc::clone(part), stop.clone())),
            };
            if vectorizer.model().is_some() {
                tasks.spawn(maintain::embed(Arc::clone(part), stop.clone()));
            }
        }
        tasks.close();
        let reranker = reranker.map(Reranker::new);
        let _stop_on_drop = stop.clone().drop_guard();
        let started_at = Instant::now();
        Ok(Self { tables, columns, reranker, traffic, changes, started_at, tasks, stop, _stop_on_drop })
    }

    /// Waits until every committed object can be found by meaning, or as well as the embedder allows: without one,
    /// until all are found by full text. Errors: `embedder_error` while the embedder fails, once all are found by full
    /// text.
    pub(crate) async fn idle(&self) -> Result<()> {
        self.wait_until(|| {
            let parts = [&self.tables, &self.columns];
            if parts.iter().all(|part| part.is_idle()) {
                return Some(Ok(()));
            }
            let has_texts = parts.iter().all(|part| part.has_all_texts());
            self.tables.vectorizer.failure().filter(|_| has_texts).map(Err)
        })
        .await
    }

    /// Waits until every committed object can be found by full text.
    pub(crate) async fn text_idle(&self) {
        let has_texts = || (self.tables.has_all_texts() && self.columns.has_all_texts()).then_some(Ok(()));
        // The check above never fails.
        let _ = self.wait_until(has_texts).await;
    }

    /// Waits until the datasets are opened, for [`OPENING_PATIENCE`] after the start at most: what is searched before finds
    /// only what came last.
    pub(crate) async fn opened(&self) {
        let is_open = |part: &IndexPart| part.state.read().view.is_some();
        let left = OPENING_PATIENCE.saturating_sub(self.started_at.elapsed());
        if left.is_zero() || (is_open(&self.tables) && is_open(&self.columns)) {
            return;
        }
        let both = self.wait_until(|| (is_open(&self.tables) && is_open(&self.columns)).then_some(Ok(())));
        // What is there is searched in any case.
        let _ = tokio::time::timeout(left, both).await;
    }

    /// Waits until `outcome` gives one; it is looked at after each change of either part.
    async fn wait_until(&self, outcome: impl Fn() -> Option<Result<()>>) -> Result<()> {
        let mut changes = self.changes.subscribe();
        loop {
            changes.borrow_and_update();
            if let Some(outcome) = outcome() {
                return outcome;
            }
            tokio::select! {
                changed = changes.changed() => {
                    if changed.is_err() {
                        return Ok(());
                    }
                }
                () = self.stop.cancelled() => return Ok(()),
            }
        }
    }

    /// What searches lack while they cannot use meaning; `None` when they can.
    pub(crate) fn missing_meaning(&self) -> Option<MissingMeaning> {
        let vectorizer = &self.tables.vectorizer;
        let is_chosen = vectorizer.model().is_none();
        let missing = |reason: String, hint: &str| Some(MissingMeaning { reason, hint: hint.to_owned(), is_chosen });
        let Some(model) = vectorizer.model() else {
            let hint = "set embed.provider (QUERENT_EMBED_PROVIDER), for example to fastembed";
            return missing("the settings name no embedding model".into(), hint);
        };
        if let Some(CatalogError::Embedder { model, detail, hint }) = vectorizer.failure() {
            return missing(format!("embedding model {model}: {detail}"), &hint);
        }
        if vectorizer.is_loading() {
            let reason = format!("the embedding model {} is being loaded, or downloaded", model.id);
            return missing(reason, "search again in a moment");
        }
        if !self.tables.is_embedded() || !self.columns.is_embedded() {
            let reason = "the vectors of some tables are still being computed".to_owned();
            return missing(reason, "search again in a moment");
        }
        None
    }

    /// Writes what is ready and stops the background tasks.
    pub(crate) async fn close(&self) {
        self.stop.cancel();
        self.tasks.wait().await;
    }

    /// Counts a search as in progress until the returned guard is dropped; upkeep and changes give way to it.
    pub(crate) fn searching(&self) -> Searching {
        self.traffic.enter()
    }

    /// Runs a change of the catalog, which gives way to searches.
    pub(crate) fn change<T>(&self, change: impl Future<Output = T>) -> impl Future<Output = T> {
        self.traffic.change(change)
    }

    /// The question's vector; `None` where there is no working embedder.
    pub(crate) async fn embed_question(&self, question: &str) -> Option<Vec<f32>> {
        self.tables.vectorizer.embed_question(question).await
    }

    /// The vectors of texts, in one call; `None` where there is no working embedder.
    pub(crate) async fn embed_texts(&self, texts: Vec<String>) -> Option<Vec<Vec<f32>>> {
        self.tables.vectorizer.embed(texts).await
    }

    /// The vector of a text. Errors: `embedder_error` where there is no embedder, or it fails or is still loading.
    pub(crate) async fn embed_text(&self, text: &str) -> Result<Vec<f32>> {
        let vectorizer = &self.tables.vectorizer;
        if let Some(vector) = vectorizer.embed_question(text).await {
            return Ok(vector);
        }
        Err(vectorizer.failure().unwrap_or_else(|| match vectorizer.model() {
            Some(model) => CatalogError::Embedder {
                model: model.id.clone(),
                detail: "it is still loading".to_owned(),
                hint: "send the statement again in a moment".to_owned(),
            },
            None => CatalogError::Embedder {
                model: "none".to_owned(),
                detail: "no model is configured".to_owned(),
                hint: "set embed.provider".to_owned(),
            },
        }))
    }

    /// The reranker, where one is configured.
    pub(crate) fn reranker(&self) -> Option<&Reranker> {
        self.reranker.as_ref()
    }

    /// Whether full-text search disregards the word.
    pub(crate) fn is_stop_word(&self, word: &str) -> bool {
        self.tables.analyzer.query(word).is_empty()
    }

    /// The distinct tokens of a text as full-text search sees them: stems, without stop words.
    pub(crate) fn tokens(&self, text: &str) -> Vec<String> {
        self.tables.analyzer.query(text)
    }

    /// [`SchemaIndex::tokens`] as a function that other threads can call.
    pub(crate) fn tokenizer(&self) -> impl Fn(&str) -> Vec<String> + Send + 'static {
        let tables = Arc::clone(&self.tables);
        move |text| tables.analyzer.query(text)
    }

    /// The index of one kind.
    pub(crate) fn part(&self, kind: ObjectKind) -> &IndexPart {
        match kind {
            ObjectKind::Table => &self.tables,
            ObjectKind::Column => &self.columns,
        }
    }
}

/// Searches. Each sees one state of the index: one version of the dataset and the matching tail.
impl IndexPart {
    /// The best `limit` objects by BM25, best first.
    pub(crate) async fn bm25(&self, question: &str, limit: usize, filter: &SearchFilter) -> Vec<Scored> {
        let tokens = self.analyzer.query(question);
        if tokens.is_empty() {
            return Vec::new();
        }
        let (view, hidden, in_tail) = {
            let state = self.state.read();
            (state.view.clone(), Arc::clone(&state.hidden), state.tail.matching(&tokens, filter))
        };
        let mut found = Vec::new();
        let mut stats = CorpusStats::default();
        if let Some(view) = view {
            let admitted = Arc::new(view.mask(filter, &hidden));
            stats = self.or_damaged(view.corpus_stats(&tokens, filter.is_bound.then_some(&admitted)).await);
            found = self.or_damaged(view.bm25(&tokens, stats.clone(), limit, &admitted).await);
        }
        let mut scored = in_tail.scored(&tokens, stats);
        keep_best(&mut scored, limit);
        found.extend(scored);
        best(found, limit)
    }

    /// The `limit` objects nearest to a question's vector, nearest first.
    pub(crate) async fn nearest(&self, vector: &[f32], limit: usize, filter: &SearchFilter) -> Vec<Scored> {
        let (view, hidden, in_tail) = {
            let state = self.state.read();
            (state.view.clone(), Arc::clone(&state.hidden), state.tail.vectors())
        };
        let mut found = Vec::new();
        // Vectors of another model, which stay until a rebuild is complete, cannot be compared with the question's.
        let is_comparable = |view: &Arc<IndexView>| view.model.as_ref() == self.vectorizer.model();
        if let Some(view) = view.filter(is_comparable) {
            found = self.or_damaged(view.nearest(vector, limit, filter, &hidden).await);
        }
        if in_tail.len() <= COMPARED_AT_ONCE {
            found.extend(in_tail.nearest(vector, limit, filter));
        } else {
            let (vector, filter) = (vector.to_vec(), filter.clone());
            found.extend(off_runtime(move || in_tail.nearest(&vector, limit, &filter)).await);
        }
        best(found, limit)
    }

    /// The outcome of reading the dataset; an error leaves its rows out of the search and has the dataset repaired.
    fn or_damaged<T: Default>(&self, outcome: Result<T>) -> T {
        outcome.unwrap_or_else(|error| {
            self.report_damage(&error);
            T::default()
        })
    }
}

impl IndexPart {
    fn store(&self) -> Result<Arc<Store>> {
        self.store.upgrade().ok_or_else(|| CatalogError::Internal("the catalog is closed".into()))
    }

    /// Takes in what a transaction committed. Searches find it when this returns, except for texts that are due.
    fn take_in(&self, objects: Vec<PendingObject>, has_due: bool) {
        if has_due {
            self.state.write().tail.is_overflowing = true;
        }
        if has_due || !objects.is_empty() {
            self.insert_pending(objects);
        }
    }

    fn insert_pending(&self, objects: Vec<PendingObject>) {
        // Analysis is the expensive part and needs no lock.
        let mut arrivals = Vec::new();
        let mut is_too_many = false;
        for object in objects {
            let has_room = {
                let state = self.state.read();
                state.tail.len() + arrivals.len() < tail::MAX_ENTRIES || state.tail.contains(object.object_id)
            };
            if has_room {
                arrivals.push(Arrival::new(object, |text| self.analyzer.document(text)));
            } else {
                is_too_many = true;
            }
        }
        {
            let mut state = self.state.write();
            for arrival in arrivals {
                state.insert(arrival);
            }
            state.tail.is_overflowing |= is_too_many;
        }
        self.texts_came.notify_one();
        self.note_change();
    }

    /// Fills the tail with the objects that are pending in the catalog.
    async fn load_pending(self: &Arc<Self>) -> Result<()> {
        let store = self.store()?;
        // What is committed from here on sets it again.
        self.state.write().tail.is_overflowing = false;
        let objects = store.pending_texts(self.kind, 0, tail::MAX_ENTRIES).await;
        let has_more = objects.as_ref().map_or(true, |objects| objects.len() == tail::MAX_ENTRIES);
        self.state.write().tail.is_overflowing |= has_more;
        let (objects, part) = (objects?, Arc::clone(self));
        off_runtime(move || part.insert_pending(objects)).await;
        Ok(())
    }

    /// Forgets the tail where it is of another epoch: what is pending now is read from the store.
    async fn begin_epoch(&self, epoch: i64) {
        let forgotten = {
            let mut state = self.state.write();
            let known = state.epoch.replace(epoch);
            if known.is_none_or(|known| known == epoch) {
                return;
            }
            let forgotten = std::mem::take(&mut state.tail);
            state.tail.is_overflowing = true;
            let view = state.view.take();
            state.set_view(view);
            forgotten
        };
        off_runtime(move || drop(forgotten)).await;
    }

    /// Embeds texts for the index, giving way to searches; `None` as in [`Vectorizer::embed`].
    async fn embed_in_background(&self, texts: Vec<String>) -> Option<Vec<Vec<f32>>> {
        self.traffic.give_way(self.vectorizer.embed(texts)).await
    }

    /// The vectors that the dataset already holds for exactly these texts, by object, where embedding costs more than
    /// reading.
    async fn known_vectors(&self, texts: &[(i64, &str)]) -> HashMap<i64, Arc<[f32]>> {
        let view = self.state.read().view.clone().filter(|_| !self.vectorizer.is_fast());
        match view.filter(|view| view.model.is_some() && view.model.as_ref() == self.vectorizer.model()) {
            Some(view) => view.vectors_of(texts).await.unwrap_or_else(|error| {
                self.report_damage(&error);
                HashMap::new()
            }),
            None => HashMap::new(),
        }
    }

    fn note_change(&self) {
        self.state_changed.notify_one();
        self.changes.send_modify(|count| *count += 1);
    }

    fn is_idle(&self) -> bool {
        self.has_all_texts() && self.is_embedded()
    }

    /// Whether every committed object is found by full text.
    fn has_all_texts(&self) -> bool {
        let state = self.state.read();
        let is_whole = !state.tail.is_overflowing && !state.is_catching_up;
        state.is_current && !state.is_damaged && is_whole
    }

    /// Whether every object that searches see has its vector, where there are any.
    fn is_embedded(&self) -> bool {
        let state = self.state.read();
        self.vectorizer.model().is_none() || (state.tail.counts().unembedded == 0 && !state.lacks_vectors)
    }

    fn report_damage(&self, error: &CatalogError) {
        {
            let mut state = self.state.write();
            // A question that Lance fails on must not cause the dataset to be checked again and again.
            let was_just_checked = state.checked_at.is_some_and(|at| at.elapsed() < CHECKS_APART);
            if state.is_damaged || was_just_checked {
                return;
            }
            state.is_damaged = true;
        }
        warn!(%error, "the schema index could not be read; search goes on without it while it is checked");
        self.note_change();
    }
}

/// The best `limit`, each object once, best first; equal scores in order of id, so that answers are stable.
fn best(mut found: Vec<Scored>, limit: usize) -> Vec<Scored> {
    found.sort_by(better);
    let mut seen = std::collections::HashSet::new();
    found.retain(|scored| seen.insert(scored.object_id));
    found.truncate(limit);
    found
}

/// Keeps the best `limit` by the order of [`best`], unsorted.
fn keep_best(found: &mut Vec<Scored>, limit: usize) {
    if limit > 0 && found.len() > limit {
        found.select_nth_unstable_by(limit - 1, better);
    }
    found.truncate(limit);
}

fn better(a: &Scored, b: &Scored) -> Ordering {
    b.score.total_cmp(&a.score).then(a.object_id.cmp(&b.object_id))
}

/// Runs expensive work on a blocking thread.
async fn off_runtime<T: Send + Default + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(work).await.unwrap_or_default()
}
