//! Kusto's REST routes, for its own clients: queries with answers in version 1 and 2, the `.show` commands that clients
//! send, and the metadata that they ask for before they authenticate.
//!
//! The routes follow Microsoft's "Query/management HTTP request", "Query/management HTTP response" and
//! "Query V2 HTTP response". Errors have Kusto's shape and statuses; our own code of them is a header and in `@context`.

mod activity;
mod body;
mod cancel;
mod commands;
mod error;
mod policies;
mod request;
mod schema;
mod table;
mod words;

use axum::body::Body;
use axum::middleware::from_fn;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Router};
use futures::StreamExt;
use http::{HeaderValue, StatusCode, header};
use querent_catalog::Principal;
use querent_engine::{EngineError, KqlAnswers, QueryStream};
use serde_json::json;

use crate::admission::{Door, QueryPermit};
use crate::error::ApiError;
use crate::http::request::ApiCall;
use crate::http::response::json_response;
use crate::state::AppState;
use body::{DataSet, DataSetLayout};
use commands::ShowCommand;
use error::RequestIds;
use request::KustoRequest;

pub(super) use error::error_response;

/// Gives requests their ids, and errors Kusto's shape.
pub(super) fn add_layers(router: Router<AppState>, _state: &AppState) -> Router<AppState> {
    router.route_layer(from_fn(error::render_errors))
}

/// `GET /v1/rest/auth/metadata`: there is no Azure AD to ask for tokens here.
pub(super) async fn auth_metadata() -> Response {
    json_response(StatusCode::OK, &json!({ "AzureAD": null, "dSTS": null }))
}

/// `POST /v1/rest/query`.
pub(super) async fn query_v1(
    ApiCall { state, principal }: ApiCall,
    Extension(ids): Extension<RequestIds>,
    request: KustoRequest,
) -> Result<Response, ApiError> {
    query_response(&state, principal, ids, request, DataSetLayout::V1).await
}

/// `POST /v2/rest/query`.
pub(super) async fn query_v2(
    ApiCall { state, principal }: ApiCall,
    Extension(ids): Extension<RequestIds>,
    request: KustoRequest,
) -> Result<Response, ApiError> {
    let layout = DataSetLayout::V2(request.frames);
    query_response(&state, principal, ids, request, layout).await
}

/// `POST /v1/rest/mgmt`.
pub(super) async fn management(
    ApiCall { state, principal }: ApiCall,
    Extension(ids): Extension<RequestIds>,
    mut request: KustoRequest,
) -> Result<Response, ApiError> {
    let command = ShowCommand::parse(&request.text)?;
    if command.is_of_engine() {
        return query_response(&state, principal, ids, request, DataSetLayout::Command).await;
    }
    let table = command.run(&state, &principal, request.database.as_deref()).await?;
    match command.operators {
        None => Ok(([(header::CONTENT_TYPE, "application/json")], table.document()).into_response()),
        Some(operators) => {
            request.text = format!("{} {operators}", table.as_kql());
            request.database = None;
            query_response(&state, principal, ids, request, DataSetLayout::Command).await
        }
    }
}

/// Starts a query and streams its answer. The status is sent after the first batch, so that an early failure has one.
async fn query_response(
    state: &AppState,
    principal: Principal,
    ids: RequestIds,
    request: KustoRequest,
    layout: DataSetLayout,
) -> Result<Response, ApiError> {
    let mut permit = state.admission.admit(&principal, Door::Kusto).await?;
    let (answers, rows, first) = match start_query(state, principal, &ids, &request, &mut permit).await {
        Ok(started) => started,
        Err(error) => {
            permit.failed();
            return Err(error.into());
        }
    };
    let body = DataSet { answers, rows, first, permit, ids, truncation: request.truncation };
    let mut response = Body::new(body.frames(layout)).into_response();
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json; charset=utf-8"));
    Ok(response)
}

async fn start_query(
    state: &AppState,
    principal: Principal,
    ids: &RequestIds,
    request: &KustoRequest,
    permit: &mut QueryPermit,
) -> Result<(KqlAnswers, QueryStream, Option<arrow::array::RecordBatch>), EngineError> {
    let place = permit.take_slot();
    let session = state.session(principal, request.limits.clone()).for_request(&ids.client);
    let session = session.in_database(request.database.as_deref()).await?;
    let mut answers = session.kql_answers(&request.text, request.parameters.clone()).await?.holding(place);
    let Some(mut rows) = answers.next_rows().await? else {
        return Err(EngineError::Internal("a query without a result".to_owned()));
    };
    let first = rows.next().await.transpose()?;
    Ok((answers, rows, first))
}
