//! OpenAI's surface: Responses (also over WebSockets), Chat Completions, the older Completions, conversations, files, embeddings and models.

pub(super) mod azure;
pub(super) mod chat;
pub(super) mod compact;
pub(super) mod completions;
pub(super) mod conversations;
pub(super) mod embeddings;
pub(super) mod error;
pub(super) mod fields;
pub(super) mod files;
pub(super) mod models;
pub(super) mod responses;
pub(super) mod room;
pub(super) mod run;
pub(super) mod text_completions;
pub(super) mod websocket;

use axum::Router;
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use axum::response::Response;

use crate::http::messages::{self, take_key};
use crate::state::AppState;

/// Writes all errors as OpenAI's clients read them. The keys of Azure's and Anthropic's are taken too; these
/// list the models.
pub(super) fn add_layers(router: Router<AppState>, _state: &AppState) -> Router<AppState> {
    router.route_layer(from_fn(render_errors)).route_layer(from_fn(take_key)).route_layer(from_fn(azure::take_key))
}

async fn render_errors(request: Request, next: Next) -> Response {
    // Anthropic's clients read models by the same address.
    if request.headers().contains_key(models::ANTHROPIC_VERSION) && request.uri().path().starts_with("/v1/models") {
        return messages::render_errors(request, next).await;
    }
    error::render_errors(request, next).await
}
