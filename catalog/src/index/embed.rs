//! Turns strings into vectors. One file per provider; the index never assumes a model or a dimension.

mod bert;
mod fastembed;
mod gemini;
mod http;
mod model2vec;
mod ollama;
mod openai;
mod published;
mod tensors;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::{CatalogError, Result};
pub use crate::model::EmbeddingModel;
use crate::outbound::ApiKey;

use http::HttpEmbedder;

/// An embedding model. `embed` is CPU-heavy and blocking: the index calls it off the async runtime, in batches.
pub trait Embedder: Send + Sync {
    /// The model.
    fn model(&self) -> &EmbeddingModel;
    /// How many concurrent calls of `embed` are worthwhile.
    fn workers(&self) -> usize {
        1
    }
    /// Whether embedding a string takes microseconds, so that objects can wait for their vectors.
    fn is_fast(&self) -> bool {
        false
    }
    /// One unit-length vector of `model().dimension` for each string, in order. Errors: `embedder_error`.
    fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>>;
}

/// Where vectors come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EmbedProvider {
    /// A sentence model in this process: in ONNX Runtime where its library is there, else in Rust.
    #[default]
    Fastembed,
    /// A static model (Model2Vec) in this process: hundreds of times faster, for very large catalogs.
    Model2vec,
    /// An Ollama server.
    Ollama,
    /// OpenAI, or a server that speaks its protocol.
    OpenAi,
    /// Google's Gemini.
    Gemini,
    /// No vectors: search has names and full text.
    None,
}

impl EmbedProvider {
    /// The default model.
    pub fn default_model(self) -> &'static str {
        match self {
            EmbedProvider::Fastembed | EmbedProvider::None => DEFAULT_EMBED_MODEL,
            EmbedProvider::Model2vec => model2vec::DEFAULT_MODEL,
            EmbedProvider::Ollama => ollama::DEFAULT_MODEL,
            EmbedProvider::OpenAi => openai::DEFAULT_MODEL,
            EmbedProvider::Gemini => gemini::DEFAULT_MODEL,
        }
    }

    /// The conventional environment variable of its key, where it needs one.
    pub fn default_key_variable(self) -> Option<&'static str> {
        match self {
            EmbedProvider::OpenAi => Some(openai::KEY_VARIABLE),
            EmbedProvider::Gemini => Some(gemini::KEY_VARIABLE),
            EmbedProvider::Fastembed | EmbedProvider::Model2vec | EmbedProvider::Ollama | EmbedProvider::None => None,
        }
    }
}

impl std::str::FromStr for EmbedProvider {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, Self::Err> {
        match text {
            "fastembed" => Ok(EmbedProvider::Fastembed),
            "model2vec" => Ok(EmbedProvider::Model2vec),
            "ollama" => Ok(EmbedProvider::Ollama),
            "openai" => Ok(EmbedProvider::OpenAi),
            "gemini" => Ok(EmbedProvider::Gemini),
            "none" => Ok(EmbedProvider::None),
            other => Err(format!(
                "unknown embedding provider `{other}`; providers are fastembed, model2vec, ollama, openai, gemini and none"
            )),
        }
    }
}

/// Which embedder to use and where its files are. Plain data, filled from the server's settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmbedSettings {
    /// The provider.
    pub provider: EmbedProvider,
    /// Model name, as the provider spells it.
    pub model: String,
    /// Address of the embedding server, up to the API version; without it the provider's own.
    pub base_url: Option<String>,
    /// Its key.
    pub api_key: Option<ApiKey>,
    /// The environment variable of the key, for error messages.
    pub api_key_variable: Option<String>,
    /// Folder with `model.onnx`, `tokenizer.json`, `config.json`, `special_tokens_map.json` and
    /// `tokenizer_config.json` for ONNX Runtime, or with `model.safetensors`, `tokenizer.json` and `config.json` (for a
    /// static model, `model.safetensors` and `tokenizer.json`); without it the model is downloaded from its hub on
    /// first use.
    pub model_path: Option<PathBuf>,
    /// The ONNX Runtime library, 1.24 or newer; without it the system's library path is searched, and where there is
    /// none the model is computed in Rust.
    pub ort_dylib_path: Option<PathBuf>,
    /// Where downloaded models are kept; without it a folder in the user's cache.
    pub cache_dir: Option<PathBuf>,
    /// Threads of one embedding call, and one session for each group of as many cores; without it one thread.
    pub threads: Option<usize>,
}

/// The default model.
pub const DEFAULT_EMBED_MODEL: &str = "all-MiniLM-L6-v2";

impl Default for EmbedSettings {
    fn default() -> Self {
        Self {
            provider: EmbedProvider::default(),
            model: DEFAULT_EMBED_MODEL.to_string(),
            base_url: None,
            api_key: None,
            api_key_variable: None,
            model_path: None,
            ort_dylib_path: None,
            cache_dir: None,
            threads: None,
        }
    }
}

/// The embedder of the settings; `None` for [`EmbedProvider::None`]. A sentence model is not loaded yet: if it or a
/// library that the settings name cannot be loaded, the first `embed` returns an `embedder_error`, and search works
/// without vectors.
/// Errors here: `embedder_error` for an unknown model, a model folder that lacks a file, a static model that cannot be
/// downloaded or loaded, a server that does not answer with a vector.
pub fn from_settings(settings: &EmbedSettings) -> Result<Option<Arc<dyn Embedder>>> {
    match settings.provider {
        EmbedProvider::Fastembed => Ok(Some(Arc::new(fastembed::FastEmbedder::new(settings)?))),
        EmbedProvider::Model2vec => Ok(Some(Arc::new(model2vec::Model2VecEmbedder::new(settings)?))),
        EmbedProvider::Ollama => Ok(Some(Arc::new(HttpEmbedder::<ollama::Ollama>::new(settings)?))),
        EmbedProvider::OpenAi => Ok(Some(Arc::new(HttpEmbedder::<openai::OpenAi>::new(settings)?))),
        EmbedProvider::Gemini => Ok(Some(Arc::new(HttpEmbedder::<gemini::Gemini>::new(settings)?))),
        EmbedProvider::None => Ok(None),
    }
}

#[expect(clippy::disallowed_methods, reason = "small files at start-up; the model itself on the embedding thread")]
fn read_file(model: &str, path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path)
        .map_err(|error| embedder_error(model, format!("{}: {error}", path.display()), "check the model folder"))
}

fn embedder_error(model: &str, detail: impl std::fmt::Display, hint: &str) -> CatalogError {
    CatalogError::Embedder { model: model.to_string(), detail: detail.to_string(), hint: hint.to_string() }
}

/// Scales to unit length; the vector of a string without a known token stays zero, which is near nothing.
fn normalise(vector: &mut [f32]) {
    let length = vector.iter().map(|number| number * number).sum::<f32>().sqrt();
    if length > f32::EPSILON {
        vector.iter_mut().for_each(|number| *number /= length);
    }
}

fn default_cache_dir() -> PathBuf {
    let cache = std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache")))
        .unwrap_or_else(std::env::temp_dir);
    cache.join("querent").join("fastembed")
}
