//! HTTP: one file a surface. Routes are grouped by the role they need, so that a new one cannot forget to ask.

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
mod runs;
mod same_site;
mod schema;
pub(crate) mod search;
mod sessions;
mod stream;

use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post};
use axum::{Extension, Router};
use querent_catalog::Role;

use crate::AppState;
use crate::auth::require_role;
use crate::error::{ApiError, ErrorCode};

pub(crate) use import::sweep_spool;
pub(crate) use middleware::around_everything;

/// All HTTP routes.
pub(crate) fn router(state: &AppState) -> Router {
    let anyone = Router::new()
        .route("/", get(health::index))
        .route("/health", get(health::health))
        .route("/ready", get(health::ready))
        .route("/openapi.json", get(openapi::json))
        .route("/docs", get(openapi::page));
    let readers = Router::new()
        .route("/metrics", get(health::metrics))
        .route("/v1/query", post(query::query))
        .route("/v1/catalog/schema", get(schema::schema))
        .route("/v1/catalog/search", get(search::search))
        .route("/v1/catalog/relationships", get(relationships::list))
        .route("/v1/catalog/verified-queries", get(knowledge::list_queries))
        .route("/v1/catalog/metrics", get(knowledge::list_metrics))
        .route("/v1/agent/ask", post(ask::ask))
        .route("/v1/agent/runs", get(runs::list))
        .route("/v1/agent/runs/{run_id}", get(runs::get))
        .route("/v1/agent/runs/{run_id}/cancel", post(runs::cancel))
        .route("/v1/agent/sessions", get(sessions::list))
        .route("/v1/agent/sessions/{id}", get(sessions::get).delete(sessions::remove))
        .route("/v1/agent/sessions/{id}/turns", get(sessions::turns))
        .route_layer(from_fn_with_state(state.clone(), readers_only));
    let openai = openai_routes()
        .route_layer(from_fn_with_state(state.clone(), readers_only))
        .route_layer(from_fn(openai::around));
    let ksadk = ksadk::routes()
        .route_layer(from_fn_with_state(state.clone(), readers_only))
        .route_layer(from_fn(ksadk::around));
    let adk =
        adk::routes().route_layer(from_fn_with_state(state.clone(), readers_only)).route_layer(from_fn(openai::around));
    let writers = Router::new()
        .route("/v1/import", post(import::import))
        .route("/v1/import/tree", post(import_folders::import_folders))
        .route("/v1/catalog/relationships", post(relationships::declare))
        .route("/v1/catalog/relationships/{id}", delete(relationships::remove))
        .route("/v1/catalog/verified-queries", post(knowledge::verify_query))
        .route("/v1/catalog/verified-queries/{id}", delete(knowledge::drop_query))
        .route("/v1/catalog/metrics", post(knowledge::define_metric))
        .route("/v1/catalog/metrics/{id}", delete(knowledge::drop_metric))
        .route_layer(from_fn_with_state(state.clone(), writers_only));
    let kusto = Router::new()
        .route("/v1/rest/query", post(kusto::query_v1))
        .route("/v2/rest/query", post(kusto::query_v2))
        .route("/v1/rest/mgmt", post(kusto::management))
        .route_layer(from_fn_with_state(state.clone(), readers_only))
        .route("/v1/rest/auth/metadata", get(kusto::auth_metadata))
        .route_layer(from_fn(kusto::around));
    let mcp = Router::new()
        .route("/mcp", post(mcp::post).delete(mcp::delete))
        .route_layer(from_fn_with_state(state.clone(), readers_only))
        .route_layer(Extension(mcp::McpRoutes::new(state)))
        .route_layer(from_fn_with_state(state.clone(), mcp::around));
    anyone
        .merge(kusto)
        .merge(openai)
        .merge(ksadk)
        .merge(adk)
        .merge(holmes::routes(state))
        .merge(mcp)
        .merge(cube::routes(state))
        .merge(readers)
        .merge(writers)
        .fallback(not_found)
        .method_not_allowed_fallback(method_not_allowed)
        .with_state(state.clone())
}

/// OpenAI's surface.
fn openai_routes() -> Router<AppState> {
    use openai::{chat, conversations, files, models, responses};
    Router::new()
        .route("/v1/responses", post(responses::create))
        .route("/v1/responses/{id}", get(responses::retrieve).delete(responses::remove))
        .route("/v1/responses/{id}/cancel", post(responses::cancel))
        .route("/v1/responses/{id}/input_items", get(responses::list_input))
        .route("/v1/conversations", post(conversations::create))
        .route(
            "/v1/conversations/{id}",
            get(conversations::get).post(conversations::update).delete(conversations::remove),
        )
        .route("/v1/conversations/{id}/items", get(conversations::list_items).post(conversations::add_items))
        .route("/v1/conversations/{id}/items/{item}", get(conversations::get_item).delete(conversations::remove_item))
        .route("/v1/chat/completions", post(chat::create))
        .route("/v1/models", get(models::list))
        .route("/v1/models/{id}", get(models::get))
        .route("/v1/files", get(files::list).post(files::upload))
        .route("/v1/files/{id}", get(files::get).delete(files::remove))
        .route("/v1/files/{id}/content", get(files::content))
}

async fn readers_only(State(state): State<AppState>, request: Request, next: Next) -> Response {
    authorised(&state, Role::Read, request, next).await
}

async fn writers_only(State(state): State<AppState>, request: Request, next: Next) -> Response {
    authorised(&state, Role::Write, request, next).await
}

/// Lets a request pass whose caller is known and has the role; its handler finds the `Principal` in the extensions.
async fn authorised(state: &AppState, needed: Role, mut request: Request, next: Next) -> Response {
    if state.auth.is_open() {
        let (parts, body) = request.into_parts();
        if let Err(error) = same_site::check(&parts, &state.settings) {
            return error.into_response();
        }
        request = Request::from_parts(parts, body);
    }
    let principal = match state.auth.authenticate(request.headers()) {
        Ok(principal) => principal,
        Err(error) => return error.into_response(),
    };
    if let Err(error) = require_role(&principal, needed) {
        return error.into_response();
    }
    tracing::Span::current().record("subject", principal.subject());
    request.extensions_mut().insert(principal);
    next.run(request).await
}

async fn not_found(request: Request) -> ApiError {
    ApiError::new(ErrorCode::NotFound, format!("there is nothing at {}", request.uri().path()))
        .with_hint("GET / lists what there is")
}

async fn method_not_allowed(request: Request) -> ApiError {
    ApiError::new(ErrorCode::MethodNotAllowed, format!("{} does not take {}", request.uri().path(), request.method()))
}
