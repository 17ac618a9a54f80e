//! Uploads of a source's files to a server: all in one request, which the server imports all or nothing.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use querent_catalog::FileFormat;
use querent_engine::{SourceReading, source_files};
use reqwest::{Body, Method};
use serde_json::Value;
use tokio::fs::File;
use tokio_util::io::ReaderStream;
use uuid::Uuid;

use super::{ImportOptions, ImportPlan, ImportReport, SourceFormat, absolute_source, is_pattern, is_url};
use crate::cli::client::Client;
use crate::cli::error::CliError;
use crate::cli::progress::Bars;

/// The bytes that are read of a file at a time.
const BLOCK_BYTES: usize = 256 << 10;

/// Uploads a source's files, which become rows of one table or none do.
pub(super) async fn upload(
    client: &Client,
    plan: ImportPlan,
    options: &ImportOptions,
    bars: &Arc<Bars>,
) -> Result<ImportReport, CliError> {
    let (format, files) = files_of(&plan.source, options.format).await?;
    // Which files are compressed, the server reads from their names.
    let mut parameters = plan.reader_options(options);
    let fixed = [
        ("database", plan.table.database.as_str()),
        ("table", &plan.table.table),
        ("format", format.as_str()),
        ("if_exists", options.if_there.as_str()),
    ];
    parameters.extend(fixed.map(|(name, value)| (name.to_owned(), value.to_owned())));

    let size = files.iter().map(|file| file.size).sum();
    let bar = bars.bytes(&plan.source, size);
    let count = files.len();
    let boundary = format!("querent-{}", Uuid::now_v7().simple());
    let sent = bar.clone();
    let parts = form(files, &boundary).inspect_ok(move |chunk| sent.inc(chunk.len() as u64));
    let request = client
        .request(Method::POST, "/v1/import")?
        .query(&parameters)
        .header("content-type", format!("multipart/form-data; boundary={boundary}"))
        .body(Body::wrap_stream(parts));
    let response = client.send(request).await;
    bar.finish_and_clear();
    let body: Value = response?.json().await.map_err(|error| client.http_error(error))?;
    let reading = body.get("reading").and_then(|reading| serde_json::from_value::<SourceReading>(reading.clone()).ok());
    let rejects = body
        .get("rejects")
        .and_then(|rejects| Some((rejects["lines"].as_u64()?, rejects["table"].as_str()?.to_owned())));
    Ok(ImportReport { table: plan.table, rows: body["rows"].as_u64(), files: count, reading, rejects })
}

/// A file to upload.
struct UploadedFile {
    path: PathBuf,
    /// Its path below the source, or its name.
    name: String,
    size: u64,
}

/// Returns the files as the body of a form.
fn form(
    files: Vec<UploadedFile>,
    boundary: &str,
) -> impl futures::Stream<Item = std::io::Result<Bytes>> + Send + use<> {
    let end = format!("--{boundary}--\r\n");
    let boundary = boundary.to_owned();
    let parts = stream::iter(files).flat_map(move |file| {
        let name: String =
            file.name.chars().map(|char| if matches!(char, '"' | '\r' | '\n') { '_' } else { char }).collect();
        let head =
            format!("--{boundary}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{name}\"\r\n\r\n");
        let path = file.path;
        let bytes = stream::once(async move {
            let named =
                |error: std::io::Error| std::io::Error::other(format!("cannot read {}: {error}", path.display()));
            let file = File::open(&path).await.map_err(named)?;
            Ok::<_, std::io::Error>(ReaderStream::with_capacity(file, BLOCK_BYTES))
        })
        .try_flatten();
        let text = |text: String| stream::once(async move { Ok(Bytes::from(text)) });
        text(head).chain(bytes).chain(text("\r\n".to_owned()))
    });
    parts.chain(stream::once(async move { Ok(Bytes::from(end)) }))
}

/// Returns the format and the files of a source, in order: those that an import without a server reads.
async fn files_of(source: &str, format: Option<SourceFormat>) -> Result<(SourceFormat, Vec<UploadedFile>), CliError> {
    if is_url(source) {
        return Err(CliError::Usage(format!(
            "{source} is a URL, which is imported without a server only; on a server run CREATE EXTERNAL TABLE with \
             `querent sql`"
        )));
    }
    let absolute = absolute_source(source)?;
    let (format, paths) = source_files(&absolute, format.map(FileFormat::from)).await?;
    let format = SourceFormat::from(format);
    if format == SourceFormat::Lance {
        return Err(CliError::Usage(format!("{source} is a Lance dataset, which is imported without a server only")));
    }
    let base = base_of(Path::new(&absolute));
    let file = |path: PathBuf| {
        let name = path.strip_prefix(&base).unwrap_or(&path).to_string_lossy().into_owned();
        let size =
            path.metadata().map_err(|error| CliError::failed(format!("cannot read {}: {error}", path.display())))?;
        Ok::<_, CliError>(UploadedFile { name, size: size.len(), path })
    };
    let files = paths.into_iter().map(file).collect::<Result<Vec<_>, CliError>>()?;
    Ok((format, files))
}

/// Returns the folder below which the files of a source are named: partition folders are part of their names.
fn base_of(source: &Path) -> PathBuf {
    if source.is_dir() {
        return source.to_owned();
    }
    if source.exists() {
        return source.parent().unwrap_or(Path::new("")).to_owned();
    }
    source.components().take_while(|part| !is_pattern(&part.as_os_str().to_string_lossy())).collect()
}
