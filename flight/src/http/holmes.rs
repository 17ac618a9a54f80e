//! HolmesGPT's API: `/api/chat` and the routes around it. Callers are known by `X-API-Key` or a bearer token: by this
//! surface's own keys where there are any, else by the server's tokens. Every failure is `{"detail": ...}`.

mod approvals;
mod attach;
pub(super) mod chat;
pub(super) mod error;
mod resume;
pub(super) mod server;
mod surface;

use std::sync::Arc;

use axum::middleware::{from_fn, from_fn_with_state};
use axum::{Extension, Router};

use crate::state::AppState;
use surface::HolmesSurface;

/// Checks the keys of the routes that ask for them.
pub(super) fn add_keys(router: Router<AppState>, state: &AppState) -> Router<AppState> {
    router
        .route_layer(from_fn_with_state(state.clone(), surface::authorize))
        .route_layer(Extension(Arc::new(HolmesSurface::new(state))))
}

/// Writes all errors as HolmesGPT's clients read them.
pub(super) fn add_layers(router: Router<AppState>, _state: &AppState) -> Router<AppState> {
    router.route_layer(from_fn(error::render_errors))
}
