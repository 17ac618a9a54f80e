//! HolmesGPT's API: `/api/chat` and the routes around it. Callers are known by `X-API-Key` or a bearer token: by this
//! surface's own keys where there are any, else by the server's tokens. Every failure is `{"detail": ...}`.

mod approvals;
mod attach;
mod chat;
mod error;
mod resume;

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Router};
use http::{HeaderName, StatusCode};
use querent_agent::SECTION_KEYS;
use querent_catalog::{Principal, Role};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use super::openai::json_response;
use super::request::Params;
use super::same_site;
use crate::AppState;
use crate::auth::{Authenticator, require_role};
use crate::error::{ApiError, ErrorCode};
use approvals::ApprovalKey;
use attach::Attachments;
use error::HolmesError;

const API_KEY: HeaderName = HeaderName::from_static("x-api-key");
/// How long a run goes on without its client.
const LINGER: Duration = Duration::from_secs(5);

/// What the routes share.
struct HolmesRoutes {
    /// This surface's own keys.
    keys: Authenticator,
    approvals: OnceCell<ApprovalKey>,
    attachments: Arc<Attachments>,
}

/// HolmesGPT's routes.
pub(super) fn routes(state: &AppState) -> Router<AppState> {
    let shared = Arc::new(HolmesRoutes {
        keys: Authenticator::new(&state.settings.holmes.tokens()),
        approvals: OnceCell::new(),
        attachments: Arc::new(Attachments::new(LINGER)),
    });
    let callers = Router::new()
        .route("/api/chat", post(chat::chat).fallback(error::method_not_allowed))
        .route("/api/model", get(model).fallback(error::method_not_allowed))
        .route("/api/info", get(info).fallback(error::method_not_allowed))
        .route("/api/checks/execute", post(not_here).fallback(error::method_not_allowed))
        .route("/api/oauth/callback", post(not_here).fallback(error::method_not_allowed))
        .route_layer(from_fn_with_state(state.clone(), known_callers))
        .route_layer(Extension(shared));
    Router::new()
        .route("/healthz", get(health).fallback(error::method_not_allowed))
        .route("/readyz", get(ready).fallback(error::method_not_allowed))
        .merge(callers)
        .route_layer(from_fn(error::around))
}

/// Lets a request pass whose caller is known.
async fn known_callers(
    State(state): State<AppState>,
    Extension(routes): Extension<Arc<HolmesRoutes>>,
    request: Request,
    next: Next,
) -> Response {
    let (mut parts, body) = request.into_parts();
    let principal = match caller(&state, &routes, &parts) {
        Ok(principal) => principal,
        Err(error) => return error.into_response(),
    };
    tracing::Span::current().record("subject", principal.subject());
    parts.extensions.insert(principal);
    next.run(Request::from_parts(parts, body)).await
}

fn caller(state: &AppState, routes: &HolmesRoutes, parts: &http::request::Parts) -> Result<Principal, ApiError> {
    let own = !routes.keys.is_open();
    let known = if own { &routes.keys } else { state.auth.as_ref() };
    if known.is_open() {
        same_site::check(parts, &state.settings)?;
        return Ok(Principal::local_admin());
    }
    let principal = match parts.headers.get(API_KEY) {
        Some(key) => known.principal_for(key.to_str().unwrap_or_default().trim())?,
        None => known.authenticate(&parts.headers)?,
    };
    require_role(&principal, Role::Read)?;
    Ok(principal)
}

async fn health() -> Response {
    json_response(StatusCode::OK, &json!({ "status": "healthy" }))
}

async fn ready(State(state): State<AppState>) -> Result<Response, HolmesError> {
    if state.shutdown.is_unready() {
        return Err(ApiError::new(ErrorCode::ShuttingDown, "the server is shutting down").into());
    }
    Ok(json_response(StatusCode::OK, &json!({ "status": "ready", "models": model_names(&state) })))
}

fn model_names(state: &AppState) -> Vec<&str> {
    state.agent.models().entries().map(|entry| entry.name.as_str()).collect()
}

/// The models' names: a list, or the list's JSON as a text for clients of servers that send it so.
async fn model(State(state): State<AppState>) -> Response {
    let names = json!(model_names(&state));
    let names = if state.settings.holmes.model_name_as_text { json!(names.to_string()) } else { names };
    json_response(StatusCode::OK, &json!({ "model_name": names }))
}

#[derive(Deserialize)]
struct InfoParams {
    detail: Option<String>,
}

async fn info(State(state): State<AppState>, Params(params): Params<InfoParams>) -> Response {
    let mut info = json!({
        "name": "querent",
        "version": env!("CARGO_PKG_VERSION"),
        "models": model_names(&state),
        "default_model": state.agent.models().default_entry().name,
    });
    if params.detail.as_deref() == Some("full") {
        let config = state.agent.config();
        info["cluster_name"] = json!(state.settings.holmes.cluster_name);
        info["prompt_sections"] = json!(SECTION_KEYS);
        info["toolsets"] =
            json!([{ "name": "querent", "enabled": true, "status": "enabled", "tools": tool_names(&state) }]);
        info["limits"] = json!({
            "run_timeout_seconds": config.run_timeout.as_secs_f64(),
            "max_tool_calls": config.max_tool_calls,
        });
        info["tool_approval"] = json!(config.write_tools);
    }
    json_response(StatusCode::OK, &info)
}

fn tool_names(state: &AppState) -> Vec<Value> {
    querent_agent::tool_names(state.agent.config().write_tools).map(|name| json!(name)).collect()
}

/// What HolmesGPT has and this server does not.
async fn not_here(request: Request) -> HolmesError {
    let message = format!(
        "{} is not available on this server: there are no checks and no OAuth toolsets here",
        request.uri().path()
    );
    HolmesError::new(StatusCode::NOT_IMPLEMENTED, message)
}
