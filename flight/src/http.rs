//! HTTP: one file a surface, every route in one table ([`routes`]).
//!
//! Rooms, bottom up: [`response`], [`request`], [`encoding`], [`content_encoding`], [`stream`], [`continued`], [`item_changes`],
//! [`elsewhere`] and [`idempotency`] know no route;
//! [`route`] says what a route is, and refuses parameters that none takes; a surface each (`query` to `cube`) answers them; [`openapi`] describes them; [`routes`] lists them;
//! [`middleware`] surrounds them all.

mod a2a;
mod adk;
mod ag_ui;
mod approvals;
mod arriving;
mod ask;
mod caller;
mod complete;
mod console;
mod content_encoding;
mod continued;
mod cube;
mod elsewhere;
mod encoding;
mod feedback;
mod health;
mod holmes;
mod idempotency;
mod import;
mod import_folders;
mod item_changes;
mod knowledge;
mod ksadk;
mod kusto;
mod maintenance;
mod mcp;
mod messages;
mod middleware;
mod openai;
mod openapi;
mod policy;
mod queries;
mod query;
mod relationships;
mod request;
mod response;
mod route;
mod routes;
mod runs;
mod schema;
pub(crate) mod search;
mod sessions;
mod settings;
mod stream;
mod tables;
mod tokens;

use axum::Router;
use axum::extract::{MatchedPath, Request};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, header};

use crate::error::{ApiError, ErrorCode};
use crate::guard::check_host;
use crate::state::AppState;
use content_encoding::BodyEncoding;
use holmes::error::HolmesError;
use middleware::ERROR_CODE;
use openai::error::OpenAiError;
use request::RequestId;
use route::ErrorSchema;

pub(crate) use import::sweep_spool;
pub(crate) use middleware::wrap_routes;
pub(crate) use openai::azure::take_azure_address;

/// All HTTP routes.
pub(crate) fn router(state: &AppState) -> Router {
    let routes = routes::router(state).fallback(not_found).method_not_allowed_fallback(method_not_allowed);
    routes.layer(from_fn(read_headers)).with_state(state.clone())
}

/// Does what the headers of a request say of it, whatever route it is for: its host is one, and its body is decompressed.
async fn read_headers(request: Request, next: Next) -> Response {
    let headers = request.headers();
    let encoding = check_host(headers).and_then(|()| BodyEncoding::of(headers));
    match encoding {
        Ok(None) => next.run(request).await,
        Ok(Some(encoding)) => next.run(encoding.decoded(request)).await,
        Err(error) => {
            let schema = match request.extensions().get::<MatchedPath>() {
                Some(route) => routes::errors_of(route.as_str()),
                None => routes::errors_near(request.uri().path()),
            };
            in_shape_of(schema, &request, error)
        }
    }
}

async fn not_found(request: Request) -> Response {
    let path = request.uri().path();
    let error = ApiError::new(ErrorCode::NotFound, format!("there is nothing at {path}"));
    let error = error.with_hint("GET / lists what there is");
    in_shape_of(routes::errors_near(path), &request, error)
}

/// Answers a method that a path does not take with those that it takes: in `Allow`, and in words.
async fn method_not_allowed(request: Request) -> Response {
    let path = request.uri().path();
    let route = request.extensions().get::<MatchedPath>().map_or(path, MatchedPath::as_str);
    let allowed = routes::methods_of(route);
    let (message, hint) = (format!("{path} does not take {}", request.method()), format!("it takes {allowed}"));
    let schema = routes::errors_of(route);
    let error = match schema {
        // There is no place for a hint.
        ErrorSchema::Flat => ApiError::new(ErrorCode::MethodNotAllowed, format!("{message}; {hint}")),
        _ => ApiError::new(ErrorCode::MethodNotAllowed, message).with_hint(hint),
    };
    let mut response = in_shape_of(schema, &request, error);
    let headers = response.headers_mut();
    headers.insert(ERROR_CODE, HeaderValue::from_static(ErrorCode::MethodNotAllowed.as_str()));
    if let Ok(allowed) = HeaderValue::from_str(&allowed) {
        headers.insert(header::ALLOW, allowed);
    }
    response
}

/// Writes an error that no handler made as the clients of a surface read it.
fn in_shape_of(schema: ErrorSchema, request: &Request, error: ApiError) -> Response {
    match schema {
        ErrorSchema::Anthropic => {
            let request_id = request.extensions().get::<RequestId>().map(|id| id.0.as_str()).unwrap_or_default();
            messages::error_response(error, request_id)
        }
        ErrorSchema::OpenAi if ksadk::is_action(request.uri().path()) => ksadk::error_response(error, request),
        ErrorSchema::OpenAi => OpenAiError::from(error).into_response(),
        ErrorSchema::Detail => HolmesError::from(error).into_response(),
        ErrorSchema::Kusto => kusto::error_response(error, request.headers()),
        ErrorSchema::JsonRpc => mcp::error_response(error),
        // The outermost layer writes them.
        ErrorSchema::Object | ErrorSchema::Flat => error.into_response(),
    }
}
