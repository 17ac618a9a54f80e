//! ONNX models through fastembed, in this process. The ONNX Runtime library and the model are loaded on first
//! use, on the calling worker thread; a library that is missing or too old is an error, never a panic.

use std::path::{Path, PathBuf};

use fastembed::{
    InitOptionsUserDefined, Pooling, QuantizationMode, TextEmbedding, TextInitOptions, TokenizerFiles,
    UserDefinedEmbeddingModel,
};
use parking_lot::{Condvar, Mutex};

use super::{EmbedSettings, Embedder, EmbeddingModel, default_cache_dir, embedder_error, read_file};
use crate::error::{CatalogError, Result};

/// MiniLM was trained on 128 tokens and is published for 256. More tokens cost time and gain nothing: Spider's tables
/// are found as well by the first 128.
const MAX_TOKENS: usize = 128;
/// Strings embedded at once. Larger batches are not faster on a CPU: they are padded to their longest string.
const BATCH_SIZE: usize = 8;

const MODEL_FILES: [&str; 5] =
    ["model.onnx", "tokenizer.json", "config.json", "special_tokens_map.json", "tokenizer_config.json"];

/// Most sessions: each holds the model's weights once more.
const MAX_SESSIONS: usize = 8;

/// An embedding model run by fastembed. One session for each core, or for each group of cores; calls take a free one.
pub(super) struct FastEmbedder {
    model: EmbeddingModel,
    source: ModelSource,
    ort_dylib_path: PathBuf,
    threads: usize,
    sessions: OnnxSessions,
}

/// Sessions, each loaded when it is first needed.
struct OnnxSessions {
    count: usize,
    /// Idle sessions; `None` where one is not loaded yet.
    free: Mutex<Vec<Option<TextEmbedding>>>,
    freed: Condvar,
}

impl OnnxSessions {
    fn new(count: usize) -> Self {
        Self { count, free: Mutex::new((0..count).map(|_| None).collect()), freed: Condvar::new() }
    }

    /// Takes a session, preferably a loaded one; waits until one is free.
    fn lease(&self) -> Lease<'_> {
        let mut free = self.free.lock();
        loop {
            let loaded = free.iter().position(Option::is_some);
            if let Some(index) = loaded.or(free.len().checked_sub(1)) {
                return Lease { session: free.swap_remove(index), of: self };
            }
            self.freed.wait(&mut free);
        }
    }
}

/// A session in use; it is free again when this is dropped, after a panic too.
struct Lease<'a> {
    session: Option<TextEmbedding>,
    of: &'a OnnxSessions,
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        self.of.free.lock().push(self.session.take());
        self.of.freed.notify_one();
    }
}

/// Where the model's files are.
enum ModelSource {
    Folder { path: PathBuf, pooling: Pooling },
    Hub { model: fastembed::EmbeddingModel, cache_dir: PathBuf },
}

impl FastEmbedder {
    pub(super) fn new(settings: &EmbedSettings) -> Result<Self> {
        let known = known_model(&settings.model);
        let (source, dimension) = match (&settings.model_path, known) {
            (Some(path), known) => {
                let dimension = check_folder(&settings.model, path)?;
                let pooling = known.as_ref().and_then(TextEmbedding::get_default_pooling_method);
                (ModelSource::Folder { path: path.clone(), pooling: pooling.unwrap_or(Pooling::Mean) }, dimension)
            }
            (None, Some(model)) => {
                let dimension = TextEmbedding::get_model_info(&model)
                    .map_err(|error| embedder_error(&settings.model, error, "set another embedding model"))?
                    .dim;
                let cache_dir = settings.cache_dir.clone().unwrap_or_else(default_cache_dir);
                (ModelSource::Hub { model, cache_dir }, dimension)
            }
            (None, None) => {
                return Err(embedder_error(
                    &settings.model,
                    "not a model that fastembed knows",
                    "use all-MiniLM-L6-v2, or name a folder with model.onnx and its tokenizer files",
                ));
            }
        };
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = settings.threads.unwrap_or(1).max(1);
        Ok(Self {
            model: EmbeddingModel { id: settings.model.clone(), dimension },
            source,
            ort_dylib_path: settings.ort_dylib_path.clone().unwrap_or_else(default_ort_dylib_path),
            threads,
            sessions: OnnxSessions::new((cores / threads).clamp(1, MAX_SESSIONS)),
        })
    }

    fn load(&self) -> Result<TextEmbedding> {
        // Without this check fastembed's first call would panic on a missing or old library.
        ort::init_from(&self.ort_dylib_path).map_err(|error| {
            self.error(
                error,
                "install ONNX Runtime 1.24 or newer and point ORT_DYLIB_PATH at its libonnxruntime, \
                 or set the embedding provider to none",
            )
        })?;
        match &self.source {
            ModelSource::Folder { path, pooling } => {
                let read = |file: &str| read_file(&self.model.id, &path.join(file));
                let tokenizer_files = TokenizerFiles {
                    tokenizer_file: read("tokenizer.json")?,
                    config_file: read("config.json")?,
                    special_tokens_map_file: read("special_tokens_map.json")?,
                    tokenizer_config_file: read("tokenizer_config.json")?,
                };
                let model = UserDefinedEmbeddingModel::new(read("model.onnx")?, tokenizer_files)
                    .with_pooling(pooling.clone())
                    .with_quantization(QuantizationMode::None);
                let options =
                    InitOptionsUserDefined::new().with_max_length(MAX_TOKENS).with_intra_threads(self.threads);
                TextEmbedding::try_new_from_user_defined(model, options)
                    .map_err(|error| self.error(error, "check the files in the model folder"))
            }
            ModelSource::Hub { model, cache_dir } => {
                let options = TextInitOptions::new(model.clone())
                    .with_max_length(MAX_TOKENS)
                    .with_intra_threads(self.threads)
                    .with_cache_dir(cache_dir.clone())
                    .with_show_download_progress(false);
                TextEmbedding::try_new(options).map_err(|error| {
                    self.error(error, "check the network, or set the embedding model path to a folder with its files")
                })
            }
        }
    }

    fn error(&self, detail: impl std::fmt::Display, hint: &str) -> CatalogError {
        embedder_error(&self.model.id, detail, hint)
    }
}

impl Embedder for FastEmbedder {
    fn model(&self) -> &EmbeddingModel {
        &self.model
    }

    fn workers(&self) -> usize {
        self.sessions.count
    }

    fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>> {
        let mut lease = self.sessions.lease();
        let session = match &mut lease.session {
            Some(loaded) => loaded,
            empty => empty.insert(self.load()?),
        };
        let vectors = session
            .embed(texts, Some(BATCH_SIZE))
            .map_err(|error| self.error(error, "restart with another embedding model or provider none"))?;
        drop(lease);
        if let Some(odd) = vectors.iter().find(|vector| vector.len() != self.model.dimension) {
            let detail = format!("made a vector of {} numbers where {} were expected", odd.len(), self.model.dimension);
            return Err(self.error(detail, "check that config.json belongs to model.onnx"));
        }
        Ok(vectors)
    }
}

/// The fastembed model of that name, ignoring dashes, dots and case (`all-MiniLM-L6-v2` is `AllMiniLML6V2`).
fn known_model(name: &str) -> Option<fastembed::EmbeddingModel> {
    let squeezed: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    squeezed.parse().ok()
}

/// Checks that the folder holds a model, and returns its dimension.
fn check_folder(model: &str, folder: &Path) -> Result<usize> {
    if let Some(missing) = MODEL_FILES.iter().find(|file| !folder.join(file).is_file()) {
        let detail = format!("{} has no {missing}", folder.display());
        return Err(embedder_error(model, detail, &format!("the folder must hold {}", MODEL_FILES.join(", "))));
    }
    let path = folder.join("config.json");
    let config: serde_json::Value = serde_json::from_slice(&read_file(model, &path)?)
        .map_err(|error| embedder_error(model, format!("{}: {error}", path.display()), "restore the file"))?;
    match config["hidden_size"].as_u64() {
        Some(dimension) if dimension > 0 => Ok(dimension as usize),
        _ => Err(embedder_error(model, format!("{} has no hidden_size", path.display()), "restore the file")),
    }
}

fn default_ort_dylib_path() -> PathBuf {
    format!("{}onnxruntime{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX).into()
}
