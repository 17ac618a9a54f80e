//! Reranks a few objects by a model that is too slow to embed a whole catalog. Their vectors are computed when a search
//! first finds them, and cached.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::{StreamExt, stream};
use lance_linalg::distance::dot;
use quick_cache::sync::Cache;

use super::Scored;
use super::embed::Embedder;
use super::vectorizer::Vectorizer;
use crate::store::pending::{TEXT_HASH_BYTES, text_hash};

/// Vectors in the cache: 25 MB of those with 384 dimensions.
const KEPT: usize = 16 * 1024;
/// Texts embedded in one call.
const BATCH: usize = 8;
/// The longest that a search waits for texts that have no vector yet.
const PATIENCE: Duration = Duration::from_millis(500);

/// A model that reranks the results of another.
pub(crate) struct Reranker {
    vectorizer: Vectorizer,
    vectors: Cache<[u8; TEXT_HASH_BYTES], Arc<[f32]>>,
    patience: Duration,
}

impl Reranker {
    pub(super) fn new(embedder: Arc<dyn Embedder>) -> Self {
        Self { vectorizer: Vectorizer::new(Some(embedder)), vectors: Cache::new(KEPT), patience: PATIENCE }
    }

    /// The objects ordered by how near their texts are to the question, nearest first. Those whose vector could not be
    /// computed in time follow in the given order. `None` while the model fails.
    pub(crate) async fn rank(&self, question: &str, texts: Vec<(i64, String)>) -> Option<Vec<Scored>> {
        let asked = self.vectorizer.embed(vec![question.to_string()]).await?.pop()?;
        let deadline = Instant::now() + self.patience;
        let hashes: Vec<_> = texts.iter().map(|(_, text)| text_hash(text)).collect();
        let missing: Vec<_> =
            hashes.iter().zip(&texts).filter(|(hash, _)| self.vectors.peek(*hash).is_none()).collect();
        let batches: Vec<Vec<_>> = missing
            .chunks(BATCH)
            .map(|batch| batch.iter().map(|(hash, (_, text))| (**hash, text.clone())).collect())
            .collect();
        stream::iter(batches)
            .take_while(|_| std::future::ready(Instant::now() < deadline))
            .map(|batch| self.embed(batch))
            .buffer_unordered(self.vectorizer.workers())
            .collect::<()>()
            .await;
        let (mut ranked, mut rest) = (Vec::new(), Vec::new());
        for ((object_id, _), hash) in texts.iter().zip(&hashes) {
            match self.vectors.get(hash) {
                Some(vector) => ranked.push(Scored { object_id: *object_id, score: dot(&vector, &asked) }),
                None => rest.push(Scored { object_id: *object_id, score: f32::NEG_INFINITY }),
            }
        }
        ranked.sort_by(|a, b| b.score.total_cmp(&a.score));
        ranked.append(&mut rest);
        Some(ranked)
    }

    async fn embed(&self, batch: Vec<([u8; TEXT_HASH_BYTES], String)>) {
        let (hashes, texts): (Vec<_>, Vec<_>) = batch.into_iter().unzip();
        for (hash, vector) in hashes.into_iter().zip(self.vectorizer.embed(texts).await.unwrap_or_default()) {
            self.vectors.insert(hash, vector.into());
        }
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test has a runtime of its own")]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::error::Result;
    use crate::index::embed::EmbeddingModel;

    /// Texts are near each other by how long they are.
    struct Lengths {
        model: EmbeddingModel,
        embedded: Arc<AtomicUsize>,
    }

    impl Embedder for Lengths {
        fn model(&self) -> &EmbeddingModel {
            &self.model
        }

        fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>> {
            self.embedded.fetch_add(texts.len(), Ordering::Relaxed);
            let angle = |text: &String| text.len() as f32 / 100.0;
            Ok(texts.iter().map(|text| vec![angle(text).cos(), angle(text).sin()]).collect())
        }
    }

    fn reranker() -> (Reranker, Arc<AtomicUsize>) {
        let embedded = Arc::new(AtomicUsize::new(0));
        let model = EmbeddingModel { id: "lengths".into(), dimension: 2 };
        (Reranker::new(Arc::new(Lengths { model, embedded: Arc::clone(&embedded) })), embedded)
    }

    fn texts(lengths: &[usize]) -> Vec<(i64, String)> {
        lengths.iter().map(|length| (*length as i64, "x".repeat(*length))).collect()
    }

    #[tokio::test]
    async fn the_nearest_come_first_and_are_embedded_once() {
        let (reranker, embedded) = reranker();
        for _ in 0..2 {
            let ranked = reranker.rank("xxxxx", texts(&[90, 1, 40, 6])).await.unwrap();
            assert_eq!(ranked.iter().map(|one| one.object_id).collect::<Vec<_>>(), [6, 1, 40, 90]);
        }
        assert_eq!(embedded.load(Ordering::Relaxed), 4 + 2, "four texts once, and the question twice");
    }

    #[tokio::test]
    async fn what_gets_no_vector_in_time_follows_in_its_order() {
        let mut reranker = reranker().0;
        reranker.rank("xxxxx", texts(&[90, 6])).await.unwrap();
        reranker.patience = Duration::ZERO;
        let ranked = reranker.rank("xxxxx", texts(&[40, 90, 5, 6])).await.unwrap();
        assert_eq!(ranked.iter().map(|one| one.object_id).collect::<Vec<_>>(), [6, 90, 40, 5]);
    }
}
