//! Sentence models in this process. Where the ONNX Runtime library is there they run in it, through fastembed; where it
//! is not they are computed in Rust (`bert.rs`), so that nothing has to be installed beside the binary. Library and model
//! are loaded on first use, on the calling worker thread; a library that is missing or too old is never a panic, and an
//! error where the settings name it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use fastembed::{
    InitOptionsUserDefined, Pooling, QuantizationMode, TextEmbedding, TextInitOptions, TokenizerFiles,
    UserDefinedEmbeddingModel,
};
use parking_lot::{Condvar, Mutex};

use super::bert::{self, BertModel};
use super::published::{PublishedModel, published_model};
use super::{EmbedSettings, Embedder, EmbeddingModel, default_cache_dir, embedder_error, read_file};
use crate::error::{CatalogError, Result};

/// MiniLM was trained on 128 tokens and is published for 256. More tokens cost time and gain nothing: Spider's tables
/// are found as well by the first 128.
const MAX_TOKENS: usize = 128;
/// Strings embedded at once. Larger batches are not faster on a CPU: they are padded to their longest string.
const BATCH_SIZE: usize = 8;

/// The files of a model for ONNX Runtime; those of one in Rust are [`bert::FILES`].
const ONNX_FILES: [&str; 5] =
    ["model.onnx", "tokenizer.json", "config.json", "special_tokens_map.json", "tokenizer_config.json"];

/// Most sessions: each holds the model's weights once more.
const MAX_SESSIONS: usize = 8;

/// A sentence model. One session for each core, or for each group of cores; calls take a free one.
pub(super) struct FastEmbedder {
    model: EmbeddingModel,
    source: ModelSource,
    /// The library that the settings name: without it there is no embedding.
    ort_dylib_path: Option<PathBuf>,
    threads: usize,
    sessions: ModelSessions,
    /// The model in Rust, once a session has loaded it.
    in_rust: Mutex<Option<Arc<BertModel>>>,
}

/// A loaded model.
enum ModelSession {
    Onnx(Box<TextEmbedding>),
    Rust(Arc<BertModel>),
}

/// Sessions, each loaded when it is first needed.
struct ModelSessions {
    count: usize,
    /// Idle sessions; `None` where one is not loaded yet.
    free: Mutex<Vec<Option<ModelSession>>>,
    freed: Condvar,
}

impl ModelSessions {
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
    session: Option<ModelSession>,
    of: &'a ModelSessions,
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
                    "use all-MiniLM-L6-v2, or name a folder with the model and its tokenizer",
                ));
            }
        };
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = settings.threads.unwrap_or(1).max(1);
        Ok(Self {
            model: EmbeddingModel { id: settings.model.clone(), dimension },
            source,
            ort_dylib_path: settings.ort_dylib_path.clone(),
            threads,
            sessions: ModelSessions::new((cores / threads).clamp(1, MAX_SESSIONS)),
            in_rust: Mutex::new(None),
        })
    }

    fn load(&self) -> Result<ModelSession> {
        let library = self.ort_dylib_path.clone().unwrap_or_else(default_ort_dylib_path);
        let has_onnx = !matches!(&self.source, ModelSource::Folder { path, .. } if !holds(path, &ONNX_FILES));
        if !has_onnx {
            return self.load_in_rust(None);
        }
        // Without this check fastembed's first call would panic on a missing or old library.
        match ort::init_from(&library) {
            Ok(_) => self.load_onnx(),
            Err(error) if self.ort_dylib_path.is_none() => self.load_in_rust(Some(&error.to_string())),
            Err(error) => Err(self.error(
                error,
                "point ORT_DYLIB_PATH at the libonnxruntime of ONNX Runtime 1.24 or newer, or unset it: \
                 models such as all-MiniLM-L6-v2 need no library",
            )),
        }
    }

    fn load_onnx(&self) -> Result<ModelSession> {
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
                let session = TextEmbedding::try_new_from_user_defined(model, options)
                    .map_err(|error| self.error(error, "check the files in the model folder"))?;
                Ok(ModelSession::Onnx(Box::new(session)))
            }
            ModelSource::Hub { model, cache_dir } => {
                let options = TextInitOptions::new(model.clone())
                    .with_max_length(MAX_TOKENS)
                    .with_intra_threads(self.threads)
                    .with_cache_dir(cache_dir.clone())
                    .with_show_download_progress(false);
                let session = TextEmbedding::try_new(options).map_err(|error| {
                    self.error(error, "check the network, or set embed.model_path to a folder with the model's files")
                })?;
                Ok(ModelSession::Onnx(Box::new(session)))
            }
        }
    }

    /// The model in Rust, loaded once for all sessions. `no_library` says why ONNX Runtime cannot be used.
    fn load_in_rust(&self, no_library: Option<&str>) -> Result<ModelSession> {
        let mut loaded = self.in_rust.lock();
        if let Some(model) = loaded.as_ref() {
            return Ok(ModelSession::Rust(Arc::clone(model)));
        }
        let without = |what: String| {
            let detail = format!("there is no ONNX Runtime here ({}) and {what}", no_library.unwrap_or("not needed"));
            let hint = "install ONNX Runtime 1.24 or newer and point ORT_DYLIB_PATH at its libonnxruntime, or use \
                        all-MiniLM-L6-v2, which needs no library";
            self.error(detail, hint)
        };
        let paths = match &self.source {
            ModelSource::Folder { path, .. } if holds(path, &bert::FILES) => bert::FILES.map(|file| path.join(file)),
            ModelSource::Folder { path, .. } => {
                return Err(without(format!("{} has no {}", path.display(), bert::FILES.join(", "))));
            }
            ModelSource::Hub { cache_dir, .. } => match published_model(&self.model.id) {
                Some(published) => PublishedModel::download(published, cache_dir)?,
                None => return Err(without("this model needs it".into())),
            },
        };
        let mut files = Vec::with_capacity(paths.len());
        for path in &paths {
            files.push(read_file(&self.model.id, path)?);
        }
        let [config, tokenizer, tensors] = &files[..] else {
            return Err(without("files are missing".into()));
        };
        let model = Arc::new(BertModel::from_bytes(&self.model.id, [config, tokenizer, tensors], MAX_TOKENS)?);
        *loaded = Some(Arc::clone(&model));
        Ok(ModelSession::Rust(model))
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
        let vectors = match session {
            ModelSession::Onnx(session) => session
                .embed(texts, Some(BATCH_SIZE))
                .map_err(|error| self.error(error, "restart with another embedding model or provider none"))?,
            ModelSession::Rust(model) => model.embed(texts)?,
        };
        drop(lease);
        if let Some(odd) = vectors.iter().find(|vector| vector.len() != self.model.dimension) {
            let detail = format!("made a vector of {} numbers where {} were expected", odd.len(), self.model.dimension);
            return Err(self.error(detail, "check that config.json belongs to the model"));
        }
        Ok(vectors)
    }
}

/// The fastembed model of that name, ignoring dashes, dots and case (`all-MiniLM-L6-v2` is `AllMiniLML6V2`).
fn known_model(name: &str) -> Option<fastembed::EmbeddingModel> {
    let squeezed: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    squeezed.parse().ok()
}

fn holds(folder: &Path, files: &[&str]) -> bool {
    files.iter().all(|file| folder.join(file).is_file())
}

/// Checks that the folder holds a model, and returns its dimension.
fn check_folder(model: &str, folder: &Path) -> Result<usize> {
    if !holds(folder, &bert::FILES)
        && let Some(missing) = ONNX_FILES.iter().find(|file| !folder.join(file).is_file())
    {
        let detail = format!("{} has no {missing}", folder.display());
        let hint = format!("the folder must hold {}, or {}", ONNX_FILES.join(", "), bert::FILES.join(", "));
        return Err(embedder_error(model, detail, &hint));
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
