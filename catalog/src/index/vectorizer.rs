//! Calls the embedder for the index: off the async runtime, and tolerating failure. While it fails, search works
//! without vectors and texts wait for theirs; the failure is logged once and retried after a growing pause.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tracing::{info, warn};

use super::embed::{Embedder, EmbeddingModel};
use crate::error::{CatalogError, Result};

const FIRST_RETRY: Duration = Duration::from_secs(5);
const LAST_RETRY: Duration = Duration::from_secs(300);

/// An embedder that may be absent or failing.
pub(super) struct Vectorizer {
    embedder: Option<Arc<dyn Embedder>>,
    outage: Mutex<Option<Outage>>,
}

struct Outage {
    message: String,
    retry_after: Duration,
    retry_at: Instant,
}

impl Vectorizer {
    pub(super) fn new(embedder: Option<Arc<dyn Embedder>>) -> Self {
        Self { embedder, outage: Mutex::new(None) }
    }

    /// The model in use.
    pub(super) fn model(&self) -> Option<&EmbeddingModel> {
        self.embedder.as_ref().map(|embedder| embedder.model())
    }

    /// How many concurrent calls of [`Vectorizer::embed`] are worthwhile.
    pub(super) fn workers(&self) -> usize {
        self.embedder.as_ref().map_or(1, |embedder| embedder.workers().max(1))
    }

    /// [`Embedder::is_fast`].
    pub(super) fn is_fast(&self) -> bool {
        self.embedder.as_ref().is_some_and(|embedder| embedder.is_fast())
    }

    /// How long to pause before calling a failing embedder again; `None` when it may be called.
    pub(super) fn pause(&self) -> Option<Duration> {
        let outage = self.outage.lock();
        let left = outage.as_ref()?.retry_at.saturating_duration_since(Instant::now());
        (!left.is_zero()).then_some(left)
    }

    /// The current failure, if any.
    pub(super) fn failure(&self) -> Option<CatalogError> {
        self.outage.lock().as_ref().map(|outage| CatalogError::Embedder {
            model: self.model().map_or_else(String::new, |model| model.id.clone()),
            detail: outage.message.clone(),
            hint: "embedding is retried; search goes on with names and full text".into(),
        })
    }

    /// One vector per text. `None` when there is no embedder or it is paused after a failure.
    pub(super) async fn embed(&self, texts: Vec<String>) -> Option<Vec<Vec<f32>>> {
        let embedder = Arc::clone(self.embedder.as_ref()?);
        if self.pause().is_some() {
            return None;
        }
        let outcome = tokio::task::spawn_blocking(move || checked_embed(embedder.as_ref(), &texts)).await;
        match outcome.unwrap_or_else(|_| Err(CatalogError::Internal("the embedding thread panicked".into()))) {
            Ok(vectors) => {
                if self.outage.lock().take().is_some() {
                    info!("embedding works again; search by meaning is back");
                }
                Some(vectors)
            }
            Err(error) => {
                self.note_failure(&error);
                None
            }
        }
    }

    fn note_failure(&self, error: &CatalogError) {
        let mut outage = self.outage.lock();
        let retry_after = match outage.as_ref() {
            Some(known) => (known.retry_after * 2).min(LAST_RETRY),
            None => {
                warn!(%error, "embedding failed; search goes on with names and full text, and embedding is retried");
                FIRST_RETRY
            }
        };
        let retry_at = Instant::now() + retry_after;
        *outage = Some(Outage { message: error.to_string(), retry_after, retry_at });
    }
}

/// Embeds and checks the embedder's contract: one unit vector of the promised dimension per text.
fn checked_embed(embedder: &dyn Embedder, texts: &[String]) -> Result<Vec<Vec<f32>>> {
    let vectors = embedder.embed(texts)?;
    let dimension = embedder.model().dimension;
    if vectors.len() != texts.len() || vectors.iter().any(|vector| vector.len() != dimension) {
        return Err(CatalogError::Embedder {
            model: embedder.model().id.clone(),
            detail: format!("did not return one vector of {dimension} numbers a text"),
            hint: "use another embedding model".into(),
        });
    }
    Ok(vectors)
}
