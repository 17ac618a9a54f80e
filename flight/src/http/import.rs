//! `POST /v1/import`: imports the file in the body, or the files of a form, into a table, all or nothing.
//!
//! The body is written to spool files first, so that nothing of a request that breaks off becomes visible. They are removed
//! with the request, and those that a crash left are removed at the next start.

mod spool;

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::Request;
use axum::response::Response;
use http::StatusCode;
use querent_catalog::{DEFAULT_DATABASE, FileFormat, IfExists, NoProgress, TableName};
use querent_engine::{ImportRequest, check_reader_options, kql};
use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::Error as ValueError;
use serde_json::json;

use crate::error::{ApiError, ErrorCode};
use crate::http::request::{ApiCall, Params};
use crate::http::response::json_response;
use spool::Spool;
pub(crate) use spool::sweep_spool;

/// The parameters that are no options of a reader.
const OWN_PARAMETERS: [&str; 5] = ["table", "database", "format", "if_exists", "filename"];

#[derive(Debug, Deserialize)]
pub(super) struct ImportParams {
    table: String,
    database: Option<String>,
    /// Without it: as the name of the file in the body says.
    format: Option<UploadFormat>,
    #[serde(default)]
    if_exists: UploadIfExists,
    /// What errors call the file in the body.
    filename: Option<String>,
    /// How the files are read.
    #[serde(flatten)]
    reader: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum UploadFormat {
    #[serde(alias = "tsv", alias = "txt")]
    Csv,
    #[serde(alias = "json", alias = "jsonl", alias = "geojson")]
    Ndjson,
    Parquet,
    #[serde(alias = "ipc", alias = "feather")]
    Arrow,
    #[serde(alias = "excel", alias = "xls", alias = "xlsb", alias = "xlsm", alias = "ods")]
    Xlsx,
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
    request: Request,
) -> Result<Response, ApiError> {
    let format = params.format()?;
    params.check(format)?;
    let table = TableName::new(params.database.as_deref().unwrap_or(DEFAULT_DATABASE), &params.table);
    let mut spool = Spool::new(&state.settings.data, format.ending()).await?;
    spool.fill(request, params.filename.as_deref(), &state.settings.http).await?;
    let request = ImportRequest {
        source: spool.source(),
        format: Some(format.into()),
        options: params.reader,
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
        .import_sent(&principal, request, spool.names(), Arc::new(NoProgress))
        .await
        .map_err(|error| spool.as_client_names(error))?;
    tracing::info!(%table, rows = outcome.rows, files = outcome.files, "imported");
    let mut body = json!({
        "database": table.database,
        "table": table.table,
        "rows": outcome.rows,
        "files": outcome.files,
        "created": outcome.created,
    });
    if let Some(reading) = &outcome.reading {
        body["reading"] = serde_json::to_value(reading).map_err(|error| ApiError::internal(format_args!("{error}")))?;
    }
    if let Some((lines, rejects)) = &outcome.rejects {
        body["rejects"] = json!({ "lines": lines, "table": rejects.to_string() });
    }
    Ok(json_response(StatusCode::OK, &body))
}

impl ImportParams {
    /// Returns the format that is named, or that the file's name says. Errors: neither says it.
    fn format(&self) -> Result<UploadFormat, ApiError> {
        let ending = || self.filename.as_deref()?.rsplit_once('.').map(|(_, ending)| ending.to_lowercase());
        let of_name = || UploadFormat::deserialize(IntoDeserializer::<ValueError>::into_deserializer(ending()?)).ok();
        let found = self.format.or_else(of_name);
        found.ok_or_else(|| {
            let message = "nothing says the format of the file";
            ApiError::new(ErrorCode::BadParameter, message)
                .with_hint("add format= csv, ndjson, parquet, arrow or xlsx, or filename= with its ending")
        })
    }

    /// Refuses parameters that nobody knows, before the body is read.
    fn check(&self, format: UploadFormat) -> Result<(), ApiError> {
        if let Some((database, table)) = self.table.split_once('.') {
            let message = format!("`{}` is no name of a table", self.table);
            let hint = format!("name the database apart: database={database}&table={table}");
            return Err(ApiError::new(ErrorCode::BadParameter, message).with_hint(hint));
        }
        check_reader_options(format.into(), &self.reader).map_err(|error| {
            let near = self.reader.keys().find_map(|name| kql::nearest_name(name, OWN_PARAMETERS));
            let near = near.map(|near| format!("; the parameter `{near}` is near")).unwrap_or_default();
            ApiError::new(ErrorCode::BadParameter, format!("{error}{near}"))
        })
    }
}

impl UploadFormat {
    fn ending(self) -> &'static str {
        match self {
            UploadFormat::Csv => "csv",
            UploadFormat::Ndjson => "ndjson",
            UploadFormat::Parquet => "parquet",
            UploadFormat::Arrow => "arrow",
            UploadFormat::Xlsx => "xlsx",
        }
    }
}

impl From<UploadFormat> for FileFormat {
    fn from(format: UploadFormat) -> Self {
        match format {
            UploadFormat::Csv => FileFormat::Csv,
            UploadFormat::Ndjson => FileFormat::Ndjson,
            UploadFormat::Parquet => FileFormat::Parquet,
            UploadFormat::Arrow => FileFormat::Arrow,
            UploadFormat::Xlsx => FileFormat::Xlsx,
        }
    }
}
