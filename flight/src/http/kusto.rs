//! Kusto's own REST routes, for clients that know no other server: queries as version 1 and 2 of its answers, the
//! `.show` commands that clients send, and the metadata that they ask for before they authenticate.
//!
//! What these routes promise is in Microsoft's "Query/management HTTP request", "Query/management HTTP response" and
//! "Query V2 HTTP response". Errors have Kusto's shape and statuses; our own code of them is a header and in `@context`.

mod body;
mod commands;
mod error;
mod request;
mod schema;

use axum::Extension;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures::StreamExt;
use http::{HeaderName, HeaderValue, StatusCode, header};
use querent_catalog::Principal;
use querent_engine::{EngineError, KqlAnswer};
use serde_json::json;
use uuid::Uuid;

use crate::AppState;
use crate::admission::{Door, QueryPermit};
use crate::error::ApiError;
use crate::http::middleware::json as json_response;
use body::{DataSet, DataSetLayout};
use commands::ShowCommand;
use request::KustoRequest;

const CLIENT_REQUEST_ID: HeaderName = HeaderName::from_static("x-ms-client-request-id");
const ACTIVITY_ID: HeaderName = HeaderName::from_static("x-ms-activity-id");
/// Longer ids of clients are cut.
const MAX_CLIENT_REQUEST_ID: usize = 256;

/// The two ids of a request that Kusto's answers name.
#[derive(Debug, Clone)]
pub(super) struct RequestIds {
    /// The client's, or one made for it.
    client: String,
    /// The server's.
    activity: Uuid,
}

/// Gives a request its ids, and its errors Kusto's shape.
pub(super) async fn around(mut request: Request, next: Next) -> Response {
    let sent = request.headers().get(CLIENT_REQUEST_ID).and_then(|value| value.to_str().ok());
    let client = match sent {
        Some(sent) => sent.chars().take(MAX_CLIENT_REQUEST_ID).collect(),
        None => format!("unspecified;{}", Uuid::new_v4()),
    };
    let ids = RequestIds { client, activity: Uuid::now_v7() };
    request.extensions_mut().insert(ids.clone());
    let mut response = next.run(request).await;
    if let Some(error) = response.extensions().get::<ApiError>() {
        let rendered = error::rendered(error, &ids);
        response.extensions_mut().insert(rendered);
    }
    for (name, value) in [(CLIENT_REQUEST_ID, ids.client), (ACTIVITY_ID, ids.activity.to_string())] {
        if let Ok(value) = HeaderValue::from_str(&value) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

/// `GET /v1/rest/auth/metadata`: there is no Azure AD to ask for tokens here.
pub(super) async fn auth_metadata() -> Response {
    json_response(StatusCode::OK, &json!({ "AzureAD": null, "dSTS": null }))
}

/// `POST /v1/rest/query`.
pub(super) async fn query_v1(
    State(state): State<AppState>,
    Extension(principal): Extension<Principal>,
    Extension(ids): Extension<RequestIds>,
    request: Request,
) -> Result<Response, ApiError> {
    let asked = KustoRequest::read(request.into_body(), &state.settings).await?;
    answered(&state, principal, ids, asked, DataSetLayout::V1).await
}

/// `POST /v2/rest/query`.
pub(super) async fn query_v2(
    State(state): State<AppState>,
    Extension(principal): Extension<Principal>,
    Extension(ids): Extension<RequestIds>,
    request: Request,
) -> Result<Response, ApiError> {
    let asked = KustoRequest::read(request.into_body(), &state.settings).await?;
    let layout = DataSetLayout::V2(asked.frames);
    answered(&state, principal, ids, asked, layout).await
}

/// `POST /v1/rest/mgmt`.
pub(super) async fn management(
    State(state): State<AppState>,
    Extension(principal): Extension<Principal>,
    Extension(ids): Extension<RequestIds>,
    request: Request,
) -> Result<Response, ApiError> {
    let mut asked = KustoRequest::read(request.into_body(), &state.settings).await?;
    let command = ShowCommand::parse(&asked.text)?;
    if command.is_query_plan() {
        return answered(&state, principal, ids, asked, DataSetLayout::Command).await;
    }
    let table = command.run(&state, &principal, asked.database.as_deref()).await?;
    match command.operators {
        None => Ok(([(header::CONTENT_TYPE, "application/json")], table.document()).into_response()),
        Some(operators) => {
            asked.text = format!("{} {operators}", table.as_kql());
            asked.database = None;
            answered(&state, principal, ids, asked, DataSetLayout::Command).await
        }
    }
}

/// Starts a query and streams its answer. Its first batch is awaited before the status is sent.
async fn answered(
    state: &AppState,
    principal: Principal,
    ids: RequestIds,
    asked: KustoRequest,
    layout: DataSetLayout,
) -> Result<Response, ApiError> {
    let mut permit = state.admission.admit(Door::Kusto)?;
    let (answer, first) = match started(state, principal, &asked, &mut permit).await {
        Ok(started) => started,
        Err(error) => {
            permit.failed();
            return Err(error.into());
        }
    };
    let body = DataSet { answer, first, permit, ids, is_truncation_failure: asked.is_truncation_failure };
    let mut response = Body::new(body.frames(layout)).into_response();
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json; charset=utf-8"));
    Ok(response)
}

async fn started(
    state: &AppState,
    principal: Principal,
    asked: &KustoRequest,
    permit: &mut QueryPermit,
) -> Result<(KqlAnswer, Option<arrow::array::RecordBatch>), EngineError> {
    let place = permit.take_place();
    let session = state.session(principal, asked.limits.clone());
    let session = session.in_database(asked.database.as_deref()).await?;
    let mut answer = session.kql_answer(&asked.text, asked.parameters.clone()).await?;
    answer.rows = answer.rows.holding(place);
    let first = answer.rows.next().await.transpose()?;
    Ok((answer, first))
}
