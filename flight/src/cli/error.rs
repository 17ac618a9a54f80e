//! Errors of the command line and their exit codes.

use std::io;

use querent_catalog::CatalogError;
use querent_engine::EngineError;
use tonic::Status;
use unicode_width::UnicodeWidthStr;

use super::output::grid::visible;
use crate::config::ConfigError;
use crate::server::ServerError;

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum CliError {
    /// The command line is wrong in a way that clap cannot know.
    #[error("{0}")]
    Usage(String),
    /// The settings are wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The server does not answer, or the data folder does not open.
    #[error("{0}")]
    Unavailable(String),
    /// The query, run, import or check failed.
    #[error("{message}")]
    Failed {
        /// The stable code, where there is one.
        code: Option<String>,
        /// What is wrong and what to do.
        message: String,
    },
    /// Standard output is closed.
    #[error("standard output is closed")]
    OutputClosed,
}

impl CliError {
    /// Makes a failure without a code.
    pub(super) fn failed(message: impl Into<String>) -> Self {
        CliError::Failed { code: None, message: message.into() }
    }

    /// Returns the error with the line of the statement that it names, and a mark below the place.
    pub(super) fn pointing_into(self, statement: &str) -> Self {
        match self {
            CliError::Failed { code, message } => {
                let shown = place_in(&message).and_then(|(line, column)| pointer(statement, line, column));
                let message = match shown {
                    Some(shown) if !message.contains('\n') => format!("{message}\n{shown}"),
                    _ => message,
                };
                CliError::Failed { code, message }
            }
            other => other,
        }
    }

    /// Returns the process's exit code.
    pub(super) fn exit_code(&self) -> u8 {
        match self {
            CliError::OutputClosed => 0,
            CliError::Failed { .. } => 1,
            CliError::Usage(_) | CliError::Config(_) => 2,
            CliError::Unavailable(_) => 3,
        }
    }

    /// Returns the stable code, where there is one.
    pub(super) fn code(&self) -> Option<&str> {
        match self {
            CliError::Failed { code, .. } => code.as_deref(),
            CliError::Config(error) => Some(error.code().as_str()),
            CliError::Usage(_) | CliError::Unavailable(_) | CliError::OutputClosed => None,
        }
    }
}

/// Returns a message and what to do: behind it, or below one that shows a place of a statement.
pub(super) fn with_hint(message: &str, hint: Option<&str>) -> String {
    match hint {
        None => message.to_owned(),
        Some(hint) if message.contains('\n') => format!("{message}\n{hint}"),
        Some(hint) => format!("{message}; {hint}"),
    }
}

/// Returns the line and the column, from 1, of `... at line 2, column 7`, as the parser of SQL says them.
fn place_in(message: &str) -> Option<(usize, usize)> {
    let (_, place) = message.rsplit_once(" at line ")?;
    let (line, rest) = place.split_once(", column ")?;
    let digits = rest.find(|char: char| !char.is_ascii_digit()).unwrap_or(rest.len());
    Some((line.parse().ok()?, rest.get(..digits)?.parse().ok()?))
}

/// Returns a line of a statement with a mark below one of its characters, both numbered from 1.
fn pointer(statement: &str, line: usize, column: usize) -> Option<String> {
    const BEFORE: usize = 60;
    const SHOWN: usize = 100;
    let text = statement.lines().nth(line.checked_sub(1)?)?;
    let at = column.checked_sub(1)?;
    if at > text.chars().count() {
        return None;
    }
    // Of a long line the part around the place.
    let first = if at > SHOWN - 20 { at - BEFORE } else { 0 };
    let shown: String =
        text.chars().skip(first).take(SHOWN).map(|char| if char == '\t' { ' ' } else { char }).collect();
    let before: String = shown.chars().take(at - first).collect();
    Some(format!("  {}\n  {}^", visible(&shown), " ".repeat(visible(&before).width())))
}

impl From<EngineError> for CliError {
    fn from(error: EngineError) -> Self {
        let message = with_hint(&error.to_string(), error.hint().as_deref());
        CliError::Failed { code: Some(error.code().to_owned()), message }
    }
}

impl From<CatalogError> for CliError {
    fn from(error: CatalogError) -> Self {
        EngineError::from(error).into()
    }
}

impl From<Status> for CliError {
    fn from(status: Status) -> Self {
        let code = status.metadata().get("x-querent-code").and_then(|code| code.to_str().ok()).map(str::to_owned);
        CliError::Failed { code, message: status.message().to_owned() }
    }
}

impl From<ServerError> for CliError {
    fn from(error: ServerError) -> Self {
        CliError::Unavailable(error.to_string())
    }
}

impl From<io::Error> for CliError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => CliError::OutputClosed,
            _ => CliError::failed(error.to_string()),
        }
    }
}
