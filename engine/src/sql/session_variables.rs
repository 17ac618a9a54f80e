//! What statements set for those that follow them in their session: settings, and statements by name.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use datafusion::sql::sqlparser::ast::DataType as SqlType;
use parking_lot::Mutex;

use super::parse::ParsedStatement;
use super::session_settings::{OFF, SCHEMA, STATEMENT_TIMEOUT, SessionSetting, VECTOR_INDEX, timeout};
use crate::error::{EngineError, Result};

/// The most statements that a session has by name, and the bytes of the text of one.
const MAX_STATEMENTS: usize = 200;
/// The most bytes of text of all of them: as syntax trees they are many times that.
const MAX_ALL_BYTES: usize = 1 << 20;
pub(crate) const MAX_STATEMENT_BYTES: usize = 256 << 10;

/// The settings of one session, and the statements that it prepared.
#[derive(Debug, Default)]
pub struct SessionVariables {
    values: Mutex<Values>,
}

#[derive(Debug, Default)]
struct Values {
    settings: BTreeMap<&'static str, String>,
    statements: BTreeMap<String, Arc<NamedStatement>>,
}

/// A statement that `EXECUTE` runs.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NamedStatement {
    pub(crate) name: String,
    /// The types of its parameters, where `PREPARE` said them.
    pub(crate) types: Vec<SqlType>,
    pub(crate) statement: ParsedStatement,
}

/// What a statement changes of its session.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum SessionChange {
    /// `SET`, `USE`.
    Set { setting: &'static str, value: String },
    /// `RESET`; `None` resets all.
    Reset { setting: Option<&'static str> },
    /// `PREPARE`.
    Prepare(Arc<NamedStatement>),
    /// `DEALLOCATE`; `None` is all.
    Deallocate { name: Option<String> },
}

impl SessionChange {
    /// Returns the statement's name in messages.
    pub(crate) fn label(&self) -> &'static str {
        match self {
            SessionChange::Set { .. } => "SET",
            SessionChange::Reset { .. } => "RESET",
            SessionChange::Prepare(_) => "PREPARE",
            SessionChange::Deallocate { .. } => "DEALLOCATE",
        }
    }
}

impl SessionVariables {
    /// Returns where bare names resolve, if that was set.
    pub fn database(&self) -> Option<String> {
        self.values.lock().settings.get(SCHEMA).cloned()
    }

    /// Sets where bare names resolve; `None` is the caller's own default.
    pub fn set_database(&self, database: Option<String>) {
        let mut values = self.values.lock();
        match database {
            Some(database) => values.settings.insert(SCHEMA, database),
            None => values.settings.remove(SCHEMA),
        };
    }

    /// Returns how long a statement may take, if that was set.
    pub(crate) fn statement_timeout(&self) -> Option<Duration> {
        let value = self.values.lock().settings.get(STATEMENT_TIMEOUT).cloned()?;
        timeout(&value).ok().flatten()
    }

    /// Returns whether searches for the nearest vectors were told to use no index.
    pub(crate) fn are_vector_searches_exact(&self) -> bool {
        self.values.lock().settings.get(VECTOR_INDEX).is_some_and(|value| value == OFF)
    }

    /// Returns all that was set, by name.
    pub(crate) fn settings(&self) -> Vec<(&'static str, String)> {
        self.values.lock().settings.iter().map(|(name, value)| (*name, value.clone())).collect()
    }

    /// Returns the value that was set for a setting.
    pub(crate) fn value(&self, setting: &SessionSetting) -> Option<String> {
        self.values.lock().settings.get(setting.name).cloned()
    }

    /// Returns the statement of a name. Errors: `sql_plan_error`.
    pub(crate) fn statement(&self, name: &str) -> Result<Arc<NamedStatement>> {
        let values = self.values.lock();
        if let Some(found) = values.statements.get(&name.to_lowercase()) {
            return Ok(Arc::clone(found));
        }
        let names: Vec<&str> = values.statements.values().map(|statement| statement.name.as_str()).collect();
        let known =
            if names.is_empty() { "none is prepared".to_owned() } else { format!("there is {}", names.join(", ")) };
        Err(EngineError::Plan {
            message: format!(
                "no statement `{name}` is prepared in this session ({known}); write PREPARE {name} AS ..."
            ),
        })
    }

    /// Makes a change. Errors: `sql_plan_error`.
    pub(crate) fn apply(&self, change: SessionChange) -> Result<()> {
        let mut values = self.values.lock();
        match change {
            SessionChange::Set { setting, value } => {
                values.settings.insert(setting, value);
            }
            SessionChange::Reset { setting: Some(setting) } => {
                values.settings.remove(setting);
            }
            SessionChange::Reset { setting: None } => values.settings.clear(),
            SessionChange::Prepare(statement) => {
                let key = statement.name.to_lowercase();
                if values.statements.len() >= MAX_STATEMENTS && !values.statements.contains_key(&key) {
                    return Err(EngineError::Plan {
                        message: format!("a session has at most {MAX_STATEMENTS} prepared statements; DEALLOCATE some"),
                    });
                }
                let others = values.statements.iter().filter(|(name, _)| **name != key);
                let bytes: usize = others.map(|(_, other)| other.statement.text_bytes).sum();
                if bytes + statement.statement.text_bytes > MAX_ALL_BYTES {
                    let most = MAX_ALL_BYTES >> 10;
                    return Err(EngineError::Plan {
                        message: format!(
                            "the prepared statements of a session have at most {most} KiB of text; DEALLOCATE some"
                        ),
                    });
                }
                // As in DuckDB, the later statement of a name replaces the earlier one.
                values.statements.insert(key, statement);
            }
            SessionChange::Deallocate { name: Some(name) } => {
                if values.statements.remove(&name.to_lowercase()).is_none() {
                    return Err(EngineError::Plan {
                        message: format!("no statement `{name}` is prepared in this session"),
                    });
                }
            }
            SessionChange::Deallocate { name: None } => values.statements.clear(),
        }
        Ok(())
    }
}

/// Returns the error for a statement that only makes sense where others follow it.
pub(crate) fn outside_a_session(what: &str) -> EngineError {
    let hint = match what {
        "PREPARE" | "EXECUTE" | "DEALLOCATE" => {
            "send the statement with ? or $1 and its values beside it (over HTTP \"params\"); over Flight SQL, in \
             Python and in the shell a connection is a session, where it works"
        }
        "USE" => {
            "name the database with the request (over HTTP \"database\" or the header x-database, on the command line \
             --database), or write database.table; over Flight SQL, in Python and in the shell a connection is a session, \
             where it works"
        }
        _ => {
            "say it with the request (over HTTP \"database\" and \"max_rows\", on the command line --database); over \
             Flight SQL, in Python and in the shell a connection is a session, where it works"
        }
    };
    EngineError::Unsupported { what: format!("{what} outside of a session"), hint: hint.to_owned() }
}
