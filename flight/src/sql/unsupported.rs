//! Errors for the parts of Flight SQL that are not served: each names the part in the protocol's words and says what to
//! send instead.

use arrow_flight::sql::Command;
use bytes::Bytes;

use crate::error::{ApiError, ErrorCode};

/// Returns the error for a command that a method does not serve.
pub(super) fn unsupported(method: &str, command: &Command) -> ApiError {
    let name = command.type_url().rsplit('.').next().unwrap_or_default();
    let hint = match command {
        Command::CommandStatementUpdate(_) | Command::CommandPreparedStatementUpdate(_) => "send it by DoPut",
        Command::CommandStatementIngest(_) => "send it by DoPut, with the rows",
        Command::CommandStatementQuery(_) => "send it by GetFlightInfo and DoGet, or CommandStatementUpdate by DoPut",
        Command::CommandStatementSubstraitPlan(_) => "send SQL with CommandStatementQuery",
        _ => "ListActions and GetSqlInfo say what is served",
    };
    not_served(&format!("{method} of {name}"), hint)
}

/// Returns the error for an action.
pub(super) fn unsupported_action(name: &str) -> ApiError {
    let hint = match name {
        "CreatePreparedSubstraitPlan" => "prepare SQL with CreatePreparedStatement",
        "BeginTransaction" | "EndTransaction" | "BeginSavepoint" | "EndSavepoint" => {
            "there are no transactions; every statement commits by itself"
        }
        _ => "ListActions lists the actions there are",
    };
    not_served(&format!("action {name}"), hint)
}

/// Refuses a statement that is to be part of a transaction.
pub(super) fn refuse_transaction(id: Option<&Bytes>) -> Result<(), ApiError> {
    match id.is_some_and(|id| !id.is_empty()) {
        true => Err(not_served("a statement in a transaction", "every statement commits by itself")),
        false => Ok(()),
    }
}

/// Returns the error for anything else.
pub(super) fn not_served(what: &str, hint: &str) -> ApiError {
    ApiError::new(ErrorCode::Unsupported, format!("{what} is not supported")).with_hint(hint)
}
