//! KsADK's actions, `/agentengine/api/v1/*`: each answers with one envelope, `{Code, Message, RequestId, Action, Data}`,
//! or with a stream. A session is one of the conversations that `/v1/conversations` shows too.

pub(super) mod actions;
mod call;
pub(super) mod feedback;
pub(super) mod scope;
pub(super) mod sessions;

use axum::Router;
use axum::middleware::from_fn;

use crate::state::AppState;

pub(super) use call::{error_response, is_action};

/// Writes all errors into the envelope.
pub(super) fn add_layers(router: Router<AppState>, _state: &AppState) -> Router<AppState> {
    router.route_layer(from_fn(call::render_errors_in_envelope))
}
