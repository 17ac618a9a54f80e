//! The caller of a gRPC method, and the database that its headers name.

use http::HeaderMap;
use querent_catalog::Principal;
use tonic::Request;

use crate::auth::Authenticator;
use crate::error::{ApiError, ErrorCode};

/// Headers that name the database in which bare names resolve, in order of precedence.
const DATABASE_HEADERS: [&str; 2] = ["x-database", "database"];

/// A caller and the headers of its call.
pub(super) struct FlightCaller {
    pub(super) principal: Principal,
    headers: HeaderMap,
}

impl FlightCaller {
    /// Authenticates a call. Errors: `unauthenticated`.
    pub(super) fn authenticated<T>(authenticator: &Authenticator, request: &Request<T>) -> Result<Self, ApiError> {
        let headers = request.metadata().clone().into_headers();
        let principal = authenticator.authenticate(&headers)?;
        Ok(Self { principal, headers })
    }

    /// Returns the database that the headers name. Errors: `bad_header`.
    pub(super) fn database(&self) -> Result<Option<&str>, ApiError> {
        let Some(name) = DATABASE_HEADERS.into_iter().find(|name| self.headers.contains_key(*name)) else {
            return Ok(None);
        };
        let value = self.headers.get(name).map(|value| value.to_str()).transpose();
        value.map_err(|_| ApiError::new(ErrorCode::BadHeader, format!("header {name} is not text")))
    }
}
