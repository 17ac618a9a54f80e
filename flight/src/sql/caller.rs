//! Who calls over gRPC, and what the call's headers ask for.

use http::HeaderMap;
use querent_catalog::Principal;
use tonic::Request;

use crate::auth::Authenticator;
use crate::error::{ApiError, ErrorCode};

/// Headers that name the database in which bare names resolve, first come first.
const DATABASE_HEADERS: [&str; 2] = ["x-database", "database"];

/// A caller and the headers of its call.
pub(super) struct FlightCaller {
    pub(super) principal: Principal,
    headers: HeaderMap,
}

impl FlightCaller {
    /// Errors: `unauthenticated`.
    pub(super) fn authenticated<T>(authenticator: &Authenticator, request: &Request<T>) -> Result<Self, ApiError> {
        let headers = request.metadata().clone().into_headers();
        let principal = authenticator.authenticate(&headers)?;
        Ok(Self { principal, headers })
    }

    /// The database that the headers name. Errors: `bad_header`.
    pub(super) fn database(&self) -> Result<Option<&str>, ApiError> {
        let Some(name) = DATABASE_HEADERS.into_iter().find(|name| self.headers.contains_key(*name)) else {
            return Ok(None);
        };
        let value = self.headers.get(name).map(|value| value.to_str()).transpose();
        value.map_err(|_| ApiError::new(ErrorCode::BadHeader, format!("header {name} is not text")))
    }
}
