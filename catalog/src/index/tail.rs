//! The bounded in-memory tail: objects committed to the catalog that Lance does not hold yet, searched exactly.
//!
//! An entry overrides what Lance holds of its object, so that a comment or a drop is seen at once. The tail never
//! exceeds [`MAX_ENTRIES`]; what does not fit stays in `querent_pending_objects` and is loaded when there is room.
//!
//! Invariant: no search and no change iterates over all entries, except for the vectors that a search compares, and for a caller
//! from whom some are hidden, whose statistics are those of the others.

mod postings;
mod vectors;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Instant;

use self::postings::Matching;
pub(super) use self::postings::Postings;
use self::vectors::{TailVector, TailVectors};
use super::SearchFilter;
use super::analyze::Document;
use super::lance::IndexRow;
use crate::store::pending::{ObjectKind, PendingObject};

/// The most entries; each takes about 6 KiB with its words and vector.
pub(super) const MAX_ENTRIES: usize = 4096;

/// One object of the tail.
#[derive(Debug, Clone)]
pub(super) struct TailEntry {
    pub(super) sequence: i64,
    pub(super) object_id: i64,
    kind: ObjectKind,
    database_id: i64,
    /// `None` when the object was dropped.
    content: Option<TailContent>,
}

#[derive(Debug, Clone)]
struct TailContent {
    text: Arc<str>,
    vector: Option<Arc<[f32]>>,
}

impl TailEntry {
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

    fn needs_vector(&self) -> bool {
        self.content.as_ref().is_some_and(|content| content.vector.is_none())
    }
}

/// A committed object on its way into the tail.
pub(super) struct Arrival {
    object: PendingObject,
    /// The analysis of its text, where it has one.
    document: Option<Document>,
}

impl Arrival {
    /// `analyze` tokenizes the text: the expensive part, best done before any lock is taken.
    pub(super) fn new(object: PendingObject, analyze: impl Fn(&str) -> Document) -> Self {
        let document = object.text.as_deref().map(analyze);
        Self { object, document }
    }

    pub(super) fn object_id(&self) -> i64 {
        self.object.object_id
    }
}

/// A text waiting for its vector.
pub(super) struct Unembedded {
    pub(super) object_id: i64,
    pub(super) sequence: i64,
    pub(super) text: String,
}

/// Numbers of entries by what they wait for.
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
    entries: HashMap<i64, TailSlot>,
    postings: Postings,
    vectors: TailVectors,
    /// Sequence number and object of the entries that wait for a vector.
    unembedded: BTreeSet<(i64, i64)>,
    by_age: BTreeSet<(Instant, i64)>,
    /// Whether committed objects were turned away, so that `querent_pending_objects` holds more than the tail.
    pub(super) is_overflowing: bool,
}

struct TailSlot {
    entry: Arc<TailEntry>,
    since: Instant,
    /// The place of its words and its vector; `None` when the object was dropped.
    place: Option<u32>,
}

impl Tail {
    /// Adds an object, or replaces its older entry. Returns whether it was added: a full tail turns new objects away.
    pub(super) fn insert(&mut self, arrival: Arrival) -> bool {
        let Arrival { object, document } = arrival;
        let PendingObject { sequence, kind, object_id, database_id, text, .. } = object;
        match self.entries.get(&object_id) {
            Some(known) if known.entry.sequence >= sequence => return true,
            Some(_) => drop(self.take(&[object_id])),
            None if self.entries.len() >= MAX_ENTRIES => {
                self.is_overflowing = true;
                return false;
            }
            None => {}
        }
        let content = text.map(|text| TailContent { text: text.into(), vector: None });
        let place = document.map(|document| self.postings.insert(object_id, database_id, document));
        let entry = Arc::new(TailEntry { sequence, object_id, kind, database_id, content });
        if entry.needs_vector() {
            self.unembedded.insert((sequence, object_id));
        }
        let since = Instant::now();
        self.by_age.insert((since, object_id));
        self.entries.insert(object_id, TailSlot { entry, since, place });
        true
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn contains(&self, object_id: i64) -> bool {
        self.entries.contains_key(&object_id)
    }

    /// The objects whose rows in Lance are out of date.
    pub(super) fn object_ids(&self) -> impl Iterator<Item = i64> {
        self.entries.keys().copied()
    }

    pub(super) fn counts(&self) -> TailCounts {
        let unembedded = self.unembedded.len();
        TailCounts { ready: self.entries.len() - unembedded, unembedded }
    }

    /// When the oldest entry was added.
    pub(super) fn oldest(&self) -> Option<Instant> {
        self.by_age.first().map(|(since, _)| *since)
    }

    /// At most `limit` texts to embed, oldest first.
    pub(super) fn unembedded(&self, limit: usize) -> Vec<Unembedded> {
        let texts = self.unembedded.iter().take(limit).filter_map(|(sequence, object_id)| {
            let content = self.entries.get(object_id)?.entry.content.as_ref()?;
            Some(Unembedded { object_id: *object_id, sequence: *sequence, text: content.text.to_string() })
        });
        texts.collect()
    }

    /// The vector of an object as of a sequence number, where it has one.
    pub(super) fn vector(&self, object_id: i64, sequence: i64) -> Option<Arc<[f32]>> {
        let held = self.entries.get(&object_id).filter(|held| held.entry.sequence == sequence)?;
        held.entry.content.as_ref()?.vector.clone()
    }

    /// Sets a vector, unless the object changed meanwhile.
    pub(super) fn set_vector(&mut self, object_id: i64, sequence: i64, vector: Arc<[f32]>) {
        let Some(held) = self.entries.get_mut(&object_id).filter(|held| held.entry.sequence == sequence) else {
            return;
        };
        let entry = Arc::make_mut(&mut held.entry);
        if let (Some(content), Some(place)) = (entry.content.as_mut(), held.place) {
            content.vector = Some(Arc::clone(&vector));
            self.vectors.set(place, Some(TailVector { object_id, database_id: entry.database_id, vector }));
            self.unembedded.remove(&(sequence, object_id));
        }
    }

    /// The entries to write to Lance now: those that are ready, and with `with_unembedded` all others too.
    pub(super) fn drainable(&self, with_unembedded: bool) -> Vec<Arc<TailEntry>> {
        let ready = |entry: &&Arc<TailEntry>| with_unembedded || !entry.needs_vector();
        self.entries.values().map(|held| &held.entry).filter(ready).map(Arc::clone).collect()
    }

    /// The objects whose entries are of sequence numbers up to this one, with them.
    pub(super) fn up_to(&self, sequence: i64) -> Vec<(i64, i64)> {
        let entries = self.entries.values().map(|held| (held.entry.object_id, held.entry.sequence));
        entries.filter(|(_, of)| *of <= sequence).collect()
    }

    /// Removes objects that Lance now holds as of a sequence number, except those that changed meanwhile. The caller
    /// drops the returned entries after releasing the lock.
    #[must_use]
    pub(super) fn remove(&mut self, written: &[(i64, i64)]) -> Vec<Arc<TailEntry>> {
        let is_written = |(object_id, sequence): &&(i64, i64)| {
            self.entries.get(object_id).is_some_and(|known| known.entry.sequence == *sequence)
        };
        let object_ids: Vec<i64> = written.iter().filter(is_written).map(|(object_id, _)| *object_id).collect();
        self.take(&object_ids)
    }

    fn take(&mut self, object_ids: &[i64]) -> Vec<Arc<TailEntry>> {
        let mut taken = Vec::with_capacity(object_ids.len());
        let mut places = Vec::new();
        for object_id in object_ids {
            let Some(TailSlot { entry, since, place }) = self.entries.remove(object_id) else { continue };
            self.unembedded.remove(&(entry.sequence, *object_id));
            self.by_age.remove(&(since, *object_id));
            if let Some(place) = place {
                self.vectors.set(place, None);
                places.push(place);
            }
            taken.push(entry);
        }
        self.postings.remove(&places);
        taken
    }

    /// What a ranking by a question's tokens needs of the current entries.
    pub(super) fn matching(&self, tokens: &[String], filter: &SearchFilter) -> Matching {
        self.postings.matching(tokens, filter)
    }

    /// The current vectors.
    pub(super) fn vectors(&self) -> TailVectors {
        self.vectors.clone()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::index::Scored;
    use crate::index::analyze::CorpusStats;
    use crate::store::VisibleObjects;

    const WORDS: [&str; 12] =
        ["table", "orders", "id", "name", "customer", "date", "region", "amount", "note", "flight", "seat", "gate"];
    const QUESTIONS: [&[&str]; 5] = [
        &["orders"],
        &["table", "id"],
        &["seat", "gate", "flight"],
        &["unheard"],
        &["note", "unheard", "amount", "id"],
    ];

    /// Splitmix64: the same numbers each time.
    struct Numbers(u64);

    impl Numbers {
        fn below(&mut self, end: usize) -> usize {
            self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            ((mixed ^ (mixed >> 31)) % end as u64) as usize
        }

        /// Words that come up the less the later they are in the list.
        fn text(&mut self) -> String {
            let count = 1 + self.below(30);
            let mut words = Vec::new();
            for _ in 0..count {
                let end = 1 + self.below(WORDS.len());
                words.push(WORDS[self.below(end)]);
            }
            words.join(" ")
        }

        fn vector(&mut self) -> Arc<[f32]> {
            (0..8).map(|_| self.below(1000) as f32 / 1000.0).collect()
        }
    }

    /// What the tail should hold, walked through for every answer.
    #[derive(Default)]
    struct Walked(BTreeMap<i64, Plain>);

    struct Plain {
        sequence: i64,
        database_id: i64,
        text: Option<String>,
        vector: Option<Arc<[f32]>>,
    }

    impl Walked {
        fn bm25(&self, tokens: &[String], mut stats: CorpusStats, filter: &SearchFilter) -> Vec<Scored> {
            let counts = |id: i64, plain: &Plain| !filter.is_bound || filter.admits(id, plain.database_id);
            let documents: Vec<(i64, i64, Document)> = self
                .0
                .iter()
                .filter(|(id, plain)| counts(**id, plain))
                .filter_map(|(id, plain)| Some((*id, plain.database_id, document(plain.text.as_deref()?))))
                .collect();
            for (_, _, document) in &documents {
                let has = |token: &String| usize::from(document.frequencies.contains_key(token));
                let counts: Vec<usize> = tokens.iter().map(has).collect();
                stats.add_segment(u64::from(document.length), 1, tokens, &counts);
            }
            let bm25 = stats.into_scorer();
            let admitted = documents.iter().filter(|(id, database_id, _)| filter.admits(*id, *database_id));
            let scored = admitted.map(|(object_id, _, document)| {
                let weights = tokens.iter().filter_map(|token| {
                    let frequency = *document.frequencies.get(token)?;
                    Some(bm25.token_weight(token) * bm25.document_weight(frequency, document.length))
                });
                Scored { object_id: *object_id, score: weights.sum() }
            });
            scored.filter(|scored| scored.score > 0.0).collect()
        }

        fn nearest(&self, vector: &[f32], filter: &SearchFilter) -> Vec<Scored> {
            let admitted = self.0.iter().filter(|(id, plain)| filter.admits(**id, plain.database_id));
            let near = admitted.filter_map(|(object_id, plain)| {
                let score = lance_linalg::distance::dot::dot(plain.vector.as_ref()?, vector);
                Some(Scored { object_id: *object_id, score })
            });
            near.collect()
        }
    }

    fn document(text: &str) -> Document {
        let mut document = Document::default();
        for word in text.split_whitespace() {
            document.length += 1;
            *document.frequencies.entry(word.to_string()).or_default() += 1;
        }
        document
    }

    fn arrival(sequence: i64, object_id: i64, text: Option<String>) -> Arrival {
        let table = PendingObject::dropped_table(object_id, database_of(object_id));
        Arrival::new(PendingObject { sequence, text, ..table }, document)
    }

    fn database_of(object_id: i64) -> i64 {
        object_id % 3
    }

    fn by_object(mut scored: Vec<Scored>) -> Vec<Scored> {
        scored.sort_by_key(|scored| scored.object_id);
        scored
    }

    fn assert_same_answers(tail: &Tail, walked: &Walked, numbers: &mut Numbers) {
        let vector = numbers.vector();
        let some = VisibleObjects { only: Some(vec![1, 2]), objects: vec![3], ..VisibleObjects::default() };
        let bound = SearchFilter { is_bound: true, ..SearchFilter::visible(some.clone()) };
        for filter in [SearchFilter::default(), SearchFilter::visible(some), bound] {
            for question in QUESTIONS {
                let tokens: Vec<String> = question.iter().map(|token| token.to_string()).collect();
                let mut of_lance = CorpusStats::default();
                of_lance.add_segment(5_000, 400, &tokens, &vec![7; tokens.len()]);
                for stats in [CorpusStats::default(), of_lance] {
                    let found = tail.matching(&tokens, &filter).scored(&tokens, stats.clone());
                    assert_eq!(by_object(found), walked.bm25(&tokens, stats, &filter), "{question:?}");
                }
            }
            assert_eq!(
                by_object(tail.vectors().nearest(&vector, usize::MAX, &filter)),
                walked.nearest(&vector, &filter)
            );
        }
        let waiting = walked.0.values().filter(|plain| plain.text.is_some() && plain.vector.is_none()).count();
        assert_eq!(tail.counts(), TailCounts { ready: walked.0.len() - waiting, unembedded: waiting });
        assert_eq!(tail.unembedded(usize::MAX).len(), waiting);
        assert_eq!(tail.oldest(), tail.entries.values().map(|held| held.since).min());
        assert_eq!(tail.vectors().len(), walked.0.values().filter(|plain| plain.vector.is_some()).count());
    }

    #[test]
    fn answers_are_those_of_a_walk_through_all_entries() {
        let mut numbers = Numbers(42);
        let (mut tail, mut walked) = (Tail::default(), Walked::default());
        let mut sequence = 0;
        for step in 0..3_000 {
            let object_id = 1 + numbers.below(400) as i64;
            match numbers.below(20) {
                0..12 => {
                    sequence += 1;
                    let text = (numbers.below(10) > 0).then(|| numbers.text());
                    assert!(tail.insert(arrival(sequence, object_id, text.clone())));
                    let plain = Plain { sequence, database_id: database_of(object_id), text, vector: None };
                    walked.0.insert(object_id, plain);
                }
                12..18 => {
                    // Now and then with a sequence number from before a change.
                    let behind = i64::from(numbers.below(4) == 0);
                    let vector = numbers.vector();
                    let Some(plain) = walked.0.get_mut(&object_id) else { continue };
                    tail.set_vector(object_id, plain.sequence - behind, Arc::clone(&vector));
                    if behind == 0 && plain.text.is_some() {
                        plain.vector = Some(vector);
                    }
                }
                _ => {
                    let count = [1, 5, 200][numbers.below(3)];
                    let mut written = Vec::new();
                    for (object_id, plain) in walked.0.iter().take(count) {
                        written.push((*object_id, plain.sequence - i64::from(numbers.below(4) == 0)));
                    }
                    let removed = tail.remove(&written).len();
                    let before = walked.0.len();
                    for (object_id, sequence) in written {
                        if walked.0[&object_id].sequence == sequence {
                            walked.0.remove(&object_id);
                        }
                    }
                    assert_eq!(removed, before - walked.0.len());
                }
            }
            if step % 10 == 0 {
                assert_same_answers(&tail, &walked, &mut numbers);
            }
        }
        let all: Vec<(i64, i64)> = walked.0.iter().map(|(object_id, plain)| (*object_id, plain.sequence)).collect();
        assert_eq!(tail.remove(&all).len(), all.len());
        assert_same_answers(&tail, &Walked::default(), &mut numbers);
        assert!(tail.by_age.is_empty());
    }

    #[test]
    fn what_a_search_has_taken_stays_as_it_was() {
        let mut tail = Tail::default();
        for object_id in 1..=100 {
            tail.insert(arrival(object_id, object_id, Some("flight gate".into())));
            tail.set_vector(object_id, object_id, Arc::from([1.0, 0.0]));
        }
        let (tokens, filter) = (["gate".to_string()], SearchFilter::default());
        let (matching, vectors) = (tail.matching(&tokens, &filter), tail.vectors());
        let written: Vec<(i64, i64)> = (1..=100).map(|object_id| (object_id, object_id)).collect();
        drop(tail.remove(&written));
        tail.insert(arrival(101, 101, Some("seat".into())));
        tail.set_vector(101, 101, Arc::from([0.0, 1.0]));
        assert_eq!(matching.scored(&tokens, CorpusStats::default()).len(), 100);
        assert_eq!(vectors.nearest(&[1.0, 0.0], 10, &filter).len(), 10);
        assert!(
            vectors.nearest(&[1.0, 0.0], 200, &filter).iter().all(|near| near.score == 1.0 && near.object_id <= 100)
        );
        assert_eq!(tail.vectors().nearest(&[1.0, 0.0], 10, &filter), [Scored { object_id: 101, score: 0.0 }]);
        assert!(tail.matching(&tokens, &filter).scored(&tokens, CorpusStats::default()).is_empty());
    }

    #[test]
    fn rarer_tokens_weigh_more() {
        let mut tail = Tail::default();
        for (object_id, text) in [(1, "table orders id"), (2, "table orders archive id"), (3, "table customers id")] {
            tail.insert(arrival(object_id, object_id, Some(text.into())));
        }
        let tokens = ["orders".to_string(), "archive".to_string()];
        let found = tail.matching(&tokens, &SearchFilter::default()).scored(&tokens, CorpusStats::default());
        let [orders, archive] = by_object(found)[..] else { panic!("orders and its archive are found") };
        assert!(archive.score > orders.score, "{orders:?} {archive:?}");
    }

    #[test]
    fn a_full_tail_turns_new_objects_away_and_takes_changes() {
        let mut tail = Tail::default();
        for object_id in 1..=MAX_ENTRIES as i64 {
            assert!(tail.insert(arrival(object_id, object_id, Some("flight".into()))));
        }
        let next = MAX_ENTRIES as i64 + 1;
        assert!(tail.insert(arrival(next, 1, None)), "a drop of what is in");
        assert!(!tail.is_overflowing);
        assert!(!tail.insert(arrival(next + 1, next, Some("flight".into()))));
        assert!(tail.is_overflowing && !tail.contains(next));
    }
}
