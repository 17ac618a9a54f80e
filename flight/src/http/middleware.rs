//! What surrounds every request: its id, its log line, its metrics, CORS, and the rendering of errors.
//!
//! An error leaves a handler as an [`ApiError`] in the response's extensions and gets its body here, whether a handler, an
//! extractor, a fallback or a caught panic made it.

use std::any::Any;
use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::body::Body;
use axum::extract::{MatchedPath, Request};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use querent_engine::EngineError;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::cors::{AllowHeaders, AllowOrigin, CorsLayer, ExposeHeaders};
use uuid::Uuid;

use crate::error::{ApiError, BEARER, ErrorShape, RenderedError};
use crate::guard::{ClientAddress, guard};
use crate::http::request::RequestId;
use crate::metrics;
use crate::state::AppState;
use crate::telemetry::{self, RequestSpan};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// The header with the stable code of an error.
pub(super) const ERROR_CODE: HeaderName = HeaderName::from_static("x-querent-error-code");
/// The longest id that a client may choose, since it goes into every log line.
const MAX_REQUEST_ID: usize = 128;

/// Wraps all routes, gRPC's included, with the guard innermost.
pub(crate) fn wrap_routes(routes: Router, state: &AppState) -> Router {
    // Each request copies the layers of its route: one handle rather than all that the state has.
    let guarded = routes.layer(from_fn_with_state(Arc::new(state.clone()), guard));
    let wrapped = guarded.layer(CatchPanicLayer::custom(panicked)).layer(from_fn(observe));
    match cors(&state.settings.http.cors_allowed_origins) {
        Some(cors) => wrapped.layer(cors),
        None => wrapped,
    }
}

/// Gives a request its id, and tells the log and the metrics how it ended.
async fn observe(mut request: Request, next: Next) -> Response {
    let started = Instant::now();
    let id = request_id(request.headers());
    let route = request.extensions().get::<MatchedPath>().map_or("unmatched", MatchedPath::as_str).to_owned();
    let method = request.method().clone();
    let path = request.uri().path().to_owned();
    let peer = request.extensions().get::<ClientAddress>().map(ToString::to_string).unwrap_or_default();
    let trace = telemetry::request_span(&request, &route, &id);
    let span = trace
        .in_scope(|| tracing::info_span!("request", request_id = %id, %method, path, subject = tracing::field::Empty));
    request.extensions_mut().insert(RequestId(id.clone()));
    request.extensions_mut().insert(RequestSpan(trace.clone()));
    let is_of_script = is_of_script(request.headers());

    let response = telemetry::answered(trace.clone(), span.clone(), next.run(request)).await;
    let mut response = render_error(response, &path, &id);
    if let Ok(value) = HeaderValue::from_str(&id) {
        response.headers_mut().insert(REQUEST_ID, value);
    }
    if is_of_script && response.headers().contains_key(header::WWW_AUTHENTICATE) {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, BEARER);
    }
    let (status, elapsed) = (response.status(), started.elapsed());
    metrics::http_request(&route, &method, status, elapsed);
    span.in_scope(|| {
        let (status, elapsed_ms) = (status.as_u16(), elapsed.as_millis());
        // Probes and scrapes come every few seconds.
        match route.as_str() {
            "/health" | "/ready" | "/healthz" | "/readyz" | "/metrics" => {
                tracing::debug!(status, elapsed_ms, peer, "answered")
            }
            _ => tracing::info!(status, elapsed_ms, peer, "answered"),
        }
    });
    telemetry::traced_response(response, trace, span)
}

/// Whether a script in a browser sends the request. Challenged for a name and a password, the browser would ask the person
/// for them, and the script wait for its answer; the script asks for a token itself.
fn is_of_script(headers: &HeaderMap) -> bool {
    headers.get("sec-fetch-mode").is_some_and(|mode| mode != "navigate")
}

/// Returns the client's id if a log line can carry it, else a new one.
fn request_id(headers: &HeaderMap) -> String {
    let sent = headers.get(REQUEST_ID).and_then(|value| value.to_str().ok());
    let fit =
        |id: &&str| !id.is_empty() && id.len() <= MAX_REQUEST_ID && id.bytes().all(|byte| byte.is_ascii_graphic());
    sent.filter(fit).map_or_else(|| Uuid::now_v7().to_string(), str::to_owned)
}

fn render_error(mut response: Response, path: &str, request_id: &str) -> Response {
    let Some(error) = response.extensions_mut().remove::<ApiError>() else {
        return response;
    };
    metrics::error(error.code().as_str());
    let rendered = response.extensions_mut().remove::<RenderedError>();
    let (mut parts, _) = response.into_parts();
    parts.headers.remove(header::CONTENT_LENGTH);
    parts.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    parts.headers.insert(ERROR_CODE, HeaderValue::from_static(error.code().as_str()));
    let body = match rendered {
        Some(rendered) => {
            parts.status = rendered.status;
            rendered.body
        }
        None => error.body(ErrorShape::for_path(path), request_id),
    };
    Response::from_parts(parts, Body::from(body.to_string()))
}

fn panicked(payload: Box<dyn Any + Send + 'static>) -> Response {
    let text = payload.downcast_ref::<&str>().copied().or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    let text = text.unwrap_or("no message");
    match EngineError::no_threads(text) {
        Some(error) => ApiError::from(error).into_response(),
        None => ApiError::internal(format_args!("panicked: {text}")).into_response(),
    }
}

/// Returns the CORS layer of the settings; `None` without allowed origins.
fn cors(origins: &[String]) -> Option<CorsLayer> {
    if origins.is_empty() {
        return None;
    }
    let allowed = match origins.iter().any(|origin| origin == "*") {
        true => AllowOrigin::any(),
        false => AllowOrigin::list(origins.iter().filter_map(|origin| HeaderValue::from_str(origin).ok())),
    };
    let exposed = [
        "x-request-id",
        "x-querent-error-code",
        "x-kyma-budget-limit",
        "x-querent-budget-limit",
        "x-querent-run-server",
        "retry-after",
        // Libraries in browsers read here that what ran is not to be sent again.
        "x-should-retry",
        "idempotency-replayed",
        "x-querent-result-cache",
        "request-id",
        "mcp-session-id",
    ];
    Some(
        CorsLayer::new()
            .allow_origin(allowed)
            .allow_methods([Method::GET, Method::POST, Method::PATCH, Method::DELETE])
            .allow_headers(AllowHeaders::mirror_request())
            .expose_headers(ExposeHeaders::list(exposed.map(HeaderName::from_static))),
    )
}
