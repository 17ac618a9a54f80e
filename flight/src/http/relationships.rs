//! `/v1/catalog/relationships`: declared relationships between tables. Those that are inferred from names and values are
//! not listed here: they are found when tables are looked at.

use axum::response::Response;
use http::StatusCode;
use querent_catalog::{NewRelationship, PageRequest, PageToken, TableName};
use serde::Deserialize;
use serde_json::json;

use crate::error::{ApiError, ErrorCode};
use crate::http::request::{ApiCall, JsonBody, Params, PathText, parse_object_id};
use crate::http::response::{json_response, page_response};

const DEFAULT_LIMIT: usize = 100;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RelationshipParams {
    database: Option<String>,
    table: Option<String>,
    limit: Option<usize>,
    page_token: Option<String>,
}

/// `GET`: the relationships that the caller may see, of one table if `database` and `table` name it.
pub(super) async fn list(
    ApiCall { state, principal }: ApiCall,
    Params(params): Params<RelationshipParams>,
) -> Result<Response, ApiError> {
    let table = match (params.database, params.table) {
        (None, None) => None,
        (Some(database), Some(table)) => Some(TableName::new(database, table)),
        _ => return Err(ApiError::new(ErrorCode::BadParameter, "database and table go together")),
    };
    let page = PageRequest { limit: params.limit.unwrap_or(DEFAULT_LIMIT), after: params.page_token.map(PageToken) };
    let page = state.engine.catalog().relationships().list(&principal, table.as_ref(), page).await?;
    Ok(page_response("relationships", json!(page.items), page.next))
}

/// `POST`: `{from: {database, table}, from_columns, to: {database, table}, to_columns}`.
pub(super) async fn declare(
    ApiCall { state, principal }: ApiCall,
    JsonBody(new): JsonBody<NewRelationship>,
) -> Result<Response, ApiError> {
    let declared = state.engine.catalog().relationships().declare(&principal, &new).await?;
    Ok(json_response(StatusCode::CREATED, &json!(declared)))
}

/// `DELETE .../{id}`.
pub(super) async fn remove(
    ApiCall { state, principal }: ApiCall,
    PathText(id): PathText,
) -> Result<Response, ApiError> {
    state.engine.catalog().relationships().drop(&principal, parse_object_id(&id)?).await?;
    Ok(json_response(StatusCode::OK, &json!({ "dropped": true })))
}
