//! The inverted index of the tail: which documents have a word, and how often. Updated with every change, so that
//! a search reads only the lists of its own words, however many documents there are.
//!
//! Invariant: the number of documents and their total length are always those of the indexed documents.

use std::collections::HashMap;
use std::sync::Arc;

use crate::index::analyze::{CorpusStats, Document};
use crate::index::{Scored, SearchFilter};

/// When more documents than this are removed at once, all lists are scanned instead of the lists of each document's
/// words.
const MANY: usize = 32;

/// Documents by their words.
#[derive(Default)]
pub(in crate::index) struct Postings {
    /// Each ascending by place, and none empty.
    lists: HashMap<Arc<str>, Vec<Posting>>,
    /// By place.
    documents: Vec<Option<Indexed>>,
    free: Vec<u32>,
    total_length: u64,
}

struct Posting {
    place: u32,
    frequency: u32,
}

struct Indexed {
    object_id: i64,
    database_id: i64,
    length: u32,
    words: Box<[Arc<str>]>,
}

impl Postings {
    /// Adds a document. Returns its place, which is unique while the document is indexed.
    pub(in crate::index) fn insert(&mut self, object_id: i64, database_id: i64, document: Document) -> u32 {
        let place = self.free.pop().unwrap_or_else(|| {
            self.documents.push(None);
            self.documents.len() as u32 - 1
        });
        let Document { frequencies, length } = document;
        let words: Box<[Arc<str>]> =
            frequencies.into_iter().map(|(word, frequency)| self.insert_word(&word, place, frequency)).collect();
        self.total_length += u64::from(length);
        self.documents[place as usize] = Some(Indexed { object_id, database_id, length, words });
        place
    }

    fn insert_word(&mut self, word: &str, place: u32, frequency: u32) -> Arc<str> {
        let word: Arc<str> = match self.lists.get_key_value(word) {
            Some((known, _)) => Arc::clone(known),
            None => word.into(),
        };
        let list = self.lists.entry(Arc::clone(&word)).or_default();
        let position = list.partition_point(|posting| posting.place < place);
        list.insert(position, Posting { place, frequency });
        word
    }

    /// Removes documents.
    pub(super) fn remove(&mut self, places: &[u32]) {
        let mut are_gone = vec![false; self.documents.len()];
        for place in places {
            let Some(document) = self.documents.get_mut(*place as usize).and_then(Option::take) else { continue };
            are_gone[*place as usize] = true;
            self.free.push(*place);
            self.total_length -= u64::from(document.length);
            if places.len() <= MANY {
                document.words.iter().for_each(|word| self.remove_word(word, *place));
            }
        }
        if places.len() > MANY {
            self.lists.retain(|_, list| {
                list.retain(|posting| !are_gone[posting.place as usize]);
                !list.is_empty()
            });
        }
    }

    fn remove_word(&mut self, word: &str, place: u32) {
        let Some(list) = self.lists.get_mut(word) else { return };
        if let Ok(position) = list.binary_search_by_key(&place, |posting| posting.place) {
            list.remove(position);
        }
        if list.is_empty() {
            self.lists.remove(word);
        }
    }

    /// What a ranking by a question's distinct tokens needs of the current documents; those that the filter leaves out
    /// still count in the statistics, unless the caller may not know of them.
    pub(in crate::index) fn matching(&self, tokens: &[String], filter: &SearchFilter) -> Matching {
        let (documents, total_length) = match filter.is_bound {
            true => self.admitted(filter),
            false => (self.documents.len() - self.free.len(), self.total_length),
        };
        let mut matching = Matching {
            total_length,
            documents,
            documents_with_token: vec![0; tokens.len()],
            found: Vec::new(),
            occurrences: Vec::new(),
        };
        let mut positions: Vec<Option<u32>> = vec![None; self.documents.len()];
        for (token, word) in tokens.iter().enumerate() {
            let Some(list) = self.lists.get(word.as_str()) else { continue };
            if !filter.is_bound {
                matching.documents_with_token[token] = list.len();
            }
            for posting in list {
                let place = posting.place as usize;
                let Some(document) = self.documents[place].as_ref() else { continue };
                if !filter.admits(document.object_id, document.database_id) {
                    continue;
                }
                if filter.is_bound {
                    matching.documents_with_token[token] += 1;
                }
                let position = *positions[place].get_or_insert_with(|| {
                    matching.found.push(MatchedDocument { object_id: document.object_id, length: document.length });
                    matching.found.len() as u32 - 1
                });
                matching.occurrences.push(Occurrence { token, position, frequency: posting.frequency });
            }
        }
        matching
    }

    /// Returns how many documents a filter admits, and how long they are together.
    fn admitted(&self, filter: &SearchFilter) -> (usize, u64) {
        let admitted =
            self.documents.iter().flatten().filter(|document| filter.admits(document.object_id, document.database_id));
        admitted.fold((0, 0), |(count, length), document| (count + 1, length + u64::from(document.length)))
    }
}

/// The documents that have some of a question's tokens, at one point in time.
pub(in crate::index) struct Matching {
    total_length: u64,
    documents: usize,
    /// By token.
    documents_with_token: Vec<usize>,
    found: Vec<MatchedDocument>,
    /// In the order of the tokens, so that scores are summed in the same order as in Lance.
    occurrences: Vec<Occurrence>,
}

struct MatchedDocument {
    object_id: i64,
    length: u32,
}

struct Occurrence {
    token: usize,
    /// The position of the document among those found.
    position: u32,
    frequency: u32,
}

impl Matching {
    /// Every document's BM25 score. The tokens are those that it was matched by; `stats` are those of Lance's rows.
    pub(in crate::index) fn scored(&self, tokens: &[String], mut stats: CorpusStats) -> Vec<Scored> {
        if self.found.is_empty() {
            return Vec::new();
        }
        stats.add_segment(self.total_length, self.documents, tokens, &self.documents_with_token);
        let bm25 = stats.into_scorer();
        let weights: Vec<f32> = tokens.iter().map(|token| bm25.token_weight(token)).collect();
        let mut scores = vec![0.0; self.found.len()];
        for occurrence in &self.occurrences {
            let position = occurrence.position as usize;
            let in_document = bm25.document_weight(occurrence.frequency, self.found[position].length);
            scores[position] += weights[occurrence.token] * in_document;
        }
        let scored = self.found.iter().zip(scores).map(|(found, score)| Scored { object_id: found.object_id, score });
        scored.filter(|scored| scored.score > 0.0).collect()
    }
}
