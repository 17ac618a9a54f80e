//! The guard before every door: who sends a request, and from whose page, by its headers alone, before a byte of its body
//! is read.
//!
//! A call of gRPC is decided here as a whole, before tonic sees it, and its body is bounded ([`grpc`]). For an HTTP route
//! the same questions are asked by [`caller`], once the router knows whether the route lets everybody in.

mod body;
mod grpc;
mod same_site;

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use http::request::Parts;
use querent_catalog::Principal;

use crate::auth::CLIENT_CERTIFICATE;
use crate::config::Settings;
use crate::error::ApiError;
use crate::state::AppState;

pub(crate) use same_site::{check, check_host, check_origin};

/// Where a connection comes from, in the extensions of its requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClientAddress {
    /// Over the network.
    Tcp(SocketAddr),
    /// Over the socket in the file system, whose file only this user may open.
    Unix,
}

impl fmt::Display for ClientAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClientAddress::Tcp(address) => address.fmt(f),
            ClientAddress::Unix => f.write_str("unix"),
        }
    }
}

/// Returns who sends a request. Where there are no tokens it must not come from a page of another site. Who showed a
/// certificate to another server of the catalog, which forwarded the request, is known by that.
/// Errors: `forbidden`, `unauthenticated`, `identity_provider_unavailable`.
pub(crate) async fn caller(state: &AppState, parts: &Parts) -> Result<Principal, ApiError> {
    if state.auth.is_open() {
        check(parts, &state.settings)?;
    } else {
        check_unasked_credentials(parts, &state.settings)?;
    }
    let forwarded = state.forwarding.forwarded(&parts.method, &parts.uri, &parts.headers)?;
    match forwarded.and_then(|forwarded| forwarded.certificate) {
        Some(certificate) => {
            let mut headers = parts.headers.clone();
            headers.insert(CLIENT_CERTIFICATE, certificate);
            state.auth.authenticate(&headers).await
        }
        None => state.auth.authenticate(&parts.headers).await,
    }
}

/// Refuses a request of a foreign page whose credentials the browser may have sent by itself: it shows a certificate,
/// and a password that it was given once, for whatever page sends the request.
pub(crate) fn check_unasked_credentials(parts: &Parts, settings: &Settings) -> Result<(), ApiError> {
    match parts.method.is_safe() || has_bearer(&parts.headers) {
        true => Ok(()),
        false => check_origin(parts, settings),
    }
}

/// Whether a request has a token that a script put there: browsers send none by themselves.
fn has_bearer(headers: &http::HeaderMap) -> bool {
    let sent = headers.get(http::header::AUTHORIZATION).and_then(|sent| sent.to_str().ok()).unwrap_or_default();
    sent.split_once(' ').is_some_and(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
}

/// The layer around all routes: lets a gRPC call pass only if its headers are in order, with a bounded body; other requests
/// go to the router, whose routes ask [`caller`].
pub(crate) async fn guard(State(state): State<Arc<AppState>>, request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    if !grpc::is_call(&parts) {
        return next.run(Request::from_parts(parts, body)).await;
    }
    match grpc::admit(&state, parts, body).await {
        Ok(call) => next.run(call).await,
        Err(refusal) => *refusal,
    }
}
