//! Writes the files of managed tables where the lake keeps them: in their folder, or in an object store, into which each goes
//! as soon as it is written to the local disk.
//!
//! A file in an object store is written with one request, so it is there whole or not at all, and only where nothing is.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use bytes::Bytes;
use datafusion::execution::SendableRecordBatchStream;
use querent_catalog::{CatalogError, NewDataFile, announce_uncommitted, forget_uncommitted};
use tokio::sync::mpsc;

use super::write::{WriteTarget, write_stream};
use crate::error::{EngineError, Result, StoreError};
use crate::stores::{RemoteLake, TableFiles};

/// Past this size a file is closed that goes into an object store: it is held in memory while it is sent.
const UPLOADED_FILE_BYTES: usize = 64 << 20;

/// Writes a stream as Parquet files named `ducklake-<uuidv7>.parquet` in `location`, each durable and with statistics.
/// `write_schema` has field ids; input batches are cast to it by position. On an error, and when the future is dropped, every
/// file written is removed. A stream without rows makes no file.
pub(crate) async fn write_files(
    files: &TableFiles,
    location: &Path,
    write_schema: SchemaRef,
    input: SendableRecordBatchStream,
) -> Result<Vec<NewDataFile>> {
    match files {
        // The lake is at a URL that files cannot be written to.
        TableFiles::Local(_) if !location.is_absolute() => Err(EngineError::LocationNotAllowed {
            location: location.display().to_string(),
            reason: "it is no folder, and no URL of a store that is written to (s3, gs, az, abfs[s])".into(),
        }),
        TableFiles::Local(_) => write_stream(WriteTarget::kept(location), write_schema, input).await,
        TableFiles::Remote(lake) => write_through(lake, location, write_schema, input).await,
    }
}

async fn write_through(
    lake: &Arc<RemoteLake>,
    location: &Path,
    write_schema: SchemaRef,
    input: SendableRecordBatchStream,
) -> Result<Vec<NewDataFile>> {
    let spool = lake.new_spool().await?;
    let (closed, finished) = mpsc::channel(1);
    let writing = write_stream(WriteTarget::taken(spool.path(), UPLOADED_FILE_BYTES, closed), write_schema, input);
    let (written, uploaded) = tokio::join!(writing, upload(lake, location, finished));
    // The upload's error comes first: the writer only notices that nobody takes its files any more.
    let uploaded = uploaded?;
    written?;
    Ok(uploaded.keep())
}

async fn upload(
    lake: &Arc<RemoteLake>,
    location: &Path,
    mut finished: mpsc::Receiver<NewDataFile>,
) -> Result<UploadedFiles> {
    let mut uploaded = UploadedFiles { lake: Arc::clone(lake), files: Vec::new() };
    while let Some(mut file) = finished.recv().await {
        let io_error = |path: &Path, source| EngineError::Catalog(CatalogError::of_file(path, source));
        let content = tokio::fs::read(&file.path).await.map_err(|source| io_error(&file.path, source))?;
        tokio::fs::remove_file(&file.path).await.map_err(|source| io_error(&file.path, source))?;
        let name = file.path.file_name().unwrap_or_default();
        file.path = location.join(name);
        let target = file.path.clone();
        announce_uncommitted(&target);
        // Counted before it is there: a request that is cut off may have arrived.
        uploaded.files.push(file);
        if let Err(error) = lake.put_new(&target, Bytes::from(content)).await {
            if !matches!(error, EngineError::Store(StoreError::Unavailable { .. })) {
                // It was refused. What may be there under its name is somebody else's.
                uploaded.files.pop();
                forget_uncommitted(&target);
            }
            return Err(error);
        }
    }
    Ok(uploaded)
}

/// The files of one write in an object store; removed again unless kept.
struct UploadedFiles {
    lake: Arc<RemoteLake>,
    files: Vec<NewDataFile>,
}

impl UploadedFiles {
    fn keep(mut self) -> Vec<NewDataFile> {
        std::mem::take(&mut self.files)
    }
}

impl Drop for UploadedFiles {
    fn drop(&mut self) {
        let left: Vec<PathBuf> = self.files.drain(..).map(|file| file.path).collect();
        left.iter().for_each(|file| forget_uncommitted(file));
        if !left.is_empty() {
            self.lake.remove_later(left);
        }
    }
}
