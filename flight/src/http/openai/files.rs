//! `/v1/files`: files that messages name by id. A file is visible to its owner.

use axum::body::Body;
use axum::extract::{DefaultBodyLimit, FromRequest, Multipart, Request};
use axum::response::{IntoResponse, Response};
use chrono::Utc;
use http::{StatusCode, header};
use querent_catalog::{FileRecord, Principal};
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::error::OpenAiError;
use super::fields::{OpenAiParams, checked_limit};
use crate::error::ErrorCode;
use crate::http::arriving::read_body;
use crate::http::request::{ApiCall, PathText};
use crate::http::response::json_response;
use crate::state::AppState;

/// The most files in one listing.
const MAX_LISTED: usize = 10_000;
/// What files are for, as OpenAI's clients say it. None of it has an effect.
const PURPOSES: [&str; 6] = ["assistants", "batch", "fine-tune", "vision", "user_data", "evals"];

/// `POST /v1/files`: a form with `file` and `purpose`.
pub(in crate::http) async fn upload(
    ApiCall { state, principal }: ApiCall,
    request: Request,
) -> Result<Response, OpenAiError> {
    let file = store(&state, &principal, request, true).await?;
    Ok(json_response(StatusCode::OK, &file_json(&file)))
}

/// Stores the file of a form, which has to say a purpose where `needs_purpose`.
pub(in crate::http) async fn store(
    state: &AppState,
    principal: &Principal,
    request: Request,
    needs_purpose: bool,
) -> Result<FileRecord, OpenAiError> {
    let (parts, body) = request.into_parts();
    let settings = &state.settings.http;
    let mut request =
        Request::from_parts(parts, Body::from(read_body(body, settings.max_query_bytes.0, settings).await?));
    // The body is within the setting's limit already; axum's own limit would be 2 MB.
    DefaultBodyLimit::disable().apply(&mut request);
    let mut form = Multipart::from_request(request, &())
        .await
        .map_err(|rejection| OpenAiError::bad_request(ErrorCode::BadRequestBody, "file", rejection.body_text()))?;
    let bad = |error: &dyn std::fmt::Display| {
        OpenAiError::bad_request(ErrorCode::BadRequestBody, "file", format!("the form cannot be read: {error}"))
    };
    let mut purpose = None;
    let mut uploaded: Option<(String, String, Vec<u8>)> = None;
    while let Some(field) = form.next_field().await.map_err(|error| bad(&error))? {
        match field.name() {
            Some(name @ ("file" | "purpose"))
                if (name == "file" && uploaded.is_some()) || (name == "purpose" && purpose.is_some()) =>
            {
                let message = format!("the form has `{name}` twice; upload files one by one");
                return Err(OpenAiError::bad_request(ErrorCode::InvalidRequest, name, message));
            }
            Some("purpose") => purpose = Some(field.text().await.map_err(|error| bad(&error))?),
            Some("file") => {
                let filename = field.file_name().unwrap_or("file").to_owned();
                let media_type = field.content_type().unwrap_or("application/octet-stream").to_owned();
                let content = field.bytes().await.map_err(|error| bad(&error))?.to_vec();
                uploaded = Some((filename, media_type, content));
            }
            Some("expires_after[anchor]" | "expires_after[seconds]") => {
                let message = "`expires_after` is not supported: files are kept as `agent.retention` says";
                return Err(OpenAiError::bad_request(ErrorCode::InvalidRequest, "expires_after", message));
            }
            name => {
                let name = name.unwrap_or_default();
                let message = format!("`{name}` is not a field of this form; it has `file` and `purpose`");
                return Err(OpenAiError::bad_request(ErrorCode::InvalidRequest, name, message));
            }
        }
    }
    let Some((filename, media_type, content)) = uploaded else {
        return Err(OpenAiError::bad_request(
            ErrorCode::MissingRequiredParameter,
            "file",
            "the form has no field `file`",
        ));
    };
    let purpose = match purpose {
        Some(purpose) if !needs_purpose || PURPOSES.contains(&purpose.as_str()) => purpose,
        None if !needs_purpose => "user_data".to_owned(),
        Some(_) | None => {
            let code = if purpose.is_none() { ErrorCode::MissingRequiredParameter } else { ErrorCode::InvalidRequest };
            let message = format!("`purpose` must be one of {}", PURPOSES.join(", "));
            return Err(OpenAiError::bad_request(code, "purpose", message));
        }
    };
    let file = FileRecord {
        file_id: format!("file-{}", Uuid::now_v7().simple()),
        subject: principal.subject().to_owned(),
        filename,
        media_type,
        purpose,
        bytes: content.len() as u64,
        created_at: Utc::now(),
    };
    let files = state.agent.catalog().files();
    let most = state.settings.agent.max_file_bytes_per_caller;
    let most_bytes = if most.0 == 0 { u64::MAX } else { most.0 };
    if !files.insert_within(&file, content, most_bytes).await? {
        let message = format!(
            "your files would take more than the {most} that those of one caller may; delete some with \
             DELETE /v1/files/{{id}}, or ask an administrator to raise `agent.max_file_bytes_per_caller`"
        );
        return Err(OpenAiError::bad_request(ErrorCode::TooManyFiles, "file", message));
    }
    Ok(file)
}

#[derive(Debug, Deserialize)]
pub(in crate::http) struct FileListParams {
    after: Option<String>,
    limit: Option<usize>,
    order: Option<String>,
    purpose: Option<String>,
}

/// `GET /v1/files`.
pub(in crate::http) async fn list(
    ApiCall { state, principal }: ApiCall,
    OpenAiParams(params): OpenAiParams<FileListParams>,
) -> Result<Response, OpenAiError> {
    let limit = checked_limit(params.limit, MAX_LISTED, MAX_LISTED)?;
    let mut files = all_files(&state, &principal).await?;
    match params.order.as_deref() {
        None | Some("desc") => {}
        Some("asc") => files.reverse(),
        Some(other) => {
            let message = format!("`order` `{other}` is neither asc nor desc");
            return Err(OpenAiError::bad_request(ErrorCode::InvalidRequest, "order", message));
        }
    }
    if let Some(after) = &params.after {
        let Some(place) = files.iter().position(|file| file.file_id == *after) else {
            let message = format!("file with id `{after}` not found");
            return Err(OpenAiError::not_found(ErrorCode::FileNotFound, message).with_param("after"));
        };
        files.drain(..=place);
    }
    files.retain(|file| params.purpose.as_ref().is_none_or(|purpose| file.purpose == *purpose));
    let has_more = files.len() > limit;
    let files: Vec<Value> = files.iter().take(limit).map(file_json).collect();
    let body = json!({
        "object": "list",
        "first_id": files.first().map(|file| file["id"].clone()),
        "last_id": files.last().map(|file| file["id"].clone()),
        "has_more": has_more,
        "data": files,
    });
    Ok(json_response(StatusCode::OK, &body))
}

/// Returns the caller's files, newest first; the newest [`MAX_LISTED`] of them.
async fn all_files(state: &AppState, principal: &Principal) -> Result<Vec<FileRecord>, OpenAiError> {
    let mut files: Vec<FileRecord> = Vec::new();
    loop {
        let after = files.last().map(|file| file.file_id.clone());
        let left = MAX_LISTED - files.len();
        let listed = state.agent.catalog().files().list(principal, after.as_deref(), left).await?;
        let has_more = listed.has_more && !listed.items.is_empty();
        files.extend(listed.items);
        if !has_more || files.len() >= MAX_LISTED {
            return Ok(files);
        }
    }
}

/// `GET /v1/files/{id}`.
pub(in crate::http) async fn get(
    ApiCall { state, principal }: ApiCall,
    PathText(id): PathText,
) -> Result<Response, OpenAiError> {
    let file = state.agent.catalog().files().get(&principal, &id).await?;
    Ok(json_response(StatusCode::OK, &file_json(&file)))
}

/// `GET /v1/files/{id}/content`: as a download, which a browser never shows.
pub(in crate::http) async fn content(
    ApiCall { state, principal }: ApiCall,
    PathText(id): PathText,
) -> Result<Response, OpenAiError> {
    let content = state.agent.catalog().files().content(&principal, &id).await?;
    let headers = [
        (header::CONTENT_TYPE, "application/octet-stream"),
        (header::CONTENT_DISPOSITION, "attachment"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    Ok((headers, content).into_response())
}

/// `DELETE /v1/files/{id}`.
pub(in crate::http) async fn remove(
    ApiCall { state, principal }: ApiCall,
    PathText(id): PathText,
) -> Result<Response, OpenAiError> {
    if !state.agent.catalog().files().delete(&principal, &id).await? {
        return Err(OpenAiError::not_found(ErrorCode::FileNotFound, format!("file with id `{id}` not found")));
    }
    Ok(json_response(StatusCode::OK, &json!({ "id": id, "object": "file", "deleted": true })))
}

fn file_json(file: &FileRecord) -> Value {
    json!({
        "id": file.file_id,
        "object": "file",
        "bytes": file.bytes,
        "created_at": file.created_at.timestamp(),
        "filename": file.filename,
        "purpose": file.purpose,
        "status": "processed",
        "expires_at": null,
    })
}
