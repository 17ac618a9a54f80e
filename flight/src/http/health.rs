//! The routes of load balancers, scrapers and people with a browser.

use axum::Extension;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{StatusCode, header};
use serde_json::json;

use crate::error::{ApiError, ErrorCode};
use crate::http::openapi::LazyReference;
use crate::http::response::json_response;
use crate::state::AppState;

/// `GET /`: the server's name, version and routes.
pub(super) async fn index(Extension(reference): Extension<LazyReference>) -> Response {
    let index = json!({
        "name": "querent",
        "version": env!("CARGO_PKG_VERSION"),
        "flight_sql": "gRPC on this port",
        "reference": "/docs",
        "routes": reference.lines(),
    });
    json_response(StatusCode::OK, &index)
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

/// `GET /ready`: the server takes requests; 503 once it is stopping.
pub(super) async fn ready(State(state): State<AppState>) -> Result<Response, ApiError> {
    if state.shutdown.is_unready() {
        return Err(ApiError::new(ErrorCode::ShuttingDown, "the server is shutting down"));
    }
    Ok(json_response(StatusCode::OK, &json!({ "status": "ready" })))
}

/// `GET /metrics`: Prometheus text.
pub(super) async fn metrics(State(state): State<AppState>) -> Response {
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], state.metrics.render()).into_response()
}
