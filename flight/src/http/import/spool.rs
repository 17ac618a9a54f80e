//! The files of an import's request, on disk for as long as the request lasts.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, FromRequest, Multipart, Request};
use futures::{Stream, StreamExt};
use querent_catalog::{CatalogError, FileFormat, is_full};
use querent_engine::{EngineError, source_files};
use tokio::io::AsyncWriteExt;
use uuid::Uuid;

use super::{FORM, UploadFormat, compression_of_name, has_ending, is_of_type, no_format, too_long};
use crate::config::HttpSettings;
use crate::error::{ApiError, ErrorCode};
use crate::http::content_encoding::DecodedBody;
use crate::http::request::{too_large, too_slow};

/// The most files of one form.
const MAX_FILES: usize = 10_000;
/// The longest name of a folder, as file systems have it.
const MAX_FOLDER_BYTES: usize = 255;
/// What errors call a body that has no name.
const BODY: &str = "request body";

/// Removes the spool files that a crash left. Called once, before the server listens.
pub(crate) async fn sweep_spool(data: &Path) {
    match tokio::fs::remove_dir_all(spool_folder(data)).await {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            tracing::warn!(%error, "cannot remove the import spool folder");
        }
        _ => {}
    }
}

fn spool_folder(data: &Path) -> PathBuf {
    data.join("spool")
}

/// A folder of spool files, removed when it is dropped.
pub(super) struct Spool {
    folder: PathBuf,
    /// Of all files. `None` until the name of the first one says it.
    format: Option<UploadFormat>,
    /// Whether that is where the format comes from.
    is_format_of_names: bool,
    /// Each file, and what its client calls it.
    files: Vec<(PathBuf, String)>,
    written: u64,
    /// Whether a byte of any file ends a line, or is none of a text.
    has_control_bytes: bool,
}

impl Spool {
    pub(super) async fn new(data: &Path, format: Option<UploadFormat>) -> Result<Self, ApiError> {
        let all = std::path::absolute(spool_folder(data)).map_err(spool_error)?;
        let folder = all.join(Uuid::now_v7().to_string());
        tokio::fs::create_dir_all(&folder).await.map_err(spool_error)?;
        Ok(Self { folder, format, is_format_of_names: false, files: Vec::new(), written: 0, has_control_bytes: false })
    }

    /// Writes the body, or the files of a form, at most `http.max_import_bytes` once they are decompressed.
    pub(super) async fn fill(
        &mut self,
        request: Request,
        name: Option<&str>,
        settings: &HttpSettings,
    ) -> Result<(), ApiError> {
        let was_encoded = request.extensions().get::<DecodedBody>().is_some();
        if is_of_type(&request, FORM) {
            return self.fill_from_form(request, settings).await;
        }
        let name = name.unwrap_or(BODY);
        // What was decoded on its way is not what its name says any more.
        let path = self.folder.join(self.file_name("body", if was_encoded { BODY } else { name }));
        self.files.push((path.clone(), name.to_owned()));
        let chunks = request.into_body().into_data_stream();
        self.write(&path, chunks, settings).await?;
        match self.written {
            0 => Err(bad_body("the request's body is empty; send the file's bytes")),
            _ => Ok(()),
        }
    }

    async fn fill_from_form(&mut self, mut request: Request, settings: &HttpSettings) -> Result<(), ApiError> {
        // What is written is counted here; axum's own limit would be 2 MB.
        DefaultBodyLimit::disable().apply(&mut request);
        let broken = |error: &dyn std::fmt::Display| bad_body(format!("the form cannot be read: {error}"));
        let form = Multipart::from_request(request, &()).await;
        let mut form = form.map_err(|rejection| broken(&rejection.body_text()))?;
        while let Some(field) = form.next_field().await.map_err(|error| broken(&error))? {
            let Some(name) = field.file_name().map(str::to_owned) else {
                return Err(bad_body("a field of the form is no file; options are parameters of the URL"));
            };
            if self.files.len() == MAX_FILES {
                return Err(bad_body(format!("the form has more than {MAX_FILES} files")));
            }
            self.take_format_of(&name)?;
            let path = self.path_of(&name)?;
            if let Some(folder) = path.parent() {
                tokio::fs::create_dir_all(folder).await.map_err(spool_error)?;
            }
            self.files.push((path.clone(), name));
            self.write(&path, field, settings).await?;
        }
        // One file of JSON may have no line.
        let may_be_empty = self.format == Some(UploadFormat::Ndjson) && self.files.len() == 1;
        match self.written {
            0 if !may_be_empty => Err(bad_body("the form has no file with a byte in it")),
            _ => Ok(()),
        }
    }

    /// Has the format that the name of a form's first file says, where the request says none.
    fn take_format_of(&mut self, name: &str) -> Result<(), ApiError> {
        if self.format.is_none() {
            let said = UploadFormat::of_name(name);
            // Of one file alone the first bytes say it.
            if !self.files.is_empty() || (said.is_none() && !has_ending(name)) {
                return Err(no_format());
            }
            self.format = said;
            self.is_format_of_names = true;
        }
        match self.is_format_of_names && UploadFormat::of_name(name) != self.format {
            true => Err(bad_body(format!(
                "`{name}` is not of the format of the files before it; one table has files of one format, which format= \
                 can name"
            ))),
            false => Ok(()),
        }
    }

    /// Returns what the file on disk is called: by its endings the engine knows how it is read, but for a format that its first
    /// bytes are to say.
    fn file_name(&self, stem: &str, name: &str) -> String {
        match (self.format, compression_of_name(name).1) {
            (Some(format), _) => format!("{stem}.{}", format.ending_of(name)),
            (None, Some(compressed)) => format!("{stem}.{compressed}"),
            (None, None) => stem.to_owned(),
        }
    }

    /// Returns where a file of this name is written: folders of partitions (`key=value`) are kept, the rest is a number,
    /// so that files keep their order and names cannot lead elsewhere.
    fn path_of(&self, name: &str) -> Result<PathBuf, ApiError> {
        let mut path = self.folder.clone();
        let folders = Path::new(name).parent().unwrap_or(Path::new(""));
        for part in folders.components() {
            match part {
                Component::Normal(part) if part.len() > MAX_FOLDER_BYTES => {
                    let message = format!("a folder in the name of a file has more than {MAX_FOLDER_BYTES} bytes");
                    return Err(bad_body(message));
                }
                Component::Normal(part) if part.to_string_lossy().contains('=') => path.push(part),
                Component::Normal(_) | Component::CurDir => {}
                Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                    return Err(bad_body(format!("the name `{name}` leads out of its folder")));
                }
            }
        }
        path.push(self.file_name(&format!("{:05}", self.files.len()), name));
        Ok(path)
    }

    async fn write<E: std::fmt::Display>(
        &mut self,
        path: &Path,
        mut chunks: impl Stream<Item = Result<Bytes, E>> + Unpin,
        settings: &HttpSettings,
    ) -> Result<(), ApiError> {
        let (limit, within) = (settings.max_import_bytes.0, settings.body_timeout.0);
        let mut file = tokio::fs::File::create(path).await.map_err(spool_error)?;
        while let Some(chunk) = tokio::time::timeout(within, chunks.next()).await.map_err(|_| too_slow(within))? {
            let chunk = chunk.map_err(|error| bad_body(format!("the request's body broke off: {error}")))?;
            self.written += chunk.len() as u64;
            self.has_control_bytes |= chunk.iter().any(|byte| *byte < b' ' && *byte != b'\t');
            if self.written > limit {
                return Err(too_large(limit));
            }
            file.write_all(&chunk).await.map_err(spool_error)?;
        }
        file.flush().await.map_err(spool_error)
    }

    /// Returns the format of the files, once they are there. Errors: nothing says it, `bad_data`.
    pub(super) async fn found_format(&self) -> Result<FileFormat, ApiError> {
        if let Some(format) = self.format {
            return Ok(format.into());
        }
        let source = self.source();
        if Path::new(&source) == self.folder {
            return Err(no_format());
        }
        let found = source_files(&source, None).await;
        found.map(|(format, _)| format).map_err(|error| self.as_client_names(error))
    }

    /// Returns whether what was sent is text of a single line that does not end.
    pub(super) fn is_endless_line(&self) -> bool {
        !self.has_control_bytes
    }

    /// Returns what the client calls each file, by the spool file's path.
    pub(super) fn names(&self) -> BTreeMap<String, String> {
        self.files.iter().map(|(path, name)| (path.display().to_string(), name.clone())).collect()
    }

    /// Returns what is imported: the one file, or the folder of all.
    pub(super) fn source(&self) -> String {
        match self.files.as_slice() {
            [(path, _)] if path.parent() == Some(&self.folder) => path.display().to_string(),
            _ => self.folder.display().to_string(),
        }
    }

    /// Says the names that the client knows instead of the spool files' paths.
    pub(super) fn as_client_names(&self, error: EngineError) -> ApiError {
        let named = |text: String| {
            let text =
                self.files.iter().fold(text, |text, (path, name)| text.replace(&path.display().to_string(), name));
            text.replace(&self.folder.display().to_string(), BODY)
        };
        match error {
            EngineError::BadData { location, detail } => {
                EngineError::BadData { location: named(location), detail: named(detail) }.into()
            }
            EngineError::NoFiles { location, format } => {
                EngineError::NoFiles { location: named(location), format }.into()
            }
            EngineError::Unsupported { what, hint } => EngineError::Unsupported { what: named(what), hint }.into(),
            EngineError::WallClockExceeded { limit } => too_long(limit),
            error => error.into(),
        }
    }
}

impl Drop for Spool {
    #[expect(clippy::disallowed_methods, reason = "a drop cannot await, and removing a few files is quick")]
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn bad_body(message: impl Into<String>) -> ApiError {
    ApiError::new(ErrorCode::BadRequestBody, message.into())
}

fn spool_error(error: std::io::Error) -> ApiError {
    if is_full(&error) {
        return CatalogError::StorageFull { detail: format!("import spool: {error}") }.into();
    }
    ApiError::internal(format_args!("import spool: {error}"))
}
