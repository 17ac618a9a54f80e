//! `GET /v1/catalog/search`: tables by name, by text and by meaning, of what the caller may see.

use axum::response::Response;
use http::StatusCode;
use querent_catalog::{MissingMeaning, SearchHit, SearchRequest};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::error::{ApiError, ErrorCode};
use crate::http::request::{ApiCall, Params};
use crate::http::response::json_response;

const DEFAULT_LIMIT: usize = 20;
/// The hits that count as looked at, so that their values are collected.
const LOOKED_AT: usize = 10;

/// The key of a search's answer under which it says why it is by name and by text only.
pub(crate) const MISSING_MEANING: &str = "missing_meaning";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SearchParams {
    q: String,
    database: Option<String>,
    limit: Option<usize>,
}

pub(super) async fn search(
    ApiCall { state, principal }: ApiCall,
    Params(params): Params<SearchParams>,
) -> Result<Response, ApiError> {
    let query = params.q.trim();
    if query.is_empty() {
        return Err(ApiError::new(ErrorCode::BadParameter, "q must be non-empty; say what to look for"));
    }
    let request = SearchRequest {
        query: query.to_owned(),
        database: params.database,
        limit: params.limit.unwrap_or(DEFAULT_LIMIT),
    };
    let search = state.engine.catalog().search();
    let hits = search.tables(&principal, &request).await?;
    state.engine.queue_profiles(hits.iter().take(LOOKED_AT).map(|hit| hit.table.name.clone()));
    Ok(json_response(StatusCode::OK, &found_json(&hits, search.missing_meaning().as_ref())))
}

/// What was found, as JSON, for the server and the command line; with why meaning is missing, where it is.
pub fn found_json(hits: &[SearchHit], missing: Option<&MissingMeaning>) -> Value {
    let mut found = json!({ "hits": hits.iter().map(hit_json).collect::<Vec<_>>() });
    if let Some(missing) = missing {
        found[MISSING_MEANING] =
            json!({ "reason": missing.reason, "hint": missing.hint, "is_chosen": missing.is_chosen });
    }
    found
}

fn hit_json(hit: &SearchHit) -> Value {
    json!({
        "database": hit.table.name.database,
        "table": hit.table.name.table,
        "kind": hit.table.kind,
        "comment": hit.table.comment,
        "row_count": hit.table.row_count,
        "score": hit.score,
        "found_by": hit.found_by,
        "why": hit.why,
    })
}
