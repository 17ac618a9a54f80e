//! The routes of load balancers, scrapers and people with a browser.

use axum::Extension;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, StatusCode, header};
use querent_catalog::Principal;
use querent_catalog::policy::Rights;
use serde_json::json;

use crate::error::{ApiError, ErrorCode};
use crate::http::console;
use crate::http::openapi::LazyReference;
use crate::http::response::json_response;
use crate::metrics::{engine_state, shown};
use crate::state::AppState;

/// `GET /`: the server's name, version and routes; the console for a browser.
pub(super) async fn index(Extension(reference): Extension<LazyReference>, headers: HeaderMap) -> Response {
    if prefers_html(&headers) {
        return console::page();
    }
    let index = json!({
        "name": "querent",
        "version": env!("CARGO_PKG_VERSION"),
        "flight_sql": "gRPC on this port",
        "reference": "/docs",
        "routes": reference.lines(),
    });
    json_response(StatusCode::OK, &index)
}

/// Whether the client names HTML before any other type, as browsers do.
fn prefers_html(headers: &HeaderMap) -> bool {
    let accept = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    let first = accept.split(',').next().unwrap_or_default();
    let media_type = first.split(';').next().unwrap_or_default().trim();
    media_type.eq_ignore_ascii_case("text/html") || media_type.eq_ignore_ascii_case("application/xhtml+xml")
}

/// `GET /health`: the process answers. `framework` and `agent` are names, for clients that tell several agents apart.
pub(super) async fn health() -> Response {
    let health = json!({
        "status": "ok",
        "version": env!("CARGO_PKG_VERSION"),
        "framework": "querent",
        "agent": "querent",
    });
    json_response(StatusCode::OK, &health)
}

/// `GET /ready`: the server takes requests; 503 once it is stopping. A shared catalog that is away is said, and no reason to send
/// nobody here: all servers are without it, and what they know of it they go on to answer.
pub(super) async fn ready(State(state): State<AppState>) -> Result<Response, ApiError> {
    if state.shutdown.is_unready() {
        return Err(ApiError::new(ErrorCode::ShuttingDown, "the server is shutting down"));
    }
    let ready = match state.engine.catalog().is_reachable() {
        true => json!({ "status": "ready" }),
        false => json!({ "status": "ready", "catalog": "unavailable" }),
    };
    Ok(json_response(StatusCode::OK, &ready))
}

/// `GET /metrics`: Prometheus text.
pub(super) async fn metrics(State(state): State<AppState>, Extension(who): Extension<Principal>) -> Response {
    engine_state(&state.engine);
    let sees_all = Rights::new(&who, &state.engine.catalog().policies().current()).sees_all();
    let shown = shown(state.metrics.render(), sees_all);
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], shown).into_response()
}
