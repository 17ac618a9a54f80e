//! The models that `make bench` installs. `QUERENT_BENCH_EMBEDDER` names another than a cell's own: `minilm` (the
//! default model), `static`, or `reranked` (static, and the default model for the best hundred).

use std::sync::Arc;

use querent_catalog::index::embed::{EmbedProvider, EmbedSettings, Embedder, from_settings};

use crate::Failure;
use crate::harness::cache_folder;

/// Which models a catalog has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EmbedderModels {
    MiniLm,
    Static,
    Reranked,
}

impl EmbedderModels {
    /// Returns the models that the environment names, or else a cell's own.
    pub(super) fn from_environment_or(own: Self) -> Result<Self, Failure> {
        match std::env::var("QUERENT_BENCH_EMBEDDER").as_deref() {
            Err(_) => Ok(own),
            Ok("minilm") => Ok(Self::MiniLm),
            Ok("static") => Ok(Self::Static),
            Ok("reranked") => Ok(Self::Reranked),
            Ok(other) => {
                Err(format!("QUERENT_BENCH_EMBEDDER is `{other}`; it may be minilm, static or reranked").into())
            }
        }
    }

    pub(super) fn embedder(self) -> Result<Option<Arc<dyn Embedder>>, Failure> {
        if self == Self::MiniLm {
            return minilm();
        }
        let settings = EmbedSettings {
            provider: EmbedProvider::Model2vec,
            model: "wordllama-256".to_string(),
            model_path: Some(cache_folder()?.join("models/wordllama-256")),
            ..EmbedSettings::default()
        };
        Ok(from_settings(&settings)?)
    }

    pub(super) fn reranker(self) -> Result<Option<Arc<dyn Embedder>>, Failure> {
        if self == Self::Reranked { minilm() } else { Ok(None) }
    }
}

fn minilm() -> Result<Option<Arc<dyn Embedder>>, Failure> {
    let models = cache_folder()?.join("models");
    let settings = EmbedSettings {
        model_path: Some(models.join("all-minilm-l6-v2")),
        ort_dylib_path: Some(models.join("ort/libonnxruntime.so")),
        ..EmbedSettings::default()
    };
    Ok(from_settings(&settings)?)
}
