//! `/v1/catalog/verified-queries` and `/v1/catalog/metrics`: the knowledge that people add to the catalog. A query is
//! stored only after it ran for its sender, a metric only after its expression did.

use axum::response::Response;
use http::StatusCode;
use querent_catalog::{NewMetric, PageRequest, PageToken};
use querent_engine::Limits;
use serde::Deserialize;
use serde_json::json;

use crate::admission::Door;
use crate::error::ApiError;
use crate::http::request::{ApiCall, JsonBody, Params, PathText, parse_object_id};
use crate::http::response::{json_response, page_response};

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

/// A verified query as a client sends it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct QueryToVerify {
    question: String,
    sql: String,
    database: Option<String>,
}

/// `GET /v1/catalog/verified-queries`: those the caller may see, oldest first.
pub(super) async fn list_queries(
    ApiCall { state, principal }: ApiCall,
    Params(params): Params<KnowledgeParams>,
) -> Result<Response, ApiError> {
    let catalog = state.engine.catalog();
    let page = catalog.knowledge().list_verified_queries(&principal, params.database.as_deref(), params.page()).await?;
    Ok(page_response("verified_queries", json!(page.items), page.next))
}

/// `POST /v1/catalog/verified-queries`: `{question, sql, database?}`.
pub(super) async fn verify_query(
    ApiCall { state, principal }: ApiCall,
    JsonBody(new): JsonBody<QueryToVerify>,
) -> Result<Response, ApiError> {
    let mut permit = state.admission.admit(&principal, Door::Http).await?;
    let session = state.session(principal, Limits::default());
    let verified = async {
        let session = session.in_database(new.database.as_deref()).await?;
        session.verify_query(&new.question, &new.sql).await
    };
    let verified = verified.await;
    permit.record(&verified);
    Ok(json_response(StatusCode::CREATED, &json!(verified?)))
}

/// `DELETE /v1/catalog/verified-queries/{id}`.
pub(super) async fn drop_query(
    ApiCall { state, principal }: ApiCall,
    PathText(id): PathText,
) -> Result<Response, ApiError> {
    state.engine.catalog().knowledge().drop_verified_query(&principal, parse_object_id(&id)?).await?;
    Ok(json_response(StatusCode::OK, &json!({ "dropped": true })))
}

/// `GET /v1/catalog/metrics`: those the caller may see, oldest first.
pub(super) async fn list_metrics(
    ApiCall { state, principal }: ApiCall,
    Params(params): Params<KnowledgeParams>,
) -> Result<Response, ApiError> {
    let catalog = state.engine.catalog();
    let page = catalog.knowledge().list_metrics(&principal, params.database.as_deref(), params.page()).await?;
    Ok(page_response("metrics", json!(page.items), page.next))
}

/// `POST /v1/catalog/metrics`: `{name, table: {database, table}, expression, filter?, description?}`.
pub(super) async fn define_metric(
    ApiCall { state, principal }: ApiCall,
    JsonBody(new): JsonBody<NewMetric>,
) -> Result<Response, ApiError> {
    let mut permit = state.admission.admit(&principal, Door::Http).await?;
    let defined = state.session(principal, Limits::default()).define_metric(new).await;
    permit.record(&defined);
    Ok(json_response(StatusCode::CREATED, &json!(defined?)))
}

/// `DELETE /v1/catalog/metrics/{id}`.
pub(super) async fn drop_metric(
    ApiCall { state, principal }: ApiCall,
    PathText(id): PathText,
) -> Result<Response, ApiError> {
    state.engine.catalog().knowledge().drop_metric(&principal, parse_object_id(&id)?).await?;
    Ok(json_response(StatusCode::OK, &json!({ "dropped": true })))
}
