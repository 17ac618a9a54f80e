//! How a user's browser gets its token: its application's server creates a session and exchanges it for the token. Both
//! are stored as digests and expire, the session within minutes.

use axum::response::Response;
use chrono::{TimeDelta, Utc};
use http::StatusCode;
use querent_agent::protocols::cube;
use querent_catalog::GrantKind;
use serde_json::json;
use uuid::Uuid;

use super::caller::{ApplicationCall, GrantedUser, User, granted_user, user_json};
use crate::error::{ApiError, ErrorCode};
use crate::http::response::json_response;

const SESSION_LIVES: TimeDelta = TimeDelta::minutes(5);
const TOKEN_LIVES: TimeDelta = TimeDelta::hours(24);

/// `POST /api/v1/embed/generate-session`: the user, as in `sessionSettings`. Answers `{sessionId}`.
pub(in crate::http) async fn generate_session(call: ApplicationCall) -> Result<Response, ApiError> {
    let ApplicationCall { state, surface, application, body } = call;
    let settings = cube::generate_session(&body)?;
    let User { principal, expires_at, mut sources } = application.user(&state, settings).await?;
    // Who is known to an identity provider alone cannot be looked up later.
    sources.retain(|source| surface.knows(&state, source));
    let user = GrantedUser { principal, sources };
    let principal = &user.principal;
    let session_id = Uuid::new_v4().to_string();
    let catalog = state.agent.catalog();
    let ends = catalog.now().await? + SESSION_LIVES;
    let ends = expires_at.map_or(ends, |expires_at| expires_at.min(ends));
    // The session carries the user's expiry, so that a token does not outlive the user.
    let stored = json!({ "user": user_json(&user)?, "expires_at": expires_at });
    catalog
        .external_users()
        .insert_grant(GrantKind::Session, &session_id, principal.subject(), &stored.to_string(), ends)
        .await?;
    Ok(json_response(StatusCode::OK, &json!({ "sessionId": session_id })))
}

/// `POST /api/v1/embed/session/token`: `{sessionId}`. Answers `{token}`.
pub(in crate::http) async fn token(call: ApplicationCall) -> Result<Response, ApiError> {
    let ApplicationCall { state, surface, body, .. } = call;
    let session_id = cube::session_token(&body)?;
    let catalog = state.agent.catalog();
    let now = catalog.now().await?;
    let session = catalog.external_users().find_grant(GrantKind::Session, &session_id, now).await?;
    let ended = || ApiError::new(ErrorCode::NotFound, "there is no such session; it may have ended: generate another");
    let session = session.ok_or_else(ended)?;
    let session: serde_json::Value = serde_json::from_str(&session).map_err(ApiError::internal)?;
    let user = session["user"].as_str().unwrap_or_default();
    let expires_at: Option<chrono::DateTime<Utc>> =
        serde_json::from_value(session["expires_at"].clone()).map_err(ApiError::internal)?;
    let ends = now + TOKEN_LIVES;
    let ends = expires_at.map_or(ends, |expires_at| expires_at.min(ends));
    let token = format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple());
    let granted = granted_user(user)?;
    if !surface.still_grants(&state, &granted) {
        return Err(ended());
    }
    let subject = granted.principal.subject();
    catalog.external_users().insert_grant(GrantKind::Token, &token, subject, user, ends).await?;
    Ok(json_response(StatusCode::OK, &json!({ "token": token })))
}
