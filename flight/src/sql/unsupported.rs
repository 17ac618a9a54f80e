//! Errors for the parts of Flight SQL that are not served: each names the part in the protocol's words and says what to
//! send instead.

use arrow_flight::sql::Command;

use crate::error::{ApiError, ErrorCode};

/// Returns the error for a command that a method does not serve.
pub(super) fn unsupported(method: &str, command: &Command) -> ApiError {
    let name = command.type_url().rsplit('.').next().unwrap_or_default();
    let hint = match command {
        Command::CommandPreparedStatementQuery(_) | Command::CommandPreparedStatementUpdate(_) => {
            "there are no prepared statements; send the text with CommandStatementQuery"
        }
        Command::CommandStatementUpdate(_) => "send the statement with CommandStatementQuery; DoGet executes it",
        Command::CommandStatementIngest(_) => "import a file with POST /v1/import or `querent import`",
        Command::CommandStatementSubstraitPlan(_) => "send SQL with CommandStatementQuery",
        _ => {
            "the Flight SQL commands served are CommandStatementQuery, CommandGetCatalogs, CommandGetDbSchemas, \
              CommandGetTables, CommandGetTableTypes and CommandGetSqlInfo"
        }
    };
    not_served(&format!("{method} of {name}"), hint)
}

/// Returns the error for an action.
pub(super) fn unsupported_action(name: &str) -> ApiError {
    let hint = match name {
        "CreatePreparedStatement" | "ClosePreparedStatement" => {
            "there are no prepared statements; send the text with CommandStatementQuery"
        }
        "BeginTransaction" | "EndTransaction" | "BeginSavepoint" | "EndSavepoint" => {
            "there are no transactions; every statement commits by itself"
        }
        "CancelFlightInfo" | "CancelQuery" => "close the stream of DoGet, which stops its query",
        "SetSessionOptions" | "GetSessionOptions" | "CloseSession" => {
            "there are no sessions; name a database in the header `x-database`"
        }
        _ => "ListActions lists the actions there are",
    };
    not_served(&format!("action {name}"), hint)
}

/// Returns the error for anything else.
pub(super) fn not_served(what: &str, hint: &str) -> ApiError {
    ApiError::new(ErrorCode::Unsupported, format!("{what} is not supported")).with_hint(hint)
}
