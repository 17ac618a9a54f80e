//! Turning texts into vectors. One file a provider; the index never assumes a model or a dimension.

use crate::Result;

/// What made a vector; recorded on every index row.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct EmbeddingModel {
    /// For example `all-MiniLM-L6-v2`.
    pub id: String,
    /// Vector length.
    pub dimension: usize,
}

/// An embedding model. `embed` is CPU-heavy and blocking: the index calls it off the async runtime, in batches.
pub trait Embedder: Send + Sync {
    /// The model.
    fn model(&self) -> &EmbeddingModel;
    /// One unit-length vector of `model().dimension` a text, in order. Errors: `embedder_error`.
    fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>>;
}
