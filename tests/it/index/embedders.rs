//! The models of these tests: two made up, and the real one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use querent_catalog::CatalogError;
use querent_catalog::index::embed::{EmbedSettings, Embedder, EmbeddingModel, from_settings};
use querent_tests::models_dir;

/// A quick embedder: strings with words in common are near each other.
pub(crate) struct Bag {
    model: EmbeddingModel,
    /// The number of tables' strings that were embedded.
    pub(crate) texts: AtomicUsize,
    /// Embeds that many and then fails.
    pub(super) breaks_after: AtomicUsize,
    pub(super) is_broken: AtomicBool,
}

impl Bag {
    pub(crate) fn new(dimension: usize) -> Arc<Self> {
        let model = EmbeddingModel { id: "bag of words".into(), dimension };
        Arc::new(Self {
            model,
            texts: AtomicUsize::new(0),
            breaks_after: AtomicUsize::new(usize::MAX),
            is_broken: AtomicBool::new(false),
        })
    }

    fn vector(&self, text: &str) -> Vec<f32> {
        let mut vector = vec![0.01; self.model.dimension];
        for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
            let slot = word.to_lowercase().bytes().fold(7_usize, |hash, byte| hash * 31 % 65_521 + usize::from(byte));
            vector[slot % self.model.dimension] += 1.0;
        }
        let length = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
        vector.iter().map(|value| value / length).collect()
    }
}

impl Embedder for Bag {
    fn model(&self) -> &EmbeddingModel {
        &self.model
    }

    fn embed(&self, texts: &[String]) -> querent_catalog::Result<Vec<Vec<f32>>> {
        let has_had_enough = self.texts.load(Ordering::Relaxed) >= self.breaks_after.load(Ordering::Relaxed);
        if has_had_enough || self.is_broken.load(Ordering::Relaxed) {
            return Err(out_of_order(&self.model));
        }
        self.texts.fetch_add(texts.iter().filter(|text| text.starts_with("table ")).count(), Ordering::Relaxed);
        Ok(texts.iter().map(|text| self.vector(text)).collect())
    }
}

/// Finds every question near to strings with a flask in them.
pub(super) struct Taste {
    model: EmbeddingModel,
    pub(super) is_broken: AtomicBool,
}

impl Default for Taste {
    fn default() -> Self {
        let model = EmbeddingModel { id: "taste".into(), dimension: 2 };
        Self { model, is_broken: AtomicBool::new(false) }
    }
}

impl Embedder for Taste {
    fn model(&self) -> &EmbeddingModel {
        &self.model
    }

    fn embed(&self, texts: &[String]) -> querent_catalog::Result<Vec<Vec<f32>>> {
        if self.is_broken.load(Ordering::Relaxed) {
            return Err(out_of_order(&self.model));
        }
        let is_near = |text: &String| !text.starts_with("table ") || text.contains("flask");
        Ok(texts.iter().map(|text| if is_near(text) { vec![1.0, 0.0] } else { vec![0.0, 1.0] }).collect())
    }
}

fn out_of_order(model: &EmbeddingModel) -> CatalogError {
    CatalogError::Embedder { model: model.id.clone(), detail: "out of order".into(), hint: "mend it".into() }
}

/// Returns the real model, as the server loads it.
pub(super) fn minilm() -> Arc<dyn Embedder> {
    let settings = EmbedSettings {
        model_path: Some(models_dir().join("all-minilm-l6-v2")),
        ort_dylib_path: Some(models_dir().join("ort/libonnxruntime.so")),
        ..EmbedSettings::default()
    };
    from_settings(&settings).expect("the model is installed; run `make test`").unwrap()
}
