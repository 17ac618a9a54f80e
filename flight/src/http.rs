//! HTTP: one file a surface, every route in one table ([`routes`]).
//!
//! Rooms, bottom up: [`response`], [`request`], [`encoding`], [`stream`], [`continued`] and [`idempotency`] know no route;
//! [`route`] says what a route is; a surface each (`query` to `cube`) answers them; [`openapi`] describes them; [`routes`] lists them;
//! [`middleware`] surrounds them all.

mod a2a;
mod adk;
mod ag_ui;
mod approvals;
mod ask;
mod complete;
mod console;
mod continued;
mod cube;
mod encoding;
mod feedback;
mod health;
mod holmes;
mod idempotency;
mod import;
mod import_folders;
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
use axum::extract::Request;
use axum::response::{IntoResponse, Response};

use crate::error::{ApiError, ErrorCode};
use crate::state::AppState;
use openai::error::OpenAiError;
use request::RequestId;

pub(crate) use import::sweep_spool;
pub(crate) use middleware::wrap_routes;

/// All HTTP routes.
pub(crate) fn router(state: &AppState) -> Router {
    routes::router(state).fallback(not_found).method_not_allowed_fallback(method_not_allowed).with_state(state.clone())
}

async fn not_found(request: Request) -> Response {
    let path = request.uri().path();
    let error = ApiError::new(ErrorCode::NotFound, format!("there is nothing at {path}"));
    in_shape_of(&request, error.with_hint("GET / lists what there is"))
}

async fn method_not_allowed(request: Request) -> Response {
    let path = request.uri().path();
    let message = format!("{path} does not take {}", request.method());
    in_shape_of(&request, ApiError::new(ErrorCode::MethodNotAllowed, message))
}

/// Writes an error as the clients of a path read it: below `/v1`, where ours are not, those are OpenAI's or Anthropic's.
fn in_shape_of(request: &Request, error: ApiError) -> Response {
    const OURS: [&str; 7] = ["agent", "catalog", "import", "mgmt", "query", "rest", "settings"];
    let request_id = request.extensions().get::<RequestId>().map(|id| id.0.as_str()).unwrap_or_default();
    let first = request.uri().path().strip_prefix("/v1/").map(|rest| rest.split('/').next().unwrap_or_default());
    match first {
        Some("messages") => messages::error_response(error, request_id),
        Some(first) if !OURS.contains(&first) => OpenAiError::from(error).into_response(),
        Some(_) | None => error.into_response(),
    }
}
