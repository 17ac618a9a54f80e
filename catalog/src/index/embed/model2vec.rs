//! Static embeddings (Model2Vec): one vector per token, averaged. Tens of thousands of strings a second on one core, so
//! a catalog of a million tables has its vectors in minutes; they rank a little worse than a sentence model's.
//!
//! Uses the versions of tokenizers and safetensors that fastembed depends on; the crate model2vec-rs 0.4 would add
//! older versions of both. Format: <https://github.com/MinishLab/model2vec>.

use std::path::{Path, PathBuf};

use hf_hub::api::sync::ApiBuilder;
use safetensors::SafeTensors;
use tokenizers::Tokenizer;

use super::tensors::{floats, indices};
use super::{EmbedSettings, Embedder, EmbeddingModel, default_cache_dir, embedder_error, normalise, read_file};
use crate::error::{CatalogError, Result};

/// The default model.
pub(super) const DEFAULT_MODEL: &str = "minishlab/potion-retrieval-32M";
const FILES: [&str; 2] = ["tokenizer.json", "model.safetensors"];
/// More tokens of a string hardly change the average.
const MAX_TOKENS: usize = 512;

/// A static model. Loaded on construction, which takes a fraction of a second, since its file holds its dimension.
pub(super) struct Model2VecEmbedder {
    model: EmbeddingModel,
    tokenizer: Tokenizer,
    /// The token for everything outside the vocabulary; it is ignored.
    unknown: Option<u32>,
    /// One row of `dimension` numbers per vector.
    vectors: Vec<f32>,
    /// The row of each token, where tokens share rows.
    rows: Option<Vec<usize>>,
    /// The weight of each token in the average, where they differ.
    weights: Option<Vec<f32>>,
}

impl Model2VecEmbedder {
    /// Loads the model from its folder, or from its hub through the cache.
    pub(super) fn new(settings: &EmbedSettings) -> Result<Self> {
        let [tokenizer, weights] = match &settings.model_path {
            Some(folder) => FILES.map(|file| folder.join(file)),
            None => download(settings)?,
        };
        let read = |path: &Path| read_file(&settings.model, path);
        Self::from_bytes(&settings.model, &read(&tokenizer)?, &read(&weights)?)
    }

    fn from_bytes(id: &str, tokenizer: &[u8], tensors: &[u8]) -> Result<Self> {
        let odd = |detail: String| embedder_error(id, detail, "check that tokenizer.json and model.safetensors belong");
        let tokenizer = Tokenizer::from_bytes(tokenizer).map_err(|error| odd(format!("tokenizer.json: {error}")))?;
        let tensors = SafeTensors::deserialize(tensors).map_err(|error| odd(format!("model.safetensors: {error}")))?;
        let table = ["embeddings", "embedding.weight", "0"].iter().find_map(|name| tensors.tensor(name).ok());
        let table = table.ok_or_else(|| odd("model.safetensors holds no embeddings".into()))?;
        let &[count, dimension] = table.shape() else {
            return Err(odd(format!("the embeddings have shape {:?}, not two dimensions", table.shape())));
        };
        let vectors = floats(&table).ok_or_else(|| odd(format!("embeddings of type {:?}", table.dtype())))?;
        let rows = tensors.tensor("mapping").ok().map(|tensor| indices(&tensor));
        let weights = tensors.tensor("weights").ok().and_then(|tensor| floats(&tensor));
        if dimension == 0 || rows.iter().flatten().any(|row| *row >= count) {
            return Err(odd("its tokens have no vectors".into()));
        }
        let unknown = ["[UNK]", "<unk>"].iter().find_map(|token| tokenizer.token_to_id(token));
        let model = EmbeddingModel { id: id.to_string(), dimension };
        Ok(Self { model, tokenizer, unknown, vectors, rows, weights })
    }

    fn embed_one(&self, text: &str) -> Result<Vec<f32>> {
        let encoded = self.tokenizer.encode_fast(text, false).map_err(|error| self.error(&error))?;
        let mut sum = vec![0.0; self.model.dimension];
        for token in encoded.get_ids().iter().filter(|token| Some(**token) != self.unknown).take(MAX_TOKENS) {
            let token = *token as usize;
            let row = self.rows.as_ref().map_or(Some(token), |rows| rows.get(token).copied());
            let start = row.map_or(usize::MAX, |row| row.saturating_mul(self.model.dimension));
            let Some(vector) = self.vectors.get(start..start.saturating_add(self.model.dimension)) else { continue };
            let weight = self.weights.as_ref().and_then(|weights| weights.get(token).copied()).unwrap_or(1.0);
            sum.iter_mut().zip(vector).for_each(|(sum, number)| *sum += weight * number);
        }
        normalise(&mut sum);
        Ok(sum)
    }

    fn error(&self, detail: &dyn std::fmt::Display) -> CatalogError {
        embedder_error(&self.model.id, detail, "check the model's tokenizer.json")
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
        texts.iter().map(|text| self.embed_one(text)).collect()
    }
}

fn download(settings: &EmbedSettings) -> Result<[PathBuf; 2]> {
    let cache_dir = settings.cache_dir.clone().unwrap_or_else(default_cache_dir);
    let failed = |error: hf_hub::api::sync::ApiError| {
        let hint = "check the network, or set the embedding model path to a folder with its files";
        embedder_error(&settings.model, error, hint)
    };
    let api = ApiBuilder::from_env().with_cache_dir(cache_dir).with_progress(false).build().map_err(failed)?;
    let repository = api.model(settings.model.clone());
    let [tokenizer, weights] = FILES;
    Ok([repository.get(tokenizer).map_err(failed)?, repository.get(weights).map_err(failed)?])
}
