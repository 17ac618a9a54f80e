//! HTTP: one file a surface, every route in one table ([`routes`]).
//!
//! Rooms, bottom up: [`response`], [`request`], [`encoding`] and [`stream`] know no route; [`route`] says what a
//! route is; a surface each (`query` to `cube`) answers them; [`openapi`] describes them; [`routes`] lists them;
//! [`middleware`] surrounds them all.

mod adk;
mod ask;
mod cube;
mod encoding;
mod health;
mod holmes;
mod import;
mod import_folders;
mod knowledge;
mod ksadk;
mod kusto;
mod mcp;
mod middleware;
mod openai;
mod openapi;
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
mod stream;

use axum::Router;
use axum::extract::Request;

use crate::error::{ApiError, ErrorCode};
use crate::state::AppState;

pub(crate) use import::sweep_spool;
pub(crate) use middleware::wrap_routes;

/// All HTTP routes.
pub(crate) fn router(state: &AppState) -> Router {
    routes::router(state).fallback(not_found).method_not_allowed_fallback(method_not_allowed).with_state(state.clone())
}

async fn not_found(request: Request) -> ApiError {
    ApiError::new(ErrorCode::NotFound, format!("there is nothing at {}", request.uri().path()))
        .with_hint("GET / lists what there is")
}

async fn method_not_allowed(request: Request) -> ApiError {
    ApiError::new(ErrorCode::MethodNotAllowed, format!("{} does not take {}", request.uri().path(), request.method()))
}
