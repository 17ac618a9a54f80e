//! Messages of Flight and Flight SQL that arrow-flight has not, or has without a field, as their `.proto` files define
//! them.

use std::collections::HashMap;

use arrow_flight::sql::{Any, ProstMessageExt};
use bytes::Bytes;
use prost::Message;

/// `ActionCreatePreparedStatementResult`, with `is_update`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct CreatePreparedStatementResult {
    #[prost(bytes = "bytes", tag = "1")]
    pub(super) prepared_statement_handle: Bytes,
    /// An IPC schema message; empty for a statement that changes something.
    #[prost(bytes = "bytes", tag = "2")]
    pub(super) dataset_schema: Bytes,
    /// An IPC schema message; empty where there are no parameters.
    #[prost(bytes = "bytes", tag = "3")]
    pub(super) parameter_schema: Bytes,
    /// Whether to execute it by DoPut, as an update.
    #[prost(bool, optional, tag = "4")]
    pub(super) is_update: Option<bool>,
}

impl ProstMessageExt for CreatePreparedStatementResult {
    fn type_url() -> &'static str {
        "type.googleapis.com/arrow.flight.protocol.sql.ActionCreatePreparedStatementResult"
    }

    fn as_any(&self) -> Any {
        Any { type_url: Self::type_url().to_owned(), value: self.encode_to_vec().into() }
    }
}

/// The value of a session's option.
#[derive(Clone, PartialEq, Message)]
pub(super) struct SessionOptionValue {
    /// `None` deletes the option.
    #[prost(oneof = "OptionValue", tags = "1, 2, 3, 4, 5")]
    pub(super) option_value: Option<OptionValue>,
}

impl SessionOptionValue {
    /// Returns the value, where it is text.
    pub(super) fn text(&self) -> Option<&str> {
        match &self.option_value {
            Some(OptionValue::Text(text)) => Some(text),
            _ => None,
        }
    }
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub(super) enum OptionValue {
    #[prost(string, tag = "1")]
    Text(String),
    #[prost(bool, tag = "2")]
    Flag(bool),
    #[prost(sfixed64, tag = "3")]
    Integer(i64),
    #[prost(double, tag = "4")]
    Double(f64),
    #[prost(message, tag = "5")]
    TextList(TextList),
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct TextList {
    #[prost(string, repeated, tag = "1")]
    pub(super) values: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct SetSessionOptionsRequest {
    #[prost(map = "string, message", tag = "1")]
    pub(super) session_options: HashMap<String, SessionOptionValue>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct SetSessionOptionsResult {
    /// The options that were not set, and why.
    #[prost(map = "string, message", tag = "1")]
    pub(super) errors: HashMap<String, OptionError>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct OptionError {
    #[prost(enumeration = "OptionErrorKind", tag = "1")]
    pub(super) value: i32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub(super) enum OptionErrorKind {
    Unspecified = 0,
    InvalidName = 1,
    InvalidValue = 2,
    Error = 3,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct GetSessionOptionsRequest {}

#[derive(Clone, PartialEq, Message)]
pub(super) struct GetSessionOptionsResult {
    #[prost(map = "string, message", tag = "1")]
    pub(super) session_options: HashMap<String, SessionOptionValue>,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct CloseSessionRequest {}

#[derive(Clone, PartialEq, Message)]
pub(super) struct CloseSessionResult {
    #[prost(enumeration = "CloseSessionStatus", tag = "1")]
    pub(super) status: i32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub(super) enum CloseSessionStatus {
    Unspecified = 0,
    Closed = 1,
    Closing = 2,
    NotCloseable = 3,
}
