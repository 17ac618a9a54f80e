//! Messages of the log for clients that ask for them, by `logging/setLevel` in a session or for one request in its
//! `_meta`: what the tools do, in the answer's own stream. A client that does not ask gets none.
#![expect(deprecated, reason = "clients of the revisions before 2026-07-28 ask for messages this way")]

use std::sync::Arc;

use parking_lot::Mutex;
use rmcp::model::{LoggingLevel, LoggingMessageNotificationParam};
use rmcp::service::RequestContext;
use rmcp::{Peer, RoleServer};
use serde_json::Value;

/// What a session has asked for. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct SessionLogLevel(Arc<Mutex<Option<LoggingLevel>>>);

impl SessionLogLevel {
    /// Sets the least severe messages that the session gets from now on.
    pub(super) fn set(&self, level: LoggingLevel) {
        *self.0.lock() = Some(level);
    }
}

/// How severe a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Severity {
    /// A call began.
    Debug,
    /// A call was answered, and what `ask` does on its way.
    Info,
    /// A call failed.
    Error,
}

/// Where the messages of one call go.
pub(super) struct CallLog {
    peer: Peer<RoleServer>,
    least: Option<LoggingLevel>,
}

impl CallLog {
    pub(super) fn new(context: &RequestContext<RoleServer>, session: Option<&SessionLogLevel>) -> Self {
        let of_session = || session.and_then(|session| *session.0.lock());
        Self { peer: context.peer.clone(), least: context.meta.log_level().or_else(of_session) }
    }

    /// Sends a message, if the client wants those of its severity.
    pub(super) async fn say(&self, severity: Severity, data: Value) {
        if self.least.is_none_or(|least| rank(severity.level()) < rank(least)) {
            return;
        }
        let message = LoggingMessageNotificationParam::new(severity.level(), data).with_logger("querent");
        // A client that went away needs no message.
        let _ = self.peer.notify_logging_message(message).await;
    }
}

impl Severity {
    fn level(self) -> LoggingLevel {
        match self {
            Self::Debug => LoggingLevel::Debug,
            Self::Info => LoggingLevel::Info,
            Self::Error => LoggingLevel::Error,
        }
    }
}

/// Returns a level's place in the order of RFC 5424, least severe first.
fn rank(level: LoggingLevel) -> u8 {
    match level {
        LoggingLevel::Debug => 0,
        LoggingLevel::Info => 1,
        LoggingLevel::Notice => 2,
        LoggingLevel::Warning => 3,
        LoggingLevel::Error => 4,
        LoggingLevel::Critical => 5,
        LoggingLevel::Alert => 6,
        LoggingLevel::Emergency => 7,
    }
}
