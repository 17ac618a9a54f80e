//! HolmesGPT's `/api/chat`: its requests, its server-sent events and its whole answer. A client of this protocol keeps
//! the conversation and sends it back; the part that the server must trust (that a person was asked about a call) is
//! signed.
//!
//! References: <https://holmesgpt.dev/reference/http-api/>.

mod history;
mod metadata;
mod render;
mod request;

use chrono::{DateTime, Utc};
use serde_json::Value;

use crate::event::WaitingCall;

pub use history::{HistoryCall, parse_history};
pub use render::{HolmesFailure, HolmesRenderer};
pub use request::{BadHolmesRequest, FrontendMode, FrontendResult, FrontendTool, HolmesRequest, ToolDecision};
pub use request::{invalid_json, parse_request};

/// Creates the token that a client sends back with a person's approval.
pub trait ApprovalSigner: Send {
    /// Returns the token of a call that waits since `at`.
    fn sign(&self, call: &WaitingCall, at: DateTime<Utc>) -> String;
}

/// Returns the arguments of a call as an object, which clients of this protocol require.
pub fn arguments_of(raw: &str) -> Value {
    match serde_json::from_str(raw) {
        Ok(Value::Object(arguments)) => Value::Object(arguments),
        _ => Value::Object(serde_json::Map::new()),
    }
}
