//! Cube's chat API: `stream-chat-state`, `abort`, and the two routes from which an application's server gets a token
//! for its user's browser. A thread is a conversation of one user; its runs continue without their clients.

mod caller;
pub(super) mod chat;
pub(super) mod embed;
mod lines;
mod surface;

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Router};
use http::StatusCode;

use crate::error::ApiError;
use crate::guard::check;
use crate::state::AppState;
use surface::CubeSurface;

/// Lets requests pass whose key or token is known.
pub(super) fn add_keys(router: Router<AppState>, state: &AppState) -> Router<AppState> {
    router.route_layer(from_fn_with_state(state.clone(), caller::authorize))
}

/// Gives the routes what they share. The handlers find out for whom a caller asks, since the body says that.
pub(super) fn add_layers(router: Router<AppState>, state: &AppState) -> Router<AppState> {
    router
        .route_layer(from_fn_with_state(state.clone(), guard))
        .route_layer(Extension(Arc::new(CubeSurface::new(state))))
}

/// Refuses pages of other sites where no key is required, and maps errors to the statuses that Cube's clients know.
async fn guard(
    State(state): State<AppState>,
    Extension(surface): Extension<Arc<CubeSurface>>,
    request: Request,
    next: Next,
) -> Response {
    let (parts, body) = request.into_parts();
    let mut response = match surface.is_open(&state).then(|| check(&parts, &state.settings)) {
        Some(Err(error)) => error.into_response(),
        _ => next.run(Request::from_parts(parts, body)).await,
    };
    if response.extensions().get::<ApiError>().is_some() {
        let status = match response.status() {
            known @ (StatusCode::BAD_REQUEST
            | StatusCode::UNAUTHORIZED
            | StatusCode::FORBIDDEN
            | StatusCode::NOT_FOUND
            | StatusCode::METHOD_NOT_ALLOWED
            | StatusCode::TOO_MANY_REQUESTS
            | StatusCode::SERVICE_UNAVAILABLE) => known,
            other if other.is_server_error() => StatusCode::INTERNAL_SERVER_ERROR,
            _ => StatusCode::BAD_REQUEST,
        };
        *response.status_mut() = status;
    }
    response
}
