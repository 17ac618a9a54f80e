//! The vectors of the tail, in chunks that searches share: a search copies a few pointers, and a change copies only its
//! own chunk, and only while a search still reads it.

use std::sync::Arc;

use lance_linalg::distance::dot::dot;

use crate::index::{Scored, SearchFilter, keep_best};

/// Vectors of one chunk.
const CHUNK: usize = 64;

/// Vectors by the place of their document.
#[derive(Clone, Default)]
pub(in crate::index) struct TailVectors {
    chunks: Vec<Arc<Vec<Option<TailVector>>>>,
    count: usize,
}

/// A vector with its object and database.
#[derive(Clone)]
pub(super) struct TailVector {
    pub(super) object_id: i64,
    pub(super) database_id: i64,
    pub(super) vector: Arc<[f32]>,
}

impl TailVectors {
    /// Sets or clears the vector of a place.
    pub(super) fn set(&mut self, place: u32, embedded: Option<TailVector>) {
        let (chunk, offset) = (place as usize / CHUNK, place as usize % CHUNK);
        while self.chunks.len() <= chunk {
            self.chunks.push(Arc::new(vec![None; CHUNK]));
        }
        if embedded.is_none() && self.chunks[chunk][offset].is_none() {
            return;
        }
        self.count += usize::from(embedded.is_some());
        let older = std::mem::replace(&mut Arc::make_mut(&mut self.chunks[chunk])[offset], embedded);
        self.count -= usize::from(older.is_some());
    }

    pub(in crate::index) fn len(&self) -> usize {
        self.count
    }

    /// The `limit` vectors nearest to a unit vector, in no order; scores are cosines.
    pub(in crate::index) fn nearest(&self, vector: &[f32], limit: usize, filter: &SearchFilter) -> Vec<Scored> {
        let all = self.chunks.iter().flat_map(|chunk| chunk.iter().flatten());
        let near = all.filter(|of| of.vector.len() == vector.len() && filter.admits(of.object_id, of.database_id));
        let mut found: Vec<Scored> =
            near.map(|of| Scored { object_id: of.object_id, score: dot(&of.vector, vector) }).collect();
        keep_best(&mut found, limit);
        found
    }
}
