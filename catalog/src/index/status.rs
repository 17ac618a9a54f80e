//! How far the schema index is, for people who watch a server.

use super::{IndexPart, SchemaIndex};

/// How far the index of one kind of object is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaIndexStatus {
    /// `tables` or `columns`.
    pub objects: &'static str,
    /// `opening`, until its files are opened or made; `damaged`, until they are made anew; `indexing`, while objects are found by
    /// name only; `behind`, while they are so since the server that writes the index has yet to take them in; `embedding`, while some are not found by meaning; `ready`.
    pub state: &'static str,
    /// The embedding model; `None` where the settings name none.
    pub model: Option<String>,
    /// Objects that are searched in memory, and are yet to be written to the dataset.
    pub in_memory: u64,
    /// Objects whose vectors are yet to be computed.
    pub without_vector: u64,
}

impl SchemaIndex {
    /// Returns how far the index of each kind of object is.
    pub(crate) fn status(&self) -> [SchemaIndexStatus; 2] {
        [self.tables.status("tables"), self.columns.status("columns")]
    }
}

impl IndexPart {
    fn status(&self, objects: &'static str) -> SchemaIndexStatus {
        let model = self.vectorizer.model().map(|model| model.id.clone());
        let state = self.state.read();
        let backfill = if state.lacks_vectors { state.to_backfill.saturating_sub(state.backfilled) } else { 0 };
        let without_vector = match model {
            Some(_) => state.tail.counts().unembedded as u64 + backfill,
            None => 0,
        };
        let is_embedded = model.is_none() || (without_vector == 0 && !state.lacks_vectors);
        let name = match (state.is_damaged, state.is_current) {
            (true, _) => "damaged",
            (false, false) => "opening",
            (false, true) if state.tail.is_overflowing && state.is_following => "behind",
            (false, true) if state.tail.is_overflowing || state.is_catching_up => "indexing",
            (false, true) if !is_embedded => "embedding",
            (false, true) => "ready",
        };
        SchemaIndexStatus { objects, state: name, model, in_memory: state.tail.len() as u64, without_vector }
    }
}
