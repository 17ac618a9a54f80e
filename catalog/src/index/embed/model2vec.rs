//! Static embeddings (Model2Vec): a vector a token, averaged. Tens of thousands of texts a second on one core, so a
//! catalog of a million tables has its vectors in minutes; they rank a little worse than a sentence model's.

use std::path::{Path, PathBuf};

use hf_hub::api::sync::ApiBuilder;
use model2vec_rs::model::StaticModel;

use super::{EmbedSettings, Embedder, EmbeddingModel, default_cache_dir, embedder_error, read_file};
use crate::Result;

/// The model used unless told otherwise.
pub(super) const DEFAULT_MODEL: &str = "minishlab/potion-retrieval-32M";
const FILES: [&str; 3] = ["tokenizer.json", "model.safetensors", "config.json"];
/// More of a text says nothing new to an average.
const MAX_TOKENS: usize = 512;
const BATCH_SIZE: usize = 1024;

/// A static model, loaded when it is made: it takes tens of milliseconds, and its dimension is in its file.
pub(super) struct Model2VecEmbedder {
    model: EmbeddingModel,
    loaded: StaticModel,
}

impl Model2VecEmbedder {
    /// Loads the model from its folder, or from its hub by way of the cache.
    pub(super) fn new(settings: &EmbedSettings) -> Result<Self> {
        let files = match &settings.model_path {
            Some(folder) => FILES.map(|file| folder.join(file)),
            None => download(settings)?,
        };
        let [tokenizer, weights, config] = &files;
        let read = |path: &Path| read_file(&settings.model, path);
        let loaded = StaticModel::from_bytes(read(tokenizer)?, read(weights)?, read(config)?, None)
            .map_err(|error| embedder_error(&settings.model, format!("{error:#}"), "check the model's three files"))?;
        let model = EmbeddingModel { id: settings.model.clone(), dimension: loaded.dim() };
        Ok(Self { model, loaded })
    }
}

impl Embedder for Model2VecEmbedder {
    fn model(&self) -> &EmbeddingModel {
        &self.model
    }

    fn workers(&self) -> usize {
        std::thread::available_parallelism().map_or(1, usize::from)
    }

    fn is_fast(&self) -> bool {
        true
    }

    fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>> {
        let mut vectors = self.loaded.encode_with_args(texts, Some(MAX_TOKENS), BATCH_SIZE);
        for vector in &mut vectors {
            normalise(vector);
        }
        Ok(vectors)
    }
}

/// To unit length; a text without a known token stays zero, which is near nothing.
fn normalise(vector: &mut [f32]) {
    let length = vector.iter().map(|number| number * number).sum::<f32>().sqrt();
    if length > f32::EPSILON {
        vector.iter_mut().for_each(|number| *number /= length);
    }
}

fn download(settings: &EmbedSettings) -> Result<[PathBuf; 3]> {
    let cache_dir = settings.cache_dir.clone().unwrap_or_else(default_cache_dir);
    let failed = |error: hf_hub::api::sync::ApiError| {
        let hint = "check the network, or set the embedding model path to a folder with its files";
        embedder_error(&settings.model, error, hint)
    };
    let api = ApiBuilder::from_env().with_cache_dir(cache_dir).with_progress(false).build().map_err(failed)?;
    let repository = api.model(settings.model.clone());
    let [tokenizer, weights, config] = FILES;
    Ok([
        repository.get(tokenizer).map_err(failed)?,
        repository.get(weights).map_err(failed)?,
        repository.get(config).map_err(failed)?,
    ])
}
