//! `/v1/tokens`: tokens of the catalog, for administrators. A token itself is in the answer that creates it and nowhere
//! else: not in a listing, a log or an error.

use axum::response::Response;
use chrono::Utc;
use http::{HeaderValue, StatusCode, header};
use querent_catalog::{DatabaseScope, NewToken, Principal};
use querent_engine::Limits;
use serde_json::json;

use crate::config::CubeSettings;
use crate::error::{ApiError, ErrorCode};
use crate::http::request::{ApiCall, JsonBody, PageParams, Params, PathText, parse_object_id};
use crate::http::response::{json_response, page_response};

const DEFAULT_LIMIT: usize = 100;

/// `GET`: all tokens, those that ended too.
pub(super) async fn list(
    ApiCall { state, principal }: ApiCall,
    Params(params): Params<PageParams>,
) -> Result<Response, ApiError> {
    let page = state.engine.catalog().tokens().list(&principal, params.page(DEFAULT_LIMIT), Utc::now()).await?;
    Ok(page_response("tokens", json!(page.items), page.next))
}

/// `POST`: `{name, role, subject?, databases?, roles?, groups?, attributes?, expires_at?}`.
pub(super) async fn create(
    ApiCall { state, principal }: ApiCall,
    JsonBody(new): JsonBody<NewToken>,
) -> Result<Response, ApiError> {
    if state.auth.is_open() && new.role != "admin" {
        let message = "the first token of a server must have role admin: with it the server stops letting everybody in";
        return Err(ApiError::new(ErrorCode::BadRequestBody, message)
            .with_hint("make an administrator's token first, then others with it"));
    }
    let subject = new.subject.as_ref().unwrap_or(&new.name);
    if CubeSettings::is_reserved(subject) {
        let message = format!("token: the subject `{subject}` is one of this server's own");
        return Err(ApiError::new(ErrorCode::InvalidObject, message).with_hint("give the token another subject"));
    }
    let is_limited = *principal.scope() != DatabaseScope::All;
    // Runs of the time before there were tokens are nobody's of some databases.
    let is_of_others = subject == Principal::local_admin().subject() || state.auth.is_of_settings(subject);
    if is_limited && subject != principal.subject() && is_of_others {
        return Err(ApiError::new(ErrorCode::InvalidObject, format!("token: `{subject}` is somebody else"))
            .with_hint("give the token another subject, or your own"));
    }
    let text = format!("CREATE TOKEN {} SUBJECT {subject} ROLE {}", new.name, new.role);
    let act = state.session(principal.clone(), Limits::default()).audited_act(&text, None);
    let created = state.engine.catalog().tokens().create(&principal, new, Utc::now()).await;
    act.ended(created.as_ref().map(|_| 0).map_err(|error| error.code()));
    let (info, token) = created?;
    tracing::info!(id = info.id, name = info.name, subject = info.subject, by = info.created_by, "token created");
    let mut body = json!(info);
    body["token"] = json!(token);
    let mut response = json_response(StatusCode::CREATED, &body);
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

/// `DELETE .../{id}`.
pub(super) async fn revoke(
    ApiCall { state, principal }: ApiCall,
    PathText(id): PathText,
) -> Result<Response, ApiError> {
    let id = parse_object_id(&id)?;
    let act = state.session(principal.clone(), Limits::default()).audited_act(&format!("REVOKE TOKEN {id}"), None);
    let revoked = state.engine.catalog().tokens().revoke(&principal, id, Utc::now()).await;
    act.ended(revoked.as_ref().map(|_| 0).map_err(|error| error.code()));
    revoked?;
    tracing::info!(id, by = principal.subject(), "token revoked");
    Ok(json_response(StatusCode::OK, &json!({ "revoked": id })))
}
