//! `/v1/policy`: the policy of the catalog, for administrators: reading it, putting another in its place, and asking what it
//! says of a caller.

use axum::response::Response;
use http::StatusCode;
use querent_catalog::TableName;
use serde::Deserialize;
use serde_json::json;

use crate::admission::Door;
use crate::error::{ApiError, ErrorCode};
use crate::http::maintenance::require_all_databases;
use crate::http::request::{ApiCall, JsonBody, Params, QueryBytes};
use crate::http::response::json_response;
use crate::policy_cases::{CallerDescription, PolicyCase, policy_json, replaced_json, run_cases};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReplaceParams {
    #[serde(default)]
    dry_run: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ExplainBody {
    table: TableName,
    #[serde(rename = "as")]
    caller: CallerDescription,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TestBody {
    cases: Vec<PolicyCase>,
}

/// `GET`: the policy that holds.
pub(super) async fn show(ApiCall { state, principal }: ApiCall) -> Result<Response, ApiError> {
    require_all_databases(&principal)?;
    let policies = state.engine.catalog().policies();
    let versions = policies.versions(100).await?;
    let policy = policies.in_force().await?;
    Ok(json_response(StatusCode::OK, &policy_json(&policy, &versions)))
}

/// `POST`: statements in the place of the policy that holds.
pub(super) async fn replace(
    ApiCall { state, principal }: ApiCall,
    Params(params): Params<ReplaceParams>,
    QueryBytes(body): QueryBytes,
) -> Result<Response, ApiError> {
    let text = std::str::from_utf8(&body)
        .map_err(|_| ApiError::new(ErrorCode::BadRequestBody, "the body is not UTF-8 text; send the statements"))?;
    let session = state.session(principal, state.settings.limits());
    let (before, document) = session.replace_policy(text, params.dry_run).await?;
    let now = state.engine.catalog().policies().current().version;
    Ok(json_response(StatusCode::OK, &replaced_json(&before, &document, now, params.dry_run)))
}

/// `POST .../explain`: `{table: {database, table}, as: {subject, ...}}`.
pub(super) async fn explain(
    ApiCall { state, principal }: ApiCall,
    JsonBody(body): JsonBody<ExplainBody>,
) -> Result<Response, ApiError> {
    let caller = body.caller.principal().map_err(bad_body)?;
    let session = state.session(principal, state.settings.limits());
    Ok(json_response(StatusCode::OK, &json!(session.explain_policy(&caller, &body.table).await?)))
}

/// `POST .../test`: `{cases: [{as, sql, rows | row_count | error}]}`.
pub(super) async fn test(
    ApiCall { state, principal }: ApiCall,
    JsonBody(body): JsonBody<TestBody>,
) -> Result<Response, ApiError> {
    // The cases run with other callers' rights.
    require_all_databases(&principal)?;
    let _permit = state.admission.admit(&principal, Door::Http).await?;
    let outcomes = run_cases(&state.engine, state.settings.limits(), &body.cases).await.map_err(bad_body)?;
    let passed = outcomes.iter().all(|outcome| outcome.passed);
    Ok(json_response(StatusCode::OK, &json!({ "passed": passed, "cases": outcomes })))
}

fn bad_body(message: String) -> ApiError {
    ApiError::new(ErrorCode::BadRequestBody, message)
}
