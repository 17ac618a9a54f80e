//! `POST /v1/import`: imports the file in the body into a table, all or nothing.
//!
//! The body is written to a spool file first, so that nothing of a request that breaks off becomes visible. The spool
//! file is removed with the request, and those that a crash left are removed at the next start.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;
use futures::StreamExt;
use http::StatusCode;
use querent_catalog::{DEFAULT_DATABASE, FileFormat, IfExists, NoProgress, TableName};
use querent_engine::{EngineError, ImportRequest};
use serde::Deserialize;
use serde_json::json;
use tokio::io::AsyncWriteExt;
use uuid::Uuid;

use crate::config::HttpSettings;
use crate::error::{ApiError, ErrorCode};
use crate::http::request::{ApiCall, Params, too_large, too_slow};
use crate::http::response::json_response;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ImportParams {
    table: String,
    database: Option<String>,
    format: UploadFormat,
    #[serde(default)]
    if_exists: UploadIfExists,
    has_header: Option<String>,
    delimiter: Option<String>,
    quote: Option<String>,
    escape: Option<String>,
    null_value: Option<String>,
    compression: Option<String>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum UploadFormat {
    Csv,
    #[serde(alias = "json", alias = "jsonl")]
    Ndjson,
    Parquet,
    #[serde(alias = "ipc", alias = "feather")]
    Arrow,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum UploadIfExists {
    #[default]
    Error,
    Append,
    Replace,
}

pub(super) async fn import(
    ApiCall { state, principal }: ApiCall,
    Params(params): Params<ImportParams>,
    body: Body,
) -> Result<Response, ApiError> {
    let table = TableName::new(params.database.as_deref().unwrap_or(DEFAULT_DATABASE), &params.table);
    let spool = Spool::new(&state.settings.data, params.format).await?;
    spool.fill(body, &state.settings.http).await?;
    let request = ImportRequest {
        source: spool.path.display().to_string(),
        format: Some(params.format.into()),
        options: params.options(),
        table: table.clone(),
        external: false,
        if_exists: match params.if_exists {
            UploadIfExists::Error => Some(IfExists::Error),
            UploadIfExists::Replace => Some(IfExists::Replace),
            UploadIfExists::Append => None,
        },
    };
    let outcome = state
        .engine
        .import(&principal, request, Arc::new(NoProgress))
        .await
        .map_err(|error| without_spool_path(error, &spool.path))?;
    tracing::info!(%table, rows = outcome.rows, "imported");
    let body = json!({
        "database": table.database,
        "table": table.table,
        "rows": outcome.rows,
        "created": outcome.created,
    });
    Ok(json_response(StatusCode::OK, &body))
}

/// Removes the spool files that a crash left. Called once, before the server listens.
pub(crate) async fn sweep_spool(data: &Path) {
    match tokio::fs::remove_dir_all(spool_folder(data)).await {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            tracing::warn!(%error, "cannot remove the import spool folder");
        }
        _ => {}
    }
}

impl ImportParams {
    fn options(&self) -> BTreeMap<String, String> {
        let given = [
            ("has_header", &self.has_header),
            ("delimiter", &self.delimiter),
            ("quote", &self.quote),
            ("escape", &self.escape),
            ("null_value", &self.null_value),
            ("compression", &self.compression),
        ];
        given.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value.clone()?))).collect()
    }
}

impl From<UploadFormat> for FileFormat {
    fn from(format: UploadFormat) -> Self {
        match format {
            UploadFormat::Csv => FileFormat::Csv,
            UploadFormat::Ndjson => FileFormat::Ndjson,
            UploadFormat::Parquet => FileFormat::Parquet,
            UploadFormat::Arrow => FileFormat::Arrow,
        }
    }
}

fn spool_folder(data: &Path) -> PathBuf {
    data.join("spool")
}

/// A spool file, removed when it is dropped.
struct Spool {
    path: PathBuf,
}

impl Spool {
    async fn new(data: &Path, format: UploadFormat) -> Result<Self, ApiError> {
        let ending = match format {
            UploadFormat::Csv => "csv",
            UploadFormat::Ndjson => "ndjson",
            UploadFormat::Parquet => "parquet",
            UploadFormat::Arrow => "arrow",
        };
        let folder = std::path::absolute(spool_folder(data)).map_err(spool_error)?;
        tokio::fs::create_dir_all(&folder).await.map_err(spool_error)?;
        Ok(Self { path: folder.join(format!("{}.{ending}", Uuid::now_v7())) })
    }

    async fn fill(&self, body: Body, settings: &HttpSettings) -> Result<(), ApiError> {
        let (limit, within) = (settings.max_import_bytes.0, settings.body_timeout.0);
        let mut file = tokio::fs::File::create(&self.path).await.map_err(spool_error)?;
        let mut chunks = body.into_data_stream();
        let mut written = 0_u64;
        while let Some(chunk) = tokio::time::timeout(within, chunks.next()).await.map_err(|_| too_slow(within))? {
            let chunk = chunk.map_err(|error| {
                ApiError::new(ErrorCode::BadRequestBody, format!("the request's body broke off: {error}"))
            })?;
            written += chunk.len() as u64;
            if written > limit {
                return Err(too_large(limit));
            }
            file.write_all(&chunk).await.map_err(spool_error)?;
        }
        if written == 0 {
            return Err(ApiError::new(ErrorCode::BadRequestBody, "the request's body is empty; send the file's bytes"));
        }
        file.flush().await.map_err(spool_error)
    }
}

impl Drop for Spool {
    #[expect(clippy::disallowed_methods, reason = "a drop cannot await, and removing one file is quick")]
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

fn spool_error(error: std::io::Error) -> ApiError {
    ApiError::internal(format_args!("import spool: {error}"))
}

/// Says `request body` instead of the spool file's path: the client knows of no file.
fn without_spool_path(error: EngineError, spool: &Path) -> ApiError {
    let path = spool.display().to_string();
    match error {
        EngineError::BadData { location, detail } => EngineError::BadData {
            location: location.replace(&path, "request body"),
            detail: detail.replace(&path, "request body"),
        }
        .into(),
        error => error.into(),
    }
}
