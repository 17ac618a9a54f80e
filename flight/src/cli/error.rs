//! Errors of the command line and their exit codes.

use std::io;

use querent_catalog::CatalogError;
use querent_engine::EngineError;
use tonic::Status;

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

impl From<EngineError> for CliError {
    fn from(error: EngineError) -> Self {
        let message = match error.hint() {
            Some(hint) => format!("{error}; {hint}"),
            None => error.to_string(),
        };
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
