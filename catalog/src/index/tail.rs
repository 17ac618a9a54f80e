//! The bounded in-memory tail: objects committed to the catalog that Lance does not hold yet, searched exactly.
//!
//! An entry overrides whatever Lance holds of its object, so a comment or a drop is seen at once. The tail never
//! grows past [`MAX_ENTRIES`]; what does not fit stays in `querent_pending_objects` and is loaded when there is room.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Instant;

use lance_linalg::distance::dot::dot;

use super::analyze::{Bm25, CorpusStats, Document};
use super::lance::IndexRow;
use super::pending::{ObjectKind, PendingObject};
use super::{Scored, SearchFilter};

/// About 6 KiB an entry with its tokens and vector.
pub(super) const MAX_ENTRIES: usize = 4096;

/// One object of the tail.
#[derive(Debug, Clone)]
pub(super) struct TailEntry {
    pub(super) sequence: i64,
    pub(super) object_id: i64,
    kind: ObjectKind,
    database_id: i64,
    /// `None` when the object was dropped.
    content: Option<Content>,
    since: Instant,
}

#[derive(Debug, Clone)]
struct Content {
    text: Arc<str>,
    document: Arc<Document>,
    vector: Option<Arc<[f32]>>,
}

impl TailEntry {
    /// A committed object. `document` is the analysis of its text, where it has one.
    pub(super) fn committed(object: PendingObject, document: Option<Document>) -> Self {
        let content = object.text.zip(document).map(|(text, document)| Content {
            text: text.into(),
            document: Arc::new(document),
            vector: None,
        });
        Self {
            sequence: object.sequence,
            object_id: object.object_id,
            kind: object.kind,
            database_id: object.database_id,
            content,
            since: Instant::now(),
        }
    }

    fn needs_vector(&self) -> bool {
        self.content.as_ref().is_some_and(|content| content.vector.is_none())
    }

    /// The row to store, or `None` for a dropped object.
    pub(super) fn row(&self) -> Option<IndexRow> {
        self.content.as_ref().map(|content| IndexRow {
            sequence: self.sequence,
            kind: self.kind,
            object_id: self.object_id,
            database_id: self.database_id,
            text: content.text.to_string(),
            vector: content.vector.clone(),
        })
    }
}

/// A text waiting for its vector.
pub(super) struct Unembedded {
    pub(super) object_id: i64,
    pub(super) sequence: i64,
    pub(super) text: String,
}

/// Counts by what entries wait for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct TailCounts {
    /// Dropped objects, and objects with a vector.
    pub(super) ready: usize,
    /// Objects without a vector.
    pub(super) unembedded: usize,
}

/// The tail itself; guarded by the index's state lock.
#[derive(Default)]
pub(super) struct Tail {
    entries: HashMap<i64, Arc<TailEntry>>,
    /// Sequence number and object of the entries that wait for a vector.
    unembedded: BTreeSet<(i64, i64)>,
    /// Committed objects were turned away: `querent_pending_objects` holds more than the tail.
    pub(super) is_overflowing: bool,
}

impl Tail {
    /// Adds an object, or replaces an older entry of it. A full tail turns new objects away.
    pub(super) fn insert(&mut self, entry: TailEntry) {
        match self.entries.get(&entry.object_id) {
            Some(known) if known.sequence >= entry.sequence => {}
            None if self.entries.len() >= MAX_ENTRIES => self.is_overflowing = true,
            _ => {
                let key = (entry.sequence, entry.object_id);
                if entry.needs_vector() {
                    self.unembedded.insert(key);
                }
                if let Some(older) = self.entries.insert(entry.object_id, Arc::new(entry)) {
                    self.unembedded.remove(&(older.sequence, older.object_id));
                }
            }
        }
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn contains(&self, object_id: i64) -> bool {
        self.entries.contains_key(&object_id)
    }

    pub(super) fn counts(&self) -> TailCounts {
        let unembedded = self.unembedded.len();
        TailCounts { ready: self.entries.len() - unembedded, unembedded }
    }

    /// When the oldest entry came.
    pub(super) fn oldest(&self) -> Option<Instant> {
        self.entries.values().map(|entry| entry.since).min()
    }

    /// At most `limit` texts to embed, oldest first.
    pub(super) fn unembedded(&self, limit: usize) -> Vec<Unembedded> {
        let texts = self.unembedded.iter().take(limit).filter_map(|(sequence, object_id)| {
            let content = self.entries.get(object_id)?.content.as_ref()?;
            Some(Unembedded { object_id: *object_id, sequence: *sequence, text: content.text.to_string() })
        });
        texts.collect()
    }

    /// The vector of an object as of a sequence number, where it has one.
    pub(super) fn vector(&self, object_id: i64, sequence: i64) -> Option<Arc<[f32]>> {
        let entry = self.entries.get(&object_id).filter(|entry| entry.sequence == sequence)?;
        entry.content.as_ref()?.vector.clone()
    }

    /// Sets a vector, unless the object changed meanwhile.
    pub(super) fn set_vector(&mut self, object_id: i64, sequence: i64, vector: Arc<[f32]>) {
        let Some(entry) = self.entries.get_mut(&object_id).filter(|entry| entry.sequence == sequence) else {
            return;
        };
        if let Some(content) = Arc::make_mut(entry).content.as_mut() {
            content.vector = Some(vector);
            self.unembedded.remove(&(sequence, object_id));
        }
    }

    /// What Lance may take now: entries that are ready, and with `with_unembedded` all others too.
    pub(super) fn drainable(&self, with_unembedded: bool) -> Vec<Arc<TailEntry>> {
        let ready = |entry: &&Arc<TailEntry>| with_unembedded || !entry.needs_vector();
        self.entries.values().filter(ready).map(Arc::clone).collect()
    }

    /// Forgets objects that Lance holds now as of a sequence number, but for those that changed meanwhile.
    pub(super) fn remove(&mut self, written: &[(i64, i64)]) {
        for (object_id, sequence) in written {
            if self.entries.get(object_id).is_some_and(|known| known.sequence == *sequence) {
                self.entries.remove(object_id);
                self.unembedded.remove(&(*sequence, *object_id));
            }
        }
    }

    /// All entries at this moment, for a search.
    pub(super) fn snapshot(&self) -> TailSnapshot {
        TailSnapshot { entries: self.entries.values().map(Arc::clone).collect() }
    }
}

/// The tail at one moment.
pub(super) struct TailSnapshot {
    entries: Vec<Arc<TailEntry>>,
}

impl TailSnapshot {
    /// The objects whose rows in Lance are out of date.
    pub(super) fn superseded(&self) -> Vec<i64> {
        self.entries.iter().map(|entry| entry.object_id).collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether there is anything to search by full text.
    pub(super) fn has_texts(&self) -> bool {
        self.committed_documents().next().is_some()
    }

    fn committed_documents(&self) -> impl Iterator<Item = (&TailEntry, &Document)> {
        self.entries.iter().filter_map(|entry| {
            let content = entry.content.as_ref()?;
            Some((entry.as_ref(), content.document.as_ref()))
        })
    }

    /// Every matching entry's BM25 score; `stats` are those of Lance's rows.
    pub(super) fn bm25(&self, tokens: &[String], mut stats: CorpusStats, filter: &SearchFilter) -> Vec<Scored> {
        let mut matching = Vec::new();
        for (entry, document) in self.committed_documents() {
            if stats.add_document(document, tokens) && filter.admits(entry.database_id) {
                matching.push((entry.object_id, document));
            }
        }
        let scorer: Bm25 = stats.into_scorer();
        let scored = matching.into_iter().map(|(object_id, document)| {
            let score = scorer.score(document, tokens);
            Scored { object_id, score }
        });
        scored.filter(|scored| scored.score > 0.0).collect()
    }

    /// Every embedded entry's cosine with a unit vector.
    pub(super) fn nearest(&self, vector: &[f32], filter: &SearchFilter) -> Vec<Scored> {
        let near = self.entries.iter().filter(|entry| filter.admits(entry.database_id)).filter_map(|entry| {
            let of_entry = entry.content.as_ref()?.vector.as_ref()?;
            (of_entry.len() == vector.len())
                .then(|| Scored { object_id: entry.object_id, score: dot(of_entry, vector) })
        });
        near.collect()
    }
}
