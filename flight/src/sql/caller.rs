//! The caller of a gRPC method, and what its headers and its session say of its statements.

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, HeaderValue, header};
use querent_catalog::Principal;
use querent_engine::{Limits, ResultTypes, Session};
use tonic::Request;

use super::endpoints::MAX_ENDPOINTS;
use super::sessions::{FlightSession, FlightSessions};
use super::statement_text::StatementText;
use crate::connection::ConnectionScope;
use crate::error::{ApiError, ErrorCode};
use crate::query_limits::{LEAST_WALL_CLOCK, QueryLanguage, requested_limits};
use crate::result_types::{RESULT_TYPES_HEADER, result_types};
use crate::state::AppState;

/// Headers that name the database in which bare names resolve, in order of precedence.
const DATABASE_HEADERS: [&str; 2] = ["x-database", "database"];
/// The header that names the language of statements.
const LANGUAGE_HEADER: &str = "x-querent-language";
/// The header that says at how many endpoints the rows of a query are fetched.
const ENDPOINTS_HEADER: &str = "x-querent-endpoints";
/// The header by which gRPC's clients say how long they wait for a call.
const DEADLINE_HEADER: &str = "grpc-timeout";
/// How ADBC's driver names itself.
const ADBC_USER_AGENT: &str = "ADBC Flight SQL Driver";

/// A caller, the headers of its call, and its session.
pub(super) struct FlightCaller {
    pub(super) principal: Principal,
    headers: HeaderMap,
    connection: Option<ConnectionScope>,
    session: Option<Arc<FlightSession>>,
}

impl FlightCaller {
    /// Takes a request apart: returns the caller whom the guard let in, with its session, and the message. Errors:
    /// `unauthenticated`, for a call that came past the guard.
    pub(super) fn admitted<T>(sessions: &FlightSessions, request: Request<T>) -> Result<(Self, T), ApiError> {
        let (metadata, mut extensions, message) = request.into_parts();
        let principal = extensions.remove::<Principal>();
        let principal =
            principal.ok_or_else(|| ApiError::new(ErrorCode::Unauthenticated, "the caller is not known"))?;
        let headers = metadata.into_headers();
        let connection = extensions.remove::<ConnectionScope>();
        let session = sessions.find(&principal, &headers, connection.as_ref());
        Ok((Self { principal, headers, connection, session }, message))
    }

    /// Returns the headers of the call.
    pub(super) fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// Returns the call's session, if it has one.
    pub(super) fn session(&self) -> Option<&Arc<FlightSession>> {
        self.session.as_ref()
    }

    /// Returns what the call's connection keeps.
    pub(super) fn connection(&self) -> Option<&ConnectionScope> {
        self.connection.as_ref()
    }

    /// Returns the database where bare names resolve, as the headers or the session have it. Errors: `bad_header`.
    pub(super) fn database(&self) -> Result<Option<String>, ApiError> {
        let Some(name) = DATABASE_HEADERS.into_iter().find(|name| self.headers.contains_key(*name)) else {
            return Ok(self.session.as_ref().and_then(|session| session.options().schema));
        };
        self.header(name)
    }

    /// Returns the language of statements, as the headers or the session have it. Errors: `bad_header`.
    pub(super) fn language(&self) -> Result<QueryLanguage, ApiError> {
        let Some(name) = self.header(LANGUAGE_HEADER)? else {
            return Ok(self.session.as_ref().map(|session| session.options().language).unwrap_or_default());
        };
        QueryLanguage::from_name(&name).ok_or_else(|| {
            ApiError::new(ErrorCode::BadHeader, format!("header {LANGUAGE_HEADER} must be sql or kql, not `{name}`"))
        })
    }

    /// Returns the types that the caller reads, as the headers or the session have it. Errors: `bad_header`.
    pub(super) fn result_types(&self) -> Result<ResultTypes, ApiError> {
        match &self.session {
            Some(session) if !self.headers.contains_key(RESULT_TYPES_HEADER) => Ok(session.options().result_types),
            _ => result_types(&self.headers),
        }
    }

    /// Returns at how many endpoints the caller fetches rows, as the headers or the session have it: one unless it says more.
    /// Errors: `bad_header`.
    pub(super) fn endpoints(&self) -> Result<u32, ApiError> {
        let Some(count) = self.header(ENDPOINTS_HEADER)? else {
            return Ok(self.session.as_ref().and_then(|session| session.options().endpoints).unwrap_or(1));
        };
        let parsed = count.trim().parse().ok().filter(|count| (1..=MAX_ENDPOINTS).contains(count));
        parsed.ok_or_else(|| {
            let message =
                format!("header {ENDPOINTS_HEADER} must be a number from 1 to {MAX_ENDPOINTS}, not `{count}`");
            ApiError::new(ErrorCode::BadHeader, message)
        })
    }

    /// Whether the caller's client asks for rows in the background where a FlightInfo says which columns they have. Without
    /// that it waits for the first of them.
    pub(super) fn fetches_in_background(&self) -> bool {
        let agent = self.headers.get(header::USER_AGENT);
        agent.is_some_and(|agent| agent.as_bytes().starts_with(ADBC_USER_AGENT.as_bytes()))
    }

    /// Returns the engine's session for a statement in `database`. Errors: `bad_header`, `database_not_found`.
    pub(super) async fn engine_session(&self, state: &AppState, database: Option<&str>) -> Result<Session, ApiError> {
        Ok(self.own_session(state)?.in_database(database).await?)
    }

    /// Returns the engine's session for a statement as the call sends it, in the database of its headers or of its session. That of
    /// the session was looked up when it was chosen; where it is gone since, it has no tables, and `USE` chooses another one.
    /// Errors: as [`FlightCaller::engine_session`].
    pub(super) async fn current_session(&self, state: &AppState) -> Result<Session, ApiError> {
        let chosen = self.session.as_ref().and_then(|session| session.options().schema);
        match chosen.filter(|_| !self.names_database()) {
            Some(chosen) => Ok(self.own_session(state)?.in_known_database(&chosen)),
            None => self.engine_session(state, self.database()?.as_deref()).await,
        }
    }

    /// Returns the engine's session for a statement. Errors: as [`FlightCaller::engine_session`].
    pub(super) async fn session_of(&self, state: &AppState, statement: &StatementText) -> Result<Session, ApiError> {
        match statement.database.as_str() {
            "" => self.own_session(state),
            known if statement.is_database_known => Ok(self.own_session(state)?.in_known_database(known)),
            named => self.engine_session(state, Some(named)).await,
        }
    }

    fn own_session(&self, state: &AppState) -> Result<Session, ApiError> {
        let mut limits: Limits = requested_limits(&self.headers, state.settings.limits())?;
        // Nobody waits any longer, and a client that is cut off says nothing.
        if let Some(timeout) = self.headers.get(DEADLINE_HEADER).and_then(|value| grpc_timeout(value.to_str().ok()?)) {
            limits.wall_clock = limits.wall_clock.min(timeout.max(LEAST_WALL_CLOCK));
        }
        let mut session = state.session(self.principal.clone(), limits).through("flight");
        if let Some(own) = &self.session {
            session = session.with_temporary_tables(Arc::clone(own.tables()));
            session = session.with_variables(Arc::clone(own.variables()));
        }
        // What the session's later calls would not see is not set in it.
        if let Some(header) = DATABASE_HEADERS.into_iter().find(|name| self.headers.contains_key(*name)) {
            session = session.with_fixed_database(format!("the header {header}"));
        }
        Ok(session)
    }

    fn names_database(&self) -> bool {
        DATABASE_HEADERS.into_iter().any(|name| self.headers.contains_key(name))
    }

    fn header(&self, name: &str) -> Result<Option<String>, ApiError> {
        let text = |value: &HeaderValue| std::str::from_utf8(value.as_bytes()).map(str::to_owned);
        let value = self.headers.get(name).map(text).transpose();
        value.map_err(|_| ApiError::new(ErrorCode::BadHeader, format!("header {name} is not UTF-8 text")))
    }
}

/// Returns a time as gRPC writes it: at most eight digits, and a unit. What is written otherwise says nothing.
fn grpc_timeout(text: &str) -> Option<Duration> {
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let is_number = (1..=8).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    let number: u64 = is_number.then(|| digits.parse().ok()).flatten()?;
    match unit {
        "H" => Some(Duration::from_secs(number * 3_600)),
        "M" => Some(Duration::from_secs(number * 60)),
        "S" => Some(Duration::from_secs(number)),
        "m" => Some(Duration::from_millis(number)),
        "u" => Some(Duration::from_micros(number)),
        "n" => Some(Duration::from_nanos(number)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_are_read_as_grpc_writes_them() {
        assert_eq!(grpc_timeout("250m"), Some(Duration::from_millis(250)));
        assert_eq!(grpc_timeout("99999999H"), Some(Duration::from_secs(99_999_999 * 3_600)));
        assert_eq!(grpc_timeout("5S"), Some(Duration::from_secs(5)));
        assert_eq!(grpc_timeout("7n"), Some(Duration::from_nanos(7)));
        for wrong in ["", "S", "5", "+5S", "100000000S", "5s", "5µ", "1.5S"] {
            assert_eq!(grpc_timeout(wrong), None, "{wrong}");
        }
    }
}
