//! `QuerentError`: every failure, with its stable code in the attribute `code`.

use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use querent_agent::AgentError;
use querent_catalog::CatalogError;
use querent_engine::EngineError;
use querent_flight::config::ConfigError;

create_exception!(querent, QuerentError, PyException, "A failure; `code` is stable, docs/errors.md explains each.");

/// A failure with its code, before it is raised.
#[derive(Debug, Clone)]
pub(crate) struct PythonFailure {
    code: String,
    message: String,
}

impl PythonFailure {
    pub(crate) fn new(code: &str, message: impl Into<String>) -> Self {
        Self { code: code.to_owned(), message: message.into() }
    }

    pub(crate) fn closed() -> Self {
        Self::new("closed", "the data folder is closed; open it again with querent.open(...)")
    }
}

impl From<PythonFailure> for PyErr {
    fn from(failure: PythonFailure) -> Self {
        let error = QuerentError::new_err(format!("{} [{}]", failure.message, failure.code));
        Python::attach(|py| {
            // The exception stands without it, should it ever refuse an attribute.
            let _ = error.value(py).setattr("code", failure.code);
        });
        error
    }
}

impl From<EngineError> for PythonFailure {
    fn from(error: EngineError) -> Self {
        let message = match error.hint() {
            Some(hint) => format!("{error}; {hint}"),
            None => error.to_string(),
        };
        Self::new(error.code(), message)
    }
}

impl From<CatalogError> for PythonFailure {
    fn from(error: CatalogError) -> Self {
        EngineError::from(error).into()
    }
}

impl From<AgentError> for PythonFailure {
    fn from(error: AgentError) -> Self {
        Self::new(error.code(), error.to_string())
    }
}

impl From<ConfigError> for PythonFailure {
    fn from(error: ConfigError) -> Self {
        Self::new(error.code().as_str(), error.to_string())
    }
}
