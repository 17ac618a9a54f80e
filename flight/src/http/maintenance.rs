//! `/v1/check` and `/v1/backup`: whether the data folder is whole, and a copy of it while it is in use; `/v1/snapshots/expire`:
//! forgetting old states of tables; `/v1/audit`: the audit log. For administrators of all databases.

use std::path::PathBuf;
use std::time::Duration;

use axum::response::Response;
use http::StatusCode;
use querent_catalog::{DatabaseScope, ORPHAN_GRACE, Principal, SHORTEST_HISTORY};
use serde::Deserialize;
use serde_json::json;

use crate::error::{ApiError, ErrorCode};
use crate::http::request::{ApiCall, JsonBody, Params};
use crate::http::response::json_response;

/// The most records of the audit log in one answer.
const MAX_RECORDS: usize = 10_000;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CheckParams {
    #[serde(default)]
    remove_orphans: bool,
    grace_seconds: Option<u64>,
    #[serde(default)]
    contents: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BackupBody {
    folder: PathBuf,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ExpireBody {
    older_than_seconds: u64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AuditParams {
    #[serde(default)]
    after: i64,
    limit: Option<usize>,
}

/// `POST /v1/check`.
pub(super) async fn check(
    ApiCall { state, principal }: ApiCall,
    Params(params): Params<CheckParams>,
) -> Result<Response, ApiError> {
    require_all_databases(&principal)?;
    let grace = params.grace_seconds.map_or(ORPHAN_GRACE, Duration::from_secs);
    let remove_orphans = params.remove_orphans.then_some(grace);
    let found = match params.contents {
        true => state.engine.check_contents(remove_orphans).await?,
        false => state.engine.check(remove_orphans).await?,
    };
    Ok(json_response(StatusCode::OK, &json!(found)))
}

/// `POST /v1/backup`: `{folder}`, on the server's machine.
pub(super) async fn backup(
    ApiCall { state, principal }: ApiCall,
    JsonBody(body): JsonBody<BackupBody>,
) -> Result<Response, ApiError> {
    require_all_databases(&principal)?;
    if !body.folder.is_absolute() {
        return Err(ApiError::new(ErrorCode::BadRequestBody, "`folder` is an absolute path on the server's machine"));
    }
    let made = state.engine.catalog().back_up(&body.folder).await?;
    tracing::info!(folder = %body.folder.display(), files = made.files, by = principal.subject(), "backup made");
    Ok(json_response(StatusCode::CREATED, &json!(made)))
}

/// `POST /v1/snapshots/expire`: `{older_than_seconds}`.
pub(super) async fn expire_snapshots(
    ApiCall { state, principal }: ApiCall,
    JsonBody(body): JsonBody<ExpireBody>,
) -> Result<Response, ApiError> {
    require_all_databases(&principal)?;
    let age = Duration::from_secs(body.older_than_seconds);
    if age < SHORTEST_HISTORY {
        let message = "`older_than_seconds` is at least 3600: statements that run may read what is younger";
        return Err(ApiError::new(ErrorCode::BadRequestBody, message));
    }
    let Some(expired) = state.engine.expire_snapshots_of_age(age, Duration::ZERO).await? else {
        let message = "another server that shares the catalog is at it";
        return Err(ApiError::new(ErrorCode::Conflict, message).with_hint("wait until it is done"));
    };
    tracing::info!(snapshots = expired.snapshots, files = expired.files, by = principal.subject(), "snapshots expired");
    Ok(json_response(StatusCode::OK, &json!(expired)))
}

/// `GET /v1/audit?after=&limit=`.
pub(super) async fn audit(
    ApiCall { state, principal }: ApiCall,
    Params(params): Params<AuditParams>,
) -> Result<Response, ApiError> {
    require_all_databases(&principal)?;
    let limit = params.limit.unwrap_or(MAX_RECORDS).clamp(1, MAX_RECORDS);
    let records = state.engine.catalog().audit().list(params.after, limit).await?;
    Ok(json_response(StatusCode::OK, &json!({ "records": records })))
}

/// `GET /v1/audit/verify`.
pub(super) async fn verify_audit(ApiCall { state, principal }: ApiCall) -> Result<Response, ApiError> {
    require_all_databases(&principal)?;
    Ok(json_response(StatusCode::OK, &json!(state.engine.catalog().audit().verify().await?)))
}

pub(super) fn require_all_databases(principal: &Principal) -> Result<(), ApiError> {
    if *principal.scope() == DatabaseScope::All {
        return Ok(());
    }
    Err(ApiError::new(ErrorCode::Forbidden, "this is for administrators of all databases"))
}
