//! Uploads of a source's files to a server: all in one request, which the server imports all or nothing.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use querent_engine::SourceReading;
use reqwest::{Body, Method};
use serde_json::Value;
use tokio::fs::File;
use tokio_util::io::ReaderStream;
use uuid::Uuid;

use super::{ImportOptions, ImportPlan, ImportReport, SourceFormat, is_url, name_parts};
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
    let files = files_of(&plan.source, options.format)?;
    let format = format_of(&files, options.format)?;
    let mut parameters = plan.reader_options(options);
    if let Some(compression) = files.first().and_then(|file| name_parts(&file.name).2) {
        parameters.insert("compression".to_owned(), compression.to_owned());
    }
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

/// Returns the one format of all files.
fn format_of(files: &[UploadedFile], given: Option<SourceFormat>) -> Result<SourceFormat, CliError> {
    if let Some(format) = given {
        return Ok(format);
    }
    let mut found: Option<(SourceFormat, &Path)> = None;
    for file in files {
        let ending = name_parts(&file.name).1;
        // Text of another ending is most often CSV; the server finds out how it is written.
        let ending_is = |text: &str| file.path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case(text));
        let is_text = ending_is("txt") || ending_is("dat");
        let format = SourceFormat::from_ending(ending).or(is_text.then_some(SourceFormat::Csv));
        let format = format.ok_or_else(|| unknown_format(&file.path))?;
        match found {
            Some((other, path)) if other != format => {
                return Err(CliError::Usage(format!(
                    "{} is {} and {} is {}; one table has files of one format: name it with --format",
                    path.display(),
                    other.as_str(),
                    file.path.display(),
                    format.as_str()
                )));
            }
            _ => found = Some((format, &file.path)),
        }
    }
    found.map(|(format, _)| format).ok_or_else(|| CliError::failed("no files to import"))
}

/// Returns the files of a source, sorted: itself, those of a folder at any depth, or what a glob matches.
fn files_of(source: &str, format: Option<SourceFormat>) -> Result<Vec<UploadedFile>, CliError> {
    if is_url(source) {
        return Err(CliError::Usage(format!(
            "{source} is a URL, which is imported without a server only; on a server run CREATE EXTERNAL TABLE with \
             `querent sql`"
        )));
    }
    let path = Path::new(source);
    if path.join("_versions").is_dir() {
        return Err(CliError::Usage(format!("{source} is a Lance dataset, which is imported without a server only")));
    }
    let file = |path: PathBuf, base: &Path| {
        let below = path.strip_prefix(base).unwrap_or(&path);
        let name = below.to_string_lossy().into_owned();
        let size =
            path.metadata().map_err(|error| CliError::failed(format!("cannot read {}: {error}", path.display())))?;
        Ok::<_, CliError>(UploadedFile { name, size: size.len(), path })
    };
    let parent = path.parent().unwrap_or(Path::new(""));
    let (pattern, base) = match path.is_dir() {
        true => (format!("{}/**/*", glob::Pattern::escape(source)), path.to_owned()),
        false if path.exists() => return Ok(vec![file(path.to_owned(), parent)?]),
        false => {
            let fixed = path.components().take_while(|part| !super::is_pattern(&part.as_os_str().to_string_lossy()));
            (source.to_owned(), fixed.collect())
        }
    };
    let matching = glob::glob(&pattern).map_err(|error| CliError::Usage(format!("{source}: {error}")))?;
    let mut files = Vec::new();
    for found in matching {
        let found = found.map_err(|error| CliError::failed(error.to_string()))?;
        let name = found.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let is_data = format.is_some() || SourceFormat::from_ending(name_parts(&name).1).is_some();
        if found.is_file() && is_data && !name.starts_with(['.', '_']) {
            files.push(file(found, &base)?);
        }
    }
    match files.is_empty() {
        true => Err(CliError::failed(format!("no files to import at {source}"))),
        false => Ok(files),
    }
}

fn unknown_format(path: &Path) -> CliError {
    CliError::Usage(format!("the name {} does not tell its format; say it with --format", path.display()))
}
