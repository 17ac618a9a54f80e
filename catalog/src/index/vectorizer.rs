//! Calls the embedder for the index: off the async runtime, and tolerating failure. While it fails, search works
//! without vectors and texts wait for theirs; the failure is logged once and retried after a growing pause.
//!
//! Invariant: a question waits for a model that is being loaded, or downloaded, for [`LOADING_PATIENCE`] at most.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::watch;
use tracing::{info, warn};

use super::embed::{Embedder, EmbeddingModel};
use crate::error::{CatalogError, Result};

const FIRST_RETRY: Duration = Duration::from_secs(5);
const LAST_RETRY: Duration = Duration::from_secs(300);
/// How long a question waits for the model's first answer. LoadingStage takes a fraction of a second, a download longer.
const LOADING_PATIENCE: Duration = Duration::from_secs(3);

/// An embedder that may be absent, loading or failing.
pub(super) struct Vectorizer {
    embedder: Option<Arc<dyn Embedder>>,
    state: Arc<EmbedderStatus>,
}

/// What is known of the embedder from its calls.
struct EmbedderStatus {
    outage: Mutex<Option<Outage>>,
    loading: watch::Sender<LoadingStage>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum LoadingStage {
    /// Nothing has called it yet, or all calls failed.
    NotBegun,
    /// The first call is under way.
    UnderWay,
    /// It has answered.
    Done,
}

struct Outage {
    detail: String,
    hint: String,
    retry_after: Duration,
    retry_at: Instant,
}

impl Vectorizer {
    pub(super) fn new(embedder: Option<Arc<dyn Embedder>>) -> Self {
        let state = EmbedderStatus { outage: Mutex::new(None), loading: watch::Sender::new(LoadingStage::NotBegun) };
        Self { embedder, state: Arc::new(state) }
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

    /// Whether the first call is under way: the model is being loaded, or downloaded.
    pub(super) fn is_loading(&self) -> bool {
        *self.state.loading.borrow() == LoadingStage::UnderWay
    }

    /// How long to pause before calling a failing embedder again; `None` when it may be called.
    pub(super) fn pause(&self) -> Option<Duration> {
        let outage = self.state.outage.lock();
        let left = outage.as_ref()?.retry_at.saturating_duration_since(Instant::now());
        (!left.is_zero()).then_some(left)
    }

    /// The current failure, if any.
    pub(super) fn failure(&self) -> Option<CatalogError> {
        self.state.outage.lock().as_ref().map(|outage| CatalogError::Embedder {
            model: self.model().map_or_else(String::new, |model| model.id.clone()),
            detail: outage.detail.clone(),
            hint: outage.hint.clone(),
        })
    }

    /// One vector per text. `None` when there is no embedder or it is paused after a failure.
    pub(super) async fn embed(&self, texts: Vec<String>) -> Option<Vec<Vec<f32>>> {
        let embedder = Arc::clone(self.embedder.as_ref()?);
        if self.pause().is_some() {
            return None;
        }
        let state = Arc::clone(&self.state);
        state.note_call();
        // Noted on the thread itself: whoever waits for it may leave.
        let call = tokio::task::spawn_blocking(move || {
            let outcome = checked_embed(embedder.as_ref(), &texts);
            state.note_outcome(outcome)
        });
        call.await.unwrap_or_else(|_| {
            self.state.note_outcome(Err(CatalogError::Internal("the embedding thread panicked".into())))
        })
    }

    /// The question's vector; `None` as in [`Vectorizer::embed`], and while the model is loading for longer than
    /// [`LOADING_PATIENCE`].
    pub(super) async fn embed_question(&self, question: &str) -> Option<Vec<f32>> {
        let texts = vec![question.to_owned()];
        let mut loading = self.state.loading.subscribe();
        let begun = *loading.borrow();
        let vectors = match begun {
            LoadingStage::Done => self.embed(texts).await,
            LoadingStage::NotBegun => tokio::time::timeout(LOADING_PATIENCE, self.embed(texts)).await.ok()?,
            // A call of its own would take a thread for as long as the model loads.
            LoadingStage::UnderWay => {
                let loaded = loading.wait_for(|loading| *loading != LoadingStage::UnderWay);
                tokio::time::timeout(LOADING_PATIENCE, loaded).await.ok()?.ok()?;
                self.embed(texts).await
            }
        };
        vectors?.pop()
    }
}

impl EmbedderStatus {
    fn note_call(&self) {
        self.loading.send_if_modified(|loading| {
            let begins = *loading == LoadingStage::NotBegun;
            if begins {
                *loading = LoadingStage::UnderWay;
            }
            begins
        });
    }

    fn note_outcome(&self, outcome: Result<Vec<Vec<f32>>>) -> Option<Vec<Vec<f32>>> {
        match outcome {
            Ok(vectors) => {
                if self.outage.lock().take().is_some() {
                    info!("embedding works again; search by meaning is back");
                }
                self.loading.send_replace(LoadingStage::Done);
                Some(vectors)
            }
            Err(error) => {
                self.note_failure(error);
                self.loading.send_if_modified(|loading| {
                    let failed = *loading == LoadingStage::UnderWay;
                    if failed {
                        *loading = LoadingStage::NotBegun;
                    }
                    failed
                });
                None
            }
        }
    }

    fn note_failure(&self, error: CatalogError) {
        let mut outage = self.outage.lock();
        let retry_after = match outage.as_ref() {
            Some(known) => (known.retry_after * 2).min(LAST_RETRY),
            None => {
                warn!(%error, "embedding failed; search goes on with names and full text, and embedding is retried");
                FIRST_RETRY
            }
        };
        let retry_at = Instant::now() + retry_after;
        let (detail, hint) = match error {
            CatalogError::Embedder { detail, hint, .. } => (detail, hint),
            error => (error.to_string(), "embedding is retried".to_owned()),
        };
        *outage = Some(Outage { detail, hint, retry_after, retry_at });
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
