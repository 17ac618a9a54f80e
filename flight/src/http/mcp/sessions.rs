//! The sessions of MCP clients, bounded in number and idle time. Each has an owner and the requests that can be cancelled,
//! and nothing else: a session that is forgotten costs its client a new `initialize`.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::error::{ApiError, ErrorCode};
use crate::mcp::{ClientAbilities, OpenRequests, SessionLogLevel};
use crate::metrics;

/// The most requests of one session at once.
const MAX_CALLS: usize = 256;

/// Every open session.
pub(super) struct McpSessions {
    max: usize,
    idle: Duration,
    open: Mutex<HashMap<String, McpSession>>,
}

struct McpSession {
    subject: String,
    used: Instant,
    calls: HashMap<String, CancellationToken>,
    log_level: SessionLogLevel,
    client: ClientAbilities,
    open_requests: OpenRequests,
}

impl McpSession {
    fn is_idle(&self) -> bool {
        self.calls.is_empty()
    }
}

impl McpSessions {
    pub(super) fn new(max: usize, idle: Duration) -> Self {
        Self { max, idle, open: Mutex::default() }
    }

    /// Opens a session. If there are too many, the one that the same owner used longest ago is forgotten, or somebody else's
    /// if the owner has none. Errors: `too_many_requests` if all are busy.
    pub(super) fn open(&self, subject: &str, client: ClientAbilities) -> Result<String, ApiError> {
        let id = Uuid::new_v4().to_string();
        let session = McpSession {
            subject: subject.to_owned(),
            used: Instant::now(),
            calls: HashMap::new(),
            log_level: SessionLogLevel::default(),
            client,
            open_requests: OpenRequests::default(),
        };
        let mut open = self.open.lock();
        if open.len() >= self.max {
            open.retain(|_, session| !session.is_idle() || session.used.elapsed() < self.idle);
        }
        if open.len() >= self.max {
            let idle = open.iter().filter(|(_, session)| session.is_idle());
            let oldest = idle.min_by_key(|(_, session)| (session.subject != subject, session.used));
            let oldest = oldest.map(|(id, _)| id.clone()).ok_or_else(|| {
                ApiError::new(
                    ErrorCode::TooManyRequests,
                    format!("{} sessions are at work, which is the limit", self.max),
                )
            })?;
            open.remove(&oldest);
        }
        open.insert(id.clone(), session);
        metrics::mcp_sessions(open.len());
        Ok(id)
    }

    /// Returns which messages of the log the session wants, if it is the subject's.
    pub(super) fn log_level(&self, id: &str, subject: &str) -> Option<SessionLogLevel> {
        let open = self.open.lock();
        open.get(id).filter(|session| session.subject == subject).map(|session| session.log_level.clone())
    }

    /// Whether the client of the session shows apps, if it is the subject's.
    pub(super) fn shows_apps(&self, id: &str, subject: &str) -> bool {
        let open = self.open.lock();
        open.get(id).is_some_and(|session| session.subject == subject && session.client.shows_apps)
    }

    /// Returns where requests to the client of the session wait for their answers, if it is the subject's and its client asks its
    /// user.
    pub(super) fn open_requests(&self, id: &str, subject: &str) -> Option<OpenRequests> {
        let open = self.open.lock();
        let session = open.get(id).filter(|session| session.subject == subject && session.client.asks_user);
        session.map(|session| session.open_requests.clone())
    }

    /// Takes in what the client of the session answers to a request of the server. Returns whether somebody waits for it.
    pub(super) fn answer(&self, id: &str, request: &str, answer: &Value) -> bool {
        let open_requests = self.open.lock().get(id).map(|session| session.open_requests.clone());
        open_requests.is_some_and(|open| open.answer(request, answer.clone()))
    }

    /// Marks the session as used now. Errors: `session_not_found`, also if it is somebody else's.
    pub(super) fn touch(&self, id: &str, subject: &str) -> Result<(), ApiError> {
        let mut open = self.open.lock();
        let session = open.get_mut(id).filter(|session| session.subject == subject).ok_or_else(not_found)?;
        if session.is_idle() && session.used.elapsed() >= self.idle {
            open.remove(id);
            metrics::mcp_sessions(open.len());
            return Err(not_found());
        }
        session.used = Instant::now();
        Ok(())
    }

    /// Ends a session and its requests. Errors: `session_not_found`.
    pub(super) fn close(&self, id: &str, subject: &str) -> Result<(), ApiError> {
        let mut open = self.open.lock();
        if open.get(id).is_none_or(|session| session.subject != subject) {
            return Err(not_found());
        }
        if let Some(session) = open.remove(id) {
            session.calls.values().for_each(CancellationToken::cancel);
        }
        metrics::mcp_sessions(open.len());
        Ok(())
    }

    /// Registers a request, which `token` cancels and which ends when the result is dropped. Errors: `session_not_found`,
    /// `invalid_request` for an id that is in use, `too_many_requests`.
    pub(super) fn begin(
        self: &Arc<Self>,
        id: &str,
        request: &Value,
        token: CancellationToken,
    ) -> Result<ActiveCall, ApiError> {
        let mut open = self.open.lock();
        let session = open.get_mut(id).ok_or_else(not_found)?;
        let request = request.to_string();
        if session.calls.contains_key(&request) {
            return Err(ApiError::new(
                ErrorCode::InvalidRequest,
                format!("a request with the id {request} is in progress"),
            ));
        }
        if session.calls.len() >= MAX_CALLS {
            let message = format!("{MAX_CALLS} requests of this session are in progress; try again later");
            return Err(ApiError::new(ErrorCode::TooManyRequests, message));
        }
        session.calls.insert(request.clone(), token);
        Ok(ActiveCall { sessions: Arc::clone(self), session: id.to_owned(), request })
    }

    /// Cancels a request, if it is in progress.
    pub(super) fn cancel(&self, id: &str, request: &Value) {
        let open = self.open.lock();
        if let Some(token) = open.get(id).and_then(|session| session.calls.get(&request.to_string())) {
            token.cancel();
        }
    }
}

fn not_found() -> ApiError {
    ApiError::new(ErrorCode::SessionNotFound, "there is no such session").with_hint("begin one with `initialize`")
}

/// A request in progress.
pub(super) struct ActiveCall {
    sessions: Arc<McpSessions>,
    session: String,
    request: String,
}

impl Drop for ActiveCall {
    fn drop(&mut self) {
        if let Some(session) = self.sessions.open.lock().get_mut(&self.session) {
            session.calls.remove(&self.request);
            session.used = Instant::now();
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const HOUR: Duration = Duration::from_secs(3_600);

    #[test]
    fn a_session_is_its_owners() {
        let sessions = McpSessions::new(8, HOUR);
        let id = sessions.open("ann", ClientAbilities::default()).unwrap();
        assert!(sessions.touch(&id, "ann").is_ok());
        assert_eq!(sessions.touch(&id, "bob").unwrap_err().code(), ErrorCode::SessionNotFound);
        assert_eq!(sessions.close(&id, "bob").unwrap_err().code(), ErrorCode::SessionNotFound);
        assert!(sessions.close(&id, "ann").is_ok());
        assert_eq!(sessions.touch(&id, "ann").unwrap_err().code(), ErrorCode::SessionNotFound);
    }

    #[test]
    fn the_oldest_of_the_same_owner_makes_room() {
        let sessions = McpSessions::new(3, HOUR);
        let others = sessions.open("bob", ClientAbilities::default()).unwrap();
        let (first, second) = (
            sessions.open("ann", ClientAbilities::default()).unwrap(),
            sessions.open("ann", ClientAbilities::default()).unwrap(),
        );
        sessions.touch(&first, "ann").unwrap();
        sessions.open("ann", ClientAbilities::default()).unwrap();
        assert!(sessions.touch(&others, "bob").is_ok() && sessions.touch(&first, "ann").is_ok());
        assert!(sessions.touch(&second, "ann").is_err());
    }

    #[test]
    fn an_idle_session_is_forgotten_and_one_at_work_is_not() {
        let sessions = Arc::new(McpSessions::new(1, Duration::ZERO));
        let id = sessions.open("ann", ClientAbilities::default()).unwrap();
        let call = sessions.begin(&id, &json!(1), CancellationToken::new()).unwrap();
        assert!(sessions.touch(&id, "ann").is_ok());
        assert_eq!(sessions.open("ann", ClientAbilities::default()).unwrap_err().code(), ErrorCode::TooManyRequests);
        drop(call);
        assert!(sessions.touch(&id, "ann").is_err());
    }

    #[test]
    fn a_request_is_cancelled_by_its_id_and_type() {
        let sessions = Arc::new(McpSessions::new(1, HOUR));
        let id = sessions.open("ann", ClientAbilities::default()).unwrap();
        let token = CancellationToken::new();
        let _call = sessions.begin(&id, &json!(1), token.clone()).unwrap();
        assert_eq!(sessions.begin(&id, &json!(1), token.clone()).err().unwrap().code(), ErrorCode::InvalidRequest);
        sessions.cancel(&id, &json!("1"));
        assert!(!token.is_cancelled());
        sessions.cancel(&id, &json!(1));
        assert!(token.is_cancelled());
    }
}
