//! What HolmesGPT's routes share: the keys by which their callers are known, the key that signs approvals, and the runs
//! that a repeated request finds again.

use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::HeaderName;
use http::request::Parts;
use querent_catalog::{Principal, Role};
use tokio::sync::OnceCell;

use super::approvals::ApprovalKey;
use super::attach::Attachments;
use crate::auth::{Authenticator, require_role};
use crate::error::ApiError;
use crate::guard;
use crate::state::AppState;
use crate::telemetry::record_caller;

const API_KEY: HeaderName = HeaderName::from_static("x-api-key");
/// How long a run continues without its client.
pub(super) const LINGER: Duration = Duration::from_secs(5);

/// What the routes share.
pub(in crate::http) struct HolmesSurface {
    /// This surface's own keys.
    keys: Authenticator,
    pub(super) approvals: OnceCell<ApprovalKey>,
    pub(super) attachments: Arc<Attachments>,
}

impl HolmesSurface {
    pub(super) fn new(state: &AppState) -> Self {
        Self {
            keys: Authenticator::new(&state.settings.holmes.tokens()),
            approvals: OnceCell::new(),
            attachments: Arc::new(Attachments::new(LINGER)),
        }
    }

    async fn caller(&self, state: &AppState, parts: &Parts) -> Result<Principal, ApiError> {
        let known = if self.keys.is_open() { state.auth.as_ref() } else { &self.keys };
        if known.is_open() {
            guard::check(parts, &state.settings)?;
            return Ok(Principal::local_admin());
        }
        let principal = match parts.headers.get(API_KEY) {
            Some(key) => known.principal_for(key.to_str().unwrap_or_default().trim()).await?,
            None => {
                guard::check_unasked_credentials(parts, &state.settings)?;
                known.authenticate(&parts.headers).await?
            }
        };
        require_role(&principal, Role::Read)?;
        Ok(principal)
    }
}

/// Lets a request pass whose caller is known; its handler finds the `Principal` in the extensions.
pub(super) async fn authorize(
    State(state): State<AppState>,
    Extension(surface): Extension<Arc<HolmesSurface>>,
    request: Request,
    next: Next,
) -> Response {
    let (mut parts, body) = request.into_parts();
    let principal = match surface.caller(&state, &parts).await {
        Ok(principal) => principal,
        Err(error) => return error.into_response(),
    };
    record_caller(principal.subject());
    parts.extensions.insert(principal);
    next.run(Request::from_parts(parts, body)).await
}
