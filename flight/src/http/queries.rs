//! `/v1/queries`: queries that run now, and ending one. A caller sees its own, an administrator all of them.

use axum::response::Response;
use http::StatusCode;
use serde_json::json;

use crate::error::{ApiError, ErrorCode};
use crate::http::request::{ApiCall, PathText};
use crate::http::response::json_response;

/// `GET /v1/queries`.
pub(super) async fn list(ApiCall { state, principal }: ApiCall) -> Result<Response, ApiError> {
    Ok(json_response(StatusCode::OK, &json!({ "queries": state.engine.queries(&principal) })))
}

/// `POST /v1/queries/{id}/cancel` and `DELETE /v1/queries/{id}`: ends it as soon as it looks, which is at once.
pub(super) async fn cancel(
    ApiCall { state, principal }: ApiCall,
    PathText(id): PathText,
) -> Result<Response, ApiError> {
    let id: u64 = id.parse().map_err(|_| {
        ApiError::new(ErrorCode::BadParameter, format!("`{id}` is not a query's id; ids are whole numbers"))
    })?;
    if !state.engine.cancel_query(&principal, id, None) {
        let error = ApiError::new(ErrorCode::ObjectNotFound, format!("no query {id} is running"));
        return Err(error.with_hint("GET /v1/queries lists those that are; it may have ended"));
    }
    Ok(json_response(StatusCode::OK, &json!({ "cancelled": id })))
}
