//! `POST /v1/query`: runs one SQL statement or KQL query and streams its rows in one of [`crate::formats`].
//!
//! The status is sent after the first rows, so that a query that fails early has an error status. A later failure ends
//! NDJSON with an `{"error":{...}}` line and aborts the other formats, so that a cut result never looks complete. The
//! row count is a trailer.

mod body;
mod request;

use axum::Extension;
use axum::body::Body;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, header};
use querent_engine::EngineError;

use crate::admission::Door;
use crate::error::{ApiError, Budget};
use crate::http::request::{ApiCall, Params, RequestId};
use crate::query_limits::{QueryLanguage, RESULT_CACHE_HEADER, RESULT_CACHE_HIT};
use body::{ResultBody, RowsAhead};
use request::{QueryParams, QueryRequest};

pub(super) async fn query(
    ApiCall { state, principal }: ApiCall,
    Extension(request_id): Extension<RequestId>,
    Params(params): Params<QueryParams>,
    request: Request,
) -> Result<Response, ApiError> {
    let (parts, body) = request.into_parts();
    let request = QueryRequest::read(params, &parts.headers, body, &state.settings).await?;
    let format = request.format;
    let mut permit = state.admission.admit(&principal, Door::Http).await?;
    let place = permit.take_slot();

    let session = state.session(principal, request.limits).with_result_types(request.result_types);
    let memory_bytes = session.limits().memory_bytes;
    let api_error = move |error: EngineError| -> ApiError {
        let out_of_memory = matches!(error, EngineError::MemoryExceeded { .. });
        let error = ApiError::from(error);
        if out_of_memory { error.with_budget(Budget::MemoryBytes(memory_bytes)) } else { error }
    };
    let started = async move {
        let session = session.in_database(request.database.as_deref()).await?;
        let mut rows = match (request.language, request.params) {
            (QueryLanguage::Kql, _) => session.kql(&request.text).await?,
            (QueryLanguage::Sql, params) if params.is_empty() => session.sql(&request.text).await?,
            (QueryLanguage::Sql, params) => session.sql_with_params(&request.text, params).await?,
        };
        rows = rows.holding(place);
        let ahead = RowsAhead::of(&mut rows).await?;
        Ok((rows, ahead))
    };
    let (rows, ahead) = match started.await {
        Ok(started) => started,
        Err(error) => {
            permit.failed();
            return Err(api_error(error));
        }
    };
    let is_kept = rows.stats().from_result_cache;
    let result = ResultBody { rows, ahead, permit, api_error, request_id: request_id.0 };
    let mut response = Body::new(result.frames(format)?).into_response();
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(format.content_type()));
    // HTTP/1.1 sends trailers only if they are announced, and only to clients that sent `TE: trailers`.
    response
        .headers_mut()
        .insert(header::TRAILER, HeaderValue::from_static("x-kyma-rows, x-querent-rows, x-querent-truncated"));
    if is_kept {
        response.headers_mut().insert(RESULT_CACHE_HEADER, HeaderValue::from_static(RESULT_CACHE_HIT));
    }
    Ok(response)
}
