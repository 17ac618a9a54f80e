//! Cube's chat API: `stream-chat-state`, `abort`, and the two routes from which an application's server gets a token
//! for its user's browser. A thread is one conversation of its user's; its runs go on without their clients.

mod caller;
mod chat;
mod embed;
mod lines;

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Extension, Router};
use http::StatusCode;
use querent_catalog::ConversationKey;
use tokio::sync::{Mutex, MutexGuard};

use super::same_site;
use crate::AppState;
use crate::auth::Authenticator;
use crate::error::ApiError;

const STREAM: &str = "/api/v1/public/{account}/agents/{agent}/chat/stream-chat-state";
const ABORT: &str = "/api/v1/public/{account}/agents/{agent}/chat/abort";
const GENERATE_SESSION: &str = "/api/v1/embed/generate-session";
const SESSION_TOKEN: &str = "/api/v1/embed/session/token";
/// Threads share this many locks.
const LOCKS: usize = 64;

/// What the routes share.
pub(super) struct CubeRoutes {
    /// Keys of this API alone; open where there are none.
    keys: Authenticator,
    /// Held while a thread is looked at and its run begins, so that one message begins one run.
    threads: Vec<Mutex<()>>,
}

impl CubeRoutes {
    fn new(state: &AppState) -> Self {
        let keys = Authenticator::new(&state.settings.cube.tokens());
        Self { keys, threads: std::iter::repeat_with(Mutex::default).take(LOCKS).collect() }
    }

    async fn lock(&self, key: &ConversationKey) -> Option<MutexGuard<'_, ()>> {
        let mut hasher = DefaultHasher::new();
        key.hash(&mut hasher);
        let at = hasher.finish() as usize % LOCKS;
        match self.threads.get(at) {
            Some(thread) => Some(thread.lock().await),
            None => None,
        }
    }

    /// Whether anybody may do anything.
    fn is_open(&self, state: &AppState) -> bool {
        self.keys.is_open() && state.auth.is_open()
    }
}

/// Cube's routes. Who calls is found out by their handlers: it stands in the body too.
pub(super) fn routes(state: &AppState) -> Router<AppState> {
    Router::new()
        .route(STREAM, post(chat::stream))
        .route(ABORT, post(chat::abort))
        .route(GENERATE_SESSION, post(embed::generate_session))
        .route(SESSION_TOKEN, post(embed::token))
        .route_layer(from_fn_with_state(state.clone(), around))
        .route_layer(Extension(Arc::new(CubeRoutes::new(state))))
}

/// Refuses pages of other sites where no key is asked for, and gives errors the statuses that Cube's clients know.
async fn around(
    State(state): State<AppState>,
    Extension(routes): Extension<Arc<CubeRoutes>>,
    request: Request,
    next: Next,
) -> Response {
    let (parts, body) = request.into_parts();
    let mut response = match routes.is_open(&state).then(|| same_site::check(&parts, &state.settings)) {
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
