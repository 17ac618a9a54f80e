//! `/v1/catalog/verified-queries` and `/v1/catalog/metrics`: what people teach. A query is stored only after it ran
//! for its sender, a metric only after its expression did.

use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use querent_catalog::{NewMetric, PageRequest, PageToken, Principal};
use querent_engine::Limits;
use serde::Deserialize;
use serde_json::{Value, json};

use super::request::{Params, PathText, parse_object_id, read_json};
use crate::AppState;
use crate::admission::Door;
use crate::error::ApiError;
use crate::http::middleware::json as json_response;

const DEFAULT_LIMIT: usize = 100;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct KnowledgeParams {
    database: Option<String>,
    limit: Option<usize>,
    page_token: Option<String>,
}

impl KnowledgeParams {
    fn page(&self) -> PageRequest {
        PageRequest { limit: self.limit.unwrap_or(DEFAULT_LIMIT), after: self.page_token.clone().map(PageToken) }
    }
}

/// A verified query as it is sent.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct QueryToVerify {
    question: String,
    sql: String,
    database: Option<String>,
}

/// `GET /v1/catalog/verified-queries`: those the caller may see, oldest first.
pub(super) async fn list_queries(
    State(state): State<AppState>,
    Extension(principal): Extension<Principal>,
    Params(params): Params<KnowledgeParams>,
) -> Result<Response, ApiError> {
    let catalog = state.engine.catalog();
    let page = catalog.knowledge().list_verified_queries(&principal, params.database.as_deref(), params.page()).await?;
    Ok(listing("verified_queries", json!(page.items), page.next))
}

/// `POST /v1/catalog/verified-queries`: `{question, sql, database?}`.
pub(super) async fn verify_query(
    State(state): State<AppState>,
    Extension(principal): Extension<Principal>,
    body: Body,
) -> Result<Response, ApiError> {
    let new: QueryToVerify = read_json(body).await?;
    let mut permit = state.admission.admit(Door::Http)?;
    let session = state.session(principal, Limits::default());
    let verified = async {
        let session = session.in_database(new.database.as_deref()).await?;
        session.verify_query(&new.question, &new.sql).await
    };
    let verified = verified.await;
    match &verified {
        Ok(_) => permit.succeeded(0),
        Err(_) => permit.failed(),
    }
    Ok(json_response(StatusCode::CREATED, &json!(verified?)))
}

/// `DELETE /v1/catalog/verified-queries/{id}`.
pub(super) async fn drop_query(
    State(state): State<AppState>,
    Extension(principal): Extension<Principal>,
    PathText(id): PathText,
) -> Result<Response, ApiError> {
    state.engine.catalog().knowledge().drop_verified_query(&principal, parse_object_id(&id)?).await?;
    Ok(json_response(StatusCode::OK, &json!({ "dropped": true })))
}

/// `GET /v1/catalog/metrics`: those the caller may see, oldest first.
pub(super) async fn list_metrics(
    State(state): State<AppState>,
    Extension(principal): Extension<Principal>,
    Params(params): Params<KnowledgeParams>,
) -> Result<Response, ApiError> {
    let catalog = state.engine.catalog();
    let page = catalog.knowledge().list_metrics(&principal, params.database.as_deref(), params.page()).await?;
    Ok(listing("metrics", json!(page.items), page.next))
}

/// `POST /v1/catalog/metrics`: `{name, table: {database, table}, expression, filter?, description?}`.
pub(super) async fn define_metric(
    State(state): State<AppState>,
    Extension(principal): Extension<Principal>,
    body: Body,
) -> Result<Response, ApiError> {
    let new: NewMetric = read_json(body).await?;
    let mut permit = state.admission.admit(Door::Http)?;
    let defined = state.session(principal, Limits::default()).define_metric(new).await;
    match &defined {
        Ok(_) => permit.succeeded(0),
        Err(_) => permit.failed(),
    }
    Ok(json_response(StatusCode::CREATED, &json!(defined?)))
}

/// `DELETE /v1/catalog/metrics/{id}`.
pub(super) async fn drop_metric(
    State(state): State<AppState>,
    Extension(principal): Extension<Principal>,
    PathText(id): PathText,
) -> Result<Response, ApiError> {
    state.engine.catalog().knowledge().drop_metric(&principal, parse_object_id(&id)?).await?;
    Ok(json_response(StatusCode::OK, &json!({ "dropped": true })))
}

fn listing(name: &str, items: Value, next: Option<PageToken>) -> Response {
    let mut body = json!({ name: items });
    if let Some(next) = next {
        body["next_page_token"] = json!(next.0);
    }
    json_response(StatusCode::OK, &body)
}
