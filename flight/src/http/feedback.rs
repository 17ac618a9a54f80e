//! `/v1/agent/runs/{run_id}/feedback`: what people say of a run's answer. `/v1/catalog/query-proposals`: the verified
//! queries that this proposes, which a person accepts or rejects.

use axum::response::Response;
use http::StatusCode;
use querent_agent::{FeedbackRequest, give_feedback};
use querent_catalog::{PageRequest, PageToken, ProposalState};
use querent_engine::Limits;
use serde::Deserialize;
use serde_json::json;

use crate::admission::Door;
use crate::error::ApiError;
use crate::http::request::{ApiCall, JsonBody, Params, PathText, parse_object_id};
use crate::http::response::{json_response, page_response};
use crate::http::runs::parse_run_id;

const DEFAULT_LIMIT: usize = 100;

/// `POST /v1/agent/runs/{run_id}/feedback`: `{verdict, comment?, sql?, text?, question?, database?}`.
pub(super) async fn give(
    ApiCall { state, principal }: ApiCall,
    PathText(run_id): PathText,
    JsonBody(request): JsonBody<FeedbackRequest>,
) -> Result<Response, ApiError> {
    let run_id = parse_run_id(&run_id)?;
    let mut permit = state.admission.admit(&principal, Door::Http).await?;
    let given = give_feedback(&state.session(principal, Limits::default()), run_id, request).await;
    permit.record(&given);
    Ok(json_response(StatusCode::OK, &json!(given?)))
}

/// `GET /v1/agent/runs/{run_id}/feedback`: what was said of it, oldest first.
pub(super) async fn list(
    ApiCall { state, principal }: ApiCall,
    PathText(run_id): PathText,
) -> Result<Response, ApiError> {
    let feedback = state.engine.catalog().feedback().on_run(&principal, parse_run_id(&run_id)?).await?;
    Ok(json_response(StatusCode::OK, &json!({ "feedback": feedback })))
}

/// `DELETE /v1/agent/runs/{run_id}/feedback`: takes back the caller's own.
pub(super) async fn remove(
    ApiCall { state, principal }: ApiCall,
    PathText(run_id): PathText,
) -> Result<Response, ApiError> {
    let dropped = state.engine.catalog().feedback().remove(&principal, parse_run_id(&run_id)?).await?;
    Ok(json_response(StatusCode::OK, &json!({ "dropped": dropped })))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ProposalParams {
    state: Option<ProposalState>,
    limit: Option<usize>,
    page_token: Option<String>,
}

/// `GET /v1/catalog/query-proposals`: those over tables that the caller may see, oldest first.
pub(super) async fn proposals(
    ApiCall { state, principal }: ApiCall,
    Params(params): Params<ProposalParams>,
) -> Result<Response, ApiError> {
    let page = PageRequest { limit: params.limit.unwrap_or(DEFAULT_LIMIT), after: params.page_token.map(PageToken) };
    let page = state.engine.catalog().feedback().proposals(&principal, params.state, page).await?;
    Ok(page_response("query_proposals", json!(page.items), page.next))
}

/// `POST /v1/catalog/query-proposals/{id}/accept`: runs the query and stores it as a verified one.
pub(super) async fn accept(
    ApiCall { state, principal }: ApiCall,
    PathText(id): PathText,
) -> Result<Response, ApiError> {
    let id = parse_object_id(&id)?;
    let mut permit = state.admission.admit(&principal, Door::Http).await?;
    let accepted = state.session(principal, Limits::default()).accept_proposal(id).await;
    permit.record(&accepted);
    let (proposal, verified) = accepted?;
    Ok(json_response(StatusCode::OK, &json!({ "proposal": proposal, "verified_query": verified })))
}

/// `POST /v1/catalog/query-proposals/{id}/reject`.
pub(super) async fn reject(
    ApiCall { state, principal }: ApiCall,
    PathText(id): PathText,
) -> Result<Response, ApiError> {
    let rejected = state.session(principal, Limits::default()).reject_proposal(parse_object_id(&id)?).await?;
    Ok(json_response(StatusCode::OK, &json!({ "proposal": rejected })))
}
