//! `POST /v1/import`: imports the file in the body, or the files of a form, into a table, all or nothing.
//!
//! The body is written to spool files first, so that nothing of a request that breaks off becomes visible. They are removed
//! with the request, and those that a crash left are removed at the next start.

mod spool;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::Request;
use axum::response::Response;
use http::StatusCode;
use http::header::CONTENT_TYPE;
use querent_catalog::{DEFAULT_DATABASE, FileFormat, IfExists, NoProgress, TableName};
use querent_engine::{ImportRequest, Limits, check_reader_options, kql};
use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::Error as ValueError;
use serde_json::json;

use crate::error::{ApiError, Budget, ErrorCode};
use crate::http::request::{ApiCall, Params};
use crate::http::response::json_response;
use spool::Spool;
pub(crate) use spool::sweep_spool;

/// The type of a body of several files.
const FORM: &str = "multipart/form-data";

/// The parameters that are no options of a reader.
const OWN_PARAMETERS: [&str; 5] = ["table", "database", "format", "if_exists", "filename"];

#[derive(Debug, Deserialize)]
pub(super) struct ImportParams {
    /// Refused where it is empty, with what to write.
    #[serde(default)]
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

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum UploadFormat {
    #[serde(alias = "tsv", alias = "tab", alias = "txt", alias = "dat")]
    Csv,
    #[serde(alias = "json", alias = "jsonl", alias = "geojson")]
    Ndjson,
    #[serde(alias = "parq", alias = "pq")]
    Parquet,
    #[serde(alias = "arrows", alias = "ipc", alias = "feather")]
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
    if params.table.is_empty() {
        return Err(ApiError::new(ErrorCode::BadParameter, "nothing says which table the file becomes")
            .with_hint("add table=NAME, as in POST /v1/import?table=people&format=csv"));
    }
    let known = params.format_before(&request)?;
    if let Some(format) = known {
        params.check(format.into())?;
    }
    let table = TableName::new(params.database.as_deref().unwrap_or(DEFAULT_DATABASE), &params.table);
    let is_urlencoded = is_of_type(&request, "application/x-www-form-urlencoded");
    let mut spool = Spool::new(&state.settings.data, known).await?;
    spool.fill(request, params.filename.as_deref(), &state.settings.http).await?;
    let format = spool.found_format().await?;
    if known.is_none() {
        params.check(format)?;
    }
    if is_urlencoded && format == FileFormat::Csv && spool.is_endless_line() {
        let message = "the body is one line without an end: curl -d takes line ends out of a file";
        let hint = "send it with --data-binary @FILE; a file of one line with content-type: text/csv";
        return Err(ApiError::new(ErrorCode::BadRequestBody, message).with_hint(hint));
    }
    let request = ImportRequest {
        source: spool.source(),
        format: Some(format),
        options: params.reader,
        table: table.clone(),
        external: false,
        if_exists: match params.if_exists {
            UploadIfExists::Error => Some(IfExists::Error),
            UploadIfExists::Replace => Some(IfExists::Replace),
            UploadIfExists::Append => None,
        },
    };
    let session = state.session(principal.clone(), Limits::default());
    let act = session.audited_act(&format!("import into {table}"), Some(table.to_string()));
    let within = state.settings.http.import_timeout.0;
    let imported = state.engine.import_sent(&principal, request, spool.names(), within, Arc::new(NoProgress)).await;
    act.ended(imported.as_ref().map(|done| done.rows.unwrap_or_default()).map_err(|error| error.code()));
    let outcome = imported.map_err(|error| spool.as_client_names(error))?;
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
    /// Returns the format that is named, or that the file's name says; `None` where the names in a form are to say it, or the
    /// first bytes of the file. Errors: nothing says it.
    fn format_before(&self, request: &Request) -> Result<Option<UploadFormat>, ApiError> {
        let name = self.filename.as_deref();
        let of_name = || UploadFormat::of_name(name?).filter(|_| !name.is_some_and(may_be_any_text));
        match self.format.or_else(of_name) {
            None if is_of_type(request, FORM) || name.is_some_and(has_ending) => Ok(None),
            None => Err(no_format()),
            known => Ok(known),
        }
    }

    /// Refuses parameters that nobody knows, before the body is read.
    fn check(&self, format: FileFormat) -> Result<(), ApiError> {
        if let Some((database, table)) = self.table.split_once('.') {
            let message = format!("`{}` is no name of a table", self.table);
            let hint = format!("name the database apart: database={database}&table={table}");
            return Err(ApiError::new(ErrorCode::BadParameter, message).with_hint(hint));
        }
        check_reader_options(format, &self.reader).map_err(|error| {
            let near = self.reader.keys().find_map(|name| kql::nearest_name(name, OWN_PARAMETERS));
            let near = near.map(|near| format!("; the parameter `{near}` is near")).unwrap_or_default();
            ApiError::new(ErrorCode::BadParameter, format!("{error}{near}"))
        })
    }
}

/// Returns whether the body of a request is said to be of a type.
fn is_of_type(request: &Request, media_type: &str) -> bool {
    let said = request.headers().get(CONTENT_TYPE).and_then(|said| said.to_str().ok());
    said.is_some_and(|said| said.to_lowercase().starts_with(media_type))
}

/// Returns the error of an import whose time is over.
pub(super) fn too_long(limit: Duration) -> ApiError {
    let message = format!("the import took longer than {limit:?}");
    ApiError::new(ErrorCode::WallClockExceeded, message)
        .with_budget(Budget::WallClockMs(limit.as_millis()))
        .with_hint("import fewer rows at a time, or raise http.import_timeout on the server")
}

fn no_format() -> ApiError {
    ApiError::new(ErrorCode::BadParameter, "nothing says the format of the file")
        .with_hint("add format= csv, ndjson, parquet, arrow or xlsx, or filename= with its ending")
}

/// The endings of compressed files that text is read from.
const COMPRESSED: [&str; 5] = ["gz", "zst", "zstd", "bz2", "xz"];

/// Returns a file's name without the ending of its compression, and that ending.
fn compression_of_name(name: &str) -> (&str, Option<&'static str>) {
    let parts = name.rsplit_once('.');
    let found = parts.and_then(|(rest, last)| {
        let ending = COMPRESSED.into_iter().find(|ending| last.eq_ignore_ascii_case(ending))?;
        Some((rest, Some(ending)))
    });
    found.unwrap_or((name, None))
}

/// Whether a file's name has an ending, behind which its first bytes may say what it is.
fn has_ending(name: &str) -> bool {
    Path::new(name).extension().is_some()
}

/// Whether a file's ending is one of CSV and of JSON alike.
fn may_be_any_text(name: &str) -> bool {
    let ending = compression_of_name(name).0.rsplit_once('.').map(|(_, ending)| ending);
    ending.is_some_and(|ending| ["txt", "dat"].iter().any(|text| ending.eq_ignore_ascii_case(text)))
}

impl UploadFormat {
    /// Returns the format that a file's name says.
    fn of_name(name: &str) -> Option<Self> {
        let ending = compression_of_name(name).0.rsplit_once('.')?.1.to_lowercase();
        Self::deserialize(IntoDeserializer::<ValueError>::into_deserializer(ending)).ok()
    }

    /// Returns the ending of the file on disk, which the engine reads a file's compression from.
    fn ending_of(self, name: &str) -> String {
        match (self, compression_of_name(name).1) {
            (UploadFormat::Csv | UploadFormat::Ndjson, Some(compressed)) => format!("{}.{compressed}", self.ending()),
            _ => self.ending().to_owned(),
        }
    }

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
