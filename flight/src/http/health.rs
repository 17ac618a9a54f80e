//! What a load balancer, a scraper and somebody with a browser ask first.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{StatusCode, header};
use serde_json::json;

use super::around::json as json_response;
use crate::AppState;
use crate::error::ApiError;

/// `GET /`: what there is.
pub(super) async fn index() -> Response {
    let index = json!({
        "name": "querent",
        "version": env!("CARGO_PKG_VERSION"),
        "flight_sql": "gRPC on this port",
        "routes": [
            "GET /health",
            "GET /ready",
            "GET /metrics",
            "POST /v1/query",
            "POST /v1/rest/query",
            "POST /v2/rest/query",
            "POST /v1/rest/mgmt",
            "GET /v1/rest/auth/metadata",
            "GET /v1/catalog/schema",
            "GET /v1/catalog/search",
            "GET, POST /v1/catalog/relationships",
            "DELETE /v1/catalog/relationships/{id}",
            "GET, POST /v1/catalog/verified-queries",
            "DELETE /v1/catalog/verified-queries/{id}",
            "GET, POST /v1/catalog/metrics",
            "DELETE /v1/catalog/metrics/{id}",
            "POST /v1/import",
            "POST /v1/agent/ask",
            "GET /v1/agent/runs",
            "GET /v1/agent/runs/{run_id}",
            "POST /v1/agent/runs/{run_id}/cancel",
            "POST /agentengine/api/v1/RunAgent",
            "GET /agentengine/api/v1/SubscribeRunEvents",
            "POST /run_sse",
            "POST /run",
            "GET /list-apps",
            "GET, POST /apps/{app}/users/{user}/sessions",
            "POST, DELETE /mcp",
        ],
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
        return Err(ApiError::new("shutting_down", "the server is shutting down"));
    }
    Ok(json_response(StatusCode::OK, &json!({ "status": "ready" })))
}

/// `GET /metrics`: Prometheus text.
pub(super) async fn metrics(State(state): State<AppState>) -> Response {
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], state.metrics.render()).into_response()
}
